//! [`RootImage`]: a root file system that is an image of a disk, and stays where it is.

use crate::{Disk, Error, Machine, Result};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// An image with a root file system. The guest mounts it, reads from it what it needs, and keeps what is written in memory, or there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootImage {
    path: PathBuf,
    /// The type of file system, as mount(2) knows it.
    kind: &'static str,
    /// What is written is written there.
    is_written: bool,
}

/// What stands behind the path of an image that is written, and of one that is not.
const WRITTEN: &str = ":rw";
const ONLY_READ: &str = ":ro";
/// The type of file system that can be written.
const WRITABLE: &str = "ext4";

/// So many bytes at the start tell what an image is.
const HEAD_BYTES: u64 = 2048;

/// The type of file system that starts so.
fn kind_of(head: &[u8]) -> Option<&'static str> {
    let is_at = |at: usize, magic: &[u8]| head.get(at..at + magic.len()) == Some(magic);
    if is_at(0, b"hsqs") {
        Some("squashfs")
    } else if is_at(1024, &0xe0f5_e1e2_u32.to_le_bytes()) {
        Some("erofs")
    } else if is_at(1024 + 0x38, &0xef53_u16.to_le_bytes()) {
        // Which of the family it is does not matter.
        Some("ext4")
    } else {
        None
    }
}

/// Whether a file system of ext's that starts so was not unmounted, and has a journal.
fn has_to_be_replayed(head: &[u8]) -> bool {
    const RECOVER: u8 = 4;
    head.get(1024 + 0x60).is_some_and(|features| features & RECOVER != 0)
}

/// The path, and whether what is there is written. A path that is there as it stands is taken so.
fn split(text: &Path) -> (&Path, bool) {
    let without = |suffix: &str| Some(Path::new(text.to_str()?.strip_suffix(suffix)?));
    if text.exists() {
        return (text, false);
    }
    match (without(WRITTEN), without(ONLY_READ)) {
        (Some(path), _) => (path, true),
        (None, Some(path)) => (path, false),
        (None, None) => (text, false),
    }
}

impl RootImage {
    /// The image at a path, which may have `:rw` or `:ro` behind it; `None` if what is there is none.
    ///
    /// # Errors
    /// [`Error::BadRootfs`]: it cannot be read; or `:rw` stands behind what cannot be written.
    pub fn at(text: &Path) -> Result<Option<Self>> {
        let (path, is_written) = split(text);
        let bad = |error: std::io::Error| Error::BadRootfs { path: path.to_path_buf(), why: error.to_string() };
        let mut head = Vec::new();
        if !path.metadata().map_err(bad)?.is_dir() {
            File::open(path).map_err(bad)?.take(HEAD_BYTES).read_to_end(&mut head).map_err(bad)?;
        }
        let kind = kind_of(&head);
        if kind == Some(WRITABLE) && !is_written && has_to_be_replayed(&head) {
            let why = "it was not unmounted, and what its journal has must be written to it first: `e2fsck -p IMAGE` does that, or a start with :rw behind the image";
            return Err(Error::BadRootfs { path: path.to_path_buf(), why: why.into() });
        }
        if path != text && (kind.is_none() || is_written && kind != Some(WRITABLE)) {
            let why = "only an image of ext2, ext3 or ext4 can be written (:rw), and only an image has :ro".into();
            return Err(Error::BadRootfs { path: path.to_path_buf(), why });
        }
        Ok(kind.map(|kind| Self { path: path.to_path_buf(), kind, is_written }))
    }

    /// Gives it to a machine, behind its other disks, as its root.
    pub fn attach(self, machine: &mut Machine) {
        let letter = char::from(b'a' + u8::try_from(machine.disks.len()).unwrap_or(25).min(25));
        machine.disks.push(Disk { path: self.path, is_read_only: !self.is_written });
        let options = if self.is_written { "rw" } else { "defaults" }.to_owned();
        let root = ["root".to_owned(), format!("/dev/vd{letter}"), self.kind.to_owned(), options];
        machine.root_words = root.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_first_bytes() {
        let mut head = vec![0; HEAD_BYTES as usize];
        assert_eq!(kind_of(&head), None);
        head[1024..1028].copy_from_slice(&[0xe2, 0xe1, 0xf5, 0xe0]);
        assert_eq!(kind_of(&head), Some("erofs"));
        head[1024..1028].fill(0);
        head[1080..1082].copy_from_slice(&[0x53, 0xef]);
        assert_eq!(kind_of(&head), Some("ext4"));
        assert_eq!(kind_of(&head[..1081]), None);
        head[..4].copy_from_slice(b"hsqs");
        assert_eq!(kind_of(&head), Some("squashfs"));
    }

    #[test]
    fn directories_and_archives_are_none() {
        assert_eq!(RootImage::at(Path::new("/")).unwrap(), None);
        assert_eq!(RootImage::at(Path::new("/etc/passwd")).unwrap(), None);
        assert!(RootImage::at(Path::new("/no/such/image")).is_err());
    }

    #[test]
    fn what_is_written_is_an_image_of_ext() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let written = directory.path().join("image:rw");
        let mut head = vec![0; HEAD_BYTES as usize];
        std::fs::write(&path, &head).unwrap();
        assert!(RootImage::at(&written).is_err());
        head[1024..1028].copy_from_slice(&[0xe2, 0xe1, 0xf5, 0xe0]);
        std::fs::write(&path, &head).unwrap();
        assert!(RootImage::at(&written).is_err());
        head[1080..1082].copy_from_slice(&[0x53, 0xef]);
        head[1024..1028].fill(0);
        std::fs::write(&path, &head).unwrap();
        assert!(RootImage::at(&written).unwrap().unwrap().is_written);
        assert!(!RootImage::at(&path).unwrap().unwrap().is_written);
        assert!(RootImage::at(Path::new("/:rw")).is_err());
    }
}

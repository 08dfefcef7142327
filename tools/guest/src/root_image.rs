//! [`RootImage`]: a root file system that is an image of a disk, and stays where it is.

use crate::{Disk, Error, Machine, Result};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// An image with a root file system. The guest mounts it, reads from it what it needs, and keeps what is written in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootImage {
    path: PathBuf,
    /// The type of file system, as mount(2) knows it.
    kind: &'static str,
}

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

impl RootImage {
    /// The image at a path; `None` if what is there is none.
    ///
    /// # Errors
    /// [`Error::BadRootfs`]: it cannot be read.
    pub fn at(path: &Path) -> Result<Option<Self>> {
        let bad = |error: std::io::Error| Error::BadRootfs { path: path.to_path_buf(), why: error.to_string() };
        if path.metadata().map_err(bad)?.is_dir() {
            return Ok(None);
        }
        let mut head = Vec::new();
        File::open(path).map_err(bad)?.take(HEAD_BYTES).read_to_end(&mut head).map_err(bad)?;
        Ok(kind_of(&head).map(|kind| Self { path: path.to_path_buf(), kind }))
    }

    /// Gives it to a machine, behind its other disks, as its root.
    pub fn attach(self, machine: &mut Machine) {
        let letter = char::from(b'a' + u8::try_from(machine.disks.len()).unwrap_or(25).min(25));
        machine.disks.push(Disk { path: self.path, is_read_only: true });
        let options = "defaults".to_owned();
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
}

//! Root file systems that users bring: a directory, a tar archive, or a cpio archive; archives plain or gzipped.

use super::host_program::node_of;
use super::tree::path_from_bytes;
use super::{Content, Image, Kind, Node, cpio};
use crate::{Error, Result};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a tar archive says that it is one.
const TAR_MAGIC_AT: usize = 257;

impl Image {
    /// All files of a root file system.
    pub fn from_rootfs(path: &Path) -> Result<Self> {
        let bad = |why: String| Error::BadRootfs { path: path.to_path_buf(), why };
        let metadata = fs::metadata(path).map_err(|error| bad(error.to_string()))?;
        let mut image = Self::empty();
        if metadata.is_dir() {
            let mut first_names = HashMap::new();
            add_directory(&mut image, path, Path::new(""), &mut first_names).map_err(|error| bad(error.to_string()))?;
            return Ok(image);
        }
        let bytes = fs::read(path).map_err(|error| bad(error.to_string()))?;
        let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            let mut decoder = flate2::read::MultiGzDecoder::new(bytes.as_slice());
            decoder.read_to_end(&mut plain).map_err(|error| bad(format!("damaged gzip file: {error}")))?;
            plain
        } else {
            bytes
        };
        if cpio::is_cpio(&bytes) {
            cpio::read_into(&mut image, &bytes).map_err(bad)?;
        } else if bytes.get(TAR_MAGIC_AT..).is_some_and(|rest| rest.starts_with(b"ustar")) {
            add_tar(&mut image, &bytes).map_err(|error| bad(format!("corrupt tar archive: {error}")))?;
        } else {
            return Err(bad("neither a directory nor a tar or cpio archive, plain or gzipped".into()));
        }
        Ok(image)
    }
}

fn add_directory(
    image: &mut Image,
    host: &Path,
    guest: &Path,
    first_names: &mut HashMap<(u64, u64), PathBuf>,
) -> io::Result<()> {
    let in_path = |error: io::Error, path: &Path| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    for entry in fs::read_dir(host).map_err(|error| in_path(error, host))? {
        let entry = entry?;
        let (host, guest) = (entry.path(), guest.join(entry.file_name()));
        let metadata = entry.metadata().map_err(|error| in_path(error, &host))?;
        let Some(mut node) = node_of(&host, &metadata).map_err(|error| in_path(error, &host))? else {
            continue;
        };
        if metadata.is_file() && metadata.nlink() > 1 {
            let identity = (metadata.dev(), metadata.ino());
            match first_names.get(&identity) {
                Some(first) => node.kind = Kind::HardLink(first.clone()),
                None => {
                    first_names.insert(identity, guest.clone());
                }
            }
        }
        image.insert(&guest, node);
        if metadata.is_dir() {
            add_directory(image, &host, &guest, first_names)?;
        }
    }
    Ok(())
}

fn add_tar(image: &mut Image, bytes: &[u8]) -> io::Result<()> {
    use tar::EntryType;
    // Only devices have device numbers; other entries may leave the fields blank.
    let number = |field: Option<u32>| field.unwrap_or(0);
    for entry in tar::Archive::new(bytes).entries()? {
        let mut entry = entry?;
        let path = path_from_bytes(&entry.path_bytes());
        let link = entry.link_name_bytes().map(|name| path_from_bytes(&name));
        let header = entry.header();
        let (mode, uid, gid, mtime) = (header.mode()?, header.uid()?, header.gid()?, header.mtime()?);
        let kind = match (header.entry_type(), link) {
            (EntryType::Directory, _) => Kind::Directory,
            (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                Kind::File(Content::Bytes(content))
            }
            (EntryType::Symlink, Some(target)) => Kind::Symlink(target),
            (EntryType::Link, Some(target)) => Kind::HardLink(
                target.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect(),
            ),
            (EntryType::Char, _) => Kind::CharDevice(number(header.device_major()?), number(header.device_minor()?)),
            (EntryType::Block, _) => Kind::BlockDevice(number(header.device_major()?), number(header.device_minor()?)),
            (EntryType::Fifo, _) => Kind::Fifo,
            _ => continue,
        };
        let node = Node { mode: mode & 0o7777, uid: uid as u32, gid: gid as u32, mtime: mtime as u32, kind };
        image.insert(&path, node);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        fs::create_dir_all(at.join("bin")).unwrap();
        fs::write(at.join("bin/one"), "text").unwrap();
        fs::hard_link(at.join("bin/one"), at.join("bin/two")).unwrap();
        symlink("one", at.join("bin/three")).unwrap();
        directory
    }

    fn names(image: &Image) -> Vec<String> {
        image.entries().map(|(path, _)| path.display().to_string()).collect()
    }

    const NAMES: [&str; 4] = ["bin", "bin/one", "bin/three", "bin/two"];

    #[test]
    fn a_directory_and_its_archives_are_the_same_file_system() {
        let directory = directory();
        let image = Image::from_rootfs(directory.path()).unwrap();
        assert_eq!(names(&image), NAMES);

        let archives = tempfile::tempdir().unwrap();
        let cpio_path = archives.path().join("a.cpio");
        image.write_to(&cpio_path).unwrap();
        assert_eq!(names(&Image::from_rootfs(&cpio_path).unwrap()), NAMES);

        let mut tar = tar::Builder::new(Vec::new());
        tar.follow_symlinks(false);
        tar.append_dir_all(".", directory.path()).unwrap();
        let tar = tar.into_inner().unwrap();
        let gzipped = archives.path().join("a.tar.gz");
        let mut encoder =
            flate2::write::GzEncoder::new(fs::File::create(&gzipped).unwrap(), flate2::Compression::fast());
        encoder.write_all(&tar).unwrap();
        encoder.finish().unwrap();
        assert_eq!(names(&Image::from_rootfs(&gzipped).unwrap()), NAMES);
    }

    #[test]
    fn damaged_archives_are_refused_with_a_reason() {
        let archives = tempfile::tempdir().unwrap();
        let path = archives.path().join("archive");
        for (bytes, reason) in [
            (&b"some text"[..], "neither a directory"),
            (b"", "neither a directory"),
            (b"\x1f\x8bnot gzip", "damaged gzip"),
            (b"070701zz", "corrupt cpio"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = Image::from_rootfs(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}

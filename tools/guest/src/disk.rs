//! [`Disk`]: a raw image of the host that a machine has as a disk.

use crate::{Error, Result};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::str::FromStr;

/// A raw image that is a disk of a machine: `/dev/vda` the first, `/dev/vdb` the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The image: a file or a block device.
    pub path: PathBuf,
    /// Whether the guest may only read it.
    pub is_read_only: bool,
}

impl FromStr for Disk {
    type Err = String;

    /// A path, with `:ro` behind it for one that is only read.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (path, is_read_only) = match text.strip_suffix(":ro") {
            Some(path) => (path, true),
            None => (text, false),
        };
        if path.is_empty() {
            Err("expected IMAGE or IMAGE:ro".into())
        } else {
            Ok(Self { path: path.into(), is_read_only })
        }
    }
}

impl Disk {
    /// Sees to it that the image is there and can be used as it is meant to be.
    ///
    /// # Errors
    /// [`Error::BadDisk`].
    pub fn check(&self) -> Result<()> {
        let bad = |why: String| Error::BadDisk { path: self.path.clone(), why };
        let metadata = match self.path.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(bad("there is no such image; `truncate -s 1G IMAGE` makes an empty one".into()));
            }
            Err(error) => return Err(bad(error.to_string())),
        };
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            return Err(bad("it is neither a file nor a block device".into()));
        }
        if metadata.is_file() && metadata.len() < 512 {
            return Err(bad("it has not even one sector; `truncate -s 1G IMAGE` makes it larger".into()));
        }
        let opened = OpenOptions::new().read(true).write(!self.is_read_only).open(&self.path);
        match opened {
            Ok(_) => Ok(()),
            Err(error) if !self.is_read_only && OpenOptions::new().read(true).open(&self.path).is_ok() => {
                Err(bad(format!("it cannot be written ({error}); add :ro to have it read only")))
            }
            Err(error) => Err(bad(format!("it cannot be read ({error})"))),
        }
    }

    /// QEMU's arguments for disk `number` of a machine with so many cores, behind its IOMMU if it has one.
    pub(crate) fn arguments(&self, number: usize, cpus: usize, has_iommu: bool) -> Vec<OsString> {
        let mut drive = OsString::from(format!(
            "if=none,id=disk{number},format=raw,discard=unmap,read-only={},file=",
            if self.is_read_only { "on" } else { "off" }
        ));
        // A comma in a value is written twice.
        drive.push(self.path.to_string_lossy().replace(',', ",,"));
        // What fails is an error in the guest; QEMU would stop the machine where the host's file system is full.
        let device = format!(
            "virtio-blk-pci,drive=disk{number},disable-legacy=on,num-queues={cpus},werror=report,rerror=report,iommu_platform={}",
            if has_iommu { "on" } else { "off" }
        );
        vec!["-drive".into(), drive, "-device".into(), device.into()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_be_followed_by_ro() {
        let parse = |text: &str| text.parse::<Disk>().map(|disk| (disk.path.display().to_string(), disk.is_read_only));
        assert_eq!(parse("a.img"), Ok(("a.img".into(), false)));
        assert_eq!(parse("/tmp/a:b:ro"), Ok(("/tmp/a:b".into(), true)));
        assert!(parse("").is_err() && parse(":ro").is_err());
    }

    #[test]
    fn what_cannot_be_a_disk_is_refused_with_advice() {
        let why = |path: &str, is_read_only| match (Disk { path: path.into(), is_read_only }).check() {
            Err(Error::BadDisk { why, .. }) => why,
            other => panic!("{path}: {other:?}"),
        };
        assert!(why("/no/such/image", false).contains("truncate"));
        assert!(why("/", true).contains("neither"));
    }

    #[test]
    fn commas_in_paths_reach_qemu() {
        let arguments = Disk { path: "/tmp/a,b".into(), is_read_only: true }.arguments(1, 2, true);
        assert!(arguments[1].to_string_lossy().ends_with("read-only=on,file=/tmp/a,,b"));
        assert!(arguments[3].to_string_lossy().contains("drive=disk1"));
        assert!(arguments[3].to_string_lossy().ends_with("iommu_platform=on"));
    }
}

//! Which types of file system can be mounted: the VFS is told at boot.

use frame::Cx;
use refs::{NoSuspend, SpinLock, StrongRc};

use super::{FileSystem, Inode};
use crate::error::{Errno, Result};

/// A new instance and its root directory.
pub type Instance = (StrongRc<FileSystem>, StrongRc<Inode>);

/// A type of file system, as in `/proc/filesystems`.
pub struct FileSystemType {
    /// Its name for mount(2).
    pub name: &'static str,
    /// Makes an instance (or shares the one there is), with the options of mount(2). EINVAL for options that are not understood.
    pub make: fn(options: &[u8], cx: &Cx) -> Result<Instance>,
}

static TYPES: SpinLock<&'static [FileSystemType]> = SpinLock::new(&[]);

/// Says which file systems can be mounted. Called once, at boot.
pub fn register_types(types: &'static [FileSystemType], cx: &impl NoSuspend) {
    *TYPES.lock(cx) = types;
}

/// The file systems that can be mounted.
pub fn types(cx: &impl NoSuspend) -> &'static [FileSystemType] {
    *TYPES.lock(cx)
}

/// Makes an instance of a file system by name.
///
/// # Errors
/// ENODEV for a name that is not known; EINVAL for options that are not understood.
pub fn make(name: &[u8], options: &[u8], cx: &Cx) -> Result<Instance> {
    let kind = types(cx).iter().find(|kind| kind.name.as_bytes() == name).ok_or(Errno::ENODEV)?;
    (kind.make)(options, cx)
}

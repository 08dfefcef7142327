//! [`FsContext`]: root, working directory and umask.

use core::sync::atomic::AtomicU32;

/// Root, working directory and umask of a process (shared by CLONE_FS).
#[derive(Default)]
pub struct FsContext {
    /// The bits that new files do not get: see umask(2).
    pub umask: AtomicU32,
}

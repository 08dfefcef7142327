//! [`FileTable`]: the descriptors of a process.

use bitflags::bitflags;
use frame::Cx;
use refs::{HandleTable, SpinLock, TempRc, WeakRc};

use super::OpenFile;
use crate::error::{Errno, Result};

bitflags! {
    /// What belongs to a descriptor rather than to its description.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FdFlags: u8 {
        /// FD_CLOEXEC.
        const CLOSE_ON_EXEC = 1;
    }
}

/// The descriptors of a process (shared by the threads and by CLONE_FILES).
#[derive(Default)]
pub struct FileTable {
    /// The descriptions by descriptor.
    pub handles: SpinLock<HandleTable<OpenFile, FdFlags>>,
}

impl FileTable {
    /// The description of a descriptor.
    ///
    /// # Errors
    /// EBADF.
    #[inline(always)]
    pub fn get<'cx>(&self, fd: i32, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
        self.weak(fd, cx)?.upgrade(cx).map_err(|_| Errno::EBADF)
    }

    /// The name of the description of a descriptor, for calls that wait.
    ///
    /// # Errors
    /// EBADF.
    #[inline(always)]
    pub fn weak(&self, fd: i32, cx: &Cx) -> Result<WeakRc<OpenFile>> {
        usize::try_from(fd).ok().and_then(|fd| self.handles.lock(cx).weak(fd)).ok_or(Errno::EBADF)
    }
}

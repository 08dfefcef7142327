//! [`FileTable`]: the descriptors of a process.

use core::ops::RangeInclusive;

use bitflags::bitflags;
use frame::Cx;
use refs::{Dying, HandleTable, SpinLock, TempRc, WeakRc};

use super::OpenFile;
use crate::error::{Errno, Result};

/// The most descriptors that a process can have, whatever RLIMIT_NOFILE says (`/proc/sys/fs/nr_open`).
pub const MOST_DESCRIPTORS: usize = 1 << 16;

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
        usize::try_from(fd).ok().and_then(|fd| self.handles.lock(cx).get(fd, cx)).ok_or(Errno::EBADF)
    }

    /// The name of the description of a descriptor, for calls that wait.
    ///
    /// # Errors
    /// EBADF.
    #[inline(always)]
    pub fn weak(&self, fd: i32, cx: &Cx) -> Result<WeakRc<OpenFile>> {
        usize::try_from(fd).ok().and_then(|fd| self.handles.lock(cx).weak(fd)).ok_or(Errno::EBADF)
    }

    /// Takes a descriptor out. The description is freed at the end of the call if this was the last.
    ///
    /// # Errors
    /// EBADF.
    pub fn close(this: &TempRc<'_, Self>, fd: i32, cx: &Cx) -> Result<()> {
        let closed = usize::try_from(fd).ok().and_then(|fd| this.handles.lock(cx).remove(fd)).ok_or(Errno::EBADF)?;
        this.release_locks(&closed.get(cx), &this.downgrade(), cx);
        drop(closed);
        Ok(())
    }

    /// Takes all descriptors of a range out.
    pub fn close_range(this: &TempRc<'_, Self>, range: RangeInclusive<u32>, cx: &Cx) {
        let mut at = *range.start() as usize;
        while let Some(fd) = this.next_in(at, &range, cx) {
            let _ = Self::close(this, fd as i32, cx);
            at = fd + 1;
        }
    }

    /// Sets flags of all descriptors of a range.
    pub fn set_flags_in(&self, range: RangeInclusive<u32>, flags: FdFlags, cx: &Cx) {
        let mut at = *range.start() as usize;
        while let Some(fd) = self.next_in(at, &range, cx) {
            if let Some(attribute) = self.handles.lock(cx).attribute(fd) {
                *attribute |= flags;
            }
            at = fd + 1;
        }
    }

    /// The first descriptor from `at` on, if it is in the range. (There may be too many for a list of them.)
    fn next_in(&self, at: usize, range: &RangeInclusive<u32>, cx: &Cx) -> Option<usize> {
        self.handles.lock(cx).next(at).filter(|&fd| fd <= *range.end() as usize)
    }

    /// A descriptor's own flags.
    ///
    /// # Errors
    /// EBADF.
    pub fn flags(&self, fd: i32, cx: &Cx) -> Result<FdFlags> {
        let mut handles = self.handles.lock(cx);
        usize::try_from(fd).ok().and_then(|fd| handles.attribute(fd).copied()).ok_or(Errno::EBADF)
    }

    /// Changes a descriptor's own flags.
    ///
    /// # Errors
    /// EBADF.
    pub fn set_flags(&self, fd: i32, flags: FdFlags, cx: &Cx) -> Result<()> {
        let mut handles = self.handles.lock(cx);
        let attribute = usize::try_from(fd).ok().and_then(|fd| handles.attribute(fd)).ok_or(Errno::EBADF)?;
        *attribute = flags;
        Ok(())
    }

    /// One more descriptor for the same description: the lowest free one from `from` on, below `limit`.
    ///
    /// # Errors
    /// EBADF; EMFILE.
    pub fn duplicate(&self, fd: i32, from: usize, limit: usize, flags: FdFlags, cx: &Cx) -> Result<usize> {
        let mut handles = self.handles.lock(cx);
        let share = usize::try_from(fd).ok().and_then(|fd| handles.share(fd)).ok_or(Errno::EBADF)?;
        handles.insert(share, flags, from, limit).map_err(|_refused: Dying<OpenFile>| Errno::EMFILE)
    }

    /// Makes `to` a descriptor for the same description, in place of what it was.
    ///
    /// # Errors
    /// EBADF; ENOMEM.
    pub fn duplicate_to(this: &TempRc<'_, Self>, fd: i32, to: usize, flags: FdFlags, cx: &Cx) -> Result<()> {
        let mut handles = this.handles.lock(cx);
        let share = usize::try_from(fd).ok().and_then(|fd| handles.share(fd)).ok_or(Errno::EBADF)?;
        if !handles.reserve(to) {
            return Err(Errno::ENOMEM);
        }
        let closed = handles.replace(to, share, flags);
        drop(handles);
        if let Some(closed) = closed {
            this.release_locks(&closed.get(cx), &this.downgrade(), cx);
        }
        Ok(())
    }

    /// Ends the record locks that the process has on a file, as closing any of its descriptors does.
    #[inline]
    fn release_locks(&self, closed: &OpenFile, this: &WeakRc<Self>, cx: &Cx) {
        if let Ok(inode) = closed.inode(cx) {
            inode.locks.closed_by(this, cx);
        }
    }
}

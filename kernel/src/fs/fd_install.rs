//! [`ReservedFd`]: a descriptor comes before what it stands for.
//!
//! A call that makes a descriptor reserves it before it does anything that cannot be taken back: so EMFILE and ENFILE leave no file
//! made or truncated, no connection accepted and no message read. There is no other way to enter a new description.

use frame::Cx;
use linux_raw_sys::general::RLIMIT_NOFILE;
use refs::{StrongRc, TempRc, WeakRc};

use super::{FdFlags, FileTable, OpenFile, OpenFlags, VfsCaller, fd_table};
use crate::error::{Errno, Result};

/// A descriptor that is nobody's yet: the right to enter one description under it. Dropped, it is free again.
#[must_use = "it is free again once it is dropped"]
pub struct ReservedFd<'cx> {
    files: TempRc<'cx, FileTable>,
    fd: usize,
    is_filled: bool,
}

/// A reserved descriptor whose call waits. It must be [resumed](Self::resume), also when the wait fails.
#[must_use = "a descriptor that is not resumed stays taken"]
pub struct ParkedFd {
    files: WeakRc<FileTable>,
    fd: usize,
}

impl FileTable {
    /// Reserves the lowest free descriptor.
    ///
    /// # Errors
    /// EMFILE: the process may not have more (RLIMIT_NOFILE). ENFILE: nor may the system. ENOMEM: nor does the budget of its group have room for it.
    #[inline]
    pub fn reserve<'cx>(this: &TempRc<'cx, Self>, me: &impl VfsCaller, cx: &'cx Cx) -> Result<ReservedFd<'cx>> {
        let limit = descriptor_limit(me, cx)?;
        if OpenFile::are_too_many() {
            return Err(Errno::ENFILE);
        }
        let fd = this.handles.lock(cx).reserve_lowest(0, limit)?;
        Ok(ReservedFd { files: this.clone(), fd, is_filled: false })
    }
}

/// Reserves the lowest free descriptor of the caller.
///
/// # Errors
/// As for [`FileTable::reserve`].
#[inline]
pub fn reserve_fd<'cx>(me: &impl VfsCaller, cx: &'cx Cx) -> Result<ReservedFd<'cx>> {
    FileTable::reserve(&me.files(cx)?, me, cx)
}

/// How many descriptors the caller may have: each is below this number.
///
/// # Errors
/// The thread is gone.
#[inline]
pub fn descriptor_limit(me: &impl VfsCaller, cx: &Cx) -> Result<usize> {
    let limit = me.limit(RLIMIT_NOFILE, cx)?;
    Ok(usize::try_from(limit).unwrap_or(usize::MAX).min(fd_table::most_descriptors()))
}

impl ReservedFd<'_> {
    /// The descriptor.
    pub fn fd(&self) -> usize {
        self.fd
    }

    /// Enters a new description; its descriptor.
    pub fn fill(self, file: OpenFile, flags: FdFlags, cx: &Cx) -> usize {
        self.fill_shared(StrongRc::new(file), flags, cx)
    }

    /// Enters a description; its descriptor.
    #[inline]
    pub fn fill_shared(mut self, file: StrongRc<OpenFile>, flags: FdFlags, cx: &Cx) -> usize {
        self.files.handles.lock(cx).fill(self.fd, file, flags);
        self.is_filled = true;
        self.fd
    }

    /// As [`fill`](Self::fill), of what counts what is in it with the rest of the table: [`Descriptors::fill_counted`](super::Descriptors::fill_counted).
    pub fn fill_counted(mut self, file: OpenFile, flags: FdFlags, cx: &Cx) -> usize {
        self.files.handles.lock(cx).fill_counted(self.fd, StrongRc::new(file), flags);
        self.is_filled = true;
        self.fd
    }

    /// Enters both ends of a new pair, with nothing in between.
    pub fn fill_pair(mut pair: [Self; 2], ends: [OpenFile; 2], flags: FdFlags, cx: &Cx) {
        let fds = pair.each_ref().map(|reserved| reserved.fd);
        let ends = OpenFile::pair(ends, fds).map(StrongRc::new);
        pair[0].files.handles.lock(cx).fill_pair(fds, ends, flags);
        pair.iter_mut().for_each(|reserved| reserved.is_filled = true);
    }

    /// Keeps the descriptor reserved while the call waits.
    pub fn park(mut self) -> ParkedFd {
        self.is_filled = true;
        ParkedFd { files: self.files.downgrade(), fd: self.fd }
    }
}

impl Drop for ReservedFd<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_filled {
            self.files.handles.with(|handles| handles.release(self.fd));
        }
    }
}

impl ParkedFd {
    /// The descriptor.
    pub fn fd(&self) -> usize {
        self.fd
    }

    /// The reserved descriptor again.
    ///
    /// # Errors
    /// The table is gone.
    pub fn resume<'cx>(self, cx: &'cx Cx) -> Result<ReservedFd<'cx>> {
        Ok(ReservedFd { files: self.files.upgrade(cx)?, fd: self.fd, is_filled: false })
    }
}

impl FdFlags {
    /// The flags of a descriptor that a call with these flags makes (O_CLOEXEC, and the flags of other calls of the same value).
    pub fn of(flags: OpenFlags) -> Self {
        if flags.contains(OpenFlags::CLOSE_ON_EXEC) { FdFlags::CLOSE_ON_EXEC } else { FdFlags::empty() }
    }
}

//! New descriptions get their descriptors.

use frame::Cx;
use linux_raw_sys::general::RLIMIT_NOFILE;
use refs::{Dying, StrongRc};

use super::{FdFlags, FileTable, MOST_DESCRIPTORS, OpenFile, OpenFlags};
use crate::current::Current;
use crate::error::{Errno, Result};

impl FileTable {
    /// Enters a new description under the lowest free descriptor.
    ///
    /// # Errors
    /// EMFILE: the process may not have more (RLIMIT_NOFILE). ENFILE: nor may the system.
    pub fn install(&self, file: OpenFile, flags: FdFlags, me: &Current, cx: &Cx) -> Result<usize> {
        self.install_shared(StrongRc::new(file), flags, me, cx)
    }

    /// Enters a description under the lowest free descriptor.
    ///
    /// # Errors
    /// EMFILE: the process may not have more (RLIMIT_NOFILE). ENFILE: nor may the system.
    pub fn install_shared(&self, file: StrongRc<OpenFile>, flags: FdFlags, me: &Current, cx: &Cx) -> Result<usize> {
        let limit = me.thread(cx)?.limit(RLIMIT_NOFILE, cx).0;
        let limit = limit.min(MOST_DESCRIPTORS as u64) as usize;
        if OpenFile::count() > OpenFile::most() {
            return Err(Errno::ENFILE);
        }
        let entered = self.handles.lock(cx).insert(file, flags, 0, limit);
        entered.map_err(|_refused: Dying<OpenFile>| Errno::EMFILE)
    }

    /// Takes back what [`install`](Self::install) did.
    pub fn uninstall(&self, fd: usize, cx: &Cx) {
        drop(self.handles.lock(cx).remove(fd));
    }
}

impl FdFlags {
    /// The flags of a descriptor that a call with these flags makes (O_CLOEXEC, and the flags of other calls of the same value).
    pub fn of(flags: OpenFlags) -> Self {
        if flags.contains(OpenFlags::CLOSE_ON_EXEC) { FdFlags::CLOSE_ON_EXEC } else { FdFlags::empty() }
    }
}

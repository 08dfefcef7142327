//! Processes and threads.

use frame::Cx;
use refs::{SpinLock, StrongRc};

use crate::fs::{FileTable, FsContext};
use crate::memory::AddressSpace;

/// A thread (what Linux calls a task).
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// Its share in the address space; taken out when it exits.
    pub space: SpinLock<Option<StrongRc<AddressSpace>>>,
    /// Its share in the descriptors.
    pub files: SpinLock<Option<StrongRc<FileTable>>>,
    /// Its share in root, working directory and umask.
    pub fs: SpinLock<Option<StrongRc<FsContext>>>,
    /// Who it acts for.
    pub credentials: SpinLock<Credentials>,
}

/// A process (a thread group).
pub struct Process {
    /// Its id.
    pub pid: u32,
}

/// Who a thread acts for: see credentials(7).
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    pub euid: u32,
    pub egid: u32,
    pub suid: u32,
    pub sgid: u32,
    pub fsuid: u32,
    pub fsgid: u32,
    pub groups: alloc::vec::Vec<u32>,
}

impl Thread {
    /// A resource limit of its process (soft, hard): see getrlimit(2).
    pub fn limit(&self, _resource: u32, _cx: &Cx) -> (u64, u64) {
        (u64::MAX, u64::MAX)
    }
}

impl Thread {
    /// How long it has run, in nanoseconds.
    pub fn cpu_time(&self, _cx: &Cx) -> u64 {
        0
    }
}

impl Process {
    /// How long its threads have run, in nanoseconds.
    pub fn cpu_time(&self, _cx: &Cx) -> u64 {
        0
    }
}

/// The process of that id.
pub fn find(_pid: u32, _cx: &Cx) -> Option<refs::TempRc<'_, Process>> {
    None
}

/// The thread of that id.
pub fn find_thread(_tid: u32, _cx: &Cx) -> Option<refs::TempRc<'_, Thread>> {
    None
}

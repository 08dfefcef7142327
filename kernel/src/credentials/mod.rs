//! [`Credentials`]: who a thread acts for, and what it may do. See credentials(7), capabilities(7).
//!
//! Whether something is allowed is decided here and by capability only. [`Uid`] and [`Gid`] compare with each other (who owns what), not with
//! numbers, and nothing outside of this folder has a name for user 0: a test of "is it root" does not compile. User 0 is special in two places,
//! both in [`change`]: in what a change of user ids does to the capability sets, and in what execve(2) gives.

mod capability;
mod change;

use alloc::vec::Vec;

pub use capability::{Capability, CapabilitySet, FileCapabilities, SecureBits};
pub use change::{Ambient, Execution};

use crate::error::{Errno, Result};

/// A user's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uid(u32);

/// A group's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gid(u32);

impl Uid {
    /// The user of number 0.
    pub const ROOT: Uid = Uid(0);

    /// The user of a number that a program gave or a file has.
    pub const fn new(number: u32) -> Self {
        Uid(number)
    }

    /// The number, to be told to a program or kept in a file.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl Gid {
    /// The group of a number that a program gave or a file has.
    pub const fn new(number: u32) -> Self {
        Gid(number)
    }

    /// The number, to be told to a program or kept in a file.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The ids of one kind that a thread has: users' or groups'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids<T> {
    /// Who started it.
    pub real: T,
    /// For whom it acts.
    pub effective: T,
    /// Whom it may act for again.
    pub saved: T,
    /// For whom it uses files: follows `effective` unless setfsuid(2) or setfsgid(2) say otherwise.
    pub file_system: T,
}

impl<T: Copy + PartialEq> Ids<T> {
    fn all(id: T) -> Self {
        Ids { real: id, effective: id, saved: id, file_system: id }
    }

    /// Whether real, effective and saved id are this one.
    fn are_all(&self, id: T) -> bool {
        [self.real, self.effective, self.saved] == [id; 3]
    }

    /// Whether real, effective or saved id is this one.
    fn have(&self, id: T) -> bool {
        [self.real, self.effective, self.saved].contains(&id)
    }
}

/// The capability sets of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What it may do now.
    pub effective: CapabilitySet,
    /// What it can allow itself.
    pub permitted: CapabilitySet,
    /// What it leaves to programs that ask for it in their file capabilities.
    pub inheritable: CapabilitySet,
    /// What execve(2) can give at most.
    pub bounding: CapabilitySet,
    /// What it leaves to all programs.
    pub ambient: CapabilitySet,
}

/// Who a thread acts for. Process 1 starts with [`Credentials::default`]: user 0 with all capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    users: Ids<Uid>,
    groups: Ids<Gid>,
    supplementary: Vec<u32>,
    capabilities: Capabilities,
    secure_bits: SecureBits,
    /// The id of the process whose thread has them.
    process: u32,
}

impl Default for Credentials {
    fn default() -> Self {
        Credentials {
            users: Ids::all(Uid::ROOT),
            groups: Ids::all(Gid(0)),
            supplementary: Vec::new(),
            capabilities: Capabilities {
                effective: CapabilitySet::ALL,
                permitted: CapabilitySet::ALL,
                inheritable: CapabilitySet::EMPTY,
                bounding: CapabilitySet::ALL,
                ambient: CapabilitySet::EMPTY,
            },
            secure_bits: SecureBits::empty(),
            process: 0,
        }
    }
}

/// The part of [`Credentials`] that decides what a thread may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    users: Ids<Uid>,
    groups: Ids<Gid>,
    permitted: CapabilitySet,
}

impl Rights {
    /// Whether a thread that has these now and had `old` before acts for somebody else or may do more.
    pub fn differ_from(&self, old: &Rights) -> bool {
        self.users.effective != old.users.effective
            || self.users.file_system != old.users.file_system
            || self.groups.effective != old.groups.effective
            || self.groups.file_system != old.groups.file_system
            || !self.permitted.is_subset(old.permitted)
    }
}

/// The part of [`Credentials`] that decides whom a thread may send signals to, as it was at some time (F_SETOWN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Effective and real.
    users: [Uid; 2],
    /// Whether it had CAP_KILL.
    kills: bool,
}

impl Sender {
    /// Whether it may send signals to `target`: see kill(2).
    pub fn may_signal(&self, target: &Credentials) -> bool {
        self.users.contains(&target.users.real) || self.users.contains(&target.users.saved) || self.kills
    }
}

/// Whose rights count when a thread looks into another one: see ptrace(2), "Ptrace access mode checking".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceAs {
    /// The file-system ids and the effective capabilities: for files of procfs.
    FileSystem,
    /// The real ids and the permitted capabilities: for system calls.
    Real,
}

impl Credentials {
    /// The same, for a thread of that process.
    pub fn for_process(&self, process: u32) -> Self {
        Credentials { process, ..self.clone() }
    }

    /// The id of the process whose thread has them.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Whether it has a capability: the one place that decides about privileges.
    #[inline(always)]
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.effective.contains(capability)
    }

    /// Its user ids.
    #[inline(always)]
    pub fn users(&self) -> &Ids<Uid> {
        &self.users
    }

    /// Its group ids.
    #[inline(always)]
    pub fn groups(&self) -> &Ids<Gid> {
        &self.groups
    }

    /// Its further groups: getgroups(2).
    pub fn supplementary(&self) -> &[u32] {
        &self.supplementary
    }

    /// Its capability sets.
    #[inline(always)]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// What is compared when they have changed.
    pub fn rights(&self) -> Rights {
        Rights { users: self.users, groups: self.groups, permitted: self.capabilities.permitted }
    }

    /// How user 0 is treated.
    pub fn secure_bits(&self) -> SecureBits {
        self.secure_bits
    }

    /// What decides whom it may send signals to.
    pub fn sender(&self) -> Sender {
        Sender { users: [self.users.effective, self.users.real], kills: self.has(Capability::Kill) }
    }

    /// Whether it may send signals to `target`: see kill(2). (SIGCONT within a session is the caller's to know.)
    pub fn may_signal(&self, target: &Credentials) -> bool {
        self.sender().may_signal(target)
    }

    /// The same for a process of which only the real user is left: a zombie.
    pub fn may_signal_user(&self, real: Uid) -> bool {
        [self.users.effective, self.users.real].contains(&real) || self.has(Capability::Kill)
    }

    /// Whether it may look into a process of another's that has `target`'s rights. `is_dumpable`: PR_SET_DUMPABLE.
    pub fn may_trace(&self, target: &Credentials, is_dumpable: bool, by: TraceAs) -> bool {
        let (user, group, own) = match by {
            TraceAs::FileSystem => (self.users.file_system, self.groups.file_system, self.capabilities.effective),
            TraceAs::Real => (self.users.real, self.groups.real, self.capabilities.permitted),
        };
        let is_same = target.users.are_all(user) && target.groups.are_all(group);
        let has_no_more = target.capabilities.permitted.is_subset(own);
        (is_same && is_dumpable && has_no_more) || self.has(Capability::SysPtrace)
    }

    /// Whether it may read and change the resource limits of another process: prlimit(2).
    pub fn may_limit(&self, target: &Credentials) -> bool {
        let is_same = target.users.are_all(self.users.real) && target.groups.are_all(self.groups.real);
        is_same || self.has(Capability::SysResource)
    }

    /// Whether it may change how another thread is scheduled: setpriority(2), sched(7).
    pub fn may_schedule(&self, target: &Credentials) -> bool {
        let own = self.users.effective;
        let is_own = own == target.users.real || own == target.users.effective;
        (is_own && self.includes(target)) || self.has(Capability::SysNice)
    }

    /// Whether it may change another thread's I/O priority: ioprio_set(2).
    pub fn may_schedule_io(&self, target: &Credentials) -> bool {
        let theirs = target.users.real;
        let is_own = theirs == self.users.effective || theirs == self.users.real;
        (is_own && self.includes(target)) || self.has(Capability::SysNice)
    }

    /// Whether it is permitted whatever `target` is.
    fn includes(&self, target: &Credentials) -> bool {
        target.capabilities.permitted.is_subset(self.capabilities.permitted)
    }

    /// Whether it may say in a message that it is this process, user and group (SCM_CREDENTIALS): see unix(7).
    pub fn may_claim(&self, is_own_pid: bool, user: Uid, group: Gid) -> bool {
        (is_own_pid || self.has(Capability::SysAdmin))
            && (self.users.have(user) || self.has(Capability::Setuid))
            && (self.groups.have(group) || self.has(Capability::Setgid))
    }

    /// Whether it may do without limits on the number of processes and open files that are meant for users.
    pub fn exceeds_process_limit(&self) -> bool {
        self.has(Capability::SysResource) || self.has(Capability::SysAdmin)
    }

    /// EPERM without the capability.
    ///
    /// # Errors
    /// EPERM.
    pub fn require(&self, capability: Capability) -> Result<()> {
        if self.has(capability) { Ok(()) } else { Err(Errno::EPERM) }
    }
}

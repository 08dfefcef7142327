//! [`Thread`]: what Linux calls a task.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use refs::{NoSuspend, SpinLock, StrongRc, TempRc, WaitList, WeakRc};
use tasks::TaskRef;

use super::blocked_call::BlockedCall;
use super::members::TicketCell;
use super::trace::Tracing;
use super::user_count::UserCount;
use super::{Process, Status, Usage};
use crate::credentials::{Credentials, Uid};
use crate::error::Result as Checked;
use crate::fs::{FileTable, FsContext};
use crate::memory::AddressSpace;
use crate::sched;
use crate::signal::ThreadSignals;

/// A thread's name, as PR_SET_NAME has it: up to 15 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name([u8; 16]);

/// A thread. Its object lives until it exits.
pub struct Thread {
    tid: AtomicU32,
    /// The process that it belongs to.
    pub process: WeakRc<Process>,
    /// Where it stands among the threads of its process.
    pub(super) in_process: TicketCell,
    /// Its share in the address space; taken out when it exits.
    pub space: SpinLock<Option<StrongRc<AddressSpace>>>,
    /// Its share in the descriptors.
    pub files: SpinLock<Option<StrongRc<FileTable>>>,
    /// Its share in root, working directory and umask.
    pub fs: SpinLock<Option<StrongRc<FsContext>>>,
    /// Who it acts for.
    pub credentials: SpinLock<Credentials>,
    /// For whom it counts, if it is not the first of its process.
    pub(super) count: UserCount,
    /// Its signals.
    pub signals: ThreadSignals,
    /// The task that runs it, once it has been spawned.
    task: SpinLock<Option<TaskRef>>,
    name: SpinLock<Name>,
    /// In which call it waits, if it does.
    pub blocked_call: BlockedCall,
    /// Where 0 is written and a futex woken when it exits (CLONE_CHILD_CLEARTID); 0: nowhere.
    pub clear_tid: AtomicUsize,
    /// Where its id is written when it starts (CLONE_CHILD_SETTID).
    pub(super) set_tid: AtomicUsize,
    /// Its list of robust futexes (set_robust_list); 0: none.
    pub robust_list: AtomicUsize,
    /// Its exit status as wait(2) tells it, if it exits by itself.
    pub(super) exit_status: AtomicU32,
    /// Whether it has let go of the address space that it had from its maker (CLONE_VFORK).
    pub(super) released: AtomicBool,
    /// Who waits for that.
    pub(super) release: WaitList,
    /// Whether its control group counts it as frozen. Changed with the process's membership locked.
    pub(super) is_frozen: AtomicBool,
    /// In which stop of its process it has last said that it stops.
    pub(super) stop_said: AtomicU64,
    /// The signal that it gets when its parent ends (PR_SET_PDEATHSIG); 0: none.
    pub parent_death_signal: AtomicU32,
    /// Until when it waits because its control group has more memory than it should (`memory.high`), in nanoseconds since boot; 0: it does not.
    pub(super) pays_until: AtomicU64,
    /// Page faults.
    pub minor_faults: AtomicU64,
    /// CPU time in the kernel, in nanoseconds, as far as it was sampled.
    system_time: AtomicU64,
    reported_time: ReportedTime,
    /// Set once and for ever by PR_SET_NO_NEW_PRIVS.
    pub no_new_privileges: AtomicBool,
    /// How late its sleeps may end.
    pub timer_slack: TimerSlack,
    /// What ioprio_set(2) was told: class and level.
    pub io_priority: AtomicU32,
    /// What personality(2) was told.
    pub personality: AtomicU32,
    /// Whether it is traced, and traces others: ptrace(2).
    pub tracing: Tracing,
}

/// The times in user mode and in the kernel that a thread or process was last said to have used. Which part of its time is which is an estimate that gets
/// better; neither part may ever shrink, and both together are exact.
#[derive(Default)]
pub(super) struct ReportedTime(SpinLock<(u64, u64)>);

impl ReportedTime {
    /// Divides the time that it ran, of which about so much was in the kernel: user mode, kernel.
    pub(super) fn divide(&self, ran: u64, system: u64, cx: &impl NoSuspend) -> (u64, u64) {
        let mut reported = self.0.lock(cx);
        *reported = divide(*reported, ran, system);
        *reported
    }
}

fn divide((user, before): (u64, u64), ran: u64, system: u64) -> (u64, u64) {
    // Another core may have asked a moment later and been first.
    let ran = ran.max(user + before);
    let system = system.clamp(before, ran - user);
    (ran - system, system)
}

/// What a new thread starts with.
pub(super) struct ThreadParts {
    pub tid: u32,
    pub process: WeakRc<Process>,
    pub space: StrongRc<AddressSpace>,
    pub files: StrongRc<FileTable>,
    pub fs: StrongRc<FsContext>,
    pub credentials: Credentials,
    pub count: UserCount,
    pub signals: ThreadSignals,
    pub name: Name,
}

/// How late a sleep may end unless PR_SET_TIMERSLACK says otherwise, in nanoseconds.
const TIMER_SLACK: u64 = 50_000;

/// How late sleeps may end, in nanoseconds: PR_SET_TIMERSLACK.
pub struct TimerSlack {
    current: AtomicU64,
    /// What it was when the thread was made.
    default: AtomicU64,
}

impl TimerSlack {
    fn new(slack: u64) -> Self {
        TimerSlack { current: AtomicU64::new(slack), default: AtomicU64::new(slack) }
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.current.load(Ordering::Relaxed)
    }

    /// Changes it; 0 is the default.
    pub fn set(&self, slack: u64) {
        let slack = if slack == 0 { self.default.load(Ordering::Relaxed) } else { slack };
        self.current.store(slack, Ordering::Relaxed);
    }

    /// A new thread takes what its maker has now for its default.
    pub(super) fn inherit(&self, parent: &TimerSlack) {
        self.default.store(parent.get(), Ordering::Relaxed);
        self.set(0);
    }
}

/// The I/O priority of a thread that has asked for none: best effort, in the middle (class 2, level 4).
const IO_PRIORITY: u32 = 2 << 13 | 4;

impl Thread {
    pub(super) fn new(parts: ThreadParts) -> Self {
        Thread {
            tid: AtomicU32::new(parts.tid),
            process: parts.process,
            in_process: TicketCell::default(),
            space: SpinLock::new(Some(parts.space)),
            files: SpinLock::new(Some(parts.files)),
            fs: SpinLock::new(Some(parts.fs)),
            credentials: SpinLock::new(parts.credentials),
            count: parts.count,
            signals: parts.signals,
            task: SpinLock::new(None),
            name: SpinLock::new(parts.name),
            blocked_call: BlockedCall::default(),
            clear_tid: AtomicUsize::new(0),
            set_tid: AtomicUsize::new(0),
            robust_list: AtomicUsize::new(0),
            exit_status: AtomicU32::new(0),
            released: AtomicBool::new(false),
            release: WaitList::new(),
            is_frozen: AtomicBool::new(false),
            stop_said: AtomicU64::new(0),
            parent_death_signal: AtomicU32::new(0),
            pays_until: AtomicU64::new(0),
            minor_faults: AtomicU64::new(0),
            system_time: AtomicU64::new(0),
            reported_time: ReportedTime::default(),
            no_new_privileges: AtomicBool::new(false),
            timer_slack: TimerSlack::new(TIMER_SLACK),
            io_priority: AtomicU32::new(IO_PRIORITY),
            personality: AtomicU32::new(0),
            tracing: Tracing::default(),
        }
    }

    /// Its id.
    #[inline(always)]
    pub fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// It takes the place of the first thread of its process (execve(2) by another one).
    pub(super) fn set_tid(&self, tid: u32) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// The process that it belongs to.
    pub fn process<'cx>(&self, cx: &'cx impl NoSuspend) -> Result<TempRc<'cx, Process>, refs::Gone> {
        self.process.upgrade(cx)
    }

    /// The task that runs it.
    pub fn task(&self, cx: &impl NoSuspend) -> Option<TaskRef> {
        *self.task.lock(cx)
    }

    pub(super) fn set_task(&self, task: TaskRef, cx: &impl NoSuspend) {
        *self.task.lock(cx) = Some(task);
    }

    /// Has it look at its signals: ends whatever wait it is in, and has it leave user code, which may run where an interrupt came in between or on another core.
    pub fn wake(&self, cx: &impl NoSuspend) {
        if let Some(task) = self.task(cx) {
            wake(task, cx);
        }
    }

    /// As [`wake`](Self::wake), for a thread that is to end.
    pub fn wake_to_end(&self, cx: &impl NoSuspend) {
        if let Some(task) = self.task(cx) {
            sched::work_at_ends(task);
            wake(task, cx);
        }
    }

    /// A resource limit of its process (soft, hard): see getrlimit(2).
    pub fn limit(&self, resource: u32, cx: &Cx) -> (u64, u64) {
        match self.process(cx).map(|process| process.limits.lock(cx).get(resource)) {
            Ok(Ok(limit)) => (limit.soft, limit.hard),
            _ => (u64::MAX, u64::MAX),
        }
    }

    /// Changes for whom it acts. Who becomes somebody else cannot be looked into any more (PR_SET_DUMPABLE), and its parent's end is no
    /// concern of it (PR_SET_PDEATHSIG).
    ///
    /// # Errors
    /// Those of `change`.
    pub fn change_credentials<R>(
        &self,
        cx: &impl NoSuspend,
        change: impl FnOnce(&mut Credentials) -> Checked<R>,
    ) -> Checked<R> {
        let mut credentials = self.credentials.lock(cx);
        let old = credentials.rights();
        let result = change(&mut credentials)?;
        let is_other = credentials.rights().differ_from(&old);
        let real = credentials.users().real;
        drop(credentials);
        self.count_for(real, cx);
        if is_other {
            self.parent_death_signal.store(0, Ordering::Relaxed);
            if let Ok(process) = self.process(cx) {
                process.dumpable.store(0, Ordering::Relaxed);
            }
        }
        Ok(result)
    }

    /// It counts for this user from now on: see [`super::user_count`].
    fn count_for(&self, user: Uid, cx: &impl NoSuspend) {
        match self.process(cx) {
            Ok(process) if process.pid == self.tid() => process.count.move_to(user),
            _ => self.count.move_to(user),
        }
    }

    /// It takes the place of the first thread of its process, which counts from now on for this one's user instead.
    pub(super) fn count_as_first(&self, process: &Process, cx: &impl NoSuspend) {
        let user = self.credentials.lock(cx).users().real;
        process.count.move_to(user);
        self.count.end();
    }

    /// Its name.
    pub fn name(&self, cx: &impl NoSuspend) -> Name {
        *self.name.lock(cx)
    }

    /// Changes its name (PR_SET_NAME, execve(2)).
    pub fn set_name(&self, name: Name, cx: &impl NoSuspend) {
        *self.name.lock(cx) = name;
    }

    /// What it has used so far.
    pub fn usage(&self, cx: &impl NoSuspend) -> Usage {
        let (user, system) = self.reported_time.divide(self.cpu_time(cx), self.system_time.load(Ordering::Relaxed), cx);
        Usage { user, system, ..self.counts(cx) }
    }

    /// What it has used so far but for time.
    pub(super) fn counts(&self, cx: &impl NoSuspend) -> Usage {
        self.task(cx).map_or(Usage::default(), |task| self.counts_of(task))
    }

    /// As [`counts`](Self::counts), by who knows the task that runs it.
    #[inline(always)]
    pub(super) fn counts_of(&self, task: TaskRef) -> Usage {
        let (voluntary, involuntary) = sched::switches(task);
        Usage {
            minor_faults: self.minor_faults.load(Ordering::Relaxed),
            voluntary_switches: voluntary.into(),
            involuntary_switches: involuntary.into(),
            ..Usage::default()
        }
    }

    /// How long it has run, in nanoseconds.
    pub fn cpu_time(&self, cx: &impl NoSuspend) -> u64 {
        self.task(cx).map_or(0, sched::cpu_time)
    }

    /// A sample says that it has spent so many nanoseconds in the kernel.
    pub fn add_system_time(&self, nanoseconds: u64, cx: &Cx) {
        self.system_time.fetch_add(nanoseconds, Ordering::Relaxed);
        if let Ok(process) = self.process(cx) {
            process.system_time.fetch_add(nanoseconds, Ordering::Relaxed);
        }
        sched::add_system_time(nanoseconds, cx);
    }

    /// With which status it ends when it exits by itself.
    pub fn set_exit_status(&self, status: Status) {
        self.exit_status.store(status.0, Ordering::Relaxed);
    }

    /// With which status it ends when it exits by itself.
    pub(super) fn own_exit_status(&self) -> Status {
        Status(self.exit_status.load(Ordering::Relaxed))
    }

    /// Lets the one go on that waits until this thread has another address space or none (CLONE_VFORK). Called at exit and by execve(2).
    pub fn release_vfork(&self) {
        self.released.store(true, Ordering::Release);
        self.release.wake_all();
    }
}

fn wake<C: NoSuspend>(task: TaskRef, _cx: &C) {
    if !task.interrupt() && (C::IS_INTERRUPT || frame::cpu::count() > 1) {
        sched::leave_user_code(task);
    }
}

impl Name {
    /// The first 15 bytes, up to a zero.
    pub fn new(name: &[u8]) -> Self {
        let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len()).min(15);
        let mut bytes = [0; 16];
        bytes[..len].copy_from_slice(&name[..len]);
        Name(bytes)
    }

    /// The bytes without the zeros behind them.
    pub fn bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        &self.0[..len]
    }

    /// With the zeros behind it, as PR_GET_NAME wants it.
    pub fn padded(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|&byte| {
            let shown = if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' };
            fmt::Write::write_char(f, shown)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_part_of_the_time_shrinks_and_both_are_exact() {
        assert_eq!(divide((0, 0), 100, 0), (100, 0));
        // A sample says that most of it was in the kernel: only what came since can be.
        assert_eq!(divide((100, 0), 150, 140), (100, 50));
        assert_eq!(divide((100, 50), 200, 40), (150, 50));
        assert_eq!(divide((150, 50), 300, 1000), (150, 150));
    }
}

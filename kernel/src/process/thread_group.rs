//! [`Process`]: a thread group, from its making until its parent has waited for it.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use linux_raw_sys::general as abi;
use refs::{NoSuspend, SpinLock, StrongRc, TempRc, UnseenRc, WaitList, Waker, WeakRc};

use super::login::Login;
use super::members::{CHUNK, Cursor, MOVED_AT_ONCE, Members, TicketCell, TicketSet};
use super::membership::{Membership, NewMember};
use super::semaphores::Undos;
use super::stop::{self, Job};
use super::thread::ReportedTime;
use super::user_count::UserCount;
use super::{JobState, Limits, Name, PROCESSES, Thread, Usage, freezer, trace};
use crate::error::Result;
use crate::sched::Account;
use crate::signal::{Action, Actions, Pending, Signal, Work};
use crate::time::posix_timers::ProcessTimers;

/// A process (a thread group).
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's id, which leads to the parent: one that has ended has no children.
    parent_pid: AtomicU32,
    group: AtomicU32,
    session: AtomicU32,
    /// What it does on each signal. Shared by CLONE_SIGHAND.
    actions: SpinLock<UnseenRc<Actions>>,
    /// Signals for whichever of its threads comes first.
    pub pending: Pending,
    /// Woken when a signal is sent to the process or to one of its threads, blocked or not: for signalfd(2).
    pub signal_arrived: WaitList,
    children: SpinLock<Children>,
    /// Where it stands among its parent's children. Changed with the parent's list locked.
    as_child: TicketCell,
    threads: SpinLock<Members<Thread>>,
    /// How many threads have not let go of all that they had: those in `threads`, and those that have left it and are on their way.
    unfinished: AtomicUsize,
    /// Woken when only one of those is left: for execve(2).
    alone: WaitList,
    /// A thread of it executes a program: all others end, those that they make too.
    is_executing: AtomicBool,
    /// Which of its threads were told that it ends,
    told_to_end: SpinLock<Cursor>,
    /// and whether all were.
    are_told_to_end: AtomicBool,
    /// Which of its threads were woken because it ends,
    woken_to_end: SpinLock<Cursor>,
    /// and whether all were. Those that it gets later have not begun to wait.
    are_woken_to_end: AtomicBool,
    /// Where it stands in its process group. Changed with the groups locked.
    pub(super) in_group: TicketCell,
    /// Whether its group counts it among those that are stopped. Changed with the groups locked.
    pub(super) counts_as_stopped: AtomicBool,
    /// Whether it is in another control group than the root. Changed with `membership` locked, and not any more once it has no threads.
    pub(super) is_in_group: AtomicBool,
    /// In which control group it is.
    pub(super) membership: SpinLock<Membership>,
    /// Whether a thread of it wants a signal when its parent ends (PR_SET_PDEATHSIG), or ever wanted one.
    pub has_parent_death_signal: AtomicBool,
    /// Woken when a child changes: for wait(2).
    pub child_changed: WaitList,
    /// Woken when it has become a zombie: for pidfds.
    pub ended: WaitList,
    pub(super) job: SpinLock<Job>,
    /// Its interval timers and POSIX timers.
    pub timers: ProcessTimers,
    /// The sets of semaphores to which its end gives something back.
    pub(super) undos: Undos,
    /// Resource limits.
    pub limits: SpinLock<Limits>,
    /// The signal that its parent gets when it ends; 0: none.
    exit_signal: AtomicU32,
    /// `EXITING | status` once its end has begun.
    exit: AtomicU64,
    /// How long its threads had run then, if it is in a control group.
    ran_before_exit: AtomicU64,
    life: AtomicU32,
    /// With which status its first thread has exited by itself.
    pub(super) leader_status: AtomicU32,
    /// The real user of its last thread, once that has exited.
    pub(super) last_uid: AtomicU32,
    /// The name of its last thread, once that has exited.
    pub(super) last_name: SpinLock<Name>,
    /// What its threads have used of the processor, those that have exited too.
    pub(super) account: Account,
    /// For whom its first thread counts, until it is waited for.
    pub(super) count: UserCount,
    /// How much of that was in the kernel, in nanoseconds, as far as it was sampled.
    pub(super) system_time: AtomicU64,
    reported_time: ReportedTime,
    /// What its threads that have exited had used but for time.
    pub(super) usage: SpinLock<Usage>,
    /// What its children had used that it has waited for.
    pub(super) children_usage: SpinLock<Usage>,
    /// When it was made, in nanoseconds since boot.
    pub started: u64,
    /// Whether it takes in the orphans among its descendants (PR_SET_CHILD_SUBREAPER).
    pub is_subreaper: AtomicBool,
    /// PR_SET_DUMPABLE.
    pub dumpable: AtomicU32,
    /// What of its memory core files have: `/proc/PID/coredump_filter`.
    pub core_filter: AtomicU32,
    /// For which barriers it has registered: the commands of membarrier(2) that it used for that.
    pub barriers: AtomicU32,
    /// Whether it has executed a program since fork: its parent may not move it to another group any more.
    pub has_executed: AtomicBool,
    /// What the out-of-memory killer adds to its badness.
    pub oom_score_adjust: AtomicI32,
    /// Who it works for.
    pub login: Login,
    /// Whom its threads trace, and which of them are traced: ptrace(2).
    pub tracing: trace::OfProcess,
}

/// So many children are given away before others may have their turn.
pub(super) const CHILDREN_AT_A_TIME: usize = MOVED_AT_ONCE;

/// How many threads of a process that ends know it at once.
const TOLD_AT_FIRST: usize = 2048;
/// So many threads of a process that ends are woken, and then as many by each that has ended, until all are.
const WOKEN_AT_A_TIME: usize = 8;

/// A child that was given away, for whom that is not all that must be done.
pub(super) struct Notable {
    pub(super) child: WeakRc<Process>,
    /// It had ended before: its new parent does not know.
    pub(super) was_zombie: bool,
}

/// The children of a process that were not waited for, zombies too, in the order in which they were made or taken in.
///
/// As long as they are locked none gets another parent, and wait(2) sees none: so what a child tells its parent (that there is something to wait for, and a signal) is one thing.
#[derive(Default)]
pub(super) struct Children {
    all: Members<Process>,
    /// Those of which wait(2) may have something to tell.
    changed: TicketSet,
    /// The process has ended: it gets none any more.
    are_closed: bool,
}

impl Children {
    /// wait(2) may have something to tell of this child.
    pub(super) fn has_changed(&mut self, child: &Process) {
        self.changed.insert(child.as_child.get());
    }

    /// wait(2) has nothing to tell of this child any more.
    pub(super) fn is_reported(&mut self, child: &Process) {
        self.changed.remove(child.as_child.get());
    }

    pub(super) fn leave(&mut self, child: &Process) {
        let ticket = child.as_child.get();
        self.all.leave(ticket);
        self.changed.remove(ticket);
    }
}

#[cold]
#[inline(never)]
fn note(
    notable: &mut [Option<Notable>; CHILDREN_AT_A_TIME],
    count: &mut usize,
    child: &Process,
    name: WeakRc<Process>,
) {
    if let Some(place) = notable.get_mut(*count) {
        *place = Some(Notable { child: name, was_zombie: child.life() == Life::Zombie });
        *count += 1;
    }
}

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It has threads.
    Alive,
    /// All of its threads have exited; its parent has not waited for it yet.
    Zombie,
    /// It was waited for.
    Reaped,
}

/// An exit status in the encoding of wait(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// exit(2) with that code.
    pub fn exited(code: i32) -> Self {
        Status((code as u32 & 0xff) << 8)
    }

    /// The signal that ended the process.
    pub fn signal(self) -> Option<u32> {
        (self.0 & 0x7f != 0).then_some(self.0 & 0x7f)
    }

    /// The code of exit(2).
    pub fn code(self) -> u32 {
        self.0 >> 8 & 0xff
    }

    /// The same as `si_code` (`CLD_*`) and `si_status` have it.
    pub fn si_code_and_status(self) -> (u32, u32) {
        match self.signal() {
            Some(signal) if self.0 & CORE_DUMPED != 0 => (abi::CLD_DUMPED, signal),
            Some(signal) => (abi::CLD_KILLED, signal),
            None => (abi::CLD_EXITED, self.code()),
        }
    }
}

const EXITING: u64 = 1 << 32;
/// Beside [`EXITING`]: one of its threads writes a core file, and ends after that.
const DUMPING: u64 = 1 << 33;
/// In a status as wait(2) tells it: there is a core file.
const CORE_DUMPED: u32 = 0x80;

/// What a new process starts with.
pub(super) struct ProcessParts {
    pub account: Account,
    pub count: UserCount,
    pub pid: u32,
    pub parent_pid: u32,
    pub group: u32,
    pub session: u32,
    pub actions: StrongRc<Actions>,
    pub limits: Limits,
    pub exit_signal: u32,
    pub control_group: NewMember,
}

impl Process {
    pub(super) fn new(parts: ProcessParts) -> Self {
        Process {
            pid: parts.pid,
            parent_pid: AtomicU32::new(parts.parent_pid),
            group: AtomicU32::new(parts.group),
            session: AtomicU32::new(parts.session),
            actions: SpinLock::new(parts.actions.into()),
            pending: Pending::default(),
            signal_arrived: WaitList::new(),
            children: SpinLock::default(),
            as_child: TicketCell::default(),
            threads: SpinLock::default(),
            unfinished: AtomicUsize::new(0),
            alone: WaitList::new(),
            is_executing: AtomicBool::new(false),
            told_to_end: SpinLock::default(),
            are_told_to_end: AtomicBool::new(false),
            woken_to_end: SpinLock::default(),
            are_woken_to_end: AtomicBool::new(false),
            in_group: TicketCell::default(),
            counts_as_stopped: AtomicBool::new(false),
            is_in_group: AtomicBool::new(parts.control_group.is_in_group()),
            membership: SpinLock::new(Membership::new(parts.control_group)),
            has_parent_death_signal: AtomicBool::new(false),
            child_changed: WaitList::new(),
            ended: WaitList::new(),
            job: SpinLock::new(Job::default()),
            timers: ProcessTimers::default(),
            undos: Undos::default(),
            limits: SpinLock::new(parts.limits),
            exit_signal: AtomicU32::new(parts.exit_signal),
            exit: AtomicU64::new(0),
            ran_before_exit: AtomicU64::new(0),
            life: AtomicU32::new(Life::Alive as u32),
            leader_status: AtomicU32::new(0),
            last_uid: AtomicU32::new(0),
            last_name: SpinLock::new(Name::default()),
            account: parts.account,
            count: parts.count,
            system_time: AtomicU64::new(0),
            reported_time: ReportedTime::default(),
            usage: SpinLock::new(Usage::default()),
            children_usage: SpinLock::new(Usage::default()),
            started: frame::time::now(),
            is_subreaper: AtomicBool::new(false),
            dumpable: AtomicU32::new(1),
            core_filter: AtomicU32::new(super::core_dump::CoreFilter::default().bits()),
            barriers: AtomicU32::new(0),
            has_executed: AtomicBool::new(false),
            oom_score_adjust: AtomicI32::new(0),
            login: Login::none(),
            tracing: trace::OfProcess::default(),
        }
    }

    /// The id of its parent; 0 for the first process.
    #[inline(always)]
    pub fn parent_pid(&self) -> u32 {
        self.parent_pid.load(Ordering::Relaxed)
    }

    /// Its parent.
    pub fn parent<'cx>(&self, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Process>> {
        loop {
            let pid = self.parent_pid();
            let parent = PROCESSES.get(pid, cx);
            // One that has gone has given its children away before.
            if parent.is_some() || self.parent_pid() == pid {
                return parent;
            }
        }
    }

    /// Runs `f` on its parent and that one's children, which are locked; `None` if it has no parent.
    pub(super) fn with_parent<'cx, R>(
        &self,
        cx: &'cx impl NoSuspend,
        f: impl FnOnce(&TempRc<'cx, Process>, &mut Children) -> R,
    ) -> Option<R> {
        self.with_parent_as_known(self.parent(cx), cx, f)
    }

    /// As [`with_parent`](Self::with_parent), by who has looked for its parent, which may be another meanwhile.
    pub(super) fn with_parent_as_known<'cx, R>(
        &self,
        mut known: Option<TempRc<'cx, Process>>,
        cx: &'cx impl NoSuspend,
        f: impl FnOnce(&TempRc<'cx, Process>, &mut Children) -> R,
    ) -> Option<R> {
        loop {
            let parent = known?;
            let mut children = parent.children.lock(cx);
            if self.parent_pid() == parent.pid {
                return Some(f(&parent, &mut children));
            }
            drop(children);
            known = self.parent(cx);
        }
    }

    /// Its process group.
    #[inline(always)]
    pub fn group(&self) -> u32 {
        self.group.load(Ordering::Relaxed)
    }

    /// Its session.
    #[inline(always)]
    pub fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    pub(super) fn set_group_and_session(&self, group: u32, session: u32) {
        self.group.store(group, Ordering::Relaxed);
        self.session.store(session, Ordering::Relaxed);
    }

    /// If it has no children it gets none any more, and that is true.
    pub(super) fn close_children(&self, cx: &impl NoSuspend) -> bool {
        let mut children = self.children.lock(cx);
        children.are_closed = children.all.is_empty();
        children.are_closed
    }

    /// Makes it the parent of a new process; false if it gets no children any more.
    pub(super) fn add_child(&self, child: &TempRc<'_, Process>, cx: &impl NoSuspend) -> bool {
        let mut children = self.children.lock(cx);
        if children.are_closed {
            return false;
        }
        child.parent_pid.store(self.pid, Ordering::Relaxed);
        child.as_child.set(children.all.enter(child.downgrade()));
        true
    }

    /// Gives some of its oldest children to another process. In `notable` come those for whom that is not all that must be done. Children in the group `calm` are not notable for that. How many it gave, and how many are notable; `None` if the other gets no children any more.
    pub(super) fn give_children(
        &self,
        to: &Process,
        calm: u32,
        notable: &mut [Option<Notable>; CHILDREN_AT_A_TIME],
        cx: &impl NoSuspend,
    ) -> Option<(usize, usize)> {
        let (pid, group, session) = (to.pid, self.group(), self.session());
        let mut from = self.children.lock(cx);
        // Those of the one that ends first: who takes them in is above it, or of another branch that lives on.
        let mut taken_in = to.children.lock_after(&from, cx);
        let (from, taken_in) = (&mut *from, &mut *taken_in);
        if taken_in.are_closed {
            return None;
        }
        let have_changed = !from.changed.is_empty();
        let mut count = 0;
        let given = from.all.move_first(&mut taken_in.all, |before, now, name| {
            // Whoever is among them lives: a child is taken out before it is destroyed.
            let Ok(child) = name.upgrade(cx) else { return };
            child.parent_pid.store(pid, Ordering::Relaxed);
            child.as_child.set(now);
            child.reset_exit_signal();
            if have_changed {
                from.changed.hand_over(before, &mut taken_in.changed, now);
            }
            let own = child.group();
            let is_calm = own == calm || own == group || child.session() != session;
            if !is_calm || child.has_parent_death_signal.load(Ordering::Relaxed) || child.life() != Life::Alive {
                note(notable, &mut count, &child, name);
            }
        });
        Some((given, count))
    }

    /// Runs `f` on its children, which are locked.
    pub(super) fn with_children<R>(&self, cx: &impl NoSuspend, f: impl FnOnce(&mut Children) -> R) -> R {
        f(&mut self.children.lock(cx))
    }

    /// Calls `f` on the child with that id, with the children locked.
    pub(super) fn find_child<'cx, R>(
        &self,
        pid: u32,
        cx: &'cx impl NoSuspend,
        f: impl FnOnce(TempRc<'cx, Process>) -> R,
    ) -> Option<R> {
        let _children = self.children.lock(cx);
        PROCESSES.get(pid, cx).filter(|child| child.parent_pid() == self.pid).map(f)
    }

    /// Calls `f` on each child of which there may be something to tell, the oldest first, until it says something; if it says nothing, whether `is_meant` holds for any child. The
    /// children are locked.
    pub(super) fn find_changed_child<'cx, R>(
        &self,
        cx: &'cx impl NoSuspend,
        mut f: impl FnMut(TempRc<'cx, Process>) -> Option<R>,
        is_meant: impl Fn(&Process) -> bool,
    ) -> core::result::Result<R, bool> {
        let children = self.children.lock(cx);
        if !children.changed.is_empty()
            && let Some(found) =
                children.changed.iter().find_map(|ticket| f(children.all.get(ticket)?.upgrade(cx).ok()?))
        {
            return Ok(found);
        }
        let holds = |child: WeakRc<Process>| child.upgrade(cx).is_ok_and(|child| is_meant(&child));
        // Usually any child will do.
        Err(children.all.first().is_some_and(holds) || children.all.any(holds))
    }

    /// Its threads that have not exited, the oldest first. (No list of them: they may be many, and memory short.)
    pub fn threads<'a>(&'a self, cx: &'a impl NoSuspend) -> impl Iterator<Item = WeakRc<Thread>> + 'a {
        let mut cursor = Cursor::default();
        core::iter::from_fn(move || self.threads.lock(cx).next(&mut cursor))
    }

    /// The next of a walk through its threads.
    pub fn next_thread(&self, last: &mut Cursor, cx: &impl NoSuspend) -> Option<WeakRc<Thread>> {
        self.threads.lock(cx).next(last)
    }

    /// Runs `f` on each of its threads, quickly: `f` does nothing with the list of threads.
    pub fn each_thread(&self, cx: &impl NoSuspend, mut f: impl FnMut(&Thread)) {
        self.threads.lock(cx).any(|thread| {
            if let Ok(thread) = thread.upgrade(cx) {
                f(&thread);
            }
            false
        });
    }

    /// Tells and wakes its threads, which have to end. Where they are very many that is not all: those that end go on with it.
    pub fn begin_to_end_threads(&self, cx: &impl NoSuspend) {
        let threads = self.threads.lock(cx);
        if threads.len() > 1 {
            drop(threads);
            self.tell_ending(TOLD_AT_FIRST, cx);
            return self.wake_ending(cx);
        }
        let only = threads.first();
        self.are_told_to_end.store(true, Ordering::Release);
        self.are_woken_to_end.store(true, Ordering::Release);
        drop(threads);
        if let Some(Ok(only)) = only.map(|only| only.upgrade(cx)) {
            only.signals.add_work(Work::EXIT);
            only.wake_to_end(cx);
        }
    }

    /// Tells up to so many more of its threads that they have to end; whether all know it. Those that it gets later know it from the beginning.
    pub fn tell_ending(&self, count: usize, cx: &impl NoSuspend) -> bool {
        if self.are_told_to_end.load(Ordering::Acquire) {
            return true;
        }
        let tell = |thread: WeakRc<Thread>| {
            if let Ok(thread) = thread.upgrade(cx) {
                thread.signals.add_work(Work::EXIT);
            }
            false
        };
        let threads = self.threads.lock(cx);
        if threads.len() <= count {
            threads.any(tell);
            self.are_told_to_end.store(true, Ordering::Release);
            return true;
        }
        let mut told = self.told_to_end.lock(cx);
        let mut left = count;
        while left > 0 {
            match threads.some_next(&mut told, CHUNK, tell) {
                0 => {
                    self.are_told_to_end.store(true, Ordering::Release);
                    return true;
                }
                count => left = left.saturating_sub(count),
            }
        }
        false
    }

    /// Wakes some more of its threads, which have to end. Those that have ended wake others: to wake many takes long.
    #[inline(always)]
    pub fn wake_ending(&self, cx: &impl NoSuspend) {
        if !self.are_woken_to_end.load(Ordering::Acquire) {
            self.wake_some_ending(cx);
        }
    }

    #[inline(never)]
    fn wake_some_ending(&self, cx: &impl NoSuspend) {
        let mut next = [None; WOKEN_AT_A_TIME];
        let mut count = 0;
        let find = |thread| {
            next[count] = Some(thread);
            count += 1;
        };
        {
            let threads = self.threads.lock(cx);
            if threads.some_next(&mut self.woken_to_end.lock(cx), WOKEN_AT_A_TIME, find) == 0 {
                self.are_woken_to_end.store(true, Ordering::Release);
            }
        }
        for thread in next[..count].iter().flatten() {
            if let Ok(thread) = thread.upgrade(cx) {
                thread.wake_to_end(cx);
            }
        }
    }

    /// How many threads it has.
    pub fn thread_count(&self, cx: &impl NoSuspend) -> usize {
        self.threads.lock(cx).len()
    }

    /// The oldest of its threads; none if it is a zombie.
    pub fn first_thread<'cx>(&self, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Thread>> {
        let first = self.threads.lock(cx).first();
        first?.upgrade(cx).ok()
    }

    /// Makes room for one more thread.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn reserve_thread(&self, cx: &impl NoSuspend) -> Result<()> {
        self.threads.lock(cx).reserve_one()
    }

    /// Makes room for one more child.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn reserve_child(&self, cx: &impl NoSuspend) -> Result<()> {
        self.children.lock(cx).all.reserve_one()
    }

    /// Enters a thread, which has not run yet. What has begun without it (the end of the process, the execution of a program, a stop, a signal) is for it, too.
    pub(super) fn add_thread(&self, thread: &TempRc<'_, Thread>, cx: &impl NoSuspend) {
        self.unfinished.fetch_add(1, Ordering::AcqRel);
        thread.in_process.set(self.threads.lock(cx).enter(thread.downgrade()));
        if self.is_exiting() || self.is_executing() {
            thread.signals.add_work(Work::EXIT);
        }
        stop::one_joins(self, thread, cx);
        freezer::one_joins(self, thread, cx);
        thread.signals.look_again(&self.pending);
    }

    /// Whether any of its threads has not let go of all that it had.
    pub(super) fn has_threads(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) > 0
    }

    /// A thread has let go of all that it had; whether it was the last one.
    pub(super) fn thread_is_finished(&self) -> bool {
        let left = self.unfinished.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == 1 {
            self.alone.wake_all();
        }
        left == 0
    }

    /// How many threads have not let go of all that they had.
    pub(super) fn unfinished_threads(&self) -> usize {
        self.unfinished.load(Ordering::Acquire)
    }

    /// Whether the calling thread is the only one, and no other holds anything.
    pub(super) fn has_one_thread(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 1
    }

    /// Enters a waker that is woken when only one thread is left.
    pub(super) fn watch_others(&self, waker: Waker, cx: &impl NoSuspend) {
        self.alone.register(waker, cx);
    }

    /// Whether one of its threads, which is in the kernel until the others have exited, executes a program.
    pub fn is_executing(&self) -> bool {
        self.is_executing.load(Ordering::Acquire)
    }

    /// A thread of it begins to execute a program, for which all others end; false if another does.
    pub(super) fn begin_execution(&self) -> bool {
        self.is_executing.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// That thread is alone, or ends itself.
    pub(super) fn end_execution(&self) {
        self.is_executing.store(false, Ordering::Release);
    }

    /// Takes a thread out that exits; how many are left. Of the last one its name and user stay.
    pub(super) fn remove_thread(&self, thread: &Thread, cx: &impl NoSuspend) -> usize {
        let left = {
            let mut threads = self.threads.lock(cx);
            if threads.len() == 1 {
                *self.last_name.lock(cx) = thread.name(cx);
                self.last_uid.store(thread.credentials.lock(cx).users().real.number(), Ordering::Relaxed);
            }
            threads.leave(thread.in_process.get());
            threads.len()
        };
        if left > 0 {
            stop::one_leaves(self, thread, cx);
        }
        left
    }

    /// What it does on a signal.
    pub fn action(&self, signal: Signal, cx: &impl NoSuspend) -> Action {
        let actions = self.actions.lock(cx);
        actions.get(cx).get(signal, cx)
    }

    /// Changes what it does on a signal; gives back what it did before.
    pub fn set_action(&self, signal: Signal, action: Action, cx: &impl NoSuspend) -> Action {
        let actions = self.actions.lock(cx);
        actions.get(cx).set(signal, action, cx)
    }

    /// Runs `f` on all of its actions.
    pub fn with_actions<R>(&self, cx: &impl NoSuspend, f: impl FnOnce(&StrongRc<Actions>) -> R) -> R {
        f(&self.actions.lock(cx))
    }

    /// Its actions become its own and what execve(2) leaves of them.
    pub fn reset_actions(&self, cx: &impl NoSuspend) {
        let mut actions = self.actions.lock(cx);
        if actions.owners() > 1 {
            let own = actions.get(cx).duplicate(cx);
            *actions = StrongRc::new(own).into();
        }
        actions.get(cx).reset(cx);
    }

    /// Begins its end with a status as wait(2) tells it; false if it has begun already.
    pub fn begin_exit(&self, status: u32) -> bool {
        let exiting = EXITING | u64::from(status);
        let is_first = self.exit.compare_exchange(0, exiting, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_first && self.is_in_group.load(Ordering::Acquire) {
            self.ran_before_exit.store(self.cpu_time(), Ordering::Relaxed);
        }
        is_first
    }

    /// For how long its threads have run since its end has begun; all of them have ended.
    pub(super) fn time_since_exit(&self) -> u64 {
        self.account.time_at_end().saturating_sub(self.ran_before_exit.load(Ordering::Relaxed))
    }

    /// As [`begin_exit`](Self::begin_exit), by a signal, after the calling thread has written a core file.
    pub(super) fn begin_dump(&self, signal: Signal) -> bool {
        let dumping = EXITING | DUMPING | u64::from(signal.number());
        self.exit.compare_exchange(0, dumping, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The core file is written, or is not to be.
    pub(super) fn end_dump(&self, is_dumped: bool) {
        if is_dumped {
            self.exit.fetch_or(CORE_DUMPED.into(), Ordering::AcqRel);
        }
        self.exit.fetch_and(!DUMPING, Ordering::AcqRel);
    }

    /// Whether one of its threads writes a core file.
    pub fn is_dumping(&self) -> bool {
        self.exit.load(Ordering::Acquire) & DUMPING != 0
    }

    /// Whether its end has begun.
    #[inline]
    pub fn is_exiting(&self) -> bool {
        self.exit.load(Ordering::Acquire) != 0
    }

    /// With which status it ends or ended.
    pub fn exit_status(&self) -> Status {
        Status(self.exit.load(Ordering::Acquire) as u32)
    }

    /// How far it is.
    pub fn life(&self) -> Life {
        match self.life.load(Ordering::Acquire) {
            0 => Life::Alive,
            1 => Life::Zombie,
            _ => Life::Reaped,
        }
    }

    pub(super) fn set_life(&self, life: Life) {
        self.life.store(life as u32, Ordering::Release);
    }

    /// From zombie to reaped; false if somebody else was first.
    pub(super) fn claim_reaping(&self) -> bool {
        let (zombie, reaped) = (Life::Zombie as u32, Life::Reaped as u32);
        self.life.compare_exchange(zombie, reaped, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The signal that its parent gets when it ends.
    pub fn exit_signal(&self) -> Option<Signal> {
        Signal::new(self.exit_signal.load(Ordering::Relaxed) as i32).ok()
    }

    /// From now on its parent gets SIGCHLD when it ends: after execve(2), or with a new parent.
    pub fn reset_exit_signal(&self) {
        self.exit_signal.store(Signal::CHLD.number(), Ordering::Relaxed);
    }

    /// Whether job control has stopped it.
    pub fn is_stopped(&self, cx: &impl NoSuspend) -> bool {
        matches!(self.job.lock(cx).state, JobState::Stopped(_) | JobState::Stopping { .. })
    }

    /// Whether all of its threads have noticed that.
    pub(super) fn has_stopped(&self, cx: &impl NoSuspend) -> bool {
        matches!(self.job.lock(cx).state, JobState::Stopped(_))
    }

    /// What job control has done to it.
    pub fn job_state(&self, cx: &impl NoSuspend) -> JobState {
        self.job.lock(cx).state
    }

    /// Its name: that of its first thread, or of its last one once it has none.
    pub fn name(&self, cx: &impl NoSuspend) -> Name {
        match self.first_thread(cx) {
            Some(thread) => thread.name(cx),
            None => *self.last_name.lock(cx),
        }
    }

    /// Its real user.
    pub fn uid(&self, cx: &impl NoSuspend) -> u32 {
        match self.first_thread(cx) {
            Some(thread) => thread.credentials.lock(cx).users().real.number(),
            None => self.last_uid.load(Ordering::Relaxed),
        }
    }

    /// What all of its threads have used, those that have exited too.
    pub fn usage(&self, cx: &impl NoSuspend) -> Usage {
        let mut usage = *self.usage.lock(cx);
        self.each_thread(cx, |thread| usage.add(&thread.counts(cx)));
        (usage.user, usage.system) = self.times(cx);
        usage
    }

    /// The time of all of its threads in user mode and in the kernel, in nanoseconds, those that have exited too. It costs the same however many they are.
    pub fn times(&self, cx: &impl NoSuspend) -> (u64, u64) {
        self.reported_time.divide(self.account.time(), self.system_time.load(Ordering::Relaxed), cx)
    }

    /// As [`times`](Self::times), where all of its threads have ended.
    pub(super) fn times_at_end(&self, cx: &impl NoSuspend) -> (u64, u64) {
        self.reported_time.divide(self.account.time_at_end(), self.system_time.load(Ordering::Relaxed), cx)
    }

    /// How long its threads have run, in nanoseconds.
    pub fn cpu_time(&self) -> u64 {
        self.account.time()
    }

    /// What its children had used that it has waited for.
    pub fn children_usage(&self, cx: &impl NoSuspend) -> Usage {
        *self.children_usage.lock(cx)
    }
}

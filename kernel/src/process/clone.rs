//! Making processes and threads: fork(2), vfork(2), clone(2), and the first process.

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::user::UserContext;
use linux_raw_sys::general as abi;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::membership::{self, NewContainers, NewMember};
use super::pid::THREADS_MAX;
use super::thread::ThreadParts;
use super::thread_group::ProcessParts;
use super::trace::{self, Event};
use super::user_count::UserCount;
use super::{
    INIT, Life, Limits, Name, PROCESSES, PidFd, Process, RseqRegistration, THREADS, Thread, exit, freezer, pid, session,
};
use crate::arch;
use crate::cgroup::Cgroup;
use crate::credentials::{Capability, Credentials, Uid};
use crate::current::{Current, SAMPLE_INTERVAL};
use crate::error::{Errno, Result};
use crate::fs::{FdFlags, FileTable, FsContext, OpenFile, OpenFlags, reserve_fd};
use crate::memory::{self, AddressSpace, Fork};
use crate::reclaim::Payer;
use crate::sched::{self, Parameters};
use crate::signal::{Actions, AltStack, SignalSet, ThreadSignals, Work};
use crate::step::{self, Stop};
use crate::user_memory::UserOut;

/// What clone(2) is asked for.
#[derive(Clone, Copy, Default)]
pub struct CloneArgs {
    /// CLONE_*, without the signal that clone(2) has in the lowest byte.
    pub flags: u64,
    /// The signal that the parent gets when the child ends; 0: none.
    pub exit_signal: u32,
    /// The child's stack pointer; 0: the caller's.
    pub stack: usize,
    /// Where the child's id is written in the caller's memory (CLONE_PARENT_SETTID).
    pub parent_tid: UserOut<u32>,
    /// Where it is written in the child's memory (CLONE_CHILD_SETTID), and cleared when it exits (CLONE_CHILD_CLEARTID).
    pub child_tid: UserOut<u32>,
    /// Where the descriptor of the child's pidfd is written in the caller's memory (CLONE_PIDFD).
    pub pidfd: UserOut<u32>,
    /// The child's thread-local storage (CLONE_SETTLS).
    pub tls: usize,
    /// The control group that the child is made in (CLONE_INTO_CGROUP); `None`: the caller's.
    pub cgroup: Option<WeakRc<Cgroup>>,
}

/// Flags that are accepted and do nothing here.
const WITHOUT_EFFECT: u64 =
    (abi::CLONE_SYSVSEM | abi::CLONE_DETACHED | abi::CLONE_UNTRACED | abi::CLONE_PTRACE | abi::CLONE_IO) as u64;
const KNOWN: u64 = WITHOUT_EFFECT
    | abi::CLONE_CLEAR_SIGHAND
    | abi::CLONE_INTO_CGROUP
    | (abi::CLONE_VM
        | abi::CLONE_FS
        | abi::CLONE_FILES
        | abi::CLONE_SIGHAND
        | abi::CLONE_VFORK
        | abi::CLONE_PARENT
        | abi::CLONE_THREAD
        | abi::CLONE_SETTLS
        | abi::CLONE_PARENT_SETTID
        | abi::CLONE_PIDFD
        | abi::CLONE_CHILD_CLEARTID
        | abi::CLONE_CHILD_SETTID) as u64;

/// What would be in a namespace of its own. There is one of each kind.
const NAMESPACES: u32 = abi::CLONE_NEWNS
    | abi::CLONE_NEWCGROUP
    | abi::CLONE_NEWUTS
    | abi::CLONE_NEWIPC
    | abi::CLONE_NEWUSER
    | abi::CLONE_NEWPID
    | abi::CLONE_NEWNET;

impl CloneArgs {
    fn has(&self, flag: u32) -> bool {
        self.flags & u64::from(flag) != 0
    }

    fn check(&self, me: &Current, cx: &Cx) -> Result<()> {
        let has = |flag| self.has(flag);
        if has(NAMESPACES & !abi::CLONE_NEWUSER) {
            me.require(Capability::SysAdmin, cx)?;
        }
        if self.flags & !KNOWN != 0
            || (has(abi::CLONE_SIGHAND) && !has(abi::CLONE_VM))
            || (has(abi::CLONE_THREAD) && !has(abi::CLONE_SIGHAND))
            || (has(abi::CLONE_SIGHAND) && self.flags & abi::CLONE_CLEAR_SIGHAND != 0)
            || (has(abi::CLONE_PIDFD) && (has(abi::CLONE_THREAD) || has(abi::CLONE_DETACHED)))
            || self.exit_signal > crate::signal::Signal::MAX
        {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

/// clone(2): makes a process or thread that goes on as the caller does, with result 0. The result is its id.
///
/// # Errors
/// EINVAL for flags that do not go together or are not there (namespaces among them, for who may have them; EPERM for others); EAGAIN at
/// RLIMIT_NPROC; EMFILE as for [`FileTable::duplicate`]; ENOMEM.
pub fn clone_async(cx: &mut Cx, me: &mut Current, args: &CloneArgs) -> Result<usize> {
    args.check(me, cx)?;
    memory::admit()?;
    let is_traced = me.thread(cx)?.tracing.is_traced();
    if is_traced {
        trace::prepare_child(me, args, cx)?;
    }
    let pidfd = if args.has(abi::CLONE_PIDFD) { Some(install_pidfd_async(cx, me, args.pidfd)?) } else { None };
    let made = make_async(cx, me, args);
    if let Some(pidfd) = pidfd {
        pidfd.stand_for(&made, me, cx)?;
    }
    let Unstarted { mut current, tid, parameters } = made?;
    let child = current.thread;
    if args.has(abi::CLONE_PARENT_SETTID) {
        // Before the child can end and clear the same word. As on Linux, a bad address is the caller's loss.
        let _ = me.write_async(cx, args.parent_tid, &tid);
    }
    if is_traced {
        trace::begin_child(me, &mut current, cx);
    }
    start(current, parameters, cx);
    if is_traced {
        trace::tell_of_child_async(cx, me, tid);
    }
    if args.has(abi::CLONE_VFORK) {
        wait_for_memory_async(cx, me, child);
        if is_traced {
            trace::event_async(cx, me, Event::VForkDone, tid.into());
        }
    }
    Ok(tid as usize)
}

/// The caller waits until a child that has its memory has another one, or none (CLONE_VFORK).
fn wait_for_memory_async(cx: &mut Cx, me: &mut Current, child: WeakRc<Thread>) {
    // A fatal signal ends the caller even while the child has its memory.
    let _ = step::complete_unless_killed_async(cx, me, |cx, me, waker| {
        let Ok(child) = child.upgrade(cx) else { return Ok(()) };
        if let Some(waker) = waker {
            child.release.register(waker, cx);
            child.downgrade().watch(waker, cx);
            freezer::note_standing(&*me.process(cx)?, &*me.thread(cx)?, cx);
        }
        if child.released.load(Ordering::Acquire) { Ok(()) } else { Err(Stop::Block) }
    });
    if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx)) {
        freezer::note_going(&process, &thread, cx);
    }
}

/// A pidfd that stands for nobody yet. Another thread may close its descriptor, or duplicate it: the description is what is filled.
struct EmptyPidFd {
    fd: usize,
    file: WeakRc<OpenFile>,
}

/// Enters a pidfd that stands for nobody yet, and says where the caller wants it.
fn install_pidfd_async(cx: &mut Cx, me: &mut Current, to: UserOut<u32>) -> Result<EmptyPidFd> {
    let reserved = reserve_fd(me, cx)?.park();
    let written = me.write_async(cx, to, &(reserved.fd() as u32));
    let reserved = reserved.resume(cx)?;
    written?;
    let new = StrongRc::new(OpenFile::new(Box::new(PidFd::empty()), OpenFlags::READ_WRITE));
    let file = new.downgrade();
    Ok(EmptyPidFd { fd: reserved.fill_shared(new, FdFlags::CLOSE_ON_EXEC, cx), file })
}

impl EmptyPidFd {
    /// It stands for the child from now on, or goes if there is none.
    fn stand_for(self, made: &Result<Unstarted>, me: &Current, cx: &Cx) -> Result<()> {
        let file = self.file.upgrade(cx);
        match made {
            Ok(child) => {
                if let Some(pidfd) = file.as_ref().ok().and_then(|file| file.kind::<PidFd>()) {
                    pidfd.set(child.current.process, cx);
                }
            }
            Err(_) => {
                let files = me.files(cx)?;
                let mut handles = files.handles.lock(cx);
                // What another thread has put in its place stays.
                let is_same = handles.get(self.fd, cx).is_some_and(|open| open.downgrade() == self.file);
                let removed = if is_same { handles.remove(self.fd, cx) } else { None };
                drop(handles);
                drop(removed);
            }
        }
        Ok(())
    }
}

/// A thread that stands in all tables, and of which nothing has run: what is told of it is told before it can end.
struct Unstarted {
    current: Box<Current>,
    tid: u32,
    parameters: Parameters,
}

fn make_async(cx: &mut Cx, me: &mut Current, args: &CloneArgs) -> Result<Unstarted> {
    let count = count(&*me.thread(cx)?, cx)?;
    let mut space = Some(space_async(cx, me, args)?);
    // Nothing suspends from here on, so what is reserved is there when it is needed.
    let context = me.context.duplicate(cx);
    let made = make(cx, me, args, context, count, &mut space);
    if let Some(unused) = space {
        AddressSpace::give_up_async(unused, cx);
    }
    made
}

/// What the child is to see of memory: what the caller sees, or a copy of that.
fn space_async(cx: &mut Cx, me: &mut Current, args: &CloneArgs) -> Result<StrongRc<AddressSpace>> {
    if args.has(abi::CLONE_VM) {
        let thread = me.thread(cx)?;
        let space = thread.space.lock(cx);
        let space = space.as_ref().ok_or(Errno::ESRCH)?;
        if !args.has(abi::CLONE_THREAD) {
            space.get(cx).lend();
        }
        return Ok(space.share());
    }
    let child = AddressSpace::new()?;
    let mut fork = Fork::default();
    let copied = step::complete_in_turn_async(cx, me, |cx, me, waker| {
        me.space(cx)?.fork_step(&child.get(cx), &mut fork, waker, cx)
    });
    if let Err(error) = copied {
        if let Ok(space) = me.space(cx) {
            space.leave_fork(&mut fork, cx);
        }
        AddressSpace::give_up_async(child, cx);
        return Err(error);
    }
    Ok(child)
}

/// `space` is taken once nothing can fail any more.
fn make(
    cx: &Cx,
    me: &Current,
    args: &CloneArgs,
    mut context: UserContext,
    count: UserCount,
    space: &mut Option<StrongRc<AddressSpace>>,
) -> Result<Unstarted> {
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    sched::reserve(THREADS.len() + 1)?;
    if args.has(abi::CLONE_THREAD) {
        process.reserve_thread(cx)?;
    } else {
        process.reserve_child(cx)?;
    }
    let tid = pid::allocate(cx)?;
    // What a new process has is charged where that is made.
    let payer = if args.has(abi::CLONE_THREAD) { process.payer(cx) } else { Payer::NOBODY };
    let files = share_or(&thread.files, args.has(abi::CLONE_FILES), cx, |files| files.duplicate(&payer, cx))?;
    let fs = share_or(&thread.fs, args.has(abi::CLONE_FS), cx, |fs| Ok(fs.duplicate(cx)))?;
    let own_memory = !args.has(abi::CLONE_VM) || args.has(abi::CLONE_VFORK);
    let alt_stack = if own_memory { *thread.signals.alt_stack.lock(cx) } else { AltStack::default() };
    let registers = &mut context.registers;
    arch::set_call_result(registers, 0);
    if args.stack != 0 {
        arch::set_stack_pointer(registers, args.stack);
    }
    if args.has(abi::CLONE_SETTLS) {
        arch::set_thread_pointer(&mut context, args.tls, cx).map_err(|_| Errno::EPERM)?;
    }
    // Nothing fails behind this: a process that can be found has a thread soon.
    let (process, count) = if args.has(abi::CLONE_THREAD) {
        process.begin_thread(cx)?;
        (process, count)
    } else {
        let containers = NewContainers {
            files: (!args.has(abi::CLONE_FILES)).then(|| files.get(cx).into_ref()),
            space: space.as_ref().filter(|_| !args.has(abi::CLONE_VM)).map(|space| space.get(cx).into_ref()),
        };
        (enter_process(tid, args, me, count, &containers, cx)?, UserCount::none())
    };
    let space = space.take().ok_or(Errno::ESRCH)?;
    let names = Names { space: space.downgrade(), files: files.downgrade(), fs: fs.downgrade() };
    let credentials = thread.credentials.lock(cx).for_process(process.pid);
    let new = Thread::new(ThreadParts {
        tid,
        process: process.downgrade(),
        space,
        files,
        fs,
        credentials,
        count,
        signals: ThreadSignals::new(thread.signals.blocked(), alt_stack),
        name: thread.name(cx),
    });
    if args.has(abi::CLONE_CHILD_SETTID) && !args.child_tid.is_null() {
        new.set_tid.store(args.child_tid.address(), Ordering::Relaxed);
        new.signals.add_work(Work::BORN);
    }
    if args.has(abi::CLONE_CHILD_CLEARTID) {
        new.clear_tid.store(args.child_tid.address(), Ordering::Relaxed);
    }
    new.no_new_privileges.store(thread.no_new_privileges.load(Ordering::Relaxed), Ordering::Relaxed);
    new.timer_slack.inherit(&thread.timer_slack);
    new.io_priority.store(thread.io_priority.load(Ordering::Relaxed), Ordering::Relaxed);
    new.personality.store(thread.personality.load(Ordering::Relaxed), Ordering::Relaxed);
    let parameters = thread.task(cx).map_or(Parameters::default(), |task| sched::parameters(task).inherited());
    // A thread in the same memory registers a structure of its own.
    let restartable = if args.has(abi::CLONE_VM) { None } else { me.restartable };
    Ok(Unstarted { current: enter_thread(new, &process, names, context, restartable, cx), tid, parameters })
}

/// A share in what the caller has, or a copy of it.
fn share_or<T: Send + Sync>(
    field: &SpinLock<Option<StrongRc<T>>>,
    shared: bool,
    cx: &Cx,
    copy: impl FnOnce(&T) -> Result<StrongRc<T>>,
) -> Result<StrongRc<T>> {
    let field = field.lock(cx);
    let own = field.as_ref().ok_or(Errno::ESRCH)?;
    if shared { Ok(own.share()) } else { copy(&own.get(cx)) }
}

/// Gives the calling thread descriptors or directories of its own that it shared: see unshare(2).
///
/// # Errors
/// EPERM for namespaces, EINVAL for what cannot be unshared any more.
pub fn unshare(me: &mut Current, flags: u32, cx: &Cx) -> Result<()> {
    if flags & !(NAMESPACES | abi::CLONE_FILES | abi::CLONE_FS | abi::CLONE_SYSVSEM) != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & NAMESPACES != 0 {
        return Err(Errno::EPERM);
    }
    memory::admit()?;
    let thread = me.thread(cx)?;
    let (mut files, mut fs) = (me.files, me.fs);
    if flags & abi::CLONE_FILES != 0 {
        let payer = me.process(cx)?.payer(cx);
        files = replace_shared(&thread.files, cx, |files| files.duplicate(&payer, cx))?;
    }
    if flags & abi::CLONE_FS != 0 {
        fs = replace_shared(&thread.fs, cx, |fs| Ok(fs.duplicate(cx)))?;
    }
    drop(thread);
    (me.files, me.fs) = (files, fs);
    Ok(())
}

fn replace_shared<T: Send + Sync>(
    field: &SpinLock<Option<StrongRc<T>>>,
    cx: &Cx,
    copy: impl FnOnce(&T) -> Result<StrongRc<T>>,
) -> Result<WeakRc<T>> {
    let mut field = field.lock(cx);
    let own = field.as_ref().ok_or(Errno::ESRCH)?;
    if own.owners() > 1 {
        let new = copy(&own.get(cx))?;
        *field = Some(new);
    }
    field.as_ref().map(StrongRc::downgrade).ok_or(Errno::ESRCH)
}

/// Counts one thread more of the caller's user.
///
/// # Errors
/// EAGAIN: there are too many threads, or the user has as many as RLIMIT_NPROC allows.
fn count(thread: &Thread, cx: &Cx) -> Result<UserCount> {
    if THREADS.len() as u64 >= THREADS_MAX.get() {
        return Err(Errno::EAGAIN);
    }
    let (user, is_limited) = {
        let credentials = thread.credentials.lock(cx);
        (credentials.users().real, !credentials.exceeds_process_limit())
    };
    UserCount::new(user, is_limited.then(|| thread.limit(abi::RLIMIT_NPROC, cx).0))
}

/// Makes a process without threads and enters it in all tables.
///
/// # Errors
/// ENOMEM; RESTART_ALWAYS if there is a signal for the caller. Whoever signals a group or all processes goes through them one by one and may have passed where the new one is
/// entered: then the caller has had its signal before that, and whatever is made, is made by who is left.
fn enter_process<'cx>(
    pid: u32,
    args: &CloneArgs,
    me: &Current,
    count: UserCount,
    containers: &NewContainers<'_>,
    cx: &'cx Cx,
) -> Result<TempRc<'cx, Process>> {
    let (thread, maker) = (me.thread(cx)?, me.process(cx)?);
    let new = enter(make_process(pid, args, &maker, count, containers, cx)?, args.has(abi::CLONE_PARENT), &maker, cx);
    let is_signalled =
        thread.signals.work().contains(Work::EXIT) || !thread.signals.deliverable(&maker.pending).is_empty();
    if is_signalled {
        new.set_life(Life::Reaped);
        new.timers.stop(&new, cx);
        new.was_never_begun(cx);
        exit::remove(&new, cx);
        return Err(Errno::RESTART_ALWAYS);
    }
    Ok(new)
}

fn make_process(
    pid: u32,
    args: &CloneArgs,
    process: &Process,
    count: UserCount,
    containers: &NewContainers<'_>,
    cx: &Cx,
) -> Result<StrongRc<Process>> {
    let actions = process.with_actions(cx, |actions| {
        if args.has(abi::CLONE_SIGHAND) {
            return actions.share();
        }
        let copy = actions.get(cx).duplicate(cx);
        if args.flags & abi::CLONE_CLEAR_SIGHAND != 0 {
            copy.reset(cx);
        }
        StrongRc::new(copy)
    });
    let exit_signal = if args.has(abi::CLONE_PARENT) {
        process.exit_signal().map_or(0, |signal| signal.number())
    } else {
        args.exit_signal
    };
    let account = sched::Account::new()?;
    let new = StrongRc::new(Process::new(ProcessParts {
        control_group: membership::begin_child(process, args.cgroup, containers, cx)?,
        account,
        count,
        pid,
        parent_pid: 0,
        group: process.group(),
        session: process.session(),
        actions,
        limits: process.limits.lock(cx).clone(),
        exit_signal,
    }));
    let inherited = process.oom_score_adjust.load(Ordering::Relaxed);
    new.get(cx).oom_score_adjust.store(inherited, Ordering::Relaxed);
    new.get(cx).login.inherit(&process.login);
    new.get(cx).barriers.store(process.barriers.load(Ordering::Relaxed), Ordering::Relaxed);
    new.get(cx).dumpable.store(process.dumpable.load(Ordering::Relaxed), Ordering::Relaxed);
    new.get(cx).core_filter.store(process.core_filter.load(Ordering::Relaxed), Ordering::Relaxed);
    Ok(new)
}

/// Enters a new process in its tables; it belongs to the group and session of `maker`, of which it is a child or, `beside` it, a sibling.
fn enter<'cx>(process: StrongRc<Process>, beside: bool, maker: &Process, cx: &'cx Cx) -> TempRc<'cx, Process> {
    let new = process.get(cx);
    drop(PROCESSES.insert(new.pid, process, cx));
    if new.limits.lock(cx).soft(abi::RLIMIT_CPU) != u64::MAX {
        new.timers.watch_limit(&new, cx);
    }
    session::join(&new, maker, cx);
    if new.is_in_group.load(Ordering::Relaxed) {
        new.enter_group(new.downgrade(), cx);
    }
    if !beside {
        maker.add_child(&new, cx);
    } else {
        // A parent that ends has given the maker to another one before it takes no more children.
        while maker.parent(cx).is_some_and(|parent| !parent.add_child(&new, cx)) {}
    }
    new
}

/// What a thread knows its shares by.
struct Names {
    space: WeakRc<AddressSpace>,
    files: WeakRc<FileTable>,
    fs: WeakRc<FsContext>,
}

/// Enters a thread in its tables.
fn enter_thread(
    new: Thread,
    process: &Process,
    names: Names,
    context: UserContext,
    restartable: Option<RseqRegistration>,
    cx: &Cx,
) -> Box<Current> {
    let tid = new.tid();
    let new = StrongRc::new(new);
    let thread = new.get(cx);
    let current = Box::new(Current {
        context,
        thread: new.downgrade(),
        process: thread.process,
        space: names.space,
        files: names.files,
        fs: names.fs,
        restart: None,
        interrupted_call: None,
        fault: Default::default(),
        restartable,
        until_sample: SAMPLE_INTERVAL / 2,
        sampled_at: 0,
    });
    process.add_thread(&thread, cx);
    drop(thread);
    drop(THREADS.insert(tid, new, cx));
    crate::memory::keep_stacks(THREADS.len());
    current
}

/// Spawns the task that runs a thread.
fn start(current: Box<Current>, parameters: Parameters, cx: &Cx) {
    let (thread, process) = (current.thread, current.process.upgrade(cx));
    tasks::spawn(&sched::SCHEDULER, current, |words, task| {
        sched::initialise(words, parameters, process.as_deref().ok().map(|process| &process.account));
        if let Ok(thread) = thread.upgrade(cx) {
            thread.set_task(task, cx);
        }
        // Who tells all threads that their process is in another group may not have seen this one.
        sched::note_group(words);
    });
}

fn name_of<T: Send + Sync>(field: &SpinLock<Option<StrongRc<T>>>, cx: &Cx) -> Result<WeakRc<T>> {
    field.lock(cx).as_ref().map(StrongRc::downgrade).ok_or(Errno::ESRCH)
}

/// The group and session in which process 1 starts. It leads neither, so that it can make a session of its own, as on Linux.
const NOBODYS_SESSION: u32 = 0;

/// Makes process 1 for the task that runs, which is not a thread of anybody yet: it is to execute a program with what is returned.
/// Its address space is empty.
///
/// # Errors
/// ENOMEM; ENOENT without a root directory.
pub fn become_init(cx: &Cx) -> Result<Current> {
    let pid = pid::allocate(cx)?;
    if pid != INIT {
        return Err(Errno::EEXIST);
    }
    let account = sched::Account::new()?;
    sched::charge_to(&account, cx);
    let process = StrongRc::new(Process::new(ProcessParts {
        control_group: NewMember::of_root(),
        account,
        count: UserCount::new(Uid::ROOT, None)?,
        pid,
        parent_pid: 0,
        group: NOBODYS_SESSION,
        session: NOBODYS_SESSION,
        actions: StrongRc::new(Actions::default()),
        limits: Limits::default(),
        exit_signal: 0,
    }));
    let of_process = process.downgrade();
    drop(PROCESSES.insert(pid, process, cx));
    if let Ok(process) = of_process.upgrade(cx) {
        session::found_session(&process, NOBODYS_SESSION, cx);
    }
    let thread = StrongRc::new(Thread::new(ThreadParts {
        tid: pid,
        process: of_process,
        space: AddressSpace::new()?,
        files: StrongRc::new(FileTable::default()),
        fs: StrongRc::new(FsContext::initial(cx)?),
        credentials: Credentials::default().for_process(pid),
        count: UserCount::none(),
        signals: ThreadSignals::new(SignalSet::EMPTY, AltStack::default()),
        name: Name::new(b"init"),
    }));
    let name = thread.downgrade();
    drop(THREADS.insert(pid, thread, cx));
    let thread = name.upgrade(cx)?;
    of_process.upgrade(cx)?.add_thread(&thread, cx);
    thread.set_task(tasks::current(cx), cx);
    Ok(Current {
        context: UserContext::new(),
        thread: name,
        process: of_process,
        space: name_of(&thread.space, cx)?,
        files: name_of(&thread.files, cx)?,
        fs: name_of(&thread.fs, cx)?,
        restart: None,
        interrupted_call: None,
        fault: Default::default(),
        restartable: None,
        until_sample: SAMPLE_INTERVAL / 2,
        sampled_at: 0,
    })
}

/// The first thing that a thread made with CLONE_CHILD_SETTID does.
pub fn write_own_tid_async(cx: &mut Cx, me: &mut Current) {
    let to_clear = me.thread(cx).map(|thread| {
        thread.signals.remove_work(Work::BORN);
        (thread.set_tid.swap(0, Ordering::Relaxed), thread.tid())
    });
    let Ok((address, tid)) = to_clear else { return };
    // As on Linux, a bad address is the program's loss.
    let _ = me.write_async(cx, UserOut::<u32>::new(address), &tid);
}

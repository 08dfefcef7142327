//! [`Traced`]: what a thread is to its tracer, and what the tracer may do with it.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use frame::user::UserContext;
use refs::{NoSuspend, SpinLock, TempRc, WeakRc};

use linux_raw_sys::ptrace::PTRACE_EVENT_STOP as EVENT_STOP;

use super::attach::Embryo;
use super::{Event, Options};
use crate::arch;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::members::Ticket;
use crate::process::{Process, RseqRegistration, THREADS, Thread};
use crate::signal::{Info, Signal, Work, send};

/// What a thread has of tracing: nearly all have nothing, and know that without a lock.
#[derive(Default)]
pub struct Tracing {
    is_traced: AtomicBool,
    pub(super) is_standing: AtomicBool,
    /// Whether it traces others, or ever did.
    pub(super) is_tracer: AtomicBool,
    /// It ends, and gets no more tracees.
    pub(super) is_closed: AtomicBool,
    pub(super) traced: SpinLock<Option<Box<Traced>>>,
}

impl Tracing {
    /// Whether somebody traces it.
    #[inline(always)]
    pub fn is_traced(&self) -> bool {
        self.is_traced.load(Ordering::SeqCst)
    }

    /// Whether it stands where its tracer may look into it.
    pub fn is_standing(&self) -> bool {
        self.is_standing.load(Ordering::Relaxed)
    }

    /// Whether it traces others, or ever did.
    #[inline(always)]
    pub fn is_tracer(&self) -> bool {
        self.is_tracer.load(Ordering::SeqCst)
    }

    pub(super) fn set_traced(&self, is_traced: bool) {
        self.is_traced.store(is_traced, Ordering::SeqCst);
    }

    /// The id of its tracer; 0 if it has none.
    pub fn tracer_id(&self, cx: &Cx) -> u32 {
        if !self.is_traced() {
            return 0;
        }
        let traced = self.traced.lock(cx);
        let Some(relation) = traced.as_ref().and_then(|traced| traced.relation.as_ref()) else { return 0 };
        match relation.tracer.map(|tracer| tracer.upgrade(cx)) {
            Some(Ok(tracer)) => tracer.tid(),
            Some(Err(_)) => 0,
            None => relation.process.upgrade(cx).map_or(0, |process| process.pid),
        }
    }
}

/// Who traces a thread.
#[derive(Clone, Copy)]
pub(super) struct Relation {
    /// `None` until one of the parent's threads has asked for something: which of them made the child is not known (PTRACE_TRACEME).
    pub tracer: Option<WeakRc<Thread>>,
    /// The tracer's process.
    pub process: WeakRc<Process>,
    /// By PTRACE_SEIZE.
    pub is_seized: bool,
    /// The tracer could trace anybody when it began: what the tracee executes may gain rights.
    pub may_gain: bool,
    pub options: Options,
}

/// How a tracee goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Until something happens to it.
    #[default]
    Run,
    /// Until it makes a system call, or ends one.
    Calls,
    /// For one instruction.
    Step,
}

/// A thread that is traced, or has just been let go and does not know yet.
pub struct Traced {
    /// `None`: it was let go while it stood.
    pub(super) relation: Option<Relation>,
    /// Its own while it stands; meanwhile it has this one, which is nobody's.
    pub context: UserContext,
    pub(super) stand: Option<Stand>,
    /// Where it stands among its tracer's tracees.
    pub(super) as_tracee: Ticket,
    /// What a thread that it is about to make will be.
    pub(super) embryo: Option<Box<Embryo>>,
    /// It has made one, of which it has not told its tracer yet.
    pub(super) announces: Option<Event>,
    pub(super) mode: Mode,
    /// PTRACE_GETEVENTMSG.
    pub message: u64,
    /// It is to stop soon: PTRACE_INTERRUPT, or it begins.
    pub(super) traps: bool,
    /// The system call in whose middle it was told to go on until the end of a call.
    pub(super) call_to_end: Option<u64>,
    /// It traps after each instruction because its tracer wants it, not the program itself.
    pub(super) is_stepping: bool,
}

/// Where a tracee stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It is about to take a signal.
    Signal,
    /// It is about to make a system call.
    CallEntry,
    /// It has made one.
    CallExit,
    /// It is in the middle of one.
    InCall,
    /// It is about to end.
    Exit,
    /// Its process is stopped.
    Stopped,
    /// It was told to stop, or has done one step.
    Trap,
}

/// A tracee that stands.
pub struct Stand {
    /// Where.
    pub at: At,
    /// What wait(2) tells: a signal, and what happened above that.
    pub(super) code: u32,
    /// wait(2) has not told it yet.
    pub(super) is_news: bool,
    /// PTRACE_GETSIGINFO.
    pub info: Option<Info>,
    /// The number of the call that it is in, or [`arch::NO_CALL`].
    pub call: u64,
    /// What it has registered by rseq(2).
    pub rseq: Option<RseqRegistration>,
    /// It stays until something happens to it (PTRACE_LISTEN).
    pub(super) listens: bool,
    /// It is to go on, with that signal.
    pub(super) resumed: Option<Option<Signal>>,
}

impl Traced {
    pub(super) fn new(relation: Relation) -> Box<Self> {
        Box::new(Traced {
            relation: Some(relation),
            context: UserContext::new(),
            stand: None,
            as_tracee: Ticket::default(),
            embryo: None,
            announces: None,
            mode: Mode::Run,
            message: 0,
            traps: false,
            call_to_end: None,
            is_stepping: false,
        })
    }

    /// Where it stands.
    ///
    /// # Errors
    /// ESRCH if it does not.
    pub fn stand(&mut self) -> Result<&mut Stand> {
        self.stand.as_mut().filter(|stand| stand.resumed.is_none()).ok_or(Errno::ESRCH)
    }

    /// Changes what its tracer wants to know of.
    pub fn set_options(&mut self, options: Options) {
        if let Some(relation) = &mut self.relation {
            relation.options = options;
        }
    }

    /// Its registers.
    pub fn registers(&self) -> arch::CoreRegisters {
        let call = self.stand.as_ref().map_or(arch::NO_CALL, |stand| stand.call);
        arch::core_registers(&self.context, call)
    }

    /// Its registers become these.
    ///
    /// # Errors
    /// EIO for what no program has there.
    pub fn set_registers(&mut self, new: &arch::CoreRegisters, cx: &Cx) -> Result<()> {
        let call = arch::set_core_registers(&mut self.context, new, cx)?;
        self.stand()?.call = call;
        Ok(())
    }

    /// Whether the thread is its tracer. The first of the tracer's process who asks becomes it if nobody is yet.
    fn is_of(&mut self, me: &Current) -> bool {
        match &mut self.relation {
            Some(relation) if relation.process == me.process => *relation.tracer.get_or_insert(me.thread) == me.thread,
            _ => false,
        }
    }
}

/// Runs `f` on a tracee of the caller.
///
/// # Errors
/// ESRCH if it is none; those of `f`.
fn with_own<'cx, R>(
    me: &Current,
    tid: u32,
    cx: &'cx Cx,
    f: impl FnOnce(&TempRc<'cx, Thread>, &mut Traced) -> Result<R>,
) -> Result<R> {
    let thread = THREADS.get(tid, cx).ok_or(Errno::ESRCH)?;
    if !thread.tracing.is_traced() {
        return Err(Errno::ESRCH);
    }
    me.thread(cx)?.tracing.is_tracer.store(true, Ordering::SeqCst);
    let mut traced = thread.tracing.traced.lock(cx);
    let traced = traced.as_mut().filter(|traced| traced.relation.is_some()).ok_or(Errno::ESRCH)?;
    if traced.is_of(me) { f(&thread, traced) } else { Err(Errno::ESRCH) }
}

/// Runs `f` on a tracee of the caller that stands, quickly: others who look at it wait.
///
/// # Errors
/// ESRCH if it is none or does not stand; those of `f`.
pub fn with_tracee<'cx, R>(
    me: &Current,
    tid: u32,
    cx: &'cx Cx,
    f: impl FnOnce(&TempRc<'cx, Thread>, &mut Traced) -> Result<R>,
) -> Result<R> {
    with_own(me, tid, cx, |thread, traced| {
        let is_leaving =
            traced.stand()?.listens || thread.signals.work().contains(Work::EXIT) && traced.stand()?.at != At::Exit;
        if is_leaving { Err(Errno::ESRCH) } else { f(thread, traced) }
    })
}

/// A tracee goes on, with a signal.
///
/// # Errors
/// ESRCH.
pub fn resume(me: &Current, tid: u32, mode: Mode, signal: Option<Signal>, cx: &Cx) -> Result<()> {
    let thread = with_tracee(me, tid, cx, |thread, traced| {
        traced.mode = mode;
        traced.stand()?.resumed = Some(signal);
        Ok(thread.clone())
    })?;
    thread.wake(cx);
    Ok(())
}

/// The caller lets a tracee go, which goes on with a signal.
///
/// # Errors
/// ESRCH.
pub fn detach(me: &Current, tid: u32, signal: Option<Signal>, cx: &Cx) -> Result<()> {
    let thread = with_tracee(me, tid, cx, |thread, _| Ok(thread.clone()))?;
    me.process(cx)?.part(&thread, Some(me.thread), signal, cx);
    Ok(())
}

/// A tracee is killed, whether it stands or not.
///
/// # Errors
/// ESRCH.
pub fn kill(me: &Current, tid: u32, cx: &Cx) -> Result<()> {
    let thread = with_own(me, tid, cx, |thread, _| Ok(thread.clone()))?;
    send::send_to_thread(&*thread.process(cx)?, &thread, Info::kernel(Signal::KILL), cx)
}

/// A tracee that was seized stops where it is.
///
/// # Errors
/// ESRCH; EIO if it was not seized.
pub fn interrupt(me: &Current, tid: u32, cx: &Cx) -> Result<()> {
    let thread = with_own(me, tid, cx, |thread, traced| {
        if !traced.relation.is_some_and(|relation| relation.is_seized) {
            return Err(Errno::EIO);
        }
        traced.traps = true;
        thread.signals.add_work(Work::TRAP);
        Ok(thread.clone())
    })?;
    thread.wake(cx);
    Ok(())
}

/// A tracee that was seized, and stands because its process is stopped, stays so until something happens to it.
///
/// # Errors
/// ESRCH; EIO if it stands for something else.
pub fn listen(me: &Current, tid: u32, cx: &Cx) -> Result<()> {
    let thread = with_tracee(me, tid, cx, |thread, traced| {
        let is_seized = traced.relation.is_some_and(|relation| relation.is_seized);
        let stand = traced.stand()?;
        if !is_seized || stand.code >> 8 != EVENT_STOP {
            return Err(Errno::EIO);
        }
        stand.listens = true;
        Ok(thread.clone())
    })?;
    // What it was to hear may have happened.
    thread.wake(cx);
    Ok(())
}

/// Whether a tracee is one of `tracer`'s; of anybody's if it is `None`.
pub(super) fn is_of(relation: &Relation, tracer: Option<WeakRc<Thread>>) -> bool {
    tracer.is_none_or(|tracer| relation.tracer == Some(tracer))
}

/// Whether somebody traces a thread who could not trace whom he likes when he began: it gains no rights by execve(2).
pub fn is_traced_by_lesser(thread: &Thread, cx: &impl NoSuspend) -> bool {
    relation(thread, cx).is_some_and(|relation| !relation.may_gain)
}

/// Somebody looks at it.
pub(super) fn relation(thread: &Thread, cx: &impl NoSuspend) -> Option<Relation> {
    if !thread.tracing.is_traced() {
        return None;
    }
    thread.tracing.traced.lock(cx).as_ref()?.relation
}

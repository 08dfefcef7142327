//! Steps, and the one driver that turns them into calls that block.
//!
//! A *step* does something to objects without suspending and says how it went: done, failed, would have to wait, or a page of
//! user memory is missing. It holds `TempRc`s as it likes, because they end with it. [`complete_async`] runs a step, and where it must wait
//! parks with nothing held and runs it again. So time-outs, signals, `O_NONBLOCK`, missing pages and the death of what is waited
//! for are handled here, once.
//!
//! The contract of a step:
//! - It is called with no waker first. If it then says [`Stop::Block`] or [`Stop::BlockOnDevice`] it is called again *with* a waker, which it enters in every
//!   queue whose change could let it go on and in every object whose death must wake it (`WeakRc::watch`), and only then looks
//!   whether it can go on; so no wake-up is lost.
//! - Work without an end in sight is cut where a [`TimeSlice`] is over: the step says [`Stop::Pause`], others have their turn, and it is run again.
//! - What a device must bring first, such as a page of a file, the step asks for and says [`Stop::Absent`], waker or not. The driver enters the waker with whoever brings it, runs the step
//!   again, and waits if it says the same. Only a fatal signal ends such a wait, and O_NONBLOCK does not count.
//! - Where a wait is for so much that even entering the waker takes long, the step says [`Stop::Again`] in between.
//! - A wait that is ended because the caller is to end, before any of its wakers has, ends without the step being run again, but for one of some hundred.
//! - It may be run any number of times: whatever it changes before it says `Fault` or `Block` must be as if it had not run (read user memory first,
//!   write results last, and take back what was created if that last write faults).

use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use frame::cpu::PerCore;
use frame::mm::{Access, Fault};
use refs::{Gone, SpinLock, Waker, WeakRc};
use tasks::EndOfWait;

use crate::error::{Errno, Result};
use crate::time::{self, Timeline};

/// A step that is kept by reference.
pub type AnyStep<'a, C, T> = dyn FnMut(&Cx, &C, Option<Waker>) -> Step<T> + 'a;

/// Who makes a call that may wait: what the driver needs of it.
pub trait Caller {
    /// Makes user memory accessible after a copy faulted there.
    ///
    /// # Errors
    /// EFAULT if the program has no right to it; ENOMEM.
    fn fault_in_async(&mut self, cx: &mut Cx, fault: Fault) -> Result<()>;

    /// Sees to it that there is memory for pages of programs, if the caller's own group has too much; others run meanwhile.
    ///
    /// # Errors
    /// ENOMEM if it has not, or it is the caller that ends for it.
    fn make_room_async(&mut self, cx: &mut Cx) -> Result<()>;

    /// Lets interrupts in, and others run whose turn it is: for work that takes long.
    ///
    /// # Errors
    /// As for a wait that such a signal ends.
    fn pause_async(&mut self, cx: &mut Cx, interruption: Interruption) -> Result<()>;

    /// Notes for those who look at the caller where it waits, which it is about to do; or the error with which the wait ends at once because of a signal.
    ///
    /// # Errors
    /// As [`interrupted`](Self::interrupted) says.
    fn begin_wait(&self, interruption: Interruption, cx: &Cx) -> Result<()>;

    /// The error with which a wait ends now because of a signal, if it must.
    fn interrupted(&self, interruption: Interruption, cx: &Cx) -> Option<Errno>;
}

/// What brings that which steps find absent, such as the cache of a disk's pages.
pub trait Source: Send + Sync {
    /// Has `waker` woken when `what` has come or failed to, or when it can be asked for: `what` is the source's own number for it.
    fn watch(&self, what: u64, waker: Waker, cx: &Cx);
}

/// What a step was refused for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    source: WeakRc<dyn Source>,
    what: u64,
}

impl Wanted {
    /// Has `waker` woken when it has come; at once if there is no such source any more.
    fn watch(&self, waker: Waker, cx: &Cx) {
        match self.source.upgrade(cx) {
            Ok(source) => source.watch(self.what, waker, cx),
            Err(Gone) => _ = waker.wake(),
        }
    }
}

/// On lines of its own: only its core touches it.
#[repr(align(64))]
struct OfCore(SpinLock<Option<Wanted>>);

/// What the step that runs on each core was refused for last.
static ABSENT: PerCore<OfCore> = PerCore::new(OfCore::new());

impl OfCore {
    const fn new() -> Self {
        OfCore(SpinLock::new(None))
    }
}

/// Makes what each core keeps. At boot.
pub fn start() {
    ABSENT.make(frame::cpu::count(), OfCore::new);
}

/// Says that something must come first. What it is this core keeps, so what steps return is no larger for it; it is looked at before the next suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent(());

impl Absent {
    /// Notes what must come. It was asked for, or there is no room to ask for it.
    #[cold]
    pub fn note(source: WeakRc<dyn Source>, what: u64, cx: &Cx) -> Absent {
        *ABSENT[frame::cpu::current_core()].0.lock(cx) = Some(Wanted { source, what });
        Absent(())
    }

    /// Has a waker woken when it has come. What that is, to be compared.
    pub fn watch(self, waker: Waker, cx: &Cx) -> Option<Wanted> {
        let wanted = self.wanted(cx);
        if let Some(wanted) = wanted {
            wanted.watch(waker, cx);
        }
        wanted
    }

    /// Whether it is this that must come, and anything.
    pub fn is(self, wanted: Option<Wanted>, cx: &Cx) -> bool {
        wanted.is_some() && self.wanted(cx) == wanted
    }

    fn wanted(self, cx: &Cx) -> Option<Wanted> {
        *ABSENT[frame::cpu::current_core()].0.lock(cx)
    }

    /// Waits until it has come, or will not. `again` tries once more whether it is still absent, after whoever brings it knows of this wait.
    ///
    /// # Errors
    /// EINTR on a fatal signal.
    #[cold]
    pub fn wait_async<C: Caller>(
        self,
        cx: &mut Cx,
        me: &mut C,
        again: impl FnOnce(&Cx, &mut C) -> Option<Absent>,
    ) -> Result<()> {
        let waker = tasks::prepare(cx);
        let wanted = self.watch(waker, cx);
        // As in `complete_slowly_async`.
        frame::irq::poll(cx);
        match again(cx, me) {
            Some(absent) if absent.is(wanted, cx) => park_on_device_async(cx, me),
            _ => {
                tasks::finish_wait(cx);
                Ok(())
            }
        }
    }
}

/// Why a step did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It failed.
    Error(Errno),
    /// It must wait.
    Block,
    /// It must wait for a device, which answers soon: only the end of the process ends the wait, and it is no matter whether the caller wants to wait.
    BlockOnDevice,
    /// It must wait, but only until this time (nanoseconds since boot): EAGAIN then, and EINTR where a signal ends the wait, even one that restarts calls. For
    /// objects that have such times (SO_RCVTIMEO).
    BlockUntil(u64),
    /// User memory must be made accessible first, from this address on: a [`Fault`]. (Its fields are here so that what steps return fits two registers.)
    Fault {
        /// [`Fault::address`].
        address: usize,
        /// [`Fault::access`].
        access: Access,
    },
    /// Something without which it cannot go on must come first.
    Absent(Absent),
    /// There is no memory for pages of programs: somebody must have less first. Nothing is held that whoever that is may wait for.
    NoMemory,
    /// It has more to do, but others must have their turn first; such signals end it.
    Pause(Interruption),
    /// It has more to do with the same waker, which it has entered in a part of what it is to wait for; only interrupts are let in first.
    Again,
}

/// How long kernel code works on, in nanoseconds, where it can leave off. Interrupts may be off for half a millisecond: what comes before the first look
/// at the clock, and the piece in which the time runs out, come on top of this.
const LONGEST_SLICE: u64 = 150_000;
/// The same for work at an end, which goes on in turn with what others do ([`sched::work_at_ends`](crate::sched::work_at_ends)).
const LONGEST_SLICE_OF_END: u64 = 30_000;

/// A stretch of work in pieces, to be cut when it has taken long. It costs nothing where one piece is all.
pub struct TimeSlice {
    since: Option<u64>,
    longest: u64,
}

impl Default for TimeSlice {
    fn default() -> Self {
        TimeSlice { since: None, longest: LONGEST_SLICE }
    }
}

impl TimeSlice {
    /// A stretch of work at an end.
    pub fn of_end() -> Self {
        TimeSlice { since: None, longest: LONGEST_SLICE_OF_END }
    }

    /// Asked between two pieces: whether others must have their turn now.
    #[cfg_attr(feature = "stretch", track_caller)]
    pub fn is_over(&mut self) -> bool {
        #[cfg(feature = "stretch")]
        frame::stretch::pass();
        let now = frame::time::now();
        now.saturating_sub(*self.since.get_or_insert(now)) >= self.longest
    }
}

const _: () = assert!(size_of::<Step<usize>>() == 16);

/// How a step went.
pub type Step<T> = core::result::Result<T, Stop>;

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Stop::Error(error)
    }
}

impl From<Fault> for Stop {
    fn from(Fault { address, access }: Fault) -> Self {
        Stop::Fault { address, access }
    }
}

impl From<Gone> for Stop {
    fn from(gone: Gone) -> Self {
        Stop::Error(gone.into())
    }
}

/// What came of a step of something that never waits, such as a file system in memory.
///
/// # Errors
/// Its own; ENOMEM; EIO where it would wait after all.
pub fn at_once<T>(outcome: Step<T>) -> Result<T> {
    outcome.map_err(|stop| match stop {
        Stop::Error(error) => error,
        Stop::NoMemory => Errno::ENOMEM,
        _ => Errno::EIO,
    })
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all: EAGAIN.
    None,
    /// Until the time (nanoseconds since boot): ETIMEDOUT.
    Until(u64),
    /// Until the wall clock shows the time (nanoseconds since 1970), which it may be set to: ETIMEDOUT.
    UntilWall(u64),
    /// For ever.
    Forever,
}

/// Which signals end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Every signal that would be delivered: [`Errno::RESTART_SYS`].
    Signals,
    /// Only those that end the process: [`Errno::EINTR`].
    KillOnly,
    /// Only the end of the process, if its memory ends with it, which is all that the work changes: [`Errno::EINTR`].
    EndOfMemory,
    /// None at all: the work has an end, and what it would leave half done could be seen.
    Never,
}

/// Runs `step` until it is done or has failed.
///
/// # Errors
/// The step's own; EAGAIN or ETIMEDOUT when `patience` ends; RESTART_SYS or EINTR on a signal; EFAULT where user memory cannot be made
/// accessible.
#[inline(always)]
pub fn complete_async<C: Caller, T>(
    cx: &mut Cx,
    me: &mut C,
    patience: Patience,
    mut step: impl FnMut(&Cx, &C, Option<Waker>) -> Step<T>,
) -> Result<T> {
    match step(cx, me, None) {
        Ok(value) => Ok(value),
        Err(Stop::Error(error)) => Err(error),
        Err(stop) => complete_slowly_async(cx, me, patience, Interruption::Signals, stop, &mut step),
    }
}

/// As [`complete_async`], for a step that was run once and said `stop`.
///
/// # Errors
/// As for [`complete_async`].
#[inline]
pub fn go_on_async<C: Caller, T>(
    cx: &mut Cx,
    me: &mut C,
    patience: Patience,
    stop: Stop,
    step: &mut AnyStep<'_, C, T>,
) -> Result<T> {
    match stop {
        Stop::Error(error) => Err(error),
        stop => complete_slowly_async(cx, me, patience, Interruption::Signals, stop, step),
    }
}

/// Runs what touches user memory and changes the caller itself until it is done or has failed. It never waits.
///
/// # Errors
/// Its own; EFAULT where user memory cannot be made accessible; EAGAIN where it would have to wait.
#[inline(always)]
pub fn access_async<C: Caller, T>(
    cx: &mut Cx,
    me: &mut C,
    mut access: impl FnMut(&Cx, &mut C) -> Step<T>,
) -> Result<T> {
    loop {
        match access(cx, me) {
            Ok(value) => return Ok(value),
            Err(stop) => go_on_async(cx, me, Patience::None, stop, &mut |_, _, _| Ok(()))?,
        }
    }
}

/// As [`complete_async`], for a step that waits only until another thread's call is through with what both change: only a fatal signal ends that wait, so programs see no
/// EINTR of calls that have none.
///
/// # Errors
/// The step's own; EINTR on a fatal signal; EFAULT where user memory cannot be made accessible.
#[inline(always)]
pub fn complete_in_turn_async<C: Caller, T>(
    cx: &mut Cx,
    me: &mut C,
    mut step: impl FnMut(&Cx, &C, Option<Waker>) -> Step<T>,
) -> Result<T> {
    match step(cx, me, None) {
        Ok(value) => Ok(value),
        Err(Stop::Error(error)) => Err(error),
        Err(stop) => complete_slowly_async(cx, me, Patience::Forever, Interruption::KillOnly, stop, &mut step),
    }
}

/// As [`complete_async`], for waits that only a fatal signal ends.
pub fn complete_unless_killed_async<C: Caller, T>(
    cx: &mut Cx,
    me: &mut C,
    mut step: impl FnMut(&Cx, &C, Option<Waker>) -> Step<T>,
) -> Result<T> {
    complete_slowly_async(cx, me, Patience::Forever, Interruption::KillOnly, Stop::Block, &mut step)
}

#[cold]
fn complete_slowly_async<C: Caller, T>(
    cx: &mut Cx,
    me: &mut C,
    patience: Patience,
    interruption: Interruption,
    mut stop: Stop,
    step: &mut AnyStep<'_, C, T>,
) -> Result<T> {
    let mut has_waited = false;
    loop {
        let mut waker = None;
        let mut wanted = None;
        match stop {
            Stop::Error(error) => return Err(error),
            Stop::Fault { address, access } => {
                me.fault_in_async(cx, Fault { address, access })?;
                // The step begins again, which may be for each page that it touches.
                frame::irq::poll(cx);
            }
            Stop::NoMemory => me.make_room_async(cx)?,
            Stop::Absent(absent) => {
                let prepared = tasks::prepare(cx);
                wanted = absent.watch(prepared, cx);
                waker = Some(prepared);
                // What is absent may be long work, of which the step has done a piece and now does another.
                frame::irq::poll(cx);
            }
            Stop::Pause(interruption) => me.pause_async(cx, interruption)?,
            Stop::Again => frame::irq::poll(cx),
            Stop::Block | Stop::BlockUntil(_) if patience == Patience::None => return Err(Errno::EAGAIN),
            Stop::Block | Stop::BlockUntil(_) | Stop::BlockOnDevice => {
                if core::mem::replace(&mut has_waited, true) {
                    // It was woken for nothing, maybe with many others, of which each comes by here.
                    frame::irq::poll(cx);
                }
                waker = Some(tasks::prepare(cx));
            }
        }
        let mut outcome = step(cx, me, waker);
        while matches!(outcome, Err(Stop::Again)) {
            frame::irq::poll(cx);
            outcome = step(cx, me, waker);
        }
        match (outcome, waker) {
            (Ok(value), _) => {
                tasks::finish_wait(cx);
                return Ok(value);
            }
            (Err(Stop::Block), Some(waker)) => park_async(cx, me, patience, interruption, waker)?,
            (Err(Stop::BlockUntil(end)), Some(waker)) => {
                park_async(cx, me, Patience::Until(end), interruption, waker).map_err(|error| match error {
                    Errno::ETIMEDOUT => Errno::EAGAIN,
                    Errno::RESTART_SYS => Errno::EINTR,
                    error => error,
                })?;
            }
            (Err(Stop::Absent(absent)), Some(_)) if absent.is(wanted, cx) => {
                park_on_device_async(cx, me)?;
            }
            (Err(Stop::BlockOnDevice), Some(_)) => park_on_device_async(cx, me)?,
            (Err(next), _) => {
                tasks::finish_wait(cx);
                stop = next;
                continue;
            }
        }
        stop = match step(cx, me, None) {
            Ok(value) => return Ok(value),
            Err(next) => next,
        };
    }
}

/// Parks until a device has answered, in the wait that was begun.
#[cold]
#[inline(never)]
fn park_on_device_async<C: Caller>(cx: &mut Cx, me: &C) -> Result<()> {
    if let Err(error) = me.begin_wait(Interruption::KillOnly, cx) {
        tasks::finish_wait(cx);
        return Err(error);
    }
    tasks::park_async(cx);
    // Who was woken before has not suspended, and may have come by here often: what is absent may be long work in pieces.
    tasks::pause_async(cx);
    Ok(())
}

/// Parks in the wait of `waker` until it is woken.
fn park_async<C: Caller>(
    cx: &mut Cx,
    me: &C,
    patience: Patience,
    interruption: Interruption,
    waker: Waker,
) -> Result<()> {
    if let Err(error) = me.begin_wait(interruption, cx) {
        tasks::finish_wait(cx);
        return Err(error);
    }
    let until = match patience {
        Patience::Until(deadline) => Some((Timeline::Boot, deadline)),
        Patience::UntilWall(deadline) => Some((Timeline::Wall, deadline)),
        Patience::None | Patience::Forever => None,
    };
    let end = if let Some((timeline, deadline)) = until {
        if timeline.now() >= deadline {
            tasks::finish_wait(cx);
            return Err(Errno::ETIMEDOUT);
        }
        let alarm = time::wake_at(timeline, deadline, waker, cx);
        let end = tasks::park_async(cx);
        drop(alarm);
        end
    } else {
        tasks::park_async(cx)
    };
    // No wake-up was for it that another would miss: who is to end does not look once more.
    match end {
        EndOfWait::Interrupted => interrupted_by_kill(me, interruption, cx).map_or(Ok(()), Err),
        EndOfWait::Woken => Ok(()),
    }
}

/// How many have been told by [`interrupted_by_kill`] that they are to end.
static KILLED: AtomicU32 = AtomicU32::new(0);

/// One of so many who are to end looks once more, as if it went on: so it enters its waker anew, and what it waits for throws out those of waits that are over. Else they would stay there until that
/// ends, and be very many. A prime number: many may wait for few things in turn.
const LOOKS_AGAIN: u32 = 251;

/// The error with which a wait ends now because the caller is to end.
fn interrupted_by_kill<C: Caller>(me: &C, interruption: Interruption, cx: &Cx) -> Option<Errno> {
    me.interrupted(Interruption::KillOnly, cx)?;
    if KILLED.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOKS_AGAIN) {
        return None;
    }
    me.interrupted(interruption, cx)
}

//! The queues of everything that is to happen at a time: since boot, or by the wall clock, which can be set and steered.
//!
//! Lock order: the scheduler's lock may be held while this module's is taken, never the other way round: what is due is taken out first, and done
//! with no lock held.

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::cpu::PerCore;
use frame::irq::IrqCx;
use refs::{NoSuspend, SpinLock, Waker, WeakRc};

use super::queue::{Queue, Ticket};
use super::{Timer, wall_clock};

const NEVER: u64 = u64::MAX;
/// So much is done in one interrupt; for what else is due comes another one.
const AT_ONCE: usize = 64;

/// Something that is to happen at a time. It belongs to whom it happens to: dropped, it does not happen any more, and nothing of it is left in
/// the queue. Until then it takes its [memory](Self::BYTES) there, also when it has happened.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an alarm that is dropped does not go off"]
pub struct Alarm {
    timeline: Timeline,
    ticket: Ticket,
}

impl Alarm {
    /// So many bytes of the heap come back with one at least.
    pub const BYTES: usize = Queue::<Due>::ENTRY_BYTES;
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.timeline.queue().with(|queue| queue.remove(&mut self.ticket));
    }
}

enum Due {
    Wake(Waker),
    Expire(WeakRc<Timer>),
    Call(fn(&IrqCx)),
}

/// What times are times of, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timeline {
    /// Time since boot.
    #[default]
    Boot,
    /// The wall clock.
    Wall,
}

impl Timeline {
    const ALL: [Timeline; 2] = [Timeline::Boot, Timeline::Wall];

    /// The time now.
    #[inline]
    pub fn now(self) -> u64 {
        match self {
            Timeline::Boot => frame::time::now(),
            Timeline::Wall => wall_clock::real_time(),
        }
    }

    /// The time since boot at which it will be `time`, as far as is known now.
    #[inline]
    fn boot_time(self, time: u64) -> u64 {
        match self {
            Timeline::Boot => time,
            Timeline::Wall => wall_clock::boot_time_at(time),
        }
    }

    fn queue(self) -> &'static SpinLock<Queue<Due>> {
        &QUEUES[self as usize]
    }
}

static QUEUES: [SpinLock<Queue<Due>>; 2] = [const { SpinLock::new(Queue::new()) }; 2];
/// What a core's hardware timer is for, on a cache line of its own: only that core touches it, but for the end of its slice.
#[repr(align(64))]
struct CoreTimer {
    /// When it goes off. That may be earlier than needed, never later.
    programmed: AtomicU64,
    /// When the time slice of what the core runs ends.
    slice_end: AtomicU64,
    /// When the first of those is due that this core has entered, or taken on when others went off.
    due: AtomicU64,
}

impl CoreTimer {
    const fn new() -> Self {
        CoreTimer { programmed: AtomicU64::new(NEVER), slice_end: AtomicU64::new(NEVER), due: AtomicU64::new(NEVER) }
    }
}

static TIMERS: PerCore<CoreTimer> = PerCore::new(CoreTimer::new());

/// Makes the timers of so many cores. At boot, before other cores run tasks.
pub fn start(cores: usize) {
    TIMERS.make(cores, CoreTimer::new);
}

/// Has `waker` woken at `deadline`.
#[inline]
pub fn wake_at(timeline: Timeline, deadline: u64, waker: Waker, cx: &Cx) -> Alarm {
    enter(timeline, deadline, Due::Wake(waker), cx)
}

/// Has `call` run when the wall clock shows `deadline`.
pub(super) fn call_at_wall(deadline: u64, call: fn(&IrqCx), cx: &impl NoSuspend) -> Alarm {
    enter(Timeline::Wall, deadline, Due::Call(call), cx)
}

/// Has a timer expire at `deadline`.
pub(super) fn expire_at(timeline: Timeline, deadline: u64, timer: WeakRc<Timer>, cx: &impl NoSuspend) -> Alarm {
    enter(timeline, deadline, Due::Expire(timer), cx)
}

fn enter(timeline: Timeline, deadline: u64, due: Due, cx: &impl NoSuspend) -> Alarm {
    let ticket = timeline.queue().lock(cx).insert(deadline, due);
    take_on(frame::cpu::current(cx), timeline.boot_time(deadline));
    Alarm { timeline, ticket }
}

/// The wall clock was set or goes at another speed: what is due by it is due at another time since boot.
pub(super) fn wall_clock_has_changed(cx: &impl NoSuspend) {
    let next = Timeline::Wall.queue().lock(cx).next();
    if let Some(next) = next {
        take_on(frame::cpu::current(cx), Timeline::Wall.boot_time(next));
    }
    keep_seconds(frame::cpu::current(cx));
}

/// Has [`went_off`] say that the time slice of `core` (the calling one) is over, at `deadline` at the latest.
#[inline(always)]
pub fn end_slice_at(core: usize, deadline: u64) {
    TIMERS[core].slice_end.store(deadline, Ordering::Relaxed);
    go_off_by(core, deadline);
}

/// The time slice of `core` ends at `deadline`: [`slice_end_was_noted`] is to be called there.
#[inline(always)]
pub fn note_slice_end(core: usize, deadline: u64) {
    TIMERS[core].slice_end.store(deadline, Ordering::Relaxed);
}

/// Somebody may have said when the time slice of `core` (the calling one) ends.
#[inline(always)]
pub fn slice_end_was_noted(core: usize) {
    go_off_by(core, TIMERS[core].slice_end.load(Ordering::Relaxed));
}

/// Has programs see the wall clock's seconds: `core` (the calling one) is going to run one, or goes on with it. Its timer goes off when the next one begins.
#[inline(always)]
pub fn keep_seconds(core: usize) {
    // If it goes off before, this is asked again then.
    if wall_clock::second_ends() < TIMERS[core].programmed.load(Ordering::Relaxed) {
        begin_second(core);
    }
}

#[cold]
fn begin_second(core: usize) {
    wall_clock::show_second();
    go_off_by(core, wall_clock::second_ends());
}

/// How soon dead objects are looked at again that others may have borrowed, in nanoseconds: they hardly ever do for longer.
const DEAD_INTERVAL: u64 = 80_000;

/// Has `core` (the calling one) interrupted soon, if it runs user code or idles then: it frees dead objects which it could not free now.
pub fn look_again_soon(core: usize) {
    take_on(core, frame::time::now() + DEAD_INTERVAL);
}

/// `core` (the calling one) runs nothing: its timer goes off only when something is due.
#[inline(always)]
pub fn core_idles(core: usize) {
    let timer = &TIMERS[core];
    let due = timer.due.load(Ordering::Relaxed);
    timer.slice_end.store(NEVER, Ordering::Relaxed);
    if timer.programmed.load(Ordering::Relaxed) < due {
        timer.programmed.store(due, Ordering::Relaxed);
        frame::time::set_alarm(Some(due).filter(|due| *due != NEVER));
    }
}

/// `core` (the calling one) does what is due at `deadline`.
#[inline(always)]
fn take_on(core: usize, deadline: u64) {
    if deadline < TIMERS[core].due.load(Ordering::Relaxed) {
        TIMERS[core].due.store(deadline, Ordering::Relaxed);
        go_off_by(core, deadline);
    }
}

#[inline(always)]
fn go_off_by(core: usize, deadline: u64) {
    if deadline < TIMERS[core].programmed.load(Ordering::Relaxed) {
        TIMERS[core].programmed.store(deadline, Ordering::Relaxed);
        frame::time::set_alarm(Some(deadline));
    }
}

/// The hardware's timer has gone off: does what is due. Whether the time slice of what this core runs is over.
pub fn went_off(cx: &IrqCx) -> bool {
    let core = frame::cpu::current(cx);
    let timer = &TIMERS[core];
    timer.programmed.store(NEVER, Ordering::Relaxed);
    let now = frame::time::now();
    wall_clock::note_time(now);
    wall_clock::show_second();
    // What other cores have taken on is theirs.
    let due = timer.due.load(Ordering::Relaxed);
    if due <= now {
        timer.due.store(NEVER, Ordering::Relaxed);
        refs::reclaim::look_once(core);
        do_due(core, cx);
    } else if due != NEVER {
        go_off_by(core, due);
    }
    let slice_end = timer.slice_end.load(Ordering::Relaxed);
    let is_over = slice_end <= now;
    if is_over {
        timer.slice_end.store(NEVER, Ordering::Relaxed);
    } else if slice_end != NEVER {
        go_off_by(core, slice_end);
    }
    is_over
}

/// Does what is due, and takes the next on.
fn do_due(core: usize, cx: &IrqCx) {
    for timeline in Timeline::ALL {
        // Nearly always there is nothing by the wall clock.
        if timeline.queue().lock(cx).next().is_some() {
            run_due(timeline, cx);
        }
    }
    for timeline in Timeline::ALL {
        let next = timeline.queue().lock(cx).next();
        if let Some(next) = next {
            take_on(core, timeline.boot_time(next));
        }
    }
}

/// Does some of what is due.
fn run_due(timeline: Timeline, cx: &IrqCx) {
    let now = timeline.now();
    for _ in 0..AT_ONCE {
        let Some(due) = timeline.queue().lock(cx).pop_due(now) else { return };
        match due {
            Due::Wake(waker) => {
                waker.wake();
            }
            Due::Expire(timer) => {
                if let Ok(timer) = timer.upgrade(cx) {
                    timer.expire(cx);
                }
            }
            Due::Call(call) => {
                call(cx);
                // It may be earlier now.
                return;
            }
        }
    }
}

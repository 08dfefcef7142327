//! The queue of everything that is to happen at a time.
//!
//! Lock order: the scheduler's lock may be held while this module's is taken, never the other way round: what is due is taken out first, and done
//! with no lock held.

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::irq::IrqCx;
use refs::reclaim::MAX_CORES;
use refs::{NoSuspend, SpinLock, Waker, WeakRc};

use super::Timer;
use super::queue::{Queue, Ticket};

const NEVER: u64 = u64::MAX;
/// So much is done in one interrupt; for what else is due comes another one.
const AT_ONCE: usize = 64;

/// Something that is to happen at a time. It belongs to whom it happens to: dropped, it does not happen any more, and nothing of it is left in
/// the queue.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an alarm that is dropped does not go off"]
pub struct Alarm(Ticket);

impl Drop for Alarm {
    fn drop(&mut self) {
        QUEUE.with(|queue| queue.remove(&self.0));
    }
}

enum Due {
    Wake(Waker),
    Expire(WeakRc<Timer>),
}

static QUEUE: SpinLock<Queue<Due>> = SpinLock::new(Queue::new());
/// When the hardware timer of each core goes off. It may go off earlier than needed, never later.
static PROGRAMMED: [AtomicU64; MAX_CORES] = [const { AtomicU64::new(NEVER) }; MAX_CORES];
/// When the time slice of what each core runs ends.
static SLICE_END: [AtomicU64; MAX_CORES] = [const { AtomicU64::new(NEVER) }; MAX_CORES];

/// Has `waker` woken at `deadline` (nanoseconds since boot).
pub fn wake_at(deadline: u64, waker: Waker, cx: &Cx) -> Alarm {
    enter(deadline, Due::Wake(waker), cx)
}

/// Has a timer expire at `deadline`.
pub(super) fn expire_at(deadline: u64, timer: WeakRc<Timer>, cx: &impl NoSuspend) -> Alarm {
    enter(deadline, Due::Expire(timer), cx)
}

fn enter(deadline: u64, due: Due, cx: &impl NoSuspend) -> Alarm {
    let ticket = QUEUE.lock(cx).insert(deadline, due);
    go_off_by(frame::cpu::current(cx), deadline);
    Alarm(ticket)
}

/// Has [`went_off`] say that the time slice of `core` (the calling one) is over, at `deadline` at the latest.
#[inline(always)]
pub fn end_slice_at(core: usize, deadline: u64) {
    SLICE_END[core].store(deadline, Ordering::Relaxed);
    go_off_by(core, deadline);
}

#[inline(always)]
fn go_off_by(core: usize, deadline: u64) {
    if deadline < PROGRAMMED[core].load(Ordering::Relaxed) {
        PROGRAMMED[core].store(deadline, Ordering::Relaxed);
        frame::time::set_alarm(Some(deadline));
    }
}

/// The hardware's timer has gone off: does what is due. Whether the time slice of what this core runs is over.
pub fn went_off(cx: &IrqCx) -> bool {
    let core = frame::cpu::current(cx);
    PROGRAMMED[core].store(NEVER, Ordering::Relaxed);
    let now = frame::time::now();
    for _ in 0..AT_ONCE {
        let Some(due) = QUEUE.lock(cx).pop_due(now) else { break };
        match due {
            Due::Wake(waker) => {
                waker.wake();
            }
            Due::Expire(timer) => {
                if let Ok(timer) = timer.upgrade(cx) {
                    timer.expire(cx);
                }
            }
        }
    }
    let mut next = QUEUE.lock(cx).next().unwrap_or(NEVER);
    let slice_end = SLICE_END[core].load(Ordering::Relaxed);
    let is_over = slice_end <= now;
    if is_over {
        SLICE_END[core].store(NEVER, Ordering::Relaxed);
    } else {
        next = next.min(slice_end);
    }
    if next != NEVER {
        go_off_by(core, next);
    }
    is_over
}

//! Waiting for a time, and no longer than until a time.
//!
//! A thread of its own keeps the deadlines of the whole program and wakes whoever has come to one. So nothing needs to know of time but
//! this file: not the ways to idle, nor the waits that a deadline may end. It is started with the first deadline.

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;
use core::time::Duration;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use refs::{Cx, Waker};

use super::cancel::{Canceled, check_canceled, park_x_async};
use super::canceler::watched_async;
use super::finish::Scope;
use super::wait::{park_async, prepare};

/// Suspends for at least so long.
pub fn sleep_async(cx: &mut Cx, time: Duration) {
    if let Some(until) = Instant::now().checked_add(time) {
        sleep_until_async(cx, until);
    } else {
        // There is no such time.
        prepare(cx);
        park_async(cx);
    }
}

/// Suspends until that time has come.
pub fn sleep_until_async(cx: &mut Cx, until: Instant) {
    while Instant::now() < until {
        wake_at(until, prepare(cx));
        if !park_async(cx) {
            return;
        }
    }
}

/// Suspends until that time has come.
///
/// # Errors
/// [`Canceled`] if the block was asked to end, before (even if the time has come) or meanwhile.
pub fn sleep_until_x_async(cx: &mut Cx, until: Instant) -> Result<(), Canceled> {
    check_canceled(cx)?;
    while Instant::now() < until {
        wake_at(until, prepare(cx));
        park_x_async(cx)?;
    }
    Ok(())
}

/// A block as [`finish_async`](super::finish_async) makes, which is [asked to end](Scope::cancel_async) at that time. Takes a stack from the
/// pool while the block lasts.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tasks::rt::{self, Canceled, sync::Semaphore, time};
///
/// let answered = Semaphore::new(0);
/// let deadline = Instant::now() + Duration::from_millis(5);
/// let answer = rt::run(|cx| time::finish_until_async(cx, deadline, |_, cx| answered.p_x_async(cx)));
/// assert_eq!(answer, Err(Canceled));
/// ```
///
/// # Panics
/// As `finish_async`; also with the panic of a cancel item that the request runs.
pub fn finish_until_async<'env, R>(
    cx: &mut Cx,
    deadline: Instant,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, &mut Cx) -> R,
) -> R {
    watched_async(cx, |waker, _| wake_at(deadline, waker), || Instant::now() >= deadline, body)
}

/// Ends the waker's wait at that time, if it lasts so long: a deadline for waits with [`prepare`]. The time may be past.
///
/// # Panics
/// If the system refuses the thread that keeps the deadlines.
pub fn wake_at(deadline: Instant, waker: Waker) {
    static TIMER: OnceLock<&'static Timer> = OnceLock::new();
    TIMER.get_or_init(Timer::start).enter(Entry { deadline, waker });
}

/// All deadlines, and the thread that waits for them.
#[derive(Default)]
struct Timer {
    deadlines: Mutex<Deadlines>,
    /// There is an earlier one than the thread waits for.
    earlier: Condvar,
}

impl Timer {
    fn start() -> &'static Timer {
        let timer: &'static Timer = alloc::boxed::Box::leak(alloc::boxed::Box::default());
        let thread = std::thread::Builder::new().name("tasks: deadlines".into());
        thread.spawn(|| timer.run()).expect("the system has room for the thread that keeps deadlines");
        timer
    }

    fn enter(&self, entry: Entry) {
        let mut deadlines = self.deadlines.lock().unwrap_or_else(PoisonError::into_inner);
        if deadlines.push(entry) {
            self.earlier.notify_one();
        }
    }

    fn run(&self) -> ! {
        let mut deadlines = self.deadlines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            if let Some(waker) = deadlines.pop_due(now) {
                drop(deadlines);
                waker.wake();
                deadlines = self.deadlines.lock().unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            deadlines = match deadlines.next() {
                None => self.earlier.wait(deadlines).unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    let waited = self.earlier.wait_timeout(deadlines, next - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Who is to be woken when.
#[derive(Default)]
struct Deadlines {
    entries: BinaryHeap<Entry>,
    /// When there are so many, those whose wait has ended otherwise are thrown out.
    crowded: usize,
}

impl Deadlines {
    /// Whether it is the earliest one now.
    fn push(&mut self, entry: Entry) -> bool {
        if self.entries.len() >= self.crowded.max(64) {
            self.entries.retain(|entry| entry.waker.is_waiting());
            self.crowded = self.entries.len() * 2;
        }
        let is_earliest = self.next().is_none_or(|next| entry.deadline < next);
        self.entries.push(entry);
        is_earliest
    }

    fn next(&self) -> Option<Instant> {
        self.entries.peek().map(|entry| entry.deadline)
    }

    fn pop_due(&mut self, now: Instant) -> Option<Waker> {
        self.next().filter(|next| *next <= now)?;
        self.entries.pop().map(|entry| entry.waker)
    }
}

struct Entry {
    deadline: Instant,
    waker: Waker,
}

/// The heap gives the greatest first: the earlier is greater.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.deadline.cmp(&self.deadline)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.deadline == other.deadline
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use refs::WakeSlot;

    use super::*;

    #[test]
    fn those_due_are_taken_in_the_order_of_their_deadlines() {
        static SLOTS: [WakeSlot; 3] = [const { WakeSlot::new(|_| ()) }; 3];
        let wakers = SLOTS.each_ref().map(WakeSlot::prepare);
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut deadlines = Deadlines::default();
        assert!(deadlines.push(Entry { deadline: after(3), waker: wakers[0] }));
        assert!(deadlines.push(Entry { deadline: after(1), waker: wakers[1] }));
        assert!(!deadlines.push(Entry { deadline: after(2), waker: wakers[2] }));
        assert!(deadlines.pop_due(start).is_none());
        assert_eq!(deadlines.next(), Some(after(1)));
        assert!(deadlines.pop_due(after(2)) == Some(wakers[1]));
        assert!(deadlines.pop_due(after(2)) == Some(wakers[2]));
        assert!(deadlines.pop_due(after(2)).is_none());
    }

    #[test]
    fn deadlines_of_waits_that_ended_otherwise_do_not_pile_up() {
        static SLOT: WakeSlot = WakeSlot::new(|_| ());
        let mut deadlines = Deadlines::default();
        for _ in 0..10_000 {
            let waker = SLOT.prepare();
            deadlines.push(Entry { deadline: Instant::now() + Duration::from_secs(3600), waker });
            SLOT.finish();
        }
        assert!(deadlines.entries.len() < 200, "{}", deadlines.entries.len());
    }
}

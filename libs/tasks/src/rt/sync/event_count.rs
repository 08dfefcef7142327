//! [`EventCount`]: a number that only grows, and can be waited for.

use alloc::collections::BTreeMap;
use core::fmt;

use refs::{Cx, Gone, SpinLock, Waker};

use super::part::{NotDone, Part, Reach};
use super::waiters::wait_async;
use crate::rt::cancel::wait_x_async;
use crate::rt::{Canceled, check_canceled, prepare};

/// What reports say of those who wait.
const WHAT: &&str = &"an event count";

/// A count of events. Those who wait for a value are woken when it is reached: lower values first, and of one value first come first
/// served.
pub struct EventCount {
    state: SpinLock<State>,
}

struct State {
    count: u64,
    /// By the value that is waited for and the order of arrival.
    waiting: BTreeMap<(u64, u64), Waker>,
    arrivals: u64,
}

impl EventCount {
    const_fn! {
        /// A count of 0.
        pub fn new() -> Self {
            EventCount { state: SpinLock::new(State { count: 0, waiting: BTreeMap::new(), arrivals: 0 }) }
        }
    }

    /// How many events there were.
    pub fn read(&self) -> u64 {
        self.state.with(|state| state.count)
    }

    /// Adds `events` and wakes those for whom there are enough now. The count does not grow past the largest number.
    pub fn advance(&self, events: u64) {
        self.state.with(|state| state.count = state.count.saturating_add(events));
        while let Some(waker) = self.state.with(State::take_reached) {
            waker.wake();
        }
    }

    /// Waits until the count is at least `value`; what it was when that was found.
    pub fn await_async(&self, cx: &mut Cx, value: u64) -> u64 {
        match reach_async(&self, cx, value) {
            Ok(count) => count,
            Err(never) => match never {},
        }
    }

    /// Waits as [`await_async`](Self::await_async) does.
    ///
    /// # Errors
    /// [`Canceled`] if the block was asked to end, before or before the count had the value.
    pub fn await_x_async(&self, cx: &mut Cx, value: u64) -> Result<u64, Canceled> {
        reach_x_async(&self, cx, value).map_err(|_| Canceled)
    }

    /// The count if it is reached; else enters the running task, which has to wait then.
    fn read_or_enter(&self, cx: &Cx, value: u64) -> Result<u64, (u64, u64)> {
        let mut state = self.state.lock(cx);
        if state.count >= value {
            return Ok(state.count);
        }
        state.arrivals += 1;
        let key = (value, state.arrivals);
        state.waiting.insert(key, prepare(cx));
        Err(key)
    }

    fn leave(&self, key: (u64, u64)) {
        self.state.with(|state| state.waiting.remove(&key));
    }
}

impl fmt::Debug for EventCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventCount").field("count", &self.read()).finish_non_exhaustive()
    }
}

impl<O> Part<O, EventCount> {
    /// Waits as [`EventCount::await_async`] does.
    ///
    /// # Errors
    /// [`Gone`] if the count is destroyed, before or meanwhile.
    pub fn await_async(self, cx: &mut Cx, value: u64) -> Result<u64, Gone> {
        reach_async(&self, cx, value)
    }

    /// Waits as [`EventCount::await_x_async`] does.
    ///
    /// # Errors
    /// [`NotDone`] if the count is destroyed, or the block was asked to end.
    pub fn await_x_async(self, cx: &mut Cx, value: u64) -> Result<u64, NotDone> {
        reach_x_async(&self, cx, value)
    }
}

impl Default for EventCount {
    fn default() -> Self {
        EventCount::new()
    }
}

impl State {
    fn take_reached(&mut self) -> Option<Waker> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= self.count).then(|| first.remove())
    }
}

impl Drop for State {
    /// Those who wait at what is destroyed look again.
    fn drop(&mut self) {
        for waker in self.waiting.values() {
            waker.wake();
        }
    }
}

fn reach_async<P: Reach<EventCount>>(place: &P, cx: &mut Cx, value: u64) -> Result<u64, P::Lost> {
    loop {
        match place.with(cx, |events| events.read_or_enter(cx, value))? {
            Ok(count) => return Ok(count),
            // Nothing is lost by whoever unwinds: the value stays reached. An entry that is left over is thrown out when it is reached.
            Err(_) => wait_async(cx, WHAT, |_| ()),
        };
    }
}

fn reach_x_async<P: Reach<EventCount>>(place: &P, cx: &mut Cx, value: u64) -> Result<u64, NotDone>
where
    NotDone: From<P::Lost>,
{
    check_canceled(cx)?;
    match place.with(cx, |events| events.read_or_enter(cx, value))? {
        Ok(count) => Ok(count),
        Err(key) => match wait_x_async(cx, WHAT, |_| ()) {
            Ok(()) => Ok(place.with(cx, EventCount::read)?),
            Err(canceled) => {
                place.with(cx, |events| events.leave(key))?;
                Err(canceled.into())
            }
        },
    }
}

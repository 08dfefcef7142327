//! [`Semaphore`]: a number of units to be had.

use core::fmt;

use refs::{Cx, Gone, SpinLock};

use super::part::{NotDone, Part, Reach};
use super::waiters::{Waiters, wait_async};
use crate::rt::cancel::wait_x_async;
use crate::rt::{Canceled, check_canceled, prepare};

/// What reports say of those who wait.
const WHAT: &&str = &"a semaphore or lock";

/// A number of units. [`p_async`](Self::p_async) takes one, and waits while there is none; [`v`](Self::v) gives one, to the task that has
/// waited longest if there is any.
pub struct Semaphore {
    state: SpinLock<State>,
}

struct State {
    /// More than 0 only while nobody waits.
    units: usize,
    waiters: Waiters,
}

impl Semaphore {
    const_fn! {
        /// A semaphore with `units` to be had.
        pub fn new(units: usize) -> Self {
            Semaphore { state: SpinLock::new(State { units, waiters: Waiters::new() }) }
        }
    }

    /// Takes a unit; waits for its turn while there is none.
    pub fn p_async(&self, cx: &mut Cx) {
        match take_async(&self, cx) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Takes a unit as [`p_async`](Self::p_async) does.
    ///
    /// # Errors
    /// [`Canceled`] if the block was asked to end, before (even if there is a unit) or before a unit was handed over; then none is taken.
    pub fn p_x_async(&self, cx: &mut Cx) -> Result<(), Canceled> {
        take_x_async(&self, cx).map_err(|_| Canceled)
    }

    /// Takes a unit if there is one now.
    pub fn try_p(&self) -> bool {
        self.state.with(State::try_p)
    }

    /// Gives a unit. There are never more than `usize::MAX`: one more is lost.
    pub fn v(&self) {
        while let Some(first) = self.state.with(|state| {
            let first = state.waiters.pop();
            state.units = state.units.saturating_add(usize::from(first.is_none()));
            first
        }) {
            if first.wake() {
                return;
            }
        }
    }

    /// How many units there are now.
    pub fn units(&self) -> usize {
        self.state.with(|state| state.units)
    }

    /// Takes a unit, or enters the running task, which has to wait then.
    fn try_p_or_enter(&self, cx: &Cx) -> bool {
        let mut state = self.state.lock(cx);
        let took = state.try_p();
        if !took {
            state.waiters.push(prepare(cx));
        }
        took
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("units", &self.units()).finish_non_exhaustive()
    }
}

impl<O> Part<O, Semaphore> {
    /// Takes a unit as [`Semaphore::p_async`] does.
    ///
    /// # Errors
    /// [`Gone`] if the semaphore is destroyed, before or meanwhile.
    pub fn p_async(self, cx: &mut Cx) -> Result<(), Gone> {
        take_async(&self, cx)
    }

    /// Takes a unit as [`Semaphore::p_x_async`] does.
    ///
    /// # Errors
    /// [`NotDone`] if the semaphore is destroyed, or the block was asked to end.
    pub fn p_x_async(self, cx: &mut Cx) -> Result<(), NotDone> {
        take_x_async(&self, cx)
    }
}

impl State {
    fn try_p(&mut self) -> bool {
        let took = self.units > 0;
        self.units -= usize::from(took);
        took
    }
}

fn take_async<P: Reach<Semaphore>>(place: &P, cx: &mut Cx) -> Result<(), P::Lost> {
    while !place.with(cx, |semaphore| semaphore.try_p_or_enter(cx))? {
        let handed = wait_async(cx, WHAT, |cx| {
            let _ = place.with(cx, Semaphore::v);
        });
        if handed {
            // Or it was destroyed.
            return place.with(cx, |_| ());
        }
    }
    Ok(())
}

fn take_x_async<P: Reach<Semaphore>>(place: &P, cx: &mut Cx) -> Result<(), NotDone>
where
    NotDone: From<P::Lost>,
{
    check_canceled(cx)?;
    if !place.with(cx, |semaphore| semaphore.try_p_or_enter(cx))? {
        wait_x_async(cx, WHAT, |cx| {
            let _ = place.with(cx, Semaphore::v);
        })?;
        place.with(cx, |_| ())?;
    }
    Ok(())
}

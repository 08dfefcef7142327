//! A call of semop(2): it does what it wants, or waits until another call has done it in its place.
//!
//! Who waits owns a [`Waiter`], in which its outcome is entered; the set knows that by name, with what is to be woken. Both ends of a wait are made with the set locked: who completes it takes it out of the set and enters the outcome,
//! and who gives up (a signal, a time-out) takes itself out. So if it is no longer in the set there is an outcome, and that counts ([`Operations::end`]): nothing is done for nobody. The
//! outcome lives as long as the call, and not only as the set: who was let on before IPC_RMID has succeeded.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use refs::{StrongRc, Waker, WeakRc};

use super::operations::{Operation, Refused, Request};
use super::state::Place;
use super::{Begun, SETS, Set, left};
use crate::credentials::Credentials;
use crate::error::{Errno, Result};
use crate::ipc::{READ, WRITE};
use crate::step::{Step, Stop, TimeSlice};

/// So many operations are tried twice, before a wait and when it begins, before interrupts are let in.
const OPERATIONS_AT_ONCE: usize = 512;
/// No outcome yet.
const WAITS: u32 = u32::MAX;

/// A call that waits.
pub struct Waiter {
    /// What it wants.
    pub(super) request: Request,
    /// [`WAITS`], 0, or the number of an error.
    outcome: AtomicU32,
}

impl Waiter {
    /// Its wait has ended.
    pub(super) fn complete(&self, outcome: Result<()>) {
        self.outcome.store(outcome.map_or_else(|error| error.number().into(), |()| 0), Ordering::Release);
    }

    /// How, if it has.
    fn outcome(&self) -> Option<Result<()>> {
        match self.outcome.load(Ordering::Acquire) {
            WAITS => None,
            0 => Some(Ok(())),
            error => Some(Err(Errno::of_number(error).unwrap_or(Errno::EINVAL))),
        }
    }
}

/// A semop(2) that is under way. Whoever ends it, whatever came of it, calls [`Operations::end`].
pub struct Operations {
    set: WeakRc<Set>,
    at: At,
}

/// How far it is.
enum At {
    /// Nothing is done yet. Whether it may was checked; interrupts were let in before it begins to wait.
    Beginning { request: Request, is_checked: bool, has_let_in: bool },
    /// It waits, or did.
    Waiting { waiter: StrongRc<Waiter>, place: Place },
    /// It is done, and who can go on now is to be let on.
    Done(Option<Begun>),
}

impl Operations {
    /// Nothing is done yet. `by`: the calling process.
    ///
    /// # Errors
    /// EINVAL: there is no such set.
    pub fn new(id: i32, all: Vec<Operation>, by: u32, cx: &Cx) -> Result<Self> {
        let at = At::Beginning { request: Request { all, by }, is_checked: false, has_let_in: false };
        Ok(Operations { set: SETS.find(id, cx)?.downgrade(), at })
    }

    /// Checks them.
    ///
    /// # Errors
    /// EFBIG: there is no such semaphore; EACCES; EIDRM.
    pub fn check(&self, who: &Credentials, cx: &Cx) -> Result<()> {
        let set = self.set.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        let At::Beginning { request, .. } = &self.at else { return Ok(()) };
        if request.range().1 >= set.len {
            return Err(Errno::EFBIG);
        }
        set.permissions.lock(cx).check(wanted(request), who)
    }

    /// The set, if something is to be undone there at the process's end for the first time.
    pub fn begins_undo(&self, cx: &Cx) -> Option<WeakRc<Set>> {
        let At::Beginning { request, .. } = &self.at else { return None };
        let set = self.set.upgrade(cx).ok().filter(|_| request.undoes())?;
        let begins = !set.state.lock(cx).has_undo(request.by);
        begins.then_some(self.set)
    }

    /// Does them, if that can be done now; waits until another has. `who` may have lost the permission since it was checked.
    ///
    /// # Errors
    /// EAGAIN: it would wait and must not; ERANGE; EACCES; EIDRM; ENOMEM. `Block`, with the waker entered. `Pause`, `Again`.
    pub fn step(&mut self, who: &Credentials, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        match &mut self.at {
            At::Done(Some(begun)) => begun.step(cx),
            At::Done(None) => Ok(()),
            At::Waiting { waiter, place } => {
                let waiter = waiter.get(cx);
                let is_in_set = |set: &Set, waker| set.state.lock(cx).set_waker(*place, waker);
                if let Some(outcome) = waiter.outcome() {
                    return Ok(outcome?);
                }
                match (waker, self.set.upgrade(cx)) {
                    (None, Ok(_)) => Err(Stop::Block),
                    (Some(waker), Ok(set)) if is_in_set(&set, waker) => Err(Stop::Block),
                    _ => Ok(waiter.outcome().unwrap_or(Err(Errno::EIDRM))?),
                }
            }
            At::Beginning { request, is_checked, has_let_in } => {
                if waker.is_some() {
                    if request.all.len() > OPERATIONS_AT_ONCE && !core::mem::replace(has_let_in, true) {
                        return Err(Stop::Again);
                    }
                    crate::memory::admit()?;
                }
                let set = self.set.upgrade(cx).map_err(|_| Errno::EIDRM)?;
                let mut state = set.settled(&mut TimeSlice::default(), cx)?;
                if !*is_checked {
                    set.permissions.lock(cx).check(wanted(request), who)?;
                    *is_checked = true;
                }
                match (state.operate(request), waker) {
                    (Ok(change), _) => {
                        drop(state);
                        let begun = change.map(|change| Begun { set: self.set, change });
                        self.at = At::Done(begun);
                        begun.map_or(Ok(()), |begun| begun.step(cx))
                    }
                    (Err(Refused::Errno(error)), _) => Err(error.into()),
                    (Err(Refused::Wait(_)), None) => Err(Stop::Block),
                    (Err(Refused::Wait(operation)), Some(waker)) => {
                        let request = Request { all: core::mem::take(&mut request.all), by: request.by };
                        let waiter = StrongRc::new(Waiter { request, outcome: AtomicU32::new(WAITS) });
                        let place = state.enter(&waiter, operation, waker, cx);
                        drop(state);
                        self.at = At::Waiting { waiter, place };
                        Err(Stop::Block)
                    }
                }
            }
        }
    }

    /// All who can go on after what was done before are let on, this call too: before it gives up.
    pub fn catch_up(&self, cx: &Cx) -> Option<Begun> {
        let set = self.set.upgrade(cx).ok().filter(|_| matches!(self.at, At::Waiting { .. }))?;
        Some(set.all_begun(self.set, cx))
    }

    /// It waits no more. What came of it, for which the caller has another outcome if somebody was quicker.
    ///
    /// # Errors
    /// Those of the outcome.
    pub fn end(self, outcome: Result<()>, cx: &Cx) -> Result<()> {
        let (waiter, place) = match self.at {
            At::Waiting { waiter, place } => (waiter, place),
            At::Done(Some(begun)) if outcome.is_err() => {
                left::leave(begun, cx);
                return outcome;
            }
            _ => return outcome,
        };
        if let Ok(set) = self.set.upgrade(cx) {
            set.state.lock(cx).leave(place);
        }
        let outcome = waiter.get(cx).outcome().unwrap_or(outcome);
        waiter.end_unseen();
        outcome
    }
}

/// What somebody must be allowed to do.
fn wanted(request: &Request) -> u32 {
    if request.alters() { WRITE } else { READ }
}

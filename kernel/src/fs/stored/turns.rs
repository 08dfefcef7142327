//! [`Turns`]: long work of a format in pieces, wherever a step may be: also in page faults, which know only what is absent.
//!
//! Where the [`TimeSlice`] of a call of a format's function is over, and what was done so far is kept, the function ends as if a block were absent. What is waited for is woken at once: so the driver lets interrupts in and others have their turn, and runs the step again, which goes on where it was. One that needs what another core is working at waits until that has done a piece.
//!
//! Owner: the format, and so the volume. Its end wakes nobody: who waits is in a call on the volume, or is woken by the core that works.

use core::cell::RefCell;

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, Waker, WeakRc};

use super::format::Said;
use super::{Problem, View};
use crate::step::{Source, TimeSlice};

/// What there is to wait for where work is done in pieces.
pub(super) struct Turns {
    name: WeakRc<Turns>,
    /// Who waits for what another core works at.
    busy: WaitList,
}

/// What is waited for: others' turn, and that another core is through with a piece.
const TURN: u64 = 0;
const BUSY: u64 = 1;

impl Source for Turns {
    fn watch(&self, what: u64, waker: Waker, cx: &Cx) {
        match what {
            BUSY => self.busy.register(waker, cx),
            _ => _ = waker.wake(),
        }
    }
}

impl Turns {
    pub fn new() -> StrongRc<Self> {
        StrongRc::new_cyclic(|name| Turns { name, busy: WaitList::new() })
    }

    /// The call waits until another core has done a piece. It is to end as if a block were absent.
    pub fn wait_while_busy(&self, view: &View<'_>) {
        self.wait_for(view, BUSY);
    }

    /// The call is to end as if a block were absent, and goes on when others had their turn.
    pub fn give_way(&self, view: &View<'_>) {
        self.wait_for(view, TURN);
    }

    /// A piece was done.
    pub fn wake_busy(&self) {
        self.busy.wake_all();
    }

    fn wait_for(&self, view: &View<'_>, what: u64) {
        let cx = view.cx();
        // What is used here is there.
        if let Ok(this) = self.name.upgrade(cx) {
            view.wait_for(this.unsize::<dyn Source>(|turns| turns, cx).downgrade(), what);
        }
    }
}

/// The turn of one call of a format's function.
pub(super) struct Turn(RefCell<TimeSlice>);

impl Default for Turn {
    fn default() -> Self {
        // A short one: a call of the VFS's may call several functions of a format, and copies what comes of it.
        Turn(RefCell::new(TimeSlice::of_end()))
    }
}

impl Turn {
    /// Asked between two pieces of work, which is kept: whether others must have their turn. Then the call is to end as if a block were absent.
    pub fn is_over(&self, turns: &StrongRc<Turns>, view: &View<'_>) -> bool {
        let is_over = self.0.borrow_mut().is_over();
        if is_over {
            turns.get(view.cx()).wait_for(view, TURN);
        }
        is_over
    }
}

/// What was found out of a file, and is added to by one call at a time. It may be long: so it is moved, never copied, and nothing is locked while it is used.
pub(super) struct FoundOut<T>(SpinLock<Option<T>>);

impl<T: Default> Default for FoundOut<T> {
    fn default() -> Self {
        FoundOut(SpinLock::new(Some(T::default())))
    }
}

impl<T> FoundOut<T> {
    /// What was found out already.
    pub fn new(known: T) -> Self {
        FoundOut(SpinLock::new(Some(known)))
    }

    /// Adds to it where nobody can be at it.
    pub fn change(&self, change: impl FnOnce(&mut T) + Send) {
        self.0.with(|known| known.as_mut().map(change));
    }

    /// Runs a function that uses it and adds to it.
    ///
    /// # Errors
    /// What the function says; `Absent` while another core is at it.
    pub fn with<R, E: Into<Problem>>(
        &self,
        turns: &StrongRc<Turns>,
        view: &View<'_>,
        with: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Said<R> {
        let Some(mut known) = self.0.lock(view.cx()).take() else {
            turns.get(view.cx()).wait_while_busy(view);
            return Err(Problem::Absent);
        };
        let outcome = with(&mut known);
        *self.0.lock(view.cx()) = Some(known);
        if !view.is_alone() {
            turns.get(view.cx()).wake_busy();
        }
        outcome.map_err(Into::into)
    }
}

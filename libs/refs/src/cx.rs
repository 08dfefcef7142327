//! [`Cx`]: the right to suspend, as a value.

use core::marker::PhantomData;

use crate::mode::{Mode, Shared};

/// The context of the running task: holding `&mut Cx` is the right to suspend it.
///
/// Exactly one `Cx` is reachable from one stack. It is made by the scheduler that starts a task and by nothing else, and is
/// neither `Clone`, `Copy` nor `Send`.
#[derive(Debug)]
pub struct Cx {
    worker: *const (),
    /// What the task borrows just now.
    #[cfg(feature = "check-temps")]
    ledger: crate::ledger::Ledger,
    _on_this_stack_only: PhantomData<*mut ()>,
}

impl Cx {
    /// Makes the context of a task that is about to start.
    ///
    /// # Safety
    /// The caller is the scheduler; no other `Cx` is reachable from the stack on which this one is used, and every function
    /// that suspends that stack takes this one by `&mut`. If it borrows or frees objects, a
    /// [`reclaim::Core`](crate::reclaim::Core) of this thread exists as long as this does, and is not idle. `worker` is whatever the scheduler wants back from
    /// [`worker`](Self::worker).
    pub unsafe fn new(worker: *const ()) -> Self {
        Cx {
            worker,
            #[cfg(feature = "check-temps")]
            ledger: crate::ledger::Ledger::new(true),
            _on_this_stack_only: PhantomData,
        }
    }

    /// The scheduler's own pointer, as given to [`new`](Self::new).
    #[inline(always)]
    pub fn worker(&self) -> *const () {
        self.worker
    }

    /// Says that the task goes on under another worker (it was moved to another core while it was suspended).
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline(always)]
    pub unsafe fn set_worker(&mut self, worker: *const ()) {
        self.worker = worker;
    }

    /// With the feature `check-temps`: panics if a [`TempRc`](crate::TempRc) that borrows this context still exists, which only
    /// wrong `unsafe` code can bring about. The message names the type and the place where it was taken.
    #[inline(always)]
    pub fn check_nothing_is_held(&mut self) {
        #[cfg(feature = "check-temps")]
        {
            if let Err(held) = self.ledger.close() {
                panic!("a task suspends while it holds {held}");
            }
            self.ledger.open();
        }
    }
}

/// A context in which the holder does not suspend while it borrows it: `&Cx`, or an interrupt handler's context. Objects of the mode
/// `M` are borrowed from it; locks take any.
///
/// # Safety
/// As long as an implementor is borrowed, nothing frees an object of the mode that is borrowed meanwhile: its core does not report a
/// suspension, and, where `M` is [`Local`](crate::Local), the thread has no `&mut Cx`.
pub unsafe trait NoSuspend<M: Mode = Shared> {
    /// Whether this is an interrupt handler, which came in between what the running task does.
    const IS_INTERRUPT: bool = false;

    /// Where borrows are noted, if they are.
    #[cfg(feature = "check-temps")]
    #[doc(hidden)]
    fn ledger(&self) -> Option<&crate::ledger::Ledger> {
        None
    }
}

// SAFETY: suspending takes `&mut Cx`, which no one can have while `&Cx` is borrowed.
unsafe impl<M: Mode> NoSuspend<M> for Cx {
    #[cfg(feature = "check-temps")]
    fn ledger(&self) -> Option<&crate::ledger::Ledger> {
        Some(&self.ledger)
    }
}

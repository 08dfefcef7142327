//! How a task waits for a channel.

use core::cell::RefCell;

use refs::{Cx, Waker};
use tasks::rt;

use crate::{Error, Patience};

/// What a wait does when the task's block is [asked to end](rt::Scope::cancel_async).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnCancel {
    /// It ends, with [`Error::Canceled`].
    Ends,
    /// Nothing: it is not cancellable.
    GoesOn,
}

impl OnCancel {
    /// Whether the wait is to end now.
    #[inline]
    pub(super) fn check(self, cx: &Cx) -> Result<(), Error> {
        if self == OnCancel::Ends && rt::is_cancel_requested(cx) { Err(Error::Canceled) } else { Ok(()) }
    }
}

/// Repeats `step` until it gives something: yields in between while that pays, then parks. `enter` registers the waker wherever
/// something may happen.
///
/// # Errors
/// Those of `step`, and [`Error::Canceled`] if `on_cancel` says so, before the first step or between two.
pub(super) fn wait_async<T>(
    cx: &mut Cx,
    on_cancel: OnCancel,
    patience: &RefCell<Patience>,
    enter: impl Fn(Waker, &Cx),
    mut step: impl FnMut(&Cx) -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let limit = patience.borrow().limit();
    for tries in 0..limit {
        on_cancel.check(cx)?;
        if let Some(result) = step(cx)? {
            patience.borrow_mut().paid(tries);
            return Ok(result);
        }
        rt::yield_async(cx);
    }
    patience.borrow_mut().was_in_vain();
    loop {
        on_cancel.check(cx)?;
        let waker = rt::prepare(cx);
        enter(waker, cx);
        match step(cx) {
            Ok(None) if on_cancel == OnCancel::GoesOn => _ = rt::park_async(cx),
            Ok(None) => rt::park_x_async(cx).map_err(|_| Error::Canceled)?,
            Ok(Some(result)) => {
                rt::finish_wait(cx);
                return Ok(result);
            }
            Err(error) => {
                rt::finish_wait(cx);
                return Err(error);
            }
        }
    }
}

//! [`Canceler`]: asking a block to end from another thread.
//!
//! A request is made by a task of the block's own thread (`cancel.rs`). So a block that others may end has a task beside it that
//! waits for them to ask, and for the end of the block.

use core::cell::Cell;
use core::fmt;

use refs::{Cx, WaitList, Waker};

use super::finish::{Scope, finish_async};
use super::wait::{finish_wait, park_async, prepare};
use crate::atomic::{AtomicBool, Ordering};

/// Asks blocks to end early, from any thread: those that were opened [with it](Self::finish_async).
///
/// ```
/// use tasks::rt::{self, Canceled, Canceler, sync::Semaphore};
///
/// let (hang_up, never) = (Canceler::new(), Semaphore::new(0));
/// std::thread::scope(|threads| {
///     threads.spawn(|| {
///         let answer = rt::run(|cx| hang_up.finish_async(cx, |_, cx| never.p_x_async(cx)));
///         assert_eq!(answer, Err(Canceled));
///     });
///     hang_up.cancel();
/// });
/// ```
#[derive(Default)]
pub struct Canceler {
    is_requested: AtomicBool,
    waiting: WaitList,
}

impl fmt::Debug for Canceler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Canceler");
        out.field("is_cancel_requested", &self.is_cancel_requested()).finish_non_exhaustive()
    }
}

impl Canceler {
    /// One that has not been asked.
    pub const fn new() -> Self {
        Canceler { is_requested: AtomicBool::new(false), waiting: WaitList::new() }
    }

    /// Asks all blocks that were opened with this one, and those to come, to end early. Returns at once: each thread asks its blocks when it
    /// next looks for a task to run.
    pub fn cancel(&self) {
        // First: whoever enters the list after it was emptied looks at it then.
        self.is_requested.store(true, Ordering::SeqCst);
        self.waiting.wake_all();
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancel_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }

    /// A block as [`finish_async`](super::finish_async) makes, which is [asked to end](Scope::cancel_async) when this one is. Takes a stack
    /// from the pool while the block lasts.
    ///
    /// # Panics
    /// As `finish_async`; also with the panic of a cancel item that the request runs.
    pub fn finish_async<'env, R>(
        &self,
        cx: &mut Cx,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, &mut Cx) -> R,
    ) -> R {
        let enter = |waker, cx: &Cx| self.waiting.register(waker, cx);
        watched_async(cx, enter, || self.is_cancel_requested(), body)
    }
}

/// Runs a block that is asked to end as soon as `is_requested`. `enter` has a waker woken when that may have become true.
pub(crate) fn watched_async<'env, R>(
    cx: &mut Cx,
    enter: impl Fn(Waker, &Cx),
    is_requested: impl Fn() -> bool,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, &mut Cx) -> R,
) -> R {
    let watch = Watch { waker: Cell::new(None), is_over: Cell::new(false) };
    finish_async(cx, |around, cx| {
        around.spawn_async(cx, |cx| {
            loop {
                let waker = prepare(cx);
                watch.waker.set(Some(waker));
                enter(waker, cx);
                let is_requested = is_requested();
                if is_requested || watch.is_over.get() {
                    finish_wait(cx);
                    if is_requested {
                        around.cancel_async(cx);
                    }
                    return;
                }
                park_async(cx);
            }
        });
        let _over = Over(&watch);
        finish_async(cx, body)
    })
}

/// What the task beside a block waits for.
struct Watch {
    waker: Cell<Option<Waker>>,
    is_over: Cell<bool>,
}

/// Ends the watch, also when the block panics.
struct Over<'a>(&'a Watch);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }
}

//! [`JoinHandle`]: a task's value, for whoever waits for it.
//!
//! Most tasks have none: their block's end is what is waited for, and starting them costs no allocation. A task with a handle has a piece of
//! the heap in common with it, which holds the value until it is asked for.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::fmt;

use refs::{Cx, Waker};

use super::awe::AweRef;
use super::cancel::{Canceled, wait_x_async};
use super::finish::{Caught, Payload, Scope, catch_async, is_aborted, keep_first, value_or_resume};
use super::layout::Finish;
use super::runtime::current;
use super::wait::{park_caught_async, prepare};

/// What reports say of those who wait.
const WHAT: &&str = &"the end of a task";

/// The right to a task's value: see [`Scope::spawn_with_handle_async`].
///
/// Dropping it leaves the task alone: it runs on, its value is dropped, and a panic of it is raised by its block.
pub struct JoinHandle<'scope, T> {
    shared: Rc<Shared<T>>,
    block: &'scope Finish,
}

/// What a task and its handle have in common.
struct Shared<T> {
    task: Cell<Option<AweRef>>,
    progress: RefCell<Progress<T>>,
}

enum Progress<T> {
    Runs {
        joiner: Option<Waker>,
    },
    Ended(Caught<T>),
    /// Somebody has the outcome.
    Joined,
}

/// Why a task has no value: it panicked, or was [aborted](super::abort_async).
pub struct JoinError(Payload);

impl<'scope> Scope<'scope, '_> {
    /// Starts a task as [`spawn_async`](Self::spawn_async) does, whose value can be [waited for](JoinHandle::join_async).
    ///
    /// ```
    /// use tasks::rt;
    ///
    /// let sum = rt::run(|cx| {
    ///     rt::finish_async(cx, |scope, cx| {
    ///         let parts = [1, 2, 3].map(|part| {
    ///             scope.spawn_with_handle_async(cx, move |cx| {
    ///                 rt::yield_async(cx);
    ///                 part * 10
    ///             })
    ///         });
    ///         parts.map(|part| part.join_async(cx).expect("no panic")).iter().sum::<i32>()
    ///     })
    /// });
    /// assert_eq!(sum, 60);
    /// ```
    ///
    /// # Panics
    /// As `spawn_async`.
    pub fn spawn_with_handle_async<T: 'scope>(
        &'scope self,
        cx: &mut Cx,
        task: impl FnOnce(&mut Cx) -> T + 'scope,
    ) -> JoinHandle<'scope, T> {
        let progress = RefCell::new(Progress::Runs { joiner: None });
        let shared = Rc::new(Shared { task: Cell::new(None), progress });
        let of_task = shared.clone();
        self.spawn_async(cx, move |cx| {
            of_task.task.set(Some(current(cx)));
            let outcome = catch_async(cx, |cx| task(cx));
            if Rc::strong_count(&of_task) == 1 {
                // Nobody can ask for it. A panic is the block's.
                drop(value_or_resume(outcome));
                return;
            }
            if let Progress::Runs { joiner: Some(joiner) } = of_task.progress.replace(Progress::Ended(outcome)) {
                joiner.wake();
            }
        });
        JoinHandle { shared, block: &self.block }
    }
}

impl<T> JoinHandle<'_, T> {
    /// Waits for the task's end, and takes its value.
    ///
    /// # Errors
    /// [`JoinError`] if the task panicked or was aborted. The block does not raise that panic then.
    pub fn join_async(self, cx: &mut Cx) -> Result<T, JoinError> {
        loop {
            if let Some(outcome) = self.shared.take_or_enter(cx) {
                return outcome.map_err(JoinError);
            }
            // Woken, or to be aborted where nothing can unwind: it looks again.
            value_or_resume(park_caught_async(cx, WHAT));
        }
    }

    /// Waits as [`join_async`](Self::join_async) does. Not again for a task whose outcome was taken.
    ///
    /// # Errors
    /// [`Canceled`] if the block was asked to end before the task had ended; then the handle is as before.
    ///
    /// # Panics
    /// If the outcome was taken before.
    pub fn join_x_async(&mut self, cx: &mut Cx) -> Result<Result<T, JoinError>, Canceled> {
        loop {
            if let Some(outcome) = self.shared.take_or_enter(cx) {
                return Ok(outcome.map_err(JoinError));
            }
            wait_x_async(cx, WHAT, |_| ())?;
        }
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        !matches!(*self.shared.progress.borrow(), Progress::Runs { .. })
    }

    /// The task's name, for [`abort_async`](super::abort_async) and others.
    pub fn task(&self) -> AweRef {
        self.shared.task.get().expect("a task runs before its handle is returned")
    }
}

impl<T> Shared<T> {
    /// The outcome if there is one; else the running task is entered, which has to wait then.
    fn take_or_enter(&self, cx: &Cx) -> Option<Caught<T>> {
        let mut progress = self.progress.borrow_mut();
        match core::mem::replace(&mut *progress, Progress::Joined) {
            Progress::Ended(outcome) => Some(outcome),
            Progress::Runs { .. } => {
                *progress = Progress::Runs { joiner: Some(prepare(cx)) };
                None
            }
            Progress::Joined => panic!("the task was joined already"),
        }
    }
}

impl<T> Drop for JoinHandle<'_, T> {
    fn drop(&mut self) {
        let progress = self.shared.progress.replace(Progress::Joined);
        match progress {
            Progress::Ended(Err(payload)) => keep_first(self.block, payload),
            Progress::Ended(Ok(value)) => drop(value),
            // The task finds itself alone.
            Progress::Runs { .. } => _ = self.shared.progress.replace(progress),
            Progress::Joined => {}
        }
    }
}

impl<T> fmt::Debug for JoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("JoinHandle");
        out.field("task", &self.task()).field("is_finished", &self.is_finished()).finish_non_exhaustive()
    }
}

impl JoinError {
    /// Whether the task was [aborted](super::abort_async).
    pub fn is_aborted(&self) -> bool {
        is_aborted(&self.0)
    }

    /// What the task panicked with, for [`resume_unwind`](std::panic::resume_unwind).
    #[cfg(feature = "std")]
    pub fn into_panic(self) -> alloc::boxed::Box<dyn core::any::Any + Send> {
        self.0
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinError").field("is_aborted", &self.is_aborted()).finish_non_exhaustive()
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_aborted() { "the task was aborted" } else { "the task panicked" })
    }
}

impl core::error::Error for JoinError {}

//! A thread that runs tasks, under an operating system: its right to do so, and how it sleeps.

use core::ptr::null;

use super::layout::Runtime;
use super::runtime::Idle;
use super::system::{futex_wait, futex_wake};
pub(crate) use crate::arch::own_runtime::{own_runtime, set_own_runtime};
use crate::atomic::Ordering;

/// A thread that runs tasks of another scheduler.
pub(crate) const OTHER_SCHEDULER: *const Runtime = core::ptr::without_provenance(1);

/// The right of the calling thread to run tasks, until it is dropped.
pub(crate) struct Claim(());

impl Claim {
    /// Claims the thread.
    ///
    /// # Panics
    /// If it runs tasks already.
    pub(crate) fn new() -> Self {
        assert!(own_runtime().is_null(), "this thread runs tasks already: there can be one context only on a stack");
        set_own_runtime(OTHER_SCHEDULER);
        Claim(())
    }

    /// Says which run-time the thread has.
    pub(crate) fn set(self, runtime: &'static Runtime) -> Self {
        set_own_runtime(runtime);
        self
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        set_own_runtime(null());
    }
}

/// How a thread idles if it is told nothing else: it sleeps (in a futex) until another thread asks for one of its tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sleep;

impl Idle for Sleep {
    fn wait(&self, runtime: &'static Runtime) {
        // The word is 1 from before the last look for something to do until `wake`.
        futex_wait(&runtime.remote.sleeping, 1);
    }

    fn wake(&self, runtime: &'static Runtime) {
        if runtime.remote.sleeping.swap(0, Ordering::SeqCst) == 1 {
            futex_wake(&runtime.remote.sleeping);
        }
    }
}

//! An object whose end is counted, and a context for tests on one core.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use refs::Cx;

/// Objects are freed by whoever is quiescent next: tests that count them must not overlap.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// An object that is counted when it is dropped.
#[derive(Debug)]
pub struct Noted(pub u32);

impl Drop for Noted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs a test alone, with a context, and with nothing counted yet.
pub fn with_cx(test: impl FnOnce(&mut Cx)) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // SAFETY: the context ends before it.
    let _core = unsafe { refs::reclaim::Core::register() };
    // SAFETY: this thread has no other Cx, and it is registered.
    let mut cx = unsafe { Cx::new(core::ptr::null()) };
    refs::reclaim::reclaim(&mut cx);
    DROPPED.store(0, Ordering::Relaxed);
    test(&mut cx);
    refs::reclaim::reclaim(&mut cx);
}

/// How many were dropped.
pub fn dropped() -> usize {
    DROPPED.load(Ordering::Relaxed)
}

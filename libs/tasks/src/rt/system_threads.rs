//! What `system.rs` gives, where tasks are threads (`--cfg ebb_threads`), which may be those of `shuttle`: without assembly and system calls,
//! for checkers that understand neither.

#[cfg(not(ebb_shuttle))]
use std::sync::{Condvar, Mutex, PoisonError};

#[cfg(ebb_shuttle)]
use shuttle::sync::{Condvar, Mutex, PoisonError};

use crate::atomic::{AtomicU32, Ordering, global};

/// The kernel's side of all futexes: who sleeps looks at the word under the lock, and who wakes takes it.
struct Kernel {
    lock: Mutex<()>,
    woken: Condvar,
}

global! {
    static KERNEL: Kernel = Kernel { lock: Mutex::new(()), woken: Condvar::new() };
}

/// See `system.rs`.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    let guard = KERNEL.lock.lock().unwrap_or_else(PoisonError::into_inner);
    if word.load(Ordering::SeqCst) == value {
        drop(KERNEL.woken.wait(guard));
    }
}

/// See `system.rs`. Wakes all who sleep on any word: they may wake early.
pub(crate) fn futex_wake(_word: &AtomicU32) {
    let _guard = KERNEL.lock.lock().unwrap_or_else(PoisonError::into_inner);
    KERNEL.woken.notify_all();
}

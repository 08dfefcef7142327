//! What `system.rs` gives, where `shuttle` tries how threads can interleave (`--cfg ebb_shuttle`): its threads are not the system's.

use core::cell::Cell;
use core::ptr::null;

use shuttle::sync::{Condvar, Mutex};

use super::atomic::{AtomicU32, Ordering};
use super::layout::Runtime;

shuttle::thread_local! {
    static OWN: Cell<*const Runtime> = Cell::new(null());
}

/// See `system.rs`.
pub(crate) fn own_runtime() -> *const Runtime {
    OWN.with(Cell::get)
}

/// See `system.rs`.
pub(crate) fn set_own_runtime(runtime: *const Runtime) {
    OWN.with(|own| own.set(runtime));
}

/// The kernel's side of all futexes: who sleeps looks at the word under the lock, and who wakes takes it.
struct Kernel {
    lock: Mutex<()>,
    woken: Condvar,
}

super::atomic::global! {
    static KERNEL: Kernel = Kernel { lock: Mutex::new(()), woken: Condvar::new() };
}

/// See `system.rs`.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    let guard = KERNEL.lock.lock().expect("not poisoned");
    if word.load(Ordering::SeqCst) == value {
        drop(KERNEL.woken.wait(guard));
    }
}

/// See `system.rs`. Wakes all who sleep on any word: they may wake early.
pub(crate) fn futex_wake(_word: &AtomicU32) {
    let _guard = KERNEL.lock.lock().expect("not poisoned");
    KERNEL.woken.notify_all();
}

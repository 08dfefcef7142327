//! The calling thread's pointer to its run-time.

use core::cell::Cell;
use core::ptr::null;
#[cfg(not(ebb_shuttle))]
use std::thread_local;

#[cfg(ebb_shuttle)]
use shuttle::thread_local;

use crate::rt::layout::Runtime;

thread_local! {
    static OWN: Cell<*const Runtime> = const { Cell::new(null()) };
}

/// See `x86_64`.
pub(crate) fn own_runtime() -> *const Runtime {
    OWN.with(Cell::get)
}

/// See `x86_64`.
pub(crate) fn set_own_runtime(runtime: *const Runtime) {
    OWN.with(|own| own.set(runtime));
}

//! The C API: what `ac.h` calls.
//!
//! C inlines the hot paths from its headers, over the structs of `rt/layout.rs`; here is the rest. In C there is no [`Cx`]: what the borrow
//! checker proves in Rust is a rule there, and each function of this module relies on it:
//!
//! - A function that suspends is called by a task on its own stack, on a thread that runs tasks ([`ac_init`](life::ac_init), or [`run`](super::run) further
//!   out). Rust code that calls C code which may suspend hands over its `&mut Cx` meanwhile: it keeps it out of use.
//! - What a pointer names is alive and belongs to this thread, where nothing else is said. A task's name (`awe_t *`) is good until that task
//!   is resumed by it.
//!
//! C cannot unwind: a task whose end is [asked for by force](super::abort_async) goes on, and finds `THCShouldStop()` true. A panic in one of these
//! functions ends the program.

pub mod cancel;
pub mod ids;
pub mod life;
pub mod report;
pub mod scheduling;
pub mod sync;

use refs::Cx;

use super::awe::AweRef;
use super::finish::{catch, value_or_resume};
use super::layout::{Awe, NEXT_LIFE, Runtime};
use super::runtime::new_context;
use super::stop::Aborted;
use super::thread::own_runtime;

/// The calling thread's run-time.
///
/// # Safety
/// The thread has one.
unsafe fn own() -> &'static Runtime {
    // SAFETY: by this function's contract; run-times are never freed.
    unsafe { &*own_runtime() }
}

/// The running task's right to suspend.
///
/// # Safety
/// The thread has a run-time, and whoever calls has no other `Cx` in use (module comment).
unsafe fn context() -> Cx {
    // SAFETY: by this function's contract.
    unsafe { new_context(own()) }
}

/// The name of a task, as it is now.
///
/// # Safety
/// The pointer came from this library: such memory is never freed.
unsafe fn name_of(task: *const Awe) -> AweRef {
    use core::sync::atomic::Ordering;
    // SAFETY: by this function's contract.
    let awe: &'static Awe = unsafe { &*task };
    AweRef { awe, life: awe.life.load(Ordering::Relaxed) & !(NEXT_LIFE - 1) }
}

/// Waits in C's name: an order to end, which C cannot follow, only interrupts the wait, which then begins anew.
#[cfg_attr(false, ebb_lint::leaf)]
#[cfg_attr(false, ebb_lint::root)]
fn wait_async<R>(cx: &mut Cx, mut step: impl FnMut(&mut Cx) -> R) -> R {
    loop {
        match catch(|| step(cx)) {
            Err(payload) if payload.is::<Aborted>() => {}
            result => return value_or_resume(result),
        }
    }
}

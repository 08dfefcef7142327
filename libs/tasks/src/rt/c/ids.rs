//! The id table's rarer operations.

use core::ffi::c_int;

use super::{context, name_of, own};
use crate::rt::layout::Awe;
use crate::rt::{AweRef, Id};

/// Writes a new id to `*id`. 0, or `-ENOMEM` if all are in use.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_id_create(id: &mut u32) -> c_int {
    // SAFETY: the thread runs tasks.
    match Id::create(&unsafe { context() }) {
        Ok(new) => {
            *id = new.to_bits();
            0
        }
        Err(_) => -libc::ENOMEM,
    }
}

/// Takes an id back. 0, or `-EINVAL` if there is none.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_id_remove(id: u32) -> c_int {
    // SAFETY: the thread runs tasks.
    valid(Id::from_bits(id).remove(&unsafe { context() }))
}

/// Enters a task of this thread under an id; null takes out who is there. 0, or `-EINVAL`.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_id_set(id: u32, task: *const Awe) -> c_int {
    // SAFETY: the thread runs tasks; the task's memory is of this library.
    let (cx, task) = unsafe { (context(), if task.is_null() { None } else { Some(name_of(task)) }) };
    valid(Id::from_bits(id).set(&cx, task))
}

/// The task under an id; null if there is none.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_id_get(id: u32) -> Option<&'static Awe> {
    // SAFETY: the thread runs tasks.
    let task = Id::from_bits(id).get(&unsafe { context() }).ok();
    task.filter(|task: &AweRef| task.is_alive()).map(|task| task.awe)
}

/// Takes the running task, which was saved under an id and goes on, out of the table, if it is still there.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_id_unsave_(me: &'static Awe) {
    // SAFETY: the thread runs tasks.
    unsafe { own() }.unsave(me);
}

fn valid<T, E>(result: Result<T, E>) -> c_int {
    if result.is_ok() { 0 } else { -libc::EINVAL }
}

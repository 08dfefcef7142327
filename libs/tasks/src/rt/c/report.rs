//! What a thread's tasks do, in text; and the counters that AC programs keep.

use core::cell::Cell;
use core::ffi::c_int;
use core::fmt::{self, Write};

use super::{context, own};
use crate::rt::{count, dump};

std::thread_local! {
    static SENT: Cell<u64> = const { Cell::new(0) };
    static RECEIVED: Cell<u64> = const { Cell::new(0) };
}

/// A file descriptor to write to.
struct Descriptor(c_int);

impl Write for Descriptor {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            // SAFETY: the bytes are valid.
            let written = unsafe { libc::write(self.0, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => rest = &rest[written..],
                _ => return Err(fmt::Error),
            }
        }
        Ok(())
    }
}

/// Writes one line for each task of the thread to a file descriptor: what it does or waits for, and how much of its stack it uses.
/// 0, or -1 if that could not be written.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_dump(descriptor: c_int) -> c_int {
    // SAFETY: the thread runs tasks.
    match dump(&unsafe { context() }, &mut Descriptor(descriptor)) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

/// How many tasks of the thread have not ended.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_task_count() -> usize {
    // SAFETY: the thread runs tasks.
    count(&unsafe { context() })
}

/// How many stacks the thread has, used and unused.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_stack_count() -> usize {
    // SAFETY: the thread runs tasks.
    unsafe { own() }.stacks_now.get()
}

/// Writes the thread's counters to a file descriptor; sets the counters of messages to 0 if `clear` is not 0. 0, or -1 if that could not be written.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_dump_stats(descriptor: c_int, clear: c_int) -> c_int {
    // SAFETY: the thread runs tasks.
    let (tasks, stacks) = unsafe { (ac_task_count(), ac_stack_count()) };
    let (sent, received) = (SENT.get(), RECEIVED.get());
    if clear != 0 {
        SENT.set(0);
        RECEIVED.set(0);
    }
    match writeln!(Descriptor(descriptor), "{tasks} tasks, {stacks} stacks, {sent} sent, {received} received") {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

/// Counts a message that was sent.
#[unsafe(no_mangle)]
pub extern "C" fn ac_count_send() {
    SENT.set(SENT.get() + 1);
}

/// Counts a message that was received.
#[unsafe(no_mangle)]
pub extern "C" fn ac_count_receive() {
    RECEIVED.set(RECEIVED.get() + 1);
}

//! What an operating system gives each thread beside a pointer of its own: a way to sleep.

use core::ptr::null;

use crate::atomic::AtomicU32;

/// Sleeps as long as the word has that value, until somebody wakes who sleeps on it; may end early.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word is valid during the call, which only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            null::<libc::timespec>(),
        );
    }
}

/// Wakes one that sleeps on the word.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

//! Which number a new process or thread gets.

use core::sync::atomic::{AtomicU32, Ordering};

use refs::NoSuspend;

use super::{PROCESSES, THREADS, session};
use crate::error::{Errno, Result};
use crate::sysctl::Tunable;

/// New processes get numbers below this one.
static PID_MAX: AtomicU32 = AtomicU32::new(32768);
/// No more threads are made when there are so many (`/proc/sys/kernel/threads-max`).
pub static THREADS_MAX: Tunable = Tunable::new(32768, 20..=1 << 22);
/// After the highest number it goes on here: the low ones stay with those that were there first.
const FIRST_AGAIN: u32 = 300;

static NEXT: AtomicU32 = AtomicU32::new(1);

/// No new process gets this number or a higher one (`/proc/sys/kernel/pid_max`).
pub fn pid_max() -> u32 {
    PID_MAX.load(Ordering::Relaxed)
}

/// Changes below which number those of new processes are.
///
/// # Errors
/// EINVAL outside of what Linux allows: it must leave numbers to come back to.
pub fn set_pid_max(number: u32) -> Result<()> {
    const ALLOWED: core::ops::RangeInclusive<u32> = FIRST_AGAIN + 1..=1 << 22;
    if !ALLOWED.contains(&number) {
        return Err(Errno::EINVAL);
    }
    PID_MAX.store(number, Ordering::Relaxed);
    Ok(())
}

/// A number that no process, thread, process group or session has. Numbers go up and come again as late as possible.
///
/// # Errors
/// EAGAIN if there is none.
pub fn allocate(cx: &impl NoSuspend) -> Result<u32> {
    let limit = pid_max();
    for _ in 0..limit {
        let following = |id: u32| Some(if id + 1 >= limit { FIRST_AGAIN } else { id + 1 });
        let id = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, following).unwrap_or(FIRST_AGAIN);
        let taken = THREADS.weak(id, cx).is_some() || PROCESSES.weak(id, cx).is_some() || session::is_in_use(id, cx);
        if !taken {
            return Ok(id);
        }
    }
    Err(Errno::EAGAIN)
}

/// The number that was given last (`/proc/loadavg`).
pub fn last() -> u32 {
    NEXT.load(Ordering::Relaxed).saturating_sub(1)
}

//! What clocks show: those of processes and threads are theirs.

use frame::Cx;

use crate::current::Current;
use crate::error::{Errno, Result};
use crate::time::clock::{Clock, real_time};
use crate::{process, sched};

impl Clock {
    /// What it shows, in nanoseconds.
    ///
    /// # Errors
    /// EINVAL if the process or thread does not exist.
    pub fn now(self, me: &Current, cx: &Cx) -> Result<u64> {
        Ok(match self {
            Clock::RealTime => real_time(),
            Clock::Monotonic => frame::time::now(),
            Clock::Process(0) => me.process(cx)?.cpu_time(cx),
            Clock::Thread(0) => sched::cpu_time(tasks::current(cx)),
            Clock::Process(pid) => process::find(pid, cx).ok_or(Errno::EINVAL)?.cpu_time(cx),
            Clock::Thread(tid) => process::find_thread(tid, cx).ok_or(Errno::EINVAL)?.cpu_time(cx),
        })
    }
}

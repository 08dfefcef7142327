//! What clocks show: those of processes and threads are theirs.

use frame::Cx;
use frame::irq::IrqCx;
use refs::TempRc;

use super::{Process, Thread};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::time::clock::{Clock, atomic_time, real_time};
use crate::time::{CpuClock, TimerClock};
use crate::{process, sched};

impl Clock {
    /// What it shows, in nanoseconds.
    ///
    /// # Errors
    /// EINVAL if the process or thread does not exist.
    pub fn now(self, me: &Current, cx: &Cx) -> Result<u64> {
        Ok(match self {
            Clock::RealTime => real_time(),
            Clock::Atomic => atomic_time(cx),
            Clock::Monotonic => frame::time::now(),
            Clock::Process(0) => me.process(cx)?.cpu_time(),
            Clock::Thread(0) => sched::cpu_time(tasks::current(cx)),
            Clock::Process(pid) => process::find(pid, cx).ok_or(Errno::EINVAL)?.cpu_time(),
            Clock::Thread(tid) => process::find_thread(tid, cx).ok_or(Errno::EINVAL)?.cpu_time(cx),
        })
    }
}

impl Process {
    /// The clock of its time on the processor, for timers.
    pub fn cpu_clock(this: &TempRc<'_, Self>, cx: &Cx) -> TimerClock {
        let clock: TempRc<'_, dyn CpuClock> = this.clone().unsize(|process| process, cx);
        TimerClock::Cpu(clock.downgrade())
    }
}

impl Thread {
    /// The clock of its time on the processor, for timers.
    pub fn cpu_clock(this: &TempRc<'_, Self>, cx: &Cx) -> TimerClock {
        let clock: TempRc<'_, dyn CpuClock> = this.clone().unsize(|thread| thread, cx);
        TimerClock::Cpu(clock.downgrade())
    }
}

impl CpuClock for Process {
    fn cpu_time(&self, _cx: &Cx) -> u64 {
        Process::cpu_time(self)
    }

    fn cpu_time_in_interrupt(&self, _cx: &IrqCx) -> u64 {
        Process::cpu_time(self)
    }
}

impl CpuClock for Thread {
    fn cpu_time(&self, cx: &Cx) -> u64 {
        Thread::cpu_time(self, cx)
    }

    fn cpu_time_in_interrupt(&self, cx: &IrqCx) -> u64 {
        Thread::cpu_time(self, cx)
    }
}

//! From user mode and back: the life of a thread.

use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::Access;
use frame::user::Trap;
use tasks::{Body, Next};

use crate::current::{Current, Presence, Resolved, SAMPLE_INTERVAL};
use crate::{process, sched, signal};

impl Current {
    /// A system call whose time on the processor stands for that of all since the last one that was measured.
    #[cold]
    #[inline(never)]
    fn measured_call_async(&mut self, cx: &mut Cx) {
        let before = sched::own_cpu_time(cx);
        let interval = self.next_interval(before);
        super::dispatch_async(cx, self);
        let took = sched::own_cpu_time(cx).saturating_sub(before);
        if let Ok(thread) = self.thread(cx) {
            let stands_for = took.saturating_mul(interval.into());
            thread.add_system_time(stands_for, cx);
        }
    }

    /// For how many calls one stands that is measured at `time`, and says when the next one is. That differs from time to time: in a program that makes the same
    /// few calls again and again it would be always the same one otherwise.
    fn next_interval(&mut self, time: u64) -> u32 {
        // The golden ratio spreads times that lie close together.
        let spread = time.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let interval = SAMPLE_INTERVAL / 2 + spread as u32 % SAMPLE_INTERVAL;
        self.until_sample = interval - 1;
        interval
    }

    /// Other tasks run before it goes on in user mode.
    fn was_preempted(&self, cx: &Cx) {
        if self.restartable.is_some()
            && let Ok(thread) = self.thread(cx)
        {
            thread.signals.add_work(signal::Work::RESTARTABLE);
        }
        if signal::broadcast::are_stops_left()
            && let (Ok(thread), Ok(process)) = (self.thread(cx), self.process(cx))
        {
            process::notice_stop(&process, &thread, cx);
        }
    }

    fn page_fault(&mut self, cx: &Cx, address: usize, access: Access, presence: Presence) {
        if let Ok(thread) = self.thread(cx) {
            thread.minor_faults.fetch_add(1, Ordering::Relaxed);
        }
        match self.resolve(address, access, presence, cx) {
            Ok(Resolved::Now) => {}
            Ok(Resolved::Later) => tasks::request_yield(cx),
            Err(bad) => signal::send::raise_fault(self, bad, address, cx),
        }
    }
}

impl Body for Current {
    /// The life of a thread. Between two traps it keeps nothing on the stack, so a thread that is preempted in user mode owns none.
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            if signal::deliver::is_pending(self, cx)
                && signal::deliver::deliver_async(cx, self) == signal::deliver::Outcome::Ended
            {
                return Next::End;
            }
            let space = &self.space;
            match self.context.run_async(cx, |cx| space.upgrade(cx).map(|space| space.vm().activate(cx)).is_ok()) {
                Trap::Syscall => match self.until_sample.checked_sub(1) {
                    Some(left) => {
                        self.until_sample = left;
                        super::dispatch_async(cx, self);
                    }
                    None => self.measured_call_async(cx),
                },
                Trap::PageFault { address, access, present } => {
                    let presence = if present { Presence::Unknown } else { Presence::Absent };
                    self.page_fault(cx, address, access, presence);
                }
                Trap::Exception { vector, code } => signal::send::raise_exception(self, vector, code, cx),
                Trap::Preempted if self.space.is_gone() => return Next::End,
                Trap::Preempted => {
                    self.was_preempted(cx);
                    return Next::Again;
                }
            }
        }
    }
}

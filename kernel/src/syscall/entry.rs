//! From user mode and back: the life of a thread.

use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::Access;
use frame::user::Trap;
use tasks::{Body, Next};

use crate::current::{Current, Presence, Resolved, SAMPLE_INTERVAL};
use crate::memory::{self, BadAccess};
use crate::{process, sched, signal};

impl Current {
    /// One that its tracer is told of; or a system call whose time on the processor stands for that of all since the last one that was measured.
    #[cold]
    #[inline(never)]
    fn measured_call_async(&mut self, cx: &mut Cx) {
        if self.thread(cx).is_ok_and(|thread| thread.tracing.is_traced())
            && let Some(call) = process::trace::begin_call_async(cx, self)
        {
            if call.is_made() {
                super::dispatch_async(cx, self);
            }
            process::trace::end_call_async(cx, self, call);
            return;
        }
        let before = sched::own_cpu_time(cx);
        let interval = self.next_interval(before);
        super::dispatch_async(cx, self);
        let now = sched::own_cpu_time(cx);
        let ran = now.saturating_sub(core::mem::replace(&mut self.sampled_at, now));
        if let Ok(thread) = self.thread(cx) {
            thread.add_system_time(stands_for(now.saturating_sub(before), interval, ran), cx);
        }
        self.tell_memory_events(cx);
        if memory::account::is_any_over_high() {
            process::may_have_to_pay(self, cx);
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
        if sched::must_look() {
            self.look_when_preempted(cx);
        }
    }

    #[cold]
    fn look_when_preempted(&self, cx: &Cx) {
        if signal::broadcast::are_stops_left()
            && let (Ok(thread), Ok(process)) = (self.thread(cx), self.process(cx))
        {
            process::notice_stop(&process, &thread, cx);
        }
        process::may_have_to_wait(self, cx);
    }

    /// Allocations can tell nobody what they have counted for the program's control group.
    fn tell_memory_events(&self, cx: &Cx) {
        if memory::account::any_is_untold()
            && let Ok(process) = self.process(cx)
            && let Some(group) = process.control_group(cx)
        {
            group.tell_memory_events(cx);
        }
    }

    fn page_fault_async(&mut self, cx: &mut Cx, address: usize, access: Access, presence: Presence) {
        if let Ok(thread) = self.thread(cx) {
            thread.minor_faults.fetch_add(1, Ordering::Relaxed);
        }
        let resolved = self.resolve(address, access, presence, cx);
        if resolved != Ok(Resolved::Now) {
            self.not_resolved_async(cx, resolved, address, access);
        }
        if memory::account::is_any_over_high() {
            process::may_have_to_pay(self, cx);
        }
    }

    #[cold]
    fn not_resolved_async(
        &mut self,
        cx: &mut Cx,
        mut resolved: core::result::Result<Resolved, BadAccess>,
        address: usize,
        access: Access,
    ) {
        if resolved == Ok(Resolved::Unsettled) {
            resolved = self.resolve_in_turn_async(cx, address, access);
        }
        match resolved {
            Ok(Resolved::Now) => {}
            Ok(Resolved::Later | Resolved::Unsettled) => tasks::request_yield(cx),
            Ok(Resolved::WhenThere(absent)) => {
                // Whatever ends the wait, a signal is looked at first.
                let _ = absent.wait_async(cx, self, |cx, me| me.still_absent(address, access, cx));
            }
            Err(bad) => signal::send::raise_fault(self, bad, address, cx),
        }
    }
}

/// For how much time in the kernel a call stands that took so long: for all `interval` calls since the last one that was measured, but no more than the thread
/// `ran` since. One that takes very long once (the machine may be an emulator's, which stands still now and then) says nothing of the others.
fn stands_for(took: u64, interval: u32, ran: u64) -> u64 {
    took.saturating_mul(interval.into()).min(ran)
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
                    self.page_fault_async(cx, address, access, presence);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_stands_for_no_more_than_there_was() {
        assert_eq!(stands_for(100, 64, 20_000), 6_400);
        assert_eq!(stands_for(5_000_000, 64, 5_010_000), 5_010_000);
        assert_eq!(stands_for(u64::MAX, 64, 7), 7);
    }
}

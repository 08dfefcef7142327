//! Threads that wait for what their control group has had too much of: time on the processor (`cpu.max`), memory (`memory.high`). They wait before they go on in user mode, so none waits that holds anything of the
//! kernel's.
//!
//! The scheduler has a thread give way whose group has no time left, and the thread looks for itself. It waits with an alarm of its own for the next period, and is woken when there is another quota, when its process
//! comes into another group, and by all that it has to do on its way: signals, stops, its end.
//!
//! A thread that has charged memory beyond `memory.high` finds that out when its fault, or its call, is over. How long it waits was said before; whatever it does meanwhile on its way, it goes on waiting until then.

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::Waker;

use super::Thread;
use crate::current::Current;
use crate::memory::{account, remains};
use crate::sched;
use crate::signal::Work;
use crate::time::{Timeline, wake_at};

/// What a thread does first that has to wait.
const BEFORE: Work = Work::EXIT.union(Work::STOP).union(Work::FREEZE).union(Work::SIGNAL).union(Work::MOVE);

/// The calling thread gave way in user mode, perhaps because its group has no time left: sees to it that it waits then.
pub fn may_have_to_wait(me: &Current, cx: &Cx) {
    if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx))
        && sched::waits_until(&process.account, None, cx).is_some()
    {
        thread.signals.add_work(Work::THROTTLE);
    }
}

/// The calling thread may have charged memory beyond `memory.high`: sees to it that it waits then.
#[cold]
pub fn may_have_to_pay(me: &Current, cx: &Cx) {
    account::look_for_over_high();
    if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx))
        && account::is_unpaid(process.account.payer())
    {
        thread.signals.add_work(Work::PAY);
    }
}

/// The calling thread waits until its group has time again, or it has something else to do first.
pub fn wait_while_throttled_async(cx: &mut Cx, me: &Current) {
    wait_async(cx, me, |me, thread, waker, cx| {
        let until = sched::waits_until(&me.process(cx).ok()?.account, Some(waker), cx);
        if until.is_none() {
            thread.signals.remove_work(Work::THROTTLE);
        }
        until
    });
}

/// The calling thread waits for the memory that it has taken, or has something else to do first. What dead programs have left is given back before.
pub fn pay_async(cx: &mut Cx, me: &Current) {
    while remains::settle_some() {
        tasks::pause_async(cx);
    }
    if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx))
        && thread.pays_until.load(Ordering::Relaxed) == 0
    {
        if let Some(group) = process.control_group(cx) {
            group.tell_memory_events(cx);
        }
        let penalty = account::take_penalty(process.account.payer());
        thread.pays_until.store(frame::time::now().saturating_add(penalty), Ordering::Relaxed);
    }
    wait_async(cx, me, |_, thread, _, _| {
        let until = thread.pays_until.load(Ordering::Relaxed);
        if frame::time::now() < until {
            return Some(until);
        }
        thread.pays_until.store(0, Ordering::Relaxed);
        thread.signals.remove_work(Work::PAY);
        None
    });
}

/// The calling thread waits as long as `until` says a time, or until it has something else to do first.
fn wait_async(cx: &mut Cx, me: &Current, until: impl Fn(&Current, &Thread, Waker, &Cx) -> Option<u64>) {
    loop {
        // All threads of the group come by here one after the other.
        frame::irq::poll(cx);
        let waker = tasks::prepare(cx);
        let thread = me.thread(cx).ok().filter(|thread| !thread.signals.work().intersects(BEFORE));
        let Some(until) = thread.and_then(|thread| until(me, &thread, waker, cx)) else {
            tasks::finish_wait(cx);
            return;
        };
        let alarm = wake_at(Timeline::Boot, until, waker, cx);
        tasks::park_async(cx);
        drop(alarm);
    }
}

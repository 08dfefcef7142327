//! The end of the machine: what is left to do goes first.

use frame::Cx;
use frame::power::{self, PowerOff};
use refs::SpinLock;

static AT_END: SpinLock<Option<fn(&Cx)>> = SpinLock::new(None);

/// Has `last` called before the machine stops: the console's output is still in a queue.
pub fn at_end(last: fn(&Cx), cx: &Cx) {
    *AT_END.lock(cx) = Some(last);
}

fn finish(cx: &Cx) {
    let last = *AT_END.lock(cx);
    if let Some(last) = last {
        last(cx);
    }
}

/// Powers the machine off.
pub fn power_off(cx: &Cx) -> ! {
    finish(cx);
    power::off(PowerOff::Orderly)
}

/// Restarts the machine.
pub fn restart(cx: &Cx) -> ! {
    finish(cx);
    power::restart()
}

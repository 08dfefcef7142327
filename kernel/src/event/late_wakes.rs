//! Who wakes those who wait for what ends with a killed process: a task of the kernel.
//!
//! Nobody knows beforehand how many wait for the end of an object, and whoever is killed is not to pay for them, as he was charged for the object alone. So who [works at ends](sched::work_at_ends)
//! wakes the first waiter of each wait list himself and hands the others over ([`refs::WakeLater`]); so does whoever rings an epoll set because of that. This task wakes them, in the order in which they
//! were handed over. It goes before all programs, real-time ones too: whoever waits is woken before any program of the same core runs.
//!
//! Relays of epoll sets are among them. A set has to show what was done before somebody looks at it, and on several cores somebody may look before the task has come so far: whoever looks at sets
//! [wakes what is left](catch_up) first.
//!
//! The task wakes some at a time, between which interrupts come in. What it takes from others follows from what waiters have done: each has entered its waker, which takes longer than to wake it.
//!
//! Lock order: what is held while some are woken, then what wakers lock. Whoever looks holds nothing.

use alloc::boxed::Box;

use frame::Cx;
use refs::{IsFor, LATER};
use tasks::{Body, Next};

use crate::sched::{self, ABOVE_ALL, Class, Parameters};
use crate::step::{Interruption, Step, Stop};

/// So many pieces does one wake who looks at epoll sets, before others have their turn.
const PIECES: usize = 4;

/// Starts the task. Called once, before the first process.
pub fn start() {
    let parameters = Parameters { class: Class::Fifo, priority: ABOVE_ALL, ..Parameters::default() };
    tasks::spawn(&sched::SCHEDULER, Box::new(Server), |words, _| sched::initialise(words, parameters, None));
    LATER.begin(&(sched::runs_end as IsFor));
}

/// Has epoll sets show all that was done before the call. To be called with nothing locked by who looks at some, before.
///
/// # Errors
/// [`Stop::Pause`]: there is more to do for that.
#[inline(always)]
pub fn catch_up() -> Step<()> {
    if LATER.is_done() { Ok(()) } else { wake_what_is_left() }
}

#[cold]
#[inline(never)]
fn wake_what_is_left() -> Step<()> {
    for _ in 0..PIECES {
        LATER.wake_some();
        if LATER.is_done() {
            return Ok(());
        }
    }
    Err(Stop::Pause(Interruption::KillOnly))
}

/// The task.
struct Server;

impl Body for Server {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        // Those who wait for a set that it rings are handed over too, behind the others.
        sched::work_at_ends(tasks::current(cx));
        loop {
            let waker = tasks::prepare(cx);
            LATER.serve(waker, cx);
            if LATER.wake_some() {
                tasks::finish_wait(cx);
                return Next::Again;
            }
            tasks::park_async(cx);
        }
    }
}

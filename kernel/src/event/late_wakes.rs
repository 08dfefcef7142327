//! The task that wakes those whom others have woken but do not wake themselves.
//!
//! Whoever ends an object, or changes what many wait for, wakes some of its waiters and hands the others over ([`refs::WakeLater`]): the time that takes is not that of a member of a group which is killed, and not
//! charged to one. This task wakes them, in the order in which they were handed over. It goes before all programs, real-time ones too: whoever waits is woken as soon as if the other had done it itself.
//!
//! It wakes some at a time, between which interrupts come in. What it takes from others follows from what waiters have done: each has entered its waker, which takes longer than to wake it.

use alloc::boxed::Box;

use frame::Cx;
use refs::LATER;
use tasks::{Body, Next};

use crate::sched::{self, ABOVE_ALL, Class, Parameters};

/// Starts the task. Called once, before the first process.
pub fn start() {
    let parameters = Parameters { class: Class::Fifo, priority: ABOVE_ALL, ..Parameters::default() };
    tasks::spawn(&sched::SCHEDULER, Box::new(Server), |words, _| sched::initialise(words, parameters, None));
}

/// The task.
struct Server;

impl Body for Server {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
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

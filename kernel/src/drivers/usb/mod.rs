//! USB: host controllers (Extensible Host Controller Interface for Universal Serial Bus 1.2), and human interface devices at their ports, which are [input devices](super::input).
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | the task of a controller |
//! | `registers` | the registers of one |
//! | `ring` | rings of requests and of events |
//! | `controller` | its start, its commands and events, its ports |
//! | `attached` | a device: what it is, and how it is asked |
//! | `reports` | an interface that reports, and the input device that it is |
//!
//! What devices say is understood by the crate `usb`, which is pure.
//!
//! Neither a controller nor a device is trusted to keep to the rules. What a controller says is compared with what it was given: one that says what cannot be, or does not answer to a command within a second, is cut off from memory for ever, its devices are
//! gone, and the kernel's log says so. A device that says what makes no sense, or does not answer, is left alone until it is plugged in anew.
//!
//! Owner: a controller belongs to its task, which lives for ever. A device belongs to its controller as long as it is plugged in. Nobody waits for one but the task, which others wake.

mod attached;
mod controller;
mod registers;
mod reports;
mod ring;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::irq::IrqCx;
use frame::pci::{Device, FunctionId};
use refs::WaitList;
use tasks::{Body, Next};

use crate::sched::{self, Parameters};
use crate::time::{self, Timeline};
use controller::{Controller, Failure, MS, Wait};

/// Serial bus controllers, USB, of this kind (PCI Code and ID Assignment Specification 1.15, 1.13).
const CLASS: u32 = 0x0c_0330;
/// So many controllers are used.
const MOST: usize = 4;
/// How long the start waits for the devices that are plugged in.
const PATIENCE: u64 = 2000 * MS;

/// Where the task of each controller waits.
static TASKS: [WaitList; MOST] = [const { WaitList::new() }; MOST];
/// How many controllers there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// How many controllers have looked at all their ports once, or failed; who waits for that.
static SETTLED: AtomicUsize = AtomicUsize::new(0);
static STARTED: WaitList = WaitList::new();

/// Whether there is a controller, used or not.
pub fn is_there() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

fn interrupted(_irq: &IrqCx, number: usize) {
    if let Some(task) = TASKS.get(number) {
        task.wake_all();
    }
}

/// Claims the controllers, and waits until the devices that are plugged in are there. Without one this does nothing.
pub fn start_async(cx: &mut Cx) {
    let mut count = 0;
    while count < MOST
        && let Some(device) = Device::claim(|identity| identity.class == CLASS)
    {
        let body = Task { number: count, state: State::Claimed(Box::new(device)) };
        tasks::spawn(&sched::SCHEDULER, Box::new(body), |words, _| {
            sched::initialise(words, Parameters::default(), None)
        });
        count += 1;
    }
    COUNT.store(count, Ordering::Relaxed);
    let deadline = Timeline::Boot.now() + PATIENCE;
    while SETTLED.load(Ordering::Acquire) < count && Timeline::Boot.now() < deadline {
        let waker = tasks::prepare(cx);
        STARTED.register(waker, cx);
        if SETTLED.load(Ordering::Acquire) < count {
            let alarm = time::wake_at(Timeline::Boot, deadline, waker, cx);
            tasks::park_async(cx);
            drop(alarm);
        } else {
            tasks::finish_wait(cx);
        }
    }
}

/// The task of a controller.
struct Task {
    number: usize,
    state: State,
}

enum State {
    Claimed(Box<Device>),
    /// It runs, and whether it has looked at all its ports.
    Running(Box<Controller>, bool),
    Gone,
}

/// A task waits.
struct Parked(&'static WaitList);

impl Wait for Parked {
    fn wait_async(&mut self, cx: &mut Cx, until: Option<u64>, is_due: &dyn Fn(&Cx) -> bool) {
        let waker = tasks::prepare(cx);
        self.0.register(waker, cx);
        if is_due(cx) || until.is_some_and(|until| Timeline::Boot.now() >= until) {
            tasks::finish_wait(cx);
            tasks::pause_async(cx);
            return;
        }
        let alarm = until.map(|until| time::wake_at(Timeline::Boot, until, waker, cx));
        tasks::park_async(cx);
        drop(alarm);
    }
}

impl Task {
    fn settle(&self) {
        SETTLED.fetch_add(1, Ordering::Release);
        STARTED.wake_all();
    }

    /// Begins to use a controller.
    fn begin_async(&self, cx: &mut Cx, device: Device) -> State {
        let (driver, number, place) = (&TASKS[self.number], self.number, device.identity().id);
        device.on_fault(interrupted, number);
        let interrupt = |device: &Device| device.interrupt(0, 0, interrupted, number);
        match Controller::start_async(cx, &mut Parked(driver), device, driver, interrupt) {
            Ok(controller) => State::Running(Box::new(controller), false),
            Err(why) => {
                leave_out(place, why);
                self.settle();
                State::Gone
            }
        }
    }
}

fn leave_out(place: FunctionId, why: &str) {
    crate::log!("the USB controller at {place} cannot be used: {why}");
}

impl Body for Task {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        match core::mem::replace(&mut self.state, State::Gone) {
            State::Claimed(device) => self.state = self.begin_async(cx, *device),
            State::Running(mut controller, mut has_settled) => {
                match controller.turn_async(cx, &mut Parked(&TASKS[self.number])) {
                    Ok(()) => {
                        if !has_settled && controller.is_settled() {
                            has_settled = true;
                            self.settle();
                        }
                        self.state = State::Running(controller, has_settled);
                    }
                    Err(Failure::Controller(why) | Failure::Device(why) | Failure::Useless(why)) => {
                        let place = controller.place();
                        controller.unplug_all(cx);
                        drop(controller);
                        leave_out(place, why);
                        if !has_settled {
                            self.settle();
                        }
                    }
                }
            }
            State::Gone => return Next::End,
        }
        Next::Again
    }
}

//! Input devices: what keyboards, mice and tablets report, as Linux's event interface (Linux, Documentation/input/input.rst and event-codes.rst).
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | which devices there are, the state of each, and what of its events is passed on |
//! | `queue` | what an open file has not read |
//! | `evdev` | `/dev/input/event0` ..., and what programs ask of them |
//! | `show` | what sysfs and procfs tell of them |
//!
//! ```text
//!   a driver --Input::report--> Slot: keys that are down, lights, who has it open --> the queue of each open file --> read(2)
//!   a driver <--Input::lights, wake-up-- Slot <-- write(2)
//! ```
//!
//! Owner: a device is its driver's, which holds an [`Input`]. The place where it is, a [`Slot`], lives for ever, and there are [`MOST`]; it is somebody else's once the device is gone and nobody has it open any more. An open file's queue is in the slot, and
//! goes with the file, in one step. Who waits for events is woken when some come, and when the device goes.

mod evdev;
mod queue;
pub mod show;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use frame::Cx;
use refs::{SpinLock, WaitList};
use usb::codes::{EV_ABS, EV_KEY, EV_LED, EV_MSC, EV_REL, EV_REP, EV_SYN, REP_DELAY, REP_PERIOD, SYN_REPORT};
use usb::{Capabilities, Event};

use crate::error::{Errno, Result};
use crate::fs::DeviceNumber;
use crate::fs::devices::{self, Node};
use crate::memory::account::Charge;
use crate::time::{Timeline, clock};
pub use evdev::open;
#[cfg(test)]
pub use evdev::tests::{heard, write};
use queue::{Queue, Stamped, Time};

/// Their major number, and the first minor number of `/dev/input/event0` ...
pub const MAJOR: u32 = 13;
/// See [`MAJOR`].
pub const FIRST_MINOR: u32 = 64;
/// So many there can be.
pub const MOST: usize = 32;
/// So often one can be open: each event is passed on to all who have it.
const MOST_OPEN: usize = 16;

/// `struct input_id`: on which bus it is, who made it, and what the maker calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Id {
    /// `BUS_*`.
    pub bus: u16,
    /// The maker.
    pub vendor: u16,
    /// What it is.
    pub product: u16,
    /// Which version.
    pub version: u16,
}

/// `BUS_USB`.
pub const BUS_USB: u16 = 3;

/// What a device is.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// What people call it.
    pub name: String,
    /// Where it is plugged in.
    pub phys: String,
    /// Its serial number; may be empty.
    pub uniq: String,
    /// Its numbers.
    pub id: Id,
    /// What it can report, and which lights it has.
    pub capabilities: Capabilities,
}

/// Where a device is, or can be.
pub struct Slot {
    number: usize,
    state: SpinLock<State>,
    readers: WaitList,
}

#[derive(Default)]
struct State {
    device: Option<Device>,
    /// Which of all devices that were here it is, or was.
    serial: u64,
    /// Who has it open, or one that was here before.
    open: BTreeMap<u64, Client>,
    last_open: u64,
}

/// A device that is there.
struct Device {
    description: Description,
    keys: [u64; 12],
    lights: u64,
    /// The value of each absolute axis, and what programs have set its range to.
    axes: BTreeMap<u16, Axis>,
    repeat: Repeat,
    /// Who alone gets its events.
    grabbed_by: Option<u64>,
    /// Its driver, which is woken when lights or repeating change.
    driver: &'static WaitList,
    node: Option<Node>,
}

/// `struct input_absinfo`, as [`evdev`] shows it.
#[derive(Clone, Copy, Debug, Default)]
struct Axis {
    value: i32,
    minimum: i32,
    maximum: i32,
    fuzz: i32,
    flat: i32,
    resolution: i32,
}

/// How keys repeat that are held down.
#[derive(Clone, Copy)]
struct Repeat {
    /// Milliseconds until it begins, and from then on. 0: never.
    delay: u32,
    period: u32,
    /// Which key repeats, and when next.
    next: Option<(u16, u64)>,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat { delay: 250, period: 33, next: None }
    }
}

/// An open file of a device.
struct Client {
    /// Which device it was opened at.
    serial: u64,
    queue: Queue,
    /// `CLOCK_*` of the times that it reads.
    clock: u32,
    /// It gets nothing any more.
    is_revoked: bool,
    /// Which events it wants, a bit for each code, by type; where there are none: all.
    masks: BTreeMap<u16, Box<[u8]>>,
    _charge: Charge,
}

static SLOTS: [Slot; MOST] = {
    let mut slots = [const { Slot::new(0) }; MOST];
    let mut number = 0;
    while number < MOST {
        slots[number].number = number;
        number += 1;
    }
    slots
};

fn has_bit(word: u64, code: u16) -> bool {
    code < 64 && word >> code & 1 != 0
}

impl Client {
    /// Whether it wants an event.
    fn wants(&self, event: Event) -> bool {
        let is_set =
            |mask: &[u8], code: u16| mask.get(usize::from(code / 8)).is_some_and(|byte| byte >> (code % 8) & 1 != 0);
        if event.kind == EV_SYN {
            return true;
        }
        self.masks.get(&EV_SYN).is_none_or(|mask| is_set(mask, event.kind))
            && self.masks.get(&event.kind).is_none_or(|mask| is_set(mask, event.code))
    }
}

impl Device {
    /// Whether an event is passed on, which changes the state by it.
    fn take(&mut self, event: Event, now: u64) -> bool {
        let Event { kind, code, value } = event;
        let all = &self.description.capabilities;
        match kind {
            EV_SYN => code == SYN_REPORT,
            EV_KEY if all.has_key(code) => {
                let (word, bit) = (&mut self.keys[usize::from(code / 64)], 1 << (code % 64));
                // Value 2 is a repetition.
                if value != 2 {
                    if (*word & bit != 0) == (value != 0) {
                        return false;
                    }
                    *word ^= bit;
                    self.repeat.next = None;
                    if value != 0 && all.repeats && self.repeat.delay > 0 && self.repeat.period > 0 {
                        self.repeat.next = Some((code, now + milliseconds(self.repeat.delay)));
                    }
                }
                true
            }
            EV_REL => has_bit(all.relative, code) && value != 0,
            EV_ABS if has_bit(all.absolute, code) => {
                let axis = self.axes.entry(code).or_default();
                core::mem::replace(&mut axis.value, value) != value
            }
            EV_MSC => has_bit(all.other, code),
            EV_LED if has_bit(all.lights, code) => {
                let is_new = has_bit(self.lights, code) != (value != 0);
                self.lights ^= u64::from(is_new) << code;
                is_new
            }
            EV_REP if all.repeats && value >= 0 => {
                let place = match code {
                    REP_DELAY => &mut self.repeat.delay,
                    REP_PERIOD => &mut self.repeat.period,
                    _ => return false,
                };
                core::mem::replace(place, value as u32) != value as u32
            }
            _ => false,
        }
    }
}

fn milliseconds(count: u32) -> u64 {
    u64::from(count) * 1_000_000
}

impl State {
    /// The device, for who opened one here.
    ///
    /// # Errors
    /// ENODEV: it is gone, or was taken away from who asks.
    fn device_of(&mut self, client: u64) -> Result<(&mut Device, &mut Client)> {
        let serial = self.serial;
        let client = self.open.get_mut(&client).filter(|client| client.serial == serial && !client.is_revoked);
        Ok((self.device.as_mut().ok_or(Errno::ENODEV)?, client.ok_or(Errno::ENODEV)?))
    }

    /// Passes events on that come from the device, or from a program; whether somebody can read more.
    fn pass_on(&mut self, events: &[Event], now: Time) -> bool {
        let Some(device) = &mut self.device else { return false };
        let mut is_readable = false;
        for &event in events {
            if !device.take(event, now.boot) {
                continue;
            }
            let grabbed_by = device.grabbed_by;
            for (&number, client) in &mut self.open {
                let is_for = grabbed_by.is_none_or(|only| only == number);
                if is_for && client.serial == self.serial && !client.is_revoked && client.wants(event) {
                    is_readable |= client.queue.push(Stamped { time: now, event });
                }
            }
        }
        is_readable
    }
}

fn now() -> Time {
    Time { boot: Timeline::Boot.now(), wall: clock::real_time() }
}

impl Slot {
    const fn new(number: usize) -> Self {
        let state = State { device: None, serial: 0, open: BTreeMap::new(), last_open: 0 };
        Slot { number, state: SpinLock::new(state), readers: WaitList::new() }
    }

    fn name(&self) -> String {
        format!("event{}", self.number)
    }

    fn device_number(&self) -> DeviceNumber {
        DeviceNumber { major: MAJOR, minor: FIRST_MINOR + self.number as u32 }
    }

    /// Makes the node in `/dev/input`.
    fn make_node(&self, cx: &Cx) {
        let state = self.state.lock(cx);
        let (is_wanted, serial) = (state.device.as_ref().is_some_and(|device| device.node.is_none()), state.serial);
        drop(state);
        if !is_wanted {
            return;
        }
        match devices::add_node_in("input", self.name().as_bytes(), self.device_number(), cx) {
            Ok(Some(node)) => {
                let mut state = self.state.lock(cx);
                let is_same = state.serial == serial;
                if let Some(device) = state.device.as_mut().filter(|_| is_same) {
                    device.node = Some(node);
                    return;
                }
                drop(state);
                // Its driver has unplugged it meanwhile, on another core.
                devices::remove_node(&node, cx);
            }
            Ok(None) => {}
            Err(error) => crate::log!("/dev/input/{} cannot be made: {error:?}", self.name()),
        }
    }

    /// Passes events on.
    fn pass_on(&self, events: &[Event], cx: &Cx) {
        let is_readable = self.state.lock(cx).pass_on(events, now());
        if is_readable {
            self.readers.wake_all();
        }
    }
}

/// Makes the nodes of devices that came before there was a place for them.
pub fn make_nodes(cx: &Cx) {
    SLOTS.iter().for_each(|slot| slot.make_node(cx));
}

/// A device that its driver has entered. It is there until it is [taken away](Self::unplug).
#[must_use]
pub struct Input {
    slot: &'static Slot,
}

impl Input {
    /// Enters a device. `driver` is woken when it is to do something: see [`lights`](Self::lights) and [`next_repetition`](Self::next_repetition).
    ///
    /// # Errors
    /// ENFILE: there are too many.
    pub fn plug(description: Description, driver: &'static WaitList, cx: &Cx) -> Result<Self> {
        let axis = |range: &usb::AbsoluteRange| {
            let axis = Axis {
                minimum: range.minimum,
                maximum: range.maximum,
                resolution: range.resolution,
                ..Axis::default()
            };
            (range.code, axis)
        };
        let mut device = Some(Device {
            axes: description.capabilities.ranges.iter().map(axis).collect(),
            description,
            keys: [0; 12],
            lights: 0,
            repeat: Repeat::default(),
            grabbed_by: None,
            driver,
            node: None,
        });
        let slot = SLOTS.iter().find(|slot| {
            let mut state = slot.state.lock(cx);
            let is_free = state.device.is_none() && state.open.is_empty();
            if is_free {
                state.device = device.take();
                state.serial += 1;
            }
            is_free
        });
        let input = Input { slot: slot.ok_or(Errno::ENFILE)? };
        input.slot.make_node(cx);
        Ok(input)
    }

    /// What it is called in `/dev/input`.
    pub fn name(&self) -> String {
        self.slot.name()
    }

    /// The device has reported something. What of that is new is passed on, and then that this report is over.
    pub fn report(&self, events: &[Event], cx: &Cx) {
        let end = Event { kind: EV_SYN, code: SYN_REPORT, value: 0 };
        let is_readable = {
            let mut state = self.slot.state.lock(cx);
            let now = now();
            state.pass_on(events, now) | state.pass_on(&[end], now)
        };
        if is_readable {
            self.slot.readers.wake_all();
        }
    }

    /// Which lights are to be on, a bit for each.
    pub fn lights(&self, cx: &Cx) -> u64 {
        self.slot.state.lock(cx).device.as_ref().map_or(0, |device| device.lights)
    }

    /// When [`repeat`](Self::repeat) is to be called, in nanoseconds since boot.
    pub fn next_repetition(&self, cx: &Cx) -> Option<u64> {
        self.slot.state.lock(cx).device.as_ref()?.repeat.next.map(|(_, next)| next)
    }

    /// Passes on that a key is held down, if it is time for that.
    pub fn repeat(&self, cx: &Cx) {
        let now = now();
        let mut state = self.slot.state.lock(cx);
        let Some(device) = &mut state.device else { return };
        let Some((code, _)) = device.repeat.next.filter(|&(_, next)| next <= now.boot) else { return };
        // One who was away for long is not told of what he has missed.
        let period = device.repeat.period;
        device.repeat.next = (period > 0).then(|| (code, now.boot + milliseconds(period)));
        let held = Event { kind: EV_KEY, code, value: 2 };
        // As on Linux, where this tells a repetition from a report of the device's.
        let end = Event { kind: EV_SYN, code: SYN_REPORT, value: 1 };
        let is_readable = state.pass_on(&[held, end], now);
        drop(state);
        if is_readable {
            self.slot.readers.wake_all();
        }
    }

    /// The device is gone: reads and requests of who has it open fail with ENODEV.
    pub fn unplug(self, cx: &Cx) {
        // The node first: as soon as the slot is free another device may have it, which wants a node of the same name.
        let node = self.slot.state.lock(cx).device.as_mut().and_then(|device| device.node.take());
        if let Some(node) = node {
            devices::remove_node(&node, cx);
        }
        let device = self.slot.state.lock(cx).device.take();
        // If devtmpfs was made meanwhile, and the node once more.
        if let Some(node) = device.and_then(|device| device.node) {
            devices::remove_node(&node, cx);
        }
        self.slot.readers.wake_all();
    }
}

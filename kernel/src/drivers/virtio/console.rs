//! Consoles with ports (virtio-console, 5.3): streams of bytes between programs and the host, with names.
//!
//! A device has up to [`MOST_PORTS`] [ports](Port), with a pair of queues each, and a pair for what is said of them. One interrupt tells of all; its handler wakes who waits at the ports, and the task that talks with the device:
//! which ports there are, what they are called, who has them open. What is to be said is read off the ports, so that nothing queues up however often a port is opened and closed.
//!
//! Owner: a device lives for ever. One that breaks the rules is cut off; its ports are gone for programs, too.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::dma::{DmaCoherent, Domain};
use frame::mm::PAGE_SIZE;
use frame::pci::Interrupt;
use refs::{SpinLock, WaitList};
use tasks::StaticRef;

use super::pci::{Doorbell, Transport};
use super::port::{Port, Said, Tell};
use super::queue::{Broken, Queue, Segment};
use super::rings::Rings;
use super::service::{self, AT_ONCE, Attached, Bell, Interrupted, Serve};
use crate::sched::Parameters;
use crate::time::{self, Timeline};

/// The type of device, and the number that such devices had before version 1.
const KIND: u16 = 3;
const OLD_NUMBER: u16 = 0x1003;
/// There are ports, and a pair of queues for what is said of them (5.3.3).
const MULTI_PORT: u64 = 1 << 1;

/// No more ports of a device are used.
pub const MOST_PORTS: usize = 16;
/// And no more devices.
const MOST_DEVICES: usize = 4;

/// What is said of a port (5.3.6.2): a message of 8 bytes with the port, one of these, and a number; a name follows.
const DEVICE_READY: u16 = 0;
const PORT_ADD: u16 = 1;
const PORT_REMOVE: u16 = 2;
const PORT_READY: u16 = 3;
const CONSOLE_PORT: u16 = 4;
const PORT_OPEN: u16 = 6;
const PORT_NAME: u16 = 7;
const MESSAGE_BYTES: usize = 8;

/// The buffers for messages of the device, and for those to it: a page each. A name has room for 120 bytes.
const HEARD_BYTES: usize = 128;
const HEARD: usize = PAGE_SIZE / HEARD_BYTES;
/// How long the start waits for the first port, in nanoseconds. A device answers at once, if its emulator runs.
const PATIENCE: u64 = 100_000_000;

/// How long the end waits for the host, in nanoseconds.
const LAST_PATIENCE: u64 = 1_000_000_000;

static DEVICES: [StaticRef<Console>; MOST_DEVICES] = [const { StaticRef::none() }; MOST_DEVICES];

/// A device with ports.
pub struct Console {
    attached: Attached,
    ports: Vec<Port>,
    control: SpinLock<Control>,
    heard_bell: Doorbell,
    said_bell: Doorbell,
    /// Where the task waits.
    to_talk: WaitList,
    /// Something was heard.
    news: WaitList,
    _interrupt: Interrupt,
}

/// The pair of queues for what is said of ports.
struct Control {
    heard: Queue<()>,
    said: Queue<()>,
    heard_memory: DmaCoherent,
    said_memory: DmaCoherent,
}

/// The devices that are there, in the order in which they were found.
pub fn devices() -> impl Iterator<Item = &'static Console> {
    DEVICES.iter().map_while(StaticRef::get)
}

/// Claims all devices that there are, and waits until they have said which ports they have.
pub fn start_async(cx: &mut Cx) {
    let mut places = DEVICES.iter();
    while places.len() > 0
        && let Some(claimed) = Transport::claim(KIND, OLD_NUMBER, MULTI_PORT)
    {
        let console = match claimed.and_then(Console::start) {
            Ok(console) => console,
            Err(why) => {
                crate::log!("a virtual console cannot be used: {why}");
                continue;
            }
        };
        if let Some(place) = places.next() {
            place.set(Some(console));
        }
        service::start(console, Parameters::default());
        console.wait_for_ports_async(cx);
    }
}

/// Waits until the host has what was written to ports, a second at most: the machine is about to stop.
pub fn send_the_rest(cx: &Cx) {
    let deadline = Timeline::Boot.now() + LAST_PATIENCE;
    for port in devices().flat_map(|console| &console.ports) {
        while !port.has_sent(cx) && Timeline::Boot.now() < deadline {
            core::hint::spin_loop();
        }
    }
}

impl Console {
    fn start(transport: Transport) -> core::result::Result<&'static Self, &'static str> {
        if !transport.has(MULTI_PORT) {
            transport.fail();
            return Err("it has no ports");
        }
        let most = transport.read_config(|window| window.read::<u32>(4));
        let Some(console) = Self::with_queues(transport, (most as usize).min(MOST_PORTS)) else {
            return Err("it lacks a queue or an interrupt, or there is no memory for them");
        };
        console.attached.transport().begin();
        console.begin_to_talk();
        Ok(console)
    }

    fn with_queues(transport: Transport, most: usize) -> Option<&'static Self> {
        let bell = Bell::new()?;
        let interrupt = bell.interrupt(&transport, 0, 0)?;
        let mut ports = Vec::with_capacity(most);
        for port in 0..most as u16 {
            // The second pair is for what is said of ports.
            let first = if port == 0 { 0 } else { 2 + 2 * port };
            let (receive, receive_bell) = transport.queue(first, 1, 0)?;
            let (send, send_bell) = transport.queue(first + 1, 1, 0)?;
            ports.push(Port::new(Rings::new(receive, send), receive_bell, send_bell));
        }
        let (heard, heard_bell) = transport.queue(2, 1, 0)?;
        let (said, said_bell) = transport.queue(3, 1, 0)?;
        let heard_memory = DmaCoherent::new(transport.domain(), 0)?;
        let said_memory = DmaCoherent::new(transport.domain(), 0)?;
        bell.hear_of_faults(&transport);
        let console: &'static Console = Box::leak(Box::new(Console {
            attached: Attached::new(transport, "the virtual console"),
            ports,
            control: SpinLock::new(Control { heard, said, heard_memory, said_memory }),
            heard_bell,
            said_bell,
            to_talk: WaitList::new(),
            news: WaitList::new(),
            _interrupt: interrupt,
        }));
        bell.lead_to(console);
        Some(console)
    }

    fn begin_to_talk(&self) {
        self.control.with(|control| {
            for _ in 0..HEARD.min(control.heard.slots()) {
                control.give_buffer();
            }
            control.say(0, DEVICE_READY, 1);
            self.ring(control);
        });
    }

    fn ring(&self, control: &mut Control) {
        if control.heard.must_tell() {
            self.heard_bell.ring();
        }
        if control.said.must_tell() {
            self.said_bell.ring();
        }
    }

    fn wait_for_ports_async(&self, cx: &mut Cx) {
        let deadline = Timeline::Boot.now() + PATIENCE;
        loop {
            let waker = tasks::prepare(cx);
            self.news.register(waker, cx);
            if self.has_ports(cx) || self.attached.is_gone() || Timeline::Boot.now() >= deadline {
                tasks::finish_wait(cx);
                return;
            }
            let alarm = time::wake_at(Timeline::Boot, deadline, waker, cx);
            tasks::park_async(cx);
            drop(alarm);
        }
    }

    /// Whether a port was added, and more was said of all that were.
    fn has_ports(&self, cx: &Cx) -> bool {
        let mut plugged = self.ports.iter().filter(|port| port.is_plugged(cx)).peekable();
        plugged.peek().is_some() && plugged.all(|port| port.is_announced(cx))
    }

    /// The port of that number, whether it is plugged in or not.
    pub fn port(&self, number: usize) -> Option<&Port> {
        self.ports.get(number)
    }

    /// How many ports it can have.
    pub fn most_ports(&self) -> usize {
        self.ports.len()
    }

    /// What it reaches in memory.
    pub fn domain(&self) -> &'static Domain {
        self.attached.domain()
    }

    /// A port was opened or closed: the device is told soon.
    pub fn tell(&self) {
        self.to_talk.wake_all();
    }

    /// The device has said what cannot be: nothing goes through it any more.
    pub fn give_up(&self, cx: &Cx) {
        if !self.attached.cut_off() {
            return;
        }
        for port in &self.ports {
            port.give_up(cx);
        }
        self.news.wake_all();
    }

    /// Listens and talks; whether there was anything.
    fn talk(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        let mut was_busy = false;
        for _ in 0..AT_ONCE {
            let mut message = [0; HEARD_BYTES];
            let mut control = self.control.lock(cx);
            let Some(len) = control.hear(&mut message)? else { break };
            self.ring(&mut control);
            drop(control);
            self.take_in(&message[..len], cx);
            was_busy = true;
        }
        for (number, port) in self.ports.iter().enumerate() {
            if port.is_broken(cx) {
                return Err(Broken);
            }
            if !self.control.lock(cx).can_say()? {
                break;
            }
            let Some(tell) = port.tell(cx) else { continue };
            // Nobody else says anything meanwhile.
            let mut control = self.control.lock(cx);
            match tell {
                Tell::Ready => control.say(number as u32, PORT_READY, 1),
                Tell::Open(is_open) => control.say(number as u32, PORT_OPEN, is_open.into()),
            }
            self.ring(&mut control);
            was_busy = true;
        }
        let mut control = self.control.lock(cx);
        let more = control.heard.ask_to_be_told() | control.said.ask_to_be_told();
        Ok(was_busy || more)
    }

    /// Takes in a message of the device. One that makes no sense is left out.
    fn take_in(&self, message: &[u8], cx: &Cx) {
        let Some((head, rest)) = message.split_at_checked(MESSAGE_BYTES) else { return };
        let number = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let (event, value) = (u16::from_le_bytes([head[4], head[5]]), u16::from_le_bytes([head[6], head[7]]));
        let said = match event {
            PORT_ADD => Said::Plugged,
            PORT_REMOVE => Said::Unplugged,
            CONSOLE_PORT => Said::Console,
            PORT_OPEN => Said::Host(value != 0),
            // Linux takes a name with or without a zero at its end.
            PORT_NAME => Said::Name(rest.split(|&byte| byte == 0).next().unwrap_or_default()),
            _ => return,
        };
        if let Some(port) = self.ports.get(number as usize) {
            port.hear(said, cx);
            self.news.wake_all();
        }
    }
}

impl Control {
    fn give_buffer(&mut self) {
        let at = self.heard.next_slot().map(|slot| slot * HEARD_BYTES);
        if let Some(address) = at.and_then(|at| self.heard_memory.address(at)) {
            // There is a slot, and one segment needs no memory.
            let _ = self.heard.push(&[Segment { address, len: HEARD_BYTES as u32, is_written: true }], ());
        }
    }

    /// The next message of the device, and how long it is.
    fn hear(&mut self, message: &mut [u8; HEARD_BYTES]) -> core::result::Result<Option<usize>, Broken> {
        let Some(((), slot, len)) = self.heard.pop()? else { return Ok(None) };
        // A name that is too long may be cut, and its length told all the same.
        let len = (len as usize).min(HEARD_BYTES);
        // The kernel's own memory does not fault.
        let _ = self.heard_memory.reader(slot * HEARD_BYTES, len).read(message);
        self.give_buffer();
        Ok(Some(len))
    }

    /// Whether there is room for a message to the device.
    fn can_say(&mut self) -> core::result::Result<bool, Broken> {
        for _ in 0..AT_ONCE {
            if self.said.pop()?.is_none() {
                break;
            }
        }
        Ok(self.said.next_slot().is_some())
    }

    /// Says something of a port. There must be [room](Self::can_say).
    fn say(&mut self, port: u32, event: u16, value: u16) {
        let Some(at) = self.said.next_slot().map(|slot| slot * MESSAGE_BYTES) else { return };
        self.said_memory.store(at, port);
        self.said_memory.store(at + 4, event);
        self.said_memory.store(at + 6, value);
        if let Some(address) = self.said_memory.address(at) {
            let _ = self.said.push(&[Segment { address, len: MESSAGE_BYTES as u32, is_written: false }], ());
        }
    }
}

impl Interrupted for Console {
    fn interrupted(&self) {
        self.to_talk.wake_all();
        self.ports.iter().for_each(Port::wake_all);
    }
}

impl Serve for &'static Console {
    fn attached(&self) -> &Attached {
        &self.attached
    }

    fn waiters(&self) -> &WaitList {
        &self.to_talk
    }

    fn work(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        Console::talk(self, cx)
    }

    fn give_up(&self, cx: &Cx) {
        Console::give_up(self, cx);
    }
}

#[cfg(test)]
mod tests;

//! [`Controller`]: a host controller (xHCI 1.2), its commands, its events, and its ports.
//!
//! One task has a controller to itself and does one thing after the other: what must be waited for is waited for where it is asked, and events of other devices are passed on meanwhile.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::dma::{DeviceAddress, DmaCoherent};
use frame::mm::PAGE_SIZE;
use frame::pci::{Device, Interrupt};
use refs::WaitList;

use super::attached::Attached;
use super::registers::{
    CONNECT_CHANGED, CONNECTED, ENABLED, FAILED, HALTED, INTERRUPTS, NOT_READY, PORT_RESET, POWERED, RESET,
    RESET_CHANGED, RUN, Registers,
};
use super::ring::{Event, EventRing, Parameter, Ring, Trb, clear, kind, of_kind};
use crate::step::TimeSlice;
use crate::time::Timeline;

/// Milliseconds, in nanoseconds.
pub const MS: u64 = 1_000_000;
/// How long the controller may take to reset itself, and to answer to a command.
const LIMIT: u64 = 1000 * MS;
/// How long a port may take to reset a device.
const PORT_LIMIT: u64 = 500 * MS;
/// How long a device is left alone after it was plugged in, and after it was reset (USB 2.0, 7.1.7.3 and 7.1.7.5).
const SETTLING: u64 = 100 * MS;
const RECOVERY: u64 = 10 * MS;
/// So many events are taken before others have their turn.
const AT_ONCE: usize = 64;
/// So many devices it has at most.
const MOST_DEVICES: u8 = 64;
/// So often a device is tried.
const TRIES: u8 = 3;
/// So many events may make no sense, and so much is said of its devices.
const MOST_STRAYS: u32 = 1000;
const MOST_NOTES: u32 = 64;

/// Why something cannot be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The controller breaks the rules, or does not answer: it is cut off.
    Controller(&'static str),
    /// A device does: it is left alone. It may be tried again.
    Device(&'static str),
    /// The same, and the next time nothing would be better.
    Useless(&'static str),
}

/// A result.
pub type Result<T> = core::result::Result<T, Failure>;

/// How a command or transfer went (xHCI 1.2, 6.4.5).
pub mod code {
    #![allow(missing_docs)]
    pub const SUCCESS: u8 = 1;
    pub const STALL: u8 = 6;
    pub const SHORT: u8 = 13;
    pub const STOPPED: core::ops::RangeInclusive<u8> = 26..=28;
}

/// How the driver waits. In tests the controller has its turn instead.
pub trait Wait {
    /// Waits until `is_due`, which may become so when the controller interrupts or somebody else asks for something, or until a time (in nanoseconds since boot), or for no reason at all.
    fn wait_async(&mut self, cx: &mut Cx, until: Option<u64>, is_due: &dyn Fn(&Cx) -> bool);
}

/// What the driver waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Nothing,
    Command(usize),
    /// A transfer of a slot's endpoint 0: the entries for its data and for its end.
    Control {
        slot: u8,
        data: Option<usize>,
        status: usize,
    },
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// How it went.
    pub code: u8,
    /// The slot that a command was about.
    pub slot: u8,
    /// What was left of the data.
    pub residue: usize,
}

/// A port.
#[derive(Clone, Copy, Default)]
struct Port {
    /// Something may have happened there.
    has_changed: bool,
    /// When what is there can be used.
    settles_at: Option<u64>,
    /// The slot of what is there.
    slot: Option<u8>,
    /// How often that was tried in vain.
    failures: u8,
}

/// A controller that runs.
///
/// Owner: its task, for ever. Dropping it cuts it off from memory, and then frees what it had.
pub struct Controller {
    device: Device,
    /// Who waits for something to do: the task.
    pub(super) driver: &'static WaitList,
    pub(super) registers: Registers,
    commands: Ring,
    events: EventRing,
    /// Where the contexts of all slots are (6.1), and behind that where the events are.
    tables: DmaCoherent,
    /// What a command says of a slot.
    pub(super) input: DmaCoherent,
    _scratch: Vec<DmaCoherent>,
    _interrupt: Interrupt,
    /// Pages that it had and does not use any more.
    spare: Vec<DmaCoherent>,
    ports: Vec<Port>,
    /// Devices by their slots.
    pub(super) devices: Vec<Option<Box<Attached>>>,
    awaited: Awaited,
    answer: Option<Answer>,
    residue: usize,
    strays: u32,
    notes: u32,
}

/// Where the events are, in the page of tables.
const SEGMENTS: usize = PAGE_SIZE / 2;

impl Drop for Controller {
    fn drop(&mut self) {
        self.device.cut_off();
    }
}

impl Controller {
    /// Resets a controller and has it run. `interrupt`: what its interrupts lead to.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn start_async(
        cx: &mut Cx,
        wait: &mut dyn Wait,
        device: Device,
        driver: &'static WaitList,
        interrupt: impl FnOnce(&Device) -> Option<Interrupt>,
    ) -> core::result::Result<Self, &'static str> {
        const NO_MEMORY: &str = "there is no memory for it";
        let registers = Registers::find(&device)?;
        reset_async(cx, wait, &registers)?;
        let interrupt = interrupt(&device).ok_or("it has no interrupt that is a message")?;
        let page = || DmaCoherent::new(device.domain(), 0).ok_or(NO_MEMORY);
        let (tables, input) = (page()?, page()?);
        let commands = Ring::new(page()?).ok_or(NO_MEMORY)?;
        let events = EventRing::new(page()?);
        let scratch = scratch(&device, &registers, &tables).ok_or(NO_MEMORY)?;
        let addresses = (tables.address(0), commands.next_address(), events.address(), tables.address(SEGMENTS));
        let (Some(contexts), Some(first), Some(begin), Some(segments)) = addresses else { return Err(NO_MEMORY) };
        tables.store_address(SEGMENTS, begin);
        tables.store(SEGMENTS + 8, super::ring::ENTRIES as u32);
        device.allow_dma();
        let slots = registers.slots.min(MOST_DEVICES);
        registers.set_up(slots, contexts, first, segments);
        if let Some(taken) = events.taken_address() {
            registers.set_taken(taken);
        }
        registers.enable_interrupts();
        registers.set_command(RUN | INTERRUPTS);
        let settles_at = Some(Timeline::Boot.now() + SETTLING);
        let port = Port { has_changed: true, settles_at, ..Port::default() };
        let ports = alloc::vec![port; registers.ports.into()];
        (0..ports.len()).for_each(|port| {
            let seen = registers.port(port);
            if seen & POWERED == 0 {
                registers.change_port(port, seen, POWERED);
            }
        });
        Ok(Controller {
            device,
            driver,
            registers,
            commands,
            events,
            tables,
            input,
            _scratch: scratch,
            _interrupt: interrupt,
            spare: Vec::new(),
            ports,
            devices: (0..=slots).map(|_| None).collect(),
            awaited: Awaited::Nothing,
            answer: None,
            residue: 0,
            strays: 0,
            notes: 0,
        })
    }

    /// Where it is, for messages.
    pub fn place(&self) -> frame::pci::FunctionId {
        self.device.identity().id
    }

    /// Says something of a device in the kernel's log, unless that was done too often.
    pub(super) fn note(&mut self, port: usize, what: core::fmt::Arguments<'_>) {
        self.notes += 1;
        if self.notes <= MOST_NOTES {
            crate::log!("USB port {} of {}: {what}", self.registers.number_of_port(port), self.place());
        }
    }

    /// A page for the controller. It goes back by [`put_page`](Self::put_page): what the controller had it may have for ever, where no IOMMU keeps it away.
    pub(super) fn page(&mut self) -> Result<DmaCoherent> {
        let page = self.spare.pop().or_else(|| DmaCoherent::new(self.device.domain(), 0));
        page.ok_or(Failure::Device("there is no memory for it"))
    }

    /// Keeps a page that the controller does not use any more.
    pub(super) fn put_page(&mut self, page: DmaCoherent) {
        self.spare.push(page);
    }

    /// Tells the controller where a slot's context is; `None`: it has none.
    pub(super) fn set_context(&self, slot: u8, address: Option<DeviceAddress>) {
        let at = 8 * usize::from(slot);
        match address {
            Some(address) => self.tables.store_address(at, address),
            None => self.tables.store(at, 0_u64),
        }
    }

    /// Whether every look at the ports that was due is done: there is nothing more to come by itself.
    pub fn is_settled(&self) -> bool {
        self.ports.iter().all(|port| !port.has_changed && port.settles_at.is_none())
    }

    /// Does what there is to do, or waits until there is something.
    ///
    /// # Errors
    /// [`Failure::Controller`]: it is to be dropped.
    pub fn turn_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait) -> Result<()> {
        self.take_events(cx)?;
        let now = Timeline::Boot.now();
        let due = |port: &Port| port.has_changed || port.settles_at.is_some_and(|at| at <= now);
        if let Some(port) = self.ports.iter().position(due) {
            return self.look_at_port_async(cx, wait, port);
        }
        if self.serve_devices_async(cx, wait)? {
            return Ok(());
        }
        let until = self.ports.iter().filter_map(|port| port.settles_at).chain(self.next_repetition(cx)).min();
        wait.wait_async(cx, until, &|cx| self.events.has_any() || self.has_failed() || self.wants_service(cx));
        Ok(())
    }

    /// Whether what the controller says is worth nothing any more.
    fn has_failed(&self) -> bool {
        self.device.domain().has_faulted()
    }

    /// Takes what the controller has said.
    fn take_events(&mut self, cx: &Cx) -> Result<()> {
        if self.has_failed() {
            return Err(Failure::Controller("it reached for memory that it was not given"));
        }
        let (mut has_any, mut slice) = (false, TimeSlice::default());
        for _ in 0..AT_ONCE {
            if slice.is_over() {
                break;
            }
            let Some(event) = self.events.pop() else { break };
            has_any = true;
            self.take_event(event, cx)?;
        }
        if has_any && let Some(taken) = self.events.taken_address() {
            self.registers.set_taken(taken);
        }
        Ok(())
    }

    /// Something that makes no sense, or comes too late.
    pub(super) fn stray(&mut self) -> Result<()> {
        self.strays += 1;
        if self.strays > MOST_STRAYS { Err(Failure::Controller("what it says makes no sense")) } else { Ok(()) }
    }

    fn take_event(&mut self, event: Event, cx: &Cx) -> Result<()> {
        match event.kind() {
            kind::COMMAND_COMPLETION => {
                let number = self.commands.number_of(event.parameter);
                match self.awaited {
                    Awaited::Command(awaited) if number == Some(awaited) => {
                        self.awaited = Awaited::Nothing;
                        self.answer = Some(Answer { code: event.code(), slot: event.slot(), residue: 0 });
                        Ok(())
                    }
                    _ => self.stray(),
                }
            }
            kind::TRANSFER_EVENT => {
                if event.slot() == 0 || usize::from(event.slot()) >= self.devices.len() || event.endpoint() == 0 {
                    return Err(Failure::Controller("it speaks of a device that cannot be"));
                }
                if event.endpoint() == 1 { self.take_control(event) } else { self.take_report(event, cx) }
            }
            kind::PORT_CHANGE => {
                let port = usize::from((event.parameter >> 24) as u8).checked_sub(1);
                let port = port.and_then(|port| self.ports.get_mut(port));
                port.ok_or(Failure::Controller("it speaks of a port that it does not have"))?.has_changed = true;
                Ok(())
            }
            // Others are not asked for, and harmless.
            _ => self.stray(),
        }
    }

    /// Of a transfer of endpoint 0.
    fn take_control(&mut self, event: Event) -> Result<()> {
        let Some(device) = &self.devices[usize::from(event.slot())] else { return self.stray() };
        let number = device.control.number_of(event.parameter);
        match self.awaited {
            Awaited::Control { slot, data, status } if slot == event.slot() && number.is_some() => {
                if event.code() == code::SHORT && number == data {
                    self.residue = event.residue();
                    return Ok(());
                }
                if event.code() == code::SUCCESS && number != Some(status) {
                    return self.stray();
                }
                self.awaited = Awaited::Nothing;
                self.answer = Some(Answer { code: event.code(), slot, residue: self.residue });
                Ok(())
            }
            _ => self.stray(),
        }
    }

    /// Waits for the answer to what was asked; `None`: it does not come.
    fn answer_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, limit: u64) -> Result<Option<Answer>> {
        let deadline = Timeline::Boot.now() + limit;
        self.answer = None;
        loop {
            self.take_events(cx)?;
            if let Some(answer) = self.answer.take() {
                return Ok(Some(answer));
            }
            if Timeline::Boot.now() >= deadline {
                self.awaited = Awaited::Nothing;
                let status = self.registers.status();
                let is_gone = status == u32::MAX || status & FAILED != 0;
                return if is_gone { Err(Failure::Controller("it has failed")) } else { Ok(None) };
            }
            wait.wait_async(cx, Some(deadline), &|_| self.events.has_any() || self.has_failed());
        }
    }

    /// Has a command done: the answer.
    ///
    /// # Errors
    /// The controller does not answer.
    pub(super) fn command_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        parameter: Parameter,
        control: u32,
    ) -> Result<Answer> {
        let number = self.commands.push(Trb { parameter, status: 0, control });
        self.awaited = Awaited::Command(number);
        self.registers.ring(0, 0);
        let answer = self.answer_async(cx, wait, LIMIT)?;
        answer.ok_or(Failure::Controller("it does not answer to a command"))
    }

    /// Waits for the answer to a transfer of endpoint 0, of which these are the entries.
    pub(super) fn control_answer_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        slot: u8,
        (data, status): (Option<usize>, usize),
        limit: u64,
    ) -> Result<Option<Answer>> {
        self.awaited = Awaited::Control { slot, data, status };
        self.residue = 0;
        self.registers.ring(slot, 1);
        self.answer_async(cx, wait, limit)
    }

    /// Looks at a port at which something has changed, or whose device can be used by now.
    fn look_at_port_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, number: usize) -> Result<()> {
        self.ports[number].has_changed = false;
        let seen = self.registers.port(number);
        if seen == u32::MAX {
            return Err(Failure::Controller("it is gone"));
        }
        self.registers.change_port(number, seen, 0);
        let now = Timeline::Boot.now();
        if seen & CONNECTED == 0 || seen & CONNECT_CHANGED != 0 {
            if let Some(slot) = self.ports[number].slot.take() {
                self.detach_async(cx, wait, slot)?;
            }
            let port = &mut self.ports[number];
            let is_new = seen & CONNECTED != 0;
            if !is_new {
                (port.settles_at, port.failures) = (None, 0);
                return Ok(());
            }
            // At the start all ports have settled together.
            if port.settles_at.is_none() {
                (port.settles_at, port.failures) = (Some(now + SETTLING), 0);
            }
        }
        if self.ports[number].settles_at.is_none_or(|at| at > now) {
            return Ok(());
        }
        self.ports[number].settles_at = None;
        if self.ports[number].slot.is_some() {
            return Ok(());
        }
        let outcome = self.attach_async(cx, wait, number);
        let port = &mut self.ports[number];
        match outcome {
            Ok(slot) => (port.slot, port.failures) = (Some(slot), 0),
            Err(Failure::Controller(why)) => return Err(Failure::Controller(why)),
            Err(Failure::Device(why)) => {
                port.failures += 1;
                if port.failures < TRIES {
                    port.settles_at = Some(Timeline::Boot.now() + SETTLING);
                } else {
                    self.note(number, format_args!("{why}: it is left alone"));
                }
            }
            Err(Failure::Useless(why)) => self.note(number, format_args!("{why}")),
        }
        Ok(())
    }

    /// Resets the device at a port; its speed.
    pub(super) fn reset_port_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, port: usize) -> Result<u8> {
        let seen = self.registers.port(port);
        // A device whose set-up failed may have an address by now.
        if seen & ENABLED == 0 || self.ports[port].failures > 0 {
            self.registers.change_port(port, seen, PORT_RESET);
            let deadline = Timeline::Boot.now() + PORT_LIMIT;
            while self.registers.port(port) & (RESET_CHANGED | CONNECT_CHANGED) == 0 {
                if Timeline::Boot.now() >= deadline {
                    return Err(Failure::Device("the port does not reset its device"));
                }
                sleep_async(cx, wait, MS);
                self.take_events(cx)?;
            }
            self.registers.change_port(port, self.registers.port(port) & !CONNECT_CHANGED, 0);
            sleep_async(cx, wait, RECOVERY);
        }
        let seen = self.registers.port(port);
        if seen & (CONNECTED | ENABLED) != CONNECTED | ENABLED {
            return Err(Failure::Device("the port does not let its device work"));
        }
        Ok((seen >> 10 & 0xf) as u8)
    }

    /// The device in a slot cannot be used any more.
    pub(super) fn give_up_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        slot: u8,
        why: &'static str,
    ) -> Result<()> {
        if let Some(number) = self.ports.iter().position(|port| port.slot == Some(slot)) {
            self.ports[number].slot = None;
            self.note(number, format_args!("{why}: it is left alone"));
        }
        self.detach_async(cx, wait, slot)
    }

    /// The control word of a command about a slot.
    pub(super) fn control_word(what: u32, slot: u8) -> u32 {
        of_kind(what) | u32::from(slot) << 24
    }

    /// All its devices are gone: it is about to be dropped.
    pub fn unplug_all(&mut self, cx: &Cx) {
        let interfaces = self.devices.iter_mut().flatten().flat_map(|device| &mut device.interfaces);
        interfaces.for_each(|interface| interface.unplug(cx));
    }

    /// Makes the page empty in which a command says something of a slot.
    pub(super) fn clear_input(&self) {
        clear(&self.input);
    }
}

/// Waits so many nanoseconds.
pub(super) fn sleep_async(cx: &mut Cx, wait: &mut dyn Wait, time: u64) {
    let deadline = Timeline::Boot.now() + time;
    while Timeline::Boot.now() < deadline {
        wait.wait_async(cx, Some(deadline), &|_| false);
    }
}

/// Stops a controller and resets it (4.2).
fn reset_async(cx: &mut Cx, wait: &mut dyn Wait, registers: &Registers) -> core::result::Result<(), &'static str> {
    let mut until_async = |cx: &mut Cx, is_so: &dyn Fn() -> bool, why| {
        let deadline = Timeline::Boot.now() + LIMIT;
        while !is_so() {
            if registers.status() == u32::MAX || Timeline::Boot.now() >= deadline {
                return Err(why);
            }
            sleep_async(cx, wait, MS);
        }
        Ok(())
    };
    until_async(cx, &|| registers.status() & NOT_READY == 0, "it does not get ready")?;
    registers.set_command(registers.command() & !(RUN | INTERRUPTS));
    until_async(cx, &|| registers.status() & HALTED != 0, "it does not stop")?;
    registers.set_command(RESET);
    let is_reset = || registers.command() & RESET == 0 && registers.status() & (NOT_READY | FAILED) == 0;
    until_async(cx, &is_reset, "it does not reset itself")
}

/// The pages that the controller wants for itself, which are told it in the first entry of the table of contexts.
fn scratch(device: &Device, registers: &Registers, tables: &DmaCoherent) -> Option<Vec<DmaCoherent>> {
    let mut pages = Vec::new();
    if registers.scratch_pages > 0 {
        // They are less than two pages of addresses.
        let list = DmaCoherent::new(device.domain(), 1)?;
        for number in 0..registers.scratch_pages {
            let page = DmaCoherent::new(device.domain(), 0)?;
            list.store_address(8 * number, page.address(0)?);
            pages.push(page);
        }
        tables.store_address(0, list.address(0)?);
        pages.push(list);
    }
    Some(pages)
}

//! [`Reports`]: an interface of a device that is for humans: the transfers that bring its reports, and the input device that shows them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use frame::Cx;
use frame::dma::DmaCoherent;
use frame::mm::PAGE_SIZE;
use usb::{Decoder, Endpoint, Kind, LONGEST_REPORT};

use super::controller::{Controller, Failure, Result, Wait, code};
use super::ring::{Event, Parameter, Ring, Trb, kind, of_kind};
use crate::drivers::input::{Description, Input};

/// So many reports the controller may bring before somebody looks.
const AHEAD: usize = PAGE_SIZE / LONGEST_REPORT;
/// So many events of one report are passed on: each goes to all who have the device open.
const MOST_EVENTS: usize = 128;
/// So often in succession a transfer may fail.
const MOST_ERRORS: u8 = 8;

/// An interface that reports.
///
/// Owner: its device, which gives its pages back.
pub struct Reports {
    number: u8,
    pub(super) endpoint: Endpoint,
    /// The number of the endpoint's context, by which the controller knows it.
    pub(super) context: u8,
    pub(super) ring: Ring,
    buffers: DmaCoherent,
    /// Entries of the ring that are under way, and the buffer of each.
    pending: VecDeque<(usize, usize)>,
    /// How long a report is at most.
    bytes: usize,
    decoder: Decoder,
    /// What it is, until it is shown.
    description: Option<Description>,
    evdev: Option<Input>,
    /// Which lights are on.
    lights: u64,
    errors: u8,
    /// It goes on only when it is told to.
    has_stopped: bool,
}

impl Reports {
    /// Of an interface of that number. Nothing is asked of it yet.
    pub fn new(
        number: u8,
        endpoint: Endpoint,
        ring: Ring,
        buffers: DmaCoherent,
        decoder: Decoder,
        description: Description,
    ) -> Self {
        let bytes = decoder.layout().longest(Kind::Input).max(1);
        Reports {
            number,
            endpoint,
            context: endpoint.number * 2 + 1,
            ring,
            buffers,
            pending: VecDeque::with_capacity(AHEAD),
            bytes,
            decoder,
            description: Some(description),
            evdev: None,
            lights: 0,
            errors: 0,
            has_stopped: false,
        }
    }

    /// The input device is gone.
    pub fn unplug(&mut self, cx: &Cx) {
        if let Some(input) = self.evdev.take() {
            input.unplug(cx);
        }
    }

    /// The pages again, for who knows that the controller does not use them.
    pub fn into_memory(self) -> [DmaCoherent; 2] {
        [self.ring.into_memory(), self.buffers]
    }

    /// Asks for a report, into a buffer.
    fn ask(&mut self, buffer: usize) {
        const TELL: u32 = 1 << 5;
        const TELL_SHORT: u32 = 1 << 2;
        let Some(address) = self.buffers.address(buffer * LONGEST_REPORT) else { return };
        let control = of_kind(kind::NORMAL) | TELL | TELL_SHORT;
        let trb = Trb { parameter: Parameter::Address(address), status: self.bytes as u32, control };
        let number = self.ring.push(trb);
        self.pending.push_back((number, buffer));
    }

    /// Asks for as many reports as there is room for; none is under way.
    fn ask_for_all(&mut self) {
        self.pending.clear();
        (0..AHEAD).for_each(|buffer| self.ask(buffer));
    }

    /// Whether its lights are to be others than they are.
    fn wants_lights(&self, cx: &Cx) -> bool {
        self.evdev.as_ref().is_some_and(|input| input.lights(cx) != self.lights)
    }

    /// A transfer has ended; whether another one may begin.
    fn take(&mut self, event: Event, cx: &Cx) -> core::result::Result<bool, Outcome> {
        let number = self.ring.number_of(event.parameter);
        let is_it = |&(pending, _): &(usize, usize)| Some(pending) == number;
        let Some(at) = self.pending.iter().position(is_it) else { return Err(Outcome::Stray) };
        match event.code() {
            code::SUCCESS | code::SHORT => {}
            code if code::STOPPED.contains(&code) => return Ok(false),
            _ => {
                self.errors = self.errors.saturating_add(1);
                self.has_stopped = true;
                return Ok(false);
            }
        }
        let len = self.bytes.checked_sub(event.residue()).ok_or(Outcome::Nonsense)?;
        self.errors = 0;
        // Those before it are over as well, and say nothing.
        let skipped: Vec<usize> = self.pending.drain(..=at).map(|(_, buffer)| buffer).collect();
        let Some(&buffer) = skipped.last() else { return Err(Outcome::Stray) };
        let mut report = [0; LONGEST_REPORT];
        // The kernel's own memory does not fault.
        let _ = self.buffers.reader(buffer * LONGEST_REPORT, len).read(&mut report[..len]);
        let mut events = Vec::new();
        self.decoder.decode(&report[..len], |event| {
            if events.len() < MOST_EVENTS {
                events.push(event);
            }
        });
        if let Some(input) = &self.evdev {
            input.report(&events, cx);
        }
        skipped.into_iter().for_each(|buffer| self.ask(buffer));
        Ok(true)
    }
}

/// What an event is that is none of a transfer.
enum Outcome {
    Stray,
    Nonsense,
}

impl Controller {
    /// Shows all that a device reports, and asks for the first reports.
    pub(super) fn plug_all(&mut self, cx: &Cx, slot: u8) -> Result<()> {
        let (port, driver) = (self.device(slot)?.port(), self.driver);
        let mut said = Vec::new();
        let mut contexts = Vec::new();
        for interface in &mut self.device(slot)?.interfaces {
            let Some(description) = interface.description.take() else { continue };
            let name = description.name.clone();
            match Input::plug(description, driver, cx) {
                Ok(input) => {
                    said.push(alloc::format!("{name} is /dev/input/{}", input.name()));
                    interface.evdev = Some(input);
                }
                Err(error) => said.push(alloc::format!("{name} cannot be used: {error:?}")),
            }
            interface.ask_for_all();
            contexts.push(interface.context);
        }
        contexts.into_iter().for_each(|context| self.registers.ring(slot, context));
        said.into_iter().for_each(|said| self.note(port, format_args!("{said}")));
        Ok(())
    }

    /// A transfer of an endpoint that brings reports has ended.
    pub(super) fn take_report(&mut self, event: Event, cx: &Cx) -> Result<()> {
        let (slot, context) = (event.slot(), event.endpoint());
        let device = self.devices[usize::from(slot)].as_deref_mut();
        let interface =
            device.and_then(|device| device.interfaces.iter_mut().find(|interface| interface.context == context));
        match interface.map(|interface| interface.take(event, cx)) {
            Some(Ok(true)) => {
                self.registers.ring(slot, context);
                Ok(())
            }
            Some(Ok(false)) => Ok(()),
            Some(Err(Outcome::Nonsense)) => Err(Failure::Controller("it says that more is left than was asked for")),
            Some(Err(Outcome::Stray)) | None => self.stray(),
        }
    }

    fn interfaces(&self) -> impl Iterator<Item = &Reports> {
        self.devices.iter().flatten().flat_map(|device| &device.interfaces)
    }

    /// When a key that is held down repeats next.
    pub(super) fn next_repetition(&self, cx: &Cx) -> Option<u64> {
        self.interfaces().filter_map(|interface| interface.evdev.as_ref()?.next_repetition(cx)).min()
    }

    /// Whether a device is to be told something.
    pub(super) fn wants_service(&self, cx: &Cx) -> bool {
        self.interfaces().any(|interface| interface.has_stopped || interface.wants_lights(cx))
    }

    /// Does the next thing that a device needs; whether there was any.
    pub(super) fn serve_devices_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait) -> Result<bool> {
        self.interfaces().filter_map(|interface| interface.evdev.as_ref()).for_each(|input| input.repeat(cx));
        for slot in 1..self.devices.len() as u8 {
            let Some(device) = self.devices[usize::from(slot)].as_deref() else { continue };
            let needs = |interface: &Reports| interface.has_stopped || interface.wants_lights(cx);
            let Some(at) = device.interfaces.iter().position(needs) else { continue };
            match self.serve_async(cx, wait, slot, at) {
                Err(Failure::Device(why) | Failure::Useless(why)) => self.give_up_async(cx, wait, slot, why)?,
                outcome => outcome?,
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn serve_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8, at: usize) -> Result<()> {
        let interface = &mut self.device(slot)?.interfaces[at];
        let context = interface.context;
        if core::mem::take(&mut interface.has_stopped) {
            if interface.errors > MOST_ERRORS {
                return Err(Failure::Device("it cannot be heard"));
            }
            self.go_on_async(cx, wait, slot, context)?;
            self.device(slot)?.interfaces[at].ask_for_all();
            self.registers.ring(slot, context);
            return Ok(());
        }
        let Some(lights) = interface.evdev.as_ref().map(|input| input.lights(cx)) else { return Ok(()) };
        interface.lights = lights;
        let (number, report) = (interface.number, interface.decoder.lights(lights));
        if let Some((report, bytes)) = report {
            // One that refuses keeps its lights as they are.
            self.set_report_async(cx, wait, slot, number, (report, &bytes))?;
        }
        Ok(())
    }
}

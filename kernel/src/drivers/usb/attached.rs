//! [`Attached`]: a device at a port, from the moment in which the controller has a slot for it, and how it is found out what it is.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use frame::Cx;
use frame::dma::DmaCoherent;
use frame::mm::PAGE_SIZE;
use usb::{CLASS_HID, CLASS_HUB, Configuration, Decoder, Device, Interface, Layout, string};

use super::controller::{Controller, Failure, MS, Result, Wait, code};
use super::reports::Reports;
use super::ring::{Parameter, Ring, Trb, clear, kind, of_kind};
use crate::drivers::input::{BUS_USB, Description, Id};

/// How long a device may take to answer on endpoint 0.
const CONTROL_LIMIT: u64 = 5000 * MS;
/// Requests (USB 2.0, 9.4; HID 1.11, 7).
const GET_DESCRIPTOR: u8 = 6;
const SET_CONFIGURATION: u8 = 9;
const SET_REPORT: u8 = 9;
const SET_IDLE: u8 = 10;
/// Whom a request is for, and which way its data go.
const TO_DEVICE: u8 = 0;
const FROM_DEVICE: u8 = 0x80;
const FROM_INTERFACE: u8 = 0x81;
const TO_CLASS_INTERFACE: u8 = 0x21;
/// Kinds of descriptors.
const DEVICE: u16 = 1;
const CONFIGURATION: u16 = 2;
const STRING: u16 = 3;
const REPORTS: u16 = 0x22;
/// So many interfaces of a device are used.
const MOST_INTERFACES: usize = 8;
/// Speeds as ports tell them (xHCI 1.2, 7.2.1).
const FULL: u8 = 1;
const LOW: u8 = 2;
const HIGH: u8 = 3;

/// A device.
///
/// Owner: its controller. The pages go back to the controller's spare ones once that has said that it does not use them any more; that is one command.
pub struct Attached {
    port: usize,
    speed: u8,
    context: DmaCoherent,
    /// Requests of endpoint 0.
    pub(super) control: Ring,
    /// Their data.
    data: DmaCoherent,
    /// What it reports.
    pub(super) interfaces: Vec<Reports>,
}

impl Attached {
    /// Where it is plugged in.
    pub fn port(&self) -> usize {
        self.port
    }
}

/// A request of endpoint 0.
#[derive(Clone, Copy)]
struct Setup {
    whom: u8,
    request: u8,
    value: u16,
    index: u16,
    len: u16,
}

/// A request for a descriptor of the device's.
const GET: Setup = Setup { whom: FROM_DEVICE, request: GET_DESCRIPTOR, value: 0, index: 0, len: 0 };

impl Controller {
    /// Begins to use the device at a port: its slot.
    ///
    /// # Errors
    /// Of the device: it has no slot any more.
    pub(super) fn attach_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, port: usize) -> Result<u8> {
        let speed = self.reset_port_async(cx, wait, port)?;
        let answer = self.command_async(cx, wait, Parameter::Number(0), of_kind(kind::ENABLE_SLOT))?;
        if answer.code != code::SUCCESS {
            return Err(Failure::Device("the controller has no place for it"));
        }
        let slot = answer.slot;
        let is_free = self.devices.get(usize::from(slot)).is_some_and(Option::is_none);
        if slot == 0 || !is_free {
            return Err(Failure::Controller("it gives a device a place that there is not"));
        }
        let (context, control, data) = (self.page()?, self.page()?, self.page()?);
        clear(&context);
        let control = Ring::new(control).ok_or(Failure::Controller("its pages are nowhere"))?;
        self.set_context(slot, context.address(0));
        self.devices[usize::from(slot)] =
            Some(Box::new(Attached { port, speed, context, control, data, interfaces: Vec::new() }));
        match self.set_up_async(cx, wait, slot) {
            Ok(()) => Ok(slot),
            Err(Failure::Controller(why)) => Err(Failure::Controller(why)),
            Err(why) => {
                self.detach_async(cx, wait, slot)?;
                Err(why)
            }
        }
    }

    /// Ends the use of a slot: its input devices are gone, and so is what the controller knew of it.
    ///
    /// # Errors
    /// The controller does not let go of it.
    pub(super) fn detach_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8) -> Result<()> {
        if let Some(device) = &mut self.devices[usize::from(slot)] {
            device.interfaces.iter_mut().for_each(|interface| interface.unplug(cx));
        }
        let answer =
            self.command_async(cx, wait, Parameter::Number(0), Self::control_word(kind::DISABLE_SLOT, slot))?;
        if answer.code != code::SUCCESS {
            return Err(Failure::Controller("it does not let go of a device"));
        }
        self.set_context(slot, None);
        if let Some(device) = self.devices[usize::from(slot)].take() {
            let Attached { context, control, data, interfaces, .. } = *device;
            [context, control.into_memory(), data].into_iter().for_each(|page| self.put_page(page));
            interfaces.into_iter().flat_map(Reports::into_memory).for_each(|page| self.put_page(page));
        }
        Ok(())
    }

    /// The device in a slot.
    pub(super) fn device(&mut self, slot: u8) -> Result<&mut Attached> {
        self.devices[usize::from(slot)].as_deref_mut().ok_or(Failure::Device("it is gone"))
    }

    /// Writes a word of the context of an endpoint in what a command says of a slot; 0 is the slot's own, 1 that of endpoint 0.
    fn input_word(&self, context: u8, word: usize, value: u32) {
        let at = (usize::from(context) + 1) * self.registers.context_bytes + 4 * word;
        self.input.store(at, value);
    }

    /// What a command says of a slot: the contexts whose bits are set are there.
    fn begin_input(&mut self, slot: u8, contexts: u32) -> Result<()> {
        let last = 31 - contexts.leading_zeros();
        let device = self.device(slot)?;
        let (speed, port) = (u32::from(device.speed), device.port as u32 + 1);
        self.clear_input();
        self.input.store(4, contexts);
        self.input_word(0, 0, last.max(1) << 27 | speed << 20);
        self.input_word(0, 1, port << 16);
        Ok(())
    }

    /// An endpoint's context (6.2.3).
    fn input_endpoint(&self, context: u8, kind: u32, packet: u16, interval: u32, ring: &Ring) {
        const RETRIES: u32 = 3;
        let packet = u32::from(packet);
        self.input_word(context, 0, interval << 16);
        self.input_word(context, 1, RETRIES << 1 | kind << 3 | packet << 16);
        if let Some(address) = ring.next_address() {
            self.input.store_address((usize::from(context) + 1) * self.registers.context_bytes + 8, address);
        }
        self.input_word(context, 4, packet << 16 | packet.min(8));
    }

    /// Has a command done that says something of a slot.
    fn command_with_input_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        what: u32,
        slot: u8,
        why: &'static str,
    ) -> Result<()> {
        let address = self.input.address(0).ok_or(Failure::Controller("its pages are nowhere"))?;
        let control = Self::control_word(what, slot);
        let answer = self.command_async(cx, wait, Parameter::Address(address), control)?;
        if answer.code == code::SUCCESS { Ok(()) } else { Err(Failure::Device(why)) }
    }

    /// Tells the controller of endpoint 0, with the largest packet that it has.
    fn tell_of_endpoint_0(&mut self, slot: u8, contexts: u32, packet: u16) -> Result<()> {
        const CONTROL: u32 = 4;
        self.begin_input(slot, contexts)?;
        let device = self.devices[usize::from(slot)].as_deref().ok_or(Failure::Device("it is gone"))?;
        self.input_endpoint(1, CONTROL, packet, 0, &device.control);
        Ok(())
    }

    /// Finds out what a device is, and begins to hear its reports.
    fn set_up_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8) -> Result<()> {
        const SLOT_AND_0: u32 = 0b11;
        const ENDPOINT_0: u32 = 0b10;
        let (speed, port) = (self.device(slot)?.speed, self.device(slot)?.port);
        let packet = match speed {
            FULL | LOW => 8,
            HIGH => 64,
            _ => 512,
        };
        self.tell_of_endpoint_0(slot, SLOT_AND_0, packet)?;
        self.command_with_input_async(cx, wait, kind::ADDRESS_DEVICE, slot, "it takes no address")?;
        let first = self.descriptor_async(cx, wait, slot, DEVICE, 8)?;
        let said = Device::packet_bytes(&first).ok_or(Failure::Device("it does not say what it is"))?;
        if speed <= HIGH && u16::from(said) != packet {
            if !matches!(said, 8 | 16 | 32 | 64) {
                return Err(Failure::Device("its packets have a length that there is not"));
            }
            self.tell_of_endpoint_0(slot, ENDPOINT_0, said.into())?;
            self.command_with_input_async(cx, wait, kind::EVALUATE_CONTEXT, slot, "its packets have another length")?;
        }
        let len = Device::BYTES as u16;
        let device = self.descriptor_async(cx, wait, slot, DEVICE, len)?;
        let device = Device::read(&device).ok_or(Failure::Device("it does not say what it is"))?;
        if device.class == CLASS_HUB {
            return Err(Failure::Useless("there is a hub: what is behind it is not used"));
        }
        const NO_CONFIGURATION: Failure = Failure::Device("it does not say what it has");
        let header = Configuration::HEADER_BYTES as u16;
        let header = self.descriptor_async(cx, wait, slot, CONFIGURATION, header)?;
        let total = Configuration::total_bytes(&header).ok_or(NO_CONFIGURATION)?.min(PAGE_SIZE as u16);
        let all = self.descriptor_async(cx, wait, slot, CONFIGURATION, total)?;
        let configuration = Configuration::read(&all).ok_or(NO_CONFIGURATION)?;
        let mut texts = [const { String::new() }; 3];
        for (text, number) in texts.iter_mut().zip(device.strings) {
            *text = self.string_async(cx, wait, slot, number)?;
        }
        let value = configuration.value.into();
        let set = Setup { whom: TO_DEVICE, request: SET_CONFIGURATION, value, index: 0, len: 0 };
        self.control_async(cx, wait, slot, set, &[])?.ok_or(Failure::Device("it cannot be switched on"))?;
        let described = Described { id: device, texts, port };
        for interface in configuration.interfaces.iter().filter(|interface| interface.class[0] == CLASS_HID) {
            if self.device(slot)?.interfaces.len() < MOST_INTERFACES {
                self.interface_async(cx, wait, slot, interface, &described)?;
            }
        }
        if self.device(slot)?.interfaces.is_empty() {
            self.note(port, format_args!("there is no keyboard, mouse or tablet"));
            return Ok(());
        }
        self.configure_async(cx, wait, slot)?;
        self.plug_all(cx, slot)
    }

    /// Finds out what an interface for humans reports. One that makes no sense is left out.
    fn interface_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        slot: u8,
        interface: &Interface,
        described: &Described,
    ) -> Result<()> {
        let endpoint = interface.endpoints.iter().find(|endpoint| endpoint.is_in && endpoint.is_interrupt);
        let (Some(&endpoint), Some(reports)) = (endpoint, interface.reports) else { return Ok(()) };
        if !(1..=1024).contains(&endpoint.packet_bytes) {
            return Ok(());
        }
        let index = u16::from(interface.number);
        // Most devices that cannot be told do not repeat what has not changed anyway.
        let idle = Setup { whom: TO_CLASS_INTERFACE, request: SET_IDLE, value: 0, index, len: 0 };
        self.control_async(cx, wait, slot, idle, &[])?;
        let len = reports.bytes.min(PAGE_SIZE as u16);
        let get = Setup { whom: FROM_INTERFACE, value: REPORTS << 8, index, len, ..GET };
        let descriptor = self.get_async(cx, wait, slot, get)?;
        let decoder = match Layout::read(&descriptor) {
            Ok(layout) => Decoder::new(layout),
            Err(why) => {
                self.note(described.port, format_args!("what it reports cannot be understood: {why}"));
                return Ok(());
            }
        };
        let capabilities = decoder.capabilities();
        let context = endpoint.number * 2 + 1;
        let is_known = self.device(slot)?.interfaces.iter().any(|other| other.context == context);
        if capabilities.is_empty() || is_known {
            return Ok(());
        }
        let port = self.registers.number_of_port(described.port);
        let [maker, product, serial] = &described.texts;
        let mut name = alloc::format!("{maker} {product}");
        name.truncate(name.trim_end().len());
        if name.trim().is_empty() {
            name = alloc::format!("HID {:04x}:{:04x}", described.id.vendor, described.id.product);
        }
        let id =
            Id { bus: BUS_USB, vendor: described.id.vendor, product: described.id.product, version: reports.version };
        let phys = alloc::format!("usb-0000:{}-{port}/input{index}", self.place());
        let description = Description { name, phys, uniq: serial.clone(), id, capabilities };
        let (ring, buffers) = (self.page()?, self.page()?);
        let ring = Ring::new(ring).ok_or(Failure::Controller("its pages are nowhere"))?;
        let reports = Reports::new(interface.number, endpoint, ring, buffers, decoder, description);
        self.device(slot)?.interfaces.push(reports);
        Ok(())
    }

    /// Tells the controller of the endpoints that bring reports.
    fn configure_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8) -> Result<()> {
        const INTERRUPT_IN: u32 = 7;
        let device = self.device(slot)?;
        let speed = device.speed;
        let contexts = device.interfaces.iter().fold(1, |contexts, interface| contexts | 1 << interface.context);
        self.begin_input(slot, contexts)?;
        let device = self.devices[usize::from(slot)].as_deref().ok_or(Failure::Device("it is gone"))?;
        for interface in &device.interfaces {
            let interval = interval(speed, interface.endpoint.interval);
            let packet = interface.endpoint.packet_bytes;
            self.input_endpoint(interface.context, INTERRUPT_IN, packet, interval, &interface.ring);
        }
        self.command_with_input_async(cx, wait, kind::CONFIGURE_ENDPOINT, slot, "there is no time left on its bus")
    }

    /// Reads a string; one that cannot be had is empty.
    fn string_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8, number: u8) -> Result<String> {
        const ENGLISH: u16 = 0x409;
        if number == 0 {
            return Ok(String::new());
        }
        let value = STRING << 8 | u16::from(number);
        let get = Setup { value, index: ENGLISH, len: 255, ..GET };
        let got = self.control_in_async(cx, wait, slot, get)?;
        Ok(got.and_then(|bytes| string(&bytes)).unwrap_or_default())
    }

    /// Reads a descriptor of the device.
    fn descriptor_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8, what: u16, len: u16) -> Result<Vec<u8>> {
        self.get_async(cx, wait, slot, Setup { value: what << 8, len, ..GET })
    }

    /// Asks a device for what it must be able to tell.
    fn get_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8, get: Setup) -> Result<Vec<u8>> {
        let got = self.control_in_async(cx, wait, slot, get)?;
        got.ok_or(Failure::Device("it does not tell what it is asked"))
    }

    /// Asks a device for data; `None`: it refuses.
    fn control_in_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        slot: u8,
        setup: Setup,
    ) -> Result<Option<Vec<u8>>> {
        let Some(len) = self.control_async(cx, wait, slot, setup, &[])? else { return Ok(None) };
        let mut bytes = alloc::vec![0; len];
        // The kernel's own memory does not fault.
        let _ = self.device(slot)?.data.reader(0, len).read(&mut bytes);
        Ok(Some(bytes))
    }

    /// Tells a device which of its lights are to be on; whether it takes that.
    pub(super) fn set_report_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        slot: u8,
        interface: u8,
        (report, bytes): (u8, &[u8]),
    ) -> Result<bool> {
        const OUTPUT: u16 = 2;
        let (value, len) = (OUTPUT << 8 | u16::from(report), bytes.len() as u16);
        let set = Setup { whom: TO_CLASS_INTERFACE, request: SET_REPORT, value, index: interface.into(), len };
        Ok(self.control_async(cx, wait, slot, set, bytes)?.is_some())
    }

    /// A transfer of endpoint 0 with as many bytes as the request says, a page at most: how many there were. `None`: the device refuses.
    ///
    /// # Errors
    /// The device does not answer, or not by the rules: it cannot be used any more.
    fn control_async(
        &mut self,
        cx: &mut Cx,
        wait: &mut dyn Wait,
        slot: u8,
        setup: Setup,
        bytes: &[u8],
    ) -> Result<Option<usize>> {
        const IMMEDIATE: u32 = 1 << 6;
        const TELL: u32 = 1 << 5;
        const TELL_SHORT: u32 = 1 << 2;
        const IN: u32 = 1 << 16;
        let Setup { whom, request, value, index, len } = setup;
        let is_in = whom & 0x80 != 0;
        let device = self.device(slot)?;
        // The kernel's own memory does not fault.
        let _ = device.data.writer(0, PAGE_SIZE).write(bytes);
        let whole = u64::from(whom)
            | u64::from(request) << 8
            | u64::from(value) << 16
            | u64::from(index) << 32
            | u64::from(len) << 48;
        let direction = match (len, is_in) {
            (0, _) => 0,
            (_, true) => 3,
            (_, false) => 2,
        };
        let control = of_kind(kind::SETUP) | IMMEDIATE | direction << 16;
        device.control.push(Trb { parameter: Parameter::Number(whole), status: 8, control });
        let data = match device.data.address(0).filter(|_| len > 0) {
            Some(address) => {
                let control = of_kind(kind::DATA) | TELL_SHORT | if is_in { IN } else { 0 };
                Some(device.control.push(Trb { parameter: Parameter::Address(address), status: len.into(), control }))
            }
            None => None,
        };
        let back = if is_in && len > 0 { 0 } else { IN };
        let control = of_kind(kind::STATUS) | TELL | back;
        let end = device.control.push(Trb { parameter: Parameter::Number(0), status: 0, control });
        let answer = self.control_answer_async(cx, wait, slot, (data, end), CONTROL_LIMIT)?;
        let answer = answer.ok_or(Failure::Device("it does not answer"))?;
        match answer.code {
            code::SUCCESS | code::SHORT => {
                let got = usize::from(len).checked_sub(answer.residue);
                got.map(Some).ok_or(Failure::Controller("it says that more is left than was asked for"))
            }
            code::STALL => {
                self.go_on_async(cx, wait, slot, 1)?;
                Ok(None)
            }
            _ => Err(Failure::Device("it cannot be spoken with")),
        }
    }

    /// An endpoint that has stopped goes on with what is asked of it next.
    ///
    /// # Errors
    /// The controller does not let it.
    pub(super) fn go_on_async(&mut self, cx: &mut Cx, wait: &mut dyn Wait, slot: u8, context: u8) -> Result<()> {
        let endpoint = u32::from(context) << 16;
        let reset = Self::control_word(kind::RESET_ENDPOINT, slot) | endpoint;
        // One that has not stopped needs none.
        self.command_async(cx, wait, Parameter::Number(0), reset)?;
        let device = self.device(slot)?;
        let ring = match device.interfaces.iter().find(|interface| interface.context == context) {
            Some(interface) => &interface.ring,
            None => &device.control,
        };
        let next = ring.next_address().ok_or(Failure::Controller("its pages are nowhere"))?;
        let set = Self::control_word(kind::SET_DEQUEUE, slot) | endpoint;
        let answer = self.command_async(cx, wait, Parameter::Address(next), set)?;
        if answer.code == code::SUCCESS { Ok(()) } else { Err(Failure::Device("it has stopped")) }
    }
}

/// What is known of a device before its interfaces.
struct Described {
    id: Device,
    /// Maker, product, serial number.
    texts: [String; 3],
    port: usize,
}

/// The power of two of 125 µs after which an endpoint is asked again (xHCI 1.2, 6.2.3.6).
fn interval(speed: u8, said: u8) -> u32 {
    let said = u32::from(said.max(1));
    // Slower devices say it in milliseconds.
    if speed <= LOW { (said * 8).ilog2().clamp(3, 10) } else { (said - 1).min(15) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_asked_as_often_as_it_says() {
        assert_eq!([1, 2, 7, 10, 255].map(|said| interval(FULL, said)), [3, 4, 5, 6, 10]);
        assert_eq!([0, 1, 7, 255].map(|said| interval(HIGH, said)), [0, 0, 6, 15]);
    }
}

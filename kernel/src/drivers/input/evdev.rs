//! An input device as a file (Linux, Documentation/input/input.rst, "Event interface"): reads bring whole events, writes change lights, requests of ioctl(2) ask for the rest.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, Writer};
use linux_raw_sys::{general as abi, ioctl};
use refs::Waker;
use usb::Event;
use usb::codes::{self, EV_ABS, EV_COUNT, EV_KEY, EV_LED, EV_MSC, EV_REL, EV_REP, EV_SND, EV_SW, EV_SYN};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::queue::{Queue, Stamped};
use super::{Axis, Client, Device, FIRST_MINOR, MOST_OPEN, SLOTS, Slot};
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd, VfsCaller};
use crate::memory::account::Charge;
use crate::reclaim::Held;
use crate::step::{Interruption, Step, Stop};
use crate::user_memory::{Argument, UserIn, UserOut};

/// `EV_VERSION`.
const VERSION: u32 = 0x1_0001;
/// Events that are passed at once.
const AT_ONCE: usize = 16;

/// `struct input_event`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct InputEvent {
    seconds: i64,
    microseconds: i64,
    kind: u16,
    code: u16,
    value: i32,
}

const EVENT_BYTES: usize = size_of::<InputEvent>();

/// `struct input_absinfo`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct AbsInfo {
    value: i32,
    minimum: i32,
    maximum: i32,
    fuzz: i32,
    flat: i32,
    resolution: i32,
}

/// `struct input_mask`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct InputMask {
    kind: u32,
    bytes: u32,
    codes: u64,
}

/// An open device.
struct EvdevFile {
    slot: &'static Slot,
    /// Its entry there.
    number: u64,
}

/// Opens a device.
///
/// # Errors
/// ENXIO: there is none. ENFILE: it is open too often. ENOMEM, also where the caller's group may not have so much.
pub fn open(minor: u32, cx: &Cx) -> Result<Box<dyn File>> {
    let slot = SLOTS.get(minor.wrapping_sub(FIRST_MINOR) as usize).ok_or(Errno::ENXIO)?;
    let mut state = slot.state.lock(cx);
    let most = state.device.as_ref().map(room).ok_or(Errno::ENXIO)?;
    if state.open.len() == MOST_OPEN {
        return Err(Errno::ENFILE);
    }
    let charge = Charge::new((most * size_of::<Stamped>()).div_ceil(PAGE_SIZE) as u32)?;
    state.last_open += 1;
    let number = state.last_open;
    let client = Client {
        serial: state.serial,
        queue: Queue::new(most)?,
        clock: abi::CLOCK_REALTIME,
        is_revoked: false,
        masks: BTreeMap::new(),
        _charge: charge,
    };
    state.open.insert(number, client);
    Ok(Box::new(EvdevFile { slot, number }))
}

/// For how many events an open file has room: eight of the largest reports, 64 at least, and a power of two.
fn room(device: &Device) -> usize {
    let all = &device.description.capabilities;
    let report = 1 + all.absolute.count_ones() + all.relative.count_ones() + 7;
    (8 * report as usize).max(64).next_power_of_two()
}

impl Drop for EvdevFile {
    fn drop(&mut self) {
        let number = self.number;
        let client = self.slot.state.with(move |state| {
            if let Some(device) = &mut state.device
                && device.grabbed_by == Some(number)
            {
                device.grabbed_by = None;
            }
            state.open.remove(&number)
        });
        drop(client);
    }
}

impl EvdevFile {
    /// Looks at the device and at what the file has of it.
    fn with<R>(&self, cx: &Cx, look: impl FnOnce(&mut Device, &mut Client) -> R) -> Result<R> {
        let mut state = self.slot.state.lock(cx);
        let (device, client) = state.device_of(self.number)?;
        Ok(look(device, client))
    }

    /// Writes bits, as many bytes as a program has room for: how many.
    fn bits(bytes: &[u8], size: usize, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        // As many as whole words have.
        let len = bytes.len().next_multiple_of(8).min(size);
        let mut padded = bytes.to_vec();
        padded.resize(len, 0);
        me.memory(cx)?.writer(argument.output::<u8>().slice(len)).write(&padded)?;
        Ok(len)
    }

    fn text(text: &str, size: usize, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        bytes.truncate(size);
        me.memory(cx)?.writer(argument.output::<u8>().slice(bytes.len())).write(&bytes)?;
        Ok(bytes.len())
    }

    /// State that a program asks for replaces the events of its type that it has not read.
    fn state_bits(&self, kind: u16, size: usize, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let state_of = |device: &Device| match kind {
            EV_KEY => bytes_of(&device.keys),
            EV_LED => bytes_of(&[device.lights])[..2].to_vec(),
            // There are neither switches nor sounds.
            EV_SW => alloc::vec![0; 3],
            _ => alloc::vec![0; 1],
        };
        let bytes = self.with(cx, |device, _| state_of(device))?;
        let len = Self::bits(&bytes, size, argument, me, cx)?;
        // What was told is the state after all events that are forgotten; if it is another one by now, it is told anew.
        let is_true = self.with(cx, |device, client| {
            let is_true = state_of(device) == bytes;
            if is_true {
                client.queue.forget(kind);
            }
            is_true
        })?;
        if is_true { Ok(len) } else { Err(Stop::Pause(Interruption::KillOnly)) }
    }

    /// Which codes of a type there are; for type 0: which types.
    fn capability_bits(&self, kind: u16, cx: &Cx) -> Result<Vec<u8>> {
        let bytes = match kind {
            EV_SYN => 4,
            EV_KEY | EV_REL | EV_ABS | EV_MSC | EV_LED | EV_SND | EV_SW | codes::EV_FF => {
                usize::from(codes::count(kind).unwrap_or(0)).div_ceil(8)
            }
            _ => return Err(Errno::EINVAL),
        };
        self.with(cx, |device, _| {
            let all = &device.description.capabilities;
            let mut bits = match kind {
                EV_SYN => bytes_of(&[all.kinds()]),
                EV_KEY => bytes_of(&all.keys),
                EV_REL => bytes_of(&[all.relative]),
                EV_ABS => bytes_of(&[all.absolute]),
                EV_MSC => bytes_of(&[all.other]),
                EV_LED => bytes_of(&[all.lights]),
                _ => Vec::new(),
            };
            bits.resize(bytes, 0);
            bits
        })
    }

    fn set_mask(&self, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let mask = me.memory(cx)?.read(argument.input::<InputMask>())?;
        // What there is not needs no mask.
        let Some((kind, count)) = mask_type(mask.kind) else { return Ok(0) };
        let mut bytes = alloc::vec![0; usize::from(count).div_ceil(64) * 8];
        let len = bytes.len().min(mask.bytes as usize);
        let from = UserIn::<u8>::new(mask.codes as usize).slice(len);
        me.memory(cx)?.read_into(from, &mut bytes[..len])?;
        self.with(cx, |_, client| _ = client.masks.insert(kind, bytes.into()))?;
        Ok(0)
    }

    fn get_mask(&self, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let mask = me.memory(cx)?.read(argument.input::<InputMask>())?;
        let to = UserOut::<u8>::new(mask.codes as usize);
        let mut bytes = Vec::new();
        if let Some((kind, count)) = mask_type(mask.kind) {
            let all = || {
                let mut all = alloc::vec![0_u8; usize::from(count).div_ceil(64) * 8];
                (0..count).for_each(|code| all[usize::from(code / 8)] |= 1 << (code % 8));
                all
            };
            bytes = self.with(cx, |_, client| client.masks.get(&kind).map_or_else(all, |mask| mask.to_vec()))?;
        }
        let len = bytes.len().min(mask.bytes as usize);
        let memory = me.memory(cx)?;
        memory.writer(to.slice(len)).write(&bytes[..len])?;
        // What there is not has no codes.
        let mut rest = memory.writer(to.add(len).slice(mask.bytes as usize - len));
        rest.zero(rest.remaining().min(PAGE_SIZE))?;
        Ok(0)
    }

    /// Requests whose number has the size of what is asked for.
    fn sized(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let (is_read, size, number) = (request >> 30 == 2, (request >> 16 & 0x3fff) as usize, request as u8);
        let is_write = request >> 30 == 1;
        if request >> 8 & 0xff != u32::from(b'E') {
            return Err(Errno::EINVAL.into());
        }
        match number {
            0x06 if is_read => {
                let name = self.with(cx, |device, _| device.description.name.clone())?;
                Self::text(&name, size, argument, me, cx)
            }
            0x07 if is_read => {
                let phys = self.with(cx, |device, _| device.description.phys.clone())?;
                Self::text(&phys, size, argument, me, cx)
            }
            0x08 if is_read => {
                let uniq = self.with(cx, |device, _| device.description.uniq.clone())?;
                Self::text(&uniq, size, argument, me, cx)
            }
            // Properties, of which none is known.
            0x09 if is_read => Self::bits(&[0; 4], size, argument, me, cx),
            0x18 if is_read => self.state_bits(EV_KEY, size, argument, me, cx),
            0x19 if is_read => self.state_bits(EV_LED, size, argument, me, cx),
            0x1a if is_read => self.state_bits(EV_SND, size, argument, me, cx),
            0x1b if is_read => self.state_bits(EV_SW, size, argument, me, cx),
            0x20..=0x3f if is_read => {
                let bits = self.capability_bits(u16::from(number) - 0x20, cx)?;
                Self::bits(&bits, size, argument, me, cx)
            }
            0x40..=0x7f if is_read => {
                let code = u16::from(number) - 0x40;
                let axis = self.with(cx, |device, _| {
                    (!device.axes.is_empty()).then(|| device.axes.get(&code).copied().unwrap_or_default())
                })?;
                let info = AbsInfo::from(axis.ok_or(Errno::EINVAL)?);
                let len = size.min(size_of::<AbsInfo>());
                me.memory(cx)?.writer(argument.output::<u8>().slice(len)).write(&info.as_bytes()[..len])?;
                Ok(0)
            }
            0xc0..=0xff if is_write => {
                let mut info = [0; size_of::<AbsInfo>()];
                let len = size.min(info.len());
                let has_axes = self.with(cx, |device, _| !device.axes.is_empty())?;
                if !has_axes {
                    return Err(Errno::EINVAL.into());
                }
                me.memory(cx)?.read_into(argument.input::<u8>().slice(len), &mut info[..len])?;
                let info = AbsInfo::read_from_bytes(&info).map_err(|_| Errno::EINVAL)?;
                self.with(cx, |device, _| {
                    if let Some(axis) = device.axes.get_mut(&(u16::from(number) - 0xc0)) {
                        *axis = info.into();
                    }
                })?;
                Ok(0)
            }
            _ => Err(Errno::EINVAL.into()),
        }
    }
}

/// A type that has a mask, and how many codes it has.
fn mask_type(kind: u32) -> Option<(u16, u16)> {
    let kind = u16::try_from(kind).ok().filter(|&kind| kind < EV_COUNT)?;
    // That of type 0 is of the types.
    let count = if kind == EV_SYN { EV_COUNT } else { codes::count(kind)? };
    Some((kind, count))
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl From<Axis> for AbsInfo {
    fn from(Axis { value, minimum, maximum, fuzz, flat, resolution }: Axis) -> Self {
        AbsInfo { value, minimum, maximum, fuzz, flat, resolution }
    }
}

impl From<AbsInfo> for Axis {
    fn from(AbsInfo { value, minimum, maximum, fuzz, flat, resolution }: AbsInfo) -> Self {
        Axis { value, minimum, maximum, fuzz, flat, resolution }
    }
}

impl File for EvdevFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Input
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let wants_any = to.remaining() > 0;
        if wants_any && to.remaining() < EVENT_BYTES {
            return Err(Errno::EINVAL.into());
        }
        self.with(cx, |_, _| ())?;
        let mut count = 0;
        while to.remaining() >= EVENT_BYTES {
            let most = (to.remaining() / EVENT_BYTES).min(AT_ONCE);
            let (taken, losses, clock) = self.with(cx, |_, client| {
                let taken: Vec<Stamped> = core::iter::from_fn(|| client.queue.pop()).take(most).collect();
                (taken, client.queue.losses(), client.clock)
            })?;
            if taken.is_empty() {
                break;
            }
            let bytes: Vec<u8> = taken.iter().flat_map(|stamped| bytes_of_event(stamped, clock)).collect();
            // Nothing is locked while the program's memory is written.
            let before = to.remaining();
            if let Err(fault) = to.write(&bytes) {
                let written = (before - to.remaining()) / EVENT_BYTES;
                self.with(cx, |_, client| {
                    taken[written..].iter().rev().for_each(|&stamped| client.queue.put_back(stamped, losses));
                })?;
                // Who found nothing meanwhile may find it now.
                self.slot.readers.wake_all();
                count += written * EVENT_BYTES;
                return if count == 0 { Err(fault.into()) } else { Ok(count) };
            }
            count += bytes.len();
        }
        if count > 0 || !wants_any {
            return Ok(count);
        }
        Err(Stop::Block)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if from.remaining() > 0 && from.remaining() < EVENT_BYTES {
            return Err(Errno::EINVAL.into());
        }
        self.with(cx, |_, _| ())?;
        let mut count = 0;
        // More is a short write.
        for _ in 0..AT_ONCE {
            if from.remaining() < EVENT_BYTES {
                break;
            }
            let mut bytes = [0; EVENT_BYTES];
            if let Err(fault) = from.read(&mut bytes) {
                return if count == 0 { Err(fault.into()) } else { Ok(count) };
            }
            let event = InputEvent::read_from_bytes(&bytes).map_err(|_| Errno::EINVAL)?;
            count += EVENT_BYTES;
            let event = Event { kind: event.kind, code: event.code, value: event.value };
            let is_grabbed = |device: &mut Device, _: &mut Client| {
                (device.grabbed_by.is_some_and(|only| only != self.number), device.driver)
            };
            let (is_grabbed, driver) = self.with(cx, is_grabbed)?;
            if !is_grabbed {
                self.slot.pass_on(&[event], cx);
                if matches!(event.kind, EV_LED | EV_KEY | EV_REP) {
                    driver.wake_all();
                }
            }
        }
        Ok(count)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.slot.readers.register(waker, cx);
        }
        match self.with(cx, |_, client| client.queue.is_readable()) {
            Ok(is_readable) => {
                let read = if is_readable { Events::IN | Events::READ_NORMAL } else { Events::empty() };
                interest & (read | Events::OUT | Events::WRITE_NORMAL)
            }
            Err(_) => Events::ERROR | Events::HANG_UP,
        }
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        // Whatever is asked, a device that is gone says so.
        self.with(cx, |_, _| ())?;
        match request {
            ioctl::EVIOCGVERSION => me.memory(cx)?.write(argument.output::<u32>(), &VERSION)?,
            ioctl::EVIOCGID => {
                let id = self.with(cx, |device, _| device.description.id)?;
                let id = [id.bus, id.vendor, id.product, id.version];
                me.memory(cx)?.write(argument.output::<[u16; 4]>(), &id)?;
            }
            ioctl::EVIOCGREP => {
                let repeat = self.with(cx, |device, _| {
                    device.description.capabilities.repeats.then_some([device.repeat.delay, device.repeat.period])
                })?;
                me.memory(cx)?.write(argument.output::<[u32; 2]>(), &repeat.ok_or(Errno::ENOSYS)?)?;
            }
            ioctl::EVIOCSREP => {
                if !self.with(cx, |device, _| device.description.capabilities.repeats)? {
                    return Err(Errno::ENOSYS.into());
                }
                let new = me.memory(cx)?.read(argument.input::<[u32; 2]>())?;
                let event = |code: u16| Event { kind: EV_REP, code, value: new[usize::from(code)] as i32 };
                self.slot.pass_on(&[event(codes::REP_DELAY), event(codes::REP_PERIOD)], cx);
            }
            ioctl::EVIOCGEFFECTS => me.memory(cx)?.write(argument.output::<u32>(), &0)?,
            ioctl::EVIOCGRAB => self.with(cx, |device, _| match (argument.value() != 0, device.grabbed_by) {
                (true, None) => {
                    device.grabbed_by = Some(self.number);
                    Ok(())
                }
                (true, Some(_)) => Err(Errno::EBUSY),
                (false, Some(only)) if only == self.number => {
                    device.grabbed_by = None;
                    Ok(())
                }
                (false, _) => Err(Errno::EINVAL),
            })??,
            ioctl::EVIOCREVOKE => {
                if argument.value() != 0 {
                    return Err(Errno::EINVAL.into());
                }
                self.with(cx, |device, client| {
                    client.is_revoked = true;
                    if device.grabbed_by == Some(self.number) {
                        device.grabbed_by = None;
                    }
                })?;
                self.slot.readers.wake_all();
            }
            ioctl::EVIOCGMASK => return self.get_mask(argument, me, cx),
            ioctl::EVIOCSMASK => return self.set_mask(argument, me, cx),
            ioctl::EVIOCSCLOCKID => {
                let clock = me.memory(cx)?.read(argument.input::<u32>())?;
                if !matches!(clock, abi::CLOCK_REALTIME | abi::CLOCK_MONOTONIC | abi::CLOCK_BOOTTIME) {
                    return Err(Errno::EINVAL.into());
                }
                self.with(cx, |_, client| {
                    if core::mem::replace(&mut client.clock, clock) != clock {
                        client.queue.forget_all(super::now());
                    }
                })?;
            }
            _ => return self.sized(request, argument, me, cx),
        }
        Ok(0)
    }
}

/// An event as a program reads it.
fn bytes_of_event(stamped: &Stamped, clock: u32) -> [u8; EVENT_BYTES] {
    let time = if clock == abi::CLOCK_REALTIME { stamped.time.wall } else { stamped.time.boot };
    let microseconds = time / 1000;
    let event = InputEvent {
        seconds: (microseconds / 1_000_000) as i64,
        microseconds: (microseconds % 1_000_000) as i64,
        kind: stamped.event.kind,
        code: stamped.event.code,
        value: stamped.event.value,
    };
    zerocopy::transmute!(event)
}

#[cfg(test)]
pub mod tests {
    use core::any::Any;
    use std::vec::Vec;

    use super::*;

    fn evdev(file: &dyn File) -> &EvdevFile {
        let any: &dyn Any = file;
        any.downcast_ref().expect("it is an input device")
    }

    /// What a program would read.
    pub fn heard(file: &dyn File, cx: &Cx) -> Vec<(u16, u16, i32)> {
        let mut all = Vec::new();
        let _ = evdev(file).with(cx, |_, client| {
            let events = core::iter::from_fn(|| client.queue.pop()).map(|stamped| stamped.event);
            all.extend(events.map(|event| (event.kind, event.code, event.value)));
        });
        all
    }

    /// What a program writes.
    pub fn write(file: &dyn File, (kind, code, value): (u16, u16, i32), cx: &Cx) {
        evdev(file).slot.pass_on(&[Event { kind, code, value }], cx);
    }

    #[test]
    fn a_file_has_room_for_eight_of_the_largest_reports() {
        let mut device = Device {
            description: super::super::Description::default(),
            keys: [0; 12],
            lights: 0,
            axes: BTreeMap::new(),
            repeat: super::super::Repeat::default(),
            grabbed_by: None,
            driver: &SLOTS[0].readers,
            node: None,
        };
        assert_eq!(room(&device), 64);
        device.description.capabilities.relative = 0xf;
        assert_eq!(room(&device), 128);
    }
}

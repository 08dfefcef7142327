//! [`Decoder`]: what reports of a device mean.

use alloc::vec::Vec;

use crate::codes::*;
use crate::layout::{Field, Kind, Layout};
use crate::usages::{Target, event_of};

/// An event of Linux's input layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its type (`EV_*`).
    pub kind: u16,
    /// Its code, of those of the type.
    pub code: u16,
    /// Its value.
    pub value: i32,
}

/// What the values of an absolute axis can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbsoluteRange {
    /// The code of the axis.
    pub code: u16,
    /// The least value.
    pub minimum: i32,
    /// The largest one.
    pub maximum: i32,
    /// Units in a millimetre; 0: not known.
    pub resolution: i32,
}

/// Which events a device can have: a bit for each code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Keys and buttons.
    pub keys: [u64; 12],
    /// Relative axes.
    pub relative: u64,
    /// Absolute axes.
    pub absolute: u64,
    /// Others.
    pub other: u64,
    /// Lights.
    pub lights: u64,
    /// Whether keys that are held down repeat.
    pub repeats: bool,
    /// What the absolute axes can be.
    pub ranges: Vec<AbsoluteRange>,
}

impl Capabilities {
    /// Whether it can have a key.
    pub fn has_key(&self, code: u16) -> bool {
        self.keys.get(usize::from(code / 64)).is_some_and(|word| word >> (code % 64) & 1 != 0)
    }

    /// The types of events that it can have, a bit for each.
    pub fn kinds(&self) -> u64 {
        let has = |kind: u16, is_there: bool| u64::from(is_there) << kind;
        1 << EV_SYN
            | has(EV_KEY, self.keys.iter().any(|&word| word != 0))
            | has(EV_REL, self.relative != 0)
            | has(EV_ABS, self.absolute != 0)
            | has(EV_MSC, self.other != 0)
            | has(EV_LED, self.lights != 0)
            | has(EV_REP, self.repeats)
    }

    /// Whether it can have no events but that they are over.
    pub fn is_empty(&self) -> bool {
        self.kinds() == 1
    }
}

/// So many values of a field whose values are numbers of usages are looked at: so many keys are hardly ever down at once.
const MOST_AT_ONCE: u32 = 32;
/// The usage that a keyboard reports instead of all keys when more are down than it can tell.
const TOO_MANY_KEYS: u32 = 0x7_0001;

/// The meaning of a device's reports. It remembers which keys were down.
#[derive(Debug)]
pub struct Decoder {
    layout: Layout,
    /// Of each field that names usages: the values of the last report.
    before: Vec<Vec<i32>>,
    keys: [u64; 12],
}

impl Decoder {
    /// For a device with such reports.
    pub fn new(layout: Layout) -> Self {
        let of = |field: &Field| {
            let count = if field.is_variable { 0 } else { field.count.min(MOST_AT_ONCE) };
            // What no usage has the number of.
            alloc::vec![i32::MIN; count as usize]
        };
        let before = layout.fields.iter().map(of).collect();
        Decoder { layout, before, keys: [0; 12] }
    }

    /// The fields of its reports.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Which events there can be.
    pub fn capabilities(&self) -> Capabilities {
        let mut all = Capabilities::default();
        for field in &self.layout.fields {
            for usage in field.usages() {
                let Some(target) = event_of(usage, field) else { continue };
                match (field.kind, target) {
                    (Kind::Input, Target::Key(code)) => {
                        all.keys[usize::from(code / 64)] |= 1 << (code % 64);
                        all.other |= 1 << MSC_SCAN;
                        all.repeats |= usage >> 16 == 7;
                    }
                    (Kind::Input, Target::Relative(code)) => all.relative |= 1 << code,
                    (Kind::Input, Target::Wheel { notches, fine }) => all.relative |= 1 << notches | 1 << fine,
                    (Kind::Input, Target::Absolute(code)) => {
                        if all.absolute >> code & 1 == 0 {
                            all.ranges.push(range(code, field));
                        }
                        all.absolute |= 1 << code;
                    }
                    (Kind::Output, Target::Light(code)) => all.lights |= 1 << code,
                    _ => {}
                }
            }
        }
        all
    }

    /// What a report says, event after event. One that is not known, or too short to have a number, says nothing.
    pub fn decode(&mut self, report: &[u8], mut each: impl FnMut(Event)) {
        let Decoder { layout, before, keys } = self;
        let number = if layout.has_numbers { report.first().copied().unwrap_or(0) } else { 0 };
        for (field, before) in layout.fields.iter().zip(before) {
            if field.kind != Kind::Input || field.report != number {
                continue;
            }
            if field.is_variable {
                for (at, usage) in (0..field.count).zip(field.usages()) {
                    let mut value = field.value(report, at);
                    if !field.is_valid(value) {
                        if field.has_null {
                            continue;
                        }
                        value = value.clamp(field.logical.0, field.logical.1);
                    }
                    tell(field, Some(usage), value, keys, &mut each);
                }
            } else {
                chosen(field, report, before, keys, &mut each);
            }
        }
    }

    /// The report that switches on those lights whose bits are set, and the others off: its number, and its bytes. `None` if the device has no lights.
    pub fn lights(&self, on: u64) -> Option<(u8, Vec<u8>)> {
        let is_light = |field: &Field, number| {
            let target = field.usage(number).and_then(|usage| event_of(usage, field));
            if let Some(Target::Light(code)) = target { Some(code) } else { None }
        };
        let fields = || self.layout.fields.iter().filter(|field| field.kind == Kind::Output && field.is_variable);
        let report = fields().find(|field| (0..field.count).any(|at| is_light(field, at).is_some()))?.report;
        let mut bytes = alloc::vec![0; self.layout.report_bytes(Kind::Output, report)?];
        if self.layout.has_numbers {
            *bytes.first_mut()? = report;
        }
        for field in fields().filter(|field| field.report == report) {
            for at in 0..field.count {
                let is_on = is_light(field, at).is_some_and(|code| on >> code & 1 != 0);
                let bit = field.bit + at * field.size;
                if let Some(byte) = bytes.get_mut((bit / 8) as usize).filter(|_| is_on) {
                    *byte |= 1 << (bit % 8);
                }
            }
        }
        Some((report, bytes))
    }
}

/// A field whose values are numbers of usages: those are down that it names.
fn chosen(field: &Field, report: &[u8], before: &mut [i32], keys: &mut [u64; 12], each: &mut impl FnMut(Event)) {
    let mut now = [i32::MIN; MOST_AT_ONCE as usize];
    let now = &mut now[..before.len()];
    for (at, value) in now.iter_mut().enumerate() {
        *value = field.value(report, at as u32);
    }
    let usage = |value: i32| {
        let number = i64::from(value) - i64::from(field.logical.0);
        if field.is_valid(value) { u32::try_from(number).ok().and_then(|number| field.usage(number)) } else { None }
    };
    if now.iter().any(|&value| usage(value) == Some(TOO_MANY_KEYS)) {
        return;
    }
    for at in 0..now.len() {
        if !now.contains(&before[at]) {
            tell(field, usage(before[at]), 0, keys, each);
        }
        if !before.contains(&now[at]) {
            tell(field, usage(now[at]), 1, keys, each);
        }
    }
    before.copy_from_slice(now);
}

/// Tells of a usage's new value.
fn tell(field: &Field, usage: Option<u32>, value: i32, keys: &mut [u64; 12], each: &mut impl FnMut(Event)) {
    let Some(usage) = usage else { return };
    let mut event = |kind, code, value| each(Event { kind, code, value });
    match event_of(usage, field) {
        Some(Target::Key(code)) => {
            let (word, bit) = (&mut keys[usize::from(code / 64)], 1 << (code % 64));
            if (*word & bit != 0) != (value != 0) {
                *word ^= bit;
                event(EV_MSC, MSC_SCAN, usage as i32);
            }
            event(EV_KEY, code, i32::from(value != 0));
        }
        Some(Target::Relative(code)) if value != 0 => event(EV_REL, code, value),
        Some(Target::Wheel { notches, fine }) if value != 0 => {
            event(EV_REL, notches, value);
            event(EV_REL, fine, value.saturating_mul(120));
        }
        Some(Target::Absolute(code)) => event(EV_ABS, code, value),
        _ => {}
    }
}

/// What a field says of an absolute axis.
fn range(code: u16, field: &Field) -> AbsoluteRange {
    let (minimum, maximum) = field.logical;
    AbsoluteRange { code, minimum, maximum, resolution: resolution(code, field).unwrap_or(0) }
}

/// Units in a millimetre, where the field is a length.
fn resolution(code: u16, field: &Field) -> Option<i32> {
    const CENTIMETRE: u32 = 0x11;
    const INCH: u32 = 0x13;
    let is_length = code <= 2;
    let extent = |(least, largest): (i32, i32)| i128::from(largest) - i128::from(least);
    let (mut logical, mut physical) = (extent(field.logical), extent(field.physical));
    let power = match field.unit.0 {
        CENTIMETRE => field.unit.1 + 1,
        INCH => {
            physical *= 254;
            field.unit.1 - 1
        }
        _ => return None,
    };
    if !is_length || logical <= 0 || physical <= 0 {
        return None;
    }
    let factor = 10_i128.pow(power.unsigned_abs());
    if power > 0 {
        physical *= factor
    } else {
        logical *= factor
    }
    i32::try_from((logical + physical / 2) / physical).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// A keyboard of QEMU's: eight modifiers, five lights, six keys.
    const KEYBOARD: &[u8] = &[
        5, 1, 9, 6, 0xa1, 1, 0x75, 1, 0x95, 8, 5, 7, 0x19, 0xe0, 0x29, 0xe7, 0x15, 0, 0x25, 1, 0x81, 2, 0x95, 1, 0x75,
        8, 0x81, 1, 0x95, 5, 0x75, 1, 5, 8, 0x19, 1, 0x29, 5, 0x91, 2, 0x95, 1, 0x75, 3, 0x91, 1, 0x95, 6, 0x75, 8,
        0x15, 0, 0x25, 0xff, 5, 7, 0x19, 0, 0x29, 0xff, 0x81, 0, 0xc0,
    ];

    fn keyboard() -> Decoder {
        Decoder::new(Layout::read(KEYBOARD).unwrap())
    }

    fn decode(decoder: &mut Decoder, report: &[u8]) -> Vec<(u16, u16, i32)> {
        let mut all = Vec::new();
        decoder.decode(report, |event| all.push((event.kind, event.code, event.value)));
        all
    }

    /// What changes of keys.
    fn keys(decoder: &mut Decoder, report: &[u8]) -> Vec<(u16, i32)> {
        let mut all = decode(decoder, report);
        let scanned: Vec<usize> = (1..all.len()).filter(|&at| all[at - 1].0 == EV_MSC).collect();
        assert!(scanned.iter().all(|&at| all[at].0 == EV_KEY));
        let mut at = 0;
        all.retain(|_| {
            at += 1;
            scanned.contains(&(at - 1))
        });
        all.into_iter().map(|(_, code, value)| (code, value)).collect()
    }

    #[test]
    fn keys_are_told_when_they_go_down_and_up() {
        let mut decoder = keyboard();
        assert_eq!(keys(&mut decoder, &[2, 0, 4, 0, 0, 0, 0, 0]), [(42, 1), (30, 1)]);
        assert_eq!(keys(&mut decoder, &[2, 0, 4, 5, 0, 0, 0, 0]), [(48, 1)]);
        assert_eq!(keys(&mut decoder, &[0, 0, 5, 0, 0, 0, 0, 0]), [(42, 0), (30, 0)]);
        assert_eq!(keys(&mut decoder, &[0, 0, 1, 1, 1, 1, 1, 1]), [], "more than it can tell");
        assert_eq!(keys(&mut decoder, &[0, 0, 0, 0, 0, 0, 0, 0]), [(48, 0)]);
        assert_eq!(keys(&mut decoder, &[]), []);
    }

    #[test]
    fn a_keyboard_says_what_it_has() {
        let all = keyboard().capabilities();
        assert_eq!((all.kinds(), all.lights, all.other), (0x12_0013, 0x1f, 0x10));
        assert!(all.has_key(30) && all.has_key(240) && !all.has_key(0) && !all.has_key(0x110) && !all.has_key(0xffff));
    }

    #[test]
    fn lights_are_bits_of_a_report() {
        assert_eq!(keyboard().lights(0b10010), Some((0, vec![0b10010])));
        assert_eq!(keyboard().lights(0), Some((0, vec![0])));
        assert_eq!(keyboard().lights(u64::MAX), Some((0, vec![0x1f])));
    }

    /// A tablet of QEMU's: three buttons, a place, a wheel.
    const TABLET: &[u8] = &[
        5, 1, 9, 2, 0xa1, 1, 9, 1, 0xa1, 0, 5, 9, 0x19, 1, 0x29, 3, 0x15, 0, 0x25, 1, 0x95, 3, 0x75, 1, 0x81, 2, 0x95,
        1, 0x75, 5, 0x81, 1, 5, 1, 9, 0x30, 9, 0x31, 0x15, 0, 0x26, 0xff, 0x7f, 0x35, 0, 0x46, 0xff, 0x7f, 0x75, 0x10,
        0x95, 2, 0x81, 2, 5, 1, 9, 0x38, 0x15, 0x81, 0x25, 0x7f, 0x35, 0, 0x45, 0, 0x75, 8, 0x95, 1, 0x81, 6, 0xc0,
        0xc0,
    ];

    #[test]
    fn a_tablet_has_places_and_a_wheel() {
        let mut decoder = Decoder::new(Layout::read(TABLET).unwrap());
        let axis = |code| AbsoluteRange { code, minimum: 0, maximum: 32767, resolution: 0 };
        let all = decoder.capabilities();
        assert_eq!(all.ranges, [axis(0), axis(1)]);
        assert_eq!((all.kinds(), all.relative, all.keys[4]), (0x1f, 0x900, 7 << 16));
        let events = decode(&mut decoder, &[1, 0x34, 0x12, 0xff, 0xff, 0xff]);
        assert!(events.contains(&(EV_KEY, 0x110, 1)) && events.contains(&(EV_ABS, 0, 0x1234)));
        assert!(events.contains(&(EV_ABS, 1, 0x7fff)), "there is no larger one: {events:?}");
        assert!(events.contains(&(EV_REL, REL_WHEEL, -1)) && events.contains(&(EV_REL, REL_WHEEL_HI_RES, -120)));
    }

    #[test]
    fn a_length_has_a_resolution() {
        let mut layout = Layout::read(TABLET).unwrap();
        let field = &mut layout.fields[1];
        (field.physical, field.unit) = ((0, 3276), (0x11, -1));
        assert_eq!(resolution(0, field), Some(10));
        (field.physical, field.unit) = ((0, 1290), (0x13, -2));
        assert_eq!(resolution(0, field), Some(100));
        assert_eq!(resolution(5, field), None);
    }
}

//! Descriptors (USB 2.0, 9.6; HID 1.11, 6.2.1): a length, a kind, and what that kind has. One that is too short for its kind is none.

use alloc::string::String;
use alloc::vec::Vec;

const DEVICE: u8 = 1;
const CONFIGURATION: u8 = 2;
const STRING: u8 = 3;
const INTERFACE: u8 = 4;
const ENDPOINT: u8 = 5;
const HID: u8 = 0x21;
const HID_REPORT: u8 = 0x22;

/// So many interfaces of a device are looked at.
const MOST_INTERFACES: usize = 16;

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// What a device says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its class; 0: each interface has its own.
    pub class: u8,
    /// The largest packet of endpoint 0, as it says it: a power of two from USB 3 on.
    pub packet_bytes: u8,
    /// Who made it.
    pub vendor: u16,
    /// What the maker calls it.
    pub product: u16,
    /// The numbers of the strings for maker, product and serial number; 0 where there is none.
    pub strings: [u8; 3],
}

impl Device {
    /// How many bytes the descriptor has.
    pub const BYTES: usize = 18;

    /// The first eight bytes are enough for the largest packet of endpoint 0, which must be known before the rest is asked for.
    pub fn packet_bytes(bytes: &[u8]) -> Option<u8> {
        let is_one = *bytes.first()? >= 18 && bytes.get(1) == Some(&DEVICE);
        if is_one { bytes.get(7).copied() } else { None }
    }

    /// Reads a device's descriptor.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let packet_bytes = Self::packet_bytes(bytes)?;
        let strings = [*bytes.get(14)?, *bytes.get(15)?, *bytes.get(16)?];
        Some(Device { class: bytes[4], packet_bytes, vendor: word(bytes, 8)?, product: word(bytes, 10)?, strings })
    }
}

/// An endpoint of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its number, 1 to 15.
    pub number: u8,
    /// Whether it brings something from the device.
    pub is_in: bool,
    /// Whether it is for interrupts.
    pub is_interrupt: bool,
    /// The largest packet in bytes.
    pub packet_bytes: u16,
    /// How often it is asked, in units that depend on the device's speed.
    pub interval: u8,
}

/// Where an interface's report descriptor is, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportDescriptor {
    /// The version of the class, in binary-coded decimals.
    pub version: u16,
    /// How many bytes it has.
    pub bytes: u16,
}

/// An interface in its first setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub number: u8,
    /// Class, subclass, protocol.
    pub class: [u8; 3],
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Where its report descriptor is, if it is a human interface device.
    pub reports: Option<ReportDescriptor>,
}

/// What a device can be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The number by which it is chosen.
    pub value: u8,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
}

impl Configuration {
    /// How many bytes the header has.
    pub const HEADER_BYTES: usize = 9;

    /// How many bytes the header says that all of it has.
    pub fn total_bytes(header: &[u8]) -> Option<u16> {
        if header.get(1) == Some(&CONFIGURATION) { word(header, 2) } else { None }
    }

    /// Reads a configuration, up to where it makes no sense any more. `None` if that is at its beginning.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let total = usize::from(Self::total_bytes(bytes)?).min(bytes.len());
        let mut configuration = Configuration { value: *bytes.get(5)?, interfaces: Vec::new() };
        // Other settings of an interface are left out, with what belongs to them.
        let mut is_first_setting = false;
        let mut rest = &bytes[..total];
        while let [len, kind, ..] = *rest
            && usize::from(len) >= 2
            && let Some((descriptor, next)) = rest.split_at_checked(len.into())
        {
            rest = next;
            if kind == INTERFACE {
                let interface = interface(descriptor);
                is_first_setting = interface.is_some() && configuration.interfaces.len() < MOST_INTERFACES;
                configuration.interfaces.extend(interface.filter(|_| is_first_setting));
            }
            let Some(interface) = configuration.interfaces.last_mut().filter(|_| is_first_setting) else { continue };
            match kind {
                ENDPOINT => interface.endpoints.extend(endpoint(descriptor)),
                HID if interface.reports.is_none() => interface.reports = reports(descriptor),
                _ => {}
            }
        }
        Some(configuration)
    }
}

/// An interface without what follows it; `None` for another setting than the first.
fn interface(descriptor: &[u8]) -> Option<Interface> {
    let [_, _, number, setting, _, class, subclass, protocol, _, ..] = *descriptor else { return None };
    let class = [class, subclass, protocol];
    (setting == 0).then_some(Interface { number, class, endpoints: Vec::new(), reports: None })
}

fn endpoint(descriptor: &[u8]) -> Option<Endpoint> {
    let [_, _, address, attributes, low, high, interval, ..] = *descriptor else { return None };
    let number = address & 0xf;
    let packet_bytes = u16::from_le_bytes([low, high]) & 0x7ff;
    let is_interrupt = attributes & 3 == 3;
    let endpoint = Endpoint { number, is_in: address & 0x80 != 0, is_interrupt, packet_bytes, interval };
    (number != 0).then_some(endpoint)
}

/// The first report descriptor that is named.
fn reports(descriptor: &[u8]) -> Option<ReportDescriptor> {
    let named = descriptor.get(6..)?.chunks_exact(3).find(|named| named[0] == HID_REPORT)?;
    Some(ReportDescriptor { version: word(descriptor, 2)?, bytes: word(named, 1)? })
}

/// Reads a string, of which the characters that would break a line of text are left out.
pub fn string(bytes: &[u8]) -> Option<String> {
    let len = usize::from(*bytes.first()?);
    let text = bytes.get(2..len).filter(|_| bytes.get(1) == Some(&STRING))?;
    let units = text.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
    Some(letters.filter(|letter| !letter.is_control()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// A keyboard of QEMU's.
    const KEYBOARD: &[u8] = &[
        9, 2, 34, 0, 1, 1, 8, 0xa0, 50, 9, 4, 0, 0, 1, 3, 1, 1, 0, 9, 0x21, 0x11, 1, 0, 1, 0x22, 0x3f, 0, 7, 5, 0x81,
        3, 8, 0, 7,
    ];

    #[test]
    fn a_keyboard_has_an_interface_with_an_endpoint_and_reports() {
        let configuration = Configuration::read(KEYBOARD).unwrap();
        let endpoint = Endpoint { number: 1, is_in: true, is_interrupt: true, packet_bytes: 8, interval: 7 };
        let reports = Some(ReportDescriptor { version: 0x111, bytes: 63 });
        let interface = Interface { number: 0, class: [3, 1, 1], endpoints: vec![endpoint], reports };
        assert_eq!(configuration, Configuration { value: 1, interfaces: vec![interface] });
    }

    #[test]
    fn what_is_cut_off_or_has_no_length_ends_a_configuration() {
        assert!(Configuration::read(&KEYBOARD[..33]).unwrap().interfaces[0].endpoints.is_empty());
        let mut endless = KEYBOARD.to_vec();
        endless[18] = 0;
        assert_eq!(Configuration::read(&endless).unwrap().interfaces[0].reports, None);
        assert_eq!(Configuration::read(&KEYBOARD[..4]), None);
        assert_eq!(Configuration::read(&[]), None);
    }

    #[test]
    fn other_settings_are_left_out() {
        let mut both = KEYBOARD.to_vec();
        both.extend_from_slice(&[9, 4, 0, 1, 1, 3, 1, 1, 0, 7, 5, 0x82, 3, 8, 0, 7]);
        both[2] = both.len() as u8;
        assert_eq!(Configuration::read(&both), Configuration::read(KEYBOARD));
    }

    #[test]
    fn strings_have_no_ends_of_lines() {
        assert_eq!(string(&[10, 3, b'Q', 0, b'\n', 0, b'E', 0, 0xff, 0xdb]).unwrap(), "QE\u{fffd}");
        assert_eq!(string(&[10, 3, b'Q', 0]), None);
        assert_eq!(string(&[4, 2, b'Q', 0]), None);
        assert_eq!(string(&[1, 3]), None);
    }
}

//! What sysfs and procfs tell of input devices.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use frame::Cx;

use super::{Description, SLOTS};
use crate::fs::DeviceNumber;

/// A device that there is.
pub struct Named {
    /// Its number, which its names end with.
    pub number: usize,
    /// Which of all devices it is that ever had that number.
    pub serial: u64,
    /// The number of its file in `/dev/input`.
    pub device: DeviceNumber,
    /// What it is.
    pub description: Description,
}

/// The devices that there are just now.
pub fn all(cx: &Cx) -> Vec<Named> {
    let shown = |slot: &'static super::Slot| {
        let state = slot.state.lock(cx);
        let description = state.device.as_ref()?.description.clone();
        Some(Named { number: slot.number, serial: state.serial, device: slot.device_number(), description })
    };
    SLOTS.iter().filter_map(shown).collect()
}

/// Bits as Linux shows them: words from the highest that is not 0, in hexadecimal digits.
pub fn bits(words: &[u64]) -> String {
    let end = words.iter().rposition(|&word| word != 0).unwrap_or(0);
    let words: Vec<String> = words[..=end].iter().rev().map(|word| format!("{word:x}")).collect();
    words.join(" ")
}

/// The kinds of capabilities, by their names in procfs, each with its bits.
pub fn capabilities(description: &Description) -> [(&'static str, String); 9] {
    let all = &description.capabilities;
    [
        ("EV", bits(&[all.kinds()])),
        ("KEY", bits(&all.keys)),
        ("REL", bits(&[all.relative])),
        ("ABS", bits(&[all.absolute])),
        ("MSC", bits(&[all.other])),
        ("LED", bits(&[all.lights])),
        ("SND", bits(&[0])),
        ("FF", bits(&[0])),
        ("SW", bits(&[0])),
    ]
}

/// `/proc/bus/input/devices`.
pub fn list(cx: &Cx) -> String {
    let mut text = String::new();
    for Named { number, description, .. } in all(cx) {
        let id = description.id;
        // Text has room for all.
        let _ = write!(
            text,
            "I: Bus={:04x} Vendor={:04x} Product={:04x} Version={:04x}\nN: Name=\"{}\"\nP: Phys={}\nS: Sysfs={}\nU: Uniq={}\nH: Handlers=event{number} \nB: PROP=0\n",
            id.bus,
            id.vendor,
            id.product,
            id.version,
            description.name,
            description.phys,
            format_args!("/devices/input/input{number}"),
            description.uniq
        );
        // What there are none of is not told.
        let kinds = capabilities(&description).into_iter().filter(|(_, bits)| bits != "0");
        kinds.for_each(|(name, bits)| _ = writeln!(text, "B: {name}={bits}"));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_begin_with_the_highest_word() {
        assert_eq!(bits(&[0, 0x1f_0000, 0]), "1f0000 0");
        assert_eq!(bits(&[3]), "3");
        assert_eq!(bits(&[0, 0]), "0");
    }
}

//! [`event_of`]: which of Linux's events a usage is (HID Usage Tables 1.4), as Linux's own driver for such devices has it.

use crate::codes::*;
use crate::layout::Field;

/// An event that a usage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A key or button.
    Key(u16),
    /// A change.
    Relative(u16),
    /// A change of a wheel: in notches, and in 120ths of them.
    Wheel {
        /// The first code.
        notches: u16,
        /// And the second.
        fine: u16,
    },
    /// A place.
    Absolute(u16),
    /// A light.
    Light(u16),
}

/// Usages of a pointer, a mouse, a joystick, a gamepad.
const POINTER: u32 = 0x1_0001;
const MOUSE: u32 = 0x1_0002;
const JOYSTICK: u32 = 0x1_0004;
const GAMEPAD: u32 = 0x1_0005;

/// The event of a usage of a field; `None` where it is none.
pub fn event_of(usage: u32, field: &Field) -> Option<Target> {
    let number = usage as u16;
    match usage >> 16 {
        0x01 => desktop(number, field),
        0x07 => key(number).map(Target::Key),
        0x08 => light(number).map(Target::Light),
        0x09 => button(number, field).map(Target::Key),
        0x0c => consumer(number, field),
        _ => None,
    }
}

fn desktop(number: u16, field: &Field) -> Option<Target> {
    const AXES: core::ops::RangeInclusive<u16> = 0x30..=0x38;
    const WHEEL: u16 = 0x38;
    match number {
        WHEEL if field.is_relative => Some(Target::Wheel { notches: REL_WHEEL, fine: REL_WHEEL_HI_RES }),
        // The codes have the order of the usages, for both.
        _ if AXES.contains(&number) && field.is_relative => Some(Target::Relative(number & 0xf)),
        _ if AXES.contains(&number) => Some(Target::Absolute(number & 0xf)),
        // Power, sleep, wake up.
        0x81 => Some(Target::Key(116)),
        0x82 => Some(Target::Key(142)),
        0x83 => Some(Target::Key(143)),
        _ => None,
    }
}

fn button(number: u16, field: &Field) -> Option<u16> {
    let base = |usage| match usage {
        POINTER | MOUSE => Some(BTN_MOUSE),
        JOYSTICK => Some(BTN_JOYSTICK),
        GAMEPAD => Some(BTN_GAMEPAD),
        _ => None,
    };
    let base = base(field.application).or_else(|| base(field.physical_usage)).unwrap_or(BTN_MISC);
    (1..=16).contains(&number).then(|| base + number - 1)
}

fn light(number: u16) -> Option<u16> {
    Some(match number {
        // Num lock, caps lock, scroll lock, compose, kana.
        1..=5 => number - 1,
        0x27 => 5,
        0x4c => 6,
        0x09 => 7,
        0x4b => 8,
        0x19 => 9,
        0x4d => 10,
        _ => return None,
    })
}

/// Keys of a keyboard (chapter 10). The names are those of the keys of an American one.
fn key(usage: u16) -> Option<u16> {
    const LETTERS: [u16; 26] =
        [30, 48, 46, 32, 18, 33, 34, 35, 23, 36, 37, 38, 50, 49, 24, 25, 16, 19, 31, 20, 22, 47, 17, 45, 21, 44];
    // Enter, escape, backspace, tab, space, and the signs around the letters.
    const AROUND: [u16; 17] = [28, 1, 14, 15, 57, 12, 13, 26, 27, 43, 43, 39, 40, 41, 51, 52, 53];
    // From F11 to the arrows.
    const EDITING: [u16; 14] = [87, 88, 99, 70, 119, 110, 102, 104, 111, 107, 109, 106, 105, 108];
    // The arrow up, and the block of digits with its lock; the key that only European keyboards have; then menu, power, equal sign.
    const KEYPAD: [u16; 22] =
        [103, 69, 98, 55, 74, 78, 96, 79, 80, 81, 75, 76, 77, 71, 72, 73, 82, 83, 86, 127, 116, 117];
    // Open, help, properties, front, stop, again, undo, cut, copy, paste, find, mute, louder, quieter.
    const COMMANDS: [u16; 14] = [134, 138, 130, 132, 128, 129, 131, 137, 133, 135, 136, 113, 115, 114];
    // Control, shift, alt and the logo's key on the left, then on the right; then keys for media and for a browser.
    const MODIFIERS: [u16; 28] = [
        29, 42, 56, 125, 97, 54, 100, 126, 164, 166, 165, 163, 161, 115, 114, 113, 150, 158, 159, 128, 136, 177, 178,
        176, 142, 152, 173, 140,
    ];
    let of = |table: &[u16], first: u16| table[usize::from(usage - first)];
    Some(match usage {
        // Nothing, and what is said instead of a key.
        0..=3 => return None,
        0x04..=0x1d => of(&LETTERS, 0x04),
        // The digits, 1 first.
        0x1e..=0x27 => usage - 0x1e + 2,
        0x28..=0x38 => of(&AROUND, 0x28),
        // Caps lock and the first ten function keys.
        0x39..=0x43 => usage - 0x39 + 58,
        0x44..=0x51 => of(&EDITING, 0x44),
        0x52..=0x67 => of(&KEYPAD, 0x52),
        // F13 to F24.
        0x68..=0x73 => usage - 0x68 + 183,
        0x74..=0x81 => of(&COMMANDS, 0x74),
        0x85 => 121,
        // Keys of Japanese and Korean keyboards.
        0x87 => 89,
        0x88 => 93,
        0x89 => 124,
        0x8a => 92,
        0x8b => 94,
        0x8c => 95,
        0x90 => 122,
        0x91 => 123,
        0x92 => 90,
        0x93 => 91,
        0x94 => 85,
        0x9c | 0xd8 => 111,
        // Brackets of a calculator.
        0xb6 => 179,
        0xb7 => 180,
        0xe0..=0xfb => of(&MODIFIERS, 0xe0),
        0x82..=0xff => KEY_UNKNOWN,
        _ => return None,
    })
}

/// Keys for media and applications (chapter 15), those that keyboards have.
fn consumer(number: u16, field: &Field) -> Option<Target> {
    const PAN: u16 = 0x238;
    if number == PAN && field.is_relative {
        return Some(Target::Wheel { notches: REL_HWHEEL, fine: REL_HWHEEL_HI_RES });
    }
    Some(Target::Key(match number {
        0x030 => 116,
        0x032 => 142,
        0x06f => 225,
        0x070 => 224,
        0x0b5 => 163,
        0x0b6 => 165,
        0x0b7 => 166,
        0x0b8 => 161,
        0x0cd => 164,
        0x0e2 => 113,
        0x0e9 => 115,
        0x0ea => 114,
        0x18a => 155,
        0x192 => 140,
        0x194 => 144,
        0x221 => 217,
        0x223 => 172,
        0x224 => 158,
        0x225 => 159,
        0x226 => 128,
        0x227 => 173,
        0x22a => 156,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_where_a_keyboard_has_them() {
        let all = [(0x04, 30), (0x1d, 44), (0x1e, 2), (0x27, 11), (0x28, 28), (0x38, 53), (0x39, 58), (0x3a, 59)];
        let more = [(0x43, 68), (0x44, 87), (0x51, 108), (0x52, 103), (0x64, 86), (0x67, 117), (0x73, 194)];
        let last = [(0x7f, 113), (0x81, 114), (0x82, 240), (0xe0, 29), (0xe7, 126), (0xfb, 140), (0xff, 240)];
        for (usage, code) in all.into_iter().chain(more).chain(last) {
            assert_eq!(key(usage), Some(code), "{usage:#x}");
        }
        assert_eq!((key(1), key(3), key(0x100)), (None, None, None));
    }
}

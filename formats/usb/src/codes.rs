//! Types and codes of events, as Linux numbers them (`linux/input-event-codes.h`).
#![allow(missing_docs)]

pub const EV_SYN: u16 = 0x00;
pub const EV_KEY: u16 = 0x01;
pub const EV_REL: u16 = 0x02;
pub const EV_ABS: u16 = 0x03;
pub const EV_MSC: u16 = 0x04;
pub const EV_SW: u16 = 0x05;
pub const EV_LED: u16 = 0x11;
pub const EV_SND: u16 = 0x12;
pub const EV_REP: u16 = 0x14;
pub const EV_FF: u16 = 0x15;
/// So many types there are.
pub const EV_COUNT: u16 = 0x20;

pub const SYN_REPORT: u16 = 0;
pub const SYN_DROPPED: u16 = 3;
pub const MSC_SCAN: u16 = 4;
pub const REP_DELAY: u16 = 0;
pub const REP_PERIOD: u16 = 1;

pub const KEY_UNKNOWN: u16 = 240;
pub const BTN_MISC: u16 = 0x100;
pub const BTN_MOUSE: u16 = 0x110;
pub const BTN_JOYSTICK: u16 = 0x120;
pub const BTN_GAMEPAD: u16 = 0x130;

pub const REL_HWHEEL: u16 = 0x06;
pub const REL_WHEEL: u16 = 0x08;
pub const REL_WHEEL_HI_RES: u16 = 0x0b;
pub const REL_HWHEEL_HI_RES: u16 = 0x0c;

/// How many codes a type of event has; `None` for types without codes of their own.
pub fn count(kind: u16) -> Option<u16> {
    Some(match kind {
        EV_SYN => 0x10,
        EV_KEY => 0x300,
        EV_REL => 0x10,
        EV_ABS => 0x40,
        EV_MSC => 0x08,
        EV_SW => 0x11,
        EV_LED => 0x10,
        EV_SND => 0x08,
        EV_FF => 0x80,
        _ => return None,
    })
}

//! Terminals, disks, ports to the host, input devices and the memory devices.
//!
//! | major | minor | name | where |
//! | --- | --- | --- | --- |
//! | 1 | 3 5 7 8 9 11 | null zero full random urandom kmsg | [`memory`] |
//! | 4 | 64.. | ttyS0 to ttyS3 | [`tty`] |
//! | 5 | 0 1 2 | tty console ptmx | [`tty`] |
//! | 13 | 64.. | input/event0 ... | [`input`], over [`usb`] |
//! | 10 | 183 | hwrng | [`virtio`] |
//! | 136 | any | pts/N | [`tty`] |
//! | 7 (block) | any | loop0 ... | [`loops`] |
//! | 10 | 237 | loop-control | [`loops`] |
//! | 249 | 16d+n | vport0p1 ... | [`vport`], over [`virtio`] |
//! | 254 (block) | any | vda, vda1 ... | [`disk`], over [`virtio`] |

pub mod disk;
pub mod input;
mod kernel_log;
pub mod loops;
pub mod memory;
pub mod random;
pub mod tty;
pub mod usb;
pub mod virtio;
pub mod vport;

use alloc::boxed::Box;

use frame::Cx;

use crate::current::Current;
use crate::fs::{DeviceNode, DeviceNumber, Driver, FileKind, OpenDevice, OpenFlags};

/// Sends what programs have written to the host and is still in a queue: the machine is about to stop.
pub fn send_the_rest(cx: &Cx) {
    tty::send_the_rest(cx);
    virtio::console::send_the_rest(cx);
}

/// Who opens which device nodes.
pub const DRIVERS: &[Driver] = &[
    driver(1, 0, 255, |device, _, _, _| Ok(memory::open(device.minor)?)),
    driver(4, 64, 95, |device, flags, me, cx| {
        Ok(tty::open_serial(device.minor as usize - 64, flags, Current::of(me)?, cx)?)
    }),
    driver(5, 0, 0, |_, flags, me, cx| Ok(tty::open_controlling(flags, Current::of(me)?, cx)?)),
    driver(5, 1, 1, |_, flags, me, cx| {
        // Opening the console makes it nobody's controlling terminal.
        Ok(tty::open_serial(0, flags | OpenFlags::NO_CONTROLLING_TTY, Current::of(me)?, cx)?)
    }),
    driver(5, 2, 2, |_, _, me, cx| Ok(tty::open_master(Current::of(me)?, cx)?)),
    driver(HWRNG.major, HWRNG.minor, HWRNG.minor, |_, _, _, _| Ok(virtio::rng::open()?)),
    driver(loops::CONTROL.major, loops::CONTROL.minor, loops::CONTROL.minor, |_, _, _, _| Ok(Box::new(loops::Control))),
    Driver {
        kind: FileKind::BlockDevice,
        major: loops::MAJOR,
        first_minor: 0,
        last_minor: u32::MAX,
        open: |device, flags, _, cx| loops::open(device, flags, cx),
    },
    Driver {
        kind: FileKind::BlockDevice,
        major: crate::block::MAJOR,
        first_minor: 0,
        last_minor: u32::MAX,
        open: |device, flags, _, cx| disk::open(device, flags, cx),
    },
    driver(input::MAJOR, 0, u32::MAX, |device, _, _, cx| Ok(input::open(device.minor, cx)?)),
    driver(vport::MAJOR, 0, u32::MAX, |device, _, _, cx| Ok(vport::open(device.minor, cx)?)),
    driver(136, 0, u32::MAX, |device, flags, me, cx| Ok(tty::open_slave(device.minor, flags, Current::of(me)?, cx)?)),
];

/// The number of `/dev/hwrng`, which is there if a device is.
pub const HWRNG: DeviceNumber = DeviceNumber { major: 10, minor: 183 };

/// What devtmpfs (`/dev`) holds at boot, beside disks, ports and [`HWRNG`].
pub const NODES: &[DeviceNode] = &[
    node("null", 1, 3, 0o666),
    node("zero", 1, 5, 0o666),
    node("full", 1, 7, 0o666),
    node("random", 1, 8, 0o666),
    node("urandom", 1, 9, 0o666),
    node("kmsg", 1, 11, 0o644),
    node("loop-control", loops::CONTROL.major, loops::CONTROL.minor, 0o660),
    node("tty", 5, 0, 0o666),
    node("console", 5, 1, 0o600),
    node("ptmx", 5, 2, 0o666),
    node("ttyS0", 4, 64, 0o660),
    node("ttyS1", 4, 65, 0o660),
    node("ttyS2", 4, 66, 0o660),
    node("ttyS3", 4, 67, 0o660),
];

const fn driver(major: u32, first_minor: u32, last_minor: u32, open: OpenDevice) -> Driver {
    Driver { kind: FileKind::CharacterDevice, major, first_minor, last_minor, open }
}

const fn node(path: &'static str, major: u32, minor: u32, permissions: u32) -> DeviceNode {
    let device = DeviceNumber { major, minor };
    DeviceNode { path, kind: FileKind::CharacterDevice, permissions, device }
}

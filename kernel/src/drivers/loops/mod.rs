//! Loop devices: regular files as disks. See loop(4).
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | which devices there are, and `/dev/loop-control` |
//! | `device` | a device: its file, its requests, and the task that does them |
//! | `ioctls` | what programs ask of one |
//!
//! A device is made when it is asked for, by its number at `/dev/loop-control` or by opening its node, and lives for ever. One that was removed is only not there until it is asked for again. So there are no more than [`MOST`] tasks
//! and page caches.

mod device;
mod ioctls;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;

use frame::Cx;
use linux_raw_sys::loop_device::{LOOP_CTL_ADD, LOOP_CTL_GET_FREE, LOOP_CTL_REMOVE};
use refs::SpinLock;

use crate::block::{self, BlockDevice, Disk};
use crate::error::Errno;
use crate::fs::{DeviceNumber, File, FileEnd, OpenFlags, VfsCaller, devices};
use crate::reclaim::Held;
use crate::step::{Interruption, Step, Stop};
use crate::user_memory::Argument;
pub use device::{Change, LoopDevice};
pub use ioctls::{change, ioctl, is_change};

/// Their major number.
pub const MAJOR: u32 = 7;
/// The numbers of `/dev/loop-control`.
pub const CONTROL: DeviceNumber = DeviceNumber { major: 10, minor: 237 };
/// So many there may be.
const MOST: u32 = 256;

/// A device that was asked for.
#[derive(Clone, Copy)]
struct Known {
    device: &'static LoopDevice,
    disk: &'static Disk,
    /// It was not removed.
    is_there: bool,
    /// Its node was made.
    has_node: bool,
}

static KNOWN: SpinLock<BTreeMap<u32, Known>> = SpinLock::new(BTreeMap::new());

fn known(number: u32, cx: &Cx) -> Option<Known> {
    KNOWN.lock(cx).get(&number).copied()
}

/// The device of that number, which is made if there is none. `begin` is called while it cannot be removed.
///
/// # Errors
/// ENXIO: there may be none. Those of `begin`.
fn obtain<T>(number: u32, cx: &Cx, begin: impl FnOnce(&Known) -> Step<T>) -> Step<T> {
    if number >= MOST {
        return Err(Errno::ENXIO.into());
    }
    let mut all = KNOWN.lock(cx);
    let known = all.entry(number).or_insert_with(|| {
        let device: &'static LoopDevice = Box::leak(Box::new(LoopDevice::new(number)));
        let disk = block::add(format!("loop{number}"), MAJOR, number, device, cx);
        device.begin(disk, cx);
        Known { device, disk, is_there: false, has_node: false }
    });
    known.is_there = true;
    begin(known)
}

/// Makes the device of that number, with its node.
///
/// # Errors
/// ENXIO: there may be none. ENOSPC, ENOMEM: its node cannot be made; it is tried again when the device is next asked for.
fn make(number: u32, cx: &Cx) -> Step<()> {
    let has_node = obtain(number, cx, |known| Ok(known.has_node))?;
    if has_node {
        return Ok(());
    }
    devices::add_node(format!("loop{number}").as_bytes(), DeviceNumber { major: MAJOR, minor: number }, cx)?;
    if let Some(known) = KNOWN.lock(cx).get_mut(&number) {
        known.has_node = true;
    }
    Ok(())
}

/// A device lets its file go just now, which is soon done.
const LETTING_GO: Stop = Stop::Pause(Interruption::KillOnly);

/// Whether a device is about to let its file go.
pub fn lets_go(cx: &Cx) -> bool {
    KNOWN.lock(cx).values().any(|known| known.device.lets_go())
}

/// Opens the device of that number.
///
/// # Errors
/// ENXIO: there may be none. `Pause` while it lets go of its file.
pub fn open(device: DeviceNumber, flags: OpenFlags, cx: &Cx) -> Step<Box<dyn File>> {
    let used = obtain(device.minor, cx, |known| known.disk.whole().begin_use())?;
    Ok(super::disk::open_volume(used, flags, cx))
}

/// The device that is on a volume, if it is one.
fn of_volume(volume: &block::Volume, cx: &Cx) -> Option<Known> {
    if volume.major() == MAJOR { known(volume.minor(), cx) } else { None }
}

/// `/dev/loop-control`.
pub struct Control;

impl File for Control {
    fn end(&self) -> FileEnd {
        FileEnd::Unseen { bytes: 0 }
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn ioctl(&self, request: u32, argument: Argument, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let number = argument.value() as i32;
        match request {
            LOOP_CTL_GET_FREE => {
                // What its last user has left is free as soon as it has let go.
                if lets_go(cx) {
                    return Err(LETTING_GO);
                }
                let is_free =
                    |number: &u32| known(*number, cx).is_none_or(|known| !known.is_there || !known.device.is_bound(cx));
                let number = (0..MOST).find(is_free).ok_or(Errno::ENOSPC)?;
                make(number, cx)?;
                Ok(number as usize)
            }
            LOOP_CTL_ADD => {
                let number = match u32::try_from(number) {
                    Ok(number) => number,
                    Err(_) => (0..MOST)
                        .find(|number| known(*number, cx).is_none_or(|known| !known.is_there))
                        .ok_or(Errno::ENOSPC)?,
                };
                if known(number, cx).is_some_and(|known| known.is_there) {
                    return Err(Errno::EEXIST.into());
                }
                make(number, cx)?;
                Ok(number as usize)
            }
            LOOP_CTL_REMOVE => {
                let number = u32::try_from(number).map_err(|_| Errno::EINVAL)?;
                let mut all = KNOWN.lock(cx);
                let known = all.get_mut(&number).filter(|known| known.is_there).ok_or(Errno::ENODEV)?;
                if known.device.lets_go() {
                    return Err(LETTING_GO);
                }
                if known.disk.users() > 0 || known.device.is_bound(cx) {
                    return Err(Errno::EBUSY.into());
                }
                known.is_there = false;
                Ok(0)
            }
            _ => Err(Errno::ENOSYS.into()),
        }
    }
}

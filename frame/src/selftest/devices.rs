//! A device of the machine: QEMU's virtual disk, where it has one.

use refs::Cx;

use super::{Outcome, Test};
use crate::dma::{DmaCoherent, DmaMap};
use crate::irq::IrqCx;
use crate::mm::{PAGE_SIZE, UFrame, free_frames};
use crate::pci::{Device, Identity};
use crate::{check, println};

pub(super) const TESTS: &[Test] =
    &[("a device is its driver's, but for what says where its interrupts go", a_device_is_its_drivers)];

fn is_disk(identity: &Identity) -> bool {
    identity.vendor == 0x1af4 && matches!(identity.device, 0x1042 | 0x1001)
}

fn ignore(_: &IrqCx, _: usize) {}

fn a_device_is_its_drivers(_: &mut Cx) -> Outcome {
    let Some(device) = Device::claim(is_disk) else { return Ok(()) };
    println!("selftest: the disk is at {}", device.identity().id);
    check!(Device::claim(is_disk).is_none(), "it was claimed twice");

    let (_, place) = device.capabilities().find(|(id, _)| *id == 0x11).ok_or("it has no MSI-X")?;
    for register in [place + 4, place + 8] {
        let location = device.config(register);
        let (bar, offset) = ((location & 7) as usize, u64::from(location & !7));
        check!(device.window(bar, offset, 16).is_none(), "its table is a driver's");
        check!(device.window(bar, offset & !0xfff, 4).is_none(), "the page of its table is a driver's");
    }
    // Its registers of version 1 are where QEMU has them.
    let window = device.window(4, 0, 4096).ok_or("it has no registers")?;
    check!(window.read::<u8>(20) != 0xff, "its status cannot be read");
    check!(window.read::<u32>(4093) == u32::MAX && window.read::<u64>(usize::MAX) == u64::MAX, "beyond the end");
    check!(device.window(4, 0, 1 << 40).is_none() && device.window(9, 0, 1).is_none(), "a window onto nothing");

    check!(device.interrupts() > 1, "{} interrupts", device.interrupts());
    let interrupt = device.interrupt(1, 0, ignore, 7);
    check!(interrupt.is_some() && device.interrupt(1, 0, ignore, 8).is_none(), "an interrupt is had twice");
    drop(interrupt);
    check!(device.interrupt(1, 0, ignore, 9).is_some(), "it is not free again");
    check!(device.interrupt(device.interrupts(), 0, ignore, 0).is_none(), "one more than there are");
    memory_is_kept(device)
}

/// What a device may reach is not freed before it is cut off.
fn memory_is_kept(device: Device) -> Outcome {
    let order = 4;
    let new = || DmaCoherent::new(device.domain(), order).ok_or("no memory");
    crate::mm::trim();
    let before = free_frames();
    drop(new()?);
    check!(free_frames() == before, "what it could not reach is lost");
    device.allow_dma();
    drop(new()?);
    check!(free_frames() == before - (1 << order), "what it can reach is free");
    let kept = new()?;
    let address = kept.address(PAGE_SIZE).ok_or("no address")?;
    check!(kept.address(0).is_some_and(|first| first.is_followed_by(PAGE_SIZE, address)), "it does not lie together");
    let lent = DmaMap::new(device.domain(), alloc::vec![UFrame::zeroed().ok_or("no memory")?]);
    check!(lent.take_back().len() == 1, "it does not come back");
    device.cut_off();
    drop(kept);
    crate::mm::trim();
    check!(free_frames() == before - (1 << order), "what it cannot reach any more is lost");
    Ok(())
}

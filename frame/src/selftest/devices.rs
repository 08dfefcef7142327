//! A device of the machine: QEMU's virtual disk, where it has one.

use core::sync::atomic::{AtomicUsize, Ordering};

use refs::Cx;

use super::{Outcome, Test, yield_until_async};
use crate::arch::machine::messages::Vector;
use crate::dma::{DeviceAddress, DmaCoherent, DmaMap, is_guarded};
use crate::iommu::message;
use crate::irq::IrqCx;
use crate::mm::{PAGE_SIZE, UFrame, free_frames};
use crate::pci::{Device, FunctionId, Identity, MmioWindow};
use crate::{check, println, time};

pub(super) const TESTS: &[Test] =
    &[("a device is its driver's, but for what says where its interrupts go", a_device_is_its_drivers)];

fn is_disk(identity: &Identity) -> bool {
    identity.vendor == 0x1af4 && matches!(identity.device, 0x1042 | 0x1001)
}

fn ignore(_: &IrqCx, _: usize) {}

fn a_device_is_its_drivers(cx: &mut Cx) -> Outcome {
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
    memory_is_kept(device, cx)
}

/// What a device may reach is not freed before it is cut off, or kept from it by an IOMMU.
fn memory_is_kept(device: Device, cx: &mut Cx) -> Outcome {
    let order = 6;
    let new = || DmaCoherent::new(device.domain(), order).ok_or("no memory");
    crate::mm::trim();
    drop(new()?);
    // Tables of an IOMMU stay.
    let most_tables = if is_guarded() { 1 << (order - 1) } else { 0 };
    let lost_since = |before: usize| {
        crate::mm::trim();
        before.saturating_sub(free_frames())
    };
    let before = free_frames();
    drop(new()?);
    check!(lost_since(before) <= most_tables, "what it could not reach is lost");
    device.allow_dma();
    it_stays_in_its_memory_async(&device, cx)?;
    it_interrupts_as_itself_async(&device, cx)?;
    let before = free_frames();
    drop(new()?);
    let lost = if is_guarded() { 0 } else { 1 << order };
    let is_right = |now| (lost..=lost + most_tables).contains(&now);
    check!(is_right(lost_since(before)), "{} frames are lost", lost_since(before));
    let kept = new()?;
    let address = kept.address(PAGE_SIZE).ok_or("no address")?;
    check!(kept.address(0).is_some_and(|first| first.is_followed_by(PAGE_SIZE, address)), "it does not lie together");
    let lent = DmaMap::new(device.domain(), alloc::vec![UFrame::zeroed().ok_or("no memory")?]);
    check!(lent.is_ok_and(|lent| lent.take_back().len() == 1), "it does not come back");
    device.cut_off();
    drop(kept);
    check!(is_right(lost_since(before)), "what it cannot reach any more is lost");
    Ok(())
}

static FAULTS: AtomicUsize = AtomicUsize::new(0);

fn count_fault(_: &IrqCx, _: usize) {
    FAULTS.fetch_add(1, Ordering::Relaxed);
}

/// A frame of bytes that are not on the disk.
fn filled() -> Result<UFrame, &'static str> {
    let frame = UFrame::zeroed().ok_or("no memory")?;
    let _ = frame.writer(0..PAGE_SIZE).write(&[FILL; PAGE_SIZE]);
    Ok(frame)
}

const FILL: u8 = 0x5a;

fn first_byte(frame: &UFrame) -> u8 {
    let mut byte = [0];
    let _ = frame.reader(0..1).read(&mut byte);
    byte[0]
}

/// A driver takes back what the device still uses, then gives it an address that was never its: an IOMMU stops it, and nothing does where there is none.
fn it_stays_in_its_memory_async(device: &Device, cx: &mut Cx) -> Outcome {
    device.on_fault(count_fault, 0);
    let mut disk = RawDisk::start(device)?;
    let frame = filled()?;
    let lent = DmaMap::new(device.domain(), alloc::vec![frame.clone()]).map_err(|_| "no memory")?;
    let address = lent.address(0).ok_or("no address")?.bits();
    disk.read(address);
    yield_until_async(cx, || disk.is_done())?;
    check!(first_byte(&frame) == 0, "the device does not read");
    drop(lent.take_back());

    let _ = frame.writer(0..PAGE_SIZE).write(&[FILL; PAGE_SIZE]);
    disk.read(address);
    if !is_guarded() {
        yield_until_async(cx, || disk.is_done())?;
        check!(first_byte(&frame) == 0, "without an IOMMU the device does not write either");
        return Ok(());
    }
    yield_until_async(cx, || FAULTS.load(Ordering::Relaxed) > 0 && disk.has_ended())?;
    check!(first_byte(&frame) == FILL, "the device wrote to a frame that was taken back");
    check!(device.domain().has_faulted(), "its domain does not know");

    let never_given = filled()?;
    let mut disk = RawDisk::start(device)?;
    disk.read(u64::from(never_given.number().0) * PAGE_SIZE as u64);
    yield_until_async(cx, || disk.has_ended())?;
    check!(first_byte(&never_given) == FILL, "the device wrote to a frame that it was not given");
    check!(FAULTS.load(Ordering::Relaxed) == 1, "it was reported {} times", FAULTS.load(Ordering::Relaxed));
    Ok(())
}

static INTERRUPTS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn count_interrupt(_: &IrqCx, whose: usize) {
    INTERRUPTS[whose].fetch_add(1, Ordering::Relaxed);
}

/// A device sends another's message: an IOMMU stops it, and nothing does where there is none.
fn it_interrupts_as_itself_async(device: &Device, cx: &mut Cx) -> Outcome {
    const NUMBER: u16 = 1;
    let interrupts = |whose: usize| INTERRUPTS[whose].load(Ordering::Relaxed);
    let own = device.interrupt(NUMBER.into(), 0, count_interrupt, 0).ok_or("no interrupt")?;
    let mut disk = RawDisk::start(device)?;
    disk.interrupt_by(NUMBER);
    let lent = DmaMap::new(device.domain(), alloc::vec![filled()?]).map_err(|_| "no memory")?;
    let address = lent.address(0).ok_or("no address")?.bits();
    disk.read(address);
    yield_until_async(cx, || disk.is_done() && interrupts(0) > 0)?;

    let other = FunctionId::of_source(device.identity().id.source() ^ 0xff);
    let vector = Vector::take(count_interrupt, 1).ok_or("no vector")?;
    own.forge(message(other, &vector, 0));
    disk.read(address);
    yield_until_async(cx, || disk.is_done())?;
    if !is_guarded() {
        yield_until_async(cx, || interrupts(1) > 0)?;
        return Ok(());
    }
    let soon = time::now() + 20_000_000;
    yield_until_async(cx, || time::now() > soon)?;
    check!(interrupts(1) == 0, "it interrupted as another device");
    drop(lent.take_back());
    Ok(())
}

/// Just enough of a driver of virtual disks (Virtual I/O Device 1.2: 4.1.4.3, 2.7, 5.2) to read sector 0 to any address.
struct RawDisk {
    common: MmioWindow,
    doorbell: MmioWindow,
    memory: DmaCoherent,
    requests: u16,
}

const STATUS: usize = 20;
const NEEDS_RESET: u8 = 64;
const RING_LEN: u16 = 8;
/// Where its parts are in its memory.
const AVAILABLE: usize = 0x400;
const USED: usize = 0x800;
const HEADER: usize = 0x1000;

impl RawDisk {
    fn start(device: &Device) -> Result<Self, &'static str> {
        let common = device.window(4, 0, 56).ok_or("it has no registers")?;
        let doorbell = device.window(4, 0x3000, 4).ok_or("it has no doorbell")?;
        let memory = DmaCoherent::new(device.domain(), 1).ok_or("no memory")?;
        common.write(STATUS, 0_u8);
        common.write(STATUS, 3_u8);
        // Version 1, and the addresses of an IOMMU if it has them.
        common.write(0, 1_u32);
        let offered: u32 = common.read(4);
        common.write(8, 1_u32);
        common.write(12, offered & 3);
        common.write(STATUS, 11_u8);
        common.write(22, 0_u16);
        common.write(24, RING_LEN);
        for (register, offset) in [(32, 0), (40, AVAILABLE), (48, USED)] {
            common.write_address(register, memory.address(offset).ok_or("no address")?);
        }
        common.write(28, 1_u16);
        common.write(STATUS, 15_u8);
        Ok(RawDisk { common, doorbell, memory, requests: 0 })
    }

    /// The device interrupts with that entry of its table when it has done something.
    fn interrupt_by(&self, entry: u16) {
        self.common.write(26, entry);
    }

    fn read(&mut self, address: u64) {
        let own = |offset| self.memory.address(offset).map_or(0, DeviceAddress::bits);
        // Each leads to the next; of the second and the third the device writes.
        let parts = [(own(HEADER), 16_u32, 1_u16), (address, 512, 3), (own(HEADER + 16), 1, 2)];
        for (index, (address, len, flags)) in parts.into_iter().enumerate() {
            self.memory.store(16 * index, address);
            self.memory.store(16 * index + 8, len);
            self.memory.store(16 * index + 12, flags);
            self.memory.store(16 * index + 14, index as u16 + 1);
        }
        self.requests += 1;
        self.memory.store(AVAILABLE + 2, self.requests);
        self.doorbell.write(0, 0_u16);
    }

    fn is_done(&self) -> bool {
        self.memory.load::<u16>(USED + 2) == self.requests
    }

    /// A device that was stopped may say so, or that all went well: what it writes is nowhere then.
    fn has_ended(&self) -> bool {
        self.is_done() || self.common.read::<u8>(STATUS) & NEEDS_RESET != 0
    }
}

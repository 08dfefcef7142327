//! Memory that devices reach (DMA).
//!
//! | what | who accesses it |
//! | --- | --- |
//! | [`DmaCoherent`] | driver and device at the same time: rings, tables, headers. The driver's accesses are single words, atomic, or copies of bytes; never a reference |
//! | [`DmaMap`] | the device alone, for one transfer: frames that were lent to it |
//! | [`DmaIdle`] | nobody: frames that are not used, whose content the device may do away with |
//!
//! All are made of untyped frames and of nothing else (invariant 6): whatever a device writes there, no type of the kernel's is broken by it.
//!
//! *Addresses.* A device is told where memory is by a [`DeviceAddress`], which only the types above give out, and which can only be written where the device looks for it. There is no way
//! from a number to one. It is the physical address, with an IOMMU as well, which keeps the device from all addresses that it was not given ([`crate::iommu`]).
//!
//! *Who frees.* A frame must not become something else while a device may still write to it. What a device reaches belongs to its [`Domain`]. Dropping a [`DmaCoherent`] or a [`DmaMap`] frees its frames
//! only if the domain's device cannot access memory: before it was [allowed](Domain::allow) to, or after it was [cut off](Domain::cut_off), for ever. Else the frames are lost, which costs
//! memory and nothing else. A transfer that the device says it has done is [taken back](DmaMap::take_back). With an IOMMU the device is kept from the frames first, so they are free again in any case.
//!
//! Without an IOMMU nothing keeps a device from memory that it was not given; and a driver that takes back what the device still uses, or writes a number where an address belongs, is not found out. So drivers are
//! reviewed for these two, and devices are trusted.

use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tasks::StaticRef;

use crate::iommu::{Lending, Translation};
use crate::mm::{FrameNumber, PAGE_SIZE, Reader, UFrame, USegment, Writer, claim_idle, give_block, release_block};

/// An address as a device knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAddress(u64);

impl DeviceAddress {
    fn of(frame: FrameNumber, offset: usize) -> Self {
        DeviceAddress(u64::from(frame.0) * PAGE_SIZE as u64 + offset as u64)
    }

    /// The bits that are written to a device's register.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Whether memory at `other` follows behind `len` bytes of memory here.
    pub fn is_followed_by(self, len: usize, other: DeviceAddress) -> bool {
        self.0.checked_add(len as u64) == Some(other.0)
    }
}

/// Whether an IOMMU keeps all devices from memory that they were not given. It is known once a device was claimed.
pub fn is_guarded() -> bool {
    #[cfg(target_os = "none")]
    return crate::iommu::is_on();
    #[cfg(not(target_os = "none"))]
    false
}

const NOT_YET: u8 = 0;
const ALLOWED: u8 = 1;
const CUT_OFF: u8 = 2;

/// What one device reaches. It lives for ever.
#[derive(Debug)]
pub struct Domain {
    state: AtomicU8,
    has_faulted: AtomicBool,
    /// What an IOMMU lets it reach, if there is one.
    translation: StaticRef<Translation>,
}

impl Domain {
    pub(crate) const fn new() -> Self {
        Domain { state: AtomicU8::new(NOT_YET), has_faulted: AtomicBool::new(false), translation: StaticRef::none() }
    }

    /// From now on the device reaches what it is given, and nothing else. Called before it is given anything.
    #[cfg(any(target_os = "none", test))]
    pub(crate) fn translate(&self, translation: &'static Translation) {
        self.translation.set(Some(translation));
    }

    /// The device was kept from memory that it was not given.
    #[cfg(target_os = "none")]
    pub(crate) fn fault(&self) {
        self.has_faulted.store(true, Ordering::Release);
    }

    /// Whether the device was kept from memory that it was not given. What it works on may never be done.
    pub fn has_faulted(&self) -> bool {
        self.has_faulted.load(Ordering::Acquire)
    }

    /// Gives it frames; whether it can reach them.
    fn give(&self, frames: impl Iterator<Item = FrameNumber> + Clone + Send + Sync) -> Lending {
        match self.translation.get().map(|translation| translation.map(frames)) {
            None => Lending::All,
            Some(Lending::Unknown) if !self.is_allowed() => Lending::Nothing,
            Some(lending) => lending,
        }
    }

    /// Takes frames from it that were given to it; whether it cannot reach them any more.
    fn take(&self, frames: impl Iterator<Item = FrameNumber> + Send) -> bool {
        match self.translation.get() {
            Some(translation) => translation.unmap(frames) || !self.is_allowed(),
            None => !self.is_allowed(),
        }
    }

    /// From now on the device may access memory, if it was not cut off; whether it may.
    pub(crate) fn allow(&self) -> bool {
        let _ = self.state.compare_exchange(NOT_YET, ALLOWED, Ordering::Relaxed, Ordering::Relaxed);
        self.state.load(Ordering::Relaxed) == ALLOWED
    }

    /// The device cannot access memory any more, and never will.
    pub(crate) fn cut_off(&self) {
        self.state.store(CUT_OFF, Ordering::Release);
    }

    /// Whether the device may access memory just now.
    fn is_allowed(&self) -> bool {
        self.state.load(Ordering::Acquire) == ALLOWED
    }
}

/// Memory that driver and device share: zeros at first. Accesses beyond its end read zeros and write nothing.
pub struct DmaCoherent {
    segment: ManuallyDrop<USegment>,
    first: FrameNumber,
    len: usize,
    domain: &'static Domain,
}

impl DmaCoherent {
    /// `PAGE_SIZE << order` bytes that lie together; `None` if there is no such memory, or none for the tables of an IOMMU.
    pub fn new(domain: &'static Domain, order: u8) -> Option<Self> {
        let segment = ManuallyDrop::new(USegment::zeroed(order)?);
        let first = segment.first();
        match domain.give(numbers(first, order)) {
            Lending::All => Some(DmaCoherent { segment, first, len: PAGE_SIZE << order, domain }),
            Lending::Nothing => {
                drop(ManuallyDrop::into_inner(segment));
                None
            }
            // It is lost.
            Lending::Unknown => None,
        }
    }

    /// Where the byte at `offset` is, for the device; `None` beyond the end.
    pub fn address(&self, offset: usize) -> Option<DeviceAddress> {
        (offset < self.len).then(|| DeviceAddress::of(self.first, offset))
    }

    /// The little-endian value at `offset`, which is a multiple of its size. What the device wrote before it is seen behind this.
    pub fn load<T: Word>(&self, offset: usize) -> T {
        self.segment.load(offset)
    }

    /// Writes a little-endian value at `offset`, a multiple of its size. The device sees it behind all that was written before.
    pub fn store<T: Word>(&self, offset: usize, value: T) {
        self.segment.store_word(offset, value);
    }

    /// Writes an address at `offset`, a multiple of 8, for the device to use.
    pub fn store_address(&self, offset: usize, address: DeviceAddress) {
        self.store(offset, address.bits());
    }

    /// Writes the number of the page where an address is, 32 bits at `offset`, a multiple of 4; false if it has more.
    pub fn store_page_number(&self, offset: usize, address: DeviceAddress) -> bool {
        let number = u32::try_from(address.bits() / PAGE_SIZE as u64);
        number.map(|number| self.store(offset, number)).is_ok()
    }

    /// To read bytes.
    pub fn reader(&self, offset: usize, len: usize) -> Reader<'_> {
        self.segment.reader(offset..offset.saturating_add(len))
    }

    /// To write bytes.
    pub fn writer(&self, offset: usize, len: usize) -> Writer<'_> {
        self.segment.writer(offset..offset.saturating_add(len))
    }
}

fn numbers(first: FrameNumber, order: u8) -> impl Iterator<Item = FrameNumber> + Clone {
    (0..1_u32 << order).map(move |index| FrameNumber(first.0 + index))
}

impl Drop for DmaCoherent {
    fn drop(&mut self) {
        if self.domain.take(numbers(self.first, self.segment.frames().ilog2() as u8)) {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.segment) };
        }
    }
}

pub use crate::mm::Word;

/// Frames that are lent to a device for one transfer.
pub struct DmaMap {
    /// Empty once they were taken back.
    frames: ManuallyDrop<Vec<UFrame>>,
    domain: &'static Domain,
}

impl DmaMap {
    /// Lends frames. They are held until they are [taken back](Self::take_back).
    ///
    /// # Errors
    /// There is no memory for the tables of an IOMMU, or it has no room for them: the frames.
    pub fn new(domain: &'static Domain, frames: Vec<UFrame>) -> Result<Self, Vec<UFrame>> {
        match domain.give(frames.iter().map(UFrame::number)) {
            Lending::All => Ok(DmaMap { frames: ManuallyDrop::new(frames), domain }),
            Lending::Nothing => Err(frames),
            Lending::Unknown => {
                // One owner of each is lost, so none becomes anything else.
                frames.iter().for_each(|frame| core::mem::forget(frame.clone()));
                Err(frames)
            }
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Where the frame of that index is, for the device.
    pub fn address(&self, index: usize) -> Option<DeviceAddress> {
        self.frames.get(index).map(|frame| DeviceAddress::of(frame.number(), 0))
    }

    /// The device has said that it is done with the transfer, or was never told of it: the frames, as they are now.
    pub fn take_back(mut self) -> Vec<UFrame> {
        // An IOMMU that does not answer is as good as none: then the device's word is what there is.
        self.domain.take(self.frames.iter().map(UFrame::number));
        core::mem::take(&mut *self.frames)
    }
}

impl Drop for DmaMap {
    fn drop(&mut self) {
        if self.domain.take(self.frames.iter().map(UFrame::number)) {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.frames) };
        }
    }
}

/// A block of frames that nobody uses, lent to a device that does away with their content: what lies behind them goes back to a host. The frame policy has given it out for that, and gets it back: from
/// [`take_back`](Self::take_back) by the caller, who knows what the block is worth then, else when this is dropped.
pub struct DmaIdle {
    first: FrameNumber,
    order: u8,
    domain: &'static Domain,
}

impl DmaIdle {
    /// Lends the block of `1 << order` frames that begins with `first`, which the policy has given. `None` if there is no memory for the tables of an IOMMU: then the policy has it back.
    ///
    /// # Panics
    /// The policy has given out what does not exist, or is in use.
    pub fn new(domain: &'static Domain, first: FrameNumber, order: u8) -> Option<Self> {
        claim_idle(first, order);
        match domain.give(numbers(first, order)) {
            Lending::All => Some(DmaIdle { first, order, domain }),
            Lending::Nothing => {
                // SAFETY: they were claimed just now, nobody else has them, and the device does not reach them.
                unsafe { give_block(first, order) };
                None
            }
            // They are lost.
            Lending::Unknown => None,
        }
    }

    /// Where it is, for the device.
    pub fn address(&self) -> DeviceAddress {
        DeviceAddress::of(self.first, 0)
    }

    /// How many bytes it has.
    pub fn len_bytes(&self) -> usize {
        PAGE_SIZE << self.order
    }

    /// The device has said that it is done with it, or was never told of it: the block, whose frames are unused again, and which the caller gives to the policy.
    pub fn take_back(self) -> (FrameNumber, u8) {
        let block = ManuallyDrop::new(self);
        // As for a transfer.
        block.domain.take(numbers(block.first, block.order));
        // SAFETY: `new` has made the frames this one's alone, and it is not used again.
        unsafe { release_block(block.first, block.order) };
        (block.first, block.order)
    }
}

impl Drop for DmaIdle {
    fn drop(&mut self) {
        if self.domain.take(numbers(self.first, self.order)) {
            // SAFETY: `new` has made the frames this one's alone.
            unsafe { give_block(self.first, self.order) };
        }
    }
}

/// What plays the device in tests on a host.
#[cfg(not(target_os = "none"))]
pub mod simulated {
    use super::{DeviceAddress, Domain};
    use crate::mm::{FrameNumber, PAGE_SIZE, untyped_frame};

    /// The domain of a simulated device.
    pub fn domain() -> &'static Domain {
        Box::leak(Box::new(Domain::new()))
    }

    /// The device may access memory.
    pub fn allow(domain: &Domain) {
        domain.allow();
    }

    /// The device cannot access memory any more.
    pub fn cut_off(domain: &Domain) {
        domain.cut_off();
    }

    /// What a device reads where a driver wrote an address.
    pub fn number(address: DeviceAddress) -> u64 {
        address.bits()
    }

    /// Reads memory as a device does; false if there is none, or it is not untyped.
    pub fn read(address: u64, to: &mut [u8]) -> bool {
        each_page(address, to.len(), |frame, within, done, len| {
            frame.reader(within..within + len).read(&mut to[done..done + len]).is_ok()
        })
    }

    /// Writes memory as a device does; false if there is none, or it is not untyped.
    pub fn write(address: u64, from: &[u8]) -> bool {
        each_page(address, from.len(), |frame, within, done, len| {
            frame.writer(within..within + len).write(&from[done..done + len]).is_ok()
        })
    }

    fn each_page(
        address: u64,
        len: usize,
        mut each: impl FnMut(&crate::mm::UFrame, usize, usize, usize) -> bool,
    ) -> bool {
        let mut done = 0;
        while done < len {
            let Some(at) = address.checked_add(done as u64) else { return false };
            let number = u32::try_from(at / PAGE_SIZE as u64).ok().map(FrameNumber);
            let Some(frame) = number.and_then(untyped_frame) else { return false };
            let within = (at % PAGE_SIZE as u64) as usize;
            let part = (len - done).min(PAGE_SIZE - within);
            if !each(&frame, within, done, part) {
                return false;
            }
            done += part;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What needs memory is tested in `mm::tests`, which simulates it.
    #[test]
    fn a_device_that_was_cut_off_stays_so() {
        let domain = Domain::new();
        assert!(!domain.is_allowed());
        assert!(domain.allow() && domain.is_allowed());
        domain.cut_off();
        assert!(!domain.allow() && !domain.is_allowed());
    }
}

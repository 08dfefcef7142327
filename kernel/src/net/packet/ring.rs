//! [`Ring`]: frames in memory that a program has mapped (PACKET_RX_RING, TPACKET_V2), as libpcap reads them.
//!
//! ```text
//!   slot: struct tpacket2_hdr | struct sockaddr_ll | room | frame
//! ```
//!
//! The first word of a slot says whose it is: the kernel's (0), or the program's, which gives it back. The kernel reads nothing else there, so the program spoils only what it will read itself. The pages belong to the
//! ring, and to the mappings of it; they come back with the last of them. A ring has [`MOST_PAGES`] at most.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, UFrame};

use super::seen::Checksum;
use crate::error::{Errno, Result};
use crate::memory::overcommit::Privilege;
use crate::memory::{BadAccess, Mapped, Pages, SharedMemory};
use crate::step::Step;

/// The most pages of a ring.
pub const MOST_PAGES: u64 = 1024;
/// `struct tpacket2_hdr`.
pub const HEADER_BYTES: usize = 32;
/// TPACKET2_HDRLEN.
const HEADER_AND_ADDRESS: usize = 52;
/// Slots begin at multiples of this, and so do the parts of one.
const ALIGNMENT: usize = 16;
/// TP_STATUS_USER, and TP_STATUS_COPY: the frame was longer than its slot; TP_STATUS_LOSING: some were lost; TP_STATUS_CSUMNOTREADY.
const USER: u32 = 1;
const COPY: u32 = 2;
const LOSING: u32 = 4;
const CHECKSUM_IS_LEFT: u32 = 8;

/// How a ring is divided (`struct tpacket_req`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a block, and how many there are.
    pub block_bytes: u32,
    /// Likewise.
    pub blocks: u32,
    /// Bytes of a slot, and how many there are.
    pub slot_bytes: u32,
    /// Likewise.
    pub slots: u32,
    /// Room before a frame (PACKET_RESERVE).
    pub reserved: u32,
}

impl Shape {
    /// Checks it.
    ///
    /// # Errors
    /// EINVAL: it does not fit together. ENOMEM: it is too large.
    pub fn check(&self) -> Result<()> {
        let page = PAGE_SIZE as u32;
        let least = (HEADER_AND_ADDRESS as u32).saturating_add(self.reserved);
        let is_whole = self.block_bytes > 0
            && self.block_bytes.is_multiple_of(page)
            && self.slot_bytes >= least
            && self.slot_bytes.is_multiple_of(ALIGNMENT as u32)
            && self.slot_bytes <= self.block_bytes;
        if !is_whole {
            return Err(Errno::EINVAL);
        }
        let slots = u64::from(self.block_bytes / self.slot_bytes) * u64::from(self.blocks);
        if slots != self.slots.into() {
            return Err(Errno::EINVAL);
        }
        if self.pages() > MOST_PAGES { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    fn pages(&self) -> u64 {
        u64::from(self.block_bytes) / PAGE_SIZE as u64 * u64::from(self.blocks)
    }

    /// Where a slot begins.
    fn slot(&self, number: u32) -> usize {
        let of_block = self.block_bytes / self.slot_bytes;
        let block = (number / of_block) as usize * self.block_bytes as usize;
        block + (number % of_block) as usize * self.slot_bytes as usize
    }
}

/// A frame to be entered.
pub struct Entry<'a> {
    /// What the socket receives of it.
    pub bytes: &'a [u8],
    /// How long it was.
    pub len: usize,
    /// Bytes of the link's header in that.
    pub link_bytes: usize,
    /// When it was seen, in nanoseconds since 1970.
    pub time: u64,
    /// `struct sockaddr_ll`.
    pub address: [u8; 20],
    /// Some were lost before it.
    pub some_were_lost: bool,
    /// Whether its checksum is there.
    pub checksum: Checksum,
}

/// The memory of a ring.
pub struct Ring {
    memory: SharedMemory,
    /// How many pages can be mapped; 0: there is no ring.
    pages: AtomicU32,
}

impl Ring {
    /// None yet.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> Result<Self> {
        Ok(Ring { memory: SharedMemory::new(MOST_PAGES, false, Privilege::None)?, pages: AtomicU32::new(0) })
    }

    /// It has that shape from now on, and all its pages: the caller pays for them. Not called twice at a time.
    ///
    /// # Errors
    /// ENOMEM: it has none.
    pub fn shape(&self, shape: &Shape, cx: &Cx) -> Result<()> {
        crate::memory::admit()?;
        for page in 0..shape.pages() {
            if self.memory.page(page, Access::Write, cx).is_err() {
                // Nobody has mapped them, so this is done at once.
                let _ = self.memory.remove(0..page, &mut false, cx);
                return Err(Errno::ENOMEM);
            }
        }
        self.pages.store(shape.pages() as u32, Ordering::Relaxed);
        Ok(())
    }

    /// Whether it can be mapped.
    pub fn is_there(&self) -> bool {
        self.pages.load(Ordering::Relaxed) > 0
    }

    /// Its pages, to be mapped.
    pub fn pages(&self) -> &dyn Pages {
        self
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.pages.load(Ordering::Relaxed) as usize * PAGE_SIZE
    }

    fn frame(&self, at: usize, cx: &Cx) -> Option<UFrame> {
        self.memory.page((at / PAGE_SIZE) as u64, Access::Write, cx).ok()
    }

    fn write(&self, mut at: usize, mut bytes: &[u8], cx: &Cx) -> Option<()> {
        while !bytes.is_empty() {
            let start = at % PAGE_SIZE;
            let count = bytes.len().min(PAGE_SIZE - start);
            let frame = self.frame(at, cx)?;
            // The kernel's own way to a frame does not fault.
            let _ = frame.writer(start..start + count).write(&bytes[..count]);
            at += count;
            bytes = &bytes[count..];
        }
        Some(())
    }

    /// Whether a slot is the kernel's.
    pub fn is_free(&self, shape: &Shape, slot: u32, cx: &Cx) -> bool {
        let at = shape.slot(slot);
        let mut status = [1; 4];
        if let Some(frame) = self.frame(at, cx) {
            let start = at % PAGE_SIZE;
            let _ = frame.reader(start..start + 4).read(&mut status);
        }
        status == [0; 4]
    }

    /// Enters a frame into a slot, which is the program's then; `None`: it is not the kernel's, or there is no memory.
    pub fn enter(&self, shape: &Shape, slot: u32, entry: &Entry<'_>, cx: &Cx) -> Option<()> {
        if !self.is_free(shape, slot, cx) {
            return None;
        }
        let at = shape.slot(slot);
        let behind = (HEADER_AND_ADDRESS + entry.link_bytes.max(16)).next_multiple_of(ALIGNMENT);
        let network = behind + shape.reserved as usize;
        let start = network - entry.link_bytes;
        let room = (shape.slot_bytes as usize).saturating_sub(start);
        let bytes = &entry.bytes[..entry.bytes.len().min(room)];
        let (seconds, nanoseconds) = ((entry.time / 1_000_000_000) as u32, (entry.time % 1_000_000_000) as u32);
        let mut header = [0; HEADER_BYTES - 8];
        header[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        header[4..6].copy_from_slice(&(start as u16).to_le_bytes());
        header[6..8].copy_from_slice(&(network as u16).to_le_bytes());
        header[8..12].copy_from_slice(&seconds.to_le_bytes());
        header[12..16].copy_from_slice(&nanoseconds.to_le_bytes());
        self.write(at + 8, &header, cx)?;
        self.write(at + HEADER_BYTES, &entry.address, cx)?;
        self.write(at + start, bytes, cx)?;
        let mut status = USER;
        if bytes.len() < entry.bytes.len() {
            status |= COPY;
        }
        if entry.some_were_lost {
            status |= LOSING;
        }
        if entry.checksum == Checksum::Left {
            status |= CHECKSUM_IS_LEFT;
        }
        // Slots are aligned, so the two words lie in one page. With them all the rest is there.
        self.frame(at, cx)?.store(at % PAGE_SIZE / 8, u64::from(status) | (entry.len as u64) << 32);
        Some(())
    }
}

impl Pages for Ring {
    fn page(&self, index: u64, access: Access, cx: &Cx) -> core::result::Result<UFrame, BadAccess> {
        if index >= self.pages.load(Ordering::Relaxed).into() {
            return Err(BadAccess::BeyondFile);
        }
        self.memory.page(index, access, cx)
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        self.memory.cached(indices, each, cx);
    }

    /// Frames are entered into its pages, which were paid for once.
    fn remove(&self, _indices: Range<u64>, _is_removed: &mut bool, _cx: &Cx) -> Step<()> {
        Err(Errno::EINVAL.into())
    }

    fn mapped(&self) -> &Mapped {
        self.memory.mapped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_fits_together_or_is_refused() {
        let good = Shape { block_bytes: 8192, blocks: 4, slot_bytes: 1600, slots: 20, reserved: 4 };
        assert_eq!(good.check(), Ok(()));
        assert_eq!(good.slot(4), 6400);
        assert_eq!(good.slot(5), 8192);
        for wrong in [
            Shape { block_bytes: 0, ..good },
            Shape { block_bytes: 8000, ..good },
            Shape { slots: 21, ..good },
            Shape { slot_bytes: 0, ..good },
            Shape { slot_bytes: 1601, ..good },
            Shape { slot_bytes: 16_384, slots: 0, ..good },
            Shape { reserved: u32::MAX, ..good },
        ] {
            assert_eq!(wrong.check(), Err(Errno::EINVAL), "{wrong:?}");
        }
        assert_eq!(Shape { blocks: 4000, slots: 20_000, ..good }.check(), Err(Errno::ENOMEM));
    }
}

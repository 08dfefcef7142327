//! [`Inflation`]: frames that are out of use because the host wants their memory (5.5.6), and [`Statistics`], by which it judges how many (5.5.6.3).

use alloc::vec::Vec;
use core::ops::Range;

use frame::dma::{DmaCoherent, DmaMap, Domain};
use frame::mm::{PAGE_SIZE, UFrame, frame_count, free_frames};

use super::super::pci::Doorbell;
use super::super::queue::{Broken, Queue, Segment};

/// So many pages are named at a time: a MiB.
const AT_ONCE: usize = 256;
const NUMBER_BYTES: usize = 4;

/// Where the device is told which pages it gets, and which it loses.
const GROWS_AT: usize = 0;
const SHRINKS_AT: usize = AT_ONCE * NUMBER_BYTES;
const _: () = assert!(SHRINKS_AT + AT_ONCE * NUMBER_BYTES <= PAGE_SIZE);

/// The balloon, and the queues by which it is told of.
pub struct Inflation {
    inflate: Line,
    deflate: Line,
    numbers: DmaCoherent,
    domain: &'static Domain,
    /// What is in the balloon, [`AT_ONCE`] frames at most in each.
    held: Vec<DmaMap>,
    pages: usize,
    /// What the host wanted when memory ran out: as long as it wants no other size, the balloon does not grow.
    refused: Option<usize>,
}

impl Inflation {
    pub fn new(
        (inflate, inflate_bell): (Queue<()>, Doorbell),
        (deflate, deflate_bell): (Queue<()>, Doorbell),
        domain: &'static Domain,
    ) -> Option<Self> {
        Some(Inflation {
            inflate: Line { queue: inflate, doorbell: inflate_bell },
            deflate: Line { queue: deflate, doorbell: deflate_bell },
            numbers: DmaCoherent::new(domain, 0)?,
            domain,
            held: Vec::new(),
            pages: 0,
            refused: None,
        })
    }

    /// How many pages are in the balloon.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Makes the balloon by a piece more what the host wants; whether there is more to do at once.
    ///
    /// # Errors
    /// The device says what cannot be.
    pub fn approach(&mut self, wanted: usize) -> Result<bool, Broken> {
        if self.refused != Some(wanted) {
            self.refused = None;
        }
        if !self.has_answered()? {
            return Ok(false);
        }
        if wanted > self.pages && self.refused.is_none() {
            return Ok(self.grow(wanted - self.pages));
        }
        Ok(wanted < self.pages && self.shrink(self.pages - wanted))
    }

    /// Takes some pages out of the balloon, which does not grow until the host wants another size than this one; whether there were any.
    ///
    /// # Errors
    /// The device says what cannot be.
    pub fn deflate_for_want(&mut self, wanted: usize) -> Result<bool, Broken> {
        self.refused = Some(wanted);
        Ok(self.has_answered()? && self.shrink(AT_ONCE))
    }

    /// Whether the device knows of all changes.
    fn has_answered(&mut self) -> Result<bool, Broken> {
        Ok(self.inflate.has_answered()? && self.deflate.has_answered()?)
    }

    /// Puts up to so many pages more into the balloon; false if there is no memory for programs, which it must not take.
    fn grow(&mut self, pages: usize) -> bool {
        if self.held.try_reserve(1).is_err() {
            return false;
        }
        let frames: Vec<UFrame> = (0..pages.min(AT_ONCE)).map_while(|_| UFrame::for_overwrite()).collect();
        if frames.is_empty() {
            return false;
        }
        let Ok(lent) = DmaMap::new(self.domain, frames) else { return false };
        let (count, is_named) = (lent.len(), self.name(&lent, 0..lent.len(), GROWS_AT));
        if !is_named || !self.inflate.tell(&self.numbers, GROWS_AT, count) {
            lent.take_back();
            return false;
        }
        self.pages += count;
        self.held.push(lent);
        true
    }

    /// Takes up to so many pages out of the balloon; whether there were any. They can be used before the device has answered (5.5.6.1): it was not agreed that it must be told before.
    fn shrink(&mut self, pages: usize) -> bool {
        let Some(lent) = self.held.pop() else { return false };
        let kept = lent.len().saturating_sub(pages);
        if self.name(&lent, kept..lent.len(), SHRINKS_AT) {
            self.deflate.tell(&self.numbers, SHRINKS_AT, lent.len() - kept);
        }
        let mut frames = lent.take_back();
        self.pages -= frames.len();
        frames.truncate(kept);
        // With no memory for the tables of an IOMMU they are free, too.
        if kept > 0
            && let Ok(lent) = DmaMap::new(self.domain, frames)
        {
            self.held.push(lent);
            self.pages += kept;
        }
        true
    }

    /// Writes the numbers of pages for the device; whether it can be told them.
    fn name(&self, lent: &DmaMap, which: Range<usize>, at: usize) -> bool {
        which.enumerate().all(|(place, index)| {
            let address = lent.address(index);
            address.is_some_and(|address| self.numbers.store_page_number(at + place * NUMBER_BYTES, address))
        })
    }

    /// The device is cut off: what is in the balloon is free.
    pub fn abandon(&mut self) {
        self.held.clear();
        self.pages = 0;
    }
}

/// A queue by which the device is told of pages.
struct Line {
    queue: Queue<()>,
    doorbell: Doorbell,
}

impl Line {
    /// Tells the device of something that is in shared memory; false if it has not answered yet.
    fn tell(&mut self, memory: &DmaCoherent, at: usize, numbers: usize) -> bool {
        let Some(address) = memory.address(at) else { return false };
        let segment = Segment { address, len: (numbers * NUMBER_BYTES) as u32, is_written: false };
        let is_told = self.queue.push(&[segment], ()).is_ok();
        if self.queue.must_tell() {
            self.doorbell.ring();
        }
        is_told
    }

    /// Whether the device has answered all that it was told.
    fn has_answered(&mut self) -> Result<bool, Broken> {
        if self.queue.under_way() > 0 && self.queue.pop()?.is_none() {
            // Whatever happens next is seen later.
            self.queue.ask_to_be_told();
            return Ok(false);
        }
        Ok(true)
    }
}

/// How much memory there is, for the host: a buffer that the device gives back when it wants it anew.
pub struct Statistics {
    line: Line,
    memory: DmaCoherent,
}

/// What is told (5.5.6.4): a number of 16 bits, and a value of 64.
const FREE: u16 = 4;
const TOTAL: u16 = 5;
const AVAILABLE: u16 = 6;
const STATISTIC_BYTES: usize = 10;

impl Statistics {
    pub fn new((queue, doorbell): (Queue<()>, Doorbell), domain: &'static Domain) -> Option<Self> {
        Some(Statistics { line: Line { queue, doorbell }, memory: DmaCoherent::new(domain, 0)? })
    }

    /// Gives the device the buffer.
    pub fn offer(&mut self) {
        let free = free_frames();
        let all = [(FREE, free), (TOTAL, frame_count()), (AVAILABLE, free)];
        let mut to = self.memory.writer(0, all.len() * STATISTIC_BYTES);
        for (what, frames) in all {
            // The kernel's own memory does not fault.
            let _ = to.write(&what.to_le_bytes());
            let _ = to.write(&((frames * PAGE_SIZE) as u64).to_le_bytes());
        }
        let Some(address) = self.memory.address(0) else { return };
        let segment = Segment { address, len: (all.len() * STATISTIC_BYTES) as u32, is_written: false };
        let _ = self.line.queue.push(&[segment], ());
        if self.line.queue.must_tell() {
            self.line.doorbell.ring();
        }
    }

    /// Gives the device the buffer again, if it wants to know how things are now.
    ///
    /// # Errors
    /// It says what cannot be.
    pub fn answer(&mut self) -> Result<(), Broken> {
        if self.line.has_answered()? {
            self.offer();
        }
        Ok(())
    }
}

//! The frame policy: a buddy allocator.
//!
//! A free block of order n is 2^n frames, aligned to its size. Two neighbours that form an aligned block of the next order are
//! *buddies*: when both are free they become one. Each order has a list of its free blocks, doubly linked through the words
//! that the framework keeps for each frame; a block's first frame carries the links and, in its tag, the order + 1, which is how a
//! neighbour is recognised as free.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::mm::{FrameLink, FrameNumber, FramePolicy, frame_link};
use refs::SpinLock;

/// The largest order: blocks of 4 MiB.
const MAX_ORDER: u8 = 10;
const ORDERS: usize = MAX_ORDER as usize + 1;

/// All frames that are free.
pub static FRAMES: Buddy = Buddy::new();

/// A buddy allocator over the words that the framework keeps for each unused frame.
pub struct Buddy {
    lists: SpinLock<Lists>,
    /// How many frames are free; written under the lock only.
    available: AtomicUsize,
}

impl Buddy {
    /// An allocator without memory.
    pub const fn new() -> Self {
        Buddy { lists: SpinLock::new(Lists { first: [NONE; ORDERS] }), available: AtomicUsize::new(0) }
    }

    /// Only under the lock, so that a load and a store do.
    fn change_available(&self, change: impl FnOnce(usize) -> usize) {
        self.available.store(change(self.available.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

impl Default for Buddy {
    fn default() -> Self {
        Self::new()
    }
}

impl FramePolicy for Buddy {
    fn add(&self, first: FrameNumber, count: usize) {
        self.lists.with(|lists| {
            lists.give_range(first.0, count);
            self.change_available(|available| available + count);
        });
    }

    fn allocate(&self, order: u8) -> Option<FrameNumber> {
        self.lists.with(|lists| {
            let block = lists.take(order)?;
            self.change_available(|available| available - (1 << order));
            Some(FrameNumber(block))
        })
    }

    fn free(&self, first: FrameNumber, order: u8) {
        if order > MAX_ORDER {
            return;
        }
        self.lists.with(|lists| {
            lists.give(first.0, order);
            self.change_available(|available| available + (1 << order));
        });
    }

    fn available(&self) -> usize {
        self.available.load(Ordering::Relaxed)
    }

    fn allocate_many(&self, frames: &mut [FrameNumber]) -> usize {
        self.lists.with(|lists| {
            let mut count = 0;
            while let Some(block) = lists.take_at_most(frames.len() - count) {
                for (place, number) in frames[count..].iter_mut().zip(block) {
                    *place = FrameNumber(number);
                    count += 1;
                }
            }
            self.change_available(|available| available - count);
            count
        })
    }

    fn free_many(&self, frames: &[FrameNumber]) {
        self.lists.with(|lists| {
            for run in frames.chunk_by(|frame, next| frame.0.wrapping_add(1) == next.0) {
                match run {
                    [frame] => lists.give(frame.0, 0),
                    _ => lists.give_range(run[0].0, run.len()),
                }
            }
            self.change_available(|available| available + frames.len());
        });
    }
}

/// "No block", in a list.
const NONE: u32 = u32::MAX;

/// The first free block of each order.
struct Lists {
    first: [u32; ORDERS],
}

impl Lists {
    /// Takes a block of that order, cut from a larger one if need be.
    fn take(&mut self, order: u8) -> Option<u32> {
        let found = (order..=MAX_ORDER).find(|order| self.first_of(*order) != NONE)?;
        let block = self.first_of(found);
        self.unlink(block, found);
        for half in (order..found).rev() {
            self.link(block + (1 << half), half);
        }
        Some(block)
    }

    /// Takes the smallest free block, or of a larger one as much as a block of at most so many frames can be; `None` if that is none.
    fn take_at_most(&mut self, most: usize) -> Option<Range<u32>> {
        let largest = most.checked_ilog2()?.min(MAX_ORDER.into()) as u8;
        let order = (0..largest).find(|order| self.first_of(*order) != NONE).unwrap_or(largest);
        let first = self.take(order)?;
        Some(first..first + (1 << order))
    }

    /// Takes frames back that lie together, in blocks as large as can be.
    fn give_range(&mut self, first: u32, count: usize) {
        let (mut number, mut left) = (first, count);
        while left > 0 {
            let order = number.trailing_zeros().min(left.ilog2()).min(MAX_ORDER.into()) as u8;
            self.give(number, order);
            number += 1 << order;
            left -= 1 << order;
        }
    }

    /// Takes a block back and joins it with its buddies.
    fn give(&mut self, block: u32, order: u8) {
        let (mut block, mut order) = (block, order);
        while order < MAX_ORDER {
            let buddy = block ^ (1 << order);
            if link(buddy).is_none_or(|words| words.tag.load(Ordering::Relaxed) != tag(order)) {
                break;
            }
            self.unlink(buddy, order);
            block = block.min(buddy);
            order += 1;
        }
        self.link(block, order);
    }

    fn first_of(&self, order: u8) -> u32 {
        self.first.get(usize::from(order)).copied().unwrap_or(NONE)
    }

    fn link(&mut self, block: u32, order: u8) {
        let (Some(words), Some(first)) = (link(block), self.first.get_mut(usize::from(order))) else { return };
        words.tag.store(tag(order), Ordering::Relaxed);
        words.previous.store(NONE, Ordering::Relaxed);
        words.next.store(*first, Ordering::Relaxed);
        if let Some(next) = link(*first) {
            next.previous.store(block, Ordering::Relaxed);
        }
        *first = block;
    }

    fn unlink(&mut self, block: u32, order: u8) {
        let Some(words) = link(block) else { return };
        let (previous, next) = (words.previous.load(Ordering::Relaxed), words.next.load(Ordering::Relaxed));
        words.tag.store(0, Ordering::Relaxed);
        // Whoever gets the frame counts there whose it is.
        words.previous.store(0, Ordering::Relaxed);
        if let Some(next) = link(next) {
            next.previous.store(previous, Ordering::Relaxed);
        }
        if let Some(previous) = link(previous) {
            previous.next.store(next, Ordering::Relaxed);
        } else if let Some(first) = self.first.get_mut(usize::from(order)) {
            *first = next;
        }
    }
}

/// The tag of a free block's first frame. Other frames have 0.
fn tag(order: u8) -> u32 {
    u32::from(order) + 1
}

/// The words of a frame; `None` for [`NONE`] and beyond the last frame.
fn link(number: u32) -> Option<&'static FrameLink> {
    frame_link(FrameNumber(number))
}

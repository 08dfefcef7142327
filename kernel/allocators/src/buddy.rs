//! The frame policy: a buddy allocator.
//!
//! A free block of order n is 2^n frames, aligned to its size. Two neighbours that form an aligned block of the next order are
//! *buddies*: when both are free they become one. Each order has a list of its free blocks, doubly linked through the words
//! that the framework keeps for each frame; a block's first frame carries the links and, in its tag, the number of its list + 1, which is how a
//! neighbour is recognised as free.
//!
//! Where there is a balloon (`drivers::virtio::balloon`) the host is told of large blocks that are free, and takes the memory behind them back until they are used again. A block that it was told of is *reported*, and so is one that was never used: the host has nothing behind it. Those are in lists of
//! their own, from which is taken last. Halves of a reported block are reported, as long as they are large, and what two of them form; whatever else is joined with one is not.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use frame::mm::{FrameLink, FrameNumber, FramePolicy, frame_link};
use refs::SpinLock;

/// The largest order: blocks of 4 MiB.
const MAX_ORDER: u8 = 10;
const ORDERS: usize = MAX_ORDER as usize + 1;
/// The least order of which blocks are reported: what lies behind 2 MiB can be one page of the host's.
const LEAST_REPORTED: u8 = 9;
/// The lists: of each order, then those of reported blocks.
const LISTS: usize = ORDERS + (MAX_ORDER - LEAST_REPORTED) as usize + 1;

/// All frames that are free.
pub static FRAMES: Buddy = Buddy::new();

/// A buddy allocator over the words that the framework keeps for each unused frame.
pub struct Buddy {
    lists: SpinLock<Lists>,
    /// How many frames are free; written under the lock only.
    available: AtomicUsize,
    /// Frames that are added may have been used.
    has_begun: AtomicBool,
}

impl Buddy {
    /// An allocator without memory.
    pub const fn new() -> Self {
        Buddy {
            lists: SpinLock::new(Lists { first: [NONE; LISTS] }),
            available: AtomicUsize::new(0),
            has_begun: AtomicBool::new(false),
        }
    }

    /// What was added until now nobody has ever used; what is added from now on may have been.
    pub fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Takes a large block out of which the host was not told, if a multiple of it is free: for as long as it is out nobody else has it.
    pub fn take_unreported(&self) -> Option<(FrameNumber, u8)> {
        self.lists.with(|lists| {
            let available = self.available.load(Ordering::Relaxed);
            let order = (LEAST_REPORTED..=MAX_ORDER).rev().find(|order| lists.first_of(*order) != NONE)?;
            if available >> order < LEFT_BESIDE {
                return None;
            }
            let block = lists.first_of(order);
            lists.unlink(block, order);
            self.change_available(|available| available - (1 << order));
            Some((FrameNumber(block), order))
        })
    }

    /// Takes a block back of which the host was told.
    pub fn give_reported(&self, first: FrameNumber, order: u8) {
        self.lists.with(|lists| {
            lists.give(first.0, order, Reported::Yes);
            self.change_available(|available| available + (1 << order));
        });
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
            let reported = if self.has_begun.load(Ordering::Relaxed) { Reported::No } else { Reported::Yes };
            lists.give_range(first.0, count, reported);
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
            lists.give(first.0, order, Reported::No);
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
                    [frame] => lists.give(frame.0, 0, Reported::No),
                    _ => lists.give_range(run[0].0, run.len(), Reported::No),
                }
            }
            self.change_available(|available| available + frames.len());
        });
    }
}

/// "No block", in a list.
const NONE: u32 = u32::MAX;

/// So many times as much as is taken out to be reported must be free.
const LEFT_BESIDE: usize = 4;

/// Whether the host was told that a block is free.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reported {
    No,
    Yes,
}

/// The number of the list of reported blocks of an order; `None` if they are too small for that. The other lists have the numbers of their orders.
fn reported_list(order: u8) -> Option<u8> {
    (LEAST_REPORTED..=MAX_ORDER).contains(&order).then(|| MAX_ORDER + 1 + order - LEAST_REPORTED)
}

/// The order of blocks in a list.
fn order_of(list: u8) -> u8 {
    if list > MAX_ORDER { list - MAX_ORDER - 1 + LEAST_REPORTED } else { list }
}

/// The first free block of each list.
struct Lists {
    first: [u32; LISTS],
}

impl Lists {
    /// Takes a block of that order, cut from a larger one if need be.
    fn take(&mut self, order: u8) -> Option<u32> {
        let reported = reported_list(order.max(LEAST_REPORTED))?..LISTS as u8;
        let from = (order..=MAX_ORDER).chain(reported).find(|list| self.first_of(*list) != NONE)?;
        let block = self.first_of(from);
        self.unlink(block, from);
        for half in (order..order_of(from)).rev() {
            let list = if from > MAX_ORDER { reported_list(half) } else { None }.unwrap_or(half);
            self.link(block + (1 << half), list);
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
    fn give_range(&mut self, first: u32, count: usize, reported: Reported) {
        let (mut number, mut left) = (first, count);
        while left > 0 {
            let order = number.trailing_zeros().min(left.ilog2()).min(MAX_ORDER.into()) as u8;
            self.give(number, order, reported);
            number += 1 << order;
            left -= 1 << order;
        }
    }

    /// Takes a block back and joins it with its buddies.
    fn give(&mut self, block: u32, order: u8, reported: Reported) {
        let (mut block, mut order, mut reported) = (block, order, reported);
        while order < MAX_ORDER {
            let buddy = block ^ (1 << order);
            let buddy_tag = link(buddy).map(|words| words.tag.load(Ordering::Relaxed));
            if buddy_tag == Some(tag(order)) {
                self.unlink(buddy, order);
                reported = Reported::No;
            } else if let Some(list) = reported_list(order).filter(|list| buddy_tag == Some(tag(*list))) {
                self.unlink(buddy, list);
            } else {
                break;
            }
            block = block.min(buddy);
            order += 1;
        }
        let of_reported = if reported == Reported::Yes { reported_list(order) } else { None };
        self.link(block, of_reported.unwrap_or(order));
    }

    fn first_of(&self, list: u8) -> u32 {
        self.first.get(usize::from(list)).copied().unwrap_or(NONE)
    }

    fn link(&mut self, block: u32, list: u8) {
        let (Some(words), Some(first)) = (link(block), self.first.get_mut(usize::from(list))) else { return };
        words.tag.store(tag(list), Ordering::Relaxed);
        words.previous.store(NONE, Ordering::Relaxed);
        words.next.store(*first, Ordering::Relaxed);
        if let Some(next) = link(*first) {
            next.previous.store(block, Ordering::Relaxed);
        }
        *first = block;
    }

    fn unlink(&mut self, block: u32, list: u8) {
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
        } else if let Some(first) = self.first.get_mut(usize::from(list)) {
            *first = next;
        }
    }
}

/// The tag of the first frame of a free block in a list. Other frames have 0.
fn tag(list: u8) -> u32 {
    u32::from(list) + 1
}

/// The words of a frame; `None` for [`NONE`] and beyond the last frame.
fn link(number: u32) -> Option<&'static FrameLink> {
    frame_link(FrameNumber(number))
}

//! [`VmaMap`]: which ranges of an address space are mapped, and how (what Linux calls vmas).
//!
//! Invariants: VMAs are page-aligned, not empty, do not overlap, are sorted by address, and two neighbours that could be one are one
//! (a child's may not be). They stand in sorted chunks: most programs have some tens of VMAs and so one chunk, which `fork` copies and every
//! fault looks through quickly; some have as many as [`MAX_AREAS`], and nothing may then look at all of them: [`gaps`] has what a search for room
//! skips chunks by. Looking VMAs up is here; [`area`] is one of them, [`change`] what changes them.
//!
//! This is pure bookkeeping: page tables follow it elsewhere ([`super::space`]).

mod area;
mod change;
mod gaps;

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use frame::mm::PAGE_SIZE;

use crate::sysctl::Tunable;
pub use area::{Mergeable, Vma, VmaFlags};
pub use change::Removed;
use gaps::{Gaps, LastSearch};

/// The most VMAs an address space can have (Linux's default for `vm.max_map_count`).
pub static MAX_AREAS: Tunable = Tunable::new(65_530, 0..=i32::MAX as u64);

/// How far below a stack that grows nothing else is placed (Linux's `stack_guard_gap`).
pub const STACK_GUARD: usize = 256 * PAGE_SIZE;

/// There would be more VMAs than [`MAX_AREAS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyVmas;

/// How many VMAs stand in one piece of memory at most.
const CHUNK: usize = 64;

/// So many chunks are new at most where a range is made one of its own.
const MOST_NEW_CHUNKS: usize = 2;

/// For how many there is room at first: a small program's.
const FIRST: usize = 10;

/// The VMAs of an address space.
pub struct VmaMap<B> {
    /// In order, none empty, none longer than [`CHUNK`].
    chunks: Vec<Vec<Vma<B>>>,
    gaps: Gaps,
    count: usize,
    /// How many of them show objects, those included that were taken out and not [forgotten](VmaMap::forget_object) yet.
    objects: usize,
    /// How many may.
    most_objects: usize,
    last_search: LastSearch,
    /// Where in the only chunk a VMA was entered last, or room for one was found: what comes next is often there.
    last_index: usize,
    /// Where in the first chunk that VMA was in which somebody looked [again and again](VmaMap::find_again).
    found: AtomicUsize,
}

/// Where a VMA stands. The position behind the last is that of no VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    chunk: usize,
    index: usize,
}

impl<B> Default for VmaMap<B> {
    fn default() -> Self {
        VmaMap {
            chunks: Vec::new(),
            gaps: Gaps::NONE,
            count: 0,
            objects: 0,
            most_objects: usize::MAX,
            last_search: LastSearch::NONE,
            last_index: 0,
            found: AtomicUsize::new(0),
        }
    }
}

impl<B: Mergeable> VmaMap<B> {
    /// None, with room for as many as `count` if they are few.
    pub fn with_capacity(count: usize) -> Self {
        let mut vmas = VmaMap::default();
        vmas.chunks.push(Vec::with_capacity(count.clamp(1, CHUNK)));
        vmas
    }

    /// Makes room for the chunks of so many that are entered one [behind](Self::push) the other; whether there is memory for it.
    pub fn reserve_chunks(&mut self, count: usize) -> bool {
        count <= CHUNK || self.reserve_lists(count.div_ceil(CHUNK) + 1)
    }

    /// Makes room in the lists that are as long as there are chunks; whether there is memory for it. They may be large blocks of the heap, which can be refused.
    #[cold]
    #[inline(never)]
    fn reserve_lists(&mut self, more: usize) -> bool {
        let all = self.chunks.len() + more;
        // What is small is never refused.
        self.chunks.try_reserve(more).is_ok() && (all < CHUNK || self.gaps.reserve(all))
    }

    /// Whether there is room for the chunks that two splits make.
    #[inline(always)]
    fn has_room_for_splits(&self) -> bool {
        self.chunks.capacity() - self.chunks.len() >= MOST_NEW_CHUNKS
    }

    /// Makes room for them; whether there is memory for it.
    #[inline(always)]
    fn make_room_for_splits(&mut self) -> bool {
        self.has_room_for_splits() || self.reserve_lists(MOST_NEW_CHUNKS)
    }

    /// All of them, by address.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Vma<B>> {
        self.chunks.iter().flatten()
    }

    /// How much of the heap its chunks take, about: all but the last are in slots for as many VMAs as there can be.
    pub fn bytes(&self) -> usize {
        self.chunks.len().saturating_sub(1) * (CHUNK * size_of::<Vma<B>>()).next_power_of_two()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The position of the first VMA for which `is_before` is false; it is true of all VMAs up to some point, and of none behind.
    #[inline(always)]
    fn position_by(&self, is_before: impl Fn(&Vma<B>) -> bool) -> Position {
        let chunk = match self.chunks.len() {
            // Nearly every process.
            0 | 1 => 0,
            _ => self.chunks.partition_point(|chunk| chunk.last().is_some_and(&is_before)),
        };
        let index = self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(&is_before));
        Position { chunk, index }
    }

    /// The position of the first VMA that ends behind `address`.
    #[inline(always)]
    fn position(&self, address: usize) -> Position {
        self.position_by(|vma| vma.end <= address)
    }

    /// As [`position`](Self::position), quickly if it is where the last change was, or behind that.
    #[inline(always)]
    fn position_again(&self, address: usize) -> Position {
        let index = self.last_index;
        if let [chunk] = &self.chunks[..]
            && let Some(vma) = chunk.get(index)
        {
            let (index, is_it) = match vma.end > address {
                true => (index, chunk.get(index.wrapping_sub(1)).is_none_or(|before| before.end <= address)),
                false => (index + 1, chunk.get(index + 1).is_none_or(|behind| behind.end > address)),
            };
            if is_it {
                return Position { chunk: 0, index };
            }
        }
        self.position(address)
    }

    #[inline(always)]
    fn at(&self, at: Position) -> Option<&Vma<B>> {
        self.chunks.get(at.chunk)?.get(at.index)
    }

    #[inline(always)]
    fn at_mut(&mut self, at: Position) -> Option<&mut Vma<B>> {
        self.chunks.get_mut(at.chunk)?.get_mut(at.index)
    }

    fn next(&self, at: Position) -> Position {
        if self.chunks.get(at.chunk).is_some_and(|chunk| at.index + 1 < chunk.len()) {
            Position { index: at.index + 1, ..at }
        } else {
            Position { chunk: at.chunk + 1, index: 0 }
        }
    }

    fn previous(&self, at: Position) -> Option<Position> {
        match at {
            Position { chunk, index: 1.. } => Some(Position { chunk, index: at.index - 1 }),
            Position { chunk, .. } => {
                let chunk = chunk.min(self.chunks.len()).checked_sub(1)?;
                Some(Position { chunk, index: self.chunks[chunk].len().checked_sub(1)? })
            }
        }
    }

    /// The VMAs from a position on.
    #[inline(always)]
    fn from(&self, at: Position) -> impl Iterator<Item = &Vma<B>> {
        let (first, rest) = self.chunks.get(at.chunk..).and_then(<[_]>::split_first).unzip();
        let first = first.and_then(|chunk| chunk.get(at.index..)).unwrap_or_default();
        first.iter().chain(rest.unwrap_or_default().iter().flatten())
    }

    /// The VMA of an address.
    #[inline(always)]
    pub fn find(&self, address: usize) -> Option<&Vma<B>> {
        self.at(self.position(address)).filter(|vma| vma.start <= address)
    }

    /// As [`find`](Self::find), quickly if it is where this was asked last: for who asks for one address after the other.
    #[inline(always)]
    pub fn find_again(&self, address: usize) -> Option<&Vma<B>> {
        let at = Position { chunk: 0, index: self.found.load(Relaxed) };
        if let Some(vma) = self.at(at)
            && (vma.start..vma.end).contains(&address)
        {
            return Some(vma);
        }
        let at = self.position(address);
        if at.chunk == 0 {
            self.found.store(at.index, Relaxed);
        }
        self.at(at).filter(|vma| vma.start <= address)
    }

    /// The first VMA that ends behind `address`: the one there, or the next above.
    pub fn at_or_above(&self, address: usize) -> Option<&Vma<B>> {
        self.at(self.position(address))
    }

    /// The last VMA that lies wholly below `address`.
    pub fn below(&self, address: usize) -> Option<&Vma<B>> {
        let last = self.previous(self.position_by(|vma| vma.start < address))?;
        self.at(last).filter(|vma| vma.end <= address)
    }

    /// The VMAs that have a page in `range`.
    pub fn overlapping(&self, range: Range<usize>) -> impl Iterator<Item = &Vma<B>> {
        self.from(self.position(range.start)).take_while(move |vma| vma.start < range.end)
    }

    /// Whether nothing is mapped in `range`.
    pub fn is_free(&self, range: Range<usize>) -> bool {
        self.at_or_above(range.start).is_none_or(|vma| vma.start >= range.end)
    }

    /// Where the mapped part of `range` that begins at its start ends.
    pub fn covered_until(&self, range: Range<usize>) -> usize {
        let mut at = range.start;
        for vma in self.overlapping(range.clone()) {
            if vma.start > at {
                break;
            }
            at = vma.end;
        }
        at.min(range.end)
    }

    /// Whether there are as many as there can be.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.count as u64 >= MAX_AREAS.get()
    }

    /// Whether there may be none more that shows what this one shows.
    #[inline(always)]
    fn is_full_for(&self, backing: &B) -> bool {
        self.is_full() || (self.objects >= self.most_objects && backing.is_object())
    }

    /// Whether some VMA may not be split.
    #[inline(always)]
    fn has_no_room(&self) -> bool {
        self.is_full() || self.objects >= self.most_objects
    }

    /// How many VMAs show objects.
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// How many more may.
    #[inline(always)]
    pub fn room_for_objects(&self) -> usize {
        self.most_objects.saturating_sub(self.objects)
    }

    /// How many may from now on; `usize::MAX`: as many as there can be. Those that there are stay.
    pub fn set_most_objects(&mut self, most: usize) {
        self.most_objects = most;
    }

    /// One that was taken out and shows an object is gone.
    #[inline(always)]
    pub fn forget_object(&mut self) {
        self.objects -= 1;
    }

    /// Whether there can be so many more.
    #[inline(always)]
    pub fn can_have(&self, more: usize) -> bool {
        (self.count + more) as u64 <= MAX_AREAS.get()
    }

    /// Whether a VMA can be put in the place of all that is mapped in `range`, as far as their number goes.
    pub fn has_room_for(&self, range: &Range<usize>) -> bool {
        if (self.count + 2) as u64 <= MAX_AREAS.get() {
            return true;
        }
        let mut there = self.overlapping(range.clone());
        let (whole, is_inside) = there.by_ref().fold((0, false), |(whole, is_inside), vma| {
            let (at_start, at_end) = (vma.start < range.start, vma.end > range.end);
            (whole + usize::from(!at_start && !at_end), is_inside || (at_start && at_end))
        });
        (self.count + 1 + usize::from(is_inside)) as u64 <= MAX_AREAS.get() + whole as u64
    }

    /// Where the `count`th VMA from `range.start` on ends, or the range: so far a step of work on the range goes.
    pub fn piece(&self, range: Range<usize>, count: usize) -> Range<usize> {
        let end = self.overlapping(range.clone()).nth(count - 1).map_or(range.end, |vma| vma.end.min(range.end));
        range.start..end
    }
}

#[cfg(test)]
mod tests;

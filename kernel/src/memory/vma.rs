//! [`VmaMap`]: which ranges of an address space are mapped, and how (what Linux calls vmas).
//!
//! Invariants: VMAs are page-aligned, not empty, do not overlap, are sorted by address, and two neighbours that could be one are one
//! (a child's may not be). They stand in sorted chunks: most programs have some tens of VMAs and so one chunk, which `fork` copies and every
//! fault looks through quickly; some have as many as [`MAX_AREAS`], and nothing may then look at all of them: [`gaps`] has what a search for room
//! skips chunks by.
//!
//! This is pure bookkeeping: page tables follow it elsewhere ([`super::space`]).

mod gaps;

use alloc::vec::Vec;
use core::ops::Range;

use bitflags::bitflags;
use frame::mm::{PAGE_SIZE, Prot};

use crate::sysctl::Tunable;
use gaps::{Gaps, LastSearch};

/// The most VMAs an address space can have (Linux's default for `vm.max_map_count`).
pub static MAX_AREAS: Tunable = Tunable::new(65_530, 0..=i32::MAX as u64);

/// How far below a stack that grows nothing else is placed (Linux's `stack_guard_gap`).
pub const STACK_GUARD: usize = 256 * PAGE_SIZE;

bitflags! {
    /// What is special about a VMA.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct VmaFlags: u16 {
        /// Writes go to the object itself (MAP_SHARED).
        const SHARED = 1;
        /// It grows downwards on a fault below it (MAP_GROWSDOWN).
        const GROWS_DOWN = 2;
        /// Its pages stay in memory (mlock(2)); there is no swapping, so this only shows in reports and limits.
        const LOCKED = 4;
        /// A child does not get it (MADV_DONTFORK).
        const DONT_FORK = 8;
        /// A child gets zeros (MADV_WIPEONFORK).
        const WIPE_ON_FORK = 16;
        /// It was not asked to be backed by memory (MAP_NORESERVE).
        const NO_RESERVE = 32;
        /// It shows an object, cannot be written now, and may have pages of its own from before.
        const MAY_OWN = 64;
        /// Memory is promised for all of it (Linux's VM_ACCOUNT).
        const ACCOUNTED = 128;
        /// If it is [`LOCKED`](Self::LOCKED): its pages are not brought in before they are used (MLOCK_ONFAULT).
        const LOCK_ON_FAULT = 256;
        /// Core files do not have its pages (MADV_DONTDUMP).
        const DONT_DUMP = 512;
    }
}

/// What a VMA shows, as far as the bookkeeping must know.
pub trait Mergeable: Sized {
    /// The same, seen from `pages` further on.
    fn advanced(&self, pages: u64) -> Self;
    /// Whether `next` is what `self` goes on with after `pages`.
    fn is_continued_by(&self, pages: u64, next: &Self) -> bool;
}

/// One range that is mapped in one way.
#[derive(Debug)]
pub struct Vma<B> {
    /// Its first address.
    pub start: usize,
    /// The first address behind it.
    pub end: usize,
    /// What user code may do.
    pub prot: Prot,
    /// What mprotect(2) may allow at most.
    pub limit: Prot,
    /// What is special about it.
    pub flags: VmaFlags,
    /// What it shows.
    pub backing: B,
}

impl<B: Mergeable> Vma<B> {
    /// Its addresses.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// How many pages it has.
    pub fn pages(&self) -> usize {
        (self.end - self.start) / PAGE_SIZE
    }

    /// Cuts off what lies at and behind `at`, which is inside.
    fn split_off(&mut self, at: usize) -> Self {
        let pages = ((at - self.start) / PAGE_SIZE) as u64;
        let rest = Vma { start: at, backing: self.backing.advanced(pages), ..*self };
        self.end = at;
        rest
    }

    fn is_continued_by(&self, next: &Self) -> bool {
        self.end == next.start
            && self.prot == next.prot
            && self.limit == next.limit
            && self.flags == next.flags
            && !self.flags.contains(VmaFlags::GROWS_DOWN)
            && self.backing.is_continued_by(self.pages() as u64, &next.backing)
    }
}

/// VMAs that were taken out of the others.
pub struct Removed<B> {
    chunks: Vec<Vec<Vma<B>>>,
}

impl<B: Mergeable> Removed<B> {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// From the start of the first to the end of the last.
    pub fn span(&self) -> Range<usize> {
        let mut all = self.iter();
        let Some(first) = all.next() else { return 0..0 };
        let last = self.chunks.last().and_then(|chunk| chunk.last()).unwrap_or(first);
        first.start..last.end
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Vma<B>> {
        self.chunks.iter().flatten()
    }

    /// Takes some of them out, to be dropped; `None` once there are none.
    pub fn pop_chunk(&mut self) -> Option<Vec<Vma<B>>> {
        self.chunks.pop()
    }
}

/// There would be more VMAs than [`MAX_AREAS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyVmas;

/// How many VMAs stand in one piece of memory at most.
const CHUNK: usize = 64;

/// The VMAs of an address space.
pub struct VmaMap<B> {
    /// In order, none empty, none longer than [`CHUNK`].
    chunks: Vec<Vec<Vma<B>>>,
    gaps: Gaps,
    count: usize,
    last_search: LastSearch,
}

/// Where a VMA stands. The position behind the last is that of no VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    chunk: usize,
    index: usize,
}

impl<B> Default for VmaMap<B> {
    fn default() -> Self {
        VmaMap { chunks: Vec::new(), gaps: Gaps::NONE, count: 0, last_search: LastSearch::NONE }
    }
}

impl<B: Mergeable> VmaMap<B> {
    /// None, with room for as many as `count` if they are few.
    pub fn with_capacity(count: usize) -> Self {
        let mut vmas = VmaMap::default();
        vmas.chunks.push(Vec::with_capacity(count.clamp(1, CHUNK)));
        vmas
    }

    /// All of them, by address.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Vma<B>> {
        self.chunks.iter().flatten()
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

    /// Enters a VMA where nothing is mapped.
    ///
    /// # Errors
    /// There are too many.
    pub fn insert(&mut self, vma: Vma<B>) -> Result<(), TooManyVmas> {
        debug_assert!(vma.start < vma.end && self.is_free(vma.range()));
        let at = self.position(vma.start);
        if let Some(before) = self.previous(at)
            && let Some(previous) = self.at_mut(before)
            && previous.is_continued_by(&vma)
        {
            previous.end = vma.end;
            self.gaps_changed(before.chunk);
            self.merge(before);
            return Ok(());
        }
        if let Some(following) = self.at_mut(at)
            && vma.is_continued_by(following)
        {
            *following = Vma { end: following.end, ..vma };
            self.gaps_changed(at.chunk);
            return Ok(());
        }
        if self.is_full() {
            return Err(TooManyVmas);
        }
        let at = self.insert_at(at, vma);
        self.gaps_changed(at.chunk);
        Ok(())
    }

    /// Enters a VMA behind all others, as it is.
    #[inline(always)]
    pub fn push(&mut self, vma: Vma<B>) {
        debug_assert!(self.iter().next_back().is_none_or(|last| last.end <= vma.start));
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => {
                self.count += 1;
                let is_gap = chunk.last().is_some_and(|last| last.end != vma.start);
                chunk.push(vma);
                if is_gap {
                    self.gaps_changed(self.chunks.len() - 1);
                }
            }
            _ => _ = self.insert_at(Position { chunk: self.chunks.len(), index: 0 }, vma),
        }
    }

    /// Enters a VMA in front of the one at a position; where it stands then. The gaps around it are the caller's concern.
    fn insert_at(&mut self, mut at: Position, vma: Vma<B>) -> Position {
        self.count += 1;
        if at.chunk == self.chunks.len() {
            match self.chunks.last() {
                Some(last) => at = Position { chunk: at.chunk - 1, index: last.len() },
                None => self.chunks.push(Vec::new()),
            }
        }
        let chunk = &mut self.chunks[at.chunk];
        if chunk.len() >= CHUNK {
            // Behind the last VMA a new chunk begins, so that VMAs that come in order fill theirs.
            let half = if at.index == chunk.len() { chunk.len() } else { chunk.len() / 2 };
            self.split_chunk(at.chunk, half);
            if at.index > half || half == CHUNK {
                at = Position { chunk: at.chunk + 1, index: at.index - half };
            }
        }
        self.chunks[at.chunk].insert(at.index, vma);
        at
    }

    /// Takes a VMA out. The gaps around it are the caller's concern.
    #[inline(always)]
    fn remove_at(&mut self, at: Position) -> Vma<B> {
        self.count -= 1;
        let vma = self.chunks[at.chunk].remove(at.index);
        if self.chunks[at.chunk].is_empty() {
            self.remove_chunk(at.chunk);
        }
        vma
    }

    /// Makes one of a VMA and the next, if they can be; whether they could.
    fn merge(&mut self, at: Position) -> bool {
        let next = self.next(at);
        let (Some(vma), Some(following)) = (self.at(at), self.at(next)) else { return false };
        if !vma.is_continued_by(following) {
            return false;
        }
        let end = self.remove_at(next).end;
        self.chunks[at.chunk][at.index].end = end;
        if next.chunk != at.chunk {
            self.gaps_changed(next.chunk);
        }
        true
    }

    /// Makes `at` a boundary between VMAs if it lies inside one.
    fn split(&mut self, at: usize) -> Result<(), TooManyVmas> {
        if self.count as u64 >= MAX_AREAS.get() && self.at(self.position(at)).is_some_and(|vma| vma.start < at) {
            return Err(TooManyVmas);
        }
        self.split_always(at);
        Ok(())
    }

    fn split_always(&mut self, at: usize) {
        let position = self.position(at);
        if let Some(vma) = self.at_mut(position)
            && vma.start < at
        {
            let rest = vma.split_off(at);
            self.insert_at(Position { index: position.index + 1, ..position }, rest);
        }
    }

    /// Splits the VMAs at the ends of a range.
    fn isolate(&mut self, range: &Range<usize>) -> Result<(), TooManyVmas> {
        self.split(range.start)?;
        self.split(range.end)
    }

    /// As [`remove`](Self::remove), where that is nothing, or no more than one VMA or a part of one: nearly always. `take_away` is told of
    /// it before. Whether it is so; nothing is taken out if not, nor if there would be too many VMAs.
    #[inline(always)]
    pub fn remove_one(&mut self, range: &Range<usize>, take_away: impl FnOnce(&Vma<B>)) -> bool {
        let at = self.position(range.start);
        let Some(vma) = self.at(at).filter(|vma| vma.start < range.end) else { return true };
        let (is_start, is_end) = (vma.start == range.start, vma.end == range.end);
        if !(is_start && is_end)
            && (vma.start > range.start
                || vma.end < range.end
                || (!is_start && !is_end && self.count as u64 >= MAX_AREAS.get()))
        {
            return false;
        }
        take_away(vma);
        self.last_search.forget_below(range.end);
        if is_start && is_end {
            drop(self.remove_at(at));
            self.gaps_changed(at.chunk);
        } else {
            self.cut(at, range);
        }
        true
    }

    /// Cuts a part out of the VMA at a position, which goes on on one side of it at least.
    fn cut(&mut self, at: Position, range: &Range<usize>) {
        let vma = &mut self.chunks[at.chunk][at.index];
        if vma.end == range.end {
            vma.end = range.start;
            self.gaps_changed(at.chunk);
            return;
        }
        let rest = vma.split_off(range.end);
        if vma.start == range.start {
            *vma = rest;
            self.gaps_changed(at.chunk);
        } else {
            vma.end = range.start;
            let rest = self.insert_at(Position { index: at.index + 1, ..at }, rest);
            self.gaps_changed(rest.chunk);
        }
    }

    /// Takes out what is mapped in `range`, and moves whole chunks of it: what the VMAs hold is dropped with the result, by the caller, in as
    /// many steps as that takes. `None` if nothing is mapped there.
    ///
    /// # Errors
    /// A split would make too many; nothing is taken out.
    pub fn remove(&mut self, range: Range<usize>) -> Result<Option<Removed<B>>, TooManyVmas> {
        let first = self.position(range.start);
        let Some(vma) = self.at(first).filter(|vma| vma.start < range.end) else { return Ok(None) };
        if vma.start < range.start && vma.end > range.end && self.count as u64 >= MAX_AREAS.get() {
            return Err(TooManyVmas);
        }
        // There may be one too many until the removed ones are out.
        self.split_always(range.start);
        self.split_always(range.end);
        self.last_search.forget_below(range.end);
        let first = self.position(range.start);
        let behind = self.position_by(|vma| vma.start < range.end);
        let mut chunks = Vec::new();
        if first.chunk == behind.chunk {
            chunks.push(self.chunks[first.chunk].drain(first.index..behind.index).collect());
        } else {
            chunks.push(self.chunks[first.chunk].split_off(first.index));
            self.take_chunks(first.chunk + 1..behind.chunk, &mut chunks);
            if let Some(last) = self.chunks.get_mut(first.chunk + 1)
                && behind.index > 0
            {
                chunks.push(last.drain(..behind.index).collect());
            }
        }
        let left = first.chunk..(first.chunk + 2).min(self.chunks.len());
        for chunk in left.rev() {
            if self.chunks[chunk].is_empty() {
                self.remove_chunk(chunk);
            } else {
                self.gaps_changed(chunk);
            }
        }
        let removed = Removed { chunks };
        self.count -= removed.len();
        Ok(Some(removed))
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

    /// Changes what is mapped in `range`.
    ///
    /// # Errors
    /// A split would make too many; nothing is changed.
    pub fn change(&mut self, range: Range<usize>, mut change: impl FnMut(&mut Vma<B>)) -> Result<(), TooManyVmas> {
        let mut first = self.position(range.start);
        let is_one = self.at(first).is_some_and(|vma| vma.start == range.start && vma.end == range.end);
        if !is_one {
            self.isolate(&range)?;
            first = self.position(range.start);
        }
        let mut at = first;
        while let Some(vma) = self.at_mut(at).filter(|vma| vma.start < range.end) {
            change(vma);
            at = self.next(at);
        }
        at = self.previous(first).unwrap_or(first);
        while self.at(at).is_some_and(|vma| vma.start < range.end) {
            if !self.merge(at) {
                at = self.next(at);
            }
        }
        Ok(())
    }

    /// Takes the last VMAs out, some at a time; `None` once there are none.
    pub fn pop_chunk(&mut self) -> Option<Vec<Vma<B>>> {
        let chunk = self.pop_last()?;
        self.count -= chunk.len();
        Some(chunk)
    }
}

#[cfg(test)]
mod tests;

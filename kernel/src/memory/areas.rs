//! [`Areas`]: which ranges of an address space are mapped, and how (what Linux calls vmas).
//!
//! Invariants: areas are page-aligned, not empty, do not overlap, are sorted by address, and two neighbours that could be one are one. They
//! stand in a sorted vector: programs have some tens of them, `fork` copies them all, and every fault looks one up. It is bounded by
//! [`MAX_AREAS`].
//!
//! This is pure bookkeeping: page tables follow it elsewhere ([`super::space`]).

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use bitflags::bitflags;
use frame::mm::{PAGE_SIZE, Prot};

/// The most areas an address space can have (Linux's default for `vm.max_map_count`).
pub const MAX_AREAS: usize = 65_530;

/// How far below a stack that grows nothing else is placed (Linux's `stack_guard_gap`).
pub const STACK_GUARD: usize = 256 * PAGE_SIZE;

bitflags! {
    /// What is special about an area.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AreaFlags: u8 {
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
    }
}

/// What an area shows, as far as the bookkeeping must know.
pub trait Backing: Sized {
    /// The same, seen from `pages` further on.
    fn advanced(&self, pages: u64) -> Self;
    /// Whether `next` is what `self` goes on with after `pages`.
    fn is_continued_by(&self, pages: u64, next: &Self) -> bool;
}

/// One range that is mapped in one way.
#[derive(Debug)]
pub struct Area<B> {
    /// Its first address.
    pub start: usize,
    /// The first address behind it.
    pub end: usize,
    /// What user code may do.
    pub prot: Prot,
    /// What mprotect(2) may allow at most.
    pub limit: Prot,
    /// What is special about it.
    pub flags: AreaFlags,
    /// What it shows.
    pub backing: B,
}

impl<B: Backing> Area<B> {
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
        let rest = Area { start: at, backing: self.backing.advanced(pages), ..*self };
        self.end = at;
        rest
    }

    fn is_continued_by(&self, next: &Self) -> bool {
        self.end == next.start
            && self.prot == next.prot
            && self.limit == next.limit
            && self.flags == next.flags
            && !self.flags.contains(AreaFlags::GROWS_DOWN)
            && self.backing.is_continued_by(self.pages() as u64, &next.backing)
    }
}

/// There would be more areas than [`MAX_AREAS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyAreas;

/// The areas of an address space.
pub struct Areas<B> {
    list: Vec<Area<B>>,
}

impl<B> Default for Areas<B> {
    fn default() -> Self {
        Areas { list: Vec::new() }
    }
}

impl<B: Backing> Areas<B> {
    /// None, with room for as many as `count`.
    pub fn with_capacity(count: usize) -> Self {
        Areas { list: Vec::with_capacity(count.min(MAX_AREAS)) }
    }

    /// All of them, by address.
    pub fn iter(&self) -> core::slice::Iter<'_, Area<B>> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The position of the first area that ends behind `address`.
    #[inline(always)]
    fn position(&self, address: usize) -> usize {
        self.list.partition_point(|area| area.end <= address)
    }

    /// The area of an address.
    #[inline(always)]
    pub fn find(&self, address: usize) -> Option<&Area<B>> {
        self.list.get(self.position(address)).filter(|area| area.start <= address)
    }

    /// The first area that ends behind `address`: the one there, or the next above.
    pub fn at_or_above(&self, address: usize) -> Option<&Area<B>> {
        self.list.get(self.position(address))
    }

    /// The last area that lies wholly below `address`.
    pub fn below(&self, address: usize) -> Option<&Area<B>> {
        let behind = self.list.partition_point(|area| area.start < address);
        self.list[..behind].last().filter(|area| area.end <= address)
    }

    /// The areas that have a page in `range`.
    pub fn overlapping(&self, range: Range<usize>) -> impl Iterator<Item = &Area<B>> {
        self.list[self.position(range.start)..].iter().take_while(move |area| area.start < range.end)
    }

    /// Whether nothing is mapped in `range`.
    pub fn is_free(&self, range: Range<usize>) -> bool {
        self.overlapping(range).next().is_none()
    }

    /// Where the mapped part of `range` that begins at its start ends.
    pub fn covered_until(&self, range: Range<usize>) -> usize {
        let mut at = range.start;
        for area in self.overlapping(range.clone()) {
            if area.start > at {
                break;
            }
            at = area.end;
        }
        at.min(range.end)
    }

    /// How many pages the areas have that `choose` accepts.
    pub fn pages_where(&self, choose: impl Fn(&Area<B>) -> bool) -> usize {
        self.list.iter().filter(|area| choose(area)).map(Area::pages).sum()
    }

    /// Enters an area where nothing is mapped.
    ///
    /// # Errors
    /// There are too many.
    pub fn insert(&mut self, area: Area<B>) -> Result<(), TooManyAreas> {
        debug_assert!(area.start < area.end && self.is_free(area.range()));
        let at = self.position(area.start);
        if at > 0 && self.list[at - 1].is_continued_by(&area) {
            self.list[at - 1].end = area.end;
            self.merge(at - 1);
            return Ok(());
        }
        if self.list.len() >= MAX_AREAS {
            return Err(TooManyAreas);
        }
        self.list.insert(at, area);
        self.merge(at);
        Ok(())
    }

    /// Enters an area behind all others, as it is.
    pub fn push(&mut self, area: Area<B>) {
        debug_assert!(self.list.last().is_none_or(|last| last.end <= area.start));
        self.list.push(area);
    }

    /// Makes one of the area at `at` and the next, if they can be.
    fn merge(&mut self, at: usize) {
        if let [area, next, ..] = &self.list[at..]
            && area.is_continued_by(next)
        {
            self.list[at].end = self.list.remove(at + 1).end;
        }
    }

    /// Makes `at` a boundary between areas if it lies inside one; the position of the first area at or behind it.
    fn split(&mut self, at: usize) -> Result<usize, TooManyAreas> {
        let position = self.position(at);
        match self.list.get_mut(position) {
            Some(area) if area.start < at => {
                let rest = area.split_off(at);
                if self.list.len() >= MAX_AREAS {
                    self.list[position].end = rest.end;
                    return Err(TooManyAreas);
                }
                self.list.insert(position + 1, rest);
                Ok(position + 1)
            }
            _ => Ok(position),
        }
    }

    /// The positions of the areas in `range`, after splitting those at its ends.
    fn isolate(&mut self, range: &Range<usize>) -> Result<Range<usize>, TooManyAreas> {
        let first = self.split(range.start)?;
        Ok(first..self.split(range.end)?)
    }

    /// Takes out what is mapped in `range`.
    ///
    /// # Errors
    /// A split would make too many; nothing is taken out.
    pub fn remove(&mut self, range: Range<usize>) -> Result<Vec<Area<B>>, TooManyAreas> {
        let first = self.position(range.start);
        match self.list.get(first) {
            // The usual case: exactly one area.
            Some(area) if area.range() == range => Ok(vec![self.list.remove(first)]),
            Some(area) if area.start < range.end => {
                let positions = self.isolate(&range)?;
                Ok(self.list.drain(positions).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Changes what is mapped in `range`.
    ///
    /// # Errors
    /// A split would make too many; nothing is changed.
    pub fn change(&mut self, range: Range<usize>, mut change: impl FnMut(&mut Area<B>)) -> Result<(), TooManyAreas> {
        let positions = self.isolate(&range)?;
        self.list[positions.clone()].iter_mut().for_each(&mut change);
        // From behind, so that positions stay true.
        for at in (positions.start.saturating_sub(1)..positions.end).rev() {
            self.merge(at);
        }
        Ok(())
    }

    /// Moves the start of the area that begins at `start` down to `new_start`; nothing is mapped between.
    pub fn grow_down(&mut self, start: usize, new_start: usize) {
        let at = self.position(start);
        if let Some(area) = self.list.get_mut(at)
            && area.start == start
        {
            area.start = new_start;
        }
    }

    /// The highest free range of `len` bytes in `within`, away from stacks that grow; its start.
    pub fn find_gap(&self, len: usize, within: Range<usize>) -> Option<usize> {
        let mut top = within.end;
        let behind = self.list.partition_point(|area| area.start < within.end);
        if let Some(next) = self.list.get(behind)
            && next.flags.contains(AreaFlags::GROWS_DOWN)
        {
            top = top.min(next.start.saturating_sub(STACK_GUARD));
        }
        for area in self.list[..behind].iter().rev() {
            if top.saturating_sub(area.end.max(within.start)) >= len {
                break;
            }
            let guard = if area.flags.contains(AreaFlags::GROWS_DOWN) { STACK_GUARD } else { 0 };
            top = top.min(area.start.saturating_sub(guard));
        }
        top.checked_sub(len).filter(|&start| start >= within.start)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// An object by number, from an index on; object 0 is anonymous memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Shows(u32, u64);

    impl Backing for Shows {
        fn advanced(&self, pages: u64) -> Self {
            if self.0 == 0 { *self } else { Shows(self.0, self.1 + pages) }
        }
        fn is_continued_by(&self, pages: u64, next: &Self) -> bool {
            self.advanced(pages) == *next
        }
    }

    const ANONYMOUS: Shows = Shows(0, 0);

    fn area(pages: Range<usize>, backing: Shows) -> Area<Shows> {
        let flags = AreaFlags::empty();
        let limit = Prot::all();
        Area { start: pages.start << 12, end: pages.end << 12, prot: Prot::READ, limit, flags, backing }
    }

    fn areas(list: &[(Range<usize>, Shows)]) -> Areas<Shows> {
        let mut areas = Areas::default();
        for (pages, backing) in list {
            areas.insert(area(pages.clone(), *backing)).unwrap();
        }
        areas
    }

    fn pages(range: Range<usize>) -> Range<usize> {
        range.start << 12..range.end << 12
    }

    fn shown(areas: &Areas<Shows>) -> Vec<(Range<usize>, Shows)> {
        areas.iter().map(|area| (area.start >> 12..area.end >> 12, area.backing)).collect()
    }

    #[test]
    fn neighbours_that_continue_each_other_become_one() {
        let merged = areas(&[(10..12, ANONYMOUS), (14..16, ANONYMOUS), (12..14, ANONYMOUS)]);
        assert_eq!(shown(&merged), [(10..16, ANONYMOUS)]);
        let file = areas(&[(10..12, Shows(1, 5)), (12..14, Shows(1, 7)), (14..15, Shows(1, 8))]);
        assert_eq!(shown(&file), [(10..14, Shows(1, 5)), (14..15, Shows(1, 8))]);
    }

    #[test]
    fn removing_the_middle_leaves_both_ends_with_their_offsets() {
        let mut areas = areas(&[(10..20, Shows(1, 100))]);
        let removed = areas.remove(pages(13..15)).unwrap();
        assert_eq!(removed[0].backing, Shows(1, 103));
        assert_eq!(shown(&areas), [(10..13, Shows(1, 100)), (15..20, Shows(1, 105))]);
        assert!(areas.find(13 << 12).is_none());
        assert!(areas.find((15 << 12) - 1).is_none());
        assert_eq!(areas.find(15 << 12).map(|area| area.backing), Some(Shows(1, 105)));
    }

    #[test]
    fn removing_spans_areas_and_holes() {
        let mut areas = areas(&[(1..3, Shows(1, 0)), (5..7, Shows(2, 0)), (9..12, Shows(3, 0))]);
        assert_eq!(areas.remove(pages(2..10)).unwrap().len(), 3);
        assert_eq!(shown(&areas), [(1..2, Shows(1, 0)), (10..12, Shows(3, 1))]);
        assert!(areas.remove(pages(3..9)).unwrap().is_empty());
    }

    #[test]
    fn a_change_splits_and_undoing_it_merges() {
        let mut areas = areas(&[(10..20, ANONYMOUS)]);
        areas.change(pages(12..14), |area| area.prot = Prot::empty()).unwrap();
        assert_eq!(areas.len(), 3);
        areas.change(pages(11..15), |area| area.prot = Prot::READ).unwrap();
        assert_eq!(shown(&areas), [(10..20, ANONYMOUS)]);
    }

    #[test]
    fn coverage_ends_at_the_first_hole() {
        let areas = areas(&[(10..12, Shows(1, 0)), (12..14, Shows(2, 0)), (15..16, Shows(3, 0))]);
        assert_eq!(areas.covered_until(pages(10..16)), 14 << 12);
        assert_eq!(areas.covered_until(pages(9..16)), 9 << 12);
        assert_eq!(areas.covered_until(pages(11..13)), 13 << 12);
    }

    #[test]
    fn the_highest_gap_that_fits_is_found() {
        let areas = areas(&[(10..12, Shows(1, 0)), (14..16, Shows(2, 0)), (17..20, Shows(3, 0))]);
        let gap = |len: usize, within: Range<usize>| areas.find_gap(len << 12, pages(within)).map(|at| at >> 12);
        assert_eq!(gap(1, 1..20), Some(16));
        assert_eq!(gap(2, 1..20), Some(12));
        assert_eq!(gap(3, 1..20), Some(7));
        assert_eq!(gap(3, 1..30), Some(27));
        assert_eq!(gap(9, 1..20), Some(1));
        assert_eq!(gap(10, 1..20), None);
        assert_eq!(gap(2, 11..13), None);
    }

    #[test]
    fn a_growing_stack_keeps_its_distance() {
        let mut areas = Areas::default();
        let flags = AreaFlags::GROWS_DOWN;
        areas.insert(Area { flags, ..area(1000..1010, ANONYMOUS) }).unwrap();
        assert_eq!(areas.find_gap(1 << 12, pages(1..1000)), Some(743 << 12));
        assert_eq!(areas.find_gap(1 << 12, pages(1..1005)), Some(743 << 12));
        areas.grow_down(1000 << 12, 990 << 12);
        assert_eq!(shown(&areas), [(990..1010, ANONYMOUS)]);
    }

    /// Random operations against an array of pages.
    #[test]
    fn random_changes_agree_with_a_page_by_page_model() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        let mut areas: Areas<Shows> = Areas::default();
        let mut model = [None::<(Shows, Prot)>; 64];
        for _ in 0..20_000 {
            let start = next(63);
            let end = start + 1 + next(64 - start);
            let prot = if next(2) == 0 { Prot::READ } else { Prot::READ | Prot::WRITE };
            match next(3) {
                0 => {
                    areas.remove(pages(start..end)).unwrap();
                    model[start..end].fill(None);
                }
                1 => {
                    areas.change(pages(start..end), |area| area.prot = prot).unwrap();
                    model[start..end].iter_mut().flatten().for_each(|page| page.1 = prot);
                }
                _ => {
                    let backing = if next(2) == 0 { ANONYMOUS } else { Shows(next(2) as u32 + 1, start as u64) };
                    areas.remove(pages(start..end)).unwrap();
                    areas.insert(Area { prot, ..area(start..end, backing) }).unwrap();
                    for (page, entry) in model.iter_mut().enumerate().take(end).skip(start) {
                        *entry = Some((backing.advanced((page - start) as u64), prot));
                    }
                }
            }
            for (page, expected) in model.iter().enumerate() {
                let found = areas
                    .find(page << 12)
                    .map(|area| (area.backing.advanced((page - (area.start >> 12)) as u64), area.prot));
                assert_eq!(found, *expected, "page {page}");
            }
            for pair in areas.list.windows(2) {
                assert!(pair[0].end <= pair[1].start && !pair[0].is_continued_by(&pair[1]));
            }
        }
    }
}

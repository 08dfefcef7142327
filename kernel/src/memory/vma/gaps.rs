//! Where in an address space there is room.
//!
//! Each chunk of VMAs remembers the longest gap between two of its own, so a search looks into no chunk whose gaps are all too short; the gaps between
//! chunks it looks at. Every change of what is mapped keeps that right, in time that depends on one chunk alone. A map of a single chunk, which
//! nearly every program has, remembers nothing, and a search looks at each VMA.

use alloc::vec::Vec;
use core::ops::{Deref, Range};

use super::{Mergeable, Position, STACK_GUARD, Vma, VmaFlags, VmaMap};

/// VMAs that stand together, and the longest gap between two of them.
pub(super) struct Chunk<B> {
    /// By address. Who changes where one begins or ends says so: see [`VmaMap::entered`], [`leaves`](VmaMap::leaves),
    /// [`opened`](VmaMap::opened), [`shrunk`](VmaMap::shrunk).
    pub(super) vmas: Vec<Vma<B>>,
    /// In bytes. It means something only where there are several chunks.
    longest_gap: usize,
    /// None of the other gaps is longer than this. So where the longest is filled in part, which is where most mappings go, it is known
    /// whether another one is the longest now.
    others: usize,
}

impl<B> Chunk<B> {
    pub(super) fn new(vmas: Vec<Vma<B>>) -> Self {
        Chunk { vmas, longest_gap: 0, others: 0 }
    }
}

impl<B> Deref for Chunk<B> {
    type Target = [Vma<B>];

    #[inline(always)]
    fn deref(&self) -> &[Vma<B>] {
        &self.vmas
    }
}

impl<B: Mergeable> Chunk<B> {
    /// How much can be placed between the VMA number `index` and the one before it in the chunk; nothing at either end of the chunk.
    fn gap(&self, index: usize) -> usize {
        match (index.checked_sub(1).and_then(|before| self.get(before)), self.get(index)) {
            (Some(before), Some(vma)) => vma.lowest().saturating_sub(before.end),
            _ => 0,
        }
    }

    /// The longest gap, and the longest of the others.
    fn find_gaps(&self) -> (usize, usize) {
        self.windows(2).map(|pair| pair[1].lowest().saturating_sub(pair[0].end)).fold(
            (0, 0),
            |(longest, others), gap| {
                if gap > longest { (gap, longest) } else { (longest, others.max(gap)) }
            },
        )
    }

    /// There is one gap more.
    fn add(&mut self, gap: usize) {
        if gap > self.longest_gap {
            (self.longest_gap, self.others) = (gap, self.longest_gap);
        } else {
            self.others = self.others.max(gap);
        }
    }

    /// In the place of a gap there are two shorter ones. False if it is not known any more which is the longest.
    fn divide(&mut self, gap: usize, into: [usize; 2]) -> bool {
        let (longer, shorter) = (into[0].max(into[1]), into[0].min(into[1]));
        if gap < self.longest_gap {
            return true;
        }
        if longer < self.others {
            return false;
        }
        (self.longest_gap, self.others) = (longer, self.others.max(shorter));
        true
    }
}

impl<B> Vma<B> {
    /// Where what is placed below it ends at most.
    fn lowest(&self) -> usize {
        if self.flags.contains(VmaFlags::GROWS_DOWN) { self.start.saturating_sub(STACK_GUARD) } else { self.start }
    }
}

/// What the last search for a gap has learned, so that the next one need not begin at the top again.
pub(super) struct LastSearch {
    /// Where it was made.
    within: Range<usize>,
    /// Everything at and above this was looked at,
    below: usize,
    /// and has no gap longer than this.
    longest: usize,
}

impl LastSearch {
    pub(super) const NONE: LastSearch = LastSearch { within: 0..0, below: usize::MAX, longest: 0 };

    /// Something goes that ends at `end`: if that was looked at, the search is worth nothing any more.
    #[inline(always)]
    pub(super) fn forget_below(&mut self, end: usize) {
        if end > self.below {
            *self = LastSearch::NONE;
        }
    }
}

impl<B: Mergeable> VmaMap<B> {
    /// Looks for the longest gap of a chunk again; nothing if there is no such chunk, or no other one.
    #[inline(always)]
    pub(super) fn look_again(&mut self, chunk: usize) {
        if self.chunks.len() > 1
            && let Some(chunk) = self.chunks.get_mut(chunk)
        {
            (chunk.longest_gap, chunk.others) = chunk.find_gaps();
        }
    }

    /// A VMA stands at `at` since just now.
    #[inline(always)]
    pub(super) fn entered(&mut self, at: Position) {
        if self.chunks.len() > 1 {
            self.entered_among_many(at);
        }
    }

    #[inline(never)]
    fn entered_among_many(&mut self, at: Position) {
        let chunk = &mut self.chunks[at.chunk];
        let beside = [chunk.gap(at.index), chunk.gap(at.index + 1)];
        match at.index.checked_sub(1).and_then(|before| chunk.get(before)).zip(chunk.get(at.index + 1)) {
            None => beside.into_iter().for_each(|gap| chunk.add(gap)),
            Some((before, behind)) => {
                let gap = behind.lowest().saturating_sub(before.end);
                if !chunk.divide(gap, beside) {
                    self.look_again(at.chunk);
                }
            }
        }
    }

    /// The VMA at `at`, one of several chunks, is about to leave. Whether its chunk must be looked at again then.
    #[inline(never)]
    pub(super) fn leaves(&mut self, at: Position) -> bool {
        let chunk = &mut self.chunks[at.chunk];
        let beside = [chunk.gap(at.index), chunk.gap(at.index + 1)];
        match at.index.checked_sub(1).and_then(|before| chunk.get(before)).zip(chunk.get(at.index + 1)) {
            // At an end of the chunk a gap goes with it.
            None => beside.into_iter().any(|gap| gap > 0 && gap >= chunk.longest_gap),
            // Elsewhere two become one.
            Some((before, behind)) => {
                let gap = behind.lowest().saturating_sub(before.end);
                match gap >= chunk.longest_gap && beside.contains(&chunk.longest_gap) {
                    true => chunk.longest_gap = gap,
                    false => chunk.add(gap),
                }
                false
            }
        }
    }

    /// There is more room below the VMA at `at`, because something went, than there was.
    #[inline(always)]
    pub(super) fn opened(&mut self, at: Position) {
        if self.chunks.len() > 1 {
            self.opened_among_many(at);
        }
    }

    #[inline(never)]
    fn opened_among_many(&mut self, at: Position) {
        if let Some(chunk) = self.chunks.get_mut(at.chunk) {
            chunk.add(chunk.gap(at.index));
        }
    }

    /// There is less room below the VMA at `at`, by so many bytes, because a neighbour grew.
    #[inline(always)]
    pub(super) fn shrunk(&mut self, at: Position, by: usize) {
        if self.chunks.len() > 1 {
            self.shrunk_among_many(at, by);
        }
    }

    #[inline(never)]
    fn shrunk_among_many(&mut self, at: Position, by: usize) {
        let Some(chunk) = self.chunks.get_mut(at.chunk) else { return };
        // At an end of the chunk there is no gap.
        if at.index == 0 || at.index >= chunk.len() {
            return;
        }
        let gap = chunk.gap(at.index);
        if !chunk.divide(gap + by, [gap, 0]) {
            self.look_again(at.chunk);
        }
    }

    /// Moves the start of the VMA that begins at `start` down to `new_start`; nothing is mapped between.
    pub fn grow_down(&mut self, start: usize, new_start: usize) {
        let at = self.position(start);
        if let Some(vma) = self.at_mut(at)
            && vma.start == start
        {
            vma.start = new_start;
            self.shrunk(at, start - new_start);
        }
    }

    /// The highest free range of `len` bytes in `within`, away from stacks that grow; its start. As [`find_gap`](Self::find_gap), but
    /// remembers what it has seen, for the next search in the same range.
    pub fn find_gap_again(&mut self, len: usize, within: Range<usize>) -> Option<usize> {
        if self.last_search.within != within || len <= self.last_search.longest {
            self.last_search = LastSearch { within: within.clone(), below: within.end, longest: 0 };
        }
        let (found, longest) = self.search(len, within.start..self.last_search.below.min(within.end));
        self.last_search.longest = self.last_search.longest.max(longest);
        if let Some(start) = found {
            self.last_search.below = start + len;
        }
        found
    }

    /// The highest free range of `len` bytes in `within`, away from stacks that grow; its start.
    pub fn find_gap(&self, len: usize, within: Range<usize>) -> Option<usize> {
        self.search(len, within).0
    }

    /// The highest gap that is long enough, and a length that no gap above it has more than.
    fn search(&self, len: usize, within: Range<usize>) -> (Option<usize>, usize) {
        let mut longest = 0;
        let behind = self.position_by(|vma| vma.start < within.end);
        let mut top = self.at(behind).map_or(within.end, |next| next.lowest().min(within.end));
        let mut chunks = self.chunks.get(..=behind.chunk).unwrap_or(&self.chunks);
        'search: while let Some((chunk, before)) = chunks.split_last() {
            let is_whole = chunks.len() <= behind.chunk;
            let vmas: &[Vma<B>] = if is_whole { chunk } else { &chunk[..behind.index] };
            chunks = before;
            if is_whole
                && self.chunks.len() > 1
                && chunk.longest_gap < len
                && let (Some(first), Some(last)) = (vmas.first(), vmas.last())
            {
                let gap = top.saturating_sub(last.end.max(within.start));
                if gap >= len || last.end <= within.start {
                    break;
                }
                longest = longest.max(gap).max(chunk.longest_gap);
                top = first.lowest();
                continue;
            }
            for vma in vmas.iter().rev() {
                let gap = top.saturating_sub(vma.end.max(within.start));
                if gap >= len || vma.end <= within.start {
                    break 'search;
                }
                longest = longest.max(gap);
                top = vma.lowest();
            }
        }
        (top.checked_sub(len).filter(|&start| start >= within.start), longest)
    }

    /// Whether what each chunk remembers is so.
    #[cfg(test)]
    pub(super) fn remembers_rightly(&self) -> bool {
        let is_right = |chunk: &Chunk<B>| {
            let (longest, others) = chunk.find_gaps();
            chunk.longest_gap == longest && chunk.others >= others
        };
        self.chunks.len() < 2 || self.chunks.iter().all(is_right)
    }
}

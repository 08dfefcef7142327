//! Where in an address space there is room.
//!
//! Of each chunk of VMAs the longest gap between two of its own is known, so a search looks into no chunk whose gaps are all too short; the
//! gaps between chunks it looks at. A change of a chunk's gaps only says that this is not known any more, which is one store; a search that
//! comes by finds it out again. Before more than [`MOST_UNKNOWN`] chunks are unknown, all are found out. So neither a change nor a search looks
//! into more chunks than that, whatever has changed since the last search.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Mergeable, STACK_GUARD, Vma, VmaFlags, VmaMap};

/// Of so many chunks at most it is not known how long their gaps are.
pub(super) const MOST_UNKNOWN: usize = 32;

/// Longer than any gap, so that nothing skips a chunk of which no more is known.
const UNKNOWN: usize = usize::MAX;

/// The longest gap between two VMAs of each chunk. It stands beside the chunks, so that a look-up of an address walks over VMAs only.
pub(super) struct Gaps {
    /// In bytes, by the number of the chunk. Empty as long as there was never more than one chunk, as in nearly every program.
    longest: Vec<usize>,
    /// So many of them are not known.
    unknown: usize,
}

impl Gaps {
    pub(super) const NONE: Gaps = Gaps { longest: Vec::new(), unknown: 0 };

    /// Makes room for so many chunks; whether there is memory for it.
    pub(super) fn reserve(&mut self, chunks: usize) -> bool {
        self.longest.try_reserve(chunks.saturating_sub(self.longest.len())).is_ok()
    }

    fn remove(&mut self, chunks: Range<usize>) {
        if !self.longest.is_empty() {
            self.unknown -= self.longest.drain(chunks).filter(|&gap| gap == UNKNOWN).count();
        }
    }

    #[cfg(test)]
    pub(super) fn unknown(&self) -> usize {
        self.unknown
    }
}

/// The longest gap between two of these.
fn longest_gap<B>(vmas: &[Vma<B>]) -> usize {
    vmas.windows(2).fold(0, |longest, pair| match pair[1].start == pair[0].end {
        true => longest,
        false => longest.max(pair[1].lowest().saturating_sub(pair[0].end)),
    })
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
    /// A gap between two VMAs of a chunk has come, has gone or has another length; there need not be such a chunk.
    #[inline(always)]
    pub(super) fn gaps_changed(&mut self, chunk: usize) {
        if self.gaps.longest.get(chunk).is_some_and(|&gap| gap != UNKNOWN) {
            self.forget_gap(chunk);
        }
    }

    #[inline(never)]
    fn forget_gap(&mut self, chunk: usize) {
        let Gaps { longest, unknown } = &mut self.gaps;
        if *unknown >= MOST_UNKNOWN {
            for (gap, vmas) in longest.iter_mut().zip(&self.chunks).filter(|(gap, _)| **gap == UNKNOWN) {
                *gap = longest_gap(vmas);
            }
            *unknown = 0;
        }
        *unknown += 1;
        longest[chunk] = UNKNOWN;
    }

    /// Takes chunks out, and adds them to `out`.
    pub(super) fn take_chunks(&mut self, chunks: Range<usize>, out: &mut Vec<Vec<Vma<B>>>) {
        self.gaps.remove(chunks.clone());
        out.extend(self.chunks.drain(chunks));
    }

    /// Drops a chunk that has no VMAs any more.
    pub(super) fn remove_chunk(&mut self, chunk: usize) {
        self.gaps.remove(chunk..chunk + 1);
        self.chunks.remove(chunk);
    }

    /// Takes the last chunk out.
    pub(super) fn pop_last(&mut self) -> Option<Vec<Vma<B>>> {
        let vmas = self.chunks.pop()?;
        self.gaps.unknown -= usize::from(self.gaps.longest.pop() == Some(UNKNOWN));
        Some(vmas)
    }

    /// Puts the VMAs of a chunk from `index` on into a new one behind it.
    pub(super) fn split_chunk(&mut self, chunk: usize, index: usize) {
        if self.gaps.longest.is_empty() {
            self.gaps.longest.extend(self.chunks.iter().map(|vmas| longest_gap(vmas)));
        }
        let rest = self.chunks[chunk].split_off(index);
        let has_gaps = !rest.is_empty() && self.gaps.longest[chunk] > 0;
        self.chunks.insert(chunk + 1, rest);
        self.gaps.longest.insert(chunk + 1, 0);
        if has_gaps {
            self.gaps_changed(chunk);
            self.gaps_changed(chunk + 1);
        }
    }

    /// Moves the start of the VMA that begins at `start` down to `new_start`; nothing is mapped between.
    pub fn grow_down(&mut self, start: usize, new_start: usize) {
        let at = self.position(start);
        if let Some(vma) = self.at_mut(at)
            && vma.start == start
        {
            vma.start = new_start;
            self.gaps_changed(at.chunk);
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
    pub fn find_gap(&mut self, len: usize, within: Range<usize>) -> Option<usize> {
        self.search(len, within).0
    }

    /// The highest gap that is long enough, and a length that no gap above it has more than.
    fn search(&mut self, len: usize, within: Range<usize>) -> (Option<usize>, usize) {
        let behind = self.position_by(|vma| vma.start < within.end);
        self.last_index = behind.index;
        let top = self.at(behind).map_or(within.end, |next| next.lowest().min(within.end));
        let mut search = Search { len, start: within.start, top, longest: 0 };
        let vmas = self.chunks.get(behind.chunk).map_or(&[][..], |chunk| &chunk[..behind.index]);
        if !search.ends_among(vmas) && behind.chunk > 0 {
            self.search_chunks(&mut search, behind.chunk);
        }
        (search.top.checked_sub(len).filter(|&start| start >= within.start), search.longest)
    }

    /// Goes on with the chunks below one.
    #[inline(never)]
    fn search_chunks(&mut self, search: &mut Search, below: usize) {
        let Gaps { longest, unknown } = &mut self.gaps;
        for (vmas, gap) in self.chunks.iter().zip(longest).take(below).rev() {
            if *gap == UNKNOWN {
                *gap = longest_gap(vmas);
                *unknown -= 1;
            }
            let (Some(first), Some(last)) = (vmas.first(), vmas.last()) else { continue };
            if *gap >= search.len && search.ends_among(vmas) {
                return;
            }
            if search.ends_above(last) {
                return;
            }
            search.longest = search.longest.max(*gap);
            search.top = first.lowest();
        }
    }

    /// Whether what each chunk knows is so, and few know nothing.
    #[cfg(test)]
    pub(super) fn knows_its_gaps(&self) -> bool {
        let Gaps { longest, unknown } = &self.gaps;
        let is_right = |(gap, vmas): (&usize, &Vec<Vma<B>>)| *gap == UNKNOWN || *gap == longest_gap(vmas);
        (longest.len() == self.chunks.len() || (longest.is_empty() && self.chunks.len() == 1))
            && *unknown == longest.iter().filter(|&&gap| gap == UNKNOWN).count()
            && *unknown <= MOST_UNKNOWN
            && longest.iter().zip(&self.chunks).all(is_right)
    }
}

/// A search for a gap, on its way down.
struct Search {
    len: usize,
    /// It ends at this address.
    start: usize,
    /// What is found ends here.
    top: usize,
    /// None of the gaps it has passed is longer.
    longest: usize,
}

impl Search {
    /// Whether it is over above a VMA: there is room, or nothing further down counts. Else it goes on below the VMA once
    /// [`top`](Self::top) is set.
    #[inline(always)]
    fn ends_above<B>(&mut self, vma: &Vma<B>) -> bool {
        let gap = self.top.saturating_sub(vma.end.max(self.start));
        if gap >= self.len || vma.end <= self.start {
            return true;
        }
        self.longest = self.longest.max(gap);
        false
    }

    /// Whether it is over among VMAs.
    #[inline(always)]
    fn ends_among<B>(&mut self, vmas: &[Vma<B>]) -> bool {
        for vma in vmas.iter().rev() {
            if self.ends_above(vma) {
                return true;
            }
            self.top = vma.lowest();
        }
        false
    }
}

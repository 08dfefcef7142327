//! Changes of a [`VmaMap`]: entering VMAs, taking them out, changing what a range of them is. Each leaves neighbours that can be one as one.

use alloc::vec::Vec;
use core::ops::Range;

use super::{CHUNK, FIRST, MOST_NEW_CHUNKS, Mergeable, Position, TooManyVmas, Vma, VmaMap};

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

impl<B: Mergeable> VmaMap<B> {
    /// Enters a VMA where nothing is mapped.
    ///
    /// # Errors
    /// There are too many, or there is no memory for one more.
    pub fn insert(&mut self, vma: Vma<B>) -> Result<(), TooManyVmas> {
        debug_assert!(vma.start < vma.end && self.is_free(vma.range()));
        let at = self.position_again(vma.start);
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
        if self.is_full_for(&vma.backing) || !self.make_room_for_splits() {
            return Err(TooManyVmas);
        }
        let at = self.insert_at(at, vma);
        self.last_index = at.index;
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
                self.objects += usize::from(vma.backing.is_object());
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
        self.objects += usize::from(vma.backing.is_object());
        if at.chunk == self.chunks.len() {
            match self.chunks.last() {
                Some(last) => at = Position { chunk: at.chunk - 1, index: last.len() },
                None => self.chunks.push(Vec::with_capacity(FIRST)),
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
        self.objects -= usize::from(vma.backing.is_object());
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
        let cannot = |vma: &Vma<B>| vma.start < at && self.is_full_for(&vma.backing);
        if self.has_no_room() && self.at(self.position(at)).is_some_and(cannot) {
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
        if !self.make_room_for_splits() {
            return Err(TooManyVmas);
        }
        self.split(range.start)?;
        self.split(range.end)
    }

    /// As [`remove`](Self::remove), where that is nothing, or no more than one VMA or a part of one: nearly always. `take_away` is told of
    /// it before. Whether it is so; nothing is taken out if not, nor if there would be too many VMAs.
    #[inline(always)]
    pub fn remove_one(&mut self, range: &Range<usize>, take_away: impl FnOnce(&Vma<B>)) -> bool {
        let at = self.position_again(range.start);
        let Some(vma) = self.at(at).filter(|vma| vma.start < range.end) else { return true };
        let (is_start, is_end) = (vma.start == range.start, vma.end == range.end);
        if !(is_start && is_end)
            && (vma.start > range.start
                || vma.end < range.end
                || (!is_start && !is_end && (self.is_full_for(&vma.backing) || !self.has_room_for_splits())))
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
    /// A split would make too many, or there is no memory for it; nothing is taken out.
    pub fn remove(&mut self, range: Range<usize>) -> Result<Option<Removed<B>>, TooManyVmas> {
        let first = self.position(range.start);
        let Some(vma) = self.at(first).filter(|vma| vma.start < range.end) else { return Ok(None) };
        if vma.start < range.start && vma.end > range.end && self.is_full_for(&vma.backing) {
            return Err(TooManyVmas);
        }
        let mut chunks = Vec::new();
        let most = self.position_by(|vma| vma.start < range.end).chunk - first.chunk + 2 * MOST_NEW_CHUNKS;
        if !self.make_room_for_splits() || chunks.try_reserve_exact(most).is_err() {
            return Err(TooManyVmas);
        }
        // There may be one too many until the removed ones are out.
        self.split_always(range.start);
        self.split_always(range.end);
        self.last_search.forget_below(range.end);
        let first = self.position(range.start);
        let behind = self.position_by(|vma| vma.start < range.end);
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

    /// Changes what is mapped in `range`.
    ///
    /// # Errors
    /// A split would make too many, or there is no memory for it; nothing is changed.
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

    /// Some of the VMAs, from both ends inwards: the first, then the last, then those behind the first and so on. `None` if that was all. (What a program is
    /// loaded with lies at the ends.) The caller leaves their addresses as they are.
    pub fn nth_from_ends(&mut self, nth: usize) -> Option<&mut [Vma<B>]> {
        let last = self.chunks.len().checked_sub(nth + 1)? + nth;
        let index = if nth.is_multiple_of(2) { nth / 2 } else { last - nth / 2 };
        self.chunks.get_mut(index).map(Vec::as_mut_slice)
    }

    /// Takes the last VMAs out, some at a time; `None` once there are none.
    pub fn pop_chunk(&mut self) -> Option<Vec<Vma<B>>> {
        let chunk = self.pop_last()?;
        self.count -= chunk.len();
        Some(chunk)
    }
}

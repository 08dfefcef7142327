//! What a cache has: its pages, and how their states change. All of it is under one lock, and nothing of it waits.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::mm::UFrame;

use super::memory::{CLEAN, DIRTY};
use crate::error::Errno;
use crate::radix::RadixTree;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Reading,
    Clean,
    Dirty,
    Writing,
    /// Written to while it is being written.
    Redirtied,
    Failed(Errno),
}

pub(super) struct Page {
    /// `None`: it was taken away. The entry is used again or goes when somebody comes by.
    pub frame: Option<UFrame>,
    pub state: State,
    /// Somebody has looked at it since the last round of those that are taken away.
    pub was_used: bool,
    /// It was read for a read that keeps nothing (O_DIRECT).
    pub is_once: bool,
    /// Since when programs may write it without a word, through mappings; 0: they may not. See [`Cache::map_to_write`].
    pub mapped_since: u32,
    /// Those parts of it, a bit each, that were found sound since they came from the device: see [`Cache::note_sound`].
    pub sound: u8,
}

impl Page {
    /// Whether somebody has it besides the cache, such as a mapping.
    fn is_shared(&self) -> bool {
        self.frame.as_ref().is_some_and(|frame| frame.references() > 1)
    }

    /// Whether the device has it.
    pub fn is_under_way(&self) -> bool {
        self.frame.is_some() && matches!(self.state, State::Reading | State::Writing | State::Redirtied)
    }
}

#[derive(Default)]
pub(super) struct Content {
    pub pages: RadixTree<Page>,
    /// Those that are dirty, whether they are being written just now or not.
    pub to_write: RadixTree<()>,
    pub clean: usize,
    pub dirty: usize,
    /// Where the next round of those that are taken away goes on.
    pub hand: u32,
    /// The number of the next write, and the numbers of those that are under way, the oldest first. What [passes](Cache::pass) has one, too.
    pub next_write: u64,
    pub writes: Vec<u64>,
    /// Pages that pass, with their numbers: they are not here meanwhile.
    pub passing: Vec<(u64, Range<u32>)>,
    /// Those that programs may write through mappings.
    pub mapped: RadixTree<()>,
    pub keeps_mapped: bool,
}

impl Content {
    /// Takes up to `count` clean pages away; how many. Their entries stay.
    pub fn take_away(&mut self, count: usize) -> usize {
        let mut taken = 0;
        // Twice around: in the first round those that were used lose their mark.
        let mut rounds = 0;
        // A bound for one call, however few of many are clean.
        let mut looked = 0;
        while taken < count && self.clean > 0 && rounds < 3 && looked < 64 * count {
            looked += 1;
            let Some((index, _)) = self.pages.next(self.hand) else {
                self.hand = 0;
                rounds += 1;
                continue;
            };
            self.hand = index.wrapping_add(1);
            if let Some(page) = self.pages.get_mut(index)
                && page.state == State::Clean
                && page.frame.is_some()
                && !(self.keeps_mapped && page.is_shared())
                && !core::mem::replace(&mut page.was_used, false)
            {
                page.frame = None;
                self.clean -= 1;
                CLEAN.fetch_sub(1, Ordering::Relaxed);
                taken += 1;
            }
        }
        taken
    }

    /// Changes the state of a page, and what is counted of it.
    pub fn set(&mut self, index: u32, state: State) {
        let Some(page) = self.pages.get_mut(index) else { return };
        let before = core::mem::replace(&mut page.state, state);
        let count = |state| match state {
            State::Clean => (1, 0),
            State::Dirty | State::Writing | State::Redirtied => (0, 1),
            State::Reading | State::Failed(_) => (0, 0),
        };
        let ((clean_before, dirty_before), (clean, dirty)) = (count(before), count(state));
        self.clean = self.clean + clean - clean_before;
        self.dirty = self.dirty + dirty - dirty_before;
        match (is_to_write(before), is_to_write(state)) {
            (false, true) => _ = self.to_write.insert(index, ()),
            (true, false) => _ = self.to_write.remove(index),
            _ => {}
        }
        move_count(&CLEAN, clean_before, clean);
        move_count(&DIRTY, dirty_before, dirty);
    }

    /// A page whose entry is new, or was used for one that was taken away.
    pub fn enter(&mut self, index: u32, frame: UFrame, state: State, is_once: bool) {
        self.forget(index);
        // As one that counts nowhere, until its state is set.
        self.pages.insert(
            index,
            Page { frame: Some(frame), state: State::Reading, was_used: true, is_once, mapped_since: 0, sound: 0 },
        );
        self.set(index, state);
    }

    /// The number of a write that begins.
    pub fn begin_write(&mut self) -> u64 {
        let number = self.next_write;
        self.next_write += 1;
        self.writes.push(number);
        number
    }

    /// What has this number is not under way any more; whether it was what [passes](Cache::pass).
    pub fn is_over(&mut self, number: u64) -> bool {
        self.writes.retain(|other| *other != number);
        let before = self.passing.len();
        self.passing.retain(|(other, _)| *other != number);
        self.passing.len() < before
    }

    /// A page was written that was not written to meanwhile, as far as anybody knows.
    pub fn written(&mut self, index: u32) {
        let is_mapped = self.pages.get(index).is_some_and(|page| page.mapped_since != 0);
        self.set(index, if is_mapped { State::Dirty } else { State::Clean });
    }

    /// Forgets a page that nobody works on.
    pub fn forget(&mut self, index: u32) {
        match self.pages.get(index) {
            None => return,
            // It counts no more.
            Some(page) if page.frame.is_none() => {}
            Some(_) => self.set(index, State::Reading),
        }
        self.mapped.remove(index);
        self.pages.remove(index);
    }

    /// The page, if its entry is one.
    pub fn page(&self, index: u32) -> Option<&Page> {
        self.pages.get(index).filter(|page| page.frame.is_some())
    }

    /// Whether a page passes.
    pub fn passes(&self, index: u32) -> bool {
        self.passing.iter().any(|(_, pages)| pages.contains(&index))
    }

    /// Checks that no page of a range passes.
    ///
    /// # Errors
    /// The first of what passes.
    pub fn check_passing(&self, pages: &Range<u32>) -> Result<(), u32> {
        let passes = |(_, passing): &&(u64, Range<u32>)| passing.start < pages.end && pages.start < passing.end;
        self.passing.iter().find(passes).map_or(Ok(()), |(_, passing)| Err(passing.start))
    }

    /// Whether a page can come here: it is not here, and does not pass.
    pub fn is_free(&self, index: u32) -> bool {
        self.page(index).is_none() && !self.passes(index)
    }

    /// Up to which page those of a range can pass: they are not here, or are as on the device, and others do not pass.
    pub fn passable(&self, pages: Range<u32>) -> u32 {
        let under_way = self.passing.iter().filter(|(_, other)| other.start < pages.end && pages.start < other.end);
        let mut end = under_way.map(|(_, other)| other.start.max(pages.start)).min().unwrap_or(pages.end);
        let mut at = pages.start;
        while let Some((index, page)) = self.pages.next(at).filter(|(index, _)| *index < end) {
            let is_here = page.frame.is_some();
            if is_here && (page.state != State::Clean || self.must_stay(page)) {
                end = index;
            }
            at = index + 1;
        }
        end
    }

    /// Whether a page has to stay, because others have it who are to see what is written.
    pub fn must_stay(&self, page: &Page) -> bool {
        self.keeps_mapped && page.is_shared()
    }

    /// The first pages from `index` on that are dirty and not being written, as many as lie together.
    pub fn dirty_run(&self, index: u32, end: u32, most: u32) -> Option<Range<u32>> {
        let is_dirty = |index: &u32| self.page(*index).is_some_and(|page| page.state == State::Dirty);
        let mut at = index;
        loop {
            let (found, ()) = self.to_write.next(at).filter(|(found, _)| *found < end)?;
            if is_dirty(&found) {
                let count = (found..end.min(found.saturating_add(most))).take_while(is_dirty).count() as u32;
                return Some(found..found + count);
            }
            at = found.checked_add(1)?;
        }
    }
}

/// Whether a page is newer than what was last given to the device.
pub(super) fn is_to_write(state: State) -> bool {
    matches!(state, State::Dirty | State::Redirtied)
}

fn move_count(count: &AtomicUsize, before: usize, now: usize) {
    match (before, now) {
        (0, 1) => _ = count.fetch_add(1, Ordering::Relaxed),
        (1, 0) => _ = count.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
}

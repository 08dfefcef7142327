//! [`Chunk`]: some of the members.

use alloc::collections::VecDeque;
use core::cmp::Ordering;

use refs::WeakRc;

use super::Ticket;

/// So many names stand in a chunk at most: a page of them.
pub const CHUNK: usize = 128;

/// Some names in the order in which they came, [`CHUNK`] at most.
pub struct Chunk<T: ?Sized + Send + Sync + 'static> {
    /// By ascending ticket. The first and the last are no gaps.
    pub entries: VecDeque<(Ticket, Option<WeakRc<T>>)>,
    pub gaps: usize,
}

impl<T: ?Sized + Send + Sync> Chunk<T> {
    pub const fn new() -> Self {
        Chunk { entries: VecDeque::new(), gaps: 0 }
    }

    /// The ticket of the one that came last; the lowest of all if there is none.
    pub fn last(&self) -> Ticket {
        self.entries.back().map_or(Ticket(0), |(ticket, _)| *ticket)
    }

    /// Takes out the one that has this ticket; whether somebody had.
    #[inline(always)]
    pub fn leave(&mut self, ticket: Ticket) -> bool {
        // Who came last often leaves first.
        if self.gaps == 0 && self.entries.back().is_some_and(|(last, _)| *last == ticket) {
            self.entries.pop_back();
            return true;
        }
        let Some(at) = self.find(ticket) else { return false };
        if self.entries[at].1.take().is_none() {
            return false;
        }
        self.gaps += 1;
        self.end_in_members();
        if self.gaps > self.entries.len() / 2 {
            self.close_gaps();
        }
        true
    }

    /// Takes out the one that has this ticket if it is the first; whether it is. The memory of an older chunk goes back with the chunk.
    #[inline(always)]
    pub fn leave_first(&mut self, ticket: Ticket) -> bool {
        if self.entries.front().is_none_or(|(first, _)| *first != ticket) {
            return false;
        }
        self.entries.pop_front();
        self.begin_with_member();
        true
    }

    /// Takes the first entries out, fewer than there are.
    pub fn split_first(&mut self, count: usize) -> Self {
        let entries: VecDeque<_> = self.entries.drain(..count).collect();
        let gaps = entries.iter().filter(|(_, name)| name.is_none()).count();
        self.gaps -= gaps;
        self.end_in_members();
        Chunk { entries, gaps }
    }

    #[cold]
    pub fn close_gaps(&mut self) {
        self.entries.retain(|(_, name)| name.is_some());
        self.gaps = 0;
    }

    /// Takes out the gaps at the front.
    #[inline(always)]
    fn begin_with_member(&mut self) {
        while matches!(self.entries.front(), Some((_, None))) {
            self.entries.pop_front();
            self.gaps -= 1;
        }
    }

    /// Takes out the gaps at both ends.
    #[inline(always)]
    fn end_in_members(&mut self) {
        self.begin_with_member();
        while matches!(self.entries.back(), Some((_, None))) {
            self.entries.pop_back();
            self.gaps -= 1;
        }
    }

    /// A peak's memory goes back, in as many steps as it doubled, but for so many places.
    #[inline(always)]
    pub fn shrink(&mut self, kept: usize) {
        let (len, capacity) = (self.entries.len(), self.entries.capacity());
        if capacity > kept && len < capacity / 4 {
            self.entries.shrink_to((2 * len).max(kept));
        }
    }

    /// Where the entry with this ticket is; the first and the last are found at once.
    #[inline(always)]
    pub fn find(&self, ticket: Ticket) -> Option<usize> {
        if self.entries.back()?.0 == ticket {
            return Some(self.entries.len() - 1);
        }
        if self.entries.front()?.0 == ticket {
            return Some(0);
        }
        self.find_between(ticket)
    }

    #[inline(never)]
    fn find_between(&self, ticket: Ticket) -> Option<usize> {
        // No place is without a ticket, so it is no further from either end than the tickets are.
        let last = self.entries.len() - 1;
        let at_least = last.saturating_sub(self.entries[last].0.0.checked_sub(ticket.0)? as usize);
        let at_most = last.min(ticket.0.checked_sub(self.entries[0].0.0)? as usize);
        let (mut low, mut high) = (at_least, at_most);
        while low <= high {
            let middle = low.midpoint(high);
            match self.entries[middle].0.cmp(&ticket) {
                Ordering::Equal => return Some(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle.checked_sub(1)?,
            }
        }
        None
    }
}

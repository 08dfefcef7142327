//! [`Members`]: what belongs to something, in the order in which it came: the threads of a process, its children, the processes of a group.
//!
//! It holds names and owns nothing. Whoever enters gets a [`Ticket`], keeps it, and leaves by it: the ticket says where to look, to within as many places as
//! gaps were closed.
//! Whoever has left leaves a gap; gaps are closed when they are more than half of all, and at once at both ends.

use alloc::collections::VecDeque;
use core::cmp::Ordering;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use refs::WeakRc;

use crate::error::{Errno, Result};

/// Names in the order in which they came.
pub struct Members<T: ?Sized + Send + Sync + 'static> {
    /// By ascending ticket. The first and the last are no gaps.
    entries: VecDeque<(Ticket, Option<WeakRc<T>>)>,
    gaps: usize,
    last: Ticket,
}

/// An entry's number: those that came later have higher ones. It is never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Where a member keeps its ticket.
#[derive(Default)]
pub struct TicketCell(AtomicU64);

impl TicketCell {
    /// The ticket.
    pub fn get(&self) -> Ticket {
        Ticket(self.0.load(Relaxed))
    }

    /// From now on it is this one.
    pub fn set(&self, ticket: Ticket) {
        self.0.store(ticket.0, Relaxed);
    }
}

/// How far a walk through all members is. Others may come and leave meanwhile.
#[derive(Default)]
pub struct Cursor {
    after: Ticket,
    /// Where the next entry is, unless entries have moved.
    at: usize,
}

impl<T: ?Sized + Send + Sync> Default for Members<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized + Send + Sync> Members<T> {
    /// Nobody.
    pub const fn new() -> Self {
        Members { entries: VecDeque::new(), gaps: 0, last: Ticket(0) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.gaps
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes room for one more.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn reserve_one(&mut self) -> Result<()> {
        self.entries.try_reserve(1).map_err(|_| Errno::ENOMEM)
    }

    /// Enters behind all others.
    pub fn enter(&mut self, name: WeakRc<T>) -> Ticket {
        self.last.0 += 1;
        self.entries.push_back((self.last, Some(name)));
        self.last
    }

    /// Takes out the one that has this ticket; nothing if nobody has.
    pub fn leave(&mut self, ticket: Ticket) {
        let Some(at) = self.find(ticket) else { return };
        if self.entries[at].1.take().is_none() {
            return;
        }
        self.gaps += 1;
        self.end_in_members();
        if self.gaps > self.entries.len() / 2 {
            self.entries.retain(|(_, name)| name.is_some());
            self.gaps = 0;
        }
        // A peak's memory goes back, in as many steps as it doubled.
        if self.entries.len() < self.entries.capacity() / 8 && self.entries.capacity() > 64 {
            self.entries.shrink_to(self.entries.capacity() / 4);
        }
    }

    /// Takes out the gaps at both ends.
    #[inline(always)]
    fn end_in_members(&mut self) {
        while matches!(self.entries.front(), Some((_, None))) {
            self.entries.pop_front();
            self.gaps -= 1;
        }
        while matches!(self.entries.back(), Some((_, None))) {
            self.entries.pop_back();
            self.gaps -= 1;
        }
    }

    /// Where the entry with this ticket is; the first and the last are found at once.
    fn find(&self, ticket: Ticket) -> Option<usize> {
        if self.entries.back()?.0 == ticket {
            return Some(self.entries.len() - 1);
        }
        if self.entries.front()?.0 == ticket {
            return Some(0);
        }
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

    /// The one that came first.
    pub fn first(&self) -> Option<WeakRc<T>> {
        self.entries.front()?.1
    }

    /// Takes out the one that came first.
    pub fn pop_first(&mut self) -> Option<(Ticket, WeakRc<T>)> {
        let (ticket, name) = self.entries.pop_front()?;
        while matches!(self.entries.front(), Some((_, None))) {
            self.entries.pop_front();
            self.gaps -= 1;
        }
        Some((ticket, name?))
    }

    /// Takes out those that came first and enters them in another list, `most` at most; `each` is told of each: its ticket before, that from now on,
    /// and who it is. How many; none if nobody is left.
    pub fn move_first(&mut self, to: &mut Self, most: usize, mut each: impl FnMut(Ticket, Ticket, WeakRc<T>)) -> usize {
        if self.gaps > 0 {
            let mut moved = 0;
            while moved < most
                && let Some((before, name)) = self.pop_first()
            {
                each(before, to.enter(name), name);
                moved += 1;
            }
            return moved;
        }
        // In one piece, so that no place is looked for again and again.
        let (front, _) = self.entries.as_slices();
        let front = &front[..front.len().min(most)];
        let (count, there, first) = (front.len(), to.entries.len(), to.last.0 + 1);
        // All that are to come, so that they are not moved again and again.
        to.entries.reserve(self.entries.len());
        to.entries.extend(front);
        to.last.0 += count as u64;
        for ((ticket, name), now) in to.entries.range_mut(there..).zip(first..) {
            let before = core::mem::replace(ticket, Ticket(now));
            if let Some(name) = name {
                each(before, Ticket(now), *name);
            }
        }
        self.entries.drain(..count);
        count
    }

    /// The one that has this ticket.
    pub fn get(&self, ticket: Ticket) -> Option<WeakRc<T>> {
        self.entries[self.find(ticket)?].1
    }

    /// The next in a walk.
    pub fn next(&self, cursor: &mut Cursor) -> Option<WeakRc<T>> {
        let is_next = |at: usize| {
            self.entries.get(at).is_none_or(|(ticket, _)| *ticket > cursor.after)
                && at
                    .checked_sub(1)
                    .is_none_or(|before| self.entries.get(before).is_some_and(|(ticket, _)| *ticket <= cursor.after))
        };
        let mut at = cursor.at;
        if !is_next(at) {
            at = self.entries.partition_point(|(ticket, _)| *ticket <= cursor.after);
        }
        loop {
            let (ticket, name) = self.entries.get(at)?;
            at += 1;
            (cursor.after, cursor.at) = (*ticket, at);
            if name.is_some() {
                return *name;
            }
        }
    }

    /// All, with the list locked or owned by the caller.
    pub fn iter(&self) -> impl Iterator<Item = WeakRc<T>> + '_ {
        self.entries.iter().filter_map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refs::StrongRc;
    use std::vec::Vec;

    fn filled(count: u32) -> (Vec<StrongRc<u32>>, Members<u32>, Vec<Ticket>) {
        let owners: Vec<_> = (0..count).map(StrongRc::new).collect();
        let mut members = Members::new();
        let tickets = owners.iter().map(|owner| members.enter(owner.downgrade())).collect();
        (owners, members, tickets)
    }

    fn places(members: &Members<u32>, owners: &[StrongRc<u32>]) -> Vec<usize> {
        members.iter().filter_map(|name| owners.iter().position(|owner| owner.downgrade() == name)).collect()
    }

    #[test]
    fn whoever_leaves_is_gone_and_the_others_keep_their_order() {
        let (owners, mut members, tickets) = filled(6);
        for index in [2, 0, 5] {
            members.leave(tickets[index]);
        }
        assert_eq!(places(&members, &owners), [1, 3, 4]);
        assert_eq!(members.len(), 3);
        assert!(members.first() == Some(owners[1].downgrade()));
        members.leave(tickets[2]);
        assert_eq!(members.len(), 3, "nobody leaves twice");
    }

    #[test]
    fn gaps_are_closed() {
        let (owners, mut members, tickets) = filled(1000);
        for index in (1..999).rev().filter(|index| index % 10 != 0) {
            members.leave(tickets[index]);
        }
        let left: Vec<_> = (0..1000).filter(|index| index % 10 == 0 || *index == 999).collect();
        assert_eq!(places(&members, &owners), left);
        assert!(members.entries.len() <= 2 * left.len());
        for ticket in tickets {
            members.leave(ticket);
        }
        assert!(members.is_empty() && members.entries.capacity() <= 64);
    }

    #[test]
    fn whoever_moves_comes_behind_those_who_are_there() {
        for left_before in [false, true] {
            let (owners, mut members, tickets) = filled(5);
            let (others, mut to, _) = filled(2);
            if left_before {
                members.leave(tickets[2]);
            }
            let mut seen = Vec::new();
            while members.move_first(&mut to, 2, |before, now, name| seen.push((before, now, name))) > 0 {}
            assert!(members.is_empty());
            let moved: Vec<_> = [0, 1, 2, 3, 4].into_iter().filter(|at| !(left_before && *at == 2)).collect();
            assert_eq!(places(&to, &owners), moved);
            assert_eq!(to.len(), moved.len() + others.len());
            for (&at, (before, now, name)) in moved.iter().zip(&seen) {
                assert!(*before == tickets[at] && to.get(*now) == Some(*name) && *name == owners[at].downgrade());
            }
        }
    }

    #[test]
    fn a_walk_sees_each_once_whoever_comes_and_leaves_meanwhile() {
        let (mut owners, mut members, tickets) = filled(10);
        let (mut cursor, mut seen) = (Cursor::default(), Vec::new());
        while let Some(name) = members.next(&mut cursor) {
            let at = owners.iter().position(|owner| owner.downgrade() == name).unwrap();
            seen.push(at);
            if at < 10 {
                // The ones just seen and the one behind the next leave.
                members.leave(tickets[at]);
                if at + 2 < 10 {
                    members.leave(tickets[at + 2]);
                }
            }
            if at == 4 {
                owners.push(StrongRc::new(10));
                members.enter(owners[10].downgrade());
            }
        }
        assert_eq!(seen, [0, 1, 4, 5, 8, 9, 10]);
    }
}

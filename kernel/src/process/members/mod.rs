//! [`Members`]: what belongs to something, in the order in which it came: the threads of a process, its children, the processes of a group.
//!
//! It holds names and owns nothing. Whoever enters gets a [`Ticket`], keeps it, and leaves by it: the ticket says where to look.
//!
//! Most have one member only, which needs no allocation. The names of several stand in chunks of [`CHUNK`]. Whoever has left leaves a gap; a chunk's gaps are closed when they are more than half of it, and at once at both
//! its ends. So nobody pays for more than a chunk, however many there are: only the list of chunks is as long as all that, at some 40 bytes for a chunk.

mod chunk;
mod ticket_set;

use alloc::boxed::Box;
use alloc::collections::{TryReserveError, VecDeque};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use refs::WeakRc;

use crate::error::{Errno, Result};
pub use chunk::CHUNK;
use chunk::Chunk;
pub use ticket_set::TicketSet;

/// So many entries at most move to another list at once.
pub const MOVED_AT_ONCE: usize = 16;

/// A list shorter than this keeps its memory.
const KEPT: usize = 32;

/// Names in the order in which they came.
pub struct Members<T: ?Sized + Send + Sync + 'static> {
    /// The only one, if it came when nobody was there: then there is none in the chunks.
    only: Option<(Ticket, WeakRc<T>)>,
    /// Those that came before. Nearly all lists have none.
    older: Option<Box<Older<T>>>,
    /// Those that came last.
    newest: Chunk<T>,
    len: usize,
    last: Ticket,
}

/// Chunks, by ascending tickets; none is empty.
struct Older<T: ?Sized + Send + Sync + 'static>(VecDeque<Chunk<T>>);

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
    /// In which chunk the next entry is and where, unless entries have moved: then it was before that.
    chunk: usize,
    at: usize,
}

impl<T: ?Sized + Send + Sync> Default for Members<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized + Send + Sync> Default for Older<T> {
    fn default() -> Self {
        Older(VecDeque::new())
    }
}

impl<T: ?Sized + Send + Sync> Members<T> {
    /// Nobody.
    pub const fn new() -> Self {
        Members { only: None, older: None, newest: Chunk::new(), len: 0, last: Ticket(0) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for one more.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn reserve_one(&mut self) -> Result<()> {
        let reserved = match self.newest.entries.len() {
            _ if self.is_empty() => Ok(()),
            CHUNK => self.begin_chunk(),
            _ => self.newest.entries.try_reserve(1 + usize::from(self.only.is_some())),
        };
        reserved.map_err(|_| Errno::ENOMEM)
    }

    /// Puts the newest chunk, which is full, among the older ones.
    #[cold]
    fn begin_chunk(&mut self) -> core::result::Result<(), TryReserveError> {
        let mut next = Chunk::new();
        next.entries.try_reserve_exact(CHUNK)?;
        let older = self.older.get_or_insert_default();
        older.0.try_reserve(1)?;
        older.0.push_back(core::mem::replace(&mut self.newest, next));
        Ok(())
    }

    /// Enters behind all others.
    #[inline(always)]
    pub fn enter(&mut self, name: WeakRc<T>) -> Ticket {
        self.last.0 += 1;
        if self.len == 0 {
            self.only = Some((self.last, name));
        } else {
            self.enter_behind(name);
        }
        self.len += 1;
        self.last
    }

    /// Enters the one that has the last ticket among others. It makes room where [`reserve_one`](Self::reserve_one) has not: what is there already is worth
    /// more than a chunk.
    #[inline(never)]
    fn enter_behind(&mut self, name: WeakRc<T>) {
        self.put_only_in_chunk();
        if self.newest.entries.len() == CHUNK {
            self.older.get_or_insert_default().0.push_back(core::mem::replace(&mut self.newest, Chunk::new()));
        }
        self.newest.entries.push_back((self.last, Some(name)));
    }

    #[inline(always)]
    fn put_only_in_chunk(&mut self) {
        if let Some((ticket, only)) = self.only.take() {
            self.newest.entries.push_back((ticket, Some(only)));
        }
    }

    /// Takes out the one that has this ticket; nothing if nobody has.
    #[inline(always)]
    pub fn leave(&mut self, ticket: Ticket) {
        let Some((only, _)) = self.only else { return self.leave_chunk(ticket) };
        if only == ticket {
            (self.only, self.len) = (None, 0);
        }
    }

    #[inline(never)]
    fn leave_chunk(&mut self, ticket: Ticket) {
        // Who came first often leaves first.
        if let Some(older) = &mut self.older
            && let Some(first) = older.0.front_mut()
            && first.leave_first(ticket)
        {
            self.len -= 1;
            if first.entries.is_empty() {
                self.remove_older(0);
            }
            return;
        }
        if self.newest.entries.front().is_none_or(|(first, _)| ticket < *first) {
            return self.leave_older(ticket);
        }
        if self.newest.leave(ticket) {
            self.len -= 1;
            self.newest.shrink(KEPT);
        }
    }

    /// Takes the one out that has this ticket if it is in an older chunk.
    #[inline(never)]
    fn leave_older(&mut self, ticket: Ticket) {
        let Some(at) = self.find_older(ticket) else { return };
        let Some(chunk) = self.older.as_mut().and_then(|older| older.0.get_mut(at)) else { return };
        if chunk.leave(ticket) {
            self.len -= 1;
            chunk.shrink(0);
            if chunk.entries.is_empty() {
                self.remove_older(at);
            }
        }
    }

    /// In which older chunk a ticket would be; `None`: in none.
    fn find_older(&self, ticket: Ticket) -> Option<usize> {
        let Older(older) = &**self.older.as_ref()?;
        if older.front()?.last() >= ticket {
            return Some(0);
        }
        let last = older.back()?.last();
        if last < ticket {
            return None;
        }
        // Where it is as long as no chunk before the last has got shorter and none has left.
        let guess = (older.len() - 1).saturating_sub((last.0 - ticket.0) as usize / CHUNK);
        let is_behind = |at: usize| older.get(at).is_some_and(|chunk| chunk.last() < ticket);
        if !is_behind(guess) && guess.checked_sub(1).is_none_or(is_behind) {
            return Some(guess);
        }
        Some(older.partition_point(|chunk| chunk.last() < ticket))
    }

    /// Takes out an older chunk.
    #[cold]
    fn remove_older(&mut self, at: usize) -> Option<Chunk<T>> {
        let Older(older) = self.older.as_deref_mut()?;
        let chunk = older.remove(at);
        if older.is_empty() {
            self.older = None;
        } else if older.len() < older.capacity() / 4 {
            older.shrink_to(2 * older.len());
        }
        chunk
    }

    /// The chunk with that number; the newest has the last one.
    #[inline(always)]
    fn chunk(&self, number: usize) -> Option<&Chunk<T>> {
        match &self.older {
            Some(older) if number != older.0.len() => older.0.get(number),
            None if number != 0 => None,
            _ => Some(&self.newest),
        }
    }

    /// The one that came first.
    pub fn first(&self) -> Option<WeakRc<T>> {
        if let Some((_, only)) = self.only {
            return Some(only);
        }
        let first = self.older.as_ref().map_or(Some(&self.newest), |older| older.0.front())?;
        first.entries.front()?.1
    }

    /// Takes out those that came first and enters them in another list, [`MOVED_AT_ONCE`] at most; `each` is told of each: its ticket before, that from now on,
    /// and who it is. How many; none if nobody is left.
    #[inline(always)]
    pub fn move_first(&mut self, to: &mut Self, mut each: impl FnMut(Ticket, Ticket, WeakRc<T>)) -> usize {
        if let Some((before, only)) = self.only.take() {
            self.len = 0;
            each(before, to.enter(only), only);
            return 1;
        }
        let first = match &mut self.older {
            Some(older) => older.0.front_mut(),
            None => Some(&mut self.newest),
        };
        let mut moved = match first.filter(|first| first.entries.len() > MOVED_AT_ONCE) {
            Some(first) => first.split_first(MOVED_AT_ONCE),
            None => self.remove_older(0).unwrap_or_else(|| core::mem::replace(&mut self.newest, Chunk::new())),
        };
        if moved.gaps > 0 {
            moved.close_gaps();
        }
        let count = moved.entries.len();
        self.len -= count;
        for (ticket, name) in &mut moved.entries {
            to.last.0 += 1;
            let before = core::mem::replace(ticket, to.last);
            if let Some(name) = name {
                each(before, to.last, *name);
            }
        }
        to.len += count;
        to.append(moved);
        count
    }

    /// Puts a chunk behind all others, by itself unless there is room for it in the newest.
    fn append(&mut self, mut chunk: Chunk<T>) {
        self.put_only_in_chunk();
        let there = self.newest.entries.len();
        if there == 0 {
            self.newest = chunk;
        } else if there + chunk.entries.len() <= CHUNK {
            self.newest.entries.append(&mut chunk.entries);
        } else {
            self.older.get_or_insert_default().0.push_back(core::mem::replace(&mut self.newest, chunk));
        }
    }

    /// The one that has this ticket.
    pub fn get(&self, ticket: Ticket) -> Option<WeakRc<T>> {
        if let Some((only, name)) = self.only {
            return (only == ticket).then_some(name);
        }
        let chunk = match self.find_older(ticket) {
            Some(at) => self.chunk(at)?,
            None => &self.newest,
        };
        chunk.entries[chunk.find(ticket)?].1
    }

    /// The next in a walk.
    #[inline(always)]
    pub fn next(&self, cursor: &mut Cursor) -> Option<WeakRc<T>> {
        if let Some((ticket, only)) = self.only {
            let is_next = ticket > cursor.after;
            // Where it will be if others come.
            *cursor = Cursor { after: ticket, chunk: 0, at: 1 };
            return is_next.then_some(only);
        }
        // Usually the last one is where it was, and the next one behind it.
        let chunk = if self.older.is_none() { Some(&self.newest) } else { self.chunk(cursor.chunk) };
        if let Some(chunk) = chunk
            && let Some((after, _)) = chunk.entries.get(cursor.at.wrapping_sub(1))
            && *after == cursor.after
            && let Some((ticket, Some(name))) = chunk.entries.get(cursor.at)
        {
            (cursor.after, cursor.at) = (*ticket, cursor.at + 1);
            return Some(*name);
        }
        self.look_for_next(cursor)
    }

    /// Runs `f` on some of the next in a walk, `most` at most (one at least), and no more than [`CHUNK`]; how many they were, none at the end.
    #[inline(always)]
    pub fn some_next<R>(&self, cursor: &mut Cursor, most: usize, mut f: impl FnMut(WeakRc<T>) -> R) -> usize {
        let Some(first) = self.next(cursor) else { return 0 };
        f(first);
        let Some(chunk) = self.chunk(cursor.chunk) else { return 1 };
        let end = chunk.entries.len().min(cursor.at.saturating_add(most - 1));
        let Some((last, _)) = chunk.entries.get(end.wrapping_sub(1)).filter(|_| end > cursor.at) else { return 1 };
        let mut count = 1;
        for (_, name) in chunk.entries.range(cursor.at..end) {
            if let Some(name) = name {
                f(*name);
                count += 1;
            }
        }
        (cursor.after, cursor.at) = (*last, end);
        count
    }

    #[inline(never)]
    fn look_for_next(&self, cursor: &mut Cursor) -> Option<WeakRc<T>> {
        if !self.leaves_none_out(cursor) {
            self.find_next(cursor);
        }
        let mut chunk = self.chunk(cursor.chunk)?;
        loop {
            let Some((ticket, name)) = chunk.entries.get(cursor.at) else {
                chunk = self.chunk(cursor.chunk + 1)?;
                (cursor.chunk, cursor.at) = (cursor.chunk + 1, 0);
                continue;
            };
            cursor.at += 1;
            if *ticket <= cursor.after {
                continue;
            }
            cursor.after = *ticket;
            if name.is_some() {
                return *name;
            }
        }
    }

    /// Whether all before the place that a walk has noted were in it. (What stands behind may have been in it, too, after others have left.)
    #[inline(always)]
    fn leaves_none_out(&self, cursor: &Cursor) -> bool {
        let before = match cursor.at.checked_sub(1) {
            Some(at) => {
                let entry = self.chunk(cursor.chunk).and_then(|chunk| chunk.entries.get(at));
                entry.map(|(ticket, _)| *ticket)
            }
            None => cursor.chunk.checked_sub(1).map_or(Some(Ticket(0)), |before| Some(self.chunk(before)?.last())),
        };
        before.is_some_and(|before| before <= cursor.after)
    }

    /// Looks for the place behind those that were in a walk.
    #[cold]
    fn find_next(&self, cursor: &mut Cursor) {
        let after = cursor.after;
        let older = self.older.as_ref().map_or(0, |older| older.0.partition_point(|chunk| chunk.last() <= after));
        cursor.chunk = older;
        cursor.at = self.chunk(older).map_or(0, |chunk| chunk.entries.partition_point(|(ticket, _)| *ticket <= after));
    }

    /// Runs `f` on all, with the list locked or owned by the caller, until it says true of one; whether it did.
    #[inline(always)]
    pub fn any(&self, mut f: impl FnMut(WeakRc<T>) -> bool) -> bool {
        match self.only {
            Some((_, only)) => f(only),
            None => self.any_in_chunks(f),
        }
    }

    #[inline(never)]
    fn any_in_chunks(&self, mut f: impl FnMut(WeakRc<T>) -> bool) -> bool {
        let mut number = 0;
        while let Some(chunk) = self.chunk(number) {
            for (_, name) in &chunk.entries {
                if name.is_some_and(&mut f) {
                    return true;
                }
            }
            number += 1;
        }
        false
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

    fn places_had(members: &Members<u32>) -> usize {
        (0..).map_while(|at| members.chunk(at)).map(|chunk| chunk.entries.capacity()).sum()
    }

    fn all(members: &Members<u32>) -> Vec<WeakRc<u32>> {
        let mut all = Vec::new();
        assert!(!members.any(|name| {
            all.push(name);
            false
        }));
        all
    }

    fn places(members: &Members<u32>, owners: &[StrongRc<u32>]) -> Vec<usize> {
        all(members).into_iter().filter_map(|name| owners.iter().position(|owner| owner.downgrade() == name)).collect()
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
    fn those_who_came_first_leave_first_and_keep_no_memory() {
        let (owners, mut members, tickets) = filled(1000);
        for (index, ticket) in tickets.iter().enumerate() {
            members.leave(*ticket);
            assert_eq!(members.len(), 999 - index);
            assert!(members.first() == owners.get(index + 1).map(StrongRc::downgrade));
        }
        assert!(members.older.is_none() && places_had(&members) <= KEPT);
    }

    #[test]
    fn some_at_a_time_are_all() {
        for (count, gap) in [(1, 1000), (2, 1000), (100, 7), (1000, 130), (1000, 3)] {
            let (_owners, mut members, tickets) = filled(count);
            tickets.iter().step_by(gap).skip(1).for_each(|ticket| members.leave(*ticket));
            for most in [1, 8, CHUNK] {
                let (mut cursor, mut seen) = (Cursor::default(), Vec::new());
                while members.some_next(&mut cursor, most, |name| seen.push(name)) > 0 {}
                assert!(seen == all(&members));
            }
        }
    }

    #[test]
    fn gaps_are_closed() {
        let (owners, mut members, tickets) = filled(1000);
        for index in (1..999).rev().filter(|index| index % 10 != 0) {
            members.leave(tickets[index]);
        }
        let left: Vec<_> = (0..1000).filter(|index| index % 10 == 0 || *index == 999).collect();
        assert_eq!(places(&members, &owners), left);
        assert!(places_had(&members) <= 4 * left.len());
        for ticket in tickets {
            members.leave(ticket);
        }
        assert!(members.is_empty() && members.older.is_none() && places_had(&members) <= KEPT);
    }

    #[test]
    fn few_that_are_left_of_very_many_keep_little_memory() {
        let (_owners, mut members, tickets) = filled(10_000);
        for (_, ticket) in tickets.iter().enumerate().filter(|(index, _)| index % 500 != 7) {
            members.leave(*ticket);
        }
        assert_eq!(members.len(), 20);
        assert!(members.older.as_ref().is_some_and(|older| older.0.capacity() <= 80));
        assert!(places_had(&members) <= 80 + KEPT);
    }

    #[test]
    fn each_is_found_in_whichever_chunk_it_stands() {
        for kept in [1, 2, 3, 64, 127, 128, 129, 1000] {
            let (owners, mut members, tickets) = filled(1000);
            let stays = |index: usize| index.is_multiple_of(kept);
            for index in (0..1000).map(|index| index * 7 % 1000).filter(|index| !stays(*index)) {
                members.leave(tickets[index]);
            }
            for index in 0..1000 {
                assert!(members.get(tickets[index]) == stays(index).then(|| owners[index].downgrade()));
            }
            let (mut cursor, mut walked) = (Cursor::default(), Vec::new());
            walked.extend(core::iter::from_fn(|| members.next(&mut cursor)));
            assert!(walked == all(&members) && walked.len() == members.len());
            let (mut to, mut moved) = (Members::new(), 0);
            while members.move_first(&mut to, |_, _, name| {
                assert!(walked[moved] == name);
                moved += 1;
            }) > 0
            {}
            assert!(members.is_empty() && moved == walked.len() && walked == all(&to));
        }
    }

    #[test]
    fn a_walk_that_chunks_leave_meanwhile_misses_nobody() {
        for step in [1, 50, 128, 200] {
            let (owners, mut members, tickets) = filled(1000);
            let (mut cursor, mut seen) = (Cursor::default(), 0);
            while let Some(name) = members.next(&mut cursor) {
                assert!(name == owners[seen].downgrade());
                seen += 1;
                if seen.is_multiple_of(step) {
                    tickets[..seen].iter().for_each(|ticket| members.leave(*ticket));
                }
            }
            assert_eq!(seen, 1000);
        }
    }

    #[test]
    fn whoever_moves_comes_behind_those_who_are_there() {
        for (count, there) in
            [(1, 0), (1, 1), (2, 0), (5, 1), (5, 2), (100, 1), (100, 100), (128, 1), (1000, 0), (1000, 1), (1000, 77)]
        {
            for left_before in [false, count > 1] {
                let (owners, mut members, tickets) = filled(count);
                let (others, mut to, _) = filled(there);
                if left_before {
                    members.leave(tickets[count as usize / 2]);
                }
                let mut seen = Vec::new();
                while members.move_first(&mut to, |before, now, name| seen.push((before, now, name))) > 0 {}
                assert!(members.is_empty() && all(&members).is_empty());
                let moved: Vec<_> =
                    (0..count as usize).filter(|at| !(left_before && *at == count as usize / 2)).collect();
                assert_eq!(places(&to, &owners), moved);
                assert_eq!(to.len(), moved.len() + others.len());
                assert_eq!(seen.len(), moved.len());
                for (&at, (before, now, name)) in moved.iter().zip(&seen) {
                    assert!(*before == tickets[at] && to.get(*now) == Some(*name) && *name == owners[at].downgrade());
                }
                let (mut cursor, mut walked) = (Cursor::default(), Vec::new());
                walked.extend(core::iter::from_fn(|| to.next(&mut cursor)));
                assert!(walked == all(&to));
                seen.iter().for_each(|(_, now, _)| to.leave(*now));
                assert_eq!(to.len(), others.len());
            }
        }
    }

    #[test]
    fn the_only_one_needs_no_memory() {
        let (owners, mut members, tickets) = filled(1);
        let (name, mut ticket, mut cursor) = (owners[0].downgrade(), tickets[0], Cursor::default());
        for _ in 0..3 {
            assert!(
                members.len() == 1 && members.next(&mut cursor) == Some(name) && members.next(&mut cursor).is_none()
            );
            members.leave(ticket);
            assert!(members.is_empty() && members.first().is_none() && members.next(&mut Cursor::default()).is_none());
            assert!(members.reserve_one().is_ok());
            ticket = members.enter(name);
        }
        assert_eq!(places_had(&members), 0);
    }

    #[test]
    fn one_that_was_alone_is_found_when_others_have_come() {
        let (owners, mut members, tickets) = filled(1);
        let mut cursor = Cursor::default();
        assert!(members.next(&mut cursor) == Some(owners[0].downgrade()));
        let others: Vec<_> = (1..300).map(StrongRc::new).collect();
        let entered: Vec<_> = others.iter().map(|other| members.enter(other.downgrade())).collect();
        assert!(members.first() == Some(owners[0].downgrade()) && members.get(tickets[0]) == members.first());
        for other in &others {
            assert!(members.next(&mut cursor) == Some(other.downgrade()));
        }
        assert!(members.next(&mut cursor).is_none());
        entered.iter().for_each(|ticket| members.leave(*ticket));
        assert!(members.len() == 1 && all(&members) == [owners[0].downgrade()]);
        members.leave(tickets[0]);
        assert!(members.is_empty() && all(&members).is_empty());
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

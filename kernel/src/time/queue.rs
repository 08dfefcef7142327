//! [`Queue`]: values by the time at which they are due.
//!
//! A heap in which each entry has four children, so that what is due late, as nearly everything is when it is entered, is put at the end and taken
//! out there with next to no comparison. An entry has a *slot* that says where in the heap it is. Both are in chunks: however many
//! entries there are, no large piece of memory is asked for or copied, and what a peak needed goes back.
//!
//! What an entry takes is there as long as its [`Ticket`], also when the value has come out: so who counts tickets knows how much memory comes back with them.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::heap::slot_bytes;
use crate::slots::Slots;

/// Values by the time at which they are due; those of one time come out as they went in.
pub(super) struct Queue<T> {
    heap: Chunks<Entry>,
    slots: Slots<Slot<T>>,
    /// How many tickets stand for something.
    tickets: u32,
    last_id: u64,
}

/// Which entry of a queue. It is to be [given back](Queue::remove), and stands for nothing from then on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    slot: u32,
}

/// No slot, and no place in the heap.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Entry {
    deadline: u64,
    id: u64,
    slot: u32,
}

struct Slot<T> {
    /// Where in the heap the entry is; [`NONE`] if it is not there any more.
    at: u32,
    /// `None` once it has come out.
    value: Option<T>,
}

/// How many children an entry has.
const CHILDREN: u32 = 4;

impl Entry {
    fn is_before(&self, other: &Entry) -> bool {
        (self.deadline, self.id) < (other.deadline, other.id)
    }
}

impl<T> Queue<T> {
    /// So many bytes of the heap an entry takes at least.
    pub const ENTRY_BYTES: usize = Slots::<Slot<T>>::ENTRY_BYTES + slot_bytes(size_of::<Entry>() * CHUNK) / CHUNK;

    pub const fn new() -> Self {
        Queue { heap: Chunks::new(), slots: Slots::new(), tickets: 0, last_id: 0 }
    }

    /// Enters a value.
    pub fn insert(&mut self, deadline: u64, value: T) -> Ticket {
        self.last_id += 1;
        let (id, at) = (self.last_id, self.heap.len);
        let slot = self.slots.insert(Slot { at, value: Some(value) });
        self.heap.make_room(self.tickets);
        self.tickets += 1;
        let entry = Entry { deadline, id, slot };
        self.heap.push(entry);
        if at > 0 && entry.is_before(&self.heap[(at - 1) / CHILDREN]) {
            self.raise(at, entry);
        }
        Ticket { slot }
    }

    /// Takes a value out and gives its ticket back; `None` if it has left the queue already.
    pub fn remove(&mut self, ticket: &mut Ticket) -> Option<T> {
        let Slot { at, value } = self.slots.remove(core::mem::replace(&mut ticket.slot, NONE))?;
        if at != NONE {
            self.take(at);
        }
        self.tickets -= 1;
        self.heap.keep(self.tickets);
        value
    }

    /// Takes the value out that is due first, if it is due at `now`.
    pub fn pop_due(&mut self, now: u64) -> Option<T> {
        let first = *self.heap.get(0).filter(|first| first.deadline <= now)?;
        self.take(0);
        let slot = self.slots.get_mut(first.slot)?;
        slot.at = NONE;
        slot.value.take()
    }

    /// When the first value is due.
    pub fn next(&self) -> Option<u64> {
        self.heap.get(0).map(|first| first.deadline)
    }

    /// Takes out what is at a place of the heap. The last entry comes to that place.
    fn take(&mut self, at: u32) {
        let Some(last) = self.heap.pop() else { return };
        if at < self.heap.len {
            if at > 0 && last.is_before(&self.heap[(at - 1) / CHILDREN]) {
                self.raise(at, last);
            } else {
                self.lower(at, last);
            }
        }
    }

    fn put(&mut self, at: u32, entry: Entry) {
        self.heap[at] = entry;
        if let Some(slot) = self.slots.get_mut(entry.slot) {
            slot.at = at;
        }
    }

    /// Puts an entry at a place or, as long as it is due before what is above, there.
    fn raise(&mut self, mut at: u32, entry: Entry) {
        while at > 0 {
            let above = (at - 1) / CHILDREN;
            let parent = self.heap[above];
            if !entry.is_before(&parent) {
                break;
            }
            self.put(at, parent);
            at = above;
        }
        self.put(at, entry);
    }

    /// Puts an entry at a place or, as long as one of those below is due before it, there.
    fn lower(&mut self, mut at: u32, entry: Entry) {
        loop {
            let first = at * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len);
            let least = children.reduce(
                |least, child| {
                    if self.heap[child].is_before(&self.heap[least]) { child } else { least }
                },
            );
            let Some((least, child)) = least.map(|at| (at, self.heap[at])).filter(|(_, child)| child.is_before(&entry))
            else {
                break;
            };
            self.put(at, child);
            at = least;
        }
        self.put(at, entry);
    }
}

/// So many values stand in one piece of memory.
const CHUNK: usize = 64;

/// Values in a row.
struct Chunks<T> {
    /// Those in front are full, those at the end are empty.
    chunks: Vec<Vec<T>>,
    len: u32,
}

impl<T> Chunks<T> {
    const fn new() -> Self {
        Chunks { chunks: Vec::new(), len: 0 }
    }

    /// Makes room for one more than so many values, which are no fewer than there are, and for which there is room.
    fn make_room(&mut self, most: u32) {
        if most as usize / CHUNK == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
    }

    /// Appends a value, for which there is room.
    fn push(&mut self, value: T) {
        self.chunks[self.len as usize / CHUNK].push(value);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<T> {
        let chunk = self.len.checked_sub(1)? as usize / CHUNK;
        let value = self.chunks[chunk].pop()?;
        self.len -= 1;
        Some(value)
    }

    /// Gives back what more than so many values take, which are no fewer than there are.
    fn keep(&mut self, most: u32) {
        // One that is empty is kept, for whoever enters at its edge and leaves again.
        self.chunks.truncate(most as usize / CHUNK + 2);
    }

    fn get(&self, at: u32) -> Option<&T> {
        self.chunks.get(at as usize / CHUNK)?.get(at as usize % CHUNK)
    }
}

impl<T> Index<u32> for Chunks<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Chunks<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_gives_out_what_a_sorted_map_does() {
        let (mut queue, mut map, mut tickets) = (Queue::new(), BTreeMap::new(), Vec::new());
        let mut state = 7_u64;
        for id in 1..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = state >> 40;
            match random % 8 {
                0..5 => {
                    let deadline = if random & 64 == 0 { id } else { random % 1000 };
                    map.insert((deadline, id), id);
                    tickets.push((deadline, id, queue.insert(deadline, id)));
                }
                5 | 6 if !tickets.is_empty() => {
                    let (deadline, entered, mut ticket) = tickets.swap_remove(random as usize % tickets.len());
                    assert_eq!(queue.remove(&mut ticket), map.remove(&(deadline, entered)));
                    assert_eq!(queue.remove(&mut ticket), None);
                }
                _ => {
                    let due = map.first_key_value().map(|((deadline, _), _)| *deadline);
                    assert_eq!(queue.next(), due);
                    let now = random % 1000;
                    let first = due.filter(|due| *due <= now).and_then(|_| map.pop_first());
                    assert_eq!(queue.pop_due(now), first.map(|(_, id)| id));
                }
            }
        }
        while let Some((_, id)) = map.pop_first() {
            assert_eq!(queue.pop_due(u64::MAX), Some(id));
        }
        assert_eq!(queue.next(), None);
        // What has come out takes as much as before until its ticket is given back.
        assert!(queue.heap.chunks.len() > tickets.len() / CHUNK && tickets.len() > 10 * CHUNK);
        assert!(tickets.iter_mut().all(|(.., ticket)| queue.remove(ticket).is_none()));
        assert!(queue.heap.chunks.len() <= 2);
    }
}

//! Who waits for which futex.
//!
//! A waiter has a *slot*, which says whether it was woken; the slots of those who wait for one futex are linked in the order in which they came. So
//! coming, being woken, being moved to another futex and leaving cost the same however many wait. A waiter that was woken is in no queue; one that was
//! requeued is in another than where it began.
//!
//! Slots belong to the waiters, each of whom is a thread. Their memory is used again, and goes back when nobody waits at all.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use refs::{SpinLock, Waker};

use super::Key;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// The mask of a waiter that any wake-up wakes, and of a wake-up that wakes any waiter.
pub const ANY: u32 = u32::MAX;

pub(super) static QUEUES: Queues = Queues(SpinLock::new(WaitTable {
    slots: Vec::new(),
    free: NONE,
    in_use: 0,
    waiting: BTreeMap::new(),
    last_entry: 0,
}));

pub(super) struct Queues(SpinLock<WaitTable>);

struct WaitTable {
    slots: Vec<Slot>,
    /// The first slot that nobody has; the others follow by `next`.
    free: u32,
    in_use: usize,
    waiting: BTreeMap<Key, Queue>,
    last_entry: u64,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// So many waiters are moved to another futex before the time is looked at.
const MOVED_AT_A_TIME: usize = 1024;

/// So many slots are kept when nobody waits.
const KEPT: usize = 64;

struct Slot {
    /// Where it waits; `None` once it was woken.
    key: Option<Key>,
    mask: u32,
    waker: Waker,
    /// Ascends along each queue.
    entry: u64,
    previous: u32,
    next: u32,
}

/// The waiters of one futex, at least one.
struct Queue {
    first: u32,
    last: u32,
}

/// A place in a queue. Whoever has one must [`leave`](Waiter::leave) it.
#[must_use]
pub(super) struct Waiter(u32);

/// How far a wake-up or a requeue is that others may interrupt. Those who come to wait after it began are not meant.
#[derive(Default)]
pub struct Progress {
    last_meant: Option<u64>,
    /// How many waiters it has reached.
    pub count: usize,
}

impl Waiter {
    /// Enters the queue of a futex, behind all others.
    pub fn enter(key: Key, mask: u32, waker: Waker) -> Self {
        QUEUES.0.with(|state| {
            let slot = Slot { key: Some(key), mask, waker, entry: 0, previous: NONE, next: NONE };
            let number = state.free;
            let number = match state.slots.get_mut(number as usize) {
                Some(free) => {
                    state.free = free.next;
                    *free = slot;
                    number
                }
                None => {
                    state.slots.push(slot);
                    (state.slots.len() - 1) as u32
                }
            };
            state.in_use += 1;
            state.append(key, number);
            Waiter(number)
        })
    }

    /// Whether the waiter was woken.
    pub fn was_woken(&self) -> bool {
        QUEUES.0.with(|state| state.slots[self.0 as usize].key.is_none())
    }

    /// Goes on waiting, in another wait of the task; false if it was woken.
    pub fn wait_on(&self, waker: Waker) -> bool {
        QUEUES.0.with(|state| {
            let slot = &mut state.slots[self.0 as usize];
            slot.waker = waker;
            slot.key.is_some()
        })
    }

    /// Waits no longer; whether the waiter was woken.
    pub fn leave(self) -> bool {
        QUEUES.0.with(|state| {
            let key = state.slots[self.0 as usize].key;
            if let Some(key) = key {
                state.take_out(key, self.0);
            }
            state.slots[self.0 as usize].next = state.free;
            state.free = self.0;
            state.in_use -= 1;
            if state.in_use == 0 && state.slots.len() > KEPT {
                state.slots = Vec::new();
                state.free = NONE;
            }
            key.is_none()
        })
    }
}

impl WaitTable {
    /// Enters a slot, which is in no queue, behind all others.
    fn append(&mut self, key: Key, number: u32) {
        self.last_entry += 1;
        let queue = self.waiting.entry(key).or_insert(Queue { first: number, last: number });
        let last = core::mem::replace(&mut queue.last, number);
        if last != number {
            self.slots[last as usize].next = number;
        }
        let slot = &mut self.slots[number as usize];
        slot.key = Some(key);
        slot.entry = self.last_entry;
        slot.previous = if last == number { NONE } else { last };
        slot.next = NONE;
    }

    /// Takes a slot out of the queue of `key`, in which it is. From then on it counts as woken.
    fn take_out(&mut self, key: Key, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.key = None;
        let (previous, next) = (slot.previous, slot.next);
        if previous == NONE && next == NONE {
            self.waiting.remove(&key);
            return;
        }
        if let Some(previous) = self.slots.get_mut(previous as usize) {
            previous.next = next;
        }
        if let Some(next) = self.slots.get_mut(next as usize) {
            next.previous = previous;
        }
        if let Some(queue) = self.waiting.get_mut(&key) {
            if previous == NONE {
                queue.first = next;
            }
            if next == NONE {
                queue.last = previous;
            }
        }
    }

    /// Moves the first waiters that are meant, `wanted` at most, from one queue behind all others of another, or of the same; how many.
    fn move_first(&mut self, from: Key, to: Key, wanted: usize, progress: &mut Progress) -> usize {
        let last_meant = *progress.last_meant.get_or_insert(self.last_entry);
        let Some(first) = self.waiting.get(&from).map(|queue| queue.first) else { return 0 };
        let (mut last, mut next, mut moved) = (NONE, first, 0);
        while moved < wanted
            && let Some(slot) = self.slots.get_mut(next as usize)
            && slot.entry <= last_meant
        {
            moved += 1;
            slot.key = Some(to);
            slot.entry = self.last_entry + moved as u64;
            last = core::mem::replace(&mut next, slot.next);
        }
        if moved == 0 {
            return 0;
        }
        self.last_entry += moved as u64;
        progress.count += moved;
        match self.slots.get_mut(next as usize) {
            Some(left) => {
                left.previous = NONE;
                if let Some(queue) = self.waiting.get_mut(&from) {
                    queue.first = next;
                }
            }
            None => drop(self.waiting.remove(&from)),
        }
        self.join(to, first, last);
        moved
    }

    /// Puts slots that are linked, from `first` to `last`, behind all others of a queue.
    fn join(&mut self, key: Key, first: u32, last: u32) {
        let before = match self.waiting.entry(key) {
            Entry::Occupied(queue) => core::mem::replace(&mut queue.into_mut().last, last),
            Entry::Vacant(none) => {
                none.insert(Queue { first, last });
                NONE
            }
        };
        if let Some(before) = self.slots.get_mut(before as usize) {
            before.next = first;
        }
        self.slots[first as usize].previous = before;
        self.slots[last as usize].next = NONE;
    }

    /// Takes the first waiter that is meant and whose mask has a bit of `mask` out of its queue.
    fn take_first(&mut self, key: Key, mask: u32, progress: &mut Progress) -> Option<u32> {
        let last_meant = *progress.last_meant.get_or_insert(self.last_entry);
        let mut number = self.waiting.get(&key)?.first;
        loop {
            let slot = self.slots.get(number as usize).filter(|slot| slot.entry <= last_meant)?;
            if slot.mask & mask != 0 {
                break;
            }
            number = slot.next;
        }
        self.take_out(key, number);
        progress.count += 1;
        Some(number)
    }
}

impl Queues {
    /// Wakes waiters whose masks have a bit of `mask` until `progress` counts `count`.
    ///
    /// # Errors
    /// `Pause` where others must have their turn before it goes on.
    pub fn wake(&self, key: Key, count: usize, mask: u32, progress: &mut Progress) -> Step<()> {
        // One at a time: waking reaches into the scheduler, and this lock is not held then.
        self.each(count, progress, |progress| {
            let taken = self.0.with(|state| {
                let number = state.take_first(key, mask, progress)?;
                Some(state.slots[number as usize].waker)
            });
            taken.map(Waker::wake).is_some()
        })
    }

    /// Moves waiters to another futex until `progress` counts `count`. Those who are there already count too.
    ///
    /// # Errors
    /// `Pause` where others must have their turn before it goes on.
    pub fn requeue(&self, from: Key, to: Key, count: usize, progress: &mut Progress) -> Step<()> {
        let mut time_slice = TimeSlice::default();
        while progress.count < count {
            let wanted = MOVED_AT_A_TIME.min(count - progress.count);
            let moved = self.0.with(|state| state.move_first(from, to, wanted, progress));
            if moved < wanted {
                break;
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    /// Has `reach` do something to one waiter after the other until it finds none.
    fn each(&self, count: usize, progress: &mut Progress, reach: impl Fn(&mut Progress) -> bool) -> Step<()> {
        /// So many are reached before the time is looked at.
        const AT_A_TIME: usize = 64;
        let mut time_slice = TimeSlice::default();
        while progress.count < count && reach(progress) {
            if progress.count.is_multiple_of(AT_A_TIME) && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    /// Wakes one waiter, if there is one.
    pub fn wake_one(&self, key: Key) {
        // One is reached without a pause.
        let _ = self.wake(key, 1, ANY, &mut Progress::default());
    }
}

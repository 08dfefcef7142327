//! Who waits for which futex.
//!
//! A waiter has a *slot*, which says whether it was woken; each futex has the numbers of its waiters' slots, in the order in which they came. A
//! waiter that was woken is in no queue; one that was requeued is in another than where it began.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use refs::{SpinLock, Waker};

use super::Key;

/// The mask of a waiter that any wake-up wakes, and of a wake-up that wakes any waiter.
pub const ANY: u32 = u32::MAX;

pub(super) static QUEUES: Queues =
    Queues(SpinLock::new(State { slots: Vec::new(), free: Vec::new(), waiting: BTreeMap::new(), spare: None }));

pub(super) struct Queues(SpinLock<State>);

struct State {
    slots: Vec<Slot>,
    free: Vec<usize>,
    waiting: BTreeMap<Key, VecDeque<usize>>,
    /// An empty queue with room, so that two threads that take turns allocate nothing.
    spare: Option<VecDeque<usize>>,
}

struct Slot {
    /// Where it waits; `None` once it was woken.
    key: Option<Key>,
    mask: u32,
    waker: Waker,
}

/// A place in a queue. Whoever has one must [`leave`](Place::leave) it.
#[must_use]
pub(super) struct Place(usize);

impl Place {
    /// Enters the queue of a futex, behind all others.
    pub fn enter(key: Key, mask: u32, waker: Waker) -> Self {
        QUEUES.0.with(|state| {
            let slot = Slot { key: Some(key), mask, waker };
            let number = match state.free.pop() {
                Some(number) => {
                    state.slots[number] = slot;
                    number
                }
                None => {
                    state.slots.push(slot);
                    state.slots.len() - 1
                }
            };
            state.push(key, number);
            Place(number)
        })
    }

    /// Whether the waiter was woken.
    pub fn was_woken(&self) -> bool {
        QUEUES.0.with(|state| state.slots[self.0].key.is_none())
    }

    /// Goes on waiting, in another wait of the task; false if it was woken.
    pub fn wait_on(&self, waker: Waker) -> bool {
        QUEUES.0.with(|state| {
            state.slots[self.0].waker = waker;
            state.slots[self.0].key.is_some()
        })
    }

    /// Waits no longer; whether the waiter was woken.
    pub fn leave(self) -> bool {
        QUEUES.0.with(|state| {
            let key = state.slots[self.0].key.take();
            if let Some(key) = key
                && let Some(queue) = state.waiting.get_mut(&key)
            {
                queue.retain(|&number| number != self.0);
                state.drop_if_empty(key);
            }
            state.free.push(self.0);
            key.is_none()
        })
    }
}

impl State {
    fn push(&mut self, key: Key, number: usize) {
        let spare = &mut self.spare;
        self.waiting.entry(key).or_insert_with(|| spare.take().unwrap_or_default()).push_back(number);
    }

    fn drop_if_empty(&mut self, key: Key) {
        if self.waiting.get(&key).is_some_and(VecDeque::is_empty) {
            self.spare = self.waiting.remove(&key);
        }
    }

    /// Takes the first waiter whose mask has a bit of `mask` out of its queue.
    fn take(&mut self, key: Key, mask: u32) -> Option<usize> {
        let slots = &self.slots;
        let queue = self.waiting.get_mut(&key)?;
        let at = queue.iter().position(|&number| slots[number].mask & mask != 0)?;
        let number = queue.remove(at);
        self.drop_if_empty(key);
        number
    }
}

impl Queues {
    /// Wakes up to `count` waiters whose masks have a bit of `mask`; how many.
    pub fn wake(&self, key: Key, count: usize, mask: u32) -> usize {
        let mut woken = 0;
        while woken < count {
            // One at a time: waking reaches into the scheduler, and this lock is not held then.
            let Some(waker) = self.0.with(|state| {
                let number = state.take(key, mask)?;
                state.slots[number].key = None;
                Some(state.slots[number].waker)
            }) else {
                break;
            };
            waker.wake();
            woken += 1;
        }
        woken
    }

    /// Moves up to `count` waiters to another futex; how many.
    pub fn requeue(&self, from: Key, to: Key, count: usize) -> usize {
        if from == to {
            return 0;
        }
        self.0.with(|state| {
            let mut moved = 0;
            while moved < count
                && let Some(number) = state.take(from, ANY)
            {
                state.slots[number].key = Some(to);
                state.push(to, number);
                moved += 1;
            }
            moved
        })
    }
}

//! Who waits for which futex.
//!
//! A waiter has a *slot*, which says whether it was woken; the slots of those who wait for one futex are linked in the order in which they came. So
//! coming, being woken, being moved to another futex and leaving cost the same however many wait. A waiter that was woken is in no queue; one that was
//! requeued is in another than where it began.
//!
//! The queues are found in hash tables of fixed size, each with a lock of its own: one for the futexes that processes may share, and some for private ones, by
//! address space. So processes do not meet in a lock; and the two futexes of a call, which have one scope, are in one table. The multiplier of the hash is drawn at
//! boot, so that nobody can choose futexes that fall together with those of others.
//!
//! A wake-up where nobody waits writes nothing: each table counts beside its lock who waits. Who comes is counted, and looks at the futex's word behind a full
//! barrier; who wakes has changed the word, and looks at the count behind one. So either the waiter sees the word change, or it is seen.
//!
//! Slots belong to the waiters, each of whom is a thread. Their memory is used again, and goes back when nobody waits at all.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use refs::{NoSuspend, SpinLock, Waker};

use super::Key;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// The mask of a waiter that any wake-up wakes, and of a wake-up that wakes any waiter.
pub const ANY: u32 = u32::MAX;

static TABLES: [Table; 1 + (1 << PRIVATE_BITS)] = [const { Table::new() }; _];

/// Odd.
static MULTIPLIER: AtomicU64 = AtomicU64::new(0);

/// How many tables there are for private futexes, as a power of two. The one of what is shared is behind them.
const PRIVATE_BITS: u32 = 5;

/// On lines of its own, so that those of one table do not slow those of another down.
#[repr(align(64))]
struct Table {
    waiting: Waiting,
    state: SpinLock<WaitTable>,
}

/// How many wait in some of the buckets, or are about to; on lines that are only read while nobody comes. Written with the lock held.
#[repr(align(64))]
struct Waiting([AtomicU32; 1 << COUNT_BITS]);

/// A table's buckets are counted in so many groups.
const COUNT_BITS: u32 = 6;

impl Waiting {
    #[inline(always)]
    fn of(&self, key: Key) -> &AtomicU32 {
        &self.0[(hash(key) >> (u64::BITS - COUNT_BITS)) as usize]
    }

    /// So many more wait for a futex; a negative number, so many fewer.
    #[inline(always)]
    fn change(&self, key: Key, difference: i32) {
        let count = self.of(key);
        // Nobody else writes, who has not the lock.
        count.store(count.load(Ordering::Relaxed).wrapping_add_signed(difference), Ordering::Relaxed);
    }
}

impl Table {
    const fn new() -> Self {
        Table { waiting: Waiting([const { AtomicU32::new(0) }; _]), state: SpinLock::new(WaitTable::new()) }
    }

    /// Whether nobody waits for a futex but those who have seen what the caller did before.
    #[inline(always)]
    fn is_empty(&self, key: Key) -> bool {
        fence(Ordering::SeqCst);
        self.waiting.of(key).load(Ordering::Relaxed) == 0
    }
}

struct WaitTable {
    slots: Vec<Slot>,
    /// The first slot that nobody has; the others follow by `next`.
    first_free: u32,
    in_use: usize,
    /// The first waiter of the first queue in each bucket; the other queues follow by `next_queue`.
    buckets: [u32; 1 << BUCKET_BITS],
    last_entry: u64,
}

/// Threads that wait for different futexes share a bucket only where they are hundreds.
const BUCKET_BITS: u32 = 10;

/// No slot.
const NONE: u32 = u32::MAX;

/// So many waiters are moved to another futex before the time is looked at.
const MOVED_AT_A_TIME: usize = 1024;

/// So many slots of a table are kept when nobody waits there.
const KEPT: usize = 16;

struct Slot {
    /// Where it waits; `None` once it was woken.
    key: Option<Key>,
    mask: u32,
    waker: Waker,
    /// Ascends along each queue.
    entry: u64,
    previous: u32,
    next: u32,
    /// Of the first in a queue: the last one.
    last: u32,
    /// Of the first in a queue: the first in the next queue of the same bucket, and in the one before.
    next_queue: u32,
    previous_queue: u32,
}

/// A place in a queue: in which table, and the slot. Whoever has one must [`leave`](Waiter::leave) it.
#[must_use]
pub(super) struct Waiter(&'static Table, u32);

/// Hashes a futex; the more significant bits are the better ones.
#[inline]
fn hash(key: Key) -> u64 {
    let (owner, place) = match key {
        Key::Private(space, address) | Key::Own(space, address) => (space as u64, address as u64),
        Key::Object(object, offset) => (!object, offset),
    };
    (owner.rotate_left(32) ^ place).wrapping_mul(MULTIPLIER.load(Ordering::Relaxed))
}

/// The table of a futex.
#[inline]
fn table(key: Key) -> &'static Table {
    let number = match key {
        // Not the lowest bits of the address: those of processes that were made alike may be alike.
        Key::Private(space, _) => {
            let mixed = (space as u64).wrapping_mul(MULTIPLIER.load(Ordering::Relaxed));
            (mixed >> (u64::BITS - PRIVATE_BITS)) as usize
        }
        Key::Own(..) | Key::Object(..) => 1 << PRIVATE_BITS,
    };
    &TABLES[number]
}

/// Draws the multiplier. Called once, before the first process.
pub fn start() {
    MULTIPLIER.store(frame::entropy::word() | 1, Ordering::Relaxed);
}

/// How far a wake-up or a requeue is that others may interrupt. Those who come to wait after it began are not meant.
#[derive(Default)]
pub struct Progress {
    last_meant: Option<u64>,
    /// How many waiters it has reached.
    pub count: usize,
}

impl Waiter {
    /// Enters the queue of a futex, behind all others, if `look` says so. Nobody comes or is woken while it looks: who is in the queue has seen what it waits for, and no wake-up
    /// reaches one who will not wait.
    ///
    /// # Errors
    /// Those of `look`; `NoMemory`: there is none for one more waiter.
    pub fn enter_if(
        key: Key,
        mask: u32,
        waker: Waker,
        look: impl FnOnce() -> Step<bool>,
        cx: &impl NoSuspend,
    ) -> Step<Option<Self>> {
        let table = table(key);
        let mut state = table.state.lock(cx);
        table.waiting.change(key, 1);
        fence(Ordering::SeqCst);
        let looked = look();
        let is_full = match looked {
            Ok(true) => match state.enter(key, mask, waker) {
                Some(number) => return Ok(Some(Waiter(table, number))),
                None => true,
            },
            _ => false,
        };
        table.waiting.change(key, -1);
        if is_full { Err(Stop::NoMemory) } else { looked.map(|_| None) }
    }

    /// Waits no longer if the waiter was woken; else it is given back.
    #[must_use]
    pub fn leave_if_woken(self) -> Option<Self> {
        let Waiter(table, number) = self;
        let is_woken = table.state.with(|state| {
            let is_woken = state.slots[number as usize].key.is_none();
            if is_woken {
                state.free(number);
            }
            is_woken
        });
        (!is_woken).then_some(self)
    }

    /// Goes on waiting, in another wait of the task; false if it was woken.
    pub fn wait_on(&self, waker: Waker) -> bool {
        self.0.state.with(|state| {
            let slot = &mut state.slots[self.1 as usize];
            slot.waker = waker;
            slot.key.is_some()
        })
    }

    /// Waits no longer; whether the waiter was woken.
    pub fn leave(self) -> bool {
        let Waiter(table, number) = self;
        table.state.with(|state| {
            let key = state.slots[number as usize].key;
            if let Some(key) = key {
                state.take_out(WaitTable::bucket(key), key, number);
                table.waiting.change(key, -1);
            }
            state.free(number);
            key.is_none()
        })
    }
}

impl WaitTable {
    const fn new() -> Self {
        WaitTable { slots: Vec::new(), first_free: NONE, in_use: 0, buckets: [NONE; 1 << BUCKET_BITS], last_entry: 0 }
    }

    /// Takes a slot and enters it behind all others; its number. `None`: there is no memory for a table with one more, which may be a large block of the heap.
    fn enter(&mut self, key: Key, mask: u32, waker: Waker) -> Option<u32> {
        let (entry, last) = (0, NONE);
        let (previous, next, previous_queue, next_queue) = (NONE, NONE, NONE, NONE);
        let slot = Slot { key: Some(key), mask, waker, entry, previous, next, last, next_queue, previous_queue };
        let number = self.first_free;
        let number = match self.slots.get_mut(number as usize) {
            Some(free) => {
                self.first_free = free.next;
                *free = slot;
                number
            }
            None => {
                self.slots.try_reserve(1).ok()?;
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.in_use += 1;
        self.append(key, number);
        Some(number)
    }

    /// Nobody has the slot any more, which is in no queue.
    #[inline(always)]
    fn free(&mut self, number: u32) {
        self.slots[number as usize].next = self.first_free;
        self.first_free = number;
        self.in_use -= 1;
        if self.in_use == 0 && self.slots.len() > KEPT {
            self.slots = Vec::new();
            self.first_free = NONE;
        }
    }

    /// In which bucket the queue of a futex is.
    fn bucket(key: Key) -> usize {
        (hash(key) >> (u64::BITS - BUCKET_BITS)) as usize
    }

    /// The first waiter in the queue of a futex; `NONE` if nobody waits.
    fn first(&self, bucket: usize, key: Key) -> u32 {
        let mut first = self.buckets[bucket];
        while let Some(slot) = self.slots.get(first as usize)
            && slot.key != Some(key)
        {
            first = slot.next_queue;
        }
        first
    }

    /// Enters a slot, which is in no queue, behind all others.
    fn append(&mut self, key: Key, number: u32) {
        self.last_entry += 1;
        let slot = &mut self.slots[number as usize];
        slot.key = Some(key);
        slot.entry = self.last_entry;
        self.join(key, number, number);
    }

    /// Takes a slot out of the queue of `key` in this bucket, in which it is. From then on it counts as woken.
    fn take_out(&mut self, bucket: usize, key: Key, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.key = None;
        let (previous, next) = (slot.previous, slot.next);
        let Some(before) = self.slots.get_mut(previous as usize) else {
            return self.begin_with(bucket, number, next);
        };
        before.next = next;
        match self.slots.get_mut(next as usize) {
            Some(behind) => behind.previous = previous,
            None => {
                let first = self.first(bucket, key);
                self.slots[first as usize].last = previous;
            }
        }
    }

    /// Has a queue begin with `next` instead of `first`; if that is `NONE` the queue is no longer there.
    fn begin_with(&mut self, bucket: usize, first: u32, next: u32) {
        let Slot { last, previous_queue, next_queue, .. } = self.slots[first as usize];
        let (instead, before_next) = match self.slots.get_mut(next as usize) {
            Some(slot) => {
                (slot.previous, slot.last) = (NONE, last);
                (slot.previous_queue, slot.next_queue) = (previous_queue, next_queue);
                (next, next)
            }
            None => (next_queue, previous_queue),
        };
        if let Some(slot) = self.slots.get_mut(next_queue as usize) {
            slot.previous_queue = before_next;
        }
        match self.slots.get_mut(previous_queue as usize) {
            Some(slot) => slot.next_queue = instead,
            None => self.buckets[bucket] = instead,
        }
    }

    /// Moves the first waiters that are meant, `wanted` at most, from one queue behind all others of another, or of the same; how many.
    fn move_first(&mut self, from: Key, to: Key, wanted: usize, progress: &mut Progress) -> usize {
        let last_meant = *progress.last_meant.get_or_insert(self.last_entry);
        let bucket = Self::bucket(from);
        let first = self.first(bucket, from);
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
        self.begin_with(bucket, first, next);
        self.join(to, first, last);
        moved
    }

    /// Puts slots that are linked, from `first` to `last`, behind all others of a queue.
    fn join(&mut self, key: Key, first: u32, last: u32) {
        let bucket = Self::bucket(key);
        self.slots[last as usize].next = NONE;
        let head = self.first(bucket, key);
        let Some(head) = self.slots.get_mut(head as usize) else {
            let behind = core::mem::replace(&mut self.buckets[bucket], first);
            let slot = &mut self.slots[first as usize];
            (slot.previous, slot.last) = (NONE, last);
            (slot.previous_queue, slot.next_queue) = (NONE, behind);
            if let Some(behind) = self.slots.get_mut(behind as usize) {
                behind.previous_queue = first;
            }
            return;
        };
        let before = core::mem::replace(&mut head.last, last);
        self.slots[before as usize].next = first;
        self.slots[first as usize].previous = before;
    }

    /// Takes the first waiter that is meant and whose mask has a bit of `mask` out of its queue.
    fn take_first(&mut self, key: Key, mask: u32, progress: &mut Progress) -> Option<u32> {
        let last_meant = *progress.last_meant.get_or_insert(self.last_entry);
        let bucket = Self::bucket(key);
        let mut number = self.first(bucket, key);
        loop {
            let slot = self.slots.get(number as usize).filter(|slot| slot.entry <= last_meant)?;
            if slot.mask & mask != 0 {
                break;
            }
            number = slot.next;
        }
        self.take_out(bucket, key, number);
        progress.count += 1;
        Some(number)
    }
}

/// Looks at something while nobody comes to `key` or is woken there. Only those who wait now are meant by what follows, of the same scope.
///
/// # Errors
/// Those of `look`.
pub(super) fn look<T>(
    key: Key,
    progress: [&mut Progress; 2],
    look: impl FnOnce() -> Step<T>,
    cx: &impl NoSuspend,
) -> Step<T> {
    let state = table(key).state.lock(cx);
    let found = look()?;
    for progress in progress {
        progress.last_meant = Some(state.last_entry);
    }
    Ok(found)
}

/// Wakes waiters whose masks have a bit of `mask` until `progress` counts `count`.
///
/// # Errors
/// `Pause` where others must have their turn before it goes on.
pub(super) fn wake(key: Key, count: usize, mask: u32, progress: &mut Progress) -> Step<()> {
    let table = table(key);
    if table.is_empty(key) {
        return Ok(());
    }
    // One at a time: waking reaches into the scheduler, and this lock is not held then.
    each(count, progress, |progress| {
        let taken = table.state.with(|state| {
            let number = state.take_first(key, mask, progress)?;
            table.waiting.change(key, -1);
            Some(state.slots[number as usize].waker)
        });
        taken.map(Waker::wake).is_some()
    })
}

/// Moves waiters to another futex of the same scope until `progress` counts `count`. Those who are there already count too.
///
/// # Errors
/// `Pause` where others must have their turn before it goes on.
pub(super) fn requeue(from: Key, to: Key, count: usize, progress: &mut Progress) -> Step<()> {
    let (table, mut time_slice) = (table(from), TimeSlice::default());
    while progress.count < count {
        let wanted = MOVED_AT_A_TIME.min(count - progress.count);
        let moved = table.state.with(|state| {
            let moved = state.move_first(from, to, wanted, progress);
            table.waiting.change(from, -(moved as i32));
            table.waiting.change(to, moved as i32);
            moved
        });
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
fn each(count: usize, progress: &mut Progress, reach: impl Fn(&mut Progress) -> bool) -> Step<()> {
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
pub(super) fn wake_one(key: Key) {
    // One is reached without a pause.
    let _ = wake(key, 1, ANY, &mut Progress::default());
}

#[cfg(test)]
mod tests {
    use refs::WakeSlot;

    use super::*;

    static SLOT: WakeSlot = WakeSlot::new(|_| {});

    const KEYS: usize = 7;

    fn key(number: usize) -> Key {
        // The multiplier is 0 here: all are in one bucket.
        Key::Private(0, 4 * number)
    }

    #[test]
    fn whoever_comes_moves_and_leaves_each_queue_keeps_its_order() {
        let mut table = WaitTable::new();
        let mut model = [const { Vec::<u32>::new() }; KEYS];
        let mut state = 1_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let (from, to) = (next(KEYS), next(KEYS));
            match next(4) {
                0 | 1 => model[from].push(table.enter(key(from), ANY, SLOT.prepare()).unwrap()),
                2 if !model[from].is_empty() => {
                    let at = next(model[from].len());
                    let number = model[from].remove(at);
                    table.take_out(WaitTable::bucket(key(from)), key(from), number);
                    table.free(number);
                }
                2 => {
                    let moved = table.move_first(key(from), key(to), 3, &mut Progress::default());
                    assert_eq!(moved, 0);
                }
                _ if from != to => {
                    let count = model[from].len().min(1 + next(3));
                    let moved = table.move_first(key(from), key(to), count, &mut Progress::default());
                    assert_eq!(moved, count);
                    let first: Vec<u32> = model[from].drain(..count).collect();
                    model[to].extend(first);
                }
                _ => {
                    let taken = table.take_first(key(from), ANY, &mut Progress::default());
                    let expected = (!model[from].is_empty()).then(|| model[from].remove(0));
                    assert_eq!(taken, expected);
                    taken.into_iter().for_each(|number| table.free(number));
                }
            }
        }
        for (number, queue) in model.iter().enumerate() {
            for expected in queue {
                let taken = table.take_first(key(number), ANY, &mut Progress::default());
                assert_eq!(taken, Some(*expected));
                table.free(*expected);
            }
        }
        assert!(table.buckets.iter().all(|first| *first == NONE) && table.in_use == 0);
    }
}

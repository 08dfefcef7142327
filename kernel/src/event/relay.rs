//! [`Relay`]: a waker that stands for no task. When it is woken it notes that in a [`Bell`] and wakes who waits there.
//!
//! A relay is a pooled wake slot, whose wakers may be kept for ever: [`OwnedRelay`] gives it back when it is dropped, and wakers of a former owner do nothing
//! then, because their wait is over. Its words say which bell it rings, by the bell's name: its number, which others get after it, and a serial number. A bell ends with
//! its [`OwnedBell`], and its relays ring nothing then.
//!
//! Lock order: the table of bells, then nothing; a bell's list, then nothing.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use refs::{Pooled, PooledSlot, SpinLock, WaitList, Waker};

use crate::heap::slot_bytes;
use crate::slots::Slots;

/// Who is woken of several relays that wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All.
    All,
    /// One of them for whose bell somebody waits (EPOLLEXCLUSIVE).
    One,
}

/// Which of a bell's relays rang: the number of an item in an epoll set, and which of the items that have had the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The number.
    pub number: usize,
    /// No two items of a set have the same.
    pub serial: u64,
}

/// What relays ring.
#[derive(Default)]
pub struct Bell {
    /// Which relays rang, each once. What is taken out is told so ([`OwnedRelay::take_out`]) before its file is asked.
    pub rung: SpinLock<VecDeque<Key>>,
    /// Who waits for one to ring.
    pub waiters: WaitList,
}

impl Bell {
    /// Notes that a relay rang, and wakes who waits; how many did.
    pub fn ring(&self, relay: Relay, key: Key) -> usize {
        self.enter(relay, key);
        self.waiters.wake()
    }

    /// Notes that a relay rang, unless that is noted already.
    pub fn enter(&self, relay: Relay, key: Key) {
        self.enter_all(core::iter::once((relay, key)));
    }

    /// Puts a relay back that was taken out, before all others.
    pub fn put_back(&self, relay: Relay, key: Key) {
        self.rung.with(|rung| {
            if relay.put_in() {
                rung.push_front(key);
            }
        });
    }

    /// Notes that relays rang, but for those of which that is noted already.
    pub fn enter_all(&self, relays: impl Iterator<Item = (Relay, Key)> + Send) {
        self.rung.with(|rung| {
            for (relay, key) in relays {
                // It is set with the list locked only.
                if relay.put_in() {
                    rung.push_back(key);
                }
            }
        });
    }
}

/// A waker without a task.
#[derive(Clone, Copy)]
pub struct Relay(&'static Pooled);

/// Which word of the slot is what. The name of its bell.
const BELL: usize = 0;
/// The parts of its key.
const NUMBER: usize = 1;
const SERIAL: usize = 2;
/// Whether its bell has it among those that rang: [`OUT`] or [`IN`]. `IN` is set with the bell's list locked.
const RUNG: usize = 3;

const OUT: usize = 1;
const IN: usize = 2;

/// The bells that there are.
struct Bells {
    by_number: Slots<(u32, Arc<Bell>)>,
    /// The serial number of the last one. It comes again after 2^32 bells: no bell's relays outlive it that long.
    last: u32,
}

static BELLS: SpinLock<Bells> = SpinLock::new(Bells { by_number: Slots::new(), last: 0 });

/// A bell's name, as it stands in a word of its relays: its number in [`BELLS`], and which of those that have had the number it is.
#[derive(Clone, Copy)]
struct Name {
    number: u32,
    serial: u32,
}

impl Name {
    fn word(self) -> usize {
        (self.serial as usize) << u32::BITS | self.number as usize
    }

    fn of(word: usize) -> Self {
        Name { number: word as u32, serial: (word >> u32::BITS) as u32 }
    }

    fn bell(self) -> Option<Arc<Bell>> {
        BELLS.with(|bells| {
            let (serial, bell) = bells.by_number.get(self.number)?;
            (*serial == self.serial).then(|| bell.clone())
        })
    }
}

fn woken(slot: &'static Pooled) {
    let Some(bell) = Name::of(slot.word(BELL)).bell() else { return };
    let key = Key { number: slot.word(NUMBER), serial: slot.word(SERIAL) as u64 };
    if bell.ring(Relay(slot), key) == 0 {
        slot.decline();
    }
}

impl Relay {
    /// Begins a wait: the waker is to be entered wherever something may happen, then comes [`commit`](Self::commit).
    pub fn prepare(self) -> Waker {
        self.0.prepare()
    }

    /// The waker rings from now on; false if it was woken since [`prepare`](Self::prepare), which rang nothing.
    pub fn commit(self) -> bool {
        self.0.commit()
    }

    /// Whether its bell has it among those that rang.
    pub fn is_rung(self) -> bool {
        self.0.word(RUNG) == IN
    }

    /// It comes into what its bell has, whose list is locked; false if it is in there.
    fn put_in(self) -> bool {
        self.0.exchange(RUNG, OUT, IN)
    }

    /// Ends the wait: its waker does nothing from here on.
    pub fn finish(self) {
        self.0.finish();
    }
}

/// A bell of one's own.
pub struct OwnedBell {
    bell: Arc<Bell>,
    name: Name,
}

impl OwnedBell {
    /// So many bytes of the heap come back with it at least.
    pub const BYTES: usize =
        slot_bytes(size_of::<Bell>() + 2 * size_of::<usize>()) + Slots::<(u32, Arc<Bell>)>::ENTRY_BYTES;

    /// A bell that nothing has rung.
    pub fn new() -> Self {
        let bell = Arc::<Bell>::default();
        let name = BELLS.with(|bells| {
            bells.last = bells.last.wrapping_add(1);
            Name { number: bells.by_number.insert((bells.last, bell.clone())), serial: bells.last }
        });
        OwnedBell { bell, name }
    }

    /// The bell.
    #[inline(always)]
    pub fn get(&self) -> &Bell {
        &self.bell
    }
}

impl Drop for OwnedBell {
    fn drop(&mut self) {
        self.bell.waiters.wake_all();
        BELLS.with(|bells| bells.by_number.remove(self.name.number));
    }
}

/// A relay of one's own.
pub struct OwnedRelay(PooledSlot);

impl OwnedRelay {
    /// So many bytes of memory come back with it.
    pub const BYTES: usize = size_of::<Pooled>();

    /// A relay that rings `bell` with `key`.
    pub fn new(bell: &OwnedBell, key: Key, sharing: Sharing) -> Self {
        let words = [bell.name.word(), key.number, key.serial as usize, OUT];
        OwnedRelay(PooledSlot::new(woken, words, sharing == Sharing::One))
    }

    /// It was taken out of what its bell has: what happens from here on rings anew.
    #[inline(always)]
    pub fn take_out(&self) {
        self.0.set_word(RUNG, OUT);
    }

    /// The relay.
    #[inline(always)]
    pub fn get(&self) -> Relay {
        Relay(self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Key = Key { number: 0, serial: 1 };
    const SECOND: Key = Key { number: 1, serial: 2 };

    #[test]
    fn a_relay_rings_once_for_each_arming() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(&bell, FIRST, Sharing::All);
        let waker = relay.get().prepare();
        assert!(relay.get().commit());
        assert!(waker.wake());
        assert!(!waker.wake());
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), Some(FIRST));
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), None);
    }

    #[test]
    fn a_relay_that_rang_is_noted_once_until_it_is_taken_out() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(&bell, FIRST, Sharing::All);
        bell.get().ring(relay.get(), FIRST);
        bell.get().ring(relay.get(), FIRST);
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), Some(FIRST));
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), None);
        relay.take_out();
        bell.get().ring(relay.get(), FIRST);
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), Some(FIRST));
    }

    #[test]
    fn what_is_woken_before_it_is_committed_says_so() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(&bell, FIRST, Sharing::All);
        assert!(relay.get().prepare().wake());
        assert!(!relay.get().commit());
    }

    #[test]
    fn a_waker_of_a_former_owner_does_nothing() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(&bell, FIRST, Sharing::All);
        let old = relay.get().prepare();
        assert!(relay.get().commit());
        drop(relay);
        let _next = OwnedRelay::new(&bell, SECOND, Sharing::All);
        assert!(!old.wake());
        assert!(bell.get().rung.with(|rung| rung.is_empty()));
    }
}

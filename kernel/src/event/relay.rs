//! [`Relay`]: a waker that stands for no task. When it is woken it notes that in a [`Bell`] and wakes who waits there.
//!
//! Both are *type-stable*, as wait slots must be: taken from a pool, never freed. [`OwnedRelay`] and [`OwnedBell`] give theirs back when they
//! are dropped; wakers of a former owner do nothing then, because their wait is over.
//!
//! Lock order: a relay's target, then nothing; a bell's list, then nothing. Both are called with other locks held by nobody.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use refs::{SpinLock, WaitList, WakeSlot, Waker};

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
    /// Which relays rang, each once. What is taken out is told so ([`Relay::is_out`]) before its file is asked.
    pub rung: SpinLock<VecDeque<Key>>,
    /// Who waits for one to ring.
    pub waiters: WaitList,
}

impl Bell {
    /// Notes that a relay rang, and wakes who waits; how many did.
    pub fn ring(&self, relay: &Relay, key: Key) -> usize {
        self.enter(relay, key);
        self.waiters.wake()
    }

    /// Notes that a relay rang, unless that is noted already.
    pub fn enter(&self, relay: &Relay, key: Key) {
        self.enter_all(core::iter::once((relay, key)));
    }

    /// Notes that relays rang, but for those of which that is noted already.
    pub fn enter_all<'a>(&self, relays: impl Iterator<Item = (&'a Relay, Key)> + Send) {
        self.rung.with(|rung| {
            for (relay, key) in relays {
                // It is set with the list locked only.
                if !relay.is_rung() {
                    relay.is_out(false);
                    rung.push_back(key);
                }
            }
        });
    }
}

/// A waker without a task.
pub struct Relay {
    slot: WakeSlot,
    target: SpinLock<Option<(&'static Bell, Key)>>,
    /// Whether its bell has it among those that rang. Set with the bell's list locked.
    is_rung: AtomicBool,
}

struct Pool {
    all: Vec<&'static Relay>,
    free: Vec<usize>,
}

static RELAYS: SpinLock<Pool> = SpinLock::new(Pool { all: Vec::new(), free: Vec::new() });
static BELLS: SpinLock<Vec<&'static Bell>> = SpinLock::new(Vec::new());

fn woken(slot: &'static WakeSlot) {
    let relay = RELAYS.with(|pool| pool.all.get(slot.token()).copied());
    let Some(relay) = relay else { return };
    if let Some((bell, key)) = relay.target.with(|target| *target)
        && bell.ring(relay, key) == 0
    {
        slot.decline();
    }
}

impl Relay {
    /// Begins a wait: the waker is to be entered wherever something may happen, then comes [`commit`](Self::commit).
    pub fn prepare(&'static self) -> Waker {
        self.slot.prepare()
    }

    /// The waker rings from now on; false if it was woken since [`prepare`](Self::prepare), which rang nothing.
    pub fn commit(&self) -> bool {
        self.slot.commit()
    }

    /// Whether its bell has it among those that rang.
    pub fn is_rung(&self) -> bool {
        self.is_rung.load(Ordering::Acquire)
    }

    /// It was taken out of what its bell has, or put back there. What happens from here on rings anew, or does not need to.
    pub fn is_out(&self, is_out: bool) {
        self.is_rung.store(!is_out, Ordering::Release);
    }

    /// Ends the wait: its waker does nothing from here on.
    pub fn finish(&self) {
        self.slot.finish();
    }
}

/// A bell of one's own.
pub struct OwnedBell(&'static Bell);

impl OwnedBell {
    /// A bell that nothing has rung.
    pub fn new() -> Self {
        OwnedBell(BELLS.with(Vec::pop).unwrap_or_else(|| Box::leak(Box::default())))
    }

    /// The bell.
    #[inline(always)]
    pub fn get(&self) -> &'static Bell {
        self.0
    }
}

impl Drop for OwnedBell {
    fn drop(&mut self) {
        self.0.rung.with(|rung| *rung = VecDeque::new());
        self.0.waiters.wake_all();
        BELLS.with(|bells| bells.push(self.0));
    }
}

/// A relay of one's own.
pub struct OwnedRelay(&'static Relay);

impl OwnedRelay {
    /// A relay that rings `bell` with `key`.
    pub fn new(bell: &'static Bell, key: Key, sharing: Sharing) -> Self {
        let relay = RELAYS.with(|pool| match pool.free.pop() {
            Some(index) => pool.all[index],
            None => {
                let slot = WakeSlot::with_token(woken, pool.all.len());
                let relay: &'static Relay =
                    Box::leak(Box::new(Relay { slot, target: SpinLock::new(None), is_rung: AtomicBool::new(false) }));
                pool.all.push(relay);
                relay
            }
        });
        relay.is_out(true);
        relay.slot.set_exclusive(sharing == Sharing::One);
        relay.target.with(|target| *target = Some((bell, key)));
        OwnedRelay(relay)
    }

    /// The relay.
    #[inline(always)]
    pub fn get(&self) -> &'static Relay {
        self.0
    }
}

impl Drop for OwnedRelay {
    fn drop(&mut self) {
        self.0.slot.finish();
        self.0.target.with(|target| *target = None);
        RELAYS.with(|pool| pool.free.push(self.0.slot.token()));
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
        let relay = OwnedRelay::new(bell.get(), FIRST, Sharing::All);
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
        let relay = OwnedRelay::new(bell.get(), FIRST, Sharing::All);
        bell.get().ring(relay.get(), FIRST);
        bell.get().ring(relay.get(), FIRST);
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), Some(FIRST));
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), None);
        relay.get().is_out(true);
        bell.get().ring(relay.get(), FIRST);
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), Some(FIRST));
    }

    #[test]
    fn what_is_woken_before_it_is_committed_says_so() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(bell.get(), FIRST, Sharing::All);
        assert!(relay.get().prepare().wake());
        assert!(!relay.get().commit());
    }

    #[test]
    fn a_waker_of_a_former_owner_does_nothing() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(bell.get(), FIRST, Sharing::All);
        let old = relay.get().prepare();
        assert!(relay.get().commit());
        drop(relay);
        let _next = OwnedRelay::new(bell.get(), SECOND, Sharing::All);
        assert!(!old.wake());
        assert!(bell.get().rung.with(|rung| rung.is_empty()));
    }
}

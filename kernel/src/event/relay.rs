//! [`Relay`]: a waker that stands for no task. When it is woken it notes that in a [`Bell`] and wakes who waits there.
//!
//! Both are *type-stable*, as wait slots must be: taken from a pool, never freed. [`OwnedRelay`] and [`OwnedBell`] give theirs back when they
//! are dropped; wakers of a former owner do nothing then, because their wait is over.
//!
//! Lock order: a relay's target, then nothing; a bell's list, then nothing. Both are called with other locks held by nobody.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use refs::{SpinLock, WaitList, WakeSlot, Waker};

/// Which of a bell's relays rang: the descriptor and the address of the description, for epoll.
pub type Key = (i32, usize);

/// What relays ring.
#[derive(Default)]
pub struct Bell {
    /// Which relays rang, each at most once per arming.
    pub rung: SpinLock<VecDeque<Key>>,
    /// Who waits for one to ring.
    pub waiters: WaitList,
}

impl Bell {
    /// Notes that a relay rang.
    pub fn ring(&self, key: Key) {
        self.rung.with(|rung| rung.push_back(key));
        self.waiters.wake_all();
    }
}

/// A waker without a task.
pub struct Relay {
    slot: WakeSlot,
    target: SpinLock<Option<(&'static Bell, Key)>>,
}

struct Pool {
    all: Vec<&'static Relay>,
    free: Vec<usize>,
}

static RELAYS: SpinLock<Pool> = SpinLock::new(Pool { all: Vec::new(), free: Vec::new() });
static BELLS: SpinLock<Vec<&'static Bell>> = SpinLock::new(Vec::new());

fn woken(slot: &'static WakeSlot) {
    let relay = RELAYS.with(|pool| pool.all.get(slot.token()).copied());
    if let Some((bell, key)) = relay.and_then(|relay| relay.target.with(|target| *target)) {
        bell.ring(key);
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
    pub fn new(bell: &'static Bell, key: Key) -> Self {
        let relay = RELAYS.with(|pool| match pool.free.pop() {
            Some(index) => pool.all[index],
            None => {
                let slot = WakeSlot::with_token(woken, pool.all.len());
                let relay: &'static Relay = Box::leak(Box::new(Relay { slot, target: SpinLock::new(None) }));
                pool.all.push(relay);
                relay
            }
        });
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

    #[test]
    fn a_relay_rings_once_for_each_arming() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(bell.get(), (3, 4));
        let waker = relay.get().prepare();
        assert!(relay.get().commit());
        assert!(waker.wake());
        assert!(!waker.wake());
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), Some((3, 4)));
        assert_eq!(bell.get().rung.with(|rung| rung.pop_front()), None);
    }

    #[test]
    fn what_is_woken_before_it_is_committed_says_so() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(bell.get(), (0, 0));
        assert!(relay.get().prepare().wake());
        assert!(!relay.get().commit());
    }

    #[test]
    fn a_waker_of_a_former_owner_does_nothing() {
        let bell = OwnedBell::new();
        let relay = OwnedRelay::new(bell.get(), (1, 1));
        let old = relay.get().prepare();
        assert!(relay.get().commit());
        drop(relay);
        let _next = OwnedRelay::new(bell.get(), (2, 2));
        assert!(!old.wake());
        assert!(bell.get().rung.with(|rung| rung.is_empty()));
    }
}

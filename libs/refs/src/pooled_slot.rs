//! [`PooledSlot`]: a wake slot that stands for no task, and whose memory goes back after a peak.
//!
//! A waker may be kept for ever, so a slot must stay readable for ever. The slots here lie in pages of which a provider may take the memory
//! ([`link_pages`](crate::link_pages)): a page without an owned slot reads as zeros from then on, and of zeros every waker finds that its wait is
//! over.
//!
//! *No wait's number is used twice at an address.* A slot's end notes the number of its last wait in a counter that all slots share, and
//! a new slot's waits begin after it, whether or not the memory was away in between.
//!
//! *Whoever has a reference can do no harm.* All that a [`Pooled`] offers is loads, and exchanges that expect what is not zero: of a slot
//! without memory they find and change nothing; of one that has another owner by now they may end or begin a wait that is not theirs,
//! which a slot's function must expect.

use core::fmt;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::sync::{AtomicU64, global};
use crate::wait::FIRST_WAIT;
use crate::{SpinLock, WakeSlot, Waker};

/// How many words a pooled slot has.
pub const WORDS: usize = 4;

/// A slot and what its owner has noted there. It may have no owner any more: then it does nothing.
#[repr(C)]
pub struct Pooled {
    /// First, so that its address is that of the whole. Its token is the next free slot.
    wake: WakeSlot,
    /// A `fn(&'static Pooled)`.
    rang: AtomicPtr<()>,
    words: [AtomicUsize; WORDS],
}

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
type FreeSlots = crate::link_pages::Paged<Pooled>;

/// Loom's and shuttle's atomics have no zeros.
#[cfg(any(ebb_loom, ebb_shuttle))]
struct FreeSlots(alloc::vec::Vec<&'static Pooled>);

#[cfg(any(ebb_loom, ebb_shuttle))]
impl FreeSlots {
    const fn new() -> Self {
        FreeSlots(alloc::vec::Vec::new())
    }

    fn take(&mut self) -> &'static Pooled {
        self.0.pop().unwrap_or_else(|| {
            alloc::boxed::Box::leak(alloc::boxed::Box::new(Pooled {
                wake: WakeSlot::new(ring),
                rang: AtomicPtr::default(),
                words: Default::default(),
            }))
        })
    }

    fn give(&mut self, slot: &'static Pooled) {
        self.0.push(slot);
    }
}

global! {
    static FREE: SpinLock<FreeSlots> = SpinLock::new(FreeSlots::new());
}
global! {
    /// No slot that has ended had a later wait.
    static LAST_WAIT: AtomicU64 = AtomicU64::new(FIRST_WAIT);
}

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub(crate) fn set_provider(provider: &'static dyn crate::link_pages::LinkPages) {
    FREE.with(|free| free.set_provider(provider));
}

// SAFETY: zeros are a slot without functions in its first wait; all of it is atomics; what has no owner is looked at by `Waker`'s and
// `Pooled`'s functions only, which load, and exchange what is not zero (the module's comment).
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
unsafe impl crate::link_pages::Paging for Pooled {
    #[inline(always)]
    fn next(&self) -> usize {
        self.wake.token()
    }

    #[inline(always)]
    fn set_next(&self, next: usize) {
        self.wake.set_token(next);
    }
}

/// Called by a waker: the slot's wait was on.
fn ring(slot: &'static WakeSlot) {
    // SAFETY: slots with this function are the first field of a `Pooled`, which was exposed as a whole, and can be read for ever.
    let slot: &'static Pooled = unsafe { &*core::ptr::with_exposed_provenance(core::ptr::from_ref(slot).addr()) };
    let rang = slot.rang.load(Ordering::Acquire);
    if !rang.is_null() {
        // SAFETY: nothing but null and such functions is ever stored there.
        let rang: fn(&'static Pooled) = unsafe { core::mem::transmute(rang) };
        rang(slot);
    }
}

impl Pooled {
    /// Begins a wait: the waker is to be entered wherever something may happen, then comes [`commit`](Self::commit).
    #[inline]
    pub fn prepare(&'static self) -> Waker {
        self.wake.prepare_if_owned()
    }

    /// The waker calls the slot's function from now on; false if it was woken since [`prepare`](Self::prepare), which called nothing.
    #[inline]
    pub fn commit(&self) -> bool {
        self.wake.commit()
    }

    /// Ends the wait: its waker does nothing from here on.
    #[inline]
    pub fn finish(&self) {
        self.wake.finish_if_owned();
    }

    /// Says that the wake-up reached nobody: see [`WakeSlot::decline`].
    pub fn decline(&self) {
        self.wake.decline();
    }

    /// What is in a word: what its last owner had there, or 0, if the slot has none now.
    ///
    /// # Panics
    /// If there is no such word.
    #[inline(always)]
    pub fn word(&self, index: usize) -> usize {
        self.words[index].load(Ordering::Acquire)
    }

    /// Puts `new` into a word if `old` is there, and `old` is not 0. Whether it did.
    ///
    /// # Panics
    /// If there is no such word.
    #[inline]
    pub fn exchange(&self, index: usize, old: usize, new: usize) -> bool {
        old != 0 && self.words[index].compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl fmt::Debug for Pooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pooled").field("wake", &self.wake).field("words", &self.words).finish_non_exhaustive()
    }
}

/// A slot of one's own. Dropping it ends its wait; wakers of it do nothing from then on.
#[derive(Debug)]
pub struct PooledSlot(&'static Pooled);

impl PooledSlot {
    /// A slot whose wakers call `rang`, in the middle of whatever wakes them: a panic ends the program. `rang` finds `words` there; another thread that
    /// wakes while the slot is dropped may call it after that, with these words, zeros, or another slot's. Of exclusive slots [`WaitList::wake`](crate::WaitList::wake)
    /// wakes one only.
    pub fn new(rang: fn(&'static Pooled), words: [usize; WORDS], is_exclusive: bool) -> Self {
        let slot = FREE.with(FreeSlots::take);
        core::ptr::from_ref(slot).expose_provenance();
        for (place, word) in slot.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        slot.rang.store(rang as *mut (), Ordering::Release);
        // Who has ended the slot before has noted its number before it gave the slot back.
        slot.wake.begin_anew(ring, LAST_WAIT.load(crate::sync::Ordering::Relaxed), is_exclusive);
        PooledSlot(slot)
    }

    /// The slot, for as long as anybody likes.
    #[inline(always)]
    pub fn get(&self) -> &'static Pooled {
        self.0
    }

    /// Puts `value` into a word.
    ///
    /// # Panics
    /// If there is no such word.
    #[inline(always)]
    pub fn set_word(&self, index: usize, value: usize) {
        self.0.words[index].store(value, Ordering::Release);
    }
}

impl Drop for PooledSlot {
    fn drop(&mut self) {
        let last = self.0.wake.end();
        // Usually it is not the last of all.
        if last > LAST_WAIT.load(crate::sync::Ordering::Relaxed) {
            LAST_WAIT.fetch_max(last, crate::sync::Ordering::Relaxed);
        }
        FREE.with(|free| free.give(self.0));
    }
}

#[cfg(all(test, not(any(ebb_loom, ebb_shuttle))))]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn count(slot: &'static Pooled) {
        let old = slot.word(0);
        slot.exchange(0, old, old + 1);
    }

    #[test]
    fn a_waker_calls_the_function_once_for_each_wait() {
        let slot = PooledSlot::new(count, [1, 7, 0, 0], false);
        for round in 2..5 {
            let waker = slot.get().prepare();
            assert!(slot.get().commit());
            assert!(waker.wake() && !waker.wake());
            assert_eq!((slot.get().word(0), slot.get().word(1)), (round, 7));
        }
    }

    #[test]
    fn wakers_of_slots_that_are_gone_do_nothing_whoever_has_them_now() {
        let mut old: Vec<Waker> = Vec::new();
        for round in 0..5 {
            let slots: Vec<PooledSlot> =
                (0..1000 * (round % 3 + 1)).map(|_| PooledSlot::new(count, [1, 0, 0, 0], false)).collect();
            for slot in &slots {
                for _ in 0..round {
                    old.push(slot.get().prepare());
                }
                assert!(round == 0 || slot.get().commit());
            }
            drop(slots);
            let slots: Vec<PooledSlot> = (0..2000).map(|_| PooledSlot::new(count, [1, 0, 0, 0], false)).collect();
            slots.iter().for_each(|slot| assert!(slot.get().prepare().is_waiting() && slot.get().commit()));
            assert!(old.iter().all(|waker| !waker.is_waiting() && !waker.wake()));
            assert!(slots.iter().all(|slot| slot.get().word(0) == 1));
        }
    }

    #[test]
    fn a_reference_that_outlives_its_slot_begins_and_ends_no_wait() {
        let slot = PooledSlot::new(count, [3, 0, 0, 0], true);
        slot.set_word(1, 5);
        assert_eq!(slot.get().word(1), 5);
        assert!(!slot.get().exchange(0, 2, 4) && !slot.get().exchange(2, 0, 4));
        let left = slot.get();
        drop(slot);
        let waker = left.prepare();
        assert!(!left.commit() && !waker.is_waiting() && !waker.wake());
        left.finish();
        left.decline();
    }
}

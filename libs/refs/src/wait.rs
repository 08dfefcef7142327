//! Waiting: a task prepares a wait, enters its [`Waker`] wherever something may happen, and parks; the first wake-up of that
//! wait counts, all later ones find that the wait is over and do nothing.
//!
//! A [`WakeSlot`] belongs to one task and is *type-stable*: it is never freed, only reused for another task, so a waker may be
//! kept anywhere for ever (a [pooled](crate::PooledSlot) one's memory goes back after a peak, and reads as zeros). It counts waits (epochs); a waker names one wait. Nobody has to take a waker out of a list again:
//! [`WaitList`] throws out those whose wait is over when it needs room.
//!
//! ```text
//!            prepare              commit                      wake
//!   Idle  ------------>  Armed  ----------->  Parked  ----------------->  Notified (and the task is made ready)
//!     ^                    |  wake                                           |
//!     |                    `---------------->  Notified  (commit fails)      |
//!     `---------------------------- finish ----------------------------------'
//! ```

use core::fmt;
use core::hash::{Hash, Hasher};
use core::sync::atomic;

use crate::object::MustNotPanic;
use crate::sync::{AtomicU64, Ordering, const_fn};
use crate::wait_queue::WaitQueue;
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
use crate::wake_later::LATER;
use crate::wake_later::WakeLater;
use crate::{NoSuspend, Shared, SpinLock, StrongRc};

const PHASE: u64 = 3;
const IDLE: u64 = 0;
const ARMED: u64 = 1;
const PARKED: u64 = 2;
const NOTIFIED: u64 = 3;
const EPOCH: u64 = 4;
/// Of such waits [`WaitList::wake`] wakes one only. A part of the wait's number.
const EXCLUSIVE: u64 = 1 << 63;
/// What ended the wait reached nobody: no waker, or one that was declined.
const DECLINED: u64 = 1 << 62;
/// All that is not the number of a wait.
const FLAGS: u64 = PHASE | EXCLUSIVE | DECLINED;
/// What the first wait of a pooled slot comes after.
pub(crate) const FIRST_WAIT: u64 = EPOCH;

/// Where one task's waits are counted.
#[derive(Debug)]
#[repr(C)]
pub struct WakeSlot {
    /// The number of the wait, and in the two lowest bits its phase.
    state: AtomicU64,
    /// Makes the parked task ready to run: a `fn(&'static WakeSlot)`; null where the memory of a pooled slot has gone back. Called in the middle of
    /// whatever wakes it: it must not panic, which would end the program.
    make_ready: atomic::AtomicPtr<()>,
    /// Tells `make_ready` which slot it is, where it cannot know from the address.
    token: atomic::AtomicUsize,
}

impl WakeSlot {
    const_fn! {
        /// A slot whose task is made ready by `make_ready`, which is called in the middle of whatever wakes it: a panic ends the
        /// program.
        pub fn new(make_ready: fn(&'static WakeSlot)) -> Self {
            Self::with_token(make_ready, 0)
        }
    }

    const_fn! {
        /// A slot that `make_ready` recognises by `token`, for wakers that do not stand for a task.
        pub fn with_token(make_ready: fn(&'static WakeSlot), token: usize) -> Self {
            WakeSlot {
                state: AtomicU64::new(IDLE),
                make_ready: atomic::AtomicPtr::new(make_ready as *mut ()),
                token: atomic::AtomicUsize::new(token),
            }
        }
    }

    /// What [`with_token`](Self::with_token) was given.
    #[inline(always)]
    pub fn token(&self) -> usize {
        self.token.load(atomic::Ordering::Relaxed)
    }

    /// Makes a slot of which all that was left is its address into a new one, whose waits come after the wait of number `last`.
    pub(crate) fn begin_anew(&self, make_ready: fn(&'static WakeSlot), last: u64, is_exclusive: bool) {
        self.make_ready.store(make_ready as *mut (), atomic::Ordering::Relaxed);
        self.state.store((last & !FLAGS) | if is_exclusive { EXCLUSIVE } else { 0 }, Ordering::Release);
    }

    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    pub(crate) fn set_token(&self, token: usize) {
        self.token.store(token, atomic::Ordering::Relaxed);
    }

    /// The slot has no owner any more: its wait is over, and no other begins before [`begin_anew`](Self::begin_anew). The number of the last.
    pub(crate) fn end(&self) -> u64 {
        self.state.swap(IDLE, Ordering::AcqRel) & !FLAGS
    }

    /// As [`prepare`](Self::prepare), for whoever cannot know whether the slot still has an owner; if not it begins no wait.
    pub(crate) fn prepare_if_owned(&'static self) -> Waker {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & !FLAGS != 0 {
            let epoch = (state & !(PHASE | DECLINED)) + EPOCH;
            match self.state.compare_exchange(state, epoch | ARMED, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Waker { slot: self, epoch },
                Err(now) => state = now,
            }
        }
        // Of no wait.
        Waker { slot: self, epoch: 0 }
    }

    /// As [`finish`](Self::finish), for whoever cannot know whether the slot still has an owner.
    pub(crate) fn finish_if_owned(&self) {
        let mut state = self.state.load(Ordering::Acquire);
        while state & PHASE != IDLE {
            match self.state.compare_exchange(state, state & !PHASE, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }

    /// Says whether [`WaitList::wake`] wakes one of several such waits only. Called while no wait is on.
    pub fn set_exclusive(&self, is_exclusive: bool) {
        let others = self.state.load(Ordering::Relaxed) & !EXCLUSIVE;
        self.state.store(if is_exclusive { others | EXCLUSIVE } else { others }, Ordering::Release);
    }

    /// Says that the wake-up reached nobody: [`WaitList::wake`] wakes the next exclusive wait too. Called by `make_ready`, of a slot that does
    /// not stand for a task.
    pub fn decline(&self) {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & PHASE == NOTIFIED {
            match self.state.compare_exchange(state, state | DECLINED, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }

    /// Begins the task's next wait. Called by the task itself.
    ///
    /// What the task looks at after this and before it parks need not be behind a lock: whoever changes it (sequentially consistent) and
    /// [interrupts](Self::interrupt) then finds the wait, or the task sees the change.
    #[inline(always)]
    pub fn prepare(&'static self) -> Waker {
        let epoch = (self.state.load(Ordering::Relaxed) & !(PHASE | DECLINED)) + EPOCH;
        self.state.store(epoch | ARMED, Ordering::SeqCst);
        Waker { slot: self, epoch }
    }

    /// The task is about to leave the core: true if it may, false if it was woken meanwhile. Then it sees what was done before that.
    #[inline(always)]
    pub fn commit(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        state & PHASE == ARMED
            && self
                .state
                .compare_exchange(state, (state & !PHASE) | PARKED, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// Ends the wait: wakers of it do nothing from here on. Called by the task itself. Whether it had been woken, as far as it knows; then it
    /// sees what was done before that.
    #[inline(always)]
    pub fn finish(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        self.state.store(state & !PHASE, Ordering::Release);
        state & PHASE == NOTIFIED
    }

    /// As [`finish`](Self::finish); whether the wait was [interrupted](Self::interrupt): then no waker has ended it, nor has any lost its wake-up to it.
    #[inline(always)]
    pub fn finish_interrupted(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        self.state.store(state & !PHASE, Ordering::Release);
        state & (PHASE | DECLINED) == NOTIFIED | DECLINED
    }

    /// Ends the wait unless it was woken already: true if it was not, and no waker can wake it any more. Called by the thread on which the task is.
    pub fn withdraw(&self) -> bool {
        let mut state = self.state.load(Ordering::Acquire);
        while matches!(state & PHASE, ARMED | PARKED) {
            match self.state.compare_exchange(state, state & !PHASE, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    #[inline(always)]
    fn call_make_ready(&'static self) {
        let make_ready = self.make_ready.load(atomic::Ordering::Acquire);
        if !make_ready.is_null() {
            // SAFETY: nothing but null and such functions is ever stored there.
            let make_ready: fn(&'static WakeSlot) = unsafe { core::mem::transmute(make_ready) };
            make_ready(self);
        }
    }

    /// Whether the task has left the core and waits.
    pub fn is_parked(&self) -> bool {
        self.state.load(Ordering::Acquire) & PHASE == PARKED
    }

    /// Wakes the task from whatever wait it is in; false if it is in none.
    pub fn interrupt(&'static self) -> bool {
        Waker { slot: self, epoch: self.state.load(Ordering::SeqCst) & !PHASE }.end(NOTIFIED | DECLINED)
    }
}

/// One wait of one task: who has it can end that wait, once.
#[derive(Clone, Copy)]
pub struct Waker {
    slot: &'static WakeSlot,
    epoch: u64,
}

impl Waker {
    /// Ends the wait; false if it was over already.
    pub fn wake(self) -> bool {
        self.end(NOTIFIED)
    }

    #[inline(always)]
    fn end(self, how: u64) -> bool {
        loop {
            let state = self.slot.state.load(Ordering::SeqCst);
            if state & !PHASE != self.epoch {
                return false;
            }
            let phase = state & PHASE;
            if phase != ARMED && phase != PARKED {
                return false;
            }
            if self.slot.state.compare_exchange(state, self.epoch | how, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                if phase == PARKED {
                    let must_end = MustNotPanic("what makes a task ready");
                    self.slot.call_make_ready();
                    core::mem::forget(must_end);
                }
                return true;
            }
        }
    }

    /// Whether the wait was ended by a wake-up, and the task has not run since.
    pub fn is_woken(self) -> bool {
        self.slot.state.load(Ordering::Acquire) == self.epoch | NOTIFIED
    }

    /// Whether the wait is still on.
    #[inline]
    pub fn is_waiting(self) -> bool {
        let state = self.slot.state.load(Ordering::Acquire);
        state & !PHASE == self.epoch && matches!(state & PHASE, ARMED | PARKED)
    }
}

impl Waker {
    pub(crate) fn is_exclusive(self) -> bool {
        self.epoch & EXCLUSIVE != 0
    }

    #[cfg(all(test, not(any(ebb_loom, ebb_shuttle))))]
    pub(crate) fn slot(self) -> &'static WakeSlot {
        self.slot
    }

    /// What makes it this wait's and no other's.
    fn identity(self) -> (usize, u64) {
        (core::ptr::from_ref(self.slot).addr(), self.epoch)
    }
}

impl PartialEq for Waker {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Waker {}

impl Hash for Waker {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").field("slot", &core::ptr::from_ref(self.slot)).field("epoch", &self.epoch).finish()
    }
}

/// Who waits for something, first come first served. Whoever still waits when the list ends is woken, and finds gone what it waits for.
#[derive(Debug, Default)]
pub struct WaitList {
    waiters: SpinLock<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    /// Nearly all lists have at most one waiter: it needs no allocation.
    first: Option<Waker>,
    rest: WaitQueue,
}

/// So many waits that are over go at once where they stand before all others.
const OVER_AT_ONCE: usize = 512;

impl Waiters {
    #[inline]
    fn push(&mut self, waker: Waker) {
        if self.first.is_some_and(|first| !first.is_waiting()) {
            self.first = self.rest.pop_behind_over(OVER_AT_ONCE);
        }
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.rest.push(waker),
        }
    }

    fn pop(&mut self) -> Option<Waker> {
        let first = self.first.take()?;
        self.first = self.rest.pop();
        Some(first)
    }

    /// Whether one of them may be exclusive.
    fn have_exclusive(&self) -> bool {
        self.first.is_some_and(Waker::is_exclusive) || self.rest.has_exclusive()
    }

    /// Takes out all that are not exclusive.
    fn take_shared(&mut self) -> WaitQueue {
        let mut all = core::mem::take(self);
        let mut shared = WaitQueue::new();
        while let Some(waker) = all.pop() {
            if !waker.is_exclusive() {
                shared.push(waker);
            } else if waker.is_waiting() {
                self.push(waker);
            }
        }
        shared
    }
}

impl WaitList {
    const_fn! {
        /// An empty list.
        pub fn new() -> Self {
            WaitList { waiters: SpinLock::new(Waiters { first: None, rest: WaitQueue::new() }) }
        }
    }

    /// Enters a wait, behind all others.
    #[inline]
    pub fn register(&self, waker: Waker, _cx: &impl NoSuspend) {
        self.enter(waker);
    }

    /// As `register`, for those who have no context.
    #[inline]
    pub(crate) fn enter(&self, waker: Waker) {
        self.waiters.with(|waiters| waiters.push(waker));
    }

    /// Wakes the one that has waited longest; false if nobody waits.
    #[inline]
    pub fn wake_one(&self) -> bool {
        while let Some(waker) = self.waiters.with(Waiters::pop) {
            if waker.wake() {
                return true;
            }
        }
        false
    }

    /// Wakes the one that has waited longest of those whose tasks have left their cores, and those before it that were about to. `None` if there are only such ones.
    pub fn wake_first_parked(&self) -> Option<Waker> {
        while let Some(waker) = self.waiters.with(Waiters::pop) {
            let is_parked = waker.slot.is_parked();
            if waker.wake() && is_parked {
                return Some(waker);
            }
        }
        None
    }

    /// Wakes all, but of those that are exclusive ([`WakeSlot::set_exclusive`]) only the one that has waited longest: for what one of them
    /// alone can take. How many there were. Whoever has [others wake](crate::WakeLater) what he ends wakes the first of several, and has all others woken.
    #[inline]
    pub fn wake(&self) -> usize {
        enum Few {
            None,
            One(Waker),
            More,
        }
        let few = self.waiters.with(|waiters| match waiters.first {
            None => Few::None,
            Some(first) if waiters.rest.is_empty() => {
                waiters.first = None;
                Few::One(first)
            }
            Some(_) => Few::More,
        });
        match few {
            Few::None => 0,
            Few::One(waker) => usize::from(waker.wake()),
            Few::More => self.wake_several(),
        }
    }

    #[inline(never)]
    fn wake_several(&self) -> usize {
        #[cfg(not(any(ebb_loom, ebb_shuttle)))]
        if LATER.is_for_running() {
            return self.wake_first_of(&LATER);
        }
        let (first, shared) = self.waiters.with(|waiters| match waiters.have_exclusive() {
            true => (None, waiters.take_shared()),
            false => (waiters.first.take(), core::mem::take(&mut waiters.rest)),
        });
        let mut woken = usize::from(first.is_some_and(Waker::wake)) + wake_in_pieces(shared);
        // All that are left are exclusive, or came meanwhile, which may be too early for them but never too late.
        while let Some(waker) = self.waiters.with(Waiters::pop) {
            if waker.wake() {
                woken += 1;
                if waker.is_exclusive() && waker.slot.state.load(Ordering::Relaxed) & DECLINED == 0 {
                    break;
                }
            }
        }
        woken
    }

    /// Wakes all, in the order in which they came; how many there were. Whoever has [others wake](crate::WakeLater) what he ends wakes the first only. Of very many (above
    /// [`AT_ONCE`](Self::AT_ONCE)) the others are woken in pieces as dead objects are freed. So no caller is kept for long.
    #[inline]
    pub fn wake_all(&self) -> usize {
        let Some((first, rest)) = self.take_all() else { return 0 };
        usize::from(first.wake()) + wake_in_pieces(rest)
    }

    /// Wakes the first, and has the others woken in their order by whoever serves `later`; how many there were.
    pub fn wake_first_of(&self, later: &WakeLater) -> usize {
        let Some((first, rest)) = self.take_all() else { return 0 };
        usize::from(first.wake()) + later.leave(rest)
    }

    #[inline(always)]
    fn take_all(&self) -> Option<(Waker, WaitQueue)> {
        self.waiters.with(|waiters| waiters.first.take().map(|first| (first, core::mem::take(&mut waiters.rest))))
    }

    /// So many wake-ups are one piece of work.
    pub const AT_ONCE: usize = 256;

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.with(|waiters| {
            !waiters.first.is_some_and(Waker::is_waiting) && !waiters.rest.iter().any(|waker| waker.is_waiting())
        })
    }
}

impl Drop for WaitList {
    /// Whoever still waits for what ends with it looks again, and finds it gone: nobody who entered the list just before sleeps for ever.
    #[inline]
    fn drop(&mut self) {
        if self.waiters.get_mut().first.is_some() {
            self.wake_all();
        }
    }
}

/// Wakes all; the first of them now. How many there were.
#[inline(always)]
fn wake_in_pieces(wakers: WaitQueue) -> usize {
    if wakers.is_empty() { 0 } else { wake_many(wakers) }
}

#[cold]
#[inline(never)]
fn wake_many(mut wakers: WaitQueue) -> usize {
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    if LATER.is_for_running() {
        return LATER.leave(wakers);
    }
    let mut woken = 0;
    wakers.take_first(WaitList::AT_ONCE, |waker| woken += usize::from(waker.wake()));
    if wakers.is_empty() {
        return woken;
    }
    let left = wakers.len();
    drop(StrongRc::<_, Shared>::new(NotYetWoken(wakers)));
    woken + left
}

/// Wakers whose turn comes when this is freed.
struct NotYetWoken(WaitQueue);

impl Drop for NotYetWoken {
    fn drop(&mut self) {
        wake_in_pieces(core::mem::take(&mut self.0));
    }
}

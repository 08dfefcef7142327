//! [`AweRef`]: a task's name.

use core::cmp;
use core::fmt;
use core::hash::{Hash, Hasher};

use super::layout::{Awe, NEXT_LIFE, Runtime, awe_flags, states};
use super::runtime::is_own;
use crate::atomic::Ordering;

/// The name of a task. It may be kept anywhere, sent to any thread and outlive its task, which is harmless: what is asked of a
/// task that has ended is refused.
#[derive(Clone, Copy)]
pub struct AweRef {
    pub(crate) awe: &'static Awe,
    /// Its life, without a state.
    pub(crate) life: u64,
}

/// The task cannot be resumed by its name: it has ended, or it runs, or waits for something else (the end of a block, a waker).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSuspended;

impl fmt::Display for NotSuspended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task is not suspended in a way that its name may end")
    }
}

impl core::error::Error for NotSuspended {}

impl AweRef {
    /// Whether the task has not ended.
    #[inline(always)]
    pub fn is_alive(self) -> bool {
        self.awe.life.load(Ordering::Acquire) & !(NEXT_LIFE - 1) == self.life
    }

    /// Whether the task belongs to the calling thread.
    pub fn is_own(self) -> bool {
        is_own(self.awe.runtime)
    }

    /// Puts a task that [suspended](super::suspend_async) itself at the head of its queue.
    ///
    /// From another thread this is a request, which the owner fulfils at its next suspension; requests are served in the order
    /// in which they come, *behind* what is queued, and one for a task that is not suspended by then is void.
    ///
    /// # Errors
    /// [`NotSuspended`] if the task has ended; on its own thread also if it is not suspended.
    pub fn schedule(self) -> Result<(), NotSuspended> {
        self.schedule_at(Runtime::push_front)
    }

    /// Puts a task that suspended itself at the end of its queue; else as [`schedule`](Self::schedule).
    ///
    /// # Errors
    /// As for [`schedule`](Self::schedule).
    pub fn schedule_back(self) -> Result<(), NotSuspended> {
        self.schedule_at(Runtime::push_back)
    }

    fn schedule_at(self, push: fn(&Runtime, &'static Awe)) -> Result<(), NotSuspended> {
        let runtime = self.awe.runtime;
        if !is_own(runtime) {
            if !self.is_alive() {
                return Err(NotSuspended);
            }
            Runtime::request(self.awe, |old| asked_by_name(old, self.life));
            return Ok(());
        }
        if !self.unpark() {
            return Err(NotSuspended);
        }
        push(runtime, self.awe);
        runtime.make_room();
        Ok(())
    }

    /// Takes the task, which belongs to this thread, out of its parked state; false if it is in another one.
    #[inline(always)]
    pub(crate) fn unpark(self) -> bool {
        let parked = self.awe.life.load(Ordering::Relaxed) == self.life + states::PARKED;
        if parked {
            self.awe.life.store(self.life + states::ACTIVE, Ordering::Relaxed);
        }
        parked
    }
}

/// What is asked of a task's struct once a name of `life` asks too. A name whose task ended since it was looked at does not take the place of one of a
/// later task: lives only grow.
fn asked_by_name(old: u64, life: u64) -> u64 {
    (old & !1).max(life) | old & 1
}

impl AweRef {
    fn key(self) -> (usize, u64) {
        (core::ptr::from_ref(self.awe).addr(), self.life)
    }
}

impl PartialEq for AweRef {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for AweRef {}

/// Some order: of which task is not said.
impl Ord for AweRef {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for AweRef {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for AweRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for AweRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AweRef({:p}, {})", self.awe, self.life / NEXT_LIFE)
    }
}

impl Awe {
    /// The task's name. Only the owning thread gives out names.
    #[inline(always)]
    pub(crate) fn reference(&'static self) -> AweRef {
        let flags = self.flags.get();
        if flags & awe_flags::NAMED == 0 {
            self.flags.set(flags | awe_flags::NAMED);
        }
        AweRef { awe: self, life: self.life.load(Ordering::Relaxed) & !(NEXT_LIFE - 1) }
    }

    /// Gives out a name that was kept where it does not count as given out. It may be void: then it stays so.
    pub(crate) fn reference_if(&'static self, name: AweRef) -> AweRef {
        if name.is_alive() {
            self.reference();
        }
        name
    }

    /// One of [`states`].
    #[inline(always)]
    pub(crate) fn state(&self) -> u64 {
        self.life.load(Ordering::Relaxed) & (NEXT_LIFE - 1)
    }

    /// The running task, which is active, parks.
    #[inline(always)]
    pub(crate) fn park(&self) {
        let active = self.life.load(Ordering::Relaxed);
        self.life.store(active + (states::PARKED - states::ACTIVE), Ordering::Relaxed);
    }

    /// By the owner.
    #[inline(always)]
    pub(crate) fn set_state(&self, state: u64) {
        self.life.store(self.life.load(Ordering::Relaxed) & !(NEXT_LIFE - 1) | state, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_late_takes_no_later_name_s_request_back() {
        let (earlier, later) = (5 * NEXT_LIFE, 6 * NEXT_LIFE);
        for waker in [0, 1] {
            assert_eq!(asked_by_name(waker, earlier), earlier | waker);
            assert_eq!(asked_by_name(earlier | waker, later), later | waker);
            assert_eq!(asked_by_name(later | waker, earlier), later | waker);
        }
    }
}

//! Waiting without work: spin as long as that has been paying, then sleep until rung.
//!
//! Nothing here sends or receives: [`Waiter::wait`] is given a *step* that tries once and says whether it succeeded, so the same
//! loop serves calls, requests, both rings, and any of them together.

use core::hint::spin_loop;
use core::time::Duration;

use crate::{Error, Link};

/// How an end sleeps and how it wakes the other: a futex or an eventfd on Linux, an interrupt between processors in a kernel.
///
/// A ring must not get lost: a sleep that begins with what [`arm`](Doorbell::arm) gave returns at once if the end was rung since.
/// A sleep may always end too early.
pub trait Doorbell {
    /// The time on a clock that only moves forward.
    fn now(&self) -> Duration;

    /// To be called before the last look at what is waited for; gives what [`sleep`](Doorbell::sleep) wants.
    fn arm(&self, link: &Link) -> u64;

    /// Sleeps until this end is rung, or until the clock shows `deadline`.
    fn sleep(&self, link: &Link, armed: u64, deadline: Option<Duration>);

    /// Wakes the peer.
    fn ring(&self, link: &Link);

    /// Wakes this end, from another thread.
    fn ring_own(&self, link: &Link);
}

/// How long to spin before sleeping, learnt from what happened before.
///
/// A wait that ended while spinning moves the limit towards twice what it took; one that had to sleep halves it, down to an eighth
/// of the most. Now and then the most is tried again, since who sleeps does not learn that the peer has become quick. So an end
/// whose peer answers at once never sleeps, and one that waits for seconds spins for a few microseconds before.
#[derive(Clone, Debug)]
pub struct Patience {
    limit: u32,
    most: u32,
    /// How many waits in a row had to sleep.
    in_vain: u32,
}

impl Patience {
    /// Spins at most `most` times; 0 is right where the peer needs this very core.
    pub const fn new(most: u32) -> Patience {
        Patience { limit: most, most, in_vain: 0 }
    }

    /// How often to try before sleeping.
    pub fn limit(&self) -> u32 {
        if self.in_vain % 16 == 15 { self.most } else { self.limit }
    }

    /// The wait ended after so many tries.
    pub fn paid(&mut self, tries: u32) {
        self.in_vain = 0;
        let wanted = tries.saturating_mul(2).clamp(self.most / 8, self.most);
        self.limit = if wanted > self.limit { wanted } else { self.limit - (self.limit - wanted) / 8 };
    }

    /// The wait had to sleep.
    pub fn was_in_vain(&mut self) {
        self.in_vain = self.in_vain.wrapping_add(1);
        self.limit = (self.limit / 2).max(self.most / 8);
    }
}

impl Default for Patience {
    /// Some tens of microseconds: about what a sleep and a wake-up cost.
    fn default() -> Patience {
        Patience::new(4_000)
    }
}

/// Waits for whatever comes over one connection.
#[derive(Clone, Debug)]
pub struct Waiter<B> {
    bell: B,
    patience: Patience,
}

impl<B: Doorbell> Waiter<B> {
    /// Waits with this doorbell.
    pub fn new(bell: B, patience: Patience) -> Self {
        Waiter { bell, patience }
    }

    /// The doorbell.
    pub fn bell(&self) -> &B {
        &self.bell
    }

    /// Repeats `step` until it gives something. `deadline` is a time of the doorbell's clock.
    ///
    /// # Errors
    /// Those of `step`, and [`Error::TimedOut`].
    pub fn wait<T>(
        &mut self,
        link: &Link,
        deadline: Option<Duration>,
        mut step: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        for tries in 0..self.patience.limit() {
            if let Some(result) = step()? {
                self.patience.paid(tries);
                return Ok(result);
            }
            spin_loop();
        }
        self.patience.was_in_vain();
        loop {
            let armed = self.bell.arm(link);
            link.will_sleep();
            let result = step();
            let nothing = matches!(result, Ok(None));
            let late = deadline.is_some_and(|deadline| self.bell.now() >= deadline);
            if nothing && !late {
                self.bell.sleep(link, armed, deadline);
            }
            link.is_awake();
            match result? {
                Some(result) => return Ok(result),
                None if late => return Err(Error::TimedOut),
                None => {}
            }
        }
    }

    /// Rings the peer if it sleeps; to be called after something was sent to it, or taken from its ring when it was full.
    #[inline]
    pub fn notify(&self, link: &Link) {
        if link.peer_sleeps() {
            self.bell.ring(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn patience_falls_when_waits_sleep_and_returns_when_they_pay() {
        let mut patience = Patience::new(800);
        assert_eq!(patience.limit(), 800);
        let limits: Vec<u32> = (0..31).map(|_| (patience.was_in_vain(), patience.limit()).1).collect();
        assert_eq!(limits[..4], [400, 200, 100, 100]);
        assert_eq!(limits.iter().filter(|limit| **limit == 800).count(), 2, "the most is tried again: {limits:?}");
        patience.paid(200);
        assert_eq!(patience.limit(), 400);
        patience.paid(5000);
        assert_eq!(patience.limit(), 800);
        for _ in 0..200 {
            patience.paid(10);
        }
        assert!(patience.limit() < 110, "{patience:?}");
    }
}

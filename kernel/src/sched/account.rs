//! [`Account`]: the time on the processor of a process, all of whose tasks are charged to it, who pays for the frames that they take, and with whom they share the processor.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};

use refs::SpinLock;

use super::SCHEDULER;
use super::task::{AccountWords, GROUP, PAYER, TIME};
use crate::error::{Errno, Result};

/// How long the tasks of a process have run, those that have ended too, and whom the frames are charged to that they take. What they are charged to is another process's once the account is dropped:
/// by then each of its tasks has left it ([`leave_account`](super::leave_account)).
pub struct Account(&'static Time);

/// A time in nanoseconds that all cores add to, whom frames are charged to and in which group they are, on a cache line of their own. It lives for ever, for one account after the other: tasks refer to it.
#[repr(align(64))]
struct Time(AccountWords);

impl Deref for Time {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        &self.0[TIME]
    }
}

/// The times of no account, and how many there are in all.
static FREE: SpinLock<(Vec<&'static Time>, usize)> = SpinLock::new((Vec::new(), 0));

impl Account {
    /// An account with no time on it.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> Result<Self> {
        if let Some(time) = FREE.with(|(free, _)| free.pop()) {
            time.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            return Ok(Account(time));
        }
        // There is room for it when it comes back.
        FREE.with(|(free, all)| {
            free.try_reserve(*all + 1).ok()?;
            *all += 1;
            Some(())
        })
        .ok_or(Errno::ENOMEM)?;
        let mut time = Vec::new();
        if time.try_reserve_exact(1).is_err() {
            FREE.with(|(_, all)| *all -= 1);
            return Err(Errno::ENOMEM);
        }
        time.push(Time([const { AtomicU64::new(0) }; 3]));
        Ok(Account(&Box::leak(time.into_boxed_slice())[0]))
    }

    /// What its tasks are charged to.
    pub(super) fn words(&self) -> &'static AccountWords {
        &self.0.0
    }

    /// From now on the frames that its tasks take are charged to this owner (see `frame::mm::work_for`): on all cores, also where they run just now.
    pub fn set_payer(&self, owner: u32) {
        self.0.0[PAYER].store(owner.into(), Ordering::Relaxed);
    }

    /// Whom the frames are charged to that its tasks take; 0: nobody.
    pub fn payer(&self) -> u32 {
        self.0.0[PAYER].load(Ordering::Relaxed) as u32
    }

    /// From now on its tasks share the processor with others as those of this group (0: as those of none), each from when it next becomes ready: see [`super::enter_anew`].
    pub fn set_group(&self, number: u32) {
        self.0.0[GROUP].store(number.into(), Ordering::Relaxed);
    }

    /// In which group its tasks share the processor with others; 0: in none.
    pub fn group(&self) -> u32 {
        self.0.0[GROUP].load(Ordering::Relaxed) as u32
    }

    /// How long its tasks have run, in nanoseconds, where each of them has left it.
    pub fn time_at_end(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// How long its tasks have run, in nanoseconds, until now.
    pub fn time(&self) -> u64 {
        SCHEDULER.charge_tasks_of(self.words());
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        FREE.with(|(free, _)| free.push(self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_account_was_charged_is_no_longer_there_for_the_next_one() {
        let first = Account::new().expect("there is memory");
        first.words()[TIME].fetch_add(500, Ordering::Relaxed);
        assert_eq!(first.time(), 500);
        drop(first);
        let accounts: Vec<_> = (0..3).filter_map(|_| Account::new().ok()).collect();
        assert!(accounts.len() == 3 && accounts.iter().all(|account| account.time() == 0));
    }
}

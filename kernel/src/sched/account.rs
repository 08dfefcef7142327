//! [`Account`]: the time on the processor of a process, all of whose tasks are charged to it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};

use refs::SpinLock;

use super::SCHEDULER;
use crate::error::{Errno, Result};

/// How long the tasks of a process have run, those that have ended too. What they are charged to is another process's once the account is dropped:
/// by then each of its tasks has left it ([`leave_account`](super::leave_account)).
pub struct Account(&'static Time);

/// A time in nanoseconds that all cores add to, on a cache line of its own. It lives for ever, for one account after the other: tasks refer to it.
#[repr(align(64))]
struct Time(AtomicU64);

impl Deref for Time {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        &self.0
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
            time.store(0, Ordering::Relaxed);
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
        time.push(Time(AtomicU64::new(0)));
        Ok(Account(&Box::leak(time.into_boxed_slice())[0]))
    }

    /// What its tasks are charged to.
    pub(super) fn time_word(&self) -> &'static AtomicU64 {
        &self.0.0
    }

    /// How long its tasks have run, in nanoseconds, until now.
    pub fn time(&self) -> u64 {
        SCHEDULER.charge_tasks_of(self.time_word());
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
        first.time_word().fetch_add(500, Ordering::Relaxed);
        assert_eq!(first.time(), 500);
        drop(first);
        let accounts: Vec<_> = (0..3).filter_map(|_| Account::new().ok()).collect();
        assert!(accounts.len() == 3 && accounts.iter().all(|account| account.time() == 0));
    }
}

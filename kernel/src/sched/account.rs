//! [`Account`]: the time on the processor of a process, all of whose tasks are charged to it.

use alloc::vec::Vec;

use super::SCHEDULER;
use crate::error::{Errno, Result};

/// How long the tasks of a process have run, those that have ended too. A task is charged to an account by its number, which is free again once the
/// account is dropped: by then each of its tasks has left it ([`leave_account`](super::leave_account)).
pub struct Account(u32);

/// What no account is charged for: the kernel's own tasks, and threads that have left their process.
pub(super) const NOBODYS: u32 = 0;

/// The times of all accounts, in nanoseconds. An entry without an account says which is the next of these.
pub(super) struct Accounts {
    times: Vec<u64>,
    free: Option<u64>,
}

impl Account {
    /// An account with no time on it.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> Result<Self> {
        SCHEDULER.state.with(|state| state.accounts.open()).map(Account).ok_or(Errno::ENOMEM)
    }

    /// The number by which tasks are charged.
    pub fn number(&self) -> u32 {
        self.0
    }

    /// How long its tasks have run, in nanoseconds, until now.
    pub fn time(&self) -> u64 {
        SCHEDULER.state.with(|state| {
            state.charge_running();
            state.accounts.times.get(self.0 as usize).copied().unwrap_or(0)
        })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        SCHEDULER.state.with(|state| state.accounts.close(self.0));
    }
}

/// The end of the list of free entries.
const NONE: u64 = u64::MAX;

impl Accounts {
    pub const fn new() -> Self {
        Accounts { times: Vec::new(), free: None }
    }

    fn open(&mut self) -> Option<u32> {
        if let Some(number) = self.free {
            let entry = self.times.get_mut(number as usize)?;
            self.free = Some(core::mem::take(entry)).filter(|next| *next != NONE);
            return Some(number as u32);
        }
        if self.times.is_empty() {
            self.times.try_reserve(2).ok()?;
            self.times.push(0);
        }
        self.times.try_reserve(1).ok()?;
        self.times.push(0);
        u32::try_from(self.times.len() - 1).ok()
    }

    fn close(&mut self, number: u32) {
        if let Some(entry) = self.times.get_mut(number as usize) {
            *entry = self.free.replace(number.into()).unwrap_or(NONE);
        }
    }

    /// Charges run time to an account.
    #[inline(always)]
    pub fn charge(&mut self, number: u32, nanoseconds: u64) {
        if let Some(time) = self.times.get_mut(number as usize) {
            *time += nanoseconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_begin_at_zero() {
        let mut accounts = Accounts::new();
        let numbers: Vec<u32> = (0..3).filter_map(|_| accounts.open()).collect();
        assert_eq!(numbers, [1, 2, 3]);
        accounts.charge(2, 500);
        accounts.charge(NOBODYS, 7);
        assert_eq!(accounts.times[2], 500);
        accounts.close(2);
        accounts.close(3);
        assert_eq!((accounts.open(), accounts.open(), accounts.open()), (Some(3), Some(2), Some(4)));
        assert_eq!(accounts.times[1..], [0, 0, 0, 0]);
    }
}

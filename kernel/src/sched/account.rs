//! [`Account`]: the time on the processor of a process, all of whose tasks are charged to it, who pays for the frames that they take, and with whom they share the processor.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refs::SpinLock;

use super::SCHEDULER;
use super::task::{AccountWords, GROUP, PAYER, TIME};
use crate::error::{Errno, Result};

/// How long the tasks of a process have run, those that have ended too, and whom the frames are charged to that they take. What they are charged to is another process's once the account has
/// [ended](Self::end) or is dropped: by then each of its tasks has left it ([`leave_account`](super::leave_account)). So there are as many of these as there were processes with tasks at once, whatever the
/// number of zombies.
pub struct Account {
    /// Another process's, perhaps, once it has ended: who looks just then may see that one's.
    time: &'static Time,
    has_ended: AtomicBool,
    /// Held while it ends, and while words are written.
    changing: SpinLock<()>,
    /// How long its tasks have run, once it has ended.
    at_end: AtomicU64,
}

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
            return Ok(Account::of(time));
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
        Ok(Account::of(&Box::leak(time.into_boxed_slice())[0]))
    }

    fn of(time: &'static Time) -> Self {
        Account { time, has_ended: AtomicBool::new(false), changing: SpinLock::new(()), at_end: AtomicU64::new(0) }
    }

    /// What its tasks are charged to; `None` if it has ended.
    pub(super) fn words(&self) -> Option<&'static AccountWords> {
        (!self.has_ended.load(Ordering::Acquire)).then_some(&self.time.0)
    }

    fn word(&self, which: usize) -> u64 {
        self.words().map_or(0, |words| words[which].load(Ordering::Relaxed))
    }

    fn set_word(&self, which: usize, value: u64) {
        self.changing.with(|()| {
            if let Some(words) = self.words() {
                words[which].store(value, Ordering::Relaxed);
            }
        });
    }

    /// Each of its tasks has left it, and there will be no others: what remains is how long they have run.
    pub fn end(&self) {
        let had_ended = self.changing.with(|()| {
            if !self.has_ended.load(Ordering::Relaxed) {
                self.at_end.store(self.time.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.has_ended.swap(true, Ordering::Release)
        });
        if !had_ended {
            FREE.with(|(free, _)| free.push(self.time));
        }
    }

    /// From now on the frames that its tasks take are charged to this owner (see `frame::mm::work_for`): on all cores, also where they run just now.
    pub fn set_payer(&self, owner: u32) {
        self.set_word(PAYER, owner.into());
    }

    /// Whom the frames are charged to that its tasks take; 0: nobody.
    pub fn payer(&self) -> u32 {
        self.word(PAYER) as u32
    }

    /// From now on its tasks share the processor with others as those of this group (0: as those of none), each from when it next becomes ready: see [`super::enter_anew`].
    pub fn set_group(&self, number: u32) {
        self.set_word(GROUP, number.into());
    }

    /// In which group its tasks share the processor with others; 0: in none.
    pub fn group(&self) -> u32 {
        self.word(GROUP) as u32
    }

    /// How long its tasks have run, in nanoseconds, where each of them has left it.
    pub fn time_at_end(&self) -> u64 {
        self.words().map_or(&self.at_end, |words| &words[TIME]).load(Ordering::Relaxed)
    }

    /// How long its tasks have run, in nanoseconds, until now.
    pub fn time(&self) -> u64 {
        let Some(words) = self.words() else { return self.time_at_end() };
        SCHEDULER.charge_tasks_of(words);
        // It may have ended meanwhile.
        self.time_at_end()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_account_was_charged_is_no_longer_there_for_the_next_one() {
        let first = Account::new().expect("there is memory");
        first.words().expect("it has not ended")[TIME].fetch_add(500, Ordering::Relaxed);
        assert_eq!(first.time(), 500);
        first.end();
        first.set_payer(7);
        assert_eq!((first.time(), first.time_at_end(), first.payer()), (500, 500, 0));
        assert!(first.words().is_none());
        let accounts: Vec<_> = (0..3).filter_map(|_| Account::new().ok()).collect();
        assert!(accounts.len() == 3 && accounts.iter().all(|account| account.time() == 0));
        assert_eq!(first.time(), 500);
    }
}

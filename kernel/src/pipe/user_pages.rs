//! How many pages the pipes of each user may hold: `/proc/sys/fs/pipe-user-pages-soft` and `-hard`, see pipe(7).
//!
//! What counts is what a pipe may hold, not what is in it. A pipe with ends owns its [`PageCharge`]; dropping that gives the pages back.
//!
//! Locks: the users, alone.

use alloc::collections::BTreeMap;

use refs::SpinLock;

use super::{DEFAULT_CAPACITY, PIPE_BUF, max_capacity};
use crate::credentials::{Capability, Credentials, Uid};
use crate::error::{Errno, Result};
use crate::sysctl::Tunable;

/// From so many pages on a user's new pipes are small and none can be enlarged (`/proc/sys/fs/pipe-user-pages-soft`); 0: never.
pub static SOFT_LIMIT: Tunable = Tunable::new(16 * 1024, 0..=u64::MAX);
/// From so many pages on a user gets no more pipes (`/proc/sys/fs/pipe-user-pages-hard`); 0: never.
pub static HARD_LIMIT: Tunable = Tunable::new(0, 0..=u64::MAX);
/// How many pages a new pipe of a user beyond the soft limit holds.
const FEWEST_PAGES: u64 = 2;

/// Pages by user.
static USERS: SpinLock<BTreeMap<u32, u64>> = SpinLock::new(BTreeMap::new());

/// Who makes or enlarges a pipe.
#[derive(Clone, Copy, Debug)]
pub struct PipeUser {
    user: Uid,
    /// The limits on a user's pages do not hold for it.
    exceeds_user_limits: bool,
    /// `/proc/sys/fs/pipe-max-size` does not hold for it.
    pub exceeds_size: bool,
}

impl PipeUser {
    /// A thread with these credentials.
    pub fn new(credentials: &Credentials) -> Self {
        PipeUser {
            user: credentials.users().real,
            exceeds_user_limits: credentials.exceeds_process_limit(),
            exceeds_size: credentials.has(Capability::SysResource),
        }
    }

    fn is_beyond(&self, limit: &Tunable, pages: u64) -> bool {
        limit.get() != 0 && pages > limit.get() && !self.exceeds_user_limits
    }
}

/// The pages that one pipe counts for.
#[derive(Debug)]
pub struct PageCharge {
    user: Uid,
    pages: u64,
    /// Its user had more than half of what it may have, with this one.
    counts_for_others: bool,
}

impl PageCharge {
    /// The pages of a new pipe: fewer than usual for a user who has many.
    ///
    /// # Errors
    /// ENFILE: the user has too many.
    pub fn new(by: PipeUser) -> Result<Self> {
        let usual = if by.exceeds_size { DEFAULT_CAPACITY } else { DEFAULT_CAPACITY.min(max_capacity()) };
        let mut charge = PageCharge { user: by.user, pages: 0, counts_for_others: false };
        let mut all = charge.change_to((usual / PIPE_BUF) as u64);
        if by.is_beyond(&SOFT_LIMIT, all) {
            all = charge.change_to(FEWEST_PAGES.min(charge.pages));
        }
        charge.counts_for_others = by.is_beyond(&SOFT_LIMIT, all * 2) || by.is_beyond(&HARD_LIMIT, all * 2);
        if by.is_beyond(&HARD_LIMIT, all) { Err(Errno::ENFILE) } else { Ok(charge) }
    }

    /// Whether it is to be given back as soon as its pipe is closed: its user has so many that the limits may be in the way of others. So what is
    /// [left](crate::fs::FileEnd) of pipes takes half of what a user may have at most.
    pub fn counts_for_others(&self) -> bool {
        self.counts_for_others
    }

    /// How many bytes the pipe may hold.
    pub fn capacity(&self) -> usize {
        self.pages as usize * PIPE_BUF
    }

    /// Counts another capacity, in bytes.
    ///
    /// # Errors
    /// EPERM: it would be more, and the user has too many.
    pub fn resize(&mut self, capacity: usize, by: PipeUser) -> Result<()> {
        let (old, new) = (self.pages, (capacity / PIPE_BUF) as u64);
        let all = self.change_to(new);
        if new > old && (by.is_beyond(&SOFT_LIMIT, all) || by.is_beyond(&HARD_LIMIT, all)) {
            self.change_to(old);
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    /// Counts a capacity that was counted before.
    pub fn recount(&mut self, capacity: usize) {
        self.change_to((capacity / PIPE_BUF) as u64);
    }

    /// Counts so many pages; how many the user has then.
    fn change_to(&mut self, pages: u64) -> u64 {
        let (user, old) = (self.user.number(), core::mem::replace(&mut self.pages, pages));
        USERS.with(|users| {
            let all = users.entry(user).or_default();
            *all = *all - old + pages;
            let all = *all;
            if all == 0 {
                users.remove(&user);
            }
            all
        })
    }
}

impl Drop for PageCharge {
    fn drop(&mut self) {
        self.change_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn unprivileged(user: u32) -> PipeUser {
        PipeUser { user: Uid::new(user), exceeds_user_limits: false, exceeds_size: false }
    }

    #[test]
    fn beyond_the_soft_limit_pipes_are_small_and_beyond_the_hard_one_there_are_none() {
        let (by, other) = (unprivileged(4711), unprivileged(4712));
        let mut pipes: Vec<_> = (0..1024).map(|_| PageCharge::new(by).unwrap()).collect();
        assert!(pipes.iter().all(|pipe| pipe.capacity() == 65536));
        assert_eq!(PageCharge::new(by).unwrap().capacity(), 8192);
        assert_eq!(PageCharge::new(other).unwrap().capacity(), 65536);
        assert_eq!(PageCharge::new(PipeUser { exceeds_user_limits: true, ..by }).unwrap().capacity(), 65536);
        assert_eq!(pipes[0].resize(131_072, by), Err(Errno::EPERM));
        assert_eq!(pipes[0].capacity(), 65536);
        assert_eq!(pipes[0].resize(4096, by), Ok(()));
        HARD_LIMIT.set(16 * 1024).unwrap();
        pipes.push(PageCharge::new(by).unwrap());
        assert!(PageCharge::new(by).is_ok());
        let mut more: Vec<_> = (0..6).map(|_| PageCharge::new(by).unwrap()).collect();
        assert_eq!(PageCharge::new(by).map(|pipe| pipe.capacity()), Err(Errno::ENFILE));
        HARD_LIMIT.set(0).unwrap();
        more.clear();
        pipes.clear();
        assert!(USERS.with(|users| !users.contains_key(&4711) && !users.contains_key(&4712)));
    }
}

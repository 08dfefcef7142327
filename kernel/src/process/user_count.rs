//! How many processes and threads each user has: for RLIMIT_NPROC, see getrlimit(2).
//!
//! A thread counts for its real user. The first thread of a process is counted by the process, until it is waited for; every other one by itself. Whoever makes one
//! looks at the limit and counts in one step, before anything is made: of two that would both be the last that is allowed, one is refused.
//!
//! Locks: the users, alone.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU32, Ordering};

use refs::SpinLock;

use crate::credentials::Uid;
use crate::error::{Errno, Result};

static USERS: SpinLock<Users> = SpinLock::new(Users { last: (NOBODY, 0), others: BTreeMap::new() });

/// Threads by user.
struct Users {
    /// The user that was asked for last, who is asked for next as a rule.
    last: (u32, u64),
    /// All others that have any.
    others: BTreeMap<u32, u64>,
}

impl Users {
    /// How many threads a user has: to be read and changed.
    #[inline(always)]
    fn count(&mut self, user: u32) -> &mut u64 {
        if self.last.0 != user {
            self.look_up(user);
        }
        &mut self.last.1
    }

    #[cold]
    fn look_up(&mut self, user: u32) {
        let (last, count) = core::mem::replace(&mut self.last, (user, self.others.remove(&user).unwrap_or(0)));
        if count > 0 {
            self.others.insert(last, count);
        }
    }
}

/// It counts for nobody: no user has this number.
const NOBODY: u32 = u32::MAX;

/// One thread that counts for a user, or for nobody any more. It is given back when this is dropped.
#[derive(Debug)]
pub struct UserCount(AtomicU32);

impl UserCount {
    /// One thread more of a user, who may have `limit` of them.
    ///
    /// # Errors
    /// EAGAIN: the user has as many.
    pub fn new(user: Uid, limit: Option<u64>) -> Result<Self> {
        USERS.with(|users| {
            let count = users.count(user.number());
            if limit.is_some_and(|limit| *count >= limit) {
                return Err(Errno::EAGAIN);
            }
            *count += 1;
            Ok(UserCount(AtomicU32::new(user.number())))
        })
    }

    /// For a thread that its process counts.
    pub fn none() -> Self {
        UserCount(AtomicU32::new(NOBODY))
    }

    /// It counts for another user from now on, however many that one has. Only the thread itself becomes another user.
    pub fn move_to(&self, user: Uid) {
        self.change(user.number());
    }

    /// It counts for nobody from now on.
    pub fn end(&self) {
        self.change(NOBODY);
    }

    fn change(&self, new: u32) {
        let old = self.0.swap(new, Ordering::Relaxed);
        if old == new {
            return;
        }
        USERS.with(|users| {
            if new != NOBODY {
                *users.count(new) += 1;
            }
            if old != NOBODY {
                *users.count(old) -= 1;
            }
        });
    }
}

impl Drop for UserCount {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_as_many_as_the_limit_says_until_one_ends_or_becomes_another() {
        let (user, other) = (Uid::new(4721), Uid::new(4722));
        let first = UserCount::new(user, Some(2)).unwrap();
        let second = UserCount::new(user, Some(2)).unwrap();
        assert_eq!(UserCount::new(user, Some(2)).err(), Some(Errno::EAGAIN));
        assert!(UserCount::new(user, None).is_ok());
        first.move_to(other);
        let third = UserCount::new(user, Some(2)).unwrap();
        assert_eq!(UserCount::new(other, Some(1)).err(), Some(Errno::EAGAIN));
        second.end();
        second.end();
        assert!(UserCount::new(user, Some(2)).is_ok());
        drop((first, second, third));
        assert_eq!(UserCount::new(other, Some(0)).err(), Some(Errno::EAGAIN));
        assert!(USERS.with(|users| !users.others.contains_key(&4721) && *users.count(4721) == 0));
        assert!(USERS.with(|users| *users.count(4722) == 0 && !users.others.contains_key(&4721)));
    }
}

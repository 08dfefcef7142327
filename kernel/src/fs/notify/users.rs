//! How many instances and watches each user has: `/proc/sys/fs/inotify`, see inotify(7).
//!
//! What counts is who made the instance, whoever has it now. An instance owns its [`UserInstance`]; dropping that gives it back. As long as nobody but who uses a table of descriptors sees the end of an instance
//! it is counted with the others of that table ([`UserInstances`]), and they are given back together when the table ends.
//!
//! Locks: what an instance is counted with, and the users: each alone.

use alloc::collections::BTreeMap;

use refs::{SpinLock, StrongRc};

use crate::credentials::Uid;
use crate::error::{Errno, Result};
use crate::fs::UnseenContents;
use crate::sysctl::Tunable;

/// How many instances a user may have (`max_user_instances`).
pub static MAX_USER_INSTANCES: Tunable = Tunable::new(128, 0..=i32::MAX as u64);
/// How many watches a user may have (`max_user_watches`): as many as suit the memory, unless somebody says.
pub static MAX_USER_WATCHES: Tunable = Tunable::new(AUTOMATIC, 0..=i32::MAX as u64);
const AUTOMATIC: u64 = u64::MAX;

/// How many watches a user may have: unless somebody says, so many that they take about a hundredth of memory, with 1 KiB for each.
pub fn max_user_watches() -> u64 {
    match MAX_USER_WATCHES.get() {
        AUTOMATIC => (frame::mm::frame_count() as u64 / 25).clamp(8192, 1 << 20),
        chosen => chosen,
    }
}

static USERS: SpinLock<BTreeMap<u32, Counts>> = SpinLock::new(BTreeMap::new());

#[derive(Default)]
struct Counts {
    instances: u64,
    watches: u64,
}

/// One instance of a user.
pub(super) struct UserInstance {
    user: u32,
    /// What it is counted with.
    contents: SpinLock<Option<StrongRc<UnseenContents>>>,
}

impl UserInstance {
    /// One more of a user.
    ///
    /// # Errors
    /// EMFILE: the user has as many as may be.
    pub(super) fn new(user: Uid) -> Result<Self> {
        let (user, most) = (user.number(), MAX_USER_INSTANCES.get());
        USERS.with(|users| {
            let instances = users.get(&user).map_or(0, |counts| counts.instances);
            if instances >= most {
                return Err(Errno::EMFILE);
            }
            users.entry(user).or_default().instances += 1;
            Ok(UserInstance { user, contents: SpinLock::new(None) })
        })
    }

    /// It is counted with others from now on; false if those are another user's.
    pub(super) fn join(&self, contents: &StrongRc<UnseenContents>) -> bool {
        let joins = contents.with(|contents| contents.enter_instance(self.user));
        if joins {
            self.contents.with(|place| *place = Some(contents.share()));
        }
        joins
    }

    /// It is counted by itself from now on; false if it was given back with others.
    pub(super) fn leave(&self) -> bool {
        let contents = self.contents.with(Option::take);
        contents.is_none_or(|contents| contents.with(UnseenContents::leave_instance))
    }

    fn with<R: Send>(&self, f: impl FnOnce(&mut Counts) -> R + Send) -> R {
        USERS.with(|users| f(users.entry(self.user).or_default()))
    }

    /// One watch more.
    ///
    /// # Errors
    /// ENOSPC: the user has as many as may be.
    pub(super) fn add_watch(&self) -> Result<()> {
        let most = max_user_watches();
        self.with(|counts| {
            if counts.watches >= most {
                return Err(Errno::ENOSPC);
            }
            counts.watches += 1;
            Ok(())
        })
    }

    /// So many watches less.
    pub(super) fn remove_watches(&self, count: usize) {
        self.with(|counts| counts.watches -= count as u64);
    }
}

impl Drop for UserInstance {
    fn drop(&mut self) {
        if self.leave() {
            give_back(self.user, 1);
        }
    }
}

fn give_back(user: u32, count: u64) {
    USERS.with(|users| {
        let counts = users.entry(user).or_default();
        counts.instances -= count;
        if counts.instances == 0 {
            users.remove(&user);
        }
    });
}

/// Instances of one user that are counted together. Dropping it gives them back.
#[derive(Default)]
pub struct UserInstances {
    user: u32,
    count: u64,
}

impl UserInstances {
    /// One more, which was counted by itself; false if it is another user's than the others.
    pub fn enter(&mut self, user: u32) -> bool {
        if self.count == 0 {
            self.user = user;
        }
        let is_same = self.user == user;
        self.count += u64::from(is_same);
        is_same
    }

    /// One less, which is counted by itself again.
    pub fn leave(&mut self) {
        self.count -= 1;
    }
}

impl Drop for UserInstances {
    fn drop(&mut self) {
        if self.count > 0 {
            give_back(self.user, self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_as_many_instances_as_there_may_be_and_nobody_else_is_kept_from_any() {
        let (user, other) = (Uid::new(4811), Uid::new(4812));
        let all: alloc::vec::Vec<_> = (0..128).map(|_| UserInstance::new(user).expect("it may be")).collect();
        assert_eq!(UserInstance::new(user).err(), Some(Errno::EMFILE));
        assert!(UserInstance::new(other).is_ok());
        drop(all);
        assert!(UserInstance::new(user).is_ok());
        assert!(USERS.with(|users| !users.contains_key(&4811) && !users.contains_key(&4812)));
    }

    #[test]
    fn what_is_counted_together_comes_back_with_the_table_and_what_becomes_seen_with_its_instance() {
        let (user, other) = (Uid::new(4813), Uid::new(4814));
        let count = |user: u32| USERS.with(|users| users.get(&user).map_or(0, |counts| counts.instances));
        let contents = StrongRc::new(UnseenContents::new(&crate::reclaim::Payer::NOBODY));
        let [first, second, third] = [user, user, user].map(|user| UserInstance::new(user).expect("it may be"));
        let foreign = UserInstance::new(other).expect("it may be");
        assert!([&first, &second, &third].iter().all(|instance| instance.join(&contents)));
        assert!(!foreign.join(&contents) && second.leave());
        drop(third);
        assert_eq!((count(4813), count(4814)), (2, 1));
        contents.with(UnseenContents::end);
        assert_eq!((count(4813), count(4814)), (1, 1));
        drop(first);
        assert_eq!(count(4813), 1);
        drop((second, foreign));
        assert_eq!((count(4813), count(4814)), (0, 0));
    }
}

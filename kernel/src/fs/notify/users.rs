//! How many instances and watches each user has: `/proc/sys/fs/inotify`, see inotify(7).
//!
//! What counts is who made the instance, whoever has it now. An instance owns its [`UserInstance`]; dropping that gives it back.
//!
//! Locks: the users, alone.

use alloc::collections::BTreeMap;

use refs::SpinLock;

use crate::credentials::Uid;
use crate::error::{Errno, Result};
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
#[derive(Debug)]
pub(super) struct UserInstance(u32);

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
            Ok(UserInstance(user))
        })
    }

    fn with<R: Send>(&self, f: impl FnOnce(&mut Counts) -> R + Send) -> R {
        USERS.with(|users| f(users.entry(self.0).or_default()))
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
        let user = self.0;
        USERS.with(|users| {
            let counts = users.entry(user).or_default();
            counts.instances -= 1;
            if counts.instances == 0 {
                users.remove(&user);
            }
        });
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
}

//! [`Limits`]: see getrlimit(2).

use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Errno, Result};
use crate::fs::most_descriptors;

/// One limit: `struct rlimit64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Limit {
    /// What holds now.
    pub soft: u64,
    /// How far the process may raise it.
    pub hard: u64,
}

const COUNT: usize = 16;
const INFINITE: u64 = u64::MAX;

/// All limits of a process.
#[derive(Clone, Debug)]
pub struct Limits([Limit; COUNT]);

impl Default for Limits {
    fn default() -> Self {
        let mut limits = [Limit { soft: INFINITE, hard: INFINITE }; COUNT];
        let mut set = |resource: u32, soft, hard| limits[resource as usize] = Limit { soft, hard };
        set(abi::RLIMIT_STACK, 8 << 20, INFINITE);
        set(abi::RLIMIT_CORE, 0, INFINITE);
        set(abi::RLIMIT_NPROC, 16384, 16384);
        set(abi::RLIMIT_NOFILE, 1024, 4096);
        set(abi::RLIMIT_MEMLOCK, 8 << 20, 8 << 20);
        set(abi::RLIMIT_SIGPENDING, 4096, 4096);
        set(abi::RLIMIT_MSGQUEUE, 819_200, 819_200);
        set(abi::RLIMIT_NICE, 0, 0);
        set(abi::RLIMIT_RTPRIO, 0, 0);
        Limits(limits)
    }
}

impl Limits {
    /// One limit.
    ///
    /// # Errors
    /// EINVAL if there is no such resource.
    pub fn get(&self, resource: u32) -> Result<Limit> {
        self.0.get(resource as usize).copied().ok_or(Errno::EINVAL)
    }

    /// What holds now; nothing is limited that is not known.
    #[inline]
    pub fn soft(&self, resource: u32) -> u64 {
        self.0.get(resource as usize).map_or(INFINITE, |limit| limit.soft)
    }

    /// Changes one limit. `privileged` (CAP_SYS_RESOURCE) may raise the hard one.
    ///
    /// # Errors
    /// EINVAL for a bad resource or soft above hard; EPERM.
    pub fn set(&mut self, resource: u32, new: Limit, privileged: bool) -> Result<()> {
        let limit = self.0.get_mut(resource as usize).ok_or(Errno::EINVAL)?;
        if new.soft > new.hard {
            return Err(Errno::EINVAL);
        }
        if resource == abi::RLIMIT_NOFILE && new.hard > most_descriptors() as u64 {
            return Err(Errno::EPERM);
        }
        if new.hard > limit.hard && !privileged {
            return Err(Errno::EPERM);
        }
        *limit = new;
        Ok(())
    }
}

//! Which lock each core waits for, so that whoever takes one again and again lets them have it in between.
//!
//! A free lock goes to whoever is quickest, and that is nearly always the core that has just given it back. To look for others each time that a lock is given back would cost
//! those that never meet. So it is those who hold a lock for long, in many stretches, that [give way](crate::SpinLock::give_way) between two of them: to all that wait at that
//! moment, and to nobody who comes later. A core that begins to wait says so; it is slow already.
//!
//! Whoever gives way holds no lock, so those that wait get theirs. Where a host has taken the processor away from one of them, it gets its turn when it runs again.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::processor::{Wait, current_core};

/// The most cores.
const CORES: usize = 256;

/// How many cores wait, for any lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What each core waits for: the address of a lock, and in the lowest bits the number of the wait; 0: for nothing.
static WAITS: [AtomicU64; CORES] = [const { AtomicU64::new(0) }; CORES];

/// So many bits of a wait are its number. The upper bits of addresses that go for that are all alike.
const NUMBER_BITS: u32 = 16;

/// A wait of a core for a lock, while it lasts.
pub(crate) struct Announced {
    core: usize,
    /// A core that answers others while it waits may have to wait for a lock for that.
    interrupted: u64,
}

impl Announced {
    /// The calling core begins to wait for the lock at this address. `None` if nobody knows which core it is.
    pub(crate) fn begin(lock: usize) -> Option<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let core = current_core().filter(|core| *core < CORES)?;
        let number = LAST.fetch_add(1, Ordering::Relaxed) % (1 << NUMBER_BITS);
        let interrupted = WAITS[core].swap((lock as u64) << NUMBER_BITS | number, Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Relaxed);
        Some(Announced { core, interrupted })
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        WAITS[self.core].store(self.interrupted, Ordering::Relaxed);
    }
}

/// Whether any core waits for any lock.
#[inline(always)]
pub(crate) fn is_any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// Waits until all cores that wait for the lock at this address now have had it.
#[cold]
#[inline(never)]
pub(crate) fn let_all_have_it(lock: usize) {
    for wait in &WAITS {
        let seen = wait.load(Ordering::Relaxed);
        if seen >> NUMBER_BITS != (lock as u64) << NUMBER_BITS >> NUMBER_BITS {
            continue;
        }
        let mut patience = Wait::new();
        while wait.load(Ordering::Relaxed) == seen {
            patience.spin(lock);
        }
    }
}

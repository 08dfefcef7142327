//! [`Cookie`]: a socket's number among all that there ever were (SO_COOKIE), by which sock_diag(7) tells one from another that has its inode's number later.

use core::sync::atomic::{AtomicU64, Ordering};

/// That of one socket. It has none until somebody asks.
#[derive(Default)]
pub struct Cookie(AtomicU64);

impl Cookie {
    /// The number; never 0.
    pub fn get(&self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.0.load(Ordering::Relaxed) == 0 {
            let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            // Who was quicker has chosen.
            _ = self.0.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.0.load(Ordering::Relaxed)
    }
}

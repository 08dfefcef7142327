//! How many errors of ICMP are sent (RFC 1812, section 4.3.2.8; RFC 4443, section 2.4 (f)): a bucket of tokens, one for each error.

use crate::time::{Duration, Instant};

/// A new token comes so often: as on Linux, a thousand in a second (`net.ipv4.icmp_msgs_per_sec`).
const INTERVAL: Duration = Duration::from_millis(1);
/// So many are kept for errors that are sent at once (`net.ipv4.icmp_msgs_burst`).
const BURST: u64 = 50;

/// The tokens of one device.
#[derive(Clone, Copy, Debug)]
pub struct ErrorLimit {
    tokens: u64,
    /// When the last of them came.
    filled: Instant,
}

impl ErrorLimit {
    /// A full bucket.
    pub fn new(now: Instant) -> Self {
        ErrorLimit { tokens: BURST, filled: now }
    }

    /// Whether an error may be sent; then it is counted.
    pub fn allow(&mut self, now: Instant) -> bool {
        let new = now.since(self.filled).nanos() / INTERVAL.nanos();
        self.tokens = (self.tokens + new).min(BURST);
        self.filled = self.filled + Duration::from_nanos(new * INTERVAL.nanos());
        let is_allowed = self.tokens > 0;
        self.tokens -= u64::from(is_allowed);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_in_bursts_but_not_for_ever() {
        let start = Instant::from_nanos(5_000_000_000);
        let mut limit = ErrorLimit::new(start);
        let allowed = |limit: &mut ErrorLimit, now| (0..200).filter(|_| limit.allow(now)).count();
        assert_eq!(allowed(&mut limit, start), 50);
        assert_eq!(allowed(&mut limit, start + Duration::from_nanos(999_999)), 0);
        assert_eq!(allowed(&mut limit, start + Duration::from_millis(10)), 10);
        // No matter how it is asked.
        let second = (0..100_000).filter(|at| limit.allow(start + Duration::from_nanos(10_000_000 + at * 10_000)));
        assert_eq!(second.count(), 999);
        assert_eq!(allowed(&mut limit, start + Duration::from_secs(1000)), 50);
    }
}

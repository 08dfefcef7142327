//! What the protocols have counted since the machine was started, as `/proc/net/snmp` tells it (RFC 4293, 4022, 4113). Packets and segments are those of network cards: within the machine there are none. Connections and
//! datagrams are all.

use core::sync::atomic::{AtomicU64, Ordering};

/// How often something has happened.
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Counter(AtomicU64::new(0))
    }

    /// It has happened once more.
    #[inline(always)]
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Packets of IPv4 that have come, those of them for this machine, and those that were wrong or for others.
pub static IP_IN: Counter = Counter::new();
/// Likewise.
pub static IP_DELIVERED: Counter = Counter::new();
/// Likewise.
pub static IP_WRONG: Counter = Counter::new();
/// Likewise.
pub static IP_FOR_OTHERS: Counter = Counter::new();
/// Packets of IPv4 that were to be sent.
pub static IP_OUT: Counter = Counter::new();

/// Errors of ICMP that were not sent, because there were too many.
pub static ICMP_LIMITED: Counter = Counter::new();

/// Connections that were begun by connect(2), let in by a listener, were refused, and were broken off.
pub static TCP_ACTIVE: Counter = Counter::new();
/// Likewise.
pub static TCP_PASSIVE: Counter = Counter::new();
/// Likewise.
pub static TCP_FAILED: Counter = Counter::new();
/// Likewise.
pub static TCP_BROKEN: Counter = Counter::new();
/// Segments that have come, that were wrong, and that were sent.
pub static TCP_IN: Counter = Counter::new();
/// Likewise.
pub static TCP_WRONG: Counter = Counter::new();
/// Likewise.
pub static TCP_OUT: Counter = Counter::new();

/// Datagrams that somebody gets, that were for a port that nobody has, that found no room, and that were sent.
pub static UDP_IN: Counter = Counter::new();
/// Likewise.
pub static UDP_NO_PORT: Counter = Counter::new();
/// Likewise.
pub static UDP_NO_ROOM: Counter = Counter::new();
/// Likewise.
pub static UDP_OUT: Counter = Counter::new();

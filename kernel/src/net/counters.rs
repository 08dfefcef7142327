//! What the protocols have counted since the machine was started, as `/proc/net/snmp`, `snmp6` and `netstat` tell it (RFC 4293, 4022, 4113). Packets and segments are those of network cards: within the machine there are none. Connections and
//! datagrams are all.

use core::net::IpAddr;
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

    /// It has happened so often more.
    #[inline(always)]
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// How often.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is counted of packets of IPv4 or of IPv6.
pub struct OfPackets {
    /// Those that have come, and their bytes.
    pub received: Counter,
    /// Likewise.
    pub received_bytes: Counter,
    /// Of these, those for this machine, and those that were wrong or for others.
    pub delivered: Counter,
    /// Likewise.
    pub wrong: Counter,
    /// Likewise.
    pub for_others: Counter,
    /// Those that were to be sent, and their bytes.
    pub sent: Counter,
    /// Likewise.
    pub sent_bytes: Counter,
}

/// What is counted of datagrams of UDP over IPv4 or over IPv6.
pub struct OfDatagrams {
    /// Those that somebody gets.
    pub received: Counter,
    /// Those for a port that nobody has.
    pub no_port: Counter,
    /// Those that found no room.
    pub no_room: Counter,
    /// Those that were sent.
    pub sent: Counter,
}

impl OfPackets {
    const fn new() -> Self {
        OfPackets {
            received: Counter::new(),
            received_bytes: Counter::new(),
            delivered: Counter::new(),
            wrong: Counter::new(),
            for_others: Counter::new(),
            sent: Counter::new(),
            sent_bytes: Counter::new(),
        }
    }

    /// One of so many bytes is to be sent.
    pub fn count_sent(&self, bytes: usize) {
        self.sent.count();
        self.sent_bytes.add(bytes as u64);
    }
}

impl OfDatagrams {
    const fn new() -> Self {
        OfDatagrams { received: Counter::new(), no_port: Counter::new(), no_room: Counter::new(), sent: Counter::new() }
    }
}

/// What is counted of packets of IPv4.
pub static IP_V4: OfPackets = OfPackets::new();
/// What is counted of packets of IPv6.
pub static IP_V6: OfPackets = OfPackets::new();
/// What is counted of UDP over IPv4.
pub static UDP_V4: OfDatagrams = OfDatagrams::new();
/// What is counted of UDP over IPv6.
pub static UDP_V6: OfDatagrams = OfDatagrams::new();

/// What is counted of packets of an address's version.
#[inline]
pub fn ip(address: IpAddr) -> &'static OfPackets {
    if address.is_ipv4() { &IP_V4 } else { &IP_V6 }
}

/// What is counted of UDP over an address's version.
#[inline]
pub fn udp(address: IpAddr) -> &'static OfDatagrams {
    if address.is_ipv4() { &UDP_V4 } else { &UDP_V6 }
}

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

/// SYN cookies that were sent, came back, and were none.
pub static COOKIES_SENT: Counter = Counter::new();
/// Likewise.
pub static COOKIES_BACK: Counter = Counter::new();
/// Likewise.
pub static COOKIES_WRONG: Counter = Counter::new();
/// Connections that a listener has not let in, as its queue was full.
pub static LISTENER_FULL: Counter = Counter::new();
/// Connections that were closed and reset because SO_LINGER was 0, and because not all was received.
pub static RESET_AT_ONCE: Counter = Counter::new();
/// Likewise.
pub static RESET_UNREAD: Counter = Counter::new();

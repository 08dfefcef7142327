//! Initial sequence numbers, and offsets of time stamps, that cannot be guessed (RFC 6528; RFC 7323, section 5.4).

use core::net::IpAddr;

use crate::siphash::Key;
use crate::time::Instant;

use super::connection::Endpoints;

/// The bytes of addresses and ports that are hashed, with one more word.
pub(super) fn message(endpoints: &Endpoints, word: u64) -> [u8; 44] {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut bytes = [0; 44];
    bytes[..16].copy_from_slice(&octets(endpoints.local.ip()));
    bytes[16..32].copy_from_slice(&octets(endpoints.remote.ip()));
    bytes[32..34].copy_from_slice(&endpoints.local.port().to_be_bytes());
    bytes[34..36].copy_from_slice(&endpoints.remote.port().to_be_bytes());
    bytes[36..].copy_from_slice(&word.to_be_bytes());
    bytes
}

/// The initial sequence number of a connection: a clock of four microseconds, from where the key says for these ends.
pub fn initial_sequence(key: &Key, now: Instant, endpoints: &Endpoints) -> u32 {
    let clock = (now.nanos() / 4_000) as u32;
    (key.hash(&message(endpoints, 0)) as u32).wrapping_add(clock)
}

/// What to add to the clock of a connection's time stamps. It is the same for the same ends, so that stamps grow over several of their connections.
pub fn timestamp_offset(key: &Key, endpoints: &Endpoints) -> u32 {
    key.hash(&message(endpoints, 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn numbers_grow_and_differ_by_connection() {
        let ends = |port| Endpoints { local: ([10, 0, 0, 1], 80).into(), remote: ([10, 0, 0, 2], port).into() };
        let key = Key([1, 2]);
        let now = Instant::from_nanos(5_000_000);
        let first = initial_sequence(&key, now, &ends(4000));
        let later = initial_sequence(&key, now + Duration::from_millis(4), &ends(4000));
        assert_eq!(later.wrapping_sub(first), 1000);
        assert_ne!(first, initial_sequence(&key, now, &ends(4001)));
        assert_ne!(first, initial_sequence(&Key([1, 3]), now, &ends(4000)));
    }
}

//! The checksum of the internet (RFC 1071): who verifies one and who computes one.

use core::net::IpAddr;

/// Whether a checksum of a packet that came must be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It must be right.
    Verify,
    /// The device says that it is right.
    Trust,
}

/// Who computes a checksum of a packet that goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingChecksum {
    /// The packet is complete.
    Full,
    /// The device does. The field holds the sum of the pseudo header, as devices want it (virtio 1.2, section 5.1.6.2: `VIRTIO_NET_HDR_F_NEEDS_CSUM`).
    ByDevice,
}

/// Numbers of protocols.
pub mod protocol {
    /// ICMP of IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP of IPv6, and neighbour discovery.
    pub const ICMPV6: u8 = 58;
}

/// The one's complement sum of bytes, as if zero followed an odd last one; not complemented.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    fold(sum_words(bytes))
}

/// The sum may be taken in any order of bytes, as long as it is one (RFC 1071, section 2): here in the machine's, eight at a time, with the carries added in again.
fn sum_words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let add = |sum: u64, word: u64| {
        let (sum, has_carry) = sum.overflowing_add(word);
        sum + u64::from(has_carry)
    };
    let (fours, ones) = words.as_chunks::<4>();
    let mut sum = 0;
    for [a, b, c, d] in fours {
        sum = add(sum, u64::from_ne_bytes(*a));
        sum = add(sum, u64::from_ne_bytes(*b));
        sum = add(sum, u64::from_ne_bytes(*c));
        sum = add(sum, u64::from_ne_bytes(*d));
    }
    let sum = ones.iter().fold(sum, |sum, word| add(sum, u64::from_ne_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    u64::from(u16::from_be_bytes(fold(add(sum, u64::from_ne_bytes(last))).to_ne_bytes()))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of a pseudo header (RFC 9293, section 3.1; RFC 8200, section 8.1); not complemented.
pub(crate) fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len_bytes: usize) -> u16 {
    let of = |address: IpAddr| match address {
        IpAddr::V4(address) => sum_words(&address.octets()),
        IpAddr::V6(address) => sum_words(&address.octets()),
    };
    fold(of(source) + of(destination) + u64::from(protocol) + len_bytes as u64)
}

/// Whether the checksum in a packet of a transport protocol is right.
pub(crate) fn is_right(source: IpAddr, destination: IpAddr, protocol: u8, bytes: &[u8]) -> bool {
    let header = pseudo_header(source, destination, protocol, bytes.len());
    fold(u64::from(header) + sum_words(bytes)) == 0xffff
}

/// What to write to the checksum of a packet of a transport protocol, in which it is zero now.
pub(crate) fn compute(
    checksum: OutgoingChecksum,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    bytes: &[u8],
) -> u16 {
    let header = pseudo_header(source, destination, protocol, bytes.len());
    match checksum {
        OutgoingChecksum::Full => !fold(u64::from(header) + sum_words(bytes)),
        OutgoingChecksum::ByDevice => header,
    }
}

/// Completes a checksum that was left to the [device](OutgoingChecksum::ByDevice): it lies `at` so many bytes behind `start`, where what it is of begins. Nothing where there is no such place.
pub fn complete(packet: &mut [u8], start: usize, at: usize) {
    let Some(bytes) = packet.get_mut(start..) else { return };
    let sum = !sum(bytes);
    // A sum of zero is sent as its other form where zero says that there is none (RFC 768); elsewhere both are right.
    let sum = if sum == 0 { 0xffff } else { sum };
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_rfc_1071_shows() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[1]), 0x0100);
    }

    #[test]
    fn sums_as_two_bytes_at_a_time() {
        let mut state = 1_u32;
        let bytes: std::vec::Vec<u8> = (0..300)
            .map(|at| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if at % 3 == 0 { 0xff } else { (state >> 24) as u8 }
            })
            .collect();
        for len in 0..bytes.len() {
            let slow = bytes[..len].chunks(2).map(|two| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0)));
            assert_eq!(sum(&bytes[..len]), fold(slow.sum()), "{len}");
        }
    }

    #[test]
    fn what_is_left_to_a_device_can_be_completed() {
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut bytes = [7; 61];
        bytes[16..18].fill(0);
        let whole = compute(OutgoingChecksum::Full, one, other, protocol::TCP, &bytes);
        let part = compute(OutgoingChecksum::ByDevice, one, other, protocol::TCP, &bytes);
        bytes[16..18].copy_from_slice(&part.to_be_bytes());
        complete(&mut bytes, 0, 16);
        assert_eq!(bytes[16..18], whole.to_be_bytes());
        assert!(is_right(one, other, protocol::TCP, &bytes));
    }
}

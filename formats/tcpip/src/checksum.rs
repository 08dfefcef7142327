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

fn sum_words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    whole + u64::from(u32::from_be_bytes(last))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_rfc_1071_shows() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[1]), 0x0100);
    }
}

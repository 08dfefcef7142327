//! UDP datagrams (RFC 768; RFC 8200, section 8.1).

use core::net::IpAddr;

use smoltcp::wire::UdpPacket;

use crate::Malformed;
use crate::checksum::{self, Checksum, OutgoingChecksum, protocol};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;

/// A datagram. One without data is one, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// The sender's port; zero if it wants no answer.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> UdpDatagram<'a> {
    /// Reads a datagram that came in an IP packet with such addresses. What is longer than the datagram says is cut off.
    ///
    /// # Errors
    ///
    /// A length is wrong, the receiver's port is zero, or the checksum is wrong. Over IPv4 there may be none, over IPv6 not.
    pub fn parse(
        bytes: &'a [u8],
        source: IpAddr,
        destination: IpAddr,
        checksum: Checksum,
    ) -> Result<UdpDatagram<'a>, Malformed> {
        let packet = UdpPacket::new_checked(bytes).map_err(|_| Malformed)?;
        let bytes = bytes.get(..usize::from(packet.len())).ok_or(Malformed)?;
        let has_none = packet.checksum() == 0 && source.is_ipv4();
        let is_right = checksum == Checksum::Trust
            || has_none
            || packet.checksum() != 0 && checksum::is_right(source, destination, protocol::UDP, bytes);
        if !is_right || packet.dst_port() == 0 {
            return Err(Malformed);
        }
        Ok(UdpDatagram {
            source_port: packet.src_port(),
            destination_port: packet.dst_port(),
            payload: packet.payload(),
        })
    }
}

/// Writes the header before `payload_bytes` of data, which already are in `packet` at [`HEADER_BYTES`]. Returns the datagram's length.
///
/// # Errors
///
/// `packet` is too short, or the datagram would be too long.
pub fn emit(
    packet: &mut [u8],
    payload_bytes: usize,
    ports: (u16, u16),
    source: IpAddr,
    destination: IpAddr,
    checksum: OutgoingChecksum,
) -> Result<usize, Malformed> {
    let len = HEADER_BYTES + payload_bytes;
    let field = u16::try_from(len).map_err(|_| Malformed)?;
    let bytes = packet.get_mut(..len).ok_or(Malformed)?;
    bytes[..HEADER_BYTES].fill(0);
    let mut view = UdpPacket::new_unchecked(bytes);
    view.set_src_port(ports.0);
    view.set_dst_port(ports.1);
    view.set_len(field);
    let sum = checksum::compute(checksum, source, destination, protocol::UDP, view.as_ref());
    // Zero would mean that there is none.
    view.set_checksum(if sum == 0 && checksum == OutgoingChecksum::Full { u16::MAX } else { sum });
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_back_as_they_were() {
        for (source, destination) in [("10.0.0.1", "10.0.0.2"), ("fe80::1", "fe80::2")] {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            for payload in [&b""[..], b"a", b"hello"] {
                let mut packet = [0; 40];
                packet[HEADER_BYTES..][..payload.len()].copy_from_slice(payload);
                let len =
                    emit(&mut packet, payload.len(), (53, 4000), source, destination, OutgoingChecksum::Full).unwrap();
                let parsed = UdpDatagram::parse(&packet[..len + 3], source, destination, Checksum::Verify);
                assert_eq!(parsed, Ok(UdpDatagram { source_port: 53, destination_port: 4000, payload }));
                packet[0] ^= 1;
                assert_eq!(UdpDatagram::parse(&packet[..len], source, destination, Checksum::Verify), Err(Malformed));
                packet[0] ^= 1;
                packet[6..8].fill(0);
                let without = UdpDatagram::parse(&packet[..len], source, destination, Checksum::Verify);
                assert_eq!(without.is_ok(), source.is_ipv4());
            }
        }
    }
}

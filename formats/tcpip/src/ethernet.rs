//! Ethernet frames (IEEE 802.3, with the type of RFC 894), and the addresses of devices.

use core::net::IpAddr;

use smoltcp::wire::{EthernetAddress, EthernetFrame, EthernetProtocol};

use crate::Malformed;

/// Bytes of a frame before its payload.
pub const HEADER_BYTES: usize = 14;

/// The address of a device on Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HardwareAddress(pub [u8; 6]);

impl HardwareAddress {
    /// All devices on the link.
    pub const BROADCAST: HardwareAddress = HardwareAddress([0xff; 6]);

    /// The address for a packet to an IP multicast group (RFC 1112, section 6.4; RFC 2464, section 7); `None`: it is none.
    pub fn of_group(group: IpAddr) -> Option<Self> {
        match group {
            IpAddr::V4(group) if group.is_multicast() => {
                let [_, b, c, d] = group.octets();
                Some(HardwareAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
            }
            IpAddr::V6(group) if group.is_multicast() => {
                let [.., a, b, c, d] = group.octets();
                Some(HardwareAddress([0x33, 0x33, a, b, c, d]))
            }
            _ => None,
        }
    }

    /// Whether it is one device's, as a sender's is.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtherType {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// ARP.
    Arp,
    /// Another, by its number.
    Other(u16),
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// For whom it is.
    pub destination: HardwareAddress,
    /// Who sent it.
    pub source: HardwareAddress,
    /// What it carries.
    pub kind: EtherType,
    /// What it carries, perhaps with padding after it.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    ///
    /// It is too short.
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        let frame = EthernetFrame::new_checked(bytes).map_err(|_| Malformed)?;
        let kind = match frame.ethertype() {
            EthernetProtocol::Ipv4 => EtherType::Ipv4,
            EthernetProtocol::Ipv6 => EtherType::Ipv6,
            EthernetProtocol::Arp => EtherType::Arp,
            EthernetProtocol::Unknown(number) => EtherType::Other(number),
        };
        Ok(Frame {
            destination: HardwareAddress(frame.dst_addr().0),
            source: HardwareAddress(frame.src_addr().0),
            kind,
            payload: frame.payload(),
        })
    }
}

/// Writes the header of a frame to the beginning of `frame`.
///
/// # Errors
///
/// `frame` is too short.
pub fn emit(
    frame: &mut [u8],
    destination: HardwareAddress,
    source: HardwareAddress,
    kind: EtherType,
) -> Result<(), Malformed> {
    let mut view = EthernetFrame::new_checked(frame).map_err(|_| Malformed)?;
    view.set_dst_addr(EthernetAddress(destination.0));
    view.set_src_addr(EthernetAddress(source.0));
    view.set_ethertype(match kind {
        EtherType::Ipv4 => EthernetProtocol::Ipv4,
        EtherType::Ipv6 => EthernetProtocol::Ipv6,
        EtherType::Arp => EthernetProtocol::Arp,
        EtherType::Other(number) => EthernetProtocol::Unknown(number),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were() {
        let (one, other) = (HardwareAddress([2, 0, 0, 0, 0, 1]), HardwareAddress([2, 0, 0, 0, 0, 2]));
        for kind in [EtherType::Ipv4, EtherType::Ipv6, EtherType::Arp, EtherType::Other(0x88cc)] {
            let mut frame = [7; 20];
            emit(&mut frame, one, other, kind).unwrap();
            let expected = Frame { destination: one, source: other, kind, payload: &[7; 6] };
            assert_eq!(Frame::parse(&frame), Ok(expected));
        }
        assert_eq!(Frame::parse(&[0; 13]), Err(Malformed));
    }

    #[test]
    fn groups_have_addresses() {
        let of = |group: &str| HardwareAddress::of_group(group.parse().unwrap());
        assert_eq!(of("224.129.1.2"), Some(HardwareAddress([1, 0, 0x5e, 1, 1, 2])));
        assert_eq!(of("ff02::1:ff00:1234"), Some(HardwareAddress([0x33, 0x33, 0xff, 0, 0x12, 0x34])));
        assert_eq!(of("10.0.0.1"), None);
    }
}

//! A packet that came: which protocol it is for, and that its header is right (RFC 791, RFC 1122 section 3.2.1, RFC 8200).

use core::net::{IpAddr, Ipv4Addr};

use smoltcp::wire::{Ipv4Packet, Ipv6ExtHeader, Ipv6FragmentHeader, Ipv6Packet};

use crate::Malformed;
use crate::checksum::{Checksum, protocol, sum};

use super::icmp::v6;

/// Headers between the one of IPv6 and its payload, at most.
const MOST_EXTENSIONS: usize = 8;
/// The longest payload of a datagram.
pub(super) const LONGEST_DATAGRAM: usize = 65_535;

/// Numbers of IPv6's extension headers.
pub(super) mod extension {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const DESTINATION: u8 = 60;
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The same for all fragments of a datagram.
    pub id: u32,
    /// The place of its first byte in the datagram's payload.
    pub offset: usize,
    /// Whether it is not the last.
    pub has_more: bool,
}

/// A packet whose header is right. Padding after it is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Who sent it: never a multicast or broadcast address.
    pub source: IpAddr,
    /// For whom it is.
    pub destination: IpAddr,
    /// The number of the protocol of its payload.
    pub protocol: u8,
    /// How many routers might still pass it on.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// What of a datagram it is; `None`: all.
    pub fragment: Option<Fragment>,
    /// What it carries: for a whole packet that of the protocol.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads an IP packet of either version that came through a device.
    ///
    /// # Errors
    ///
    /// A length, the version or the header's checksum is wrong, the source is no single host, an address is one of this host alone, an extension header forbids to go on,
    /// or a fragment lies outside of what a datagram can be.
    pub fn parse(bytes: &'a [u8], checksum: Checksum) -> Result<Packet<'a>, Malformed> {
        let packet = match bytes.first().map(|first| first >> 4) {
            Some(4) => Packet::parse_v4(bytes, checksum)?,
            Some(6) => Packet::parse_v6(bytes)?,
            _ => return Err(Malformed),
        };
        let is_source_one_host = match packet.source {
            IpAddr::V4(source) => !source.is_multicast() && source != Ipv4Addr::BROADCAST,
            IpAddr::V6(source) => !source.is_multicast(),
        };
        // RFC 1122, section 3.2.1.3; RFC 4291, section 2.5.3.
        let is_from_outside = !packet.source.is_loopback() && !packet.destination.is_loopback();
        let is_fragment_right = packet.fragment.is_none_or(|fragment| {
            fragment.offset + packet.payload.len() <= LONGEST_DATAGRAM
                && !packet.payload.is_empty()
                && (!fragment.has_more || packet.payload.len() % 8 == 0)
        });
        if is_source_one_host && is_from_outside && is_fragment_right { Ok(packet) } else { Err(Malformed) }
    }

    /// Whether its source may be what it says, of a packet that came from another host; `is_own` says which addresses this host has. Its own tell only that another host has or wants one of them, and none only that
    /// a host looks for one: neighbour discovery (RFC 4861, section 4.3; RFC 4862, section 5.4), and DHCP's questions (RFC 1122, section 3.2.1.3).
    pub fn is_source_possible(&self, is_own: impl Fn(IpAddr) -> bool) -> bool {
        match self.source {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => {
                self.protocol == protocol::UDP && self.destination == Ipv4Addr::BROADCAST
            }
            source if source.is_unspecified() || is_own(source) => self.is_discovery(),
            _ => true,
        }
    }

    /// Whether it is one of neighbour discovery, none of which is cut (RFC 6980).
    fn is_discovery(&self) -> bool {
        let kind = self.payload.first();
        self.protocol == protocol::ICMPV6
            && self.fragment.is_none()
            && kind.is_some_and(|kind| (v6::ROUTER_SOLICITATION..=v6::REDIRECT).contains(kind))
    }

    fn parse_v4(bytes: &'a [u8], checksum: Checksum) -> Result<Packet<'a>, Malformed> {
        let view = Ipv4Packet::new_checked(bytes).map_err(|_| Malformed)?;
        if checksum == Checksum::Verify && sum(&bytes[..usize::from(view.header_len())]) != 0xffff {
            return Err(Malformed);
        }
        let offset = usize::from(view.frag_offset());
        let fragment = (view.more_frags() || offset > 0).then(|| Fragment {
            id: u32::from(view.ident()),
            offset,
            has_more: view.more_frags(),
        });
        Ok(Packet {
            source: IpAddr::V4(view.src_addr()),
            destination: IpAddr::V4(view.dst_addr()),
            protocol: view.next_header().into(),
            hop_limit: view.hop_limit(),
            traffic_class: view.dscp() << 2 | view.ecn(),
            fragment,
            payload: view.payload(),
        })
    }

    fn parse_v6(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let view = Ipv6Packet::new_checked(bytes).map_err(|_| Malformed)?;
        let walk = Walk { protocol: view.next_header().into(), fragment: None, payload: view.payload() };
        let Walk { protocol, fragment, payload } = walk.into_payload(true)?;
        Ok(Packet {
            source: IpAddr::V6(view.src_addr()),
            destination: IpAddr::V6(view.dst_addr()),
            protocol,
            hop_limit: view.hop_limit(),
            traffic_class: view.traffic_class(),
            fragment,
            payload,
        })
    }
}

/// A way along IPv6's extension headers (RFC 8200, section 4).
pub(super) struct Walk<'a> {
    pub protocol: u8,
    pub fragment: Option<Fragment>,
    pub payload: &'a [u8],
}

impl<'a> Walk<'a> {
    /// To the first header that is none of these, or to a fragment's payload.
    pub fn into_payload(mut self, may_be_hop_by_hop: bool) -> Result<Walk<'a>, Malformed> {
        for index in 0..MOST_EXTENSIONS {
            match self.protocol {
                extension::HOP_BY_HOP if index == 0 && may_be_hop_by_hop => self.skip(check_options)?,
                extension::HOP_BY_HOP => return Err(Malformed),
                extension::DESTINATION => self.skip(check_options)?,
                // Segments that are left would want this host to be a router.
                extension::ROUTING => self.skip(|data| data.get(1) == Some(&0))?,
                extension::FRAGMENT if self.fragment.is_none() => {
                    self.enter_fragment()?;
                    if self.fragment.is_some() {
                        return Ok(self);
                    }
                }
                _ => return Ok(self),
            }
        }
        Err(Malformed)
    }

    fn skip(&mut self, is_right: impl Fn(&[u8]) -> bool) -> Result<(), Malformed> {
        let header = Ipv6ExtHeader::new_checked(self.payload).map_err(|_| Malformed)?;
        if !is_right(header.payload()) {
            return Err(Malformed);
        }
        let len = 8 * (1 + usize::from(header.header_len()));
        (self.protocol, self.payload) = (header.next_header().into(), self.payload.get(len..).ok_or(Malformed)?);
        Ok(())
    }

    /// A header that says that the packet is all of a datagram is skipped (RFC 6946).
    fn enter_fragment(&mut self) -> Result<(), Malformed> {
        let [next, _, fields @ ..] = self.payload else { return Err(Malformed) };
        let header = Ipv6FragmentHeader::new_checked(fields).map_err(|_| Malformed)?;
        let offset = 8 * usize::from(header.frag_offset());
        if header.more_frags() || offset > 0 {
            self.fragment = Some(Fragment { id: header.ident(), offset, has_more: header.more_frags() });
        }
        (self.protocol, self.payload) = (*next, self.payload.get(8..).ok_or(Malformed)?);
        Ok(())
    }
}

/// Whether all options are known, or may be skipped by those who do not know them (RFC 8200, section 4.2).
fn check_options(mut options: &[u8]) -> bool {
    const PAD1: u8 = 0;
    while let Some((&kind, rest)) = options.split_first() {
        if kind == PAD1 {
            options = rest;
            continue;
        }
        let after = rest.split_first().and_then(|(&len, data)| data.get(usize::from(len)..));
        match after {
            Some(after) if kind >> 6 == 0 => options = after,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = alloc::vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 64];
        for last in [1, 2] {
            bytes.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn extension_headers_are_walked() {
        let bytes = v6(0, &[60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0, 9, 9]);
        let packet = Packet::parse(&bytes, Checksum::Verify).unwrap();
        assert_eq!((packet.protocol, packet.payload), (17, &[9, 9][..]));
        let unknown = v6(60, &[17, 0, 0xc1, 4, 0, 0, 0, 0]);
        assert_eq!(Packet::parse(&unknown, Checksum::Verify), Err(Malformed));
        let late = v6(60, &[0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(Packet::parse(&late, Checksum::Verify), Err(Malformed));
        let fragment = v6(44, &[6, 0, 0, 9, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8]);
        let packet = Packet::parse(&fragment, Checksum::Verify).unwrap();
        assert_eq!(packet.fragment, Some(Fragment { id: 5, offset: 8, has_more: true }));
        assert_eq!((packet.protocol, packet.payload.len()), (6, 8));
        for len in 0..bytes.len() {
            assert_eq!(Packet::parse(&bytes[..len], Checksum::Verify), Err(Malformed));
        }
    }

    #[test]
    fn sources_that_no_other_host_has_are_not_believed() {
        let own = |address: IpAddr| address == "fe80::1".parse::<IpAddr>().unwrap() || address == Ipv4Addr::from(7);
        let is_possible = |source: &str, destination: &str, protocol, payload: &[u8]| {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let packet =
                Packet { source, destination, protocol, hop_limit: 255, traffic_class: 0, fragment: None, payload };
            packet.is_source_possible(own)
        };
        assert!(is_possible("fe80::2", "fe80::1", protocol::TCP, &[]));
        assert!(is_possible("0.0.0.8", "0.0.0.7", protocol::TCP, &[]));
        for source in ["fe80::1", "::"] {
            assert!(!is_possible(source, "fe80::1", protocol::TCP, &[]), "{source}");
            assert!(!is_possible(source, "ff02::1", protocol::UDP, &[135]), "{source}");
            assert!(!is_possible(source, "fe80::1", protocol::ICMPV6, &[128]), "{source}");
            assert!(is_possible(source, "ff02::1", protocol::ICMPV6, &[135]), "{source}");
        }
        assert!(!is_possible("0.0.0.7", "255.255.255.255", protocol::UDP, &[]));
        assert!(!is_possible("0.0.0.0", "0.0.0.7", protocol::UDP, &[]));
        assert!(!is_possible("0.0.0.0", "255.255.255.255", protocol::TCP, &[]));
        assert!(is_possible("0.0.0.0", "255.255.255.255", protocol::UDP, &[]));
    }
}

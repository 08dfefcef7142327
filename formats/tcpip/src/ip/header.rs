//! The header of a packet that goes out, and into which fragments a datagram is cut.

use core::net::IpAddr;

use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6FragmentHeader, Ipv6Packet};

use crate::Malformed;
use crate::checksum::sum;

use super::packet::{Fragment, LONGEST_DATAGRAM, extension};

/// Bytes of a header of IPv4 as it is written here, and of IPv6.
const V4_BYTES: usize = 20;
const V6_BYTES: usize = 40;
/// Bytes of IPv6's fragment header.
const FRAGMENT_BYTES: usize = 8;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Who sends it.
    pub source: IpAddr,
    /// For whom it is: of the same version.
    pub destination: IpAddr,
    /// The number of the payload's protocol.
    pub protocol: u8,
    /// How many routers may pass it on.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Whether IPv4's routers may not cut it.
    pub dont_fragment: bool,
    /// What it is of a datagram; `None`: all.
    pub fragment: Option<Fragment>,
}

impl IpHeader {
    /// A whole packet between two addresses, with Linux's defaults.
    pub fn new(source: IpAddr, destination: IpAddr, protocol: u8) -> Self {
        IpHeader { source, destination, protocol, hop_limit: 64, traffic_class: 0, dont_fragment: true, fragment: None }
    }

    /// Bytes of the header: the payload begins after them.
    pub fn len_bytes(&self) -> usize {
        match self.destination {
            IpAddr::V4(_) => V4_BYTES,
            IpAddr::V6(_) if self.fragment.is_some() => V6_BYTES + FRAGMENT_BYTES,
            IpAddr::V6(_) => V6_BYTES,
        }
    }

    /// Writes the header before `payload_bytes`, which are or will be in `packet` after it. Returns the packet's length.
    ///
    /// # Errors
    ///
    /// `packet` is too short, the packet would be too long, or the addresses are of different versions.
    pub fn emit(&self, packet: &mut [u8], payload_bytes: usize) -> Result<usize, Malformed> {
        let len = self.len_bytes() + payload_bytes;
        let bytes = packet.get_mut(..len).filter(|_| len <= LONGEST_DATAGRAM).ok_or(Malformed)?;
        bytes[..self.len_bytes()].fill(0);
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut view = Ipv4Packet::new_unchecked(bytes);
                view.set_version(4);
                view.set_header_len(V4_BYTES as u8);
                view.set_dscp(self.traffic_class >> 2);
                view.set_ecn(self.traffic_class & 3);
                view.set_total_len(len as u16);
                let fragment = self.fragment.unwrap_or(Fragment { id: 0, offset: 0, has_more: false });
                view.set_ident(fragment.id as u16);
                view.set_more_frags(fragment.has_more);
                view.set_frag_offset(fragment.offset as u16);
                view.set_dont_frag(self.dont_fragment && self.fragment.is_none());
                view.set_hop_limit(self.hop_limit);
                view.set_next_header(IpProtocol::from(self.protocol));
                view.set_src_addr(source);
                view.set_dst_addr(destination);
                let bytes = view.into_inner();
                let checksum = !sum(&bytes[..V4_BYTES]);
                Ipv4Packet::new_unchecked(bytes).set_checksum(checksum);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut view = Ipv6Packet::new_unchecked(&mut *bytes);
                view.set_version(6);
                view.set_traffic_class(self.traffic_class);
                view.set_payload_len((len - V6_BYTES) as u16);
                let next = if self.fragment.is_some() { extension::FRAGMENT } else { self.protocol };
                view.set_next_header(IpProtocol::from(next));
                view.set_hop_limit(self.hop_limit);
                view.set_src_addr(source);
                view.set_dst_addr(destination);
                if let Some(fragment) = self.fragment {
                    bytes[V6_BYTES] = self.protocol;
                    let mut view =
                        Ipv6FragmentHeader::new_unchecked(&mut bytes[V6_BYTES + 2..V6_BYTES + FRAGMENT_BYTES]);
                    view.set_frag_offset((fragment.offset / 8) as u16);
                    view.set_more_frags(fragment.has_more);
                    view.set_ident(fragment.id);
                }
            }
            _ => return Err(Malformed),
        }
        Ok(len)
    }

    /// Cuts a payload into fragments for an MTU: the header of each, and its bytes of the payload. The datagram's number is `id`. Nothing comes of an MTU that has no
    /// room for eight bytes.
    pub fn fragments(
        self,
        payload_bytes: usize,
        mtu: usize,
        id: u32,
    ) -> impl Iterator<Item = (IpHeader, core::ops::Range<usize>)> {
        let cut = IpHeader { fragment: Some(Fragment { id, offset: 0, has_more: true }), ..self };
        let most = mtu.saturating_sub(cut.len_bytes()) / 8 * 8;
        let count = if most == 0 || payload_bytes > LONGEST_DATAGRAM { 0 } else { payload_bytes.div_ceil(most) };
        (0..count).map(move |index| {
            let offset = index * most;
            let end = payload_bytes.min(offset + most);
            let fragment = Some(Fragment { id, offset, has_more: end < payload_bytes });
            (IpHeader { fragment, ..self }, offset..end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Packet, Reassembler, ReassemblyLimits};
    use super::*;
    use crate::{Checksum, Instant};
    use alloc::vec::Vec;

    fn ends(is_v6: bool) -> (IpAddr, IpAddr) {
        if is_v6 {
            ("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap())
        } else {
            ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap())
        }
    }

    #[test]
    fn fragments_come_together_again() {
        for is_v6 in [false, true] {
            let (source, destination) = ends(is_v6);
            let header = IpHeader { traffic_class: 0xb9, ..IpHeader::new(source, destination, 17) };
            let payload: Vec<u8> = (0..5000u32).map(|at| (at % 253) as u8).collect();
            let mut reassembler = Reassembler::new(ReassemblyLimits::default());
            let mut whole = None;
            for (header, range) in header.fragments(payload.len(), 1280, 7) {
                assert!(whole.is_none());
                let mut packet = alloc::vec![0; header.len_bytes() + range.len()];
                packet[header.len_bytes()..].copy_from_slice(&payload[range.clone()]);
                let len = header.emit(&mut packet, range.len()).unwrap();
                assert!(len <= 1280);
                let parsed = Packet::parse(&packet, Checksum::Verify).unwrap();
                whole = reassembler.push(Instant::default(), &parsed);
            }
            let whole = whole.unwrap();
            let packet = whole.packet().unwrap();
            assert_eq!((packet.payload, packet.protocol, packet.traffic_class), (&payload[..], 17, 0xb9));
        }
    }

    #[test]
    fn a_changed_header_is_found() {
        let (source, destination) = ends(false);
        let mut packet = [0; 30];
        IpHeader::new(source, destination, 6).emit(&mut packet, 10).unwrap();
        assert!(Packet::parse(&packet, Checksum::Verify).is_ok());
        packet[13] ^= 4;
        assert_eq!(Packet::parse(&packet, Checksum::Verify), Err(Malformed));
    }

    #[test]
    fn a_packet_cannot_come_from_this_host_or_from_a_group() {
        let own = ends(false).1;
        for source in ["127.0.0.1", "224.0.0.1", "255.255.255.255"] {
            let mut packet = [0; 30];
            IpHeader::new(source.parse().unwrap(), own, 6).emit(&mut packet, 10).unwrap();
            assert_eq!(Packet::parse(&packet, Checksum::Verify), Err(Malformed));
        }
    }
}

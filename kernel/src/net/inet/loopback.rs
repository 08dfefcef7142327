//! Frames of what goes from socket to socket within this machine, for packet sockets that look at the loopback device.
//!
//! Nothing else needs them. They are made where bytes go from one socket to another, with nothing locked, and only while somebody [looks](watched). They have no owner: each ends when it was shown.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use tcpip::ethernet::{self, EtherType, HEADER_BYTES, HardwareAddress};
use tcpip::ip::icmp::{self, Problem, Unreachable};
use tcpip::ip::{IpHeader, protocol};
use tcpip::{OutgoingChecksum, udp};

use super::address::Address;
use crate::net::packet::{self, Checksum};

pub use crate::net::packet::watches_loopback as watched;

/// The most that the loopback device carries at once.
const MTU: usize = 65_536;
/// Bytes of the longest error of ICMP and of ICMPv6, with the header of its packet: RFC 1812, section 4.3.2.3; RFC 4443, section 3.1.
const ERROR_V4: usize = 576;
const ERROR_V6: usize = 1280;

/// Shows a packet whose bytes `payload` are; in fragments, if it does not fit.
pub fn show(header: &IpHeader, payload: &[u8], checksum: Checksum, cx: &Cx) {
    static NEXT_ID: AtomicU32 = AtomicU32::new(1);
    if header.len_bytes() + payload.len() < MTU {
        return show_one(header, payload, checksum, cx);
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    for (fragment, range) in header.fragments(payload.len(), MTU - 1, id) {
        show_one(&fragment, &payload[range], checksum, cx);
    }
}

fn show_one(header: &IpHeader, payload: &[u8], checksum: Checksum, cx: &Cx) {
    let at = HEADER_BYTES + header.len_bytes();
    let mut frame = Vec::new();
    if frame.try_reserve_exact(at + payload.len()).is_err() {
        // Nobody sees it, as where a socket has no room for it.
        return;
    }
    frame.resize(at, 0);
    frame.extend_from_slice(payload);
    let kind = if header.destination.is_ipv4() { EtherType::Ipv4 } else { EtherType::Ipv6 };
    let nobody = HardwareAddress([0; 6]);
    let is_made = ethernet::emit(&mut frame, nobody, nobody, kind).is_ok()
        && header.emit(&mut frame[HEADER_BYTES..], payload.len()).is_ok();
    if is_made {
        packet::seen_on_loopback(&frame, checksum, cx);
    }
}

/// A datagram of UDP, with room for its header before its bytes.
fn datagram(from: Address, to: Address, bytes: &[u8], sum: OutgoingChecksum) -> Option<Vec<u8>> {
    let mut packet = Vec::new();
    packet.try_reserve_exact(udp::HEADER_BYTES + bytes.len()).ok()?;
    packet.resize(udp::HEADER_BYTES, 0);
    packet.extend_from_slice(bytes);
    udp::emit(&mut packet, bytes.len(), (from.port, to.port), from.ip, to.ip, sum).ok()?;
    Some(packet)
}

/// Shows a datagram of UDP that goes from one address to another, with its hop limit and its class.
pub fn show_datagram(from: Address, to: Address, (hops, class): (u8, u8), bytes: &[u8], cx: &Cx) {
    let header = IpHeader { hop_limit: hops, traffic_class: class, ..IpHeader::new(from.ip, to.ip, protocol::UDP) };
    // What is cut has the whole checksum, as nobody could compute it later.
    let is_whole = header.len_bytes() + udp::HEADER_BYTES + bytes.len() < MTU;
    let (sum, checksum) = match is_whole {
        true => (OutgoingChecksum::ByDevice, Checksum::Left),
        false => (OutgoingChecksum::Full, Checksum::There),
    };
    if let Some(packet) = datagram(from, to, bytes, sum) {
        show(&header, &packet, checksum, cx);
    }
}

/// Shows the error of ICMP that says that nobody has the port that a datagram went to.
pub fn show_no_port(from: Address, to: Address, bytes: &[u8], cx: &Cx) {
    let original = IpHeader::new(from.ip, to.ip, protocol::UDP);
    let Some(datagram) = datagram(from, to, bytes, OutgoingChecksum::ByDevice) else { return };
    let mut packet = alloc::vec![0; original.len_bytes()];
    packet.extend_from_slice(&datagram);
    if original.emit(&mut packet, datagram.len()).is_err() {
        return;
    }
    let (protocol, most) = match to.ip.is_ipv4() {
        true => (protocol::ICMP, ERROR_V4),
        false => (protocol::ICMPV6, ERROR_V6),
    };
    // Its class is that of network control (RFC 1812, section 4.3.2.5).
    let class = if to.ip.is_ipv4() { 0xc0 } else { 0 };
    let header = IpHeader { traffic_class: class, dont_fragment: false, ..IpHeader::new(to.ip, from.ip, protocol) };
    let mut message = alloc::vec![0; most - header.len_bytes()];
    if let Ok(len) = icmp::error(Problem::Unreachable(Unreachable::Port), &packet, (to.ip, from.ip), &mut message) {
        show(&header, &message[..len], Checksum::There, cx);
    }
}

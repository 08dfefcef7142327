//! What has come over the network for this machine's sockets.

use frame::Cx;
use tcpip::Checksum;
use tcpip::ip::icmp::{Message, Quoted, Unreachable};
use tcpip::ip::{Audience, Packet, protocol};
use tcpip::tcp::Error;

use super::address::Address;
use super::datagram::{self, Lost, Reason};
use super::tcp;
use crate::error::Errno;
use crate::net::interface::{Above, Interface};

/// What all interfaces give their packets to.
pub struct Arrivals;

impl Above for Arrivals {
    fn has_room(&self, cx: &Cx) {
        tcp::card_has_room(cx);
    }

    fn receive(
        &self,
        packet: &Packet<'_>,
        audience: Audience,
        checksum: Checksum,
        from: &'static Interface,
        cx: &Cx,
    ) -> bool {
        let device = from.index as i32;
        match packet.protocol {
            protocol::TCP => {
                // A connection has two ends: RFC 9293, section 3.9.2.3 (MUST-57).
                if audience == Audience::Unicast {
                    tcp::segment_came(packet, checksum, cx);
                }
                true
            }
            protocol::UDP => datagram::datagram_came(packet, checksum, device, cx),
            protocol::ICMP | protocol::ICMPV6 => {
                if let Ok(message) = Message::parse(packet, Checksum::Verify) {
                    error_came(&message, packet, device, cx);
                }
                datagram::control_came(packet, device, cx);
                true
            }
            _ => false,
        }
    }
}

/// A message of ICMP has come: if it is an error, who has caused it is told.
fn error_came(message: &Message<'_>, packet: &Packet<'_>, device: i32, cx: &Cx) {
    let quoted = match message {
        Message::Unreachable(_, quoted) | Message::TooBig(_, quoted) | Message::TimeExceeded(quoted) => quoted,
        _ => return,
    };
    let ends = match quoted.protocol {
        protocol::TCP => return connection_failed(message, quoted, cx),
        protocol::UDP => ends_of(quoted),
        _ => Some(ends_of_echo(quoted)),
    };
    if let (Some((own, destination)), [kind, code, ..]) = (ends, packet.payload) {
        let kind = (*kind, *code);
        let mtu = match message {
            Message::TooBig(mtu, _) => *mtu as u32,
            _ => 0,
        };
        let (error, is_final) = if packet.source.is_ipv4() { errno_of_icmp(kind) } else { errno_of_icmpv6(kind) };
        let reason = Reason { error, is_final, kind, mtu, offender: packet.source };
        let lost = Lost { protocol: quoted.protocol, own, destination, bytes: quoted.payload };
        datagram::did_not_arrive(&lost, reason, packet, device, cx);
    }
}

fn connection_failed(message: &Message<'_>, quoted: &Quoted<'_>, cx: &Cx) {
    let Some((ends, sequence)) = ends_of(quoted).zip(quoted.sequence()) else { return };
    match message {
        Message::TooBig(mtu, _) => tcp::too_big(&ends, *mtu, sequence, cx),
        Message::Unreachable(reason, _) => {
            let error = match reason {
                Unreachable::Network => Error::NetworkUnreachable,
                Unreachable::Port | Unreachable::Protocol => Error::Refused,
                _ => Error::HostUnreachable,
            };
            tcp::unreachable(&ends, error, sequence, cx);
        }
        _ => {}
    }
}

/// What a type and code of ICMP mean to who has sent the message, and whether that is final: RFC 1122, section 3.2.2; the errors are those of icmp(7).
fn errno_of_icmp(kind: (u8, u8)) -> (Errno, bool) {
    match kind {
        (3, 0 | 11) => (Errno::ENETUNREACH, false),
        (3, 2) => (Errno::ENOPROTOOPT, true),
        (3, 3) => (Errno::ECONNREFUSED, true),
        (3, 4) => (Errno::EMSGSIZE, true),
        (3, 5) => (Errno::EOPNOTSUPP, false),
        (3, 6 | 9) => (Errno::ENETUNREACH, true),
        (3, 7) => (Errno::EHOSTDOWN, true),
        (3, 8) => (Errno::ENONET, true),
        (3, 10 | 13..=15) => (Errno::EHOSTUNREACH, true),
        _ => (Errno::EHOSTUNREACH, false),
    }
}

/// The same of ICMPv6: RFC 4443, section 3.
fn errno_of_icmpv6(kind: (u8, u8)) -> (Errno, bool) {
    match kind {
        (1, 0) => (Errno::ENETUNREACH, false),
        (1, 1 | 5 | 6) => (Errno::EACCES, true),
        (1, 4) => (Errno::ECONNREFUSED, true),
        (2, _) => (Errno::EMSGSIZE, false),
        _ => (Errno::EHOSTUNREACH, false),
    }
}

/// The two ends of what an error is about, this machine's first.
fn ends_of(quoted: &Quoted<'_>) -> Option<(Address, Address)> {
    let (own, other) = quoted.ports()?;
    Some((Address { ip: quoted.source, port: own }, Address { ip: quoted.destination, port: other }))
}

/// The same where it is about an echo, whose number stands for this machine's port: it is behind type, code and checksum.
fn ends_of_echo(quoted: &Quoted<'_>) -> (Address, Address) {
    let number =
        quoted.payload.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_be_bytes(*bytes));
    (Address { ip: quoted.source, port: number }, Address { ip: quoted.destination, port: 0 })
}

//! What has come over the network for this machine's sockets.

use frame::Cx;
use tcpip::Checksum;
use tcpip::ip::icmp::{Message, Quoted, Unreachable};
use tcpip::ip::{Packet, protocol};
use tcpip::tcp::Error;

use super::address::Address;
use super::{datagram, tcp};
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
        _whole: &[u8],
        checksum: Checksum,
        _from: &'static Interface,
        cx: &Cx,
    ) -> bool {
        match packet.protocol {
            protocol::TCP => {
                tcp::segment_came(packet, checksum, cx);
                true
            }
            protocol::UDP => datagram::datagram_came(packet, checksum, cx),
            protocol::ICMP | protocol::ICMPV6 => {
                match Message::parse(packet, Checksum::Verify) {
                    Ok(Message::Unreachable(reason, quoted)) => unreachable(reason, &quoted, cx),
                    Ok(Message::TooBig(mtu, quoted)) if quoted.protocol == protocol::TCP => {
                        if let Some((ends, sequence)) = ends_of(&quoted).zip(quoted.sequence()) {
                            tcp::too_big(&ends, mtu, sequence, cx);
                        }
                    }
                    _ => {}
                }
                datagram::control_came(packet, cx);
                true
            }
            _ => false,
        }
    }
}

/// The two ends of what an error is about, this machine's first.
fn ends_of(quoted: &Quoted<'_>) -> Option<(Address, Address)> {
    let (own, other) = quoted.ports()?;
    Some((Address { ip: quoted.source, port: own }, Address { ip: quoted.destination, port: other }))
}

fn unreachable(reason: Unreachable, quoted: &Quoted<'_>, cx: &Cx) {
    let Some(ends) = ends_of(quoted) else { return };
    match quoted.protocol {
        protocol::TCP => {
            let error = match reason {
                Unreachable::Network => Error::NetworkUnreachable,
                Unreachable::Port | Unreachable::Protocol => Error::Refused,
                _ => Error::HostUnreachable,
            };
            if let Some(sequence) = quoted.sequence() {
                tcp::unreachable(&ends, error, sequence, cx);
            }
        }
        protocol::UDP => {
            let error = match reason {
                Unreachable::Network => Errno::ENETUNREACH,
                Unreachable::Port | Unreachable::Protocol => Errno::ECONNREFUSED,
                _ => Errno::EHOSTUNREACH,
            };
            datagram::did_not_arrive(&ends, error, cx);
        }
        _ => {}
    }
}

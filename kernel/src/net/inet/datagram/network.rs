//! Messages to other machines, and from them.

use frame::Cx;
use linux_raw_sys::net;
use tcpip::ip::{IpHeader, Packet, protocol};
use tcpip::udp::{self, UdpDatagram};
use tcpip::{Checksum, OutgoingChecksum};

use super::endpoint::{Datagram, Kind};
use super::icmp::{answer_came, tell_all};
use super::{Endpoint, UDP};
use crate::error::{Errno, Result};
use crate::net::counters;
use crate::net::inet::address::Address;
use crate::net::interface::{self, Unsent};
use crate::time::clock;

impl Endpoint {
    /// Sends a message to another machine.
    ///
    /// # Errors
    /// ENETUNREACH, EHOSTUNREACH, EMSGSIZE. ENOBUFS. EACCES: a broadcast that was not asked for.
    pub(super) fn send_out(&self, datagram: &Datagram, to: Address, cx: &Cx) -> Result<()> {
        let way = interface::way_to(to.ip).map_err(errno_of)?;
        if way.is_broadcast && !self.settings.with(|settings| settings.is_on(net::SOL_SOCKET, net::SO_BROADCAST)) {
            return Err(Errno::EACCES);
        }
        let number = match (self.kind, to.ip.is_ipv4()) {
            (Kind::Udp, _) => protocol::UDP,
            (_, true) => protocol::ICMP,
            (_, false) => protocol::ICMPV6,
        };
        let header = IpHeader {
            hop_limit: datagram.hops,
            traffic_class: datagram.class,
            dont_fragment: false,
            ..IpHeader::new(datagram.from.ip, to.ip, number)
        };
        if self.kind != Kind::Udp {
            return interface::send(&header, &way, &datagram.bytes, cx).map_err(errno_of);
        }
        let mut bytes = alloc::vec![0; udp::HEADER_BYTES];
        bytes.try_reserve_exact(datagram.bytes.len()).map_err(|_| Errno::ENOBUFS)?;
        bytes.extend_from_slice(&datagram.bytes);
        let (ports, sum) = ((datagram.from.port, to.port), OutgoingChecksum::Full);
        let len = udp::emit(&mut bytes, datagram.bytes.len(), ports, datagram.from.ip, to.ip, sum)
            .map_err(|_| Errno::EMSGSIZE)?;
        interface::send(&header, &way, &bytes[..len], cx).map_err(errno_of)
    }
}

impl Datagram {
    /// What a packet has brought, without a port.
    pub(super) fn of_packet(packet: &Packet<'_>, bytes: &[u8], device: i32) -> Self {
        Datagram {
            bytes: bytes.to_vec(),
            from: Address { ip: packet.source, port: 0 },
            to: packet.destination,
            hops: packet.hop_limit,
            class: packet.traffic_class,
            time: clock::real_time(),
            device,
        }
    }
}

fn errno_of(unsent: Unsent) -> Errno {
    match unsent {
        Unsent::NoRoute => Errno::ENETUNREACH,
        Unsent::NoNeighbour => Errno::EHOSTUNREACH,
        Unsent::TooLarge => Errno::EMSGSIZE,
        Unsent::NoRoom => Errno::ENOBUFS,
    }
}

/// A message of UDP has come; whether somebody gets it.
pub fn datagram_came(packet: &Packet<'_>, checksum: Checksum, device: i32, cx: &Cx) -> bool {
    let parsed = UdpDatagram::parse(packet.payload, packet.source, packet.destination, checksum);
    // One that is wrong is nobody's.
    let Ok(came) = parsed else { return true };
    let to = Address { ip: packet.destination, port: came.destination_port };
    let from = Address { ip: packet.source, port: came.source_port };
    let datagram = Datagram { from, ..Datagram::of_packet(packet, came.payload, device) };
    if interface::is_own(to.ip) {
        let found = UDP.find(to, from).and_then(|other| other.upgrade(cx).ok());
        if found.is_none() {
            counters::udp(to.ip).no_port.count();
        }
        return found.inspect(|other| other.deliver(datagram, cx)).is_some();
    }
    // For a group, or for all.
    let others = UDP.find_all(to.port, from, |key| key.ip == to.ip || key.ip.is_unspecified());
    for other in others.iter().filter_map(|other| other.upgrade(cx).ok()) {
        let is_member = !to.ip.is_multicast() || other.state.lock(cx).groups.contains(&to.ip);
        if is_member {
            other.deliver(datagram.clone(), cx);
        }
    }
    true
}

/// A message of ICMP has come.
pub fn control_came(packet: &Packet<'_>, device: i32, cx: &Cx) {
    let datagram = Datagram::of_packet(packet, packet.payload, device);
    tell_all(&datagram, cx);
    answer_came(datagram, cx);
}

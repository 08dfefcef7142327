//! A frame has come.

use alloc::vec;
use core::net::{IpAddr, Ipv4Addr};

use frame::Cx;
use tcpip::Checksum;
use tcpip::dhcp::{CLIENT_PORT, Event, Lease, SERVER_PORT};
use tcpip::ethernet::{EtherType, Frame, HardwareAddress};
use tcpip::ip::icmp::{self, Message, Problem, Unreachable};
use tcpip::ip::{Address, Audience, IpHeader, Packet, Prefix, protocol};
use tcpip::neighbour::{Arp, Ndisc};
use tcpip::udp::UdpDatagram;

use super::{ABOVE, Interface, Receiver, loopback, now, routes, send, way_to};
use crate::net::{counters, packet};

/// The longest error of ICMP.
const LONGEST_ERROR: usize = 1240;

impl Receiver for Interface {
    fn receive(&self, frame: &[u8], checksum: Checksum, cx: &Cx) {
        // The interfaces live for ever.
        let Some(this) = super::all().find(|interface| interface.index == self.index) else { return };
        if !self.is_up() {
            return;
        }
        packet::seen(frame, self, packet::Direction::In, packet::Checksum::There, cx);
        let Ok(frame) = Frame::parse(frame) else { return };
        let is_for_us = frame.destination == self.hardware() || !frame.destination.is_unicast();
        if !is_for_us || frame.source == self.hardware() {
            return;
        }
        match frame.kind {
            EtherType::Arp => this.arp_came(frame.payload, cx),
            EtherType::Ipv4 | EtherType::Ipv6 => this.packet_came(frame.payload, checksum, cx),
            EtherType::Other(_) => {}
        }
    }

    fn has_room(&self, cx: &Cx) {
        if let Some(above) = ABOVE.get() {
            above.0.has_room(cx);
        }
    }
}

impl Interface {
    fn arp_came(&self, bytes: &[u8], cx: &Cx) {
        let Ok(message) = Arp::parse(bytes) else { return };
        let outcome = {
            let mut state = self.state.lock(cx);
            let state = &mut *state;
            let addresses = &state.addresses;
            state.neighbours.on_arp(now(), &message, self.hardware(), |address| addresses.has(address.into()))
        };
        if let Some(reply) = outcome.reply {
            self.send_arp(&reply, reply.target.0, cx);
        }
        for frame in outcome.released {
            // One that is lost is sent again by who wants it to arrive.
            let _ = self.send_frame(message.sender.0, frame, cx);
        }
    }

    fn packet_came(&'static self, bytes: &[u8], checksum: Checksum, cx: &Cx) {
        let is_v4 = bytes.first().is_some_and(|first| first >> 4 == 4);
        let counters = if is_v4 { &counters::IP_V4 } else { &counters::IP_V6 };
        counters.received.count();
        counters.received_bytes.add(bytes.len() as u64);
        let Ok(packet) = Packet::parse(bytes, Checksum::Verify) else {
            return counters.wrong.count();
        };
        let is_elsewhere = self.is_own_elsewhere(packet.source, cx);
        let (audience, has_v4, is_possible) = {
            let state = self.state.lock(cx);
            let has_v4 = state.addresses.iter().any(|address| address.prefix.address().is_ipv4());
            let is_possible = packet.is_source_possible(|source| is_elsewhere || state.addresses.has(source));
            (state.addresses.audience(packet.destination), has_v4, is_possible)
        };
        // A server may answer to the address that it offers, which nobody has yet.
        let is_for_us = audience != Audience::Other || !has_v4 && may_be_offer(&packet);
        if !is_for_us || !is_possible || packet.source.is_loopback() || packet.destination.is_loopback() {
            return counters.for_others.count();
        }
        if packet.fragment.is_none() {
            return self.whole_came(&packet, bytes, (audience, checksum), cx);
        }
        let datagram = self.state.lock(cx).reassembler.push(now(), &packet);
        self.news.wake_all();
        if let Some(Ok(packet)) = datagram.as_ref().map(|datagram| datagram.packet()) {
            self.whole_came(&packet, bytes, (audience, Checksum::Verify), cx);
        }
    }

    /// Whether an address is this machine's, but not of this interface.
    fn is_own_elsewhere(&self, address: IpAddr, cx: &Cx) -> bool {
        let mut others = super::all().filter(|other| other.index != self.index);
        loopback::has(address) || others.any(|other| other.state.lock(cx).addresses.has(address))
    }

    /// A packet has come, all of it. `bytes` are its first ones, with the header. And for whom it is, and whether a checksum must be looked at.
    fn whole_came(
        &'static self,
        packet: &Packet<'_>,
        bytes: &[u8],
        (audience, checksum): (Audience, Checksum),
        cx: &Cx,
    ) {
        counters::ip(packet.source).delivered.count();
        match packet.protocol {
            protocol::ICMP | protocol::ICMPV6 if self.control_came(packet, audience, cx) => return,
            protocol::UDP if self.answer_came(packet, checksum, cx) => return,
            _ => {}
        }
        let is_taken = ABOVE.get().is_some_and(|above| above.0.receive(packet, audience, checksum, self, cx));
        if is_taken || !icmp::may_answer(packet, audience) {
            return;
        }
        let reason = match packet.protocol {
            protocol::UDP => Unreachable::Port,
            // Its own answer is a reset.
            protocol::TCP | protocol::ICMP | protocol::ICMPV6 => return,
            _ => Unreachable::Protocol,
        };
        if !self.state.lock(cx).error_limit.allow(now()) {
            return counters::ICMP_LIMITED.count();
        }
        let mut out = [0; LONGEST_ERROR];
        let ends = (packet.destination, packet.source);
        if let Ok(len) = icmp::error(Problem::Unreachable(reason), bytes, ends, &mut out) {
            self.answer(packet, packet.destination, &out[..len], cx);
        }
    }

    /// A message of ICMP: whether nobody else wants it.
    fn control_came(&self, packet: &Packet<'_>, audience: Audience, cx: &Cx) -> bool {
        match Message::parse(packet, Checksum::Verify) {
            Ok(Message::EchoRequest) => {
                let own = self.state.lock(cx).addresses.source_for(packet.source);
                let source = if audience == Audience::Unicast { Some(packet.destination) } else { own };
                let may_answer = audience == Audience::Unicast || packet.destination.is_ipv6();
                if let Some(source) = source.filter(|_| may_answer && icmp::may_answer(packet, Audience::Unicast)) {
                    let mut out = vec![0; packet.payload.len()];
                    if let Ok(len) = icmp::echo_reply(packet, source, &mut out) {
                        self.answer(packet, source, &out[..len], cx);
                    }
                }
                false
            }
            Ok(Message::NeighbourDiscovery) => {
                self.discovery_came(packet, cx);
                true
            }
            Ok(_) => false,
            Err(_) => true,
        }
    }

    /// Answers who has sent a packet with a message of its protocol.
    fn answer(&self, packet: &Packet<'_>, source: IpAddr, message: &[u8], cx: &Cx) {
        let header = IpHeader { dont_fragment: false, ..IpHeader::new(source, packet.source, packet.protocol) };
        let protocol = if packet.source.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        if let Ok(way) = way_to(packet.source) {
            // An answer may be lost.
            let _ = send(&IpHeader { protocol, ..header }, &way, message, cx);
        }
    }

    fn discovery_came(&self, packet: &Packet<'_>, cx: &Cx) {
        let (Ok(Some(message)), IpAddr::V6(source)) = (Ndisc::parse(packet), packet.source) else { return };
        let outcome = {
            let mut state = self.state.lock(cx);
            let state = &mut *state;
            if let Some(autoconfiguration) = &mut state.autoconfiguration {
                autoconfiguration.on_claim(source, &message, &mut state.addresses);
                if let Ndisc::RouterAdvertisement(advertisement) = &message {
                    autoconfiguration.on_advertisement(now(), advertisement, &mut state.addresses);
                }
            }
            let addresses = &state.addresses;
            let is_own = |address: core::net::Ipv6Addr| addresses.has(address.into());
            state.neighbours.on_ndisc(now(), source, &message, self.hardware(), is_own)
        };
        if matches!(message, Ndisc::RouterAdvertisement(_)) {
            self.use_router(cx);
            self.tell_addresses(cx);
        }
        self.news.wake_all();
        if let (Some((reply, to)), IpAddr::V6(own)) = (outcome.reply, packet.destination) {
            let source = match reply {
                Ndisc::Advertisement { target, .. } => target,
                _ => own,
            };
            self.send_ndisc(&reply, source, to, None, cx);
        }
        let device = released_to(&message);
        for frame in outcome.released {
            if let Some(device) = device {
                let _ = self.send_frame(device, frame, cx);
            }
        }
    }

    /// The route to everywhere leads over the router that has said that it may be used, while one has.
    pub(super) fn use_router(&self, cx: &Cx) {
        let router = match &self.state.lock(cx).autoconfiguration {
            Some(autoconfiguration) => autoconfiguration.default_router().map(IpAddr::V6),
            None => return,
        };
        let everywhere = Prefix::new(core::net::Ipv6Addr::UNSPECIFIED.into(), 0);
        routes::use_router(self, everywhere, router, routes::BY_ROUTER, cx);
    }

    /// An answer to what the configuration has asked: whether it is one.
    fn answer_came(&self, packet: &Packet<'_>, checksum: Checksum, cx: &Cx) -> bool {
        let Ok(datagram) = UdpDatagram::parse(packet.payload, packet.source, packet.destination, checksum) else {
            return true;
        };
        if (datagram.source_port, datagram.destination_port) != (SERVER_PORT, CLIENT_PORT) {
            return false;
        }
        let event = match &mut self.state.lock(cx).dhcp {
            Some(client) => client.on_message(now(), datagram.payload),
            // A program asks for addresses.
            None => return false,
        };
        if let Ok(Some(event)) = event {
            self.lease_changed(&event, cx);
        }
        self.news.wake_all();
        true
    }

    /// What a server of addresses has given, or taken, is so from now on.
    pub(super) fn lease_changed(&self, event: &Event, cx: &Cx) {
        let (old, new) = {
            let mut state = self.state.lock(cx);
            let new = match event {
                Event::Bound(lease) => Some(*lease),
                Event::Renewed => return,
                Event::Lost => None,
            };
            let old = core::mem::replace(&mut state.lease, new);
            if let Some(old) = &old {
                state.addresses.remove(old.address.into());
            }
            if let Some(new) = &new {
                // Without memory there is none, and the next message of the server's gives it again.
                let _ = state.addresses.add(Address::permanent(prefix_of(new)));
            }
            (old, new)
        };
        if old.is_some() || new.is_some() {
            let router = new.and_then(|lease| lease.router).map(IpAddr::V4);
            routes::use_router(self, Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0), router, routes::BY_DHCP, cx);
        }
        self.tell_addresses(cx);
        match new {
            Some(lease) => crate::log!("{} has the address {}/{}", self.name, lease.address, lease.prefix_len),
            None => crate::log!("{} has no address any more", self.name),
        }
    }
}

/// Whether a packet may be for a client of DHCP, whatever its address. Of later fragments nobody knows.
fn may_be_offer(packet: &Packet<'_>) -> bool {
    let destination_port = packet.payload.get(2..).and_then(|rest| rest.first_chunk());
    packet.protocol == protocol::UDP
        && packet.source.is_ipv4()
        && packet.fragment.is_none()
        && destination_port.is_some_and(|port| u16::from_be_bytes(*port) == CLIENT_PORT)
}

fn prefix_of(lease: &Lease) -> Prefix {
    Prefix::new(lease.address.into(), lease.prefix_len)
}

/// The device of the neighbour for which packets have waited, if a message tells it.
fn released_to(message: &Ndisc<'_>) -> Option<HardwareAddress> {
    match message {
        Ndisc::Solicitation { hardware, .. } | Ndisc::Advertisement { hardware, .. } => *hardware,
        Ndisc::RouterAdvertisement(advertisement) => advertisement.hardware,
        Ndisc::RouterSolicitation { .. } => None,
    }
}

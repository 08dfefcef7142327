//! A packet goes out: where it is routed to, which neighbour that is, and its frame.

use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use refs::SpinGuard;
use tcpip::ethernet::{self, EtherType, HEADER_BYTES, HardwareAddress};
use tcpip::ip::{Audience, IpHeader, protocol};
use tcpip::neighbour::{ARP_BYTES, Arp, HOP_LIMIT, LONGEST_NDISC, Ndisc, Question, Resolution, solicited_node};

use super::{Interface, Offload, Refused, State, all, now, routes};
use crate::net::{counters, packet};

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// No route leads there (`ENETUNREACH`).
    NoRoute,
    /// The neighbour does not answer (`EHOSTUNREACH`).
    NoNeighbour,
    /// It is too large (`EMSGSIZE`).
    TooLarge,
    /// The card has no room, or there is no memory: it is lost (`ENOBUFS`).
    NoRoom,
}

/// The way to an address.
#[derive(Clone, Copy)]
pub struct Way {
    /// Over which interface.
    pub interface: &'static Interface,
    /// The source for who has not chosen one.
    pub source: IpAddr,
    /// The neighbour that gets it.
    pub next: IpAddr,
    /// Whether it is for all.
    pub is_broadcast: bool,
}

impl Way {
    /// Bytes of the largest packet.
    pub fn mtu(&self) -> usize {
        usize::from(self.interface.mtu())
    }
}

/// The way to an address that is not this machine's.
///
/// # Errors
/// `NoRoute`.
pub fn way_to(target: IpAddr) -> Result<Way, Unsent> {
    let neighbours = all().find_map(|interface| interface.way_to_neighbour(target));
    let route = match neighbours {
        // A route that says more of the address comes first.
        Some((way, len)) => match routes::find(target).filter(|route| route.prefix.len_bits() > len) {
            Some(route) => route,
            None => return Ok(way),
        },
        None => routes::find(target).ok_or(Unsent::NoRoute)?,
    };
    let interface = all().find(|interface| interface.index == route.interface).ok_or(Unsent::NoRoute)?;
    let source = match route.source {
        Some(source) => source,
        None => {
            // The address that the router knows.
            let known = route.gateway.filter(IpAddr::is_ipv4).unwrap_or(target);
            interface.state.with(|state| state.addresses.source_for(known)).ok_or(Unsent::NoRoute)?
        }
    };
    Ok(Way { interface, source, next: route.gateway.unwrap_or(target), is_broadcast: false })
}

/// Sends a packet, whose bytes `payload` are; in fragments, if it does not fit.
///
/// # Errors
/// It was not sent, and why.
pub fn send(header: &IpHeader, way: &Way, payload: &[u8], cx: &Cx) -> Result<(), Unsent> {
    static NEXT_ID: AtomicU32 = AtomicU32::new(1);
    let mtu = way.mtu();
    if header.len_bytes() + payload.len() <= mtu {
        return way.interface.send_packet(header, way.next, payload, cx);
    }
    if header.dont_fragment && header.destination.is_ipv4() {
        return Err(Unsent::TooLarge);
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    for (fragment, range) in header.fragments(payload.len(), mtu, id) {
        way.interface.send_packet(&fragment, way.next, &payload[range], cx)?;
    }
    Ok(())
}

impl Interface {
    /// The way to an address of its link.
    fn way_to_neighbour(&'static self, target: IpAddr) -> Option<(Way, u8)> {
        if !self.is_up() {
            return None;
        }
        self.state.with(|state| state.way_to_neighbour(self, target))
    }

    /// Sends one packet to a neighbour.
    fn send_packet(&self, header: &IpHeader, next: IpAddr, payload: &[u8], cx: &Cx) -> Result<(), Unsent> {
        counters::ip(header.destination).count_sent(header.len_bytes() + payload.len());
        let at = HEADER_BYTES + header.len_bytes();
        let mut frame = Vec::new();
        frame.try_reserve_exact(at + payload.len()).map_err(|_| Unsent::NoRoom)?;
        frame.resize(at, 0);
        frame.extend_from_slice(payload);
        header.emit(&mut frame[HEADER_BYTES..], payload.len()).map_err(|_| Unsent::TooLarge)?;
        self.send_to_neighbour(next, frame, cx)
    }

    /// Sends a packet, before which there is room for a frame's header, to a neighbour.
    pub(super) fn send_to_neighbour(&self, next: IpAddr, frame: Vec<u8>, cx: &Cx) -> Result<(), Unsent> {
        if let Some(group) = HardwareAddress::of_group(next) {
            return self.send_frame(group, frame, cx);
        }
        let mut state = self.state.lock(cx);
        if state.addresses.audience(next) == Audience::Broadcast {
            drop(state);
            return self.send_frame(HardwareAddress::BROADCAST, frame, cx);
        }
        match state.neighbours.resolve(now(), next, frame) {
            Resolution::Send(hardware, frame) => {
                drop(state);
                self.send_frame(hardware, frame, cx)
            }
            Resolution::Waits(lost) => {
                self.ask(state, cx);
                drop(lost);
                Ok(())
            }
            Resolution::Unreachable(_) => Err(Unsent::NoNeighbour),
        }
    }

    /// Sends the questions that neighbours are to be asked, and has the task look when they are asked again.
    pub(super) fn ask(&self, mut state: SpinGuard<'_, State>, cx: &Cx) {
        let mut questions = Vec::new();
        while let Some(question) = state.neighbours.next_question() {
            let source = state.addresses.source_for(question.target);
            questions.extend(source.map(|source| (question, source)));
        }
        drop(state);
        for (question, source) in questions {
            self.send_question(&question, source, cx);
        }
        self.news.wake_all();
    }

    pub(super) fn send_question(&self, question: &Question, source: IpAddr, cx: &Cx) {
        match (question.target, source) {
            (IpAddr::V4(target), IpAddr::V4(source)) => {
                let arp = Arp::request((self.hardware(), source), target);
                self.send_arp(&arp, question.device.unwrap_or(HardwareAddress::BROADCAST), cx);
            }
            (IpAddr::V6(target), IpAddr::V6(source)) => {
                let message = Ndisc::Solicitation { target, hardware: Some(self.hardware()) };
                let to = question.device.map_or_else(|| solicited_node(target), |_| target);
                self.send_ndisc(&message, source, to, question.device, cx);
            }
            _ => {}
        }
    }

    /// Sends a message of ARP.
    pub(super) fn send_arp(&self, arp: &Arp, to: HardwareAddress, cx: &Cx) {
        let mut frame = vec![0; HEADER_BYTES + ARP_BYTES];
        if arp.emit(&mut frame[HEADER_BYTES..]).is_ok() {
            self.send_frame_of(EtherType::Arp, to, &mut frame, &Offload::default(), cx);
        }
    }

    /// Sends a message of neighbour discovery: to a device that is known, a group, or a neighbour.
    pub(super) fn send_ndisc(
        &self,
        message: &Ndisc<'_>,
        source: core::net::Ipv6Addr,
        to: core::net::Ipv6Addr,
        device: Option<HardwareAddress>,
        cx: &Cx,
    ) {
        let mut bytes = [0; LONGEST_NDISC];
        let Ok(len) = message.emit(source, to, &mut bytes) else { return };
        let header = IpHeader { hop_limit: HOP_LIMIT, ..IpHeader::new(source.into(), to.into(), protocol::ICMPV6) };
        let at = HEADER_BYTES + header.len_bytes();
        let mut frame = vec![0; at];
        frame.extend_from_slice(&bytes[..len]);
        if header.emit(&mut frame[HEADER_BYTES..], len).is_err() {
            return;
        }
        // A question that is not answered is asked again.
        let _ = match device {
            Some(device) => self.send_frame(device, frame, cx),
            None => self.send_to_neighbour(to.into(), frame, cx),
        };
    }

    /// Sends an IP packet, before which there is room for the frame's header.
    pub(super) fn send_frame(&self, to: HardwareAddress, mut frame: Vec<u8>, cx: &Cx) -> Result<(), Unsent> {
        self.send_frame_with(to, &mut frame, &Offload::default(), cx)
    }

    /// Sends an IP packet of which something is left to the card.
    pub(super) fn send_frame_with(
        &self,
        to: HardwareAddress,
        frame: &mut [u8],
        offload: &Offload,
        cx: &Cx,
    ) -> Result<(), Unsent> {
        let kind = match frame.get(HEADER_BYTES).map(|first| first >> 4) {
            Some(6) => EtherType::Ipv6,
            _ => EtherType::Ipv4,
        };
        if self.send_frame_of(kind, to, frame, offload, cx) { Ok(()) } else { Err(Unsent::NoRoom) }
    }

    fn send_frame_of(
        &self,
        kind: EtherType,
        to: HardwareAddress,
        frame: &mut [u8],
        offload: &Offload,
        cx: &Cx,
    ) -> bool {
        self.is_up()
            && ethernet::emit(frame, to, self.hardware(), kind).is_ok()
            && self.send_made_with(frame, offload, cx).is_ok()
    }

    /// Sends a frame as it is.
    ///
    /// # Errors
    /// It was not sent, and why.
    pub fn send_made(&self, frame: &[u8], cx: &Cx) -> Result<(), Refused> {
        self.send_made_with(frame, &Offload::default(), cx)
    }

    /// Sends a frame of which something is left to the card.
    fn send_made_with(&self, frame: &[u8], offload: &Offload, cx: &Cx) -> Result<(), Refused> {
        let sum = if offload.checksum.is_some() { packet::Checksum::Left } else { packet::Checksum::There };
        packet::seen(frame, self, packet::Direction::Out, sum, cx);
        self.card.send(frame, offload, cx)
    }
}

impl State {
    /// The way, and how many bits of the address it is for.
    fn way_to_neighbour(&self, interface: &'static Interface, target: IpAddr) -> Option<(Way, u8)> {
        let is_limited = target == IpAddr::V4(Ipv4Addr::BROADCAST);
        let prefixes = self.addresses.iter().map(|address| address.prefix);
        let on_link = prefixes.filter(|prefix| prefix.contains(target)).map(|prefix| prefix.len_bits()).max();
        let source = self.addresses.source_for(target)?;
        let is_broadcast = self.addresses.audience(target) == Audience::Broadcast;
        let to_all = (is_limited || target.is_multicast()).then_some(u8::MAX);
        Some((Way { interface, source, next: target, is_broadcast }, to_all.or(on_link)?))
    }
}

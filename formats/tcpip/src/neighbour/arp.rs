//! ARP (RFC 826, RFC 5227): who has an IPv4 address.

use alloc::collections::VecDeque;
use core::net::{IpAddr, Ipv4Addr};

use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress};

use crate::Malformed;
use crate::ethernet::HardwareAddress;
use crate::time::Instant;

use super::cache::{Evidence, NeighbourCache};

/// Bytes of a message.
pub const ARP_BYTES: usize = 28;

/// What a message asks or says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpKind {
    /// Who has the target's address?
    Request,
    /// The sender has its address.
    Reply,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// What it is.
    pub kind: ArpKind,
    /// The sender.
    pub sender: (HardwareAddress, Ipv4Addr),
    /// The target; a request does not know its device.
    pub target: (HardwareAddress, Ipv4Addr),
}

impl Arp {
    /// Asks who has an address. A sender of `0.0.0.0` only wants to know whether anybody has (RFC 5227).
    pub fn request(sender: (HardwareAddress, Ipv4Addr), target: Ipv4Addr) -> Self {
        Arp { kind: ArpKind::Request, sender, target: (HardwareAddress([0; 6]), target) }
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// It is not of Ethernet and IPv4, is too short, or is neither a request nor a reply.
    pub fn parse(bytes: &[u8]) -> Result<Arp, Malformed> {
        let packet = ArpPacket::new_checked(bytes).map_err(|_| Malformed)?;
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr,
            source_protocol_addr,
            target_hardware_addr,
            target_protocol_addr,
        } = ArpRepr::parse(&packet).map_err(|_| Malformed)?
        else {
            return Err(Malformed);
        };
        let kind = match operation {
            ArpOperation::Request => ArpKind::Request,
            ArpOperation::Reply => ArpKind::Reply,
            ArpOperation::Unknown(_) => return Err(Malformed),
        };
        Ok(Arp {
            kind,
            sender: (HardwareAddress(source_hardware_addr.0), source_protocol_addr),
            target: (HardwareAddress(target_hardware_addr.0), target_protocol_addr),
        })
    }

    /// Writes it. Returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`ARP_BYTES`].
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Malformed> {
        let bytes = out.get_mut(..ARP_BYTES).ok_or(Malformed)?;
        let repr = ArpRepr::EthernetIpv4 {
            operation: match self.kind {
                ArpKind::Request => ArpOperation::Request,
                ArpKind::Reply => ArpOperation::Reply,
            },
            source_hardware_addr: EthernetAddress(self.sender.0.0),
            source_protocol_addr: self.sender.1,
            target_hardware_addr: EthernetAddress(self.target.0.0),
            target_protocol_addr: self.target.1,
        };
        repr.emit(&mut ArpPacket::new_unchecked(bytes));
        Ok(ARP_BYTES)
    }
}

/// What came of a message.
#[derive(Debug)]
pub struct ArpOutcome<P> {
    /// Packets that waited for its sender, to be sent there.
    pub released: VecDeque<P>,
    /// An answer to send to the sender's device.
    pub reply: Option<Arp>,
    /// Another device says that it has one of our addresses.
    pub has_conflict: bool,
}

impl<P> NeighbourCache<P> {
    /// Takes in a message that came to a device with the address `hardware`. `is_own` says which addresses are this interface's.
    pub fn on_arp(
        &mut self,
        now: Instant,
        message: &Arp,
        hardware: HardwareAddress,
        is_own: impl Fn(Ipv4Addr) -> bool,
    ) -> ArpOutcome<P> {
        let (device, address) = message.sender;
        let is_for_us = is_own(message.target.1);
        let is_own_sender = is_own(address);
        let mut outcome = ArpOutcome {
            released: VecDeque::new(),
            reply: None,
            has_conflict: is_own_sender && device != hardware && device.is_unicast(),
        };
        let is_probe = address.is_unspecified();
        if !is_probe && !is_own_sender && !address.is_multicast() && !address.is_broadcast() {
            let is_answer = message.kind == ArpKind::Reply && is_for_us && message.target.0 == hardware;
            let evidence = if is_answer { Evidence::Answer } else { Evidence::Hearsay };
            outcome.released = self.learn(now, IpAddr::V4(address), device, evidence, is_for_us);
        }
        if message.kind == ArpKind::Request && is_for_us && !is_own_sender && device.is_unicast() {
            outcome.reply =
                Some(Arp { kind: ArpKind::Reply, sender: (hardware, message.target.1), target: message.sender });
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::{NeighbourLimits, Reachability, Resolution};
    use super::*;

    const OURS: (HardwareAddress, Ipv4Addr) = (HardwareAddress([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));
    const THEIRS: (HardwareAddress, Ipv4Addr) = (HardwareAddress([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2));

    fn is_own(address: Ipv4Addr) -> bool {
        address == OURS.1
    }

    #[test]
    fn questions_for_us_are_answered_and_answers_release_packets() {
        let now = Instant::default();
        let mut ours = NeighbourCache::new(NeighbourLimits::default());
        let mut theirs = NeighbourCache::<()>::new(NeighbourLimits::default());
        assert_eq!(ours.resolve(now, THEIRS.1.into(), 'a'), Resolution::Waits(None));
        let mut bytes = [0; ARP_BYTES];
        Arp::request(OURS, THEIRS.1).emit(&mut bytes).unwrap();
        let request = Arp::parse(&bytes).unwrap();
        let outcome = theirs.on_arp(now, &request, THEIRS.0, |address| address == THEIRS.1);
        assert_eq!(theirs.iter().next(), Some((OURS.1.into(), Some(OURS.0), Reachability::Stale)));
        outcome.reply.unwrap().emit(&mut bytes).unwrap();
        let outcome = ours.on_arp(now, &Arp::parse(&bytes).unwrap(), OURS.0, is_own);
        assert_eq!((outcome.released, outcome.reply, outcome.has_conflict), (['a'].into(), None, false));
    }

    #[test]
    fn conflicts_and_probes_are_seen() {
        let mut cache = NeighbourCache::<()>::new(NeighbourLimits::default());
        let now = Instant::default();
        let theft = Arp::request((THEIRS.0, OURS.1), OURS.1);
        let outcome = cache.on_arp(now, &theft, OURS.0, is_own);
        assert!(outcome.has_conflict && outcome.reply.is_none());
        let probe = Arp::request((THEIRS.0, Ipv4Addr::UNSPECIFIED), OURS.1);
        let outcome = cache.on_arp(now, &probe, OURS.0, is_own);
        assert!(!outcome.has_conflict && outcome.reply.is_some() && cache.iter().count() == 0);
    }
}

//! Neighbour discovery of IPv6 (RFC 4861): its messages, and what they do to the cache.
//!
//! Redirects are ignored: a host may, and who heeds them trusts the link.

use alloc::collections::VecDeque;
use core::net::{IpAddr, Ipv6Addr};

use smoltcp::wire::{
    EthernetAddress, Icmpv6Message, Icmpv6Packet, NdiscNeighborFlags, NdiscOption, NdiscOptionType,
    NdiscPrefixInfoFlags, NdiscRepr,
};

use crate::Malformed;
use crate::checksum::protocol;
use crate::ethernet::HardwareAddress;
use crate::ip::{Packet, icmp};
use crate::time::{Duration, Instant};

use super::cache::{Evidence, NeighbourCache};

/// The hop limit of all these messages: it shows that no router has passed them on.
pub const HOP_LIMIT: u8 = 255;
/// Bytes of the longest message that is sent.
pub const LONGEST_NDISC: usize = 32;
/// All nodes and all routers on the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// The least MTU of a link (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;

/// The group that a question for an address goes to (RFC 4291, section 2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// A prefix that a router advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisedPrefix {
    /// The prefix.
    pub prefix: Ipv6Addr,
    /// Its bits: at most 128.
    pub len: u8,
    /// Whether its addresses are neighbours.
    pub is_on_link: bool,
    /// Whether hosts may make addresses of it.
    pub is_autonomous: bool,
    /// How long it is valid; `None`: for ever.
    pub valid: Option<Duration>,
    /// How long addresses of it are preferred; `None`: for ever.
    pub preferred: Option<Duration>,
}

/// What a router says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterAdvertisement<'a> {
    /// Who says it.
    pub router: Ipv6Addr,
    /// Its device.
    pub hardware: Option<HardwareAddress>,
    /// How long it is a default router; zero: it is none.
    pub lifetime: Duration,
    /// The hop limit to use; zero: it does not say.
    pub hop_limit: u8,
    /// The MTU of the link, if it says one.
    pub mtu: Option<u32>,
    /// Its options.
    pub(super) options: &'a [u8],
}

impl RouterAdvertisement<'_> {
    /// The prefixes that it advertises.
    pub fn prefixes(&self) -> impl Iterator<Item = AdvertisedPrefix> {
        let mut rest = self.options;
        core::iter::from_fn(move || {
            loop {
                let (option, after) = next_option(rest)?;
                rest = after;
                if option.option_type() == NdiscOptionType::PrefixInformation {
                    return Some(prefix_of(&option));
                }
            }
        })
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ndisc<'a> {
    /// Who has the target's address?
    Solicitation {
        /// Whose device is wanted.
        target: Ipv6Addr,
        /// The asker's device; `None`: it has no address yet, and wants to know whether it may take this one.
        hardware: Option<HardwareAddress>,
    },
    /// The target has this device.
    Advertisement {
        /// Whose device it is.
        target: Ipv6Addr,
        /// The device.
        hardware: Option<HardwareAddress>,
        /// Whether it answers a question.
        is_solicited: bool,
        /// Whether it replaces what was known.
        overrides: bool,
    },
    /// A host asks routers to advertise.
    RouterSolicitation {
        /// Its device.
        hardware: Option<HardwareAddress>,
    },
    /// A router advertises.
    RouterAdvertisement(RouterAdvertisement<'a>),
}

/// The options that are understood.
#[derive(Default)]
struct Options {
    source: Option<HardwareAddress>,
    target: Option<HardwareAddress>,
    mtu: Option<u32>,
}

/// The first option, and those after it. `None`: there is none, or it is cut off.
fn next_option(bytes: &[u8]) -> Option<(NdiscOption<&[u8]>, &[u8])> {
    let option = NdiscOption::new_checked(bytes).ok()?;
    let rest = bytes.get(8 * usize::from(option.data_len())..)?;
    Some((option, rest))
}

impl Options {
    fn parse(mut bytes: &[u8]) -> Result<Options, Malformed> {
        let mut options = Options::default();
        while !bytes.is_empty() {
            let (option, rest) = next_option(bytes).ok_or(Malformed)?;
            let hardware = bytes.get(2..8).and_then(|bytes| bytes.first_chunk()).map(|bytes| HardwareAddress(*bytes));
            bytes = rest;
            match option.option_type() {
                NdiscOptionType::SourceLinkLayerAddr => options.source = hardware,
                NdiscOptionType::TargetLinkLayerAddr => options.target = hardware,
                NdiscOptionType::Mtu => options.mtu = Some(option.mtu()).filter(|&mtu| mtu >= LEAST_MTU),
                _ => {}
            }
        }
        Ok(options)
    }
}

fn prefix_of(option: &NdiscOption<&[u8]>) -> AdvertisedPrefix {
    let flags = option.prefix_flags();
    // All ones mean for ever.
    let lifetime = |secs: u64| (secs < u64::from(u32::MAX)).then(|| Duration::from_secs(secs));
    AdvertisedPrefix {
        prefix: option.prefix(),
        len: option.prefix_len().min(128),
        is_on_link: flags.contains(NdiscPrefixInfoFlags::ON_LINK),
        is_autonomous: flags.contains(NdiscPrefixInfoFlags::ADDRCONF),
        valid: lifetime(option.valid_lifetime().secs()),
        preferred: lifetime(option.preferred_lifetime().secs()),
    }
}

impl<'a> Ndisc<'a> {
    /// Reads a message in a packet of ICMPv6 whose checksum is right: [`icmp::Message::parse`] has said that it is one. `None`: it is of no use.
    ///
    /// # Errors
    ///
    /// A router may have passed it on, a length is wrong, or it is none that its sender may send (RFC 4861, sections 6.1 and 7.1).
    pub fn parse(packet: &Packet<'a>) -> Result<Option<Ndisc<'a>>, Malformed> {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (packet.source, packet.destination) else {
            return Err(Malformed);
        };
        if packet.hop_limit != HOP_LIMIT || packet.protocol != protocol::ICMPV6 {
            return Err(Malformed);
        }
        let view = Icmpv6Packet::new_checked(packet.payload).map_err(|_| Malformed)?;
        if view.msg_code() != 0 {
            return Err(Malformed);
        }
        let option_bytes = packet.payload.get(view.header_len()..).ok_or(Malformed)?;
        let options = || Options::parse(option_bytes);
        let message = match view.msg_type() {
            Icmpv6Message::NeighborSolicit => {
                let (target, hardware) = (view.target_addr(), options()?.source);
                let is_probe = source.is_unspecified();
                if target.is_multicast() || is_probe && (hardware.is_some() || destination != solicited_node(target)) {
                    return Err(Malformed);
                }
                Ndisc::Solicitation { target, hardware }
            }
            Icmpv6Message::NeighborAdvert => {
                let flags = view.neighbor_flags();
                let is_solicited = flags.contains(NdiscNeighborFlags::SOLICITED);
                if view.target_addr().is_multicast() || is_solicited && destination.is_multicast() {
                    return Err(Malformed);
                }
                Ndisc::Advertisement {
                    target: view.target_addr(),
                    hardware: options()?.target,
                    is_solicited,
                    overrides: flags.contains(NdiscNeighborFlags::OVERRIDE),
                }
            }
            Icmpv6Message::RouterSolicit => Ndisc::RouterSolicitation { hardware: options()?.source },
            Icmpv6Message::RouterAdvert => {
                if !source.is_unicast_link_local() {
                    return Err(Malformed);
                }
                let Options { source: hardware, mtu, .. } = options()?;
                Ndisc::RouterAdvertisement(RouterAdvertisement {
                    router: source,
                    hardware,
                    lifetime: Duration::from_secs(view.router_lifetime().secs()),
                    hop_limit: view.current_hop_limit(),
                    mtu,
                    options: option_bytes,
                })
            }
            _ => return Ok(None),
        };
        Ok(Some(message))
    }

    /// Writes it, for a packet with such addresses and a hop limit of [`HOP_LIMIT`]. Returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`LONGEST_NDISC`], or it is a router's.
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut [u8]) -> Result<usize, Malformed> {
        let raw = |hardware: Option<HardwareAddress>| hardware.map(|hardware| EthernetAddress(hardware.0).into());
        let repr = match *self {
            Ndisc::Solicitation { target, hardware } => {
                NdiscRepr::NeighborSolicit { target_addr: target, lladdr: raw(hardware) }
            }
            Ndisc::Advertisement { target, hardware, is_solicited, overrides } => {
                let mut flags = NdiscNeighborFlags::empty();
                flags.set(NdiscNeighborFlags::SOLICITED, is_solicited);
                flags.set(NdiscNeighborFlags::OVERRIDE, overrides);
                NdiscRepr::NeighborAdvert { flags, target_addr: target, lladdr: raw(hardware) }
            }
            Ndisc::RouterSolicitation { hardware } => NdiscRepr::RouterSolicit { lladdr: raw(hardware) },
            Ndisc::RouterAdvertisement(_) => return Err(Malformed),
        };
        let len = repr.buffer_len();
        let bytes = out.get_mut(..len).ok_or(Malformed)?;
        bytes.fill(0);
        repr.emit(&mut Icmpv6Packet::new_unchecked(&mut *bytes));
        icmp::seal(bytes, IpAddr::V6(source), IpAddr::V6(destination));
        Ok(len)
    }
}

/// What came of a message.
#[derive(Debug)]
pub struct NdiscOutcome<P> {
    /// Packets that waited for its sender, to be sent to its device.
    pub released: VecDeque<P>,
    /// An answer, and to whom.
    pub reply: Option<(Ndisc<'static>, Ipv6Addr)>,
}

impl<P> NeighbourCache<P> {
    /// Takes in a message from `source` that came to a device with the address `hardware`. `is_own` says which addresses this interface has, and may use.
    pub fn on_ndisc(
        &mut self,
        now: Instant,
        source: Ipv6Addr,
        message: &Ndisc<'_>,
        hardware: HardwareAddress,
        is_own: impl Fn(Ipv6Addr) -> bool,
    ) -> NdiscOutcome<P> {
        let mut outcome = NdiscOutcome { released: VecDeque::new(), reply: None };
        match *message {
            Ndisc::Solicitation { target, hardware: device } if is_own(target) && !is_own(source) => {
                if let Some(device) = device {
                    outcome.released = self.learn(now, IpAddr::V6(source), device, Evidence::Hearsay, true);
                }
                let is_probe = source.is_unspecified();
                let answer =
                    Ndisc::Advertisement { target, hardware: Some(hardware), is_solicited: !is_probe, overrides: true };
                outcome.reply = Some((answer, if is_probe { ALL_NODES } else { source }));
            }
            Ndisc::Advertisement { target, hardware: Some(device), is_solicited, overrides } if !is_own(target) => {
                let evidence = match (is_solicited, overrides) {
                    (_, false) => Evidence::Weak,
                    (true, true) => Evidence::Answer,
                    (false, true) => Evidence::Hearsay,
                };
                // A first answer counts even if it overrides nothing.
                let is_first = is_solicited && !self.knows(IpAddr::V6(target));
                let evidence = if is_first { Evidence::Answer } else { evidence };
                outcome.released = self.learn(now, IpAddr::V6(target), device, evidence, false);
            }
            Ndisc::Advertisement { target, hardware: None, is_solicited: true, .. } => {
                self.confirm(now, IpAddr::V6(target));
            }
            Ndisc::RouterAdvertisement(RouterAdvertisement { router, hardware: Some(device), .. }) => {
                outcome.released = self.learn(now, IpAddr::V6(router), device, Evidence::Hearsay, true);
            }
            _ => {}
        }
        outcome
    }

    fn knows(&self, address: IpAddr) -> bool {
        self.iter().any(|(one, hardware, _)| one == address && hardware.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::{NeighbourLimits, Reachability, Resolution};
    use super::*;
    use crate::Checksum;
    use crate::ip::icmp::Message;

    const OURS: (HardwareAddress, Ipv6Addr) =
        (HardwareAddress([2, 0, 0, 0, 0, 1]), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));
    const THEIRS: (HardwareAddress, Ipv6Addr) =
        (HardwareAddress([2, 0, 0, 0, 0, 2]), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2));

    fn carry(message: &Ndisc<'_>, source: Ipv6Addr, destination: Ipv6Addr) -> Ndisc<'static> {
        let bytes = std::vec![0; LONGEST_NDISC].leak();
        let len = message.emit(source, destination, bytes).unwrap();
        let packet = Packet {
            source: source.into(),
            destination: destination.into(),
            protocol: protocol::ICMPV6,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            fragment: None,
            payload: &bytes[..len],
        };
        assert_eq!(Message::parse(&packet, Checksum::Verify), Ok(Message::NeighbourDiscovery));
        assert_eq!(Ndisc::parse(&Packet { hop_limit: 254, ..packet }), Err(Malformed));
        Ndisc::parse(&packet).unwrap().unwrap()
    }

    #[test]
    fn questions_are_answered_and_answers_release_packets() {
        let now = Instant::default();
        let mut ours = NeighbourCache::new(NeighbourLimits::default());
        let mut theirs = NeighbourCache::<()>::new(NeighbourLimits::default());
        assert_eq!(ours.resolve(now, THEIRS.1.into(), 'a'), Resolution::Waits(None));
        let question = Ndisc::Solicitation { target: THEIRS.1, hardware: Some(OURS.0) };
        let question = carry(&question, OURS.1, solicited_node(THEIRS.1));
        let outcome = theirs.on_ndisc(now, OURS.1, &question, THEIRS.0, |address| address == THEIRS.1);
        let (answer, to) = outcome.reply.unwrap();
        assert_eq!(to, OURS.1);
        let answer = carry(&answer, THEIRS.1, to);
        let outcome = ours.on_ndisc(now, THEIRS.1, &answer, OURS.0, |address| address == OURS.1);
        assert_eq!(outcome.released, ['a']);
        assert_eq!(ours.iter().next(), Some((THEIRS.1.into(), Some(THEIRS.0), Reachability::Reachable)));
    }
}

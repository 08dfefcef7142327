//! Addresses that a host makes itself (RFC 4862): the one of the link, and those of prefixes that routers advertise, each after a look whether another host has it. And the routers that may be used
//! for all other addresses (RFC 4861, section 6.3.4), each until its lifetime ends.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use crate::ethernet::HardwareAddress;
use crate::ip::{Address, AddressState, Addresses, Prefix};
use crate::time::{Duration, Instant, earlier};

use super::ndisc::{ALL_ROUTERS, AdvertisedPrefix, Ndisc, RouterAdvertisement, solicited_node};

/// How long another host has to say that it has an address.
const PROBE: Duration = Duration::from_secs(1);
/// How often and at what distance routers are asked.
const SOLICITATIONS: u8 = 3;
const SOLICITATION_INTERVAL: Duration = Duration::from_secs(4);
/// An advertisement cannot shorten the life of an address to less (RFC 4862, section 5.5.3): else anybody could end it.
const SHORTEST_LIFE: Duration = Duration::from_secs(2 * 3600);
/// Addresses that are made of prefixes, at most.
const MOST_ADDRESSES: usize = 16;
/// Routers, at most.
const MOST_ROUTERS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Probe {
    address: Ipv6Addr,
    /// When it may be used; `None`: the question is still to be sent.
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Router {
    address: Ipv6Addr,
    /// When it is none any more.
    until: Instant,
}

/// The state of one interface. Its [`Addresses`] are the caller's.
#[derive(Debug)]
pub struct Autoconfiguration {
    hardware: HardwareAddress,
    probes: Vec<Probe>,
    solicitations: u8,
    /// When routers are asked next; `None`: not any more.
    ask_at: Option<Instant>,
    /// The first that has said so is used as long as it says so.
    routers: Vec<Router>,
}

/// The identifier of an interface (RFC 4291, appendix A), as the low bits of an address.
fn identifier(hardware: HardwareAddress) -> u128 {
    let [a, b, c, d, e, f] = hardware.0;
    u128::from(u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]))
}

impl Autoconfiguration {
    /// Begins with the address of the link, which is tentative at first.
    pub fn new(now: Instant, hardware: HardwareAddress, addresses: &mut Addresses) -> Self {
        let mut all = Autoconfiguration {
            hardware,
            probes: Vec::new(),
            solicitations: 0,
            ask_at: Some(now + PROBE),
            routers: Vec::new(),
        };
        let link_local = Ipv6Addr::from(0xfe80 << 112 | identifier(hardware));
        all.begin(Address::permanent(Prefix::new(IpAddr::V6(link_local), 64)), addresses);
        all
    }

    /// Adds a tentative address, and looks whether another host has it. Without memory nothing happens: an advertisement comes again.
    fn begin(&mut self, address: Address, addresses: &mut Addresses) {
        let IpAddr::V6(own) = address.prefix.address() else { return };
        if self.probes.try_reserve(1).is_ok()
            && addresses.add(Address { state: AddressState::Tentative, ..address }).is_ok()
        {
            self.probes.push(Probe { address: own, until: None });
        }
    }

    /// The next message to send: from whom, to whom.
    pub fn next_message(
        &mut self,
        now: Instant,
        addresses: &Addresses,
    ) -> Option<(Ndisc<'static>, Ipv6Addr, Ipv6Addr)> {
        if let Some(probe) = self.probes.iter_mut().find(|probe| probe.until.is_none()) {
            probe.until = Some(now + PROBE);
            let message = Ndisc::Solicitation { target: probe.address, hardware: None };
            return Some((message, Ipv6Addr::UNSPECIFIED, solicited_node(probe.address)));
        }
        if self.ask_at.is_none_or(|at| at > now) {
            return None;
        }
        self.solicitations += 1;
        self.ask_at = (self.solicitations < SOLICITATIONS).then(|| now + SOLICITATION_INTERVAL);
        match addresses.source_for(IpAddr::V6(ALL_ROUTERS)) {
            Some(IpAddr::V6(source)) => {
                Some((Ndisc::RouterSolicitation { hardware: Some(self.hardware) }, source, ALL_ROUTERS))
            }
            _ => Some((Ndisc::RouterSolicitation { hardware: None }, Ipv6Addr::UNSPECIFIED, ALL_ROUTERS)),
        }
    }

    /// When [`on_deadline`](Autoconfiguration::on_deadline) is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        let router = self.routers.iter().map(|router| router.until).min();
        earlier(earlier(self.probes.iter().filter_map(|probe| probe.until).min(), self.ask_at), router)
    }

    /// The router for all addresses to which no other route leads.
    pub fn default_router(&self) -> Option<Ipv6Addr> {
        self.routers.first().map(|router| router.address)
    }

    /// Nobody has said that he has an address: it may be used. Then there may be a [message](Autoconfiguration::next_message). A router whose lifetime is over is none any more.
    pub fn on_deadline(&mut self, now: Instant, addresses: &mut Addresses) {
        self.probes.retain(|probe| {
            if probe.until.is_none_or(|until| until > now) {
                return true;
            }
            if let Some(own) = addresses.iter_mut().find(|own| own.prefix.address() == IpAddr::V6(probe.address)) {
                own.state = AddressState::Preferred;
            }
            false
        });
        self.routers.retain(|router| router.until > now);
        addresses.expire(now);
    }

    /// Another host has or wants an address: if it is one that is tentative, it is given up. Returns it then.
    pub fn on_claim(&mut self, source: Ipv6Addr, message: &Ndisc<'_>, addresses: &mut Addresses) -> Option<Ipv6Addr> {
        let target = match *message {
            Ndisc::Advertisement { target, .. } => target,
            Ndisc::Solicitation { target, .. } if source.is_unspecified() => target,
            _ => return None,
        };
        let index = self.probes.iter().position(|probe| probe.address == target)?;
        self.probes.remove(index);
        addresses.remove(IpAddr::V6(target));
        Some(target)
    }

    /// Takes in what a router advertises: makes addresses, and lets known ones live longer; and whether it is a [default router](Autoconfiguration::default_router). Routes are the caller's.
    pub fn on_advertisement(&mut self, now: Instant, message: &RouterAdvertisement<'_>, addresses: &mut Addresses) {
        self.ask_at = None;
        if !addresses.has(IpAddr::V6(message.router)) {
            self.take_router(now, message.router, message.lifetime);
        }
        for prefix in message.prefixes() {
            self.take_prefix(now, &prefix, addresses);
        }
    }

    /// It speaks only for itself: another one stays.
    fn take_router(&mut self, now: Instant, address: Ipv6Addr, lifetime: Duration) {
        let until = now + lifetime;
        if lifetime == Duration::ZERO {
            self.routers.retain(|router| router.address != address);
        } else if let Some(known) = self.routers.iter_mut().find(|router| router.address == address) {
            known.until = until;
        } else if self.routers.len() < MOST_ROUTERS && self.routers.try_reserve(1).is_ok() {
            self.routers.push(Router { address, until });
        }
    }

    fn take_prefix(&mut self, now: Instant, advertised: &AdvertisedPrefix, addresses: &mut Addresses) {
        let later = |of: Option<Duration>| of.unwrap_or(Duration::from_nanos(u64::MAX));
        let is_usable = advertised.is_autonomous
            && advertised.len == 64
            && !advertised.prefix.is_unicast_link_local()
            && !advertised.prefix.is_multicast()
            && later(advertised.preferred) <= later(advertised.valid);
        if !is_usable {
            return;
        }
        let network = u128::from(advertised.prefix) >> 64 << 64;
        let own = IpAddr::V6(Ipv6Addr::from(network | identifier(self.hardware)));
        let preferred_until = advertised.preferred.map(|preferred| now + preferred);
        let valid_until = advertised.valid.map(|valid| now + valid);
        if let Some(known) = addresses.iter_mut().find(|known| known.prefix.address() == own) {
            let left = known.valid_until.map(|until| until.since(now));
            let shorter =
                advertised.valid.filter(|&valid| valid < SHORTEST_LIFE && left.is_none_or(|left| valid < left));
            known.valid_until = match shorter {
                Some(_) => Some(earlier(known.valid_until, Some(now + SHORTEST_LIFE)).unwrap_or(now)),
                None => valid_until,
            };
            known.preferred_until = preferred_until;
            if known.state == AddressState::Deprecated && preferred_until.is_none_or(|until| until > now) {
                known.state = AddressState::Preferred;
            }
        } else if advertised.valid != Some(Duration::ZERO) && addresses.iter().count() < MOST_ADDRESSES {
            let prefix = Prefix::new(own, 64);
            self.begin(Address { prefix, state: AddressState::Tentative, preferred_until, valid_until }, addresses);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: HardwareAddress = HardwareAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);

    fn at(millis: u64) -> Instant {
        Instant::default() + Duration::from_millis(millis)
    }

    fn prefix_option(prefix: &str, valid: u32) -> Vec<u8> {
        let prefix: Ipv6Addr = prefix.parse().unwrap();
        let mut option = alloc::vec![3, 4, 64, 0xc0];
        option.extend(valid.to_be_bytes());
        option.extend((valid / 2).to_be_bytes());
        option.extend([0; 4]);
        option.extend(prefix.octets());
        option
    }

    fn advertisement(options: &[u8]) -> RouterAdvertisement<'_> {
        RouterAdvertisement {
            router: "fe80::2".parse().unwrap(),
            hardware: None,
            lifetime: Duration::from_secs(1800),
            hop_limit: 64,
            mtu: None,
            options,
        }
    }

    #[test]
    fn addresses_are_used_once_nobody_has_claimed_them() {
        let mut addresses = Addresses::default();
        let mut all = Autoconfiguration::new(at(0), DEVICE, &mut addresses);
        let link_local: Ipv6Addr = "fe80::5054:ff:fe12:3456".parse().unwrap();
        let (message, source, _) = all.next_message(at(0), &addresses).unwrap();
        assert_eq!(message, Ndisc::Solicitation { target: link_local, hardware: None });
        assert!(source.is_unspecified() && !addresses.has(link_local.into()));
        all.on_deadline(at(1000), &mut addresses);
        assert!(addresses.has(link_local.into()));
        let (message, source, to) = all.next_message(at(1000), &addresses).unwrap();
        assert_eq!(
            (message, source, to),
            (Ndisc::RouterSolicitation { hardware: Some(DEVICE) }, link_local, ALL_ROUTERS)
        );
        all.on_advertisement(at(1100), &advertisement(&prefix_option("2001:db8::", 10_000)), &mut addresses);
        let own: Ipv6Addr = "2001:db8::5054:ff:fe12:3456".parse().unwrap();
        assert!(all.next_message(at(1100), &addresses).is_some());
        all.on_deadline(at(2100), &mut addresses);
        assert!(addresses.has(own.into()));
        // It cannot be ended at once by a packet.
        all.on_advertisement(at(3000), &advertisement(&prefix_option("2001:db8::", 2)), &mut addresses);
        all.on_deadline(at(600_000), &mut addresses);
        assert!(addresses.has(own.into()));
        all.on_deadline(at(3000) + SHORTEST_LIFE, &mut addresses);
        assert!(!addresses.has(own.into()));
    }

    #[test]
    fn a_router_is_used_until_it_or_its_lifetime_says_otherwise() {
        let mut addresses = Addresses::default();
        let mut all = Autoconfiguration::new(at(0), DEVICE, &mut addresses);
        all.next_message(at(0), &addresses);
        all.on_deadline(at(1000), &mut addresses);
        let [one, other]: [Ipv6Addr; 2] = ["fe80::2", "fe80::3"].map(|address| address.parse().unwrap());
        let said = |router, seconds| RouterAdvertisement {
            router,
            lifetime: Duration::from_secs(seconds),
            ..advertisement(&[])
        };
        all.on_advertisement(at(1000), &said("fe80::5054:ff:fe12:3456".parse().unwrap(), 9000), &mut addresses);
        assert_eq!(all.default_router(), None, "it is this host itself");
        all.on_advertisement(at(1000), &said(one, 30), &mut addresses);
        all.on_advertisement(at(2000), &said(other, 0), &mut addresses);
        assert_eq!(all.default_router(), Some(one), "another router does not speak for it");
        all.on_advertisement(at(2000), &said(other, 60), &mut addresses);
        assert_eq!((all.default_router(), all.deadline()), (Some(one), Some(at(31_000))));
        all.on_deadline(at(31_000), &mut addresses);
        assert_eq!((all.default_router(), all.deadline()), (Some(other), Some(at(62_000))));
        all.on_advertisement(at(40_000), &said(other, 60), &mut addresses);
        all.on_deadline(at(62_000), &mut addresses);
        assert_eq!(all.default_router(), Some(other), "it has said so again");
        all.on_advertisement(at(70_000), &said(other, 0), &mut addresses);
        assert_eq!(all.default_router(), None);
    }

    #[test]
    fn an_address_that_another_host_has_is_given_up() {
        let mut addresses = Addresses::default();
        let mut all = Autoconfiguration::new(at(0), DEVICE, &mut addresses);
        let target = "fe80::5054:ff:fe12:3456".parse().unwrap();
        all.next_message(at(0), &addresses);
        let claim = Ndisc::Advertisement { target, hardware: None, is_solicited: false, overrides: true };
        assert_eq!(all.on_claim("fe80::3".parse().unwrap(), &claim, &mut addresses), Some(target));
        all.on_deadline(at(1000), &mut addresses);
        assert_eq!(addresses.iter().count(), 0);
    }
}

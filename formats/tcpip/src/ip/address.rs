//! The addresses of an interface, and which of them is the source of a packet (a part of RFC 6724 that is enough without labels).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use crate::OutOfMemory;
use crate::time::Instant;

use super::route::{Prefix, common_bits};

/// Whether an address may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressState {
    /// It is not known whether another host has it (RFC 4862): it must not be used.
    Tentative,
    /// It should not be used for what is new.
    Deprecated,
    /// It may be used.
    Preferred,
}

/// An address of an interface, with the prefix of its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address and its prefix.
    pub prefix: Prefix,
    /// Whether it may be used.
    pub state: AddressState,
    /// When it becomes deprecated; `None`: never.
    pub preferred_until: Option<Instant>,
    /// When it is to be removed; `None`: never.
    pub valid_until: Option<Instant>,
}

impl Address {
    /// One that stays.
    pub fn permanent(prefix: Prefix) -> Self {
        Address { prefix, state: AddressState::Preferred, preferred_until: None, valid_until: None }
    }
}

/// For whom an address is, of a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// For this host.
    Unicast,
    /// For all on the link, or of a network of this host.
    Broadcast,
    /// For a group.
    Multicast,
    /// For another host.
    Other,
}

/// The addresses of an interface.
#[derive(Debug, Default)]
pub struct Addresses {
    all: Vec<Address>,
}

/// How far an address reaches: loopback, link, everywhere.
fn scope(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) if address.is_loopback() => 0,
        IpAddr::V4(address) if address.is_link_local() => 1,
        IpAddr::V6(address) if address.is_loopback() => 0,
        IpAddr::V6(address) if address.is_unicast_link_local() => 1,
        IpAddr::V6(address) if address.is_multicast() && address.octets()[1] & 15 <= 2 => 1,
        _ => 2,
    }
}

impl Addresses {
    /// Adds an address, or replaces it.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn add(&mut self, address: Address) -> Result<(), OutOfMemory> {
        self.all.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.remove(address.prefix.address());
        self.all.push(address);
        Ok(())
    }

    /// Removes an address; whether it was there.
    pub fn remove(&mut self, address: IpAddr) -> bool {
        let before = self.all.len();
        self.all.retain(|one| one.prefix.address() != address);
        self.all.len() < before
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Address> {
        self.all.iter()
    }

    /// All of them, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Address> {
        self.all.iter_mut()
    }

    /// Whether it is one of this host, that may be used.
    pub fn has(&self, address: IpAddr) -> bool {
        self.all.iter().any(|one| one.prefix.address() == address && one.state != AddressState::Tentative)
    }

    /// For whom a packet to an address is.
    pub fn audience(&self, destination: IpAddr) -> Audience {
        if self.has(destination) {
            return Audience::Unicast;
        }
        let is_broadcast = |destination: Ipv4Addr| {
            destination == Ipv4Addr::BROADCAST
                || self.all.iter().any(|one| {
                    let host = u32::MAX.checked_shr(u32::from(one.prefix.len_bits())).unwrap_or(0);
                    let is_all_ones = host > 1 && u32::from(destination) & host == host;
                    is_all_ones && one.prefix.contains(IpAddr::V4(destination))
                })
        };
        match destination {
            IpAddr::V4(destination) if is_broadcast(destination) => Audience::Broadcast,
            destination if destination.is_multicast() => Audience::Multicast,
            _ => Audience::Other,
        }
    }

    /// The source for a packet to an address: of the scope that just reaches it, then one that is not deprecated, then the one with the longest common prefix.
    pub fn source_for(&self, destination: IpAddr) -> Option<IpAddr> {
        let wanted = scope(destination);
        let rank = |one: &&Address| {
            let address = one.prefix.address();
            let reach = scope(address);
            // Enough, but no more than that; else the farthest.
            let fit = if reach >= wanted { 4 - (reach - wanted) } else { reach };
            (fit, one.state, common_bits(address, destination).min(one.prefix.len_bits()))
        };
        let may_be = |one: &&Address| {
            one.state != AddressState::Tentative && one.prefix.address().is_ipv4() == destination.is_ipv4()
        };
        self.all.iter().filter(may_be).max_by_key(rank).map(|one| one.prefix.address())
    }

    /// The next time at which [`expire`](Addresses::expire) changes something.
    pub fn deadline(&self) -> Option<Instant> {
        let of = |one: &Address| {
            let preferred = one.preferred_until.filter(|_| one.state == AddressState::Preferred);
            crate::time::earlier(preferred, one.valid_until)
        };
        self.all.iter().filter_map(of).min()
    }

    /// Deprecates and removes what has come to its end.
    pub fn expire(&mut self, now: Instant) {
        self.all.retain(|one| one.valid_until.is_none_or(|until| until > now));
        for one in &mut self.all {
            if one.state == AddressState::Preferred && one.preferred_until.is_some_and(|until| until <= now) {
                one.state = AddressState::Deprecated;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duration;

    fn address(text: &str, len: u8) -> Address {
        Address::permanent(Prefix::new(text.parse().unwrap(), len))
    }

    #[test]
    fn sources_reach_as_far_as_they_must() {
        let mut addresses = Addresses::default();
        for one in [address("fe80::1", 64), address("2001:db8:1::1", 64), address("2001:db8:2::1", 64)] {
            addresses.add(one).unwrap();
        }
        addresses.add(Address { state: AddressState::Tentative, ..address("2001:db8:2::9", 64) }).unwrap();
        let source = |to: &str| addresses.source_for(to.parse().unwrap()).unwrap();
        assert_eq!(source("fe80::9"), "fe80::1".parse::<IpAddr>().unwrap());
        assert_eq!(source("2001:db8:2::9"), "2001:db8:2::1".parse::<IpAddr>().unwrap());
        assert_eq!(source("ff02::1"), "fe80::1".parse::<IpAddr>().unwrap());
        assert!(addresses.source_for("10.0.0.1".parse().unwrap()).is_none());
    }

    #[test]
    fn packets_for_all_are_known() {
        let mut addresses = Addresses::default();
        addresses.add(address("10.0.0.5", 24)).unwrap();
        for (to, audience) in [
            ("10.0.0.5", Audience::Unicast),
            ("10.0.0.255", Audience::Broadcast),
            ("255.255.255.255", Audience::Broadcast),
            ("224.0.0.1", Audience::Multicast),
            ("10.0.0.6", Audience::Other),
            ("ff02::1", Audience::Multicast),
        ] {
            assert_eq!(addresses.audience(to.parse().unwrap()), audience, "{to}");
        }
    }

    #[test]
    fn addresses_come_to_their_end() {
        let at = |seconds| Some(Instant::default() + Duration::from_secs(seconds));
        let mut addresses = Addresses::default();
        addresses.add(Address { preferred_until: at(10), valid_until: at(20), ..address("fe80::1", 64) }).unwrap();
        assert_eq!(addresses.deadline(), at(10));
        addresses.expire(at(10).unwrap());
        assert_eq!(addresses.iter().next().unwrap().state, AddressState::Deprecated);
        assert_eq!(addresses.deadline(), at(20));
        addresses.expire(at(20).unwrap());
        assert_eq!(addresses.iter().count(), 0);
    }
}

//! The table of routes: the longest prefix that contains a destination says through which device and which router it is reached.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::OutOfMemory;

/// Addresses whose first bits are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

/// The bits of an address, at the top of 128, and how many there are.
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    }
}

/// How many first bits two addresses of the same version have in common.
pub(super) fn common_bits(one: IpAddr, other: IpAddr) -> u8 {
    let ((one, len), (other, _)) = (bits(one), bits(other));
    ((one ^ other).leading_zeros() as u8).min(len)
}

impl Prefix {
    /// The prefix of so many bits of an address; more than it has are all of them.
    pub fn new(address: IpAddr, len: u8) -> Self {
        Prefix { address, len: len.min(bits(address).1) }
    }

    /// Its bits.
    pub fn len_bits(&self) -> u8 {
        self.len
    }

    /// The address that it was made of.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether an address begins with it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && common_bits(address, self.address) >= self.len
    }

    fn is_same(&self, other: &Prefix) -> bool {
        self.len == other.len && self.contains(other.address)
    }
}

/// A way to the addresses of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub prefix: Prefix,
    /// The router; `None`: they are neighbours.
    pub gateway: Option<IpAddr>,
    /// The number of the device.
    pub interface: u32,
    /// Of routes with the same prefix the one with the least counts.
    pub metric: u32,
    /// The source address to use, if one was chosen.
    pub source: Option<IpAddr>,
    /// Who has made it: a number that means something to the owner of the table (`RTPROT_*`).
    pub origin: u8,
}

/// All routes.
#[derive(Debug, Default)]
pub struct RouteTable {
    /// Longer prefixes first, then smaller metrics.
    routes: Vec<Route>,
}

impl RouteTable {
    /// Adds a route, or replaces the one with the same prefix, metric, device and router.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn add(&mut self, route: Route) -> Result<(), OutOfMemory> {
        self.routes.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.remove(|old| {
            old.prefix.is_same(&route.prefix)
                && (old.metric, old.interface, old.gateway) == (route.metric, route.interface, route.gateway)
        });
        let order = |route: &Route| (core::cmp::Reverse(route.prefix.len), route.metric);
        let at = self.routes.partition_point(|old| order(old) <= order(&route));
        self.routes.insert(at, route);
        Ok(())
    }

    /// Removes the routes of which `is_gone` says so; whether there were any.
    pub fn remove(&mut self, is_gone: impl Fn(&Route) -> bool) -> bool {
        let before = self.routes.len();
        self.routes.retain(|route| !is_gone(route));
        self.routes.len() < before
    }

    /// The route to an address, of those for which `is_usable` is true.
    pub fn lookup(&self, destination: IpAddr, is_usable: impl Fn(&Route) -> bool) -> Option<&Route> {
        self.routes.iter().find(|route| route.prefix.contains(destination) && is_usable(route))
    }

    /// All routes.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins_then_the_least_metric() {
        let route = |prefix: &str, len, interface, metric| Route {
            prefix: Prefix::new(prefix.parse().unwrap(), len),
            gateway: None,
            interface,
            metric,
            source: None,
            origin: 0,
        };
        let mut table = RouteTable::default();
        for route in [
            route("0.0.0.0", 0, 1, 100),
            route("0.0.0.0", 0, 2, 50),
            route("10.1.0.0", 16, 3, 0),
            route("10.1.2.3", 32, 4, 0),
            route("::", 0, 5, 0),
            route("fe80::", 10, 6, 0),
        ] {
            table.add(route).unwrap();
        }
        let to = |address: &str| table.lookup(address.parse().unwrap(), |_| true).unwrap().interface;
        assert_eq!(to("8.8.8.8"), 2);
        assert_eq!(to("10.1.9.9"), 3);
        assert_eq!(to("10.1.2.3"), 4);
        assert_eq!(to("2001:db8::1"), 5);
        assert_eq!(to("fe80::9"), 6);
        assert!(table.lookup("8.8.8.8".parse().unwrap(), |route| route.interface > 6).is_none());
        table.add(route("10.1.0.0", 16, 3, 0)).unwrap();
        assert_eq!(table.iter().count(), 6);
        assert!(table.remove(|route| route.interface == 4));
    }
}

//! The routes of all interfaces, but for those to their own neighbours, which follow from their addresses.

use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;
use refs::SpinLock;
use tcpip::ip::{Prefix, Route, RouteTable};

use super::{Interface, all};
use crate::error::Errno;
use crate::net::netlink::route::{self, Change};
use crate::net::refusal::{Refusal, refused};

/// No more routes there are: each packet looks at them.
const MOST_ROUTES: usize = 1024;

/// Who has made a route: RTPROT_RA and RTPROT_DHCP.
pub const BY_ROUTER: u8 = 9;
/// Likewise.
pub const BY_DHCP: u8 = 16;

static ROUTES: SpinLock<Routes> = SpinLock::new(Routes(None));

/// `None` until there is a first.
struct Routes(Option<RouteTable>);

/// How a change looks at what is there already (`NLM_F_*`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Where there is none, one is made.
    pub creates: bool,
    /// There must be none.
    pub is_exclusive: bool,
    /// The one that is there is replaced.
    pub replaces: bool,
}

/// All routes beside those to the interfaces' own neighbours.
pub fn routes(cx: &Cx) -> Vec<Route> {
    ROUTES.lock(cx).0.iter().flat_map(RouteTable::iter).copied().collect()
}

/// The route to an address.
pub fn find(target: IpAddr) -> Option<Route> {
    ROUTES.with(|routes| routes.0.as_ref().and_then(|table| table.lookup(target, |_| true).copied()))
}

fn is_same(one: &Prefix, other: &Prefix) -> bool {
    one.len_bits() == other.len_bits() && one.contains(other.address())
}

/// Adds a route, or replaces one.
///
/// # Errors
/// EEXIST: there is one. ENOENT: there is none to be replaced. EINVAL, ENETUNREACH, ENETDOWN, ENODEV: it leads nowhere. ENOBUFS: there are too many.
pub fn add(route: &Route, manner: Manner, cx: &Cx) -> Result<(), Refusal> {
    let interface = all().find(|interface| interface.index == route.interface).ok_or(Errno::ENODEV)?;
    if !interface.is_up() {
        return Err(refused(Errno::ENETDOWN, "Device for nexthop is not up"));
    }
    if let Some(gateway) = route.gateway {
        let is_neighbour = interface.addresses(cx).iter().any(|own| own.prefix.contains(gateway));
        let is_of_link = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let leads_there = routes(cx).iter().any(|other| {
            other.gateway.is_none() && other.interface == route.interface && other.prefix.contains(gateway)
        });
        if super::is_own(gateway) {
            return Err(refused(Errno::EINVAL, "Nexthop has invalid gateway"));
        }
        if !is_neighbour && !is_of_link && !leads_there {
            let error = if gateway.is_ipv4() { Errno::ENETUNREACH } else { Errno::EHOSTUNREACH };
            return Err(refused(error, "Nexthop has invalid gateway"));
        }
    }
    if route.source.is_some_and(|source| !super::is_own(source)) {
        return Err(refused(Errno::EINVAL, "Invalid prefsrc address"));
    }
    let replaced = {
        let mut routes = ROUTES.lock(cx);
        let table = routes.0.get_or_insert_default();
        let is_it = |old: &Route| is_same(&old.prefix, &route.prefix) && old.metric == route.metric;
        let old = table.iter().find(|old| is_it(old)).copied();
        match old {
            Some(_) if manner.is_exclusive => return Err(Errno::EEXIST.into()),
            Some(old) if !manner.replaces && old == *route => return Err(Errno::EEXIST.into()),
            None if !manner.creates => return Err(Errno::ENOENT.into()),
            Some(old) if manner.replaces => {
                table.remove(|one| *one == old);
            }
            _ => {}
        }
        if table.iter().count() >= MOST_ROUTES || table.add(*route).is_err() {
            return Err(Errno::ENOBUFS.into());
        }
        old.filter(|_| manner.replaces)
    };
    let change = if replaced.is_some() { Change::Replaced } else { Change::New };
    route::tell_route(route, change, cx);
    Ok(())
}

/// Removes the first route of which `is_it` says so.
///
/// # Errors
/// ESRCH: there is none.
pub fn remove(is_it: impl Fn(&Route) -> bool, cx: &Cx) -> Result<(), Refusal> {
    let gone = {
        let mut routes = ROUTES.lock(cx);
        let table = routes.0.get_or_insert_default();
        let found = table.iter().find(|route| is_it(route)).copied().ok_or(Errno::ESRCH)?;
        table.remove(|route| *route == found);
        found
    };
    route::tell_route(&gone, Change::Gone, cx);
    Ok(())
}

/// Removes all routes of which `is_it` says so.
pub fn remove_all(is_it: impl Fn(&Route) -> bool, cx: &Cx) {
    while remove(&is_it, cx).is_ok() {}
}

/// What a network has told of its router: everything goes there that goes nowhere else.
pub(super) fn use_router(interface: &Interface, everywhere: Prefix, router: Option<IpAddr>, origin: u8, cx: &Cx) {
    let route =
        Route { prefix: everywhere, gateway: router, interface: interface.index, metric: 0, source: None, origin };
    let old = |one: &Route| one.origin == origin && one.interface == interface.index;
    if router.is_some() && routes(cx).contains(&route) {
        return;
    }
    remove_all(old, cx);
    if router.is_some() {
        // Without memory it is not reached.
        let added = ROUTES.lock(cx).0.get_or_insert_default().add(route);
        if added.is_ok() {
            route::tell_route(&route, Change::New, cx);
        }
    }
}

//! Routes: RTM_NEWROUTE and its like. There is one table of those that programs change (`main`); that of this machine's own addresses (`local`) follows from them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net::{AF_INET, AF_INET6};
use tcpip::ip::{Prefix, Route};

use super::{address_of, bytes_of, families, interface_of, manner, none_of, word};
use crate::error::Errno;
use crate::net::devices;
use crate::net::interface::{self, routes};
use crate::net::netlink::Answer;
use crate::net::netlink::dump::Listed;
use crate::net::netlink::message::{Message, NLM_F_MULTI, Refusal, Request, refused};

/// RTM_NEWROUTE.
pub const NEW: u16 = 24;

/// `struct rtmsg`.
const HEAD_BYTES: usize = 12;

const TARGET: u16 = 1;
const DEVICE: u16 = 4;
const GATEWAY: u16 = 5;
const METRIC: u16 = 6;
const SOURCE: u16 = 7;
const CACHE: u16 = 12;
const TABLE: u16 = 15;
const USER: u16 = 25;
/// RTA_METRICS, RTA_MULTIPATH, RTA_VIA, RTA_ENCAP, RTA_NH_ID: what these say routes here do not have.
const CANNOT: [u16; 5] = [8, 9, 18, 22, 30];

/// RT_SCOPE_HOST and RT_SCOPE_LINK.
const SCOPE_HOST: u8 = 254;
const SCOPE_LINK: u8 = 253;
const TABLE_MAIN: u8 = 254;
const TABLE_LOCAL: u8 = 255;
/// RTPROT_KERNEL.
const BY_KERNEL: u8 = 2;
/// RTN_UNICAST, RTN_LOCAL, RTN_BROADCAST, RTN_MULTICAST.
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;
const BROADCAST: u8 = 3;
const MULTICAST: u8 = 5;
/// RTM_F_CLONED and RTM_F_LOOKUP_TABLE.
const CLONED: u32 = 0x200;
const LOOKUP_TABLE: u32 = 0x1000;
/// What routes of IPv6 have where nobody said.
const METRIC_V6: u32 = 1024;

/// A route, as it is told.
pub struct Way {
    family: u32,
    target: Option<(Vec<u8>, u8)>,
    table: u8,
    origin: u8,
    scope: u8,
    kind: u8,
    gateway: Option<Vec<u8>>,
    source: Option<Vec<u8>>,
    metric: u32,
    device: i32,
}

impl Way {
    /// One that a program or a network has told of.
    pub fn of(route: &Route) -> Self {
        let (family, target) = bytes_of(route.prefix.address());
        let is_near = family == AF_INET && route.gateway.is_none();
        Way {
            family,
            target: (route.prefix.len_bits() > 0).then(|| (target, route.prefix.len_bits())),
            table: TABLE_MAIN,
            origin: route.origin,
            scope: if is_near { SCOPE_LINK } else { 0 },
            kind: UNICAST,
            gateway: route.gateway.map(|gateway| bytes_of(gateway).1),
            source: route.source.map(|source| bytes_of(source).1),
            metric: route.metric,
            device: route.interface as i32,
        }
    }

    /// What is told of it.
    pub fn message(&self, start: impl FnOnce(&[u8]) -> Message) -> Vec<u8> {
        self.begin(0, start).finish()
    }

    fn begin(&self, flags: u32, start: impl FnOnce(&[u8]) -> Message) -> Message {
        let len = self.target.as_ref().map_or(0, |(_, len)| *len);
        let mut head = [self.family as u8, len, 0, 0, self.table, self.origin, self.scope, self.kind, 0, 0, 0, 0];
        head[8..].copy_from_slice(&flags.to_le_bytes());
        let mut message = start(&head).with(TABLE, &u32::from(self.table).to_le_bytes());
        if let Some((target, _)) = &self.target {
            message = message.with(TARGET, target);
        }
        if self.metric > 0 {
            message = message.with(METRIC, &self.metric.to_le_bytes());
        }
        if let Some(source) = &self.source {
            message = message.with(SOURCE, source);
        }
        if let Some(gateway) = &self.gateway {
            message = message.with(GATEWAY, gateway);
        }
        message.with(DEVICE, &self.device.to_le_bytes())
    }
}

/// The bits of a network, without those of the host.
fn network(prefix: &Prefix) -> Vec<u8> {
    match prefix.address() {
        IpAddr::V4(ip) => (u32::from(ip) & u32::from(devices::mask(prefix.len_bits()))).to_be_bytes().to_vec(),
        IpAddr::V6(ip) => {
            let bits = u128::MAX.checked_shl(128 - u32::from(prefix.len_bits())).unwrap_or(0);
            (u128::from(ip) & bits).to_be_bytes().to_vec()
        }
    }
}

/// The routes of a family: those that somebody has made, those to neighbours, and those to this machine's own addresses.
fn ways(family: u32, cx: &Cx) -> Vec<Way> {
    let made = routes::routes(cx);
    let of_family = |route: &&Route| bytes_of(route.prefix.address()).0 == family;
    let mut ways: Vec<Way> = made.iter().filter(of_family).map(Way::of).collect();
    for device in devices::all(cx).iter().filter(|device| device.is_up()) {
        for own in &device.addresses {
            let (of, bytes) = bytes_of(own.prefix.address());
            if of != family {
                continue;
            }
            let (is_v4, is_loopback) = (family == AF_INET, device.is_loopback());
            let whole = bytes.len() as u8 * 8;
            let way = |target, table, scope, kind| Way {
                family,
                target: Some(target),
                table,
                origin: BY_KERNEL,
                scope,
                kind,
                gateway: None,
                source: is_v4.then(|| bytes.clone()),
                metric: if is_v4 || table == TABLE_LOCAL { 0 } else { 256 },
                device: device.index,
            };
            let len = own.prefix.len_bits();
            if len < whole {
                let (table, kind) = if is_loopback { (TABLE_LOCAL, LOCAL) } else { (TABLE_MAIN, UNICAST) };
                let scope = match (is_v4, is_loopback) {
                    (true, true) => SCOPE_HOST,
                    (true, false) => SCOPE_LINK,
                    (false, _) => 0,
                };
                ways.push(way((network(&own.prefix), len), table, scope, kind));
            }
            ways.push(way((bytes.clone(), whole), TABLE_LOCAL, if is_v4 { SCOPE_HOST } else { 0 }, LOCAL));
            if let Some(all) = devices::broadcast(&own.prefix) {
                ways.push(way((all.octets().to_vec(), 32), TABLE_LOCAL, SCOPE_LINK, BROADCAST));
            }
        }
    }
    ways
}

/// All routes of a family, or the one to an address.
///
/// # Errors
/// ENETUNREACH: there is none. EINVAL.
pub fn get(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    if !request.is_dump() {
        return get_one(request);
    }
    let attributes = request.attributes(HEAD_BYTES);
    let head = request.head::<HEAD_BYTES>();
    let (mut table, mut device) = (0, 0);
    if request.asker.is_strict {
        table = attributes.word(TABLE)?.unwrap_or(head[4].into());
        device = attributes.word(DEVICE)?.unwrap_or(0) as i32;
    }
    let is_wanted = |way: &Way| (table == 0 || table == way.table.into()) && (device == 0 || device == way.device);
    let found: Vec<Way> = families(request).flat_map(|family| ways(family, cx)).filter(is_wanted).collect();
    let (header, asker) = (request.header, request.asker);
    let messages = found.into_iter().map(move |way| {
        let request = Request { header, body: &[], asker };
        way.message(|head| Message::new(&request, NEW, NLM_F_MULTI, head))
    });
    Ok(Answer::Dump(Box::new(Listed(messages))))
}

/// The route that what is sent to an address takes.
fn get_one(request: &Request<'_>) -> Result<Answer, Refusal> {
    if request.body.len() < HEAD_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let family = u32::from(request.head::<1>()[0]);
    if !matches!(family, AF_INET | AF_INET6) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let attributes = request.attributes(HEAD_BYTES);
    let target = match attributes.get(TARGET) {
        Some(bytes) => address_of(family, bytes)?,
        None => none_of(family),
    };
    let bytes = bytes_of(target).1;
    let whole = bytes.len() as u8 * 8;
    let mut way = Way {
        family,
        target: Some((bytes.clone(), whole)),
        table: TABLE_MAIN,
        origin: 0,
        scope: 0,
        kind: UNICAST,
        gateway: None,
        source: None,
        metric: 0,
        device: devices::INDEX,
    };
    if target.is_loopback() || target.is_unspecified() || interface::is_own(target) {
        (way.table, way.kind, way.source) = (TABLE_LOCAL, LOCAL, Some(bytes));
    } else {
        let found = interface::way_to(target).map_err(|_| Errno::ENETUNREACH)?;
        let wanted = attributes.word(DEVICE)?;
        if wanted.is_some_and(|index| index != found.interface.index) {
            return Err(Errno::ENETUNREACH.into());
        }
        way.device = found.interface.index as i32;
        way.source = Some(bytes_of(found.source).1);
        way.gateway = (found.next != target).then(|| bytes_of(found.next).1);
        way.kind = match target {
            _ if found.is_broadcast => BROADCAST,
            target if target.is_multicast() => MULTICAST,
            _ => UNICAST,
        };
    }
    // Linux tells the table to those who ask for it, as iproute2 does. Of IPv4 `local` and `main` are one table until somebody adds rules, and that one's name is told.
    if family == AF_INET || word(&request.head::<HEAD_BYTES>(), 8) & LOOKUP_TABLE == 0 {
        way.table = TABLE_MAIN;
    }
    let message = way.begin(CLONED, |head| Message::new(request, NEW, 0, head));
    Ok(Answer::Message(message.with(USER, &[0; 4]).with(CACHE, &[0; 32]).finish()))
}

/// A route that is to be changed, as far as it is said.
struct Wanted {
    prefix: Prefix,
    gateway: Option<IpAddr>,
    device: Option<i32>,
    metric: Option<u32>,
    source: Option<IpAddr>,
}

/// What a request says of a route; nothing is checked against what there is.
///
/// # Errors
/// EINVAL, EAFNOSUPPORT. EOPNOTSUPP: it is of a kind that is not there.
fn wanted(request: &Request<'_>) -> Result<Wanted, Refusal> {
    if request.body.len() < HEAD_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let head = request.head::<HEAD_BYTES>();
    let family = u32::from(head[0]);
    let most = match family {
        AF_INET => 32,
        AF_INET6 => 128,
        _ => return Err(Errno::EOPNOTSUPP.into()),
    };
    let attributes = request.attributes(HEAD_BYTES);
    if head[1] > most {
        return Err(refused(Errno::EINVAL, "Invalid prefix length"));
    }
    if attributes.clone().any(|(kind, _)| CANNOT.contains(&kind)) || head[2] != 0 || head[3] != 0 {
        return Err(refused(Errno::EOPNOTSUPP, "Routes have one nexthop, and no metrics of their own"));
    }
    let table = attributes.word(TABLE)?.unwrap_or(head[4].into());
    if table != 0 && table != TABLE_MAIN.into() {
        return Err(refused(Errno::EOPNOTSUPP, "There is the main table alone"));
    }
    if head[7] > UNICAST {
        return Err(refused(Errno::EOPNOTSUPP, "Routes lead to hosts"));
    }
    let of = |kind| attributes.get(kind).map(|bytes| address_of(family, bytes)).transpose();
    let target = of(TARGET)?.unwrap_or(none_of(family));
    let prefix = Prefix::new(target, head[1]);
    if network(&prefix) != bytes_of(target).1 {
        return Err(refused(Errno::EINVAL, "Invalid prefix for given prefix length"));
    }
    let device = attributes.word(DEVICE)?.map(|index| index as i32);
    Ok(Wanted { prefix, gateway: of(GATEWAY)?, device, metric: attributes.word(METRIC)?, source: of(SOURCE)? })
}

/// Adds a route, or replaces one.
///
/// # Errors
/// Those of [`wanted`] and [`routes::add`]; ENODEV, ENETUNREACH.
pub fn add(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    let Wanted { prefix, gateway, device, metric, source } = wanted(request)?;
    let index = match (device, gateway) {
        (Some(index), _) => index,
        (None, Some(gateway)) => {
            let way = interface::way_to(gateway);
            way.map_err(|_| refused(Errno::ENETUNREACH, "Nexthop has invalid gateway"))?.interface.index as i32
        }
        (None, None) => return Err(refused(Errno::ENODEV, "No egress device")),
    };
    if index == devices::INDEX {
        return Err(refused(Errno::EOPNOTSUPP, "The loopback device has its own routes alone"));
    }
    let interface = interface_of(index).ok_or(Errno::ENODEV)?;
    let is_v6 = prefix.address().is_ipv6();
    let route = Route {
        prefix,
        gateway,
        interface: interface.index,
        metric: metric.filter(|&metric| metric > 0 || !is_v6).unwrap_or(if is_v6 { METRIC_V6 } else { 0 }),
        source,
        origin: request.head::<HEAD_BYTES>()[5],
    };
    routes::add(&route, manner(request), cx).map(|()| Answer::Done)
}

/// Removes a route: the first one that is as the request says, as far as that says something.
///
/// # Errors
/// Those of [`wanted`]; ESRCH: there is none. EOPNOTSUPP: it follows from an address.
pub fn remove(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    let Wanted { prefix, gateway, device, metric, source } = wanted(request)?;
    let origin = request.head::<HEAD_BYTES>()[5];
    let is_it = |route: &Route| {
        route.prefix == prefix
            && gateway.is_none_or(|gateway| route.gateway == Some(gateway))
            && device.is_none_or(|device| route.interface as i32 == device)
            && metric.is_none_or(|metric| metric == 0 || route.metric == metric)
            && source.is_none_or(|source| route.source == Some(source))
            && (origin == 0 || route.origin == origin)
    };
    let removed = routes::remove(is_it, cx);
    if removed.is_err() && gateway.is_none() {
        let follows = devices::all(cx).iter().filter(|device| !device.is_loopback()).any(|device| {
            device.addresses.iter().any(|own| {
                own.prefix.len_bits() == prefix.len_bits() && network(&own.prefix) == bytes_of(prefix.address()).1
            })
        });
        if follows {
            return Err(refused(Errno::EOPNOTSUPP, "It goes with the address that it follows from"));
        }
    }
    removed.map(|()| Answer::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_bits_of_its_hosts() {
        let network = |ip: &str, len| network(&Prefix::new(ip.parse().unwrap(), len));
        assert_eq!(network("10.1.2.3", 8), [10, 0, 0, 0]);
        assert_eq!(network("10.1.2.3", 32), [10, 1, 2, 3]);
        assert_eq!(network("10.1.2.3", 0), [0; 4]);
        assert_eq!(network("fe80::1", 64)[..2], [0xfe, 0x80]);
        assert_eq!(network("fe80::1", 0), [0; 16]);
    }

    #[test]
    fn a_route_is_told_with_all_that_it_has() {
        let route = Route {
            prefix: Prefix::new("10.0.0.0".parse().unwrap(), 8),
            gateway: Some("192.0.2.1".parse().unwrap()),
            interface: 2,
            metric: 7,
            source: None,
            origin: 3,
        };
        let bytes = Way::of(&route).message(|head| Message::notice(NEW, 0, head));
        assert_eq!(bytes[16..24], [2, 8, 0, 0, 254, 3, 0, 1]);
        let attributes = super::super::super::message::Attributes::new(&bytes[28..]);
        assert_eq!(attributes.get(GATEWAY), Some(&[192, 0, 2, 1][..]));
        assert_eq!(attributes.word(METRIC).unwrap(), Some(7));
    }
}

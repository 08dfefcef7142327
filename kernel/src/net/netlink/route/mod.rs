//! NETLINK_ROUTE: devices, addresses, routes and neighbours: rtnetlink(7).
//!
//! | file | what it is |
//! | --- | --- |
//! | `link` | devices |
//! | `address` | their addresses |
//! | `path` | routes |
//! | `neighbour` | who is on a device's link |
//! | `rule` | which table of routes is looked at |
//! | `notice` | who listens is told of changes |
//!
//! Changes are made by [`interface`](crate::net::interface); here is how programs say them.

mod address;
mod link;
mod neighbour;
mod notice;
mod path;
mod rule;

pub use notice::{Change, tell_address, tell_device, tell_neighbour, tell_route};

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use frame::Cx;
use linux_raw_sys::net::{AF_INET, AF_INET6, AF_UNSPEC};

use super::message::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, Refusal, Request, refused};
use super::{Answer, Protocol};
use crate::error::Errno;
use crate::net::interface::routes::Manner;
use crate::net::interface::{self, Interface};

/// NETLINK_ROUTE.
pub struct Route;

/// Of each object there are four kinds of messages: new, delete, get, set.
const NEW: u16 = 0;
const DELETE: u16 = 1;
const GET: u16 = 2;
const SET: u16 = 3;
/// RTM_MAX, or nearly so: of kinds beyond there is none.
const LAST_KIND: u16 = 123;
/// IFF_LOWER_UP, beside what is told by ioctl(2).
const LOWER_UP: u32 = 0x10000;

impl Protocol for Route {
    fn number(&self) -> u32 {
        0
    }

    fn groups(&self) -> u32 {
        36
    }

    fn handle(&self, request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
        let kind = request.header.kind;
        if kind > LAST_KIND {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if request.body.is_empty() {
            return Ok(Answer::Done);
        }
        let what = kind % 4;
        if what != GET && !request.asker.is_administrator {
            return Err(Errno::EPERM.into());
        }
        match (kind - what, what) {
            (link::NEW, GET) => link::get(request, cx),
            (link::NEW, NEW | SET) => link::set(request, cx),
            (address::NEW, GET) => address::get(request, cx),
            (address::NEW, NEW) => address::add(request, cx),
            (address::NEW, DELETE) => address::remove(request, cx),
            (path::NEW, GET) => path::get(request, cx),
            (path::NEW, NEW) => path::add(request, cx),
            (path::NEW, DELETE) => path::remove(request, cx),
            (neighbour::NEW, GET) => neighbour::get(request, cx),
            (neighbour::NEW, NEW) => neighbour::add(request, cx),
            (neighbour::NEW, DELETE) => neighbour::remove(request, cx),
            (rule::NEW, GET) => rule::get(request),
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }
}

/// The families that a request is for.
fn families(request: &Request<'_>) -> impl Iterator<Item = u32> + use<> {
    let family = u32::from(request.head::<1>()[0]);
    [AF_INET, AF_INET6].into_iter().filter(move |&one| family == AF_UNSPEC || family == one)
}

/// A word of a struct.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// The family of an address, and its bytes.
fn bytes_of(ip: IpAddr) -> (u32, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AF_INET6, ip.octets().to_vec()),
    }
}

/// The address of a family that an attribute is.
///
/// # Errors
/// EAFNOSUPPORT: there is no such family. EINVAL: it is not as long as an address.
fn address_of(family: u32, bytes: &[u8]) -> Result<IpAddr, Refusal> {
    let wrong = refused(Errno::EINVAL, "Attribute failed policy validation");
    match family {
        AF_INET => Ok(Ipv4Addr::from(*bytes.first_chunk::<4>().ok_or(wrong)?).into()),
        AF_INET6 => Ok(Ipv6Addr::from(*bytes.first_chunk::<16>().ok_or(wrong)?).into()),
        _ => Err(Errno::EAFNOSUPPORT.into()),
    }
}

/// No address of a family.
fn none_of(family: u32) -> IpAddr {
    if family == AF_INET6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// How a request that makes something looks at what is there.
fn manner(request: &Request<'_>) -> Manner {
    let has = |flag| request.header.flags & flag != 0;
    Manner { creates: has(NLM_F_CREATE), is_exclusive: has(NLM_F_EXCL), replaces: has(NLM_F_REPLACE) }
}

/// The interface with that number.
fn interface_of(index: i32) -> Option<&'static Interface> {
    interface::all().find(|interface| i64::from(interface.index) == i64::from(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::netlink::message::{Asker, HEADER_BYTES, Header, requests};
    use zerocopy::IntoBytes;

    /// What comes of a request of a kind with that body.
    fn done(get: fn(&Request<'_>, &Cx) -> Result<Answer, Refusal>, flags: u16, body: &[u8]) -> Result<(), Errno> {
        let header = Header { len: (HEADER_BYTES + body.len()) as u32, kind: 16, flags, sequence: 7, port: 0 };
        let bytes = [header.as_bytes(), body].concat();
        let request = requests(&bytes, Asker::default()).next().unwrap();
        frame::with_context(|cx| get(&request, cx)).map(|_| ()).map_err(|refusal| refusal.error)
    }

    #[test]
    fn one_device_is_found_by_its_name() {
        let mut body = alloc::vec![0; 16];
        body.extend_from_slice(&[7, 0, 3, 0, b'l', b'o', 0, 0]);
        assert_eq!(done(link::get, 1, &body), Ok(()));
        body[20] = b'x';
        assert_eq!(done(link::get, 1, &body), Err(Errno::ENODEV));
    }

    #[test]
    fn addresses_of_the_loopback_device_come_and_go() {
        let body = [2, 32, 0, 0, 1, 0, 0, 0, 8, 0, 2, 0, 10, 9, 8, 7];
        assert_eq!(done(address::remove, 1, &body), Err(Errno::EADDRNOTAVAIL));
        assert_eq!(done(address::add, 1 | NLM_F_CREATE, &body), Ok(()));
        assert!(interface::is_own([10, 9, 8, 7].into()));
        assert_eq!(done(address::add, 1 | NLM_F_CREATE, &body), Err(Errno::EEXIST));
        assert_eq!(done(address::remove, 1, &body), Ok(()));
        assert!(!interface::is_own([10, 9, 8, 7].into()));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        assert_eq!(done(address::add, 1, &[2, 33, 0, 0, 1, 0, 0, 0, 8, 0, 2, 0, 10, 9, 8, 7]), Err(Errno::EINVAL));
        assert_eq!(done(address::add, 1, &[2, 32, 0, 0, 9, 0, 0, 0, 8, 0, 2, 0, 10, 9, 8, 7]), Err(Errno::ENODEV));
        assert_eq!(done(address::add, 1, &[2, 32]), Err(Errno::EINVAL));
        assert_eq!(done(path::add, 1, &[2, 33, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0]), Err(Errno::EINVAL));
        assert_eq!(done(path::add, 1, &[2]), Err(Errno::EINVAL));
        assert_eq!(done(neighbour::add, 1, &[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), Err(Errno::EINVAL));
    }
}

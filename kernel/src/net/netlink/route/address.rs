//! Addresses of devices: RTM_NEWADDR and its like.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net::{AF_INET, AF_INET6};
use tcpip::ip::{Address, AddressState, Prefix};
use zerocopy::IntoBytes;

use super::{address_of, bytes_of, families, interface_of, manner, word};
use crate::error::Errno;
use crate::net::devices::{self, Device};
use crate::net::interface::routes::Manner;
use crate::net::interface::{self, Lifetimes, loopback};
use crate::net::netlink::Answer;
use crate::net::netlink::dump::Listed;
use crate::net::netlink::message::{Message, NLM_F_EXCL, NLM_F_MULTI, Refusal, Request, refused};

/// RTM_NEWADDR.
pub const NEW: u16 = 20;

/// `struct ifaddrmsg`.
const HEAD_BYTES: usize = 8;

const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const LABEL: u16 = 3;
const BROADCAST: u16 = 4;
const CACHE: u16 = 6;
const FLAGS: u16 = 8;

/// IFA_F_DEPRECATED, IFA_F_TENTATIVE, IFA_F_PERMANENT; IFA_F_NOPREFIXROUTE.
const DEPRECATED: u32 = 0x20;
const TENTATIVE: u32 = 0x40;
const PERMANENT: u32 = 0x80;
const NO_PREFIX_ROUTE: u32 = 0x200;
const FOR_EVER: u32 = u32::MAX;

/// How far it reaches: RT_SCOPE_HOST, RT_SCOPE_LINK, RT_SCOPE_UNIVERSE.
fn scope(ip: IpAddr) -> u8 {
    match ip {
        ip if ip.is_loopback() => 254,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => 253,
        _ => 0,
    }
}

/// What is told of an address.
pub fn message(start: impl FnOnce(&[u8]) -> Message, device: &Device, own: &Address) -> Vec<u8> {
    let prefix = own.prefix;
    let (family, ip) = bytes_of(prefix.address());
    let flags = match own.state {
        AddressState::Tentative => TENTATIVE,
        AddressState::Deprecated => DEPRECATED,
        AddressState::Preferred => 0,
    } | if own.valid_until.is_none() { PERMANENT } else { 0 };
    let mut head = [family as u8, prefix.len_bits(), flags as u8, scope(prefix.address()), 0, 0, 0, 0];
    head[4..8].copy_from_slice(&device.index.to_le_bytes());
    let mut message = start(&head).with(ADDRESS, &ip);
    if family == AF_INET {
        message = message.with(LOCAL, &ip);
        if let Some(broadcast) = devices::broadcast(&prefix).filter(|_| !device.is_loopback()) {
            message = message.with(BROADCAST, &broadcast.octets());
        }
        message = message.with(LABEL, &[device.name.as_bytes(), &[0]].concat());
    }
    let now = interface::now().nanos();
    let left = |until: Option<tcpip::Instant>| {
        until.map_or(FOR_EVER, |until| (until.nanos().saturating_sub(now) / 1_000_000_000) as u32)
    };
    let times = [left(own.preferred_until), left(own.valid_until), 0, 0];
    message.with(FLAGS, &flags.to_le_bytes()).with(CACHE, times.as_bytes()).finish()
}

/// All addresses of a family.
///
/// # Errors
/// EOPNOTSUPP: for one.
pub fn get(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    if !request.is_dump() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let index = if request.asker.is_strict { word(&request.head::<HEAD_BYTES>(), 4) as i32 } else { 0 };
    let devices = devices::all(cx);
    if index != 0 && !devices.iter().any(|device| device.index == index) {
        return Err(Errno::ENODEV.into());
    }
    let mut messages = Vec::new();
    for family in families(request) {
        for device in devices.iter().filter(|device| index == 0 || device.index == index) {
            let of_family = device.addresses.iter().filter(|own| bytes_of(own.prefix.address()).0 == family);
            messages.extend(
                of_family.map(|own| message(|head| Message::new(request, NEW, NLM_F_MULTI, head), device, own)),
            );
        }
    }
    Ok(Answer::Dump(Box::new(Listed(messages.into_iter()))))
}

/// An address that is to be changed.
struct Wanted {
    prefix: Prefix,
    index: i32,
}

/// What address a request is about.
///
/// # Errors
/// EINVAL: there is none, or its network is longer than it. EAFNOSUPPORT. EOPNOTSUPP: the other end of a line has another.
fn wanted(request: &Request<'_>) -> Result<Wanted, Refusal> {
    let head = request.head::<HEAD_BYTES>();
    let family = u32::from(head[0]);
    if !matches!(family, AF_INET | AF_INET6) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if request.body.len() < HEAD_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let attributes = request.attributes(HEAD_BYTES);
    let of = |kind| attributes.get(kind).map(|bytes| address_of(family, bytes)).transpose();
    let (own, other) = (of(LOCAL)?, of(ADDRESS)?);
    let ip = own.or(other).ok_or(refused(Errno::EINVAL, "Local address is not supplied"))?;
    if other.is_some_and(|other| other != ip) {
        return Err(refused(Errno::EOPNOTSUPP, "Addresses of another end are not supported"));
    }
    let most = if family == AF_INET { 32 } else { 128 };
    if head[1] > most {
        return Err(refused(Errno::EINVAL, "Invalid prefix length"));
    }
    Ok(Wanted { prefix: Prefix::new(ip, head[1]), index: word(&head, 4) as i32 })
}

/// Adds an address, or changes how long one may be used.
///
/// # Errors
/// Those of [`wanted`] and of the interface; ENODEV; EOPNOTSUPP: something that addresses here do not have.
pub fn add(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    let Wanted { prefix, index } = wanted(request)?;
    let attributes = request.attributes(HEAD_BYTES);
    let flags = attributes.word(FLAGS)?.unwrap_or(request.head::<HEAD_BYTES>()[2].into());
    let broadcast = attributes.get(BROADCAST);
    let natural = devices::broadcast(&prefix).map(|ip| ip.octets());
    let is_other = broadcast.is_some_and(|given| given != [0; 4] && natural.is_none_or(|natural| given != natural));
    if flags & NO_PREFIX_ROUTE != 0 || is_other {
        return Err(refused(Errno::EOPNOTSUPP, "Networks have their own routes and broadcast addresses"));
    }
    let lifetimes = match attributes.get(CACHE) {
        Some(times) if times.len() >= 8 => {
            let limit = |at| Some(word(times, at)).filter(|&seconds| seconds != FOR_EVER);
            Lifetimes { preferred: limit(0), valid: limit(4) }
        }
        Some(_) => return Err(Errno::EINVAL.into()),
        None => Lifetimes::default(),
    };
    if index == devices::INDEX {
        return loopback::add(prefix, cx).map(|()| Answer::Done);
    }
    let interface = interface_of(index).ok_or(refused(Errno::ENODEV, "Device not found"))?;
    // Without NLM_F_CREATE an address is made as well.
    let replaces = manner(request).replaces && request.header.flags & NLM_F_EXCL == 0;
    let manner = Manner { creates: true, is_exclusive: false, replaces };
    interface.add_address(prefix, lifetimes, manner, cx).map(|()| Answer::Done)
}

/// Removes an address.
///
/// # Errors
/// Those of [`wanted`]; ENODEV; EADDRNOTAVAIL.
pub fn remove(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    let Wanted { prefix, index } = wanted(request)?;
    if index == devices::INDEX {
        return loopback::remove(prefix, cx).map(|()| Answer::Done);
    }
    let interface = interface_of(index).ok_or(refused(Errno::ENODEV, "Device not found"))?;
    // Without a length of a network any is meant.
    let own = interface.addresses(cx).iter().map(|own| own.prefix).find(|own| {
        own.address() == prefix.address() && (own.len_bits() == prefix.len_bits() || prefix.len_bits() == 0)
    });
    interface.remove_address(own.unwrap_or(prefix), cx).map(|()| Answer::Done)
}

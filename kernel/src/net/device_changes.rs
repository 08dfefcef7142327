//! Changes of devices and routes by ioctl(2), as ifconfig(8) and route(8) make them: netdevice(7).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use frame::Cx;
use linux_raw_sys::ioctl;
use tcpip::ethernet::HardwareAddress;
use tcpip::ip::{Prefix, Route};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::devices::{self, Device, Request, broadcast, mask};
use super::interface::routes::{self, Manner};
use super::interface::{self, Interface, Lifetimes, loopback};
use super::refusal::Refusal;
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::fs::VfsCaller;
use crate::step::{Step, Stop};
use crate::user_memory::{Argument, UserIn};

/// IFF_UP.
const UP: u16 = 1;
/// RTF_GATEWAY and RTF_HOST; RTPROT_BOOT.
const GATEWAY: u16 = 2;
const HOST: u16 = 4;
const BY_HAND: u8 = 3;
/// The longest name of a device.
const NAME_BYTES: usize = 16;

/// `struct rtentry`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RouteRequest {
    unused: u64,
    target: [u8; 16],
    gateway: [u8; 16],
    mask: [u8; 16],
    flags: u16,
    unused_2: [u8; 22],
    metric: i16,
    unused_3: [u8; 6],
    device: UserIn<u8>,
    limits: [u8; 24],
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        refusal.error.into()
    }
}

/// Whether a request changes something.
pub fn changes(request: u32) -> bool {
    matches!(
        request,
        ioctl::SIOCSIFFLAGS
            | ioctl::SIOCSIFADDR
            | ioctl::SIOCSIFNETMASK
            | ioctl::SIOCSIFBRDADDR
            | ioctl::SIOCSIFDSTADDR
            | ioctl::SIOCSIFMTU
            | ioctl::SIOCSIFNAME
            | ioctl::SIOCSIFHWADDR
            | ioctl::SIOCSIFTXQLEN
            | ioctl::SIOCADDRT
            | ioctl::SIOCDELRT
    )
}

/// Makes a change.
///
/// # Errors
/// EPERM: the caller may not. ENODEV: there is no such device. EOPNOTSUPP: it is one that devices here do not have. EADDRNOTAVAIL: the device has no address. EEXIST, ESRCH, ENETUNREACH, EINVAL:
/// as for what is changed. A fault.
pub fn change(request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
    if !me.credentials(cx)?.lock(cx).has(Capability::NetAdmin) {
        return Err(Errno::EPERM.into());
    }
    if matches!(request, ioctl::SIOCADDRT | ioctl::SIOCDELRT) {
        return change_route(request == ioctl::SIOCADDRT, argument, me, cx);
    }
    let given = me.memory(cx)?.read(argument.input::<Request>())?;
    let devices = devices::all(cx);
    let device = devices.iter().find(|device| given.is_for(device)).ok_or(Errno::ENODEV)?;
    let interface = interface::all().find(|interface| interface.index as i32 == device.index);
    let word = i32::from_le_bytes([given.value[0], given.value[1], given.value[2], given.value[3]]);
    match (request, interface) {
        (ioctl::SIOCSIFFLAGS, None) => {
            let is_up = u16::from_le_bytes([given.value[0], given.value[1]]) & UP != 0;
            if !is_up {
                return Err(Errno::EOPNOTSUPP.into());
            }
        }
        (ioctl::SIOCSIFFLAGS, Some(interface)) => {
            let flags = u16::from_le_bytes([given.value[0], given.value[1]]);
            interface.set_up(flags & UP != 0, cx);
        }
        (ioctl::SIOCSIFMTU, None) if word == device.mtu => {}
        (ioctl::SIOCSIFMTU, Some(interface)) => interface.set_mtu(u32::try_from(word).unwrap_or(0), cx)?,
        (ioctl::SIOCSIFHWADDR, Some(interface)) => {
            let address = given.value[2..].first_chunk().ok_or(Errno::EINVAL)?;
            interface.set_hardware(HardwareAddress(*address), cx)?;
        }
        (ioctl::SIOCSIFADDR, interface) => set_address(device, interface, v4(&given.value)?, cx)?,
        (ioctl::SIOCSIFNETMASK, interface) => {
            let (ip, len) = device.v4().ok_or(Errno::EADDRNOTAVAIL)?;
            let new = len_of(v4(&given.value)?).ok_or(Errno::EINVAL)?;
            if new != len {
                replace(interface, Some(Prefix::new(ip.into(), len)), Some(Prefix::new(ip.into(), new)), cx)?;
            }
        }
        (ioctl::SIOCSIFBRDADDR, _) => {
            let (ip, len) = device.v4().ok_or(Errno::EADDRNOTAVAIL)?;
            let given = v4(&given.value)?;
            if !given.is_unspecified() && broadcast(&Prefix::new(ip.into(), len)) != Some(given) {
                return Err(Errno::EOPNOTSUPP.into());
            }
        }
        _ => return Err(Errno::EOPNOTSUPP.into()),
    }
    Ok(0)
}

/// The address in a `struct sockaddr_in`.
///
/// # Errors
/// EINVAL: it is of another family.
fn v4(bytes: &[u8]) -> Result<Ipv4Addr> {
    let family = u32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let ip = Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]);
    let is_known = family == linux_raw_sys::net::AF_INET || family == linux_raw_sys::net::AF_UNSPEC;
    if is_known { Ok(ip) } else { Err(Errno::EINVAL) }
}

/// How many bits a mask has, if they are its first ones.
fn len_of(given: Ipv4Addr) -> Option<u8> {
    let len = u32::from(given).leading_ones() as u8;
    (mask(len) == given).then_some(len)
}

/// The network that an address had before there were masks.
fn natural_len(ip: Ipv4Addr) -> u8 {
    match ip.octets()[0] {
        0 => 0,
        1..128 => 8,
        128..192 => 16,
        192..224 => 24,
        _ => 32,
    }
}

/// Has an address be a device's first one; no address takes that away.
fn set_address(
    device: &Device,
    interface: Option<&'static Interface>,
    ip: Ipv4Addr,
    cx: &Cx,
) -> core::result::Result<(), Refusal> {
    let old = device.v4().map(|(ip, len)| Prefix::new(ip.into(), len));
    let new = (!ip.is_unspecified()).then(|| Prefix::new(ip.into(), natural_len(ip)));
    if old.map(|old| old.address()) == new.map(|new| new.address()) {
        return Ok(());
    }
    if ip.is_multicast() || ip.is_broadcast() {
        return Err(Errno::EINVAL.into());
    }
    replace(interface, old, new, cx)?;
    if let Some(interface) = interface.filter(|_| new.is_some()) {
        // As on Linux.
        interface.set_up(true, cx);
    }
    Ok(())
}

fn replace(
    interface: Option<&'static Interface>,
    old: Option<Prefix>,
    new: Option<Prefix>,
    cx: &Cx,
) -> core::result::Result<(), Refusal> {
    if let Some(old) = old {
        match interface {
            Some(interface) => interface.remove_address(old, cx)?,
            None => loopback::remove(old, cx)?,
        }
    }
    if let Some(new) = new {
        let manner = Manner { creates: true, ..Manner::default() };
        match interface {
            Some(interface) => interface.add_address(new, Lifetimes::default(), manner, cx)?,
            None => loopback::add(new, cx)?,
        }
    }
    Ok(())
}

/// Adds a route, or removes one.
fn change_route(is_new: bool, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
    let memory = me.memory(cx)?;
    let given = memory.read(argument.input::<RouteRequest>())?;
    let target = v4(&given.target)?;
    let len = if given.flags & HOST != 0 { 32 } else { len_of(v4(&given.mask)?).ok_or(Errno::EINVAL)? };
    if u32::from(target) & !u32::from(mask(len)) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let gateway = if given.flags & GATEWAY != 0 { Some(v4(&given.gateway)?) } else { None };
    let device = match given.device.non_null() {
        Some(at) => Some(named(memory.read_c_string(at, NAME_BYTES, Errno::ENODEV)?, cx)?),
        None => None,
    };
    // One more than the metric, so that 0 says nothing.
    let metric = u32::try_from(i32::from(given.metric) - 1).unwrap_or(0);
    let prefix = Prefix::new(target.into(), len);
    let gateway = gateway.map(IpAddr::V4);
    if !is_new {
        let is_it = |route: &Route| {
            route.prefix == prefix
                && gateway.is_none_or(|gateway| route.gateway == Some(gateway))
                && device.is_none_or(|device| route.interface == device)
                && (given.metric == 0 || route.metric == metric)
        };
        routes::remove(is_it, cx)?;
        return Ok(0);
    }
    let interface = match (device, gateway) {
        (Some(index), _) => index,
        (None, Some(gateway)) => interface::way_to(gateway).map_err(|_| Errno::ENETUNREACH)?.interface.index,
        (None, None) => return Err(Errno::ENODEV.into()),
    };
    let route = Route { prefix, gateway, interface, metric, source: None, origin: BY_HAND };
    let manner = Manner { creates: true, is_exclusive: true, replaces: false };
    routes::add(&route, manner, cx)?;
    Ok(0)
}

/// The number of the interface with that name.
fn named(name: Vec<u8>, cx: &Cx) -> Result<u32> {
    let devices = devices::all(cx);
    let device = devices.iter().find(|device| device.name.as_bytes() == name).ok_or(Errno::ENODEV)?;
    if device.is_loopback() { Err(Errno::EOPNOTSUPP) } else { Ok(device.index as u32) }
}

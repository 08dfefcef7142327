//! [`Device`]: a network device as programs are told of it, and what netdevice(7) tells: the loopback device is the first, then there are the [interfaces](super::interface).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::ioctl;
use tcpip::ip::{Address, Prefix};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::Errno;
use crate::fs::VfsCaller;
use crate::net::device_changes;
use crate::net::interface::{self, Interface, loopback};
use crate::step::Step;
use crate::user_memory::{Argument, UserOut};

/// The loopback device's number.
pub const INDEX: i32 = 1;
/// Its name.
const NAME: &str = "lo";
/// The most that it carries at once.
const MTU: i32 = 65536;
/// IFF_UP, IFF_BROADCAST, IFF_LOOPBACK, IFF_RUNNING and IFF_MULTICAST.
const UP: u16 = 0x1;
const BROADCAST: u16 = 0x2;
const LOOPBACK: u16 = 0x8;
const RUNNING: u16 = 0x40;
const MULTICAST: u16 = 0x1000;
/// ARPHRD_LOOPBACK and ARPHRD_ETHER.
const OF_LOOPBACK: u16 = 772;
const OF_ETHERNET: u16 = 1;
/// The least that a device carries at once (RFC 791).
pub const LEAST_MTU: u32 = 68;
/// How many packets wait to be sent at most.
pub const QUEUE_LENGTH: i32 = 1000;

/// A network device.
pub struct Device {
    interface: Option<&'static Interface>,
    /// Its number.
    pub index: i32,
    /// Its name.
    pub name: &'static str,
    /// The most that it carries at once.
    pub mtu: i32,
    /// The most that it could.
    pub most_mtu: u32,
    /// `IFF_*`.
    pub flags: u16,
    /// `ARPHRD_*`.
    pub hardware: u16,
    /// Its address on its link.
    pub address: [u8; 6],
    /// Its addresses, each with the length of its network.
    pub addresses: Vec<Address>,
}

/// All devices.
pub fn all(cx: &Cx) -> Vec<Device> {
    let loopback = Device {
        interface: None,
        index: INDEX,
        name: NAME,
        mtu: MTU,
        most_mtu: 0,
        flags: UP | LOOPBACK | RUNNING,
        hardware: OF_LOOPBACK,
        address: [0; 6],
        addresses: [Prefix::new(Ipv4Addr::LOCALHOST.into(), 8), Prefix::new(Ipv6Addr::LOCALHOST.into(), 128)]
            .into_iter()
            .chain(loopback::addresses(cx))
            .map(Address::permanent)
            .collect(),
    };
    let of_interface = |interface: &'static Interface| Device {
        interface: Some(interface),
        index: interface.index as i32,
        name: &interface.name,
        mtu: interface.mtu().into(),
        most_mtu: interface.card().mtu().into(),
        flags: BROADCAST | MULTICAST | if interface.is_up() { UP | RUNNING } else { 0 },
        hardware: OF_ETHERNET,
        address: interface.hardware().0,
        addresses: interface.addresses(cx),
    };
    core::iter::once(loopback).chain(interface::all().map(of_interface)).collect()
}

impl Device {
    /// Its first address of IPv4, and the length of its network.
    pub(super) fn v4(&self) -> Option<(Ipv4Addr, u8)> {
        self.addresses.iter().find_map(|own| match own.prefix.address() {
            IpAddr::V4(address) => Some((address, own.prefix.len_bits())),
            IpAddr::V6(_) => None,
        })
    }

    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        self.flags & UP != 0
    }

    /// Its flags but what its link is like: as programs have set them.
    pub fn configured_flags(&self) -> u16 {
        self.flags & !RUNNING
    }

    /// What it has received and sent. The loopback device counts nothing: no packets are made.
    pub fn traffic(&self) -> [Counts; 2] {
        let Some(interface) = self.interface else { return [Counts::default(); 2] };
        let (received, sent) = interface.card().traffic();
        [received, sent].map(|traffic| Counts {
            frames: traffic.frames.load(Ordering::Relaxed),
            bytes: traffic.bytes.load(Ordering::Relaxed),
            dropped: traffic.dropped.load(Ordering::Relaxed),
        })
    }

    /// Whether it reaches this machine alone.
    pub fn is_loopback(&self) -> bool {
        self.flags & LOOPBACK != 0
    }
}

/// What has gone through a device in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that were lost.
    pub dropped: u64,
}

/// The address for all of a network of IPv4; a network of one or two has none.
pub fn broadcast(prefix: &Prefix) -> Option<Ipv4Addr> {
    match prefix.address() {
        IpAddr::V4(ip) if prefix.len_bits() < 31 => Some((u32::from(ip) | !u32::from(mask(prefix.len_bits()))).into()),
        _ => None,
    }
}

/// The addresses of a network of IPv4 have these bits in common.
pub fn mask(len: u8) -> Ipv4Addr {
    u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0).into()
}

/// ethtool(8)'s request.
const SIOCETHTOOL: u32 = 0x8946;

/// `struct ifreq`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Request {
    pub(super) name: [u8; 16],
    pub(super) value: [u8; 24],
}

/// `struct ifconf`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct List {
    len: i32,
    padding: u32,
    requests: UserOut<Request>,
}

impl Request {
    fn new(name: &str, value: &[u8]) -> Self {
        let mut request = Request { name: [0; 16], value: [0; 24] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        request.value[..value.len()].copy_from_slice(value);
        request
    }

    pub(super) fn is_for(&self, device: &Device) -> bool {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(self.name.len());
        // Behind a colon is the name of one of the addresses of a device.
        self.name[..end].split(|&byte| byte == b':').next() == Some(device.name.as_bytes())
    }
}

/// An address as `struct sockaddr_in`.
fn address(ip: Ipv4Addr) -> [u8; 16] {
    let mut address = [0; 16];
    address[0] = linux_raw_sys::net::AF_INET as u8;
    address[4..8].copy_from_slice(&ip.octets());
    address
}

/// What a socket is asked about devices.
///
/// # Errors
/// ENODEV: there is no such device. EADDRNOTAVAIL: it has no address. ENOTTY. A fault. Those of [`device_changes::change`].
pub fn ioctl(request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
    let memory = me.memory(cx)?;
    if request == ioctl::SIOCGIFCONF {
        let at = argument.in_out::<List>();
        let mut list = memory.read(at)?;
        let size = size_of::<Request>();
        let devices = all(cx);
        let with_address = devices.iter().filter_map(|device| Some((device.name, device.v4()?.0)));
        let mut requests = Vec::from_iter(with_address.map(|(name, ip)| Request::new(name, &address(ip))));
        if !list.requests.is_null() {
            requests.truncate(usize::try_from(list.len).unwrap_or(0) / size);
            for (number, request) in requests.iter().enumerate() {
                memory.write(list.requests.add(number), request)?;
            }
        }
        list.len = (requests.len() * size) as i32;
        memory.write(at, &list)?;
        return Ok(0);
    }
    if device_changes::changes(request) {
        return device_changes::change(request, argument, me, cx);
    }
    if request == SIOCETHTOOL {
        // Devices tell of nothing there.
        return Err(Errno::EOPNOTSUPP.into());
    }
    let is_known = matches!(
        request,
        ioctl::SIOCGIFNAME
            | ioctl::SIOCGIFFLAGS
            | ioctl::SIOCGIFADDR
            | ioctl::SIOCGIFNETMASK
            | ioctl::SIOCGIFBRDADDR
            | ioctl::SIOCGIFDSTADDR
            | ioctl::SIOCGIFMETRIC
            | ioctl::SIOCGIFMTU
            | ioctl::SIOCGIFHWADDR
            | ioctl::SIOCGIFINDEX
            | ioctl::SIOCGIFTXQLEN
            | ioctl::SIOCGIFMAP
    );
    if !is_known {
        return Err(Errno::ENOTTY.into());
    }
    let at = argument.in_out::<Request>();
    let given = memory.read(at)?;
    if request == ioctl::SIOCGIFNAME {
        let index = i32::from_le_bytes([given.value[0], given.value[1], given.value[2], given.value[3]]);
        let devices = all(cx);
        let device = devices.iter().find(|device| device.index == index).ok_or(Errno::ENODEV)?;
        memory.write(at, &Request { value: given.value, ..Request::new(device.name, &[]) })?;
        return Ok(0);
    }
    let devices = all(cx);
    let device = devices.iter().find(|device| given.is_for(device)).ok_or(Errno::ENODEV)?;
    let v4 = || device.v4().ok_or(Errno::EADDRNOTAVAIL);
    let mut answer = given;
    let mut put = |bytes: &[u8]| answer.value[..bytes.len()].copy_from_slice(bytes);
    match request {
        ioctl::SIOCGIFFLAGS => put(&device.flags.to_le_bytes()),
        ioctl::SIOCGIFADDR | ioctl::SIOCGIFDSTADDR => put(&address(v4()?.0)),
        ioctl::SIOCGIFNETMASK => put(&address(mask(v4()?.1))),
        ioctl::SIOCGIFBRDADDR if device.is_loopback() => put(&address(Ipv4Addr::UNSPECIFIED)),
        ioctl::SIOCGIFBRDADDR => {
            let (ip, len) = v4()?;
            put(&address((u32::from(ip) | !u32::from(mask(len))).into()));
        }
        ioctl::SIOCGIFMTU => put(&device.mtu.to_le_bytes()),
        ioctl::SIOCGIFINDEX => put(&device.index.to_le_bytes()),
        ioctl::SIOCGIFTXQLEN => put(&QUEUE_LENGTH.to_le_bytes()),
        ioctl::SIOCGIFHWADDR => {
            put(&[&device.hardware.to_le_bytes()[..], &device.address, &[0; 8]].concat());
        }
        ioctl::SIOCGIFMETRIC => put(&[0; 4]),
        _ => put(&[0; 24]),
    }
    memory.write(at, &answer)?;
    Ok(0)
}

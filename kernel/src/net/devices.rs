//! Network devices, as netdevice(7) shows them: there is the loopback device and no other.

use frame::Cx;
use linux_raw_sys::ioctl;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::credentials::Capability;
use crate::error::Errno;
use crate::fs::VfsCaller;
use crate::step::Step;
use crate::user_memory::{Argument, UserOut};

/// The loopback device's number.
pub const INDEX: i32 = 1;
/// Its name.
pub const NAME: &[u8] = b"lo";
/// The most that it carries at once.
pub const MTU: i32 = 65536;
/// IFF_UP, IFF_LOOPBACK and IFF_RUNNING.
pub const FLAGS: u16 = 0x1 | 0x8 | 0x40;
/// ARPHRD_LOOPBACK.
pub const HARDWARE: u16 = 772;
const QUEUE_LENGTH: i32 = 1000;

/// `struct ifreq`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Request {
    name: [u8; 16],
    value: [u8; 24],
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
    fn new(value: &[u8]) -> Self {
        let mut request = Request { name: [0; 16], value: [0; 24] };
        request.name[..NAME.len()].copy_from_slice(NAME);
        request.value[..value.len()].copy_from_slice(value);
        request
    }

    fn is_loopback(&self) -> bool {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(self.name.len());
        // Behind a colon is the name of one of the addresses of a device.
        self.name[..end].split(|&byte| byte == b':').next() == Some(NAME)
    }
}

/// An address as `struct sockaddr_in`.
fn address(bytes: [u8; 4]) -> [u8; 16] {
    let mut address = [0; 16];
    address[0] = linux_raw_sys::net::AF_INET as u8;
    address[4..8].copy_from_slice(&bytes);
    address
}

/// What a socket is asked about devices.
///
/// # Errors
/// ENODEV: there is no such device. EPERM, EOPNOTSUPP: to change them. ENOTTY. A fault.
pub fn ioctl(request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
    let memory = me.memory(cx)?;
    if request == ioctl::SIOCGIFCONF {
        let at = argument.in_out::<List>();
        let mut list = memory.read(at)?;
        let size = size_of::<Request>() as i32;
        if list.requests.is_null() {
            list.len = size;
        } else if list.len >= size {
            memory.write(list.requests, &Request::new(&address([127, 0, 0, 1])))?;
            list.len = size;
        } else {
            list.len = 0;
        }
        memory.write(at, &list)?;
        return Ok(0);
    }
    if request == ioctl::SIOCSIFFLAGS {
        return bring_up(argument, me, cx);
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
        return Err(if changes(request) { Errno::EPERM } else { Errno::ENOTTY }.into());
    }
    let at = argument.in_out::<Request>();
    let given = memory.read(at)?;
    if request == ioctl::SIOCGIFNAME {
        let index = i32::from_le_bytes([given.value[0], given.value[1], given.value[2], given.value[3]]);
        if index != INDEX {
            return Err(Errno::ENODEV.into());
        }
        memory.write(at, &Request { value: given.value, ..Request::new(&[]) })?;
        return Ok(0);
    }
    if !given.is_loopback() {
        return Err(Errno::ENODEV.into());
    }
    let mut answer = given;
    let mut put = |bytes: &[u8]| answer.value[..bytes.len()].copy_from_slice(bytes);
    match request {
        ioctl::SIOCGIFFLAGS => put(&FLAGS.to_le_bytes()),
        ioctl::SIOCGIFADDR | ioctl::SIOCGIFDSTADDR => put(&address([127, 0, 0, 1])),
        ioctl::SIOCGIFNETMASK => put(&address([255, 0, 0, 0])),
        ioctl::SIOCGIFBRDADDR => put(&address([0; 4])),
        ioctl::SIOCGIFMTU => put(&MTU.to_le_bytes()),
        ioctl::SIOCGIFINDEX => put(&INDEX.to_le_bytes()),
        ioctl::SIOCGIFTXQLEN => put(&QUEUE_LENGTH.to_le_bytes()),
        ioctl::SIOCGIFHWADDR => {
            put(&[0; 16]);
            put(&HARDWARE.to_le_bytes());
        }
        ioctl::SIOCGIFMETRIC => put(&[0; 4]),
        _ => put(&[0; 24]),
    }
    memory.write(at, &answer)?;
    Ok(0)
}

/// Has the loopback device be up, as it always is.
///
/// # Errors
/// EPERM: the caller may not change devices, or wants it to be down. ENODEV. A fault.
fn bring_up(argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
    let given = me.memory(cx)?.read(argument.input::<Request>())?;
    if !me.credentials(cx)?.lock(cx).has(Capability::NetAdmin) {
        return Err(Errno::EPERM.into());
    }
    if !given.is_loopback() {
        return Err(Errno::ENODEV.into());
    }
    let flags = u16::from_le_bytes([given.value[0], given.value[1]]);
    if flags & FLAGS & 1 == 0 { Err(Errno::EPERM.into()) } else { Ok(0) }
}

/// Whether a request changes a device.
fn changes(request: u32) -> bool {
    matches!(
        request,
        ioctl::SIOCSIFADDR
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

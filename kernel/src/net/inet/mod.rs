//! Sockets of the internet protocols: ip(7), ipv6(7).
//!
//! | file | what it is |
//! | --- | --- |
//! | `address` | addresses, and what can be reached |
//! | `arrivals` | what has come from other machines |
//! | `ports` | who has which port |
//! | `loopback` | what packet sockets see of what stays within the machine |
//! | `settings`, `options` | what programs set and read back |
//! | [`listing`], [`diag`] | the sockets that there are |
//! | [`tcp`] | connections |
//! | [`datagram`] | messages without a connection |
//!
//! What is sent to this machine's own addresses goes from socket to socket, and no packets are made for it but those that somebody wants to see.

mod address;
mod arrivals;
pub mod datagram;
pub mod diag;
pub mod listing;
mod loopback;
pub mod options;
pub mod ports;
pub mod settings;
pub mod tcp;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;

use self::address::Version;
use self::datagram::{DatagramSocket, Kind};
use self::ports::FIRST_UNPRIVILEGED;
use self::settings::Protocol;
use self::tcp::TcpSocket;
use super::interface::{self, Link};
use super::{Family, Socket, Type};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::fs::{File, OpenFile, VfsCaller};

/// AF_INET.
pub static INET: Inet = Inet(Version::V4);
/// AF_INET6.
pub static INET6: Inet = Inet(Version::V6);

/// A family of internet sockets.
pub struct Inet(Version);

impl Family for Inet {
    fn number(&self) -> u32 {
        self.0.number()
    }

    fn create(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>> {
        /// IPPROTO_MAX.
        const MOST_PROTOCOLS: u32 = 263;
        if protocol >= MOST_PROTOCOLS {
            return Err(Errno::EINVAL);
        }
        match (kind, protocol as i32) {
            (Type::Stream, 0 | Protocol::TCP_NUMBER) => TcpSocket::create(self.0, me, cx),
            (Type::Datagram, 0 | Protocol::UDP_NUMBER) => {
                DatagramSocket::create(Kind::Udp, Protocol::UDP_NUMBER as u16, self.0, me, cx)
            }
            (Type::Datagram, number) if number == self.icmp() => {
                check_group(me, cx)?;
                DatagramSocket::create(Kind::Echo, number as u16, self.0, me, cx)
            }
            (Type::Raw, 0) | (Type::Stream | Type::Datagram, _) => Err(Errno::EPROTONOSUPPORT),
            (Type::Raw, number) => DatagramSocket::create(Kind::Raw, number as u16, self.0, me, cx),
            (Type::SequencedPacket, _) => Err(Errno::ESOCKTNOSUPPORT),
        }
    }

    fn pair(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<[Box<dyn File>; 2]> {
        self.create(kind, protocol, me, cx)?;
        Err(Errno::EOPNOTSUPP)
    }

    fn socket_of<'a>(&self, open: &'a OpenFile) -> Option<&'a dyn Socket> {
        let tcp = open.kind::<TcpSocket>().map(|socket| socket as &dyn Socket);
        tcp.or_else(|| open.kind::<DatagramSocket>().map(|socket| socket as &dyn Socket))
    }
}

impl Inet {
    /// The number of the protocol that has echo requests.
    fn icmp(&self) -> i32 {
        match self.0 {
            Version::V4 => Protocol::ICMP_NUMBER,
            Version::V6 => Protocol::ICMPV6_NUMBER,
        }
    }
}

/// Has what comes over network cards given to sockets.
pub fn start(cards: Vec<&'static dyn Link>, cx: &Cx) {
    if !cards.is_empty() {
        tcp::start();
        interface::start(cards, &arrivals::Arrivals, cx);
    }
}

/// Who makes a call, as the owner of a port.
fn user(me: &dyn VfsCaller, cx: &Cx) -> Result<u32> {
    Ok(me.credentials(cx)?.lock(cx).users().effective.number())
}

/// The first and the last of the groups whose members may send echo requests (`net.ipv4.ping_group_range`), in one word.
static ECHO_GROUPS: AtomicU64 = AtomicU64::new(i32::MAX as u64);

/// Which groups these are.
pub fn echo_groups() -> RangeInclusive<u32> {
    let word = ECHO_GROUPS.load(Ordering::Relaxed);
    (word >> 32) as u32..=word as u32
}

/// Changes that. A first one behind the last means nobody.
///
/// # Errors
/// EINVAL: there are no such groups.
pub fn set_echo_groups(first: u32, last: u32) -> Result<()> {
    if first > i32::MAX as u32 || last > i32::MAX as u32 {
        return Err(Errno::EINVAL);
    }
    let (first, last) = if first > last { (1, 0) } else { (first, last) };
    ECHO_GROUPS.store(u64::from(first) << 32 | u64::from(last), Ordering::Relaxed);
    Ok(())
}

/// Checks that the caller may send echo requests.
///
/// # Errors
/// EACCES.
fn check_group(me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
    let groups = echo_groups();
    let credentials = me.credentials(cx)?.lock(cx);
    let own = credentials.groups().effective.number();
    let may = groups.contains(&own) || credentials.supplementary().iter().any(|group| groups.contains(group));
    if may { Ok(()) } else { Err(Errno::EACCES) }
}

/// Checks that the caller may have a port.
///
/// # Errors
/// EACCES.
fn check_port(port: u16, me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
    let is_free = port == 0 || u64::from(port) >= FIRST_UNPRIVILEGED.get();
    if is_free || me.credentials(cx)?.lock(cx).has(Capability::NetBindService) { Ok(()) } else { Err(Errno::EACCES) }
}

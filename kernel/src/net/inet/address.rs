//! [`Address`]: an IP address and a port, and [`Version`], which says how programs write one down. And [`route`]: what can be reached.
//!
//! An IPv4 address that a socket of AF_INET6 uses (`::ffff:127.0.0.1`) is an IPv4 address everywhere but in the bytes that its program gives and gets.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linux_raw_sys::net;

use crate::error::{Errno, Result};
use crate::net::interface;

/// The size of `struct sockaddr_in`.
const V4_BYTES: usize = 16;
/// The size of `struct sockaddr_in6`, and how much of it must be there: its last field came later.
const V6_BYTES: usize = 28;
const V6_LEAST_BYTES: usize = 24;

/// Where a socket can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The host, or any address of this one.
    pub ip: IpAddr,
    /// The port; 0: none yet.
    pub port: u16,
}

/// The family of a socket: how its program writes down addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// AF_INET.
    V4,
    /// AF_INET6.
    V6,
}

impl Version {
    /// `AF_*`.
    pub fn number(self) -> u32 {
        match self {
            Version::V4 => net::AF_INET,
            Version::V6 => net::AF_INET6,
        }
    }

    /// Any address, no port.
    pub fn unbound(self) -> Address {
        let ip = match self {
            Version::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Version::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        Address { ip, port: 0 }
    }

    /// What a `struct sockaddr_in` or `sockaddr_in6` means; `None` for AF_UNSPEC.
    ///
    /// # Errors
    /// EINVAL: too short. EAFNOSUPPORT: of another family.
    pub fn decode(self, bytes: &[u8]) -> Result<Option<Address>> {
        let (family, rest) = bytes.split_first_chunk().ok_or(Errno::EINVAL)?;
        let family = u32::from(u16::from_le_bytes(*family));
        if family == net::AF_UNSPEC {
            return Ok(None);
        }
        self.decode_own(family, bytes.len(), rest).map(Some)
    }

    /// The same, for calls to which AF_UNSPEC is another family.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode).
    pub fn decode_given(self, bytes: &[u8]) -> Result<Address> {
        let (family, rest) = bytes.split_first_chunk().ok_or(Errno::EINVAL)?;
        self.decode_own(u32::from(u16::from_le_bytes(*family)), bytes.len(), rest)
    }

    fn decode_own(self, family: u32, len: usize, rest: &[u8]) -> Result<Address> {
        let least = if self == Version::V4 { V4_BYTES } else { V6_LEAST_BYTES };
        if len < least {
            return Err(Errno::EINVAL);
        }
        if family != self.number() {
            return Err(Errno::EAFNOSUPPORT);
        }
        let (port, rest) = rest.split_first_chunk().ok_or(Errno::EINVAL)?;
        let ip = match self {
            Version::V4 => Ipv4Addr::from(*rest.first_chunk::<4>().ok_or(Errno::EINVAL)?).into(),
            Version::V6 => {
                let bytes = rest.get(4..).and_then(|rest| rest.first_chunk::<16>()).ok_or(Errno::EINVAL)?;
                Ipv6Addr::from(*bytes).to_canonical()
            }
        };
        Ok(Address { ip, port: u16::from_be_bytes(*port) })
    }

    /// As `struct sockaddr_in` or `sockaddr_in6`.
    pub fn encode(self, address: Address) -> Vec<u8> {
        let family = (self.number() as u16).to_le_bytes();
        let port = address.port.to_be_bytes();
        match (self, address.ip) {
            (Version::V4, ip) => {
                let mut bytes = [0; V4_BYTES];
                bytes[..2].copy_from_slice(&family);
                bytes[2..4].copy_from_slice(&port);
                // A socket of AF_INET has no others.
                if let IpAddr::V4(ip) = ip {
                    bytes[4..8].copy_from_slice(&ip.octets());
                }
                bytes.to_vec()
            }
            (Version::V6, ip) => {
                let mut bytes = [0; V6_BYTES];
                bytes[..2].copy_from_slice(&family);
                bytes[2..4].copy_from_slice(&port);
                bytes[8..24].copy_from_slice(&as_v6(ip).octets());
                bytes.to_vec()
            }
        }
    }

    /// Whether a socket of this family that was bound to `own` can reach `target`.
    ///
    /// # Errors
    /// ENETUNREACH: the one is of IPv6 only, the other is not.
    pub fn check_reach(self, own: IpAddr, only_v6: bool, target: IpAddr) -> Result<()> {
        let is_other = match target {
            IpAddr::V4(_) => self == Version::V6 && (only_v6 || (own.is_ipv6() && !own.is_unspecified())),
            IpAddr::V6(_) => own.is_ipv4(),
        };
        if is_other { Err(Errno::ENETUNREACH) } else { Ok(()) }
    }
}

/// An address as one of IPv6.
pub fn as_v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// Whether it is an address of this machine.
pub fn is_own(ip: IpAddr) -> bool {
    ip.is_loopback() || interface::is_own(ip)
}

/// The broadcast address of the loopback device.
pub const BROADCAST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 255, 255, 255));

/// The source of what is sent to an address by a socket that has none.
pub fn source_for(target: IpAddr) -> IpAddr {
    if !target.is_loopback() && !target.is_unspecified() {
        // Who talks to himself has the same address at both ends.
        if interface::is_own(target) {
            return target;
        }
        if let Ok(way) = interface::way_to(target) {
            return way.source;
        }
    }
    match target {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// Where what is sent to an address arrives: no address stands for this machine.
///
/// # Errors
/// ENETUNREACH: no device leads there.
pub fn route(target: IpAddr) -> Result<IpAddr> {
    match target {
        ip if ip.is_unspecified() => Ok(source_for(ip)),
        ip if is_own(ip) => Ok(ip),
        ip => interface::way_to(ip).map(|_| ip).map_err(|_| Errno::ENETUNREACH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_as_it_was_given() {
        let mut bytes = alloc::vec![2, 0, 0x1f, 0x90, 127, 0, 0, 1];
        bytes.resize(16, 0);
        let address = Version::V4.decode(&bytes).unwrap().unwrap();
        assert_eq!((address.ip, address.port), (Ipv4Addr::LOCALHOST.into(), 8080));
        assert_eq!(Version::V4.encode(address), bytes);
        let mapped = Version::V6.encode(address);
        assert_eq!(Version::V6.decode(&mapped), Ok(Some(address)));
        assert_eq!((mapped[18], mapped[20]), (0xff, 127));
    }

    #[test]
    fn a_wrong_family_and_a_short_address_are_told_apart() {
        let v4 = Version::V4.encode(Version::V4.unbound());
        assert_eq!(Version::V6.decode(&v4), Err(Errno::EINVAL));
        assert_eq!(Version::V4.decode(&Version::V6.encode(Version::V6.unbound())), Err(Errno::EAFNOSUPPORT));
        assert_eq!(Version::V4.decode(&v4[..15]), Err(Errno::EINVAL));
        assert_eq!(Version::V4.decode(&[0, 0]), Ok(None));
    }
}

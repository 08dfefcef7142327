//! [`Settings`]: the options of a socket that are numbers which programs set and read back, and what numbers they may be: socket(7), ip(7), ipv6(7), tcp(7), udp(7).
//!
//! A socket keeps those that were set; all others are as [`RULES`] says. What an option does, if it does anything here, is done by who asks for it.

use alloc::vec::Vec;

use linux_raw_sys::net;

use super::address::Version;
use crate::error::{Errno, Result};
use crate::sysctl::Tunable;

/// Of which protocols a socket has an option.
const TCP: u8 = 1;
const UDP: u8 = 2;
const ICMP: u8 = 4;
const ALL: u8 = TCP | UDP | ICMP;

/// The protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Protocol {
    /// TCP.
    Tcp = TCP,
    /// UDP.
    Udp = UDP,
    /// ICMP and ICMPv6.
    Icmp = ICMP,
}

impl Protocol {
    /// IPPROTO_TCP.
    pub const TCP_NUMBER: i32 = 6;
    /// IPPROTO_UDP.
    pub const UDP_NUMBER: i32 = 17;
    /// IPPROTO_ICMP.
    pub const ICMP_NUMBER: i32 = 1;
    /// IPPROTO_ICMPV6.
    pub const ICMPV6_NUMBER: i32 = 58;
}

/// What values an option may have.
#[derive(Clone, Copy)]
enum Values {
    /// 1 for all that is not 0.
    Flag,
    /// Numbers from one to another; EINVAL for others.
    From(i32, i32),
    /// The same, and for -1 the default.
    FromOrDefault(i32, i32),
    /// It takes what it is given and stays as it is.
    Fixed,
    /// It can only be read.
    Told,
}

struct Rule {
    level: u32,
    name: u32,
    protocols: u8,
    default: i32,
    values: Values,
}

const fn socket(name: u32, default: i32, values: Values) -> Rule {
    Rule { level: net::SOL_SOCKET, name, protocols: ALL, default, values }
}

const fn ip(name: u32, default: i32, values: Values) -> Rule {
    Rule { level: net::SOL_IP, name, protocols: ALL, default, values }
}

const fn ipv6(name: u32, default: i32, values: Values) -> Rule {
    Rule { level: net::SOL_IPV6, name, protocols: ALL, default, values }
}

const fn tcp(name: u32, default: i32, values: Values) -> Rule {
    Rule { level: net::SOL_TCP, name, protocols: TCP, default, values }
}

const fn udp(name: u32, default: i32, values: Values) -> Rule {
    Rule { level: net::SOL_UDP, name, protocols: UDP, default, values }
}

use Values::{Fixed, Flag, From, FromOrDefault, Told};

/// The smallest and the largest segment that can be asked for, and the longest time of a keep-alive in seconds, and the most of them.
const MAXSEG: Values = From(48, 32767);
const KEEP_SECONDS: Values = From(1, 32767);
const KEEP_COUNT: Values = From(1, 127);
/// What a device without a limit of its own carries at once.
const LOOPBACK_MTU: i32 = 65536;

const RULES: &[Rule] = &[
    socket(net::SO_REUSEADDR, 0, Flag),
    socket(net::SO_REUSEPORT, 0, Flag),
    socket(net::SO_BROADCAST, 0, Flag),
    socket(net::SO_KEEPALIVE, 0, Flag),
    socket(net::SO_OOBINLINE, 0, Flag),
    socket(net::SO_DONTROUTE, 0, Flag),
    socket(net::SO_NO_CHECK, 0, Flag),
    socket(net::SO_TIMESTAMP_OLD, 0, Flag),
    socket(net::SO_TIMESTAMPNS_OLD, 0, Flag),
    socket(net::SO_RXQ_OVFL, 0, Flag),
    socket(net::SO_ZEROCOPY, 0, From(0, 1)),
    socket(net::SO_PRIORITY, 0, From(0, 6)),
    socket(net::SO_MARK, 0, From(i32::MIN, i32::MAX)),
    socket(net::SO_BUSY_POLL, 0, From(0, i32::MAX)),
    socket(net::SO_INCOMING_CPU, -1, From(-1, i32::MAX)),
    socket(net::SO_SNDLOWAT, 1, Told),
    socket(net::SO_BSDCOMPAT, 0, Fixed),
    socket(net::SO_DEBUG, 0, Flag),
    socket(net::SO_SELECT_ERR_QUEUE, 0, Flag),
    socket(net::SO_LOCK_FILTER, 0, Flag),
    socket(net::SO_BINDTOIFINDEX, 0, From(0, 1)),
    ip(net::IP_TOS, 0, From(0, 255)),
    ip(net::IP_TTL, 64, FromOrDefault(1, 255)),
    ip(net::IP_MTU_DISCOVER, 1, From(0, 5)),
    ip(net::IP_RECVERR, 0, Flag),
    ip(net::IP_PKTINFO, 0, Flag),
    ip(net::IP_RECVTTL, 0, Flag),
    ip(net::IP_RECVTOS, 0, Flag),
    ip(net::IP_RECVOPTS, 0, Flag),
    ip(net::IP_RETOPTS, 0, Flag),
    ip(net::IP_RECVORIGDSTADDR, 0, Flag),
    ip(net::IP_FREEBIND, 0, Flag),
    ip(net::IP_TRANSPARENT, 0, Flag),
    ip(net::IP_MINTTL, 0, From(0, 255)),
    ip(net::IP_BIND_ADDRESS_NO_PORT, 0, Flag),
    ip(net::IP_MULTICAST_TTL, 1, FromOrDefault(0, 255)),
    ip(net::IP_MULTICAST_LOOP, 1, Flag),
    ip(net::IP_MULTICAST_ALL, 1, Flag),
    ip(net::IP_RECVFRAGSIZE, 0, Flag),
    ipv6(net::IPV6_V6ONLY, 0, Flag),
    ipv6(net::IPV6_UNICAST_HOPS, 64, FromOrDefault(0, 255)),
    ipv6(net::IPV6_MULTICAST_HOPS, 1, FromOrDefault(0, 255)),
    ipv6(net::IPV6_MULTICAST_LOOP, 1, From(0, 1)),
    ipv6(net::IPV6_MULTICAST_IF, 0, From(0, 1)),
    ipv6(net::IPV6_MULTICAST_ALL, 1, From(0, 1)),
    ipv6(net::IPV6_MTU_DISCOVER, 1, From(0, 5)),
    ipv6(net::IPV6_MTU, LOOPBACK_MTU, Fixed),
    ipv6(net::IPV6_RECVERR, 0, Flag),
    ipv6(net::IPV6_RECVPKTINFO, 0, Flag),
    ipv6(net::IPV6_RECVHOPLIMIT, 0, Flag),
    ipv6(net::IPV6_RECVTCLASS, 0, Flag),
    ipv6(net::IPV6_TCLASS, 0, FromOrDefault(0, 255)),
    ipv6(net::IPV6_FREEBIND, 0, Flag),
    ipv6(net::IPV6_TRANSPARENT, 0, Flag),
    ipv6(net::IPV6_DONTFRAG, 0, Flag),
    ipv6(net::IPV6_AUTOFLOWLABEL, 1, Flag),
    tcp(net::TCP_NODELAY, 0, Flag),
    tcp(net::TCP_CORK, 0, Flag),
    tcp(net::TCP_KEEPIDLE, 7200, KEEP_SECONDS),
    tcp(net::TCP_KEEPINTVL, 75, KEEP_SECONDS),
    tcp(net::TCP_KEEPCNT, 9, KEEP_COUNT),
    tcp(net::TCP_SYNCNT, 6, KEEP_COUNT),
    tcp(net::TCP_USER_TIMEOUT, 0, From(0, i32::MAX)),
    tcp(net::TCP_NOTSENT_LOWAT, 0, From(i32::MIN, i32::MAX)),
    tcp(net::TCP_FASTOPEN, 0, From(0, i32::MAX)),
    tcp(net::TCP_FASTOPEN_CONNECT, 0, From(0, 1)),
    tcp(net::TCP_FASTOPEN_NO_COOKIE, 0, From(0, 1)),
    tcp(net::TCP_THIN_LINEAR_TIMEOUTS, 0, From(0, 1)),
    tcp(net::TCP_WINDOW_CLAMP, 0, From(0, i32::MAX)),
    tcp(net::TCP_SAVE_SYN, 0, From(0, 1)),
    tcp(net::TCP_INQ, 0, From(0, 1)),
    tcp(net::TCP_QUICKACK, 1, Flag),
    tcp(net::TCP_MAXSEG, 536, MAXSEG),
    udp(1, 0, Flag),
    udp(103, 0, From(0, 65535)),
    udp(104, 0, Flag),
];

/// How cookies are used where somebody connects (`net.ipv4.tcp_syncookies`): 0 never, 1 where there are too many half-open connections, 2 always.
pub static SYN_COOKIES: Tunable = Tunable::new(1, 0..=2);

/// After how many seconds of silence a connection is looked after, at which intervals, and how often, where its program has not said (`net.ipv4.tcp_keepalive_*`).
pub static KEEP_IDLE: Tunable = Tunable::new(7200, 1..=32_767);
/// Likewise.
pub static KEEP_INTERVAL: Tunable = Tunable::new(75, 1..=32_767);
/// Likewise.
pub static KEEP_COUNT_DEFAULT: Tunable = Tunable::new(9, 1..=127);

/// The options that were set.
#[derive(Clone, Default)]
pub struct Settings(Vec<(u32, u32, i32)>);

/// Whether a socket has options of a level.
fn has_level(protocol: Protocol, version: Version, level: u32) -> bool {
    match level {
        net::SOL_SOCKET | net::SOL_IP => true,
        net::SOL_IPV6 => version == Version::V6,
        net::SOL_TCP => protocol == Protocol::Tcp,
        net::SOL_UDP => protocol == Protocol::Udp,
        _ => false,
    }
}

/// Checks that a socket has options of a level, before the value of one is read.
///
/// # Errors
/// ENOPROTOOPT.
pub fn check_level(protocol: Protocol, version: Version, level: u32) -> Result<()> {
    if has_level(protocol, version, level) { Ok(()) } else { Err(Errno::ENOPROTOOPT) }
}

/// The rule for an option of a socket.
///
/// # Errors
/// `unknown_level`; ENOPROTOOPT: there is no such option.
fn rule(protocol: Protocol, version: Version, level: u32, name: u32, unknown_level: Errno) -> Result<&'static Rule> {
    if !has_level(protocol, version, level) {
        return Err(unknown_level);
    }
    let is_it = |rule: &&Rule| rule.level == level && rule.name == name && rule.protocols & protocol as u8 != 0;
    RULES.iter().find(is_it).ok_or(Errno::ENOPROTOOPT)
}

impl Settings {
    /// Sets an option.
    ///
    /// # Errors
    /// ENOPROTOOPT: there is none that can be set. EINVAL: it cannot have this value. ENOMEM.
    pub fn set(&mut self, protocol: Protocol, version: Version, level: u32, name: u32, value: i32) -> Result<()> {
        let rule = rule(protocol, version, level, name, Errno::ENOPROTOOPT)?;
        let value = match rule.values {
            Fixed => return Ok(()),
            Told => return Err(Errno::ENOPROTOOPT),
            Flag => i32::from(value != 0),
            FromOrDefault(..) if value == -1 => rule.default,
            From(first, last) | FromOrDefault(first, last) if !(first..=last).contains(&value) => {
                return Err(Errno::EINVAL);
            }
            From(..) | FromOrDefault(..) => value,
        };
        self.put(level, name, value)
    }

    /// Keeps a value, whatever the rules say.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn put(&mut self, level: u32, name: u32, value: i32) -> Result<()> {
        match self.0.iter_mut().find(|(own_level, own_name, _)| (*own_level, *own_name) == (level, name)) {
            Some((_, _, own)) => *own = value,
            None => {
                self.0.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
                self.0.push((level, name, value));
            }
        }
        Ok(())
    }

    /// The value of an option.
    ///
    /// # Errors
    /// EOPNOTSUPP, ENOPROTOOPT: there is none.
    pub fn get(&self, protocol: Protocol, version: Version, level: u32, name: u32) -> Result<i32> {
        let unknown_level = if version == Version::V6 { Errno::ENOPROTOOPT } else { Errno::EOPNOTSUPP };
        let rule = rule(protocol, version, level, name, unknown_level)?;
        let default = match (level, name) {
            (net::SOL_TCP, net::TCP_KEEPIDLE) => KEEP_IDLE.get() as i32,
            (net::SOL_TCP, net::TCP_KEEPINTVL) => KEEP_INTERVAL.get() as i32,
            (net::SOL_TCP, net::TCP_KEEPCNT) => KEEP_COUNT_DEFAULT.get() as i32,
            _ => rule.default,
        };
        Ok(self.set_value(level, name).unwrap_or(default))
    }

    /// The value of an option that was set.
    pub fn set_value(&self, level: u32, name: u32) -> Option<i32> {
        let is_it = |(own_level, own_name, _): &&(u32, u32, i32)| (*own_level, *own_name) == (level, name);
        self.0.iter().find(is_it).map(|(_, _, value)| *value)
    }

    /// Whether all are as they were at first.
    #[inline(always)]
    pub fn are_default(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an option is on that is off where nobody set it.
    #[inline]
    pub fn is_on(&self, level: u32, name: u32) -> bool {
        self.set_value(level, name).is_some_and(|value| value != 0)
    }
}

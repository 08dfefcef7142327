//! [`DatagramSocket`]: an endpoint as an open file.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::{FIONREAD, TIOCOUTQ};
use linux_raw_sys::net;
use refs::{StrongRc, TempRc, Waker};

use super::Endpoint;
use super::endpoint::Kind;
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::fs::fasync::Registration;
use crate::fs::{Events, File, FileEnd, VfsCaller};
use crate::net::devices;
use crate::net::inet::address::Version;
use crate::net::inet::options::{OfSocket, Owner, Setting};
use crate::net::inet::{check_port, user};
use crate::net::{AtFault, Credentials, Received, Receiving, Sending, Shutdown, Sink, Socket, Source, read_into};
use crate::reclaim::Held;
use crate::step::Step;
use crate::user_memory::{Argument, In, UserMemory, UserSlice};

/// Which types of messages a socket of all messages does not get (ICMP_FILTER, ICMP6_FILTER).
const ICMP_FILTER: u32 = 1;
/// So many groups a socket gets messages of at most (`net.ipv4.igmp_max_memberships`).
const MOST_GROUPS: usize = 20;

/// An open socket: it owns its endpoint.
pub struct DatagramSocket {
    endpoint: StrongRc<Endpoint>,
    /// The number of its protocol.
    protocol: u16,
    own: OfSocket,
}

impl DatagramSocket {
    /// A new one.
    ///
    /// # Errors
    /// EPERM: the caller may not get all messages of a protocol. ESRCH: it is gone.
    pub fn create(kind: Kind, protocol: u16, version: Version, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>> {
        if kind == Kind::Raw && !me.credentials(cx)?.lock(cx).has(Capability::NetRaw) {
            return Err(Errno::EPERM);
        }
        let endpoint = Endpoint::new(kind, version, &me.payer(cx)?);
        if kind == Kind::Raw {
            endpoint.get(cx).get_all(protocol, cx)?;
        }
        Ok(Box::new(DatagramSocket { endpoint, protocol, own: OfSocket::default() }))
    }

    fn endpoint<'cx>(&'cx self, cx: &'cx Cx) -> TempRc<'cx, Endpoint> {
        self.endpoint.get(cx)
    }
}

impl Endpoint {
    fn owner(&self) -> Owner {
        Owner { protocol: self.kind.protocol(), version: self.version }
    }

    /// Has it get all messages of a protocol.
    fn get_all(&self, protocol: u16, cx: &Cx) -> Result<()> {
        let settings = self.settings.lock(cx).clone();
        let mut state = self.state.lock(cx);
        let bound = self.kind.ports().join(protocol, state.key(&settings, 0))?;
        bound.reach(self.name, None)?;
        state.bound = Some(bound);
        Ok(())
    }

    /// Sets an option.
    ///
    /// # Errors
    /// ENOPROTOOPT, EINVAL, EDOM, EADDRINUSE, EADDRNOTAVAIL, ENODEV. A fault.
    fn set_option(&self, setting: &Setting<'_>, own: &OfSocket, cx: &Cx) -> Step<()> {
        match (setting.level, setting.name) {
            (net::SOL_IP, net::IP_ADD_MEMBERSHIP | net::IP_DROP_MEMBERSHIP) => {
                let [group, device] = two_addresses(setting.bytes()?);
                self.change_groups(group.into(), device.is_loopback(), setting.name == net::IP_ADD_MEMBERSHIP, cx)?;
            }
            (net::SOL_IPV6, net::IPV6_ADD_MEMBERSHIP | net::IPV6_DROP_MEMBERSHIP) => {
                let bytes = setting.bytes::<20>()?;
                let (group, device) = bytes.split_at(16);
                let group = Ipv6Addr::from(<[u8; 16]>::try_from(group).unwrap_or_default());
                let is_loopback = device == devices::INDEX.to_le_bytes();
                self.change_groups(group.into(), is_loopback, setting.name == net::IPV6_ADD_MEMBERSHIP, cx)?;
            }
            (net::SOL_IP, net::IP_MULTICAST_IF) => {
                // An address, or a group before it, and the number of a device behind it.
                let (ip, index) = match setting.value.len() {
                    12.. => {
                        let bytes = setting.bytes::<12>()?;
                        (two_addresses([0, 1, 2, 3, 4, 5, 6, 7].map(|at| bytes[at]))[1], bytes[8])
                    }
                    8.. => (two_addresses(setting.bytes()?)[1], 0),
                    _ => (Ipv4Addr::from(setting.bytes::<4>()?), 0),
                };
                let is_loopback = ip == Ipv4Addr::LOCALHOST || i32::from(index) == devices::INDEX;
                if !is_loopback && !ip.is_unspecified() {
                    return Err(Errno::EADDRNOTAVAIL.into());
                }
                self.settings.lock(cx).put(setting.level, setting.name, is_loopback.into())?;
            }
            (net::SOL_RAW, ICMP_FILTER) if self.kind == Kind::Raw && self.version == Version::V4 => {
                let filter = u32::from_le_bytes(setting.bytes()?);
                self.state.lock(cx).filter[0] = filter;
            }
            (net::SOL_ICMPV6, ICMP_FILTER) if self.kind == Kind::Raw && self.version == Version::V6 => {
                let bytes = setting.bytes::<32>()?;
                let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[4 * at + byte]));
                self.state.lock(cx).filter = [0, 1, 2, 3, 4, 5, 6, 7].map(word);
            }
            // The checksum of ICMPv6 is right anyway.
            (net::SOL_RAW, net::IPV6_CHECKSUM) if self.kind == Kind::Raw && self.version == Version::V6 => {}
            (net::SOL_IPV6, net::IPV6_V6ONLY) if self.state.lock(cx).bound.is_some() => {
                return Err(Errno::EINVAL.into());
            }
            _ => {
                // What the value is made of is read first: no memory of a program is with a lock held.
                let mut settings = self.settings.lock(cx).clone();
                self.owner().set(setting, &mut settings, own)?;
                *self.settings.lock(cx) = settings.clone();
                if matches!(
                    (setting.level, setting.name),
                    (net::SOL_IP, net::IP_RECVERR) | (net::SOL_IPV6, net::IPV6_RECVERR)
                ) {
                    self.forget_failures_unless_wanted(cx);
                }
                let mut state = self.state.lock(cx);
                let key = state.key(&settings, 0);
                let is_of_port = matches!(setting.name, net::SO_REUSEADDR | net::SO_REUSEPORT);
                if is_of_port
                    && setting.level == net::SOL_SOCKET
                    && let Some(bound) = &mut state.bound
                {
                    bound.change(key);
                }
            }
        }
        Ok(())
    }

    /// Joins a group, or leaves it.
    ///
    /// # Errors
    /// EINVAL: it is no group. ENODEV: none of the loopback device's. EADDRINUSE, EADDRNOTAVAIL: it is in it, or not. ENOBUFS: too many.
    fn change_groups(&self, group: IpAddr, is_loopback: bool, joins: bool, cx: &Cx) -> Result<()> {
        if !group.is_multicast() {
            return Err(Errno::EINVAL);
        }
        let mut state = self.state.lock(cx);
        let place = state.groups.iter().position(|own| *own == group);
        match place {
            None if joins && !is_loopback => return Err(Errno::ENODEV),
            None if joins && state.groups.len() >= MOST_GROUPS => return Err(Errno::ENOBUFS),
            None if joins => state.groups.push(group),
            Some(_) if joins => return Err(Errno::EADDRINUSE),
            Some(place) => _ = state.groups.swap_remove(place),
            None => return Err(Errno::EADDRNOTAVAIL),
        }
        Ok(())
    }
}

/// Two addresses, one behind the other.
fn two_addresses(bytes: [u8; 8]) -> [Ipv4Addr; 2] {
    let [a, b, c, d, e, f, g, h] = bytes;
    [Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h)]
}

impl Socket for DatagramSocket {
    fn bind(&self, address: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let endpoint = self.endpoint(cx);
        let address = endpoint.version.decode_given(address)?;
        if endpoint.kind == Kind::Udp {
            check_port(address.port, me, cx)?;
        }
        Ok(endpoint.bind(address, user(me, cx)?, cx)?)
    }

    fn listen(&self, _backlog: usize, _me: &dyn VfsCaller, _cx: &Cx) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn connect(&self, address: &[u8], _waker: Option<Waker>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let endpoint = self.endpoint(cx);
        match endpoint.decode(address)? {
            Some(to) => endpoint.connect(to, &|| user(me, cx), cx),
            None => {
                endpoint.disconnect(cx);
                Ok(())
            }
        }
    }

    fn accept(&self, _waker: Option<Waker>, _tell: &mut dyn FnMut(&[u8]) -> Step<()>, _cx: &Cx) -> Step<Box<dyn File>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn note_inode(&self, number: u64) {
        self.endpoint.with(|endpoint| endpoint.inode.store(number, Ordering::Relaxed));
    }

    fn address(&self, cx: &Cx) -> Vec<u8> {
        let endpoint = self.endpoint(cx);
        endpoint.version.encode(endpoint.address(cx))
    }

    fn peer_address(&self, cx: &Cx) -> Result<Vec<u8>> {
        let endpoint = self.endpoint(cx);
        Ok(endpoint.version.encode(endpoint.peer_address(cx)?))
    }

    fn send(
        &self,
        from: &mut dyn Source,
        to: Option<&[u8]>,
        sending: &Sending<'_>,
        _waker: Option<Waker>,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<usize> {
        let endpoint = self.endpoint(cx);
        let to = to.map(|to| endpoint.decode(to)).transpose()?.flatten();
        endpoint.send(from, to, sending, &|| user(me, cx), cx)
    }

    fn receive(
        &self,
        sink: &mut Sink<'_>,
        _at_fault: AtFault,
        receiving: &Receiving,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received> {
        self.endpoint(cx).receive(sink, receiving, waker, cx)
    }

    fn wanted(&self, _receiving: &Receiving, _cx: &Cx) -> usize {
        0
    }

    fn shut_down(&self, what: Shutdown, cx: &Cx) -> Step<()> {
        Ok(self.endpoint(cx).shut_down(what, cx)?)
    }

    fn set_option(
        &self,
        level: u32,
        name: u32,
        value: UserSlice<u8, In>,
        memory: &UserMemory<'_>,
        cx: &Cx,
    ) -> Step<()> {
        self.endpoint(cx).set_option(&Setting { level, name, value, memory }, &self.own, cx)
    }

    fn option(&self, level: u32, name: u32, cx: &Cx) -> Result<Vec<u8>> {
        let endpoint = self.endpoint(cx);
        let kind = if endpoint.kind == Kind::Raw { net::SOCK_RAW } else { net::SOCK_DGRAM };
        let value = match (level, name) {
            (net::SOL_SOCKET, net::SO_TYPE) => kind as i32,
            (net::SOL_SOCKET, net::SO_PROTOCOL) => self.protocol.into(),
            (net::SOL_SOCKET, net::SO_RCVLOWAT) => 1,
            (net::SOL_SOCKET, net::SO_COOKIE) => return Ok(endpoint.cookie.get().to_le_bytes().to_vec()),
            (net::SOL_SOCKET, net::SO_LINGER) => return Ok(crate::net::inet::options::linger(None)),
            (net::SOL_SOCKET, net::SO_ERROR) => {
                endpoint.state.lock(cx).error.take().map_or(0, |error| error.number().into())
            }
            (net::SOL_IP, net::IP_MULTICAST_IF) => {
                let is_loopback = endpoint.settings.lock(cx).is_on(level, name);
                let ip = if is_loopback { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
                return Ok(ip.octets().to_vec());
            }
            _ => {
                let settings = endpoint.settings.lock(cx).clone();
                return endpoint.owner().get(level, name, &settings, &self.own);
            }
        };
        Ok(value.to_le_bytes().to_vec())
    }
}

impl File for DatagramSocket {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Socket
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        1024 + self.endpoint(cx).addresses(cx).2
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        self.endpoint(cx).close(cx);
        false
    }

    fn fasync(&self, registration: &Registration<'_>, cx: &Cx) -> bool {
        registration.apply(&self.endpoint(cx).fasync, Events::IN | Events::OUT | Events::ERROR, cx);
        true
    }

    fn time_limit(&self, interest: Events) -> Option<u64> {
        self.own.timeouts.limit(interest)
    }

    fn keeps_messages(&self, _cx: &Cx) -> bool {
        true
    }

    fn signals_broken_pipe(&self, _cx: &Cx) -> bool {
        false
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let endpoint = self.endpoint(cx);
        let receiving = Receiving { flags: 0, room: to.remaining() };
        read_into(to, me, cx, |sink, _| endpoint.receive(sink, &receiving, None, cx))
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let sending = Sending { flags: 0, control: &[], files: &[], credentials: Credentials::default() };
        self.endpoint(cx).send(from, None, &sending, &|| user(me, cx), cx)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.endpoint(cx).poll(waker, cx) & (interest | Events::ERROR | Events::HANG_UP)
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let value = match request {
            FIONREAD => self.endpoint(cx).waiting_bytes(cx) as i32,
            // All that was sent is where it was sent to.
            TIOCOUTQ => 0,
            _ => return devices::ioctl(request, argument, me, cx),
        };
        me.memory(cx)?.write(argument.output::<i32>(), &value)?;
        Ok(0)
    }
}

//! Sending: a message is copied into the queues of those who get it.

use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net;

use super::Endpoint;
use super::endpoint::{Datagram, Kind};
use crate::error::{Errno, Result};
use crate::net::inet::address::{Address, BROADCAST, is_own, source_for};
use crate::net::inet::loopback;
use crate::net::{Control, Sending, Source, counters, devices};
use crate::step::Step;

/// The most bytes of a message, over IPv4 and IPv6: what a packet holds behind its headers.
const MOST_V4: usize = 65_535 - 20 - 8;
const MOST_V6: usize = 65_535 - 8;

/// Shows a datagram to those who look at the loopback device.
fn show(datagram: &Datagram, to: Address, cx: &Cx) {
    if loopback::watched() {
        loopback::show_datagram(datagram.from, to, (datagram.hops, datagram.class), &datagram.bytes, cx);
    }
}

impl Endpoint {
    /// Sends a message to `to`, or to whom it is connected with: how many bytes.
    ///
    /// # Errors
    /// EDESTADDRREQ; EMSGSIZE; EPIPE: it was shut down. ECONNREFUSED: an earlier one did not arrive. ENETUNREACH, EACCES, EINVAL: it cannot be sent there. ENOBUFS. A fault.
    pub fn send(
        &self,
        from: &mut dyn Source,
        to: Option<Address>,
        sending: &Sending<'_>,
        user: &dyn Fn() -> Result<u32>,
        cx: &Cx,
    ) -> Step<usize> {
        if sending.flags & net::MSG_OOB != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let len = from.remaining();
        if len > u16::MAX.into() {
            return Err(Errno::EMSGSIZE.into());
        }
        let (remote, own) = {
            let mut state = self.state.lock(cx);
            if to.is_none() && state.remote.is_none() {
                return Err(Errno::EDESTADDRREQ.into());
            }
            if let Some(error) = state.error.take() {
                return Err(error.into());
            }
            if state.shutdown.writing {
                return Err(Errno::EPIPE.into());
            }
            (state.remote, state.local.ip)
        };
        let Some(to) = to.or(remote) else { return Err(Errno::EDESTADDRREQ.into()) };
        if to.port == 0 && self.kind == Kind::Udp {
            return Err(Errno::EINVAL.into());
        }
        let to = Address { ip: self.destination(to.ip)?, port: to.port };
        if own.is_ipv4() != to.ip.is_ipv4() {
            let only_v6 = self.settings.with(|settings| settings.is_on(net::SOL_IPV6, net::IPV6_V6ONLY));
            self.version.check_reach(own, only_v6, to.ip)?;
        }
        let most = if to.ip.is_ipv4() { MOST_V4 } else { MOST_V6 };
        if len > most {
            return Err(Errno::EMSGSIZE.into());
        }
        let local = if self.kind == Kind::Raw { self.address(cx) } else { self.local(user, cx)? };
        let source = if local.ip.is_unspecified() { source_for(to.ip) } else { local.ip };
        crate::memory::admit()?;
        let mut bytes = from.take(len)?;
        while bytes.len() < len {
            // It goes whole or not at all: this says which page is missing.
            bytes.extend_from_slice(&from.take(len - bytes.len())?);
        }
        let (hops, class) = self.path(to.ip, sending.control)?;
        let from = Address { ip: source, port: local.port };
        let datagram = Datagram { bytes, from, to: to.ip, hops, class, time: 0, device: devices::INDEX };
        if self.kind == Kind::Udp {
            counters::udp(to.ip).sent.count();
        }
        match self.kind {
            Kind::Udp if to.ip.is_multicast() => {
                if self.sends_to_loopback() {
                    show(&datagram, to, cx);
                } else {
                    self.send_out(&datagram, to, cx)?;
                }
                self.deliver_udp(datagram, to, cx);
            }
            Kind::Udp if is_own(to.ip) || to.ip == BROADCAST => {
                show(&datagram, to, cx);
                self.deliver_udp(datagram, to, cx);
            }
            Kind::Udp => self.send_out(&datagram, to, cx)?,
            Kind::Echo | Kind::Raw => self.deliver_icmp(datagram, cx)?,
        }
        Ok(len)
    }

    /// Through how many hosts a message may go, and how.
    ///
    /// # Errors
    /// EINVAL: what the message says of that is wrong.
    fn path(&self, to: IpAddr, control: &[Control]) -> Result<(u8, u8)> {
        let is_v4 = to.is_ipv4();
        let (hops, class) = self.settings.with(|settings| {
            if settings.are_default() && !to.is_multicast() {
                return (64, 0);
            }
            let value = |v4, v6, multicast_v4, multicast_v6| match (is_v4, to.is_multicast()) {
                (true, false) => settings.set_value(net::SOL_IP, v4),
                (true, true) => settings.set_value(net::SOL_IP, multicast_v4),
                (false, false) => settings.set_value(net::SOL_IPV6, v6),
                (false, true) => settings.set_value(net::SOL_IPV6, multicast_v6),
            };
            let default = if to.is_multicast() { 1 } else { 64 };
            let hops = value(net::IP_TTL, net::IPV6_UNICAST_HOPS, net::IP_MULTICAST_TTL, net::IPV6_MULTICAST_HOPS);
            let class = value(net::IP_TOS, net::IPV6_TCLASS, net::IP_TOS, net::IPV6_TCLASS);
            (hops.unwrap_or(default) as u8, class.unwrap_or(0) as u8)
        });
        let (mut hops, mut class) = (hops, class);
        for part in control {
            let number = part.data.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
            match (part.level, part.kind) {
                (net::SOL_IP, net::IP_TTL) | (net::SOL_IPV6, net::IPV6_HOPLIMIT) => {
                    hops = number.and_then(|hops| u8::try_from(hops).ok()).ok_or(Errno::EINVAL)?;
                }
                (net::SOL_IP, net::IP_TOS) | (net::SOL_IPV6, net::IPV6_TCLASS) => {
                    class = number.map(|class| class as u8).or(part.data.first().copied()).ok_or(Errno::EINVAL)?;
                }
                (net::SOL_IP, net::IP_PKTINFO) | (net::SOL_IPV6, net::IPV6_PKTINFO) => {}
                (net::SOL_IP | net::SOL_IPV6, _) => return Err(Errno::EINVAL),
                // Not for this protocol.
                _ => {}
            }
        }
        Ok((hops, class))
    }

    fn deliver_udp(&self, datagram: Datagram, to: Address, cx: &Cx) {
        let ports = self.kind.ports();
        let (from, ip) = (datagram.from, to.ip);
        if ip == BROADCAST || ip.is_multicast() {
            // Each of those who get it has a copy.
            let others = ports.find_all(to.port, from, |key| key.ip == ip || key.ip.is_unspecified());
            for other in others.iter().filter_map(|other| other.upgrade(cx).ok()) {
                let is_member = ip == BROADCAST || other.state.lock(cx).groups.contains(&ip);
                if is_member {
                    other.deliver(datagram.clone(), cx);
                }
            }
            return;
        }
        match ports.find(to, from).map(|other| other.upgrade(cx)) {
            Some(Ok(other)) => other.deliver(datagram, cx),
            _ => {
                counters::udp(ip).no_port.count();
                self.nobody_there(datagram, to, cx);
            }
        }
    }
}

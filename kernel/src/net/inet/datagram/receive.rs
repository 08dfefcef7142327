//! Receiving, and what is told of a message beside its bytes.

use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net;
use refs::Waker;

use super::Endpoint;
use super::endpoint::Datagram;
use crate::net::inet::address::{Version, as_v6};
use crate::net::inet::settings::Settings;
use crate::net::{Control, Received, Receiving, Sink};
use crate::step::{Step, Stop};

impl Endpoint {
    /// Receives a message into `sink`.
    ///
    /// # Errors
    /// ECONNREFUSED: what was sent did not arrive. `Block` while there is none.
    pub fn receive(&self, sink: &mut Sink<'_>, receiving: &Receiving, waker: Option<Waker>, cx: &Cx) -> Step<Received> {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        if receiving.flags & net::MSG_ERRQUEUE != 0 {
            return self.receive_failure(sink, receiving, cx);
        }
        let mut state = self.state.lock(cx);
        if let Some(error) = state.error.take() {
            return Err(error.into());
        }
        let Some(datagram) = state.queue.front() else {
            return if state.shutdown.reading { Ok(Received::default()) } else { Err(Stop::Block) };
        };
        let (copied, fault) = sink(&datagram.bytes);
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let mut received = Received {
            copied,
            len: datagram.bytes.len(),
            from: self.version.encode(datagram.from),
            ..Received::default()
        };
        received.control = self
            .settings
            .with(|settings| if settings.are_default() { Vec::new() } else { told(self.version, datagram, settings) });
        if !receiving.peeks() {
            let datagram = state.pop();
            drop(state);
            drop(datagram);
        }
        Ok(received)
    }
}

/// What a socket's options have told of a message.
pub(super) fn told(version: Version, datagram: &Datagram, settings: &Settings) -> Vec<Control> {
    let mut told = Vec::new();
    let mut tell = |is_on: bool, level: u32, kind: u32, data: &[u8]| {
        if is_on {
            told.push(Control { level, kind, data: data.to_vec() });
        }
    };
    let is_on = |level, name| settings.is_on(level, name);
    let (seconds, nanoseconds) = ((datagram.time / 1_000_000_000) as i64, (datagram.time % 1_000_000_000) as i64);
    let time = |rest: i64| [seconds.to_le_bytes(), rest.to_le_bytes()].concat();
    let wants_nanoseconds = is_on(net::SOL_SOCKET, net::SO_TIMESTAMPNS_OLD);
    let wants_time = is_on(net::SOL_SOCKET, net::SO_TIMESTAMP_OLD) && !wants_nanoseconds;
    tell(wants_nanoseconds, net::SOL_SOCKET, net::SO_TIMESTAMPNS_OLD, &time(nanoseconds));
    tell(wants_time, net::SOL_SOCKET, net::SO_TIMESTAMP_OLD, &time(nanoseconds / 1000));
    let device = datagram.device.to_le_bytes();
    let (hops, class) = (i32::from(datagram.hops).to_le_bytes(), i32::from(datagram.class).to_le_bytes());
    if version == Version::V6 {
        let info = [&as_v6(datagram.to).octets()[..], &device].concat();
        tell(is_on(net::SOL_IPV6, net::IPV6_RECVPKTINFO), net::SOL_IPV6, net::IPV6_PKTINFO, &info);
        tell(is_on(net::SOL_IPV6, net::IPV6_RECVHOPLIMIT), net::SOL_IPV6, net::IPV6_HOPLIMIT, &hops);
        tell(is_on(net::SOL_IPV6, net::IPV6_RECVTCLASS), net::SOL_IPV6, net::IPV6_TCLASS, &class);
    }
    if let IpAddr::V4(to) = datagram.to {
        let is_many = datagram.to.is_multicast() || datagram.to == crate::net::inet::address::BROADCAST;
        let own = if is_many { core::net::Ipv4Addr::LOCALHOST } else { to };
        let info = [device, own.octets(), to.octets()].concat();
        tell(is_on(net::SOL_IP, net::IP_PKTINFO), net::SOL_IP, net::IP_PKTINFO, &info);
        tell(is_on(net::SOL_IP, net::IP_RECVTTL), net::SOL_IP, net::IP_TTL, &hops);
        tell(is_on(net::SOL_IP, net::IP_RECVTOS), net::SOL_IP, net::IP_TOS, &[datagram.class]);
    }
    told
}

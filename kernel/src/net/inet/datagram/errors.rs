//! What was sent and did not arrive: IP_RECVERR in ip(7), IPV6_RECVERR in ipv6(7).
//!
//! It is the error of the socket's next call: always of a socket that wants to know errors, else only where the error is final and the socket is connected with whom it was sent to.
//! Who wants to know them finds them in a queue as well (MSG_ERRQUEUE), each with the beginning of the message, where that was sent to, and who says that it did not arrive. The
//! queue has the bound of the messages that wait, and the same budget.

use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net;
use tcpip::ip::{Packet, protocol};
use tcpip::udp;

use super::endpoint::{Datagram, State};
use super::receive::told;
use super::{ECHO, Endpoint, RAW, UDP};
use crate::error::Errno;
use crate::fs::Events;
use crate::fs::fasync::Band;
use crate::net::inet::address::{Address, Version};
use crate::net::inet::loopback;
use crate::net::{Control, Received, Receiving, Sink};
use crate::step::Step;

/// Who says that a message did not arrive (`SO_EE_ORIGIN_ICMP`, `SO_EE_ORIGIN_ICMP6`).
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMPV6: u8 = 3;
/// How many bytes of a message of UDP an error of ICMP or ICMPv6 quotes at most, on the loopback device.
const QUOTED_V4: usize = 576 - (20 + 8) - (20 + 8);
const QUOTED_V6: usize = 1280 - (40 + 8) - (40 + 8);
/// Types and codes: nobody has this port.
const NO_PORT_V4: (u8, u8) = (3, 3);
const NO_PORT_V6: (u8, u8) = (1, 4);

/// Why a message did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What calls say.
    pub error: Errno,
    /// It would not arrive later either.
    pub is_final: bool,
    /// Type and code of the message of ICMP that says so.
    pub kind: (u8, u8),
    /// The size that would arrive, if that is why; else 0.
    pub mtu: u32,
    /// Who says so.
    pub offender: IpAddr,
}

/// A message that did not arrive. Its bytes and its way are those of the error that says so.
pub(super) struct Failure {
    pub(super) reason: Reason,
    /// Where it was sent to.
    pub(super) destination: Address,
    pub(super) datagram: Datagram,
}

impl Reason {
    /// `struct sock_extended_err`, with who says so as an address behind it.
    fn encode(&self, version: Version) -> Vec<u8> {
        let origin = if self.offender.is_ipv4() { ORIGIN_ICMP } else { ORIGIN_ICMPV6 };
        let mut bytes = u32::from(self.error.number()).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[origin, self.kind.0, self.kind.1, 0]);
        bytes.extend_from_slice(&self.mtu.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&version.encode(Address { ip: self.offender, port: 0 }));
        bytes
    }
}

impl Endpoint {
    fn wants_errors(&self) -> bool {
        self.settings.with(|settings| {
            settings.is_on(net::SOL_IP, net::IP_RECVERR) || settings.is_on(net::SOL_IPV6, net::IPV6_RECVERR)
        })
    }

    /// A message that it has sent did not arrive.
    pub(super) fn fail(&self, failure: Failure, cx: &Cx) {
        let (wants_errors, capacity) = (self.wants_errors(), self.capacity());
        {
            let mut state = self.state.lock(cx);
            let is_connected = state.remote.is_some_and(|remote| remote == failure.destination);
            let is_told = wants_errors || failure.reason.is_final && is_connected;
            if !is_told {
                return;
            }
            state.error = Some(failure.reason.error);
            if wants_errors {
                state.keep_failure(failure, capacity);
            }
        }
        self.readable.wake_all();
        self.fasync.signal(Events::ERROR, Band::In, cx);
    }

    /// Nobody has the port on this machine that a message was sent to.
    pub(super) fn nobody_there(&self, mut datagram: Datagram, destination: Address, cx: &Cx) {
        if loopback::watched() {
            loopback::show_no_port(datagram.from, destination, &datagram.bytes, cx);
        }
        let (kind, quoted) = if destination.ip.is_ipv4() { (NO_PORT_V4, QUOTED_V4) } else { (NO_PORT_V6, QUOTED_V6) };
        datagram.bytes.truncate(quoted);
        // The error goes back the way that the message has gone.
        datagram.to = datagram.from.ip;
        datagram.hops = 64;
        let offender = destination.ip;
        let reason = Reason { error: Errno::ECONNREFUSED, is_final: true, kind, mtu: 0, offender };
        self.fail(Failure { reason, destination, datagram }, cx);
    }

    /// Whether it wants to know errors may have changed.
    pub(super) fn forget_failures_unless_wanted(&self, cx: &Cx) {
        if !self.wants_errors() {
            let mut state = self.state.lock(cx);
            let gone = core::mem::take(&mut state.failures);
            gone.iter().for_each(|failure| state.dismiss(failure.datagram.bytes.len()));
            drop(state);
            drop(gone);
        }
    }

    /// Receives what is known of a message that did not arrive into `sink`.
    ///
    /// # Errors
    /// EAGAIN: there is none. A fault.
    pub(super) fn receive_failure(&self, sink: &mut Sink<'_>, receiving: &Receiving, cx: &Cx) -> Step<Received> {
        let mut state = self.state.lock(cx);
        let Some(failure) = state.failures.front() else { return Err(Errno::EAGAIN.into()) };
        let (copied, fault) = sink(&failure.datagram.bytes);
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let mut received = Received {
            copied,
            len: failure.datagram.bytes.len(),
            from: self.version.encode(failure.destination),
            flags: net::MSG_ERRQUEUE,
            ..Received::default()
        };
        received.control = self.settings.with(|settings| told(self.version, &failure.datagram, settings));
        let (level, kind) = match self.version {
            Version::V4 => (net::SOL_IP, net::IP_RECVERR),
            Version::V6 => (net::SOL_IPV6, net::IPV6_RECVERR),
        };
        received.control.push(Control { level, kind, data: failure.reason.encode(self.version) });
        if !receiving.peeks() {
            let failure = state.take_failure();
            state.error = state.failures.front().map(|next| next.reason.error);
            drop(state);
            drop(failure);
        }
        Ok(received)
    }
}

/// A message that did not arrive, as far as the error tells.
pub struct Lost<'a> {
    /// The number of its protocol.
    pub protocol: u8,
    /// This machine's end; the port of an echo is its number.
    pub own: Address,
    /// The other.
    pub destination: Address,
    /// Its first bytes, from the header of its protocol on.
    pub bytes: &'a [u8],
}

/// What a socket has sent did not arrive, says a packet that came from a device.
pub fn did_not_arrive(lost: &Lost<'_>, reason: Reason, packet: &Packet<'_>, device: i32, cx: &Cx) {
    let failure = |bytes: &[u8], destination| Failure {
        reason,
        destination,
        datagram: Datagram { bytes: bytes.to_vec(), ..Datagram::of_packet(packet, &[], device) },
    };
    let Lost { own, destination, bytes, .. } = *lost;
    if lost.protocol == protocol::UDP {
        if let Some(Ok(sender)) = UDP.find(own, destination).map(|sender| sender.upgrade(cx)) {
            sender.fail(failure(bytes.get(udp::HEADER_BYTES..).unwrap_or_default(), destination), cx);
        }
        return;
    }
    let host = Address { ip: destination.ip, port: 0 };
    if let Some(Ok(sender)) = ECHO.find(own, host).map(|sender| sender.upgrade(cx)) {
        sender.fail(failure(bytes, host), cx);
    }
    for sender in RAW.find_all(lost.protocol.into(), host, |_| true) {
        if let Ok(sender) = sender.upgrade(cx) {
            sender.fail(failure(bytes, host), cx);
        }
    }
}

impl State {
    /// Keeps what is known of a message that did not arrive; where there is no room for it, it is forgotten.
    fn keep_failure(&mut self, failure: Failure, capacity: usize) {
        let len = failure.datagram.bytes.len();
        if !self.admit(len, capacity) {
            return;
        }
        if self.failures.try_reserve(1).is_err() {
            self.dismiss(len);
            return;
        }
        self.failures.push_back(failure);
    }

    fn take_failure(&mut self) -> Option<Failure> {
        let failure = self.failures.pop_front()?;
        self.dismiss(failure.datagram.bytes.len());
        Some(failure)
    }
}

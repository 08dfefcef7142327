//! Echo requests, and the answers of this machine: RFC 792 and RFC 4443. What is sent goes to all who listen to the protocol, and what answers it to the sender as well.

use alloc::vec::Vec;
use frame::Cx;
use tcpip::ip::icmp::seal;
use tcpip::ip::{IpHeader, protocol};

use super::endpoint::{Datagram, Kind, State};
use super::{ECHO, Endpoint, RAW};
use crate::error::{Errno, Result};
use crate::net::inet::address::{Address, is_own};
use crate::net::inet::loopback;
use crate::net::packet::Checksum;

/// The types of requests and answers, of ICMP and of ICMPv6.
const REQUEST_V4: u8 = 8;
const ANSWER_V4: u8 = 0;
const REQUEST_V6: u8 = 128;
const ANSWER_V6: u8 = 129;
/// Type, code, checksum, number of the sender, number of the request.
const HEADER_BYTES: usize = 8;

/// The header of the packet that carries a message.
fn header_of(datagram: &Datagram) -> IpHeader {
    let number = if datagram.to.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
    IpHeader {
        hop_limit: datagram.hops,
        traffic_class: datagram.class,
        dont_fragment: false,
        ..IpHeader::new(datagram.from.ip, datagram.to, number)
    }
}

/// Shows a message to those who look at the loopback device.
fn show(datagram: &Datagram, cx: &Cx) {
    if loopback::watched() {
        loopback::show(&header_of(datagram), &datagram.bytes, Checksum::There, cx);
    }
}

/// A message as a socket of all messages gets it: that of IPv4 has the header of its packet.
fn with_header(datagram: &Datagram) -> Vec<u8> {
    let (source, destination) = (datagram.from.ip, datagram.to);
    if !(source.is_ipv4() && destination.is_ipv4()) {
        return datagram.bytes.clone();
    }
    let header = header_of(datagram);
    let mut packet = alloc::vec![0; header.len_bytes()];
    packet.extend_from_slice(&datagram.bytes);
    // What cannot be a packet is told without a header.
    if header.emit(&mut packet, datagram.bytes.len()).is_err() { datagram.bytes.clone() } else { packet }
}

impl Endpoint {
    /// Sends a message of ICMP or ICMPv6, and has it answered if it is an echo request.
    ///
    /// # Errors
    /// EINVAL: too short, or nothing that this socket may send.
    pub(super) fn deliver_icmp(&self, mut datagram: Datagram, cx: &Cx) -> Result<()> {
        let is_v4 = datagram.to.is_ipv4();
        let (request, answer) = if is_v4 { (REQUEST_V4, ANSWER_V4) } else { (REQUEST_V6, ANSWER_V6) };
        let is_request = datagram.bytes.len() >= HEADER_BYTES && datagram.bytes[..2] == [request, 0];
        if self.kind == Kind::Echo {
            if !is_request {
                return Err(Errno::EINVAL);
            }
            datagram.bytes[4..6].copy_from_slice(&datagram.from.port.to_be_bytes());
            seal(&mut datagram.bytes, datagram.from.ip, datagram.to);
        } else if !is_v4 && datagram.bytes.len() >= HEADER_BYTES {
            seal(&mut datagram.bytes, datagram.from.ip, datagram.to);
        }
        datagram.from.port = 0;
        if !is_own(datagram.to) {
            let to = Address { ip: datagram.to, port: 0 };
            return self.send_out(&datagram, to, cx);
        }
        let mut answered = datagram.clone();
        show(&datagram, cx);
        tell_all(&datagram, cx);
        if is_request {
            answered.bytes[0] = answer;
            answered.from = Address { ip: datagram.to, port: 0 };
            answered.to = datagram.from.ip;
            answered.hops = 64;
            seal(&mut answered.bytes, answered.from.ip, answered.to);
            show(&answered, cx);
            tell_all(&answered, cx);
            answer_came(answered, cx);
        }
        Ok(())
    }
}

/// Gives the answer to an echo request to who has asked.
pub(super) fn answer_came(datagram: Datagram, cx: &Cx) {
    let answer = if datagram.to.is_ipv4() { ANSWER_V4 } else { ANSWER_V6 };
    if datagram.bytes.len() < HEADER_BYTES || datagram.bytes[..2] != [answer, 0] {
        return;
    }
    let number = u16::from_be_bytes([datagram.bytes[4], datagram.bytes[5]]);
    let asker = ECHO.find(Address { ip: datagram.to, port: number }, datagram.from);
    if let Some(Ok(asker)) = asker.map(|asker| asker.upgrade(cx)) {
        asker.deliver(datagram, cx);
    }
}

impl State {
    /// Whether it gets messages of a type.
    fn lets_through(&self, kind: u8) -> bool {
        self.filter[usize::from(kind / 32)] & 1 << (kind % 32) == 0
    }
}

/// Gives a message to all who get those of its protocol.
pub(super) fn tell_all(datagram: &Datagram, cx: &Cx) {
    let (is_v4, to) = (datagram.to.is_ipv4(), datagram.to);
    let port = u16::from(if is_v4 { protocol::ICMP } else { protocol::ICMPV6 });
    let from = Address { ip: datagram.from.ip, port: 0 };
    for other in RAW.find_all(port, from, |_| true) {
        let Ok(other) = other.upgrade(cx) else { continue };
        let is_for_it = {
            let state = other.state.lock(cx);
            let (own, remote) = (state.local.ip, state.remote);
            (own.is_unspecified() || own == to)
                && remote.is_none_or(|remote| remote.ip == from.ip)
                && state.lets_through(datagram.bytes.first().copied().unwrap_or(0))
        };
        if is_for_it {
            other.deliver(Datagram { bytes: with_header(datagram), ..datagram.clone() }, cx);
        }
    }
}

//! The sockets of the internet protocols.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use frame::Cx;
use linux_raw_sys::net;
use zerocopy::IntoBytes;

use super::filter::Filter;
use super::{BY_FAMILY, is_meant, memory, shutdown_bits, word};
use crate::error::Errno;
use crate::net::inet::datagram::Kind;
use crate::net::inet::diag::{Details, End};
use crate::net::inet::listing::{Listing, Name, Place};
use crate::net::netlink::Answer;
use crate::net::netlink::dump::{Dump, Next};
use crate::net::netlink::message::{Asker, Message, NLM_F_MULTI, Refusal, Request};

/// `struct inet_diag_req_v2`, and where in it is what.
const REQUEST_BYTES: usize = 56;
const ID: usize = 8;
const ID_COOKIE: usize = ID + 40;
/// `struct inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;

const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
const IPPROTO_RAW: u8 = 255;

const BYTECODE: u16 = 1;

/// What is told beside the fixed part; each has a bit in what is asked for.
const MEMINFO: u16 = 1;
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
const TOS: u16 = 5;
const TCLASS: u16 = 6;
const SKMEMINFO: u16 = 7;
const SHUTDOWN: u16 = 8;
const PROTOCOL: u16 = 10;
const ONLY_V6: u16 = 11;
const MARK: u16 = 15;

/// TCP_CLOSE and TCP_LISTEN.
const CLOSE: u8 = 7;
const LISTEN: u8 = 10;

/// What is asked.
struct Wanted {
    listing: Listing,
    family: u32,
    protocol: u8,
    extensions: u8,
    /// A bit for each state.
    states: u32,
    /// Ports; 0: any.
    ports: [u16; 2],
    filter: Option<Filter>,
    is_administrator: bool,
}

/// Answers a request.
///
/// # Errors
/// EINVAL: too short, or the filter is wrong. ENOENT: there are no such sockets. EPERM.
pub fn answer(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    if request.body.len() < REQUEST_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let head = request.head::<REQUEST_BYTES>();
    let listing = match head[1] {
        IPPROTO_TCP => Listing::Tcp,
        IPPROTO_UDP => Listing::Datagram(Kind::Udp),
        IPPROTO_RAW => Listing::Datagram(Kind::Raw),
        _ => return Err(Errno::ENOENT.into()),
    };
    let is_administrator = request.asker.is_administrator;
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let program = request.attributes(REQUEST_BYTES).get(BYTECODE).filter(|_| request.is_dump());
    let wanted = Wanted {
        listing,
        family: head[0].into(),
        protocol: head[1],
        extensions: head[2],
        states: word(&head, 4),
        ports: [port(ID), port(ID + 2)],
        filter: program.map(|program| Filter::new(program, is_administrator)).transpose()?,
        is_administrator,
    };
    if request.is_dump() {
        let place = Place::default();
        return Ok(Answer::Dump(Box::new(Sockets { wanted, place, header: request.header, asker: request.asker })));
    }
    let ip = |at: usize| address(&head[at..at + 16], wanted.family);
    let local = End { ip: ip(ID + 4), port: wanted.ports[0] };
    let remote = End { ip: ip(ID + 20), port: wanted.ports[1] };
    let name = listing.find(local, remote).ok_or(Errno::ENOENT)?;
    let details = name.details(cx).ok_or(Errno::ENOENT)?;
    if !is_meant(details.cookie, [word(&head, ID_COOKIE), word(&head, ID_COOKIE + 4)]) {
        return Err(Errno::ENOENT.into());
    }
    Ok(Answer::Message(message(name, &details, &wanted, request, 0, cx)))
}

/// The address in a struct.
fn address(bytes: &[u8], family: u32) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[..16]);
    if family == net::AF_INET {
        Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()
    } else {
        IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
    }
}

/// The sockets that are wanted.
struct Sockets {
    wanted: Wanted,
    place: Place,
    header: super::super::message::Header,
    asker: Asker,
}

impl Dump for Sockets {
    fn next(&mut self, cx: &Cx) -> Next {
        let Some(name) = self.wanted.listing.next(&mut self.place) else { return Next::End };
        let Some(details) = name.details(cx) else { return Next::Skipped };
        if !self.wanted.wants(&details) {
            return Next::Skipped;
        }
        let request = Request { header: self.header, body: &[], asker: self.asker };
        Next::Message(message(name, &details, &self.wanted, &request, NLM_F_MULTI, cx))
    }
}

impl Wanted {
    fn wants(&self, details: &Details) -> bool {
        let [local, remote] = self.ports;
        let is_any = |wanted: u16, port: u16| wanted == 0 || wanted == port;
        details.family == self.family
            && self.states & 1 << details.state != 0
            && is_any(local, details.local.port)
            && is_any(remote, details.remote.port)
            && self.filter.as_ref().is_none_or(|filter| filter.wants(details))
    }

    fn asks(&self, extension: u16) -> bool {
        self.extensions & 1 << (extension - 1) != 0
    }
}

/// The bytes of an end's address in a struct.
fn octets(ip: IpAddr, family: u32) -> [u8; 16] {
    let mut octets = [0; 16];
    match ip {
        IpAddr::V4(ip) if family == net::AF_INET => octets[..4].copy_from_slice(&ip.octets()),
        // No address is none of either family.
        IpAddr::V4(ip) if ip.is_unspecified() => {}
        IpAddr::V4(ip) => octets = ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => octets = ip.octets(),
    }
    octets
}

fn message(name: Name, details: &Details, wanted: &Wanted, request: &Request<'_>, flags: u16, cx: &Cx) -> Vec<u8> {
    let mut body = [0; MESSAGE_BYTES];
    let mut put = |at: usize, bytes: &[u8]| body[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[details.family as u8, details.state]);
    put(4, &details.local.port.to_be_bytes());
    put(6, &details.remote.port.to_be_bytes());
    put(8, &octets(details.local.ip, details.family));
    put(24, &octets(details.remote.ip, details.family));
    put(44, &details.cookie.to_le_bytes());
    if let Some(left) = details.left {
        // The timer of TIME_WAIT, and how many milliseconds it has.
        put(2, &[3]);
        put(52, &(left.div_ceil(1_000_000) as u32).to_le_bytes());
    }
    put(56, [details.queues[0], details.queues[1], details.user, details.inode as u32].as_bytes());
    let mut message = Message::new(request, BY_FAMILY, flags, &body);
    if details.left.is_some() {
        if wanted.is_administrator {
            message.add(MARK, &details.mark.to_le_bytes());
        }
        return message.finish();
    }
    message.add(SHUTDOWN, &[shutdown_bits(details.shutdown)]);
    if wanted.asks(TOS) {
        message.add(TOS, &[details.class_v4]);
    }
    if details.family == net::AF_INET6 {
        if wanted.asks(TCLASS) {
            message.add(TCLASS, &[details.class_v6]);
        }
        if matches!(details.state, CLOSE | LISTEN) {
            message.add(ONLY_V6, &[details.only_v6.into()]);
        }
    }
    if wanted.is_administrator {
        message.add(MARK, &details.mark.to_le_bytes());
    }
    let of_connection = details.state != LISTEN;
    let queues = if of_connection { details.queues } else { [0; 2] };
    if wanted.asks(MEMINFO) {
        message.add(MEMINFO, [queues[0], queues[1], 0, queues[1]].as_bytes());
    }
    if wanted.asks(SKMEMINFO) {
        message.add(SKMEMINFO, memory(queues, details.buffers, details.drops).as_bytes());
    }
    if wanted.protocol == IPPROTO_RAW {
        message.add(PROTOCOL, &[details.local.port as u8]);
    }
    if wanted.asks(INFO)
        && let Some(info) = name.info(cx)
    {
        message.add(INFO, &info);
    }
    if wanted.asks(CONGESTION) && !details.congestion_control.is_empty() {
        message.add(CONGESTION, &[details.congestion_control, &[0]].concat());
    }
    message.finish()
}

//! What is asked of NETLINK_ROUTE, and the answers: there is the loopback device, and nothing can be changed.

use alloc::vec::Vec;

use linux_raw_sys::net::{AF_INET, AF_INET6, AF_UNSPEC};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::Errno;
use crate::net::devices;

/// `struct nlmsghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    len: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
}

const HEADER_BYTES: usize = size_of::<Header>();

const NLM_F_REQUEST: u16 = 1;
const NLM_F_MULTI: u16 = 2;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
/// Of each object there are four kinds of messages: new, delete, get, set.
const GET: u16 = 2;
const FIRST_KIND: u16 = RTM_NEWLINK;
const LAST_KIND: u16 = 123;

/// The attributes of a device, of an address, of a route.
const IFLA_ADDRESS: u16 = 1;
const IFLA_BROADCAST: u16 = 2;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_QDISC: u16 = 6;
const IFLA_TXQLEN: u16 = 13;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKMODE: u16 = 17;
const IFLA_GROUP: u16 = 27;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_LABEL: u16 = 3;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RTA_TABLE: u16 = 15;

const IFA_F_PERMANENT: u32 = 0x80;
const SCOPE_HOST: u8 = 254;
/// IFF_LOWER_UP, beside what is told by ioctl(2).
const LOWER_UP: u32 = 0x10000;
const FOR_EVER: u32 = u32::MAX;

/// A message in the making.
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// An answer to a request, of a kind, with these bytes first.
    fn new(request: &Header, port: u32, kind: u16, flags: u16, body: &[u8]) -> Self {
        let header = Header { len: 0, kind, flags, sequence: request.sequence, port };
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(body);
        Message { bytes }
    }

    /// Adds an attribute.
    fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.bytes.extend_from_slice(&(4 + value.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let len = (self.bytes.len() as u32).to_le_bytes();
        self.bytes[..4].copy_from_slice(&len);
        self.bytes
    }
}

fn link(request: &Header, port: u32, flags: u16) -> Vec<u8> {
    let mut body = [0_u8; 16];
    body[2..4].copy_from_slice(&devices::HARDWARE.to_le_bytes());
    body[4..8].copy_from_slice(&devices::INDEX.to_le_bytes());
    body[8..12].copy_from_slice(&(u32::from(devices::FLAGS) | LOWER_UP).to_le_bytes());
    Message::new(request, port, RTM_NEWLINK, flags, &body)
        .with(IFLA_IFNAME, &[devices::NAME, &[0]].concat())
        .with(IFLA_TXQLEN, &1000_u32.to_le_bytes())
        .with(IFLA_OPERSTATE, &[0])
        .with(IFLA_LINKMODE, &[0])
        .with(IFLA_MTU, &devices::MTU.to_le_bytes())
        .with(IFLA_GROUP, &[0; 4])
        .with(IFLA_QDISC, b"noqueue\0")
        .with(IFLA_ADDRESS, &[0; 6])
        .with(IFLA_BROADCAST, &[0; 6])
        .finish()
}

/// The loopback address of a family, with the length of its network.
fn loopback(family: u32) -> (Vec<u8>, u8) {
    if family == AF_INET {
        (alloc::vec![127, 0, 0, 1], 8)
    } else {
        let mut ip = alloc::vec![0; 16];
        ip[15] = 1;
        (ip, 128)
    }
}

fn address(family: u32, request: &Header, port: u32) -> Vec<u8> {
    let (ip, prefix) = loopback(family);
    let mut body = [family as u8, prefix, IFA_F_PERMANENT as u8, SCOPE_HOST, 0, 0, 0, 0];
    body[4..8].copy_from_slice(&devices::INDEX.to_le_bytes());
    let mut message = Message::new(request, port, RTM_NEWADDR, NLM_F_MULTI, &body).with(IFA_ADDRESS, &ip);
    if family == AF_INET {
        message = message.with(IFA_LOCAL, &ip).with(IFA_LABEL, &[devices::NAME, &[0]].concat());
    }
    let times = [FOR_EVER, FOR_EVER, 0, 0];
    message.with(IFA_FLAGS, &IFA_F_PERMANENT.to_le_bytes()).with(IFA_CACHEINFO, times.as_bytes()).finish()
}

/// The routes to this machine's own addresses.
fn routes(family: u32, request: &Header, port: u32) -> Vec<Vec<u8>> {
    const TABLE_LOCAL: u8 = 255;
    const BY_KERNEL: u8 = 2;
    const LOCAL: u8 = 2;
    let (ip, prefix) = loopback(family);
    let mut targets = Vec::from([(ip.clone(), prefix)]);
    if family == AF_INET {
        targets[0] = (alloc::vec![127, 0, 0, 0], prefix);
        targets.push((ip.clone(), 32));
    }
    let scope = if family == AF_INET { SCOPE_HOST } else { 0 };
    let route = |(target, prefix): &(Vec<u8>, u8)| {
        let body = [family as u8, *prefix, 0, 0, TABLE_LOCAL, BY_KERNEL, scope, LOCAL, 0, 0, 0, 0];
        let message = Message::new(request, port, RTM_NEWROUTE, NLM_F_MULTI, &body)
            .with(RTA_TABLE, &u32::from(TABLE_LOCAL).to_le_bytes())
            .with(RTA_DST, target);
        let message = if family == AF_INET { message.with(RTA_PREFSRC, &ip) } else { message };
        message.with(RTA_OIF, &devices::INDEX.to_le_bytes()).finish()
    };
    targets.iter().map(route).collect()
}

fn error(request: &Header, port: u32, error: Option<Errno>) -> Vec<u8> {
    let number = error.map_or(0, |error| -i32::from(error.number()));
    let body = [&number.to_le_bytes()[..], request.as_bytes()].concat();
    Message::new(request, port, NLMSG_ERROR, 0, &body).finish()
}

/// Whether a request for one device is for the loopback device.
fn names_loopback(body: &[u8]) -> bool {
    let index = body.get(4..8).map(|index| i32::from_le_bytes([index[0], index[1], index[2], index[3]]));
    if let Some(index) = index.filter(|&index| index != 0) {
        return index == devices::INDEX;
    }
    let mut rest = body.get(16..).unwrap_or_default();
    while let Some(head) = rest.first_chunk::<4>() {
        let (len, kind) = (u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]]));
        let value = rest.get(4..len.into()).unwrap_or_default();
        if kind == IFLA_IFNAME {
            return value.strip_suffix(&[0]).unwrap_or(value) == devices::NAME;
        }
        rest = rest.get(usize::from(len.max(4)).next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

/// The answers to the requests in a message, each as it is received. `port` is the asker's.
pub fn answers(message: &[u8], port: u32) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    let mut rest = message;
    while let Ok((request, _)) = Header::read_from_prefix(rest) {
        let len = request.len as usize;
        if len < HEADER_BYTES || len > rest.len() {
            break;
        }
        answer(&request, &rest[HEADER_BYTES..len], port, &mut answers);
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    answers
}

fn answer(request: &Header, body: &[u8], port: u32, answers: &mut Vec<Vec<u8>>) {
    if request.flags & NLM_F_REQUEST == 0 || request.kind < FIRST_KIND {
        if request.flags & NLM_F_ACK != 0 && request.kind != NLMSG_NOOP {
            answers.push(error(request, port, None));
        }
        return;
    }
    if request.kind > LAST_KIND {
        return answers.push(error(request, port, Some(Errno::EOPNOTSUPP)));
    }
    if request.kind == RTM_NEWLINK && names_loopback(body) && body.get(8).is_some_and(|flags| flags & 1 != 0) {
        // It is up, as it is to be.
        return answers.push(error(request, port, None));
    }
    if request.kind % 4 != GET {
        return answers.push(error(request, port, Some(Errno::EOPNOTSUPP)));
    }
    if request.flags & NLM_F_DUMP != NLM_F_DUMP {
        let is_known = request.kind == RTM_GETLINK && names_loopback(body);
        let refused = if request.kind == RTM_GETLINK { Errno::ENODEV } else { Errno::EOPNOTSUPP };
        answers.push(if is_known { link(request, port, 0) } else { error(request, port, Some(refused)) });
        return;
    }
    let family = body.first().map_or(AF_UNSPEC, |family| u32::from(*family));
    let families = [AF_INET, AF_INET6].into_iter().filter(|&one| family == AF_UNSPEC || family == one);
    let parts: Vec<Vec<u8>> = match request.kind {
        RTM_GETLINK => Vec::from([link(request, port, NLM_F_MULTI)]),
        RTM_GETADDR => families.map(|family| address(family, request, port)).collect(),
        RTM_GETROUTE => families.flat_map(|family| routes(family, request, port)).collect(),
        _ => Vec::new(),
    };
    let done = Message::new(request, port, NLMSG_DONE, NLM_F_MULTI, &[0; 4]).finish();
    if !parts.is_empty() {
        answers.push(parts.concat());
    }
    answers.push(done);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let header = Header { len: (HEADER_BYTES + body.len()) as u32, kind, flags, sequence: 7, port: 0 };
        [header.as_bytes(), body].concat()
    }

    #[test]
    fn a_dump_ends_with_done() {
        let answers = answers(&request(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, &[AF_UNSPEC as u8; 8]), 9);
        assert_eq!(answers.len(), 2);
        let done = Header::read_from_prefix(&answers[1]).unwrap().0;
        assert_eq!((done.kind, done.sequence, done.port, done.len), (NLMSG_DONE, 7, 9, 20));
        let first = Header::read_from_prefix(&answers[0]).unwrap().0;
        assert!((first.len as usize) < answers[0].len(), "two addresses in one");
    }

    #[test]
    fn one_device_is_found_by_its_name() {
        let mut body = alloc::vec![0; 16];
        body.extend_from_slice(&[7, 0, 3, 0, b'l', b'o', 0, 0]);
        assert!(names_loopback(&body));
        body[20] = b'x';
        assert!(!names_loopback(&body));
    }

    #[test]
    fn what_is_cut_short_is_not_answered() {
        let whole = request(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, &[0; 16]);
        assert!(answers(&whole[..20], 1).is_empty() && answers(&[], 1).is_empty());
    }
}

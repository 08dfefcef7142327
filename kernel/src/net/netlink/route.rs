//! What is asked of NETLINK_ROUTE, and the answers: nothing can be changed.

use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;

use linux_raw_sys::net::{AF_INET, AF_INET6, AF_UNSPEC};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::Errno;
use crate::net::devices::{self, Device};
use crate::net::interface;

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
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_TABLE: u16 = 15;

const IFA_F_PERMANENT: u32 = 0x80;
const SCOPE_HOST: u8 = 254;
const SCOPE_LINK: u8 = 253;
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

fn link(device: &Device, request: &Header, port: u32, flags: u16) -> Vec<u8> {
    /// IF_OPER_UNKNOWN and IF_OPER_UP.
    const STATES: [u8; 2] = [0, 6];
    let mut body = [0_u8; 16];
    body[2..4].copy_from_slice(&device.hardware.to_le_bytes());
    body[4..8].copy_from_slice(&device.index.to_le_bytes());
    body[8..12].copy_from_slice(&(u32::from(device.flags) | LOWER_UP).to_le_bytes());
    let is_loopback = device.is_loopback();
    let (queue, broadcast) = if is_loopback { (&b"noqueue\0"[..], [0; 6]) } else { (&b"fq_codel\0"[..], [0xff; 6]) };
    Message::new(request, port, RTM_NEWLINK, flags, &body)
        .with(IFLA_IFNAME, &[device.name.as_bytes(), &[0]].concat())
        .with(IFLA_TXQLEN, &devices::QUEUE_LENGTH.to_le_bytes())
        .with(IFLA_OPERSTATE, &[STATES[usize::from(!is_loopback)]])
        .with(IFLA_LINKMODE, &[0])
        .with(IFLA_MTU, &device.mtu.to_le_bytes())
        .with(IFLA_GROUP, &[0; 4])
        .with(IFLA_QDISC, queue)
        .with(IFLA_ADDRESS, &device.address)
        .with(IFLA_BROADCAST, &broadcast)
        .finish()
}

/// The family of an address, and its bytes.
fn bytes_of(ip: IpAddr) -> (u32, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AF_INET6, ip.octets().to_vec()),
    }
}

/// How far an address of a device reaches.
fn scope(ip: IpAddr) -> u8 {
    match ip {
        ip if ip.is_loopback() => SCOPE_HOST,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => SCOPE_LINK,
        _ => 0,
    }
}

/// The addresses of a device that are of a family.
fn addresses(device: &Device, family: u32, request: &Header, port: u32) -> Vec<Vec<u8>> {
    let address = |prefix: &tcpip::ip::Prefix| {
        let (of, ip) = bytes_of(prefix.address());
        let mut body = [of as u8, prefix.len_bits(), IFA_F_PERMANENT as u8, scope(prefix.address()), 0, 0, 0, 0];
        body[4..8].copy_from_slice(&device.index.to_le_bytes());
        let mut message = Message::new(request, port, RTM_NEWADDR, NLM_F_MULTI, &body).with(IFA_ADDRESS, &ip);
        if of == AF_INET {
            message = message.with(IFA_LOCAL, &ip).with(IFA_LABEL, &[device.name.as_bytes(), &[0]].concat());
        }
        let times = [FOR_EVER, FOR_EVER, 0, 0];
        message.with(IFA_FLAGS, &IFA_F_PERMANENT.to_le_bytes()).with(IFA_CACHEINFO, times.as_bytes()).finish()
    };
    device.addresses.iter().filter(|prefix| bytes_of(prefix.address()).0 == family).map(address).collect()
}

/// A route.
struct Way {
    target: Option<(Vec<u8>, u8)>,
    table: u8,
    scope: u8,
    kind: u8,
    gateway: Option<Vec<u8>>,
    source: Option<Vec<u8>>,
    device: i32,
}

const TABLE_MAIN: u8 = 254;
const TABLE_LOCAL: u8 = 255;
/// RTPROT_KERNEL; RTN_UNICAST and RTN_LOCAL.
const BY_KERNEL: u8 = 2;
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;

impl Way {
    fn message(&self, family: u32, request: &Header, port: u32) -> Vec<u8> {
        let len = self.target.as_ref().map_or(0, |(_, len)| *len);
        let body = [family as u8, len, 0, 0, self.table, BY_KERNEL, self.scope, self.kind, 0, 0, 0, 0];
        let mut message = Message::new(request, port, RTM_NEWROUTE, NLM_F_MULTI, &body)
            .with(RTA_TABLE, &u32::from(self.table).to_le_bytes());
        if let Some((target, _)) = &self.target {
            message = message.with(RTA_DST, target);
        }
        if let Some(source) = &self.source {
            message = message.with(RTA_PREFSRC, source);
        }
        if let Some(gateway) = &self.gateway {
            message = message.with(RTA_GATEWAY, gateway);
        }
        message.with(RTA_OIF, &self.device.to_le_bytes()).finish()
    }
}

/// The routes of a family: those over routers, those to neighbours, and those to this machine's own addresses.
fn routes(family: u32, request: &Header, port: u32, cx: &Cx) -> Vec<Vec<u8>> {
    let mut ways = Vec::new();
    for route in interface::routes(cx) {
        let (of, target) = bytes_of(route.prefix.address());
        if of == family {
            ways.push(Way {
                target: (route.prefix.len_bits() > 0).then(|| (target, route.prefix.len_bits())),
                table: TABLE_MAIN,
                scope: 0,
                kind: UNICAST,
                gateway: route.gateway.map(|gateway| bytes_of(gateway).1),
                source: None,
                device: route.interface as i32,
            });
        }
    }
    for device in devices::all(cx) {
        for prefix in &device.addresses {
            let (of, own) = bytes_of(prefix.address());
            if of != family {
                continue;
            }
            let network = match prefix.address() {
                IpAddr::V4(ip) => (u32::from(ip) & u32::from(devices::mask(prefix.len_bits()))).to_be_bytes().to_vec(),
                IpAddr::V6(ip) => {
                    let bits = u128::MAX.checked_shl(128 - u32::from(prefix.len_bits())).unwrap_or(0);
                    (u128::from(ip) & bits).to_be_bytes().to_vec()
                }
            };
            let is_loopback = device.is_loopback();
            let source = (family == AF_INET).then(|| own.clone());
            let (table, kind) = if is_loopback { (TABLE_LOCAL, LOCAL) } else { (TABLE_MAIN, UNICAST) };
            let scope = match (family == AF_INET, is_loopback) {
                (true, true) => SCOPE_HOST,
                (true, false) => SCOPE_LINK,
                (false, _) => 0,
            };
            let target = Some((network, prefix.len_bits()));
            let (gateway, index) = (None, device.index);
            ways.push(Way { target, table, scope, kind, gateway, source: source.clone(), device: index });
            let is_single = family == AF_INET6 && is_loopback;
            if !is_single {
                let scope = if family == AF_INET { SCOPE_HOST } else { 0 };
                let target = Some((own.clone(), own.len() as u8 * 8));
                let (table, kind, gateway) = (TABLE_LOCAL, LOCAL, None);
                ways.push(Way { target, table, scope, kind, gateway, source, device: index });
            }
        }
    }
    ways.iter().map(|way| way.message(family, request, port)).collect()
}

fn error(request: &Header, port: u32, error: Option<Errno>) -> Vec<u8> {
    let number = error.map_or(0, |error| -i32::from(error.number()));
    let body = [&number.to_le_bytes()[..], request.as_bytes()].concat();
    Message::new(request, port, NLMSG_ERROR, 0, &body).finish()
}

/// Which of the devices a request for one is for.
fn named<'a>(devices: &'a [Device], body: &[u8]) -> Option<&'a Device> {
    let index = body.get(4..8).map(|index| i32::from_le_bytes([index[0], index[1], index[2], index[3]]));
    if let Some(index) = index.filter(|&index| index != 0) {
        return devices.iter().find(|device| device.index == index);
    }
    let mut rest = body.get(16..).unwrap_or_default();
    while let Some(head) = rest.first_chunk::<4>() {
        let (len, kind) = (u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]]));
        let value = rest.get(4..len.into()).unwrap_or_default();
        if kind == IFLA_IFNAME {
            let name = value.strip_suffix(&[0]).unwrap_or(value);
            return devices.iter().find(|device| device.name.as_bytes() == name);
        }
        rest = rest.get(usize::from(len.max(4)).next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

/// The answers to the requests in a message, each as it is received. `port` is the asker's.
pub fn answers(message: &[u8], port: u32, cx: &Cx) -> Vec<Vec<u8>> {
    let devices = devices::all(cx);
    let mut answers = Vec::new();
    let mut rest = message;
    while let Ok((request, _)) = Header::read_from_prefix(rest) {
        let len = request.len as usize;
        if len < HEADER_BYTES || len > rest.len() {
            break;
        }
        answer(&request, &rest[HEADER_BYTES..len], port, &devices, &mut answers, cx);
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    answers
}

fn answer(request: &Header, body: &[u8], port: u32, devices: &[Device], answers: &mut Vec<Vec<u8>>, cx: &Cx) {
    let named = named(devices, body);
    if request.flags & NLM_F_REQUEST == 0 || request.kind < FIRST_KIND {
        if request.flags & NLM_F_ACK != 0 && request.kind != NLMSG_NOOP {
            answers.push(error(request, port, None));
        }
        return;
    }
    if request.kind > LAST_KIND {
        return answers.push(error(request, port, Some(Errno::EOPNOTSUPP)));
    }
    if request.kind == RTM_NEWLINK && named.is_some() && body.get(8).is_some_and(|flags| flags & 1 != 0) {
        // It is up, as it is to be.
        return answers.push(error(request, port, None));
    }
    if request.kind % 4 != GET {
        return answers.push(error(request, port, Some(Errno::EOPNOTSUPP)));
    }
    if request.flags & NLM_F_DUMP != NLM_F_DUMP {
        let refused = if request.kind == RTM_GETLINK { Errno::ENODEV } else { Errno::EOPNOTSUPP };
        answers.push(match named.filter(|_| request.kind == RTM_GETLINK) {
            Some(device) => link(device, request, port, 0),
            None => error(request, port, Some(refused)),
        });
        return;
    }
    let family = body.first().map_or(AF_UNSPEC, |family| u32::from(*family));
    let families = [AF_INET, AF_INET6].into_iter().filter(|&one| family == AF_UNSPEC || family == one);
    let parts: Vec<Vec<u8>> = match request.kind {
        RTM_GETLINK => devices.iter().map(|device| link(device, request, port, NLM_F_MULTI)).collect(),
        RTM_GETADDR => {
            let of_family = |family| devices.iter().flat_map(move |device| addresses(device, family, request, port));
            families.flat_map(of_family).collect()
        }
        RTM_GETROUTE => families.flat_map(|family| routes(family, request, port, cx)).collect(),
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
        let request = request(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, &[AF_UNSPEC as u8; 8]);
        let answers = frame::with_context(|cx| answers(&request, 9, cx));
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
        let devices = frame::with_context(|cx| devices::all(cx));
        assert_eq!(named(&devices, &body).map(|device| device.index), Some(1));
        body[20] = b'x';
        assert!(named(&devices, &body).is_none());
    }

    #[test]
    fn what_is_cut_short_is_not_answered() {
        let whole = request(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, &[0; 16]);
        frame::with_context(|cx| {
            assert!(answers(&whole[..20], 1, cx).is_empty() && answers(&[], 1, cx).is_empty());
        });
    }
}

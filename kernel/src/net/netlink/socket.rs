//! [`NetlinkSocket`], and [`Netlink`], the family.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::net;
use refs::{StrongRc, TempRc, Waker};
use zerocopy::IntoBytes;

use super::dump::Dumping;
use super::endpoint::{self, Asking, Endpoint};
use super::message::{self, Asker, FIRST_KIND, NLM_F_ACK, NLM_F_REQUEST, Refusal, Request};
use super::{Answer, PROTOCOLS};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd, OpenFile, VfsCaller};
use crate::net::devices;
use crate::net::{
    AtFault, Control, Credentials, Family, Received, Receiving, Sending, Shutdown, Sink, Socket, Source, Timeouts,
    Type, read_into,
};
use crate::reclaim::Held;
use crate::step::{Interruption, Step, Stop, TimeSlice};
use crate::time::clock::TimeVal;
use crate::user_memory::{Argument, In, UserMemory, UserSlice};

/// AF_NETLINK.
pub struct Netlink;

const AF_NETLINK: u32 = 16;
const SOL_NETLINK: u32 = 270;
/// The size of `struct sockaddr_nl`.
const ADDRESS_BYTES: usize = 12;
/// The longest bytes of requests, and the most requests in them.
const MOST_BYTES: usize = 32_768;
const MOST_REQUESTS: usize = 256;

const NETLINK_ADD_MEMBERSHIP: u32 = 1;
const NETLINK_DROP_MEMBERSHIP: u32 = 2;
const NETLINK_PKTINFO: u32 = 3;
const NETLINK_BROADCAST_ERROR: u32 = 4;
const NETLINK_NO_ENOBUFS: u32 = 5;
const NETLINK_LISTEN_ALL_NSID: u32 = 8;
const NETLINK_LIST_MEMBERSHIPS: u32 = 9;
const NETLINK_CAP_ACK: u32 = 10;
const NETLINK_EXT_ACK: u32 = 11;
const NETLINK_GET_STRICT_CHK: u32 = 12;

/// An open socket: it owns its endpoint.
pub struct NetlinkSocket {
    endpoint: StrongRc<Endpoint>,
    timeouts: Timeouts,
}

impl Family for Netlink {
    fn number(&self) -> u32 {
        AF_NETLINK
    }

    fn create(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>> {
        if !matches!(kind, Type::Raw | Type::Datagram) {
            return Err(Errno::ESOCKTNOSUPPORT);
        }
        let protocol = PROTOCOLS.iter().copied().find(|one| one.number() == protocol).ok_or(Errno::EPROTONOSUPPORT)?;
        let is_administrator = me.credentials(cx)?.lock(cx).has(Capability::NetAdmin);
        let endpoint = Endpoint::new(protocol, kind, is_administrator, &me.payer(cx)?);
        Ok(Box::new(NetlinkSocket { endpoint, timeouts: Timeouts::default() }))
    }

    fn pair(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<[Box<dyn File>; 2]> {
        drop(self.create(kind, protocol, me, cx)?);
        Err(Errno::EOPNOTSUPP)
    }

    fn socket_of<'a>(&self, open: &'a OpenFile) -> Option<&'a dyn Socket> {
        open.kind::<NetlinkSocket>().map(|socket| socket as &dyn Socket)
    }
}

/// Which port and which groups an address means.
fn decode(bytes: &[u8]) -> Result<(u32, u32)> {
    let address = bytes.first_chunk::<ADDRESS_BYTES>().ok_or(Errno::EINVAL)?;
    let word = |at: usize| u32::from_le_bytes([address[at], address[at + 1], address[at + 2], address[at + 3]]);
    if word(0) & 0xffff != AF_NETLINK {
        return Err(Errno::EINVAL);
    }
    Ok((word(4), word(8)))
}

fn encode(port: u32, groups: u32) -> Vec<u8> {
    [AF_NETLINK, port, groups].as_bytes().to_vec()
}

/// The bit of a group.
fn bit(group: u32) -> u64 {
    group.checked_sub(1).and_then(|shift| 1_u64.checked_shl(shift)).unwrap_or(0)
}

/// The bits of the first groups.
fn all_groups(count: u32) -> u64 {
    1_u64.checked_shl(count).unwrap_or(0).wrapping_sub(1)
}

/// Whether an open file is a netlink socket.
pub fn is_one(open: &OpenFile) -> bool {
    open.kind::<NetlinkSocket>().is_some()
}

/// Gives bytes of the kernel's to what is a netlink socket; where it finds no room it is told so.
pub fn deliver(open: &OpenFile, bytes: Vec<u8>, cx: &Cx) {
    if let Some(socket) = open.kind::<NetlinkSocket>() {
        socket.endpoint(cx).answer(bytes, cx);
    }
}

impl NetlinkSocket {
    fn endpoint<'cx>(&'cx self, cx: &'cx Cx) -> TempRc<'cx, Endpoint> {
        self.endpoint.get(cx)
    }

    /// Does what is asked; where that takes long, others have their turn in between.
    fn ask(&self, from: &mut dyn Source, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let endpoint = self.endpoint(cx);
        let port = endpoint.port(me.pid(cx)?, cx)?;
        let is_administrator = endpoint.is_administrators && me.credentials(cx)?.lock(cx).has(Capability::NetAdmin);
        let asker = Asker { port, is_strict: endpoint.is_on(endpoint::STRICT), is_administrator };
        let mut asking = match endpoint.take_asking(cx) {
            Some(asking) => asking,
            None => self.begin_asking(from, asker, cx)?,
        };
        let (mut done, mut is_cut) = (asking.done, false);
        let mut time_slice = TimeSlice::default();
        for request in message::requests(&asking.bytes, asker).skip(done) {
            if time_slice.is_over() {
                is_cut = true;
                break;
            }
            crate::memory::admit()?;
            done += 1;
            let outcome = self.do_one(&request, cx);
            let is_asked = request.header.flags & NLM_F_ACK != 0;
            match outcome {
                Ok(Told::Enough) => {}
                Ok(Told::Nothing) if !is_asked => {}
                Ok(Told::Nothing) => endpoint.answer(message::outcome(&request, Ok(()), endpoint.manner()), cx),
                Err(refusal) => endpoint.answer(message::outcome(&request, Err(refusal), endpoint.manner()), cx),
            }
        }
        if is_cut {
            asking.done = done;
            endpoint.keep_asking(asking, cx);
            return Err(Stop::Pause(Interruption::Never));
        }
        Ok(asking.bytes.len())
    }

    /// Takes the requests over.
    fn begin_asking(&self, from: &mut dyn Source, asker: Asker, cx: &Cx) -> Step<Asking> {
        let len = from.remaining();
        if len > MOST_BYTES {
            return Err(Errno::EMSGSIZE.into());
        }
        crate::memory::admit()?;
        let mut bytes = from.take(len)?;
        while bytes.len() < len {
            // It goes whole or not at all: this says which page is missing.
            bytes.extend_from_slice(&from.take(len - bytes.len())?);
        }
        if message::requests(&bytes, asker).nth(MOST_REQUESTS).is_some() {
            return Err(Errno::ENOBUFS.into());
        }
        Ok(Asking { by: tasks::current(cx), bytes, done: 0 })
    }

    fn do_one(&self, request: &Request<'_>, cx: &Cx) -> core::result::Result<Told, Refusal> {
        if request.header.flags & NLM_F_REQUEST == 0 || request.header.kind < FIRST_KIND {
            return Ok(Told::Nothing);
        }
        let endpoint = self.endpoint(cx);
        match endpoint.protocol.handle(request, cx)? {
            Answer::Done => Ok(Told::Nothing),
            Answer::Message(message) => {
                endpoint.answer(message, cx);
                Ok(Told::Nothing)
            }
            Answer::Dump(dump) => {
                endpoint.begin(Dumping::new(request, dump), cx)?;
                Ok(Told::Enough)
            }
        }
    }

    fn receive(&self, sink: &mut Sink<'_>, receiving: &Receiving, waker: Option<Waker>, cx: &Cx) -> Step<Received> {
        let endpoint = self.endpoint(cx);
        let message = endpoint.receive(sink, receiving, waker, cx)?;
        let mut control = Vec::new();
        if endpoint.is_on(endpoint::PACKET_INFO) {
            let data = message.group.to_le_bytes().to_vec();
            control.push(Control { level: SOL_NETLINK, kind: NETLINK_PKTINFO, data });
        }
        let credentials = endpoint.is_on(endpoint::CREDENTIALS).then(Credentials::default);
        let from = encode(0, bit(message.group) as u32);
        Ok(Received { copied: message.copied, len: message.len, from, control, credentials, ..Received::default() })
    }

    fn change_option(&self, level: u32, name: u32, value: u32, cx: &Cx) -> Result<()> {
        let endpoint = self.endpoint(cx);
        let option = match (level, name) {
            (SOL_NETLINK, NETLINK_ADD_MEMBERSHIP | NETLINK_DROP_MEMBERSHIP) => {
                if value == 0 || value > endpoint.protocol.groups() {
                    return Err(Errno::EINVAL);
                }
                let groups = if name == NETLINK_ADD_MEMBERSHIP { bit(value) } else { 0 };
                return endpoint.listen_to(groups, bit(value), cx);
            }
            (SOL_NETLINK, NETLINK_PKTINFO) => endpoint::PACKET_INFO,
            (SOL_NETLINK, NETLINK_NO_ENOBUFS) => endpoint::NO_ENOBUFS,
            (SOL_NETLINK, NETLINK_CAP_ACK) => endpoint::CAP_ACK,
            (SOL_NETLINK, NETLINK_EXT_ACK) => endpoint::EXT_ACK,
            (SOL_NETLINK, NETLINK_GET_STRICT_CHK) => endpoint::STRICT,
            // Nobody sends to others, and there is one network.
            (SOL_NETLINK, NETLINK_BROADCAST_ERROR | NETLINK_LISTEN_ALL_NSID) => return Ok(()),
            (SOL_NETLINK, _) => return Err(Errno::ENOPROTOOPT),
            (net::SOL_SOCKET, net::SO_PASSCRED) => endpoint::CREDENTIALS,
            (net::SOL_SOCKET, net::SO_RCVBUF | net::SO_RCVBUFFORCE) => {
                let bytes = value.min(endpoint::DEFAULT_BUFFER).saturating_mul(2).max(2304);
                endpoint.buffer.store(bytes, Ordering::Relaxed);
                return Ok(());
            }
            // What else programs set changes nothing that they see.
            (net::SOL_SOCKET, net::SO_SNDBUF | net::SO_SNDBUFFORCE | net::SO_PRIORITY | net::SO_REUSEADDR) => {
                return Ok(());
            }
            _ => return Err(Errno::ENOPROTOOPT),
        };
        if value != 0 {
            endpoint.options.fetch_or(option, Ordering::Relaxed);
        } else {
            endpoint.options.fetch_and(!option, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// What the asker was told of a request.
enum Told {
    /// All that there is to tell.
    Enough,
    /// That it was done is told if that is asked.
    Nothing,
}

impl Socket for NetlinkSocket {
    fn bind(&self, address: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let (port, groups) = decode(address)?;
        let endpoint = self.endpoint(cx);
        match port {
            0 => _ = endpoint.port(me.pid(cx)?, cx)?,
            port => endpoint.take_port(port, cx)?,
        }
        let mask = all_groups(endpoint.protocol.groups().min(32));
        Ok(endpoint.listen_to(u64::from(groups) & mask, u64::from(u32::MAX), cx)?)
    }

    fn listen(&self, _backlog: usize, _me: &dyn VfsCaller, _cx: &Cx) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn connect(&self, address: &[u8], _waker: Option<Waker>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        decode(address)?;
        self.endpoint(cx).port(me.pid(cx)?, cx)?;
        Ok(())
    }

    fn accept(&self, _waker: Option<Waker>, _tell: &mut dyn FnMut(&[u8]) -> Step<()>, _cx: &Cx) -> Step<Box<dyn File>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn note_inode(&self, number: u64) {
        self.endpoint.with(|endpoint| endpoint.note_inode(number));
    }

    fn address(&self, cx: &Cx) -> Vec<u8> {
        let told = self.endpoint(cx).told(cx);
        encode(told.port, told.groups as u32)
    }

    fn peer_address(&self, _cx: &Cx) -> Result<Vec<u8>> {
        Ok(encode(0, 0))
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
        if sending.flags & net::MSG_OOB != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        match to.map(decode).transpose()? {
            Some((port, groups)) if port != 0 || groups != 0 => {
                let may = me.credentials(cx)?.lock(cx).has(Capability::NetAdmin);
                // Only the kernel is there.
                Err(if may { Errno::ECONNREFUSED } else { Errno::EPERM }.into())
            }
            _ => self.ask(from, me, cx),
        }
    }

    fn receive(
        &self,
        sink: &mut Sink<'_>,
        _at_fault: AtFault,
        receiving: &Receiving,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received> {
        NetlinkSocket::receive(self, sink, receiving, waker, cx)
    }

    fn wanted(&self, _receiving: &Receiving, _cx: &Cx) -> usize {
        0
    }

    fn shut_down(&self, _what: Shutdown, _cx: &Cx) -> Step<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn set_option(
        &self,
        level: u32,
        name: u32,
        value: UserSlice<u8, In>,
        memory: &UserMemory<'_>,
        cx: &Cx,
    ) -> Step<()> {
        let mut bytes = [0; 4];
        if value.len() < bytes.len() {
            return Err(Errno::EINVAL.into());
        }
        memory.read_into(value, &mut bytes)?;
        if level == net::SOL_SOCKET
            && let Some(timeout) = self.timeouts.of(name)
        {
            let mut time = TimeVal::default();
            if value.len() < size_of_val(&time) {
                return Err(Errno::EINVAL.into());
            }
            memory.read_into(value, time.as_mut_bytes())?;
            return Ok(timeout.set(time)?);
        }
        Ok(self.change_option(level, name, u32::from_le_bytes(bytes), cx)?)
    }

    fn option(&self, level: u32, name: u32, cx: &Cx) -> Result<Vec<u8>> {
        if level == net::SOL_SOCKET
            && let Some(timeout) = self.timeouts.of(name)
        {
            return Ok(timeout.get().as_bytes().to_vec());
        }
        let endpoint = self.endpoint(cx);
        let flag = |option| u32::from(endpoint.is_on(option));
        let value = match (level, name) {
            (net::SOL_SOCKET, net::SO_TYPE) if endpoint.kind == Type::Raw => net::SOCK_RAW,
            (net::SOL_SOCKET, net::SO_TYPE) => net::SOCK_DGRAM,
            (net::SOL_SOCKET, net::SO_DOMAIN) => AF_NETLINK,
            (net::SOL_SOCKET, net::SO_PROTOCOL) => endpoint.protocol.number(),
            (net::SOL_SOCKET, net::SO_ACCEPTCONN) => 0,
            (net::SOL_SOCKET, net::SO_ERROR) => endpoint.take_error(cx).map_or(0, |error| error.number().into()),
            (net::SOL_SOCKET, net::SO_SNDBUF) => endpoint::DEFAULT_BUFFER,
            (net::SOL_SOCKET, net::SO_RCVBUF) => endpoint.buffer.load(Ordering::Relaxed),
            (net::SOL_SOCKET, net::SO_PASSCRED) => flag(endpoint::CREDENTIALS),
            (net::SOL_SOCKET, net::SO_COOKIE) => return Ok(endpoint.cookie.get().to_le_bytes().to_vec()),
            (SOL_NETLINK, NETLINK_PKTINFO) => flag(endpoint::PACKET_INFO),
            (SOL_NETLINK, NETLINK_NO_ENOBUFS) => flag(endpoint::NO_ENOBUFS),
            (SOL_NETLINK, NETLINK_CAP_ACK) => flag(endpoint::CAP_ACK),
            (SOL_NETLINK, NETLINK_EXT_ACK) => flag(endpoint::EXT_ACK),
            (SOL_NETLINK, NETLINK_GET_STRICT_CHK) => flag(endpoint::STRICT),
            (SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS) => {
                let words = endpoint.protocol.groups().div_ceil(32).max(1) as usize;
                return Ok(endpoint.told(cx).groups.to_le_bytes()[..4 * words.min(2)].to_vec());
            }
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(value.to_le_bytes().to_vec())
    }
}

impl File for NetlinkSocket {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Socket
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        1024 + self.endpoint(cx).told(cx).used
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        self.endpoint(cx).close(cx);
        false
    }

    fn time_limit(&self, interest: Events) -> Option<u64> {
        self.timeouts.limit(interest)
    }

    fn keeps_messages(&self, _cx: &Cx) -> bool {
        true
    }

    fn signals_broken_pipe(&self, _cx: &Cx) -> bool {
        false
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let receiving = Receiving { flags: 0, room: to.remaining() };
        read_into(to, me, cx, |sink, _| NetlinkSocket::receive(self, sink, &receiving, None, cx))
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.ask(from, me, cx)
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        devices::ioctl(request, argument, me, cx)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.endpoint(cx).poll(waker, cx) & (interest | Events::ERROR)
    }
}

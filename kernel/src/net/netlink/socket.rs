//! [`NetlinkSocket`], and [`Netlink`], the family.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::net;
use refs::{SpinLock, WaitList, Waker};

use super::route;
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd, OpenFile, VfsCaller};
use crate::net::devices;
use crate::net::{
    AtFault, Family, Received, Receiving, Sending, Shutdown, Sink, Socket, Source, Timeouts, Type, read_into,
};
use crate::reclaim::{Held, OfInbox};
use crate::step::{Step, Stop};
use crate::time::clock::TimeVal;
use crate::user_memory::{Argument, In, UserMemory, UserSlice};
use zerocopy::IntoBytes;

/// AF_NETLINK.
pub struct Netlink;

const AF_NETLINK: u32 = 16;
const NETLINK_ROUTE: u32 = 0;
const SOL_NETLINK: u32 = 270;
/// The size of `struct sockaddr_nl`.
const ADDRESS_BYTES: usize = 12;
/// So many answers wait at most; what is asked then is refused.
pub const MOST_ANSWERS: usize = 256;
/// The longest request.
const MOST_REQUEST: usize = 32_768;
/// The ports of sockets that are not the first of their process.
const FIRST_OTHER_PORT: u32 = 0x8000_0000;
static OTHER_PORTS: AtomicU32 = AtomicU32::new(FIRST_OTHER_PORT);

/// An open socket.
pub struct NetlinkSocket {
    kind: Type,
    timeouts: Timeouts,
    readable: WaitList,
    state: SpinLock<State>,
}

struct State {
    port: u32,
    groups: u32,
    answers: VecDeque<Vec<u8>>,
    held: OfInbox,
}

impl Family for Netlink {
    fn number(&self) -> u32 {
        AF_NETLINK
    }

    fn create(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>> {
        if !matches!(kind, Type::Raw | Type::Datagram) {
            return Err(Errno::ESOCKTNOSUPPORT);
        }
        if protocol != NETLINK_ROUTE {
            return Err(Errno::EPROTONOSUPPORT);
        }
        let held = OfInbox::of(&me.payer(cx)?);
        let state = State { port: 0, groups: 0, answers: VecDeque::new(), held };
        let (readable, state) = (WaitList::new(), SpinLock::new(state));
        Ok(Box::new(NetlinkSocket { kind, timeouts: Timeouts::default(), readable, state }))
    }

    fn pair(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<[Box<dyn File>; 2]> {
        self.create(kind, protocol, me, cx)?;
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

impl NetlinkSocket {
    /// Its port: it gets one if it has none. Mostly that is the number of its process.
    fn port(&self, me: &dyn VfsCaller, cx: &Cx) -> Result<u32> {
        let own = me.pid(cx)?;
        let mut state = self.state.lock(cx);
        if state.port == 0 {
            // The first socket of the machine's that asks has its process's; who asks again has another.
            static LAST: AtomicU32 = AtomicU32::new(0);
            let is_first = LAST.swap(own, Ordering::Relaxed) != own;
            state.port = if is_first { own } else { OTHER_PORTS.fetch_add(1, Ordering::Relaxed) };
        }
        Ok(state.port)
    }

    fn ask(&self, from: &mut dyn Source, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let len = from.remaining();
        if len > MOST_REQUEST {
            return Err(Errno::EMSGSIZE.into());
        }
        crate::memory::admit()?;
        let port = self.port(me, cx)?;
        let mut request = from.take(len)?;
        while request.len() < len {
            // It goes whole or not at all: this says which page is missing.
            request.extend_from_slice(&from.take(len - request.len())?);
        }
        let answers = route::answers(&request, port, cx);
        {
            let mut state = self.state.lock(cx);
            let room = MOST_ANSWERS - state.answers.len();
            if answers.len() > room || state.answers.try_reserve(answers.len()).is_err() {
                return Err(Errno::ENOBUFS.into());
            }
            state.held.add(Held::Message, answers.len() as u32).map_err(|_| Errno::ENOBUFS)?;
            state.answers.extend(answers);
        }
        self.readable.wake_all();
        Ok(len)
    }

    fn receive(&self, sink: &mut Sink<'_>, receiving: &Receiving, waker: Option<Waker>, cx: &Cx) -> Step<Received> {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let mut state = self.state.lock(cx);
        let answer = state.answers.front().ok_or(Stop::Block)?;
        let (copied, fault) = sink(answer);
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let received = Received { copied, len: answer.len(), from: encode(0, 0), ..Received::default() };
        if !receiving.peeks() {
            state.answers.pop_front();
            state.held.remove(Held::Message, 1);
        }
        Ok(received)
    }
}

impl Socket for NetlinkSocket {
    fn bind(&self, address: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let (port, groups) = decode(address)?;
        let mut state = self.state.lock(cx);
        if state.port != 0 && port != 0 && state.port != port {
            return Err(Errno::EINVAL.into());
        }
        state.groups = groups;
        if port != 0 {
            state.port = port;
            return Ok(());
        }
        drop(state);
        self.port(me, cx)?;
        Ok(())
    }

    fn listen(&self, _backlog: usize, _me: &dyn VfsCaller, _cx: &Cx) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn connect(&self, address: &[u8], _waker: Option<Waker>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        decode(address)?;
        self.port(me, cx)?;
        Ok(())
    }

    fn accept(&self, _waker: Option<Waker>, _tell: &mut dyn FnMut(&[u8]) -> Step<()>, _cx: &Cx) -> Step<Box<dyn File>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn address(&self, cx: &Cx) -> Vec<u8> {
        let state = self.state.lock(cx);
        encode(state.port, state.groups)
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
            // Only the kernel is there.
            Some((port, _)) if port != 0 => Err(Errno::ECONNREFUSED.into()),
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
        _cx: &Cx,
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
        // What else programs set (sizes of buffers, how errors are told) changes nothing that they see.
        if matches!(level, net::SOL_SOCKET | SOL_NETLINK) { Ok(()) } else { Err(Errno::ENOPROTOOPT.into()) }
    }

    fn option(&self, level: u32, name: u32, _cx: &Cx) -> Result<Vec<u8>> {
        if level == net::SOL_SOCKET
            && let Some(timeout) = self.timeouts.of(name)
        {
            return Ok(timeout.get().as_bytes().to_vec());
        }
        let value = match (level, name) {
            (net::SOL_SOCKET, net::SO_TYPE) if self.kind == Type::Raw => net::SOCK_RAW,
            (net::SOL_SOCKET, net::SO_TYPE) => net::SOCK_DGRAM,
            (net::SOL_SOCKET, net::SO_DOMAIN) => AF_NETLINK,
            (net::SOL_SOCKET, net::SO_PROTOCOL) => NETLINK_ROUTE,
            (net::SOL_SOCKET, net::SO_ERROR | net::SO_ACCEPTCONN) => 0,
            (net::SOL_SOCKET, net::SO_SNDBUF | net::SO_RCVBUF) => 212_992,
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
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let has_any = !self.state.lock(cx).answers.is_empty();
        let readable = if has_any { Events::IN | Events::READ_NORMAL } else { Events::empty() };
        (readable | Events::OUT | Events::WRITE_NORMAL) & interest
    }
}

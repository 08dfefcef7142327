//! [`UnixSocket`]: an endpoint as an open file, and [`Unix`], the family.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::FIONREAD;
use linux_raw_sys::net;
use refs::{SpinLock, StrongRc, TempRc, Waker, WeakRc};
use zerocopy::IntoBytes;

use super::inbox::Inbox;
use super::listing::SOCKETS;
use super::{Address, Endpoint, Kind, garbage};
use crate::error::{Errno, Result};
use crate::fs::fasync::Registration;
use crate::fs::{Events, File, FileEnd, OpenFile, UnseenContents, VfsCaller};
use crate::heap::{object_bytes, slot_bytes};
use crate::net::devices;
use crate::net::registry::{Entered, Registry};
use crate::net::{
    AtFault, Credentials, Family, Received, Receiving, Sending, Shutdown, Sink, Socket, Source, Timeouts, Type,
    read_into, send_all,
};
use crate::reclaim::Held;
use crate::step::Step;
use crate::time::clock::TimeVal;
use crate::user_memory::{Argument, In, UserMemory, UserSlice};

/// AF_UNIX: unix(7).
pub struct Unix;

impl Family for Unix {
    fn number(&self) -> u32 {
        net::AF_UNIX
    }

    fn create(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>> {
        let kind = Kind::new(kind, protocol)?;
        Ok(UnixSocket::boxed(Endpoint::new(kind, Credentials::of(me, cx)?, &me.payer(cx)?)))
    }

    fn pair(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<[Box<dyn File>; 2]> {
        let kind = Kind::new(kind, protocol)?;
        Ok(Endpoint::pair(kind, Credentials::of(me, cx)?, cx).map(UnixSocket::boxed))
    }

    fn socket_of<'a>(&self, open: &'a OpenFile) -> Option<&'a dyn Socket> {
        open.kind::<UnixSocket>().map(|socket| socket as &dyn Socket)
    }
}

/// An open socket: it owns its endpoint.
pub struct UnixSocket {
    endpoint: StrongRc<Endpoint>,
    timeouts: Timeouts,
    /// Its entry among all sockets.
    entered: SpinLock<Option<Entered<Endpoint>>>,
}

/// What one end of a pair takes at least, besides its description.
const BYTES: usize = slot_bytes(size_of::<UnixSocket>())
    + object_bytes::<Endpoint>()
    + crate::fs::anonymous::INODE_BYTES
    + Registry::<Endpoint>::ENTRY_BYTES;

impl Kind {
    fn new(kind: Type, protocol: u32) -> Result<Self> {
        if protocol != 0 && protocol != net::AF_UNIX {
            return Err(Errno::EPROTONOSUPPORT);
        }
        Ok(match kind {
            Type::Stream => Kind::Stream,
            // As on Linux.
            Type::Datagram | Type::Raw => Kind::Datagram,
            Type::SequencedPacket => Kind::SequencedPacket,
        })
    }
}

impl UnixSocket {
    fn boxed(endpoint: StrongRc<Endpoint>) -> Box<dyn File> {
        Box::new(UnixSocket { endpoint, timeouts: Timeouts::default(), entered: SpinLock::new(None) })
    }

    /// The name of the endpoint.
    pub(super) fn name(&self) -> WeakRc<Endpoint> {
        self.endpoint.downgrade()
    }

    fn endpoint<'cx>(&'cx self, cx: &'cx Cx) -> TempRc<'cx, Endpoint> {
        self.endpoint.get(cx)
    }
}

/// The only level of options here.
fn check_level(level: u32) -> Result<()> {
    if level == net::SOL_SOCKET { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

impl Socket for UnixSocket {
    fn bind(&self, address: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let endpoint = self.endpoint(cx);
        match Address::decode(address)? {
            Some(address) => endpoint.bind(address, me, cx),
            // Binding to no name asks for one, if it has none: there are enough of five digits.
            None if endpoint.address(cx).is_some() => Ok(()),
            None => (0..0x10_0000_u32)
                .map(|number| endpoint.bind(Address::Abstract(alloc::format!("{number:05x}").into_bytes()), me, cx))
                .find(|outcome| *outcome != Err(Errno::EADDRINUSE.into()))
                .unwrap_or(Err(Errno::ENOSPC.into())),
        }
    }

    fn listen(&self, backlog: usize, me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
        self.endpoint(cx).listen(backlog, Credentials::of(me, cx)?, cx)
    }

    fn connect(&self, address: &[u8], waker: Option<Waker>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let target = Address::decode(address)?.ok_or(Errno::EINVAL)?.find(me, cx)?;
        self.endpoint(cx).connect(target, Credentials::of(me, cx)?, waker, cx)
    }

    fn accept(&self, waker: Option<Waker>, tell: &mut dyn FnMut(&[u8]) -> Step<()>, cx: &Cx) -> Step<Box<dyn File>> {
        let listener = self.endpoint(cx);
        let accepted = listener.accept(waker, cx)?;
        let address = accepted.get(cx).peer_address(cx).unwrap_or(None);
        if let Err(stop) = tell(&Address::encode(address.as_ref())) {
            listener.put_back(accepted, cx);
            return Err(stop);
        }
        Ok(UnixSocket::boxed(accepted))
    }

    fn note_inode(&self, number: u64) {
        self.endpoint.with(|endpoint| endpoint.inode.store(number, Ordering::Relaxed));
        let entered = SOCKETS.enter(number, self.endpoint.downgrade());
        self.entered.with(|place| *place = Some(entered));
    }

    fn address(&self, cx: &Cx) -> Vec<u8> {
        Address::encode(self.endpoint(cx).address(cx).as_ref())
    }

    fn peer_address(&self, cx: &Cx) -> Result<Vec<u8>> {
        Ok(Address::encode(self.endpoint(cx).peer_address(cx)?.as_ref()))
    }

    fn send(
        &self,
        from: &mut dyn Source,
        to: Option<&[u8]>,
        sending: &Sending<'_>,
        waker: Option<Waker>,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<usize> {
        if sending.flags & net::MSG_OOB != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let to = to.map(Address::decode).transpose()?.flatten();
        let target = to.map(|address| address.find(me, cx)).transpose()?;
        self.endpoint(cx).send(from, sending, target, waker, cx)
    }

    fn receive(
        &self,
        sink: &mut Sink<'_>,
        at_fault: AtFault,
        receiving: &Receiving,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received> {
        if receiving.flags & net::MSG_OOB != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let endpoint = self.endpoint(cx);
        let received = endpoint.receive(sink, at_fault, receiving.peeks(), waker, cx)?;
        let credentials = received.credentials.filter(|_| endpoint.passes_credentials(cx));
        Ok(Received { credentials, ..received })
    }

    fn shut_down(&self, what: Shutdown, cx: &Cx) -> Step<()> {
        self.endpoint(cx).shut_down(what, cx);
        Ok(())
    }

    fn set_option(
        &self,
        level: u32,
        name: u32,
        value: UserSlice<u8, In>,
        memory: &UserMemory<'_>,
        cx: &Cx,
    ) -> Step<()> {
        check_level(level)?;
        let mut bytes = [0; 4];
        if value.len() < bytes.len() {
            return Err(Errno::EINVAL.into());
        }
        memory.read_into(value, &mut bytes)?;
        if let Some(timeout) = self.timeouts.of(name) {
            let mut time = TimeVal::default();
            if value.len() < size_of_val(&time) {
                return Err(Errno::EINVAL.into());
            }
            memory.read_into(value, time.as_mut_bytes())?;
            return Ok(timeout.set(time)?);
        }
        match name {
            net::SO_PASSCRED => self.endpoint(cx).set_passes_credentials(bytes != [0; 4], cx),
            net::SO_SNDBUF
            | net::SO_RCVBUF
            | net::SO_SNDBUFFORCE
            | net::SO_RCVBUFFORCE
            | net::SO_REUSEADDR
            | net::SO_KEEPALIVE
            | net::SO_LINGER
            | net::SO_BROADCAST
            | net::SO_PRIORITY => {}
            _ => return Err(Errno::ENOPROTOOPT.into()),
        }
        Ok(())
    }

    fn option(&self, level: u32, name: u32, cx: &Cx) -> Result<Vec<u8>> {
        check_level(level)?;
        if let Some(timeout) = self.timeouts.of(name) {
            return Ok(timeout.get().as_bytes().to_vec());
        }
        let endpoint = self.endpoint(cx);
        let number = match name {
            net::SO_TYPE => match endpoint.kind {
                Kind::Stream => net::SOCK_STREAM,
                Kind::Datagram => net::SOCK_DGRAM,
                Kind::SequencedPacket => net::SOCK_SEQPACKET,
            },
            net::SO_DOMAIN => net::AF_UNIX,
            net::SO_ACCEPTCONN => u32::from(endpoint.is_listening(cx)),
            net::SO_PASSCRED => u32::from(endpoint.passes_credentials(cx)),
            net::SO_SNDBUF | net::SO_RCVBUF => 212_992,
            net::SO_ERROR if endpoint.take_reset(cx) => u32::from(Errno::ECONNRESET.number()),
            net::SO_ERROR | net::SO_PROTOCOL | net::SO_REUSEADDR | net::SO_KEEPALIVE | net::SO_BROADCAST => 0,
            net::SO_COOKIE => return Ok(endpoint.cookie.get().to_le_bytes().to_vec()),
            net::SO_PEERCRED => return Ok(endpoint.peer_credentials(cx).as_bytes().to_vec()),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(number.to_le_bytes().to_vec())
    }
}

impl File for UnixSocket {
    fn end(&self) -> FileEnd {
        // A pair. Until it is connected anew or gets a name nobody finds one of its ends by the other's.
        FileEnd::UnseenBy { bytes: BYTES }
    }

    fn join_contents(&self, contents: &StrongRc<UnseenContents>) -> bool {
        self.endpoint.with(|endpoint| endpoint.inbox.with(|inbox| inbox.join_contents(contents)));
        true
    }

    fn leave_contents(&self) {
        self.endpoint.with(|endpoint| endpoint.inbox.with(Inbox::leave_contents));
    }

    fn take_counted(&self) -> usize {
        self.endpoint.with(|endpoint| endpoint.inbox.with(Inbox::take_counted))
    }

    fn class(&self) -> Held {
        Held::Socket
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        1024 + self.endpoint.get(cx).inbox.lock(cx).bytes()
    }

    fn is_other_end_of(&self, other: &(dyn File + 'static), cx: &Cx) -> bool {
        let other: &dyn Any = other;
        let peer = self.endpoint(cx).peer(cx);
        other.downcast_ref::<UnixSocket>().is_some_and(|other| peer == Some(other.name()))
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        let endpoint = self.endpoint.get(cx);
        if garbage::throw_one_away(&endpoint, cx) {
            return true;
        }
        endpoint.leave_peers(cx);
        false
    }

    fn fasync(&self, registration: &Registration<'_>, cx: &Cx) -> bool {
        registration.apply(&self.endpoint.get(cx).fasync, Events::IN | Events::OUT, cx);
        true
    }

    fn time_limit(&self, interest: Events) -> Option<u64> {
        self.timeouts.limit(interest)
    }

    fn lost_reader(&self, cx: &Cx) -> Option<Errno> {
        let is_reset = self.endpoint.get(cx).take_reset(cx);
        Some(if is_reset { Errno::ECONNRESET } else { Errno::EPIPE })
    }

    fn keeps_messages(&self, cx: &Cx) -> bool {
        self.endpoint.get(cx).kind != Kind::Stream
    }

    fn signals_broken_pipe(&self, cx: &Cx) -> bool {
        self.endpoint.get(cx).kind == Kind::Stream
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        let endpoint = self.endpoint.get(cx);
        read_into(to, me, cx, |sink, at_fault| endpoint.receive(sink, at_fault, false, None, cx))
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let sending = Sending { flags: 0, control: &[], files: &[], credentials: Credentials::of(me, cx)? };
        let endpoint = self.endpoint.get(cx);
        send_all(from, |from| endpoint.send(from, &sending, None, None, cx))
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.endpoint.get(cx).poll(waker, cx) & (interest | Events::ERROR | Events::HANG_UP)
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if request != FIONREAD {
            return devices::ioctl(request, argument, me, cx);
        }
        let waiting = self.endpoint.get(cx).waiting_bytes(cx) as i32;
        me.memory(cx)?.write(argument.output::<i32>(), &waiting)?;
        Ok(0)
    }
}

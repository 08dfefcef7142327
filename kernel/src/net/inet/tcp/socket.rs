//! [`TcpSocket`]: an endpoint as an open file.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::{FIONREAD, SIOCATMARK, TIOCOUTQ};
use refs::{StrongRc, TempRc, Waker};

use super::Endpoint;
use crate::error::{Errno, Result};
use crate::fs::fasync::Registration;
use crate::fs::{Events, File, FileEnd, VfsCaller};
use crate::net::devices;
use crate::net::inet::address::Version;
use crate::net::inet::options::{OfSocket, Setting};
use crate::net::inet::{check_port, user};
use crate::net::{AtFault, Received, Receiving, Sending, Shutdown, Sink, Socket, Source, read_into, send_all};
use crate::reclaim::Held;
use crate::step::Step;
use crate::user_memory::{Argument, In, UserMemory, UserSlice};

/// How many of the bytes that wait were never sent.
const SIOCOUTQNSD: u32 = 0x894b;

/// An open socket: it owns its endpoint.
pub struct TcpSocket {
    endpoint: StrongRc<Endpoint>,
    own: OfSocket,
}

impl TcpSocket {
    /// A new one.
    ///
    /// # Errors
    /// ESRCH: the caller is gone.
    pub fn create(version: Version, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>> {
        Ok(TcpSocket::boxed(Endpoint::new(version, &me.payer(cx)?)))
    }

    fn boxed(endpoint: StrongRc<Endpoint>) -> Box<dyn File> {
        Box::new(TcpSocket { endpoint, own: OfSocket::default() })
    }

    fn endpoint<'cx>(&'cx self, cx: &'cx Cx) -> TempRc<'cx, Endpoint> {
        self.endpoint.get(cx)
    }
}

impl Socket for TcpSocket {
    fn bind(&self, address: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let endpoint = self.endpoint(cx);
        let address = endpoint.version.decode_given(address)?;
        check_port(address.port, me, cx)?;
        Ok(endpoint.bind(address, user(me, cx)?, cx)?)
    }

    fn listen(&self, backlog: usize, me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
        self.endpoint(cx).listen(backlog, user(me, cx)?, cx)
    }

    fn connect(&self, address: &[u8], waker: Option<Waker>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let endpoint = self.endpoint(cx);
        match endpoint.version.decode(address)? {
            Some(to) => endpoint.connect(to, user(me, cx)?, waker, cx),
            None => endpoint.disconnect(cx),
        }
    }

    fn unfinished_connect(&self, cx: &Cx) -> Errno {
        self.endpoint(cx).unfinished(cx)
    }

    fn accept(&self, waker: Option<Waker>, tell: &mut dyn FnMut(&[u8]) -> Step<()>, cx: &Cx) -> Step<Box<dyn File>> {
        let listener = self.endpoint(cx);
        let accepted = listener.accept(waker, cx)?;
        let remote = accepted.get(cx).tcp_state(cx).2.unwrap_or(listener.version.unbound());
        if let Err(stop) = tell(&listener.version.encode(remote)) {
            listener.put_back(accepted, cx);
            return Err(stop);
        }
        Ok(TcpSocket::boxed(accepted))
    }

    fn note_inode(&self, number: u64) {
        self.endpoint.with(|endpoint| endpoint.inode.store(number, Ordering::Relaxed));
    }

    fn address(&self, cx: &Cx) -> Vec<u8> {
        let endpoint = self.endpoint(cx);
        endpoint.version.encode(endpoint.address(cx))
    }

    fn peer_address(&self, cx: &Cx) -> Result<Vec<u8>> {
        let endpoint = self.endpoint(cx);
        Ok(endpoint.version.encode(endpoint.peer_address(cx)?))
    }

    fn send(
        &self,
        from: &mut dyn Source,
        _to: Option<&[u8]>,
        sending: &Sending<'_>,
        waker: Option<Waker>,
        _me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<usize> {
        self.endpoint(cx).send(from, sending.flags, waker, cx)
    }

    fn receive(
        &self,
        sink: &mut Sink<'_>,
        at_fault: AtFault,
        receiving: &Receiving,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received> {
        self.endpoint(cx).receive(sink, at_fault, receiving, waker, cx)
    }

    fn wanted(&self, receiving: &Receiving, cx: &Cx) -> usize {
        let least = self.endpoint(cx).low_water(cx);
        if receiving.waits_for_all() { receiving.room } else { receiving.room.min(least) }
    }

    fn drops_truncated(&self) -> bool {
        true
    }

    fn shut_down(&self, what: Shutdown, cx: &Cx) -> Step<()> {
        self.endpoint(cx).shut_down(what, cx)
    }

    fn set_option(
        &self,
        level: u32,
        name: u32,
        value: UserSlice<u8, In>,
        memory: &UserMemory<'_>,
        cx: &Cx,
    ) -> Step<()> {
        self.endpoint(cx).set_option(&Setting { level, name, value, memory }, &self.own, cx)
    }

    fn option(&self, level: u32, name: u32, cx: &Cx) -> Result<Vec<u8>> {
        self.endpoint(cx).option(level, name, &self.own, cx)
    }
}

impl File for TcpSocket {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Socket
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        1024 + self.endpoint(cx).kernel_bytes(cx)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        self.endpoint(cx).close(cx)
    }

    fn note_kill(&self, cx: &Cx) {
        self.endpoint(cx).note_kill(cx);
    }

    fn fasync(&self, registration: &Registration<'_>, cx: &Cx) -> bool {
        registration.apply(&self.endpoint(cx).fasync, Events::IN | Events::OUT | Events::PRIORITY, cx);
        true
    }

    fn time_limit(&self, interest: Events) -> Option<u64> {
        self.own.timeouts.limit(interest)
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        let endpoint = self.endpoint(cx);
        let receiving = Receiving { flags: 0, room: to.remaining() };
        read_into(to, me, cx, |sink, at_fault| endpoint.receive(sink, at_fault, &receiving, None, cx))
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let endpoint = self.endpoint(cx);
        send_all(from, |from| endpoint.send(from, 0, None, cx))
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.endpoint(cx).poll(interest, waker, cx) & (interest | Events::ERROR | Events::HANG_UP)
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let endpoint = self.endpoint(cx);
        let value = match request {
            FIONREAD => endpoint.waiting_bytes(cx)? as i32,
            SIOCATMARK => i32::from(endpoint.is_at_mark(cx)),
            TIOCOUTQ => endpoint.unacknowledged(cx)?.0 as i32,
            SIOCOUTQNSD => endpoint.unacknowledged(cx)?.1 as i32,
            _ => return devices::ioctl(request, argument, me, cx),
        };
        me.memory(cx)?.write(argument.output::<i32>(), &value)?;
        Ok(0)
    }
}

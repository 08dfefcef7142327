//! An endpoint that has a peer: sending, receiving, shutting down. A datagram socket sends to others as well.

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{StrongRc, Waker, WeakRc};

use super::endpoint::Role;
use super::inbox::{CAPACITY, Packet, Rights, Taken};
use super::{Address, Endpoint, Kind, garbage};
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::fs::fasync::Band;
use crate::fs::in_flight::InFlight;
use crate::net::{AtFault, Credentials, Files, Received, Sending, Shutdown, Sink, Source};
use crate::reclaim::Payer;
use crate::step::{Step, Stop};

/// The other end, and who and where it was when the two were connected.
pub(super) struct Connected {
    pub(super) peer: WeakRc<Endpoint>,
    pub(super) address: Option<Address>,
    pub(super) credentials: Credentials,
}

impl Endpoint {
    /// Two, connected to each other. Nobody is charged before they are entered in a table.
    pub fn pair(kind: Kind, credentials: Credentials, cx: &Cx) -> [StrongRc<Endpoint>; 2] {
        let pair = [(); 2].map(|()| Endpoint::new(kind, credentials, &Payer::NOBODY));
        pair[0].get(cx).join(pair[1].downgrade(), None, credentials, cx);
        pair[1].get(cx).join(pair[0].downgrade(), None, credentials, cx);
        pair
    }

    /// Gives it a peer.
    pub(super) fn join(&self, peer: WeakRc<Endpoint>, address: Option<Address>, credentials: Credentials, cx: &Cx) {
        self.state.lock(cx).role = Role::Connected(Connected { peer, address, credentials });
    }

    /// That peer is gone, and it has none any more, unless it was connected to another meanwhile.
    fn leave_peer(&self, gone: WeakRc<Endpoint>, cx: &Cx) {
        let role = &mut self.state.lock(cx).role;
        if matches!(role, Role::Connected(connected) if connected.peer == gone) {
            *role = Role::Init;
        }
    }

    /// The other end, if it is connected.
    pub(super) fn peer(&self, cx: &Cx) -> Option<WeakRc<Endpoint>> {
        match &self.state.lock(cx).role {
            Role::Connected(connected) => Some(connected.peer),
            _ => None,
        }
    }

    /// Its peer's address.
    ///
    /// # Errors
    /// ENOTCONN.
    pub fn peer_address(&self, cx: &Cx) -> Result<Option<Address>> {
        match &self.state.lock(cx).role {
            Role::Connected(connected) => Ok(connected.address.clone()),
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// Who its peer was when they were connected; nobody is shown as -1.
    pub fn peer_credentials(&self, cx: &Cx) -> Credentials {
        match &self.state.lock(cx).role {
            Role::Connected(connected) => connected.credentials,
            _ => Credentials { pid: 0, uid: u32::MAX, gid: u32::MAX },
        }
    }

    /// Sends to the peer or (a datagram) to `target`, which packets on a connection ignore: how many bytes. Of a stream it may be fewer than there are.
    ///
    /// # Errors
    /// EPIPE, ECONNREFUSED: the other end is closed. ENOTCONN: there is none. EISCONN, EOPNOTSUPP: a target for a stream. EMSGSIZE. ETOOMANYREFS: too many sockets are in
    /// flight. `Block` while there is no room.
    pub fn send(
        &self,
        from: &mut dyn Source,
        sending: &Sending<'_>,
        target: Option<WeakRc<Endpoint>>,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<usize> {
        if self.kind == Kind::SequencedPacket && self.take_reset(cx) {
            return Err(Errno::ECONNRESET.into());
        }
        if self.state.lock(cx).shutdown.writing {
            return Err(Errno::EPIPE.into());
        }
        let peer = self.peer(cx);
        let name = match self.kind {
            Kind::Datagram => target.or(peer),
            Kind::SequencedPacket => peer,
            Kind::Stream if target.is_none() => peer,
            Kind::Stream => return Err(if peer.is_some() { Errno::EISCONN } else { Errno::EOPNOTSUPP }.into()),
        };
        let name = name.ok_or(Errno::ENOTCONN)?;
        let len = from.remaining();
        let is_stream = self.kind == Kind::Stream;
        if is_stream && len == 0 {
            return Ok(0);
        }
        let closed = if self.kind == Kind::Datagram { Errno::ECONNREFUSED } else { Errno::EPIPE };
        let Ok(other) = name.upgrade(cx) else {
            if self.kind == Kind::Datagram && peer == Some(name) {
                self.leave_peer(name, cx);
            }
            return Err(closed.into());
        };
        if other.kind != self.kind {
            return Err(Errno::EPROTOTYPE.into());
        }
        if let Some(waker) = waker {
            other.writable.register(waker, cx);
            name.watch(waker, cx);
        }
        if other.state.lock(cx).shutdown.reading {
            return Err(Errno::EPIPE.into());
        }
        if !is_stream && len > CAPACITY {
            return Err(Errno::EMSGSIZE.into());
        }
        let room = other.reserve(len, sending.files.len() as u32, cx)?;
        crate::memory::admit()?;
        let mut bytes = from.take(room.len)?;
        while bytes.len() < room.len {
            // A message, and a piece of a stream, goes whole or not at all: this says which page is missing.
            bytes.extend_from_slice(&from.take(room.len - bytes.len())?);
        }
        let sent = bytes.len();
        let _transfer = (!sending.files.is_empty()).then(garbage::Transfer::begin);
        let rights: Rights = sending.files.iter().map(|file| InFlight::new(file.share())).collect();
        garbage::enter(&rights, cx)?;
        let packet = Packet { bytes, read: 0, rights, credentials: sending.credentials, from: self.address(cx) };
        if room.fill(packet).is_err() {
            // It was shut down since, or closed.
            let is_shut_down = other.state.lock(cx).shutdown.reading;
            return Err(if is_shut_down { Errno::EPIPE } else { closed }.into());
        }
        other.readable.wake();
        other.fasync.signal(Events::IN, Band::In, cx);
        Ok(sent)
    }

    /// Receives bytes into `sink`.
    ///
    /// # Errors
    /// ENOTCONN. ECONNRESET, once: the peer was closed before it had read everything. `Block` while there is nothing and more may come.
    pub fn receive(
        &self,
        sink: &mut Sink<'_>,
        at_fault: AtFault,
        peek: bool,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received> {
        if let Some(waker) = waker {
            self.register_reader(waker, cx);
        }
        if self.kind != Kind::Datagram && self.peer(cx).is_none() {
            return Err(if self.kind == Kind::Stream { Errno::EINVAL } else { Errno::ENOTCONN }.into());
        }
        // Of a stream, what was sent before is read first.
        if self.kind == Kind::SequencedPacket && self.take_reset(cx) {
            return Err(Errno::ECONNRESET.into());
        }
        let mut received = self.receive_next(sink, at_fault, peek, cx)?;
        let is_at_end = received.is_none() && self.is_at_end(cx);
        if is_at_end {
            // What was sent between the two looks. A send that is still under way on another core fails: nothing comes behind the end.
            self.inbox.lock(cx).close();
            received = self.receive_next(sink, at_fault, peek, cx)?;
        }
        match received {
            Some(received) => {
                if !peek {
                    self.has_room(cx);
                }
                Ok(received)
            }
            None if is_at_end && self.take_reset(cx) => Err(Errno::ECONNRESET.into()),
            None if is_at_end => Ok(Received::default()),
            None => Err(Stop::Block),
        }
    }

    /// What is there, if anything is.
    #[inline(always)]
    fn receive_next(&self, sink: &mut Sink<'_>, at_fault: AtFault, peek: bool, cx: &Cx) -> Step<Option<Received>> {
        if self.kind == Kind::Stream {
            self.receive_stream(sink, at_fault, peek, cx)
        } else {
            self.receive_message(sink, peek, cx)
        }
    }

    fn receive_stream(&self, sink: &mut Sink<'_>, at_fault: AtFault, peek: bool, cx: &Cx) -> Step<Option<Received>> {
        let tells_senders = self.passes_credentials(cx);
        let mut inbox = self.inbox.lock(cx);
        if inbox.is_empty() {
            return Ok(None);
        }
        let Taken { len, files, credentials, from } = inbox.take_stream(peek, tells_senders, at_fault, sink)?;
        Ok(Some(Received { copied: len, len, from, files, credentials, ..Received::default() }))
    }

    fn receive_message(&self, sink: &mut Sink<'_>, peek: bool, cx: &Cx) -> Step<Option<Received>> {
        let mut inbox = self.inbox.lock(cx);
        let Some(packet) = inbox.front() else { return Ok(None) };
        let (copied, fault) = sink(&packet.bytes);
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let mut received = Received {
            copied,
            len: packet.bytes.len(),
            from: packet.sender(),
            files: Files::new(),
            credentials: Some(packet.credentials),
            ..Received::default()
        };
        if peek {
            received.files = packet.files(peek);
        } else if let Some(mut packet) = inbox.pop() {
            received.files = packet.files(peek);
        }
        Ok(Some(received))
    }

    /// There is room in its inbox again: whoever waits for some is told.
    pub(super) fn has_room(&self, cx: &Cx) {
        self.writable.wake();
        if self.refused.swap(false, Ordering::Relaxed) {
            self.signal_peer(Events::OUT, Band::Out, cx);
        }
    }

    /// Whether nothing more can come.
    pub(super) fn is_at_end(&self, cx: &Cx) -> bool {
        if self.state.lock(cx).shutdown.reading {
            return true;
        }
        match self.peer(cx).map(|peer| peer.upgrade(cx)) {
            Some(Ok(peer)) => self.kind != Kind::Datagram && peer.state.lock(cx).shutdown.writing,
            Some(Err(_)) => self.kind != Kind::Datagram,
            None => false,
        }
    }

    /// Whether the peer was closed before it had read everything. It is told once.
    pub(super) fn take_reset(&self, cx: &Cx) -> bool {
        core::mem::take(&mut self.state.lock(cx).is_reset)
    }

    pub(super) fn signal_peer(&self, event: Events, band: Band, cx: &Cx) {
        if let Some(Ok(peer)) = self.peer(cx).map(|peer| peer.upgrade(cx)) {
            peer.fasync.signal(event, band, cx);
        }
    }

    /// It is about to be closed: tells the peer, also if something was not read, and those whose connection was not accepted.
    pub(super) fn leave_peers(&self, cx: &Cx) {
        // Whoever has sent something learns that it was not read, or that he has sent nothing.
        let is_unread = self.inbox.lock(cx).close();
        garbage::leave_messages(self, cx);
        if self.kind == Kind::Datagram {
            return;
        }
        if is_unread {
            self.reset_peer(cx);
        }
        self.signal_peer(Events::IN, Band::HangUp, cx);
        self.stop_listening(cx);
    }

    /// Tells the peer that something it has sent is not read.
    pub(super) fn reset_peer(&self, cx: &Cx) {
        if let Some(Ok(peer)) = self.peer(cx).map(|peer| peer.upgrade(cx)) {
            peer.state.lock(cx).is_reset = true;
        }
    }

    /// Ends one or both directions, also of one that has no peer yet.
    pub fn shut_down(&self, what: Shutdown, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            state.shutdown.reading |= what.reading;
            state.shutdown.writing |= what.writing;
        }
        if what.reading {
            self.inbox.lock(cx).close();
        }
        let wake = |endpoint: &Endpoint| {
            endpoint.readable.wake_all();
            endpoint.writable.wake_all();
        };
        wake(self);
        if let Some(Ok(peer)) = self.peer(cx).map(|peer| peer.upgrade(cx)) {
            wake(&peer);
            let band = if what.reading && what.writing { Band::HangUp } else { Band::In };
            if what.writing && self.kind != Kind::Datagram {
                peer.fasync.signal(Events::IN, band, cx);
            }
        }
    }

    /// Has `waker` woken when something can be read or the peer has gone.
    pub(super) fn register_reader(&self, waker: Waker, cx: &Cx) {
        self.readable.register(waker, cx);
        if let Some(peer) = self.peer(cx)
            && !peer.is_gone()
        {
            peer.watch(waker, cx);
        }
    }
}

//! [`Endpoint`]: one end of a connection, a listener, or a datagram socket.

use alloc::collections::VecDeque;

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::inbox::{CAPACITY, Inbox, Packet};
use super::message::{Received, Sending, Sink, Source};
use super::{Address, Rights};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::step::{Step, Stop};

/// The largest piece of a stream that is sent at once.
const PIECE: usize = 32_768;

/// What kind of socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SOCK_STREAM: bytes over a connection.
    Stream,
    /// SOCK_DGRAM: messages to anybody.
    Datagram,
    /// SOCK_SEQPACKET: messages over a connection.
    SequencedPacket,
}

/// `struct ucred`: who is at an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Credentials {
    /// The process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Credentials {
    /// Those of the calling process.
    pub fn of(me: &Current, cx: &Cx) -> Result<Self> {
        let thread = me.thread(cx)?;
        let credentials = thread.credentials.lock(cx);
        Ok(Credentials { pid: me.process(cx)?.pid, uid: credentials.euid, gid: credentials.egid })
    }
}

/// Which directions shutdown(2) ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Nothing is received any more.
    pub reading: bool,
    /// Nothing is sent any more.
    pub writing: bool,
}

/// One end. It belongs to its socket; others know it by name.
pub struct Endpoint {
    name: WeakRc<Endpoint>,
    /// What kind it is.
    pub kind: Kind,
    inbox: SpinLock<Inbox>,
    /// Who waits for something to read or accept.
    readable: WaitList,
    /// Who waits for room in this inbox or backlog.
    writable: WaitList,
    state: SpinLock<State>,
}

struct State {
    role: Role,
    address: Option<Address>,
    peer_address: Option<Address>,
    credentials: Credentials,
    peer_credentials: Option<Credentials>,
    shutdown: Shutdown,
    passes_credentials: bool,
}

enum Role {
    Fresh,
    Connected(WeakRc<Endpoint>),
    Listening { backlog: usize, waiting: VecDeque<StrongRc<Endpoint>> },
}

impl Endpoint {
    /// A new one, connected to nobody.
    pub fn new(kind: Kind, credentials: Credentials) -> StrongRc<Endpoint> {
        StrongRc::new_cyclic(|name| Endpoint {
            name,
            kind,
            inbox: SpinLock::default(),
            readable: WaitList::new(),
            writable: WaitList::new(),
            state: SpinLock::new(State {
                role: Role::Fresh,
                address: None,
                peer_address: None,
                credentials,
                peer_credentials: None,
                shutdown: Shutdown { reading: false, writing: false },
                passes_credentials: false,
            }),
        })
    }

    /// Two, connected to each other.
    pub fn pair(kind: Kind, credentials: Credentials, cx: &Cx) -> [StrongRc<Endpoint>; 2] {
        let pair = [Endpoint::new(kind, credentials), Endpoint::new(kind, credentials)];
        pair[0].get(cx).join(pair[1].downgrade(), None, credentials, cx);
        pair[1].get(cx).join(pair[0].downgrade(), None, credentials, cx);
        pair
    }

    fn join(&self, peer: WeakRc<Endpoint>, peer_address: Option<Address>, peer_credentials: Credentials, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.role = Role::Connected(peer);
        state.peer_address = peer_address;
        state.peer_credentials = Some(peer_credentials);
    }

    fn peer(&self, cx: &Cx) -> Option<WeakRc<Endpoint>> {
        match self.state.lock(cx).role {
            Role::Connected(peer) => Some(peer),
            _ => None,
        }
    }

    /// Its own address.
    pub fn address(&self, cx: &Cx) -> Option<Address> {
        self.state.lock(cx).address.clone()
    }

    /// Its peer's address.
    ///
    /// # Errors
    /// ENOTCONN.
    pub fn peer_address(&self, cx: &Cx) -> Result<Option<Address>> {
        match &*self.state.lock(cx) {
            State { role: Role::Connected(_), peer_address, .. } => Ok(peer_address.clone()),
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// Who its peer was when they were connected; nobody is shown as -1.
    pub fn peer_credentials(&self, cx: &Cx) -> Credentials {
        let nobody = Credentials { pid: 0, uid: u32::MAX, gid: u32::MAX };
        self.state.lock(cx).peer_credentials.unwrap_or(nobody)
    }

    /// Whether it listens.
    pub fn is_listening(&self, cx: &Cx) -> bool {
        matches!(self.state.lock(cx).role, Role::Listening { .. })
    }

    /// Whether messages are read with their senders (SO_PASSCRED).
    pub fn passes_credentials(&self, cx: &Cx) -> bool {
        self.state.lock(cx).passes_credentials
    }

    /// Changes that.
    pub fn set_passes_credentials(&self, on: bool, cx: &Cx) {
        self.state.lock(cx).passes_credentials = on;
    }

    /// How many bytes wait to be read.
    pub fn waiting_bytes(&self, cx: &Cx) -> usize {
        let mut inbox = self.inbox.lock(cx);
        match self.kind {
            Kind::Stream => inbox.bytes(),
            _ => inbox.front().map_or(0, |packet| packet.bytes.len()),
        }
    }

    /// Gives it an address.
    ///
    /// # Errors
    /// EINVAL: it has one. EADDRINUSE and the others of bind(2).
    pub fn bind(&self, address: Address, me: &Current, cx: &Cx) -> Result<()> {
        if self.state.lock(cx).address.is_some() {
            return Err(Errno::EINVAL);
        }
        address.bind(self.name, me, cx)?;
        self.state.lock(cx).address = Some(address);
        Ok(())
    }

    /// Has it accept connections, up to `backlog` of them unaccepted.
    ///
    /// # Errors
    /// EOPNOTSUPP: not of a kind that connects. EINVAL: it has no address, or is connected.
    pub fn listen(&self, backlog: usize, me: &Current, cx: &Cx) -> Result<()> {
        if self.kind == Kind::Datagram {
            return Err(Errno::EOPNOTSUPP);
        }
        let credentials = Credentials::of(me, cx)?;
        let mut state = self.state.lock(cx);
        if state.address.is_none() {
            return Err(Errno::EINVAL);
        }
        state.credentials = credentials;
        match &mut state.role {
            Role::Connected(_) => return Err(Errno::EINVAL),
            Role::Listening { backlog: old, .. } => *old = backlog,
            role @ Role::Fresh => *role = Role::Listening { backlog, waiting: VecDeque::new() },
        }
        drop(state);
        self.writable.wake_all();
        Ok(())
    }

    /// Connects it to whom `target` names (a datagram socket: says whom it sends to).
    ///
    /// # Errors
    /// ECONNREFUSED: nobody listens there. EPROTOTYPE: of another kind. EISCONN, EINVAL. `Block` while the backlog is full.
    pub fn connect(&self, target: WeakRc<Endpoint>, waker: Option<Waker>, me: &Current, cx: &Cx) -> Step<()> {
        let other = target.upgrade(cx).map_err(|_| Errno::ECONNREFUSED)?;
        if other.kind != self.kind {
            return Err(Errno::EPROTOTYPE.into());
        }
        let own = Credentials::of(me, cx)?;
        if self.kind == Kind::Datagram {
            let (address, credentials) = other.identity(cx);
            self.join(target, address, credentials, cx);
            return Ok(());
        }
        match self.state.lock(cx).role {
            Role::Fresh => {}
            Role::Connected(_) => return Err(Errno::EISCONN.into()),
            Role::Listening { .. } => return Err(Errno::EINVAL.into()),
        }
        if let Some(waker) = waker {
            other.writable.register(waker, cx);
            target.watch(waker, cx);
        }
        crate::memory::admit()?;
        let (address, credentials) = other.identity(cx);
        let server = Endpoint::new(self.kind, credentials);
        server.get(cx).join(self.name, self.address(cx), own, cx);
        server.get(cx).state.lock(cx).address = address.clone();
        let name = server.downgrade();
        {
            let mut state = other.state.lock(cx);
            let Role::Listening { backlog, waiting } = &mut state.role else { return Err(Errno::ECONNREFUSED.into()) };
            if waiting.len() > *backlog {
                return Err(Stop::Block);
            }
            waiting.push_back(server);
        }
        self.join(name, address, credentials, cx);
        other.readable.wake_all();
        Ok(())
    }

    fn identity(&self, cx: &Cx) -> (Option<Address>, Credentials) {
        let state = self.state.lock(cx);
        (state.address.clone(), state.credentials)
    }

    /// Takes the oldest connection that was not accepted yet.
    ///
    /// # Errors
    /// EINVAL: it does not listen. `Block`.
    pub fn accept(&self, waker: Option<Waker>, cx: &Cx) -> Step<StrongRc<Endpoint>> {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let accepted = match &mut self.state.lock(cx).role {
            Role::Listening { waiting, .. } => waiting.pop_front().ok_or(Stop::Block)?,
            _ => return Err(Errno::EINVAL.into()),
        };
        self.writable.wake_all();
        Ok(accepted)
    }

    /// Puts a connection back that could not be handed out.
    pub fn put_back(&self, endpoint: StrongRc<Endpoint>, cx: &Cx) {
        if let Role::Listening { waiting, .. } = &mut self.state.lock(cx).role {
            waiting.push_front(endpoint);
        }
    }

    /// Sends to the peer or (a datagram) to `target`: how many bytes. Of a stream it may be fewer than there are.
    ///
    /// # Errors
    /// EPIPE, ECONNREFUSED: the other end is closed. ENOTCONN, EDESTADDRREQ: there is none. EMSGSIZE. `Block` while there is no room.
    pub fn send(
        &self,
        from: &mut dyn Source,
        sending: &Sending<'_>,
        target: Option<WeakRc<Endpoint>>,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<usize> {
        if self.state.lock(cx).shutdown.writing {
            return Err(Errno::EPIPE.into());
        }
        let none = if self.kind == Kind::Datagram { Errno::EDESTADDRREQ } else { Errno::ENOTCONN };
        let name = target.or_else(|| self.peer(cx)).ok_or(none)?;
        let closed = if self.kind == Kind::Datagram { Errno::ECONNREFUSED } else { Errno::EPIPE };
        let other = name.upgrade(cx).map_err(|_| closed)?;
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
        let len = from.remaining();
        let is_stream = self.kind == Kind::Stream;
        if !is_stream && len > CAPACITY {
            return Err(Errno::EMSGSIZE.into());
        }
        if is_stream && len == 0 {
            return Ok(0);
        }
        let room = other.inbox.lock(cx).room();
        let count = if is_stream { len.min(room).min(PIECE) } else { len };
        if room == 0 || count > room {
            return Err(Stop::Block);
        }
        crate::memory::admit()?;
        let mut bytes = from.take(count)?;
        while !is_stream && bytes.len() < count {
            // A message goes whole or not at all: this says which page is missing.
            bytes.extend_from_slice(&from.take(count - bytes.len())?);
        }
        let sent = bytes.len();
        let rights = sending.rights.iter().map(StrongRc::share).collect();
        let packet = Packet { bytes, read: 0, rights, credentials: sending.credentials, from: self.address(cx) };
        {
            let mut inbox = other.inbox.lock(cx);
            if is_stream { inbox.push_stream(packet) } else { inbox.push(packet) }
        }
        other.readable.wake_all();
        Ok(sent)
    }

    /// Receives bytes into `sink`.
    ///
    /// # Errors
    /// ENOTCONN. `Block` while there is nothing and more may come.
    pub fn receive(&self, sink: &mut Sink<'_>, peek: bool, waker: Option<Waker>, cx: &Cx) -> Step<Received> {
        if let Some(waker) = waker {
            self.register_reader(waker, cx);
        }
        if self.kind != Kind::Datagram && self.peer(cx).is_none() {
            return Err(if self.kind == Kind::Stream { Errno::EINVAL } else { Errno::ENOTCONN }.into());
        }
        let received = if self.kind == Kind::Stream {
            self.receive_stream(sink, peek, cx)?
        } else {
            self.receive_message(sink, peek, cx)?
        };
        match received {
            Some(received) => {
                if !peek {
                    self.writable.wake_all();
                }
                Ok(received)
            }
            None if self.is_at_end(cx) => Ok(Received::default()),
            None => Err(Stop::Block),
        }
    }

    fn receive_stream(&self, sink: &mut Sink<'_>, peek: bool, cx: &Cx) -> Step<Option<Received>> {
        let mut inbox = self.inbox.lock(cx);
        if inbox.is_empty() {
            return Ok(None);
        }
        let (copied, ancillary) = inbox.take_stream(peek, sink)?;
        let (rights, credentials) = match ancillary {
            Some((rights, credentials)) => (rights, Some(credentials)),
            None => (Rights::new(), None),
        };
        Ok(Some(Received { copied, len: copied, from: None, rights, credentials }))
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
            from: packet.from.clone(),
            rights: Rights::new(),
            credentials: Some(packet.credentials),
        };
        if !peek {
            received.rights = core::mem::take(&mut packet.rights);
            inbox.pop();
        }
        Ok(Some(received))
    }

    /// Whether nothing more can come.
    fn is_at_end(&self, cx: &Cx) -> bool {
        if self.state.lock(cx).shutdown.reading {
            return true;
        }
        match self.peer(cx).map(|peer| peer.upgrade(cx)) {
            Some(Ok(peer)) => self.kind != Kind::Datagram && peer.state.lock(cx).shutdown.writing,
            Some(Err(_)) => self.kind != Kind::Datagram,
            None => false,
        }
    }

    /// Ends one or both directions.
    ///
    /// # Errors
    /// ENOTCONN.
    pub fn shut_down(&self, what: Shutdown, cx: &Cx) -> Result<()> {
        let peer = self.peer(cx).ok_or(Errno::ENOTCONN)?;
        {
            let mut state = self.state.lock(cx);
            state.shutdown.reading |= what.reading;
            state.shutdown.writing |= what.writing;
        }
        if what.reading {
            self.inbox.lock(cx).clear();
        }
        let wake = |endpoint: &Endpoint| {
            endpoint.readable.wake_all();
            endpoint.writable.wake_all();
        };
        wake(self);
        if let Ok(peer) = peer.upgrade(cx) {
            wake(&peer);
        }
        Ok(())
    }

    fn register_reader(&self, waker: Waker, cx: &Cx) {
        self.readable.register(waker, cx);
        if let Some(peer) = self.peer(cx)
            && !peer.is_gone()
        {
            peer.watch(waker, cx);
        }
    }

    /// What is ready.
    pub fn poll(&self, waker: Option<Waker>, cx: &Cx) -> Events {
        let peer: Option<TempRc<'_, Endpoint>> = self.peer(cx).and_then(|peer| peer.upgrade(cx).ok());
        if let Some(waker) = waker {
            self.register_reader(waker, cx);
            if let Some(peer) = &peer {
                peer.writable.register(waker, cx);
            }
        }
        let mut events = Events::empty();
        let (connected, listening, shutdown) = {
            let state = self.state.lock(cx);
            match &state.role {
                Role::Fresh => (false, None, state.shutdown),
                Role::Connected(_) => (true, None, state.shutdown),
                Role::Listening { waiting, .. } => (false, Some(!waiting.is_empty()), state.shutdown),
            }
        };
        if let Some(waiting) = listening {
            if waiting {
                events |= Events::IN | Events::READ_NORMAL;
            }
            return events;
        }
        let at_end = self.is_at_end(cx);
        if at_end || !self.inbox.lock(cx).is_empty() {
            events |= Events::IN | Events::READ_NORMAL;
        }
        if at_end {
            events |= Events::READ_HANG_UP;
        }
        let connects = self.kind != Kind::Datagram;
        if connects && (!connected || peer.is_none() || (shutdown.reading && shutdown.writing)) {
            events |= Events::HANG_UP;
        }
        let has_room = match &peer {
            Some(peer) => peer.inbox.lock(cx).room() > 0,
            None => true,
        };
        if has_room {
            events |= Events::OUT | Events::WRITE_NORMAL;
        }
        events
    }
}

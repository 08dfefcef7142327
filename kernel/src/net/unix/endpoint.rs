//! [`Endpoint`]: one end of a connection, a listener, or a datagram socket.

use core::sync::atomic::{AtomicBool, AtomicU64};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::Address;
use super::connected::Connected;
use super::inbox::Inbox;
use super::listener::Listener;
use crate::fs::Events;
use crate::fs::fasync::FasyncList;
use crate::net::{Cookie, Credentials, Shutdown};
use crate::reclaim::Payer;

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

/// One end. It belongs to its socket; others know it by name.
pub struct Endpoint {
    pub(super) name: WeakRc<Endpoint>,
    /// What kind it is.
    pub kind: Kind,
    /// The number of its socket's inode; 0: no program has opened it yet.
    pub inode: AtomicU64,
    /// Its number among all sockets.
    pub cookie: Cookie,
    pub(super) inbox: SpinLock<Inbox>,
    /// Who waits for something to read or accept.
    pub(super) readable: WaitList,
    /// Who waits for room in this inbox or backlog.
    pub(super) writable: WaitList,
    /// Its socket, if that asks for signals.
    pub(super) fasync: FasyncList,
    /// A peer found no room in the inbox, and was not told since that there is some.
    pub(super) refused: AtomicBool,
    pub(super) state: SpinLock<EndpointState>,
}

/// What changes in an endpoint's life, apart from its inbox.
pub(super) struct EndpointState {
    pub(super) role: Role,
    pub(super) address: Option<Address>,
    /// A thread is about to give it its address, in a step.
    pub(super) is_binding: bool,
    pub(super) credentials: Credentials,
    pub(super) shutdown: Shutdown,
    /// The peer was closed before it had read everything, and nobody was told yet.
    pub(super) is_reset: bool,
    passes_credentials: bool,
}

/// What an endpoint does.
pub(super) enum Role {
    /// Nothing yet.
    Init,
    /// A thread is about to connect it, in a step.
    Connecting,
    /// It has a peer.
    Connected(Connected),
    /// It accepts connections.
    Listening(Listener),
    /// It accepted connections, and is about to be destroyed.
    Closed,
}

impl Endpoint {
    /// A new one, connected to nobody. What waits in it is charged to `payer`, whoever has sent it.
    pub fn new(kind: Kind, credentials: Credentials, payer: &Payer) -> StrongRc<Endpoint> {
        StrongRc::new_cyclic(|name| Endpoint {
            name,
            kind,
            inode: AtomicU64::new(0),
            cookie: Cookie::default(),
            inbox: SpinLock::new(Inbox::new(payer)),
            readable: WaitList::new(),
            writable: WaitList::new(),
            fasync: FasyncList::default(),
            refused: AtomicBool::new(false),
            state: SpinLock::new(EndpointState {
                role: Role::Init,
                address: None,
                is_binding: false,
                credentials,
                shutdown: Shutdown { reading: false, writing: false },
                is_reset: false,
                passes_credentials: false,
            }),
        })
    }

    /// Its own address.
    pub fn address(&self, cx: &Cx) -> Option<Address> {
        self.state.lock(cx).address.clone()
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

    /// Its address, and who made it (or had it listen).
    pub(super) fn identity(&self, cx: &Cx) -> (Option<Address>, Credentials) {
        let state = self.state.lock(cx);
        (state.address.clone(), state.credentials)
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
                Role::Init | Role::Connecting | Role::Closed => (false, None, state.shutdown),
                Role::Connected(_) => (true, None, state.shutdown),
                Role::Listening(listener) => (false, Some(listener.is_ready()), state.shutdown),
            }
        };
        if let Some(waiting) = listening {
            if waiting {
                events |= Events::IN | Events::READ_NORMAL;
            }
            if shutdown.reading {
                events |= Events::IN | Events::READ_NORMAL | Events::READ_HANG_UP;
            }
            if shutdown.reading && shutdown.writing {
                events |= Events::HANG_UP;
            }
            return events;
        }
        let at_end = self.is_at_end(cx);
        if at_end && self.state.lock(cx).is_reset {
            events |= Events::ERROR;
        }
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

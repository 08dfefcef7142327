//! An endpoint that listens: connections wait in its backlog until they are accepted. Who takes one out of it, with the endpoint's state locked, has it: the
//! caller of accept(2), or the end of the listener, which resets those that nobody accepted.

use alloc::collections::VecDeque;

use frame::Cx;
use refs::{StrongRc, Waker, WeakRc};

use super::endpoint::Role;
use super::{Endpoint, Kind, garbage};
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::fs::fasync::Band;
use crate::net::Credentials;
use crate::step::{Step, Stop};

/// Connections that were not accepted yet.
pub(super) struct Listener {
    /// One more than so many wait at most.
    backlog: usize,
    waiting: VecDeque<StrongRc<Endpoint>>,
}

impl Listener {
    /// Whether one more may wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() <= self.backlog
    }

    /// Enters a connection, which is charged to the listener's inbox as long as it waits.
    pub(super) fn enter(&mut self, server: StrongRc<Endpoint>) {
        self.waiting.push_back(server);
    }

    /// The connections that were not accepted yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = WeakRc<Endpoint>> {
        self.waiting.iter().map(StrongRc::downgrade)
    }

    /// One less than how many may wait.
    pub(super) fn backlog(&self) -> usize {
        self.backlog
    }

    /// Whether a connection can be accepted.
    pub(super) fn is_ready(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl Endpoint {
    /// The connections in its backlog, if it listens.
    pub(super) fn backlog(&self, cx: &Cx) -> alloc::vec::Vec<WeakRc<Endpoint>> {
        match &self.state.lock(cx).role {
            Role::Listening(listener) => listener.waiting().collect(),
            _ => alloc::vec::Vec::new(),
        }
    }

    /// Whether it listens.
    pub fn is_listening(&self, cx: &Cx) -> bool {
        matches!(self.state.lock(cx).role, Role::Listening(_))
    }

    /// Has it accept connections, up to `backlog` of them unaccepted.
    ///
    /// # Errors
    /// EOPNOTSUPP: not of a kind that connects. EINVAL: it has no address, or is connected.
    pub fn listen(&self, backlog: usize, credentials: Credentials, cx: &Cx) -> Result<()> {
        if self.kind == Kind::Datagram {
            return Err(Errno::EOPNOTSUPP);
        }
        let mut state = self.state.lock(cx);
        if state.address.is_none() {
            return Err(Errno::EINVAL);
        }
        state.credentials = credentials;
        match &mut state.role {
            Role::Connecting | Role::Connected(_) | Role::Closed => return Err(Errno::EINVAL),
            Role::Listening(listener) => listener.backlog = backlog,
            role @ Role::Init => *role = Role::Listening(Listener { backlog, waiting: VecDeque::new() }),
        }
        drop(state);
        self.writable.wake_all();
        Ok(())
    }

    /// Takes the oldest connection that was not accepted yet.
    ///
    /// # Errors
    /// EOPNOTSUPP: not of a kind that connects. EINVAL: it does not listen, or nobody connects any more since it was shut down and the caller would wait. EBADF:
    /// it was closed. `Block`.
    pub fn accept(&self, waker: Option<Waker>, cx: &Cx) -> Step<StrongRc<Endpoint>> {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        if self.kind == Kind::Datagram {
            return Err(Errno::EOPNOTSUPP.into());
        }
        // What was sent to it cannot be received through the listener any more, but through its own socket.
        let _transfer = garbage::Transfer::begin();
        let accepted = {
            let mut state = self.state.lock(cx);
            let shutdown = state.shutdown;
            let listener = match &mut state.role {
                Role::Listening(listener) => listener,
                Role::Closed => return Err(Errno::EBADF.into()),
                _ => return Err(Errno::EINVAL.into()),
            };
            match listener.waiting.pop_front() {
                Some(accepted) => accepted,
                None if shutdown.reading && waker.is_some() => return Err(Errno::EINVAL.into()),
                None => return Err(Stop::Block),
            }
        };
        self.inbox.lock(cx).end_connections(1);
        self.writable.wake();
        Ok(accepted)
    }

    /// Puts a connection back that could not be handed out.
    pub fn put_back(&self, endpoint: StrongRc<Endpoint>, cx: &Cx) {
        // Before anybody can take it out again.
        self.inbox.lock(cx).put_connection_back();
        let left = match &mut self.state.lock(cx).role {
            Role::Listening(listener) => {
                listener.waiting.push_front(endpoint);
                None
            }
            _ => Some(endpoint),
        };
        if let Some(endpoint) = left {
            self.inbox.lock(cx).end_connections(1);
            // The listener was closed meanwhile.
            endpoint.get(cx).was_not_accepted(cx);
        }
        // Others may have found nothing meanwhile.
        self.readable.wake();
    }

    /// Has nobody connect to it any more, because it is about to be closed, and resets the connections that nobody accepted.
    pub(super) fn stop_listening(&self, cx: &Cx) {
        let waiting = {
            let mut state = self.state.lock(cx);
            state.shutdown.reading = true;
            match &mut state.role {
                Role::Listening(listener) => {
                    let waiting = core::mem::take(&mut listener.waiting);
                    state.role = Role::Closed;
                    waiting
                }
                _ => return,
            }
        };
        for endpoint in &waiting {
            endpoint.get(cx).was_not_accepted(cx);
        }
        self.inbox.lock(cx).end_connections(waiting.len() as u32);
    }

    /// Tells its peer that nobody accepted the connection.
    fn was_not_accepted(&self, cx: &Cx) {
        self.reset_peer(cx);
        self.signal_peer(Events::IN, Band::HangUp, cx);
        garbage::leave_messages(self, cx);
    }
}

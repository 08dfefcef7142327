//! An endpoint that is neither connected nor listens: it gets its address and its peer.

use frame::Cx;
use refs::{Waker, WeakRc};

use super::connected::Connected;
use super::endpoint::Role;
use super::{Address, Endpoint, Kind};
use crate::error::Errno;
use crate::fs::fasync::Band;
use crate::fs::{Events, VfsCaller};
use crate::net::Credentials;
use crate::step::{Interruption, Step, Stop};

impl Endpoint {
    /// Gives it an address.
    ///
    /// # Errors
    /// EINVAL: it has one. EADDRINUSE and the others of bind(2).
    pub fn bind(&self, address: Address, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        {
            let own = &mut self.state.lock(cx).address;
            if own.is_some() {
                return Err(Errno::EINVAL.into());
            }
            // From here on no other thread gives it one.
            *own = Some(address.clone());
        }
        let bound = address.bind(self.name, me, cx);
        if bound.is_err() {
            self.state.lock(cx).address = None;
        }
        bound
    }

    /// Connects it, which is `own`'s, to whom `target` names (a datagram socket: says whom it sends to).
    ///
    /// # Errors
    /// ECONNREFUSED: nobody listens there (any more). EPROTOTYPE: of another kind. EISCONN, EINVAL. `Block` while the backlog is full.
    pub fn connect(&self, target: WeakRc<Endpoint>, own: Credentials, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let other = target.upgrade(cx).map_err(|_| Errno::ECONNREFUSED)?;
        if other.kind != self.kind {
            return Err(Errno::EPROTOTYPE.into());
        }
        if self.kind == Kind::Datagram {
            let (address, credentials) = other.identity(cx);
            self.join(target, address, credentials, cx);
            return Ok(());
        }
        self.claim(cx)?;
        let outcome = self.connect_claimed(target, &other, own, waker, cx);
        if outcome.is_err() {
            self.state.lock(cx).role = Role::Init;
        }
        outcome
    }

    /// Begins to connect it: no other thread does, and it does not begin to listen meanwhile.
    ///
    /// # Errors
    /// EISCONN, EINVAL. `Pause` while another thread connects it, which takes no wait.
    fn claim(&self, cx: &Cx) -> Step<()> {
        let role = &mut self.state.lock(cx).role;
        match role {
            Role::Init => *role = Role::Connecting,
            Role::Connecting => return Err(Stop::Pause(Interruption::KillOnly)),
            Role::Connected(_) => return Err(Errno::EISCONN.into()),
            Role::Listening(_) => return Err(Errno::EINVAL.into()),
        }
        Ok(())
    }

    /// Connects it, which was claimed. Both ends are joined before anybody can accept the other: the listener is locked, then this end, which
    /// is no listener.
    fn connect_claimed(
        &self,
        target: WeakRc<Endpoint>,
        other: &Endpoint,
        own: Credentials,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
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
            if state.shutdown.reading {
                return Err(Errno::ECONNREFUSED.into());
            }
            let Role::Listening(listener) = &mut state.role else { return Err(Errno::ECONNREFUSED.into()) };
            listener.enter(server)?;
            let mut own = self.state.lock_after(&state, cx);
            own.role = Role::Connected(Connected { peer: name, address, credentials });
        }
        other.readable.wake();
        other.fasync.signal(Events::IN, Band::In, cx);
        Ok(())
    }
}

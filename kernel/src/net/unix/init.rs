//! An endpoint that is neither connected nor listens: it gets its address and its peer.

use alloc::boxed::Box;

use frame::Cx;
use refs::{StrongRc, Waker, WeakRc};

use super::connected::Connected;
use super::endpoint::{EndpointState, Role};
use super::{Address, Endpoint, Kind, address};
use crate::error::Errno;
use crate::fs::fasync::Band;
use crate::fs::{Events, VfsCaller};
use crate::net::Credentials;
use crate::step::{Interruption, Step, Stop};

impl EndpointState {
    /// Checks that it can be given an address.
    ///
    /// # Errors
    /// EINVAL: it has one. `Pause` while another thread gives it one, or finds that it cannot.
    fn check_nameless(&self) -> Step<()> {
        if self.is_binding {
            return Err(Stop::Pause(Interruption::KillOnly));
        }
        if self.address.is_some() { Err(Errno::EINVAL.into()) } else { Ok(()) }
    }
}

impl Endpoint {
    /// Gives it an address, which nobody sees before that is certain.
    ///
    /// # Errors
    /// EINVAL: it has one. EADDRINUSE and the others of bind(2). `Pause` while another thread binds it, which takes no wait.
    pub fn bind(&self, address: Address, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let Address::Path(path) = &address else { return self.bind_abstract(address, cx) };
        {
            let mut state = self.state.lock(cx);
            state.check_nameless()?;
            // The file is made with nothing locked.
            state.is_binding = true;
        }
        let made = address::make_file(path, me, cx);
        {
            let mut state = self.state.lock(cx);
            state.is_binding = false;
            if made.is_ok() {
                state.address = Some(address);
            }
        }
        // Who is reached has its address.
        *made?.attachment.lock(cx) = Some(Box::new(self.name));
        Ok(())
    }

    /// The name is taken with the endpoint locked: who finds it by that name sees that this is its address.
    fn bind_abstract(&self, address: Address, cx: &Cx) -> Step<()> {
        let mut state = self.state.lock(cx);
        state.check_nameless()?;
        if let Address::Abstract(name) = &address {
            address::take_abstract(name, self.name, cx)?;
        }
        state.address = Some(address);
        Ok(())
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
        } else {
            self.claim(cx)?;
            if let Err(stop) = self.connect_claimed(target, &other, own, waker, cx) {
                self.state.lock(cx).role = Role::Init;
                return Err(stop);
            }
        }
        // Who waited before there was a peer (an epoll set, for one) waits for that, too, from now on.
        self.readable.wake_all();
        Ok(())
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
            Role::Listening(_) | Role::Closed => return Err(Errno::EINVAL.into()),
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
        // What waits in it is charged as what waits in the listener, whose it will be.
        let payer = other.inbox.lock(cx).payer();
        let server = Endpoint::new(self.kind, credentials, &payer);
        server.get(cx).join(self.name, self.address(cx), own, cx);
        server.get(cx).state.lock(cx).address = address.clone();
        let name = server.downgrade();
        other.inbox.lock(cx).charge_connection()?;
        let entered = self.enter_backlog(other, server, Connected { peer: name, address, credentials }, cx);
        if let Err(stop) = entered {
            other.inbox.lock(cx).end_connections(1);
            return Err(stop);
        }
        other.readable.wake();
        other.fasync.signal(Events::IN, Band::In, cx);
        Ok(())
    }

    /// The other end waits in the listener's backlog from now on, and this end is connected to it.
    fn enter_backlog(&self, other: &Endpoint, server: StrongRc<Endpoint>, connected: Connected, cx: &Cx) -> Step<()> {
        let mut state = other.state.lock(cx);
        if state.shutdown.reading {
            return Err(Errno::ECONNREFUSED.into());
        }
        let Role::Listening(listener) = &mut state.role else { return Err(Errno::ECONNREFUSED.into()) };
        if !listener.has_room() {
            return Err(Stop::Block);
        }
        listener.enter(server);
        self.state.lock_after(&state, cx).role = Role::Connected(connected);
        Ok(())
    }
}

//! An endpoint gets its address and its peer.

use frame::Cx;
use linux_raw_sys::net;
use refs::{Waker, WeakRc};

use super::connections::Entry;
use super::endpoint::{Connecting, Phase, State};
use super::frames::Place;
use super::peer::Peer;
use super::{Endpoint, PORTS, remote, time_wait};
use crate::error::{Errno, Result};
use crate::net::counters;
use crate::net::inet::address::{Address, is_own, route, source_for};
use crate::net::inet::loopback;
use crate::net::inet::ports::{Bound, Key};
use crate::step::{Step, Stop};

impl Endpoint {
    /// Gives it an address: `user`'s.
    ///
    /// # Errors
    /// EINVAL: it has one. EADDRNOTAVAIL: it is none of this machine's. EADDRINUSE.
    pub fn bind(&self, address: Address, user: u32, cx: &Cx) -> Result<()> {
        let (is_free, key) = {
            let settings = self.settings.lock(cx).clone();
            let is_any_source = settings.is_on(net::SOL_IP, net::IP_FREEBIND)
                || settings.is_on(net::SOL_IP, net::IP_TRANSPARENT)
                || settings.is_on(net::SOL_IPV6, net::IPV6_FREEBIND);
            if !address.ip.is_unspecified() && !is_own(address.ip) && !is_any_source {
                return Err(Errno::EADDRNOTAVAIL);
            }
            let state = self.state.lock(cx);
            let is_free = matches!(state.phase, Phase::Closed) && state.bound.is_none();
            (is_free, Key { ip: address.ip, ..state.key(&settings, user) })
        };
        if !is_free {
            return Err(Errno::EINVAL);
        }
        let bound = match address.port {
            0 => claim_any(key, cx)?,
            port => PORTS.claim(port, key)?,
        };
        let mut state = self.state.lock(cx);
        if state.bound.is_some() {
            // Another thread was quicker. What is not needed goes with the lock free.
            drop(state);
            return Err(Errno::EINVAL);
        }
        state.local = Address { ip: address.ip, port: bound.port() };
        state.bound = Some(bound);
        state.is_chosen = true;
        Ok(())
    }

    /// Connects it: the first call begins, and says `Block` as long as nobody heard how it went; a call after that says how.
    ///
    /// # Errors
    /// EISCONN; ENETUNREACH, EADDRNOTAVAIL; ECONNREFUSED, ECONNRESET: what came of it. `Block`.
    pub fn connect(&self, to: Address, user: u32, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if let Some(waker) = waker {
            self.writable.register(waker, cx);
        }
        {
            let mut state = self.state.lock(cx);
            match (state.connecting, &state.phase) {
                (Connecting::Done, _) | (Connecting::No, Phase::Listening(_)) => return Err(Errno::EISCONN.into()),
                (Connecting::No, _) => {}
                (_, Phase::Connecting) => return Err(Stop::Block),
                (_, Phase::Connected) => {
                    state.connecting = Connecting::Done;
                    return Ok(());
                }
                (_, Phase::Closed | Phase::Listening(_)) => {
                    let error = state.error.take().unwrap_or(Errno::ECONNABORTED);
                    state.begin_anew(self.version);
                    return Err(error.into());
                }
            }
        }
        self.begin_to_connect(to, user, cx)?;
        counters::TCP_ACTIVE.count();
        Err(Stop::Block)
    }

    /// What a call says that did not wait for the connection: that it was begun, or that another call did that.
    pub(super) fn unfinished(&self, cx: &Cx) -> Errno {
        let mut state = self.state.lock(cx);
        match state.connecting {
            Connecting::Begun => {
                state.connecting = Connecting::Told;
                Errno::EINPROGRESS
            }
            _ => Errno::EALREADY,
        }
    }

    fn begin_to_connect(&self, to: Address, user: u32, cx: &Cx) -> Step<()> {
        let settings = self.settings.lock(cx).clone();
        let to = Address { ip: route(to.ip)?, port: to.port };
        let (key, has_port) = {
            let state = self.state.lock(cx);
            let only_v6 = settings.is_on(net::SOL_IPV6, net::IPV6_V6ONLY);
            self.version.check_reach(state.local.ip, only_v6, to.ip)?;
            let ip = if state.local.ip.is_unspecified() { source_for(to.ip) } else { state.local.ip };
            (Key { ip, ..state.key(&settings, user) }, state.bound.is_some())
        };
        if to.ip == crate::net::inet::address::BROADCAST {
            return Err(Errno::ENETUNREACH.into());
        }
        crate::memory::admit()?;
        let own = if has_port { None } else { Some(claim_any(key, cx).map_err(|_| Errno::EADDRNOTAVAIL)?) };
        let local = self.take_addresses(key, own, to, cx)?;
        if has_port {
            // A port that nobody had is left of no connection.
            time_wait::end(&(local, to));
        }
        if !is_own(to.ip) {
            return self.connect_over_network(local, to, cx);
        }
        if loopback::watched() {
            Place::new(local, to).show_syn(cx);
        }
        match PORTS.find(to, local) {
            Some(listener) => self.ask(listener, to, cx),
            None if local == to => self.connect_to_itself(cx),
            None => self.refused(cx),
        }
        Ok(())
    }

    /// Has it connected with another machine.
    fn connect_over_network(&self, local: Address, to: Address, cx: &Cx) -> Step<()> {
        let payer = self.payer(cx);
        if let Err(error) = remote::connect(self, (local, to), &payer, cx) {
            self.failed(error, cx);
        }
        Ok(())
    }

    /// Whether it waits for a connection.
    pub(super) fn is_connecting(&self, cx: &Cx) -> bool {
        matches!(self.state.lock(cx).phase, Phase::Connecting)
    }

    /// Its peer is `proxy` from now on, if it still waits for a connection; whether it does.
    pub(super) fn connect_with(&self, proxy: &Endpoint, cx: &Cx) -> bool {
        proxy.state.lock(cx).become_connected(Peer::new(self.name));
        {
            let mut state = self.state.lock(cx);
            if !matches!(state.phase, Phase::Connecting) {
                return false;
            }
            state.become_connected(Peer::new(proxy.name));
        }
        self.wake_all();
        true
    }

    /// Has it make a connection with these addresses: its own.
    fn take_addresses(&self, key: Key, own: Option<Bound<Endpoint>>, to: Address, cx: &Cx) -> Step<Address> {
        let mut state = self.state.lock(cx);
        if !matches!(state.phase, Phase::Closed) || state.connecting != Connecting::No {
            return Err(Stop::Pause(crate::step::Interruption::KillOnly));
        }
        let port = match (&state.bound, &own) {
            (Some(bound), _) | (None, Some(bound)) => bound.port(),
            (None, None) => return Err(Stop::Pause(crate::step::Interruption::KillOnly)),
        };
        let local = Address { ip: key.ip, port };
        let entry = Entry::new(local, to, self.name)?;
        state.begin_anew(self.version);
        if state.bound.is_none() {
            state.bound = own;
        }
        state.error = None;
        state.entry = Some(entry);
        state.local = local;
        state.remote = Some(to);
        state.phase = Phase::Connecting;
        state.connecting = Connecting::Begun;
        Ok(local)
    }

    /// Asks a listener to let it in.
    fn ask(&self, listener: WeakRc<Endpoint>, to: Address, cx: &Cx) {
        let Ok(other) = listener.upgrade(cx) else { return self.refused(cx) };
        if let Err(error) = other.let_in_or_queue(self, to, cx) {
            self.failed(error, cx);
        }
    }

    /// It is its own peer: what it sends it receives.
    fn connect_to_itself(&self, cx: &Cx) {
        self.state.lock(cx).become_connected(Peer::new(self.name));
        self.wake_all();
    }

    /// Nobody listens where it wants to be let in.
    pub(super) fn refused(&self, cx: &Cx) {
        self.failed(Errno::ECONNREFUSED, cx);
    }

    pub(super) fn failed(&self, error: Errno, cx: &Cx) {
        let refused = {
            let mut state = self.state.lock(cx);
            if !matches!(state.phase, Phase::Connecting) {
                return;
            }
            state.error = Some(error);
            let refused = state.watched_place().filter(|_| error == Errno::ECONNREFUSED);
            state.disconnect();
            refused
        };
        if let Some(place) = refused {
            place.show_refused(cx);
        }
        counters::TCP_FAILED.count();
        self.wake_all();
        self.call_remote(cx);
    }
}

impl State {
    /// It has a peer from now on.
    pub(super) fn become_connected(&mut self, peer: Peer) {
        self.phase = Phase::Connected;
        self.peer = Some(peer);
    }
}

/// Takes a port that nobody has.
///
/// # Errors
/// EADDRINUSE: there is none.
pub(super) fn claim_any(key: Key, cx: &Cx) -> Result<Bound<Endpoint>> {
    PORTS.claim_any(key, cx).or_else(|refused| {
        let mut ended = (0..time_wait::PIECES).filter(|_| time_wait::end_some());
        ended.find_map(|_| PORTS.claim_any(key, cx).ok()).ok_or(refused)
    })
}

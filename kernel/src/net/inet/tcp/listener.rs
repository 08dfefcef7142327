//! An endpoint that listens: connections wait in its queue until they are accepted, and those who find the queue full wait to be let in. Who takes one out of it, with the endpoint's state
//! locked, has it: the caller of accept(2), or the end of the listener, which resets those that nobody accepted, some at a time.

use alloc::collections::VecDeque;

use frame::Cx;
use refs::{StrongRc, Waker, WeakRc};

use super::connect::claim_any;
use super::connections::Entry;
use super::endpoint::{CAPACITY, Connecting, Phase};
use super::frames::Place;
use super::peer::Peer;
use super::{Endpoint, PORTS, time_wait};
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::fs::fasync::Band;
use crate::net::counters;
use crate::net::inet::address::Address;
use crate::net::inet::loopback;
use crate::net::inet::ports::Key;
use crate::reclaim::Held;
use crate::step::{Step, Stop};

/// So many connections are ended in one part.
const AT_A_TIME: usize = 8;
/// So many wait at most to be let in.
const MOST_ASKING: usize = 4096;

/// Connections that were not accepted yet.
pub(super) struct Listener {
    /// One more than so many wait at most.
    backlog: usize,
    waiting: VecDeque<StrongRc<Endpoint>>,
    /// Who wait to be let in.
    asking: VecDeque<WeakRc<Endpoint>>,
    /// Nobody is let in any more.
    is_ending: bool,
}

impl Listener {
    /// How many connections can be accepted.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many can wait, but for one.
    pub(super) fn most(&self) -> usize {
        self.backlog
    }

    /// One more wants to be let in.
    ///
    /// # Errors
    /// ETIMEDOUT: too many do.
    fn ask(&mut self, client: WeakRc<Endpoint>) -> Result<()> {
        if self.asking.len() >= MOST_ASKING {
            self.asking.retain(|client| !client.is_gone());
        }
        if self.asking.len() >= MOST_ASKING || self.asking.try_reserve(1).is_err() {
            return Err(Errno::ETIMEDOUT);
        }
        self.asking.push_back(client);
        Ok(())
    }
}

impl Endpoint {
    /// Has it accept connections, up to `backlog` of them unaccepted.
    ///
    /// # Errors
    /// EINVAL: it is connected. EADDRINUSE.
    pub fn listen(&self, backlog: usize, user: u32, cx: &Cx) -> Result<()> {
        let settings = self.settings.lock(cx).clone();
        let (key, has_port) = {
            let mut state = self.state.lock(cx);
            match &mut state.phase {
                Phase::Listening(listener) if !listener.is_ending => {
                    listener.backlog = backlog;
                    return Ok(());
                }
                Phase::Closed => {}
                _ => return Err(Errno::EINVAL),
            }
            if state.connecting != Connecting::No {
                return Err(Errno::EINVAL);
            }
            (Key { listens: true, ..state.key(&settings, user) }, state.bound.is_some())
        };
        let own = if has_port { None } else { Some(claim_any(key, cx)?) };
        let mut state = self.state.lock(cx);
        if !matches!(state.phase, Phase::Closed) {
            return Err(Errno::EINVAL);
        }
        match (&mut state.bound, own) {
            (Some(bound), _) => bound.change_if_free(key)?,
            (none, own) => *none = own,
        }
        let Some(bound) = &state.bound else { return Err(Errno::EADDRINUSE) };
        bound.reach(self.name, None)?;
        // It keeps its port from now on, whether it listens or not.
        state.is_chosen = true;
        state.begin_anew(self.version);
        let (waiting, asking) = (VecDeque::new(), VecDeque::new());
        state.phase = Phase::Listening(Listener { backlog, waiting, asking, is_ending: false });
        Ok(())
    }

    /// Lets a client in that wants to be connected with `to`, or has it wait for that.
    ///
    /// # Errors
    /// ECONNREFUSED: it does not listen. ETIMEDOUT: too many wait. ENOMEM, EADDRNOTAVAIL.
    pub(super) fn let_in_or_queue(&self, client: &Endpoint, to: Address, cx: &Cx) -> Result<()> {
        let is_full = {
            let mut state = self.state.lock(cx);
            let Phase::Listening(listener) = &mut state.phase else { return Err(Errno::ECONNREFUSED) };
            if listener.is_ending {
                return Err(Errno::ECONNREFUSED);
            }
            let is_full = listener.waiting.len() > listener.backlog;
            if is_full {
                listener.ask(client.name)?;
            }
            is_full
        };
        if is_full {
            counters::LISTENER_FULL.count();
            // One may have been accepted since.
            self.let_next_in(cx);
            return Ok(());
        }
        self.let_in(client, to, cx)
    }

    /// Makes the other end of a client's connection, which waits to be accepted from now on.
    fn let_in(&self, client: &Endpoint, to: Address, cx: &Cx) -> Result<()> {
        let settings = self.settings.lock(cx).clone();
        let from = client.address(cx);
        let (payer, key, inherits) = {
            let mut state = self.state.lock(cx);
            state.held.add(Held::Socket, 1)?;
            let inherits = (state.low_water, state.urgent_inline, state.linger, state.input.limit());
            (state.held.payer().share(), Key { ip: to.ip, listens: false, ..state.key(&settings, 0) }, inherits)
        };
        let (low_water, urgent_inline, linger, capacity) = inherits;
        time_wait::end(&(to, from));
        let server = Endpoint::with(self.version, &payer, settings, capacity.min(CAPACITY));
        let made = Entry::new(to, from, server.downgrade()).and_then(|entry| Ok((entry, PORTS.join(to.port, key)?)));
        let (entry, bound) = match made {
            Ok(made) => made,
            Err(error) => {
                self.state.lock(cx).held.remove(Held::Socket, 1);
                return Err(error);
            }
        };
        {
            let server = server.get(cx);
            let mut state = server.state.lock(cx);
            (state.low_water, state.urgent_inline, state.linger) = (low_water, urgent_inline, linger);
            (state.local, state.remote) = (to, Some(from));
            (state.entry, state.bound) = (Some(entry), Some(bound));
            state.become_connected(Peer::new(client.name));
            state.connecting = Connecting::Done;
        }
        if loopback::watched() && client.remote(cx).is_none() {
            Place::new(from, to).show_let_in(cx);
        }
        if let Err(error) = self.enter(client, server, cx) {
            self.state.lock(cx).held.remove(Held::Socket, 1);
            return Err(error);
        }
        counters::TCP_PASSIVE.count();
        client.wake_all();
        client.call_remote(cx);
        self.readable.wake();
        self.fasync.signal(Events::IN, Band::In, cx);
        Ok(())
    }

    /// The other end waits in the queue from now on, and the client is connected to it.
    fn enter(&self, client: &Endpoint, server: StrongRc<Endpoint>, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        let listener = match &mut state.phase {
            Phase::Listening(listener) if !listener.is_ending => listener,
            _ => return Err(Errno::ECONNREFUSED),
        };
        listener.waiting.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let name = server.downgrade();
        listener.waiting.push_back(server);
        let mut client = client.state.lock_after(&state, cx);
        // It was closed meanwhile, or not: then nobody hears of it any more.
        if matches!(client.phase, Phase::Connecting) {
            client.become_connected(Peer::new(name));
        }
        Ok(())
    }

    /// Lets those in who wait for it, as long as there is room.
    fn let_next_in(&self, cx: &Cx) {
        for _ in 0..AT_A_TIME {
            let next = {
                let mut state = self.state.lock(cx);
                match &mut state.phase {
                    Phase::Listening(listener) if listener.waiting.len() <= listener.backlog => {
                        listener.asking.pop_front()
                    }
                    _ => None,
                }
            };
            let Some(next) = next else { return };
            let Ok(client) = next.upgrade(cx) else { continue };
            let to = match client.state.lock(cx) {
                state if matches!(state.phase, Phase::Connecting) => state.remote,
                _ => None,
            };
            if let Some(to) = to
                && self.let_in(&client, to, cx).is_err()
            {
                client.refused(cx);
            }
        }
    }

    /// Takes the oldest connection that was not accepted yet.
    ///
    /// # Errors
    /// EINVAL: it does not listen. `Block`.
    pub fn accept(&self, waker: Option<Waker>, cx: &Cx) -> Step<StrongRc<Endpoint>> {
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let accepted = {
            let mut state = self.state.lock(cx);
            let Phase::Listening(listener) = &mut state.phase else { return Err(Errno::EINVAL.into()) };
            if listener.is_ending {
                return Err(Errno::EINVAL.into());
            }
            let accepted = listener.waiting.pop_front().ok_or(Stop::Block)?;
            let is_asked = !listener.asking.is_empty();
            state.held.remove(Held::Socket, 1);
            (accepted, is_asked)
        };
        let (accepted, is_asked) = accepted;
        if is_asked {
            self.let_next_in(cx);
        }
        Ok(accepted)
    }

    /// Puts a connection back that could not be handed out.
    pub fn put_back(&self, endpoint: StrongRc<Endpoint>, cx: &Cx) {
        let left = {
            let mut state = self.state.lock(cx);
            match &mut state.phase {
                Phase::Listening(listener) if !listener.is_ending => {
                    listener.waiting.push_front(endpoint);
                    state.held.add_always(Held::Socket);
                    None
                }
                _ => Some(endpoint),
            }
        };
        if let Some(endpoint) = left {
            endpoint.get(cx).abort(cx);
        }
        // Others may have found nothing meanwhile.
        self.readable.wake();
    }

    /// If it listens: nobody is let in any more, and some of the connections that nobody accepted are reset; whether there are more.
    pub(super) fn stop_listening(&self, cx: &Cx) -> bool {
        let mut ended = [const { None }; AT_A_TIME];
        let mut asking = [const { None }; AT_A_TIME];
        let is_over = {
            let mut state = self.state.lock(cx);
            let Phase::Listening(listener) = &mut state.phase else { return false };
            let begins = !core::mem::replace(&mut listener.is_ending, true);
            ended.iter_mut().for_each(|place| *place = listener.waiting.pop_front());
            asking.iter_mut().for_each(|place| *place = listener.asking.pop_front());
            let is_over = listener.waiting.is_empty() && listener.asking.is_empty();
            let count = ended.iter().flatten().count() as u32;
            state.held.remove(Held::Socket, count);
            if begins && let Some(bound) = &state.bound {
                bound.hide(self.name);
            }
            if is_over {
                state.begin_anew(self.version);
                let settings = self.settings.with(|settings| settings.clone());
                let key = Key { listens: false, ..state.key(&settings, 0) };
                if let Some(bound) = &mut state.bound {
                    bound.change(key);
                }
            }
            is_over
        };
        for endpoint in ended.iter().flatten() {
            endpoint.get(cx).abort(cx);
        }
        for client in asking.iter().flatten() {
            if let Ok(client) = client.upgrade(cx) {
                client.refused(cx);
            }
        }
        self.readable.wake_all();
        !is_over
    }
}

//! [`Endpoint`]: one end of a connection, a listener, or neither yet.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use linux_raw_sys::net;
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::connections::Entry;
use super::listener::Listener;
use super::peer::Peer;
use super::remote::Remote;
use super::urgent::Urgent;
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::fs::fasync::FasyncList;
use crate::net::inet::address::{Address, Version};
use crate::net::inet::ports::{Bound, Key};
use crate::net::inet::settings::Settings;
use crate::net::registry::Counted;
use crate::net::{Cookie, Shutdown};
use crate::reclaim::{Held, OfInbox, Payer};
use crate::ring::Ring;

/// How many bytes wait at most to be received.
pub(super) const CAPACITY: usize = 1 << 18;

/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How many there are.
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// One end. Owner: its socket, or the listener in whose queue it waits; others know it by name. Its destruction takes as long as its tables' entries and one ring's memory; it is closed before
/// (`close`), which tells its peer and wakes all who wait.
pub struct Endpoint {
    pub(super) name: WeakRc<Endpoint>,
    /// How its program writes down addresses.
    pub version: Version,
    /// The number of its socket's inode; 0: no program has opened it yet.
    pub inode: AtomicU64,
    /// Its number among all sockets.
    pub cookie: Cookie,
    _counted: Option<Counted>,
    /// Who waits for something to receive or accept, or for the connection.
    pub(super) readable: WaitList,
    /// Who waits for room at the peer, or for the connection.
    pub(super) writable: WaitList,
    /// Its socket, if that asks for signals.
    pub(super) fasync: FasyncList,
    /// What programs have set.
    pub(in crate::net::inet) settings: SpinLock<Settings>,
    pub(super) state: SpinLock<State>,
    /// It stands for the end at another machine: who moves its bytes. Then it has no input of its own.
    remote: Option<WeakRc<Remote>>,
}

/// What changes in an endpoint's life.
pub(super) struct State {
    pub(super) phase: Phase,
    /// Its port.
    pub(super) bound: Option<Bound<Endpoint>>,
    /// The program has chosen the address, so it keeps it without a connection.
    pub(super) is_chosen: bool,
    pub(super) local: Address,
    pub(super) remote: Option<Address>,
    pub(super) entry: Option<Entry>,
    pub(super) peer: Option<Peer>,
    /// What was sent to it and not received yet.
    pub(super) input: Ring,
    /// How many bytes were received: the place of the first one in `input`.
    pub(super) received: u64,
    /// How many were sent.
    pub(super) sent: u64,
    pub(super) urgent: Option<Urgent>,
    /// Its input has memory, connections wait; and who is charged for them.
    pub(super) held: OfInbox,
    /// The peer sends nothing more.
    pub(super) is_finished: bool,
    pub(super) shutdown: Shutdown,
    /// What has happened and was not told yet (SO_ERROR).
    pub(super) error: Option<Errno>,
    pub(super) connecting: Connecting,
    /// The peer found no room in `input`, and was not told since that there is some.
    pub(super) peer_waits: bool,
    /// The peer found no room in `input`, and has sent nothing since: it has more, so `input` keeps its memory when it is empty.
    pub(super) peer_has_more: bool,
    /// With so many bytes it can be read (SO_RCVLOWAT).
    pub(super) low_water: usize,
    /// The urgent byte is one of the others (SO_OOBINLINE).
    pub(super) urgent_inline: bool,
    /// How long close(2) waits (SO_LINGER), in seconds; 0: it resets the connection.
    pub(super) linger: Option<u32>,
}

/// What an endpoint does.
pub(super) enum Phase {
    /// Nothing: not yet, or no more.
    Closed,
    /// It waits to be let in by a listener.
    Connecting,
    /// It has a peer, though one or both may send nothing more.
    Connected,
    /// It accepts connections.
    Listening(Listener),
}

/// What connect(2) was told of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connecting {
    /// None was begun.
    No,
    /// It has begun, and nobody knows how that went.
    Begun,
    /// Likewise, and a call was told that it goes on.
    Told,
    /// It is connected, or accepted.
    Done,
}

/// The states of a connection as programs are told of them (`enum` in the kernel's `net/tcp_states.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TcpState {
    /// Both ends send.
    Established = 1,
    /// It waits to be let in.
    SynSent = 2,
    /// It sends nothing more.
    FinWait2 = 5,
    /// Its socket is gone, and both ends send nothing more.
    TimeWait = 6,
    /// It has no connection.
    Close = 7,
    /// The peer sends nothing more.
    CloseWait = 8,
    /// It accepts connections.
    Listen = 10,
}

impl Endpoint {
    /// A new one. What waits in it is charged to `payer`.
    pub fn new(version: Version, payer: &Payer) -> StrongRc<Endpoint> {
        Endpoint::with(version, payer, Settings::default(), CAPACITY)
    }

    /// One that stands for the end at another machine, whose address is the second one, until it is let in or connected.
    pub(super) fn proxy(
        version: Version,
        payer: &Payer,
        ends: (Address, Address),
        remote: WeakRc<Remote>,
    ) -> StrongRc<Endpoint> {
        let proxy = Endpoint::made(version, payer, Settings::default(), CAPACITY, Some(remote));
        proxy.with(|proxy| {
            proxy.state.with(|state| {
                (state.local, state.remote) = (ends.1, Some(ends.0));
                state.phase = Phase::Connecting;
            });
        });
        proxy
    }

    /// Who moves its bytes, if it stands for the end at another machine.
    pub(super) fn remote<'cx>(&'cx self, cx: &'cx Cx) -> Option<TempRc<'cx, Remote>> {
        self.remote?.upgrade(cx).ok()
    }

    /// Who moves its bytes is to look, if it stands for the end at another machine.
    pub(super) fn call_remote(&self, cx: &Cx) {
        if let Some(remote) = self.remote(cx) {
            remote.go_on(cx);
        }
    }

    /// Who is charged for its connections, while it accepts some.
    pub(super) fn payer_if_listening(&self, cx: &Cx) -> Option<Payer> {
        let state = self.state.lock(cx);
        matches!(state.phase, Phase::Listening(_)).then(|| state.held.payer().share())
    }

    /// Who is charged for what it holds.
    pub(super) fn payer(&self, cx: &Cx) -> Payer {
        self.state.lock(cx).held.payer().share()
    }

    /// Its peer, while it has a connection.
    pub(super) fn connected_peer(&self, cx: &Cx) -> Option<Peer> {
        let state = self.state.lock(cx);
        state.peer.filter(|_| matches!(state.phase, Phase::Connected))
    }

    pub(super) fn with(version: Version, payer: &Payer, settings: Settings, capacity: usize) -> StrongRc<Endpoint> {
        Endpoint::made(version, payer, settings, capacity, None)
    }

    fn made(
        version: Version,
        payer: &Payer,
        settings: Settings,
        capacity: usize,
        remote: Option<WeakRc<Remote>>,
    ) -> StrongRc<Endpoint> {
        StrongRc::new_cyclic(|name| Endpoint {
            remote,
            name,
            version,
            inode: AtomicU64::new(0),
            cookie: Cookie::default(),
            _counted: remote.is_none().then(|| Counted::new(&COUNT)),
            readable: WaitList::new(),
            writable: WaitList::new(),
            fasync: FasyncList::default(),
            settings: SpinLock::new(settings),
            state: SpinLock::new(State {
                phase: Phase::Closed,
                bound: None,
                is_chosen: false,
                local: version.unbound(),
                remote: None,
                entry: None,
                peer: None,
                input: Ring::new(capacity),
                received: 0,
                sent: 0,
                urgent: None,
                held: OfInbox::of(payer),
                is_finished: false,
                shutdown: Shutdown { reading: false, writing: false },
                error: None,
                connecting: Connecting::No,
                peer_waits: false,
                peer_has_more: false,
                low_water: 1,
                urgent_inline: false,
                linger: None,
            }),
        })
    }

    /// Wakes all who wait for anything.
    pub(super) fn wake_all(&self) {
        self.readable.wake_all();
        self.writable.wake_all();
    }

    /// Its own address.
    pub fn address(&self, cx: &Cx) -> Address {
        self.state.lock(cx).local
    }

    /// Its peer's.
    ///
    /// # Errors
    /// ENOTCONN.
    pub fn peer_address(&self, cx: &Cx) -> Result<Address> {
        let state = self.state.lock(cx);
        match state.phase {
            Phase::Connected => state.remote.ok_or(Errno::ENOTCONN),
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// Whose it is.
    pub fn user(&self, cx: &Cx) -> u32 {
        self.state.lock(cx).bound.as_ref().map_or(0, |bound| bound.key().user)
    }

    /// With how many bytes it can be read (SO_RCVLOWAT).
    pub fn low_water(&self, cx: &Cx) -> usize {
        self.state.lock(cx).low_water
    }

    /// How much memory its input has.
    pub fn kernel_bytes(&self, cx: &Cx) -> usize {
        self.state.lock(cx).input.allocated()
    }

    /// Its state, with its addresses.
    pub fn tcp_state(&self, cx: &Cx) -> (TcpState, Address, Option<Address>) {
        let state = self.state.lock(cx);
        (state.tcp_state(), state.local, state.remote)
    }

    /// How many bytes wait, or connections of a listener; and whose it is.
    pub fn waiting(&self, cx: &Cx) -> usize {
        let state = self.state.lock(cx);
        match &state.phase {
            Phase::Listening(listener) => listener.waiting(),
            _ => state.input.len(),
        }
    }

    /// How many bytes wait to be received, or connections; and how many bytes to be sent, or how many connections may wait.
    pub fn queues(&self, cx: &Cx) -> [u32; 2] {
        let state = self.state.lock(cx);
        match &state.phase {
            Phase::Listening(listener) => [listener.waiting() as u32, listener.most() as u32],
            // The end of what the peer sends counts as a byte.
            _ => [state.input.len() as u32 + u32::from(state.is_finished), 0],
        }
    }

    /// Which directions are ended, and whether its program has chosen its port.
    pub fn chosen(&self, cx: &Cx) -> (Shutdown, bool) {
        let state = self.state.lock(cx);
        (Shutdown { reading: state.shutdown.reading || state.is_finished, ..state.shutdown }, state.is_chosen)
    }

    /// What is ready, of `interest` and of what is always told.
    pub fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        const IN: Events = Events::IN.union(Events::READ_NORMAL);
        const OUT: Events = Events::OUT.union(Events::WRITE_NORMAL);
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
            self.writable.register(waker, cx);
        }
        let (mut events, peer) = {
            let state = self.state.lock(cx);
            let mut events = Events::empty();
            events.set(Events::ERROR, state.error.is_some());
            let reading = state.shutdown.reading || state.is_finished;
            events.set(Events::HANG_UP, (reading && state.shutdown.writing) || matches!(state.phase, Phase::Closed));
            events.set(IN | Events::READ_HANG_UP, reading);
            match &state.phase {
                Phase::Listening(listener) => {
                    let waiting = if listener.waiting() > 0 { IN } else { Events::empty() };
                    return waiting & interest;
                }
                Phase::Connecting => return events,
                Phase::Closed | Phase::Connected => {}
            }
            if state.readable() >= state.low_water {
                events |= IN;
            }
            events.set(Events::PRIORITY, state.urgent.as_ref().is_some_and(Urgent::is_unread));
            let asks = interest.intersects(OUT) && !state.shutdown.writing;
            (events, if asks { state.peer } else { None })
        };
        if peer.is_none_or(|peer| peer.has_room(self.name, cx)) {
            events |= OUT;
        }
        events
    }
}

impl State {
    pub(super) fn tcp_state(&self) -> TcpState {
        match self.phase {
            Phase::Closed => TcpState::Close,
            Phase::Connecting => TcpState::SynSent,
            Phase::Listening(_) => TcpState::Listen,
            Phase::Connected if self.is_finished => TcpState::CloseWait,
            Phase::Connected if self.shutdown.writing => TcpState::FinWait2,
            Phase::Connected => TcpState::Established,
        }
    }

    /// In which way it uses its port, or would.
    pub(super) fn key(&self, settings: &Settings, user: u32) -> Key {
        Key {
            ip: self.bound.as_ref().map_or(self.local.ip, |bound| bound.key().ip),
            only_v6: settings.is_on(net::SOL_IPV6, net::IPV6_V6ONLY),
            reuses: settings.is_on(net::SOL_SOCKET, net::SO_REUSEADDR),
            shares: settings.is_on(net::SOL_SOCKET, net::SO_REUSEPORT),
            user: self.bound.as_ref().map_or(user, |bound| bound.key().user),
            listens: matches!(self.phase, Phase::Listening(_)),
        }
    }

    /// It has no connection any more. Its addresses are told as they were.
    pub(super) fn disconnect(&mut self) {
        self.phase = Phase::Closed;
        self.peer = None;
        self.peer_has_more = false;
        self.entry = None;
        self.shutdown = Shutdown { reading: true, writing: true };
        if !self.is_chosen {
            self.bound = None;
        }
    }

    /// It is as it was before it was connected.
    pub(super) fn begin_anew(&mut self, version: Version) {
        self.disconnect();
        self.shutdown = Shutdown { reading: false, writing: false };
        self.is_finished = false;
        self.connecting = Connecting::No;
        self.remote = None;
        self.urgent = None;
        (self.received, self.sent) = (0, 0);
        self.input.clear();
        self.held.remove(Held::Message, self.held.count(Held::Message));
        self.local = match &self.bound {
            Some(bound) => Address { ip: bound.key().ip, port: bound.port() },
            None => version.unbound(),
        };
    }
}

//! [`Remote`]: a connection with another machine.
//!
//! ```text
//!   socket's Endpoint <--Peer--> proxy Endpoint --- Remote --- tcpip's Connection <--segments--> interface
//! ```
//!
//! To a socket its peer is an endpoint of this machine, as always: the *proxy*, which nobody has as a file. [`Remote`] is the program behind it: it moves bytes between the proxy and the protocol's control block, and tells each side what
//! happens at the other. So listening, accepting, closing and all options are the same for connections within this machine.
//!
//! Whoever changes something (a segment has come, the socket has written, a timer is due) calls [`Remote::go_on`]. One at a time works there; who comes meanwhile has that one look again. So bytes and segments keep their order, and no lock is held
//! where others are told.
//!
//! | file | what it is |
//! | --- | --- |
//! | `arrive` | a segment has come, or word of one that did not arrive; SYN cookies |
//! | `transfer` | bytes go between the socket and the control block, and segments out |
//! | `options` | what the socket's program has chosen, and what it is told |
//! | `timer` | when connections are looked at |
//! | `left` | what is left of a connection when its socket is gone |
//!
//! Owner: the table of all, from the first packet to the end of TIME-WAIT, and until its socket has all that came before an end in order. It is charged to the group of the socket that has it ([`Held::Connection`](crate::reclaim::Held::Connection)), from connect(2), or the moment at which it can be accepted, until the socket lets go of it.
//! Then it is nobody's, of a bounded number ([`left`]). Its destruction frees its buffers: up to 256 KiB that go, 1 MiB that came and 256 KiB that the socket has not taken. One that is reset sends one segment before that. Nobody waits for it; who
//! waits at its socket is woken when the connection ends.
//!
//! Locks: a table's alone; a remote's `state`, after an endpoint's; that of the timers after a `state`.

mod arrive;
mod left;
mod options;
mod timer;
mod transfer;

use alloc::collections::BTreeMap;
use core::net::SocketAddr;

use frame::Cx;
use refs::{SpinLock, StrongRc, WeakRc};
use tcpip::tcp::{Connection, Error, State};

use super::Endpoint;
use super::endpoint::Phase;
use crate::error::{Errno, Result};
use crate::net::inet::address::{Address, Version};
use crate::net::inet::settings::Settings;
use crate::net::interface::{self, now};
use crate::reclaim::{OfConnection, Payer};

pub(super) use arrive::was_left;
pub(in crate::net::inet) use arrive::{segment_came, too_big, unreachable};
pub(in crate::net::inet) use timer::start;
pub(super) use transfer::SocketSaid;
pub(in crate::net::inet) use transfer::card_has_room;

use left::{HALF_OPEN, Left};
pub(super) use options::key;
use options::{Marks, errno_of, opening};

/// How many tables there are.
const TABLES: usize = 64;
/// So often somebody at work looks again for others before the timer's task does.
const MOST_ROUNDS: usize = 16;
/// So many segments are sent, or timers looked at, before others have their turn.
const AT_ONCE: usize = 64;
/// No more connections with other machines there are.
const MOST: usize = 65_536;

type Ends = (Address, Address);
type Table = SpinLock<BTreeMap<Ends, StrongRc<Remote>>>;

static REMOTES: [Table; TABLES] = [const { SpinLock::new(BTreeMap::new()) }; TABLES];

/// A connection with another machine.
pub struct Remote {
    name: WeakRc<Remote>,
    /// This machine's address, and the other's.
    ends: Ends,
    proxy: StrongRc<Endpoint>,
    state: SpinLock<Progress>,
}

struct Progress {
    connection: Connection,
    stage: Stage,
    marks: Marks,
    /// When the timer looks at it.
    armed: Option<u64>,
    /// It is not in the table any more, so no timer finds it.
    is_forgotten: bool,
    /// Somebody is at work, and is to look again.
    is_busy: bool,
    is_called: bool,
    /// The socket was told that nothing more comes.
    has_told_end: bool,
    /// Something is left to do when the timer looks, whatever the protocol says.
    is_unfinished: bool,
    /// The connection itself, as long as a socket has it.
    held: OfConnection,
    /// It is one of those that no socket has any more.
    left: Option<Left>,
}

/// Who waits for the connection.
enum Stage {
    /// A socket that has called connect(2).
    Opening(WeakRc<Endpoint>),
    /// A listener that is to let it in, who has one half-open connection more.
    Accepting { listener: WeakRc<Endpoint>, _half_open: Option<Left> },
    /// Nobody: it is there.
    Open,
}

/// What is to be told, and to whom.
enum News {
    Connected(WeakRc<Endpoint>),
    LetIn(WeakRc<Endpoint>),
    Waits(WeakRc<Endpoint>),
    Refused(WeakRc<Endpoint>, Error),
    Broken(Error),
    Nothing,
}

fn table((local, remote): &Ends) -> &'static Table {
    let hash = u32::from(local.port).wrapping_mul(0x9e37_79b1) ^ u32::from(remote.port).wrapping_mul(0x85eb_ca6b);
    &REMOTES[(hash >> 20) as usize % TABLES]
}

fn find(ends: &Ends, cx: &Cx) -> Option<WeakRc<Remote>> {
    table(ends).lock(cx).get(ends).map(StrongRc::downgrade)
}

pub(super) fn socket_address(address: Address) -> SocketAddr {
    SocketAddr::new(address.ip, address.port)
}

/// Has a socket connected with another machine.
///
/// # Errors
/// ENETUNREACH, EADDRNOTAVAIL, ENOMEM.
pub(super) fn connect(socket: &Endpoint, ends: Ends, payer: &Payer, cx: &Cx) -> Result<()> {
    let way = interface::way_to(ends.1.ip).map_err(|_| Errno::ENETUNREACH)?;
    let settings = socket.settings.lock(cx).clone();
    let connection = Connection::connect(now(), &opening(&ends, &way, &settings, cx));
    let beginning = Beginning { connection, stage: Stage::Opening(socket.name), version: socket.version };
    let name = Remote::enter(ends, beginning, &settings, payer, cx)?;
    if let Ok(remote) = name.upgrade(cx) {
        if let Err(error) = remote.begin_to_pay(cx) {
            remote.forget(cx);
            return Err(error);
        }
        remote.go_on(cx);
    }
    Ok(())
}

/// What a connection begins with.
struct Beginning {
    connection: Connection,
    stage: Stage,
    version: Version,
}

impl Remote {
    fn enter(ends: Ends, beginning: Beginning, settings: &Settings, payer: &Payer, cx: &Cx) -> Result<WeakRc<Remote>> {
        crate::memory::admit()?;
        let Beginning { connection, stage, version } = beginning;
        let remote = StrongRc::new_cyclic(|name| Remote {
            name,
            ends,
            proxy: Endpoint::proxy(version, payer, ends, name),
            state: SpinLock::new(Progress {
                connection,
                stage,
                marks: Marks::of(settings, ends.1.ip),
                armed: None,
                is_forgotten: false,
                is_busy: false,
                is_called: false,
                has_told_end: false,
                is_unfinished: false,
                held: OfConnection::default(),
                left: None,
            }),
        });
        let name = remote.downgrade();
        let mut table = table(&ends).lock(cx);
        if table.contains_key(&ends) || table.len() >= MOST / TABLES {
            return Err(Errno::EADDRNOTAVAIL);
        }
        table.insert(ends, remote);
        Ok(name)
    }

    /// The group of the socket that gets it is charged for it from now on.
    ///
    /// # Errors
    /// ENOMEM: the group's budget has no room for it.
    fn begin_to_pay(&self, cx: &Cx) -> Result<()> {
        let payer = self.proxy.get(cx).payer(cx);
        let mut held = OfConnection::of_nobody([1]);
        held.begin(&payer)?;
        self.state.lock(cx).held = held;
        Ok(())
    }

    /// Takes it out of the table, if that was not done before. A socket that still has it is told that it is over.
    fn forget(&self, cx: &Cx) {
        self.break_off(errno_of(Error::Reset), cx);
        self.disarm(cx);
        let gone = {
            let mut table = table(&self.ends).lock(cx);
            let is_it = table.get(&self.ends).is_some_and(|remote| remote.downgrade() == self.name);
            if is_it { table.remove(&self.ends) } else { None }
        };
        drop(gone);
    }

    /// Does what there is to do, unless somebody is at it.
    pub(super) fn go_on(&self, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            if state.is_busy {
                state.is_called = true;
                return;
            }
            state.is_busy = true;
        }
        for round in 1.. {
            self.advance(cx);
            self.take_from_socket(cx);
            self.give_to_socket(cx);
            self.transmit(cx);
            let mut state = self.state.lock(cx);
            let is_called = core::mem::take(&mut state.is_called);
            state.is_busy = is_called && round < MOST_ROUNDS;
            if state.is_busy {
                continue;
            }
            drop(state);
            if is_called {
                self.go_on_at(frame::time::now(), cx);
            }
            break;
        }
        self.arm(cx);
        if self.is_over(cx) {
            self.forget(cx);
        }
    }

    /// Tells who waits for the connection that it is there, or will not be.
    fn advance(&self, cx: &Cx) {
        let news = {
            let mut state = self.state.lock(cx);
            let is_open = !matches!(state.connection.state(), State::SynSent | State::SynReceived | State::Closed);
            let is_over = state.connection.state() == State::Closed;
            // After an end in order the socket gets what has come, and then the end of it: see `give_to_socket`.
            let is_in_order = matches!(state.stage, Stage::Open) && state.connection.is_peer_done();
            let error = match state.connection.take_error().filter(|_| is_over) {
                None if is_over && !is_in_order => Some(Error::Reset),
                error => error,
            };
            match (&state.stage, error) {
                (Stage::Opening(socket), Some(error)) => News::Refused(*socket, error),
                (Stage::Open, Some(error)) => News::Broken(error),
                (Stage::Opening(socket), None) if is_open => News::Connected(*socket),
                (Stage::Accepting { listener, .. }, None) if is_open => News::LetIn(*listener),
                (Stage::Opening(socket), None) => News::Waits(*socket),
                (Stage::Accepting { listener, .. }, None) if listener.is_gone() => News::Waits(*listener),
                _ => News::Nothing,
            }
        };
        match news {
            News::Refused(socket, error) => {
                if let Ok(socket) = socket.upgrade(cx) {
                    socket.failed(errno_of(error), cx);
                }
            }
            News::Broken(error) => self.break_off(errno_of(error), cx),
            News::Connected(socket) => {
                let connected = socket.upgrade(cx).is_ok_and(|socket| socket.connect_with(&self.proxy.get(cx), cx));
                self.opened(connected, cx);
            }
            News::LetIn(listener) => {
                let proxy = self.proxy.get(cx);
                // Whoever listens pays for it from now on.
                let is_paid = self.begin_to_pay(cx).is_ok();
                let let_in = is_paid
                    && listener
                        .upgrade(cx)
                        .is_ok_and(|listener| listener.let_in_or_queue(&proxy, self.ends.0, cx).is_ok());
                self.opened(let_in, cx);
            }
            News::Waits(socket) => {
                // It may have been closed.
                if !socket.upgrade(cx).is_ok_and(|socket| socket.is_connecting(cx)) {
                    self.state.lock(cx).connection.abort();
                }
            }
            News::Nothing => {}
        }
    }

    /// It is there; if nobody wants it, not any more.
    fn opened(&self, is_wanted: bool, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            state.stage = Stage::Open;
            if !is_wanted {
                state.connection.abort();
                state.held.end();
            }
        }
        // Something may have been chosen meanwhile.
        self.choose(cx);
    }

    /// The connection ended before its time: the socket is told why.
    fn break_off(&self, error: Errno, cx: &Cx) {
        self.state.lock(cx).held.end();
        let proxy = self.proxy.get(cx);
        let (peer, ends) = {
            let mut state = proxy.state.lock(cx);
            let peer = state.peer.filter(|_| matches!(state.phase, Phase::Connected));
            state.disconnect();
            (peer, state.ends())
        };
        if let Some(peer) = peer {
            peer.fail(proxy.name, ends, error, cx);
        }
    }

    /// The connection that a socket waits for will not come.
    fn refuse(&self, error: Error, cx: &Cx) {
        let socket = match self.state.lock(cx).stage {
            Stage::Opening(socket) => socket.upgrade(cx),
            _ => return,
        };
        if let Ok(socket) = socket {
            socket.failed(errno_of(error), cx);
        }
    }
}

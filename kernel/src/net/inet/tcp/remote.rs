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
//! Owner: the table of all, from the first packet to the end of TIME-WAIT. Its destruction frees its buffers, which are bounded. Nobody waits for it. What waits in its proxy is charged to the socket's group; it itself is not, and there are [`MOST`] at most.
//!
//! Locks: a table's alone; a remote's `state`, after an endpoint's.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::Reader;
use linux_raw_sys::net;
use refs::{SpinLock, StrongRc, WaitList, WeakRc};
use tasks::{Body, Next, StaticRef};
use tcpip::ip::{IpHeader, Packet, protocol};
use tcpip::tcp::{
    Blocked, Connection, Endpoints, Error, Header, KeepAlive, LONGEST_HEADER, Offload, Opening, Segment, Segmentation,
    Settings, State, Verdict, initial_sequence, timestamp_offset,
};
use tcpip::{Checksum, Duration, Key, OutgoingChecksum};

use super::endpoint::Phase;
use super::peer::{Peer, Sent};
use super::{Endpoint, PORTS};
use crate::error::{Errno, Result};
use crate::net::Source;
use crate::net::counters;
use crate::net::inet::address::{Address, Version};
use crate::net::inet::settings::{KEEP_COUNT_DEFAULT, KEEP_IDLE, KEEP_INTERVAL};
use crate::net::interface::{self, Unsent, Way, now};
use crate::reclaim::Payer;
use crate::ring::Ring;
use crate::sched::{self, Parameters};
use crate::step::{Step, Stop};
use crate::time::{self, Timeline};

/// How many tables there are.
const TABLES: usize = 64;
/// So often somebody at work looks again for others before the timer's task does.
const MOST_ROUNDS: usize = 16;
/// So many segments are sent before others have their turn.
const AT_ONCE: usize = 64;
/// Bytes that are moved in one go.
const PIECE: usize = 32_768;
/// How long who finds no room at the card waits, in nanoseconds.
const ROOM_PAUSE: u64 = 1_000_000;
/// No more connections with other machines there are.
const MOST: usize = 65_536;
/// No more of them wait for the last part of their beginning: what comes then is tried again by its machine.
const MOST_HALF_OPEN: usize = 1024;
/// How long another machine may take nothing of what is left of a connection that nobody uses.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(60);

/// Cards are left nothing to do.
const OFFLOAD: Offload = Offload { checksum: OutgoingChecksum::Full, segmentation: Segmentation::None };

type Ends = (Address, Address);
type Table = SpinLock<BTreeMap<Ends, StrongRc<Remote>>>;

static REMOTES: [Table; TABLES] = [const { SpinLock::new(BTreeMap::new()) }; TABLES];

/// When connections are to be looked at.
static TIMERS: SpinLock<Timers> = SpinLock::new(Timers(BTreeSet::new()));
/// Where the task of timers waits.
static TIMER_NEWS: WaitList = WaitList::new();
static KEY: StaticRef<Key> = StaticRef::none();

struct Timers(BTreeSet<(u64, Ends)>);

/// A connection with another machine.
pub struct Remote {
    /// This machine's address, and the other's.
    ends: Ends,
    proxy: StrongRc<Endpoint>,
    state: SpinLock<Progress>,
}

struct Progress {
    connection: Connection,
    stage: Stage,
    /// When the timer looks at it.
    armed: Option<u64>,
    /// Somebody is at work, and is to look again.
    is_busy: bool,
    is_called: bool,
    /// The socket was told that nothing more comes.
    has_told_end: bool,
    /// What the socket has sent and the control block has no memory for.
    pending: Vec<u8>,
}

/// What a proxy was told by its socket.
pub(super) enum SocketSaid {
    Bytes(Vec<u8>),
    /// It sends nothing more.
    End(Option<Peer>),
    /// The connection is to be reset.
    Reset,
    Nothing,
}

impl Progress {
    /// Gives the control block what it had no memory for.
    fn write_pending(&mut self) {
        if let Ok(count) = self.connection.write(&self.pending) {
            self.pending.drain(..count);
        }
    }
}

/// One of those that wait for the last part of their beginning.
struct HalfOpen;

static HALF_OPEN: AtomicUsize = AtomicUsize::new(0);

impl HalfOpen {
    /// One more; `None` if there are too many.
    fn begin() -> Option<Self> {
        let one_more = HalfOpen;
        (HALF_OPEN.fetch_add(1, Ordering::Relaxed) < MOST_HALF_OPEN).then_some(one_more)
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        HALF_OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Who waits for the connection.
enum Stage {
    /// A socket that has called connect(2).
    Opening(WeakRc<Endpoint>),
    /// A listener that is to let it in.
    Accepting(WeakRc<Endpoint>, HalfOpen),
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

fn socket_address(address: Address) -> SocketAddr {
    SocketAddr::new(address.ip, address.port)
}

fn errno_of(error: Error) -> Errno {
    match error {
        Error::Refused => Errno::ECONNREFUSED,
        Error::Reset => Errno::ECONNRESET,
        Error::TimedOut => Errno::ETIMEDOUT,
        Error::HostUnreachable => Errno::EHOSTUNREACH,
        Error::NetworkUnreachable => Errno::ENETUNREACH,
        Error::Aborted => Errno::ECONNABORTED,
    }
}

/// What connections begin with over a way.
fn opening(ends: &Ends, way: &Way, cx: &Cx) -> Opening {
    let key = KEY.get().copied().unwrap_or_else(|| {
        let key: &'static Key = Box::leak(Box::new(interface::key(cx)));
        KEY.set(Some(key));
        *key
    });
    let endpoints = Endpoints { local: socket_address(ends.0), remote: socket_address(ends.1) };
    Opening {
        endpoints,
        sequence: initial_sequence(&key, now(), &endpoints),
        timestamp_offset: timestamp_offset(&key, &endpoints),
        mtu: way.mtu(),
        settings: Settings { send_limit: 1 << 18, receive_limit: 1 << 20, ..Settings::default() },
    }
}

/// Has a socket connected with another machine.
///
/// # Errors
/// ENETUNREACH, EADDRNOTAVAIL, ENOMEM.
pub(super) fn connect(socket: &Endpoint, ends: Ends, payer: &Payer, cx: &Cx) -> Result<()> {
    let way = interface::way_to(ends.1.ip).map_err(|_| Errno::ENETUNREACH)?;
    let connection = Connection::connect(now(), &opening(&ends, &way, cx));
    let remote = Remote::enter(ends, connection, Stage::Opening(socket.name), socket.version, payer, cx)?;
    if let Ok(remote) = remote.upgrade(cx) {
        remote.go_on(cx);
    }
    Ok(())
}

/// A segment has come; whether it was one.
pub(in crate::net::inet) fn segment_came(packet: &Packet<'_>, cx: &Cx) {
    counters::TCP_IN.count();
    let Ok(segment) = Segment::parse(packet.payload, packet.source, packet.destination, Checksum::Verify) else {
        return counters::TCP_WRONG.count();
    };
    let local = Address { ip: packet.destination, port: segment.header.destination_port };
    let ends = (local, Address { ip: packet.source, port: segment.header.source_port });
    let known = find(&ends, cx).and_then(|remote| remote.upgrade(cx).ok());
    let answer = match known {
        Some(remote) => {
            let verdict = remote.state.lock(cx).connection.on_segment(now(), &segment);
            remote.go_on(cx);
            match verdict {
                Verdict::Taken => None,
                Verdict::Reply(header) => Some(header),
                Verdict::Reopen => {
                    remote.forget(cx);
                    accept(ends, &segment, cx)
                }
            }
        }
        None => accept(ends, &segment, cx),
    };
    if let Some(header) = answer {
        reply(&ends, &header, cx);
    }
}

/// A router, or the other machine, says that a packet did not arrive.
pub(in crate::net::inet) fn unreachable(ends: &Ends, error: Error, sequence: u32, cx: &Cx) {
    if let Some(Ok(remote)) = find(ends, cx).map(|remote| remote.upgrade(cx)) {
        remote.state.lock(cx).connection.on_unreachable(error, sequence);
        remote.go_on(cx);
    }
}

/// A router says that a packet did not fit.
pub(in crate::net::inet) fn too_big(ends: &Ends, mtu: usize, sequence: u32, cx: &Cx) {
    if let Some(Ok(remote)) = find(ends, cx).map(|remote| remote.upgrade(cx)) {
        remote.state.lock(cx).connection.on_path_mtu(now(), mtu, sequence);
        remote.go_on(cx);
    }
}

/// A segment of no connection has come: begins one if it is a SYN that somebody listens for. The reset that answers it, if not.
fn accept(ends: Ends, segment: &Segment<'_>, cx: &Cx) -> Option<Header> {
    let listener = PORTS.find(ends.0, ends.1).and_then(|listener| listener.upgrade(cx).ok());
    let Some(listener) = listener.filter(|_| segment.header.syn && segment.header.acknowledgment.is_none()) else {
        return segment.reset();
    };
    let Some(payer) = listener.payer_if_listening(cx) else { return segment.reset() };
    let half_open = HalfOpen::begin()?;
    let way = interface::way_to(ends.1.ip).ok()?;
    let connection = Connection::accept(now(), &opening(&ends, &way, cx), segment)?;
    // One that cannot be entered is tried again by its machine.
    let entered =
        Remote::enter(ends, connection, Stage::Accepting(listener.name, half_open), listener.version, &payer, cx)
            .ok()?;
    if let Ok(remote) = entered.upgrade(cx) {
        remote.go_on(cx);
    }
    None
}

/// Sends a segment without data that belongs to no connection.
fn reply(ends: &Ends, header: &Header, cx: &Cx) {
    let mut bytes = [0; LONGEST_HEADER];
    let (source, destination) = (ends.0.ip, ends.1.ip);
    if let Ok(len) = header.emit(&mut bytes, 0, source, destination, OutgoingChecksum::Full)
        && let Ok(way) = interface::way_to(destination)
    {
        counters::TCP_OUT.count();
        // It may be lost.
        let _ = interface::send(&IpHeader::new(source, destination, protocol::TCP), &way, &bytes[..len], cx);
    }
}

impl Remote {
    fn enter(
        ends: Ends,
        connection: Connection,
        stage: Stage,
        version: Version,
        payer: &Payer,
        cx: &Cx,
    ) -> Result<WeakRc<Remote>> {
        crate::memory::admit()?;
        let remote = StrongRc::new_cyclic(|name| Remote {
            ends,
            proxy: Endpoint::proxy(version, payer, ends, name),
            state: SpinLock::new(Progress {
                connection,
                stage,
                armed: None,
                is_busy: false,
                is_called: false,
                has_told_end: false,
                pending: Vec::new(),
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

    fn forget(&self, cx: &Cx) {
        let gone = table(&self.ends).lock(cx).remove(&self.ends);
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
            self.choose(cx);
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
                self.arm_at(frame::time::now(), cx);
            }
            break;
        }
        self.arm(cx);
        if self.state.lock(cx).connection.is_finished() {
            self.forget(cx);
        }
    }

    /// Tells who waits for the connection that it is there, or will not be.
    fn advance(&self, cx: &Cx) {
        let news = {
            let mut state = self.state.lock(cx);
            let is_open = !matches!(state.connection.state(), State::SynSent | State::SynReceived | State::Closed);
            let is_over = state.connection.state() == State::Closed;
            let error = is_over.then(|| state.connection.take_error().unwrap_or(Error::Reset));
            match (&state.stage, error) {
                (Stage::Opening(socket), Some(error)) => News::Refused(*socket, error),
                (Stage::Open, Some(error)) => News::Broken(error),
                (Stage::Opening(socket), None) if is_open => News::Connected(*socket),
                (Stage::Accepting(listener, _), None) if is_open => News::LetIn(*listener),
                (Stage::Opening(socket), None) => News::Waits(*socket),
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
                let let_in = listener
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
        let mut state = self.state.lock(cx);
        state.stage = Stage::Open;
        if !is_wanted {
            state.connection.abort();
        }
    }

    /// The connection ended before its time: the socket is told why.
    fn break_off(&self, error: Errno, cx: &Cx) {
        let proxy = self.proxy.get(cx);
        let peer = {
            let mut state = proxy.state.lock(cx);
            let peer = state.peer.filter(|_| matches!(state.phase, Phase::Connected));
            state.disconnect();
            peer
        };
        if let Some(peer) = peer {
            peer.fail(proxy.name, error, cx);
        }
    }

    /// Has the control block do as the socket's program has chosen.
    fn choose(&self, cx: &Cx) {
        let settings = self.proxy.get(cx).connected_peer(cx).and_then(|peer| peer.settings(cx));
        let Some(settings) = settings else { return };
        let number = |name, default: i32| settings.set_value(net::SOL_TCP, name).unwrap_or(default).max(0) as u64;
        let keep_alive = settings.is_on(net::SOL_SOCKET, net::SO_KEEPALIVE).then(|| KeepAlive {
            idle: Duration::from_secs(number(net::TCP_KEEPIDLE, KEEP_IDLE.get() as i32)),
            interval: Duration::from_secs(number(net::TCP_KEEPINTVL, KEEP_INTERVAL.get() as i32)),
            count: number(net::TCP_KEEPCNT, KEEP_COUNT_DEFAULT.get() as i32) as u8,
        });
        let user_timeout = number(net::TCP_USER_TIMEOUT, 0);
        let mut state = self.state.lock(cx);
        let chosen = state.connection.settings_mut();
        chosen.no_delay = settings.is_on(net::SOL_TCP, net::TCP_NODELAY);
        chosen.cork = settings.is_on(net::SOL_TCP, net::TCP_CORK);
        chosen.keep_alive = keep_alive;
        chosen.user_timeout = (user_timeout > 0).then(|| Duration::from_millis(user_timeout));
    }

    /// Moves what the socket has sent to the control block, and tells that of the end.
    fn take_from_socket(&self, cx: &Cx) {
        let proxy = self.proxy.get(cx);
        loop {
            let room = {
                let mut state = self.state.lock(cx);
                if !matches!(state.stage, Stage::Open) || state.connection.state() == State::Closed {
                    return;
                }
                state.write_pending();
                if state.pending.is_empty() { state.connection.room() } else { 0 }
            };
            let (said, tells) = proxy.take_sent(room.min(PIECE), cx);
            if let Some(peer) = tells {
                peer.made_room(cx);
            }
            match said {
                SocketSaid::Bytes(bytes) => {
                    let mut state = self.state.lock(cx);
                    state.pending = bytes;
                    state.write_pending();
                }
                // It was closed with something unread, or without patience.
                SocketSaid::Reset => return self.state.lock(cx).connection.abort(),
                SocketSaid::End(peer) => {
                    if room == 0 && !self.state.lock(cx).pending.is_empty() {
                        return;
                    }
                    let is_used = peer.is_some_and(|peer| peer.is_used(cx));
                    let mut state = self.state.lock(cx);
                    if is_used {
                        return state.connection.shut_writing();
                    }
                    // Nobody else would end it where the other machine takes nothing more.
                    state.connection.settings_mut().user_timeout = Some(ORPHAN_PATIENCE);
                    return state.connection.close(now());
                }
                SocketSaid::Nothing => return,
            }
        }
    }

    /// Moves what has come to the socket, and tells it of the end.
    fn give_to_socket(&self, cx: &Cx) {
        let proxy = self.proxy.get(cx);
        loop {
            let (has_bytes, is_done, has_told) = {
                let state = self.state.lock(cx);
                if !matches!(state.stage, Stage::Open) {
                    return;
                }
                let has_bytes = state.connection.readable_bytes() > 0;
                (has_bytes, state.connection.readiness().is_peer_done, state.has_told_end)
            };
            let Some(peer) = proxy.connected_peer(cx) else { return };
            if !has_bytes {
                if is_done && !has_told {
                    self.state.lock(cx).has_told_end = true;
                    let _ = proxy.shut_down(crate::net::Shutdown { reading: false, writing: true }, cx);
                }
                return;
            }
            match peer.send(proxy.name, &mut Arrived { remote: self, cx }, false, cx) {
                Ok(Sent::Bytes(count)) if count > 0 => {}
                Ok(Sent::ToNobody) => {
                    self.state.lock(cx).connection.abort();
                    return;
                }
                // The socket calls when it has room.
                Ok(Sent::Bytes(_)) | Err(_) => return,
            }
        }
    }

    /// Sends what there is to send.
    fn transmit(&self, cx: &Cx) {
        let Ok(way) = interface::way_to(self.ends.1.ip) else { return };
        let mut packet = vec![0; way.mtu()];
        let header = IpHeader::new(self.ends.0.ip, self.ends.1.ip, protocol::TCP);
        for _ in 0..AT_ONCE {
            if !way.interface.card().has_room(cx) {
                self.arm_at(frame::time::now() + ROOM_PAUSE, cx);
                return;
            }
            let sent = self.state.lock(cx).connection.transmit(now(), OFFLOAD, &mut packet);
            let Some(sent) = sent else { return };
            counters::TCP_OUT.count();
            match interface::send(&header, &way, &packet[..sent.len], cx) {
                Ok(()) | Err(Unsent::NoRoom | Unsent::TooLarge) => {}
                Err(Unsent::NoRoute | Unsent::NoNeighbour) => {
                    let error = Error::HostUnreachable;
                    let mut state = self.state.lock(cx);
                    if matches!(state.stage, Stage::Opening(_)) {
                        state.connection.abort();
                        drop(state);
                        self.refuse(error, cx);
                        return;
                    }
                }
            }
        }
        self.arm_at(frame::time::now(), cx);
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

    /// Has the timer look when the protocol wants it.
    fn arm(&self, cx: &Cx) {
        let deadline = self.state.lock(cx).connection.deadline();
        if let Some(deadline) = deadline {
            self.arm_at(deadline.nanos(), cx);
        }
    }

    /// Has the timer look at that time, or sooner.
    fn arm_at(&self, deadline: u64, cx: &Cx) {
        let before = {
            let mut state = self.state.lock(cx);
            if state.armed.is_some_and(|armed| armed <= deadline) {
                return;
            }
            state.armed.replace(deadline)
        };
        let is_first = {
            let mut timers = TIMERS.lock(cx);
            if let Some(before) = before {
                timers.0.remove(&(before, self.ends));
            }
            timers.0.insert((deadline, self.ends));
            timers.0.first() == Some(&(deadline, self.ends))
        };
        if is_first {
            TIMER_NEWS.wake_all();
        }
    }
}

/// What has come, as something that is sent to the socket.
struct Arrived<'a> {
    remote: &'a Remote,
    cx: &'a Cx,
}

impl Source for Arrived<'_> {
    fn remaining(&self) -> usize {
        self.remote.state.lock(self.cx).connection.readable_bytes()
    }

    fn take(&mut self, most: usize) -> Step<Vec<u8>> {
        let mut bytes = vec![0; most.min(self.remaining())];
        let read = self.remote.state.lock(self.cx).connection.read(now(), &mut bytes);
        bytes.truncate(read.unwrap_or(0));
        Ok(bytes)
    }

    fn push_to(&mut self, ring: &mut Ring, most: usize) -> Step<usize> {
        let mut state = self.remote.state.lock(self.cx);
        let pushed = state.connection.read_with(now(), most, |bytes| {
            // The kernel's own memory does not fault.
            ring.push(&mut Reader::from(bytes)).unwrap_or(0)
        });
        pushed.map_err(|blocked| match blocked {
            Blocked::WouldBlock => Stop::Block,
            _ => Errno::ECONNRESET.into(),
        })
    }
}

/// The task that looks at connections when they are due.
struct TimerTask;

/// Starts the timers of connections with other machines.
pub(in crate::net::inet) fn start() {
    tasks::spawn(&sched::SCHEDULER, Box::new(TimerTask), |words, _| {
        sched::initialise(words, Parameters::default(), None);
    });
}

impl Body for TimerTask {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let waker = tasks::prepare(cx);
        TIMER_NEWS.register(waker, cx);
        let mut next = None;
        for _ in 0..AT_ONCE {
            let due = {
                let mut timers = TIMERS.lock(cx);
                next = timers.0.first().map(|(deadline, _)| *deadline);
                match timers.0.first().copied() {
                    Some((deadline, ends)) if deadline <= frame::time::now() => {
                        timers.0.pop_first();
                        ends
                    }
                    _ => break,
                }
            };
            if let Some(Ok(remote)) = find(&due, cx).map(|remote| remote.upgrade(cx)) {
                {
                    let mut state = remote.state.lock(cx);
                    state.armed = None;
                    state.connection.on_deadline(now());
                }
                remote.go_on(cx);
            }
        }
        if next.is_some_and(|next| next <= frame::time::now()) {
            tasks::finish_wait(cx);
            return Next::Again;
        }
        let alarm = next.map(|next| time::wake_at(Timeline::Boot, next, waker, cx));
        tasks::park_async(cx);
        drop(alarm);
        Next::Again
    }
}

//! [`Connection`]: a connection's control block (RFC 9293, section 3.3.1), how it begins, and what can be asked of it.
//!
//! Invariants, in positions: `una <= next <= written + 1`, and `next` is `written + 1` only if a FIN was sent; the scoreboard covers
//! `una..next`; `read <= received <= edge + 1`, and no byte at or after `edge` was taken. `edge` never goes back: what was promised is kept.

use core::net::{IpAddr, SocketAddr};

use crate::time::Instant;

use super::assembler::Assembler;
use super::congestion::Congestion;
use super::info::Counts;
use super::rack::Rack;
use super::rtt::RoundTrips;
use super::scoreboard::Scoreboard;
use super::segment::{Header, Options, SHORTEST_HEADER, Segment};
use super::sequence::{Origin, START};
use super::settings::{Error, Settings};
use super::stream::Stream;
use super::timer::Timers;

/// The states of RFC 9293, section 3.3.2, but LISTEN: a listener is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// SYNs went both ways, and ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We have closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both have closed, and our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we; our FIN is not acknowledged.
    LastAck,
    /// All is over, but old segments may still come.
    TimeWait,
    /// There is no connection.
    Closed,
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoints {
    /// This machine's.
    pub local: SocketAddr,
    /// The peer's. Both have the same address family.
    pub remote: SocketAddr,
}

impl Endpoints {
    /// Bytes of an IP header and a TCP header without options.
    pub(crate) fn headers_bytes(&self) -> usize {
        SHORTEST_HEADER + if matches!(self.remote.ip(), IpAddr::V4(_)) { 20 } else { 40 }
    }

    /// The MSS of a peer that names none (RFC 9293, section 3.7.1).
    pub(crate) fn default_mss(&self) -> u16 {
        if matches!(self.remote.ip(), IpAddr::V4(_)) { 536 } else { 1220 }
    }

    /// The shortest MTU that is believed: smaller ones would only do harm.
    pub(crate) fn least_mtu(&self) -> usize {
        if matches!(self.remote.ip(), IpAddr::V4(_)) { 552 } else { 1280 }
    }
}

/// What a connection begins with.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The two ends.
    pub endpoints: Endpoints,
    /// The initial sequence number: see [`initial_sequence`](super::initial_sequence).
    pub sequence: u32,
    /// What is added to the clock of the time stamps, so that they tell nothing of others (RFC 7323, section 5.4).
    pub timestamp_offset: u32,
    /// Bytes of the largest IP packet that the route's device takes.
    pub mtu: usize,
    /// The owner's choices.
    pub settings: Settings,
}

/// The direction to the peer.
#[derive(Debug)]
pub(super) struct Sending {
    pub origin: Origin,
    pub stream: Stream,
    pub board: Scoreboard,
    /// The first position that is not acknowledged.
    pub una: u64,
    /// The position after the last that was sent.
    pub next: u64,
    /// The position after the last byte that was written; a FIN's.
    pub written: u64,
    /// No more is written: a FIN follows.
    pub is_shut: bool,
    /// The peer's window in bytes, from `una` on, and the largest that it ever was.
    pub window: u64,
    pub largest_window: u64,
    /// The numbers of the segment that the window came in (`SND.WL1`, `SND.WL2`).
    pub window_sequence: u64,
    pub window_ack: u64,
    pub scale: u8,
    /// The end of the last segment that was shorter than an MSS.
    pub small_end: u64,
    /// When data was sent last.
    pub last_sent: Instant,
}

/// The direction from the peer.
#[derive(Debug)]
pub(super) struct Receiving {
    pub origin: Origin,
    pub stream: Stream,
    pub assembler: Assembler,
    /// The position after all that was received in order.
    pub next: u64,
    /// The first byte that the owner has not read.
    pub read: u64,
    /// The end of the window that was offered.
    pub edge: u64,
    /// Bytes of the buffer: between `receive_initial` and `receive_limit` of the settings.
    pub buffer: usize,
    pub scale: u8,
    /// Where the peer's data ends.
    pub fin: Option<u64>,
    /// Nobody will read any more.
    pub is_shut: bool,
    /// What came twice, to be told.
    pub duplicate: Option<(u64, u64)>,
    /// The last acknowledgment that was sent.
    pub acked: u64,
    /// The longest segment that came lately.
    pub mss: usize,
    /// Acknowledgments that are still sent at once, at the beginning.
    pub quick: u8,
    /// For growing the buffer: since when, and from where, reads are counted, and the most in a round trip so far.
    pub measured_since: Instant,
    pub measured_from: u64,
    pub measured_most: usize,
}

/// Time stamps are in use (RFC 7323).
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    /// The peer's last one that is to be echoed (`TS.Recent`), and when it came.
    pub recent: u32,
    pub recent_at: Instant,
}

/// How losses are being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// None is known.
    Open,
    /// Fast recovery, until this is acknowledged.
    Recovery(u64),
    /// After a time-out, until this is acknowledged.
    Loss(u64),
}

/// What must be sent for its own sake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// An acknowledgment.
    pub ack: bool,
    /// A segment that makes the peer answer: for keep-alive, or for a closed window.
    pub probe: bool,
    /// A tail loss probe (RFC 8985, section 7).
    pub tail_probe: bool,
    /// A segment that is smaller than is good, because what the window allows was held back for long.
    pub small: bool,
    /// A reset, before the end.
    pub reset: bool,
}

/// A tail loss probe that is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// The position after it.
    pub end: u64,
    /// Whether it repeated data.
    pub is_retransmission: bool,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) endpoints: Endpoints,
    pub(super) settings: Settings,
    pub(super) state: State,
    pub(super) error: Option<Error>,
    /// An error that may pass: told only if the connection times out.
    pub(super) soft_error: Option<Error>,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    /// The peer's MSS, and what the path takes; bytes of data in a segment without options.
    pub(super) peer_mss: u16,
    pub(super) mtu: usize,
    pub(super) sack: bool,
    pub(super) stamps: Option<Stamps>,
    pub(super) timestamp_offset: u32,
    pub(super) is_orphan: bool,
    pub(super) due: Due,
    pub(super) rtt: RoundTrips,
    pub(super) congestion: Congestion,
    pub(super) rack: Rack,
    pub(super) phase: Phase,
    pub(super) tail_probe: Option<TailProbe>,
    /// Without SACK: segments that have arrived after a gap, as duplicate acknowledgments tell.
    pub(super) duplicate_acks: u16,
    /// The time stamp of the first retransmission of a repair: an echo of an older one says that it was for nothing (RFC 3522).
    pub(super) retransmit_stamp: Option<u32>,
    pub(super) timers: Timers,
    /// When challenges were last counted from, and how many since (RFC 5961, section 7).
    pub(super) challenged_since: Instant,
    pub(super) challenges: u8,
    pub(super) counts: Counts,
}

impl Connection {
    fn new(now: Instant, opening: &Opening, state: State) -> Self {
        let Opening { endpoints, sequence, timestamp_offset, mtu, settings } = *opening;
        let mtu = mtu.max(endpoints.headers_bytes() + 64);
        let scale = settings.window_scale();
        let sending = Sending {
            origin: Origin(sequence),
            stream: Stream::new(START + 1),
            board: Scoreboard::default(),
            una: START,
            next: START,
            written: START + 1,
            is_shut: false,
            window: 0,
            largest_window: 0,
            window_sequence: 0,
            window_ack: 0,
            scale: 0,
            small_end: 0,
            last_sent: now,
        };
        let receiving = Receiving {
            origin: Origin(0),
            stream: Stream::new(START + 1),
            assembler: Assembler::default(),
            next: START,
            read: START + 1,
            edge: START,
            buffer: settings.receive_initial,
            scale,
            fin: None,
            is_shut: false,
            duplicate: None,
            acked: START,
            mss: usize::from(endpoints.default_mss()),
            quick: 16,
            measured_since: now,
            measured_from: START + 1,
            measured_most: settings.receive_initial / 2,
        };
        let peer_mss = endpoints.default_mss();
        Connection {
            endpoints,
            settings,
            state,
            error: None,
            soft_error: None,
            sending,
            receiving,
            peer_mss,
            mtu,
            sack: true,
            stamps: Some(Stamps { recent: 0, recent_at: now }),
            timestamp_offset,
            is_orphan: false,
            due: Due::default(),
            rtt: RoundTrips::default(),
            congestion: Congestion::new(usize::from(peer_mss)),
            rack: Rack::new(),
            phase: Phase::Open,
            tail_probe: None,
            duplicate_acks: 0,
            retransmit_stamp: None,
            timers: Timers::new(now),
            challenged_since: now,
            challenges: 0,
            counts: Counts::default(),
        }
    }

    /// An active open: the first [`transmit`](Connection::transmit) gives its SYN.
    pub fn connect(now: Instant, opening: &Opening) -> Self {
        Connection::new(now, opening, State::SynSent)
    }

    /// A passive open from a SYN that a listener got; the first [`transmit`](Connection::transmit) gives the SYN and ACK. `None`: it is no SYN that opens
    /// something, and is to be answered with [`Segment::reset`] if it has an ACK.
    pub fn accept(now: Instant, opening: &Opening, syn: &Segment<'_>) -> Option<Self> {
        let header = &syn.header;
        if !header.syn || header.rst || header.acknowledgment.is_some() {
            return None;
        }
        let mut connection = Connection::new(now, opening, State::SynReceived);
        connection.counts.segments_in = 1;
        connection.take_syn(now, header);
        Some(connection)
    }

    /// A connection whose SYN, with such options, was answered with a [cookie](super::cookie), from the ACK that brought the cookie back. Feed it that segment next.
    pub(super) fn from_cookie(now: Instant, opening: &Opening, options: &Options, ack: &Header) -> Self {
        let mut connection = Connection::new(now, opening, State::SynReceived);
        let syn = Header {
            sequence: ack.sequence.wrapping_sub(1),
            window: ack.window,
            options: *options,
            ..Header::default()
        };
        connection.take_syn(now, &syn);
        connection.sending.next = START + 1;
        // What the SYN and ACK offered.
        connection.receiving.edge = START + 1 + connection.receiving.buffer.min(usize::from(u16::MAX)) as u64;
        connection
    }

    /// Takes in what a SYN says of the peer.
    pub(super) fn take_syn(&mut self, now: Instant, syn: &Header) {
        let receiving = &mut self.receiving;
        receiving.origin = Origin(syn.sequence);
        receiving.next = START + 1;
        receiving.edge = receiving.edge.max(START + 1);
        let options = &syn.options;
        self.peer_mss = options.mss.unwrap_or(self.endpoints.default_mss()).max(64);
        match options.window_scale {
            Some(scale) => self.sending.scale = scale,
            None => receiving.scale = 0,
        }
        self.sack = options.sack_permitted;
        self.stamps = options.timestamps.map(|stamps| Stamps { recent: stamps.value, recent_at: now });
        // A SYN's window is not scaled.
        self.sending.window = u64::from(syn.window);
        self.sending.largest_window = self.sending.window;
        self.sending.window_sequence = START;
        self.sending.window_ack = START;
        let mss = self.send_mss();
        self.congestion.set_mss(mss);
        self.receiving.mss = self.receiving.mss.min(usize::from(self.receive_mss()));
    }

    /// The MSS that we offer (RFC 6691: without options).
    pub(super) fn receive_mss(&self) -> u16 {
        let most = self.mtu.saturating_sub(self.endpoints.headers_bytes()).min(usize::from(u16::MAX)) as u16;
        most.min(self.settings.mss_limit.max(64))
    }

    /// Bytes of data in a full segment, beside the options that each has.
    pub(super) fn send_mss(&self) -> usize {
        let options = if self.stamps.is_some() { 12 } else { 0 };
        usize::from(self.peer_mss.min(self.receive_mss())) - options
    }

    /// Bytes of data in the longest segment that the peer can send.
    pub(super) fn longest_received(&self) -> usize {
        usize::from(self.receive_mss()) - if self.stamps.is_some() { 12 } else { 0 }
    }

    /// Bytes in the network.
    pub(super) fn flight(&self) -> usize {
        let arrived = if self.sack { 0 } else { usize::from(self.duplicate_acks) * self.send_mss() };
        self.sending.board.in_flight().saturating_sub(arrived)
    }

    /// The two ends.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether nothing will be sent or received any more, so that it can be dropped.
    pub fn is_finished(&self) -> bool {
        self.state == State::Closed && !self.due.reset
    }

    /// The owner's choices. A change may make something sendable: call [`transmit`](Connection::transmit) after it.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// The owner's choices.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Why it failed, told once (`SO_ERROR`).
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// The clock of the time stamps: milliseconds.
    pub(super) fn stamp_clock(&self, now: Instant) -> u32 {
        (now.millis() as u32).wrapping_add(self.timestamp_offset)
    }

    /// It has failed or ended.
    pub(super) fn end(&mut self, error: Option<Error>) {
        self.state = State::Closed;
        self.error = self.error.or(error);
        self.timers.clear();
        self.due = Due::default();
        // What was received in order may still be read. What was to be sent is lost.
        self.sending.stream = Stream::new(self.sending.written);
        self.sending.board = Scoreboard::default();
        self.receiving.assembler = Assembler::default();
    }

    /// All but old segments is over.
    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.clear();
        self.timers.close = Some(now + self.settings.time_wait);
        self.due.probe = false;
        self.due.tail_probe = false;
    }

    /// Bytes of memory that it holds beside itself.
    pub fn held_bytes(&self) -> usize {
        self.sending.stream.held_bytes()
            + self.sending.board.held_bytes()
            + self.receiving.stream.held_bytes()
            + self.receiving.assembler.held_bytes()
    }

    /// Whether the peer's FIN has arrived with all before it: then it ends in order, if without an error.
    pub fn is_peer_done(&self) -> bool {
        self.receiving.fin.is_some_and(|fin| self.receiving.next > fin)
    }
}

//! The segments of a connection within this machine, as packet sockets see them on the loopback device: see [`loopback`].
//!
//! A connection has no sequence numbers. Where somebody looks they are made of how many bytes each end has sent: the first number of an end is a hash of both addresses. What an end sends is acknowledged at once, as it lies at its peer already.
//! So nothing is kept for this, and a socket that begins to look in the midst of a connection sees numbers that fit.

use alloc::vec::Vec;

use frame::Cx;
use tcpip::ip::{IpHeader, protocol};
use tcpip::tcp::{Endpoints, Header, Options, Timestamps, initial_sequence};
use tcpip::{Instant, OutgoingChecksum};

use super::endpoint::State;
use super::remote::{key, socket_address};
use crate::net::inet::address::{Address, is_own};
use crate::net::inet::loopback;
use crate::net::interface::now;
use crate::net::packet::Checksum;

/// The window of a first segment, and that of others, which is shifted: 64 KiB, the loopback device's at first.
const FIRST_WINDOW: u16 = 65_495;
const WINDOW: u16 = 512;
const WINDOW_SCALE: u8 = 7;
/// The largest segments over IPv4 and IPv6.
const MSS_V4: u16 = 65_495;
const MSS_V6: u16 = 65_475;

/// How far a connection is, as one of its ends knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) local: Address,
    pub(super) remote: Address,
    /// How many bytes this end has sent, and whether it sends no more.
    pub(super) sent: u64,
    pub(super) has_finished: bool,
    /// The same of its peer, of which it knows.
    pub(super) arrived: u64,
    pub(super) peer_has_finished: bool,
}

/// What a segment is, beside its data.
#[derive(Clone, Copy, Default)]
struct Flags {
    fin: bool,
    rst: bool,
}

impl State {
    /// How far its connection is; `None`: it has none, or nobody looks.
    pub(super) fn watched_place(&self) -> Option<Place> {
        if !loopback::watched() {
            return None;
        }
        let has_finished = self.shutdown.writing;
        let arrived = self.received + self.input.len() as u64;
        let (sent, peer_has_finished) = (self.sent, self.is_finished);
        Some(Place { local: self.local, remote: self.remote?, sent, has_finished, arrived, peer_has_finished })
    }

    /// The last bytes that were sent to it, and how far its peer was before it sent them; `None` if nobody looks.
    #[inline(never)]
    pub(super) fn watched_arrival(&self, count: usize) -> Option<(Place, Vec<u8>)> {
        let own = self.watched_place()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(count).ok()?;
        let len = self.input.len();
        self.input.parts(len - count..len).iter().for_each(|part| bytes.extend_from_slice(part));
        let peer = own.of_peer();
        Some((Place { sent: peer.sent - count as u64, ..peer }, bytes))
    }
}

impl Place {
    /// How far a connection is that is to be made.
    pub(super) fn new(local: Address, remote: Address) -> Self {
        Place { local, remote, sent: 0, has_finished: false, arrived: 0, peer_has_finished: false }
    }

    /// The same as the other end knows it.
    pub(super) fn of_peer(&self) -> Self {
        Place {
            local: self.remote,
            remote: self.local,
            sent: self.arrived,
            has_finished: self.peer_has_finished,
            arrived: self.sent,
            peer_has_finished: self.has_finished,
        }
    }

    fn first(&self, cx: &Cx) -> u32 {
        let endpoints = Endpoints { local: socket_address(self.local), remote: socket_address(self.remote) };
        initial_sequence(&key(cx), Instant::from_nanos(0), &endpoints)
    }

    /// The number of the next byte that it sends.
    fn sequence(&self, cx: &Cx) -> u32 {
        self.first(cx).wrapping_add(1 + self.sent as u32 + u32::from(self.has_finished))
    }

    fn header(&self, cx: &Cx) -> Header {
        let time = now().nanos().div_euclid(1_000_000) as u32;
        Header {
            source_port: self.local.port,
            destination_port: self.remote.port,
            sequence: self.sequence(cx),
            acknowledgment: Some(self.of_peer().sequence(cx)),
            window: WINDOW,
            options: Options { timestamps: Some(Timestamps { value: time, echo: time }), ..Options::default() },
            ..Header::default()
        }
    }

    fn show(&self, header: &Header, data: &[u8], checksum: Checksum, cx: &Cx) {
        let (source, destination) = (self.local.ip, self.remote.ip);
        if !is_own(source) || !is_own(destination) {
            // It goes over a card.
            return;
        }
        let mut segment = Vec::new();
        if segment.try_reserve_exact(header.len_bytes() + data.len()).is_err() {
            return;
        }
        segment.resize(header.len_bytes(), 0);
        segment.extend_from_slice(data);
        let sum = match checksum {
            Checksum::Left => OutgoingChecksum::ByDevice,
            Checksum::There => OutgoingChecksum::Full,
        };
        if header.emit(&mut segment, data.len(), source, destination, sum).is_ok() {
            loopback::show(&IpHeader::new(source, destination, protocol::TCP), &segment, checksum, cx);
        }
    }

    /// Shows the first segment of one that wants to be connected.
    pub(super) fn show_syn(&self, cx: &Cx) {
        let header = self.first_header(cx);
        let timestamps = header.options.timestamps.map(|stamps| Timestamps { echo: 0, ..stamps });
        let options = Options { timestamps, ..header.options };
        self.show(&Header { acknowledgment: None, options, ..header }, &[], Checksum::Left, cx);
    }

    /// Shows how one that has asked is let in: the listener's answer, and the answer to that.
    pub(super) fn show_let_in(&self, cx: &Cx) {
        let listener = self.of_peer();
        listener.show(&listener.first_header(cx), &[], Checksum::Left, cx);
        self.show(&self.header(cx), &[], Checksum::Left, cx);
    }

    fn first_header(&self, cx: &Cx) -> Header {
        let header = self.header(cx);
        let mss = if self.local.ip.is_ipv4() { MSS_V4 } else { MSS_V6 };
        let options =
            Options { mss: Some(mss), window_scale: Some(WINDOW_SCALE), sack_permitted: true, ..header.options };
        Header { syn: true, sequence: self.first(cx), window: FIRST_WINDOW, options, ..header }
    }

    /// Shows the answer to one that has asked where nobody listens. It knows of nothing.
    pub(super) fn show_refused(&self, cx: &Cx) {
        let (source_port, destination_port) = (self.remote.port, self.local.port);
        let acknowledgment = Some(self.sequence(cx));
        let header = Header { source_port, destination_port, acknowledgment, rst: true, ..Header::default() };
        self.of_peer().show(&header, &[], Checksum::There, cx);
    }

    /// Shows bytes that it sends, and that they have arrived.
    pub(super) fn show_data(&self, data: &[u8], cx: &Cx) {
        self.show_segment(Flags::default(), data, cx);
        let after = Place { sent: self.sent + data.len() as u64, ..*self }.of_peer();
        after.show(&after.header(cx), &[], Checksum::Left, cx);
    }

    /// Shows bytes that it sends to somebody who takes none any more, and the answer to that.
    pub(super) fn show_refused_data(&self, data: &[u8], cx: &Cx) {
        self.show_segment(Flags::default(), data, cx);
        let peer = self.of_peer();
        let header = Header {
            source_port: peer.local.port,
            destination_port: peer.remote.port,
            sequence: peer.sequence(cx),
            rst: true,
            ..Header::default()
        };
        peer.show(&header, &[], Checksum::There, cx);
    }

    /// Shows that it sends nothing more, and that its peer has heard it; nothing, if that was before.
    pub(super) fn show_end(&self, cx: &Cx) {
        if self.has_finished {
            return;
        }
        self.show_segment(Flags { fin: true, ..Flags::default() }, &[], cx);
        let after = Place { has_finished: true, ..*self }.of_peer();
        after.show(&after.header(cx), &[], Checksum::Left, cx);
    }

    /// Shows that it resets the connection.
    pub(super) fn show_reset(&self, cx: &Cx) {
        self.show_segment(Flags { rst: true, ..Flags::default() }, &[], cx);
    }

    fn show_segment(&self, flags: Flags, data: &[u8], cx: &Cx) {
        let Flags { fin, rst } = flags;
        let header = Header { fin, rst, push: !data.is_empty(), ..self.header(cx) };
        self.show(&header, data, Checksum::Left, cx);
    }
}

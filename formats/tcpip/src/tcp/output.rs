//! The next segment to send: what it carries, and whether it may go now.
//!
//! [`transmit`](Connection::transmit) is asked again and again until it has nothing. In this order it gives a reset, a SYN, what was lost, a tail loss probe,
//! new data with the FIN, a probe, and an acknowledgment by itself. New data waits for the congestion window, the peer's window, and for enough to fill a segment
//! (Nagle's algorithm as Minshall changed it, and the sender's half of silly window avoidance: RFC 9293, sections 3.7.4 and 3.8.6.2.1).

use crate::checksum::OutgoingChecksum;
use crate::time::Instant;

use super::connection::{Connection, Phase, State, TailProbe};
use super::segment::{Header, LONGEST_HEADER, MOST_SACK_BLOCKS, Options, SHORTEST_HEADER, Timestamps};
use super::sequence::START;
use super::timer::{CORK, Resend};

/// Bytes of the longest IP packet, and so of the longest segment with an IP header of IPv6.
const LONGEST_PACKET: usize = 65_535;

/// What the device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Who computes checksums.
    pub checksum: OutgoingChecksum,
    /// Whether the device cuts a long segment into those of one MSS (`VIRTIO_NET_F_HOST_TSO4`, `VIRTIO_NET_F_HOST_TSO6`).
    pub segmentation: Segmentation,
}

/// Whether a device cuts segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// It does not.
    None,
    /// It does.
    ByDevice,
}

/// A segment that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Its bytes.
    pub len: usize,
    /// The bytes of its header.
    pub header_bytes: usize,
    /// Bytes of data in each segment into which the device is to cut it; `None` if it is to go as it is.
    pub segment_payload: Option<usize>,
}

/// What of the stream to send.
#[derive(Clone, Copy)]
struct Choice {
    start: u64,
    end: u64,
    is_again: bool,
}

impl Connection {
    /// Writes the next segment to `packet`, whose IP header the caller writes. `None`: there is none for now; see [`deadline`](Connection::deadline).
    ///
    /// A full segment wants [`LONGEST_HEADER`] and an MSS in `packet`; with a device that cuts segments up to 64 KiB are used. Nothing is sent if not even the header fits.
    pub fn transmit(&mut self, now: Instant, offload: Offload, packet: &mut [u8]) -> Option<Transmission> {
        if packet.len() <= LONGEST_HEADER {
            return None;
        }
        if self.due.reset {
            self.due.reset = false;
            return self.emit_reset(offload, packet);
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.transmit_syn(now, offload, packet),
            _ => {
                if let Some(choice) = self.choose(now, offload, packet.len()) {
                    let sent = self.emit_data(now, offload, packet, choice);
                    if sent.is_some() {
                        return sent;
                    }
                }
                self.watch_window(now);
                if self.due.probe {
                    self.due.probe = false;
                    // One before what was acknowledged: it cannot be new, so it is answered.
                    return self.emit_bare(now, offload, packet, self.sending.una - 1);
                }
                self.due.ack.then(|| self.emit_bare(now, offload, packet, self.sending.next))?
            }
        }
    }

    /// Whether [`transmit`](Connection::transmit) may have anything to give. It says no where that is certain, and so saves the caller the preparations.
    pub fn may_transmit(&self) -> bool {
        let due = &self.due;
        let sending = &self.sending;
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        due.ack
            || due.probe
            || due.tail_probe
            || due.reset
            || is_opening
            || sending.board.lost() > 0
            || self.end_of_stream() > sending.next
    }

    /// The options of every segment after the SYN.
    fn options(&mut self, now: Instant) -> Options {
        let timestamps = self.stamps.map(|stamps| Timestamps { value: self.stamp_clock(now), echo: stamps.recent });
        let mut sack = [None; MOST_SACK_BLOCKS];
        if self.sack {
            let receiving = &mut self.receiving;
            let duplicate = receiving.duplicate.take();
            let blocks = duplicate.into_iter().chain(receiving.assembler.latest(MOST_SACK_BLOCKS));
            for (slot, (start, end)) in sack.iter_mut().zip(blocks) {
                *slot = Some((receiving.origin.wire(start), receiving.origin.wire(end)));
            }
        }
        Options { timestamps, sack, ..Options::default() }
    }

    /// A header of this connection that acknowledges what was received.
    fn header(&mut self, position: u64, options: Options) -> Header {
        let window = self.offer_window();
        let receiving = &mut self.receiving;
        receiving.acked = receiving.next;
        self.due.ack = false;
        self.timers.delayed_ack = None;
        self.counts.segments_out += 1;
        Header {
            source_port: self.endpoints.local.port(),
            destination_port: self.endpoints.remote.port(),
            sequence: self.sending.origin.wire(position),
            acknowledgment: Some(self.receiving.origin.wire(self.receiving.next)),
            window,
            options,
            ..Header::default()
        }
    }

    /// The window to offer, as it is on the wire. It grows by a segment at least, or by half the buffer (RFC 9293, section 3.8.6.2.2), and its end never goes back.
    fn offer_window(&mut self) -> u16 {
        let edge = self.possible_edge();
        let receiving = &mut self.receiving;
        let step = receiving.mss.min(receiving.buffer / 2) as u64;
        let edge = if edge >= receiving.edge + step { edge } else { receiving.edge.max(receiving.next) };
        let window = edge - receiving.next;
        let mut wire = (window >> receiving.scale).min(u64::from(u16::MAX));
        if receiving.next + (wire << receiving.scale) < receiving.edge {
            wire = (wire + 1).min(u64::from(u16::MAX));
        }
        receiving.edge = receiving.edge.max(receiving.next + (wire << receiving.scale));
        wire as u16
    }

    /// Where the window could end.
    pub(super) fn possible_edge(&self) -> u64 {
        let receiving = &self.receiving;
        let unread = receiving.next.saturating_sub(receiving.read);
        receiving.next + (receiving.buffer as u64).saturating_sub(unread)
    }

    fn transmit_syn(&mut self, now: Instant, offload: Offload, packet: &mut [u8]) -> Option<Transmission> {
        let is_first = self.sending.next == START;
        let is_lost = self.sending.board.lost() > 0;
        if !is_first && !is_lost && !self.due.ack {
            return None;
        }
        if is_first {
            if self.sending.board.push(START, START + 1, now).is_err() {
                self.try_later(now);
                return None;
            }
            self.sending.next = START + 1;
            self.timers.base = now;
        } else {
            self.sending.board.retransmitted(START, START + 1, now);
            self.counts.retransmissions = self.counts.retransmissions.wrapping_add(1);
        }
        let is_answer = self.state == State::SynReceived;
        let options = Options {
            mss: Some(self.receive_mss()),
            window_scale: (!is_answer || self.sending.scale > 0 || self.receiving.scale > 0)
                .then_some(self.receiving.scale),
            sack_permitted: self.sack,
            timestamps: self.stamps.map(|stamps| Timestamps { value: self.stamp_clock(now), echo: stamps.recent }),
            ..Options::default()
        };
        let mut header = self.header(START, options);
        header.syn = true;
        if !is_answer {
            header.acknowledgment = None;
        }
        // Its window is not scaled.
        let window = self.receiving.buffer.min(usize::from(u16::MAX));
        header.window = window as u16;
        self.receiving.edge = self.receiving.edge.max(START + 1 + window as u64);
        self.arm_resend(now, None);
        self.emit(&header, 0, offload, packet)
    }

    fn emit_reset(&mut self, offload: Offload, packet: &mut [u8]) -> Option<Transmission> {
        let mut header = self.header(self.sending.next, Options::default());
        header.rst = true;
        self.emit(&header, 0, offload, packet)
    }

    fn emit_bare(&mut self, now: Instant, offload: Offload, packet: &mut [u8], at: u64) -> Option<Transmission> {
        let options = self.options(now);
        let header = self.header(at, options);
        self.emit(&header, 0, offload, packet)
    }

    fn emit(&self, header: &Header, payload: usize, offload: Offload, packet: &mut [u8]) -> Option<Transmission> {
        let (source, destination) = (self.endpoints.local.ip(), self.endpoints.remote.ip());
        let len = header.emit(packet, payload, source, destination, offload.checksum).ok()?;
        Some(Transmission { len, header_bytes: len - payload, segment_payload: None })
    }

    /// Bytes of data in a full segment, beside the options that the next one has.
    fn segment_payload(&self) -> usize {
        let blocks = if self.sack {
            usize::from(self.receiving.duplicate.is_some()) + self.receiving.assembler.latest(MOST_SACK_BLOCKS).count()
        } else {
            0
        };
        let sack = if blocks == 0 { 0 } else { 4 + 8 * blocks.min(MOST_SACK_BLOCKS) };
        self.send_mss().saturating_sub(sack).max(1)
    }

    /// The position after all that can be sent, with the FIN.
    fn end_of_stream(&self) -> u64 {
        self.sending.written + u64::from(self.sending.is_shut)
    }

    fn choose(&mut self, now: Instant, offload: Offload, packet_bytes: usize) -> Option<Choice> {
        let payload = self.segment_payload().min(packet_bytes - LONGEST_HEADER);
        let most = match offload.segmentation {
            Segmentation::None => payload,
            Segmentation::ByDevice => {
                let whole = packet_bytes.min(LONGEST_PACKET - 40) - LONGEST_HEADER;
                (whole - whole % payload).max(payload)
            }
        };
        let flight = self.flight();
        let room = self.congestion.window().saturating_sub(flight);
        if self.sending.board.lost() > 0 && room > 0 {
            let most = most.min((room - room % payload).max(payload));
            return self.sending.board.first_lost(most).map(|(start, end)| Choice { start, end, is_again: true });
        }
        if self.due.tail_probe {
            self.due.tail_probe = false;
            return self.choose_tail_probe(payload);
        }
        self.choose_new(now, payload, most, room, flight)
    }

    /// A tail loss probe is new data if that may be sent, else the last segment (RFC 8985, section 7.3).
    fn choose_tail_probe(&mut self, payload: usize) -> Option<Choice> {
        let sending = &self.sending;
        let window = (sending.una + sending.window).saturating_sub(sending.next);
        let unsent = self.end_of_stream().saturating_sub(sending.next);
        let count = unsent.min(window).min(payload as u64);
        let choice = if count > 0 && sending.board.has_room() {
            Some(Choice { start: sending.next, end: sending.next + count, is_again: false })
        } else {
            let (start, end) = sending.board.last_missing(payload)?;
            Some(Choice { start, end, is_again: true })
        };
        let end = choice.map_or(sending.next, |choice| choice.end.max(sending.next));
        self.tail_probe = Some(TailProbe { end, is_retransmission: choice.is_some_and(|choice| choice.is_again) });
        choice
    }

    fn choose_new(&mut self, now: Instant, payload: usize, most: usize, room: usize, flight: usize) -> Option<Choice> {
        let end_of_stream = self.end_of_stream();
        let sending = &self.sending;
        let unsent = end_of_stream.saturating_sub(sending.next);
        if unsent == 0 || !sending.board.has_room() {
            return None;
        }
        let is_idle = sending.board.is_empty();
        if is_idle && now.since(sending.last_sent) > self.rtt.timeout() && sending.next > START + 1 {
            self.congestion.restart_after_idle();
        }
        let sending = &self.sending;
        let window = (sending.una + sending.window).saturating_sub(sending.next);
        let whole = unsent.min(window).min(most as u64) as usize;
        let mut count = whole.min(room);
        if count == 0 {
            return None;
        }
        let is_all = count as u64 == unsent;
        let tail = count % payload;
        if tail > 0 {
            let may_go = if is_all {
                self.may_send_small(now)
            } else if count < whole {
                // The congestion window is what ends it: a whole segment fits when something is acknowledged.
                flight == 0 && count < payload
            } else {
                // The peer's window is.
                count as u64 >= self.sending.largest_window / 2 && flight == 0 || self.due.small
            };
            if !may_go {
                count -= tail;
            }
        }
        let sending = &self.sending;
        (count > 0).then(|| Choice { start: sending.next, end: sending.next + count as u64, is_again: false })
    }

    /// Whether what is written may go although it does not fill a segment.
    fn may_send_small(&mut self, now: Instant) -> bool {
        if self.sending.is_shut || self.due.small {
            return true;
        }
        if self.settings.cork {
            self.timers.cork.get_or_insert(now + CORK);
            return false;
        }
        self.settings.no_delay || self.sending.small_end <= self.sending.una
    }

    /// If only the peer's window keeps data back, and nothing that is in the network will bring news of it, it must be asked for.
    fn watch_window(&mut self, now: Instant) {
        let sending = &self.sending;
        let unsent = self.end_of_stream().saturating_sub(sending.next);
        let window = (sending.una + sending.window).saturating_sub(sending.next);
        if sending.board.is_empty() && unsent > 0 && window < unsent.min(self.send_mss() as u64) {
            let at = now + self.retransmission_timeout();
            self.timers.resend.get_or_insert((Resend::Window, at));
        }
    }

    fn emit_data(&mut self, now: Instant, offload: Offload, packet: &mut [u8], choice: Choice) -> Option<Transmission> {
        let Choice { start, end, is_again } = choice;
        if is_again {
            self.sending.board.retransmitted(start, end, now);
            self.counts.retransmitted += end - start;
            if start == self.sending.una {
                // Its answer takes a round trip from now.
                self.timers.base = now;
            }
        } else {
            if self.sending.board.push(start, end, now).is_err() {
                self.try_later(now);
                return None;
            }
        }
        self.sending.last_sent = now;
        let payload = self.segment_payload();
        let segments = (end - start).div_ceil(payload as u64);
        self.counts.data_segments_out = self.counts.data_segments_out.wrapping_add(segments as u32);
        self.counts.segments_out += segments - 1;
        if is_again {
            self.counts.retransmissions = self.counts.retransmissions.wrapping_add(segments as u32);
        }
        let options = self.options(now);
        let mut header = self.header(start, options);
        let sending = &mut self.sending;
        let data_end = end.min(sending.written);
        let data_start = start.max(START + 1).min(data_end);
        let count = (data_end - data_start) as usize;
        header.fin = end > sending.written;
        header.push = data_end == sending.written && count > 0;
        let header_bytes = SHORTEST_HEADER + options.len_bytes();
        sending.stream.read(data_start, packet.get_mut(header_bytes..header_bytes + count)?);
        if !is_again {
            if sending.board.in_flight() == (end - start) as usize {
                self.timers.base = now;
            }
            sending.next = end;
            if !count.is_multiple_of(payload) {
                sending.small_end = end;
            }
            self.due.small = false;
            self.timers.cork = None;
        }
        if matches!(self.phase, Phase::Recovery(_)) {
            self.congestion.on_sent_in_recovery((end - start) as usize);
        }
        if !is_again || start == self.sending.una {
            self.arm_resend(now, None);
        }
        let sent = self.emit(&header, count, offload, packet)?;
        Some(Transmission { segment_payload: (count > payload).then_some(payload), ..sent })
    }
}

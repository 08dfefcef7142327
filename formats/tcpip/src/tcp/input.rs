//! A segment arrives (RFC 9293, section 3.10.7): what is believed of it, and in which order it is looked at.
//!
//! Nothing that a segment says is used before its sequence number, and what it acknowledges, were found to fit. What does not fit is answered with a
//! *challenge*: an acknowledgment that tells a true peer where things stand (RFC 5961), a few times a second at most.

use crate::time::{Duration, Instant};

use super::assembler::Added;
use super::connection::{Connection, Stamps, State};
use super::segment::{Header, Segment};
use super::sequence::START;
use super::settings::Error;

/// Challenges in a second.
const CHALLENGES: u8 = 5;
/// Time stamps that are older are not compared (RFC 7323, section 5.5).
const STAMPS_LAST: Duration = Duration::from_secs(24 * 24 * 3600);
/// How long an acknowledgment may wait for another segment, or for data to go with.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// What the caller must do with a segment that it has fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it was taken, or dropped. There may be something to transmit.
    Taken,
    /// Send this reset.
    Reply(Header),
    /// It opens a new connection where this one is in TIME-WAIT (RFC 9293, section 3.6.1): drop this one, and give the segment to the listener.
    Reopen,
}

/// Where a segment lies.
#[derive(Clone, Copy)]
struct Extent {
    /// Of its first byte, or SYN.
    start: u64,
    /// The one after its last byte, or FIN.
    end: u64,
}

impl Connection {
    /// Takes in a segment that is for this connection. Call [`transmit`](Connection::transmit) after it.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        self.counts.segments_in += 1;
        self.counts.data_segments_in =
            self.counts.data_segments_in.wrapping_add(u32::from(!segment.payload.is_empty()));
        match self.state {
            State::Closed => segment.reset().map_or(Verdict::Taken, Verdict::Reply),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => self.on_segment_synchronized(now, segment),
        }
    }

    fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        let header = &segment.header;
        let ack = header.acknowledgment.map(|ack| self.sending.origin.position(ack, START));
        if ack.is_some_and(|ack| ack <= START || ack > self.sending.next) {
            return segment.reset().map_or(Verdict::Taken, Verdict::Reply);
        }
        if header.rst {
            if ack.is_some() {
                self.end(Some(Error::Refused));
            }
            return Verdict::Taken;
        }
        if !header.syn {
            return Verdict::Taken;
        }
        self.take_syn(now, header);
        self.timers.heard = now;
        self.due.ack = true;
        match ack {
            // What data it brings comes again.
            Some(ack) => {
                self.acknowledge(now, header, ack, START, true);
                self.establish(now);
            }
            // Both opened at once.
            None => self.state = State::SynReceived,
        }
        Verdict::Taken
    }

    /// Both SYNs are acknowledged.
    fn establish(&mut self, now: Instant) {
        self.state = if self.sending.is_shut { State::FinWait1 } else { State::Established };
        self.receiving.measured_since = now;
        self.soft_error = None;
    }

    fn on_segment_synchronized(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        let header = &segment.header;
        let mut start = self.receiving.origin.position(header.sequence, self.receiving.next);
        let end = start + segment.sequence_len();
        let mut syn = header.syn;
        if syn && self.state == State::SynReceived && start == START {
            if header.acknowledgment.is_none() {
                // Our SYN and ACK was lost.
                self.due.ack = true;
                return Verdict::Taken;
            }
            // Both opened at once, and this acknowledges our SYN.
            (syn, start) = (false, START + 1);
        }
        if syn && self.state == State::TimeWait && self.is_new_incarnation(header, start) {
            return Verdict::Reopen;
        }
        let extent = Extent { start, end };
        if !self.passes_paws(now, segment) || !self.is_acceptable(now, segment, extent) {
            return Verdict::Taken;
        }
        self.timers.heard = now;
        self.timers.keep_alive_probes = 0;
        if header.rst {
            self.on_reset(now, start);
            return Verdict::Taken;
        }
        if syn {
            self.challenge(now);
            return Verdict::Taken;
        }
        let Some(ack) = header.acknowledgment else { return Verdict::Taken };
        let ack = self.sending.origin.position(ack, self.sending.una);
        if self.state == State::SynReceived {
            if ack <= START || ack > self.sending.next {
                return segment.reset().map_or(Verdict::Taken, Verdict::Reply);
            }
            self.sending.window_sequence = START;
            self.establish(now);
        } else if ack > self.sending.next || ack + self.sending.largest_window < self.sending.una {
            self.challenge(now);
            return Verdict::Taken;
        }
        if let (Some(stamps), Some(theirs)) = (&mut self.stamps, header.options.timestamps)
            && start <= self.receiving.acked
            && theirs.value.wrapping_sub(stamps.recent) as i32 >= 0
        {
            *stamps = Stamps { recent: theirs.value, recent_at: now };
        }
        self.acknowledge(now, header, ack, start, end > start);
        self.on_fin_acknowledged(now);
        if matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            return self.take_data(now, segment, extent);
        }
        if self.state == State::TimeWait && header.fin {
            // Our last acknowledgment was lost.
            self.timers.close = Some(now + self.settings.time_wait);
            self.due.ack = true;
        }
        Verdict::Taken
    }

    /// Whether a SYN in TIME-WAIT is newer than all that came (RFC 9293, section 3.6.1; RFC 6191).
    fn is_new_incarnation(&self, header: &Header, start: u64) -> bool {
        let is_newer_stamp = match (self.stamps, header.options.timestamps) {
            (Some(stamps), Some(theirs)) => theirs.value.wrapping_sub(stamps.recent) as i32 > 0,
            _ => false,
        };
        header.acknowledgment.is_none() && !header.rst && (start > self.receiving.next || is_newer_stamp)
    }

    /// Protection against wrapped sequence numbers (RFC 7323, section 5.3).
    fn passes_paws(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        let Some(stamps) = self.stamps.filter(|_| !segment.header.rst) else { return true };
        let Some(theirs) = segment.header.options.timestamps else { return false };
        let is_old = (theirs.value.wrapping_sub(stamps.recent) as i32) < 0;
        if is_old && now.since(stamps.recent_at) < STAMPS_LAST {
            self.answer_misfit(now, segment);
            return false;
        }
        true
    }

    /// Whether something of a segment lies within the window (RFC 9293, section 3.10.7.4). What came before is answered.
    fn is_acceptable(&mut self, now: Instant, segment: &Segment<'_>, extent: Extent) -> bool {
        let Extent { start, end } = extent;
        let receiving = &self.receiving;
        let is_before = end < receiving.next || end == receiving.next && end > start;
        // The edge itself is where a peer stands that has filled the window.
        let is_beyond = start > receiving.edge.max(receiving.next);
        if !is_before && !is_beyond {
            return true;
        }
        if segment.header.rst {
            return false;
        }
        if is_before && !segment.payload.is_empty() {
            self.receiving.duplicate = Some((start, end.min(self.receiving.next)));
        }
        if self.state == State::TimeWait && segment.header.fin {
            self.timers.close = Some(now + self.settings.time_wait);
        }
        self.answer_misfit(now, segment);
        false
    }

    /// Answers a segment that lies outside of what can be. One with data or a FIN may mean that an acknowledgment was lost, so it is always answered.
    fn answer_misfit(&mut self, now: Instant, segment: &Segment<'_>) {
        if segment.payload.is_empty() && !segment.header.fin {
            self.challenge(now);
        } else {
            self.due.ack = true;
        }
    }

    /// Acknowledges, if that was not done too often of late.
    pub(super) fn challenge(&mut self, now: Instant) {
        if now.since(self.challenged_since) >= Duration::from_secs(1) {
            (self.challenged_since, self.challenges) = (now, 0);
        }
        if self.challenges < CHALLENGES {
            self.challenges += 1;
            self.due.ack = true;
        }
    }

    /// A reset within the window: only one at exactly the next byte is believed (RFC 5961, section 3).
    fn on_reset(&mut self, now: Instant, start: u64) {
        if start != self.receiving.next {
            return self.challenge(now);
        }
        match self.state {
            // RFC 1337: a reset does not end TIME-WAIT.
            State::TimeWait => {}
            State::Closing | State::LastAck => self.end(None),
            State::SynReceived => self.end(Some(Error::Refused)),
            _ => self.end(Some(Error::Reset)),
        }
    }

    /// If our FIN is acknowledged, the state says so.
    fn on_fin_acknowledged(&mut self, now: Instant) {
        if !self.sending.is_shut || self.sending.una <= self.sending.written {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.guard_orphan(now);
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(None),
            _ => {}
        }
    }

    /// An orphan does not wait for ever for the peer to close.
    pub(super) fn guard_orphan(&mut self, now: Instant) {
        if self.is_orphan && self.state == State::FinWait2 {
            self.timers.close = Some(now + self.settings.fin_wait);
        }
    }

    /// Takes what is within the window of a segment's data, and its FIN.
    fn take_data(&mut self, now: Instant, segment: &Segment<'_>, extent: Extent) -> Verdict {
        let start = extent.start + u64::from(segment.header.syn && extent.start == START);
        let data_end = start + segment.payload.len() as u64;
        if data_end > self.receiving.next && self.is_orphan {
            // Data for nobody: the peer must know that it was lost (RFC 9293, section 3.6.1).
            self.end(None);
            return segment.reset().map_or(Verdict::Taken, Verdict::Reply);
        }
        let receiving = &mut self.receiving;
        let first = start.max(receiving.next);
        let last = data_end.min(receiving.edge).min(receiving.fin.unwrap_or(u64::MAX));
        if first < last {
            let data = &segment.payload[(first - start) as usize..(last - start) as usize];
            if start < receiving.next {
                receiving.duplicate = Some((start, receiving.next));
            }
            if !self.store(now, first, data) {
                return Verdict::Taken;
            }
        } else if !segment.payload.is_empty() {
            // The window is closed: the peer may be probing.
            self.due.ack = true;
        }
        if segment.header.fin {
            self.note_fin(data_end);
        }
        self.take_fin(now);
        Verdict::Taken
    }

    /// Keeps data that begins at or after what was received in order. False if there is no memory, so that it must come again.
    fn store(&mut self, now: Instant, first: u64, data: &[u8]) -> bool {
        let longest = self.longest_received();
        let receiving = &mut self.receiving;
        let last = first + data.len() as u64;
        if !receiving.is_shut && receiving.stream.write(first, data).is_err() {
            return false;
        }
        receiving.mss = receiving.mss.max(data.len().min(longest));
        if first > receiving.next {
            if receiving.assembler.add(first, last) == Added::Repeated {
                receiving.duplicate = Some((first, last));
            }
            // So that the peer learns of the gap at once (RFC 5681, section 4.2).
            self.due.ack = true;
            return true;
        }
        let had_gap = !receiving.assembler.is_empty();
        receiving.next = receiving.assembler.advance(last);
        if receiving.is_shut {
            receiving.read = receiving.next;
            receiving.stream.discard(receiving.next, true);
        }
        let unacknowledged = (receiving.next - receiving.acked) as usize;
        if had_gap || self.settings.quick_ack || unacknowledged >= 2 * receiving.mss {
            self.due.ack = true;
        } else if receiving.quick > 0 {
            receiving.quick -= 1;
            self.due.ack = true;
        } else {
            self.timers.delayed_ack.get_or_insert(now + DELAYED_ACK);
        }
        true
    }

    /// The peer's data ends at `at`, if that fits what came.
    fn note_fin(&mut self, at: u64) {
        let receiving = &mut self.receiving;
        let fits = at >= receiving.next.max(receiving.assembler.end().unwrap_or(0)) && at <= receiving.edge;
        if receiving.fin.is_none() && fits {
            receiving.fin = Some(at);
            self.due.ack = true;
        }
    }

    /// If all before the peer's FIN has arrived, takes that.
    fn take_fin(&mut self, now: Instant) {
        if self.receiving.fin != Some(self.receiving.next) {
            return;
        }
        self.receiving.next += 1;
        self.due.ack = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// A router says that a packet with the number `sequence` did not fit, and which MTU would (RFC 1191, RFC 8201). Numbers that are not in the network are not
    /// believed (RFC 5927).
    pub fn on_path_mtu(&mut self, now: Instant, mtu: usize, sequence: u32) {
        let mtu = mtu.max(self.endpoints.least_mtu());
        if !self.is_in_network(sequence) || mtu >= self.mtu {
            return;
        }
        self.mtu = mtu;
        let mss = self.send_mss();
        self.congestion.set_mss(mss);
        // The network is not crowded: what was too long is sent again without a smaller window.
        self.counts.lost += self.sending.board.mark_lost(|part| part.end - part.start > mss as u64) as u64;
        self.arm_resend(now, None);
    }

    /// ICMP says that the peer cannot be reached, of a packet with the number `sequence`. It ends a connection that is being opened, and is else told if that times
    /// out (RFC 5461). Whether it is believed: numbers that are not in the network are not (RFC 5927).
    pub fn on_unreachable(&mut self, error: Error, sequence: u32) -> bool {
        let is_believed = self.is_in_network(sequence);
        if is_believed {
            self.note_unreachable(error);
        }
        is_believed
    }

    /// The same, as the owner's own device says it.
    pub fn note_unreachable(&mut self, error: Error) {
        match self.state {
            State::SynSent => self.end(Some(error)),
            State::SynReceived | State::Established | State::CloseWait => self.soft_error = Some(error),
            _ => {}
        }
    }

    fn is_in_network(&self, sequence: u32) -> bool {
        let at = self.sending.origin.position(sequence, self.sending.una);
        (self.sending.una..self.sending.next).contains(&at)
    }
}

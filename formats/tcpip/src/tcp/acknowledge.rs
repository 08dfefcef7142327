//! What an acknowledgment does: the send window, the scoreboard, round trips, the detection and the repair of losses.

use crate::time::{Duration, Instant};

use super::congestion::Acked;
use super::connection::{Connection, Phase};
use super::scoreboard::Part;
use super::segment::Header;
use super::sequence::START;
use super::timer::Resend;

/// Duplicate acknowledgments that mean a loss where there is no SACK (RFC 5681, section 3.2).
const DUPLICATES: u16 = 3;

/// What one acknowledgment delivered.
#[derive(Clone, Copy, Default)]
struct Delivery {
    bytes: usize,
    /// The latest part that was sent once: when.
    sent_once_at: Option<Instant>,
}

impl Connection {
    /// Takes in the acknowledgment of all before `ack`, which is not after what was sent, from a segment at `start`.
    pub(super) fn acknowledge(&mut self, now: Instant, header: &Header, ack: u64, start: u64, takes_space: bool) {
        let before = self.sending.una;
        let had_window = self.sending.window;
        self.update_window(header, ack, start);
        let is_duplicate =
            ack == before && !takes_space && self.sending.window == had_window && !self.sending.board.is_empty();
        if ack < before {
            return;
        }
        let flight_before = self.flight();
        let (mut delivery, is_doubled) = self.deliver(now, header, ack);
        let is_advanced = ack > before;
        if !self.sack {
            delivery.bytes = self.count_duplicates(is_duplicate, delivery.bytes);
        }
        if is_advanced {
            self.on_progress(now, ack);
        }
        let sample = self.measure(now, header, delivery, is_advanced);
        self.undo_if_spurious(header, is_advanced);
        self.on_tail_probe_acknowledged(ack, is_doubled, ack == before && !takes_space);
        self.leave_repair();

        let lost_before = self.counts.lost;
        let reorder = if self.sack { self.find_losses(now) } else { self.find_loss_by_duplicates(now, is_advanced) };
        let has_new_loss = self.counts.lost > lost_before;
        let flight = self.flight();
        match self.phase {
            Phase::Recovery(_) => {
                self.congestion.on_recovery_ack(delivery.bytes, flight, is_advanced && !has_new_loss);
                if has_new_loss && !self.sack {
                    self.congestion.allow_segment(flight);
                }
            }
            Phase::Open | Phase::Loss(_) if is_advanced => {
                let acked = Acked {
                    bytes: (ack - before) as usize,
                    flight_before,
                    una: ack,
                    next: self.sending.next,
                    sample,
                    smoothed: self.rtt.smoothed().unwrap_or_default(),
                };
                self.congestion.on_ack(now, acked);
            }
            _ => {}
        }
        if is_advanced || delivery.bytes > 0 || reorder.is_some() {
            self.arm_resend(now, reorder);
        }
        self.on_window(now);
    }

    /// The peer's window (RFC 9293, section 3.10.7.4): only a later segment changes it.
    fn update_window(&mut self, header: &Header, ack: u64, start: u64) {
        let sending = &mut self.sending;
        let is_later = sending.window_sequence < start || sending.window_sequence == start && sending.window_ack <= ack;
        if is_later && ack >= sending.una {
            let scale = if header.syn { 0 } else { sending.scale };
            sending.window = u64::from(header.window) << scale;
            sending.largest_window = sending.largest_window.max(sending.window);
            (sending.window_sequence, sending.window_ack) = (start, ack);
        }
    }

    /// Marks what has arrived. Whether the peer says that something came twice is the second result.
    fn deliver(&mut self, now: Instant, header: &Header, ack: u64) -> (Delivery, bool) {
        let mut delivery = Delivery::default();
        let minimum = self.rtt.minimum();
        let echo = self.stamps.and(header.options.timestamps).map(|stamps| stamps.echo);
        let offset = self.timestamp_offset;
        let rack = &mut self.rack;
        let mut on_part = |part: &Part| {
            delivery.bytes += (part.end - part.start) as usize;
            if !part.is_retransmitted {
                delivery.sent_once_at = delivery.sent_once_at.max(Some(part.sent_at));
            }
            let sent_stamp = (part.sent_at.millis() as u32).wrapping_add(offset);
            let echo_is_older = echo.is_some_and(|echo| (echo.wrapping_sub(sent_stamp) as i32) < 0);
            rack.on_delivered(now, part, minimum, echo_is_older);
        };
        let sending = &mut self.sending;
        sending.board.acknowledge(ack, &mut on_part);
        let mut is_doubled = false;
        if self.sack {
            let at = |wire| sending.origin.position(wire, ack);
            let blocks = header.options.sack.map(|block| block.map(|(start, end)| (at(start), at(end))));
            let [first, second, _] = blocks;
            // RFC 2883, section 4: the first block may tell of what came twice.
            is_doubled = first.is_some_and(|(start, end)| {
                let is_within_second = second.is_some_and(|second| second.0 <= start && end <= second.1);
                START < end && start < end && (end <= ack || is_within_second)
            });
            let mut new = blocks;
            if is_doubled {
                new[0] = None;
            }
            // In their order, so that what arrived together is not taken for reordered.
            new.sort_unstable();
            for (start, end) in new.into_iter().flatten() {
                if start >= ack && start < end && end <= sending.next {
                    sending.board.sack(start, end, &mut on_part);
                }
            }
        }
        if is_doubled {
            self.counts.duplicates += 1;
            self.rack.on_duplicate(ack, self.sending.next);
        }
        (delivery, is_doubled)
    }

    /// Something more is acknowledged in order.
    fn on_progress(&mut self, now: Instant, ack: u64) {
        let sending = &mut self.sending;
        sending.una = ack;
        sending.stream.discard(ack.min(sending.written), ack >= sending.written);
        let timers = &mut self.timers;
        (timers.base, timers.backoff, timers.unanswered) = (now, 0, 0);
        timers.outstanding_since = (!sending.board.is_empty()).then_some(now);
        self.soft_error = None;
    }

    /// Measures a round trip, of what was sent once (Karn's rule), else by the time stamps' clock (RFC 7323, section 4).
    fn measure(&mut self, now: Instant, header: &Header, delivery: Delivery, is_advanced: bool) -> Option<Duration> {
        let by_stamps = || {
            let echo = self.stamps.and(header.options.timestamps)?.echo;
            let millis = self.stamp_clock(now).wrapping_sub(echo);
            (is_advanced && echo != 0 && millis < 120_000).then(|| Duration::from_millis(u64::from(millis.max(1))))
        };
        let sample = delivery.sent_once_at.map(|at| now.since(at)).or_else(by_stamps)?;
        self.rtt.sample(now, sample);
        Some(sample)
    }

    /// The Eifel detection (RFC 3522): the first acknowledgment of more after a repair began that echoes a stamp from before it shows that nothing was lost, but late.
    fn undo_if_spurious(&mut self, header: &Header, is_advanced: bool) {
        let Some(stamp) = self.retransmit_stamp.filter(|_| is_advanced) else { return };
        self.retransmit_stamp = None;
        let echo = self.stamps.and(header.options.timestamps).map(|stamps| stamps.echo);
        if self.phase != Phase::Open && echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i32) < 0) {
            self.congestion.undo();
            self.sending.board.mark_flying();
            self.phase = Phase::Open;
        }
    }

    /// What a tail loss probe has shown (RFC 8985, section 7.4.2): if it repeated data, and neither a D-SACK nor a second acknowledgment shows that the peer had
    /// that already, it has repaired a loss.
    fn on_tail_probe_acknowledged(&mut self, ack: u64, is_doubled: bool, is_duplicate: bool) {
        let Some(probe) = self.tail_probe.filter(|probe| ack >= probe.end) else { return };
        if !probe.is_retransmission || is_doubled || is_duplicate && self.sending.board.sacked() == 0 {
            self.tail_probe = None;
        } else if ack > probe.end {
            self.tail_probe = None;
            if self.phase == Phase::Open {
                self.congestion.enter_recovery(self.send_mss());
                self.congestion.leave_recovery();
            }
        }
    }

    /// All that was in the network when repair began has arrived.
    fn leave_repair(&mut self) {
        match self.phase {
            Phase::Recovery(until) if self.sending.una >= until => {
                self.congestion.leave_recovery();
                self.rack.on_recovered();
                (self.phase, self.duplicate_acks) = (Phase::Open, 0);
            }
            Phase::Loss(until) if self.sending.una >= until => (self.phase, self.duplicate_acks) = (Phase::Open, 0),
            _ => {}
        }
    }

    /// Finds what was lost (RFC 8985, section 6.2, step 5). Returns when more can be said.
    pub(super) fn find_losses(&mut self, now: Instant) -> Option<Instant> {
        let mss = self.send_mss();
        let board = &mut self.sending.board;
        if self.phase == Phase::Open && board.sacked() == 0 {
            return None;
        }
        let is_loss_sure = self.phase != Phase::Open || board.sacked() >= usize::from(DUPLICATES) * mss;
        let window = self.rack.window(self.rtt.minimum(), self.rtt.smoothed(), is_loss_sure);
        let mut later = None;
        let rack = &self.rack;
        let lost = board.mark_lost(|part| match rack.lost_at(part, window) {
            Some(at) if at <= now => true,
            Some(at) => {
                later = later.max(Some(at));
                false
            }
            None => false,
        });
        self.on_lost(now, lost);
        later
    }

    /// Bytes were found to be lost: repair begins if it has not.
    fn on_lost(&mut self, now: Instant, lost: usize) {
        self.counts.lost += lost as u64;
        if lost > 0 && self.phase == Phase::Open {
            let outstanding = (self.sending.next - self.sending.una) as usize;
            self.congestion.enter_recovery(outstanding);
            let flight = self.flight();
            self.congestion.on_recovery_ack(0, flight, false);
            self.phase = Phase::Recovery(self.sending.next);
            self.retransmit_stamp = Some(self.stamp_clock(now));
            (self.tail_probe, self.due.tail_probe) = (None, false);
        }
    }

    /// Without SACK each duplicate acknowledgment tells that a segment has arrived; an acknowledgment of more takes those into account that it covers. Returns the bytes
    /// that were delivered by this one.
    fn count_duplicates(&mut self, is_duplicate: bool, acked: usize) -> usize {
        let mss = self.send_mss();
        if is_duplicate {
            let most = self.sending.board.in_flight() / mss;
            self.duplicate_acks = self.duplicate_acks.saturating_add(1).min(u16::try_from(most).unwrap_or(u16::MAX));
            return mss;
        }
        // The first segment of it is the one that was missing.
        let covered = u16::try_from((acked / mss).saturating_sub(1)).unwrap_or(u16::MAX).min(self.duplicate_acks);
        self.duplicate_acks -= covered;
        if acked > 0 && self.phase == Phase::Open {
            self.duplicate_acks = 0;
        }
        acked.saturating_sub(usize::from(covered) * mss)
    }

    /// NewReno (RFC 6582), for peers without SACK.
    fn find_loss_by_duplicates(&mut self, now: Instant, is_advanced: bool) -> Option<Instant> {
        let is_partial = is_advanced && matches!(self.phase, Phase::Recovery(_));
        if is_partial || self.duplicate_acks == DUPLICATES && self.phase == Phase::Open {
            let mss = self.send_mss();
            let lost = self.sending.board.mark_head_lost(mss);
            self.on_lost(now, lost);
        }
        None
    }

    /// If the window is open, no probe of it is due.
    fn on_window(&mut self, now: Instant) {
        if !self.sending.board.is_empty() || !matches!(self.timers.resend, Some((Resend::Window, _))) {
            return;
        }
        // Any answer shows that the peer is alive.
        self.timers.unanswered = 0;
        if self.sending.window > 0 {
            (self.timers.resend, self.timers.backoff) = (None, 0);
            self.timers.outstanding_since = None;
            self.timers.base = now;
        }
    }
}

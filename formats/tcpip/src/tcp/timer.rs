//! The timers of a connection: when the next of them is due, and what happens then.
//!
//! One runs for what was sent or is to be: the retransmission time-out, the tail loss probe, RACK's reordering timer, the probe of a closed window, or another try. The others
//! are the delayed acknowledgment, the cork, keep-alive, and the end of TIME-WAIT or of FIN-WAIT-2.

use crate::time::{Duration, Instant, earlier};

use super::connection::{Connection, Phase, State};
use super::rtt::LONGEST_RTO;
use super::scoreboard::Fate;
use super::settings::Error;

/// How long a corked segment waits.
pub(super) const CORK: Duration = Duration::from_millis(200);
/// How much later the peer may acknowledge a lone segment (RFC 8985, section 7.2).
const PEERS_DELAY: Duration = Duration::from_millis(50);
/// How long what could not be sent for want of memory waits.
const WITHOUT_MEMORY: Duration = Duration::from_millis(100);
/// No probe comes sooner.
const SHORTEST_PROBE: Duration = Duration::from_millis(2);

/// Which timer runs for what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    /// The retransmission time-out (RFC 6298).
    Timeout,
    /// The tail loss probe (RFC 8985, section 7).
    TailProbe,
    /// RACK's reordering timer (RFC 8985, section 6.3).
    Reorder,
    /// The probe of a closed window (RFC 9293, section 3.8.6.1).
    Window,
    /// Another try of what could not be sent for want of memory, while nothing is in the network.
    Memory,
}

/// All timers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    pub resend: Option<(Resend, Instant)>,
    pub delayed_ack: Option<Instant>,
    pub cork: Option<Instant>,
    /// The end of TIME-WAIT, or of an orphan's FIN-WAIT-2.
    pub close: Option<Instant>,
    /// Where the time-out counts from: the last progress, or the first sending after there was nothing in the network.
    pub base: Instant,
    /// When what is first to be acknowledged became so.
    pub outstanding_since: Option<Instant>,
    /// Doublings of the time-out.
    pub backoff: u8,
    /// Time-outs and probes without any answer.
    pub unanswered: u8,
    /// When a segment of the peer came last.
    pub heard: Instant,
    /// Keep-alive probes that are not answered, and when the last was sent.
    pub keep_alive_probes: u8,
    pub keep_alive_sent: Instant,
}

impl Timers {
    pub fn new(now: Instant) -> Self {
        Timers {
            resend: None,
            delayed_ack: None,
            cork: None,
            close: None,
            base: now,
            outstanding_since: None,
            backoff: 0,
            unanswered: 0,
            heard: now,
            keep_alive_probes: 0,
            keep_alive_sent: now,
        }
    }

    pub fn clear(&mut self) {
        (self.resend, self.delayed_ack, self.cork, self.close) = (None, None, None, None);
        self.outstanding_since = None;
    }
}

impl Connection {
    /// The retransmission time-out as it is now, with its doublings.
    pub(super) fn retransmission_timeout(&self) -> Duration {
        self.rtt.timeout().doubled(u32::from(self.timers.backoff)).min(LONGEST_RTO)
    }

    /// Sets the timer of what was sent, after something was sent or acknowledged. `reorder` is when RACK will know more.
    pub(super) fn arm_resend(&mut self, now: Instant, reorder: Option<Instant>) {
        if self.sending.board.is_empty() {
            if !matches!(self.timers.resend, Some((Resend::Window | Resend::Memory, _))) {
                self.timers.resend = None;
            }
            self.timers.outstanding_since = None;
            return;
        }
        self.timers.outstanding_since.get_or_insert(now);
        let timeout = self.timers.base + self.retransmission_timeout();
        self.timers.resend = Some(match reorder {
            Some(at) if at < timeout => (Resend::Reorder, at),
            _ => match self.tail_probe_delay() {
                Some(delay) if now + delay < timeout => (Resend::TailProbe, now + delay),
                _ => (Resend::Timeout, timeout),
            },
        });
    }

    /// There was no memory to send something: it is tried again, at the latest some time from now.
    pub(super) fn try_later(&mut self, now: Instant) {
        self.timers.resend.get_or_insert((Resend::Memory, now + WITHOUT_MEMORY));
    }

    /// How long after now a tail loss probe is due; `None` if there is to be none.
    fn tail_probe_delay(&self) -> Option<Duration> {
        let board = &self.sending.board;
        let is_wanted = self.sack
            && self.tail_probe.is_none()
            && self.phase == Phase::Open
            && board.sacked() == 0
            && self.timers.backoff == 0
            && !matches!(self.state, State::SynSent | State::SynReceived);
        let smoothed = self.rtt.smoothed().filter(|_| is_wanted)?;
        let extra = if board.in_flight() <= self.send_mss() { PEERS_DELAY } else { Duration::ZERO };
        Some((smoothed.times(2) + extra).max(SHORTEST_PROBE))
    }

    /// When [`on_deadline`](Connection::on_deadline) is to be called; `None`: not before something else happens. It may change with every other call.
    pub fn deadline(&self) -> Option<Instant> {
        let timers = &self.timers;
        let resend = timers.resend.map(|(_, at)| at);
        let mut next = earlier(earlier(resend, timers.delayed_ack), earlier(timers.cork, timers.close));
        next = earlier(next, self.keep_alive_at());
        earlier(next, self.user_timeout_at())
    }

    fn keep_alive_at(&self) -> Option<Instant> {
        let keep_alive = self.settings.keep_alive?;
        let is_idle = self.sending.board.is_empty()
            && self.sending.next >= self.sending.written
            && matches!(self.state, State::Established | State::CloseWait | State::FinWait2);
        let timers = &self.timers;
        is_idle.then(|| match timers.keep_alive_probes {
            0 => timers.heard + keep_alive.idle,
            _ => timers.keep_alive_sent + keep_alive.interval,
        })
    }

    fn user_timeout_at(&self) -> Option<Instant> {
        Some(self.timers.outstanding_since? + self.settings.user_timeout?)
    }

    /// Does what is due. Call [`transmit`](Connection::transmit) after it. Nothing happens before the [deadline](Connection::deadline).
    pub fn on_deadline(&mut self, now: Instant) {
        if self.timers.close.is_some_and(|at| at <= now) {
            return self.end(None);
        }
        if self.user_timeout_at().is_some_and(|at| at <= now) {
            return self.give_up();
        }
        if self.timers.delayed_ack.is_some_and(|at| at <= now) {
            self.timers.delayed_ack = None;
            self.due.ack = true;
        }
        if self.timers.cork.is_some_and(|at| at <= now) {
            self.timers.cork = None;
            self.due.small = true;
        }
        if self.keep_alive_at().is_some_and(|at| at <= now) {
            self.on_keep_alive(now);
        }
        match self.timers.resend.filter(|&(_, at)| at <= now) {
            Some((Resend::Timeout, _)) => self.on_timeout(now),
            Some((Resend::TailProbe, _)) => {
                self.due.tail_probe = true;
                self.timers.base = now;
                self.timers.resend = Some((Resend::Timeout, now + self.retransmission_timeout()));
            }
            Some((Resend::Reorder, _)) => {
                let reorder = self.find_losses(now);
                self.arm_resend(now, reorder);
            }
            Some((Resend::Window, _)) => self.on_closed_window(now),
            Some((Resend::Memory, _)) => self.timers.resend = None,
            None => {}
        }
    }

    /// No answer came for too long.
    fn give_up(&mut self) {
        let error = self.soft_error.unwrap_or(Error::TimedOut);
        self.end(Some(error));
    }

    fn on_keep_alive(&mut self, now: Instant) {
        let Some(keep_alive) = self.settings.keep_alive else { return };
        let count = self.timers.keep_alive_probes;
        let is_over = match self.settings.user_timeout {
            Some(timeout) => count > 0 && now.since(self.timers.heard) >= timeout,
            None => count >= keep_alive.count,
        };
        if is_over {
            let is_synchronized = self.state != State::SynSent;
            self.give_up();
            self.due.reset = is_synchronized;
            return;
        }
        self.due.probe = true;
        (self.timers.keep_alive_probes, self.timers.keep_alive_sent) = (count.saturating_add(1), now);
    }

    /// A retransmission time-out (RFC 6298, section 5; RFC 5681, section 3.1).
    fn on_timeout(&mut self, now: Instant) {
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        // A peer that answers with a closed window is alive.
        let is_answered = self.sending.window == 0 && self.timers.heard > self.timers.base && !is_opening;
        self.timers.unanswered = if is_answered { 1 } else { self.timers.unanswered.saturating_add(1) };
        let most = if is_opening { self.settings.syn_retries } else { self.settings.data_retries };
        if self.timers.unanswered > most {
            return self.give_up();
        }
        self.timers.backoff = self.timers.backoff.saturating_add(1);
        let board = &mut self.sending.board;
        if board.parts().next().is_some_and(|part| part.fate == Fate::Sacked) {
            board.forget_sacks();
        }
        self.counts.lost += board.mark_lost(|_| true) as u64;
        let is_first = !matches!(self.phase, Phase::Loss(_));
        if !is_opening {
            self.congestion.on_timeout(is_first);
            self.phase = Phase::Loss(self.sending.next);
            if is_first {
                self.retransmit_stamp = Some(self.stamp_clock(now));
            }
        }
        (self.tail_probe, self.due.tail_probe, self.duplicate_acks) = (None, false, 0);
        self.timers.base = now;
        self.timers.resend = Some((Resend::Timeout, now + self.retransmission_timeout()));
    }

    /// The peer's window was closed, or too small, for a time: asks whether it still is.
    fn on_closed_window(&mut self, now: Instant) {
        self.timers.unanswered = self.timers.unanswered.saturating_add(1);
        if self.timers.unanswered > self.settings.data_retries {
            return self.give_up();
        }
        if self.sending.window > self.sending.next.saturating_sub(self.sending.una) {
            self.due.small = true;
        } else {
            self.due.probe = true;
        }
        self.timers.backoff = self.timers.backoff.saturating_add(1);
        self.timers.outstanding_since.get_or_insert(now);
        self.timers.resend = Some((Resend::Window, now + self.retransmission_timeout()));
    }
}

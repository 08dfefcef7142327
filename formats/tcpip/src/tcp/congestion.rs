//! How much may be in flight: slow start, CUBIC (RFC 9438), and proportional rate reduction during recovery (RFC 6937).
//!
//! All amounts are bytes, all arithmetic is of integers. The window is never below one segment.

use crate::time::{Duration, Instant};

use super::hystart::{HyStart, Verdict};

/// Segments that may be sent at first (RFC 6928).
const INITIAL_SEGMENTS: usize = 10;
/// The largest window.
const LARGEST_WINDOW: usize = 1 << 30;
/// The window is multiplied by 7/10 on a loss (`beta_cubic`).
const BETA: (usize, usize) = (7, 10);
/// Milliseconds from the plateau beyond which the cubic function does not go on.
const FARTHEST_MS: u64 = 1_000_000;

/// The congestion window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion {
    mss: usize,
    window: usize,
    threshold: usize,
    hystart: HyStart,
    /// The window before the last reduction (`W_max`).
    plateau: usize,
    /// `None`: congestion avoidance has not begun since the last reduction.
    epoch: Option<Epoch>,
    /// Acknowledged bytes that have not yet become growth, times the window.
    credit: u64,
    recovery: Recovery,
    /// Window, threshold and plateau before the last reduction, to which they return if that was for nothing.
    before: Option<(usize, usize, usize)>,
}

/// A stretch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Instant,
    /// Milliseconds from its beginning to the plateau (`K`).
    to_plateau_ms: u64,
    /// What Reno's window would be (`W_est`).
    reno: usize,
    reno_credit: u64,
}

/// Counters of PRR.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    delivered: usize,
    sent: usize,
    /// What was in flight when it began (`RecoverFS`).
    flight: usize,
}

/// What an acknowledgment said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// Bytes that it acknowledged in order.
    pub bytes: usize,
    /// What was in flight before it.
    pub flight_before: usize,
    /// The first byte that is not acknowledged.
    pub una: u64,
    /// What will be sent next.
    pub next: u64,
    /// A round trip that it measured.
    pub sample: Option<Duration>,
    /// The smoothed round trip.
    pub smoothed: Duration,
}

impl Congestion {
    /// At the beginning of a connection with such segments.
    pub fn new(mss: usize) -> Self {
        Congestion {
            mss,
            window: INITIAL_SEGMENTS * mss,
            threshold: LARGEST_WINDOW,
            hystart: HyStart::default(),
            plateau: 0,
            epoch: None,
            credit: 0,
            recovery: Recovery::default(),
            before: None,
        }
    }

    /// What may be in flight.
    pub fn window(&self) -> usize {
        self.window
    }

    /// The window at which slow start ends.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// Segments have another size now: the window stays the same number of bytes, and at least one of them.
    pub fn set_mss(&mut self, mss: usize) {
        if self.window == INITIAL_SEGMENTS * self.mss {
            self.window = INITIAL_SEGMENTS * mss;
        }
        self.mss = mss.max(1);
        self.window = self.window.max(self.mss);
    }

    /// Nothing was lost: the window grows if it was what kept the sender from sending more.
    pub fn on_ack(&mut self, now: Instant, acked: Acked) {
        if self.window < self.threshold {
            // Half of the window is enough: acknowledgments come for two segments at once (RFC 7661 is as generous).
            if acked.flight_before.saturating_mul(2) < self.window {
                return;
            }
            match self.hystart.on_ack(acked.bytes, acked.una, acked.next, acked.sample) {
                Verdict::Grow(bytes) => {
                    let room = self.threshold.saturating_sub(self.window).max(self.mss);
                    self.set_window(self.window + bytes.min(room));
                }
                Verdict::Leave => self.threshold = self.window,
            }
        } else if acked.flight_before + 2 * self.mss >= self.window {
            self.avoid(now, acked.bytes, acked.smoothed);
        }
    }

    /// Congestion avoidance (RFC 9438, sections 4.2 to 4.5).
    fn avoid(&mut self, now: Instant, acked: usize, smoothed: Duration) {
        let (mss, window) = (self.mss as u64, self.window as u64);
        let plateau = self.plateau.max(self.window);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began: now,
            // K = cbrt((W_max - cwnd) / C), with C = 0.4 segments in a second cubed, in milliseconds.
            to_plateau_ms: cube_root((plateau as u64 - window) * 2_500_000_000 / mss),
            reno: self.window,
            reno_credit: 0,
        });
        let target = |at: Instant| {
            let elapsed = at.since(epoch.began).millis();
            let distance = elapsed.abs_diff(epoch.to_plateau_ms).min(FARTHEST_MS);
            // 0.4 * (t - K)^3 segments, t in milliseconds.
            let rise = (distance * distance * distance / 2_500_000_000).saturating_mul(mss);
            if elapsed < epoch.to_plateau_ms {
                (plateau as u64).saturating_sub(rise)
            } else {
                (plateau as u64).saturating_add(rise)
            }
        };
        // What the function says for one round trip from now: at least the window, at most half as much more.
        let target = target(now + smoothed).clamp(window, window + window / 2);
        // W_est grows by 9/17 segments for each window that is acknowledged, then by one once it has reached the plateau.
        let (up, down) = if epoch.reno < plateau { (9, 17) } else { (1, 1) };
        epoch.reno_credit += acked as u64 * mss * up / down;
        epoch.reno += (epoch.reno_credit / window) as usize;
        epoch.reno_credit %= window;
        let reno = epoch.reno;
        if reno as u64 > target {
            self.set_window(self.window.max(reno));
        } else {
            self.credit += (target - window) * acked as u64;
            let growth = (self.credit / window) as usize;
            self.credit %= window;
            self.set_window(self.window + growth);
        }
    }

    /// A loss was found: the window becomes smaller, by and by, as acknowledgments come. `flight` is what is in flight.
    pub fn enter_recovery(&mut self, flight: usize) {
        self.reduce();
        self.recovery = Recovery { delivered: 0, sent: 0, flight: flight.max(1) };
    }

    /// During recovery, `delivered` bytes left the network and `flight` are in it (RFC 6937, section 3).
    pub fn on_recovery_ack(&mut self, delivered: usize, flight: usize, is_una_advanced: bool) {
        self.recovery.delivered += delivered;
        let may_send = if flight > self.threshold {
            let whole = self.recovery.delivered as u64 * self.threshold as u64;
            (whole.div_ceil(self.recovery.flight as u64) as usize).saturating_sub(self.recovery.sent)
        } else {
            // Slow start back to the threshold, where losses do not go on; else as much as left.
            let left = self.recovery.delivered.saturating_sub(self.recovery.sent);
            let most = if is_una_advanced { left.max(delivered) + self.mss } else { left };
            most.min(self.threshold - flight)
        };
        // One retransmission at least goes out at once.
        let least = if self.recovery.sent == 0 { self.mss } else { 0 };
        self.window = (flight + may_send.max(least)).max(self.mss);
    }

    /// One more segment may go, whatever is in flight.
    pub fn allow_segment(&mut self, flight: usize) {
        self.window = self.window.max(flight + self.mss);
    }

    /// All that was in flight when a loss was found has arrived.
    pub fn leave_recovery(&mut self) {
        self.set_window(self.threshold);
    }

    /// Something was sent in recovery.
    pub fn on_sent_in_recovery(&mut self, bytes: usize) {
        self.recovery.sent += bytes;
    }

    /// A retransmission time-out: back to one segment (RFC 5681, section 3.1). Only the `is_first` of several reduces the threshold.
    pub fn on_timeout(&mut self, is_first: bool) {
        if is_first {
            self.reduce();
        }
        self.window = self.mss;
    }

    /// The last reduction was for nothing: what was believed lost was only late.
    pub fn undo(&mut self) {
        if let Some((window, threshold, plateau)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
            self.plateau = plateau;
            self.epoch = None;
        }
    }

    /// Nothing was sent for longer than a time-out: what the network could carry may have changed (RFC 5681, section 4.1).
    pub fn restart_after_idle(&mut self) {
        self.threshold = self.threshold.max(self.window / 4 * 3);
        self.window = self.window.min(INITIAL_SEGMENTS * self.mss);
        self.epoch = None;
    }

    fn reduce(&mut self) {
        self.before = Some((self.window, self.threshold, self.plateau));
        // Fast convergence (RFC 9438, section 4.7): a flow that did not reach its last plateau makes room for others.
        self.plateau = if self.window < self.plateau { self.window / 20 * 17 } else { self.window };
        self.threshold = (self.window / BETA.1 * BETA.0).max(2 * self.mss);
        self.epoch = None;
        self.credit = 0;
        self.hystart = HyStart::default();
    }

    fn set_window(&mut self, window: usize) {
        self.window = window.clamp(self.mss, LARGEST_WINDOW);
    }
}

/// The largest number whose cube is not larger.
fn cube_root(of: u64) -> u64 {
    let mut root = 0;
    // The cube of 2^21 is 2^63.
    for bit in (0..21).rev() {
        let larger = root | 1 << bit;
        if larger * larger * larger <= of {
            root = larger;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: usize = 1000;

    fn acked(bytes: usize, flight: usize) -> Acked {
        Acked { bytes, flight_before: flight, una: 0, next: 0, sample: None, smoothed: Duration::from_millis(100) }
    }

    #[test]
    fn cube_roots_are_the_largest_that_fit() {
        for (of, root) in [(0, 0), (1, 1), (26, 2), (27, 3), (1_000_000_000, 1000), (u64::MAX, (1 << 21) - 1)] {
            assert_eq!(cube_root(of), root);
        }
    }

    #[test]
    fn slow_start_doubles_and_only_if_the_window_is_used() {
        let mut congestion = Congestion::new(MSS);
        let now = Instant::default();
        congestion.on_ack(now, acked(10 * MSS, 10 * MSS));
        assert_eq!(congestion.window(), 20 * MSS);
        congestion.on_ack(now, acked(2 * MSS, 2 * MSS));
        assert_eq!(congestion.window(), 20 * MSS);
    }

    #[test]
    fn the_window_returns_to_its_plateau_in_the_time_of_the_cubic_function() {
        let mut congestion = Congestion { window: 100 * MSS, ..Congestion::new(MSS) };
        congestion.enter_recovery(100 * MSS);
        congestion.leave_recovery();
        assert_eq!(congestion.window(), 70 * MSS);
        // K = cbrt(30 / 0.4) = 4.2 seconds.
        let mut reached = None;
        for round in 0..100u64 {
            let window = congestion.window();
            let now = Instant::default() + Duration::from_millis(100 * round);
            congestion.on_ack(now, acked(window, window));
            if reached.is_none() && congestion.window() >= 99 * MSS {
                reached = Some(now.millis());
            }
        }
        let reached = reached.expect("it grows");
        assert!((2500..=4500).contains(&reached), "{reached} ms");
        assert!(congestion.window() > 120 * MSS, "beyond the plateau it grows faster and faster");
    }

    #[test]
    fn recovery_sends_in_proportion_to_what_arrives() {
        let mut congestion = Congestion { window: 100 * MSS, ..Congestion::new(MSS) };
        congestion.enter_recovery(100 * MSS);
        let mut flight = 100 * MSS;
        let mut sent = 0;
        for _ in 0..50 {
            flight -= MSS;
            congestion.on_recovery_ack(MSS, flight, false);
            while flight + MSS <= congestion.window() {
                flight += MSS;
                sent += MSS;
                congestion.on_sent_in_recovery(MSS);
            }
        }
        assert!((33 * MSS..=37 * MSS).contains(&sent), "seven for ten: {sent}");
    }

    #[test]
    fn a_spurious_time_out_is_undone() {
        let mut congestion = Congestion::new(MSS);
        congestion.on_timeout(true);
        congestion.on_timeout(false);
        assert_eq!(congestion.window(), MSS);
        congestion.undo();
        assert_eq!(congestion.window(), 10 * MSS);
    }
}

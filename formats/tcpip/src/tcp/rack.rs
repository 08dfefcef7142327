//! RACK-TLP (RFC 8985): what was sent long enough before something that arrived is lost; and a probe when nothing comes back at all.

use crate::time::{Duration, Instant};

use super::scoreboard::Part;

/// Recoveries for which a wider reordering window lasts.
const WIDER_FOR: u8 = 16;

/// The time of sending of the latest part that arrived, and how much reordering is believed in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// The latest part that arrived: when it was sent, and its end.
    latest: Option<(Instant, u64)>,
    /// Its round trip.
    rtt: Duration,
    /// The last position that has arrived.
    farthest: u64,
    /// Whether something arrived later than what was sent after it.
    pub is_reordering_seen: bool,
    /// The reordering window, in quarters of the smallest round trip.
    multiplier: u8,
    persists: u8,
    /// Until this is acknowledged no other D-SACK widens the window.
    round_end: u64,
}

/// A part was sent, at a time, up to an end: the later one, of two.
fn is_after(one: (Instant, u64), other: (Instant, u64)) -> bool {
    one > other
}

impl Rack {
    /// Nothing has arrived.
    pub fn new() -> Self {
        Rack {
            latest: None,
            rtt: Duration::ZERO,
            farthest: 0,
            is_reordering_seen: false,
            multiplier: 1,
            persists: WIDER_FOR,
            round_end: 0,
        }
    }

    /// A part arrived (section 6.2, steps 2 and 3). `minimum` is the smallest round trip, `echo_is_older` whether time stamps say that it was not the
    /// retransmission that arrived.
    pub fn on_delivered(&mut self, now: Instant, part: &Part, minimum: Option<Duration>, echo_is_older: bool) {
        let rtt = now.since(part.sent_at);
        if part.end > self.farthest {
            self.farthest = part.end;
        } else if part.end < self.farthest && !part.is_retransmitted {
            self.is_reordering_seen = true;
        }
        // So soon after it was sent again, it was the original that arrived.
        if part.is_retransmitted && (echo_is_older || minimum.is_some_and(|minimum| rtt < minimum)) {
            return;
        }
        if self.latest.is_none_or(|latest| is_after((part.sent_at, part.end), latest)) {
            self.latest = Some((part.sent_at, part.end));
            self.rtt = rtt;
        }
    }

    /// A D-SACK came: something was sent again for nothing, so the window becomes wider, once in a round trip (step 4).
    pub fn on_duplicate(&mut self, una: u64, next: u64) {
        if una >= self.round_end {
            self.round_end = next;
            self.multiplier = self.multiplier.saturating_add(1);
            self.persists = WIDER_FOR;
        }
    }

    /// A recovery is over.
    pub fn on_recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            (self.multiplier, self.persists) = (1, WIDER_FOR);
        }
    }

    /// How much later than others something may arrive. `is_loss_sure`: in recovery, or as much arrived out of order as three segments.
    pub fn window(&self, minimum: Option<Duration>, smoothed: Option<Duration>, is_loss_sure: bool) -> Duration {
        if !self.is_reordering_seen && is_loss_sure {
            return Duration::ZERO;
        }
        let window = minimum.unwrap_or(Duration::ZERO).times(u64::from(self.multiplier)).part(4);
        window.min(smoothed.unwrap_or(window))
    }

    /// When a part that is in the network must be taken for lost; `None` if nothing sent after it has arrived (step 5).
    pub fn lost_at(&self, part: &Part, window: Duration) -> Option<Instant> {
        let latest = self.latest?;
        is_after(latest, (part.sent_at, part.end)).then(|| part.sent_at + self.rtt + window)
    }
}

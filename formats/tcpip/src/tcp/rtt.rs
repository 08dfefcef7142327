//! Round-trip times, and the retransmission time-out that follows from them (RFC 6298).

use crate::time::{Duration, Instant};

/// The time-out before anything was measured.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// The shortest time-out. RFC 6298 says one second; Linux, and so its peers, use this.
const SHORTEST_RTO: Duration = Duration::from_millis(200);
/// The longest one.
pub(crate) const LONGEST_RTO: Duration = Duration::from_secs(120);
/// The smallest round trip is that of so long a time, so that a route that became longer is noticed.
const MINIMUM_LASTS: Duration = Duration::from_secs(300);

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrips {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
    minimum: Option<(Duration, Instant)>,
}

impl RoundTrips {
    /// Takes a measured round trip in (RFC 6298, section 2).
    pub fn sample(&mut self, now: Instant, sample: Duration) {
        self.latest = sample;
        match self.minimum {
            Some((minimum, since)) if sample > minimum && now.since(since) < MINIMUM_LASTS => {}
            _ => self.minimum = Some((sample, now)),
        }
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample.part(2);
            }
            Some(smoothed) => {
                let error = smoothed.nanos().abs_diff(sample.nanos());
                self.variation = (self.variation.times(3) + Duration::from_nanos(error)).part(4);
                self.smoothed = Some((smoothed.times(7) + sample).part(8));
            }
        }
    }

    /// The smoothed round trip; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// How much it varies.
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The last sample.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The smallest one of the last minutes.
    pub fn minimum(&self) -> Option<Duration> {
        self.minimum.map(|(minimum, _)| minimum)
    }

    /// The time-out of what is sent for the first time.
    pub fn timeout(&self) -> Duration {
        match self.smoothed {
            None => INITIAL_RTO,
            Some(smoothed) => (smoothed + self.variation.times(4).max(SHORTEST_RTO)).clamp(SHORTEST_RTO, LONGEST_RTO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_outs_follow_what_was_measured() {
        let mut trips = RoundTrips::default();
        assert_eq!(trips.timeout(), Duration::from_secs(1));
        let now = Instant::default();
        trips.sample(now, Duration::from_millis(400));
        assert_eq!(trips.timeout(), Duration::from_millis(1200));
        for _ in 0..100 {
            trips.sample(now, Duration::from_millis(400));
        }
        assert_eq!(trips.timeout(), Duration::from_millis(600));
        trips.sample(now, Duration::from_millis(100));
        assert_eq!(trips.minimum(), Some(Duration::from_millis(100)));
    }
}

//! HyStart++ (RFC 9406): leaves slow start when round trips grow, before the queue at the bottleneck overflows.

use crate::time::Duration;

/// Samples of a round that must be in before it is judged.
const SAMPLES: u32 = 8;
/// The least and the largest growth of a round trip that counts.
const LEAST_GROWTH: Duration = Duration::from_millis(4);
const LARGEST_GROWTH: Duration = Duration::from_millis(16);
/// Slow start is so many times slower in conservative slow start.
const SLOWER: usize = 4;
/// Rounds of it before congestion avoidance.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// What is to happen in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The window grows by so many bytes.
    Grow(usize),
    /// Slow start is over.
    Leave,
}

/// The rounds of a slow start. A round is over when what was sent in it is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStart {
    round_end: u64,
    last_minimum: Option<Duration>,
    minimum: Option<Duration>,
    samples: u32,
    /// Round trips when conservative slow start began, and rounds of it.
    conservative: Option<(Duration, u32)>,
}

impl HyStart {
    /// What an acknowledgment of `acked` bytes up to `una` does; `next` is what will be sent next.
    pub fn on_ack(&mut self, acked: usize, una: u64, next: u64, sample: Option<Duration>) -> Verdict {
        if let Some(sample) = sample {
            self.minimum = Some(self.minimum.map_or(sample, |minimum| minimum.min(sample)));
            self.samples += 1;
        }
        if let (Some(minimum), true) = (self.minimum, self.samples >= SAMPLES) {
            match (self.conservative, self.last_minimum) {
                // Round trips shrank again: it was no queue.
                (Some((baseline, _)), _) if minimum < baseline => self.conservative = None,
                (None, Some(last)) if minimum >= last + last.part(8).clamp(LEAST_GROWTH, LARGEST_GROWTH) => {
                    self.conservative = Some((minimum, 0));
                }
                _ => {}
            }
        }
        if una >= self.round_end {
            self.round_end = next;
            self.last_minimum = self.minimum.or(self.last_minimum);
            (self.minimum, self.samples) = (None, 0);
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds > CONSERVATIVE_ROUNDS {
                    *self = HyStart::default();
                    return Verdict::Leave;
                }
            }
        }
        Verdict::Grow(if self.conservative.is_some() { acked / SLOWER } else { acked })
    }
}

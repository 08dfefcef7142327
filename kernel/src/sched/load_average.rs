//! The load averages of getloadavg(3): how many tasks were ready or running, faded over 1, 5 and 15 minutes.

use alloc::boxed::Box;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::irq::IrqCx;
use refs::{SpinLock, StrongRc};

use crate::time::{Expired, Setting, Timeline, Timer, TimerClock};

/// How often [`sample`] is called, in nanoseconds.
const INTERVAL: u64 = 5_000_000_000;

/// The bits behind the point in an average.
pub const SHIFT: u32 = 11;
const ONE: u64 = 1 << SHIFT;

/// What is left of an average after one interval, for 1, 5 and 15 minutes: `ONE * exp(-5 / seconds)`.
const DECAY: [u64; 3] = [1884, 2014, 2037];

static AVERAGES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Samples the load from now on. Called once, at boot.
pub fn start(cx: &Cx) {
    static TIMER: SpinLock<Option<StrongRc<Timer>>> = SpinLock::new(None);
    let go_on = |expired: Expired, _: &IrqCx| {
        if expired.times > 0 {
            sample();
        }
        ControlFlow::Continue(())
    };
    let timer = Timer::new(TimerClock::Clock(Timeline::Boot), Box::new(go_on));
    let next = Some(frame::time::now().saturating_add(INTERVAL));
    timer.get(cx).set(Setting { next, interval: INTERVAL }, cx);
    *TIMER.lock(cx) = Some(timer);
}

/// Takes in how many tasks are ready or running now.
fn sample() {
    let active = super::load() as u64 * ONE;
    for (average, decay) in AVERAGES.iter().zip(DECAY) {
        average.store(fade(average.load(Ordering::Relaxed), decay, active), Ordering::Relaxed);
    }
}

/// The averages over 1, 5 and 15 minutes, with [`SHIFT`] bits behind the point.
pub fn averages() -> [u64; 3] {
    AVERAGES.each_ref().map(|average| average.load(Ordering::Relaxed))
}

/// An average one interval later. It is rounded towards what it tends to, so that it gets there.
fn fade(average: u64, decay: u64, active: u64) -> u64 {
    let sum = average * decay + active * (ONE - decay);
    if active >= average { sum.div_ceil(ONE) } else { sum / ONE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_tends_to_what_there_is_and_gets_there() {
        let after = |mut average, active, intervals| {
            for _ in 0..intervals {
                average = fade(average, DECAY[0], active);
            }
            average
        };
        let minute = after(0, ONE, 12);
        // 1 - 1/e.
        assert!((ONE * 62 / 100..ONE * 65 / 100).contains(&minute), "{minute}");
        assert_eq!(after(0, ONE, 1000), ONE);
        assert_eq!(after(3 * ONE, 0, 1000), 0);
    }
}

//! The time stamp counter as a clock, and how fast it and the local APIC's timer are.

use core::sync::atomic::{AtomicU64, Ordering};

use super::instructions::{ordered_rdtsc, rdtsc};
use super::{apic, features, port};
use crate::clock_comparison::Comparison;

/// The counter at boot, and nanoseconds per cycle as a fraction of 2^32.
static START: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS_PER_CYCLE: AtomicU64 = AtomicU64::new(1 << 32);
static HERTZ: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Nanoseconds since [`calibrate`] began. Who has learned of a time that another core has read is never told an earlier one.
#[inline(always)]
pub fn nanoseconds() -> u64 {
    let cycles = ordered_rdtsc().wrapping_sub(START.load(Ordering::Relaxed));
    ((u128::from(cycles) * u128::from(NANOSECONDS_PER_CYCLE.load(Ordering::Relaxed))) >> 32) as u64
}

/// The counter at boot, and nanoseconds per cycle as a fraction of 2^32: all that [`nanoseconds`] goes by. They do not change once it is calibrated.
pub fn scale() -> (u64, u64) {
    (START.load(Ordering::Relaxed), NANOSECONDS_PER_CYCLE.load(Ordering::Relaxed))
}

/// Cycles per second.
pub fn hertz() -> u64 {
    HERTZ.load(Ordering::Relaxed)
}

/// The value of the counter at a time.
pub fn at(nanoseconds: u64) -> u64 {
    let cycles = u128::from(nanoseconds) * u128::from(hertz()) / 1_000_000_000;
    START.load(Ordering::Relaxed).wrapping_add(u64::try_from(cycles).unwrap_or(u64::MAX >> 1))
}

static COMPARISON: Comparison = Comparison::new();

/// Compares this core's counter with that of the boot core, which calls [`agrees_with_other`] at the same time.
pub fn compare() {
    COMPARISON.take_part(ordered_rdtsc);
}

/// Whether the counter of a core that has just been started is never behind this one's, nor this one's behind its.
pub fn agrees_with_other() -> bool {
    let behind = COMPARISON.compare(ordered_rdtsc);
    if behind != 0 {
        crate::println!("ebb: the clock of a processor is {behind} cycles behind another's");
    }
    behind == 0
}

const PIT_HERTZ: u64 = 1_193_182;
const PIT_CHANNEL_2: u16 = 0x42;
const PIT_COMMAND: u16 = 0x43;
const PIT_LATCH_2: u8 = 0b1000_0000;
const SPEAKER: u16 = 0x61;
/// A measurement is precise if it is certain to one part in so many,
const PRECISE: u64 = 4000;
/// and after so many ticks of the interval timer (about two milliseconds) it is good enough at one part in so many.
const LONG: u64 = 2386;
const GOOD_ENOUGH: u64 = 300;
/// The most measurements that are made. An emulator may be stopped in the middle of one, which makes it worthless.
const MOST_MEASUREMENTS: usize = 20;
/// So many cycles without a tick: there is no interval timer.
const NO_TICKS: u64 = 1 << 33;

/// When something happened: not before the first and not after the second value of the counter.
type Moment = (u64, u64);

/// Does something, and says when.
fn timed<T>(action: impl FnOnce() -> T) -> (T, Moment) {
    let before = rdtsc();
    let result = action();
    (result, (before, rdtsc()))
}

/// Cycles between two moments, and how uncertain they are.
fn between(start: Moment, end: Moment) -> (u64, u64) {
    let (shortest, longest) = (end.0.saturating_sub(start.1), end.1 - start.0);
    (shortest.midpoint(longest), longest - shortest)
}

/// Channel 2 of the interval timer, which counts down from 65,535 once.
struct IntervalTimer {
    count: u16,
    /// When the count was read: the next tick comes later.
    read: Moment,
}

impl IntervalTimer {
    fn start() -> Self {
        // The gate is bit 0 of the speaker's port. The count begins when its second half is written.
        // SAFETY: neither device touches memory.
        unsafe {
            port::write_u8(SPEAKER, port::read_u8(SPEAKER) & !3 | 1);
            port::write_u8(PIT_COMMAND, 0b1011_0000);
            port::write_u8(PIT_CHANNEL_2, 0xff);
            port::write_u8(PIT_CHANNEL_2, 0xff);
        }
        Self::read()
    }

    fn read() -> Self {
        // SAFETY: the device does not touch memory.
        unsafe {
            let ((), read) = timed(|| port::write_u8(PIT_COMMAND, PIT_LATCH_2));
            let count = u16::from_le_bytes([port::read_u8(PIT_CHANNEL_2), port::read_u8(PIT_CHANNEL_2)]);
            IntervalTimer { count, read }
        }
    }

    /// Waits for the next tick: when it was. `None` if none comes.
    fn tick(&mut self) -> Option<Moment> {
        let start = self.read.0;
        loop {
            let (last, not_before) = (self.count, self.read.0);
            *self = Self::read();
            // Behind zero it goes on from the top.
            if self.count > last || self.read.1 - start > NO_TICKS {
                return None;
            }
            if self.count < last {
                return Some((not_before, self.read.1));
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Measurement {
    /// Cycles, and ticks of the interval timer during them.
    cycles: u64,
    ticks: u64,
    /// What the APIC's timer counted, and during how many cycles.
    counted: u64,
    counted_during: u64,
    /// How uncertain the worse of the two is: one part in so many is certain.
    certain: u64,
}

/// Measures until it is precise enough, or as far as it gets.
fn measure() -> Option<Measurement> {
    let ((), apic_start) = timed(apic::start_counting);
    let mut timer = IntervalTimer::start();
    let start = timer.tick()?;
    let first = timer.count;
    let mut best = None;
    while let Some(end) = timer.tick() {
        let ticks = u64::from(first - timer.count);
        let (cycles, uncertain) = between(start, end);
        let (counted, apic_end) = timed(apic::counted);
        let (counted_during, counted_uncertain) = between(apic_start, apic_end);
        let certain = cycles / uncertain.max(counted_uncertain).max(1);
        best = Some(Measurement { cycles, ticks, counted, counted_during, certain });
        if certain >= PRECISE || ticks >= LONG && certain >= GOOD_ENOUGH {
            break;
        }
    }
    best
}

/// Finds out how fast the counter and the APIC's timer are. Takes a fraction of a millisecond where ports are quick.
pub fn calibrate() {
    START.store(rdtsc(), Ordering::Relaxed);
    let mut best: Option<Measurement> = None;
    for _ in 0..MOST_MEASUREMENTS {
        let start = rdtsc();
        let Some(next) = measure() else {
            if rdtsc() - start > NO_TICKS {
                break;
            }
            continue;
        };
        if best.is_none_or(|best| next.certain > best.certain) {
            best = Some(next);
        }
        if best.is_some_and(|best| best.certain >= GOOD_ENOUGH) {
            break;
        }
    }
    // A machine without an interval timer: a guess.
    let best = best.unwrap_or(Measurement {
        cycles: 1_000_000_000,
        ticks: PIT_HERTZ,
        counted: 62_500_000,
        counted_during: 1_000_000_000,
        certain: 1,
    });
    // A processor that says how fast its counter is knows better (leaf 0x15: crystal and ratio).
    let said = features::cpuid(0x15, 0);
    let hertz = match (said.eax, said.ebx, said.ecx) {
        (denominator @ 1.., numerator @ 1.., crystal @ 1..) => {
            u64::from(crystal) * u64::from(numerator) / u64::from(denominator)
        }
        _ => best.cycles * PIT_HERTZ / best.ticks.max(1),
    };
    let hertz = hertz.max(1);
    HERTZ.store(hertz, Ordering::Relaxed);
    NANOSECONDS_PER_CYCLE.store((1_000_000_000 << 32) / hertz, Ordering::Relaxed);
    let timer = u128::from(best.counted) * u128::from(hertz) / u128::from(best.counted_during.max(1));
    apic::set_frequency(timer as u64);
}

//! The time stamp counter as a clock, and how fast it and the local APIC's timer are.

use core::sync::atomic::{AtomicU64, Ordering};

use super::instructions::rdtsc;
use super::{apic, features, port};

/// The counter at boot, and nanoseconds per cycle as a fraction of 2^32.
static START: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS_PER_CYCLE: AtomicU64 = AtomicU64::new(1 << 32);
static HERTZ: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Nanoseconds since [`calibrate`] began.
#[inline(always)]
pub fn nanoseconds() -> u64 {
    let cycles = rdtsc().wrapping_sub(START.load(Ordering::Relaxed));
    ((u128::from(cycles) * u128::from(NANOSECONDS_PER_CYCLE.load(Ordering::Relaxed))) >> 32) as u64
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

const PIT_HERTZ: u64 = 1_193_182;
const PIT_CHANNEL_2: u16 = 0x42;
const PIT_COMMAND: u16 = 0x43;
const SPEAKER: u16 = 0x61;
/// About two milliseconds.
const TICKS: u16 = 2386;
/// A measurement is good enough if it is certain to one part in so many.
const PRECISION: u64 = 300;
/// The most measurements that are made. An emulator may be stopped in the middle of one, which makes it worthless.
const MOST_MEASUREMENTS: usize = 20;

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

struct Measurement {
    /// Cycles in [`TICKS`] of the interval timer.
    cycles: u64,
    /// What the APIC's timer counted, and during how many cycles.
    counted: u64,
    counted_during: u64,
    /// How uncertain the worse of the two is.
    uncertain: u64,
}

fn measure() -> Measurement {
    // Channel 2 in mode 0 counts down once, from when the second half of its count is written. The gate is bit 0 of the speaker's
    // port, the output its bit 5.
    // SAFETY: none of these devices touches memory.
    unsafe {
        port::write_u8(SPEAKER, port::read_u8(SPEAKER) & !3 | 1);
        port::write_u8(PIT_COMMAND, 0b1011_0000);
        port::write_u8(PIT_CHANNEL_2, TICKS as u8);
        let ((), apic_start) = timed(apic::start_counting);
        let ((), start) = timed(|| port::write_u8(PIT_CHANNEL_2, (TICKS >> 8) as u8));
        let mut not_yet = start.0;
        let end = loop {
            let (status, (before, after)) = timed(|| port::read_u8(SPEAKER));
            // A machine without an interval timer would keep us here for ever.
            if status & 1 << 5 != 0 || after - start.0 > 1 << 33 {
                break (not_yet, after);
            }
            not_yet = before;
        };
        let (counted, apic_end) = timed(apic::counted);
        let (cycles, uncertain) = between(start, end);
        let (counted_during, counted_uncertain) = between(apic_start, apic_end);
        Measurement { cycles, counted, counted_during, uncertain: uncertain.max(counted_uncertain) }
    }
}

/// Finds out how fast the counter and the APIC's timer are. Takes about two milliseconds.
pub fn calibrate() {
    START.store(rdtsc(), Ordering::Relaxed);
    let mut best = measure();
    for _ in 1..MOST_MEASUREMENTS {
        if best.uncertain < best.cycles / PRECISION {
            break;
        }
        let next = measure();
        if next.uncertain < best.uncertain {
            best = next;
        }
    }
    // A processor that says how fast its counter is knows better (leaf 0x15: crystal and ratio).
    let said = features::cpuid(0x15, 0);
    let hertz = match (said.eax, said.ebx, said.ecx) {
        (denominator @ 1.., numerator @ 1.., crystal @ 1..) => {
            u64::from(crystal) * u64::from(numerator) / u64::from(denominator)
        }
        _ => best.cycles * PIT_HERTZ / u64::from(TICKS),
    };
    let hertz = hertz.max(1);
    HERTZ.store(hertz, Ordering::Relaxed);
    NANOSECONDS_PER_CYCLE.store((1_000_000_000 << 32) / hertz, Ordering::Relaxed);
    let timer = u128::from(best.counted) * u128::from(hertz) / u128::from(best.counted_during.max(1));
    apic::set_frequency(timer as u64);
}

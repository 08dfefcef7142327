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
/// About a millisecond.
const TICKS: u16 = 1193;

/// Cycles of the counter and of the APIC's timer during [`TICKS`] of the interval timer.
fn measure() -> (u64, u64) {
    // Channel 2 in mode 0 counts down once; the gate is bit 0 of the speaker's port, the output its bit 5.
    // SAFETY: none of these devices touches memory.
    unsafe {
        let speaker = port::read_u8(SPEAKER) & !3;
        port::write_u8(SPEAKER, speaker);
        port::write_u8(PIT_COMMAND, 0b1011_0000);
        port::write_u8(PIT_CHANNEL_2, TICKS as u8);
        port::write_u8(PIT_CHANNEL_2, (TICKS >> 8) as u8);
        apic::start_counting();
        port::write_u8(SPEAKER, speaker | 1);
        let start = rdtsc();
        // A machine without an interval timer would keep us here for ever.
        while port::read_u8(SPEAKER) & 1 << 5 == 0 && rdtsc() - start < 1 << 32 {}
        let cycles = rdtsc() - start;
        (cycles, apic::counted())
    }
}

/// Finds out how fast the counter and the APIC's timer are. Takes about two milliseconds.
pub fn calibrate() {
    START.store(rdtsc(), Ordering::Relaxed);
    let mut last = measure();
    for _ in 0..8 {
        let next = measure();
        let agree = next.0.abs_diff(last.0) < next.0 / 500;
        // Whoever interrupts us makes a measurement too long, never too short.
        last = if next.0 < last.0 { next } else { last };
        if agree {
            break;
        }
    }
    let per_second = |cycles: u64| cycles * PIT_HERTZ / u64::from(TICKS);
    // A processor that says how fast its counter is knows better (leaf 0x15: crystal and ratio).
    let said = features::cpuid(0x15, 0);
    let hertz = match (said.eax, said.ebx, said.ecx) {
        (denominator @ 1.., numerator @ 1.., crystal @ 1..) => {
            u64::from(crystal) * u64::from(numerator) / u64::from(denominator)
        }
        _ => per_second(last.0),
    };
    HERTZ.store(hertz.max(1), Ordering::Relaxed);
    NANOSECONDS_PER_CYCLE.store((1_000_000_000 << 32) / hertz.max(1), Ordering::Relaxed);
    apic::set_frequency(per_second(last.1));
}

//! The time-stamp counter, and how it relates to the core's own clock.

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the tables count cycles of the x86-64 time-stamp counter");

use core::arch::x86_64::{_mm_lfence, _rdtsc};

/// A point in time: ticks of the time-stamp counter. What stands before the call has been executed.
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: both instructions exist on every x86-64 and touch no memory.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// A point in time as [`now`], but the processor may execute what stands before and behind the call at the same time.
#[inline(always)]
pub fn now_unordered() -> u64 {
    // SAFETY: as in `now`.
    unsafe { _rdtsc() }
}

/// What two calls of a clock cost by themselves: the median of many.
#[inline(always)]
pub fn overhead(clock: impl Fn() -> u64) -> u64 {
    let mut samples: Vec<u64> = (0..2001)
        .map(|_| {
            let start = clock();
            clock() - start
        })
        .collect();
    *samples.select_nth_unstable(1000).1
}

/// How many ticks one cycle of the core takes, by a chain of multiplications that depend on each other (three cycles each).
pub fn ticks_per_core_cycle() -> f64 {
    const CHAIN: u64 = 100_000;
    let mut best = f64::MAX;
    for _ in 0..20 {
        let start = now();
        let mut value = 3_u64;
        for _ in 0..CHAIN / 10 {
            // SAFETY: ten multiplications of a register of ours.
            unsafe {
                core::arch::asm!(
                    ".rept 10", "imul {value}, {value}", ".endr",
                    value = inout(reg) value, options(nomem, nostack)
                );
            }
        }
        core::hint::black_box(value);
        best = best.min((now() - start) as f64 / (3 * CHAIN) as f64);
    }
    best
}

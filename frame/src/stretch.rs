//! How long this kernel keeps interrupts off: for kernels that are built with the feature `stretch`.
//!
//! A stretch is kernel work during which no interrupt is taken: it begins where user code traps, where an interrupt is let in, or where the
//! idle loop finds work, and ends where user code runs, the core idles, or [`irq::poll`](crate::irq::poll) lets interrupts in. A task switch does not end it,
//! so a stretch bounds what another process waits for. The longest is kept for each cause. Without the feature none of this exists.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::arch::machine::core_block::core_number;
use crate::arch::machine::instructions::rdtsc;
use crate::cpu::MAX_CORES;

/// What a stretch began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system call of this number; those from 511 on count as 511.
    Call(usize),
    /// The exception or interrupt of this vector.
    Trap(usize),
    /// The idle loop found work.
    Idle,
    /// As anything, but then a task left the core and another one went on.
    Switch,
}

const CALLS: usize = 512;
const VECTORS: usize = 256;
const CAUSES: usize = CALLS + VECTORS + 2;

impl Cause {
    fn index(self) -> usize {
        match self {
            Cause::Call(number) => number.min(CALLS - 1),
            Cause::Trap(vector) => CALLS + vector % VECTORS,
            Cause::Idle => CALLS + VECTORS,
            Cause::Switch => CALLS + VECTORS + 1,
        }
    }

    fn of(index: usize) -> Self {
        match index {
            ..CALLS => Cause::Call(index),
            _ if index < CALLS + VECTORS => Cause::Trap(index - CALLS),
            _ if index == CALLS + VECTORS => Cause::Idle,
            _ => Cause::Switch,
        }
    }
}

/// The longest stretch of each cause, in cycles of the time stamp counter.
static LONGEST: [AtomicU64; CAUSES] = [const { AtomicU64::new(0) }; CAUSES];

/// A core's stretch.
struct Now {
    /// When it began; 0 before the core's first.
    since: AtomicU64,
    cause: AtomicUsize,
}

static NOW: [Now; MAX_CORES] = [const { Now { since: AtomicU64::new(0), cause: AtomicUsize::new(0) } }; MAX_CORES];

/// Interrupts are off from here on.
pub(crate) fn begin(cause: Cause) {
    let now = &NOW[core_number()];
    now.cause.store(cause.index(), Ordering::Relaxed);
    now.since.store(rdtsc(), Ordering::Relaxed);
}

/// A task leaves the core; what follows is another's work.
pub(crate) fn switch() {
    NOW[core_number()].cause.store(Cause::Switch.index(), Ordering::Relaxed);
}

/// Interrupts are let in. Gives the cause of the stretch that ends.
pub(crate) fn end() -> Cause {
    let now = &NOW[core_number()];
    let cause = now.cause.load(Ordering::Relaxed);
    let since = now.since.swap(0, Ordering::Relaxed);
    if since != 0 {
        let cycles = rdtsc().saturating_sub(since);
        LONGEST[cause].fetch_max(cycles, Ordering::Relaxed);
    }
    Cause::of(cause)
}

/// The longest stretch of each cause that there was, in cycles of the time stamp counter.
pub fn longest() -> impl Iterator<Item = (Cause, u64)> {
    let all = LONGEST.iter().map(|cycles| cycles.load(Ordering::Relaxed)).enumerate();
    all.filter(|&(_, cycles)| cycles != 0).map(|(index, cycles)| (Cause::of(index), cycles))
}

/// Forgets all stretches so far, but for the one that this is called in.
pub fn reset() {
    for cycles in &LONGEST {
        cycles.store(0, Ordering::Relaxed);
    }
}

//! What tests that run random programs have in common: numbers from a seed, and the seeds to try.

use std::cell::Cell;
use std::ops::Range;

/// Numbers without pattern, the same ones for the same seed (a multiplicative generator, its upper half).
pub struct Random(Cell<u64>);

impl Random {
    /// The numbers of that seed.
    pub fn new(seed: u64) -> Self {
        Random(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851))
    }

    /// The next one, below `limit`.
    pub fn below(&self, limit: usize) -> usize {
        self.0.set(self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        (self.0.get() >> 33) as usize % limit
    }
}

/// The seeds that `EBB_SEEDS=FIRST..END` says, or else `usual`.
pub fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(range) = std::env::var("EBB_SEEDS") else { return usual };
    let (first, end) = range.split_once("..").expect("EBB_SEEDS=FIRST..END");
    first.parse().expect("a number")..end.parse().expect("a number")
}

//! Cores that stand still now and then, just before or after they take a lock: for kernels that are built with the feature `stalls`. Without it none of this exists.
//!
//! A virtual processor stands still whenever its host runs something else. What goes wrong only if that happens between two certain instructions goes wrong once in a thousand runs on a quiet host; with this it does in the first few.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};

/// Of so many times one is a stall.
const EACH: u64 = 2048;
/// A stall takes up to so many turns of a loop.
const LONGEST: u64 = 65_536;

/// The times so far.
static TIMES: AtomicU64 = AtomicU64::new(0);

/// Stands still, now and then.
pub(crate) fn maybe() {
    // SplitMix64's steps (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    let mut mixed = TIMES.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    if mixed.is_multiple_of(EACH) {
        for _ in 0..(mixed >> 32) % LONGEST {
            spin_loop();
        }
    }
}

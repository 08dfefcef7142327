//! [`Calibration`]: how slow this machine is, compared with one that executes an instruction in a nanosecond.
//!
//! The costs of [`Held`] were counted in instructions. How long an instruction takes depends on the processor, its caches, and who emulates it. So a piece of work of which the instructions are
//! known is timed many times: what destructors do, taking things out of a tree and a list, with a lock, and giving their memory back, of many more than a first cache holds. Of all rounds the slowest but
//! one in twenty counts, and half of it more ([`groups::Rounds`]); all costs are multiplied by what that is for an instruction. (A host that takes time from the machine disturbs some of them.)
//!
//! It is taken once, before the controller is first enabled, and when somebody writes to `reclaim.calibrate`. Budgets keep counts, so they lose nothing by it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use groups::{Cost, Rounds};
use refs::SpinLock;

use super::{Held, assumed, tree};

/// So often the work is timed.
const ROUNDS: usize = 2_000;

/// So many rounds in a thousand may have been disturbed, by a host that had the processor do something else.
const DISTURBED: usize = 50;

/// So many things end in each round, of so many that there are.
const OBJECTS: u32 = 8;
const POOL: usize = 512;

/// What a calibration finds for the end of one on a machine with an instruction in each nanosecond: as many instructions as one takes in the slowest rounds, when slots go back to the heap, and half as
/// many more.
const INSTRUCTIONS: u64 = 560;

static IS_CALIBRATED: AtomicBool = AtomicBool::new(false);

/// Whether a calibration has been finished.
pub fn is_calibrated() -> bool {
    IS_CALIBRATED.load(Ordering::Acquire)
}

/// A thing as large as a file's description.
type Thing = Box<[u64; 24]>;

/// A calibration that is under way.
#[derive(Default)]
pub struct Calibration {
    rounds: Rounds,
    things: SpinLock<BTreeMap<u32, Thing>>,
    next: u32,
}

impl Calibration {
    /// Takes one round, of some thousand instructions; false if there were enough.
    pub fn goes_on(&mut self) -> bool {
        if self.rounds.count() >= ROUNDS {
            return false;
        }
        let (first, mut numbers) = (self.next, Vec::with_capacity(OBJECTS as usize));
        self.next = self.next.wrapping_add(OBJECTS);
        let is_full = self.things.with(|things| {
            (0..OBJECTS).for_each(|nth| _ = things.insert(scattered(first.wrapping_add(nth)), Box::new([0; 24])));
            things.len() >= POOL
        });
        if !is_full {
            return true;
        }
        // Those that were made longest ago.
        let oldest = self.next.wrapping_sub(POOL as u32);
        numbers.extend((0..OBJECTS).map(|nth| scattered(oldest.wrapping_add(nth))));
        let start = frame::time::now();
        for number in numbers {
            let thing = self.things.with(|things| things.remove(&number));
            drop(thing);
        }
        self.rounds.add(frame::time::now().saturating_sub(start), OBJECTS);
        true
    }

    /// Has all costs follow from what was found.
    pub fn finish(self) {
        let found = self.rounds.bound_but_for(DISTURBED);
        if let Some(tree) = tree() {
            tree.set_costs(|class: Held| scaled(class, found));
        }
        IS_CALIBRATED.store(true, Ordering::Release);
    }
}

/// What a class costs where the end of a thing was found to take so long; never less than on a machine with an instruction in each nanosecond.
fn scaled(class: Held, found: u64) -> Cost {
    let cost = u128::from(assumed(class)) * u128::from(found.max(INSTRUCTIONS)) / u128::from(INSTRUCTIONS);
    Cost::eager(u64::try_from(cost).unwrap_or(Cost::MOST))
}

/// Numbers in no order, each once.
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use groups::Class;

    use super::*;

    #[test]
    fn costs_grow_with_what_an_instruction_takes_and_never_shrink() {
        for &class in Held::ALL {
            assert_eq!(scaled(class, 1).eager, assumed(class));
            assert_eq!(scaled(class, INSTRUCTIONS).eager, assumed(class));
            assert_eq!(scaled(class, 4 * INSTRUCTIONS).eager, 4 * assumed(class));
        }
    }

    #[test]
    fn a_calibration_ends_and_keeps_no_more_than_its_pool() {
        let mut calibration = Calibration::default();
        let mut steps = 0;
        while calibration.goes_on() {
            steps += 1;
            assert!(calibration.things.with(|things| things.len()) <= POOL + OBJECTS as usize);
        }
        assert_eq!(steps, ROUNDS + POOL / OBJECTS as usize - 1);
    }
}

//! `ebb-tasks` from C, by `ac.h`, where a C compiler takes its nested functions.

use crate::line::{BATCH, Samples};
use crate::peers::rounds;

#[cfg(ac)]
mod shim {
    // What the header calls is in this crate.
    use ac as _;

    unsafe extern "C" {
        pub safe fn ebb_ac_ring(tasks: usize, rounds: usize) -> u64;
        pub safe fn ebb_ac_hand_over(pairs: usize) -> u64;
        pub safe fn ebb_ac_hand_over_by_id(pairs: usize) -> u64;
        pub safe fn ebb_ac_create_empty(operations: usize) -> u64;
        pub safe fn ebb_ac_create_suspend(operations: usize) -> u64;
        pub safe fn ebb_ac_create_nested(depth: usize, repeats: usize) -> u64;
        pub safe fn ebb_ac_finish(operations: usize) -> u64;
        pub safe fn ebb_ac_ids(operations: usize) -> u64;
    }
}

/// One way of using `ac.h`, if it could be compiled.
type Run = Option<fn(&mut Samples)>;

/// The runs of all functions, each a batch that C measures.
macro_rules! runs {
    ($($(#[$doc:meta])* $name:ident $([$constant:ident])? = $operations:expr, $batch:expr;)*) => {
        $($(#[$doc])*
        pub fn $name$(<const $constant: usize>)?() -> Run {
            #[cfg(ac)]
            return Some(|s| {
                while s.more() {
                    s.push($operations, $batch);
                }
            });
            #[cfg(not(ac))]
            None
        })*
    };
}

runs! {
    /// Tasks that yield for ever; per yield.
    ring[TASKS] = rounds(TASKS) * TASKS, shim::ebb_ac_ring(TASKS, rounds(TASKS));
    /// Two tasks that hand over to each other by reference; per switch.
    hand_over = 2 * BATCH, shim::ebb_ac_hand_over(BATCH);
    /// Two tasks that hand over to each other by ids under which they save themselves; per switch.
    hand_over_by_id = 2 * BATCH, shim::ebb_ac_hand_over_by_id(BATCH);
    /// `ASYNC({})`.
    create_empty = BATCH, shim::ebb_ac_create_empty(BATCH);
    /// `ASYNC({ THCYield(); }); THCYield();`
    create_suspend = BATCH, shim::ebb_ac_create_suspend(BATCH);
    /// Tasks made inside each other; per task.
    create_nested[DEPTH] = rounds(DEPTH) * DEPTH, shim::ebb_ac_create_nested(DEPTH, rounds(DEPTH));
    /// `DO_FINISH({})`.
    finish = BATCH, shim::ebb_ac_finish(BATCH);
    /// An id made and given back.
    ids = BATCH, shim::ebb_ac_ids(BATCH);
}

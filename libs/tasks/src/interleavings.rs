//! For tests with `--cfg ebb_shuttle`, here and in crates that build on this one.

use alloc::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Tries `program` in so many interleavings: in half of them whoever runs next is chosen anew at each step, in the others few switches are
/// made, where it hurts most. The first thread of a program should only wait for those that it starts: shuttle's scopes may wake it from
/// other waits.
pub fn explore(interleavings: usize, program: impl Fn() + Send + Sync + 'static) {
    let program = Arc::new(program);
    let config = || {
        let mut config = Config::new();
        config.silence_warnings = true;
        config
    };
    let same = program.clone();
    Runner::new(RandomScheduler::new(interleavings / 2), config()).run(move || same());
    Runner::new(PctScheduler::new(3, interleavings / 2), config()).run(move || program());
}

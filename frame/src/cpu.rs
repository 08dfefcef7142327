//! Cores, and data of which each core has its own.

use refs::NoSuspend;

/// The number of the core that runs this; it stays true until the next suspension.
pub fn current(_cx: &impl NoSuspend) -> usize {
    0
}

/// How many cores run.
pub fn count() -> usize {
    1
}

/// One `T` for each core.
pub struct PerCpu<T: Sync + 'static> {
    values: [T; 1],
}

impl<T: Sync> PerCpu<T> {
    /// From the values, in the order of the cores' numbers.
    pub const fn new(values: [T; 1]) -> Self {
        PerCpu { values }
    }

    /// This core's value, until the next suspension.
    #[inline(always)]
    pub fn get<'a>(&'a self, cx: &'a impl NoSuspend) -> &'a T {
        &self.values[current(cx)]
    }
}

//! One value for each core. Its fields are atomic, and used with plain loads and stores: kernel code is not interrupted, so
//! a core that changes its own value is alone; others at most look at it.

use super::machine;

/// The highest number of cores.
pub(super) const MAX_CORES: usize = 64;

/// One `T` for each core.
pub(super) struct CoreLocal<T>([T; MAX_CORES]);

impl<T: Sync> CoreLocal<T> {
    /// From the values of all cores.
    pub(super) const fn new(values: [T; MAX_CORES]) -> Self {
        CoreLocal(values)
    }

    /// This core's value.
    #[inline(always)]
    pub(super) fn here(&self) -> &T {
        &self.0[machine::core_number() % MAX_CORES]
    }

    /// A core's value.
    #[inline(always)]
    pub(super) fn of(&self, core: usize) -> &T {
        &self.0[core % MAX_CORES]
    }

    /// All cores' values.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

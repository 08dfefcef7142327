//! What the programs in `examples/` have in common.

use refs::{Cx, IdTable, SpinLock, WeakRc};

/// An object.
pub struct File {
    /// Something in it.
    pub offset: u64,
}

/// Shared state.
pub static FILES: IdTable<File> = IdTable::new();
/// A lock.
pub static LOCK: SpinLock<u64> = SpinLock::new(0);

/// Suspends.
pub fn wait_async(cx: &mut Cx) {
    tasks::yield_async(cx);
}

/// A name from somewhere.
pub fn name(cx: &Cx) -> WeakRc<File> {
    FILES.weak(3, cx).unwrap()
}

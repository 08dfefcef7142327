//! Which slab an object goes to.

use frame::mm::{HeapSlot, SizeClass, SlabPolicy};

/// All slabs that have free slots.
pub static SLABS: Slabs = Slabs {};

/// Slabs, by size class.
pub struct Slabs {}

impl SlabPolicy for Slabs {
    fn take(&self, _class: SizeClass) -> Option<HeapSlot> {
        None
    }
    fn give(&self, _slot: HeapSlot) {}
}

//! The kernel's heap: slabs of slots of one size each, and whole blocks of frames for what is larger.

/// A size of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass(pub u8);

/// A free slot of a slab.
pub struct HeapSlot {
    _private: (),
}

/// Which slab an object goes to.
pub trait SlabPolicy: Sync {
    /// A free slot of that size.
    fn take(&self, class: SizeClass) -> Option<HeapSlot>;
    /// Takes a slot back.
    fn give(&self, slot: HeapSlot);
}

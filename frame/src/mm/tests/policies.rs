//! The kernel's own policies: they are safe code and need no kernel around them.

#[path = "../../../../kernel/allocators/src/buddy.rs"]
pub mod buddy;
#[path = "../../../../kernel/allocators/src/slab.rs"]
pub mod slab;

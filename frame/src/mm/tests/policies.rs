//! The kernel's own policies: they are safe code and need no kernel around them.

#[path = "../../../../kernel/src/memory/buddy.rs"]
pub mod buddy;
#[path = "../../../../kernel/src/memory/slab.rs"]
pub mod slab;

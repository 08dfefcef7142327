//! Memory: frames, untyped user memory, page tables, heap.
mod frame;
mod heap;
mod io;
mod vm_space;

pub use frame::{FrameLink, FrameNumber, FramePolicy, UFrame, frame_count, frame_link};
pub use heap::{HeapSlot, SizeClass, SlabPolicy};
pub use io::{Access, Fault, Reader, Writer};
pub use vm_space::{Entry, OutOfMemory, Prot, Sharing, USER_END, VmSpace};

/// Bytes in a page and in a frame.
pub const PAGE_SIZE: usize = 4096;

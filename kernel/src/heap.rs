//! How much memory objects of the kernel take.

use frame::mm::{PAGE_SIZE, SizeClass};
use refs::StrongRc;

/// So many bytes of the heap an object of that size takes, where there are many: with its part of what its page has besides.
pub const fn slot_bytes(bytes: usize) -> usize {
    match SizeClass::of(bytes, 16) {
        Some(class) => PAGE_SIZE / class.capacity(),
        None => bytes,
    }
}

/// So many bytes of memory an object takes, with its link.
pub const fn object_bytes<T: 'static>() -> usize {
    slot_bytes(StrongRc::<T>::OBJECT_BYTES) + StrongRc::<T>::LINK_BYTES
}

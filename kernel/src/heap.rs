//! How much memory objects of the kernel take, and copies of what may be long.

use alloc::vec::Vec;

use frame::mm::{PAGE_SIZE, SizeClass};
use refs::StrongRc;

use crate::error::{Errno, Result};

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

/// A copy of what a program may have made as long as a large block of the heap.
///
/// # Errors
/// ENOMEM.
pub fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(values.len()).map_err(|_| Errno::ENOMEM)?;
    copy.extend_from_slice(values);
    Ok(copy)
}

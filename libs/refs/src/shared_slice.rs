//! [`SharedSlice`]: a slice that several tables own until one of them changes it.
//!
//! It is one allocation: how many own it, then the items. Whoever is the only owner may change them; the others copy first, which is the table's
//! business: it knows how an item is copied. An empty slice has no allocation.

use alloc::alloc::{Layout, alloc, dealloc};
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use crate::mode::MOST_OWNERS;
use crate::sync::{AtomicU32, Ordering};

#[repr(C)]
struct Shared<T> {
    owners: AtomicU32,
    items: [T; 0],
}

/// Owns a slice, alone or with others.
pub(crate) struct SharedSlice<T> {
    /// The first item; dangling if there is none.
    items: NonNull<T>,
    len: usize,
    _owns: PhantomData<T>,
}

// SAFETY: owners have `&T`, and the last one, on whichever thread, has the items by value.
unsafe impl<T: Send + Sync> Send for SharedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SharedSlice<T> {}

impl<T> SharedSlice<T> {
    /// No items.
    pub const fn empty() -> Self {
        SharedSlice { items: NonNull::dangling(), len: 0, _owns: PhantomData }
    }

    /// The items that `item` makes, with one owner; `None`, and `item` was not called, if there is no memory for them.
    pub fn new(len: usize, mut item: impl FnMut(usize) -> T) -> Option<Self> {
        if len == 0 {
            return Some(Self::empty());
        }
        let layout = Self::layout(len)?;
        // SAFETY: the layout is not empty.
        let memory = NonNull::new(unsafe { alloc(layout) })?;
        // SAFETY: the allocation begins with the count, behind which there is room for `len` items. If `item` panics, it is lost.
        unsafe {
            memory.cast::<AtomicU32>().write(AtomicU32::new(1));
            let items = memory.byte_add(offset_of!(Shared<T>, items)).cast::<T>();
            for index in 0..len {
                items.add(index).write(item(index));
            }
            Some(SharedSlice { items, len, _owns: PhantomData })
        }
    }

    fn layout(len: usize) -> Option<Layout> {
        let (layout, at) = Layout::new::<AtomicU32>().extend(Layout::array::<T>(len).ok()?).ok()?;
        debug_assert_eq!(at, offset_of!(Shared<T>, items));
        Some(layout.pad_to_align())
    }

    #[inline(always)]
    fn shared(&self) -> NonNull<Shared<T>> {
        // SAFETY: of the same allocation; called only where there is one.
        unsafe { self.items.byte_sub(offset_of!(Shared<T>, items)).cast() }
    }

    /// How many own it.
    #[inline(always)]
    pub fn owners(&self) -> u32 {
        if self.len == 0 {
            return 1;
        }
        // SAFETY: this owner keeps the allocation. Acquire: what a former owner has read comes before what the only one writes.
        unsafe { (*self.shared().as_ptr()).owners.load(Ordering::Acquire) }
    }

    /// One more owner of the same items.
    ///
    /// # Panics
    /// At 2^31 owners.
    pub fn share(&self) -> Self {
        if self.len > 0 {
            // SAFETY: this owner keeps the allocation.
            let owners = unsafe { &(*self.shared().as_ptr()).owners };
            if owners.fetch_add(1, Ordering::Relaxed) >= MOST_OWNERS {
                owners.fetch_sub(1, Ordering::Relaxed);
                panic!("too many owners");
            }
        }
        SharedSlice { items: self.items, len: self.len, _owns: PhantomData }
    }

    /// Gives up this share, and has no items any more, if others own them, too. The only owner keeps them: of several who leave at once, the last
    /// finds that it is the only one.
    pub fn leave(&mut self) {
        if self.owners() == 1 {
            return;
        }
        // SAFETY: this owner keeps the allocation until here, and again where it was the last.
        let owners = unsafe { &(*self.shared().as_ptr()).owners };
        // Acquire: what former owners have read comes before what the only one writes. Release: what was read here comes before it, too.
        if owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Nobody else knows of the items.
            owners.store(1, Ordering::Relaxed);
        } else {
            (self.items, self.len) = (NonNull::dangling(), 0);
        }
    }

    /// The items, to be changed, if nobody else owns them.
    #[inline(always)]
    pub fn get_mut(&mut self) -> Option<&mut [T]> {
        if self.owners() != 1 {
            return None;
        }
        // SAFETY: initialised by `new`; the only owner is borrowed mutably, so nobody reads them or becomes an owner.
        Some(unsafe { core::slice::from_raw_parts_mut(self.items.as_ptr(), self.len) })
    }
}

impl<T> Deref for SharedSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: initialised by `new`, kept by this owner, and not changed while it is borrowed.
        unsafe { core::slice::from_raw_parts(self.items.as_ptr(), self.len) }
    }
}

impl<T> SharedSlice<T> {
    /// Drops the items and frees their memory.
    ///
    /// # Safety
    /// There were items, and their last owner has given up its share. Nobody gets at them afterwards.
    #[inline(never)]
    unsafe fn free(&mut self) {
        // SAFETY: the caller's promise.
        unsafe {
            ptr::drop_in_place(ptr::slice_from_raw_parts_mut(self.items.as_ptr(), self.len));
            if let Some(layout) = Self::layout(self.len) {
                dealloc(self.shared().as_ptr().cast(), layout);
            }
        }
    }
}

impl<T> Drop for SharedSlice<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        // SAFETY: this owner keeps the allocation until here. The last one drops the items, after all that others have read of them.
        unsafe {
            if (*self.shared().as_ptr()).owners.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.free();
            }
        }
    }
}

#[cfg(all(test, not(ebb_loom)))]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    #[test]
    fn only_the_last_owner_may_change_it() {
        let mut first = SharedSlice::new(3, |index| index.to_string()).unwrap();
        first.get_mut().unwrap()[1].push('!');
        let mut second = first.share();
        assert_eq!((first.owners(), &second[..]), (2, &["0".to_string(), "1!".to_string(), "2".to_string()][..]));
        assert!(first.get_mut().is_none() && second.get_mut().is_none());
        drop(first);
        second.get_mut().unwrap()[0].clear();
        assert_eq!(second[0], "");
    }

    #[test]
    fn only_the_last_owner_cannot_leave() {
        let mut first = SharedSlice::new(2, |index| index.to_string()).unwrap();
        let mut second = first.share();
        first.leave();
        assert!(first.is_empty() && second.owners() == 1);
        second.leave();
        assert_eq!(second.get_mut().unwrap(), ["0", "1"]);
        let mut empty = SharedSlice::<String>::empty();
        empty.leave();
        assert!(empty.is_empty());
    }

    #[test]
    fn an_empty_one_is_nobodys() {
        let mut empty = SharedSlice::<String>::empty();
        let mut other = empty.share();
        assert!(empty.get_mut().unwrap().is_empty() && other.get_mut().unwrap().is_empty());
        assert_eq!(SharedSlice::<u64>::new(0, |_| unreachable!()).unwrap().len(), 0);
    }

    #[test]
    fn items_of_any_alignment_stand_behind_the_count() {
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[repr(align(64))]
        struct Line(u8);
        let lines = SharedSlice::new(5, |index| Line(index as u8)).unwrap();
        assert!(lines.iter().enumerate().all(|(index, line)| *line == Line(index as u8)));
        let bytes = SharedSlice::new(5, |index| index as u8).unwrap();
        assert_eq!(bytes.share()[..], [0, 1, 2, 3, 4]);
    }
}

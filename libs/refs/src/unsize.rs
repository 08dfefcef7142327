//! Turning a pointer to an object of a sized type into one to the same object as `dyn Trait` or as a slice, on stable Rust.
//!
//! The compiler makes the wide reference, in a function that the caller gives (`|value| value`); what it returned is checked
//! to be the argument itself, and its second word (the vtable, the length) is used with the object's own address. Freeing does
//! not depend on it: the object's header knows what it was made as.

use core::ptr::NonNull;

use crate::mode::Mode;
use crate::object::Object;

/// The object as `widen` sees its value.
///
/// What `widen` returns is a reference for as long as the object can be borrowed at all (no one ever has `&mut` to it), so it is
/// as good later as it is now.
///
/// # Safety
/// The object lives and can be borrowed.
pub(crate) unsafe fn unsize<T: 'static, U: ?Sized + 'static, M: Mode>(
    object: NonNull<Object<T, M>>,
    widen: fn(&T) -> &U,
) -> NonNull<Object<U, M>> {
    // SAFETY: by this function's contract.
    let value = unsafe { &object.as_ref().value };
    let address = core::ptr::from_ref(value).addr();
    let widened = widen(value);
    let wide = core::ptr::from_ref(widened);
    assert_eq!(wide.cast::<()>().addr(), address, "unsize: the function must return its argument");
    // What has no size has the address of whatever follows it.
    assert!(size_of_val(widened) <= size_of::<T>(), "unsize: the function must return its argument");
    // The value's address with the right second word; then the first word becomes the object's address.
    let mut wide = wide as *mut Object<U, M>;
    let first = (&raw mut wide).cast::<*mut ()>();
    // SAFETY: a pointer is at least one word, and the first is read back as the address it must be.
    unsafe {
        assert_eq!(first.read().addr(), address, "unsize: this compiler lays out wide pointers in another way");
        first.write(object.as_ptr().cast());
    }
    // SAFETY: a place in the object is computed, nothing is read.
    let seen = unsafe { &raw const (*wide).value };
    assert_eq!(seen.cast::<()>().addr(), address, "unsize: the function must return its argument");
    // SAFETY: it is the address of an object.
    unsafe { NonNull::new_unchecked(wide) }
}

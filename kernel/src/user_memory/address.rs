//! Addresses that a program gave: [`UserPtr`] for a value, [`UserSlice`] for several.
//!
//! Holding one says what the program claims to have there: values of a type, to be read, written or both. It says nothing of whether there is memory, whether
//! the program may use it, or whether the address is aligned: the copy finds out. So the system call states the type once, where it decodes its
//! arguments, and no copy can be larger than what the program offered.

use core::fmt;
use core::marker::PhantomData;

use frame::mm::USER_END;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Errno, Result};

/// What is read.
#[derive(Clone, Copy, Debug)]
pub struct In;

/// What is written.
#[derive(Clone, Copy, Debug)]
pub struct Out;

/// What is read and written.
#[derive(Clone, Copy, Debug)]
pub struct InOut;

/// Directions in which values are read.
pub trait Readable: Copy {}

/// Directions in which values are written.
pub trait Writable: Copy {}

impl Readable for In {}
impl Readable for InOut {}
impl Writable for Out {}
impl Writable for InOut {}

/// The address of a `T` in the caller's memory, to be used in the direction `D`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct UserPtr<T, D> {
    address: usize,
    what: PhantomData<fn() -> (T, D)>,
}

/// A value that is read.
pub type UserIn<T> = UserPtr<T, In>;
/// A value that is written.
pub type UserOut<T> = UserPtr<T, Out>;
/// A value that is read and written.
pub type UserInOut<T> = UserPtr<T, InOut>;

/// A number of `T`s in the caller's memory, one behind the other, to be used in the direction `D`.
pub struct UserSlice<T, D> {
    start: UserPtr<T, D>,
    len: usize,
}

/// Memory that a program offers for a transfer: all of it lies where user memory can be, also where it is no byte at all (Linux's `access_ok`).
///
/// Only [`UserSlice::checked`] makes one, and what transfers bytes takes nothing else, so no call can forget to look. It still says nothing of
/// whether anything is mapped there.
pub struct UserBuffer<T, D>(UserSlice<T, D>);

impl<T, D> UserPtr<T, D> {
    /// A `T` at that address.
    #[inline(always)]
    pub const fn new(address: usize) -> Self {
        UserPtr { address, what: PhantomData }
    }

    /// The address.
    #[inline(always)]
    pub const fn address(self) -> usize {
        self.address
    }

    /// Whether it is the null pointer, which many calls take for "none".
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.address == 0
    }

    /// `None` for the null pointer.
    #[inline(always)]
    pub fn non_null(self) -> Option<Self> {
        (!self.is_null()).then_some(self)
    }

    /// So many values from here on. Values without a size do not compile: any number of them would be in no memory at all.
    #[inline(always)]
    pub const fn slice(self, len: usize) -> UserSlice<T, D> {
        const { assert!(size_of::<T>() != 0) };
        UserSlice { start: self, len }
    }

    /// So many values from here on, for a transfer.
    ///
    /// # Errors
    /// EFAULT: see [`UserSlice::checked`].
    #[inline(always)]
    pub fn buffer(self, len: usize) -> Result<UserBuffer<T, D>> {
        self.slice(len).checked()
    }

    /// The value `count` behind this one.
    #[inline(always)]
    pub const fn add(self, count: usize) -> Self {
        Self::new(self.address.wrapping_add(count.wrapping_mul(size_of::<T>())))
    }
}

impl<T> UserInOut<T> {
    /// The same value, to be read only.
    #[inline(always)]
    pub const fn as_input(self) -> UserIn<T> {
        UserPtr::new(self.address)
    }

    /// The same value, to be written only.
    #[inline(always)]
    pub const fn as_output(self) -> UserOut<T> {
        UserPtr::new(self.address)
    }
}

impl<T, D> UserSlice<T, D> {
    /// The first value.
    #[inline(always)]
    pub const fn start(self) -> UserPtr<T, D> {
        self.start
    }

    /// How many values.
    #[inline(always)]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The same, if all of it lies where user memory can be.
    ///
    /// # Errors
    /// EFAULT if it does not, or its size in bytes cannot be counted.
    #[inline(always)]
    pub fn checked(self) -> Result<UserBuffer<T, D>> {
        let bytes = self.len.checked_mul(size_of::<T>()).ok_or(Errno::EFAULT)?;
        match self.start.address.checked_add(bytes) {
            Some(end) if end <= USER_END => Ok(UserBuffer(self)),
            _ => Err(Errno::EFAULT),
        }
    }

    /// The first `len` of them, or all if they are fewer.
    #[inline(always)]
    pub fn first(self, len: usize) -> Self {
        UserSlice { len: self.len.min(len), ..self }
    }

    /// Those behind the first `count`; none if they are no more than that.
    #[inline(always)]
    pub fn behind(self, count: usize) -> Self {
        let count = count.min(self.len);
        UserSlice { start: self.start.add(count), len: self.len - count }
    }
}

impl<T, D> UserBuffer<T, D> {
    /// The values, to be read or written.
    #[inline(always)]
    pub const fn slice(self) -> UserSlice<T, D> {
        self.0
    }

    /// How many values.
    #[inline(always)]
    pub const fn len(self) -> usize {
        self.0.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0.len == 0
    }

    /// The first `len` of them, or all if they are fewer.
    #[inline(always)]
    pub fn first(self, len: usize) -> Self {
        UserBuffer(self.0.first(len))
    }

    /// Those behind the first `count`; none if they are no more than that.
    #[inline(always)]
    pub fn behind(self, count: usize) -> Self {
        UserBuffer(self.0.behind(count))
    }
}

/// An argument that is a number or an address, as another argument says: the last one of ioctl(2), fcntl(2) and prctl(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument(usize);

impl Argument {
    /// What the register had.
    #[inline(always)]
    pub const fn new(value: usize) -> Self {
        Argument(value)
    }

    /// The number.
    #[inline(always)]
    pub const fn value(self) -> usize {
        self.0
    }

    /// The address of a value that the call reads.
    #[inline(always)]
    pub const fn input<T>(self) -> UserIn<T> {
        UserPtr::new(self.0)
    }

    /// The address of a value that the call writes.
    #[inline(always)]
    pub const fn output<T>(self) -> UserOut<T> {
        UserPtr::new(self.0)
    }

    /// The address of a value that the call reads and writes.
    #[inline(always)]
    pub const fn in_out<T>(self) -> UserInOut<T> {
        UserPtr::new(self.0)
    }
}

impl<T, D> Clone for UserPtr<T, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, D> Copy for UserPtr<T, D> {}

/// The null pointer.
impl<T, D> Default for UserPtr<T, D> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T, D> fmt::Debug for UserPtr<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

impl<T, D> Clone for UserSlice<T, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, D> Copy for UserSlice<T, D> {}

impl<T, D> Clone for UserBuffer<T, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, D> Copy for UserBuffer<T, D> {}

impl<T, D> fmt::Debug for UserBuffer<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T, D> fmt::Debug for UserSlice<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}; {}", self.start, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_never_longer_than_what_was_given() {
        let slice = UserIn::<u32>::new(0x1000).slice(4);
        assert_eq!(slice.first(9).len(), 4);
        assert_eq!((slice.behind(3).start().address(), slice.behind(3).len()), (0x100c, 1));
        assert!(slice.behind(5).is_empty());
    }

    #[test]
    fn a_buffer_lies_where_user_memory_can_be_even_if_it_has_no_byte() {
        let is_buffer = |address, len| UserOut::<u64>::new(address).buffer(len).is_ok();
        assert!(is_buffer(0, 0) && is_buffer(0, USER_END / 8) && is_buffer(USER_END, 0));
        assert!(!is_buffer(8, USER_END / 8) && !is_buffer(USER_END + 8, 0) && !is_buffer(usize::MAX, 0));
        // Sizes that wrap around.
        assert!(!is_buffer(0, usize::MAX / 8 + 1) && !is_buffer(8, usize::MAX / 8) && !is_buffer(0, usize::MAX));
    }

    #[test]
    fn addresses_wrap_and_null_is_none() {
        assert_eq!(UserOut::<u64>::new(usize::MAX - 7).add(1).address(), 0);
        assert!(UserIn::<u8>::new(0).non_null().is_none());
    }
}

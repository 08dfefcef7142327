//! [`Reader`] and [`Writer`]: cursors over bytes that are only copied: user memory, untyped frames, kernel slices.
//!
//! One type serves all three, so that a file copies to a user's buffer and to the kernel's own by the same code. A copy from or
//! to user memory may *fault*; it then stops with both cursors behind the last byte copied. Nothing suspends here: the caller
//! resolves the fault by an `_async` call and goes on.
//!
//! A cursor over user memory may name any address at all; each copy is checked against [`USER_END`] (invariant 4), and makes the
//! cursor's address space the active one first. The other two kinds are made from what is known to be valid for the cursor's
//! lifetime.

use core::marker::PhantomData;

use super::metadata::FrameNumber;
use super::{USER_END, machine, tlb};

/// What was tried at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An instruction fetch.
    Execute,
}

/// User memory could not be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address of the first byte that could not be copied.
    pub address: usize,
    /// What was tried there.
    pub access: Access,
}

/// What a cursor runs over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Memory of the address space with this root table, which lives as long as the cursor: any address, checked at each copy;
    /// may fault.
    User(FrameNumber),
    /// An untyped frame or a kernel slice: valid for all bytes left.
    Kernel,
}

/// Bytes to be read, from the front.
pub struct Reader<'a> {
    at: *const u8,
    left: usize,
    side: Side,
    _bytes: PhantomData<&'a [u8]>,
}

/// Room to be written, from the front.
pub struct Writer<'a> {
    at: *mut u8,
    left: usize,
    side: Side,
    _bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a [u8]> for Reader<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Self {
        Reader { at: bytes.as_ptr(), left: bytes.len(), side: Side::Kernel, _bytes: PhantomData }
    }
}

impl<'a> From<&'a mut [u8]> for Writer<'a> {
    #[inline(always)]
    fn from(bytes: &'a mut [u8]) -> Self {
        Writer { at: bytes.as_mut_ptr(), left: bytes.len(), side: Side::Kernel, _bytes: PhantomData }
    }
}

/// Bounds for a cursor over user memory, such that passing over bytes never comes back to low addresses. All addresses from
/// [`USER_END`] on are the same: they fault.
#[inline(always)]
fn user_range(address: usize, len: usize) -> (usize, usize) {
    (address.min(USER_END), len.min(isize::MAX as usize))
}

/// How many of `len` bytes from `at` are user memory.
#[inline(always)]
fn user_len(at: usize, len: usize) -> usize {
    len.min(USER_END.saturating_sub(at))
}

impl<'a> Reader<'a> {
    /// # Safety
    /// `len` bytes from `at` are untyped memory that stays so for `'a`.
    #[inline(always)]
    pub(super) unsafe fn untyped(at: *const u8, len: usize) -> Self {
        Reader { at, left: len, side: Side::Kernel, _bytes: PhantomData }
    }

    /// Memory of an address space, by its root table.
    ///
    /// # Safety
    /// The address space lives for `'a`.
    #[inline(always)]
    pub(super) unsafe fn user(space: FrameNumber, address: usize, len: usize) -> Self {
        let (address, left) = user_range(address, len);
        let at = core::ptr::with_exposed_provenance(address);
        Reader { at, left, side: Side::User(space), _bytes: PhantomData }
    }

    /// The address of the first byte, if it is a program's: whoever knows the frames there need not copy.
    #[inline]
    pub fn user_address(&self) -> Option<usize> {
        matches!(self.side, Side::User(_)).then(|| self.at.addr())
    }

    /// Bytes left.
    #[inline(always)]
    pub fn remaining(&self) -> usize {
        self.left
    }

    /// Forgets all but the next `len` bytes.
    #[inline(always)]
    #[must_use]
    pub fn limit(self, len: usize) -> Self {
        Reader { left: self.left.min(len), ..self }
    }

    /// A reader of the next `len` bytes; this one is behind them then.
    #[inline(always)]
    #[must_use]
    pub fn split(&mut self, len: usize) -> Reader<'a> {
        let front = Reader { at: self.at, left: self.left.min(len), side: self.side, _bytes: PhantomData };
        self.skip(len);
        front
    }

    /// Passes over up to `len` bytes.
    #[inline(always)]
    pub fn skip(&mut self, len: usize) {
        let len = len.min(self.left);
        self.at = self.at.wrapping_add(len);
        self.left -= len;
    }

    /// Copies as many bytes as there are and fit; how many.
    ///
    /// # Errors
    /// User memory faulted; both cursors are behind the last byte copied.
    #[inline]
    pub fn read(&mut self, to: &mut [u8]) -> Result<usize, Fault> {
        let len = self.left.min(to.len());
        // SAFETY: `to` has so many bytes; this side has as many where it is kernel memory, and else its address space lives.
        let done = unsafe { transfer(to.as_mut_ptr(), Side::Kernel, self.at, self.side, len) };
        // No more than `len`, which are left.
        (self.at, self.left) = (self.at.wrapping_add(done), self.left - done);
        if done == len { Ok(done) } else { Err(Fault { address: self.at.addr(), access: Access::Read }) }
    }

    /// Copies bytes up to the first zero byte, or as many as there are and fit; how many, the zero byte not counted. The cursor
    /// is behind the last of them: on a zero byte, unless `to` is full or there are no bytes left. What is behind them in
    /// `to` is unspecified.
    ///
    /// # Errors
    /// User memory faulted before a zero byte; the cursor is behind the last byte copied.
    #[inline]
    pub fn read_until_zero(&mut self, to: &mut [u8]) -> Result<usize, Fault> {
        let len = self.left.min(to.len());
        let (done, faulted) = match self.side {
            Side::Kernel => {
                // SAFETY: valid for all bytes left, and `to` for its length.
                unsafe { machine::copy(to.as_mut_ptr(), self.at, len) };
                (to[..len].iter().position(|byte| *byte == 0).unwrap_or(len), false)
            }
            Side::User(space) => {
                let allowed = user_len(self.at.addr(), len);
                // SAFETY: the address space lives, these bytes are below `USER_END`, and `to` is as long.
                let (done, faulted) = unsafe {
                    tlb::activate_again(space);
                    machine::copy_string(to.as_mut_ptr(), self.at, allowed)
                };
                (done, faulted || (done == allowed && allowed < len))
            }
        };
        self.skip(done);
        if faulted { Err(Fault { address: self.at.addr(), access: Access::Read }) } else { Ok(done) }
    }

    /// Copies as many bytes as there are and fit; how many.
    ///
    /// # Errors
    /// User memory (on either side) faulted; both cursors are behind the last byte copied.
    #[inline]
    pub fn copy_to(&mut self, to: &mut Writer<'_>) -> Result<usize, Fault> {
        let len = self.left.min(to.left);
        // SAFETY: both are valid for `len` bytes where they are kernel memory, and else their address spaces live.
        let done = unsafe { transfer(to.at, to.side, self.at, self.side, len) };
        // No more than `len`, which both have left.
        (self.at, self.left) = (self.at.wrapping_add(done), self.left - done);
        (to.at, to.left) = (to.at.wrapping_add(done), to.left - done);
        if done == len { Ok(done) } else { Err(faulted(self.at, self.side, to.at, to.side)) }
    }
}

impl<'a> Writer<'a> {
    /// # Safety
    /// `len` bytes from `at` are untyped memory that stays so for `'a`.
    #[inline(always)]
    pub(super) unsafe fn untyped(at: *mut u8, len: usize) -> Self {
        Writer { at, left: len, side: Side::Kernel, _bytes: PhantomData }
    }

    /// Memory of an address space, by its root table.
    ///
    /// # Safety
    /// The address space lives for `'a`.
    #[inline(always)]
    pub(super) unsafe fn user(space: FrameNumber, address: usize, len: usize) -> Self {
        let (address, left) = user_range(address, len);
        let at = core::ptr::with_exposed_provenance_mut(address);
        Writer { at, left, side: Side::User(space), _bytes: PhantomData }
    }

    /// The address of the first byte of room, if it is a program's.
    #[inline]
    pub fn user_address(&self) -> Option<usize> {
        matches!(self.side, Side::User(_)).then(|| self.at.addr())
    }

    /// Bytes of room left.
    #[inline(always)]
    pub fn remaining(&self) -> usize {
        self.left
    }

    /// Forgets all but the next `len` bytes.
    #[inline(always)]
    #[must_use]
    pub fn limit(self, len: usize) -> Self {
        Writer { left: self.left.min(len), ..self }
    }

    /// A writer of the next `len` bytes; this one is behind them then.
    #[inline(always)]
    #[must_use]
    pub fn split(&mut self, len: usize) -> Writer<'a> {
        let front = Writer { at: self.at, left: self.left.min(len), side: self.side, _bytes: PhantomData };
        self.skip(len);
        front
    }

    /// A writer of the same room, which is gone before this one is used again: for what may have to be written anew.
    #[inline(always)]
    #[must_use]
    pub fn reborrow(&mut self) -> Writer<'_> {
        Writer { at: self.at, left: self.left, side: self.side, _bytes: PhantomData }
    }

    /// Passes over up to `len` bytes.
    #[inline(always)]
    pub fn skip(&mut self, len: usize) {
        let len = len.min(self.left);
        self.at = self.at.wrapping_add(len);
        self.left -= len;
    }

    /// Copies as many bytes as there are and fit; how many.
    ///
    /// # Errors
    /// User memory faulted; the cursor is behind the last byte copied.
    #[inline]
    pub fn write(&mut self, from: &[u8]) -> Result<usize, Fault> {
        let len = self.left.min(from.len());
        // SAFETY: `from` has so many bytes; this side has as many where it is kernel memory, and else its address space lives.
        let done = unsafe { transfer(self.at, self.side, from.as_ptr(), Side::Kernel, len) };
        // No more than `len`, which are left.
        (self.at, self.left) = (self.at.wrapping_add(done), self.left - done);
        if done == len { Ok(done) } else { Err(Fault { address: self.at.addr(), access: Access::Write }) }
    }

    /// Writes up to `len` zeros; how many.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn zero(&mut self, len: usize) -> Result<usize, Fault> {
        let len = len.min(self.left);
        let done = match self.side {
            Side::Kernel => {
                // SAFETY: valid for all bytes left.
                unsafe { machine::fill_zero(self.at, len) };
                len
            }
            Side::User(space) => {
                let allowed = user_len(self.at.addr(), len);
                // SAFETY: the address space lives, and these bytes are below `USER_END`.
                unsafe {
                    tlb::activate_again(space);
                    allowed - machine::zero_user(self.at, allowed)
                }
            }
        };
        self.skip(done);
        if done == len { Ok(done) } else { Err(Fault { address: self.at.addr(), access: Access::Write }) }
    }
}

/// Copies up to `len` bytes; how many before user memory faulted.
///
/// # Safety
/// A side that is kernel memory is valid for `len` bytes; the address space of one that is user memory lives.
#[inline(always)]
unsafe fn transfer(to: *mut u8, to_side: Side, from: *const u8, from_side: Side, len: usize) -> usize {
    // SAFETY: the caller's promise. What is user memory is below `USER_END`. A writer's bytes are nobody else's, or untyped (and may be the reader's).
    unsafe {
        let allowed = match (to_side, from_side) {
            (Side::Kernel, Side::Kernel) => {
                machine::copy(to, from, len);
                return len;
            }
            (Side::User(space), Side::Kernel) => {
                tlb::activate_again(space);
                user_len(to.addr(), len)
            }
            (Side::Kernel, Side::User(space)) => {
                tlb::activate_again(space);
                user_len(from.addr(), len)
            }
            (Side::User(_), Side::User(_)) => return transfer_user(to, to_side, from, from_side, len),
        };
        allowed - machine::copy_user(to, from, allowed)
    }
}

/// [`transfer`] between user memory and user memory, of one address space or two.
///
/// # Safety
/// As for [`transfer`].
#[cold]
unsafe fn transfer_user(to: *mut u8, to_side: Side, from: *const u8, from_side: Side, len: usize) -> usize {
    let mut piece = [0; 256];
    let mut done = 0;
    while done < len {
        let wanted = (len - done).min(piece.len());
        // SAFETY: the caller's promise; `piece` is as long as `wanted`.
        let written = unsafe {
            let read = transfer(piece.as_mut_ptr(), Side::Kernel, from.wrapping_add(done), from_side, wanted);
            transfer(to.wrapping_add(done), to_side, piece.as_ptr(), Side::Kernel, read)
        };
        done += written;
        if written < wanted {
            break;
        }
    }
    done
}

/// Which side faulted at the next byte, and where.
#[cold]
#[inline(never)]
fn faulted(source: *const u8, from_side: Side, target: *mut u8, to_side: Side) -> Fault {
    let mut byte = 0;
    let by_source = to_side == Side::Kernel
        || from_side != Side::Kernel
            // SAFETY: `byte` is one byte, and the address space lives as long as the cursor that was passed here.
            && unsafe { transfer(&raw mut byte, Side::Kernel, source, from_side, 1) } == 0;
    if by_source {
        Fault { address: source.addr(), access: Access::Read }
    } else {
        Fault { address: target.addr(), access: Access::Write }
    }
}

//! [`Reader`] and [`Writer`]: cursors over bytes that are only copied: user memory, untyped frames, kernel slices.
//!
//! One type serves all three, so that a file copies to a user's buffer and to the kernel's own by the same code. A copy from or
//! to user memory may *fault*; it then stops with both cursors behind the last byte copied. Nothing suspends here: the caller
//! resolves the fault by an `_async` call and goes on.

use core::marker::PhantomData;

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

/// Bytes to be read, from the front.
pub struct Reader<'a> {
    _bytes: PhantomData<&'a [u8]>,
}

/// Room to be written, from the front.
pub struct Writer<'a> {
    _bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a [u8]> for Reader<'a> {
    fn from(_bytes: &'a [u8]) -> Self {
        unimplemented!()
    }
}

impl<'a> From<&'a mut [u8]> for Writer<'a> {
    fn from(_bytes: &'a mut [u8]) -> Self {
        unimplemented!()
    }
}

impl<'a> Reader<'a> {
    /// Bytes left.
    pub fn remaining(&self) -> usize {
        0
    }

    /// Forgets all but the next `len` bytes.
    pub fn limit(self, _len: usize) -> Self {
        self
    }

    /// Passes over up to `len` bytes.
    pub fn skip(&mut self, _len: usize) {}

    /// Copies as many bytes as there are and fit; how many.
    ///
    /// # Errors
    /// User memory faulted; both cursors are behind the last byte copied.
    pub fn read(&mut self, _to: &mut [u8]) -> Result<usize, Fault> {
        unimplemented!()
    }

    /// Copies as many bytes as there are and fit; how many.
    ///
    /// # Errors
    /// User memory (on either side) faulted; both cursors are behind the last byte copied.
    pub fn copy_to(&mut self, _to: &mut Writer<'_>) -> Result<usize, Fault> {
        unimplemented!()
    }
}

impl<'a> Writer<'a> {
    /// Bytes of room left.
    pub fn remaining(&self) -> usize {
        0
    }

    /// Forgets all but the next `len` bytes.
    pub fn limit(self, _len: usize) -> Self {
        self
    }

    /// Passes over up to `len` bytes.
    pub fn skip(&mut self, _len: usize) {}

    /// Copies as many bytes as there are and fit; how many.
    ///
    /// # Errors
    /// User memory faulted; the cursor is behind the last byte copied.
    pub fn write(&mut self, _from: &[u8]) -> Result<usize, Fault> {
        unimplemented!()
    }

    /// Writes up to `len` zeros; how many.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn zero(&mut self, _len: usize) -> Result<usize, Fault> {
        unimplemented!()
    }
}

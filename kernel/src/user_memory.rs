//! The calling program's memory, for steps: every access may say [`Fault`], which the driver of the step resolves.

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Fault, Reader, VmSpace, Writer};
use refs::{Gone, TempRc, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::Errno;
use crate::memory::AddressSpace;
use crate::step::{Caller, Step};

/// A thread that has memory of its own, as those see it who read and write it.
pub trait HasMemory: Caller {
    /// The name of its address space.
    fn space_name(&self) -> WeakRc<AddressSpace>;

    /// Its address space.
    ///
    /// # Errors
    /// It has none any more.
    #[inline(always)]
    fn space<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, AddressSpace>, Gone> {
        self.space_name().upgrade(cx)
    }

    /// The calling program's memory.
    ///
    /// # Errors
    /// It has none any more.
    #[inline(always)]
    fn memory<'cx>(&self, cx: &'cx Cx) -> core::result::Result<UserMemory<'cx>, Gone> {
        Ok(UserMemory::new(self.space(cx)?, cx))
    }
}

/// The memory of the calling program, until the next suspension.
pub struct UserMemory<'cx> {
    space: TempRc<'cx, AddressSpace>,
    cx: &'cx Cx,
}

impl<'cx> UserMemory<'cx> {
    /// The memory of an address space.
    #[inline(always)]
    pub fn new(space: TempRc<'cx, AddressSpace>, cx: &'cx Cx) -> Self {
        UserMemory { space, cx }
    }
}

impl UserMemory<'_> {
    #[inline(always)]
    fn vm(&self) -> &VmSpace {
        self.space.vm()
    }

    /// To read `len` bytes at `address`.
    #[inline(always)]
    pub fn reader(&self, address: usize, len: usize) -> Reader<'_> {
        self.vm().reader(address, len, self.cx)
    }

    /// To write `len` bytes at `address`.
    #[inline(always)]
    pub fn writer(&self, address: usize, len: usize) -> Writer<'_> {
        self.vm().writer(address, len, self.cx)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Memory is not accessible (yet).
    #[inline(always)]
    pub fn read<T: FromBytes + IntoBytes>(&self, address: usize) -> core::result::Result<T, Fault> {
        let mut value = T::new_zeroed();
        self.reader(address, size_of::<T>()).read(value.as_mut_bytes())?;
        Ok(value)
    }

    /// Reads an array.
    ///
    /// # Errors
    /// Memory is not accessible (yet). The caller bounds `count`.
    pub fn read_array<T: FromBytes + IntoBytes>(
        &self,
        address: usize,
        count: usize,
    ) -> core::result::Result<Vec<T>, Fault> {
        let mut values = Vec::with_capacity(count);
        let mut reader = self.reader(address, count.saturating_mul(size_of::<T>()));
        for _ in 0..count {
            let mut value = T::new_zeroed();
            reader.read(value.as_mut_bytes())?;
            values.push(value);
        }
        Ok(values)
    }

    /// Writes a value.
    ///
    /// # Errors
    /// Memory is not accessible (yet).
    #[inline(always)]
    pub fn write<T: IntoBytes + Immutable>(&self, address: usize, value: &T) -> core::result::Result<(), Fault> {
        self.write_bytes(address, value.as_bytes())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Memory is not accessible (yet).
    #[inline(always)]
    pub fn write_bytes(&self, address: usize, bytes: &[u8]) -> core::result::Result<(), Fault> {
        self.writer(address, bytes.len()).write(bytes)?;
        Ok(())
    }

    /// Reads a string up to its terminating zero, which is not part of the result.
    ///
    /// # Errors
    /// `too_long` if there is no zero within `max` bytes; a fault.
    pub fn read_c_string(&self, address: usize, max: usize, too_long: Errno) -> Step<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < max {
            // Up to the end of a page at a time: the string may end right before memory that is not there.
            let at = address.wrapping_add(bytes.len());
            let mut chunk = [0; 64];
            let len = (64 - at % 64).min(max - bytes.len());
            let chunk = &mut chunk[..len];
            self.reader(at, len).read(chunk)?;
            if let Some(end) = chunk.iter().position(|&byte| byte == 0) {
                bytes.extend_from_slice(&chunk[..end]);
                return Ok(bytes);
            }
            bytes.extend_from_slice(chunk);
        }
        Err(too_long.into())
    }

    /// Reads a path (path_resolution(7)): at most 4096 bytes with its zero.
    ///
    /// # Errors
    /// ENAMETOOLONG; a fault.
    pub fn read_path(&self, address: usize) -> Step<Vec<u8>> {
        self.read_c_string(address, 4096, Errno::ENAMETOOLONG)
    }
}

//! The calling program's memory, for steps: every access may say [`Fault`], which the driver of the step resolves.

mod address;

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Fault, Reader, VmSpace, Writer};
use refs::{Gone, TempRc, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub use address::{
    Argument, In, InOut, Out, Readable, UserBuffer, UserIn, UserInOut, UserOut, UserPtr, UserSlice, Writable,
};

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
    fn space<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, AddressSpace>, Gone> {
        self.space_name().upgrade(cx)
    }

    /// The calling program's memory.
    ///
    /// # Errors
    /// It has none any more.
    #[inline(always)]
    fn memory<'cx>(&self, cx: &'cx Cx) -> Result<UserMemory<'cx>, Gone> {
        Ok(UserMemory::new(self.space(cx)?.into_ref(), cx))
    }
}

/// The memory of a program, nearly always the calling one's, until the next suspension.
pub struct UserMemory<'cx> {
    space: &'cx AddressSpace,
    cx: &'cx Cx,
}

impl<'cx> UserMemory<'cx> {
    /// The memory of an address space.
    #[inline(always)]
    pub fn new(space: &'cx AddressSpace, cx: &'cx Cx) -> Self {
        UserMemory { space, cx }
    }
}

impl UserMemory<'_> {
    #[inline(always)]
    fn vm(&self) -> &VmSpace {
        self.space.vm()
    }

    /// Whether the program may do at an address what faulted there.
    pub fn permits(&self, fault: Fault) -> bool {
        self.space.permits(fault.address, fault.access, self.cx)
    }

    /// To read bytes.
    #[inline(always)]
    pub fn reader(&self, from: UserSlice<u8, impl Readable>) -> Reader<'_> {
        self.vm().reader(from.start().address(), from.len(), self.cx)
    }

    /// To write bytes.
    #[inline(always)]
    pub fn writer(&self, to: UserSlice<u8, impl Writable>) -> Writer<'_> {
        self.vm().writer(to.start().address(), to.len(), self.cx)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Memory is not accessible (yet).
    #[inline(always)]
    pub fn read<T: FromBytes + IntoBytes>(&self, from: UserPtr<T, impl Readable>) -> Result<T, Fault> {
        let mut value = T::new_zeroed();
        self.vm().reader(from.address(), size_of::<T>(), self.cx).read(value.as_mut_bytes())?;
        Ok(value)
    }

    /// Reads values into `values`: as many as there are on both sides.
    ///
    /// # Errors
    /// Memory is not accessible (yet).
    #[inline(always)]
    pub fn read_into<T: FromBytes + IntoBytes>(
        &self,
        from: UserSlice<T, impl Readable>,
        values: &mut [T],
    ) -> Result<(), Fault> {
        let count = from.len().min(values.len());
        let bytes = values[..count].as_mut_bytes();
        self.vm().reader(from.start().address(), bytes.len(), self.cx).read(bytes)?;
        Ok(())
    }

    /// Reads values.
    ///
    /// # Errors
    /// ENOMEM if they find no room in the kernel; a fault. How many the call takes, its own limit says first.
    pub fn read_slice<T: FromBytes + IntoBytes>(&self, from: UserSlice<T, impl Readable>) -> Step<Vec<T>> {
        let mut values = zeroed(from.len())?;
        self.read_into(from, &mut values)?;
        Ok(values)
    }

    /// Writes a value.
    ///
    /// # Errors
    /// Memory is not accessible (yet).
    #[inline(always)]
    pub fn write<T: IntoBytes + Immutable>(&self, to: UserPtr<T, impl Writable>, value: &T) -> Result<(), Fault> {
        let bytes = value.as_bytes();
        self.vm().writer(to.address(), bytes.len(), self.cx).write(bytes)?;
        Ok(())
    }

    /// Writes values: as many as there is room for.
    ///
    /// # Errors
    /// Memory is not accessible (yet).
    #[inline(always)]
    pub fn write_slice<T: IntoBytes + Immutable>(
        &self,
        to: UserSlice<T, impl Writable>,
        values: &[T],
    ) -> Result<(), Fault> {
        let bytes = values[..values.len().min(to.len())].as_bytes();
        self.vm().writer(to.start().address(), bytes.len(), self.cx).write(bytes)?;
        Ok(())
    }

    /// Reads a word at once.
    ///
    /// # Errors
    /// Memory is not accessible (yet). The caller has checked that the address is aligned.
    pub fn load(&self, from: UserPtr<u32, impl Readable>) -> Result<u32, Fault> {
        self.vm().load_u32(from.address(), self.cx)
    }

    /// Writes `new` to a word if that is `old`; what it was.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn compare_exchange(&self, at: UserInOut<u32>, old: u32, new: u32) -> Result<u32, Fault> {
        self.vm().compare_exchange_u32(at.address(), old, new, self.cx)
    }

    /// Reads a string up to its terminating zero, which is not part of the result.
    ///
    /// # Errors
    /// `too_long` if there is no zero within `max` bytes; a fault.
    pub fn read_c_string(&self, from: UserIn<u8>, max: usize, too_long: Errno) -> Step<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < max {
            // Up to the end of a page at a time: the string may end right before memory that is not there.
            let at = from.add(bytes.len());
            let mut chunk = [0; 64];
            let len = (64 - at.address() % 64).min(max - bytes.len());
            let chunk = &mut chunk[..len];
            self.reader(at.slice(len)).read(chunk)?;
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
    pub fn read_path(&self, from: UserIn<u8>) -> Step<Vec<u8>> {
        self.read_c_string(from, 4096, Errno::ENAMETOOLONG)
    }
}

/// So many values, all zero. ENOMEM if there is no room, or could not be on any machine: the number may come from a program.
pub fn zeroed<T: FromBytes>(len: usize) -> Result<Vec<T>, Errno> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
    values.resize_with(len, T::new_zeroed);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_values_is_more_than_an_error() {
        assert_eq!(zeroed::<u64>(3), Ok(alloc::vec![0; 3]));
        // Their size in bytes is 0 where it is not checked.
        assert_eq!(zeroed::<u64>(usize::MAX / 8 + 1), Err(Errno::ENOMEM));
        assert_eq!(zeroed::<u8>(usize::MAX), Err(Errno::ENOMEM));
    }
}

//! The device, as blocks that may or may not be in a cache, and reading bytes from it.

use zerocopy::{FromBytes, IntoBytes};

use crate::Error;

/// Bytes of a block of the cache. An image's own blocks are as large or smaller, so that each lies in one of these.
pub const BLOCK_BYTES: usize = 4096;

/// The block is not in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent;

/// A cache of a device's blocks of [`BLOCK_BYTES`].
pub trait Blocks {
    /// Calls `with` with the bytes of a block that is in the cache. The device's last block may have fewer bytes.
    ///
    /// # Errors
    /// [`Absent`] if it is not in the cache.
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent>;
}

/// A device of which the first `bytes` bytes may be read.
#[derive(Debug)]
pub(crate) struct Device<'a, B> {
    pub(crate) blocks: &'a B,
    pub(crate) bytes: u64,
}

impl<B> Clone for Device<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Device<'_, B> {}

impl<B: Blocks> Device<'_, B> {
    /// That all of `address..address + len` is on the device; its end.
    pub(crate) fn check(&self, address: u64, len: u64) -> Result<u64, Error> {
        match address.checked_add(len) {
            Some(end) if end <= self.bytes => Ok(end),
            _ => Err(Error::Corrupt("an address is beyond the image's end")),
        }
    }

    /// Copies what stands at `address`.
    pub(crate) fn copy(&self, mut address: u64, mut to: &mut [u8]) -> Result<(), Error> {
        let end = self.check(address, to.len() as u64)?;
        while !to.is_empty() {
            let within = offset_in_block(address);
            let (now, later) = to.split_at_mut(to.len().min(BLOCK_BYTES - within));
            let copied = now.len() as u64;
            self.in_block(address, end, |bytes| {
                now.copy_from_slice(bytes.get(..now.len()).ok_or(SHORT)?);
                Ok(())
            })?;
            address += copied;
            to = later;
        }
        Ok(())
    }

    /// Calls `with` with what stands at `address`, which must lie in one block of the cache.
    pub(crate) fn view<R>(
        &self,
        address: u64,
        len: usize,
        with: impl FnOnce(&[u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let end = self.check(address, len as u64)?;
        self.in_block(address, end, |bytes| with(bytes.get(..len).ok_or(SHORT)?))
    }

    /// Reads a structure.
    pub(crate) fn get<T: FromBytes + IntoBytes>(&self, address: u64) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        self.copy(address, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Calls `with` with the bytes from `address` to the end of its block. Blocks up to the one with the byte before `end` are wanted.
    fn in_block<R>(&self, address: u64, end: u64, with: impl FnOnce(&[u8]) -> Result<R, Error>) -> Result<R, Error> {
        let block = address / BLOCK_BYTES as u64;
        let within = offset_in_block(address);
        match self.blocks.read(block, |bytes| with(bytes.get(within..).ok_or(SHORT)?)) {
            Ok(result) => result,
            Err(Absent) => {
                Err(Error::Absent { block, count: end.div_ceil(BLOCK_BYTES as u64).saturating_sub(block).max(1) })
            }
        }
    }
}

/// The device has fewer bytes than it was said to have.
const SHORT: Error = Error::Corrupt("a block is shorter than the device's size says");

fn offset_in_block(address: u64) -> usize {
    (address % BLOCK_BYTES as u64) as usize
}

/// If what stands at `address` lies in one block of the cache.
pub(crate) fn is_in_one_block(address: u64, len: usize) -> bool {
    offset_in_block(address) + len <= BLOCK_BYTES
}

//! [`Source`]: what an image is read through.

use crate::Error;

/// It is not at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent;

impl From<Absent> for Error {
    fn from(_: Absent) -> Self {
        Error::Absent
    }
}

/// A block that is compressed. It lies inside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Its first byte.
    pub address: u64,
    /// Its bytes; at most 1 MiB.
    pub bytes: u32,
    /// How many there can be decompressed: 8 KiB of metadata, the size of the image's blocks of content.
    pub most: u32,
}

/// A device with an image, and what of it was decompressed.
pub trait Source {
    /// Copies bytes of the device, all of which are inside the image.
    ///
    /// # Errors
    /// [`Absent`].
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent>;

    /// Copies from a block, decompressed, what stands from `from` on; how many bytes, fewer than `to` has where the block ends.
    ///
    /// # Errors
    /// `Absent`; what [`Work::step`](crate::Work::step) says.
    fn unpack(&self, packed: Packed, from: usize, to: &mut [u8]) -> Result<usize, Error>;

    /// Asked in the middle of long work that need not begin anew.
    ///
    /// # Errors
    /// [`Absent`]: others must have their turn first.
    fn pause(&self) -> Result<(), Absent> {
        Ok(())
    }
}

/// Copies what stands in a block from `from` on; how many bytes.
pub(crate) fn copy_part(block: &[u8], from: usize, to: &mut [u8]) -> usize {
    let part = block.get(from..).unwrap_or(&[]);
    let len = part.len().min(to.len());
    to[..len].copy_from_slice(&part[..len]);
    len
}

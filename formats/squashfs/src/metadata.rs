//! Metadata: rows of blocks of 8 KiB, each compressed for itself behind two bytes that say how long it is; and tables whose blocks are found by a row of addresses.

use alloc::vec::Vec;

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, IntoBytes};

use crate::cache::METADATA_BYTES;
use crate::{Error, Packed, Reader, Source, zeros};

const BLOCK: usize = METADATA_BYTES as usize;
/// Said of a block that is not compressed.
const IS_PLAIN: u16 = 1 << 15;

/// A place in metadata: the address of a block, and a byte in what is decompressed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub block: u64,
    pub offset: usize,
}

/// Reads metadata from a place on.
pub(crate) struct Metadata<'a, S> {
    reader: Reader<'a, S>,
    /// The next byte that is read.
    position: Position,
    /// The block of that, and the address of the next one; empty: it was not read.
    block: Vec<u8>,
    next: u64,
}

/// A block as it is stored: its content's address, how many bytes, and whether they are compressed.
struct Stored {
    address: u64,
    bytes: usize,
    is_packed: bool,
}

impl<'a, S: Source> Metadata<'a, S> {
    pub fn new(reader: Reader<'a, S>, position: Position) -> Self {
        Metadata { reader, position, block: Vec::new(), next: 0 }
    }

    /// Where it is.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Copies what comes next.
    pub fn read(&mut self, mut to: &mut [u8]) -> Result<(), Error> {
        while !to.is_empty() {
            self.load()?;
            let part = self.block.get(self.position.offset..).unwrap_or(&[]);
            let len = part.len().min(to.len());
            if len == 0 {
                return Err(Error::Corrupt("a block of metadata ends too early"));
            }
            let (now, later) = to.split_at_mut(len);
            now.copy_from_slice(&part[..len]);
            self.position.offset += len;
            to = later;
        }
        Ok(())
    }

    /// Reads a structure.
    pub fn get<T: FromBytes + IntoBytes>(&mut self) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        self.read(value.as_mut_bytes())?;
        Ok(value)
    }

    /// Reads bytes.
    pub fn bytes(&mut self, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = zeros(len)?;
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Leaves bytes out, at most some MiB: nothing is decompressed.
    pub fn skip(&mut self, len: usize) -> Result<(), Error> {
        self.position.offset += len;
        while self.position.offset >= BLOCK {
            let stored = self.reader.stored(self.position.block)?;
            self.move_to(stored.address + stored.bytes as u64);
        }
        Ok(())
    }

    fn move_to(&mut self, next: u64) {
        self.block.clear();
        self.position = Position { block: next, offset: self.position.offset - BLOCK };
    }

    /// Sees to it that the block is there in which the next byte is.
    fn load(&mut self) -> Result<(), Error> {
        while self.position.offset >= BLOCK {
            if self.block.is_empty() {
                self.next =
                    self.reader.stored(self.position.block).map(|stored| stored.address + stored.bytes as u64)?;
            }
            self.move_to(self.next);
        }
        if self.block.is_empty() {
            (self.block, self.next) = self.reader.metadata_block(self.position.block)?;
        }
        Ok(())
    }
}

impl<S: Source> Reader<'_, S> {
    /// Copies bytes of the image.
    pub(crate) fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        match address.checked_add(to.len() as u64) {
            Some(end) if end <= self.image.bytes => Ok(self.source.copy(address, to)?),
            _ => Err(Error::Corrupt("an address is beyond the image's end")),
        }
    }

    /// A compressed block, after its place was checked.
    pub(crate) fn packed(&self, address: u64, bytes: u32, most: u32) -> Result<Packed, Error> {
        match address.checked_add(bytes.into()) {
            Some(end) if end <= self.image.bytes => Ok(Packed { address, bytes, most }),
            _ => Err(Error::Corrupt("a block is beyond the image's end")),
        }
    }

    /// What stands before a block of metadata.
    fn stored(&self, block: u64) -> Result<Stored, Error> {
        let mut header = U16::ZERO;
        self.copy(block, header.as_mut_bytes())?;
        let bytes = usize::from(header.get() & !IS_PLAIN);
        if bytes == 0 || bytes > BLOCK {
            return Err(Error::Corrupt("the length of a block of metadata"));
        }
        Ok(Stored { address: block + 2, bytes, is_packed: header.get() & IS_PLAIN == 0 })
    }

    /// A block of metadata, and where the next one is.
    fn metadata_block(&self, block: u64) -> Result<(Vec<u8>, u64), Error> {
        let stored = self.stored(block)?;
        let next = stored.address + stored.bytes as u64;
        let mut bytes = zeros(if stored.is_packed { BLOCK } else { stored.bytes })?;
        if stored.is_packed {
            let packed = self.packed(stored.address, stored.bytes as u32, METADATA_BYTES)?;
            let len = self.source.unpack(packed, 0, &mut bytes)?;
            bytes.truncate(len);
        } else {
            self.copy(stored.address, &mut bytes)?;
        }
        if bytes.is_empty() { Err(Error::Corrupt("an empty block of metadata")) } else { Ok((bytes, next)) }
    }

    /// Reads the entry of that index of a table, whose blocks' addresses stand at `table`.
    pub(crate) fn table_entry<T: FromBytes + IntoBytes>(&self, table: u64, index: u32) -> Result<T, Error> {
        let per_block = (BLOCK / size_of::<T>()) as u32;
        let mut block = U64::ZERO;
        let address = table.checked_add(u64::from(index / per_block) * 8).ok_or(Error::Corrupt("a table's address"))?;
        self.copy(address, block.as_mut_bytes())?;
        let offset = (index % per_block) as usize * size_of::<T>();
        Metadata::new(*self, Position { block: block.get(), offset }).get()
    }
}

//! Extended attributes: an inode has an index of a table, which says where its row of keys and values is. A value may stand elsewhere, where many have the same.

use alloc::vec::Vec;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::metadata::{Metadata, Position};
use crate::superblock::NONE;
use crate::{Error, Inode, Reader, Source};

/// What the table begins with; the addresses of its blocks follow.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Table {
    start: U64,
    entries: U32,
    unused: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    position: U64,
    count: U32,
    bytes: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Key {
    kind: U16,
    name_len: U16,
}

/// What names begin with, by their kind.
const PREFIXES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
/// Said of the kind where the value stands elsewhere.
const IS_ELSEWHERE: u16 = 0x100;
/// All attributes of a file together.
const MOST_BYTES: usize = 256 << 10;
/// So many attributes a file has at most. They are read in one go.
const MOST_ATTRIBUTES: u32 = 128;
/// No name and no value is longer.
const LONGEST_NAME: usize = 255;
const LONGEST_VALUE: usize = 64 << 10;

/// A name and a value.
pub type Attribute = (Vec<u8>, Vec<u8>);

impl<S: Source> Reader<'_, S> {
    /// The names and values of a file's extended attributes.
    ///
    /// # Errors
    /// `TooLarge`, `Corrupt`, `NoMemory`, `Absent`.
    pub fn xattrs(&self, inode: &Inode) -> Result<Vec<Attribute>, Error> {
        let mut all = Vec::new();
        let address = self.image.xattr_table;
        let Some(index) = inode.xattr.filter(|_| address != NONE) else { return Ok(all) };
        let mut table = Table::new_zeroed();
        self.copy(address, table.as_mut_bytes())?;
        if index >= table.entries.get() {
            return Err(Error::Corrupt("the number of extended attributes"));
        }
        let entry: Entry = self.table_entry(address + size_of::<Table>() as u64, index)?;
        if entry.count.get() > MOST_ATTRIBUTES {
            return Err(Error::TooLarge);
        }
        let start = table.start.get();
        let mut metadata = Metadata::new(*self, position(start, entry.position.get())?);
        let mut bytes = 0;
        for _ in 0..entry.count.get() {
            let key: Key = metadata.get()?;
            let prefix =
                PREFIXES.get(usize::from(key.kind.get() & 0xff)).ok_or(Error::Corrupt("an attribute's kind"))?;
            let name_len = usize::from(key.name_len.get());
            if name_len == 0 || prefix.len() + name_len > LONGEST_NAME {
                return Err(Error::Corrupt("an attribute's name"));
            }
            let mut name = prefix.to_vec();
            name.extend(metadata.bytes(name_len)?);
            if name.contains(&0) {
                return Err(Error::Corrupt("an attribute's name"));
            }
            let value = if key.kind.get() & IS_ELSEWHERE == 0 {
                value(&mut metadata)?
            } else {
                let _len: U32 = metadata.get()?;
                let elsewhere: U64 = metadata.get()?;
                value(&mut Metadata::new(*self, position(start, elsewhere.get())?))?
            };
            bytes += name.len() + value.len();
            if bytes > MOST_BYTES {
                return Err(Error::TooLarge);
            }
            all.push((name, value));
        }
        Ok(all)
    }
}

fn value<S: Source>(metadata: &mut Metadata<'_, S>) -> Result<Vec<u8>, Error> {
    let len: U32 = metadata.get()?;
    let len = len.get() as usize;
    if len > LONGEST_VALUE {
        return Err(Error::Corrupt("an attribute's value is too long"));
    }
    metadata.bytes(len)
}

/// What is meant by a block behind `start`, and a byte of what it is decompressed.
fn position(start: u64, reference: u64) -> Result<Position, Error> {
    let block = start.checked_add(reference >> 16).ok_or(Error::Corrupt("where attributes are"))?;
    Ok(Position { block, offset: (reference & 0xffff) as usize })
}

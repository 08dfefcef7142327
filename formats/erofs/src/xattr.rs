//! Extended attributes: entries after the inode, and numbers of entries that inodes share.

use alloc::vec::Vec;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::blocks::Blocks;
use crate::data::zeros;
use crate::{Error, Inode, Reader};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    filter: U32,
    shared: u8,
    reserved: [u8; 7],
}

/// Followed by the name, without what its prefix stands for, and the value.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    name_len: u8,
    prefix: u8,
    value_len: U16,
}

const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

impl Entry {
    /// With name and value.
    fn bytes(&self) -> u64 {
        (ENTRY_BYTES + u64::from(self.name_len) + u64::from(self.value_len)).next_multiple_of(4)
    }
}

/// A prefix of names that the image itself defines: one of the well-known ones, and more.
#[derive(Clone, Debug)]
pub(crate) struct LongPrefix {
    base: u8,
    rest: Vec<u8>,
}

/// Of a prefix's number: it is one that the image defines.
const IS_LONG: u8 = 0x80;

/// Bytes that the names of an inode may have together, as on Linux (`XATTR_LIST_MAX`).
const MOST_NAMES: usize = 65536;

const MALFORMED: Error = Error::Corrupt("an extended attribute");

impl<B: Blocks> Reader<'_, B> {
    /// The value of an extended attribute, by its full name (`user.mime_type`). At most 65,535 bytes.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Unsupported`, `NoMemory`, `Absent`.
    pub fn xattr(&self, inode: &Inode, name: &[u8]) -> Result<Vec<u8>, Error> {
        let found = self.find_xattr(inode, |reader, address, entry| {
            if !reader.has_name(address, entry, name)? {
                return Ok(None);
            }
            let mut value = zeros(usize::from(entry.value_len.get()))?;
            reader.device.copy(address + ENTRY_BYTES + u64::from(entry.name_len), &mut value)?;
            Ok(Some(value))
        })?;
        found.ok_or(Error::NotFound)
    }

    /// The full names of all extended attributes, each followed by a zero, as `listxattr` gives them. Names whose prefix has no meaning are left out.
    ///
    /// # Errors
    /// `TooLarge` (more than 64 KiB), `Corrupt`, `Unsupported`, `Absent`.
    pub fn xattr_names(&self, inode: &Inode) -> Result<Vec<u8>, Error> {
        let mut names = Vec::new();
        self.find_xattr(inode, |reader, address, entry| {
            let Some((prefix, rest)) = reader.prefix(entry.prefix) else { return Ok(None::<()>) };
            let mut name = [0; u8::MAX as usize];
            let name = &mut name[..usize::from(entry.name_len)];
            reader.device.copy(address + ENTRY_BYTES, name)?;
            if name.contains(&0) {
                return Err(MALFORMED);
            }
            let start = names.len();
            if start + prefix.len() + rest.len() + name.len() + 1 > MOST_NAMES {
                return Err(Error::TooLarge);
            }
            for part in [prefix, rest, name, &[0]] {
                names.extend_from_slice(part);
            }
            Ok(None)
        })?;
        Ok(names)
    }

    /// Reads the prefixes that the image defines: in an inode or, without one, on the device itself.
    pub(crate) fn long_prefixes(&self, inode: Option<u64>, start: u64, count: u8) -> Result<Vec<LongPrefix>, Error> {
        let inode = inode.map(|nid| self.inode(nid)).transpose()?;
        let copy = |at: u64, to: &mut [u8]| match &inode {
            None => self.device.copy(at, to),
            Some(inode) if self.read(inode, at, to)? == to.len() => Ok(()),
            Some(_) => Err(MALFORMED),
        };
        let mut at = start;
        let mut prefixes = Vec::new();
        for _ in 0..count {
            let mut len = U16::ZERO;
            copy(at, len.as_mut_bytes())?;
            let len = usize::from(len.get());
            if !(1..=1 + usize::from(u8::MAX)).contains(&len) {
                return Err(MALFORMED);
            }
            let mut rest = zeros(len)?;
            copy(at + 2, &mut rest)?;
            prefixes.push(LongPrefix { base: rest.remove(0), rest });
            at = (at + 2 + len as u64).next_multiple_of(4);
        }
        Ok(prefixes)
    }

    /// Calls `each` with the address of each entry, which is on the device with name and value, until it finds something.
    fn find_xattr<R>(
        &self,
        inode: &Inode,
        mut each: impl FnMut(&Self, u64, &Entry) -> Result<Option<R>, Error>,
    ) -> Result<Option<R>, Error> {
        let header_bytes = size_of::<Header>() as u64;
        // Only a header, or nothing.
        if inode.end - inode.xattr_start <= header_bytes {
            return Ok(None);
        }
        let header: Header = self.device.get(inode.xattr_start)?;
        let shared_at = inode.xattr_start + header_bytes;
        let mut at = shared_at + 4 * u64::from(header.shared);
        if at > inode.end {
            return Err(MALFORMED);
        }
        while at < inode.end {
            let entry = self.xattr_entry(at)?;
            let next = at + entry.bytes();
            if next > inode.end {
                return Err(MALFORMED);
            }
            if let Some(found) = each(self, at, &entry)? {
                return Ok(Some(found));
            }
            at = next;
        }
        for index in 0..u64::from(header.shared) {
            let number: U32 = self.device.get(shared_at + 4 * index)?;
            let address = self.image.shared_xattrs + 4 * u64::from(number);
            let entry = self.xattr_entry(address)?;
            if let Some(found) = each(self, address, &entry)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn xattr_entry(&self, address: u64) -> Result<Entry, Error> {
        let entry: Entry = self.device.get(address)?;
        self.device.check(address, entry.bytes())?;
        Ok(entry)
    }

    fn has_name(&self, address: u64, entry: &Entry, name: &[u8]) -> Result<bool, Error> {
        let Some((prefix, rest)) = self.prefix(entry.prefix) else { return Ok(false) };
        let Some(name) = name.strip_prefix(prefix).and_then(|name| name.strip_prefix(rest)) else { return Ok(false) };
        if name.len() != usize::from(entry.name_len) {
            return Ok(false);
        }
        let mut here = [0; u8::MAX as usize];
        let here = &mut here[..name.len()];
        self.device.copy(address + ENTRY_BYTES, here)?;
        Ok(here == name)
    }

    /// What a prefix's number stands for, in two parts.
    fn prefix(&self, number: u8) -> Option<(&[u8], &[u8])> {
        if number & IS_LONG == 0 {
            return Some((short_prefix(number)?, &[]));
        }
        let long = self.image.long_prefixes.get(usize::from(number & !IS_LONG))?;
        Some((short_prefix(long.base)?, &long.rest))
    }
}

fn short_prefix(number: u8) -> Option<&'static [u8]> {
    Some(match number {
        1 => b"user.",
        2 => b"system.posix_acl_access",
        3 => b"system.posix_acl_default",
        4 => b"trusted.",
        5 => b"lustre.",
        6 => b"security.",
        _ => return None,
    })
}

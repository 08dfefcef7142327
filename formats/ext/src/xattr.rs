//! Extended attributes: after the inode's fields, and in a block that inodes with the same attributes may share.

use crate::blocks::Blocks;
use crate::bytes::{le16, le32, put16, put32};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::{Inode, flag};
use crate::superblock::feature;
use crate::transaction::{Seal, Transaction};
use std_alloc::vec;
use std_alloc::vec::Vec;

const MAGIC: u32 = 0xea02_0000;
/// Bytes of a block's header.
const BLOCK_HEAD: usize = 32;
/// Bytes of an entry before its name.
const ENTRY: usize = 16;
/// The most inodes that share a block.
const SHARED_MAX: u32 = 1024;

/// What names start with, and the number that stands for it. The last is the rest of the names, as it stands.
const PREFIXES: [(&[u8], u8); 6] = [
    (b"user.", 1),
    (b"system.posix_acl_access", 2),
    (b"system.posix_acl_default", 3),
    (b"trusted.", 4),
    (b"security.", 6),
    (b"system.", 7),
];

/// An attribute, as programs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its whole name.
    pub name: Vec<u8>,
    /// Its value; access control lists as `getxattr` gives them.
    pub value: Vec<u8>,
}

/// What setting an attribute does about one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetMode {
    /// It is made or replaced.
    Any,
    /// It must not be there.
    Create,
    /// It must be there.
    Replace,
}

/// An attribute as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    index: u8,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Stored {
    fn entry_len(&self) -> usize {
        (ENTRY + self.name.len()).next_multiple_of(4)
    }

    fn value_len(&self) -> usize {
        self.value.len().next_multiple_of(4)
    }

    fn full_name(&self) -> Option<Vec<u8>> {
        let (prefix, _) = PREFIXES.iter().find(|(_, index)| *index == self.index)?;
        Some([prefix, &self.name[..]].concat())
    }

    fn hash(&self) -> u32 {
        let hash = self.name.iter().fold(0_u32, |hash, byte| hash.rotate_left(5) ^ u32::from(*byte));
        self.value.chunks(4).fold(hash, |hash, part| {
            let mut word = [0; 4];
            word[..part.len()].copy_from_slice(part);
            hash.rotate_left(16) ^ u32::from_le_bytes(word)
        })
    }
}

/// The number and the rest of a name.
fn split_name(name: &[u8]) -> Result<(u8, &[u8])> {
    for (prefix, index) in PREFIXES {
        if let Some(rest) = name.strip_prefix(prefix)
            && rest.is_empty() == matches!(index, 2 | 3)
        {
            return if rest.len() > 255 { Err(Error::NameTooLong) } else { Ok((index, rest)) };
        }
    }
    Err(Error::Unsupported("kind of attribute"))
}

/// The checksum of a block of attributes.
pub fn block_checksum(fs: &FileSystem, number: u64, bytes: &[u8]) -> u32 {
    let sum = crc32c(fs.superblock().checksum_seed, &number.to_le_bytes());
    crc32c(crc32c(crc32c(sum, &bytes[..0x10]), &[0; 4]), &bytes[0x14..])
}

/// Reads entries from `first` on; values are counted from `base` on.
fn parse(bytes: &[u8], first: usize, base: usize) -> Result<Vec<Stored>> {
    const WRONG: Error = Error::Corrupt("attributes");
    let mut found = Vec::new();
    let mut at = first;
    loop {
        let head = bytes.get(at..).ok_or(WRONG)?;
        // The list ends with zeros, or with the room.
        if head.len() < 4 || le32(head, 0) == 0 {
            return Ok(found);
        }
        let head = head.get(..ENTRY).ok_or(WRONG)?;
        let (name_len, index) = (usize::from(head[0]), head[1]);
        let name = bytes.get(at + ENTRY..at + ENTRY + name_len).ok_or(WRONG)?;
        if le32(head, 4) != 0 {
            return Err(Error::Unsupported("attribute in an inode of its own"));
        }
        let (start, len) = (base + usize::from(le16(head, 2)), le32(head, 8) as usize);
        let value = if len == 0 {
            &[][..]
        } else {
            start.checked_add(len).and_then(|end| bytes.get(start..end)).ok_or(WRONG)?
        };
        found.push(Stored { index, name: name.into(), value: value.into() });
        at += (ENTRY + name_len).next_multiple_of(4);
    }
}

/// Bytes that a list takes, with the zeros at its end.
fn list_len(list: &[Stored]) -> usize {
    list.iter().map(|one| one.entry_len() + one.value_len()).sum::<usize>() + 4
}

/// Writes a list: entries from `first` on, values at the end, counted from `base` on.
fn write(bytes: &mut [u8], first: usize, base: usize, list: &[Stored]) {
    bytes[first..].fill(0);
    let (mut at, mut end) = (first, bytes.len() & !3);
    for one in list {
        end -= one.value_len();
        bytes[end..end + one.value.len()].copy_from_slice(&one.value);
        bytes[at] = one.name.len() as u8;
        bytes[at + 1] = one.index;
        put16(bytes, at + 2, if one.value.is_empty() { 0 } else { (end - base) as u16 });
        put32(bytes, at + 8, one.value.len() as u32);
        put32(bytes, at + 12, one.hash());
        bytes[at + ENTRY..at + ENTRY + one.name.len()].copy_from_slice(&one.name);
        at += one.entry_len();
    }
}

impl FileSystem {
    /// Where an inode's own attributes start, if there is room for any.
    fn own_at(&self, inode: &Inode) -> Option<usize> {
        let at = 128 + inode.extra();
        (inode.raw().len() >= at + 4 + ENTRY + 4 && inode.extra() > 0 && at.is_multiple_of(4)).then_some(at)
    }

    fn own_attributes(&self, inode: &Inode) -> Result<Vec<Stored>> {
        match self.own_at(inode) {
            Some(at) if le32(inode.raw(), at) == MAGIC => parse(inode.raw(), at + 4, at + 4),
            _ => Ok(Vec::new()),
        }
    }

    /// The attributes in an inode's block, and how many inodes share it.
    fn block_attributes(&self, blocks: &impl Blocks, inode: &Inode) -> Result<(Vec<Stored>, u32)> {
        let block = inode.attribute_block();
        if block == 0 {
            return Ok((Vec::new(), 0));
        }
        if !self.may_be_data(block, 1) {
            return Err(Error::Corrupt("block of attributes"));
        }
        let check = self.has_checksums() && !blocks.is_verified(block);
        let found = blocks.read(block, |bytes| {
            let shared = le32(bytes, 4);
            if le32(bytes, 0) != MAGIC || le32(bytes, 8) != 1 || shared == 0 || shared > SHARED_MAX {
                return Err(Error::Corrupt("block of attributes"));
            }
            if check && block_checksum(self, block, bytes) != le32(bytes, 0x10) {
                return Err(Error::Corrupt("checksum of attributes"));
            }
            Ok((parse(bytes, BLOCK_HEAD, 0)?, shared))
        })??;
        if check {
            blocks.mark_verified(block);
        }
        Ok(found)
    }

    /// All attributes of an inode.
    pub fn attributes(&self, blocks: &impl Blocks, inode: &Inode) -> Result<Vec<Attribute>> {
        let (block, _) = self.block_attributes(blocks, inode)?;
        let all = self.own_attributes(inode)?.into_iter().chain(block);
        let mut found = Vec::new();
        for one in all {
            // What has a prefix that is not known, or is the file system's own, programs do not see.
            let is_inner = one.index == 7 && one.name == b"data";
            if let Some(name) = one.full_name().filter(|_| !is_inner) {
                found.push(Attribute { name, value: from_disk(one.index, one.value)? });
            }
        }
        Ok(found)
    }

    /// One attribute's value.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` for a name that cannot be stored; `Corrupt`, `Absent`.
    pub fn attribute(&self, blocks: &impl Blocks, inode: &Inode, name: &[u8]) -> Result<Vec<u8>> {
        let (index, rest) = split_name(name)?;
        let matches = |one: &Stored| one.index == index && one.name == rest;
        let mut found = self.own_attributes(inode)?.into_iter().find(matches);
        if found.is_none() {
            found = self.block_attributes(blocks, inode)?.0.into_iter().find(matches);
        }
        from_disk(index, found.ok_or(Error::NotFound)?.value)
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// Sets an attribute of an inode.
    ///
    /// # Errors
    /// `Exists`, `NotFound` (as `mode` wants); `NoSpace` if there is no room for it beside the others; `NameTooLong`, `Unsupported`, `Invalid` (an access
    /// control list that is none), `CommitFirst`, `Corrupt`, `Absent`.
    pub fn set_attribute(&mut self, inode: &mut Inode, name: &[u8], value: &[u8], mode: SetMode) -> Result<()> {
        let (index, rest) = split_name(name)?;
        let value = to_disk(index, value)?;
        self.change_attribute(inode, Stored { index, name: rest.into(), value }, mode, false)
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// `NotFound`, `Unsupported`, `Corrupt`, `Absent`.
    pub fn remove_attribute(&mut self, inode: &mut Inode, name: &[u8]) -> Result<()> {
        let (index, rest) = split_name(name)?;
        self.change_attribute(inode, Stored { index, name: rest.into(), value: Vec::new() }, SetMode::Replace, true)
    }

    fn change_attribute(&mut self, inode: &mut Inode, new: Stored, mode: SetMode, remove: bool) -> Result<()> {
        let fs = self.fs();
        if inode.has_flag(flag::INLINE_DATA) {
            return Err(Error::Unsupported("inline data"));
        }
        let own_before = fs.own_attributes(inode)?;
        let (block_before, _) = fs.block_attributes(self, inode)?;
        let other = |one: &Stored| one.index != new.index || one.name != new.name;
        let without = |list: &Vec<Stored>| list.iter().filter(|one| other(one)).cloned().collect::<Vec<_>>();
        let (mut own, mut block) = (without(&own_before), without(&block_before));
        let was_there = own.len() + block.len() < own_before.len() + block_before.len();
        match mode {
            SetMode::Create if was_there => return Err(Error::Exists),
            SetMode::Replace if !was_there => return Err(Error::NotFound),
            _ => {}
        }
        if !remove {
            let own_room = fs.own_at(inode).map_or(0, |at| inode.raw().len() - at - 4);
            let block_room = fs.block_size() as usize - BLOCK_HEAD;
            own.push(new);
            if list_len(&own) > own_room {
                block.extend(own.pop());
            }
            if list_len(&block) > block_room && !block.is_empty() {
                return Err(Error::NoSpace);
            }
        }
        self.store_own(inode, &own);
        if block != block_before {
            self.store_block(inode, block)?;
        }
        inode.set_ctime(self.now());
        self.put_inode(inode)
    }

    fn store_own(&self, inode: &mut Inode, list: &[Stored]) {
        let Some(at) = self.fs().own_at(inode) else { return };
        let raw = inode.raw_mut();
        put32(raw, at, if list.is_empty() { 0 } else { MAGIC });
        write(raw, at + 4, at + 4, list);
    }

    fn store_block(&mut self, inode: &mut Inode, mut list: Vec<Stored>) -> Result<()> {
        if list.is_empty() {
            return self.drop_attributes(inode);
        }
        list.sort_by(|one, other| {
            (one.index, one.name.len(), &one.name).cmp(&(other.index, other.name.len(), &other.name))
        });
        let (_, shared) = self.fs().block_attributes(self, inode)?;
        let mut block = inode.attribute_block();
        if shared != 1 {
            self.drop_attributes(inode)?;
            let goal = self.goal(inode, 0)?;
            block = self.take_metadata_block(goal, Seal::Attributes)?;
            inode.add_blocks(self.fs(), 1)?;
            inode.set_attribute_block(block);
            self.need_feature(0, feature::EXT_ATTR)?;
        }
        let hash = list.iter().fold(0_u32, |hash, one| hash.rotate_left(16) ^ one.hash());
        let bytes = self.zeroed(block, Seal::Attributes);
        put32(bytes, 0, MAGIC);
        put32(bytes, 4, 1);
        put32(bytes, 8, 1);
        put32(bytes, 12, hash);
        write(bytes, BLOCK_HEAD, 0, &list);
        Ok(())
    }

    /// Takes the block of attributes from an inode, and frees it if no other inode shares it.
    pub(crate) fn drop_attributes(&mut self, inode: &mut Inode) -> Result<()> {
        let block = inode.attribute_block();
        if block == 0 {
            return Ok(());
        }
        let (_, shared) = self.fs().block_attributes(self, inode)?;
        inode.set_attribute_block(0);
        if shared == 1 {
            return self.give_back_block(inode, block);
        }
        self.modify(block, Seal::Attributes, |bytes| put32(bytes, 4, shared - 1))?;
        inode.add_blocks(self.fs(), -1)
    }
}

/// Whether an entry of an access control list has a user or group.
fn has_id(tag: u16) -> bool {
    matches!(tag, 2 | 8)
}

/// An access control list as programs see it: version 2, entries of 8 bytes. On the disk it is version 1, and only named users and groups
/// have the last 4.
fn from_disk(index: u8, value: Vec<u8>) -> Result<Vec<u8>> {
    if !matches!(index, 2 | 3) {
        return Ok(value);
    }
    const WRONG: Error = Error::Corrupt("access control list");
    if value.len() < 4 || le32(&value, 0) != 1 {
        return Err(WRONG);
    }
    let mut list = vec![2, 0, 0, 0];
    let mut at = 4;
    while at < value.len() {
        let entry = value.get(at..at + 4).ok_or(WRONG)?;
        list.extend_from_slice(entry);
        at += 4;
        if has_id(le16(entry, 0)) {
            list.extend_from_slice(value.get(at..at + 4).ok_or(WRONG)?);
            at += 4;
        } else {
            list.extend_from_slice(&[0xff; 4]);
        }
    }
    Ok(list)
}

fn to_disk(index: u8, value: &[u8]) -> Result<Vec<u8>> {
    if !matches!(index, 2 | 3) {
        return Ok(value.into());
    }
    if value.len() % 8 != 4 || le32(value, 0) != 2 {
        return Err(Error::Invalid);
    }
    let mut list = vec![1, 0, 0, 0];
    for entry in value[4..].chunks(8) {
        list.extend_from_slice(if has_id(le16(entry, 0)) { entry } else { &entry[..4] });
    }
    Ok(list)
}

//! Symbolic links: a target of less than 60 bytes is in the inode, a longer one in a block.

use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::{Inode, Kind};
use crate::inode_alloc::NewInode;
use crate::map::{Mapping, Written};
use crate::transaction::{Seal, Transaction};
use std_alloc::vec::Vec;

/// Bytes in the inode.
const FIELD: usize = 60;

impl FileSystem {
    /// Whether a symbolic link's target is in its inode: it has no block, but perhaps that of its attributes.
    pub(crate) fn is_fast_symlink(&self, inode: &Inode) -> bool {
        let attributes = if inode.attribute_block() != 0 { u64::from(self.block_size() / 512) } else { 0 };
        inode.kind() == Some(Kind::Symlink) && inode.sectors(self) <= attributes
    }

    /// Reads a symbolic link's target.
    ///
    /// # Errors
    /// `Invalid` if it is none; `Corrupt`, `Absent`.
    pub fn read_link(&self, blocks: &impl Blocks, inode: &Inode) -> Result<Vec<u8>> {
        if inode.kind() != Some(Kind::Symlink) {
            return Err(Error::Invalid);
        }
        let len = usize::try_from(inode.size()).map_err(|_| Error::Corrupt("size of a symbolic link"))?;
        let target = if self.is_fast_symlink(inode) {
            inode.block_field().get(..len).filter(|_| len < FIELD).map(Vec::from)
        } else {
            let block = self.map_metadata(blocks, inode, 0)?;
            blocks.read(block, |bytes| bytes.get(..len).map(Vec::from))?
        };
        target.filter(|target| !target.is_empty() && !target.contains(&0)).ok_or(Error::Corrupt("symbolic link"))
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// Makes a symbolic link in a directory. Its mode is `new.mode`'s permissions (0o777 as a rule).
    ///
    /// # Errors
    /// As [`create`](Self::create); `NameTooLong` if the target does not fit a block; `Invalid` if it is empty.
    pub fn symlink(&mut self, dir: u32, name: &[u8], target: &[u8], new: &NewInode) -> Result<Inode> {
        if target.is_empty() || target.contains(&0) {
            return Err(Error::Invalid);
        }
        if target.len() >= self.fs().block_size().min(4096) as usize {
            return Err(Error::NameTooLong);
        }
        let new = NewInode { mode: 0xa000 | new.mode & 0xfff, ..*new };
        let mut inode = self.create(dir, name, &new)?;
        inode.set_size(target.len() as u64);
        if target.len() < FIELD {
            inode.block_field_mut()[..target.len()].copy_from_slice(target);
        } else {
            self.start_mapping(&mut inode);
            // What says that its target is in the inode is that it has no blocks: so this is done past `map`.
            let block = self.allocate_first(&mut inode)?;
            self.zeroed(block, Seal::None)[..target.len()].copy_from_slice(target);
        }
        self.put_inode(&inode)?;
        Ok(inode)
    }

    /// Gives an inode that has no blocks its first, for metadata.
    fn allocate_first(&mut self, inode: &mut Inode) -> Result<u64> {
        use crate::alloc::Use;
        let found = if inode.has_flag(crate::inode::flag::EXTENTS) {
            self.allocate_extent(inode, 0, 1, Use::Metadata)?
        } else {
            self.allocate_indirect(inode, 0, 1, Use::Metadata)?
        };
        match found {
            Mapping::Blocks { start, written: Written::Yes, .. } => Ok(start),
            _ => Err(Error::Corrupt("symbolic link")),
        }
    }
}

//! [`Node`]: the inode of an entry of a table.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use refs::TempRc;

use super::maps::VmaTextFile;
use super::memory::{MemoryFile, PageMapFile};
use super::text::{MountsFile, TextFile};
use super::{Entry, Target, What, inode};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{Creation, DirectoryEntry, File, FileKind, Inode, InodeOps, Jump, Metadata, OpenFlags, VfsCaller};
use crate::step::Step;

/// The inode of an entry.
pub struct Node {
    target: Target,
    what: What,
}

/// The first position behind `.` and `..`.
pub const FIRST_POSITION: u64 = 3;

impl Node {
    /// The inode of a directory with these entries.
    pub fn directory(target: Target, entries: &'static [Entry]) -> Box<dyn InodeOps> {
        Node::make(target, What::Directory(entries))
    }

    fn make(target: Target, what: What) -> Box<dyn InodeOps> {
        match what {
            What::Special(make) => make(target),
            what => Box::new(Node { target, what }),
        }
    }
}

/// The inode of a name in a table.
pub fn lookup<'cx>(
    entries: &'static [Entry],
    directory: &TempRc<'cx, Inode>,
    first_number: u64,
    target: &Target,
    name: &[u8],
    cx: &'cx Cx,
) -> Result<TempRc<'cx, Inode>> {
    let index = entries.iter().position(|entry| entry.name.as_bytes() == name).ok_or(Errno::ENOENT)?;
    let entry = &entries[index];
    let number = first_number + index as u64;
    inode((directory, name), number, entry.what.kind(), entry.permissions, target, cx, || {
        Node::make(*target, entry.what)
    })
}

/// Tells the entries of a table from position `from` on; false if `each` said so.
pub fn list(
    entries: &'static [Entry],
    first_number: u64,
    from: u64,
    each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
) -> bool {
    let skipped = from.saturating_sub(FIRST_POSITION - 1) as usize;
    entries.iter().enumerate().skip(skipped).all(|(index, entry)| {
        each(DirectoryEntry {
            name: entry.name.as_bytes(),
            number: first_number + index as u64,
            kind: entry.what.kind(),
            next: FIRST_POSITION + index as u64,
        })
    })
}

/// The number of the first entry of a directory of the machine's.
pub fn first_number(directory: &Inode) -> u64 {
    directory.number * 64 + 1
}

impl InodeOps for Node {
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        (metadata.uid, metadata.gid) = self.target.owner(cx);
    }

    fn is_stale(&self, _cx: &Cx) -> bool {
        self.target.is_gone()
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let What::Directory(entries) = self.what else { return Err(Errno::ENOTDIR.into()) };
        Ok(lookup(entries, this, first_number(this), &self.target, name, cx)?)
    }

    fn list(
        &self,
        this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        _cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let What::Directory(entries) = self.what else { return Err(Errno::ENOTDIR.into()) };
        list(entries, first_number(this), from, each);
        Ok(())
    }

    fn read_link(&self, me: &dyn VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
        match self.what {
            What::Link(path) | What::Jump(_, path) => Ok(path(&self.target, Current::of(me)?, cx)?),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn jump(&self, me: &dyn VfsCaller, cx: &Cx) -> Option<Result<Jump>> {
        match self.what {
            What::Jump(jump, _) => Some(Current::of(me).and_then(|me| jump(&self.target, me, cx))),
            _ => None,
        }
    }

    fn open(
        &self,
        this: &TempRc<'_, Inode>,
        _flags: OpenFlags,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        if this.kind == FileKind::Regular && self.target.is_gone() {
            return Err(Errno::ESRCH.into());
        }
        // What only the owner may read is about the inside of a process: of the address space that it has now.
        let is_private = matches!(self.target, Target::Process(_)) && this.access_bits(cx).0 & 0o077 == 0;
        let file: Option<Box<dyn File>> = match self.what {
            What::Text(show) if is_private => Some(Box::new(TextFile::of_memory(self.target, show, cx))),
            What::Text(show) => Some(Box::new(TextFile::new(self.target, show, None))),
            What::Setting(show, change) => Some(Box::new(TextFile::new(self.target, show, Some(change)))),
            What::VmaMap(line) => Some(Box::new(VmaTextFile::new(self.target, line))),
            What::Memory => Some(Box::new(MemoryFile::new(&self.target, cx))),
            What::PageMap => Some(Box::new(PageMapFile::new(&self.target, cx))),
            What::Mounts(show) => Some(Box::new(MountsFile::new(self.target, show, cx))),
            _ => None,
        };
        if is_private {
            // Behind that: see [`Target::check_access`].
            self.target.check_access(Current::of(me)?, cx)?;
        }
        Ok(file)
    }

    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(Errno::ENOENT.into())
    }

    /// They have no length: programs cut them before they write.
    fn set_size(&self, _this: &Inode, _size: u64, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

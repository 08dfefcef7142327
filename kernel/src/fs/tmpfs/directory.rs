//! Directories of tmpfs, and its files without content: symbolic links, device nodes, FIFOs, sockets.
//!
//! Locks: the file system's `tree` around every change of names; then one directory's entries at a time; then metadata.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinGuard, SpinLock, StrongRc, TempRc};

use super::file::RegularFile;
use super::recent::{self, Version};
use crate::error::{Errno, Result};
use crate::fs::names::Names;
use crate::fs::{
    Creation, Dentry, DirectoryEntry, FileKind, FileSystem, Inode, InodeFlags, InodeOps, Metadata, Named, Rename,
    Timestamp, VfsCaller, look_for_closed,
};
use crate::heap::slot_bytes;
use crate::pieces::{Pieces, free_in_pieces};
use crate::step::Step;

/// Linux tells a directory's size as so many bytes for each entry.
const ENTRY_BYTES: u64 = 20;
/// What link(2) allows.
const MOST_LINKS: u32 = 65_000;

/// The right to be an inode of a file system with limited capacity; given back with it.
pub(super) struct Ticket {
    /// The file system.
    pub file_system: StrongRc<FileSystem>,
    is_given_back: AtomicBool,
}

impl Ticket {
    /// # Errors
    /// ENOSPC.
    pub fn take(file_system: &StrongRc<FileSystem>) -> Result<Ticket> {
        file_system.with(|file_system| file_system.capacity.take_inode())?;
        Ok(Ticket { file_system: file_system.share(), is_given_back: AtomicBool::new(false) })
    }

    /// Gives it back before the inode ends, which nobody uses any more.
    pub fn give_back(&self) {
        if !self.is_given_back.swap(true, Ordering::Relaxed) {
            self.file_system.with(|file_system| file_system.capacity.give_inode());
        }
    }

    /// Whether that was done.
    #[inline(always)]
    pub fn is_given_back(&self) -> bool {
        self.is_given_back.load(Ordering::Relaxed)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !*self.is_given_back.get_mut() {
            self.file_system.with(|file_system| file_system.capacity.give_inode());
        }
    }
}

/// A directory.
pub struct Directory {
    entries: SpinLock<Entries>,
    version: Version,
    _ticket: Ticket,
}

impl Drop for Directory {
    /// A directory with its names goes where its file system goes.
    fn drop(&mut self) {
        let names = core::mem::take(&mut self.entries.get_mut().names);
        if names.len() > 0 {
            free_in_pieces(names);
        }
    }
}

impl Pieces for Names<StrongRc<Inode>> {
    fn free_piece(&mut self) -> bool {
        self.take_some().is_some()
    }
}

#[derive(Default)]
struct Entries {
    names: Names<StrongRc<Inode>>,
    /// It was removed: nothing can be made in it any more.
    is_removed: bool,
}

impl Directory {
    /// An empty one.
    ///
    /// # Errors
    /// ENOSPC.
    pub fn new(file_system: &StrongRc<FileSystem>) -> Result<Self> {
        Ok(Directory { entries: SpinLock::default(), version: Version::default(), _ticket: Ticket::take(file_system)? })
    }

    /// The inode of a name.
    #[inline(always)]
    pub fn find<'cx>(&self, name: &[u8], cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        // While it has the name it has an owner: it is there until the next suspension, also if another takes its place.
        Some(self.entries.lock(cx).names.get(name)?.get(cx))
    }

    /// As [`find`](Self::find), out of the way of the only core's.
    #[inline(never)]
    fn find_apart<'cx>(&self, name: &[u8], cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        self.find(name, cx)
    }

    /// The entries, to change names.
    fn changing<'a>(&'a self, cx: &'a Cx) -> SpinGuard<'a, Entries> {
        let entries = self.entries.lock(cx);
        self.version.move_on();
        entries
    }

    fn is_empty(&self, cx: &Cx) -> bool {
        self.entries.lock(cx).names.len() == 0
    }

    /// Gives an inode a name.
    ///
    /// # Errors
    /// ENOENT: the directory was removed; EEXIST; ENOMEM.
    pub fn enter(&self, this: &TempRc<'_, Inode>, name: &[u8], inode: StrongRc<Inode>, cx: &Cx) -> Result<()> {
        let mut entries = self.changing(cx);
        if entries.is_removed {
            return Err(Errno::ENOENT);
        }
        if entries.names.get(name).is_some() {
            return Err(Errno::EEXIST);
        }
        entries.names.insert(name, inode)?;
        drop(entries);
        this.touch_modified(cx);
        Ok(())
    }

    fn take_out(&self, this: &TempRc<'_, Inode>, name: &[u8], cx: &Cx) -> Option<StrongRc<Inode>> {
        let inode = self.changing(cx).names.remove(name);
        this.touch_modified(cx);
        inode
    }
}

/// An inode lost one of its names.
fn drop_link(inode: &TempRc<'_, Inode>, directory: &TempRc<'_, Inode>, name: &[u8], cx: &Cx) {
    let left = inode.change(cx, |metadata| {
        metadata.links = if inode.kind == FileKind::Directory { 0 } else { metadata.links.saturating_sub(1) };
        metadata.changed = Timestamp::now();
        metadata.links
    });
    if left > 0 {
        inode.file_system.get(cx).capacity.give_inode();
    } else if inode.owners() > 1 {
        // The first owner is the directory.
        look_for_closed();
    }
    let mut dentry = inode.dentry.lock(cx);
    if left == 0 || dentry.is(directory, name) {
        dentry.is_removed = true;
    }
}

fn change_links(directory: &Inode, difference: i32, cx: &Cx) {
    directory.change(cx, |metadata| metadata.links = metadata.links.saturating_add_signed(difference));
}

impl InodeOps for Directory {
    fn keeps_acls(&self) -> bool {
        true
    }

    fn has_flags(&self) -> bool {
        true
    }

    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        metadata.size = (2 + self.entries.lock(cx).names.len() as u64) * ENTRY_BYTES;
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let found = match recent::is_worth_it() {
            false => self.find(name, cx),
            true => recent::look_up(this, &self.version, name, || self.find_apart(name, cx), cx),
        };
        found.ok_or(Errno::ENOENT.into())
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let entries = self.entries.lock(cx);
        for (next, name, inode) in entries.names.behind(from) {
            let inode = inode.get(cx);
            if !each(DirectoryEntry { name, number: inode.number, kind: inode.kind, next }) {
                break;
            }
        }
        Ok(())
    }

    fn create<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let mut metadata = Metadata::new(what.kind, what.permissions).owned_by(what.uid, what.gid);
        metadata.device = what.device;
        let ops: Box<dyn InodeOps> = match what.kind {
            FileKind::Directory => Box::new(Directory::new(&this.file_system)?),
            FileKind::Regular => Box::new(RegularFile::new(Ticket::take(&this.file_system)?)),
            FileKind::Symlink => {
                metadata.size = what.target.len() as u64;
                Box::new(Symlink { target: what.target.into(), _ticket: Ticket::take(&this.file_system)? })
            }
            _ => Box::new(Node { ticket: Ticket::take(&this.file_system)? }),
        };
        let number = file_system.next_inode();
        let new = || Inode::new(this.file_system.share(), number, metadata, Dentry::new(this, name), ops);
        let inode = if what.attributes.is_empty() {
            StrongRc::new(new())
        } else {
            let mut inode = new();
            inode.begin_with_attributes(what.attributes.to_vec());
            StrongRc::new(inode)
        };
        let made = inode.downgrade();
        inode.get(cx).set_flags(this.flags() & InodeFlags::INHERITED);
        self.enter(this, name, inode, cx)?;
        if what.kind == FileKind::Directory {
            change_links(this, 1, cx);
        }
        Ok(made.upgrade(cx)?)
    }

    fn create_nameless(&self, this: &TempRc<'_, Inode>, what: &Creation<'_>, cx: &Cx) -> Step<StrongRc<Inode>> {
        let mut metadata = Metadata::new(FileKind::Regular, what.permissions).owned_by(what.uid, what.gid);
        metadata.links = 0;
        let number = this.file_system.get(cx).next_inode();
        let ops = Box::new(RegularFile::unnamed(Ticket::take(&this.file_system)?));
        let mut dentry = Dentry::new(this, alloc::format!("#{number}").as_bytes());
        dentry.is_removed = true;
        let mut inode = Inode::new(this.file_system.share(), number, metadata, dentry, ops);
        inode.begin_with_attributes(what.attributes.to_vec());
        inode.set_flags(this.flags() & InodeFlags::INHERITED);
        Ok(StrongRc::new(inode))
    }

    fn link(&self, this: &TempRc<'_, Inode>, name: &[u8], target: &TempRc<'_, Inode>, cx: &Cx) -> Step<()> {
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let links = target.metadata(cx).links;
        if links >= MOST_LINKS {
            return Err(Errno::EMLINK.into());
        }
        // A removed file stays removed; one that never had a name (O_TMPFILE) may get one.
        if links == 0 && !target.ops_as::<RegularFile>().is_some_and(RegularFile::may_be_named) {
            return Err(Errno::ENOENT.into());
        }
        crate::memory::admit()?;
        let share = target.share().ok_or(Errno::ENOENT)?;
        // A name costs memory too: it counts as an inode.
        let capacity = &file_system.capacity;
        if links > 0 {
            capacity.take_inode()?;
        }
        self.enter(this, name, share, cx).inspect_err(|_| {
            if links > 0 {
                capacity.give_inode();
            }
        })?;
        target.change(cx, |metadata| {
            metadata.links += 1;
            metadata.changed = Timestamp::now();
        });
        let mut dentry = target.dentry.lock(cx);
        if dentry.is_removed {
            *dentry = Dentry::new(this, name);
        }
        Ok(())
    }

    fn unlink(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let Named { directory: this, name, .. } = *at;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let inode = self.find(name, cx).ok_or(Errno::ESTALE)?;
        at.check(Some(&inode))?;
        if inode.kind == FileKind::Directory {
            return Err(Errno::EISDIR.into());
        }
        drop_link(&inode, this, name, cx);
        self.take_out(this, name, cx);
        Ok(())
    }

    fn remove_directory(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let Named { directory: this, name, .. } = *at;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let inode = self.find(name, cx).ok_or(Errno::ESTALE)?;
        at.check(Some(&inode))?;
        let directory = inode.ops_as::<Directory>().ok_or(Errno::ENOTDIR)?;
        mark_removed(directory, cx)?;
        drop_link(&inode, this, name, cx);
        change_links(this, -1, cx);
        self.take_out(this, name, cx);
        Ok(())
    }

    fn rename(&self, from: &Named<'_, '_>, into: &Named<'_, '_>, how: Rename, cx: &Cx) -> Step<()> {
        let Named { directory: this, name, .. } = *from;
        let Named { directory: to, name: to_name, .. } = *into;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let target = to.ops_as::<Directory>().ok_or(Errno::EXDEV)?;
        let moved = self.find(name, cx).ok_or(Errno::ESTALE)?;
        let existing = target.find(to_name, cx);
        from.check(Some(&moved))?;
        into.check(existing.as_ref())?;
        let moves_directory = moved.kind == FileKind::Directory;
        if moves_directory && Inode::is_within(to, &moved, cx) {
            return Err(Errno::EINVAL.into());
        }
        match (&existing, how) {
            (Some(_), Rename::NoReplace) => return Err(Errno::EEXIST.into()),
            (None, Rename::Exchange) => return Err(Errno::ENOENT.into()),
            (Some(other), Rename::Exchange) => {
                return Ok(self.exchange((this, name, &moved), (to, target, to_name, other), cx)?);
            }
            _ => {}
        }
        if existing.as_ref().is_some_and(|other| other.downgrade() == moved.downgrade()) {
            return Ok(());
        }
        if target.entries.lock(cx).is_removed {
            return Err(Errno::ENOENT.into());
        }
        if let Some(other) = &existing {
            match other.ops_as::<Directory>() {
                None if moves_directory => return Err(Errno::ENOTDIR.into()),
                Some(_) if !moves_directory => return Err(Errno::EISDIR.into()),
                Some(directory) => {
                    mark_removed(directory, cx)?;
                    change_links(to, -1, cx);
                }
                None => {}
            }
        }
        let share = moved.share().ok_or(Errno::ENOENT)?;
        // The new name first: others find at each moment what was there or what comes there.
        let mut entries = target.changing(cx);
        let replaced = entries.names.replace(to_name, share);
        if let Err(share) = replaced {
            entries.names.insert(to_name, share)?;
        }
        let is_same = to.downgrade() == this.downgrade();
        let old = is_same.then(|| entries.names.remove(name));
        drop(entries);
        drop(old.unwrap_or_else(|| self.changing(cx).names.remove(name)));
        this.touch_modified(cx);
        to.touch_modified(cx);
        if let Some(other) = &existing {
            drop_link(other, to, to_name, cx);
        }
        if moves_directory {
            change_links(this, -1, cx);
            change_links(to, 1, cx);
        }
        *moved.dentry.lock(cx) = Dentry::new(to, to_name);
        moved.change(cx, |metadata| metadata.changed = Timestamp::now());
        Ok(())
    }
}

impl Directory {
    /// Two names exchange their inodes.
    fn exchange(
        &self,
        (this, name, moved): (&TempRc<'_, Inode>, &[u8], &TempRc<'_, Inode>),
        (to, target, to_name, other): (&TempRc<'_, Inode>, &Directory, &[u8], &TempRc<'_, Inode>),
        cx: &Cx,
    ) -> Result<()> {
        if other.kind == FileKind::Directory && Inode::is_within(this, other, cx) {
            return Err(Errno::EINVAL);
        }
        let (Some(first), Some(second)) = (moved.share(), other.share()) else {
            return Err(Errno::ENOENT);
        };
        let mut entries = self.changing(cx);
        let _replaced = entries.names.replace(name, second);
        if to.downgrade() == this.downgrade() {
            let _replaced = entries.names.replace(to_name, first);
            // Whoever asks for a directory's metadata locks them first and then its entries.
            drop(entries);
        } else {
            drop(entries);
            let _replaced = target.changing(cx).names.replace(to_name, first);
        }
        for (inode, from, into, new_name) in [(moved, this, to, to_name), (other, to, this, name)] {
            if inode.kind == FileKind::Directory {
                change_links(from, -1, cx);
                change_links(into, 1, cx);
            }
            *inode.dentry.lock(cx) = Dentry::new(into, new_name);
            inode.change(cx, |metadata| metadata.changed = Timestamp::now());
        }
        this.touch_modified(cx);
        to.touch_modified(cx);
        Ok(())
    }
}

/// From here on nothing can be made in the directory.
fn mark_removed(directory: &Directory, cx: &Cx) -> Result<()> {
    if !directory.is_empty(cx) {
        return Err(Errno::ENOTEMPTY);
    }
    directory.entries.lock(cx).is_removed = true;
    Ok(())
}

/// A symbolic link.
struct Symlink {
    target: Box<[u8]>,
    _ticket: Ticket,
}

impl InodeOps for Symlink {
    fn has_flags(&self) -> bool {
        true
    }

    fn read_link(&self, _me: &dyn VfsCaller, _cx: &Cx) -> Step<Vec<u8>> {
        Ok(self.target.to_vec())
    }
}

impl Symlink {
    fn target(&self) -> &[u8] {
        &self.target
    }
}

/// Where a symbolic link of tmpfs leads; `None` if `inode` is none.
pub fn symlink_target(inode: &Inode) -> Option<&[u8]> {
    inode.ops_as::<Symlink>().map(Symlink::target)
}

/// A device node, FIFO or socket: all there is to it is its inode.
struct Node {
    ticket: Ticket,
}

impl InodeOps for Node {
    fn leave(&self) -> Option<usize> {
        self.ticket.give_back();
        Some(slot_bytes(size_of::<Self>()))
    }

    fn keeps_acls(&self) -> bool {
        true
    }

    fn has_flags(&self) -> bool {
        true
    }
}

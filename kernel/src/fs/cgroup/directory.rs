//! [`Directory`]: a group as a directory.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::file::Node;
use super::{MOST_FILES, directory_of, files, number};
use crate::cgroup::{self, Cgroup};
use crate::error::{Errno, Result};
use crate::fs::{Creation, Dentry, DirectoryEntry, FileKind, Inode, InodeOps, Metadata, Named, Timestamp, VfsCaller};
use crate::process;
use crate::step::Step;

/// A group's directory. It owns the inodes of the group's files; the group owns it until it is removed.
pub struct Directory {
    group: WeakRc<Cgroup>,
    /// Who has made it, and owns the files in it at first.
    owner: (u32, u32),
    files: SpinLock<BTreeMap<usize, StrongRc<Inode>>>,
}

/// The position of the first file.
const FIRST_POSITION: u64 = 3;

impl Directory {
    pub(super) fn new(group: WeakRc<Cgroup>, owner: (u32, u32)) -> Self {
        Directory { group, owner, files: SpinLock::default() }
    }

    /// The group.
    ///
    /// # Errors
    /// ENODEV: it was removed.
    pub(super) fn group<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Cgroup>> {
        self.group.upgrade(cx).ok().filter(|group| !group.is_removed()).ok_or(Errno::ENODEV)
    }

    /// The inode of a file.
    ///
    /// # Errors
    /// ENOENT: there is none of that name.
    pub(super) fn file<'cx>(&self, this: &TempRc<'cx, Inode>, name: &[u8], cx: &'cx Cx) -> Result<TempRc<'cx, Inode>> {
        let group = self.group(cx).map_err(|_| Errno::ENOENT)?;
        let (index, entry) =
            files().find(|(_, entry)| entry.name.as_bytes() == name && entry.is_in(&group, cx)).ok_or(Errno::ENOENT)?;
        let mut files = self.files.lock(cx);
        let inode = files.entry(index).or_insert_with(|| {
            let metadata = Metadata::new(FileKind::Regular, entry.permissions()).owned_by(self.owner.0, self.owner.1);
            let node = Box::new(Node::new(self.group, entry));
            let number = number(&group) + 1 + index as u64;
            StrongRc::new(Inode::new(this.file_system.share(), number, metadata, Dentry::new(this, name), node))
        });
        Ok(inode.get(cx))
    }
}

impl InodeOps for Directory {
    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let group = self.group(cx).map_err(|_| Errno::ENOENT)?;
        match group.child(name, cx) {
            Some(child) => Ok(directory_of(&child, cx).ok_or(Errno::ENOENT)?),
            None => Ok(self.file(this, name, cx)?),
        }
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let group = self.group(cx).map_err(|_| Errno::ENOENT)?;
        let first = from.saturating_sub(FIRST_POSITION - 1);
        for (index, entry) in files().filter(|(index, entry)| *index as u64 >= first && entry.is_in(&group, cx)) {
            let index = index as u64;
            let entry = DirectoryEntry {
                name: entry.name.as_bytes(),
                number: number(&group) + 1 + index,
                kind: FileKind::Regular,
                next: FIRST_POSITION + index,
            };
            if !each(entry) {
                return Ok(());
            }
        }
        // Groups below it come behind all files, at their numbers.
        let first_group = FIRST_POSITION + MOST_FILES;
        group.each_child(from.saturating_sub(first_group - 1), cx, |child| {
            let (name, number) = (&*child.name, number(child));
            each(DirectoryEntry { name, number, kind: FileKind::Directory, next: first_group + child.id })
        });
        Ok(())
    }

    fn create<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        match what.kind {
            FileKind::Directory => {}
            // As where a file system knows no new files.
            FileKind::Regular => return Err(Errno::EACCES.into()),
            _ => return Err(Errno::EPERM.into()),
        }
        if name.contains(&b'\n') {
            // `/proc/PID/cgroup` could not be read any more.
            return Err(Errno::EINVAL.into());
        }
        let file_system = this.file_system.get(cx);
        let _names = file_system.tree.lock(cx);
        let group = self.group(cx).map_err(|_| Errno::ENOENT)?;
        if files().any(|(_, entry)| entry.name.as_bytes() == name && entry.is_in(&group, cx)) {
            return Err(Errno::EEXIST.into());
        }
        let mut made = None;
        cgroup::lock_tree(cx).make(&group, name, process::new_members(), cx, |child| {
            let metadata = Metadata::new(FileKind::Directory, what.permissions).owned_by(what.uid, what.gid);
            let ops = Box::new(Directory::new(child.downgrade(), (what.uid, what.gid)));
            let dentry = Dentry::new(this, name);
            let inode = StrongRc::new(Inode::new(this.file_system.share(), number(child), metadata, dentry, ops));
            made = Some(inode.downgrade());
            *child.directory.lock(cx) = Some(Box::new(inode));
        })?;
        change_links(this, 1, cx);
        Ok(made.ok_or(Errno::ENOENT)?.upgrade(cx)?)
    }

    fn remove_directory(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let Named { directory: this, name, .. } = *at;
        let file_system = this.file_system.get(cx);
        let _names = file_system.tree.lock(cx);
        let group = self.group(cx).map_err(|_| Errno::ENOENT)?;
        let child = group.child(name, cx).ok_or(Errno::ESTALE)?;
        let inode = directory_of(&child, cx).ok_or(Errno::ESTALE)?;
        at.check(Some(&inode))?;
        cgroup::lock_tree(cx).remove(&child, cx)?;
        inode.change(cx, |metadata| metadata.links = 0);
        inode.dentry.lock(cx).is_removed = true;
        change_links(this, -1, cx);
        let directory = child.directory.lock(cx).take();
        drop(directory);
        Ok(())
    }
}

fn change_links(directory: &Inode, difference: i32, cx: &Cx) {
    directory.change(cx, |metadata| {
        metadata.links = metadata.links.saturating_add_signed(difference);
        (metadata.modified, metadata.changed) = (Timestamp::now(), Timestamp::now());
    });
}

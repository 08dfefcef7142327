//! What changes names: making, linking, removing and renaming.

use crate::blocks::Blocks;
use crate::dir::{Found, check_name};
use crate::error::{Error, Result};
use crate::inode::{Inode, Kind};
use crate::inode_alloc::NewInode;
use crate::superblock::feature;
use crate::transaction::Transaction;

/// The most names of an inode; a directory with more subdirectories says 1 (dir_nlink).
const LINKS_MAX: u16 = 65_000;
/// How deep a directory can lie, for finding that one is moved into itself.
const DEPTH_MAX: u32 = 1 << 16;

/// What a rename does about a name that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// It is replaced.
    Replace,
    /// Then nothing is done (`Exists`).
    NoReplace,
    /// The two change places; it must be there.
    Exchange,
}

impl<B: Blocks> Transaction<'_, B> {
    /// Reads a directory that names can be entered in or removed from.
    fn live_dir(&self, number: u32) -> Result<Inode> {
        let dir = self.fs().inode(self, number)?;
        if !dir.is_dir() {
            return Err(Error::NotDirectory);
        }
        if dir.links() == 0 { Err(Error::NotFound) } else { Ok(dir) }
    }

    fn touch(&mut self, dir: &mut Inode) -> Result<()> {
        dir.set_mtime(self.now());
        dir.set_ctime(self.now());
        self.put_inode(dir)
    }

    fn add_link(&self, inode: &mut Inode) -> Result<()> {
        let many = self.fs().superblock().has_ro(feature::DIR_NLINK) && inode.is_dir();
        match inode.links() {
            1 if inode.is_dir() => {}
            links if links < LINKS_MAX => inode.set_links(links + 1),
            _ if many => inode.set_links(1),
            _ => return Err(Error::TooManyLinks),
        }
        Ok(())
    }

    /// A directory has lost a subdirectory.
    fn lose_subdirectory(&self, dir: &mut Inode) {
        if dir.links() > 2 {
            dir.set_links(dir.links() - 1);
        }
    }

    /// Makes a file, directory, device, pipe or socket.
    ///
    /// # Errors
    /// `Exists`, `NotDirectory`, `NotFound` (the directory was removed), `NameTooLong`, `Invalid`, `TooManyLinks`, `NoSpace`, `CommitFirst`, `Corrupt`,
    /// `Absent`.
    pub fn create(&mut self, dir: u32, name: &[u8], new: &NewInode) -> Result<Inode> {
        check_name(name)?;
        let mut dir = self.live_dir(dir)?;
        self.must_be_free(&dir, name)?;
        let mut inode = self.take_inode(&dir, new)?;
        if inode.is_dir() {
            self.start_dir(&mut inode, dir.number())?;
            inode.set_links(2);
            self.add_link(&mut dir)?;
        } else {
            inode.set_links(1);
        }
        self.put_inode(&inode)?;
        self.add_entry(&mut dir, name, inode.number(), inode.kind())?;
        self.touch(&mut dir)?;
        Ok(inode)
    }

    fn must_be_free(&self, dir: &Inode, name: &[u8]) -> Result<()> {
        match self.fs().find(self, dir, name) {
            Ok(_) => Err(Error::Exists),
            Err(Error::NotFound) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Makes a file without a name (O_TMPFILE), in the directory's group. It goes away when the caller deletes it, or at the next mount.
    pub fn create_unnamed(&mut self, dir: u32, new: &NewInode) -> Result<Inode> {
        let dir = self.live_dir(dir)?;
        if Kind::of_mode(new.mode) == Some(Kind::Directory) {
            return Err(Error::Invalid);
        }
        let mut inode = self.take_inode(&dir, new)?;
        self.put_inode(&inode)?;
        self.add_orphan(&mut inode)?;
        Ok(inode)
    }

    /// Gives an inode one more name.
    ///
    /// # Errors
    /// As [`create`](Self::create); `IsDirectory`.
    pub fn link(&mut self, number: u32, dir: u32, name: &[u8]) -> Result<Inode> {
        check_name(name)?;
        let mut dir = self.live_dir(dir)?;
        let mut inode = self.fs().inode(self, number)?;
        if inode.is_dir() {
            return Err(Error::IsDirectory);
        }
        self.must_be_free(&dir, name)?;
        if inode.links() == 0 {
            self.remove_orphan(&mut inode)?;
        }
        self.add_link(&mut inode)?;
        inode.set_ctime(self.now());
        self.put_inode(&inode)?;
        self.add_entry(&mut dir, name, number, inode.kind())?;
        self.touch(&mut dir)?;
        Ok(inode)
    }

    /// Removes a name of something that is not a directory. An inode that has no name left is on the list of orphans: the caller
    /// deletes it ([`delete_step`](Self::delete_step)) when nobody uses it.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`, `NotDirectory`, `Corrupt`, `Absent`.
    pub fn unlink(&mut self, dir: u32, name: &[u8]) -> Result<Inode> {
        let mut dir = self.live_dir(dir)?;
        let found = self.fs().find(self, &dir, name)?;
        let mut inode = self.fs().inode(self, found.inode).map_err(dangling)?;
        if inode.is_dir() {
            return Err(Error::IsDirectory);
        }
        self.remove_entry(&dir, &found)?;
        self.touch(&mut dir)?;
        self.lose_name(&mut inode)?;
        Ok(inode)
    }

    /// Takes one name from an inode.
    fn lose_name(&mut self, inode: &mut Inode) -> Result<()> {
        let left = inode.links().checked_sub(1).ok_or(Error::Corrupt("number of names"))?;
        inode.set_links(left);
        inode.set_ctime(self.now());
        if left == 0 { self.add_orphan(inode) } else { self.put_inode(inode) }
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotEmpty`, `NotFound`, `NotDirectory`, `Invalid` (`.` and `..`), `Corrupt`, `Absent`.
    pub fn rmdir(&mut self, dir: u32, name: &[u8]) -> Result<Inode> {
        if matches!(name, b"." | b"..") {
            return Err(Error::Invalid);
        }
        let mut dir = self.live_dir(dir)?;
        let found = self.fs().find(self, &dir, name)?;
        let mut inode = self.fs().inode(self, found.inode).map_err(dangling)?;
        if !inode.is_dir() {
            return Err(Error::NotDirectory);
        }
        if inode.number() == dir.number() || inode.number() == self.fs().root() {
            return Err(Error::Corrupt("directory in itself"));
        }
        if !self.fs().is_empty(self, &inode)? {
            return Err(Error::NotEmpty);
        }
        self.remove_entry(&dir, &found)?;
        self.lose_subdirectory(&mut dir);
        self.touch(&mut dir)?;
        self.lose_directory(&mut inode)?;
        Ok(inode)
    }

    /// A directory has lost its only name.
    fn lose_directory(&mut self, inode: &mut Inode) -> Result<()> {
        inode.set_links(0);
        inode.set_ctime(self.now());
        self.add_orphan(inode)
    }

    /// Renames. What was replaced is returned, if it has no name any more; it is on the list of orphans.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `NotEmpty`, `IsDirectory`, `NotDirectory`, `TooManyLinks`, `Invalid` (a directory into itself), `NameTooLong`, `NoSpace`, `CommitFirst`,
    /// `Corrupt`, `Absent`.
    pub fn rename(&mut self, from: u32, old: &[u8], to: u32, new: &[u8], how: Rename) -> Result<Option<Inode>> {
        check_name(old)?;
        check_name(new)?;
        let fs = self.fs();
        let (from_dir, to_dir) = (self.live_dir(from)?, self.live_dir(to)?);
        let source = fs.find(self, &from_dir, old)?;
        let target = match fs.find(self, &to_dir, new) {
            Ok(found) => Some(found),
            Err(Error::NotFound) => None,
            Err(other) => return Err(other),
        };
        let moved = fs.inode(self, source.inode).map_err(dangling)?;
        if moved.is_dir() && from != to {
            self.must_not_be_above(&moved, to)?;
        }
        match (target, how) {
            (None, Rename::Exchange) => Err(Error::NotFound),
            (Some(_), Rename::NoReplace) => Err(Error::Exists),
            (Some(target), _) if target.inode == source.inode => Ok(None),
            (Some(target), Rename::Exchange) => self.exchange((from, source), (to, target)).map(|()| None),
            (Some(target), Rename::Replace) => self.replace((from, source), (to, target)).map(Some).map(nameless),
            (None, _) => self.move_name((from, source, old), (to, new)).map(|()| None),
        }
    }

    /// Fails if the directory `dir` is `above` or lies in it.
    fn must_not_be_above(&self, above: &Inode, dir: u32) -> Result<()> {
        let mut at = dir;
        for _ in 0..DEPTH_MAX {
            if at == above.number() {
                return Err(Error::Invalid);
            }
            if at == self.fs().root() {
                return Ok(());
            }
            let inode = self.fs().inode(self, at).map_err(dangling)?;
            at = self.fs().lookup(self, &inode, b"..").map_err(dangling)?;
        }
        Err(Error::Corrupt("parents of a directory"))
    }

    /// Lets a directory that has moved name its new parent, and counts it there.
    fn change_parent(&mut self, moved: &mut Inode, from: u32, to: u32) -> Result<()> {
        if !moved.is_dir() || from == to {
            return Ok(());
        }
        let dots = self.fs().find(self, moved, b"..").map_err(dangling)?;
        self.change_entry(moved, &dots, to, Some(Kind::Directory))?;
        let mut old = self.fs().inode(self, from)?;
        self.lose_subdirectory(&mut old);
        self.put_inode(&old)?;
        let mut new = self.fs().inode(self, to)?;
        self.add_link(&mut new)?;
        self.put_inode(&new)
    }

    fn touch_all(&mut self, dirs: [u32; 2], moved: u32) -> Result<()> {
        for dir in dirs {
            let mut dir = self.fs().inode(self, dir)?;
            self.touch(&mut dir)?;
        }
        let mut moved = self.fs().inode(self, moved)?;
        moved.set_ctime(self.now());
        self.put_inode(&moved)
    }

    fn move_name(&mut self, (from, source, old): (u32, Found, &[u8]), (to, new): (u32, &[u8])) -> Result<()> {
        let fs = self.fs();
        let mut moved = fs.inode(self, source.inode)?;
        let mut to_dir = fs.inode(self, to)?;
        self.add_entry(&mut to_dir, new, source.inode, moved.kind())?;
        self.put_inode(&to_dir)?;
        // The new entry may have split the block that the old one was in.
        let from_dir = fs.inode(self, from)?;
        let source = fs.find(self, &from_dir, old)?;
        self.remove_entry(&from_dir, &source)?;
        self.change_parent(&mut moved, from, to)?;
        self.touch_all([from, to], moved.number())
    }

    fn replace(&mut self, (from, source): (u32, Found), (to, target): (u32, Found)) -> Result<Inode> {
        let fs = self.fs();
        let mut moved = fs.inode(self, source.inode)?;
        let mut gone = fs.inode(self, target.inode).map_err(dangling)?;
        match (moved.is_dir(), gone.is_dir()) {
            (true, false) => return Err(Error::NotDirectory),
            (false, true) => return Err(Error::IsDirectory),
            (true, true) if gone.number() == from || !fs.is_empty(self, &gone)? => return Err(Error::NotEmpty),
            (true, true) if gone.number() == to || gone.number() == fs.root() => {
                return Err(Error::Corrupt("directory in itself"));
            }
            _ => {}
        }
        let to_dir = fs.inode(self, to)?;
        self.change_entry(&to_dir, &target, source.inode, moved.kind())?;
        let from_dir = fs.inode(self, from)?;
        self.remove_entry(&from_dir, &source)?;
        if gone.is_dir() {
            let mut to_dir = fs.inode(self, to)?;
            self.lose_subdirectory(&mut to_dir);
            self.put_inode(&to_dir)?;
        }
        self.change_parent(&mut moved, from, to)?;
        self.touch_all([from, to], moved.number())?;
        if gone.is_dir() {
            self.lose_directory(&mut gone)?;
        } else {
            self.lose_name(&mut gone)?;
        }
        Ok(gone)
    }

    fn exchange(&mut self, (from, source): (u32, Found), (to, target): (u32, Found)) -> Result<()> {
        let fs = self.fs();
        let mut one = fs.inode(self, source.inode)?;
        let mut other = fs.inode(self, target.inode).map_err(dangling)?;
        if other.is_dir() && from != to {
            self.must_not_be_above(&other, from)?;
        }
        let from_dir = fs.inode(self, from)?;
        self.change_entry(&from_dir, &source, target.inode, other.kind())?;
        let to_dir = fs.inode(self, to)?;
        self.change_entry(&to_dir, &target, source.inode, one.kind())?;
        // A directory whose number of subdirectories is full would not take one before it has lost one.
        if from != to && one.is_dir() && other.is_dir() {
            for (moved, parent) in [(&one, to), (&other, from)] {
                let dots = fs.find(self, moved, b"..").map_err(dangling)?;
                self.change_entry(moved, &dots, parent, Some(Kind::Directory))?;
            }
        } else {
            self.change_parent(&mut one, from, to)?;
            self.change_parent(&mut other, to, from)?;
        }
        self.touch_all([from, to], source.inode)?;
        let mut other = fs.inode(self, target.inode)?;
        other.set_ctime(self.now());
        self.put_inode(&other)
    }
}

/// A name of what is not there: the directory is wrong.
fn dangling(error: Error) -> Error {
    if error == Error::NotFound { Error::Corrupt("name without an inode") } else { error }
}

fn nameless(inode: Option<Inode>) -> Option<Inode> {
    inode.filter(|inode| inode.links() == 0)
}

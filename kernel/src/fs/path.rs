//! [`Path`]: a place in the tree that the mounts make up; [`Location`], one that is kept.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{StrongRc, TempRc};

use super::mount::{MayWrite, Mount};
use super::mount_table::MOUNTS;
use super::mount_use::MountUse;
use super::{FileKind, Inode};
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

/// A place in the tree: an inode, seen through a mount. Until the next suspension.
#[derive(Clone)]
pub struct Path<'cx> {
    /// Through which mount.
    pub mount: TempRc<'cx, Mount>,
    /// The inode.
    pub inode: TempRc<'cx, Inode>,
}

/// A place in the tree that is kept: by a description, as a working directory.
pub struct Location {
    /// Through which mount.
    pub mount: MountUse,
    /// The inode.
    pub inode: StrongRc<Inode>,
}

impl Location {
    /// The place, until the next suspension.
    #[inline(always)]
    pub fn path<'cx>(&self, cx: &'cx Cx) -> Result<Path<'cx>> {
        Ok(Path { mount: self.mount.get(cx), inode: self.inode.get(cx) })
    }

    /// Whether it takes nothing along that anybody would miss if its owner is given up a little later than it could be: a file without names goes with its last description, and a mount
    /// that is in no tree with its last user.
    pub fn stays(&self) -> bool {
        let has_names =
            |inode: &Inode| matches!(inode.kind, FileKind::Regular | FileKind::Directory) && inode.has_names();
        self.inode.with(has_names) && self.mount.with(Mount::is_attached)
    }

    /// One more description may write the file that is here, if it is a regular one.
    ///
    /// # Errors
    /// ETXTBSY while a program runs from it.
    pub fn begin_writing(&self, may_write: MayWrite<'_>, cx: &Cx) -> Result<()> {
        self.inode.get(cx).begin_writing()?;
        self.mount.get(cx).begin_writing(may_write);
        Ok(())
    }

    /// One description less may write it.
    pub fn end_writing(&self) {
        let is_regular = self.inode.with(|inode| {
            let is_regular = inode.kind == FileKind::Regular;
            if is_regular {
                inode.end_writing();
            }
            is_regular
        });
        if is_regular {
            self.mount.with(Mount::end_writing);
        }
    }

    /// Kept once more.
    pub fn share(&self) -> Location {
        Location { mount: self.mount.share(), inode: self.inode.share() }
    }
}

impl<'cx> Path<'cx> {
    /// The place, to be kept.
    ///
    /// # Errors
    /// ENOENT if it was removed meanwhile.
    #[inline(always)]
    pub fn keep(&self) -> Result<Location> {
        match (MountUse::of(&self.mount), self.inode.share()) {
            (Some(mount), Some(inode)) => Ok(Location { mount, inode }),
            _ => Err(Errno::ENOENT),
        }
    }

    /// As [`keep`](Self::keep), in a step that has just walked there.
    ///
    /// # Errors
    /// `Again` if it was removed since, on another core: another file may be in its place.
    #[inline(always)]
    pub fn keep_in_step(&self) -> Step<Location> {
        self.keep().map_err(|_| Stop::Again)
    }

    /// Whether both are the same place.
    pub fn is(&self, other: &Path<'_>) -> bool {
        self.mount.id == other.mount.id && self.inode.downgrade() == other.inode.downgrade()
    }

    /// Whether it is below another place, or that itself, across mounts.
    pub fn is_reachable(&self, from: &Path<'_>, cx: &Cx) -> bool {
        let mut at = self.clone();
        while at.mount.id != from.mount.id {
            let Some(point) = at.mount.point(cx) else { return false };
            at = Path { mount: point.mount, inode: point.inode };
        }
        Inode::is_within(&at.inode, &from.inode, cx)
    }

    /// Whether it is where its mount begins.
    pub fn is_root_of_mount(&self) -> bool {
        self.inode.downgrade() == self.mount.root.downgrade()
    }

    /// What is mounted here, topmost; itself if nothing is.
    #[inline(always)]
    pub fn mounted(self, cx: &'cx Cx) -> Result<Path<'cx>> {
        Ok(if self.inode.mounts.load(Ordering::Relaxed) == 0 { self } else { MOUNTS.topmost(self, cx) })
    }

    /// The directory above, across mounts but not above `root`; itself at the top.
    pub fn parent(mut self, root: &Path<'_>, cx: &'cx Cx) -> Result<Path<'cx>> {
        loop {
            if self.is(root) {
                return Ok(self);
            }
            if self.inode.downgrade() != self.mount.root.downgrade() {
                let inode = self.inode.parent(cx).ok_or(Errno::ENOENT)?;
                return Path { mount: self.mount, inode }.mounted(cx);
            }
            match self.mount.point(cx) {
                Some(point) => self = point,
                None => return Ok(self),
            }
        }
    }

    /// Its absolute name as seen from `root`, as getcwd(2) and `/proc` show it: with `(unreachable)` in front if it is outside, and
    /// ` (deleted)` behind if it has no name any more.
    ///
    /// # Errors
    /// ENAMETOOLONG beyond [`LONGEST_PATH`].
    pub fn name(&self, root: &Path<'_>, cx: &Cx) -> Result<Vec<u8>> {
        if let Some(name) = self.inode.ops.anonymous_name(&self.inode) {
            return Ok(name);
        }
        // From its end to its start.
        let mut name = Vec::with_capacity(64);
        let mut deleted = false;
        let mut at = self.clone();
        let reached = loop {
            if at.is(root) {
                break true;
            }
            if at.inode.downgrade() == at.mount.root.downgrade() {
                match at.mount.point(cx) {
                    Some(point) => at = point,
                    None => {
                        break root.mount.point(cx).is_none() && root.inode.downgrade() == root.mount.root.downgrade();
                    }
                }
                continue;
            }
            let parent = {
                let dentry = at.inode.dentry.lock(cx);
                deleted |= dentry.is_removed;
                if name.len() + dentry.name.len() >= LONGEST_PATH {
                    return Err(Errno::ENAMETOOLONG);
                }
                name.extend(dentry.name.iter().rev());
                name.push(b'/');
                dentry.parent
            };
            match parent.and_then(|parent| parent.upgrade(cx).ok()) {
                Some(parent) => at.inode = parent,
                None => {
                    deleted = true;
                    break true;
                }
            }
        };
        if name.is_empty() {
            name.push(b'/');
        }
        if !reached {
            name.extend(UNREACHABLE.iter().rev());
        }
        name.reverse();
        if deleted {
            name.extend_from_slice(b" (deleted)");
        }
        Ok(name)
    }
}

/// What the name of a place begins with that is out of reach.
pub const UNREACHABLE: &[u8] = b"(unreachable)";

/// The longest name of a place in the tree (PATH_MAX).
const LONGEST_PATH: usize = 4096;

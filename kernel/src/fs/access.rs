//! Who may do what to a file: path_resolution(7), "Permissions"; inode(7), the sticky bit.

use bitflags::bitflags;
use frame::Cx;

use super::{FileKind, Inode};
use crate::current::Current;
use crate::error::{Errno, Result};

bitflags! {
    /// What is to be done, in the bits of access(2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Want: u32 {
        /// Execute a file, search a directory.
        const EXECUTE = 1;
        /// Write.
        const WRITE = 2;
        /// Read.
        const READ = 4;
    }
}

/// For whom permissions are checked.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The user; 0 may do everything.
    pub uid: u32,
    /// The group; the thread's supplementary groups count as well.
    pub gid: u32,
}

impl Subject {
    /// The calling thread's file-system ids: for all calls but access(2).
    #[inline]
    pub fn of(me: &Current, cx: &Cx) -> Result<Subject> {
        let thread = me.thread(cx)?;
        let credentials = thread.credentials.lock(cx);
        Ok(Subject { uid: credentials.fsuid, gid: credentials.fsgid })
    }

    /// The calling thread's real ids: for access(2).
    pub fn real(me: &Current, cx: &Cx) -> Result<Subject> {
        let thread = me.thread(cx)?;
        let credentials = thread.credentials.lock(cx);
        Ok(Subject { uid: credentials.uid, gid: credentials.gid })
    }

    /// Whether it may do what only the superuser may.
    #[inline(always)]
    pub fn is_privileged(&self) -> bool {
        self.uid == 0
    }

    /// Whether it is in the group.
    pub fn is_in(&self, gid: u32, me: &Current, cx: &Cx) -> bool {
        self.gid == gid || me.thread(cx).is_ok_and(|thread| thread.credentials.lock(cx).groups.contains(&gid))
    }

    /// Whether it owns the file or may act as if.
    pub fn owns(&self, inode: &Inode, cx: &Cx) -> bool {
        self.is_privileged() || inode.access_bits(cx).1 == self.uid
    }

    /// Checks the permission bits of a file.
    ///
    /// # Errors
    /// EACCES.
    #[inline]
    pub fn check(&self, inode: &Inode, want: Want, me: &Current, cx: &Cx) -> Result<()> {
        if self.is_privileged() && (inode.kind == FileKind::Directory || !want.contains(Want::EXECUTE)) {
            return Ok(());
        }
        self.check_bits(inode, want, me, cx)
    }

    fn check_bits(&self, inode: &Inode, want: Want, me: &Current, cx: &Cx) -> Result<()> {
        let metadata = inode.metadata(cx);
        let granted = if self.is_privileged() {
            // Only executing is left to ask, and any of the three bits will do.
            if metadata.mode & 0o111 != 0 { 7 } else { 6 }
        } else if metadata.uid == self.uid {
            metadata.mode >> 6
        } else if self.is_in(metadata.gid, me, cx) {
            metadata.mode >> 3
        } else {
            metadata.mode
        };
        if want.bits() & !granted == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Checks that the name of `victim` may be taken out of `directory`.
    ///
    /// # Errors
    /// EACCES; EPERM by the sticky bit.
    pub fn check_removal(&self, directory: &Inode, victim: &Inode, me: &Current, cx: &Cx) -> Result<()> {
        self.check(directory, Want::WRITE | Want::EXECUTE, me, cx)?;
        let (mode, owner, _) = directory.access_bits(cx);
        let is_sticky = mode & linux_raw_sys::general::S_ISVTX != 0;
        if is_sticky && !self.is_privileged() && owner != self.uid && !self.owns(victim, cx) {
            return Err(Errno::EPERM);
        }
        Ok(())
    }
}

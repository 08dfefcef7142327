//! Who may do what to a file: path_resolution(7), "Permissions"; inode(7), the sticky bit.

use bitflags::bitflags;
use frame::Cx;
use refs::SpinLock;

use super::{FileKind, Inode, InodeFlags, VfsCaller, acl};
use crate::credentials::{Capability, CapabilitySet, Credentials, Gid, Uid};
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
#[derive(Clone, Copy)]
pub struct Subject<'cx> {
    /// The user.
    pub uid: Uid,
    /// The group; the thread's supplementary groups count as well.
    pub gid: Gid,
    capabilities: CapabilitySet,
    /// Where the supplementary groups are.
    credentials: &'cx SpinLock<Credentials>,
}

impl<'cx> Subject<'cx> {
    /// The calling thread's file-system ids: for all calls but access(2).
    #[inline]
    pub fn of(me: &(impl VfsCaller + ?Sized), cx: &'cx Cx) -> Result<Self> {
        Ok(Self::acting_for(me.credentials(cx)?, cx))
    }

    /// The file-system ids of somebody, such as who has opened a file.
    #[inline]
    pub fn acting_for(credentials: &'cx SpinLock<Credentials>, cx: &Cx) -> Self {
        let now = credentials.lock(cx);
        Subject {
            uid: now.users().file_system,
            gid: now.groups().file_system,
            capabilities: now.capabilities().effective,
            credentials,
        }
    }

    /// The calling thread's real ids: for access(2).
    pub fn real(me: &(impl VfsCaller + ?Sized), cx: &'cx Cx) -> Result<Self> {
        let credentials = me.credentials(cx)?;
        let (uid, gid, capabilities) = credentials.lock(cx).as_real();
        Ok(Subject { uid, gid, capabilities, credentials })
    }

    /// Whether it has a capability.
    #[inline(always)]
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(capability)
    }

    /// Whether it is the user who has that id.
    pub fn is_user(&self, uid: u32) -> bool {
        self.uid == Uid::new(uid)
    }

    /// Whether it is in the group.
    pub fn is_in(&self, gid: u32, cx: &Cx) -> bool {
        self.gid == Gid::new(gid) || self.credentials.lock(cx).supplementary().contains(&gid)
    }

    /// Whether it owns the file or may act as if.
    pub fn owns(&self, inode: &Inode, cx: &Cx) -> bool {
        self.is_user(inode.access_bits(cx).1) || self.has(Capability::Fowner)
    }

    /// Checks the permission bits of a file.
    ///
    /// # Errors
    /// EACCES; EPERM: it is to be written and immutable.
    #[inline]
    pub fn check(&self, inode: &Inode, want: Want, cx: &Cx) -> Result<()> {
        if want.contains(Want::WRITE) {
            inode.check_not(InodeFlags::IMMUTABLE)?;
        }
        if self.has(Capability::DacOverride) && (inode.kind == FileKind::Directory || !want.contains(Want::EXECUTE)) {
            return Ok(());
        }
        self.check_bits(inode, want, cx)
    }

    fn check_bits(&self, inode: &Inode, want: Want, cx: &Cx) -> Result<()> {
        let metadata = inode.metadata(cx);
        let granted = if self.is_user(metadata.uid) {
            metadata.mode >> 6
        } else if let Some(permits) = acl::permits(inode, self, &metadata, want, cx)? {
            if permits { want.bits() } else { 0 }
        } else if self.is_in(metadata.gid, cx) {
            metadata.mode >> 3
        } else {
            metadata.mode
        };
        let may = want.bits() & !granted == 0
            || self.overrides(inode.kind, metadata.mode, want)
            || inode.ops.admits(self.credentials.lock(cx).process(), cx);
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Whether a capability makes up for permission bits that do not grant it.
    fn overrides(&self, kind: FileKind, mode: u32, want: Want) -> bool {
        let reads = match kind {
            FileKind::Directory => !want.contains(Want::WRITE),
            _ => want == Want::READ,
        };
        // What nobody may execute is no program.
        let may_be_executed = kind == FileKind::Directory || mode & 0o111 != 0;
        (reads && self.has(Capability::DacReadSearch))
            || ((may_be_executed || !want.contains(Want::EXECUTE)) && self.has(Capability::DacOverride))
    }

    /// Checks that the name of `victim` may be taken out of `directory`.
    ///
    /// # Errors
    /// EACCES; EPERM by the sticky bit, or where one of the two may not be changed so.
    pub fn check_removal(&self, directory: &Inode, victim: &Inode, cx: &Cx) -> Result<()> {
        self.check(directory, Want::WRITE | Want::EXECUTE, cx)?;
        directory.check_not(InodeFlags::APPEND)?;
        victim.check_not(InodeFlags::FIXED)?;
        let (mode, owner, _) = directory.access_bits(cx);
        let is_sticky = mode & linux_raw_sys::general::S_ISVTX != 0;
        if is_sticky && !self.is_user(owner) && !self.owns(victim, cx) {
            return Err(Errno::EPERM);
        }
        Ok(())
    }
}

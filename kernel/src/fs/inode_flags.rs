//! [`InodeFlags`]: immutable, append-only and their like; see ioctl_iflags(2).

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;

use super::access::Subject;
use super::{FileKind, Inode, Mount, Timestamp, VfsCaller};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::step::Step;

bitflags! {
    /// Attributes of an inode beside its mode, in the bits of FS_IOC_SETFLAGS and statx(2): see ioctl_iflags(2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InodeFlags: u8 {
        /// Nothing of it can be changed, nor its names.
        const IMMUTABLE = abi::STATX_ATTR_IMMUTABLE as u8;
        /// It can be written at the end only; a directory's names cannot be taken away.
        const APPEND = abi::STATX_ATTR_APPEND as u8;
        /// Backups leave it out.
        const NO_DUMP = abi::STATX_ATTR_NODUMP as u8;
        /// Nobody wants to know when it was read.
        const NO_ATIME = 0x80;
    }
}

impl InodeFlags {
    /// What keeps all but its content as it is.
    pub const FIXED: InodeFlags = InodeFlags::IMMUTABLE.union(InodeFlags::APPEND);
    /// What statx(2) tells.
    pub const IN_STATX: InodeFlags = InodeFlags::FIXED.union(InodeFlags::NO_DUMP);
    /// What a new inode takes over from its directory.
    pub const INHERITED: InodeFlags = InodeFlags::NO_DUMP.union(InodeFlags::NO_ATIME);

    /// Those among the FS_*_FL of FS_IOC_GETFLAGS.
    pub fn of_bits(bits: u32) -> Self {
        FLAGS.iter().filter(|(bit, _)| bits & bit != 0).fold(Self::empty(), |all, (_, flag)| all | *flag)
    }

    /// As FS_IOC_GETFLAGS has them.
    pub fn to_bits(self) -> u32 {
        FLAGS.iter().filter(|(_, flag)| self.contains(*flag)).fold(0, |all, (bit, _)| all | bit)
    }
}

/// Which FS_*_FL of FS_IOC_SETFLAGS is which flag.
const FLAGS: [(u32, InodeFlags); 4] = [
    (abi::FS_IMMUTABLE_FL, InodeFlags::IMMUTABLE),
    (abi::FS_APPEND_FL, InodeFlags::APPEND),
    (abi::FS_NODUMP_FL, InodeFlags::NO_DUMP),
    (abi::FS_NOATIME_FL, InodeFlags::NO_ATIME),
];

/// FS_IOC_GETFLAGS: the attributes of a regular file or directory beside its mode.
///
/// # Errors
/// ENOTTY: it has none.
pub fn get(inode: &Inode) -> Result<u32> {
    if !inode.ops.has_flags() || !matches!(inode.kind, FileKind::Regular | FileKind::Directory) {
        return Err(Errno::ENOTTY);
    }
    Ok(inode.flags().to_bits())
}

/// FS_IOC_SETFLAGS.
///
/// # Errors
/// ENOTTY: it has none. EPERM: it is another's, or what makes it immutable or append-only is changed without CAP_LINUX_IMMUTABLE. EOPNOTSUPP: there are
/// no such attributes. EROFS.
pub fn set(mount: &Mount, inode: &TempRc<'_, Inode>, bits: u32, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    mount.check_writable(cx)?;
    get(inode)?;
    let subject = Subject::of(me, cx)?;
    if !subject.owns(inode, cx) {
        return Err(Errno::EPERM.into());
    }
    let flags = InodeFlags::of_bits(bits);
    if (flags ^ inode.flags()).intersects(InodeFlags::FIXED) && !subject.has(Capability::LinuxImmutable) {
        return Err(Errno::EPERM.into());
    }
    if bits & !InodeFlags::all().to_bits() != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if let Some(real) = inode.ops.real_to_change(inode, Some(me), cx)? {
        real.set_flags(flags);
    }
    inode.set_flags(flags);
    Inode::change_where_kept(inode, me, cx, |metadata| metadata.changed = Timestamp::now())
}

//! [`MountFlags`]: what a mount does not allow, as each of the calls about mounts says it.

use bitflags::bitflags;
use linux_raw_sys::general;

use crate::error::{Errno, Result};

bitflags! {
    /// What a mount does not allow: see mount(2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MountFlags: u32 {
        /// MS_RDONLY.
        const READ_ONLY = general::MS_RDONLY;
        /// MS_NOSUID.
        const NO_SUID = general::MS_NOSUID;
        /// MS_NODEV.
        const NO_DEVICES = general::MS_NODEV;
        /// MS_NOEXEC.
        const NO_EXEC = general::MS_NOEXEC;
        /// MS_NOATIME.
        const NO_ATIME = general::MS_NOATIME;
        /// MS_NODIRATIME.
        const NO_DIRECTORY_ATIME = general::MS_NODIRATIME;
        /// MS_RELATIME.
        const RELATIVE_ATIME = general::MS_RELATIME;
        /// MS_NOSYMFOLLOW.
        const NO_SYMLINK_FOLLOW = general::MS_NOSYMFOLLOW;
    }
}

impl MountFlags {
    const ACCESS_TIMES: Self = Self::NO_ATIME.union(Self::NO_DIRECTORY_ATIME).union(Self::RELATIVE_ATIME);

    /// What mount(2) makes of its flags: access times are kept as `relatime` says unless it is told otherwise.
    pub fn of_mount(flags: u32) -> Self {
        let mut own = Self::from_bits_truncate(flags);
        own.set(Self::RELATIVE_ATIME, flags & (general::MS_NOATIME | general::MS_STRICTATIME) == 0);
        if flags & general::MS_STRICTATIME != 0 {
            own -= Self::NO_ATIME;
        }
        own
    }

    /// What mount(2) with MS_REMOUNT makes of them: access times stay as they are kept unless it is told otherwise.
    pub fn remounted(self, flags: u32) -> Self {
        let given = general::MS_NOATIME | general::MS_NODIRATIME | general::MS_RELATIME | general::MS_STRICTATIME;
        let new = Self::of_mount(flags);
        if flags & given == 0 { (new - Self::ACCESS_TIMES) | (self & Self::ACCESS_TIMES) } else { new }
    }

    /// What the attributes of fsmount(2) say (`MOUNT_ATTR_*`).
    ///
    /// # Errors
    /// EINVAL: some that are not known, or several ways to keep access times.
    pub fn of_attributes(attributes: u32) -> Result<Self> {
        let known = ATTRIBUTES.iter().fold(general::MOUNT_ATTR__ATIME, |known, (_, attribute)| known | attribute);
        if attributes & !known != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(Self::plain(attributes) | Self::access_times(attributes)?)
    }

    /// Those that have an attribute of their own.
    fn plain(attributes: u32) -> Self {
        let chosen = ATTRIBUTES.iter().filter(|(_, attribute)| attributes & attribute != 0);
        chosen.fold(Self::empty(), |flags, (flag, _)| flags | *flag)
    }

    /// How access times are kept (`MOUNT_ATTR__ATIME`).
    fn access_times(attributes: u32) -> Result<Self> {
        match attributes & general::MOUNT_ATTR__ATIME {
            general::MOUNT_ATTR_RELATIME => Ok(Self::RELATIVE_ATIME),
            general::MOUNT_ATTR_NOATIME => Ok(Self::NO_ATIME),
            general::MOUNT_ATTR_STRICTATIME => Ok(Self::empty()),
            _ => Err(Errno::EINVAL),
        }
    }

    /// As attributes, for statmount(2).
    pub fn attributes(self) -> u32 {
        let access_times = if self.contains(Self::NO_ATIME) {
            general::MOUNT_ATTR_NOATIME
        } else if self.contains(Self::RELATIVE_ATIME) {
            general::MOUNT_ATTR_RELATIME
        } else {
            general::MOUNT_ATTR_STRICTATIME
        };
        let own = ATTRIBUTES.iter().filter(|(flag, _)| self.contains(*flag));
        own.fold(access_times, |attributes, (_, attribute)| attributes | attribute)
    }
}

/// The flags that are one attribute each.
const ATTRIBUTES: [(MountFlags, u32); 6] = [
    (MountFlags::READ_ONLY, general::MOUNT_ATTR_RDONLY),
    (MountFlags::NO_SUID, general::MOUNT_ATTR_NOSUID),
    (MountFlags::NO_DEVICES, general::MOUNT_ATTR_NODEV),
    (MountFlags::NO_EXEC, general::MOUNT_ATTR_NOEXEC),
    (MountFlags::NO_DIRECTORY_ATIME, general::MOUNT_ATTR_NODIRATIME),
    (MountFlags::NO_SYMLINK_FOLLOW, general::MOUNT_ATTR_NOSYMFOLLOW),
];

/// What mount_setattr(2) changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagChange {
    set: MountFlags,
    clear: MountFlags,
}

impl FlagChange {
    /// The attributes that it sets, and those that it clears first.
    ///
    /// # Errors
    /// EINVAL: some that are not known; a way to keep access times without all being cleared, or several.
    pub fn of_attributes(set: u32, clear: u32) -> Result<Self> {
        let changes_times = clear & general::MOUNT_ATTR__ATIME != 0;
        if changes_times != (clear & general::MOUNT_ATTR__ATIME == general::MOUNT_ATTR__ATIME)
            || (!changes_times && set & general::MOUNT_ATTR__ATIME != 0)
        {
            return Err(Errno::EINVAL);
        }
        let times = MountFlags::NO_ATIME | MountFlags::RELATIVE_ATIME;
        let all_set = MountFlags::of_attributes(set)?;
        MountFlags::of_attributes(clear & !general::MOUNT_ATTR__ATIME)?;
        let cleared = MountFlags::plain(clear);
        Ok(match changes_times {
            true => FlagChange { set: all_set, clear: cleared | times },
            false => FlagChange { set: all_set - times, clear: cleared },
        })
    }

    /// What becomes of a mount's flags.
    pub fn apply(self, flags: MountFlags) -> MountFlags {
        (flags - self.clear) | self.set
    }
}

//! Mounts.
//!
//! A [`FileSystem`] is an instance (of tmpfs, of procfs); a [`Mount`] shows a subtree of one at a directory; a [`Path`] is an inode seen
//! through a mount. There is one mount namespace: [`MOUNTS`].
//!
//! A mount is busy as long as anybody but the table owns it: a description opened through it, a working directory. Its mount point
//! is named weakly, and cannot be removed while [`Inode::mounts`](super::Inode) is not 0.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general;
use refs::{Dying, SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::mount_use::give_up_spare;
use super::{FileKind, FileSystem, Inode, Path};
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
}

/// A subtree of a file system, shown at a directory.
pub struct Mount {
    /// Its number in `/proc/PID/mountinfo`.
    pub id: u32,
    /// The file system.
    pub file_system: StrongRc<FileSystem>,
    /// The directory (or, of a bind mount, the file) that stands in for the mount point.
    pub root: StrongRc<Inode>,
    /// What was given as the source, for `/proc/mounts`.
    pub source: Vec<u8>,
    flags: AtomicU32,
    /// How many descriptions may write files through it.
    writers: AtomicU32,
    /// Nobody used it since umount2(2) was called with MNT_EXPIRE.
    is_expiring: AtomicBool,
    /// Whether it is in the table of mounts.
    is_attached: AtomicBool,
    /// Where it is mounted: the parent mount and the inode there; `None` for the root and for what is detached.
    point: SpinLock<Option<(WeakRc<Mount>, WeakRc<Inode>)>>,
}

impl Mount {
    /// A mount that is nowhere yet.
    pub fn new(file_system: StrongRc<FileSystem>, root: StrongRc<Inode>, source: Vec<u8>, flags: MountFlags) -> Self {
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        Mount {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            file_system,
            root,
            source,
            flags: AtomicU32::new(flags.bits()),
            writers: AtomicU32::new(0),
            is_expiring: AtomicBool::new(false),
            is_attached: AtomicBool::new(false),
            point: SpinLock::new(None),
        }
    }

    /// What it does not allow.
    #[inline(always)]
    pub fn flags(&self) -> MountFlags {
        MountFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Changes what it allows.
    ///
    /// # Errors
    /// EBUSY: nothing is to be written any more, and files are open for it.
    pub fn set_flags(&self, flags: MountFlags) -> Result<()> {
        if flags.contains(MountFlags::READ_ONLY) && self.writers.load(Ordering::Relaxed) > 0 {
            return Err(Errno::EBUSY);
        }
        self.flags.store(flags.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// One more description may write a file through it.
    pub(super) fn begin_writing(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// One description less may write a file through it.
    pub(super) fn end_writing(&self) {
        self.writers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that a file was read through it just now, if it keeps access times: see mount(8).
    #[inline]
    pub fn touch_accessed(&self, inode: &Inode, cx: &Cx) {
        let flags = self.flags();
        let keeps_none = flags.intersects(MountFlags::NO_ATIME | MountFlags::READ_ONLY)
            || (flags.contains(MountFlags::NO_DIRECTORY_ATIME) && inode.kind == FileKind::Directory);
        if !keeps_none {
            inode.touch_accessed(flags.contains(MountFlags::RELATIVE_ATIME), cx);
        }
    }

    /// A path led into it: it does not expire yet.
    pub fn is_used(&self) {
        self.is_expiring.store(false, Ordering::Relaxed);
    }

    /// Whether it is in the table of mounts.
    #[inline(always)]
    pub(super) fn is_attached(&self) -> bool {
        self.is_attached.load(Ordering::Relaxed)
    }

    /// Marks it as expiring; whether it was already, and nobody used it since (MNT_EXPIRE).
    pub fn has_expired(&self) -> bool {
        self.is_expiring.swap(true, Ordering::Relaxed)
    }

    /// Whether nothing may be changed through it.
    ///
    /// # Errors
    /// EROFS.
    #[inline(always)]
    pub fn check_writable(&self) -> Result<()> {
        if self.flags().contains(MountFlags::READ_ONLY) { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// Where it is mounted; `None` for the root.
    pub fn point<'cx>(&self, cx: &'cx Cx) -> Option<Path<'cx>> {
        let (mount, inode) = (*self.point.lock(cx))?;
        Some(Path { mount: mount.upgrade(cx).ok()?, inode: inode.upgrade(cx).ok()? })
    }
}

/// All mounts, oldest first; the first is the root.
pub struct MountTable {
    mounts: SpinLock<Vec<StrongRc<Mount>>>,
    /// How often the table changed.
    changes: AtomicU64,
    /// Who waits for a change (poll of `/proc/PID/mounts`).
    changed: WaitList,
}

/// The mounts of the one mount namespace.
pub static MOUNTS: MountTable =
    MountTable { mounts: SpinLock::new(Vec::new()), changes: AtomicU64::new(0), changed: WaitList::new() };

impl MountTable {
    /// How often the table changed so far. A waker is entered first, and woken by the next change.
    pub fn changes(&self, waker: Option<Waker>, cx: &Cx) -> u64 {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        self.changes.load(Ordering::Relaxed)
    }

    fn has_changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.wake_all();
    }

    /// All mounts, oldest first.
    pub fn all<'cx>(&self, cx: &'cx Cx) -> Vec<TempRc<'cx, Mount>> {
        self.mounts.lock(cx).iter().filter_map(|mount| mount.downgrade().upgrade(cx).ok()).collect()
    }

    /// The root of the tree; `None` before there is one.
    pub fn root<'cx>(&self, cx: &'cx Cx) -> Option<Path<'cx>> {
        let mounts = self.mounts.lock(cx);
        let first = mounts.first()?;
        let (mount, inode) = (first.downgrade(), first.get(cx).root.downgrade());
        Some(Path { mount: mount.upgrade(cx).ok()?, inode: inode.upgrade(cx).ok()? })
    }

    /// The newest mount on exactly this place.
    pub(super) fn at<'cx>(&self, place: &Path<'_>, cx: &'cx Cx) -> Option<TempRc<'cx, Mount>> {
        let wanted = Some((place.mount.downgrade(), place.inode.downgrade()));
        let mounts = self.mounts.lock(cx);
        let found = mounts.iter().rev().find(|mount| *mount.get(cx).point.lock(cx) == wanted)?;
        found.downgrade().upgrade(cx).ok()
    }

    /// Makes `mount` the root of the tree (the first time), or mounts it on the place `on`.
    pub fn attach(&self, mount: StrongRc<Mount>, on: Option<&Path<'_>>, cx: &Cx) {
        if let Some(on) = on {
            *mount.get(cx).point.lock(cx) = Some((on.mount.downgrade(), on.inode.downgrade()));
            on.inode.mounts.fetch_add(1, Ordering::Relaxed);
        }
        mount.get(cx).is_attached.store(true, Ordering::Relaxed);
        self.mounts.lock(cx).push(mount);
        self.has_changed();
    }

    /// Moves a mount to another place (MS_MOVE).
    ///
    /// # Errors
    /// EINVAL for the root.
    pub fn relocate(&self, mount: &TempRc<'_, Mount>, on: &Path<'_>, cx: &Cx) -> Result<()> {
        let mut point = mount.point.lock(cx);
        let (_, old) = (*point).ok_or(Errno::EINVAL)?;
        *point = Some((on.mount.downgrade(), on.inode.downgrade()));
        drop(point);
        if let Ok(old) = old.upgrade(cx) {
            old.mounts.fetch_sub(1, Ordering::Relaxed);
        }
        on.inode.mounts.fetch_add(1, Ordering::Relaxed);
        self.has_changed();
        Ok(())
    }

    /// Checks that nothing in a mount is in use.
    ///
    /// # Errors
    /// EINVAL where it is detached; EBUSY.
    pub fn check_idle(&self, mount: &TempRc<'_, Mount>, cx: &Cx) -> Result<()> {
        let name = mount.downgrade();
        let mounts = self.mounts.lock(cx);
        let index = mounts.iter().position(|other| other.downgrade() == name).ok_or(Errno::EINVAL)?;
        give_up_spare();
        if mounts[index].owners() > 1 { Err(Errno::EBUSY) } else { Ok(()) }
    }

    /// Takes a mount out.
    ///
    /// # Errors
    /// EINVAL for the root; EBUSY where something is mounted on it or, unless `lazily`, in use in it.
    pub fn detach(&self, mount: &TempRc<'_, Mount>, lazily: bool, cx: &Cx) -> Result<Dying<Mount>> {
        let name = mount.downgrade();
        let mut mounts = self.mounts.lock(cx);
        let index = mounts.iter().position(|other| other.downgrade() == name).ok_or(Errno::EINVAL)?;
        if index == 0 {
            return Err(Errno::EINVAL);
        }
        let has_children = mounts.iter().any(|other| {
            let other = other.get(cx);
            let point = other.point.lock(cx);
            point.as_ref().is_some_and(|(parent, _)| *parent == name)
        });
        if has_children {
            return Err(Errno::EBUSY);
        }
        // From here on nobody keeps owners of it that are not used; whoever has just done so is found.
        mount.is_attached.store(false, Ordering::Relaxed);
        give_up_spare();
        if !lazily && mounts[index].owners() > 1 {
            mount.is_attached.store(true, Ordering::Relaxed);
            return Err(Errno::EBUSY);
        }
        if let Some((_, inode)) = mount.point.lock(cx).take()
            && let Ok(inode) = inode.upgrade(cx)
        {
            inode.mounts.fetch_sub(1, Ordering::Relaxed);
        }
        let removed = mounts.remove(index).into();
        drop(mounts);
        self.has_changed();
        Ok(removed)
    }
}

//! File systems, mounts, and places in the tree that they make up.
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

use super::{FileKind, Inode};
use crate::error::{Errno, Result};

/// How much a file system may hold, and does.
#[derive(Default)]
pub struct Capacity {
    /// Pages of 4096 bytes it may hold; 0: no limit is told.
    pub pages: AtomicU64,
    /// Pages it holds.
    pub used_pages: AtomicU64,
    /// Inodes it may hold; 0: no limit is told.
    pub inodes: AtomicU64,
    /// Inodes it holds.
    pub used_inodes: AtomicU64,
}

impl Capacity {
    fn take(limit: &AtomicU64, used: &AtomicU64, count: u64) -> Result<()> {
        let limit = limit.load(Ordering::Relaxed);
        let before = used.fetch_add(count, Ordering::Relaxed);
        if limit != 0 && before.saturating_add(count) > limit {
            used.fetch_sub(count, Ordering::Relaxed);
            return Err(Errno::ENOSPC);
        }
        Ok(())
    }

    /// Accounts for new pages.
    ///
    /// # Errors
    /// ENOSPC, and nothing is accounted.
    pub fn take_pages(&self, count: u64) -> Result<()> {
        Self::take(&self.pages, &self.used_pages, count)
    }

    /// Gives pages back.
    pub fn give_pages(&self, count: u64) {
        self.used_pages.fetch_sub(count, Ordering::Relaxed);
    }

    /// Accounts for a new inode.
    ///
    /// # Errors
    /// ENOSPC, and nothing is accounted.
    pub fn take_inode(&self) -> Result<()> {
        Self::take(&self.inodes, &self.used_inodes, 1)
    }

    /// Gives an inode back.
    pub fn give_inode(&self) {
        self.used_inodes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An instance of a file system. Each inode owns a share in it; so it does not own any.
pub struct FileSystem {
    /// The name of its type, as in `/proc/filesystems`.
    pub name: &'static str,
    /// Its magic number in statfs(2).
    pub magic: u32,
    /// Its `st_dev`: the minor number of an unnamed device.
    pub device: u32,
    /// What it holds.
    pub capacity: Capacity,
    /// The mount options of its own, as `/proc/mounts` shows them (with a leading comma each).
    pub options: Vec<u8>,
    /// Taken by whatever changes its tree of names.
    pub tree: SpinLock<()>,
    next_inode: AtomicU64,
}

impl FileSystem {
    /// A new instance.
    pub fn new(name: &'static str, magic: u32, options: Vec<u8>) -> StrongRc<FileSystem> {
        static NEXT_DEVICE: AtomicU32 = AtomicU32::new(1);
        StrongRc::new(FileSystem {
            name,
            magic,
            device: NEXT_DEVICE.fetch_add(1, Ordering::Relaxed),
            capacity: Capacity::default(),
            options,
            tree: SpinLock::new(()),
            next_inode: AtomicU64::new(1),
        })
    }

    /// A number for a new inode.
    pub fn next_inode(&self) -> u64 {
        self.next_inode.fetch_add(1, Ordering::Relaxed)
    }
}

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
    pub mount: StrongRc<Mount>,
    /// The inode.
    pub inode: StrongRc<Inode>,
}

impl Location {
    /// The place, until the next suspension.
    #[inline(always)]
    pub fn path<'cx>(&self, cx: &'cx Cx) -> Result<Path<'cx>> {
        Ok(Path { mount: self.mount.get(cx), inode: self.inode.get(cx) })
    }

    /// One more description may write the file that is here, if it is a regular one.
    ///
    /// # Errors
    /// ETXTBSY while a program runs from it.
    pub fn begin_writing(&self, cx: &Cx) -> Result<()> {
        self.inode.get(cx).begin_writing()?;
        self.mount.get(cx).begin_writing();
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
    #[inline]
    pub fn keep(&self) -> Result<Location> {
        match (self.mount.share(), self.inode.share()) {
            (Some(mount), Some(inode)) => Ok(Location { mount, inode }),
            _ => Err(Errno::ENOENT),
        }
    }

    /// Whether both are the same place.
    pub fn is(&self, other: &Path<'_>) -> bool {
        self.mount.id == other.mount.id && self.inode.downgrade() == other.inode.downgrade()
    }

    /// What is mounted here, topmost; itself if nothing is.
    #[inline(always)]
    pub fn mounted(self, cx: &'cx Cx) -> Result<Path<'cx>> {
        if self.inode.mounts.load(Ordering::Relaxed) == 0 { Ok(self) } else { self.mounted_slowly(cx) }
    }

    fn mounted_slowly(mut self, cx: &'cx Cx) -> Result<Path<'cx>> {
        while let Some(mount) = MOUNTS.at(&self, cx) {
            let inode = mount.root.get(cx);
            self = Path { mount, inode };
        }
        Ok(self)
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
            name.extend(b"(unreachable)".iter().rev());
        }
        name.reverse();
        if deleted {
            name.extend_from_slice(b" (deleted)");
        }
        Ok(name)
    }
}

/// The longest name of a place in the tree (PATH_MAX).
const LONGEST_PATH: usize = 4096;

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
    fn at<'cx>(&self, place: &Path<'_>, cx: &'cx Cx) -> Option<TempRc<'cx, Mount>> {
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
        if has_children || (!lazily && mounts[index].owners() > 1) {
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

//! Mounts.
//!
//! A [`FileSystem`] is an instance (of tmpfs, of procfs); a [`Mount`] shows a subtree of one at a directory; a [`Path`] is an inode seen
//! through a mount. There is one mount namespace: [`MOUNTS`].
//!
//! A mount is busy as long as anybody but the table owns it: a description opened through it, a working directory. Its mount point
//! is named weakly, and cannot be removed while [`Inode::mounts`](super::Inode) is not 0.
//!
//! Whoever changes something through a mount asks whether it may ([`Mount::check_writable`]) in the same step, so the two have no suspension between them. Whoever makes
//! the mount read-only says so first, which has new changes wait, then waits until each core has passed a suspension, and only then counts who may
//! write for longer: so changes are free of charge, and none that has begun is done later.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general;
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::mount_tree::{self, Children, Groups};
use super::mount_use::give_up_spare;
use super::propagation::{self, Propagation, PropagationType};
use super::{FileKind, FileSystem, Inode, Path};
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

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

/// Beside the bits of [`MountFlags`]: the mount is about to be made read-only, and nobody knows yet whether it can be.
const CLOSING: u32 = 1 << 31;
const _: () = assert!(MountFlags::all().bits() & CLOSING == 0, "it is none of the flags of mount(2)");

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
    pub(super) is_attached: AtomicBool,
    /// Where it is mounted: the parent mount and the inode there; `None` for the root and for what is detached.
    pub(super) point: SpinLock<Option<Point>>,
    /// Which mounts it hears of.
    pub(super) propagation: SpinLock<Propagation>,
}

/// A place where a mount is: the parent mount and the inode there.
pub(super) type Point = (WeakRc<Mount>, WeakRc<Inode>);

impl Mount {
    /// A mount that is nowhere yet.
    pub fn new(file_system: StrongRc<FileSystem>, root: StrongRc<Inode>, source: Vec<u8>, flags: MountFlags) -> Self {
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        let is_read_only = file_system.with(|file_system| {
            file_system.begin_mount();
            file_system.is_read_only
        });
        let flags = if is_read_only { flags | MountFlags::READ_ONLY } else { flags };
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
            propagation: SpinLock::new(Propagation::default()),
        }
    }

    /// A mount of the same file system that is nowhere yet and shows the subtree at `root`.
    pub(super) fn copy(&self, root: StrongRc<Inode>, propagation: Propagation) -> Self {
        let mut copy = Mount::new(self.file_system.share(), root, self.source.clone(), self.flags());
        *copy.propagation.get_mut() = propagation;
        copy
    }

    /// Which mounts it hears of.
    pub fn propagation(&self, cx: &Cx) -> Propagation {
        *self.propagation.lock(cx)
    }

    /// What it does not allow.
    #[inline(always)]
    pub fn flags(&self) -> MountFlags {
        MountFlags::from_bits_truncate(self.flags.load(Ordering::Relaxed))
    }

    /// Changes what it allows as mount(2) with MS_REMOUNT does.
    ///
    /// # Errors
    /// EBUSY: nothing is to be written any more, and files are open for it.
    #[cfg_attr(false, ebb_lint::never_suspends)]
    pub fn remount(cx: &mut Cx, this: WeakRc<Mount>, flags: u32) -> Result<()> {
        loop {
            let begun = this.upgrade(cx).map_err(|_| Errno::EINVAL)?.begin_remount(flags);
            match begun {
                Ok(Remount::Done) => return Ok(()),
                Ok(Remount::Closes) => break,
                Err(Stop::Error(error)) => return Err(error),
                Err(_) => frame::irq::poll(cx),
            }
        }
        // Others may wait for this, and so it does not give way. Whoever asked before whether he may write has then done what he would, or counts as a writer.
        tasks::wait_for_all(cx);
        this.upgrade(cx).map_err(|_| Errno::EINVAL)?.end_remount(flags)?;
        // Whoever reads just now may still note the time of access.
        tasks::wait_for_all(cx);
        Ok(())
    }

    /// Changes the flags; or closes it to new writers, until [`end_remount`](Self::end_remount), where it is to be made read-only.
    ///
    /// # Errors
    /// EBUSY: it is to be read-only, and files are open for writing. `Again`: another remount is under way.
    fn begin_remount(&self, flags: u32) -> Step<Remount> {
        let now = self.flags.load(Ordering::Relaxed);
        let new = MountFlags::from_bits_truncate(now).remounted(flags);
        let closes = new.contains(MountFlags::READ_ONLY) && now & MountFlags::READ_ONLY.bits() == 0;
        if !new.contains(MountFlags::READ_ONLY) && self.file_system.with(|file_system| file_system.is_read_only) {
            return Err(Errno::EROFS.into());
        }
        if now & CLOSING == 0 && closes && self.writers.load(Ordering::Relaxed) > 0 {
            return Err(Errno::EBUSY.into());
        }
        let next = if closes { now | CLOSING } else { new.bits() };
        if now & CLOSING != 0 || self.flags.compare_exchange(now, next, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return Err(Stop::Again);
        }
        Ok(if closes { Remount::Closes } else { Remount::Done })
    }

    /// It was closed to new writers, and each core has passed a suspension since: makes it read-only, or lets them in again.
    ///
    /// # Errors
    /// EBUSY: files are open for writing.
    fn end_remount(&self, flags: u32) -> Result<()> {
        let is_busy = self.writers.load(Ordering::SeqCst) > 0;
        let now = self.flags();
        let next = if is_busy { now } else { now.remounted(flags) };
        self.flags.store(next.bits(), Ordering::SeqCst);
        if is_busy { Err(Errno::EBUSY) } else { Ok(()) }
    }

    /// One more description may write a file through it.
    pub(super) fn begin_writing(&self, _may_write: MayWrite<'_>) {
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

    /// Whether something may be changed through it, until the caller's next suspension.
    ///
    /// # Errors
    /// EROFS. `Again`: it is not known yet, since it is about to be made read-only.
    #[inline(always)]
    pub fn check_writable<'cx>(&self, _cx: &'cx Cx) -> Step<MayWrite<'cx>> {
        let flags = self.flags.load(Ordering::Relaxed);
        let is_open = flags & (MountFlags::READ_ONLY.bits() | CLOSING) == 0;
        if is_open { Ok(MayWrite(PhantomData)) } else { Err(not_writable(flags)) }
    }

    /// Where it is mounted; `None` for the root.
    pub fn point<'cx>(&self, cx: &'cx Cx) -> Option<Path<'cx>> {
        let (mount, inode) = (*self.point.lock(cx))?;
        Some(Path { mount: mount.upgrade(cx).ok()?, inode: inode.upgrade(cx).ok()? })
    }
}

/// Something may be changed through a mount: until the next suspension it is not made read-only, as far as anybody sees.
#[derive(Clone, Copy, Debug)]
pub struct MayWrite<'cx>(PhantomData<&'cx Cx>);

/// How far a change of a mount's flags came.
enum Remount {
    /// All the way.
    Done,
    /// New writers wait, and it has to be seen whether there are any from before.
    Closes,
}

#[cold]
fn not_writable(flags: u32) -> Stop {
    if flags & CLOSING == 0 { Errno::EROFS.into() } else { Stop::Again }
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

    /// The file systems that are mounted, each once.
    pub fn file_systems(&self, cx: &Cx) -> Vec<WeakRc<FileSystem>> {
        let mut all: Vec<WeakRc<FileSystem>> = Vec::new();
        for mount in self.all(cx) {
            let file_system = mount.file_system.downgrade();
            if !all.contains(&file_system) {
                all.push(file_system);
            }
        }
        all
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
    ///
    /// # Errors
    /// ENOENT: what is there was removed. EINVAL: that mount is not in the tree any more. ENOSPC: there are too many mounts.
    pub fn attach(&self, mount: StrongRc<Mount>, on: Option<&Path<'_>>, cx: &Cx) -> Result<()> {
        let Some(on) = on else {
            mount_tree::add(&mut self.mounts.lock(cx), vec![mount], cx);
            return Ok(());
        };
        let point = MountPoint::take(on, cx)?;
        let mut mounts = self.mounts.lock(cx);
        if !on.mount.is_attached() {
            return Err(Errno::EINVAL);
        }
        let top = mount.get(cx);
        graft(&mut mounts, &[top], vec![mount], point, cx)?;
        drop(mounts);
        self.has_changed();
        Ok(())
    }

    /// Mounts what is at a place on another place as well, with all that is mounted below it where it `is_recursive` (MS_BIND).
    ///
    /// # Errors
    /// As for [`attach`](Self::attach), and EINVAL where its mount cannot be bound or is not in the tree.
    pub fn bind<'cx>(&self, from: &Path<'cx>, on: &Path<'_>, is_recursive: bool, cx: &'cx Cx) -> Result<()> {
        let root = from.inode.share().ok_or(Errno::ENOENT)?;
        let point = MountPoint::take(on, cx)?;
        let mut mounts = self.mounts.lock(cx);
        if !from.mount.is_attached() || !on.mount.is_attached() || from.mount.propagation(cx).is_unbindable {
            return Err(Errno::EINVAL);
        }
        let tree =
            if is_recursive { Children::of(&mounts, cx).bindable_tree(from, cx) } else { vec![from.mount.clone()] };
        mount_tree::check_room(&mounts, tree.len(), &Groups::of(&mounts, cx).receivers(on, cx))?;
        let copies = mount_tree::copy_tree(&tree, root, |index| tree[index].propagation(cx), cx);
        let own: Vec<_> = copies.iter().map(|copy| copy.get(cx)).collect();
        graft(&mut mounts, &own, copies, point, cx)?;
        drop(mounts);
        self.has_changed();
        Ok(())
    }

    /// Moves a mount, with all that is in it, to another place (MS_MOVE).
    ///
    /// # Errors
    /// EINVAL for the root, for what is not in the tree, where one of the two is a directory and the other is none, where what it is in is shared, and where it goes to what is shared with something in it
    /// that cannot be bound. ELOOP: the place is in the mount. ENOENT: what is there was removed. ENOSPC: there are too many mounts.
    pub fn relocate<'cx>(&self, mount: &TempRc<'cx, Mount>, on: &Path<'_>, cx: &'cx Cx) -> Result<()> {
        let is_directory = |inode: &Inode| inode.kind == FileKind::Directory;
        if is_directory(&on.inode) != is_directory(&mount.root.get(cx)) {
            return Err(Errno::EINVAL);
        }
        let new = MountPoint::take(on, cx)?;
        let mut mounts = self.mounts.lock(cx);
        if !mount.is_attached() || !on.mount.is_attached() {
            return Err(Errno::EINVAL);
        }
        let parent = mount.point(cx).ok_or(Errno::EINVAL)?.mount;
        let tree = Children::of(&mounts, cx).whole_tree(mount);
        let goes_to_shared = on.mount.propagation(cx).group.is_some();
        if parent.propagation(cx).group.is_some()
            || (goes_to_shared && tree.iter().any(|mount| mount.propagation(cx).is_unbindable))
        {
            return Err(Errno::EINVAL);
        }
        // No mount moves meanwhile.
        let mut above = Some(on.mount.clone());
        while let Some(at) = above {
            if at.downgrade() == mount.downgrade() {
                return Err(Errno::ELOOP);
            }
            above = at.point(cx).map(|point| point.mount);
        }
        let old = graft(&mut mounts, &tree, Vec::new(), new, cx)?;
        drop(mounts);
        give_up_point(old, cx);
        self.has_changed();
        Ok(())
    }

    /// Makes `new` the root in the place of `root`, and moves the mount that was there to `put_old`: pivot_root(2).
    ///
    /// # Errors
    /// EBUSY: `new` or `put_old` is on the root's mount. EINVAL: `new` or `root` is no mount point or not in the tree, `put_old` is not below `new`, `new` not below `root`, or what one of them is in is
    /// shared. ENOENT: what is at `put_old` was removed.
    pub fn pivot(&self, root: &Path<'_>, new: &Path<'_>, put_old: &Path<'_>, cx: &Cx) -> Result<()> {
        let point = MountPoint::take(put_old, cx)?;
        let mounts = self.mounts.lock(cx);
        let is_shared = |mount: &Mount| mount.propagation(cx).group.is_some();
        let parent_is_shared = |path: &Path<'_>| path.mount.point(cx).is_some_and(|point| is_shared(&point.mount));
        if is_shared(&put_old.mount) || parent_is_shared(new) || parent_is_shared(root) {
            return Err(Errno::EINVAL);
        }
        if [root, new, put_old].iter().any(|path| !path.mount.is_attached()) {
            return Err(Errno::EINVAL);
        }
        if new.mount.id == root.mount.id || put_old.mount.id == root.mount.id {
            return Err(Errno::EBUSY);
        }
        let is_mount_point = |path: &Path<'_>| path.is_root_of_mount() && path.mount.point(cx).is_some();
        if !is_mount_point(root)
            || !is_mount_point(new)
            || !mount_tree::is_reachable(put_old, new, cx)
            || !mount_tree::is_reachable(new, root, cx)
        {
            return Err(Errno::EINVAL);
        }
        let old_point = root.mount.point.lock(cx).replace(point.keep());
        // The inode where the root was keeps its count.
        let given_up = core::mem::replace(&mut *new.mount.point.lock(cx), old_point);
        drop(mounts);
        give_up_point(given_up, cx);
        self.has_changed();
        Ok(())
    }

    /// Changes which mounts a mount hears of, or all that are in it as well.
    ///
    /// # Errors
    /// EINVAL: it is not in the tree any more.
    pub fn set_propagation<'cx>(
        &self,
        mount: &TempRc<'cx, Mount>,
        to: PropagationType,
        is_recursive: bool,
        cx: &'cx Cx,
    ) -> Result<()> {
        let mounts = self.mounts.lock(cx);
        if !mount.is_attached() {
            return Err(Errno::EINVAL);
        }
        let changing = if is_recursive { Children::of(&mounts, cx).whole_tree(mount) } else { vec![mount.clone()] };
        propagation::change(&mounts, &changing, to, cx);
        drop(mounts);
        self.has_changed();
        Ok(())
    }

    /// Checks that nothing in a mount is in use, and nothing mounted in it.
    ///
    /// # Errors
    /// EINVAL where it is detached; EBUSY.
    pub fn check_idle(&self, mount: &TempRc<'_, Mount>, cx: &Cx) -> Result<()> {
        let name = mount.downgrade();
        let mounts = self.mounts.lock(cx);
        let index = mounts.iter().position(|other| other.downgrade() == name).ok_or(Errno::EINVAL)?;
        give_up_spare();
        let is_busy = mounts[index].owners() > 1 || Children::of(&mounts, cx).are_in(mount);
        if is_busy { Err(Errno::EBUSY) } else { Ok(()) }
    }

    /// Takes a mount out, and what was mounted elsewhere together with it; `lazily` also all that are in it.
    ///
    /// # Errors
    /// EINVAL for the root; EBUSY, unless `lazily`, where something is mounted on it or one of them is in use.
    pub fn detach<'cx>(&self, mount: &TempRc<'cx, Mount>, lazily: bool, cx: &'cx Cx) -> Result<()> {
        let name = mount.downgrade();
        let mut mounts = self.mounts.lock(cx);
        let index = mounts.iter().position(|other| other.downgrade() == name).ok_or(Errno::EINVAL)?;
        if mount.point(cx).is_none() {
            return Err(Errno::EINVAL);
        }
        let going = mount_tree::going(&mounts, mount, lazily, cx)?;
        let mark = |is_attached: bool| {
            going.mounts.iter().for_each(|mount| mount.is_attached.store(is_attached, Ordering::Relaxed));
        };
        // From here on nobody keeps owners of them that are not used; whoever has just done so is found.
        mark(false);
        give_up_spare();
        let elsewhere = going.mounts.get(1..).unwrap_or_default();
        if !lazily && elsewhere.iter().any(|mount| mount.owners() > 1) {
            mark(true);
            return Err(Errno::EBUSY);
        }
        let mut removed = vec![mounts.remove(index)];
        if !lazily
            && let Some(only) = removed.pop()
            && let Err(used) = only.end_if_only()
        {
            mounts.insert(index, used);
            mark(true);
            return Err(Errno::EBUSY);
        }
        if !elsewhere.is_empty() {
            removed.extend(mounts.extract_if(.., |mount| !mount.get(cx).is_attached()));
        }
        for (covering, below) in &going.uncovered {
            let freed = below.point.lock(cx).take();
            let old = core::mem::replace(&mut *covering.point.lock(cx), freed);
            give_up_point(old, cx);
        }
        let (mut points, mut left) = (Vec::new(), BTreeMap::new());
        for gone in &going.mounts {
            points.push(gone.point.lock(cx).take());
            let propagation = core::mem::take(&mut *gone.propagation.lock(cx));
            left.extend(propagation.group.map(|group| (group, propagation.master)));
        }
        propagation::end_groups(&mounts, &left, cx);
        drop(mounts);
        drop(removed);
        points.into_iter().for_each(|point| give_up_point(point, cx));
        self.has_changed();
        Ok(())
    }
}

/// Mounts a tree whose mounts are `new`, or in the table already, and copies of it in all mounts that hear of it. Where the first of it was before.
///
/// # Errors
/// ENOSPC: there are too many mounts.
fn graft(
    mounts: &mut Vec<StrongRc<Mount>>,
    tree: &[TempRc<'_, Mount>],
    new: Vec<StrongRc<Mount>>,
    point: MountPoint<'_, '_>,
    cx: &Cx,
) -> Result<Option<Point>> {
    let on = point.on;
    let receivers = Groups::of(mounts, cx).receivers(on, cx);
    let copied = if new.is_empty() && receivers.is_empty() { 0 } else { tree.len() };
    mount_tree::check_room(mounts, copied, &receivers)?;
    if on.mount.propagation(cx).group.is_some() {
        for mount in tree {
            let mut propagation = mount.propagation.lock(cx);
            *propagation = propagation.shared();
        }
    }
    mount_tree::copy_to_receivers(mounts, tree, on, receivers, cx);
    let old = tree.first().and_then(|top| top.point.lock(cx).replace(point.keep()));
    mount_tree::add(mounts, new, cx);
    Ok(old)
}

/// The right to mount something on an inode: it is not removed, and has other names only where it has them now, until this is given up.
struct MountPoint<'a, 'cx> {
    on: &'a Path<'cx>,
    is_kept: bool,
}

impl<'a, 'cx> MountPoint<'a, 'cx> {
    /// # Errors
    /// ENOENT: it was removed.
    fn take(on: &'a Path<'cx>, cx: &Cx) -> Result<Self> {
        // Whoever removes or renames it looks whether it is a mount point with the same lock held.
        let file_system = on.inode.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        if on.inode.is_removed(cx) {
            return Err(Errno::ENOENT);
        }
        on.inode.mounts.fetch_add(1, Ordering::Relaxed);
        Ok(MountPoint { on, is_kept: false })
    }

    /// Its names, for the mount that is there from now on.
    fn keep(mut self) -> Point {
        self.is_kept = true;
        (self.on.mount.downgrade(), self.on.inode.downgrade())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.file_system.with(FileSystem::end_mount);
    }
}

impl Drop for MountPoint<'_, '_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.on.inode.mounts.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Nothing is mounted there any more.
pub(super) fn give_up_point(point: Option<Point>, cx: &Cx) {
    if let Some((_, inode)) = point
        && let Ok(inode) = inode.upgrade(cx)
    {
        inode.mounts.fetch_sub(1, Ordering::Relaxed);
    }
}

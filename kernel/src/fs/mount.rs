//! Mounts.
//!
//! A [`FileSystem`] is an instance (of tmpfs, of procfs); a [`Mount`] shows a subtree of one at a directory; a [`Path`] is an inode seen
//! through a mount. Which mounts there are says the [table](super::MOUNTS).
//!
//! A mount is busy as long as anybody but the table owns it: a description opened through it, a working directory. Its mount point
//! is named weakly, and cannot be removed while [`Inode::mounts`](super::Inode) is not 0.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mount` | a mount |
//! | `mount_flags`, `mount_remount` | what it does not allow, and how that changes |
//! | `mount_table` | all mounts: mounting, moving, unmounting |
//! | `mount_tree`, `propagation` | trees of them, and which others hear of a change |
//! | `mount_detached` | trees that are nowhere, which a descriptor has |
//! | `mount_context` | a mount in the making: fsopen(2) |
//! | `mount_use` | that somebody uses a mount |

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::propagation::Propagation;
use super::{FileKind, FileSystem, Inode, MountFlags, Path};
use crate::error::Errno;
use crate::step::{Step, Stop};

/// Beside the bits of [`MountFlags`]: the mount is about to be made read-only, and nobody knows yet whether it can be.
pub(super) const CLOSING: u32 = 1 << 31;
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
    pub(super) flags: AtomicU32,
    /// How many descriptions may write files through it.
    writers: AtomicU32,
    /// Nobody used it since umount2(2) was called with MNT_EXPIRE.
    is_expiring: AtomicBool,
    /// In which tree it is: see [`Tree`].
    tree: AtomicU32,
    /// Where it is mounted: the parent mount and the inode there; `None` for the root and for what is detached.
    point: SpinLock<Option<Point>>,
    /// What is mounted in it, by the inodes there: those whose `point` says so, the one that came last at the end.
    children: SpinLock<BTreeMap<WeakRc<Inode>, Vec<WeakRc<Mount>>>>,
    /// Which mounts it hears of.
    pub(super) propagation: SpinLock<Propagation>,
}

/// A place where a mount is: the parent mount and the inode there.
pub(super) type Point = (WeakRc<Mount>, WeakRc<Inode>);

/// In which tree of the table a mount is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// In none, and so not in the table: it is new, or lives on only because it is used.
    None,
    /// In that of the namespace.
    Namespace,
    /// In one that is nowhere, whose first mount had this number.
    Detached(u32),
}

/// [`Tree::None`] and [`Tree::Namespace`] beside numbers of mounts.
const NOWHERE: u32 = 0;
const IN_NAMESPACE: u32 = u32::MAX;

/// What the numbers of mounts begin behind that statx(2), statmount(2) and listmount(2) tell, as on Linux: none is one of the others' as well.
const UNIQUE: u64 = 1 << 31;

impl Mount {
    /// A mount that is nowhere yet.
    pub fn new(file_system: StrongRc<FileSystem>, root: StrongRc<Inode>, source: Vec<u8>, flags: MountFlags) -> Self {
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        let is_read_only = file_system.with(|file_system| {
            file_system.begin_mount();
            file_system.is_read_only()
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
            tree: AtomicU32::new(NOWHERE),
            point: SpinLock::new(None),
            children: SpinLock::new(BTreeMap::new()),
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

    /// In which tree it is.
    pub(super) fn tree(&self) -> Tree {
        match self.tree.load(Ordering::Relaxed) {
            NOWHERE => Tree::None,
            IN_NAMESPACE => Tree::Namespace,
            number => Tree::Detached(number),
        }
    }

    /// It is in that tree from now on. With the table's lock held.
    pub(super) fn set_tree(&self, tree: Tree) {
        let number = match tree {
            Tree::None => NOWHERE,
            Tree::Namespace => IN_NAMESPACE,
            Tree::Detached(number) => number,
        };
        self.tree.store(number, Ordering::Relaxed);
    }

    /// Whether it is in the tree of the namespace.
    #[inline(always)]
    pub(super) fn is_attached(&self) -> bool {
        self.tree.load(Ordering::Relaxed) == IN_NAMESPACE
    }

    /// Whether it is in the table of mounts.
    #[inline(always)]
    pub(super) fn is_in_table(&self) -> bool {
        self.tree.load(Ordering::Relaxed) != NOWHERE
    }

    /// Its number for statmount(2), which no other mount ever has.
    pub fn unique_id(&self) -> u64 {
        UNIQUE + u64::from(self.id)
    }

    /// Whether files may be written through it just now.
    pub(super) fn has_writers(&self) -> bool {
        self.writers.load(Ordering::SeqCst) > 0
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

    /// It is at that place from now on, or nowhere. With the table's lock held. Where it was before.
    pub(super) fn place(this: &TempRc<'_, Mount>, point: Option<Point>, cx: &Cx) -> Option<Point> {
        let old = core::mem::replace(&mut *this.point.lock(cx), point);
        let name = this.downgrade();
        if let Some((parent, inode)) = old
            && let Ok(parent) = parent.upgrade(cx)
        {
            let mut children = parent.children.lock(cx);
            if let Some(there) = children.get_mut(&inode) {
                there.retain(|child| *child != name);
                if there.is_empty() {
                    children.remove(&inode);
                }
            }
        }
        if let Some((parent, inode)) = point
            && let Ok(parent) = parent.upgrade(cx)
        {
            parent.children.lock(cx).entry(inode).or_default().push(name);
        }
        old
    }

    /// The names of the place where it is.
    pub(super) fn point_names(&self, cx: &Cx) -> Option<Point> {
        *self.point.lock(cx)
    }

    /// What is mounted on an inode as seen through it. With the table's lock held.
    pub(super) fn covering<'cx>(&self, inode: WeakRc<Inode>, cx: &'cx Cx) -> Option<TempRc<'cx, Mount>> {
        let last = *self.children.lock(cx).get(&inode)?.last()?;
        last.upgrade(cx).ok()
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

#[cold]
fn not_writable(flags: u32) -> Stop {
    if flags & CLOSING == 0 { Errno::EROFS.into() } else { Stop::Again }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.file_system.with(FileSystem::end_mount);
    }
}

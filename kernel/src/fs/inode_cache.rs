//! [`InodeCache`]: inodes that are made up when they are looked up.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc};

use super::{FileKind, Inode};
use crate::error::Result;

/// The inodes of a file system that makes them up when they are looked up. It owns them, as directories do elsewhere.
///
/// Nothing is lost when an inode is thrown out: the next lookup makes it anew, under the same number.
pub struct InodeCache {
    inodes: SpinLock<BTreeMap<u64, StrongRc<Inode>>>,
    /// Unused directories are thrown out, too.
    forgets_directories: bool,
    /// With so many inodes it is looked which ones nobody uses.
    sweep_at: AtomicUsize,
}

/// How many inodes a cache keeps at least before it looks which ones nobody uses.
const CACHED: usize = 512;

impl Default for InodeCache {
    fn default() -> Self {
        Self::new()
    }
}

impl InodeCache {
    /// An empty cache.
    pub const fn new() -> Self {
        Self::with_directories(false)
    }

    /// An empty cache for inodes that own the directories above them.
    pub const fn of_owners() -> Self {
        Self::with_directories(true)
    }

    const fn with_directories(forgets_directories: bool) -> Self {
        let inodes = SpinLock::new(BTreeMap::new());
        InodeCache { inodes, forgets_directories, sweep_at: AtomicUsize::new(CACHED) }
    }

    /// The inode of that number, if it is here and fresh.
    pub fn get<'cx>(&self, number: u64, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        let inode = self.inodes.lock(cx).get(&number).map(|inode| inode.get(cx));
        inode.filter(|inode| !inode.ops.is_stale(cx))
    }

    /// Takes the inode of that number out: it is not found any more, and lives as long as others own it.
    pub fn remove(&self, number: u64, cx: &Cx) -> Option<StrongRc<Inode>> {
        self.inodes.lock(cx).remove(&number)
    }

    /// Puts an inode in, which has come by a name.
    pub fn insert(&self, inode: StrongRc<Inode>, cx: &Cx) {
        let number = inode.get(cx).number;
        let replaced = self.inodes.lock(cx).insert(number, inode);
        drop(replaced);
    }

    /// The inode of that number; a new one by `make` if there is none or it is stale. `make` must not use this cache.
    pub fn get_or_insert<'cx>(
        &self,
        number: u64,
        cx: &'cx Cx,
        make: impl FnOnce() -> Result<Inode>,
    ) -> Result<TempRc<'cx, Inode>> {
        if let Some(inode) = self.get(number, cx) {
            return Ok(inode);
        }
        let inode = StrongRc::new(make()?);
        let made = inode.get(cx);
        let mut inodes = self.inodes.lock(cx);
        // Another core may have made it, too.
        if let Some(other) = inodes.get(&number).map(|other| other.get(cx)).filter(|other| !other.ops.is_stale(cx)) {
            return Ok(other);
        }
        if inodes.len() >= self.sweep_at.load(Ordering::Relaxed) {
            // Directories stay while they are fresh: what is in them finds its way up through them.
            inodes.retain(|_, inode| {
                let unused = inode.owners() == 1;
                let inode = inode.get(cx);
                !inode.ops.is_stale(cx)
                    && (!unused
                        || inode.ops.must_stay()
                        || inode.watchers.are_any()
                        || inode.mounts.load(Ordering::Relaxed) > 0
                        || (inode.kind == FileKind::Directory && !self.forgets_directories))
            });
            self.sweep_at.store(CACHED.max(2 * inodes.len()), Ordering::Relaxed);
        }
        inodes.insert(number, inode);
        Ok(made)
    }
}

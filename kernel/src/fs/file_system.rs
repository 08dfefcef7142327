//! [`FileSystem`]: an instance of a file system, and how much it may hold.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use refs::{SpinLock, StrongRc};

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

/// The minor number of a new unnamed device.
pub fn next_device() -> u32 {
    static NEXT_DEVICE: AtomicU32 = AtomicU32::new(1);
    NEXT_DEVICE.fetch_add(1, Ordering::Relaxed)
}

/// An instance of a file system. Each inode owns a share in it; so it does not own any.
pub struct FileSystem {
    /// The name of its type, as in `/proc/filesystems`.
    pub name: &'static str,
    /// Its magic number in statfs(2).
    pub magic: u32,
    /// Its `st_dev`: the minor number of an unnamed device.
    pub device: u32,
    /// How many file systems it is stacked on, one on the other; 0 for one that has a store of its own.
    pub depth: u8,
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
        let tree = SpinLock::new(());
        Self::with_tree(name, magic, options, 0, tree)
    }

    /// A new instance that is stacked on others, of which the deepest has `depth` - 1. Who holds the `tree` of a file system may take those of what it is stacked on.
    pub fn stacked(name: &'static str, magic: u32, options: Vec<u8>, depth: u8) -> StrongRc<FileSystem> {
        if depth == 1 {
            let tree_of_stack = SpinLock::new(());
            return Self::with_tree(name, magic, options, depth, tree_of_stack);
        }
        let tree_of_deep_stack = SpinLock::new(());
        Self::with_tree(name, magic, options, depth, tree_of_deep_stack)
    }

    fn with_tree(
        name: &'static str,
        magic: u32,
        options: Vec<u8>,
        depth: u8,
        tree: SpinLock<()>,
    ) -> StrongRc<FileSystem> {
        let capacity = Capacity::default();
        let next_inode = AtomicU64::new(1);
        StrongRc::new(FileSystem { name, magic, device: next_device(), depth, capacity, options, tree, next_inode })
    }

    /// A number for a new inode.
    pub fn next_inode(&self) -> u64 {
        self.next_inode.fetch_add(1, Ordering::Relaxed)
    }
}

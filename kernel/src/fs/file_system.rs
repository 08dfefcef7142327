//! [`FileSystem`]: an instance of a file system, and how much it may hold.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, Waker};

use crate::error::{Errno, Result};
use crate::step::Step;

/// How much a file system may hold, and does.
pub struct Capacity {
    /// Pages of 4096 bytes it may hold; 0: no limit is told.
    pub pages: AtomicU64,
    /// Pages it holds.
    pub used_pages: AtomicU64,
    /// Pages of the others that nobody gets.
    pub kept_pages: AtomicU64,
    /// Inodes it may hold; 0: no limit is told.
    pub inodes: AtomicU64,
    /// Inodes it holds.
    pub used_inodes: AtomicU64,
    /// Bytes of the unit in which files get space, which stat(2) tells.
    pub block_bytes: AtomicU32,
    /// What statfs(2) tells as the longest name.
    pub longest_name: AtomicU32,
}

impl Default for Capacity {
    fn default() -> Self {
        let (pages, used_pages, kept_pages, inodes, used_inodes) = Default::default();
        let block_bytes = AtomicU32::new(frame::mm::PAGE_SIZE as u32);
        Capacity { pages, used_pages, kept_pages, inodes, used_inodes, block_bytes, longest_name: AtomicU32::new(255) }
    }
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
    pub options: SpinLock<Vec<u8>>,
    /// Taken by whatever changes its tree of names.
    pub tree: SpinLock<()>,
    is_read_only: AtomicBool,
    next_inode: AtomicU64,
    mounts: AtomicU32,
    kept: SpinLock<Option<StrongRc<dyn Kept>>>,
    stage: AtomicU8,
}

/// What a file system keeps as long as it is mounted, and which may own its inodes.
pub trait Kept: Send + Sync {
    /// The last mount has ended. Whether it has something to do still: then it is kept until [`FileSystem::give_up_kept`].
    fn last_mount_ended(&self) -> bool {
        false
    }

    /// Has it be written from now on, or not any more, and then notes on the disk that all is written. `has_asked` is the caller's, and begins as false.
    ///
    /// # Errors
    /// EROFS: it is never written. EBUSY: somebody has asked for the other since; or files that have no name are still used. `BlockOnDevice`, with the waker entered; EIO.
    fn set_read_only(&self, read_only: bool, _has_asked: &mut bool, _waker: Option<Waker>, _cx: &Cx) -> Step<()> {
        if read_only { Ok(()) } else { Err(Errno::EROFS.into()) }
    }

    /// Writes all that was changed so far, and waits for it. `number` is the caller's, and begins as nothing.
    ///
    /// # Errors
    /// `BlockOnDevice`, with the waker entered; EIO.
    fn sync(&self, _number: &mut Option<u64>, _waker: Option<Waker>, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    /// Whether it can be [shut down](Self::shut_down).
    fn can_be_shut_down(&self) -> bool {
        false
    }

    /// Ends all use of what is on the disk, as if the power were cut. `number` is the caller's, and begins as nothing.
    ///
    /// # Errors
    /// `BlockOnDevice`, with the waker entered; EIO where what is to be written first cannot be.
    fn shut_down(&self, _first: WrittenFirst, _number: &mut Option<u64>, _waker: Option<Waker>, _cx: &Cx) -> Step<()> {
        Err(Errno::ENOTTY.into())
    }
}

/// What is written before a file system is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenFirst {
    /// All that was changed.
    All,
    /// All changes of metadata, and the content that they show.
    Changes,
    /// Nothing.
    Nothing,
}

/// Stages of a [`FileSystem`]: it has mounts, or will have; the last has ended, and something has to be done still; that is done. What is on a disk is mounted
/// from there on as another instance.
const MOUNTED: u8 = 0;
const ENDING: u8 = 1;
const OVER: u8 = 2;

/// Woken when a file system has come to its end.
static ENDED: WaitList = WaitList::new();

/// Enters a waker that is woken when a file system has come to its end.
pub fn wait_for_end(waker: Option<Waker>, cx: &Cx) {
    if let Some(waker) = waker {
        ENDED.register(waker, cx);
    }
}

impl FileSystem {
    /// A new instance.
    pub fn new(name: &'static str, magic: u32, options: Vec<u8>) -> StrongRc<FileSystem> {
        let tree = SpinLock::new(());
        Self::with_tree(name, magic, options, 0, tree, false)
    }

    /// A new instance of which nothing is written for now.
    pub fn new_read_only(name: &'static str, magic: u32, options: Vec<u8>) -> StrongRc<FileSystem> {
        let tree = SpinLock::new(());
        Self::with_tree(name, magic, options, 0, tree, true)
    }

    /// A new instance that is stacked on others, of which the deepest has `depth` - 1. Who holds the `tree` of a file system may take those of what it is stacked on.
    pub fn stacked(name: &'static str, magic: u32, options: Vec<u8>, depth: u8) -> StrongRc<FileSystem> {
        if depth == 1 {
            let tree_of_stack = SpinLock::new(());
            return Self::with_tree(name, magic, options, depth, tree_of_stack, false);
        }
        let tree_of_deep_stack = SpinLock::new(());
        Self::with_tree(name, magic, options, depth, tree_of_deep_stack, false)
    }

    fn with_tree(
        name: &'static str,
        magic: u32,
        options: Vec<u8>,
        depth: u8,
        tree: SpinLock<()>,
        is_read_only: bool,
    ) -> StrongRc<FileSystem> {
        StrongRc::new(FileSystem {
            name,
            magic,
            device: next_device(),
            depth,
            capacity: Capacity::default(),
            options: SpinLock::new(options),
            tree,
            is_read_only: AtomicBool::new(is_read_only),
            mounts: AtomicU32::new(0),
            kept: SpinLock::new(None),
            stage: AtomicU8::new(MOUNTED),
            next_inode: AtomicU64::new(1),
        })
    }

    /// Has it keep something from now, before its first mount, until its last mount ends.
    pub fn keep(&self, kept: StrongRc<dyn Kept>) {
        self.kept.with(|place| *place = Some(kept));
    }

    /// There is one mount of it more.
    pub(super) fn begin_mount(&self) {
        self.mounts.fetch_add(1, Ordering::Relaxed);
    }

    /// There is one mount of it more, if there is one already: the last one may just have ended.
    pub(super) fn begin_another_mount(&self) -> bool {
        let one_more = |mounts| if mounts > 0 { Some(mounts + 1) } else { None };
        self.mounts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Whether it is mounted anywhere.
    pub(super) fn is_mounted(&self) -> bool {
        self.mounts.load(Ordering::Relaxed) > 0
    }

    /// Whether there is a mount of it beside one.
    pub fn has_other_mounts(&self) -> bool {
        self.mounts.load(Ordering::Relaxed) > 1
    }

    /// There is one mount of it less. With the last one goes what it keeps.
    pub(super) fn end_mount(&self) {
        if self.mounts.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // Before anybody is told: he may be done at once.
        self.stage.store(ENDING, Ordering::Release);
        let has_work =
            self.kept.with(|kept| kept.as_ref().is_some_and(|kept| kept.with(|kept| kept.last_mount_ended())));
        if !has_work {
            self.give_up_kept();
        }
    }

    /// What it keeps has done all that it had to do.
    pub fn give_up_kept(&self) {
        drop(self.kept.with(Option::take));
        self.stage.store(OVER, Ordering::Release);
        ENDED.wake_all();
    }

    /// Whether its last mount has ended, and something has to be done still.
    pub fn is_ending(&self) -> bool {
        self.stage.load(Ordering::Acquire) == ENDING
    }

    /// Whether its last mount has ended and all is done.
    pub(super) fn is_over(&self) -> bool {
        self.stage.load(Ordering::Acquire) == OVER
    }

    /// Whether nothing of it is written now: each of its mounts is read-only.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only.load(Ordering::Relaxed)
    }

    /// Has it be written from now on, or not any more: see [`Kept::set_read_only`]. All mounts of it are read-only in either case.
    ///
    /// # Errors
    /// Those of [`Kept::set_read_only`].
    pub fn set_read_only(&self, read_only: bool, has_asked: &mut bool, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if self.is_read_only() == read_only {
            return Ok(());
        }
        {
            // One that keeps nothing has nothing to write.
            let kept = self.kept.lock(cx);
            let Some(kept) = kept.as_ref().map(|kept| kept.get(cx)) else { return Ok(()) };
            kept.set_read_only(read_only, has_asked, waker, cx)?;
        }
        self.is_read_only.store(read_only, Ordering::Relaxed);
        Ok(())
    }

    /// Writes all that was changed in it so far, and waits for it: see [`Kept::sync`].
    ///
    /// # Errors
    /// Those of [`Kept::sync`].
    pub fn sync(&self, number: &mut Option<u64>, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let kept = self.kept.lock(cx).as_ref().map(|kept| kept.get(cx));
        kept.map_or(Ok(()), |kept| kept.sync(number, waker, cx))
    }

    /// Whether it can be [shut down](Self::shut_down).
    pub fn can_be_shut_down(&self, cx: &Cx) -> bool {
        self.kept.lock(cx).as_ref().is_some_and(|kept| kept.get(cx).can_be_shut_down())
    }

    /// Ends all use of what is on its disk, as if the power were cut: see [`Kept::shut_down`].
    ///
    /// # Errors
    /// Those of [`Kept::shut_down`].
    pub fn shut_down(&self, first: WrittenFirst, number: &mut Option<u64>, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let kept = self.kept.lock(cx).as_ref().map(|kept| kept.get(cx));
        kept.map_or(Err(Errno::ENOTTY.into()), |kept| kept.shut_down(first, number, waker, cx))
    }

    /// A number for a new inode.
    pub fn next_inode(&self) -> u64 {
        self.next_inode.fetch_add(1, Ordering::Relaxed)
    }
}

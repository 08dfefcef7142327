//! [`InodeCache`]: inodes that are made up when they are looked up.
//!
//! What nobody uses is thrown out where there are many: with each that comes, some are looked at in turn. *Nobody uses it* is more than that nobody else owns it: a step on another core may have
//! looked it up, and be about to open it, to change it or to mount something there. Were it thrown out meanwhile, the next lookup would make a second inode of the same file, with a size and pages
//! of its own. So each inode is marked with the epoch in which it was last found, under the lock under which they are thrown out, and stays until each core has come in anew since: nothing
//! that is found lives longer than its step.

use alloc::collections::BTreeMap;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, reclaim};

use super::{FileKind, Inode};
use crate::error::Result;
use crate::pieces::{Pieces, free_in_pieces};

/// The inodes of a file system that makes them up when they are looked up. It owns them, as directories do elsewhere.
///
/// Nothing is lost when an inode is thrown out: the next lookup makes it anew, under the same number.
pub struct InodeCache {
    inodes: SpinLock<Inodes>,
    /// Where there are fewer, none is thrown out.
    kept: usize,
    /// Unused directories are thrown out, too.
    forgets_directories: bool,
}

/// How many inodes a cache keeps at least.
const KEPT: usize = 512;

/// A disk's keeps one for so many pages of memory, and so many at most: finding a file again is cheap as long as its inode is here.
const PAGES_OF_INODE: usize = 16;
const MOST_KEPT: usize = 65_536;

/// Where there are more, so many are looked at when one comes: enough to find unused ones where most are in use.
const LOOKED_AT: usize = 16;

/// With each so many that come an epoch begins: those that were found in the one before can be told from those in use.
const INODES_OF_EPOCH: u32 = 64;

struct Inodes {
    by_number: BTreeMap<u64, Cached>,
    /// Those from this number on are looked at next.
    hand: u64,
    /// How many have come in this epoch.
    come: u32,
    /// What was found before this epoch is not borrowed any more.
    borrowed_since: u64,
}

struct Cached {
    inode: StrongRc<Inode>,
    /// The epoch in which it was last found.
    found_in: u64,
}

impl Cached {
    fn new(inode: StrongRc<Inode>) -> Self {
        Cached { inode, found_in: reclaim::epoch_now() }
    }

    fn find<'cx>(&mut self, cx: &'cx Cx) -> TempRc<'cx, Inode> {
        self.found_in = reclaim::epoch_now();
        self.inode.get(cx)
    }

    /// Whether nobody has it, and nothing is lost with it. What was found before `borrowed_since` is not borrowed any more.
    fn is_idle(&self, borrowed_since: u64, cx: &Cx) -> bool {
        let inode = self.inode.get(cx);
        self.found_in < borrowed_since
            && self.inode.owners() == 1
            && !inode.ops.must_stay()
            && !inode.watchers.are_any()
            && inode.mounts.load(Ordering::Relaxed) == 0
    }
}

impl Inodes {
    /// Throws out what nobody uses of the next ones, where there are `kept` or more. One is about to come.
    fn make_room(&mut self, kept: usize, forgets_directories: bool, cx: &Cx) {
        self.come += 1;
        if self.come >= INODES_OF_EPOCH {
            self.come = 0;
            self.borrowed_since = reclaim::borrowed_since();
            reclaim::begin_epoch();
        }
        if self.by_number.len() < kept {
            return;
        }
        for _ in 0..LOOKED_AT {
            let Some((&number, cached)) = self.by_number.range(self.hand..).next() else {
                self.hand = 0;
                return;
            };
            self.hand = number.wrapping_add(1);
            let inode = cached.inode.get(cx);
            // Directories stay while they are fresh: what is in them finds its way up through them.
            let is_found_above = inode.kind == FileKind::Directory && !forgets_directories;
            if inode.ops.is_stale(cx) {
                self.by_number.remove(&number);
            } else if !is_found_above && cached.is_idle(self.borrowed_since, cx) {
                self.end_if_only(number);
            }
        }
    }

    /// Throws an inode out, unless somebody who knew it weakly has come to own it.
    fn end_if_only(&mut self, number: u64) {
        let Some(Cached { inode, found_in }) = self.by_number.remove(&number) else { return };
        if let Err(inode) = inode.end_if_only() {
            self.by_number.insert(number, Cached { inode, found_in });
        }
    }
}

/// The inodes of a cache that has ended.
struct Ended(BTreeMap<u64, Cached>);

impl Pieces for Ended {
    fn free_piece(&mut self) -> bool {
        /// So many are let go of at once.
        const AT_ONCE: usize = 64;
        for _ in 0..AT_ONCE {
            self.0.pop_first();
        }
        !self.0.is_empty()
    }
}

impl Drop for InodeCache {
    fn drop(&mut self) {
        let inodes = core::mem::take(&mut self.inodes.get_mut().by_number);
        if !inodes.is_empty() {
            free_in_pieces(Ended(inodes));
        }
    }
}

impl Default for InodeCache {
    fn default() -> Self {
        Self::new()
    }
}

impl InodeCache {
    /// An empty cache.
    pub const fn new() -> Self {
        Self::with(KEPT, false)
    }

    /// An empty cache for inodes that own the directories above them.
    pub const fn of_owners() -> Self {
        Self::with(KEPT, true)
    }

    /// The same, for a disk: it keeps more where there is more memory.
    pub fn of_stored() -> Self {
        Self::with((frame::mm::frame_count() / PAGES_OF_INODE).clamp(KEPT, MOST_KEPT), true)
    }

    const fn with(kept: usize, forgets_directories: bool) -> Self {
        let inodes = Inodes { by_number: BTreeMap::new(), hand: 0, come: 0, borrowed_since: 0 };
        InodeCache { inodes: SpinLock::new(inodes), kept, forgets_directories }
    }

    /// The inode of that number, if it is here and fresh.
    pub fn get<'cx>(&self, number: u64, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        let inode = self.inodes.lock(cx).by_number.get_mut(&number).map(|cached| cached.find(cx));
        inode.filter(|inode| !inode.ops.is_stale(cx))
    }

    /// The same, for who is to own it.
    pub fn own(&self, number: u64, cx: &Cx) -> Option<StrongRc<Inode>> {
        self.get(number, cx)?.share()
    }

    /// Takes the inode of that number out: it is not found any more, and lives as long as others own it.
    pub fn remove(&self, number: u64, cx: &Cx) -> Option<StrongRc<Inode>> {
        self.inodes.lock(cx).by_number.remove(&number).map(|cached| cached.inode)
    }

    /// Takes that inode out, unless another one has its number by now.
    pub fn remove_this(&self, inode: &TempRc<'_, Inode>, cx: &Cx) {
        let mut inodes = self.inodes.lock(cx);
        let is_here =
            inodes.by_number.get(&inode.number).is_some_and(|cached| cached.inode.downgrade() == inode.downgrade());
        let removed = if is_here { inodes.by_number.remove(&inode.number) } else { None };
        drop(inodes);
        // It ends with nothing locked.
        drop(removed);
    }

    /// Puts an inode in, which has come by a name.
    pub fn insert(&self, inode: StrongRc<Inode>, cx: &Cx) {
        let number = inode.get(cx).number;
        let replaced = self.inodes.lock(cx).by_number.insert(number, Cached::new(inode));
        drop(replaced);
    }

    /// The inode of that number; a new one by `make` if there is none or it is stale. `make` must not use this cache.
    pub fn get_or_insert<'cx>(
        &self,
        number: u64,
        cx: &'cx Cx,
        make: impl FnOnce() -> Result<Inode>,
    ) -> Result<TempRc<'cx, Inode>> {
        match self.get(number, cx) {
            Some(inode) => Ok(inode),
            None => self.insert_new(number, cx, make, |inode| inode.get(cx)),
        }
    }

    /// As [`get_or_insert`](Self::get_or_insert), for who is to own it.
    pub fn own_or_insert(&self, number: u64, cx: &Cx, make: impl FnOnce() -> Result<Inode>) -> Result<StrongRc<Inode>> {
        match self.own(number, cx) {
            Some(inode) => Ok(inode),
            None => self.insert_new(number, cx, make, StrongRc::share),
        }
    }

    /// Puts a new inode in; what is found there is what `take` takes of the cache's.
    fn insert_new<R>(
        &self,
        number: u64,
        cx: &Cx,
        make: impl FnOnce() -> Result<Inode>,
        take: impl Fn(&StrongRc<Inode>) -> R,
    ) -> Result<R> {
        let inode = StrongRc::new(make()?);
        let made = take(&inode);
        let mut inodes = self.inodes.lock(cx);
        // Another core may have made it, too.
        if let Some(other) = inodes.by_number.get_mut(&number)
            && !other.find(cx).ops.is_stale(cx)
        {
            return Ok(take(&other.inode));
        }
        inodes.make_room(self.kept, self.forgets_directories, cx);
        inodes.by_number.insert(number, Cached::new(inode));
        Ok(made)
    }
}

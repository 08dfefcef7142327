//! [`DirectFile`]: a regular file that was opened with O_DIRECT or O_DSYNC.
//!
//! Large pieces of whole pages, of blocks that are there, go between the disk and the program's memory without a copy ([`Cache::pass`](crate::block::Cache::pass)). All else goes through the file's page cache: what such a write gives is on the disk when it
//! returns, and what such a read had to fetch is not kept. What is in the cache does not pass it, and what passes is waited for, so the two kinds of access see the same at any time, and mappings do.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Reader, UFrame, Writer};
use linux_raw_sys::general::RLIMIT_FSIZE;
use refs::{StrongRc, TempRc, Waker, WeakRc};

use super::Format;
use super::node::Node;
use crate::block::{Cache, Depth, DirectRead, Keep, SyncProgress};
use crate::error::{Errno, Result};
use crate::fs::inode_file::{InodeFile, remove_privileges};
use crate::fs::turn::Turn;
use crate::fs::{Events, File, FileEnd, Inode, Lseek, OpenFlags, VfsCaller};
use crate::memory::Mappable;
use crate::reclaim::Held;
use crate::step::Step;

/// So many pages pass at once; fewer than these are copied, which takes less.
const MOST_PAGES: usize = 256;
const FEWEST_PAGES: usize = 16;

/// A regular file that was opened with O_DIRECT or O_DSYNC. One that was not, and gets O_DIRECT by fcntl(2), stays an [`InodeFile`]: O_DIRECT promises nothing that others could see.
pub(super) struct DirectFile<F: Format> {
    inode: StrongRc<Inode>,
    file: InodeFile,
    node: core::marker::PhantomData<fn(F)>,
    is_direct: AtomicBool,
    /// Whose write, or read at the description's offset, goes through just now: they may take several transfers.
    turn: Turn,
    /// O_DSYNC: the disk has to keep each write.
    is_kept: bool,
}

impl<F: Format> DirectFile<F> {
    /// The open file, if it was opened so.
    pub fn of(inode: &TempRc<'_, Inode>, flags: OpenFlags) -> Result<Option<Self>> {
        let is_kept = flags.contains(OpenFlags::DATA_SYNC) && flags.can_write();
        let is_direct = flags.contains(OpenFlags::DIRECT);
        if !is_kept && !is_direct {
            return Ok(None);
        }
        let inode = inode.share().ok_or(Errno::ENOENT)?;
        Ok(Some(DirectFile {
            file: InodeFile::new(inode.share()),
            inode,
            node: core::marker::PhantomData,
            is_direct: AtomicBool::new(is_direct),
            turn: Turn::new(),
            is_kept,
        }))
    }

    fn is_direct(&self) -> bool {
        self.is_direct.load(Ordering::Relaxed)
    }

    /// The frames of the caller's memory that whole pages of the file, from `offset` on, can come from or go to without a copy, and the first page. Nobody but the caller has that memory where the disk
    /// writes to it: else another thread could fork(2) meanwhile, and its child would see what comes.
    fn frames(
        &self,
        offset: u64,
        (address, len): (Option<usize>, usize),
        access: Access,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Option<(u32, Vec<UFrame>)> {
        let address = address.filter(|address| self.is_direct() && address.is_multiple_of(PAGE_SIZE))?;
        let first =
            u32::try_from(offset / PAGE_SIZE as u64).ok().filter(|_| offset.is_multiple_of(PAGE_SIZE as u64))?;
        let pages = Some(len / PAGE_SIZE).filter(|pages| *pages >= FEWEST_PAGES)?.min(MOST_PAGES);
        let space = me.space(cx).ok()?;
        if access == Access::Write && space.owners() > 1 {
            return None;
        }
        Some((first, space.frames(address, pages, access, cx)?))
    }

    /// # Errors
    /// EINVAL: O_DIRECT, and the range is not made of the disk's blocks.
    fn check_alignment(&self, offset: u64, len: usize, cx: &Cx) -> Result<()> {
        if !self.is_direct() {
            return Ok(());
        }
        let inode = self.inode.get(cx);
        let device = Node::<F>::of(&inode)?.volume(cx)?.on().disk.device;
        let block = u64::from(device.limits().logical_block);
        if (offset | len as u64).is_multiple_of(block) { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

impl<F: Format> File for DirectFile<F> {
    fn end(&self) -> FileEnd {
        self.file.end()
    }

    fn class(&self) -> Held {
        self.file.class()
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if !self.is_direct() {
            return self.file.read(offset, to, me, cx);
        }
        self.check_alignment(offset, to.remaining(), cx)?;
        let inode = self.inode.get(cx);
        Node::<F>::of(&inode)?.read_content(offset, to, Keep::Nothing, cx)
    }

    fn reads_past(&self) -> bool {
        true
    }

    fn read_past(
        &self,
        offset: u64,
        to: &mut Writer<'_>,
        passing: &mut DirectRead,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<usize> {
        if !passing.is_under_way() {
            self.check_alignment(offset, to.remaining(), cx)?;
        }
        let inode = self.inode.get(cx);
        let memory = (to.user_address(), to.remaining());
        let frames = || self.frames(offset, memory, Access::Write, me, cx);
        let read = Node::<F>::of(&inode)?.read_past(offset, frames, passing, cx)?;
        to.skip(read);
        Ok(read)
    }

    fn write(&self, offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.check_alignment(offset, from.remaining(), cx)?;
        let limit = me.limit(RLIMIT_FSIZE, cx)?;
        if let Some((first, frames)) =
            self.frames(offset, (from.user_address(), from.remaining()), Access::Read, me, cx)
            && offset.saturating_add((frames.len() * PAGE_SIZE) as u64) <= limit
        {
            let inode = self.inode.get(cx);
            remove_privileges(&inode, me, cx)?;
            let written = Node::<F>::of(&inode)?.write_past(&inode, first, frames, cx)?;
            if written > 0 {
                from.skip(written);
                return Ok(written);
            }
        }
        self.file.write(offset, from, me, cx)
    }

    fn passed(&self, cx: &Cx) -> Option<WeakRc<Cache>> {
        Node::<F>::of(&self.inode.get(cx)).ok()?.passed(cx).filter(|_| self.is_direct())
    }

    fn append(&self, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        self.check_alignment(self.inode.get(cx).metadata(cx).size, from.remaining(), cx)?;
        self.file.append(from, me, cx)
    }

    fn sync(
        &self,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        self.file.sync(range.clone(), depth, progress, waker, cx)?;
        if self.is_direct() {
            Node::<F>::of(&self.inode.get(cx))?.forget_content(range, cx);
        }
        Ok(())
    }

    fn syncs_writes(&self) -> Option<Depth> {
        Some(if self.is_kept { Depth::Kept } else { Depth::Written })
    }

    fn flags_changed(&self, flags: OpenFlags) {
        self.is_direct.store(flags.contains(OpenFlags::DIRECT), Ordering::Relaxed);
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.turn.watch(waker, cx);
        }
        self.file.poll(interest, None, cx)
    }

    fn begin_turn(&self, _me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        self.turn.begin(cx)
    }

    fn end_turn(&self, _me: &dyn VfsCaller, cx: &Cx) {
        self.turn.end(cx);
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        self.file.seek(to, now, cx)
    }

    fn mappable<'a>(&'a self, cx: &'a Cx) -> Mappable<'a> {
        self.file.mappable(cx)
    }
}

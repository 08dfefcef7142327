//! Waiting until what was written is on the device, and saying once what could not be.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use refs::{StrongRc, Waker};

use super::content::State;
use super::{Cache, PAGE};
use crate::block::{Operation, Transfer};
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

/// How far a sync has come. It begins as nothing.
#[derive(Default)]
pub struct SyncProgress {
    phase: Phase,
    /// Of a file of a file system that is written, how far that is.
    pub volume: VolumeSync,
}

/// How far the sync of a file is, or of its file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumeSync {
    /// What was written to it is written to the disk.
    #[default]
    Pages,
    /// What was written to it is in the cache of the disk, which is written to the disk.
    Disk,
    /// All of its file system is written; the number of that is waited for.
    All(u64),
    /// A commit of that number is waited for, and whether the disk has to be told afterwards.
    Commit(u64, bool),
    /// The disk is told to keep what it has.
    Device,
}

impl SyncProgress {
    /// What comes next is another cache.
    pub fn begin_again(&mut self) {
        self.phase = Phase::Begin;
    }
}

#[derive(Default)]
enum Phase {
    #[default]
    Begin,
    /// All before this page is being written, or was not dirty.
    Write(u32),
    /// The writes up to this number are waited for.
    Wait(u64),
    /// The device is to be told, or was.
    Flush(Option<StrongRc<Transfer>>),
}

/// Whether a sync goes on until the device has promised to keep what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// It is enough that the device has it.
    Written,
    /// The device must keep it even if the power goes.
    Kept,
}

impl Cache {
    /// What has failed so far, for [`check`](Self::check).
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Notes that something could not be written before the device was asked to.
    pub fn note_unwritten(&self, error: Errno, cx: &Cx) {
        let _content = self.content.lock(cx);
        self.note_failure(error);
    }

    /// Says once of each failure to write that `seen` has not seen. `seen` begins as [`failures`](Self::failures).
    ///
    /// # Errors
    /// EIO, ENOSPC.
    pub fn check(&self, seen: &AtomicU64) -> Result<()> {
        let now = self.failures();
        match seen.swap(now, Ordering::Relaxed) {
            before if before == now => Ok(()),
            _ if now & 0xffff == u64::from(Errno::ENOSPC.number()) => Err(Errno::ENOSPC),
            _ => Err(Errno::EIO),
        }
    }

    /// Writes what is dirty in a range of bytes, and waits for it. `progress` is the caller's, and begins as nothing.
    ///
    /// # Errors
    /// `BlockOnDevice`, with the waker entered. What could not be written [`check`](Self::check) says; EIO where the device could not keep it.
    pub fn sync(
        &self,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        let pages = (range.start / PAGE).min(u64::from(u32::MAX)) as u32
            ..range.end.div_ceil(PAGE).min(u64::from(self.end())) as u32;
        if let Some(waker) = waker {
            self.written.register(waker, cx);
            self.device().room().register(waker, cx);
        }
        loop {
            match &mut progress.phase {
                Phase::Begin => progress.phase = Phase::Write(pages.start),
                Phase::Write(at) => {
                    let content = self.content.lock(cx);
                    let next = content.to_write.next(*at).map(|(index, ())| index).filter(|index| *index < pages.end);
                    let Some(index) = next else {
                        progress.phase = Phase::Wait(content.next_write);
                        continue;
                    };
                    *at = index;
                    // Written to since its write began: it is written once more.
                    if content.page(index).is_some_and(|page| page.state == State::Redirtied) {
                        return Err(Stop::BlockOnDevice);
                    }
                    drop(content);
                    *at = self.start_writing(index, pages.end, cx)?.unwrap_or(pages.end);
                }
                Phase::Wait(end) => {
                    if self.content.lock(cx).writes.iter().any(|write| write < end) {
                        return Err(Stop::BlockOnDevice);
                    }
                    progress.phase = Phase::Flush(None);
                }
                Phase::Flush(_) if depth == Depth::Written || !self.device().limits().has_cache => return Ok(()),
                Phase::Flush(begun @ None) => {
                    *begun = Some(Transfer::start(self.device(), Operation::Flush, (0, 0), Vec::new(), None, cx)?);
                }
                Phase::Flush(Some(flush)) => return flush.get(cx).poll(waker, cx).map(|_| ()),
            }
        }
    }
}

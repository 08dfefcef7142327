//! What mappings show of a file, and how it learns that they have written.

use core::ops::Range;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Access, UFrame};

use super::super::Format;
use super::super::node::Node;
use super::PAGE;
use crate::block::Wanted;
use crate::error::Errno;
use crate::memory::{BadAccess, Mapped, Pages, begin_unmapping, finish_unmapping};
use crate::step::{Step, Stop, TimeSlice};
impl<F: Format> Node<F> {
    /// Has no mapping write to the file without a word any more; whether there was one. Several may be at it: each goes on with what another has begun.
    pub(in super::super) fn end_mapped(&self, cx: &Cx) -> Step<bool> {
        let content = self.content(cx)?;
        let volume = self.volume_to_change(cx)?;
        let writing = self.lock_content(&volume, cx)?;
        if self.ending_epoch.load(Ordering::Relaxed) == 0 {
            if !content.is_mapped_to_write(cx) {
                return Ok(false);
            }
            self.ending_epoch.store(self.epoch.fetch_add(1, Ordering::AcqRel) + 1, Ordering::Relaxed);
            // Short of the very end: private copies stay.
            begin_unmapping(self, 0..u64::MAX - 1, cx);
        }
        drop(writing);
        let _writing = self.lock_content(&volume, cx)?;
        let ending = self.ending_epoch.load(Ordering::Relaxed);
        let mut from = Some(0);
        while let Some(at) = from {
            from = content.end_mapped(at, ending, cx);
        }
        self.ending_epoch.store(0, Ordering::Relaxed);
        Ok(true)
    }

    /// The page of that index for a mapping that may write it.
    pub(super) fn page_to_map(&self, index: u32, cx: &Cx) -> Step<UFrame> {
        let volume = self.volume_to_change(cx)?;
        let content = self.content(cx)?;
        let file = self.file.get(cx);
        // Not as others lock it: an address space is locked.
        let _writing = self.writing.lock(cx);
        let start = u64::from(index) * PAGE;
        let end = self.size().min(start + PAGE);
        if start >= end {
            return Err(Errno::ENXIO.into());
        }
        content.page(index, Wanted::Ahead(&self.ahead, 1), cx)?;
        if end > file.delayed_from() {
            self.allocate_delayed(&volume, &content, cx)?;
            if end > file.delayed_from() {
                return Err(volume.allocation_first(cx));
            }
        }
        let written = volume.ask(cx, |format, view| format.written_to(&file.node, start..end, view))?;
        if written < end {
            self.fill_gap(&volume, &content, start, cx)?;
        }
        // All of it has blocks, or it is not mapped: some of it is what a full disk may have had room for.
        let mut at = written;
        while at < end {
            at = self.allocate_to_write(&volume, &content, at..end, cx)?;
        }
        let frame = content.map_to_write(index, self.epoch.load(Ordering::Acquire), cx)?;
        // Nobody hears of the writes themselves, but for the first after each write-back.
        if let Some(inode) = volume.any_inode(file.number, cx) {
            inode.touch_modified(cx);
        }
        file.note_dirty(false);
        Ok(frame)
    }
}

impl<F: Format> Pages for Node<F> {
    fn page(&self, index: u64, access: Access, cx: &Cx) -> core::result::Result<UFrame, BadAccess> {
        /// How often a page may be taken away again before it can be mapped.
        const TRIES: usize = 8;
        let (Ok(content), Ok(page)) = (self.content(cx), u32::try_from(index)) else {
            return Err(BadAccess::BeyondFile);
        };
        if index >= self.size().div_ceil(PAGE) {
            return Err(BadAccess::BeyondFile);
        }
        for _ in 0..TRIES {
            let found = match access {
                Access::Write => self.page_to_map(page, cx),
                _ => content.page(page, Wanted::Ahead(&self.ahead, 1), cx),
            };
            match found {
                Ok(frame) => return Ok(frame),
                Err(Stop::Again) => {}
                Err(Stop::Absent(absent)) => return Err(BadAccess::Absent(absent)),
                Err(Stop::NoMemory | Stop::Error(Errno::ENOMEM)) => return Err(BadAccess::NoMemory),
                Err(_) => return Err(BadAccess::BeyondFile),
            }
        }
        Err(BadAccess::NoMemory)
    }

    fn is_told_of_writes(&self) -> bool {
        self.file.with(|file| file.is_written)
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        if let Ok(content) = self.content(cx) {
            let end = indices.end.min(self.size().div_ceil(PAGE));
            content.each_present(indices.start..end, each, cx);
        }
    }

    fn remove(&self, indices: Range<u64>, is_removed: &mut bool, cx: &Cx) -> Step<()> {
        let volume = self.volume_to_change(cx)?;
        let writing = self.lock_content(&volume, cx)?;
        if !*is_removed {
            let bytes = indices.start.saturating_mul(PAGE)..indices.end.saturating_mul(PAGE);
            self.punch(&volume, bytes, &mut TimeSlice::default(), cx)?;
            *is_removed = true;
        }
        drop(writing);
        finish_unmapping(self, cx)
    }

    fn mapped(&self) -> &Mapped {
        &self.mapped
    }
}

//! How a file is written: through its pages, past them, and behind its end.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, UFrame, Writer};
use linux_raw_sys::general::{FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE};
use refs::TempRc;

use super::super::format::{Allocation, Change};
use super::super::node::Node;
use super::super::{Format, Volume};
use super::delayed::delays;
use super::{PAGE, note_data, page_index, pages_of};
use crate::block;
use crate::block::{Cache, SECTOR};
use crate::error::Errno;
use crate::fs::Inode;
use crate::step::{Interruption, Step, Stop, TimeSlice};
/// Fewer new pages than these are copied, if others could not pass.
const FEWEST_NEW: usize = 16;

/// So many pages get blocks in one change.
const PAGES_AT_ONCE: u64 = 16;

impl<F: Format> Node<F> {
    /// Has the disk write whole pages from frames of a program's, from page `first` on, if all of them have blocks: how many bytes. Whoever syncs the file waits for it.
    pub(in super::super) fn write_past(&self, this: &Inode, first: u32, frames: Vec<UFrame>, cx: &Cx) -> Step<usize> {
        let volume = self.volume_to_change(cx)?;
        let writing = self.lock_content(&volume, cx)?;
        let file = self.file.get(cx);
        let range = u64::from(first) * PAGE..(u64::from(first) + frames.len() as u64) * PAGE;
        let content = self.content(cx)?;
        let has_blocks = range.end <= file.size()
            && volume.ask(cx, |format, view| format.written_to(&file.node, range.clone(), view))? == range.end;
        let written = if has_blocks {
            content.write_past(first, frames, cx)? as usize * PAGE_SIZE
        } else if delays(&*volume) {
            self.write_past_new(&volume, &content, first, frames, cx)?
        } else {
            return Ok(0);
        };
        drop(writing);
        if written > 0 {
            file.note_dirty(false);
            this.touch_written(cx);
        }
        Ok(written)
    }

    /// The same where blocks are missing. They are allocated in the change in which the disk is told to write them: the commit that shows them waits for it, as it waits for dirty pages. `writing` is locked.
    pub(super) fn write_past_new(
        &self,
        volume: &Volume<F>,
        content: &TempRc<'_, Cache>,
        first: u32,
        mut frames: Vec<UFrame>,
        cx: &Cx,
    ) -> Step<usize> {
        let count = content.passable(first, frames.len(), cx) as usize;
        if count < frames.len().min(FEWEST_NEW) {
            return Ok(0);
        }
        let file = self.file.get(cx);
        let start = u64::from(first) * PAGE;
        let range = start..start + (count * PAGE_SIZE) as u64;
        let change = Change::Allocate(file.number, range, Allocation::Together);
        let (done, _) = volume.change(cx, &change, |done, state| {
            let pages = (done.reached.saturating_sub(start) / PAGE) as usize;
            let Some(place) = done.place.filter(|_| pages > 0) else { return Err(Errno::ENOSPC.into()) };
            frames.truncate(pages);
            let sector = (volume.on().bytes().start + place) / SECTOR;
            content.write_past_to(sector, first, frames, cx)?;
            note_data(state, file.number, content);
            file.take(done);
            Ok(())
        })?;
        Ok((done.reached - start) as usize)
    }

    pub(in super::super) fn write_content(
        &self,
        this: &Inode,
        offset: Option<u64>,
        limit: u64,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<(usize, u64)> {
        let volume = self.volume_to_change(cx)?;
        let len = from.remaining() as u64;
        let writing = if delays(&*volume) {
            self.lock_delayed(&volume, cx)?
        } else {
            self.lock_to_grow(&volume, |size| offset.unwrap_or(size).saturating_add(len), cx)?
        };
        let start = offset.unwrap_or(self.size());
        let limit = limit.min(i64::MAX as u64);
        if start >= limit && from.remaining() > 0 {
            return Err(Errno::EFBIG.into());
        }
        let end = start.saturating_add(from.remaining() as u64).min(limit);
        let mut at = start;
        while at < end {
            match self.write_some(&volume, at..end, from, cx) {
                Ok((len, has_more)) => {
                    at += len;
                    if !has_more {
                        break;
                    }
                }
                Err(_) if at > start => break,
                Err(stop) => return Err(stop),
            }
        }
        drop(writing);
        if at > start {
            this.touch_written(cx);
        }
        Ok(((at - start) as usize, at))
    }

    /// Writes some bytes of a range: how many, and whether `from` is where it should be for the next ones.
    pub(super) fn write_some(
        &self,
        volume: &Volume<F>,
        range: Range<u64>,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<(u64, bool)> {
        let (at, size) = (range.start, self.size());
        let content = self.content(cx)?;
        let file = self.file.get(cx);
        if at < size && at >= file.delayed_from() {
            let end = range.end.min(size);
            let len = content.write(at, end, from, cx)? as u64;
            return Ok((len, len == end - at));
        }
        if at < size {
            let range = at..range.end.min(size).min(file.delayed_from());
            let end = volume.ask(cx, |format, view| format.written_to(&file.node, range, view))?;
            if end > at {
                let len = content.write(at, end, from, cx)? as u64;
                return Ok((len, len == end - at));
            }
        }
        content.check_room(at, cx)?;
        let mut most = PAGES_AT_ONCE;
        if at == size && delays(volume) {
            if let Some(done) = self.append_delayed(volume, &content, range.clone(), from, cx)? {
                return Ok(done);
            }
            // What comes behind this page may be delayed.
            most = if at.is_multiple_of(PAGE) { most } else { 1 };
        }
        if file.is_delayed() {
            self.allocate_delayed(volume, &content, cx)?;
            if file.is_delayed() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        self.fill_gap(volume, &content, at, cx)?;
        let mut end = range.end.min((at / PAGE + most) * PAGE);
        for index in pages_of(at..end)? {
            match content.page_to_write(index, cx) {
                Ok(_) => {}
                Err(_) if u64::from(index) * PAGE > at => {
                    end = u64::from(index) * PAGE;
                    break;
                }
                Err(stop) => return Err(stop),
            }
        }
        let mut bytes = vec![0; (end - at) as usize];
        let copied = {
            let mut to = Writer::from(&mut bytes[..]);
            let outcome = from.copy_to(&mut to);
            let copied = (end - at) as usize - to.remaining();
            if copied == 0 {
                outcome?;
                return Ok((0, false));
            }
            copied
        };
        let done = self.allocate_to_write(volume, &content, at..at + copied as u64, cx)?;
        let len = (done - at) as usize;
        // The pages are here, and nobody takes away what is dirty.
        let mut reader = Reader::from(&bytes[..len]);
        let mut written = 0;
        while written < len {
            match content.write_at_once(at + written as u64, done, &mut reader, cx)? {
                0 => return Err(Errno::EIO.into()),
                more => written += more,
            }
        }
        Ok((len as u64, len == copied && copied as u64 == end - at))
    }

    /// Gives bytes blocks, whose pages are here and become dirty: up to where.
    pub(super) fn allocate_to_write(
        &self,
        volume: &Volume<F>,
        content: &TempRc<'_, Cache>,
        range: Range<u64>,
        cx: &Cx,
    ) -> Step<u64> {
        let file = self.file.get(cx);
        let start = range.start;
        let change = Change::Allocate(file.number, range, Allocation::Written);
        let (done, _) = volume.change(cx, &change, |done, state| {
            if done.reached <= start {
                return if done.has_more { Ok(()) } else { Err(Errno::ENOSPC.into()) };
            }
            content.make_dirty(pages_of(start..done.reached)?, cx)?;
            note_data(state, file.number, content);
            file.take(done);
            Ok(())
        })?;
        file.note_dirty(block::cache::has_many_dirty());
        if done.reached <= start {
            return Err(volume.others_first(cx));
        }
        Ok(done.reached)
    }

    /// Has zeros written up to where something is to be written, where a file is written from its beginning on: a part at a time.
    pub(super) fn fill_gap(&self, volume: &Volume<F>, content: &TempRc<'_, Cache>, until: u64, cx: &Cx) -> Step<()> {
        if F::HAS_HOLES {
            return Ok(());
        }
        let file = self.file.get(cx);
        let written = volume.ask(cx, |format, view| format.written_until(&file.node, view))?;
        if written >= until {
            return Ok(());
        }
        let end = until.min((written / PAGE + PAGES_AT_ONCE) * PAGE);
        for index in pages_of(written..end)? {
            content.page_to_write(index, cx)?;
        }
        self.allocate_to_write(volume, content, written..end, cx)?;
        Err(volume.others_first(cx))
    }

    /// Where a file that can have no holes gets longer, and all of it was written, so is the rest of its last page. A mapping may write to that page already: nothing says when it writes behind the old end.
    pub(super) fn fill_last_page(&self, volume: &Volume<F>, size: u64, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        let old = file.size();
        let end = size.min(old.next_multiple_of(PAGE));
        if old >= end || volume.ask(cx, |format, view| format.written_until(&file.node, view))? < old {
            return Ok(());
        }
        let content = self.content(cx)?;
        content.page_to_write(page_index(old)?, cx)?;
        if self.allocate_to_write(volume, &content, old..end, cx)? < end {
            return Err(volume.others_first(cx));
        }
        Ok(())
    }

    /// Gives a file that can have no holes a length that it has blocks for.
    pub(super) fn lengthen(&self, volume: &Volume<F>, size: u64, cx: &Cx) -> Step<()> {
        self.fill_last_page(volume, size, cx)?;
        let file = self.file.get(cx);
        while file.size() < size {
            let start = file.size();
            let change = Change::Allocate(file.number, start..size, Allocation::Ahead);
            let (done, _) = volume.change(cx, &change, |done, _| {
                file.take(done);
                Ok(())
            })?;
            if done.reached <= start && !done.has_more {
                return Err(Errno::ENOSPC.into());
            }
            if done.reached < size {
                return Err(volume.others_first(cx));
            }
        }
        Ok(())
    }

    pub(in super::super) fn allocate_content(
        &self,
        this: &Inode,
        mode: u32,
        range: Range<u64>,
        done: &mut u64,
        cx: &Cx,
    ) -> Step<()> {
        let volume = self.volume_to_change(cx)?;
        if !F::HAS_HOLES && mode != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let keeps_size = mode & FALLOC_FL_KEEP_SIZE != 0;
        let (clears, fills) = match mode & !FALLOC_FL_KEEP_SIZE {
            0 => (false, true),
            FALLOC_FL_PUNCH_HOLE if keeps_size => (true, false),
            FALLOC_FL_ZERO_RANGE => (true, true),
            _ => return Err(Errno::EOPNOTSUPP.into()),
        };
        let end = if keeps_size { 0 } else { range.end };
        let mut writing = self.lock_to_grow(&volume, |_| end, cx)?;
        let mut time_slice = TimeSlice::default();
        if clears && *done == 0 {
            self.punch(&volume, range.clone(), &mut time_slice, cx)?;
            // So the next step knows that this is done.
            *done = 1;
            drop(writing);
            writing = self.lock_to_grow(&volume, |_| end, cx)?;
        }
        let what = if keeps_size { Allocation::AheadOfEnd } else { Allocation::Ahead };
        if !F::HAS_HOLES {
            self.fill_last_page(&volume, range.end, cx)?;
        }
        let file = self.file.get(cx);
        // A file without holes has what is between its end and the range as well.
        let from = if F::HAS_HOLES { range.start } else { range.start.min(file.size()) };
        let mut at = if *done > 1 { *done } else { from };
        while fills && at < range.end {
            let change = Change::Allocate(file.number, at..range.end, what);
            let (change, _) = volume.change(cx, &change, |change, _| {
                file.take(change);
                Ok(())
            })?;
            if change.reached <= at && !change.has_more {
                return Err(Errno::ENOSPC.into());
            }
            at = change.reached.max(at);
            *done = at;
            if time_slice.is_over() && at < range.end {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        drop(writing);
        this.touch_modified(cx);
        Ok(())
    }
}

//! How a file gets another length, and holes.

use alloc::vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::Reader;

use super::super::format::Change;
use super::super::node::Node;
use super::super::{Format, Volume};
use super::{PAGE, note_data, page_index};
use crate::error::Errno;
use crate::fs::Inode;
use crate::memory::begin_unmapping;
use crate::step::{Interruption, Step, Stop, TimeSlice};
impl<F: Format> Node<F> {
    pub(in super::super) fn set_content_size(&self, this: &Inode, size: u64, cx: &Cx) -> Step<()> {
        let volume = self.volume_to_change(cx)?;
        if size > i64::MAX as u64 {
            return Err(Errno::EFBIG.into());
        }
        let writing = self.lock_to_grow(&volume, |_| size, cx)?;
        let old = self.size();
        let file = self.file.get(cx);
        let content = self.content(cx)?;
        let last = (size < old && !size.is_multiple_of(PAGE)).then(|| page_index(size)).transpose()?;
        if let Some(last) = last {
            content.page_to_write(last, cx)?;
        }
        if size > old && !F::HAS_HOLES {
            self.lengthen(&volume, size, cx)?;
        } else if size != old {
            let change = Change::Resize(file.number, size);
            volume.change(cx, &change, |done, state| {
                if let Some(last) = last {
                    content.make_dirty(last..last + 1, cx)?;
                    let zeros = vec![0; (PAGE - size % PAGE) as usize];
                    content.write_at_once(size, size + zeros.len() as u64, &mut Reader::from(&zeros[..]), cx)?;
                    note_data(state, file.number, &content);
                }
                file.take(done);
                Ok(())
            })?;
        }
        if size < old {
            self.is_cutting.store(true, Ordering::Release);
            begin_unmapping(self, size.div_ceil(PAGE)..u64::MAX, cx);
            file.note_dirty(false);
        }
        this.touch_modified(cx);
        drop(writing);
        // What is left of it, as whoever comes next would.
        self.lock_content(&volume, cx).map(drop)
    }

    /// Goes on with what a cut has left, if there is something. `writing` is locked, and the pages are unmapped.
    pub(super) fn finish_cutting(&self, volume: &Volume<F>, cx: &Cx) -> Step<()> {
        if !self.is_cutting.load(Ordering::Acquire) {
            return Ok(());
        }
        let file = self.file.get(cx);
        let content = self.content(cx)?;
        let mut time_slice = TimeSlice::default();
        let first = file.size().div_ceil(PAGE);
        self.drop_pages(first..u64::from(u32::MAX), &mut time_slice, cx)?;
        loop {
            let (done, _) = volume.change(cx, &Change::Cut(file.number), |done, _| {
                file.moves();
                // What was read of them meanwhile is nothing any more.
                if content.cut(page_index(first * PAGE)?..u32::MAX, cx)?.is_some() {
                    return Err(Stop::Again);
                }
                file.take(done);
                Ok(())
            })?;
            if !done.has_more {
                break;
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        self.is_cutting.store(false, Ordering::Release);
        Ok(())
    }

    /// Forgets pages.
    pub(super) fn drop_pages(&self, pages: Range<u64>, time_slice: &mut TimeSlice, cx: &Cx) -> Step<()> {
        let content = self.content(cx)?;
        let (mut start, end) = (page_index(pages.start * PAGE)?, pages.end.min(u32::MAX.into()) as u32);
        while let Some(next) = content.cut(start..end, cx)? {
            start = next;
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    /// Makes a hole of a range: what is only a part of a page is cleared. `writing` is locked; what was mapped of it is still to be taken out of mappings.
    pub(super) fn punch(&self, volume: &Volume<F>, range: Range<u64>, time_slice: &mut TimeSlice, cx: &Cx) -> Step<()> {
        if !F::HAS_HOLES {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let end = range.end.min(self.size().next_multiple_of(PAGE));
        if range.start >= end {
            return Ok(());
        }
        let whole = range.start.div_ceil(PAGE)..end / PAGE;
        let (head, tail) = if whole.start <= whole.end {
            (range.start..whole.start * PAGE, whole.end * PAGE..end)
        } else {
            (range.start..end, end..end)
        };
        self.clear(volume, head, cx)?;
        self.clear(volume, tail, cx)?;
        if whole.start >= whole.end {
            return Ok(());
        }
        let outcome = self.punch_pages(volume, whole.clone(), time_slice, cx);
        // Also of what was not finished: it may never be.
        begin_unmapping(self, whole, cx);
        outcome
    }

    /// Makes a hole of whole pages. Each is forgotten in the very change that takes its blocks: one that is dirty may be all that there is of it, and until then others read it, and a commit may show its blocks.
    pub(super) fn punch_pages(
        &self,
        volume: &Volume<F>,
        pages: Range<u64>,
        time_slice: &mut TimeSlice,
        cx: &Cx,
    ) -> Step<()> {
        let file = self.file.get(cx);
        let content = self.content(cx)?;
        let mut start = page_index(pages.start * PAGE)?;
        let last = pages.end.min(u32::MAX.into()) as u32;
        while start < last {
            let piece = u64::from(start) * PAGE;
            let next = content.end_to_cut(start..last, cx);
            let mut end = u64::from(next) * PAGE;
            while end > piece {
                let change = Change::Punch(file.number, piece..end);
                let (done, _) = volume.change(cx, &change, |done, _| {
                    file.moves();
                    content.cut_at_once(
                        page_index(done.reached.next_multiple_of(PAGE))?..page_index(end.next_multiple_of(PAGE))?,
                        cx,
                    )?;
                    file.take(done);
                    Ok(())
                })?;
                end = done.reached;
                if time_slice.is_over() && (end > piece || next < last) {
                    return Err(Stop::Pause(Interruption::KillOnly));
                }
            }
            start = next;
        }
        Ok(())
    }

    /// Clears bytes of one page, as far as they have blocks.
    pub(super) fn clear(&self, volume: &Volume<F>, range: Range<u64>, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        let end = range.end.min(self.size());
        let mut at = range.start;
        while at < end {
            let to = volume.ask(cx, |format, view| format.written_to(&file.node, at..end, view))?;
            if to == at {
                let size = u64::from(volume.format.block_bytes());
                at = (at / size + 1) * size;
                continue;
            }
            let zeros = vec![0; (to - at) as usize];
            at += self.content(cx)?.write(at, to, &mut Reader::from(&zeros[..]), cx)? as u64;
        }
        Ok(())
    }
}

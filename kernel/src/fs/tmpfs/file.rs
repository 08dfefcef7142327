//! Regular files of tmpfs: pages in untyped frames, which reads, writes and mappings share; what was never written is a hole.
//!
//! Invariant: in the last page, bytes behind the end of the file are zero when the file grows (they are cleared when it shrinks, and a
//! mapping can only dirty them while it exists, as on Linux).

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Reader, UFrame, Writer};
use linux_raw_sys::general::{
    F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE, FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE,
};
use refs::SpinLock;

use super::directory::Ticket;
use crate::error::{Errno, Result};
use crate::fs::{Inode, InodeOps, Lseek, Metadata};
use crate::heap::slot_bytes;
use crate::memory::{BadAccess, Mapped, PageMap, Pages, finish_unmapping, unmap_pages};
use crate::step::{Interruption, Step, Stop, TimeSlice};

const PAGE: u64 = PAGE_SIZE as u64;

/// Where there are several cores, a read of so many bytes copies each page with the content unlocked, as long as what it is from does not change: others can read meanwhile, and
/// write. (As on Linux, a read may see a part of what is written at the same time.) To copy less takes no longer than to count one user more of the page.
const COPIED_UNLOCKED: usize = 1024;

/// A regular file.
pub struct RegularFile {
    content: SpinLock<Content>,
    /// May be mapped: see [`Pages::mapped`].
    mapped: Mapped,
    /// What `/proc` shows for a file that has no place in the tree.
    name: Option<Vec<u8>>,
    /// What was forbidden for ever (F_SEAL_*).
    seals: AtomicU32,
    may_be_named: bool,
    ticket: Ticket,
}

#[derive(Default)]
struct Content {
    size: u64,
    pages: PageMap,
}

impl RegularFile {
    pub(super) fn new(ticket: Ticket) -> Self {
        RegularFile {
            content: SpinLock::default(),
            mapped: Mapped::default(),
            name: None,
            seals: AtomicU32::new(F_SEAL_SEAL),
            may_be_named: false,
            ticket,
        }
    }

    /// One that gets its first name later, if at all (O_TMPFILE).
    pub(super) fn unnamed(ticket: Ticket) -> Self {
        let mut file = Self::new(ticket);
        file.may_be_named = true;
        file
    }

    /// Whether it may get a name although it has none.
    pub(super) fn may_be_named(&self) -> bool {
        self.may_be_named
    }

    /// One that has no place in the tree.
    pub(super) fn nameless(ticket: Ticket, shown_as: Vec<u8>, seals: u32) -> Self {
        let mut file = Self::new(ticket);
        file.name = Some(shown_as);
        file.seals = AtomicU32::new(seals);
        file
    }

    /// Puts content in at the end, from kernel memory: for unpacking.
    ///
    /// # Errors
    /// ENOSPC, ENOMEM.
    pub fn fill(&self, bytes: &[u8], cx: &Cx) -> Result<()> {
        let mut content = self.content.lock(cx);
        let mut rest = Reader::from(bytes);
        while rest.remaining() > 0 {
            let at = content.size;
            match self.write_page(&mut content, at, u64::MAX, &mut rest) {
                Ok(0) => break,
                Ok(_) => {}
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::NoMemory) => return Err(Errno::ENOMEM),
                Err(_) => return Err(Errno::EFAULT),
            }
        }
        Ok(())
    }

    /// # Errors
    /// EPERM if any of the seals is set.
    #[inline]
    fn check_seals(&self, seals: u32) -> Result<()> {
        if self.seals.load(Ordering::Relaxed) & seals != 0 { Err(Errno::EPERM) } else { Ok(()) }
    }

    fn account(&self, pages: u64) -> Result<()> {
        if self.ticket.is_given_back() {
            // Nobody uses it any more but who found it just before.
            return Err(Errno::ENOSPC);
        }
        self.ticket.file_system.with(|file_system| file_system.capacity.take_pages(pages))
    }

    fn release(&self, pages: u64) {
        if pages > 0 && !self.ticket.is_given_back() {
            self.ticket.file_system.with(|file_system| file_system.capacity.give_pages(pages));
        }
    }

    /// Writes within the page of `at`; how many bytes.
    fn write_page(&self, content: &mut Content, at: u64, limit: u64, from: &mut Reader<'_>) -> Step<usize> {
        let (index, within) = (at / PAGE, (at % PAGE) as usize);
        let len = (from.remaining() as u64).min(PAGE - within as u64).min(limit.saturating_sub(at)) as usize;
        let range = within..within + len;
        let left = from.remaining();
        let outcome = match content.pages.get(index) {
            Some(frame) => copy(from, &mut frame.writer(range), len),
            None => {
                crate::memory::admit()?;
                self.account(1)?;
                let whole = len == PAGE_SIZE;
                let frame = if whole { UFrame::for_overwrite() } else { UFrame::zeroed() };
                let Some(frame) = frame else {
                    self.release(1);
                    return Err(Stop::NoMemory);
                };
                frame.count_as_shared();
                let outcome = copy(from, &mut frame.writer(range), len);
                let copied = left - from.remaining();
                if copied == 0 {
                    self.release(1);
                    return outcome;
                }
                if whole && copied < len {
                    frame.writer(copied..PAGE_SIZE).zero(PAGE_SIZE - copied)?;
                }
                content.pages.insert(index, frame).inspect_err(|_| self.release(1))?;
                outcome
            }
        };
        let copied = left - from.remaining();
        if copied == 0 {
            return outcome;
        }
        content.size = content.size.max(at + copied as u64);
        Ok(copied)
    }

    /// Makes the pages of a range that are not there; `done` bytes of it are done already.
    fn fill_holes(&self, content: &mut Content, range: Range<u64>, done: &mut u64) -> Step<()> {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let most = self.ticket.file_system.with(|file_system| file_system.capacity.pages.load(Ordering::Relaxed));
        let most = if most == 0 { frame::mm::frame_count() as u64 } else { most };
        if pages.end - pages.start > most {
            return Err(Errno::ENOSPC.into());
        }
        let mut time_slice = TimeSlice::default();
        let mut at = (range.start + *done) / PAGE;
        while let Some(index) = content.pages.next(at, false).filter(|&index| index < pages.end) {
            crate::memory::admit().map_err(|_| Errno::ENOSPC)?;
            self.account(1)?;
            let Some(frame) = UFrame::zeroed() else {
                self.release(1);
                *done = (index * PAGE).saturating_sub(range.start).max(*done);
                return Err(Stop::NoMemory);
            };
            frame.count_as_shared();
            content.pages.insert(index, frame).inspect_err(|_| self.release(1))?;
            at = index + 1;
            if time_slice.is_over() {
                *done = (at * PAGE).saturating_sub(range.start).max(1);
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    /// Makes bytes zero without making or removing pages.
    fn clear(content: &Content, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let Some(index) = content.pages.next(at / PAGE, true) else { return };
            at = at.max(index * PAGE);
            let end = range.end.min((index + 1) * PAGE);
            if at >= end {
                return;
            }
            if let Some(frame) = content.pages.get(index) {
                let within = (at % PAGE) as usize;
                let len = (end - at) as usize;
                let _ = frame.writer(within..within + len).zero(len);
            }
            at = end;
        }
    }
}

/// Copies up to `len` bytes.
fn copy(from: &mut Reader<'_>, to: &mut Writer<'_>, len: usize) -> Step<usize> {
    debug_assert!(to.remaining() <= len);
    Ok(from.copy_to(to)?)
}

impl Drop for RegularFile {
    fn drop(&mut self) {
        let gone = self.content.get_mut().pages.count();
        self.release(gone);
    }
}

impl InodeOps for RegularFile {
    fn keeps_acls(&self) -> bool {
        true
    }

    fn has_flags(&self) -> bool {
        true
    }

    fn anonymous_name(&self, _this: &Inode) -> Option<Vec<u8>> {
        self.name.clone()
    }

    fn leave(&self) -> Option<usize> {
        let bytes = self.content.with(|content| {
            self.release(content.pages.count());
            self.ticket.give_back();
            content.pages.gather()
        });
        Some(slot_bytes(size_of::<Self>()) + bytes)
    }

    #[inline]
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        let content = self.content.lock(cx);
        metadata.size = content.size;
        metadata.blocks = content.pages.count() * (PAGE / 512);
    }

    fn read(&self, _this: &Inode, offset: u64, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let is_long = to.remaining() >= COPIED_UNLOCKED;
        let mut content = self.content.lock(cx);
        let mut at = offset;
        let mut end = content.size.min(offset.saturating_add(to.remaining() as u64));
        while at < end {
            let within = (at % PAGE) as usize;
            let len = (PAGE - within as u64).min(end - at) as usize;
            let left = to.remaining();
            if is_long
                && frame::cpu::count() > 1
                && let Some(frame) = content.pages.get(at / PAGE).cloned()
            {
                drop(content);
                let outcome = frame.reader(within..within + len).copy_to(to);
                drop(frame);
                at += (left - to.remaining()) as u64;
                match outcome {
                    Ok(_) => {}
                    Err(_) if at > offset => return Ok((at - offset) as usize),
                    Err(fault) => return Err(fault.into()),
                }
                content = self.content.lock(cx);
                // It may be shorter by now.
                end = end.min(content.size);
                continue;
            }
            let outcome = match content.pages.get(at / PAGE) {
                Some(frame) => frame.reader(within..within + len).copy_to(to),
                None => to.zero(len),
            };
            at += (left - to.remaining()) as u64;
            match outcome {
                Ok(_) => {}
                Err(_) if at > offset => break,
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(at.saturating_sub(offset) as usize)
    }

    fn write(
        &self,
        this: &Inode,
        offset: Option<u64>,
        limit: u64,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<(usize, u64)> {
        self.check_seals(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)?;
        let mut content = self.content.lock(cx);
        if offset.unwrap_or(content.size).saturating_add(from.remaining() as u64) > content.size {
            drop(content);
            finish_unmapping(self, cx)?;
            content = self.content.lock(cx);
        }
        // Others may have appended meanwhile.
        let start = offset.unwrap_or(content.size);
        let mut limit = limit.min(i64::MAX as u64);
        if self.check_seals(F_SEAL_GROW).is_err() {
            if start >= content.size && from.remaining() > 0 {
                return Err(Errno::EPERM.into());
            }
            limit = limit.min(content.size);
        }
        if start >= limit && from.remaining() > 0 {
            return Err(Errno::EFBIG.into());
        }
        let mut at = start;
        while from.remaining() > 0 && at < limit {
            match self.write_page(&mut content, at, limit, from) {
                Ok(len) => at += len as u64,
                Err(_) if at > start => break,
                Err(stop) => return Err(stop),
            }
        }
        drop(content);
        if at > start {
            this.touch_modified(cx);
        }
        Ok(((at - start) as usize, at))
    }

    fn set_size(&self, this: &Inode, size: u64, cx: &Cx) -> Step<()> {
        if size > i64::MAX as u64 {
            return Err(Errno::EFBIG.into());
        }
        finish_unmapping(self, cx)?;
        let mut content = self.content.lock(cx);
        let shrinks = size < content.size;
        if shrinks {
            self.check_seals(F_SEAL_SHRINK)?;
        } else if size > content.size {
            self.check_seals(F_SEAL_GROW)?;
        }
        if shrinks {
            let first_gone = size.div_ceil(PAGE);
            let gone = content.pages.remove(first_gone..u64::MAX);
            Self::clear(&content, size..first_gone * PAGE);
            self.release(gone);
        }
        content.size = size;
        drop(content);
        this.touch_modified(cx);
        // Where that takes several steps, the next ones find the size as it is to be.
        if shrinks { unmap_pages(self, size.div_ceil(PAGE)..u64::MAX, cx) } else { Ok(()) }
    }

    fn allocate(&self, this: &Inode, mode: u32, range: Range<u64>, done: &mut u64, cx: &Cx) -> Step<()> {
        let (offset, end) = (range.start, range.end);
        let keeps_size = mode & FALLOC_FL_KEEP_SIZE != 0;
        let (clears, fills) = match mode & !FALLOC_FL_KEEP_SIZE {
            0 => (false, true),
            FALLOC_FL_PUNCH_HOLE if keeps_size => (true, false),
            FALLOC_FL_ZERO_RANGE => (true, true),
            _ => return Err(Errno::EOPNOTSUPP.into()),
        };
        if clears {
            self.check_seals(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)?;
        }
        finish_unmapping(self, cx)?;
        let mut content = self.content.lock(cx);
        if end > content.size && !keeps_size {
            self.check_seals(F_SEAL_GROW)?;
        }
        if clears && *done == 0 {
            let whole = offset.div_ceil(PAGE)..end / PAGE;
            let gone = content.pages.remove(whole.clone());
            self.release(gone);
            Self::clear(&content, offset..end);
            // So the next step knows that this is done.
            *done = 1;
            if whole.start < whole.end {
                drop(content);
                unmap_pages(self, whole, cx)?;
                content = self.content.lock(cx);
            }
        }
        if fills {
            self.fill_holes(&mut content, offset..end, done)?;
        }
        if !keeps_size && fills {
            content.size = content.size.max(end);
        }
        drop(content);
        this.touch_modified(cx);
        Ok(())
    }

    fn seek(&self, _this: &Inode, to: Lseek, cx: &Cx) -> Step<u64> {
        let content = self.content.lock(cx);
        let (from, wants_data) = match to {
            Lseek::Data(from) => (from, true),
            Lseek::Hole(from) => (from, false),
            _ => return Err(Errno::EINVAL.into()),
        };
        let from = u64::try_from(from).map_err(|_| Errno::ENXIO)?;
        if from >= content.size {
            return Err(Errno::ENXIO.into());
        }
        let found = content.pages.next(from / PAGE, wants_data).map(|index| from.max(index * PAGE));
        match found {
            Some(offset) if offset < content.size => Ok(offset),
            _ if wants_data => Err(Errno::ENXIO.into()),
            // There is a hole behind every file.
            _ => Ok(content.size),
        }
    }

    fn pages(&self) -> Option<&dyn Pages> {
        Some(self)
    }

    fn lend(&self, first: u64, frames: &mut [Option<UFrame>], cx: &Cx) -> Option<u64> {
        let content = self.content.lock(cx);
        for (index, frame) in (first..content.size.div_ceil(PAGE)).zip(frames) {
            *frame = content.pages.get(index).cloned();
        }
        Some(content.size)
    }

    fn seals(&self) -> Option<&AtomicU32> {
        Some(&self.seals)
    }
}

impl Pages for RegularFile {
    fn page(&self, index: u64, _access: Access, cx: &Cx) -> core::result::Result<UFrame, BadAccess> {
        let mut content = self.content.lock(cx);
        if index >= content.size.div_ceil(PAGE) {
            return Err(BadAccess::BeyondFile);
        }
        if let Some(frame) = content.pages.get(index) {
            return Ok(frame.clone());
        }
        // A full file system is a bus error, as on Linux.
        self.account(1).map_err(|_| BadAccess::BeyondFile)?;
        let Some(frame) = UFrame::zeroed() else {
            self.release(1);
            return Err(BadAccess::NoMemory);
        };
        frame.count_as_shared();
        if content.pages.insert(index, frame.clone()).is_err() {
            self.release(1);
            return Err(BadAccess::NoMemory);
        }
        Ok(frame)
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        let content = self.content.lock(cx);
        let end = indices.end.min(content.size.div_ceil(PAGE));
        for index in indices.start..end {
            if let Some(frame) = content.pages.get(index) {
                each(index, frame.clone());
            }
        }
    }

    fn remove(&self, indices: Range<u64>, is_removed: &mut bool, cx: &Cx) -> Step<()> {
        finish_unmapping(self, cx)?;
        if *is_removed {
            return Ok(());
        }
        self.check_seals(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)?;
        *is_removed = true;
        let gone = self.content.lock(cx).pages.remove(indices.clone());
        self.release(gone);
        unmap_pages(self, indices, cx)
    }

    fn mapped(&self) -> &Mapped {
        &self.mapped
    }
}

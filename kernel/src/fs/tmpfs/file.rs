//! Regular files of tmpfs: pages in untyped frames, which reads, writes and mappings share; what was never written is a hole.
//!
//! Invariant: in the last page, bytes behind the end of the file are zero when the file grows (they are cleared when it shrinks, and a
//! mapping can only dirty them while it exists, as on Linux).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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
use crate::memory::{BadAccess, Pages, unmap_pages};
use crate::step::Step;

const PAGE: u64 = PAGE_SIZE as u64;

/// A regular file.
pub struct RegularFile {
    content: SpinLock<Content>,
    /// May be mapped: see [`Pages::mapped`].
    mapped: AtomicBool,
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

/// Pages by index: a list for the pages near the start, as most files have no others, and a tree for the rest.
#[derive(Default)]
struct PageMap {
    list: Vec<Option<UFrame>>,
    tree: BTreeMap<u64, UFrame>,
    count: u64,
}

/// The list grows by so many holes at most.
const MOST_HOLES: u64 = 64;

impl PageMap {
    #[inline(always)]
    fn get(&self, index: u64) -> Option<&UFrame> {
        match self.list.get(index as usize) {
            Some(Some(frame)) => Some(frame),
            _ if self.tree.is_empty() => None,
            _ => self.tree.get(&index),
        }
    }

    /// Enters a page that is not there.
    ///
    /// # Errors
    /// ENOMEM, and the page is gone.
    fn insert(&mut self, index: u64, frame: UFrame) -> Result<()> {
        let len = self.list.len() as u64;
        if index < len {
            self.list[index as usize] = Some(frame);
        } else if index - len <= MOST_HOLES {
            self.list.try_reserve((index - len) as usize + 1).map_err(|_| Errno::ENOMEM)?;
            self.list.resize_with(index as usize, || None);
            self.list.push(Some(frame));
        } else {
            self.tree.insert(index, frame);
        }
        self.count += 1;
        Ok(())
    }

    /// Takes out the pages of a range; how many there were.
    fn remove(&mut self, range: Range<u64>) -> u64 {
        let before = self.count;
        let len = self.list.len() as u64;
        if range.end >= len {
            for frame in self.list.drain(range.start.min(len) as usize..) {
                self.count -= u64::from(frame.is_some());
            }
        } else {
            for slot in &mut self.list[range.start.min(len) as usize..range.end as usize] {
                self.count -= u64::from(slot.take().is_some());
            }
        }
        if !self.tree.is_empty() && range.start < range.end {
            let mut rest = self.tree.split_off(&range.start);
            let mut behind = rest.split_off(&range.end);
            self.count -= rest.len() as u64;
            self.tree.append(&mut behind);
        }
        before - self.count
    }

    /// The first page at or behind an index that is there (`wanted`) or is not.
    fn next(&self, from: u64, wanted: bool) -> Option<u64> {
        let len = self.list.len() as u64;
        if !wanted {
            let mut index = from;
            while self.get(index).is_some() {
                index += 1;
            }
            return Some(index);
        }
        let in_list = self.list.get(from.min(len) as usize..)?.iter().position(Option::is_some);
        let in_list = in_list.map(|behind| from + behind as u64);
        let in_tree = self.tree.range(from..).next().map(|(&index, _)| index);
        in_list.into_iter().chain(in_tree).min()
    }
}

impl RegularFile {
    pub(super) fn new(ticket: Ticket) -> Self {
        RegularFile {
            content: SpinLock::default(),
            mapped: AtomicBool::new(false),
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
                Err(crate::step::Stop::Error(error)) => return Err(error),
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
        self.ticket.file_system.with(|file_system| file_system.capacity.take_pages(pages))
    }

    fn release(&self, pages: u64) {
        if pages > 0 {
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
                    return Err(Errno::ENOMEM.into());
                };
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
        let pages = self.content.get_mut().pages.count;
        self.release(pages);
    }
}

impl InodeOps for RegularFile {
    fn anonymous_name(&self, _this: &Inode) -> Option<Vec<u8>> {
        self.name.clone()
    }

    #[inline]
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        let content = self.content.lock(cx);
        metadata.size = content.size;
        metadata.blocks = content.pages.count * (PAGE / 512);
    }

    fn read(&self, _this: &Inode, offset: u64, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let content = self.content.lock(cx);
        let mut at = offset;
        let end = content.size.min(offset.saturating_add(to.remaining() as u64));
        while at < end {
            let within = (at % PAGE) as usize;
            let len = (PAGE - within as u64).min(end - at) as usize;
            let left = to.remaining();
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

    fn set_size(&self, this: &Inode, size: u64, cx: &Cx) -> Result<()> {
        if size > i64::MAX as u64 {
            return Err(Errno::EFBIG);
        }
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
        if shrinks {
            unmap_pages(self, size.div_ceil(PAGE)..u64::MAX, cx);
        }
        this.touch_modified(cx);
        Ok(())
    }

    fn allocate(&self, this: &Inode, mode: u32, offset: u64, len: u64, cx: &Cx) -> Result<()> {
        let end = offset.checked_add(len).filter(|&end| end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let keeps_size = mode & FALLOC_FL_KEEP_SIZE != 0;
        let cut = match mode & !FALLOC_FL_KEEP_SIZE {
            0 => false,
            FALLOC_FL_PUNCH_HOLE if keeps_size => true,
            FALLOC_FL_ZERO_RANGE => true,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        if cut {
            self.check_seals(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)?;
        }
        let mut content = self.content.lock(cx);
        if end > content.size && !keeps_size {
            self.check_seals(F_SEAL_GROW)?;
        }
        if cut {
            let whole = offset.div_ceil(PAGE)..end / PAGE;
            if whole.start < whole.end {
                let gone = content.pages.remove(whole.clone());
                self.release(gone);
            }
            Self::clear(&content, offset..end);
            if !keeps_size {
                content.size = content.size.max(end);
            }
            drop(content);
            if whole.start < whole.end {
                unmap_pages(self, whole, cx);
            }
        } else {
            let pages = offset / PAGE..end.div_ceil(PAGE);
            let most = self.ticket.file_system.with(|file_system| file_system.capacity.pages.load(Ordering::Relaxed));
            let most = if most == 0 { frame::mm::frame_count() as u64 } else { most };
            if pages.end - pages.start > most {
                return Err(Errno::ENOSPC);
            }
            for index in pages {
                if content.pages.get(index).is_none() {
                    crate::memory::admit().map_err(|_| Errno::ENOSPC)?;
                    self.account(1)?;
                    let Some(frame) = UFrame::zeroed() else {
                        self.release(1);
                        return Err(Errno::ENOSPC);
                    };
                    content.pages.insert(index, frame).inspect_err(|_| self.release(1))?;
                }
            }
            if !keeps_size {
                content.size = content.size.max(end);
            }
            drop(content);
        }
        this.touch_modified(cx);
        Ok(())
    }

    fn seek(&self, _this: &Inode, to: Lseek, cx: &Cx) -> Result<u64> {
        let content = self.content.lock(cx);
        let (from, wants_data) = match to {
            Lseek::Data(from) => (from, true),
            Lseek::Hole(from) => (from, false),
            _ => return Err(Errno::EINVAL),
        };
        let from = u64::try_from(from).map_err(|_| Errno::ENXIO)?;
        if from >= content.size {
            return Err(Errno::ENXIO);
        }
        let found = content.pages.next(from / PAGE, wants_data).map(|index| from.max(index * PAGE));
        match found {
            Some(offset) if offset < content.size => Ok(offset),
            _ if wants_data => Err(Errno::ENXIO),
            // There is a hole behind every file.
            _ => Ok(content.size),
        }
    }

    fn pages(&self) -> Option<&dyn Pages> {
        Some(self)
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

    fn mapped(&self) -> &AtomicBool {
        &self.mapped
    }
}

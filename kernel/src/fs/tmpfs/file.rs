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
use super::retire;
use crate::error::{Errno, Result};
use crate::fs::{Inode, InodeOps, Lseek, Metadata};
use crate::memory::{BadAccess, Pages, unmap_pages};
use crate::step::{Interruption, Step, Stop, Stretch};

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

/// Pages by index, in chunks: a list for the chunks near the start, as most files have no others, and a tree for the rest.
#[derive(Default)]
struct PageMap {
    near: Vec<Chunk>,
    far: BTreeMap<u64, Chunk>,
    count: u64,
}

/// Pages that stand next to each other. A chunk is given back as a whole, and what is in it later.
#[derive(Default)]
struct Chunk {
    /// As many as were needed so far; at most [`CHUNK`].
    pages: Vec<Option<UFrame>>,
    count: u64,
}

/// Pages in a chunk.
const CHUNK: u64 = 128;
/// The list grows by so many empty chunks at most.
const MOST_EMPTY: u64 = 1;

impl Chunk {
    /// The next page within the chunk, from `from` on, that is there (`wanted`) or is not.
    fn next(&self, from: u64, wanted: bool) -> Option<u64> {
        if self.count == if wanted { 0 } else { CHUNK } {
            return None;
        }
        (from..CHUNK).find(|&within| matches!(self.pages.get(within as usize), Some(Some(_))) == wanted)
    }
}

impl PageMap {
    #[inline(always)]
    fn get(&self, index: u64) -> Option<&UFrame> {
        let (number, within) = (index / CHUNK, (index % CHUNK) as usize);
        match self.near.get(number as usize) {
            Some(chunk) => chunk.pages.get(within)?.as_ref(),
            None if self.far.is_empty() => None,
            None => self.far.get(&number)?.pages.get(within)?.as_ref(),
        }
    }

    fn chunk(&self, number: u64) -> Option<&Chunk> {
        self.near.get(number as usize).or_else(|| self.far.get(&number))
    }

    /// Enters a page that is not there.
    ///
    /// # Errors
    /// ENOMEM, and the page is gone.
    fn insert(&mut self, index: u64, frame: UFrame) -> Result<()> {
        let (number, within) = (index / CHUNK, (index % CHUNK) as usize);
        let len = self.near.len() as u64;
        let is_near = number < len || (number - len <= MOST_EMPTY && !self.far.contains_key(&number));
        if is_near && number >= len {
            self.near.try_reserve((number + 1 - len) as usize).map_err(|_| Errno::ENOMEM)?;
            for passed in len..=number {
                self.near.push(self.far.remove(&passed).unwrap_or_default());
            }
        }
        let chunk = match self.near.get_mut(number as usize) {
            Some(chunk) => chunk,
            None => self.far.entry(number).or_default(),
        };
        if within >= chunk.pages.len() {
            chunk.pages.try_reserve(within + 1 - chunk.pages.len()).map_err(|_| Errno::ENOMEM)?;
            chunk.pages.resize_with(within + 1, || None);
        }
        chunk.pages[within] = Some(frame);
        chunk.count += 1;
        self.count += 1;
        Ok(())
    }

    /// Takes out the pages of a range; how many there were. It takes as long as there are chunks: the pages are freed later, chunk by chunk.
    fn remove(&mut self, range: Range<u64>) -> u64 {
        let before = self.count;
        if range.start >= range.end {
            return 0;
        }
        let whole = range.start.div_ceil(CHUNK)..range.end / CHUNK;
        if whole.start > whole.end {
            self.remove_within(range.start / CHUNK, range.start % CHUNK..range.end - whole.end * CHUNK);
            return before - self.count;
        }
        if !range.start.is_multiple_of(CHUNK) {
            self.remove_within(range.start / CHUNK, range.start % CHUNK..CHUNK);
        }
        if !range.end.is_multiple_of(CHUNK) {
            self.remove_within(whole.end, 0..range.end % CHUNK);
        }
        let len = self.near.len() as u64;
        if whole.end >= len {
            while self.near.len() as u64 > whole.start {
                let chunk = self.near.pop();
                self.retire(chunk);
            }
        } else {
            for number in whole.clone() {
                let chunk = self.near.get_mut(number as usize).map(core::mem::take);
                self.retire(chunk);
            }
        }
        while let Some((&number, _)) = self.far.range(whole.clone()).next() {
            let chunk = self.far.remove(&number);
            self.retire(chunk);
        }
        before - self.count
    }

    fn retire(&mut self, chunk: Option<Chunk>) {
        if let Some(chunk) = chunk.filter(|chunk| chunk.count > 0) {
            self.count -= chunk.count;
            retire(chunk);
        }
    }

    /// Takes out pages of one chunk.
    fn remove_within(&mut self, number: u64, range: Range<u64>) {
        let chunk = match self.near.get_mut(number as usize) {
            Some(chunk) => chunk,
            None => match self.far.get_mut(&number) {
                Some(chunk) => chunk,
                None => return,
            },
        };
        let end = chunk.pages.len().min(range.end as usize);
        for page in &mut chunk.pages[(range.start as usize).min(end)..end] {
            if page.take().is_some() {
                chunk.count -= 1;
                self.count -= 1;
            }
        }
    }

    /// The first page at or behind an index that is there (`wanted`) or is not.
    fn next(&self, from: u64, wanted: bool) -> Option<u64> {
        let mut at = from;
        loop {
            let number = at / CHUNK;
            match self.chunk(number) {
                Some(chunk) => {
                    if let Some(within) = chunk.next(at % CHUNK, wanted) {
                        return Some(number * CHUNK + within);
                    }
                }
                None if wanted => {
                    let (&number, chunk) = self.far.range(number..).find(|(_, chunk)| chunk.count > 0)?;
                    return chunk.next(0, true).map(|within| number * CHUNK + within);
                }
                None => return Some(at),
            }
            at = (number + 1) * CHUNK;
        }
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
                Err(Stop::Error(error)) => return Err(error),
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

    /// Makes the pages of a range that are not there; `done` bytes of it are done already.
    fn fill_holes(&self, content: &mut Content, range: Range<u64>, done: &mut u64) -> Step<()> {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let most = self.ticket.file_system.with(|file_system| file_system.capacity.pages.load(Ordering::Relaxed));
        let most = if most == 0 { frame::mm::frame_count() as u64 } else { most };
        if pages.end - pages.start > most {
            return Err(Errno::ENOSPC.into());
        }
        let mut stretch = Stretch::default();
        let mut at = (range.start + *done) / PAGE;
        while let Some(index) = content.pages.next(at, false).filter(|&index| index < pages.end) {
            crate::memory::admit().map_err(|_| Errno::ENOSPC)?;
            self.account(1)?;
            let Some(frame) = UFrame::zeroed() else {
                self.release(1);
                return Err(Errno::ENOSPC.into());
            };
            content.pages.insert(index, frame).inspect_err(|_| self.release(1))?;
            at = index + 1;
            if stretch.is_over() {
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
        let gone = self.content.get_mut().pages.remove(0..u64::MAX);
        self.release(gone);
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
        let mut content = self.content.lock(cx);
        if end > content.size && !keeps_size {
            self.check_seals(F_SEAL_GROW)?;
        }
        if clears && *done == 0 {
            let whole = offset.div_ceil(PAGE)..end / PAGE;
            let gone = content.pages.remove(whole.clone());
            self.release(gone);
            Self::clear(&content, offset..end);
            if whole.start < whole.end {
                drop(content);
                unmap_pages(self, whole, cx);
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

    fn remove(&self, indices: Range<u64>, cx: &Cx) -> Result<()> {
        self.check_seals(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)?;
        let gone = self.content.lock(cx).pages.remove(indices.clone());
        self.release(gone);
        unmap_pages(self, indices, cx);
        Ok(())
    }

    fn mapped(&self) -> &AtomicBool {
        &self.mapped
    }
}

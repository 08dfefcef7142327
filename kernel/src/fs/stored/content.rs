//! The content of a file: where its pages are, and how it is read, written, cut and mapped.
//!
//! *Writing.* Where blocks are missing, or the file grows, a change of the volume allocates them and sets the length. Everything that may be absent comes first: the pages are in the cache, and the bytes were copied from the program. The pages become dirty in the moment in which the change is true,
//! with the volume's state locked: so no page is dirty that has no block (but where that is delayed, see below), and no block is shown that has no page. The commit that the change is part of is made when these pages are on the disk.
//!
//! *Delayed allocation.* Where blocks are as large as pages, what is appended to a file gets its blocks only when it is written back, is synchronised, or the file is changed in any other way: then they are chosen together, as few runs as there can be. Such a part of a file reaches from a page's beginning
//! (`delayed_from`, where the file ends on the disk) to the file's end in memory; all its pages are dirty, and their place is [`Extent::Delayed`], so nobody writes or forgets them. Room is *promised* when the write takes place, for the pages and for as many blocks of the file's tree as they need wherever they will lie:
//! so ENOSPC comes at the write. Every change leaves free what is promised to others. Where promises are in the way of a change, all files get their blocks, and what was promised for trees and not needed is free again; only then the disk is full. On the disk a file has its new length together with the blocks, in one
//! change, so a crash shows the length and the content from before or after. Whoever replaces a file by renaming another over it has that one's blocks allocated first: programs do that without fsync(2), and rely on one of both contents being there after a crash.
//!
//! *Cutting.* The length changes first. Then pages behind it are taken from mappings and from the cache, which waits for those that are being written; then blocks are freed, in steps. Whoever is next to change the file finishes that first; if nobody is, the volume's task does.
//!
//! *Mappings.* Nothing says when a program writes to a page through a mapping. So pages that it can write to stay dirty; where the file is synchronised, the volume's task takes them out of all address spaces, so that whoever writes next says so by a fault, and then writes them.
//! A page can be written through a mapping only while all blocks of it up to the file's end hold what is written: the fault allocates them, or fails (SIGBUS). Where blocks are smaller than a page, a file that grows within such a page would get a hole in it. So the page is taken out of all address spaces before the
//! file grows ([`Node::lock_to_grow`]), and the next fault allocates what the page has then.
//!
//! Locks: `writing` is held over each step that changes the content; it comes before the inode's metadata, the volume's state, and the cache. Pages are taken from mappings without it, as it must not be held where
//! address spaces are reached for: what is to be taken is noted with it, and it is not locked again before that is done ([`Node::lock_content`]).

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Reader, UFrame, Writer};
use linux_raw_sys::general::{FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE};
use refs::{SpinGuard, SpinLock, StrongRc, TempRc, WeakRc};

use super::format::{Allocation, Change, Done, Growth, Place};
use super::node::Node;
use super::state::{Desk, State};
use super::{Format, Volume};
use crate::block::{self, Backing, BlockDevice, Cache, DirectRead, Extent, Keep, ReadAhead, SECTOR, Wanted};
use crate::error::{Errno, Result};
use crate::fs::{Inode, Lseek};
use crate::memory::{BadAccess, Mapped, Pages, begin_unmapping, finish_unmapping};
use crate::step::{Interruption, Step, Stop, TimeSlice};

const PAGE: u64 = PAGE_SIZE as u64;
/// Of a file that has all its blocks, where the part begins that has none.
const NOT_DELAYED: u64 = u64::MAX;
/// So many pages are appended in one go whose blocks come later.
const DELAYED_AT_ONCE: u64 = 256;
/// Fewer new pages than these are copied, if others could not pass.
const FEWEST_NEW: usize = 16;
/// So many pages get blocks in one change.
const PAGES_AT_ONCE: u64 = 16;

/// A file as it is stored: what the inode and the cache of its content both know.
pub(super) struct Stored<F: Format> {
    pub volume: WeakRc<Volume<F>>,
    pub desk: StrongRc<Desk>,
    pub number: u64,
    pub node: F::Node,
    pub size: AtomicU64,
    /// What it takes on the disk, in units of 512 bytes.
    pub sectors: AtomicU64,
    /// From this byte on, at which a page begins, it has no blocks yet; [`NOT_DELAYED`] if it has all. It is changed with `writing` locked.
    delayed_from: AtomicU64,
    /// How many blocks are promised to it.
    promised: AtomicU64,
    /// How it grows from there on.
    growth: SpinLock<Option<Growth>>,
    /// Changes whenever pages come to lie elsewhere.
    version: AtomicU64,
    /// The volume's task knows that there is something to write.
    pub is_noted: AtomicBool,
    /// Something is to be written, or just being.
    pub is_busy: AtomicBool,
    pub is_written: bool,
}

impl<F: Format> Stored<F> {
    pub fn new(volume: &Volume<F>, number: u64, node: F::Node, (size, sectors): (u64, u64)) -> Self {
        Stored {
            volume: volume.name(),
            desk: volume.desk.share(),
            number,
            node,
            size: AtomicU64::new(size),
            sectors: AtomicU64::new(sectors),
            delayed_from: AtomicU64::new(NOT_DELAYED),
            promised: AtomicU64::new(0),
            growth: SpinLock::new(None),
            version: AtomicU64::new(0),
            is_noted: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            is_written: volume.format.is_written(),
        }
    }

    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Where the part of it begins that has no blocks yet.
    pub fn delayed_from(&self) -> u64 {
        self.delayed_from.load(Ordering::Acquire)
    }

    /// Whether a part of it has no blocks yet.
    pub fn is_delayed(&self) -> bool {
        self.delayed_from() != NOT_DELAYED
    }

    /// What it takes on the disk, and will take, in units of 512 bytes.
    pub fn sectors(&self) -> u64 {
        let delayed = self.size().saturating_sub(self.delayed_from()).next_multiple_of(PAGE);
        self.sectors.load(Ordering::Relaxed) + delayed / SECTOR
    }

    /// So many blocks are promised to it from now on: no more than were.
    fn keep_promised(&self, blocks: u64) {
        let before = self.promised.swap(blocks, Ordering::Relaxed);
        self.desk.with(|desk| desk.promised.fetch_sub(before.saturating_sub(blocks), Ordering::Relaxed));
    }

    /// Something is to be written.
    pub fn note_dirty(&self, is_urgent: bool) {
        self.is_busy.store(true, Ordering::Release);
        if !self.is_noted.swap(true, Ordering::AcqRel) || is_urgent {
            self.desk.with(|desk| desk.note_dirty(self.number, is_urgent));
        }
    }

    /// What a change has made of it, in the moment in which it becomes true.
    pub fn take(&self, done: &Done<F::Node>) {
        if let Some(now) = done.of(self.number) {
            if !self.is_delayed() {
                self.size.store(now.size, Ordering::Relaxed);
            }
            self.sectors.store(now.blocks, Ordering::Relaxed);
        }
        self.moves();
    }

    /// Pages come to lie elsewhere: whoever has found out where they are, and has begun nothing there yet, does that again. Called before the cache is asked what was begun ([`Cache::cut`]), where blocks are taken away.
    fn moves(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }
}

impl<F: Format> Drop for Stored<F> {
    fn drop(&mut self) {
        self.keep_promised(0);
    }
}

/// Where a file's pages are.
pub(super) struct Content<F: Format> {
    file: StrongRc<Stored<F>>,
    device: &'static dyn BlockDevice,
}

impl<F: Format> Content<F> {
    pub fn new(file: StrongRc<Stored<F>>, device: &'static dyn BlockDevice) -> Self {
        Content { file, device }
    }
}

impl<F: Format> Backing for Content<F> {
    fn size(&self) -> u64 {
        self.file.with(Stored::size)
    }

    fn locate(&self, index: u32, cx: &Cx) -> Step<Extent> {
        let file = self.file.get(cx);
        if u64::from(index) * PAGE >= file.delayed_from() {
            return Ok(Extent::Delayed);
        }
        let volume = file.volume.upgrade(cx).map_err(|_| Errno::EIO)?;
        Ok(match volume.ask(cx, |format, view| format.place(&file.node, index, view))? {
            Place::Hole => Extent::Hole { pages: 1 },
            Place::Made => Extent::Made,
            Place::Device { offset, pages } => {
                let at = offset.checked_add(volume.on().bytes().start).ok_or(Errno::EUCLEAN)?;
                Extent::On { device: self.device, sector: at / SECTOR, pages }
            }
        })
    }

    fn make(&self, index: u32, to: &mut Writer<'_>, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        let volume = file.volume.upgrade(cx).map_err(|_| Errno::EIO)?;
        let offset = u64::from(index) * PAGE;
        let mut bytes = vec![0; PAGE_SIZE];
        let len = volume.ask(cx, |format, view| format.fill(&file.node, offset, &mut bytes, view))?;
        Reader::from(&bytes[..len]).copy_to(to)?;
        Ok(())
    }

    fn store(&self, index: u32, frame: &UFrame, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        let volume = file.volume.upgrade(cx).map_err(|_| Errno::EIO)?;
        let offset = u64::from(index) * PAGE;
        let parts = volume.ask(cx, |format, view| format.store(&file.node, offset..offset + PAGE, view))?;
        let bytes = volume.on().bytes();
        let disk = volume.on().disk.cache(cx);
        for (from, to, len) in parts {
            let within = (from - offset) as usize;
            let (mut reader, mut done) = (frame.reader(within..within + len as usize), 0);
            while done < len {
                done += disk.write_at_once(bytes.start + to + done, bytes.end, &mut reader, cx)? as u64;
            }
        }
        Ok(())
    }

    fn version(&self) -> u64 {
        self.file.with(|file| file.version.load(Ordering::Relaxed))
    }

    fn writes_back(&self, _cx: &Cx) -> bool {
        self.file.with(|file| {
            if file.is_written {
                file.note_dirty(block::cache::has_many_dirty());
            }
            file.is_written
        })
    }

    fn is_written(&self) -> bool {
        self.file.with(|file| file.is_written)
    }

    fn device(&self) -> &'static dyn BlockDevice {
        self.device
    }
}

/// Off until it is right: with it, a read beside punches and cuts of the file saw other data or EIO in one run of ten (check `files/direct_beside_holes` on ext4, two cores).
const DELAYS: bool = false;

/// Whether files of a volume may get blocks later than their pages become dirty, or than a device is told to write them.
fn delays<F: Format>(volume: &Volume<F>) -> bool {
    DELAYS && F::HAS_HOLES && u64::from(volume.format.block_bytes()) == PAGE
}

/// How many blocks a file takes at most for bytes that it gets at its end.
fn needed(growth: &Growth, bytes: Range<u64>) -> u64 {
    let count = (bytes.end - bytes.start).div_ceil(PAGE);
    count + growth.tree_blocks(u32::try_from(count).unwrap_or(u32::MAX))
}

fn page_index(offset: u64) -> Result<u32> {
    u32::try_from(offset / PAGE).map_err(|_| Errno::EFBIG)
}

/// The pages that have bytes of a range.
fn pages_of(range: Range<u64>) -> Result<Range<u32>> {
    Ok(page_index(range.start)?..page_index(range.end.saturating_sub(1))? + 1)
}

/// The new blocks of a file are shown by the next commit.
fn note_data(state: &mut State, number: u64, content: &TempRc<'_, Cache>) {
    state.data.insert(number, content.name());
}

impl<F: Format> Node<F> {
    fn content<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Cache>> {
        Ok(self.content.as_ref().ok_or(Errno::EINVAL)?.get(cx))
    }

    fn size(&self) -> u64 {
        self.file.with(Stored::size)
    }

    /// The volume, if the file may be changed.
    fn volume_to_change<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Volume<F>>> {
        if !self.file.with(|file| file.is_written) {
            return Err(Errno::EROFS);
        }
        self.volume(cx)
    }

    pub(super) fn read_content(&self, offset: u64, to: &mut Writer<'_>, keep: Keep<'_>, cx: &Cx) -> Step<usize> {
        self.content(cx)?.read(offset, self.size(), to, keep, cx)
    }

    /// Has the disk read whole pages into frames of a program's, if it can: how many bytes.
    pub(super) fn read_past(
        &self,
        offset: u64,
        frames: impl FnOnce() -> Option<(u32, Vec<UFrame>)>,
        passing: &mut DirectRead,
        cx: &Cx,
    ) -> Step<usize> {
        Ok(self.content(cx)?.read_past(offset, frames, passing, cx)? as usize * PAGE_SIZE)
    }

    /// What [`write_past`](Self::write_past) has the disk write passes.
    pub(super) fn passed(&self, cx: &Cx) -> Option<WeakRc<Cache>> {
        Some(self.content(cx).ok()?.name())
    }

    /// Has the disk write whole pages from frames of a program's, from page `first` on, if all of them have blocks: how many bytes. Whoever syncs the file waits for it.
    pub(super) fn write_past(&self, this: &Inode, first: u32, frames: Vec<UFrame>, cx: &Cx) -> Step<usize> {
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
    fn write_past_new(
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

    /// Takes what is on the disk of a range out of the cache.
    pub(super) fn forget_content(&self, range: Range<u64>, cx: &Cx) {
        if let Ok(content) = self.content(cx) {
            // Of much, the rest goes when memory is needed.
            let _ = content.forget(range, false, cx);
        }
    }

    pub(super) fn write_content(
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
    fn write_some(&self, volume: &Volume<F>, range: Range<u64>, from: &mut Reader<'_>, cx: &Cx) -> Step<(u64, bool)> {
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

    /// Appends bytes to pages that get their blocks later: how many, and whether `from` is where it should be for the next ones. `None` where they must get blocks now. `writing` is locked.
    fn append_delayed(
        &self,
        volume: &Volume<F>,
        content: &TempRc<'_, Cache>,
        range: Range<u64>,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<Option<(u64, bool)>> {
        let (at, file) = (range.start, self.file.get(cx));
        let start = if file.is_delayed() { file.delayed_from() } else { at };
        if !file.is_delayed() {
            if !at.is_multiple_of(PAGE) {
                return Ok(None);
            }
            let growth = volume.ask(cx, |format, view| format.delayed(&file.node, view))?;
            *file.growth.lock(cx) = growth;
        }
        let Some(growth) = *file.growth.lock(cx) else { return Ok(None) };
        let end = range.end.min((at / PAGE + DELAYED_AT_ONCE) * PAGE).min(start + u64::from(growth.most()) * PAGE);
        if end <= at {
            return Ok(None);
        }
        let promised = file.promised.load(Ordering::Relaxed);
        let more = needed(&growth, start..end).saturating_sub(promised);
        if more > 0 && !volume.promise(more, cx)? {
            return Ok(None);
        }
        file.promised.store(promised + more, Ordering::Relaxed);
        file.delayed_from.store(start, Ordering::Release);
        let copied = content.append(at, end, from, cx);
        let reached = at + *copied.as_ref().unwrap_or(&0) as u64;
        if reached == start {
            file.delayed_from.store(NOT_DELAYED, Ordering::Release);
        }
        file.size.store(reached, Ordering::Relaxed);
        file.keep_promised(needed(&growth, start..reached));
        let copied = copied? as u64;
        file.note_dirty(block::cache::has_many_dirty());
        Ok(Some((copied, copied == end - at)))
    }

    /// Gives blocks to what has none yet, as much as one change can. `writing` is locked.
    fn allocate_delayed(&self, volume: &Volume<F>, content: &TempRc<'_, Cache>, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        let (start, end) = (file.delayed_from(), file.size());
        let change = Change::Allocate(file.number, start..end, Allocation::Written);
        let own = file.promised.load(Ordering::Relaxed);
        let growth = (*file.growth.lock(cx)).ok_or(Errno::EIO)?;
        let outcome = volume.change_promised(cx, &change, own, |done, state| {
            if done.reached <= start {
                return Err(Errno::ENOSPC.into());
            }
            note_data(state, file.number, content);
            if done.reached < end {
                file.delayed_from.store(done.reached, Ordering::Release);
                file.keep_promised(needed(&growth, done.reached..end).min(own));
            } else {
                file.delayed_from.store(NOT_DELAYED, Ordering::Release);
                file.keep_promised(0);
            }
            file.take(done);
            Ok(())
        });
        match outcome {
            Err(Stop::Error(error)) => {
                // The file system contradicts itself, or is not written any more. What is in memory stays there; whoever syncs the file is told.
                file.keep_promised(0);
                content.note_unwritten(error, cx);
                Err(error.into())
            }
            outcome => outcome.map(drop),
        }
    }

    /// Gives bytes blocks, whose pages are here and become dirty: up to where.
    fn allocate_to_write(
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
    fn fill_gap(&self, volume: &Volume<F>, content: &TempRc<'_, Cache>, until: u64, cx: &Cx) -> Step<()> {
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
    fn fill_last_page(&self, volume: &Volume<F>, size: u64, cx: &Cx) -> Step<()> {
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
    fn lengthen(&self, volume: &Volume<F>, size: u64, cx: &Cx) -> Step<()> {
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

    pub(super) fn set_content_size(&self, this: &Inode, size: u64, cx: &Cx) -> Step<()> {
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

    /// Locks `writing`, with nothing left of what others have begun.
    ///
    /// # Errors
    /// Whatever a step may say, while there is.
    pub(super) fn lock_content<'a>(&'a self, volume: &Volume<F>, cx: &'a Cx) -> Step<SpinGuard<'a, ()>> {
        let writing = self.lock_delayed(volume, cx)?;
        let file = self.file.get(cx);
        let mut time_slice = TimeSlice::default();
        while file.is_delayed() {
            self.allocate_delayed(volume, &self.content(cx)?, cx)?;
            if time_slice.is_over() && file.is_delayed() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(writing)
    }

    /// The same for what does not mind that a part of the file has no blocks yet.
    fn lock_delayed<'a>(&'a self, volume: &Volume<F>, cx: &'a Cx) -> Step<SpinGuard<'a, ()>> {
        finish_unmapping(self, cx)?;
        let writing = self.writing.lock(cx);
        if self.mapped.is_being_unmapped() {
            // By another, just now.
            return Err(Stop::Pause(Interruption::Never));
        }
        self.finish_cutting(volume, cx)?;
        Ok(writing)
    }

    /// As [`lock_content`](Self::lock_content), for a change after which the file ends at `new_end` of its present length, or where it ended before: then no mapping may write to its last page, if that is to have more blocks than it has.
    ///
    /// # Errors
    /// As for [`lock_content`](Self::lock_content).
    fn lock_to_grow<'a>(
        &'a self,
        volume: &Volume<F>,
        new_end: impl Fn(u64) -> u64,
        cx: &'a Cx,
    ) -> Step<SpinGuard<'a, ()>> {
        let has_parts = F::HAS_HOLES && u64::from(volume.format.block_bytes()) < PAGE;
        let must_unmap = || {
            let size = self.size();
            let is_within_page = has_parts && !size.is_multiple_of(PAGE) && new_end(size) > size;
            Ok::<_, Errno>(is_within_page && self.content(cx)?.is_page_mapped_to_write(page_index(size)?, cx))
        };
        let writing = self.lock_content(volume, cx)?;
        if !must_unmap()? {
            return Ok(writing);
        }
        drop(writing);
        self.end_mapped(cx)?;
        let writing = self.lock_content(volume, cx)?;
        // Somebody may have written to it again meanwhile.
        if must_unmap()? { Err(Stop::Pause(Interruption::KillOnly)) } else { Ok(writing) }
    }

    /// Goes on with what a cut has left, if there is something. `writing` is locked, and the pages are unmapped.
    fn finish_cutting(&self, volume: &Volume<F>, cx: &Cx) -> Step<()> {
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
    fn drop_pages(&self, pages: Range<u64>, time_slice: &mut TimeSlice, cx: &Cx) -> Step<()> {
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

    pub(super) fn allocate_content(
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

    /// Makes a hole of a range: what is only a part of a page is cleared. `writing` is locked; what was mapped of it is still to be taken out of mappings.
    fn punch(&self, volume: &Volume<F>, range: Range<u64>, time_slice: &mut TimeSlice, cx: &Cx) -> Step<()> {
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

    fn punch_pages(&self, volume: &Volume<F>, pages: Range<u64>, time_slice: &mut TimeSlice, cx: &Cx) -> Step<()> {
        self.drop_pages(pages.clone(), time_slice, cx)?;
        let file = self.file.get(cx);
        let content = self.content(cx)?;
        loop {
            let change = Change::Punch(file.number, pages.start * PAGE..pages.end * PAGE);
            let (done, _) = volume.change(cx, &change, |done, _| {
                file.moves();
                // A fault may have brought pages back.
                if content.cut(pages.start as u32..pages.end as u32, cx)?.is_some() {
                    return Err(Stop::Again);
                }
                file.take(done);
                Ok(())
            })?;
            if !done.has_more {
                return Ok(());
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
    }

    /// Clears bytes of one page, as far as they have blocks.
    fn clear(&self, volume: &Volume<F>, range: Range<u64>, cx: &Cx) -> Step<()> {
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

    pub(super) fn seek_content(&self, to: Lseek, cx: &Cx) -> Step<u64> {
        let (from, wants_data) = match to {
            Lseek::Data(from) => (from, true),
            Lseek::Hole(from) => (from, false),
            _ => return Err(Errno::EINVAL.into()),
        };
        let file = self.file.get(cx);
        // Where it has no blocks yet, all is data.
        let delayed = file.delayed_from();
        let size = file.size();
        let mut at = u64::try_from(from).ok().filter(|from| *from < size).ok_or(Errno::ENXIO)?;
        let volume = self.volume(cx)?;
        loop {
            if at >= delayed {
                return Ok(if wants_data { at } else { size });
            }
            match volume.ask(cx, |format, view| format.seek(&file.node, at, wants_data, view))? {
                Ok(found) if found < size => return Ok(found),
                Err(next) if next < size => at = next,
                _ if wants_data && delayed < size => return Ok(delayed),
                _ if wants_data => return Err(Errno::ENXIO.into()),
                // There is a hole behind every file.
                _ => return Ok(size),
            }
        }
    }

    /// Has pages read, all of them at once where the first is not there.
    pub(super) fn read_content_ahead(&self, pages: Range<u64>, cx: &Cx) -> Step<()> {
        let end = pages.end.min(self.size().div_ceil(PAGE));
        let (content, mut time_slice) = (self.content(cx)?, TimeSlice::default());
        for index in pages.start..end {
            let count = u32::try_from(end - index).unwrap_or(u32::MAX);
            content.page(page_index(index * PAGE)?, Wanted::Ahead(&ReadAhead::default(), count), cx)?;
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    /// Has no mapping write to the file without a word any more; whether there was one. Several may be at it: each goes on with what another has begun.
    pub(super) fn end_mapped(&self, cx: &Cx) -> Step<bool> {
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
    fn page_to_map(&self, index: u32, cx: &Cx) -> Step<UFrame> {
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

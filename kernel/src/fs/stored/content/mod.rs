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
//! *Holes.* A page is forgotten in the very change that takes its blocks, with the volume's state locked, and in no other moment: one that is dirty may be all that there is of what was written. Without it, others would read what the disk held there before, of whichever file.
//!
//! *Mappings.* Nothing says when a program writes to a page through a mapping. So pages that it can write to stay dirty; where the file is synchronised, the volume's task takes them out of all address spaces, so that whoever writes next says so by a fault, and then writes them.
//! A page can be written through a mapping only while all blocks of it up to the file's end hold what is written: the fault allocates them, or fails (SIGBUS). Where blocks are smaller than a page, a file that grows within such a page would get a hole in it. So the page is taken out of all address spaces before the
//! file grows ([`Node::lock_to_grow`]), and the next fault allocates what the page has then.
//!
//! Locks: `writing` is held over each step that changes the content; it comes before the inode's metadata, the volume's state, and the cache. Pages are taken from mappings without it, as it must not be held where
//! address spaces are reached for: what is to be taken is noted with it, and it is not locked again before that is done ([`Node::lock_content`]).

mod cutting;
mod delayed;
mod locking;
mod mapping;
mod reading;
mod writing;

use alloc::vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, UFrame, Writer};
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::format::{Done, Growth, Place};
use super::node::Node;
use super::state::{Desk, State};
use super::{Format, Volume};
use crate::block::{self, Backing, BlockDevice, Cache, Extent, SECTOR};
use crate::error::{Errno, Result};
use crate::step::Step;

const PAGE: u64 = PAGE_SIZE as u64;
/// Of a file that has all its blocks, where the part begins that has none.
const NOT_DELAYED: u64 = u64::MAX;

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

    /// What a change of its content has made of it, in the moment in which it becomes true, with `writing` locked: whoever else says what its length is may say so after another has appended to it. (A directory has no `writing`, and its tree is locked.)
    pub fn take(&self, done: &Done<F::Node>) {
        if let Some(now) = done.of(self.number).filter(|_| !self.is_delayed()) {
            self.size.store(now.size, Ordering::Relaxed);
        }
        self.take_blocks(done);
        self.moves();
    }

    /// The same of a change that leaves its content as it is.
    pub fn take_blocks(&self, done: &Done<F::Node>) {
        if let Some(now) = done.of(self.number) {
            self.sectors.store(now.blocks, Ordering::Relaxed);
        }
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
    pub(super) fn content<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Cache>> {
        Ok(self.content.as_ref().ok_or(Errno::EINVAL)?.get(cx))
    }

    pub(super) fn size(&self) -> u64 {
        self.file.with(Stored::size)
    }

    /// The volume, if the file may be changed.
    pub(super) fn volume_to_change<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Volume<F>>> {
        if !self.file.with(|file| file.is_written) {
            return Err(Errno::EROFS);
        }
        self.volume(cx)
    }
}

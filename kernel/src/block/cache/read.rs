//! Reading: pages that are asked of the device, as many ahead as are likely to be wanted.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame, Writer};
use refs::WeakRc;

use super::content::{Page, State};
use super::write::clear_end;
use super::{Cache, Extent, Kind, PAGE, Work, page_index};
use crate::block::{SECTOR, wait_async};
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

/// Bytes of a part of a page that is noted as sound: no file system's blocks are smaller.
const PART: usize = 1024;

/// So many pages are read ahead at most, where nobody says otherwise.
pub const MOST_AHEAD: u32 = 256;
/// So few are read ahead at first, when a second read follows a first.
const FIRST_AHEAD: u32 = 32;

/// What an open file has read, for what is read ahead of it. Several threads may change it at once: then some is read ahead that is not needed.
#[derive(Debug)]
pub struct ReadAhead {
    /// So many pages are read ahead at most.
    most: u32,
    /// The page that comes next if reading goes on.
    next: AtomicU32,
    /// So many pages are read ahead.
    window: AtomicU32,
    /// Up to here it was read ahead.
    end: AtomicU32,
}

/// How a page is wanted.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// With so many behind it, and those that come next.
    Ahead(&'a ReadAhead, u32),
    /// For this once: so many pages are wanted, and are not kept.
    Once(u32),
}

/// What a read leaves in the cache.
#[derive(Clone, Copy)]
pub enum Keep<'a> {
    /// What it read, and what was read ahead of it.
    Pages(&'a ReadAhead),
    /// No more than what was there before (O_DIRECT).
    Nothing,
}

impl Cache {
    /// The page of that index.
    ///
    /// # Errors
    /// `Absent` where it must come first; EIO if it could not be read; `NoMemory`.
    pub fn page(&self, index: u32, wanted: Wanted<'_>, cx: &Cx) -> Step<UFrame> {
        self.with_page(index, wanted, cx, |frame| Ok(frame.clone()))
    }

    /// Runs `f` on the page of that index, which stays what it is meanwhile.
    fn with_page<R>(&self, index: u32, wanted: Wanted<'_>, cx: &Cx, f: impl FnOnce(&UFrame) -> Step<R>) -> Step<R> {
        let mut content = self.content.lock(cx);
        match content.page(index).map(|page| page.state) {
            None => {
                drop(content);
                let (count, is_once) = match wanted {
                    Wanted::Ahead(ahead, count) => (ahead.missed(index, count), false),
                    Wanted::Once(count) => (count, true),
                };
                self.start_reading(index, count, is_once, cx)?;
                // What no device has to bring is here at once.
                let page = self.content.lock(cx).page(index).map(|page| page.state);
                match page {
                    Some(State::Clean) => self.with_page(index, wanted, cx, f),
                    _ => Err(self.absent(index.into(), cx)),
                }
            }
            Some(State::Reading) => Err(self.absent(index.into(), cx)),
            Some(State::Failed(error)) => {
                content.forget(index);
                Err(error.into())
            }
            Some(_) => {
                let Some(page) = content.pages.get_mut(index) else { return Err(Errno::EIO.into()) };
                page.was_used = true;
                let Some(frame) = &page.frame else { return Err(Errno::EIO.into()) };
                let outcome = f(frame);
                let is_done = outcome.is_ok();
                drop(content);
                if let (true, Wanted::Ahead(ahead, _)) = (is_done, wanted)
                    && let Some((first, count)) = ahead.found(index)
                {
                    // If it cannot be read ahead now, it is read when it is needed.
                    let _ = self.start_reading(first, count, false, cx);
                }
                outcome
            }
        }
    }

    /// Asks the device for up to `count` pages from `index` on: as many as are not there, lie together on it, and fit in a request.
    ///
    /// # Errors
    /// `Absent`: it has no room; `NoMemory`; EIO.
    pub(super) fn start_reading(&self, index: u32, count: u32, is_once: bool, cx: &Cx) -> Step<()> {
        let count = count.min(self.end().saturating_sub(index));
        if count == 0 {
            return Ok(());
        }
        let version = self.backing.version();
        let (device, sector, count) = match self.backing.locate(index, cx)? {
            Extent::On { device, sector, pages } => {
                (device, sector, count.min(pages).min(device.limits().most_frames as u32))
            }
            // It is here.
            Extent::Delayed => return Ok(()),
            extent @ (Extent::Hole { .. } | Extent::Made) => {
                let frame = self.new_frame(cx)?;
                // Fresh memory does not fault.
                let _ = frame.writer(0..PAGE_SIZE).zero(PAGE_SIZE);
                if matches!(extent, Extent::Made) {
                    self.backing.make(index, &mut frame.writer(0..PAGE_SIZE), cx)?;
                }
                let mut content = self.content.lock(cx);
                if content.is_free(index) && self.backing.version() == version {
                    content.enter(index, frame, State::Clean, is_once);
                }
                drop(content);
                self.waiting(index).wake_all();
                return Ok(());
            }
        };
        // Memory is found with nothing locked.
        let mut frames = Vec::with_capacity(count as usize);
        while frames.len() < count as usize {
            match self.new_frame(cx) {
                Ok(frame) => frames.push(frame),
                Err(_) if !frames.is_empty() => break,
                Err(stop) => return Err(stop),
            }
        }
        let mut content = self.content.lock(cx);
        if self.backing.version() != version {
            return Ok(());
        }
        // The length may be another by now: from here on it is this.
        let left = self.size().saturating_sub(u64::from(index) * PAGE);
        let most = left.div_ceil(PAGE).min(frames.len() as u64) as u32;
        let count = (index..index + most).take_while(|index| content.is_free(*index)).count() as u32;
        if count == 0 {
            return Ok(());
        }
        frames.truncate(count as usize);
        let bytes = left.min(u64::from(count) * PAGE);
        clear_end(frames.last(), bytes);
        for (at, frame) in (index..).zip(&frames) {
            content.enter(at, frame.clone(), State::Reading, is_once);
        }
        let work = Work { cache: self.name, pages: index..index + count, kind: Kind::Read };
        let sectors = (sector, bytes.div_ceil(SECTOR) as u32);
        self.submit(device, sectors, frames, work, content, cx).map_err(|stop| match stop {
            Stop::BlockOnDevice => self.absent(index.into(), cx),
            stop => stop,
        })
    }

    /// Has the first pages of a range come for a read that keeps nothing, before any is copied: after one that is absent all are copied again.
    ///
    /// # Errors
    /// `Absent` while one is under way; `NoMemory`; EIO.
    fn fetch(&self, pages: Range<u32>, cx: &Cx) -> Step<()> {
        let end = pages.end.min(pages.start.saturating_add(MOST_AHEAD));
        let mut at = pages.start;
        let mut asked = None;
        let mut under_way = None;
        while at < end {
            let content = self.content.lock(cx);
            let state = content.page(at).map(|page| page.state);
            drop(content);
            match state {
                // One that nobody enters after it was asked for has come to lie elsewhere: it is asked for when it is read.
                None if asked != Some(at) => {
                    asked = Some(at);
                    self.start_reading(at, end - at, true, cx)?;
                    continue;
                }
                Some(State::Reading) => under_way = Some(at),
                _ => {}
            }
            at += 1;
        }
        under_way.map_or(Ok(()), |index| Err(self.absent(index.into(), cx)))
    }

    /// Forgets those pages of a range that were read for a read that keeps nothing.
    fn forget_once(&self, pages: Range<u32>, cx: &Cx) {
        let mut content = self.content.lock(cx);
        for index in pages {
            let is_over = |page: &Page| page.is_once && page.state == State::Clean && !content.must_stay(page);
            if content.page(index).is_some_and(is_over) {
                content.forget(index);
            }
        }
    }

    /// Reads from `offset` on, up to `end`: how many bytes, 0 at the end.
    ///
    /// # Errors
    /// `Absent`; a fault of `to`; EIO; `NoMemory`.
    pub fn read(&self, offset: u64, end: u64, to: &mut Writer<'_>, how: Keep<'_>, cx: &Cx) -> Step<usize> {
        let end = end.min(self.size()).min(offset.saturating_add(to.remaining() as u64));
        if matches!(how, Keep::Nothing) && offset < end {
            self.fetch(page_index(offset)?..page_index(end - 1)? + 1, cx)?;
        }
        let mut at = offset;
        while at < end {
            let within = (at % PAGE) as usize;
            let len = (PAGE - within as u64).min(end - at) as usize;
            let left = to.remaining();
            let count = (end.div_ceil(PAGE) - at / PAGE).min(u64::from(u32::MAX)) as u32;
            let wanted = match how {
                Keep::Pages(ahead) => Wanted::Ahead(ahead, count),
                Keep::Nothing => Wanted::Once(count),
            };
            let index = page_index(at)?;
            let outcome =
                self.with_page(index, wanted, cx, |frame| Ok(frame.reader(within..within + len).copy_to(to)?));
            at += (left - to.remaining()) as u64;
            match outcome {
                Ok(_) => {}
                // Only a fault and the end make a read short. What was read of this one is here, and is read again.
                Err(stop @ Stop::Absent(_)) => return Err(stop),
                Err(_) if at > offset => break,
                Err(stop) => return Err(stop),
            }
        }
        if matches!(how, Keep::Nothing) && at > offset {
            self.forget_once(page_index(offset)?..page_index(at - 1)? + 1, cx);
        }
        Ok(at.saturating_sub(offset) as usize)
    }

    /// Whether these bytes, which are in one page, were found sound since they came from the device.
    pub fn is_sound(&self, offset: u64, len: usize, cx: &Cx) -> bool {
        let Some((index, parts)) = parts_of(offset, len) else { return false };
        self.content.lock(cx).page(index).is_some_and(|page| page.sound & parts == parts)
    }

    /// Notes that these bytes are sound, as their checksum says, so that it is not computed each time. It is forgotten with the page, and when it is written.
    pub fn note_sound(&self, offset: u64, len: usize, cx: &Cx) {
        let Some((index, parts)) = parts_of(offset, len) else { return };
        if let Some(page) = self.content.lock(cx).pages.get_mut(index) {
            page.sound |= parts;
        }
    }

    /// The page of that index, for a task of the kernel's own, which waits for it.
    ///
    /// # Errors
    /// EIO, ENOMEM.
    pub fn page_async(cache: WeakRc<Cache>, cx: &mut Cx, index: u32) -> Result<UFrame> {
        wait_async(cx, |_, cx| {
            let cache = cache.upgrade(cx).map_err(|_| Errno::EIO)?;
            cache.page(index, Wanted::Ahead(&ReadAhead::default(), 1), cx)
        })
    }
}

/// The index of a page, and which of its parts these bytes are; `None` if they are not whole parts of one page.
fn parts_of(offset: u64, len: usize) -> Option<(u32, u8)> {
    let within = (offset % PAGE) as usize;
    if len == 0 || !within.is_multiple_of(PART) || !len.is_multiple_of(PART) || within + len > PAGE_SIZE {
        return None;
    }
    let parts = (1 << (len / PART)) - 1;
    Some((page_index(offset).ok()?, parts << (within / PART)))
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self::of_at_most(MOST_AHEAD)
    }
}

impl ReadAhead {
    /// One that reads so many pages ahead at most; 0: none.
    pub fn of_at_most(most: u32) -> Self {
        let (next, window, end) = Default::default();
        ReadAhead { most: most.min(MOST_AHEAD), next, window, end }
    }

    /// The page of that index was looked for and is not there, and so many are wanted: how many pages are to be read from it on.
    fn missed(&self, index: u32, wanted: u32) -> u32 {
        let is_next = self.next.swap(index, Ordering::Relaxed) == index && index > 0 || index == 0;
        let window = match self.window.load(Ordering::Relaxed) {
            _ if !is_next => 0,
            0 => FIRST_AHEAD.min(self.most),
            window => (2 * window).min(self.most),
        };
        self.window.store(window, Ordering::Relaxed);
        let count = window.max(wanted).clamp(1, MOST_AHEAD);
        self.end.store(index.saturating_add(count), Ordering::Relaxed);
        count
    }

    /// The page of that index was read from: what is to be read ahead now, so that reading does not come to its end.
    fn found(&self, index: u32) -> Option<(u32, u32)> {
        let before = self.next.swap(index.saturating_add(1), Ordering::Relaxed);
        let (end, window) = (self.end.load(Ordering::Relaxed), self.window.load(Ordering::Relaxed));
        let is_next = before == index || before == index.saturating_add(1);
        if !is_next || window == 0 || index + window / 2 < end || index >= end {
            return None;
        }
        let window = (2 * window).min(self.most);
        self.window.store(window, Ordering::Relaxed);
        self.end.store(end.saturating_add(window), Ordering::Relaxed);
        Some((end, window))
    }
}

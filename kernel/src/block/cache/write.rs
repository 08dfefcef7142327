//! Writing: pages that become dirty, and are given to the device.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, UFrame};

use super::content::State;
use super::memory::{FEWER_DIRTY, is_exempt, is_over_limit};
use super::{Cache, Extent, Kind, PAGE, PAGE_SECTORS, ReadAhead, TO_WRITE, Wanted, Work, page_index};
use crate::block::{SECTOR, write_back};
use crate::error::Errno;
use crate::step::{Step, Stop};

impl Cache {
    /// Writes from `offset` on, up to `end`: how many bytes.
    ///
    /// # Errors
    /// `Absent`; a fault of `from`; EIO of a page of which a part is written and which cannot be read; `NoMemory`.
    pub fn write(&self, offset: u64, end: u64, from: &mut Reader<'_>, cx: &Cx) -> Step<usize> {
        if from.remaining() > 0 {
            self.check_room(offset, cx)?;
        }
        self.write_at_once(offset, end, from, cx)
    }

    /// Checks that there are not too many dirty pages for one more to be written.
    ///
    /// # Errors
    /// `Absent`.
    pub fn check_room(&self, offset: u64, cx: &Cx) -> Step<()> {
        if !is_over_limit() || is_exempt(cx) {
            return Ok(());
        }
        write_back::note_dirty(self, cx);
        Err(self.absent(TO_WRITE | (offset / PAGE), cx))
    }

    /// As [`write`](Self::write), however much is dirty: for who writes so that less is.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_at_once(&self, offset: u64, end: u64, from: &mut Reader<'_>, cx: &Cx) -> Step<usize> {
        let end = end.min(self.size()).min(offset.saturating_add(from.remaining() as u64));
        let mut at = offset;
        while at < end {
            match self.write_page(at, end, from, cx) {
                Ok(len) => at += len as u64,
                Err(_) if at > offset => break,
                Err(stop) => return Err(stop),
            }
        }
        if at > offset {
            write_back::note_dirty(self, cx);
        }
        Ok(at.saturating_sub(offset) as usize)
    }

    /// Writes from `offset` on, up to `end`, behind the present end, to pages that have no place yet ([`Extent::Delayed`]): how many bytes. The caller says afterwards that they are there, and has checked that there is room. A page that has bytes before `offset` is here.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn append(&self, offset: u64, end: u64, from: &mut Reader<'_>, cx: &Cx) -> Step<usize> {
        let mut at = offset;
        while at < end && from.remaining() > 0 {
            match self.append_page(at, end, from, cx) {
                Ok(len) => at += len as u64,
                Err(_) if at > offset => break,
                Err(stop) => return Err(stop),
            }
        }
        Ok((at - offset) as usize)
    }

    fn append_page(&self, at: u64, end: u64, from: &mut Reader<'_>, cx: &Cx) -> Step<usize> {
        let (index, within) = (page_index(at)?, (at % PAGE) as usize);
        let len = ((PAGE - within as u64).min(end - at) as usize).min(from.remaining());
        let left = from.remaining();
        let mut content = self.content.lock(cx);
        if let Some(page) = content.page(index) {
            match page.state {
                State::Dirty | State::Clean => {}
                _ => return Err(self.absent(index.into(), cx)),
            }
            let Some(frame) = page.frame.clone() else { return Err(Errno::EIO.into()) };
            let outcome = from.copy_to(&mut frame.writer(within..within + len));
            let copied = left - from.remaining();
            if copied == 0 {
                outcome?;
            }
            content.set(index, State::Dirty);
            return Ok(copied);
        }
        if content.passes(index) {
            return Err(self.absent(index.into(), cx));
        }
        drop(content);
        if within > 0 {
            return Err(Errno::EIO.into());
        }
        let frame = self.new_frame(cx)?;
        let outcome = from.copy_to(&mut frame.writer(0..len));
        let copied = left - from.remaining();
        if copied == 0 {
            outcome?;
        }
        // A frame of memory never faults.
        let _ = frame.writer(copied..PAGE_SIZE).zero(PAGE_SIZE - copied);
        self.content.lock(cx).enter(index, frame, State::Dirty, false);
        Ok(copied)
    }

    fn write_page(&self, at: u64, end: u64, from: &mut Reader<'_>, cx: &Cx) -> Step<usize> {
        let (index, within) = (page_index(at)?, (at % PAGE) as usize);
        let len = (PAGE - within as u64).min(end - at) as usize;
        let is_whole = within == 0 && len == self.page_len(index);
        let mut content = self.content.lock(cx);
        let state = content.page(index).map(|page| page.state);
        match state {
            Some(State::Reading) => return Err(self.absent(index.into(), cx)),
            Some(State::Failed(error)) => {
                content.forget(index);
                if !is_whole {
                    return Err(error.into());
                }
            }
            Some(state) => {
                let Some(page) = content.pages.get_mut(index) else { return Err(Errno::EIO.into()) };
                page.was_used = true;
                page.sound = 0;
                let Some(frame) = &page.frame else { return Err(Errno::EIO.into()) };
                let left = from.remaining();
                let outcome = from.copy_to(&mut frame.writer(within..within + len));
                let copied = left - from.remaining();
                if copied > 0 {
                    let is_written = matches!(state, State::Writing | State::Redirtied);
                    content.set(index, if is_written { State::Redirtied } else { State::Dirty });
                }
                return if copied > 0 { Ok(copied) } else { Ok(outcome?) };
            }
            None => {}
        }
        drop(content);
        if !is_whole {
            return Err(self.start_reading(index, 1, false, cx).err().unwrap_or_else(|| self.absent(index.into(), cx)));
        }
        let frame = self.new_frame(cx)?;
        // A page of which only a part could be copied is left as it is on the device.
        from.copy_to(&mut frame.writer(0..len))?;
        let _ = frame.writer(len..PAGE_SIZE).zero(PAGE_SIZE - len);
        let mut content = self.content.lock(cx);
        if content.passes(index) {
            return Err(self.absent(index.into(), cx));
        }
        if content.page(index).is_some() {
            // Somebody else was quicker: the next step finds it. What was copied from is read anew.
            return Err(Stop::Again);
        }
        content.enter(index, frame, State::Dirty, false);
        Ok(len)
    }

    /// Begins to write back dirty pages from `from` on, before `end`: the next index, or `None` if there are none.
    ///
    /// # Errors
    /// `BlockOnDevice`: the device has no room. EIO: it is gone, and they are given up, with a note.
    pub(in crate::block) fn start_writing(&self, from: u32, end: u32, cx: &Cx) -> Step<Option<u32>> {
        let most = self.device().limits().most_frames as u32;
        let Some(first) = self.content.lock(cx).dirty_run(from, end, 1).map(|run| run.start) else { return Ok(None) };
        let version = self.backing.version();
        let (device, sector, pages) = match self.backing.locate(first, cx)? {
            Extent::On { device, sector, pages } => (device, sector, pages),
            Extent::Delayed => return Ok(Some(first.saturating_add(1))),
            extent => return self.store(first, &extent, version, cx).map(Some),
        };
        let end = end.min(first.saturating_add(pages.min(most)));
        let mut content = self.content.lock(cx);
        // Somebody else may have begun with some of them.
        let Some(run) = content.dirty_run(first, end, most) else { return Ok(Some(first)) };
        if self.backing.version() != version {
            return Ok(Some(first));
        }
        let Some(left) = self.size().checked_sub(u64::from(run.start) * PAGE).filter(|left| *left > 0) else {
            // It was cut off just now.
            run.clone().for_each(|index| content.set(index, State::Clean));
            return Ok(Some(run.end));
        };
        let sector = sector + u64::from(run.start - first) * PAGE_SECTORS;
        let mut frames = Vec::with_capacity(run.len());
        for index in run.clone() {
            frames.extend(content.page(index).and_then(|page| page.frame.clone()));
            content.set(index, State::Writing);
        }
        let number = content.begin_write();
        let mut bytes = left.min(run.len() as u64 * PAGE);
        if self.backing.is_written() {
            // What a mapping has left behind the end is not to come back when the file grows.
            clear_end(frames.last(), bytes);
            bytes = run.len() as u64 * PAGE;
        }
        let work = Work { cache: self.name, pages: run.clone(), kind: Kind::Write(number) };
        let sectors = (sector, bytes.div_ceil(SECTOR) as u32);
        match self.submit(device, sectors, frames, work, content, cx) {
            Ok(()) => Ok(Some(run.end)),
            Err(Stop::Error(error)) => {
                self.give_up(run.clone(), error, cx);
                Ok(Some(run.end))
            }
            Err(stop) => Err(stop),
        }
    }

    /// Puts a dirty page where its owner wants it; the index behind it. What is nowhere is zeros, and stays where it is.
    fn store(&self, index: u32, extent: &Extent, version: u64, cx: &Cx) -> Step<u32> {
        let mut content = self.content.lock(cx);
        if self.backing.version() != version {
            return Ok(index);
        }
        let page = content.page(index).filter(|page| page.state == State::Dirty);
        let Some(frame) = page.and_then(|page| page.frame.clone()) else { return Ok(index) };
        if matches!(extent, Extent::Hole { .. }) || u64::from(index) * PAGE >= self.size() {
            content.set(index, State::Clean);
            return Ok(index.saturating_add(1));
        }
        content.set(index, State::Writing);
        let number = content.begin_write();
        clear_end(Some(&frame), self.page_len(index) as u64);
        drop(content);
        let outcome = self.backing.store(index, &frame, cx);
        let mut content = self.content.lock(cx);
        content.writes.retain(|other| *other != number);
        match (content.page(index).map(|page| page.state), outcome) {
            (Some(State::Writing), Ok(())) => content.written(index),
            (Some(_), _) => content.set(index, State::Dirty),
            (None, _) => {}
        }
        drop(content);
        outcome?;
        // Not where it waits itself: it would wake itself for ever.
        self.wake(index..index + 1);
        self.written.wake_all();
        if !is_over_limit() {
            FEWER_DIRTY.wake_all();
        }
        Ok(index.saturating_add(1))
    }

    /// Dirty pages cannot be written, as the device is gone.
    fn give_up(&self, pages: Range<u32>, error: Errno, cx: &Cx) {
        let work = Work { cache: self.name, pages: pages.clone(), kind: Kind::Write(u64::MAX) };
        let mut content = self.content.lock(cx);
        for index in pages {
            if content.page(index).is_some_and(|page| page.state == State::Dirty) {
                content.set(index, State::Writing);
            }
        }
        drop(content);
        self.completed(&work, Err(error), cx);
    }

    /// The page of that index, to be written to: zeros where it lies behind the end.
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    pub fn page_to_write(&self, index: u32, cx: &Cx) -> Step<UFrame> {
        let version = self.backing.version();
        if u64::from(index) * PAGE >= self.size() && self.content.lock(cx).page(index).is_none() {
            let frame = self.new_frame(cx)?;
            // Fresh memory does not fault.
            let _ = frame.writer(0..PAGE_SIZE).zero(PAGE_SIZE);
            let mut content = self.content.lock(cx);
            if content.page(index).is_none() && self.backing.version() == version {
                content.enter(index, frame, State::Clean, false);
            }
        }
        self.page(index, Wanted::Ahead(&ReadAhead::default(), 1), cx)
    }

    /// Makes pages of a range dirty that are here already, all of them or none.
    ///
    /// # Errors
    /// `Again`: one is not, or no longer.
    pub fn make_dirty(&self, pages: Range<u32>, cx: &Cx) -> Step<()> {
        let mut content = self.content.lock(cx);
        let is_here =
            |index: &u32| content.page(*index).is_some_and(|p| !matches!(p.state, State::Reading | State::Failed(_)));
        if !pages.clone().all(|index| is_here(&index)) {
            return Err(Stop::Again);
        }
        for index in pages {
            match content.page(index).map(|page| page.state) {
                Some(State::Writing) => content.set(index, State::Redirtied),
                Some(State::Clean) => content.set(index, State::Dirty),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Clears what is behind the end of a file of so many bytes, which is in its last page.
pub(super) fn clear_end(last: Option<&UFrame>, bytes: u64) {
    if let (Some(last), len @ 1..) = (last, (bytes % PAGE) as usize) {
        // A frame of memory never faults.
        let _ = last.writer(len..PAGE_SIZE).zero(PAGE_SIZE - len);
    }
}

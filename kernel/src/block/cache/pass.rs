//! What passes a cache: pages that go between the device and memory which is not the cache's, such as a program's (O_DIRECT).
//!
//! They are in the cache neither before nor meanwhile nor afterwards. Whoever wants to have them there, or to take their blocks away, waits until they have passed; so all see the same. What is in the cache and
//! cannot be given up does not pass: it is copied, as it always can be.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::UFrame;
use refs::SpinGuard;

use super::content::{Content, State};
use super::{Cache, Extent, PAGE, PAGE_SECTORS, Work};
use crate::block::Operation;
use crate::error::Result;
use crate::step::{Step, Stop};

/// What passes for a read that waits for it: its number, the first page, and how many. It begins as nothing.
#[derive(Debug, Default)]
pub struct DirectRead(Option<(u64, u32, u32)>);

impl Cache {
    /// Has the device read pages into frames that are not the cache's, and waits for it: how many; 0 where they cannot pass, or could not be read. `frames` says into which, and which page is the first.
    ///
    /// # Errors
    /// `Absent`: it is run again with the same `passing`.
    pub fn read_past(
        &self,
        frames: impl FnOnce() -> Option<(u32, Vec<UFrame>)>,
        passing: &mut DirectRead,
        cx: &Cx,
    ) -> Step<u32> {
        if let Some((number, first, count)) = passing.0 {
            let mut content = self.content.lock(cx);
            if content.passing.iter().any(|(other, _)| *other == number) {
                return Err(self.absent(first.into(), cx));
            }
            passing.0 = None;
            let failed = content.not_passed.iter().position(|other| *other == number);
            failed.map(|at| content.not_passed.swap_remove(at));
            return Ok(if failed.is_some() { 0 } else { count });
        }
        let Some((first, frames)) = frames() else { return Ok(0) };
        let (number, count) = self.pass(Operation::Read, first, frames, cx)?;
        if count == 0 {
            return Ok(0);
        }
        passing.0 = Some((number, first, count));
        Err(self.absent(first.into(), cx))
    }

    /// Has the device write pages from `first` on that are not the cache's: how many; 0 where they cannot pass. A [`sync`](Self::sync) waits for it.
    ///
    /// # Errors
    /// `Absent`.
    pub fn write_past(&self, first: u32, frames: Vec<UFrame>, cx: &Cx) -> Step<u32> {
        Ok(self.pass(Operation::Write, first, frames, cx)?.1)
    }

    /// How many pages from `first` on, of so many, can pass now: they are not here, or are as on the device.
    pub fn passable(&self, first: u32, count: usize, cx: &Cx) -> u32 {
        let most = count.min(self.device().limits().most_frames) as u32;
        let content = self.content.lock(cx);
        content.passable(first..first.saturating_add(most)) - first
    }

    /// As [`write_past`](Self::write_past), to where the caller says: all of them or none. They may lie behind the present end.
    ///
    /// # Errors
    /// `Again`: they cannot pass, or no longer. `Absent`: the device has no room.
    pub fn write_past_to(&self, sector: u64, first: u32, frames: Vec<UFrame>, cx: &Cx) -> Step<()> {
        let pages = first..first + frames.len() as u32;
        let mut content = self.content.lock(cx);
        if content.passable(pages.clone()) < pages.end {
            return Err(Stop::Again);
        }
        while let Some(index) = content.pages.next(first).map(|(index, _)| index).filter(|index| *index < pages.end) {
            content.forget(index);
        }
        let number = content.begin_write();
        content.passing.push((number, pages.clone()));
        let sectors = (sector, frames.len() as u32 * PAGE_SECTORS as u32);
        let work = Work { cache: self.name, pages, write: None, passes: Some((Operation::Write, number)) };
        let submitted = self.submit(self.device(), Operation::Write, sectors, frames, work, content, cx);
        submitted.map_err(|stop| match stop {
            Stop::BlockOnDevice => self.absent(first.into(), cx),
            stop => stop,
        })
    }

    /// Begins to have pages pass: the number of that, and how many.
    fn pass(&self, operation: Operation, first: u32, mut frames: Vec<UFrame>, cx: &Cx) -> Step<(u64, u32)> {
        let version = self.backing.version();
        let Extent::On { device, sector, pages } = self.backing.locate(first, cx)? else { return Ok((0, 0)) };
        let most = frames.len().min(pages as usize).min(device.limits().most_frames) as u32;
        let whole = u32::try_from(self.size() / PAGE).unwrap_or(u32::MAX);
        let mut content = self.content.lock(cx);
        if self.backing.version() != version {
            return Err(Stop::Again);
        }
        let mut end = first;
        while end < whole.min(first.saturating_add(most)) {
            if content.passes(end) {
                if end > first {
                    break;
                }
                return Err(self.absent(end.into(), cx));
            }
            match content.page(end) {
                None => {}
                Some(page) if page.state == State::Clean && !content.must_stay(page) => content.forget(end),
                Some(_) => break,
            }
            end += 1;
        }
        let count = end - first;
        if count == 0 {
            return Ok((0, 0));
        }
        frames.truncate(count as usize);
        let number = content.begin_write();
        content.passing.push((number, first..end));
        let work = Work { cache: self.name, pages: first..end, write: None, passes: Some((operation, number)) };
        let sectors = (sector, count * PAGE_SECTORS as u32);
        let submitted = self.submit(device, operation, sectors, frames, work, content, cx);
        submitted.map(|()| (number, count)).map_err(|stop| match stop {
            Stop::BlockOnDevice => self.absent(first.into(), cx),
            stop => stop,
        })
    }

    /// Pages have passed, or could not.
    pub(super) fn passed(
        &self,
        operation: Operation,
        number: u64,
        pages: Range<u32>,
        outcome: Result<()>,
        mut content: SpinGuard<'_, Content>,
    ) {
        content.writes.retain(|other| *other != number);
        content.passing.retain(|(other, _)| *other != number);
        match (operation, outcome) {
            (_, Ok(())) => {}
            (Operation::Read, Err(_)) => content.not_passed.push(number),
            (_, Err(error)) => self.note_failure(error),
        }
        drop(content);
        self.wake(pages);
        self.written.wake_all();
    }
}

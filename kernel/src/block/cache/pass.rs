//! What passes a cache: pages that go between the device and memory which is not the cache's, such as a program's (O_DIRECT).
//!
//! They are in the cache neither before nor meanwhile nor afterwards. Whoever wants to have them there, or to take their blocks away, waits until they have passed; so all see the same. What is in the cache and
//! cannot be given up does not pass: it is copied, as it always can be.
//!
//! The device has the memory until they have passed, whatever becomes of the call. So a call that ends sooner, such as one whose descriptor was closed, waits for that before the program goes on ([`DirectRead::end_async`], [`Cache::wait_passed_async`]); unless the program ends.

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::UFrame;
use refs::{SpinLock, StrongRc, WaitList, Waker, WeakRc};

use super::content::State;
use super::{Cache, Extent, Kind, PAGE, PAGE_SECTORS, Work};
use crate::error::Result;
use crate::step::{Caller, Patience, Step, Stop, complete_async};

/// What is read past a cache, and how that ended.
///
/// Owner: whoever waits for it. If that ends sooner, nobody learns how it ended.
pub(super) struct Passage {
    outcome: SpinLock<Option<Result<()>>>,
    done: WaitList,
}

/// Tells how it ended.
pub(super) fn passed(passage: WeakRc<Passage>, outcome: Result<()>, cx: &Cx) {
    if let Ok(passage) = passage.upgrade(cx) {
        *passage.outcome.lock(cx) = Some(outcome);
        passage.done.wake_all();
    }
}

impl Passage {
    /// Whether it was read.
    ///
    /// # Errors
    /// `BlockOnDevice`: it is under way.
    fn poll(&self, waker: Option<Waker>, cx: &Cx) -> Step<bool> {
        if let Some(waker) = waker {
            self.done.register(waker, cx);
        }
        self.outcome.lock(cx).map(|outcome| outcome.is_ok()).ok_or(Stop::BlockOnDevice)
    }
}

/// What passes for a read that waits for it. It begins as nothing.
#[derive(Default)]
pub struct DirectRead(Option<UnderWay>);

struct UnderWay {
    passage: StrongRc<Passage>,
    first: u32,
    count: u32,
}

impl DirectRead {
    /// Whether a device reads for it.
    pub fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until no device reads for it any more, whatever it has read. Only the end of the caller ends that.
    pub fn end_async<C: Caller>(self, cx: &mut Cx, me: &mut C) {
        if let Some(UnderWay { passage, .. }) = self.0 {
            // That of the caller's end is all that it can fail with.
            let _ = complete_async(cx, me, Patience::Forever, |cx, _, waker| passage.get(cx).poll(waker, cx));
        }
    }
}

impl Cache {
    /// Has the device read pages from `offset` on into frames that are not the cache's, and waits for it: how many; 0 where they cannot pass, or could not be read. `frames` says into which, and which page is the first.
    ///
    /// # Errors
    /// `Absent`: it is run again with the same `passing`. If the offset is another one by then, what was read is forgotten.
    pub fn read_past(
        &self,
        offset: u64,
        frames: impl FnOnce() -> Option<(u32, Vec<UFrame>)>,
        passing: &mut DirectRead,
        cx: &Cx,
    ) -> Step<u32> {
        if let Some(UnderWay { passage, first, count }) = &passing.0 {
            let (first, count) = (*first, *count);
            let Ok(is_read) = passage.get(cx).poll(None, cx) else { return Err(self.absent(first.into(), cx)) };
            passing.0 = None;
            if u64::from(first) * PAGE == offset {
                return Ok(if is_read { count } else { 0 });
            }
        }
        let Some((first, frames)) = frames() else { return Ok(0) };
        let passage = StrongRc::new(Passage { outcome: SpinLock::new(None), done: WaitList::new() });
        let name = passage.downgrade();
        let count = self.pass(first, frames, |number| Kind::ReadPast(number, name), cx)?;
        if count == 0 {
            return Ok(0);
        }
        passing.0 = Some(UnderWay { passage, first, count });
        Err(self.absent(first.into(), cx))
    }

    /// Has the device write pages from `first` on that are not the cache's: how many; 0 where they cannot pass. A [`sync`](Self::sync) waits for it.
    ///
    /// # Errors
    /// `Absent`.
    pub fn write_past(&self, first: u32, frames: Vec<UFrame>, cx: &Cx) -> Step<u32> {
        self.pass(first, frames, Kind::WritePast, cx)
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
        let work = Work { cache: self.name, pages, kind: Kind::WritePast(number) };
        let submitted = self.submit(self.device(), sectors, frames, work, content, cx);
        submitted.map_err(|stop| match stop {
            Stop::BlockOnDevice => self.absent(first.into(), cx),
            stop => stop,
        })
    }

    /// Waits until all that passes now has passed, or could not. Only the end of the caller ends that.
    pub fn wait_passed_async<C: Caller>(cache: WeakRc<Cache>, cx: &mut Cx, me: &mut C) {
        let mut end = None;
        // That of the caller's end is all that it can fail with.
        let _ = complete_async(cx, me, Patience::Forever, |cx, _, waker| {
            // Nothing passes one that is gone: whoever takes blocks away waits for what passes, and so does the end of a file system.
            let Ok(cache) = cache.upgrade(cx) else { return Ok(()) };
            if let Some(waker) = waker {
                cache.written.register(waker, cx);
            }
            let content = cache.content.lock(cx);
            let end = *end.get_or_insert(content.next_write);
            if content.passing.iter().any(|(number, _)| *number < end) { Err(Stop::BlockOnDevice) } else { Ok(()) }
        });
    }

    /// Begins to have pages pass: how many.
    fn pass(&self, first: u32, mut frames: Vec<UFrame>, kind: impl FnOnce(u64) -> Kind, cx: &Cx) -> Step<u32> {
        let version = self.backing.version();
        let Extent::On { device, sector, pages } = self.backing.locate(first, cx)? else { return Ok(0) };
        let most = frames.len().min(pages as usize).min(device.limits().most_frames) as u32;
        let mut content = self.content.lock(cx);
        if self.backing.version() != version {
            return Err(Stop::Again);
        }
        let whole = u32::try_from(self.size() / PAGE).unwrap_or(u32::MAX);
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
            return Ok(0);
        }
        frames.truncate(count as usize);
        let number = content.begin_write();
        content.passing.push((number, first..end));
        let work = Work { cache: self.name, pages: first..end, kind: kind(number) };
        let sectors = (sector, count * PAGE_SECTORS as u32);
        let submitted = self.submit(device, sectors, frames, work, content, cx);
        submitted.map(|()| count).map_err(|stop| match stop {
            Stop::BlockOnDevice => self.absent(first.into(), cx),
            stop => stop,
        })
    }
}

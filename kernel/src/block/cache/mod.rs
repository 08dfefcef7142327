//! [`Cache`]: the page cache of a device, or of whatever else has its content on one.
//!
//! A page is looked for by its index, in steps: one that is not there is asked of the device, and the step says `Absent` until it has come. Where the pages of an index are on which device says a [`Backing`]: a
//! disk's is the disk itself, a file's is what its file system says.
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | a cache, where its content is, and what devices have done |
//! | `content` | the pages, and how their states change |
//! | `read`, `write`, `mapped` | how pages come, become dirty, and are written through mappings |
//! | `pass` | what goes between the device and memory that is not the cache's |
//! | `sync` | waiting until what was written is on the device |
//! | `memory` | how much all caches have, and how some of it is had back |
//!
//! | state of a page | meaning |
//! | --- | --- |
//! | being read | the device writes it; nobody else has it |
//! | clean | as on the device. It is given up when memory is needed |
//! | dirty | newer than on the device |
//! | being written | the device reads it; it may be written to meanwhile, and is dirty again then |
//! | failed | it could not be read: whoever asks next is told so, once |
//!
//! *Writing back.* A page becomes dirty by [`write`](Cache::write). A task writes back what has been dirty for [`OLD`] nanoseconds, and sooner where more than a twentieth of memory is dirty. Beyond a tenth, writers wait. [`sync`](Cache::sync) writes
//! a range and waits for it. A page that could not be written is clean afterwards all the same, and what it held is lost with it when it is given up; that this happened is noted, and each open file is told of it once, at its next sync.
//!
//! *Memory.* Clean pages count as free: [`give_back`] takes them away where an allocation finds none, the ones that nobody has looked at for a round first.
//!
//! Owner: a cache is owned by what it is the content of. Its pages are its own; those that are under way are the device's as well until it is done. Its end gives up all pages, which takes time for each (a disk's never ends). Those who wait for a page, or for one that is written, are woken when that
//! happens, whatever the outcome.
//!
//! Locks: `content` is taken before a device's queue, never with a copy to or from user memory longer than a page; and by allocations that find no memory, if it is free.

mod content;
mod mapped;
mod memory;
mod pass;
mod read;
mod sync;
#[cfg(test)]
mod tests;
mod write;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame, Writer};
use refs::{Gone, SpinGuard, SpinLock, StrongRc, WaitList, Waker, WeakRc};

use self::content::{Content, State};
pub(super) use self::memory::background_limit;
use self::memory::{CACHES, CLEAN, DIRTY, FEWER_DIRTY, TAKEN_AT_ONCE, is_over_limit, name_number};
pub use self::memory::{clean_pages, dirty_pages, exempt, give_back, has_many_dirty};
pub use self::pass::DirectRead;
use self::pass::{Passage, passed};
pub use self::read::{Keep, MOST_AHEAD, ReadAhead, Wanted};
pub use self::sync::{Depth, SyncProgress, VolumeSync};
use super::{BlockDevice, Operation, Owner, Refused, Request, SECTOR};
use crate::error::{Errno, Result};
use crate::step::{Absent, Source, Step, Stop};

const PAGE: u64 = PAGE_SIZE as u64;
/// Sectors of a page.
pub const PAGE_SECTORS: u64 = PAGE / SECTOR;
/// What has been dirty for so many nanoseconds is written back.
pub const OLD: u64 = 5_000_000_000;
/// So many pages are forgotten at once.
const CUT_AT_ONCE: usize = 256;
/// Those who wait for pages wait in so many lists.
const LISTS: usize = 16;

/// Where some pages are.
pub enum Extent {
    /// On a device, from a sector on, one behind the other.
    On {
        /// Which device.
        device: &'static dyn BlockDevice,
        /// Where the first page begins.
        sector: u64,
        /// How many pages at most lie there one behind the other: at least one.
        pages: u32,
    },
    /// Nowhere: so many pages are zeros.
    Hole {
        /// At least one.
        pages: u32,
    },
    /// Not as it is, such as where it is compressed: [`Backing::make`] makes one page.
    Made,
    /// Nowhere yet: it is dirty, and stays so until its owner has found a place for it.
    Delayed,
}

/// Where the content of a cache is.
pub trait Backing: Send + Sync {
    /// How many bytes there are.
    fn size(&self) -> u64;

    /// Where the page of that index is, and those behind it.
    ///
    /// # Errors
    /// Whatever a step may say: `Absent` where that itself must be read first.
    fn locate(&self, index: u32, cx: &Cx) -> Step<Extent>;

    /// Makes the content of the page of that index, which is zeros so far, where [`locate`](Self::locate) says [`Extent::Made`].
    ///
    /// # Errors
    /// Whatever a step may say.
    fn make(&self, _index: u32, _to: &mut Writer<'_>, _cx: &Cx) -> Step<()> {
        Err(Errno::EIO.into())
    }

    /// Puts the content of the page of that index where it belongs, where [`locate`](Self::locate) says [`Extent::Made`].
    ///
    /// # Errors
    /// Whatever a step may say.
    fn store(&self, _index: u32, _frame: &UFrame, _cx: &Cx) -> Step<()> {
        Err(Errno::EROFS.into())
    }

    /// A number that is another one whenever pages have come to lie elsewhere since.
    fn version(&self) -> u64 {
        0
    }

    /// Told when pages have become dirty, or are too many: whether its owner writes them back. Else the task does that is there for all.
    fn writes_back(&self, _cx: &Cx) -> bool {
        false
    }

    /// Whether pages may be written that others have mapped: then a page that is mapped stays here.
    fn is_written(&self) -> bool {
        false
    }

    /// The device that has to be told to keep what was written (`Flush`).
    fn device(&self) -> &'static dyn BlockDevice;
}

/// Of what is [watched](Source::watch), besides the index of a page: there must be fewer dirty pages.
const TO_WRITE: u64 = 1 << 63;

impl Source for Cache {
    fn watch(&self, what: u64, waker: Waker, cx: &Cx) {
        self.waiting(what as u32).register(waker, cx);
        self.device().room().register(waker, cx);
        if what & TO_WRITE != 0 {
            FEWER_DIRTY.register(waker, cx);
        }
    }
}

/// Pages by their index.
pub struct Cache {
    name: WeakRc<Cache>,
    content: SpinLock<Content>,
    backing: Box<dyn Backing>,
    /// Who waits for pages, by their index.
    waiting: [WaitList; LISTS],
    /// Woken when a write is done.
    written: WaitList,
    /// How many writes have failed, and above the error of the last.
    failures: AtomicU64,
    /// It is among those that have dirty pages.
    pub(super) is_listed: AtomicBool,
}

/// What a device does for a cache.
struct Work {
    cache: WeakRc<Cache>,
    pages: Range<u32>,
    kind: Kind,
}

/// What it does, with the number of that where [`sync`](Cache::sync) waits for it.
enum Kind {
    /// Reads pages of the cache's.
    Read,
    /// Writes pages of the cache's.
    Write(u64),
    /// Reads what passes, for whoever waits for it.
    ReadPast(u64, WeakRc<Passage>),
    /// Writes what passes.
    WritePast(u64),
}

impl Kind {
    fn operation(&self) -> Operation {
        match self {
            Kind::Read | Kind::ReadPast(..) => Operation::Read,
            Kind::Write(_) | Kind::WritePast(_) => Operation::Write,
        }
    }

    fn number(&self) -> Option<u64> {
        match *self {
            Kind::Read => None,
            Kind::Write(number) | Kind::ReadPast(number, _) | Kind::WritePast(number) => Some(number),
        }
    }
}

impl Owner for Work {
    fn completed(self: Box<Self>, frames: Vec<UFrame>, outcome: Result<()>, cx: &Cx) {
        if let Ok(cache) = self.cache.upgrade(cx) {
            cache.completed(&self, outcome, cx);
        } else if let Kind::ReadPast(_, passage) = self.kind {
            passed(passage, outcome, cx);
        }
        // Only now: a page of the cache's has two owners at least.
        drop(frames);
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // What is dirty is the business of whoever closes it.
        let content = self.content.get_mut();
        CLEAN.fetch_sub(core::mem::take(&mut content.clean), Ordering::Relaxed);
        DIRTY.fetch_sub(core::mem::take(&mut content.dirty), Ordering::Relaxed);
    }
}

impl Cache {
    /// An empty one. It is known for ever to those who need memory.
    pub fn new(backing: Box<dyn Backing>, cx: &Cx) -> StrongRc<Self> {
        let cache = StrongRc::new_cyclic(|name| Cache {
            name,
            content: SpinLock::new(Content { keeps_mapped: backing.is_written(), ..Content::default() }),
            backing,
            waiting: [const { WaitList::new() }; LISTS],
            written: WaitList::new(),
            failures: AtomicU64::new(0),
            is_listed: AtomicBool::new(false),
        });
        CACHES.lock(cx).insert(name_number(cache.downgrade()), cache.share());
        cache
    }

    /// What it was the content of ends: with its last owner its pages do.
    pub fn close(&self) {
        let number = name_number(self.name);
        // It ends with nothing locked.
        drop(CACHES.with(|caches| caches.remove(&number)));
    }

    /// Tells `each` those pages of a range (short: some tens of pages) that are here.
    pub fn each_present(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        let content = self.content.lock(cx);
        for index in indices {
            let Ok(number) = u32::try_from(index) else { return };
            let page = content.page(number).filter(|page| !matches!(page.state, State::Reading | State::Failed(_)));
            if let Some(frame) = page.and_then(|page| page.frame.clone()) {
                each(index, frame);
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> WeakRc<Cache> {
        self.name
    }

    /// Its owner is told that pages are dirty; whether it sees to them.
    pub(in crate::block) fn is_written_back_by_owner(&self, cx: &Cx) -> bool {
        self.backing.writes_back(cx)
    }

    /// How many bytes it is about.
    pub fn size(&self) -> u64 {
        self.backing.size()
    }

    /// The device that it is on.
    pub fn device(&self) -> &'static dyn BlockDevice {
        self.backing.device()
    }

    /// The index behind the last page.
    fn end(&self) -> u32 {
        u32::try_from(self.size().div_ceil(PAGE)).unwrap_or(u32::MAX)
    }

    /// How many bytes of a page there are.
    fn page_len(&self, index: u32) -> usize {
        self.size().saturating_sub(u64::from(index) * PAGE).min(PAGE) as usize
    }

    fn waiting(&self, index: u32) -> &WaitList {
        &self.waiting[(index / 8) as usize % LISTS]
    }

    /// The page of an index must come first, or (with [`TO_WRITE`]) there must be fewer dirty ones.
    #[cold]
    fn absent(&self, what: u64, cx: &Cx) -> Stop {
        match self.name.upgrade(cx) {
            Ok(this) => Stop::Absent(Absent::note(this.unsize::<dyn Source>(|cache| cache, cx).downgrade(), what, cx)),
            Err(Gone) => Errno::EIO.into(),
        }
    }

    /// Gives the device something to do that the content says already; takes that back if it does not take it.
    fn submit(
        &self,
        device: &dyn BlockDevice,
        (sector, sectors): (u64, u32),
        frames: Vec<UFrame>,
        work: Work,
        mut content: SpinGuard<'_, Content>,
        cx: &Cx,
    ) -> Step<()> {
        let (pages, is_read, number) = (work.pages.clone(), matches!(work.kind, Kind::Read), work.kind.number());
        let operation = work.kind.operation();
        let request = Request { operation, sector, sectors, frames, owner: Box::new(work) };
        let Err((_, refused)) = device.submit(request, cx) else { return Ok(()) };
        // What passes is no page here: of those there may be entries of pages that were taken away.
        let passed = number.is_some_and(|number| content.is_over(number));
        if !passed {
            for index in pages.clone() {
                if is_read {
                    content.forget(index);
                } else {
                    content.set(index, State::Dirty);
                }
            }
        }
        drop(content);
        // Others may have begun to wait for these.
        self.wake(pages);
        Err(if refused == Refused::Full { Stop::BlockOnDevice } else { Errno::EIO.into() })
    }

    fn wake(&self, pages: Range<u32>) {
        if pages.len() > 8 * LISTS {
            self.waiting.iter().for_each(|list| _ = list.wake_all());
            return;
        }
        let mut at = pages.start;
        while at < pages.end {
            self.waiting(at).wake_all();
            at = (at / 8 + 1) * 8;
        }
    }

    /// A frame for a page; where memory is short, at the price of another page.
    fn new_frame(&self, cx: &Cx) -> Step<UFrame> {
        let found = UFrame::for_overwrite().or_else(|| {
            self.content.lock(cx).take_away(TAKEN_AT_ONCE);
            UFrame::for_overwrite()
        });
        let frame = found.ok_or(Stop::NoMemory)?;
        frame.count_as_shared();
        Ok(frame)
    }

    /// A device has done something, or could not.
    fn completed(&self, work: &Work, outcome: Result<()>, cx: &Cx) {
        let mut content = self.content.lock(cx);
        for index in work.pages.clone() {
            let state = content.page(index).map(|page| page.state);
            match (state, &work.kind, outcome) {
                (Some(State::Reading), Kind::Read, Ok(())) => content.set(index, State::Clean),
                (Some(State::Reading), Kind::Read, Err(error)) => content.set(index, State::Failed(error)),
                (Some(State::Writing), Kind::Write(_), _) => content.written(index),
                (Some(State::Redirtied), Kind::Write(_), _) => content.set(index, State::Dirty),
                _ => {}
            }
        }
        if let Some(number) = work.kind.number() {
            content.is_over(number);
        }
        if let (Kind::Write(_) | Kind::WritePast(_), Err(error)) = (&work.kind, outcome) {
            self.note_failure(error);
        }
        drop(content);
        if let Kind::ReadPast(_, passage) = work.kind {
            passed(passage, outcome, cx);
        }
        self.wake(work.pages.clone());
        if work.kind.number().is_some() {
            self.written.wake_all();
        }
        if matches!(work.kind, Kind::Write(_)) && !is_over_limit() {
            FEWER_DIRTY.wake_all();
        }
    }

    /// A write has failed. The content is locked.
    fn note_failure(&self, error: Errno) {
        let count = (self.failures.load(Ordering::Relaxed) >> 16) + 1;
        self.failures.store(count << 16 | u64::from(error.number()), Ordering::Relaxed);
    }

    /// Forgets the pages of a range that nobody works on, those that are dirty as well if `with_dirty` says so: the device's content is another. Where there are many it says from where on there are more; `None` at the end.
    pub fn forget(&self, range: Range<u64>, with_dirty: bool, cx: &Cx) -> Option<u64> {
        const AT_ONCE: usize = 1024;
        let (mut at, end) = (
            (range.start / PAGE).min(u64::from(u32::MAX)) as u32,
            range.end.div_ceil(PAGE).min(u64::from(self.end())) as u32,
        );
        let mut content = self.content.lock(cx);
        for _ in 0..AT_ONCE {
            let (index, page) = content.pages.next(at).filter(|(index, _)| *index < end)?;
            match page.state {
                State::Clean | State::Failed(_) if !content.must_stay(page) => content.forget(index),
                State::Dirty if with_dirty => content.forget(index),
                _ => {}
            }
            at = index.checked_add(1)?;
        }
        Some(u64::from(at) * PAGE)
    }

    /// Forgets pages of a range, whatever is in them, and goes on from `at`. Where there are many it says where to go on; `None` when all are gone.
    ///
    /// # Errors
    /// `Absent`: one is under way.
    pub fn cut(&self, pages: Range<u32>, cx: &Cx) -> Step<Option<u32>> {
        let mut content = self.content.lock(cx);
        content.check_passing(&pages).map_err(|index| self.absent(index.into(), cx))?;
        for _ in 0..CUT_AT_ONCE {
            let Some((index, page)) = content.pages.next(pages.start).filter(|(index, _)| *index < pages.end) else {
                return Ok(None);
            };
            if page.is_under_way() {
                return Err(self.absent(index.into(), cx));
            }
            content.forget(index);
        }
        Ok(Some(pages.start))
    }

    /// Up to where pages from the start of a range on can be [cut at once](Self::cut_at_once).
    pub fn end_to_cut(&self, pages: Range<u32>, cx: &Cx) -> u32 {
        let content = self.content.lock(cx);
        let mut at = pages.start;
        for _ in 0..CUT_AT_ONCE {
            match content.pages.next(at) {
                Some((index, _)) if index < pages.end => at = index + 1,
                _ => return pages.end,
            }
        }
        at
    }

    /// Forgets all pages of a range, whatever is in them, or none.
    ///
    /// # Errors
    /// `Absent`: one is under way. `Again`: there are more than can be forgotten at once.
    pub fn cut_at_once(&self, pages: Range<u32>, cx: &Cx) -> Step<()> {
        let mut content = self.content.lock(cx);
        content.check_passing(&pages).map_err(|index| self.absent(index.into(), cx))?;
        let (mut at, mut count) = (pages.start, 0);
        while let Some((index, page)) = content.pages.next(at).filter(|(index, _)| *index < pages.end) {
            if page.is_under_way() {
                return Err(self.absent(index.into(), cx));
            }
            count += 1;
            if count > 2 * CUT_AT_ONCE {
                return Err(Stop::Again);
            }
            at = index + 1;
        }
        while let Some((index, _)) = content.pages.next(pages.start).filter(|(index, _)| *index < pages.end) {
            content.forget(index);
        }
        Ok(())
    }

    /// Whether nothing is dirty, or under way to the device.
    pub fn is_clean(&self, cx: &Cx) -> bool {
        let content = self.content.lock(cx);
        content.dirty == 0 && content.passing.is_empty()
    }

    /// Whether any page is to be written back, or written back once more.
    pub fn is_dirty(&self, cx: &Cx) -> bool {
        !self.content.lock(cx).to_write.is_empty()
    }
}

/// The index of the page that has a byte.
fn page_index(at: u64) -> Result<u32> {
    u32::try_from(at / PAGE).map_err(|_| Errno::EFBIG)
}

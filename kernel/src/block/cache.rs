//! [`Cache`]: the page cache of a device, or of whatever else has its content on one.
//!
//! A page is looked for by its index, in steps: one that is not there is asked of the device, and the step says `Absent` until it has come. Where the pages of an index are on which device says a [`Backing`]: a
//! disk's is the disk itself, a file's will be what its file system says.
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

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, UFrame, Writer};
use refs::{Gone, SpinGuard, SpinLock, StrongRc, WaitList, Waker, WeakRc};

use super::write_back;
use super::{BlockDevice, Operation, Owner, Refused, Request, SECTOR, Transfer};
use crate::error::{Errno, Result};
use crate::radix::RadixTree;
use crate::step::{Absent, Source, Step, Stop};

const PAGE: u64 = PAGE_SIZE as u64;
/// Sectors of a page.
pub const PAGE_SECTORS: u64 = PAGE / SECTOR;
/// What has been dirty for so many nanoseconds is written back.
pub const OLD: u64 = 5_000_000_000;
/// So many pages are read ahead at most.
const MOST_AHEAD: u32 = 256;
/// So few are read ahead at first, when a second read follows a first.
const FIRST_AHEAD: u32 = 32;
/// Those who wait for pages wait in so many lists.
const LISTS: usize = 16;
/// So many pages are taken away at a time.
const TAKEN_AT_ONCE: usize = 64;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    Clean,
    Dirty,
    Writing,
    /// Written to while it is being written.
    Redirtied,
    Failed(Errno),
}

struct Page {
    /// `None`: it was taken away. The entry is used again or goes when somebody comes by.
    frame: Option<UFrame>,
    state: State,
    /// Somebody has looked at it since the last round of those that are taken away.
    was_used: bool,
    /// It was read for a read that keeps nothing (O_DIRECT).
    is_once: bool,
    /// Since when programs may write it without a word, through mappings; 0: they may not. See [`Cache::map_to_write`].
    mapped_since: u32,
}

#[derive(Default)]
struct Content {
    pages: RadixTree<Page>,
    /// Those that are dirty, whether they are being written just now or not.
    to_write: RadixTree<()>,
    clean: usize,
    dirty: usize,
    /// Where the next round of those that are taken away goes on.
    hand: u32,
    /// The number of the next write, and the numbers of those that are under way, the oldest first.
    next_write: u64,
    writes: Vec<u64>,
    /// Those that programs may write through mappings.
    mapped: RadixTree<()>,
    keeps_mapped: bool,
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

/// How much of all caches is clean, and how much dirty, in pages.
static CLEAN: AtomicUsize = AtomicUsize::new(0);
static DIRTY: AtomicUsize = AtomicUsize::new(0);
/// Writers wait here while there are too many dirty pages.
static FEWER_DIRTY: WaitList = WaitList::new();
/// All caches.
static CACHES: SpinLock<BTreeMap<usize, StrongRc<Cache>>> = SpinLock::new(BTreeMap::new());
/// Where the next round of those whose pages are taken away goes on in [`CACHES`].
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The number of a cache in [`CACHES`].
fn name_number(cache: WeakRc<Cache>) -> usize {
    cache.address()
}

/// How many pages can be had back.
pub fn clean_pages() -> usize {
    CLEAN.load(Ordering::Relaxed)
}

/// How many pages wait to be written back.
pub fn dirty_pages() -> usize {
    DIRTY.load(Ordering::Relaxed)
}

/// From so many dirty pages on they are written back at once.
pub(super) fn background_limit() -> usize {
    frame::mm::frame_count() / 20
}

/// Whether so much is dirty that it is to be written back at once.
pub fn has_many_dirty() -> bool {
    dirty_pages() > background_limit()
}

/// Whether writers must wait.
fn is_over_limit() -> bool {
    dirty_pages() > 2 * background_limit()
}

/// The tasks that never wait because much is dirty: what they write is what others have dirty.
static EXEMPT: SpinLock<Vec<tasks::TaskRef>> = SpinLock::new(Vec::new());

/// The calling task, which lives for ever, writes what others have dirty, and so does not wait until less is.
pub fn exempt(cx: &Cx) {
    EXEMPT.lock(cx).push(tasks::current(cx));
}

fn is_exempt(cx: &Cx) -> bool {
    EXEMPT.lock(cx).contains(&tasks::current(cx))
}

/// Takes some clean pages away; whether there were any. It is called by allocations that find no memory, with any locks held, and neither takes nor frees any of the heap's.
pub fn give_back() -> bool {
    if clean_pages() == 0 {
        return false;
    }
    let taken = CACHES.try_with(|caches| {
        let mut taken = 0;
        let next = NEXT.load(Ordering::Relaxed);
        for (number, cache) in caches.range(next..).chain(caches.range(..next)) {
            taken +=
                cache.with(|cache| cache.content.try_with(|content| content.take_away(TAKEN_AT_ONCE)).unwrap_or(0));
            if taken >= TAKEN_AT_ONCE {
                // It may have more.
                NEXT.store(*number, Ordering::Relaxed);
                break;
            }
        }
        taken
    });
    taken.unwrap_or(0) > 0
}

impl Content {
    /// Takes up to `count` clean pages away; how many. Their entries stay.
    fn take_away(&mut self, count: usize) -> usize {
        let mut taken = 0;
        // Twice around: in the first round those that were used lose their mark.
        let mut rounds = 0;
        // A bound for one call, however few of many are clean.
        let mut looked = 0;
        while taken < count && self.clean > 0 && rounds < 3 && looked < 64 * count {
            looked += 1;
            let Some((index, _)) = self.pages.next(self.hand) else {
                self.hand = 0;
                rounds += 1;
                continue;
            };
            self.hand = index.wrapping_add(1);
            if let Some(page) = self.pages.get_mut(index)
                && page.state == State::Clean
                && let Some(frame) = &page.frame
                && !(self.keeps_mapped && frame.references() > 1)
                && !core::mem::replace(&mut page.was_used, false)
            {
                page.frame = None;
                self.clean -= 1;
                CLEAN.fetch_sub(1, Ordering::Relaxed);
                taken += 1;
            }
        }
        taken
    }

    /// Changes the state of a page, and what is counted of it.
    fn set(&mut self, index: u32, state: State) {
        let Some(page) = self.pages.get_mut(index) else { return };
        let before = core::mem::replace(&mut page.state, state);
        let count = |state| match state {
            State::Clean => (1, 0),
            State::Dirty | State::Writing | State::Redirtied => (0, 1),
            State::Reading | State::Failed(_) => (0, 0),
        };
        let ((clean_before, dirty_before), (clean, dirty)) = (count(before), count(state));
        self.clean = self.clean + clean - clean_before;
        self.dirty = self.dirty + dirty - dirty_before;
        match (is_to_write(before), is_to_write(state)) {
            (false, true) => _ = self.to_write.insert(index, ()),
            (true, false) => _ = self.to_write.remove(index),
            _ => {}
        }
        move_count(&CLEAN, clean_before, clean);
        move_count(&DIRTY, dirty_before, dirty);
    }

    /// A page whose entry is new, or was used for one that was taken away.
    fn enter(&mut self, index: u32, frame: UFrame, state: State, is_once: bool) {
        self.forget(index);
        // As one that counts nowhere, until its state is set.
        self.pages.insert(
            index,
            Page { frame: Some(frame), state: State::Reading, was_used: true, is_once, mapped_since: 0 },
        );
        self.set(index, state);
    }

    /// The number of a write that begins.
    fn begin_write(&mut self) -> u64 {
        let number = self.next_write;
        self.next_write += 1;
        self.writes.push(number);
        number
    }

    /// A page was written that was not written to meanwhile, as far as anybody knows.
    fn written(&mut self, index: u32) {
        let is_mapped = self.pages.get(index).is_some_and(|page| page.mapped_since != 0);
        self.set(index, if is_mapped { State::Dirty } else { State::Clean });
    }

    /// Forgets a page that nobody works on.
    fn forget(&mut self, index: u32) {
        match self.pages.get(index) {
            None => return,
            // It counts no more.
            Some(page) if page.frame.is_none() => {}
            Some(_) => self.set(index, State::Reading),
        }
        self.mapped.remove(index);
        self.pages.remove(index);
    }

    /// The page, if its entry is one.
    fn page(&self, index: u32) -> Option<&Page> {
        self.pages.get(index).filter(|page| page.frame.is_some())
    }

    /// The first pages from `index` on that are dirty and not being written, as many as lie together.
    fn dirty_run(&self, index: u32, end: u32, most: u32) -> Option<Range<u32>> {
        let is_dirty = |index: &u32| self.page(*index).is_some_and(|page| page.state == State::Dirty);
        let mut at = index;
        loop {
            let (found, ()) = self.to_write.next(at).filter(|(found, _)| *found < end)?;
            if is_dirty(&found) {
                let count = (found..end.min(found.saturating_add(most))).take_while(is_dirty).count() as u32;
                return Some(found..found + count);
            }
            at = found.checked_add(1)?;
        }
    }
}

/// Whether a page is newer than what was last given to the device.
fn is_to_write(state: State) -> bool {
    matches!(state, State::Dirty | State::Redirtied)
}

fn move_count(count: &AtomicUsize, before: usize, now: usize) {
    match (before, now) {
        (0, 1) => _ = count.fetch_add(1, Ordering::Relaxed),
        (1, 0) => _ = count.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
}

/// What an open file has read, for what is read ahead of it. Several threads may change it at once: then some is read ahead that is not needed.
#[derive(Debug, Default)]
pub struct ReadAhead {
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

/// How far a sync has come. It begins as nothing.
#[derive(Default)]
pub struct SyncProgress {
    phase: Phase,
    /// Of a file of a file system that is written, how far that is.
    pub volume: VolumeSync,
}

/// How far the sync of a file is, or of its file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumeSync {
    /// What was written to it is written to the disk.
    #[default]
    Pages,
    /// All of its file system is written; the number of that is waited for.
    All(u64),
    /// A commit of that number is waited for, and whether the disk has to be told afterwards.
    Commit(u64, bool),
    /// The disk is told to keep what it has.
    Device,
}

impl SyncProgress {
    /// What comes next is another cache.
    pub fn begin_again(&mut self) {
        self.phase = Phase::Begin;
    }
}

#[derive(Default)]
enum Phase {
    #[default]
    Begin,
    /// All before this page is being written, or was not dirty.
    Write(u32),
    /// The writes up to this number are waited for.
    Wait(u64),
    /// The device is to be told, or was.
    Flush(Option<StrongRc<Transfer>>),
}

/// Whether a sync goes on until the device has promised to keep what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// It is enough that the device has it.
    Written,
    /// The device must keep it even if the power goes.
    Kept,
}

/// A read or write of the cache's own.
struct Work {
    cache: WeakRc<Cache>,
    pages: Range<u32>,
    /// Of a write, its number.
    write: Option<u64>,
}

impl Owner for Work {
    fn completed(self: Box<Self>, frames: Vec<UFrame>, outcome: Result<()>, cx: &Cx) {
        if let Ok(cache) = self.cache.upgrade(cx) {
            cache.completed(&self, outcome, cx);
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
    pub(super) fn is_written_back_by_owner(&self, cx: &Cx) -> bool {
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
                if is_done && page.is_once && page.state == State::Clean && matches!(wanted, Wanted::Once(_)) {
                    content.forget(index);
                }
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
    fn start_reading(&self, index: u32, count: u32, is_once: bool, cx: &Cx) -> Step<()> {
        let count = count.min(self.end().saturating_sub(index));
        if count == 0 {
            return Ok(());
        }
        let version = self.backing.version();
        let (device, sector, count) = match self.backing.locate(index, cx)? {
            Extent::On { device, sector, pages } => {
                (device, sector, count.min(pages).min(device.limits().most_frames as u32))
            }
            extent @ (Extent::Hole { .. } | Extent::Made) => {
                let frame = self.new_frame(cx)?;
                // Fresh memory does not fault.
                let _ = frame.writer(0..PAGE_SIZE).zero(PAGE_SIZE);
                if matches!(extent, Extent::Made) {
                    self.backing.make(index, &mut frame.writer(0..PAGE_SIZE), cx)?;
                }
                let mut content = self.content.lock(cx);
                if content.page(index).is_none() && self.backing.version() == version {
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
        let absent = |index: &u32| content.page(*index).is_none();
        let count = (index..index + frames.len() as u32).take_while(absent).count() as u32;
        if count == 0 {
            return Ok(());
        }
        frames.truncate(count as usize);
        for (at, frame) in (index..).zip(&frames) {
            content.enter(at, frame.clone(), State::Reading, is_once);
        }
        let bytes = self.size().saturating_sub(u64::from(index) * PAGE).clamp(1, u64::from(count) * PAGE);
        if let Some(last) = frames.last() {
            let len = self.page_len(index + count - 1);
            let _ = last.writer(len..PAGE_SIZE).zero(PAGE_SIZE - len);
        }
        let work = Work { cache: self.name, pages: index..index + count, write: None };
        let sectors = (sector, bytes.div_ceil(SECTOR) as u32);
        self.submit(device, Operation::Read, sectors, frames, work, content, cx).map_err(|stop| match stop {
            Stop::BlockOnDevice => self.absent(index.into(), cx),
            stop => stop,
        })
    }

    /// Gives the device something to do with pages whose states say so already; takes that back if it does not take it.
    #[allow(clippy::too_many_arguments)]
    fn submit(
        &self,
        device: &dyn BlockDevice,
        operation: Operation,
        (sector, sectors): (u64, u32),
        frames: Vec<UFrame>,
        work: Work,
        mut content: SpinGuard<'_, Content>,
        cx: &Cx,
    ) -> Step<()> {
        let (pages, write) = (work.pages.clone(), work.write);
        let request = Request { operation, sector, sectors, frames, owner: Box::new(work) };
        let Err((_, refused)) = device.submit(request, cx) else { return Ok(()) };
        for index in pages.clone() {
            match operation {
                Operation::Write => content.set(index, State::Dirty),
                _ => content.forget(index),
            }
        }
        if let Some(write) = write {
            content.writes.retain(|other| *other != write);
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
            match (state, work.write, outcome) {
                (Some(State::Reading), None, Ok(())) => content.set(index, State::Clean),
                (Some(State::Reading), None, Err(error)) => content.set(index, State::Failed(error)),
                (Some(State::Writing), Some(_), _) => content.written(index),
                (Some(State::Redirtied), Some(_), _) => content.set(index, State::Dirty),
                _ => {}
            }
        }
        let is_write = work.write.is_some();
        if let Some(write) = work.write {
            content.writes.retain(|other| *other != write);
            if let Err(error) = outcome {
                let count = (self.failures.load(Ordering::Relaxed) >> 16) + 1;
                self.failures.store(count << 16 | u64::from(error.number()), Ordering::Relaxed);
            }
        }
        drop(content);
        self.wake(work.pages.clone());
        if is_write {
            self.written.wake_all();
            if !is_over_limit() {
                FEWER_DIRTY.wake_all();
            }
        }
    }

    /// What has failed so far, for [`check`](Self::check).
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Says once of each failure to write that `seen` has not seen. `seen` begins as [`failures`](Self::failures).
    ///
    /// # Errors
    /// EIO, ENOSPC.
    pub fn check(&self, seen: &AtomicU64) -> Result<()> {
        let now = self.failures();
        match seen.swap(now, Ordering::Relaxed) {
            before if before == now => Ok(()),
            _ if now & 0xffff == u64::from(Errno::ENOSPC.number()) => Err(Errno::ENOSPC),
            _ => Err(Errno::EIO),
        }
    }

    /// Reads from `offset` on, up to `end`: how many bytes, 0 at the end.
    ///
    /// # Errors
    /// `Absent`; a fault of `to`; EIO; `NoMemory`.
    pub fn read(&self, offset: u64, end: u64, to: &mut Writer<'_>, how: Keep<'_>, cx: &Cx) -> Step<usize> {
        let end = end.min(self.size()).min(offset.saturating_add(to.remaining() as u64));
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
            match (outcome, how) {
                (Ok(_), _) => {}
                // Only a fault and the end make a read short. What was read of this one is here, and is read again.
                (Err(stop @ Stop::Absent(_)), Keep::Pages(_)) => return Err(stop),
                (Err(_), _) if at > offset => break,
                (Err(stop), _) => return Err(stop),
            }
        }
        Ok(at.saturating_sub(offset) as usize)
    }

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
    pub(super) fn start_writing(&self, from: u32, end: u32, cx: &Cx) -> Step<Option<u32>> {
        let most = self.device().limits().most_frames as u32;
        let Some(first) = self.content.lock(cx).dirty_run(from, end, 1).map(|run| run.start) else { return Ok(None) };
        let version = self.backing.version();
        let (device, sector, pages) = match self.backing.locate(first, cx)? {
            Extent::On { device, sector, pages } => (device, sector, pages),
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
        let work = Work { cache: self.name, pages: run.clone(), write: Some(number) };
        let sectors = (sector, bytes.div_ceil(SECTOR) as u32);
        match self.submit(device, Operation::Write, sectors, frames, work, content, cx) {
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
        let work = Work { cache: self.name, pages: pages.clone(), write: Some(u64::MAX) };
        let mut content = self.content.lock(cx);
        for index in pages {
            if content.page(index).is_some_and(|page| page.state == State::Dirty) {
                content.set(index, State::Writing);
            }
        }
        drop(content);
        self.completed(&work, Err(error), cx);
    }

    /// Writes what is dirty in a range of bytes, and waits for it. `progress` is the caller's, and begins as nothing.
    ///
    /// # Errors
    /// `BlockOnDevice`, with the waker entered. What could not be written [`check`](Self::check) says; EIO where the device could not keep it.
    pub fn sync(
        &self,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        let pages = (range.start / PAGE).min(u64::from(u32::MAX)) as u32
            ..range.end.div_ceil(PAGE).min(u64::from(self.end())) as u32;
        if let Some(waker) = waker {
            self.written.register(waker, cx);
            self.device().room().register(waker, cx);
        }
        loop {
            match &mut progress.phase {
                Phase::Begin => progress.phase = Phase::Write(pages.start),
                Phase::Write(at) => {
                    let content = self.content.lock(cx);
                    let next = content.to_write.next(*at).map(|(index, ())| index).filter(|index| *index < pages.end);
                    let Some(index) = next else {
                        progress.phase = Phase::Wait(content.next_write);
                        continue;
                    };
                    *at = index;
                    // Written to since its write began: it is written once more.
                    if content.page(index).is_some_and(|page| page.state == State::Redirtied) {
                        return Err(Stop::BlockOnDevice);
                    }
                    drop(content);
                    *at = self.start_writing(index, pages.end, cx)?.unwrap_or(pages.end);
                }
                Phase::Wait(end) => {
                    if self.content.lock(cx).writes.iter().any(|write| write < end) {
                        return Err(Stop::BlockOnDevice);
                    }
                    progress.phase = Phase::Flush(None);
                }
                Phase::Flush(_) if depth == Depth::Written || !self.device().limits().has_cache => return Ok(()),
                Phase::Flush(begun @ None) => {
                    *begun = Some(Transfer::start(self.device(), Operation::Flush, (0, 0), Vec::new(), None, cx)?);
                }
                Phase::Flush(Some(flush)) => return flush.get(cx).poll(waker, cx).map(|_| ()),
            }
        }
    }

    /// Forgets the pages of a range that nobody works on, those that are dirty as well if `with_dirty` says so: the device's content is another.
    pub fn forget(&self, range: Range<u64>, with_dirty: bool, cx: &Cx) {
        let (mut at, end) = (
            (range.start / PAGE).min(u64::from(u32::MAX)) as u32,
            range.end.div_ceil(PAGE).min(u64::from(self.end())) as u32,
        );
        let mut content = self.content.lock(cx);
        while let Some((index, page)) = content.pages.next(at).filter(|(index, _)| *index < end) {
            match page.state {
                State::Clean | State::Failed(_) => content.forget(index),
                State::Dirty if with_dirty => content.forget(index),
                _ => {}
            }
            let Some(next) = index.checked_add(1) else { break };
            at = next;
        }
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

    /// The page of that index, which is here and dirty, is written through a mapping from now on, at any time: it stays dirty until [`end_mapped`](Self::end_mapped) of a later `epoch`.
    ///
    /// # Errors
    /// `Again`: it is not here, or no longer.
    pub fn map_to_write(&self, index: u32, epoch: u32, cx: &Cx) -> Step<UFrame> {
        self.make_dirty(index..index + 1, cx)?;
        let mut content = self.content.lock(cx);
        let found = content.pages.get_mut(index).and_then(|page| {
            page.mapped_since = epoch;
            page.frame.clone()
        });
        let frame = found.ok_or(Stop::Again)?;
        content.mapped.insert(index, ());
        Ok(frame)
    }

    /// No mapping is left of pages that were mapped before `epoch`: what is written to them is said from now on. Goes on from page `from`; where to go on, `None` when all were looked at.
    pub fn end_mapped(&self, from: u32, epoch: u32, cx: &Cx) -> Option<u32> {
        const AT_ONCE: usize = 256;
        let mut content = self.content.lock(cx);
        let mut at = from;
        for _ in 0..AT_ONCE {
            let (index, ()) = content.mapped.next(at)?;
            if let Some(page) = content.pages.get_mut(index).filter(|page| page.mapped_since < epoch) {
                page.mapped_since = 0;
                content.mapped.remove(index);
            }
            at = index.checked_add(1)?;
        }
        Some(at)
    }

    /// Whether pages may be written through mappings.
    pub fn is_mapped_to_write(&self, cx: &Cx) -> bool {
        !self.content.lock(cx).mapped.is_empty()
    }

    /// Forgets pages of a range, whatever is in them, and goes on from `at`. Where there are many it says where to go on; `None` when all are gone.
    ///
    /// # Errors
    /// `Absent`: one is under way.
    pub fn cut(&self, pages: Range<u32>, cx: &Cx) -> Step<Option<u32>> {
        const AT_ONCE: usize = 256;
        let mut content = self.content.lock(cx);
        for _ in 0..AT_ONCE {
            let Some((index, page)) = content.pages.next(pages.start).filter(|(index, _)| *index < pages.end) else {
                return Ok(None);
            };
            if page.frame.is_some() && matches!(page.state, State::Reading | State::Writing | State::Redirtied) {
                return Err(self.absent(index.into(), cx));
            }
            content.forget(index);
        }
        Ok(Some(pages.start))
    }

    /// Whether nothing is dirty, or under way to the device.
    pub fn is_clean(&self, cx: &Cx) -> bool {
        self.content.lock(cx).dirty == 0
    }

    /// Whether any page is to be written back, or written back once more.
    pub(super) fn is_dirty(&self, cx: &Cx) -> bool {
        !self.content.lock(cx).to_write.is_empty()
    }

    /// The page of that index, for a task of the kernel's own, which waits for it.
    ///
    /// # Errors
    /// EIO, ENOMEM.
    pub fn page_async(cache: WeakRc<Cache>, cx: &mut Cx, index: u32) -> Result<UFrame> {
        super::wait_async(cx, |_, cx| {
            let cache = cache.upgrade(cx).map_err(|_| Errno::EIO)?;
            cache.page(index, Wanted::Ahead(&ReadAhead::default(), 1), cx)
        })
    }
}

/// Clears what is behind the end of a file of so many bytes, which is in its last page.
fn clear_end(last: Option<&UFrame>, bytes: u64) {
    if let (Some(last), len @ 1..) = (last, (bytes % PAGE) as usize) {
        // A frame of memory never faults.
        let _ = last.writer(len..PAGE_SIZE).zero(PAGE_SIZE - len);
    }
}

/// The index of the page that has a byte.
fn page_index(at: u64) -> Result<u32> {
    u32::try_from(at / PAGE).map_err(|_| Errno::EFBIG)
}

impl ReadAhead {
    /// The page of that index was looked for and is not there, and so many are wanted: how many pages are to be read from it on.
    fn missed(&self, index: u32, wanted: u32) -> u32 {
        let is_next = self.next.swap(index, Ordering::Relaxed) == index && index > 0 || index == 0;
        let window = match self.window.load(Ordering::Relaxed) {
            _ if !is_next => 0,
            0 => FIRST_AHEAD,
            window => (2 * window).min(MOST_AHEAD),
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
        let window = (2 * window).min(MOST_AHEAD);
        self.window.store(window, Ordering::Relaxed);
        self.end.store(end.saturating_add(window), Ordering::Relaxed);
        Some((end, window))
    }
}

#[cfg(test)]
mod tests;

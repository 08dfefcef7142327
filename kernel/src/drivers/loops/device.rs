//! [`LoopDevice`]: a disk whose sectors are the bytes of a file.
//!
//! Its requests wait in a queue, and a task of its own does them one after the other, as steps on the file's inode: what must be waited for there the task waits for. So a device on a file that is on
//! another device needs no more stack than any, and each waits only for those below it. The task is [exempt](crate::block::cache::exempt) from waiting because much is dirty: what it writes is what others
//! have dirty.
//!
//! What a device is bound to only its task changes, when nothing is left to do of what was accepted before; meanwhile it accepts nothing. So each request is done where it was meant to be, and all of it in one file.
//!
//! The device owns the open file, so that does not end before. What the file cannot do is EIO; what it does not have any more reads as zeros. A device lets its file go when it is told to, and nobody has it open and nothing on it is mounted:
//! then the task writes what is dirty, lets go, and wakes who waits for that.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame};
use refs::{SpinLock, StrongRc, WaitList, Waker, WeakRc};
use tasks::{Body, Next};

use crate::block::{
    self, BlockDevice, Depth, Disk, Geometry, Limits, Operation, Refused, Request, SECTOR, Statistics, SyncProgress,
    wait_async,
};
use crate::error::{Errno, Result};
use crate::fs::OpenFile;
use crate::sched::{self, Parameters};
use crate::step::{Step, Stop, TimeSlice};

/// How many requests it takes at once, and of how many pages.
const DEPTH: usize = 64;
const MOST_FRAMES: usize = 32;

/// What a device is bound to, and how.
pub struct Bound {
    /// The file.
    pub file: StrongRc<OpenFile>,
    /// Its absolute name when it was bound.
    pub path: Vec<u8>,
    /// Where it begins there, in bytes.
    pub offset: u64,
    /// How many bytes it has at most; 0: up to the end.
    pub size_limit: u64,
    /// LO_FLAGS_*.
    pub flags: u32,
    /// What the program calls the file.
    pub name: [u8; 64],
}

/// LO_FLAGS_READ_ONLY.
pub const READ_ONLY: u32 = 1;
/// LO_FLAGS_AUTOCLEAR: its file is let go of with its last user.
pub const AUTOCLEAR: u32 = 4;
/// LO_FLAGS_PARTSCAN.
pub const PARTSCAN: u32 = 8;
/// LO_FLAGS_DIRECT_IO.
pub const DIRECT_IO: u32 = 16;

/// A disk whose sectors are the bytes of a file.
pub struct LoopDevice {
    /// Its number.
    pub number: u32,
    limits: Limits,
    statistics: Statistics,
    state: SpinLock<State>,
    sectors: AtomicU64,
    is_read_only: AtomicBool,
    block: AtomicU32,
    room: WaitList,
    work: WaitList,
}

#[derive(Default)]
struct State {
    bound: Option<Bound>,
    /// Who alone has it open has let the file go (LOOP_CLR_FD): for programs it is bound to nothing any more.
    is_given_up: bool,
    /// The file is about to be let go of.
    is_ending: bool,
    changing: Changing,
    queue: VecDeque<Queued>,
}

/// Whether something else is bound from now on.
#[derive(Default)]
enum Changing {
    #[default]
    No,
    /// When the queue is empty.
    Next(Change, WeakRc<Asked>),
    UnderWay,
}

/// What a program wants a device to be from now on.
pub enum Change {
    /// LOOP_SET_STATUS: what is in [`Bound`], beside the file.
    Status {
        /// [`Bound::offset`].
        offset: u64,
        /// [`Bound::size_limit`].
        size_limit: u64,
        /// [`AUTOCLEAR`] and [`PARTSCAN`], of [`Bound::flags`].
        flags: u32,
        /// [`Bound::name`].
        name: [u8; 64],
    },
    /// LOOP_CHANGE_FD: another file of the same size, and [`Bound::path`].
    File(StrongRc<OpenFile>, Vec<u8>),
    /// LOOP_SET_CAPACITY: as large as its file is now.
    Capacity,
    /// LOOP_SET_BLOCK_SIZE: its smallest unit has so many bytes.
    Block(u32),
}

/// A change that somebody waits for. Its owner is whoever waits; if that ends sooner, the change is made all the same.
pub struct Asked(SpinLock<Option<Result<()>>>);

/// A request, and when it came.
struct Queued {
    request: Request,
    began: u64,
}

impl LoopDevice {
    /// One without a file.
    pub fn new(number: u32) -> Self {
        let limits = Limits {
            sectors: 0,
            is_read_only: false,
            has_cache: true,
            logical_block: SECTOR as u32,
            physical_block: SECTOR as u32,
            alignment_offset: 0,
            smallest_io: SECTOR as u32,
            best_io: 0,
            most_frames: MOST_FRAMES,
            most_discard: 0,
            most_zeroes: 0,
            depth: DEPTH,
        };
        LoopDevice {
            number,
            limits,
            statistics: Statistics::default(),
            state: SpinLock::new(State::default()),
            sectors: AtomicU64::new(0),
            is_read_only: AtomicBool::new(false),
            block: AtomicU32::new(SECTOR as u32),
            room: WaitList::new(),
            work: WaitList::new(),
        }
    }

    /// Starts its task. Called once.
    pub fn begin(&'static self, disk: &'static Disk, _cx: &Cx) {
        let task = Box::new(Worker { device: self, disk, ending: SyncProgress::default(), is_exempt: false });
        tasks::spawn(&sched::SCHEDULER, task, |words, _| sched::initialise(words, Parameters::default(), None));
    }

    /// Whether it has a file.
    pub fn is_bound(&self, cx: &Cx) -> bool {
        self.state.lock(cx).bound.is_some()
    }

    /// Gives it a file.
    ///
    /// # Errors
    /// EBUSY: it has one. `BlockOnDevice`: it has one that is about to be let go of.
    pub fn bind(&self, bound: Bound, is_read_only: bool, block: u32, cx: &Cx) -> Step<()> {
        let sectors = sectors_of(&bound.file.get(cx), bound.offset, bound.size_limit, cx);
        let mut state = self.state.lock(cx);
        if state.is_ending {
            return Err(Stop::BlockOnDevice);
        }
        if state.bound.is_some() {
            return Err(Errno::EBUSY.into());
        }
        self.block.store(block, Ordering::Relaxed);
        self.is_read_only.store(is_read_only, Ordering::Relaxed);
        self.sectors.store(sectors, Ordering::Relaxed);
        state.bound = Some(bound);
        Ok(())
    }

    /// Calls `f` with what it is bound to. Nothing of a file is locked in it.
    ///
    /// # Errors
    /// ENXIO: nothing. `BlockOnDevice`: its file is about to be let go of. Those of `f`.
    pub fn with_bound<T>(&self, cx: &Cx, f: impl FnOnce(&mut Bound) -> Result<T>) -> Step<T> {
        let mut state = self.state.lock(cx);
        if state.is_ending {
            return Err(Stop::BlockOnDevice);
        }
        let is_given_up = state.is_given_up;
        Ok(f(state.bound.as_mut().filter(|_| !is_given_up).ok_or(Errno::ENXIO)?)?)
    }

    /// Has it let its file go with its last user, at the latest the caller. `is_alone`: that is the only user.
    ///
    /// # Errors
    /// As for [`with_bound`](Self::with_bound).
    pub fn give_up(&self, is_alone: bool, cx: &Cx) -> Step<()> {
        self.with_bound(cx, |bound| {
            bound.flags |= AUTOCLEAR;
            Ok(())
        })?;
        self.state.lock(cx).is_given_up |= is_alone;
        Ok(())
    }

    /// Whether its file is about to be let go of.
    fn is_ending(&self, cx: &Cx) -> bool {
        self.state.lock(cx).is_ending
    }

    /// Whether what was read of it is something else after a change, so that what is dirty must be written before.
    pub fn moves_by(&self, change: &Change, cx: &Cx) -> bool {
        let state = self.state.lock(cx);
        let Some(bound) = &state.bound else { return false };
        match change {
            Change::Status { offset, size_limit, .. } => (*offset, *size_limit) != (bound.offset, bound.size_limit),
            Change::File(..) | Change::Block(_) => true,
            Change::Capacity => false,
        }
    }

    /// Asks for a change, which is taken out of its place. What came of it [`outcome`](Self::outcome) says.
    ///
    /// # Errors
    /// ENXIO: it has no file. `BlockOnDevice`: its file is about to be let go of, or another change comes first; the waker is entered.
    pub fn ask(&self, change: &mut Option<Change>, waker: Option<Waker>, cx: &Cx) -> Step<StrongRc<Asked>> {
        if let Some(waker) = waker {
            self.room.register(waker, cx);
        }
        let asked = StrongRc::new(Asked(SpinLock::new(None)));
        let mut state = self.state.lock(cx);
        if state.is_ending || !matches!(state.changing, Changing::No) {
            return Err(Stop::BlockOnDevice);
        }
        if state.bound.is_none() || state.is_given_up {
            return Err(Errno::ENXIO.into());
        }
        state.changing = Changing::Next(change.take().ok_or(Errno::EINVAL)?, asked.downgrade());
        drop(state);
        self.work.wake_all();
        Ok(asked)
    }

    /// What came of a change.
    ///
    /// # Errors
    /// `BlockOnDevice`: it is not made yet; the waker is entered. EAGAIN: something was written just now. EINVAL: the file is not as large as the one before, or that can be written.
    pub fn outcome(&self, asked: &Asked, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if let Some(waker) = waker {
            self.room.register(waker, cx);
        }
        let outcome = *asked.0.lock(cx);
        Ok(outcome.ok_or(Stop::BlockOnDevice)??)
    }

    /// The next change, if nothing is left to do of what was accepted before.
    fn next_change(&self, cx: &Cx) -> Option<(Change, WeakRc<Asked>)> {
        let mut state = self.state.lock(cx);
        if !state.queue.is_empty() || !matches!(state.changing, Changing::Next(..)) {
            return None;
        }
        match core::mem::replace(&mut state.changing, Changing::UnderWay) {
            Changing::Next(change, asked) => Some((change, asked)),
            Changing::No | Changing::UnderWay => None,
        }
    }

    /// Makes a change. Nothing is accepted meanwhile.
    fn change_async(&self, cx: &mut Cx, disk: &Disk, (change, asked): (Change, WeakRc<Asked>)) {
        let outcome = self.try_change_async(cx, disk, change);
        self.state.lock(cx).changing = Changing::No;
        if let Ok(asked) = asked.upgrade(cx) {
            *asked.0.lock(cx) = Some(outcome);
        }
        self.room.wake_all();
    }

    fn try_change_async(&self, cx: &mut Cx, disk: &Disk, change: Change) -> Result<()> {
        let (file, offset, size_limit, is_read_only) = {
            let state = self.state.lock(cx);
            let bound = state.bound.as_ref().ok_or(Errno::ENXIO)?;
            (bound.file.downgrade(), bound.offset, bound.size_limit, bound.flags & READ_ONLY != 0)
        };
        if let Change::File(new, _) = &change {
            let size = |file: &OpenFile| file.location.inode.get(cx).metadata(cx).size;
            if !is_read_only || size(&new.get(cx)) != size(&*file.upgrade(cx)?) {
                return Err(Errno::EINVAL);
            }
        }
        let moves = self.moves_by(&change, cx);
        if moves {
            forget_async(cx, disk, false);
            // Whoever asked has written what was dirty. What came since may hold a part of what was there before.
            if disk.cache(cx).is_dirty(cx) {
                return Err(Errno::EAGAIN);
            }
        }
        let file = file.upgrade(cx)?;
        let sectors = match &change {
            Change::Status { offset: new, size_limit: limit, .. } if moves => Some(sectors_of(&file, *new, *limit, cx)),
            Change::Capacity => Some(sectors_of(&file, offset, size_limit, cx)),
            _ => None,
        };
        let mut state = self.state.lock(cx);
        let bound = state.bound.as_mut().ok_or(Errno::ENXIO)?;
        if let Some(sectors) = sectors {
            self.sectors.store(sectors, Ordering::Relaxed);
        }
        let mut old = None;
        match change {
            Change::Status { offset, size_limit, flags, name } => {
                (bound.offset, bound.size_limit, bound.name) = (offset, size_limit, name);
                bound.flags = bound.flags & !AUTOCLEAR | flags;
            }
            Change::File(new, path) => {
                bound.path = path;
                old = Some(core::mem::replace(&mut bound.file, new));
            }
            Change::Block(bytes) => self.block.store(bytes, Ordering::Relaxed),
            Change::Capacity => {}
        }
        drop(state);
        drop(old);
        Ok(())
    }

    /// The next request.
    fn next(&self, cx: &Cx) -> Option<Queued> {
        let next = self.state.lock(cx).queue.pop_front();
        if next.is_some() {
            self.room.wake_all();
        }
        next
    }

    /// Its file, and where it begins there.
    fn file(&self, cx: &Cx) -> Result<(WeakRc<OpenFile>, u64)> {
        let state = self.state.lock(cx);
        let bound = state.bound.as_ref().ok_or(Errno::EIO)?;
        Ok((bound.file.downgrade(), bound.offset))
    }

    /// Whether a request or a change waits for the task.
    fn has_work(&self, cx: &Cx) -> bool {
        let state = self.state.lock(cx);
        !state.queue.is_empty() || matches!(state.changing, Changing::Next(..))
    }

    /// Does a request.
    fn perform_async(&self, cx: &mut Cx, Queued { request, began }: Queued) {
        let outcome = match request.operation {
            Operation::Read | Operation::Write => self.transfer_async(cx, &request),
            Operation::Flush => self.flush_async(cx),
            Operation::Discard | Operation::WriteZeroes | Operation::Identify => Err(Errno::EIO),
        };
        self.statistics.end(&request, began);
        request.owner.completed(request.frames, outcome.map_err(|_| Errno::EIO), cx);
        self.room.wake_all();
    }

    /// Reads or writes page by page; others have their turn in between.
    fn transfer_async(&self, cx: &mut Cx, request: &Request) -> Result<()> {
        let (file, offset) = self.file(cx)?;
        let start = offset.checked_add(request.sector * SECTOR).ok_or(Errno::EIO)?;
        let mut left = request.sectors as usize * SECTOR as usize;
        let mut time_slice = TimeSlice::default();
        for (index, frame) in request.frames.iter().enumerate() {
            let (at, len) = (start + (index * PAGE_SIZE) as u64, left.min(PAGE_SIZE));
            let mut done = 0;
            wait_async(cx, |_, cx| {
                while done < len {
                    done += match request.operation {
                        Operation::Read => read(file, at + done as u64, frame, done..len, cx)?,
                        _ => write(file, at + done as u64, frame, done..len, cx)?,
                    };
                }
                Ok(())
            })?;
            left -= len;
            if time_slice.is_over() {
                tasks::pause_async(cx);
                time_slice = TimeSlice::default();
            }
        }
        Ok(())
    }

    /// Has the file's disk keep what was written.
    fn flush_async(&self, cx: &mut Cx) -> Result<()> {
        let (file, _) = self.file(cx)?;
        let mut progress = SyncProgress::default();
        wait_async(cx, |waker, cx| {
            let open = file.upgrade(cx)?;
            open.file.sync(0..u64::MAX, Depth::Kept, &mut progress, waker, cx)
        })
    }

    /// Lets its file go.
    fn unbind_async(&self, cx: &mut Cx, disk: &Disk) {
        let mut state = self.state.lock(cx);
        if disk.users() > 0 {
            // Who came before that was to be seen keeps it; with the last it lets go.
            state.is_ending = false;
            drop(state);
            self.room.wake_all();
            return;
        }
        // Nothing comes from it any more, and nobody gives it another file yet.
        let bound = state.bound.take();
        state.is_given_up = false;
        drop(state);
        // As long as it has a size.
        forget_async(cx, disk, true);
        self.sectors.store(0, Ordering::Relaxed);
        drop(bound);
        self.state.lock(cx).is_ending = false;
        self.room.wake_all();
    }
}

/// Forgets what a disk's cache has that nobody works on.
fn forget_async(cx: &mut Cx, disk: &Disk, with_dirty: bool) {
    let mut from = Some(0);
    while let Some(at) = from {
        from = disk.cache(cx).forget(at..u64::MAX, with_dirty, cx);
        tasks::pause_async(cx);
    }
}

/// How many sectors a file has from `offset` on, up to `limit` bytes; 0: up to its end.
fn sectors_of(file: &OpenFile, offset: u64, limit: u64, cx: &Cx) -> u64 {
    let size = file.location.inode.get(cx).metadata(cx).size.saturating_sub(offset);
    let size = if limit == 0 { size } else { size.min(limit) };
    size / SECTOR
}

/// Reads a range of a frame from a file; how many bytes. What the file does not have is zeros.
fn read(file: WeakRc<OpenFile>, offset: u64, frame: &UFrame, within: Range<usize>, cx: &Cx) -> Step<usize> {
    let open = file.upgrade(cx)?;
    let inode = open.location.inode.get(cx);
    let (start, len) = (within.start, within.len());
    match inode.ops.read(&inode, offset, &mut frame.writer(within), cx)? {
        0 => {
            // It is memory of the kernel's, which does not fault.
            let _ = frame.writer(start..start + len).zero(len);
            Ok(len)
        }
        count => Ok(count),
    }
}

/// Writes a range of a frame to a file; how many bytes.
fn write(file: WeakRc<OpenFile>, offset: u64, frame: &UFrame, within: Range<usize>, cx: &Cx) -> Step<usize> {
    let open = file.upgrade(cx)?;
    let inode = open.location.inode.get(cx);
    // Of a file of an overlay the layer's, to which it was copied when it was opened.
    let real = inode.ops.real_to_change(&inode, None, cx)?;
    let target = real.unwrap_or_else(|| inode.clone());
    let (count, _) = target.ops.write(&target, Some(offset), u64::MAX, &mut frame.reader(within), cx)?;
    inode.bring_up_to_date(cx);
    if count == 0 { Err(Errno::EIO.into()) } else { Ok(count) }
}

impl BlockDevice for LoopDevice {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            sectors: self.sectors.load(Ordering::Relaxed),
            is_read_only: self.is_read_only.load(Ordering::Relaxed),
            logical_block: self.block.load(Ordering::Relaxed),
        }
    }

    fn details(&self, cx: &Cx) -> Option<(&'static str, Vec<(&'static str, String)>)> {
        let state = self.state.lock(cx);
        let texts = match &state.bound {
            Some(bound) => {
                let flag = |flag| u32::from(bound.flags & flag != 0).to_string();
                let path = String::from_utf8_lossy(&bound.path).into_owned();
                [
                    path,
                    bound.offset.to_string(),
                    bound.size_limit.to_string(),
                    flag(AUTOCLEAR),
                    flag(PARTSCAN),
                    flag(DIRECT_IO),
                ]
            }
            None => Default::default(),
        };
        let names = ["backing_file", "offset", "sizelimit", "autoclear", "partscan", "dio"];
        Some(("loop", names.into_iter().zip(texts).collect()))
    }

    fn last_closed(&self) {
        let ends = self.state.with(|state| {
            let ends = state.bound.as_ref().is_some_and(|bound| bound.flags & AUTOCLEAR != 0);
            state.is_ending |= ends;
            ends
        });
        if ends {
            self.work.wake_all();
        }
    }

    fn lets_go(&self) -> bool {
        self.state.with(|state| state.is_ending)
    }

    fn submit(&self, request: Request, cx: &Cx) -> core::result::Result<(), (Request, Refused)> {
        let writes = !matches!(request.operation, Operation::Read | Operation::Flush);
        let mut state = self.state.lock(cx);
        let geometry = self.geometry();
        if state.bound.is_none()
            || !request.is_within_first(&self.limits, geometry.sectors)
            || (writes && geometry.is_read_only)
        {
            return Err((request, Refused::Gone));
        }
        if state.queue.len() >= DEPTH || !matches!(state.changing, Changing::No) {
            return Err((request, Refused::Full));
        }
        let began = self.statistics.begin();
        state.queue.push_back(Queued { request, began });
        drop(state);
        self.work.wake_all();
        Ok(())
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn room(&self) -> &WaitList {
        &self.room
    }
}

/// The task of a device.
struct Worker {
    device: &'static LoopDevice,
    disk: &'static Disk,
    /// How far what is dirty is written before its file is let go of.
    ending: SyncProgress,
    is_exempt: bool,
}

impl Body for Worker {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        if !core::mem::replace(&mut self.is_exempt, true) {
            block::cache::exempt(cx);
        }
        if let Some(queued) = self.device.next(cx) {
            self.device.perform_async(cx, queued);
            return Next::Again;
        }
        if let Some(change) = self.device.next_change(cx) {
            self.device.change_async(cx, self.disk, change);
            return Next::Again;
        }
        let waker = tasks::prepare(cx);
        self.device.work.register(waker, cx);
        if self.device.is_ending(cx) {
            let outcome = self.disk.cache(cx).sync(0..u64::MAX, Depth::Written, &mut self.ending, Some(waker), cx);
            if !matches!(outcome, Err(Stop::BlockOnDevice)) {
                self.ending = SyncProgress::default();
                tasks::finish_wait(cx);
                self.device.unbind_async(cx, self.disk);
                return Next::Again;
            }
        }
        // What has come meanwhile, from this very sync among others.
        if self.device.has_work(cx) {
            tasks::finish_wait(cx);
        } else {
            tasks::park_async(cx);
        }
        Next::Again
    }
}

//! Pipes and FIFOs.
//!
//! Whether the other end is there is a matter of references: all open reading ends share one [`Readers`] object, all writing ends one
//! [`Writers`], and each side keeps the name (`WeakRc`) of the other's. When the last end of a side is closed, that object dies: those who wait
//! on the other side are woken by its death, and find out by its name.
//!
//! ```text
//!   PipeEnd (reading) --StrongRc--> Readers <--WeakRc-- Pipe --WeakRc--> Writers <--StrongRc-- PipeEnd (writing)
//!        `-------------StrongRc------------------------> ^ <------------------------StrongRc-------'
//! ```
//!
//! Locks: `passing`, what the target of a splice(2) takes for a write, a pipe's state, then what each user's pipes hold; wakers are called after it is unlocked.

mod end;
mod fifo;
mod packets;
mod tee;
mod user_pages;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WaitList, WeakRc};

pub use fifo::open_fifo_async;
use packets::Segments;
pub use tee::tee_async;
use user_pages::PageCharge;
pub use user_pages::{HARD_LIMIT, PipeUser, SOFT_LIMIT};

use crate::error::{Errno, Result};
use crate::fs::fasync::FasyncList;
use crate::fs::{Counted, File, OpenFlags};
use crate::ring::Ring;
use crate::step::{Caller, Patience, Stop, complete_async};

/// A write of at most so many bytes is never mixed with another (pipe(7)).
pub const PIPE_BUF: usize = crate::ring::ATOMIC;
const DEFAULT_CAPACITY: usize = 65536;
/// What a user without privileges may ask for.
static MAX_CAPACITY: AtomicUsize = AtomicUsize::new(1 << 20);

/// The largest capacity that a user without privileges may ask for (`/proc/sys/fs/pipe-max-size`).
pub fn max_capacity() -> usize {
    MAX_CAPACITY.load(Ordering::Relaxed)
}

/// Changes the largest capacity that a user without privileges may ask for; it becomes a power of two, at least a page.
///
/// # Errors
/// EINVAL above 2 GiB.
pub fn set_max_capacity(bytes: usize) -> Result<()> {
    if bytes > 1 << 31 {
        return Err(Errno::EINVAL);
    }
    MAX_CAPACITY.store(bytes.next_power_of_two().max(PIPE_BUF), Ordering::Relaxed);
    Ok(())
}

/// Lives as long as a reading end is open.
struct Readers;

/// Lives as long as a writing end is open.
struct Writers;

/// A pipe, or what is behind a FIFO.
pub struct Pipe {
    /// Whether it is a FIFO: opening one waits for the other side, opening a pipe again (through `/proc/PID/fd`) does not.
    named: bool,
    /// Whether it ever had an end that asks for signals or writes packets, or what it held was passed on: reads and writes look for more then.
    /// It is set with the state locked, and who reads or writes asks with the state locked.
    is_special: AtomicBool,
    /// Held by who reads from a special pipe, and by who passes on what it holds, from the look at it until it is taken out.
    passing: SpinLock<()>,
    state: SpinLock<PipeState>,
    /// Who waits for data.
    readable: WaitList,
    /// Who waits for room.
    writable: WaitList,
    /// Who waits in open(2) of a FIFO for the other side.
    opened: WaitList,
    /// Which ends ask for signals.
    fasync: FasyncList,
}

struct PipeState {
    ring: Ring,
    /// Where packets begin and end, if one was ever written.
    segments: Option<Segments>,
    /// Its memory, as long as nobody sees its end.
    counted: Option<Counted>,
    /// What it counts for its user, while it has ends.
    charge: Option<PageCharge>,
    readers: Option<WeakRc<Readers>>,
    writers: Option<WeakRc<Writers>>,
    /// How many are waiting in open(2) for a writer; they count as readers already.
    opening_readers: u32,
    opening_writers: u32,
    /// How many reading ends were opened so far.
    readers_so_far: u64,
    writers_so_far: u64,
}

impl PipeState {
    /// Its first end comes, with room for what is counted.
    fn bring(&mut self, charge: PageCharge) {
        self.ring = Ring::new(charge.capacity());
        self.charge = Some(charge);
    }

    /// Makes room for so many bytes, as far as they fit; the caller has [asked](crate::memory::admit) for memory with nothing locked: what gives some may be another pipe's.
    ///
    /// # Errors
    /// ENOMEM.
    #[cold]
    fn grow(&mut self, more: usize) -> Result<()> {
        self.ring.grow(more).map_err(|_| Errno::ENOMEM)?;
        self.count_memory();
        Ok(())
    }

    /// Its memory has become more, or less.
    fn count_memory(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.set_bytes(self.ring.allocated());
        }
    }

    /// Whether its user's other pipes are refused or small sooner because of it.
    fn counts_for_others(&self) -> bool {
        self.charge.as_ref().is_some_and(PageCharge::counts_for_others)
    }

    /// How many more bytes fit.
    #[inline(always)]
    fn room(&self) -> usize {
        match &self.segments {
            None => self.ring.room(),
            Some(segments) => segments.room(&self.ring),
        }
    }

    #[inline(always)]
    fn has_readers(&self) -> bool {
        self.readers.is_some_and(|readers| !readers.is_gone()) || self.opening_readers > 0
    }

    #[inline(always)]
    fn has_writers(&self) -> bool {
        self.writers.is_some_and(|writers| !writers.is_gone()) || self.opening_writers > 0
    }
}

/// An open end of a pipe: reading, writing, or (of a FIFO opened with O_RDWR) both.
pub struct PipeEnd {
    pipe: StrongRc<Pipe>,
    readers: Option<StrongRc<Readers>>,
    writers: Option<StrongRc<Writers>>,
    /// A FIFO that was opened for reading before there was any writer is not at its end until one has come and gone.
    opened_before_writer: Option<u64>,
    /// Whether what is written here are packets (O_DIRECT).
    writes_packets: AtomicBool,
}

impl Pipe {
    /// An empty pipe without ends: a FIFO that nobody has open.
    pub fn new() -> StrongRc<Pipe> {
        StrongRc::new(Self::empty(true))
    }

    fn empty(named: bool) -> Self {
        Pipe {
            named,
            is_special: AtomicBool::new(false),
            passing: SpinLock::new(()),
            state: SpinLock::new(PipeState {
                ring: Ring::new(DEFAULT_CAPACITY),
                segments: None,
                counted: None,
                charge: None,
                readers: None,
                writers: None,
                opening_readers: 0,
                opening_writers: 0,
                readers_so_far: 0,
                writers_so_far: 0,
            }),
            readable: WaitList::new(),
            writable: WaitList::new(),
            opened: WaitList::new(),
            fasync: FasyncList::default(),
        }
    }

    /// From now on reads and writes look for more.
    fn become_special(&self) {
        self.state.with(|_| self.is_special.store(true, Ordering::Relaxed));
    }

    /// A new pipe's reading and writing end.
    ///
    /// # Errors
    /// ENFILE: the user's pipes are too large together.
    pub fn pair(by: PipeUser, cx: &Cx) -> Result<(PipeEnd, PipeEnd)> {
        let charge = PageCharge::new(by)?;
        let pipe = StrongRc::new(Self::empty(false));
        let (readers, writers) = (StrongRc::new(Readers), StrongRc::new(Writers));
        {
            let object = pipe.get(cx);
            let mut state = object.state.lock(cx);
            (state.readers, state.writers) = (Some(readers.downgrade()), Some(writers.downgrade()));
            state.bring(charge);
        }
        let reading = PipeEnd::new(pipe.share(), Some(readers), None, None);
        Ok((reading, PipeEnd::new(pipe, None, Some(writers), None)))
    }

    /// Opens an end of a FIFO. Waits for the other side as fifo(7) says.
    ///
    /// # Errors
    /// ENXIO: for writing only, O_NONBLOCK, and no reader. A signal.
    pub fn open_async(
        cx: &mut Cx,
        me: &mut impl Caller,
        fifo: WeakRc<Pipe>,
        flags: OpenFlags,
        by: PipeUser,
    ) -> Result<Box<dyn File>> {
        let reads = !flags.contains(OpenFlags::WRITE_ONLY);
        let writes = flags.intersects(OpenFlags::WRITE_ONLY | OpenFlags::READ_WRITE);
        let (named, others_so_far) = {
            let fifo = fifo.upgrade(cx)?;
            (fifo.named, fifo.announce(reads, writes, flags, by, cx)?)
        };
        let mut outcome = Ok(());
        if named && reads != writes && !flags.contains(OpenFlags::NONBLOCK) {
            outcome = complete_async(cx, me, Patience::Forever, |cx, _, waker| {
                // One that has lost its last name nobody else opens any more: only a signal ends the wait.
                let Ok(fifo) = fifo.upgrade(cx) else { return Err(Stop::Block) };
                if let Some(waker) = waker {
                    fifo.opened.register(waker, cx);
                }
                let state = fifo.state.lock(cx);
                let (there, so_far) = if reads {
                    (state.has_writers(), state.writers_so_far)
                } else {
                    (state.has_readers(), state.readers_so_far)
                };
                if there || so_far != others_so_far { Ok(()) } else { Err(Stop::Block) }
            });
        }
        // Its last name may have gone meanwhile, and the FIFO with it.
        let end = match fifo.upgrade(cx) {
            Ok(fifo) => Pipe::enter(&fifo, reads, writes, cx),
            Err(_) => Err(Errno::ENOENT),
        };
        outcome.and(end.map(|end| Box::new(end) as Box<dyn File>))
    }

    /// Says that an end is being opened; how many of the other side were opened before.
    fn announce(&self, reads: bool, writes: bool, flags: OpenFlags, by: PipeUser, cx: &Cx) -> Result<u64> {
        let mut state = self.state.lock(cx);
        if self.named && writes && !reads && flags.contains(OpenFlags::NONBLOCK) && !state.has_readers() {
            return Err(Errno::ENXIO);
        }
        if state.charge.is_none() {
            // For a FIFO Linux says ENOMEM.
            state.bring(PageCharge::new(by).map_err(|_| Errno::ENOMEM)?);
        }
        let others_so_far = if reads { state.writers_so_far } else { state.readers_so_far };
        if reads {
            state.opening_readers += 1;
            state.readers_so_far += 1;
        }
        if writes {
            state.opening_writers += 1;
            state.writers_so_far += 1;
        }
        drop(state);
        self.opened.wake_all();
        Ok(others_so_far)
    }

    /// Ends what [`announce`](Self::announce) began.
    fn enter(fifo: &TempRc<'_, Self>, reads: bool, writes: bool, cx: &Cx) -> Result<PipeEnd> {
        let mut state = fifo.state.lock(cx);
        let (mut readers, mut writers) = (None, None);
        let (mut has_new_readers, mut has_new_writers) = (false, false);
        let opened_before_writer =
            (fifo.named && reads && !writes && !state.has_writers()).then_some(state.writers_so_far);
        if reads {
            state.opening_readers -= 1;
            let object = state.readers.and_then(|readers| readers.upgrade(cx).ok()?.share());
            has_new_readers = object.is_none();
            let object = object.unwrap_or_else(|| StrongRc::new(Readers));
            state.readers = Some(object.downgrade());
            readers = Some(object);
        }
        if writes {
            state.opening_writers -= 1;
            let object = state.writers.and_then(|writers| writers.upgrade(cx).ok()?.share());
            has_new_writers = object.is_none();
            let object = object.unwrap_or_else(|| StrongRc::new(Writers));
            state.writers = Some(object.downgrade());
            writers = Some(object);
        }
        drop(state);
        // Those who wait on the other side began when there was nobody here whose end they could watch.
        if has_new_readers {
            fifo.writable.wake_all();
        }
        if has_new_writers {
            fifo.readable.wake_all();
        }
        let pipe = fifo.share().ok_or(Errno::ENXIO)?;
        Ok(PipeEnd::new(pipe, readers, writers, opened_before_writer))
    }
}

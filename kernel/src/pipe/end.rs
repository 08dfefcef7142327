//! [`PipeEnd`]: reading, writing and waiting at an open end of a pipe.

use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::FIONREAD;
use refs::{StrongRc, Waker};

use super::packets::Segments;
use super::{DEFAULT_CAPACITY, PIPE_BUF, Pipe, PipeEnd, PipeState, PipeUser, Readers, Writers, max_capacity};
use crate::error::{Errno, Result};
use crate::fs::anonymous;
use crate::fs::fasync::{Band, Registration};
use crate::fs::{Counted, Events, File, FileEnd, OpenFlags, UnseenContents, VfsCaller};
use crate::heap::{object_bytes, slot_bytes};
use crate::reclaim::Held;
use crate::ring::Ring;
use crate::step::{Step, Stop};
use crate::user_memory::Argument;

/// What the two ends of an empty pipe take, at least, besides their descriptions.
const BYTES: usize = object_bytes::<Pipe>()
    + object_bytes::<Readers>()
    + object_bytes::<Writers>()
    + 2 * slot_bytes(size_of::<PipeEnd>())
    + anonymous::INODE_BYTES
    + slot_bytes(size_of::<StrongRc<Pipe>>());

/// Whether so many bytes can be written to a pipe, or a part of them, after others may have come before.
#[cold]
fn check_room(state: &PipeState, len: usize) -> Step<()> {
    let room = state.room();
    if !state.has_readers() {
        Err(Errno::EPIPE.into())
    } else if room < len && (len <= PIPE_BUF || room == 0) {
        Err(Stop::Block)
    } else {
        Ok(())
    }
}

impl PipeEnd {
    pub(super) fn new(
        pipe: StrongRc<Pipe>,
        readers: Option<StrongRc<Readers>>,
        writers: Option<StrongRc<Writers>>,
        opened_before_writer: Option<u64>,
    ) -> Self {
        PipeEnd { pipe, readers, writers, opened_before_writer, writes_packets: AtomicBool::new(false) }
    }

    /// Reads from a pipe that may have packets or ends that ask for signals, or from which others pass something on.
    #[cold]
    fn read_special(&self, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let pipe = self.pipe.get(cx);
        let _alone = pipe.passing.lock(cx);
        self.read_alone(to, cx)
    }

    fn read_alone(&self, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let pipe = self.pipe.get(cx);
        let mut state = pipe.state.lock(cx);
        if state.ring.is_empty() {
            return if state.has_writers() { Err(Stop::Block) } else { Ok(0) };
        }
        let PipeState { ring, segments, .. } = &mut *state;
        let count = match segments {
            Some(segments) => segments.pop(ring, to)?,
            None => ring.pop(to)?,
        };
        let has_room = state.room() >= PIPE_BUF;
        drop(state);
        if has_room {
            pipe.writable.wake();
        }
        pipe.fasync.signal(Events::OUT, Band::Out, cx);
        Ok(count)
    }

    /// Writes to a pipe that may have packets or ends that ask for signals.
    #[cold]
    fn write_special(&self, from: &mut Reader<'_>, cx: &Cx) -> Step<usize> {
        let len = from.remaining();
        let as_packets = self.writes_packets.load(Ordering::Relaxed);
        let pipe = self.pipe.get(cx);
        let mut state = pipe.state.lock(cx);
        if !state.has_readers() {
            return Err(Errno::EPIPE.into());
        }
        let room = state.room();
        if room < len && (len <= PIPE_BUF || room == 0) {
            return Err(Stop::Block);
        }
        if state.ring.would_grow(len) {
            drop(state);
            crate::memory::admit()?;
            state = pipe.state.lock(cx);
            check_room(&state, len)?;
            state.grow(len)?;
        }
        let PipeState { ring, segments, .. } = &mut *state;
        if as_packets && segments.is_none() {
            *segments = Some(Segments::of(ring));
        }
        let count = match segments {
            Some(segments) => segments.push(ring, from, as_packets)?,
            None => ring.push(from)?,
        };
        drop(state);
        if count > 0 {
            pipe.readable.wake();
        }
        pipe.fasync.signal(Events::IN, Band::In, cx);
        Ok(count)
    }

    /// What is ready. Of a writing end, `room` says how many bytes fit.
    #[inline(always)]
    fn look(&self, interest: Events, room: Option<fn(&PipeState) -> usize>, cx: &Cx) -> Events {
        let pipe = self.pipe.get(cx);
        let state = pipe.state.lock(cx);
        let mut events = Events::empty();
        if self.readers.is_some() {
            if !state.ring.is_empty() {
                events |= Events::IN | Events::READ_NORMAL;
            }
            if !state.has_writers() && self.opened_before_writer != Some(state.writers_so_far) {
                events |= Events::HANG_UP;
            }
        }
        if let Some(room) = room {
            if room(&state) >= PIPE_BUF {
                events |= Events::OUT | Events::WRITE_NORMAL;
            }
            if !state.has_readers() {
                events |= Events::ERROR;
            }
        }
        events & (interest | Events::ERROR | Events::HANG_UP)
    }

    /// What is ready of a writing end.
    #[inline(never)]
    fn look_as_writer(&self, interest: Events, cx: &Cx) -> Events {
        if self.pipe.get(cx).is_special.load(Ordering::Relaxed) {
            return self.look_special(interest, cx);
        }
        self.look(interest, Some(|state| state.ring.room()), cx)
    }

    /// What is ready of a writing end whose pipe may have packets.
    #[cold]
    #[inline(never)]
    fn look_special(&self, interest: Events, cx: &Cx) -> Events {
        self.look(interest, Some(PipeState::room), cx)
    }

    /// As [`poll`](File::poll), with a waker. Apart from it: polling without one is quicker for it.
    #[inline(never)]
    fn enter_and_poll(&self, interest: Events, waker: Waker, cx: &Cx) -> Events {
        self.enter(waker, cx);
        self.poll(interest, None, cx)
    }

    /// Has `waker` woken when this end may have become ready.
    #[inline(always)]
    fn enter(&self, waker: Waker, cx: &Cx) {
        let pipe = self.pipe.get(cx);
        if self.readers.is_some() {
            pipe.readable.register(waker, cx);
        }
        if self.writers.is_some() {
            pipe.writable.register(waker, cx);
        }
        // Whoever makes others than these wakes those who are in the lists by now.
        let state = pipe.state.lock(cx);
        let (readers, writers) = (state.readers, state.writers);
        drop(state);
        if self.readers.is_some()
            && let Some(writers) = writers.filter(|writers| !writers.is_gone())
        {
            writers.watch(waker, cx);
        }
        if self.writers.is_some()
            && let Some(readers) = readers.filter(|readers| !readers.is_gone())
        {
            readers.watch(waker, cx);
        }
    }

    /// The pipe, for what keeps it as the pipe behind a FIFO.
    pub fn pipe(&self) -> StrongRc<Pipe> {
        self.pipe.share()
    }

    /// Copies what is in the pipe and leaves it there (tee(2)); 0 if it is empty and nobody can write to it.
    ///
    /// # Errors
    /// EBADF for a writing end. Says `Block` where there is nothing yet.
    pub fn peek(&self, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        if self.readers.is_none() {
            return Err(Errno::EBADF.into());
        }
        let pipe = self.pipe.get(cx);
        let state = pipe.state.lock(cx);
        if state.ring.is_empty() {
            return if state.has_writers() { Err(Stop::Block) } else { Ok(0) };
        }
        // Of packets the first one, as a read would.
        let most = state.segments.as_ref().map_or(usize::MAX, Segments::first);
        Ok(state.ring.copy_at_most(to, most)?)
    }

    /// Whether both are ends of one pipe.
    pub fn is_same_pipe(&self, other: &PipeEnd) -> bool {
        self.pipe.downgrade() == other.pipe.downgrade()
    }

    /// How many bytes the pipe holds at most (F_GETPIPE_SZ).
    pub fn capacity(&self, cx: &Cx) -> usize {
        self.pipe.get(cx).state.lock(cx).ring.limit()
    }

    /// Changes how many bytes the pipe holds at most (F_SETPIPE_SZ); what it became.
    ///
    /// # Errors
    /// EBUSY: it holds more. EPERM: beyond what a user without privileges may have, in one pipe or in all. EINVAL.
    pub fn set_capacity(&self, bytes: usize, by: PipeUser, cx: &Cx) -> Result<usize> {
        if bytes > 1 << 31 {
            return Err(Errno::EINVAL);
        }
        let capacity = bytes.next_power_of_two().max(PIPE_BUF);
        let pipe = self.pipe.get(cx);
        let mut state = pipe.state.lock(cx);
        let old = state.ring.limit();
        if capacity > old && capacity > max_capacity() && !by.exceeds_size {
            return Err(Errno::EPERM);
        }
        let PipeState { ring, segments, charge, .. } = &mut *state;
        if let Some(charge) = charge {
            charge.resize(capacity, by)?;
        }
        let pages = segments.as_ref().map_or(0, Segments::pages);
        if pages * PIPE_BUF > capacity || !ring.set_limit(capacity) {
            if let Some(charge) = charge {
                charge.recount(old);
            }
            return Err(Errno::EBUSY);
        }
        state.count_memory();
        drop(state);
        pipe.writable.wake_all();
        Ok(capacity)
    }
}

impl Drop for PipeEnd {
    /// What is in a FIFO goes with its last end, and so does its memory.
    fn drop(&mut self) {
        (self.readers, self.writers) = (None, None);
        self.pipe.with(|pipe| {
            if pipe.named {
                let ended = pipe.state.with(|state| {
                    let is_over = !state.has_readers() && !state.has_writers();
                    is_over.then(|| {
                        let ring = core::mem::replace(&mut state.ring, Ring::new(DEFAULT_CAPACITY));
                        (ring, state.segments.take(), state.charge.take())
                    })
                });
                drop(ended);
            }
        });
    }
}

impl File for PipeEnd {
    fn end(&self) -> FileEnd {
        // A FIFO has a name. What others of its user may have depends on how many pages a pipe may hold.
        let is_seen = self.pipe.with(|pipe| pipe.named || pipe.state.with(|state| state.counts_for_others()));
        if is_seen { FileEnd::Seen } else { FileEnd::UnseenBy { bytes: BYTES / 2 } }
    }

    fn class(&self) -> Held {
        Held::Pipe
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        // Half for each end: nearly always both are there.
        512 + self.pipe.get(cx).state.lock(cx).ring.allocated() / 2
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if self.readers.is_none() {
            return Err(Errno::EBADF.into());
        }
        if to.remaining() == 0 {
            return Ok(0);
        }
        let pipe = self.pipe.get(cx);
        let mut state = pipe.state.lock(cx);
        if pipe.is_special.load(Ordering::Relaxed) {
            drop(state);
            return self.read_special(to, cx);
        }
        if state.ring.is_empty() {
            return if state.has_writers() { Err(Stop::Block) } else { Ok(0) };
        }
        let count = state.ring.pop(to)?;
        let has_room = state.ring.room() >= PIPE_BUF;
        drop(state);
        if has_room {
            pipe.writable.wake();
        }
        Ok(count)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if self.writers.is_none() {
            return Err(Errno::EBADF.into());
        }
        let len = from.remaining();
        let pipe = self.pipe.get(cx);
        let mut state = pipe.state.lock(cx);
        if pipe.is_special.load(Ordering::Relaxed) {
            drop(state);
            return self.write_special(from, cx);
        }
        if !state.has_readers() {
            return if len == 0 { Ok(0) } else { Err(Errno::EPIPE.into()) };
        }
        let room = state.ring.room();
        if room < len && (len <= PIPE_BUF || room == 0) {
            return Err(Stop::Block);
        }
        if state.ring.would_grow(len) {
            drop(state);
            crate::memory::admit()?;
            state = pipe.state.lock(cx);
            if pipe.is_special.load(Ordering::Relaxed) {
                drop(state);
                return self.write_special(from, cx);
            }
            check_room(&state, len)?;
            state.grow(len)?;
        }
        let count = state.ring.push(from)?;
        drop(state);
        if count > 0 {
            pipe.readable.wake();
        }
        Ok(count)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            return self.enter_and_poll(interest, waker, cx);
        }
        if self.writers.is_some() {
            return self.look_as_writer(interest, cx);
        }
        self.look(interest, None, cx)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn passes_on(&self, _cx: &Cx) -> bool {
        self.readers.is_some()
    }

    fn pass_on(&self, buffer: &mut [u8], take: &mut dyn FnMut(&mut Reader<'_>) -> Step<usize>, cx: &Cx) -> Step<usize> {
        let pipe = self.pipe.get(cx);
        if !pipe.is_special.load(Ordering::Relaxed) {
            pipe.become_special();
        }
        let _alone = pipe.passing.lock(cx);
        let count = self.peek(&mut Writer::from(&mut *buffer), cx)?;
        if count == 0 {
            return Ok(0);
        }
        let taken = take(&mut Reader::from(buffer.get(..count).unwrap_or_default()))?.min(count);
        if taken > 0 {
            self.read_alone(&mut Writer::from(buffer.get_mut(..taken).unwrap_or_default()), cx)?;
        }
        Ok(taken)
    }

    fn is_other_end_of(&self, other: &(dyn File + 'static), _cx: &Cx) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref().is_some_and(|other| self.is_same_pipe(other))
    }

    fn join_contents(&self, contents: &StrongRc<UnseenContents>) -> bool {
        // Its two ends have it in common.
        self.pipe.with(|pipe| pipe.state.with(|state| _ = state.counted.get_or_insert_with(|| Counted::new(contents))));
        true
    }

    fn leave_contents(&self) {
        drop(self.pipe.with(|pipe| pipe.state.with(|state| state.counted.take())));
    }

    /// Nobody but who has it open waits at a FIFO that nobody opens, and none of its user's other pipes are smaller because of it.
    fn end_without_names(&self) -> Option<(u32, usize)> {
        self.pipe.with(|pipe| {
            let (is_quiet, memory) = pipe.state.with(|state| {
                let is_quiet = state.opening_readers + state.opening_writers == 0 && !state.counts_for_others();
                (is_quiet, state.ring.allocated())
            });
            let is_fifo = pipe.named && is_quiet && !pipe.fasync.has_any();
            let objects = object_bytes::<Pipe>() + slot_bytes(size_of::<StrongRc<Pipe>>());
            let readers = self.readers.as_ref().map_or(0, |_| object_bytes::<Readers>());
            let writers = self.writers.as_ref().map_or(0, |_| object_bytes::<Writers>());
            is_fifo.then_some((0, slot_bytes(size_of::<Self>()) + objects + readers + writers + memory))
        })
    }

    fn take_counted(&self) -> usize {
        let counted = self.pipe.with(|pipe| pipe.state.with(|state| state.counted.take()));
        counted.map_or(0, |counted| counted.bytes())
    }

    /// Sends the other side signals where it loses its last end here.
    fn release(&self, cx: &Cx) -> bool {
        let pipe = self.pipe.get(cx);
        if !pipe.fasync.has_any() {
            return false;
        }
        let state = pipe.state.lock(cx);
        let ends_reading = self.readers.as_ref().is_some_and(|readers| readers.owners() == 1);
        let ends_writing = self.writers.as_ref().is_some_and(|writers| writers.owners() == 1);
        let (reads, writes) = (state.has_readers() && !ends_reading, state.has_writers() && !ends_writing);
        drop(state);
        if reads != writes {
            pipe.fasync.signal(Events::IN, Band::In, cx);
            pipe.fasync.signal(Events::OUT, Band::Out, cx);
        }
        false
    }

    fn fasync(&self, registration: &Registration<'_>, cx: &Cx) -> bool {
        let mut interest = Events::empty();
        interest.set(Events::IN, self.readers.is_some());
        interest.set(Events::OUT, self.writers.is_some());
        let pipe = self.pipe.get(cx);
        registration.apply(&pipe.fasync, interest, cx);
        pipe.become_special();
        true
    }

    fn flags_changed(&self, flags: OpenFlags) {
        let writes_packets = flags.contains(OpenFlags::DIRECT) && self.writers.is_some();
        self.writes_packets.store(writes_packets, Ordering::Relaxed);
        if writes_packets {
            self.pipe.with(Pipe::become_special);
        }
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let waiting = self.pipe.get(cx).state.lock(cx).ring.len() as i32;
        me.memory(cx)?.write(argument.output::<i32>(), &waiting)?;
        Ok(0)
    }
}

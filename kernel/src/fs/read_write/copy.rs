//! Copies from file to file inside the kernel: what sendfile(2), copy_file_range(2) and splice(2) do.
//!
//! A file that keeps its content in pages lends them to the target ([`InodeOps::lend`](crate::fs::InodeOps::lend)): no byte is copied on the way. All others
//! are read into a buffer, from which the target is written. What a pipe holds stays in it until the target has taken it ([`File::pass_on`](crate::fs::File::pass_on)).

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, UFrame, Writer};
use refs::{Waker, WeakRc};

use super::write::{raise_for, write_from};
use super::{Position, Wait, check, finish, offset, watch};
use crate::error::{Errno, Result};
use crate::fs::inode_file::InodeFile;
use crate::fs::notify::{self, FileEvents};
use crate::fs::{Events, FileKind, InodeFlags, OpenFile, OpenFlags, VfsCaller};
use crate::ring::ATOMIC;
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async};

/// Where bytes come from or go to.
#[derive(Clone, Copy)]
pub struct CopyEnd {
    /// The description.
    pub name: WeakRc<OpenFile>,
    /// Where in it.
    pub position: Position,
}

impl CopyEnd {
    /// The same end with the description's offset as it is now, if it has one: that moves on when all is done, so that a file can be copied onto itself.
    fn fixed(&self, open: &OpenFile) -> CopyEnd {
        CopyEnd {
            position: if open.is_seekable { Position::At(offset(open, self.position, 0)) } else { self.position },
            ..*self
        }
    }

    /// The description's offset moves on by what was copied from where it was `fixed`, if it was that.
    fn move_on(&self, fixed: &CopyEnd, copied: usize, cx: &Cx) {
        if let (Position::Current, Position::At(_)) = (self.position, fixed.position)
            && let Ok(open) = self.name.upgrade(cx)
        {
            open.offset.store(offset(&open, fixed.position, copied), Ordering::Relaxed);
        }
    }

    fn at(&self, done: usize) -> Position {
        match self.position {
            Position::At(start) => Position::At(start.saturating_add(done as u64)),
            Position::Current => Position::Current,
        }
    }
}

/// For what a copy waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Nothing: EAGAIN where there is nothing to read, or no room.
    Never,
    /// The first bytes; then it takes what is there and as far as there is room, as splice(2) does.
    First,
    /// All bytes, until the end.
    All,
}

impl Waits {
    /// Whether what comes behind byte number `done` is not waited for.
    fn no_longer(self, done: usize) -> bool {
        self == Waits::Never || (self == Waits::First && done > 0)
    }
}

/// Checks what copy_file_range(2) asks for; how many bytes there are to copy.
///
/// # Errors
/// EBADF, EISDIR, EINVAL (no regular files; ranges of one file that overlap); EOVERFLOW where an offset would be beyond what can be counted. EPERM: what is to be written is immutable.
pub fn check_ranges(cx: &Cx, _me: &impl VfsCaller, from: &CopyEnd, to: &CopyEnd, len: usize) -> Result<usize> {
    let source = from.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
    let target = to.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
    let (source_inode, target_inode) = (source.inode(cx)?, target.inode(cx)?);
    for inode in [&source_inode, &target_inode] {
        match inode.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Errno::EISDIR),
            _ => return Err(Errno::EINVAL),
        }
    }
    if !source.flags().can_read() || !target.flags().can_write() || target.flags().contains(OpenFlags::APPEND) {
        return Err(Errno::EBADF);
    }
    // Unlike write(2), it asks even of a description that was open before.
    target_inode.check_not(InodeFlags::IMMUTABLE)?;
    let offset = |end: &CopyEnd, open: &OpenFile| match end.position {
        Position::At(offset) => offset,
        Position::Current => open.offset.load(Ordering::Relaxed),
    };
    let (start, to_start) = (offset(from, &source), offset(to, &target));
    if start.checked_add(len as u64).is_none() || to_start.checked_add(len as u64).is_none() {
        return Err(Errno::EOVERFLOW);
    }
    let len = (len as u64).min(source_inode.metadata(cx).size.saturating_sub(start));
    let overlaps = start < to_start.saturating_add(len) && to_start < start.saturating_add(len);
    if source_inode.downgrade() == target_inode.downgrade() && overlaps {
        return Err(Errno::EINVAL);
    }
    Ok(len as usize)
}

/// Pages that are on their way at a time, as on Linux: who gets messages gets one of so many.
const PAGES: usize = 16;
/// Bytes in a buffer.
const BUFFER: usize = 16384;

/// Copies up to `len` bytes, until the end of `from`; how many. What was read from a seekable file and not taken by `to` is not lost: its offset moves on
/// by what was copied.
///
/// # Errors
/// Those of read(2) and write(2), where nothing was copied. ENOMEM.
pub fn copy_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    from: &CopyEnd,
    to: &CopyEnd,
    len: usize,
    waits: Waits,
) -> Result<usize> {
    let source = from.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
    let target = to.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
    let lends = source.kind::<InodeFile>().is_some() && source.inode(cx)?.ops.lend(0, &mut [], cx).is_some();
    let keeps_messages = target.file.keeps_messages(cx);
    let passes_on = source.file.passes_on(cx);
    let (fixed_from, fixed_to) = (from.fixed(&source), to.fixed(&target));
    drop((source, target));
    let pieces = if lends { Pieces::Pages } else { Pieces::Bytes };
    let copied = if lends && !keeps_messages {
        let wait = Wait::new(Events::OUT, false);
        Lending { from: &fixed_from, to: &fixed_to, len, waits, wait, done: 0 }.run_async(cx, me)?
    } else if passes_on {
        Passing::new(&fixed_from, &fixed_to, len, waits)?.run_async(cx, me)?
    } else {
        buffer_async(cx, me, &fixed_from, &fixed_to, len, waits, pieces)?
    };
    from.move_on(&fixed_from, copied, cx);
    to.move_on(&fixed_to, copied, cx);
    notify::transferred(from.name, copied, FileEvents::ACCESS, cx);
    notify::transferred(to.name, copied, FileEvents::MODIFY, cx);
    Ok(copied)
}

/// A copy of a file whose pages are lent to the target.
struct Lending<'a> {
    from: &'a CopyEnd,
    to: &'a CopyEnd,
    len: usize,
    waits: Waits,
    wait: Wait,
    done: usize,
}

impl Lending<'_> {
    fn run_async(mut self, cx: &mut Cx, me: &mut impl VfsCaller) -> Result<usize> {
        let outcome = complete_async(cx, me, Patience::Forever, |cx, me, waker| self.step(waker, me, cx));
        if let Err(error) = outcome
            && !self.wait.is_silent()
        {
            raise_for(error, self.to.name, me, cx);
        }
        finish(outcome, self.done)
    }

    /// Writes pages until all is done, the target has no room, or the time is over. What was lent goes back when it ends.
    fn step(&mut self, waker: Option<Waker>, me: &impl VfsCaller, cx: &Cx) -> Step<usize> {
        let (from, to) = (self.from, self.to);
        let source = from.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let target = to.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&source, OpenFlags::can_read, from.position)?;
        check(&target, OpenFlags::can_write, to.position)?;
        if let Some(waker) = waker {
            from.name.watch(waker, cx);
            watch(&target, &to.name, Events::OUT, waker, cx);
        }
        let inode = source.inode(cx)?;
        let mut time_slice = TimeSlice::default();
        while self.done < self.len {
            let start = offset(&source, from.position, self.done);
            let mut frames = [const { None }; PAGES];
            let size = inode.ops.lend(start / PAGE_SIZE as u64, &mut frames, cx).unwrap_or(0);
            source.touch_accessed(cx);
            let mut left = size.saturating_sub(start).min((self.len - self.done) as u64) as usize;
            if left == 0 {
                break;
            }
            let mut within = (start % PAGE_SIZE as u64) as usize;
            for frame in &frames {
                if left == 0 {
                    break;
                }
                let mut page = reader(frame.as_ref(), within, left);
                while page.remaining() > 0 {
                    let written = write_from(&target, &mut page, to.position, self.done, false, me, cx);
                    self.wait.set_no_wait(self.waits.no_longer(self.done));
                    match self.wait.apply(written, &target, cx)? {
                        0 => return Ok(self.done),
                        written => (self.done, left) = (self.done + written, left - written),
                    }
                    self.wait.restart();
                }
                within = 0;
                if left > 0 && time_slice.is_over() {
                    return Err(Stop::Pause(Interruption::Signals));
                }
            }
        }
        Ok(self.done)
    }
}

/// A copy of what is taken out of the source only when the target has it.
struct Passing<'a> {
    from: &'a CopyEnd,
    to: &'a CopyEnd,
    len: usize,
    waits: Waits,
    for_bytes: Wait,
    for_room: Wait,
    buffer: Vec<u8>,
    done: usize,
}

impl<'a> Passing<'a> {
    /// # Errors
    /// ENOMEM.
    fn new(from: &'a CopyEnd, to: &'a CopyEnd, len: usize, waits: Waits) -> Result<Self> {
        let size = len.min(BUFFER);
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(size).map_err(|_| Errno::ENOMEM)?;
        buffer.resize(size, 0);
        let (for_bytes, for_room) = (Wait::new(Events::IN, false), Wait::new(Events::OUT, false));
        Ok(Passing { from, to, len, waits, for_bytes, for_room, buffer, done: 0 })
    }

    fn run_async(mut self, cx: &mut Cx, me: &mut impl VfsCaller) -> Result<usize> {
        let outcome = complete_async(cx, me, Patience::Forever, |cx, me, waker| self.step(waker, me, cx));
        if let Err(error) = outcome
            && !self.for_room.is_silent()
        {
            raise_for(error, self.to.name, me, cx);
        }
        finish(outcome, self.done)
    }

    /// Goes on until all is done, there is nothing to read, the target has no room, or the time is over.
    fn step(&mut self, waker: Option<Waker>, me: &impl VfsCaller, cx: &Cx) -> Step<usize> {
        let (from, to) = (self.from, self.to);
        let source = from.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let target = to.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&source, OpenFlags::can_read, from.position)?;
        check(&target, OpenFlags::can_write, to.position)?;
        if let Some(waker) = waker {
            watch(&source, &from.name, Events::IN, waker, cx);
            watch(&target, &to.name, Events::OUT, waker, cx);
        }
        let mut time_slice = TimeSlice::default();
        while self.done < self.len {
            let no_wait = self.waits.no_longer(self.done);
            self.for_bytes.set_no_wait(no_wait);
            self.for_room.set_no_wait(no_wait);
            let room = self.buffer.len().min(self.len - self.done);
            let (done, for_room) = (self.done, &self.for_room);
            let mut was_asked = false;
            let mut take = |bytes: &mut Reader<'_>| {
                was_asked = true;
                for_room.apply(write_from(&target, bytes, to.position, done, false, me, cx), &target, cx)
            };
            let passed = source.file.pass_on(self.buffer.get_mut(..room).unwrap_or_default(), &mut take, cx);
            let passed = if was_asked { passed } else { self.for_bytes.apply(passed, &source, cx) };
            match passed? {
                0 => break,
                passed => self.done += passed,
            }
            self.for_room.restart();
            if time_slice.is_over() && self.done < self.len {
                return Err(Stop::Pause(Interruption::Signals));
            }
        }
        Ok(self.done)
    }
}

/// Up to `len` bytes of a page from `within` on; a hole is zeros.
fn reader(frame: Option<&UFrame>, within: usize, len: usize) -> Reader<'_> {
    static ZEROS: [u8; PAGE_SIZE] = [0; PAGE_SIZE];
    let range = within..within.saturating_add(len).min(PAGE_SIZE);
    match frame {
        Some(frame) => frame.reader(range),
        None => Reader::from(ZEROS.get(range).unwrap_or_default()),
    }
}

/// How a source is cut for the target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// Anyhow.
    Bytes,
    /// So many pages at a time, of which each is a message.
    Pages,
}

impl Pieces {
    /// How many of `len` bytes come next.
    fn next(self, len: usize, from: &CopyEnd, done: usize) -> usize {
        match self {
            Pieces::Bytes => len.min(BUFFER),
            Pieces::Pages => {
                let within = match from.at(done) {
                    Position::At(start) => (start % PAGE_SIZE as u64) as usize,
                    Position::Current => 0,
                };
                len.min(PAGES * PAGE_SIZE - within)
            }
        }
    }
}

/// Reads from `from` into a buffer and writes that to `to`.
fn buffer_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    from: &CopyEnd,
    to: &CopyEnd,
    len: usize,
    waits: Waits,
    pieces: Pieces,
) -> Result<usize> {
    let mut buffer = Vec::new();
    let mut done = 0;
    let mut time_slice = TimeSlice::default();
    while done < len {
        if done > 0 && time_slice.is_over() {
            if me.pause_async(cx, Interruption::Signals).is_err() {
                break;
            }
            time_slice = TimeSlice::default();
        }
        let mut room = pieces.next(len - done, from, done);
        if waits != Waits::All && done > 0 {
            // A pipe that can be written to takes so much. What would be read and not taken would be lost.
            room = room.min(ATOMIC);
            let target = to.name.upgrade(cx).map_err(|_| Errno::EBADF);
            if !target.is_ok_and(|target| target.file.poll(Events::OUT, None, cx).contains(Events::OUT)) {
                break;
            }
        }
        if room > buffer.len() {
            buffer.try_reserve_exact(room - buffer.len()).map_err(|_| Errno::ENOMEM)?;
            buffer.resize(room, 0);
        }
        let bytes = buffer.get_mut(..room).unwrap_or_default();
        let no_wait = waits.no_longer(done);
        let read = match read_bytes_async(cx, me, from.name, bytes, from.at(done), no_wait) {
            Ok(0) => break,
            Ok(read) => read,
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        let written = write_bytes_async(cx, me, to.name, bytes, to.at(done), no_wait);
        let taken = *written.as_ref().unwrap_or(&0);
        done += taken;
        match written {
            Err(error) if done == 0 => return Err(error),
            Ok(written) if written == read => {}
            _ => break,
        }
    }
    Ok(done)
}

/// Reads once into the kernel's own memory.
fn read_bytes_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    name: WeakRc<OpenFile>,
    bytes: &mut [u8],
    position: Position,
    no_wait: bool,
) -> Result<usize> {
    let wait = Wait::new(Events::IN, no_wait);
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&open, OpenFlags::can_read, position)?;
        if let Some(waker) = waker {
            watch(&open, &name, Events::IN, waker, cx);
        }
        let step = open.file.read(offset(&open, position, 0), &mut Writer::from(&mut *bytes), me, cx);
        if step.is_ok() && open.is_seekable {
            open.touch_accessed(cx);
        }
        wait.apply(step, &open, cx)
    })
}

/// Writes all of the kernel's own bytes, or as many as go before an error; how many.
fn write_bytes_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    name: WeakRc<OpenFile>,
    bytes: &[u8],
    position: Position,
    no_wait: bool,
) -> Result<usize> {
    let mut done = 0;
    let mut time_slice = TimeSlice::default();
    while done < bytes.len() {
        if done > 0 && time_slice.is_over() {
            if me.pause_async(cx, Interruption::KillOnly).is_err() {
                break;
            }
            time_slice = TimeSlice::default();
        }
        let wait = Wait::new(Events::OUT, no_wait);
        let outcome = complete_async(cx, me, Patience::Forever, |cx, me, waker| {
            let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
            check(&open, OpenFlags::can_write, position)?;
            if let Some(waker) = waker {
                watch(&open, &name, Events::OUT, waker, cx);
            }
            let mut from = Reader::from(bytes.get(done..).unwrap_or_default());
            let step = write_from(&open, &mut from, position, done, false, me, cx);
            wait.apply(step, &open, cx)
        });
        match outcome {
            Ok(0) => break,
            Ok(written) => done += written,
            Err(error) => {
                if !wait.is_silent() {
                    raise_for(error, name, me, cx);
                }
                return finish(Err(error), done);
            }
        }
    }
    Ok(done)
}

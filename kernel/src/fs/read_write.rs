//! Reading and writing: the drivers that turn the steps of a [`File`] into read(2), write(2) and their relatives.
//!
//! A transfer goes on where it was after a page of user memory was missing; of a stream it ends with the first short piece. The
//! description is held by name only: closing it from another thread wakes the waiter, which gets EBADF.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Reader, Writer};
use linux_raw_sys::general::RLIMIT_FSIZE;
use refs::{Waker, WeakRc};

use super::dnotify;
use super::{Events, File, OpenFile, OpenFlags, VfsCaller};
use crate::error::{Errno, Result};
use crate::signal::Signal;
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async, go_on_async};
use crate::user_memory::{In, Out, UserBuffer};

/// The most bytes of one call, as on Linux.
pub const MOST_BYTES: usize = 0x7fff_f000;

/// What is read or written at most without others having their turn, where a transfer can be cut.
const AT_ONCE: usize = 4 << 20;
/// The same, where each byte takes long.
const SLOW_AT_ONCE: usize = 4 << 10;

/// Where in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// At the description's offset, which moves on.
    Current,
    /// There; the offset stays.
    At(u64),
}

/// What one call may want beyond the description's flags.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransferFlags {
    /// RWF_NOWAIT: do not wait.
    pub no_wait: bool,
    /// RWF_APPEND: write at the end.
    pub append: bool,
    /// Of a stream only the first bytes are waited for: what fits then is enough (vmsplice(2)).
    pub what_fits: bool,
    /// read(2) and write(2): the file is asked even for no bytes at all, and some say more than 0. Vectors without bytes are 0 to all files.
    pub one_piece: bool,
}

impl TransferFlags {
    const ONE_PIECE: Self = TransferFlags { no_wait: false, append: false, what_fits: false, one_piece: true };
}

/// Reads from a descriptor into one piece of the caller's memory: read(2), pread(2). The usual case is done at once; whatever must wait, or
/// goes on behind a page that was missing, is done by [`read_async`]'s loop.
///
/// # Errors
/// Those of read(2).
#[inline(always)]
pub fn read_piece_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    fd: i32,
    piece: UserBuffer<u8, Out>,
    position: Position,
) -> Result<usize> {
    let (mut done, mut first) = (0, None);
    if !piece.is_empty() {
        let open = me.files(cx)?.get_even_path(fd, cx)?;
        check(&open, OpenFlags::can_read, position)?;
        let memory = me.memory(cx)?;
        let mut to = memory.writer(piece.first(at_once(&open, piece.len())).slice());
        match open.file.read(offset(&open, position, 0), &mut to, me, cx) {
            Ok(read) => {
                if open.is_seekable && position == Position::Current {
                    open.offset.fetch_add(read as u64, Ordering::Relaxed);
                }
                if !open.is_seekable {
                    return Ok(read);
                }
                // A read at the end is one, too.
                open.touch_accessed(cx);
                if read > 0 {
                    open.notify(dnotify::Events::ACCESS, cx);
                }
                if read == 0 || read == piece.len() || is_at_end(&to, piece.behind(read)) {
                    return Ok(read);
                }
                done = read;
            }
            Err(Stop::Error(error)) => return Err(error),
            Err(stop) => first = Some(stop),
        }
    }
    go_on_reading_async(cx, me, fd, &[piece], (done, first), position, TransferFlags::ONE_PIECE)
}

/// Writes one piece of the caller's memory to a descriptor: write(2), pwrite(2). As [`read_piece_async`].
///
/// # Errors
/// Those of write(2).
#[inline(always)]
pub fn write_piece_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    fd: i32,
    piece: UserBuffer<u8, In>,
    position: Position,
) -> Result<usize> {
    let (mut done, mut first) = (0, None);
    if !piece.is_empty() {
        let open = me.files(cx)?.get_even_path(fd, cx)?;
        check(&open, OpenFlags::can_write, position)?;
        let memory = me.memory(cx)?;
        let mut from = memory.reader(piece.first(at_once(&open, piece.len())).slice());
        match write_from(&open, &mut from, position, 0, false, me, cx) {
            Ok(written) if written == piece.len() => return Ok(written),
            Ok(written) => done = written,
            // These two come with a signal.
            Err(stop @ Stop::Error(Errno::EPIPE | Errno::EFBIG)) => first = Some(stop),
            Err(Stop::Error(error)) => return Err(error),
            Err(stop) => first = Some(stop),
        }
    }
    go_on_writing_async(cx, me, fd, &[piece], (done, first), position, TransferFlags::ONE_PIECE)
}

/// Whether a read of a seekable file that left `room` has come to the file's end. If not, memory is missing, and that is so
/// from the start of a page on.
#[inline(always)]
fn is_at_end(to: &Writer<'_>, room: UserBuffer<u8, Out>) -> bool {
    to.remaining() > 0 && !room.slice().start().address().is_multiple_of(PAGE_SIZE)
}

/// Reads from a descriptor into pieces of the caller's memory.
///
/// # Errors
/// Those of read(2).
pub fn read_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    fd: i32,
    pieces: &[UserBuffer<u8, Out>],
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    go_on_reading_async(cx, me, fd, pieces, (0, None), position, how)
}

#[inline(never)]
fn go_on_reading_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    fd: i32,
    pieces: &[UserBuffer<u8, Out>],
    (mut done, first): (usize, Option<Stop>),
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    let name = me.files(cx)?.weak(fd, cx)?;
    let mut step = |cx: &Cx, me: &_, waker: Option<Waker>| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&open, OpenFlags::can_read, position)?;
        if let Some(waker) = waker {
            watch(&open, &name, Events::IN, waker, cx);
        }
        let step = read_step(&open, pieces, &mut done, position, how, me, cx);
        without_waiting(step, &open, how)
    };
    let outcome = match first {
        Some(stop) => go_on_async(cx, me, Patience::Forever, first_stop(stop, &name, how, cx), &mut step),
        None => complete_async(cx, me, Patience::Forever, step),
    };
    finish(outcome, done)
}

/// Writes pieces of the caller's memory to a descriptor.
///
/// # Errors
/// Those of write(2). EPIPE comes with SIGPIPE.
pub fn write_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    fd: i32,
    pieces: &[UserBuffer<u8, In>],
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    go_on_writing_async(cx, me, fd, pieces, (0, None), position, how)
}

#[inline(never)]
fn go_on_writing_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    fd: i32,
    pieces: &[UserBuffer<u8, In>],
    (mut done, first): (usize, Option<Stop>),
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    let name = me.files(cx)?.weak(fd, cx)?;
    let mut step = |cx: &Cx, me: &_, waker: Option<Waker>| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&open, OpenFlags::can_write, position)?;
        if let Some(waker) = waker {
            watch(&open, &name, Events::OUT, waker, cx);
        }
        let step = if open.is_seekable || pieces.len() < 2 || how.what_fits {
            write_step(&open, pieces, &mut done, position, how, me, cx)
        } else {
            write_gathered(&open, pieces, &mut done, me, cx)
        };
        without_waiting(step, &open, how)
    };
    let outcome = match first {
        Some(stop) => go_on_async(cx, me, Patience::Forever, first_stop(stop, &name, how, cx), &mut step),
        None => complete_async(cx, me, Patience::Forever, step),
    };
    let outcome = finish(outcome, done);
    if let Err(error) = outcome {
        raise_for(error, name, me, cx);
    }
    outcome
}

/// Sends the signal that comes with a write to `name` that failed so: SIGPIPE, and SIGXFSZ beyond RLIMIT_FSIZE.
fn raise_for(error: Errno, name: WeakRc<OpenFile>, me: &impl VfsCaller, cx: &Cx) {
    let signals_broken_pipe = || name.upgrade(cx).is_ok_and(|open| open.file.signals_broken_pipe(cx));
    let is_limited = || me.limit(RLIMIT_FSIZE, cx).is_ok_and(|limit| limit < i64::MAX as u64);
    match error {
        Errno::EPIPE if signals_broken_pipe() => me.raise(Signal::PIPE, cx),
        Errno::EFBIG if is_limited() => me.raise(Signal::XFSZ, cx),
        _ => {}
    }
}

/// Checks that the description can do it.
///
/// # Errors
/// EBADF; ESPIPE for an offset of what has none.
#[inline(always)]
pub fn check(open: &OpenFile, allowed: fn(OpenFlags) -> bool, position: Position) -> Result<()> {
    let flags = open.flags();
    let is_path = flags.contains(OpenFlags::PATH);
    if position != Position::Current && !open.is_seekable {
        return Err(if is_path { Errno::EBADF } else { Errno::ESPIPE });
    }
    if allowed(flags) && !is_path { Ok(()) } else { Err(Errno::EBADF) }
}

/// Enters the waker wherever it must be.
fn watch(open: &OpenFile, name: &WeakRc<OpenFile>, interest: Events, waker: Waker, cx: &Cx) {
    name.watch(waker, cx);
    open.file.poll(interest, Some(waker), cx);
}

/// How a transfer goes on that was tried once and stopped so.
#[inline]
fn first_stop(stop: Stop, name: &WeakRc<OpenFile>, how: TransferFlags, cx: &Cx) -> Stop {
    let outcome = match name.upgrade(cx) {
        Ok(open) => without_waiting(Err(stop), &open, how),
        Err(_) => Err(Errno::EBADF.into()),
    };
    outcome.err().unwrap_or(stop)
}

#[inline(always)]
fn without_waiting(step: Step<usize>, open: &OpenFile, how: TransferFlags) -> Step<usize> {
    match step {
        Err(Stop::Block) if how.no_wait || open.flags().contains(OpenFlags::NONBLOCK) => Err(Errno::EAGAIN.into()),
        step => step,
    }
}

/// How much of `len` bytes is transferred in one go. Only files with offsets take any number of pieces for the same as one.
#[inline(always)]
fn at_once(open: &OpenFile, len: usize) -> usize {
    match len {
        ..=SLOW_AT_ONCE => len,
        _ if !open.is_seekable => len,
        _ if open.reads_slowly => SLOW_AT_ONCE,
        _ => len.min(AT_ONCE),
    }
}

/// What was transferred counts more than why it stopped.
#[inline(always)]
fn finish(outcome: Result<usize>, done: usize) -> Result<usize> {
    if done > 0 { Ok(done) } else { outcome }
}

/// The rest of the piece in which byte number `done` is; `None` at the end.
#[inline(always)]
fn rest<D>(pieces: &[UserBuffer<u8, D>], done: usize) -> Option<UserBuffer<u8, D>> {
    let mut before = 0;
    for &piece in pieces {
        if done - before < piece.len() {
            return Some(piece.behind(done - before));
        }
        before += piece.len();
    }
    None
}

/// The file's offset for byte number `done`.
#[inline(always)]
fn offset(open: &OpenFile, position: Position, done: usize) -> u64 {
    match position {
        Position::Current => open.offset.load(Ordering::Relaxed),
        Position::At(start) => start.saturating_add(done as u64),
    }
}

fn read_step(
    open: &OpenFile,
    pieces: &[UserBuffer<u8, Out>],
    done: &mut usize,
    position: Position,
    how: TransferFlags,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    let memory = me.memory(cx)?;
    let mut time_slice = TimeSlice::default();
    loop {
        let Some(room) = rest(pieces, *done) else {
            if *done == 0 && how.one_piece {
                // Nothing is asked for; but a directory says that it cannot be read.
                return open.file.read(0, &mut Writer::from(&mut [][..]), me, cx);
            }
            return Ok(*done);
        };
        let mut to = memory.writer(room.first(at_once(open, room.len())).slice());
        match open.file.read(offset(open, position, *done), &mut to, me, cx) {
            Ok(0) => {
                if open.is_seekable {
                    open.touch_accessed(cx);
                }
                return Ok(*done);
            }
            Ok(read) => {
                *done += read;
                if open.is_seekable {
                    if position == Position::Current {
                        open.offset.fetch_add(read as u64, Ordering::Relaxed);
                    }
                    open.touch_accessed(cx);
                    open.notify(dnotify::Events::ACCESS, cx);
                    if is_at_end(&to, room.behind(read)) {
                        return Ok(*done);
                    }
                    if time_slice.is_over() {
                        return Err(Stop::Pause(Interruption::KillOnly));
                    }
                } else if read < room.len() {
                    return Ok(*done);
                }
            }
            Err(Stop::Block | Stop::Error(_)) if *done > 0 => return Ok(*done),
            Err(stop) => return Err(stop),
        }
    }
}

fn write_step(
    open: &OpenFile,
    pieces: &[UserBuffer<u8, In>],
    done: &mut usize,
    position: Position,
    how: TransferFlags,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    let memory = me.memory(cx)?;
    let mut time_slice = TimeSlice::default();
    while let Some(left) = rest(pieces, *done) {
        let mut from = memory.reader(left.first(at_once(open, left.len())).slice());
        match write_from(open, &mut from, position, *done, how.append, me, cx) {
            Ok(0) => return Ok(*done),
            Ok(written) => {
                *done += written;
                if written < left.len() && time_slice.is_over() {
                    return Err(Stop::Pause(ended_by(open)));
                }
            }
            // A stream without O_NONBLOCK takes all of it, however long that takes.
            Err(Stop::Block) if how.what_fits && *done > 0 => return Ok(*done),
            Err(Stop::Block) if !open.is_seekable => return Err(Stop::Block),
            Err(Stop::Block | Stop::Error(_)) if *done > 0 => return Ok(*done),
            Err(stop) => return Err(stop),
        }
    }
    if *done == 0 && how.one_piece && !open.is_seekable {
        // An empty message is one, too.
        return open.file.write(0, &mut Reader::from(&[][..]), me, cx);
    }
    Ok(*done)
}

/// What ends a transfer that takes long: a file's goes on unless the program is killed, a device's stops for a signal.
fn ended_by(open: &OpenFile) -> Interruption {
    if open.is_seekable { Interruption::KillOnly } else { Interruption::Signals }
}

/// Writes once; moves the offset on.
#[inline(always)]
fn write_from(
    open: &OpenFile,
    from: &mut Reader<'_>,
    position: Position,
    done: usize,
    append: bool,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    if !open.is_seekable {
        return open.file.write(0, from, me, cx);
    }
    if append || open.flags().contains(OpenFlags::APPEND) {
        let (written, end) = open.file.append(from, me, cx)?;
        if position == Position::Current {
            open.offset.store(end, Ordering::Relaxed);
        }
        open.notify(dnotify::Events::MODIFY, cx);
        return Ok(written);
    }
    let written = open.file.write(offset(open, position, done), from, me, cx)?;
    if position == Position::Current {
        open.offset.fetch_add(written as u64, Ordering::Relaxed);
    }
    open.notify(dnotify::Events::MODIFY, cx);
    Ok(written)
}

/// Several pieces to a stream: those that are small enough to be written as one are, so that they stay together.
fn write_gathered(
    open: &OpenFile,
    pieces: &[UserBuffer<u8, In>],
    done: &mut usize,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    const TOGETHER: usize = crate::ring::ATOMIC;
    let total = pieces.iter().fold(0usize, |sum, piece| sum.saturating_add(piece.len()));
    if total > TOGETHER {
        return write_step(open, pieces, done, Position::Current, TransferFlags::default(), me, cx);
    }
    let memory = me.memory(cx)?;
    let mut bytes = Vec::with_capacity(total);
    while let Some(left) = rest(pieces, bytes.len()) {
        let start = bytes.len();
        bytes.resize(start + left.len(), 0);
        memory.read_into(left.slice(), bytes.get_mut(start..).unwrap_or_default())?;
    }
    let mut time_slice = TimeSlice::default();
    while *done < total {
        let mut from = Reader::from(bytes.get(*done..).unwrap_or_default());
        match open.file.write(0, &mut from, me, cx)? {
            0 => break,
            written => *done += written,
        }
        if *done < total && time_slice.is_over() {
            return Err(Stop::Pause(ended_by(open)));
        }
    }
    Ok(*done)
}

/// Reads once into the kernel's own memory.
///
/// # Errors
/// Those of read(2).
pub fn read_bytes_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    name: WeakRc<OpenFile>,
    bytes: &mut [u8],
    position: Position,
    no_wait: bool,
) -> Result<usize> {
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&open, OpenFlags::can_read, position)?;
        if let Some(waker) = waker {
            watch(&open, &name, Events::IN, waker, cx);
        }
        let step = open.file.read(offset(&open, position, 0), &mut Writer::from(&mut *bytes), me, cx);
        if let (Ok(read), true) = (step, open.is_seekable) {
            open.touch_accessed(cx);
            if read > 0 {
                open.notify(dnotify::Events::ACCESS, cx);
            }
            if position == Position::Current {
                open.offset.fetch_add(read as u64, Ordering::Relaxed);
            }
        }
        without_waiting(step, &open, TransferFlags { no_wait, ..TransferFlags::default() })
    })
}

/// Writes all of the kernel's own bytes, or as many as go before an error; how many.
///
/// # Errors
/// Those of write(2), where nothing was written.
pub fn write_bytes_async(
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
        let outcome = complete_async(cx, me, Patience::Forever, |cx, me, waker| {
            let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
            check(&open, OpenFlags::can_write, position)?;
            if let Some(waker) = waker {
                watch(&open, &name, Events::OUT, waker, cx);
            }
            let mut from = Reader::from(bytes.get(done..).unwrap_or_default());
            let step = write_from(&open, &mut from, position, done, false, me, cx);
            without_waiting(step, &open, TransferFlags { no_wait, ..TransferFlags::default() })
        });
        match outcome {
            Ok(0) => break,
            Ok(written) => done += written,
            Err(error) => {
                if done == 0 || error == Errno::EPIPE {
                    raise_for(error, name, me, cx);
                }
                return finish(Err(error), done);
            }
        }
    }
    Ok(done)
}

/// Reads exactly the bytes at an offset into the kernel's own memory, without waiting: for program loading.
///
/// # Errors
/// EIO where the file is shorter.
pub fn read_exactly(file: &dyn File, offset: u64, bytes: &mut [u8], me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
    let wanted = bytes.len();
    match file.read(offset, &mut Writer::from(bytes), me, cx) {
        Ok(read) if read == wanted => Ok(()),
        Ok(_) => Err(Errno::EIO),
        Err(Stop::Error(error)) => Err(error),
        Err(_) => Err(Errno::EIO),
    }
}

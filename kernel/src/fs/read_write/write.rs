//! Writing the caller's memory to a descriptor, and the signals that come with it.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::Reader;
use linux_raw_sys::general::RLIMIT_FSIZE;
use refs::{Waker, WeakRc};

use super::{Position, TransferFlags, Wait, at_once, check, finish, first_stop, hold, offset, rest, sync_async, watch};
use crate::block::{Cache, Depth};
use crate::error::{Errno, Result};
use crate::fs::notify::{self, FileEvents};
use crate::fs::{Events, OpenFile, OpenFlags, VfsCaller};
use crate::signal::Signal;
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async, go_on_async};
use crate::user_memory::{In, UserBuffer};

/// So many bytes take one step where [`File::writes_in_turn`](crate::fs::File::writes_in_turn).
const SHORT: usize = 256;

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
    // What the descriptor is for by now counts for all of the call.
    let name = if piece.is_empty() {
        me.files(cx)?.weak(fd, cx)?
    } else {
        let open = me.files(cx)?.get_even_path(fd, cx)?;
        check(&open, OpenFlags::can_write, position)?;
        if open.writes_in_turn && (piece.len() > SHORT || open.is_seekable) {
            let name = open.downgrade();
            drop(open);
            return write_async(cx, me, name, &[piece], position, TransferFlags::ONE_PIECE);
        }
        let memory = me.memory(cx)?;
        let mut from = memory.reader(piece.first(at_once(&open, piece.len())).slice());
        // Each of the two tells of it where that costs least.
        let written = if open.is_seekable {
            let written = write_at_offset(&open, &mut from, position, 0, false, me, cx);
            if written.is_ok_and(|written| written == piece.len()) {
                open.notify(FileEvents::MODIFY, cx);
            }
            written
        } else {
            let written = open.file.write(0, &mut from, me, cx);
            open.notify_of_stream(written.is_ok_and(|written| written == piece.len()), FileEvents::MODIFY, cx);
            written
        };
        match written {
            Ok(written) if written == piece.len() => return Ok(written),
            Ok(written) => done = written,
            // These two come with a signal.
            Err(stop @ Stop::Error(Errno::EPIPE | Errno::EFBIG)) => first = Some(stop),
            Err(Stop::Error(error)) => return Err(error),
            Err(stop) => first = Some(stop),
        }
        open.downgrade()
    };
    go_on_writing_async(cx, me, name, &[piece], (done, first), position, TransferFlags::ONE_PIECE)
}

/// Writes pieces of the caller's memory to a description.
///
/// # Errors
/// Those of write(2). EPIPE comes with SIGPIPE.
pub fn write_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    name: WeakRc<OpenFile>,
    pieces: &[UserBuffer<u8, In>],
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    go_on_writing_async(cx, me, name, pieces, (0, None), position, how)
}

#[inline(never)]
fn go_on_writing_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    name: WeakRc<OpenFile>,
    pieces: &[UserBuffer<u8, In>],
    (mut done, first): (usize, Option<Stop>),
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    let wait = Wait::new(Events::OUT, how.no_wait);
    let mut passed = None;
    let mut step = |cx: &Cx, me: &_, waker: Option<Waker>| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&open, OpenFlags::can_write, position)?;
        if let Some(waker) = waker {
            watch(&open, &name, Events::OUT, waker, cx);
        }
        if open.writes_in_turn && passed.is_none() {
            passed = open.file.passed(cx);
        }
        let before = done;
        let step = if open.is_seekable || pieces.len() < 2 || how.what_fits {
            write_step(&open, pieces, &mut done, position, how, me, cx)
        } else {
            write_gathered(&open, pieces, &mut done, me, cx)
        };
        if done > before {
            wait.restart();
        }
        wait.apply(step, &open, cx)
    };
    let mut outcome = match first {
        Some(stop) => go_on_async(cx, me, Patience::Forever, first_stop(stop, &name, &wait, cx), &mut step),
        None => complete_async(cx, me, Patience::Forever, &mut step),
    };
    notify::transferred(name, done, FileEvents::MODIFY, cx);
    if let Some((range, depth)) = end_writing(name, position, done, me, cx)
        && let Err(error) = sync_async(cx, me, name, range, depth)
    {
        (outcome, done) = (Err(error), 0);
    }
    if let Some(cache) = passed {
        // Where the descriptor was closed there was no sync.
        Cache::wait_passed_async(cache, cx, me);
    }
    if let Err(error) = outcome
        && (done == 0 || error == Errno::EPIPE)
        && !wait.is_silent()
    {
        raise_for(error, name, me, cx);
    }
    finish(outcome, done)
}

/// What is left to do where writes do not mix, or end with a sync: the range that is to be synced now, and how deep.
fn end_writing(
    name: WeakRc<OpenFile>,
    position: Position,
    done: usize,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Option<(Range<u64>, Depth)> {
    let open = name.upgrade(cx).ok().filter(|open| open.writes_in_turn)?;
    open.file.end_turn(me, cx);
    let end = match position {
        Position::Current => open.offset.load(Ordering::Relaxed),
        Position::At(start) => start.saturating_add(done as u64),
    };
    let depth = open.file.syncs_writes().filter(|_| done > 0)?;
    Some((end.saturating_sub(done as u64)..end, depth))
}

/// Sends the signal that comes with a write to `name` that failed so, or that ended so behind what was written: SIGPIPE, and SIGXFSZ beyond RLIMIT_FSIZE.
pub(super) fn raise_for(error: Errno, name: WeakRc<OpenFile>, me: &impl VfsCaller, cx: &Cx) {
    let signals_broken_pipe = || name.upgrade(cx).is_ok_and(|open| open.file.signals_broken_pipe(cx));
    let is_limited = || me.limit(RLIMIT_FSIZE, cx).is_ok_and(|limit| limit < i64::MAX as u64);
    match error {
        Errno::EPIPE if signals_broken_pipe() => me.raise(Signal::PIPE, cx),
        Errno::EFBIG if is_limited() => me.raise(Signal::XFSZ, cx),
        _ => {}
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
    if open.writes_in_turn {
        open.file.begin_turn(me, cx)?;
    }
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
pub(super) fn write_from(
    open: &OpenFile,
    from: &mut Reader<'_>,
    position: Position,
    done: usize,
    append: bool,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    if open.is_seekable {
        write_at_offset(open, from, position, done, append, me, cx)
    } else {
        open.file.write(0, from, me, cx)
    }
}

/// Writes once to what has an offset, and moves that on.
#[inline(always)]
fn write_at_offset(
    open: &OpenFile,
    from: &mut Reader<'_>,
    position: Position,
    done: usize,
    append: bool,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    let _held = hold(open, position, cx);
    if append || open.flags().contains(OpenFlags::APPEND) {
        let (written, end) = open.file.append(from, me, cx)?;
        if position == Position::Current {
            open.offset.store(end, Ordering::Relaxed);
        }
        return Ok(written);
    }
    let written = open.file.write(offset(open, position, done), from, me, cx)?;
    if position == Position::Current {
        open.offset.fetch_add(written as u64, Ordering::Relaxed);
    }
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
    if open.writes_in_turn {
        open.file.begin_turn(me, cx)?;
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

//! Reading from a descriptor into the caller's memory.

use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Writer};
use refs::{Waker, WeakRc};

use super::{Position, SLOW_AT_ONCE, TransferFlags, Wait, at_once, check, finish, first_stop, hold, offset, rest};
use crate::block::DirectRead;
use crate::error::{Errno, Result};
use crate::fs::notify::{self, FileEvents};
use crate::fs::{Events, OpenFile, OpenFlags, VfsCaller};
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async, go_on_async};
use crate::user_memory::{Out, UserBuffer};

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
    // What the descriptor is for by now counts for all of the call.
    let name = if piece.is_empty() {
        me.files(cx)?.weak(fd, cx)?
    } else {
        let open = me.files(cx)?.get_even_path(fd, cx)?;
        check(&open, OpenFlags::can_read, position)?;
        if piece.len() > SLOW_AT_ONCE && open.reads_past {
            let name = open.downgrade();
            drop(open);
            return read_async(cx, me, name, &[piece], position, TransferFlags::ONE_PIECE);
        }
        let memory = me.memory(cx)?;
        let mut to = memory.writer(piece.first(at_once(&open, piece.len())).slice());
        let _held = hold(&open, position, cx);
        match open.file.read(offset(&open, position, 0), &mut to, me, cx) {
            Ok(read) => {
                if open.is_seekable && position == Position::Current {
                    open.offset.fetch_add(read as u64, Ordering::Relaxed);
                }
                if !open.is_seekable {
                    open.notify_of_stream(read > 0, FileEvents::ACCESS, cx);
                    return Ok(read);
                }
                // A read at the end is one, too.
                open.touch_accessed(cx);
                if read == 0 || read == piece.len() || is_at_end(&to, piece.behind(read)) {
                    if read > 0 {
                        open.notify(FileEvents::ACCESS, cx);
                    }
                    return Ok(read);
                }
                done = read;
            }
            Err(Stop::Error(error)) => return Err(error),
            Err(stop) => first = Some(stop),
        }
        open.downgrade()
    };
    go_on_reading_async(cx, me, name, &[piece], (done, first), position, TransferFlags::ONE_PIECE)
}

/// Whether a read of a seekable file that left `room` has come to the file's end. If not, memory is missing, and that is so
/// from the start of a page on.
#[inline(always)]
fn is_at_end(to: &Writer<'_>, room: UserBuffer<u8, Out>) -> bool {
    to.remaining() > 0 && !room.slice().start().address().is_multiple_of(PAGE_SIZE)
}

/// Reads from a description into pieces of the caller's memory.
///
/// # Errors
/// Those of read(2).
pub fn read_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    name: WeakRc<OpenFile>,
    pieces: &[UserBuffer<u8, Out>],
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    go_on_reading_async(cx, me, name, pieces, (0, None), position, how)
}

#[inline(never)]
fn go_on_reading_async<C: VfsCaller>(
    cx: &mut Cx,
    me: &mut C,
    name: WeakRc<OpenFile>,
    pieces: &[UserBuffer<u8, Out>],
    (mut done, first): (usize, Option<Stop>),
    position: Position,
    how: TransferFlags,
) -> Result<usize> {
    let wait = Wait::new(Events::IN, how.no_wait);
    let mut passing = DirectRead::default();
    let mut step = |cx: &Cx, me: &C, waker: Option<Waker>| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        check(&open, OpenFlags::can_read, position)?;
        if let Some(waker) = waker {
            name.watch(waker, cx);
            open.poll_for(me.as_dyn(), Events::IN, Some(waker), cx);
        }
        let step = read_step(&open, pieces, (&mut done, &mut passing), position, how, me, cx);
        // What has been given to a device is waited for, even where the call would not have begun to wait.
        if passing.is_under_way() { step } else { wait.apply(step, &open, cx) }
    };
    let outcome = match first {
        Some(stop) => go_on_async(cx, me, Patience::Forever, first_stop(stop, &name, &wait, cx), &mut step),
        None => complete_async(cx, me, Patience::Forever, &mut step),
    };
    passing.end_async(cx, me);
    if let Ok(open) = name.upgrade(cx)
        && open.is_seekable
    {
        if position == Position::Current && open.reads_past {
            open.file.end_turn(&*me, cx);
        }
        open.file.end_read(&*me, cx);
    }
    notify::transferred(name, done, FileEvents::ACCESS, cx);
    finish(outcome, done)
}

fn read_step(
    open: &OpenFile,
    pieces: &[UserBuffer<u8, Out>],
    (done, passing): (&mut usize, &mut DirectRead),
    position: Position,
    how: TransferFlags,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    if open.reads_past && position == Position::Current {
        // Others move the offset, too, and a read may take several transfers.
        open.file.begin_turn(me, cx)?;
    }
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
        let _held = hold(open, position, cx);
        let at = offset(open, position, *done);
        let past = if open.reads_past { open.file.read_past(at, &mut to, passing, me, cx) } else { Ok(0) };
        let outcome = if matches!(past, Ok(0)) { open.file.read(at, &mut to, me, cx) } else { past };
        match outcome {
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

//! Reading and writing: the drivers that turn the steps of a [`File`](super::File) into read(2), write(2) and their relatives.
//!
//! | file | what it is |
//! | --- | --- |
//! | `read`, `write` | between a descriptor and the caller's memory |
//! | `copy` | from descriptor to descriptor |
//! | `wait` | for how long |
//!
//! A transfer goes on where it was after a page of user memory was missing; of a stream it ends with the first short piece. The
//! description is held by name only: closing it from another thread wakes the waiter, which gets EBADF.

mod copy;
mod read;
mod wait;
mod write;

use core::ops::Range;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{SpinGuard, Waker, WeakRc};

pub use copy::{CopyEnd, Waits, check_ranges, copy_async};
pub use read::{read_async, read_piece_async};
pub use wait::Wait;
pub use write::{write_async, write_piece_async};

use super::{Events, FileKind, OpenFile, OpenFlags, VfsCaller};
use crate::block::{Depth, SyncProgress};
use crate::error::{Errno, Result};
use crate::step::{Patience, Stop, complete_async};
use crate::user_memory::UserBuffer;

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
#[inline(always)]
fn watch(open: &OpenFile, name: &WeakRc<OpenFile>, interest: Events, waker: Waker, cx: &Cx) {
    name.watch(waker, cx);
    open.file.poll(interest, Some(waker), cx);
}

/// Writes what was written to a range of a file to the device that keeps it, and waits for that.
///
/// # Errors
/// EBADF; EIO and ENOSPC where that failed, or earlier writes have.
pub fn sync_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    name: WeakRc<OpenFile>,
    range: Range<u64>,
    depth: Depth,
) -> Result<()> {
    let mut progress = SyncProgress::default();
    complete_async(cx, me, Patience::Forever, |cx, _, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if let Some(waker) = waker {
            name.watch(waker, cx);
        }
        let inode = open.inode(cx)?;
        match inode.kind {
            // All open directories are alike.
            FileKind::Directory => inode.ops.sync(&inode, range.clone(), depth, &mut progress, waker, cx),
            _ => open.file.sync(range.clone(), depth, &mut progress, waker, cx),
        }
    })
}

/// How a transfer goes on that was tried once and stopped so. (Where it waits, the next try says how.)
#[inline]
fn first_stop(stop: Stop, name: &WeakRc<OpenFile>, wait: &Wait, cx: &Cx) -> Stop {
    match (stop, name.upgrade(cx)) {
        (_, Err(_)) => Errno::EBADF.into(),
        (Stop::Block, Ok(open)) if !wait.may_begin(&open) => Errno::EAGAIN.into(),
        (Stop::Absent(_), Ok(_)) if wait.no_wait() => Errno::EAGAIN.into(),
        _ => stop,
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

/// Keeps others from moving the description's offset while a step does.
#[inline(always)]
fn hold<'a>(open: &'a OpenFile, position: Position, cx: &'a Cx) -> Option<SpinGuard<'a, ()>> {
    if position == Position::Current { open.hold_offset(cx) } else { None }
}

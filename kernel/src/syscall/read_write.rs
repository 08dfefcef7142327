//! Reading, writing, seeking, copying.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::PAGE_SIZE;
use linux_raw_sys::general as abi;
use refs::WeakRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::block::{Depth, sync_all};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::inode_file::remove_privileges;
use crate::fs::notify::FileEvents;
use crate::fs::read_write::{
    CopyEnd, MOST_BYTES, Position, TransferFlags, Waits, check, check_ranges, copy_async, read_async, read_piece_async,
    sync_async, write_async, write_piece_async,
};
use crate::fs::{FileKind, FileSystem, Inode, InodeFlags, Lseek, MOUNTS, OpenFile, OpenFlags, reserve_fd, tmpfs};
use crate::pipe::{self, PipeEnd};
use crate::step::{Patience, Step, complete_async};
use crate::user_memory::{In, Out, UserBuffer, UserInOut, UserPtr, UserSlice};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(
        abi::__NR_read,
        "read",
        Call::Async(|cx, me, args| {
            let piece = piece::<Out>(cx, me, args, Direction::Read, Position::Current)?;
            read_piece_async(cx, me, args.int(0), piece, Position::Current)
        }),
    ),
    Entry::new(
        abi::__NR_write,
        "write",
        Call::Async(|cx, me, args| {
            let piece = piece::<In>(cx, me, args, Direction::Write, Position::Current)?;
            write_piece_async(cx, me, args.int(0), piece, Position::Current)
        }),
    ),
    Entry::new(
        abi::__NR_pread64,
        "pread64",
        Call::Async(|cx, me, args| {
            let position = position(args.long(3))?;
            let piece = piece::<Out>(cx, me, args, Direction::Read, position)?;
            read_piece_async(cx, me, args.int(0), piece, position)
        }),
    ),
    Entry::new(
        abi::__NR_pwrite64,
        "pwrite64",
        Call::Async(|cx, me, args| {
            let position = position(args.long(3))?;
            let piece = piece::<In>(cx, me, args, Direction::Write, position)?;
            write_piece_async(cx, me, args.int(0), piece, position)
        }),
    ),
    Entry::new(
        abi::__NR_readv,
        "readv",
        Call::Async(|cx, me, args| vector_async(cx, me, args, Direction::Read, Position::Current, 0)),
    ),
    Entry::new(
        abi::__NR_writev,
        "writev",
        Call::Async(|cx, me, args| vector_async(cx, me, args, Direction::Write, Position::Current, 0)),
    ),
    Entry::new(
        abi::__NR_preadv,
        "preadv",
        Call::Async(|cx, me, args| vector_async(cx, me, args, Direction::Read, position(args.long(3))?, 0)),
    ),
    Entry::new(
        abi::__NR_pwritev,
        "pwritev",
        Call::Async(|cx, me, args| vector_async(cx, me, args, Direction::Write, position(args.long(3))?, 0)),
    ),
    Entry::new(
        abi::__NR_preadv2,
        "preadv2",
        Call::Async(|cx, me, args| {
            vector_async(cx, me, args, Direction::Read, position_or_current(args)?, args.int(5) as u32)
        }),
    ),
    Entry::new(
        abi::__NR_pwritev2,
        "pwritev2",
        Call::Async(|cx, me, args| {
            vector_async(cx, me, args, Direction::Write, position_or_current(args)?, args.int(5) as u32)
        }),
    ),
    Entry::new(abi::__NR_lseek, "lseek", Call::Step(lseek)),
    Entry::new(abi::__NR_sendfile, "sendfile", Call::Async(sendfile_async)),
    Entry::new(abi::__NR_copy_file_range, "copy_file_range", Call::Async(copy_file_range_async)),
    Entry::partial(
        abi::__NR_splice,
        "splice",
        Call::Async(splice_async),
        "bytes are copied; what the target refuses is lost",
    ),
    Entry::new(abi::__NR_tee, "tee", Call::Async(tee_async)),
    Entry::partial(abi::__NR_vmsplice, "vmsplice", Call::Async(vmsplice_async), "bytes are copied"),
    Entry::new(abi::__NR_fsync, "fsync", Call::Async(sync_descriptor_async)),
    Entry::new(abi::__NR_fdatasync, "fdatasync", Call::Async(sync_descriptor_async)),
    Entry::new(abi::__NR_sync, "sync", Call::Async(sync_all_async)),
    Entry::new(abi::__NR_syncfs, "syncfs", Call::Async(syncfs_async)),
    Entry::new(abi::__NR_sync_file_range, "sync_file_range", Call::Async(sync_file_range_async)),
    Entry::new(abi::__NR_fadvise64, "fadvise64", Call::Async(fadvise_async)),
    Entry::new(abi::__NR_readahead, "readahead", Call::Async(readahead_async)),
    Entry::partial(
        abi::__NR_fallocate,
        "fallocate",
        Call::Async(fallocate_async),
        "collapsing, inserting and unsharing ranges",
    ),
    Entry::partial(abi::__NR_memfd_create, "memfd_create", Call::Step(memfd_create), "huge pages"),
];

/// The buffer and the length of read(2) and its like.
#[inline(always)]
fn piece<D>(cx: &Cx, me: &Current, args: &Args, direction: Direction, position: Position) -> Result<UserBuffer<u8, D>> {
    match UserPtr::<u8, D>::new(args.long(1)).buffer(args.long(2)) {
        Ok(piece) => Ok(piece.first(MOST_BYTES)),
        Err(error) => Err(descriptor_error(cx, me, args.int(0), direction, position).unwrap_or(error)),
    }
}

/// What is wrong with the descriptor itself, which counts more than what is wrong with the buffer.
#[cold]
fn descriptor_error(cx: &Cx, me: &Current, fd: i32, direction: Direction, position: Position) -> Option<Errno> {
    let checked = |cx| check(&*me.files(cx)?.get(fd, cx)?, direction.allowed(), position);
    checked(cx).err()
}

fn position(offset: usize) -> Result<Position> {
    u64::try_from(offset as i64).map(Position::At).map_err(|_| Errno::EINVAL)
}

fn position_or_current(args: &Args) -> Result<Position> {
    if args.long(3) as i64 == -1 { Ok(Position::Current) } else { position(args.long(3)) }
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Direction {
    /// Which descriptions can do that.
    pub fn allowed(self) -> fn(OpenFlags) -> bool {
        match self {
            Direction::Read => OpenFlags::can_read,
            Direction::Write => OpenFlags::can_write,
        }
    }
}

/// `struct iovec`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct IoVec {
    pub base: usize,
    pub len: usize,
}

/// Reads an `iovec` array: at most 1024 pieces, and as many bytes as one call may transfer.
///
/// # Errors
/// EINVAL: a length is negative, or there are too many. EFAULT: a piece is not where user memory can be.
pub(super) fn pieces<D>(cx: &Cx, me: &Current, vectors: UserSlice<IoVec, In>) -> Step<Vec<UserBuffer<u8, D>>> {
    if vectors.len() > abi::UIO_MAXIOV as usize {
        return Err(Errno::EINVAL.into());
    }
    let raw = me.memory(cx)?.read_slice(vectors)?;
    // All lengths are judged before any address, as on Linux.
    if raw.iter().any(|vector| vector.len > isize::MAX as usize) {
        return Err(Errno::EINVAL.into());
    }
    let mut left = MOST_BYTES;
    let mut pieces = Vec::with_capacity(raw.len());
    for IoVec { base, len } in raw {
        let piece = UserPtr::<u8, D>::new(base).buffer(len)?.first(left);
        left -= piece.len();
        pieces.push(piece);
    }
    Ok(pieces)
}

fn pieces_async<D>(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<Vec<UserBuffer<u8, D>>> {
    let vectors = args.input::<IoVec>(1).slice(args.long(2));
    complete_async(cx, me, Patience::Forever, |cx, me, _| pieces(cx, me, vectors))
}

/// What the RWF_* of preadv2(2) and its like ask for, and whether what is written is to be kept before the call returns.
///
/// # Errors
/// EOPNOTSUPP.
pub(super) fn transfer_flags(flags: u32, direction: Direction) -> Result<(TransferFlags, bool)> {
    let known = abi::RWF_HIPRI | abi::RWF_DSYNC | abi::RWF_SYNC | abi::RWF_NOWAIT | abi::RWF_APPEND;
    if flags & !known != 0 || (direction == Direction::Read && flags & abi::RWF_APPEND != 0) {
        return Err(Errno::EOPNOTSUPP);
    }
    let how = TransferFlags {
        no_wait: flags & abi::RWF_NOWAIT != 0,
        append: flags & abi::RWF_APPEND != 0,
        ..TransferFlags::default()
    };
    Ok((how, flags & (abi::RWF_DSYNC | abi::RWF_SYNC) != 0))
}

fn vector_async(
    cx: &mut Cx,
    me: &mut Current,
    args: &Args,
    direction: Direction,
    position: Position,
    flags: u32,
) -> Result<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    check(&open, direction.allowed(), position)?;
    let name = open.downgrade();
    drop(open);
    let (how, syncs) = transfer_flags(flags, direction)?;
    match direction {
        Direction::Read => {
            let pieces = pieces_async(cx, me, args)?;
            read_async(cx, me, name, &pieces, position, how)
        }
        Direction::Write => {
            let pieces = pieces_async(cx, me, args)?;
            let written = write_async(cx, me, name, &pieces, position, how)?;
            if written > 0 && syncs {
                let range = match position {
                    Position::At(start) if !how.append => start..start.saturating_add(written as u64),
                    _ => 0..u64::MAX,
                };
                sync_async(cx, me, name, range, Depth::Kept)?;
            }
            Ok(written)
        }
    }
}

fn lseek(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let offset = args.long(1) as i64;
    let to = match args.int(2) as u32 {
        abi::SEEK_SET => Lseek::Set(offset),
        abi::SEEK_CUR => Lseek::Current(offset),
        abi::SEEK_END => Lseek::End(offset),
        abi::SEEK_DATA => Lseek::Data(offset),
        abi::SEEK_HOLE => Lseek::Hole(offset),
        _ => return Err(Errno::EINVAL.into()),
    };
    let _held = open.hold_offset(cx);
    let new = open.file.seek(to, open.offset.load(Ordering::Relaxed), cx)?;
    open.offset.store(new, Ordering::Relaxed);
    Ok(new as usize)
}

/// Whether an offset for what has none is ESPIPE, or judged later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seekable {
    Needed,
    JudgedLater,
}

/// The two descriptions of a copy. Their descriptors may be other files' by the time when the offsets are read.
fn both_ends(cx: &Cx, me: &Current, from: i32, to: i32) -> Result<(WeakRc<OpenFile>, WeakRc<OpenFile>)> {
    let files = me.files(cx)?;
    Ok((files.weak(from, cx)?, files.weak(to, cx)?))
}

/// One end of a copy: the description, and the offset at an address of the caller's memory, if there is one.
fn end_async(
    cx: &mut Cx,
    me: &mut Current,
    name: WeakRc<OpenFile>,
    offset: UserInOut<i64>,
    seekable: Seekable,
) -> Result<CopyEnd> {
    let position = match offset.non_null() {
        None => Position::Current,
        Some(offset) => {
            let raw = me.read_async(cx, offset)?;
            let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
            if !open.is_seekable && seekable == Seekable::Needed {
                return Err(Errno::ESPIPE);
            }
            Position::At(u64::try_from(raw).map_err(|_| Errno::EINVAL)?)
        }
    };
    Ok(CopyEnd { name, position })
}

/// Writes an offset that moved on back to the caller.
fn moved_async(cx: &mut Cx, me: &mut Current, end: &CopyEnd, to: UserInOut<i64>, by: usize) -> Result<()> {
    match end.position {
        Position::At(offset) => me.write_async(cx, to, &((offset + by as u64) as i64)),
        Position::Current => Ok(()),
    }
}

fn sendfile_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (from, to) = both_ends(cx, me, args.int(1), args.int(0))?;
    if !flags_of(cx, from)?.can_read() || !flags_of(cx, to)?.can_write() {
        return Err(Errno::EBADF);
    }
    let to = end_async(cx, me, to, UserInOut::<i64>::new(0), Seekable::Needed)?;
    let from = end_async(cx, me, from, args.in_out::<i64>(2), Seekable::Needed)?;
    if !from.name.upgrade(cx).map_err(|_| Errno::EBADF)?.is_seekable {
        return Err(Errno::EINVAL);
    }
    let target = to.name.upgrade(cx).map_err(|_| Errno::EBADF)?;
    if target.flags().contains(OpenFlags::APPEND) {
        return Err(Errno::EINVAL);
    }
    // To a pipe it is a splice(2).
    let waits = if target.kind::<PipeEnd>().is_some() { Waits::First } else { Waits::All };
    drop(target);
    let copied = copy_async(cx, me, &from, &to, args.long(3).min(MOST_BYTES), waits)?;
    moved_async(cx, me, &from, args.in_out::<i64>(2), copied)?;
    Ok(copied)
}

fn copy_file_range_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    if args.int(5) != 0 {
        return Err(Errno::EINVAL);
    }
    let (from, to) = both_ends(cx, me, args.int(0), args.int(2))?;
    let from = end_async(cx, me, from, args.in_out::<i64>(1), Seekable::JudgedLater)?;
    let to = end_async(cx, me, to, args.in_out::<i64>(3), Seekable::JudgedLater)?;
    let len = check_ranges(cx, me, &from, &to, args.long(4))?.min(MOST_BYTES);
    let copied = copy_async(cx, me, &from, &to, len, Waits::All)?;
    moved_async(cx, me, &from, args.in_out::<i64>(1), copied)?;
    moved_async(cx, me, &to, args.in_out::<i64>(3), copied)?;
    Ok(copied)
}

fn splice_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(5) as u32;
    if args.long(4) == 0 {
        return Ok(0);
    }
    if flags & !(abi::SPLICE_F_MOVE | abi::SPLICE_F_NONBLOCK | abi::SPLICE_F_MORE | abi::SPLICE_F_GIFT) != 0 {
        return Err(Errno::EINVAL);
    }
    let (from, to) = both_ends(cx, me, args.int(0), args.int(2))?;
    check_splice(cx, from, to, args)?;
    let from = end_async(cx, me, from, args.in_out::<i64>(1), Seekable::Needed)?;
    let to = end_async(cx, me, to, args.in_out::<i64>(3), Seekable::Needed)?;
    let waits = if flags & abi::SPLICE_F_NONBLOCK != 0 { Waits::Never } else { Waits::First };
    let copied = copy_async(cx, me, &from, &to, args.long(4).min(MOST_BYTES), waits)?;
    moved_async(cx, me, &from, args.in_out::<i64>(1), copied)?;
    moved_async(cx, me, &to, args.in_out::<i64>(3), copied)?;
    Ok(copied)
}

/// The flags of a description that may be gone.
fn flags_of(cx: &Cx, name: WeakRc<OpenFile>) -> Result<OpenFlags> {
    Ok(name.upgrade(cx).map_err(|_| Errno::EBADF)?.flags())
}

/// Checks the two descriptions of splice(2).
fn check_splice(cx: &Cx, from: WeakRc<OpenFile>, to: WeakRc<OpenFile>, args: &Args) -> Result<()> {
    let (from, to) = (from.upgrade(cx).map_err(|_| Errno::EBADF)?, to.upgrade(cx).map_err(|_| Errno::EBADF)?);
    if !from.flags().can_read() || !to.flags().can_write() {
        return Err(Errno::EBADF);
    }
    let ends = (from.kind::<PipeEnd>(), to.kind::<PipeEnd>());
    let has_offset_of_pipe = (ends.0.is_some() && args.long(1) != 0) || (ends.1.is_some() && args.long(3) != 0);
    match ends {
        _ if has_offset_of_pipe => Err(Errno::ESPIPE),
        (Some(input), Some(output)) if input.is_same_pipe(output) => Err(Errno::EINVAL),
        (Some(_), None) if to.flags().contains(OpenFlags::APPEND) => Err(Errno::EINVAL),
        (None, Some(_)) if from.inode(cx)?.kind == FileKind::Directory => Err(Errno::EINVAL),
        (None, None) => Err(Errno::EINVAL),
        _ => Ok(()),
    }
}

fn tee_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(3) as u32;
    if flags & !(abi::SPLICE_F_MOVE | abi::SPLICE_F_NONBLOCK | abi::SPLICE_F_MORE | abi::SPLICE_F_GIFT) != 0 {
        return Err(Errno::EINVAL);
    }
    let files = me.files(cx)?;
    let (from, to) = (files.weak(args.int(0), cx)?, files.weak(args.int(1), cx)?);
    drop(files);
    pipe::tee_async(cx, me, from, to, args.long(2).min(MOST_BYTES), flags & abi::SPLICE_F_NONBLOCK != 0)
}

fn vmsplice_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(3) as u32;
    if flags & !(abi::SPLICE_F_MOVE | abi::SPLICE_F_NONBLOCK | abi::SPLICE_F_MORE | abi::SPLICE_F_GIFT) != 0 {
        return Err(Errno::EINVAL);
    }
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let writes = open.flags().can_write();
    if open.kind::<PipeEnd>().is_none() {
        return Err(Errno::EBADF);
    }
    // The descriptor may be another file's by the time when the pieces are read.
    let name = open.downgrade();
    drop(open);
    let how =
        TransferFlags { no_wait: flags & abi::SPLICE_F_NONBLOCK != 0, what_fits: true, ..TransferFlags::default() };
    if writes {
        let pieces = pieces_async(cx, me, args)?;
        write_async(cx, me, name, &pieces, Position::Current, how)
    } else {
        let pieces = pieces_async(cx, me, args)?;
        read_async(cx, me, name, &pieces, Position::Current, how)
    }
}

fn sync_descriptor_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    if !matches!(open.inode(cx)?.kind, FileKind::Regular | FileKind::Directory | FileKind::BlockDevice) {
        return Err(Errno::EINVAL);
    }
    let name = open.downgrade();
    drop(open);
    sync_async(cx, me, name, 0..u64::MAX, Depth::Kept)?;
    Ok(0)
}

fn sync_all_async(cx: &mut Cx, me: &mut Current, _args: &Args) -> Result<usize> {
    for file_system in MOUNTS.file_systems(cx) {
        // What could not be written those are told who ask for their own files.
        let _ = sync_file_system_async(cx, me, file_system);
    }
    let mut progress = Default::default();
    complete_async(cx, me, Patience::Forever, |cx, _, waker| sync_all(&mut progress, waker, cx))?;
    Ok(0)
}

fn syncfs_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let file_system = open.inode(cx)?.file_system.downgrade();
    drop(open);
    sync_file_system_async(cx, me, file_system)?;
    Ok(0)
}

/// Writes all that was changed in a file system, and waits for it.
fn sync_file_system_async(cx: &mut Cx, me: &mut Current, file_system: WeakRc<FileSystem>) -> Result<()> {
    let mut number = None;
    complete_async(cx, me, Patience::Forever, |cx, _, waker| match file_system.upgrade(cx) {
        Ok(file_system) => file_system.sync(&mut number, waker, cx),
        Err(_) => Ok(()),
    })
}

fn sync_file_range_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let known = abi::SYNC_FILE_RANGE_WAIT_BEFORE | abi::SYNC_FILE_RANGE_WRITE | abi::SYNC_FILE_RANGE_WAIT_AFTER;
    let (offset, len) = (args.long(1) as i64, args.long(2) as i64);
    let open = me.files(cx)?.get(args.int(0), cx)?;
    if args.int(3) as u32 & !known != 0 || offset < 0 || len < 0 || offset.checked_add(len).is_none() {
        return Err(Errno::EINVAL);
    }
    if !matches!(open.inode(cx)?.kind, FileKind::Regular | FileKind::Directory | FileKind::BlockDevice) {
        return Err(Errno::ESPIPE);
    }
    let name = open.downgrade();
    drop(open);
    let (start, end) = (offset as u64, if len == 0 { u64::MAX } else { (offset + len) as u64 });
    sync_async(cx, me, name, start..end, Depth::Written)?;
    Ok(0)
}

fn fadvise_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (offset, len, advice) = (args.long(1) as i64, args.long(2) as i64, args.int(3) as u32);
    let open = me.files(cx)?.get(args.int(0), cx)?;
    if open.inode(cx)?.kind == FileKind::Fifo {
        return Err(Errno::ESPIPE);
    }
    if len < 0 || advice > abi::POSIX_FADV_NOREUSE {
        return Err(Errno::EINVAL);
    }
    let name = open.downgrade();
    drop(open);
    if advice == abi::POSIX_FADV_WILLNEED {
        read_ahead_async(cx, me, name, offset, if len == 0 { i64::MAX } else { len })?;
    }
    Ok(0)
}

fn readahead_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (offset, len) = (args.long(1) as i64, args.long(2) as i64);
    let open = me.files(cx)?.get(args.int(0), cx)?;
    if !open.flags().can_read() {
        return Err(Errno::EBADF);
    }
    if open.inode(cx)?.kind != FileKind::Regular || len < 0 {
        return Err(Errno::EINVAL);
    }
    let name = open.downgrade();
    drop(open);
    read_ahead_async(cx, me, name, offset, len)?;
    Ok(0)
}

/// So many pages a call has read ahead at most.
const MOST_READ_AHEAD: u64 = 512;

/// Has what is at a range of a file's bytes read, as far as it is at once. Where that cannot be, nobody is told: whoever reads it is.
fn read_ahead_async(cx: &mut Cx, me: &mut Current, name: WeakRc<OpenFile>, offset: i64, len: i64) -> Result<()> {
    let Ok(start) = u64::try_from(offset) else { return Ok(()) };
    let first = start / PAGE_SIZE as u64;
    let end = start.saturating_add(len as u64).div_ceil(PAGE_SIZE as u64).min(first + MOST_READ_AHEAD);
    let outcome = complete_async(cx, me, Patience::Forever, |cx, _, _| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let inode = open.inode(cx)?;
        if inode.kind != FileKind::Regular {
            return Ok(());
        }
        Inode::kept(&inode, cx).ops.read_ahead(first..end, cx)
    });
    match outcome {
        Err(error @ (Errno::EINTR | Errno::EBADF)) => Err(error),
        _ => Ok(()),
    }
}

fn fallocate_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (mode, offset, len) = (args.int(1) as u32, args.long(2) as i64, args.long(3) as i64);
    let name = me.files(cx)?.weak(args.int(0), cx)?;
    if offset < 0 || len <= 0 {
        return Err(Errno::EINVAL);
    }
    let known = abi::FALLOC_FL_KEEP_SIZE | abi::FALLOC_FL_PUNCH_HOLE | abi::FALLOC_FL_ZERO_RANGE;
    let punches_and_grows = mode & (abi::FALLOC_FL_PUNCH_HOLE | abi::FALLOC_FL_KEEP_SIZE) == abi::FALLOC_FL_PUNCH_HOLE;
    if mode & !known != 0 || punches_and_grows {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut done = 0;
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if !open.flags().can_write() {
            return Err(Errno::EBADF.into());
        }
        let inode = open.inode(cx)?;
        let fixed = if mode & !abi::FALLOC_FL_KEEP_SIZE != 0 { InodeFlags::FIXED } else { InodeFlags::IMMUTABLE };
        inode.check_not(fixed)?;
        match inode.kind {
            FileKind::Regular => {}
            FileKind::Fifo => return Err(Errno::ESPIPE.into()),
            FileKind::Directory => return Err(Errno::EISDIR.into()),
            _ => return Err(Errno::ENODEV.into()),
        }
        let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
        inode.ops.allocate(&inode, mode, offset as u64..end as u64, &mut done, cx)?;
        open.notify(FileEvents::MODIFY, cx);
        remove_privileges(&Inode::kept(&inode, cx), me, cx)?;
        inode.bring_up_to_date(cx);
        Ok(0)
    })
}

fn memfd_create(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(1) as u32;
    let known = abi::MFD_CLOEXEC | abi::MFD_ALLOW_SEALING | abi::MFD_NOEXEC_SEAL | abi::MFD_EXEC;
    if flags & !known != 0 || flags & (abi::MFD_NOEXEC_SEAL | abi::MFD_EXEC) == abi::MFD_NOEXEC_SEAL | abi::MFD_EXEC {
        return Err(Errno::EINVAL.into());
    }
    const LONGEST: usize = 249;
    let name = me.memory(cx)?.read_c_string(args.string(0), LONGEST + 1, Errno::EINVAL)?;
    let reserved = reserve_fd(me, cx)?;
    crate::memory::admit()?;
    let no_exec = flags & abi::MFD_NOEXEC_SEAL != 0;
    let mut seals = if flags & abi::MFD_ALLOW_SEALING != 0 || no_exec { 0 } else { abi::F_SEAL_SEAL };
    if no_exec {
        seals |= abi::F_SEAL_EXEC;
    }
    let file = tmpfs::memory_file(&name, if no_exec { 0o666 } else { 0o777 }, seals, me, cx)?;
    let fd_flags =
        if flags & abi::MFD_CLOEXEC != 0 { crate::fs::FdFlags::CLOSE_ON_EXEC } else { crate::fs::FdFlags::empty() };
    Ok(reserved.fill(file, fd_flags, cx))
}

//! Copies from file to file inside the kernel: sendfile(2), copy_file_range(2), splice(2). And memory files, which are mostly
//! filled so.

use alloc::vec;

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::WeakRc;

use super::{PIPE_BUF, PipeEnd};
use crate::error::{Errno, Result};
use crate::fs::access::Subject;
use crate::fs::read_write::{Position, read_bytes_async, write_bytes_async};
use crate::fs::{Events, FileKind, InodeFlags, OpenFile, OpenFlags, VfsCaller, tmpfs};
use crate::step::{Interruption, Patience, TimeSlice, complete_async};

/// Where bytes come from or go to.
#[derive(Clone, Copy)]
pub struct CopyEnd {
    /// The description.
    pub name: WeakRc<OpenFile>,
    /// Where in it.
    pub position: Position,
}

impl CopyEnd {
    fn at(&self, done: usize) -> Position {
        match self.position {
            Position::Current => Position::Current,
            Position::At(start) => Position::At(start.saturating_add(done as u64)),
        }
    }
}

/// Bytes that are on their way at a time.
const CHUNK: usize = 16384;

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

/// Copies up to `len` bytes, until the end of `from`; how many. Bytes that were read from a seekable file and not taken by `to` are not
/// lost: the offset goes back.
///
/// # Errors
/// Those of read(2) and write(2), where nothing was copied.
pub fn copy_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    from: &CopyEnd,
    to: &CopyEnd,
    len: usize,
    waits: Waits,
) -> Result<usize> {
    let mut buffer = vec![0; CHUNK.min(len)];
    let mut done = 0;
    let mut time_slice = TimeSlice::default();
    while done < len {
        if done > 0 && time_slice.is_over() {
            if me.pause_async(cx, Interruption::Signals).is_err() {
                break;
            }
            time_slice = TimeSlice::default();
        }
        let no_wait = waits == Waits::Never || (waits == Waits::First && done > 0);
        let mut room = (len - done).min(CHUNK);
        if waits != Waits::All && done > 0 {
            // A pipe that can be written to takes so much. What would be read and not taken would be lost.
            room = room.min(PIPE_BUF);
            let target = to.name.upgrade(cx).map_err(|_| Errno::EBADF);
            if !target.is_ok_and(|target| target.file.poll(Events::OUT, None, cx).contains(Events::OUT)) {
                break;
            }
        }
        let bytes = buffer.get_mut(..room).unwrap_or_default();
        let read = match read_bytes_async(cx, me, from.name, bytes, from.at(done), no_wait) {
            Ok(0) => break,
            Ok(read) => read,
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        let written = write_bytes_async(cx, me, to.name, bytes, to.at(done), no_wait);
        let taken = *written.as_ref().unwrap_or(&0);
        if taken < read
            && from.position == Position::Current
            && let Ok(open) = from.name.upgrade(cx)
            && open.is_seekable
        {
            open.offset.fetch_sub((read - taken) as u64, core::sync::atomic::Ordering::Relaxed);
        }
        done += taken;
        match written {
            Err(error) if done == 0 => return Err(error),
            Ok(written) if written == read => {}
            _ => break,
        }
    }
    Ok(done)
}

/// Copies what is in one pipe to another and leaves it there: tee(2).
///
/// # Errors
/// EINVAL where they are not two pipes; EBADF; EAGAIN with `no_wait`; EPIPE.
pub fn tee_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    from: WeakRc<OpenFile>,
    to: WeakRc<OpenFile>,
    len: usize,
    no_wait: bool,
) -> Result<usize> {
    let patience = if no_wait { Patience::None } else { Patience::Forever };
    complete_async(cx, me, patience, |cx, me, waker| {
        let source = from.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let target = to.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let (Some(input), Some(output)) = (source.kind::<PipeEnd>(), target.kind::<PipeEnd>()) else {
            return Err(Errno::EINVAL.into());
        };
        if input.is_same_pipe(output) {
            return Err(Errno::EINVAL.into());
        }
        if let Some(waker) = waker {
            from.watch(waker, cx);
            to.watch(waker, cx);
            source.file.poll(Events::IN, Some(waker), cx);
            target.file.poll(Events::OUT, Some(waker), cx);
        }
        let mut bytes = vec![0; len.min(CHUNK)];
        let count = input.peek(&mut Writer::from(bytes.as_mut_slice()), cx)?;
        if count == 0 {
            return Ok(0);
        }
        target.file.write(0, &mut Reader::from(bytes.get(..count).unwrap_or_default()), me, cx)
    })
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
        Position::Current => open.offset.load(core::sync::atomic::Ordering::Relaxed),
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

/// A new memory file, open for reading and writing: memfd_create(2).
///
/// # Errors
/// ENOSPC.
pub fn memory_file(name: &[u8], permissions: u32, seals: u32, me: &impl VfsCaller, cx: &Cx) -> Result<OpenFile> {
    let subject = Subject::of(me, cx)?;
    let shown_as = [b"/memfd:", name, b" (deleted)"].concat();
    let location = tmpfs::nameless_file(shown_as, permissions, subject.uid.number(), subject.gid.number(), seals)?;
    location.begin_writing(cx)?;
    Ok(OpenFile::stored(OpenFlags::READ_WRITE, location))
}

//! Pipes.

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::anonymous::{self, Nameless};
use crate::fs::pipe::{self, Pipe, PipeEnd};
use crate::fs::transfer::{MOST_BYTES, Position, TransferFlags, read_async, write_async};
use crate::fs::{Events, FdFlags, FileKind, Metadata, OpenFile, OpenFlags};
use crate::step::{Patience, Step, complete_async};

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_pipe, "pipe", Call::Step(|cx, me, args| pipe(cx, me, args.long(0), OpenFlags::empty()))),
    Entry::partial(abi::__NR_pipe2, "pipe2", Call::Step(pipe2), "packets (O_DIRECT)"),
    Entry::new(abi::__NR_tee, "tee", Call::Async(tee_async)),
    Entry::new(abi::__NR_vmsplice, "vmsplice", Call::Async(vmsplice_async)),
];

fn pipe2(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = OpenFlags::from_bits_retain(args.int(1) as u32);
    if !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    pipe(cx, me, args.long(0), flags)
}

fn pipe(cx: &Cx, me: &Current, result: usize, flags: OpenFlags) -> Step<usize> {
    crate::memory::admit()?;
    let files = me.files(cx)?;
    let (reading, writing) = Pipe::pair(cx);
    // Both ends are one file, which `/proc/PID/fd` can open again.
    let (uid, gid) = {
        let thread = me.thread(cx)?;
        let credentials = thread.credentials.lock(cx);
        (credentials.fsuid, credentials.fsgid)
    };
    let metadata = Metadata::new(FileKind::Fifo, 0o600).owned_by(uid, gid);
    let location = anonymous::new_location(metadata, |_| Ok(Box::new(Nameless { prefix: "pipe" })))?;
    *location.inode.get(cx).attachment.lock(cx) = Some(Box::new(reading.pipe()));
    let fd_flags = FdFlags::of(flags);
    let status = flags & OpenFlags::NONBLOCK;
    let [reading, writing] = [(reading, OpenFlags::empty()), (writing, OpenFlags::WRITE_ONLY)]
        .map(|(end, access): (PipeEnd, _)| OpenFile::at(Box::new(end), status | access, location.share()));
    let first = files.install(reading, fd_flags, me, cx)?;
    let second = match files.install(writing, fd_flags, me, cx) {
        Ok(second) => second,
        Err(error) => {
            files.uninstall(first, cx);
            return Err(error.into());
        }
    };
    if let Err(fault) = me.memory(cx)?.write(result, &[first as i32, second as i32]) {
        files.uninstall(first, cx);
        files.uninstall(second, cx);
        return Err(fault.into());
    }
    Ok(0)
}

const SPLICE_FLAGS: u32 = abi::SPLICE_F_MOVE | abi::SPLICE_F_NONBLOCK | abi::SPLICE_F_MORE | abi::SPLICE_F_GIFT;

fn tee_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(3) as u32;
    if flags & !SPLICE_FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let from = me.files(cx)?.weak(args.int(0), cx)?;
    let to = me.files(cx)?.weak(args.int(1), cx)?;
    let len = args.long(2).min(MOST_BYTES);
    let patience = if flags & abi::SPLICE_F_NONBLOCK != 0 { Patience::None } else { Patience::Forever };
    complete_async(cx, me, patience, |cx, _, waker| {
        let (source, sink) = (from.upgrade(cx).map_err(|_| Errno::EBADF)?, to.upgrade(cx).map_err(|_| Errno::EBADF)?);
        let source_end = source.kind::<PipeEnd>().ok_or(Errno::EINVAL)?;
        let sink_end = sink.kind::<PipeEnd>().ok_or(Errno::EINVAL)?;
        if let Some(waker) = waker {
            from.watch(waker, cx);
            to.watch(waker, cx);
            source.file.poll(Events::IN, Some(waker), cx);
            sink.file.poll(Events::OUT, Some(waker), cx);
        }
        pipe::tee(source_end, sink_end, len, cx)
    })
}

/// Memory is copied, whatever the flags say: to a pipe's writing end as by writev(2), from its reading end as by readv(2).
fn vmsplice_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(3) as u32;
    if flags & !SPLICE_FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let fd = args.int(0);
    let open = me.files(cx)?.get(fd, cx)?;
    if open.kind::<PipeEnd>().is_none() {
        return Err(Errno::EBADF);
    }
    let writes = open.flags().can_write();
    drop(open);
    let (address, count) = (args.long(1), args.long(2));
    let pieces =
        complete_async(cx, me, Patience::Forever, |cx, me, _| super::transfer::pieces(cx, me, address, count))?;
    let how = TransferFlags { no_wait: flags & abi::SPLICE_F_NONBLOCK != 0, append: false };
    if writes {
        write_async(cx, me, fd, &pieces, Position::Current, how)
    } else {
        read_async(cx, me, fd, &pieces, Position::Current, how)
    }
}

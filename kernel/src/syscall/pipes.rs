//! Pipes.

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::Errno;
use crate::fs::anonymous::{self, Nameless};
use crate::fs::{FdFlags, FileKind, Metadata, OpenFile, OpenFlags, ReservedFd, reserve_fd};
use crate::pipe::{Pipe, PipeEnd, PipeUser};
use crate::step::Step;
use crate::user_memory::UserOut;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(
        abi::__NR_pipe,
        "pipe",
        Call::Step(|cx, me, args| pipe(cx, me, args.output::<[i32; 2]>(0), OpenFlags::empty())),
    ),
    Entry::new(abi::__NR_pipe2, "pipe2", Call::Step(pipe2)),
];

fn pipe2(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = OpenFlags::from_bits_retain(args.int(1) as u32);
    if !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC | OpenFlags::DIRECT).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    pipe(cx, me, args.output::<[i32; 2]>(0), flags)
}

fn pipe(cx: &Cx, me: &Current, result: UserOut<[i32; 2]>, flags: OpenFlags) -> Step<usize> {
    crate::memory::admit()?;
    let (first, second) = (reserve_fd(me, cx)?, reserve_fd(me, cx)?);
    me.memory(cx)?.write(result, &[first.fd() as i32, second.fd() as i32])?;
    let (by, uid, gid) = {
        let thread = me.thread(cx)?;
        let credentials = thread.credentials.lock(cx);
        let (user, group) = (credentials.users().file_system, credentials.groups().file_system);
        (PipeUser::new(&credentials), user.number(), group.number())
    };
    let (reading, writing) = Pipe::pair(by, cx)?;
    // Both ends are one file, which `/proc/PID/fd` can open again.
    let metadata = Metadata::new(FileKind::Fifo, 0o600).owned_by(uid, gid);
    let location = anonymous::new_location(metadata, |_| Ok(Box::new(Nameless { prefix: "pipe" })))?;
    *location.inode.get(cx).attachment.lock(cx) = Some(Box::new(reading.pipe()));
    let fd_flags = FdFlags::of(flags);
    let status = flags & OpenFlags::NONBLOCK;
    let direct = flags & OpenFlags::DIRECT;
    let [reading, writing] = [(reading, OpenFlags::empty()), (writing, OpenFlags::WRITE_ONLY | direct)]
        .map(|(end, access): (PipeEnd, _)| OpenFile::at(Box::new(end), status | access, location.share()));
    if !direct.is_empty() {
        writing.file.flags_changed(writing.flags());
    }
    ReservedFd::fill_pair([first, second], [reading, writing], fd_flags, cx);
    Ok(0)
}

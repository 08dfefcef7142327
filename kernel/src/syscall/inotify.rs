//! inotify(7).

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::Errno;
use crate::fs::access::{Subject, Want};
use crate::fs::notify::Inotify;
use crate::fs::walk::{self, PathName, WalkFlags};
use crate::fs::{FdFlags, FileKind, OpenFile, OpenFlags, reserve_fd};
use crate::step::Step;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_inotify_init, "inotify_init", Call::Step(|cx, me, _| init(0, me, cx))),
    Entry::new(abi::__NR_inotify_init1, "inotify_init1", Call::Step(|cx, me, args| init(args.int(0) as u32, me, cx))),
    Entry::new(abi::__NR_inotify_add_watch, "inotify_add_watch", Call::Step(add_watch)),
    Entry::new(abi::__NR_inotify_rm_watch, "inotify_rm_watch", Call::Step(remove_watch)),
];

fn init(flags: u32, me: &Current, cx: &Cx) -> Step<usize> {
    if flags & !(abi::IN_CLOEXEC | abi::IN_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    crate::memory::admit()?;
    let user = me.thread(cx)?.credentials.lock(cx).users().effective;
    let inotify = Inotify::new(user, &me.process(cx)?.payer(cx))?;
    let flags = OpenFlags::from_bits_retain(flags);
    let file = OpenFile::new(Box::new(inotify), flags & OpenFlags::NONBLOCK);
    Ok(reserve_fd(me, cx)?.fill_counted(file, FdFlags::of(flags), cx))
}

fn add_watch(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    const KNOWN: u32 = abi::IN_ALL_EVENTS
        | abi::IN_UNMOUNT
        | abi::IN_Q_OVERFLOW
        | abi::IN_IGNORED
        | abi::IN_ONLYDIR
        | abi::IN_DONT_FOLLOW
        | abi::IN_EXCL_UNLINK
        | abi::IN_MASK_CREATE
        | abi::IN_MASK_ADD
        | abi::IN_ISDIR
        | abi::IN_ONESHOT;
    const CONTRADICTION: u32 = abi::IN_MASK_ADD | abi::IN_MASK_CREATE;
    let mask = args.int(2) as u32;
    if mask & !KNOWN != 0 || mask == 0 {
        return Err(Errno::EINVAL.into());
    }
    // What it watches knows it from now on, so its end is seen.
    let open = me.files(cx)?.get_exported(args.int(0), cx)?;
    let inotify = open.kind::<Inotify>().filter(|_| mask & CONTRADICTION != CONTRADICTION).ok_or(Errno::EINVAL)?;
    let path = PathName::read(args.string(1), me, cx)?;
    let follows = mask & abi::IN_DONT_FOLLOW == 0;
    let walking = if follows { WalkFlags::FOLLOW } else { WalkFlags::empty() };
    let found = walk::resolve(abi::AT_FDCWD, path.bytes(), walking, me, cx)?;
    if mask & abi::IN_ONLYDIR != 0 && found.inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    Subject::of(me, cx)?.check(&found.inode, Want::READ, cx)?;
    Ok(inotify.add(open.downgrade(), &found.inode, mask, cx)? as usize)
}

fn remove_watch(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    open.kind::<Inotify>().ok_or(Errno::EINVAL)?.remove(args.int(1), cx)?;
    Ok(0)
}

//! Opening and closing.

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::WeakRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::open::{OpenHow, Opened, open_step};
use crate::fs::walk::{PathName, WalkFlags};
use crate::fs::{FdFlags, FileTable, Inode, LockKind, Mount, OpenFlags, ParkedFd, leases, reserve_fd};
use crate::pipe::open_fifo_async;
use crate::step::{Patience, complete_async};
use crate::user_memory::UserIn;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(
        abi::__NR_open,
        "open",
        Call::Async(|cx, me, args| open_at_async(cx, me, abi::AT_FDCWD, args.string(0), args.int(1), args.int(2))),
    ),
    Entry::new(
        abi::__NR_openat,
        "openat",
        Call::Async(|cx, me, args| open_at_async(cx, me, args.int(0), args.string(1), args.int(2), args.int(3))),
    ),
    Entry::new(
        abi::__NR_creat,
        "creat",
        Call::Async(|cx, me, args| {
            let flags = abi::O_CREAT | abi::O_WRONLY | abi::O_TRUNC;
            open_at_async(cx, me, abi::AT_FDCWD, args.string(0), flags as i32, args.int(1))
        }),
    ),
    Entry::new(abi::__NR_openat2, "openat2", Call::Async(openat2_async)),
    Entry::new(abi::__NR_close, "close", Call::Async(close_async)),
    Entry::new(abi::__NR_close_range, "close_range", Call::Async(close_range_async)),
];

#[inline]
fn open_at_async(
    cx: &mut Cx,
    me: &mut Current,
    directory: i32,
    path: UserIn<u8>,
    flags: i32,
    permissions: i32,
) -> Result<usize> {
    let mut flags = OpenFlags::from_bits_retain(flags as u32);
    // O_TMPFILE is two bits, of which the other is O_DIRECTORY: alone it means nothing.
    if !flags.contains(OpenFlags::TEMPORARY) {
        flags &= OpenFlags::from_bits_retain(!(abi::O_TMPFILE & !abi::O_DIRECTORY));
    }
    let how = OpenHow::new(flags, permissions as u32);
    open_async(cx, me, directory, &how, path)
}

/// What has to be waited for.
enum Unopened {
    /// The other end of a FIFO.
    Fifo(WeakRc<Mount>, WeakRc<Inode>, ParkedFd),
    /// Leases on the file.
    Leased(WeakRc<Inode>, LockKind),
}

/// Opens the path at an address of the caller's memory and gives it a descriptor.
#[inline]
fn open_async(cx: &mut Cx, me: &mut Current, directory: i32, how: &OpenHow, path: UserIn<u8>) -> Result<usize> {
    let fd_flags = FdFlags::of(how.flags);
    let mut has_waited = false;
    loop {
        let opened = complete_async(cx, me, Patience::Forever, |cx, me, _| {
            let mut name = PathName::empty();
            name.fill(path, me, cx)?;
            let reserved = reserve_fd(me, cx)?;
            match open_step(directory, name.bytes(), how, me, cx)? {
                Opened::File(file) => Ok(Ok(reserved.fill_shared(file, fd_flags, cx))),
                Opened::Fifo(mount, inode) => Ok(Err(Unopened::Fifo(mount, inode, reserved.park()))),
                Opened::Leased(inode, kind) => Ok(Err(Unopened::Leased(inode, kind))),
            }
        });
        if opened.as_ref().is_err_and(|error| *error == Errno::ETXTBSY) && !core::mem::replace(&mut has_waited, true) {
            // The program that runs from it may have ended already.
            tasks::free_everything_async(cx);
            continue;
        }
        match opened? {
            Ok(fd) => return Ok(fd),
            Err(Unopened::Fifo(mount, inode, reserved)) => {
                let file = open_fifo_async(cx, me, mount, inode, how.flags);
                let reserved = reserved.resume(cx)?;
                let file = file?;
                file.was_opened(cx);
                return Ok(reserved.fill(file, fd_flags, cx));
            }
            // Then the path may lead elsewhere.
            Err(Unopened::Leased(inode, kind)) => leases::wait_until_broken_async(cx, me, inode, kind)?,
        }
    }
}

/// `struct open_how`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HowArgument {
    flags: u64,
    mode: u64,
    resolve: u64,
}

fn openat2_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    const KNOWN: usize = size_of::<HowArgument>();
    let size = args.long(3);
    if size < KNOWN {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    let argument = me.read_async(cx, args.input::<HowArgument>(2))?;
    for at in KNOWN..size {
        if me.read_async(cx, args.input::<u8>(2).add(at))? != 0 {
            return Err(Errno::E2BIG);
        }
    }
    let all = abi::O_ACCMODE
        | abi::O_CREAT
        | abi::O_EXCL
        | abi::O_NOCTTY
        | abi::O_TRUNC
        | abi::O_APPEND
        | abi::O_NONBLOCK
        | abi::O_SYNC
        | abi::O_DSYNC
        | abi::FASYNC
        | abi::O_DIRECT
        | abi::O_LARGEFILE
        | abi::O_DIRECTORY
        | abi::O_NOFOLLOW
        | abi::O_NOATIME
        | abi::O_CLOEXEC
        | abi::O_PATH
        | abi::O_TMPFILE;
    let flags = u32::try_from(argument.flags).map_err(|_| Errno::EINVAL)?;
    let creates = flags & abi::O_CREAT != 0 || flags & abi::O_TMPFILE == abi::O_TMPFILE;
    if flags & !all != 0 || argument.mode & !0o7777 != 0 || (argument.mode != 0 && !creates) {
        return Err(Errno::EINVAL);
    }
    let path_only = abi::O_PATH | abi::O_DIRECTORY | abi::O_NOFOLLOW | abi::O_CLOEXEC;
    if flags & abi::O_PATH != 0 && flags & !path_only != 0 {
        return Err(Errno::EINVAL);
    }
    let mut how = OpenHow::new(OpenFlags::from_bits_retain(flags), argument.mode as u32);
    let mut rest = argument.resolve;
    for (bit, walking) in [
        (abi::RESOLVE_BENEATH, WalkFlags::BENEATH),
        (abi::RESOLVE_IN_ROOT, WalkFlags::IN_ROOT),
        (abi::RESOLVE_NO_SYMLINKS, WalkFlags::NO_SYMLINKS | WalkFlags::NO_MAGIC_LINKS),
        (abi::RESOLVE_NO_MAGICLINKS, WalkFlags::NO_MAGIC_LINKS),
        (abi::RESOLVE_NO_XDEV, WalkFlags::NO_CROSSING),
    ] {
        if rest & u64::from(bit) != 0 {
            how.walk |= walking;
            rest &= !u64::from(bit);
        }
    }
    if rest != 0 || how.walk.contains(WalkFlags::BENEATH | WalkFlags::IN_ROOT) {
        // RESOLVE_CACHED is among those that are not known.
        return Err(Errno::EINVAL);
    }
    let path = args.string(1);
    open_async(cx, me, args.int(0), &how, path)
}

fn close_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let closed = FileTable::close(&me.files(cx)?, args.int(0), cx)?;
    FileTable::end_async(cx, closed);
    Ok(0)
}

/// Flags of close_range(2), which the constants' crate does not have.
const CLOSE_RANGE_UNSHARE: u32 = 2;
const CLOSE_RANGE_CLOEXEC: u32 = 4;

fn close_range_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (first, last, flags) = (args.int(0) as u32, args.int(1) as u32, args.int(2) as u32);
    let known = CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE;
    if first > last || flags & !known != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & CLOSE_RANGE_UNSHARE != 0 {
        crate::process::unshare(me, abi::CLONE_FILES, cx)?;
    }
    if flags & CLOSE_RANGE_CLOEXEC != 0 {
        me.files(cx)?.set_flags_in(first..=last, FdFlags::CLOSE_ON_EXEC, cx)?;
    } else {
        FileTable::close_range_async(cx, me, first..=last, FdFlags::empty())?;
    }
    Ok(0)
}

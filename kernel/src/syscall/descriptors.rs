//! Descriptors: duplicating, flags, locks, ioctl.

use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use linux_raw_sys::ioctl::{
    EXT4_IOC_SHUTDOWN, FICLONE, FICLONERANGE, FIOASYNC, FIOCLEX, FIONBIO, FIONCLEX, FIONREAD, FIOSETOWN,
    FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, SIOCSPGRP,
};
use refs::{SpinLock, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry, fiemap, file_owner};
use crate::credentials::Capability;
use crate::current::Current;
use crate::drivers::disk;
use crate::error::{Errno, Result};
use crate::fs::access::Subject;
use crate::fs::fasync;
use crate::fs::inode_flags;
use crate::fs::{
    FdFlags, FileKind, FileTable, InodeFlags, LockKind, LockOwner, OpenFile, OpenFlags, RecordLock, WrittenFirst,
    descriptor_limit, is_deadlock,
};
use crate::pipe::{PipeEnd, PipeUser};
use crate::step::{Patience, Step, Stop, complete_async};
use crate::user_memory::{UserIn, UserInOut};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_dup, "dup", Call::Step(dup)),
    Entry::new(abi::__NR_dup2, "dup2", Call::Async(dup2_async)),
    Entry::new(abi::__NR_dup3, "dup3", Call::Async(dup3_async)),
    Entry::new(abi::__NR_fcntl, "fcntl", Call::Async(fcntl_async)),
    Entry::partial(abi::__NR_ioctl, "ioctl", Call::Async(ioctl_async), "FS_IOC_FSSETXATTR and its like"),
    Entry::new(abi::__NR_flock, "flock", Call::Async(flock_async)),
];

fn dup(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Ok(me.files(cx)?.duplicate_to_lowest(args.int(0), 0, descriptor_limit(me, cx)?, FdFlags::empty(), cx)?)
}

fn dup2_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (old, new) = (args.int(0), args.int(1));
    if old == new {
        me.files(cx)?.get_even_path(old, cx)?;
        return Ok(new as usize);
    }
    duplicate_to_async(cx, me, old, new, FdFlags::empty())
}

fn dup3_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (old, new, flags) = (args.int(0), args.int(1), args.int(2) as u32);
    if old == new || flags & !abi::O_CLOEXEC != 0 {
        return Err(Errno::EINVAL);
    }
    duplicate_to_async(cx, me, old, new, FdFlags::of(OpenFlags::from_bits_retain(flags)))
}

fn duplicate_to_async(cx: &mut Cx, me: &mut Current, old: i32, new: i32, flags: FdFlags) -> Result<usize> {
    let limit = descriptor_limit(me, cx)?;
    let to = usize::try_from(new).ok().filter(|&to| to < limit).ok_or(Errno::EBADF)?;
    let replaced = FileTable::duplicate_to(&me.files(cx)?, old, to, flags, cx)?;
    if let Some(replaced) = replaced {
        FileTable::end_async(cx, replaced);
    }
    Ok(to)
}

fn fcntl_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (fd, command, argument) = (args.int(0), args.int(1) as u32, args.either(2));
    let is_description = matches!(command, abi::F_OFD_GETLK | abi::F_OFD_SETLK | abi::F_OFD_SETLKW);
    match command {
        abi::F_GETLK | abi::F_OFD_GETLK => {
            let open = me.files(cx)?.weak(fd, cx)?;
            let (owner, pid) = lock_owner(cx, me, open, is_description)?;
            get_lock_async(cx, me, open, owner, pid, argument.in_out::<LockArgument>())
        }
        abi::F_SETLK | abi::F_SETLKW | abi::F_OFD_SETLK | abi::F_OFD_SETLKW => {
            let waits = matches!(command, abi::F_SETLKW | abi::F_OFD_SETLKW);
            let open = me.files(cx)?.get_exported(fd, cx)?.downgrade();
            let (owner, pid) = lock_owner(cx, me, open, is_description)?;
            set_lock_async(cx, me, (fd, open), owner, pid, argument.input::<LockArgument>(), waits)
        }
        abi::F_SETOWN
        | abi::F_GETOWN
        | abi::F_SETOWN_EX
        | abi::F_GETOWN_EX
        | abi::F_SETSIG
        | abi::F_GETSIG
        | abi::F_NOTIFY
        | abi::F_SETLEASE
        | abi::F_GETLEASE => {
            if command == abi::F_SETLEASE {
                // It counts who has the file open.
                tasks::free_everything_async(cx);
            }
            complete_async(cx, me, Patience::Forever, |cx, me, _| {
                // Somebody may be told of it.
                let open = me.files(cx)?.get_exported(fd, cx)?;
                file_owner::control(&open, fd, command, argument, me, cx)
            })
        }
        _ => control(cx, me, fd, command, argument.value()),
    }
}

/// What fcntl(2) does without waiting.
fn control(cx: &Cx, me: &Current, fd: i32, command: u32, argument: usize) -> Result<usize> {
    let files = me.files(cx)?;
    let open = files.get_even_path(fd, cx)?;
    let places_only = [abi::F_DUPFD, abi::F_DUPFD_CLOEXEC, abi::F_GETFD, abi::F_SETFD, abi::F_GETFL].contains(&command);
    if open.flags().contains(OpenFlags::PATH) && !places_only {
        return Err(Errno::EBADF);
    }
    match command {
        abi::F_DUPFD | abi::F_DUPFD_CLOEXEC => {
            let limit = descriptor_limit(me, cx)?;
            let from = usize::try_from(argument as i32).ok().filter(|&from| from < limit).ok_or(Errno::EINVAL)?;
            let closes = command == abi::F_DUPFD_CLOEXEC;
            let flags = if closes { FdFlags::CLOSE_ON_EXEC } else { FdFlags::empty() };
            files.duplicate_to_lowest(fd, from, limit, flags, cx)
        }
        abi::F_GETFD => Ok(usize::from(files.flags(fd, cx)?.bits())),
        abi::F_SETFD => {
            files.set_flags(fd, FdFlags::from_bits_truncate(argument as u8 & 1), cx)?;
            Ok(0)
        }
        abi::F_GETFL => Ok(open.reported_flags(cx).bits() as usize),
        abi::F_SETFL => {
            let mutable = OpenFlags::APPEND | OpenFlags::NONBLOCK | OpenFlags::DIRECT | OpenFlags::NO_ATIME;
            let asked = OpenFlags::from_bits_retain(argument as u32);
            let new = asked & mutable;
            if (new ^ open.flags()).contains(OpenFlags::APPEND) {
                open.inode(cx)?.check_not(InodeFlags::APPEND)?;
            }
            if new.contains(OpenFlags::NO_ATIME)
                && !open.flags().contains(OpenFlags::NO_ATIME)
                && !Subject::of(me, cx)?.owns(&*open.inode(cx)?, cx)
            {
                return Err(Errno::EPERM);
            }
            let is_async = asked.contains(OpenFlags::ASYNC);
            if is_async != open.flags().contains(OpenFlags::ASYNC) {
                let open = files.get_exported(fd, cx)?;
                // Files that send no signals do not have it, whatever is asked.
                fasync::set_signal_driven(&open, fd, is_async, me, cx)?;
            }
            open.set_flags((open.flags() & !mutable) | new);
            Ok(0)
        }
        abi::F_SETPIPE_SZ => {
            // It counts for its user.
            let open = files.get_exported(fd, cx)?;
            let end = open.kind::<PipeEnd>().ok_or(Errno::EBADF)?;
            let by = PipeUser::new(&me.thread(cx)?.credentials.lock(cx));
            end.set_capacity(argument as u32 as usize, by, cx)
        }
        abi::F_GETPIPE_SZ => Ok(open.kind::<PipeEnd>().ok_or(Errno::EBADF)?.capacity(cx)),
        abi::F_ADD_SEALS => add_seals(&open, argument as u32, cx),
        abi::F_GET_SEALS => {
            let inode = open.inode(cx)?;
            let seals = inode.ops.seals().ok_or(Errno::EINVAL)?;
            Ok(seals.load(Ordering::Relaxed) as usize)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn add_seals(open: &OpenFile, new: u32, cx: &Cx) -> Result<usize> {
    let all = abi::F_SEAL_SEAL
        | abi::F_SEAL_SHRINK
        | abi::F_SEAL_GROW
        | abi::F_SEAL_WRITE
        | abi::F_SEAL_FUTURE_WRITE
        | abi::F_SEAL_EXEC;
    if !open.flags().can_write() {
        return Err(Errno::EPERM);
    }
    let inode = open.inode(cx)?;
    let seals = inode.ops.seals().ok_or(Errno::EINVAL)?;
    if new & !all != 0 {
        return Err(Errno::EINVAL);
    }
    if seals.load(Ordering::Relaxed) & abi::F_SEAL_SEAL != 0 {
        return Err(Errno::EPERM);
    }
    let is_new = |seal| new & seal != 0 && seals.load(Ordering::Relaxed) & seal == 0;
    if is_new(abi::F_SEAL_WRITE) && inode.ops.pages().is_some_and(|pages| pages.mapped().is_writable(cx)) {
        return Err(Errno::EBUSY);
    }
    seals.fetch_or(new, Ordering::Relaxed);
    Ok(0)
}

/// `struct flock`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct LockArgument {
    kind: i16,
    whence: i16,
    padding: u32,
    start: i64,
    len: i64,
    pid: i32,
    end_padding: u32,
}

fn lock_owner(cx: &Cx, me: &Current, open: WeakRc<OpenFile>, is_description: bool) -> Result<(LockOwner, u32)> {
    if is_description {
        Ok((LockOwner::Description(open), 0))
    } else {
        Ok((LockOwner::Process(me.files), me.process(cx)?.pid))
    }
}

impl LockArgument {
    /// The first and the last byte.
    fn range(&self, open: &OpenFile, cx: &Cx) -> Result<(u64, u64)> {
        let base = match u32::try_from(self.whence).map_err(|_| Errno::EINVAL)? {
            abi::SEEK_SET => 0,
            abi::SEEK_CUR => open.offset.load(Ordering::Relaxed) as i64,
            abi::SEEK_END => open.inode(cx)?.metadata(cx).size as i64,
            _ => return Err(Errno::EINVAL),
        };
        let start = base.checked_add(self.start).ok_or(Errno::EOVERFLOW)?;
        let (first, last) = if self.len > 0 {
            (start, start.checked_add(self.len - 1).ok_or(Errno::EOVERFLOW)?)
        } else if self.len < 0 {
            (start.checked_add(self.len).ok_or(Errno::EINVAL)?, start - 1)
        } else {
            (start, i64::MAX)
        };
        if first < 0 {
            return Err(Errno::EINVAL);
        }
        Ok((first as u64, if self.len == 0 { u64::MAX } else { last as u64 }))
    }
}

fn get_lock_async(
    cx: &mut Cx,
    me: &mut Current,
    name: WeakRc<OpenFile>,
    owner: LockOwner,
    pid: u32,
    at: UserInOut<LockArgument>,
) -> Result<usize> {
    let mut argument = me.read_async(cx, at)?;
    if matches!(owner, LockOwner::Description(_)) && argument.pid != 0 {
        return Err(Errno::EINVAL);
    }
    let kind = match argument.kind as u32 {
        abi::F_RDLCK => LockKind::Shared,
        abi::F_WRLCK => LockKind::Exclusive,
        _ => return Err(Errno::EINVAL),
    };
    let conflict = complete_async(cx, me, Patience::Forever, |cx, _, _| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let (first, last) = argument.range(&open, cx)?;
        open.inode(cx)?.locks.conflict(&RecordLock { owner, pid, kind, first, last }, cx)
    })?;
    match conflict {
        None => argument.kind = abi::F_UNLCK as i16,
        Some(lock) => {
            argument.kind = if lock.kind == LockKind::Shared { abi::F_RDLCK } else { abi::F_WRLCK } as i16;
            argument.whence = abi::SEEK_SET as i16;
            argument.start = lock.first as i64;
            argument.len = if lock.last == u64::MAX { 0 } else { (lock.last - lock.first + 1) as i64 };
            argument.pid = if lock.pid == 0 { -1 } else { lock.pid as i32 };
        }
    }
    me.write_async(cx, at, &argument)?;
    Ok(0)
}

fn set_lock_async(
    cx: &mut Cx,
    me: &mut Current,
    (fd, open): (i32, WeakRc<OpenFile>),
    owner: LockOwner,
    pid: u32,
    at: UserIn<LockArgument>,
    waits: bool,
) -> Result<usize> {
    let argument = me.read_async(cx, at)?;
    if matches!(owner, LockOwner::Description(_)) && argument.pid != 0 {
        return Err(Errno::EINVAL);
    }
    let file = open.upgrade(cx).map_err(|_| Errno::EBADF)?;
    let (first, last) = argument.range(&file, cx)?;
    let kind = match argument.kind as u32 {
        abi::F_RDLCK if file.flags().can_read() => LockKind::Shared,
        abi::F_WRLCK if file.flags().can_write() => LockKind::Exclusive,
        abi::F_RDLCK | abi::F_WRLCK => return Err(Errno::EBADF),
        abi::F_UNLCK => {
            file.inode(cx)?.locks.clear(owner, first, last, cx);
            return Ok(0);
        }
        _ => return Err(Errno::EINVAL),
    };
    drop(file);
    let wanted = RecordLock { owner, pid, kind, first, last };
    let is_process = matches!(owner, LockOwner::Process(_));
    if is_process {
        me.files(cx)?.has_record_locks.store(true, Ordering::Relaxed);
    }
    let mut waits_for = None;
    let outcome = complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let file = open.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if let Some(waker) = waker {
            open.watch(waker, cx);
        }
        // Who has got what it waited for waits no more: nobody on another core may see the one without the other.
        let _waits = (waits && is_process).then(|| RECORD_WAITS.lock(cx));
        match file.inode(cx)?.locks.set(wanted, waker, cx)? {
            None => {
                now_waits_for(&mut waits_for, None, me, cx)?;
                // Closing a descriptor ends the process' locks. A thread that did so before this one was set has not seen it.
                if is_process && me.files(cx)?.weak(fd, cx) != Ok(open) {
                    file.inode(cx)?.locks.clear(owner, first, last, cx);
                    return Err(Errno::EBADF.into());
                }
                Ok(0)
            }
            Some(holder) if waits => {
                if is_process {
                    if is_deadlock(owner, holder.owner, cx) {
                        return Err(Errno::EDEADLK.into());
                    }
                    now_waits_for(&mut waits_for, Some(holder.owner), me, cx)?;
                }
                Err(Stop::Block)
            }
            Some(_) => Err(Errno::EAGAIN.into()),
        }
    });
    now_waits_for(&mut waits_for, None, me, cx)?;
    outcome
}

/// Held while a record lock is taken or waited for, with what is noted of that.
static RECORD_WAITS: SpinLock<()> = SpinLock::new(());

/// Notes whose record lock the caller waits for, in place of what it noted last.
fn now_waits_for(noted: &mut Option<LockOwner>, holder: Option<LockOwner>, me: &Current, cx: &Cx) -> Result<()> {
    if *noted == holder {
        return Ok(());
    }
    let files = me.files(cx)?;
    let mut all = files.waits_for.lock(cx);
    if let Some(index) = noted.and_then(|noted| all.iter().position(|other| *other == noted)) {
        all.swap_remove(index);
    }
    all.extend(holder);
    *noted = holder;
    Ok(())
}

fn flock_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let operation = args.int(1) as u32;
    let waits = operation & abi::LOCK_NB == 0;
    let kind = match operation & !abi::LOCK_NB {
        abi::LOCK_SH => Some(LockKind::Shared),
        abi::LOCK_EX => Some(LockKind::Exclusive),
        abi::LOCK_UN => None,
        _ => return Err(Errno::EINVAL),
    };
    let open = me.files(cx)?.get_exported(args.int(0), cx)?.downgrade();
    complete_async(cx, me, Patience::Forever, |cx, _, waker| {
        let file = open.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if let Some(waker) = waker {
            open.watch(waker, cx);
        }
        match file.inode(cx)?.locks.lock_whole((open, &file.shares_lock), kind, waker, cx)? {
            true => Ok(0),
            false if waits => Err(Stop::Block),
            false => Err(Errno::EAGAIN.into()),
        }
    })
}

fn ioctl_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (fd, request, argument) = (args.int(0), args.int(1) as u32, args.either(2));
    let name = me.files(cx)?.weak(fd, cx)?;
    if disk::takes_long(name, request, cx) {
        return disk::ioctl_async(cx, me, name, request, argument);
    }
    if request == EXT4_IOC_SHUTDOWN {
        return shut_down_async(cx, me, name, argument.input::<u32>());
    }
    if fiemap::is_it(request) {
        return fiemap::ioctl_async(cx, me, name, argument);
    }
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if let Some(waker) = waker {
            // What an ioctl waits for is room for output (TCSBRK and its kin).
            name.watch(waker, cx);
            open.file.poll(crate::fs::Events::OUT, Some(waker), cx);
        }
        // Somebody may be told of it.
        let is_told = matches!(request, FIOASYNC | FIOSETOWN | SIOCSPGRP);
        let open = if is_told { me.files(cx)?.get_exported(fd, cx)? } else { open };
        match request {
            FIOCLEX => me.files(cx)?.set_flags(fd, FdFlags::CLOSE_ON_EXEC, cx)?,
            FIONCLEX => me.files(cx)?.set_flags(fd, FdFlags::empty(), cx)?,
            FIONBIO => {
                let on = me.memory(cx)?.read(argument.input::<i32>())?;
                let mut flags = open.flags();
                flags.set(OpenFlags::NONBLOCK, on != 0);
                open.set_flags(flags);
            }
            FIOASYNC => {
                let on = me.memory(cx)?.read(argument.input::<i32>())? != 0;
                if on != open.flags().contains(OpenFlags::ASYNC) {
                    file_owner::set_signal_driven(&open, fd, on, me, cx)?;
                }
            }
            FIONREAD if open.inode(cx)?.kind == FileKind::Regular && open.is_seekable => {
                let size = open.inode(cx)?.metadata(cx).size;
                let left = size.saturating_sub(open.offset.load(Ordering::Relaxed));
                me.memory(cx)?.write(argument.output::<i32>(), &(left.min(i32::MAX as u64) as i32))?;
            }
            FS_IOC_GETFLAGS => {
                let flags = inode_flags::get(&*open.inode(cx)?)?;
                me.memory(cx)?.write(argument.output::<u32>(), &flags)?;
            }
            FS_IOC_SETFLAGS => {
                let flags = me.memory(cx)?.read(argument.input::<u32>())?;
                let path = open.location.path(cx)?;
                inode_flags::set(&path.mount, &path.inode, flags, me, cx)?;
            }
            FICLONE => return Err(refuse_clone(argument.value() as i32, &open, me, cx)?.into()),
            FICLONERANGE => {
                let source = me.memory(cx)?.read(argument.input::<i64>())?;
                return Err(refuse_clone(source as i32, &open, me, cx)?.into());
            }
            _ => {
                return match file_owner::ioctl(&open, request, argument, me, cx)? {
                    Some(done) => Ok(done),
                    None => open.file.ioctl(request, argument, me, cx),
                };
            }
        }
        Ok(0)
    })
}

/// EXT4_IOC_SHUTDOWN, which XFS began with as XFS_IOC_GOINGDOWN.
fn shut_down_async(cx: &mut Cx, me: &mut Current, name: WeakRc<OpenFile>, flag: UserIn<u32>) -> Result<usize> {
    let mut number = None;
    complete_async(cx, me, Patience::Forever, |cx, me, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let inode = open.inode(cx)?;
        if open.flags().contains(OpenFlags::PATH) {
            return Err(Errno::EBADF.into());
        }
        if !inode.file_system.get(cx).can_be_shut_down(cx) {
            return Err(Errno::ENOTTY.into());
        }
        if !Subject::of(me, cx)?.has(Capability::SysAdmin) {
            return Err(Errno::EPERM.into());
        }
        let first = match me.memory(cx)?.read(flag)? {
            // EXT4_GOING_FLAGS_DEFAULT, EXT4_GOING_FLAGS_LOGFLUSH and EXT4_GOING_FLAGS_NOLOGFLUSH of Linux's fs/ext4/ext4.h.
            0 => WrittenFirst::All,
            1 => WrittenFirst::Changes,
            2 => WrittenFirst::Nothing,
            _ => return Err(Errno::EINVAL.into()),
        };
        inode.file_system.get(cx).shut_down(first, &mut number, waker, cx)?;
        Ok(0)
    })
}

/// Why a file cannot become a clone of another that shares its blocks: at the latest because no file system here can do that.
fn refuse_clone(source: i32, target: &OpenFile, me: &Current, cx: &Cx) -> Result<Errno> {
    let source = me.files(cx)?.get(source, cx)?;
    let (from, to) = (source.inode(cx)?, target.inode(cx)?);
    if from.file_system.downgrade() != to.file_system.downgrade() {
        return Err(Errno::EXDEV);
    }
    if from.kind == FileKind::Directory || to.kind == FileKind::Directory {
        return Err(Errno::EISDIR);
    }
    if from.kind != FileKind::Regular || to.kind != FileKind::Regular {
        return Err(Errno::EINVAL);
    }
    if !source.flags().can_read() || !target.flags().can_write() || target.flags().contains(OpenFlags::APPEND) {
        return Err(Errno::EBADF);
    }
    Ok(Errno::EOPNOTSUPP)
}

//! mmap(2) and its family.

use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Prot, USER_END};
use linux_raw_sys::general as abi;
use refs::StrongRc;

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::OpenFlags;
use crate::memory::{
    Advice, AreaFlags, LOWEST, Limits, Lock, Mappable, Mapping, Move, Object, Place, SharedMemory, Shown,
};
use crate::step::Step;

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_mmap, "mmap", Call::Step(mmap), "MAP_HUGETLB"),
    Entry::new(abi::__NR_munmap, "munmap", Call::Step(munmap)),
    Entry::partial(abi::__NR_mprotect, "mprotect", Call::Step(mprotect), "PROT_GROWSDOWN"),
    Entry::new(abi::__NR_mremap, "mremap", Call::Step(mremap)),
    Entry::new(abi::__NR_brk, "brk", Call::Step(brk)),
    Entry::partial(abi::__NR_madvise, "madvise", Call::Step(madvise), "MADV_REMOVE; hints are checked and not used"),
    Entry::new(abi::__NR_mincore, "mincore", Call::Step(mincore)),
    Entry::new(abi::__NR_msync, "msync", Call::Step(msync)),
    Entry::new(abi::__NR_mlock, "mlock", Call::Step(mlock)),
    Entry::new(abi::__NR_mlock2, "mlock2", Call::Step(mlock2)),
    Entry::new(abi::__NR_munlock, "munlock", Call::Step(munlock)),
    Entry::partial(abi::__NR_mlockall, "mlockall", Call::Step(mlockall), "MCL_FUTURE"),
    Entry::new(abi::__NR_munlockall, "munlockall", Call::Step(munlockall)),
];

/// The protection of a PROT_ mask. Unknown bits do not count, as on Linux.
fn prot(bits: usize) -> Prot {
    let mut prot = Prot::empty();
    prot.set(Prot::READ, bits & abi::PROT_READ as usize != 0);
    prot.set(Prot::WRITE, bits & abi::PROT_WRITE as usize != 0);
    prot.set(Prot::EXECUTE, bits & abi::PROT_EXEC as usize != 0);
    prot
}

fn limits(me: &Current, cx: &Cx) -> Result<Limits> {
    let thread = me.thread(cx)?;
    Ok(Limits { address_space: thread.limit(abi::RLIMIT_AS, cx).0, data: thread.limit(abi::RLIMIT_DATA, cx).0 })
}

/// How much the caller may lock, in bytes.
fn lock_limit(me: &Current, cx: &Cx) -> Result<u64> {
    let thread = me.thread(cx)?;
    let is_unlimited = thread.credentials.lock(cx).has(Capability::IpcLock);
    Ok(if is_unlimited { u64::MAX } else { thread.limit(abi::RLIMIT_MEMLOCK, cx).0 })
}

fn mmap(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let Args([address, len, prot_bits, flags, _, offset]) = *args;
    let flags = flags as u32;
    let prot = prot(prot_bits);
    if offset % PAGE_SIZE != 0 || len == 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut area_flags = AreaFlags::empty();
    match flags & abi::MAP_TYPE {
        abi::MAP_PRIVATE => {}
        abi::MAP_SHARED => area_flags |= AreaFlags::SHARED,
        abi::MAP_SHARED_VALIDATE if flags & abi::MAP_SYNC != 0 => return Err(Errno::EOPNOTSUPP.into()),
        abi::MAP_SHARED_VALIDATE => area_flags |= AreaFlags::SHARED,
        _ => return Err(Errno::EINVAL.into()),
    }
    let is_shared = area_flags.contains(AreaFlags::SHARED);
    area_flags.set(AreaFlags::GROWS_DOWN, flags & abi::MAP_GROWSDOWN != 0 && !is_shared);
    area_flags.set(AreaFlags::NO_RESERVE, flags & abi::MAP_NORESERVE != 0);
    area_flags.set(AreaFlags::LOCKED, flags & abi::MAP_LOCKED != 0);
    if flags & abi::MAP_HUGETLB != 0 && flags & abi::MAP_ANONYMOUS != 0 {
        // There is no pool of huge pages.
        return Err(Errno::ENOMEM.into());
    }
    let place = if flags & abi::MAP_FIXED_NOREPLACE != 0 {
        Place::FixedFree(address)
    } else if flags & abi::MAP_FIXED != 0 {
        Place::Fixed(address)
    } else {
        Place::Hint(address)
    };
    if !matches!(place, Place::Hint(_)) && address < LOWEST && !me.has(Capability::SysRawio, cx) {
        return Err(Errno::EPERM.into());
    }
    let (shown, limit) = if flags & abi::MAP_ANONYMOUS != 0 {
        (anonymous(len, is_shared)?, Prot::all())
    } else {
        shown_file(cx, me, args.int(4), prot, is_shared, len, offset)?
    };
    let space = me.space(cx)?;
    let start = space.map(Mapping { place, len, prot, limit, flags: area_flags, shown }, limits(me, cx)?, cx)?;
    let populate =
        (flags & abi::MAP_POPULATE != 0 && flags & abi::MAP_NONBLOCK == 0) || area_flags.contains(AreaFlags::LOCKED);
    if populate {
        // What cannot be brought in now faults later.
        let _ = space.populate(start..start + len.next_multiple_of(PAGE_SIZE), cx);
    }
    Ok(start)
}

fn anonymous(len: usize, is_shared: bool) -> Result<Shown> {
    if !is_shared {
        return Ok(Shown::Anonymous);
    }
    let pages = len.div_ceil(PAGE_SIZE);
    if len > USER_END || pages > frame::mm::frame_count() {
        return Err(Errno::ENOMEM);
    }
    crate::memory::admit()?;
    let memory = StrongRc::new(SharedMemory::new(pages as u64));
    Ok(Shown::Object { object: Object::Memory(memory), first: 0 })
}

/// What a file's mapping shows, and what it may allow.
fn shown_file(
    cx: &Cx,
    me: &Current,
    fd: i32,
    prot: Prot,
    is_shared: bool,
    len: usize,
    offset: usize,
) -> Result<(Shown, Prot)> {
    let file = me.files(cx)?.get(fd, cx)?;
    let flags = file.flags();
    let may_write = flags.intersects(OpenFlags::WRITE_ONLY | OpenFlags::READ_WRITE);
    if flags.contains(OpenFlags::WRITE_ONLY) || (is_shared && prot.contains(Prot::WRITE) && !may_write) {
        return Err(Errno::EACCES);
    }
    let limit = if is_shared && !may_write { Prot::all() - Prot::WRITE } else { Prot::all() };
    match file.file.mappable(cx) {
        Mappable::No => Err(Errno::ENODEV),
        Mappable::Zeros => Ok((anonymous(len, is_shared)?, Prot::all())),
        Mappable::Pages(pages) => {
            // The file must be no longer than its offsets can count.
            offset.checked_add(len).filter(|&end| end <= i64::MAX as usize).ok_or(Errno::EOVERFLOW)?;
            pages.mapped().store(true, core::sync::atomic::Ordering::Release);
            let object = Object::File(file.share().ok_or(Errno::EBADF)?);
            Ok((Shown::Object { object, first: (offset / PAGE_SIZE) as u64 }, limit))
        }
    }
}

fn munmap(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    me.space(cx)?.unmap(args.long(0), args.long(1), cx)?;
    Ok(0)
}

fn mprotect(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let known = abi::PROT_READ | abi::PROT_WRITE | abi::PROT_EXEC | abi::PROT_SEM;
    if args.long(2) & !(known as usize) != 0 {
        return Err(Errno::EINVAL.into());
    }
    me.space(cx)?.protect(args.long(0), args.long(1), prot(args.long(2)), limits(me, cx)?, cx)?;
    Ok(0)
}

fn mremap(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let Args([old, old_len, new_len, flags, target, _]) = *args;
    let known = abi::MREMAP_MAYMOVE | abi::MREMAP_FIXED | abi::MREMAP_DONTUNMAP;
    let flags = u32::try_from(flags).map_err(|_| Errno::EINVAL)?;
    let may_move = flags & abi::MREMAP_MAYMOVE != 0;
    let keep_old = flags & abi::MREMAP_DONTUNMAP != 0;
    let is_fixed = flags & abi::MREMAP_FIXED != 0;
    if flags & !known != 0 || ((is_fixed || keep_old) && !may_move) {
        return Err(Errno::EINVAL.into());
    }
    let movement = match (is_fixed, may_move) {
        (true, _) => Move::To(target),
        (false, true) => Move::May,
        (false, false) => Move::Never,
    };
    Ok(me.space(cx)?.remap((old, old_len), new_len, movement, keep_old, limits(me, cx)?, cx)?)
}

fn brk(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Ok(me.space(cx)?.set_break(args.long(0), limits(me, cx)?, cx))
}

fn madvise(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let advice = match args.int(2) as u32 {
        abi::MADV_NORMAL
        | abi::MADV_RANDOM
        | abi::MADV_SEQUENTIAL
        | abi::MADV_WILLNEED
        | abi::MADV_MERGEABLE
        | abi::MADV_UNMERGEABLE
        | abi::MADV_HUGEPAGE
        | abi::MADV_NOHUGEPAGE
        | abi::MADV_DONTDUMP
        | abi::MADV_DODUMP
        | abi::MADV_COLD
        | abi::MADV_PAGEOUT => Advice::Nothing,
        abi::MADV_DONTNEED => Advice::DropPages,
        abi::MADV_FREE => Advice::Free,
        abi::MADV_DONTFORK => Advice::Set(AreaFlags::DONT_FORK),
        abi::MADV_DOFORK => Advice::Clear(AreaFlags::DONT_FORK),
        abi::MADV_WIPEONFORK => Advice::Set(AreaFlags::WIPE_ON_FORK),
        abi::MADV_KEEPONFORK => Advice::Clear(AreaFlags::WIPE_ON_FORK),
        abi::MADV_POPULATE_READ => Advice::Populate(Access::Read),
        abi::MADV_POPULATE_WRITE => Advice::Populate(Access::Write),
        abi::MADV_REMOVE => return Err(Errno::EOPNOTSUPP.into()),
        _ => return Err(Errno::EINVAL.into()),
    };
    me.space(cx)?.advise(args.long(0), args.long(1), advice, cx)?;
    Ok(0)
}

fn mincore(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let Args([address, len, to, ..]) = *args;
    let space = me.space(cx)?;
    // In pieces: the length is the caller's.
    const PIECE: usize = 1024 * PAGE_SIZE;
    if address % PAGE_SIZE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut done = 0;
    while done < len {
        let at = address.checked_add(done).ok_or(Errno::ENOMEM)?;
        let residency: Vec<u8> = space.residency(at, (len - done).min(PIECE), cx)?;
        me.memory(cx)?.write_bytes(to.wrapping_add(done / PAGE_SIZE), &residency)?;
        done = done.saturating_add(PIECE);
    }
    Ok(0)
}

fn msync(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(2) as u32;
    let both = abi::MS_SYNC | abi::MS_ASYNC;
    if flags & !(both | abi::MS_INVALIDATE) != 0 || flags & both == both {
        return Err(Errno::EINVAL.into());
    }
    me.space(cx)?.synchronise(args.long(0), args.long(1), flags & abi::MS_INVALIDATE != 0, cx)?;
    Ok(0)
}

fn mlock(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    lock(cx, me, args, Lock::Now)
}

fn mlock2(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    match args.int(2) as u32 {
        0 => lock(cx, me, args, Lock::Now),
        abi::MLOCK_ONFAULT => lock(cx, me, args, Lock::OnFault),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn munlock(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    lock(cx, me, args, Lock::Off)
}

fn lock(cx: &Cx, me: &Current, args: &Args, lock: Lock) -> Step<usize> {
    let limit = lock_limit(me, cx)?;
    if lock != Lock::Off && limit == 0 {
        return Err(Errno::EPERM.into());
    }
    me.space(cx)?.lock_pages(args.long(0), args.long(1), lock, limit, cx)?;
    Ok(0)
}

fn mlockall(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(0) as u32;
    let known = abi::MCL_CURRENT | abi::MCL_FUTURE | abi::MCL_ONFAULT;
    if flags == 0 || flags & !known != 0 || flags == abi::MCL_ONFAULT {
        return Err(Errno::EINVAL.into());
    }
    let limit = lock_limit(me, cx)?;
    if limit == 0 {
        return Err(Errno::EPERM.into());
    }
    if flags & abi::MCL_CURRENT != 0 {
        let lock = if flags & abi::MCL_ONFAULT != 0 { Lock::OnFault } else { Lock::Now };
        me.space(cx)?.lock_all(lock, limit, cx)?;
    }
    Ok(0)
}

fn munlockall(cx: &Cx, me: &Current, _args: &Args) -> Step<usize> {
    me.space(cx)?.lock_all(Lock::Off, u64::MAX, cx)?;
    Ok(0)
}

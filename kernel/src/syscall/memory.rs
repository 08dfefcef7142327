//! mmap(2) and its family.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Prot, USER_END};
use linux_raw_sys::general as abi;
use refs::{StrongRc, TempRc};

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{InodeFlags, OpenFile, OpenFlags};
use crate::memory::overcommit::{self, Privilege};
use crate::memory::{
    Advice, Advise, Backing, BackingObject, BadAccess, Durability, LOWEST, Limits, Lock, Map, Mappable, Mapping, Move,
    Origin, Placement, Populate, Protect, Remap, SetBreak, SetLock, SharedMemory, Synchronise, Unmap, VmaFlags,
    WritableMappings, page_range,
};
use crate::step::{Interruption, Patience, Stop, TimeSlice, complete_async, complete_in_turn_async};
use crate::user_memory::UserIn;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_mmap, "mmap", Call::Async(mmap_async), "MAP_HUGETLB"),
    Entry::new(abi::__NR_munmap, "munmap", Call::Async(munmap_async)),
    Entry::partial(abi::__NR_mprotect, "mprotect", Call::Async(mprotect_async), "PROT_GROWSDOWN"),
    Entry::new(abi::__NR_mremap, "mremap", Call::Async(mremap_async)),
    Entry::new(abi::__NR_brk, "brk", Call::Async(brk_async)),
    Entry::partial(
        abi::__NR_madvise,
        "madvise",
        Call::Async(madvise_async),
        "hints are checked and not used; MADV_MERGEABLE and MADV_HWPOISON",
    ),
    Entry::new(abi::__NR_mincore, "mincore", Call::Async(mincore_async)),
    Entry::new(abi::__NR_msync, "msync", Call::Async(msync_async)),
    Entry::new(abi::__NR_mlock, "mlock", Call::Async(mlock_async)),
    Entry::new(abi::__NR_mlock2, "mlock2", Call::Async(mlock2_async)),
    Entry::new(abi::__NR_munlock, "munlock", Call::Async(munlock_async)),
    Entry::new(abi::__NR_mlockall, "mlockall", Call::Async(mlockall_async)),
    Entry::new(abi::__NR_munlockall, "munlockall", Call::Async(munlockall_async)),
];

/// The protection of a PROT_ mask. Unknown bits do not count, as on Linux.
fn prot(bits: usize) -> Prot {
    let mut prot = Prot::empty();
    prot.set(Prot::READ, bits & abi::PROT_READ as usize != 0);
    prot.set(Prot::WRITE, bits & abi::PROT_WRITE as usize != 0);
    prot.set(Prot::EXECUTE, bits & abi::PROT_EXEC as usize != 0);
    prot
}

#[inline(always)]
pub(super) fn limits(me: &Current, cx: &Cx) -> Result<Limits> {
    let process = me.process(cx)?;
    let (address_space, data) = {
        let limits = process.limits.lock(cx);
        (limits.soft(abi::RLIMIT_AS), limits.soft(abi::RLIMIT_DATA))
    };
    Ok(Limits { address_space, data, privilege: privilege(me, cx)? })
}

/// Which promises the caller may have; it is asked for only where that matters.
#[inline(always)]
fn privilege(me: &Current, cx: &Cx) -> Result<Privilege> {
    let is_administrator = overcommit::policy() == overcommit::Policy::Never && me.has(Capability::SysAdmin, cx);
    Ok(if is_administrator { Privilege::Administrator } else { Privilege::None })
}

/// How much the caller may lock, in bytes.
#[cold]
#[inline(never)]
fn lock_limit(me: &Current, cx: &Cx) -> Result<u64> {
    let thread = me.thread(cx)?;
    let is_unlimited = thread.credentials.lock(cx).has(Capability::IpcLock);
    Ok(if is_unlimited { u64::MAX } else { thread.limit(abi::RLIMIT_MEMLOCK, cx).0 })
}

/// A hint that all mappings above 4 GiB follow.
const MAP_ABOVE4G: u32 = 0x80;

/// The flags that MAP_SHARED_VALIDATE knows: those that are older than it.
const OLD_MAP_FLAGS: u32 = abi::MAP_TYPE
    | abi::MAP_FIXED
    | abi::MAP_ANONYMOUS
    | abi::MAP_DENYWRITE
    | abi::MAP_EXECUTABLE
    | abi::MAP_UNINITIALIZED
    | abi::MAP_GROWSDOWN
    | abi::MAP_LOCKED
    | abi::MAP_NORESERVE
    | abi::MAP_POPULATE
    | abi::MAP_NONBLOCK
    | abi::MAP_STACK
    | abi::MAP_HUGETLB
    | abi::MAP_32BIT
    | MAP_ABOVE4G
    | abi::MAP_HUGE_2MB
    | abi::MAP_HUGE_1GB;

fn mmap_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let map = begin_map(cx, me, args)?;
    map_async(cx, me, map, args.long(1), args.int(3) as u32)
}

/// Maps so many bytes, and brings them in if `flags` or what is locked say so.
#[inline(always)]
pub(super) fn map_async(cx: &mut Cx, me: &mut Current, mut map: Map, len: usize, flags: u32) -> Result<usize> {
    let start = complete_in_turn_async(cx, me, |cx, me, waker| {
        let space = me.space(cx)?;
        let mut lock = space.later_flags();
        let was_locked = !core::mem::replace(&mut map.later, lock).is_empty();
        if flags & abi::MAP_LOCKED != 0 {
            lock |= VmaFlags::LOCKED;
        }
        if !lock.is_empty() {
            map.lock(lock, lock_limit(me, cx)?);
        } else if was_locked {
            map.lock(lock, u64::MAX);
        }
        space.map_step(&mut map, waker, cx)
    })?;
    if map.brings_in || flags & (abi::MAP_POPULATE | abi::MAP_NONBLOCK) == abi::MAP_POPULATE {
        bring_in_async(cx, me, start..start + len.next_multiple_of(PAGE_SIZE));
    }
    Ok(start)
}

/// Understands the arguments of mmap(2), in Linux's order.
#[inline(always)]
fn begin_map(cx: &Cx, me: &Current, args: &Args) -> Result<Map> {
    let Args([address, len, prot_bits, flags, _, offset]) = *args;
    let flags = flags as u32;
    let prot = prot(prot_bits);
    let is_anonymous = flags & abi::MAP_ANONYMOUS != 0;
    if offset % PAGE_SIZE != 0 {
        return Err(Errno::EINVAL);
    }
    let file = if is_anonymous { None } else { Some(me.files(cx)?.get(args.int(4), cx)?) };
    if file.as_ref().is_some_and(|file| file.flags().contains(OpenFlags::PATH)) {
        return Err(Errno::EBADF);
    }
    if len == 0 {
        return Err(Errno::EINVAL);
    }
    let is_shared = match flags & abi::MAP_TYPE {
        abi::MAP_PRIVATE => false,
        abi::MAP_SHARED => true,
        abi::MAP_SHARED_VALIDATE if is_anonymous => return Err(Errno::EINVAL),
        abi::MAP_SHARED_VALIDATE if flags & !OLD_MAP_FLAGS != 0 => return Err(Errno::EOPNOTSUPP),
        abi::MAP_SHARED_VALIDATE => true,
        abi::MAP_DROPPABLE
            if is_anonymous && flags & (abi::MAP_LOCKED | abi::MAP_HUGETLB | abi::MAP_GROWSDOWN) == 0 =>
        {
            false
        }
        _ => return Err(Errno::EINVAL),
    };
    if flags & abi::MAP_HUGETLB != 0 && is_anonymous {
        // There is no pool of huge pages.
        return Err(Errno::ENOMEM);
    }
    let may_overcommit = flags & abi::MAP_NORESERVE != 0 && overcommit::policy() != overcommit::Policy::Never;
    let mut vma_flags = VmaFlags::empty();
    vma_flags.set(VmaFlags::SHARED, is_shared);
    vma_flags.set(VmaFlags::GROWS_DOWN, flags & abi::MAP_GROWSDOWN != 0 && !is_shared);
    vma_flags.set(VmaFlags::NO_RESERVE, may_overcommit);
    if flags & abi::MAP_TYPE == abi::MAP_DROPPABLE {
        vma_flags |= VmaFlags::DROPPABLE | VmaFlags::NO_RESERVE | VmaFlags::WIPE_ON_FORK | VmaFlags::DONT_DUMP;
    }
    let place = if flags & abi::MAP_FIXED_NOREPLACE != 0 {
        Placement::FixedFree(address)
    } else if flags & abi::MAP_FIXED != 0 {
        Placement::Fixed(address)
    } else {
        Placement::Hint(address)
    };
    if !matches!(place, Placement::Hint(_)) && address < LOWEST && !me.has(Capability::SysRawio, cx) {
        return Err(Errno::EPERM);
    }
    let limits = limits(me, cx)?;
    if flags & abi::MAP_LOCKED != 0 && lock_limit(me, cx)? == 0 {
        return Err(Errno::EPERM);
    }
    let (backing, limit) = match file {
        None if !is_shared => (Backing::Anonymous, Prot::all()),
        None => (anonymous(len, is_shared, !may_overcommit, limits.privilege)?, Prot::all()),
        Some(file) => {
            let anonymous = || anonymous(len, is_shared, !may_overcommit, limits.privilege);
            shown_file(cx, &file, prot, is_shared, anonymous, len, offset)?
        }
    };
    Map::new(Mapping { place, len, prot, limit, flags: vma_flags, backing }, limits)
}

fn anonymous(len: usize, is_shared: bool, is_accounted: bool, privilege: Privilege) -> Result<Backing> {
    if !is_shared {
        return Ok(Backing::Anonymous);
    }
    if len > USER_END {
        return Err(Errno::ENOMEM);
    }
    crate::memory::admit()?;
    let memory = StrongRc::new(SharedMemory::new(len.div_ceil(PAGE_SIZE) as u64, is_accounted, privilege)?);
    Ok(Backing::Object { object: memory.unsize(|memory| memory), first: 0 })
}

/// What a file's mapping shows, and what it may allow.
#[inline(never)]
fn shown_file(
    cx: &Cx,
    file: &TempRc<'_, OpenFile>,
    prot: Prot,
    is_shared: bool,
    anonymous: impl FnOnce() -> Result<Backing>,
    len: usize,
    offset: usize,
) -> Result<(Backing, Prot)> {
    let flags = file.flags();
    let may_write = flags.intersects(OpenFlags::WRITE_ONLY | OpenFlags::READ_WRITE);
    if flags.contains(OpenFlags::WRITE_ONLY) || (is_shared && prot.contains(Prot::WRITE) && !may_write) {
        return Err(Errno::EACCES);
    }
    if is_shared && may_write && file.inode(cx)?.flags().contains(InodeFlags::APPEND) {
        return Err(Errno::EACCES);
    }
    let mut limit = if is_shared && !may_write { Prot::all() - Prot::WRITE } else { Prot::all() };
    match file.file.mappable(cx) {
        Mappable::No => Err(Errno::ENODEV),
        Mappable::Zeros => Ok((anonymous()?, limit)),
        Mappable::ReadOnly(_) if is_shared && prot.contains(Prot::WRITE) => Err(Errno::ENODEV),
        mappable @ (Mappable::Pages(pages) | Mappable::ReadOnly(pages)) => {
            if is_shared && matches!(mappable, Mappable::ReadOnly(_)) {
                limit -= Prot::WRITE;
            }
            // The file must be no longer than its offsets can count.
            offset.checked_add(len).filter(|&end| end <= i64::MAX as usize).ok_or(Errno::EOVERFLOW)?;
            let seals = if is_shared { seals(file, cx) } else { abi::F_SEAL_SEAL };
            if seals & (abi::F_SEAL_WRITE | abi::F_SEAL_FUTURE_WRITE) != 0 {
                if prot.contains(Prot::WRITE) {
                    return Err(Errno::EPERM);
                }
                limit -= Prot::WRITE;
            }
            pages.mapped().note();
            let mut object: StrongRc<dyn BackingObject> = file.share().ok_or(Errno::EBADF)?.unsize(|file| file);
            if seals & abi::F_SEAL_SEAL == 0 && limit.contains(Prot::WRITE) {
                object = WritableMappings::of(pages.mapped(), object, cx);
            }
            Ok((Backing::Object { object, first: (offset / PAGE_SIZE) as u64 }, limit))
        }
    }
}

/// The seals of a file (fcntl(2), "File Sealing"); one that has none can get none.
fn seals(file: &OpenFile, cx: &Cx) -> u32 {
    let seals = file.inode(cx).ok().and_then(|inode| Some(inode.ops.seals()?.load(Ordering::Relaxed)));
    seals.unwrap_or(abi::F_SEAL_SEAL)
}

/// Brings in pages that have just been mapped, if there are any. What cannot be brought in now faults later.
fn bring_in_async(cx: &mut Cx, me: &mut Current, range: Range<usize>) {
    if !range.is_empty() {
        let _ = populate_async(cx, me, range, Populate::AsAllowed);
    }
}

/// Brings pages in.
///
/// # Errors
/// The first page that cannot be brought in; EINTR.
fn populate_async(
    cx: &mut Cx,
    me: &mut Current,
    mut range: Range<usize>,
    populate: Populate,
) -> core::result::Result<Result<()>, BadAccess> {
    let mut bad = None;
    let result = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        me.space(cx)?.populate_step(&mut range, populate, cx).unwrap_or_else(|reason| {
            if let BadAccess::Absent(absent) = reason {
                return Err(Stop::Absent(absent));
            }
            // If it is the group's memory that is full a program is ended for it, and this goes on.
            let is_over_limit = reason == BadAccess::NoMemory && crate::process::oom::is_group_full(me, cx);
            bad = (!is_over_limit).then_some(reason);
            if is_over_limit { Err(Stop::NoMemory) } else { Ok(()) }
        })
    });
    match bad {
        Some(reason) => Err(reason),
        None => Ok(result),
    }
}

fn munmap_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let range = page_range(args.long(0), args.long(1), Errno::EINVAL)?;
    if range.is_empty() {
        return Err(Errno::EINVAL);
    }
    if me.space(cx)?.unmap_little(&range, cx) { Ok(0) } else { unmap_async(cx, me, range) }
}

#[cold]
pub(super) fn unmap_async(cx: &mut Cx, me: &mut Current, range: Range<usize>) -> Result<usize> {
    let mut unmap = Unmap::new(range);
    complete_in_turn_async(cx, me, |cx, me, waker| me.space(cx)?.unmap_step(&mut unmap, waker, cx))?;
    Ok(0)
}

fn mprotect_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let known = abi::PROT_READ | abi::PROT_WRITE | abi::PROT_EXEC | abi::PROT_SEM;
    if args.long(2) & !(known as usize) != 0 {
        return Err(Errno::EINVAL);
    }
    let mut protect = Protect::new(args.long(0), args.long(1), prot(args.long(2)), limits(me, cx)?)?;
    complete_in_turn_async(cx, me, |cx, me, waker| me.space(cx)?.protect_step(&mut protect, waker, cx))?;
    Ok(0)
}

fn mremap_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let Args([old, old_len, new_len, flags, target, _]) = *args;
    let known = abi::MREMAP_MAYMOVE | abi::MREMAP_FIXED | abi::MREMAP_DONTUNMAP;
    let flags = u32::try_from(flags).map_err(|_| Errno::EINVAL)?;
    let may_move = flags & abi::MREMAP_MAYMOVE != 0;
    let is_kept = flags & abi::MREMAP_DONTUNMAP != 0;
    let is_fixed = flags & abi::MREMAP_FIXED != 0;
    if flags & !known != 0 || ((is_fixed || is_kept) && !may_move) {
        return Err(Errno::EINVAL);
    }
    let movement = match (is_fixed, may_move) {
        (true, _) => Move::To(target),
        (false, true) => Move::May,
        (false, false) => Move::Never,
    };
    let origin = if is_kept { Origin::Kept } else { Origin::Unmapped };
    let (limits, lock_limit) = (limits(me, cx)?, lock_limit(me, cx)?);
    let mut remap = Remap::new((old, old_len), new_len, movement, origin, limits, lock_limit)?;
    let address = complete_in_turn_async(cx, me, |cx, me, waker| me.space(cx)?.remap_step(&mut remap, waker, cx))?;
    bring_in_async(cx, me, remap.to_bring_in(address));
    Ok(address)
}

fn brk_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    if let Some(end) = me.space(cx)?.set_break_at_once(args.long(0), cx) {
        return Ok(end);
    }
    let mut call = SetBreak::new(args.long(0), limits(me, cx)?);
    let end = complete_in_turn_async(cx, me, |cx, me, waker| {
        let space = me.space(cx)?;
        let later = space.later_flags();
        if !call.expects(later) {
            call.lock(later, if later.is_empty() { u64::MAX } else { lock_limit(me, cx)? });
        }
        space.set_break_step(&mut call, waker, cx)
    })?;
    bring_in_async(cx, me, call.to_bring_in());
    Ok(end)
}

fn madvise_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let advice = match args.int(2) as u32 {
        abi::MADV_NORMAL
        | abi::MADV_RANDOM
        | abi::MADV_SEQUENTIAL
        | abi::MADV_WILLNEED
        | abi::MADV_HUGEPAGE
        | abi::MADV_NOHUGEPAGE
        | abi::MADV_COLD
        | abi::MADV_PAGEOUT => Advice::Nothing,
        abi::MADV_DONTNEED => Advice::DropPages,
        abi::MADV_FREE => Advice::Free,
        abi::MADV_DONTFORK => Advice::Set(VmaFlags::DONT_FORK),
        abi::MADV_DOFORK => Advice::Clear(VmaFlags::DONT_FORK),
        abi::MADV_WIPEONFORK => Advice::Set(VmaFlags::WIPE_ON_FORK),
        abi::MADV_KEEPONFORK => Advice::Clear(VmaFlags::WIPE_ON_FORK),
        abi::MADV_DONTDUMP => Advice::Set(VmaFlags::DONT_DUMP),
        abi::MADV_DODUMP => Advice::Clear(VmaFlags::DONT_DUMP),
        abi::MADV_REMOVE => Advice::Remove,
        abi::MADV_POPULATE_READ => return populate_for_async(cx, me, args, Access::Read),
        abi::MADV_POPULATE_WRITE => return populate_for_async(cx, me, args, Access::Write),
        // Among them MADV_MERGEABLE, as on a Linux without KSM.
        _ => return Err(Errno::EINVAL),
    };
    let mut advise = Advise::new(args.long(0), args.long(1), advice)?;
    complete_in_turn_async(cx, me, |cx, me, waker| me.space(cx)?.advise_step(&mut advise, waker, cx))?;
    Ok(0)
}

fn populate_for_async(cx: &mut Cx, me: &mut Current, args: &Args, access: Access) -> Result<usize> {
    let range = page_range(args.long(0), args.long(1), Errno::EINVAL)?;
    match populate_async(cx, me, range, Populate::For(access)) {
        Ok(done) => done.map(|()| 0),
        Err(BadAccess::NotMapped | BadAccess::NoMemory) => Err(Errno::ENOMEM),
        Err(BadAccess::NotAllowed) => Err(Errno::EINVAL),
        Err(BadAccess::BeyondFile | BadAccess::Absent(_)) => Err(Errno::EFAULT),
    }
}

fn mincore_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (address, len) = (args.long(0), args.long(1));
    // In pieces: the length is the caller's.
    const PIECE: usize = 1024 * PAGE_SIZE;
    if address % PAGE_SIZE != 0 {
        return Err(Errno::EINVAL);
    }
    UserIn::<u8>::new(address).buffer(len).map_err(|_| Errno::ENOMEM)?;
    let to = args.output::<u8>(2).buffer(len.div_ceil(PAGE_SIZE))?;
    let mut done = 0;
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let mut time_slice = TimeSlice::default();
        while done < len {
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
            let at = address.checked_add(done).ok_or(Errno::ENOMEM)?;
            let residency: Vec<u8> = me.space(cx)?.residency(at, (len - done).min(PIECE), cx)?;
            me.memory(cx)?.write_slice(to.behind(done / PAGE_SIZE).slice(), &residency)?;
            done = done.saturating_add(PIECE);
        }
        Ok(0)
    })
}

fn msync_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(2) as u32;
    let both = abi::MS_SYNC | abi::MS_ASYNC;
    if flags & !(both | abi::MS_INVALIDATE) != 0 || flags & both == both {
        return Err(Errno::EINVAL);
    }
    let durability = if flags & abi::MS_SYNC != 0 { Durability::Waited } else { Durability::Left };
    let mut call = Synchronise::new(args.long(0), args.long(1), flags & abi::MS_INVALIDATE != 0, durability)?;
    complete_async(cx, me, Patience::Forever, |cx, me, waker| me.space(cx)?.synchronise_step(&mut call, waker, cx))?;
    Ok(0)
}

fn mlock_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    lock_async(cx, me, args, Lock::Now)
}

fn mlock2_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    match args.int(2) as u32 {
        0 => lock_async(cx, me, args, Lock::Now),
        abi::MLOCK_ONFAULT => lock_async(cx, me, args, Lock::OnFault),
        _ => Err(Errno::EINVAL),
    }
}

fn munlock_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    lock_async(cx, me, args, Lock::Off)
}

fn lock_async(cx: &mut Cx, me: &mut Current, args: &Args, lock: Lock) -> Result<usize> {
    let limit = lock_limit(me, cx)?;
    if lock != Lock::Off && limit == 0 {
        return Err(Errno::EPERM);
    }
    let mut call = SetLock::new(args.long(0), args.long(1), lock, limit)?;
    let range = call.range();
    complete_in_turn_async(cx, me, |cx, me, waker| me.space(cx)?.lock_step(&mut call, waker, cx))?;
    if lock == Lock::Now {
        match populate_async(cx, me, range, Populate::AsAllowed) {
            Ok(done) => done?,
            Err(BadAccess::NoMemory) => return Err(Errno::EAGAIN),
            Err(_) => return Err(Errno::ENOMEM),
        }
    }
    Ok(0)
}

fn mlockall_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let flags = args.int(0) as u32;
    let known = abi::MCL_CURRENT | abi::MCL_FUTURE | abi::MCL_ONFAULT;
    if flags == 0 || flags & !known != 0 || flags == abi::MCL_ONFAULT {
        return Err(Errno::EINVAL);
    }
    let limit = lock_limit(me, cx)?;
    if limit == 0 {
        return Err(Errno::EPERM);
    }
    let lock = if flags & abi::MCL_ONFAULT != 0 { Lock::OnFault } else { Lock::Now };
    let later = if flags & abi::MCL_FUTURE != 0 { lock } else { Lock::Off };
    if flags & abi::MCL_CURRENT == 0 {
        me.space(cx)?.lock_later(later);
        return Ok(0);
    }
    let mut call = SetLock::all(lock, later, limit);
    complete_in_turn_async(cx, me, |cx, me, waker| me.space(cx)?.lock_step(&mut call, waker, cx))?;
    if lock == Lock::OnFault {
        return Ok(0);
    }
    let mut at = 0;
    loop {
        let next = me.space(cx)?.next_range(at, cx);
        let Some(range) = next else { return Ok(0) };
        at = range.end;
        // As on Linux, what cannot be brought in is no error of mlockall; the end of the program is.
        if let Ok(done) = populate_async(cx, me, range, Populate::AsAllowed) {
            done?;
        }
    }
}

fn munlockall_async(cx: &mut Cx, me: &mut Current, _args: &Args) -> Result<usize> {
    let mut call = SetLock::all(Lock::Off, Lock::Off, u64::MAX);
    complete_in_turn_async(cx, me, |cx, me, waker| me.space(cx)?.lock_step(&mut call, waker, cx))?;
    Ok(0)
}

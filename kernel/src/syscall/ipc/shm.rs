//! shmget(2), shmat(2), shmdt(2), shmctl(2).

use core::any::Any;
use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot};
use linux_raw_sys::general as abi;
use refs::WeakRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::super::memory::{limits, map_async, unmap_async};
use super::super::{Args, Call, Entry};
use super::{IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, IpcPerm, asked, pid, who};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::ipc::shm::{self, MOST_BYTES, MOST_PAGES, SEGMENTS, Segment};
use crate::ipc::{READ, WRITE};
use crate::memory::{AddressSpace, Backing, BackingObject, Map, Mapping, Placement, VmaFlags, VmaName, VmaReport};
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async, complete_in_turn_async};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(
        abi::__NR_shmget,
        "shmget",
        Call::Async(shmget_async),
        "SHM_HUGETLB: there is no pool of huge pages",
    ),
    Entry::new(abi::__NR_shmat, "shmat", Call::Async(shmat_async)),
    Entry::new(abi::__NR_shmdt, "shmdt", Call::Async(shmdt_async)),
    Entry::partial(
        abi::__NR_shmctl,
        "shmctl",
        Call::Async(shmctl_async),
        "shm_atime, shm_dtime and shm_lpid tell of shmat and shmdt, not of what fork and the end of a process attach and detach",
    ),
];

/// Of shmget(2).
const SHM_HUGETLB: u32 = 0o4000;
const SHM_NORESERVE: u32 = 0o10000;
/// Of shmat(2).
const SHM_RDONLY: u32 = 0o10000;
const SHM_RND: u32 = 0o20000;
const SHM_REMAP: u32 = 0o40000;
const SHM_EXEC: u32 = 0o100000;
/// Of shmctl(2).
const SHM_LOCK: i32 = 11;
const SHM_UNLOCK: i32 = 12;
const SHM_STAT: i32 = 13;
const SHM_INFO: i32 = 14;
const SHM_STAT_ANY: i32 = 15;

/// `struct shmid64_ds`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ShmIdDs {
    permissions: IpcPerm,
    bytes: u64,
    attached_at: i64,
    detached_at: i64,
    changed_at: i64,
    creator: u32,
    last: u32,
    attached: u64,
    unused: [u64; 2],
}

/// `struct shminfo64`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ShmInfo64 {
    most_bytes: u64,
    least_bytes: u64,
    most: u64,
    most_each: u64,
    most_pages: u64,
    unused: [u64; 4],
}

/// `struct shm_info`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ShmInfo {
    count: i32,
    padding: i32,
    pages: u64,
    resident: u64,
    swapped: u64,
    swap_attempts: u64,
    swap_successes: u64,
}

fn shmget_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (key, bytes, flags) = (args.int(0), args.long(1), args.int(2) as u32);
    if flags & SHM_HUGETLB != 0 {
        return Err(Errno::ENOMEM);
    }
    let is_accounted = flags & SHM_NORESERVE == 0;
    let mut looked_at = 0;
    complete_in_turn_async(cx, me, |cx, me, _| {
        crate::memory::admit()?;
        let id = shm::get((key, flags), bytes, is_accounted, &who(me, cx)?, pid(me, cx)?, cx);
        if id == Err(Errno::ENOSPC) && SEGMENTS.forget_some_gone(&mut looked_at, cx) {
            return Err(Stop::Pause(Interruption::KillOnly));
        }
        Ok(id? as usize)
    })
}

fn shmat_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (id, mut address, flags) = (args.int(0), args.long(1), args.int(2) as u32);
    if !address.is_multiple_of(PAGE_SIZE) {
        if flags & SHM_RND == 0 {
            return Err(Errno::EINVAL);
        }
        address -= address % PAGE_SIZE;
    }
    let is_replaced = flags & SHM_REMAP != 0;
    if address == 0 && is_replaced {
        return Err(Errno::EINVAL);
    }
    let mut prot = Prot::READ | Prot::WRITE;
    let (mut limit, mut wanted) = (Prot::all(), READ | WRITE);
    if flags & SHM_RDONLY != 0 {
        (prot, limit, wanted) = (Prot::READ, limit - Prot::WRITE, READ);
    }
    if flags & SHM_EXEC != 0 {
        prot |= Prot::EXECUTE;
        wanted |= 1;
    }
    let segment = shm::share(id, wanted, &who(me, cx)?, cx)?;
    let (name, len) = (segment.downgrade(), segment.get(cx).bytes);
    let place = match args.long(1) {
        0 => Placement::Hint(0),
        _ if is_replaced => Placement::Fixed(address),
        _ if address.checked_add(len).is_none() => return Err(Errno::EINVAL),
        _ => Placement::FixedFree(address),
    };
    let backing = Backing::Object { object: segment.unsize(|segment| segment), first: 0 };
    let mapping = Mapping { place, len, prot, limit, flags: VmaFlags::SHARED, backing };
    let map = Map::new(mapping, limits(me, cx)?)?;
    let start =
        map_async(cx, me, map, len, 0).map_err(|error| if error == Errno::EEXIST { Errno::EINVAL } else { error })?;
    if let Ok(segment) = name.upgrade(cx) {
        segment.note_attached(pid(me, cx)?, cx);
    }
    Ok(start)
}

/// A shmdt(2) that is under way. There may be very many VMAs, so it pauses between them.
struct Detach {
    /// Where the segment begins, or would.
    address: usize,
    /// All VMAs below were looked at.
    at: usize,
    /// Which one it is, and where it would end.
    segment: Option<(WeakRc<dyn BackingObject>, usize)>,
    time_slice: TimeSlice,
}

impl Detach {
    /// The next VMA that is to go.
    fn next(&mut self, space: &AddressSpace, cx: &Cx) -> Step<Option<Range<usize>>> {
        loop {
            if self.time_slice.is_over() {
                self.time_slice = TimeSlice::default();
                return Err(Stop::Pause(Interruption::KillOnly));
            }
            let Some(vma) = space.report(self.at, cx) else { return Ok(None) };
            // One that has become longer than the segment stays.
            if self.segment.is_some_and(|(_, end)| vma.range.end > end) {
                return Ok(None);
            }
            self.at = vma.range.end;
            let Some((segment, end)) = self.shown(&vma, cx) else { continue };
            let (wanted, _) = *self.segment.get_or_insert((segment, end));
            if segment == wanted {
                return Ok(Some(vma.range));
            }
        }
    }

    /// The segment that a VMA shows as it would if that began at the address, and where that would end.
    fn shown(&self, vma: &VmaReport, cx: &Cx) -> Option<(WeakRc<dyn BackingObject>, usize)> {
        let VmaName::Object(name) = vma.name else { return None };
        if vma.range.start.checked_sub(self.address)? as u64 != vma.offset {
            return None;
        }
        let object = name.upgrade(cx).ok()?;
        let object: &dyn Any = &*object;
        Some((name, self.address + object.downcast_ref::<Segment>()?.bytes.next_multiple_of(PAGE_SIZE)))
    }
}

fn shmdt_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let address = args.long(0);
    if !address.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::EINVAL);
    }
    // What was attached there may have been unmapped in part: the first VMA of it that is left says which segment it is.
    let mut detach = Detach { address, at: address, segment: None, time_slice: TimeSlice::default() };
    while let Some(range) = complete_in_turn_async(cx, me, |cx, me, _| {
        let space = me.space(cx)?;
        detach.next(&space, cx)
    })? {
        unmap_async(cx, me, range)?;
    }
    let Some((segment, _)) = detach.segment else { return Err(Errno::EINVAL) };
    if let Ok(object) = segment.upgrade(cx) {
        let object: &dyn Any = &*object;
        if let Some(segment) = object.downcast_ref::<Segment>() {
            segment.note_detached(pid(me, cx)?, cx);
        }
    }
    Ok(0)
}

fn shmctl_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    if args.int(1) != SHM_INFO {
        return complete_async(cx, me, Patience::None, |cx, me, _| shmctl(cx, me, args));
    }
    if args.int(0) < 0 {
        return Err(Errno::EINVAL);
    }
    let (mut count, mut resident, mut from) = (0, 0, 0);
    complete_in_turn_async(cx, me, |cx, _, _| {
        let mut time_slice = TimeSlice::default();
        while let Some((place, _, segment)) = SEGMENTS.next(from, cx) {
            count += 1;
            resident += segment.resident_pages(cx) as u64;
            from = place + 1;
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    })?;
    complete_async(cx, me, Patience::None, |cx, me, _| {
        let last = SEGMENTS.last_place(cx)?;
        let answer = ShmInfo {
            count,
            padding: 0,
            pages: shm::all_pages() as u64,
            resident,
            swapped: 0,
            swap_attempts: 0,
            swap_successes: 0,
        };
        me.memory(cx)?.write(args.output::<ShmInfo>(2), &answer)?;
        Ok(last as usize)
    })
}

/// All requests but SHM_INFO.
fn shmctl(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (id, command) = (args.int(0), args.int(1));
    if id < 0 || command < 0 {
        return Err(Errno::EINVAL.into());
    }
    let memory = me.memory(cx)?;
    let who = who(me, cx)?;
    match command {
        IPC_RMID => shm::remove(id, &who, cx)?,
        IPC_SET => {
            let new = memory.read(args.input::<ShmIdDs>(2))?;
            let segment = SEGMENTS.find(id, cx)?;
            segment.set(new.permissions.owner()?, &who, cx)?;
        }
        IPC_STAT | SHM_STAT | SHM_STAT_ANY => {
            let (id, segment, result) = asked::<Segment>(id, command, cx)?;
            let status = shm::status(&segment, cx);
            if command != SHM_STAT_ANY {
                status.permissions.check(READ, &who)?;
            }
            let answer = ShmIdDs {
                permissions: IpcPerm::new(id, &status.permissions),
                bytes: status.bytes as u64,
                attached_at: status.past.attached,
                detached_at: status.past.detached,
                changed_at: status.past.changed,
                creator: status.past.creator,
                last: status.past.last,
                attached: status.attached.into(),
                unused: [0; 2],
            };
            memory.write(args.output::<ShmIdDs>(2), &answer)?;
            return Ok(result);
        }
        IPC_INFO => {
            let most = SEGMENTS.most.get();
            let answer = ShmInfo64 {
                most_bytes: MOST_BYTES.get(),
                least_bytes: 1,
                most,
                most_each: most,
                most_pages: MOST_PAGES.get(),
                unused: [0; 4],
            };
            memory.write(args.output::<ShmInfo64>(2), &answer)?;
            return Ok(SEGMENTS.last_place(cx)? as usize);
        }
        SHM_LOCK | SHM_UNLOCK => {
            let limit = me.thread(cx)?.limit(abi::RLIMIT_MEMLOCK, cx).0;
            SEGMENTS.find(id, cx)?.set_locked(command == SHM_LOCK, limit, &who, cx)?;
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

//! What changes no mapping: madvise(2), mincore(2), mlock(2), msync(2), and bringing pages in.

use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Prot, USER_END};
use refs::{StrongRc, Waker, WeakRc};

use super::backing::{Backing, BackingObject, with_pages};
use super::change::{AT_ONCE_AREAS, AT_ONCE_BYTES, Change};
use super::mmap::page_range;
use super::space::AddressSpace;
use super::vma::{Vma, VmaFlags, VmaMap};
use super::{BadAccess, Pages};
use crate::block::SyncProgress;
use crate::error::{Errno, Result};
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// Advice that has an effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// None: it is only checked that the range is mapped.
    Nothing,
    /// MADV_DONTNEED: pages may go at once; private memory is zeros or the file's again.
    DropPages,
    /// MADV_FREE: as above, for private anonymous memory only.
    Free,
    /// MADV_DONTFORK, MADV_WIPEONFORK: VMAs get a flag.
    Set(VmaFlags),
    /// MADV_DOFORK, MADV_KEEPONFORK: VMAs lose a flag.
    Clear(VmaFlags),
    /// MADV_REMOVE: pages are cut out of a shared object.
    Remove,
}

/// What mlock2(2) is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Lock, and bring all pages in.
    Now,
    /// Lock pages when they come in (MLOCK_ONFAULT).
    OnFault,
    /// Unlock.
    Off,
}

impl Lock {
    /// The flags of VMAs that are locked so.
    pub const fn flags(self) -> VmaFlags {
        match self {
            Lock::Now => VmaFlags::LOCKED,
            Lock::OnFault => VmaFlags::LOCKED.union(VmaFlags::LOCK_ON_FAULT),
            Lock::Off => VmaFlags::empty(),
        }
    }
}

/// An madvise(2) that is under way.
pub struct Advise {
    /// What is still to be advised.
    range: Range<usize>,
    advice: Advice,
    outcome: Result<()>,
    change: Change,
    /// The pages of the part that comes next are cut out of their object, but not out of all address spaces.
    is_removed: bool,
}

impl Advise {
    /// Nothing is done yet.
    ///
    /// # Errors
    /// EINVAL.
    pub fn new(address: usize, len: usize, advice: Advice) -> Result<Self> {
        let range = page_range(address, len, Errno::EINVAL)?;
        Ok(Advise { range, advice, outcome: Ok(()), change: Change::default(), is_removed: false })
    }
}

/// An msync(2) that is under way.
pub struct Synchronise {
    /// What is still to be looked at.
    range: Range<usize>,
    invalidates: bool,
    /// A part is not mapped.
    has_hole: bool,
    /// What is still to be written.
    to_write: Range<usize>,
    /// How far that is with the file whose turn it is.
    progress: SyncProgress,
}

/// Whether msync(2) returns when the devices keep what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// MS_SYNC.
    Waited,
    /// What is dirty is written by and by.
    Left,
}

impl Synchronise {
    /// Nothing is done yet.
    ///
    /// # Errors
    /// ENOMEM beyond what there can be.
    pub fn new(address: usize, len: usize, invalidates: bool, durability: Durability) -> Result<Self> {
        let range = page_range(address, len, Errno::ENOMEM)?;
        let to_write = if durability == Durability::Waited { range.clone() } else { range.end..range.end };
        Ok(Synchronise { range, invalidates, has_hole: false, to_write, progress: SyncProgress::default() })
    }
}

/// An mlock(2) or munlock(2) that is under way, without bringing pages in.
pub struct SetLock {
    /// What is still to be locked.
    range: Range<usize>,
    /// Whether all of that must be mapped.
    is_all_there: bool,
    lock: Lock,
    limit_bytes: u64,
    /// How what is mapped later is locked, if that changes.
    later: Option<Lock>,
    change: Change,
}

impl SetLock {
    /// For the pages that `len` bytes at `address` touch. `limit_bytes` is RLIMIT_MEMLOCK. As on Linux, a length that wraps around when it is
    /// rounded up is 0.
    ///
    /// # Errors
    /// EINVAL.
    pub fn new(address: usize, len: usize, lock: Lock, limit_bytes: u64) -> Result<Self> {
        let start = address & !(PAGE_SIZE - 1);
        let len = len.wrapping_add(address - start).checked_next_multiple_of(PAGE_SIZE).unwrap_or(0);
        let range = page_range(start, len, Errno::EINVAL)?;
        Ok(SetLock { range, is_all_there: true, lock, limit_bytes, later: None, change: Change::default() })
    }

    /// For all that is mapped now; what is mapped from then on is locked as `later` says.
    pub fn all(lock: Lock, later: Lock, limit_bytes: u64) -> Self {
        let later = Some(later);
        SetLock { range: 0..USER_END, is_all_there: false, lock, limit_bytes, later, change: Change::default() }
    }

    /// What is to be locked.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

/// How pages are brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Populate {
    /// As the program may access them, in private copies where it may write (MAP_POPULATE, mlock).
    AsAllowed,
    /// For this access (MADV_POPULATE_READ, MADV_POPULATE_WRITE).
    For(Access),
}

impl AddressSpace {
    /// madvise(2), one VMA after the other.
    ///
    /// # Errors
    /// EINVAL; ENOMEM where a part is not mapped (the rest has been advised).
    pub fn advise_step(&self, call: &mut Advise, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let mut time_slice = TimeSlice::default();
        loop {
            if call.range.is_empty() {
                if call.change.is_begun() {
                    call.change.release(self, &mut self.layout.lock(cx));
                }
                return Ok(call.outcome?);
            }
            if let Err(stop) = self.advise_next(call, &mut time_slice, waker, cx) {
                if matches!(stop, Stop::Error(_)) && call.change.is_begun() {
                    call.change.release(self, &mut self.layout.lock(cx));
                }
                return Err(stop);
            }
            if !call.range.is_empty() && time_slice.is_over() {
                let is_claimed = call.change.is_begun();
                return Err(Stop::Pause(if is_claimed { Interruption::EndOfMemory } else { Interruption::KillOnly }));
            }
        }
    }

    /// Advises the next VMAs, or the next part of one.
    fn advise_next(&self, call: &mut Advise, time_slice: &mut TimeSlice, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let mut layout = call.change.lock(self, waker, cx)?;
        let Some(vma) = layout.vmas().at_or_above(call.range.start).filter(|vma| vma.start < call.range.end) else {
            call.outcome = Err(Errno::ENOMEM);
            call.range.start = call.range.end;
            return Ok(());
        };
        if vma.start > call.range.start {
            call.outcome = Err(Errno::ENOMEM);
            call.range.start = vma.start;
        }
        let is_private_anonymous = !vma.flags.contains(VmaFlags::SHARED) && matches!(vma.backing, Backing::Anonymous);
        let mut part = call.range.start..vma.end.min(call.range.end);
        match call.advice {
            Advice::Nothing => {}
            Advice::DropPages | Advice::Free => {
                if vma.flags.contains(VmaFlags::LOCKED) || (call.advice == Advice::Free && !is_private_anonymous) {
                    return Err(Errno::EINVAL.into());
                }
                if part.len() <= AT_ONCE_BYTES {
                    call.range.start = part.end;
                    self.unmap_range(part, cx);
                    return Ok(());
                }
                while !part.is_empty() {
                    self.unmap_batch(&mut part, cx);
                    if time_slice.is_over() {
                        call.range.start = part.start;
                        return Ok(());
                    }
                }
                call.range.start = part.end;
                return Ok(());
            }
            Advice::Remove => {
                let (object, indices) = removable(vma, &part)?;
                drop(layout);
                let remove = |pages: &dyn Pages| pages.remove(indices, &mut call.is_removed, cx);
                with_pages(&object, cx, remove).unwrap_or(Err(Errno::EINVAL.into()))?;
                (call.range.start, call.is_removed) = (part.end, false);
                return Ok(());
            }
            Advice::Set(flags) if flags.contains(VmaFlags::WIPE_ON_FORK) && !is_private_anonymous => {
                return Err(Errno::EINVAL.into());
            }
            Advice::Clear(flags)
                if vma.flags.contains(VmaFlags::DROPPABLE)
                    && flags.intersects(VmaFlags::WIPE_ON_FORK | VmaFlags::DONT_DUMP) =>
            {
                return Err(Errno::EINVAL.into());
            }
            Advice::Set(_) | Advice::Clear(_) => {
                // More than one step: others must not see VMAs merge or split meanwhile.
                let piece = layout.vmas().piece(call.range.clone(), AT_ONCE_AREAS);
                part.end = layout.vmas().covered_until(part.start..piece.end);
                if part.end < call.range.end {
                    call.change.claim(&mut layout);
                }
                let advice = call.advice;
                let change = |vma: &mut Vma<Backing>| match advice {
                    Advice::Set(flags) => vma.flags |= flags,
                    Advice::Clear(flags) => vma.flags -= flags,
                    _ => {}
                };
                layout.change(part.clone(), change).map_err(Errno::from)?;
            }
        }
        call.range.start = part.end;
        Ok(())
    }

    /// Brings in the pages of a range, from `range.start` on, which moves as they come.
    ///
    /// # Errors
    /// The first page that cannot be made accessible; those before it are.
    pub fn populate_step(
        &self,
        range: &mut Range<usize>,
        populate: Populate,
        cx: &Cx,
    ) -> core::result::Result<Step<()>, BadAccess> {
        const PAGES_AT_ONCE: usize = 16;
        let mut time_slice = TimeSlice::default();
        while range.start < range.end {
            for _ in 0..PAGES_AT_ONCE.min(range.len() / PAGE_SIZE) {
                match populate {
                    Populate::For(access) => self.fault(range.start, access, cx)?,
                    Populate::AsAllowed => match self.fault(range.start, Access::Write, cx) {
                        Err(BadAccess::NotAllowed) => self.fault(range.start, Access::Read, cx)?,
                        outcome => outcome?,
                    },
                }
                range.start += PAGE_SIZE;
            }
            if range.start < range.end && time_slice.is_over() {
                return Ok(Err(Stop::Pause(Interruption::KillOnly)));
            }
        }
        Ok(Ok(()))
    }

    /// mincore(2): 1 for each page that is in memory, 0 for others. The caller bounds `len`.
    ///
    /// # Errors
    /// EINVAL; ENOMEM where a part is not mapped.
    pub fn residency(&self, address: usize, len: usize, cx: &Cx) -> Result<Vec<u8>> {
        let range = page_range(address, len, Errno::ENOMEM)?;
        let layout = self.layout.lock(cx);
        if layout.vmas().covered_until(range.clone()) < range.end {
            return Err(Errno::ENOMEM);
        }
        Ok(range.step_by(PAGE_SIZE).map(|page| u8::from(self.is_resident(layout.vmas(), page, cx))).collect())
    }

    fn is_resident(&self, vmas: &VmaMap<Backing>, page: usize, cx: &Cx) -> bool {
        if self.vm.query(page, cx).is_some() {
            return true;
        }
        let Some(vma) = vmas.find(page) else { return false };
        let Backing::Object { object, first } = &vma.backing else { return false };
        let index = first.saturating_add(((page - vma.start) / PAGE_SIZE) as u64);
        let mut is_cached = false;
        with_pages(object, cx, |pages| pages.cached(index..index.saturating_add(1), &mut |_, _| is_cached = true, cx));
        is_cached
    }

    /// msync(2): what was written through shared mappings of files is on their devices, if `call` waits for that.
    ///
    /// # Errors
    /// ENOMEM where a part is not mapped, when the rest was written; EBUSY if `call.invalidates` and a part is locked; EIO and ENOSPC where that failed; `Pause`, `BlockOnDevice`.
    pub fn synchronise_step(&self, call: &mut Synchronise, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        self.look_at_synchronised(call, cx)?;
        let mut time_slice = TimeSlice::default();
        while !call.to_write.is_empty() {
            let (object, bytes, end) = self.first_shared(call.to_write.clone(), cx);
            if let Some(object) = object.and_then(|object| object.upgrade(cx).ok()) {
                object.synchronise(bytes, &mut call.progress, waker, cx)?;
            }
            call.progress = SyncProgress::default();
            call.to_write.start = end;
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        if call.has_hole { Err(Errno::ENOMEM.into()) } else { Ok(()) }
    }

    /// The first object that a range shows shared, as far as is looked at once, which bytes of it, and where the range goes on behind that.
    fn first_shared(&self, range: Range<usize>, cx: &Cx) -> (Option<WeakRc<dyn BackingObject>>, Range<u64>, usize) {
        let layout = self.layout.lock(cx);
        let piece = layout.vmas().piece(range, AT_ONCE_AREAS);
        for vma in layout.vmas().overlapping(piece.clone()) {
            if let Backing::Object { object, first } = &vma.backing
                && vma.flags.contains(VmaFlags::SHARED)
            {
                let (start, end) = (vma.start.max(piece.start), vma.end.min(piece.end));
                let at = first.saturating_mul(PAGE_SIZE as u64).saturating_add((start - vma.start) as u64);
                return (Some(object.downgrade()), at..at.saturating_add((end - start) as u64), end);
            }
        }
        (None, 0..0, piece.end)
    }

    /// Looks at what is mapped in the range of an msync(2).
    fn look_at_synchronised(&self, call: &mut Synchronise, cx: &Cx) -> Step<()> {
        let layout = self.layout.lock(cx);
        let mut time_slice = TimeSlice::default();
        while !call.range.is_empty() {
            let piece = layout.vmas().piece(call.range.clone(), AT_ONCE_AREAS);
            let mut vmas = layout.vmas().overlapping(piece.clone());
            if call.invalidates && vmas.any(|vma| vma.flags.contains(VmaFlags::LOCKED)) {
                return Err(Errno::EBUSY.into());
            }
            call.has_hole |= layout.vmas().covered_until(piece.clone()) < piece.end;
            call.range.start = piece.end;
            if !call.range.is_empty() && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    /// mlock(2), munlock(2), mlockall(2) and munlockall(2). There is no swapping: a locked page only counts against the limit.
    ///
    /// # Errors
    /// ENOMEM above the limit, or for what is not mapped but should be; what lies before that is locked.
    pub fn lock_step(&self, call: &mut SetLock, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let mut layout = call.change.lock(self, waker, cx)?;
        let is_locked = call.lock != Lock::Off;
        if !call.change.is_begun() && is_locked && call.limit_bytes != u64::MAX {
            let twice = |vma: &Vma<Backing>| match vma.flags.contains(VmaFlags::LOCKED) {
                true => vma.end.min(call.range.end) - vma.start.max(call.range.start),
                false => 0,
            };
            let wanted = if call.is_all_there {
                let twice: usize = layout.vmas().overlapping(call.range.clone()).map(twice).sum();
                layout.totals().locked * PAGE_SIZE + call.range.len() - twice
            } else {
                layout.totals().all * PAGE_SIZE
            };
            if wanted as u64 > call.limit_bytes {
                return Err(Errno::ENOMEM.into());
            }
        }
        // With the layout locked: whatever is mapped is there before that and changed below, or comes and is locked as this says.
        if let Some(later) = call.later.take() {
            self.lock_later(later);
        }
        let mut time_slice = TimeSlice::default();
        let mut outcome = Ok(());
        while !call.range.is_empty() {
            let piece = layout.vmas().piece(call.range.clone(), AT_ONCE_AREAS);
            let end = if call.is_all_there { layout.vmas().covered_until(piece.clone()) } else { piece.end };
            if end > piece.start {
                let change = |vma: &mut Vma<Backing>| {
                    // What may go at any time is not kept in memory.
                    if !vma.flags.contains(VmaFlags::DROPPABLE) {
                        vma.flags = (vma.flags - Lock::OnFault.flags()) | call.lock.flags();
                    }
                };
                outcome = layout.change(piece.start..end, change).map_err(Errno::from);
            }
            if outcome.is_ok() && end < piece.end {
                outcome = Err(Errno::ENOMEM);
            }
            if outcome.is_err() {
                break;
            }
            call.range.start = piece.end;
            if !call.range.is_empty() && time_slice.is_over() {
                call.change.claim(&mut layout);
                return Err(Stop::Pause(Interruption::EndOfMemory));
            }
        }
        call.change.release(self, &mut layout);
        Ok(outcome?)
    }

    /// What is mapped first at or above an address.
    pub fn next_range(&self, address: usize, cx: &Cx) -> Option<Range<usize>> {
        self.layout.lock(cx).vmas().at_or_above(address).map(Vma::range)
    }
}

/// Of which object MADV_REMOVE removes pages for a part of a VMA, and which. An owner of its own, as the layout must not be locked
/// meanwhile.
fn removable(vma: &Vma<Backing>, part: &Range<usize>) -> Result<(StrongRc<dyn BackingObject>, Range<u64>)> {
    if vma.flags.contains(VmaFlags::LOCKED) {
        return Err(Errno::EINVAL);
    }
    let Backing::Object { object, first } = &vma.backing else { return Err(Errno::EINVAL) };
    if !vma.flags.contains(VmaFlags::SHARED) || !vma.limit.contains(Prot::WRITE) {
        return Err(Errno::EACCES);
    }
    let index = |address: usize| first.saturating_add(((address - vma.start) / PAGE_SIZE) as u64);
    Ok((object.share(), index(part.start)..index(part.end)))
}

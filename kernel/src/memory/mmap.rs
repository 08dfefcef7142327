//! Changing what is mapped: mmap(2), munmap(2), mprotect(2), brk(2). Each is a step with what it has done so far: see [`super::change`].

use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot, USER_END};
use refs::Waker;

use super::backing::Backing;
use super::change::{AT_ONCE_AREAS, AT_ONCE_BYTES, Change, next_piece};
use super::fault::{mapped, mapped_shared};
use super::layout::Layout;
use super::madvise::Lock;
use super::overcommit::Privilege;
use super::space::AddressSpace;
use super::vma::{STACK_GUARD, TooManyVmas, Vma, VmaFlags};
use crate::error::{Errno, Result};
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// Where a mapping is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Anywhere; at that address if it is free (0: no wish).
    Hint(usize),
    /// There, in place of what is there (MAP_FIXED).
    Fixed(usize),
    /// There, if it is free (MAP_FIXED_NOREPLACE).
    FixedFree(usize),
}

/// What is to be mapped.
pub struct Mapping {
    /// Where.
    pub place: Placement,
    /// How many bytes; rounded up to whole pages.
    pub len: usize,
    /// What user code may do.
    pub prot: Prot,
    /// What mprotect(2) may allow later.
    pub limit: Prot,
    /// What is special about it.
    pub flags: VmaFlags,
    /// What it shows.
    pub backing: Backing,
}

/// The resource limits that count here, in bytes: see getrlimit(2).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// RLIMIT_AS.
    pub address_space: u64,
    /// RLIMIT_DATA.
    pub data: u64,
    /// How much of what is not promised yet may be: see [`super::overcommit`].
    pub privilege: Privilege,
}

impl Limits {
    /// None.
    pub const NONE: Limits = Limits { address_space: u64::MAX, data: u64::MAX, privilege: Privilege::Administrator };
}

/// An mmap(2) that is under way.
pub struct Map {
    place: Placement,
    /// Its start is not known yet before the first step; `None` once it is entered.
    vma: Option<Vma<Backing>>,
    limits: Limits,
    /// How much may be locked, in bytes; where this is not, nothing is asked.
    lock_limit: u64,
    /// How VMAs that come are locked, as the call has seen it: where that has changed, the step is to be prepared anew.
    pub later: VmaFlags,
    /// Its pages are to be brought in at once because they are locked.
    pub brings_in: bool,
    change: Change,
}

impl Map {
    /// Nothing is done yet.
    ///
    /// # Errors
    /// EINVAL, ENOMEM.
    #[inline(always)]
    pub fn new(mapping: Mapping, limits: Limits) -> Result<Self> {
        let Mapping { place, len, prot, limit, flags, backing } = mapping;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let len = len.checked_next_multiple_of(PAGE_SIZE).filter(|&len| len <= USER_END).ok_or(Errno::ENOMEM)?;
        let vma = Vma { start: 0, end: len, prot, limit, flags, backing };
        let (lock_limit, later, brings_in) = (u64::MAX, VmaFlags::empty(), false);
        Ok(Map { place, vma: Some(vma), limits, lock_limit, later, brings_in, change: Change::default() })
    }

    /// Has it locked, as these flags say; `limit` is how much may be locked in all.
    #[cold]
    pub fn lock(&mut self, flags: VmaFlags, limit: u64) {
        if let Some(vma) = &mut self.vma {
            vma.flags = (vma.flags - Lock::OnFault.flags()) | flags;
            self.brings_in = brings_in(vma.flags);
            self.lock_limit = limit;
        }
    }
}

/// Whether the pages of VMAs with these flags are brought in as soon as the VMA is there.
#[inline(always)]
pub(super) fn brings_in(flags: VmaFlags) -> bool {
    flags & Lock::OnFault.flags() == VmaFlags::LOCKED
}

/// A munmap(2) that is under way.
pub struct Unmap {
    range: Range<usize>,
    change: Change,
}

impl Unmap {
    /// Nothing is done yet. The range is whole pages.
    pub fn new(range: Range<usize>) -> Self {
        Unmap { range, change: Change::default() }
    }
}

/// An mprotect(2) that is under way.
pub struct Protect {
    /// The VMAs that are still to be changed.
    range: Range<usize>,
    prot: Prot,
    limits: Limits,
    /// The pages of changed VMAs that are still to be changed.
    pages: Range<usize>,
    outcome: Result<()>,
    change: Change,
}

impl Protect {
    /// Nothing is done yet.
    ///
    /// # Errors
    /// EINVAL, ENOMEM.
    pub fn new(address: usize, len: usize, prot: Prot, limits: Limits) -> Result<Self> {
        let range = page_range(address, len, Errno::ENOMEM)?;
        Ok(Protect { range, prot, limits, pages: 0..0, outcome: Ok(()), change: Change::default() })
    }
}

/// A brk(2) that is under way.
pub struct SetBreak {
    wanted: usize,
    /// What is special about pages that come.
    flags: VmaFlags,
    limits: Limits,
    /// How much may be locked, in bytes.
    lock_limit: u64,
    /// What has come.
    grown: Range<usize>,
    change: Change,
}

impl SetBreak {
    /// Nothing is done yet.
    pub fn new(wanted: usize, limits: Limits) -> Self {
        let flags = VmaFlags::empty();
        SetBreak { wanted, flags, limits, lock_limit: u64::MAX, grown: 0..0, change: Change::default() }
    }

    /// Whether it is prepared for VMAs that come being locked as these flags say.
    #[inline(always)]
    pub fn expects(&self, later: VmaFlags) -> bool {
        self.flags == later || self.change.is_begun()
    }

    /// Has what comes locked, as these flags say; `limit` is how much may be locked in all.
    #[cold]
    pub fn lock(&mut self, flags: VmaFlags, limit: u64) {
        (self.flags, self.lock_limit) = (flags, limit);
    }

    /// The pages to be brought in at once because they are locked.
    pub fn to_bring_in(&self) -> Range<usize> {
        if brings_in(self.flags) { self.grown.clone() } else { 0..0 }
    }
}

impl From<TooManyVmas> for Errno {
    fn from(_: TooManyVmas) -> Self {
        Errno::ENOMEM
    }
}

/// The pages that `len` bytes at `address` touch.
///
/// # Errors
/// EINVAL if `address` is no page's, `overflow` if the range leaves user addresses.
pub fn page_range(address: usize, len: usize, overflow: Errno) -> Result<Range<usize>> {
    if !address.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::EINVAL);
    }
    let len = len.checked_next_multiple_of(PAGE_SIZE).ok_or(overflow)?;
    let end = address.checked_add(len).filter(|&end| end <= USER_END).ok_or(overflow)?;
    Ok(address..end)
}

impl AddressSpace {
    /// Maps something; its address.
    ///
    /// # Errors
    /// As mmap(2). Nothing that was mapped is gone then.
    pub fn map_step(&self, map: &mut Map, waker: Option<Waker>, cx: &Cx) -> Step<usize> {
        let mut layout = map.change.lock(self, waker, cx)?;
        if !map.change.is_begun() {
            if self.later_flags() != map.later {
                return Err(Stop::Again);
            }
            map.begin(self, &mut layout, cx)?;
        }
        map.change.go_on(self, &mut layout, cx)?;
        let Some(vma) = map.vma.take() else { return Err(Errno::EINVAL.into()) };
        let start = vma.start;
        let entered = layout.insert(vma);
        map.change.release(self, &mut layout);
        Ok(entered.map(|()| start).map_err(Errno::from)?)
    }

    /// Maps something in an address space that nobody else uses yet, where little or nothing is mapped; its address.
    ///
    /// # Errors
    /// As mmap(2).
    pub fn map(&self, mapping: Mapping, limits: Limits, cx: &Cx) -> Result<usize> {
        let mut map = Map::new(mapping, limits)?;
        loop {
            match self.map_step(&mut map, None, cx) {
                Ok(start) => return Ok(start),
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Pause(_) | Stop::Again) => {}
                Err(
                    Stop::Block
                    | Stop::BlockUntil(_)
                    | Stop::BlockOnDevice
                    | Stop::Fault { .. }
                    | Stop::NoMemory
                    | Stop::Absent(_),
                ) => {
                    return Err(Errno::ENOMEM);
                }
            }
        }
    }

    /// Unmaps what is mapped in whole pages if it is nothing, or a little of one VMA: nearly always. Whether it did; if not nothing has
    /// changed, and [`unmap_step`](Self::unmap_step) is to do it.
    #[inline(always)]
    pub fn unmap_little(&self, range: &Range<usize>, cx: &Cx) -> bool {
        let mut layout = self.layout.lock(cx);
        !layout.is_claimed && self.remove_little(&mut layout, range, cx)
    }

    /// Unmaps whatever is there. It is unmapped for all from the first step on; its memory goes in steps.
    ///
    /// # Errors
    /// ENOMEM if there would be too many VMAs.
    pub fn unmap_step(&self, unmap: &mut Unmap, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        self.layout.give_way();
        let mut layout = unmap.change.lock(self, waker, cx)?;
        if !unmap.change.is_begun() {
            unmap.change.remove(self, &mut layout, unmap.range.clone(), cx)?;
        }
        unmap.change.go_on(self, &mut layout, cx)?;
        unmap.change.release(self, &mut layout);
        Ok(())
    }

    /// Changes what may be done with pages.
    ///
    /// # Errors
    /// As mprotect(2). As on Linux, what lies before a hole or a mapping that does not allow it is changed.
    pub fn protect_step(&self, protect: &mut Protect, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        let mut layout = protect.change.lock(self, waker, cx)?;
        if !protect.change.is_begun()
            && let Some(outcome) = self.protect_little(protect, &mut layout, cx)
        {
            return Ok(outcome?);
        }
        let mut time_slice = TimeSlice::default();
        loop {
            if !self.protect_pages(protect, &layout, &mut time_slice, cx) {
                return Err(Stop::Pause(Interruption::EndOfMemory));
            }
            if protect.outcome.is_err() || protect.range.is_empty() {
                protect.change.release(self, &mut layout);
                return Ok(protect.outcome?);
            }
            let piece = layout.vmas().piece(protect.range.clone(), AT_ONCE_AREAS);
            if (piece.end < protect.range.end || piece.len() > AT_ONCE_BYTES) && !protect.change.is_begun() {
                protect.change.claim(&mut layout);
            }
            let changed = protect.change_vmas(&mut layout, piece.clone());
            protect.range.start = piece.end;
            protect.pages = match changed {
                Ok((changed, outcome)) => {
                    protect.outcome = outcome;
                    changed
                }
                Err(error) => {
                    protect.outcome = Err(error);
                    continue;
                }
            };
        }
    }

    /// Changes what may be done with a little of one VMA: nearly always that is all. `None` if it is more; nothing has changed then.
    #[inline(always)]
    fn protect_little(&self, protect: &Protect, layout: &mut Layout, cx: &Cx) -> Option<Result<()>> {
        let Protect { range, prot, limits, .. } = protect;
        if range.is_empty() || range.len() > AT_ONCE_BYTES {
            return None;
        }
        let vma = layout.vmas().find(range.start).filter(|vma| range.end <= vma.end)?;
        if !vma.limit.contains(*prot) {
            return Some(Err(Errno::EACCES));
        }
        let is_private = !vma.flags.contains(VmaFlags::SHARED);
        if prot.contains(Prot::WRITE) && becomes_data(vma) {
            let admitted = layout
                .admit_data(range.len(), *limits)
                .and_then(|()| if has_promise(vma) { Ok(()) } else { layout.admit_commit(range.len(), *limits) });
            if admitted.is_err() {
                return Some(admitted);
            }
        }
        let rights = rights_of(vma, *prot, cx);
        if let Err(full) = layout.change(range.clone(), |vma| change_prot(vma, *prot)) {
            return Some(Err(full.into()));
        }
        self.vm.protect(range.clone(), rights, is_private, cx);
        Some(Ok(()))
    }

    /// Gives the pages of VMAs that have changed the rights that the VMAs have now, until that is done or a stretch is over; whether it is done.
    #[inline]
    fn protect_pages(&self, protect: &mut Protect, layout: &Layout, time_slice: &mut TimeSlice, cx: &Cx) -> bool {
        let mut rights = self.vm.change_rights();
        while !protect.pages.is_empty() {
            let Some(vma) = layout.vmas().at_or_above(protect.pages.start) else { break };
            let mut part = vma.start.max(protect.pages.start)..vma.end.min(protect.pages.end);
            if part.start >= part.end {
                break;
            }
            let (end, private) = (part.end, !vma.flags.contains(VmaFlags::SHARED));
            if part.len() <= AT_ONCE_BYTES {
                rights.protect(part, rights_of(vma, vma.prot, cx), private, cx);
            } else {
                while let Some(piece) = next_piece(self, &mut part, cx) {
                    rights.protect(piece, rights_of(vma, vma.prot, cx), private, cx);
                    if time_slice.is_over() {
                        protect.pages.start = part.start;
                        return false;
                    }
                }
            }
            protect.pages.start = end;
            if protect.change.is_begun() && time_slice.is_over() {
                return false;
            }
        }
        protect.pages = 0..0;
        true
    }

    /// Where the break is after brk(2) with `wanted`, if no page comes for that and a little goes at most. `None` otherwise; nothing has
    /// changed then, and [`set_break_step`](Self::set_break_step) is to do it.
    #[inline(always)]
    pub fn set_break_at_once(&self, wanted: usize, cx: &Cx) -> Option<usize> {
        let mut layout = self.layout.lock(cx);
        if layout.is_claimed {
            return None;
        }
        if wanted >= layout.brk.start {
            let old_end = layout.brk.end.next_multiple_of(PAGE_SIZE);
            let new_end = wanted.checked_next_multiple_of(PAGE_SIZE)?;
            if new_end > old_end || (new_end < old_end && !self.remove_little(&mut layout, &(new_end..old_end), cx)) {
                return None;
            }
            layout.brk.end = wanted;
        }
        Some(layout.brk.end)
    }

    /// Moves the break; where it is then (brk(2) reports no errors).
    ///
    /// # Errors
    /// None but those that say how to go on.
    pub fn set_break_step(&self, call: &mut SetBreak, waker: Option<Waker>, cx: &Cx) -> Step<usize> {
        let mut layout = call.change.lock(self, waker, cx)?;
        if !call.expects(self.later_flags()) {
            return Err(Stop::Again);
        }
        if !call.change.is_begun() && self.try_set_break(&mut layout, call, cx).is_ok() {
            layout.brk.end = call.wanted;
        }
        call.change.go_on(self, &mut layout, cx)?;
        call.change.release(self, &mut layout);
        Ok(layout.brk.end)
    }

    fn try_set_break(&self, layout: &mut Layout, call: &mut SetBreak, cx: &Cx) -> Result<()> {
        let wanted = call.wanted;
        if wanted < layout.brk.start || wanted > USER_END - PAGE_SIZE {
            return Err(Errno::ENOMEM);
        }
        let old_end = layout.brk.end.next_multiple_of(PAGE_SIZE);
        let new_end = wanted.next_multiple_of(PAGE_SIZE);
        if new_end < old_end {
            return call.change.remove(self, layout, new_end..old_end, cx);
        }
        if new_end > old_end {
            let is_free = layout.vmas().is_free(old_end..new_end)
                && layout.vmas().at_or_above(new_end).is_none_or(|next| {
                    !next.flags.contains(VmaFlags::GROWS_DOWN) || next.start - new_end >= STACK_GUARD
                });
            if !is_free {
                return Err(Errno::ENOMEM);
            }
            let vma = Vma {
                start: old_end,
                end: new_end,
                prot: Prot::READ | Prot::WRITE,
                limit: Prot::all(),
                flags: call.flags,
                backing: Backing::Anonymous,
            };
            layout.admit_lock(if call.flags.is_empty() { 0 } else { new_end - old_end }, call.lock_limit)?;
            layout.admit(&vma, 0..0, call.limits)?;
            layout.insert(vma)?;
            call.grown = old_end..new_end;
        }
        Ok(())
    }

    /// Where something of `len` bytes would be placed at a multiple of `alignment` (a power of two); nothing is mapped yet.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn find_room(&self, len: usize, alignment: usize, cx: &Cx) -> Result<usize> {
        let room = len.checked_add(alignment - PAGE_SIZE).ok_or(Errno::ENOMEM)?;
        let start = self.layout.lock(cx).place(0, room)?;
        Ok(start.next_multiple_of(alignment))
    }

    /// Says where the break starts (execve(2)).
    pub fn set_break_start(&self, start: usize, cx: &Cx) {
        self.layout.lock(cx).brk = start..start;
    }

    /// Says below what address mappings without a wish are placed (execve(2)).
    pub fn set_map_end(&self, end: usize, cx: &Cx) {
        self.layout.lock(cx).map_end = end;
    }
}

impl Map {
    /// Finds the place and makes sure of the limits; then what is in the way is on its way out.
    #[inline]
    fn begin(&mut self, space: &AddressSpace, layout: &mut Layout, cx: &Cx) -> Result<()> {
        let Some(vma) = &mut self.vma else { return Ok(()) };
        let len = vma.end - vma.start;
        let mut replaced = 0..0;
        vma.start = match self.place {
            Placement::Hint(address) => layout.place(address, len)?,
            Placement::Fixed(address) => {
                replaced = page_range(address, len, Errno::ENOMEM)?;
                address
            }
            Placement::FixedFree(address) => {
                let range = page_range(address, len, Errno::ENOMEM)?;
                if !layout.vmas().is_free(range) {
                    return Err(Errno::EEXIST);
                }
                address
            }
        };
        vma.end = vma.start + len;
        if self.lock_limit != u64::MAX {
            layout.admit_lock(len, self.lock_limit)?;
        }
        layout.admit(vma, replaced.clone(), self.limits)?;
        if replaced.is_empty() {
            return Ok(());
        }
        if !layout.vmas().has_room_for(&replaced) {
            return Err(Errno::ENOMEM);
        }
        self.change.remove(space, layout, replaced, cx)
    }
}

impl Protect {
    /// Changes the VMAs of a range that is not empty: which part of it, and how that ended.
    fn change_vmas(&self, layout: &mut Layout, range: Range<usize>) -> Result<(Range<usize>, Result<()>)> {
        let prot = self.prot;
        let mut end = layout.vmas().covered_until(range.clone());
        let mut outcome = if end < range.end { Err(Errno::ENOMEM) } else { Ok(()) };
        if let Some(vma) = layout.vmas().overlapping(range.start..end).find(|vma| !vma.limit.contains(prot)) {
            end = vma.start.max(range.start);
            outcome = Err(Errno::EACCES);
        }
        let range = range.start..end;
        if range.is_empty() {
            return Ok((range, outcome));
        }
        if prot.contains(Prot::WRITE) {
            let part = |vma: &Vma<Backing>| vma.end.min(range.end) - vma.start.max(range.start);
            let changing = || layout.vmas().overlapping(range.clone()).filter(|vma| becomes_data(vma));
            layout.admit_data(changing().map(part).sum(), self.limits)?;
            let added = changing().filter(|vma| !has_promise(vma)).map(part).sum();
            layout.admit_commit(added, self.limits)?;
        }
        layout.change(range.clone(), |vma| change_prot(vma, prot))?;
        Ok((range, outcome))
    }
}

/// With what rights the pages of a VMA are mapped that are there when it gets these rights.
#[inline(always)]
fn rights_of(vma: &Vma<Backing>, prot: Prot, cx: &Cx) -> Prot {
    if vma.flags.contains(VmaFlags::SHARED) { mapped_shared(&vma.backing, prot, cx) } else { mapped(prot) }
}

/// Whether a VMA counts as data from when it can be written.
#[inline(always)]
fn becomes_data(vma: &Vma<Backing>) -> bool {
    !vma.prot.contains(Prot::WRITE) && !vma.flags.contains(VmaFlags::SHARED)
}

/// Whether memory is promised for a VMA already, or need not be.
#[inline(always)]
fn has_promise(vma: &Vma<Backing>) -> bool {
    vma.flags.intersects(VmaFlags::NO_RESERVE | VmaFlags::ACCOUNTED)
}

#[inline(always)]
fn change_prot(vma: &mut Vma<Backing>, prot: Prot) {
    if vma.prot.contains(Prot::WRITE) && vma.maps_object_privately() {
        vma.flags |= VmaFlags::MAY_OWN;
    }
    vma.prot = prot;
}

//! Changing what is mapped: mmap(2), munmap(2), mprotect(2), brk(2). Each is a step with what it has done so far: see [`super::change`].

use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot, USER_END};
use refs::Waker;

use super::backing::Shown;
use super::change::{AT_ONCE_AREAS, AT_ONCE_BYTES, Change, next_piece};
use super::fault::mapped;
use super::layout::Layout;
use super::overcommit::Privilege;
use super::space::AddressSpace;
use super::vma::{Area, AreaFlags, STACK_GUARD, TooManyAreas};
use crate::error::{Errno, Result};
use crate::step::{Interruption, Step, Stop, Stretch};

/// Where a mapping is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
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
    pub place: Place,
    /// How many bytes; rounded up to whole pages.
    pub len: usize,
    /// What user code may do.
    pub prot: Prot,
    /// What mprotect(2) may allow later.
    pub limit: Prot,
    /// What is special about it.
    pub flags: AreaFlags,
    /// What it shows.
    pub shown: Shown,
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
    place: Place,
    /// Its start is not known yet before the first step; `None` once it is entered.
    area: Option<Area<Shown>>,
    limits: Limits,
    change: Change,
}

impl Map {
    /// Nothing is done yet.
    ///
    /// # Errors
    /// EINVAL, ENOMEM.
    #[inline(always)]
    pub fn new(mapping: Mapping, limits: Limits) -> Result<Self> {
        let Mapping { place, len, prot, limit, flags, shown } = mapping;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let len = len.checked_next_multiple_of(PAGE_SIZE).filter(|&len| len <= USER_END).ok_or(Errno::ENOMEM)?;
        let area = Area { start: 0, end: len, prot, limit, flags, backing: shown };
        Ok(Map { place, area: Some(area), limits, change: Change::default() })
    }
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
    /// The areas that are still to be changed.
    range: Range<usize>,
    prot: Prot,
    limits: Limits,
    /// The pages of changed areas that are still to be changed.
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
    limits: Limits,
    change: Change,
}

impl SetBreak {
    /// Nothing is done yet.
    pub fn new(wanted: usize, limits: Limits) -> Self {
        SetBreak { wanted, limits, change: Change::default() }
    }
}

impl From<TooManyAreas> for Errno {
    fn from(_: TooManyAreas) -> Self {
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
            map.begin(self, &mut layout, cx)?;
        }
        map.change.go_on(self, &mut layout, cx)?;
        let Some(area) = map.area.take() else { return Err(Errno::EINVAL.into()) };
        let start = area.start;
        let entered = layout.insert(area);
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
                Err(Stop::Block | Stop::Fault(_)) => return Err(Errno::ENOMEM),
            }
        }
    }

    /// Unmaps what is mapped in whole pages if it is nothing, or a little of one area: nearly always. Whether it did; if not nothing has
    /// changed, and [`unmap_step`](Self::unmap_step) is to do it.
    #[inline(always)]
    pub fn unmap_little(&self, range: &Range<usize>, cx: &Cx) -> bool {
        let mut layout = self.layout.lock(cx);
        !layout.is_claimed && self.remove_little(&mut layout, range, cx)
    }

    /// Unmaps whatever is there. It is unmapped for all from the first step on; its memory goes in steps.
    ///
    /// # Errors
    /// ENOMEM if there would be too many areas.
    pub fn unmap_step(&self, unmap: &mut Unmap, waker: Option<Waker>, cx: &Cx) -> Step<()> {
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
        let mut stretch = Stretch::default();
        loop {
            if !self.protect_pages(protect, &layout, &mut stretch, cx) {
                return Err(Stop::Pause(Interruption::Never));
            }
            if protect.outcome.is_err() || protect.range.is_empty() {
                protect.change.release(self, &mut layout);
                return Ok(protect.outcome?);
            }
            let piece = layout.areas().piece(protect.range.clone(), AT_ONCE_AREAS);
            if (piece.end < protect.range.end || piece.len() > AT_ONCE_BYTES) && !protect.change.is_begun() {
                protect.change.claim(&mut layout);
            }
            let changed = protect.change_areas(&mut layout, piece.clone());
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

    /// Changes what may be done with a little of one area: nearly always that is all. `None` if it is more; nothing has changed then.
    #[inline(always)]
    fn protect_little(&self, protect: &Protect, layout: &mut Layout, cx: &Cx) -> Option<Result<()>> {
        let Protect { range, prot, limits, .. } = protect;
        if range.is_empty() || range.len() > AT_ONCE_BYTES {
            return None;
        }
        let area = layout.areas().find(range.start).filter(|area| range.end <= area.end)?;
        if !area.limit.contains(*prot) {
            return Some(Err(Errno::EACCES));
        }
        let is_private = !area.flags.contains(AreaFlags::SHARED);
        if prot.contains(Prot::WRITE) && becomes_data(area) {
            let admitted = layout
                .admit_data(range.len(), *limits)
                .and_then(|()| if has_promise(area) { Ok(()) } else { layout.admit_commit(range.len(), *limits) });
            if admitted.is_err() {
                return Some(admitted);
            }
        }
        if let Err(full) = layout.change(range.clone(), |area| change_prot(area, *prot)) {
            return Some(Err(full.into()));
        }
        self.vm.protect(range.clone(), mapped(*prot), is_private, cx);
        Some(Ok(()))
    }

    /// Gives the pages of areas that have changed the rights that the areas have now, until that is done or a stretch is over; whether it is done.
    #[inline]
    fn protect_pages(&self, protect: &mut Protect, layout: &Layout, stretch: &mut Stretch, cx: &Cx) -> bool {
        while !protect.pages.is_empty() {
            let Some(area) = layout.areas().at_or_above(protect.pages.start) else { break };
            let mut part = area.start.max(protect.pages.start)..area.end.min(protect.pages.end);
            if part.start >= part.end {
                break;
            }
            let (end, private) = (part.end, !area.flags.contains(AreaFlags::SHARED));
            if part.len() <= AT_ONCE_BYTES {
                self.vm.protect(part, mapped(area.prot), private, cx);
            } else {
                while let Some(piece) = next_piece(self, &mut part, cx) {
                    self.vm.protect(piece, mapped(area.prot), private, cx);
                    if stretch.is_over() {
                        protect.pages.start = part.start;
                        return false;
                    }
                }
            }
            protect.pages.start = end;
            if protect.change.is_begun() && stretch.is_over() {
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
            let is_free = layout.areas().is_free(old_end..new_end)
                && layout.areas().at_or_above(new_end).is_none_or(|next| {
                    !next.flags.contains(AreaFlags::GROWS_DOWN) || next.start - new_end >= STACK_GUARD
                });
            if !is_free {
                return Err(Errno::ENOMEM);
            }
            let area = Area {
                start: old_end,
                end: new_end,
                prot: Prot::READ | Prot::WRITE,
                limit: Prot::all(),
                flags: AreaFlags::empty(),
                backing: Shown::Anonymous,
            };
            layout.admit(&area, 0..0, call.limits)?;
            layout.insert(area)?;
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
        let Some(area) = &mut self.area else { return Ok(()) };
        let len = area.end - area.start;
        let mut replaced = 0..0;
        area.start = match self.place {
            Place::Hint(address) => layout.place(address, len)?,
            Place::Fixed(address) => {
                replaced = page_range(address, len, Errno::ENOMEM)?;
                address
            }
            Place::FixedFree(address) => {
                let range = page_range(address, len, Errno::ENOMEM)?;
                if !layout.areas().is_free(range) {
                    return Err(Errno::EEXIST);
                }
                address
            }
        };
        area.end = area.start + len;
        layout.admit(area, replaced.clone(), self.limits)?;
        if replaced.is_empty() {
            return Ok(());
        }
        if !layout.areas().has_room_for(&replaced) {
            return Err(Errno::ENOMEM);
        }
        self.change.remove(space, layout, replaced, cx)
    }
}

impl Protect {
    /// Changes the areas of a range that is not empty: which part of it, and how that ended.
    fn change_areas(&self, layout: &mut Layout, range: Range<usize>) -> Result<(Range<usize>, Result<()>)> {
        let prot = self.prot;
        let mut end = layout.areas().covered_until(range.clone());
        let mut outcome = if end < range.end { Err(Errno::ENOMEM) } else { Ok(()) };
        if let Some(area) = layout.areas().overlapping(range.start..end).find(|area| !area.limit.contains(prot)) {
            end = area.start.max(range.start);
            outcome = Err(Errno::EACCES);
        }
        let range = range.start..end;
        if range.is_empty() {
            return Ok((range, outcome));
        }
        if prot.contains(Prot::WRITE) {
            let part = |area: &Area<Shown>| area.end.min(range.end) - area.start.max(range.start);
            let changing = || layout.areas().overlapping(range.clone()).filter(|area| becomes_data(area));
            layout.admit_data(changing().map(part).sum(), self.limits)?;
            let added = changing().filter(|area| !has_promise(area)).map(part).sum();
            layout.admit_commit(added, self.limits)?;
        }
        layout.change(range.clone(), |area| change_prot(area, prot))?;
        Ok((range, outcome))
    }
}

/// Whether an area counts as data from when it can be written.
#[inline(always)]
fn becomes_data(area: &Area<Shown>) -> bool {
    !area.prot.contains(Prot::WRITE) && !area.flags.contains(AreaFlags::SHARED)
}

/// Whether memory is promised for an area already, or need not be.
#[inline(always)]
fn has_promise(area: &Area<Shown>) -> bool {
    area.flags.intersects(AreaFlags::NO_RESERVE | AreaFlags::ACCOUNTED)
}

#[inline(always)]
fn change_prot(area: &mut Area<Shown>, prot: Prot) {
    if area.prot.contains(Prot::WRITE) && area.shows_object_privately() {
        area.flags |= AreaFlags::MAY_OWN;
    }
    area.prot = prot;
}

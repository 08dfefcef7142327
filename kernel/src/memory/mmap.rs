//! Changing what is mapped: mmap(2), munmap(2), mprotect(2), mremap(2), brk(2).

use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot, USER_END};

use super::backing::Shown;
use super::fault::mapped;
use super::space::{AddressSpace, LOWEST, Layout, is_data};
use super::vma::{Area, AreaFlags, STACK_GUARD, TooManyAreas};
use crate::error::{Errno, Result};

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
}

impl Limits {
    /// None.
    pub const NONE: Limits = Limits { address_space: u64::MAX, data: u64::MAX };
}

/// What mremap(2) may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Stay where it is.
    Never,
    /// Go anywhere.
    May,
    /// Go there, in place of what is there.
    To(usize),
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
pub(super) fn page_range(address: usize, len: usize, overflow: Errno) -> Result<Range<usize>> {
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
    /// As mmap(2).
    pub fn map(&self, mapping: Mapping, limits: Limits, cx: &Cx) -> Result<usize> {
        let Mapping { place, len, prot, limit, flags, shown } = mapping;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let len = len.checked_next_multiple_of(PAGE_SIZE).filter(|&len| len <= USER_END).ok_or(Errno::ENOMEM)?;
        let mut layout = self.layout.lock(cx);
        let start = match place {
            Place::Hint(address) => layout.place(address, len)?,
            Place::Fixed(address) => {
                let range = page_range(address, len, Errno::ENOMEM)?;
                self.clear(&mut layout, range, cx)?;
                address
            }
            Place::FixedFree(address) => {
                let range = page_range(address, len, Errno::ENOMEM)?;
                if !layout.areas.is_free(range) {
                    return Err(Errno::EEXIST);
                }
                address
            }
        };
        let area = Area { start, end: start + len, prot, limit, flags, backing: shown };
        layout.admit(&area, limits)?;
        layout.areas.insert(area)?;
        Ok(start)
    }

    /// Unmaps whatever is there.
    ///
    /// # Errors
    /// EINVAL; ENOMEM if there would be too many areas.
    pub fn unmap(&self, address: usize, len: usize, cx: &Cx) -> Result<()> {
        let range = page_range(address, len, Errno::EINVAL)?;
        if range.is_empty() {
            return Err(Errno::EINVAL);
        }
        self.clear(&mut self.layout.lock(cx), range, cx)
    }

    fn clear(&self, layout: &mut Layout, range: Range<usize>, cx: &Cx) -> Result<()> {
        if let Some(range) = layout.areas.remove(range)? {
            self.unmap_range(range, cx);
        }
        Ok(())
    }

    /// Changes what may be done with pages.
    ///
    /// # Errors
    /// As mprotect(2). As on Linux, what lies before a hole or a mapping that does not allow it is changed.
    pub fn protect(&self, address: usize, len: usize, prot: Prot, limits: Limits, cx: &Cx) -> Result<()> {
        let range = page_range(address, len, Errno::ENOMEM)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut layout = self.layout.lock(cx);
        let mut end = layout.areas.covered_until(range.clone());
        let mut outcome = if end < range.end { Err(Errno::ENOMEM) } else { Ok(()) };
        if let Some(area) = layout.areas.overlapping(range.start..end).find(|area| !area.limit.contains(prot)) {
            end = area.start.max(range.start);
            outcome = Err(Errno::EACCES);
        }
        if end == range.start {
            return outcome;
        }
        let range = range.start..end;
        if prot.contains(Prot::WRITE) {
            let added: usize = layout
                .areas
                .overlapping(range.clone())
                .filter(|area| !area.prot.contains(Prot::WRITE) && !area.flags.contains(AreaFlags::SHARED))
                .map(|area| area.end.min(range.end) - area.start.max(range.start))
                .sum();
            layout.admit_data(added, limits)?;
        }
        layout.areas.change(range.clone(), |area| {
            if area.prot.contains(Prot::WRITE) && area.shows_object_privately() {
                area.flags |= AreaFlags::MAY_OWN;
            }
            area.prot = prot;
        })?;
        for area in layout.areas.overlapping(range.clone()) {
            let part = area.start.max(range.start)..area.end.min(range.end);
            self.vm.protect(part, mapped(prot), !area.flags.contains(AreaFlags::SHARED), cx);
        }
        outcome
    }

    /// Moves the break; where it is then (brk(2) reports no errors).
    pub fn set_break(&self, wanted: usize, limits: Limits, cx: &Cx) -> usize {
        let mut layout = self.layout.lock(cx);
        let now = layout.brk.end;
        let _ = self.try_set_break(&mut layout, wanted, now, limits, cx);
        layout.brk.end
    }

    fn try_set_break(&self, layout: &mut Layout, wanted: usize, now: usize, limits: Limits, cx: &Cx) -> Result<()> {
        if wanted < layout.brk.start || wanted > USER_END - PAGE_SIZE {
            return Err(Errno::ENOMEM);
        }
        let old_end = now.next_multiple_of(PAGE_SIZE);
        let new_end = wanted.next_multiple_of(PAGE_SIZE);
        if new_end < old_end {
            self.clear(layout, new_end..old_end, cx)?;
        } else if new_end > old_end {
            let is_free = layout.areas.is_free(old_end..new_end)
                && layout.areas.at_or_above(new_end).is_none_or(|next| {
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
            layout.admit(&area, limits)?;
            layout.areas.insert(area)?;
        }
        layout.brk.end = wanted;
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

    /// Changes the size of a mapping, moving it if it must and may; its address. With `keep_old` (MREMAP_DONTUNMAP) the old range stays
    /// mapped, empty.
    ///
    /// # Errors
    /// As mremap(2).
    pub fn remap(
        &self,
        (old, old_len): (usize, usize),
        new_len: usize,
        movement: Move,
        keep_old: bool,
        limits: Limits,
        cx: &Cx,
    ) -> Result<usize> {
        let from = page_range(old, old_len, Errno::EINVAL)?;
        let new_len =
            new_len.checked_next_multiple_of(PAGE_SIZE).filter(|&len| len <= USER_END).ok_or(Errno::ENOMEM)?;
        if new_len == 0 || (keep_old && from.len() != new_len) {
            return Err(Errno::EINVAL);
        }
        let mut layout = self.layout.lock(cx);
        if let Move::To(target) = movement {
            let to = page_range(target, new_len, Errno::EINVAL)?;
            if to.start < from.end && from.start < to.end {
                return Err(Errno::EINVAL);
            }
        }
        let area = layout.areas.find(old).ok_or(Errno::EFAULT)?;
        if from.end > area.end {
            return Err(Errno::EFAULT);
        }
        if from.is_empty() && !area.flags.contains(AreaFlags::SHARED) {
            // The second view of old_len 0 makes sense only for shared memory.
            return Err(Errno::EINVAL);
        }
        if keep_old && (area.flags.contains(AreaFlags::SHARED) || !matches!(area.backing, Shown::Anonymous)) {
            return Err(Errno::EINVAL);
        }
        if !matches!(movement, Move::To(_)) && !keep_old && !from.is_empty() {
            if new_len <= from.len() {
                self.clear(&mut layout, old + new_len..from.end, cx)?;
                return Ok(old);
            }
            if self.grow_in_place(&mut layout, from.clone(), new_len, limits)? {
                return Ok(old);
            }
        }
        self.move_area(&mut layout, from, new_len, movement, keep_old, limits, cx)
    }

    /// Whether the mapping could grow where it is.
    fn grow_in_place(&self, layout: &mut Layout, from: Range<usize>, new_len: usize, limits: Limits) -> Result<bool> {
        let Some(area) = layout.areas.find(from.start) else { return Ok(false) };
        let Some(end) = from.start.checked_add(new_len).filter(|&end| end <= USER_END) else { return Ok(false) };
        if area.end != from.end || !layout.areas.is_free(from.end..end) {
            return Ok(false);
        }
        let grown = tail_of(area, from.end, end);
        layout.admit(&grown, limits)?;
        layout.areas.insert(grown)?;
        Ok(true)
    }

    #[expect(clippy::too_many_arguments, reason = "they are mremap's")]
    fn move_area(
        &self,
        layout: &mut Layout,
        from: Range<usize>,
        new_len: usize,
        movement: Move,
        keep_old: bool,
        limits: Limits,
        cx: &Cx,
    ) -> Result<usize> {
        let to = match movement {
            Move::Never => return Err(Errno::ENOMEM),
            Move::May => layout.place(0, new_len)?,
            Move::To(target) => {
                self.clear(layout, target..target + new_len, cx)?;
                target
            }
        };
        let area = layout.areas.find(from.start).ok_or(Errno::EFAULT)?;
        let pages = ((from.start - area.start) / PAGE_SIZE) as u64;
        let moved = Area {
            start: to,
            end: to + new_len,
            backing: super::vma::Backing::advanced(&area.backing, pages),
            ..*area
        };
        layout.admit(&moved, limits)?;
        layout.areas.insert(moved)?;
        let kept = from.len().min(new_len);
        if kept > 0
            && let Err(error) = self.vm.move_range(from.start..from.start + kept, to, cx)
        {
            // What was moved goes back; there are tables for it there.
            let _ = self.vm.move_range(to..to + kept, from.start, cx);
            self.clear(layout, to..to + new_len, cx)?;
            return Err(error.into());
        }
        if !keep_old && !from.is_empty() {
            self.clear(layout, from, cx)?;
        }
        Ok(to)
    }
}

/// What an area that ends at `from` would be up to `to`.
fn tail_of(area: &Area<Shown>, from: usize, to: usize) -> Area<Shown> {
    let backing = super::vma::Backing::advanced(&area.backing, area.pages() as u64);
    Area { start: from, end: to, backing, ..*area }
}

impl Layout {
    /// Where something of `len` bytes goes.
    fn place(&mut self, wish: usize, len: usize) -> Result<usize> {
        let wish = wish & !(PAGE_SIZE - 1);
        if wish >= LOWEST
            && let Some(end) = wish.checked_add(len).filter(|&end| end <= USER_END)
            && self.areas.find_gap(len, wish..end) == Some(wish)
        {
            return Ok(wish);
        }
        self.areas
            .find_gap_again(len, LOWEST..self.map_end)
            // Above the stack's room, if all else is full.
            .or_else(|| self.areas.find_gap(len, LOWEST..USER_END))
            .ok_or(Errno::ENOMEM)
    }

    /// Whether a new area stays within the limits, and could be backed by the machine's memory at all.
    fn admit(&self, area: &Area<Shown>, limits: Limits) -> Result<()> {
        let len = area.end - area.start;
        if limits.address_space != u64::MAX {
            let total = self.areas.pages_where(|_| true) * PAGE_SIZE;
            if (total + len) as u64 > limits.address_space {
                return Err(Errno::ENOMEM);
            }
        }
        if !is_data(area) {
            return Ok(());
        }
        if !area.flags.contains(AreaFlags::NO_RESERVE) && len / PAGE_SIZE > frame::mm::frame_count() {
            return Err(Errno::ENOMEM);
        }
        self.admit_data(len, limits)
    }

    fn admit_data(&self, len: usize, limits: Limits) -> Result<()> {
        if limits.data != u64::MAX && (self.areas.pages_where(is_data) * PAGE_SIZE + len) as u64 > limits.data {
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }
}

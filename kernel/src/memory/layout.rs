//! [`Layout`]: the areas of an address space with what is counted of them, and the addresses that have a meaning of their own.

use core::ops::Range;

use frame::mm::{PAGE_SIZE, Prot, USER_END};

use super::backing::Shown;
use super::space::{AreaName, AreaReport, Image, LOWEST};
use super::vma::{Area, AreaFlags, Areas, Removed, TooManyAreas};
use super::{Limits, overcommit};
use crate::error::{Errno, Result};

/// The areas, and the addresses that have a meaning of their own.
pub(super) struct Layout {
    areas: Areas<Shown>,
    totals: Totals,
    /// From the end of the program's data to the current break.
    pub(super) brk: Range<usize>,
    /// Mappings without an address are placed below this.
    pub(super) map_end: usize,
    pub(super) image: Image,
    /// Whether a call is in the middle of a change: see [`super::change`].
    pub(super) is_claimed: bool,
    /// How often an area has come from another place, with its pages.
    pub(super) moves: u64,
}

/// How many pages the areas have, by what counts where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// All areas.
    pub(super) all: usize,
    /// Private writable areas without stacks.
    pub(super) data: usize,
    /// Areas that grow downwards.
    pub(super) stack: usize,
    /// Areas that show a file or shared memory.
    pub(super) objects: usize,
    /// Areas that are locked.
    pub(super) locked: usize,
    /// Areas for which memory is promised.
    pub(super) accounted: usize,
}

impl Totals {
    /// Adds `pages` pages of an area; a negative number, wrapped, takes them away.
    #[inline(always)]
    fn add(&mut self, area: &Area<Shown>, pages: usize) {
        let add = |total: &mut usize| *total = total.wrapping_add(pages);
        add(&mut self.all);
        if area.flags.contains(AreaFlags::GROWS_DOWN) {
            add(&mut self.stack);
        } else if is_data(area) {
            add(&mut self.data);
        }
        if matches!(area.backing, Shown::Object { .. }) {
            add(&mut self.objects);
        }
        if area.flags.contains(AreaFlags::LOCKED) {
            add(&mut self.locked);
        }
        if area.flags.contains(AreaFlags::ACCOUNTED) {
            add(&mut self.accounted);
            overcommit::add(pages);
        }
    }

    #[inline(always)]
    fn subtract(&mut self, area: &Area<Shown>) {
        self.add(area, area.pages().wrapping_neg());
    }
}

/// Whether an area counts against RLIMIT_DATA.
#[inline(always)]
fn is_data(area: &Area<Shown>) -> bool {
    area.prot.contains(Prot::WRITE) && !area.flags.intersects(AreaFlags::SHARED | AreaFlags::GROWS_DOWN)
}

/// Whether memory is promised for an area: it may all become the process's own.
#[inline(always)]
fn is_accountable(area: &Area<Shown>) -> bool {
    area.prot.contains(Prot::WRITE) && !area.flags.intersects(AreaFlags::SHARED | AreaFlags::NO_RESERVE)
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            areas: Areas::default(),
            totals: Totals::default(),
            brk: 0..0,
            map_end: USER_END,
            image: Image::default(),
            is_claimed: false,
            moves: 0,
        }
    }
}

impl Layout {
    /// The areas, to look at.
    #[inline(always)]
    pub(super) fn areas(&self) -> &Areas<Shown> {
        &self.areas
    }

    /// How many pages they have.
    #[inline(always)]
    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Enters an area where nothing is mapped.
    ///
    /// # Errors
    /// There are too many.
    #[inline]
    pub(super) fn insert(&mut self, mut area: Area<Shown>) -> core::result::Result<(), TooManyAreas> {
        if is_accountable(&area) {
            area.flags |= AreaFlags::ACCOUNTED;
        }
        if self.areas.is_full() {
            return self.insert_when_full(area);
        }
        self.totals.add(&area, area.pages());
        self.areas.insert(area)
    }

    /// There is only room for an area that becomes a part of its neighbour.
    #[cold]
    fn insert_when_full(&mut self, area: Area<Shown>) -> core::result::Result<(), TooManyAreas> {
        let before = self.totals;
        self.totals.add(&area, area.pages());
        let inserted = self.areas.insert(area);
        if inserted.is_err() {
            overcommit::add(before.accounted.wrapping_sub(self.totals.accounted));
            self.totals = before;
        }
        inserted
    }

    /// Takes out what is mapped in a range if that is nothing, or no more than one area or a part of one, and counts it no longer;
    /// `unmap` is called before if it is something. Whether it is so; nothing is taken out if not.
    #[inline(always)]
    pub(super) fn remove_one(&mut self, range: &Range<usize>, unmap: impl FnOnce()) -> bool {
        let totals = &mut self.totals;
        self.areas.remove_one(range, |area| {
            totals.add(area, (range.len() / PAGE_SIZE).wrapping_neg());
            unmap();
        })
    }

    /// Takes out what is mapped in a range. It counts until it is [`forgotten`](Self::forget).
    ///
    /// # Errors
    /// There would be too many areas.
    pub(super) fn remove(&mut self, range: Range<usize>) -> core::result::Result<Option<Removed<Shown>>, TooManyAreas> {
        self.areas.remove(range)
    }

    /// Counts an area no longer that was taken out.
    pub(super) fn forget(&mut self, area: &Area<Shown>) {
        self.totals.subtract(area);
    }

    /// Changes what is mapped in a range.
    ///
    /// # Errors
    /// There would be too many areas; nothing is changed.
    pub(super) fn change(
        &mut self,
        range: Range<usize>,
        mut change: impl FnMut(&mut Area<Shown>),
    ) -> core::result::Result<(), TooManyAreas> {
        let totals = &mut self.totals;
        self.areas.change(range, |area| {
            totals.subtract(area);
            change(area);
            if is_accountable(area) {
                // For good, as what was written stays when the right to write goes.
                area.flags |= AreaFlags::ACCOUNTED;
            }
            totals.add(area, area.pages());
        })
    }

    /// Moves the start of the area that begins at `start` down to `new_start`; nothing is mapped between.
    pub(super) fn grow_down(&mut self, start: usize, new_start: usize) {
        if let Some(area) = self.areas.find(start) {
            self.totals.add(area, (start - new_start) / PAGE_SIZE);
        }
        self.areas.grow_down(start, new_start);
    }

    /// Whether a copy of all this may be made.
    ///
    /// # Errors
    /// ENOMEM.
    #[inline]
    pub(super) fn admit_copy(&self) -> Result<()> {
        match overcommit::policy() {
            overcommit::Policy::Never => overcommit::admit(self.totals.accounted, 0, overcommit::Privilege::None),
            // Each area was admitted by itself, and would be again.
            _ => Ok(()),
        }
    }

    /// Makes this, which is empty, the beginning of a copy of `of`: all but the areas. Those that are not
    /// [copied](Self::push_copy) are [forgotten](Self::forget_copy).
    pub(super) fn begin_copy(&mut self, of: &Layout) {
        self.areas = Areas::with_capacity(of.areas.len() + 1);
        // Locks are not inherited: see mlock(2).
        self.totals = Totals { locked: 0, ..of.totals };
        overcommit::add(self.totals.accounted);
        self.brk = of.brk.clone();
        self.map_end = of.map_end;
        self.image = of.image.clone();
    }

    /// Enters a copy of an area that [`begin_copy`](Self::begin_copy) has counted, behind all others.
    #[inline(always)]
    pub(super) fn push_copy(&mut self, area: Area<Shown>) {
        self.areas.push(area);
    }

    /// Counts a part of an area of the parent's no longer that the child does not get.
    pub(super) fn forget_copy(&mut self, area: &Area<Shown>, part: Range<usize>) {
        // The locks are not counted already.
        let locked = self.totals.locked;
        self.totals.add(area, (part.len() / PAGE_SIZE).wrapping_neg());
        self.totals.locked = locked;
    }

    /// Takes the last areas out, some at a time, at the end of the address space; `None` once there are none.
    pub(super) fn pop_chunk(&mut self) -> Option<alloc::vec::Vec<Area<Shown>>> {
        self.areas.pop_chunk()
    }

    /// Where something of `len` bytes goes.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn place(&mut self, wish: usize, len: usize) -> Result<usize> {
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

    /// Whether a new area stays within the limits, in the place of what is mapped in `replaced`.
    ///
    /// # Errors
    /// ENOMEM.
    #[inline(always)]
    pub(super) fn admit(&self, area: &Area<Shown>, replaced: Range<usize>, limits: Limits) -> Result<()> {
        if limits.address_space != u64::MAX || limits.data != u64::MAX {
            self.admit_size(area, replaced, limits)?;
        }
        if is_accountable(area) { self.admit_commit(area.end - area.start, limits) } else { Ok(()) }
    }

    /// As [`admit`](Self::admit), where the sizes are limited.
    #[cold]
    fn admit_size(&self, area: &Area<Shown>, replaced: Range<usize>, limits: Limits) -> Result<()> {
        let len = area.end - area.start;
        // As on Linux, what is replaced counts for nothing, whatever it is.
        let free: usize = self
            .areas
            .overlapping(replaced.clone())
            .map(|area| area.end.min(replaced.end) - area.start.max(replaced.start))
            .sum();
        let added = len - free.min(len);
        if (self.totals.all * PAGE_SIZE + added) as u64 > limits.address_space {
            return Err(Errno::ENOMEM);
        }
        if is_data(area) && (self.totals.data * PAGE_SIZE + added) as u64 > limits.data {
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    /// Whether `len` bytes that exist already may become data.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn admit_data(&self, len: usize, limits: Limits) -> Result<()> {
        if limits.data != u64::MAX && (self.totals.data * PAGE_SIZE + len) as u64 > limits.data {
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    /// Whether memory may be promised for so many bytes more.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn admit_commit(&self, len: usize, limits: Limits) -> Result<()> {
        overcommit::admit(len / PAGE_SIZE, self.totals.all, limits.privilege)
    }

    pub(super) fn describe(&self, area: &Area<Shown>) -> AreaReport {
        let (offset, name) = match &area.backing {
            Shown::Object { object, first } => {
                (first.saturating_mul(PAGE_SIZE as u64), AreaName::Object(object.downgrade()))
            }
            Shown::Anonymous if area.start < self.brk.end && self.brk.start < area.end => (0, AreaName::Heap),
            Shown::Anonymous if area.range().contains(&self.image.stack) => (0, AreaName::Stack),
            Shown::Anonymous => (0, AreaName::Anonymous),
        };
        AreaReport { range: area.range(), prot: area.prot, flags: area.flags, offset, name }
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        overcommit::add(self.totals.accounted.wrapping_neg());
    }
}

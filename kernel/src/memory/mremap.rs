//! mremap(2): a mapping gets another size, and may go elsewhere for it.

use core::ops::Range;

use frame::Cx;
use frame::mm::{OutOfMemory, PAGE_SIZE, USER_END};
use refs::Waker;

use super::backing::Backing;
use super::change::Change;
use super::layout::Layout;
use super::mmap::{Limits, brings_in, page_range};
use super::space::AddressSpace;
use super::vma::{MAX_AREAS, Mergeable, Vma, VmaFlags};
use crate::error::{Errno, Result};
use crate::step::{Interruption, Step, Stop, TimeSlice};

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

/// Whether what was moved is still mapped where it was, without its pages (MREMAP_DONTUNMAP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is.
    Kept,
    /// It is not.
    Unmapped,
}

/// An mremap(2) that is under way.
pub struct Remap {
    from: Range<usize>,
    new_len: usize,
    movement: Move,
    origin: Origin,
    limits: Limits,
    /// How much may be locked, in bytes.
    lock_limit: u64,
    /// Whether pages that come are to be brought in at once because they are locked.
    brings_in: bool,
    state: Phase,
    change: Change,
}

enum Phase {
    /// Nothing is done yet.
    New,
    /// It stays where it is; what does not belong to it any more goes.
    AtPlace,
    /// What is in the way of the move goes.
    MakingRoom(Moving),
    /// What is longer than the new size goes.
    Shrinking(Moving),
    /// Pages move.
    Moving(Moving),
    /// The pages have moved, and the VMA follows.
    Arriving(Vma<Backing>),
}

/// Pages on their way, with their VMA: while they are, nothing is mapped at either end.
struct Moving {
    /// The VMA as it will be.
    vma: Vma<Backing>,
    /// Which pages of the old range have not moved yet.
    left: Range<usize>,
}

impl Remap {
    /// Nothing is done yet.
    ///
    /// # Errors
    /// EINVAL, ENOMEM.
    pub fn new(
        old: (usize, usize),
        new_len: usize,
        movement: Move,
        origin: Origin,
        limits: Limits,
        lock_limit: u64,
    ) -> Result<Self> {
        let from = page_range(old.0, old.1, Errno::EINVAL)?;
        let new_len =
            new_len.checked_next_multiple_of(PAGE_SIZE).filter(|&len| len <= USER_END).ok_or(Errno::ENOMEM)?;
        if new_len == 0 || (origin == Origin::Kept && from.len() != new_len) {
            return Err(Errno::EINVAL);
        }
        if let Move::To(target) = movement {
            let to = page_range(target, new_len, Errno::EINVAL)?;
            if to.start < from.end && from.start < to.end {
                return Err(Errno::EINVAL);
            }
        }
        let (state, change) = (Phase::New, Change::default());
        Ok(Remap { from, new_len, movement, origin, limits, lock_limit, brings_in: false, state, change })
    }

    /// The pages to be brought in at once, where the mapping is at `address` now.
    pub fn to_bring_in(&self, address: usize) -> Range<usize> {
        let start = address + self.from.len().min(self.new_len);
        if self.brings_in { start..address + self.new_len } else { 0..0 }
    }

    /// The pages that go with it if it moves.
    fn moving_pages(&self) -> Range<usize> {
        self.from.start..self.from.start + self.from.len().min(self.new_len)
    }

    /// Checks everything, and changes the size where it is if that can be; whether it could.
    #[inline(always)]
    fn resize_in_place(&mut self, space: &AddressSpace, layout: &mut Layout, cx: &Cx) -> Result<bool> {
        let vma = layout.vmas().find(self.from.start).ok_or(Errno::EFAULT)?;
        if self.from.end > vma.end {
            return Err(Errno::EFAULT);
        }
        if vma.flags.contains(VmaFlags::DONT_EXPAND) && self.new_len > self.from.len() {
            return Err(Errno::EFAULT);
        }
        if self.from.is_empty() && !vma.flags.contains(VmaFlags::SHARED) {
            // The second view of old_len 0 makes sense only for shared memory.
            return Err(Errno::EINVAL);
        }
        if vma.flags.contains(VmaFlags::LOCKED) {
            // Only what comes counts, wherever the mapping goes.
            layout.admit_lock(self.new_len.saturating_sub(self.from.len()), self.lock_limit)?;
            self.brings_in = brings_in(vma.flags);
        }
        let is_kept = self.origin == Origin::Kept;
        if is_kept && (vma.flags.contains(VmaFlags::SHARED) || !matches!(vma.backing, Backing::Anonymous)) {
            return Err(Errno::EINVAL);
        }
        if !matches!(self.movement, Move::To(_)) && !is_kept && !self.from.is_empty() {
            if self.new_len <= self.from.len() {
                if self.new_len < self.from.len() {
                    self.change.remove(space, layout, self.from.start + self.new_len..self.from.end, cx)?;
                }
                return Ok(true);
            }
            return self.grow_in_place(layout);
        }
        Ok(false)
    }

    /// Whether the mapping could grow where it is.
    fn grow_in_place(&self, layout: &mut Layout) -> Result<bool> {
        let Some(vma) = layout.vmas().find(self.from.start) else { return Ok(false) };
        let Some(end) = self.from.start.checked_add(self.new_len).filter(|&end| end <= USER_END) else {
            return Ok(false);
        };
        if vma.end != self.from.end || !layout.vmas().is_free(self.from.end..end) {
            return Ok(false);
        }
        let backing = vma.backing.advanced(vma.pages() as u64);
        let grown = Vma { start: self.from.end, end, backing, ..*vma };
        layout.admit(&grown, 0..0, self.limits)?;
        layout.insert(grown)?;
        Ok(true)
    }

    fn begin_move(&mut self, space: &AddressSpace, layout: &mut Layout, cx: &Cx) -> Result<()> {
        // As on Linux: what lies at both ends may have to be split.
        if layout.vmas().len() as u64 + 3 > MAX_AREAS.get() {
            return Err(Errno::ENOMEM);
        }
        let start = match self.movement {
            Move::Never => return Err(Errno::ENOMEM),
            Move::May => layout.place(0, self.new_len)?,
            Move::To(target) => target,
        };
        let old = layout.vmas().find(self.from.start).ok_or(Errno::EFAULT)?;
        let pages = ((self.from.start - old.start) / PAGE_SIZE) as u64;
        let vma = Vma { start, end: start + self.new_len, backing: old.backing.advanced(pages), ..*old };
        let replaced = if matches!(self.movement, Move::To(_)) { vma.range() } else { 0..0 };
        layout.admit(&vma, replaced.clone(), self.limits)?;
        if !replaced.is_empty() {
            self.change.remove(space, layout, replaced, cx)?;
        }
        self.state = Phase::MakingRoom(Moving { vma, left: self.moving_pages() });
        Ok(())
    }

    /// The VMA leaves its old place; its pages are still there.
    fn leave_origin(&self, layout: &mut Layout) -> Result<()> {
        if self.origin == Origin::Unmapped
            && let Some(old) = layout.remove(self.moving_pages())?
        {
            old.iter().for_each(|vma| layout.forget(vma));
        }
        Ok(())
    }
}

impl AddressSpace {
    /// Changes the size of a mapping, moving it if it must and may; its address.
    ///
    /// # Errors
    /// As mremap(2).
    pub fn remap_step(&self, call: &mut Remap, waker: Option<Waker>, cx: &Cx) -> Step<usize> {
        self.layout.give_way();
        let mut layout = call.change.lock(self, waker, cx)?;
        if matches!(call.state, Phase::New) {
            if !call.resize_in_place(self, &mut layout, cx)? {
                call.begin_move(self, &mut layout, cx)?;
            } else if call.change.is_begun() {
                call.state = Phase::AtPlace;
            } else {
                return Ok(call.from.start);
            }
        }
        self.remap_slowly(call, &mut layout, cx)
    }

    fn remap_slowly(&self, call: &mut Remap, layout: &mut Layout, cx: &Cx) -> Step<usize> {
        let mut time_slice = TimeSlice::default();
        loop {
            call.change.go_on(self, layout, cx)?;
            let address = match core::mem::replace(&mut call.state, Phase::AtPlace) {
                Phase::New | Phase::AtPlace => call.from.start,
                Phase::MakingRoom(moving) => {
                    let tail = call.moving_pages().end..call.from.end;
                    let shrunk = if tail.is_empty() { Ok(()) } else { call.change.remove(self, layout, tail, cx) };
                    if let Err(error) = shrunk {
                        call.change.release(self, layout);
                        return Err(error.into());
                    }
                    call.state = Phase::Shrinking(moving);
                    continue;
                }
                Phase::Shrinking(moving) => {
                    if let Err(error) = call.leave_origin(layout) {
                        call.change.release(self, layout);
                        return Err(error.into());
                    }
                    call.state = Phase::Moving(moving);
                    continue;
                }
                Phase::Moving(mut moving) => {
                    match self.move_pages(&mut moving.left, call.from.start, moving.vma.start, &mut time_slice, cx) {
                        Ok(true) => call.state = Phase::Arriving(moving.vma),
                        Ok(false) => {
                            call.change.claim(layout);
                            call.state = Phase::Moving(moving);
                            return Err(Stop::Pause(Interruption::EndOfMemory));
                        }
                        Err(OutOfMemory) => {
                            let put_back = self.move_back(call, moving, layout, cx);
                            call.change.release(self, layout);
                            put_back?;
                            return Err(Errno::ENOMEM.into());
                        }
                    }
                    continue;
                }
                Phase::Arriving(vma) => {
                    let start = vma.start;
                    layout.moves += 1;
                    if let Err(full) = layout.insert(vma) {
                        call.change.release(self, layout);
                        return Err(Errno::from(full).into());
                    }
                    start
                }
            };
            call.change.release(self, layout);
            return Ok(address);
        }
    }

    /// Moves pages for a stretch; whether all of them are moved.
    fn move_pages(
        &self,
        left: &mut Range<usize>,
        from: usize,
        to: usize,
        time_slice: &mut TimeSlice,
        cx: &Cx,
    ) -> core::result::Result<bool, OutOfMemory> {
        while left.start < left.end {
            self.vm.move_batch(left, to + (left.start - from), cx)?;
            if left.start < left.end && time_slice.is_over() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// There is no memory for page tables: what was moved goes back, and what was mapped is mapped again.
    #[cold]
    fn move_back(&self, call: &Remap, moving: Moving, layout: &mut Layout, cx: &Cx) -> Result<()> {
        let pages = call.moving_pages();
        // The tables that were there are free again.
        let start = moving.vma.start;
        let mut moved = start..start + pages.len();
        let mut result = Ok(());
        while result.is_ok() && !moved.is_empty() {
            let back = pages.start + (moved.start - start);
            result = self.vm.move_batch(&mut moved, back, cx);
        }
        if call.origin == Origin::Unmapped && !pages.is_empty() {
            layout.insert(Vma { start: pages.start, end: pages.end, ..moving.vma })?;
        }
        Ok(())
    }
}

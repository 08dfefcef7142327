//! [`Layout`]: the VMAs of an address space with what is counted of them, and the addresses that have a meaning of their own.

use alloc::boxed::Box;
use core::ops::Range;

use frame::Cx;
use frame::mm::{PAGE_SIZE, Prot, USER_END};
use refs::Waker;

use super::backing::Backing;
use super::change::Leftover;
use super::space::{Image, LOWEST, VmaName, VmaReport};
use super::vma::{Removed, TooManyVmas, Vma, VmaFlags, VmaMap};
use super::{Limits, overcommit};
use crate::error::{Errno, Result};
use crate::reclaim::{Held, OfMemory, Payer};

/// So many VMAs that show objects a process has without being charged for them: those that it is loaded with. What a process is charged for covers them.
pub const FREE_MAPPINGS: usize = 16;

/// For so many a program is charged at a time, and so many that it does not need it keeps.
const MAPPINGS_AT_A_TIME: usize = 8;

/// A change makes no more.
const MOST_NEW: usize = 2;

/// The VMAs, and the addresses that have a meaning of their own.
pub(super) struct Layout {
    vmas: VmaMap<Backing>,
    totals: Totals,
    /// What is charged for VMAs that show objects: for as many as may, but for [`FREE_MAPPINGS`].
    held: OfMemory,
    /// From the end of the program's data to the current break.
    pub(super) brk: Range<usize>,
    /// Mappings without an address are placed below this.
    pub(super) map_end: usize,
    pub(super) image: Image,
    /// Whether a call is in the middle of a change: see [`super::change`].
    pub(super) is_claimed: bool,
    /// Who changes it, or looks at it, before anybody else changes it: it waited longest when the last claim was given back. Over once that task runs.
    pub(super) turn: Option<Waker>,
    /// What that call still has to take away. Nearly always nothing.
    pub(super) leftover: Option<Box<Leftover>>,
    /// How often a VMA has come from another place, with its pages.
    pub(super) moves: u64,
}

/// How many pages the VMAs have, by what counts where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// All VMAs.
    pub(super) all: usize,
    /// Private writable VMAs without stacks.
    pub(super) data: usize,
    /// VMAs that grow downwards.
    pub(super) stack: usize,
    /// VMAs that show a file or shared memory.
    pub(super) objects: usize,
    /// VMAs that are shared (MAP_SHARED).
    pub(super) shared: usize,
    /// VMAs that are locked.
    pub(super) locked: usize,
    /// VMAs for which memory is promised.
    pub(super) accounted: usize,
}

impl Totals {
    /// Adds `pages` pages of a VMA; a negative number, wrapped, takes them away.
    #[inline(always)]
    fn add(&mut self, vma: &Vma<Backing>, pages: usize) {
        let add = |total: &mut usize| *total = total.wrapping_add(pages);
        add(&mut self.all);
        if vma.flags.contains(VmaFlags::GROWS_DOWN) {
            add(&mut self.stack);
        } else if is_data(vma) {
            add(&mut self.data);
        }
        if matches!(vma.backing, Backing::Object { .. }) {
            add(&mut self.objects);
        }
        if vma.flags.contains(VmaFlags::SHARED) {
            add(&mut self.shared);
        }
        if vma.flags.contains(VmaFlags::LOCKED) {
            add(&mut self.locked);
        }
        if vma.flags.contains(VmaFlags::ACCOUNTED) {
            add(&mut self.accounted);
            overcommit::add(pages);
        }
    }

    #[inline(always)]
    fn subtract(&mut self, vma: &Vma<Backing>) {
        self.add(vma, vma.pages().wrapping_neg());
    }
}

/// Whether a VMA counts against RLIMIT_DATA.
#[inline(always)]
fn is_data(vma: &Vma<Backing>) -> bool {
    vma.prot.contains(Prot::WRITE) && !vma.flags.intersects(VmaFlags::SHARED | VmaFlags::GROWS_DOWN)
}

/// Whether memory is promised for a VMA: it may all become the process's own.
#[inline(always)]
fn is_accountable(vma: &Vma<Backing>) -> bool {
    vma.prot.contains(Prot::WRITE) && !vma.flags.intersects(VmaFlags::SHARED | VmaFlags::NO_RESERVE)
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            vmas: VmaMap::default(),
            totals: Totals::default(),
            held: OfMemory::default(),
            brk: 0..0,
            map_end: USER_END,
            image: Image::default(),
            is_claimed: false,
            turn: None,
            leftover: None,
            moves: 0,
        }
    }
}

impl Layout {
    /// The VMAs, to look at.
    #[inline(always)]
    pub(super) fn vmas(&self) -> &VmaMap<Backing> {
        &self.vmas
    }

    /// How many pages they have.
    #[inline(always)]
    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Enters a VMA where nothing is mapped.
    ///
    /// # Errors
    /// There are too many.
    #[inline]
    pub(super) fn insert(&mut self, mut vma: Vma<Backing>) -> core::result::Result<(), TooManyVmas> {
        if is_accountable(&vma) {
            vma.flags |= VmaFlags::ACCOUNTED;
        }
        if self.vmas.room_for_objects() == 0 && matches!(vma.backing, Backing::Object { .. }) {
            self.charge_for_more();
        }
        if self.vmas.is_full() {
            return self.insert_where_it_may_fail(vma);
        }
        self.totals.add(&vma, vma.pages());
        if self.vmas.room_for_objects() > 0 { self.vmas.insert(vma) } else { self.insert_where_it_may_fail(vma) }
    }

    /// Charges for some more VMAs that show objects, where there is no room for as many as a change of a range may make. Where the budget has none, the change fails.
    #[inline(always)]
    fn prepare(&mut self, range: &Range<usize>) {
        if self.vmas.room_for_objects() < MOST_NEW {
            self.prepare_to_split(range);
        }
    }

    #[cold]
    fn prepare_to_split(&mut self, range: &Range<usize>) {
        let is_split = |at: usize| {
            self.vmas.find(at).is_some_and(|vma| vma.start < at && matches!(vma.backing, Backing::Object { .. }))
        };
        if is_split(range.start) || is_split(range.end) {
            self.charge_for_more();
        }
    }

    #[cold]
    fn charge_for_more(&mut self) {
        for more in [MAPPINGS_AT_A_TIME, MOST_NEW, 1] {
            if self.held.add(Held::Mapping, more as u32).is_ok() {
                return self.vmas.set_most_objects(self.vmas.objects() + self.vmas.room_for_objects() + more);
            }
        }
    }

    /// Charges somebody for what there is, in a copy that is charged to nobody.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn begin_charge(&mut self, payer: &Payer) -> Result<()> {
        if payer.is_nobody() {
            return Ok(());
        }
        let charged = self.vmas.objects().saturating_sub(FREE_MAPPINGS);
        if charged == 0 {
            self.held = OfMemory::of(payer);
        } else {
            self.held = OfMemory::of_nobody([charged as u32]);
            self.held.begin(payer)?;
        }
        self.vmas.set_most_objects(FREE_MAPPINGS + charged);
        Ok(())
    }

    /// Has somebody else charged for what there is, whatever the bound.
    pub(super) fn charge_to(&mut self, payer: &Payer) {
        if payer.is_nobody() || self.held.payer().is_nobody() {
            let charged = self.vmas.objects().saturating_sub(FREE_MAPPINGS);
            self.held = OfMemory::of_nobody([charged as u32]);
            self.vmas.set_most_objects(FREE_MAPPINGS + charged);
        }
        self.held.move_to(payer);
        if self.held.payer().is_nobody() {
            self.vmas.set_most_objects(usize::MAX);
        }
    }

    /// Nothing is charged any more, at the end of the address space.
    pub(super) fn end_charge(&mut self) {
        self.held.end();
    }

    /// Whether all VMAs lie below an address, and there can be so many more.
    #[inline(always)]
    pub(super) fn has_room_above(&self, address: usize, count: usize) -> bool {
        self.vmas.can_have(count) && self.vmas.iter().next_back().is_none_or(|last| last.end <= address)
    }

    /// Enters a VMA, for which no memory is promised, [above all others](Self::has_room_above), as it is.
    #[inline(always)]
    pub(super) fn push(&mut self, vma: Vma<Backing>) {
        debug_assert!(!is_accountable(&vma));
        self.totals.add(&vma, vma.pages());
        self.vmas.push(vma);
    }

    /// There may only be room for a VMA that becomes a part of its neighbour.
    #[cold]
    fn insert_where_it_may_fail(&mut self, vma: Vma<Backing>) -> core::result::Result<(), TooManyVmas> {
        let before = self.totals;
        self.totals.add(&vma, vma.pages());
        let inserted = self.vmas.insert(vma);
        if inserted.is_err() {
            overcommit::add(before.accounted.wrapping_sub(self.totals.accounted));
            self.totals = before;
        }
        inserted
    }

    /// Takes out what is mapped in a range if that is nothing, or no more than one VMA or a part of one, and counts it no longer;
    /// `unmap` is called before if it is something. Whether it is so; nothing is taken out if not.
    #[inline(always)]
    pub(super) fn remove_one(&mut self, range: &Range<usize>, unmap: impl FnOnce()) -> bool {
        self.prepare(range);
        let totals = &mut self.totals;
        let is_done = self.vmas.remove_one(range, |vma| {
            totals.add(vma, (range.len() / PAGE_SIZE).wrapping_neg());
            unmap();
        });
        self.give_charges_back();
        is_done
    }

    /// Takes out what is mapped in a range. It counts until it is [`forgotten`](Self::forget).
    ///
    /// # Errors
    /// There would be too many VMAs.
    pub(super) fn remove(
        &mut self,
        range: Range<usize>,
    ) -> core::result::Result<Option<Removed<Backing>>, TooManyVmas> {
        self.prepare(&range);
        self.vmas.remove(range)
    }

    /// Counts a VMA no longer that was taken out.
    pub(super) fn forget(&mut self, vma: &Vma<Backing>) {
        self.totals.subtract(vma);
        if matches!(vma.backing, Backing::Object { .. }) {
            self.vmas.forget_object();
            self.give_charges_back();
        }
    }

    /// Gives charges back for VMAs that show objects, where there are many more than are needed.
    #[inline(always)]
    fn give_charges_back(&mut self) {
        if self.vmas.room_for_objects() > 3 * MAPPINGS_AT_A_TIME && !self.held.payer().is_nobody() {
            self.give_some_back();
        }
    }

    #[cold]
    fn give_some_back(&mut self) {
        let charged = self.held.count(Held::Mapping) as usize;
        let less = (self.vmas.room_for_objects() - MAPPINGS_AT_A_TIME).min(charged);
        self.held.remove(Held::Mapping, less as u32);
        self.vmas.set_most_objects(FREE_MAPPINGS + charged - less);
    }

    /// Changes what is mapped in a range.
    ///
    /// # Errors
    /// There would be too many VMAs; nothing is changed.
    pub(super) fn change(
        &mut self,
        range: Range<usize>,
        mut change: impl FnMut(&mut Vma<Backing>),
    ) -> core::result::Result<(), TooManyVmas> {
        self.prepare(&range);
        let totals = &mut self.totals;
        self.vmas.change(range, |vma| {
            totals.subtract(vma);
            change(vma);
            if is_accountable(vma) {
                // For good, as what was written stays when the right to write goes.
                vma.flags |= VmaFlags::ACCOUNTED;
            }
            totals.add(vma, vma.pages());
        })
    }

    /// Moves the start of the VMA that begins at `start` down to `new_start`; nothing is mapped between.
    pub(super) fn grow_down(&mut self, start: usize, new_start: usize) {
        if let Some(vma) = self.vmas.find(start) {
            self.totals.add(vma, (start - new_start) / PAGE_SIZE);
        }
        self.vmas.grow_down(start, new_start);
    }

    /// Whether a copy of all this may be made.
    ///
    /// # Errors
    /// ENOMEM.
    #[inline]
    pub(super) fn admit_copy(&self) -> Result<()> {
        match overcommit::policy() {
            overcommit::Policy::Never => overcommit::admit(self.totals.accounted, 0, overcommit::Privilege::None),
            // Each VMA was admitted by itself, and would be again.
            _ => Ok(()),
        }
    }

    /// Makes this, which is empty, the beginning of a copy of `of`: all but the VMAs. Those that are not
    /// [copied](Self::push_copy) are [forgotten](Self::forget_copy).
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn begin_copy(&mut self, of: &Layout) -> Result<()> {
        self.vmas = VmaMap::with_capacity(of.vmas.len() + 1);
        if !self.vmas.reserve_chunks(of.vmas.len() + 1) {
            return Err(Errno::ENOMEM);
        }
        // Locks are not inherited: see mlock(2).
        self.totals = Totals { locked: 0, ..of.totals };
        overcommit::add(self.totals.accounted);
        self.brk = of.brk.clone();
        self.map_end = of.map_end;
        self.image = of.image.clone();
        Ok(())
    }

    /// Enters a copy of a VMA that [`begin_copy`](Self::begin_copy) has counted, behind all others.
    #[inline(always)]
    pub(super) fn push_copy(&mut self, vma: Vma<Backing>) {
        self.vmas.push(vma);
    }

    /// Counts a part of a VMA of the parent's no longer that the child does not get.
    pub(super) fn forget_copy(&mut self, vma: &Vma<Backing>, part: Range<usize>) {
        // The locks are not counted already.
        let locked = self.totals.locked;
        self.totals.add(vma, (part.len() / PAGE_SIZE).wrapping_neg());
        self.totals.locked = locked;
    }

    /// Takes what a call has left that did not come to its end, at the end of the address space: nobody has claimed it then.
    pub(super) fn take_leftover(&mut self) -> Option<Box<Leftover>> {
        (self.is_claimed, self.turn) = (false, None);
        self.leftover.take()
    }

    /// Takes the last VMAs out, some at a time, at the end of the address space; `None` once there are none.
    pub(super) fn pop_chunk(&mut self) -> Option<alloc::vec::Vec<Vma<Backing>>> {
        self.vmas.pop_chunk()
    }

    /// Takes all VMAs out at once, at the end of the address space, and gives back what was promised: with them, how many of their pages show objects.
    pub(super) fn take_vmas(&mut self) -> (VmaMap<Backing>, usize) {
        self.give_promises_back();
        (core::mem::take(&mut self.vmas), self.totals.objects)
    }

    /// Nothing is promised any more, at the end of the address space.
    pub(super) fn give_promises_back(&mut self) {
        overcommit::add(core::mem::take(&mut self.totals.accounted).wrapping_neg());
    }

    /// Where something of `len` bytes goes.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn place(&mut self, wish: usize, len: usize) -> Result<usize> {
        let wish = wish & !(PAGE_SIZE - 1);
        if wish >= LOWEST
            && let Some(end) = wish.checked_add(len).filter(|&end| end <= USER_END)
            && self.vmas.find_gap(len, wish..end) == Some(wish)
        {
            return Ok(wish);
        }
        self.vmas
            .find_gap_again(len, LOWEST..self.map_end)
            // Above the stack's room, if all else is full.
            .or_else(|| self.vmas.find_gap(len, LOWEST..USER_END))
            .ok_or(Errno::ENOMEM)
    }

    /// Whether a new VMA stays within the limits, in the place of what is mapped in `replaced`.
    ///
    /// # Errors
    /// ENOMEM.
    #[inline(always)]
    pub(super) fn admit(&self, vma: &Vma<Backing>, replaced: Range<usize>, limits: Limits) -> Result<()> {
        if limits.address_space != u64::MAX || limits.data != u64::MAX {
            self.admit_size(vma, replaced, limits)?;
        }
        if is_accountable(vma) { self.admit_commit(vma.end - vma.start, limits) } else { Ok(()) }
    }

    /// As [`admit`](Self::admit), where the sizes are limited.
    #[cold]
    fn admit_size(&self, vma: &Vma<Backing>, replaced: Range<usize>, limits: Limits) -> Result<()> {
        let len = vma.end - vma.start;
        // As on Linux, what is replaced counts for nothing, whatever it is.
        let free: usize = self
            .vmas
            .overlapping(replaced.clone())
            .map(|vma| vma.end.min(replaced.end) - vma.start.max(replaced.start))
            .sum();
        let added = len - free.min(len);
        if (self.totals.all * PAGE_SIZE + added) as u64 > limits.address_space {
            return Err(Errno::ENOMEM);
        }
        if is_data(vma) && (self.totals.data * PAGE_SIZE + added) as u64 > limits.data {
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    /// Whether `len` bytes more may be locked, of `limit` in all.
    ///
    /// # Errors
    /// EAGAIN.
    pub(super) fn admit_lock(&self, len: usize, limit: u64) -> Result<()> {
        let wanted = self.totals.locked.saturating_mul(PAGE_SIZE).saturating_add(len) as u64;
        if wanted > limit { Err(Errno::EAGAIN) } else { Ok(()) }
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

    pub(super) fn describe(&self, vma: &Vma<Backing>, cx: &Cx) -> VmaReport {
        let (offset, name) = match &vma.backing {
            Backing::Object { object, first } => {
                // Only the kernel's own cannot be made longer.
                let special =
                    if vma.flags.contains(VmaFlags::DONT_EXPAND) { object.get(cx).into_ref().name() } else { None };
                let name = match special {
                    Some(name) => VmaName::Special(name, object.downgrade()),
                    None => VmaName::Object(object.downgrade()),
                };
                (if special.is_some() { 0 } else { first.saturating_mul(PAGE_SIZE as u64) }, name)
            }
            Backing::Anonymous if vma.start < self.brk.end && self.brk.start < vma.end => (0, VmaName::Heap),
            Backing::Anonymous if vma.range().contains(&self.image.stack) => (0, VmaName::Stack),
            Backing::Anonymous => (0, VmaName::Anonymous),
        };
        VmaReport { range: vma.range(), prot: vma.prot, flags: vma.flags, offset, name }
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        overcommit::add(self.totals.accounted.wrapping_neg());
    }
}

//! User address spaces.
//!
//! Each mapped page's entry owns one reference to its frame; only untyped frames get here (invariant 5). Pages are unmapped in
//! this order: the entries are emptied, and those that led to tables without entries; all cores forget them; then the references go,
//! and the tables. The types of `tlb` keep that order.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use bitflags::bitflags;
use refs::{Cx, SpinGuard, SpinLock};

use super::metadata::{FrameNumber, Metadata};
use super::table::{ENTRIES, LEAF_SPAN, PageEntry, ROOT, Table, groups};
use super::tlb::Unlinked;
use super::walk::{self, Gone};
use super::{Access, Fault, PAGE_SHIFT, PAGE_SIZE, Reader, UFrame, Writer, machine, tlb};

/// The first address behind what user programs can map.
pub const USER_END: usize = 0x7fff_ffff_f000;

/// How many bytes one table of the lowest level maps: a piece of work on a range that has a bound.
pub const LEAF_BYTES: usize = LEAF_SPAN;

bitflags! {
    /// What user code may do with a page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Prot: u8 {
        /// Read.
        const READ = 1;
        /// Write.
        const WRITE = 2;
        /// Execute.
        const EXECUTE = 4;
    }
}

/// No memory for a page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// How a range is given to a child by [`VmSpace::fork_range`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Both see each other's writes.
    Shared,
    /// Both lose the right to write, so that the first write faults and can be given a copy.
    CopyOnWrite,
}

/// What is mapped at a page.
pub struct Entry {
    /// The frame (one more reference to it).
    pub frame: UFrame,
    /// What may be done with it.
    pub prot: Prot,
    /// Whether it was accessed through this mapping.
    pub accessed: bool,
    /// Whether it was written through this mapping.
    pub dirty: bool,
}

/// A user address space as the processor sees it: pages and their frames. Only untyped frames can be mapped (invariant 5).
/// All addresses are page-aligned and below [`USER_END`]; what is not is clamped or refused.
///
/// It has a lock of its own inside. Dropping it gives back its tables and frames, and leaves it on every core first.
pub struct VmSpace {
    /// The root table, of which this is the owner. The lock is what `table` asks for.
    root: SpinLock<Table>,
    /// The same, for those who only compare it.
    pub(super) number: FrameNumber,
    mapped: AtomicUsize,
}

impl VmSpace {
    /// An empty address space.
    pub fn new() -> Option<Self> {
        let root = Table::new_root()?;
        Some(VmSpace { root: SpinLock::new(root), number: root.0, mapped: AtomicUsize::new(0) })
    }

    /// Makes this the address space of the current core; nothing if it is already.
    #[inline(always)]
    pub fn activate(&self, _cx: &Cx) {
        // SAFETY: it is a root table, and `drop` leaves it before it gives it back.
        unsafe { tlb::activate(self.number) };
    }

    /// Maps a frame, in place of whatever was there.
    ///
    /// # Errors
    /// No memory for a table, or the address is not a user's; nothing was changed.
    #[inline]
    pub fn map(&self, address: usize, frame: UFrame, prot: Prot, cx: &Cx) -> Result<(), OutOfMemory> {
        if address >= USER_END {
            return Err(OutOfMemory);
        }
        let root = self.lock(cx);
        let index = address >> PAGE_SHIFT;
        // SAFETY: the lock is held. The reference of `frame` becomes the entry's.
        let old = unsafe {
            let leaf = root.leaf_or_new(ROOT, address)?;
            let old = leaf.get(index);
            let entry = PageEntry::new(frame.into_number(), PageEntry::flags(prot));
            if old.is_empty() {
                leaf.fill(index, entry);
                self.add_mapped(1);
                return Ok(());
            }
            Unlinked::new(leaf.entry(index).swap(entry).frame())
        };
        // SAFETY: the old entry was a page's.
        unsafe { walk::release(tlb::flush_replaced(self.number, address, old)) };
        Ok(())
    }

    /// Maps a frame where nothing is mapped; whether that was so.
    ///
    /// # Errors
    /// No memory for a table, or the address is not a user's; nothing was changed.
    #[inline]
    pub fn map_new(&self, address: usize, frame: UFrame, prot: Prot, cx: &Cx) -> Result<bool, OutOfMemory> {
        if address >= USER_END {
            return Err(OutOfMemory);
        }
        let root = self.lock(cx);
        let index = address >> PAGE_SHIFT;
        // SAFETY: the lock is held. The reference of `frame` becomes the entry's, which is empty.
        unsafe {
            let leaf = root.leaf_or_new(ROOT, address)?;
            if !leaf.get(index).is_empty() {
                return Ok(false);
            }
            leaf.fill(index, PageEntry::new(frame.into_number(), PageEntry::flags(prot)));
        }
        self.add_mapped(1);
        Ok(true)
    }

    /// Maps frames at pages that follow each other, where nothing is mapped: nothing happens to a page that is. Stops early where there is no memory
    /// for a table.
    #[inline(always)]
    pub fn map_run(&self, start: usize, frames: impl Iterator<Item = (UFrame, Prot)>, cx: &Cx) {
        let root = self.lock(cx);
        let mut leaf = None;
        let mut count = 0;
        for (address, (frame, prot)) in (start..USER_END).step_by(PAGE_SIZE).zip(frames) {
            let index = address >> PAGE_SHIFT;
            // SAFETY: the lock is held. The reference of `frame` becomes the entry's, which is empty.
            unsafe {
                if leaf.is_none() || index.is_multiple_of(ENTRIES) {
                    leaf = root.leaf_or_new(ROOT, address).ok();
                }
                let Some(leaf) = leaf else { break };
                if leaf.get(index).is_empty() {
                    leaf.fill(index, PageEntry::new(frame.into_number(), PageEntry::flags(prot)));
                    count += 1;
                }
            }
        }
        self.add_mapped(count);
    }

    /// Maps frames at those pages of a range that have none. `frame_at` is called for each such page's address, in order, and
    /// says what to map there, if anything; it runs under this address space's lock. Stops early where there is no memory for
    /// a table. How many were mapped.
    ///
    /// This is for mapping what surrounds a fault: the tables are walked once.
    pub fn map_absent(
        &self,
        range: Range<usize>,
        prot: Prot,
        mut frame_at: impl FnMut(usize) -> Option<UFrame>,
        cx: &Cx,
    ) -> usize {
        let (start, end) = clamp(range);
        let root = self.lock(cx);
        let flags = PageEntry::flags(prot);
        let mut count = 0;
        let mut address = start;
        'leaves: while address < end {
            let next = (address & !(LEAF_SPAN - 1)).saturating_add(LEAF_SPAN).min(end);
            let mut leaf = None;
            // SAFETY: the lock is held. Each frame's reference becomes its entry's.
            unsafe {
                let existing = root.leaf(ROOT, address);
                while address < next {
                    let index = address >> PAGE_SHIFT;
                    if existing.is_none_or(|leaf| leaf.get(index).is_empty())
                        && let Some(frame) = frame_at(address)
                    {
                        let into = match leaf {
                            Some(leaf) => leaf,
                            None => match root.leaf_or_new(ROOT, address) {
                                Ok(leaf) => leaf,
                                Err(OutOfMemory) => break 'leaves,
                            },
                        };
                        leaf = Some(into);
                        into.fill(index, PageEntry::new(frame.into_number(), flags));
                        count += 1;
                    }
                    address += PAGE_SIZE;
                }
            }
        }
        self.add_mapped(count);
        count
    }

    /// What is mapped at the page of `address`.
    #[inline]
    pub fn query(&self, address: usize, cx: &Cx) -> Option<Entry> {
        let root = self.lock(cx);
        // SAFETY: the lock is held; the entry has a reference, so there can be one more.
        unsafe {
            let entry = walk::find(*root, address)?.1;
            Metadata::of(entry.frame()).acquire();
            Some(Entry {
                frame: UFrame::from_number(entry.frame()),
                prot: entry.prot(),
                accessed: entry.has(PageEntry::ACCESSED),
                dirty: entry.has(PageEntry::DIRTY),
            })
        }
    }

    /// Changes what may be done with the page of `address`, if one is mapped (after a fault, or for copy-on-write's last
    /// holder).
    #[inline]
    pub fn set_prot(&self, address: usize, prot: Prot, cx: &Cx) {
        let root = self.lock(cx);
        // SAFETY: the lock is held.
        unsafe {
            if let Some((leaf, entry)) = walk::find(*root, address) {
                let flags = PageEntry::flags(prot);
                if walk::change(leaf, address >> PAGE_SHIFT, entry, flags) && entry.would_lose(flags) {
                    tlb::flush_page(self.number, address);
                } else {
                    tlb::flush_page_here(self.number, address);
                }
            }
        }
    }

    /// To change what may be done with pages of several ranges, and ask other cores once for all of them.
    pub fn change_rights(&self) -> RightsChange<'_> {
        RightsChange { space: self, start: USER_END, end: 0 }
    }

    /// Changes what may be done with all mapped pages of a range. `WRITE` is *not given* to frames with more than one
    /// reference if `private` (they are shared copy-on-write, and the next write must fault).
    pub fn protect(&self, range: Range<usize>, prot: Prot, private: bool, cx: &Cx) {
        self.change_rights().protect(range, prot, private, cx);
    }

    /// Returns whether anything changed. Cores still remember what was.
    fn protect_entries(&self, (start, end): (usize, usize), prot: Prot, private: bool, cx: &Cx) -> bool {
        let root = self.lock(cx);
        let flags = PageEntry::flags(prot);
        let mut changed = false;
        let each_entry = |leaf: Table, index: usize, entry: PageEntry| {
            let mut flags = flags;
            if private && flags & PageEntry::WRITABLE != 0 {
                // SAFETY: the frame is mapped, so it is in use.
                if unsafe { Metadata::of(entry.frame()) }.references() > 1 {
                    flags &= !PageEntry::WRITABLE;
                }
            }
            // SAFETY: the lock is held.
            changed |= unsafe { walk::change(leaf, index, entry, flags) };
        };
        // SAFETY: the lock is held.
        unsafe { walk::each_leaf(*root, start, end, &mut walk::each(each_entry)) };
        changed
    }

    /// Forgets that the pages of a range were accessed, or written, or both; calls `noted` for the address of each page for
    /// which that was noted.
    pub fn clear_noted(&self, range: Range<usize>, what: Noted, mut noted: impl FnMut(usize), cx: &Cx) {
        let (start, end) = clamp(range);
        let root = self.lock(cx);
        let bits = match what {
            Noted::Accessed => PageEntry::ACCESSED,
            Noted::Dirty => PageEntry::DIRTY,
        };
        let mut changed = false;
        let each_leaf_pages = &mut |leaf: Table, base: usize, first: usize, last: usize| {
            walk::each(|leaf: Table, index: usize, entry: PageEntry| {
                if entry.has(bits) {
                    // SAFETY: the lock is held.
                    unsafe { leaf.entry(index) }.remove(bits);
                    changed = true;
                    noted(base + index * PAGE_SIZE);
                }
            })(leaf, base, first, last)
        };
        // SAFETY: the lock is held.
        unsafe { walk::each_leaf(*root, start, end, each_leaf_pages) };
        if changed {
            tlb::flush(self.number, start, end);
        }
    }

    /// Unmaps a range and returns tables that become empty. How many pages were mapped.
    pub fn unmap(&self, range: Range<usize>, cx: &Cx) -> usize {
        let (start, end) = clamp(range);
        if start >= end {
            return 0;
        }
        let root = self.lock(cx);
        let mut gone = Gone::new(self.number, start, end);
        // SAFETY: the lock is held.
        let count = unsafe {
            if start / LEAF_SPAN == (end - 1) / LEAF_SPAN {
                match root.leaf(ROOT, start) {
                    Some(leaf) => {
                        let (first, last) = ((start >> PAGE_SHIFT) % ENTRIES, ((end - 1) >> PAGE_SHIFT) % ENTRIES);
                        let count = walk::clear_leaf(leaf, first, last, &mut gone);
                        if leaf.state().live == 0 {
                            walk::prune(*root, ROOT, start, &mut gone);
                        }
                        count
                    }
                    None => 0,
                }
            } else {
                walk::clear(*root, ROOT, start, end, &mut gone)
            }
        };
        self.remove_mapped(count);
        count
    }

    /// Unmaps pages of a range from its start on: one *batch*, as many as a full table has, for which other cores are asked once. The range begins behind them then; it is empty if
    /// that was all.
    pub fn unmap_batch(&self, range: &mut Range<usize>, cx: &Cx) {
        let (start, end) = clamp(range.clone());
        let mut left = start..end;
        let root = self.lock(cx);
        let mut gone = Gone::new(self.number, end, start);
        let mut count = 0;
        // SAFETY: the lock is held.
        unsafe {
            while let Some((_, part)) = walk::next_of_batch(*root, &mut left, &mut gone) {
                gone.extend(&part);
                count += walk::clear(*root, ROOT, part.start, part.end, &mut gone);
            }
        }
        self.remove_mapped(count);
        *range = left;
    }

    /// Gives the pages of a range that are mapped here to `child` at the same addresses.
    ///
    /// # Errors
    /// No memory for a table; the child has a part of the range.
    pub fn fork_range(
        &self,
        child: &VmSpace,
        range: Range<usize>,
        sharing: Sharing,
        cx: &Cx,
    ) -> Result<(), OutOfMemory> {
        self.change_rights().fork(child, range, sharing, cx)
    }

    /// Returns also whether pages of this address space lost rights. Cores still remember what was.
    fn fork_entries(
        &self,
        child: &VmSpace,
        (start, end): (usize, usize),
        sharing: Sharing,
        cx: &Cx,
    ) -> (bool, Result<(), OutOfMemory>) {
        if core::ptr::eq(self, child) {
            return (false, Ok(()));
        }
        let root = self.lock(cx);
        // The parent's first.
        let child_root = child.root.lock_after(&root, cx);
        let lost = if sharing == Sharing::CopyOnWrite { PageEntry::WRITABLE } else { 0 };
        let mut copied = 0;
        let mut protected = false;
        let copy = &mut |leaf: Table, base: usize, first: usize, last: usize| {
            // SAFETY: both locks are held.
            let (pages, lost_some) = unsafe {
                if leaf.state().occupied & groups(first, last) == 0 {
                    return Ok(());
                }
                walk::copy_leaf(leaf, child_root.leaf_or_new(ROOT, base)?, first, last, lost, &mut |index, old| {
                    walk::release(tlb::flush_replaced(child.number, base + index * PAGE_SIZE, old));
                })
            };
            copied += pages;
            protected |= lost_some;
            Ok(())
        };
        // SAFETY: the lock is held.
        let result = unsafe { walk::try_each_leaf(*root, ROOT, start, end, copy) };
        child.add_mapped(copied);
        (protected, result)
    }

    /// Moves mapped pages of a range to another, disjoint one, from its start on, which goes to `to`: one batch, as [`unmap_batch`](Self::unmap_batch) unmaps. The range begins behind
    /// them then.
    ///
    /// # Errors
    /// No memory for a table, or the target is not all user addresses or overlaps; pages that are still in the range are where they were.
    pub fn move_batch(&self, from: &mut Range<usize>, to: usize, cx: &Cx) -> Result<(), OutOfMemory> {
        let (start, end) = clamp(from.clone());
        let mut left = start..end;
        let to = to & !(PAGE_SIZE - 1);
        let to_end = to.checked_add(left.len()).filter(|end| *end <= USER_END).ok_or(OutOfMemory)?;
        if start < to_end && to < end {
            return Err(OutOfMemory);
        }
        let root = self.lock(cx);
        let mut gone = Gone::new(self.number, end, start);
        let mut result = Ok(());
        let mut replaced = 0;
        // SAFETY: the lock is held. An entry's reference moves with it.
        unsafe {
            while result.is_ok()
                && let Some((leaf, part)) = walk::next_of_batch(*root, &mut left, &mut gone)
            {
                gone.extend(&part);
                gone.note_moved();
                let first = part.start;
                for address in part.step_by(PAGE_SIZE) {
                    let index = address >> PAGE_SHIFT;
                    if leaf.get(index).is_empty() {
                        continue;
                    }
                    let target = to + (address - start);
                    let Ok(into) = root.leaf_or_new(ROOT, target) else {
                        left.start = address;
                        result = Err(OutOfMemory);
                        break;
                    };
                    let old = into.clear(target >> PAGE_SHIFT);
                    into.fill(target >> PAGE_SHIFT, leaf.clear(index));
                    if !old.is_empty() {
                        walk::release(tlb::flush_replaced(self.number, target, Unlinked::new(old.frame())));
                        replaced += 1;
                    }
                }
                if leaf.state().live == 0 {
                    walk::prune(*root, ROOT, first, &mut gone);
                }
            }
        }
        self.remove_mapped(replaced);
        *from = left;
        result
    }

    /// Where in a range the first page may be mapped: nothing is mapped in front of it. `None` if nothing is mapped at all.
    ///
    /// It looks at tables only, so it is quick however large the range is; the page itself may be up to [`LEAF_BYTES`] further on.
    pub fn first_mapped(&self, range: Range<usize>, cx: &Cx) -> Option<usize> {
        let (start, end) = clamp(range);
        if start >= end {
            return None;
        }
        let root = self.lock(cx);
        // SAFETY: the lock is held.
        unsafe { walk::first_leaf(*root, ROOT, start, end) }
    }

    /// Leaves this address space on the current core: what is unmapped from here on need not be forgotten by it. For the end of an
    /// address space, before its pages go in steps.
    pub fn leave(&self, _cx: &Cx) {
        tlb::leave(self.number);
    }

    /// How many pages of a range are mapped.
    pub fn mapped_in(&self, range: Range<usize>, cx: &Cx) -> usize {
        let (start, end) = clamp(range);
        let root = self.lock(cx);
        let mut count = 0;
        // SAFETY: the lock is held.
        unsafe { walk::each_leaf(*root, start, end, &mut walk::each(|_, _, _| count += 1)) };
        count
    }

    /// How many frames its tables of the lowest level take; nearly all that its tables take.
    pub fn leaf_tables(&self, cx: &Cx) -> usize {
        let root = self.lock(cx);
        // SAFETY: the lock is held.
        unsafe { walk::leaf_tables(*root, ROOT) }
    }

    /// How many pages are mapped.
    #[inline(always)]
    pub fn mapped_pages(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    /// To read this address space's memory from `address`, as the user program itself would. Each copy makes the address space
    /// the active one. A range that leaves user addresses gives a reader whose first copy there faults.
    #[inline(always)]
    pub fn reader<'a>(&'a self, address: usize, len: usize, _cx: &'a Cx) -> Reader<'a> {
        // SAFETY: the address space is borrowed for `'a`.
        unsafe { Reader::user(self.number, address, len) }
    }

    /// To write this address space's memory from `address`, as [`reader`](Self::reader) reads it.
    #[inline(always)]
    pub fn writer<'a>(&'a self, address: usize, len: usize, _cx: &'a Cx) -> Writer<'a> {
        // SAFETY: as for `reader`.
        unsafe { Writer::user(self.number, address, len) }
    }

    /// Reads a 32-bit word atomically (a futex).
    ///
    /// # Errors
    /// The word cannot be read now, or is not aligned.
    pub fn load_u32(&self, address: usize, cx: &Cx) -> Result<u32, Fault> {
        let fault = Fault { address, access: Access::Read };
        if !address.is_multiple_of(4) || address >= USER_END {
            return Err(fault);
        }
        self.activate(cx);
        // SAFETY: aligned and below `USER_END`.
        unsafe { machine::load_u32(core::ptr::with_exposed_provenance(address)) }.ok_or(fault)
    }

    /// Replaces a 32-bit word by `new` if it is `expected`; the value found.
    ///
    /// # Errors
    /// The word cannot be written now, or is not aligned.
    pub fn compare_exchange_u32(&self, address: usize, expected: u32, new: u32, cx: &Cx) -> Result<u32, Fault> {
        let fault = Fault { address, access: Access::Write };
        if !address.is_multiple_of(4) || address >= USER_END {
            return Err(fault);
        }
        self.activate(cx);
        // SAFETY: aligned and below `USER_END`.
        unsafe { machine::compare_exchange_u32(core::ptr::with_exposed_provenance_mut(address), expected, new) }
            .ok_or(fault)
    }

    #[inline(always)]
    pub(super) fn lock<'a>(&'a self, cx: &'a Cx) -> SpinGuard<'a, Table> {
        self.root.lock(cx)
    }

    /// Only under the lock, so a load and a store do.
    #[inline(always)]
    fn add_mapped(&self, count: usize) {
        self.mapped.store(self.mapped.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// All pages were taken out. Only under the lock.
    pub(super) fn forget_mapped(&self) {
        self.mapped.store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn remove_mapped(&self, count: usize) {
        self.mapped.store(self.mapped.load(Ordering::Relaxed) - count, Ordering::Relaxed);
    }
}

impl Drop for VmSpace {
    fn drop(&mut self) {
        let unused = tlb::leave(self.number);
        let root = *self.root.get_mut();
        let mut gone = Gone::at_end(self.number, unused);
        // SAFETY: this is the last that knows of the tables. No core uses them, so nothing of them waits in `gone`.
        unsafe {
            walk::clear(root, ROOT, 0, USER_END, &mut gone);
            Table::give_back_root(Unlinked::new(root.0).forgotten(unused));
        }
    }
}

/// Pages of an address space that have other rights now than cores may remember, until all have forgotten: when this is dropped.
///
/// They show the same frames as before, so what a core remembers harms nobody but the program. Whoever relies on rights that are gone waits for that.
#[must_use]
pub struct RightsChange<'a> {
    space: &'a VmSpace,
    /// From the first of them to the last.
    start: usize,
    end: usize,
}

impl RightsChange<'_> {
    /// As [`VmSpace::protect`].
    pub fn protect(&mut self, range: Range<usize>, prot: Prot, private: bool, cx: &Cx) {
        let range = clamp(range);
        if self.space.protect_entries(range, prot, private, cx) {
            self.add(range);
        }
    }

    /// As [`VmSpace::fork_range`].
    ///
    /// # Errors
    /// Its own.
    pub fn fork(&mut self, child: &VmSpace, range: Range<usize>, sharing: Sharing, cx: &Cx) -> Result<(), OutOfMemory> {
        let range = clamp(range);
        let (lost_some, result) = self.space.fork_entries(child, range, sharing, cx);
        if lost_some {
            self.add(range);
        }
        result
    }

    fn add(&mut self, (start, end): (usize, usize)) {
        (self.start, self.end) = (self.start.min(start), self.end.max(end));
    }
}

impl Drop for RightsChange<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.start < self.end {
            tlb::flush(self.space.number, self.start, self.end);
        }
    }
}

/// What the processor notes in a page's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The page was accessed.
    Accessed,
    /// The page was written.
    Dirty,
}

/// The part of a range that is whole pages of user addresses; its first and last page are included if they are touched.
#[inline(always)]
fn clamp(range: Range<usize>) -> (usize, usize) {
    let start = (range.start & !(PAGE_SIZE - 1)).min(USER_END);
    let end = range.end.min(USER_END).next_multiple_of(PAGE_SIZE);
    (start, end.max(start))
}

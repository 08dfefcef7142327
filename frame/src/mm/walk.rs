//! Ranges of pages in page tables: finding, visiting, copying and emptying them.
//!
//! All of this is `unsafe` as `table` says: the caller holds the address space's lock.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::metadata::{FrameNumber, Kind, Metadata, records};
use super::table::{ENTRIES, EntryCell, GROUP, LEAF_SPAN, PageEntry, ROOT, Table, groups, shift};
use super::tlb::{Forgotten, Unlinked, Unused};
use super::{OutOfMemory, PAGE_SHIFT, UFrame, USER_END, supply, tlb};

/// The leaf table and the entry of a page that is mapped.
///
/// # Safety
/// See `table`.
#[inline(always)]
pub(super) unsafe fn find(root: Table, address: usize) -> Option<(Table, PageEntry)> {
    if address >= USER_END {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let leaf = root.leaf(ROOT, address)?;
        let entry = leaf.get(address >> PAGE_SHIFT);
        (!entry.is_empty()).then_some((leaf, entry))
    }
}

/// Gives an entry other flags, without losing what the processor notes in it meanwhile; whether anything changed.
///
/// # Safety
/// See `table`.
#[inline(always)]
pub(super) unsafe fn change(leaf: Table, index: usize, entry: PageEntry, flags: u64) -> bool {
    // SAFETY: the caller's promise.
    let place = unsafe { leaf.entry(index) };
    let mut old = entry;
    loop {
        let new = old.with_flags(flags);
        if new == old {
            return false;
        }
        match place.replace(old, new) {
            Ok(()) => return true,
            Err(now) => old = now,
        }
    }
}

/// Gives back an entry's reference to a page.
///
/// # Safety
/// It is a page.
#[inline(always)]
pub(super) unsafe fn release(page: Forgotten) {
    // SAFETY: a mapped frame is untyped, and the entry's reference is passed on.
    drop(unsafe { UFrame::from_number(page.frame()) });
}

/// Calls `visit` for each entry in use from `first` to `last`: index, place, value.
///
/// # Safety
/// See `table`.
#[inline(always)]
unsafe fn each_in_use(table: Table, first: usize, last: usize, visit: impl FnMut(usize, &EntryCell, PageEntry)) {
    // SAFETY: the caller's promise.
    let (entries, touched) = unsafe { (table.entries(), table.state().occupied & groups(first, last)) };
    each_in_groups(entries, touched, first, last, visit);
}

/// [`each_in_use`], only in these groups.
#[inline(always)]
fn each_in_groups(
    entries: &[EntryCell; ENTRIES],
    groups: u64,
    first: usize,
    last: usize,
    mut visit: impl FnMut(usize, &EntryCell, PageEntry),
) {
    let mut left = groups;
    while left != 0 {
        let group = left.trailing_zeros() as usize * GROUP;
        left &= left - 1;
        let mut index = group.max(first);
        let end = (group + GROUP - 1).min(last);
        while index <= end {
            // The remainder changes nothing; it is there so that this cannot panic.
            let place = &entries[index % ENTRIES];
            let entry = place.load();
            if !entry.is_empty() {
                visit(index, place, entry);
            }
            index += 1;
        }
    }
}

/// The bits of the groups that lie wholly within `first..=last`.
#[inline(always)]
fn whole_groups(first: usize, last: usize) -> u64 {
    let (start, end) = (first.div_ceil(GROUP), (last + 1) / GROUP);
    if start < end { groups(start * GROUP, end * GROUP - 1) } else { 0 }
}

/// As [`each_in_use`], for tables above the leaves: they have few entries, so it stops behind the last one there is. `visit`
/// may empty the entry it is called for.
///
/// # Safety
/// See `table`.
#[inline(always)]
unsafe fn each_below(table: Table, first: usize, last: usize, mut visit: impl FnMut(usize, &EntryCell, Table)) {
    // SAFETY: the caller's promise.
    let (entries, state) = unsafe { (table.entries(), table.state()) };
    let (mut live, mut left) = (state.live, state.occupied & groups(first, last));
    while left != 0 {
        let mut index = left.trailing_zeros() as usize * GROUP;
        left &= left - 1;
        loop {
            // The remainder changes nothing; it is there so that this cannot panic.
            let place = &entries[index % ENTRIES];
            let entry = place.load();
            if !entry.is_empty() {
                if (first..=last).contains(&index) {
                    visit(index, place, Table(entry.frame()));
                }
                live -= 1;
                if live == 0 {
                    return;
                }
            }
            index += 1;
            if index.is_multiple_of(GROUP) {
                break;
            }
        }
    }
}

/// Makes a visitor of leaf tables from a visitor of their entries in use.
#[inline(always)]
pub(super) fn each(
    mut visit: impl FnMut(Table, usize, PageEntry),
) -> impl FnMut(Table, usize, usize, usize) -> Result<(), OutOfMemory> {
    move |leaf, _base, first, last| {
        // SAFETY: `each_leaf`'s caller holds the lock.
        unsafe { each_in_use(leaf, first, last, |index, _, entry| visit(leaf, index, entry)) };
        Ok(())
    }
}

/// Calls `visit` for each leaf table with pages in a range: the table, the address of its first page, and the first and last
/// entry that are in the range.
///
/// # Safety
/// See `table`.
pub(super) unsafe fn each_leaf(
    root: Table,
    start: usize,
    end: usize,
    visit: &mut dyn FnMut(Table, usize, usize, usize) -> Result<(), OutOfMemory>,
) {
    // SAFETY: the caller's promise. Such a visitor never fails.
    let _: Result<(), OutOfMemory> = unsafe { try_each_leaf(root, ROOT, start, end, visit) };
}

/// As [`each_leaf`], from a table of any level, and stops at the first error.
///
/// # Errors
/// The visitor's.
///
/// # Safety
/// See `table`.
pub(super) unsafe fn try_each_leaf(
    table: Table,
    level: u32,
    start: usize,
    end: usize,
    visit: &mut dyn FnMut(Table, usize, usize, usize) -> Result<(), OutOfMemory>,
) -> Result<(), OutOfMemory> {
    if start >= end {
        return Ok(());
    }
    let base = start & !(LEAF_SPAN - 1);
    if end - base <= LEAF_SPAN {
        // Most ranges are within one leaf table.
        // SAFETY: the caller's promise.
        return match unsafe { table.leaf(level, start) } {
            Some(leaf) => visit(leaf, base, (start >> PAGE_SHIFT) % ENTRIES, ((end - 1) >> PAGE_SHIFT) % ENTRIES),
            None => Ok(()),
        };
    }
    let (first, last) = ((start >> shift(level)) % ENTRIES, ((end - 1) >> shift(level)) % ENTRIES);
    let mut result = Ok(());
    // SAFETY: the caller's promise, which holds for the tables below as well.
    unsafe {
        each_below(table, first, last, |index, _, below| {
            if result.is_ok() {
                let (start, end) = part(level, index, start, end);
                result = try_each_leaf(below, level - 1, start, end, visit);
            }
        });
    }
    result
}

/// How many leaf tables there are below a table of `level`, from 2 on. It looks at the tables above them.
///
/// # Safety
/// See `table`.
pub(super) unsafe fn leaf_tables(table: Table, level: u32) -> usize {
    if level == 2 {
        // SAFETY: the caller's promise.
        return unsafe { table.state() }.live as usize;
    }
    let last = if level == ROOT { ENTRIES / 2 } else { ENTRIES } - 1;
    let mut count = 0;
    // SAFETY: the caller's promise, which holds for the tables below as well.
    unsafe { each_below(table, 0, last, |_, _, below| count += leaf_tables(below, level - 1)) };
    count
}

/// Where the part of a range begins that the first leaf table with a page in it covers.
///
/// # Safety
/// See `table`; the range is not empty and within what the table maps.
pub(super) unsafe fn first_leaf(table: Table, level: u32, start: usize, end: usize) -> Option<usize> {
    if level == 1 {
        return Some(start);
    }
    let (first, last) = ((start >> shift(level)) % ENTRIES, ((end - 1) >> shift(level)) % ENTRIES);
    // SAFETY: the caller's promise, which holds for the tables below as well.
    unsafe {
        let mut left = table.state().occupied & groups(first, last);
        while left != 0 {
            let group = left.trailing_zeros() as usize * GROUP;
            left &= left - 1;
            for index in group.max(first)..=(group + GROUP - 1).min(last) {
                let entry = table.get(index);
                if entry.is_empty() {
                    continue;
                }
                let (start, end) = part(level, index, start, end);
                if let Some(found) = first_leaf(Table(entry.frame()), level - 1, start, end) {
                    return Some(found);
                }
            }
        }
    }
    None
}

/// Takes the part off a range that the next leaf table with pages in it maps; with the table. `None` if there is none (the range is empty then), or what it leads to is too much to
/// be unlinked in the same batch.
///
/// # Safety
/// See `table`.
pub(super) unsafe fn next_of_batch(
    root: Table,
    range: &mut Range<usize>,
    gone: &mut Gone,
) -> Option<(Table, Range<usize>)> {
    if range.start >= range.end {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let found = first_leaf(root, ROOT, range.start, range.end);
        range.start = found.unwrap_or(range.end);
        let leaf = root.leaf(ROOT, found?)?;
        let end = ((range.start & !(LEAF_SPAN - 1)) + LEAF_SPAN).min(range.end);
        gone.admits(leaf).then(|| (leaf, core::mem::replace(&mut range.start, end)..end))
    }
}

/// The part of a range that the entry at `index` of the table of `level` that covers it maps.
#[inline(always)]
fn part(level: u32, index: usize, start: usize, end: usize) -> (usize, usize) {
    let span = 1 << shift(level);
    let from = (start & !(span * ENTRIES - 1)) + index * span;
    (start.max(from), end.min(from + span))
}

/// Gives the entries from `first` to `last` of one leaf table to another as well, with references of their own and without
/// the rights `lost`, which the first loses too. `replaced` gets each entry that was there. How many more pages the second
/// table has then, and whether the first lost anything.
///
/// # Safety
/// See `table`, for both.
pub(super) unsafe fn copy_leaf(
    from: Table,
    to: Table,
    first: usize,
    last: usize,
    lost: u64,
    replaced: &mut dyn FnMut(usize, Unlinked),
) -> (usize, bool) {
    // SAFETY: the caller's promise. A mapped frame's number is in range, and has a reference, so that there can be one more.
    unsafe {
        let touched = from.state().occupied & groups(first, last);
        let quick = touched & whole_groups(first, last) & !to.state().occupied;
        let (mut pages, mut lost_some) = copy_groups(from.entries(), to.entries(), quick, lost);
        let targets = to.entries();
        each_in_groups(from.entries(), touched & !quick, first, last, |index, place, entry| {
            if entry.has(lost) {
                place.remove(lost);
                lost_some = true;
            }
            Metadata::of(entry.frame()).acquire();
            let copy = entry.without(lost | PageEntry::DIRTY);
            let old = targets[index % ENTRIES].swap(copy);
            if old.is_empty() {
                pages += 1;
            } else {
                replaced(index, Unlinked::new(old.frame()));
            }
        });
        let state = to.state();
        state.live += pages as u64;
        state.occupied |= touched;
        (pages, lost_some)
    }
}

/// [`copy_leaf`] for whole groups of entries, to where nothing is.
///
/// # Safety
/// See `table`, for both.
#[inline(never)]
unsafe fn copy_groups(from: &[EntryCell; ENTRIES], to: &[EntryCell; ENTRIES], groups: u64, lost: u64) -> (usize, bool) {
    let records = records();
    let (mut left, mut pages, mut lost_some) = (groups, 0, false);
    let (from, to) = (from.as_chunks::<GROUP>().0, to.as_chunks::<GROUP>().0);
    while left != 0 {
        let group = left.trailing_zeros() as usize;
        left &= left - 1;
        let (from, to) = (&from[group % from.len()], &to[group % to.len()]);
        for index in 0..GROUP {
            let entry = from[index].load();
            if entry.is_empty() {
                continue;
            }
            if entry.has(lost) {
                from[index].remove(lost);
                lost_some = true;
            }
            // SAFETY: a mapped frame's number is in range, and has a reference, so that there can be one more.
            unsafe { records.of(entry.frame()) }.acquire();
            to[index].store(entry.without(lost | PageEntry::DIRTY));
            pages += 1;
        }
    }
    (pages, lost_some)
}

/// Empties all entries of a range in `table` of `level`, and unlinks tables below that become empty. How many pages were
/// mapped. Frames and tables go to `gone`.
///
/// # Safety
/// See `table`; the range is not empty and within what the table maps.
pub(super) unsafe fn clear(table: Table, level: u32, start: usize, end: usize, gone: &mut Gone) -> usize {
    let (first, last) = ((start >> shift(level)) % ENTRIES, ((end - 1) >> shift(level)) % ENTRIES);
    if level == 1 {
        // SAFETY: the caller's promise.
        return unsafe { clear_leaf(table, first, last, gone) };
    }
    let mut pages = 0;
    let mut emptied = 0;
    // SAFETY: the caller's promise, which holds for the tables below as well.
    unsafe {
        each_below(table, first, last, |index, place, below| {
            let (start, end) = part(level, index, start, end);
            pages += clear(below, level - 1, start, end, gone);
            if below.state().live == 0 {
                place.store(PageEntry::EMPTY);
                emptied += 1;
                gone.add_table(Unlinked::new(below.0));
            }
        });
        let state = table.state();
        state.live -= emptied;
        if state.live == 0 {
            state.occupied = 0;
        }
    }
    pages
}

/// Unlinks the tables on the way to `address` that are empty, `table` of `level` excepted.
///
/// # Safety
/// See `table`.
pub(super) unsafe fn prune(table: Table, level: u32, address: usize, gone: &mut Gone) {
    if level == 1 {
        return;
    }
    let index = address >> shift(level);
    // SAFETY: the caller's promise, which holds for the tables below as well.
    unsafe {
        let entry = table.get(index);
        if entry.is_empty() {
            return;
        }
        let below = Table(entry.frame());
        prune(below, level - 1, address, gone);
        if below.state().live == 0 {
            table.clear(index);
            gone.add_table(Unlinked::new(below.0));
        }
    }
}

/// [`clear`] for the entries from `first` to `last` of a leaf table.
///
/// # Safety
/// As for [`clear`].
#[inline]
pub(super) unsafe fn clear_leaf(leaf: Table, first: usize, last: usize, gone: &mut Gone) -> usize {
    let whole = whole_groups(first, last);
    let mut pages = 0;
    // SAFETY: the caller's promise. The entries' references are passed on.
    unsafe {
        let touched = leaf.state().occupied & groups(first, last);
        match gone.unused {
            Some(unused) => {
                pages += clear_groups(leaf.entries(), touched & whole, unused);
                each_in_groups(leaf.entries(), touched & !whole, first, last, |_, place, entry| {
                    place.store(PageEntry::EMPTY);
                    pages += 1;
                    release(Unlinked::new(entry.frame()).forgotten(unused));
                });
            }
            None => each_in_groups(leaf.entries(), touched, first, last, |_, place, _| {
                pages += 1;
                gone.keep(Unlinked::new(place.swap(PageEntry::EMPTY).frame()));
            }),
        }
        let state = leaf.state();
        state.live -= pages as u64;
        state.occupied = if state.live == 0 { 0 } else { state.occupied & !whole };
    }
    pages
}

/// [`clear_leaf`] for whole groups of entries of an address space that no core uses.
///
/// # Safety
/// As for [`clear`].
#[inline(never)]
unsafe fn clear_groups(entries: &[EntryCell; ENTRIES], groups: u64, unused: Unused) -> usize {
    let (records, supply) = (records(), supply::here());
    let entries = entries.as_chunks::<GROUP>().0;
    let (mut left, mut pages) = (groups, 0);
    while left != 0 {
        let group = &entries[left.trailing_zeros() as usize % entries.len()];
        left &= left - 1;
        for place in group {
            let entry = place.load();
            if entry.is_empty() {
                continue;
            }
            place.store(PageEntry::EMPTY);
            pages += 1;
            // SAFETY: a mapped frame's number is in range, and the entry's reference ends here.
            unsafe {
                let page = Unlinked::new(entry.frame()).forgotten(unused).frame();
                let record = records.of(page);
                if record.release(Kind::Untyped) {
                    supply.give_charged(page, record);
                }
            }
        }
    }
    pages
}

/// Pages and tables that were unlinked, until all cores have forgotten them: at the latest when this is dropped, under the lock.
pub(super) struct Gone {
    space: FrameNumber,
    start: usize,
    end: usize,
    /// Then nothing has to wait.
    unused: Option<Unused>,
    /// For how many frames [`admits`](Gone::admits) has said that there is room.
    admitted: usize,
    /// Pages are mapped elsewhere now.
    has_moved: bool,
    len: usize,
    frames: [MaybeUninit<Unlinked>; Gone::ROOM],
}

impl Gone {
    /// A leaf table's pages, and the tables on the way, or as much of many: cores are asked once for all of them.
    const ROOM: usize = ENTRIES + ROOT as usize;

    /// For what was mapped in this range, and the tables on the way to it. The caller holds the address space's lock.
    #[inline(always)]
    pub(super) fn new(space: FrameNumber, start: usize, end: usize) -> Self {
        Gone {
            space,
            start,
            end,
            unused: tlb::unused(space),
            admitted: 0,
            has_moved: false,
            len: 0,
            frames: [const { MaybeUninit::uninit() }; Gone::ROOM],
        }
    }

    /// Whether there is room for all that a leaf table leads to, and for the tables on the way, such that nothing is given back before all of that is unlinked, too. If so, that
    /// room is taken.
    ///
    /// # Safety
    /// See `table`.
    unsafe fn admits(&mut self, leaf: Table) -> bool {
        // SAFETY: the caller's promise.
        let more = unsafe { leaf.state() }.live as usize + ROOT as usize;
        let is_first = self.admitted == 0;
        if !is_first && self.admitted + more > Self::ROOM {
            return false;
        }
        self.admitted += more;
        true
    }

    /// What is unlinked from here on is in this range as well.
    pub(super) fn extend(&mut self, range: &Range<usize>) {
        (self.start, self.end) = (self.start.min(range.start), self.end.max(range.end));
    }

    /// Pages are mapped elsewhere now, which cores are to be told even if no frame was unlinked.
    pub(super) fn note_moved(&mut self) {
        self.has_moved = self.unused.is_none();
    }

    /// For an address space that ends.
    #[inline(always)]
    pub(super) fn at_end(space: FrameNumber, unused: Unused) -> Self {
        let frames = [const { MaybeUninit::uninit() }; Gone::ROOM];
        Gone { space, start: 0, end: USER_END, unused: Some(unused), admitted: 0, has_moved: false, len: 0, frames }
    }

    /// # Safety
    /// It is a table.
    unsafe fn add_table(&mut self, table: Unlinked) {
        match self.unused {
            // SAFETY: the caller's promise, and whoever unlinked it saw that it has no entries.
            Some(unused) => unsafe { Table::give_back(table.forgotten(unused)) },
            None => self.keep(table),
        }
    }

    #[inline(always)]
    fn keep(&mut self, frame: Unlinked) {
        if self.len >= Self::ROOM {
            self.release();
        }
        self.frames[self.len % Self::ROOM].write(frame);
        self.len += 1;
    }

    /// Makes all cores forget the range, and gives back what was gathered.
    pub(super) fn release(&mut self) {
        if self.len == 0 && !self.has_moved {
            return;
        }
        self.has_moved = false;
        let frames = &raw const self.frames;
        // SAFETY: `keep` wrote the first `len`.
        let unlinked = unsafe { core::slice::from_raw_parts(frames.cast(), core::mem::take(&mut self.len)) };
        tlb::flush_unlinked(self.space, self.start, self.end, unlinked, |frame| {
            // SAFETY: each is a page or a table, as its kind says; whoever unlinked a table saw that it has no entries.
            unsafe {
                if frame.is_table() {
                    Table::give_back(frame);
                } else {
                    release(frame);
                }
            }
        });
    }
}

impl Drop for Gone {
    #[inline(always)]
    fn drop(&mut self) {
        self.release();
    }
}

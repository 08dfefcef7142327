//! Page tables, as the processor walks them; what their entries look like is the architecture's ([`PageEntry`]).
//!
//! Beside each table, in its frame's metadata, stand the number of entries in use and a bit for each group of eight entries
//! (one cache line) that may have some. So walks over large ranges, in `fork`, `munmap` and exit, touch what is mapped only.
//!
//! A table is given back when its last entry goes, and is all zeros then; such tables are kept at hand and need no zeroing.
//! A root table's upper half is the kernel's; it is the same in all of them, for ever.
//!
//! Everything here is `unsafe` in the same way: *the caller holds the lock of the address space that the table belongs to*,
//! or is the only one to know the table.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::core_local::{self, CoreLocal};
use super::metadata::{FrameNumber, Metadata};
use super::supply;
use super::tlb::Forgotten;
use super::{OutOfMemory, PAGE_SIZE, kernel_space, machine, owner};
pub(super) use crate::arch::machine::paging::{ENTRIES, PageEntry, ROOT, shift};

/// Entries in a group.
pub(super) const GROUP: usize = 8;

/// Bytes that a leaf table maps.
pub(super) const LEAF_SPAN: usize = ENTRIES * PAGE_SIZE;

/// The place of an entry. The processor looks at it whenever it likes, and notes in it what it did with the page.
#[repr(transparent)]
pub(super) struct EntryCell(AtomicU64);

impl EntryCell {
    #[inline(always)]
    pub(super) fn load(&self) -> PageEntry {
        PageEntry::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Writes an entry where nothing is lost: there is none, or the processor cannot note anything in it.
    #[inline(always)]
    pub(super) fn store(&self, entry: PageEntry) {
        self.0.store(entry.bits(), Ordering::Release);
        machine::entry_written();
    }

    /// Replaces the entry; what it was.
    #[inline(always)]
    pub(super) fn swap(&self, entry: PageEntry) -> PageEntry {
        let old = PageEntry::from_bits(self.0.swap(entry.bits(), Ordering::AcqRel));
        machine::entry_written();
        old
    }

    /// Takes flags away.
    #[inline(always)]
    pub(super) fn remove(&self, flags: u64) {
        self.0.fetch_and(!flags, Ordering::Relaxed);
        machine::entry_written();
    }

    /// Replaces the entry if it is `old`.
    ///
    /// # Errors
    /// What it is.
    #[inline(always)]
    pub(super) fn replace(&self, old: PageEntry, new: PageEntry) -> Result<(), PageEntry> {
        self.0
            .compare_exchange(old.bits(), new.bits(), Ordering::AcqRel, Ordering::Relaxed)
            .map_err(PageEntry::from_bits)?;
        machine::entry_written();
        Ok(())
    }
}

/// What stands beside a table.
#[repr(C)]
pub(super) struct TableState {
    /// Bit g: entries 8g to 8g+7 may be in use. Not kept for a root's upper half.
    pub(super) occupied: u64,
    /// How many entries are in use. A root's upper half does not count.
    pub(super) live: u64,
}

/// A table, by its frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Table(pub(super) FrameNumber);

impl Table {
    /// The entry at `index` (modulo the table's size).
    ///
    /// # Safety
    /// See the module.
    #[inline(always)]
    pub(super) unsafe fn entry(self, index: usize) -> &'static EntryCell {
        // SAFETY: a table's frame holds 512 entries, which the processor may change too. The caller does not use the
        // reference beyond the table's life.
        unsafe { &*machine::frame_pointer(self.0).cast::<EntryCell>().add(index % ENTRIES) }
    }

    /// All entries.
    ///
    /// # Safety
    /// See the module.
    #[inline(always)]
    pub(super) unsafe fn entries(self) -> &'static [EntryCell; ENTRIES] {
        // SAFETY: as for `entry`.
        unsafe { &*machine::frame_pointer(self.0).cast() }
    }

    /// The value of the entry at `index`.
    ///
    /// # Safety
    /// See the module.
    #[inline(always)]
    pub(super) unsafe fn get(self, index: usize) -> PageEntry {
        // SAFETY: the caller's promise.
        unsafe { self.entry(index) }.load()
    }

    /// What stands beside the table.
    ///
    /// # Safety
    /// See the module; and the reference to the last state asked for is not used any more.
    #[inline(always)]
    pub(super) unsafe fn state(self) -> &'static mut TableState {
        // SAFETY: the storage of a table's frame holds this, and the lock's holder alone uses it.
        unsafe { &mut *Metadata::of(self.0).storage.get().cast::<TableState>() }
    }

    /// Sets an entry that was empty.
    ///
    /// # Safety
    /// See the module.
    #[inline(always)]
    pub(super) unsafe fn fill(self, index: usize, entry: PageEntry) {
        // SAFETY: the caller's promise.
        unsafe {
            self.entry(index).store(entry);
            let state = self.state();
            state.live += 1;
            state.occupied |= 1 << (index % ENTRIES / GROUP);
        }
    }

    /// Empties an entry; what it was. The group's bit stays.
    ///
    /// # Safety
    /// See the module.
    #[inline(always)]
    pub(super) unsafe fn clear(self, index: usize) -> PageEntry {
        // SAFETY: the caller's promise.
        unsafe {
            let entry = self.entry(index).swap(PageEntry::EMPTY);
            if !entry.is_empty() {
                self.state().live -= 1;
            }
            entry
        }
    }

    /// The table that covers `address` one level above the pages, if there is one; walks down from `self` at `level`.
    ///
    /// # Safety
    /// See the module.
    #[inline(always)]
    pub(super) unsafe fn leaf(self, level: u32, address: usize) -> Option<Table> {
        let mut table = self;
        for level in (2..=level).rev() {
            // SAFETY: the caller's promise, which holds for the tables below as well.
            let entry = unsafe { table.get(address >> shift(level)) };
            if entry.is_empty() {
                return None;
            }
            table = Table(entry.frame());
        }
        Some(table)
    }

    /// As [`leaf`](Self::leaf), and makes the tables that are missing.
    ///
    /// # Errors
    /// No memory. Tables made before that are empty, and stay.
    ///
    /// # Safety
    /// See the module.
    #[inline(always)]
    pub(super) unsafe fn leaf_or_new(self, level: u32, address: usize) -> Result<Table, OutOfMemory> {
        // SAFETY: the caller's promise.
        match unsafe { self.leaf(level, address) } {
            Some(leaf) => Ok(leaf),
            // SAFETY: the caller's promise.
            None => unsafe { self.new_leaf(level, address) },
        }
    }

    /// [`leaf_or_new`](Self::leaf_or_new) where tables are missing.
    ///
    /// # Safety
    /// See the module.
    #[inline(never)]
    unsafe fn new_leaf(self, level: u32, address: usize) -> Result<Table, OutOfMemory> {
        let mut table = self;
        for level in (2..=level).rev() {
            let index = address >> shift(level);
            // SAFETY: the caller's promise, which holds for the tables below as well.
            let entry = unsafe { table.get(index) };
            table = if entry.is_empty() {
                let below = Table::new().ok_or(OutOfMemory)?;
                // SAFETY: as above; the entry is empty.
                unsafe { table.fill(index, PageEntry::table(below.0)) };
                below
            } else {
                Table(entry.frame())
            };
        }
        Ok(table)
    }

    /// An empty table.
    pub(super) fn new() -> Option<Table> {
        let core = core_local::here();
        if let Some(table) = core.tables.pop() {
            core.charge_table(table);
            return Some(table);
        }
        let (frame, is_paid_for) = supply::take_for_table()?;
        let table = Table(frame);
        // SAFETY: the table is this function's alone.
        unsafe {
            machine::zero_page(machine::frame_pointer(table.0));
            *table.state() = TableState { occupied: 0, live: 0 };
        }
        // SAFETY: a frame in use has a number in range.
        let record = unsafe { Metadata::of(table.0) };
        if is_paid_for {
            owner::count_table(record);
        } else {
            owner::charge_table(record);
        }
        Some(table)
    }

    /// A table for an address space, which maps the kernel.
    pub(super) fn new_root() -> Option<Table> {
        let core = core_local::here();
        if let Some(root) = core.roots.pop() {
            core.charge_table(root);
            return Some(root);
        }
        let root = Table::new()?;
        let kernel = Table(kernel_space::root());
        for index in ENTRIES / 2..ENTRIES {
            // SAFETY: the new table is this function's alone, and the kernel's root does not change.
            unsafe { root.entry(index).store(kernel.get(index)) };
        }
        Some(root)
    }

    /// Takes back a table.
    ///
    /// # Safety
    /// It is a table, all zeros, that nobody refers to.
    pub(super) unsafe fn give_back(table: Forgotten) {
        // SAFETY: the caller's promise.
        unsafe { core_local::here().tables.give(Table(table.frame())) };
    }

    /// Takes back a root without entries in its lower half.
    ///
    /// # Safety
    /// As for [`give_back`](Self::give_back), but for the upper half, which is as [`new_root`](Self::new_root) made it.
    pub(super) unsafe fn give_back_root(root: Forgotten) {
        // SAFETY: the caller's promise.
        unsafe { core_local::here().roots.give(Table(root.frame())) };
    }
}

impl CoreLocal {
    /// Whom this core works for pays for a table from now on, if he does not yet.
    #[inline(always)]
    fn charge_table(&self, table: Table) {
        // SAFETY: a frame in use has a number in range.
        let record = unsafe { Metadata::of(table.0) };
        if !self.payer.pays_for(record) {
            owner::charge_table(record);
        }
    }
}

/// The bits of the groups that entries `first..=last` are in.
#[inline(always)]
pub(super) fn groups(first: usize, last: usize) -> u64 {
    let (low, high) = (first / GROUP, last / GROUP);
    (u64::MAX << low) & (u64::MAX >> (63 - high))
}

/// Tables kept at hand by a core, on lines of its own.
#[repr(align(64))]
pub(super) struct Pool<const N: usize> {
    len: AtomicU32,
    tables: [AtomicU32; N],
}

impl<const N: usize> Pool<N> {
    pub(super) const fn new() -> Self {
        Pool { len: AtomicU32::new(0), tables: [const { AtomicU32::new(0) }; N] }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    #[inline(always)]
    fn pop(&self) -> Option<Table> {
        let len = self.len.load(Ordering::Relaxed).checked_sub(1)?;
        self.len.store(len, Ordering::Relaxed);
        Some(Table(FrameNumber(self.tables[len as usize % N].load(Ordering::Relaxed))))
    }

    /// Adds a table, or gives its frame back.
    ///
    /// # Safety
    /// It is as those that are in the pool, and nobody refers to it.
    unsafe fn give(&self, table: Table) {
        machine::assert_forgotten(table.0);
        // SAFETY: the caller's promise.
        unsafe {
            *Metadata::of(table.0).storage.get().cast() = TableState { occupied: 0, live: 0 };
            if !self.push(table) {
                give(table);
            }
        }
    }

    #[inline(always)]
    fn push(&self, table: Table) -> bool {
        let len = self.len.load(Ordering::Relaxed);
        if len as usize == N {
            return false;
        }
        self.tables[len as usize % N].store(table.0.0, Ordering::Relaxed);
        self.len.store(len + 1, Ordering::Relaxed);
        true
    }
}

impl<const N: usize> Pool<N> {
    /// Runs `f` on the records of those that are there.
    pub(super) fn each(&self, mut f: impl FnMut(&Metadata)) {
        for table in &self.tables[..self.len().min(N)] {
            // SAFETY: a table has a number in range, and so has what was one a moment ago.
            f(unsafe { Metadata::of(FrameNumber(table.load(Ordering::Relaxed))) });
        }
    }
}

/// Gives the frame of a table back.
///
/// # Safety
/// Nobody refers to the table.
unsafe fn give(table: Table) {
    // SAFETY: a table has a number in range; the caller's promise.
    unsafe {
        owner::discharge_table(Metadata::of(table.0));
        supply::give(table.0);
    }
}

/// Gives back the tables that this core keeps at hand.
pub(super) fn trim() {
    let roots = core::iter::from_fn(|| core_local::here().roots.pop());
    for table in core::iter::from_fn(|| core_local::here().tables.pop()).chain(roots) {
        // SAFETY: nobody refers to a table in the pool.
        unsafe { give(table) };
    }
}

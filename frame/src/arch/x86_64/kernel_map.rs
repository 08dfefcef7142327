//! The kernel's own page table: what is mapped in the upper half of every address space.
//!
//! | from | what | rights |
//! | --- | --- | --- |
//! | [`DIRECT_MAP`] | all memory but the kernel image, at its physical address; device registers on demand | read, write |
//! | [`STACKS`] | kernel stacks, with an unmapped page below each | read, write |
//! | [`LINKS`] | links of objects and pooled wake slots; where none is used, one page of zeros | read, write |
//! | [`BLOCKS`] | large blocks of the heap whose frames do not lie together | read, write |
//! | [`KERNEL_BASE`] | the kernel image: text, constants, data | execute; read; read, write |
//!
//! Nothing is both writable and executable; the image is not in the direct map, so that no second mapping is either. The
//! entries of the top-level table never change once [`build`] has returned, so every address space copies them once.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::RawSpin;

use super::features::has_gigabyte_pages;
use super::memory_map::LoaderInfo;

/// Physical address `p` is mapped at `DIRECT_MAP + p`.
pub const DIRECT_MAP: usize = 0xffff_8000_0000_0000;
/// Where kernel stacks are.
pub const STACKS: usize = 0xffff_c000_0000_0000;
/// Where the links of objects are.
pub const LINKS: usize = 0xffff_d000_0000_0000;
/// Where blocks of the heap are whose frames do not lie together.
pub const BLOCKS: usize = 0xffff_e000_0000_0000;
/// The kernel image is linked to its physical address plus this.
pub const KERNEL_BASE: usize = 0xffff_ffff_8000_0000;

/// Bits of an entry.
const PRESENT: usize = 1;
/// The page may be written.
pub const WRITABLE: usize = 1 << 1;
/// Accesses go to the device, not to a cache.
const UNCACHED: usize = 1 << 3 | 1 << 4;
const ACCESSED_DIRTY: usize = 1 << 5 | 1 << 6;
const LARGE: usize = 1 << 7;
const GLOBAL: usize = 1 << 8;
/// The page may not be executed.
pub const NO_EXECUTE: usize = 1 << 63;
const ADDRESS: usize = 0x000f_ffff_ffff_f000;
const PAGE: usize = 4096;

static ROOT: AtomicUsize = AtomicUsize::new(0);
static CHANGING: RawSpin = RawSpin::new();

unsafe extern "C" {
    static __text_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __image_end: u8;
}

/// The kernel's text, as virtual addresses.
pub fn text() -> Range<usize> {
    (&raw const __text_start).addr()..(&raw const __text_end).addr()
}

/// The physical addresses of the kernel image.
pub fn image() -> Range<usize> {
    0x20_0000..(&raw const __image_end).addr() - KERNEL_BASE
}

/// The physical address of the kernel's top-level table. Its entries 256 to 511 are those of every address space.
pub fn root() -> usize {
    ROOT.load(Ordering::Relaxed)
}

/// An entry of a table.
///
/// # Safety
/// `table` is the physical address of a page table of the kernel, and reachable through the direct map; `index` is below 512.
unsafe fn entry_at(table: usize, index: usize) -> &'static AtomicUsize {
    // SAFETY: a page has so many words, and a table of the kernel's is never freed.
    unsafe { &*((DIRECT_MAP + table) as *const AtomicUsize).wrapping_add(index) }
}

fn index(virt: usize, level: usize) -> usize {
    virt >> (12 + 9 * level) & 511
}

/// Maps `len` bytes at `virt` to `phys`, where nothing was mapped, with the largest pages that fit up to `largest` (0 is 4 KiB,
/// 1 is 2 MiB, 2 is 1 GiB). Tables come, zeroed, by their physical address, from `new_table`. False if it had none.
///
/// # Safety
/// The mapping is sound: its rights, and nobody relies on the range being unmapped.
unsafe fn map(
    root: usize,
    virt: usize,
    phys: usize,
    len: usize,
    flags: usize,
    largest: usize,
    new_table: &mut dyn FnMut() -> Option<usize>,
) -> bool {
    let mut done = 0;
    while done < len {
        let (virt, phys, left) = (virt + done, phys + done, len - done);
        let level = (0..=largest)
            .rev()
            .find(|level| {
                let size = PAGE << (9 * level);
                (virt | phys) % size == 0 && left >= size
            })
            .unwrap_or(0);
        let mut table = root;
        for upper in (level + 1..=3).rev() {
            // SAFETY: `table` is the root or was found in it.
            let entry = unsafe { entry_at(table, index(virt, upper)) };
            if entry.load(Ordering::Relaxed) & PRESENT == 0 {
                let Some(new) = new_table() else { return false };
                entry.store(new | PRESENT | WRITABLE, Ordering::Release);
            }
            table = entry.load(Ordering::Relaxed) & ADDRESS;
        }
        // As many pages of that size as fit into this table.
        let size = PAGE << (9 * level);
        let first = index(virt, level);
        let count = (left / size).min(512 - first);
        let large = if level > 0 { LARGE } else { 0 };
        for page in 0..count {
            // SAFETY: as above; `first + page` is below 512.
            let entry = unsafe { entry_at(table, first + page) };
            let page = (phys + page * size) | flags | large | PRESENT | GLOBAL | ACCESSED_DIRTY;
            entry.store(page, Ordering::Relaxed);
        }
        done += count * size;
    }
    true
}

/// Builds the kernel's page table and activates it. Tables are taken from `info.ram`.
///
/// # Safety
/// Called once, at boot, with the boot tables active.
pub unsafe fn build(info: &LoaderInfo, free: &mut super::memory_map::Ranges) {
    // The boot tables reach no further than this.
    const REACHABLE: usize = 1 << 30;
    let mut new_table = || {
        let table = free.take(PAGE, REACHABLE)?.start;
        // SAFETY: the frame was unused, and the boot tables map it.
        unsafe { core::ptr::write_bytes((DIRECT_MAP + table) as *mut u8, 0, PAGE) };
        Some(table)
    };
    let enough = "the loader gave at least a megabyte of memory";
    let root = new_table().expect(enough);
    let largest = if has_gigabyte_pages() { 2 } else { 1 };
    // SAFETY: the rights are those of the module comment: none of the mappings is writable and executable.
    unsafe {
        let mut add = |virt: usize, range: Range<usize>, flags| {
            assert!(map(root, virt, range.start, range.len(), flags, largest, &mut new_table), "{enough}");
        };
        let text = text();
        let constants = text.end..(&raw const __rodata_end).addr();
        let data = constants.end..(&raw const __image_end).addr();
        for (range, flags) in [(text, 0), (constants, NO_EXECUTE), (data, WRITABLE | NO_EXECUTE)] {
            add(range.start, range.start - KERNEL_BASE..range.end - KERNEL_BASE, flags);
        }
        let mut direct = info.ram.clone();
        direct.remove(&image());
        for range in direct.as_slice() {
            add(DIRECT_MAP + range.start, range.clone(), WRITABLE | NO_EXECUTE);
        }
        // A table for each slot that is filled later, so that the top level does not change then.
        for slot in [STACKS, LINKS, BLOCKS, DIRECT_MAP] {
            let entry = entry_at(root, index(slot, 3));
            if entry.load(Ordering::Relaxed) & PRESENT == 0 {
                entry.store(new_table().expect(enough) | PRESENT | WRITABLE, Ordering::Relaxed);
            }
        }
        ROOT.store(root, Ordering::Release);
        super::instructions::write_cr3(root);
    }
}

/// A zeroed table from the heap.
fn heap_table() -> Option<usize> {
    let layout = core::alloc::Layout::from_size_align(PAGE, PAGE).ok()?;
    // SAFETY: the layout is not empty.
    let table = unsafe { alloc::alloc::alloc_zeroed(layout) };
    (!table.is_null()).then(|| table.addr() - DIRECT_MAP)
}

/// Maps a page at `virt`, where nothing is mapped. False if there was no memory for a table.
///
/// # Safety
/// As for [`map`]: nothing else uses the memory in a way that the new mapping could disturb. `virt` is in the
/// stacks', the links' or the blocks' area or the direct map, and no core remembers another page there.
pub unsafe fn map_page(virt: usize, phys: usize, flags: usize) -> bool {
    CHANGING.lock();
    // SAFETY: by this function's contract; the lock makes this the only change. Only empty entries are written, of which
    // processors remember nothing.
    let done = unsafe { map(root(), virt, phys, PAGE, flags, 0, &mut heap_table) };
    CHANGING.unlock();
    done
}

/// Unmaps the page at `virt`; its physical address, if one was mapped. The table stays. The caller may hold any lock.
///
/// # Safety
/// Nobody uses the mapping. Other cores may remember it when this returns: nothing is mapped at `virt` before they have been
/// [asked](crate::mm::StalePlaces) to forget it.
pub unsafe fn unmap_page(virt: usize) -> Option<usize> {
    // SAFETY: by this function's contract.
    let before = unsafe { change_entry(virt, 0) };
    crate::mm::flush_kernel_page(virt);
    before
}

/// Maps another page at `virt`, where one is mapped; its physical address. There is no moment at which nothing is mapped.
///
/// # Safety
/// Whoever uses the mapping may find either memory there until all cores have been asked to forget it ([`crate::mm::forget_kernel`]), and nobody writes what `flags`
/// do not allow to be written.
pub unsafe fn replace_page(virt: usize, phys: usize, flags: usize) -> Option<usize> {
    // SAFETY: by this function's contract.
    unsafe { change_entry(virt, phys | flags | PRESENT | GLOBAL | ACCESSED_DIRTY) }
}

/// Changes the entry of the page at `virt`, if there is a table for it; the physical address that was there, if any.
///
/// # Safety
/// That of [`unmap_page`] or [`replace_page`]; nobody else changes the entry meanwhile.
unsafe fn change_entry(virt: usize, new: usize) -> Option<usize> {
    // No lock: tables stay, and the entry is changed by who has the page alone.
    let mut table = root();
    for level in (1..=3).rev() {
        // SAFETY: the root, or a table that was found in it.
        let entry = unsafe { entry_at(table, index(virt, level)) }.load(Ordering::Acquire);
        if entry & PRESENT == 0 || entry & LARGE != 0 {
            return None;
        }
        table = entry & ADDRESS;
    }
    // SAFETY: as above; by this function's contract.
    let entry = unsafe { entry_at(table, index(virt, 0)) }.swap(new, Ordering::AcqRel);
    (entry & PRESENT != 0).then_some(entry & ADDRESS)
}

/// A page of device registers, mapped for ever. `None` if there was no memory for a table.
///
/// # Safety
/// There are device registers at `phys`, which is a multiple of the page size, and the page is not mapped yet.
pub unsafe fn map_device(phys: usize) -> Option<*mut u32> {
    let virt = DIRECT_MAP + phys;
    // SAFETY: by this function's contract.
    unsafe { map_page(virt, phys, WRITABLE | NO_EXECUTE | UNCACHED) }.then_some(virt as *mut u32)
}

/// Whether the kernel's page table maps an address.
pub fn is_mapped(virt: usize) -> bool {
    let mut table = root();
    for level in (0..=3).rev() {
        // SAFETY: the root, or a table that was found in it; all are in the direct map.
        let entry = unsafe { entry_at(table, index(virt, level)) }.load(Ordering::Acquire);
        if entry & PRESENT == 0 {
            return false;
        }
        if level == 0 || entry & LARGE != 0 {
            return true;
        }
        table = entry & ADDRESS;
    }
    false
}

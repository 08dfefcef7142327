//! How the simulated processor walks page tables, and what it remembers of them (Intel SDM volume 3, section 4.10).
//!
//! It keeps translations (the TLB) and, for each level above the pages, entries that lead to tables (the paging-structure caches). A walk
//! starts at the lowest table it remembers, and notes accesses in the entries it uses before it keeps them. It never forgets by itself, so
//! that what it holds is as stale as a processor's may be: INVLPG drops what belongs to one address, a load of CR3 everything, and a page
//! fault what belongs to its address. (On Intel's processors INVLPG drops all of the paging-structure caches; nothing should rely on that.)
//!
//! With [`speculate`], the processor walks after each change of a table to all pages that it can reach, from the root and from the tables
//! it remembers: whatever may be remembered is remembered then.
//!
//! What it remembers is tagged with the context it was in. It walks and looks up in the current one only, and what others have stays until they are loaded.
//!
//! A frame that is given back while the processor remembers a way to it ends the test: see [`assert_forgotten`]. If another context remembers it, the test ends when that is loaded
//! and kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::frame_pointer;
use crate::mm::{Access, Context, FrameNumber, PAGE_SIZE};

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// How far addresses are shifted to give the index in a table of each level, from the root down.
const SHIFTS: [u32; 4] = [39, 30, 21, 12];
const PAGES: usize = SHIFTS.len() - 1;

/// Where an entry leads, with the rights that all entries on the way there leave.
#[derive(Clone, Copy)]
struct Way {
    to: u32,
    writable: bool,
    user: bool,
    executable: bool,
    /// Of a page: a write through this was noted in its entry.
    dirty: bool,
}

impl Way {
    /// To the root table.
    fn to_root(root: u32) -> Self {
        Way { to: root, writable: true, user: true, executable: true, dirty: false }
    }

    fn allows(self, access: Access) -> bool {
        let right = match access {
            Access::Read => true,
            Access::Write => self.writable,
            Access::Execute => self.executable,
        };
        right && self.user
    }

    /// The entry at `index` of the table that this leads to.
    fn entry(self, index: usize) -> &'static AtomicU64 {
        // SAFETY: `assert_forgotten` sees to it that only tables are led to, of 512 entries, which are used as atomics everywhere.
        unsafe { &*frame_pointer(FrameNumber(self.to)).cast::<AtomicU64>().add(index % 512) }
    }

    /// One entry further down, which must be present and allow the access (a walk that is nobody's access asks for none). Notes in the entry
    /// that it was used.
    fn follow(self, entry: &AtomicU64, access: Option<Access>) -> Option<Way> {
        let value = entry.load(Ordering::Relaxed);
        let noted = if access == Some(Access::Write) { ACCESSED | DIRTY } else { ACCESSED };
        let way = Way {
            to: ((value & ADDRESS) >> 12) as u32,
            writable: self.writable && value & WRITABLE != 0,
            user: self.user && value & USER != 0,
            executable: self.executable && value & NO_EXECUTE == 0,
            dirty: (value | noted) & DIRTY != 0,
        };
        if value & PRESENT == 0 || access.is_some_and(|access| !way.allows(access)) {
            return None;
        }
        entry.fetch_or(noted, Ordering::Relaxed);
        Some(way)
    }
}

/// What is remembered in a context. By level: entries, by the part of the address that chooses them. The last are the translations of pages.
type Remembered = [BTreeMap<usize, Way>; SHIFTS.len()];

const NOTHING: Remembered = [const { BTreeMap::new() }; SHIFTS.len()];

struct Processor {
    root: u32,
    speculates: bool,
    /// The current context, and what is remembered in it.
    context: u16,
    remembered: Remembered,
    /// What is remembered in the others, and a frame that was given back although it is among that.
    others: BTreeMap<u16, (Remembered, Option<FrameNumber>)>,
}

static PROCESSOR: Mutex<Processor> = Mutex::new(Processor {
    root: u32::MAX,
    speculates: false,
    context: 0,
    remembered: NOTHING,
    others: BTreeMap::new(),
});

static HAS_CONTEXTS: AtomicBool = AtomicBool::new(true);

/// Whether the processor has contexts.
pub(in crate::mm) fn has_contexts() -> bool {
    HAS_CONTEXTS.load(Ordering::Relaxed)
}

/// From now on it has, or has not.
#[cfg(test)]
pub(in crate::mm) fn set_has_contexts(has: bool) {
    HAS_CONTEXTS.store(has, Ordering::Relaxed);
}

fn processor() -> MutexGuard<'static, Processor> {
    PROCESSOR.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Processor {
    fn forget(&mut self, address: usize) {
        for (ways, shift) in self.remembered.iter_mut().zip(SHIFTS) {
            ways.remove(&(address >> shift));
        }
    }

    fn forget_all(&mut self) {
        self.remembered.iter_mut().for_each(BTreeMap::clear);
    }

    /// Walks to the page of an address, from the lowest table that is remembered.
    fn walk(&mut self, address: usize, access: Access) -> Option<Way> {
        let known = (0..PAGES).rev().find_map(|level| {
            let way = self.remembered[level].get(&(address >> SHIFTS[level]))?;
            Some((level + 1, *way))
        });
        let (from, mut way) = known.unwrap_or((0, Way::to_root(self.root)));
        for (level, shift) in SHIFTS.into_iter().enumerate().skip(from) {
            let access = (level == PAGES).then_some(access);
            way = way.follow(way.entry(address >> shift), access)?;
            self.remembered[level].insert(address >> shift, way);
        }
        Some(way)
    }

    /// The page that a program gets at if it accesses an address; `None` is a page fault.
    fn access(&mut self, address: usize, access: Access) -> Option<u32> {
        let known = self.remembered[PAGES].get(&(address >> SHIFTS[PAGES])).copied();
        let found = match known {
            // A write that is not noted in the entry yet walks again.
            Some(way) if !way.allows(access) || way.dirty || access != Access::Write => Some(way),
            _ => self.walk(address, access),
        };
        let page = found.filter(|way| way.allows(access)).map(|way| way.to);
        if page.is_none() {
            self.forget(address);
        }
        page
    }

    /// Walks to all pages that can be reached, and remembers them and the tables on the way; what is remembered already stays as it is.
    fn speculate(&mut self) {
        if !self.speculates || self.root == u32::MAX {
            return;
        }
        let mut tables = vec![(0, 0, Way::to_root(self.root))];
        for level in 0..PAGES {
            tables.extend(self.remembered[level].iter().map(|(&part, &way)| (level + 1, part << 9, way)));
        }
        while let Some((level, first, table)) = tables.pop() {
            // The upper half of the root is the kernel's.
            let entries = if level == 0 { 256 } else { 512 };
            let start = table.entry(0);
            for index in 0..entries {
                // SAFETY: `entry` gave the first of the table's 512.
                let entry = unsafe { &*std::ptr::from_ref(start).add(index) };
                if entry.load(Ordering::Relaxed) & PRESENT == 0 || self.remembered[level].contains_key(&(first + index))
                {
                    continue;
                }
                if let Some(way) = table.follow(entry, None) {
                    self.remembered[level].insert(first + index, way);
                    if level < PAGES {
                        tables.push((level + 1, (first + index) << 9, way));
                    }
                }
            }
        }
    }
}

/// The byte that a program gets at if it accesses an address; `None` is a page fault.
pub(in crate::mm) fn translate(address: usize, access: Access) -> Option<*mut u8> {
    let page = processor().access(address, access)?;
    // SAFETY: within the frame.
    Some(unsafe { frame_pointer(FrameNumber(page)).add(address & (PAGE_SIZE - 1)) })
}

/// From now on the processor walks ahead of all accesses, or does not.
#[cfg(test)]
pub(in crate::mm) fn speculate(speculates: bool) {
    let mut processor = processor();
    processor.speculates = speculates;
    processor.speculate();
}

/// An entry of some table was written.
pub(in crate::mm) fn entry_written() {
    processor().speculate();
}

/// Checks that the processor remembers no way to a frame, which is about to be used for something else, and that no context is loaded and kept that does.
///
/// # Panics
/// It does: a flush is missing, or comes before the frame's entry was cleared.
pub(in crate::mm) fn assert_forgotten(frame: FrameNumber) {
    let mut processor = processor();
    for (remembered, given_back) in processor.others.values_mut() {
        if remembered.iter().any(|ways| ways.values().any(|way| way.to == frame.0)) {
            *given_back = Some(frame);
        }
    }
    for (ways, shift) in processor.remembered.iter().zip(SHIFTS) {
        if let Some((part, _)) = ways.iter().find(|(_, way)| way.to == frame.0) {
            panic!("{frame:?} is given back, but the processor remembers it at {:#x}", part << shift);
        }
    }
}

/// Makes the processor forget everything.
pub(in crate::mm) fn flush_all() {
    processor().forget_all();
}

/// The frame of the page table in use.
pub(in crate::mm) fn root() -> FrameNumber {
    FrameNumber(processor().root)
}

/// Makes a page table the one in use, in the context of number 0: a load of CR3.
///
/// # Safety
/// None here; see the real machine's.
pub(in crate::mm) unsafe fn set_root(root: FrameNumber) {
    load(root, Context { number: 0, keeps: false });
}

/// As [`set_root`], in a context.
///
/// # Safety
/// None here; see the real machine's.
pub(in crate::mm) unsafe fn set_root_in(root: FrameNumber, context: Context) {
    assert!(has_contexts());
    load(root, context);
}

fn load(root: FrameNumber, context: Context) {
    let mut processor = processor();
    let (last, remembered) = (processor.context, std::mem::replace(&mut processor.remembered, NOTHING));
    processor.others.insert(last, (remembered, None));
    let (remembered, given_back) = processor.others.remove(&context.number).unwrap_or((NOTHING, None));
    (processor.root, processor.context, processor.remembered) = (root.0, context.number, remembered);
    if context.keeps {
        assert!(given_back.is_none(), "{given_back:?} was given back, but {context:?} remembers it");
    } else {
        processor.forget_all();
    }
    processor.speculate();
}

/// Forgets an address: INVLPG.
pub(in crate::mm) fn flush_page(address: usize) {
    let mut processor = processor();
    processor.forget(address);
    processor.speculate();
}

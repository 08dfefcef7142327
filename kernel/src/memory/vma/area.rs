//! [`Vma`]: one range of an address space that is mapped in one way.

use core::ops::Range;

use bitflags::bitflags;
use frame::mm::{PAGE_SIZE, Prot};

bitflags! {
    /// What is special about a VMA.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct VmaFlags: u16 {
        /// Writes go to the object itself (MAP_SHARED).
        const SHARED = 1;
        /// It grows downwards on a fault below it (MAP_GROWSDOWN).
        const GROWS_DOWN = 2;
        /// Its pages stay in memory (mlock(2)); there is no swapping, so this only shows in reports and limits.
        const LOCKED = 4;
        /// A child does not get it (MADV_DONTFORK).
        const DONT_FORK = 8;
        /// A child gets zeros (MADV_WIPEONFORK).
        const WIPE_ON_FORK = 16;
        /// It was not asked to be backed by memory (MAP_NORESERVE).
        const NO_RESERVE = 32;
        /// It shows an object, cannot be written now, and may have pages of its own from before.
        const MAY_OWN = 64;
        /// Memory is promised for all of it (Linux's VM_ACCOUNT).
        const ACCOUNTED = 128;
        /// If it is [`LOCKED`](Self::LOCKED): its pages are not brought in before they are used (MLOCK_ONFAULT).
        const LOCK_ON_FAULT = 256;
        /// Core files do not have its pages (MADV_DONTDUMP).
        const DONT_DUMP = 512;
        /// mremap(2) does not make it longer (Linux's VM_DONTEXPAND).
        const DONT_EXPAND = 1024;
        /// Its pages may become zeros at any time (MAP_DROPPABLE). They do so in a child only.
        const DROPPABLE = 2048;
    }
}

/// What a VMA shows, as far as the bookkeeping must know.
pub trait Mergeable: Sized {
    /// The same, seen from `pages` further on.
    fn advanced(&self, pages: u64) -> Self;
    /// Whether `next` is what `self` goes on with after `pages`.
    fn is_continued_by(&self, pages: u64, next: &Self) -> bool;
    /// Whether it is an object, whose end takes time.
    fn is_object(&self) -> bool;
}

/// One range that is mapped in one way.
#[derive(Debug)]
pub struct Vma<B> {
    /// Its first address.
    pub start: usize,
    /// The first address behind it.
    pub end: usize,
    /// What user code may do.
    pub prot: Prot,
    /// What mprotect(2) may allow at most.
    pub limit: Prot,
    /// What is special about it.
    pub flags: VmaFlags,
    /// What it shows.
    pub backing: B,
}

impl<B: Mergeable> Vma<B> {
    /// Its addresses.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// How many pages it has.
    pub fn pages(&self) -> usize {
        (self.end - self.start) / PAGE_SIZE
    }

    /// Cuts off what lies at and behind `at`, which is inside.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let pages = ((at - self.start) / PAGE_SIZE) as u64;
        let rest = Vma { start: at, backing: self.backing.advanced(pages), ..*self };
        self.end = at;
        rest
    }

    pub(super) fn is_continued_by(&self, next: &Self) -> bool {
        self.end == next.start
            && self.prot == next.prot
            && self.limit == next.limit
            && self.flags == next.flags
            && !self.flags.contains(VmaFlags::GROWS_DOWN)
            && self.backing.is_continued_by(self.pages() as u64, &next.backing)
    }
}

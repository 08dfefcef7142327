//! What the processor's page tables look like: four levels of tables of 512 entries.

use crate::mm::{FrameNumber, Prot};

/// Entries in a table.
pub const ENTRIES: usize = 512;
/// The level of a root table; leaf tables, which map pages, are of level 1.
pub const ROOT: u32 = 4;

/// How far an address is shifted to give the index in a table of `level`.
#[inline(always)]
pub const fn shift(level: u32) -> u32 {
    3 + 9 * level
}

/// An entry of a table: bits as in Intel's manual, volume 3, section 4.5.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PageEntry(u64);

impl PageEntry {
    const PRESENT: u64 = 1;
    /// The page may be written.
    pub const WRITABLE: u64 = 1 << 1;
    const USER: u64 = 1 << 2;
    /// The processor notes that the page was accessed.
    pub const ACCESSED: u64 = 1 << 5;
    /// The processor notes that the page was written.
    pub const DIRTY: u64 = 1 << 6;
    const NO_EXECUTE: u64 = 1 << 63;
    /// Ours: a page that is mapped but may not be accessed at all (it is not `PRESENT`).
    const NO_ACCESS: u64 = 1 << 9;
    const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

    /// No entry.
    pub const EMPTY: PageEntry = PageEntry(0);

    /// As it stands in memory.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From what stands in memory.
    #[inline(always)]
    pub fn from_bits(bits: u64) -> Self {
        PageEntry(bits)
    }

    /// What a user page's entry says beside its frame. The processor knows no page that can be written or executed but not
    /// read.
    #[inline(always)]
    pub fn flags(prot: Prot) -> u64 {
        if prot.is_empty() {
            return Self::NO_ACCESS | Self::NO_EXECUTE;
        }
        let mut flags = Self::PRESENT | Self::USER;
        if prot.contains(Prot::WRITE) {
            flags |= Self::WRITABLE;
        }
        if !prot.contains(Prot::EXECUTE) {
            flags |= Self::NO_EXECUTE;
        }
        flags
    }

    /// Whether other flags would allow less than it does: then what a processor remembers of it has to be forgotten. One that remembers less than it may faults, forgets the entry as it
    /// does (Intel SDM volume 3, section 4.10.4.1), and finds what is in the table.
    #[inline(always)]
    pub fn would_lose(self, flags: u64) -> bool {
        const GIVING: u64 = PageEntry::PRESENT | PageEntry::WRITABLE | PageEntry::USER;
        let lost = self.0 & GIVING & !flags | flags & Self::NO_EXECUTE & !self.0;
        self.0 & Self::PRESENT != 0 && lost != 0
    }

    /// A page's entry.
    #[inline(always)]
    pub fn new(frame: FrameNumber, flags: u64) -> Self {
        PageEntry((frame.0 as u64) << 12 | flags)
    }

    /// An entry that leads to a table; what the pages below may be used for stands in their own entries.
    #[inline(always)]
    pub fn table(frame: FrameNumber) -> Self {
        Self::new(frame, Self::PRESENT | Self::WRITABLE | Self::USER)
    }

    /// The frame of the page or table.
    #[inline(always)]
    pub fn frame(self) -> FrameNumber {
        FrameNumber(((self.0 & Self::ADDRESS) >> 12) as u32)
    }

    /// The same with other rights; what the processor noted stays.
    #[inline(always)]
    pub fn with_flags(self, flags: u64) -> Self {
        PageEntry(self.0 & (Self::ADDRESS | Self::ACCESSED | Self::DIRTY) | flags)
    }

    /// The same without some flags.
    #[inline(always)]
    pub fn without(self, flags: u64) -> Self {
        PageEntry(self.0 & !flags)
    }

    /// Whether it is none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has any of some flags.
    #[inline(always)]
    pub fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// What may be done with the page.
    pub fn prot(self) -> Prot {
        let mut prot = Prot::empty();
        prot.set(Prot::READ, self.has(Self::PRESENT));
        prot.set(Prot::WRITE, self.has(Self::WRITABLE));
        prot.set(Prot::EXECUTE, self.has(Self::PRESENT) && !self.has(Self::NO_EXECUTE));
        prot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_loses_what_it_allowed_and_does_not_any_more() {
        let rights = [
            Prot::empty(),
            Prot::READ,
            Prot::READ | Prot::WRITE,
            Prot::READ | Prot::EXECUTE,
            Prot::READ | Prot::WRITE | Prot::EXECUTE,
        ];
        for before in rights {
            for after in rights {
                let entry = PageEntry::new(FrameNumber(5), PageEntry::flags(before));
                assert_eq!(
                    entry.would_lose(PageEntry::flags(after)),
                    !(before - after).is_empty(),
                    "{before:?} {after:?}"
                );
            }
        }
    }
}

//! User page tables.

use core::ops::Range;

use bitflags::bitflags;
use refs::Cx;

use super::{Reader, UFrame, Writer};

/// The first address behind what user programs can map.
pub const USER_END: usize = 0x7fff_ffff_f000;

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
    /// Whether it was written through this mapping.
    pub dirty: bool,
}

/// A user address space as the processor sees it: pages and their frames. Only untyped frames can be mapped (invariant 5).
/// All addresses are page-aligned and below [`USER_END`]; what is not is clamped or refused.
///
/// It has a lock of its own inside. Dropping it gives back its tables and frames, and leaves it on every core first.
pub struct VmSpace {
    _private: (),
}

impl VmSpace {
    /// An empty address space.
    pub fn new() -> Option<Self> {
        None
    }

    /// Makes this the address space of the current core; nothing if it is already.
    pub fn activate(&self, _cx: &Cx) {}

    /// Maps a frame, in place of whatever was there.
    ///
    /// # Errors
    /// No memory for a table; nothing was changed.
    pub fn map(&self, _address: usize, _frame: UFrame, _prot: Prot, _cx: &Cx) -> Result<(), OutOfMemory> {
        Err(OutOfMemory)
    }

    /// What is mapped at the page of `address`.
    pub fn query(&self, _address: usize, _cx: &Cx) -> Option<Entry> {
        None
    }

    /// Changes what may be done with the page of `address`, if one is mapped (after a fault, or for copy-on-write's last
    /// holder).
    pub fn set_prot(&self, _address: usize, _prot: Prot, _cx: &Cx) {}

    /// Changes what may be done with all mapped pages of a range. `WRITE` is *not given* to frames with more than one
    /// reference if `private` (they are shared copy-on-write, and the next write must fault).
    pub fn protect(&self, _range: Range<usize>, _prot: Prot, _private: bool, _cx: &Cx) {}

    /// Unmaps a range and returns tables that become empty. How many pages were mapped.
    pub fn unmap(&self, _range: Range<usize>, _cx: &Cx) -> usize {
        0
    }

    /// Gives the pages of a range that are mapped here to `child` at the same addresses.
    ///
    /// # Errors
    /// No memory for a table; the child has a part of the range.
    pub fn fork_range(
        &self,
        _child: &VmSpace,
        _range: Range<usize>,
        _sharing: Sharing,
        _cx: &Cx,
    ) -> Result<(), OutOfMemory> {
        Err(OutOfMemory)
    }

    /// Moves the mapped pages of a range to another, disjoint one.
    ///
    /// # Errors
    /// No memory for a table; pages not moved yet are where they were.
    pub fn move_range(&self, _from: Range<usize>, _to: usize, _cx: &Cx) -> Result<(), OutOfMemory> {
        Err(OutOfMemory)
    }

    /// How many pages are mapped.
    pub fn mapped_pages(&self) -> usize {
        0
    }

    /// To read user memory from `address`, as the user program itself would. Activates the address space. A range that leaves user addresses
    /// gives a reader whose first copy there faults.
    pub fn reader<'a>(&'a self, _address: usize, _len: usize, _cx: &'a Cx) -> Reader<'a> {
        unimplemented!()
    }

    /// To write user memory from `address`, as the user program itself would.
    pub fn writer<'a>(&'a self, _address: usize, _len: usize, _cx: &'a Cx) -> Writer<'a> {
        unimplemented!()
    }

    /// Reads a 32-bit word atomically (a futex).
    ///
    /// # Errors
    /// The word cannot be read now, or is not aligned.
    pub fn load_u32(&self, _address: usize, _cx: &Cx) -> Result<u32, super::Fault> {
        unimplemented!()
    }

    /// Replaces a 32-bit word by `new` if it is `expected`; the value found.
    ///
    /// # Errors
    /// The word cannot be written now, or is not aligned.
    pub fn compare_exchange_u32(
        &self,
        _address: usize,
        _expected: u32,
        _new: u32,
        _cx: &Cx,
    ) -> Result<u32, super::Fault> {
        unimplemented!()
    }
}

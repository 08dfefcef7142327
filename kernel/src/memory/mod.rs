//! Address spaces, and which frame and which slab is used.

pub mod buddy;
mod pages;
pub mod slab;

use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, FramePolicy, VmSpace};

use crate::error::{Errno, Result as SysResult};

pub use pages::{Mappable, Pages};

/// Frames that new kernel objects must leave: for what is under way already, and for the end of the program that is to be killed.
const RESERVE: usize = 256;

/// Whether there is memory for one more kernel object (a process, an open file, a pipe, ...): asked by every call that makes one.
///
/// # Errors
/// ENOMEM.
#[inline]
pub fn admit() -> SysResult<()> {
    if buddy::FRAMES.available() > RESERVE { Ok(()) } else { Err(Errno::ENOMEM) }
}

/// Takes the pages with these indices of an object out of all address spaces that map it: after the object was truncated
/// (`indices` reaches to `u64::MAX`) or pages were cut out of it, and with no lock of the object held.
pub fn unmap_pages(_object: &dyn Pages, _indices: Range<u64>, _cx: &Cx) {}

/// What a process can see of memory: its areas (vmas) and the page tables that follow from them.
pub struct AddressSpace {
    vm: VmSpace,
}

/// Why a page cannot be made accessible, as the signal that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadAccess {
    /// SIGSEGV, SEGV_MAPERR: nothing is mapped there.
    NotMapped,
    /// SIGSEGV, SEGV_ACCERR: what is mapped there does not allow it.
    NotAllowed,
    /// SIGBUS, BUS_ADRERR: beyond the end of the mapped file.
    BeyondFile,
    /// No memory: the process is killed (SIGKILL) or, inside a system call, gets ENOMEM.
    NoMemory,
}

impl BadAccess {
    /// What a system call says of it.
    pub fn errno(self) -> Errno {
        match self {
            BadAccess::NoMemory => Errno::ENOMEM,
            _ => Errno::EFAULT,
        }
    }
}

impl AddressSpace {
    /// The page tables.
    #[inline(always)]
    pub fn vm(&self) -> &VmSpace {
        &self.vm
    }

    /// Makes the page of `address` accessible if the areas allow it.
    ///
    /// # Errors
    /// Why not.
    pub fn fault(&self, _address: usize, _access: Access, _cx: &Cx) -> Result<(), BadAccess> {
        Err(BadAccess::NotMapped)
    }
}

//! Address spaces, and which frame and which slab is used.

pub mod buddy;
pub mod slab;

use frame::Cx;
use frame::mm::{Access, VmSpace};

use crate::error::Errno;

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

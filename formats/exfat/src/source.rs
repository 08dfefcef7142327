//! [`Source`]: what a file system is read through.

use crate::Error;

/// It is not at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent;

impl From<Absent> for Error {
    fn from(_: Absent) -> Self {
        Error::Absent
    }
}

/// A device with a file system.
pub trait Source {
    /// Copies bytes of the device, all of which are inside of it.
    ///
    /// # Errors
    /// [`Absent`].
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent>;

    /// Asked in the middle of long work that need not begin anew.
    ///
    /// # Errors
    /// [`Absent`]: others must have their turn first.
    fn pause(&self) -> Result<(), Absent> {
        Ok(())
    }
}

/// A device with a file system that is written: [`Source`] reads what was changed as it is now.
pub trait Store: Source {
    /// What is to be in a block in the first of the two times that it is written, if that is not what is in it now ([`Pending::early`](crate::Pending::early)).
    fn early(&self, block: u64) -> Option<alloc::boxed::Box<[u8]>>;

    /// If a cluster cannot be used, or gone on from, before what was changed is on the disk: up to which others cannot ([`Pending::pinned_until`](crate::Pending::pinned_until)).
    fn pinned_until(&self, cluster: u32) -> Option<u32>;
}

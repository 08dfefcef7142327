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

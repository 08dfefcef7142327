//! [`Executable`]: the file that a program runs from.

use refs::StrongRc;

use super::OpenFile;
use crate::error::Result;

/// The file that a program runs from: it cannot be opened for writing meanwhile (ETXTBSY). The address spaces of that program own it.
pub struct Executable {
    file: StrongRc<OpenFile>,
}

impl Executable {
    /// From the open file.
    ///
    /// # Errors
    /// ETXTBSY if it is open for writing.
    pub fn new(file: StrongRc<OpenFile>) -> Result<Self> {
        file.with(|file| file.location.inode.with(|inode| inode.deny_writing()))?;
        Ok(Executable { file })
    }

    /// The file, for one more owner.
    pub fn file(&self) -> &StrongRc<OpenFile> {
        &self.file
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        self.file.with(|file| file.location.inode.with(|inode| inode.allow_writing()));
    }
}

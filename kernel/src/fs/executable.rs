//! [`Executable`]: the file that a program runs from.

use refs::StrongRc;

use super::OpenFile;
use crate::error::Result;

/// The file that a program runs from: it cannot be opened for writing meanwhile (ETXTBSY). The address spaces of that program own it.
///
/// Who cannot open it for that reason has all that was destroyed come to its end first, and looks again: so nobody has to wait for the end of a program's memory.
pub struct Executable {
    /// There until its end.
    file: Option<StrongRc<OpenFile>>,
}

impl Executable {
    /// From the open file.
    ///
    /// # Errors
    /// ETXTBSY if it is open for writing.
    pub fn new(file: StrongRc<OpenFile>) -> Result<Self> {
        file.with(|file| file.location.inode.with(|inode| inode.deny_writing()))?;
        Ok(Executable { file: Some(file) })
    }

    /// The file, for one more owner.
    pub fn file(&self) -> &StrongRc<OpenFile> {
        self.file.as_ref().expect("it is taken out only at the end")
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            file.with(|file| file.location.inode.with(|inode| inode.allow_writing()));
            file.end_unseen_if(OpenFile::end_is_unseen);
        }
    }
}

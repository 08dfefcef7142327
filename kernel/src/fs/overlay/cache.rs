//! The names that a directory knows.

use refs::StrongRc;

use crate::error::Result;
use crate::fs::names::Names;
use crate::fs::{FileKind, Inode};
use crate::pieces::Pieces;

/// What is known of a name.
pub enum Entry {
    /// There is nothing; maybe the upper layer has something there to say so.
    Nothing(Option<StrongRc<Inode>>),
    /// There is something, as a listing told.
    Listed {
        /// Its inode's number.
        number: u64,
        /// Its kind.
        kind: FileKind,
    },
    /// There is this.
    Inode {
        /// The inode.
        inode: StrongRc<Inode>,
        /// Whether a lower layer would show something here if the upper layer had nothing.
        covers: bool,
    },
}

impl Entry {
    fn is_there(&self) -> bool {
        !matches!(self, Entry::Nothing(_))
    }
}

/// The names that a directory knows.
#[derive(Default)]
pub struct Cache {
    /// Them.
    pub names: Names<Entry>,
    /// Whether it knows all: what is not here is not there.
    pub is_complete: bool,
    /// How often names were changed or forgotten: what was found in the layers before is of no use.
    pub version: u64,
    /// How often names were forgotten.
    pub forgotten: u64,
    /// How many names lead to something.
    pub there: usize,
    /// How many names lead to an inode.
    pub inodes: usize,
}

impl Cache {
    /// Enters what is known of a name; what was known before.
    ///
    /// # Errors
    /// ENOMEM, and nothing is changed.
    pub fn set(&mut self, name: &[u8], entry: Entry) -> Result<Option<Entry>> {
        let (is_there, is_inode) = (entry.is_there(), matches!(entry, Entry::Inode { .. }));
        let old = match self.names.replace(name, entry) {
            Ok(old) => Some(old),
            Err(entry) => {
                self.names.insert(name, entry)?;
                None
            }
        };
        self.there += usize::from(is_there);
        self.inodes += usize::from(is_inode);
        self.uncount(old.as_ref());
        Ok(old)
    }

    /// Forgets a name; what was known of it.
    pub fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let old = self.names.remove(name);
        self.uncount(old.as_ref());
        old
    }

    /// Names were forgotten.
    pub fn has_forgotten(&mut self) {
        self.version += 1;
        self.forgotten += 1;
    }

    fn uncount(&mut self, old: Option<&Entry>) {
        self.there -= usize::from(old.is_some_and(Entry::is_there));
        self.inodes -= usize::from(matches!(old, Some(Entry::Inode { .. })));
    }
}

impl Pieces for Names<Entry> {
    fn free_piece(&mut self) -> bool {
        self.take_some().is_some()
    }
}

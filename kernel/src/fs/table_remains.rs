//! [`TableRemains`]: what is left of a table of descriptors that has ended, whose end nobody sees.
//!
//! A table that ends closes at once what somebody else may see closed. The rest, eventfds, both ends of pipes, epoll sets that watch nothing, was for nobody but those who used the table, and they are
//! gone. It is handed over as a whole, however much it is, and its files come to their end a few at a time: by a task of the lowest class, or by who needs memory
//! ([`crate::memory::remains`]). Their memory counts as free, and they are not among the open files, from the moment on at which the table ends.
//!
//! Nothing waits for any of these files and none is found by a name, so all that their end does is to give memory back. (What a file tells others when it is let go of,
//! [`File::release`](super::File::release), is for those who could see it.)
//!
//! Owner: the remains of memory. Destruction: in pieces of [`PIECE`] files. Nobody waits for it.

use refs::HandleTable;

use super::descriptors::UnseenEntries;
use super::{FdFlags, OpenFile};
use crate::heap::slot_bytes;
use crate::memory::remains::{self, Remainder};

/// So many files come to their end at a time.
const PIECE: usize = 16;

/// So many bytes an entry takes at least, whatever the length of its chunk: with its part of what the chunk's slot has besides.
const ENTRY_BYTES: usize = slot_bytes((HandleTable::<OpenFile, FdFlags>::ENTRY_BYTES + 1) * 16) / 16;

/// The unseen entries of a table.
pub struct TableRemains {
    table: HandleTable<OpenFile, FdFlags>,
}

impl TableRemains {
    /// Leaves the entries of a table of which only those are there that nobody sees.
    pub fn leave(table: HandleTable<OpenFile, FdFlags>, unseen: UnseenEntries) {
        OpenFile::leave(unseen.files);
        let bytes = unseen.bytes + unseen.count * ENTRY_BYTES;
        remains::leave_objects(TableRemains { table }, bytes);
    }

    /// Lets go of a file; how many bytes come back at least, or `None` if there are no files.
    fn end_one(&mut self) -> Option<usize> {
        let file = self.table.pop()?;
        let is_last = file.owners() == 1;
        let own = file.with(|file| {
            if !is_last {
                return 0;
            }
            file.end.leave();
            file.end.bytes() + file.file.take_counted()
        });
        Some(ENTRY_BYTES + own)
    }
}

impl Remainder for TableRemains {
    fn give_back(&mut self) -> Option<usize> {
        None
    }

    fn free_piece(&mut self) -> Option<usize> {
        let first = self.end_one()?;
        Some(first + (1..PIECE).map_while(|_| self.end_one()).sum::<usize>())
    }
}

//! What is left of open files that have no names, when all of the group is killed to which who had them belongs.
//!
//! The last description of a file that was unlinked, or of such a FIFO, takes the inode along, with all that is in it: two to three times as much work as to close a file that has a name. Nobody sees that, but for what the
//! inode counts for in its file system. So a description that is [about to be left](super::OpenFile) ends at once, and gives that up; what it opened and the inode are handed over as they are, and come to their end some at a time:
//! by a task of the lowest class, or by who needs memory ([`crate::memory::remains`]). Their memory counts as free from then on.
//!
//! The pages of small files are gathered, and left as other pages are, without destructors.
//!
//! Owner: the list here, and it the inodes. Destruction: in pieces of [`PIECE`] files. Nobody waits for it.
//!
//! Locks: the list, alone.

use alloc::boxed::Box;
use alloc::vec::Vec;

use refs::{SpinLock, StrongRc};

use super::{File, FileEnd, Inode};
use crate::memory::leave_gathered;
use crate::memory::remains::{self, Remainder};
use crate::reclaim::Held;

/// So many files come to their end at a time.
const PIECE: usize = 16;

/// An inode with more owners is open more than once, or has a name.
pub(super) const OWNERS: u32 = 2;

/// What was opened, and its inode.
type Left = (Box<dyn File>, StrongRc<Inode>);

/// What is left, in pieces, the last one first.
static LEFT: SpinLock<Option<Box<Piece>>> = SpinLock::new(None);

struct Piece {
    files: Vec<Left>,
    /// So many bytes come back with them at least.
    bytes: usize,
    next: Option<Box<Piece>>,
}

/// Leaves what a description had open that ends, if it was the last one of an inode without names, and if nobody sees when the two end.
#[cold]
pub(super) fn leave(file: &mut Box<dyn File>, inode: &StrongRc<Inode>) {
    let Some((owners, own)) = file.end_without_names() else { return };
    // One more is the description, which was the only one: nobody borrows it any more, and no name leads to the inode.
    if inode.owners() != owners + 1 {
        return;
    }
    let Some(bytes) = inode.with(Inode::leave) else { return };
    let bytes = own + bytes + size_of::<Left>();
    remains::owe_objects(bytes);
    let file = core::mem::replace(file, Box::new(Nothing));
    if push((file, inode.share()), bytes) {
        remains::gather_objects(NamelessRemains);
    }
    if frame::cpu::count() > 1 {
        // It may be long after the end of the table.
        remains::announce();
    }
}

/// A table has ended whose files may have been left: only now the task is to begin, which else has its turn whenever who ends the table pauses.
pub(super) fn announce() {
    if LEFT.with(|list| list.is_some()) {
        leave_gathered();
        remains::announce();
    }
}

/// Whether it is the first.
fn push(left: Left, bytes: usize) -> bool {
    LEFT.with(|list| {
        let is_first = list.is_none();
        match list {
            Some(piece) if piece.files.len() < PIECE => {
                piece.files.push(left);
                piece.bytes += bytes;
            }
            _ => {
                let mut files = Vec::with_capacity(PIECE);
                files.push(left);
                *list = Some(Box::new(Piece { files, bytes, next: list.take() }));
            }
        }
        is_first
    })
}

/// All that is left, however much comes.
struct NamelessRemains;

impl Remainder for NamelessRemains {
    fn give_back(&mut self) -> Option<usize> {
        None
    }

    fn free_piece(&mut self) -> Option<usize> {
        // A destructor may have come behind the end of its table.
        leave_gathered();
        let piece = LEFT.with(|list| {
            let mut piece = list.take()?;
            *list = piece.next.take();
            Some(piece)
        })?;
        let bytes = piece.bytes;
        drop(piece);
        remains::pay_objects(bytes);
        // These remains are not told how much there is.
        Some(0)
    }
}

/// In place of a file that was left.
struct Nothing;

impl File for Nothing {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }
}

//! [`Ledger`]: which borrows there are just now, by type and place. The proof of the dynamic mode.

use alloc::vec::Vec;
use core::fmt;
use core::panic::Location;

use crate::SpinLock;

/// A borrow that somebody still has: of what type, and where it was taken.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    type_name: &'static str,
    place: &'static Location<'static>,
}

impl Held {
    /// The object's type.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Where the program took it.
    pub fn place(&self) -> &'static Location<'static> {
        self.place
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a TempRc<{}> that was taken at {}", self.type_name, self.place)
    }
}

/// All borrows that are noted and not yet given back. An open one takes more.
#[derive(Debug)]
pub struct Ledger {
    book: SpinLock<Book>,
}

#[derive(Debug)]
struct Book {
    /// How often it was opened and not closed.
    open: usize,
    entries: Vec<Option<Held>>,
}

impl Ledger {
    pub(crate) fn new(open: bool) -> Self {
        Ledger { book: SpinLock::new(Book { open: usize::from(open), entries: Vec::new() }) }
    }

    pub(crate) fn open(&self) {
        self.book.with(|book| book.open += 1);
    }

    /// Undoes one [`open`](Self::open), if there is no borrow; the last one ends the taking of borrows.
    ///
    /// # Errors
    /// The oldest borrow; the ledger is as open as before then.
    pub(crate) fn close(&self) -> Result<(), Held> {
        self.book.with(|book| match book.entries.iter().flatten().next() {
            Some(held) => Err(*held),
            None => {
                book.open -= 1;
                Ok(())
            }
        })
    }

    /// Notes a borrow, if the ledger is open.
    #[track_caller]
    pub(crate) fn note(&self, type_name: &'static str) -> Option<Note<'_>> {
        let held = Some(Held { type_name, place: Location::caller() });
        self.book.with(|book| {
            if book.open == 0 {
                return None;
            }
            let entries = &mut book.entries;
            let index = entries.iter().position(Option::is_none).unwrap_or(entries.len());
            if index == entries.len() {
                entries.push(held);
            } else {
                entries[index] = held;
            }
            Some(Note { ledger: self, index })
        })
    }
}

/// One borrow in a ledger. Dropping it takes it out.
#[derive(Debug)]
pub(crate) struct Note<'a> {
    ledger: &'a Ledger,
    index: usize,
}

impl<'a> Note<'a> {
    /// Notes one more borrow of the same kind.
    #[cfg(feature = "check-temps")]
    #[track_caller]
    pub(crate) fn again(&self, type_name: &'static str) -> Option<Note<'a>> {
        self.ledger.note(type_name)
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        self.ledger.book.with(|book| book.entries[self.index] = None);
    }
}

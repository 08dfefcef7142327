//! [`Files`]: which files are in memory, where on the disk their entries are now, and what was found out of them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use exfat::{ChainIndex, DirectoryIndex, IndexChange, Node, Tail};
use refs::{SpinLock, StrongRc};

use super::super::turns::FoundOut;

/// A file or directory that is in memory.
pub struct File {
    pub(super) number: u64,
    /// What it is, where nothing changes.
    pub(super) node: Node,
    /// Which of those it is that had that number one after another.
    pub(super) serial: u64,
    pub(super) known: StrongRc<Known>,
    pub(super) files: StrongRc<Files>,
}

/// What was found out of a file.
#[derive(Default)]
pub(super) struct Known {
    pub chain: FoundOut<ChainIndex>,
    pub names: FoundOut<DirectoryIndex>,
}

/// The files that are in memory. Owner: the file system; its files have it as well, for their end.
#[derive(Default)]
pub(super) struct Files(pub SpinLock<Table>);

#[derive(Default)]
pub(super) struct Table {
    pub entries: BTreeMap<u64, Entry>,
    /// The numbers of those that have a name, by the places of their entries.
    pub numbers: BTreeMap<u64, u64>,
    /// Counts the files.
    pub serial: u64,
    /// Counts those that are known no more.
    pub forgotten: u64,
}

/// What is known of a file, also where it is changed.
pub(super) struct Entry {
    pub at: At,
    /// Of how many of its clusters the FAT has a chain, before the file says so.
    pub unfolded: u32,
    /// What was cut off, and is still in use.
    pub tails: Vec<Tail>,
    pub known: StrongRc<Known>,
    pub serial: u64,
    pub users: usize,
}

/// Where it stands what a file is.
#[derive(Clone)]
pub(super) enum At {
    /// At this place, or nowhere: it is the root directory.
    Place(Option<u64>),
    /// Here: it has no name.
    Here(Node),
}

/// Numbers of files whose place is another one's number.
const ODD: u64 = 1 << 62;

impl Table {
    /// The number of the file whose entries are at a place.
    pub fn number(&mut self, place: u64) -> u64 {
        match self.numbers.get(&place) {
            Some(number) => *number,
            None if !self.entries.contains_key(&place) => place,
            None => {
                let number = ODD | (self.serial + 1);
                self.enter(number, Some(place));
                number
            }
        }
    }

    pub fn enter(&mut self, number: u64, place: Option<u64>) -> &mut Entry {
        if let Some(place) = place {
            self.numbers.insert(place, number);
        }
        self.entries.entry(number).or_insert_with(|| {
            self.serial += 1;
            let known = StrongRc::new(Known::default());
            Entry { at: At::Place(place), unfolded: 0, tails: Vec::new(), known, serial: self.serial, users: 0 }
        })
    }

    fn moved(&mut self, number: u64, at: At) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if let At::Place(Some(before)) = entry.at
            && self.numbers.get(&before) == Some(&number)
        {
            self.numbers.remove(&before);
        }
        if let At::Place(Some(place)) = at {
            self.numbers.insert(place, number);
        }
        entry.at = at;
    }

    fn forget(&mut self, number: u64) {
        self.moved(number, At::Place(None));
        self.entries.remove(&number);
        self.forgotten += 1;
    }

    /// What follows from a change is true of the files from now on.
    pub fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Names(..) => {}
            Effect::At(number, at) => self.moved(*number, at.clone()),
            Effect::Unfolded(number, unfolded) => {
                if let Some(entry) = self.entries.get_mut(number) {
                    entry.unfolded = *unfolded;
                }
            }
            Effect::Cut(number, _, tail) => {
                if let Some(entry) = self.entries.get_mut(number) {
                    entry.tails.extend(*tail);
                }
            }
            Effect::Rest(number, rest) => {
                if let Some(entry) = self.entries.get_mut(number) {
                    entry.tails.pop();
                    entry.tails.extend(*rest);
                }
            }
            Effect::Gone(number) => self.forget(*number),
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.files.with(|files| {
            files.0.with(|table| {
                let entry = table.entries.get_mut(&self.number).filter(|entry| entry.serial == self.serial);
                let Some(entry) = entry else { return };
                entry.users -= 1;
                // One without a name is deleted.
                if entry.users == 0 && matches!(entry.at, At::Place(_)) {
                    table.forget(self.number);
                }
            });
        });
    }
}

/// What follows from a change for files.
#[derive(Default)]
pub struct Effects(pub(super) Vec<Effect>);

pub(super) enum Effect {
    /// A directory has other names.
    Names(u64, IndexChange),
    /// What a file is stands elsewhere, or is something else.
    At(u64, At),
    /// So many of a file's clusters have a chain.
    Unfolded(u64, u32),
    /// A file has so many clusters left; others are still in use.
    Cut(u64, u32, Option<Tail>),
    /// That is left of what was cut off last of a file.
    Rest(u64, Option<Tail>),
    /// A file is gone.
    Gone(u64),
}

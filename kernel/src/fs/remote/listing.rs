//! [`Listing`]: the names of a directory, as the server told them.
//!
//! They stand in the order of their hashes, and a position is a hash: it stays valid whatever is made and removed, also where the names were fetched anew meanwhile.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use frame::Cx;
use refs::SpinLock;

use crate::fs::names::hash_of;
use crate::fs::{DirectoryEntry, FileKind};
use crate::pieces::{Pieces, free_in_pieces};

/// Positions below belong to `.` and `..`.
const FIRST_POSITION: u64 = 3;

struct Item {
    name: Box<[u8]>,
    number: u64,
    kind: FileKind,
}

/// The names of a directory.
pub struct Listing {
    items: SpinLock<Items>,
    /// When they were asked for, in nanoseconds since boot.
    pub since: u64,
}

#[derive(Default)]
struct Items(BTreeMap<u64, Item>);

impl Pieces for Items {
    fn free_piece(&mut self) -> bool {
        /// So many are freed at once.
        const AT_ONCE: usize = 64;
        for _ in 0..AT_ONCE {
            self.0.pop_first();
        }
        !self.0.is_empty()
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        let items = core::mem::take(self.items.get_mut());
        if !items.0.is_empty() {
            free_in_pieces(items);
        }
    }
}

impl Listing {
    /// None so far.
    pub fn new(since: u64) -> Self {
        Listing { items: SpinLock::default(), since }
    }

    /// Adds a name.
    pub fn add(&self, name: &[u8], number: u64, kind: FileKind, cx: &Cx) {
        // Positive as an offset of a file, and with room above.
        let mut position = (hash_of(name) >> 2).max(FIRST_POSITION);
        let items = &mut self.items.lock(cx).0;
        while items.get(&position).is_some_and(|other| *other.name != *name) {
            position += 1;
        }
        items.insert(position, Item { name: name.into(), number, kind });
    }

    /// Tells `each` the names behind a position, until it says false.
    pub fn tell(&self, from: u64, cx: &Cx, each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) {
        let items = self.items.lock(cx);
        let first = if from < FIRST_POSITION { 0 } else { from + 1 };
        for (&next, item) in items.0.range(first..) {
            if !each(DirectoryEntry { name: &item.name, number: item.number, kind: item.kind, next }) {
                break;
            }
        }
    }
}

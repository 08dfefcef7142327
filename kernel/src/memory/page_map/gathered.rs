//! The pages of small objects that end together: gathered, and left to [`remains`] some at a time.
//!
//! Owner: the list here, and then the remains. Destruction: the pages of [`TOGETHER`] objects at a time, and then their lists. Nobody waits for it.
//!
//! Locks: the list, with the object's own held; memory is allocated meanwhile.

use alloc::vec::Vec;
use core::mem::take;

use frame::mm::UFrame;
use refs::SpinLock;

use super::super::remains::{self, PagesOf, Remainder};
use super::{Chunk, FEW, PageMap};
use crate::heap::slot_bytes;

/// The pages of so many objects are left together.
const TOGETHER: usize = 16;

static GATHERED: SpinLock<Pages> = SpinLock::new(Pages { lists: Vec::new(), count: 0 });

/// Pages that are not left yet.
#[derive(Default)]
struct Pages {
    /// Those of an object each.
    lists: Vec<Vec<Option<UFrame>>>,
    /// How many they are.
    count: usize,
}

impl PageMap {
    /// Takes the pages out of the map of an object that is to be taken apart later. Where they are few they are left once [others](leave_gathered) are. And how many bytes come back with the map itself.
    pub fn gather(&mut self) -> usize {
        match &mut self.near[..] {
            [] if self.far.is_empty() => {}
            [only] if only.pages.len() <= FEW && self.far.is_empty() => {
                let full = GATHERED.with(|gathered| {
                    if gathered.lists.capacity() == 0 {
                        gathered.lists.reserve_exact(TOGETHER);
                    }
                    gathered.count += take(&mut only.count) as usize;
                    gathered.lists.push(take(&mut only.pages));
                    (gathered.lists.len() == TOGETHER).then(|| take(gathered))
                });
                self.count = 0;
                if let Some(full) = full {
                    leave(full);
                }
            }
            _ => drop(take(self)),
        }
        self.near.capacity() * size_of::<Chunk>()
    }
}

/// Leaves what was [gathered](PageMap::gather), without a word to the task that takes remains apart.
pub fn leave_gathered() {
    let gathered = GATHERED.with(take);
    if !gathered.lists.is_empty() {
        leave(gathered);
    }
}

#[cold]
fn leave(Pages { lists, count }: Pages) {
    let entries: usize = lists.iter().map(Vec::capacity).sum();
    let bytes = slot_bytes(TOGETHER * size_of::<Vec<UFrame>>()) + entries * size_of::<Option<UFrame>>();
    remains::gather(Gathered { lists, at: 0 }, PagesOf::Itself, count, bytes);
}

/// What is left of small objects.
struct Gathered {
    lists: Vec<Vec<Option<UFrame>>>,
    /// Those before it have no pages any more.
    at: usize,
}

impl Remainder for Gathered {
    fn give_back(&mut self) -> Option<usize> {
        let lists = self.lists.get_mut(self.at..).filter(|lists| !lists.is_empty())?;
        // The lists are the heap's, and stay.
        let pages = lists.iter_mut().flatten().filter_map(Option::take).count();
        self.at = self.lists.len();
        Some(pages)
    }

    fn free_piece(&mut self) -> Option<usize> {
        None
    }
}

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
use crate::memory::slot_bytes;

/// The pages of so many objects are left together.
const TOGETHER: usize = 16;

/// Pages that are not left yet, of an object each.
static GATHERED: SpinLock<Vec<Chunk>> = SpinLock::new(Vec::new());

impl PageMap {
    /// Takes the pages out of the map of an object that is to be taken apart later. Where they are few they are left once [others](leave_gathered) are. And how many bytes come back with the map itself.
    pub fn gather(&mut self) -> usize {
        match &mut self.near[..] {
            [] if self.far.is_empty() => {}
            [only] if only.pages.len() <= FEW && self.far.is_empty() => {
                let full = GATHERED.with(|gathered| {
                    if gathered.capacity() == 0 {
                        gathered.reserve_exact(TOGETHER);
                    }
                    gathered.push(take(only));
                    (gathered.len() == TOGETHER).then(|| take(gathered))
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
    if !gathered.is_empty() {
        leave(gathered);
    }
}

#[cold]
fn leave(chunks: Vec<Chunk>) {
    let (mut frames, mut bytes) = (0, slot_bytes(TOGETHER * size_of::<Chunk>()));
    for chunk in &chunks {
        frames += chunk.count as usize;
        bytes += chunk.pages.capacity() * size_of::<Option<UFrame>>();
    }
    remains::gather(Gathered { chunks, at: 0 }, PagesOf::Itself, frames, bytes);
}

/// What is left of small objects.
struct Gathered {
    chunks: Vec<Chunk>,
    /// Those before it have no pages any more.
    at: usize,
}

impl Remainder for Gathered {
    fn give_back(&mut self) -> Option<usize> {
        let chunks = self.chunks.get_mut(self.at..).filter(|chunks| !chunks.is_empty())?;
        let mut pages = 0;
        for chunk in chunks {
            // The list is the heap's, and stays.
            chunk.pages.iter_mut().for_each(|page| *page = None);
            pages += take(&mut chunk.count) as usize;
        }
        self.at = self.chunks.len();
        Some(pages)
    }

    fn free_piece(&mut self) -> Option<usize> {
        None
    }
}

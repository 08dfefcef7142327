//! Shared memory as a row of cache lines that are only ever touched atomically.
//!
//! The one at the other end may be hostile: it may write anything anywhere in the region at any time. So nothing in a region
//! is of a type that has invalid values, nothing in it is a pointer, an index or a size that is used before it was checked
//! against private knowledge, and each word is read once per use. A write of the peer can change what a message says; it
//! cannot make this side touch memory outside the region.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use core::slice;

use crate::atomic::{AtomicU64, Ordering};
use crate::message::{Status, Words};

/// One cache line of shared memory: a word that publishes the others, and the others.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Line {
    status: AtomicU64,
    words: [AtomicU64; 7],
}

impl Line {
    fn new() -> Line {
        Line { status: AtomicU64::new(0), words: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// The status word. What the writer wrote before it is visible to who sees it.
    #[inline(always)]
    pub(crate) fn status(&self) -> Status {
        Status(self.status.load(Ordering::Acquire))
    }

    #[inline(always)]
    pub(crate) fn read(&self) -> Words {
        core::array::from_fn(|i| self.words[i].load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn publish(&self, status: Status, words: &Words) {
        for (place, word) in self.words.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        self.status.store(status.0, Ordering::Release);
    }

    /// One of the eight words, for lines that are not messages.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        if index == 0 { &self.status } else { &self.words[index - 1] }
    }
}

/// A piece of shared memory, as seen from here. Clones are the same memory, which lives as long as the last of them.
#[derive(Clone)]
pub struct Region {
    base: NonNull<Line>,
    len_lines: usize,
    _owner: Owner,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("base", &self.base).field("len_lines", &self.len_lines).finish()
    }
}

/// Keeps the memory.
#[derive(Clone)]
enum Owner {
    Heap {
        _lines: Arc<[Line]>,
    },
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    Foreign {
        _owner: Arc<dyn Send + Sync>,
    },
}

// SAFETY: a region is atomics, and its owner is `Send + Sync`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Memory of this program, all zeros, for channels between its threads.
    pub fn on_the_heap(len_lines: usize) -> Region {
        let lines: Arc<[Line]> = (0..len_lines).map(|_| Line::new()).collect::<Vec<_>>().into();
        let base = NonNull::from(&*lines).cast();
        Region { base, len_lines, _owner: Owner::Heap { _lines: lines } }
    }

    /// Memory that comes from elsewhere and stays as long as `owner` does.
    ///
    /// # Safety
    /// From now until `owner` is dropped, `len_lines * 64` bytes from `base` are mapped readable and writable (also if the
    /// other end tries to change that), and this program touches them only through atomics of 64 bits. `base` is aligned
    /// to 64 bytes.
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    pub unsafe fn foreign(base: NonNull<u8>, len_lines: usize, owner: Arc<dyn Send + Sync>) -> Region {
        Region { base: base.cast(), len_lines, _owner: Owner::Foreign { _owner: owner } }
    }

    /// Its size in lines of 64 bytes.
    pub fn len_lines(&self) -> usize {
        self.len_lines
    }

    /// Its word of that number, eight to a line: for traffic of one's own beside a channel, or for a test that plays the hostile
    /// peer. Writing to it can spoil the channel's traffic and nothing else.
    ///
    /// # Panics
    /// When the region is shorter.
    pub fn word(&self, number: usize) -> &AtomicU64 {
        self.lines()[number / 8].word(number % 8)
    }

    /// Its lines.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &[Line] {
        // SAFETY: `base` points at `len_lines` lines that live as long as `_owner`, which `self` holds. Any content is a
        // valid `Line`, and all access is atomic.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.len_lines) }
    }

    /// The part that consists of the given lines.
    ///
    /// # Panics
    /// When the range is not within the region: geometry is checked before.
    pub(crate) fn part(&self, range: Range<usize>) -> Region {
        let lines = &self.lines()[range];
        Region { base: NonNull::from(lines).cast(), len_lines: lines.len(), _owner: self._owner.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    fn a_line_is_one_cache_line() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
    }
}

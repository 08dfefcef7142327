//! [`PageMap`]: the pages of an object, by index.

mod gathered;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use frame::mm::UFrame;

pub use gathered::leave_gathered;

use super::remains::{self, PagesOf, Remainder};
use crate::error::{Errno, Result};

/// Pages by index, in chunks: a list for the chunks near the start, as most files have no others, and a tree for the rest.
#[derive(Default)]
pub struct PageMap {
    near: Vec<Chunk>,
    far: BTreeMap<u64, Chunk>,
    count: u64,
}

/// Pages that stand next to each other.
#[derive(Default)]
struct Chunk {
    /// As many as were needed so far; at most [`CHUNK`].
    pages: Vec<Option<UFrame>>,
    count: u64,
}

/// Pages in a chunk.
const CHUNK: u64 = 128;
/// So many pages at most are left together with those of other objects.
const FEW: usize = 2;
/// So many chunks are taken out of the list at a time: a list of all could be a large block of the heap, which may be refused.
const LEFT_AT_A_TIME: u64 = 512;
/// The list grows by so many empty chunks at most.
const MOST_EMPTY: u64 = 1;

impl Chunk {
    /// The next page within the chunk, from `from` on, that is there (`wanted`) or is not.
    fn next(&self, from: u64, wanted: bool) -> Option<u64> {
        if self.count == if wanted { 0 } else { CHUNK } {
            return None;
        }
        (from..CHUNK).find(|&within| matches!(self.pages.get(within as usize), Some(Some(_))) == wanted)
    }
}

impl PageMap {
    /// The page with an index.
    #[inline(always)]
    pub fn get(&self, index: u64) -> Option<&UFrame> {
        let (number, within) = (index / CHUNK, (index % CHUNK) as usize);
        match self.near.get(number as usize) {
            Some(chunk) => chunk.pages.get(within)?.as_ref(),
            None if self.far.is_empty() => None,
            None => self.far.get(&number)?.pages.get(within)?.as_ref(),
        }
    }

    fn chunk(&self, number: u64) -> Option<&Chunk> {
        self.near.get(number as usize).or_else(|| self.far.get(&number))
    }

    /// How many there are.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Enters a page that is not there.
    ///
    /// # Errors
    /// ENOMEM, and the page is gone.
    pub fn insert(&mut self, index: u64, frame: UFrame) -> Result<()> {
        let (number, within) = (index / CHUNK, (index % CHUNK) as usize);
        let len = self.near.len() as u64;
        let is_near = number < len || (number - len <= MOST_EMPTY && !self.far.contains_key(&number));
        if is_near && number >= len {
            self.near.try_reserve((number + 1 - len) as usize).map_err(|_| Errno::ENOMEM)?;
            for passed in len..=number {
                self.near.push(self.far.remove(&passed).unwrap_or_default());
            }
        }
        let chunk = match self.near.get_mut(number as usize) {
            Some(chunk) => chunk,
            None => self.far.entry(number).or_default(),
        };
        if within >= chunk.pages.len() {
            chunk.pages.try_reserve(within + 1 - chunk.pages.len()).map_err(|_| Errno::ENOMEM)?;
            chunk.pages.resize_with(within + 1, || None);
        }
        chunk.pages[within] = Some(frame);
        chunk.count += 1;
        self.count += 1;
        Ok(())
    }

    /// Leaves the pages to [`remains`].
    fn leave(&mut self) {
        let (near, far) = (core::mem::take(&mut self.near), core::mem::take(&mut self.far));
        let bytes = (near.len() + far.len()) * size_of::<Chunk>();
        remains::leave(Rest { near, far, at: 0 }, PagesOf::Itself, self.count as usize, bytes);
    }

    /// Takes out the pages of a range; how many there were. It takes as long as there are chunks: the pages, if they are many, are left to [`remains`].
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let before = self.count;
        if range.start >= range.end {
            return 0;
        }
        if range.start == 0 && range.end >= self.end() {
            drop(core::mem::take(self));
            return before;
        }
        let whole = range.start.div_ceil(CHUNK)..range.end / CHUNK;
        if whole.start > whole.end {
            self.remove_within(range.start / CHUNK, range.start % CHUNK..range.end - whole.end * CHUNK);
            return before - self.count;
        }
        if !range.start.is_multiple_of(CHUNK) {
            self.remove_within(range.start / CHUNK, range.start % CHUNK..CHUNK);
        }
        if !range.end.is_multiple_of(CHUNK) {
            self.remove_within(whole.end, 0..range.end % CHUNK);
        }
        let len = self.near.len() as u64;
        let (mut at, end) = (whole.start.min(len), whole.end.min(len));
        while at < end {
            let next = end.min(at + LEFT_AT_A_TIME);
            let near = self.near[at as usize..next as usize].iter_mut().map(core::mem::take).collect();
            self.leave_chunks(near, BTreeMap::new());
            at = next;
        }
        if whole.end >= len {
            self.near.truncate(whole.start.min(len) as usize);
        }
        let mut far = self.far.split_off(&whole.start);
        self.far.append(&mut far.split_off(&whole.end));
        self.leave_chunks(Vec::new(), far);
        before - self.count
    }

    /// Leaves chunks that were taken out.
    fn leave_chunks(&mut self, near: Vec<Chunk>, far: BTreeMap<u64, Chunk>) {
        let count = near.iter().chain(far.values()).map(|chunk| chunk.count).sum();
        self.count -= count;
        drop(PageMap { near, far, count });
    }

    /// Behind all pages there are.
    fn end(&self) -> u64 {
        let far = self.far.last_key_value().map_or(0, |(number, _)| *number + 1);
        far.max(self.near.len() as u64).saturating_mul(CHUNK)
    }

    /// Takes out pages of one chunk.
    fn remove_within(&mut self, number: u64, range: Range<u64>) {
        let chunk = match self.near.get_mut(number as usize) {
            Some(chunk) => chunk,
            None => match self.far.get_mut(&number) {
                Some(chunk) => chunk,
                None => return,
            },
        };
        let end = chunk.pages.len().min(range.end as usize);
        for page in &mut chunk.pages[(range.start as usize).min(end)..end] {
            if page.take().is_some() {
                chunk.count -= 1;
                self.count -= 1;
            }
        }
    }

    /// The first page at or behind an index that is there (`wanted`) or is not.
    pub fn next(&self, from: u64, wanted: bool) -> Option<u64> {
        let mut at = from;
        loop {
            let number = at / CHUNK;
            match self.chunk(number) {
                Some(chunk) => {
                    if let Some(within) = chunk.next(at % CHUNK, wanted) {
                        return Some(number * CHUNK + within);
                    }
                }
                None if wanted => {
                    let (&number, chunk) = self.far.range(number..).find(|(_, chunk)| chunk.count > 0)?;
                    return chunk.next(0, true).map(|within| number * CHUNK + within);
                }
                None => return Some(at),
            }
            at = (number + 1) * CHUNK;
        }
    }
}

impl Drop for PageMap {
    fn drop(&mut self) {
        if self.near.len() > 1 || !self.far.is_empty() {
            self.leave();
        }
    }
}

/// What is left of a map that is gone.
struct Rest {
    near: Vec<Chunk>,
    far: BTreeMap<u64, Chunk>,
    /// The chunks with lower numbers have no pages any more.
    at: u64,
}

impl Remainder for Rest {
    fn give_back(&mut self) -> Option<usize> {
        /// So many chunks of one page each, or pages of some that are full.
        const CHUNKS: usize = 16;
        const PAGES: u64 = 4 * CHUNK;
        let (mut chunks, mut pages) = (0, 0);
        while chunks < CHUNKS && pages < PAGES {
            let next = match self.near.get_mut(self.at as usize) {
                Some(chunk) => Some((self.at, chunk)),
                None => self.far.range_mut(self.at..).next().map(|(number, chunk)| (*number, chunk)),
            };
            let Some((number, chunk)) = next else { break };
            // The list itself is the heap's, and stays.
            chunk.pages.iter_mut().for_each(|page| *page = None);
            pages += chunk.count;
            chunks += 1;
            self.at = number + 1;
        }
        (chunks > 0).then_some(pages as usize)
    }

    fn free_piece(&mut self) -> Option<usize> {
        /// So many lists are freed at a time.
        const LISTS: usize = 64;
        let next = || self.near.pop().or_else(|| self.far.pop_last().map(|(_, chunk)| chunk));
        let freed = core::iter::from_fn(next).take(LISTS).count();
        (freed > 0).then_some(freed * size_of::<Chunk>())
    }
}

//! [`Chunks`]: the memory of arenas, in chunks of one size, and the pool to which a whole chain of them goes back in one step.
//!
//! # Why there is `unsafe`
//!
//! A chunk holds objects of one type now and of another type later, and is linked by a word of its own, so that giving back a thousand chunks
//! writes one of them. Safe Rust has no such memory. What makes it sound:
//!
//! 1. A [`Chunk`] or [`Chain`] owns its chunks: it is neither `Clone` nor `Copy`, and nobody else reads or writes them. Whoever made a pointer into one
//!    ([`Chunk::start`]) has stopped using it when the chunk's owner gives it back.
//! 2. Every chunk comes from the allocator with [`LAYOUT`] and goes back with it.
//! 3. The header's `next` is written whenever a chunk enters a chain, before anybody reads it.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use refs::SpinLock;

/// How many bytes a chunk has.
pub const CHUNK_BYTES: usize = 64 << 10;
/// To how many bytes chunks are aligned, and so objects in them can be.
pub const CHUNK_ALIGN: usize = 4096;

const LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, CHUNK_ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two, and not too large"),
};

struct Header {
    next: Option<NonNull<Header>>,
}

/// One chunk, owned.
pub(crate) struct Chunk {
    header: NonNull<Header>,
}

// SAFETY: a chunk is plain memory that has one owner (1).
unsafe impl Send for Chunk {}

impl Chunk {
    /// How many bytes at its start are not the owner's.
    pub(crate) const HEADER: usize = size_of::<Header>();

    /// Its first byte. The bytes from [`HEADER`](Self::HEADER) on are the owner's, and not initialised.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.header.cast()
    }
}

/// Chunks in a list, owned.
#[derive(Default)]
pub(crate) struct Chain {
    ends: Option<(NonNull<Header>, NonNull<Header>)>,
    len: usize,
}

// SAFETY: a chain owns its chunks, which are plain memory.
unsafe impl Send for Chain {}
// SAFETY: nothing can be done with a `&Chain` but to ask for its length.
unsafe impl Sync for Chain {}

impl Chain {
    pub(crate) const fn new() -> Self {
        Chain { ends: None, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.splice(Chain { ends: Some((chunk.header, chunk.header)), len: 1 });
    }

    fn pop(&mut self) -> Option<Chunk> {
        let (first, last) = self.ends?;
        // SAFETY: the chunk is this chain's (1), and its header was written when it entered (3).
        let next = unsafe { first.as_ref().next };
        self.ends = next.map(|next| (next, last));
        self.len -= 1;
        Some(Chunk { header: first })
    }

    /// Puts another chain before this one. Writes one word, however long they are.
    fn splice(&mut self, other: Chain) {
        let Some((first, last)) = other.ends else { return };
        let (next, end) = match self.ends {
            Some((next, end)) => (Some(next), end),
            None => (None, last),
        };
        // SAFETY: the chunk was the other chain's and is this one's (1), has the size and alignment of a header (2), and is not read before it is written.
        unsafe { last.write(Header { next }) };
        self.ends = Some((first, end));
        self.len += other.len;
    }
}

#[derive(Default)]
struct Pool {
    free: Chain,
    taken: usize,
}

/// A pool of chunks for many arenas. What one of them gives back is there for the next one at once.
pub struct Chunks {
    pool: SpinLock<Pool>,
    most: usize,
}

impl core::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (free, taken) = self.lens();
        f.debug_struct("Chunks").field("free", &free).field("taken", &taken).field("most", &self.most).finish()
    }
}

impl Chunks {
    /// A pool that has at most so many chunks at one time, those that are free among them. It takes them from the allocator when they are first wanted.
    pub fn new(most: usize) -> Self {
        Chunks { pool: SpinLock::default(), most }
    }

    /// How many chunks are free, and how many arenas have.
    pub fn lens(&self) -> (usize, usize) {
        self.pool.with(|pool| (pool.free.len(), pool.taken))
    }

    /// A chunk whose content is not initialised; `None` if there is none.
    pub(crate) fn take(&self) -> Option<Chunk> {
        // Counted before it is allocated, which happens without the lock.
        let found = self.pool.with(|pool| {
            let free = pool.free.pop();
            if free.is_none() && pool.taken >= self.most {
                return Err(NoChunk);
            }
            pool.taken += 1;
            Ok(free)
        });
        if let Ok(Some(chunk)) = found {
            return Some(chunk);
        }
        found.ok()?;
        // SAFETY: the layout's size is not zero.
        let memory = unsafe { alloc(LAYOUT) };
        let Some(header) = NonNull::new(memory.cast::<Header>()) else {
            self.pool.with(|pool| pool.taken -= 1);
            return None;
        };
        Some(Chunk { header })
    }

    /// Takes a chain back, however long it is, in one step.
    pub(crate) fn give(&self, chain: Chain) {
        self.pool.with(|pool| {
            pool.taken -= chain.len();
            pool.free.splice(chain);
        });
    }

    /// Returns at most so many free chunks to the allocator; says how many.
    pub fn trim(&self, most: usize) -> usize {
        for done in 0..most {
            let Some(chunk) = self.pool.with(|pool| pool.free.pop()) else { return done };
            free(chunk);
        }
        most
    }
}

impl Drop for Chunks {
    /// Frees what is free. The arenas, which borrow the pool, have gone.
    fn drop(&mut self) {
        while let Some(chunk) = self.pool.get_mut().free.pop() {
            free(chunk);
        }
    }
}

struct NoChunk;

fn free(chunk: Chunk) {
    // SAFETY: the chunk is given away here (1), and came from the allocator with this layout (2).
    unsafe { dealloc(chunk.header.as_ptr().cast(), LAYOUT) };
}

//! [`Arena`]: objects without destructors, in chunks of a shared pool; and [`Name`]: how they are referred to.
//!
//! While the group lives an arena is a table: objects are added and removed one by one, and named by their number and generation. When the group
//! dies none of that is looked at: the chain of chunks goes to the pool in one step. That is sound for types that own nothing, which is checked
//! when the program is compiled.
//!
//! # Why there is `unsafe`
//!
//! An object lives in bytes of a chunk ([`chunk`](crate::chunk) says who owns those). What makes it sound:
//!
//! 1. The places below `begun` have been initialised as [`Place<T>`], those from there on have not. `begun` rises by one when the place was written; it
//!    falls to zero only with all chunks given back.
//! 2. Place `n` is in chunk `n / PER_CHUNK` of the directory, and lies within it: `PER_CHUNK` places fit behind the header, and the chunk's alignment is
//!    enough for them (checked by `LAYOUT_FITS`).
//! 3. `value` of a place is initialised exactly if its generation is odd.
//! 4. References to objects borrow the arena, so nothing is removed, replaced or given back while there is one.

use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::{MaybeUninit, needs_drop};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::chunk::{CHUNK_ALIGN, CHUNK_BYTES, Chain, Chunk, Chunks};
use crate::scrub::Scrub;

/// A pool has no chunk left, or the arena as many as it may have, or as many objects as there are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no chunk left for another object")
    }
}

impl core::error::Error for NoMemory {}

/// An object's name: which arena, which place in it, and which of the objects that were there. May be kept anywhere for ever. When the object was removed,
/// or its arena has died, it leads nowhere.
pub struct Name<T> {
    arena: u64,
    place: u32,
    generation: u32,
    _of: PhantomData<fn() -> T>,
}

impl<T> Clone for Name<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Name<T> {}

impl<T> PartialEq for Name<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.arena, self.place, self.generation) == (other.arena, other.place, other.generation)
    }
}

impl<T> Eq for Name<T> {}

impl<T> Hash for Name<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.arena, self.place, self.generation).hash(state);
    }
}

impl<T> fmt::Debug for Name<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({}, {}, {})", self.arena, self.place, self.generation)
    }
}

/// Where an object is or can be.
struct Place<T> {
    /// Odd while there is an object. Raised by one whenever one comes or goes.
    generation: u32,
    /// The next free place, if this one is free.
    next: u32,
    value: MaybeUninit<T>,
}

/// No place.
const NONE: u32 = u32::MAX;

/// Which arena: no number is given twice. After 584 years of one arena a nanosecond there are none left.
static NEXT_ARENA: AtomicU64 = AtomicU64::new(0);

/// Objects of one type that have no destructor, in chunks of a pool.
///
/// A type with a destructor is refused, because nobody would call it:
///
/// ```compile_fail,E0080
/// let pool = groups::Chunks::new(1);
/// let mut arena = groups::Arena::new(&pool);
/// arena.insert(String::from("owns memory"));
/// ```
pub struct Arena<'p, T> {
    pool: &'p Chunks,
    number: u64,
    chain: Chain,
    most_chunks: usize,
    /// The chunks of the chain, by number.
    directory: Vec<NonNull<u8>>,
    begun: u32,
    free: u32,
    len: u32,
    _owns: PhantomData<T>,
}

// SAFETY: an arena owns its objects and their chunks, as a `Vec` does.
unsafe impl<T: Send> Send for Arena<'_, T> {}
// SAFETY: a `&Arena` gives out `&T` and nothing else.
unsafe impl<T: Sync> Sync for Arena<'_, T> {}

impl<T> fmt::Debug for Arena<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("len", &self.len).field("chunks", &self.chain.len()).finish_non_exhaustive()
    }
}

impl<'p, T> Arena<'p, T> {
    const PAYLOAD: usize = Chunk::HEADER.next_multiple_of(align_of::<Place<T>>());
    const PER_CHUNK: usize = (CHUNK_BYTES - Self::PAYLOAD) / size_of::<Place<T>>();
    const LAYOUT_FITS: () = {
        assert!(!needs_drop::<T>(), "objects of an arena have no destructor, or it would never run");
        assert!(align_of::<Place<T>>() <= CHUNK_ALIGN && Self::PER_CHUNK > 0, "an object must fit into a chunk");
    };

    /// An empty arena, which has no chunk yet.
    pub fn new(pool: &'p Chunks) -> Self {
        Self::with_most(pool, usize::MAX)
    }

    /// An empty arena that takes at most so many chunks.
    pub fn with_most(pool: &'p Chunks, most_chunks: usize) -> Self {
        const { Self::LAYOUT_FITS };
        Arena {
            pool,
            number: NEXT_ARENA.fetch_add(1, Ordering::Relaxed),
            chain: Chain::new(),
            most_chunks,
            directory: Vec::new(),
            begun: 0,
            free: NONE,
            len: 0,
            _owns: PhantomData,
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many chunks it has.
    pub fn chunks(&self) -> usize {
        self.chain.len()
    }

    /// A place below `begun`, or the one at it if there is a chunk for that.
    #[inline(always)]
    fn place(&self, place: u32) -> NonNull<Place<T>> {
        let (chunk, within) = (place as usize / Self::PER_CHUNK, place as usize % Self::PER_CHUNK);
        let start = self.directory[chunk];
        // SAFETY: the place is within the chunk (2).
        unsafe { start.byte_add(Self::PAYLOAD + within * size_of::<Place<T>>()).cast() }
    }

    /// The place that a name leads to, with an object.
    #[inline(always)]
    fn find(&self, name: Name<T>) -> Option<NonNull<Place<T>>> {
        if name.arena != self.number || name.place >= self.begun {
            return None;
        }
        let place = self.place(name.place);
        // SAFETY: a place below `begun` is initialised (1), and nobody else has a mutable reference to it (4).
        let generation = unsafe { place.as_ref().generation };
        (generation == name.generation).then_some(place)
    }

    /// Adds an object.
    pub fn insert(&mut self, value: T) -> Result<Name<T>, NoMemory> {
        let (number, generation) = if self.free != NONE {
            let number = self.free;
            let mut place = self.place(number);
            // SAFETY: a free place is below `begun` and so initialised (1), and `&mut self` is the only access (4).
            let place = unsafe { place.as_mut() };
            self.free = place.next;
            place.generation += 1;
            place.value.write(value);
            (number, place.generation)
        } else {
            let number = self.begin()?;
            let first = Place { generation: 1, next: NONE, value: MaybeUninit::new(value) };
            // SAFETY: the place is this arena's (2), and `&mut self` is the only access (4).
            unsafe { self.place(number).write(first) };
            self.begun += 1;
            (number, 1)
        };
        self.len += 1;
        Ok(Name { arena: self.number, place: number, generation, _of: PhantomData })
    }

    /// The place at `begun`, for which there is a chunk then.
    fn begin(&mut self) -> Result<u32, NoMemory> {
        let number = self.begun;
        if number == NONE {
            return Err(NoMemory);
        }
        if number as usize / Self::PER_CHUNK == self.directory.len() {
            if self.chain.len() >= self.most_chunks {
                return Err(NoMemory);
            }
            self.directory.try_reserve(1).map_err(|_| NoMemory)?;
            let chunk = self.pool.take().ok_or(NoMemory)?;
            self.directory.push(chunk.start());
            self.chain.push(chunk);
        }
        Ok(number)
    }

    /// An object; `None` if it was removed, or the name is of another arena.
    #[inline(always)]
    pub fn get(&self, name: Name<T>) -> Option<&T> {
        let place = self.find(name)?;
        // SAFETY: the place has an object, since names have odd generations (3); the reference borrows the arena (4).
        Some(unsafe { place.as_ref().value.assume_init_ref() })
    }

    /// As [`get`](Self::get), to change it.
    #[inline(always)]
    pub fn get_mut(&mut self, name: Name<T>) -> Option<&mut T> {
        let mut place = self.find(name)?;
        // SAFETY: as above; the arena is borrowed mutably.
        Some(unsafe { place.as_mut().value.assume_init_mut() })
    }

    /// Takes an object out.
    pub fn remove(&mut self, name: Name<T>) -> Option<T> {
        let mut place = self.find(name)?;
        // SAFETY: as for `get_mut`.
        let place = unsafe { place.as_mut() };
        // SAFETY: there is an object (3), which nobody reads again: the generation becomes even.
        let value = unsafe { place.value.assume_init_read() };
        self.len -= 1;
        // A place whose generations have run out is not used again.
        place.generation = place.generation.wrapping_add(1);
        if place.generation != 0 {
            place.next = self.free;
            self.free = name.place;
        }
        Some(value)
    }

    /// Ends all objects and all names, and gives all chunks back in one step: nothing of them is looked at.
    pub fn scrub(&mut self, scrub: &mut Scrub) {
        let chain = core::mem::take(&mut self.chain);
        scrub.chunks += chain.len() as u64;
        self.number = NEXT_ARENA.fetch_add(1, Ordering::Relaxed);
        self.directory.clear();
        (self.begun, self.free, self.len) = (0, NONE, 0);
        self.pool.give(chain);
    }
}

impl<T> Drop for Arena<'_, T> {
    fn drop(&mut self) {
        self.pool.give(core::mem::take(&mut self.chain));
    }
}

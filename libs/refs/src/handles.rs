//! [`HandleTable`]: small numbers for objects, the lowest free one first, as file descriptors are.
//!
//! The entries stand in chunks of [`CHUNK`], each with a word that says which of its numbers are taken; one bit for each chunk says whether it
//! is full. So the lowest free number is found without a look at the entries, and the table grows by a chunk (and eight bytes for each chunk before
//! it) at a time.
//!
//! A copy of a table shares the chunks' entries with it, so that it costs a few instructions for each chunk; who changes a chunk that is shared copies it
//! first. Invariant: a chunk with a number that is reserved is not shared, so that filling it needs no memory.
//!
//! An entry may be *unseen* ([`HandleEnd`]): nobody but who uses this table can tell when its object comes to its end. Each chunk has a bit for each of its entries that says so, and one
//! bit for each chunk says whether it may have others. So a table that ends finds those that are to be ended at once ([`HandleTable::drain`]) without a look at the rest, which is
//! taken apart some time later ([`HandleTable::pop`]). Invariants: a chunk that is shared has no unseen entries; one that has an entry which is seen has its bit.

use alloc::vec::Vec;
use core::fmt;

use crate::mode::{Mode, Shared};
use crate::shared_slice::SharedSlice;
use crate::{Dying, NoSuspend, StrongRc, TempRc, WeakRc};

/// One entry: a share in an object, and what belongs to the entry rather than to the object (such as `FD_CLOEXEC`).
pub struct Handle<T: ?Sized + 'static, A, M: Mode = Shared> {
    object: StrongRc<T, M>,
    /// What belongs to this entry alone.
    pub attribute: A,
}

/// Whether anybody sees when exactly the object of an entry comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleEnd {
    /// Somebody may: once the table ends it is to be ended at once.
    Seen,
    /// Nobody who does not use this very table.
    Unseen,
}

/// Numbers in a chunk: the bits of a word.
const CHUNK: usize = u64::BITS as usize;

/// A number's entry, if it is in use.
type Entry<T, A, M> = Option<Handle<T, A, M>>;

struct Chunk<T: ?Sized + 'static, A, M: Mode> {
    /// Bit n: number n of the chunk is in use or reserved.
    taken: u64,
    /// Bit n: number n of the chunk is in use, and its attribute is not the default.
    marked: u64,
    /// Bit n: number n of the chunk is in use, and its entry unseen.
    unseen: u64,
    /// As many as were needed so far; at most `CHUNK`.
    entries: SharedSlice<Entry<T, A, M>>,
}

/// The entries of a chunk that has any, at least.
const FEWEST: usize = 4;

impl<T: ?Sized, A: Copy + Default + PartialEq, M: Mode> Chunk<T, A, M> {
    const fn empty() -> Self {
        Chunk { taken: 0, marked: 0, unseen: 0, entries: SharedSlice::empty() }
    }

    /// Makes room for entry `bit`, which may be changed then; false if there is no memory for it.
    #[inline(always)]
    fn make_room(&mut self, bit: usize) -> bool {
        (bit < self.entries.len() && self.entries.owners() == 1) || self.copy(bit)
    }

    /// Moves the entries to where there is room for `bit`, or copies them if they are shared; false if there is no memory for it.
    #[cold]
    #[inline(never)]
    fn copy(&mut self, bit: usize) -> bool {
        let len = match self.entries.len() {
            len if bit < len => len,
            _ => (bit + 1).next_power_of_two().max(FEWEST),
        };
        let copy = match self.entries.get_mut() {
            Some(own) => SharedSlice::new(len, |index| own.get_mut(index).and_then(Option::take)),
            None => SharedSlice::new(len, |index| self.entries.get(index)?.as_ref().map(Handle::share)),
        };
        copy.map(|copy| self.entries = copy).is_some()
    }

    /// The entries, to be changed; `None` if they are shared and there is no memory for a copy.
    #[inline(always)]
    fn own(&mut self) -> Option<&mut [Entry<T, A, M>]> {
        if self.entries.owners() != 1 && !self.copy(0) {
            return None;
        }
        self.entries.get_mut()
    }

    /// Notes what attribute entry `bit` has.
    #[inline(always)]
    fn mark(&mut self, bit: usize, attribute: A) {
        self.marked = self.marked & !(1 << bit) | u64::from(attribute != A::default()) << bit;
    }

    /// Notes how entry `bit` ends.
    #[inline(always)]
    fn note_end(&mut self, bit: usize, end: HandleEnd) {
        self.unseen = self.unseen & !(1 << bit) | u64::from(end == HandleEnd::Unseen) << bit;
    }

    /// How entry `bit` ends, which is gone.
    #[inline(always)]
    fn take_end(&mut self, bit: usize) -> HandleEnd {
        if self.unseen >> bit & 1 == 0 {
            return HandleEnd::Seen;
        }
        self.unseen &= !(1 << bit);
        HandleEnd::Unseen
    }

    /// Whether a number of it is reserved.
    fn has_reserved(&self) -> bool {
        let is_filled = |bit: u32| matches!(self.entries.get(bit as usize), Some(Some(_)));
        (0..u64::BITS).any(|bit| self.taken >> bit & 1 != 0 && !is_filled(bit))
    }

    /// The same entries, without what is only reserved; `None` if there is no memory for it.
    #[cold]
    fn copy_without_reserved(&self) -> Option<Self> {
        let entries =
            SharedSlice::new(self.entries.len(), |index| self.entries.get(index)?.as_ref().map(Handle::share))?;
        let taken = entries.iter().enumerate().fold(0, |taken, (bit, entry)| taken | u64::from(entry.is_some()) << bit);
        Some(Chunk { taken, marked: self.marked, unseen: 0, entries })
    }
}

impl<T: ?Sized, A: Copy, M: Mode> Handle<T, A, M> {
    fn share(&self) -> Self {
        Handle { object: self.object.share(), attribute: self.attribute }
    }
}

/// What is known of the chunks of a table, by bits.
#[derive(Clone, Copy, Default)]
struct Words {
    /// Bit n: all numbers of chunk n are taken.
    full: u64,
    /// Bit n: chunk n may have entries that are not unseen.
    seen: u64,
}

/// Objects by small numbers. An object may stand in several entries and in several tables; it dies with the last.
pub struct HandleTable<T: ?Sized + 'static, A, M: Mode = Shared> {
    chunks: Vec<Chunk<T, A, M>>,
    /// Of 64 chunks each.
    words: Vec<Words>,
    /// A chunk that became empty and kept its memory, so that a number at its edge can come and go cheaply.
    spare: usize,
    /// How many numbers are reserved.
    reserved: usize,
}

impl<T: ?Sized + fmt::Debug, A: fmt::Debug, M: Mode> fmt::Debug for Handle<T, A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("object", &self.object).field("attribute", &self.attribute).finish()
    }
}

impl<T: ?Sized + fmt::Debug, A: fmt::Debug + Copy + Default + PartialEq, M: Mode> fmt::Debug for HandleTable<T, A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.indices().filter_map(|index| Some((index, self.entry(index)?)))).finish()
    }
}

impl<T: ?Sized, A, M: Mode> Default for HandleTable<T, A, M> {
    fn default() -> Self {
        HandleTable { chunks: Vec::new(), words: Vec::new(), spare: 0, reserved: 0 }
    }
}

impl<T: ?Sized, A: Copy + Default + PartialEq, M: Mode> HandleTable<T, A, M> {
    /// So many bytes an entry takes at least.
    pub const ENTRY_BYTES: usize = size_of::<Entry<T, A, M>>();

    #[inline(always)]
    fn entry(&self, index: usize) -> Option<&Handle<T, A, M>> {
        self.chunks.get(index / CHUNK)?.entries.get(index % CHUNK)?.as_ref()
    }

    /// The object of a number.
    #[inline(always)]
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, index: usize, cx: &'cx impl NoSuspend<M>) -> Option<TempRc<'cx, T, M>> {
        Some(self.entry(index)?.object.get(cx))
    }

    /// The name of the object of a number.
    #[inline(always)]
    pub fn weak(&self, index: usize) -> Option<WeakRc<T, M>> {
        Some(self.entry(index)?.object.downgrade())
    }

    /// How many entries, here and elsewhere, own the object of a number; fewer, but more than one, where tables share entries.
    #[inline]
    pub fn owners(&self, index: usize) -> Option<u32> {
        let chunk = self.chunks.get(index / CHUNK)?;
        let entry = chunk.entries.get(index % CHUNK)?.as_ref()?;
        Some(entry.object.owners() + (chunk.entries.owners() - 1))
    }

    /// Takes out entries that are not unseen, from `index` on, until `N` are the last that own their objects, or `choose` accepts their objects: those, and the number to go on
    /// with. The others cost next to nothing; after `most` of them it is time for something else, too. For a table that ends: no number is free again.
    /// What other tables share ends with the last of them. Fewer, and at least the length of the table, when all are out; the unseen are left to [`pop`](Self::pop).
    pub fn drain<const N: usize>(
        &mut self,
        index: usize,
        most: usize,
        mut choose: impl FnMut(&T) -> bool,
    ) -> ([Option<Dying<T, M>>; N], usize) {
        let mut at = index;
        let (mut drained, mut count) = ([const { None }; N], 0);
        let end = index.saturating_add(most).min(self.len());
        while at < end {
            let number = at / CHUNK;
            if !self.may_have_seen(number) {
                at = self.next_seen(number + 1) * CHUNK;
                continue;
            }
            let Some(chunk) = self.chunks.get_mut(number) else { break };
            // Of two tables that end at once, one keeps the entries.
            chunk.entries.leave();
            let entries = chunk.entries.get_mut().unwrap_or_default();
            // What others share ends with them.
            let own = if entries.is_empty() { 0 } else { chunk.taken };
            let mut seen = own & !chunk.unseen & (u64::MAX << (at % CHUNK));
            while seen != 0 {
                let bit = seen.trailing_zeros() as usize;
                seen &= seen - 1;
                let here = number * CHUNK + bit;
                if here >= end {
                    return (drained, end);
                }
                if let Some(entry) = entries.get_mut(bit).and_then(Option::take)
                    && (entry.object.owners() == 1 || entry.object.with(&mut choose))
                {
                    if let Some(place) = drained.get_mut(count) {
                        // There is nothing in it.
                        core::mem::forget(place.replace(Dying::new(entry.object)));
                    }
                    count += 1;
                    if count < N {
                        continue;
                    }
                    // Who goes on behind a chunk's last entry does not come back to it.
                    if seen == 0 && chunk.unseen == 0 {
                        chunk.entries = SharedSlice::empty();
                    }
                    return (drained, here + 1);
                }
            }
            if chunk.unseen == 0 {
                chunk.entries = SharedSlice::empty();
            }
            at = (number + 1) * CHUNK;
        }
        (drained, at.max(end))
    }

    /// Takes out the entry with the highest number. For a table that ends, and that shares nothing: what was [drained](Self::drain) is out. `None` when all are out.
    pub fn pop(&mut self) -> Option<Dying<T, M>> {
        while let Some(chunk) = self.chunks.last_mut() {
            while chunk.taken != 0 {
                let bit = CHUNK - 1 - chunk.taken.leading_zeros() as usize;
                chunk.taken &= !(1 << bit);
                let entry = chunk.entries.get_mut().and_then(|entries| entries.get_mut(bit)?.take());
                if let Some(entry) = entry {
                    return Some(Dying::new(entry.object));
                }
            }
            self.chunks.pop();
        }
        None
    }

    /// Whether the entry of a number is there and unseen.
    #[inline(always)]
    pub fn is_unseen(&self, index: usize) -> bool {
        self.chunks.get(index / CHUNK).is_some_and(|chunk| chunk.unseen >> (index % CHUNK) & 1 != 0)
    }

    /// From now on somebody else may see the end of the object of a number.
    pub fn see(&mut self, index: usize) {
        let number = index / CHUNK;
        if let Some(chunk) = self.chunks.get_mut(number) {
            chunk.unseen &= !(1 << (index % CHUNK));
            self.has_seen(number);
        }
    }

    /// From now on somebody else may see the end of the object of any number that is in use.
    pub fn see_all(&mut self) {
        self.all_have_seen();
        self.chunks.iter_mut().for_each(|chunk| chunk.unseen = 0);
    }

    /// Any chunk that there is may have entries that are not unseen.
    fn all_have_seen(&mut self) {
        let mut chunks = self.chunks.len();
        for words in &mut self.words {
            words.seen = if chunks < CHUNK { (1 << chunks) - 1 } else { u64::MAX };
            chunks = chunks.saturating_sub(CHUNK);
        }
    }

    #[inline(always)]
    fn may_have_seen(&self, number: usize) -> bool {
        self.words.get(number / CHUNK).is_some_and(|words| words.seen >> (number % CHUNK) & 1 != 0)
    }

    /// A chunk has an entry that is not unseen.
    #[inline(always)]
    fn has_seen(&mut self, number: usize) {
        self.words[number / CHUNK].seen |= 1 << (number % CHUNK);
    }

    /// The first chunk from `at` on that may have entries that are not unseen; one behind the last if none may.
    fn next_seen(&self, mut at: usize) -> usize {
        while let Some(words) = self.words.get(at / CHUNK) {
            let seen = words.seen & (u64::MAX << (at % CHUNK));
            if seen != 0 {
                return at / CHUNK * CHUNK + seen.trailing_zeros() as usize;
            }
            at = (at / CHUNK + 1) * CHUNK;
        }
        self.chunks.len()
    }

    /// What belongs to the entry.
    #[inline]
    pub fn attribute(&self, index: usize) -> Option<A> {
        Some(self.entry(index)?.attribute)
    }

    /// Changes what belongs to the entry. `None`, and nothing has changed, where nothing is, and where there is no memory: entries that another table
    /// has, too, are copied first.
    pub fn set_attribute(&mut self, index: usize, attribute: A) -> Option<()> {
        self.entry(index)?;
        let chunk = self.chunks.get_mut(index / CHUNK)?;
        chunk.own()?.get_mut(index % CHUNK)?.as_mut()?.attribute = attribute;
        chunk.mark(index % CHUNK, attribute);
        Some(())
    }

    /// The first number from `from` on and below `end` that is in use and whose attribute `choose` accepts. If that is not so of the default, entries
    /// with it cost nothing.
    #[inline]
    pub fn next_where(&self, from: usize, end: usize, choose: impl Fn(A) -> bool) -> Option<usize> {
        let with_default = choose(A::default());
        let mut at = from;
        while at < end {
            let start = at / CHUNK * CHUNK;
            let chunk = self.chunks.get(at / CHUNK)?;
            let mut left = if with_default { chunk.taken } else { chunk.marked } & (u64::MAX << (at % CHUNK));
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                if start + bit >= end {
                    return None;
                }
                if matches!(chunk.entries.get(bit), Some(Some(entry)) if choose(entry.attribute)) {
                    return Some(start + bit);
                }
                left &= left - 1;
            }
            at = start + CHUNK;
        }
        None
    }

    /// Enters an object under the lowest free number that is at least `from` and below `limit`.
    ///
    /// # Errors
    /// Gives the object back where no number is free, or no memory for a longer table.
    pub fn insert(
        &mut self,
        object: StrongRc<T, M>,
        attribute: A,
        end: HandleEnd,
        from: usize,
        limit: usize,
    ) -> Result<usize, Dying<T, M>> {
        let index = self.lowest_free(from);
        let (number, bit) = (index / CHUNK, index % CHUNK);
        if index >= limit || (number >= self.chunks.len() && !self.grow(number)) {
            return Err(Dying::new(object));
        }
        if end == HandleEnd::Seen {
            self.has_seen(number);
        }
        let chunk = &mut self.chunks[number];
        if !chunk.make_room(bit) {
            return Err(Dying::new(object));
        }
        let Some(entry) = chunk.entries.get_mut().and_then(|entries| entries.get_mut(bit)) else {
            return Err(Dying::new(object));
        };
        debug_assert!(entry.is_none(), "the number was taken");
        *entry = Some(Handle { object, attribute });
        // Of a number that was free there are no marks.
        if attribute != A::default() {
            chunk.mark(bit, attribute);
        }
        if end == HandleEnd::Unseen {
            chunk.unseen |= 1 << bit;
        }
        chunk.taken |= 1 << bit;
        if chunk.taken == u64::MAX {
            self.words[number / CHUNK].full |= 1 << (number % CHUNK);
        }
        Ok(index)
    }

    /// Takes the lowest free number that is at least `from` and below `limit`, for an object that is to come: nobody finds anything there,
    /// and nobody else gets it, until it is [filled](Self::fill) or [released](Self::release). `None` where no number is free, or no memory for a
    /// longer table.
    #[inline]
    pub fn reserve_lowest(&mut self, from: usize, limit: usize) -> Option<usize> {
        let index = self.lowest_free(from);
        if index >= limit {
            return None;
        }
        let (number, bit) = (index / CHUNK, index % CHUNK);
        if number >= self.chunks.len() && !self.grow(number) {
            return None;
        }
        let chunk = self.chunks.get_mut(number)?;
        if !chunk.make_room(bit) {
            return None;
        }
        chunk.taken |= 1 << bit;
        if chunk.taken == u64::MAX {
            self.words[number / CHUNK].full |= 1 << (number % CHUNK);
        }
        self.reserved += 1;
        Some(index)
    }

    /// Enters an object under a number that was reserved for it.
    ///
    /// # Panics
    /// If the number is not reserved.
    #[inline]
    pub fn fill(&mut self, index: usize, object: StrongRc<T, M>, attribute: A, end: HandleEnd) {
        let bit = index % CHUNK;
        if end == HandleEnd::Seen {
            self.has_seen(index / CHUNK);
        }
        let chunk = self.chunks.get_mut(index / CHUNK).filter(|chunk| chunk.taken >> bit & 1 != 0);
        let entry = chunk.and_then(|chunk| {
            // Of a number that is reserved there is no mark.
            if attribute != A::default() {
                chunk.mark(bit, attribute);
            }
            if end == HandleEnd::Unseen {
                chunk.unseen |= 1 << bit;
            }
            chunk.own()?.get_mut(bit)
        });
        let entry = entry.filter(|entry| entry.is_none());
        *entry.expect("the number was not reserved") = Some(Handle { object, attribute });
        self.reserved -= 1;
    }

    /// Gives back a number that was reserved.
    ///
    /// # Panics
    /// If the number is not reserved.
    pub fn release(&mut self, index: usize) {
        assert!(self.is_reserved(index), "the number was not reserved");
        self.reserved -= 1;
        self.free(index);
    }

    /// Whether a number is reserved and not yet filled.
    #[inline]
    pub fn is_reserved(&self, index: usize) -> bool {
        self.chunks.get(index / CHUNK).is_some_and(|chunk| chunk.taken >> (index % CHUNK) & 1 != 0)
            && self.entry(index).is_none()
    }

    /// Makes room for an entry under `index`, in entries that are this table's own; false if there is no memory for it.
    #[inline]
    pub fn make_room(&mut self, index: usize) -> bool {
        let (number, bit) = (index / CHUNK, index % CHUNK);
        if number >= self.chunks.len() && !self.grow(number) {
            return false;
        }
        self.chunks[number].make_room(bit)
    }

    /// Enters an object under `index`, for which there is room (see [`make_room`](Self::make_room)) and which is not reserved; gives back the
    /// one that was there.
    ///
    /// # Panics
    /// If there is no room.
    pub fn replace(
        &mut self,
        index: usize,
        object: StrongRc<T, M>,
        attribute: A,
        end: HandleEnd,
    ) -> Option<Dying<T, M>> {
        let old = self.put(index, Handle { object, attribute }, end);
        self.take(index);
        old
    }

    /// One more share in the object of `index`, for another entry.
    pub fn share(&self, index: usize) -> Option<StrongRc<T, M>> {
        Some(self.entry(index)?.object.share())
    }

    /// As [`share`](Self::share), and who sees the object's end.
    #[inline]
    pub fn share_with_end(&self, index: usize) -> Option<(StrongRc<T, M>, HandleEnd)> {
        let (chunk, bit) = (self.chunks.get(index / CHUNK)?, index % CHUNK);
        let end = if chunk.unseen >> bit & 1 != 0 { HandleEnd::Unseen } else { HandleEnd::Seen };
        Some((chunk.entries.get(bit)?.as_ref()?.object.share(), end))
    }

    /// More than the highest number that was in use since there was room for it.
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Whether no number was ever in use.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Takes an entry out. The object dies if this was the last. `None`, and it is still there, also where there is no memory: entries that another
    /// table has, too, are copied first.
    #[inline]
    pub fn remove(&mut self, index: usize) -> Option<Dying<T, M>> {
        Some(self.remove_with_end(index)?.0)
    }

    /// As [`remove`](Self::remove), and who saw the object's end.
    #[inline(always)]
    pub fn remove_with_end(&mut self, index: usize) -> Option<(Dying<T, M>, HandleEnd)> {
        let (number, bit) = (index / CHUNK, index % CHUNK);
        let chunk = self.chunks.get_mut(number)?;
        chunk.entries.get(bit)?.as_ref()?;
        let old = chunk.own()?.get_mut(bit)?.take()?;
        let was_full = chunk.taken == u64::MAX;
        chunk.taken &= !(1 << bit);
        chunk.marked &= !(1 << bit);
        let end = chunk.take_end(bit);
        if was_full {
            self.words[number / CHUNK].full &= !(1 << (number % CHUNK));
        } else if chunk.taken == 0 {
            self.is_empty_now(number);
        }
        Some((Dying::new(old.object), end))
    }

    /// A table with the same entries under the same numbers, without what is only reserved; `None` if there is no memory for it. In neither is any entry unseen then.
    pub fn share_all(&mut self) -> Option<Self> {
        let used = self.chunks.iter().rposition(|chunk| chunk.taken != 0).map_or(0, |last| last + 1);
        let mut copy = Self::default();
        if used > 0 && !copy.grow(used - 1) {
            return None;
        }
        self.all_have_seen();
        copy.all_have_seen();
        for (number, (from, to)) in self.chunks.iter_mut().zip(&mut copy.chunks).enumerate() {
            from.unseen = 0;
            if from.taken == 0 {
                continue;
            }
            *to = if self.reserved > 0 && from.has_reserved() {
                from.copy_without_reserved()?
            } else {
                Chunk { taken: from.taken, marked: from.marked, unseen: 0, entries: from.entries.share() }
            };
            if to.taken == u64::MAX {
                copy.words[number / CHUNK].full |= 1 << (number % CHUNK);
            }
        }
        Some(copy)
    }

    /// Takes out all entries whose attribute `choose` accepts.
    pub fn remove_where(&mut self, mut choose: impl FnMut(&A) -> bool) -> Vec<Dying<T, M>> {
        let chosen: Vec<usize> =
            self.indices().filter(|&index| self.entry(index).is_some_and(|entry| choose(&entry.attribute))).collect();
        chosen.into_iter().filter_map(|index| self.remove(index)).collect()
    }

    /// Keeps the entries that `keep` accepts, by number and object; the objects of the others lose an owner, and those that die are freed at
    /// the next suspension.
    pub fn retain(&mut self, mut keep: impl FnMut(usize, &T, A) -> bool) {
        let mut next = self.next(0);
        while let Some(index) = next {
            next = self.next(index + 1);
            let kept = |entry: &Handle<T, A, M>| entry.object.with(|object| keep(index, object, entry.attribute));
            if !self.entry(index).is_some_and(kept) {
                drop(self.remove(index));
            }
        }
    }

    /// The first number in use from `index` on.
    pub fn next(&self, index: usize) -> Option<usize> {
        let mut at = index;
        while let Some(chunk) = self.chunks.get(at / CHUNK) {
            let start = at / CHUNK * CHUNK;
            let mut taken = chunk.taken & (u64::MAX << (at % CHUNK));
            while taken != 0 {
                let bit = taken.trailing_zeros() as usize;
                if matches!(chunk.entries.get(bit), Some(Some(_))) {
                    return Some(start + bit);
                }
                taken &= taken - 1;
            }
            at = start + CHUNK;
        }
        None
    }

    /// The numbers in use, ascending.
    pub fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        core::iter::successors(self.next(0), |&index| self.next(index + 1))
    }

    /// The lowest number from `from` on that is not taken; the table may have to grow for it.
    #[inline]
    fn lowest_free(&self, from: usize) -> usize {
        let first = from / CHUNK;
        let Some(chunk) = self.chunks.get(first) else { return from };
        let free = !chunk.taken & (u64::MAX << (from % CHUNK));
        if free != 0 {
            return first * CHUNK + free.trailing_zeros() as usize;
        }
        let number = self.next_chunk(first + 1);
        let taken = self.chunks.get(number).map_or(0, |chunk| chunk.taken);
        number * CHUNK + (!taken).trailing_zeros() as usize
    }

    /// The first chunk from `at` on that is not full; one behind the last if all are.
    fn next_chunk(&self, mut at: usize) -> usize {
        while let Some(words) = self.words.get(at / CHUNK) {
            let free = !words.full & (u64::MAX << (at % CHUNK));
            if free != 0 {
                return at / CHUNK * CHUNK + free.trailing_zeros() as usize;
            }
            at = (at / CHUNK + 1) * CHUNK;
        }
        at
    }

    /// Makes the table long enough for a chunk of that number; false if there is no memory for it.
    #[cold]
    fn grow(&mut self, chunk: usize) -> bool {
        let words = chunk / CHUNK + 1;
        if self.chunks.try_reserve(chunk + 1 - self.chunks.len()).is_err()
            || self.words.try_reserve(words.saturating_sub(self.words.len())).is_err()
        {
            return false;
        }
        self.chunks.resize_with(chunk + 1, Chunk::empty);
        if words > self.words.len() {
            self.words.resize(words, Words::default());
        }
        true
    }

    fn take(&mut self, index: usize) {
        let number = index / CHUNK;
        let chunk = &mut self.chunks[number];
        chunk.taken |= 1 << (index % CHUNK);
        if chunk.taken == u64::MAX {
            self.words[number / CHUNK].full |= 1 << (number % CHUNK);
        }
    }

    fn put(&mut self, index: usize, handle: Handle<T, A, M>, end: HandleEnd) -> Option<Dying<T, M>> {
        if end == HandleEnd::Seen {
            self.has_seen(index / CHUNK);
        }
        let chunk = &mut self.chunks[index / CHUNK];
        chunk.mark(index % CHUNK, handle.attribute);
        chunk.note_end(index % CHUNK, end);
        let entries = chunk.own().expect("who made room has made the entries the table's own");
        entries[index % CHUNK].replace(handle).map(|old| Dying::new(old.object))
    }

    fn free(&mut self, index: usize) {
        let number = index / CHUNK;
        self.words[number / CHUNK].full &= !(1 << (number % CHUNK));
        let chunk = &mut self.chunks[number];
        chunk.taken &= !(1 << (index % CHUNK));
        if chunk.taken == 0 {
            self.is_empty_now(number);
        }
    }

    /// The last number of a chunk was given back: it keeps its memory, and the one that was empty before does not.
    #[cold]
    fn is_empty_now(&mut self, number: usize) {
        if number != 0 {
            let last = core::mem::replace(&mut self.spare, number);
            if last != number && self.chunks[last].taken == 0 {
                self.chunks[last].entries = SharedSlice::empty();
            }
        }
    }
}

#[cfg(all(test, not(ebb_loom)))]
mod tests {
    use super::*;
    use crate::Cx;
    use crate::reclaim::Core;

    #[test]
    fn what_was_drained_one_by_one_keeps_no_memory_for_entries() {
        // SAFETY: the context ends before it.
        let _core = unsafe { Core::register() };
        // SAFETY: this thread has no other, and it is registered.
        let mut cx = unsafe { Cx::new(core::ptr::null()) };
        let mut table = HandleTable::<usize, ()>::default();
        for number in 0..3 * CHUNK {
            assert_eq!(table.insert(StrongRc::new(number), (), HandleEnd::Seen, 0, 300).ok(), Some(number));
        }
        let mut at = 0;
        while at < table.len() {
            let ([alone], next) = table.drain(at, 1000, |_| false);
            at = next;
            if let Some(alone) = alone {
                alone.destroy(&mut cx);
            }
        }
        assert!(table.chunks.iter().all(|chunk| chunk.entries.is_empty()));
        crate::reclaim::reclaim(&mut cx);
    }
}

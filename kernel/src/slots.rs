//! [`Slots`]: values with numbers that are given out.
//!
//! They stand in chunks, and a chunk in which none is left gives its memory back: what a peak needed does not stay, and nothing is ever moved.

use alloc::boxed::Box;

use crate::heap::slot_bytes;
use crate::table::Table;

/// Values in a chunk: the bits of a word.
const CHUNK: usize = u64::BITS as usize;

/// Values with numbers that are given out when they are entered.
#[derive(Debug)]
pub struct Slots<T> {
    chunks: Table<Chunk<T>>,
    /// The first chunk that has room, or [`NONE`]; the others follow by `next`. It is used first, and keeps its memory.
    with_room: u32,
}

/// No chunk.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Chunk<T> {
    /// Bit n: slot n of the chunk is in use.
    used: u64,
    /// Of a chunk that has room: the next that has.
    next: u32,
    /// `None` while none is in use.
    values: Option<Box<[Option<T>; CHUNK]>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slots<T> {
    /// So many bytes of the heap a value takes at least, where all of a chunk are in use.
    pub const ENTRY_BYTES: usize = slot_bytes(size_of::<[Option<T>; CHUNK]>()) / CHUNK;

    /// No values.
    pub const fn new() -> Self {
        Slots { chunks: Table::new(), with_room: NONE }
    }

    /// Enters a value; its number.
    pub fn insert(&mut self, value: T) -> u32 {
        if self.with_room == NONE {
            self.with_room = self.chunks.push(Chunk { used: 0, next: NONE, values: None }) as u32;
        }
        let number = self.with_room;
        let chunk = &mut self.chunks[number as usize];
        let bit = chunk.used.trailing_ones() as usize % CHUNK;
        chunk.used |= 1 << bit;
        chunk.values.get_or_insert_with(|| Box::new([const { None }; CHUNK]))[bit] = Some(value);
        if chunk.used == u64::MAX {
            self.with_room = chunk.next;
        }
        number * CHUNK as u32 + bit as u32
    }

    /// Takes a value out.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let (at, bit) = (number as usize / CHUNK, number as usize % CHUNK);
        let chunk = self.chunks.get_mut(at)?;
        let value = chunk.values.as_mut()?[bit].take()?;
        let was_full = chunk.used == u64::MAX;
        chunk.used &= !(1 << bit);
        if was_full {
            chunk.next = core::mem::replace(&mut self.with_room, at as u32);
            let before = chunk.next;
            self.give_back(before);
        } else if self.with_room != at as u32 {
            self.give_back(at as u32);
        }
        Some(value)
    }

    /// Gives the memory of a chunk back if nothing is in it.
    fn give_back(&mut self, at: u32) {
        if let Some(chunk) = self.chunks.get_mut(at as usize)
            && chunk.used == 0
        {
            chunk.values = None;
        }
    }

    /// The first value from a number on.
    pub fn next(&self, from: u32) -> Option<(u32, &T)> {
        let first = from as usize / CHUNK;
        let behind = |at: usize| if at == first { u64::MAX << (from as usize % CHUNK) } else { u64::MAX };
        (first..self.chunks.len()).find_map(|at| {
            let chunk = &self.chunks[at];
            let used = chunk.used & behind(at);
            let bit = (used != 0).then(|| used.trailing_zeros() as usize)?;
            Some(((at * CHUNK + bit) as u32, chunk.values.as_ref()?[bit].as_ref()?))
        })
    }

    /// The value of a number.
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.chunks.get(number as usize / CHUNK)?.values.as_ref()?[number as usize % CHUNK].as_ref()
    }

    /// The value of a number.
    #[inline(always)]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.chunks.get_mut(number as usize / CHUNK)?.values.as_mut()?[number as usize % CHUNK].as_mut()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn chunks_with_memory<T>(slots: &Slots<T>) -> usize {
        (0..slots.chunks.len()).filter(|&at| slots.chunks[at].values.is_some()).count()
    }

    #[test]
    fn a_value_is_found_by_its_number_until_it_is_taken_out() {
        let mut slots = Slots::new();
        let numbers: Vec<u32> = (0..200).map(|value| slots.insert(value)).collect();
        for (value, &number) in numbers.iter().enumerate() {
            assert_eq!(slots.get(number), Some(&(value as i32)));
        }
        assert_eq!(
            (slots.remove(numbers[70]), slots.remove(numbers[70]), slots.get(numbers[70])),
            (Some(70), None, None)
        );
        assert_eq!(slots.next(numbers[70]), Some((numbers[71], &71)));
        assert_eq!(slots.insert(1000), numbers[70]);
        assert_eq!(slots.get(10_000), None);
        let all = core::iter::successors(slots.next(0), |(number, _)| slots.next(number + 1));
        assert!(all.map(|(number, _)| number).eq(numbers));
    }

    #[test]
    fn a_peak_gives_its_memory_back_in_whatever_order_it_goes() {
        for step in [1, 3, 7, 63, 101] {
            let mut slots = Slots::new();
            let numbers: Vec<u32> = (0..1009).map(|value| slots.insert(value)).collect();
            for at in 0..1008 {
                assert!(slots.remove(numbers[at * step % 1009]).is_some());
            }
            assert!(chunks_with_memory(&slots) <= 2, "{step}");
            let again: Vec<u32> = (0..1008).map(|value| slots.insert(value)).collect();
            assert_eq!(slots.chunks.len(), 16);
            again.into_iter().for_each(|number| assert!(slots.remove(number).is_some()));
        }
    }
}

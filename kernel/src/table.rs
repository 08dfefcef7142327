//! [`Table`]: values by number that come and go at its end, for tables that grow with what programs ask for.
//!
//! A large block of the heap can be refused while there is memory for everything else, and a `Vec` that must have one ends the kernel. A table never asks for one: it is a `Vec` as long
//! as that is small, and the values behind stand in chunks, in a [tree](RadixTree). So nothing is ever moved either once there are many, and what a peak needed goes back.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use frame::mm::PAGE_SIZE;

use crate::radix::RadixTree;

/// Values in a chunk, which has two pages at most.
const CHUNK: usize = 64;

/// The first values take no more: half of what may be refused.
const FIRST_BYTES: usize = 8 * PAGE_SIZE;

/// Values by number, from 0 on without gaps.
#[derive(Debug)]
pub struct Table<T> {
    first: Vec<T>,
    /// The chunks behind the [first](Table::FIRST) values, from 0 on; all are full but the last.
    rest: Option<Box<RadixTree<Vec<T>>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Table<T> {
    const FITS: () = assert!(size_of::<T>() * CHUNK <= 2 * PAGE_SIZE);

    /// So many values stand in front: a power of two, as a `Vec` grows.
    const FIRST: usize = 1 << (FIRST_BYTES / size_of::<T>()).ilog2();

    /// No values.
    pub const fn new() -> Self {
        const { Self::FITS };
        Table { first: Vec::new(), rest: None }
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match &self.rest {
            None => self.first.len(),
            Some(rest) => Self::FIRST + len_of_chunks(rest),
        }
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let rest = self.rest.as_deref();
        let chunks = rest.into_iter().flat_map(|rest| (0..rest.len() as u32).filter_map(|chunk| rest.get(chunk)));
        self.first.iter().chain(chunks.flatten())
    }

    /// Appends a value; its number.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> usize {
        if self.first.len() < Self::FIRST {
            self.first.push(value);
            return self.first.len() - 1;
        }
        self.push_behind(value)
    }

    #[inline(never)]
    fn push_behind(&mut self, value: T) -> usize {
        let number = self.len();
        let rest = self.rest.get_or_insert_default();
        let chunk = ((number - Self::FIRST) / CHUNK) as u32;
        match rest.get_mut(chunk) {
            Some(chunk) => chunk.push(value),
            None => {
                let mut begun = Vec::with_capacity(CHUNK);
                begun.push(value);
                rest.insert(chunk, begun);
            }
        }
        number
    }

    /// Takes the last value out. The memory of a chunk goes with the first in it.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.rest.is_none() { self.first.pop() } else { self.pop_of_many() }
    }

    #[inline(never)]
    fn pop_of_many(&mut self) -> Option<T> {
        let rest = self.rest.as_mut()?;
        let last = (rest.len() - 1) as u32;
        let chunk = rest.get_mut(last)?;
        let value = chunk.pop();
        if chunk.is_empty() {
            rest.remove(last);
            if last == 0 {
                self.rest = None;
            }
        }
        value
    }

    /// Takes a value out; the last one has its number then.
    pub fn swap_remove(&mut self, number: usize) -> Option<T> {
        self.get(number)?;
        let last = self.pop()?;
        match self.get_mut(number) {
            Some(place) => Some(core::mem::replace(place, last)),
            None => Some(last),
        }
    }

    /// The value of a number.
    #[inline(always)]
    pub fn get(&self, number: usize) -> Option<&T> {
        if number < Self::FIRST { self.first.get(number) } else { self.chunk(number)?.get(number % CHUNK) }
    }

    /// The value of a number.
    #[inline(always)]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        if number < Self::FIRST { self.first.get_mut(number) } else { self.chunk_mut(number)?.get_mut(number % CHUNK) }
    }

    /// The chunk in which a number is that is not in front.
    fn chunk(&self, number: usize) -> Option<&Vec<T>> {
        self.rest.as_ref()?.get(u32::try_from((number - Self::FIRST) / CHUNK).ok()?)
    }

    fn chunk_mut(&mut self, number: usize) -> Option<&mut Vec<T>> {
        self.rest.as_mut()?.get_mut(u32::try_from((number - Self::FIRST) / CHUNK).ok()?)
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, number: usize) -> &T {
        match self.get(number) {
            Some(value) => value,
            // There is none, whatever the number: as with a slice.
            None => &[][number],
        }
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: usize) -> &mut T {
        match self.get_mut(number) {
            Some(value) => value,
            None => &mut <&mut [T]>::default()[number],
        }
    }
}

/// How many values there are in chunks.
#[inline(never)]
fn len_of_chunks<T>(rest: &RadixTree<Vec<T>>) -> usize {
    let last = rest.len() - 1;
    last * CHUNK + rest.get(last as u32).map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_a_vec_has() {
        let (mut table, mut model) = (Table::new(), Vec::new());
        for round in 0..3 {
            for value in 0..20_000 * (round + 1) {
                assert_eq!(table.push(value), model.len());
                model.push(value);
            }
            table[5000] = round;
            model[5000] = round;
            assert_eq!(table.len(), model.len());
            assert!((0..model.len() + 3 * CHUNK).all(|number| table.get(number) == model.get(number)));
            assert!(table.iter().eq(&model));
            for _ in 0..3500 {
                assert_eq!(table.pop(), model.pop());
                assert_eq!(table.swap_remove(77), Some(model.swap_remove(77)));
            }
            assert_eq!((table.len(), table.get(model.len())), (model.len(), None));
        }
        while table.pop().is_some() {}
        assert_eq!((table.len(), table.is_empty()), (0, true));
    }
}

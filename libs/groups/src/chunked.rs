//! [`Chunked`]: an array that grows and shrinks by small chunks, so that adding to it never copies what is there, and emptying it gives memory back
//! bit by bit.

use alloc::vec::Vec;

/// How many entries a chunk has.
const CHUNK: usize = 256;

/// An array in chunks. All chunks are full but the last.
#[derive(Debug)]
pub(crate) struct Chunked<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Chunked<T> {
    pub(crate) const fn new() -> Self {
        Chunked { chunks: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }

    pub(crate) fn push(&mut self, value: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(value),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(value);
                self.chunks.push(chunk);
            }
        }
    }

    /// Takes the last entry, and frees its chunk if it was the last in there.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.chunks.last_mut()?;
        let value = last.pop();
        if last.is_empty() {
            self.chunks.pop();
        }
        value
    }

    /// Drops the last chunk with what is in it. Returns whether there are more.
    pub(crate) fn pop_chunk(&mut self) -> bool {
        self.chunks.pop();
        !self.chunks.is_empty()
    }

    /// Takes an entry; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, index: usize) -> Option<T> {
        self.get(index)?;
        let last = self.pop()?;
        match self.get_mut(index) {
            Some(place) => Some(core::mem::replace(place, last)),
            None => Some(last),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

//! The bytes of a stream that are kept: those not yet acknowledged by the peer, or not yet read by the program.
//!
//! A stream is cut into chunks at multiples of [`CHUNK_BYTES`]. A chunk is allocated when a byte of it is written and freed when all before its end is
//! discarded, so that a stream may have holes (data that arrived out of order) and an empty one costs no memory. The stream does not know which of
//! its bytes were written: its owner does, and bounds how far ahead it writes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::OutOfMemory;

/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: usize = 4096;
/// Lists of chunks that are longer than this are freed with their chunks.
const KEPT_SLOTS: usize = 4;

/// Bytes by their position.
pub(crate) struct Stream {
    /// The position of the first byte of the first chunk, or of the next one; a multiple of a chunk's bytes.
    base: u64,
    /// Each as long as what was written of it; one without capacity is not allocated.
    chunks: VecDeque<Vec<u8>>,
    /// How many chunks are allocated.
    allocated: usize,
}

impl core::fmt::Debug for Stream {
    /// Without the bytes.
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("Stream").field("base", &self.base).field("chunks", &self.chunks.len()).finish()
    }
}

impl Stream {
    /// One that begins at a position.
    pub fn new(start: u64) -> Self {
        Stream { base: start - start % CHUNK_BYTES as u64, chunks: VecDeque::new(), allocated: 0 }
    }

    /// The slot and the place within its chunk. `None`: before what is kept.
    fn place(&self, at: u64) -> Option<(usize, usize)> {
        let offset = at.checked_sub(self.base)?;
        Some(((offset / CHUNK_BYTES as u64) as usize, (offset % CHUNK_BYTES as u64) as usize))
    }

    /// The chunk in a slot, which is allocated if it is not.
    fn chunk(&mut self, slot: usize) -> Result<&mut Vec<u8>, OutOfMemory> {
        if slot >= self.chunks.len() {
            self.chunks.try_reserve(slot + 1 - self.chunks.len()).map_err(|_| OutOfMemory)?;
            self.chunks.resize_with(slot + 1, Vec::new);
        }
        let chunk = &mut self.chunks[slot];
        if chunk.capacity() == 0 {
            chunk.try_reserve_exact(CHUNK_BYTES).map_err(|_| OutOfMemory)?;
            self.allocated += 1;
        }
        Ok(chunk)
    }

    /// Room for bytes from a position: at least one, at most `most`, and only to the end of a chunk. It is empty for a position before those kept.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn room(&mut self, at: u64, most: usize) -> Result<&mut [u8], OutOfMemory> {
        let Some((slot, within)) = self.place(at) else { return Ok(&mut []) };
        let chunk = self.chunk(slot)?;
        let end = CHUNK_BYTES.min(within.saturating_add(most));
        if chunk.len() < end {
            chunk.resize(CHUNK_BYTES, 0);
        }
        Ok(&mut chunk[within..end])
    }

    /// Writes bytes from a position on.
    ///
    /// # Errors
    ///
    /// There is no memory; a first part of the bytes may have been written.
    pub fn write(&mut self, mut at: u64, mut bytes: &[u8]) -> Result<(), OutOfMemory> {
        while !bytes.is_empty() {
            let Some((slot, within)) = self.place(at) else { break };
            let count = bytes.len().min(CHUNK_BYTES - within);
            let (now, later) = bytes.split_at(count);
            let chunk = self.chunk(slot)?;
            if chunk.len() == within {
                // In order: nothing is written that is written again.
                chunk.extend_from_slice(now);
            } else {
                let len = chunk.len().max(within + count);
                chunk.resize(len, 0);
                chunk[within..within + count].copy_from_slice(now);
            }
            at += count as u64;
            bytes = later;
        }
        Ok(())
    }

    /// The bytes from a position on, at most so many and only to the end of what was written or of a chunk; empty where nothing was written.
    pub fn bytes(&self, at: u64, most: usize) -> &[u8] {
        let Some((slot, within)) = self.place(at) else { return &[] };
        let Some(chunk) = self.chunks.get(slot) else { return &[] };
        chunk.get(within..chunk.len().min(within.saturating_add(most))).unwrap_or(&[])
    }

    /// Copies bytes from a position on. The part of `out` for which nothing was written stays as it is.
    pub fn read(&self, mut at: u64, mut out: &mut [u8]) {
        while !out.is_empty() {
            let bytes = self.bytes(at, out.len());
            if bytes.is_empty() {
                break;
            }
            let count = bytes.len();
            out[..count].copy_from_slice(bytes);
            at += count as u64;
            out = &mut out[count..];
        }
    }

    /// Forgets what is before a position; all of it if the stream ends there.
    pub fn discard(&mut self, to: u64, is_end: bool) {
        if is_end {
            self.chunks.clear();
            self.allocated = 0;
        }
        while !self.chunks.is_empty() && to >= self.base + CHUNK_BYTES as u64 {
            self.allocated -= usize::from(self.chunks.pop_front().is_some_and(|chunk| chunk.capacity() > 0));
            self.base += CHUNK_BYTES as u64;
        }
        if self.chunks.is_empty() {
            self.base = self.base.max(to - to % CHUNK_BYTES as u64);
            if self.chunks.capacity() > KEPT_SLOTS {
                self.chunks = VecDeque::new();
            }
        }
    }

    /// Bytes of memory that it holds.
    pub fn held_bytes(&self) -> usize {
        self.allocated * CHUNK_BYTES + self.chunks.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_over_chunks_and_holes() {
        let mut stream = Stream::new(4500);
        let bytes: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
        stream.write(5000, &bytes[..5]).unwrap();
        stream.write(20_000, &bytes).unwrap();
        let mut back = alloc::vec![0; 10_000];
        stream.read(20_000, &mut back);
        assert_eq!(back, bytes);
        assert!(stream.bytes(10_000, 1).is_empty(), "nothing was written there");
        stream.discard(20_000, false);
        stream.read(20_000, &mut back);
        assert_eq!(back, bytes);
        assert!(stream.bytes(5000, 1).is_empty());
        stream.discard(30_000, true);
        assert_eq!(stream.held_bytes(), 0);
    }
}

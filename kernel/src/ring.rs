//! [`Ring`]: a queue of bytes that grows up to a limit, for pipes and stream sockets.

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::ops::Range;

use frame::mm::{Fault, Reader, Writer};

/// What a queue that has no memory takes at first. Connections that carry short messages and wait most of the time keep no more.
pub const FIRST_SIZE: usize = 1024;
/// So many bytes are appended all or not at all.
pub const ATOMIC: usize = 4096;
/// A fault behind so many bytes ends a copy to user memory; one before that has it done anew, so that a program gets all there is.
const WORTH_KEEPING: usize = 65536;

/// A queue of bytes. Its memory is taken when the first byte comes, and doubles with need up to the limit.
pub struct Ring {
    /// Empty or a power of two long.
    bytes: Box<[u8]>,
    /// Where the first byte in the queue is.
    start: usize,
    len: usize,
    limit: usize,
}

impl Ring {
    /// An empty queue of at most `limit` bytes (a power of two, at least 4096).
    pub fn new(limit: usize) -> Self {
        Ring { bytes: Box::default(), start: 0, len: 0, limit }
    }

    /// How many bytes are in the queue.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many bytes of memory it has.
    pub fn allocated(&self) -> usize {
        self.bytes.len()
    }

    /// Whether no byte is in the queue.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many more bytes fit.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.limit - self.len
    }

    /// Whether it would need more memory to take `count` bytes, as far as they fit.
    #[inline(always)]
    pub fn would_grow(&self, count: usize) -> bool {
        self.len + count.min(self.room()) > self.bytes.len()
    }

    /// How many bytes fit when it is empty.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Changes how many bytes fit (a power of two, at least 4096); false if more are in the queue, or the heap has no room.
    pub fn set_limit(&mut self, limit: usize) -> bool {
        if limit < self.len {
            return false;
        }
        if self.bytes.len() > limit && self.resize(limit).is_err() {
            return false;
        }
        self.limit = limit;
        true
    }

    /// Forgets all bytes and gives the memory back.
    pub fn clear(&mut self) {
        *self = Ring::new(self.limit);
    }

    /// Makes room for up to `more` bytes, as many as the limit allows: to be called before [`push`](Self::push).
    ///
    /// # Errors
    /// The heap has no room in one piece: the queue is as before.
    pub fn grow(&mut self, more: usize) -> Result<(), TryReserveError> {
        let len = self.len + more.min(self.room());
        if len > self.bytes.len() {
            self.resize(len.next_power_of_two().max(FIRST_SIZE))?;
        }
        Ok(())
    }

    /// Appends as many bytes as there are and fit into the memory that it has; how many. A fault makes it fewer, by whole [`ATOMIC`] bytes: so many, and what
    /// is less than that, are appended all or not at all.
    ///
    /// # Errors
    /// User memory faulted: the queue is as before.
    #[inline]
    pub fn push(&mut self, from: &mut Reader<'_>) -> Result<usize, Fault> {
        self.push_at_most(from, usize::MAX)
    }

    /// As [`push`](Self::push), at most so many bytes.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_at_most(&mut self, from: &mut Reader<'_>, most: usize) -> Result<usize, Fault> {
        let count = from.remaining().min(most).min(self.bytes.len() - self.len).min(self.room());
        if count == 0 {
            return Ok(0);
        }
        let at = (self.start + self.len) & (self.bytes.len() - 1);
        let first = count.min(self.bytes.len() - at);
        let before = from.remaining();
        let mut outcome = from.read(&mut self.bytes[at..at + first]);
        if first < count && outcome.is_ok() {
            outcome = from.read(&mut self.bytes[..count - first]);
        }
        if let Err(fault) = outcome {
            let copied = before - from.remaining();
            let kept = copied - copied % ATOMIC;
            if kept == 0 || count <= ATOMIC {
                return Err(fault);
            }
            self.len += kept;
            return Ok(kept);
        }
        self.len += count;
        Ok(count)
    }

    /// Takes as many bytes as there are and fit; how many. A fault behind [`WORTH_KEEPING`] bytes makes it fewer.
    ///
    /// # Errors
    /// User memory faulted: the queue is as before.
    pub fn pop(&mut self, to: &mut Writer<'_>) -> Result<usize, Fault> {
        self.pop_at_most(to, usize::MAX)
    }

    /// As [`pop`](Self::pop), at most so many bytes.
    ///
    /// # Errors
    /// As for [`pop`](Self::pop).
    #[inline(always)]
    pub fn pop_at_most(&mut self, to: &mut Writer<'_>, most: usize) -> Result<usize, Fault> {
        let count = self.copy_at_most(to, most)?;
        self.skip(count);
        Ok(count)
    }

    /// The bytes in a range of the queue, in two pieces.
    pub fn parts(&self, range: Range<usize>) -> [&[u8]; 2] {
        let (start, end) = (self.start + range.start.min(self.len), self.start + range.end.min(self.len));
        let size = self.bytes.len();
        let first = self.bytes.get(start..end.min(size)).unwrap_or_default();
        let second = self.bytes.get(start.saturating_sub(size)..end.saturating_sub(size)).unwrap_or_default();
        [first, second]
    }

    /// One of the bytes in the queue.
    pub fn byte(&self, at: usize) -> Option<u8> {
        let [first, second] = self.parts(at..at + 1);
        first.first().or(second.first()).copied()
    }

    /// Takes bytes out unseen, no more than there are.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        if count > 0 {
            self.start = (self.start + count) & (self.bytes.len() - 1);
            self.len -= count;
            if self.len == 0 {
                self.start = 0;
            }
        }
    }

    /// As [`pop`](Self::pop), but the bytes stay in the queue.
    ///
    /// # Errors
    /// As for [`pop`](Self::pop).
    pub fn copy(&self, to: &mut Writer<'_>) -> Result<usize, Fault> {
        self.copy_at_most(to, usize::MAX)
    }

    /// As [`copy`](Self::copy), at most so many bytes.
    ///
    /// # Errors
    /// As for [`pop`](Self::pop).
    #[inline(always)]
    pub fn copy_at_most(&self, to: &mut Writer<'_>, most: usize) -> Result<usize, Fault> {
        let count = to.remaining().min(most).min(self.len);
        if count > 0 {
            let first = count.min(self.bytes.len() - self.start);
            let before = to.remaining();
            let mut outcome = to.write(&self.bytes[self.start..self.start + first]);
            if first < count && outcome.is_ok() {
                outcome = to.write(&self.bytes[..count - first]);
            }
            let copied = before - to.remaining();
            return if copied < WORTH_KEEPING && copied < count { outcome } else { Ok(copied) };
        }
        Ok(0)
    }

    #[cold]
    fn resize(&mut self, size: usize) -> Result<(), TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size)?;
        bytes.resize(size, 0);
        let mut bytes = bytes.into_boxed_slice();
        let first = self.len.min(self.bytes.len() - self.start);
        bytes[..first].copy_from_slice(&self.bytes[self.start..self.start + first]);
        bytes[first..self.len].copy_from_slice(&self.bytes[..self.len - first]);
        self.bytes = bytes;
        self.start = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn push(ring: &mut Ring, bytes: &[u8]) -> usize {
        ring.grow(bytes.len()).unwrap();
        ring.push(&mut Reader::from(bytes)).unwrap()
    }

    fn pop(ring: &mut Ring, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let count = ring.pop(&mut Writer::from(&mut bytes[..])).unwrap();
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn bytes_come_out_in_order_when_the_queue_wraps_and_grows() {
        let mut ring = Ring::new(1 << 16);
        let (mut sent, mut received) = (0u32, 0u32);
        let mut seed = 1u32;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let len = (seed >> 18) as usize % 3000;
            if seed & 0x100 == 0 {
                let bytes: Vec<u8> = (0..len as u32).map(|at| (sent + at) as u8).collect();
                sent += push(&mut ring, &bytes) as u32;
            } else {
                for byte in pop(&mut ring, len) {
                    assert_eq!(byte, received as u8);
                    received += 1;
                }
            }
            assert_eq!(ring.len() as u32, sent - received);
        }
    }

    #[test]
    fn a_queue_has_memory_for_what_was_in_it_and_no_more() {
        let mut ring = Ring::new(1 << 16);
        assert_eq!(ring.allocated(), 0);
        push(&mut ring, &[1; 10]);
        assert_eq!(ring.allocated(), FIRST_SIZE);
        push(&mut ring, &[1; FIRST_SIZE]);
        assert_eq!(ring.allocated(), 2 * FIRST_SIZE);
        ring.clear();
        assert_eq!((ring.allocated(), ring.len()), (0, 0));
    }

    #[test]
    fn a_queue_that_wraps_shows_its_bytes_in_order() {
        let mut ring = Ring::new(4096);
        push(&mut ring, &[0; 4090]);
        pop(&mut ring, 4088);
        push(&mut ring, &(1..=20).collect::<Vec<u8>>());
        assert_eq!(ring.parts(1..22).concat(), [0].into_iter().chain(1..=20).collect::<Vec<u8>>());
        assert_eq!((ring.parts(12..15).concat(), ring.parts(20..99).concat()), (vec![11, 12, 13], vec![19, 20]));
        assert_eq!((ring.byte(0), ring.byte(21), ring.byte(22)), (Some(0), Some(20), None));
    }

    #[test]
    fn a_full_queue_takes_nothing_and_cannot_shrink_below_its_bytes() {
        let mut ring = Ring::new(4096);
        assert_eq!(push(&mut ring, &[7; 5000]), 4096);
        assert_eq!(push(&mut ring, &[7]), 0);
        assert!(ring.set_limit(8192));
        assert_eq!(push(&mut ring, &[8; 5000]), 4096);
        assert!(!ring.set_limit(4096));
        assert_eq!(pop(&mut ring, 5000)[4096], 8);
    }
}

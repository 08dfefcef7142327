//! Packets in a pipe (O_DIRECT of pipe2(2)): where one write ends and the next begins.
//!
//! The bytes are in the pipe's ring like all others. Beside them stand the segments that they are of: packets, and what was written without O_DIRECT. As on
//! Linux a packet takes the room of a page, whatever is in it.

use alloc::collections::VecDeque;

use frame::mm::{Fault, Reader, Writer};

use super::PIPE_BUF;
use crate::ring::Ring;

/// The segments of what is in a ring, in order. Empty where the ring is.
#[derive(Default)]
pub struct Segments(VecDeque<Segment>);

#[derive(Clone, Copy)]
struct Segment {
    len: usize,
    is_packet: bool,
}

impl Segment {
    fn pages(&self) -> usize {
        self.len.div_ceil(PIPE_BUF)
    }
}

impl Segments {
    /// For what is in a ring already: bytes without packets.
    pub fn of(ring: &Ring) -> Self {
        Segments((!ring.is_empty()).then_some(Segment { len: ring.len(), is_packet: false }).into_iter().collect())
    }

    /// How many pages of room the segments take.
    pub fn pages(&self) -> usize {
        self.0.iter().map(Segment::pages).sum()
    }

    /// How many bytes may be written to the ring: as packets of whole pages, or not at all.
    pub fn room(&self, ring: &Ring) -> usize {
        (ring.limit() / PIPE_BUF).saturating_sub(self.pages()) * PIPE_BUF
    }

    /// Appends what fits, `ring` having the memory for it: as packets of a page at most, or as bytes. How many bytes.
    ///
    /// # Errors
    /// User memory faulted: all is as before.
    pub fn push(&mut self, ring: &mut Ring, from: &mut Reader<'_>, as_packets: bool) -> Result<usize, Fault> {
        let mut done = if as_packets { self.push_to_last(ring, from)? } else { 0 };
        let mut room = self.room(ring);
        while from.remaining() > 0 && room > 0 {
            let most = if as_packets { PIPE_BUF } else { room };
            let pushed = match ring.push_at_most(from, most) {
                Ok(pushed) => pushed,
                Err(fault) if done == 0 => return Err(fault),
                Err(_) => break,
            };
            match self.0.back_mut() {
                Some(last) if !as_packets && !last.is_packet => last.len += pushed,
                _ => self.0.push_back(Segment { len: pushed, is_packet: as_packets }),
            }
            done += pushed;
            if pushed < most {
                break;
            }
            room = self.room(ring);
        }
        Ok(done)
    }

    /// As on Linux, what a packet has beyond whole pages goes to bytes that were written before without packets, if it fits into their page.
    fn push_to_last(&mut self, ring: &mut Ring, from: &mut Reader<'_>) -> Result<usize, Fault> {
        let count = from.remaining() % PIPE_BUF;
        let Some(last) = self.0.back_mut().filter(|last| !last.is_packet && count > 0) else { return Ok(0) };
        let in_last_page = last.len - (last.pages() - 1) * PIPE_BUF;
        if in_last_page + count > PIPE_BUF {
            return Ok(0);
        }
        let pushed = ring.push_at_most(from, count)?;
        last.len += pushed;
        Ok(pushed)
    }

    /// Takes bytes until the end of a packet; of a packet that does not fit, the rest is lost. How many.
    ///
    /// # Errors
    /// User memory faulted on the first segment: all is as before.
    pub fn pop(&mut self, ring: &mut Ring, to: &mut Writer<'_>) -> Result<usize, Fault> {
        let mut done = 0;
        while let Some(first) = self.0.front_mut() {
            let popped = match ring.pop_at_most(to, first.len) {
                Ok(popped) => popped,
                Err(fault) if done == 0 => return Err(fault),
                Err(_) => break,
            };
            done += popped;
            first.len -= popped;
            let is_packet = first.is_packet;
            if is_packet {
                ring.skip(first.len);
            }
            if is_packet || first.len == 0 {
                self.0.pop_front();
            }
            if is_packet || to.remaining() == 0 {
                break;
            }
        }
        Ok(done)
    }

    /// The length of the first segment; 0 if there is none.
    pub fn first(&self) -> usize {
        self.0.front().map_or(0, |first| first.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn push(segments: &mut Segments, ring: &mut Ring, bytes: &[u8], as_packets: bool) -> usize {
        ring.grow(bytes.len()).unwrap();
        segments.push(ring, &mut Reader::from(bytes), as_packets).unwrap()
    }

    fn pop(segments: &mut Segments, ring: &mut Ring, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let count = segments.pop(ring, &mut Writer::from(&mut bytes[..])).unwrap();
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn a_read_ends_with_a_packet_and_loses_what_does_not_fit() {
        let mut ring = Ring::new(65536);
        push(&mut Segments::default(), &mut ring, b"bytes", false);
        let mut segments = Segments::of(&ring);
        assert_eq!(push(&mut segments, &mut ring, b" more", true), 5);
        assert_eq!(segments.pages(), 1);
        assert_eq!(pop(&mut segments, &mut ring, 20), b"bytes more");
        for packet in [b"one".as_slice(), b"two", b"six"] {
            assert_eq!(push(&mut segments, &mut ring, packet, true), 3);
        }
        assert_eq!(segments.pages(), 3);
        assert_eq!(pop(&mut segments, &mut ring, 2), b"on");
        assert_eq!(pop(&mut segments, &mut ring, 9), b"two");
        assert_eq!(push(&mut segments, &mut ring, b"ten", false), 3);
        assert_eq!(pop(&mut segments, &mut ring, 9), b"six");
        assert_eq!(pop(&mut segments, &mut ring, 9), b"ten");
        assert!(ring.is_empty() && segments.pages() == 0);
    }

    #[test]
    fn a_packet_takes_a_page() {
        let mut ring = Ring::new(8192);
        let mut segments = Segments::default();
        assert_eq!(push(&mut segments, &mut ring, &[1; 4097], true), 4097);
        assert_eq!(push(&mut segments, &mut ring, &[2], true), 0);
        assert_eq!(pop(&mut segments, &mut ring, 5000).len(), 4096);
        assert_eq!(push(&mut segments, &mut ring, &[2], true), 1);
    }
}

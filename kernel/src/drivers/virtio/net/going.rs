//! [`Going`]: the queue for frames that go. Its memory is cut into pieces of a page, of which a frame takes as many as it needs. They come back when the device has sent it, which whoever sends next finds out.

use frame::dma::DmaCoherent;
use frame::mm::PAGE_SIZE;

use alloc::vec::Vec;

use super::super::pci::{Doorbell, Transport};
use super::super::queue::{Broken, Queue, Segment};
use super::header::{self, HEADER_BYTES};
use super::{CUTS_V4, CUTS_V6, MOST_FRAME};
use crate::net::interface::{Offload, Refused};

/// How many pieces the longest frame takes.
const MOST_OF_FRAME: usize = (MOST_FRAME + HEADER_BYTES).div_ceil(PAGE_SIZE);
/// So many frames are under way at most.
const MOST_FRAMES: usize = 256;

/// The pieces of a frame.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    count: u8,
    at: [u8; MOST_OF_FRAME],
}

/// What goes.
pub(super) struct Going {
    pub queue: Queue<Pieces>,
    memory: DmaCoherent,
    bell: Doorbell,
    free: Vec<u8>,
    /// The most pieces that a frame can have.
    most_of_frame: usize,
    /// Somebody was told that there is no room, and not yet that there is.
    pub is_waited_for: bool,
}

impl Going {
    /// Sets the queue up; `None` if the device has none, or there is no memory.
    pub fn new(transport: &Transport) -> Option<Self> {
        let segments = if transport.has(CUTS_V4 | CUTS_V6) { MOST_OF_FRAME } else { 1 };
        let (queue, bell) = transport.large_queue(1, segments, MOST_FRAMES, 1)?;
        // As many as frames of a packet's size can be under way, but for two long ones at least.
        let pieces = queue.slots().max(2 * segments).next_power_of_two();
        let memory = DmaCoherent::new(transport.domain(), pieces.trailing_zeros() as u8)?;
        let free = (0..pieces).rev().map(|piece| piece as u8).collect();
        let most_of_frame = segments.min(queue.most_segments());
        Some(Going { queue, memory, bell, free, most_of_frame, is_waited_for: false })
    }

    /// Takes back the pieces of what was sent.
    ///
    /// # Errors
    /// The device says what cannot be.
    pub fn take_back(&mut self) -> Result<(), Broken> {
        while let Some((pieces, _, _)) = self.queue.pop()? {
            self.free.extend_from_slice(&pieces.at[..usize::from(pieces.count)]);
        }
        Ok(())
    }

    /// Whether any frame can be sent.
    pub fn has_room(&self) -> bool {
        self.queue.next_slot().is_some() && self.free.len() >= self.most_of_frame
    }

    /// Whether any frame can be sent; if not, the device tells when it has sent half of what is under way.
    ///
    /// # Errors
    /// The device says what cannot be.
    pub fn has_room_or_asks(&mut self) -> Result<bool, Broken> {
        self.take_back()?;
        if !self.has_room() {
            self.is_waited_for = true;
            if self.queue.ask_to_be_told_after(self.queue.under_way() / 2) {
                self.take_back()?;
            }
        }
        Ok(self.has_room())
    }

    /// Hands a frame to the device.
    ///
    /// # Errors
    /// It has no room.
    pub fn send(&mut self, frame: &[u8], offload: &Offload) -> Result<(), Refused> {
        let count = (HEADER_BYTES + frame.len()).div_ceil(PAGE_SIZE);
        if count > self.most_of_frame {
            return Err(Refused::TooLarge);
        }
        if self.free.len() < count || self.queue.next_slot().is_none() {
            return Err(Refused::Full);
        }
        let address = self.memory.address(0).ok_or(Refused::Gone)?;
        let mut segments = [Segment { address, len: 0, is_written: false }; MOST_OF_FRAME];
        let mut pieces = Pieces { count: count as u8, at: [0; MOST_OF_FRAME] };
        let (mut before, mut rest) = (&header::write(offload)[..], frame);
        for (segment, piece) in segments.iter_mut().zip(&mut pieces.at).take(count) {
            *piece = self.free.pop().unwrap_or_default();
            let begin = usize::from(*piece) * PAGE_SIZE;
            let (now, later) = rest.split_at(rest.len().min(PAGE_SIZE - before.len()));
            let len = before.len() + now.len();
            let mut writer = self.memory.writer(begin, len);
            // The kernel's own memory does not fault.
            let _ = writer.write(before).and_then(|_| writer.write(now));
            segment.len = len as u32;
            segment.address = self.memory.address(begin).unwrap_or(address);
            (before, rest) = (&[], later);
        }
        if let Err(pieces) = self.queue.push(&segments[..count], pieces) {
            // There is no memory for its table.
            self.free.extend_from_slice(&pieces.at[..count]);
            return Err(Refused::Full);
        }
        if self.queue.must_tell() {
            self.bell.ring();
        }
        Ok(())
    }
}

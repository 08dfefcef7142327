//! [`Coming`]: the queue for frames that come. A buffer for each slot is the driver's own for ever. Where the device may use several for one frame ([`SPREADS`](super::SPREADS)) it also joins segments of TCP to one of up to 64 KiB.

use alloc::vec::Vec;

use frame::dma::DmaCoherent;
use frame::mm::PAGE_SIZE;
use tcpip::Checksum;

use super::super::pci::{Doorbell, Transport};
use super::super::queue::{Broken, Queue, Segment};
use super::header::{Agreed, HEADER_BYTES, Said};
use super::{JOINS, LEAVES, MOST_FRAME, SPREADS};

/// Bytes of a buffer.
pub(super) const BUFFER_BYTES: usize = 2048;
/// So many buffers there are at most.
const MOST_BUFFERS: usize = 256;
/// So many one frame may take.
const MOST_OF_FRAME: usize = (MOST_FRAME + HEADER_BYTES).div_ceil(BUFFER_BYTES);

/// What comes.
pub(super) struct Coming {
    pub queue: Queue<()>,
    memory: DmaCoherent,
    bell: Doorbell,
    agreed: Agreed,
}

impl Coming {
    /// Sets the queue up, with all its buffers; `None` if the device has none, or there is no memory.
    pub fn new(transport: &Transport) -> Option<Self> {
        let (queue, bell) = transport.large_queue(0, 1, MOST_BUFFERS, 0)?;
        let pages = (queue.slots() * BUFFER_BYTES).div_ceil(PAGE_SIZE);
        let order = pages.next_power_of_two().trailing_zeros() as u8;
        let memory = DmaCoherent::new(transport.domain(), order)?;
        let agreed = Agreed {
            leaves_checksums: transport.has(LEAVES),
            joins: transport.has(JOINS),
            spreads: transport.has(SPREADS),
        };
        let mut coming = Coming { queue, memory, bell, agreed };
        while coming.queue.next_slot().is_some() {
            coming.push();
        }
        Some(coming)
    }

    /// Gives the device the next buffer.
    fn push(&mut self) {
        let at = self.queue.next_slot().map(|slot| slot * BUFFER_BYTES);
        if let Some(address) = at.and_then(|at| self.memory.address(at)) {
            // There is a slot, and one segment needs no memory.
            let _ = self.queue.push(&[Segment { address, len: BUFFER_BYTES as u32, is_written: true }], ());
        }
    }

    /// Tells the device of buffers that it has got back, if it waits for some.
    pub fn tell(&mut self) {
        if self.queue.must_tell() {
            self.bell.ring();
        }
    }

    /// The next buffer that the device has written: what it has to say of it is taken from the front, and the rest into `frame`, from `at` on.
    fn take_buffer(&mut self, frame: &mut [u8], at: usize, header: &mut [u8]) -> Result<Option<usize>, Broken> {
        let Some(((), slot, written)) = self.queue.pop()? else { return Ok(None) };
        let len = (written as usize).checked_sub(header.len()).filter(|_| written as usize <= BUFFER_BYTES);
        let room = len.and_then(|len| frame.get_mut(at..at + len));
        let begin = slot * BUFFER_BYTES;
        if let Some(room) = room {
            // The kernel's own memory does not fault.
            let _ = self.memory.reader(begin, header.len()).read(header);
            let _ = self.memory.reader(begin + header.len(), room.len()).read(room);
        }
        let len = len.filter(|len| at + len <= frame.len());
        self.push();
        len.map(Some).ok_or(Broken)
    }

    /// Takes in a frame that has come into `frame`, which has room for the longest: how long it is, and whether its checksums must be looked at. `None` if none has.
    ///
    /// # Errors
    /// The device says what cannot be.
    pub fn take(&mut self, frame: &mut Vec<u8>) -> Result<Option<(usize, Checksum)>, Broken> {
        if frame.len() < MOST_FRAME {
            frame.resize(MOST_FRAME, 0);
        }
        let mut header = [0; HEADER_BYTES];
        let Some(mut len) = self.take_buffer(frame, 0, &mut header)? else { return Ok(None) };
        let said = Said::parse(&header, &self.agreed)?;
        if said.buffers > MOST_OF_FRAME {
            return Err(Broken);
        }
        for _ in 1..said.buffers {
            // All of a frame are there at once (5.1.6.4).
            len += self.take_buffer(frame, len, &mut [])?.ok_or(Broken)?;
        }
        if said.fits(len) { Ok(Some((len, said.checksum))) } else { Err(Broken) }
    }
}

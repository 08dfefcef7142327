//! [`Rings`]: a stream of bytes each way, through two queues.
//!
//! Each way has buffers of its own, which stay where they are: those of the receiving queue are always the device's but for one, the one that is read just now; those of the sending queue are filled by who writes. They
//! are made when they are first needed, and kept from then on, because a device does not give back what it has not filled.
//!
//! Reading and writing are cut into *pieces* of 32 KiB at most, between which whoever has a lock on this lets go of it.
//!
//! A *slot* of a queue is a buffer. A queue gives out the slot first that became free last, so that never more slots are in use than were ever under way at a time.

use frame::dma::{DmaCoherent, Domain};
use frame::mm::{Fault, PAGE_SIZE, Reader, Writer};

use super::queue::{Broken, Queue, Segment};

/// Bytes of a buffer to receive: QEMU gives no more than this at a time.
const RECEIVE_BYTES: usize = PAGE_SIZE;
/// How many there are: 64 KiB.
const RECEIVE_ORDER: u8 = 4;
const RECEIVE_BUFFERS: usize = 1 << RECEIVE_ORDER;

/// Bytes of a buffer to send: as on Linux, a write of up to so many bytes is not mixed with those of others.
const SEND_BYTES: usize = 32 * 1024;
/// Some are filled while the device reads others.
pub const SEND_BUFFERS: usize = 4;
const SEND_ORDER: u8 = 5;
const _: () = assert!(SEND_BYTES * SEND_BUFFERS == PAGE_SIZE << SEND_ORDER);

/// How many frames the buffers have.
pub const FRAMES: u32 = (1 << RECEIVE_ORDER) + (1 << SEND_ORDER);

/// So many buffers are read in a piece, and in so many pieces at most all that the device can have filled.
const RECEIVED_IN_PIECE: usize = 8;
pub const RECEIVE_PIECES: usize = RECEIVE_BUFFERS / RECEIVED_IN_PIECE;

/// Why bytes did not go on.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The device breaks the rules.
    Broken,
    /// The program's memory faulted.
    Fault(Fault),
}

impl From<Broken> for Failure {
    fn from(_: Broken) -> Self {
        Failure::Broken
    }
}

/// The two queues of a stream.
pub struct Rings {
    receive: Queue<()>,
    send: Queue<()>,
    memory: Option<Memory>,
    /// What was received and not read yet: which part of the memory.
    unread: Option<core::ops::Range<usize>>,
    /// How many buffers the device got that it was not told of.
    untold: usize,
}

struct Memory {
    received: DmaCoherent,
    sent: DmaCoherent,
}

impl Rings {
    /// A stream through these queues. Nothing is received before [`begin`](Self::begin).
    pub fn new(receive: Queue<()>, send: Queue<()>) -> Self {
        Rings { receive, send, memory: None, unread: None, untold: 0 }
    }

    /// Gives the device buffers to fill, if it has none yet; false if there is no memory for them.
    pub fn begin(&mut self, domain: &'static Domain) -> bool {
        if self.memory.is_none() {
            let (Some(received), Some(sent)) =
                (DmaCoherent::new(domain, RECEIVE_ORDER), DmaCoherent::new(domain, SEND_ORDER))
            else {
                return false;
            };
            self.memory = Some(Memory { received, sent });
            for _ in 0..RECEIVE_BUFFERS.min(self.receive.slots()) {
                self.give_buffer();
            }
        }
        true
    }

    /// Gives the device a buffer to fill. It is told by [`must_tell_receiver`](Self::must_tell_receiver).
    fn give_buffer(&mut self) {
        let at = self.receive.next_slot().map(|slot| slot * RECEIVE_BYTES);
        if let Some(address) = self.memory.as_ref().zip(at).and_then(|(memory, at)| memory.received.address(at)) {
            let segment = Segment { address, len: RECEIVE_BYTES as u32, is_written: true };
            // There is a slot, and one segment needs no memory.
            let _ = self.receive.push(&[segment], ());
            self.untold += 1;
        }
    }

    /// What was received next, as a part of the memory; `None` if nothing was.
    fn next_received(&mut self) -> Result<Option<core::ops::Range<usize>>, Broken> {
        if self.unread.is_none()
            && let Some(((), slot, len)) = self.receive.pop()?
        {
            // A buffer comes back when there is something in it.
            if len == 0 || len as usize > RECEIVE_BYTES {
                return Err(Broken);
            }
            let start = slot * RECEIVE_BYTES;
            self.unread = Some(start..start + len as usize);
        }
        Ok(self.unread.clone())
    }

    /// Copies a piece of what was received; how many bytes, 0 if there is nothing.
    ///
    /// # Errors
    /// [`Failure::Fault`] if it is the first byte that faulted. [`Failure::Broken`].
    pub fn read(&mut self, to: &mut Writer<'_>) -> Result<usize, Failure> {
        let mut count = 0;
        for _ in 0..RECEIVED_IN_PIECE {
            if to.remaining() == 0 {
                break;
            }
            let Some(part) = self.next_received()? else { break };
            let Some(memory) = &self.memory else { break };
            let mut from = memory.received.reader(part.start, part.len());
            let outcome = from.copy_to(to);
            let left = from.remaining();
            count += part.len() - left;
            if left == 0 {
                self.unread = None;
                self.give_buffer();
            } else {
                self.unread = Some(part.end - left..part.end);
            }
            match outcome {
                Err(fault) if count == 0 => return Err(Failure::Fault(fault)),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        Ok(count)
    }

    /// The device is cut off: the buffers are free. Nothing goes through these rings any more.
    pub fn abandon(&mut self) {
        (self.memory, self.unread) = (None, None);
    }

    /// Forgets what was received and not read.
    ///
    /// # Errors
    /// The device breaks the rules.
    pub fn forget_received(&mut self) -> Result<(), Broken> {
        for _ in 0..RECEIVE_BUFFERS {
            if self.next_received()?.is_none() {
                break;
            }
            self.unread = None;
            self.give_buffer();
        }
        Ok(())
    }

    /// Copies a piece into a buffer that is free and gives it to the device, which [`must_tell_sender`](Self::must_tell_sender) says whether to tell; how many bytes, 0 if no buffer is free.
    ///
    /// # Errors
    /// [`Failure::Fault`] if it is the first byte that faulted. [`Failure::Broken`].
    pub fn write(&mut self, from: &mut Reader<'_>) -> Result<usize, Failure> {
        self.take_back_sent()?;
        if self.send.under_way() >= SEND_BUFFERS {
            return Ok(0);
        }
        let (Some(memory), Some(slot)) = (&self.memory, self.send.next_slot()) else { return Ok(0) };
        let Some(address) = memory.sent.address(slot * SEND_BYTES) else { return Ok(0) };
        let mut to = memory.sent.writer(slot * SEND_BYTES, SEND_BYTES);
        let outcome = from.copy_to(&mut to);
        let len = SEND_BYTES - to.remaining();
        if len > 0 && self.send.push(&[Segment { address, len: len as u32, is_written: false }], ()).is_ok() {
            return Ok(len);
        }
        outcome.map(|_| 0).map_err(Failure::Fault)
    }

    fn take_back_sent(&mut self) -> Result<(), Broken> {
        for _ in 0..SEND_BUFFERS {
            if self.send.pop()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the device has taken all that was written.
    ///
    /// # Errors
    /// The device breaks the rules.
    pub fn has_sent(&mut self) -> Result<bool, Broken> {
        self.take_back_sent()?;
        Ok(self.send.under_way() == 0)
    }

    /// Whether there is something to read; if not, the device will tell when there is.
    pub fn can_read(&mut self) -> bool {
        self.unread.is_some() || self.receive.has_done() || self.receive.ask_to_be_told()
    }

    /// Whether a buffer to send is free; if not, the device will tell when one is.
    pub fn can_write(&mut self) -> bool {
        self.send.under_way() < SEND_BUFFERS || self.send.has_done() || self.send.ask_to_be_told()
    }

    /// Whether the device must be told that it got buffers to fill: where it has filled all, it is told of half of them together, or of those that there are when nothing is left to be read. To be told keeps it from
    /// its work.
    pub fn must_tell_receiver(&mut self) -> bool {
        if self.untold < RECEIVE_BUFFERS / 2 && (self.unread.is_some() || self.receive.has_done()) {
            return false;
        }
        self.untold = 0;
        self.receive.must_tell()
    }

    /// Whether the device must be told that it got bytes.
    pub fn must_tell_sender(&mut self) -> bool {
        self.send.must_tell()
    }
}

//! [`Reporting`]: large blocks that are free are told to the device (5.5.6.7).
//!
//! A block that is told of is taken out of the allocator, so that nobody has it before the device has answered; then it goes back as one that [was reported](allocators::buddy). Few are out at a time, and only where much more is free: so nobody
//! has to wait for them.

use alloc::vec::Vec;

use frame::dma::DmaIdle;
use frame::mm::FramePolicy;

use super::super::pci::Doorbell;
use super::super::queue::{Broken, Queue, Segment};
use super::super::service::Attached;
use allocators::buddy::FRAMES;

/// So many blocks are told of at a time: 16 MiB at most, whose frames take some ten thousand instructions each way.
pub const AT_ONCE: usize = 4;

/// The queue of reports, of which one is under way at a time.
pub struct Reporting {
    queue: Queue<Vec<DmaIdle>>,
    doorbell: Doorbell,
    /// How many frames were free when this was last asked.
    available: usize,
}

impl Reporting {
    pub fn new((queue, doorbell): (Queue<Vec<DmaIdle>>, Doorbell)) -> Self {
        Reporting { queue, doorbell, available: FRAMES.available() }
    }

    /// Whether so much has been used or freed since this was last asked that what cores keep at hand may lie in between.
    pub fn must_gather(&mut self) -> bool {
        const MUCH: usize = 512;
        let available = FRAMES.available();
        core::mem::replace(&mut self.available, available).abs_diff(available) >= MUCH
    }

    /// Takes back what was told of, and tells of some more; whether there was anything to do.
    ///
    /// # Errors
    /// The device says what cannot be.
    pub fn report(&mut self, attached: &Attached) -> Result<bool, Broken> {
        if self.queue.under_way() > 0 && !self.take_back()? {
            // Whatever happens next is seen later.
            self.queue.ask_to_be_told();
            return Ok(false);
        }
        let most = AT_ONCE.min(self.queue.most_segments());
        let blocks: Vec<DmaIdle> = (0..most).map_while(|_| take(attached)).collect();
        if blocks.is_empty() {
            return Ok(false);
        }
        let segment =
            |block: &DmaIdle| Segment { address: block.address(), len: block.len_bytes() as u32, is_written: true };
        let segments: Vec<Segment> = blocks.iter().map(segment).collect();
        match self.queue.push(&segments, blocks) {
            Ok(()) => {
                if self.queue.must_tell() {
                    self.doorbell.ring();
                }
                // It may have answered by now.
                self.take_back()?;
                Ok(true)
            }
            // There is no memory for the table of the request. The device was not told.
            Err(blocks) => {
                for (first, order) in blocks.into_iter().map(DmaIdle::take_back) {
                    FRAMES.free(first, order);
                }
                Ok(false)
            }
        }
    }

    /// Takes back what the device has answered; whether it has.
    ///
    /// # Errors
    /// The device says what cannot be.
    pub fn take_back(&mut self) -> Result<bool, Broken> {
        let Some((blocks, _, written)) = self.queue.pop()? else { return Ok(false) };
        for block in blocks {
            let (first, order) = block.take_back();
            FRAMES.give_reported(first, order);
        }
        // It writes nothing that anybody reads; what it says of that must be possible all the same.
        if written == u32::MAX { Err(Broken) } else { Ok(true) }
    }

    /// The device is cut off: what it was told of is free.
    pub fn abandon(&mut self) {
        drop(self.queue.take_all());
    }
}

/// A block of which the host was not told.
fn take(attached: &Attached) -> Option<DmaIdle> {
    let (first, order) = FRAMES.take_unreported()?;
    DmaIdle::new(attached.domain(), first, order)
}

//! The content of a server's files, as the page cache reads it: as if the server were a device.
//!
//! A [`Cache`](crate::block::Cache) asks a [`BlockDevice`] for sectors. To a session, the upper bits of a sector's number are the fid of an open file, the lower ones its place in the file. Pages are only read so:
//! what programs write goes to the server at once ([`super::write`]).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame};
use ninep::{Reply, Request};
use refs::{StrongRc, WaitList};

use super::channel::{Data, Exchange, ExchangeOwner};
use super::node::Size;
use super::session::{Fid, Session};
use crate::block::{Backing, BlockDevice, Extent, Limits, Operation, Refused, Request as Transfer, SECTOR, Statistics};
use crate::error::Result;
use crate::step::Step;

/// So many bits of a sector's number are its place in the file.
const PLACE_BITS: u32 = 40;
const _: () = assert!(super::session::MOST_FIDS as u64 <= 1 << (64 - PLACE_BITS));

/// What a session does as a device.
pub struct Limited {
    limits: Limits,
    statistics: Statistics,
}

impl Limited {
    /// With so many frames at once.
    pub fn new(most_frames: usize) -> Self {
        let limits = Limits {
            sectors: u64::MAX,
            is_read_only: true,
            has_cache: false,
            logical_block: SECTOR as u32,
            physical_block: SECTOR as u32,
            alignment_offset: 0,
            smallest_io: PAGE_SIZE as u32,
            best_io: 0,
            most_frames,
            most_discard: 0,
            most_zeroes: 0,
            depth: 0,
        };
        Limited { limits, statistics: Statistics::default() }
    }

    /// How many frames a message can bring.
    pub fn most_frames(&self) -> usize {
        self.limits.most_frames
    }
}

/// Where the content of a file is: at the server, which knows it by a fid that is open for reading.
pub struct Content {
    /// The server.
    pub session: &'static Session,
    /// The open file.
    pub fid: StrongRc<Fid>,
    /// How long it is.
    pub size: StrongRc<Size>,
}

impl Backing for Content {
    fn size(&self) -> u64 {
        self.size.with(Size::get)
    }

    fn locate(&self, index: u32, _cx: &Cx) -> Step<Extent> {
        let fid = self.fid.with(|fid| u64::from(fid.number));
        let sector = (fid << PLACE_BITS) | (u64::from(index) * (PAGE_SIZE as u64 / SECTOR));
        Ok(Extent::On { device: self.session, sector, pages: u32::MAX })
    }

    fn device(&self) -> &'static dyn BlockDevice {
        self.session
    }
}

/// Who waits for content.
struct OfTransfer {
    /// Without its frames.
    transfer: Transfer,
    bytes: usize,
    began: u64,
    session: &'static Session,
}

impl ExchangeOwner for OfTransfer {
    fn completed(self: Box<Self>, frames: Vec<UFrame>, reply: Result<Vec<u8>>, cx: &Cx) {
        let outcome = reply.and_then(|bytes| {
            let count = Reply::data_len(READ, &bytes, self.bytes).map_err(|error| self.session.error(error))?;
            zero_from(&frames, count);
            Ok(())
        });
        self.session.limits.statistics.end(&self.transfer, self.began);
        self.transfer.owner.completed(frames, outcome, cx);
    }
}

/// The kind of [`Request::Read`].
const READ: u8 = 116;

/// What the server did not give is zeros: the file has ended.
fn zero_from(frames: &[UFrame], count: usize) {
    for (index, frame) in frames.iter().enumerate().skip(count / PAGE_SIZE) {
        let start = count.saturating_sub(index * PAGE_SIZE).min(PAGE_SIZE);
        // It is memory of the kernel's, which does not fault.
        let _ = frame.writer(start..PAGE_SIZE).zero(PAGE_SIZE - start);
    }
}

impl BlockDevice for Session {
    fn limits(&self) -> &Limits {
        &self.limits.limits
    }

    fn submit(&self, mut transfer: Transfer, cx: &Cx) -> core::result::Result<(), (Transfer, Refused)> {
        let session: &'static Session = match self.this.get() {
            Some(session) if transfer.operation == Operation::Read => session,
            _ => return Err((transfer, Refused::Gone)),
        };
        let bytes = transfer.sectors as usize * SECTOR as usize;
        let place = transfer.sector & ((1 << PLACE_BITS) - 1);
        let request =
            Request::Read { fid: (transfer.sector >> PLACE_BITS) as u32, offset: place * SECTOR, count: bytes as u32 };
        let frames = core::mem::take(&mut transfer.frames);
        let owner = Box::new(OfTransfer { transfer, bytes, began: self.limits.statistics.begin(), session });
        let exchange = Exchange { message: request.encode(0), frames, data: Data::Received(bytes), owner };
        let Err((exchange, refused)) = self.channel.submit(exchange, cx) else { return Ok(()) };
        self.limits.statistics.take_back();
        let owner: Box<dyn Any> = exchange.owner;
        let owner = *owner.downcast::<OfTransfer>().expect("the channel gives back what it was given just now");
        Err((Transfer { frames: exchange.frames, ..owner.transfer }, refused))
    }

    fn statistics(&self) -> &Statistics {
        &self.limits.statistics
    }

    fn room(&self) -> &WaitList {
        self.channel.room()
    }
}

//! [`Channel`]: how messages come to a server and back. A driver provides it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use frame::Cx;
use frame::mm::UFrame;
use refs::WaitList;

use crate::block::Refused;
use crate::error::Result;

/// The most bytes of a message, or of a reply, that are not data.
pub const MOST_BYTES: usize = 8192;

/// Which way the bytes go that follow behind a message, or come behind the first [`DATA_AT`](ninep::DATA_AT) bytes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// There are none.
    None,
    /// So many go to the server, from the frames.
    Sent(usize),
    /// Up to so many come from the server, into the frames.
    Received(usize),
}

/// A message with what belongs to it. It is the channel's, with its frames, until its owner has been told.
pub struct Exchange {
    /// The message, up to [`MOST_BYTES`]. Its tag the channel chooses.
    pub message: Vec<u8>,
    /// Where the data are or go to: of all frames but the last, all bytes.
    pub frames: Vec<UFrame>,
    /// How many there are.
    pub data: Data,
    /// Who is told.
    pub owner: Box<dyn ExchangeOwner>,
}

/// Who is told of a reply: exactly once, from a task of the channel's.
pub trait ExchangeOwner: Any + Send {
    /// The reply has come, without data that went into the frames; or none will: EIO.
    fn completed(self: Box<Self>, frames: Vec<UFrame>, reply: Result<Vec<u8>>, cx: &Cx);
}

/// What carries messages to a server. It lives for ever; one that is gone refuses.
pub trait Channel: Send + Sync {
    /// What mount(2) calls it.
    fn name(&self) -> &[u8];

    /// How many frames an exchange may have.
    fn most_frames(&self) -> usize;

    /// Sends a message. It never suspends.
    ///
    /// # Errors
    /// It does not take the exchange, which comes back.
    fn submit(&self, exchange: Exchange, cx: &Cx) -> core::result::Result<(), (Exchange, Refused)>;

    /// Where those wait who were refused because it was full.
    fn room(&self) -> &WaitList;
}

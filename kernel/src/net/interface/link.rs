//! [`Link`]: what a driver makes of a network card.

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;

/// The address of a network card.
pub type CardAddress = [u8; 6];

/// A network card: frames go out, and those that come are given to a [`Receiver`].
///
/// Owner: one lives for ever. One that cannot be used any more refuses what it is to send, and nothing comes.
pub trait Link: Sync {
    /// Its address.
    fn address(&self) -> CardAddress;

    /// Bytes of the largest packet in a frame.
    fn mtu(&self) -> u16;

    /// From now on it is told of frames that come.
    fn lead_to(&self, receiver: &'static dyn Receiver);

    /// Whether a frame can be sent now.
    fn has_room(&self, cx: &Cx) -> bool;

    /// Sends a frame.
    ///
    /// # Errors
    /// It was not sent, and why.
    fn send(&self, frame: &[u8], cx: &Cx) -> Result<(), Refused>;

    /// What has come, and what was sent.
    fn traffic(&self) -> (&Traffic, &Traffic);
}

/// Where frames go that have come.
pub trait Receiver: Sync {
    /// A frame has come.
    fn receive(&self, frame: &[u8], cx: &Cx);
}

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room now.
    Full,
    /// It is larger than the card takes.
    TooLarge,
    /// The card cannot be used any more.
    Gone,
}

/// How much has gone through a card.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Frames.
    pub frames: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Frames that were lost.
    pub dropped: AtomicU64,
}

impl Traffic {
    /// One more frame, of so many bytes.
    pub fn count(&self, bytes: usize) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

//! [`Link`]: what a driver makes of a network card.

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use tcpip::Checksum;

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

    /// What can be left to it.
    fn abilities(&self) -> Abilities;

    /// From now on it is told of frames that come.
    fn lead_to(&self, receiver: &'static dyn Receiver);

    /// Whether any frame can be sent now; if not, the receiver [hears](Receiver::has_room) when one can.
    fn has_room(&self, cx: &Cx) -> bool;

    /// Sends a frame of which something is left to it.
    ///
    /// # Errors
    /// It was not sent, and why.
    fn send(&self, frame: &[u8], offload: &Offload, cx: &Cx) -> Result<(), Refused>;

    /// What has come, and what was sent.
    fn traffic(&self) -> (&Traffic, &Traffic);
}

/// Where frames go that have come.
pub trait Receiver: Sync {
    /// A frame has come. It may be longer than any that is sent, if the card has joined several segments of TCP; checksums of TCP and UDP in it may be trusted, and not be there at all.
    fn receive(&self, frame: &[u8], checksum: Checksum, cx: &Cx);

    /// The card had no room, and has some again.
    fn has_room(&self, cx: &Cx);
}

/// What can be left to a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// To compute checksums of TCP and UDP.
    pub computes_checksums: bool,
    /// To cut long segments of TCP over IPv4.
    pub cuts_v4: bool,
    /// And over IPv6.
    pub cuts_v6: bool,
}

impl Abilities {
    /// Whether it cuts segments over one of the two.
    pub fn cuts(&self, is_v6: bool) -> bool {
        if is_v6 { self.cuts_v6 } else { self.cuts_v4 }
    }
}

/// What of a frame is left to the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// A checksum.
    pub checksum: Option<LeftChecksum>,
    /// The frame is to be cut.
    pub cut: Option<Cut>,
}

/// A checksum that is left to the card: its field holds the sum of the pseudo header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftChecksum {
    /// Where in the frame that begins of which it is the sum.
    pub start: u16,
    /// Where its field is, behind that.
    pub at: u16,
}

/// How a segment of TCP is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of all headers, which each part gets.
    pub header_bytes: u16,
    /// Bytes of data in each but the last.
    pub payload: u16,
    /// It is over IPv6.
    pub is_v6: bool,
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

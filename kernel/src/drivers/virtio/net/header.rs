//! The header before each frame (5.1.6): what is left to who gets it.

use tcpip::Checksum;

use super::super::queue::Broken;
use crate::net::interface::Offload;

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 12;

/// Flags: the checksum is the sum of the pseudo header, and is to be computed; it was looked at and is right.
const NEEDS_CHECKSUM: u8 = 1;
const IS_RIGHT: u8 = 2;

/// What the frame is, beside itself: several segments of TCP of one version joined to one.
const NOTHING: u8 = 0;
const JOINED_V4: u8 = 1;
const JOINED_V6: u8 = 4;
/// With congestion notified, which may be said of the two.
const WITH_ECN: u8 = 0x80;

/// The header of a frame that goes.
pub(super) fn write(offload: &Offload) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let mut put = |at: usize, value: u16| header[at..at + 2].copy_from_slice(&value.to_le_bytes());
    if let Some(checksum) = offload.checksum {
        put(6, checksum.start);
        put(8, checksum.at);
    }
    if let Some(cut) = offload.cut {
        put(2, cut.header_bytes);
        put(4, cut.payload);
        header[1] = if cut.is_v6 { JOINED_V6 } else { JOINED_V4 };
    }
    header[0] = if offload.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
    header
}

/// What was agreed on of frames that come.
pub(super) struct Agreed {
    /// The device may leave checksums to who gets them, or say that they are right.
    pub leaves_checksums: bool,
    /// It may join segments of TCP.
    pub joins: bool,
    /// It may use several buffers for one frame.
    pub spreads: bool,
}

/// What a header of a frame that has come says.
pub(super) struct Said {
    /// In how many buffers it lies.
    pub buffers: usize,
    /// Whether its checksums must be looked at.
    pub checksum: Checksum,
    /// Where the checksum must be within the frame that was not computed.
    field_end: usize,
}

impl Said {
    /// Reads a header, from a device with which some things were agreed on, or not.
    ///
    /// # Errors
    /// It says what was not agreed on.
    pub fn parse(header: &[u8; HEADER_BYTES], agreed: &Agreed) -> Result<Said, Broken> {
        let word = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let is_known = match header[1] & !WITH_ECN {
            NOTHING => true,
            JOINED_V4 | JOINED_V6 => agreed.joins,
            _ => false,
        };
        let buffers = if agreed.spreads { word(10) } else { 1 };
        if !is_known || buffers == 0 {
            return Err(Broken);
        }
        let flags = if agreed.leaves_checksums { header[0] } else { 0 };
        let needs_checksum = flags & NEEDS_CHECKSUM != 0;
        let is_trusted = flags & (NEEDS_CHECKSUM | IS_RIGHT) != 0;
        Ok(Said {
            buffers,
            checksum: if is_trusted { Checksum::Trust } else { Checksum::Verify },
            field_end: if needs_checksum { word(6) + word(8) + 2 } else { 0 },
        })
    }

    /// Whether it fits a frame of so many bytes.
    pub fn fits(&self, frame_bytes: usize) -> bool {
        self.field_end <= frame_bytes
    }
}

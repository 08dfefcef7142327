//! Frames: how one message travels on the line.
//!
//! | offset | bytes | meaning |
//! | --- | --- | --- |
//! | 0 | 2 | the marker `EB B5` |
//! | 2 | 1 | kind of message |
//! | 3 | 4 | length of the payload in bytes, little-endian, at most [`MAX_PAYLOAD_BYTES`] |
//! | 7 | n | payload |
//! | 7+n | 4 | checksum of everything from the kind to the end of the payload, little-endian |
//!
//! Before the first good frame a line may carry anything (a boot loader's or firmware's text): those bytes are skipped.
//! After it, a byte that does not fit is an error: it means that the kernel's driver lost or invented something.
//! The checksum is there to find such a driver out, at the price of some instructions for eight bytes; it is none of the known ones, because both ends are built from this file.

use std::borrow::Cow;

/// The longest payload that a frame may carry; long streams travel in several frames.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

const MARKER: [u8; 2] = [0xEB, 0xB5];
/// What is before the payload.
pub(crate) const HEADER_BYTES: usize = 7;
/// What is behind it.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// One frame, checked: the bytes are those that the other side sent. It does not say that they mean anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Which message this is; see [`crate::message`].
    pub kind: u8,
    /// The message's fields.
    pub payload: Cow<'a, [u8]>,
}

impl Frame<'_> {
    /// The frame as it goes onto the line.
    ///
    /// # Panics
    /// If the payload is longer than [`MAX_PAYLOAD_BYTES`]: whoever makes messages keeps them shorter.
    pub fn encode(&self) -> Vec<u8> {
        assert!(
            self.payload.len() <= MAX_PAYLOAD_BYTES,
            "a message of {} bytes does not fit a frame",
            self.payload.len()
        );
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.payload.len() + CHECKSUM_BYTES);
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(&self.payload);
        bytes.resize(bytes.len() + CHECKSUM_BYTES, 0);
        seal(self.kind, &mut bytes);
        bytes
    }
}

/// Makes a frame of bytes whose payload is at its place: fills in what is before and behind it.
pub(crate) fn seal(kind: u8, bytes: &mut [u8]) {
    let checksum_at = bytes.len() - CHECKSUM_BYTES;
    bytes[..MARKER.len()].copy_from_slice(&MARKER);
    bytes[MARKER.len()] = kind;
    bytes[MARKER.len() + 1..HEADER_BYTES].copy_from_slice(&((checksum_at - HEADER_BYTES) as u32).to_le_bytes());
    let checksum = checksum(&bytes[MARKER.len()..checksum_at]);
    bytes[checksum_at..].copy_from_slice(&checksum.to_le_bytes());
}

/// What is wrong with the bytes on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// A byte that belongs to no frame came after the first good frame.
    StrayByte(u8),
    /// A frame's checksum is not that of its contents: bytes were lost, changed or added.
    Checksum,
    /// A frame claims to be longer than any frame may be.
    TooLong(usize),
    /// A frame's payload is not a message of its kind.
    Malformed(&'static str),
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StrayByte(byte) => write!(f, "stray byte {byte:#04x} between two messages"),
            Self::Checksum => f.write_str("a message's checksum is wrong"),
            Self::TooLong(length) => write!(f, "a message claims to be {length} bytes long"),
            Self::Malformed(what) => write!(f, "a message makes no sense: {what}"),
        }
    }
}

impl std::error::Error for WireError {}

/// Turns the bytes of a line into frames.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    start: usize,
    synchronised: bool,
}

impl Decoder {
    /// A decoder at the beginning of a line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes as they came from the line.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.pending.drain(..self.start);
            self.start = 0;
        }
        self.pending.extend_from_slice(bytes);
    }

    /// The next complete frame, or `None` if more bytes are needed.
    ///
    /// After an error the decoder goes on with the byte behind the one that did not fit.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, WireError> {
        loop {
            match parse(&self.pending[self.start..]) {
                Parsed::Incomplete => return Ok(None),
                Parsed::Frame { payload_bytes } => {
                    let kind = self.pending[self.start + MARKER.len()];
                    let payload_at = self.start + HEADER_BYTES;
                    self.start = payload_at + payload_bytes + CHECKSUM_BYTES;
                    self.synchronised = true;
                    let payload = Cow::Borrowed(&self.pending[payload_at..payload_at + payload_bytes]);
                    return Ok(Some(Frame { kind, payload }));
                }
                Parsed::Wrong(error) => {
                    self.start += 1;
                    if self.synchronised {
                        return Err(error);
                    }
                }
            }
        }
    }
}

enum Parsed {
    Incomplete,
    Frame { payload_bytes: usize },
    Wrong(WireError),
}

fn parse(bytes: &[u8]) -> Parsed {
    for (&byte, expected) in bytes.iter().zip(MARKER) {
        if byte != expected {
            return Parsed::Wrong(WireError::StrayByte(byte));
        }
    }
    let Some(header) = bytes.get(MARKER.len()..HEADER_BYTES) else {
        return Parsed::Incomplete;
    };
    let payload_bytes = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if payload_bytes > MAX_PAYLOAD_BYTES {
        return Parsed::Wrong(WireError::TooLong(payload_bytes));
    }
    let checksum_at = HEADER_BYTES + payload_bytes;
    let Some(found) = bytes.get(checksum_at..checksum_at + CHECKSUM_BYTES) else {
        return Parsed::Incomplete;
    };
    if found != checksum(&bytes[MARKER.len()..checksum_at]).to_le_bytes() {
        return Parsed::Wrong(WireError::Checksum);
    }
    Parsed::Frame { payload_bytes }
}

/// Eight bytes at a time, the last ones filled up with zeros. Each step is a permutation of what came before, so no word that differs from what was sent goes unnoticed but by what the last line leaves out: once in 2^32 times.
fn checksum(bytes: &[u8]) -> u32 {
    /// The golden ratio's bits: any odd number with as many ones as zeros does.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| step(sum, u64::from_le_bytes(*word)));
    let sum = step(sum, u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    (sum >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Frame<'_> {
        Frame { kind, payload: payload.into() }
    }

    #[test]
    fn any_changed_bit_changes_the_checksum() {
        let good: Vec<u8> = (0..100).collect();
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&bad), checksum(&good), "bit {bit}");
        }
        assert_ne!(checksum(&[0; 8]), checksum(&[0; 16]), "its length counts");
    }

    #[test]
    fn frames_arrive_however_the_line_cuts_them() {
        let sent = [frame(1, b""), frame(2, &[0xEB, 0xB5, 0xEB]), frame(255, &[7; 3000])];
        let line: Vec<u8> = sent.iter().flat_map(Frame::encode).collect();
        for piece in [1, 2, 3, 7, 11, 1000, line.len()] {
            let mut decoder = Decoder::new();
            let mut received = Vec::new();
            for bytes in line.chunks(piece) {
                decoder.push(bytes);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    received.push(Frame { payload: frame.payload.into_owned().into(), ..frame });
                }
            }
            assert_eq!(received, sent, "in pieces of {piece} bytes");
        }
    }

    #[test]
    fn text_before_the_first_frame_is_skipped() {
        let mut decoder = Decoder::new();
        decoder.push(b"SeaBIOS \xEB \xEB\xB5\x01\xff\xff\xff\xff");
        decoder.push(&frame(9, b"hello").encode());
        assert_eq!(decoder.next_frame(), Ok(Some(frame(9, b"hello"))));
        assert_eq!(decoder.next_frame(), Ok(None));
    }

    #[test]
    fn a_stray_byte_after_the_first_frame_is_noticed() {
        let mut decoder = Decoder::new();
        decoder.push(&frame(1, b"a").encode());
        decoder.push(b"x");
        decoder.push(&frame(2, b"b").encode());
        assert_eq!(decoder.next_frame(), Ok(Some(frame(1, b"a"))));
        assert_eq!(decoder.next_frame(), Err(WireError::StrayByte(b'x')));
        assert_eq!(decoder.next_frame(), Ok(Some(frame(2, b"b"))));
    }

    #[test]
    fn any_changed_or_lost_byte_is_noticed() {
        let first = frame(1, b"first").encode();
        let good = frame(2, b"some payload").encode();
        for position in 0..good.len() {
            let mut changed = good.clone();
            changed[position] ^= 0x20;
            let mut lost = good.clone();
            lost.remove(position);
            for bad in [changed, lost] {
                let mut decoder = Decoder::new();
                decoder.push(&first);
                decoder.push(&bad);
                decoder.push(&frame(3, &[0; 64]).encode());
                assert_eq!(decoder.next_frame(), Ok(Some(frame(1, b"first"))));
                match decoder.next_frame() {
                    Err(_) => {}
                    // A length that grew makes the decoder wait for more; it never passes on what was not sent.
                    Ok(None) => assert!((3..7).contains(&position), "byte {position}"),
                    Ok(Some(frame)) => panic!("byte {position}: took {frame:?} for good"),
                }
            }
        }
    }
}

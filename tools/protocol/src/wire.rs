//! Frames: how one message travels on the serial line.
//!
//! | offset | bytes | meaning |
//! | --- | --- | --- |
//! | 0 | 2 | the marker `EB B5` |
//! | 2 | 1 | kind of message |
//! | 3 | 4 | length of the payload in bytes, little-endian, at most [`MAX_PAYLOAD_BYTES`] |
//! | 7 | n | payload |
//! | 7+n | 4 | CRC-32 (IEEE 802.3) of everything from the kind to the end of the payload, little-endian |
//!
//! Before the first good frame a line may carry anything (a boot loader's or firmware's text): those bytes are skipped.
//! After it, a byte that does not fit is an error: it means that the kernel's serial driver lost or invented something.

/// The longest payload that a frame may carry; long streams travel in several frames.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

const MARKER: [u8; 2] = [0xEB, 0xB5];
const HEADER_BYTES: usize = 7;
const CHECKSUM_BYTES: usize = 4;

/// One frame, checked: the bytes are those that the other side sent. It does not say that they mean anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Which message this is; see [`crate::message`].
    pub kind: u8,
    /// The message's fields.
    pub payload: Vec<u8>,
}

impl Frame {
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
        bytes.extend_from_slice(&MARKER);
        bytes.push(self.kind);
        bytes.extend_from_slice(&(self.payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.payload);
        let checksum = crc32(&bytes[MARKER.len()..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }
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
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        loop {
            match parse(&self.pending[self.start..]) {
                Parsed::Incomplete => return Ok(None),
                Parsed::Frame { frame, length } => {
                    self.start += length;
                    self.synchronised = true;
                    return Ok(Some(frame));
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
    Frame { frame: Frame, length: usize },
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
    let Some(checksum) = bytes.get(checksum_at..checksum_at + CHECKSUM_BYTES) else {
        return Parsed::Incomplete;
    };
    if checksum != crc32(&bytes[MARKER.len()..checksum_at]).to_le_bytes() {
        return Parsed::Wrong(WireError::Checksum);
    }
    let frame = Frame { kind: header[0], payload: bytes[HEADER_BYTES..checksum_at].to_vec() };
    Parsed::Frame { frame, length: checksum_at + CHECKSUM_BYTES }
}

/// CRC-32 of IEEE 802.3 (reflected, polynomial 0xEDB88320), four bits at a time.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = table();
    let mut crc = !0_u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        crc = (crc >> 4) ^ TABLE[(crc & 15) as usize];
        crc = (crc >> 4) ^ TABLE[(crc & 15) as usize];
    }
    !crc
}

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut index = 0;
    while index < table.len() {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 4 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Frame {
        Frame { kind, payload: payload.to_vec() }
    }

    #[test]
    fn crc32_is_the_one_of_ieee_802_3() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
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
                    received.push(frame);
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

//! Gzip (RFC 1952) around deflate (RFC 1951): for an initial ram disk that is compressed.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::Source;

/// Whether the bytes begin as a gzip member does.
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

/// How far back deflate refers.
const WINDOW: usize = 32_768;

/// The content of a member, which is unpacked as it is read. What it was unpacked from is passed meanwhile.
pub struct Member<'a, S: Source> {
    packed: &'a mut S,
    state: Box<DecompressorOxide>,
    /// The last bytes of the content, round and round.
    window: Vec<u8>,
    /// Where the next byte goes.
    at: usize,
    /// Content that was unpacked, the first bytes of which were passed.
    ready: Vec<u8>,
    passed: usize,
    /// Checksum and length of all content so far.
    sum: u32,
    len: u32,
    outcome: Option<Result<(), &'static str>>,
}

impl<'a, S: Source> Member<'a, S> {
    /// The member that `packed` begins with.
    ///
    /// # Errors
    /// It has no header.
    pub fn new(packed: &'a mut S) -> Result<Self, &'static str> {
        /// Enough for what tools write in front of the content; a source that has all its bytes at hand gives all anyway.
        const HEADER: usize = 1 << 16;
        let header = header_len(packed.fill(HEADER)).ok_or("a gzip header is broken")?;
        packed.advance(header);
        Ok(Member {
            packed,
            state: Box::new(DecompressorOxide::new()),
            window: vec![0; WINDOW],
            at: 0,
            ready: Vec::new(),
            passed: 0,
            sum: 0,
            len: 0,
            outcome: None,
        })
    }

    /// Passes what is left of it; what was behind it is next.
    ///
    /// # Errors
    /// What was wrong with it. Its content ended there.
    pub fn finish(mut self) -> Result<(), &'static str> {
        while !self.fill(1).is_empty() {
            self.advance(WINDOW);
        }
        self.outcome.unwrap_or(Ok(()))
    }

    /// Unpacks some more.
    fn unpack(&mut self) {
        let input = self.packed.fill(1);
        let is_end = input.is_empty();
        let flags = inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
        let (status, consumed, produced) = decompress(&mut self.state, input, &mut self.window, self.at, flags);
        self.packed.advance(consumed);
        let content = self.window.get(self.at..self.at + produced).unwrap_or_default();
        self.sum = crc32(self.sum, content);
        self.len = self.len.wrapping_add(content.len() as u32);
        self.ready.extend_from_slice(content);
        self.at = (self.at + produced) % WINDOW;
        match status {
            TINFLStatus::HasMoreOutput => {}
            TINFLStatus::Done => self.outcome = Some(self.check_sum()),
            TINFLStatus::NeedsMoreInput if !is_end => {}
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                self.outcome = Some(Err("compressed data are cut off"));
            }
            _ => self.outcome = Some(Err("compressed data are broken")),
        }
    }

    /// Compares checksum and length with those that follow the content.
    fn check_sum(&mut self) -> Result<(), &'static str> {
        let bytes = self.packed.fill(8);
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let (Some(sum), Some(len)) = (word(0), word(4)) else { return Err("compressed data are cut off") };
        self.packed.advance(8);
        if (sum, len) == (self.sum, self.len) { Ok(()) } else { Err("compressed data do not have their checksum") }
    }
}

impl<S: Source> Source for Member<'_, S> {
    fn fill(&mut self, len: usize) -> &[u8] {
        if self.ready.len() - self.passed < len {
            self.ready.drain(..self.passed);
            self.passed = 0;
            while self.ready.len() < len && self.outcome.is_none() {
                self.unpack();
            }
        }
        self.ready.get(self.passed..).unwrap_or_default()
    }

    fn advance(&mut self, mut len: usize) {
        while len > 0 {
            let here = self.fill(1).len().min(len);
            if here == 0 {
                return;
            }
            self.passed += here;
            len -= here;
        }
    }
}

/// How long the header of a member is.
fn header_len(bytes: &[u8]) -> Option<usize> {
    const TEXT_AND_RESERVED: u8 = 0xe0;
    const HEADER_SUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    if !is_gzip(bytes) {
        return None;
    }
    let flags = *bytes.get(3)?;
    if flags & TEXT_AND_RESERVED != 0 {
        return None;
    }
    let mut at = 10;
    if flags & EXTRA != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    }
    for string in [NAME, COMMENT] {
        if flags & string != 0 {
            at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 1;
        }
    }
    if flags & HEADER_SUM != 0 {
        at += 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// The checksum of RFC 1952, section 8, a byte at a time: of what has the checksum `sum`, and these bytes behind it.
fn crc32(sum: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!sum, |sum: u32, &byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'hello hello hello hello\n' | gzip -n9`
    const HELLO: [u8; 29] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40,
        0x27, 0xb9, 0x00, 0x00, 0x88, 0x59, 0x0b, 0x18, 0x00, 0x00, 0x00,
    ];

    /// All content that there is, and how it ended. What is behind it stays in `bytes`.
    fn content(bytes: &mut &[u8]) -> (Vec<u8>, Result<(), &'static str>) {
        let mut content = Vec::new();
        let outcome = Member::new(bytes).and_then(|mut member| {
            loop {
                let piece = member.fill(1000);
                if piece.is_empty() {
                    return member.finish();
                }
                let len = piece.len().min(777);
                content.extend_from_slice(&piece[..len]);
                member.advance(len);
            }
        });
        (content, outcome)
    }

    /// A member of blocks that are stored as they are.
    fn stored(content: &[u8]) -> Vec<u8> {
        let mut bytes = HELLO[..10].to_vec();
        let mut blocks = content.chunks(50_000).peekable();
        while let Some(block) = blocks.next() {
            let len = block.len() as u16;
            bytes.push(u8::from(blocks.peek().is_none()));
            bytes.extend(len.to_le_bytes());
            bytes.extend((!len).to_le_bytes());
            bytes.extend(block);
        }
        bytes.extend(crc32(0, content).to_le_bytes());
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes
    }

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
    }

    #[test]
    fn a_member_gives_its_content_and_ends_before_what_is_behind_it() {
        let mut bytes = HELLO.to_vec();
        bytes.extend_from_slice(b"behind");
        let mut bytes = &bytes[..];
        assert_eq!(content(&mut bytes), (b"hello hello hello hello\n".to_vec(), Ok(())));
        assert_eq!(bytes, b"behind");
    }

    #[test]
    fn content_that_is_longer_than_the_window_comes_in_order() {
        let expected: Vec<u8> = (0..200_000_u32).map(|at| (at / 7 % 251) as u8).collect();
        assert_eq!(content(&mut &stored(&expected)[..]), (expected, Ok(())));
    }

    #[test]
    fn what_is_passed_is_not_given() {
        let expected: Vec<u8> = (0..200_000_u32).map(|at| (at / 7 % 251) as u8).collect();
        let bytes = stored(&expected);
        let mut bytes = &bytes[..];
        let mut member = Member::new(&mut bytes).unwrap();
        assert_eq!(member.fill(10)[..10], expected[..10]);
        member.advance(150_000);
        assert_eq!(member.fill(40_000)[..40_000], expected[150_000..190_000]);
        member.advance(1 << 20);
        assert!(member.fill(1).is_empty());
        assert_eq!(member.finish(), Ok(()));
    }

    #[test]
    fn what_is_cut_off_or_changed_is_an_error() {
        for len in 0..HELLO.len() {
            assert!(content(&mut &HELLO[..len]).1.is_err());
        }
        for at in 10..HELLO.len() {
            for bit in 0..8 {
                let mut bytes = HELLO;
                bytes[at] ^= 1 << bit;
                assert!(content(&mut &bytes[..]).1.is_err(), "byte {at} bit {bit}");
            }
        }
    }
}

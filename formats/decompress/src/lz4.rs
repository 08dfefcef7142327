//! The block format of LZ4 (github.com/lz4/lz4, `doc/lz4_Block_format.md`).
//!
//! Decoding ends where the output is full: an extent of an image of EROFS may want only the beginning of what a block holds, may be followed by bytes that are not part of it, and its length is known only from outside.

use crate::output::Output;
use crate::{Error, Progress};

/// Decompresses until `output` is full. Takes time in proportion to both lengths.
///
/// # Errors
/// `Malformed`: the input is not LZ4, or ends before the output is full.
pub fn decompress(input: &[u8], output: &mut [u8]) -> Result<(), Error> {
    let len = output.len();
    let mut output = Output { bytes: output, done: 0 };
    let mut decoder = Decoder::default();
    while decoder.step(input, &mut output, len)? == Progress::More {}
    if output.done == len { Ok(()) } else { Err(Error::Malformed) }
}

/// How far the input is read, and a match that is not finished.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    read: usize,
    distance: usize,
    matched: usize,
}

const SHORTEST_MATCH: usize = 4;

impl Decoder {
    /// Decompresses until so much is made, with literals more perhaps, the output is full, or the input ends.
    pub fn step(&mut self, input: &[u8], output: &mut Output<'_>, goal: usize) -> Result<Progress, Error> {
        let mut input = Input { bytes: input.get(self.read..).ok_or(Error::Malformed)?, all: input.len() };
        loop {
            if self.matched > 0 {
                let now = self.matched.min(goal.saturating_sub(output.done));
                output.repeat(self.distance, now)?;
                self.matched -= now;
            }
            if output.room() == 0 {
                return Ok(Progress::Done);
            }
            if output.done >= goal {
                self.read = input.all - input.bytes.len();
                return Ok(Progress::More);
            }
            let token = input.byte()?;
            let literals = input.length(token >> 4)?.min(output.room());
            output.extend(input.take(literals)?)?;
            // The last sequence is literals alone.
            if output.room() == 0 || input.bytes.is_empty() {
                return Ok(Progress::Done);
            }
            self.distance = usize::from(input.byte()?) | usize::from(input.byte()?) << 8;
            self.matched = input.length(token & 15)?.saturating_add(SHORTEST_MATCH).min(output.room());
            // Also of one that is not begun yet.
            output.check(self.distance)?;
        }
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    all: usize,
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.bytes.split_at_checked(len).ok_or(Error::Malformed)?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// A length of which the token has four bits: 15 says that bytes follow, to be added up to the first that is not 255.
    fn length(&mut self, in_token: u8) -> Result<usize, Error> {
        let mut length = usize::from(in_token);
        if in_token == 15 {
            loop {
                let more = self.byte()?;
                length = length.saturating_add(usize::from(more));
                if more != 255 {
                    break;
                }
            }
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompressed(input: &[u8], len: usize) -> Result<std::vec::Vec<u8>, Error> {
        let mut output = std::vec![0; len];
        decompress(input, &mut output).map(|()| output)
    }

    #[test]
    fn literals_are_copied_and_matches_repeat_what_was_before() {
        assert_eq!(decompressed(b"\x30abc", 3).unwrap(), b"abc");
        assert_eq!(
            decompressed(b"\x21ab\x02\x00\x10c", 8).unwrap(),
            b"abababac"[..7].iter().copied().chain(*b"c").collect::<std::vec::Vec<_>>()
        );
        assert_eq!(decompressed(b"\x1fx\x01\x00\xff\x05\x10y", 1 + 4 + 15 + 255 + 5 + 1).unwrap()[279..], *b"xy");
    }

    #[test]
    fn decoding_ends_where_the_output_is_full() {
        assert_eq!(decompressed(b"\x30abc", 2).unwrap(), b"ab");
        assert_eq!(decompressed(b"\x21ab\x02\x00garbage", 5).unwrap(), b"ababa");
    }

    #[test]
    fn what_is_no_lz4_is_refused() {
        for input in [&b""[..], b"\x30ab", b"\x10a", b"\x10a\x01", b"\x10a\x00\x00", b"\x10a\x02\x00", b"\xf0\xff\xff"]
        {
            assert_eq!(decompressed(input, 9), Err(Error::Malformed), "{input:?}");
        }
    }
}

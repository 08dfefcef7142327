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

/// How far the input is read, and a sequence that is not finished.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    read: usize,
    phase: Phase,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Token,
    /// So many literals, and what the token says of the match behind them.
    Literals(usize, u8),
    /// So many bytes that stand at such a distance.
    Match(usize, usize),
}

const SHORTEST_MATCH: usize = 4;

impl Decoder {
    /// Decompresses until so much is made, the output is full, or the input ends.
    pub fn step(&mut self, input: &[u8], output: &mut Output<'_>, goal: usize) -> Result<Progress, Error> {
        let mut input = Input { bytes: input.get(self.read..).ok_or(Error::Malformed)?, all: input.len() };
        let progress = self.run(&mut input, output, goal)?;
        self.read = input.all - input.bytes.len();
        Ok(progress)
    }

    fn run(&mut self, input: &mut Input<'_>, output: &mut Output<'_>, goal: usize) -> Result<Progress, Error> {
        loop {
            let left = goal.saturating_sub(output.done);
            match self.phase {
                _ if output.room() == 0 => return Ok(Progress::Done),
                _ if left == 0 => return Ok(Progress::More),
                Phase::Token => {
                    let token = input.byte()?;
                    // All literals stand in the input, of which the output may want fewer.
                    let literals = input.length(token >> 4, input.bytes.len())?;
                    if literals > input.bytes.len() {
                        return Err(Error::Malformed);
                    }
                    self.phase = Phase::Literals(literals, token & 15);
                }
                Phase::Literals(0, in_token) => {
                    // The last sequence is literals alone.
                    if input.bytes.is_empty() {
                        return Ok(Progress::Done);
                    }
                    let distance = usize::from(input.byte()?) | usize::from(input.byte()?) << 8;
                    // Where the output is full nobody asks how long it is.
                    let len = input.length(in_token, output.room())?.saturating_add(SHORTEST_MATCH);
                    output.check(distance)?;
                    self.phase = Phase::Match(len.min(output.room()), distance);
                }
                Phase::Literals(literals, in_token) => {
                    let now = literals.min(left);
                    output.extend(input.take(now)?)?;
                    self.phase = Phase::Literals(literals - now, in_token);
                }
                Phase::Match(0, _) => self.phase = Phase::Token,
                Phase::Match(matched, distance) => {
                    let now = matched.min(left);
                    output.repeat(distance, now)?;
                    self.phase = Phase::Match(matched - now, distance);
                }
            }
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

    /// A length of which the token has four bits: 15 says that bytes follow, to be added up to the first that is not 255. They are read until it is more than `most`.
    fn length(&mut self, in_token: u8, most: usize) -> Result<usize, Error> {
        let mut length = usize::from(in_token);
        if in_token == 15 {
            while length <= most {
                let more = self.byte()?;
                length += usize::from(more);
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

//! xz files (tukaani.org/xz, `xz-file-format.txt`) of one block, whose only filter is LZMA2. The CRC-32 of the content is checked if there is one, other checks are not; nor is the index at the end looked at.

use crate::lzma::Lzma;
use crate::output::Output;
use crate::{Error, Progress};

pub(crate) struct Decoder {
    phase: Phase,
    /// How far the input is read.
    read: usize,
    lzma: Lzma,
    /// Of what was made so far.
    crc: u32,
    checks_crc: bool,
}

#[derive(Clone, Copy)]
enum Phase {
    Headers,
    Control,
    /// So many bytes that are not compressed.
    Plain(usize),
    /// The rest of a chunk of LZMA: up to where the output goes, and the input.
    Compressed(usize, usize),
    Check,
}

/// What a chunk begins anew.
#[derive(PartialEq, Eq)]
enum Reset {
    Nothing,
    All,
}

const MAGIC: &[u8] = b"\xfd7zXZ\0";
/// The number of the filter LZMA2.
const LZMA2: u8 = 0x21;
/// The kind of check that is a CRC-32.
const CHECK_CRC32: u8 = 1;

impl Decoder {
    pub fn new() -> Result<Self, Error> {
        Ok(Decoder { phase: Phase::Headers, read: 0, lzma: Lzma::new()?, crc: u32::MAX, checks_crc: false })
    }

    /// Decompresses until so much is made, with a match more perhaps, or all is.
    pub fn step(&mut self, input: &[u8], output: &mut Output<'_>, goal: usize) -> Result<Progress, Error> {
        let before = output.done;
        // A chunk has a bound, but not how many there are that make nothing: each takes from the input.
        let most_read = self.read + 16 * 1024;
        let progress = loop {
            match self.phase {
                Phase::Headers => self.headers(input)?,
                Phase::Control => {
                    if self.control(input, output)? == Reset::All {
                        // All probabilities begin anew, which takes as long as a piece.
                        break Progress::More;
                    }
                }
                Phase::Plain(0) => self.phase = Phase::Control,
                Phase::Plain(left) => {
                    // What has to be there although there is no room for it is refused.
                    let now = left.min(goal.saturating_sub(output.done).max(1));
                    output.extend(take(input, self.read, now)?)?;
                    self.read += now;
                    self.phase = Phase::Plain(left - now);
                }
                Phase::Compressed(end, input_end) => {
                    let input = input.get(..input_end).ok_or(Error::Malformed)?;
                    self.lzma.run(input, &mut self.read, output, end, goal.min(end))?;
                    if output.done == end {
                        self.read = input_end;
                        self.phase = Phase::Control;
                    }
                }
                Phase::Check => break Progress::Done,
            }
            if output.done >= goal && output.room() > 0 || self.read > most_read {
                break Progress::More;
            }
        };
        if self.checks_crc {
            self.crc = crc32(self.crc, &output.bytes[before..output.done]);
        }
        if progress == Progress::Done && self.checks_crc {
            let at = self.read.next_multiple_of(4);
            let expected: [u8; 4] = take(input, at, 4)?.try_into().map_err(|_| Error::Malformed)?;
            if u32::from_le_bytes(expected) != !self.crc {
                return Err(Error::Malformed);
            }
        }
        Ok(progress)
    }

    /// The headers of the stream and of its first block.
    fn headers(&mut self, input: &[u8]) -> Result<(), Error> {
        let head = take(input, 0, 12)?;
        if &head[..6] != MAGIC || head[6] != 0 || head[7] & 0xf0 != 0 {
            return Err(Error::Malformed);
        }
        self.checks_crc = head[7] == CHECK_CRC32;
        let block = take(input, 12, 4 * (usize::from(*input.get(12).ok_or(Error::Malformed)?) + 1))?;
        let flags = *block.get(1).ok_or(Error::Malformed)?;
        if flags & 3 != 0 {
            return Err(Error::Unsupported("xz with a filter besides LZMA2"));
        }
        let mut at = 2;
        // The lengths, compressed and not, if they are there: the chunks say the same.
        for _ in 0..(flags >> 6).count_ones() {
            while block.get(at).ok_or(Error::Malformed)? & 0x80 != 0 {
                at += 1;
            }
            at += 1;
        }
        if take(block, at, 2)? != [LZMA2, 1] {
            return Err(Error::Unsupported("xz with a filter that is not LZMA2"));
        }
        self.read = 12 + block.len();
        self.phase = Phase::Control;
        Ok(())
    }

    /// The beginning of a chunk.
    fn control(&mut self, input: &[u8], output: &mut Output<'_>) -> Result<Reset, Error> {
        let control = take(input, self.read, 1)?[0];
        let number = |at: usize| -> Result<usize, Error> {
            let bytes = take(input, at, 2)?;
            Ok(usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
        };
        match control {
            0 => {
                self.read += 1;
                self.phase = Phase::Check;
            }
            1 | 2 => {
                if control == 1 {
                    self.lzma.reset_dictionary(output.done);
                }
                let len = number(self.read + 1)? + 1;
                take(input, self.read + 3, len)?;
                self.read += 3;
                self.phase = Phase::Plain(len);
            }
            0x80.. => {
                let len = (usize::from(control & 0x1f) << 16 | number(self.read + 1)?) + 1;
                let compressed = number(self.read + 3)? + 1;
                self.read += 5;
                let reset = control >> 5 & 3;
                if reset == 3 {
                    self.lzma.reset_dictionary(output.done);
                }
                if reset >= 2 {
                    self.lzma.set_properties(take(input, self.read, 1)?[0])?;
                    self.read += 1;
                }
                if reset >= 1 {
                    self.lzma.reset_state();
                }
                if len > output.room() {
                    return Err(Error::Malformed);
                }
                let input_end = self.read + compressed;
                self.lzma.begin_chunk(take(input, self.read, compressed)?)?;
                self.read += 5;
                self.phase = Phase::Compressed(output.done + len, input_end);
                return Ok(if reset >= 1 { Reset::All } else { Reset::Nothing });
            }
            _ => return Err(Error::Malformed),
        }
        Ok(Reset::Nothing)
    }
}

fn take(bytes: &[u8], at: usize, len: usize) -> Result<&[u8], Error> {
    bytes.get(at..).and_then(|rest| rest.get(..len)).ok_or(Error::Malformed)
}

/// Goes on with a CRC-32, which begins with all bits set and is inverted at its end.
fn crc32(start: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(start, |crc, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc32() {
        assert_eq!(!crc32(u32::MAX, b"123456789"), 0xcbf4_3926);
    }
}

//! The block format of LZ4 (github.com/lz4/lz4, `doc/lz4_Block_format.md`).
//!
//! Not a crate's decoder: an extent of an image may want only the beginning of what a block holds, may be followed by bytes that are
//! not part of it, and its length is known only from outside. So decoding ends where the output is full, which the crates' safe decoders do not offer.

/// The input is not LZ4, or ends before the output is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Decompresses until `output` is full. Takes time in proportion to both lengths.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<(), Malformed> {
    let mut input = Input(input);
    let mut done = 0;
    while done < output.len() {
        let token = input.byte()?;
        let wanted = output.len() - done;
        let literals = input.length(token >> 4)?.min(wanted);
        output[done..done + literals].copy_from_slice(input.bytes(literals)?);
        done += literals;
        if done == output.len() {
            break;
        }
        let distance = usize::from(input.byte()?) | usize::from(input.byte()?) << 8;
        let matched = input.length(token & 15)?.saturating_add(SHORTEST_MATCH).min(output.len() - done);
        if distance == 0 || distance > done {
            return Err(Malformed);
        }
        repeat(output, done, distance, matched);
        done += matched;
    }
    Ok(())
}

const SHORTEST_MATCH: usize = 4;

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A length of which the token has four bits: 15 says that bytes follow, to be added up to the first that is not 255.
    fn length(&mut self, in_token: u8) -> Result<usize, Malformed> {
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

/// Writes `len` bytes at `at` that repeat the `distance` bytes before it.
fn repeat(output: &mut [u8], at: usize, distance: usize, len: usize) {
    let from = at - distance;
    let mut copied = 0;
    // What was copied can be copied again: the source doubles each time.
    while copied < len {
        let now = (distance + copied).min(len - copied);
        output.copy_within(from..from + now, at + copied);
        copied += now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompressed(input: &[u8], len: usize) -> Result<std::vec::Vec<u8>, Malformed> {
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
            assert_eq!(decompressed(input, 9), Err(Malformed), "{input:?}");
        }
    }
}

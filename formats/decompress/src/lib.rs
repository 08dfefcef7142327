//! Decompresses what file systems store, a piece at a time, so that a kernel can let others have their turn in between.
//!
//! The input is a block that is there as a whole, the output at most as long as the caller says; it is the dictionary as well, so no decoder has another one. A [`Decompression`] keeps both and how far it is.
//! Each [`step`](Decompression::step) makes a piece that takes a hundred thousand instructions or less.
//!
//! The input is untrusted: what is no such data ends in [`Error::Malformed`], and each step has a bound whatever stands in it.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `output` | the output, as all but zlib's decoder write it |
//! | `lz4` | blocks of LZ4 |
//! | `xz`, `lzma` | xz files of one block, with LZMA2 and no other filter |
//! | `zstd` | frames of Zstandard without a dictionary; a checksum at their end is not looked at |
//! | (`miniz_oxide`) | zlib |
//!
//! # Why not crates
//!
//! zlib's decoder is one, `miniz_oxide`. Of the others: `lz4_flex` does not end where the output is full, as images of EROFS need it, and not in between. `ruzstd` contains `unsafe`, and decodes blocks of 128 KiB without a pause.
//! `xz4rust` builds its state of 30 KB on the stack, of which a kernel has 32 KiB, and `lzma-rust2` is twenty thousand lines. None of them writes to a buffer that is the dictionary as well.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod lz4;
mod lzma;
mod output;
mod xz;
mod zstd;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress as inflate};

use output::Output;

/// How something is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// DEFLATE with zlib's header and checksum.
    Zlib,
    /// A block of LZ4.
    Lz4,
    /// xz.
    Xz,
    /// A frame of Zstandard.
    Zstd,
}

impl Algorithm {
    /// So many bytes are made in a step: what takes a hundred thousand instructions or less.
    fn piece(self) -> usize {
        match self {
            Algorithm::Zlib | Algorithm::Zstd => 2 << 10,
            Algorithm::Lz4 => 8 << 10,
            Algorithm::Xz => 512,
        }
    }
}

/// Why something cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is no such data, is cut short, or is longer than the caller says.
    Malformed,
    /// It uses something that is not decoded here; what.
    Unsupported(&'static str),
    /// There is no memory for it.
    NoMemory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed => f.write_str("compressed data that contradict themselves"),
            Error::Unsupported(what) => write!(f, "unsupported: {what}"),
            Error::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for Error {}

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is.
    More,
    /// All is decompressed.
    Done,
}

/// A block that is being decompressed. It takes as much memory as the input and the longest output, and up to 150 KiB.
#[derive(Debug)]
pub struct Decompression {
    algorithm: Algorithm,
    input: Vec<u8>,
    /// As long as the longest output before anything is made: it is filled with zeros in pieces as well.
    output: Vec<u8>,
    most: usize,
    /// How much of it is made.
    done: usize,
    decoder: Decoder,
}

/// So much of the output is filled with zeros in a step.
const ZEROED_AT_ONCE: usize = 32 << 10;

enum Decoder {
    Zlib(Box<DecompressorOxide>, usize),
    Lz4(lz4::Decoder),
    Xz(Box<xz::Decoder>),
    Zstd(Box<zstd::Decoder>),
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl Decompression {
    /// Prepares to decompress what has at most `most` bytes then, if possible into `room`, whose content means nothing.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn new(algorithm: Algorithm, input: Vec<u8>, most: usize, room: Vec<u8>) -> Result<Self, Error> {
        let mut output = room;
        output.clear();
        output.try_reserve_exact(most).map_err(|_| Error::NoMemory)?;
        let decoder = match algorithm {
            Algorithm::Zlib => Decoder::Zlib(Box::default(), 0),
            Algorithm::Lz4 => Decoder::Lz4(lz4::Decoder::default()),
            Algorithm::Xz => Decoder::Xz(Box::new(xz::Decoder::new()?)),
            Algorithm::Zstd => Decoder::Zstd(Box::new(zstd::Decoder::new())),
        };
        Ok(Decompression { algorithm, input, output, most, done: 0, decoder })
    }

    /// Makes another piece.
    ///
    /// # Errors
    /// `Malformed`, `Unsupported`, `NoMemory`: it comes to nothing.
    pub fn step(&mut self) -> Result<Progress, Error> {
        if self.output.len() < self.most {
            self.output.resize(self.most.min(self.output.len() + ZEROED_AT_ONCE), 0);
            if self.output.len() < self.most {
                return Ok(Progress::More);
            }
        }
        let goal = self.done.saturating_add(self.algorithm.piece()).min(self.output.len());
        if let Decoder::Zlib(decoder, read) = &mut self.decoder {
            return step_of_zlib(decoder, &self.input, read, &mut self.output[..goal], &mut self.done);
        }
        let mut output = Output { bytes: &mut self.output, done: self.done };
        let progress = match &mut self.decoder {
            Decoder::Lz4(decoder) => decoder.step(&self.input, &mut output, goal),
            Decoder::Xz(decoder) => decoder.step(&self.input, &mut output, goal),
            Decoder::Zstd(decoder) => decoder.step(&self.input, &mut output, goal),
            Decoder::Zlib(..) => Err(Error::Malformed),
        };
        self.done = output.done;
        progress
    }

    /// What was decompressed so far.
    pub fn finish(mut self) -> Vec<u8> {
        self.output.truncate(self.done);
        self.output
    }
}

fn step_of_zlib(
    decoder: &mut DecompressorOxide,
    input: &[u8],
    read: &mut usize,
    output: &mut [u8],
    done: &mut usize,
) -> Result<Progress, Error> {
    // A block that makes nothing has a few bits, and tables that have to be built: each is a piece.
    let flags =
        TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (status, consumed, made) = inflate(decoder, &input[*read..], output, *done, flags);
    *read += consumed;
    *done += made;
    match status {
        TINFLStatus::Done => Ok(Progress::Done),
        TINFLStatus::BlockBoundary => Ok(Progress::More),
        // Without progress the output is full, and that is not the end.
        TINFLStatus::HasMoreOutput if consumed + made > 0 => Ok(Progress::More),
        _ => Err(Error::Malformed),
    }
}

/// So many zeros.
fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|_| Error::NoMemory)?;
    all.resize(len, T::default());
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// What comes of it, how many steps that took, and how much the longest made.
    fn decompressed(algorithm: Algorithm, input: Vec<u8>, most: usize) -> (Result<Vec<u8>, Error>, usize, usize) {
        let mut work = Decompression::new(algorithm, input, most, Vec::new()).unwrap();
        let (mut steps, mut longest) = (0, 0);
        loop {
            let before = work.done;
            let progress = work.step();
            (steps, longest) = (steps + 1, longest.max(work.done - before));
            match progress {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => return (Ok(work.finish()), steps, longest),
                Err(error) => return (Err(error), steps, longest),
            }
        }
    }

    /// Bits from the lowest of the first byte on.
    fn bits(values: impl IntoIterator<Item = (u32, u32)>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = 0;
        for (value, count) in values {
            for bit in 0..count {
                if at % 8 == 0 {
                    bytes.push(0);
                }
                bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
                at += 1;
            }
        }
        bytes
    }

    #[test]
    fn blocks_of_zlib_that_make_nothing_are_a_piece_each() {
        const BLOCKS: usize = 5000;
        let empty = |is_last: u32| [(is_last, 1), (1, 2), (0, 7)];
        let blocks = (0..BLOCKS).flat_map(|_| empty(0)).chain(empty(1));
        let mut input = vec![0x78, 0x01];
        input.extend(bits(blocks));
        input.extend([0, 0, 0, 1]);
        let (outcome, steps, _) = decompressed(Algorithm::Zlib, input, 4096);
        assert_eq!(outcome, Ok(vec![]));
        assert!(steps > BLOCKS, "{steps}");
    }

    #[test]
    fn chunks_of_xz_that_begin_anew_are_a_piece_each() {
        const CHUNKS: usize = 500;
        let mut input = b"\xfd7zXZ\0\0\0....".to_vec();
        input.extend(b"\x01\x00\x21\x01\x00\x00\x00\x00");
        // Zeros are a literal that is zero.
        let chunk = |control: u8, properties: &[u8]| [&[control, 0, 0, 0, 8][..], properties, &[0; 9]].concat();
        input.extend(chunk(0xe0, &[0x5d]));
        for _ in 0..CHUNKS {
            input.extend(chunk(0xa0, &[]));
        }
        input.push(0);
        let (outcome, steps, _) = decompressed(Algorithm::Xz, input, 4096);
        assert_eq!(outcome, Ok(vec![0; CHUNKS + 1]));
        assert!(steps > CHUNKS, "{steps}");
    }

    #[test]
    fn no_step_makes_much_more_than_a_piece() {
        const LEN: usize = 100_000;
        let lz4 = {
            // Literals alone; and one literal that is repeated.
            let length = |of: usize| [vec![0xff; (of - 15) / 255], vec![((of - 15) % 255) as u8]].concat();
            let literals = [vec![0xf0], length(LEN), vec![7; LEN]].concat();
            [literals, [vec![0x1f, 7, 1, 0], length(LEN - 5)].concat()]
        };
        for input in lz4 {
            let (outcome, _, longest) = decompressed(Algorithm::Lz4, input, LEN);
            assert_eq!(outcome, Ok(vec![7; LEN]));
            assert!(longest <= 8 << 10, "{longest}");
        }
        let xz = {
            let chunk = |control: u8| [&[control, 0xc3, 0x4f][..], &[7; 50_000]].concat();
            [b"\xfd7zXZ\0\0\0....\x01\x00\x21\x01\x00\x00\x00\x00".to_vec(), chunk(1), chunk(2), vec![0]].concat()
        };
        let (outcome, _, longest) = decompressed(Algorithm::Xz, xz, LEN);
        assert_eq!(outcome, Ok(vec![7; LEN]));
        assert!(longest <= 1 << 10, "{longest}");
        let zstd = {
            let header = |kind: usize, is_last: bool| (50_000 << 3 | kind << 1 | usize::from(is_last)).to_le_bytes();
            let plain = [&header(0, false)[..3], &[7; 50_000]].concat();
            [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0][..], &plain, &header(1, true)[..3], &[7]].concat()
        };
        let (outcome, _, longest) = decompressed(Algorithm::Zstd, zstd, LEN);
        assert_eq!(outcome, Ok(vec![7; LEN]));
        assert!(longest <= 2 << 10, "{longest}");
    }

    #[test]
    fn lengths_that_nothing_can_have_are_not_added_up() {
        let mut decoder = lz4::Decoder::default();
        let mut bytes = [0; 64];
        let mut output = Output { bytes: &mut bytes, done: 0 };
        let input = vec![0xff; 1 << 20];
        assert_eq!(decoder.step(&input, &mut output, 64), Err(Error::Malformed));
    }
}

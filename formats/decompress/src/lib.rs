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
    TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
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
            Algorithm::Lz4 => 16 << 10,
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

/// A block that is being decompressed. It takes as much memory as the input and the longest output, and up to 60 KiB.
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
const ZEROED_AT_ONCE: usize = 64 << 10;

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
    /// Prepares to decompress what has at most `most` bytes then.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn new(algorithm: Algorithm, input: Vec<u8>, most: usize) -> Result<Self, Error> {
        let mut output = Vec::new();
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
    let flags = TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (status, consumed, made) = inflate(decoder, &input[*read..], output, *done, flags);
    *read += consumed;
    *done += made;
    match status {
        TINFLStatus::Done => Ok(Progress::Done),
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

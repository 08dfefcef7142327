//! Reads [squashfs](https://docs.kernel.org/filesystems/squashfs.html) 4.0: images that never change, and are as small as can be.
//!
//! Nearly everything in an image is compressed, metadata in blocks of 8 KiB and content in blocks of up to 1 MiB. So whoever reads needs a cache of what was decompressed, and decompressing takes longer than a kernel may keep others waiting. Functions of an
//! [`Image`], which is a few numbers, read through a [`Source`]: the device's bytes, and the decompressed blocks. Where something is not at hand they answer [`Error::Absent`], and are run again when it is. They change nothing. The [`Cache`] is there for whoever makes a source: it says what is to be done, and
//! [`Work`] does it a piece at a time.
//!
//! Every byte of an image is untrusted. Numbers are checked where they are used, nothing recurs, loops and allocations have bounds.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `source` | [`Source`]: what an image is read through |
//! | `cache` | [`Cache`] and [`Work`]: decompressed blocks |
//! | `superblock` | [`Image`]: what the image says of itself |
//! | `metadata` | reading the rows of small blocks that metadata is in, and tables |
//! | `inode` | [`Inode`] |
//! | `directory` | looking names up and listing them |
//! | `data` | content; [`BlockIndex`]: where a file's blocks are |
//! | `xattr` | extended attributes |
//!
//! # What is read
//!
//! | feature | |
//! | --- | --- |
//! | version 4.0, blocks of 4 KiB to 1 MiB | read; other versions refused |
//! | zlib ("gzip"), LZ4, xz, Zstandard | read. xz with filters other than LZMA2 (`-Xbcj`) and Zstandard with dictionaries: **refused**, each block that uses it |
//! | LZMA, LZO | **refused**, the image as a whole |
//! | fragments, sparse blocks, blocks that are not compressed | read |
//! | all kinds of inodes, basic and extended; extended attributes | read |
//! | indexes of directories | read. Without one a directory is read up to 128 KiB (some 5,000 names), and larger ones are refused beyond; none is read that is longer than 16 MiB |
//! | files | read up to 134 million blocks (16 TiB with blocks of 128 KiB) |
//! | extended attributes of a file | up to 256 KiB together |
//! | the table for NFS | not needed |
//!
//! # Why not a crate
//!
//! `backhand` needs `std` and reads whole files; `squashfs-ng` binds a library in C. No crate says which of its bytes it lacks.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc;

mod cache;
mod data;
mod directory;
mod error;
mod inode;
mod metadata;
mod source;
mod superblock;
mod xattr;

pub use cache::{Cache, Claim, Work};
pub use data::{BlockIndex, Mapping, Place};
pub use decompress::Progress;
pub use directory::{DirectoryEntry, FIRST_POSITION, LONGEST_NAME};
pub use error::Error;
pub use inode::{FileKind, Inode};
pub use source::{Absent, Packed, Source};
pub use superblock::{Image, MAGIC};
pub use xattr::Attribute;

/// An image and what it is read through.
#[derive(Debug)]
pub struct Reader<'a, S> {
    image: &'a Image,
    source: &'a S,
}

impl<S> Clone for Reader<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Reader<'_, S> {}

/// So many zeros.
fn zeros(len: usize) -> Result<alloc::vec::Vec<u8>, Error> {
    let mut all = alloc::vec::Vec::new();
    all.try_reserve_exact(len).map_err(|_| Error::NoMemory)?;
    all.resize(len, 0);
    Ok(all)
}

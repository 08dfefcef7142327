//! Reads [EROFS](https://docs.kernel.org/filesystems/erofs.html) images: file systems that never change, of Linux and Android.
//!
//! All is pure: functions of an [`Image`], which is a few numbers, and of [`Blocks`], a cache of the device. Where a block is not in the
//! cache the operation answers [`Error::Absent`], which names the block and how many after it are going to be needed. The caller reads them and runs the whole operation
//! again; nothing was changed and nothing was told, so nothing is lost. Nothing in here waits, locks or keeps anything.
//!
//! Every byte of an image is untrusted. Numbers are checked where they are used, searches and allocations have bounds that the format sets (the longest
//! extent is of 12 MiB, the longest physical cluster of 1 MiB), nothing recurs, and arithmetic on what an image says is checked or cannot overflow for a
//! reason that stands beside it.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `blocks` | the device: [`Blocks`], and reading bytes and structures |
//! | `superblock` | [`Image`]: what the image says of itself |
//! | `inode` | [`Inode`] |
//! | `directory` | looking names up and listing them |
//! | `data` | where content is, and reading it |
//! | `compressed` | the same where it is compressed |
//! | `xattr` | extended attributes |
//!
//! # What is read
//!
//! | feature | bit | |
//! | --- | --- | --- |
//! | superblock checksum | compatible 1 | checked |
//! | time of each file, filter of names of extended attributes | compatible 2, 4 | read; not needed |
//! | blocks of 512 to 4096 bytes | | read; larger ones refused, as Linux does on x86 |
//! | compact and extended inodes; flat and inline data | | read |
//! | zeros before compressed data | incompatible 1 | read, and data without |
//! | compression configurations, large physical clusters | incompatible 2 | read; what a configuration says is not needed for LZ4 |
//! | chunks, with holes | incompatible 4 | read |
//! | further devices | incompatible 8 | **refused**, the image as a whole |
//! | a second kind of compressed clusters | incompatible 8 | read |
//! | inline compressed tails | incompatible 0x10 | read |
//! | fragments, deduplication | incompatible 0x20 | read |
//! | prefixes of names of extended attributes | incompatible 0x40 | read |
//! | 48-bit addresses (and extents for indexes), compressed metadata | incompatible 0x80, 0x100 | **refused**, the image as a whole |
//! | LZ4 | | read |
//! | LZMA, DEFLATE, Zstandard | | **refused**, each file that uses it |
//!
//! Zstandard is left out because the decoder that there is for `no_std`, `ruzstd`, contains `unsafe`; DEFLATE because the `mkfs.erofs` that it could be tested with
//! is not in Debian 12.
//!
//! # Why not a crate
//!
//! `erofs-rs` 0.3 reads images without `std` as well. It is not used since it wants Rust 1.91, contains `unsafe` in its mapped images, cannot say where a file's
//! content is without copying it, cannot say which blocks it lacks, and brings `binrw`, `bytes`, `thiserror`, `typed-path` and what they need.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod blocks;
mod compressed;
mod data;
mod directory;
mod error;
mod inode;
mod superblock;
mod xattr;

pub use blocks::{Absent, BLOCK_BYTES, Blocks};
pub use compressed::MOST_DECOMPRESSED;
pub use data::{Mapping, Place};
pub use directory::{DirectoryEntry, FIRST_POSITION, LONGEST_NAME};
pub use error::Error;
pub use inode::{FileKind, Inode};
pub use superblock::Image;

/// An image and the cache of its device: what reads. It is two pointers and a number.
#[derive(Debug)]
pub struct Reader<'a, B> {
    image: &'a Image,
    device: blocks::Device<'a, B>,
}

impl<B> Clone for Reader<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Reader<'_, B> {}

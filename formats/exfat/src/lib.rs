//! Reads and writes [exFAT](https://learn.microsoft.com/en-us/windows/win32/fileio/exfat-specification), the file system of memory cards and USB sticks.
//!
//! All are functions of a [`FileSystem`], which is what its boot sector and its up-case table say, and of a [`Source`], a cache of the device. What is not in the cache ends a function with [`Error::Absent`]: it is run again when that has come.
//!
//! exFAT has few indexes: where a file's clusters are is said by a chain through the FAT, and a name is looked for through all entries of its directory. What was found out on the way the caller keeps, in a [`ChainIndex`] for each file and a [`DirectoryIndex`] for each directory; so long work can be left off and gone on with
//! ([`Source::pause`]).
//!
//! What changes something works on a [`Transaction`], on top of a [`Store`], and all of it happens or nothing. What it has changed the caller keeps and shows to the next ones, and gives to [`Pending`], which says in which order it is written. The caller makes one transaction at a time.
//!
//! Every byte is untrusted. Numbers are checked where they are used, nothing recurs, loops and allocations have bounds.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `source` | [`Source`]: what is read through |
//! | `boot` | [`FileSystem`]: the boot sectors, and what the root directory says of the file system |
//! | `chain` | clusters one after another |
//! | `directory` | entries, looking names up and listing them |
//! | `file` | [`Node`]: a file or directory; content |
//! | `name` | names: UTF-16, and without regard to case |
//! | `time` | times |
//! | `usage` | [`Usage`]: which clusters are free |
//! | `transaction` | [`Transaction`]: changes, and giving clusters out |
//! | `namespace` | changes of directories |
//! | `content` | changes of files |
//! | `pending` | [`Pending`]: in which order changes are written |
//!
//! # What is read
//!
//! | | |
//! | --- | --- |
//! | sectors of 512 to 4096 bytes, clusters up to 32 MiB | read |
//! | checksums of the boot sectors, the up-case table and entries | checked |
//! | TexFAT (two FATs) | **refused** |
//! | clusters of more than 128 blocks, more than 67 million clusters, a scattered bitmap | read, and not written |
//! | a name that is no UTF-16 | told with U+FFFD for what is not, and not found |
//! | directories | read up to 131,072 names |
//! | files | read up to 67 million clusters |
//! | entries of vendors, other benign ones | left out |
//!
//! # Why not a crate
//!
//! `exfat-fs` and `exfat` want `std`, and none says which blocks it lacks.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod boot;
mod chain;
mod content;
mod directory;
mod error;
mod file;
mod name;
mod namespace;
mod pending;
mod source;
mod time;
mod transaction;
mod usage;

pub use boot::{FileSystem, MAGIC_OFFSET, Opening, SIGNATURE};
pub use chain::ChainIndex;
pub use content::{Content, Purpose, Tail};
pub use directory::{DirectoryEntry, DirectoryIndex, FIRST_POSITION, IndexChange};
pub use error::Error;
pub use file::{Mapping, Node, Place};
pub use namespace::{Directory, Renamed};
pub use pending::{Io, Pending};
pub use source::{Absent, Source, Store};
pub use time::Time;
pub use transaction::{Changed, Changes, Transaction};
pub use usage::Usage;

/// So many zeros.
fn zeros(len: usize) -> Result<alloc::vec::Vec<u8>, Error> {
    let mut all = alloc::vec::Vec::new();
    all.try_reserve_exact(len).map_err(|_| Error::NoMemory)?;
    all.resize(len, 0);
    Ok(all)
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

//! Why an operation did not do what was asked.

use core::fmt;

/// Why an operation did not do what was asked. Nothing has changed: the same operation may be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A block is not in the cache: read it and run the operation again.
    Absent {
        /// The first block that is missing.
        block: u64,
        /// How many blocks from there on the operation is going to need; at least 1. Some of them may be there already.
        count: u64,
    },
    /// The image contradicts itself or reaches beyond its end (Linux: `EUCLEAN`); what is wrong with it.
    Corrupt(&'static str),
    /// The image uses something that this crate does not read (Linux: `EOPNOTSUPP`); what it is.
    Unsupported(&'static str),
    /// No such name in the directory (`ENOENT`), no such extended attribute (`ENODATA`).
    NotFound,
    /// The inode is not a directory, not a symbolic link, or has no content to read.
    WrongKind,
    /// The names of the extended attributes are longer than 64 KiB together (`E2BIG`).
    TooLarge,
    /// No memory for what is decompressed.
    NoMemory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Absent { block, count } => write!(f, "{count} blocks from {block} on are not in the cache"),
            Error::Corrupt(what) => write!(f, "corrupt image: {what}"),
            Error::Unsupported(what) => write!(f, "unsupported: {what}"),
            Error::NotFound => f.write_str("not found"),
            Error::WrongKind => f.write_str("not a file of that kind"),
            Error::TooLarge => f.write_str("too many extended attributes"),
            Error::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for Error {}

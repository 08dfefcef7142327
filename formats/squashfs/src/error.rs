//! Why an operation did not do what was asked.

use core::fmt;

/// Why an operation did not do what was asked. Nothing has changed: the same operation may be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Something is not at hand; the [`Source`](crate::Source) knows what. The operation is to be run again.
    Absent,
    /// The image contradicts itself or reaches beyond its end (Linux: `EUCLEAN`); what is wrong with it.
    Corrupt(&'static str),
    /// The image uses something that this crate does not read (Linux: `EOPNOTSUPP`); what it is.
    Unsupported(&'static str),
    /// No such name in the directory (`ENOENT`).
    NotFound,
    /// The inode is not a directory, not a symbolic link, or has no content to read.
    WrongKind,
    /// The extended attributes are longer than 256 KiB together (`E2BIG`).
    TooLarge,
    /// No memory for what is decompressed.
    NoMemory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Absent => f.write_str("something is not at hand"),
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

impl From<decompress::Error> for Error {
    fn from(error: decompress::Error) -> Self {
        match error {
            decompress::Error::Malformed => Error::Corrupt("compressed data"),
            decompress::Error::Unsupported(what) => Error::Unsupported(what),
            decompress::Error::NoMemory => Error::NoMemory,
        }
    }
}

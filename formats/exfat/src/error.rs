//! Why an operation did not do what was asked.

use core::fmt;

/// Why an operation did not do what was asked. It may be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Something is not at hand; the [`Source`](crate::Source) knows what.
    Absent,
    /// The file system contradicts itself (Linux: `EUCLEAN`); what is wrong with it.
    Corrupt(&'static str),
    /// It uses something that this crate does not read (Linux: `EOPNOTSUPP`); what it is.
    Unsupported(&'static str),
    /// No such name in the directory (`ENOENT`).
    NotFound,
    /// It is not a directory, or no file.
    WrongKind,
    /// There is no memory.
    NoMemory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Absent => f.write_str("something is not at hand"),
            Error::Corrupt(what) => write!(f, "corrupt: {what}"),
            Error::Unsupported(what) => write!(f, "unsupported: {what}"),
            Error::NotFound => f.write_str("not found"),
            Error::WrongKind => f.write_str("not a file of that kind"),
            Error::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for Error {}

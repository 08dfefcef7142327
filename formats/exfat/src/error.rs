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
    /// The disk is full (`ENOSPC`).
    NoSpace,
    /// What was changed must be on the disk first: only then is there room.
    CommitFirst,
    /// There is such a name (`EEXIST`).
    Exists,
    /// The directory has names (`ENOTEMPTY`).
    NotEmpty,
    /// A name that cannot be given (`EINVAL`).
    Invalid,
    /// A name of more than 255 units (`ENAMETOOLONG`).
    NameTooLong,
    /// It cannot be written (`EROFS`).
    ReadOnly,
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
            Error::NoSpace => f.write_str("no room"),
            Error::CommitFirst => f.write_str("what was changed must be written first"),
            Error::Exists => f.write_str("the name exists"),
            Error::NotEmpty => f.write_str("the directory is not empty"),
            Error::Invalid => f.write_str("no name that can be given"),
            Error::NameTooLong => f.write_str("the name is too long"),
            Error::ReadOnly => f.write_str("it cannot be written"),
        }
    }
}

impl core::error::Error for Error {}

//! What can go wrong.

use crate::blocks::Absent;

/// Why an operation was not done. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// This block is needed and not at hand: to be called again when it is.
    Absent(u64),
    /// The file system contradicts itself (EUCLEAN); the text says where.
    Corrupt(&'static str),
    /// No block or inode is free (ENOSPC).
    NoSpace,
    /// None is free but what the running transaction of the journal has freed: to be called again after a commit.
    CommitFirst,
    /// No such name, attribute or inode (ENOENT, ENODATA).
    NotFound,
    /// The name or attribute is there already (EEXIST).
    Exists,
    /// The directory is not empty (ENOTEMPTY).
    NotEmpty,
    /// Not a directory (ENOTDIR).
    NotDirectory,
    /// A directory (EISDIR).
    IsDirectory,
    /// The inode can have no more names (EMLINK).
    TooManyLinks,
    /// The name is longer than 255 bytes (ENAMETOOLONG).
    NameTooLong,
    /// The file cannot be that large, or the value does not fit (EFBIG, E2BIG).
    TooLarge,
    /// The file system is mounted read only, or has a feature that does not let it be written (EROFS).
    ReadOnly,
    /// A feature that is not supported (EOPNOTSUPP).
    Unsupported(&'static str),
    /// The arguments make no sense (EINVAL): an empty name, a directory moved into itself.
    Invalid,
}

/// What an operation gives.
pub type Result<T> = core::result::Result<T, Error>;

impl From<Absent> for Error {
    fn from(absent: Absent) -> Self {
        Error::Absent(absent.0)
    }
}

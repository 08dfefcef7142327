//! Files.
//!
//! ```text
//!   descriptor --> OpenFile (open file description: offset, flags) --> File (what it does) --> Inode (what it is)
//!   FileTable        dup, fork and SCM_RIGHTS share it                  steps, poll            metadata, permissions
//! ```

mod context;
mod file;
mod table;

pub use context::FsContext;
pub use file::{Events, File, Lseek, OpenFile, OpenFlags};
pub use table::{FdFlags, FileTable};

//! Files.
//!
//! ```text
//!   descriptor --> OpenFile (open file description: offset, flags) --> File (what it does) --> Inode (what it is)
//!   FileTable        dup, fork and SCM_RIGHTS share it                  steps, poll            metadata, permissions
//!
//!   path --> walk --> Path (an inode seen through a mount) --> Inode --> InodeOps (its file system: tmpfs, procfs)
//! ```

pub mod access;
pub mod acl;
pub mod anonymous;
mod asking;
pub mod attributes;
mod caller;
pub mod cgroup;
mod context;
mod core_text;
pub mod dentry;
mod descriptors;
pub mod devices;
pub mod devpts;
mod executable;
mod extents;
pub mod fasync;
mod fd_install;
mod fd_table;
mod file;
mod file_end;
pub mod file_system;
pub mod filesystems;
mod flush;
pub mod in_flight;
pub mod initramfs;
mod inode;
mod inode_cache;
pub mod inode_file;
pub mod inode_flags;
mod inode_ops;
mod known_names;
pub mod leases;
mod locks;
mod metadata;
mod mount;
pub mod mount_context;
mod mount_detached;
mod mount_flags;
mod mount_remount;
mod mount_table;
mod mount_tree;
mod mount_use;
pub mod mqueue;
mod nameless_remains;
mod names;
pub mod notify;
pub mod open;
pub mod overlay;
mod path;
pub mod proc;
mod propagation;
pub mod read_write;
pub mod remote;
pub mod stored;
pub mod sysfs;
mod table_remains;
pub mod tmpfs;
mod turn;
pub mod types;
mod unseen_contents;
pub mod walk;

pub use asking::{AskerMatters, asker_matters};
pub use caller::VfsCaller;
pub use context::FsContext;
pub use descriptors::Descriptors;
pub use devices::{DeviceNode, Driver, OpenDevice, open_device};
pub use executable::Executable;
pub use extents::{Extent, NextExtent};
pub use fd_install::{ParkedFd, ReservedFd, descriptor_limit, reserve_fd};
pub use fd_table::{FdFlags, FileTable, Leaving, most_descriptors, set_most_descriptors};
pub use file::{Events, FILE_MAX, File, Lseek, OpenFile, OpenFlags, look_for_closed};
pub use file_end::FileEnd;
pub use file_system::{Capacity, FileSystem, Kept, WrittenFirst, next_device};
pub use flush::FlushWanted;
pub use inode::{Dentry, Inode};
pub use inode_cache::InodeCache;
pub use inode_flags::InodeFlags;
pub use inode_ops::{Creation, DirectoryEntry, InodeOps, Jump, Named, Rename};
pub use locks::{FileLocks, LockKind, LockOwner, RecordLock, is_deadlock};
pub use metadata::{DeviceNumber, FileKind, Metadata, Timestamp};
pub use mount::{MayWrite, Mount};
pub use mount_detached::TreeFile;
pub use mount_flags::{FlagChange, MountFlags};
pub use mount_remount::change_flags;
pub use mount_table::{MOUNTS, MountTable};
pub use path::{Location, Path};
pub use propagation::PropagationType;
pub use types::{FileSystemType, Instance};
pub use unseen_contents::{Counted, CountedMessages, UnseenContents, left_sockets};

/// Makes what each core has of its own for open files and mounts. At boot.
pub fn start() {
    OpenFile::start_counting();
    mount_use::start();
}

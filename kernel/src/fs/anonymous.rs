//! Where open files live that have no place in the tree: pipes, sockets, event descriptors, memory files.
//!
//! They are inodes of one internal file system, seen through a mount that is attached nowhere. Those that need no inode of
//! their own share one.

use alloc::boxed::Box;
use alloc::vec::Vec;

use refs::{SpinLock, StrongRc};

use super::{Dentry, FileKind, FileSystem, Inode, InodeOps, Location, Metadata, Mount, MountFlags};
use crate::error::Result;
use crate::heap::{object_bytes, slot_bytes};

/// What an inode without a place in the tree is, by the name that `/proc/PID/fd` shows.
pub struct Nameless {
    /// In front of `:[number]`, such as `pipe`.
    pub prefix: &'static str,
}

impl InodeOps for Nameless {
    fn anonymous_name(&self, this: &Inode) -> Option<Vec<u8>> {
        Some(alloc::format!("{}:[{}]", self.prefix, this.number).into_bytes())
    }
}

/// So many bytes of the heap an inode without a place in the tree takes at least.
pub const INODE_BYTES: usize = object_bytes::<Inode>() + slot_bytes(size_of::<Nameless>());

struct Shared;

impl InodeOps for Shared {
    fn anonymous_name(&self, _this: &Inode) -> Option<Vec<u8>> {
        Some(b"anon_inode:[file]".to_vec())
    }
}

/// The place of the shared inode, made when it is first needed.
static PLACE: SpinLock<Option<Location>> = SpinLock::new(None);

const ANON_INODE_FS_MAGIC: u32 = 0x0904_1934;

fn with_place<R>(f: impl FnOnce(&Location) -> R + Send) -> R {
    PLACE.with(|place| {
        f(place.get_or_insert_with(|| {
            let file_system = FileSystem::new("anon_inodefs", ANON_INODE_FS_MAGIC, Vec::new());
            let number = file_system.with(FileSystem::next_inode);
            let mut metadata = Metadata::new(FileKind::Regular, 0o600);
            // Linux tells no kind at all for it.
            metadata.mode = 0o600;
            let inode =
                StrongRc::new(Inode::new(file_system.share(), number, metadata, Dentry::default(), Box::new(Shared)));
            let mount = StrongRc::new(Mount::new(file_system, inode.share(), Vec::new(), MountFlags::of_mount(0)));
            Location { mount: mount.into(), inode }
        }))
    })
}

/// The place of open files that need no inode of their own.
pub fn shared_location() -> Location {
    with_place(Location::share)
}

/// The place of a new inode without a place in the tree; `make` says what it does.
///
/// # Errors
/// Those of `make`.
pub fn new_location(
    metadata: Metadata,
    make: impl FnOnce(&StrongRc<FileSystem>) -> Result<Box<dyn InodeOps>> + Send,
) -> Result<Location> {
    with_place(|place| {
        let file_system = place.mount.with(|mount| mount.file_system.share());
        let ops = make(&file_system)?;
        let number = file_system.with(FileSystem::next_inode);
        let inode = StrongRc::new(Inode::new(file_system, number, metadata, Dentry::default(), ops));
        Ok(Location { mount: place.mount.share(), inode })
    })
}

//! tmpfs: files in memory. The root file system, `/tmp`, `/dev` and shared anonymous memory are instances of it.

mod directory;
mod file;
mod options;
mod recent;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::mm::frame_count;
use linux_raw_sys::general::TMPFS_MAGIC;
use refs::StrongRc;

use super::access::Subject;
use super::anonymous::new_location;
use super::{Dentry, FileKind, FileSystem, Inode, Location, Metadata, OpenFile, OpenFlags, VfsCaller};
use crate::error::{Errno, Result};
use crate::step::Step;

pub use directory::{Directory, symlink_target};
pub use file::RegularFile;
use options::Options;
pub use options::check as check_option;
pub use recent::start;

/// A new instance and its root directory.
///
/// # Errors
/// EINVAL for an option that is not understood.
pub fn new(name: &'static str, options: &[u8]) -> Result<(StrongRc<FileSystem>, StrongRc<Inode>)> {
    let chosen = Options::parse(options)?;
    let file_system = FileSystem::new(name, TMPFS_MAGIC, options::shown(&[], options));
    let half = (frame_count() / 2).max(1024) as u64;
    file_system.with(|file_system| {
        file_system.capacity.pages.store(chosen.pages.unwrap_or(half), Ordering::Relaxed);
        file_system.capacity.inodes.store(chosen.inodes.unwrap_or(half), Ordering::Relaxed);
    });
    let number = file_system.with(FileSystem::next_inode);
    let metadata = Metadata::new(FileKind::Directory, chosen.mode).owned_by(chosen.uid, chosen.gid);
    let ops = Box::new(Directory::new(&file_system)?);
    let root = StrongRc::new(Inode::new(file_system.share(), number, metadata, Dentry::default(), ops));
    Ok((file_system, root))
}

/// Changes how much an instance may hold.
///
/// # Errors
/// EINVAL for an option that is not understood, and where it holds more already.
pub fn change_options(file_system: &FileSystem, options: &[u8], cx: &Cx) -> Result<()> {
    let chosen = Options::parse(options)?;
    let capacity = &file_system.capacity;
    let is_too_small = |chosen: Option<u64>, used: &AtomicU64| {
        chosen.is_some_and(|chosen| chosen != 0 && chosen < used.load(Ordering::Relaxed))
    };
    if is_too_small(chosen.pages, &capacity.used_pages) || is_too_small(chosen.inodes, &capacity.used_inodes) {
        return Err(Errno::EINVAL);
    }
    for (chosen, limit) in [(chosen.pages, &capacity.pages), (chosen.inodes, &capacity.inodes)] {
        if let Some(chosen) = chosen {
            limit.store(chosen, Ordering::Relaxed);
        }
    }
    let mut shown = file_system.options.lock(cx);
    let new = options::shown(&shown, options);
    *shown = new;
    Ok(())
}

/// A new memory file, open for reading and writing: memfd_create(2).
///
/// # Errors
/// ENOSPC.
pub fn memory_file(name: &[u8], permissions: u32, seals: u32, me: &impl VfsCaller, cx: &Cx) -> Step<OpenFile> {
    let subject = Subject::of(me, cx)?;
    let shown_as = [b"/memfd:", name, b" (deleted)"].concat();
    let location = nameless_file(shown_as, permissions, subject.uid.number(), subject.gid.number(), seals)?;
    let may_write = location.mount.get(cx).check_writable(cx)?;
    location.begin_writing(may_write, cx)?;
    Ok(OpenFile::stored(OpenFlags::READ_WRITE, location))
}

/// A file of memory with no name in any directory. `/proc` shows it as `shown_as`; `seals` are the F_SEAL_* that it
/// has from the start.
///
/// # Errors
/// ENOSPC.
fn nameless_file(shown_as: Vec<u8>, permissions: u32, uid: u32, gid: u32, seals: u32) -> Result<Location> {
    let metadata = Metadata::new(FileKind::Regular, permissions).owned_by(uid, gid);
    new_location(metadata, |file_system| {
        Ok(Box::new(RegularFile::nameless(directory::Ticket::take(file_system)?, shown_as, seals)))
    })
}

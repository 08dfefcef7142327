//! tmpfs: files in memory. The root file system, `/tmp`, `/dev` and shared anonymous memory are instances of it.

mod directory;
mod file;
mod recent;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{PAGE_SIZE, frame_count};
use linux_raw_sys::general::TMPFS_MAGIC;
use refs::StrongRc;

use super::access::Subject;
use super::anonymous::new_location;
use super::{Dentry, FileKind, FileSystem, Inode, Location, Metadata, OpenFile, OpenFlags, VfsCaller};
use crate::error::{Errno, Result};
use crate::step::Step;

pub use directory::{Directory, symlink_target};
pub use file::RegularFile;
pub use recent::start;

/// A new instance and its root directory. Options: `size` (bytes, with `k`, `m`, `g` or `%`), `nr_blocks`, `nr_inodes`, `mode`, `uid`,
/// `gid`; half of memory and as many inodes as pages by default.
///
/// # Errors
/// EINVAL for an option that is not understood.
pub fn new(name: &'static str, options: &[u8]) -> Result<(StrongRc<FileSystem>, StrongRc<Inode>)> {
    let half = (frame_count() / 2).max(1024) as u64;
    let (mut pages, mut inodes) = (half, half);
    let (mut mode, mut uid, mut gid) = (0o1777, 0, 0);
    for option in options.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
        let text = core::str::from_utf8(option).map_err(|_| Errno::EINVAL)?;
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let number = || value.parse::<u32>().map_err(|_| Errno::EINVAL);
        match key {
            "size" => pages = size_of_option(value)?.div_ceil(PAGE_SIZE as u64),
            "nr_blocks" => pages = size_of_option(value)?,
            "nr_inodes" => inodes = size_of_option(value)?,
            "mode" => mode = u32::from_str_radix(value, 8).map_err(|_| Errno::EINVAL)? & 0o7777,
            "uid" => uid = number()?,
            "gid" => gid = number()?,
            "huge" | "noswap" | "mpol" | "inode32" | "inode64" | "defaults" => {}
            _ => return Err(Errno::EINVAL),
        }
    }
    let mut shown = Vec::new();
    if !options.is_empty() {
        shown.push(b',');
        shown.extend_from_slice(options);
    }
    let file_system = FileSystem::new(name, TMPFS_MAGIC, shown);
    file_system.with(|file_system| {
        file_system.capacity.pages.store(pages, Ordering::Relaxed);
        file_system.capacity.inodes.store(inodes, Ordering::Relaxed);
    });
    let number = file_system.with(FileSystem::next_inode);
    let metadata = Metadata::new(FileKind::Directory, mode).owned_by(uid, gid);
    let ops = Box::new(Directory::new(&file_system)?);
    let root = StrongRc::new(Inode::new(file_system.share(), number, metadata, Dentry::default(), ops));
    Ok((file_system, root))
}

/// A number with a unit, or a percentage of memory; in bytes.
fn size_of_option(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| Errno::EINVAL)?;
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "%" => (frame_count() * PAGE_SIZE / 100) as u64,
        _ => return Err(Errno::EINVAL),
    };
    number.checked_mul(factor).ok_or(Errno::EINVAL)
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

//! The initial ram disk: cpio archives, plain or compressed by gzip, unpacked into the root file system.
//!
//! [`cpio`] and [`gzip`] only understand bytes; what they say is put into a tmpfs here, by the same operations that system calls use.
//! An archive comes from outside: whatever is wrong with it is reported, and what came before stays.

pub mod cpio;
pub mod gzip;

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use frame::Cx;
use frame::mm::{PAGE_SIZE, frame_count};
use refs::{StrongRc, TempRc, WeakRc};

use super::tmpfs::{Directory, RegularFile, symlink_target};
use super::{Creation, DeviceNumber, FileKind, Inode, Timestamp};
use crate::error::{Errno, Result};
use cpio::{Entry, Item, Items, Malformed};

/// Why an archive could not be unpacked completely.
#[derive(Debug)]
pub enum Failure {
    /// The archive is broken.
    Malformed(Malformed),
    /// Its compression is.
    Compression(&'static str),
    /// A file could not be made.
    File(Vec<u8>, Errno),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Malformed(malformed) => write!(f, "{malformed}"),
            Failure::Compression(what) => f.write_str(what),
            Failure::File(name, error) => write!(f, "{}: {error:?}", name.escape_ascii()),
        }
    }
}

/// Unpacks archives below `root`, the root directory of a tmpfs.
///
/// # Errors
/// What is wrong; what came before it is there.
pub fn unpack(root: &StrongRc<Inode>, bytes: &[u8], cx: &Cx) -> core::result::Result<(), Failure> {
    let mut rest = bytes;
    loop {
        let mut items = Items::new(rest);
        unpack_plain(root, &mut items, cx)?;
        rest = rest.get(items.position()..).unwrap_or_default();
        if !gzip::is_gzip(rest) {
            return Ok(());
        }
        let (content, len) = gzip::unpack(rest, frame_count() * PAGE_SIZE / 2).map_err(Failure::Compression)?;
        unpack_plain(root, &mut Items::new(&content), cx)?;
        rest = rest.get(len..).unwrap_or_default();
    }
}

fn unpack_plain(root: &StrongRc<Inode>, items: &mut Items<'_>, cx: &Cx) -> core::result::Result<(), Failure> {
    let mut links = BTreeMap::new();
    for item in items {
        match item.map_err(Failure::Malformed)? {
            Item::End => links.clear(),
            Item::File(entry) => {
                make(root, &entry, &mut links, cx).map_err(|error| Failure::File(entry.name.to_vec(), error))?;
            }
        }
    }
    Ok(())
}

type Links = BTreeMap<(u32, u32, u32), WeakRc<Inode>>;

/// Makes one file of an archive.
fn make(root: &StrongRc<Inode>, entry: &Entry<'_>, links: &mut Links, cx: &Cx) -> Result<()> {
    let kind = FileKind::of_mode(entry.mode).ok_or(Errno::EINVAL)?;
    let root = root.get(cx);
    let Some((directory, name)) = find_parent(&root, entry.name, cx)? else {
        // The root itself.
        set_metadata(&root, entry, cx);
        return Ok(());
    };
    if let Some(existing) = names_of(&directory)?.find(&name, cx) {
        if existing.kind == FileKind::Directory {
            if kind != FileKind::Directory {
                return Err(Errno::EISDIR);
            }
            set_metadata(&existing, entry, cx);
            return Ok(());
        }
        directory.ops.unlink(&directory, &name, cx)?;
    }
    let is_linked = entry.links > 1 && kind != FileKind::Directory;
    let first = links.get(&entry.identity).and_then(|inode| inode.upgrade(cx).ok()).filter(|_| is_linked);
    let inode = match first {
        Some(inode) => {
            directory.ops.link(&directory, &name, &inode, cx)?;
            inode
        }
        None => {
            let what = Creation {
                kind,
                permissions: entry.mode & 0o7777,
                uid: entry.uid,
                gid: entry.gid,
                device: entry.device,
                target: entry.data,
            };
            if kind == FileKind::Symlink && (entry.data.is_empty() || entry.data.contains(&0)) {
                return Err(Errno::EINVAL);
            }
            let inode = directory.ops.create(&directory, &name, &what, cx)?;
            if is_linked {
                links.insert(entry.identity, inode.downgrade());
            }
            inode
        }
    };
    // Of a file with several names, one entry brings the content.
    if let Some(file) = inode.ops_as::<RegularFile>()
        && !entry.data.is_empty()
        && inode.metadata(cx).size == 0
    {
        file.fill(entry.data, cx)?;
    }
    set_metadata(&inode, entry, cx);
    Ok(())
}

fn set_metadata(inode: &Inode, entry: &Entry<'_>, cx: &Cx) {
    inode.change(cx, |metadata| {
        metadata.mode = inode.kind.mode_bits() | (entry.mode & 0o7777);
        (metadata.uid, metadata.gid) = (entry.uid, entry.gid);
        metadata.modified = Timestamp { seconds: entry.modified.into(), nanoseconds: 0 };
    });
}

fn names_of<'a>(inode: &'a TempRc<'_, Inode>) -> Result<&'a Directory> {
    inode.ops_as::<Directory>().ok_or(Errno::ENOTDIR)
}

/// A directory, and a name in it.
type Destination<'cx, 'p> = (TempRc<'cx, Inode>, Cow<'p, [u8]>);

/// The directory and the last name of a path; `None` for the root. Directories that are missing on the way are made; symbolic links are
/// followed as if the archive's root were the root.
fn find_parent<'cx, 'p>(
    root: &TempRc<'cx, Inode>,
    path: &'p [u8],
    cx: &'cx Cx,
) -> Result<Option<Destination<'cx, 'p>>> {
    let mut at = root.clone();
    let mut names: VecDeque<Cow<'p, [u8]>> = parts(path).map(Cow::Borrowed).collect();
    let Some(last) = names.pop_back() else {
        return Ok(None);
    };
    if *last == *b".." {
        return Err(Errno::EINVAL);
    }
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        if *name == *b".." {
            at = at.parent(cx).unwrap_or(root.clone());
            continue;
        }
        let next = match names_of(&at)?.find(&name, cx) {
            Some(next) => next,
            None => make_directory(&at, &name, 0o755, cx)?,
        };
        match symlink_target(&next) {
            None => at = next,
            Some(target) => {
                links += 1;
                if links > 40 {
                    return Err(Errno::ELOOP);
                }
                if target.first() == Some(&b'/') {
                    at = root.clone();
                }
                for part in parts(target).rev() {
                    names.push_front(Cow::Owned(part.to_vec()));
                }
            }
        }
    }
    Ok(Some((at, last)))
}

fn parts(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// Makes a directory in one of a tmpfs.
///
/// # Errors
/// ENOSPC, EEXIST.
pub fn make_directory<'cx>(
    directory: &TempRc<'cx, Inode>,
    name: &[u8],
    permissions: u32,
    cx: &'cx Cx,
) -> Result<TempRc<'cx, Inode>> {
    let what = Creation {
        kind: FileKind::Directory,
        permissions,
        uid: 0,
        gid: 0,
        device: DeviceNumber::default(),
        target: &[],
    };
    directory.ops.create(directory, name, &what, cx)
}

//! The initial ram disk: cpio archives, plain or compressed by gzip, unpacked into the root file system.
//!
//! [`cpio`] and [`gzip`] only understand bytes; what they say is put into a tmpfs here, by the same operations that system calls use.
//! An archive comes from outside: whatever is wrong with it is reported, and what came before stays. Its memory is given back as it is
//! unpacked, so that an archive and its files need little more than the larger of them.

pub mod cpio;
pub mod gzip;

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use frame::Cx;
use frame::mm::BootModule;
use refs::{StrongRc, TempRc, WeakRc};

use super::tmpfs::{Directory, RegularFile, symlink_target};
use super::{Creation, DeviceNumber, FileKind, Inode, Named, Timestamp};
use crate::error::{Errno, Result};
use crate::step::at_once;
use cpio::{Attributes, Entry, Item, Malformed, Parsed, Parser};
use gzip::Member;

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

impl Failure {
    /// Whether there was not room for a file.
    pub fn lacks_memory(&self) -> bool {
        matches!(self, Failure::File(_, Errno::ENOMEM | Errno::ENOSPC))
    }
}

/// Bytes that are read from front to back; what was passed may be gone.
pub trait Source {
    /// The next bytes: at least `len` of them, or all that are left.
    fn fill(&mut self, len: usize) -> &[u8];
    /// Passes so many bytes, or all there are.
    fn advance(&mut self, len: usize);
}

impl Source for BootModule {
    fn fill(&mut self, _len: usize) -> &[u8] {
        self.rest()
    }

    fn advance(&mut self, len: usize) {
        self.advance(len);
    }
}

impl Source for &[u8] {
    fn fill(&mut self, _len: usize) -> &[u8] {
        self
    }

    fn advance(&mut self, len: usize) {
        *self = self.get(len..).unwrap_or_default();
    }
}

/// Unpacks archives below `root`, the root directory of a tmpfs.
///
/// # Errors
/// What is wrong; what came before it is there.
pub fn unpack(root: &StrongRc<Inode>, source: &mut impl Source, cx: &Cx) -> core::result::Result<(), Failure> {
    loop {
        unpack_plain(root, source, cx)?;
        if !gzip::is_gzip(source.fill(3)) {
            return Ok(());
        }
        let mut member = Member::new(source).map_err(Failure::Compression)?;
        match unpack_plain(root, &mut member, cx) {
            Err(failure @ Failure::File(..)) => return Err(failure),
            // An archive whose compression is broken ends somewhere.
            outcome => {
                member.finish().map_err(Failure::Compression)?;
                outcome?;
            }
        }
    }
}

/// Unpacks archives up to the end, or where a compressed one follows.
fn unpack_plain(root: &StrongRc<Inode>, source: &mut impl Source, cx: &Cx) -> core::result::Result<(), Failure> {
    let mut links = BTreeMap::new();
    let mut parser = Parser::default();
    while let Some(Parsed { item, header, content, padding }) = parser.next(source).map_err(Failure::Malformed)? {
        let Item::File(entry) = item else {
            links.clear();
            source.advance(header + content + padding);
            continue;
        };
        let (name, attributes, sum) = (entry.name.to_vec(), entry.attributes, entry.sum);
        let failed = |error| Failure::File(name, error);
        let inode = match make(root, &entry, &mut links, cx) {
            Ok(inode) => inode,
            Err(error) => return Err(failed(error)),
        };
        source.advance(header);
        let filled = fill(inode.as_ref(), source, content, sum.is_some(), cx).map_err(failed)?;
        let malformed = match sum {
            _ if filled.len < content => Some("an archive ends within a file"),
            Some(sum) if filled.sum != sum => Some("a file does not have its checksum"),
            _ => None,
        };
        if let Some(what) = malformed {
            return Err(Failure::Malformed(parser.malformed()(what)));
        }
        if let Some(inode) = inode {
            set_metadata(&inode, &attributes, cx);
        }
        source.advance(padding);
    }
    Ok(())
}

/// What went into a file.
#[derive(Default)]
struct Filled {
    /// How many bytes.
    len: usize,
    /// What they add up to, if that is wanted.
    sum: u32,
}

/// Moves the next `len` bytes into a file, or as many as there are. (Those of links, devices and directories, and all but the first of a file with several
/// names, go nowhere.)
fn fill(
    inode: Option<&TempRc<'_, Inode>>,
    source: &mut impl Source,
    len: usize,
    adds_up: bool,
    cx: &Cx,
) -> Result<Filled> {
    /// So much is copied before the archive's memory is given back.
    const PIECE: usize = 1 << 20;
    let file = inode.filter(|inode| inode.metadata(cx).size == 0).and_then(|inode| inode.ops_as::<RegularFile>());
    let mut filled = Filled::default();
    while filled.len < len {
        let bytes = source.fill(1);
        let piece = bytes.get(..PIECE.min(len - filled.len)).unwrap_or(bytes);
        if piece.is_empty() {
            break;
        }
        if let Some(file) = file {
            file.fill(piece, cx)?;
        }
        let count = piece.len();
        if adds_up {
            filled.sum = piece.iter().fold(filled.sum, |sum, &byte| sum.wrapping_add(byte.into()));
        }
        filled.len += count;
        source.advance(count);
    }
    Ok(filled)
}

type Links = BTreeMap<(u32, u32, u32), WeakRc<Inode>>;

/// Makes one file of an archive, without content; `None` for a directory that was there.
fn make<'cx>(
    root: &StrongRc<Inode>,
    entry: &Entry<'_>,
    links: &mut Links,
    cx: &'cx Cx,
) -> Result<Option<TempRc<'cx, Inode>>> {
    let attributes = &entry.attributes;
    let kind = FileKind::of_mode(attributes.mode).ok_or(Errno::EINVAL)?;
    let root = root.get(cx);
    let Some((directory, name)) = find_parent(&root, entry.name, cx)? else {
        // The root itself.
        set_metadata(&root, attributes, cx);
        return Ok(None);
    };
    if let Some(existing) = names_of(&directory)?.find(&name, cx) {
        if existing.kind == FileKind::Directory {
            if kind != FileKind::Directory {
                return Err(Errno::EISDIR);
            }
            set_metadata(&existing, attributes, cx);
            return Ok(None);
        }
        at_once(
            directory.ops.unlink(&Named { me: None, directory: &directory, name: &name, inode: Some(&existing) }, cx),
        )?;
    }
    let is_linked = entry.links > 1 && kind != FileKind::Directory;
    let first = links.get(&entry.identity).and_then(|inode| inode.upgrade(cx).ok()).filter(|_| is_linked);
    let inode = match first {
        Some(inode) => {
            at_once(directory.ops.link(&directory, &name, &inode, cx))?;
            inode
        }
        None => {
            let what = Creation {
                kind,
                permissions: attributes.mode & 0o7777,
                uid: attributes.uid,
                gid: attributes.gid,
                device: entry.device,
                target: entry.target,
                attributes: &[],
            };
            if kind == FileKind::Symlink && (entry.target.is_empty() || entry.target.contains(&0)) {
                return Err(Errno::EINVAL);
            }
            let inode = at_once(directory.ops.create(&directory, &name, &what, cx))?;
            if is_linked {
                links.insert(entry.identity, inode.downgrade());
            }
            inode
        }
    };
    Ok(Some(inode))
}

fn set_metadata(inode: &Inode, attributes: &Attributes, cx: &Cx) {
    inode.change(cx, |metadata| {
        metadata.mode = inode.kind.mode_bits() | (attributes.mode & 0o7777);
        (metadata.uid, metadata.gid) = (attributes.uid, attributes.gid);
        metadata.modified = Timestamp { seconds: attributes.modified.into(), nanoseconds: 0 };
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
        attributes: &[],
    };
    at_once(directory.ops.create(directory, name, &what, cx))
}

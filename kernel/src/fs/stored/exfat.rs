//! exFAT, read-only.
//!
//! It has no owners and no permissions: options of mount(2) say whose files are, and what may be done with them (`uid`, `gid`, `umask`, `fmask`, `dmask`; root's and 022 where nothing is said). A file's number is the place of its entries on the disk.
//!
//! Chains of clusters and the names of directories are gone through in pieces, in [turns](super::turns). What was found out is kept with the file.

use alloc::vec::Vec;

use exfat::{
    Absent, ChainIndex, DirectoryIndex, Error, FileSystem, MAGIC_OFFSET, Node, Place as Where, SIGNATURE, Source, Time,
};
use frame::mm::PAGE_SIZE;
use refs::StrongRc;

use super::format::{Place, Said};
use super::turns::{FoundOut, Turn, Turns};
use super::{Format, Listed, Problem, Space, View};
use crate::block::SECTOR;
use crate::error::Errno;
use crate::fs::{FileKind, Metadata, Timestamp};

/// A file system.
pub struct Exfat {
    file_system: FileSystem,
    options: Options,
    turns: StrongRc<Turns>,
}

/// A file or directory, and what was found out of it.
pub struct File {
    node: Node,
    chain: FoundOut<ChainIndex>,
    names: FoundOut<DirectoryIndex>,
}

/// Whose all files are, and what may not be done with them.
struct Options {
    uid: u32,
    gid: u32,
    file_mask: u32,
    directory_mask: u32,
}

/// Where nothing else is said.
const MASK: u32 = 0o022;

/// An option with a number: its name, and the number.
fn number(option: &[u8]) -> Option<(&str, u32)> {
    let (name, value) = core::str::from_utf8(option).ok()?.split_once('=')?;
    let radix = if matches!(name, "uid" | "gid") { 10 } else { 8 };
    let value = u32::from_str_radix(value, radix).ok()?;
    (radix == 10 || value <= 0o777).then_some((name, value))
}

impl Options {
    fn read(options: &[u8]) -> Self {
        let mut all = Options { uid: 0, gid: 0, file_mask: MASK, directory_mask: MASK };
        for (name, value) in options.split(|&byte| byte == b',').filter_map(number) {
            match name {
                "uid" => all.uid = value,
                "gid" => all.gid = value,
                "fmask" => all.file_mask = value,
                "dmask" => all.directory_mask = value,
                "umask" => (all.file_mask, all.directory_mask) = (value, value),
                _ => {}
            }
        }
        all
    }
}

/// What one call of a function of the format reads through.
struct Through<'a, 'v> {
    view: &'a View<'v>,
    turns: &'a StrongRc<Turns>,
    turn: Turn,
}

impl Source for Through<'_, '_> {
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent> {
        // What is wrong with it the view knows; to the format it is absent.
        self.view.copy(address, to).map_err(|_| Absent)
    }

    fn pause(&self) -> Result<(), Absent> {
        if self.turn.is_over(self.turns, self.view) { Err(Absent) } else { Ok(()) }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Absent => Problem::Absent,
            Error::Corrupt(what) => Problem::Corrupt(what),
            Error::Unsupported(what) => Problem::Unsupported(what),
            Error::NotFound => Problem::Errno(Errno::ENOENT),
            Error::WrongKind => Problem::Errno(Errno::EINVAL),
            Error::NoMemory => Problem::Errno(Errno::ENOMEM),
        }
    }
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

fn kind(is_directory: bool) -> FileKind {
    if is_directory { FileKind::Directory } else { FileKind::Regular }
}

impl Exfat {
    fn through<'a, 'v>(&'a self, view: &'a View<'v>) -> Through<'a, 'v> {
        Through { view, turns: &self.turns, turn: Turn::default() }
    }

    /// Runs a function of the format's that needs to know where a file's clusters are.
    fn with_chain<T>(
        &self,
        file: &File,
        view: &View<'_>,
        read: impl FnOnce(&Through<'_, '_>, &mut ChainIndex) -> Result<T, Error>,
    ) -> Said<T> {
        file.chain.with(&self.turns, view, |index| read(&self.through(view), index))
    }

    /// The same for what needs to know the names of a directory.
    fn with_names<T>(
        &self,
        directory: &File,
        view: &View<'_>,
        read: impl FnOnce(&Through<'_, '_>, &mut DirectoryIndex) -> Result<T, Error>,
    ) -> Said<T> {
        directory.names.with(&self.turns, view, |index| read(&self.through(view), index))
    }
}

impl Format for Exfat {
    type Node = File;

    const CAN_BE_WRITTEN: bool = false;
    const HAS_FLAGS: bool = false;
    const MAGIC: u32 = 0x2011_bab0;

    fn has_option(option: &[u8]) -> bool {
        match number(option) {
            Some((name, _)) => matches!(name, "uid" | "gid" | "umask" | "fmask" | "dmask"),
            // What is so anyway.
            None => matches!(option, b"iocharset=utf8" | b"utf8"),
        }
    }

    fn block_bytes(&self) -> u32 {
        self.file_system.cluster_bytes()
    }

    fn open(view: &View<'_>, bytes: u64, _to_write: bool, options: &[u8]) -> Said<Self> {
        let mut signature = [0; SIGNATURE.len()];
        if bytes < PAGE_SIZE as u64 {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        view.copy(MAGIC_OFFSET, &mut signature)?;
        if signature != *SIGNATURE {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        let turns = Turns::new();
        let file_system = FileSystem::open(&Through { view, turns: &turns, turn: Turn::default() }, bytes)?;
        Ok(Exfat { file_system, options: Options::read(options), turns })
    }

    fn space(&self, view: &View<'_>) -> Said<Space> {
        let used = self.file_system.used_clusters(&self.through(view))?;
        let pages = |clusters: u32| {
            (u64::from(clusters) * u64::from(self.file_system.cluster_bytes())).div_ceil(PAGE_SIZE as u64)
        };
        Ok(Space { pages: pages(self.file_system.clusters()), used_pages: pages(used), ..Space::default() })
    }

    fn root(&self) -> u64 {
        self.file_system.root()
    }

    fn node(&self, number: u64, view: &View<'_>) -> Said<(File, Metadata)> {
        let node = self.file_system.node(&self.through(view), number)?;
        let mask = if node.is_directory { self.options.directory_mask } else { self.options.file_mask };
        let all = if node.is_read_only { 0o555 } else { 0o777 };
        let mut metadata = Metadata::new(kind(node.is_directory), all & !mask);
        (metadata.uid, metadata.gid) = (self.options.uid, self.options.gid);
        // Of directories nobody counts how many they are in: one name says that nothing follows from it.
        metadata.links = 1;
        metadata.size = node.size;
        metadata.blocks = node.size.next_multiple_of(self.file_system.cluster_bytes().into()) / SECTOR;
        metadata.accessed = timestamp(node.accessed);
        (metadata.modified, metadata.changed) = (timestamp(node.modified), timestamp(node.modified));
        metadata.born = timestamp(node.created);
        Ok((File { node, chain: FoundOut::default(), names: FoundOut::default() }, metadata))
    }

    fn attributes(&self, _file: &File, _view: &View<'_>) -> Said<Vec<(Vec<u8>, Vec<u8>)>> {
        Ok(Vec::new())
    }

    fn look_up(&self, directory: &File, name: &[u8], view: &View<'_>) -> Said<u64> {
        self.with_names(directory, view, |through, index| {
            self.file_system.look_up(through, &directory.node, index, name)
        })
    }

    fn is_same_name(&self, one: &[u8], other: &[u8]) -> bool {
        self.file_system.is_same_name(one, other)
    }

    fn list(
        &self,
        directory: &File,
        from: u64,
        view: &View<'_>,
        each: &mut dyn FnMut(Listed<'_>) -> Said<bool>,
    ) -> Said<()> {
        let mut end = Ok(true);
        self.with_names(directory, view, |through, index| {
            self.file_system.list(through, &directory.node, index, from, |entry| {
                let kind = Some(kind(entry.is_directory));
                end = each(Listed { name: entry.name.as_bytes(), number: entry.number, kind, next: entry.next });
                end == Ok(true)
            })
        })?;
        end.map(|_| ())
    }

    fn read_link(&self, _file: &File, _view: &View<'_>) -> Said<Vec<u8>> {
        Err(Problem::Errno(Errno::EINVAL))
    }

    fn place(&self, file: &File, page: u32, view: &View<'_>) -> Said<Place> {
        let page_bytes = PAGE_SIZE as u64;
        let offset = u64::from(page) * page_bytes;
        let mapping =
            self.with_chain(file, view, |through, index| self.file_system.map(through, &file.node, index, offset))?;
        // The last page may end with the file.
        let is_last = offset + mapping.bytes == file.node.size && mapping.bytes < page_bytes;
        let pages = if is_last { 1 } else { mapping.bytes / page_bytes };
        Ok(match mapping.place {
            _ if pages == 0 => Place::Made,
            Where::Hole => Place::Hole,
            Where::Device(offset) => Place::Device { offset, pages: pages.min(u64::from(u32::MAX)) as u32 },
        })
    }

    fn fill(&self, file: &File, offset: u64, to: &mut [u8], view: &View<'_>) -> Said<usize> {
        self.with_chain(file, view, |through, index| self.file_system.read(through, &file.node, index, offset, to))
    }
}

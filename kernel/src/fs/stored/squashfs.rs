//! squashfs: read-only images in which nearly everything is compressed.
//!
//! *Decompressing.* A volume keeps what was decompressed last ([`Unpacking`]), so that a block of 128 KiB is not decompressed for each of its 32 pages, nor metadata for each inode in it. Decompressing is done by whoever needs a block, in pieces, in [turns](super::turns). Whoever needs the same block meanwhile goes on with it, or waits where another core is at it.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use frame::mm::PAGE_SIZE;
use refs::{SpinLock, StrongRc};
use squashfs::{
    Absent, BlockIndex, Cache, Claim, Error, FileKind as Kind, Image, Inode, MAGIC, Packed, Place as Where, Progress,
    Source,
};

use super::format::{Place, Said};
use super::turns::{FoundOut, Turn, Turns};
use super::{Format, Listed, Problem, Space, View};
use crate::block::SECTOR;
use crate::error::Errno;
use crate::fs::{DeviceNumber, FileKind, Metadata, Timestamp};

/// An image.
pub struct Squash {
    image: Image,
    unpacking: Unpacking,
}

/// A file, and where its blocks are as far as that is known.
pub struct File {
    inode: Inode,
    index: FoundOut<BlockIndex>,
}

/// What was decompressed, or is being.
struct Unpacking {
    cache: SpinLock<Cache>,
    turns: StrongRc<Turns>,
}

/// What one call of a function of the format reads through.
struct Through<'a, 'v> {
    view: &'a View<'v>,
    /// `None`: nothing can be decompressed yet.
    unpacking: Option<&'a Unpacking>,
    turn: Turn,
}

impl Source for Through<'_, '_> {
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent> {
        // What is wrong with it the view knows; to the format it is absent.
        self.view.copy(address, to).map_err(|_| Absent)
    }

    fn unpack(&self, packed: Packed, from: usize, to: &mut [u8]) -> Result<usize, Error> {
        let unpacking = self.unpacking.ok_or(Error::Corrupt("a superblock that is compressed"))?;
        loop {
            let mut cache = unpacking.cache.lock(self.view.cx());
            let mut work = match cache.claim(packed)? {
                Claim::Ready(block) => return Ok(block.copy(from, to)),
                Claim::Work(work) => work,
                Claim::Busy => {
                    unpacking.turns.get(self.view.cx()).wait_while_busy(self.view);
                    return Err(Error::Absent);
                }
            };
            drop(cache);
            let outcome = work.step(|address, to| self.copy(address, to));
            unpacking.cache.lock(self.view.cx()).put_back(work, outcome);
            unpacking.turns.get(self.view.cx()).wake_busy();
            if outcome? == Progress::More {
                self.pause()?;
            }
        }
    }

    fn pause(&self) -> Result<(), Absent> {
        match self.unpacking {
            Some(unpacking) if self.turn.is_over(&unpacking.turns, self.view) => Err(Absent),
            _ => Ok(()),
        }
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
            Error::TooLarge => Problem::Errno(Errno::E2BIG),
            Error::NoMemory => Problem::Errno(Errno::ENOMEM),
        }
    }
}

fn kind(kind: Kind) -> FileKind {
    match kind {
        Kind::Regular => FileKind::Regular,
        Kind::Directory => FileKind::Directory,
        Kind::CharacterDevice => FileKind::CharacterDevice,
        Kind::BlockDevice => FileKind::BlockDevice,
        Kind::Fifo => FileKind::Fifo,
        Kind::Socket => FileKind::Socket,
        Kind::Symlink => FileKind::Symlink,
    }
}

impl Squash {
    /// Runs a function of the format's.
    fn read<T>(
        &self,
        view: &View<'_>,
        read: impl FnOnce(squashfs::Reader<'_, Through<'_, '_>>) -> Result<T, Error>,
    ) -> Said<T> {
        let through = Through { view, unpacking: Some(&self.unpacking), turn: Turn::default() };
        Ok(read(self.image.reader(&through))?)
    }

    /// The same, for what needs to know where a file's blocks are.
    fn read_file<T>(
        &self,
        file: &File,
        view: &View<'_>,
        read: impl FnOnce(squashfs::Reader<'_, Through<'_, '_>>, &mut BlockIndex) -> Result<T, Error>,
    ) -> Said<T> {
        file.index.with(&self.unpacking.turns, view, |index| self.read(view, |reader| read(reader, index)))
    }
}

impl Format for Squash {
    type Node = File;
    type Opening = ();

    const CAN_BE_WRITTEN: bool = false;
    const HAS_FLAGS: bool = false;
    const HAS_ACLS: bool = false;
    const MAGIC: u32 = MAGIC;

    fn block_bytes(&self) -> u32 {
        self.image.block_bytes()
    }

    fn open(view: &View<'_>, bytes: u64, _to_write: bool, _options: &[u8], _: &mut ()) -> Said<Self> {
        let mut magic = [0; 4];
        if bytes < PAGE_SIZE as u64 {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        view.copy(0, &mut magic)?;
        if u32::from_le_bytes(magic) != MAGIC {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        let image = Image::open(&Through { view, unpacking: None, turn: Turn::default() }, bytes)?;
        let unpacking = Unpacking { cache: SpinLock::new(image.cache()), turns: Turns::new() };
        Ok(Squash { image, unpacking })
    }

    fn space(&self, _view: &View<'_>) -> Said<Space> {
        let pages = self.image.bytes().div_ceil(PAGE_SIZE as u64);
        let inodes = self.image.inodes();
        Ok(Space { pages, used_pages: pages, inodes, used_inodes: inodes, ..Space::default() })
    }

    fn root(&self) -> u64 {
        self.image.root()
    }

    fn node(&self, number: u64, view: &View<'_>) -> Said<(File, Metadata)> {
        let inode = self.read(view, |reader| reader.inode(number))?;
        let time = Timestamp { seconds: inode.mtime.into(), nanoseconds: 0 };
        let kind = kind(inode.kind);
        let mut metadata = Metadata::new(kind, inode.permissions.into()).owned_by(inode.uid, inode.gid);
        metadata.links = inode.nlink;
        metadata.size = inode.size;
        metadata.blocks = inode.size.div_ceil(SECTOR);
        metadata.device = DeviceNumber { major: inode.device.0, minor: inode.device.1 };
        (metadata.accessed, metadata.modified, metadata.changed, metadata.born) = (time, time, time, time);
        Ok((File { inode, index: FoundOut::default() }, metadata))
    }

    fn attributes(&self, file: &File, view: &View<'_>) -> Said<Vec<(Vec<u8>, Vec<u8>)>> {
        self.read(view, |reader| reader.xattrs(&file.inode))
    }

    fn look_up(&self, directory: &File, name: &[u8], view: &View<'_>) -> Said<u64> {
        self.read(view, |reader| reader.lookup(&directory.inode, name))
    }

    fn list(
        &self,
        directory: &File,
        from: u64,
        view: &View<'_>,
        each: &mut dyn FnMut(Listed<'_>) -> Said<bool>,
    ) -> Said<()> {
        let mut end = Ok(true);
        self.read(view, |reader| {
            reader.list(&directory.inode, from, |entry| {
                let kind = Some(kind(entry.kind));
                end = each(Listed { name: entry.name, number: entry.number, kind, next: entry.next });
                if end == Ok(true) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        })?;
        end.map(|_| ())
    }

    fn read_link(&self, file: &File, view: &View<'_>) -> Said<Vec<u8>> {
        self.read(view, |reader| reader.symlink(&file.inode))
    }

    fn place(&self, file: &File, page: u32, view: &View<'_>) -> Said<Place> {
        let offset = u64::from(page) * PAGE_SIZE as u64;
        let mapping = self.read_file(file, view, |reader, index| reader.map(&file.inode, index, offset))?;
        // A block has whole pages, but hardly ever begins with a sector.
        Ok(if mapping.place == Where::Hole { Place::Hole } else { Place::Made })
    }

    fn fill(&self, file: &File, offset: u64, to: &mut [u8], view: &View<'_>) -> Said<usize> {
        self.read_file(file, view, |reader, index| reader.read(&file.inode, index, offset, to))
    }
}

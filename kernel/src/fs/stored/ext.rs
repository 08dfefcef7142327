//! ext2, ext3 and ext4.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::ControlFlow;

use ext::{
    Absent, Access, Blocks, Error, FileSystem, Inode, Kind, Mapping, Position, SUPERBLOCK_BYTES, SUPERBLOCK_OFFSET,
    Superblock, Time, Written,
};
use frame::mm::PAGE_SIZE;

use super::format::{Place, Said};
use super::{Format, Listed, Problem, Space, View};
use crate::error::Errno;
use crate::fs::{DeviceNumber, FileKind, Metadata, Timestamp};

/// What a file system is called that is mounted as one of these types: all three are read by the same code.
pub trait Named: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
}

/// ext2.
pub enum Ext2 {}
/// ext3.
pub enum Ext3 {}
/// ext4.
pub enum Ext4 {}

impl Named for Ext2 {
    const NAME: &'static str = "ext2";
}

impl Named for Ext3 {
    const NAME: &'static str = "ext3";
}

impl Named for Ext4 {
    const NAME: &'static str = "ext4";
}

/// A file system.
pub struct Ext<N: Named> {
    file_system: FileSystem,
    _name: PhantomData<N>,
}

/// The blocks of a file system, in its own size.
struct Sized<'a, 'v> {
    view: &'a View<'v>,
    size: u32,
}

impl Blocks for Sized<'_, '_> {
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent> {
        let size = self.size as usize;
        // What is wrong with it the view knows; to the format it is absent.
        let read = self
            .view
            .with(block.saturating_mul(self.size.into()), size, |bytes| (bytes.len() == size).then(|| with(bytes)));
        read.ok().flatten().ok_or(Absent(block))
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Absent(_) => Problem::Absent,
            Error::Corrupt(what) => Problem::Corrupt(what),
            Error::Unsupported(what) => Problem::Unsupported(what),
            Error::NoSpace | Error::CommitFirst => Problem::Errno(Errno::ENOSPC),
            Error::NotFound => Problem::Errno(Errno::ENOENT),
            Error::Exists => Problem::Errno(Errno::EEXIST),
            Error::NotEmpty => Problem::Errno(Errno::ENOTEMPTY),
            Error::NotDirectory => Problem::Errno(Errno::ENOTDIR),
            Error::IsDirectory => Problem::Errno(Errno::EISDIR),
            Error::TooManyLinks => Problem::Errno(Errno::EMLINK),
            Error::NameTooLong => Problem::Errno(Errno::ENAMETOOLONG),
            Error::TooLarge => Problem::Errno(Errno::EFBIG),
            Error::ReadOnly => Problem::Errno(Errno::EROFS),
            Error::Invalid => Problem::Errno(Errno::EINVAL),
        }
    }
}

fn kind(kind: Kind) -> FileKind {
    match kind {
        Kind::Fifo => FileKind::Fifo,
        Kind::CharDevice => FileKind::CharacterDevice,
        Kind::Directory => FileKind::Directory,
        Kind::BlockDevice => FileKind::BlockDevice,
        Kind::File => FileKind::Regular,
        Kind::Symlink => FileKind::Symlink,
        Kind::Socket => FileKind::Socket,
    }
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp { seconds: time.seconds, nanoseconds: time.nanos }
}

/// Positions of the format begin at 0; those of a listing leave 1 and 2 for `.` and `..`.
const FIRST_POSITION: u64 = 3;

impl<N: Named> Ext<N> {
    fn blocks<'a, 'v>(&self, view: &'a View<'v>) -> Sized<'a, 'v> {
        Sized { view, size: self.file_system.block_size() }
    }
}

impl<N: Named> Format for Ext<N> {
    type Node = Inode;

    const NAME: &'static str = N::NAME;
    const MAGIC: u32 = 0xef53;
    const IS_WRITTEN: bool = true;

    fn open(view: &View<'_>, bytes: u64) -> Said<Self> {
        const MAGIC_AT: usize = 0x38;
        let mut raw = [0; SUPERBLOCK_BYTES];
        if bytes < (SUPERBLOCK_OFFSET + SUPERBLOCK_BYTES) as u64 {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        view.copy(SUPERBLOCK_OFFSET as u64, &mut raw)?;
        if raw[MAGIC_AT..MAGIC_AT + 2] != (Self::MAGIC as u16).to_le_bytes() {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        let superblock = Superblock::parse(&raw)?;
        if superblock.needs_recovery() {
            return Err(Problem::Unsupported("its journal has to be replayed first, which e2fsck does"));
        }
        let size = superblock.block_size;
        let file_system = FileSystem::open(&Sized { view, size }, bytes / u64::from(size), Access::ReadOnly)?;
        Ok(Ext { file_system, _name: PhantomData })
    }

    fn space(&self, view: &View<'_>) -> Said<Space> {
        let figures = self.file_system.statistics(&self.blocks(view))?;
        let pages = |blocks: u64| blocks.saturating_mul(figures.block_size.into()) / PAGE_SIZE as u64;
        Ok(Space {
            pages: pages(figures.blocks),
            used_pages: pages(figures.blocks.saturating_sub(figures.free_blocks)),
            inodes: figures.inodes.into(),
            used_inodes: figures.inodes.saturating_sub(figures.free_inodes).into(),
        })
    }

    fn root(&self) -> u64 {
        self.file_system.root().into()
    }

    fn node(&self, number: u64, view: &View<'_>) -> Said<(Inode, Metadata)> {
        let number = u32::try_from(number).map_err(|_| Problem::Corrupt("an inode's number"))?;
        let inode = self.file_system.inode(&self.blocks(view), number)?;
        let kind = kind(inode.kind().ok_or(Problem::Corrupt("an inode's mode"))?);
        let mut metadata = Metadata::new(kind, inode.mode().into()).owned_by(inode.uid(), inode.gid());
        metadata.links = inode.links().into();
        metadata.size = inode.size();
        metadata.blocks = inode.sectors(&self.file_system);
        if let Some((major, minor)) = inode.device() {
            metadata.device = DeviceNumber { major, minor };
        }
        metadata.accessed = timestamp(inode.atime());
        metadata.modified = timestamp(inode.mtime());
        metadata.changed = timestamp(inode.ctime());
        metadata.born = timestamp(inode.crtime().unwrap_or_else(|| inode.ctime()));
        Ok((inode, metadata))
    }

    fn attributes(&self, node: &Inode, view: &View<'_>) -> Said<Vec<(Vec<u8>, Vec<u8>)>> {
        let all = self.file_system.attributes(&self.blocks(view), node)?;
        Ok(all.into_iter().map(|attribute| (attribute.name, attribute.value)).collect())
    }

    fn look_up(&self, directory: &Inode, name: &[u8], view: &View<'_>) -> Said<u64> {
        Ok(self.file_system.lookup(&self.blocks(view), directory, name)?.into())
    }

    fn list(
        &self,
        directory: &Inode,
        from: u64,
        view: &View<'_>,
        each: &mut dyn FnMut(Listed<'_>) -> Said<bool>,
    ) -> Said<()> {
        let mut end = Ok(true);
        let mut at = Position(from.saturating_sub(FIRST_POSITION));
        while end == Ok(true) && at < Position::END {
            at = self.file_system.list(&self.blocks(view), directory, at, |entry| {
                if matches!(entry.name, b"." | b"..") {
                    return ControlFlow::Continue(());
                }
                end = each(Listed {
                    name: entry.name,
                    number: entry.inode.into(),
                    kind: entry.kind.map(kind),
                    next: entry.next.0.saturating_add(FIRST_POSITION),
                });
                if end == Ok(true) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        end.map(|_| ())
    }

    fn read_link(&self, node: &Inode, view: &View<'_>) -> Said<Vec<u8>> {
        Ok(self.file_system.read_link(&self.blocks(view), node)?)
    }

    fn place(&self, node: &Inode, page: u32, view: &View<'_>) -> Said<Place> {
        let size = u64::from(self.file_system.block_size());
        if size != PAGE_SIZE as u64 {
            return Ok(Place::Made);
        }
        Ok(match self.file_system.map(&self.blocks(view), node, page)? {
            Mapping::Blocks { start, count, written: Written::Yes } => {
                Place::Device { offset: start * size, pages: count.max(1) }
            }
            Mapping::Blocks { .. } | Mapping::Hole { .. } => Place::Hole,
        })
    }

    fn fill(&self, node: &Inode, offset: u64, to: &mut [u8], view: &View<'_>) -> Said<usize> {
        let size = u64::from(self.file_system.block_size());
        let len = node.size().saturating_sub(offset).min(to.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let (block, within) = (at / size, at % size);
            let block = u32::try_from(block).map_err(|_| Problem::Corrupt("a file is too long"))?;
            let part = (size - within).min((len - done) as u64) as usize;
            let into = &mut to[done..done + part];
            match self.file_system.map(&self.blocks(view), node, block)? {
                Mapping::Blocks { start, written: Written::Yes, .. } => view.copy(start * size + within, into)?,
                Mapping::Blocks { .. } | Mapping::Hole { .. } => into.fill(0),
            }
            done += part;
        }
        Ok(len)
    }
}

//! EROFS: read-only images.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use erofs::{Absent, BLOCK_BYTES, Blocks, Error, FileKind as Kind, Image, Inode, Place as Where};
use frame::mm::PAGE_SIZE;

use super::format::{Place, Said};
use super::{Format, Listed, Problem, Space, View};
use crate::block::SECTOR;
use crate::error::Errno;
use crate::fs::{DeviceNumber, FileKind, Metadata, Timestamp};

/// An image.
pub struct Erofs(Image);

impl Blocks for View<'_> {
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent> {
        // What is wrong with it the view knows; to the format it is absent.
        self.with(block.saturating_mul(BLOCK_BYTES as u64), BLOCK_BYTES, with).map_err(|_| Absent)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Absent { .. } => Problem::Absent,
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

/// Where the magic number is, and what it is.
const MAGIC_AT: u64 = 1024;
const MAGIC: u32 = 0xe0f5_e1e2;

impl Format for Erofs {
    type Node = Inode;
    type Opening = ();

    const CAN_BE_WRITTEN: bool = false;
    const HAS_FLAGS: bool = false;
    const HAS_ACLS: bool = true;
    const MAGIC: u32 = MAGIC;

    fn block_bytes(&self) -> u32 {
        self.0.block_bytes()
    }

    fn open(view: &View<'_>, bytes: u64, _to_write: bool, _options: &[u8], _: &mut ()) -> Said<Self> {
        let mut magic = [0; 4];
        if bytes < MAGIC_AT + BLOCK_BYTES as u64 {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        view.copy(MAGIC_AT, &mut magic)?;
        if u32::from_le_bytes(magic) != MAGIC {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        Ok(Erofs(Image::open(view, bytes)?))
    }

    fn space(&self, _view: &View<'_>) -> Said<Space> {
        let pages = (self.0.blocks() * u64::from(self.0.block_bytes())).div_ceil(PAGE_SIZE as u64);
        let inodes = self.0.inodes();
        Ok(Space { pages, used_pages: pages, inodes, used_inodes: inodes, ..Space::default() })
    }

    fn root(&self) -> u64 {
        self.0.root()
    }

    fn node(&self, number: u64, view: &View<'_>) -> Said<(Inode, Metadata)> {
        let inode = self.0.reader(view).inode(number)?;
        let time = Timestamp { seconds: inode.mtime, nanoseconds: inode.mtime_nanoseconds };
        let mut metadata = Metadata::new(kind(inode.kind), u32::from(inode.mode)).owned_by(inode.uid, inode.gid);
        metadata.links = inode.nlink;
        metadata.size = inode.size;
        metadata.blocks =
            inode.size.div_ceil(u64::from(self.0.block_bytes())) * u64::from(self.0.block_bytes()) / SECTOR;
        metadata.device = DeviceNumber { major: inode.device.0, minor: inode.device.1 };
        (metadata.accessed, metadata.modified, metadata.changed, metadata.born) = (time, time, time, time);
        Ok((inode, metadata))
    }

    fn attributes(&self, node: &Inode, view: &View<'_>) -> Said<Vec<(Vec<u8>, Vec<u8>)>> {
        let reader = self.0.reader(view);
        let names = reader.xattr_names(node)?;
        let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        names.map(|name| Ok((name.to_vec(), reader.xattr(node, name)?))).collect()
    }

    fn look_up(&self, directory: &Inode, name: &[u8], view: &View<'_>) -> Said<u64> {
        Ok(self.0.reader(view).lookup(directory, name)?)
    }

    fn list(
        &self,
        directory: &Inode,
        from: u64,
        view: &View<'_>,
        each: &mut dyn FnMut(Listed<'_>) -> Said<bool>,
    ) -> Said<()> {
        let reader = self.0.reader(view);
        let mut position = Some(from);
        let mut end = Ok(true);
        while let (Some(at), Ok(true)) = (position, end) {
            position = reader.list(directory, at, |entry| {
                end =
                    each(Listed { name: entry.name, number: entry.nid, kind: entry.kind.map(kind), next: entry.next });
                if end == Ok(true) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        end.map(|_| ())
    }

    fn read_link(&self, node: &Inode, view: &View<'_>) -> Said<Vec<u8>> {
        Ok(self.0.reader(view).symlink(node)?)
    }

    fn place(&self, node: &Inode, page: u32, view: &View<'_>) -> Said<Place> {
        let page_bytes = PAGE_SIZE as u64;
        let mapping = self.0.reader(view).map(node, u64::from(page) * page_bytes)?;
        // The last page may end with the file.
        let is_last = node.size - mapping.start <= page_bytes;
        let pages = if is_last { mapping.bytes.div_ceil(page_bytes) } else { mapping.bytes / page_bytes };
        Ok(match mapping.place {
            Where::Device(offset) if offset.is_multiple_of(SECTOR) && pages > 0 => {
                Place::Device { offset, pages: pages.min(u64::from(u32::MAX)) as u32 }
            }
            Where::Hole if pages > 0 => Place::Hole,
            _ => Place::Made,
        })
    }

    fn fill(&self, node: &Inode, offset: u64, to: &mut [u8], view: &View<'_>) -> Said<usize> {
        Ok(self.0.reader(view).read(node, offset, to)?)
    }
}

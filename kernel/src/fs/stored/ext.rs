//! ext2, ext3 and ext4.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{ControlFlow, Range};

use ext::{
    Absent, Access, Blocks, Error, FileBlocks, FileSystem, Inode, JournalPlace, Kind, Mapping, NewInode, Position,
    Replay, Run, SUPERBLOCK_BYTES, SUPERBLOCK_OFFSET, SetMode, Step, Superblock, Time, Transaction, Written,
};
use frame::mm::PAGE_SIZE;

use super::format::{Allocation, Change, Changes, Done, Journal, Place, Recovery, Repair, Said};
use super::{Format, Listed, Problem, Space, View};
use crate::error::Errno;
use crate::fs::{Creation, DeviceNumber, Extent, FileKind, InodeFlags, Metadata, NextExtent, Rename, Timestamp};

/// A file system.
pub struct Ext {
    file_system: FileSystem,
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

    fn read_part<R>(&self, block: u64, part: Range<usize>, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent> {
        let at = block.saturating_mul(self.size.into()).saturating_add(part.start as u64);
        let read = self.view.with(at, part.len(), |bytes| (bytes.len() == part.len()).then(|| with(bytes)));
        read.ok().flatten().ok_or(Absent(block))
    }

    fn is_verified(&self, block: u64) -> bool {
        self.view.is_sound(block.saturating_mul(self.size.into()), self.size as usize)
    }

    fn mark_verified(&self, block: u64) {
        self.view.note_sound(block.saturating_mul(self.size.into()), self.size as usize);
    }

    fn pinned_in(&self, run: Run) -> Option<Run> {
        self.view.pinned_in(run)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Absent(_) => Problem::Absent,
            Error::Corrupt(what) => Problem::Corrupt(what),
            Error::Unsupported(what) => Problem::Unsupported(what),
            Error::NoSpace => Problem::Errno(Errno::ENOSPC),
            Error::CommitFirst => Problem::CommitFirst,
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

impl Ext {
    fn blocks<'a, 'v>(&self, view: &'a View<'v>) -> Sized<'a, 'v> {
        Sized { view, size: self.file_system.block_size() }
    }

    /// The file as it is now: what was read once stays true only where nothing is written.
    fn now<'n>(&self, node: &'n Inode, view: &View<'_>) -> Said<Cow<'n, Inode>> {
        Ok(match self.file_system.access() {
            Access::ReadOnly => Cow::Borrowed(node),
            Access::ReadWrite => Cow::Owned(self.file_system.inode(&self.blocks(view), node.number())?),
        })
    }

    fn metadata(&self, inode: &Inode) -> Said<Metadata> {
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
        Ok(metadata)
    }
}

impl Format for Ext {
    type Node = Inode;
    type Opening = ();

    const CAN_BE_WRITTEN: bool = true;
    const HAS_FLAGS: bool = true;
    const HAS_ACLS: bool = true;
    const MAGIC: u32 = 0xef53;

    fn open(view: &View<'_>, bytes: u64, to_write: bool, _options: &[u8], _: &mut ()) -> Said<Self> {
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
            return Err(Problem::Unsupported("its journal has to be replayed first"));
        }
        let size = superblock.block_size;
        let access = if to_write { Access::ReadWrite } else { Access::ReadOnly };
        let file_system = FileSystem::open(&Sized { view, size }, bytes / u64::from(size), access)?;
        Ok(Ext { file_system })
    }

    fn recovery(view: &View<'_>, bytes: u64) -> Said<Option<Box<dyn Recovery>>> {
        let mut raw = [0; SUPERBLOCK_BYTES];
        if bytes < (SUPERBLOCK_OFFSET + SUPERBLOCK_BYTES) as u64 {
            return Ok(None);
        }
        view.copy(SUPERBLOCK_OFFSET as u64, &mut raw)?;
        let Ok(superblock) = Superblock::parse(&raw) else { return Ok(None) };
        if !superblock.needs_recovery() {
            return Ok(None);
        }
        let size = superblock.block_size;
        let blocks = Sized { view, size };
        let file_system = FileSystem::open(&blocks, bytes / u64::from(size), Access::ReadOnly)?;
        let place = JournalPlace::find(&file_system, &blocks)?;
        let replay = Replay::new(&file_system, &blocks, place)?;
        Ok(Some(Box::new(Replaying { replay, size, phase: ReplayPhase::Search })))
    }

    fn is_written(&self) -> bool {
        self.file_system.access() == Access::ReadWrite
    }

    fn block_bytes(&self) -> u32 {
        self.file_system.block_size()
    }

    fn journal(&self, view: &View<'_>) -> Said<Journal> {
        let blocks = self.blocks(view);
        match JournalPlace::find(&self.file_system, &blocks) {
            Ok(place) => Ok(Journal::Logged(ext::Journal::open(&self.file_system, &blocks, place)?)),
            Err(Error::NotFound) => Ok(Journal::Logged(ext::Journal::without_log())),
            Err(error) => Err(error.into()),
        }
    }

    fn change(&self, what: &Change<'_>, now: Timestamp, view: &View<'_>) -> Said<(Done<Inode>, Changes)> {
        let blocks = self.blocks(view);
        let mut pieces = Pieces { most: PIECES, made: 0 };
        let (tx, mut done, touched) = loop {
            let mut tx = Transaction::new(&self.file_system, &blocks, time(now))?;
            tx.leave_free(view.promised());
            let mut done = Done::default();
            match change(&mut tx, what, &mut pieces, &mut done) {
                Ok(touched) => break (tx, done, touched),
                // What there was room for is something. A transaction in which something has failed is good for nothing: once more, without that.
                Err(Problem::Errno(Errno::ENOSPC)) if pieces.made > 0 => pieces = Pieces { most: pieces.made, made: 0 },
                Err(problem) => return Err(problem),
            }
        };
        for number in touched.into_iter().filter(|number| *number != 0) {
            let inode = self.file_system.inode(&tx, number)?;
            done.touched.push((number.into(), self.metadata(&inode)?));
        }
        Ok((done, Changes::Logged(tx.finish()?)))
    }

    fn seek(&self, node: &Inode, from: u64, is_data: bool, view: &View<'_>) -> Said<Result<u64, u64>> {
        let blocks = self.blocks(view);
        let node = self.now(node, view)?;
        let size = u64::from(self.file_system.block_size());
        let (at, end) = (block_index(from / size)?, block_index(node.size().div_ceil(size))?);
        let to_bytes = |block: u32| from.max(u64::from(block) * size);
        Ok(match self.file_system.seek(&blocks, &node, at, end, is_data)? {
            Ok(found) => Ok(to_bytes(found)),
            Err(next) if next >= end => Err(u64::MAX),
            Err(next) => Err(to_bytes(next)),
        })
    }

    fn extent(&self, node: &Inode, range: Range<u64>, view: &View<'_>) -> Said<NextExtent> {
        let blocks = self.blocks(view);
        let node = self.now(node, view)?;
        let size = u64::from(self.file_system.block_size());
        let block = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let (at, end) = (block(range.start / size), block(range.end.div_ceil(size)));
        Ok(match self.file_system.next_blocks(&blocks, &node, at, end)? {
            Ok(FileBlocks { at, start, count, written }) => NextExtent::Found(Extent {
                at: u64::from(at) * size,
                on_disk: start * size,
                len: u64::from(count) * size,
                is_written: written == Written::Yes,
                is_merged: !node.has_extents(),
            }),
            Err(next) if next >= end => NextExtent::NoneBefore(range.end),
            Err(next) => NextExtent::NoneBefore(u64::from(next) * size),
        })
    }

    fn delayed(&self, node: &Inode, view: &View<'_>) -> Said<Option<ext::Growth>> {
        if self.file_system.block_size() as usize != PAGE_SIZE {
            return Ok(None);
        }
        let node = self.now(node, view)?;
        Ok(self.file_system.growth(&self.blocks(view), &node)?)
    }

    fn written_to(&self, node: &Inode, range: Range<u64>, view: &View<'_>) -> Said<u64> {
        let blocks = self.blocks(view);
        let node = self.now(node, view)?;
        let size = u64::from(self.file_system.block_size());
        let mut at = range.start;
        while at < range.end {
            match self.file_system.map(&blocks, &node, block_index(at / size)?)? {
                Mapping::Blocks { count, written: Written::Yes, .. } => at = (at / size + u64::from(count)) * size,
                _ => break,
            }
        }
        Ok(at.min(range.end).max(range.start))
    }

    fn space(&self, view: &View<'_>) -> Said<Space> {
        let figures = self.file_system.statistics(&self.blocks(view))?;
        let pages = |blocks: u64| blocks.saturating_mul(figures.block_size.into()) / PAGE_SIZE as u64;
        Ok(Space {
            pages: pages(figures.blocks),
            used_pages: pages(figures.blocks.saturating_sub(figures.free_blocks)),
            kept_pages: pages(figures.free_blocks.saturating_sub(figures.available_blocks)),
            inodes: figures.inodes.into(),
            used_inodes: figures.inodes.saturating_sub(figures.free_inodes).into(),
            block_bytes: figures.block_size,
            longest_name: 0,
        })
    }

    fn root(&self) -> u64 {
        self.file_system.root().into()
    }

    fn node(&self, number: u64, view: &View<'_>) -> Said<(Inode, Metadata)> {
        let number = u32::try_from(number).map_err(|_| Problem::Corrupt("an inode's number"))?;
        let inode = self.file_system.inode(&self.blocks(view), number)?;
        let metadata = self.metadata(&inode)?;
        Ok((inode, metadata))
    }

    fn flags(&self, node: &Inode) -> InodeFlags {
        InodeFlags::of_bits(node.flags())
    }

    fn attributes(&self, node: &Inode, view: &View<'_>) -> Said<Vec<(Vec<u8>, Vec<u8>)>> {
        let node = self.now(node, view)?;
        let all = self.file_system.attributes(&self.blocks(view), &node)?;
        Ok(all.into_iter().map(|attribute| (attribute.name, attribute.value)).collect())
    }

    fn look_up(&self, directory: &Inode, name: &[u8], view: &View<'_>) -> Said<u64> {
        let directory = self.now(directory, view)?;
        Ok(self.file_system.lookup(&self.blocks(view), &directory, name)?.into())
    }

    fn list(
        &self,
        directory: &Inode,
        from: u64,
        view: &View<'_>,
        each: &mut dyn FnMut(Listed<'_>) -> Said<bool>,
    ) -> Said<()> {
        let directory = self.now(directory, view)?;
        let mut end = Ok(true);
        let mut at =
            if from >= Position::END.0 { Position::END } else { Position(from.saturating_sub(FIRST_POSITION)) };
        while end == Ok(true) && at < Position::END {
            at = self.file_system.list(&self.blocks(view), &directory, at, |entry| {
                if matches!(entry.name, b"." | b"..") {
                    return ControlFlow::Continue(());
                }
                end = each(Listed {
                    name: entry.name,
                    number: entry.inode.into(),
                    kind: entry.kind.map(kind),
                    // A program's cookie has a sign; the end is the largest without one.
                    next: entry.next.0.saturating_add(FIRST_POSITION).min(Position::END.0),
                });
                if end == Ok(true) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        end.map(|_| ())
    }

    fn read_link(&self, node: &Inode, view: &View<'_>) -> Said<Vec<u8>> {
        let node = self.now(node, view)?;
        Ok(self.file_system.read_link(&self.blocks(view), &node)?)
    }

    fn place(&self, node: &Inode, page: u32, view: &View<'_>) -> Said<Place> {
        let size = u64::from(self.file_system.block_size());
        if size != PAGE_SIZE as u64 {
            return Ok(Place::Made);
        }
        let node = self.now(node, view)?;
        Ok(match self.file_system.map(&self.blocks(view), &node, page)? {
            Mapping::Blocks { start, count, written: Written::Yes } => {
                Place::Device { offset: start * size, pages: count.max(1) }
            }
            Mapping::Blocks { .. } | Mapping::Hole { .. } => Place::Hole,
        })
    }

    fn fill(&self, node: &Inode, offset: u64, to: &mut [u8], view: &View<'_>) -> Said<usize> {
        let node = self.now(node, view)?;
        let size = u64::from(self.file_system.block_size());
        let len = node.size().saturating_sub(offset).min(to.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let (block, within) = (at / size, at % size);
            let block = u32::try_from(block).map_err(|_| Problem::Corrupt("a file is too long"))?;
            let part = (size - within).min((len - done) as u64) as usize;
            let into = &mut to[done..done + part];
            match self.file_system.map(&self.blocks(view), &node, block)? {
                Mapping::Blocks { start, written: Written::Yes, .. } => view.copy(start * size + within, into)?,
                Mapping::Blocks { .. } | Mapping::Hole { .. } => into.fill(0),
            }
            done += part;
        }
        Ok(len)
    }

    fn store(&self, node: &Inode, range: Range<u64>, view: &View<'_>) -> Said<Vec<(u64, u64, u64)>> {
        let node = self.now(node, view)?;
        let size = u64::from(self.file_system.block_size());
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / size + 1) * size);
            let mapping = self.file_system.map(&self.blocks(view), &node, block_index(at / size)?)?;
            if let Mapping::Blocks { start, written: Written::Yes, .. } = mapping {
                parts.push((at, start * size + at % size, end - at));
            }
            at = end;
        }
        Ok(parts)
    }
}

/// A journal that is being replayed.
struct Replaying {
    replay: Replay,
    size: u32,
    phase: ReplayPhase,
}

#[derive(Clone, Copy)]
enum ReplayPhase {
    Search,
    /// The next copy.
    Copy(usize),
    End,
    FlushEnd,
    Superblock,
    Flush,
    Done,
}

impl Recovery for Replaying {
    fn step(&mut self, view: &View<'_>) -> Said<Repair> {
        let blocks = Sized { view, size: self.size };
        let size = u64::from(self.size);
        let (repair, next) = match self.phase {
            ReplayPhase::Search => match self.replay.step(&blocks)? {
                Step::More => (Repair::More, ReplayPhase::Search),
                Step::Done => (Repair::More, ReplayPhase::Copy(0)),
            },
            ReplayPhase::Copy(at) => match self.replay.copies().get(at) {
                Some(copy) => {
                    let bytes = self.replay.contents(&blocks, copy)?;
                    (Repair::Write(copy.to * size, bytes), ReplayPhase::Copy(at + 1))
                }
                None => (Repair::Flush, ReplayPhase::End),
            },
            ReplayPhase::End => {
                let (block, bytes) = self.replay.log_end(&blocks)?;
                (Repair::Write(block * size, bytes), ReplayPhase::FlushEnd)
            }
            ReplayPhase::FlushEnd => (Repair::Flush, ReplayPhase::Superblock),
            ReplayPhase::Superblock => {
                let raw = ext::recovered_superblock(&blocks)?;
                (Repair::Write(SUPERBLOCK_OFFSET as u64, raw), ReplayPhase::Flush)
            }
            ReplayPhase::Flush => (Repair::Flush, ReplayPhase::Done),
            ReplayPhase::Done => (Repair::Done, ReplayPhase::Done),
        };
        self.phase = next;
        Ok(repair)
    }
}

/// The number of a file's block.
fn block_index(index: u64) -> Said<u32> {
    u32::try_from(index).map_err(|_| Problem::Errno(Errno::EFBIG))
}

fn inode_number(number: u64) -> Said<u32> {
    u32::try_from(number).map_err(|_| Problem::Corrupt("an inode's number"))
}

fn time(time: Timestamp) -> Time {
    Time { seconds: time.seconds, nanos: time.nanoseconds }
}

/// What a new inode is to be.
fn new_inode(what: &Creation<'_>, now: Time) -> NewInode {
    NewInode {
        mode: (what.kind.mode_bits() | what.permissions & 0o7777) as u16,
        uid: what.uid,
        gid: what.gid,
        device: (what.device.major, what.device.minor),
        generation: (now.seconds as u32).rotate_left(16) ^ now.nanos,
    }
}

/// Gives a new inode the attributes that it is to have.
fn give_attributes<B: Blocks>(tx: &mut Transaction<'_, B>, made: &mut Inode, what: &Creation<'_>) -> Said<()> {
    for (name, value) in what.attributes {
        tx.set_attribute(made, name, value, SetMode::Any)?;
    }
    Ok(())
}

fn keep<B: Blocks>(
    tx: &mut Transaction<'_, B>,
    number: u32,
    metadata: &Metadata,
    flags: Option<InodeFlags>,
) -> Said<()> {
    let mut inode = tx.fs().inode(tx, number)?;
    if let Some(flags) = flags {
        // There are others, of which nobody knows here.
        inode.set_user_flags(inode.flags() & !InodeFlags::all().to_bits() | flags.to_bits());
    }
    inode.set_permissions((metadata.mode & 0o7777) as u16);
    inode.set_owner(metadata.uid, metadata.gid);
    inode.set_atime(time(metadata.accessed));
    inode.set_mtime(time(metadata.modified));
    inode.set_ctime(time(metadata.changed));
    Ok(tx.put_inode(&inode)?)
}

/// The flag of inodes whose blocks can be unwritten.
const EXTENTS: u32 = 0x8_0000;

/// So many pieces of a file a change gives blocks at most.
const PIECES: usize = 16;

/// How many it may, and how many it has.
struct Pieces {
    most: usize,
    made: usize,
}

/// Allocates blocks for bytes of a file: up to where they have some.
fn allocate<B: Blocks>(
    tx: &mut Transaction<'_, B>,
    inode: &mut Inode,
    range: &Range<u64>,
    what: Allocation,
    pieces: &mut Pieces,
) -> Said<u64> {
    let size = u64::from(tx.fs().block_size());
    let (mut at, end) = (block_index(range.start / size)?, block_index(range.end.div_ceil(size))?);
    let is_written = matches!(what, Allocation::Written | Allocation::Together);
    let wanted = if is_written { Written::Yes } else { Written::No };
    let most = if what == Allocation::Together { 1 } else { usize::MAX };
    while pieces.made < most && at < end && pieces.made < pieces.most && tx.changed_blocks() < ext::STEP_BLOCKS / 2 {
        let count = match tx.fs().map(tx, inode, at)? {
            Mapping::Blocks { count, written: Written::No, .. } if wanted == Written::Yes => {
                tx.convert(inode, at, count.min(end - at))?
            }
            Mapping::Blocks { count, .. } => count,
            Mapping::Hole { count } => match tx.allocate(inode, at, count.min(end - at), wanted)? {
                Mapping::Blocks { count, .. } => count,
                Mapping::Hole { .. } => return Err(Problem::Corrupt("a hole that stays one")),
            },
        };
        at = at.saturating_add(count.max(1)).min(end);
        pieces.made += 1;
    }
    let reached = (u64::from(at) * size).min(range.end);
    if what != Allocation::AheadOfEnd && reached > inode.size() {
        tx.set_size(inode, reached)?;
    }
    Ok(reached)
}

/// Makes a change; which inodes have others names, lengths or blocks after it (0 for none).
fn change<B: Blocks>(
    tx: &mut Transaction<'_, B>,
    what: &Change<'_>,
    pieces: &mut Pieces,
    done: &mut Done<Inode>,
) -> Said<[u32; 4]> {
    let fs = tx.fs();
    Ok(match *what {
        Change::Create(directory, name, what) => {
            let (directory, new) = (inode_number(directory)?, new_inode(what, tx.now()));
            let mut made = match what.kind {
                FileKind::Symlink => tx.symlink(directory, name, what.target, &new)?,
                _ => tx.create(directory, name, &new)?,
            };
            give_attributes(tx, &mut made, what)?;
            let number = made.number();
            done.made = Some((number.into(), made));
            [number, directory, 0, 0]
        }
        Change::CreateNameless(directory, what) => {
            let mut made = tx.create_unnamed(inode_number(directory)?, &new_inode(what, tx.now()))?;
            give_attributes(tx, &mut made, what)?;
            let number = made.number();
            done.made = Some((number.into(), made));
            [number, 0, 0, 0]
        }
        Change::Link(number, ref metadata, directory, name) => {
            let (number, directory) = (inode_number(number)?, inode_number(directory)?);
            keep(tx, number, metadata, None)?;
            tx.link(number, directory, name)?;
            [number, directory, 0, 0]
        }
        Change::Unlink(directory, name) => {
            let directory = inode_number(directory)?;
            [tx.unlink(directory, name)?.number(), directory, 0, 0]
        }
        Change::RemoveDirectory(directory, name) => {
            let directory = inode_number(directory)?;
            [tx.rmdir(directory, name)?.number(), directory, 0, 0]
        }
        Change::Rename((from, old), (to, new), how) => {
            let (from, to) = (inode_number(from)?, inode_number(to)?);
            let how = match how {
                Rename::Replace => ext::Rename::Replace,
                Rename::NoReplace => ext::Rename::NoReplace,
                Rename::Exchange => ext::Rename::Exchange,
            };
            let moved = fs.lookup(tx, &fs.inode(tx, from)?, old)?;
            let replaced = match fs.lookup(tx, &fs.inode(tx, to)?, new) {
                Ok(number) => number,
                Err(Error::NotFound) => 0,
                Err(error) => return Err(error.into()),
            };
            tx.rename(from, old, to, new, how)?;
            [moved, replaced, from, to]
        }
        Change::Keep(number, ref metadata, flags) => {
            keep(tx, inode_number(number)?, metadata, Some(flags))?;
            [0; 4]
        }
        Change::Attribute(number, name, value) => {
            let number = inode_number(number)?;
            let mut inode = fs.inode(tx, number)?;
            inode.set_ctime(tx.now());
            match value {
                Some(value) => tx.set_attribute(&mut inode, name, value, SetMode::Any)?,
                None => match tx.remove_attribute(&mut inode, name) {
                    Err(Error::NotFound) => {}
                    other => other?,
                },
            }
            tx.put_inode(&inode)?;
            [number, 0, 0, 0]
        }
        Change::Allocate(number, ref range, what) => {
            let number = inode_number(number)?;
            let mut inode = fs.inode(tx, number)?;
            let is_written = matches!(what, Allocation::Written | Allocation::Together);
            if !is_written && inode.flags() & EXTENTS == 0 {
                return Err(Problem::Errno(Errno::EOPNOTSUPP));
            }
            done.reached = allocate(tx, &mut inode, range, what, pieces)?;
            let size = u64::from(fs.block_size());
            if what == Allocation::Together
                && let Mapping::Blocks { start, .. } = fs.map(tx, &inode, block_index(range.start / size)?)?
            {
                done.place = Some(start * size);
            }
            [number, 0, 0, 0]
        }
        Change::Resize(number, size) => {
            let number = inode_number(number)?;
            let mut inode = fs.inode(tx, number)?;
            if size >= inode.size() {
                tx.set_size(&mut inode, size)?;
            } else {
                done.has_more = tx.truncate(&mut inode, size)? == Step::More;
            }
            [number, 0, 0, 0]
        }
        Change::Cut(number) => {
            let number = inode_number(number)?;
            done.has_more = tx.truncate_step(&mut fs.inode(tx, number)?)? == Step::More;
            [number, 0, 0, 0]
        }
        Change::Punch(number, ref range) => {
            let number = inode_number(number)?;
            let size = u64::from(fs.block_size());
            let last = range.end / size;
            let (from, end) = (block_index(range.start.div_ceil(size))?, block_index(last).unwrap_or(u32::MAX));
            let gone_from = tx.punch(&mut fs.inode(tx, number)?, from, end)?;
            (done.has_more, done.reached) = (gone_from > from, u64::from(gone_from) * size);
            [number, 0, 0, 0]
        }
        Change::Delete(number) => {
            done.has_more = tx.delete_step(inode_number(number)?)? == Step::More;
            [0; 4]
        }
        Change::Recover => {
            done.has_more = tx.orphan_step()? == Step::More;
            [0; 4]
        }
        Change::Begin(has_journal) => {
            tx.mark_mounted(has_journal)?;
            [0; 4]
        }
        Change::End => {
            tx.mark_unmounted()?;
            [0; 4]
        }
    })
}

//! Inodes, basic and extended.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::metadata::{Metadata, Position};
use crate::{Error, Reader, Source};

/// What all inodes begin with.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    kind: U16,
    mode: U16,
    uid: U16,
    gid: U16,
    mtime: U32,
    ino: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BasicDirectory {
    block: U32,
    nlink: U32,
    size: U16,
    offset: U16,
    parent: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ExtendedDirectory {
    nlink: U32,
    size: U32,
    block: U32,
    parent: U32,
    index_entries: U16,
    offset: U16,
    xattr: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BasicFile {
    start: U32,
    fragment: U32,
    offset: U32,
    size: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ExtendedFile {
    start: U64,
    size: U64,
    sparse: U64,
    nlink: U32,
    fragment: U32,
    offset: U32,
    xattr: U32,
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A regular file.
    Regular,
    /// A symbolic link.
    Symlink,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl FileKind {
    /// The kind with that number, as basic inodes and directories have it.
    pub(crate) fn of(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::Directory,
            2 => Self::Regular,
            3 => Self::Symlink,
            4 => Self::BlockDevice,
            5 => Self::CharacterDevice,
            6 => Self::Fifo,
            7 => Self::Socket,
            _ => return None,
        })
    }
}

/// Where an inode's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nowhere.
    None,
    /// A listing, from this place of the table of directories on, with so many entries in an index behind the inode.
    Directory { listing: Position, index: Position, index_entries: u16 },
    /// So many blocks from this address on, whose sizes follow the inode; and the tail, in a fragment.
    File { start: u64, sizes: Position, blocks: u64, tail: Option<Tail> },
    /// A path, behind the inode.
    Symlink(Position),
}

/// The tail of a file: in which fragment, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub fragment: u32,
    pub offset: u32,
}

/// An inode: what `stat` says of it, and where its content is. It borrows nothing and never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number for [`Reader::inode`]: where it is in the table of inodes, and never 0.
    pub number: u64,
    /// Its serial number, which Linux shows as the inode number.
    pub ino: u32,
    /// The kind.
    pub kind: FileKind,
    /// The permissions, with set-user-ID, set-group-ID and sticky bit.
    pub permissions: u16,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Bytes of content; at most `i64::MAX`.
    pub size: u64,
    /// How many names it has.
    pub nlink: u32,
    /// When its content changed last: seconds since 1970.
    pub mtime: u32,
    /// The major and minor number of a device; 0 and 0 for all other kinds.
    pub device: (u32, u32),
    pub(crate) content: Content,
    /// The index of its extended attributes.
    pub(crate) xattr: Option<u32>,
}

/// What the kinds of inodes have each for itself.
struct Rest {
    nlink: u32,
    size: u64,
    device: u32,
    content: Content,
    xattr: u32,
}

/// The number of the inode in a block of the table, at a byte of that. Never 0: programs take that for a name which is gone.
pub(crate) fn number_of(block: u32, offset: u16) -> u64 {
    (u64::from(block) << 16 | u64::from(offset)) + 1
}

/// Said where there is no fragment, or no extended attribute.
const NONE: u32 = u32::MAX;
/// So many bytes a listing is longer than it is, for `.` and `..`.
const LISTING_EXTRA: u32 = 3;
/// The longest listing that is read.
const LONGEST_LISTING: u32 = 16 << 20;

impl<S: Source> Reader<'_, S> {
    /// Reads an inode.
    ///
    /// # Errors
    /// `Corrupt` (no such number, no such kind of file), `Unsupported`, `Absent`.
    pub fn inode(&self, number: u64) -> Result<Inode, Error> {
        let reference = number.checked_sub(1).ok_or(Error::Corrupt("an inode's number"))?;
        let block = self.image.inode_table.checked_add(reference >> 16).filter(|at| *at < self.image.directory_table);
        let position = Position {
            block: block.ok_or(Error::Corrupt("an inode's number is too large"))?,
            offset: (reference & 0xffff) as usize,
        };
        if position.offset >= 8192 {
            return Err(Error::Corrupt("an inode's number"));
        }
        let mut metadata = Metadata::new(*self, position);
        let header: Header = metadata.get()?;
        let number_of_kind = header.kind.get();
        let is_extended = number_of_kind > 7;
        let kind = FileKind::of(if is_extended { number_of_kind - 7 } else { number_of_kind })
            .ok_or(Error::Corrupt("an inode's kind"))?;
        let rest = match kind {
            FileKind::Directory => self.directory_inode(&mut metadata, is_extended)?,
            FileKind::Regular => self.file_inode(&mut metadata, is_extended)?,
            FileKind::Symlink => symlink_inode(&mut metadata, is_extended)?,
            _ => {
                let is_device = matches!(kind, FileKind::BlockDevice | FileKind::CharacterDevice);
                let nlink: U32 = metadata.get()?;
                let device: U32 = if is_device { metadata.get()? } else { U32::ZERO };
                let xattr: U32 = if is_extended { metadata.get()? } else { NONE.into() };
                Rest { nlink: nlink.get(), size: 0, device: device.get(), content: Content::None, xattr: xattr.get() }
            }
        };
        if rest.nlink == 0 {
            return Err(Error::Corrupt("an inode without a name"));
        }
        Ok(Inode {
            number,
            ino: header.ino.get(),
            kind,
            permissions: header.mode.get() & 0o7777,
            uid: self.id(header.uid.get())?,
            gid: self.id(header.gid.get())?,
            size: rest.size,
            nlink: rest.nlink,
            mtime: header.mtime.get(),
            device: device_numbers(rest.device),
            content: rest.content,
            xattr: (rest.xattr != NONE).then_some(rest.xattr),
        })
    }

    /// The user or group of that index.
    fn id(&self, index: u16) -> Result<u32, Error> {
        if index >= self.image.ids {
            return Err(Error::Corrupt("an owner"));
        }
        Ok(self.table_entry::<U32>(self.image.id_table, index.into())?.get())
    }

    fn directory_inode(&self, metadata: &mut Metadata<'_, S>, is_extended: bool) -> Result<Rest, Error> {
        let fields: ExtendedDirectory = if is_extended {
            metadata.get()?
        } else {
            let basic: BasicDirectory = metadata.get()?;
            ExtendedDirectory {
                nlink: basic.nlink,
                size: u32::from(basic.size).into(),
                block: basic.block,
                parent: basic.parent,
                index_entries: U16::ZERO,
                offset: basic.offset,
                xattr: NONE.into(),
            }
        };
        let listing = Position {
            block: self.image.directory_table.saturating_add(fields.block.get().into()),
            offset: fields.offset.get().into(),
        };
        let size = fields.size.get();
        if size < LISTING_EXTRA || listing.offset >= 8192 {
            return Err(Error::Corrupt("where a directory is"));
        }
        if size > LONGEST_LISTING {
            return Err(Error::Unsupported("a directory of more than 16 MiB"));
        }
        let index_entries = fields.index_entries.get();
        Ok(Rest {
            nlink: fields.nlink.get(),
            size: size.into(),
            device: 0,
            content: Content::Directory { listing, index: metadata.position(), index_entries },
            xattr: fields.xattr.get(),
        })
    }

    fn file_inode(&self, metadata: &mut Metadata<'_, S>, is_extended: bool) -> Result<Rest, Error> {
        let fields: ExtendedFile = if is_extended {
            metadata.get()?
        } else {
            let basic: BasicFile = metadata.get()?;
            ExtendedFile {
                start: u64::from(basic.start.get()).into(),
                size: u64::from(basic.size.get()).into(),
                sparse: U64::ZERO,
                nlink: 1.into(),
                fragment: basic.fragment,
                offset: basic.offset,
                xattr: NONE.into(),
            }
        };
        let size = fields.size.get();
        if size > i64::MAX as u64 {
            return Err(Error::Corrupt("a file's size"));
        }
        let tail = (fields.fragment.get() != NONE)
            .then(|| Tail { fragment: fields.fragment.get(), offset: fields.offset.get() });
        let block_bytes = u64::from(self.image.block_bytes());
        let blocks = if tail.is_some() { size / block_bytes } else { size.div_ceil(block_bytes) };
        Ok(Rest {
            nlink: fields.nlink.get(),
            size,
            device: 0,
            content: Content::File { start: fields.start.get(), sizes: metadata.position(), blocks, tail },
            xattr: fields.xattr.get(),
        })
    }
}

/// A symbolic link's attributes stand behind its path.
fn symlink_inode<S: Source>(metadata: &mut Metadata<'_, S>, is_extended: bool) -> Result<Rest, Error> {
    let nlink: U32 = metadata.get()?;
    let size: U32 = metadata.get()?;
    let size = size.get();
    if !(1..=4095).contains(&size) {
        return Err(Error::Corrupt("a symbolic link's length"));
    }
    let content = Content::Symlink(metadata.position());
    let xattr: U32 = if is_extended {
        metadata.skip(size as usize)?;
        metadata.get()?
    } else {
        NONE.into()
    };
    Ok(Rest { nlink: nlink.get(), size: size.into(), device: 0, content, xattr: xattr.get() })
}

/// Linux's encoding of device numbers in 32 bits: 12 bits of major number between the parts of the minor one.
fn device_numbers(encoded: u32) -> (u32, u32) {
    ((encoded & 0xf_ff00) >> 8, (encoded & 0xff) | ((encoded >> 12) & 0xf_ff00))
}

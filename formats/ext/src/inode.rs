//! Inodes.

use crate::blocks::Blocks;
use crate::bytes::{halves, high32, le16, le32, low32, put16, put32};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::superblock::feature;
use crate::transaction::{Seal, Transaction};
use std_alloc::boxed::Box;

/// The root directory's inode.
pub const ROOT: u32 = 2;

/// Bits of i_flags.
pub mod flag {
    pub const INDEX: u32 = 0x1000;
    pub const HUGE_FILE: u32 = 0x4_0000;
    pub const EXTENTS: u32 = 0x8_0000;
    pub const EA_INODE: u32 = 0x20_0000;
    pub const INLINE_DATA: u32 = 0x1000_0000;
    /// Those that a new inode takes from its directory: secrm, unrm, compr, sync, nodump, noatime, dirsync, topdir is not.
    pub const INHERITED: u32 = 0x1 | 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x1_0000;
    /// Those that a user may set: sync, immutable, append, nodump, noatime, journal data is not, notail, dirsync, topdir.
    pub const SETTABLE: u32 = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x8000 | 0x1_0000 | 0x2_0000;
}

/// What kind of thing an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pipe with a name.
    Fifo,
    /// A character device.
    CharDevice,
    /// A directory.
    Directory,
    /// A block device.
    BlockDevice,
    /// A file.
    File,
    /// A symbolic link.
    Symlink,
    /// A socket.
    Socket,
}

impl Kind {
    /// From the upper bits of a mode.
    pub fn of_mode(mode: u16) -> Option<Self> {
        Some(match mode >> 12 {
            1 => Self::Fifo,
            2 => Self::CharDevice,
            4 => Self::Directory,
            6 => Self::BlockDevice,
            8 => Self::File,
            10 => Self::Symlink,
            12 => Self::Socket,
            _ => return None,
        })
    }
}

/// A time: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970. An inode of 128 bytes holds 32 bits of them (to 2038), a larger one 34 (to 2446).
    pub seconds: i64,
    /// Nanoseconds, below 1,000,000,000. An inode of 128 bytes does not hold them.
    pub nanos: u32,
}

/// A copy of an inode: to be changed and then put back with [`Transaction::put_inode`].
#[derive(Clone, Debug)]
pub struct Inode {
    number: u32,
    raw: Box<[u8]>,
}

impl Inode {
    /// An inode with all fields zero.
    pub(crate) fn zeroed(number: u32, inode_size: u32, extra: u16) -> Self {
        let mut raw = std_alloc::vec![0; inode_size as usize].into_boxed_slice();
        if inode_size > 128 {
            put16(&mut raw, 0x80, extra);
        }
        Self { number, raw }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    pub(crate) fn raw_mut(&mut self) -> &mut [u8] {
        &mut self.raw
    }

    /// Bytes of the fields after the first 128.
    pub(crate) fn extra(&self) -> usize {
        if self.raw.len() > 128 { (le16(&self.raw, 0x80) as usize).min(self.raw.len() - 128) } else { 0 }
    }

    fn has_field(&self, end: usize) -> bool {
        end <= 128 + self.extra()
    }

    /// Type and permissions, as in `st_mode`.
    pub fn mode(&self) -> u16 {
        le16(&self.raw, 0)
    }

    /// Changes the permissions (the lower 12 bits); the type stays.
    pub fn set_permissions(&mut self, mode: u16) {
        let kind = self.mode() & 0xf000;
        put16(&mut self.raw, 0, kind | mode & 0xfff);
    }

    pub(crate) fn set_mode(&mut self, mode: u16) {
        put16(&mut self.raw, 0, mode);
    }

    /// What it is; `None` if the mode is no known one.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of_mode(self.mode())
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind() == Some(Kind::Directory)
    }

    /// The owner.
    pub fn uid(&self) -> u32 {
        u32::from(le16(&self.raw, 2)) | u32::from(le16(&self.raw, 0x78)) << 16
    }

    /// The owner's group.
    pub fn gid(&self) -> u32 {
        u32::from(le16(&self.raw, 0x18)) | u32::from(le16(&self.raw, 0x7a)) << 16
    }

    /// Changes the owner and the group.
    pub fn set_owner(&mut self, uid: u32, gid: u32) {
        put16(&mut self.raw, 2, uid as u16);
        put16(&mut self.raw, 0x78, (uid >> 16) as u16);
        put16(&mut self.raw, 0x18, gid as u16);
        put16(&mut self.raw, 0x7a, (gid >> 16) as u16);
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        let wide = matches!(self.kind(), Some(Kind::File | Kind::Directory));
        halves(le32(&self.raw, 4), if wide { le32(&self.raw, 0x6c) } else { 0 })
    }

    pub(crate) fn set_size(&mut self, size: u64) {
        put32(&mut self.raw, 4, low32(size));
        put32(&mut self.raw, 0x6c, high32(size));
    }

    /// How many names it has. 1 for a directory also means more than 65,000.
    pub fn links(&self) -> u16 {
        le16(&self.raw, 0x1a)
    }

    pub(crate) fn set_links(&mut self, links: u16) {
        put16(&mut self.raw, 0x1a, links);
    }

    /// i_flags, as `FS_IOC_GETFLAGS` gives them.
    pub fn flags(&self) -> u32 {
        le32(&self.raw, 0x20)
    }

    /// Sets those of the flags that a user may set; the others stay.
    pub fn set_user_flags(&mut self, flags: u32) {
        let others = self.flags() & !flag::SETTABLE;
        self.set_flags(others | flags & flag::SETTABLE);
    }

    pub(crate) fn set_flags(&mut self, flags: u32) {
        put32(&mut self.raw, 0x20, flags);
    }

    /// Whether its blocks are kept as extents, not one by one.
    pub fn has_extents(&self) -> bool {
        self.has_flag(flag::EXTENTS)
    }

    pub(crate) fn has_flag(&self, flag: u32) -> bool {
        self.flags() & flag != 0
    }

    /// Which of the inode's lives this is, as NFS wants to know.
    pub fn generation(&self) -> u32 {
        le32(&self.raw, 0x64)
    }

    pub(crate) fn set_generation(&mut self, generation: u32) {
        put32(&mut self.raw, 0x64, generation);
    }

    /// When it was deleted; while it is on the list of orphans, the next of these.
    pub(crate) fn deleted(&self) -> u32 {
        le32(&self.raw, 0x14)
    }

    pub(crate) fn set_deleted(&mut self, value: u32) {
        put32(&mut self.raw, 0x14, value);
    }

    /// The block with extended attributes, or 0.
    pub(crate) fn attribute_block(&self) -> u64 {
        u64::from(le32(&self.raw, 0x68)) | u64::from(le16(&self.raw, 0x76)) << 32
    }

    pub(crate) fn set_attribute_block(&mut self, block: u64) {
        put32(&mut self.raw, 0x68, low32(block));
        put16(&mut self.raw, 0x76, high32(block) as u16);
    }

    /// The 60 bytes that say which blocks it has.
    pub(crate) fn block_field(&self) -> &[u8] {
        &self.raw[0x28..0x64]
    }

    pub(crate) fn block_field_mut(&mut self) -> &mut [u8] {
        &mut self.raw[0x28..0x64]
    }

    fn time(&self, at: usize, extra_at: usize) -> Time {
        let seconds = i64::from(le32(&self.raw, at) as i32);
        if self.has_field(extra_at + 4) {
            let extra = le32(&self.raw, extra_at);
            Time { seconds: seconds + (i64::from(extra & 3) << 32), nanos: (extra >> 2).min(999_999_999) }
        } else {
            Time { seconds, nanos: 0 }
        }
    }

    fn set_time(&mut self, at: usize, extra_at: usize, time: Time) {
        if self.has_field(extra_at + 4) {
            // Two more bits: from 1901 to 2446.
            let seconds = time.seconds.clamp(i32::MIN.into(), (3 << 32) + i64::from(i32::MAX));
            let low = seconds as i32;
            put32(&mut self.raw, at, low as u32);
            let epoch = ((seconds - i64::from(low)) >> 32) as u32 & 3;
            put32(&mut self.raw, extra_at, epoch | time.nanos.min(999_999_999) << 2);
        } else {
            let seconds = time.seconds.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            put32(&mut self.raw, at, seconds as u32);
        }
    }

    /// When it was last read.
    pub fn atime(&self) -> Time {
        self.time(8, 0x8c)
    }

    /// When its contents were last changed.
    pub fn mtime(&self) -> Time {
        self.time(0x10, 0x88)
    }

    /// When the inode was last changed.
    pub fn ctime(&self) -> Time {
        self.time(0xc, 0x84)
    }

    /// When it was made, where that is kept.
    pub fn crtime(&self) -> Option<Time> {
        self.has_field(0x98).then(|| self.time(0x90, 0x94))
    }

    /// Sets when it was last read.
    pub fn set_atime(&mut self, time: Time) {
        self.set_time(8, 0x8c, time);
    }

    /// Sets when its contents were last changed.
    pub fn set_mtime(&mut self, time: Time) {
        self.set_time(0x10, 0x88, time);
    }

    /// Sets when the inode was last changed.
    pub fn set_ctime(&mut self, time: Time) {
        self.set_time(0xc, 0x84, time);
    }

    pub(crate) fn set_crtime(&mut self, time: Time) {
        if self.has_field(0x98) {
            self.set_time(0x90, 0x94, time);
        }
    }

    /// Major and minor number of a device.
    pub fn device(&self) -> Option<(u32, u32)> {
        if !matches!(self.kind(), Some(Kind::CharDevice | Kind::BlockDevice)) {
            return None;
        }
        let (old, new) = (le32(self.block_field(), 0), le32(self.block_field(), 4));
        Some(if old != 0 {
            (old >> 8 & 0xff, old & 0xff)
        } else {
            (new >> 8 & 0xfff, new & 0xff | new >> 12 & 0xf_ff00)
        })
    }

    pub(crate) fn set_device(&mut self, major: u32, minor: u32) {
        let field = self.block_field_mut();
        if major < 256 && minor < 256 {
            put32(field, 0, major << 8 | minor);
        } else {
            put32(field, 4, minor & 0xff | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12);
        }
    }

    /// How many units of 512 bytes it takes on the disk, its metadata among them, as in `st_blocks`.
    pub fn sectors(&self, fs: &FileSystem) -> u64 {
        let wide = fs.superblock().has_ro(feature::HUGE_FILE);
        let count = halves(le32(&self.raw, 0x1c), if wide { le16(&self.raw, 0x74).into() } else { 0 });
        if wide && self.has_flag(flag::HUGE_FILE) { count << (fs.block_size().trailing_zeros() - 9) } else { count }
    }

    /// Counts more (or fewer) blocks of the file system.
    pub(crate) fn add_blocks(&mut self, fs: &FileSystem, blocks: i64) -> Result<()> {
        let shift = fs.block_size().trailing_zeros() - 9;
        let sectors = self.sectors(fs).checked_add_signed(blocks << shift).ok_or(Error::Corrupt("block count"))?;
        let wide = fs.superblock().has_ro(feature::HUGE_FILE);
        let huge = wide && sectors >= 1 << 48;
        if !wide && sectors > u64::from(u32::MAX) {
            return Err(Error::TooLarge);
        }
        let count = if huge { sectors >> shift } else { sectors };
        put32(&mut self.raw, 0x1c, low32(count));
        if wide {
            put16(&mut self.raw, 0x74, high32(count) as u16);
            let others = self.flags() & !flag::HUGE_FILE;
            self.set_flags(others | if huge { flag::HUGE_FILE } else { 0 });
        }
        Ok(())
    }

    fn checksum(&self, seed: u32) -> u32 {
        let raw = &self.raw;
        let sum = crc32c(crc32c(crc32c(seed, &raw[..0x7c]), &[0; 2]), &raw[0x7e..0x80]);
        if raw.len() == 128 {
            return sum;
        }
        if self.extra() < 4 {
            return crc32c(sum, &raw[0x80..]);
        }
        crc32c(crc32c(crc32c(sum, &raw[0x80..0x82]), &[0; 2]), &raw[0x84..])
    }

    fn has_right_checksum(&self, seed: u32) -> bool {
        let sum = self.checksum(seed);
        let low = le16(&self.raw, 0x7c) == sum as u16;
        low && (self.extra() < 4 || le16(&self.raw, 0x82) == (sum >> 16) as u16)
    }

    fn seal(&mut self, seed: u32) {
        let sum = self.checksum(seed);
        put16(&mut self.raw, 0x7c, sum as u16);
        if self.extra() >= 4 {
            put16(&mut self.raw, 0x82, (sum >> 16) as u16);
        }
    }
}

impl FileSystem {
    /// The root directory's inode.
    pub fn root(&self) -> u32 {
        ROOT
    }

    /// Whether a directory may name this inode.
    pub(crate) fn may_be_named(&self, number: u32) -> bool {
        let sup = self.superblock();
        number == ROOT || number >= sup.first_inode && number <= sup.inodes_count
    }

    /// Reads an inode that files can have. Whether it is in use [`Inode::links`] tells, or [`FileSystem::is_inode_used`].
    ///
    /// # Errors
    /// `NotFound` if there is no such inode; `Corrupt`, `Absent`.
    pub fn inode(&self, blocks: &impl Blocks, number: u32) -> Result<Inode> {
        if !self.may_be_named(number) {
            return Err(Error::NotFound);
        }
        let inode = self.any_inode(blocks, number)?;
        if inode.kind().is_none() || inode.has_flag(flag::EA_INODE) {
            return Err(Error::Corrupt("inode's mode"));
        }
        Ok(inode)
    }

    /// Reads an inode, be it one of the reserved ones.
    pub(crate) fn any_inode(&self, blocks: &impl Blocks, number: u32) -> Result<Inode> {
        let (block, at) = self.inode_place(number)?;
        let size = self.superblock().inode_size as usize;
        let raw: Box<[u8]> = blocks.read_part(block, at..at + size, |bytes| Box::from(bytes))?;
        if raw.len() != size {
            return Err(Error::Corrupt("inode table"));
        }
        let inode = Inode { number, raw };
        if inode.raw.len() > 128 && usize::from(le16(&inode.raw, 0x80)) > inode.raw.len() - 128 {
            return Err(Error::Corrupt("inode's extra fields"));
        }
        if self.has_checksums() && !inode.has_right_checksum(self.inode_seed(number, inode.generation())) {
            return Err(Error::Corrupt("inode checksum"));
        }
        Ok(inode)
    }

    /// The block of the inode table that an inode is in, and where in it.
    pub(crate) fn inode_place(&self, number: u32) -> Result<(u64, usize)> {
        let sup = self.superblock();
        if number == 0 || number > sup.inodes_count {
            return Err(Error::Corrupt("inode number"));
        }
        let (group, index) = ((number - 1) / sup.inodes_per_group, (number - 1) % sup.inodes_per_group);
        let per_block = sup.block_size / sup.inode_size;
        let table = self.inode_table(group)?;
        Ok((table + u64::from(index / per_block), (index % per_block * sup.inode_size) as usize))
    }

    pub(crate) fn seed_of(&self, inode: &Inode) -> u32 {
        self.inode_seed(inode.number, inode.generation())
    }

    /// The largest size that a file can have.
    pub fn max_file_size(&self, inode: &Inode) -> u64 {
        let size = u64::from(self.block_size());
        if inode.has_flag(flag::EXTENTS) {
            return size * (u64::from(u32::MAX) - 1);
        }
        let per_block = size / 4;
        let addressed = (12 + per_block + per_block * per_block + per_block.pow(3)).min(u64::from(u32::MAX) - 1) * size;
        // i_blocks counts units of 512 bytes in 32 bits; what else than data counts is a little more than 1 in `per_block`.
        let counted = if self.superblock().has_ro(feature::HUGE_FILE) {
            u64::MAX
        } else {
            (u64::from(u32::MAX) / (size / 512)) / (per_block + 2) * per_block * size
        };
        addressed.min(counted)
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// Writes an inode back.
    pub fn put_inode(&mut self, inode: &Inode) -> Result<()> {
        let (block, at) = self.fs().inode_place(inode.number)?;
        let mut inode = inode.clone();
        if self.fs().has_checksums() {
            inode.seal(self.fs().seed_of(&inode));
        }
        let stored = self.modify(block, Seal::None, |bytes| {
            bytes.get_mut(at..at + inode.raw.len()).map(|place| place.copy_from_slice(&inode.raw))
        })?;
        stored.ok_or(Error::Corrupt("inode table"))
    }
}

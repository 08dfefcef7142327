//! What stat(2) tells of a file: [`Metadata`], [`FileKind`], [`DeviceNumber`], [`Timestamp`].

use linux_raw_sys::general;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum FileKind {
    Fifo = 1,
    CharacterDevice = 2,
    Directory = 4,
    BlockDevice = 6,
    Regular = 8,
    Symlink = 10,
    Socket = 12,
}

impl FileKind {
    /// The kind in the format bits of a mode; `None` if they name none.
    pub const fn of_mode(mode: u32) -> Option<Self> {
        Some(match mode & general::S_IFMT {
            general::S_IFIFO => FileKind::Fifo,
            general::S_IFCHR => FileKind::CharacterDevice,
            general::S_IFDIR => FileKind::Directory,
            general::S_IFBLK => FileKind::BlockDevice,
            general::S_IFREG => FileKind::Regular,
            general::S_IFLNK => FileKind::Symlink,
            general::S_IFSOCK => FileKind::Socket,
            _ => return None,
        })
    }

    /// Its format bits in a mode (inode(7)).
    #[inline(always)]
    pub const fn mode_bits(self) -> u32 {
        (self as u32) << 12
    }

    /// Its `d_type` in a directory entry (getdents(2)).
    pub const fn entry_type(self) -> u8 {
        self as u8
    }
}

/// Which device a device node stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceNumber {
    /// Which driver (12 bits).
    pub major: u32,
    /// Which of its devices (20 bits).
    pub minor: u32,
}

impl DeviceNumber {
    /// The number in the encoding of mknod(2) and stat(2): see makedev(3).
    pub const fn from_encoded(encoded: u64) -> Self {
        DeviceNumber {
            major: ((encoded >> 8) & 0xfff) as u32 | ((encoded >> 32) as u32 & !0xfff),
            minor: (encoded & 0xff) as u32 | ((encoded >> 12) as u32 & 0xffff_ff00),
        }
    }

    /// Its encoding in mknod(2) and stat(2).
    pub const fn encoded(self) -> u64 {
        let (major, minor) = (self.major as u64, self.minor as u64);
        (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12) | ((major & !0xfff) << 32)
    }
}

/// A point of wall-clock time, since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Whole seconds; negative before the epoch.
    pub seconds: i64,
    /// And nanoseconds, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// The present.
    #[inline]
    pub fn now() -> Self {
        let nanoseconds = crate::time::clock::real_time();
        Timestamp { seconds: (nanoseconds / 1_000_000_000) as i64, nanoseconds: (nanoseconds % 1_000_000_000) as u32 }
    }

    /// How many nanoseconds after another it is; `None` if it is not after it, or years.
    pub fn nanoseconds_since(self, earlier: Timestamp) -> Option<u64> {
        let whole = |time: Timestamp| {
            u64::try_from(time.seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(time.nanoseconds.into())
        };
        whole(self)?.checked_sub(whole(earlier)?)
    }

    /// Whether so many seconds have passed since its second, as the [recent time](crate::time::clock::recent_real_time) tells.
    #[inline]
    pub fn is_older_than(self, seconds: i64) -> bool {
        let then = self.seconds.saturating_add(seconds).saturating_mul(1_000_000_000);
        crate::time::clock::recent_real_time() as i64 >= then
    }
}

/// What stat(2) tells of a file, apart from what never changes ([`Inode::number`](super::Inode::number), its file system).
#[derive(Clone, Copy, Debug)]
pub struct Metadata {
    /// Kind and permissions: see inode(7).
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// How many names it has (for a directory: 2 and one for each directory in it).
    pub links: u32,
    /// Its length in bytes.
    pub size: u64,
    /// Its memory, in units of 512 bytes.
    pub blocks: u64,
    /// Which device a device node stands for.
    pub device: DeviceNumber,
    /// Last read.
    pub accessed: Timestamp,
    /// Last change of its content.
    pub modified: Timestamp,
    /// Last change of its content or of anything here.
    pub changed: Timestamp,
    /// When it was made.
    pub born: Timestamp,
}

impl Metadata {
    /// A new file of that kind and those permissions, owned by root.
    pub fn new(kind: FileKind, permissions: u32) -> Self {
        let now = Timestamp::now();
        Metadata {
            mode: kind.mode_bits() | (permissions & 0o7777),
            uid: 0,
            gid: 0,
            links: if kind == FileKind::Directory { 2 } else { 1 },
            size: 0,
            blocks: 0,
            device: DeviceNumber::default(),
            accessed: now,
            modified: now,
            changed: now,
            born: now,
        }
    }

    /// The same, owned by others.
    pub fn owned_by(mut self, uid: u32, gid: u32) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_their_encoding() {
        for (major, minor) in [(1, 3), (5, 0), (4, 64), (0xfff, 0xf_ffff), (136, 1000)] {
            let number = DeviceNumber { major, minor };
            assert_eq!(DeviceNumber::from_encoded(number.encoded()), number);
        }
        assert_eq!(DeviceNumber { major: 5, minor: 1 }.encoded(), 0x501);
    }

    #[test]
    fn kinds_are_those_of_the_mode() {
        assert_eq!(FileKind::of_mode(0o100644), Some(FileKind::Regular));
        assert_eq!(FileKind::Directory.mode_bits(), 0o040000);
        assert_eq!(FileKind::of_mode(0o644), None);
    }
}

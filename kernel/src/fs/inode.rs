//! [`Inode`]: a file, whatever its names are; and [`InodeOps`], what a file system has to say for it.
//!
//! An inode is owned by the directories that name it, by the descriptions that have it open, by mappings and working directories,
//! and dies with the last of them: a deleted file's memory comes back at once when nobody has it open.
//!
//! File systems that hold their tree in memory (tmpfs) own their inodes through their directories. Those that make inodes up as
//! they are asked for (procfs) enter them in an [`InodeCache`], which owns them.
//!
//! Lock order: an inode's metadata, then what its file system locks to bring them up to date (a directory's entries, a file's pages).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};

use frame::Cx;
use frame::mm::{Reader, UFrame, Writer};
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::inode_flags::InodeFlags;
use super::leases::FileLeases;
use super::locks::FileLocks;
use super::{
    DeviceNumber, File, FileKind, FileSystem, Location, Lseek, Metadata, OpenFile, OpenFlags, Timestamp, VfsCaller,
};
use crate::error::{Errno, Result};
use crate::memory::Pages;
use crate::step::Step;

/// What a new file is to be.
#[derive(Clone, Copy)]
pub struct Creation<'a> {
    /// Its kind.
    pub kind: FileKind,
    /// Its permissions, umask applied.
    pub permissions: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group (that of a set-group-ID directory is applied by the caller).
    pub gid: u32,
    /// Which device, for a device node.
    pub device: DeviceNumber,
    /// Where it leads, for a symbolic link.
    pub target: &'a [u8],
}

/// What rename(2) does where the new name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// The old file goes.
    Replace,
    /// EEXIST.
    NoReplace,
    /// The two files exchange their names.
    Exchange,
}

/// One name of a directory, as getdents(2) tells it.
pub struct DirectoryEntry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The inode's number.
    pub number: u64,
    /// The inode's kind.
    pub kind: FileKind,
    /// The position behind this entry: a listing that goes on from there goes on with the next. Positions stay valid whatever
    /// happens to other entries; they are at least 3 (1 and 2 are behind `.` and `..`, which the caller makes up).
    pub next: u64,
}

/// Where a magic link (`/proc/PID/fd/N`, `/proc/PID/exe`, ...) leads.
pub enum Jump {
    /// To a place in the tree.
    Location(Location),
    /// To an open description whose inode has no place in the tree: opening it opens that inode.
    OpenFile(WeakRc<OpenFile>),
}

/// What a file system has to say for one of its inodes. No method suspends; permissions, read-only mounts, name lengths and `.`/`..` are
/// the caller's business. The defaults are those of a thing that cannot do it.
///
/// `this` is the inode itself.
pub trait InodeOps: Any + Send + Sync {
    /// Brings up to date what is computed rather than stored (size, blocks, links, owner of a process's files). The inode's metadata are
    /// locked meanwhile.
    #[inline]
    fn refresh(&self, _metadata: &mut Metadata, _cx: &Cx) {}

    /// Whether what it shows is gone (a process that has ended): an [`InodeCache`] then makes a new one.
    fn is_stale(&self, _cx: &Cx) -> bool {
        false
    }

    /// The name that `/proc/PID/fd` shows for an inode with no place in the tree, such as `pipe:[12]`.
    fn anonymous_name(&self, _this: &Inode) -> Option<Vec<u8>> {
        None
    }

    /// Directories: the inode of a name. ENOENT if there is none.
    fn lookup<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _me: &dyn VfsCaller,
        _cx: &'cx Cx,
    ) -> Result<TempRc<'cx, Inode>> {
        Err(Errno::ENOTDIR)
    }

    /// Directories: tells `each` the entries from position `from` on (0 is the start), in order, until it says false.
    fn list(
        &self,
        _this: &Inode,
        _from: u64,
        _me: Option<&dyn VfsCaller>,
        _cx: &Cx,
        _each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        Err(Errno::ENOTDIR)
    }

    /// Directories: makes a new file. EEXIST, ENOSPC.
    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Result<TempRc<'cx, Inode>> {
        Err(Errno::EPERM)
    }

    /// Directories: makes a new regular file without a name (O_TMPFILE).
    fn create_nameless(&self, _this: &TempRc<'_, Inode>, _what: &Creation<'_>, _cx: &Cx) -> Result<StrongRc<Inode>> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Directories: gives `target` (no directory, of the same file system) one more name. EEXIST, EMLINK, ENOSPC.
    fn link(&self, _this: &TempRc<'_, Inode>, _name: &[u8], _target: &TempRc<'_, Inode>, _cx: &Cx) -> Result<()> {
        Err(Errno::EPERM)
    }

    /// Directories: takes out the name of a file that is no directory. ENOENT, EISDIR.
    fn unlink(&self, _this: &TempRc<'_, Inode>, _name: &[u8], _cx: &Cx) -> Result<()> {
        Err(Errno::EPERM)
    }

    /// Directories: takes out an empty directory. ENOENT, ENOTDIR, ENOTEMPTY.
    fn remove_directory(&self, _this: &TempRc<'_, Inode>, _name: &[u8], _cx: &Cx) -> Result<()> {
        Err(Errno::EPERM)
    }

    /// Directories: moves `name` to `to_name` in the directory `to` of the same file system.
    fn rename(
        &self,
        _this: &TempRc<'_, Inode>,
        _name: &[u8],
        _to: &TempRc<'_, Inode>,
        _to_name: &[u8],
        _how: Rename,
        _cx: &Cx,
    ) -> Result<()> {
        Err(Errno::EPERM)
    }

    /// Symbolic links: where it leads.
    fn read_link(&self, _me: &dyn VfsCaller, _cx: &Cx) -> Result<Vec<u8>> {
        Err(Errno::EINVAL)
    }

    /// Symbolic links that lead to a file rather than to a path.
    fn jump(&self, _me: &dyn VfsCaller, _cx: &Cx) -> Option<Result<Jump>> {
        None
    }

    /// Opens it (regular files and directories; device nodes, FIFOs and sockets are opened by their drivers). Creation, truncation,
    /// permissions and O_DIRECTORY are done. `None`: reads and writes go to this inode's own methods.
    fn open(
        &self,
        _this: &TempRc<'_, Inode>,
        _flags: OpenFlags,
        _me: &dyn VfsCaller,
        _cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        Ok(None)
    }

    /// Regular files: reads at `offset`; 0 bytes at the end. A fault behind the first byte is a short read.
    fn read(&self, _this: &Inode, _offset: u64, _to: &mut Writer<'_>, _cx: &Cx) -> Step<usize> {
        Err(Errno::EINVAL.into())
    }

    /// Regular files: writes at `offset` (`None`: at the end), but nothing at or behind `limit`. How many bytes, and the offset behind them. A
    /// fault behind the first byte is a short write. EFBIG where not even the first byte is below the limit, ENOSPC.
    fn write(
        &self,
        _this: &Inode,
        _offset: Option<u64>,
        _limit: u64,
        _from: &mut Reader<'_>,
        _cx: &Cx,
    ) -> Step<(usize, u64)> {
        Err(Errno::EINVAL.into())
    }

    /// Regular files: changes the length. Grows by a hole. It may pause.
    fn set_size(&self, _this: &Inode, _size: u64, _cx: &Cx) -> Step<()> {
        Err(Errno::EINVAL.into())
    }

    /// Regular files: fallocate(2) with those mode bits for a range of bytes. It may pause; `done` is for itself, 0 at first.
    fn allocate(&self, _this: &Inode, _mode: u32, _range: Range<u64>, _done: &mut u64, _cx: &Cx) -> Step<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// Regular files: the next data or hole at or behind an offset, for [`Lseek::Data`] and [`Lseek::Hole`]. ENXIO behind the end.
    fn seek(&self, _this: &Inode, _to: Lseek, _cx: &Cx) -> Result<u64> {
        Err(Errno::EINVAL)
    }

    /// Regular files: what a mapping of it shows; `None` if it cannot be mapped.
    fn pages(&self) -> Option<&dyn Pages> {
        None
    }

    /// Regular files that keep their content in pages: puts those from page `first` on into `frames`, `None` for a hole, and gives the size in bytes.
    /// Makes no pages. `None`: its content is had by [`read`](Self::read) only.
    fn lend(&self, _first: u64, _frames: &mut [Option<UFrame>], _cx: &Cx) -> Option<u64> {
        None
    }

    /// Regular files: the F_SEAL_* that are set, if the file can have any.
    fn seals(&self) -> Option<&AtomicU32> {
        None
    }

    /// Whether it has [`InodeFlags`] that can be set; else it has none.
    fn has_flags(&self) -> bool {
        false
    }

    /// Whether chmod, chown and utimes work on it.
    fn may_change_metadata(&self) -> Result<()> {
        Ok(())
    }
}

/// A directory and a name in it: where an inode is in its file system's tree. The name is kept here as well as in the directory, so that nobody
/// has to look through a directory for it.
#[derive(Default)]
pub struct Dentry {
    /// The directory; `None` for a root and for what has no name. It may be gone.
    pub parent: Option<WeakRc<Inode>>,
    /// The name. Of a file with several names it is the first one, or the one that was moved last.
    pub name: Box<[u8]>,
    /// The name was taken out of the directory.
    pub is_removed: bool,
}

impl Dentry {
    /// A name in a directory.
    pub fn new(parent: &TempRc<'_, Inode>, name: &[u8]) -> Self {
        Dentry { parent: Some(parent.downgrade()), name: name.into(), is_removed: false }
    }

    /// Whether it is this name in this directory.
    pub fn is(&self, parent: &TempRc<'_, Inode>, name: &[u8]) -> bool {
        *self.name == *name && self.parent == Some(parent.downgrade())
    }
}

/// Extended attributes: values by name.
pub type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// A file, whatever its names are.
pub struct Inode {
    /// Its number, unique in its file system.
    pub number: u64,
    /// Its kind.
    pub kind: FileKind,
    /// Its device number, for a device node.
    pub device: DeviceNumber,
    /// Its file system.
    pub file_system: StrongRc<FileSystem>,
    /// What the file system says for it.
    pub ops: Box<dyn InodeOps>,
    /// The directory it is in, and its name there.
    pub dentry: SpinLock<Dentry>,
    /// Locks of programs on it: fcntl(2), flock(2).
    pub locks: FileLocks,
    /// Leases on it (F_SETLEASE).
    pub leases: FileLeases,
    /// How many mounts have it as their mount point: a quick look before the mount table is searched.
    pub mounts: AtomicU32,
    /// What a driver keeps with it: the pipe of a FIFO, the listener of a socket.
    pub attachment: SpinLock<Option<Box<dyn Any + Send + Sync>>>,
    /// Extended attributes by name.
    pub attributes: SpinLock<Option<Box<Attributes>>>,
    /// Whether one of them gives a program capabilities, which writing to it takes away.
    pub has_file_capabilities: AtomicBool,
    /// [`InodeFlags`].
    flags: AtomicU8,
    metadata: SpinLock<Metadata>,
    /// Above 0: descriptions that may write it. Below: programs run from it, which must not be written meanwhile.
    writers: AtomicI32,
    /// How many descriptions can read it and not write.
    readers: AtomicU32,
}

impl Inode {
    /// A new inode of `file_system`, which is where `dentry` says.
    pub fn new(
        file_system: StrongRc<FileSystem>,
        number: u64,
        metadata: Metadata,
        dentry: Dentry,
        ops: Box<dyn InodeOps>,
    ) -> Self {
        Inode {
            number,
            kind: FileKind::of_mode(metadata.mode).unwrap_or(FileKind::Regular),
            device: metadata.device,
            file_system,
            ops,
            dentry: SpinLock::new(dentry),
            locks: FileLocks::default(),
            leases: FileLeases::default(),
            mounts: AtomicU32::new(0),
            attachment: SpinLock::new(None),
            attributes: SpinLock::new(None),
            has_file_capabilities: AtomicBool::new(false),
            flags: AtomicU8::new(0),
            metadata: SpinLock::new(metadata),
            writers: AtomicI32::new(0),
            readers: AtomicU32::new(0),
        }
    }

    /// What stat(2) tells of it.
    #[inline]
    pub fn metadata(&self, cx: &Cx) -> Metadata {
        self.with_metadata(cx, |metadata| *metadata)
    }

    /// Runs `f` on what stat(2) tells of it, without a copy. `f` must not call back into the inode.
    #[inline(always)]
    pub fn with_metadata<R>(&self, cx: &Cx, f: impl FnOnce(&Metadata) -> R) -> R {
        let mut metadata = self.metadata.lock(cx);
        self.ops.refresh(&mut metadata, cx);
        f(&metadata)
    }

    /// Whether it is a directory that was removed: nothing can be made in it.
    pub fn is_removed(&self, cx: &Cx) -> bool {
        self.with_metadata(cx, |metadata| metadata.links == 0)
    }

    /// Mode, owner and group, for permission checks.
    #[inline]
    pub fn access_bits(&self, cx: &Cx) -> (u32, u32, u32) {
        let metadata = self.metadata.lock(cx);
        (metadata.mode, metadata.uid, metadata.gid)
    }

    /// Changes the stored metadata; `changed` is set to now by the caller where Linux does. Must not call back into the inode.
    #[inline]
    pub fn change<R>(&self, cx: &Cx, change: impl FnOnce(&mut Metadata) -> R) -> R {
        change(&mut self.metadata.lock(cx))
    }

    /// Notes that its content changed just now.
    #[inline]
    pub fn touch_modified(&self, cx: &Cx) {
        let now = Timestamp::now();
        let mut metadata = self.metadata.lock(cx);
        metadata.modified = now;
        metadata.changed = now;
    }

    /// Notes that it was read just now: always, or (`relative`) only where that says more than it was read since it was changed last, and
    /// once a day. A mount says which: [`Mount::touch_accessed`](super::Mount::touch_accessed).
    #[inline]
    pub(super) fn touch_accessed(&self, relative: bool, cx: &Cx) {
        const DAY: i64 = 24 * 60 * 60;
        let mut metadata = self.metadata.lock(cx);
        let read = metadata.accessed;
        let is_due = read <= metadata.modified || read <= metadata.changed || read.is_older_than(DAY);
        if (is_due || !relative) && !self.flags().contains(InodeFlags::NO_ATIME) {
            metadata.accessed = Timestamp::now();
        }
    }

    /// Its attributes beside its mode.
    #[inline(always)]
    pub fn flags(&self) -> InodeFlags {
        InodeFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Changes them.
    pub fn set_flags(&self, flags: InodeFlags) {
        self.flags.store(flags.bits(), Ordering::Relaxed);
    }

    /// Checks that none of these keeps it from being changed.
    ///
    /// # Errors
    /// EPERM.
    #[inline(always)]
    pub fn check_not(&self, flags: InodeFlags) -> Result<()> {
        if self.flags().intersects(flags) { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// What the file system says for it, if it is of that type.
    #[inline]
    pub fn ops_as<T: InodeOps>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.ops;
        any.downcast_ref()
    }

    /// The directory it is in, if that lives.
    pub fn parent<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        let parent = self.dentry.lock(cx).parent?;
        parent.upgrade(cx).ok()
    }

    /// Whether it is `outer`, or in it or in a directory below it.
    pub fn is_within(this: &TempRc<'_, Inode>, outer: &TempRc<'_, Inode>, cx: &Cx) -> bool {
        let outer = outer.downgrade();
        let mut at = Some(this.clone());
        while let Some(inode) = at {
            if inode.downgrade() == outer {
                return true;
            }
            at = inode.parent(cx);
        }
        false
    }

    /// One more description may write it.
    ///
    /// # Errors
    /// ETXTBSY while a program runs from it.
    pub fn begin_writing(&self) -> Result<()> {
        let begun =
            self.writers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count >= 0).then(|| count + 1));
        begun.map(|_| ()).map_err(|_| Errno::ETXTBSY)
    }

    /// One description less may write it.
    pub fn end_writing(&self) {
        self.writers.fetch_sub(1, Ordering::Relaxed);
    }

    /// One description more can read it, and not write.
    #[inline(always)]
    pub(super) fn begin_reading(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    /// One description less can read it, and not write.
    #[inline(always)]
    pub(super) fn end_reading(&self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it is open for writing.
    pub fn has_writers(&self) -> bool {
        self.writers.load(Ordering::Relaxed) > 0
    }

    /// Whether it is open in no more than one description.
    pub fn is_open_once(&self) -> bool {
        let writers = u32::try_from(self.writers.load(Ordering::Relaxed)).unwrap_or(0);
        writers + self.readers.load(Ordering::Relaxed) <= 1
    }

    /// A program is run from it: until [`allow_writing`](Self::allow_writing) it cannot be opened for writing.
    ///
    /// # Errors
    /// ETXTBSY if it is open for writing.
    pub fn deny_writing(&self) -> Result<()> {
        let denied =
            self.writers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count <= 0).then(|| count - 1));
        denied.map(|_| ()).map_err(|_| Errno::ETXTBSY)
    }

    /// Takes back one [`deny_writing`](Self::deny_writing).
    pub fn allow_writing(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }
}

/// The inodes of a file system that makes them up when they are looked up. It owns them, as directories do elsewhere.
///
/// Nothing is lost when an inode is thrown out: the next lookup makes it anew, under the same number.
#[derive(Default)]
pub struct InodeCache {
    inodes: SpinLock<BTreeMap<u64, StrongRc<Inode>>>,
}

/// How many inodes a cache keeps before it looks which ones nobody uses.
const CACHED: usize = 512;

impl InodeCache {
    /// An empty cache.
    pub const fn new() -> Self {
        InodeCache { inodes: SpinLock::new(BTreeMap::new()) }
    }

    /// The inode of that number; a new one by `make` if there is none or it is stale. `make` must not use this cache.
    pub fn get_or_insert<'cx>(
        &self,
        number: u64,
        cx: &'cx Cx,
        make: impl FnOnce() -> Result<Inode>,
    ) -> Result<TempRc<'cx, Inode>> {
        let cached = self.inodes.lock(cx).get(&number).map(StrongRc::downgrade);
        if let Some(inode) = cached.and_then(|weak| weak.upgrade(cx).ok())
            && !inode.ops.is_stale(cx)
        {
            return Ok(inode);
        }
        let inode = StrongRc::new(make()?);
        let weak = inode.downgrade();
        let mut inodes = self.inodes.lock(cx);
        if inodes.len() >= CACHED {
            // Directories stay while they are fresh: what is in them finds its way up through them.
            inodes.retain(|_, inode| {
                let unused = inode.owners() == 1;
                let inode = inode.get(cx);
                !inode.ops.is_stale(cx) && (!unused || inode.kind == FileKind::Directory)
            });
        }
        inodes.insert(number, inode);
        drop(inodes);
        weak.upgrade(cx).map_err(|_| Errno::ENOENT)
    }
}

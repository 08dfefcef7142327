//! [`InodeOps`]: what a file system has to say for one of its inodes.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use frame::mm::{Reader, UFrame, Writer};
use refs::{StrongRc, TempRc, Waker, WeakRc};

use super::{
    DeviceNumber, File, FileKind, Inode, Location, Lseek, Metadata, NextExtent, OpenFile, OpenFlags, Timestamp,
    VfsCaller,
};
use crate::block::{Depth, SyncProgress};
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
    /// Its extended attributes, names and values: access control lists that it has from its directory.
    pub attributes: &'a [(Vec<u8>, Vec<u8>)],
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

/// A name in a directory, with what was found there when it was judged whether the caller may change it. What is there by now may be something else, which
/// another core has put in its place.
pub struct Named<'a, 'cx> {
    /// Who asks; `None` for the kernel itself.
    pub me: Option<&'a dyn VfsCaller>,
    /// The directory.
    pub directory: &'a TempRc<'cx, Inode>,
    /// The name.
    pub name: &'a [u8],
    /// What was found; `None` if nothing was.
    pub inode: Option<&'a TempRc<'cx, Inode>>,
}

impl Named<'_, '_> {
    /// Whether `now` is what was found, and may go. Called with the file system's `tree` locked.
    ///
    /// # Errors
    /// ESTALE: it is not, and must be judged anew. EBUSY: something was mounted there since.
    pub fn check(&self, now: Option<&TempRc<'_, Inode>>) -> Result<()> {
        if self.inode.map(TempRc::downgrade) != now.map(TempRc::downgrade) {
            return Err(Errno::ESTALE);
        }
        let is_mount_point = now.is_some_and(|now| now.mounts.load(Ordering::Relaxed) > 0);
        if is_mount_point { Err(Errno::EBUSY) } else { Ok(()) }
    }
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

    /// Its metadata, which were [kept](Inode::begin_keeping), change. They may be locked. File systems in memory keep nothing.
    fn must_be_kept(&self, _this: &Inode) {}

    /// It has no names, and its last description is to be left: gives up what it counts for, [gathers](crate::memory::PageMap::gather) its pages, and says how many bytes come back with it at least.
    /// `None`: it is to end at once.
    fn leave(&self) -> Option<usize> {
        None
    }

    /// Whether [`keep_metadata`](Self::keep_metadata) is to be asked before a program changes its metadata.
    fn keeps_metadata(&self) -> bool {
        false
    }

    /// A program is about to change its metadata: keeps them first where they are kept. It is run again with a later present if it says `Absent`.
    fn keep_metadata(&self, _this: &Inode, _before: &Metadata, _new: &Metadata, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    /// Whether its extended attributes are to be [loaded](Self::load_attributes).
    fn keeps_attributes(&self) -> bool {
        false
    }

    /// Its extended attributes, names and values.
    fn load_attributes(&self, _this: &Inode, _cx: &Cx) -> Step<Vec<(Vec<u8>, Vec<u8>)>> {
        Ok(Vec::new())
    }

    /// Keeps an extended attribute, `None` for none of that name, before the inode's own copy of them is changed. ENOSPC.
    fn keep_attribute(&self, _this: &Inode, _name: &[u8], _value: Option<&[u8]>, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    /// Whether access control lists can be among them. They are loaded before anybody knows the inode, since whoever checks permissions cannot wait.
    fn keeps_acls(&self) -> bool {
        false
    }

    /// Whether what it shows is gone (a process that has ended): an [`InodeCache`](super::InodeCache) then makes a new one.
    fn is_stale(&self, _cx: &Cx) -> bool {
        false
    }

    /// Whether something of it is to be written still: an [`InodeCache`](super::InodeCache) then keeps it.
    fn must_stay(&self) -> bool {
        false
    }

    /// Writes what was written to a range of it, and itself, to the disk that keeps it, and waits for that: see [`File::sync`]. File systems in memory have nothing to do.
    fn sync(
        &self,
        _this: &Inode,
        _range: Range<u64>,
        _depth: Depth,
        _progress: &mut SyncProgress,
        _waker: Option<Waker>,
        _cx: &Cx,
    ) -> Step<()> {
        Ok(())
    }

    /// The name that `/proc/PID/fd` shows for an inode with no place in the tree, such as `pipe:[12]`.
    fn anonymous_name(&self, _this: &Inode) -> Option<Vec<u8>> {
        None
    }

    /// Inodes of a file system that is stacked on others: the inode of a layer that keeps its metadata and attributes now. `None`: it keeps them itself.
    fn real<'cx>(&self, _cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        None
    }

    /// The same, where they are about to be changed: it is copied into the layer that is written first. It may pause.
    fn real_to_change<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _me: Option<&dyn VfsCaller>,
        _cx: &'cx Cx,
    ) -> Step<Option<TempRc<'cx, Inode>>> {
        Ok(None)
    }

    /// What stat(2) tells as its `st_dev` (a minor number) and its `st_ino`. Asked of inodes of stacked file systems only.
    fn identity(&self, this: &Inode, cx: &Cx) -> (u32, u64) {
        (this.file_system.get(cx).device, this.number)
    }

    /// What an extended attribute of this name is called in the layer that keeps it.
    fn attribute_below<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(name)
    }

    /// The reverse; `None` for what a stacked file system keeps there for itself.
    fn attribute_above<'a>(&self, name: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        Some(Cow::Borrowed(name))
    }

    /// It was read just now, and the time of that is to be kept. The inode's metadata are locked.
    fn accessed(&self, _this: &Inode, _when: Timestamp, _cx: &Cx) {}

    /// Directories: the inode of a name. ENOENT if there is none.
    fn lookup<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _me: &dyn VfsCaller,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(Errno::ENOTDIR.into())
    }

    /// Directories: tells `each` the entries from position `from` on (0 is the start), in order, until it says false.
    fn list(
        &self,
        _this: &Inode,
        _from: u64,
        _me: Option<&dyn VfsCaller>,
        _cx: &Cx,
        _each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        Err(Errno::ENOTDIR.into())
    }

    /// Directories: makes a new file. EEXIST, ENOSPC.
    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(Errno::EPERM.into())
    }

    /// Directories: makes a new regular file without a name (O_TMPFILE).
    fn create_nameless(&self, _this: &TempRc<'_, Inode>, _what: &Creation<'_>, _cx: &Cx) -> Step<StrongRc<Inode>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// Directories: gives `target` (no directory, of the same file system) one more name. EEXIST, EMLINK, ENOSPC.
    fn link(&self, _this: &TempRc<'_, Inode>, _name: &[u8], _target: &TempRc<'_, Inode>, _cx: &Cx) -> Step<()> {
        Err(Errno::EPERM.into())
    }

    /// Directories: takes out the name of a file that is no directory. ESTALE, EISDIR.
    fn unlink(&self, _at: &Named<'_, '_>, _cx: &Cx) -> Step<()> {
        Err(Errno::EPERM.into())
    }

    /// Directories: takes out an empty directory. ESTALE, ENOTDIR, ENOTEMPTY.
    fn remove_directory(&self, _at: &Named<'_, '_>, _cx: &Cx) -> Step<()> {
        Err(Errno::EPERM.into())
    }

    /// Directories: moves a name to another one, in a directory of the same file system. ESTALE.
    fn rename(&self, _from: &Named<'_, '_>, _to: &Named<'_, '_>, _how: Rename, _cx: &Cx) -> Step<()> {
        Err(Errno::EPERM.into())
    }

    /// Symbolic links: where it leads.
    fn read_link(&self, _me: &dyn VfsCaller, _cx: &Cx) -> Step<Vec<u8>> {
        Err(Errno::EINVAL.into())
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
    fn seek(&self, _this: &Inode, _to: Lseek, _cx: &Cx) -> Step<u64> {
        Err(Errno::EINVAL.into())
    }

    /// Regular files and directories on a disk: the first extent of what is in a range of bytes, as far as one step looks. EOPNOTSUPP where nothing of it has a place, or none that is told.
    fn extent(&self, _this: &Inode, _range: Range<u64>, _cx: &Cx) -> Step<NextExtent> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// Regular files: whether they have content that is kept, and can be truncated.
    fn keeps_content(&self) -> bool {
        self.pages().is_some()
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

    /// Whether it has [`InodeFlags`](super::InodeFlags) that can be set; else it has none.
    fn has_flags(&self) -> bool {
        false
    }

    /// Has pages read that will be wanted soon. What is in memory has nothing to do.
    ///
    /// # Errors
    /// Whatever a step may say while some are not there; EIO.
    fn read_ahead(&self, _pages: Range<u64>, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    /// Of what a place and a length in it must be multiples where it is opened with O_DIRECT; `None` where that means nothing.
    fn direct_alignment(&self, _cx: &Cx) -> Option<u32> {
        None
    }

    /// Whether statx(2) says of it that it is not compressed, rather than nothing about that.
    fn tells_compression(&self) -> bool {
        false
    }

    /// Whether two names of a directory are one in other letters, so that a file can be renamed from one to the other.
    fn is_in_other_letters(&self, _one: &[u8], _other: &[u8], _cx: &Cx) -> Result<bool> {
        Ok(false)
    }

    /// The permissions that it gets where chmod(2) wants others than it has.
    ///
    /// # Errors
    /// EPERM: its file system does not keep such.
    fn permissions(&self, _this: &Inode, _now: u32, wanted: u32, _cx: &Cx) -> Result<u32> {
        Ok(wanted)
    }

    /// Whether its file system keeps that it belongs to that user and group.
    fn can_be_owned_by(&self, _uid: u32, _gid: u32, _cx: &Cx) -> Result<bool> {
        Ok(true)
    }

    /// Whether a process may do what the permission bits do not grant it.
    fn admits(&self, _process: u32, _cx: &Cx) -> bool {
        false
    }

    /// Whether chmod, chown and utimes work on it.
    fn may_change_metadata(&self) -> Result<()> {
        Ok(())
    }
}

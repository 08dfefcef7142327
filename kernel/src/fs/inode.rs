//! [`Inode`]: a file, whatever its names are. What its file system has to say for it is [`InodeOps`].
//!
//! An inode is owned by the directories that name it, by the descriptions that have it open, by mappings and working directories,
//! and dies with the last of them: a deleted file's memory comes back at once when nobody has it open.
//!
//! File systems that hold their tree in memory (tmpfs) own their inodes through their directories. Those that make inodes up as
//! they are asked for (procfs) enter them in an [`InodeCache`](super::InodeCache), which owns them.
//!
//! Lock order: an inode's metadata, then what its file system locks to bring them up to date (a directory's entries, a file's pages).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};

use bitflags::bitflags;
use frame::Cx;
use refs::{SpinGuard, SpinLock, StrongRc, TempRc, WeakRc};

use super::acl::AclKind;
use super::inode_flags::InodeFlags;
use super::leases::FileLeases;
use super::locks::FileLocks;
use super::notify::{self, Watchers};
use super::{DeviceNumber, FileKind, FileSystem, InodeOps, Metadata, Timestamp, VfsCaller};
use crate::credentials::FileCapabilities;
use crate::error::{Errno, Result};
use crate::heap::object_bytes;
use crate::step::Step;

/// Of a name in a file system that is longer than this only the end is told.
const LONGEST_NAME: usize = 4096;

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
        self.is_called(parent, |own| *own == *name)
    }

    /// Whether it is in this directory, and `is_name` says that it is called so.
    pub fn is_called(&self, parent: &TempRc<'_, Inode>, is_name: impl FnOnce(&[u8]) -> bool) -> bool {
        self.parent == Some(parent.downgrade()) && is_name(&self.name)
    }
}

/// The right to write an inode's content, as a description has that is open for writing: no program is run from it, and whoever takes a lease sees that it is written.
pub struct WriteAccess<'a>(&'a Inode);

impl Drop for WriteAccess<'_> {
    fn drop(&mut self) {
        self.0.end_writing();
    }
}

/// Extended attributes: values by name.
pub type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

bitflags! {
    /// Which extended attributes a file has of those that decide about its use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct NotedAttributes: u8 {
        /// It gives a program capabilities, which writing to it takes away.
        const CAPABILITIES = 1;
        /// It has an access control list.
        const ACCESS_ACL = 2;
        /// It is a directory that has one for what is made in it.
        const DEFAULT_ACL = 4;
    }
}

/// Their names.
const NOTED: [(&[u8], NotedAttributes); 3] = [
    (FileCapabilities::ATTRIBUTE, NotedAttributes::CAPABILITIES),
    (AclKind::Access.attribute(), NotedAttributes::ACCESS_ACL),
    (AclKind::Default.attribute(), NotedAttributes::DEFAULT_ACL),
];

/// So many nanoseconds Linux's times of files lie apart at least: a tick, of which Debian's kernel has 250 a second.
const COARSE: u64 = 4_000_000;

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
    /// Who watches it.
    pub watchers: Watchers,
    /// How many mounts have it as their mount point: a quick look before the mount table is searched.
    pub mounts: AtomicU32,
    /// What a driver keeps with it: the pipe of a FIFO, the listener of a socket.
    pub attachment: SpinLock<Option<Box<dyn Any + Send + Sync>>>,
    attributes: SpinLock<Option<Box<Attributes>>>,
    /// Whether they are still where the file system keeps them.
    must_load: AtomicBool,
    /// [`NotedAttributes`].
    noted: AtomicU8,
    /// [`InodeFlags`].
    flags: AtomicU8,
    metadata: SpinLock<Metadata>,
    /// Whether its file system has kept the metadata as they are, and is to be told when they change.
    is_kept: AtomicBool,
    /// Whether somebody may have looked at the metadata since content was last written.
    was_looked_at: AtomicBool,
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
        let must_load = AtomicBool::new(ops.keeps_attributes());
        Inode {
            must_load,
            number,
            kind: FileKind::of_mode(metadata.mode).unwrap_or(FileKind::Regular),
            device: metadata.device,
            file_system,
            ops,
            dentry: SpinLock::new(dentry),
            locks: FileLocks::default(),
            leases: FileLeases::default(),
            watchers: Watchers::default(),
            mounts: AtomicU32::new(0),
            attachment: SpinLock::new(None),
            attributes: SpinLock::new(None),
            noted: AtomicU8::new(0),
            flags: AtomicU8::new(0),
            metadata: SpinLock::new(metadata),
            is_kept: AtomicBool::new(false),
            was_looked_at: AtomicBool::new(true),
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
        self.was_looked_at.store(true, Ordering::Relaxed);
        self.ops.refresh(&mut metadata, cx);
        f(&metadata)
    }

    /// What stat(2) would tell of it, for its file system, which tells nobody.
    pub fn metadata_to_keep(&self, cx: &Cx) -> Metadata {
        let mut metadata = self.metadata.lock(cx);
        self.ops.refresh(&mut metadata, cx);
        *metadata
    }

    /// As [`metadata`](Self::metadata), of an inode of a layer, by the inode above it, whose metadata are locked.
    pub fn metadata_below(&self, cx: &Cx) -> Metadata {
        // Stacked file systems come first, and none is stacked on itself.
        let mut metadata = self.metadata.lock_nested(cx);
        self.was_looked_at.store(true, Ordering::Relaxed);
        self.ops.refresh(&mut metadata, cx);
        *metadata
    }

    /// It was read at that time, as the inode above it says, whose metadata are locked.
    pub fn accessed_below(&self, when: Timestamp, cx: &Cx) {
        self.is_changed();
        self.metadata.lock_nested(cx).accessed = when;
    }

    /// What keeps the metadata and attributes of an inode: itself, or where it is of a stacked file system, one of a layer.
    pub fn kept<'cx>(this: &TempRc<'cx, Inode>, cx: &'cx Cx) -> TempRc<'cx, Inode> {
        this.ops.real(cx).unwrap_or_else(|| this.clone())
    }

    /// Changes the metadata of a file where they are kept, to be written.
    ///
    /// # Errors
    /// Those of copying it there; it may pause.
    pub fn change_where_kept(
        this: &TempRc<'_, Inode>,
        me: &dyn VfsCaller,
        cx: &Cx,
        change: impl FnOnce(&mut Metadata),
    ) -> Step<()> {
        match this.ops.real_to_change(this, Some(me), cx)? {
            None if this.ops.keeps_metadata() => {
                let before = this.metadata(cx);
                let mut new = before;
                change(&mut new);
                this.ops.keep_metadata(this, &before, &new, cx)?;
                this.change(cx, |metadata| *metadata = new);
            }
            None => this.change(cx, change),
            Some(real) => {
                real.change(cx, change);
                this.bring_up_to_date(cx);
            }
        }
        Ok(())
    }

    /// Has an inode of a stacked file system know what was changed in a layer.
    #[inline]
    pub fn bring_up_to_date(&self, cx: &Cx) {
        if self.file_system.get(cx).depth > 0 {
            self.with_metadata(cx, |_| ());
        }
    }

    /// Whether it is a directory that was removed: nothing can be made in it.
    pub fn is_removed(&self, cx: &Cx) -> bool {
        self.with_metadata(cx, |metadata| metadata.links == 0)
    }

    /// Whether it has names, as far as it keeps them: for destructors, which have no context.
    pub fn has_names(&self) -> bool {
        self.metadata.with(|metadata| metadata.links > 0)
    }

    /// Its last description is to be left: gives up what it counts for in its file system, and says how many bytes come back with it at least. `None` if it is to end at once.
    pub(super) fn leave(&self) -> Option<usize> {
        let may_be_left = matches!(self.kind, FileKind::Regular | FileKind::Fifo);
        if !may_be_left || self.has_names() || self.watchers.are_any() || self.leases.has_any() {
            return None;
        }
        Some(object_bytes::<Inode>() + self.ops.leave()?)
    }

    /// Its extended attributes by name.
    ///
    /// # Errors
    /// Those of the file system that keeps them.
    #[inline]
    pub fn attributes<'a>(&'a self, cx: &'a Cx) -> Step<SpinGuard<'a, Option<Box<Attributes>>>> {
        self.load_attributes(cx)?;
        Ok(self.attributes.lock(cx))
    }

    /// Sees to it that all attributes are here.
    ///
    /// # Errors
    /// Those of the file system that keeps them.
    #[inline(always)]
    pub fn load_attributes(&self, cx: &Cx) -> Step<()> {
        if self.must_load.load(Ordering::Acquire) { self.load_attributes_now(cx) } else { Ok(()) }
    }

    #[cold]
    fn load_attributes_now(&self, cx: &Cx) -> Step<()> {
        let loaded = self.ops.load_attributes(self, cx)?;
        let mut attributes = self.attributes.lock(cx);
        if self.must_load.load(Ordering::Relaxed) {
            *attributes = self.noted(loaded);
            self.must_load.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Gives an inode that nobody knows yet its attributes.
    pub fn begin_with_attributes(&mut self, attributes: Vec<(Vec<u8>, Vec<u8>)>) {
        let attributes = self.noted(attributes);
        *self.attributes.get_mut() = attributes;
        self.must_load.store(false, Ordering::Release);
    }

    /// Attributes that it has from now on, which are noted.
    fn noted(&self, attributes: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Box<Attributes>> {
        if attributes.is_empty() {
            return None;
        }
        let attributes = attributes.into_iter().collect();
        self.note_attributes(&attributes);
        Some(Box::new(attributes))
    }

    /// Which attributes it has of those that decide about its use.
    #[inline(always)]
    pub fn noted_attributes(&self) -> NotedAttributes {
        NotedAttributes::from_bits_retain(self.noted.load(Ordering::Relaxed))
    }

    /// Notes that; its attributes, which are these, are locked.
    pub(super) fn note_attributes(&self, attributes: &Attributes) {
        let mut noted = NotedAttributes::empty();
        for (name, note) in NOTED {
            noted.set(note, attributes.contains_key(name));
        }
        self.noted.store(noted.bits(), Ordering::Relaxed);
    }

    /// Its attributes could not be read: who asks about access control lists tries again, and gets the error.
    pub fn note_unreadable_attributes(&self) {
        let lists = NotedAttributes::ACCESS_ACL | NotedAttributes::DEFAULT_ACL;
        self.noted.store(lists.bits(), Ordering::Relaxed);
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
        self.is_changed();
        let mut metadata = self.metadata.lock(cx);
        self.was_looked_at.store(true, Ordering::Relaxed);
        change(&mut metadata)
    }

    /// As [`change`](Self::change), by its file system, which says what it has kept.
    pub fn change_kept<R>(&self, cx: &Cx, change: impl FnOnce(&mut Metadata) -> R) -> R {
        change(&mut self.metadata.lock(cx))
    }

    /// Whoever keeps its metadata is told that they change.
    #[inline(always)]
    fn is_changed(&self) {
        if self.is_kept.load(Ordering::Relaxed) {
            self.must_be_kept();
        }
    }

    #[cold]
    fn must_be_kept(&self) {
        if self.is_kept.swap(false, Ordering::AcqRel) {
            self.ops.must_be_kept(self);
        }
    }

    /// Its file system is about to keep the metadata as they are from now on: it is told when they change again.
    pub fn begin_keeping(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    /// Notes that its content changed just now.
    #[inline]
    pub fn touch_modified(&self, cx: &Cx) {
        let now = Timestamp::now();
        self.is_changed();
        let mut metadata = self.metadata.lock(cx);
        metadata.modified = now;
        metadata.changed = now;
    }

    /// Notes that its content was written just now. Where that was noted less than [`COARSE`] ago, and nobody has looked at it since, the time stays as it is: Linux's times of files are no finer. So writes that follow each other closely, each with an fsync(2), do not change the inode each time.
    pub fn touch_written(&self, cx: &Cx) {
        let now = Timestamp::now();
        {
            let mut metadata = self.metadata.lock(cx);
            let is_recent = now.nanoseconds_since(metadata.modified).is_some_and(|passed| passed < COARSE);
            if !self.was_looked_at.swap(false, Ordering::Relaxed) && is_recent {
                return;
            }
            metadata.modified = now;
            metadata.changed = now;
        }
        self.is_changed();
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
            self.is_changed();
            self.ops.accessed(self, metadata.accessed, cx);
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

    /// Its name as seen from its file system's root, with `//deleted` behind if it has none any more. Of one that is very long only the end is told.
    pub fn name_in_file_system(this: &TempRc<'_, Inode>, cx: &Cx) -> Vec<u8> {
        // From its end to its start.
        let (mut name, mut is_removed) = (Vec::new(), false);
        let mut at = Some(this.clone());
        while let Some(inode) = at {
            let dentry = inode.dentry.lock(cx);
            is_removed |= dentry.is_removed;
            if dentry.parent.is_some() && name.len() < LONGEST_NAME {
                name.extend(dentry.name.iter().rev());
                name.push(b'/');
            }
            let parent = dentry.parent;
            drop(dentry);
            at = parent.and_then(|parent| parent.upgrade(cx).ok());
        }
        if name.is_empty() {
            name.push(b'/');
        }
        name.reverse();
        if is_removed {
            name.extend_from_slice(b"//deleted");
        }
        name
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

    /// The right to write it for a moment.
    ///
    /// # Errors
    /// As for [`begin_writing`](Self::begin_writing).
    pub fn write_access(&self) -> Result<WriteAccess<'_>> {
        self.begin_writing()?;
        Ok(WriteAccess(self))
    }

    /// One more description may write it.
    ///
    /// # Errors
    /// ETXTBSY while a program runs from it.
    pub fn begin_writing(&self) -> Result<()> {
        let begun =
            self.writers.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |count| (count >= 0).then(|| count + 1));
        begun.map(|_| ()).map_err(|_| Errno::ETXTBSY)
    }

    /// One description less may write it.
    pub fn end_writing(&self) {
        self.writers.fetch_sub(1, Ordering::Relaxed);
    }

    /// One description more can read it, and not write.
    #[inline(always)]
    pub(super) fn begin_reading(&self) {
        self.readers.fetch_add(1, Ordering::SeqCst);
    }

    /// One description less can read it, and not write.
    #[inline(always)]
    pub(super) fn end_reading(&self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it is open for writing.
    pub fn has_writers(&self) -> bool {
        self.writers.load(Ordering::SeqCst) > 0
    }

    /// Whether it is open in no more than one description.
    pub fn is_open_once(&self) -> bool {
        let writers = u32::try_from(self.writers.load(Ordering::SeqCst)).unwrap_or(0);
        writers + self.readers.load(Ordering::SeqCst) <= 1
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

impl Drop for Inode {
    #[inline]
    fn drop(&mut self) {
        if self.watchers.are_any() {
            notify::inode_ends(self);
        }
    }
}

//! [`Node`]: a file of a volume, and what changes names.
//!
//! Locks: the file system's `tree` around every change of names; then the volume's state; then, with none of them, metadata and `dentry`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::content::{Content, Stored};
use super::file::DirectFile;
use super::format::{Change, Done, Problem};
use super::{Format, Listed, Volume};
use crate::block::{Cache, Depth, Keep, ReadAhead, SyncProgress, VolumeSync};
use crate::error::{Errno, Result};
use crate::fs::known_names::KnownNames;
use crate::fs::{
    Creation, Dentry, DirectoryEntry, File, FileKind, Inode, InodeFlags, InodeOps, Lseek, Metadata, Named, NextExtent,
    OpenFlags, Rename, Timestamp, VfsCaller, look_for_closed,
};
use crate::memory::{Mapped, Pages};
use crate::step::{Interruption, Step, Stop};

/// A file of a volume.
pub(super) struct Node<F: Format> {
    pub file: StrongRc<Stored<F>>,
    /// The directory that it was found in, which is there as long as it is.
    parent: SpinLock<Option<StrongRc<Inode>>>,
    /// The content of a regular file.
    pub content: Option<StrongRc<Cache>>,
    pub ahead: ReadAhead,
    pub mapped: Mapped,
    /// Held over each step that changes the content.
    pub writing: SpinLock<()>,
    /// There is something behind the end that has to go.
    pub is_cutting: AtomicBool,
    /// Counts how often mappings were taken away in order to see who writes; and the count for which that is being done, or 0.
    pub epoch: AtomicU32,
    pub ending_epoch: AtomicU32,
    /// Which failures to write were told.
    seen: AtomicU64,
    /// Its metadata are not as on the disk.
    is_unkept: AtomicBool,
    /// It has no name, and is deleted at its end.
    is_nameless: AtomicBool,
    /// It had none from the start, and may get one.
    may_be_named: AtomicBool,
    /// The numbers of a directory's names, as far as they were looked up; `None`: there is no such name.
    names: KnownNames<Option<u64>>,
}

impl<F: Format> Node<F> {
    pub fn new(
        volume: &Volume<F>,
        (number, node): (u64, F::Node),
        parent: Option<StrongRc<Inode>>,
        metadata: &Metadata,
        cx: &Cx,
    ) -> Self {
        let file = StrongRc::new(Stored::new(volume, number, node, (metadata.size, metadata.blocks)));
        let is_regular = FileKind::of_mode(metadata.mode) == Some(FileKind::Regular);
        let content = is_regular.then(|| Cache::new(Box::new(Content::new(file.share(), volume.on().disk.device)), cx));
        Node {
            file,
            parent: SpinLock::new(parent),
            content,
            ahead: ReadAhead::default(),
            mapped: Mapped::default(),
            writing: SpinLock::new(()),
            is_cutting: AtomicBool::new(false),
            epoch: AtomicU32::new(1),
            ending_epoch: AtomicU32::new(0),
            seen: AtomicU64::new(0),
            is_unkept: AtomicBool::new(false),
            is_nameless: AtomicBool::new(false),
            may_be_named: AtomicBool::new(false),
            names: KnownNames::new(volume.names.share()),
        }
    }

    pub(super) fn volume<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Volume<F>>> {
        self.file.get(cx).volume.upgrade(cx).map_err(|_| Errno::EIO)
    }

    fn find<'cx>(&self, this: &TempRc<'cx, Inode>, name: &[u8], cx: &'cx Cx) -> Step<TempRc<'cx, Inode>> {
        let volume = self.volume(cx)?;
        if !F::NUMBERS_STAY {
            let file = self.file.get(cx);
            let before = volume.format.forgotten(cx);
            let number = volume.ask(cx, |format, view| format.look_up(&file.node, name, view))?;
            let found = volume.inode(number, this, name, cx);
            // The file whose number it was may have been forgotten in between, on another core: then it says nothing.
            if volume.format.forgotten(cx) != before {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
            return found;
        }
        let (known, changes) = self.names.get(name, cx);
        let number = match known {
            Some(number) => number,
            None => {
                let file = self.file.get(cx);
                let found = match volume.ask(cx, |format, view| format.look_up(&file.node, name, view)) {
                    Ok(number) => Some(number),
                    Err(Stop::Error(Errno::ENOENT)) => None,
                    Err(stop) => return Err(stop),
                };
                self.names.remember(name, found, Some(changes), cx);
                found
            }
        };
        volume.inode(number.ok_or(Errno::ENOENT)?, this, name, cx)
    }

    /// What is there now under a name that is to be changed, with the tree locked.
    fn find_now<'cx>(&self, this: &TempRc<'cx, Inode>, name: &[u8], cx: &'cx Cx) -> Step<Option<TempRc<'cx, Inode>>> {
        match self.find(this, name, cx) {
            Ok(inode) => Ok(Some(inode)),
            Err(Stop::Error(Errno::ENOENT)) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// Writes metadata that have changed to the inode on the disk, in a change of the volume.
    pub(super) fn keep(&self, this: &Inode, cx: &Cx) -> Step<()> {
        if self.is_nameless.load(Ordering::Relaxed) || !self.is_unkept.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        this.begin_keeping();
        let change = Change::Keep(this.number, this.metadata_to_keep(cx), this.flags());
        let kept = self.volume(cx).map_err(Stop::from).and_then(|volume| volume.change(cx, &change, |_, _| Ok(())));
        kept.map(drop).inspect_err(|_| self.is_unkept.store(true, Ordering::Release))
    }

    /// One step of what the volume's task does so that nothing of it is left to be written. `progress` begins as nothing.
    pub(super) fn flush(&self, this: &Inode, progress: &mut Flush, waker: Option<refs::Waker>, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        if !progress.has_begun {
            file.is_noted.store(false, Ordering::Release);
            progress.has_begun = true;
        }
        if let Some(content) = &self.content {
            drop(self.lock_content(&*self.volume(cx)?, cx)?);
            if !progress.is_unmapped {
                if self.end_mapped(cx)? {
                    this.touch_modified(cx);
                }
                progress.is_unmapped = true;
            }
            content.get(cx).sync(0..progress.end(file.size()), Depth::Written, &mut progress.pages, waker, cx)?;
        }
        self.keep(this, cx)?;
        file.is_busy.store(false, Ordering::Release);
        let is_clean = self.content.as_ref().is_none_or(|content| content.get(cx).is_clean(cx));
        if !is_clean || file.is_noted.load(Ordering::Acquire) {
            file.note_dirty(false);
        }
        Ok(())
    }

    pub(super) fn of(inode: &Inode) -> Result<&Self> {
        inode.ops_as::<Self>().ok_or(Errno::EXDEV)
    }
}

/// How far a file's [`flush`](Node::flush) is.
#[derive(Default)]
pub(super) struct Flush {
    has_begun: bool,
    is_unmapped: bool,
    end: Option<u64>,
    pages: SyncProgress,
}

impl Flush {
    /// Up to where it goes: what is written behind that meanwhile comes next time.
    fn end(&mut self, size: u64) -> u64 {
        *self.end.get_or_insert(size)
    }
}

impl<F: Format> Drop for Node<F> {
    fn drop(&mut self) {
        if let Some(content) = &self.content {
            content.with(Cache::close);
        }
        let is_nameless = self.is_nameless.load(Ordering::Relaxed);
        if is_nameless {
            self.file.with(|file| file.desk.with(|desk| desk.doom(file.number, self.content.take())));
        }
    }
}

/// A directory has other names than before.
fn directory_changed<N>(directory: &Inode, done: &Done<N>, now: Timestamp, cx: &Cx) {
    directory.change_kept(cx, |metadata| {
        if let Some(after) = done.of(directory.number) {
            (metadata.links, metadata.size, metadata.blocks) = (after.links, after.size, after.blocks);
        }
        (metadata.modified, metadata.changed) = (now, now);
    });
}

impl<F: Format> Node<F> {
    /// A directory has other names than before, and maybe more blocks.
    fn take_directory(&self, this: &Inode, done: &Done<F::Node>, now: Timestamp, cx: &Cx) {
        self.file.get(cx).take(done);
        directory_changed(this, done, now, cx);
    }

    /// What replaces another file gets its blocks first: after a crash there is the one or the other, with its content.
    fn allocate_before_replacing<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        to: &TempRc<'cx, Inode>,
        to_name: &[u8],
        cx: &'cx Cx,
    ) -> Step<()> {
        let Some(moved) = self.find_now(this, name, cx)? else { return Ok(()) };
        let Ok(node) = Self::of(&moved) else { return Ok(()) };
        if node.file.with(Stored::is_delayed) && Self::of(to)?.find_now(to, to_name, cx)?.is_some() {
            drop(node.lock_content(&*self.volume(cx)?, cx)?);
        }
        Ok(())
    }

    /// An inode has lost a name.
    fn lost_name(
        &self,
        inode: &TempRc<'_, Inode>,
        directory: &TempRc<'_, Inode>,
        name: &[u8],
        done: &Done<F::Node>,
        now: Timestamp,
        cx: &Cx,
    ) {
        let left = done.of(inode.number).map_or(0, |after| after.links);
        inode.change_kept(cx, |metadata| (metadata.links, metadata.changed) = (left, now));
        {
            let mut dentry = inode.dentry.lock(cx);
            if left == 0 || dentry.is(directory, name) {
                dentry.is_removed = true;
            }
        }
        if left > 0 {
            return;
        }
        if let Ok(node) = Self::of(inode) {
            node.is_nameless.store(true, Ordering::Relaxed);
        }
        let cached = self.volume(cx).ok().and_then(|volume| volume.inodes.remove(inode.number, cx));
        if let Ok(node) = Self::of(inode) {
            node.note_nameless(inode.downgrade(), inode.number, cx);
        }
        if inode.owners() > 1 {
            look_for_closed();
        }
        drop(cached);
    }

    /// An inode has no name, and is found elsewhere as long as it is used.
    fn note_nameless(&self, inode: WeakRc<Inode>, number: u64, cx: &Cx) {
        let file = self.file.get(cx);
        file.desk.get(cx).notes.lock(cx).nameless.insert(number, inode);
    }

    /// A new inode has the flags of its directory, which may not be on the disk yet.
    fn inherit_flags(directory: &Inode, inode: &Inode) -> Result<()> {
        let flags = directory.flags() & InodeFlags::INHERITED;
        if F::HAS_FLAGS && flags != inode.flags() {
            inode.set_flags(flags);
            Self::of(inode)?.must_be_kept(inode);
        }
        Ok(())
    }

    /// An inode has come to another place.
    fn has_moved(&self, to: &TempRc<'_, Inode>, name: &[u8], inode: &Inode, now: Timestamp, cx: &Cx) {
        *inode.dentry.lock(cx) = Dentry::new(to, name);
        inode.change_kept(cx, |metadata| metadata.changed = now);
        if let Ok(node) = Self::of(inode) {
            let before = core::mem::replace(&mut *node.parent.lock(cx), to.share());
            drop(before);
        }
    }
}

impl<F: Format> InodeOps for Node<F> {
    fn refresh(&self, metadata: &mut Metadata, _cx: &Cx) {
        self.file.with(|file| {
            if file.is_written {
                metadata.size = file.size();
                metadata.blocks = file.sectors();
            }
        });
    }

    fn must_be_kept(&self, _this: &Inode) {
        self.is_unkept.store(true, Ordering::Release);
        if !self.is_nameless.load(Ordering::Relaxed) {
            self.file.with(|file| file.note_dirty(false));
        }
    }

    fn must_stay(&self) -> bool {
        self.file.with(|file| file.is_busy.load(Ordering::Acquire))
    }

    fn may_change_metadata(&self) -> Result<()> {
        if self.file.with(|file| file.is_written) { Ok(()) } else { Err(Errno::EROFS) }
    }

    fn is_in_other_letters(&self, one: &[u8], other: &[u8], cx: &Cx) -> Result<bool> {
        Ok(one != other && self.volume(cx)?.format.is_same_name(one, other))
    }

    fn permissions(&self, this: &Inode, now: u32, wanted: u32, cx: &Cx) -> Result<u32> {
        self.volume(cx)?.format.permissions(this.kind, now, wanted)
    }

    fn can_be_owned_by(&self, uid: u32, gid: u32, cx: &Cx) -> Result<bool> {
        Ok(self.volume(cx)?.format.can_be_owned_by(uid, gid))
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        self.find(this, name, cx)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let file = self.file.get(cx);
        self.volume(cx)?.ask(cx, |format, view| {
            format.list(&file.node, from, view, &mut |Listed { name, number, kind, next }| {
                let kind = match kind {
                    Some(kind) => kind,
                    None => {
                        let (_, metadata) = format.node(number, view)?;
                        FileKind::of_mode(metadata.mode).ok_or(Problem::Corrupt("an inode of no kind"))?
                    }
                };
                Ok(each(DirectoryEntry { name, number, kind, next }))
            })
        })
    }

    fn create<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let volume = self.volume(cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let (mut done, now) = volume.change(cx, &Change::Create(this.number, name, what), |_, _| Ok(()))?;
        self.names.forget(name, cx);
        self.take_directory(this, &done, now, cx);
        let (number, node) = done.made.take().ok_or(Errno::EIO)?;
        let metadata = *done.of(number).ok_or(Errno::EIO)?;
        let inode = volume.enter(number, Some((this, name)), node, metadata, Some(what.attributes.to_vec()), cx)?;
        Self::inherit_flags(this, &inode)?;
        Ok(inode)
    }

    fn create_nameless(&self, this: &TempRc<'_, Inode>, what: &Creation<'_>, cx: &Cx) -> Step<StrongRc<Inode>> {
        let volume = self.volume(cx)?;
        let (mut done, _) = volume.change(cx, &Change::CreateNameless(this.number, what), |_, _| Ok(()))?;
        let (number, node) = done.made.take().ok_or(Errno::EIO)?;
        let metadata = *done.of(number).ok_or(Errno::EIO)?;
        let name = alloc::format!("#{number}");
        let inode =
            volume.make(number, Some((this, name.as_bytes())), node, metadata, Some(what.attributes.to_vec()), cx)?;
        inode.dentry.lock(cx).is_removed = true;
        let node = Self::of(&inode)?;
        node.is_nameless.store(true, Ordering::Relaxed);
        node.may_be_named.store(true, Ordering::Relaxed);
        Self::inherit_flags(this, &inode)?;
        let inode = StrongRc::new(inode);
        self.note_nameless(inode.downgrade(), number, cx);
        Ok(inode)
    }

    fn link(&self, this: &TempRc<'_, Inode>, name: &[u8], target: &TempRc<'_, Inode>, cx: &Cx) -> Step<()> {
        let volume = self.volume(cx)?;
        let node = Self::of(target)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let metadata = target.metadata(cx);
        // A removed file stays removed; one that never had a name (O_TMPFILE) may get one.
        if metadata.links == 0 && !node.may_be_named.load(Ordering::Relaxed) {
            return Err(Errno::ENOENT.into());
        }
        let share = target.share().ok_or(Errno::ENOENT)?;
        let change = Change::Link(target.number, metadata, this.number, name);
        let (done, now) = volume.change(cx, &change, |_, _| Ok(()))?;
        self.names.forget(name, cx);
        self.take_directory(this, &done, now, cx);
        let links = done.of(target.number).map_or(metadata.links + 1, |after| after.links);
        target.change_kept(cx, |metadata| (metadata.links, metadata.changed) = (links, now));
        if node.is_nameless.swap(false, Ordering::Relaxed) {
            node.may_be_named.store(false, Ordering::Relaxed);
            self.has_moved(this, name, target, now, cx);
            self.file.get(cx).desk.get(cx).notes.lock(cx).nameless.remove(&target.number);
            volume.inodes.insert(share, cx);
            // What was written to it is kept from now on.
            target.begin_keeping();
            node.must_be_kept(target);
        }
        Ok(())
    }

    fn unlink(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let Named { directory: this, name, .. } = *at;
        let volume = self.volume(cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let inode = self.find_now(this, name, cx)?.ok_or(Errno::ESTALE)?;
        at.check(Some(&inode))?;
        if inode.kind == FileKind::Directory {
            return Err(Errno::EISDIR.into());
        }
        let (done, now) = volume.change(cx, &Change::Unlink(this.number, name), |_, _| Ok(()))?;
        self.names.forget(name, cx);
        self.take_directory(this, &done, now, cx);
        self.lost_name(&inode, this, name, &done, now, cx);
        Ok(())
    }

    fn remove_directory(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let Named { directory: this, name, .. } = *at;
        let volume = self.volume(cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let inode = self.find_now(this, name, cx)?.ok_or(Errno::ESTALE)?;
        at.check(Some(&inode))?;
        if inode.kind != FileKind::Directory {
            return Err(Errno::ENOTDIR.into());
        }
        let (done, now) = volume.change(cx, &Change::RemoveDirectory(this.number, name), |_, _| Ok(()))?;
        self.names.forget(name, cx);
        self.take_directory(this, &done, now, cx);
        self.lost_name(&inode, this, name, &done, now, cx);
        Ok(())
    }

    fn rename(&self, from: &Named<'_, '_>, into: &Named<'_, '_>, how: Rename, cx: &Cx) -> Step<()> {
        let Named { directory: this, name, .. } = *from;
        let Named { directory: to, name: to_name, .. } = *into;
        let volume = self.volume(cx)?;
        self.allocate_before_replacing(this, name, to, to_name, cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let target = Self::of(to)?;
        let moved = self.find_now(this, name, cx)?.ok_or(Errno::ESTALE)?;
        let existing = target.find_now(to, to_name, cx)?;
        from.check(Some(&moved))?;
        into.check(existing.as_ref())?;
        if moved.kind == FileKind::Directory && Inode::is_within(to, &moved, cx) {
            return Err(Errno::EINVAL.into());
        }
        if how == Rename::Exchange
            && existing
                .as_ref()
                .is_some_and(|other| other.kind == FileKind::Directory && Inode::is_within(this, other, cx))
        {
            return Err(Errno::EINVAL.into());
        }
        let is_same = existing.as_ref().is_some_and(|other| other.downgrade() == moved.downgrade());
        // The same name in other letters is one that nothing has.
        let changes_case = is_same && self.is_in_other_letters(name, to_name, cx)?;
        if is_same && !changes_case && how != Rename::NoReplace {
            return Ok(());
        }
        let existing = existing.filter(|_| !changes_case);
        let change = Change::Rename((this.number, name), (to.number, to_name), how);
        let (done, now) = volume.change(cx, &change, |_, _| Ok(()))?;
        self.names.forget(name, cx);
        target.names.forget(to_name, cx);
        self.take_directory(this, &done, now, cx);
        target.take_directory(to, &done, now, cx);
        match (&existing, how) {
            (Some(other), Rename::Exchange) => self.has_moved(this, name, other, now, cx),
            (Some(other), _) => self.lost_name(other, to, to_name, &done, now, cx),
            (None, _) => {}
        }
        self.has_moved(to, to_name, &moved, now, cx);
        Ok(())
    }

    fn read_link(&self, _me: &dyn VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
        let file = self.file.get(cx);
        self.volume(cx)?.ask(cx, |format, view| format.read_link(&file.node, view))
    }

    fn open(
        &self,
        this: &TempRc<'_, Inode>,
        flags: OpenFlags,
        _me: &dyn VfsCaller,
        _cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        if self.content.is_none() {
            return Ok(None);
        }
        Ok(DirectFile::<F>::of(this, flags)?.map(|file| Box::new(file) as Box<dyn File>))
    }

    fn read(&self, _this: &Inode, offset: u64, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        self.read_content(offset, to, Keep::Pages(&self.ahead), cx)
    }

    fn write(
        &self,
        this: &Inode,
        offset: Option<u64>,
        limit: u64,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<(usize, u64)> {
        self.write_content(this, offset, limit, from, cx)
    }

    fn set_size(&self, this: &Inode, size: u64, cx: &Cx) -> Step<()> {
        self.set_content_size(this, size, cx)
    }

    fn allocate(&self, this: &Inode, mode: u32, range: Range<u64>, done: &mut u64, cx: &Cx) -> Step<()> {
        self.allocate_content(this, mode, range, done, cx)
    }

    fn seek(&self, _this: &Inode, to: Lseek, cx: &Cx) -> Step<u64> {
        self.seek_content(to, cx)
    }

    fn extent(&self, _this: &Inode, range: Range<u64>, cx: &Cx) -> Step<NextExtent> {
        let (file, volume) = (self.file.get(cx), self.volume(cx)?);
        if file.is_delayed() {
            // All of it gets a place first.
            drop(self.lock_content(&volume, cx)?);
        }
        volume.ask(cx, |format, view| format.extent(&file.node, range.clone(), view))
    }

    fn pages(&self) -> Option<&dyn Pages> {
        self.content.as_ref().map(|_| self as &dyn Pages)
    }

    fn has_flags(&self) -> bool {
        F::HAS_FLAGS
    }

    fn read_ahead(&self, pages: Range<u64>, cx: &Cx) -> Step<()> {
        if self.content.is_some() { self.read_content_ahead(pages, cx) } else { Ok(()) }
    }

    fn direct_alignment(&self, cx: &Cx) -> Option<u32> {
        self.content.as_ref()?;
        Some(self.volume(cx).ok()?.on().disk.device.geometry().logical_block)
    }

    fn tells_compression(&self) -> bool {
        // Where there are flags of inodes, that is one of them.
        F::HAS_FLAGS
    }

    fn keeps_attributes(&self) -> bool {
        true
    }

    fn keeps_acls(&self) -> bool {
        F::HAS_ACLS
    }

    fn load_attributes(&self, _this: &Inode, cx: &Cx) -> Step<Vec<(Vec<u8>, Vec<u8>)>> {
        let file = self.file.get(cx);
        self.volume(cx)?.ask(cx, |format, view| format.attributes(&file.node, view))
    }

    fn keep_attribute(&self, this: &Inode, name: &[u8], value: Option<&[u8]>, cx: &Cx) -> Step<()> {
        let file = self.file.get(cx);
        let change = Change::Attribute(this.number, name, value);
        self.volume(cx)?.change(cx, &change, |done, _| {
            file.take_blocks(done);
            Ok(())
        })?;
        Ok(())
    }

    fn sync(
        &self,
        this: &Inode,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<refs::Waker>,
        cx: &Cx,
    ) -> Step<()> {
        let file = self.file.get(cx);
        if !file.is_written {
            return Ok(());
        }
        let volume = self.volume(cx)?;
        loop {
            progress.volume = match progress.volume {
                VolumeSync::Pages => {
                    if let Some(content) = &self.content {
                        let content = content.get(cx);
                        if file.is_delayed() {
                            self.lock_content(&volume, cx).map(drop).map_err(|stop| match stop {
                                // Nothing is written any more: so says every sync.
                                Stop::Error(Errno::EROFS) => Errno::EIO.into(),
                                stop => stop,
                            })?;
                        }
                        if content.is_mapped_to_write(cx) {
                            progress.volume = VolumeSync::All(file.desk.get(cx).want_sync());
                            continue;
                        }
                        content.sync(range.clone(), Depth::Written, progress, waker, cx)?;
                        content.check(&self.seen)?;
                    }
                    if depth == Depth::Written && F::WRITES_THROUGH_DISK {
                        progress.begin_again();
                        progress.volume = VolumeSync::Disk;
                        continue;
                    }
                    if depth == Depth::Written {
                        return Ok(());
                    }
                    self.keep(this, cx)?;
                    volume.begin_commit(cx)
                }
                VolumeSync::Disk => {
                    let on = volume.on();
                    return on.disk.cache(cx).sync(on.bytes(), Depth::Written, progress, waker, cx);
                }
                VolumeSync::All(number) => {
                    volume.is_synced(number, waker, cx)?;
                    return match &self.content {
                        Some(content) => Ok(content.get(cx).check(&self.seen)?),
                        None => Ok(()),
                    };
                }
                VolumeSync::Commit(number, is_enough) => {
                    volume.is_committed(number, waker, cx)?;
                    if is_enough {
                        return Ok(());
                    }
                    VolumeSync::Device
                }
                VolumeSync::Device => {
                    let disk = volume.on().disk.cache(cx);
                    return disk.sync(0..u64::MAX, Depth::Kept, progress, waker, cx);
                }
            };
            progress.begin_again();
        }
    }
}

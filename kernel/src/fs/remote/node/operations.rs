//! What the VFS and mappings do with a [`Node`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Reader, UFrame, Writer};
use ninep::{SetAttributes, SetTime};
use refs::TempRc;

use super::super::calls::{Answer, Before, Question};
use super::super::file::RemoteFile;
use super::super::volume::{Volume, current};
use super::{Node, PAGE, Size};
use crate::block::{Keep, Wanted};
use crate::error::Errno;
use crate::fs::{
    Creation, DirectoryEntry, File, FileKind, Inode, InodeOps, Lseek, Metadata, Named, OpenFlags, Rename, Timestamp,
    VfsCaller,
};
use crate::memory::{BadAccess, Mapped, Pages, finish_unmapping, unmap_pages};
use crate::step::{Step, Stop};

/// For so many nanoseconds it is known who has made a file or set a length: as long as a step that does so may be run again.
const SET_KEPT: u64 = 1_000_000_000;

/// Copies what is written into frames.
///
/// # Errors
/// A fault; `NoMemory`.
fn copy_in(from: &mut Reader<'_>, len: usize) -> Step<Vec<UFrame>> {
    let mut frames = Vec::with_capacity(len.div_ceil(PAGE_SIZE));
    let mut left = len;
    while left > 0 {
        let frame = UFrame::for_overwrite().ok_or(Stop::NoMemory)?;
        let count = left.min(PAGE_SIZE);
        from.copy_to(&mut frame.writer(0..count))?;
        frames.push(frame);
        left -= count;
    }
    Ok(frames)
}

/// What is to be set so that a file's metadata become others.
fn differences(before: &Metadata, new: &Metadata, volume: &Volume) -> SetAttributes {
    let time = |before: Timestamp, now: Timestamp| match now {
        _ if before == now => None,
        // It is the present, which is another one whenever this is asked.
        _ if now == new.changed => Some(SetTime::Now),
        Timestamp { seconds, nanoseconds } => Some(SetTime::To(seconds as u64, nanoseconds.into())),
    };
    let (uid, gid) = volume.owner_there(new.uid, new.gid);
    SetAttributes {
        mode: (before.mode != new.mode).then_some(new.mode & 0o7777),
        uid: (before.uid != new.uid).then_some(uid),
        gid: (before.gid != new.gid).then_some(gid),
        size: None,
        accessed: time(before.accessed, new.accessed),
        modified: time(before.modified, new.modified),
    }
}

impl InodeOps for Node {
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        if self.is_regular {
            self.renew(cx);
            let size = self.size.with(Size::get);
            if metadata.size != size {
                metadata.size = size;
                metadata.blocks = size.div_ceil(512);
            }
        }
    }

    fn keeps_metadata(&self) -> bool {
        true
    }

    fn keep_metadata(&self, _this: &Inode, before: &Metadata, new: &Metadata, cx: &Cx) -> Step<()> {
        let volume = self.volume(cx)?;
        let set = differences(before, new, &volume);
        if set == SetAttributes::default() {
            return Ok(());
        }
        let inode = self.name(cx)?;
        volume.ask(Question::Set { inode, set }, cx).map(|_| ())
    }

    fn keep_attribute(&self, _this: &Inode, _name: &[u8], _value: Option<&[u8]>, _cx: &Cx) -> Step<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        if this.kind != FileKind::Directory {
            return Err(Errno::ENOTDIR.into());
        }
        let volume = self.volume(cx)?;
        if let Some(before) = volume.calls.before(this, name, cx) {
            return before.ok_or(Errno::ENOENT.into());
        }
        let question = Question::Lookup { directory: this.downgrade(), name: name.into() };
        if let Some(outcome) = volume.calls.take(&question, cx) {
            return volume.found(current(outcome)?, cx);
        }
        // While the answer is on its way it is waited for: left behind, it would be taken for one to a later question.
        let known = if volume.calls.is_under_way(&question, cx) { None } else { self.known(name, &volume, cx) };
        let outcome = match known {
            Some(outcome) => outcome,
            None => volume.found(volume.ask(question, cx)?, cx),
        };
        if let Ok(inode) = &outcome {
            Node::of(inode)?.is_at(inode, this, name, cx)?;
        }
        outcome
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let volume = self.volume(cx)?;
        let here = |cx| {
            let listing = self.listing.lock(cx);
            let listing = listing.as_ref().map(|listing| listing.get(cx));
            listing.filter(|listing| from > 0 || volume.session.is_valid(listing.since))
        };
        let listing = match here(cx) {
            Some(listing) => listing,
            None => {
                volume.ask(Question::List { directory: self.name(cx)? }, cx)?;
                let listing = self.listing.lock(cx);
                listing.as_ref().ok_or(Stop::Again)?.get(cx)
            }
        };
        listing.tell(from, cx, each);
        Ok(())
    }

    fn create<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        if matches!(what.kind, FileKind::CharacterDevice | FileKind::BlockDevice) {
            return Err(Errno::EPERM.into());
        }
        let question = Question::Create {
            directory: this.downgrade(),
            name: name.into(),
            kind: what.kind,
            permissions: what.permissions,
            owner: (what.uid, what.gid),
            target: what.target.into(),
        };
        let answer = self.change(question, || alloc::vec![Before::of(this, name, None)], cx)?;
        let made = self.volume(cx)?.found(answer, cx)?;
        if what.kind == FileKind::Regular {
            Node::of(&made)?.made_by(tasks::current(cx), cx);
        }
        Ok(made)
    }

    fn link(&self, this: &TempRc<'_, Inode>, name: &[u8], target: &TempRc<'_, Inode>, cx: &Cx) -> Step<()> {
        Node::of(target)?;
        let question = Question::Link { directory: this.downgrade(), name: name.into(), target: target.downgrade() };
        self.change(question, || alloc::vec![Before::of(this, name, None)], cx).map(|_| ())
    }

    fn unlink(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        self.remove(at, false, cx)
    }

    fn remove_directory(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        self.remove(at, true, cx)
    }

    fn rename(&self, from: &Named<'_, '_>, to: &Named<'_, '_>, how: Rename, cx: &Cx) -> Step<()> {
        Node::of(to.directory)?;
        if how == Rename::Exchange {
            return Err(Errno::EINVAL.into());
        }
        from.check(from.inode)?;
        to.check(to.inode)?;
        let question = Question::Rename {
            from: from.directory.downgrade(),
            name: from.name.into(),
            to: to.directory.downgrade(),
            new_name: to.name.into(),
            how,
        };
        let before = || {
            let of = |named: &Named<'_, '_>| Before::of(named.directory, named.name, named.inode);
            alloc::vec![of(from), of(to)]
        };
        self.change(question, before, cx).map(|_| ())
    }

    fn read_link(&self, _me: &dyn VfsCaller, _cx: &Cx) -> Step<Vec<u8>> {
        if self.target.is_empty() { Err(Errno::EINVAL.into()) } else { Ok(self.target.clone()) }
    }

    fn open(
        &self,
        this: &TempRc<'_, Inode>,
        flags: OpenFlags,
        _me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        let writes = flags.can_write() && self.is_regular;
        let me = tasks::current(cx);
        let now = frame::time::now();
        let made_by = self.state.lock(cx).made_by.take_if(|(maker, _)| *maker == me);
        let was_made = made_by.is_some_and(|(_, when)| now.saturating_sub(when) < SET_KEPT);
        // A step that made it is not to be run again: O_EXCL.
        if !was_made {
            self.volume(cx)?.ask(Question::Open { inode: this.downgrade(), writes }, cx)?;
        }
        self.state.lock(cx).set_by = None;
        if !self.is_regular {
            return Ok(None);
        }
        Ok(Some(Box::new(RemoteFile::new(this.share().ok_or(Stop::Again)?, flags))))
    }

    fn read(&self, this: &Inode, offset: u64, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let volume = self.volume(cx)?;
        if offset >= self.size.get(cx).get() {
            // It may have grown since: who waits for that asks again and again.
            let is_fresh = volume.session.is_valid(self.state.lock(cx).since);
            if !is_fresh && !this.dentry.lock(cx).is_removed {
                volume.ask(Question::Attributes { inode: self.name(cx)? }, cx)?;
            }
        }
        let size = self.size.get(cx).get();
        if offset >= size {
            return Ok(0);
        }
        let cache = self.cache(cx)?;
        cache.read(offset, size, to, Keep::Pages(&self.ahead), cx)
    }

    fn write(
        &self,
        this: &Inode,
        offset: Option<u64>,
        limit: u64,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<(usize, u64)> {
        let start = offset.unwrap_or_else(|| self.size.get(cx).get());
        if from.remaining() == 0 {
            return Ok((0, start));
        }
        if start >= limit {
            return Err(Errno::EFBIG.into());
        }
        let volume = self.volume(cx)?;
        let most = volume.session.limits.most_frames() * PAGE_SIZE;
        let len = from.remaining().min(most).min((limit - start).min(usize::MAX as u64) as usize);
        let inode = self.name(cx)?;
        let question = Question::Write { inode, offset, len };
        let mut front = from.split(len);
        match volume.ask_with(question, || copy_in(&mut front, len), Vec::new, cx)? {
            Answer::Written(count, end) => {
                self.state.lock(cx).set_by = None;
                this.touch_modified(cx);
                Ok((count, end))
            }
            _ => Err(Errno::EIO.into()),
        }
    }

    fn set_size(&self, this: &Inode, size: u64, cx: &Cx) -> Step<()> {
        if size > i64::MAX as u64 {
            return Err(Errno::EFBIG.into());
        }
        finish_unmapping(self, cx)?;
        let me = tasks::current(cx);
        let now = frame::time::now();
        // A step that opens the file behind this is run again.
        let was_set = self.state.lock(cx).set_by;
        if was_set.is_some_and(|(by, to, when)| by == me && to == size && now.saturating_sub(when) < SET_KEPT) {
            return Ok(());
        }
        let inode = self.name(cx)?;
        let set = SetAttributes { size: Some(size), ..SetAttributes::default() };
        self.volume(cx)?.ask(Question::Set { inode, set }, cx)?;
        self.state.lock(cx).set_by = Some((me, size, now));
        this.touch_modified(cx);
        unmap_pages(self, size.div_ceil(PAGE)..u64::MAX, cx)
    }

    fn seek(&self, _this: &Inode, to: Lseek, cx: &Cx) -> Step<u64> {
        // As of a file system that knows no holes: all is data, and a hole is behind it.
        let (from, wants_data) = match to {
            Lseek::Data(from) => (from, true),
            Lseek::Hole(from) => (from, false),
            _ => return Err(Errno::EINVAL.into()),
        };
        let size = self.size.get(cx).get();
        let from = u64::try_from(from).ok().filter(|from| *from < size).ok_or(Errno::ENXIO)?;
        Ok(if wants_data { from } else { size })
    }

    fn pages(&self) -> Option<&dyn Pages> {
        self.is_regular.then_some(self as &dyn Pages)
    }
}

impl Pages for Node {
    fn page(&self, index: u64, access: Access, cx: &Cx) -> core::result::Result<UFrame, BadAccess> {
        let size = self.size.get(cx).get();
        let (Ok(page), false) = (u32::try_from(index), access == Access::Write) else {
            return Err(BadAccess::BeyondFile);
        };
        if index >= size.div_ceil(PAGE) {
            return Err(BadAccess::BeyondFile);
        }
        // What has lost its name is asked for once more, by what stands for the file itself.
        let cache = || self.cache(cx);
        let cache = cache().or_else(|stop| if stop == Stop::Again { cache() } else { Err(stop) });
        let frame = cache.and_then(|cache| cache.page(page, Wanted::Ahead(&self.ahead, 1), cx));
        frame.map_err(|stop| match stop {
            Stop::Absent(absent) => BadAccess::Absent(absent),
            Stop::NoMemory | Stop::Error(Errno::ENOMEM) => BadAccess::NoMemory,
            _ => BadAccess::BeyondFile,
        })
    }

    fn cached(&self, indices: Range<u64>, each: &mut dyn FnMut(u64, UFrame), cx: &Cx) {
        if let Some(cache) = self.cache_here(cx) {
            let end = indices.end.min(self.size.get(cx).get().div_ceil(PAGE));
            cache.each_present(indices.start..end, each, cx);
        }
    }

    fn mapped(&self) -> &Mapped {
        &self.mapped
    }
}

//! What open(2) gives for files whose content the file system keeps: regular files, directories, and descriptors that are only a
//! place (O_PATH).

use core::ops::Range;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::general::{RLIMIT_FSIZE, S_ISGID, S_ISUID, S_IXGRP};
use refs::{StrongRc, TempRc, Waker};

use super::access::Subject;
use super::inode::NotedAttributes;
use super::{Events, File, FileEnd, Inode, Lseek, VfsCaller};
use crate::block::{Depth, SyncProgress};
use crate::credentials::{Capability, FileCapabilities};
use crate::error::{Errno, Result};
use crate::heap::slot_bytes;
use crate::memory::Mappable;
use crate::reclaim::Held;
use crate::step::Step;

/// An open regular file.
pub struct InodeFile {
    inode: StrongRc<Inode>,
}

impl InodeFile {
    /// The file of `inode`.
    pub fn new(inode: StrongRc<Inode>) -> Self {
        InodeFile { inode }
    }

    #[inline(always)]
    fn write_at(&self, offset: Option<u64>, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        write_content(&self.inode.get(cx), offset, from, me, cx)
    }
}

/// Writes to the content that an inode keeps, at `offset` (`None`: at the end): how many bytes, and the offset behind them.
///
/// # Errors
/// Those of [`InodeOps::write`](super::InodeOps::write).
#[inline(always)]
pub fn write_content(
    inode: &TempRc<'_, Inode>,
    offset: Option<u64>,
    from: &mut Reader<'_>,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> Step<(usize, u64)> {
    let limit = me.limit(RLIMIT_FSIZE, cx)?;
    // What may have to wait comes first: what is written is written once.
    if from.remaining() > 0 {
        remove_file_capabilities(inode, cx)?;
    }
    let outcome = inode.ops.write(inode, offset, limit, from, cx);
    if outcome.is_ok_and(|(len, _)| len > 0) {
        remove_mode_bits(inode, me, cx)?;
    }
    outcome
}

/// Who changes the content of a set-user-ID program takes that away from it: see inode(7).
#[inline]
pub fn remove_privileges(inode: &TempRc<'_, Inode>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
    remove_file_capabilities(inode, cx)?;
    Ok(remove_mode_bits(inode, me, cx)?)
}

#[inline]
fn remove_mode_bits(inode: &Inode, me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
    let (mode, _, group) = inode.access_bits(cx);
    if mode & (S_ISUID | S_ISGID) == 0 { Ok(()) } else { remove_privileged_bits(inode, mode, group, me, cx) }
}

#[cold]
fn remove_privileged_bits(inode: &Inode, mode: u32, group: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
    let subject = Subject::of(me, cx)?;
    if !subject.has(Capability::Fsetid) {
        let removed = S_ISUID | lost_group_bit(mode, group, &subject, cx);
        inode.change(cx, |metadata| metadata.mode &= !removed);
    }
    Ok(())
}

/// Takes the capabilities of a program away that is changed or gets another owner.
///
/// # Errors
/// The file system's, which keeps them.
#[inline(always)]
pub fn remove_file_capabilities(inode: &Inode, cx: &Cx) -> Step<()> {
    inode.load_attributes(cx)?;
    if inode.noted_attributes().contains(NotedAttributes::CAPABILITIES) {
        remove_file_capabilities_now(inode, cx)
    } else {
        Ok(())
    }
}

#[cold]
#[inline(never)]
fn remove_file_capabilities_now(inode: &Inode, cx: &Cx) -> Step<()> {
    let mut attributes = inode.attributes(cx)?;
    inode.ops.keep_attribute(inode, FileCapabilities::ATTRIBUTE, None, cx)?;
    if let Some(attributes) = attributes.as_mut() {
        attributes.remove(FileCapabilities::ATTRIBUTE);
        inode.note_attributes(attributes);
    }
    Ok(())
}

/// The set-group-ID bit, where who changes a file takes it away: always from what the group may execute, else (there it once meant mandatory
/// locking) who is not in the group.
pub fn lost_group_bit(mode: u32, group: u32, subject: &Subject<'_>, cx: &Cx) -> u32 {
    let stays = mode & S_IXGRP == 0 && (subject.has(Capability::Fsetid) || subject.is_in(group, cx));
    if stays { 0 } else { S_ISGID }
}

/// The offset that lseek(2) leads to in a file of that size.
///
/// # Errors
/// EINVAL before the start or behind what an offset can count.
pub fn seek_in(size: impl FnOnce() -> u64, to: Lseek, now: u64) -> Result<u64> {
    let offset = match to {
        Lseek::Set(offset) => Some(offset),
        Lseek::Current(by) => i64::try_from(now).ok().and_then(|now| now.checked_add(by)),
        Lseek::End(by) => i64::try_from(size()).ok().and_then(|size| size.checked_add(by)),
        Lseek::Data(_) | Lseek::Hole(_) => None,
    };
    offset.and_then(|offset| u64::try_from(offset).ok()).ok_or(Errno::EINVAL)
}

impl File for InodeFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn end_without_names(&self) -> Option<(u32, usize)> {
        Some((1, slot_bytes(size_of::<Self>())))
    }

    #[inline]
    fn read(&self, offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let inode = self.inode.get(cx);
        inode.ops.read(&inode, offset, to, cx)
    }

    #[inline]
    fn write(&self, offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        Ok(self.write_at(Some(offset), from, me, cx)?.0)
    }

    fn append(&self, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        self.write_at(None, from, me, cx)
    }

    fn sync(
        &self,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        let inode = self.inode.get(cx);
        inode.ops.sync(&inode, range, depth, progress, waker, cx)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        let inode = self.inode.get(cx);
        match to {
            Lseek::Data(_) | Lseek::Hole(_) => Ok(inode.ops.seek(&inode, to, cx)?),
            _ => Ok(seek_in(|| inode.metadata(cx).size, to, now)?),
        }
    }

    fn mappable<'a>(&'a self, cx: &'a Cx) -> Mappable<'a> {
        match self.inode.get(cx).into_ref().ops.pages() {
            Some(pages) => Mappable::Pages(pages),
            None => Mappable::No,
        }
    }
}

/// An open directory: its entries are read by getdents(2).
pub struct DirectoryFile;

impl File for DirectoryFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, _offset: u64, _to: &mut Writer<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Err(Errno::EISDIR.into())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        // The positions of entries have no end that one could count from.
        Ok(seek_in(|| i64::MAX as u64, to, now)?)
    }
}

/// A descriptor that is only a place in the tree (O_PATH): nothing can be read or written.
pub struct PlaceFile;

impl File for PlaceFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    /// To poll(2) it is as if it were not open.
    fn poll(&self, _interest: Events, _waker: Option<Waker>, _cx: &Cx) -> Events {
        Events::INVALID
    }
}

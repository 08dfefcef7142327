//! [`OpenNode`]: an open regular file of an overlay.
//!
//! It reads what the file is now, also where that was copied to the upper layer since it was opened. A mapping shows the file that was opened, as on Linux: who has mapped a file of
//! a lower layer goes on seeing that one.

use core::ops::Range;

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{StrongRc, Waker};

use super::copy_up::copy_up;
use crate::block::{Depth, SyncProgress};
use crate::fs::inode_file::{seek_in, write_content};
use crate::fs::{File, FileEnd, Inode, Lseek, VfsCaller};
use crate::memory::Mappable;
use crate::reclaim::Held;
use crate::step::Step;

/// An open regular file of an overlay.
pub struct OpenNode {
    /// The overlay's inode.
    pub inode: StrongRc<Inode>,
    /// That of the layer that had it when it was opened.
    pub opened: StrongRc<Inode>,
    /// O_DSYNC.
    pub syncs_writes: bool,
}

impl OpenNode {
    fn write_at(&self, offset: Option<u64>, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        let inode = self.inode.get(cx);
        // It is there already: it was opened to be written.
        let upper = copy_up(&inode, u64::MAX, Some(me), cx)?;
        let outcome = write_content(&upper, offset, from, me, cx);
        inode.bring_up_to_date(cx);
        outcome
    }
}

impl File for OpenNode {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let inode = self.inode.get(cx);
        inode.ops.read(&inode, offset, to, cx)
    }

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

    fn syncs_writes(&self) -> Option<Depth> {
        self.syncs_writes.then_some(Depth::Kept)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        let inode = self.inode.get(cx);
        match to {
            Lseek::Data(_) | Lseek::Hole(_) => inode.ops.seek(&inode, to, cx),
            _ => Ok(seek_in(|| inode.metadata(cx).size, to, now)?),
        }
    }

    fn mappable<'a>(&'a self, cx: &'a Cx) -> Mappable<'a> {
        match self.opened.get(cx).into_ref().ops.pages() {
            Some(pages) => Mappable::Pages(pages),
            None => Mappable::No,
        }
    }
}

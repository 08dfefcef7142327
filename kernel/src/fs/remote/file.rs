//! [`RemoteFile`]: an open regular file of a server's.
//!
//! Writes to one description come one after the other, as a write takes until the server has it: so the next one begins where it ended.

use core::ops::Range;

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{StrongRc, Waker};

use super::calls::Question;
use super::node::Node;
use crate::block::{Depth, SyncProgress};
use crate::error::Errno;
use crate::fs::inode_file::{seek_in, write_content};
use crate::fs::turn::Turn;
use crate::fs::{Events, File, FileEnd, Inode, Lseek, OpenFlags, VfsCaller};
use crate::memory::Mappable;
use crate::reclaim::Held;
use crate::step::Step;

/// An open regular file of a server's.
pub struct RemoteFile {
    inode: StrongRc<Inode>,
    writes: bool,
    syncs_writes: bool,
    /// Whose write goes through just now.
    turn: Turn,
}

impl RemoteFile {
    /// An open file, which the server has open as well.
    pub fn new(inode: StrongRc<Inode>, flags: OpenFlags) -> Self {
        let writes = flags.can_write();
        if writes {
            inode.with(|inode| Node::of(inode).map(Node::begin_writing).ok());
        }
        RemoteFile { inode, writes, syncs_writes: flags.contains(OpenFlags::DATA_SYNC), turn: Turn::new() }
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        if self.writes {
            self.inode.with(|inode| Node::of(inode).map(Node::end_writing).ok());
        }
    }
}

impl File for RemoteFile {
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
        Ok(write_content(&self.inode.get(cx), Some(offset), from, me, cx)?.0)
    }

    fn append(&self, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        write_content(&self.inode.get(cx), None, from, me, cx)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.turn.watch(waker, cx);
        }
        interest & (Events::IN | Events::OUT | Events::READ_NORMAL | Events::WRITE_NORMAL)
    }

    fn writes_in_turn(&self) -> bool {
        self.writes
    }

    fn begin_turn(&self, _me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        self.turn.begin(cx)
    }

    fn end_turn(&self, _me: &dyn VfsCaller, cx: &Cx) {
        self.turn.end(cx);
    }

    fn sync(
        &self,
        _range: Range<u64>,
        depth: Depth,
        _progress: &mut SyncProgress,
        _waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        if depth == Depth::Written {
            // The server has it.
            return Ok(());
        }
        let inode = self.inode.get(cx);
        let volume = Node::of(&inode)?.volume(cx)?;
        volume.ask(Question::Sync { inode: inode.downgrade(), data_only: false }, cx).map(|_| ())
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
        // What is written through a mapping would not come to the server.
        match self.inode.get(cx).into_ref().ops.pages() {
            Some(pages) => Mappable::ReadOnly(pages),
            None => Mappable::No,
        }
    }
}

/// What a file is opened with at the server. (O_NOFOLLOW: what is there by now may be a symbolic link.)
pub(super) const READ: u32 = linux_raw_sys::general::O_RDONLY | linux_raw_sys::general::O_NOFOLLOW;
/// The same for writing.
pub(super) const WRITE: u32 = linux_raw_sys::general::O_WRONLY | linux_raw_sys::general::O_NOFOLLOW;
/// The same for a directory.
pub(super) const DIRECTORY: u32 = READ | linux_raw_sys::general::O_DIRECTORY;

/// What a change of a file is that belongs to another file system.
pub(super) const OTHER_SYSTEM: Errno = Errno::EXDEV;

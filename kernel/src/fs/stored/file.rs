//! [`DirectFile`]: a regular file that was opened with O_DIRECT or O_DSYNC.
//!
//! All goes through the file's page cache, O_DIRECT too: what such a write gives is on the disk when it returns, what such a read had to fetch is not kept, and neither needs anything of the program's memory but a copy. So the two kinds of access see the same at any time, and mappings do.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{StrongRc, TempRc, Waker};

use super::Format;
use super::node::Node;
use crate::block::{Depth, Keep, SyncProgress};
use crate::error::{Errno, Result};
use crate::fs::inode_file::InodeFile;
use crate::fs::{File, FileEnd, Inode, Lseek, OpenFlags, VfsCaller};
use crate::memory::Mappable;
use crate::reclaim::Held;
use crate::step::Step;

/// A regular file that was opened with O_DIRECT or O_DSYNC. One that was not, and gets O_DIRECT by fcntl(2), stays an [`InodeFile`]: O_DIRECT promises nothing that others could see.
pub(super) struct DirectFile<F: Format> {
    inode: StrongRc<Inode>,
    file: InodeFile,
    node: core::marker::PhantomData<fn(F)>,
    is_direct: AtomicBool,
    /// O_DSYNC: the disk has to keep each write.
    is_kept: bool,
}

impl<F: Format> DirectFile<F> {
    /// The open file, if it was opened so.
    pub fn of(inode: &TempRc<'_, Inode>, flags: OpenFlags) -> Result<Option<Self>> {
        let is_kept = flags.contains(OpenFlags::DATA_SYNC) && flags.can_write();
        let is_direct = flags.contains(OpenFlags::DIRECT);
        if !is_kept && !is_direct {
            return Ok(None);
        }
        let inode = inode.share().ok_or(Errno::ENOENT)?;
        Ok(Some(DirectFile {
            file: InodeFile::new(inode.share()),
            inode,
            node: core::marker::PhantomData,
            is_direct: AtomicBool::new(is_direct),
            is_kept,
        }))
    }

    fn is_direct(&self) -> bool {
        self.is_direct.load(Ordering::Relaxed)
    }

    /// # Errors
    /// EINVAL: O_DIRECT, and the range is not made of the disk's blocks.
    fn check_alignment(&self, offset: u64, len: usize, cx: &Cx) -> Result<()> {
        if !self.is_direct() {
            return Ok(());
        }
        let inode = self.inode.get(cx);
        let device = Node::<F>::of(&inode)?.volume(cx)?.on().disk.device;
        let block = u64::from(device.limits().logical_block);
        if (offset | len as u64).is_multiple_of(block) { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

impl<F: Format> File for DirectFile<F> {
    fn end(&self) -> FileEnd {
        self.file.end()
    }

    fn class(&self) -> Held {
        self.file.class()
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if !self.is_direct() {
            return self.file.read(offset, to, me, cx);
        }
        self.check_alignment(offset, to.remaining(), cx)?;
        let inode = self.inode.get(cx);
        Node::<F>::of(&inode)?.read_content(offset, to, Keep::Nothing, cx)
    }

    fn write(&self, offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.check_alignment(offset, from.remaining(), cx)?;
        self.file.write(offset, from, me, cx)
    }

    fn append(&self, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        self.check_alignment(self.inode.get(cx).metadata(cx).size, from.remaining(), cx)?;
        self.file.append(from, me, cx)
    }

    fn sync(
        &self,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        self.file.sync(range.clone(), depth, progress, waker, cx)?;
        if self.is_direct() {
            Node::<F>::of(&self.inode.get(cx))?.forget_content(range, cx);
        }
        Ok(())
    }

    fn syncs_writes(&self) -> Option<Depth> {
        Some(if self.is_kept { Depth::Kept } else { Depth::Written })
    }

    fn flags_changed(&self, flags: OpenFlags) {
        self.is_direct.store(flags.contains(OpenFlags::DIRECT), Ordering::Relaxed);
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        self.file.seek(to, now, cx)
    }

    fn mappable<'a>(&'a self, cx: &'a Cx) -> Mappable<'a> {
        self.file.mappable(cx)
    }
}

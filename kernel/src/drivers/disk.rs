//! Disks and their partitions as files: `/dev/vda`, `/dev/vda1` ...
//!
//! All goes through the disk's page cache, O_DIRECT too: what such a write gives is on the device when it returns, what such a read had to fetch is not kept, and neither needs anything of the program's memory but a copy. So the two kinds of access see the same at any time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::{
    BLKALIGNOFF, BLKBSZGET, BLKDISCARD, BLKDISCARDZEROES, BLKFLSBUF, BLKGETSIZE, BLKGETSIZE64, BLKIOMIN, BLKIOOPT,
    BLKPBSZGET, BLKRAGET, BLKRASET, BLKROGET, BLKROSET, BLKROTATIONAL, BLKRRPART, BLKSSZGET, BLKZEROOUT,
};
use refs::{StrongRc, Waker, WeakRc};

use super::loops::{self, LoopDevice};
use crate::block::{self, Depth, Keep, Operation, ReadAhead, SECTOR, SyncProgress, Transfer, Used};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::inode_file::seek_in;
use crate::fs::{DeviceNumber, Events, File, FileEnd, Lseek, OpenFile, OpenFlags, VfsCaller};
use crate::reclaim::Held;
use crate::step::{Interruption, Patience, Step, Stop, complete_async};
use crate::user_memory::Argument;

/// An open disk or partition.
pub struct BlockFile {
    volume: Used,
    ahead: ReadAhead,
    /// Which failures to write this description was told of.
    seen: AtomicU64,
    is_direct: AtomicBool,
    syncs_writes: Option<Depth>,
    can_write: bool,
}

/// Opens the disk or partition of that number.
///
/// # Errors
/// ENXIO: there is none. `Pause` while it lets go of what it has.
pub fn open(device: DeviceNumber, flags: OpenFlags, cx: &Cx) -> Step<Box<dyn File>> {
    let volume = block::volume(device.major, device.minor, cx).ok_or(Errno::ENXIO)?;
    Ok(open_volume(volume.begin_use()?, flags, cx))
}

/// Opens what is on a disk.
pub fn open_volume(volume: Used, flags: OpenFlags, cx: &Cx) -> Box<dyn File> {
    let is_direct = flags.contains(OpenFlags::DIRECT);
    Box::new(BlockFile {
        ahead: volume.read_ahead(),
        seen: AtomicU64::new(volume.disk.cache(cx).failures()),
        volume,
        is_direct: AtomicBool::new(is_direct),
        syncs_writes: match flags.contains(OpenFlags::DATA_SYNC) {
            true => Some(Depth::Kept),
            false => is_direct.then_some(Depth::Written),
        },
        can_write: flags.can_write(),
    })
}

impl BlockFile {
    /// The disk's offset for one of the file's, and the end of the file there.
    fn on_disk(&self, offset: u64) -> (u64, u64) {
        let Range { start, end } = self.volume.bytes();
        (start.saturating_add(offset), end)
    }

    /// # Errors
    /// EINVAL: O_DIRECT, and the range is not made of blocks.
    fn check_alignment(&self, offset: u64, len: usize) -> Result<()> {
        let block = u64::from(self.volume.disk.device.geometry().logical_block);
        let is_direct = self.is_direct.load(Ordering::Relaxed);
        if is_direct && !(offset | len as u64).is_multiple_of(block) { Err(Errno::EINVAL) } else { Ok(()) }
    }
}

impl File for BlockFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.check_alignment(offset, to.remaining())?;
        let (at, end) = self.on_disk(offset);
        let keep = if self.is_direct.load(Ordering::Relaxed) { Keep::Nothing } else { Keep::Pages(&self.ahead) };
        if at >= end { Ok(0) } else { self.volume.disk.cache(cx).read(at, end, to, keep, cx) }
    }

    fn write(&self, offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if self.volume.is_read_only() {
            return Err(Errno::EPERM.into());
        }
        self.check_alignment(offset, from.remaining())?;
        let (at, end) = self.on_disk(offset);
        match from.remaining() {
            0 => Ok(0),
            _ if at >= end => Err(Errno::ENOSPC.into()),
            _ => self.volume.disk.cache(cx).write(at, end, from, cx),
        }
    }

    fn append(&self, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        // There is nothing behind the end.
        let end = self.volume.size();
        Ok((self.write(end, from, me, cx)?, end))
    }

    fn sync(
        &self,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        let ((start, end_of_file), (end, _)) = (self.on_disk(range.start), self.on_disk(range.end));
        let range = start..end.min(end_of_file);
        let cache = self.volume.disk.cache(cx);
        cache.sync(range.clone(), depth, progress, waker, cx)?;
        cache.check(&self.seen)?;
        if self.is_direct.load(Ordering::Relaxed) {
            // Of much, the rest goes when memory is needed.
            let _ = cache.forget(range, false, cx);
        }
        Ok(())
    }

    fn syncs_writes(&self) -> Option<Depth> {
        self.syncs_writes
    }

    fn flags_changed(&self, flags: OpenFlags) {
        self.is_direct.store(flags.contains(OpenFlags::DIRECT), Ordering::Relaxed);
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        let size = self.volume.size();
        let offset = match to {
            // All of it is data.
            Lseek::Data(at) | Lseek::Hole(at) => {
                let at = u64::try_from(at).ok().filter(|at| *at < size).ok_or(Errno::ENXIO)?;
                if matches!(to, Lseek::Data(_)) { at } else { size }
            }
            _ => seek_in(|| size, to, now)?,
        };
        if offset > size { Err(Errno::EINVAL.into()) } else { Ok(offset) }
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let (volume, limits) = (&self.volume, self.volume.disk.device.limits());
        let geometry = volume.disk.device.geometry();
        let memory = me.memory(cx)?;
        match request {
            BLKGETSIZE64 => memory.write(argument.output::<u64>(), &volume.size())?,
            BLKGETSIZE => memory.write(argument.output::<u64>(), &volume.sectors())?,
            BLKRAGET => memory.write(argument.output::<u64>(), &volume.disk.read_ahead_sectors())?,
            BLKRASET => {
                check_administrator(me, cx)?;
                volume.disk.set_read_ahead_sectors(argument.value() as u64);
            }
            BLKROSET => {
                check_administrator(me, cx)?;
                volume.set_read_only(memory.read(argument.input::<i32>())? != 0);
            }
            BLKSSZGET => memory.write(argument.output::<u32>(), &geometry.logical_block)?,
            BLKBSZGET => memory.write(argument.output::<u32>(), &4096)?,
            BLKPBSZGET => memory.write(argument.output::<u32>(), &limits.physical_block)?,
            BLKIOMIN => memory.write(argument.output::<u32>(), &limits.smallest_io)?,
            BLKIOOPT => memory.write(argument.output::<u32>(), &limits.best_io)?,
            BLKROGET => memory.write(argument.output::<u32>(), &volume.is_read_only().into())?,
            BLKDISCARDZEROES => memory.write(argument.output::<u32>(), &0)?,
            BLKROTATIONAL => memory.write(argument.output::<u16>(), &0)?,
            BLKALIGNOFF => {
                let granule = u64::from(limits.physical_block.max(limits.smallest_io));
                let offset = (u64::from(limits.alignment_offset) + granule - volume.bytes().start % granule) % granule;
                memory.write(argument.output::<u32>(), &(offset as u32))?;
            }
            _ => return loops::ioctl(volume, self.can_write, request, argument, me, cx),
        }
        Ok(0)
    }

    /// It is always ready. What an ioctl waits for is the device.
    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.volume.disk.device.room().register(waker, cx);
        }
        interest & (Events::IN | Events::OUT | Events::READ_NORMAL | Events::WRITE_NORMAL)
    }
}

/// What takes several requests.
enum Long {
    /// Write what is dirty, forget the rest.
    Flush,
    Discard(Range<u64>),
    Zero(Range<u64>),
    Reread,
    /// A loop device is to be something else.
    Change(&'static LoopDevice, loops::Change),
}

/// Whether a request of ioctl(2) is one of [`ioctl_async`]'s.
pub fn takes_long(name: WeakRc<OpenFile>, request: u32, cx: &Cx) -> bool {
    let is_long = matches!(request, BLKFLSBUF | BLKDISCARD | BLKZEROOUT | BLKRRPART) || loops::is_change(request);
    is_long && name.upgrade(cx).is_ok_and(|open| open.kind::<BlockFile>().is_some())
}

/// ioctl(2) of an open disk, of the requests that wait for it.
///
/// # Errors
/// ENOTTY: it is no disk. EBADF: it is not open for writing. EINVAL: a range that is not within it, or not made of blocks. EOPNOTSUPP. EACCES. EIO.
pub fn ioctl_async(
    cx: &mut Cx,
    me: &mut Current,
    name: WeakRc<OpenFile>,
    request: u32,
    argument: Argument,
) -> Result<usize> {
    let long = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let file = open.kind::<BlockFile>().ok_or(Errno::ENOTTY)?;
        match request {
            BLKFLSBUF | BLKRRPART => {
                check_administrator(me, cx)?;
                Ok(if request == BLKFLSBUF { Long::Flush } else { Long::Reread })
            }
            _ if loops::is_change(request) => {
                let (device, change) = loops::change(&file.volume, file.can_write, request, argument, me, cx)?;
                Ok(Long::Change(device, change))
            }
            _ => {
                let range = file.range(&open, argument, me, cx)?;
                Ok(if request == BLKDISCARD { Long::Discard(range) } else { Long::Zero(range) })
            }
        }
    })?;
    match long {
        Long::Flush => sync_async(cx, me, name, true),
        Long::Discard(range) => fill_async(cx, me, name, range, Operation::Discard),
        Long::Zero(range) => fill_async(cx, me, name, range, Operation::WriteZeroes),
        Long::Change(device, change) => change_loop_async(cx, me, name, device, change),
        Long::Reread => {
            sync_async(cx, me, name, true)?;
            with_file_async(cx, me, name, |file, _, cx| {
                if file.volume.partition != 0 {
                    return Err(Errno::EINVAL.into());
                }
                file.volume.disk.reread_partitions(cx)
            })
        }
    }?;
    Ok(0)
}

/// # Errors
/// EACCES.
fn check_administrator(me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
    if me.credentials(cx)?.lock(cx).has(Capability::SysAdmin) { Ok(()) } else { Err(Errno::EACCES) }
}

/// Runs a step on an open disk until it is done.
fn with_file_async(
    cx: &mut Cx,
    me: &mut Current,
    name: WeakRc<OpenFile>,
    mut step: impl FnMut(&BlockFile, Option<Waker>, &Cx) -> Step<()>,
) -> Result<()> {
    complete_async(cx, me, Patience::Forever, |cx, _, waker| {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if let Some(waker) = waker {
            name.watch(waker, cx);
        }
        step(open.kind::<BlockFile>().ok_or(Errno::ENOTTY)?, waker, cx)
    })
}

/// Writes what is dirty, and forgets the rest if asked.
fn sync_async(cx: &mut Cx, me: &mut Current, name: WeakRc<OpenFile>, forgets: bool) -> Result<()> {
    let mut progress = SyncProgress::default();
    with_file_async(cx, me, name, |file, waker, cx| {
        let range = 0..file.volume.size();
        file.sync(range, Depth::Kept, &mut progress, waker, cx)
    })?;
    let mut from = 0;
    with_file_async(
        cx,
        me,
        name,
        |file, _, cx| if forgets { file.forget(0..file.volume.size(), &mut from, cx) } else { Ok(()) },
    )
}

/// Has a loop device be something else: what is dirty goes to where it was meant for first.
fn change_loop_async(
    cx: &mut Cx,
    me: &mut Current,
    name: WeakRc<OpenFile>,
    device: &'static LoopDevice,
    change: loops::Change,
) -> Result<()> {
    let mut progress = SyncProgress::default();
    if device.moves_by(&change, cx) {
        with_file_async(cx, me, name, |file, waker, cx| {
            file.volume.disk.cache(cx).sync(0..u64::MAX, Depth::Written, &mut progress, waker, cx)
        })?;
    }
    let (mut change, mut asked) = (Some(change), None);
    with_file_async(cx, me, name, |_, waker, cx| {
        if asked.is_none() {
            asked = Some(device.ask(&mut change, waker, cx)?);
        }
        asked.as_ref().map_or(Ok(()), |asked| device.outcome(&asked.get(cx), waker, cx))
    })
}

/// Discards a range of the file, or fills it with zeros.
fn fill_async(
    cx: &mut Cx,
    me: &mut Current,
    name: WeakRc<OpenFile>,
    range: Range<u64>,
    operation: Operation,
) -> Result<()> {
    let mut progress = Fill { at: range.start, begun: None, synced: Some(SyncProgress::default()), forgotten: 0 };
    with_file_async(cx, me, name, |file, waker, cx| file.fill(&range, operation, &mut progress, waker, cx))
}

/// How far a fill has come.
struct Fill {
    /// Up to here it is done.
    at: u64,
    /// What is under way, and up to where it goes.
    begun: Option<(StrongRc<Transfer>, u64)>,
    /// What was dirty before in the range is written first, as far as this: so that it does not come later.
    synced: Option<SyncProgress>,
    /// So many bytes of the range are forgotten.
    forgotten: u64,
}

impl BlockFile {
    /// The range that a request names: start and length, in bytes.
    fn range(&self, open: &OpenFile, argument: Argument, me: &Current, cx: &Cx) -> Step<Range<u64>> {
        if !open.flags().can_write() {
            return Err(Errno::EBADF.into());
        }
        let words: Vec<u64> = me.memory(cx)?.read_slice(argument.input::<u64>().slice(2))?;
        let [start, len] = words[..] else { return Err(Errno::EFAULT.into()) };
        let geometry = self.volume.disk.device.geometry();
        let end = start.checked_add(len).filter(|end| *end <= self.volume.size()).ok_or(Errno::EINVAL)?;
        if self.volume.is_read_only() {
            return Err(Errno::EPERM.into());
        }
        if len == 0 || (start | len) % u64::from(geometry.logical_block) != 0 {
            return Err(Errno::EINVAL.into());
        }
        Ok(start..end)
    }

    fn fill(
        &self,
        range: &Range<u64>,
        operation: Operation,
        progress: &mut Fill,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        let device = self.volume.disk.device;
        let most = match operation {
            Operation::Discard => device.limits().most_discard,
            _ => device.limits().most_zeroes,
        };
        if most == 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if let Some(sync) = &mut progress.synced {
            self.sync(range.clone(), Depth::Written, sync, waker, cx)?;
            progress.synced = None;
        }
        while progress.at < range.end || progress.begun.is_some() {
            if let Some((transfer, end)) = &progress.begun {
                transfer.get(cx).poll(waker, cx)?;
                (progress.at, progress.begun) = (*end, None);
                continue;
            }
            let len = (range.end - progress.at).min(u64::from(most) * SECTOR);
            let (at, _) = self.on_disk(progress.at);
            let sectors = (at / SECTOR, (len / SECTOR) as u32);
            let transfer = Transfer::start(device, operation, sectors, Vec::new(), waker, cx)?;
            progress.begun = Some((transfer, progress.at + len));
        }
        // What was read before is no more.
        self.forget(range.clone(), &mut progress.forgotten, cx)
    }

    /// Forgets what was read of a range, from `from` on in it.
    fn forget(&self, range: Range<u64>, from: &mut u64, cx: &Cx) -> Step<()> {
        let (start, end) = (self.on_disk(range.start).0, self.on_disk(range.end).0);
        match self.volume.disk.cache(cx).forget(start + *from..end, false, cx) {
            Some(next) => {
                *from = next.saturating_sub(start);
                Err(Stop::Pause(Interruption::KillOnly))
            }
            None => Ok(()),
        }
    }
}

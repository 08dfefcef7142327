//! [`Disk`]: a device with its page cache, its name, and its partitions; and [`Volume`], what a device number stands for.
//!
//! A partition is a window onto the disk's cache: whoever looks at both sees the same, at once. (On Linux each has a cache of its own.)

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, Range};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{UFrame, Writer};
use refs::{NoSuspend, SpinLock, StrongRc, TempRc, Waker};

use super::cache::{MOST_AHEAD, PAGE_SECTORS};
use super::partitions::{self, Partition};
use super::{
    Backing, BlockDevice, Cache, Depth, Extent, Keep, Operation, ReadAhead, SECTOR, SyncProgress, transfer_async,
    wait_async, write_back,
};
use crate::error::Errno;
use crate::step::{Interruption, Step, Stop};

/// The major number of disks: on Linux the first of those that are given out as needed.
pub const MAJOR: u32 = 254;
/// So many minor numbers each disk has: itself and its partitions.
pub const MINORS: u32 = 16;

/// A disk. It lives for ever.
pub struct Disk {
    /// What it is called in `/dev`.
    pub name: String,
    /// Its major number, and the first of its minor numbers; its partitions have the next.
    pub major: u32,
    first_minor: u32,
    /// What it is on.
    pub device: &'static dyn BlockDevice,
    /// What the device calls itself.
    pub serial: String,
    cache: StrongRc<Cache>,
    partitions: SpinLock<Vec<Partition>>,
    /// How many files are open on it or its partitions, and file systems mounted.
    open: AtomicUsize,
    /// A bit for each partition, and bit 0 for the whole disk, that programs keep from being written (BLKROSET).
    kept_from_writing: AtomicU32,
    /// So many sectors are read ahead at most for who opens it from now on (BLKRASET).
    read_ahead_sectors: AtomicU64,
}

static DISKS: SpinLock<Vec<&'static Disk>> = SpinLock::new(Vec::new());

/// A disk's own content.
struct Whole(&'static dyn BlockDevice);

impl Backing for Whole {
    fn size(&self) -> u64 {
        self.0.geometry().sectors * SECTOR
    }

    fn locate(&self, index: u32, _cx: &Cx) -> Step<Extent> {
        let sector = u64::from(index) * PAGE_SECTORS;
        let pages = self.0.geometry().sectors.saturating_sub(sector).div_ceil(PAGE_SECTORS);
        Ok(Extent::On { device: self.0, sector, pages: pages.clamp(1, u64::from(u32::MAX)) as u32 })
    }

    fn device(&self) -> &'static dyn BlockDevice {
        self.0
    }
}

/// Names the devices, and looks for partitions on them. Called once, before the first program, with all that drivers have found.
pub fn start_async(cx: &mut Cx, devices: Vec<&'static dyn BlockDevice>) {
    if devices.is_empty() {
        return;
    }
    if !frame::dma::is_guarded() {
        crate::log!("there is no IOMMU: devices are trusted with all memory");
    }
    write_back::start();
    for (number, device) in devices.into_iter().enumerate() {
        let serial = serial_async(cx, device);
        let first_minor = number as u32 * MINORS;
        let name = format!("vd{}", letters(number));
        let disk: &'static Disk = Box::leak(Box::new(Disk::new(name, (MAJOR, first_minor), device, serial, cx)));
        let found = wait_async(cx, |_, cx| disk.find_partitions(cx));
        let partitions = found.unwrap_or_else(|error| {
            crate::log!("{}: its partition table cannot be read: {error:?}", disk.name);
            Vec::new()
        });
        let limits = device.limits();
        crate::log!(
            "{}: {} sectors{}, {} partitions",
            disk.name,
            limits.sectors,
            if limits.is_read_only { ", read-only" } else { "" },
            partitions.len()
        );
        *disk.partitions.lock(cx) = partitions;
        DISKS.lock(cx).push(disk);
    }
}

/// What comes behind `vd`: a to z, aa, ab ...
fn letters(number: usize) -> String {
    let last = char::from(b'a' + (number % 26) as u8);
    if number < 26 { last.into() } else { format!("{}{last}", letters(number / 26 - 1)) }
}

/// What a device calls itself; nothing where it does not say.
fn serial_async(cx: &mut Cx, device: &'static dyn BlockDevice) -> String {
    let Some(frame) = UFrame::zeroed() else { return String::new() };
    let mut bytes = [0; 20];
    if let Ok(frames) = transfer_async(cx, device, Operation::Identify, (0, 0), vec![frame])
        && let Some(frame) = frames.first()
    {
        // Fresh memory does not fault.
        let _ = frame.reader(0..bytes.len()).read(&mut bytes);
    }
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    text.iter().copied().take_while(is_text).map(char::from).collect::<String>().trim().into()
}

/// All disks.
pub fn disks(cx: &impl NoSuspend) -> Vec<&'static Disk> {
    DISKS.lock(cx).clone()
}

/// What is on a device of those numbers.
pub fn volume(major: u32, minor: u32, cx: &impl NoSuspend) -> Option<Volume> {
    let mut of_major = disks(cx).into_iter().filter(|disk| disk.major == major && disk.first_minor <= minor);
    of_major.find_map(|disk| disk.volumes(cx).into_iter().find(|volume| volume.minor() == minor))
}

/// Enters a device that comes later, which has one minor number. Nobody looks for partitions on it.
pub fn add(name: String, major: u32, minor: u32, device: &'static dyn BlockDevice, cx: &Cx) -> &'static Disk {
    write_back::start();
    let disk: &'static Disk = Box::leak(Box::new(Disk::new(name, (major, minor), device, String::new(), cx)));
    DISKS.lock(cx).push(disk);
    disk
}

impl Disk {
    fn new(
        name: String,
        (major, first_minor): (u32, u32),
        device: &'static dyn BlockDevice,
        serial: String,
        cx: &Cx,
    ) -> Self {
        Disk {
            name,
            major,
            first_minor,
            device,
            serial,
            cache: Cache::new(Box::new(Whole(device)), cx),
            partitions: SpinLock::new(Vec::new()),
            open: AtomicUsize::new(0),
            kept_from_writing: AtomicU32::new(0),
            read_ahead_sectors: AtomicU64::new(u64::from(MOST_AHEAD) * PAGE_SECTORS),
        }
    }

    /// So many sectors are read ahead at most for who opens it.
    pub fn read_ahead_sectors(&self) -> u64 {
        self.read_ahead_sectors.load(Ordering::Relaxed)
    }

    /// Says how many sectors are read ahead at most for who opens it from now on.
    pub fn set_read_ahead_sectors(&self, sectors: u64) {
        self.read_ahead_sectors.store(sectors, Ordering::Relaxed);
    }

    /// The disk itself.
    pub fn whole(&'static self) -> Volume {
        Volume { disk: self, partition: 0, start: 0, sectors: self.device.geometry().sectors }
    }

    /// The disk itself, and its partitions.
    pub fn volumes(&'static self, cx: &impl NoSuspend) -> Vec<Volume> {
        let partitions = self.partitions.lock(cx);
        let parts = partitions.iter().map(|part| Volume {
            disk: self,
            partition: part.number,
            start: part.start,
            sectors: part.sectors,
        });
        core::iter::once(self.whole()).chain(parts).collect()
    }

    /// How many files are open on it or its partitions, and mounts.
    pub fn users(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Its page cache.
    pub fn cache<'cx>(&self, cx: &'cx Cx) -> TempRc<'cx, Cache> {
        self.cache.get(cx)
    }

    /// The partitions that its table names now.
    fn find_partitions(&self, cx: &Cx) -> Step<Vec<Partition>> {
        let cache = self.cache(cx);
        let geometry = self.device.geometry();
        partitions::find(geometry.sectors, geometry.logical_block, &mut |offset, to| {
            let mut done = 0;
            while done < to.len() {
                let (at, mut rest) = (offset.saturating_add(done as u64), Writer::from(&mut to[done..]));
                match cache.read(at, u64::MAX, &mut rest, Keep::Pages(&ReadAhead::default()), cx)? {
                    0 => return Err(Errno::EIO.into()),
                    read => done += read,
                }
            }
            Ok(())
        })
    }

    /// Looks for partitions anew (BLKRRPART).
    ///
    /// # Errors
    /// EBUSY while anything but the caller's own file is open on it; those of reading.
    pub fn reread_partitions(&self, cx: &Cx) -> Step<()> {
        if self.open.load(Ordering::Relaxed) > 1 {
            return Err(Errno::EBUSY.into());
        }
        let found = self.find_partitions(cx)?;
        *self.partitions.lock(cx) = found;
        Ok(())
    }
}

/// A disk, or a partition of one.
#[derive(Clone, Copy)]
pub struct Volume {
    /// The disk.
    pub disk: &'static Disk,
    /// The partition's number; 0: all of the disk.
    pub partition: u32,
    /// Its first sector on the disk.
    pub start: u64,
    /// How many sectors it had when it was looked for.
    sectors: u64,
}

impl Volume {
    /// What it is called in `/dev`.
    pub fn name(&self) -> String {
        match self.partition {
            0 => self.disk.name.clone(),
            number => format!("{}{number}", self.disk.name),
        }
    }

    /// Its major number.
    pub fn major(&self) -> u32 {
        self.disk.major
    }

    /// Its minor number.
    pub fn minor(&self) -> u32 {
        self.disk.first_minor + self.partition
    }

    /// How many sectors it has.
    pub fn sectors(&self) -> u64 {
        if self.partition == 0 { self.disk.device.geometry().sectors } else { self.sectors }
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.sectors() * SECTOR
    }

    /// Whether it cannot be written, or is kept from it. What is mounted already is written all the same.
    pub fn is_read_only(&self) -> bool {
        let kept = self.disk.kept_from_writing.load(Ordering::Relaxed);
        kept & (1 << self.partition | 1) != 0 || self.disk.device.geometry().is_read_only
    }

    /// Keeps it from being written, or no longer does. A disk's partitions go with it.
    pub fn set_read_only(&self, is_read_only: bool) {
        let bit = 1 << self.partition;
        if is_read_only {
            self.disk.kept_from_writing.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.disk.kept_from_writing.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Sectors that are read ahead at most for who opens it, as pages.
    pub fn read_ahead(&self) -> ReadAhead {
        let pages = self.disk.read_ahead_sectors() / PAGE_SECTORS;
        ReadAhead::of_at_most(u32::try_from(pages).unwrap_or(u32::MAX))
    }

    /// What was done with it; of a partition nothing is counted.
    pub fn statistics(&self) -> [u64; 17] {
        if self.partition == 0 { self.disk.device.statistics().figures() } else { [0; 17] }
    }

    /// Its bytes on the disk.
    pub fn bytes(&self) -> Range<u64> {
        self.start * SECTOR..(self.start + self.sectors()) * SECTOR
    }

    /// Begins to use it: a file is open on it from now on, or something on it is mounted.
    ///
    /// # Errors
    /// `Pause` while it lets go of what it has.
    pub fn begin_use(self) -> Step<Used> {
        // Whoever comes while the device lets go must not even be counted: the device would keep what it has for a user that came too late.
        if self.disk.device.lets_go() {
            return Err(Stop::Pause(Interruption::KillOnly));
        }
        // Counted before the second look: if letting go begins in between, either this user sees that or the device sees this user.
        self.disk.open.fetch_add(1, Ordering::SeqCst);
        let used = Used(self);
        if self.disk.device.lets_go() { Err(Stop::Pause(Interruption::KillOnly)) } else { Ok(used) }
    }
}

/// A volume on which a file is open or something is mounted, as long as this is there.
pub struct Used(Volume);

impl Deref for Used {
    type Target = Volume;

    fn deref(&self) -> &Volume {
        &self.0
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        if self.0.disk.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.disk.device.last_closed();
        }
    }
}

/// Writes what is dirty on all disks, and waits for it (sync(2)). `progress` is the caller's, and begins as nothing: how many disks are done, and how far the next is.
///
/// # Errors
/// `BlockOnDevice`, with the waker entered.
pub fn sync_all(progress: &mut (usize, SyncProgress), waker: Option<Waker>, cx: &Cx) -> Step<()> {
    let at = |index: usize| DISKS.lock(cx).get(index).copied();
    while let Some(disk) = at(progress.0) {
        let outcome = disk.cache(cx).sync(0..u64::MAX, Depth::Kept, &mut progress.1, waker, cx);
        if let Err(stop @ (Stop::BlockOnDevice | Stop::NoMemory)) = outcome {
            return Err(stop);
        }
        *progress = (progress.0 + 1, SyncProgress::default());
    }
    Ok(())
}

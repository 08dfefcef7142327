//! Disks (virtio-blk, 5.2).
//!
//! There is a queue for each core, as far as the device has so many, and a [task](super::service) for each queue that takes out what the device has done.
//!
//! Owner: a disk lives for ever. A request is the queue's from [`submit`](BlockDevice::submit) until the task tells its owner. A device that breaks the rules, or that an IOMMU has stopped, is cut off, and what it had to do fails at once.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::dma::{DeviceAddress, DmaCoherent, DmaMap, Domain};
use frame::mm::PAGE_SIZE;
use frame::pci::{Interrupt, MmioWindow};
use refs::{SpinLock, WaitList};

use super::pci::{Doorbell, Transport};
use super::queue::{Broken, DIRECT_DESCRIPTORS, Queue, Segment};
use super::service::{self, Attached, Bell, Serve, take_done};
use crate::block::{BlockDevice, Limits, Operation, Refused, Request, SECTOR, Statistics};
use crate::error::{Errno, Result};
use crate::sched::Parameters;

/// The type of device, and the number that such devices had before version 1.
const KIND: u16 = 2;
const OLD_NUMBER: u16 = 0x1001;

/// Features (5.2.3).
const SIZE_MAX: u64 = 1 << 1;
const SEG_MAX: u64 = 1 << 2;
const READ_ONLY: u64 = 1 << 5;
const BLOCK_SIZE: u64 = 1 << 6;
const FLUSH: u64 = 1 << 9;
const TOPOLOGY: u64 = 1 << 10;
const MULTI_QUEUE: u64 = 1 << 12;
const DISCARD: u64 = 1 << 13;
const WRITE_ZEROES: u64 = 1 << 14;
const WANTED: u64 =
    SIZE_MAX | SEG_MAX | READ_ONLY | BLOCK_SIZE | FLUSH | TOPOLOGY | MULTI_QUEUE | DISCARD | WRITE_ZEROES;

/// Each slot of a queue has so many bytes: the header, what is to be discarded, and the status.
const SLOT_BYTES: usize = 64;
const HEADER_BYTES: u32 = 16;
const RANGE_AT: usize = 16;
const RANGE_BYTES: u32 = 16;
const STATUS_AT: usize = 32;

/// Statuses (5.2.6).
const DONE: u8 = 0;
const UNSUPPORTED: u8 = 2;
/// None of the device's.
const NOT_YET: u8 = 0xff;

/// So many frames a request has at most: a mebibyte.
const MOST_FRAMES: usize = 256;

/// A disk.
struct Disk {
    attached: Attached,
    limits: Limits,
    queues: Vec<DiskQueue>,
    room: WaitList,
    statistics: Statistics,
}

struct DiskQueue {
    ring: SpinLock<Ring>,
    doorbell: Doorbell,
    bell: Bell,
    done: &'static WaitList,
    _interrupt: Interrupt,
}

struct Ring {
    queue: Queue<UnderWay>,
    headers: DmaCoherent,
    /// How many bytes a segment may have.
    largest_segment: u32,
}

/// A request that the device works on.
struct UnderWay {
    request: Request,
    /// Its frames.
    lent: DmaMap,
    began: u64,
}

/// Claims all disks that there are and starts their tasks.
pub fn find() -> Vec<&'static dyn BlockDevice> {
    let mut disks: Vec<&'static dyn BlockDevice> = Vec::new();
    while let Some(claimed) = Transport::claim(KIND, OLD_NUMBER, WANTED) {
        match claimed.and_then(Disk::start) {
            Ok(disk) => disks.push(disk),
            Err(why) => crate::log!("a virtual disk cannot be used: {why}"),
        }
    }
    disks
}

/// The device's configuration (5.2.4), as far as it counts.
struct Config {
    sectors: u64,
    largest_segment: u32,
    most_segments: u32,
    block_size: u32,
    physical_exponent: u8,
    alignment_offset: u8,
    smallest_io: u16,
    best_io: u32,
    queues: u16,
    most_discard: u32,
    most_zeroes: u32,
}

impl Config {
    fn read(window: &MmioWindow) -> Self {
        let sectors = u64::from(window.read::<u32>(0)) | u64::from(window.read::<u32>(4)) << 32;
        Config {
            sectors,
            largest_segment: window.read(8),
            most_segments: window.read(12),
            block_size: window.read(20),
            physical_exponent: window.read(24),
            alignment_offset: window.read(25),
            smallest_io: window.read(26),
            best_io: window.read(28),
            queues: window.read(34),
            most_discard: window.read(36),
            most_zeroes: window.read(48),
        }
    }
}

/// What the device can do. What it says of itself and cannot be is left out.
fn limits(transport: &Transport, config: &Config) -> Limits {
    let of = |feature, value: u32| if transport.has(feature) { value } else { 0 };
    let is_block_size = |bytes: &u32| bytes.is_power_of_two() && (512..=PAGE_SIZE as u32).contains(bytes);
    let logical_block = Some(of(BLOCK_SIZE, config.block_size)).filter(is_block_size).unwrap_or(512);
    let exponent = u32::from(config.physical_exponent).min(12);
    let physical_block = if transport.has(TOPOLOGY) { logical_block << exponent } else { logical_block };
    let most_segments = if transport.has(SEG_MAX) { config.most_segments.max(1) as usize } else { MOST_FRAMES };
    Limits {
        // No file has an offset beyond.
        sectors: config.sectors.min(i64::MAX as u64 / SECTOR),
        is_read_only: transport.has(READ_ONLY),
        has_cache: transport.has(FLUSH),
        logical_block,
        physical_block,
        alignment_offset: of(TOPOLOGY, config.alignment_offset.into()).saturating_mul(logical_block),
        smallest_io: of(TOPOLOGY, config.smallest_io.into()).saturating_mul(logical_block).max(logical_block),
        best_io: of(TOPOLOGY, config.best_io).saturating_mul(logical_block),
        most_frames: most_segments.min(MOST_FRAMES),
        most_discard: of(DISCARD, config.most_discard),
        most_zeroes: of(WRITE_ZEROES, config.most_zeroes),
        depth: 0,
    }
}

impl Disk {
    fn start(transport: Transport) -> core::result::Result<&'static Self, &'static str> {
        let fail = |transport: &Transport, why| {
            transport.fail();
            why
        };
        let config = transport.read_config(Config::read);
        if transport.has(SIZE_MAX) && (config.largest_segment as usize) < PAGE_SIZE {
            return Err(fail(&transport, "it takes less than a page at once"));
        }
        let mut limits = limits(&transport, &config);
        let offered = if transport.has(MULTI_QUEUE) { usize::from(config.queues.max(1)) } else { 1 };
        let wanted = offered.min(frame::cpu::count()).min(transport.interrupts());
        let largest = if transport.has(SIZE_MAX) { config.largest_segment } else { u32::MAX };
        let queues: Vec<DiskQueue> = (0..wanted).map_while(|number| queue(&transport, number, largest)).collect();
        let Some(most) = queues.iter().map(|queue| queue.ring.with(|ring| ring.queue.most_segments())).min() else {
            return Err(fail(
                &transport,
                "it has no queue with an interrupt of its own, or there is no memory for one",
            ));
        };
        // The header and the status are segments, too.
        limits.most_frames = limits.most_frames.min(most.saturating_sub(2));
        if limits.most_frames == 0 {
            return Err(fail(&transport, "its queue is too short"));
        }
        limits.depth = queues.iter().map(|queue| queue.ring.with(|ring| ring.queue.slots())).sum();
        // The first queue's task looks whether it was stopped.
        if let Some(queue) = queues.first() {
            queue.bell.hear_of_faults(&transport);
        }
        transport.begin();
        let disk: &'static Disk = Box::leak(Box::new(Disk {
            attached: Attached::new(transport, "the virtual disk"),
            limits,
            queues,
            room: WaitList::new(),
            statistics: Statistics::default(),
        }));
        for number in 0..disk.queues.len() {
            service::start(Completer { disk, number }, Parameters::default());
        }
        Ok(disk)
    }

    /// The device has said what cannot be: from now on everything fails.
    fn give_up(&self, cx: &Cx) {
        if !self.attached.cut_off() {
            return;
        }
        for queue in &self.queues {
            // Who comes later finds that it is gone.
            let rest = queue.ring.lock(cx).queue.take_all();
            for under_way in rest {
                self.finish(under_way, Err(Errno::EIO), cx);
            }
        }
        self.room.wake_all();
    }

    /// Tells the owner of a request. The device does not use its frames any more, or cannot.
    fn finish(&self, under_way: UnderWay, outcome: Result<()>, cx: &Cx) {
        let UnderWay { mut request, lent, began } = under_way;
        self.statistics.end(&request, began);
        request.frames = lent.take_back();
        request.owner.completed(request.frames, outcome, cx);
    }
}

/// A queue of the device; `None` if it has none of that number.
fn queue(transport: &Transport, number: usize, largest_segment: u32) -> Option<DiskQueue> {
    let (bell, done) = Bell::with_waiters()?;
    let interrupt = bell.interrupt(transport, number as u16, number)?;
    let (queue, doorbell) = transport.queue(number as u16, DIRECT_DESCRIPTORS, number as u16)?;
    let headers = DmaCoherent::new(transport.domain(), 0)?;
    let ring = SpinLock::new(Ring { queue, headers, largest_segment });
    Some(DiskQueue { ring, doorbell, bell, done, _interrupt: interrupt })
}

impl service::Ring for Ring {
    type Request = UnderWay;

    fn queue(&mut self) -> &mut Queue<UnderWay> {
        &mut self.queue
    }
}

impl Ring {
    /// Makes a request available; it comes back if there is no slot, or no memory for the tables of an IOMMU.
    fn push(
        &mut self,
        request: Request,
        domain: &'static Domain,
        began: u64,
    ) -> core::result::Result<(), (Request, Refused)> {
        let Some(slot) = self.queue.next_slot() else { return Err((request, Refused::Full)) };
        let base = slot * SLOT_BYTES;
        let kind: u32 = match request.operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Flush => 4,
            Operation::Identify => 8,
            Operation::Discard => 11,
            Operation::WriteZeroes => 13,
        };
        let is_ranged = matches!(request.operation, Operation::Discard | Operation::WriteZeroes);
        let is_data = matches!(request.operation, Operation::Read | Operation::Write);
        self.headers.store(base, kind);
        self.headers.store(base + 4, 0_u32);
        self.headers.store(base + 8, if is_data { request.sector } else { 0 });
        self.headers.store(base + STATUS_AT, NOT_YET);
        let mut request = request;
        let lent = match DmaMap::new(domain, core::mem::take(&mut request.frames)) {
            Ok(lent) => lent,
            Err(frames) => {
                request.frames = frames;
                return Err((request, Refused::Gone));
            }
        };
        let (Some(header), Some(range), Some(status)) =
            (self.headers.address(base), self.headers.address(base + RANGE_AT), self.headers.address(base + STATUS_AT))
        else {
            request.frames = lent.take_back();
            return Err((request, Refused::Gone));
        };
        let mut segments = Segments { all: Vec::with_capacity(lent.len() + 3), largest: self.largest_segment };
        segments.add(header, HEADER_BYTES, false);
        if is_ranged {
            self.headers.store(base + RANGE_AT, request.sector);
            self.headers.store(base + RANGE_AT + 8, request.sectors);
            self.headers.store(base + RANGE_AT + 12, 0_u32);
            segments.add(range, RANGE_BYTES, false);
        }
        let is_written = matches!(request.operation, Operation::Read | Operation::Identify);
        let mut left = match request.operation {
            Operation::Identify => 20,
            _ if is_data => request.sectors as usize * SECTOR as usize,
            _ => 0,
        };
        for index in 0..lent.len() {
            let len = left.min(PAGE_SIZE);
            if let Some(address) = lent.address(index).filter(|_| len > 0) {
                segments.add(address, len as u32, is_written);
            }
            left -= len;
        }
        segments.add(status, 1, true);
        match self.queue.push(&segments.all, UnderWay { request, lent, began }) {
            Ok(()) => Ok(()),
            Err(UnderWay { mut request, lent, .. }) => {
                request.frames = lent.take_back();
                Err((request, Refused::Full))
            }
        }
    }
}

/// The memory of a request, of which pages that lie together are one piece.
struct Segments {
    all: Vec<Segment>,
    largest: u32,
}

impl Segments {
    fn add(&mut self, address: DeviceAddress, len: u32, is_written: bool) {
        let is_page = len as usize == PAGE_SIZE;
        if let Some(last) = self.all.last_mut()
            && is_page
            && last.len as usize >= PAGE_SIZE
            && last.is_written == is_written
            && last.len <= self.largest - len
            && last.address.is_followed_by(last.len as usize, address)
        {
            last.len += len;
        } else {
            self.all.push(Segment { address, len, is_written });
        }
    }
}

impl BlockDevice for Disk {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request, cx: &Cx) -> core::result::Result<(), (Request, Refused)> {
        if !request.is_within(&self.limits) {
            return Err((request, Refused::Gone));
        }
        let queue = &self.queues[frame::cpu::current(cx) % self.queues.len()];
        let mut ring = queue.ring.lock(cx);
        if self.attached.is_gone() {
            return Err((request, Refused::Gone));
        }
        let began = self.statistics.begin();
        if let Err(refused) = ring.push(request, self.attached.domain(), began) {
            self.statistics.take_back();
            return Err(refused);
        }
        if ring.queue.must_tell() {
            queue.doorbell.ring();
        }
        Ok(())
    }

    fn room(&self) -> &WaitList {
        &self.room
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

/// Takes what the device has done out of a queue.
struct Completer {
    disk: &'static Disk,
    number: usize,
}

impl Serve for Completer {
    fn attached(&self) -> &Attached {
        &self.disk.attached
    }

    fn waiters(&self) -> &WaitList {
        self.disk.queues[self.number].done
    }

    fn work(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        let judge = |ring: &Ring, under_way, slot: usize, written| {
            let status: u8 = ring.headers.load(slot * SLOT_BYTES + STATUS_AT);
            (under_way, status, written)
        };
        let tell = |(under_way, status, written)| self.finish(under_way, status, written, cx);
        let was_busy = take_done(&self.disk.attached, &self.disk.queues[self.number].ring, judge, tell, cx)?;
        if was_busy {
            self.disk.room.wake_all();
        }
        Ok(was_busy)
    }

    fn give_up(&self, cx: &Cx) {
        self.disk.give_up(cx);
    }
}

impl Completer {
    fn finish(&self, under_way: UnderWay, status: u8, written: u32, cx: &Cx) {
        let request = &under_way.request;
        // With the status (2.7.8.2): what is missing is whatever the memory held before.
        let least = if request.operation == Operation::Read { request.sectors * SECTOR as u32 + 1 } else { 1 };
        let outcome = match status {
            DONE if written < least => Err(Errno::EIO),
            DONE => Ok(()),
            UNSUPPORTED => Err(Errno::EOPNOTSUPP),
            _ => Err(Errno::EIO),
        };
        let is_broken = written == u32::MAX || status == NOT_YET || self.disk.attached.has_faulted();
        if is_broken {
            // It is cut off before the frames are somebody else's.
            self.disk.give_up(cx);
        }
        self.disk.finish(under_way, if is_broken { Err(Errno::EIO) } else { outcome }, cx);
    }
}

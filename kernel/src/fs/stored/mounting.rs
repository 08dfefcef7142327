//! Mounting what is on a device: replays a journal, opens the file system, notes on the disk that it is in use, and goes on with what a crash has interrupted.
//!
//! All of it is done by whoever mounts, in steps. What is replayed is replayed again where that was not finished, and comes to the same. A device has one file system: whoever mounts it again shares that.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use frame::Cx;
use frame::mm::Reader;
use refs::{SpinLock, StrongRc, Waker, WeakRc};

use super::format::{Change, Problem, Recovery, Repair, Space};
use super::state::{State, Stopped};
use super::volume::{Place, Volume, ask};
use super::{Format, task};
use crate::block::{self, Depth, SyncProgress};
use crate::error::{Errno, Result};
use crate::fs::file_system::wait_for_end;
use crate::fs::types::{BadOption, Checked, OnDevice, Opening, split_option};
use crate::fs::{DeviceNumber, FileSystem, Inode, Instance, Timestamp};
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// A file system that is mounted, or about to be.
struct Mounted {
    device: DeviceNumber,
    kind: &'static str,
    /// `None`: somebody is about to mount it.
    instance: Option<(WeakRc<FileSystem>, WeakRc<Inode>)>,
}

static MOUNTED: SpinLock<Vec<Mounted>> = SpinLock::new(Vec::new());

/// The right to mount a device.
struct Claim {
    device: DeviceNumber,
    is_done: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_done {
            MOUNTED.with(|all| all.retain(|one| one.device != self.device || one.instance.is_some()));
        }
    }
}

/// Somebody mounts a device.
pub struct Mounting<F: Format> {
    device: DeviceNumber,
    kind: &'static str,
    options: Vec<u8>,
    is_read_only: bool,
    claim: Option<Claim>,
    place: Option<Place>,
    /// Counts as a mount of the file system until the real one does.
    held: Option<StrongRc<FileSystem>>,
    phase: Phase<F>,
    opening: F::Opening,
    /// Blocks to be written, and how many bytes of the first are.
    to_write: Vec<(u64, Arc<[u8]>)>,
    written: usize,
}

enum Phase<F: Format> {
    Look,
    Recover(Box<dyn Recovery>),
    Flush(SyncProgress, Option<Box<dyn Recovery>>),
    Open,
    Begin(Box<F>, State, Space),
    Mark(Box<F>, State, Space, SyncProgress),
    Orphans(Instance, WeakRc<Volume<F>>),
    Done,
}

/// Looks whether an option of mount(2) is understood: one that all formats have, or the format.
///
/// # Errors
/// What is wrong with it.
pub fn check_option<F: Format>(option: &[u8]) -> Checked {
    match split_option(option) {
        _ if F::has_option(option) => Ok(()),
        (b"defaults" | b"ro" | b"rw" | b"user_xattr" | b"acl" | b"noacl", b"") => Ok(()),
        (b"errors", b"remount-ro") | (b"data", b"ordered") => Ok(()),
        (b"errors" | b"data", _) => Err(BadOption::Value),
        _ => Err(BadOption::Unknown),
    }
}

/// Prepares to mount what is on a device.
///
/// # Errors
/// ENXIO: there is no such device. EINVAL: options that are not understood. EACCES: the disk cannot be written.
pub fn mount<F: Format>(kind: &'static str, request: &OnDevice<'_>) -> Result<Box<dyn Opening>> {
    let options = request.options.split(|&byte| byte == b',').filter(|option| !option.is_empty());
    if options.into_iter().any(|option| check_option::<F>(option).is_err()) {
        return Err(Errno::EINVAL);
    }
    Ok(Box::new(Mounting::<F> {
        device: request.device,
        kind,
        options: request.options_shown(),
        is_read_only: request.is_read_only || !F::CAN_BE_WRITTEN,
        claim: None,
        place: None,
        held: None,
        phase: Phase::Look,
        opening: F::Opening::default(),
        to_write: Vec::new(),
        written: 0,
    }))
}

impl<F: Format> Opening for Mounting<F> {
    fn step(&mut self, waker: Option<Waker>, cx: &Cx) -> Step<Instance> {
        let mut time_slice = TimeSlice::default();
        loop {
            self.write(cx)?;
            match core::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Look => {
                    self.phase = Phase::Look;
                    if let Some(instance) = self.look(waker, cx)? {
                        return Ok(instance);
                    }
                }
                Phase::Recover(mut recovery) => match self.recover(&mut *recovery, cx) {
                    Ok(Repair::More) => self.phase = Phase::Recover(recovery),
                    Ok(Repair::Write(block, bytes)) => {
                        self.to_write.push((block, bytes.into()));
                        self.phase = Phase::Recover(recovery);
                    }
                    Ok(Repair::Flush) => self.phase = Phase::Flush(SyncProgress::default(), Some(recovery)),
                    Ok(Repair::Done) => self.phase = Phase::Open,
                    Err(stop) => {
                        self.phase = Phase::Recover(recovery);
                        return Err(stop);
                    }
                },
                Phase::Flush(mut progress, recovery) => {
                    let outcome = self.flush(&mut progress, waker, cx);
                    self.phase = match (&outcome, recovery) {
                        (Ok(()), Some(recovery)) => Phase::Recover(recovery),
                        (Ok(()), None) => Phase::Open,
                        (Err(_), recovery) => Phase::Flush(progress, recovery),
                    };
                    outcome?;
                }
                Phase::Open => {
                    self.phase = Phase::Open;
                    self.open(cx)?;
                }
                Phase::Begin(format, state, space) => self.begin(format, state, space, cx)?,
                Phase::Mark(format, state, space, mut progress) => {
                    if let Err(stop) = self.flush(&mut progress, waker, cx) {
                        self.phase = Phase::Mark(format, state, space, progress);
                        return Err(stop);
                    }
                    self.make(*format, state, space, cx)?;
                }
                Phase::Orphans(instance, volume) => {
                    let outcome = recover_orphans(volume, cx);
                    self.phase = Phase::Orphans(instance, volume);
                    if !outcome? {
                        return self.finish(cx);
                    }
                }
                Phase::Done => return Err(Errno::EINVAL.into()),
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
    }
}

/// Goes on with what was interrupted; whether there is more.
fn recover_orphans<F: Format>(volume: WeakRc<Volume<F>>, cx: &Cx) -> Step<bool> {
    let volume = volume.upgrade(cx).map_err(|_| Errno::EIO)?;
    if !volume.is_changed(cx) {
        return Ok(false);
    }
    Ok(volume.change(cx, &Change::Recover, |_, _| Ok(()))?.0.has_more)
}

impl<F: Format> Mounting<F> {
    /// Looks for a file system that is mounted from the device already, else claims it.
    fn look(&mut self, waker: Option<Waker>, cx: &Cx) -> Step<Option<Instance>> {
        let device = block::volume(self.device.major, self.device.minor, cx).ok_or(Errno::ENXIO)?;
        if !self.is_read_only && device.is_read_only() {
            return Err(Errno::EACCES.into());
        }
        let place = Place::of(device)?;
        // One that ends is waited for.
        wait_for_end(waker, cx);
        let mut all = MOUNTED.lock(cx);
        all.retain(|one| {
            let Some((file_system, _)) = &one.instance else { return true };
            file_system.upgrade(cx).is_ok_and(|file_system| !file_system.is_over())
        });
        if let Some(one) = all.iter().find(|one| one.device == self.device) {
            let Some((file_system, root)) = &one.instance else { return Err(Errno::EBUSY.into()) };
            let file_system = file_system.upgrade(cx).map_err(|_| Errno::EBUSY)?;
            let shared = file_system.share().ok_or(Errno::EBUSY)?;
            if !file_system.begin_another_mount() {
                return Err(Stop::BlockOnDevice);
            }
            self.held = Some(shared);
            if one.kind != self.kind || file_system.is_read_only() != self.is_read_only {
                return Err(Errno::EBUSY.into());
            }
            let root = root.upgrade(cx).map_err(|_| Errno::EBUSY)?;
            return Ok(Some((file_system.share().ok_or(Errno::EBUSY)?, root.share().ok_or(Errno::EBUSY)?)));
        }
        all.push(Mounted { device: self.device, kind: self.kind, instance: None });
        drop(all);
        self.claim = Some(Claim { device: self.device, is_done: false });
        self.place = Some(place);
        self.phase = Phase::Open;
        if F::CAN_BE_WRITTEN && !device.is_read_only() {
            self.phase = Phase::Look;
            return self.look_for_recovery(device.size(), cx).map(|()| None);
        }
        Ok(None)
    }

    fn place(&self) -> Result<&Place> {
        self.place.as_ref().ok_or(Errno::EIO)
    }

    fn look_for_recovery(&mut self, bytes: u64, cx: &Cx) -> Step<()> {
        let found = self.ask(cx, |view| F::recovery(view, bytes));
        match found {
            Ok(found) => {
                self.phase = match found {
                    Some(recovery) => Phase::Recover(recovery),
                    None => Phase::Open,
                };
                Ok(())
            }
            Err(stop) => {
                // It looks again.
                (self.claim, self.place) = (None, None);
                Err(stop)
            }
        }
    }

    fn ask<T>(&self, cx: &Cx, question: impl FnOnce(&super::View<'_>) -> super::format::Said<T>) -> Step<T> {
        ask(self.place()?, None, &AtomicBool::new(false), self.kind, cx, question)
    }

    fn recover(&self, recovery: &mut dyn Recovery, cx: &Cx) -> Step<Repair> {
        self.ask(cx, |view| recovery.step(view))
    }

    /// Writes the blocks that are to be written.
    fn write(&mut self, cx: &Cx) -> Step<()> {
        while let Some((offset, bytes)) = self.to_write.first() {
            let volume = &self.place()?.volume;
            let range = volume.bytes();
            let at = range.start + offset + self.written as u64;
            let mut reader = Reader::from(&bytes[self.written..]);
            match volume.disk.cache(cx).write(at, range.end, &mut reader, cx)? {
                0 => return Err(Errno::EIO.into()),
                more => self.written += more,
            }
            if self.written == bytes.len() {
                self.to_write.remove(0);
                self.written = 0;
            }
        }
        Ok(())
    }

    fn flush(&self, progress: &mut SyncProgress, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        self.place()?.volume.disk.cache(cx).sync(0..u64::MAX, Depth::Kept, progress, waker, cx)
    }

    fn open(&mut self, cx: &Cx) -> Step<()> {
        let bytes = self.place()?.volume.size();
        // What is to be read only may be written later.
        let to_write = F::CAN_BE_WRITTEN && !self.place()?.volume.is_read_only();
        let mut opening = core::mem::take(&mut self.opening);
        let opened = self.ask(cx, |view| {
            let format = match F::open(view, bytes, to_write, &self.options, &mut opening) {
                // Not with what it has.
                Err(Problem::Errno(Errno::EROFS) | Problem::Unsupported(_)) if to_write && self.is_read_only => {
                    F::open(view, bytes, false, &self.options, &mut opening)?
                }
                opened => opened?,
            };
            let space = format.space(view)?;
            Ok((format, space))
        });
        self.opening = opening;
        let (format, space) = opened?;
        let journal = match format.is_written() {
            true => Some(self.ask(cx, |view| format.journal(view))?),
            false => None,
        };
        let mut state = State::new(journal, format.block_bytes());
        state.stopped = self.is_read_only.then_some(Stopped::ReadOnly);
        self.phase = Phase::Begin(Box::new(format), state, space);
        Ok(())
    }

    /// Notes on the disk that the file system is in use.
    fn begin(&mut self, format: Box<F>, state: State, space: Space, cx: &Cx) -> Step<()> {
        let Some(journal) = state.journal.as_ref().filter(|_| !self.is_read_only) else {
            return self.make(*format, state, space, cx);
        };
        let begin = Change::Begin(journal.has_log());
        let begun = self.ask(cx, |view| format.change(&begin, Timestamp::now(), view));
        let size = u64::from(format.block_bytes());
        match begun {
            Ok((_, changes)) => {
                self.to_write.extend(changes.into_blocks().into_iter().map(|(block, bytes)| (block * size, bytes)));
                self.phase = Phase::Mark(format, state, space, SyncProgress::default());
                Ok(())
            }
            Err(stop) => {
                self.phase = Phase::Begin(format, state, space);
                Err(stop)
            }
        }
    }

    /// Makes the instance.
    fn make(&mut self, format: F, state: State, space: Space, cx: &Cx) -> Step<()> {
        let is_written = format.is_written();
        let (node, metadata) = match self.ask(cx, |view| format.node(format.root(), view)) {
            Ok(root) => root,
            Err(stop) => {
                self.phase = Phase::Begin(Box::new(format), state, space);
                return Err(stop);
            }
        };
        let options = core::mem::take(&mut self.options);
        let file_system = match self.is_read_only || !is_written {
            false => FileSystem::new(self.kind, F::MAGIC, options),
            true => FileSystem::new_read_only(self.kind, F::MAGIC, options),
        };
        let place = self.place.take().ok_or(Errno::EIO)?;
        space.tell(&file_system.get(cx).capacity);
        let name = file_system.downgrade();
        let volume = StrongRc::new_cyclic(|own| Volume::new(own, (place, format, state), name, self.kind));
        let root = {
            let volume = volume.get(cx);
            let number = volume.format.root();
            {
                let attributes = volume.attributes_with_acls(&node, cx)?;
                volume.enter(number, None, node, metadata, attributes, cx)?
            }
            .share()
            .ok_or(Errno::ENOENT)?
        };
        let volume_name = volume.downgrade();
        if is_written {
            task::start(volume_name);
        }
        file_system.with(|file_system| {
            file_system.keep(volume.unsize(|volume| volume));
            file_system.begin_mount();
        });
        self.held = Some(file_system.share());
        self.phase = Phase::Orphans((file_system, root), volume_name);
        Ok(())
    }

    fn finish(&mut self, cx: &Cx) -> Step<Instance> {
        let Phase::Orphans(instance, _) = core::mem::replace(&mut self.phase, Phase::Done) else {
            return Err(Errno::EIO.into());
        };
        let mut all = MOUNTED.lock(cx);
        if let Some(one) = all.iter_mut().find(|one| one.device == self.device && one.instance.is_none()) {
            one.instance = Some((instance.0.downgrade(), instance.1.downgrade()));
        }
        drop(all);
        if let Some(claim) = &mut self.claim {
            claim.is_done = true;
        }
        Ok(instance)
    }
}

impl<F: Format> Drop for Mounting<F> {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.with(FileSystem::end_mount);
        }
    }
}

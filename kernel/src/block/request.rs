//! [`Request`]: one piece of work for a block device, and [`Transfer`], one that somebody waits for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame};
use refs::{SpinLock, StrongRc, WaitList, Waker, WeakRc};

use super::{BlockDevice, Limits};
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

/// Bytes in a sector: all devices are counted in these, whatever their blocks are.
pub const SECTOR: u64 = 512;

/// What a device is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read sectors into the frames.
    Read,
    /// Write them.
    Write,
    /// See to it that all that was written before stays even if the power goes.
    Flush,
    /// The sectors are not needed any more: what is in them afterwards is not said.
    Discard,
    /// The sectors hold zeros afterwards.
    WriteZeroes,
    /// Write what the device is called (up to 20 bytes of text, then zeros) into the first frame.
    Identify,
}

/// A piece of work for a device. The device owns it, and with it the frames, from [`BlockDevice::submit`] until its owner is told: whoever asked for it may be gone by then.
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// From which sector on.
    pub sector: u64,
    /// For how many.
    pub sectors: u32,
    /// Where the data are or go to: of all frames but the last, all bytes.
    pub frames: Vec<UFrame>,
    /// Who is told.
    pub owner: Box<dyn Owner>,
}

impl Request {
    /// Whether it is one that a device with these limits can do: the sectors are there, and so many frames as they need.
    pub fn is_within(&self, limits: &Limits) -> bool {
        self.is_within_first(limits, limits.sectors)
    }

    /// The same, of a device that has only so many sectors.
    pub fn is_within_first(&self, limits: &Limits, sectors: u64) -> bool {
        let has_sectors = self.sector.checked_add(self.sectors.into()).is_some_and(|end| end <= sectors);
        let needed = (u64::from(self.sectors) * SECTOR).div_ceil(PAGE_SIZE as u64);
        let has_frames =
            self.sectors > 0 && self.frames.len() as u64 == needed && self.frames.len() <= limits.most_frames;
        let may_write = !limits.is_read_only;
        match self.operation {
            Operation::Read => has_sectors && has_frames,
            Operation::Write => has_sectors && has_frames && may_write,
            Operation::Flush => true,
            Operation::Discard => has_sectors && may_write && (1..=limits.most_discard).contains(&self.sectors),
            Operation::WriteZeroes => has_sectors && may_write && (1..=limits.most_zeroes).contains(&self.sectors),
            Operation::Identify => self.frames.len() == 1,
        }
    }
}

/// Who is told that a request is done. It is told exactly once, from a task of the device's, and does little more than note it and wake somebody.
pub trait Owner: Send {
    /// It is done, or has failed.
    fn completed(self: Box<Self>, frames: Vec<UFrame>, outcome: Result<()>, cx: &Cx);
}

/// A request of which somebody waits for the end. Its owner is whoever waits; if that ends sooner, the device goes on and the frames are given back when it is done.
pub struct Transfer {
    outcome: SpinLock<Option<Result<Vec<UFrame>>>>,
    done: WaitList,
}

struct Waiting(WeakRc<Transfer>);

impl Owner for Waiting {
    fn completed(self: Box<Self>, frames: Vec<UFrame>, outcome: Result<()>, cx: &Cx) {
        if let Ok(transfer) = self.0.upgrade(cx) {
            *transfer.outcome.lock(cx) = Some(outcome.map(|()| frames));
            transfer.done.wake_all();
        }
    }
}

impl Transfer {
    /// Gives a device something to do.
    ///
    /// # Errors
    /// `BlockOnDevice` where the device has no room, with the waker entered where it gets some; EIO if it is gone.
    pub fn start(
        device: &dyn BlockDevice,
        operation: Operation,
        (sector, sectors): (u64, u32),
        frames: Vec<UFrame>,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<StrongRc<Self>> {
        if let Some(waker) = waker {
            device.room().register(waker, cx);
        }
        let transfer = StrongRc::new(Transfer { outcome: SpinLock::new(None), done: WaitList::new() });
        let owner = Box::new(Waiting(transfer.downgrade()));
        match device.submit(Request { operation, sector, sectors, frames, owner }, cx) {
            Ok(()) => Ok(transfer),
            Err((_, Refused::Full)) => Err(Stop::BlockOnDevice),
            Err((_, Refused::Gone)) => Err(Errno::EIO.into()),
        }
    }

    /// Its frames, once it is done.
    ///
    /// # Errors
    /// `BlockOnDevice` before; EIO and others if it failed.
    pub fn poll(&self, waker: Option<Waker>, cx: &Cx) -> Step<Vec<UFrame>> {
        if let Some(waker) = waker {
            self.done.register(waker, cx);
        }
        match self.outcome.lock(cx).take() {
            Some(outcome) => Ok(outcome?),
            None => Err(Stop::BlockOnDevice),
        }
    }
}

/// Why a device does not take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has enough to do: who waits at its [`room`](BlockDevice::room) is woken when that changes.
    Full,
    /// It is gone, or broken: all that it had to do has failed, and all else does.
    Gone,
}

/// Waits, as a task of the kernel's own, until `step` is done. Nothing ends the wait.
///
/// # Errors
/// The step's own; ENOMEM where it lacks memory for pages.
pub fn wait_async<T>(cx: &mut Cx, mut step: impl FnMut(Option<Waker>, &Cx) -> Step<T>) -> Result<T> {
    loop {
        let waker = tasks::prepare(cx);
        let mut outcome = step(Some(waker), cx);
        if let Err(Stop::Absent(absent)) = outcome {
            let wanted = absent.watch(waker, cx);
            outcome = match step(Some(waker), cx) {
                Err(Stop::Absent(other)) if other.is(wanted, cx) => Err(Stop::Block),
                // Something else.
                Err(Stop::Absent(_)) => Err(Stop::Again),
                outcome => outcome,
            };
        }
        match outcome {
            Err(Stop::BlockOnDevice | Stop::Block) => _ = tasks::park_async(cx),
            other => {
                tasks::finish_wait(cx);
                return match other {
                    Ok(value) => Ok(value),
                    Err(Stop::Error(error)) => Err(error),
                    // Another core that is at it may wait for this one.
                    Err(Stop::Again | Stop::Pause(_)) => {
                        tasks::pause_async(cx);
                        continue;
                    }
                    Err(_) => Err(Errno::ENOMEM),
                };
            }
        }
    }
}

/// Has a device do something and waits for it: see [`wait_async`].
///
/// # Errors
/// EIO.
pub fn transfer_async(
    cx: &mut Cx,
    device: &dyn BlockDevice,
    operation: Operation,
    sectors: (u64, u32),
    frames: Vec<UFrame>,
) -> Result<Vec<UFrame>> {
    let start = |waker, cx: &Cx| Transfer::start(device, operation, sectors, frames.clone(), waker, cx);
    let transfer = wait_async(cx, start)?;
    wait_async(cx, |waker, cx| transfer.get(cx).poll(waker, cx))
}

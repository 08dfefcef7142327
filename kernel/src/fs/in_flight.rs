//! [`InFlight`]: an open file that a message owns (SCM_RIGHTS), not a descriptor.
//!
//! An [`OpenFile`] counts how many of its owners are messages. Where all are, no program can use it until somebody receives one of them.
//! Whether somebody can is the protocol's to find out: it waits for [`wait_for_unreachable`].

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::OpenFile;

/// Whether a file has lost its last owner that is no message since somebody asked.
static UNREACHABLE: AtomicBool = AtomicBool::new(false);
/// Who waits for that.
static WAITERS: WaitList = WaitList::new();

/// A message's ownership of an open file. Dropping it is losing the file with its message.
pub struct InFlight {
    /// None once it has landed.
    file: Option<StrongRc<OpenFile>>,
}

impl InFlight {
    /// The file goes into a message.
    pub fn new(file: StrongRc<OpenFile>) -> Self {
        file.with(|file| file.in_flight.fetch_add(1, Ordering::Relaxed));
        InFlight { file: Some(file) }
    }

    /// One more owner of the file, for who looks at the message and leaves it where it is.
    pub fn share(&self) -> Option<StrongRc<OpenFile>> {
        self.file.as_ref().map(StrongRc::share)
    }

    /// The name of the file.
    pub fn name(&self) -> Option<WeakRc<OpenFile>> {
        self.file.as_ref().map(StrongRc::downgrade)
    }

    /// The file was received: it gets another owner than the message.
    pub fn land(mut self) -> Option<StrongRc<OpenFile>> {
        let file = self.file.take()?;
        file.with(|file| file.in_flight.fetch_sub(1, Ordering::Relaxed));
        Some(file)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let in_flight = file.with(|file| file.in_flight.fetch_sub(1, Ordering::Relaxed)) - 1;
            // Who looks on another core sees neither this message nor this owner of the file.
            drop(file);
            if in_flight > 0 {
                report_unreachable();
            }
        }
    }
}

impl OpenFile {
    /// How many of its owners are messages.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// How many of the file's owners are no messages: descriptors, and calls that are under way.
pub fn other_owners(file: &TempRc<'_, OpenFile>) -> u32 {
    // Sharing it makes one owner more.
    file.share().map_or(0, |share| (share.owners() - 1).saturating_sub(file.in_flight()))
}

/// Ends a call's ownership of files that it has sent: where their descriptors were closed meanwhile, messages are all owners that they have now.
pub fn end_sending(files: Vec<StrongRc<OpenFile>>, cx: &Cx) {
    for file in files {
        let name = file.downgrade();
        drop(file);
        if name.upgrade(cx).is_ok_and(|file| file.in_flight() > 0 && other_owners(&file) == 0) {
            report_unreachable();
        }
    }
}

/// Has who waits for unreachable files look for some. Told when the owner is gone that was no message: who looks may be another core.
#[cold]
pub fn report_unreachable() {
    UNREACHABLE.store(true, Ordering::Release);
    WAITERS.wake_all();
}

/// Whether a file may have become unreachable since the last time that this was asked; if not, the waker is woken when one does.
pub fn wait_for_unreachable(waker: Waker, cx: &Cx) -> bool {
    WAITERS.register(waker, cx);
    UNREACHABLE.swap(false, Ordering::AcqRel)
}

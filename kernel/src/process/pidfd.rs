//! [`PidFd`]: a descriptor that stands for a process. It becomes readable when the process has ended, and never stands for another one of
//! the same number.

use frame::Cx;
use refs::{SpinLock, TempRc, Waker, WeakRc};

use super::{Life, Process};
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd};
use crate::reclaim::Held;

/// What a pidfd does.
pub struct PidFd {
    /// `None` while clone(2) has the descriptor but not the process.
    process: SpinLock<Option<WeakRc<Process>>>,
}

impl PidFd {
    /// For a process.
    pub fn new(process: WeakRc<Process>) -> Self {
        PidFd { process: SpinLock::new(Some(process)) }
    }

    /// For a process that is about to be made.
    pub(super) fn empty() -> Self {
        PidFd { process: SpinLock::new(None) }
    }

    pub(super) fn set(&self, process: WeakRc<Process>, cx: &Cx) {
        *self.process.lock(cx) = Some(process);
    }

    /// The process.
    ///
    /// # Errors
    /// ESRCH: it was waited for.
    pub fn process<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Process>> {
        let process = *self.process.lock(cx);
        Ok(process.ok_or(Errno::ESRCH)?.upgrade(cx)?)
    }
}

impl File for PidFd {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Event
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        let ready = Events::IN | Events::READ_NORMAL;
        let Ok(process) = self.process(cx) else { return ready & interest | Events::HANG_UP };
        if let Some(waker) = waker {
            process.ended.register(waker, cx);
        }
        if process.life() == Life::Alive { Events::empty() } else { ready & interest }
    }
}

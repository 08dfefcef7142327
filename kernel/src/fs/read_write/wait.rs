//! How a call waits for a file.

use core::cell::Cell;

use frame::Cx;

use crate::error::Errno;
use crate::fs::{Events, FileKind, OpenFile, OpenFlags};
use crate::step::{Step, Stop};

/// How a call waits for a file: not at all, for a while, or for ever. One for each call.
pub struct Wait {
    interest: Events,
    /// It does not wait, whatever the description's flags say.
    no_wait: Cell<bool>,
    limit: Cell<Limit>,
    /// It has waited for a socket.
    has_waited: Cell<bool>,
    is_silent: Cell<bool>,
}

/// Until when it waits.
#[derive(Clone, Copy)]
enum Limit {
    /// The file was not asked.
    Unknown,
    Never,
    Time(u64),
}

impl Wait {
    /// For a call that waits for one of `interest`; or not (MSG_DONTWAIT).
    pub fn new(interest: Events, no_wait: bool) -> Self {
        Wait {
            interest,
            no_wait: Cell::new(no_wait),
            limit: Cell::new(Limit::Unknown),
            has_waited: Cell::new(false),
            is_silent: Cell::new(false),
        }
    }

    /// Changes whether it waits.
    pub(super) fn set_no_wait(&self, no_wait: bool) {
        self.no_wait.set(no_wait);
    }

    /// Whether it does not wait, whatever the description's flags say.
    pub(super) fn no_wait(&self) -> bool {
        self.no_wait.get()
    }

    /// Whether the call may wait at all.
    #[inline(always)]
    pub(super) fn may_begin(&self, open: &OpenFile) -> bool {
        !self.no_wait.get() && !open.flags().contains(OpenFlags::NONBLOCK)
    }

    /// What the outcome of a step on the file means for the call.
    #[inline(always)]
    pub fn apply<T>(&self, step: Step<T>, open: &OpenFile, cx: &Cx) -> Step<T> {
        match step {
            Err(Stop::Block) => Err(self.block(open, cx)),
            Err(Stop::Absent(_)) if self.no_wait.get() => Err(Errno::EAGAIN.into()),
            Err(Stop::Error(Errno::EPIPE)) if self.has_waited.get() => Err(self.lost_reader(open, cx).into()),
            step => step,
        }
    }

    /// Something was transferred: the time begins anew with the next wait.
    #[inline(always)]
    pub fn restart(&self) {
        if matches!(self.limit.get(), Limit::Time(_)) {
            self.limit.set(Limit::Unknown);
        }
    }

    /// Whether an error comes without its signal: of a socket whose reader went while the call waited.
    pub fn is_silent(&self) -> bool {
        self.is_silent.get()
    }

    #[inline(always)]
    fn block(&self, open: &OpenFile, cx: &Cx) -> Stop {
        if !self.may_begin(open) {
            return Errno::EAGAIN.into();
        }
        // Nothing else has time limits.
        let is_socket = open.location.inode.get(cx).kind == FileKind::Socket;
        if is_socket { self.block_on_socket(open) } else { Stop::Block }
    }

    #[inline(never)]
    fn block_on_socket(&self, open: &OpenFile) -> Stop {
        if let Limit::Unknown = self.limit.get() {
            let limit = match open.file.time_limit(self.interest) {
                None => Limit::Never,
                Some(limit) => Limit::Time(frame::time::now().saturating_add(limit)),
            };
            self.limit.set(limit);
            self.has_waited.set(true);
        }
        match self.limit.get() {
            Limit::Time(end) => Stop::BlockUntil(end),
            Limit::Unknown | Limit::Never => Stop::Block,
        }
    }

    #[cold]
    fn lost_reader(&self, open: &OpenFile, cx: &Cx) -> Errno {
        let error = open.file.lost_reader(cx);
        self.is_silent.set(error.is_some());
        error.unwrap_or(Errno::EPIPE)
    }
}

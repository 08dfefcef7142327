//! [`FileOwner`]: whom an open file's signals go to (F_SETOWN), and by whose rights.
//!
//! It belongs to the open file. It has names only, so a thread or process that ends gets nothing any more, nor does another one of the same number.

use frame::Cx;
use refs::WeakRc;

use super::{Process, Thread, group_members};
use crate::credentials::{Credentials, Sender};
use crate::fs::fasync::SignalTarget;
use crate::signal::send::{send_to_process, send_to_thread};
use crate::signal::{Info, Signal};

/// Whom signals go to.
#[derive(Clone, Copy)]
pub enum Recipient {
    /// F_OWNER_TID: one thread.
    Thread(WeakRc<Thread>),
    /// F_OWNER_PID: a process.
    Process(WeakRc<Process>),
    /// F_OWNER_PGRP: the processes of the group of that number.
    Group(u32),
}

/// Whom a file's signals go to.
pub struct FileOwner {
    /// Who gets them.
    pub recipient: Recipient,
    sender: Sender,
}

impl FileOwner {
    /// Signals go to `recipient` as far as one with these credentials may send it any.
    pub fn new(recipient: Recipient, credentials: &Credentials) -> Self {
        FileOwner { recipient, sender: credentials.sender() }
    }

    fn send_to(&self, process: &Process, thread: Option<&Thread>, info: Info, cx: &Cx) {
        let may_signal = |thread: &Thread| self.sender.may_signal(&thread.credentials.lock(cx));
        let allowed = match thread {
            Some(thread) => may_signal(thread),
            None => process.first_thread(cx).is_some_and(|first| may_signal(&first)),
        };
        if !allowed {
            return;
        }
        let send = |info| match thread {
            Some(thread) => send_to_thread(process, thread, info, cx),
            None => send_to_process(process, info, cx),
        };
        if send(info).is_err() {
            // There is room for a standard signal always.
            let _ = send(Info::kernel(Signal::IO));
        }
    }
}

impl SignalTarget for FileOwner {
    fn send(&self, info: Info, cx: &Cx) {
        match self.recipient {
            Recipient::Thread(thread) => {
                if let Ok(thread) = thread.upgrade(cx)
                    && let Ok(process) = thread.process(cx)
                {
                    self.send_to(&process, Some(&thread), info, cx);
                }
            }
            Recipient::Process(process) => {
                if let Ok(process) = process.upgrade(cx) {
                    self.send_to(&process, None, info, cx);
                }
            }
            Recipient::Group(group) => {
                for process in group_members(group, cx).filter_map(|process| process.upgrade(cx).ok()) {
                    self.send_to(&process, None, info, cx);
                }
            }
        }
    }
}

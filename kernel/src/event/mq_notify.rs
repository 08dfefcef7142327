//! [`Notification`]: how a process is told of a message: mq_notify(3). See [`Told`].

use alloc::vec::Vec;

use frame::Cx;
use refs::WeakRc;

use crate::error::{Errno, Result};
use crate::fs::{FileTable, FlushWanted, OpenFile};
use crate::ipc::mq::Told;
use crate::net::netlink;
use crate::process::Process;
use crate::signal::send::send_to_process;
use crate::signal::{Info, Signal};

/// So many bytes a library sends to itself when it is told (`NOTIFY_COOKIE_LEN`).
pub const COOKIE_BYTES: usize = 32;
/// The last byte of a cookie: a message came, or nobody will be told.
const WOKEN: u8 = 1;
const REMOVED: u8 = 2;

/// How: `struct sigevent`.
pub enum Tell {
    /// SIGEV_NONE: not at all, but nobody else can ask.
    Nothing,
    /// SIGEV_SIGNAL, with a value. (Signal 0 is none.)
    Signal(Option<Signal>, u64),
    /// SIGEV_THREAD: these bytes come to a netlink socket, where a thread of the library's waits for them.
    Thread(WeakRc<OpenFile>, [u8; COOKIE_BYTES]),
}

/// A registration.
pub struct Notification {
    process: WeakRc<Process>,
    /// The id of the process.
    pid: u32,
    table: WeakRc<FileTable>,
    tell: Tell,
    _flush: FlushWanted,
}

impl Notification {
    /// Of a process and its table of descriptors.
    pub fn new(process: WeakRc<Process>, pid: u32, table: WeakRc<FileTable>, tell: Tell) -> Self {
        Notification { process, pid, table, tell, _flush: FlushWanted::default() }
    }
}

impl Told for Notification {
    fn is_of(&self, table: &WeakRc<FileTable>) -> bool {
        self.table == *table
    }

    fn is_alive(&self, cx: &Cx) -> bool {
        self.table.upgrade(cx).is_ok()
    }

    fn shown(&self) -> (u32, u32, u32) {
        let (how, signal) = match &self.tell {
            Tell::Nothing => (linux_raw_sys::general::SIGEV_NONE, 0),
            Tell::Signal(signal, _) => {
                (linux_raw_sys::general::SIGEV_SIGNAL, signal.map_or(0, |signal| signal.number()))
            }
            Tell::Thread(..) => (linux_raw_sys::general::SIGEV_THREAD, 0),
        };
        (how, signal, self.pid)
    }

    fn tell(&self, (pid, uid): (u32, u32), cx: &Cx) {
        match &self.tell {
            &Tell::Signal(Some(signal), value) => {
                if let Ok(process) = self.process.upgrade(cx) {
                    // A process that is about to end needs no signal.
                    let _ = send_to_process(&process, Info::message(signal, pid, uid, value), cx);
                }
            }
            Tell::Thread(socket, cookie) => send_cookie(socket, *cookie, WOKEN, cx),
            Tell::Nothing | Tell::Signal(None, _) => {}
        }
    }

    fn end(&self, cx: &Cx) {
        if let Tell::Thread(socket, cookie) = &self.tell {
            send_cookie(socket, *cookie, REMOVED, cx);
        }
    }
}

fn send_cookie(socket: &WeakRc<OpenFile>, mut cookie: [u8; COOKIE_BYTES], what: u8, cx: &Cx) {
    cookie[COOKIE_BYTES - 1] = what;
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(COOKIE_BYTES).is_ok()
        && let Ok(socket) = socket.upgrade(cx)
    {
        bytes.extend_from_slice(&cookie);
        netlink::deliver(&socket, bytes, cx);
    }
}

/// Checks that cookies can be sent to a file.
///
/// # Errors
/// ENOTSOCK; EINVAL: a socket of another family.
pub fn check_socket(open: &OpenFile) -> Result<()> {
    crate::net::socket_of(open)?;
    if netlink::is_one(open) { Ok(()) } else { Err(Errno::EINVAL) }
}

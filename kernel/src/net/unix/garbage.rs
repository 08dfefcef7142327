//! Sockets that only messages own, which nobody can receive: they are found and their messages thrown away.
//!
//! A socket in flight (SCM_RIGHTS) lives in the inbox of another. If that one is in flight as well, both can own each other and nothing else
//! owns them. So whoever sends sockets enters them here, and when such a socket has lost its last owner that is no message (see
//! [`in_flight`]) a task looks which of them can still be reached:
//!
//! 1. *Suspects* are the sockets all of whose owners are messages.
//! 2. A suspect that is in more messages than there are in the suspects' own inboxes lies in an inbox that a program can read: it is reachable, and so is
//!    what lies in its inbox.
//! 3. The inboxes of the others are emptied. Their sockets die with the messages.
//!
//! One look takes some hundred instructions for each socket in flight and each message in their inboxes, without a pause, since nothing may change
//! meanwhile. So no more than [`MOST_IN_FLIGHT`] sockets can be in flight; who sends more gets ETOOMANYREFS, as a user does on Linux (there
//! the limit is the user's RLIMIT_NOFILE). Files that are no sockets are not counted.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use refs::{SpinLock, TempRc, WeakRc};
use tasks::{Body, Next};

use super::inbox::{Inbox, Rights};
use super::{Endpoint, UnixSocket};
use crate::error::{Errno, Result};
use crate::fs::OpenFile;
use crate::fs::in_flight::{self, InFlight};
use crate::pieces::{Pieces, free_in_pieces};

/// How many sockets can be in flight: as many as a user has descriptors on Linux by default.
const MOST_IN_FLIGHT: usize = 1024;

/// The sockets in flight, by the address of their description, and some that were.
static SOCKETS: SpinLock<BTreeMap<usize, WeakRc<OpenFile>>> = SpinLock::new(BTreeMap::new());

/// Starts the task. Called once, before the first process.
pub fn start() {
    tasks::spawn(&crate::sched::SCHEDULER, Box::new(Collector), |_, _| ());
}

/// Enters those of the rights that are sockets, before they are sent.
///
/// # Errors
/// ETOOMANYREFS.
pub(super) fn enter(rights: &Rights, cx: &Cx) -> Result<()> {
    let sockets = rights
        .iter()
        .filter_map(InFlight::name)
        .filter(|name| name.upgrade(cx).is_ok_and(|file| file.kind::<UnixSocket>().is_some()));
    for name in sockets {
        let is_full = SOCKETS.lock(cx).len() >= MOST_IN_FLIGHT;
        if is_full {
            collect(cx);
        }
        let mut sockets = SOCKETS.lock(cx);
        if sockets.len() >= MOST_IN_FLIGHT && !sockets.contains_key(&name.address()) {
            return Err(Errno::ETOOMANYREFS);
        }
        sockets.insert(name.address(), name);
    }
    Ok(())
}

/// The task that looks for garbage.
struct Collector;

impl Body for Collector {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            if in_flight::wait_for_unreachable(waker, cx) {
                tasks::finish_wait(cx);
                collect(cx);
                return Next::Again;
            }
            tasks::park_async(cx);
        }
    }
}

/// A socket all of whose owners are messages.
struct Suspect<'cx> {
    file: TempRc<'cx, OpenFile>,
    /// In how many messages it is that lie in suspects' inboxes.
    in_suspects: u32,
    /// Which entries of the list of what suspects have been sent are its.
    sent: Range<usize>,
    is_reachable: bool,
}

/// Throws away the messages of the sockets that nobody can reach, and forgets those that are not in flight any more.
fn collect(cx: &Cx) {
    // By address.
    let mut suspects: Vec<(usize, Suspect<'_>)> = Vec::new();
    SOCKETS.lock(cx).retain(|&address, name| match name.upgrade(cx) {
        Ok(file) if file.in_flight() > 0 => {
            if in_flight::other_owners(&file) == 0 {
                suspects.push((address, Suspect { file, in_suspects: 0, sent: 0..0, is_reachable: false }));
            }
            true
        }
        _ => false,
    });
    // The places of suspects that are in suspects' inboxes.
    let mut sent: Vec<usize> = Vec::new();
    for at in 0..suspects.len() {
        let start = sent.len();
        each_endpoint(&suspects[at].1.file, cx, |endpoint| {
            let inbox = endpoint.inbox.lock(cx);
            let addresses = inbox.rights().filter_map(InFlight::name).map(|name| name.address());
            sent.extend(addresses.filter_map(|address| suspects.binary_search_by_key(&address, |one| one.0).ok()));
        });
        suspects[at].1.sent = start..sent.len();
    }
    for &at in &sent {
        suspects[at].1.in_suspects += 1;
    }
    let is_outside = |suspect: &Suspect<'_>| suspect.file.in_flight() > suspect.in_suspects;
    let mut reached: Vec<usize> = (0..suspects.len()).filter(|&at| is_outside(&suspects[at].1)).collect();
    while let Some(at) = reached.pop() {
        let suspect = &mut suspects[at].1;
        if !core::mem::replace(&mut suspect.is_reachable, true) {
            reached.extend(&sent[suspect.sent.clone()]);
        }
    }
    for (_, suspect) in suspects.iter().filter(|(_, suspect)| !suspect.is_reachable) {
        each_endpoint(&suspect.file, cx, |endpoint| {
            let messages = core::mem::take(&mut *endpoint.inbox.lock(cx));
            if !messages.is_empty() {
                free_in_pieces(messages);
            }
        });
    }
}

/// Calls `each` with the endpoint of a socket, and with those that wait in its backlog.
fn each_endpoint(file: &OpenFile, cx: &Cx, mut each: impl FnMut(&Endpoint)) {
    let Some(socket) = file.kind::<UnixSocket>() else { return };
    let Ok(own) = socket.name().upgrade(cx) else { return };
    each(&own);
    for waiting in own.backlog(cx).into_iter().filter_map(|name| name.upgrade(cx).ok()) {
        each(&waiting);
    }
}

impl Pieces for Inbox {
    fn free_piece(&mut self) -> bool {
        const PACKETS: usize = 16;
        (0..PACKETS).all(|_| self.pop().is_some())
    }
}

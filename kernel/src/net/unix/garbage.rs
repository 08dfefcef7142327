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

use frame::Cx;
use refs::{SpinLock, TempRc, WeakRc};
use tasks::{Body, Next};

use super::inbox::Rights;
use super::{Endpoint, Socket};
use crate::error::{Errno, Result};
use crate::fs::OpenFile;
use crate::fs::in_flight::{self, InFlight};

/// How many sockets can be in flight: as many as a user has descriptors on Linux by default.
const MOST_IN_FLIGHT: usize = 1024;

/// The sockets in flight, by the address of their description, and some that were.
static SOCKETS: SpinLock<BTreeMap<usize, WeakRc<OpenFile>>> = SpinLock::new(BTreeMap::new());

/// Starts the task. Called once, before the first process.
pub fn start() {
    tasks::spawn(&crate::sched::SCHEDULER, Box::new(Collector), |_| ());
}

/// Enters those of the rights that are sockets, before they are sent.
///
/// # Errors
/// ETOOMANYREFS.
pub(super) fn enter(rights: &Rights, cx: &Cx) -> Result<()> {
    let sockets = rights
        .iter()
        .filter_map(InFlight::name)
        .filter(|name| name.upgrade(cx).is_ok_and(|file| file.kind::<Socket>().is_some()));
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
                if tasks::must_yield(cx) {
                    return Next::Again;
                }
            } else {
                tasks::park_async(cx);
            }
        }
    }
}

/// A socket all of whose owners are messages.
struct Suspect<'cx> {
    file: TempRc<'cx, OpenFile>,
    /// In how many messages it is that lie in suspects' inboxes.
    in_suspects: u32,
    is_reachable: bool,
}

/// Throws away the messages of the sockets that nobody can reach, and forgets those that are not in flight any more.
fn collect(cx: &Cx) {
    let mut suspects: BTreeMap<usize, Suspect<'_>> = BTreeMap::new();
    SOCKETS.lock(cx).retain(|&address, name| match name.upgrade(cx) {
        Ok(file) if file.in_flight() > 0 => {
            if in_flight::other_owners(&file) == 0 {
                suspects.insert(address, Suspect { file, in_suspects: 0, is_reachable: false });
            }
            true
        }
        _ => false,
    });
    let contents: BTreeMap<usize, Vec<usize>> =
        suspects.iter().map(|(&address, suspect)| (address, sent_to(&suspect.file, cx))).collect();
    for address in contents.values().flatten() {
        if let Some(suspect) = suspects.get_mut(address) {
            suspect.in_suspects += 1;
        }
    }
    let is_outside = |suspect: &Suspect<'_>| suspect.file.in_flight() > suspect.in_suspects;
    let mut reached: Vec<usize> =
        suspects.iter().filter(|(_, suspect)| is_outside(suspect)).map(|(&address, _)| address).collect();
    while let Some(address) = reached.pop() {
        match suspects.get_mut(&address) {
            Some(suspect) if !suspect.is_reachable => suspect.is_reachable = true,
            _ => continue,
        }
        reached.extend(contents.get(&address).into_iter().flatten());
    }
    let garbage: Vec<_> = suspects.into_values().filter(|suspect| !suspect.is_reachable).collect();
    for suspect in &garbage {
        for endpoint in endpoints(&suspect.file, cx) {
            let messages = core::mem::take(&mut *endpoint.inbox.lock(cx));
            drop(messages);
        }
    }
}

/// The endpoint of a socket, and those that wait in its backlog.
fn endpoints<'cx>(file: &OpenFile, cx: &'cx Cx) -> Vec<TempRc<'cx, Endpoint>> {
    let Some(socket) = file.kind::<Socket>() else { return Vec::new() };
    let own = socket.name();
    let mut names = own.upgrade(cx).map_or_else(|_| Vec::new(), |endpoint| endpoint.backlog(cx));
    names.push(own);
    names.into_iter().filter_map(|name| name.upgrade(cx).ok()).collect()
}

/// The addresses of the files in a socket's inbox and in those of its backlog.
fn sent_to(file: &OpenFile, cx: &Cx) -> Vec<usize> {
    let mut addresses = Vec::new();
    for endpoint in endpoints(file, cx) {
        let inbox = endpoint.inbox.lock(cx);
        addresses.extend(inbox.rights().filter_map(InFlight::name).map(|name| name.address()));
    }
    addresses
}

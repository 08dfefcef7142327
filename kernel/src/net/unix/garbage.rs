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
//! One look takes some hundred instructions for each socket in flight and each message in their inboxes, without a pause. Nothing may come into a message or out of one
//! meanwhile: who moves rights says so ([`Transfer`]), and a look that met one is done again. What nobody can reach stays so, so what a good look has found is
//! garbage still when it is thrown away.
//!
//! No more than [`MOST_IN_FLIGHT`] sockets can be in flight; who sends more waits until the garbage among them is gone ([`make_room_async`]), and gets ETOOMANYREFS if there are
//! still as many, as a user does on Linux (there
//! the limit is the user's RLIMIT_NOFILE). Files that are no sockets are not counted.
//!
//! Open files in messages are charged to whom the inbox is. Where that is nobody, as the socket was made outside of the group whose last member ends, another task throws the messages away ([`leave_messages`]): how many
//! there are is not in what was agreed for that group's end.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, LinkedList, TryReserveError};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, TempRc, WaitList, WeakRc};
use tasks::{Body, Next};

use super::inbox::{Inbox, Rights};
use super::{Endpoint, UnixSocket};
use crate::error::{Errno, Result};
use crate::fs::OpenFile;
use crate::fs::in_flight::{self, InFlight};
use crate::pieces::{Pieces, free_in_pieces};
use crate::sched::{self, SCHEDULER};

/// How many sockets can be in flight: as many as a user has descriptors on Linux by default.
const MOST_IN_FLIGHT: usize = 1024;

/// The sockets in flight, by the address of their description, and some that were.
static SOCKETS: SpinLock<BTreeMap<usize, WeakRc<OpenFile>>> = SpinLock::new(BTreeMap::new());

/// Starts the tasks. Called once, before the first process.
pub fn start() {
    tasks::spawn(&SCHEDULER, Box::new(Collector), |_, _| ());
    tasks::spawn(&SCHEDULER, Box::new(Thrower), |_, _| ());
}

/// How many transfers have begun, and how many of those have ended.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// Rights move into a message or out of one, or a connection that may hold messages out of a backlog, while this exists.
pub(super) struct Transfer;

impl Transfer {
    pub(super) fn begin() -> Self {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        Transfer
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        ENDED.fetch_add(1, Ordering::SeqCst);
    }
}

/// Before somebody sends so many open files: where too many are in flight, throws the garbage among them away, and waits until it is gone.
pub fn make_room_async(cx: &mut Cx, files: usize) {
    // What the second look finds was in flight in what the first one has thrown away.
    for _ in 0..2 {
        if SOCKETS.lock(cx).len() + files <= MOST_IN_FLIGHT {
            return;
        }
        collect(cx);
        tasks::free_everything_async(cx);
    }
    forget_landed(cx);
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

/// Forgets the sockets that are not in flight any more.
fn forget_landed(cx: &Cx) {
    SOCKETS.lock(cx).retain(|_, name| name.upgrade(cx).is_ok_and(|file| file.in_flight() > 0));
}

/// Throws away the messages of the sockets that nobody can reach, and forgets those that are not in flight any more.
fn collect(cx: &Cx) {
    const LOOKS: usize = 4;
    forget_landed(cx);
    for _ in 0..LOOKS {
        let begun = BEGUN.load(Ordering::SeqCst);
        if ENDED.load(Ordering::SeqCst) != begun {
            continue;
        }
        // Without memory for it they stay until the next look.
        let Ok(suspects) = suspects(cx) else { return };
        if BEGUN.load(Ordering::SeqCst) == begun {
            let unreachable = suspects.iter().filter(|(_, suspect)| !suspect.is_reachable);
            unreachable.for_each(|(_, suspect)| throw_away(&suspect.file, cx));
            return;
        }
    }
    // The task looks once more, when those who move rights just now have done so.
    in_flight::report_unreachable();
}

/// The sockets in flight that only messages own, by address, and whether somebody can reach them, unless rights were moved meanwhile.
///
/// # Errors
/// There is no memory for a list of them.
fn suspects<'cx>(cx: &'cx Cx) -> core::result::Result<Vec<(usize, Suspect<'cx>)>, TryReserveError> {
    let mut suspects: Vec<(usize, Suspect<'_>)> = Vec::new();
    for (&address, name) in SOCKETS.lock(cx).iter() {
        if let Ok(file) = name.upgrade(cx)
            && in_flight::other_owners(&file) == 0
        {
            suspects.try_reserve(1)?;
            suspects.push((address, Suspect { file, in_suspects: 0, sent: 0..0, is_reachable: false }));
        }
    }
    // The places of suspects that are in suspects' inboxes.
    let mut sent: Vec<usize> = Vec::new();
    for at in 0..suspects.len() {
        let (start, mut reserved) = (sent.len(), Ok(()));
        each_endpoint(&suspects[at].1.file, cx, |endpoint| {
            let inbox = endpoint.inbox.lock(cx);
            reserved = reserved.clone().and_then(|()| sent.try_reserve(inbox.rights().count()));
            if reserved.is_ok() {
                let addresses = inbox.rights().filter_map(InFlight::name).map(|name| name.address());
                sent.extend(addresses.filter_map(|address| suspects.binary_search_by_key(&address, |one| one.0).ok()));
            }
        });
        reserved?;
        suspects[at].1.sent = start..sent.len();
    }
    for &at in &sent {
        suspects[at].1.in_suspects += 1;
    }
    let is_outside = |suspect: &Suspect<'_>| suspect.file.in_flight() > suspect.in_suspects;
    let mut reached: Vec<usize> = Vec::new();
    reached.try_reserve_exact(suspects.len() + sent.len())?;
    reached.extend((0..suspects.len()).filter(|&at| is_outside(&suspects[at].1)));
    while let Some(at) = reached.pop() {
        let suspect = &mut suspects[at].1;
        if !core::mem::replace(&mut suspect.is_reachable, true) {
            reached.extend(&sent[suspect.sent.clone()]);
        }
    }
    Ok(suspects)
}

/// Throws away what was sent to a socket.
fn throw_away(file: &OpenFile, cx: &Cx) {
    each_endpoint(file, cx, |endpoint| {
        let messages = endpoint.inbox.lock(cx).take_all();
        if !messages.is_empty() {
            free_in_pieces(messages);
        }
    });
}

/// A socket is about to be closed: throws one of its messages away if there are many open files in all of them; whether it did. What is in one message ends in one step, and the last message stays: who
/// has sent it is to learn that it was not read.
pub(super) fn throw_one_away(endpoint: &Endpoint, cx: &Cx) -> bool {
    const MANY: u32 = 256;
    if endpoint.inbox.lock(cx).rights_count() <= MANY {
        return false;
    }
    let _transfer = Transfer::begin();
    let thrown = {
        let mut inbox = endpoint.inbox.lock(cx);
        inbox.close();
        if inbox.payer().is_nobody() && sched::works_at_ends(cx) {
            // A task does it: see `leave_messages`.
            return false;
        }
        inbox.pop()
    };
    thrown.is_some()
}

/// Messages that a task throws away.
static LEFT: SpinLock<LinkedList<Inbox>> = SpinLock::new(LinkedList::new());
/// Where it waits.
static WORK: WaitList = WaitList::new();

/// A socket ends whose inbox is closed. If that is because a program is made to end, and nobody is charged for open files in its messages, a task throws them away.
pub(super) fn leave_messages(endpoint: &Endpoint, cx: &Cx) {
    if !sched::works_at_ends(cx) {
        return;
    }
    let _transfer = Transfer::begin();
    let messages = endpoint.inbox.lock(cx).give_up();
    if let Some(messages) = messages {
        LEFT.lock(cx).push_back(messages);
        WORK.wake_all();
    }
}

/// The task.
struct Thrower;

impl Body for Thrower {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            WORK.register(waker, cx);
            let messages = LEFT.lock(cx).pop_front();
            let Some(mut messages) = messages else {
                tasks::park_async(cx);
                continue;
            };
            tasks::finish_wait(cx);
            if messages.free_piece() {
                LEFT.lock(cx).push_front(messages);
            }
            return Next::Again;
        }
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

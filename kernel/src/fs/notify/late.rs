//! What ends without a context, and is told later.
//!
//! A description that a mapping or a message had, and an inode, end in destructors, which can tell nobody. They leave here what is to be told. A task of the kernel does that; but whoever tells something else, or
//! looks at a queue, does it first, up to some. So on one core things are told in their order; what another core has taken from here it may tell a moment after somebody else has told what came behind it.
//!
//! Owner: this list. What is in it goes in pieces; nobody waits for it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, WeakRc};
use tasks::{Body, Next};

use super::watch_list::{WatchList, take_some};
use super::watchers::{AT_ONCE, Told, Watcher};
use super::{By, Event, FileEvents, tell_of};
use crate::fs::Inode;
use crate::sched::{self, Parameters};

/// What has ended.
enum Ended {
    /// A description of this.
    Description(StrongRc<Inode>, FileEvents),
    /// An inode, which these watched. All of them are told so, and then that their watch is over.
    Inode(Box<WatchList>, FileEvents, bool),
    /// An instance with this number, which watched these.
    Instance(u64, BTreeMap<i32, WeakRc<Inode>>),
}

static ENDED: SpinLock<List> = SpinLock::new(List { next: 0, ended: BTreeMap::new() });
/// How many things are in it.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static WORK: WaitList = WaitList::new();
/// With so many things in it, ends of descriptions are lost.
const MOST_LEFT: usize = 65_536;

/// In their order.
struct List {
    next: u64,
    ended: BTreeMap<u64, Ended>,
}

fn leave(what: Ended) {
    ENDED.with(|list| {
        list.ended.insert(list.next, what);
        list.next += 1;
        COUNT.store(list.ended.len(), Ordering::Relaxed);
    });
    WORK.wake_all();
}

/// A description has ended. Of so many that whoever tells it does not keep up with them it is not told.
#[cold]
pub(super) fn leave_closed(inode: StrongRc<Inode>, what: FileEvents) {
    if COUNT.load(Ordering::Relaxed) < MOST_LEFT {
        leave(Ended::Description(inode, what));
    }
}

/// An inode has ended.
#[cold]
pub(super) fn leave_ended(list: Box<WatchList>, why: FileEvents, is_directory: bool) {
    leave(Ended::Inode(list, why, is_directory));
}

/// An instance has ended that watches these still.
#[cold]
pub(super) fn leave_instance(number: u64, watches: BTreeMap<i32, WeakRc<Inode>>) {
    leave(Ended::Instance(number, watches));
}

/// Tells who watched an inode that has ended; later, if they are many.
pub(super) fn tell_end(list: Box<WatchList>, why: FileEvents, is_directory: bool, cx: &Cx) {
    if list.len() > AT_ONCE {
        leave_ended(list, why, is_directory);
    } else {
        tell_each(list.into_values(), why, is_directory, cx);
    }
}

fn tell_each(watchers: impl Iterator<Item = Watcher>, why: FileEvents, is_directory: bool, cx: &Cx) {
    let event = Event { what: why, is_directory, name: &[], cookie: 0, is_unlinked: false };
    for watcher in watchers {
        if let Watcher::Queue(watch) = watcher {
            Told::Queue(watch, true).tell(&event, cx);
        }
    }
}

/// Tells what was left so far, or some of it.
#[inline(always)]
pub(super) fn catch_up(cx: &Cx) {
    if COUNT.load(Ordering::Relaxed) > 0 {
        (0..AT_ONCE).all(|_| tell_next(cx));
    }
}

/// Tells what was left first, or a piece of it; whether there was anything.
#[cold]
fn tell_next(cx: &Cx) -> bool {
    let next = ENDED.with(|list| {
        let next = list.ended.first_entry().map(take_piece);
        COUNT.store(list.ended.len(), Ordering::Relaxed);
        next
    });
    match next {
        None => return false,
        Some(Ended::Description(inode, what)) => tell_of(&inode.get(cx), what, By::Description, cx),
        Some(Ended::Inode(list, why, is_directory)) => tell_each(list.into_values(), why, is_directory, cx),
        Some(Ended::Instance(number, watches)) => {
            let watched = watches.values().filter_map(|inode| inode.upgrade(cx).ok());
            watched.for_each(|inode| inode.watchers.remove(number, None));
        }
    }
    true
}

/// Takes it out, or if it is much a piece of it.
fn take_piece(mut first: alloc::collections::btree_map::OccupiedEntry<'_, u64, Ended>) -> Ended {
    match first.get_mut() {
        Ended::Inode(list, why, is_directory) if list.len() > AT_ONCE => {
            Ended::Inode(Box::new(list.take_some(AT_ONCE)), *why, *is_directory)
        }
        Ended::Instance(number, watches) if watches.len() > AT_ONCE => {
            Ended::Instance(*number, take_some(watches, AT_ONCE))
        }
        _ => first.remove(),
    }
}

/// Starts the task. Called once, before the first process.
pub fn start() {
    // More than its share, so that it keeps up with many who let go of files.
    let parameters = Parameters { nice: -20, ..Parameters::default() };
    tasks::spawn(&sched::SCHEDULER, Box::new(Server), |words, _| sched::initialise(words, parameters, None));
}

/// The task.
struct Server;

impl Body for Server {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            WORK.register(waker, cx);
            if COUNT.load(Ordering::Relaxed) > 0 {
                tasks::finish_wait(cx);
                tell_next(cx);
                return Next::Again;
            }
            tasks::park_async(cx);
        }
    }
}

//! [`Watchers`]: who watches one inode.
//!
//! They belong to the inode and have keys: the number of an [`Inotify`], or what stands for a description and a process that wants signals for it. Watching and ceasing to watch does not depend on how many others there are, and who
//! wants to hear of something else costs an event nothing.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, WeakRc};

use super::dnotify::Signal;
use super::watch_list::WatchList;
use super::{Event, FileEvents, Inotify};
use crate::fs::OpenFile;
use crate::fs::fasync::Band;

/// How many inodes have watchers.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// So many watchers are looked at with the list locked.
pub(super) const AT_ONCE: usize = 64;

/// Whether any inode has watchers.
#[inline(always)]
pub fn is_anything_watched() -> bool {
    WATCHED.load(Ordering::Relaxed) > 0
}

/// Which watcher it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// An [`Inotify`], by its number.
    Queue(u64),
    /// A description and a table of descriptors, by their addresses.
    Signal(usize, usize),
}

/// Who is told.
pub(super) enum Watcher {
    /// F_NOTIFY.
    Signal(Signal),
    /// inotify(7).
    Queue(Watch),
}

/// That an [`Inotify`] watches an inode.
#[derive(Clone, Copy)]
pub(super) struct Watch {
    /// The description of the [`Inotify`].
    pub file: WeakRc<OpenFile>,
    /// What the program calls it.
    pub wd: i32,
    /// What it is for, and how.
    pub events: FileEvents,
}

/// Who is told of an event.
pub(super) enum Told {
    /// A description, whose owner gets a signal, and the descriptor that is named.
    Signal(WeakRc<OpenFile>, i32),
    /// A queue; the watch may be over with that.
    Queue(Watch, bool),
}

/// Who watches one inode. It belongs to the inode.
#[derive(Default)]
pub struct Watchers {
    /// All that any of them has asked for since there was none; never nothing where there are any.
    interest: AtomicU32,
    list: SpinLock<Option<Box<WatchList>>>,
}

impl Watchers {
    /// Whether there are any.
    #[inline(always)]
    pub fn are_any(&self) -> bool {
        self.interest.load(Ordering::Relaxed) != 0
    }

    /// Whether any of them may want to hear of that.
    #[inline(always)]
    pub(super) fn want(&self, what: FileEvents) -> bool {
        FileEvents::from_bits_retain(self.interest.load(Ordering::Relaxed)).intersects(what)
    }

    /// Changes what is there of a key, and who is woken by what from now on.
    pub(super) fn change<R>(
        &self,
        key: Key,
        interest: FileEvents,
        change: impl FnOnce(&mut Option<Watcher>) -> R + Send,
    ) -> R {
        self.list.with(|place| {
            let was_watched = place.is_some();
            let mut watcher = place.as_mut().and_then(|list| list.remove(key));
            let result = change(&mut watcher);
            if let Some(watcher) = watcher {
                place.get_or_insert_default().insert(key, watcher);
                self.interest.fetch_or((interest | FileEvents::UNMOUNT).bits(), Ordering::Relaxed);
            }
            self.settle(place, was_watched);
            result
        })
    }

    /// Takes out what is there of a key, if `is_over` says so of it.
    pub(super) fn remove_if(&self, key: Key, is_over: impl FnOnce(&Watcher) -> bool + Send) {
        self.list.with(|place| {
            let Some(list) = place else { return };
            if list.get(key).is_some_and(is_over) {
                list.remove(key);
                self.settle(place, true);
            }
        });
    }

    /// Forgets the list once nobody is in it.
    fn settle(&self, place: &mut Option<Box<WatchList>>, was_watched: bool) {
        if place.as_ref().is_some_and(|list| list.is_empty()) {
            *place = None;
        }
        if place.is_none() {
            self.interest.store(0, Ordering::Relaxed);
        }
        match (was_watched, place.is_some()) {
            (false, true) => _ = WATCHED.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = WATCHED.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Nobody watches it any more; who did.
    pub(super) fn take(&self) -> Option<Box<WatchList>> {
        self.list.with(|place| {
            let list = place.take();
            self.settle(place, list.is_some());
            list
        })
    }

    /// Some watchers of these are gone; whether there may be more.
    pub(super) fn forget_some(&self, keys: RangeInclusive<Key>) -> bool {
        self.list.with(|place| {
            let Some(list) = place else { return false };
            let some: Vec<Key> = list.within(keys).take(AT_ONCE).collect();
            some.iter().for_each(|&key| _ = list.remove(key));
            self.settle(place, true);
            some.len() == AT_ONCE
        })
    }

    /// Looks at some watchers, behind that one or from the first: which was the last of them, and who of them is told of the event. `None` at the end.
    pub(super) fn next(&self, behind: Option<Key>, event: &Event<'_>) -> Option<(Key, Vec<Told>)> {
        self.list.with(|place| {
            let (mut told, mut last, mut over) = (Vec::new(), None, Vec::new());
            for (key, watcher) in place.as_mut()?.behind(behind).take(AT_ONCE) {
                last = Some(key);
                let stays = match watcher {
                    Watcher::Signal(signal) => signal.look(event, &mut told),
                    Watcher::Queue(watch) => watch.look(event, &mut told),
                };
                if !stays {
                    over.push(key);
                }
            }
            if let Some(list) = place {
                over.iter().for_each(|&key| _ = list.remove(key));
            }
            self.settle(place, true);
            last.map(|last| (last, told))
        })
    }
}

impl Watch {
    /// Enters it among those who are told, if it is for that; false if the watch is over.
    fn look(&self, event: &Event<'_>, told: &mut Vec<Told>) -> bool {
        let is_excluded = event.is_unlinked && self.events.contains(FileEvents::EXCL_UNLINK);
        if is_excluded || !self.events.intersects(event.what) {
            return true;
        }
        let is_over = self.events.contains(FileEvents::ONE_SHOT);
        told.push(Told::Queue(*self, is_over));
        !is_over
    }
}

impl Told {
    /// Tells of the event.
    pub(super) fn tell(&self, event: &Event<'_>, cx: &Cx) {
        match self {
            Told::Signal(file, fd) => {
                if let Ok(file) = file.upgrade(cx) {
                    file.signal_owner(*fd, Band::Message, cx);
                }
            }
            Told::Queue(watch, is_over) => {
                if let Ok(file) = watch.file.upgrade(cx)
                    && let Some(inotify) = file.kind::<Inotify>()
                {
                    let event = Some(event).filter(|event| watch.events.intersects(event.what));
                    inotify.tell(watch.wd, event, *is_over, cx);
                }
            }
        }
    }
}

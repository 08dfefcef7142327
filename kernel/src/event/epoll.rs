//! epoll(7).
//!
//! Each file in the set has a relay, which is entered wherever the file may become ready and rings the set's bell. A wait looks only at
//! those that rang, so it costs as much as there is ready, whatever the size of the set.
//!
//! ```text
//!   file becomes ready --> relay --> Bell::rung --> scan: is it (still) ready? --> told to the program
//!        ^                                             | no: armed again            | level: stays in `rung`
//!        `---------------------------------------------'                            | edge: armed again
//!                                                                                   | one-shot: left alone
//! ```
//!
//! A file is known by its description's name: once that is closed everywhere it is gone from the set by itself.
//!
//! Locks: the set's items are locked alone; files are asked with nothing locked.

use alloc::collections::BTreeMap;

use frame::Cx;
use linux_raw_sys::general::{EPOLLET, EPOLLEXCLUSIVE, EPOLLONESHOT, EPOLLWAKEUP};
use refs::{SpinLock, Waker, WeakRc};

use super::relay::{Key, OwnedBell, OwnedRelay, Relay};
use crate::error::{Errno, Result};
use crate::fs::{Events, File, Lseek, OpenFile};
use crate::step::Step;

/// How deep sets may contain sets.
const MAX_DEPTH: usize = 5;
/// How many files are looked at to find that out.
const MAX_SEARCH: usize = 20_000;
/// From so many files on, those that were closed are thrown out.
const SWEEP_FROM: usize = 64;

/// What epoll_ctl(2) is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// EPOLL_CTL_ADD.
    Add,
    /// EPOLL_CTL_MOD.
    Modify,
    /// EPOLL_CTL_DEL.
    Delete,
}

/// A set of files that is waited for.
pub struct Epoll {
    set: SpinLock<Set>,
    bell: OwnedBell,
}

struct Set {
    items: BTreeMap<Key, Item>,
    /// The size at which closed files are thrown out next.
    sweep_at: usize,
}

struct Item {
    file: WeakRc<OpenFile>,
    /// As given: what is waited for, and EPOLLET, EPOLLONESHOT, ...
    events: u32,
    data: u64,
    /// A one-shot that was told and not set anew.
    is_disabled: bool,
    relay: OwnedRelay,
}

/// A look at an item with nothing locked.
#[derive(Clone, Copy)]
struct Look {
    file: WeakRc<OpenFile>,
    events: u32,
    data: u64,
    relay: &'static Relay,
}

/// What was found of a file.
enum Found {
    /// It is ready so.
    Ready(Events),
    /// Nothing; it rings when that changes.
    Nothing,
}

impl Default for Epoll {
    /// An empty set.
    fn default() -> Self {
        Epoll { set: SpinLock::new(Set { items: BTreeMap::new(), sweep_at: SWEEP_FROM }), bell: OwnedBell::new() }
    }
}

impl Epoll {
    /// Changes the set: epoll_ctl(2). `events` and `data` do not matter for a deletion.
    ///
    /// # Errors
    /// EEXIST, ENOENT, EPERM (the file is always ready), ELOOP, EINVAL.
    pub fn control(
        &self,
        this: WeakRc<OpenFile>,
        change: Change,
        fd: i32,
        file: WeakRc<OpenFile>,
        (events, data): (u32, u64),
        cx: &Cx,
    ) -> Result<()> {
        let key = (fd, file.address());
        if change == Change::Delete {
            let removed = self.set.lock(cx).items.remove(&key);
            // Dropping it takes locks of its own.
            return removed.filter(|item| item.file == file).map(drop).ok_or(Errno::ENOENT);
        }
        if events & EPOLLEXCLUSIVE != 0 {
            const ALLOWED: u32 = EPOLLEXCLUSIVE
                | EPOLLET
                | EPOLLWAKEUP
                | Events::IN.bits()
                | Events::OUT.bits()
                | Events::ERROR.bits()
                | Events::HANG_UP.bits();
            if change == Change::Modify || events & !ALLOWED != 0 {
                return Err(Errno::EINVAL);
            }
        }
        let target = file.upgrade(cx).map_err(|_| Errno::EBADF)?;
        if !target.file.is_pollable() {
            return Err(Errno::EPERM);
        }
        if let Some(inner) = target.kind::<Epoll>() {
            if events & EPOLLEXCLUSIVE != 0 {
                return Err(Errno::EINVAL);
            }
            let mut searched = 0;
            inner.check_nesting(this, 1, &mut searched, cx)?;
        }
        let look = match change {
            Change::Modify => {
                let mut set = self.set.lock(cx);
                let item = set.items.get_mut(&key).filter(|item| item.file == file).ok_or(Errno::ENOENT)?;
                if item.events & EPOLLEXCLUSIVE != 0 {
                    return Err(Errno::EINVAL);
                }
                (item.events, item.data, item.is_disabled) = (events, data, false);
                item.look()
            }
            _ => self.add(key, file, events, data, cx)?,
        };
        let bell = self.bell.get();
        // It stands there once at most.
        bell.rung.lock(cx).retain(|rung| *rung != key);
        if matches!(look.ask(cx)?, Found::Ready(_)) {
            look.relay.finish();
            bell.ring(key);
        }
        Ok(())
    }

    fn add(&self, key: Key, file: WeakRc<OpenFile>, events: u32, data: u64, cx: &Cx) -> Result<Look> {
        crate::memory::admit()?;
        self.sweep(cx);
        let relay = OwnedRelay::new(self.bell.get(), key);
        let item = Item { file, events, data, is_disabled: false, relay };
        let look = item.look();
        let mut set = self.set.lock(cx);
        if set.items.get(&key).is_some_and(|item| item.file == file) {
            return Err(Errno::EEXIST);
        }
        let closed = set.items.insert(key, item);
        drop(set);
        drop(closed);
        Ok(look)
    }

    /// Throws out files that were closed, now and then.
    fn sweep(&self, cx: &Cx) {
        let mut set = self.set.lock(cx);
        if set.items.len() < set.sweep_at {
            return;
        }
        let (kept, closed) = core::mem::take(&mut set.items).into_iter().partition(|(_, item)| !item.file.is_gone());
        set.items = kept;
        set.sweep_at = (set.items.len() * 2).max(SWEEP_FROM);
        drop(set);
        let closed: BTreeMap<Key, Item> = closed;
        drop(closed);
    }

    /// Whether this set, `depth` deep inside another one, leads to `outer`.
    fn check_nesting(&self, outer: WeakRc<OpenFile>, depth: usize, searched: &mut usize, cx: &Cx) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(Errno::ELOOP);
        }
        let files: alloc::vec::Vec<_> = self.set.lock(cx).items.values().map(|item| item.file).collect();
        for file in files {
            *searched += 1;
            if file == outer || *searched > MAX_SEARCH {
                return Err(Errno::ELOOP);
            }
            let Ok(file) = file.upgrade(cx) else { continue };
            if let Some(inner) = file.kind::<Epoll>() {
                inner.check_nesting(outer, depth + 1, searched, cx)?;
            }
        }
        Ok(())
    }

    /// Has `waker` woken when something rings.
    pub fn register(&self, waker: Waker, cx: &Cx) {
        self.bell.get().waiters.register(waker, cx);
    }

    /// Tells `tell` at most `max` files that are ready (what is, and the program's data); how many.
    ///
    /// # Errors
    /// The first thing that `tell` says, if it is about the first file; else the rest stays for the next time.
    pub fn scan(&self, max: usize, cx: &Cx, mut tell: impl FnMut(Events, u64) -> Step<()>) -> Step<usize> {
        let bell = self.bell.get();
        let mut told = 0;
        // Each once, although those that stay ready come back to the end.
        let mut left = bell.rung.lock(cx).len();
        while told < max && left > 0 {
            left -= 1;
            let Some(key) = bell.rung.lock(cx).pop_front() else { break };
            let Some(look) = self.look(key, cx) else { continue };
            let Ok(Found::Ready(events)) = look.ask(cx) else { continue };
            if let Err(stop) = tell(events, look.data) {
                look.relay.finish();
                bell.rung.lock(cx).push_front(key);
                return if told > 0 { Ok(told) } else { Err(stop) };
            }
            told += 1;
            if look.events & EPOLLONESHOT != 0 {
                look.relay.finish();
                if let Some(item) = self.set.lock(cx).items.get_mut(&key) {
                    item.is_disabled = true;
                }
            } else if look.events & EPOLLET != 0 {
                if !look.relay.commit() {
                    bell.rung.lock(cx).push_back(key);
                }
            } else {
                look.relay.finish();
                bell.rung.lock(cx).push_back(key);
            }
        }
        Ok(told)
    }

    fn look(&self, key: Key, cx: &Cx) -> Option<Look> {
        let mut set = self.set.lock(cx);
        let item = set.items.get(&key)?;
        if !item.file.is_gone() {
            return (!item.is_disabled).then(|| item.look());
        }
        let closed = set.items.remove(&key);
        drop(set);
        drop(closed);
        None
    }

    /// Whether a wait would find something. Nothing is told by it.
    fn is_ready(&self, cx: &Cx) -> bool {
        let bell = self.bell.get();
        loop {
            let Some(key) = bell.rung.lock(cx).pop_front() else { return false };
            let Some(look) = self.look(key, cx) else { continue };
            if let Ok(Found::Ready(_)) = look.ask(cx) {
                look.relay.finish();
                bell.rung.lock(cx).push_front(key);
                return true;
            }
        }
    }
}

impl Item {
    fn look(&self) -> Look {
        Look { file: self.file, events: self.events, data: self.data, relay: self.relay.get() }
    }
}

impl Look {
    /// Asks the file. If it is ready the relay is prepared, for the caller to commit or to finish; else it is armed.
    fn ask(&self, cx: &Cx) -> Result<Found> {
        let file = self.file.upgrade(cx)?;
        let interest = Events::from_bits_retain(self.events & 0xffff);
        if self.events & EPOLLET == 0 {
            let events = file.file.poll(interest, None, cx);
            if !events.is_empty() {
                return Ok(Found::Ready(events));
            }
        }
        loop {
            let waker = self.relay.prepare();
            let events = file.file.poll(interest, Some(waker), cx);
            if !events.is_empty() {
                return Ok(Found::Ready(events));
            }
            if self.relay.commit() {
                return Ok(Found::Nothing);
            }
        }
    }
}

impl File for Epoll {
    fn seek(&self, _to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        // It has no offset, and Linux does not say so.
        Ok(now)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.register(waker, cx);
        }
        if self.is_ready(cx) { interest & (Events::IN | Events::READ_NORMAL) } else { Events::empty() }
    }
}

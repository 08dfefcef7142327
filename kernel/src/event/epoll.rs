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
//! A file is known by its description's name: once that is closed everywhere it is gone from the set by itself. An item has a number; a file that
//! becomes ready leads to it without a search, and so does `rung`, in which each item stands at most once.
//!
//! The set owns its items, each item a relay. Destroying a set takes as long as it has items; [`File::release`] does it in parts before. Its end wakes
//! all who wait on it.
//!
//! One core at a time looks at a set's files ([`Epoll::look_alone`]): what it has taken out of `rung` to look at is not missing for another, which would wait in vain, and
//! what epoll_ctl(2) sets meanwhile is not undone. Files are asked with only that locked, and those may be sets, too, but never lead back: who puts a set into
//! another holds [`NESTING`].
//!
//! Locks: `NESTING`, `looking` of a set and then of those in it; then the files' own, or the items, then what rang.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general::{EPOLLET, EPOLLEXCLUSIVE, EPOLLONESHOT, EPOLLWAKEUP};
use refs::{SpinGuard, SpinLock, Waker, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::relay::{Bell, Key, OwnedBell, OwnedRelay, Relay, Sharing};
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd, Lseek, OpenFile, VfsCaller};
use crate::heap::slot_bytes;
use crate::radix::RadixTree;
use crate::reclaim::{Held, OfEpollSet, Payer};
use crate::step::Step;

/// How deep sets may contain sets.
const MAX_DEPTH: usize = 5;
/// How many files are looked at to find that out.
const MAX_SEARCH: usize = 20_000;
/// So many items are looked at for closed files when one is added: more than come, so that what was closed does not pile up.
const SWEPT_AT_A_TIME: usize = 2;
/// So many files are asked before the program is told of them.
const ASKED_AT_A_TIME: usize = 16;
/// So many items go at a time when the set ends.
const RELEASED_AT_A_TIME: usize = 64;
/// So many leaves of the tree of their numbers then.
const LEAVES_AT_A_TIME: usize = 32;
/// So many entries of files that were taken out of the set may stand among those that rang.
const STALE: usize = 64;
/// Memory for those that ring is set aside where a set has so many items: what is small is never refused.
const MANY: usize = 1024;

/// `struct epoll_event`, which has no padding on x86-64.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EpollEvent {
    /// What is waited for, and how; or what is ready.
    pub events: u32,
    /// The program's own, the lower half first.
    pub data: [u32; 2],
}

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

/// Held by who puts a set into another, from the look whether one leads to the other on.
static NESTING: SpinLock<()> = SpinLock::new(());

/// A set of files that is waited for.
pub struct Epoll {
    /// Held by who looks at its files, from what rang to what is told.
    looking: SpinLock<()>,
    set: SpinLock<Set>,
    bell: OwnedBell,
}

struct Set {
    /// The number of the item that was entered last for a descriptor.
    newest: RadixTree<u32>,
    /// The numbers of the others, for a descriptor that was closed and used again while its description lived: by descriptor and description (its
    /// address).
    older: BTreeMap<(i32, usize), usize>,
    items: Vec<Option<Item>>,
    /// Numbers that no item has.
    free: Vec<usize>,
    last_serial: u64,
    /// Where the next look for closed files begins.
    sweep_at: usize,
    /// How many entries among those that rang may be of no item of the set.
    stale: usize,
    /// What is charged for the places of `items`.
    held: OfEpollSet,
    /// It is being let go of: nothing is entered or changed any more.
    is_ending: bool,
}

struct Item {
    fd: i32,
    serial: u64,
    file: WeakRc<OpenFile>,
    /// As given: what is waited for, and EPOLLET, EPOLLONESHOT, ...
    events: u32,
    data: [u32; 2],
    /// A one-shot that was told and not set anew.
    is_disabled: bool,
    relay: OwnedRelay,
}

/// A look at an item with nothing locked.
#[derive(Clone, Copy)]
struct Look {
    key: Key,
    file: WeakRc<OpenFile>,
    events: u32,
    data: [u32; 2],
    relay: Relay,
}

/// What was found of a file.
enum Found {
    /// It is ready so.
    Ready(Events),
    /// Nothing; it rings when that changes.
    Nothing,
}

impl Epoll {
    /// An empty set. What it watches is charged to `payer`, whoever has the set.
    pub fn new(payer: &Payer) -> Self {
        Epoll {
            looking: SpinLock::new(()),
            set: SpinLock::new(Set {
                newest: RadixTree::default(),
                older: BTreeMap::new(),
                items: Vec::new(),
                free: Vec::new(),
                last_serial: 0,
                sweep_at: 0,
                stale: 0,
                held: OfEpollSet::of(payer),
                is_ending: false,
            }),
            bell: OwnedBell::new(),
        }
    }

    /// Keeps other cores from looking at its files; with one core nobody else does. Whoever looks at a set that this one is in holds that one's lock already:
    /// none leads back.
    #[inline(always)]
    fn look_alone<'a>(&'a self, cx: &'a Cx) -> Option<SpinGuard<'a, ()>> {
        (frame::cpu::count() > 1).then(|| self.looking.lock_nested(cx))
    }

    /// Changes the set: epoll_ctl(2). `event` does not matter for a deletion.
    ///
    /// # Errors
    /// EEXIST, ENOENT, EPERM (the file is always ready), ELOOP, EINVAL. ENOMEM, also where the budget of the group that made the set has no room.
    pub fn control(
        &self,
        this: WeakRc<OpenFile>,
        change: Change,
        (fd, file): (i32, WeakRc<OpenFile>),
        event: EpollEvent,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Result<()> {
        if change == Change::Delete {
            let _alone = self.look_alone(cx);
            return self.delete(fd, file, cx);
        }
        let EpollEvent { events, data } = event;
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
        let mut _nesting = None;
        if let Some(inner) = target.kind::<Epoll>() {
            if events & EPOLLEXCLUSIVE != 0 {
                return Err(Errno::EINVAL);
            }
            _nesting = Some(NESTING.lock(cx));
            let mut searched = 0;
            inner.check_nesting(this, 1, &mut searched, cx)?;
        }
        let _alone = self.look_alone(cx);
        let look = match change {
            Change::Modify => {
                let mut set = self.set.lock(cx);
                let number = set.find(fd, file).ok_or(Errno::ENOENT)?;
                let item = set.items[number].as_mut().ok_or(Errno::ENOENT)?;
                if item.events & EPOLLEXCLUSIVE != 0 {
                    return Err(Errno::EINVAL);
                }
                (item.events, item.data, item.is_disabled) = (events, data, false);
                Some(item.look(number))
            }
            _ => Some(self.add(fd, file, event, cx)?),
        };
        if let Some(look) = look
            && matches!(look.ask(Some(me), cx)?, Found::Ready(_))
        {
            look.relay.finish();
            self.bell.get().ring(look.relay, look.key);
        }
        Ok(())
    }

    fn add(&self, fd: i32, file: WeakRc<OpenFile>, event: EpollEvent, cx: &Cx) -> Result<Look> {
        crate::memory::admit()?;
        let mut set = self.set.lock(cx);
        if set.is_ending {
            return Err(Errno::EBADF);
        }
        if set.find(fd, file).is_some() {
            return Err(Errno::EEXIST);
        }
        let closed = set.sweep();
        let number = match set.free.pop() {
            Some(number) => number,
            None => {
                set.reserve_one(self.bell.get(), cx)?;
                set.held.add(Held::EpollItem, 1)?;
                set.items.len()
            }
        };
        set.last_serial += 1;
        let key = Key { number, serial: set.last_serial };
        let EpollEvent { events, data } = event;
        let sharing = if events & EPOLLEXCLUSIVE != 0 { Sharing::One } else { Sharing::All };
        let relay = OwnedRelay::new(&self.bell, key, sharing);
        let look = Look { key, file, events, data, relay: relay.get() };
        let item = Item { fd, serial: key.serial, file, events, data, is_disabled: false, relay };
        if number == set.items.len() {
            set.items.push(None);
        }
        set.items[number] = Some(item);
        let replaced = set.enter(fd, number);
        set.forget_stale(self.bell.get(), cx);
        drop(set);
        drop((closed, replaced));
        Ok(look)
    }

    fn delete(&self, fd: i32, file: WeakRc<OpenFile>, cx: &Cx) -> Result<()> {
        let mut set = self.set.lock(cx);
        let number = set.find(fd, file).ok_or(Errno::ENOENT)?;
        let removed = set.take(number);
        set.forget_stale(self.bell.get(), cx);
        drop(set);
        // Dropping it takes locks of its own.
        drop(removed);
        Ok(())
    }

    /// Whether this set, `depth` deep inside another one, leads to `outer`.
    fn check_nesting(&self, outer: WeakRc<OpenFile>, depth: usize, searched: &mut usize, cx: &Cx) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(Errno::ELOOP);
        }
        let mut number = 0;
        loop {
            // One at a time: files are asked with nothing locked.
            let file = {
                let set = self.set.lock(cx);
                let Some(item) = set.items.get(number) else { return Ok(()) };
                item.as_ref().map(|item| item.file)
            };
            number += 1;
            *searched += 1;
            if file == Some(outer) || *searched > MAX_SEARCH {
                return Err(Errno::ELOOP);
            }
            let Some(Ok(file)) = file.map(|file| file.upgrade(cx)) else { continue };
            if let Some(inner) = file.kind::<Epoll>() {
                inner.check_nesting(outer, depth + 1, searched, cx)?;
            }
        }
    }

    /// Has `waker` woken when something rings.
    pub fn register(&self, waker: Waker, cx: &Cx) {
        self.bell.get().waiters.register(waker, cx);
    }

    /// Tells `tell` of at most `max` files that are ready, some at a time; how many.
    ///
    /// # Errors
    /// The first thing that `tell` says, if it is about the first files; else the rest stays for the next time. EBADF: the set is being closed.
    #[inline(always)]
    pub fn scan(
        &self,
        max: usize,
        me: &dyn VfsCaller,
        cx: &Cx,
        tell: impl FnMut(&[EpollEvent]) -> Step<()>,
    ) -> Step<usize> {
        if frame::cpu::count() > 1 {
            self.scan_beside_others(max, me, cx, tell)
        } else {
            self.scan_as::<false>(max, me, cx, tell)
        }
    }

    /// As [`scan`](Self::scan), on one of several cores: while another closes the set, its items are taken out, which is not the same as a set in which nothing is
    /// ready.
    #[inline(never)]
    fn scan_beside_others(
        &self,
        max: usize,
        me: &dyn VfsCaller,
        cx: &Cx,
        tell: impl FnMut(&[EpollEvent]) -> Step<()>,
    ) -> Step<usize> {
        let reported = self.scan_as::<true>(max, me, cx, tell)?;
        if reported == 0 && self.set.lock(cx).is_ending {
            return Err(Errno::EBADF.into());
        }
        Ok(reported)
    }

    /// As [`scan`](Self::scan), with `MANY` cores that may look at its files.
    #[inline(always)]
    fn scan_as<const MANY: bool>(
        &self,
        max: usize,
        me: &dyn VfsCaller,
        cx: &Cx,
        mut tell: impl FnMut(&[EpollEvent]) -> Step<()>,
    ) -> Step<usize> {
        let look_alone = || MANY.then(|| self.looking.lock_nested(cx));
        let bell = self.bell.get();
        let mut reported = 0;
        let mut alone = look_alone();
        // Each once, although those that stay ready come back to the end.
        let mut left = bell.rung.lock(cx).len();
        while reported < max && left > 0 {
            let mut looks = [None; ASKED_AT_A_TIME];
            let wanted = looks.len().min(max - reported).min(left);
            left -= wanted;
            self.take_rung(&mut looks[..wanted], cx);
            let mut ready = [EpollEvent::default(); ASKED_AT_A_TIME];
            let mut count = 0;
            for place in &mut looks[..wanted] {
                let Some(look) = place else { continue };
                match look.ask(Some(me), cx) {
                    Ok(Found::Ready(events)) => {
                        ready[count] = EpollEvent { events: events.bits(), data: look.data };
                        count += 1;
                    }
                    _ => *place = None,
                }
            }
            let looks = &looks[..wanted];
            if count == 0 {
                drop(alone.take());
                alone = look_alone();
                continue;
            }
            // Where not all can be written, as many as can be are told.
            let (mut done, mut failure) = (count, None);
            if tell(&ready[..count]).is_err() {
                done = 0;
                while done < count && failure.is_none() {
                    match tell(&ready[done..=done]) {
                        Ok(()) => done += 1,
                        Err(stop) => failure = Some(stop),
                    }
                }
            }
            reported += done;
            self.were_reported(looks.iter().flatten().take(done), cx);
            if let Some(stop) = failure {
                let found = ready[..count].iter().map(|event| Events::from_bits_retain(event.events));
                for (look, events) in looks.iter().flatten().zip(found).skip(done).collect::<Vec<_>>().into_iter().rev()
                {
                    look.put_back(events, bell, cx);
                }
                // Others can tell their programs of it.
                bell.waiters.wake();
                return if reported > 0 { Ok(reported) } else { Err(stop) };
            }
            drop(alone.take());
            alone = look_alone();
        }
        drop(alone);
        Ok(reported)
    }

    /// Takes those that rang first out of the list, and looks at their items.
    #[inline(always)]
    fn take_rung(&self, looks: &mut [Option<Look>], cx: &Cx) {
        let mut set = self.set.lock(cx);
        let mut rung = self.bell.get().rung.lock(cx);
        let mut closed = Vec::new();
        for look in looks {
            let Some(key) = rung.pop_front() else { break };
            match set.items.get(key.number) {
                Some(Some(item)) if item.serial == key.serial => {
                    item.relay.take_out();
                    if item.file.is_gone() {
                        closed.extend(set.take(key.number));
                    } else if !item.is_disabled {
                        *look = Some(item.look(key.number));
                    }
                }
                _ => set.stale = set.stale.saturating_sub(1),
            }
        }
        drop(rung);
        drop(set);
        drop(closed);
    }

    /// The program knows that files are ready: whether it is told again depends on how it asked.
    #[inline(always)]
    fn were_reported<'a>(&self, looks: impl Iterator<Item = &'a Look> + Clone + Send, cx: &Cx) {
        let is_level = |look: &Look| look.events & (EPOLLONESHOT | EPOLLET) == 0;
        let mut others = false;
        self.bell.get().enter_all(looks.clone().filter_map(|look| {
            if !is_level(look) {
                others = true;
                return None;
            }
            look.relay.finish();
            Some((look.relay, look.key))
        }));
        if others {
            looks.filter(|look| !is_level(look)).for_each(|look| self.was_reported(look, cx));
        }
    }

    /// The program knows that a file is ready, and asked to be told once of each change, or once.
    fn was_reported(&self, look: &Look, cx: &Cx) {
        if look.events & EPOLLONESHOT != 0 {
            look.relay.finish();
            if let Some(Some(item)) = self.set.lock(cx).items.get_mut(look.key.number)
                && item.serial == look.key.serial
            {
                item.is_disabled = true;
            }
        } else if !look.relay.commit() {
            // Another core made it ready anew: somebody else may wait.
            self.bell.get().ring(look.relay, look.key);
        }
    }

    /// Whether a wait would find something. Nothing is told by it.
    fn is_ready(&self, cx: &Cx) -> bool {
        let bell = self.bell.get();
        loop {
            let _alone = self.look_alone(cx);
            if bell.rung.lock(cx).is_empty() {
                return false;
            }
            let mut look = [None];
            self.take_rung(&mut look, cx);
            let [Some(look)] = look else { continue };
            if let Ok(Found::Ready(events)) = look.ask(None, cx) {
                look.put_back(events, bell, cx);
                return true;
            }
        }
    }
}

impl Set {
    /// Makes room for one item more, for its number once it is free, and for it among those that rang: who rings cannot be refused.
    ///
    /// # Errors
    /// ENOMEM.
    fn reserve_one(&mut self, bell: &Bell, cx: &Cx) -> Result<()> {
        let all = self.items.len() + 1;
        self.items.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.free.try_reserve(all - self.free.len()).map_err(|_| Errno::ENOMEM)?;
        if all < MANY {
            return Ok(());
        }
        // As many entries again may be of items that are gone: see `forget_stale`.
        let mut rung = bell.rung.lock(cx);
        let more = (2 * all + STALE).saturating_sub(rung.len());
        rung.try_reserve(more).map_err(|_| Errno::ENOMEM)
    }

    /// The number of the item of a descriptor and description.
    fn find(&self, fd: i32, file: WeakRc<OpenFile>) -> Option<usize> {
        let is_it = |number: &usize| matches!(self.items.get(*number), Some(Some(item)) if item.file == file);
        let newest = self.newest.get(fd as u32).map(|number| *number as usize);
        newest.filter(is_it).or_else(|| self.older.get(&(fd, file.address())).copied().filter(is_it))
    }

    /// From now on an item is the newest of its descriptor. One that it replaces: its file was closed, and has left its address to another.
    fn enter(&mut self, fd: i32, number: usize) -> Option<Item> {
        let older = self.newest.insert(fd as u32, number as u32)? as usize;
        let address = self.items.get(older)?.as_ref()?.file.address();
        let replaced = self.older.insert((fd, address), older)?;
        self.take(replaced)
    }

    /// Takes the item of a number out. Its entry among those that rang stays behind.
    fn take(&mut self, number: usize) -> Option<Item> {
        let item = self.items.get_mut(number)?.take()?;
        if self.newest.get(item.fd as u32) == Some(&(number as u32)) {
            self.newest.remove(item.fd as u32);
        } else if self.older.get(&(item.fd, item.file.address())) == Some(&number) {
            self.older.remove(&(item.fd, item.file.address()));
        }
        self.free.push(number);
        if item.relay.get().is_rung() {
            self.stale += 1;
        }
        Some(item)
    }

    /// Whether it has the numbers of more items than go at a time.
    fn has_many_numbers(&self) -> bool {
        self.newest.len() + self.older.len() > RELEASED_AT_A_TIME
    }

    /// Forgets some numbers of items that are gone; whether there were any.
    fn forget_some_numbers(&mut self) -> bool {
        if !self.newest.drop_first_leaf() {
            return (0..RELEASED_AT_A_TIME).take_while(|_| self.older.pop_first().is_some()).count() > 0;
        }
        (1..LEAVES_AT_A_TIME).all(|_| self.newest.drop_first_leaf());
        true
    }

    /// Looks at some items, and takes out those whose files were closed.
    fn sweep(&mut self) -> Vec<Item> {
        let mut closed = Vec::new();
        for _ in 0..SWEPT_AT_A_TIME {
            self.sweep_at = if self.sweep_at + 1 < self.items.len() { self.sweep_at + 1 } else { 0 };
            if let Some(Some(item)) = self.items.get(self.sweep_at)
                && item.file.is_gone()
            {
                closed.extend(self.take(self.sweep_at));
            }
        }
        closed
    }

    /// Throws out entries of items that were taken out of the set, if they are many.
    fn forget_stale(&mut self, bell: &Bell, cx: &Cx) {
        let mut rung = bell.rung.lock(cx);
        if self.stale > STALE && self.stale > rung.len() / 2 {
            let is_of = |key: &Key| matches!(self.items.get(key.number), Some(Some(item)) if item.serial == key.serial);
            rung.retain(is_of);
            self.stale = 0;
        }
    }
}

impl Item {
    #[inline(always)]
    fn look(&self, number: usize) -> Look {
        let key = Key { number, serial: self.serial };
        Look { key, file: self.file, events: self.events, data: self.data, relay: self.relay.get() }
    }
}

impl Look {
    /// Its file is ready, and the program was not told: so it will be.
    fn put_back(&self, events: Events, bell: &Bell, cx: &Cx) {
        if let Ok(file) = self.file.upgrade(cx) {
            file.file.poll_was_lost(events);
        }
        self.relay.finish();
        bell.put_back(self.relay, self.key);
    }

    /// Asks the file, for a caller if there is one. If it is ready the relay is prepared, for the caller to commit or to finish; else it is armed.
    fn ask(&self, me: Option<&dyn VfsCaller>, cx: &Cx) -> Result<Found> {
        let file = self.file.upgrade(cx)?;
        let interest = Events::from_bits_retain(self.events & 0xffff);
        let poll = |waker| match me {
            Some(me) => file.poll_for(me, interest, waker, cx),
            None => file.file.poll(interest, waker, cx),
        };
        if self.events & EPOLLET == 0 {
            let events = poll(None);
            if !events.is_empty() {
                return Ok(Found::Ready(events));
            }
        }
        loop {
            let waker = self.relay.prepare();
            let events = poll(Some(waker));
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
    fn end(&self) -> FileEnd {
        // As long as it watches nothing: what its items hold would not count as free until it is taken apart, nor come back to the group that is charged for them.
        FileEnd::Unseen { bytes: slot_bytes(size_of::<Self>()) + OwnedBell::BYTES }
    }

    fn class(&self) -> Held {
        Held::EpollSet
    }

    fn seek(&self, _to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        // It has no offset, and Linux does not say so.
        Ok(now)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        let mut set = self.set.lock(cx);
        set.is_ending = true;
        let left = set.items.len().saturating_sub(RELEASED_AT_A_TIME);
        let released = set.items.split_off(left);
        set.held.remove(Held::EpollItem, released.len() as u32);
        let has_more = left > 0 || set.has_many_numbers() && set.forget_some_numbers();
        drop(set);
        drop(released);
        has_more
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.register(waker, cx);
        }
        if self.is_ready(cx) { interest & (Events::IN | Events::READ_NORMAL) } else { Events::empty() }
    }
}

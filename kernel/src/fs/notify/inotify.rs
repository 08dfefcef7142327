//! [`Inotify`]: inotify(7), a queue of what happens to files.
//!
//! An instance knows its watches by number (`wd`), and the inodes by name; each inode knows the instance by its description's name. So neither keeps the other alive. A watch is a link that leads outside of the group that
//! pays for the instance: when that ends, each inode is visited, and forgets it. Destroying an instance takes as long as it has watches; [`File::release`] does it in parts before. What is queued goes as a whole.
//! As long as it has never had a watch nobody sees its end but who has a descriptor of it.
//!
//! Locks: the state, and with it an inode's list of watchers; readers are woken with nothing locked.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, btree_map};
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::mm::Writer;
use linux_raw_sys::general as abi;
use linux_raw_sys::ioctl::FIONREAD;
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::queue::{LONGEST, Queue, Queued};
use super::users::UserInstance;
use super::watchers::{Key, Watch, Watcher, Watchers};
use super::{Event, FileEvents, late};
use crate::credentials::Uid;
use crate::error::{Errno, Result};
use crate::fs::fasync::{Band, FasyncList, Registration};
use crate::fs::{Events, File, FileEnd, Inode, Lseek, OpenFile, UnseenContents, VfsCaller};
use crate::heap::slot_bytes;
use crate::reclaim::{Held, OfInotify, Payer};
use crate::step::{Step, Stop};
use crate::sysctl::Tunable;
use crate::user_memory::Argument;

/// How many events an instance keeps that nobody reads (`/proc/sys/fs/inotify/max_queued_events`), from the moment at which it is made.
pub static MAX_QUEUED_EVENTS: Tunable = Tunable::new(16384, 0..=i32::MAX as u64);

/// So many watches go at a time when an instance ends.
const RELEASED_AT_A_TIME: usize = 32;
/// So many events one read(2) gives at most, and so many watches `/proc/PID/fdinfo` tells of.
const TOLD_AT_ONCE: usize = 1024;

/// An instance.
pub struct Inotify {
    /// By which inodes know it.
    number: u64,
    state: SpinLock<State>,
    readable: WaitList,
    signals: FasyncList,
    user: UserInstance,
}

struct State {
    watches: BTreeMap<i32, WeakRc<Inode>>,
    /// The last number that a watch got.
    last: i32,
    queue: Queue,
    /// What is charged for both.
    held: OfInotify,
    /// The watches that are left, once it is being let go of: nothing is entered any more.
    ending: Option<btree_map::IntoIter<i32, WeakRc<Inode>>>,
}

impl State {
    /// Enters an event; whether there is something new to read.
    fn push(&mut self, event: Queued, is_memory: bool) -> bool {
        self.queue.push(event, is_memory, &mut self.held)
    }

    /// A number for a new watch, which none had lately.
    fn next_number(&self) -> i32 {
        let mut number = self.last;
        loop {
            number = if number == i32::MAX { 1 } else { number + 1 };
            if !self.watches.contains_key(&number) {
                return number;
            }
        }
    }
}

impl Inotify {
    /// An instance without watches. Those are charged to `payer`, and what nobody reads, whoever has the instance.
    ///
    /// # Errors
    /// EMFILE: the user has as many as may be.
    pub fn new(user: Uid, payer: &Payer) -> Result<Self> {
        let state = State {
            watches: BTreeMap::new(),
            last: 0,
            queue: Queue::new(MAX_QUEUED_EVENTS.get() as usize),
            held: OfInotify::of(payer),
            ending: None,
        };
        static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);
        Ok(Inotify {
            number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed),
            state: SpinLock::new(state),
            readable: WaitList::new(),
            signals: FasyncList::default(),
            user: UserInstance::new(user)?,
        })
    }

    /// Watches an inode, or changes what for: inotify_add_watch(2). `this` is the instance's description. The number of the watch.
    ///
    /// # Errors
    /// EEXIST; ENOSPC: the user has as many watches as may be. ENOMEM, also where the budget of the group that made the instance has no room.
    pub fn add(&self, this: WeakRc<OpenFile>, inode: &TempRc<'_, Inode>, mask: u32, cx: &Cx) -> Result<i32> {
        crate::memory::admit()?;
        let how = FileEvents::EXCL_UNLINK | FileEvents::ONE_SHOT;
        // All hear of the end of what they watch, whatever for.
        let wanted = FileEvents::from_bits_truncate(mask & (abi::IN_ALL_EVENTS | how.bits())) | FileEvents::UNMOUNT;
        let mut state = self.state.lock(cx);
        if state.ending.is_some() {
            return Err(Errno::EBADF);
        }
        if let Some(changed) = inode.watchers.change_queue(self.number, wanted, mask) {
            return changed;
        }
        // A number is used up even where there may not be one more watch, as on Linux.
        let wd = state.next_number();
        state.last = wd;
        self.user.add_watch()?;
        if let Err(error) = state.held.add(Held::Watch, 1) {
            self.user.remove_watches(1);
            return Err(error);
        }
        state.watches.insert(wd, inode.downgrade());
        let watch = Watch { file: this, wd, events: wanted };
        inode.watchers.change(Key::Queue(self.number), wanted, |watcher| *watcher = Some(Watcher::Queue(watch)));
        Ok(wd)
    }

    /// Ends a watch: inotify_rm_watch(2).
    ///
    /// # Errors
    /// EINVAL: there is none of that number.
    pub fn remove(&self, wd: i32, cx: &Cx) -> Result<()> {
        late::catch_up(cx);
        let is_memory = crate::memory::admit().is_ok();
        let mut state = self.state.lock(cx);
        let inode = *state.watches.get(&wd).ok_or(Errno::EINVAL)?;
        if let Ok(inode) = inode.upgrade(cx) {
            inode.watchers.remove(self.number, Some(wd));
        }
        let is_new = self.end_watch(&mut state, wd, is_memory);
        drop(state);
        self.note(is_new, cx);
        Ok(())
    }

    /// Something has happened to what a watch is for; it may be over with that.
    pub(super) fn tell(&self, wd: i32, event: Option<&Event<'_>>, is_over: bool, cx: &Cx) {
        // Asked with nothing locked: it may be that something has to be freed first.
        let is_memory = crate::memory::admit().is_ok();
        let mut state = self.state.lock(cx);
        if !state.watches.contains_key(&wd) {
            return;
        }
        let mut is_new = false;
        if let Some(event) = event {
            let hides_kind = FileEvents::MOVE_SELF | FileEvents::DELETE_SELF;
            let is_directory = event.is_directory && !hides_kind.intersects(event.what);
            let mask = event.what.bits() | if is_directory { abi::IN_ISDIR } else { 0 };
            is_new |= state.push(Queued { wd, mask, cookie: event.cookie, name: event.name.into() }, is_memory);
        }
        if is_over {
            is_new |= self.end_watch(&mut state, wd, is_memory);
        }
        drop(state);
        self.note(is_new, cx);
    }

    /// A watch is over; whether there is something new to read.
    fn end_watch(&self, state: &mut State, wd: i32, is_memory: bool) -> bool {
        state.watches.remove(&wd);
        state.held.remove(Held::Watch, 1);
        self.user.remove_watches(1);
        state.push(Queued { wd, mask: abi::IN_IGNORED, cookie: 0, name: Box::default() }, is_memory)
    }

    /// Wakes who reads, if there is something new.
    fn note(&self, is_new: bool, cx: &Cx) {
        if is_new {
            self.readable.wake();
            self.signals.signal(Events::IN, Band::In, cx);
        }
    }

    /// Tells `each` its watches, the newest first: number, what for, and the inode. Not of more than some.
    pub fn each_watch(&self, cx: &Cx, mut each: impl FnMut(i32, u32, &Inode)) {
        let state = self.state.lock(cx);
        for (&wd, inode) in state.watches.iter().rev().take(TOLD_AT_ONCE) {
            if let Ok(inode) = inode.upgrade(cx)
                && let Some(events) = inode.watchers.events_of(self.number)
            {
                each(wd, (events - FileEvents::UNMOUNT).bits(), &inode);
            }
        }
    }
}

impl Watchers {
    /// Changes what an instance watches for that watches already: the number of its watch, or why that may not be. `None` if it does not.
    fn change_queue(&self, number: u64, wanted: FileEvents, mask: u32) -> Option<Result<i32>> {
        self.change(Key::Queue(number), wanted, |watcher| {
            let Some(Watcher::Queue(watch)) = watcher else { return None };
            if mask & abi::IN_MASK_CREATE != 0 {
                return Some(Err(Errno::EEXIST));
            }
            watch.events = if mask & abi::IN_MASK_ADD != 0 { watch.events | wanted } else { wanted };
            Some(Ok(watch.wd))
        })
    }

    /// What an instance watches for.
    fn events_of(&self, number: u64) -> Option<FileEvents> {
        self.change(Key::Queue(number), FileEvents::empty(), |watcher| match watcher {
            Some(Watcher::Queue(watch)) => Some(watch.events),
            _ => None,
        })
    }

    /// Ends what an instance watches, if it is that watch, or whichever it is.
    pub(super) fn remove(&self, number: u64, wd: Option<i32>) {
        self.remove_if(Key::Queue(number), |watcher| {
            wd.is_none_or(|wd| matches!(watcher, Watcher::Queue(watch) if watch.wd == wd))
        });
    }
}

impl File for Inotify {
    fn end(&self) -> FileEnd {
        FileEnd::Unseen { bytes: slot_bytes(size_of::<Self>()) }
    }

    fn class(&self) -> Held {
        Held::Event
    }

    fn seek(&self, _to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        // It has no offset, and Linux does not say so.
        Ok(now)
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        late::catch_up(cx);
        let mut state = self.state.lock(cx);
        let mut done = 0;
        for _ in 0..TOLD_AT_ONCE {
            let Some(event) = state.queue.first() else { break };
            let mut buffer = [0; LONGEST];
            let bytes = event.encode(&mut buffer);
            let written = if bytes.len() > to.remaining() { Err(Errno::EINVAL.into()) } else { write_all(to, bytes) };
            match written {
                Ok(()) => done += bytes.len(),
                Err(stop) if done == 0 => return Err(stop),
                Err(_) => break,
            }
            let State { queue, held, .. } = &mut *state;
            queue.pop(held);
        }
        if done == 0 { Err(Stop::Block) } else { Ok(done) }
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        // Others' locks may be held: what is to be told later comes with a wake-up.
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let is_empty = self.state.lock(cx).queue.is_empty();
        if is_empty { Events::empty() } else { interest & (Events::IN | Events::READ_NORMAL) }
    }

    fn fasync(&self, registration: &Registration<'_>, cx: &Cx) -> bool {
        registration.apply(&self.signals, Events::IN, cx);
        true
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        late::catch_up(cx);
        let waiting = self.state.lock(cx).queue.bytes() as i32;
        me.memory(cx)?.write(argument.output::<i32>(), &waiting)?;
        Ok(0)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        let mut state = self.state.lock(cx);
        let State { watches, ending, held, .. } = &mut *state;
        let left = ending.get_or_insert_with(|| core::mem::take(watches).into_iter());
        let count = left.len().min(RELEASED_AT_A_TIME);
        for (_, inode) in left.by_ref().take(count) {
            if let Ok(inode) = inode.upgrade(cx) {
                inode.watchers.remove(self.number, None);
            }
        }
        let is_left = left.len() > 0;
        if count > 0 {
            held.remove(Held::Watch, count as u32);
            self.user.remove_watches(count);
        }
        is_left
    }

    fn join_contents(&self, contents: &StrongRc<UnseenContents>) -> bool {
        self.user.join(contents)
    }

    fn leave_contents(&self) {
        // The table, which is locked, has not ended.
        self.user.leave();
    }
}

/// Writes all of an event.
fn write_all(to: &mut Writer<'_>, mut bytes: &[u8]) -> Step<()> {
    // Where memory is missing in its middle, what is there is written first.
    while !bytes.is_empty() {
        let written = to.write(bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

impl Drop for Inotify {
    fn drop(&mut self) {
        // It was lost with a message, and nobody has released it.
        let state = self.state.get_mut();
        if !state.watches.is_empty() {
            self.user.remove_watches(state.watches.len());
            late::leave_instance(self.number, core::mem::take(&mut state.watches));
        }
    }
}

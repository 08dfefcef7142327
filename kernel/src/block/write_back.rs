//! The task that writes dirty pages back.
//!
//! It sleeps while nothing is dirty. A cache is listed when a page of it becomes dirty, and looked at when that is [`OLD`] nanoseconds ago, or at once where too much is dirty.

use alloc::boxed::Box;
use alloc::collections::LinkedList;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinLock, WaitList, WeakRc};
use tasks::{Body, Next};

use super::Cache;
use super::cache::{OLD, background_limit, dirty_pages};
use crate::sched::{self, Parameters};
use crate::step::Stop;
use crate::time::{self, Timeline};

/// Caches with dirty pages, and since when; the one that has had them longest first.
static LISTED: SpinLock<LinkedList<(WeakRc<Cache>, u64)>> = SpinLock::new(LinkedList::new());
static WORK: WaitList = WaitList::new();

/// A cache has dirty pages.
pub(super) fn note_dirty(cache: &Cache, cx: &Cx) {
    if cache.is_written_back_by_owner(cx) {
        return;
    }
    let is_new = !cache.is_listed.swap(true, Ordering::Relaxed);
    if is_new {
        LISTED.lock(cx).push_back((cache.name(), frame::time::now()));
    }
    if is_new || dirty_pages() > background_limit() {
        WORK.wake_all();
    }
}

/// Starts the task, where there is a device.
pub(super) fn start() {
    static IS_STARTED: AtomicBool = AtomicBool::new(false);
    if IS_STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let task = Box::new(WriteBack { cache: None });
    tasks::spawn(&sched::SCHEDULER, task, |words, _| sched::initialise(words, Parameters::default(), None));
}

/// The task, and the cache that it is at, from which page on.
struct WriteBack {
    cache: Option<(WeakRc<Cache>, u32)>,
}

/// What it does next.
enum Then {
    GoOn,
    WaitForRoom,
    WaitUntil(u64),
    Wait,
}

impl Body for WriteBack {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let waker = tasks::prepare(cx);
        WORK.register(waker, cx);
        if let Some((cache, _)) = self.cache
            && let Ok(cache) = cache.upgrade(cx)
        {
            cache.device().room().register(waker, cx);
        }
        let alarm = match self.work(cx) {
            Then::GoOn => {
                tasks::finish_wait(cx);
                return Next::Again;
            }
            Then::WaitUntil(time) => Some(time::wake_at(Timeline::Boot, time, waker, cx)),
            Then::WaitForRoom | Then::Wait => None,
        };
        tasks::park_async(cx);
        drop(alarm);
        Next::Again
    }
}

impl WriteBack {
    /// One step of it.
    fn work(&mut self, cx: &Cx) -> Then {
        let Some((name, from)) = self.cache else { return self.begin(cx) };
        let Ok(cache) = name.upgrade(cx) else {
            self.cache = None;
            return Then::GoOn;
        };
        match cache.start_writing(from, u32::MAX, cx) {
            Ok(Some(next)) => {
                self.cache = Some((name, next));
                Then::GoOn
            }
            Err(Stop::BlockOnDevice) => Then::WaitForRoom,
            Ok(None) | Err(_) => {
                self.cache = None;
                cache.is_listed.store(false, Ordering::Relaxed);
                // What became dirty meanwhile is new.
                if cache.is_dirty(cx) {
                    note_dirty(&cache, cx);
                }
                Then::GoOn
            }
        }
    }

    /// Begins with the next cache, if it is time.
    fn begin(&mut self, cx: &Cx) -> Then {
        let mut listed = LISTED.lock(cx);
        let Some(&(cache, since)) = listed.front() else { return Then::Wait };
        let due = since.saturating_add(OLD);
        if frame::time::now() < due && dirty_pages() <= background_limit() {
            return Then::WaitUntil(due);
        }
        listed.pop_front();
        self.cache = Some((cache, 0));
        Then::GoOn
    }
}

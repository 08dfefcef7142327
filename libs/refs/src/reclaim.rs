//! When the memory of a dead object returns.
//!
//! A [`TempRc`](crate::TempRc) ends at its task's next suspension at the latest. So with one core every dead object may be
//! freed at any suspension. With several, an object waits until each core that runs tasks has passed a suspension since its
//! death (a suspension *is* the quiescent state, as in QSBR).
//!
//! A *core* is whatever runs tasks: a core of the kernel, a thread of a program. Each registers while it runs tasks ([`Core`]), which
//! only schedulers do. A core that is idle ([`while_idle`]) or has left holds nothing back; nor does a core of a kernel that runs user code,
//! which says so in its [`Report`] by one store, and that it is back by one exchange.
//!
//! Freeing is cut in steps: a suspension frees at most as many objects as its scheduler says ([`quiescent`]), and tells it whether there
//! are more. So the time that a suspension takes is bounded, however many objects have died.
//!
//! How it works, and why no fence is missing: one counter, the epoch, is moved on by an atomic read-modify-write at each death,
//! at each quiescent state that has something to free, and when a core comes in. These operations have one order. Of a death
//! and a core's coming in or being quiescent,
//! - either the death is first: then that core sees that the object is dead and cannot upgrade to it any more;
//! - or the core is first: then whoever frees finds the core's report not newer than the death and leaves the object alone.
//!
//! A core that comes back by an exchange of its report does not move the epoch on. There it is a full barrier on each side that orders the two: between the
//! exchange and what the core reads of objects, and between the death and what is read of the reports.
//!
//! Invariant: what is in the limbo list is unreachable by upgrade; each entry carries the epoch of its death; an entry is freed
//! only when each core was quiescent in a later epoch, or was not there.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::{NonNull, from_ref};

use crate::link::DeadQueue;
use crate::object::Header;
use crate::processor::current_core;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, const_fn, fence, global};
use crate::{Cx, SpinLock};

/// How many cores can be registered without an allocation.
pub const MAX_CORES: usize = 64;

/// How many objects the destruction of one frees beside it, at most.
const BESIDES: usize = 2;

/// How many slots need no allocation.
const SLOTS: usize = if cfg!(ebb_loom) { 3 } else { MAX_CORES };

/// What a core reports that runs no task: it is idle, runs user code, or there is no such core.
const ABSENT: u64 = 0;

/// What a core reports that has come back and was not quiescent since. Epochs are greater.
const BACK: u64 = 1;

const FIRST_EPOCH: u64 = 2;

/// In which epoch a core was last quiescent; a line of its own.
///
/// It is a word, which the assembly of a kernel's entry and exit may write itself: 0 with a store that releases, where user code goes on, as
/// [`leave`](Self::leave) does; and 1 with an exchange, which has to be a full barrier, where the kernel is entered, as [`come_back`](Self::come_back) does.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Report(AtomicU64);

impl Report {
    const_fn! {
        /// Of a core that runs no task yet.
        pub fn new() -> Self {
            Report(AtomicU64::new(ABSENT))
        }
    }

    /// The core runs no task until it is [back](Self::come_back).
    ///
    /// # Safety
    /// The caller is the core, or there is none. Nothing is borrowed on it until it is back.
    #[inline(always)]
    pub unsafe fn leave(&self) {
        self.0.store(ABSENT, Ordering::Release);
    }

    /// The core runs a task again. Nothing if it does.
    #[inline(always)]
    pub fn come_back(&self) {
        self.0.swap(BACK, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Whether the core runs a task, as far as the caller sees.
    #[inline(always)]
    pub fn is_present(&self) -> bool {
        self.0.load(Ordering::Relaxed) != ABSENT
    }

    /// What died before this epoch is nothing that the core may borrow.
    #[inline(always)]
    fn passed(&self) -> u64 {
        match self.0.load(Ordering::Acquire) {
            ABSENT => u64::MAX,
            epoch => epoch,
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

/// What is dead and not yet freed, in the order of its death.
struct Limbo {
    queue: DeadQueue,
    /// How many ever entered.
    entered: u64,
}

struct Domain {
    epoch: AtomicU64,
    /// Whether there is anything in `limbo`.
    waiting: AtomicBool,
    limbo: SpinLock<Limbo>,
    /// The reports of the cores that have none of their own.
    reports: [Report; SLOTS],
    /// The reports of all cores, those that were ever taken.
    slots: [AtomicPtr<Report>; SLOTS],
    /// How many objects have begun to wait that were destroyed on each core, as far as the kernel says which core runs ([`set_current_core`]).
    deaths: [AtomicU64; SLOTS],
    /// Which of `slots` somebody has.
    taken: AtomicU64,
    /// No slot from this one on was ever taken.
    high: AtomicUsize,
    /// More slots, and whether somebody has them.
    more: SpinLock<Vec<(&'static Report, bool)>>,
    has_more: AtomicBool,
}

global! {
    static DOMAIN: Domain = Domain::new();
}

/// A thread that runs tasks. While it exists, objects that die wait for this thread's next suspension.
///
/// Where tasks run on more than one thread, each must have one before its first [`Cx`] is made.
#[derive(Debug)]
pub struct Core {
    number: usize,
    slot: &'static Report,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Core {
    /// Registers the calling thread.
    ///
    /// # Safety
    /// The caller is a scheduler: each [`Cx`] that it makes ends before this does.
    pub unsafe fn register() -> Core {
        let (number, slot) = DOMAIN.take_slot(None);
        DOMAIN.come_in(slot);
        Core { number, slot, _of_this_thread: PhantomData }
    }

    /// As [`register`](Self::register), with a report that the caller may write as well.
    ///
    /// # Safety
    /// That of `register`; and nobody else registers with this report.
    pub unsafe fn register_with(report: &'static Report) -> Core {
        let (number, slot) = DOMAIN.take_slot(Some(report));
        DOMAIN.come_in(slot);
        Core { number, slot, _of_this_thread: PhantomData }
    }

    /// Its number, for [`quiescent`] and [`while_idle`].
    #[inline(always)]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Reports that the thread's task borrows nothing just now, and frees all that can be freed: see [`quiescent`].
    #[inline(always)]
    pub fn quiescent(&self, cx: &mut Cx) {
        // SAFETY: it is the calling thread's number, because this is not sent.
        unsafe { quiescent(cx, self.number, usize::MAX) };
    }

    /// Runs `wait`, in which the thread is idle: see [`while_idle`].
    pub fn while_idle<R>(&self, cx: &mut Cx, wait: impl FnOnce() -> R) -> R {
        // SAFETY: as above.
        unsafe { while_idle(cx, self.number, wait) }
    }
}

impl Drop for Core {
    /// The thread runs no tasks any more: what waited for it is freed.
    fn drop(&mut self) {
        // SAFETY: the thread's context has ended.
        unsafe { self.slot.leave() };
        if DOMAIN.waiting.load(Ordering::Relaxed) {
            DOMAIN.collect(Reporter::Absent, usize::MAX);
        }
        DOMAIN.give_slot(self.number);
    }
}

/// Reports that the task of `core` borrows nothing just now, and frees at most `most` objects. Whether more could be freed by the next
/// call. Costs one load where nothing waits.
///
/// The scheduler calls it at each suspension; `&mut Cx` is the proof.
///
/// # Safety
/// `core` is the number of the [`Core`] under which the caller runs.
#[inline(always)]
pub unsafe fn quiescent(cx: &mut Cx, core: usize, most: usize) -> bool {
    cx.check_nothing_is_held();
    DOMAIN.waiting.load(Ordering::Relaxed) && DOMAIN.collect(Reporter::Core(core), most)
}

/// Runs `wait`, in which `core` is idle: no task runs on it, and objects that die do not wait for it.
///
/// # Safety
/// `core` is the number of the [`Core`] under which the caller runs. An interrupt handler that comes in meanwhile and borrows objects
/// is a core of its own.
pub unsafe fn while_idle<R>(cx: &mut Cx, core: usize, wait: impl FnOnce() -> R) -> R {
    cx.check_nothing_is_held();
    let slot = DOMAIN.slot(core);
    let reports = slot.is_some_and(|slot| slot.0.swap(ABSENT, Ordering::AcqRel) != ABSENT);
    if DOMAIN.waiting.load(Ordering::Relaxed) {
        DOMAIN.collect(Reporter::Absent, usize::MAX);
    }
    let back = Back { slot: slot.filter(|_| reports) };
    let result = wait();
    drop(back);
    result
}

/// Brings an idle core in again, also when what it waited for panics.
struct Back {
    slot: Option<&'static Report>,
}

impl Drop for Back {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            DOMAIN.come_in(slot);
        }
    }
}

/// What [`quiescent`] looks at, for code that has it inlined in another language: while it is false nothing is to be done.
pub fn waiting_flag() -> *const AtomicBool {
    &raw const DOMAIN.waiting
}

/// Frees what can be freed without a suspension: all dead objects, where there is one core.
#[inline]
pub fn reclaim(cx: &mut Cx) {
    reclaim_some(cx, usize::MAX);
}

/// As [`reclaim`], at most `most` objects. Whether more could be freed by the next call.
#[inline]
pub fn reclaim_some(cx: &mut Cx, most: usize) -> bool {
    cx.check_nothing_is_held();
    DOMAIN.waiting.load(Ordering::Relaxed) && DOMAIN.collect(Reporter::Alone, most)
}

/// Whether any object is dead and not yet freed.
#[inline(always)]
pub fn has_waiting() -> bool {
    DOMAIN.waiting.load(Ordering::Relaxed)
}

/// How many objects ever had to wait to be freed that died on `core`. Who looks at it twice learns whether any have died in between that did. Where nobody
/// has [said](crate::set_processor) which core runs, those of all cores.
pub fn entered(core: usize) -> u64 {
    match (current_core(), DOMAIN.deaths.get(core)) {
        (Some(_), Some(deaths)) => deaths.load(Ordering::Relaxed),
        _ => DOMAIN.limbo.with(|limbo| limbo.entered),
    }
}

/// Moves the epoch on: what has died until now did so before the epoch that this says.
pub fn begin_epoch() -> u64 {
    epoch() + 1
}

/// Whether any object waits that died before `epoch`.
pub fn waits_since_before(epoch: u64) -> bool {
    let is_older = |limbo: &mut Limbo| limbo.queue.oldest().is_some_and(|oldest| oldest < epoch);
    DOMAIN.waiting.load(Ordering::Relaxed) && DOMAIN.limbo.with(is_older)
}

/// How many objects are dead and not yet freed. For tests and statistics: it counts them one by one.
pub fn waiting() -> usize {
    DOMAIN.limbo.with(|limbo| limbo.queue.count())
}

/// The epoch: greater than that of any death that the caller knows of.
#[inline(always)]
pub(crate) fn deaths() -> u64 {
    DOMAIN.epoch.load(Ordering::Relaxed)
}

/// Moves the epoch on, and says which one it was: the epoch of what the caller has just done.
#[inline(always)]
pub(crate) fn epoch() -> u64 {
    DOMAIN.epoch.fetch_add(1, Ordering::AcqRel)
}

/// Frees `object`, which died in `epoch`, when nobody can borrow it any longer.
///
/// # Safety
/// `epoch` was taken after the object's link stopped leading to it, and the object is given away here; any thread may free it.
pub(crate) unsafe fn defer(object: NonNull<Header>, epoch: u64) {
    if let Some(deaths) = current_core().and_then(|core| DOMAIN.deaths.get(core)) {
        deaths.store(deaths.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    DOMAIN.limbo.within(|limbo| {
        // SAFETY: as this function's contract.
        unsafe { limbo.queue.push(object, epoch) };
        limbo.entered += 1;
        DOMAIN.waiting.store(true, Ordering::Relaxed);
    });
}

/// Frees `object` now if this is the only core, else as [`defer`]; and some of what else can be freed.
///
/// # Safety
/// As for [`defer`].
pub(crate) unsafe fn free_now(object: NonNull<Header>, epoch: u64, cx: &mut Cx) {
    // A core that comes in after `epoch` was taken cannot reach the object; one that came in before is seen here.
    if DOMAIN.is_alone() {
        // SAFETY: no name leads to it, the only core has `&mut Cx` and so borrows nothing, and it is given away.
        unsafe { Header::free(object) };
    } else {
        // SAFETY: as this function's contract.
        unsafe { defer(object, epoch) };
    }
    free_others(cx);
}

/// Frees some of what can be freed, for who destroys an object: as many as come, and more, but not all that others have left.
#[inline]
pub(crate) fn free_others(cx: &mut Cx) {
    reclaim_some(cx, BESIDES);
}

/// On whose behalf dead objects are looked for.
#[derive(Clone, Copy)]
enum Reporter {
    /// This core is quiescent.
    Core(usize),
    /// The caller is quiescent, and goes on only if it is the only core.
    Alone,
    /// The caller runs no tasks.
    Absent,
}

impl Domain {
    const_fn! {
        fn new() -> Self {
            Domain {
                epoch: AtomicU64::new(FIRST_EPOCH),
                waiting: AtomicBool::new(false),
                limbo: SpinLock::new(Limbo { queue: DeadQueue::new(), entered: 0 }),
                #[cfg(not(ebb_loom))]
                reports: [const { Report::new() }; SLOTS],
                #[cfg(ebb_loom)]
                reports: core::array::from_fn(|_| Report::new()),
                #[cfg(not(ebb_loom))]
                slots: [const { AtomicPtr::new(core::ptr::null_mut()) }; SLOTS],
                #[cfg(ebb_loom)]
                slots: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
                #[cfg(not(ebb_loom))]
                deaths: [const { AtomicU64::new(0) }; SLOTS],
                #[cfg(ebb_loom)]
                deaths: core::array::from_fn(|_| AtomicU64::new(0)),
                taken: AtomicU64::new(0),
                high: AtomicUsize::new(0),
                more: SpinLock::new(Vec::new()),
                has_more: AtomicBool::new(false),
            }
        }
    }

    /// The slots that may be in use.
    #[inline(always)]
    fn in_use(&self) -> &[AtomicPtr<Report>] {
        &self.slots[..self.high.load(Ordering::Acquire).min(SLOTS)]
    }

    fn slot(&self, number: usize) -> Option<&'static Report> {
        match self.in_use().get(number) {
            // SAFETY: null, or a report that lives for ever.
            Some(slot) => unsafe { slot.load(Ordering::Acquire).as_ref() },
            None if !self.has_more.load(Ordering::Acquire) => None,
            None => {
                self.more.with(|more| number.checked_sub(SLOTS).and_then(|index| more.get(index)).map(|slot| slot.0))
            }
        }
    }

    /// Runs `look` on what each core last reported.
    fn each_report(&self, mut look: impl FnMut(u64)) {
        for slot in self.in_use() {
            // SAFETY: null, or a report that lives for ever.
            if let Some(report) = unsafe { slot.load(Ordering::Acquire).as_ref() } {
                look(report.passed());
            }
        }
        if self.has_more.load(Ordering::Acquire) {
            self.more.within(|more| more.iter().for_each(|(report, _)| look(report.passed())));
        }
    }

    /// Whether at most one core runs tasks.
    #[inline]
    fn is_alone(&self) -> bool {
        if self.high.load(Ordering::Acquire) <= 1 {
            return true;
        }
        // What the caller has done to an object comes before it looks who might have it.
        fence(Ordering::SeqCst);
        let mut present = 0;
        self.each_report(|report| present += usize::from(report != u64::MAX));
        present <= 1
    }

    /// A core begins to run tasks.
    fn come_in(&self, slot: &Report) {
        // First seen as a core that has passed nothing: whoever moves the epoch on after this core does sees it.
        slot.come_back();
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel);
        slot.0.store(epoch + 1, Ordering::Release);
    }

    fn take_slot(&'static self, own: Option<&'static Report>) -> (usize, &'static Report) {
        let mut taken = self.taken.load(Ordering::Relaxed);
        loop {
            let number = taken.trailing_ones() as usize;
            if number >= SLOTS {
                return self.take_more(own);
            }
            match self.taken.compare_exchange_weak(taken, taken | 1 << number, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    let report = own.unwrap_or(&self.reports[number]);
                    self.slots[number].store(from_ref(report).cast_mut(), Ordering::Release);
                    self.high.fetch_max(number + 1, Ordering::AcqRel);
                    return (number, report);
                }
                Err(now) => taken = now,
            }
        }
    }

    #[cold]
    fn take_more(&self, own: Option<&'static Report>) -> (usize, &'static Report) {
        self.more.with(|more| {
            let index = more.iter().position(|(_, taken)| !taken).unwrap_or_else(|| {
                more.push((own.unwrap_or_else(|| Box::leak(Box::new(Report::new()))), false));
                more.len() - 1
            });
            more[index].1 = true;
            if let Some(own) = own {
                more[index].0 = own;
            }
            self.has_more.store(true, Ordering::Release);
            (SLOTS + index, more[index].0)
        })
    }

    fn give_slot(&self, number: usize) {
        if number < SLOTS {
            self.taken.fetch_and(!(1 << number), Ordering::AcqRel);
        } else {
            self.more.with(|more| more[number - SLOTS].1 = false);
        }
    }

    /// The epoch before which what died may be freed, if the reporter may free at all.
    fn limit(&self, reporter: Reporter) -> Option<u64> {
        let now = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        if self.high.load(Ordering::Acquire) <= 1 {
            // There was never more than one core at a time: the caller is it, or there is none.
            return Some(now);
        }
        match reporter {
            Reporter::Alone => return self.is_alone().then_some(now),
            Reporter::Core(number) => {
                if let Some(slot) = self.slot(number)
                    && slot.is_present()
                {
                    slot.0.store(now, Ordering::Release);
                }
            }
            Reporter::Absent => {}
        }
        // What died before `now` did so before the reports are read. And of two cores that report at the same time, one sees what the other says.
        fence(Ordering::SeqCst);
        let mut limit = now;
        self.each_report(|report| limit = limit.min(report));
        Some(limit)
    }

    /// Frees at most `most` objects. Whether it stopped for that reason.
    #[cold]
    fn collect(&self, reporter: Reporter, mut most: usize) -> bool {
        // A destructor may drop further owners, which enter the list while it is walked: hence one at a time, and again until
        // nothing more can be freed.
        loop {
            let Some(limit) = self.limit(reporter) else { return false };
            let before = most;
            loop {
                if most == 0 {
                    return true;
                }
                let Some(dead) = self.next_dead(limit) else { break };
                // SAFETY: nobody can upgrade to the object, and every borrow of it has ended (module comment).
                unsafe { Header::free(dead) };
                if !self.waiting.load(Ordering::Relaxed) {
                    return false;
                }
                most -= 1;
            }
            if most == before {
                return false;
            }
        }
    }

    /// Takes out the next object that died before `limit`.
    fn next_dead(&self, limit: u64) -> Option<NonNull<Header>> {
        self.limbo.within(|Limbo { queue, .. }| {
            let dead = queue.pop(limit);
            if queue.is_empty() {
                self.waiting.store(false, Ordering::Relaxed);
            }
            dead
        })
    }
}

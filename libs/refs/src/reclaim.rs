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
//! How it works, and why no fence is missing: one counter, the epoch, is moved on by an atomic read-modify-write at each death; the epoch of a death is
//! what it was before. A core that is quiescent reports the epoch that it reads. Where that is later than a death, the core has seen the death's
//! write and all before it, and cannot upgrade to the object any more; where it is not, whoever frees leaves the object alone.
//!
//! A core that comes in reads the epoch, reports it, and then reads objects; who frees has moved the epoch on at the death, and reads the
//! reports after it. There is a full barrier between the two on each side: so either who frees sees which epoch the core came in with, or the core sees that the object is dead.
//! And who waits for others sees that they have come in anew, however short they were away.
//!
//! What died on a core waits in that core's *limbo*, and the core frees it itself, as far as the kernel says which core runs ([`set_processor`](crate::set_processor));
//! in a program there is one limbo for all. So cores that destroy objects of their own do not meet but in the epoch. Who looks whether something can be freed reads what the
//! other cores report, which costs them their cache lines. So objects whose end nobody sees ([`StrongRc::end_unseen`](crate::StrongRc::end_unseen)) have a queue of their own: where others
//! were there at a core's last look, it keeps them at hand, as it keeps free memory, and looks at them when there are sixteen more, when it has another reason to look or to
//! idle, or when somebody [asks](look) for them. Who finds no memory asks all cores.
//!
//! Invariant: what is in a limbo is unreachable by upgrade; each entry carries the epoch of its death; an entry is freed
//! only when each core was quiescent in a later epoch, or was not there.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::{NonNull, from_ref};

use crate::link::DeadQueue;
use crate::object::Header;
use crate::processor::{current_core, is_processor_known};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, const_fn, fence, global};
use crate::{Cx, SpinLock};

/// A kernel's cores have numbers below this.
pub const MAX_CORES: usize = 256;

/// How many objects the destruction of one frees beside it, at most.
const BESIDES: usize = 2;

/// When there are so many more whose end nobody sees, they are looked at.
const MANY: usize = 16;

/// How many slots need no lock.
const SLOTS: usize = if cfg!(ebb_loom) { 3 } else { MAX_CORES };

/// How many threads have a report without an allocation.
const REPORTS: usize = if cfg!(ebb_loom) { 3 } else { 64 };

/// The bits of a word of [`Domain::taken`].
const BITS: usize = u64::BITS as usize;

/// What a core reports that runs no task: it is idle, runs user code, or there is no such core.
const ABSENT: u64 = 0;

/// A word on a line of its own.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Epoch(AtomicU64);

/// The epoch. Nobody but this module writes it; what else reads it is the assembly of a kernel's entry, as a word: see [`Report`].
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub static EPOCH: Epoch = Epoch(AtomicU64::new(ABSENT + 1));
#[cfg(any(ebb_loom, ebb_shuttle))]
global! {
    static EPOCH: Epoch = Epoch(AtomicU64::new(ABSENT + 1));
}

/// In which epoch a core was last quiescent; a line of its own.
///
/// It is a word, which the assembly of a kernel's entry and exit may write itself: 0 with a store that releases, where user code goes on, as
/// [`leave`](Self::leave) does; and the [epoch](EPOCH) with an exchange, which has to be a full barrier, where the kernel is entered, as [`come_back`](Self::come_back)
/// does.
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

    /// The core, which had [left](Self::leave), runs a task again.
    #[inline(always)]
    pub fn come_back(&self) {
        self.0.swap(EPOCH.0.load(Ordering::Acquire), Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// The core borrows nothing just now: nothing that has died so far waits for it any longer. For the middle of long work, since [`quiescent`] says so only
    /// where there is something to free. Changes nothing where the core runs no task.
    ///
    /// # Safety
    /// The caller is the core, and nothing is borrowed on it.
    #[inline(always)]
    pub unsafe fn pass(&self) {
        if self.is_present() {
            // It sees as dead what died before the epoch that it reads.
            let epoch = EPOCH.0.load(Ordering::Acquire);
            fence(Ordering::SeqCst);
            self.0.store(epoch, Ordering::Release);
        }
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

/// What has died on a core and is not yet freed; lines of its own.
#[repr(align(128))]
struct Limbo {
    /// Whether its core is to look at it when it is next quiescent.
    waiting: AtomicBool,
    /// How many wait in it whose end nobody sees. Written with the lock held.
    unseen: AtomicUsize,
    /// Whether one of those may have died in an epoch that goes on.
    later: AtomicBool,
    /// How many have ever entered whose end somebody may wait for. Written with the lock held.
    awaited: AtomicU64,
    /// How many are just freeing something of it: what they have taken out may not have come to its end.
    freeing: AtomicUsize,
    /// Whether others ran tasks when its core last looked at their reports. Then who destroys an object does not look again, but has it freed when the core is
    /// next quiescent: each look costs those who write their reports a cache line. Only a guess.
    crowded: AtomicBool,
    dead: SpinLock<Dead>,
}

/// The objects of a limbo, in the order of their deaths.
struct Dead {
    /// Those whose end somebody may wait for.
    awaited: DeadQueue,
    /// Those whose end nobody sees.
    unseen: DeadQueue,
    /// With so many of these they are looked at.
    unseen_limit: usize,
    /// Somebody has asked for those that died before this epoch: the core looks until they are freed.
    asked: u64,
}

impl Dead {
    fn is_empty(&self) -> bool {
        self.awaited.is_empty() && self.unseen.is_empty()
    }
}

impl Limbo {
    const_fn! {
        fn new() -> Self {
            Limbo {
                waiting: AtomicBool::new(false),
                unseen: AtomicUsize::new(0),
                later: AtomicBool::new(false),
                awaited: AtomicU64::new(0),
                freeing: AtomicUsize::new(0),
                crowded: AtomicBool::new(false),
                dead: SpinLock::new(Dead { awaited: DeadQueue::new(), unseen: DeadQueue::new(), unseen_limit: MANY, asked: 0 }),
            }
        }
    }

    /// Whether there is anything in it, as far as the caller knows.
    #[inline(always)]
    fn has_dead(&self) -> bool {
        self.unseen.load(Ordering::Acquire) > 0 || self.waiting.load(Ordering::Acquire)
    }

    /// All that is in it died before the epoch that goes on from here.
    #[inline(always)]
    fn end_epoch(&self) {
        if self.later.load(Ordering::Relaxed) {
            self.later.store(false, Ordering::Relaxed);
            epoch();
        }
    }

    /// Its core is to look at all that is in it, until that is freed which died before the epoch `asked`.
    #[cold]
    fn look(&self, asked: u64) {
        self.dead.within(|dead| {
            dead.asked = dead.asked.max(asked);
            self.waiting.store(!dead.is_empty(), Ordering::Release);
        });
    }

    /// Takes out the next object that died before `limit`. Says first whether it was the last one, of all.
    #[inline]
    fn next_dead(&self, limit: u64) -> Option<(bool, NonNull<Header>)> {
        self.dead.within(|dead| {
            let next = dead.awaited.pop(limit).or_else(|| {
                let next = dead.unseen.pop(limit)?;
                self.unseen.store(self.unseen.load(Ordering::Relaxed) - 1, Ordering::Release);
                Some(next)
            });
            let is_empty = dead.is_empty();
            if is_empty {
                dead.unseen_limit = MANY;
                self.waiting.store(false, Ordering::Release);
            }
            next.map(|next| (is_empty, next))
        })
    }

    /// Its core has looked at it, and freed what it could.
    fn was_looked_at(&self) {
        self.dead.within(|dead| {
            dead.unseen_limit = self.unseen.load(Ordering::Relaxed) + MANY;
            // In a program nobody says when to look again.
            let waits = !dead.awaited.is_empty()
                || is_older(&dead.unseen, dead.asked)
                || (!is_processor_known() && !dead.unseen.is_empty());
            self.waiting.store(waits, Ordering::Release);
        });
    }
}

struct Domain {
    /// That of the first core; where nobody says which core runs, all use it.
    first_limbo: Limbo,
    /// Those of the other cores, of the cores that were ever there.
    limbos: [AtomicPtr<Limbo>; SLOTS],
    /// The reports of the first cores that have none of their own.
    reports: [Report; REPORTS],
    /// The reports of all cores, those that were ever taken.
    slots: [AtomicPtr<Report>; SLOTS],
    /// Which of `slots` somebody has.
    taken: [AtomicU64; SLOTS.div_ceil(BITS)],
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
        slot.come_back();
        Core { number, slot, _of_this_thread: PhantomData }
    }

    /// As [`register`](Self::register), under the number by which the kernel [knows](crate::set_processor) this core, with a report that the caller may write as well.
    ///
    /// # Panics
    /// If there is a core of that number, or it is not below [`MAX_CORES`].
    ///
    /// # Safety
    /// That of `register`; and nobody else registers with this report.
    pub unsafe fn register_as(number: usize, report: &'static Report) -> Core {
        let (number, slot) = DOMAIN.take_slot(Some((number, report)));
        slot.come_back();
        Core { number, slot, _of_this_thread: PhantomData }
    }

    /// Its number, for [`quiescent`], [`while_idle`] and what asks for that of a core.
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
        let limbo = limbo_of(self.number);
        if limbo.has_dead() {
            DOMAIN.collect(limbo, Reporter::Absent, usize::MAX);
        }
        DOMAIN.give_slot(self.number);
    }
}

/// Reports that the task of `core` borrows nothing just now, and frees at most `most` objects that died there. Whether more could be freed by the next
/// call. Costs one load where nothing waits.
///
/// The scheduler calls it at each suspension; `&mut Cx` is the proof.
///
/// # Safety
/// `core` is the number of the [`Core`] under which the caller runs.
#[inline(always)]
pub unsafe fn quiescent(cx: &mut Cx, core: usize, most: usize) -> bool {
    cx.check_nothing_is_held();
    let limbo = limbo_of(core);
    limbo.waiting.load(Ordering::Relaxed) && DOMAIN.collect(limbo, Reporter::Core(core), most)
}

/// As [`quiescent`], also for what died on other cores: for who finds no memory.
///
/// # Safety
/// As for `quiescent`.
pub unsafe fn quiescent_for_all(cx: &mut Cx, core: usize, most: usize) -> bool {
    cx.check_nothing_is_held();
    let mut more = false;
    for limbo in DOMAIN.all_limbos().filter(|limbo| limbo.has_dead()) {
        more |= DOMAIN.collect(limbo, Reporter::Core(core), most);
    }
    more
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
    let limbo = limbo_of(core);
    if limbo.has_dead() {
        DOMAIN.collect(limbo, Reporter::Absent, usize::MAX);
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
            slot.come_back();
        }
    }
}

/// The limbo of a core.
#[inline]
fn limbo_of(core: usize) -> &'static Limbo {
    if core == 0 || !is_processor_known() { &DOMAIN.first_limbo } else { DOMAIN.limbo(core) }
}

/// Whether there was never more than one core at a time.
#[inline(always)]
pub(crate) fn is_single() -> bool {
    DOMAIN.high.load(Ordering::Relaxed) <= 1
}

/// The limbo of the calling core.
#[inline]
fn limbo_here() -> &'static Limbo {
    if is_single() {
        // The first core is the only one so far.
        return &DOMAIN.first_limbo;
    }
    DOMAIN.limbo(current_core().unwrap_or(0))
}

/// What [`quiescent`] looks at, for code that has it inlined: while it is false nothing is to be done. To be asked for again when the kernel has
/// [said](crate::set_processor) what the processor is like.
#[inline]
pub fn waiting_flag(core: usize) -> &'static AtomicBool {
    &limbo_of(core).waiting
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
    let limbo = limbo_here();
    limbo.has_dead() && DOMAIN.collect(limbo, Reporter::Alone, most)
}

/// How many objects that died on `core` ever had to wait to be freed, but for those whose end [nobody sees](crate::StrongRc::end_unseen). Who
/// looks at it twice learns whether any have in between.
pub fn awaited(core: usize) -> u64 {
    limbo_of(core).awaited.load(Ordering::Relaxed)
}

/// What has died until now, as far as the caller knows, and whose end somebody may wait for, did so before the epoch that this says.
pub fn epoch_now() -> u64 {
    EPOCH.0.load(Ordering::Acquire)
}

/// Begins an epoch, before which all died that has died until now, as far as the caller knows.
pub fn begin_epoch() -> u64 {
    epoch() + 1
}

/// What was borrowed in an [epoch](epoch_now) before the one that this says, nobody borrows any more: each core that runs tasks has been quiescent since. `u64::MAX` where no core runs
/// tasks.
///
/// It is true of what the caller knows to have been borrowed, as where both happened with one lock held. Epochs go on with deaths: who waits for this [begins](begin_epoch) one.
pub fn borrowed_since() -> u64 {
    let mut first = u64::MAX;
    DOMAIN.each_report(|passed| first = first.min(passed));
    first
}

/// Reports that the task of `core` borrows nothing just now. Whether each core has been quiescent since `epoch` [began](begin_epoch), or ran no task then: the caller sees what
/// tasks did before, and they see since then what the caller had done before it began.
///
/// # Safety
/// As for [`quiescent`].
pub unsafe fn all_passed(cx: &mut Cx, core: usize, epoch: u64) -> bool {
    cx.check_nothing_is_held();
    if let Some(slot) = DOMAIN.slot(core) {
        // SAFETY: it is the caller's, who borrows nothing, as `cx` shows.
        unsafe { slot.pass() };
    }
    // What the caller has done comes before it looks who may have come in without seeing it.
    fence(Ordering::SeqCst);
    let mut first = u64::MAX;
    DOMAIN.each_report(|passed| first = first.min(passed));
    first >= epoch
}

/// Whether any object is dead and not yet freed, where nobody has said which core runs.
#[inline(always)]
pub fn has_waiting() -> bool {
    DOMAIN.first_limbo.waiting.load(Ordering::Relaxed)
}

/// Whether any object that died on `core` before `epoch` may not have come to its end.
pub fn waits_since_before(core: usize, epoch: u64) -> bool {
    waits(core, |dead| [&dead.awaited, &dead.unseen].iter().any(|queue| is_older(queue, epoch)))
}

/// As [`waits_since_before`], for objects whose end somebody may wait for.
pub fn awaits_since_before(core: usize, epoch: u64) -> bool {
    waits(core, |dead| is_older(&dead.awaited, epoch))
}

fn is_older(queue: &DeadQueue, epoch: u64) -> bool {
    queue.oldest().is_some_and(|oldest| oldest < epoch)
}

fn waits(core: usize, is_there: impl FnOnce(&Dead) -> bool) -> bool {
    let limbo = limbo_of(core);
    // Who has taken the last one out says so before, and that there are none left after.
    limbo.has_dead() && limbo.dead.within(|dead| is_there(dead)) || limbo.freeing.load(Ordering::Acquire) > 0
}

/// What has died on `core` and is kept there at hand is looked at when the core is quiescent, until it is freed; whether there is anything.
pub fn look(core: usize) -> bool {
    let has_unseen = limbo_of(core).unseen.load(Ordering::Relaxed) > 0;
    if has_unseen {
        limbo_of(core).look(epoch() + 1);
    }
    has_unseen
}

/// As [`look`], once: when the core is next quiescent.
#[inline]
pub fn look_once(core: usize) -> bool {
    let has_unseen = limbo_of(core).unseen.load(Ordering::Relaxed) > 0;
    if has_unseen {
        limbo_of(core).look(0);
    }
    has_unseen
}

/// Whether any object that died on any core before `epoch` may not have come to its end.
pub fn waits_anywhere_since_before(epoch: u64) -> bool {
    (0..DOMAIN.in_use().len()).any(|core| waits_since_before(core, epoch))
}

/// As [`waits_anywhere_since_before`], for objects whose end somebody may wait for.
pub fn awaits_anywhere_since_before(epoch: u64) -> bool {
    (0..DOMAIN.in_use().len()).any(|core| awaits_since_before(core, epoch))
}

/// How many objects are dead and not yet freed. For tests and statistics: it counts them one by one.
pub fn waiting() -> usize {
    DOMAIN.all_limbos().map(|limbo| limbo.dead.with(|dead| dead.awaited.count() + dead.unseen.count())).sum()
}

/// The epoch: greater than that of any death that the caller knows of.
#[inline(always)]
pub(crate) fn deaths() -> u64 {
    EPOCH.0.load(Ordering::Relaxed)
}

/// Moves the epoch on, and says which one it was: the epoch of what the caller has just done.
#[inline(always)]
pub(crate) fn epoch() -> u64 {
    EPOCH.0.fetch_add(1, Ordering::AcqRel)
}

/// The epoch of a death of which the other cores need not hear now, if they were there at this core's last look: it goes on until somebody looks at this core's limbo.
///
/// That is enough. What was done to the object is before the fence, and the epoch is read behind it: so who has read a later epoch, and then was at a fence, as whoever reports
/// one is, sees the object dead. And no generation is used twice, since the object's link is free only when cores have reported a later epoch.
pub(crate) fn epoch_of_unseen() -> u64 {
    if limbo_here().crowded.load(Ordering::Relaxed) {
        fence(Ordering::SeqCst);
        EPOCH.0.load(Ordering::Acquire)
    } else {
        epoch()
    }
}

/// Frees `object`, which died in `epoch`, when nobody can borrow it any longer.
///
/// # Safety
/// `epoch` was taken after the object's link stopped leading to it, and the object is given away here; any thread may free it.
pub(crate) unsafe fn defer(object: NonNull<Header>, epoch: u64) {
    let limbo = limbo_here();
    limbo.dead.within(|dead| {
        // SAFETY: as this function's contract.
        unsafe { dead.awaited.push(object, epoch) };
        limbo.awaited.store(limbo.awaited.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        limbo.waiting.store(true, Ordering::Relaxed);
    });
}

/// As [`defer`], where nobody sees when the object comes to its end. If others were there at this core's last look, it is kept at hand.
///
/// # Safety
/// That of [`defer`]; `epoch` is what [`epoch_of_unseen`] said.
#[cold]
#[inline(never)]
pub(crate) unsafe fn defer_unseen(object: NonNull<Header>, epoch: u64) {
    let limbo = limbo_here();
    limbo.dead.within(|dead| {
        // SAFETY: as this function's contract.
        unsafe { dead.unseen.push(object, epoch) };
        let unseen = limbo.unseen.load(Ordering::Relaxed) + 1;
        limbo.unseen.store(unseen, Ordering::Relaxed);
        limbo.later.store(true, Ordering::Relaxed);
        if !limbo.crowded.load(Ordering::Relaxed) || unseen >= dead.unseen_limit {
            limbo.waiting.store(true, Ordering::Relaxed);
        }
    });
}

/// Frees `object` now if this is the only core, else as [`defer`]; and some of what else can be freed.
///
/// # Safety
/// As for [`defer`].
#[inline]
pub(crate) unsafe fn free_now(object: NonNull<Header>, epoch: u64, cx: &mut Cx) {
    // A core that comes in after `epoch` was taken cannot reach the object; one that came in before is seen here.
    if !is_crowded() && DOMAIN.is_alone() {
        // SAFETY: no name leads to it, the only core has `&mut Cx` and so borrows nothing, and it is given away.
        unsafe { Header::free(object) };
    } else {
        // SAFETY: as this function's contract.
        unsafe { defer(object, epoch) };
        note_crowd(limbo_here(), true);
    }
    free_others(cx);
}

/// Frees some of what can be freed, for who destroys an object: as many as come, and more, but not all that others have left.
#[inline]
pub(crate) fn free_others(cx: &mut Cx) {
    if !is_crowded() {
        reclaim_some(cx, BESIDES);
    }
}

/// Whether others ran tasks when this core last looked.
#[inline(always)]
pub(crate) fn is_crowded() -> bool {
    #[cold]
    fn is_crowded_here() -> bool {
        limbo_here().crowded.load(Ordering::Relaxed)
    }
    !is_single() && is_crowded_here()
}

/// Whether others run tasks, as has just been seen for the core whose limbo this is. A program has one limbo for all: there everybody looks for himself.
fn note_crowd(limbo: &Limbo, is_crowded: bool) {
    if is_processor_known() && limbo.crowded.load(Ordering::Relaxed) != is_crowded {
        limbo.crowded.store(is_crowded, Ordering::Relaxed);
    }
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

/// Somebody frees objects of a limbo; a destructor may panic.
struct Freeing<'a>(&'a Limbo);

impl<'a> Freeing<'a> {
    /// Before anything is taken out.
    fn begin(limbo: &'a Limbo) -> Self {
        limbo.freeing.fetch_add(1, Ordering::AcqRel);
        Freeing(limbo)
    }
}

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        self.0.freeing.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Domain {
    const_fn! {
        fn new() -> Self {
            Domain {
                first_limbo: Limbo::new(),
                #[cfg(not(ebb_loom))]
                limbos: [const { AtomicPtr::new(core::ptr::null_mut()) }; SLOTS],
                #[cfg(ebb_loom)]
                limbos: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
                #[cfg(not(ebb_loom))]
                reports: [const { Report::new() }; REPORTS],
                #[cfg(ebb_loom)]
                reports: core::array::from_fn(|_| Report::new()),
                #[cfg(not(ebb_loom))]
                slots: [const { AtomicPtr::new(core::ptr::null_mut()) }; SLOTS],
                #[cfg(ebb_loom)]
                slots: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
                #[cfg(not(ebb_loom))]
                taken: [const { AtomicU64::new(0) }; SLOTS.div_ceil(BITS)],
                #[cfg(ebb_loom)]
                taken: core::array::from_fn(|_| AtomicU64::new(0)),
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

    /// The limbo of a core; the first one's where it has none of its own.
    #[inline(always)]
    fn limbo(&self, number: usize) -> &Limbo {
        let own = self.limbos.get(number).map_or(core::ptr::null_mut(), |limbo| limbo.load(Ordering::Acquire));
        // SAFETY: null, or a limbo that lives for ever.
        unsafe { own.as_ref() }.unwrap_or(&self.first_limbo)
    }

    fn all_limbos(&self) -> impl Iterator<Item = &Limbo> {
        let others = self.limbos.iter().filter_map(|limbo| {
            // SAFETY: as above.
            unsafe { limbo.load(Ordering::Acquire).as_ref() }
        });
        core::iter::once(&self.first_limbo).chain(others)
    }

    /// Makes what the core of a number has of its own, beside its report, if there was never one of that number.
    fn make_own(&self, number: usize) {
        let limbo = &self.limbos[number];
        // The number is the caller's, and so nobody else makes it.
        if number != 0 && limbo.load(Ordering::Relaxed).is_null() {
            limbo.store(Box::leak(Box::new(Limbo::new())), Ordering::Release);
        }
        #[cfg(not(any(ebb_loom, ebb_shuttle)))]
        crate::spare_links::make(number);
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

    fn take_slot(&'static self, own: Option<(usize, &'static Report)>) -> (usize, &'static Report) {
        if let Some((number, report)) = own {
            assert!(number < SLOTS, "no core has this number");
            let taken = self.taken[number / BITS].fetch_or(1 << (number % BITS), Ordering::AcqRel);
            assert!(taken & 1 << (number % BITS) == 0, "there is a core of this number");
            return self.enter_slot(number, report);
        }
        let mut taken = self.taken[0].load(Ordering::Relaxed);
        loop {
            let number = taken.trailing_ones() as usize;
            let Some(report) = self.reports.get(number) else { return self.take_more() };
            match self.taken[0].compare_exchange_weak(taken, taken | 1 << number, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return self.enter_slot(number, report),
                Err(now) => taken = now,
            }
        }
    }

    fn enter_slot(&self, number: usize, report: &'static Report) -> (usize, &'static Report) {
        if is_processor_known() {
            self.make_own(number);
        }
        self.slots[number].store(from_ref(report).cast_mut(), Ordering::Release);
        self.high.fetch_max(number + 1, Ordering::AcqRel);
        // A core that was alone has no barrier between a death and its look at `high`: of this and the death, one is first.
        epoch();
        (number, report)
    }

    #[cold]
    fn take_more(&self) -> (usize, &'static Report) {
        self.more.with(|more| {
            let index = more.iter().position(|(_, taken)| !taken).unwrap_or_else(|| {
                more.push((Box::leak(Box::new(Report::new())), false));
                more.len() - 1
            });
            more[index].1 = true;
            self.has_more.store(true, Ordering::Release);
            (SLOTS + index, more[index].0)
        })
    }

    fn give_slot(&self, number: usize) {
        if number < SLOTS {
            self.taken[number / BITS].fetch_and(!(1 << (number % BITS)), Ordering::AcqRel);
        } else {
            self.more.with(|more| more[number - SLOTS].1 = false);
        }
    }

    /// The epoch before which what died may be freed, if the reporter may free at all.
    fn limit(&self, limbo: &Limbo, reporter: Reporter) -> Option<u64> {
        let now = EPOCH.0.load(Ordering::Acquire);
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
        let (mut limit, mut present) = (now, 0);
        self.each_report(|report| {
            limit = limit.min(report);
            present += usize::from(report != u64::MAX);
        });
        note_crowd(limbo, present > 1);
        Some(limit)
    }

    /// Frees at most `most` objects. Whether it stopped for that reason.
    #[cold]
    fn collect(&self, limbo: &Limbo, reporter: Reporter, mut most: usize) -> bool {
        limbo.end_epoch();
        let _freeing = (self.high.load(Ordering::Acquire) > 1).then(|| Freeing::begin(limbo));
        // A destructor may drop further owners, which enter the list while it is walked: hence one at a time, and again until
        // nothing more can be freed.
        loop {
            let Some(limit) = self.limit(limbo, reporter) else { return false };
            let before = most;
            loop {
                if most == 0 {
                    return true;
                }
                let Some((is_last, dead)) = limbo.next_dead(limit) else { break };
                // SAFETY: nobody can upgrade to the object, and every borrow of it has ended (module comment).
                unsafe { Header::free(dead) };
                if is_last && !limbo.waiting.load(Ordering::Relaxed) {
                    return false;
                }
                most -= 1;
            }
            if most == before {
                limbo.was_looked_at();
                return false;
            }
        }
    }
}

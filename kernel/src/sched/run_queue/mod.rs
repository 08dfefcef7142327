//! [`RunQueue`]: what one core runs and what waits for it.

mod ends;
mod in_group;
mod turn;

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

use tasks::{Ready, SchedWords, Why, Worker};

use super::group::{self, Counted};
use super::real_time::RealTime;
use super::task::{Tag, Words};
use super::{Class, ENDS_SLICE, FAIR_SLICE, ROUND_ROBIN_SLICE, SLEEPER_CREDIT, WAKE_UP_GRANULARITY};
use turn::Entry;

pub(super) use turn::{FairTurn, Turn};

/// In place of a time: see [`RunQueue::charge`].
const IN_GROUP: u64 = u64::MAX;

/// So many waiting tasks at most are to be counted at once where one of another group comes.
const MOST_UNCOUNTED: usize = 64;

/// What one core runs and what waits for it. It is that core's, with a lock of its own; who wakes a task for it takes that lock.
pub(super) struct RunQueue {
    pub running: Option<&'static SchedWords>,
    pub worker: Option<&'static Worker>,
    /// The core has told all that it idles. (Who calls it withdraws that.)
    pub says_idle: bool,
    /// Which fair tasks are *plain*, with nobody to share by weights of groups: those of no group. On a machine with one core, those of a group as long as no others are here: they are
    /// [counted](Self::end_seclusion) when one comes.
    plain: Tag,
    /// As what the running task is counted in its group, until the core leaves it.
    counted: Counted,
    /// It gave way and waits already, counted as it was: the core has not left it yet.
    is_handed_on: bool,
    /// When the slice of the running task ends, as far as it has been told.
    slice: Slice,
    /// The running task has its turn as one of those in `ends`.
    runs_end: bool,
    /// It has, or there are others in `ends`: so that who has nothing to do with ends looks at one word.
    with_ends: bool,
    /// Until when the running task was charged; [`IN_GROUP`] if it is counted in a group: only who sees that pays for groups.
    since: u64,
    /// Until when its time was charged then, and until when its virtual time and its groups were.
    since_in_group: u64,
    virtual_since: u64,
    /// Whom it is charged to; else whom the last one was that is counted in a group.
    charged: Option<group::Charged>,
    /// When the running task gave way, if the core has not looked for another since; else 0.
    gave_way_at: u64,
    /// How long the core has run tasks, in nanoseconds, as far as they were charged.
    pub busy: u64,
    /// How often it began to run a task.
    pub begun: u64,
    /// No fair task here is entitled to less virtual run time than this.
    floor: u64,
    /// Where the last new task began, and what `busy` was then.
    beginning: u64,
    busy_before: u64,
    /// Fair tasks that may run on every core.
    movable: BinaryHeap<Reverse<Entry<FairTurn>>>,
    /// Tasks of all classes that may not: what they do lies on a stack here ([`Ready::worker`]), or they were told where to run.
    bound: BinaryHeap<Reverse<Entry<Turn>>>,
    /// How many of those some other core may run as well.
    partial: usize,
    /// Tasks that work at ends. However many they are, they have the share of one, and have it in turn.
    ends: VecDeque<Ready>,
    /// The virtual time of all of them together, but for what the running one has run since it began.
    ends_time: u64,
    /// For how long that one had run when it began.
    end_began: u64,
    /// Tells fair tasks of equal virtual time apart: first come, first served.
    entered: i64,
}

/// Whether the running task has been told when its slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    Unknown,
    /// It is that of its class.
    Long,
    /// It is short, since ends wait or run.
    Short,
}

/// Whether what a core runs gives way to another task.
pub(super) enum GivesWay {
    No,
    Now(&'static Worker),
    /// When it has run for so many nanoseconds more.
    After(u64),
}

/// Takes out the first entry that `is_it`. Takes as long as there are entries.
fn take_out<T: Ord>(heap: &mut BinaryHeap<Reverse<Entry<T>>>, is_it: impl Fn(&Ready) -> bool) -> Option<Ready> {
    let at = heap.as_slice().iter().position(|Reverse(entry)| is_it(&entry.ready))?;
    let mut entries = core::mem::take(heap).into_vec();
    let Reverse(found) = entries.swap_remove(at);
    *heap = BinaryHeap::from(entries);
    Some(found.ready)
}

/// Whether some other core may run a task that is bound to one.
fn is_partial(ready: &Ready) -> bool {
    ready.worker().is_none() && Words(ready.sched()).cores().len() != 1
}

/// The shorter one of two slices.
fn shorter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl RunQueue {
    pub const fn new() -> Self {
        RunQueue {
            running: None,
            worker: None,
            says_idle: false,
            plain: Tag::NO_GROUP,
            counted: Counted::NOTHING,
            is_handed_on: false,
            slice: Slice::Unknown,
            runs_end: false,
            with_ends: false,
            since: 0,
            since_in_group: 0,
            virtual_since: 0,
            charged: None,
            gave_way_at: 0,
            busy: 0,
            begun: 0,
            floor: 0,
            beginning: 0,
            busy_before: 0,
            movable: BinaryHeap::new(),
            bound: BinaryHeap::new(),
            partial: 0,
            ends: VecDeque::new(),
            ends_time: 0,
            end_began: 0,
            entered: 0,
        }
    }

    /// Makes room for `count` ready tasks, so that waking them needs no memory; false if there is none. `alone`: there is one core, to which nothing is
    /// bound.
    pub fn reserve(&mut self, count: usize, alone: bool) -> bool {
        fn reserve<T: Ord>(queue: &mut BinaryHeap<T>, count: usize) -> bool {
            count <= queue.capacity() || queue.try_reserve(count - queue.len().min(count)).is_ok()
        }
        let waiting = self.ends.len();
        reserve(&mut self.movable, count)
            && (alone || reserve(&mut self.bound, count))
            && self.ends.try_reserve(count.saturating_sub(waiting)).is_ok()
    }

    /// Charges the running task for the time since it was last charged.
    #[inline(always)]
    pub fn charge(&mut self, now: u64) {
        if !self.charge_plainly(now) && self.since == IN_GROUP && now > self.virtual_since {
            self.charge_in_group(now);
        }
    }

    /// As `charge`, for who asks for how long tasks have run and not whose turn it is.
    #[inline(always)]
    pub fn charge_time(&mut self, now: u64) {
        if !self.charge_plainly(now) && self.since == IN_GROUP && now > self.since_in_group {
            self.charge_time_in_group(now);
        }
    }

    /// Charges what runs if that is not counted in a group, and if there is something to charge; whether there was.
    #[inline(always)]
    fn charge_plainly(&mut self, now: u64) -> bool {
        let Some(running) = self.running.filter(|_| now > self.since) else { return false };
        let ran = now - self.since;
        Words(running).charge(ran);
        self.busy += ran;
        self.since = now;
        true
    }

    /// Which core it is that of, once that has looked for something to do.
    fn core(&self) -> usize {
        self.worker.map_or(0, Worker::number)
    }

    /// The running task lets all others go first.
    #[inline(always)]
    pub fn step_back(&self, words: Words) {
        if self.is_plain(words) {
            words.add_virtual_time(FAIR_SLICE);
        } else {
            self.step_back_specially(words);
        }
    }

    /// Enters the running task, a fair one, which gives way: it has its turn by what it has run until now. What the core does until it has left the task is the task's still, as one that is counted once.
    pub fn push_running(&mut self, ready: Ready, now: u64) {
        self.charge(now);
        let words = Words(ready.sched());
        if self.is_to_be_handed_on(words) {
            words.set_counted(self.counted);
            self.is_handed_on = true;
        }
        self.push_fair(ready);
    }

    /// The core has left what it ran and looks for something else.
    #[inline(always)]
    pub fn leave(&mut self, now: u64, worker: &'static Worker) {
        self.end_running(now);
        if self.with_ends {
            self.leave_end();
        }
        self.look_for_another(worker);
    }

    /// What the core runs has run until now. (One that [gave way](Self::give_way) was charged then, and waits itself.)
    #[inline(always)]
    pub fn end_running(&mut self, now: u64) {
        if self.has_fair() {
            self.charge(now);
        } else {
            self.raise_floor(now);
        }
        if self.since == IN_GROUP {
            self.discount_running(now);
        }
    }

    /// The core runs nothing from now on.
    #[inline(always)]
    pub fn look_for_another(&mut self, worker: &'static Worker) {
        self.running = None;
        self.worker = Some(worker);
    }

    /// The core runs a task from now on; for how long before another has its turn, if there is another.
    #[inline(always)]
    pub fn begin(&mut self, ready: &Ready, now: u64, real_time: &RealTime) -> Option<u64> {
        if self.with_ends {
            let words = self.begin_running(ready, now);
            return self.begin_otherwise(words, now, real_time);
        }
        self.begin_without_ends(ready, now, real_time)
    }

    #[inline(always)]
    fn begin_running(&mut self, ready: &Ready, now: u64) -> Words<'static> {
        let words = Words(ready.sched());
        self.running = Some(ready.sched());
        frame::mm::work_for(words.payer());
        self.begun += 1;
        self.since = now;
        words
    }

    /// As [`begin`](Self::begin), where there are no ends.
    #[inline(always)]
    pub fn begin_without_ends(&mut self, ready: &Ready, now: u64, real_time: &RealTime) -> Option<u64> {
        let words = self.begin_running(ready, now);
        if !self.is_plain(words) {
            return self.begin_in_group(words, now, real_time);
        }
        self.begin_plainly(words)
    }

    #[inline(always)]
    fn begin_plainly(&mut self, words: Words) -> Option<u64> {
        self.floor = self.floor.max(words.virtual_time());
        let slice = (!self.movable.is_empty() || !self.bound.is_empty()).then_some(FAIR_SLICE);
        self.slice = if slice.is_some() { Slice::Long } else { Slice::Unknown };
        slice
    }

    /// The core runs a real-time task or one that is in a group, or a fair one while there are ends.
    #[inline(never)]
    fn begin_otherwise(&mut self, words: Words, now: u64, real_time: &RealTime) -> Option<u64> {
        let counted = self.take_counted(words, now);
        let is_fair = !words.is_real_time();
        self.runs_end = self.with_ends && is_fair && words.works_at_ends();
        self.end_began = words.cpu_time();
        self.with_ends = self.runs_end || !self.ends.is_empty();
        let slice = if is_fair {
            self.floor = self.floor.max(self.time_of(words));
            let slice = self.has_fair().then_some(self.fair_slice());
            if counted.is_nothing() { slice } else { shorter(slice, group::piece(counted, now)) }
        } else {
            (words.class() == Class::RoundRobin && self.has_equal(words.priority(), real_time))
                .then_some(ROUND_ROBIN_SLICE)
        };
        self.slice = match slice {
            None => Slice::Unknown,
            Some(slice) if slice <= ENDS_SLICE => Slice::Short,
            Some(_) => Slice::Long,
        };
        slice
    }

    /// For how long a fair task runs while others wait.
    #[inline(always)]
    fn fair_slice(&self) -> u64 {
        if self.with_ends { ENDS_SLICE } else { FAIR_SLICE }
    }

    /// The virtual time that a task has here which had `time` in a queue whose floor was `floor`: as far from the others as there.
    pub fn translate(&self, time: u64, floor: u64) -> u64 {
        if time >= floor { self.floor.saturating_add(time - floor) } else { self.floor.saturating_sub(floor - time) }
    }

    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// The virtual time from which a task goes on at least.
    #[inline(always)]
    pub fn least(&mut self, why: Why, now: u64) -> u64 {
        self.raise_floor(now);
        match why {
            // It ran elsewhere just now.
            Why::Yielded => 0,
            Why::New => self.beginning(now),
            Why::Woken => self.floor.saturating_sub(SLEEPER_CREDIT),
        }
    }

    /// The virtual time at which a new task begins: it goes on by the part of each of those who are here in what the core runs, and stays within a slice of the
    /// floor. (If all began at the floor, processes that fork and end at once would all begin where the first did, and who has run for longer would never
    /// have a turn again.)
    fn beginning(&mut self, now: u64) -> u64 {
        self.charge(now);
        let part = (self.busy - self.busy_before) / (self.len() as u64 + 1);
        self.busy_before = self.busy;
        self.beginning = self.beginning.saturating_add(part).clamp(self.floor, self.floor.saturating_add(FAIR_SLICE));
        self.beginning
    }

    /// A task that runs while nobody else is ready uses up what a sleeper could claim: without this, one that is woken would run alone for as
    /// long as the other did.
    #[inline(always)]
    fn raise_floor(&mut self, now: u64) {
        if self.has_fair() {
            return;
        }
        self.charge(now);
        if let Some(running) = self.running.map(Words)
            && !running.is_real_time()
        {
            self.floor = self.floor.max(self.time_of(running));
        }
    }

    /// Enters a fair task that every core may run.
    #[inline(always)]
    pub fn push_movable(&mut self, ready: Ready) {
        self.entered += 1;
        let words = Words(ready.sched());
        let turn = FairTurn { virtual_time: words.virtual_time(), order: self.entered };
        self.movable.push(Reverse(Entry { turn, ready }));
    }

    /// Enters the running task, a fair one that every core may run: it has its turn by what it has run until now. The core looks for another at once.
    #[inline(always)]
    pub fn give_way(&mut self, ready: Ready, now: u64) {
        self.charge(now);
        self.gave_way_at = now;
        self.push_movable(ready);
    }

    /// When the running task gave way, if it has and this was not asked since: the time is no other now.
    #[inline(always)]
    pub fn gave_way_at(&mut self) -> Option<u64> {
        match core::mem::take(&mut self.gave_way_at) {
            0 => None,
            at => Some(at),
        }
    }

    /// Enters a fair task.
    pub fn push_fair(&mut self, ready: Ready) {
        let words = Words(ready.sched());
        let is_plain = self.is_plain(words);
        if ready.worker().is_none() && words.cores().is_empty() {
            return if is_plain { self.push_movable(ready) } else { self.push_movable_in_group(ready) };
        }
        if ready.worker().is_some() && words.works_at_ends() {
            return self.push_end(ready);
        }
        self.entered += 1;
        if !is_plain {
            words.count(self.charged.as_ref());
        }
        let turn = FairTurn { virtual_time: words.virtual_time(), order: self.entered };
        self.bind(ready, Turn::of_fair(turn));
    }

    /// Enters a task that not every core may run.
    pub fn bind(&mut self, ready: Ready, turn: Turn) {
        self.partial += usize::from(is_partial(&ready));
        self.bound.push(Reverse(Entry { turn, ready }));
    }

    /// The fair task whose turn it is among those that any core may run.
    #[inline(always)]
    pub fn pop_movable(&mut self) -> Option<Ready> {
        self.movable.pop().map(|Reverse(entry)| entry.ready)
    }

    /// The task whose turn it is, among those here and the real-time tasks that any core may run.
    pub fn pop(&mut self, real_time: &RealTime) -> Option<Ready> {
        let bound = self.bound.peek().map(|Reverse(first)| first.turn);
        if real_time.highest() != 0
            && let Some(ready) = real_time.pop_before(bound)
        {
            return Some(ready);
        }
        let movable = self.movable.peek().map(|Reverse(first)| Turn::of_fair(first.turn));
        if self.with_ends && self.is_turn_of_ends([bound, movable].into_iter().flatten().min()) {
            return self.ends.pop_front();
        }
        match bound {
            Some(bound) if movable.is_none_or(|movable| bound < movable) => {
                let Reverse(Entry { ready, .. }) = self.bound.pop()?;
                Some(self.unbind(ready))
            }
            _ => self.pop_movable(),
        }
    }

    /// It is counted as partial no more.
    fn unbind(&mut self, ready: Ready) -> Ready {
        self.partial -= usize::from(self.partial != 0 && is_partial(&ready));
        if self.bound.is_empty() {
            self.partial = 0;
        }
        ready
    }

    /// Gives up a task to core `thief`, which has nothing to do: none if the core is about to take the only one.
    pub fn give_up(&mut self, thief: usize) -> Option<Ready> {
        if self.running.is_none() && self.len() < 2 {
            return None;
        }
        self.find_for(thief).inspect(|ready| Words(ready.sched()).discount())
    }

    /// Gives up a fair task that any core may run.
    pub fn give_up_movable(&mut self) -> Option<Ready> {
        self.pop_movable().inspect(|ready| Words(ready.sched()).discount())
    }

    fn find_for(&mut self, thief: usize) -> Option<Ready> {
        if let Some(ready) = self.pop_movable() {
            return Some(ready);
        }
        if self.partial == 0 {
            return None;
        }
        // Who was told where to run, to several cores and not to all, is rare.
        let ready = take_out(&mut self.bound, |ready| is_partial(ready) && Words(ready.sched()).may_run_on(thief))?;
        Some(self.unbind(ready))
    }

    /// Takes a task out that waits here. Takes as long as tasks wait.
    pub fn take_out(&mut self, words: &SchedWords) -> Option<Ready> {
        self.find_waiting(words).inspect(|ready| Words(ready.sched()).discount())
    }

    fn find_waiting(&mut self, words: &SchedWords) -> Option<Ready> {
        let is_it = |ready: &Ready| core::ptr::eq(ready.sched(), words);
        if let Some(ready) = take_out(&mut self.movable, is_it) {
            return Some(ready);
        }
        if let Some(at) = self.ends.iter().position(is_it) {
            return self.ends.remove(at);
        }
        // What it may do has changed since it was counted.
        let ready = take_out(&mut self.bound, is_it)?;
        self.partial = self.bound.as_slice().iter().filter(|Reverse(entry)| is_partial(&entry.ready)).count();
        Some(ready)
    }

    /// Whether a fair task waits.
    #[inline(always)]
    fn has_fair(&self) -> bool {
        !self.movable.is_empty() || !self.bound.is_empty() || self.with_ends && !self.ends.is_empty()
    }

    /// Whether a real-time task of this priority or a higher one keeps the core from the one that it runs.
    fn has_equal(&self, priority: u8, real_time: &RealTime) -> bool {
        real_time.has(priority) || self.bound.peek().is_some_and(|Reverse(first)| first.turn.priority.0 >= priority)
    }

    /// Nobody waits whom the end of a slice could give a turn: the next one who comes is told of one.
    pub fn has_no_slice(&mut self) {
        self.slice = Slice::Unknown;
    }

    /// How many tasks wait.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.movable.len() + self.bound.len() + self.ends.len()
    }

    /// How many of them another core may take.
    #[inline(always)]
    pub fn movable_len(&self) -> usize {
        self.movable.len() + self.partial
    }

    /// Whether what the core runs gives way to a task that has become ready.
    #[inline(always)]
    pub fn gives_way_to(&mut self, woken: Words, now: u64) -> GivesWay {
        let Some(worker) = self.worker else { return GivesWay::No };
        // It looks again before it sleeps.
        let Some(running) = self.running.map(Words) else { return GivesWay::Now(worker) };
        let (priority, other) = (running.priority(), woken.priority());
        if other > priority {
            return GivesWay::Now(worker);
        }
        let slice = if other < priority {
            return GivesWay::No;
        } else if priority == 0 {
            self.charge(now);
            if self.with_ends {
                return self.gives_way_beside_ends(worker, running, woken);
            }
            if running.virtual_time().saturating_sub(woken.virtual_time()) > WAKE_UP_GRANULARITY {
                return GivesWay::Now(worker);
            }
            FAIR_SLICE
        } else if running.class() == Class::RoundRobin {
            ROUND_ROBIN_SLICE
        } else {
            return GivesWay::No;
        };
        // It was told already: those who wait do not wait longer because more come.
        if self.slice != Slice::Unknown {
            return GivesWay::No;
        }
        self.slice = Slice::Long;
        GivesWay::After(slice)
    }
}

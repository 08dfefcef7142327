//! On which core a task waits, on a machine with several: where a ready task enters, what idle cores take from others, and how busy ones even out.

use frame::core_set::CoreSet;
use tasks::{Ready, Why, Worker};

use super::atomic::{Ordering, fence};
use super::cores::{Core, CoreCall, Load};
use super::real_time::End;
use super::run_queue::{GivesWay, RunQueue, Turn};
use super::task::Words;
use super::{Scheduler, all_cores};

/// For how long cores whose loads differ by one task keep what they have before one moves, in nanoseconds: so that of three tasks on two cores each has
/// the same share of a second.
const EVEN_OUT_INTERVAL: u64 = 12_000_000;
/// For how long a task keeps others from its core while another core idles, in nanoseconds.
const BESIDE_AN_IDLE_CORE: u64 = 500_000;
/// How many fair tasks a core sends elsewhere when it begins to run a real-time task.
const SENT_AWAY: usize = 4;

/// Where it may run.
fn allowed(words: Words) -> CoreSet {
    let cores = words.cores();
    if cores.is_empty() { all_cores() } else { cores }
}

/// What a core does when a fair task that it ran has had its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Balance {
    Stay,
    /// The task goes to this core.
    Send(usize),
    /// A task comes from this core.
    Fetch(usize),
}

impl Scheduler {
    /// The cores that there are.
    pub(super) fn present(&self) -> impl Iterator<Item = &Core> {
        self.cores.all()
    }

    /// The loads of some cores.
    fn loads(&self, among: CoreSet) -> impl Iterator<Item = (usize, Load)> {
        self.present().enumerate().filter(move |(core, _)| among.contains(*core)).map(|(core, of)| (core, of.load()))
    }

    /// The one of some cores that has the least urgent things to do; some core if there is none of them.
    fn least_urgent(&self, among: CoreSet) -> usize {
        self.loads(among).min_by_key(|(_, load)| (load.priority, load.tasks)).map_or(0, |(core, _)| core)
    }

    /// Enters a ready task somewhere.
    #[inline(never)]
    pub(super) fn enter_somewhere(&self, ready: Ready, why: Why) {
        let words = Words(ready.sched());
        if why != Why::New {
            words.count_switch(why == Why::Yielded);
        }
        self.place(ready, why);
    }

    /// As `enter_somewhere`, for a task that is ready already.
    pub(super) fn place(&self, ready: Ready, why: Why) {
        if Words(ready.sched()).is_real_time() { self.place_real_time(ready, why) } else { self.place_fair(ready, why) }
    }

    fn place_fair(&self, ready: Ready, why: Why) {
        let words = Words(ready.sched());
        let now = frame::time::now();
        if let Some(worker) = ready.worker() {
            return self.enter(ready, why, worker.number(), false, now);
        }
        let (allowed, last) = (allowed(words), words.core());
        if why == Why::Yielded && allowed.contains(last) {
            let to = match self.balance(words, allowed, now) {
                Balance::Stay => last,
                Balance::Send(to) => {
                    self.evened_out(last, to, words, now);
                    to
                }
                Balance::Fetch(from) => {
                    self.take_from(from, last);
                    last
                }
            };
            return self.enter(ready, why, to, false, now);
        }
        if why != Why::New && allowed.contains(last) && self.idle.remove(last) {
            return self.enter(ready, why, last, true, now);
        }
        if let Some(idle) = self.idle.take(allowed) {
            return self.enter(ready, why, idle, true, now);
        }
        let to = if why == Why::Woken && allowed.contains(last) { last } else { self.least_urgent(allowed) };
        self.enter(ready, why, to, false, now);
    }

    /// Enters a fair task on a core. `is_taken`: the core idled, and the caller has taken it.
    fn enter(&self, ready: Ready, why: Why, to: usize, is_taken: bool, now: u64) {
        let words = Words(ready.sched());
        let from = words.core();
        let floor = self.cores[from].floor();
        // Before the lock is taken: see `set_cores`.
        words.set_core(to);
        // Who gives way leaves a core that looks for another task anyway.
        let looks = why == Why::Yielded && from == to;
        let may_be_taken = ready.worker().is_none();
        let entered = self.cores[to].with(|queue| {
            if may_be_taken && !words.may_run_on(to) {
                return Err(ready);
            }
            if looks {
                // It has its turn by what it has run until now.
                queue.push_running(ready, now);
                return Ok((CoreCall::None, false));
            }
            let least =
                if queue.is_plain(words) { queue.least(why, now) } else { queue.least_in_group(words, why, now) };
            if from != to && why != Why::New {
                words.set_virtual_time(queue.translate(words.virtual_time(), floor));
            }
            words.raise_virtual_time(least);
            queue.push_fair(ready);
            Ok((self.make_way(queue, to, words, now), queue.running.is_none()))
        });
        let (call, runs_nothing) = match entered {
            Ok(entered) => entered,
            Err(ready) => {
                // The core that was taken finds nothing, and idles again.
                if is_taken {
                    CoreCall::To(to).make(&self.cores);
                }
                return self.place(ready, Why::Woken);
            }
        };
        match call {
            CoreCall::None if is_taken => CoreCall::To(to).make(&self.cores),
            call => call.make(&self.cores),
        }
        // What waits here now, another core could run that has begun to idle meanwhile.
        if may_be_taken
            && !(is_taken && runs_nothing)
            && let Some(idle) = self.idle.take_after_entering(allowed(words))
        {
            CoreCall::To(idle).make(&self.cores);
        }
    }

    /// A task has been entered on a core, whose queue is locked: how that learns of it.
    fn make_way(&self, queue: &mut RunQueue, core: usize, woken: Words, now: u64) -> CoreCall {
        if queue.running.is_none() {
            // Who idles is called; who was called before, or is looking, finds the task.
            return if self.idle.remove(core) { CoreCall::To(core) } else { CoreCall::None };
        }
        match queue.gives_way_to(woken, now) {
            GivesWay::No => CoreCall::None,
            GivesWay::Now(worker) => {
                worker.request_yield();
                CoreCall::To(core)
            }
            // It goes to the core that idles then, and what is woken here has to stay.
            GivesWay::After(slice) if self.idle.is_any() => {
                CoreCall::SliceEnds(core, now + slice.min(BESIDE_AN_IDLE_CORE))
            }
            GivesWay::After(slice) => CoreCall::SliceEnds(core, now + slice),
        }
    }

    fn place_real_time(&self, ready: Ready, why: Why) {
        let words = Words(ready.sched());
        let now = frame::time::now();
        let (priority, is_first) = (words.priority(), why == Why::Yielded && words.is_first_again());
        let turn = Turn::of_real_time(priority, if is_first { -(now as i64) } else { now as i64 });
        let core = match ready.worker() {
            Some(worker) => worker.number(),
            None if !words.cores().is_empty() => {
                let idle = self.idle.take(words.cores());
                let core = idle.unwrap_or_else(|| self.least_urgent(words.cores()));
                let call = self.bind(ready, turn, core, why, now);
                return if idle.is_some() { CoreCall::To(core).make(&self.cores) } else { call.make(&self.cores) };
            }
            None => {
                self.real_time.push(ready, turn, if is_first { End::Front } else { End::Back });
                // Who gives way leaves a core that looks for another task anyway.
                if why != Why::Yielded {
                    self.call_for_real_time(priority);
                }
                return;
            }
        };
        self.bind(ready, turn, core, why, now).make(&self.cores);
    }

    /// Enters a real-time task on a core.
    fn bind(&self, ready: Ready, turn: Turn, core: usize, why: Why, now: u64) -> CoreCall {
        let words = Words(ready.sched());
        let looks = why == Why::Yielded && words.core() == core;
        words.set_core(core);
        let entered = self.cores[core].with(|queue| {
            if ready.worker().is_none() && !words.may_run_on(core) {
                return Err(ready);
            }
            queue.bind(ready, turn);
            Ok(if looks { CoreCall::None } else { self.make_way(queue, core, words, now) })
        });
        entered.unwrap_or_else(|ready| {
            self.place(ready, Why::Woken);
            CoreCall::None
        })
    }

    /// A real-time task of this priority waits for whichever core: calls one that idles, or has the one with the least urgent task give way.
    pub(super) fn call_for_real_time(&self, priority: u8) {
        if let Some(idle) = self.idle.take_after_entering(all_cores()) {
            return CoreCall::To(idle).make(&self.cores);
        }
        loop {
            let core = self.least_urgent(all_cores());
            if self.cores[core].load().priority >= priority {
                return;
            }
            let is_called = self.cores[core].look(|queue| match (queue.running.map(Words), queue.worker) {
                // It has begun to run something more urgent meanwhile.
                (Some(running), _) if running.priority() >= priority => None,
                (Some(_), Some(worker)) => {
                    worker.request_yield();
                    Some(true)
                }
                // It looks just now, and finds the task.
                _ => Some(false),
            });
            match is_called {
                None => {}
                Some(false) => return,
                Some(true) => return CoreCall::To(core).make(&self.cores),
            }
        }
    }

    /// The task that a core is to run next.
    #[inline(never)]
    pub(super) fn choose_somewhere(&self, worker: &'static Worker) -> Option<Ready> {
        let number = worker.number();
        let core = self.cores.of(number)?;
        let mut before = core.load().priority;
        loop {
            let now = frame::time::now();
            super::clock::note_time_now_and_then(now);
            let found = core.with(|queue| {
                queue.leave(now, worker);
                if core::mem::take(&mut queue.says_idle) {
                    self.idle.remove(number);
                }
                let Some(ready) = queue.pop(&self.real_time) else {
                    queue.says_idle = true;
                    self.idle.add(number);
                    return None;
                };
                let words = Words(ready.sched());
                if !words.may_run_on(number) && ready.worker().is_none() {
                    words.discount();
                    return Some((Err(ready), 0));
                }
                if words.core() != number {
                    words.set_core(number);
                    // Who has something to tell it finds it here, or it finds that out before it goes on in user mode.
                    fence(Ordering::SeqCst);
                }
                let slice = queue.begin(&ready, now, &self.real_time);
                Some((Ok((ready, slice)), queue.movable_len()))
            });
            let Some((found, movable)) = found else {
                before = 0;
                if self.find_work(number) {
                    continue;
                }
                frame::mm::work_for(&frame::mm::NOBODY);
                crate::time::core_idles(number);
                return None;
            };
            let (ready, slice) = match found {
                Ok(found) => found,
                Err(misplaced) => {
                    // It was told so since it was entered.
                    self.place(misplaced, Why::Woken);
                    continue;
                }
            };
            if let Some(slice) = slice {
                crate::time::end_slice_at(number, now + slice);
            }
            crate::time::keep_seconds(number);
            let priority = Words(ready.sched()).priority();
            self.look_after(number, worker, priority, before, movable);
            return Some(ready);
        }
    }

    /// A core has begun to run a task of this priority, after one of priority `before`, and so many tasks are left that others could run.
    #[inline]
    fn look_after(&self, core: usize, worker: &Worker, priority: u8, before: u8, movable: usize) {
        if before > priority {
            // Who has entered a real-time task since then has seen a core that ran something more urgent.
            fence(Ordering::SeqCst);
            if self.real_time.highest() > priority {
                worker.request_yield();
            }
        }
        if movable != 0
            && let Some(idle) = self.idle.take(all_cores().without(core))
        {
            CoreCall::To(idle).make(&self.cores);
        }
        let waiting = self.real_time.highest();
        if waiting != 0 {
            self.call_for_real_time(waiting);
        }
        if priority != 0 && movable != 0 {
            self.send_away(core);
        }
    }

    /// Fair tasks do not wait where a real-time task runs, which may run for ever, if another core may run them.
    #[cold]
    fn send_away(&self, core: usize) {
        for _ in 0..SENT_AWAY {
            let now = frame::time::now();
            if self.loads(all_cores().without(core)).all(|(_, load)| load.priority != 0) {
                return;
            }
            let Some(ready) = self.cores[core].with(RunQueue::give_up_movable) else { return };
            self.enter(ready, Why::Yielded, self.least_urgent(all_cores().without(core)), false, now);
        }
    }

    /// A core that has said that it idles looks for the last time what it could run: true if there is something.
    fn find_work(&self, core: usize) -> bool {
        if self.real_time.highest() != 0 {
            return true;
        }
        let longest = self
            .loads(all_cores().without(core))
            .filter(|(_, load)| load.movable != 0)
            .max_by_key(|(_, load)| load.movable);
        let Some((longest, _)) = longest else { return false };
        if self.take_from(longest, core) {
            return true;
        }
        let mut others =
            self.loads(all_cores().without(core)).filter(|(other, load)| *other != longest && load.movable != 0);
        others.any(|(other, _)| self.take_from(other, core))
    }

    /// Moves a task from one core's queue to another's, which is the calling core's; whether there was one.
    fn take_from(&self, from: usize, to: usize) -> bool {
        let taken = self.cores[from].with(|queue| queue.give_up(to).map(|ready| (ready, queue.floor())));
        let Some((ready, floor)) = taken else { return false };
        let words = Words(ready.sched());
        words.set_core(to);
        self.cores[to].with(|queue| {
            if words.is_real_time() {
                queue.bind(ready, Turn::of_real_time(words.priority(), frame::time::now() as i64));
            } else {
                words.set_virtual_time(queue.translate(words.virtual_time(), floor));
                queue.push_fair(ready);
            }
        });
        true
    }

    /// What is to become of a fair task that has had its turn on its core, so that all get their share.
    fn balance(&self, words: Words, allowed: CoreSet, now: u64) -> Balance {
        let here = words.core();
        let own = self.cores[here].load();
        // It counts as running still.
        if now < self.cores[here].balanced_until.load(Ordering::Relaxed) {
            return Balance::Stay;
        }
        let others = || self.loads(all_cores().without(here));
        if let Some((from, _)) = others()
            .filter(|(_, load)| load.movable != 0 && (load.priority != 0 || load.tasks > own.tasks + 1))
            .max_by_key(|(_, load)| load.movable)
        {
            return Balance::Fetch(from);
        }
        if own.tasks < 2 {
            return Balance::Stay;
        }
        // Of those with equally little to do the next one: so everyone's turn comes.
        let count = frame::cpu::count();
        let least = others()
            .filter(|(core, load)| allowed.contains(*core) && load.priority == 0)
            .min_by_key(|(core, load)| (load.tasks, (core + count - here) % count));
        let Some((to, load)) = least else { return Balance::Stay };
        if load.tasks + 1 < own.tasks {
            return Balance::Send(to);
        }
        let until = self.cores[here].balanced_until.load(Ordering::Relaxed);
        let is_newcomer = self.cores[here].newcomer.get().is_some_and(|newcomer| core::ptr::eq(newcomer, words.0));
        let stays = is_newcomer && now < until + EVEN_OUT_INTERVAL
            || now < self.cores[to].balanced_until.load(Ordering::Relaxed);
        if load.tasks < own.tasks && !stays { Balance::Send(to) } else { Balance::Stay }
    }

    /// A task moves from one core to another, to even out what each gets.
    fn evened_out(&self, from: usize, to: usize, words: Words<'static>, now: u64) {
        self.cores[from].balanced_until.store(now + EVEN_OUT_INTERVAL, Ordering::Relaxed);
        // Other cores with as much to do send to the first one before this one does.
        self.cores[to].balanced_until.store(now + 2 * EVEN_OUT_INTERVAL, Ordering::Relaxed);
        self.cores[to].newcomer.set(Some(words.0));
    }

    /// Changes where a task may run. If it waits, it waits from now on where it may.
    pub(super) fn set_cores(&self, words: Words<'static>, cores: CoreSet) {
        words.set_cores(if cores.and(all_cores()) == all_cores() { CoreSet::EMPTY } else { cores });
        if frame::cpu::count() == 1 {
            return;
        }
        // Who enters it just now has said where, and sees the mask once it has that queue's lock; or it is there.
        fence(Ordering::SeqCst);
        let mut core = words.core();
        loop {
            let Some(of) = self.cores.of(core) else { return };
            if let Some(ready) = of.with(|queue| queue.take_out(words.0)) {
                return self.place(ready, Why::Woken);
            }
            fence(Ordering::SeqCst);
            let now = words.core();
            if now == core {
                return;
            }
            core = now;
        }
    }
}

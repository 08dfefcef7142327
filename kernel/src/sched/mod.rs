//! Which task runs next.
//!
//! Real-time tasks (sched(7): SCHED_FIFO, SCHED_RR) go before all others, by priority, first come first served. Fair tasks
//! share what is left in proportion to their weights, which follow from their nice values: each has a *virtual run time*, its time on the
//! processor divided by its weight, and the one with the least runs next.
//!
//! Tasks of control groups share the processor with others as one, by the weights of those ([`group`]), and no longer than these may ([`bandwidth`]).
//!
//! Data: what the scheduler knows of a task is in the task's own [`SchedWords`] ([`task`]). Each core has a [`RunQueue`](run_queue::RunQueue) with a lock of its
//! own: what it runs, since when, and the [`Ready`] tasks that wait for it. Real-time tasks that any core may run wait in one queue for all ([`real_time`]),
//! so that the most urgent ones run on all cores. A time slice is set only where somebody else waits: a lone task is never interrupted.
//!
//! Several cores ([`place`]): a task that is woken goes to the core that ran it last if that idles, else to one that idles and that it may run on, else to
//! the queue of the last one. A core that has nothing left takes from the longest queue before it sleeps, and cores with different loads even out
//! at the end of slices. What a task does in the middle of a call lies on a stack of its core, which alone goes on with it.
//!
//! Invariants: a task is in a queue exactly as long as the scheduler has its `Ready`. None waits while a core sleeps that may run it
//! ([`cores::IdleCores`]). The N most urgent real-time tasks run on the N cores: whoever enters one, and whoever leaves one waiting, has the core
//! with the least urgent task look. A queue's lock is held while that of the real-time queue is taken; no two queues are locked at once.

mod account;
mod atomic;
mod bandwidth;
mod cores;
mod group;
#[cfg(all(test, ebb_shuttle))]
mod interleavings;
pub mod load_average;
mod place;
mod real_time;
mod run_queue;
mod task;
#[cfg(all(test, not(ebb_shuttle)))]
mod tests;

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

use frame::Cx;
use frame::core_set::CoreSet;
use frame::cpu::PerCore;
use refs::Waker;
use tasks::{Policy, Ready, SchedWords, TaskRef, Why, Worker};

use crate::error::{Errno, Result};
use crate::time::clock;

pub use account::Account;
pub use bandwidth::{Quota, Throttling, UNLIMITED};
use cores::{Core, IdleCores};
pub use group::{Owned as Group, SHARES};
use real_time::{End, RealTime};
use run_queue::{GivesWay, RunQueue, Turn};
use task::Words;
pub use task::{ABOVE_ALL, Class, MAX_PRIORITY, Parameters};

/// How long a fair task may run while others are ready, in nanoseconds.
pub const FAIR_SLICE: u64 = 4_000_000;
/// How long a fair task may run while others are ready and [ends](work_at_ends) are worked at, in nanoseconds.
const ENDS_SLICE: u64 = 25_000;
/// How long a SCHED_RR task may run while others of its priority are ready: see sched_rr_get_interval(2).
pub const ROUND_ROBIN_SLICE: u64 = 100_000_000;
/// By how much (in weighted nanoseconds) a woken task must be behind the running one to make it give way.
const WAKE_UP_GRANULARITY: u64 = 1_000_000;
/// How far a woken task may be behind the others: sleeping earns no more than this.
const SLEEPER_CREDIT: u64 = 3_000_000;

/// For how many reasons a thread that was preempted has to look before it goes on in user mode: groups that have used up their quotas among others.
static REASONS_TO_LOOK: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread that was preempted has to look before it goes on in user mode.
#[inline(always)]
pub fn must_look() -> bool {
    REASONS_TO_LOOK.load(Ordering::Relaxed) > 0
}

/// There is one more reason for that.
pub fn add_reason_to_look() {
    REASONS_TO_LOOK.fetch_add(1, Ordering::Relaxed);
}

/// There is one fewer.
pub fn remove_reason_to_look() {
    REASONS_TO_LOOK.fetch_sub(1, Ordering::Relaxed);
}

/// The scheduler of all cores.
pub static SCHEDULER: Scheduler = Scheduler::new();

/// Fair and real-time classes.
pub struct Scheduler {
    cores: PerCore<Core>,
    real_time: RealTime,
    idle: IdleCores,
}

/// Makes the run queues of so many cores. At boot, before other cores run tasks.
pub fn start(cores: usize) {
    SCHEDULER.prepare(cores);
}

/// For so many ready tasks there is room on every core.
static ROOM: AtomicUsize = AtomicUsize::new(0);

/// Makes room for `count` threads in the system: all of them can be woken, by the end of their program among others, when no memory is
/// left.
///
/// # Errors
/// ENOMEM.
#[inline]
pub fn reserve(count: usize) -> Result<()> {
    if count <= ROOM.load(Ordering::Relaxed) { Ok(()) } else { make_room(count) }
}

#[cold]
fn make_room(count: usize) -> Result<()> {
    // The kernel's own tasks come on top.
    const KERNEL_TASKS: usize = 16;
    let count = count.checked_next_power_of_two().ok_or(Errno::ENOMEM)?.max(64);
    let is_alone = frame::cpu::count() == 1;
    if SCHEDULER.present().all(|core| core.look(|queue| queue.reserve(count + KERNEL_TASKS, is_alone))) {
        ROOM.fetch_max(count, Ordering::Relaxed);
        Ok(())
    } else {
        Err(Errno::ENOMEM)
    }
}

impl Scheduler {
    const fn new() -> Self {
        Scheduler { cores: PerCore::new(Core::new()), real_time: RealTime::new(), idle: IdleCores::new() }
    }

    /// Makes what so many cores have of their own for being scheduled.
    fn prepare(&self, cores: usize) {
        self.cores.make(cores, Core::new);
        crate::time::start(cores);
    }

    /// The time slice of what `core` runs is over.
    fn slice_ended(&self, core: usize) {
        let Some(of) = self.cores.of(core) else { return };
        of.look(|queue| {
            if !queue.counted().is_nothing() {
                // Its group may have a quota, of which this was a piece.
                queue.charge(frame::time::now());
                queue.worker.map(Worker::request_yield);
            } else if queue.len() == 0 && self.real_time.highest() == 0 {
                queue.has_no_slice();
            } else if let (Some(_), Some(worker)) = (queue.running, queue.worker) {
                worker.request_yield();
            }
        });
    }

    /// Charges what runs just now for its time until now, as far as it is charged to this account.
    fn charge_tasks_of(&self, account: &task::AccountWords) {
        let now = frame::time::now();
        for core in self.present() {
            core.look(|queue| {
                let running = queue.running.and_then(|running| Words(running).account());
                if running.is_some_and(|running| ptr::eq(running, account)) {
                    queue.charge_time(now);
                }
            });
        }
    }

    /// Runs `f` with the number of the core that runs the task; `None` if none does.
    fn where_it_runs<R: Send>(
        &self,
        words: &SchedWords,
        f: impl Fn(usize, &mut run_queue::RunQueue) -> R + Send + Sync,
    ) -> Option<R> {
        loop {
            // What the caller has written before, a core sees that begins to run the task after this.
            fence(Ordering::SeqCst);
            let number = Words(words).core();
            let runs = |running: &SchedWords| ptr::eq(running, words);
            let found = self.cores.of(number)?.look(|queue| queue.running.is_some_and(runs).then(|| f(number, queue)));
            if found.is_some() || Words(words).core() == number {
                return found;
            }
        }
    }
}

impl Policy for Scheduler {
    fn enqueue(&self, ready: Ready, why: Why) {
        if frame::cpu::count() == 1 {
            self.enter_alone(ready, why);
        } else {
            self.enter_somewhere(ready, why);
        }
    }

    fn next(&self, worker: &'static Worker) -> Option<Ready> {
        if frame::cpu::count() == 1 { self.choose_alone(worker) } else { self.choose_somewhere(worker) }
    }
}

// What a machine with one core runs, which pays nothing for others.
impl Scheduler {
    #[inline(always)]
    fn enter_alone(&self, ready: Ready, why: Why) {
        let words = Words(ready.sched());
        if why != Why::New {
            words.count_switch(why == Why::Yielded);
        }
        if why == Why::Yielded {
            let now = frame::time::now();
            // Who gives way leaves a core that looks for another task anyway.
            return self.cores[0].look(|queue| {
                if queue.is_plain(words) {
                    queue.give_way(ready, now);
                } else {
                    self.enter_special_alone(queue, ready, why, now);
                }
            });
        }
        if words.is_fair_end() {
            return self.enter_end_alone(ready, why);
        }
        // One look at the clock is enough for all that one more ready task changes.
        let now = frame::time::now();
        let gives_way = self.cores[0].look(|queue| {
            if !queue.is_plain(words) {
                return self.enter_special_alone(queue, ready, why, now);
            }
            words.raise_virtual_time(queue.least(why, now));
            queue.push_one_more(ready);
            queue.gives_way_to(words, now)
        });
        give_way(gives_way, now);
    }

    /// Enters a fair task that works at ends, and was not running.
    #[inline(never)]
    fn enter_end_alone(&self, ready: Ready, why: Why) {
        let (gives_way, now) = self.cores[0].look(|queue| {
            if queue.has_ends() {
                // What runs was told when the first of them came.
                queue.push_end(ready);
                return (GivesWay::No, 0);
            }
            let now = frame::time::now();
            (self.enter_special_alone(queue, ready, why, now), now)
        });
        give_way(gives_way, now);
    }

    /// Enters what is not plain: a task that shares the core with others by the weights of groups, mostly. Nothing gives way to one that has yielded.
    #[inline(never)]
    fn enter_special_alone(&self, queue: &mut RunQueue, ready: Ready, why: Why, now: u64) -> GivesWay {
        let words = Words(ready.sched());
        if words.is_real_time() {
            self.enter_real_time_alone(queue, ready, why, now)
        } else if words.works_at_ends() {
            enter_first_end_alone(queue, ready, why, now)
        } else if why == Why::Yielded {
            queue.give_way_in_group(ready, now);
            GivesWay::No
        } else {
            words.raise_virtual_time(queue.least_in_group(words, why, now));
            queue.push_movable_in_group(ready);
            queue.gives_way_to(words, now)
        }
    }

    #[inline(never)]
    fn enter_real_time_alone(&self, queue: &mut RunQueue, ready: Ready, why: Why, now: u64) -> GivesWay {
        let words = Words(ready.sched());
        let turn = Turn::of_real_time(words.priority(), 0);
        let end = if why == Why::Yielded && words.is_first_again() { End::Front } else { End::Back };
        self.real_time.push(ready, turn, end);
        if why == Why::Yielded { GivesWay::No } else { queue.gives_way_to(words, now) }
    }

    #[inline(always)]
    fn choose_alone(&self, worker: &'static Worker) -> Option<Ready> {
        let found = self.cores[0].look(|queue| {
            let now = match queue.gave_way_at() {
                Some(at) => at,
                None => {
                    let now = frame::time::now();
                    queue.end_running(now);
                    now
                }
            };
            clock::note_time(now);
            if queue.with_ends() || self.real_time.highest() != 0 {
                return self.choose_among_all_alone(queue, worker, now);
            }
            queue.look_for_another(worker);
            let ready = queue.pop_movable()?;
            let slice = queue.begin_without_ends(&ready, now, &self.real_time);
            Some((ready, slice.map(|slice| now + slice)))
        });
        let Some((ready, slice_ends)) = found else {
            frame::mm::work_for(&frame::mm::NOBODY);
            crate::time::core_idles(0);
            return None;
        };
        if let Some(at) = slice_ends {
            crate::time::end_slice_at(0, at);
        }
        crate::time::keep_seconds(0);
        Some(ready)
    }
}

impl Scheduler {
    /// The task to run next and when its slice ends, where real-time tasks wait or there are ends.
    #[inline(never)]
    fn choose_among_all_alone(
        &self,
        queue: &mut RunQueue,
        worker: &'static Worker,
        now: u64,
    ) -> Option<(Ready, Option<u64>)> {
        let next_end = if self.real_time.highest() == 0 { queue.next_end(worker) } else { None };
        let (ready, slice) = match next_end {
            Some(ready) => {
                let slice = queue.begin_next_end(&ready, now, &self.real_time);
                (ready, slice)
            }
            None => {
                queue.leave_end();
                queue.look_for_another(worker);
                let ready = self.real_time.pop_before(None).or_else(|| queue.pop_beside_ends())?;
                let slice = queue.begin(&ready, now, &self.real_time);
                (ready, slice)
            }
        };
        Some((ready, slice.map(|slice| now + slice)))
    }
}

/// On a machine with one core: enters a fair task that works at ends, which was running, or the first one that waits.
#[inline(never)]
fn enter_first_end_alone(queue: &mut RunQueue, ready: Ready, why: Why, now: u64) -> GivesWay {
    let words = Words(ready.sched());
    if why == Why::Yielded {
        queue.give_way_to_ends(ready, now);
    } else {
        queue.least(why, now);
        queue.push_end(ready);
        return queue.gives_way_to(words, now);
    }
    GivesWay::No
}

/// On a machine with one core: has its task give way, now or when its slice ends.
#[inline(always)]
fn give_way(how: GivesWay, now: u64) {
    match how {
        GivesWay::No => {}
        GivesWay::Now(worker) => worker.request_yield(),
        GivesWay::After(slice) => crate::time::end_slice_at(0, now + slice),
    }
}

/// The time slice of what `core` runs is over: called by the timer's interrupt.
pub fn slice_ended(core: usize) {
    SCHEDULER.slice_ended(core);
}

/// Whether `core` runs a task now.
pub fn is_busy(core: usize) -> bool {
    SCHEDULER.cores.of(core).is_some_and(|core| core.look(|queue| queue.running.is_some()))
}

/// Another core has interrupted this one, `core`.
pub fn was_called(core: usize) {
    crate::time::slice_end_was_noted(core);
    if let Some(core) = SCHEDULER.cores.of(core) {
        core.looks.fetch_add(1, Ordering::Release);
        // One that frees what was destroyed before it sleeps has let this interrupt in, and looks again first.
        core.look(|queue| queue.running.is_none().then(|| queue.worker.map(Worker::request_yield)));
    }
}

/// A core was called. It says nothing of whether it has come.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    core: usize,
    looks: u64,
}

impl Called {
    /// Waits until the core has come out of user code.
    pub fn wait_async(self, cx: &mut Cx) {
        while SCHEDULER.cores[self.core].looks.load(Ordering::Acquire) == self.looks {
            tasks::pause_async(cx);
        }
    }
}

/// Has a task that runs user code come back into the kernel (for its signals). The core that was called, if it is not the calling one; none if the task does not
/// run.
pub fn leave_user_code(task: TaskRef) -> Option<Called> {
    let called = SCHEDULER.where_it_runs(task.sched()?, |core, queue| {
        queue.worker?.request_yield();
        Some(Called { core, looks: SCHEDULER.cores[core].looks.load(Ordering::Acquire) })
    })??;
    frame::cpu::interrupt(called.core).then_some(called)
}

/// Lets all others that are ready go first (sched_yield(2)): true if there is one, and the caller is to give way.
pub fn step_back(task: TaskRef, cx: &Cx) -> bool {
    let core = frame::cpu::current(cx);
    let urgent_wait = SCHEDULER.real_time.highest() != 0;
    let others_wait = SCHEDULER.cores[core].look(|queue| {
        let others_wait = urgent_wait || queue.len() != 0;
        if others_wait && let Some(words) = task.sched() {
            queue.step_back(Words(words));
        }
        others_wait
    });
    if others_wait {
        tasks::request_yield(cx);
    }
    others_wait
}

/// The calling task has its next turn when others have had this many slices: for what is not to cost those anything who give way again and again without having run (sched_yield(2)), as a
/// task of little weight does.
pub fn let_pass(slices: u64, cx: &Cx) {
    if let Some(words) = tasks::current(cx).sched() {
        Words(words).add_virtual_time(slices * FAIR_SLICE);
    }
}

/// How long a task has run, in nanoseconds, until now.
pub fn cpu_time(task: TaskRef) -> u64 {
    let Some(words) = task.sched() else { return 0 };
    let now = frame::time::now();
    SCHEDULER.where_it_runs(words, |_, queue| queue.charge_time(now));
    Words(words).cpu_time()
}

/// What a core, or all of them together, did until now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// For how long it ran tasks, in nanoseconds.
    pub ran: u64,
    /// For how much of that these were in the kernel, as far as it was sampled; no longer than `ran`.
    pub system: u64,
    /// How often it began to run a task.
    pub switches: u64,
}

/// What each core did until now, in their order.
pub fn done_by_cores() -> impl Iterator<Item = Done> {
    SCHEDULER.present().map(|core| {
        let (ran, switches) = core.look(|queue| {
            queue.charge_time(frame::time::now());
            (queue.busy, queue.begun)
        });
        Done { ran, system: core.system_time.load(Ordering::Relaxed).min(ran), switches }
    })
}

/// A sample says that a task has spent so many nanoseconds in the kernel.
pub fn add_system_time(nanoseconds: u64, cx: &Cx) {
    let own = &SCHEDULER.cores[frame::cpu::current(cx)].system_time;
    own.store(own.load(Ordering::Relaxed) + nanoseconds, Ordering::Relaxed);
}

/// How long the calling task has run, in nanoseconds, until now.
pub fn own_cpu_time(cx: &Cx) -> u64 {
    let now = frame::time::now();
    clock::note_time_now_and_then(now);
    SCHEDULER.cores[frame::cpu::current(cx)].look(|queue| {
        queue.charge_time(now);
        queue.running.map_or(0, |running| Words(running).cpu_time())
    })
}

/// How often a task has left the processor by waiting, and how often because others had their turn.
pub fn switches(task: TaskRef) -> (u32, u32) {
    task.sched().map_or((0, 0), |words| Words(words).switches())
}

/// What a task was told to be, or what it is from birth.
pub fn parameters(task: TaskRef) -> Parameters {
    task.sched().map_or(Parameters::default(), |words| Words(words).parameters())
}

/// All cores.
#[inline]
pub fn all_cores() -> CoreSet {
    CoreSet::below(frame::cpu::count())
}

/// On which cores a task may run.
pub fn cores(task: TaskRef) -> CoreSet {
    task.sched().map(|words| Words(words).cores()).filter(|cores| !cores.is_empty()).unwrap_or_else(all_cores)
}

/// Changes what a task is, but for where it may run. It takes effect when it is next entered in a queue; in a group, which counts it as what it is, at once.
pub fn set_parameters(task: TaskRef, parameters: Parameters, _cx: &Cx) {
    let Some(words) = task.sched() else { return };
    Words(words).set_parameters(parameters);
    if Words(words).group() != 0 {
        SCHEDULER.where_it_runs(words, |_, queue| queue.count_running_anew(words, frame::time::now()));
        enter_anew(task);
    }
}

/// Changes where a task may run. If it waits for its turn, it waits where it may from here on; if it runs where it may not, it has yet to
/// [leave](leave_core).
pub fn set_cores(task: TaskRef, cores: CoreSet, _cx: &Cx) {
    if let Some(words) = task.sched() {
        SCHEDULER.set_cores(Words(words), cores);
    }
}

/// Has the calling task go to a core where it may run, if it may not run here.
pub fn leave_core(cx: &Cx) {
    let core = frame::cpu::current(cx);
    if tasks::current(cx).sched().is_some_and(|words| !Words(words).may_run_on(core)) {
        tasks::request_yield(cx);
    }
}

/// Writes a new task's parameters, and to which account it is charged (the kernel's own tasks to none); for [`tasks::spawn`].
pub fn initialise(words: &SchedWords, parameters: Parameters, account: Option<&Account>) {
    Words(words).set_parameters(parameters);
    Words(words).set_cores(parameters.cores);
    Words(words).set_account(account.and_then(Account::words));
    Words(words).note_group();
}

/// A task's account may have come into a group since that was looked at.
pub fn note_group(words: &SchedWords) {
    Words(words).note_group();
}

/// From now on the calling task is charged to this account.
pub fn charge_to(account: &Account, cx: &Cx) {
    own_cpu_time(cx);
    if let Some(words) = tasks::current(cx).sched().map(Words) {
        words.set_account(account.words());
        frame::mm::work_for(words.payer());
    }
}

/// A task's account has come into another group, or that has another weight: what waits for its turn is entered as what it is now, and what runs gives way.
pub fn enter_anew(task: TaskRef) {
    let Some(words) = task.sched() else { return };
    Words(words).note_group();
    if task.is_parked() {
        return;
    }
    loop {
        // Who enters it just now has said where, and sees the group once it has that queue's lock; or it is there.
        fence(Ordering::SeqCst);
        let number = Words(words).core();
        let Some(core) = SCHEDULER.cores.of(number) else { return };
        if core.with(|queue| queue.enter_anew(words)) {
            return;
        }
        fence(Ordering::SeqCst);
        if Words(words).core() == number {
            break;
        }
    }
    leave_user_code(task);
}

/// A group has another quota: what runs in it just now is given a piece of that.
fn look_again_at(group: u32) {
    for (number, core) in SCHEDULER.present().enumerate() {
        let gives_way = core.look(|queue| {
            queue.end_seclusion();
            let is_in = group::is_within(queue.counted(), group);
            is_in.then(|| queue.worker.map(Worker::request_yield)).is_some()
        });
        if gives_way {
            frame::cpu::interrupt(number);
        }
    }
}

/// Until when the calling task has to wait before it goes on in user mode, because a group of its account has used up its quota; `None`: it does not. `waker` is woken if that changes before.
pub fn waits_until(account: &Account, waker: Option<Waker>, cx: &Cx) -> Option<u64> {
    let is_real_time = tasks::current(cx).sched().is_some_and(|words| Words(words).is_real_time());
    if is_real_time { None } else { group::waits_until(account.group(), waker, cx) }
}

/// The calling task leaves its process: what it runs from now on is charged to no account, and the frames that it takes to nobody.
pub fn leave_account(cx: &Cx) {
    let now = frame::time::now();
    SCHEDULER.cores[frame::cpu::current(cx)].look(|queue| {
        queue.charge_time(now);
        if let Some(words) = queue.running.map(Words) {
            words.set_account(None);
        }
    });
    frame::mm::work_for(&frame::mm::NOBODY);
}

/// From now on a task works at the end of something that others do not wait for: of its own process, or of a group. All such tasks of a core together have the share of one with nice
/// value 0, in turns of [`ENDS_SLICE`]: so the end of very many does not keep others from running. Those of a real-time class keep their priority.
pub fn work_at_ends(task: TaskRef) {
    if let Some(words) = task.sched() {
        Words(words).set_works_at_ends(true);
    }
}

/// Whether the calling task works at ends.
pub fn works_at_ends(cx: &Cx) -> bool {
    tasks::current(cx).sched().is_some_and(|words| Words(words).works_at_ends())
}

/// Others may have their turn in the midst of an end. Who began its turn as a task that others wait for, and then to [work at ends](work_at_ends), has no more of it: it goes on in
/// turns of [`ENDS_SLICE`].
pub fn pause_in_end_async(cx: &mut Cx) {
    let is_fair_end = |words: &SchedWords| Words(words).works_at_ends() && !Words(words).is_real_time();
    let begins = tasks::current(cx).sched().is_some_and(is_fair_end);
    if begins && !SCHEDULER.cores[frame::cpu::current(cx)].look(|queue| queue.runs_end()) {
        tasks::yield_async(cx);
    } else {
        tasks::pause_async(cx);
    }
}

/// Whether what runs on a core is of a task that works at ends: the task itself, or what the core does before it runs another one.
pub fn runs_end(core: usize) -> bool {
    let runs_one = |queue: &mut run_queue::RunQueue| queue.running.is_some_and(|words| Words(words).works_at_ends());
    SCHEDULER.cores.of(core).is_some_and(|core| core.look(runs_one))
}

/// The calling task does not work at ends any more.
pub fn leave_ends(cx: &Cx) {
    if let Some(words) = tasks::current(cx).sched() {
        Words(words).set_works_at_ends(false);
    }
}

/// How many tasks are ready or running.
pub fn load() -> usize {
    let on_cores =
        SCHEDULER.present().map(|core| core.look(|queue| queue.len() + usize::from(queue.running.is_some())));
    SCHEDULER.real_time.len() + on_cores.sum::<usize>()
}

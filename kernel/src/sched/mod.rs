//! Which task runs next.
//!
//! Real-time tasks (sched(7): SCHED_FIFO, SCHED_RR) go before all others, by priority, first come first served. Fair tasks
//! share what is left in proportion to their weights, which follow from their nice values: each has a *virtual run time*, its time on the
//! processor divided by its weight, and the one with the least runs next.
//!
//! Data: what the scheduler knows of a task is in the task's own [`SchedWords`] ([`task`]); the queues hold [`Ready`] tasks, one set for all cores;
//! each core has the task it runs, and since when. A time slice is set only where somebody else is ready: a lone task is never
//! interrupted.
//!
//! Invariant: a task is in a queue exactly as long as the scheduler has its `Ready` (so nothing needs to be searched or taken out).

mod account;
#[cfg(all(test, ebb_shuttle))]
mod interleavings;
pub mod load_average;
mod run_queue;
mod task;

use core::cmp::Reverse;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use refs::{SpinLock, reclaim::MAX_CORES};
use tasks::{Policy, Ready, SchedWords, TaskRef, Why, Worker};

use crate::error::{Errno, Result};
use crate::time::clock;

pub use account::Account;
use account::{Accounts, NOBODYS};
use run_queue::Queues;
use task::Words;
pub use task::{Class, MAX_PRIORITY, Parameters};

/// How long a fair task may run while others are ready, in nanoseconds.
pub const FAIR_SLICE: u64 = 4_000_000;
/// How long a SCHED_RR task may run while others of its priority are ready: see sched_rr_get_interval(2).
pub const ROUND_ROBIN_SLICE: u64 = 100_000_000;
/// By how much (in weighted nanoseconds) a woken task must be behind the running one to make it give way.
const WAKE_UP_GRANULARITY: u64 = 1_000_000;
/// How far a woken task may be behind the others: sleeping earns no more than this.
const SLEEPER_CREDIT: u64 = 3_000_000;

/// The scheduler of all cores.
pub static SCHEDULER: Scheduler = Scheduler::new();

/// Of the time that tasks have run, how much they spent in the kernel, as far as it was sampled.
static SYSTEM_TIME: AtomicU64 = AtomicU64::new(0);

/// Fair and real-time classes.
pub struct Scheduler {
    state: SpinLock<RunQueues>,
}

struct RunQueues {
    queues: Queues,
    cores: [Core; MAX_CORES],
    /// No queued or running fair task is entitled to less virtual run time than this.
    floor: u64,
    /// How long the tasks of each process have run.
    accounts: Accounts,
}

/// What a core runs.
struct Core {
    running: Option<&'static SchedWords>,
    /// It runs nothing, and was called to look for something.
    is_called: bool,
    since: u64,
    /// How long it has run tasks, in nanoseconds, as far as they were charged.
    busy: u64,
    worker: Option<&'static Worker>,
}

impl Core {
    const fn idle() -> Self {
        Core { running: None, is_called: false, since: 0, busy: 0, worker: None }
    }

    /// Charges the running task, and its process, for the time since it was last charged.
    #[inline(always)]
    fn charge(&mut self, now: u64, accounts: &mut Accounts) {
        if let Some(running) = self.running
            && now > self.since
        {
            let ran = now - self.since;
            Words(running).charge(ran);
            accounts.charge(Words(running).account(), ran);
            self.busy += ran;
            self.since = now;
        }
    }
}

/// Makes room for `count` threads in the system: all of them can be woken, by the end of their program among others, when no memory is
/// left.
///
/// # Errors
/// ENOMEM.
pub fn reserve(count: usize) -> Result<()> {
    // The kernel's own tasks come on top.
    const KERNEL_TASKS: usize = 16;
    if SCHEDULER.state.with(|state| state.queues.reserve_fair(count.saturating_add(KERNEL_TASKS))) {
        Ok(())
    } else {
        Err(Errno::ENOMEM)
    }
}

impl Scheduler {
    const fn new() -> Self {
        let cores = [const { Core::idle() }; MAX_CORES];
        let state = RunQueues { queues: Queues::new(), cores, floor: 0, accounts: Accounts::new() };
        Scheduler { state: SpinLock::new(state) }
    }

    /// The time slice of what `core` runs is over.
    fn slice_ended(&self, core: usize) {
        let worker = self.state.with(|state| {
            let others = core < MAX_CORES && !state.queues.is_empty_for(core);
            state.cores.get(core).filter(|core| others && core.running.is_some()).and_then(|core| core.worker)
        });
        if let Some(worker) = worker {
            worker.request_yield();
        }
    }
}

impl Policy for Scheduler {
    fn enqueue(&self, ready: Ready, why: Why) {
        if frame::cpu::count() == 1 {
            self.enter::<true>(ready, why);
        } else {
            self.enter_somewhere(ready, why);
        }
    }

    fn next(&self, worker: &'static Worker) -> Option<Ready> {
        if frame::cpu::count() == 1 { self.choose::<true>(worker) } else { self.choose_somewhere(worker) }
    }
}

// What is `ALONE` is compiled for a machine with one core, which is to pay nothing for others.
impl Scheduler {
    #[inline(never)]
    fn enter_somewhere(&self, ready: Ready, why: Why) {
        self.enter::<false>(ready, why);
    }

    #[inline(never)]
    fn choose_somewhere(&self, worker: &'static Worker) -> Option<Ready> {
        loop {
            let ready = self.choose::<false>(worker)?;
            if Words(ready.sched()).may_run_on(worker.number()) || ready.worker().is_some() {
                return Some(ready);
            }
            // It was told so since it was entered.
            self.enter_somewhere(ready, Why::Yielded);
        }
    }

    #[inline(always)]
    fn enter<const ALONE: bool>(&self, ready: Ready, why: Why) {
        let words = Words(ready.sched());
        if why != Why::New {
            words.count_switch(why == Why::Yielded);
        }
        let pinned_to = if ALONE { None } else { ready.worker().map(Worker::number) };
        let among = if ALONE { 0 } else { words.cores() };
        // Who gives way leaves a core that looks for another task anyway, unless it may not run there any more.
        let calls = why != Why::Yielded || among != 0;
        let call = self.state.with(|state| {
            // One look at the clock is enough for all that one more ready task changes.
            let now = if calls { frame::time::now() } else { 0 };
            let pinned_to = if among == 0 { pinned_to } else { pinned_to.or_else(|| state.core_among(among)) };
            if words.is_real_time() {
                if why == Why::Yielded && words.is_first_again() {
                    state.queues.push_real_time_front(ready, words.priority(), pinned_to);
                } else {
                    state.queues.push_real_time(ready, words.priority(), pinned_to);
                }
            } else {
                if why != Why::Yielded {
                    state.raise_floor(now);
                }
                let least = match why {
                    Why::Yielded => 0,
                    Why::New => state.floor,
                    Why::Woken => state.floor.saturating_sub(SLEEPER_CREDIT),
                };
                let virtual_time = words.raise_virtual_time(least);
                state.queues.push_fair::<ALONE>(ready, virtual_time, pinned_to);
            }
            match calls {
                true if ALONE => state.make_way(words, now),
                true => state.make_way_somewhere(words, pinned_to, now),
                false => CoreCall::NONE,
            }
        });
        if !ALONE {
            call.make();
        }
    }

    #[inline(always)]
    fn choose<const ALONE: bool>(&self, worker: &'static Worker) -> Option<Ready> {
        let now = frame::time::now();
        clock::note_time(now);
        let (ready, slice) = self.state.with(|state| {
            let core = &mut state.cores[worker.number()];
            core.charge(now, &mut state.accounts);
            core.running = None;
            core.is_called = false;
            core.worker = Some(worker);
            let ready = if ALONE { state.queues.pop_alone() } else { state.queues.pop(worker.number()) }?;
            let words = Words(ready.sched());
            let core = &mut state.cores[worker.number()];
            core.running = Some(ready.sched());
            core.since = now;
            if !words.is_real_time() {
                state.floor = state.floor.max(words.virtual_time());
            }
            Some((ready, state.slice(words, worker.number())))
        })?;
        if let Some(slice) = slice {
            crate::time::end_slice_at(worker.number(), now + slice);
        }
        crate::time::keep_seconds(worker.number());
        Some(ready)
    }
}

/// The cores that there are: there is room for more.
#[inline(always)]
fn present(cores: &mut [Core]) -> &mut [Core] {
    let count = frame::cpu::count().min(cores.len());
    &mut cores[..count]
}

impl RunQueues {
    /// The cores that there are.
    #[inline(always)]
    fn cores_mut(&mut self) -> &mut [Core] {
        present(&mut self.cores)
    }

    /// Which of some cores (bit c: core c) is to run a task: one that idles, or where the fewest wait. `None` if there is none of them.
    #[cold]
    fn core_among(&self, cores: u64) -> Option<usize> {
        let is_busy = |core: usize| self.cores[core].running.is_some() || self.cores[core].is_called;
        let among = (0..frame::cpu::count().min(MAX_CORES)).filter(|core| cores & 1 << core != 0);
        among.min_by_key(|core| (is_busy(*core), self.queues.pinned_len(*core)))
    }

    /// Charges what runs just now for its time until now.
    fn charge_running(&mut self) {
        let now = frame::time::now();
        present(&mut self.cores).iter_mut().for_each(|core| core.charge(now, &mut self.accounts));
    }

    /// A task that runs while nobody else is ready uses up what a sleeper could claim: without this, one that is woken would run alone for as
    /// long as the other did.
    #[inline(always)]
    fn raise_floor(&mut self, now: u64) {
        if self.queues.has_fair() {
            return;
        }
        let mut least = None;
        for core in present(&mut self.cores) {
            core.charge(now, &mut self.accounts);
            if let Some(running) = core.running.map(Words)
                && !running.is_real_time()
            {
                least = Some(least.map_or(running.virtual_time(), |least: u64| least.min(running.virtual_time())));
            }
        }
        self.floor = self.floor.max(least.unwrap_or(0));
    }

    /// How long the task may run on `core` before another has its turn, if there is another.
    #[inline(always)]
    fn slice(&self, words: Words, core: usize) -> Option<u64> {
        match words.class() {
            Class::Fifo => None,
            Class::RoundRobin => self.queues.has_real_time_for(core, words.priority()).then_some(ROUND_ROBIN_SLICE),
            _ => self.queues.has_fair_for(core).then_some(FAIR_SLICE),
        }
    }

    /// A task has become ready, on a machine with one core: what that runs is asked to give way if it ought to.
    #[inline(always)]
    fn make_way(&mut self, woken: Words, now: u64) -> CoreCall {
        let core = &mut self.cores[0];
        match core.gives_way_to(woken, now, &mut self.accounts) {
            GivesWay::No => {}
            GivesWay::Now(worker) => worker.request_yield(),
            GivesWay::After(slice) => crate::time::end_slice_at(0, now + slice),
        }
        CoreCall::NONE
    }

    /// A task has become ready, for one core or for all: the core whose task it ought to replace is asked to give way, or one that idles is called.
    fn make_way_somewhere(&mut self, woken: Words, pinned_to: Option<usize>, now: u64) -> CoreCall {
        let Some((number, core)) = core_for(&mut self.cores, &self.queues, pinned_to) else { return CoreCall::NONE };
        if core.running.is_none() {
            core.is_called = true;
            return CoreCall::to(number);
        }
        match core.gives_way_to(woken, now, &mut self.accounts) {
            GivesWay::No => CoreCall::NONE,
            GivesWay::Now(worker) => {
                worker.request_yield();
                CoreCall::to(number)
            }
            GivesWay::After(slice) => CoreCall { slice_end: now + slice, ..CoreCall::to(number) },
        }
    }
}

/// Whether what a core runs gives way to another task.
enum GivesWay {
    No,
    Now(&'static Worker),
    /// When it has run for so many nanoseconds more.
    After(u64),
}

impl Core {
    #[inline(always)]
    fn gives_way_to(&mut self, woken: Words, now: u64, accounts: &mut Accounts) -> GivesWay {
        let (Some(running), Some(worker)) = (self.running.map(Words), self.worker) else { return GivesWay::No };
        let gives_way = match (woken.is_real_time(), running.is_real_time()) {
            (true, true) => woken.priority() > running.priority(),
            (true, false) => true,
            (false, true) => false,
            (false, false) => {
                self.charge(now, accounts);
                let behind = running.virtual_time().saturating_sub(woken.virtual_time());
                if behind <= WAKE_UP_GRANULARITY {
                    return GivesWay::After(FAIR_SLICE);
                }
                true
            }
        };
        if gives_way { GivesWay::Now(worker) } else { GivesWay::No }
    }
}

/// A core is to look what it has to run, or when the time slice of what it runs ends. It is called with no lock held.
struct CoreCall {
    /// Its number, or that of none.
    core: usize,
    /// When the slice ends; 0 if that is not the reason.
    slice_end: u64,
}

impl CoreCall {
    const NONE: CoreCall = CoreCall { core: usize::MAX, slice_end: 0 };

    #[inline(always)]
    const fn to(core: usize) -> Self {
        CoreCall { core, slice_end: 0 }
    }

    fn make(self) {
        if self.core == usize::MAX {
            return;
        }
        if self.slice_end != 0 {
            crate::time::note_slice_end(self.core, self.slice_end);
        }
        // The calling core sees by itself that it is to give way.
        if !frame::cpu::interrupt(self.core) && self.slice_end != 0 {
            crate::time::slice_end_was_noted(self.core);
        }
    }
}

/// The core that is to run a task which has just been entered, and its number; `None` if one that was called takes it.
fn core_for<'a>(cores: &'a mut [Core], queues: &Queues, pinned_to: Option<usize>) -> Option<(usize, &'a mut Core)> {
    if let Some(core) = pinned_to {
        return cores.get_mut(core).map(|found| (core, found));
    }
    let cores = present(cores);
    // Each idle core takes one.
    let is_idle = |(number, core): &(usize, &mut Core)| core.running.is_none() && !queues.has_pinned(*number);
    let called = cores.iter_mut().enumerate().filter(is_idle).filter(|(_, core)| core.is_called).count();
    if called >= queues.len_anywhere() {
        return None;
    }
    if let Some(idle) = cores.iter().position(|core| core.running.is_none() && !core.is_called) {
        return cores.get_mut(idle).map(|core| (idle, core));
    }
    // What is least urgent gives way.
    cores.iter_mut().enumerate().filter(|(_, core)| core.running.is_some()).min_by_key(|(_, core)| {
        core.running.map(Words).map(|running| (running.priority(), Reverse(running.virtual_time())))
    })
}

/// The time slice of what `core` runs is over: called by the timer's interrupt.
pub fn slice_ended(core: usize) {
    SCHEDULER.slice_ended(core);
}

/// Whether `core` runs a task now.
pub fn is_busy(core: usize) -> bool {
    SCHEDULER.state.with(|state| state.cores.get(core).is_some_and(|core| core.running.is_some()))
}

/// Has a task that runs user code come back into the kernel (for its signals); nothing if it does not run.
pub fn leave_user_code(task: TaskRef) {
    let Some(words) = task.sched() else { return };
    let core = SCHEDULER.state.with(|state| {
        let mut cores = state.cores_mut().iter().enumerate();
        let (number, core) =
            cores.find(|(_, core)| core.running.is_some_and(|running| core::ptr::eq(running, words)))?;
        core.worker?.request_yield();
        Some(number)
    });
    if let Some(core) = core {
        frame::cpu::interrupt(core);
    }
}

/// Lets all others that are ready go first (sched_yield(2)): true if there is one, and the caller is to give way.
pub fn step_back(task: TaskRef, cx: &Cx) -> bool {
    let core = frame::cpu::current(cx);
    let others = SCHEDULER.state.with(|state| !state.queues.is_empty_for(core));
    if others {
        if let Some(words) = task.sched().map(Words) {
            if words.is_real_time() {
                words.go_last();
            } else {
                words.add_virtual_time(FAIR_SLICE);
            }
        }
        tasks::request_yield(cx);
    }
    others
}

/// How long a task has run, in nanoseconds, until now.
pub fn cpu_time(task: TaskRef) -> u64 {
    charge_running();
    charged_time(task)
}

/// Charges what runs just now for its time until now. Then [`charged_time`] is exact, for as many tasks as one likes.
pub fn charge_running() {
    SCHEDULER.state.with(RunQueues::charge_running);
}

/// How long a task has run, in nanoseconds, until it was last charged.
pub fn charged_time(task: TaskRef) -> u64 {
    task.sched().map_or(0, |words| Words(words).cpu_time())
}

/// How long tasks have run on all cores together, in nanoseconds, until now; and how much of that they spent in the kernel, as far as it was sampled.
pub fn total_time() -> (u64, u64) {
    charge_running();
    let ran = SCHEDULER.state.with(|state| state.cores_mut().iter().map(|core| core.busy).sum());
    (ran, SYSTEM_TIME.load(Ordering::Relaxed).min(ran))
}

/// A sample says that a task has spent so many nanoseconds in the kernel.
pub fn add_system_time(nanoseconds: u64) {
    SYSTEM_TIME.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// How long the calling task has run, in nanoseconds, until now.
pub fn own_cpu_time(cx: &Cx) -> u64 {
    let core = frame::cpu::current(cx);
    let now = frame::time::now();
    clock::note_time(now);
    SCHEDULER.state.with(|state| {
        let Some(core) = state.cores.get_mut(core) else { return 0 };
        core.charge(now, &mut state.accounts);
        core.running.map_or(0, |running| Words(running).cpu_time())
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

/// All cores, as in [`Parameters::cores`].
pub fn all_cores() -> u64 {
    u64::MAX >> (u64::BITS as usize - frame::cpu::count().clamp(1, MAX_CORES))
}

/// On which cores a task may run: bit c is core c.
pub fn cores(task: TaskRef) -> u64 {
    task.sched().map(|words| Words(words).cores()).filter(|cores| *cores != 0).unwrap_or_else(all_cores)
}

/// Changes what a task is. It takes effect when it is next entered in a queue.
pub fn set_parameters(task: TaskRef, parameters: Parameters, _cx: &Cx) {
    if let Some(words) = task.sched() {
        Words(words).set_parameters(parameters);
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
    Words(words).set_account(account.map_or(NOBODYS, Account::number));
}

/// From now on the calling task is charged to this account.
pub fn charge_to(account: &Account, cx: &Cx) {
    charge_running();
    if let Some(words) = tasks::current(cx).sched().map(Words) {
        words.set_account(account.number());
    }
}

/// The calling task leaves its process: what it runs from now on is charged to no account.
pub fn leave_account(cx: &Cx) {
    charge_running();
    if let Some(words) = tasks::current(cx).sched().map(Words) {
        words.set_account(NOBODYS);
    }
}

/// How many tasks are ready or running.
pub fn load() -> usize {
    SCHEDULER
        .state
        .with(|state| state.queues.len() + state.cores_mut().iter().filter(|core| core.running.is_some()).count())
}

//! For tests with `--cfg ebb_shuttle`, here and in crates that build on this one.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

use refs::reclaim::Report;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, Runner, thread};

use crate::atomic::global;
use crate::{Body, Cx, HeapStacks, Hooks, Next, Policy, Ready, SchedWords, Why, Worker};

/// Tries `program` in so many interleavings: in half of them whoever runs next is chosen anew at each step, in the others few switches are
/// made, where it hurts most. The first thread of a program should only wait for those that it starts: shuttle's scopes may wake it from
/// other waits.
pub fn explore(interleavings: usize, program: impl Fn() + Send + Sync + 'static) {
    let program = Arc::new(program);
    let config = || {
        let mut config = Config::new();
        config.silence_warnings = true;
        // A scheduler is made on one of these stacks.
        config.stack_size = 256 << 10;
        config
    };
    let same = program.clone();
    Runner::new(RandomScheduler::new(interleavings / 2), config()).run(move || same());
    Runner::new(PctScheduler::new(3, interleavings / 2), config()).run(move || program());
}

/// Room for so many cores.
pub const MAX_CORES: usize = 3;

/// What a task of a [`Machine`] does each time it is run.
pub type Run = Box<dyn FnMut(&mut Cx) -> Next + Send>;

global! {
    static BELLS: (Mutex<Bells>, Condvar) = (Mutex::new(Bells { cores: 1, rung: [true; MAX_CORES], left: 0 }), Condvar::new());
}

/// What happened on the machine.
struct Bells {
    cores: usize,
    /// Which cores are to look for something to do, be they asleep or not.
    rung: [bool; MAX_CORES],
    /// How many tasks have not ended.
    left: usize,
}

shuttle::thread_local! {
    /// Which core's thread this is.
    static OWN: std::cell::Cell<usize> = std::cell::Cell::new(usize::MAX);
}

/// How many cores the machine has.
pub fn cores() -> usize {
    BELLS.0.lock().expect("not poisoned").cores
}

/// Interrupts a core, which looks then what it has to run; false if it is the calling one.
pub fn interrupt(core: usize) -> bool {
    if OWN.with(|own| own.get()) == core {
        return false;
    }
    BELLS.0.lock().expect("not poisoned").rung[core] = true;
    BELLS.1.notify_all();
    true
}

/// Who wakes the cores of a [`Machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The machine: all of them, whenever a task is entered.
    All,
    /// The policy, by [`interrupt`].
    ByPolicy,
}

/// A machine of some cores, which run the tasks that `policy` chooses and sleep when it has none for them: so a task that is ready and never
/// chosen is a deadlock, and so is one whose core is not woken.
pub struct Machine<P> {
    policy: P,
    wake: Wake,
    /// Whether each core runs a task: one that sleeps holds back nothing.
    reports: [&'static Report; MAX_CORES],
}

impl<P: Policy> Policy for Machine<P> {
    fn enqueue(&self, ready: Ready, why: Why) {
        self.policy.enqueue(ready, why);
        if self.wake == Wake::All {
            BELLS.0.lock().expect("not poisoned").rung = [true; MAX_CORES];
            BELLS.1.notify_all();
        }
    }

    fn next(&self, worker: &'static Worker) -> Option<Ready> {
        self.policy.next(worker)
    }
}

impl<P: Policy> Hooks for Machine<P> {
    fn idle(&self, worker: &Worker) -> ControlFlow<()> {
        let report = self.reports[worker.number()];
        let mut bells = BELLS.0.lock().expect("not poisoned");
        while bells.left != 0 && !bells.rung[worker.number()] {
            // SAFETY: it is this worker's, and runs no task.
            unsafe { report.leave() };
            bells = BELLS.1.wait(bells).expect("not poisoned");
            report.come_back();
        }
        bells.rung[worker.number()] = false;
        if bells.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn report(&self, worker: &Worker) -> Option<&'static Report> {
        Some(self.reports[worker.number()])
    }

    fn pause(&self, worker: &Worker) {
        // SAFETY: nothing is borrowed where this is called.
        unsafe { self.reports[worker.number()].pass() };
        thread::yield_now();
    }
}

impl<P: Policy + Send + 'static> Machine<P> {
    /// The machine of this execution: so many cores, and no tasks.
    pub fn new(policy: P, cores: usize, wake: Wake) -> &'static Self {
        let mut bells = BELLS.0.lock().expect("not poisoned");
        bells.cores = cores;
        // Until all tasks are there that `run` starts.
        bells.left = 1;
        drop(bells);
        let reports = core::array::from_fn(|_| &*Box::leak(Box::default()));
        Box::leak(Box::new(Machine { policy, wake, reports }))
    }

    /// Who chooses.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Whether all tasks have ended.
    pub fn is_off(&self) -> bool {
        BELLS.0.lock().expect("not poisoned").left == 0
    }

    /// Starts tasks, each with what the policy wants to know about it, and runs until all have ended.
    pub fn run<S: FnOnce(&SchedWords)>(&'static self, tasks: Vec<(Run, S)>) {
        for (run, sched) in tasks {
            self.spawn(run, sched);
        }
        one_fewer_is_left();
        let cores: Vec<_> = (0..cores())
            .map(|number| {
                thread::spawn(move || {
                    OWN.with(|own| own.set(number));
                    let stacks: &'static HeapStacks = Box::leak(Box::new(HeapStacks::new(4096)));
                    let worker: &'static Worker = Box::leak(Box::new(Worker::new(number, self, stacks, self)));
                    // SAFETY: this thread has no other context; the worker is this thread's.
                    unsafe { worker.run() };
                })
            })
            .collect();
        for core in cores {
            core.join().expect("no panic");
        }
    }

    /// Starts one more task, whose end the machine waits for.
    pub fn spawn(&'static self, run: Run, sched: impl FnOnce(&SchedWords)) {
        BELLS.0.lock().expect("not poisoned").left += 1;
        crate::spawn(self, Box::new(Counted { run }), |words, _| sched(words));
    }
}

impl<P> fmt::Debug for Machine<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

fn one_fewer_is_left() {
    BELLS.0.lock().expect("not poisoned").left -= 1;
    BELLS.1.notify_all();
}

/// Switches the machine off when it is the last.
struct Counted {
    run: Run,
}

impl Body for Counted {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let next = (self.run)(cx);
        if next == Next::End {
            one_fewer_is_left();
        }
        next
    }
}

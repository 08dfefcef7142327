//! For tests with `--cfg ebb_shuttle`, here and in crates that build on this one.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, Runner, thread};

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

/// How many cores a [`Machine`] has.
pub const CORES: usize = 2;

/// What a task of a [`Machine`] does each time it is run.
pub type Run = Box<dyn FnMut(&mut Cx) -> Next + Send>;

/// A machine of [`CORES`] cores, which run the tasks that `policy` chooses and sleep when it has none for them: so a task that is ready and never
/// chosen is a deadlock.
pub struct Machine<P> {
    policy: P,
    bells: Mutex<Bells>,
    rung: Condvar,
}

/// What happened.
struct Bells {
    /// How many tasks were entered.
    entered: usize,
    /// How many each core knew of when it last slept.
    known: [usize; CORES],
    /// All is done.
    off: bool,
}

impl<P: Policy> Policy for Machine<P> {
    fn enqueue(&self, ready: Ready, why: Why) {
        self.policy.enqueue(ready, why);
        self.bells.lock().expect("not poisoned").entered += 1;
        self.rung.notify_all();
    }

    fn next(&self, worker: &'static Worker) -> Option<Ready> {
        self.policy.next(worker)
    }
}

impl<P: Policy> Hooks for Machine<P> {
    fn idle(&self, worker: &Worker) -> ControlFlow<()> {
        let mut bells = self.bells.lock().expect("not poisoned");
        while !bells.off && bells.known[worker.number()] == bells.entered {
            bells = self.rung.wait(bells).expect("not poisoned");
        }
        bells.known[worker.number()] = bells.entered;
        if bells.off { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<P: Policy + Send + 'static> Machine<P> {
    /// A machine without tasks.
    pub fn new(policy: P) -> &'static Self {
        let bells = Bells { entered: 0, known: [0; CORES], off: false };
        Box::leak(Box::new(Machine { policy, bells: Mutex::new(bells), rung: Condvar::new() }))
    }

    /// Who chooses.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Whether all tasks have ended.
    pub fn is_off(&self) -> bool {
        self.bells.lock().expect("not poisoned").off
    }

    /// Starts tasks, each with what the policy wants to know about it, and runs until all have ended.
    pub fn run<S: FnOnce(&SchedWords)>(&'static self, tasks: Vec<(Run, S)>) {
        let left = &*Box::leak(Box::new(AtomicUsize::new(tasks.len())));
        for (run, sched) in tasks {
            crate::spawn(self, Box::new(Counted { run, machine: self, left }), |words, _| sched(words));
        }
        let cores: [_; CORES] = core::array::from_fn(|number| {
            thread::spawn(move || {
                let stacks: &'static HeapStacks = Box::leak(Box::new(HeapStacks::new(4096)));
                let worker: &'static Worker = Box::leak(Box::new(Worker::new(number, self, stacks, self)));
                // SAFETY: this thread has no other context; the worker is this thread's.
                unsafe { worker.run() };
            })
        });
        for core in cores {
            core.join().expect("no panic");
        }
        assert_eq!(left.load(Ordering::SeqCst), 0);
    }
}

impl<P> fmt::Debug for Machine<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

/// Switches the machine off when it is the last.
struct Counted<P: 'static> {
    run: Run,
    machine: &'static Machine<P>,
    left: &'static AtomicUsize,
}

impl<P: Policy + Send> Body for Counted<P> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let next = (self.run)(cx);
        if next == Next::End && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.machine.bells.lock().expect("not poisoned").off = true;
            self.machine.rung.notify_all();
        }
        next
    }
}

//! [`Worker`]: what runs tasks, and the ways to suspend.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, Ordering};

use refs::reclaim;

use crate::switch::{switch, switch_for_good, switch_to_new};
use crate::task::Task;
use crate::{Cx, Next, Policy, Ready, Stack, StackSource, TaskRef, Waker, Why};

/// What becomes of a worker that has nothing to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Something may be ready now: look again.
    Look,
    /// [`Worker::run`] is to return (if the stack that is idle is the one it was called on).
    Leave,
}

/// What a worker needs from below.
pub trait Hooks: Sync {
    /// Nothing is ready: wait until something may be.
    fn idle(&self, worker: &Worker) -> Idle;

    /// The current task leaves the worker, in the middle of something or between two runs of its body.
    fn leave(&self, _worker: &Worker) {}
}

/// Runs tasks, one at a time: a core of the kernel, or a thread of a program.
pub struct Worker {
    number: usize,
    /// The number under which it is registered with [`reclaim`] while it runs.
    core: Cell<usize>,
    policy: &'static dyn Policy,
    stacks: &'static dyn StackSource,
    hooks: &'static dyn Hooks,
    current: Cell<Option<&'static Task>>,
    /// The stack that the worker is on, if it came from the source (the first one did not).
    stack: UnsafeCell<Option<Stack>>,
    /// A stack that was left for good, to be given back once the worker is on another one.
    left: UnsafeCell<Option<Stack>>,
    /// The task that was left by the last switch: its `running` is to be cleared by whoever comes next.
    left_task: Cell<Option<&'static Task>>,
    /// A claimed task without a stack, for the dispatch loop of a fresh one.
    handed_over: Cell<Option<&'static Task>>,
    must_yield: AtomicBool,
    /// Where the dispatch loop of [`Worker::run`] goes on, once it has switched away.
    home: UnsafeCell<usize>,
    /// [`Worker::run`] is to return.
    leaving: Cell<bool>,
}

// SAFETY: the cells are touched only by the worker itself; `must_yield` is atomic and everything else is constant.
unsafe impl Sync for Worker {}

impl Worker {
    /// A worker with its number (from 0), which is to be [`run`](Self::run).
    pub const fn new(
        number: usize,
        policy: &'static dyn Policy,
        stacks: &'static dyn StackSource,
        hooks: &'static dyn Hooks,
    ) -> Self {
        Worker {
            number,
            core: Cell::new(0),
            policy,
            stacks,
            hooks,
            current: Cell::new(None),
            stack: UnsafeCell::new(None),
            left: UnsafeCell::new(None),
            left_task: Cell::new(None),
            handed_over: Cell::new(None),
            must_yield: AtomicBool::new(false),
            home: UnsafeCell::new(0),
            leaving: Cell::new(false),
        }
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// How many tasks there are, on all workers.
    pub fn tasks(&self) -> usize {
        crate::task::count()
    }

    /// Asks the worker's current task to give way at its next opportunity.
    #[inline]
    pub fn request_yield(&self) {
        self.must_yield.store(true, Ordering::Relaxed);
    }

    /// The running task.
    pub fn current(&self) -> Option<TaskRef> {
        self.current.get().map(|task| task.name())
    }

    /// Runs tasks until there are none left that are ready and [`Hooks::idle`] says [`Idle::Leave`].
    ///
    /// # Safety
    /// One call at a time per worker, from the thread or core that it stands for; no `Cx` is reachable from the caller's stack.
    pub unsafe fn run(&'static self) {
        // Where `rt` is there too, it must not run tasks on the stacks of this one's.
        #[cfg(feature = "std")]
        let _thread = crate::rt::thread::Claim::new();
        // SAFETY: the contexts are made by `dispatch`, whose tasks have all left their stacks, or keep them for ever, when it returns.
        let core = unsafe { reclaim::Core::register() };
        self.core.set(core.number());
        self.dispatch(Bottom::Home);
    }

    /// The bottom of every stack. Returns only on the home stack.
    #[cfg_attr(false, ebb_lint::root)]
    fn dispatch(&'static self, bottom: Bottom) {
        let mut worker = self;
        loop {
            worker.arrive();
            // SAFETY: this is the bottom of the stack: no other Cx is reachable from it.
            let mut cx = unsafe { Cx::new(core::ptr::from_ref(worker).cast()) };
            // SAFETY: it is the number under which this core is registered.
            unsafe { reclaim::quiescent(&mut cx, worker.core.get(), usize::MAX) };
            let Some(task) =
                worker.handed_over.take().or_else(|| worker.policy.next(worker).map(|ready| worker.claim(ready)))
            else {
                worker = worker.wait_for_work(bottom);
                if worker.leaving.take() {
                    return;
                }
                continue;
            };
            worker.enter(task);
            // SAFETY: the task is claimed: its cells are ours.
            let resume_at = unsafe { core::mem::take(&mut *task.resume_at.get()) };
            worker = if resume_at == 0 {
                worker.run_body_async(task, &mut cx)
            } else {
                // SAFETY: `resume_at` comes from a switch, and the claim makes us the only one to use it. A pooled stack
                // holds nothing but this loop; the home stack stays as it is until it is switched to.
                unsafe {
                    let own = core::mem::replace(&mut *worker.stack.get(), (*task.stack.get()).take());
                    match bottom {
                        Bottom::Pooled => worker.abandon(own, resume_at),
                        Bottom::Home => from_message(switch(worker.home.get(), resume_at, worker.message())),
                    }
                }
            };
        }
    }

    /// Nothing is ready. Says on which worker this stack goes on.
    fn wait_for_work(&'static self, bottom: Bottom) -> &'static Worker {
        if self.hooks.idle(self) == Idle::Leave {
            match bottom {
                Bottom::Home => self.leaving.set(true),
                // SAFETY: `home` was stored by the switch in `dispatch`, is used once, and this stack is not needed.
                Bottom::Pooled => unsafe {
                    let home = core::mem::take(&mut *self.home.get());
                    if home != 0 {
                        let own = (*self.stack.get()).take();
                        self.abandon(own, home);
                    }
                },
            }
        }
        self
    }

    /// Runs the body of a task that keeps no stack, here. Returns the worker on which it ended.
    #[inline(always)]
    fn run_body_async(&'static self, task: &'static Task, cx: &mut Cx) -> &'static Worker {
        // SAFETY: the task is claimed: its cells are ours.
        let Some(mut body) = (unsafe { (*task.body.get()).take() }) else {
            return self;
        };
        let next = body.run_async(cx);
        // The body may have suspended and come back elsewhere.
        let worker = worker(cx);
        match next {
            Next::Again => {
                worker.hooks.leave(worker);
                // SAFETY: still claimed.
                unsafe { *task.body.get() = Some(body) };
                worker.current.set(None);
                task.running.store(false, Ordering::Release);
                Ready(task).enqueue(Why::Yielded);
            }
            Next::End => {
                drop(body);
                worker.hooks.leave(worker);
                worker.current.set(None);
                task.running.store(false, Ordering::Release);
                task.retire();
            }
        }
        worker
    }

    /// Makes sure that nobody else runs the task (invariant 8).
    #[inline(always)]
    fn claim(&self, ready: Ready) -> &'static Task {
        let task = ready.0;
        // Another worker may still be leaving it: it stores where the task goes on, then clears `running`.
        while task.running.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        task
    }

    #[inline(always)]
    fn enter(&self, task: &'static Task) {
        self.current.set(Some(task));
        self.must_yield.store(false, Ordering::Relaxed);
    }

    /// Finishes the switch that led here: what was left behind is now really left.
    #[inline(always)]
    fn arrive(&self) {
        if let Some(task) = self.left_task.take() {
            task.running.store(false, Ordering::Release);
        }
        // SAFETY: the worker's own cell.
        if let Some(stack) = unsafe { (*self.left.get()).take() } {
            self.stacks.give(stack);
        }
    }

    /// Goes on at `to`; the current stack, `own`, returns to the source.
    ///
    /// # Safety
    /// As for [`switch_for_good`].
    unsafe fn abandon(&'static self, own: Option<Stack>, to: usize) -> ! {
        // SAFETY: the worker's own cell, and this function's contract.
        unsafe {
            *self.left.get() = own;
            switch_for_good(to, self.message())
        }
    }

    /// What a switch tells the stack it goes to: which worker is on it now.
    fn message(&'static self) -> *const () {
        core::ptr::from_ref(self).cast()
    }
}

/// The worker named by a switch's message.
///
/// # Safety
/// `message` comes from [`Worker::message`].
unsafe fn from_message(message: *const ()) -> &'static Worker {
    // SAFETY: by this function's contract; workers are 'static.
    unsafe { &*message.cast() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bottom {
    /// The stack on which [`Worker::run`] was called.
    Home,
    /// A stack from the source.
    Pooled,
}

extern "C" fn fresh_stack(worker: *const ()) -> ! {
    // SAFETY: `leave_async` passes its worker's message.
    let worker = unsafe { from_message(worker) };
    worker.dispatch(Bottom::Pooled);
    // The dispatch loop of a pooled stack leaves by a switch.
    unreachable!()
}

/// The worker that runs the task of `cx`.
#[inline(always)]
pub fn worker(cx: &Cx) -> &'static Worker {
    #[cfg(feature = "std")]
    assert!(
        crate::rt::thread::own_runtime() <= crate::rt::thread::OTHER_SCHEDULER,
        "this context was made by `tasks::rt`"
    );
    // SAFETY: every Cx that is not a thread's run-time's is made by `dispatch`, with a 'static worker.
    unsafe { &*cx.worker().cast::<Worker>() }
}

/// The running task.
#[inline(always)]
pub fn current(cx: &Cx) -> TaskRef {
    current_task(cx).name()
}

#[inline(always)]
fn current_task(cx: &Cx) -> &'static Task {
    worker(cx).current.get().expect("a Cx exists only while a task runs")
}

/// Asks the running task of this core to give way at its next opportunity.
pub fn request_yield(cx: &Cx) {
    worker(cx).request_yield();
}

/// Whether the running task was asked to give way.
#[inline(always)]
pub fn must_yield(cx: &Cx) -> bool {
    worker(cx).must_yield.load(Ordering::Relaxed)
}

/// Begins a wait of the running task: enter the waker wherever something may happen, then [`park_async`].
#[inline(always)]
pub fn prepare(cx: &Cx) -> Waker {
    current_task(cx).prepare()
}

/// Ends a wait that was prepared, without parking.
#[inline(always)]
pub fn finish_wait(cx: &Cx) {
    current_task(cx).wake.finish();
}

/// Says that nothing is borrowed just now, as a suspension does: to be called where the task leaves for user code, for instance.
#[inline(always)]
pub fn quiescent(cx: &mut Cx) {
    let core = worker(cx).core.get();
    // SAFETY: it is the number under which this core is registered.
    unsafe { reclaim::quiescent(cx, core, usize::MAX) };
}

/// Suspends until the prepared wait is ended by one of its wakers; returns at once if it was ended already.
///
/// The task keeps its stack meanwhile. If nothing else can be run for want of a stack, the worker waits on this one.
pub fn park_async(cx: &mut Cx) {
    let task = current_task(cx);
    quiescent(cx);
    if task.wake.commit() {
        leave_async(cx, task);
    }
    task.wake.finish();
}

/// Lets other tasks run; goes on when the policy's turn comes to it again.
pub fn yield_async(cx: &mut Cx) {
    let task = current_task(cx);
    quiescent(cx);
    task.running.store(true, Ordering::Relaxed);
    Ready(task).enqueue(Why::Yielded);
    leave_async(cx, task);
}

/// Runs others until the task, which is parked or queued, was picked again.
#[cfg_attr(false, ebb_lint::leaf)]
fn leave_async(cx: &mut Cx, task: &'static Task) {
    let worker = worker(cx);
    worker.hooks.leave(worker);
    loop {
        let Some(ready) = worker.policy.next(worker) else {
            worker.hooks.idle(worker);
            continue;
        };
        if core::ptr::eq(ready.0, task) {
            worker.enter(task);
            return;
        }
        let next = worker.claim(ready);
        // SAFETY: claimed: its cells are ours.
        let resume_at = unsafe { core::mem::take(&mut *next.resume_at.get()) };
        let fresh = if resume_at == 0 { worker.stacks.take() } else { None };
        if resume_at == 0 && fresh.is_none() {
            // Others may end and give stacks back meanwhile.
            next.running.store(false, Ordering::Release);
            Ready(next).enqueue(Why::Yielded);
            continue;
        }
        worker.left_task.set(Some(task));
        // SAFETY: the worker's and the tasks' own cells; `resume_at` comes from a switch and is used once; the fresh stack is
        // ours. `running` of this task stays set until the other side has arrived, so nobody reads its cells before they
        // are written.
        let message = unsafe {
            let own = (*worker.stack.get()).take();
            *task.stack.get() = own;
            if let Some(stack) = fresh {
                let top = stack.top();
                *worker.stack.get() = Some(stack);
                worker.handed_over.set(Some(next));
                switch_to_new(task.resume_at.get(), top, fresh_stack, worker.message())
            } else {
                *worker.stack.get() = (*next.stack.get()).take();
                worker.enter(next);
                switch(task.resume_at.get(), resume_at, worker.message())
            }
        };
        // SAFETY: the message is the worker that this stack is on now; `cx` is still the only Cx of this stack.
        unsafe {
            cx.set_worker(message);
            from_message(message).arrive();
        }
        return;
    }
}

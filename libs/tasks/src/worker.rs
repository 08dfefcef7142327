//! [`Worker`]: what runs tasks, and the ways to suspend.

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::ops::ControlFlow;
use core::ptr::{from_ref, null_mut};

use refs::reclaim;

use crate::arch::switch::{leave_for, switch, switch_to_new};
use crate::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::no_unwind::{NoUnwind, must_not_unwind};
use crate::task::Task;
use crate::{Cx, Next, Policy, Ready, Stack, StackSource, TaskRef, Waker, Why};

/// That of a worker which does not run yet.
static NOTHING_WAITS: AtomicBool = AtomicBool::new(false);

/// What a worker needs from below. A panic in one of these functions ends the program: it belongs to no task.
pub trait Hooks: Sync {
    /// Nothing is ready: wait until something may be, and [`Continue`](ControlFlow::Continue). Or [`Break`](ControlFlow::Break):
    /// [`Worker::run`] returns then, unless the worker idles on the stack of a suspended task, which has to go on first.
    fn idle(&self, worker: &Worker) -> ControlFlow<()>;

    /// The current task leaves the worker, in the middle of something or between two runs of its body.
    fn leave(&self, _worker: &Worker) {}

    /// Where it is said whether the worker runs a task, if the implementor writes there itself: see [`reclaim::Report`]. One for each worker.
    fn report(&self, _worker: &Worker) -> Option<&'static reclaim::Report> {
        None
    }

    /// Objects that died on the worker are left, because others may borrow them. They can be freed soon: the worker is to be quiescent again then, whatever it does
    /// meanwhile.
    fn look_again(&self, _worker: &Worker) {}

    /// What the running task waits for is done by other workers, and has taken long already: perhaps they do not run. Nothing is borrowed. Returns after a while.
    fn wait_for_others(&self, _worker: &Worker) {}

    /// The worker is between two steps of something long, and nothing is borrowed: whoever interrupts it may do so now. Where the implementor has the
    /// [report](Self::report), it is to say that the worker is [quiescent](reclaim::Report::pass).
    fn pause(&self, _worker: &Worker) {}
}

/// Runs tasks, one at a time: a core of the kernel, or a thread of a program.
pub struct Worker {
    number: usize,
    /// The number under which it is registered with [`reclaim`] while it runs.
    core: Cell<usize>,
    /// Whether anything is dead that it is to free.
    waiting: Cell<&'static AtomicBool>,
    /// How many deaths it had seen when it was last quiescent with something to free, those that destructors caused then among them.
    deaths: Cell<u64>,
    /// Tasks have let go of objects that died before this epoch and may not be freed; 0: of none.
    until: Cell<u64>,
    /// As `until`, for what died on all cores, while somebody asks for it: see [`has_dead`].
    until_all: Cell<u64>,
    /// Whether it could have freed more then.
    more: Cell<bool>,
    policy: &'static dyn Policy,
    stacks: &'static dyn StackSource,
    hooks: &'static dyn Hooks,
    /// The running task. Written by the worker only.
    current: AtomicPtr<Task>,
    must_yield: AtomicBool,
    /// The stack that the worker is on, if it came from the source (the first one did not).
    stack: UnsafeCell<Option<Stack>>,
    /// A stack that was left for good, to be given back once the worker is on another one.
    left: UnsafeCell<Option<Stack>>,
    /// A task without a stack that this worker has accepted, for the dispatch loop of a fresh one.
    handed_over: Cell<Option<&'static Task>>,
    /// Where the dispatch loop of [`Worker::run`] goes on, once it has switched away.
    home: UnsafeCell<usize>,
}

// SAFETY: the cells are touched only by the worker itself, on the thread that it stands for (`run`'s contract), and by nothing that is
// public but through a context of its; what others may touch is atomic or constant.
unsafe impl Sync for Worker {}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("number", &self.number).field("current", &self.current()).finish_non_exhaustive()
    }
}

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
            waiting: Cell::new(&NOTHING_WAITS),
            deaths: Cell::new(0),
            until: Cell::new(0),
            until_all: Cell::new(0),
            more: Cell::new(false),
            policy,
            stacks,
            hooks,
            current: AtomicPtr::new(null_mut()),
            must_yield: AtomicBool::new(false),
            stack: UnsafeCell::new(None),
            left: UnsafeCell::new(None),
            handed_over: Cell::new(None),
            home: UnsafeCell::new(0),
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

    /// Asks the worker's current task to give way at its next opportunity. If there is none, the worker looks for one before it idles: it may be
    /// freeing what was destroyed, and so be the one that makes a task ready.
    #[inline]
    pub fn request_yield(&self) {
        self.must_yield.store(true, Ordering::Relaxed);
    }

    /// Whether its current task was asked to give way, and has not.
    pub fn is_asked_to_yield(&self) -> bool {
        self.must_yield.load(Ordering::Relaxed)
    }

    /// The running task; as another thread sees it, it may have stopped running meanwhile.
    pub fn current(&self) -> Option<TaskRef> {
        self.current_task().map(Task::name)
    }

    #[inline(always)]
    fn current_task(&self) -> Option<&'static Task> {
        // SAFETY: null, or a task, which is never freed.
        unsafe { self.current.load(Ordering::Relaxed).as_ref() }
    }

    #[inline(always)]
    fn set_current(&self, task: Option<&'static Task>) {
        self.current.store(task.map_or(null_mut(), |task| from_ref(task).cast_mut()), Ordering::Relaxed);
    }

    /// Runs tasks until there are none left that are ready and [`Hooks::idle`] breaks.
    ///
    /// # Safety
    /// One call at a time per worker, from the thread or core that it stands for, always the same one as long as one of its tasks is
    /// suspended. No `Cx` is reachable from the caller's stack.
    pub unsafe fn run(&'static self) {
        // Where `rt` is there too, it must not run tasks on the stacks of this one's.
        #[cfg(feature = "std")]
        let _thread = crate::rt::thread::Claim::new();
        // SAFETY: the contexts are made by `dispatch`, whose tasks have all left their stacks, or keep them for ever, when it returns.
        let core = unsafe {
            match self.hooks.report(self) {
                Some(report) => reclaim::Core::register_as(self.number, report),
                None => reclaim::Core::register(),
            }
        };
        self.core.set(core.number());
        self.waiting.set(reclaim::waiting_flag(core.number()));
        self.dispatch(Bottom::Home);
    }

    /// The bottom of every stack. Returns, on a pooled one, where the worker goes on when this stack is left for good; on the home stack,
    /// when [`run`](Self::run) is to return.
    #[cfg_attr(false, ebb_lint::root)]
    fn dispatch(&'static self, bottom: Bottom) -> usize {
        let guard = NoUnwind::in_place("the body of a task, or in its scheduler");
        let to = loop {
            self.arrive();
            // SAFETY: this is the bottom of the stack: no other Cx is reachable from it.
            let mut cx = unsafe { Cx::new(from_ref(self).cast()) };
            let dead = self.quiescent(&mut cx);
            let Some(task) = self.handed_over.take().or_else(|| self.next().map(|ready| self.accept(ready))) else {
                if dead != Dead::None || self.look_before_idling(&mut cx) != Dead::None {
                    self.hooks.pause(self);
                    continue;
                }
                if self.is_asked_to_yield() || self.hooks.idle(self).is_continue() {
                    continue;
                }
                match bottom {
                    Bottom::Home => break 0,
                    Bottom::Pooled => {
                        // SAFETY: the worker's own cells. `home` was stored by the switch below and is used once: a worker that is on a
                        // pooled stack has left its home stack.
                        unsafe {
                            *self.left.get() = (*self.stack.get()).take();
                            break core::mem::take(&mut *self.home.get());
                        }
                    }
                }
            };
            self.set_current(Some(task));
            // SAFETY: the task is this worker's.
            let resume_at = unsafe { core::mem::take(&mut *task.resume_at.get()) };
            if resume_at == 0 {
                self.run_body_async(task, &mut cx);
                continue;
            }
            // SAFETY: `resume_at` comes from a switch of this worker's and is used once. The stack that is left is in use until the
            // worker has arrived on the other one, and is given back there. The home stack stays as it is until it is switched to.
            unsafe {
                let own = core::mem::replace(&mut *self.stack.get(), (*task.stack.get()).take());
                match bottom {
                    Bottom::Pooled => {
                        *self.left.get() = own;
                        break resume_at;
                    }
                    Bottom::Home => switch(self.home.get(), resume_at),
                }
            }
        };
        guard.passed();
        to
    }

    /// Runs the body of a task that keeps no stack, here.
    #[inline(always)]
    fn run_body_async(&'static self, task: &'static Task, cx: &mut Cx) {
        // SAFETY: the task is this worker's.
        let Some(mut body) = (unsafe { (*task.body.get()).take() }) else { return };
        let next = body.run_async(cx);
        let body = match next {
            Next::Again => {
                // Its turn may come again at once, and again.
                self.hooks.pause(self);
                Some(body)
            }
            Next::End => {
                drop(body);
                None
            }
        };
        self.hooks.leave(self);
        self.set_current(None);
        let ends = body.is_none();
        // SAFETY: the task is this worker's, until now.
        unsafe {
            *task.body.get() = body;
            *task.worker.get() = None;
        }
        if ends {
            task.retire();
        } else {
            Ready(task).enqueue(Why::Yielded);
        }
    }

    /// Says that the running task, whose context this is, borrows nothing, and frees a few dead objects.
    #[inline(always)]
    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn quiescent(&self, cx: &mut Cx) -> Dead {
        if self.has_waiting() {
            self.free_some(cx)
        } else {
            cx.check_nothing_is_held();
            Dead::None
        }
    }

    /// As [`quiescent`](Self::quiescent), also for what is kept at hand. What is left of that is looked at when there is another reason.
    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn look_before_idling(&self, cx: &mut Cx) -> Dead {
        if reclaim::look_once(self.core.get()) { self.quiescent(cx) } else { Dead::None }
    }

    #[inline(always)]
    fn has_waiting(&self) -> bool {
        self.waiting.get().load(Ordering::Relaxed)
    }

    #[cold]
    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn free_some(&self, cx: &mut Cx) -> Dead {
        if reclaim::awaited(self.core.get()) != self.deaths.get() {
            // Also where it waits for earlier ones: what has died since then is to be freed, too.
            self.until.set(reclaim::epoch_now());
        }
        let own = self.until.get() != 0;
        let mut more = true;
        for _ in 0..STEPS {
            // SAFETY: it is the number under which this core is registered.
            more = unsafe { reclaim::quiescent(cx, self.core.get(), STEP) };
            if !more {
                break;
            }
            // Nothing is borrowed, and what an object takes with it may be much.
            self.hooks.pause(self);
        }
        self.more.set(more);
        // What destructors have added is no task's doing.
        self.deaths.set(reclaim::awaited(self.core.get()));
        if own && !more && self.others_hold_back() {
            return Dead::Own;
        }
        if !more {
            self.until.set(0);
            if self.has_waiting() {
                self.hooks.look_again(self);
            }
        }
        match (more, own) {
            (false, _) => Dead::None,
            (true, false) => Dead::Others,
            (true, true) => Dead::Own,
        }
    }

    /// Whether something that tasks here have let go of still waits for other cores to be quiescent. They will be soon: they suspend, idle or run user code.
    fn others_hold_back(&self) -> bool {
        reclaim::awaits_since_before(self.core.get(), self.until.get())
    }

    /// The task to run now, if there is any. It may be asked to give way from the moment on in which the policy has chosen it.
    #[inline(always)]
    fn next(&'static self) -> Option<Ready> {
        self.must_yield.store(false, Ordering::Relaxed);
        self.policy.next(self)
    }

    /// Takes a task that the policy gave: it is this worker's from here on, until its body returns.
    #[inline(always)]
    fn accept(&'static self, ready: Ready) -> &'static Task {
        match ready.worker() {
            // SAFETY: who has the Ready of a task without a worker may write the cell.
            None => unsafe { *ready.0.worker.get() = Some(self) },
            Some(own) if core::ptr::eq(own, self) => {}
            Some(other) => misplaced(self, other),
        }
        ready.0
    }

    /// Finishes the switch that led here: a stack that was left for good is now really left.
    #[inline(always)]
    fn arrive(&self) {
        // SAFETY: the worker's own cell. The stack came from this worker's source: stacks never pass to another worker.
        unsafe {
            if let Some(stack) = (*self.left.get()).take() {
                self.stacks.give(stack);
            }
        }
    }
}

#[cold]
#[inline(never)]
fn misplaced(worker: &Worker, own: &Worker) -> ! {
    panic!(
        "the policy gave worker {} a task whose stack is worker {}'s (see `Ready::worker`)",
        worker.number, own.number
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bottom {
    /// The stack on which [`Worker::run`] was called.
    Home,
    /// A stack from the source.
    Pooled,
}

extern "C" fn fresh_stack(worker: *const ()) {
    // SAFETY: `leave_async` passes its worker, and they are 'static.
    let worker: &'static Worker = unsafe { &*worker.cast() };
    let to = must_not_unwind("the scheduler", || worker.dispatch(Bottom::Pooled));
    // SAFETY: what `dispatch` says; nothing is left on this stack.
    unsafe { leave_for(to) }
}

/// The worker that runs the task of `cx`.
///
/// # Panics
/// If the context belongs to a run-time of `tasks::rt`.
#[inline(always)]
pub fn worker(cx: &Cx) -> &'static Worker {
    #[cfg(feature = "rt")]
    assert!(!crate::rt::is_context(cx), "this context was made by `tasks::rt`");
    // SAFETY: every Cx that is not a run-time's is made by `dispatch`, with a 'static worker.
    unsafe { &*cx.worker().cast::<Worker>() }
}

/// The running task.
#[inline(always)]
pub fn current(cx: &Cx) -> TaskRef {
    running(cx).1.name()
}

#[inline(always)]
fn running(cx: &Cx) -> (&'static Worker, &'static Task) {
    let worker = worker(cx);
    (worker, worker.current_task().expect("a Cx exists only while a task runs"))
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
    running(cx).1.prepare()
}

/// Ends a wait that was prepared, without parking.
#[inline(always)]
pub fn finish_wait(cx: &Cx) {
    running(cx).1.wake.finish();
}

/// How many dead objects are freed without a [`Hooks::pause`].
const STEP: usize = 2;

/// So often that is done in one go: so that no suspension takes longer because of what others have left.
const STEPS: usize = 32;

/// What is left to be freed after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// Nothing that could be freed now.
    None,
    /// Objects that had died before the task came to run.
    Others,
    /// Also objects that died since the worker was last quiescent: the task's doing.
    Own,
}

/// Says that nothing is borrowed just now, as a suspension does, and frees a few dead objects.
#[inline(always)]
#[cfg_attr(false, ebb_lint::never_suspends)]
pub fn quiescent(cx: &mut Cx) -> Dead {
    worker(cx).quiescent(cx)
}

/// Whether dead objects will soon be freed: then memory that there is not now may be there after a suspension, or a few. What dies after this is first asked is
/// not waited for.
#[cold]
pub fn has_dead(cx: &Cx) -> bool {
    let worker = worker(cx);
    if worker.has_waiting() && worker.more.get() {
        return true;
    }
    if worker.until_all.get() == 0 {
        worker.until_all.set(reclaim::begin_epoch());
    }
    let others = reclaim::awaits_anywhere_since_before(worker.until_all.get());
    if !others {
        worker.until_all.set(0);
    }
    others
}

/// Frees all dead objects, in steps between which others have their turn: what the task has let go of has come to its end when this
/// returns. To be called before somebody may look whether it has. What others let go of meanwhile is not waited for.
#[cold]
pub fn free_all_async(cx: &mut Cx) {
    let mut looks = 0;
    let until = reclaim::epoch_now();
    while quiescent(cx) != Dead::None {
        let worker = worker(cx);
        if !worker.more.get() && !reclaim::awaits_since_before(worker.core.get(), until) {
            break;
        }
        wait_async(cx, &mut looks);
    }
}

/// How often it is looked whether others have come to a suspension before it is said that this takes long.
const LOOKS: usize = 200;

/// The middle of a wait for others, or of long work.
fn wait_async(cx: &mut Cx, looks: &mut usize) {
    let worker = worker(cx);
    if worker.more.get() {
        *looks = 0;
    } else {
        *looks += 1;
        if *looks > LOOKS {
            worker.hooks.wait_for_others(worker);
        }
    }
    pause_async(cx);
}

/// Frees all that has died before on any core: what any task has let go of until now has come to its end when this returns. For who has to know whether somebody
/// uses something still, or finds no memory.
#[cold]
pub fn free_everything_async(cx: &mut Cx) {
    free_all_async(cx);
    for _ in 0..NESTED {
        let until = reclaim::begin_epoch();
        let mut looks = 0;
        while reclaim::waits_anywhere_since_before(until) {
            // SAFETY: it is the number under which the worker is registered.
            let more = unsafe { reclaim::quiescent_for_all(cx, worker(cx).core.get(), STEP) };
            worker(cx).more.set(more);
            wait_async(cx, &mut looks);
        }
        if !reclaim::waits_anywhere_since_before(reclaim::begin_epoch()) {
            break;
        }
    }
}

/// What a destructor gives up dies later than what it is of: so deep do objects own each other, at most, whose ends somebody may wait for here.
const NESTED: usize = 4;

/// Returns when what tasks did on other workers when this was called is over, up to their next suspension: they see what the caller had done before, and it sees what they
/// did. It lets interrupts in, but does not give way: others may wait for the caller meanwhile.
#[cold]
#[cfg_attr(false, ebb_lint::never_suspends)]
pub fn wait_for_all(cx: &mut Cx) {
    let worker = worker(cx);
    let epoch = reclaim::begin_epoch();
    let mut looks = 0;
    // SAFETY: it is the number under which the worker is registered.
    while !unsafe { reclaim::all_passed(cx, worker.core.get(), epoch) } {
        looks += 1;
        if looks > LOOKS {
            worker.hooks.wait_for_others(worker);
        }
        worker.hooks.pause(worker);
    }
}

/// Lets interrupts in, and others run if it is their turn: for the middle of long work.
pub fn pause_async(cx: &mut Cx) {
    let worker = worker(cx);
    worker.hooks.pause(worker);
    if must_yield(cx) {
        give_way_async(cx);
    }
}

/// What has ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfWait {
    /// One of its wakers.
    Woken,
    /// [`TaskRef::interrupt`]: none of its wakers has, nor will.
    Interrupted,
}

/// Suspends until the prepared wait is ended by one of its wakers, or interrupted; returns at once if it was ended already.
///
/// The task keeps its stack meanwhile. If nothing else can be run for want of a stack, the worker waits on this one.
pub fn park_async(cx: &mut Cx) -> EndOfWait {
    let (worker, task) = running(cx);
    worker.quiescent(cx);
    if task.wake.commit() {
        leave_async(cx, worker, task);
    }
    if task.wake.finish_interrupted() { EndOfWait::Interrupted } else { EndOfWait::Woken }
}

/// Lets other tasks run; goes on when the policy's turn comes to it again. Before that it lets interrupts in: whoever waits in a loop for what another
/// worker does may be the only one here whose turn comes, and that worker may wait for this one meanwhile.
pub fn yield_async(cx: &mut Cx) {
    let worker = worker(cx);
    worker.hooks.pause(worker);
    give_way_async(cx);
}

fn give_way_async(cx: &mut Cx) {
    let (worker, task) = running(cx);
    worker.quiescent(cx);
    let guard = NoUnwind::in_place(LEAVING);
    Ready(task).enqueue(Why::Yielded);
    guard.passed();
    leave_async(cx, worker, task);
}

/// Where a panic would unwind a task that is queued or parked.
const LEAVING: &str = "a policy, a source of stacks or a hook, while a task suspends";

/// Runs others until the task, which is parked or queued, was picked again.
#[cfg_attr(false, ebb_lint::leaf)]
fn leave_async(cx: &mut Cx, worker: &'static Worker, task: &'static Task) {
    let guard = NoUnwind::in_place(LEAVING);
    worker.hooks.leave(worker);
    loop {
        let Some(ready) = worker.next() else {
            if worker.quiescent(cx) == Dead::None && worker.look_before_idling(cx) == Dead::None {
                // What was freed may have woken somebody.
                if !worker.is_asked_to_yield() {
                    // On this task's stack: whoever wakes it brings it back here, since no other worker runs it.
                    let _ = worker.hooks.idle(worker);
                }
            } else {
                worker.hooks.pause(worker);
            }
            continue;
        };
        if core::ptr::eq(ready.0, task) {
            worker.set_current(Some(task));
            break;
        }
        let next = worker.accept(ready);
        // SAFETY: accepted: its cells are ours.
        let resume_at = unsafe { core::mem::take(&mut *next.resume_at.get()) };
        // SAFETY: the worker's and the tasks' own cells, which no other worker touches; `resume_at` comes from a switch of this worker's
        // and is used once; a fresh stack is ours.
        unsafe {
            if resume_at != 0 {
                *task.stack.get() = core::mem::replace(&mut *worker.stack.get(), (*next.stack.get()).take());
                worker.set_current(Some(next));
                switch(task.resume_at.get(), resume_at);
            } else if let Some(stack) = worker.stacks.take() {
                let top = stack.top();
                *task.stack.get() = (*worker.stack.get()).replace(stack);
                worker.handed_over.set(Some(next));
                switch_to_new(task.resume_at.get(), top, fresh_stack, from_ref(worker).cast());
            } else {
                // Others may end and give stacks back meanwhile.
                *next.worker.get() = None;
                Ready(next).enqueue(Why::Yielded);
                continue;
            }
        }
        worker.arrive();
        break;
    }
    guard.passed();
}

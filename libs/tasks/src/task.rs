//! [`Task`]: what is run; [`Ready`]: the right to run it; [`Policy`]: who decides which one is next.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use refs::{Cx, SpinLock, WakeSlot, Waker};

use crate::{Stack, Worker};

/// What a task does.
pub trait Body: Send {
    /// Runs the task until it ends, or until it has nothing on its stack that it wants to keep.
    fn run_async(&mut self, cx: &mut Cx) -> Next;
}

/// What is to become of a task whose body returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run it again when its turn comes.
    Again,
    /// It has ended: its body is dropped.
    End,
}

/// Why a task enters the policy's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is new.
    New,
    /// It was woken from a wait.
    Woken,
    /// It was running and gave way.
    Yielded,
}

/// Which ready task runs next. Implemented by safe code; what it gives back is checked by its type and again by the worker.
pub trait Policy: Sync {
    /// Takes in a task that may run. May call [`Worker::request_yield`] on the worker that ought to give way to it.
    fn enqueue(&self, ready: Ready, why: Why);

    /// The task that `worker` is to run now, if there is any. Whatever it ran until now it runs no longer.
    fn next(&self, worker: &'static Worker) -> Option<Ready>;
}

/// Words in which the policy keeps what it likes about a task (its weight, its virtual run time). Zero at first.
#[derive(Default)]
pub struct SchedWords(pub [AtomicU64; 6]);

/// A task. Type-stable: reused for other tasks, never freed.
#[repr(C)]
pub(crate) struct Task {
    /// First, so that the slot's address is the task's.
    pub(crate) wake: WakeSlot,
    /// Where the task goes on, if it keeps a stack; else 0. Written by the worker that runs it, before `running` is cleared.
    pub(crate) resume_at: UnsafeCell<usize>,
    /// The stack that it keeps.
    pub(crate) stack: UnsafeCell<Option<Stack>>,
    pub(crate) body: UnsafeCell<Option<Box<dyn Body>>>,
    /// Set while a worker runs the task or is still leaving it.
    pub(crate) running: AtomicBool,
    /// How many tasks this struct has been.
    generation: AtomicU64,
    sched: SchedWords,
    policy: UnsafeCell<Option<&'static dyn Policy>>,
}

// SAFETY: the cells are touched only by the holder of the task's `Ready` or by the worker that runs it, which are one
// at a time; the rest is atomic.
unsafe impl Sync for Task {}
// SAFETY: as above.
unsafe impl Send for Task {}

static FREE: SpinLock<alloc::vec::Vec<&'static Task>> = SpinLock::new(alloc::vec::Vec::new());
static TASKS: AtomicUsize = AtomicUsize::new(0);

/// Starts a task under `policy`, with what the policy wants to know about it in `sched`.
pub fn spawn(policy: &'static dyn Policy, body: Box<dyn Body>, sched: impl FnOnce(&SchedWords)) -> TaskRef {
    let task = FREE.with(|free| free.pop()).unwrap_or_else(|| {
        Box::leak(Box::new(Task {
            wake: WakeSlot::new(make_ready),
            resume_at: UnsafeCell::new(0),
            stack: UnsafeCell::new(None),
            body: UnsafeCell::new(None),
            running: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            sched: SchedWords::default(),
            policy: UnsafeCell::new(None),
        }))
    });
    TASKS.fetch_add(1, Ordering::Relaxed);
    for word in &task.sched.0 {
        word.store(0, Ordering::Relaxed);
    }
    sched(&task.sched);
    // SAFETY: the task came from the free list or is new: nobody else runs or owns it.
    unsafe {
        *task.body.get() = Some(body);
        *task.policy.get() = Some(policy);
    }
    let generation = task.generation.load(Ordering::Relaxed);
    policy.enqueue(Ready(task), Why::New);
    TaskRef { task, generation }
}

/// Called by a waker: the parked task may run.
fn make_ready(slot: &'static WakeSlot) {
    // SAFETY: every WakeSlot with this function is the first field of a Task (`repr(C)`), which is never freed.
    let task: &'static Task = unsafe { &*core::ptr::from_ref(slot).cast::<Task>() };
    Ready(task).enqueue(Why::Woken);
}

/// A task that may be run. There is one for each task that is ready, and none for one that runs or waits.
#[must_use = "a task whose Ready is lost never runs again"]
pub struct Ready(pub(crate) &'static Task);

impl Ready {
    /// The policy's words about the task.
    #[inline(always)]
    pub fn sched(&self) -> &'static SchedWords {
        &self.0.sched
    }

    pub(crate) fn enqueue(self, why: Why) {
        // SAFETY: written in `spawn` only, before the first Ready of the task existed.
        if let Some(policy) = unsafe { *self.0.policy.get() } {
            policy.enqueue(self, why);
        }
    }
}

impl Task {
    /// The task has ended: its struct may become another one.
    pub(crate) fn retire(&'static self) {
        self.generation.fetch_add(1, Ordering::Release);
        self.wake.finish();
        TASKS.fetch_sub(1, Ordering::Relaxed);
        FREE.with(|free| free.push(self));
    }
}

/// A task's name. Outliving the task is harmless.
#[derive(Clone, Copy)]
pub struct TaskRef {
    pub(crate) task: &'static Task,
    pub(crate) generation: u64,
}

impl TaskRef {
    /// Whether the task has not ended.
    pub fn is_alive(self) -> bool {
        self.task.generation.load(Ordering::Acquire) == self.generation
    }

    /// Ends whatever wait the task is in; false if it waits for nothing.
    pub fn interrupt(self) -> bool {
        self.is_alive() && self.task.wake.interrupt()
    }

    /// Whether the task waits for something.
    pub fn is_parked(self) -> bool {
        self.is_alive() && self.task.wake.is_parked()
    }

    /// The policy's words about the task.
    pub fn sched(self) -> Option<&'static SchedWords> {
        self.is_alive().then_some(&self.task.sched)
    }
}

impl PartialEq for TaskRef {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.task, other.task) && self.generation == other.generation
    }
}

/// How many tasks there are.
pub(crate) fn count() -> usize {
    TASKS.load(Ordering::Relaxed)
}

impl Task {
    pub(crate) fn name(&'static self) -> TaskRef {
        TaskRef { task: self, generation: self.generation.load(Ordering::Relaxed) }
    }

    pub(crate) fn prepare(&'static self) -> Waker {
        self.wake.prepare()
    }
}

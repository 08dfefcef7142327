//! [`Task`]: what is run; [`Ready`]: the right to run it; [`Policy`]: who decides which one is next.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::cmp;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ptr::with_exposed_provenance;
use core::sync::atomic;

use refs::{Cx, SpinLock, WakeSlot, Waker};

use crate::atomic::{AtomicU64, AtomicUsize, Ordering, global};
use crate::{Stack, StaticRef, Worker};

/// What a task does. Between two runs the body may be given to another worker, and so to another thread. While it runs it stays on
/// its worker, also when it suspends.
pub trait Body: Send {
    /// Runs the task until it ends, or until it has nothing on its stack that it wants to keep. A panic that leaves it ends the program.
    fn run_async(&mut self, cx: &mut Cx) -> Next;
}

/// What is to become of a task whose body returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run it again when its turn comes. Those who interrupt the worker may do so before.
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
    /// Takes in a task that may run. May call [`Worker::request_yield`] on the worker that ought to give way to it; and has to on one that
    /// found nothing and is to look again, since that may be the one that calls this.
    fn enqueue(&self, ready: Ready, why: Why);

    /// The task that `worker` is to run now, if there is any. Whatever it ran until now it runs no longer.
    ///
    /// A task that [has a worker](Ready::worker) is to be given to that one. To give it to another ends the program.
    fn next(&self, worker: &'static Worker) -> Option<Ready>;
}

/// Words in which the policy keeps what it likes about a task (its weight, its virtual run time). Zero at first.
#[derive(Debug, Default)]
pub struct SchedWords {
    /// The task's own.
    pub words: [atomic::AtomicU64; 12],
    /// Three that it has in common with others. None at first.
    pub shared: StaticRef<[atomic::AtomicU64; 3]>,
}

/// A task. Type-stable: reused for other tasks, never freed.
pub(crate) struct Task {
    pub(crate) wake: WakeSlot,
    /// The worker that has begun to run the body and on whose stack it is, or was when it suspended. While there is one, only that touches
    /// the cells below.
    pub(crate) worker: UnsafeCell<Option<&'static Worker>>,
    /// Where the task goes on, if it keeps a stack; else 0.
    pub(crate) resume_at: UnsafeCell<usize>,
    /// The stack that it keeps.
    pub(crate) stack: UnsafeCell<Option<Stack>>,
    pub(crate) body: UnsafeCell<Option<Box<dyn Body>>>,
    /// How many tasks this struct has been.
    generation: AtomicU64,
    sched: SchedWords,
    policy: UnsafeCell<Option<&'static dyn Policy>>,
}

// SAFETY: `worker` is written by the worker itself while it runs the task and before its Ready goes anywhere, and read by who has the Ready.
// The other cells are touched by that worker only, or while there is none by who has the Ready: one at a time, and each hands over with the
// Ready what it has written. The rest is atomic.
unsafe impl Sync for Task {}
// SAFETY: as above.
unsafe impl Send for Task {}

global! {
    static FREE: SpinLock<Vec<&'static Task>> = SpinLock::new(Vec::new());
}
/// A line of its own: what lies beside it is read by all.
#[repr(align(64))]
struct Count(AtomicUsize);

global! {
    static TASKS: Count = Count(AtomicUsize::new(0));
}

/// Starts a task under `policy`. Before it can run, `prepare` is told its name, and writes what the policy wants to know about it.
pub fn spawn(policy: &'static dyn Policy, body: Box<dyn Body>, prepare: impl FnOnce(&SchedWords, TaskRef)) -> TaskRef {
    let task = FREE.with(|free| free.pop()).unwrap_or_else(Task::new);
    TASKS.0.fetch_add(1, Ordering::Relaxed);
    for word in &task.sched.words {
        word.store(0, atomic::Ordering::Relaxed);
    }
    task.sched.shared.set(None);
    let name = task.name();
    prepare(&task.sched, name);
    // SAFETY: the task came from the free list or is new: nobody else runs or owns it.
    unsafe {
        *task.body.get() = Some(body);
        *task.policy.get() = Some(policy);
    }
    policy.enqueue(Ready(task), Why::New);
    name
}

/// Called by a waker: the parked task may run.
fn make_ready(slot: &'static WakeSlot) {
    // SAFETY: every slot with this function is in a Task whose exposed address is the token, and which is never freed.
    let task: &'static Task = unsafe { &*with_exposed_provenance(slot.token()) };
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

    /// The worker that is to run the task, because what it does lies on a stack there; `None` if any worker may run it.
    #[inline(always)]
    pub fn worker(&self) -> Option<&'static Worker> {
        // SAFETY: whoever has the Ready may read it.
        unsafe { *self.0.worker.get() }
    }

    pub(crate) fn enqueue(self, why: Why) {
        // SAFETY: written in `spawn` only, before the first Ready of the task existed.
        if let Some(policy) = unsafe { *self.0.policy.get() } {
            policy.enqueue(self, why);
        }
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ready").field(&self.0.name()).finish()
    }
}

impl Task {
    fn new() -> &'static Task {
        let memory = Box::leak(Box::<Task>::new_uninit());
        let address = memory.as_mut_ptr().expose_provenance();
        memory.write(Task {
            wake: WakeSlot::with_token(make_ready, address),
            worker: UnsafeCell::new(None),
            resume_at: UnsafeCell::new(0),
            stack: UnsafeCell::new(None),
            body: UnsafeCell::new(None),
            generation: AtomicU64::new(0),
            sched: SchedWords::default(),
            policy: UnsafeCell::new(None),
        })
    }

    /// The task has ended: its struct may become another one.
    pub(crate) fn retire(&'static self) {
        self.generation.fetch_add(1, Ordering::Release);
        self.wake.finish();
        TASKS.0.fetch_sub(1, Ordering::Relaxed);
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

impl TaskRef {
    fn key(&self) -> (usize, u64) {
        (core::ptr::from_ref(self.task).addr(), self.generation)
    }
}

impl PartialEq for TaskRef {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for TaskRef {}

/// Some order: of which task is not said.
impl Ord for TaskRef {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for TaskRef {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for TaskRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskRef({:p}, {})", self.task, self.generation)
    }
}

/// How many tasks there are.
pub(crate) fn count() -> usize {
    TASKS.0.load(Ordering::Relaxed)
}

impl Task {
    pub(crate) fn name(&'static self) -> TaskRef {
        TaskRef { task: self, generation: self.generation.load(Ordering::Relaxed) }
    }

    pub(crate) fn prepare(&'static self) -> Waker {
        self.wake.prepare()
    }
}

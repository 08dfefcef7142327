//! Starting and ending a run-time, and its pool of tasks to be.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::ptr::null;

use refs::{Cx, SpinLock, WakeSlot};

use super::awe::AweRef;
use super::finish::finish_async;
use super::layout::{Awe, NEXT_LIFE, Runtime, awe_flags, states};
use super::remote::RemoteList;
use super::wait::make_ready;
use crate::arch::context::Context;
use crate::atomic::{AtomicPtr, AtomicU64, Ordering, global};
use crate::no_unwind::must_not_unwind;
use crate::{Stack, StackSource};

/// What a run-time does when none of its tasks is ready.
pub trait Idle: Sync {
    /// Waits until another thread may have made a task ready; may return early. A panic in it ends the program: it belongs to no task. Runs on the stack of some suspended task, on the
    /// run-time's own thread: what it makes ready itself it makes ready at once. A [`wake`](Self::wake) may come before it begins: that must
    /// end it too.
    fn wait(&self, runtime: &'static Runtime);

    /// Ends the `wait` of that run-time, which has begun or is about to. Called from other threads, more than once perhaps. A panic in it ends
    /// the program: the thread would sleep for ever.
    fn wake(&self, runtime: &'static Runtime);
}

/// What a run-time needs from below: for those that have no `std`, or want other stacks than its.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Where stacks come from.
    pub stacks: &'static dyn StackSource,
    /// What is done when nothing is ready.
    pub idle: &'static dyn Idle,
    /// How many unused stacks are kept; more go back to `stacks`.
    pub keep_stacks: usize,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("keep_stacks", &self.keep_stacks).finish_non_exhaustive()
    }
}

impl Parts {
    /// Runs `f` as the first task of the calling core or thread, on its current stack; returns when it and everything that it
    /// started have ended. `core` is its number in [`refs::reclaim`].
    ///
    /// Without `std` a task cannot know whether it is on the thread of another one, so what it does to other tasks' names
    /// ([`AweRef::schedule`], wakers) is always done as from another thread.
    ///
    /// # Panics
    /// With the first panic in `f` or in a task; with `std` also if the thread runs tasks already.
    ///
    /// # Safety
    /// No [`Cx`] is reachable from the current stack. What `stacks` gives out is memory as [`Stack::new`](crate::Stack::new) asks
    /// for. `core` is the number under which the calling core or thread is registered with [`refs::reclaim`].
    pub unsafe fn run<R>(self, core: usize, f: impl FnOnce(&mut Cx) -> R) -> R {
        #[cfg(feature = "std")]
        let claim = super::thread::Claim::new();
        let runtime = Held(Runtime::acquire(self, core));
        #[cfg(feature = "std")]
        let _claim = claim.set(runtime.0);
        // SAFETY: acquired just now; the rest is this function's contract.
        unsafe { runtime.0.enter(f) }
    }
}

/// A run-time that was acquired.
struct Held(&'static Runtime);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// The stacks are cyclically begun this much lower, so that their hottest lines do not all fall into the same cache set.
const COLOUR_BYTES: usize = 256;
const COLOURS: usize = 16;

global! {
    static UNUSED: SpinLock<Vec<&'static Runtime>> = SpinLock::new(Vec::new());
}

impl Runtime {
    /// A run-time that no thread has.
    pub(crate) fn acquire(parts: Parts, core: usize) -> &'static Runtime {
        let runtime = UNUSED.with(Vec::pop).unwrap_or_else(Runtime::new);
        runtime.core.set(core as u32);
        runtime.stacks.set(Some(parts.stacks));
        runtime.idle.with(|idle| *idle = Some(parts.idle));
        runtime.keep_stacks.set(parts.keep_stacks);
        runtime
    }

    fn new() -> &'static Runtime {
        let runtime: &'static Runtime = Box::leak(Box::new(Runtime {
            current: Cell::new(None),
            head: Cell::new(0),
            tail: Cell::new(0),
            ring: Cell::new(null()),
            mask: Cell::new(0),
            free: Cell::new(None),
            ids: Cell::new(null()),
            ids_len: Cell::new(0),
            core: Cell::new(0),
            reclaim_waiting: Cell::new(refs::reclaim::waiting_flag(0)),
            remote: RemoteList::new(),
            ids_free: Cell::new(0),
            colour: Cell::new(0),
            ended: Cell::new(0),
            keep_stacks: Cell::new(0),
            stacks_now: Cell::new(0),
            stopping: Cell::new(false),
            bare: Cell::new(None),
            all: Cell::new(None),
            stacks: Cell::new(None),
            idle: SpinLock::new(None),
        }));
        runtime.create_queue();
        runtime
    }

    /// Runs `f` as the first task of this run-time, on the current stack.
    ///
    /// # Safety
    /// The run-time was acquired by the caller and nothing runs in it; no `Cx` is reachable from the current stack.
    #[cfg_attr(false, ebb_lint::root)]
    unsafe fn enter<R>(&'static self, f: impl FnOnce(&mut Cx) -> R) -> R {
        let first = self.begin();
        // SAFETY: by this function's contract.
        let mut cx = unsafe { new_context(self) };
        let result = super::finish::catch(|| finish_async(&mut cx, |_scope, cx| f(cx)));
        self.end(first);
        super::finish::value_or_resume(result)
    }

    /// What runs is from here on a task, in no block.
    pub(crate) fn begin(&'static self) -> &'static Awe {
        let first = self.take_bare();
        first.set_state(states::ACTIVE);
        first.block.set(null());
        first.parent.set(None);
        first.name.set("main");
        self.current.set(Some(first));
        first
    }

    /// The first task has ended, and so have all others.
    pub(crate) fn end(&self, first: &'static Awe) {
        self.retire(first);
        self.current.set(None);
        first.next.set(self.bare.replace(Some(first)));
    }

    /// Gives the run-time back; its stacks go back to their source.
    pub(crate) fn release(&'static self) {
        self.trim(0);
        self.stopping.set(false);
        self.drop_ids();
        UNUSED.with(|unused| unused.push(self));
    }

    /// A task to be, without a stack.
    fn take_bare(&'static self) -> &'static Awe {
        if let Some(awe) = self.bare.get() {
            self.bare.set(awe.next.get());
            return awe;
        }
        let memory = Box::leak(Box::<Awe>::new_uninit());
        let address = memory.as_mut_ptr().expose_provenance();
        let awe: &'static Awe = memory.write(Awe {
            context: Context::new(),
            parent: Cell::new(None),
            home: Cell::new(null()),
            position: Cell::new(0),
            life: AtomicU64::new(NEXT_LIFE + states::FREE),
            stack_top: Cell::new(0),
            runtime: self,
            block: Cell::new(null()),
            flags: Cell::new(0),
            saved_under: Cell::new(0),
            next: Cell::new(None),
            wake: WakeSlot::with_token(make_ready, address),
            remote_next: AtomicPtr::default(),
            remote_request: AtomicU64::new(0),
            all_next: Cell::new(self.all.get()),
            name: Cell::new(""),
            waits_for: Cell::new(&""),
            stack: Cell::new((0, 0)),
        });
        self.all.set(Some(awe));
        awe
    }

    /// A task to be, with a stack; `None` if there is no memory for one.
    #[inline(always)]
    pub(crate) fn take_free(&'static self) -> Option<&'static Awe> {
        let Some(awe) = self.free.get() else { return self.refill() };
        self.free.set(awe.next.get());
        Some(awe)
    }

    /// Takes back a task that has ended. Its stack may still be in use until the next switch.
    #[inline(always)]
    pub(crate) fn give_free(&self, awe: &'static Awe) {
        let next = self.free.replace(Some(awe));
        // Compared first: a store that is read again by the next creation would make each wait for the one before.
        if awe.next.get().map(core::ptr::from_ref) != next.map(core::ptr::from_ref) {
            awe.next.set(next);
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn refill(&'static self) -> Option<&'static Awe> {
        let stack = self.stacks.get()?.take()?;
        let awe = self.take_bare();
        let colour = self.colour.replace(self.colour.get().wrapping_add(1)) as usize;
        // A stack gives up at most a sixteenth of itself for its colour.
        let colours = ((stack.top() - stack.bottom()) / (16 * COLOUR_BYTES)).clamp(1, COLOURS);
        // Two words above the top are the task's own.
        awe.stack_top.set(stack.top() - 16 - colour % colours * COLOUR_BYTES);
        awe.set_state(states::ACTIVE);
        // The task stands for the stack from here on, until `trim`.
        awe.stack.set((stack.bottom(), stack.top()));
        self.stacks_now.set(self.stacks_now.get() + 1);
        Some(awe)
    }

    /// Gives all unused stacks but `keep` back to their source.
    #[cold]
    #[inline(never)]
    pub(crate) fn trim(&'static self, keep: usize) {
        self.ended.set(0);
        let mut link = &self.free;
        for _ in 0..keep {
            let Some(awe) = link.get() else { return };
            link = &awe.next;
        }
        let mut surplus = link.take();
        while let Some(awe) = surplus {
            surplus = awe.next.get();
            let (bottom, top) = awe.stack.replace((0, 0));
            if let Some(source) = self.stacks.get() {
                // SAFETY: the stack that `refill` took from this source and put here. Nothing runs on the stack of a free task (invariant 6:
                // the caller is on another one).
                must_not_unwind("a source of stacks", || unsafe { source.give(Stack::new(bottom, top)) });
            }
            self.stacks_now.set(self.stacks_now.get() - 1);
            awe.set_state(states::FREE);
            awe.next.set(self.bare.replace(Some(awe)));
        }
    }

    /// Undoes what a task has that not every task has: from here on its names are void.
    #[cold]
    #[inline(never)]
    pub(crate) fn retire(&self, awe: &Awe) {
        awe.life.fetch_add(NEXT_LIFE, Ordering::AcqRel);
        awe.flags.set(0);
        awe.saved_under.set(0);
        awe.name.set("");
        awe.waits_for.set(&"");
    }

    /// Undoes it if there is something to undo.
    #[inline(always)]
    pub(crate) fn retire_if_known(&self, awe: &Awe) {
        if awe.flags.get() != 0 {
            self.retire(awe);
        }
    }

    /// Wakes the thread, which sleeps.
    #[cold]
    pub(crate) fn wake_up(&'static self) {
        // From another thread, which may be so late that the run-time has another owner meanwhile.
        if let Some(idle) = self.idle.with(|idle| *idle) {
            must_not_unwind("`Idle::wake`", || idle.wake(self));
        }
    }

    /// The running task.
    #[inline(always)]
    pub(crate) fn running(&self) -> &'static Awe {
        // SAFETY: whoever asks has a Cx of this run-time, and that exists only while a task runs.
        unsafe { self.current.get().unwrap_unchecked() }
    }
}

/// The run-time of a context.
///
/// # Panics
/// If the context belongs to another scheduler ([`Worker`](crate::Worker)).
#[inline(always)]
pub(crate) fn runtime(cx: &Cx) -> &'static Runtime {
    #[cfg(feature = "std")]
    let runtime = {
        // Read from a thread-local variable rather than from `cx`, which lies on the task's stack: so the processor knows the
        // next task before it knows this one's stack pointer. On a thread that has a run-time every Cx is of that.
        let _ = cx;
        let own = super::thread::own_runtime();
        if own <= super::thread::OTHER_SCHEDULER {
            foreign_context();
        }
        own
    };
    #[cfg(not(feature = "std"))]
    let runtime: *const Runtime = {
        if !is_context(cx) {
            foreign_context();
        }
        cx.worker().cast::<u8>().wrapping_sub(OURS).cast()
    };
    // SAFETY: with `std` every run-time that is a thread's own is one of `Runtime::acquire`; without, a Cx with our mark was made by
    // `new_context`.
    unsafe { &*runtime }
}

/// What tells a context of this module from those of other schedulers, whose pointers are even.
const OURS: usize = 1;

/// A task's context.
///
/// # Safety
/// As for [`Cx::new`].
#[inline(always)]
pub(crate) unsafe fn new_context(runtime: &'static Runtime) -> Cx {
    // SAFETY: by this function's contract.
    unsafe { Cx::new(core::ptr::from_ref(runtime).cast::<u8>().wrapping_add(OURS).cast()) }
}

/// Whether a context is of this module.
#[inline(always)]
pub(crate) fn is_context(cx: &Cx) -> bool {
    #[cfg(feature = "std")]
    {
        let _ = cx;
        super::thread::own_runtime() > super::thread::OTHER_SCHEDULER
    }
    #[cfg(not(feature = "std"))]
    {
        cx.worker().addr() & OURS != 0
    }
}

#[cold]
#[inline(never)]
fn foreign_context() -> ! {
    panic!("this context was not made by `tasks::rt`")
}

/// Whether a run-time is the calling thread's.
pub(crate) fn is_own(runtime: &'static Runtime) -> bool {
    #[cfg(feature = "std")]
    return core::ptr::eq(super::thread::own_runtime(), runtime);
    #[cfg(not(feature = "std"))]
    {
        let _ = runtime;
        false
    }
}

/// The running task.
pub fn current(cx: &Cx) -> AweRef {
    runtime(cx).running().reference()
}

/// Gives the running task a name for reports.
pub fn set_name(cx: &Cx, name: &'static str) {
    let awe = runtime(cx).running();
    awe.flags.set(awe.flags.get() | awe_flags::NAMED);
    awe.name.set(name);
}

#[cfg(feature = "std")]
pub use hosted::{Config, run};

#[cfg(feature = "std")]
mod hosted {
    use super::{Cx, Idle, Parts};
    use crate::StackSource;
    use crate::rt::thread;

    /// Runs `f` as the first task of the calling thread, with the default [`Config`]; returns when it and everything that it started
    /// have ended.
    ///
    /// # Panics
    /// If the thread runs tasks already: one stack has one [`Cx`]. Else with the first panic in `f` or in a task.
    pub fn run<R>(f: impl FnOnce(&mut Cx) -> R) -> R {
        Config::default().run(f)
    }

    /// What a thread's run-time is to be like.
    #[derive(Clone, Copy, Debug)]
    pub struct Config {
        /// The size of a stack in bytes, without its guard page; rounded up to pages. Default 64 KiB.
        pub stack_size_bytes: usize,
        /// How many unused stacks are kept; more are returned to the system. Default 1024.
        pub keep_stacks: usize,
    }

    impl Default for Config {
        fn default() -> Self {
            Config { stack_size_bytes: 64 * 1024, keep_stacks: 1024 }
        }
    }

    impl Config {
        /// Runs `f` as [`run`] does.
        ///
        /// # Panics
        /// As [`run`].
        pub fn run<R>(&self, f: impl FnOnce(&mut Cx) -> R) -> R {
            self.run_with_idle(&thread::Sleep, f)
        }

        /// Runs `f` as [`run`](Self::run) does, with another way to idle: `idle` is called when none of the thread's tasks is ready.
        /// It may do something useful, make tasks ready by their names or wakers, and end in [`Sleep`](crate::rt::Sleep)'s `wait`.
        ///
        /// # Panics
        /// As [`run`].
        pub fn run_with_idle<R>(&self, idle: &'static dyn Idle, f: impl FnOnce(&mut Cx) -> R) -> R {
            #[cfg(not(ebb_threads))]
            let _alternate_stack = crate::rt::overflow::watch();
            // SAFETY: the contexts are made by `parts.run`.
            let core = unsafe { refs::reclaim::Core::register() };
            let parts = Parts { stacks: stacks(self.stack_size_bytes), idle, keep_stacks: self.keep_stacks };
            // SAFETY: `run` refuses if this thread runs tasks already; if it does not, no Cx is reachable from its stack.
            unsafe { parts.run(core.number(), f) }
        }
    }

    #[cfg(not(ebb_threads))]
    fn stacks(size_bytes: usize) -> &'static dyn StackSource {
        crate::rt::stacks::MappedStacks::of_size(size_bytes)
    }

    /// Tasks run on the stacks of threads: these are never touched.
    #[cfg(ebb_threads)]
    fn stacks(_size_bytes: usize) -> &'static dyn StackSource {
        use crate::HeapStacks;
        crate::atomic::global! {
            static UNTOUCHED: HeapStacks = HeapStacks::new(4096);
        }
        let stacks: &'static HeapStacks = &UNTOUCHED;
        stacks
    }
}

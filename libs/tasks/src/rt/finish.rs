//! `finish` blocks and the tasks in them.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::null;

use refs::Cx;

use super::layout::{Awe, Finish, Runtime, awe_flags, block_flags, states};
use super::runtime::{new_context, runtime};
use super::suspend::{detach_all, successor, suspending, switch_to};
use crate::arch::context::{Called, Entry, Left, call_on, leave_for};
use crate::no_unwind::must_not_unwind;

/// Runs `body`, then waits until every task that was started in the block has ended, at any depth: those that its tasks start in
/// it, and, because a task waits for its own blocks, those in theirs. Also if `body` or a task panics; the first panic is
/// raised again after the wait.
///
/// What `body` borrows from outside the block its tasks may borrow too, as with [`std::thread::scope`].
///
/// # Panics
/// With the first panic in `body` or in a task of the block.
#[inline(always)]
pub fn finish_async<'env, R>(
    cx: &mut Cx,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, &mut Cx) -> R,
) -> R {
    block_async(cx, 0, body)
}

/// A block as [`finish_async`] makes, into which requests for cancellation from outside do not pass.
///
/// # Panics
/// As [`finish_async`].
#[inline(always)]
pub fn finish_shielded_async<'env, R>(
    cx: &mut Cx,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, &mut Cx) -> R,
) -> R {
    block_async(cx, block_flags::SHIELD, body)
}

#[inline(always)]
#[cfg_attr(false, ebb_lint::root)]
fn block_async<'env, R>(
    cx: &mut Cx,
    flags: u32,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, &mut Cx) -> R,
) -> R {
    let me = runtime(cx).running();
    let scope = Scope { block: Finish::new(me.block.get(), flags), _scope: PhantomData, _env: PhantomData };
    me.block.set(&raw const scope.block);
    let result = catch(|| body(&scope, cx));
    if scope.block.count.get() != 0 {
        wait_for_tasks_async(cx, &scope.block);
    }
    scope.block.leave(me);
    let failed = scope.block.panic.get();
    if !failed.is_null() {
        raise_first(failed);
    }
    let value = value_or_resume(result);
    // It may have been aborted while it waited.
    if me.flags.get() & awe_flags::ABORTED != 0 {
        super::stop::end_this_task();
    }
    value
}

/// A block in which tasks can be started.
#[repr(transparent)]
pub struct Scope<'scope, 'env: 'scope> {
    pub(crate) block: Finish,
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// There is no memory for another stack. Here is what was to be run.
pub struct NoStack<F>(pub F);

impl<F> fmt::Debug for NoStack<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoStack")
    }
}

impl<F> fmt::Display for NoStack<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no memory for another stack")
    }
}

impl<F> core::error::Error for NoStack<F> {}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Scope");
        out.field("tasks", &self.block.count.get()).field("is_cancel_requested", &self.is_cancel_requested()).finish()
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a task, *lazily*: it runs at once, as a call; if it suspends before it returns, this call returns then, and the
    /// task goes on by itself later.
    ///
    /// # Panics
    /// If there is no memory for a stack. Not if the task panics: the block does, at its end.
    #[inline(always)]
    pub fn spawn_async(&'scope self, cx: &mut Cx, task: impl FnOnce(&mut Cx) + 'scope) {
        if self.try_spawn_async(cx, task).is_err() {
            no_stack();
        }
    }

    /// Starts a task as [`spawn_async`](Self::spawn_async) does.
    ///
    /// # Errors
    /// [`NoStack`] gives the task back if there is no memory for a stack.
    #[inline(always)]
    #[cfg_attr(false, ebb_lint::leaf)]
    pub fn try_spawn_async<F: FnOnce(&mut Cx) + 'scope>(&'scope self, cx: &mut Cx, task: F) -> Result<(), NoStack<F>> {
        let runtime = runtime(cx);
        let Some(child) = runtime.take_free() else { return Err(NoStack(task)) };
        child.parent.set(Some(runtime.running()));
        self.start(runtime, child, task);
        Ok(())
    }

    /// Starts a task, *eagerly*: it runs at once, and the running task goes to the head of the queue meanwhile. If that has not suspended
    /// since it was started, whoever started it goes on behind it.
    ///
    /// # Panics
    /// As [`spawn_async`](Self::spawn_async).
    #[inline(always)]
    #[cfg_attr(false, ebb_lint::leaf)]
    pub fn spawn_eager_async(&'scope self, cx: &mut Cx, task: impl FnOnce(&mut Cx) + 'scope) {
        let (runtime, me) = suspending(cx);
        let Some(child) = runtime.take_free() else { no_stack() };
        child.parent.set(None);
        self.block.count.set(self.block.count.get() + 1);
        // Who called this task, if it is attached, goes on too: behind it, as if the call had returned.
        if me.parent.get().is_some() {
            detach_all(runtime, me, None);
        }
        // Where it goes on is stored before the child starts.
        runtime.push_front(me);
        runtime.make_room();
        self.start(runtime, child, task);
    }

    /// Runs `task` as `child`, which is attached to the running task, or is counted by this block while the running task is queued.
    #[inline(always)]
    fn start<F: FnOnce(&mut Cx) + 'scope>(&'scope self, runtime: &'static Runtime, child: &'static Awe, task: F) {
        let me = runtime.running();
        let mut task = ManuallyDrop::new(task);
        child.home.set(&raw const self.block);
        child.block.set(&raw const self.block);
        runtime.current.set(Some(child));
        #[cfg(feature = "asan")]
        forget_frames(child);
        // SAFETY: the child's stack is its own, and nothing runs on it. `Run` moves the task out before anything else can
        // run, and does not return if the child was detached.
        let called = unsafe { call_on::<Run<F>>((&raw mut task).cast(), me, child, runtime) };
        match called {
            Called::Returned(me, child, runtime) => {
                runtime.current.set(Some(me));
                runtime.retire_if_known(child);
                runtime.give_free(child);
            }
            Called::Resumed => {}
            Called::Aborted => super::stop::end_this_task(),
        }
    }
}

/// Tells AddressSanitizer that nothing is on the stack of a task to be: whoever left it for good did not return from its frames.
#[cfg(feature = "asan")]
fn forget_frames(task: &Awe) {
    unsafe extern "C" {
        fn __asan_unpoison_memory_region(start: *const core::ffi::c_void, length: usize);
    }
    let (bottom, top) = task.stack.get();
    // SAFETY: the sanitizer's run-time has this function; it changes the run-time's own notes only.
    unsafe { __asan_unpoison_memory_region(core::ptr::with_exposed_provenance(bottom), top - bottom) };
}

#[cold]
#[inline(never)]
fn no_stack() -> ! {
    panic!("there is no memory for another stack")
}

/// The bottom of a task's stack.
struct Run<F>(PhantomData<F>);

impl<F: FnOnce(&mut Cx)> Entry for Run<F> {
    /// Runs the task. Returns only if it is still attached.
    ///
    /// # Safety
    /// `task` is a `ManuallyDrop<F>` that nobody else takes; `runtime` is the thread's run-time, whose running task begins here.
    #[cfg_attr(false, ebb_lint::root)]
    unsafe extern "C" fn enter(task: *mut (), runtime: *const Runtime) {
        // SAFETY: by this function's contract; the stack is new, so no other Cx is reachable from it.
        let (task, runtime, mut cx) = unsafe {
            let runtime = &*runtime;
            (task.cast::<F>().read(), runtime, new_context(runtime))
        };
        let result = catch(|| task(&mut cx));
        let me = runtime.running();
        if let Err(payload) = result {
            // SAFETY: a block waits for its tasks, of which this is one.
            keep_first(unsafe { &*me.home.get() }, payload);
        }
        if me.parent.get().is_none() {
            end_detached(&mut cx, runtime);
        }
    }
}

/// Ends the running task, which is detached: the next one runs. If it was the last of its block, that is the block's owner.
///
/// Not inlined, so that a task that is still attached need not save registers for it.
#[inline(never)]
#[cfg_attr(false, ebb_lint::never_suspends)]
pub(crate) fn end_detached(cx: &mut Cx, runtime: &'static Runtime) -> Left {
    if refs::reclaim::has_waiting() {
        free_dead(cx, runtime);
    } else {
        cx.check_nothing_is_held();
    }
    let me = runtime.running();
    // SAFETY: a block waits for its tasks, of which this is one.
    let block = unsafe { &*me.home.get() };
    let left = block.count.get() - 1;
    block.count.set(left);
    let owner = if left == 0 { block.waiter.take() } else { None };
    let next = match owner {
        Some(owner) => {
            owner.set_state(states::ACTIVE);
            owner
        }
        None => runtime.next(cx),
    };
    runtime.retire_if_known(me);
    runtime.ended.set(runtime.ended.get() + 1);
    if runtime.ended.get() > runtime.keep_stacks.get() {
        runtime.trim(runtime.keep_stacks.get());
    }
    runtime.give_free(me);
    runtime.current.set(Some(next));
    // SAFETY: `next` was suspended and is resumed once, since it was taken out of the queue or out of its wait. This stack holds nothing
    // that is needed: everything above `Run` has returned.
    unsafe { leave_for(&next.context) }
}

/// Frees what can be freed, where a task has ended and nothing on its stack catches a panic any more.
#[cold]
#[inline(never)]
#[cfg_attr(false, ebb_lint::never_suspends)]
fn free_dead(cx: &mut Cx, runtime: &'static Runtime) {
    let core = runtime.core.get() as usize;
    // SAFETY: it is the number under which this thread registered.
    must_not_unwind("an object's destructor", || unsafe { refs::reclaim::quiescent(cx, core, usize::MAX) });
}

/// The owner of `block` waits until it has no tasks left.
#[cold]
#[inline(never)]
#[cfg_attr(false, ebb_lint::leaf)]
pub(crate) fn wait_for_tasks_async(cx: &mut Cx, block: &Finish) {
    let (runtime, me) = suspending(cx);
    me.set_state(states::FINISHING);
    block.waiter.set(Some(me));
    let next = successor(cx, runtime, me);
    // SAFETY: `me` is parked: `end_detached` resumes it. `next` was taken out of the queue, or called `me`.
    unsafe { switch_to(runtime, me, next) };
}

impl Finish {
    /// A block inside `parent`.
    #[inline(always)]
    pub(crate) fn new(parent: *const Finish, flags: u32) -> Self {
        use core::cell::Cell;
        Finish {
            count: Cell::new(0),
            waiter: Cell::new(None),
            parent: Cell::new(parent),
            flags: Cell::new(flags),
            _reserved: 0,
            first_child: Cell::new(null()),
            next_sibling: Cell::new(null()),
            previous_sibling: Cell::new(null()),
            items: Cell::new(null()),
            panic: Cell::new(core::ptr::null_mut()),
        }
    }

    /// The owner leaves the block, in which nothing is left.
    #[inline(always)]
    pub(crate) fn leave(&self, me: &Awe) {
        me.block.set(self.parent.get());
        if self.flags.get() & block_flags::LINKED != 0 {
            self.unlink();
        }
    }

    /// The block around this one.
    pub(crate) fn outer(&self) -> Option<&Finish> {
        // SAFETY: a block ends before the one around it.
        unsafe { self.parent.get().as_ref() }
    }

    /// Enters the block, and those around it, in the lists of their parents' children, if they are not there yet. Only blocks that
    /// take part in cancellation need to be there, which is why entering a block costs nothing.
    pub(crate) fn link(&self) {
        if self.flags.get() & (block_flags::LINKED | block_flags::SHIELD) != 0 {
            return;
        }
        self.flags.set(self.flags.get() | block_flags::LINKED);
        let Some(parent) = self.outer() else { return };
        parent.link();
        let next = parent.first_child.replace(self);
        self.next_sibling.set(next);
        self.previous_sibling.set(null());
        // SAFETY: linked blocks have not ended: each leaves the list before it does.
        if let Some(next) = unsafe { next.as_ref() } {
            next.previous_sibling.set(self);
        }
    }

    /// Takes the block out of its parent's list.
    #[cold]
    #[inline(never)]
    pub(crate) fn unlink(&self) {
        self.flags.set(self.flags.get() & !block_flags::LINKED);
        let (next, previous) = (self.next_sibling.get(), self.previous_sibling.get());
        // SAFETY: as in `link`.
        unsafe {
            if let Some(next) = next.as_ref() {
                next.previous_sibling.set(previous);
            }
            match (previous.as_ref(), self.outer()) {
                (Some(previous), _) => previous.next_sibling.set(next),
                (None, Some(parent)) => parent.first_child.set(next),
                (None, None) => {}
            }
        }
    }
}

/// Runs `f`; a panic that unwinds out of it becomes an error.
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
#[cfg_attr(false, ebb_lint::root)]
pub(crate) fn catch_async<R>(cx: &mut Cx, f: impl FnOnce(&mut Cx) -> R) -> Caught<R> {
    catch(|| f(cx))
}

use panics::raise_first;
pub(crate) use panics::{Caught, Payload, catch, is_aborted, keep_first, value_or_resume};

/// Panics that unwind: each task catches its own at the bottom of its stack, and its block keeps the first.
#[cfg(feature = "std")]
mod panics {
    use alloc::boxed::Box;
    use std::any::Any;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use crate::no_unwind::must_not_unwind;
    use crate::rt::layout::Finish;
    use crate::rt::stop::Aborted;

    pub(crate) type Payload = Box<dyn Any + Send>;
    pub(crate) type Caught<R> = Result<R, Payload>;

    #[inline(always)]
    pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        catch_unwind(AssertUnwindSafe(f))
    }

    #[inline(always)]
    pub(crate) fn value_or_resume<R>(result: Result<R, Payload>) -> R {
        match result {
            Ok(value) => value,
            Err(payload) => resume_unwind(payload),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn keep_first(block: &Finish, payload: Payload) {
        if block.panic.get().is_null() && !is_aborted(&payload) {
            block.panic.set(Box::into_raw(Box::new(payload)).cast());
            return;
        }
        must_not_unwind("the destructor of what a task panicked with", || drop(payload));
    }

    pub(crate) fn is_aborted(payload: &Payload) -> bool {
        payload.is::<Aborted>()
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn raise_first(failed: *mut ()) -> ! {
        // SAFETY: made by `keep_first`, and the block that it comes from has ended.
        resume_unwind(*unsafe { Box::from_raw(failed.cast::<Payload>()) })
    }
}

/// Where panics do not unwind there is nothing to catch.
#[cfg(not(feature = "std"))]
mod panics {
    use core::convert::Infallible;

    use crate::rt::layout::Finish;

    pub(crate) type Payload = Infallible;
    pub(crate) type Caught<R> = Result<R, Payload>;

    #[inline(always)]
    pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Infallible> {
        let unwinding = EndsTheProgram;
        let value = f();
        core::mem::forget(unwinding);
        Ok(value)
    }

    /// A program that does unwind must not leave a block whose tasks borrow from what is unwound: a panic in a destructor that runs
    /// during a panic ends it.
    struct EndsTheProgram;

    impl Drop for EndsTheProgram {
        fn drop(&mut self) {
            panic!(
                "a panic leaves a block or a task, and the crate was built without `std`, so nothing can wait for it"
            );
        }
    }

    #[inline(always)]
    pub(crate) fn value_or_resume<R>(result: Result<R, Infallible>) -> R {
        match result {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    pub(crate) fn keep_first(_block: &Finish, never: Payload) {
        match never {}
    }

    pub(crate) fn is_aborted(never: &Payload) -> bool {
        match *never {}
    }

    pub(crate) fn raise_first(_failed: *mut ()) -> ! {
        unreachable!("nothing keeps a panic where panics do not unwind")
    }
}

//! A thread's run-time from beginning to end.
#![cfg_attr(false, ebb_lint::root)]

use alloc::boxed::Box;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

use refs::reclaim::Core;

use super::scheduling::leave;
use super::{context, own};
use crate::rt::finish::{end_detached, wait_for_tasks_async};
use crate::rt::layout::{Awe, Finish, Runtime};
use crate::rt::overflow::{self, AlternateStack};
use crate::rt::runtime::{Idle, Parts};
use crate::rt::stacks::MappedStacks;
use crate::rt::stop::{should_stop, stop_all};
use crate::rt::suspend::detach_all;
use crate::rt::thread::{Claim, Sleep, own_runtime};

/// What a thread's run-time is to be like; zeroes mean what is usual.
#[derive(Debug)]
#[repr(C)]
pub struct AcConfig {
    /// The size of a stack in bytes, without its guard page; rounded up to pages. Usual: 64 KiB.
    pub stack_size_bytes: usize,
    /// How many unused stacks are kept; more are returned to the system. Usual: 1024.
    pub keep_stacks: usize,
    /// Called when nothing is ready; returns when `idle_wake` was called, or earlier. Usual: the thread sleeps.
    pub idle_wait: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Ends `idle_wait`; called by other threads, at any time, also before the wait began.
    pub idle_wake: Option<unsafe extern "C" fn(*mut c_void)>,
    /// What both are called with; valid for ever, since another thread may be about to wake this one when it has ended.
    pub idle_argument: *mut c_void,
}

/// What a thread has between `ac_init` and `ac_done`.
struct Session {
    first: &'static Awe,
    runtime: &'static Runtime,
    /// The first task is in it.
    _block: Box<Finish>,
    _core: Core,
    _claim: Claim,
    _alternate_stack: AlternateStack,
}

std::thread_local! {
    static SESSION: Cell<Option<Box<Session>>> = const { Cell::new(None) };
}

struct CIdle {
    wait: unsafe extern "C" fn(*mut c_void),
    wake: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: whoever made the configuration promised that both functions may be called like this.
unsafe impl Sync for CIdle {}

impl Idle for CIdle {
    fn wait(&self, _runtime: &'static Runtime) {
        // SAFETY: as `AcConfig` says.
        unsafe { (self.wait)(self.argument) }
    }

    fn wake(&self, _runtime: &'static Runtime) {
        // SAFETY: as `AcConfig` says.
        unsafe { (self.wake)(self.argument) }
    }
}

/// Makes the calling code the first task of its thread. 0, or `-EBUSY` if the thread runs tasks already.
///
/// # Safety
/// `config` is null or points to what its fields say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_init(config: *const AcConfig) -> c_int {
    const USUAL: AcConfig = AcConfig {
        stack_size_bytes: 64 * 1024,
        keep_stacks: 1024,
        idle_wait: None,
        idle_wake: None,
        idle_argument: null_mut(),
    };
    if !own_runtime().is_null() {
        return -libc::EBUSY;
    }
    // SAFETY: by this function's contract.
    let config = unsafe { config.as_ref() }.unwrap_or(&USUAL);
    let or_usual = |value: usize, usual: usize| if value == 0 { usual } else { value };
    let idle: &'static dyn Idle = match (config.idle_wait, config.idle_wake) {
        // Never freed: another thread may be about to call it.
        (Some(wait), Some(wake)) => Box::leak(Box::new(CIdle { wait, wake, argument: config.idle_argument })),
        _ => &Sleep,
    };
    let alternate_stack = overflow::watch();
    let claim = Claim::new();
    // SAFETY: it is kept in the session, which contexts do not outlive.
    let core = unsafe { Core::register() };
    let parts = Parts {
        stacks: MappedStacks::of_size(or_usual(config.stack_size_bytes, USUAL.stack_size_bytes)),
        idle,
        keep_stacks: or_usual(config.keep_stacks, USUAL.keep_stacks),
    };
    let runtime = Runtime::acquire(parts, core.number());
    let first = runtime.begin();
    let block = Box::new(Finish::new(null(), 0));
    first.block.set(&raw const *block);
    let claim = claim.set(runtime);
    SESSION.set(Some(Box::new(Session {
        first,
        runtime,
        _block: block,
        _core: core,
        _claim: claim,
        _alternate_stack: alternate_stack,
    })));
    0
}

/// Ends what `ac_init` began. All blocks have ended, so all tasks but the calling one have.
///
/// Ends the program if another task calls it, or without `ac_init`.
#[unsafe(no_mangle)]
pub extern "C" fn ac_done() {
    let Some(session) = SESSION.take() else { misused("ac_done: this thread was not initialised by ac_init") };
    let runtime = session.runtime;
    if !runtime.current.get().is_some_and(|running| core::ptr::eq(running, session.first)) {
        misused("ac_done: called by another task than the one that called ac_init");
    }
    runtime.end(session.first);
    runtime.release();
}

/// Whether the calling thread runs tasks.
#[unsafe(no_mangle)]
pub extern "C" fn ac_is_running() -> c_int {
    c_int::from(own_runtime() > crate::rt::thread::OTHER_SCHEDULER)
}

/// Ends the program, which has broken a rule.
pub(super) fn misused(what: &str) -> ! {
    std::eprintln!("{what}");
    std::process::abort()
}

/// There is no memory for a stack, and nobody who could be told.
#[unsafe(no_mangle)]
pub extern "C" fn ac_no_stack_() {
    misused("ac: there is no memory for another stack");
}

/// Ends the running task, without unwinding, as if its function had returned. Blocks that it is in are waited for.
///
/// Ends the program if it is the thread's first task.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_end_task() -> ! {
    // SAFETY: the thread runs tasks.
    let (runtime, mut cx) = unsafe { (own(), context()) };
    let me = runtime.running();
    let (bottom, top) = me.stack.get();
    if bottom == 0 {
        misused("THCFinish: the first task of a thread ends with its function");
    }
    // Its own blocks are those on its stack.
    while (bottom..top).contains(&me.block.get().addr()) {
        // SAFETY: the task is in its block.
        let block = unsafe { &*me.block.get() };
        if block.count.get() != 0 {
            wait_for_tasks_async(&mut cx, block);
        }
        leave(block, me);
    }
    detach_all(runtime, me, None);
    match end_detached(&mut cx, runtime) {}
}

/// Asks all tasks of this thread to stop.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_stop_all() {
    // SAFETY: the thread runs tasks.
    stop_all(&unsafe { context() });
}

/// Whether the running task ought to end.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_should_stop() -> c_int {
    // SAFETY: the thread runs tasks.
    c_int::from(should_stop(&unsafe { context() }))
}

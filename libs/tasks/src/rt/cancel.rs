//! Cancellation: what is in a block is asked to end early.
//!
//! A request is **sticky** (never taken back) and **inherited**: it holds for the block, for the blocks inside it, and for those
//! that are made inside it later, but does not pass into a [shielded](super::finish_shielded_async) block. Nothing is forced. Only
//! operations with an `x` in their names look at it: they return [`Canceled`] at their entry, even if they could proceed, and
//! while they wait.
//!
//! Beside waiting operations a block can hold *cancel items*: something to be done on a request, once ([`on_cancel_async`]). A
//! request runs items of inner blocks before those of outer ones, and of each block the latest first.
//!
//! # How it works
//!
//! - Whether a block is requested is found by walking outward from it up to a shield, so entering a block costs nothing.
//! - [`Item`]s are linked to the block in which they were made, whichever block their task is in when they are taken out.
//!   A block is linked to the one around it with its first item.
//! - A request takes items out one at a time and looks afresh after each, because what an item does may suspend: meanwhile
//!   other tasks add and remove items, and begin and end blocks. On its way it unlinks inner blocks in which nothing is left, so
//!   it looks at each once.
//! - An operation that waits has an item that ends the wait. Whether it was woken or canceled is decided by the wait itself: one of
//!   the two succeeds in ending it, for the other it is over already.
//! - An item lies on the stack of its task. That task does not go on behind it while its action runs.
//!
//! Blocks, items and requests belong to one thread; the wakers that a wait races against may come from any. How other threads ask is in
//! `canceler.rs`.

use core::cell::Cell;
use core::fmt;
use core::ptr::null;

use refs::{Cx, Waker};

use super::awe::AweRef;
use super::finish::{Scope, catch_async, value_or_resume};
use super::layout::{Awe, Finish, block_flags};
use super::runtime::{current, runtime};
use super::suspend::{suspend_then_async, yield_async};
use super::wait::{finish_wait, park_async, park_caught_async, prepare};

/// The operation did not take place: somebody asked what is in this block to end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canceled;

impl fmt::Display for Canceled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("canceled")
    }
}

impl core::error::Error for Canceled {}

impl Scope<'_, '_> {
    /// Asks everything in the block to end early, and runs the cancel items inside it. Returns when these have run; what one
    /// does may suspend, and then so does this. A second request runs what was added since.
    ///
    /// # Panics
    /// With the first panic of an item, after all have run.
    pub fn cancel_async(&self, cx: &mut Cx) {
        request_async(cx, &self.block);
    }

    /// Whether [`cancel_async`](Self::cancel_async) was called for this block, or for one around it with no shield between.
    pub fn is_cancel_requested(&self) -> bool {
        is_requested(&self.block)
    }
}

/// Whether the innermost block in which the running task is, is asked to end early.
pub fn is_cancel_requested(cx: &Cx) -> bool {
    is_requested(runtime(cx).running().block.get())
}

/// The same question, for `?`.
///
/// # Errors
/// [`Canceled`] if so.
pub fn check_canceled(cx: &Cx) -> Result<(), Canceled> {
    if is_cancel_requested(cx) { Err(Canceled) } else { Ok(()) }
}

/// Yields as [`yield_async`] does.
///
/// # Errors
/// [`Canceled`] if the block was asked to end, before or meanwhile.
pub fn yield_x_async(cx: &mut Cx) -> Result<(), Canceled> {
    check_canceled(cx)?;
    yield_async(cx);
    check_canceled(cx)
}

/// Suspends as [`suspend_async`](super::suspend_async) does.
///
/// # Errors
/// As for [`suspend_then_x_async`].
pub fn suspend_x_async(cx: &mut Cx) -> Result<(), Canceled> {
    suspend_then_x_async(cx, |_| ())
}

/// Suspends as [`suspend_then_async`] does.
///
/// # Errors
/// [`Canceled`] if the block was asked to end, before (then `publish` is not called) or before anybody else resumed the task.
pub fn suspend_then_x_async(cx: &mut Cx, publish: impl FnOnce(AweRef)) -> Result<(), Canceled> {
    check_canceled(cx)?;
    let item = Item::new(Duty::Resume(current(cx)));
    let linked = Linked::new(cx, &item);
    suspend_then_async(cx, publish);
    drop(linked);
    if item.has_canceled.get() { Err(Canceled) } else { Ok(()) }
}

/// Suspends as [`park_async`] does, in a wait that was [prepared](prepare).
///
/// # Errors
/// [`Canceled`] if the block was asked to end before one of the wait's wakers ended it; if a waker was earlier, the result is `Ok`.
/// The wait is over in both cases.
pub fn park_x_async(cx: &mut Cx) -> Result<(), Canceled> {
    if is_cancel_requested(cx) && runtime(cx).running().wake.withdraw() {
        return Err(Canceled);
    }
    wait_x_async(cx, &"", |_| ())
}

/// Waits, in a prepared wait, for something that is handed over by the wake-up. If the task unwinds from its wait although it was
/// handed something, `give_back` returns that. `what` is for reports.
///
/// # Errors
/// [`Canceled`] if nothing was handed over.
pub(crate) fn wait_x_async(
    cx: &mut Cx,
    what: &'static &'static str,
    give_back: impl FnOnce(&mut Cx),
) -> Result<(), Canceled> {
    let item = Item::new(Duty::Wake(runtime(cx).running()));
    let linked = Linked::new(cx, &item);
    let parked = park_caught_async(cx, what);
    drop(linked);
    match parked {
        Ok(woken) if woken && !item.has_canceled.get() => Ok(()),
        Ok(_) => Err(Canceled),
        Err(payload) => {
            if finish_wait(cx) && !item.has_canceled.get() {
                give_back(cx);
            }
            value_or_resume(Err(payload))
        }
    }
}

/// Runs `body`; if the innermost block is asked to end while it runs, runs `action` meanwhile, in the task that asks. If the block was
/// asked before, the action runs first, at once.
///
/// The action runs at most once, and is not begun after `body` has ended or [taken it out](CancelItem::remove). If it is running when
/// `body` ends, this waits for its end.
///
/// # Panics
/// With the panic of `body`. One of the action is the panic of the task that asked.
pub fn on_cancel_async<R>(
    cx: &mut Cx,
    action: impl FnOnce(&mut Cx),
    body: impl FnOnce(&CancelItem<'_>, &mut Cx) -> R,
) -> R {
    let work =
        Work { action: Cell::new(Some(action)), progress: Cell::new(Progress::NotBegun), waiter: Cell::new(None) };
    let item = Item::new(Duty::Act(without_lifetime(&work)));
    let linked = if is_cancel_requested(cx) {
        work.act_async(cx);
        None
    } else {
        Some(Linked::new(cx, &item))
    };
    let result = catch_async(cx, |cx| body(&CancelItem { item: &item, progress: &work.progress }, cx));
    drop(linked);
    let mut waited = Ok(());
    while work.progress.get() == Progress::Begun {
        // The action may use what is on this stack: not even an abort gets past it.
        let again = catch_async(cx, |cx| {
            work.waiter.set(Some(prepare(cx)));
            park_async(cx);
        });
        if waited.is_ok() {
            waited = again;
        }
    }
    let value = value_or_resume(result);
    value_or_resume(waited);
    value
}

/// What [`on_cancel_async`] shows to its body.
pub struct CancelItem<'a> {
    item: &'a Item,
    progress: &'a Cell<Progress>,
}

impl fmt::Debug for CancelItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelItem").field("has_begun", &self.has_begun()).finish()
    }
}

impl CancelItem<'_> {
    /// Whether the action was begun. It may be suspended just now.
    pub fn has_begun(&self) -> bool {
        self.progress.get() != Progress::NotBegun
    }

    /// Takes the action out of *its* block, in whichever block the running task is now: it is not begun from here on. False if it was
    /// begun, or taken out, before.
    pub fn remove(&self) -> bool {
        self.item.unlink()
    }
}

/// Asks what is in `block` to end, and runs its items.
pub(crate) fn request_async(cx: &mut Cx, block: &Finish) {
    block.flags.set(block.flags.get() | block_flags::CANCEL_REQUESTED);
    let mut first = Ok(());
    while let Some(item) = take_next(block) {
        match item.duty {
            Duty::Wake(awe) => item.has_canceled.set(awe.wake.interrupt()),
            Duty::Resume(task) => item.has_canceled.set(task.schedule_back().is_ok()),
            Duty::Act(work) => {
                // SAFETY: whoever made the item keeps its work until that has run.
                let result = catch_async(cx, |cx| unsafe { &*work }.act_async(cx));
                if first.is_ok() {
                    first = result;
                }
            }
        }
    }
    value_or_resume(first);
}

/// Takes out the item that is to run next: inner blocks first, of each block the latest.
fn take_next(block: &Finish) -> Option<&Item> {
    let mut at = block;
    loop {
        // SAFETY: linked blocks have not ended.
        if let Some(inner) = unsafe { at.first_child.get().as_ref() } {
            at = inner;
            continue;
        }
        // SAFETY: an item in a list is where it was linked.
        if let Some(item) = unsafe { at.items.get().cast::<Item>().as_ref() } {
            item.unlink();
            return Some(item);
        }
        if core::ptr::eq(at, block) {
            return None;
        }
        at.unlink();
        at = at.outer()?;
    }
}

fn is_requested(block: *const Finish) -> bool {
    // SAFETY: callers are in the block, or borrow it.
    let mut at = unsafe { block.as_ref() };
    while let Some(block) = at {
        let flags = block.flags.get();
        if flags & (block_flags::CANCEL_REQUESTED | block_flags::SHIELD) != 0 {
            return flags & block_flags::CANCEL_REQUESTED != 0;
        }
        at = block.outer();
    }
    false
}

/// What a block holds to be done on a request. It does not move while it is linked.
pub(crate) struct Item {
    next: Cell<*const Item>,
    previous: Cell<*const Item>,
    /// The block in whose list it is; null if it is in none.
    block: Cell<*const Finish>,
    duty: Duty,
    /// The request has ended the wait.
    has_canceled: Cell<bool>,
}

/// What an item is to do.
pub(crate) enum Duty {
    /// End the wait that its task is in.
    Wake(&'static Awe),
    /// Resume a task that waits by its name.
    Resume(AweRef),
    /// Run an action, which is kept by whoever keeps the item until it has run.
    Act(*const dyn Act),
}

/// Something that is to be done on a request.
pub(crate) trait Act {
    /// Does it, in the task that asks; may suspend that.
    fn act_async(&self, cx: &mut Cx);
}

impl Item {
    pub(crate) fn new(duty: Duty) -> Self {
        Item {
            next: Cell::new(null()),
            previous: Cell::new(null()),
            block: Cell::new(null()),
            duty,
            has_canceled: Cell::new(false),
        }
    }

    /// Enters the item in a block's list.
    ///
    /// # Safety
    /// It is in no list, and stays where it is until it is in none again; the block does not end before that.
    pub(crate) unsafe fn link(&self, block: &Finish) {
        block.link();
        let next = block.items.replace(core::ptr::from_ref(self).cast()).cast::<Item>();
        self.block.set(block);
        self.next.set(next);
        self.previous.set(null());
        // SAFETY: what is in the list was entered by this function.
        if let Some(next) = unsafe { next.as_ref() } {
            next.previous.set(self);
        }
    }

    /// Takes the item out of its list; false if it is in none.
    pub(crate) fn unlink(&self) -> bool {
        let block = self.block.replace(null());
        let (next, previous) = (self.next.get(), self.previous.get());
        // SAFETY: by the contract of `link`, for this one and its neighbours.
        unsafe {
            let Some(block) = block.as_ref() else { return false };
            if let Some(next) = next.as_ref() {
                next.previous.set(previous);
            }
            match previous.as_ref() {
                Some(previous) => previous.next.set(next),
                None => block.items.set(next.cast()),
            }
        }
        true
    }
}

/// An item in the list of the running task's block; dropping this takes it out, also when the task unwinds.
struct Linked<'a>(&'a Item);

impl<'a> Linked<'a> {
    /// Enters the item. It is this file's business not to forget the result.
    fn new(cx: &Cx, item: &'a Item) -> Self {
        // SAFETY: the running task is in its block, which waits for it; the item is borrowed until it is taken out.
        unsafe { item.link(&*runtime(cx).running().block.get()) };
        Linked(item)
    }
}

impl Drop for Linked<'_> {
    fn drop(&mut self) {
        self.0.unlink();
    }
}

/// An action and how far it is.
struct Work<F> {
    action: Cell<Option<F>>,
    progress: Cell<Progress>,
    /// The action's owner, once that waits for its end.
    waiter: Cell<Option<Waker>>,
}

/// How far an action is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    NotBegun,
    Begun,
    Done,
}

impl<F: FnOnce(&mut Cx)> Act for Work<F> {
    fn act_async(&self, cx: &mut Cx) {
        let Some(action) = self.action.take() else { return };
        self.progress.set(Progress::Begun);
        let result = catch_async(cx, |cx| action(cx));
        self.progress.set(Progress::Done);
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
        value_or_resume(result);
    }
}

/// A pointer that does not say how long what it points to lives.
fn without_lifetime<'a>(work: &'a (dyn Act + 'a)) -> *const (dyn Act + 'static) {
    // SAFETY: the types differ in a lifetime only, and a pointer promises none.
    unsafe { core::mem::transmute::<*const (dyn Act + 'a), *const (dyn Act + 'static)>(work) }
}

//! What tasks, blocks and run-times look like in memory. `ac.h` mirrors this file for C; the assertions at its end hold both in
//! place.
//!
//! Who may touch what: an [`Awe`] and a [`Runtime`] belong to one thread. Its fields in `Cell`s are touched by that thread only;
//! the atomic ones by everybody.

use core::cell::Cell;
use core::fmt;

use refs::{SpinLock, WakeSlot};

use super::remote::{RemoteList, Requested};
use super::runtime::Idle;
use crate::StackSource;
use crate::arch::context::Context;
use crate::atomic::{AtomicBool, AtomicPtr, AtomicU64};

/// What a task that is neither running, calling nor queued waits for ([`Awe::life`]).
pub(crate) mod states {
    /// Its memory belongs to no task.
    pub(crate) const FREE: u64 = 0;
    /// It runs, calls an attached child, or is in the run queue.
    pub(crate) const ACTIVE: u64 = 1;
    /// It suspended itself: whoever has its [`AweRef`](crate::rt::AweRef) may resume it.
    pub(crate) const PARKED: u64 = 2;
    /// It waits for the end of a block.
    pub(crate) const FINISHING: u64 = 3;
    /// It waits for its [`Waker`](refs::Waker).
    pub(crate) const WAITING: u64 = 4;
}

/// What [`Awe::life`] counts up by with each task.
pub(crate) const NEXT_LIFE: u64 = 8;

/// Bits of [`Finish::flags`].
pub(crate) mod block_flags {
    /// Somebody asked what is inside to end early. Never taken back.
    pub(crate) const CANCEL_REQUESTED: u32 = 1;
    /// Requests from outside do not pass (AC's `DO_FINISH_NX`).
    pub(crate) const SHIELD: u32 = 2;
    /// The block is in its parent's list of children.
    pub(crate) const LINKED: u32 = 4;
}

/// Bits of [`Awe::flags`]: what has to be undone when the task ends, beyond what each task needs.
pub(crate) mod awe_flags {
    /// Somebody may have a reference to the task.
    pub(crate) const NAMED: u32 = 1;
    /// It is to end at its next resumption.
    pub(crate) const ABORTED: u32 = 2;
    /// In a pool: only while [`dump`](crate::rt::dump) runs.
    pub(crate) const UNUSED: u32 = 4;
}

/// A task, alive or to be reused.
#[repr(C, align(64))]
pub struct Awe {
    /// Where it goes on, if it is not running.
    pub(crate) context: Context,
    /// The task that called this one, as long as this one is attached.
    pub(crate) parent: Cell<Option<&'static Awe>>,
    /// The block that it was started in, which counts it once it is detached.
    pub(crate) home: Cell<*const Finish>,
    /// Its entry in the run queue, if that entry names it.
    pub(crate) position: Cell<u64>,
    /// Which task this is, and in the three lowest bits one of [`states`]. Written by the owner only.
    pub(crate) life: AtomicU64,
    /// Where its stack begins (a multiple of 16); two words above it are its own.
    pub(crate) stack_top: Cell<usize>,
    /// Whose task it is.
    pub(crate) runtime: &'static Runtime,
    /// The innermost block that it is in: its own, if it has opened one.
    pub(crate) block: Cell<*const Finish>,
    /// Bits of [`awe_flags`].
    pub(crate) flags: Cell<u32>,
    /// The id under which it saved itself, as long as it is suspended and was not resumed by that id; else 0, which is no id.
    pub(crate) saved_under: Cell<u32>,
    /// The next one in the pool. Kept while the task lives: as a rule it is still right when the task goes back.
    pub(crate) next: Cell<Option<&'static Awe>>,
    /// For waits with a [`Waker`](refs::Waker).
    pub(crate) wake: WakeSlot,
    /// The next one in [`Runtime::remote`].
    pub(crate) remote_next: AtomicPtr<Awe>,
    /// Not 0 while it is in [`Runtime::remote`]: bit 0 if its waker asks; above it, the generation that [`AweRef`](super::AweRef) asks for.
    pub(crate) remote_request: AtomicU64,
    /// The next one of all that this run-time has.
    pub(crate) all_next: Cell<Option<&'static Awe>>,
    /// What it is called in reports.
    pub(crate) name: Cell<&'static str>,
    /// What it waits for, for reports, where its state does not say enough.
    pub(crate) waits_for: Cell<&'static &'static str>,
    /// The lowest address of its stack and the one behind the highest; zeroes if it has none from the source.
    pub(crate) stack: Cell<(usize, usize)>,
}

// SAFETY: the cells are touched by the owning thread only; the rest is atomic or constant (module comment).
unsafe impl Sync for Awe {}
// SAFETY: as above.
unsafe impl Send for Awe {}

impl Requested for Awe {
    fn next(&self) -> &AtomicPtr<Awe> {
        &self.remote_next
    }

    fn request(&self) -> &AtomicU64 {
        &self.remote_request
    }
}

/// A block that ends when all that was started in it has ended. It lies on the stack of the task that is in it.
#[repr(C)]
pub struct Finish {
    /// How many detached tasks of it have not ended.
    pub(crate) count: Cell<usize>,
    /// Its owner, once that waits for `count` to become 0.
    pub(crate) waiter: Cell<Option<&'static Awe>>,
    /// The block around it; null for the outermost.
    pub(crate) parent: Cell<*const Finish>,
    /// Bits of [`block_flags`].
    pub(crate) flags: Cell<u32>,
    pub(crate) _reserved: u32,
    /// The blocks directly inside it that take part in cancellation ([`block_flags::LINKED`]), latest first.
    pub(crate) first_child: Cell<*const Finish>,
    /// Its neighbours in its parent's list.
    pub(crate) next_sibling: Cell<*const Finish>,
    pub(crate) previous_sibling: Cell<*const Finish>,
    /// What is to be done on cancellation, latest first.
    pub(crate) items: Cell<*const ()>,
    /// The first panic of a task inside, boxed; null if there was none.
    pub(crate) panic: Cell<*mut ()>,
}

/// What belongs to one thread that runs tasks.
#[repr(C, align(64))]
pub struct Runtime {
    /// The task that runs.
    pub(crate) current: Cell<Option<&'static Awe>>,
    /// The run queue: entries `head..tail` of a ring of `mask + 1`. A removed entry is `None`.
    pub(crate) head: Cell<u64>,
    pub(crate) tail: Cell<u64>,
    pub(crate) ring: Cell<*const Cell<Option<&'static Awe>>>,
    pub(crate) mask: Cell<u64>,
    /// Tasks to be, each with a stack; linked by [`Awe::next`].
    pub(crate) free: Cell<Option<&'static Awe>>,
    /// The id table.
    pub(crate) ids: Cell<*const IdEntry>,
    pub(crate) ids_len: Cell<u32>,
    /// Its number in [`refs::reclaim`].
    pub(crate) core: Cell<u32>,

    /// Tasks that other threads want to run, latest first; linked by [`Awe::remote_next`].
    pub(crate) remote: RemoteList<Awe>,

    /// Whether some object waits for suspensions: for C, which looks at it in its own code.
    pub(crate) reclaim_waiting: Cell<*const AtomicBool>,
    /// First free entry of the id table, plus 1; 0 if there is none.
    pub(crate) ids_free: Cell<u32>,
    /// The colour of the next stack.
    pub(crate) colour: Cell<u32>,
    /// How many tasks have ended detached since the pool was last trimmed.
    pub(crate) ended: Cell<usize>,
    /// How many unused stacks the pool keeps.
    pub(crate) keep_stacks: Cell<usize>,
    /// How many stacks there are, used and unused.
    pub(crate) stacks_now: Cell<usize>,
    /// [`stop_all`](super::stop_all) was called.
    pub(crate) stopping: Cell<bool>,
    /// Tasks to be without a stack; linked by [`Awe::next`].
    pub(crate) bare: Cell<Option<&'static Awe>>,
    /// All tasks, free ones too; linked by [`Awe::all_next`].
    pub(crate) all: Cell<Option<&'static Awe>>,
    /// Where stacks come from.
    pub(crate) stacks: Cell<Option<&'static dyn StackSource>>,
    /// What to do when nothing is ready. Whoever wakes the thread reads it too.
    pub(crate) idle: SpinLock<Option<&'static dyn Idle>>,
}

// SAFETY: the cells are touched by the owning thread only; `remote` is atomic (module comment).
unsafe impl Sync for Runtime {}
// SAFETY: as above.
unsafe impl Send for Runtime {}

/// One entry of the id table.
#[repr(C)]
pub(crate) struct IdEntry {
    /// The task that is saved under this id.
    pub(crate) saved: Cell<Option<&'static Awe>>,
    /// How often this entry was given out and taken back, modulo 2^16: odd while it is given out. As wide as the compiler reads
    /// it: a read that is wider than the write before it waits until the write has reached the cache.
    pub(crate) generation: Cell<u32>,
    /// While free: the next free entry, plus 1; 0 at the end.
    pub(crate) next_free: Cell<u32>,
    /// The life of the task that was saved.
    pub(crate) life: Cell<u64>,
}

impl fmt::Debug for Awe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Awe({:p})", self)
    }
}

impl fmt::Debug for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Finish({:p})", self)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runtime({:p})", self)
    }
}

// shuttle's atomics are larger.
#[cfg(not(ebb_shuttle))]
const _: () = {
    use core::mem::offset_of;

    assert!(offset_of!(Awe, context) == 0 && size_of::<Context>() == 32);
    assert!(offset_of!(Awe, parent) == 32);
    assert!(offset_of!(Awe, home) == 40);
    assert!(offset_of!(Awe, position) == 48);
    assert!(offset_of!(Awe, life) == 56);
    assert!(offset_of!(Awe, stack_top) == 64);
    assert!(offset_of!(Awe, runtime) == 72);
    assert!(offset_of!(Awe, block) == 80);
    assert!(offset_of!(Awe, flags) == 88);
    assert!(offset_of!(Awe, saved_under) == 92);
    assert!(offset_of!(Awe, next) == 96);
    assert!(size_of::<Awe>() == 192 && align_of::<Awe>() == 64);

    assert!(offset_of!(Finish, count) == 0);
    assert!(offset_of!(Finish, waiter) == 8);
    assert!(offset_of!(Finish, parent) == 16);
    assert!(offset_of!(Finish, flags) == 24);
    assert!(offset_of!(Finish, first_child) == 32);
    assert!(offset_of!(Finish, next_sibling) == 40);
    assert!(offset_of!(Finish, previous_sibling) == 48);
    assert!(offset_of!(Finish, items) == 56);
    assert!(offset_of!(Finish, panic) == 64);
    assert!(size_of::<Finish>() == 72);

    assert!(offset_of!(Runtime, current) == 0);
    assert!(offset_of!(Runtime, head) == 8);
    assert!(offset_of!(Runtime, tail) == 16);
    assert!(offset_of!(Runtime, ring) == 24);
    assert!(offset_of!(Runtime, mask) == 32);
    assert!(offset_of!(Runtime, free) == 40);
    assert!(offset_of!(Runtime, ids) == 48);
    assert!(offset_of!(Runtime, ids_len) == 56);
    assert!(offset_of!(Runtime, core) == 60);
    assert!(offset_of!(Runtime, remote) == 64);
    assert!(offset_of!(Runtime, reclaim_waiting) == 128);

    assert!(offset_of!(IdEntry, saved) == 0);
    assert!(offset_of!(IdEntry, generation) == 8);
    assert!(offset_of!(IdEntry, next_free) == 12);
    assert!(offset_of!(IdEntry, life) == 16);
    assert!(size_of::<IdEntry>() == 24);
};

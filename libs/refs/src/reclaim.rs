//! When the memory of a dead object returns.
//!
//! A [`TempRc`](crate::TempRc) ends at its task's next suspension at the latest. So with one core (the usual case, and the only
//! one until a second core [registers](set_cores)) every dead object may be freed at any suspension. With several, an object
//! waits until each core has passed a suspension since its death (a suspension *is* the quiescent state, as in QSBR).
//!
//! Invariant: what is in the limbo list is unreachable by upgrade; each entry carries the epoch of its death; an entry is freed
//! only when each core has been quiescent in a later epoch.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::link::{Link, LinkQueue};
use crate::{Cx, SpinLock};

/// The most cores that can take part.
pub const MAX_CORES: usize = 64;

/// An object that is dead and not yet freed.
pub(crate) struct Dead {
    object: NonNull<()>,
    free: unsafe fn(NonNull<()>),
    epoch: u64,
}

// SAFETY: `StrongRc<T>` requires `T: Send`, so any core may free the object.
unsafe impl Send for Dead {}

static LIMBO: SpinLock<LinkQueue> = SpinLock::new(LinkQueue::new());
static WAITING: AtomicBool = AtomicBool::new(false);
static CORES: AtomicUsize = AtomicUsize::new(1);
static EPOCH: AtomicU64 = AtomicU64::new(1);
static PASSED: [AtomicU64; MAX_CORES] = [const { AtomicU64::new(0) }; MAX_CORES];

/// Says how many cores run tasks (at least 1, at most [`MAX_CORES`]). They are numbered from 0, and each must report its
/// suspensions by [`quiescent`].
pub fn set_cores(cores: usize) {
    CORES.store(cores.clamp(1, MAX_CORES), Ordering::Release);
}

/// Frees `object`, whose link is `link`, by `free` when nobody can borrow it any longer.
///
/// # Safety
/// No upgrade reaches `object` any more, it is not deferred twice, and `free` may be called on it from any core.
pub(crate) unsafe fn defer(link: &'static Link, object: NonNull<()>, free: unsafe fn(NonNull<()>)) {
    LIMBO.with(|limbo| limbo.push(link, Some(Dead { object, free, epoch: EPOCH.load(Ordering::Acquire) })));
    WAITING.store(true, Ordering::Release);
}

/// Reports that the task of `core` borrows nothing just now, and frees what can be freed.
///
/// The scheduler calls it at each suspension; `&mut Cx` is the proof.
#[inline(always)]
pub fn quiescent(cx: &mut Cx, core: usize) {
    if WAITING.load(Ordering::Acquire) || CORES.load(Ordering::Relaxed) > 1 {
        collect(core);
    }
    let _ = cx;
}

/// Frees what can be freed without a suspension: all dead objects where there is one core.
#[inline]
pub fn reclaim(cx: &mut Cx) {
    if CORES.load(Ordering::Acquire) == 1 {
        quiescent(cx, 0);
    }
}

#[cold]
fn collect(core: usize) {
    let cores = CORES.load(Ordering::Acquire);
    let limit = if cores == 1 {
        u64::MAX
    } else {
        // An object that died in epoch e may be borrowed by a core that was last quiescent in e or before.
        let epoch = EPOCH.fetch_add(1, Ordering::AcqRel) + 1;
        PASSED[core.min(MAX_CORES - 1)].store(epoch, Ordering::Release);
        PASSED[..cores].iter().map(|passed| passed.load(Ordering::Acquire)).min().unwrap_or(0)
    };
    // A destructor may drop further owners, which enter the list while it is walked: hence one at a time.
    let ripe = |dead: Option<&Dead>| dead.is_some_and(|dead| dead.epoch < limit);
    while let Some((_, Some(dead))) = LIMBO.with(|limbo| limbo.pop(ripe)) {
        // SAFETY: nobody can upgrade to the object, and every borrow of it has ended (module comment).
        unsafe { (dead.free)(dead.object) };
    }
    LIMBO.with(|limbo| WAITING.store(!limbo.is_empty(), Ordering::Release));
}

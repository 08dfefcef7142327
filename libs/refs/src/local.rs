//! [`Local`]: objects of one thread, without atomic instructions; [`Realm`]: where a thread makes them.
//!
//! Everything that `Shared` objects have in common with all threads (free links, the list of dead objects) these have in
//! common with their realm, which stays on its thread. So an object's memory always returns at once: nobody else can borrow
//! it. What is dropped without a context waits for the next [`Realm::quiescent`] or the next object that is destroyed with one.
//!
//! Invariant: a realm's state is used by one thread at a time: by whoever has the [`Realm`] or one of its objects, neither of
//! which can be sent. Those are its users, which are counted; when the last is gone the state is passed on to whoever makes the
//! next realm; not while somebody frees objects, who passes it on afterwards.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::ptr::NonNull;

use crate::link::{DeadQueue, FreeLinks, Link};
use crate::mode::{Home, RawLock, Sealed};
use crate::object::Header;
use crate::sync::{AtomicU32, Ordering, global};
use crate::{Cx, SpinLock};

/// An object that stays on its thread.
#[derive(Debug)]
pub enum Local {}

/// Where a thread's own objects are made. One per thread does; what it allocated for itself is kept for the next one.
///
/// Who is about to drop it [closes](Self::close) it. Dropping it frees no object, because somebody may borrow some: one that died without a context
/// since the last [`quiescent`](Self::quiescent) is freed when another object of the realm is destroyed with one, and if there is none, never.
pub struct Realm {
    state: &'static RealmState,
}

pub(crate) struct RealmState {
    free: UnsafeCell<FreeLinks>,
    limbo: UnsafeCell<DeadQueue>,
    /// How many objects have died here.
    deaths: Cell<u64>,
    /// How many links are in use, and one for the [`Realm`].
    users: Cell<usize>,
    /// Somebody frees objects and will look at `users` afterwards.
    freeing: Cell<bool>,
}

impl fmt::Debug for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Realm").field("len", &self.len()).finish()
    }
}

/// A state between two realms.
struct Spare(&'static RealmState);

// SAFETY: it belongs to no realm and has no objects: whoever takes it out is the only one to use it.
unsafe impl Send for Spare {}

global! {
    static SPARE: SpinLock<Vec<Spare>> = SpinLock::new(Vec::new());
}

/// The realm still has this many objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse(pub usize);

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the realm still has {} objects", self.0)
    }
}

impl core::error::Error for InUse {}

impl Default for Realm {
    fn default() -> Self {
        Self::new()
    }
}

impl Realm {
    /// A realm without objects, for the calling thread.
    pub fn new() -> Self {
        let state = SPARE.with(Vec::pop).map_or_else(
            || {
                &*Box::leak(Box::new(RealmState {
                    free: UnsafeCell::new(FreeLinks::new()),
                    limbo: UnsafeCell::new(DeadQueue::new()),
                    deaths: Cell::new(0),
                    users: Cell::new(0),
                    freeing: Cell::new(false),
                }))
            },
            |spare| spare.0,
        );
        state.enter();
        Realm { state }
    }

    /// Frees what was dropped without a context. To be called at suspensions, if that is to happen then; costs one load where
    /// nothing waits.
    #[inline(always)]
    pub fn quiescent(&self, cx: &mut Cx) {
        Local::reclaim(self.state, cx);
    }

    /// How many objects there are, the dead ones that are not yet freed included.
    pub fn len(&self) -> usize {
        self.state.users.get() - 1
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frees what can be freed and gives the realm up, as dropping it does.
    ///
    /// # Errors
    /// [`InUse`] if objects are left: somebody owns them. They stay as they are; what is dropped without a context from then on is
    /// freed when one of the others is destroyed with one.
    pub fn close(self, cx: &mut Cx) -> Result<(), InUse> {
        self.quiescent(cx);
        match self.len() {
            0 => Ok(()),
            objects => Err(InUse(objects)),
        }
    }
}

impl Drop for Realm {
    fn drop(&mut self) {
        self.state.leave();
    }
}

// SAFETY: a local object is used by its own thread only.
unsafe impl<T> Home<T> for Realm {
    type Mode = Local;

    #[expect(private_interfaces, reason = "nobody can do anything with it")]
    fn of_object(&self) -> &'static RealmState {
        self.state
    }
}

impl RealmState {
    /// Runs `f` on one of the realm's queues.
    fn with<Q, R>(queue: &UnsafeCell<Q>, f: impl FnOnce(&mut Q) -> R) -> R {
        // SAFETY: one thread at a time is here (module comment), and `f`, which is one of this file's, does not come back.
        f(unsafe { &mut *queue.get() })
    }

    /// One user more.
    #[inline(always)]
    fn enter(&self) {
        self.users.set(self.users.get() + 1);
    }

    /// One user less. The caller does not touch the state again.
    #[inline(always)]
    fn leave(&'static self) {
        let users = self.users.get() - 1;
        self.users.set(users);
        if users == 0 && !self.freeing.get() {
            self.pass_on();
        }
    }

    #[cold]
    fn pass_on(&'static self) {
        SPARE.within(|spare| spare.push(Spare(self)));
    }

    #[inline(always)]
    fn has_dead(&self) -> bool {
        !RealmState::with(&self.limbo, |limbo| limbo.is_empty())
    }

    /// Frees what is dead; the context shows that nothing is borrowed.
    #[cold]
    fn free_all(&self, _cx: &mut Cx) {
        while let Some(dead) = RealmState::with(&self.limbo, |limbo| limbo.pop(u64::MAX)) {
            // SAFETY: no name leads to it, its only thread borrows nothing, and it is out of the list.
            unsafe { Header::free(dead) };
        }
    }

    /// Runs `f`, which frees objects.
    #[inline(always)]
    fn while_freeing(&'static self, f: impl FnOnce()) {
        self.freeing.set(true);
        f();
        self.freeing.set(false);
        if self.users.get() == 0 {
            self.pass_on();
        }
    }
}

/// No lock: there is only one thread.
#[derive(Default)]
pub(crate) struct NoLock;

impl RawLock for NoLock {
    fn lock(&self) {}
    fn unlock(&self) {}
}

// SAFETY: a local object is borrowed by its own thread only, and that borrows nothing when it has `&mut Cx`.
unsafe impl Sealed for Local {
    type OfObject = &'static RealmState;
    type OfName = ();
    type Lock = NoLock;

    #[inline(always)]
    fn name(_: Self::OfObject) {}

    #[inline(always)]
    fn lives(_: ()) -> bool {
        true
    }

    #[inline(always)]
    fn deaths(realm: Self::OfObject) -> u64 {
        realm.deaths.get()
    }

    #[inline(always)]
    fn die(realm: Self::OfObject) -> u64 {
        realm.deaths.replace(realm.deaths.get() + 1)
    }

    #[inline]
    fn take_link(realm: Self::OfObject) -> &'static Link {
        realm.enter();
        RealmState::with(&realm.free, FreeLinks::take)
    }

    #[inline]
    fn give_link(realm: Self::OfObject, link: &'static Link) {
        RealmState::with(&realm.free, |free| free.give(link));
        realm.leave();
    }

    #[inline(always)]
    fn share(owners: &AtomicU32) {
        let count = owners.load(Ordering::Relaxed);
        assert!(count < crate::mode::MOST_OWNERS, "too many owners");
        owners.store(count + 1, Ordering::Relaxed);
    }

    #[inline]
    fn try_share(owners: &AtomicU32) -> bool {
        let lives = owners.load(Ordering::Relaxed) > 0;
        if lives {
            Self::share(owners);
        }
        lives
    }

    #[inline(always)]
    fn unshare(owners: &AtomicU32) -> bool {
        let left = owners.load(Ordering::Relaxed) - 1;
        owners.store(left, Ordering::Relaxed);
        left == 0
    }

    #[inline]
    unsafe fn bury(realm: Self::OfObject, object: NonNull<Header>, epoch: u64) {
        // SAFETY: by this function's contract.
        RealmState::with(&realm.limbo, |limbo| unsafe { limbo.push(object, epoch) });
    }

    #[inline]
    unsafe fn bury_now(realm: Self::OfObject, object: NonNull<Header>, _: u64, cx: &mut Cx) {
        cx.check_nothing_is_held();
        realm.while_freeing(|| {
            // SAFETY: no name leads to it, `&mut Cx` shows that its only thread borrows nothing, and it is given away.
            unsafe { Header::free(object) };
            if realm.has_dead() {
                realm.free_all(cx);
            }
        });
    }

    #[inline(always)]
    fn reclaim(realm: Self::OfObject, cx: &mut Cx) {
        cx.check_nothing_is_held();
        if realm.has_dead() {
            realm.while_freeing(|| realm.free_all(cx));
        }
    }
}

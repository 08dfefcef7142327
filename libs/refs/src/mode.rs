//! [`Mode`]: on how many threads an object may be used, and what else it depends on. It is a type parameter of every
//! reference; who does not name it gets [`Shared`].
//!
//! | mode | made by | counts owners | memory returns |
//! | --- | --- | --- | --- |
//! | [`Shared`] | [`StrongRc::new`](crate::StrongRc::new) | atomically | when each core has passed a suspension |
//! | [`Local`](crate::Local) | [`Realm`](crate::Realm) | without atomic instructions | at once |
//! | [`Grouped`](crate::Grouped) | [`Group`](crate::Group) | atomically | as `Shared`; one store ends all names into the group |

use core::ptr::NonNull;

use crate::link::Link;
use crate::object::Header;
use crate::sync::{AtomicU32, Ordering};
use crate::{Cx, NoSuspend, RawSpin, Waker, reclaim};

/// How the references to an object work. Implemented here and nowhere else, and nothing of it can be called from elsewhere: a generic
/// function could call whatever a public trait has, hidden or not.
#[expect(private_bounds, reason = "what only this crate may call")]
pub trait Mode: Sealed {}

impl<M: Sealed> Mode for M {}

/// How many owners an object can have.
pub(crate) const MOST_OWNERS: u32 = 1 << 31;

/// An object that any thread may use.
#[derive(Debug)]
pub enum Shared {}

/// What the references need to know of their mode.
///
/// # Safety
/// `bury` and `bury_now` free an object only when nobody can borrow it any longer; `SHARED` modes do all of it atomically.
pub(crate) unsafe trait Sealed: Sized + 'static {
    /// What is kept in each object.
    type OfObject: Copy + 'static;
    /// What is kept in each name of an object.
    type OfName: Copy + PartialEq + 'static;
    /// What keeps collections' insides to one thread at a time.
    type Lock: RawLock;

    fn name(of: Self::OfObject) -> Self::OfName;

    /// Whether a name whose link is alive leads to its object.
    fn lives(name: Self::OfName) -> bool;

    /// Has `waker` woken when what `name` is about, besides its object, is over.
    fn watch(_name: Self::OfName, _waker: Waker, _cx: &impl NoSuspend) {}

    /// How many deaths there have been: more than at the time of any object that is dead.
    fn deaths(of: Self::OfObject) -> u64;

    /// An object has died, or somebody watches one. Returns the epoch of that. Of two such events at one object, the second sees what
    /// was done before the first.
    fn die(of: Self::OfObject) -> u64;

    fn take_link(of: Self::OfObject) -> &'static Link;

    /// Takes back the link of an object that is freed.
    fn give_link(of: Self::OfObject, link: &'static Link);

    /// One more owner.
    fn share(owners: &AtomicU32);

    /// One more owner, unless there is none.
    fn try_share(owners: &AtomicU32) -> bool;

    /// One owner less; whether it was the last.
    fn unshare(owners: &AtomicU32) -> bool;

    /// Frees an object when nobody can borrow it any longer.
    ///
    /// # Safety
    /// The object was invalidated in `epoch` and is given away here.
    unsafe fn bury(of: Self::OfObject, object: NonNull<Header>, epoch: u64);

    /// Frees an object at once if nobody else can borrow it, else as `bury`; and some others that can be freed.
    ///
    /// # Safety
    /// As for `bury`.
    unsafe fn bury_now(of: Self::OfObject, object: NonNull<Header>, epoch: u64, cx: &mut Cx);

    /// Whether it makes a difference that nobody sees when an object comes to its end: then it is not [buried](Self::bury) as others are.
    fn may_end_unseen() -> bool {
        false
    }

    /// As [`die`](Self::die), where nobody sees when the object comes to its end.
    fn die_unseen() -> u64 {
        unreachable!("{NEVER_UNSEEN}")
    }

    /// Frees such an object when nobody can borrow it any longer.
    ///
    /// # Safety
    /// The object was invalidated in `epoch`, which [`die_unseen`](Self::die_unseen) said, and is given away here.
    unsafe fn bury_unseen(_object: NonNull<Header>, _epoch: u64) {
        unreachable!("{NEVER_UNSEEN}")
    }

    /// Frees some of what can be freed now.
    fn reclaim(of: Self::OfObject, cx: &mut Cx);
}

const NEVER_UNSEEN: &str = "`may_end_unseen` says that this is not called";

/// Where objects of a mode other than [`Shared`] are made: a [`Realm`](crate::Realm), a [`Group`](crate::Group).
///
/// # Safety
/// The mode suits every `T` for which this is implemented: only `Send + Sync` objects go where any thread uses them.
pub unsafe trait Home<T> {
    /// The mode of the objects.
    type Mode: Mode;

    /// What each of them keeps.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "nobody can do anything with it")]
    fn of_object(&self) -> <Self::Mode as Sealed>::OfObject;
}

/// Modes whose references may pass from thread to thread.
#[doc(hidden)]
pub trait Anywhere: Mode {}

impl Anywhere for Shared {}

/// A lock without what it locks.
pub(crate) trait RawLock: Default {
    fn lock(&self);
    fn unlock(&self);
}

impl RawLock for RawSpin {
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
    fn lock(&self) {
        RawSpin::lock(self);
    }

    #[inline(always)]
    fn unlock(&self) {
        RawSpin::unlock(self);
    }
}

// SAFETY: everything goes through `reclaim`, which waits until each core has passed a suspension; counts are atomic.
unsafe impl Sealed for Shared {
    type OfObject = ();
    type OfName = ();
    type Lock = RawSpin;

    #[inline(always)]
    fn name(_: ()) {}

    #[inline(always)]
    fn lives(_: ()) -> bool {
        true
    }

    #[inline(always)]
    fn deaths(_: ()) -> u64 {
        reclaim::deaths()
    }

    #[inline(always)]
    fn die(_: ()) -> u64 {
        reclaim::epoch()
    }

    #[inline]
    fn take_link(_: ()) -> &'static Link {
        Link::take()
    }

    #[inline]
    fn give_link(_: (), link: &'static Link) {
        link.give();
    }

    #[inline(always)]
    fn share(owners: &AtomicU32) {
        if owners.fetch_add(1, Ordering::Relaxed) >= MOST_OWNERS {
            owners.fetch_sub(1, Ordering::Relaxed);
            panic!("too many owners");
        }
    }

    #[inline]
    fn try_share(owners: &AtomicU32) -> bool {
        let more = |count| (0 < count && count < MOST_OWNERS).then(|| count + 1);
        owners.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    #[inline(always)]
    fn unshare(owners: &AtomicU32) -> bool {
        owners.fetch_sub(1, Ordering::AcqRel) == 1
    }

    #[inline]
    unsafe fn bury(_: (), object: NonNull<Header>, epoch: u64) {
        // SAFETY: by this function's contract.
        unsafe { reclaim::defer(object, epoch) };
    }

    #[inline]
    unsafe fn bury_now(_: (), object: NonNull<Header>, epoch: u64, cx: &mut Cx) {
        // SAFETY: by this function's contract.
        unsafe { reclaim::free_now(object, epoch, cx) };
    }

    #[inline(always)]
    fn may_end_unseen() -> bool {
        !reclaim::is_single()
    }

    #[inline]
    fn die_unseen() -> u64 {
        reclaim::epoch_of_unseen()
    }

    #[inline]
    unsafe fn bury_unseen(object: NonNull<Header>, epoch: u64) {
        // SAFETY: by this function's contract.
        unsafe { reclaim::defer_unseen(object, epoch) };
    }

    fn reclaim(_: (), cx: &mut Cx) {
        reclaim::free_others(cx);
    }
}

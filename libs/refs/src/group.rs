//! [`Group`]: objects whose names all end at once; [`Grouped`]: the mode of such objects.
//!
//! A group is an object of its own, of which nothing is used but its name. A name of a grouped object holds that as well, and
//! upgrading looks at both: so ending the group is one store, however many objects and names there are. What the owners hold is
//! freed by them, as ever. Other objects and their names are not touched by any of this: the group is part of the type.

use core::ptr::NonNull;

use crate::link::Link;
use crate::mode::{Anywhere, Home, Sealed, Shared};
use crate::object::Header;
use crate::sync::AtomicU32;
use crate::{Cx, Mortal, NoSuspend, RawSpin, StrongRc, Waker, WeakRc};

/// An object that any thread may use, and whose names end with its group.
#[derive(Debug)]
pub enum Grouped {}

/// Whether a set of objects can still be reached. Dropping it ends the group.
#[derive(Debug)]
pub struct Group {
    object: StrongRc<()>,
}

/// A group's name. May be kept anywhere for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName {
    name: WeakRc<()>,
}

impl Default for Group {
    fn default() -> Self {
        Self::new()
    }
}

impl Group {
    /// A group without objects.
    pub fn new() -> Self {
        Group { object: StrongRc::new(()) }
    }

    /// Its name.
    pub fn name(&self) -> GroupName {
        GroupName { name: self.object.downgrade() }
    }

    /// Ends the group: from here on every name of every object in it is [`Gone`](crate::Gone). The objects themselves are freed
    /// when their owners let go of them.
    pub fn end(self) {
        drop(self);
    }
}

impl GroupName {
    /// Whether the group has ended.
    #[inline(always)]
    pub fn is_gone(&self) -> bool {
        self.name.is_gone()
    }
}

impl Mortal for GroupName {
    fn watch_end(&self, waker: Waker, cx: &Cx) {
        self.name.watch(waker, cx);
    }

    fn is_gone(&self) -> bool {
        GroupName::is_gone(self)
    }
}

// SAFETY: any thread may use such an object.
unsafe impl<T: Send + Sync> Home<T> for Group {
    type Mode = Grouped;

    fn of_object(&self) -> GroupName {
        self.name()
    }
}

impl Anywhere for Grouped {}

// SAFETY: as `Shared`, which does all of it.
unsafe impl Sealed for Grouped {
    type OfObject = GroupName;
    type OfName = GroupName;
    type Lock = RawSpin;

    #[inline(always)]
    fn name(group: GroupName) -> GroupName {
        group
    }

    #[inline(always)]
    fn lives(group: GroupName) -> bool {
        !group.is_gone()
    }

    fn watch(group: GroupName, waker: Waker, cx: &impl NoSuspend) {
        group.name.watch(waker, cx);
    }

    #[inline(always)]
    fn deaths(_: GroupName) -> u64 {
        Shared::deaths(())
    }

    #[inline(always)]
    fn die(_: GroupName) -> u64 {
        Shared::die(())
    }

    #[inline]
    fn take_link(_: GroupName) -> &'static Link {
        Shared::take_link(())
    }

    #[inline]
    fn give_link(_: GroupName, link: &'static Link) {
        Shared::give_link((), link);
    }

    #[inline(always)]
    fn share(owners: &AtomicU32) {
        Shared::share(owners);
    }

    #[inline]
    fn try_share(owners: &AtomicU32) -> bool {
        Shared::try_share(owners)
    }

    #[inline(always)]
    fn unshare(owners: &AtomicU32) -> bool {
        Shared::unshare(owners)
    }

    #[inline]
    unsafe fn bury(_: GroupName, object: NonNull<Header>, epoch: u64) {
        // SAFETY: by this function's contract.
        unsafe { Shared::bury((), object, epoch) };
    }

    #[inline]
    unsafe fn bury_now(_: GroupName, object: NonNull<Header>, epoch: u64, cx: &mut Cx) {
        // SAFETY: by this function's contract.
        unsafe { Shared::bury_now((), object, epoch, cx) };
    }

    #[inline(always)]
    fn may_end_unseen() -> bool {
        Shared::may_end_unseen()
    }

    #[inline]
    fn die_unseen() -> u64 {
        Shared::die_unseen()
    }

    #[inline]
    unsafe fn bury_unseen(object: NonNull<Header>, epoch: u64) {
        // SAFETY: by this function's contract.
        unsafe { Shared::bury_unseen(object, epoch) };
    }

    fn reclaim(_: GroupName, cx: &mut Cx) {
        Shared::reclaim((), cx);
    }
}

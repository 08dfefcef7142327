//! [`Group`]: objects whose names all end at once; [`Grouped`]: the mode of such objects.
//!
//! A group has a generation of its own, in a link as objects have. A name of a grouped object holds both, and upgrading looks at
//! both: so ending the group is one store, however many objects and names there are. What the owners hold is freed by them, as
//! ever. Other objects and their names are not touched by any of this: the group is part of the type.

use core::ptr::NonNull;

use crate::link::Link;
use crate::mode::{Anywhere, Home, Sealed, Shared};
use crate::object::Header;
use crate::sync::AtomicU32;
use crate::{Cx, Mortal, RawSpin, Waker, reclaim};

/// An object that any thread may use, and whose names end with its group.
pub enum Grouped {}

/// Whether a set of objects can still be reached. Dropping it ends the group.
pub struct Group {
    name: GroupName,
}

/// A group's name. May be kept anywhere for ever.
#[derive(Clone, Copy)]
pub struct GroupName {
    link: &'static Link,
    generation: u64,
}

impl PartialEq for GroupName {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.link, other.link) && self.generation == other.generation
    }
}

impl Default for Group {
    fn default() -> Self {
        Self::new()
    }
}

impl Group {
    /// A group without objects.
    pub fn new() -> Self {
        let unborn = Link::take().conceive();
        let name = GroupName { link: unborn.link(), generation: unborn.generation() };
        unborn.show();
        Group { name }
    }

    /// Its name.
    pub fn name(&self) -> GroupName {
        self.name
    }

    /// Ends the group: from here on every name of every object in it is [`Gone`](crate::Gone). The objects themselves are freed
    /// when their owners let go of them.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.name.link.invalidate(reclaim::epoch);
        self.name.link.give();
    }
}

impl GroupName {
    /// Whether the group has ended.
    #[inline(always)]
    pub fn is_gone(&self) -> bool {
        !self.link.is(self.generation)
    }
}

impl Mortal for GroupName {
    fn watch_end(&self, waker: Waker) {
        self.link.watch(self.generation, waker, reclaim::epoch);
    }

    fn is_gone(&self) -> bool {
        GroupName::is_gone(self)
    }
}

// SAFETY: any thread may use such an object.
unsafe impl<T: Send + Sync> Home<T> for Group {
    type Mode = Grouped;

    fn of_object(&self) -> GroupName {
        self.name
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
        group.link.is(group.generation)
    }

    fn watch(link: &'static Link, generation: u64, group: GroupName, waker: Waker) {
        Shared::watch(link, generation, (), waker);
        group.watch_end(waker);
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

    #[inline(always)]
    fn invalidate(link: &'static Link) -> u64 {
        Shared::invalidate(link)
    }

    #[inline]
    unsafe fn bury(_: GroupName, link: &'static Link, object: NonNull<Header>, epoch: u64) {
        // SAFETY: by this function's contract.
        unsafe { Shared::bury((), link, object, epoch) };
    }

    #[inline]
    unsafe fn bury_now(_: GroupName, link: &'static Link, object: NonNull<Header>, epoch: u64, cx: &mut Cx) {
        // SAFETY: by this function's contract.
        unsafe { Shared::bury_now((), link, object, epoch, cx) };
    }

    fn reclaim(_: GroupName, cx: &mut Cx) {
        Shared::reclaim((), cx);
    }
}

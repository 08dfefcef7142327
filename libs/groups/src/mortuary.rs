//! What dies with a group and has a destructor. It is out of reach at the kill, in one step however much it is, and is destroyed afterwards in bounded
//! steps, by whoever wants memory next or has nothing better to do.
//!
//! - [`Objects`]: the objects of one type of a group, each with a destructor.
//! - [`Contents`]: all that a group has, as the program declares it: how it is cut off from the outside, and how it is destroyed step by step.
//! - [`Mortuary`]: the contents of groups that were killed.
//!
//! The node that a mortuary's list needs is made together with the group, so a kill allocates nothing.

use alloc::boxed::Box;

use refs::SpinLock;

use crate::scrub::{ChargeFrom, Charged, Scrub};
use crate::slots::{Slot, Slots};
use crate::{Budget, Class, Denied};

/// What a group has. Declared by the program, mostly as a struct of tables of this crate whose methods of the same names it calls.
pub trait Contents {
    /// The group dies: cuts every link to the outside ([`Exports::scrub`](crate::Exports::scrub), [`Imports::scrub`](crate::Imports::scrub)), ends what runs,
    /// gives memory back ([`Arena::scrub`](crate::Arena::scrub)), and puts everything else out of reach ([`Objects::scrub`]). What this takes is what was charged.
    fn scrub(&mut self, scrub: &mut Scrub);

    /// Destroys at most so many of what is left, and says how many. Fewer than `most` means that nothing is left. Called only after
    /// [`scrub`](Self::scrub), until that is so. By default nothing is left that is worth a step.
    fn destroy_step(&mut self, most: usize) -> usize {
        let _ = most;
        0
    }
}

/// Objects with destructors, by number. They are charged to the group's budget, as objects of a class that mostly costs nothing at the kill.
#[derive(Debug)]
pub struct Objects<'t, C: Class, T> {
    objects: Slots<T>,
    charged: Charged<'t, C>,
}

impl<'t, C: Class, T> Objects<'t, C, T> {
    /// An empty table, whose objects are charged to `budget` as ones of `class`.
    pub fn new(budget: Budget<'t, C>, class: C) -> Self {
        Objects { objects: Slots::new(), charged: Charged::new(budget, class) }
    }

    /// Adds an object. `from` charges the table's budget; another one is [`Denied::Ended`], and so is a group that dies.
    pub fn insert(&mut self, from: &mut impl ChargeFrom<'t, C>, object: impl FnOnce() -> T) -> Result<Slot<T>, Denied> {
        let one = self.charged.one(from)?;
        let slot = self.objects.insert(object());
        self.charged.keep(one);
        Ok(slot)
    }

    /// An object; `None` if it was removed, or the group dies.
    pub fn get(&self, slot: Slot<T>) -> Option<&T> {
        if self.charged.is_dying() { None } else { self.objects.get(slot) }
    }

    /// As [`get`](Self::get).
    pub fn get_mut(&mut self, slot: Slot<T>) -> Option<&mut T> {
        if self.charged.is_dying() { None } else { self.objects.get_mut(slot) }
    }

    /// Takes an object out.
    pub fn remove(&mut self, from: &mut impl ChargeFrom<'t, C>, slot: Slot<T>) -> Option<T> {
        if self.charged.is_dying() {
            return None;
        }
        let object = self.objects.remove(slot)?;
        self.charged.give_back(from);
        Some(object)
    }

    /// All objects, in no order; none if the group dies.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.objects.iter().filter(|_| !self.charged.is_dying())
    }

    /// How many there are, or are still to be destroyed.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts all objects out of reach. Nothing can be added any more.
    pub fn scrub(&mut self, scrub: &mut Scrub) {
        self.charged.die();
        scrub.deferred += self.objects.len() as u64;
    }

    /// Destroys at most so many objects, and says how many. (What their numbers took goes back in steps too, and each counts as one.)
    pub fn destroy_step(&mut self, most: usize) -> usize {
        for done in 0..most {
            if self.objects.take_any().is_none() && !self.objects.shrink_step() {
                return done;
            }
        }
        most
    }
}

/// The list's node and what lies in it.
pub(crate) struct Grave<'m, W: ?Sized> {
    next: Option<Box<Grave<'m, dyn Contents + Send + 'm>>>,
    pub(crate) contents: W,
}

impl<W> Grave<'_, W> {
    pub(crate) fn new(contents: W) -> Self {
        Grave { next: None, contents }
    }
}

type Buried<'m> = Box<Grave<'m, dyn Contents + Send + 'm>>;

/// The contents of killed groups that are still to be destroyed.
#[derive(Default)]
pub struct Mortuary<'m> {
    last: SpinLock<Option<Buried<'m>>>,
}

impl core::fmt::Debug for Mortuary<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mortuary").field("is_empty", &self.is_empty()).finish()
    }
}

impl<'m> Mortuary<'m> {
    /// An empty one.
    pub fn new() -> Self {
        Mortuary { last: SpinLock::new(None) }
    }

    /// Destroys at most so many objects, of whichever group. Returns how many it were; fewer than `most` means that nothing is left that nobody else is
    /// just destroying. The destructors run without a lock.
    pub fn step(&self, most: usize) -> usize {
        let mut left = most;
        while left > 0 {
            let Some(mut grave) = self.take() else { break };
            let done = grave.contents.destroy_step(left);
            if done >= left {
                self.bury(grave);
                return most;
            }
            // The node and the empty tables in it count too, so that many small groups make many steps.
            left -= done + 1;
        }
        most - left
    }

    /// Whether nothing is left to be destroyed, but for what somebody is just destroying.
    pub fn is_empty(&self) -> bool {
        self.last.with(|last| last.is_none())
    }

    pub(crate) fn bury(&self, mut grave: Buried<'m>) {
        self.last.with(|last| {
            grave.next = last.take();
            *last = Some(grave);
        });
    }

    fn take(&self) -> Option<Buried<'m>> {
        self.last.with(|last| {
            let mut grave = last.take()?;
            *last = grave.next.take();
            Some(grave)
        })
    }
}

impl Drop for Mortuary<'_> {
    /// Destroys everything that is left, one after the other.
    fn drop(&mut self) {
        while let Some(grave) = self.take() {
            drop(grave);
        }
    }
}

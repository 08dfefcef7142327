//! [`Group`]: what one client or workload has, with the budget that says within which time it is gone, and its death.
//!
//! | what is in it | what its death does | time |
//! | --- | --- | --- |
//! | names ([`Group::names`], `refs::Grouped`) | one store ends them all | constant |
//! | links to the outside ([`Exports`](crate::Exports), [`Imports`](crate::Imports)) | each is cut | per entry, charged |
//! | plain objects ([`Arena`](crate::Arena)) | the chain of chunks goes to the pool | constant, per arena |
//! | objects with destructors ([`Objects`](crate::Objects)) | they are out of reach, and go to the [`Mortuary`] | constant, per table |
//! | the budget | everything charged is given back in one step | constant, per class and level |

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

use crate::calibrate::Clock;
use crate::mortuary::{Contents, Grave, Mortuary};
use crate::scrub::Scrub;
use crate::{Budget, Charge, Class, Denied, Limits, OwnedBudget};

/// What one client has. It derefs to its contents.
///
/// Dropping it without [`kill`](Self::kill) destroys the contents one by one.
pub struct Group<'t, 'm, C: Class, W: Contents + Send + 'm> {
    names: Option<refs::Group>,
    grave: Box<Grave<'m, W>>,
    parent: Budget<'t, C>,
    base: Charge<'t, C>,
    budget: OwnedBudget<'t, C>,
}

impl<C: Class, W: Contents + Send + core::fmt::Debug> core::fmt::Debug for Group<'_, '_, C, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Group")
            .field("budget", &self.budget)
            .field("contents", &self.grave.contents)
            .finish_non_exhaustive()
    }
}

/// How a group died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What its objects were charged: no kill should take longer.
    pub charged: u64,
    /// What it took, from the end of its names to the end of its budget.
    pub measured: u64,
    /// Links to the outside that were cut.
    pub links: u64,
    /// Chunks of memory that went back.
    pub chunks: u64,
    /// Objects that are out of reach and still to be destroyed, by [`Mortuary::step`].
    pub deferred: u64,
}

impl Report {
    /// Whether it took longer than was charged: the costs are too low for this machine.
    pub fn is_overrun(&self) -> bool {
        self.measured > self.charged
    }
}

impl<'t, 'm, C: Class, W: Contents + Send + 'm> Group<'t, 'm, C, W> {
    /// Makes a group below `parent`. Its own end is charged to it as one object of class `base`. `contents` makes what it has, which charges the
    /// group's budget.
    pub fn new(
        parent: Budget<'t, C>,
        limits: Limits,
        base: C,
        contents: impl FnOnce(Budget<'t, C>) -> W,
    ) -> Result<Self, Denied> {
        let budget = parent.child(limits)?;
        let base = budget.charge(base, 1)?;
        let grave = Box::new(Grave::new(contents(*budget)));
        Ok(Group { names: None, grave, parent, base, budget })
    }

    /// Its budget.
    pub fn budget(&self) -> Budget<'t, C> {
        *self.budget
    }

    /// Where objects are made whose names end with the group: `StrongRc::new_in(group.names(), ..)`. Their owners can be among its [`Objects`](crate::Objects).
    pub fn names(&mut self) -> &refs::Group {
        self.names.get_or_insert_default()
    }

    /// Ends the group. When this returns, no name leads into it, every link to the outside is cut, its chunks are in their pool, and its budget is its
    /// parent's again; what has destructors is in `mortuary`. Nothing that uses the group may run any more: whoever has tasks or threads in it ends
    /// them before, or in [`Contents::scrub`].
    pub fn kill(self, mortuary: &Mortuary<'m>, clock: &impl Clock) -> Report {
        let Group { names, mut grave, parent, base, budget } = self;
        let charged = budget.usage().map_or(0, |usage| usage.current);
        let start = clock.now();
        if let Some(names) = names {
            names.end();
        }
        let mut scrub = Scrub::default();
        grave.contents.scrub(&mut scrub);
        mortuary.bury(grave);
        // All of it has been reclaimed, so the base's charge goes with the others.
        core::mem::forget(base);
        budget.end();
        let measured = clock.now().saturating_sub(start);
        let Scrub { links, chunks, deferred } = scrub;
        let report = Report { charged, measured, links, chunks, deferred };
        if report.is_overrun() {
            parent.note_overrun();
        }
        report
    }
}

/// A group in a group dies with it: what it is charged is charged to the outer one too.
impl<C: Class, W: Contents + Send> Contents for Group<'_, '_, C, W> {
    fn scrub(&mut self, scrub: &mut Scrub) {
        if let Some(names) = self.names.take() {
            names.end();
        }
        self.grave.contents.scrub(scrub);
    }

    fn destroy_step(&mut self, most: usize) -> usize {
        self.grave.contents.destroy_step(most)
    }
}

impl<C: Class, W: Contents + Send> Deref for Group<'_, '_, C, W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.grave.contents
    }
}

impl<C: Class, W: Contents + Send> DerefMut for Group<'_, '_, C, W> {
    fn deref_mut(&mut self) -> &mut W {
        &mut self.grave.contents
    }
}

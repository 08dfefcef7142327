//! [`Budget`]: how long the reclamation of something may take at most, and what is charged to that. Budgets nest: what is charged to one is charged to all
//! above it, so a child has at most what each of its ancestors has left.

use core::ops::Deref;

use crate::tree::NodeName;
use crate::{Charge, Class, Cost, Tree};

/// Why something was not charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It would exceed the bound of the budget so many levels below the root.
    Full {
        /// The level that refused; the root's is 0.
        depth: u8,
    },
    /// The budget has ended, or one above it, or its owner has let go of it.
    Ended,
    /// There are as many levels as there can be ([`DEEPEST`](crate::DEEPEST)).
    TooDeep,
    /// There is no memory for another budget.
    NoMemory,
}

impl core::fmt::Display for Denied {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Denied::Full { depth } => write!(f, "the reclamation budget at level {depth} is used up"),
            Denied::Ended => f.write_str("the reclamation budget has ended"),
            Denied::TooDeep => f.write_str("reclamation budgets are nested too deeply"),
            Denied::NoMemory => f.write_str("there is no memory for another reclamation budget"),
        }
    }
}

impl core::error::Error for Denied {}

/// What a budget may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most that all charges together may cost, in the program's unit of time.
    pub bound: u64,
    /// What it has for sure: so much is charged to its ancestors when it is made, and what it uses of that is not charged to them again.
    pub reserved: u64,
}

impl Limits {
    /// A bound that bounds nothing. What is charged is counted.
    pub const UNBOUNDED: u64 = u64::MAX;

    /// A bound, and nothing reserved.
    pub const fn bound(bound: u64) -> Limits {
        Limits { bound, reserved: 0 }
    }
}

/// What is charged to a budget at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Usage<C: Class> {
    /// Its bound; [`Limits::UNBOUNDED`] if there is none.
    pub bound: u64,
    /// What it has reserved.
    pub reserved: u64,
    /// What its charges cost at the kill, with what budgets below it have reserved and what stocks hold.
    pub current: u64,
    /// The most that this has been.
    pub peak: u64,
    /// How often it refused something, for itself or for a budget below it.
    pub denied: u64,
    /// How many kills of groups below it took longer than was charged.
    pub overruns: u64,
    pub(crate) counts: C::PerClass<u64>,
    pub(crate) costs: C::PerClass<Cost>,
}

impl<C: Class> Usage<C> {
    /// How many objects of a class are charged, by it and all budgets below it.
    pub fn count(&self, class: C) -> u64 {
        self.counts.as_ref()[class.index()]
    }

    /// What they cost at the kill.
    pub fn eager(&self, class: C) -> u64 {
        self.count(class).saturating_mul(self.costs.as_ref()[class.index()].eager)
    }

    /// What all charged objects cost after the kill.
    pub fn deferred(&self) -> u64 {
        let of_class = |&class: &C| self.count(class).saturating_mul(self.costs.as_ref()[class.index()].deferred);
        C::ALL.iter().map(of_class).fold(0, u64::saturating_add)
    }
}

/// A budget by name. It charges as long as the budget has not ended; then everything is [`Denied::Ended`].
pub struct Budget<'t, C: Class> {
    tree: &'t Tree<C>,
    name: NodeName,
}

impl<C: Class> Clone for Budget<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Class> Copy for Budget<'_, C> {}

impl<C: Class> PartialEq for Budget<'_, C> {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.tree, other.tree) && self.name == other.name
    }
}

impl<C: Class> Eq for Budget<'_, C> {}

impl<C: Class> core::fmt::Debug for Budget<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Budget").field(&self.name).finish()
    }
}

impl<'t, C: Class> Budget<'t, C> {
    #[inline(always)]
    pub(crate) fn new(tree: &'t Tree<C>, name: NodeName) -> Self {
        Budget { tree, name }
    }

    /// The tree that it is part of.
    #[inline(always)]
    pub fn tree(self) -> &'t Tree<C> {
        self.tree
    }

    #[inline(always)]
    pub(crate) fn name(self) -> NodeName {
        self.name
    }

    /// Charges it and all above it for so many objects of a class, or none of them. Takes the tree's lock; a [`Stock`](crate::Stock) does not.
    pub fn charge(self, class: C, count: u32) -> Result<Charge<'t, C>, Denied> {
        self.tree.admit(self.name, class, count)?;
        Ok(Charge::new(self, class, count))
    }

    /// Counts a refusal of a [`Bundle`](crate::Bundle) that it was charged for in vain: of its own, or of a budget above it. Nothing else is left to be given back for that.
    pub fn count_refusal(self, denied: Denied) {
        if let Denied::Full { depth } = denied {
            self.tree.with(|nodes| nodes.count_refusal(self.name, depth));
        }
    }

    /// Makes a budget below it.
    pub fn child(self, limits: Limits) -> Result<OwnedBudget<'t, C>, Denied> {
        let tree = self.tree;
        let made = tree.with(|nodes| nodes.make(self.name, limits).map_err(|refusal| tree.refuse(nodes, refusal)));
        made.map(|name| OwnedBudget { budget: Budget::new(tree, name) })
    }

    /// Gives it another bound. One below what is in use is allowed: nothing more is admitted until less is in use.
    pub fn set_bound(self, bound: u64) {
        self.tree.with(|nodes| {
            if nodes.set_bound(self.name, bound) {
                self.tree.recall_stocks();
            }
        });
    }

    /// What is charged at this moment; `None` if it has ended.
    pub fn usage(self) -> Option<Usage<C>> {
        self.tree.with(|nodes| nodes.usage(self.name))
    }

    /// Counts that the kill of a group below it took longer than was charged.
    pub fn note_overrun(self) {
        self.tree.with(|nodes| nodes.note_overrun(self.name));
    }
}

/// Ownership of a budget. Dropping it lets nothing more be charged; what is charged already stays charged, to its ancestors too, until it is given back.
#[derive(Debug)]
pub struct OwnedBudget<'t, C: Class> {
    budget: Budget<'t, C>,
}

impl<C: Class> OwnedBudget<'_, C> {
    /// Ends it: everything that is charged to it, or to a budget below it, is given back at once to its ancestors, however much it is, and its charges mean
    /// nothing from now on.
    ///
    /// Whoever calls this says that all of it has been reclaimed, but for what is deferred.
    pub fn end(self) {
        let Budget { tree, name } = self.budget;
        core::mem::forget(self);
        tree.with(|nodes| {
            nodes.end(name);
            tree.recall_stocks();
        });
    }
}

impl<'t, C: Class> Deref for OwnedBudget<'t, C> {
    type Target = Budget<'t, C>;

    fn deref(&self) -> &Budget<'t, C> {
        &self.budget
    }
}

impl<C: Class> Drop for OwnedBudget<'_, C> {
    fn drop(&mut self) {
        let Budget { tree, name } = self.budget;
        tree.with(|nodes| {
            nodes.close(name);
            tree.recall_stocks();
        });
    }
}

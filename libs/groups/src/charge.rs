//! [`Charge`]: a value that says that something is paid for. Dropping it gives back what was charged.

use core::mem;

use crate::{Budget, Class, Denied};

/// So many objects of a class are charged to a budget and to all above it. Kept with the objects; dropping it gives the charge back, unless the budget
/// has ended meanwhile: then that gave everything back.
///
/// Forgetting it (`mem::forget`) leaves the charge in place until the budget ends.
#[must_use = "dropping it gives the charge back"]
#[derive(Debug)]
pub struct Charge<'t, C: Class> {
    budget: Budget<'t, C>,
    class: C,
    count: u32,
}

impl<'t, C: Class> Charge<'t, C> {
    /// What was charged becomes a value.
    #[inline(always)]
    pub(crate) fn new(budget: Budget<'t, C>, class: C, count: u32) -> Self {
        Charge { budget, class, count }
    }

    /// A charge for nothing yet.
    pub fn none(budget: Budget<'t, C>, class: C) -> Self {
        Charge { budget, class, count: 0 }
    }

    /// The budget that is charged.
    #[inline(always)]
    pub fn budget(&self) -> Budget<'t, C> {
        self.budget
    }

    /// For objects of which class.
    #[inline(always)]
    pub fn class(&self) -> C {
        self.class
    }

    /// For how many.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Charges for more objects.
    pub fn grow(&mut self, more: u32) -> Result<(), Denied> {
        let count = self.count.checked_add(more).ok_or(Denied::Full { depth: 0 })?;
        self.budget.tree().admit(self.budget.name(), self.class, more)?;
        self.count = count;
        Ok(())
    }

    /// Takes a part of it away, which is given back when that is dropped. `None` if there are not so many.
    pub fn split(&mut self, count: u32) -> Option<Charge<'t, C>> {
        self.count = self.count.checked_sub(count)?;
        Some(Charge { count, ..*self })
    }

    /// Adds another charge to it; one of another budget or class, or too large a one, comes back.
    pub fn merge(&mut self, other: Charge<'t, C>) -> Result<(), Charge<'t, C>> {
        match self.count.checked_add(other.count) {
            Some(count) if self.budget == other.budget && self.class == other.class => {
                self.count = count;
                mem::forget(other);
                Ok(())
            }
            _ => Err(other),
        }
    }

    /// Moves the charge to another budget of the same tree, in one step: their common ancestors are not charged twice. If that has no room, or
    /// is of another tree ([`Denied::Ended`]), nothing changes.
    pub fn transfer(&mut self, to: Budget<'t, C>) -> Result<(), Denied> {
        let tree = self.budget.tree();
        if !core::ptr::eq(tree, to.tree()) {
            return Err(Denied::Ended);
        }
        let (from, class, count) = (self.budget.name(), self.class, self.count);
        tree.with(|nodes| {
            nodes.transfer(from, to.name(), class, count).map_err(|refusal| tree.refuse(nodes, refusal))
        })?;
        self.budget = to;
        Ok(())
    }

    /// Gives up the value and leaves the charge in place: for a stock that takes it back.
    #[inline(always)]
    pub(crate) fn leave(self) {
        mem::forget(self);
    }
}

impl<C: Class> Drop for Charge<'_, C> {
    #[inline]
    fn drop(&mut self) {
        if self.count > 0 {
            self.budget.tree().with(|nodes| nodes.remove(self.budget.name(), self.class, self.count));
        }
    }
}

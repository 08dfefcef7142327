//! [`Stock`]: charges at hand. A thread or a core that charges often takes them from a budget by the batch, and hands them out without an atomic
//! instruction.
//!
//! What a stock holds is charged, so it can never admit too much. It could refuse too much, elsewhere: somebody is refused because stocks hold what he
//! wants. That does not last. A node that refuses is *short* from then on, and says so in the tree's recall counter, which every stock compares before it
//! hands anything out or takes anything in: one load of a word that is rarely written. A stock that finds it changed looks at the nodes above it, and
//! gives back everything if one of them is short; it keeps nothing as long as that is so: until there is room for what was refused, or stocks have taken a few
//! hundred charges one by one. So once every stock below a node has been used (or [settled](Stock::settle)) after a refusal, whoever asks again before that
//! is refused only if there is no room.
//!
//! A stock that nobody uses gives nothing back. Whoever lets a thread sleep, or a core idle, calls [`settle`](Stock::settle) first.

use crate::tree::{Nodes, Refusal};
use crate::{Budget, Charge, Class, Denied};

/// Charges to one budget, at hand for one thread.
#[derive(Debug)]
pub struct Stock<'t, C: Class> {
    budget: Budget<'t, C>,
    /// Charged, and handed to nobody.
    spare: C::PerClass<u32>,
    /// What the tree's recall counter was when this stock last looked.
    seen: u64,
    batch: u32,
    /// How many objects of a class it may hold: none if it is short.
    most: u32,
    /// When it last looked, something above was short: it holds nothing.
    is_short: bool,
}

impl<'t, C: Class> Stock<'t, C> {
    /// A stock for charges to `budget` that takes `batch` objects at a time, and holds twice as many of each class at most. It holds nothing yet.
    pub fn new(budget: Budget<'t, C>, batch: u32) -> Self {
        // One lower, so that it looks before it first holds anything.
        let seen = budget.tree().recalls().wrapping_sub(1);
        let batch = batch.min(u32::MAX / 4);
        Stock { budget, spare: C::table(|_| 0), seen, batch, most: 2 * batch, is_short: false }
    }

    /// The budget that is charged.
    pub fn budget(&self) -> Budget<'t, C> {
        self.budget
    }

    /// How many objects of a class could be charged without asking the budget.
    pub fn spare(&self, class: C) -> u32 {
        self.spare.as_ref()[class.index()]
    }

    /// Charges the budget and all above it, as [`Budget::charge`] does.
    #[inline(always)]
    pub fn charge(&mut self, class: C, count: u32) -> Result<Charge<'t, C>, Denied> {
        let spare = &mut self.spare.as_mut()[class.index()];
        match spare.checked_sub(count) {
            Some(left) if self.seen == self.budget.tree().recalls() => *spare = left,
            _ => self.charge_from_budget(class, count)?,
        }
        Ok(Charge::new(self.budget, class, count))
    }

    /// Takes back a charge, to hand it out again. One of another budget is dropped.
    #[inline(always)]
    pub fn give_back(&mut self, charge: Charge<'t, C>) {
        let spare = &mut self.spare.as_mut()[charge.class().index()];
        let has_room = charge.count() <= self.most.saturating_sub(*spare);
        if has_room && charge.budget() == self.budget && self.seen == self.budget.tree().recalls() {
            *spare += charge.count();
            charge.leave();
        } else {
            self.give_to_budget(charge);
        }
    }

    /// Gives back what is spare to the budget: before its thread sleeps.
    pub fn settle(&mut self) {
        if self.spare.as_ref().iter().any(|&spare| spare > 0) {
            self.budget.tree().with(|nodes| self.give_all(nodes));
        }
    }

    /// Takes more from the budget, whose tree is locked.
    #[cold]
    fn charge_from_budget(&mut self, class: C, count: u32) -> Result<(), Denied> {
        let tree = self.budget.tree();
        tree.with(|nodes| {
            self.look(nodes);
            if let Some(left) = self.spare(class).checked_sub(count) {
                self.spare.as_mut()[class.index()] = left;
                return Ok(());
            }
            let taken = self.take(nodes, class, count).or_else(|refusal| {
                // What it holds itself, of other classes, may be what is missing.
                tree.learn(refusal);
                self.look(nodes);
                self.take(nodes, class, count).map_err(|refusal| tree.refuse(nodes, refusal))
            })?;
            self.spare.as_mut()[class.index()] += taken - count;
            Ok(())
        })
    }

    fn take(&self, nodes: &mut Nodes<C>, class: C, count: u32) -> Result<u32, Refusal> {
        nodes.admit_batch(self.budget.name(), class, count, self.batch, self.is_short)
    }

    /// Gives back a charge that does not fit, and what is more than a batch: the next few fit again.
    #[cold]
    fn give_to_budget(&mut self, charge: Charge<'t, C>) {
        if charge.budget() != self.budget {
            return drop(charge);
        }
        let (name, class) = (self.budget.name(), charge.class());
        self.budget.tree().with(|nodes| {
            self.look(nodes);
            nodes.remove(name, class, charge.count());
            let spare = &mut self.spare.as_mut()[class.index()];
            if let Some(beyond) = spare.checked_sub(self.batch) {
                nodes.remove(name, class, beyond);
                *spare = self.batch;
            }
        });
        charge.leave();
    }

    /// Learns of what was changed since it last looked. The tree is locked.
    fn look(&mut self, nodes: &mut Nodes<C>) {
        let recalls = self.budget.tree().recalls();
        if self.seen != recalls || self.is_short {
            self.seen = recalls;
            self.is_short = nodes.is_short(self.budget.name());
            self.most = if self.is_short { 0 } else { 2 * self.batch };
            if self.is_short {
                self.give_all(nodes);
            }
        }
    }

    fn give_all(&mut self, nodes: &mut Nodes<C>) {
        for &class in C::ALL {
            let spare = core::mem::take(&mut self.spare.as_mut()[class.index()]);
            if spare > 0 {
                nodes.remove(self.budget.name(), class, spare);
            }
        }
    }
}

impl<C: Class> Drop for Stock<'_, C> {
    fn drop(&mut self) {
        self.settle();
    }
}

//! [`Bundle`]: the charges for all that a container holds, of several classes and to one budget, in one value.
//!
//! A table, a process or a connection holds objects of many classes, and gives them up together. A [`Charge`](crate::Charge) for each class would take as many
//! words, and as many turns with the tree's lock when the container is made, copied, moved and ended. A bundle takes one each time.

use crate::tree::Counts;
use crate::{Budget, Class, Denied};

/// So many objects of each of `N` classes are charged to a budget and to all above it: of those from the class with the index `FIRST` on. Dropping it gives all of that back, unless the budget has
/// ended meanwhile.
///
/// What is refused may be asked for again, when something else was given back for it; so a refusal counts ([`Usage::denied`](crate::Usage)) when whoever asks says that it is the last word ([`Budget::count_refusal`]).
///
/// One that [nobody](Self::of_nobody) is charged for covers as many objects as there can be: whoever compares what there is with what is charged for need not know whether somebody is.
///
/// ```
/// use groups::{Bundle, Class, Cost, Denied, Limits, Tree, classes};
///
/// classes! {
///     enum Held { Reserved = Cost::eager(20), File = Cost::eager(10), Socket = Cost::eager(20) }
/// }
///
/// let tree: Tree<Held> = Tree::new();
/// let (job, other) = (tree.root().child(Limits::bound(100))?, tree.root().child(Limits::bound(15))?);
///
/// // A table of descriptors with two files and a socket is copied.
/// let mut table: Bundle<Held, 0, 3> = Bundle::charge(*job, Held::table(|class| match class {
///     Held::File => 2,
///     Held::Socket => 1,
///     Held::Reserved => 0,
/// }))?;
/// assert_eq!(job.usage().map(|usage| usage.current), Some(40));
///
/// // A call takes a descriptor before it knows for what; that it is a socket is not refused any more.
/// table.grow(Held::Reserved, 1)?;
/// table.turn(Held::Reserved, Held::Socket, 0);
/// assert_eq!((table.count(Held::Reserved), table.count(Held::Socket)), (0, 2));
/// assert_eq!(table.grow(Held::Socket, 3), Err(Denied::Full { depth: 1 }));
///
/// // The process moves to another group, whatever that one may use: it admits nothing more.
/// table.move_to(*other)?;
/// assert_eq!((job.usage().map(|usage| usage.current), other.usage().map(|usage| usage.current)), (Some(0), Some(60)));
/// assert!(table.grow(Held::File, 1).is_err());
/// drop(table);
/// assert_eq!(other.usage().map(|usage| usage.current), Some(0));
/// # Ok::<(), Denied>(())
/// ```
#[must_use = "dropping it gives the charges back"]
#[derive(Debug)]
pub struct Bundle<'t, C: Class, const FIRST: usize, const N: usize> {
    /// `None`: nobody is charged.
    budget: Option<Budget<'t, C>>,
    counts: [u32; N],
}

impl<'t, C: Class, const FIRST: usize, const N: usize> Bundle<'t, C, FIRST, N> {
    /// For as many objects as there can be, which nobody is charged for.
    #[inline(always)]
    pub const fn of_nobody() -> Self {
        Bundle { budget: None, counts: [u32::MAX; N] }
    }

    /// Charges for all that `counts` says, or for nothing.
    ///
    /// # Errors
    /// As for [`Budget::charge`].
    pub fn charge(budget: Budget<'t, C>, counts: [u32; N]) -> Result<Self, Denied> {
        if is_some(&counts) {
            let (tree, counts) = (budget.tree(), Counts { first: FIRST, counts: &counts });
            tree.with(|nodes| nodes.admit_all(budget.name(), counts).map_err(|refusal| tree.learn(refusal)))?;
        }
        Ok(Bundle { budget: Some(budget), counts })
    }

    #[inline(never)]
    fn give_back(&self, budget: Budget<'t, C>) {
        if !self.is_empty() {
            let counts = Counts { first: FIRST, counts: &self.counts };
            budget.tree().with(|nodes| nodes.remove_all(budget.name(), counts));
        }
    }

    /// Charges for all that `counts` says, which may come next, if that leaves everybody room for some times as much. Nobody is told of a refusal.
    pub fn charge_ahead(budget: Budget<'t, C>, counts: [u32; N]) -> Option<Self> {
        let of_counts = Counts { first: FIRST, counts: &counts };
        let is_charged = budget.tree().with(|nodes| nodes.admit_ahead(budget.name(), of_counts));
        is_charged.then(|| Bundle { budget: Some(budget), counts })
    }

    /// For nothing yet.
    #[inline(always)]
    pub const fn empty(budget: Budget<'t, C>) -> Self {
        Bundle { budget: Some(budget), counts: [0; N] }
    }

    /// Takes charges for all that `counts` says out of another bundle; or nothing, if that has not as many of each class.
    ///
    /// # Panics
    /// If the other one is not for all these classes.
    pub fn take_from<const F: usize, const M: usize>(
        other: &mut Bundle<'t, C, F, M>,
        counts: [u32; N],
    ) -> Option<Self> {
        let theirs = &mut other.counts[FIRST - F..][..N];
        if other.budget.is_none() || theirs.iter().zip(&counts).any(|(has, wanted)| has < wanted) {
            return None;
        }
        theirs.iter_mut().zip(&counts).for_each(|(has, taken)| *has -= taken);
        Some(Bundle { budget: other.budget, counts })
    }

    /// Leaves its charges to another bundle, if that is charged to the same budget: so many of each class that the other one has no more than `most` by that. The others stay.
    ///
    /// # Panics
    /// If the other one is not for all these classes.
    pub fn leave_to<const F: usize, const M: usize>(&mut self, other: &mut Bundle<'t, C, F, M>, most: u32) {
        if self.budget.is_none() || self.budget != other.budget {
            return;
        }
        for (theirs, own) in other.counts[FIRST - F..][..N].iter_mut().zip(&mut self.counts) {
            let left = most.saturating_sub(*theirs).min(*own);
            *theirs += left;
            *own -= left;
        }
    }

    /// Whether it is for nothing.
    pub fn is_empty(&self) -> bool {
        !is_some(&self.counts)
    }

    /// The budget that is charged.
    #[inline(always)]
    pub fn budget(&self) -> Option<Budget<'t, C>> {
        self.budget
    }

    /// For how many objects of a class.
    ///
    /// # Panics
    /// If it is for objects of other classes.
    #[inline(always)]
    pub fn count(&self, class: C) -> u32 {
        self.counts[class.index() - FIRST]
    }

    #[inline(always)]
    fn count_mut(&mut self, class: C) -> &mut u32 {
        &mut self.counts[class.index() - FIRST]
    }

    /// Charges for more objects of a class.
    ///
    /// # Errors
    /// As for [`Budget::charge`]; then nothing changes.
    pub fn grow(&mut self, class: C, more: u32) -> Result<(), Denied> {
        let Some(budget) = self.budget else { return Ok(()) };
        let count = self.count(class).checked_add(more).ok_or(Denied::Full { depth: 0 })?;
        let tree = budget.tree();
        tree.with(|nodes| nodes.admit(budget.name(), class, more).map_err(|refusal| tree.learn(refusal)))?;
        *self.count_mut(class) = count;
        Ok(())
    }

    /// Gives back the charges for so many objects of a class, or for all that there are.
    pub fn shrink(&mut self, class: C, less: u32) {
        let Some(budget) = self.budget else { return };
        let count = self.count_mut(class);
        let less = less.min(*count);
        *count -= less;
        budget.tree().with(|nodes| nodes.remove(budget.name(), class, less));
    }

    /// Charges for more objects of a class, whatever the bounds.
    pub fn grow_always(&mut self, class: C, more: u32) {
        let (Some(budget), Some(count)) = (self.budget, self.count(class).checked_add(more)) else { return };
        let (tree, name) = (budget.tree(), budget.name());
        let added = tree.with(|nodes| {
            let is_news = nodes.add_all(name, Counts { first: class.index(), counts: &[more] });
            if is_news == Ok(true) {
                tree.recall_stocks();
            }
            is_news
        });
        if added.is_ok() {
            *self.count_mut(class) = count;
        }
    }

    /// Charges for more objects of a class, and for up to `ahead` that may come next if that leaves everybody room; how many it is.
    ///
    /// # Errors
    /// As for [`Budget::charge`]; then nothing changes.
    pub fn grow_ahead(&mut self, class: C, more: u32, ahead: u32) -> Result<u32, Denied> {
        let Some(budget) = self.budget else { return Ok(more) };
        let (tree, name) = (budget.tree(), budget.name());
        let batch = more.saturating_add(ahead);
        if self.count(class).checked_add(batch).is_none() {
            return Err(Denied::Full { depth: 0 });
        }
        let taken = tree
            .with(|nodes| nodes.admit_batch(name, class, more, batch, false).map_err(|refusal| tree.learn(refusal)))?;
        *self.count_mut(class) += taken;
        Ok(taken)
    }

    /// An object of one class has become one of another, whatever the bounds: for a class that stands for what is not known yet, and costs as much as any that it may turn into. Where there is
    /// room the charge for the first stays, for the next one, and up to `ahead` of the second are charged beyond the one.
    pub fn turn(&mut self, from: C, to: C, ahead: u32) {
        let Some(budget) = self.budget else { return };
        let (name, more) = (budget.name(), 1 + ahead);
        let (Some(left), Some(count)) = (self.count(from).checked_sub(1), self.count(to).checked_add(more)) else {
            return;
        };
        let has_room = budget.tree().with(|nodes| nodes.turn(name, from, to, more));
        if has_room {
            *self.count_mut(to) = count;
        } else {
            *self.count_mut(from) = left;
            *self.count_mut(to) += 1;
        }
    }

    /// Moves all charges to another budget of the same tree, in one step, whatever its bounds: it admits nothing more until it has come down. Common ancestors are charged all the time. (What nobody
    /// is charged for is not moved: see [`charge_always`](Self::charge_always).)
    ///
    /// # Errors
    /// [`Denied::Ended`]: that budget has ended, or is of another tree. Nothing changes.
    pub fn move_to(&mut self, to: Budget<'t, C>) -> Result<(), Denied> {
        let Some(budget) = self.budget else { return Ok(()) };
        let tree = budget.tree();
        if !core::ptr::eq(tree, to.tree()) {
            return Err(Denied::Ended);
        }
        tree.with(|nodes| {
            if nodes.move_all(budget.name(), to.name(), Counts { first: FIRST, counts: &self.counts })? {
                tree.recall_stocks();
            }
            Ok(())
        })?;
        self.budget = Some(to);
        Ok(())
    }

    /// Charges a budget for all that `counts` says, whatever its bounds: for objects that were there before they came under it.
    ///
    /// # Errors
    /// [`Denied::Ended`].
    pub fn charge_always(budget: Budget<'t, C>, counts: [u32; N]) -> Result<Self, Denied> {
        let tree = budget.tree();
        tree.with(|nodes| {
            if nodes.add_all(budget.name(), Counts { first: FIRST, counts: &counts })? {
                tree.recall_stocks();
            }
            Ok(())
        })?;
        Ok(Bundle { budget: Some(budget), counts })
    }
}

impl<C: Class, const FIRST: usize, const N: usize> Drop for Bundle<'_, C, FIRST, N> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(budget) = self.budget {
            self.give_back(budget);
        }
    }
}

#[inline(always)]
fn is_some(counts: &[u32]) -> bool {
    counts.iter().fold(0, |all, count| all | count) != 0
}

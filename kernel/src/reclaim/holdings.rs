//! [`Holdings`]: what a container holds, and what of that is charged.

use alloc::boxed::Box;

use groups::{Bundle, Class, DEEPEST, Denied};

use super::{Held, Payer};
use crate::error::{Errno, Result};

type Counts = <Held as Class>::PerClass<u32>;

/// So many charges of a class a container may keep beyond what it holds, or one for eight objects, up to [`MOST_SPARE`].
pub const SPARE: u32 = 2;
const MOST_SPARE: u32 = 64;

/// How many charges are kept beyond so many objects.
fn spare(count: u32) -> u32 {
    (count / 8).clamp(SPARE, MOST_SPARE)
}

/// What a container holds, by class, and the charges for it. Its owner locks it.
///
/// Owner: the container; its destruction gives all charges back in one turn with the tree's lock, some hundred instructions for each level of budgets. Nobody waits for it.
pub struct Holdings {
    counts: Counts,
    paid: Option<Box<Paid>>,
}

/// Who is charged, and for what.
struct Paid {
    /// For as many at least as there are objects of each class.
    bundle: Bundle<'static, Held>,
    /// Who is charged once that budget is there no more: what outlives the group that has made it stays charged to those above.
    above: [Payer; DEEPEST as usize],
}

impl Paid {
    fn new(bundle: Bundle<'static, Held>) -> Box<Paid> {
        Box::new(Paid { above: bundle.budget().above(), bundle })
    }

    /// The budget has ended. Charges the nearest one above that is there, whatever its bound; false if there is none.
    #[cold]
    fn fall_back(&mut self) -> bool {
        let next = self.above.iter().flatten().find(|budget| self.bundle.move_to(**budget).is_ok());
        let Some(next) = next else { return false };
        self.above = next.above();
        true
    }
}

impl Default for Holdings {
    fn default() -> Self {
        Holdings { counts: Held::table(|_| 0), paid: None }
    }
}

impl Holdings {
    /// How many objects of a class it holds.
    pub fn count(&self, class: Held) -> u32 {
        self.counts[class.index()]
    }

    /// Who is charged.
    pub fn payer(&self) -> Payer {
        self.paid.as_ref().map(|paid| paid.bundle.budget())
    }

    /// So many objects of a class are to be made.
    ///
    /// # Errors
    /// ENOMEM: the budget has no room for them.
    #[inline(always)]
    pub fn add(&mut self, class: Held, more: u32) -> Result<()> {
        self.counts[class.index()] += more;
        if self.paid.is_some() { self.pay_for(class, more) } else { Ok(()) }
    }

    #[inline(never)]
    fn pay_for(&mut self, class: Held, more: u32) -> Result<()> {
        let Some(paid) = &mut self.paid else { return Ok(()) };
        let missing = self.counts[class.index()].saturating_sub(paid.bundle.count(class));
        if missing == 0 {
            return Ok(());
        }
        // With some that come next.
        let ahead = spare(self.counts[class.index()]) / 2;
        let mut grown = paid.bundle.grow_ahead(class, missing, ahead);
        if grown == Err(Denied::Ended) {
            // The controller was disabled, or the group removed.
            if !paid.fall_back() {
                self.paid = None;
                return Ok(());
            }
            grown = paid.bundle.grow_ahead(class, missing, ahead);
        }
        if grown.is_err() && !self.pay_with_spare(class, missing) {
            self.counts[class.index()] -= more;
            super::note_denied();
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    /// What it keeps of other classes may be what is missing.
    #[cold]
    fn pay_with_spare(&mut self, class: Held, missing: u32) -> bool {
        let Some(Paid { bundle: paid, .. }) = self.paid.as_deref_mut() else { return false };
        for &other in Held::ALL {
            let spare = paid.count(other).saturating_sub(self.counts[other.index()]);
            if spare > 0 {
                paid.shrink(other, spare);
            }
        }
        paid.grow(class, missing).is_ok()
    }

    /// An object of a class is held again, whatever the bound.
    pub fn add_always(&mut self, class: Held) {
        self.counts[class.index()] += 1;
        if let Some(paid) = &mut self.paid
            && paid.bundle.count(class) < self.counts[class.index()]
        {
            paid.bundle.grow_always(class, 1);
        }
    }

    /// So many objects of a class are gone.
    #[inline(always)]
    pub fn remove(&mut self, class: Held, less: u32) {
        self.counts[class.index()] -= less;
        if self.paid.is_some() {
            self.take_back(class);
        }
    }

    #[inline(never)]
    fn take_back(&mut self, class: Held) {
        let Some(Paid { bundle: paid, .. }) = self.paid.as_deref_mut() else { return };
        let count = self.counts[class.index()];
        let kept = paid.count(class).saturating_sub(count);
        let most = spare(count);
        if kept > most {
            paid.shrink(class, kept - most / 2);
        }
    }

    /// An object of one class has become one of another, which costs no more.
    #[inline(always)]
    pub fn exchange(&mut self, from: Held, to: Held) {
        self.counts[from.index()] -= 1;
        self.counts[to.index()] += 1;
        if self.paid.is_some() {
            self.pay_for_exchange(from, to);
        }
    }

    /// The charge for the first stays, for the next object of that class, unless the budget has no room for that.
    #[inline(never)]
    fn pay_for_exchange(&mut self, from: Held, to: Held) {
        let Some(Paid { bundle: paid, .. }) = self.paid.as_deref_mut() else { return };
        let count = self.counts[to.index()];
        if paid.count(to) < count {
            paid.turn(from, to, spare(count) / 2);
        }
    }

    /// The same objects, for a copy of the container, charged to nobody yet.
    pub fn copy(&self, without: Held) -> Holdings {
        let mut counts = self.counts;
        counts[without.index()] = 0;
        Holdings { counts, paid: None }
    }

    /// Charges all that there is to somebody; for a container that is charged to nobody.
    ///
    /// # Errors
    /// ENOMEM: there is no room in the budget; then it is charged to nobody.
    pub fn begin(&mut self, payer: Payer) -> Result<()> {
        let Some(budget) = payer else { return Ok(()) };
        match Bundle::charge(budget, self.counts) {
            Ok(bundle) => self.paid = Some(Paid::new(bundle)),
            Err(Denied::Ended) => self.paid = None,
            Err(_) => {
                super::note_denied();
                return Err(Errno::ENOMEM);
            }
        }
        Ok(())
    }

    /// Has somebody else charged from now on, whatever the bound.
    pub fn move_to(&mut self, payer: Payer) {
        match (payer, &mut self.paid) {
            (None, paid) => *paid = None,
            // A budget that has ended is nobody's.
            (Some(budget), Some(paid)) => {
                if paid.bundle.budget() != budget {
                    match paid.bundle.move_to(budget) {
                        Ok(()) => paid.above = budget.above(),
                        Err(_) => self.paid = None,
                    }
                }
            }
            (Some(budget), None) => {
                self.paid = Bundle::charge_always(budget, self.counts).ok().map(Paid::new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use groups::{Limits, Tree};

    use super::*;

    fn tree() -> &'static Tree<Held> {
        Box::leak(Box::new(Tree::new()))
    }

    #[test]
    fn what_has_no_payer_is_counted_and_never_refused() {
        let mut held = Holdings::default();
        held.add(Held::Pipe, 1_000_000).expect("nobody refuses");
        held.remove(Held::Pipe, 999_999);
        assert_eq!((held.count(Held::Pipe), held.payer().is_none()), (1, true));
    }

    #[test]
    fn a_bound_refuses_and_what_is_refused_is_not_held() {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(10 * super::super::assumed(Held::Pipe))).expect("a budget");
        let mut held = Holdings::default();
        held.begin(Some(*budget)).expect("nothing yet");
        let made = (0..20).filter(|_| held.add(Held::Pipe, 1).is_ok()).count();
        assert_eq!((made, held.count(Held::Pipe)), (10, 10));
        held.remove(Held::Pipe, 3);
        // What it keeps of one class gives way to another.
        assert!(held.add(Held::EpollItem, 1).is_ok());
        drop(held);
        assert_eq!(budget.usage().map(|usage| usage.current), Some(0));
    }

    #[test]
    fn who_opens_and_closes_in_turn_keeps_a_charge_and_no_more() {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(u64::MAX)).expect("a budget");
        let mut held = Holdings::default();
        held.begin(Some(*budget)).expect("room");
        let mut most = 0;
        for count in [1, 3, 100, 5] {
            held.add(Held::File, count).expect("room");
            held.remove(Held::File, count);
            let charged = budget.usage().map_or(0, |usage| usage.count(Held::File));
            most = most.max(charged);
        }
        assert!(most <= u64::from(SPARE), "{most}");
        held.add(Held::Reserved, 1).expect("room");
        held.exchange(Held::Reserved, Held::Socket);
        assert_eq!((held.count(Held::Reserved), held.count(Held::Socket)), (0, 1));
    }

    #[test]
    fn what_outlives_its_group_stays_charged_to_those_above() {
        let tree = tree();
        let above = tree.root().child(Limits::bound(5 * super::super::assumed(Held::Message))).expect("above");
        let middle = above.child(Limits::bound(u64::MAX)).expect("between");
        let own = middle.child(Limits::bound(u64::MAX)).expect("its own");
        let mut held = Holdings::default();
        held.begin(Some(*own)).expect("nothing yet");
        drop((own, middle));
        let made = (0..20).filter(|_| held.add(Held::Message, 1).is_ok()).count();
        assert_eq!((made, held.payer()), (5, Some(*above)));
        drop(held);
        assert_eq!(above.usage().map(|usage| usage.current), Some(0));
    }

    #[test]
    fn a_move_is_never_refused_and_counts_above_both_once() {
        let tree = tree();
        let above = tree.root().child(Limits::bound(u64::MAX)).expect("a budget");
        let (from, to) =
            (above.child(Limits::bound(u64::MAX)).expect("one"), above.child(Limits::bound(1)).expect("two"));
        let mut held = Holdings::default();
        held.add(Held::Thread, 4).expect("nobody refuses");
        held.move_to(Some(*from));
        held.move_to(Some(*to));
        let count = |budget: &groups::Budget<'static, Held>| budget.usage().map(|usage| usage.count(Held::Thread));
        assert_eq!((count(&above), count(&from), count(&to)), (Some(4), Some(0), Some(4)));
        assert_eq!(held.add(Held::Thread, 1), Err(Errno::ENOMEM));
        held.move_to(None);
        assert_eq!(count(&above), Some(0));
        held.add(Held::Thread, 1).expect("nobody refuses");
        assert_eq!(held.count(Held::Thread), 5);
    }
}

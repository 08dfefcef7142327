//! [`Holdings`]: what a container holds, and what of that is charged.

use groups::{Bundle, Class, Denied};

use super::payer::give_all_kept_back;
use super::{Held, OfDescriptors, Payer};
use crate::error::{Errno, Result};

/// So many charges of a class a container may keep beyond what it holds, or one for eight objects, up to [`MOST_SPARE`]: enough for who makes and gives up two at a time.
const SPARE: u32 = 4;
const MOST_SPARE: u32 = 64;

/// How many charges are kept beyond so many objects.
fn spare(count: u32) -> u32 {
    (count / 8).clamp(SPARE, MOST_SPARE)
}

/// With how many objects at least nothing is given back of so many charges.
fn least(charges: u32) -> u32 {
    charges.saturating_sub((charges / 9).clamp(SPARE, MOST_SPARE))
}

/// What a container holds of `N` classes, those from the class with the index `FIRST` on, and the charges for it. Its owner locks it.
///
/// Most of what comes and goes asks nobody, whether somebody is charged or not: there are two numbers for each class between which the count moves freely.
///
/// Owner: the container; its destruction gives all charges back in one turn with the tree's lock, some hundred instructions and some dozens for each level of budgets. Nobody waits for it.
pub struct Holdings<const FIRST: usize, const N: usize> {
    counts: [u32; N],
    /// As soon as there are fewer, charges are given back.
    least: [u32; N],
    /// For as many at least as there are objects of each class.
    charges: Bundle<'static, Held, FIRST, N>,
    payer: Payer,
}

impl<const FIRST: usize, const N: usize> Default for Holdings<FIRST, N> {
    #[inline(always)]
    fn default() -> Self {
        Self::of_nobody([0; N])
    }
}

impl<const FIRST: usize, const N: usize> Holdings<FIRST, N> {
    /// So many objects of each class, which nobody is charged for yet.
    #[inline(always)]
    pub const fn of_nobody(counts: [u32; N]) -> Self {
        Holdings { counts, least: [0; N], charges: Bundle::of_nobody(), payer: Payer::NOBODY }
    }

    /// Nothing yet, and who is charged for what comes.
    #[inline(always)]
    pub fn of(payer: &Payer) -> Self {
        let charges = payer.budget().map_or(Bundle::of_nobody(), Bundle::empty);
        Holdings { counts: [0; N], least: [0; N], charges, payer: payer.share() }
    }

    /// Where a class stands.
    #[inline(always)]
    fn place(class: Held) -> usize {
        class.index() - FIRST
    }

    /// How many objects of a class it holds.
    #[inline(always)]
    pub fn count(&self, class: Held) -> u32 {
        self.counts[Self::place(class)]
    }

    /// Who is charged.
    #[inline(always)]
    pub fn payer(&self) -> &Payer {
        &self.payer
    }

    /// So many objects of a class are to be made.
    ///
    /// # Errors
    /// ENOMEM: the budget has no room for them.
    #[inline(always)]
    pub fn add(&mut self, class: Held, more: u32) -> Result<()> {
        self.counts[Self::place(class)] += more;
        if self.count(class) > self.charges.count(class) { self.pay_for(class, more) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn pay_for(&mut self, class: Held, more: u32) -> Result<()> {
        // With some that come next.
        let ahead = spare(self.count(class)) / 2;
        loop {
            let missing = self.count(class).saturating_sub(self.charges.count(class));
            match self.charges.grow_ahead(class, missing, ahead) {
                Ok(_) => break,
                // The controller was disabled, or the group removed.
                Err(Denied::Ended) if !self.payer.is_nobody() => self.fall_back(),
                Err(_) if self.payer.give_kept_back() => {}
                Err(_) if self.pay_with_spare(class, missing) => break,
                Err(_) if give_all_kept_back() => {}
                Err(denied) => {
                    self.counts[Self::place(class)] -= more;
                    super::note_denied(self.charges.budget(), denied);
                    return Err(Errno::ENOMEM);
                }
            }
        }
        self.note_charges(class);
        Ok(())
    }

    /// What it keeps of other classes may be what is missing.
    fn pay_with_spare(&mut self, class: Held, missing: u32) -> bool {
        for &other in &Held::ALL[FIRST..FIRST + N] {
            let spare = self.charges.count(other).saturating_sub(self.count(other));
            if spare > 0 {
                self.charges.shrink(other, spare);
                self.note_charges(other);
            }
        }
        self.charges.grow(class, missing).is_ok()
    }

    /// The budget has ended. Charges the nearest one above that is there, whatever its bound.
    #[cold]
    fn fall_back(&mut self) {
        loop {
            self.payer = self.payer.above();
            match self.payer.budget() {
                Some(budget) if self.charges.move_to(budget).is_ok() => return,
                Some(_) => {}
                None => return self.charge_nobody(),
            }
        }
    }

    fn charge_nobody(&mut self) {
        *self = Self::of_nobody(self.counts);
    }

    /// There are more charges for a class, or fewer.
    fn note_charges(&mut self, class: Held) {
        let charges = self.charges.count(class);
        self.least[Self::place(class)] = if self.payer.is_nobody() { 0 } else { least(charges) };
    }

    /// The charges are for all that there is from now on.
    fn pay_by(&mut self, charges: Bundle<'static, Held, FIRST, N>, payer: &Payer) {
        self.charges = charges;
        self.payer = payer.share();
        // Nothing is given back of what is needed as long as no more goes than is always kept.
        self.least = self.counts.map(|count| count.saturating_sub(SPARE));
    }

    /// An object of a class is held again, whatever the bound.
    pub fn add_always(&mut self, class: Held) {
        self.counts[Self::place(class)] += 1;
        if self.charges.count(class) < self.count(class) {
            self.charges.grow_always(class, 1);
            self.note_charges(class);
        }
    }

    /// So many objects of a class are gone.
    #[inline(always)]
    pub fn remove(&mut self, class: Held, less: u32) {
        self.counts[Self::place(class)] -= less;
        if self.count(class) < self.least[Self::place(class)] {
            self.give_back(class);
        }
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self, class: Held) {
        let count = self.count(class);
        let kept = self.charges.count(class).saturating_sub(count);
        self.charges.shrink(class, kept.saturating_sub(spare(count) / 2));
        self.note_charges(class);
    }

    /// An object of one class has become one of another, which costs no more.
    #[inline(always)]
    pub fn exchange(&mut self, from: Held, to: Held) {
        self.counts[Self::place(from)] -= 1;
        self.counts[Self::place(to)] += 1;
        if self.count(to) > self.charges.count(to) {
            self.pay_for_exchange(from, to);
        }
    }

    /// The charge for the first stays, for the next object of that class, unless the budget has no room for that.
    #[cold]
    #[inline(never)]
    fn pay_for_exchange(&mut self, from: Held, to: Held) {
        self.charges.turn(from, to, spare(self.count(to)) / 2);
        self.note_charges(from);
        self.note_charges(to);
    }

    /// The same objects, for a copy of the container, charged to nobody yet.
    pub fn copy(&self, without: Held) -> Self {
        let mut counts = self.counts;
        counts[Self::place(without)] = 0;
        Self::of_nobody(counts)
    }

    /// Nothing is held any more, nor charged.
    #[inline(always)]
    pub fn end(&mut self) {
        self.counts = [0; N];
        if !self.payer.is_nobody() {
            *self = Self::default();
        }
    }

    /// Others may need the charges.
    #[inline(never)]
    fn leave(&mut self) {
        if !self.charges.is_empty() {
            self.payer.keep(&mut self.charges);
        }
    }

    /// Charges all that there is to somebody; for a container that is charged to nobody.
    ///
    /// # Errors
    /// ENOMEM: there is no room in the budget; then it is charged to nobody.
    pub fn begin(&mut self, payer: &Payer) -> Result<()> {
        match payer.charge(self.counts) {
            Ok(charges) => self.pay_by(charges, payer),
            Err(Denied::Ended) => {}
            Err(denied) => {
                super::note_denied(payer.budget(), denied);
                return Err(Errno::ENOMEM);
            }
        }
        Ok(())
    }

    /// As [`move_to`](Self::move_to); once that budget has ended, the nearest one above it that is there.
    pub fn move_to_nearest(&mut self, payer: &Payer) {
        let mut payer = payer.share();
        while !payer.is_nobody() {
            self.move_to(&payer);
            if !self.payer.is_nobody() {
                return;
            }
            payer = payer.above();
        }
        self.move_to(&payer);
    }

    /// Has somebody else charged from now on, whatever the bound.
    pub fn move_to(&mut self, payer: &Payer) {
        if self.payer == *payer {
            return;
        }
        // A budget that has ended is nobody's.
        let Some(budget) = payer.budget() else { return self.charge_nobody() };
        if self.payer.is_nobody() {
            if let Ok(charges) = Bundle::charge_always(budget, self.counts) {
                self.pay_by(charges, payer);
            }
        } else if self.charges.move_to(budget).is_ok() {
            self.payer = payer.share();
        } else {
            self.charge_nobody();
        }
    }
}

/// What a table of descriptors was charged for that has ended, as it was: one that holds the same begins with it. Or nothing.
pub(super) struct ChargedTable {
    is_any: bool,
    counts: [u32; DESCRIPTORS],
    least: [u32; DESCRIPTORS],
    charges: ChargesOfTable,
}

type ChargesOfTable = Bundle<'static, Held, { Held::Reserved as usize }, DESCRIPTORS>;

impl ChargedTable {
    /// Nothing.
    pub const NONE: Self =
        ChargedTable { is_any: false, counts: [0; DESCRIPTORS], least: [0; DESCRIPTORS], charges: Bundle::of_nobody() };

    /// The charges, if there are any: then there are none any more.
    pub fn take_charges(&mut self) -> Option<ChargesOfTable> {
        let were_any = core::mem::take(&mut self.is_any);
        were_any.then(|| core::mem::replace(&mut self.charges, Bundle::of_nobody()))
    }

    fn is_of(&self, counts: &[u32; DESCRIPTORS]) -> bool {
        self.is_any && self.counts.iter().zip(counts).fold(0, |all, (one, other)| all | (one ^ other)) == 0
    }
}

/// The classes of descriptors.
pub(super) const DESCRIPTORS: usize = Held::Socket as usize - Held::Reserved as usize + 1;

impl OfDescriptors {
    /// As [`begin`](Self::begin), for a copy: a table that ended before it held the same, mostly.
    ///
    /// # Errors
    /// As for `begin`.
    pub fn begin_as_before(&mut self, payer: &Payer) -> Result<()> {
        let Holdings { counts, least, charges, .. } = self;
        // Field by field, since it is large.
        let is_taken = payer.with_table(|kept| {
            let is_alike = kept.is_of(counts);
            if is_alike {
                kept.is_any = false;
                *least = kept.least;
                core::mem::swap(charges, &mut kept.charges);
            }
            is_alike
        });
        if is_taken != Some(true) {
            return self.begin(payer);
        }
        self.payer = payer.share();
        Ok(())
    }

    /// As [`end`](Self::end); the next copy may hold the same.
    #[inline(always)]
    pub fn end_for_next(&mut self) {
        if !self.payer.is_nobody() {
            self.leave_to_next();
        }
        self.counts = [0; DESCRIPTORS];
    }

    #[inline(never)]
    fn leave_to_next(&mut self) {
        let Holdings { counts, least, charges, payer } = self;
        let is_left = payer.with_table_to_keep(|kept| {
            let is_free = !kept.is_any;
            if is_free {
                kept.is_any = true;
                (kept.counts, kept.least) = (*counts, *least);
                core::mem::swap(charges, &mut kept.charges);
            }
            is_free
        });
        if is_left != Some(true) {
            self.leave();
            self.charges = Bundle::of_nobody();
        }
        self.least = [0; DESCRIPTORS];
        self.payer = Payer::NOBODY;
    }
}

impl<const FIRST: usize, const N: usize> Drop for Holdings<FIRST, N> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.payer.is_nobody() {
            self.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use groups::{Budget, Limits, Tree};

    use super::*;
    use crate::reclaim::Keeper;
    use alloc::vec::Vec;

    use crate::reclaim::payer::{AHEAD, MOST_KEPT, SHARE};

    /// A container of objects of all classes.
    type All = Holdings<0, { <[Held]>::len(Held::ALL) }>;

    /// Somebody with a budget, which is below none that anything is charged to.
    fn payer(budget: Budget<'static, Held>) -> Payer {
        Payer::new(budget, Payer::NOBODY)
    }

    fn tree() -> &'static Tree<Held> {
        alloc::boxed::Box::leak(alloc::boxed::Box::new(Tree::new()))
    }

    #[test]
    fn what_has_no_payer_is_counted_and_never_refused() {
        let mut held = All::default();
        held.add(Held::Pipe, 1_000_000).expect("nobody refuses");
        held.remove(Held::Pipe, 999_999);
        assert_eq!((held.count(Held::Pipe), held.payer().is_nobody()), (1, true));
    }

    #[test]
    fn a_bound_refuses_and_what_is_refused_is_not_held() {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(10 * super::super::assumed(Held::Pipe))).expect("a budget");
        let mut held = All::default();
        held.begin(&payer(*budget)).expect("nothing yet");
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
        let mut held = All::default();
        held.begin(&payer(*budget)).expect("room");
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
    fn both_ends_of_a_connection_come_and_go_without_asking_the_budget() {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(u64::MAX)).expect("a budget");
        let charged = || budget.usage().map_or(0, |usage| usage.count(Held::Socket));
        let mut held = All::default();
        held.begin(&payer(*budget)).expect("room");
        let open = |held: &mut All| {
            held.add(Held::Reserved, 1).expect("room");
            held.exchange(Held::Reserved, Held::Socket);
        };
        // The one that listens, and the first connection.
        (0..3).for_each(|_| open(&mut held));
        let before = charged();
        for _ in 0..10 {
            held.remove(Held::Socket, 1);
            held.remove(Held::Socket, 1);
            assert_eq!(charged(), before);
            open(&mut held);
            open(&mut held);
            assert_eq!(charged(), before);
        }
    }

    /// A table of pipes, which are charged to somebody.
    fn table_of_pipes(count: u32, payer: &Payer) -> OfDescriptors {
        let mut table = OfDescriptors::default();
        table.add(Held::Pipe, count).expect("nobody refuses");
        table.begin_as_before(payer).expect("room");
        table
    }

    #[test]
    fn a_table_that_holds_what_one_before_it_held_begins_with_its_charges() {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(u64::MAX)).expect("a budget");
        let payer = payer(*budget);
        payer.keep_if(|| true);
        let charged = || budget.usage().map_or(0, |usage| usage.count(Held::Pipe));
        let mut first = table_of_pipes(100, &payer);
        first.end_for_next();
        assert_eq!((first.count(Held::Pipe), first.payer().is_nobody(), charged()), (0, true, 100));
        let mut second = table_of_pipes(100, &payer);
        assert_eq!(charged(), 100);
        // There is no other one that is alike, nor one with fewer.
        let mut third = table_of_pipes(100, &payer);
        let mut fourth = table_of_pipes(9, &payer);
        assert_eq!(charged(), 209);
        [&mut second, &mut third, &mut fourth].into_iter().for_each(OfDescriptors::end_for_next);
        assert_eq!(charged(), 100 + u64::from(MOST_KEPT));
        assert!(payer.give_kept_back() && !payer.give_kept_back());
        assert_eq!(charged(), 0);
        // Nobody is there who may need them.
        payer.keep_if(|| false);
        table_of_pipes(100, &payer).end_for_next();
        assert_eq!(charged(), 0);
    }

    #[test]
    fn what_a_group_keeps_is_given_back_before_another_is_refused_anything() {
        let tree = tree();
        let above = tree.root().child(Limits::bound(10 * super::super::assumed(Held::Pipe))).expect("above");
        let below = [0, 1].map(|_| above.child(Limits::bound(u64::MAX)).expect("below"));
        let [one, other] = below.each_ref().map(|budget| Keeper::new(payer(**budget)));
        one.payer.keep_if(|| true);
        table_of_pipes(8, &one.payer).end_for_next();
        let mut needs = table_of_pipes(0, &other.payer);
        let denied = || above.usage().map(|usage| usage.denied);
        assert_eq!(needs.add(Held::Pipe, 5), Ok(()));
        table_of_pipes(4, &one.payer).end_for_next();
        let begins = table_of_pipes(3, &other.payer);
        assert_eq!(denied(), Some(0), "what was given in the end was not denied");
        assert_eq!(needs.add(Held::Pipe, 3), Err(Errno::ENOMEM));
        assert_eq!(denied(), Some(1));
        let mut many = OfDescriptors::default();
        many.add(Held::Pipe, 11).expect("nobody refuses");
        assert_eq!((many.begin(&other.payer), denied()), (Err(Errno::ENOMEM), Some(2)));
        drop((needs, begins, many));
        assert_eq!(above.usage().map(|usage| usage.current), Some(0));
    }

    #[test]
    fn what_is_charged_ahead_is_given_back_before_another_is_refused_anything() {
        let tree = tree();
        let above = tree.root().child(Limits::bound(100 * super::super::assumed(Held::Pipe))).expect("above");
        let below = [0, 1].map(|_| above.child(Limits::bound(u64::MAX)).expect("below"));
        let [one, other] = below.each_ref().map(|budget| Keeper::new(payer(**budget)));
        one.payer.keep_if(|| true);
        let few = table_of_pipes(2, &one.payer);
        let charged = || above.usage().map_or(0, |usage| usage.count(Held::Pipe));
        assert!(charged() > 2, "{}", charged());
        let mut needs = table_of_pipes(0, &other.payer);
        assert_eq!((needs.add(Held::Pipe, 98), charged()), (Ok(()), 100));
        assert_eq!(needs.add(Held::Pipe, 1), Err(Errno::ENOMEM));
        drop((few, needs));
    }

    #[test]
    fn the_more_are_made_and_stay_the_more_are_charged_at_a_time_and_no_more_than_a_part_of_them() {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(u64::MAX)).expect("a budget");
        let payer = payer(*budget);
        payer.keep_if(|| true);
        let charged = || budget.usage().map_or(0, |usage| usage.count(Held::Pipe));
        let (mut tables, mut turns, mut before) = (Vec::new(), 0, 0);
        for made in 1..=1_000_u32 {
            let mut table = All::default();
            table.add(Held::Pipe, 1).expect("nobody refuses");
            table.begin(&payer).expect("room");
            tables.push(table);
            turns += u32::from(charged() > before);
            before = charged();
            let most = made + AHEAD.max(made / SHARE);
            assert!((made.into()..=most.into()).contains(&before), "{before} for {made}");
        }
        assert!(turns < 100, "{turns}");
        // As soon as one ends it is for those that come next.
        tables.pop();
        assert!(payer.give_kept_back());
        assert_eq!(charged(), 999);
    }

    #[test]
    fn nothing_is_kept_once_the_keeper_has_ended_even_if_somebody_comes_then() {
        let tree = tree();
        let above = tree.root().child(Limits::bound(u64::MAX)).expect("above");
        let own = above.child(Limits::bound(u64::MAX)).expect("its own");
        let keeper = Keeper::new(payer(*own));
        let late = keeper.payer.share();
        drop((keeper, own));
        // On another core somebody came into the group just before.
        late.keep_if(|| true);
        let mut table = table_of_pipes(0, &late);
        table.end_for_next();
        assert_eq!(late.with_table_to_keep(|_| ()), None);
        assert_eq!(above.usage().map(|usage| usage.current), Some(0));
    }

    #[test]
    fn what_outlives_its_group_stays_charged_to_those_above() {
        let tree = tree();
        let above = tree.root().child(Limits::bound(5 * super::super::assumed(Held::Message))).expect("above");
        let middle = above.child(Limits::bound(u64::MAX)).expect("between");
        let own = middle.child(Limits::bound(u64::MAX)).expect("its own");
        let mut held = All::default();
        let above_all = payer(*above);
        let payer = Payer::new(*own, Payer::new(*middle, above_all.share()));
        held.begin(&payer).expect("nothing yet");
        drop((own, middle));
        let made = (0..20).filter(|_| held.add(Held::Message, 1).is_ok()).count();
        assert_eq!((made, held.payer() == &above_all), (5, true));
        drop(held);
        assert_eq!(above.usage().map(|usage| usage.current), Some(0));
    }

    #[test]
    fn what_ends_leaves_charges_to_what_comes_next_as_long_as_there_is_anybody() {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(30 * super::super::assumed(Held::Pipe))).expect("a budget");
        let payer = payer(*budget);
        let with_pipes = |count| {
            let mut held = All::default();
            held.add(Held::Pipe, count)?;
            held.begin(&payer).map(|()| held)
        };
        let pipes = || budget.usage().map_or(0, |usage| usage.count(Held::Pipe));
        drop(with_pipes(20));
        assert_eq!(pipes(), 0);
        payer.keep_if(|| true);
        drop(with_pipes(20));
        assert_eq!(pipes(), u64::from(MOST_KEPT));
        // They serve whoever needs no more, and keep nobody from what the bound allows.
        let few = with_pipes(2);
        assert_eq!((few.is_ok(), pipes()), (true, u64::from(MOST_KEPT)));
        assert!(with_pipes(28).is_ok() && with_pipes(29).is_err());
        drop(few);
        payer.keep_if(|| false);
        assert_eq!(pipes(), 0);
    }

    #[test]
    fn a_move_is_never_refused_and_counts_above_both_once() {
        let tree = tree();
        let above = tree.root().child(Limits::bound(u64::MAX)).expect("a budget");
        let (from, to) =
            (above.child(Limits::bound(u64::MAX)).expect("one"), above.child(Limits::bound(1)).expect("two"));
        let mut held = All::default();
        held.add(Held::Thread, 4).expect("nobody refuses");
        held.move_to(&payer(*from));
        held.move_to(&payer(*to));
        let count = |budget: &groups::Budget<'static, Held>| budget.usage().map(|usage| usage.count(Held::Thread));
        assert_eq!((count(&above), count(&from), count(&to)), (Some(4), Some(0), Some(4)));
        assert_eq!(held.add(Held::Thread, 1), Err(Errno::ENOMEM));
        held.move_to(&Payer::NOBODY);
        assert_eq!(count(&above), Some(0));
        held.add(Held::Thread, 1).expect("nobody refuses");
        assert_eq!(held.count(Held::Thread), 5);
    }
}

//! Budgets, charges and stocks.

use groups::{Budget, Bundle, Charge, Class, Cost, DEEPEST, Denied, Limits, OwnedBudget, Stock, Tree, classes};

classes! {
    enum Held { Link = Cost::eager(10), Thread = Cost::eager(100), Object = Cost::deferred(5) }
}

const FULL: fn(u8) -> Option<Denied> = |depth| Some(Denied::Full { depth });

#[test]
fn what_would_exceed_the_bound_of_any_ancestor_is_refused_and_says_whose() {
    let tree = Tree::new();
    let parent = tree.root().child(Limits::bound(100)).unwrap();
    let one = parent.child(Limits::bound(1_000)).unwrap();
    let other = parent.child(Limits::bound(50)).unwrap();
    let charge = one.charge(Held::Link, 6).unwrap();
    assert_eq!(other.charge(Held::Link, 5).err(), FULL(1));
    assert_eq!(other.charge(Held::Link, 6).err(), FULL(2));
    let rest = other.charge(Held::Link, 4).unwrap();
    assert_eq!(one.charge(Held::Link, 1).err(), FULL(1));
    assert_eq!(parent.usage().unwrap().denied, 2);
    drop(charge);
    assert_eq!(one.charge(Held::Thread, 1).err(), FULL(1));
    drop(rest);
    drop(one.charge(Held::Thread, 1).unwrap());
    let usage = parent.usage().unwrap();
    assert_eq!((usage.current, usage.peak), (0, 100));
}

#[test]
fn what_is_deferred_counts_against_no_bound() {
    let tree = Tree::new();
    let budget = tree.root().child(Limits::bound(0)).unwrap();
    let charge = budget.charge(Held::Object, 1_000_000).unwrap();
    let usage = tree.root().usage().unwrap();
    assert_eq!((usage.current, usage.count(Held::Object), usage.deferred()), (0, 1_000_000, 5_000_000));
    drop(charge);
}

#[test]
fn what_was_reserved_is_there_whatever_siblings_use() {
    let tree = Tree::new();
    let parent = tree.root().child(Limits::bound(100)).unwrap();
    let safe = parent.child(Limits { bound: 80, reserved: 60 }).unwrap();
    let other = parent.child(Limits::bound(100)).unwrap();
    assert_eq!(parent.child(Limits { bound: 80, reserved: 60 }).err(), FULL(1));
    let fourth = other.charge(Held::Link, 4).unwrap();
    assert_eq!(other.charge(Held::Link, 1).err(), FULL(1));
    let mut sixth = safe.charge(Held::Link, 6).unwrap();
    assert_eq!(sixth.grow(1), Err(Denied::Full { depth: 1 }));
    drop(fourth);
    sixth.grow(2).unwrap();
    assert_eq!(sixth.grow(1), Err(Denied::Full { depth: 2 }));
    assert_eq!(parent.usage().unwrap().current, 80);
    drop(sixth);
    assert_eq!(parent.usage().unwrap().current, 60);
    drop(safe);
    assert_eq!(parent.usage().unwrap().current, 0);
}

#[test]
fn a_bound_below_what_is_in_use_admits_nothing_more() {
    let tree = Tree::new();
    let budget = tree.root().child(Limits::bound(100)).unwrap();
    let mut stock = Stock::new(*budget, 2);
    let charge = stock.charge(Held::Link, 1).unwrap();
    assert_eq!(stock.spare(Held::Link), 1);
    budget.set_bound(15);
    assert_eq!(stock.charge(Held::Link, 1).err(), FULL(1));
    assert_eq!(budget.usage().unwrap().current, 10);
    drop(charge);
    drop(stock.charge(Held::Link, 1).unwrap());
}

#[test]
fn new_costs_count_for_what_is_charged_already() {
    let tree = Tree::new();
    let parent = tree.root().child(Limits::bound(1_000)).unwrap();
    let child = parent.child(Limits { bound: 1_000, reserved: 300 }).unwrap();
    let charges = (child.charge(Held::Link, 20).unwrap(), parent.charge(Held::Thread, 1).unwrap());
    assert_eq!(parent.usage().unwrap().current, 400);
    tree.set_cost(Held::Link, Cost::eager(60));
    assert_eq!((child.usage().unwrap().current, parent.usage().unwrap().current), (1_200, 1_300));
    assert_eq!(parent.charge(Held::Link, 1).err(), FULL(1));
    tree.set_cost(Held::Link, Cost::eager(1));
    assert_eq!(parent.usage().unwrap().current, 400);
    drop(charges);
    assert_eq!(parent.usage().unwrap().current, 300);
}

#[test]
fn a_transfer_does_not_charge_common_ancestors_twice() {
    let (tree, elsewhere) = (Tree::new(), Tree::new());
    let parent = tree.root().child(Limits::bound(100)).unwrap();
    let (one, other) = (parent.child(Limits::bound(100)).unwrap(), parent.child(Limits::bound(70)).unwrap());
    let mut charge = one.charge(Held::Link, 8).unwrap();
    assert_eq!(charge.transfer(*other), Err(Denied::Full { depth: 2 }));
    assert_eq!(charge.budget(), *one);
    other.set_bound(80);
    charge.transfer(*other).unwrap();
    assert_eq!((one.usage().unwrap().current, other.usage().unwrap().current), (0, 80));
    assert_eq!(charge.transfer(elsewhere.root()), Err(Denied::Ended));
    // Its first budget's end does not concern it any more.
    one.end();
    assert_eq!(parent.usage().unwrap().current, 80);
}

#[test]
fn charges_are_divided_and_put_together() {
    let tree = Tree::new();
    let mut charge = tree.root().charge(Held::Link, 5).unwrap();
    let two = charge.split(2).unwrap();
    assert!(charge.split(4).is_none());
    assert_eq!((charge.count(), two.count()), (3, 2));
    let thread = tree.root().charge(Held::Thread, 1).unwrap();
    let thread = charge.merge(thread).unwrap_err();
    charge.merge(two).unwrap();
    drop(thread);
    assert_eq!(tree.root().usage().unwrap().current, 50);
    assert!(charge.merge(Charge::none(tree.root(), Held::Link)).is_ok());
}

#[test]
fn budgets_nest_to_a_depth_and_no_further() {
    let tree: Tree<Held> = Tree::new();
    let mut budgets: Vec<OwnedBudget<Held>> = Vec::new();
    for _ in 0..DEEPEST {
        let above = budgets.last().map_or(tree.root(), |budget| **budget);
        budgets.push(above.child(Limits::bound(100)).unwrap());
    }
    let deepest = *budgets[usize::from(DEEPEST) - 1];
    assert_eq!(deepest.child(Limits::bound(100)).err(), Some(Denied::TooDeep));
    let charge = deepest.charge(Held::Link, 10).unwrap();
    assert_eq!(tree.root().usage().unwrap().current, 100);
    drop(budgets.remove(0));
    // What is below one that was let go of may still be charged; what is below one that has ended may not.
    drop(deepest.charge(Held::Object, 1).unwrap());
    budgets.remove(0).end();
    assert_eq!(deepest.charge(Held::Object, 1).err(), Some(Denied::Ended));
    assert_eq!(tree.root().usage().unwrap().current, 0);
    drop(charge);
}

#[test]
fn a_stock_keeps_nothing_from_whoever_was_refused_because_of_it() {
    let tree = Tree::new();
    let budget = tree.root().child(Limits::bound(1_000)).unwrap();
    let mut stock = Stock::new(*budget, 16);
    let one = stock.charge(Held::Link, 1).unwrap();
    assert_eq!(stock.spare(Held::Link), 15);
    let most = budget.charge(Held::Link, 84).unwrap();
    assert_eq!(budget.charge(Held::Link, 15).err(), FULL(1));
    // Its next use gives everything back, and it takes what it needs and no more as long as room is short.
    let two = stock.charge(Held::Link, 1).unwrap();
    assert_eq!(stock.spare(Held::Link), 0);
    stock.give_back(two);
    assert_eq!(stock.spare(Held::Link), 0);
    let rest = budget.charge(Held::Link, 15).unwrap();
    drop((most, rest));
    stock.give_back(one);
    let one = stock.charge(Held::Link, 1).unwrap();
    assert_eq!(stock.spare(Held::Link), 15);
    budget.end();
    assert_eq!(stock.charge(Held::Link, 1).err(), Some(Denied::Ended));
    stock.give_back(one);
    assert_eq!(tree.root().usage().unwrap().current, 0);
}

#[test]
fn a_stock_gives_up_what_it_has_of_one_class_for_another() {
    let tree = Tree::new();
    let budget = tree.root().child(Limits::bound(1_000)).unwrap();
    let mut stock = Stock::new(*budget, 16);
    let link = stock.charge(Held::Link, 1).unwrap();
    let threads = stock.charge(Held::Thread, 9).unwrap();
    assert_eq!((link.count(), threads.count(), stock.spare(Held::Link)), (1, 9, 0));
}

#[test]
fn a_stock_holds_two_batches_at_most() {
    let tree = Tree::new();
    let mut stock = Stock::new(tree.root(), 4);
    let charges: Vec<_> = (0..40).map(|_| stock.charge(Held::Link, 1).unwrap()).collect();
    for charge in charges {
        stock.give_back(charge);
        assert!(stock.spare(Held::Link) <= 8);
    }
    stock.settle();
    assert_eq!(tree.root().usage().unwrap().count(Held::Link), 0);
}

/// A bundle of all classes.
type AnyBundle<'t> = Bundle<'t, Held, 0, { <[Held]>::len(Held::ALL) }>;

#[test]
fn a_bundle_beyond_the_bound_has_stocks_hand_out_nothing() {
    let tree: Tree<Held> = Tree::new();
    let budget = tree.root().child(Limits::bound(1_000)).unwrap();
    let mut stock = Stock::new(*budget, 10);
    drop(stock.charge(Held::Link, 1).unwrap());
    assert!(budget.usage().unwrap().current > 0, "the stock holds some");
    let twenty_threads = Held::table(|class| if class == Held::Thread { 20 } else { 0 });
    let bundle = AnyBundle::charge_always(*budget, twenty_threads).unwrap();
    assert_eq!(stock.charge(Held::Link, 1).err(), FULL(1));
    drop(bundle);
    drop(stock.charge(Held::Link, 1).unwrap());
    // The same where they come from another budget.
    let other = tree.root().child(Limits::bound(Limits::UNBOUNDED)).unwrap();
    let mut bundle = AnyBundle::charge(*other, twenty_threads).unwrap();
    bundle.move_to(*budget).unwrap();
    assert_eq!(stock.charge(Held::Link, 1).err(), FULL(1));
}

#[test]
fn no_bundle_comes_below_a_budget_that_has_ended() {
    let tree: Tree<Held> = Tree::new();
    let above = tree.root().child(Limits::bound(1_000)).unwrap();
    let below = above.child(Limits::bound(1_000)).unwrap();
    let other = tree.root().child(Limits::bound(1_000)).unwrap();
    let one_link = Held::table(|class| u32::from(class == Held::Link));
    let mut bundle = AnyBundle::charge(*other, one_link).unwrap();
    above.end();
    assert_eq!(AnyBundle::charge_always(*below, one_link).err(), Some(Denied::Ended));
    assert_eq!(bundle.move_to(*below), Err(Denied::Ended));
    assert_eq!(other.usage().unwrap().current, 10);
}

#[test]
fn a_bundle_of_nobody_covers_all_there_can_be_and_asks_nobody() {
    let tree: Tree<Held> = Tree::new();
    let mut bundle = AnyBundle::of_nobody();
    assert_eq!((bundle.budget(), bundle.count(Held::Link)), (None, u32::MAX));
    assert_eq!((bundle.grow(Held::Link, 1), bundle.grow_ahead(Held::Link, 1, 5)), (Ok(()), Ok(1)));
    bundle.shrink(Held::Link, 3);
    bundle.turn(Held::Link, Held::Thread, 1);
    bundle.grow_always(Held::Link, 1);
    assert_eq!((bundle.count(Held::Link), bundle.count(Held::Thread)), (u32::MAX, u32::MAX));
    drop(bundle);
    assert_eq!(tree.root().usage().unwrap().current, 0);
}

#[test]
fn a_bundle_of_some_classes_charges_for_those() {
    let tree: Tree<Held> = Tree::new();
    let budget = tree.root().child(Limits::bound(Limits::UNBOUNDED)).unwrap();
    let first = Held::Thread.index();
    let mut bundle: Bundle<'_, Held, { Held::Thread as usize }, 1> = Bundle::charge(*budget, [3]).unwrap();
    let counts = || Held::ALL.iter().map(|&class| budget.usage().unwrap().count(class)).collect::<Vec<_>>();
    let expected = |threads| (0..Held::ALL.len()).map(|at| if at == first { threads } else { 0 }).collect::<Vec<u64>>();
    assert_eq!(counts(), expected(3));
    bundle.grow_always(Held::Thread, 2);
    bundle.shrink(Held::Thread, 1);
    assert_eq!(counts(), expected(4));
    drop(bundle);
    assert_eq!(counts(), expected(0));
}

#[test]
fn bundles_of_one_budget_hand_charges_on_without_asking_it() {
    let tree: Tree<Held> = Tree::new();
    let budget = tree.root().child(Limits::bound(Limits::UNBOUNDED)).unwrap();
    let other = tree.root().child(Limits::bound(Limits::UNBOUNDED)).unwrap();
    let mut kept = AnyBundle::empty(*budget);
    let mut threads: Bundle<'_, Held, { Held::Thread as usize }, 1> = Bundle::charge_ahead(*budget, [5]).unwrap();
    let current = |budget: &Budget<'_, Held>| budget.usage().unwrap().current;
    threads.leave_to(&mut kept, 3);
    assert_eq!((threads.count(Held::Thread), kept.count(Held::Thread), current(&budget)), (2, 3, 500));
    drop(threads);
    assert_eq!(current(&budget), 300);
    assert!(Bundle::<'_, Held, { Held::Thread as usize }, 1>::take_from(&mut kept, [4]).is_none());
    let mut two: Bundle<'_, Held, { Held::Thread as usize }, 1> = Bundle::take_from(&mut kept, [2]).unwrap();
    assert_eq!((two.budget(), two.count(Held::Thread), kept.count(Held::Thread)), (Some(*budget), 2, 1));
    // One that is charged elsewhere stays there.
    two.move_to(*other).unwrap();
    two.leave_to(&mut kept, 100);
    assert_eq!((two.count(Held::Thread), current(&budget), current(&other)), (2, 100, 200));
    drop(kept);
    drop(two);
    assert_eq!(current(&tree.root()), 0);
    // What may come next is not charged for where that leaves little room.
    let narrow = tree.root().child(Limits::bound(499)).unwrap();
    assert!(Bundle::<'_, Held, { Held::Thread as usize }, 1>::charge_ahead(*narrow, [1]).is_none());
    assert_eq!((current(&narrow), narrow.usage().unwrap().denied), (0, 0));
}

//! Every interleaving that the memory model allows, of short programs on two threads: charges, stocks, changed bounds, ends, chunks. Run with
//! `RUSTFLAGS="--cfg ebb_loom"`, in release mode.
#![cfg(ebb_loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use groups::{Arena, Charge, Chunks, Contents, Cost, Group, Limits, Mortuary, Objects, Scrub, Stock, Tree, classes};
use loom::thread;

classes! {
    enum Held { Base = Cost::eager(1), Link = Cost::eager(10), Object = Cost::deferred(1) }
}

/// Runs `test` in all interleavings.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = None;
    builder.max_branches = 20_000;
    builder.check(test);
}

/// A tree for the rest of the program: loom's threads borrow nothing.
fn tree() -> &'static Tree<Held> {
    Box::leak(Box::new(Tree::new()))
}

/// What is charged at one moment, over all threads. (Not loom's: the interleavings are those of the tree.)
#[derive(Default)]
struct Live(AtomicU64);

impl Live {
    fn take(&self, charged: &Charge<'_, Held>, most: u64) {
        let before = self.0.fetch_add(u64::from(charged.count()), Ordering::SeqCst);
        assert!(before + u64::from(charged.count()) <= most, "more is charged than there is room for");
    }

    fn give(&self, charged: &Charge<'_, Held>) {
        self.0.fetch_sub(u64::from(charged.count()), Ordering::SeqCst);
    }
}

#[test]
fn two_that_charge_siblings_never_exceed_what_the_parent_has() {
    explore(|| {
        let tree = tree();
        let parent = tree.root().child(Limits::bound(30)).unwrap();
        let live = Arc::new(Live::default());
        let work = |live: Arc<Live>, child: groups::OwnedBudget<'static, Held>| {
            for count in [2, 1] {
                if let Ok(charge) = child.charge(Held::Link, count) {
                    live.take(&charge, 3);
                    live.give(&charge);
                }
            }
        };
        let (one, other) = (parent.child(Limits::bound(30)).unwrap(), parent.child(Limits::bound(20)).unwrap());
        let own = Arc::clone(&live);
        let thread = thread::spawn(move || work(own, one));
        work(live, other);
        thread.join().unwrap();
        assert_eq!(parent.usage().unwrap().current, 0);
    });
}

#[test]
fn stocks_of_two_threads_never_hand_out_more_than_there_is() {
    explore(|| {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(100)).unwrap();
        let live = Arc::new(Live::default());
        let work = |live: Arc<Live>, mut stock: Stock<'static, Held>| {
            let first = stock.charge(Held::Link, 1);
            let second = stock.charge(Held::Link, 8);
            for charge in [first, second].into_iter().flatten() {
                live.take(&charge, 10);
                live.give(&charge);
                stock.give_back(charge);
            }
        };
        let (own, stock) = (Arc::clone(&live), Stock::new(*budget, 2));
        let thread = thread::spawn(move || work(own, stock));
        work(live, Stock::new(*budget, 2));
        thread.join().unwrap();
        assert_eq!(budget.usage().unwrap().count(Held::Link), 0);
    });
}

#[test]
fn who_was_refused_is_not_once_the_stock_was_used() {
    explore(|| {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(100)).unwrap();
        let mut stock = Stock::new(*budget, 2);
        // It holds one beside the one that it has handed out.
        let held = stock.charge(Held::Link, 1).unwrap();
        let name = *budget;
        let thread = thread::spawn(move || name.charge(Held::Link, 9).map(drop).is_ok());
        let more = stock.charge(Held::Object, 1).unwrap();
        drop(more);
        if !thread.join().unwrap() {
            drop(stock.charge(Held::Object, 1).unwrap());
            assert!(budget.charge(Held::Link, 9).is_ok(), "refused for ever");
        }
        drop(held);
    });
}

#[test]
fn who_learns_of_a_lower_bound_gets_nothing_more_from_a_stock() {
    explore(|| {
        let tree = tree();
        let budget = tree.root().child(Limits::bound(100)).unwrap();
        let mut stock = Stock::new(*budget, 2);
        let held = stock.charge(Held::Link, 1).unwrap();
        let is_lower = loom::sync::Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let (says, name) = (is_lower.clone(), *budget);
        let thread = thread::spawn(move || {
            name.set_bound(10);
            says.store(true, loom::sync::atomic::Ordering::Release);
        });
        let knows = is_lower.load(loom::sync::atomic::Ordering::Acquire);
        let more = stock.charge(Held::Link, 1);
        assert!(!knows || more.is_err(), "a charge beyond a bound that was known");
        thread.join().unwrap();
        drop((held, more));
    });
}

#[test]
fn a_budget_that_ends_while_a_charge_is_dropped_gives_everything_back_once() {
    explore(|| {
        let tree = tree();
        let budget = tree.root().child(Limits { bound: 100, reserved: 20 }).unwrap();
        let mut stock = Stock::new(*budget, 2);
        let charge = stock.charge(Held::Link, 1).unwrap();
        let thread = thread::spawn(move || {
            stock.give_back(charge);
            drop(stock.charge(Held::Link, 1));
        });
        budget.end();
        thread.join().unwrap();
        let usage = tree.root().usage().unwrap();
        assert_eq!((usage.current, usage.count(Held::Link)), (0, 0));
    });
}

#[test]
fn a_chunk_passes_from_one_thread_to_another_whole() {
    explore(|| {
        let pool: &'static Chunks = Box::leak(Box::new(Chunks::new(1)));
        let work = move || {
            let mut arena = Arena::new(pool);
            if let Ok(name) = arena.insert(7u64) {
                assert_eq!(arena.get(name), Some(&7));
            }
            arena.scrub(&mut Scrub::default());
        };
        let thread = thread::spawn(work);
        work();
        thread.join().unwrap();
        assert_eq!((pool.lens(), pool.trim(2)), ((1, 0), 1));
    });
}

struct Things<'t>(Objects<'t, Held, Arc<()>>);

impl Contents for Things<'_> {
    fn scrub(&mut self, scrub: &mut Scrub) {
        self.0.scrub(scrub);
    }

    fn destroy_step(&mut self, most: usize) -> usize {
        self.0.destroy_step(most)
    }
}

#[test]
fn what_one_buries_another_destroys() {
    explore(|| {
        let tree = tree();
        let mortuary: &'static Mortuary = Box::leak(Box::new(Mortuary::new()));
        let thing = Arc::new(());
        let contents = |budget| Things(Objects::new(budget, Held::Object));
        let mut group = Group::new(tree.root(), Limits::bound(100), Held::Base, contents).unwrap();
        let mut budget = group.budget();
        group.0.insert(&mut budget, || Arc::clone(&thing)).unwrap();
        let thread = thread::spawn(move || mortuary.step(3));
        group.kill(mortuary, &|| 0);
        mortuary.step(3);
        thread.join().unwrap();
        assert!(mortuary.is_empty() && Arc::strong_count(&thing) == 1);
        assert_eq!(tree.root().usage().unwrap().current, 0);
    });
}

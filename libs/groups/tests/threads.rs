//! Budgets, stocks and pools that several threads use at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use groups::{Arena, Budget, Chunks, Cost, Limits, Scrub, Stock, Tree, classes};

mod random;
use random::{Random, seeds};

classes! {
    enum Held { Link = Cost::eager(10), Object = Cost::deferred(5) }
}

const ROUNDS: usize = if cfg!(miri) { 50 } else { 20_000 };

/// What is charged and not yet given back, which must never exceed the bound.
struct Watched {
    live: AtomicU64,
    most: u64,
}

impl Watched {
    fn add(&self, count: u32) {
        let before = self.live.fetch_add(u64::from(count), Ordering::SeqCst);
        assert!(before + u64::from(count) <= self.most, "more is charged than there is room for");
    }

    fn sub(&self, count: u32) {
        self.live.fetch_sub(u64::from(count), Ordering::SeqCst);
    }
}

fn work(budget: Budget<'_, Held>, watched: &Watched, seed: u64) {
    let random = Random::new(seed);
    let mut stock = Stock::new(budget, 8);
    let mut charges = Vec::new();
    for _ in 0..ROUNDS {
        if random.below(2) == 0 && charges.len() < 30 {
            let count = 1 + random.below(3) as u32;
            let from_stock = random.below(4) > 0;
            let charged = if from_stock { stock.charge(Held::Link, count) } else { budget.charge(Held::Link, count) };
            if let Ok(charge) = charged {
                watched.add(count);
                charges.push(charge);
            }
        } else if let Some(charge) = charges.pop() {
            watched.sub(charge.count());
            if random.below(4) > 0 { stock.give_back(charge) } else { drop(charge) }
        }
    }
    charges.iter().for_each(|charge| watched.sub(charge.count()));
}

#[test]
fn threads_together_never_have_more_than_the_bound_and_all_comes_back() {
    let tree = Tree::new();
    let parent = tree.root().child(Limits::bound(400)).unwrap();
    let children = [40, 600, 600].map(|bound| parent.child(Limits { bound, reserved: 30 }).unwrap());
    let watched = Watched { live: AtomicU64::new(0), most: 40 };
    std::thread::scope(|scope| {
        for (seed, child) in children.iter().enumerate() {
            let (watched, budget) = (&watched, **child);
            scope.spawn(move || work(budget, watched, seed as u64));
        }
    });
    assert_eq!(parent.usage().unwrap().count(Held::Link), 0);
    drop(children);
    assert_eq!(parent.usage().unwrap().current, 0);
}

#[test]
fn bounds_costs_and_budgets_change_while_threads_charge() {
    let tree = Tree::new();
    let parent = tree.root().child(Limits::bound(400)).unwrap();
    let watched = Watched { live: AtomicU64::new(0), most: u64::MAX };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let random = Random::new(9);
            while !is_over.load(Ordering::Relaxed) {
                parent.set_bound([50, 400, 4_000][random.below(3)]);
                tree.set_cost(Held::Link, Cost::eager([1, 10, 20][random.below(3)]));
                let child = parent.child(Limits { bound: 100, reserved: 20 });
                if let Ok(child) = child {
                    let charge = child.charge(Held::Link, 2);
                    child.end();
                    drop(charge);
                }
            }
        });
        let workers = [0, 1].map(|seed| {
            let (watched, budget) = (&watched, *parent);
            scope.spawn(move || work(budget, watched, seed))
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    let usage = parent.usage().unwrap();
    assert_eq!((usage.current, usage.count(Held::Link)), (0, 0));
}

#[test]
fn arenas_of_several_threads_take_from_one_pool() {
    let pool = Chunks::new(64);
    std::thread::scope(|scope| {
        for seed in seeds(0..3) {
            let pool = &pool;
            scope.spawn(move || {
                let random = Random::new(seed);
                for _ in 0..ROUNDS / 500 {
                    let mut arena = Arena::new(pool);
                    let names: Vec<_> =
                        (0..random.below(9_000) as u64).map_while(|n| arena.insert([n; 4]).ok()).collect();
                    for (n, name) in names.iter().enumerate() {
                        assert_eq!(arena.get(*name), Some(&[n as u64; 4]));
                    }
                    if random.below(2) == 0 {
                        arena.scrub(&mut Scrub::default());
                    }
                }
            });
        }
    });
    let (free, taken) = pool.lens();
    assert_eq!(taken, 0);
    assert!(free <= 64 && pool.trim(usize::MAX) == free);
}

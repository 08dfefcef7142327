//! Random programs on a tree of budgets, against a plain model that computes everything anew from the list of charges.
//!
//! What is admitted, the model admits: nothing is under-charged. What is refused, the model refuses, once every stock was used after the refusal. When all
//! stocks are settled the sums are equal, and at the end everything has been given back. What is charged whatever the bounds ([`Bundle::charge_always`],
//! [`Bundle::move_to`], [`Bundle::turn`]) the model adds without asking, and refuses what comes next.

mod random;

use groups::{Budget, Bundle, Charge, Class, Cost, DEEPEST, Denied, Limits, OwnedBudget, Stock, Tree, classes};
use random::{Random, seeds};

classes! {
    enum Held { Link = Cost::eager(7), Thread = Cost::eager(100), Page = Cost::deferred(3) }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Closed,
    Ended,
}

struct ModelNode {
    parent: Option<usize>,
    depth: u8,
    state: State,
    bound: u64,
    reserved: u64,
}

#[derive(Default)]
struct Model {
    nodes: Vec<ModelNode>,
    costs: [u64; 3],
    /// What is charged to each node itself, by class.
    own: Vec<[u64; 3]>,
}

impl Model {
    fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(move |&child| self.nodes[child].parent == Some(node))
    }

    /// Counts of a node and all below it that are still accounted.
    fn counts(&self, node: usize) -> [u64; 3] {
        let mut counts = self.own[node];
        for child in self.children(node).filter(|&child| self.nodes[child].state != State::Ended) {
            let below = self.counts(child);
            (0..3).for_each(|class| counts[class] += below[class]);
        }
        counts
    }

    fn used(&self, node: usize) -> u64 {
        let own: u64 = self.own[node].iter().zip(self.costs).map(|(count, cost)| count * cost).sum();
        own + self.children(node).map(|child| self.contribution(child)).sum::<u64>()
    }

    fn contribution(&self, node: usize) -> u64 {
        match self.nodes[node].state {
            State::Open => self.used(node).max(self.nodes[node].reserved),
            State::Closed => self.used(node),
            State::Ended => 0,
        }
    }

    fn way_up(&self, node: usize) -> Vec<usize> {
        std::iter::successors(Some(node), |&at| self.nodes[at].parent).collect()
    }

    /// Whether something may be charged to a node at all.
    fn admits(&self, node: usize) -> Result<(), Denied> {
        let has_ended = self.way_up(node).iter().any(|&at| self.nodes[at].state == State::Ended);
        if self.nodes[node].state == State::Open && !has_ended { Ok(()) } else { Err(Denied::Ended) }
    }

    /// What somebody must say who wants to charge `count` to `node`; it is charged if that is possible.
    fn charge(&mut self, node: usize, class: Held, count: u32) -> Result<(), Denied> {
        let mut counts = [0; 3];
        counts[class.index()] = count;
        self.charge_all(node, counts)
    }

    fn charge_all(&mut self, node: usize, counts: [u32; 3]) -> Result<(), Denied> {
        self.admits(node)?;
        let way = self.way_up(node);
        let before: Vec<u64> = way.iter().map(|&at| self.used(at)).collect();
        self.add_counts(node, counts);
        for (&at, before) in way.iter().zip(before) {
            let used = self.used(at);
            if used > before && used > self.nodes[at].bound {
                self.remove_counts(node, counts);
                return Err(Denied::Full { depth: self.nodes[at].depth });
            }
        }
        Ok(())
    }

    fn add_counts(&mut self, node: usize, counts: [u32; 3]) {
        (0..3).for_each(|class| self.own[node][class] += u64::from(counts[class]));
    }

    fn remove_counts(&mut self, node: usize, counts: [u32; 3]) {
        (0..3).for_each(|class| self.own[node][class] -= u64::from(counts[class]));
    }

    fn make(&mut self, parent: usize, limits: Limits) -> Result<(), Denied> {
        let way = self.way_up(parent);
        if self.nodes[parent].state != State::Open {
            return Err(Denied::Ended);
        }
        if self.nodes[parent].depth == DEEPEST {
            return Err(Denied::TooDeep);
        }
        let before: Vec<u64> = way.iter().map(|&at| self.used(at)).collect();
        self.add(Some(parent), limits);
        let refused = way.iter().zip(before).find_map(|(&at, before)| {
            if self.nodes[at].state == State::Ended {
                return Some(Denied::Ended);
            }
            let used = self.used(at);
            (used > before && used > self.nodes[at].bound).then_some(Denied::Full { depth: self.nodes[at].depth })
        });
        // Who has an ended ancestor is told so, unless one below that refuses first.
        if let Some(denied) = refused {
            self.nodes.pop();
            self.own.pop();
            return Err(denied);
        }
        Ok(())
    }

    fn add(&mut self, parent: Option<usize>, limits: Limits) {
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth + 1);
        let Limits { bound, reserved } = limits;
        self.nodes.push(ModelNode { parent, depth, state: State::Open, bound, reserved });
        self.own.push([0; 3]);
    }
}

/// A bundle of all classes.
type AnyBundle<'t> = Bundle<'t, Held, 0, 3>;

struct Run<'t> {
    tree: &'t Tree<Held>,
    model: Model,
    /// Of each node of the model; the root's owner is the tree.
    owners: Vec<Option<OwnedBudget<'t, Held>>>,
    names: Vec<Budget<'t, Held>>,
    stocks: Vec<(usize, Stock<'t, Held>)>,
    charges: Vec<(usize, Charge<'t, Held>)>,
    bundles: Vec<(usize, AnyBundle<'t>)>,
}

const BOUNDS: [u64; 6] = [0, 300, 1_000, 3_000, 10_000, Limits::UNBOUNDED];

impl<'t> Run<'t> {
    fn step(&mut self, random: &Random) {
        let node = random.below(self.names.len());
        let class = Held::ALL[random.below(3)];
        let count = 1 + random.below([3, 40][random.below(2)]) as u32;
        match random.below(60) {
            0..=9 => self.charge(node, class, count, None),
            10..=19 if !self.stocks.is_empty() => {
                let stock = random.below(self.stocks.len());
                self.charge(self.stocks[stock].0, class, count, Some(stock));
            }
            20..=27 if !self.charges.is_empty() => {
                let (node, charge) = self.charges.swap_remove(random.below(self.charges.len()));
                self.model.own[node][charge.class().index()] -= u64::from(charge.count());
                let stock = self.stocks.iter_mut().find(|(of, _)| *of == node);
                match stock {
                    Some((_, stock)) if random.below(2) == 0 => stock.give_back(charge),
                    _ => drop(charge),
                }
            }
            28 | 29 if self.names.len() < 40 => {
                let bound = BOUNDS[random.below(BOUNDS.len())];
                let reserved = [0, 0, 50, 400, 2_000][random.below(5)];
                let made = self.names[node].child(Limits { bound, reserved });
                let expected = self.model.make(node, Limits { bound, reserved });
                // Stocks may hold what it reserves.
                let made = match (made, expected) {
                    (Err(Denied::Full { .. }), Ok(())) => {
                        self.use_all_stocks();
                        self.names[node].child(Limits { bound, reserved })
                    }
                    (made, _) => made,
                };
                assert_eq!(made.as_ref().err().is_none(), expected.is_ok(), "{made:?} {expected:?}");
                if let Ok(made) = made {
                    self.names.push(*made);
                    self.owners.push(Some(made));
                }
            }
            30 if self.stocks.len() < 6 => {
                self.stocks.push((node, Stock::new(self.names[node], random.below(20) as u32)))
            }
            31 if !self.stocks.is_empty() => drop(self.stocks.swap_remove(random.below(self.stocks.len()))),
            32 => {
                let bound = BOUNDS[random.below(BOUNDS.len())];
                self.names[node].set_bound(bound);
                self.model.nodes[node].bound = bound;
            }
            33 => {
                let costs = [0, 1, 7, 30].map(|_| [0, 1, 7, 30, 90][random.below(5)]);
                self.tree.set_costs(|class| Cost { eager: costs[class.index()], deferred: 1 });
                self.model.costs = [costs[0], costs[1], costs[2]];
            }
            34 if random.below(4) == 0 => {
                if let Some(owner) = self.owners[node].take() {
                    let is_end = random.below(2) == 0;
                    if is_end {
                        owner.end()
                    } else {
                        drop(owner)
                    }
                    self.model.nodes[node].state = if is_end { State::Ended } else { State::Closed };
                }
            }
            35 | 36 if !self.charges.is_empty() => self.transfer(random.below(self.charges.len()), node),
            37 if !self.charges.is_empty() => {
                let at = random.below(self.charges.len());
                let (of, charge) = &mut self.charges[at];
                let of = *of;
                let part = charge.split(charge.count() / 2).expect("half of it is there");
                self.charges.push((of, part));
            }
            40..=43 if self.bundles.len() < 30 => self.make_bundle(node, random),
            44..=58 if !self.bundles.is_empty() => self.change_bundle(random.below(self.bundles.len()), node, random),
            _ => {}
        }
        if random.below(20) == 0 {
            self.compare();
        }
    }

    fn try_charge(
        &mut self,
        node: usize,
        class: Held,
        count: u32,
        stock: Option<usize>,
    ) -> Result<Charge<'t, Held>, Denied> {
        match stock {
            Some(stock) => self.stocks[stock].1.charge(class, count),
            None => self.names[node].charge(class, count),
        }
    }

    fn charge(&mut self, node: usize, class: Held, count: u32, stock: Option<usize>) {
        let charged = self.try_charge(node, class, count, stock);
        // A stock holds what was admitted before a bound or the costs were changed: handing that out charges nothing more.
        let expected = self.model.charge(node, class, count);
        let charged = match (charged, &expected) {
            (Err(_), Ok(())) => {
                self.use_all_stocks();
                let again = self.try_charge(node, class, count, stock);
                assert!(again.is_ok(), "refused for ever: {again:?} for {count} of {class:?} at {node}");
                again
            }
            (charged, _) => charged,
        };
        match charged {
            Ok(charge) => {
                assert!(expected.is_ok(), "admitted {count} of {class:?} at {node}, which is {expected:?}");
                self.charges.push((node, charge));
            }
            Err(denied) => assert!(expected.is_err(), "{denied:?} {expected:?}"),
        }
    }

    fn transfer(&mut self, at: usize, to: usize) {
        let (from, class, count) = (self.charges[at].0, self.charges[at].1.class(), self.charges[at].1.count());
        self.model.own[from][class.index()] -= u64::from(count);
        let expected = self.model.charge(to, class, count);
        let mut moved = self.charges[at].1.transfer(self.names[to]);
        if moved.is_err() && expected.is_ok() {
            self.use_all_stocks();
            moved = self.charges[at].1.transfer(self.names[to]);
        }
        assert_eq!(moved.is_ok(), expected.is_ok(), "{moved:?} {expected:?}");
        if moved.is_ok() {
            self.charges[at].0 = to;
        } else {
            self.model.own[from][class.index()] += u64::from(count);
        }
    }

    fn make_bundle(&mut self, node: usize, random: &Random) {
        let counts = [0; 3].map(|_: u32| if random.below(2) == 0 { 0 } else { random.below(20) as u32 });
        let name = self.names[node];
        let bundle: Result<AnyBundle<'t>, Denied> = if random.below(3) == 0 {
            let expected = self.model.admits(node);
            let made = AnyBundle::charge_always(name, counts);
            assert_eq!(made.as_ref().err(), expected.as_ref().err(), "{counts:?} at {node}");
            if expected.is_ok() {
                self.model.add_counts(node, counts);
            }
            made
        } else if counts == [0; 3] {
            AnyBundle::charge(name, counts)
        } else {
            let expected = self.model.charge_all(node, counts);
            let mut made = AnyBundle::charge(name, counts);
            if made.is_err() && expected.is_ok() {
                self.use_all_stocks();
                made = AnyBundle::charge(name, counts);
            }
            assert_eq!(made.is_ok(), expected.is_ok(), "{made:?} {expected:?} for {counts:?} at {node}");
            made
        };
        if let Ok(bundle) = bundle {
            assert_eq!((bundle.budget(), counts_of(&bundle)), (Some(name), counts));
            self.bundles.push((node, bundle));
        }
    }

    fn change_bundle(&mut self, at: usize, to: usize, random: &Random) {
        let node = self.bundles[at].0;
        let class = Held::ALL[random.below(3)];
        let other = Held::ALL[random.below(3)];
        let more = random.below(12) as u32;
        let ahead = random.below(12) as u32;
        let before = counts_of(&self.bundles[at].1);
        let mut expected = before;
        match random.below(7) {
            0 | 1 => {
                if self.grow_bundle(at, class, more, None).is_some() {
                    expected[class.index()] += more;
                }
            }
            2 => {
                if let Some(taken) = self.grow_bundle(at, class, more, Some(ahead)) {
                    assert!(taken == more || taken == more + ahead, "{taken} for {more} and {ahead} ahead");
                    expected[class.index()] += taken;
                }
            }
            3 => {
                self.bundles[at].1.shrink(class, more);
                let less = more.min(before[class.index()]);
                expected[class.index()] -= less;
                self.model.own[node][class.index()] -= u64::from(less);
            }
            4 => {
                self.bundles[at].1.turn(class, other, ahead);
                expected = counts_of(&self.bundles[at].1);
                self.judge_turn(node, (class, other), ahead, before, expected);
            }
            5 => {
                let can = self.model.admits(to);
                assert_eq!(self.bundles[at].1.move_to(self.names[to]), can, "from {node} to {to}");
                if can.is_ok() {
                    self.model.remove_counts(node, before);
                    self.model.add_counts(to, before);
                    self.bundles[at].0 = to;
                    assert_eq!(self.bundles[at].1.budget(), Some(self.names[to]));
                }
            }
            _ => {
                self.model.remove_counts(node, before);
                drop(self.bundles.swap_remove(at));
                return;
            }
        }
        assert_eq!(counts_of(&self.bundles[at].1), expected);
    }

    /// How many were charged for, if any were.
    fn grow_bundle(&mut self, at: usize, class: Held, more: u32, ahead: Option<u32>) -> Option<u32> {
        let node = self.bundles[at].0;
        let grow = |bundle: &mut AnyBundle<'t>| match ahead {
            Some(ahead) => bundle.grow_ahead(class, more, ahead),
            None => bundle.grow(class, more).map(|()| more),
        };
        let mut grown = grow(&mut self.bundles[at].1);
        let mut expected = self.model.charge(node, class, grown.unwrap_or(more));
        if grown.is_err() && expected.is_ok() {
            self.model.own[node][class.index()] -= u64::from(more);
            self.use_all_stocks();
            grown = grow(&mut self.bundles[at].1);
            expected = self.model.charge(node, class, grown.unwrap_or(more));
        }
        assert_eq!(grown.is_ok(), expected.is_ok(), "{grown:?} {expected:?} for {more} of {class:?} at {node}");
        grown.ok()
    }

    /// What a turn did: one became one of the other class, or that is charged beside it where there is room.
    fn judge_turn(&mut self, node: usize, (from, to): (Held, Held), ahead: u32, before: [u32; 3], after: [u32; 3]) {
        let (from, more) = (from.index(), 1 + ahead);
        let (mut turned, mut beside) = (before, before);
        beside[to.index()] += more;
        if before[from] > 0 {
            turned[from] -= 1;
            turned[to.index()] += 1;
            assert!(after == turned || after == beside, "{before:?} {after:?}");
        } else {
            assert_eq!(after, before);
        }
        if after == beside {
            let charged = self.model.charge(node, to, more);
            assert_eq!(charged, Ok(()), "{more} of {to:?} beside {from:?} at {node}");
        } else {
            self.model.remove_counts(node, before);
            self.model.add_counts(node, after);
        }
    }

    /// Each stock is used once, which has it give back what somebody else was refused for.
    fn use_all_stocks(&mut self) {
        for (_, stock) in &mut self.stocks {
            drop(stock.charge(Held::Page, 0));
        }
    }

    fn compare(&mut self) {
        self.stocks.iter_mut().for_each(|(_, stock)| stock.settle());
        for (node, name) in self.names.iter().enumerate() {
            let Some(usage) = name.usage() else {
                // A closed one goes when it is empty.
                let model = &self.model;
                let is_empty = model.nodes[node].state == State::Closed && model.counts(node) == [0; 3];
                assert!(is_empty || model.nodes[node].state == State::Ended, "node {node} is missing");
                continue;
            };
            assert_eq!(usage.current, self.model.used(node), "node {node}");
            assert!(usage.peak >= usage.current);
            let counts = Held::ALL.iter().map(|&class| usage.count(class)).collect::<Vec<_>>();
            assert_eq!(counts, self.model.counts(node), "node {node}");
        }
    }
}

fn counts_of(bundle: &AnyBundle<'_>) -> [u32; 3] {
    [Held::Link, Held::Thread, Held::Page].map(|class| bundle.count(class))
}

#[test]
fn budgets_do_what_a_plain_model_does() {
    for seed in seeds(0..300) {
        let random = Random::new(seed);
        let tree = Tree::new();
        let mut model = Model { costs: [7, 100, 0], ..Model::default() };
        model.add(None, Limits::bound(Limits::UNBOUNDED));
        let mut run = Run {
            tree: &tree,
            model,
            owners: vec![None],
            names: vec![tree.root()],
            stocks: Vec::new(),
            charges: Vec::new(),
            bundles: Vec::new(),
        };
        for _ in 0..600 {
            run.step(&random);
        }
        run.compare();
        // Everything is given back, in any order.
        let Run { owners, stocks, charges, bundles, .. } = run;
        if random.below(2) == 0 {
            drop(owners);
            drop((charges, bundles, stocks));
        } else {
            drop((stocks, bundles, charges));
            drop(owners);
        }
        let usage = tree.root().usage().expect("the root does not end");
        assert_eq!((usage.current, Held::ALL.iter().map(|&class| usage.count(class)).sum::<u64>()), (0, 0));
    }
}

//! What is known at a point, and what follows from it.
//!
//! A fact is a bound on the difference of two quantities, as whole numbers that do not wrap around. What follows from several is
//! found by adding up the bounds on a way from one quantity to the other.

use super::Prover;
use super::values::Integer;
use crate::tree::{GlobalId, LocalId};

/// A quantity that facts compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantity {
    Zero,
    Variable(LocalId),
    /// The elements that this fat pointer has left.
    Count(LocalId),
}

/// `left - right <= most`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Difference {
    left: Quantity,
    right: Quantity,
    most: i128,
}

/// The fat pointer has an element with the number `index + offset`: a check has succeeded. This says nothing of lower ones, nor
/// that the number is not negative, because a fat pointer may lie before its first element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Element {
    pointer: LocalId,
    index: Quantity,
    offset: i128,
}

/// A quantity that there is a way to, with the least sum of bounds on one so far.
#[derive(Clone, Copy)]
struct Reached {
    quantity: Quantity,
    most: i128,
    /// The sum is new: the quantities after this one do not have it yet.
    leads_on: bool,
}

/// All that is known at a point.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    differences: Vec<Difference>,
    elements: Vec<Element>,
    /// These fat pointers lead to the first of their elements: there is none before it.
    starts: Vec<LocalId>,
}

/// More are not kept: a function with that many would only take long.
const FACTS_LIMIT: usize = 48;
/// So many bounds are added up at most.
const WAY_LIMIT: u32 = 4;
/// Greater numbers are not kept, so that sums of some of them cannot overflow.
const NUMBER_LIMIT: i128 = 1 << 70;
/// No object has more elements.
const MOST_ELEMENTS: i128 = (1 << 63) - 1;

impl Quantity {
    fn is_of(self, local: LocalId) -> bool {
        matches!(self, Quantity::Variable(of) | Quantity::Count(of) if of == local)
    }
}

impl Facts {
    fn find(&self, left: Quantity, right: Quantity) -> Option<i128> {
        self.differences.iter().find(|fact| fact.left == left && fact.right == right).map(|fact| fact.most)
    }

    fn add(&mut self, left: Quantity, right: Quantity, most: i128) {
        if left == right || most.abs() > NUMBER_LIMIT {
            return;
        }
        if let Some(fact) = self.differences.iter_mut().find(|fact| fact.left == left && fact.right == right) {
            fact.most = fact.most.min(most);
        } else if self.differences.len() < FACTS_LIMIT {
            self.differences.push(Difference { left, right, most });
        }
    }

    fn forget(&mut self, local: LocalId) {
        self.differences.retain(|fact| !fact.left.is_of(local) && !fact.right.is_of(local));
        self.elements.retain(|fact| fact.pointer != local && !fact.index.is_of(local));
        self.starts.retain(|&pointer| pointer != local);
    }

    /// A quantity has grown by a number.
    fn shift(&mut self, quantity: Quantity, by: i128) {
        for fact in &mut self.differences {
            if fact.left == quantity {
                fact.most += by;
            } else if fact.right == quantity {
                fact.most -= by;
            }
        }
        for fact in &mut self.elements {
            let is_moved = matches!(quantity, Quantity::Count(pointer) if fact.pointer == pointer);
            if is_moved {
                fact.offset += by;
            } else if fact.index == quantity {
                fact.offset -= by;
            }
        }
        self.differences.retain(|fact| fact.most.abs() <= NUMBER_LIMIT);
        self.starts.retain(|&pointer| quantity != Quantity::Count(pointer) || by == 0);
    }
}

impl Prover<'_> {
    /// What the type of a quantity says of it.
    pub(super) fn range(&self, quantity: Quantity) -> Option<(i128, i128)> {
        match quantity {
            Quantity::Zero => Some((0, 0)),
            Quantity::Count(_) => Some((0, MOST_ELEMENTS)),
            Quantity::Variable(local) => {
                let integer = Integer::of(self.types, self.locals[local.0 as usize].ty)?;
                Some((integer.least(), integer.most()))
            }
        }
    }

    /// What `from - to` is at most by these facts.
    fn distance_by(&self, facts: &Facts, from: Quantity, to: Quantity) -> Option<i128> {
        if from == to {
            return Some(0);
        }
        // Most quantities have no facts: only their types lead on.
        let zero = Quantity::Zero;
        if from != zero && !facts.differences.iter().any(|fact| fact.left == from) {
            return Some(self.range(from)?.1 + self.distance_by(facts, zero, to)?);
        }
        if to != zero && !facts.differences.iter().any(|fact| fact.right == to) {
            return Some(self.distance_by(facts, from, zero)? - self.range(to)?.0);
        }
        self.shortest_way(facts, from, to)
    }

    fn shortest_way(&self, facts: &Facts, from: Quantity, to: Quantity) -> Option<i128> {
        let mut reached = Vec::with_capacity(8);
        reached.push(Reached { quantity: from, most: 0, leads_on: true });
        for _ in 0..WAY_LIMIT {
            let mut is_changed = false;
            for at in 0..reached.len() {
                let Reached { quantity, most: so_far, leads_on } = reached[at];
                if !leads_on {
                    continue;
                }
                reached[at].leads_on = false;
                let mut reach = |quantity: Quantity, most: i128| {
                    let known = reached.iter_mut().find(|known| known.quantity == quantity);
                    if known.as_ref().is_some_and(|known| known.most <= most) {
                        return;
                    }
                    is_changed = true;
                    let better = Reached { quantity, most, leads_on: true };
                    match known {
                        Some(known) => *known = better,
                        None => reached.push(better),
                    }
                };
                for fact in &facts.differences {
                    if fact.left == quantity {
                        reach(fact.right, so_far + fact.most);
                    }
                    if quantity == Quantity::Zero
                        && let Some((least, _)) = self.range(fact.left)
                    {
                        reach(fact.left, so_far - least);
                    }
                }
                if let Some((_, most)) = self.range(quantity) {
                    reach(Quantity::Zero, so_far + most);
                }
                if quantity == Quantity::Zero
                    && let Some((least, _)) = self.range(to)
                {
                    reach(to, so_far - least);
                }
            }
            if !is_changed {
                break;
            }
        }
        reached.iter().find(|known| known.quantity == to).map(|known| known.most)
    }

    /// What `from - to` is at most.
    pub(super) fn distance(&self, from: Quantity, to: Quantity) -> Option<i128> {
        self.distance_by(self.facts.as_ref()?, from, to)
    }

    /// From now on `left - right <= most`.
    pub(super) fn learn(&mut self, left: Quantity, right: Quantity, most: i128) {
        let is_known = self.distance(left, right).is_some_and(|known| known <= most);
        if let Some(facts) = &mut self.facts
            && !is_known
        {
            facts.add(left, right, most);
        }
    }

    /// From now on the fat pointer has this element.
    pub(super) fn learn_element(&mut self, pointer: LocalId, index: Quantity, offset: i128) {
        let element = Element { pointer, index, offset };
        if let Some(facts) = &mut self.facts
            && facts.elements.len() < FACTS_LIMIT
            && !facts.elements.contains(&element)
        {
            facts.elements.push(element);
        }
    }

    pub(super) fn has_element(&self, pointer: LocalId, index: Quantity, offset: i128) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.elements.contains(&Element { pointer, index, offset }))
    }

    /// From now on the fat pointer leads to the first of its elements.
    pub(super) fn learn_start(&mut self, pointer: LocalId) {
        if let Some(facts) = &mut self.facts
            && !facts.starts.contains(&pointer)
        {
            facts.starts.push(pointer);
        }
    }

    pub(super) fn is_at_start(&self, pointer: LocalId) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.starts.contains(&pointer))
    }

    /// The function begins.
    pub(super) fn begin(&mut self, function: GlobalId) {
        let known = self.calls.entries.of(function);
        for (left, right, most) in known.differences {
            self.learn(left, right, most);
        }
        known.starts.into_iter().for_each(|pointer| self.learn_start(pointer));
    }

    /// A variable and the elements that a fat pointer has left: what is known of their difference becomes a fact of its own, which
    /// stays when both change by the same number.
    pub(super) fn relate(&mut self, variable: LocalId, pointer: LocalId) {
        let (variable, count) = (Quantity::Variable(variable), Quantity::Count(pointer));
        for (left, right) in [(variable, count), (count, variable)] {
            let most = self.distance(left, right);
            if let (Some(facts), Some(most)) = (&mut self.facts, most) {
                facts.add(left, right, most);
            }
        }
    }

    /// Whether there is a fact that something can take away.
    pub(super) fn knows_anything(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| *facts != Facts::default())
    }

    pub(super) fn forget(&mut self, local: LocalId) {
        if let Some(facts) = &mut self.facts {
            facts.forget(local);
        }
    }

    pub(super) fn forget_all(&mut self, locals: &[LocalId]) {
        locals.iter().for_each(|&local| self.forget(local));
    }

    pub(super) fn shift(&mut self, quantity: Quantity, by: i128) {
        if let Some(facts) = &mut self.facts {
            facts.shift(quantity, by);
        }
    }

    /// Where there is an element with the number `from`, there is the same with the number `to`, which is `from + by`.
    pub(super) fn copy_index(&mut self, from: Quantity, to: Quantity, by: i128) {
        let elements = self.facts.as_ref().map(|facts| facts.elements.clone()).unwrap_or_default();
        for element in elements.into_iter().filter(|element| element.index == from) {
            self.learn_element(element.pointer, to, element.offset - by);
        }
    }

    /// What is known of a fat pointer is known of its copy.
    pub(super) fn copy_pointer(&mut self, from: LocalId, to: LocalId) {
        self.learn(Quantity::Count(from), Quantity::Count(to), 0);
        self.learn(Quantity::Count(to), Quantity::Count(from), 0);
        if self.is_at_start(from) {
            self.learn_start(to);
        }
        let elements = self.facts.as_ref().map(|facts| facts.elements.clone()).unwrap_or_default();
        for element in elements.into_iter().filter(|element| element.pointer == from) {
            self.learn_element(to, element.index, element.offset);
        }
    }

    /// Where two ways meet, what follows from the facts of both is known.
    pub(super) fn meet(&self, into: &mut Option<Facts>, other: Option<Facts>) {
        let Some(other) = other else { return };
        let Some(facts) = into else {
            *into = Some(other);
            return;
        };
        if *facts == other {
            return;
        }
        // Both began with what was known before the ways parted.
        let same = facts.differences.iter().zip(&other.differences).take_while(|(one, two)| one == two).count();
        let mut both = Facts { differences: facts.differences[..same].to_vec(), ..Facts::default() };
        for fact in facts.differences[same..].iter().chain(&other.differences[same..]) {
            let known =
                |of: &Facts| of.find(fact.left, fact.right).or_else(|| self.distance_by(of, fact.left, fact.right));
            if both.find(fact.left, fact.right).is_none()
                && let (Some(one), Some(two)) = (known(facts), known(&other))
            {
                both.add(fact.left, fact.right, one.max(two));
            }
        }
        both.elements = facts.elements.iter().copied().filter(|element| other.elements.contains(element)).collect();
        both.starts = facts.starts.iter().copied().filter(|pointer| other.starts.contains(pointer)).collect();
        *facts = both;
    }

    /// Of the facts at the head of a loop, those that hold when it comes back there; says whether they are all. A bound
    /// may be weakened twice, to -1 and to 0, so that this comes to an end.
    pub(super) fn keep(&self, head: &mut Option<Facts>, back: Option<&Facts>) -> bool {
        let (Some(facts), Some(back)) = (head.as_mut(), back) else { return true };
        let before = facts.clone();
        facts.differences.retain_mut(|fact| match self.distance_by(back, fact.left, fact.right) {
            Some(most) if most <= fact.most => true,
            Some(most) if most <= 0 && fact.most < 0 => {
                fact.most = if most < 0 && fact.most < -1 { -1 } else { 0 };
                true
            }
            _ => false,
        });
        facts.elements.retain(|element| back.elements.contains(element));
        facts.starts.retain(|pointer| back.starts.contains(pointer));
        *facts == before
    }
}

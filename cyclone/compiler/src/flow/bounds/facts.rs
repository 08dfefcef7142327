//! What is known at a point, and what follows from it for an index.

use super::Prover;
use super::terms::{Array, Term};
use crate::tree::LocalId;

/// A number that an index may be below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    Number(i128),
    Variable(LocalId),
    /// The number of elements that this fat pointer has left.
    Count(LocalId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fact {
    NotNegative(LocalId),
    Below(LocalId, Bound),
    /// The fat pointer has at least so many elements.
    Holds(LocalId, Bound),
    /// The fat pointer has an element with this index: a check has succeeded. This says nothing of lower ones, nor that the index
    /// is not negative, because a fat pointer may be moved before its first element or past others.
    Element(LocalId, Bound),
}

impl Fact {
    pub(super) fn mentions(self, local: LocalId) -> bool {
        match self {
            Fact::NotNegative(of) => of == local,
            Fact::Below(of, bound) | Fact::Holds(of, bound) | Fact::Element(of, bound) => {
                of == local || bound == Bound::Variable(local) || bound == Bound::Count(local)
            }
        }
    }
}

pub(super) type Facts = Vec<Fact>;

/// More are not kept: a function with that many would only take long.
pub(super) const FACTS_LIMIT: usize = 64;
pub(super) fn meet(into: &mut Option<Facts>, other: Option<Facts>) {
    match (into, other) {
        (_, None) => {}
        (into @ None, other) => *into = other,
        (Some(facts), Some(other)) => facts.retain(|fact| other.contains(fact)),
    }
}

impl Prover<'_> {
    pub(super) fn learn(&mut self, fact: Fact) {
        let tracked = |local: LocalId| self.is_tracked[local.0 as usize];
        let is_tracked = match fact {
            Fact::NotNegative(local) => tracked(local),
            Fact::Below(local, bound) | Fact::Holds(local, bound) | Fact::Element(local, bound) => {
                tracked(local)
                    && match bound {
                        Bound::Variable(other) | Bound::Count(other) => tracked(other),
                        Bound::Number(_) => true,
                    }
            }
        };
        if let Some(facts) = &mut self.facts
            && is_tracked
            && facts.len() < FACTS_LIMIT
            && !facts.contains(&fact)
        {
            facts.push(fact);
        }
    }

    pub(super) fn forget(&mut self, local: LocalId) {
        if let Some(facts) = &mut self.facts {
            facts.retain(|fact| !fact.mentions(local));
        }
    }

    pub(super) fn forget_all(&mut self, locals: &[LocalId]) {
        if let Some(facts) = &mut self.facts {
            facts.retain(|fact| !locals.iter().any(|&local| fact.mentions(local)));
        }
    }

    pub(super) fn knows(&self, wanted: impl Fn(Fact) -> bool) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.iter().any(|&fact| wanted(fact)))
    }

    pub(super) fn is_within(&self, index: Term, array: Array) -> bool {
        if let (Array::Fat(pointer), Some(index)) = (array, index.as_bound())
            && self.knows(|fact| fact == Fact::Element(pointer, index))
        {
            return true;
        }
        match index {
            Term::Number(number) => number >= 0 && self.has_more_than(array, number),
            Term::Variable(local) => {
                let is_positive = self.is_unsigned(local) || self.knows(|fact| fact == Fact::NotNegative(local));
                is_positive && self.is_below(local, array, 3)
            }
            Term::Count(_) | Term::Other => false,
        }
    }

    /// The array has an element with this number.
    pub(super) fn has_more_than(&self, array: Array, number: i128) -> bool {
        match array {
            Array::Thin(len) => number < len,
            Array::Fat(pointer) => self.knows(|fact| match fact {
                Fact::Holds(of, Bound::Number(len)) => of == pointer && number < len,
                _ => false,
            }),
        }
    }

    pub(super) fn is_below(&self, local: LocalId, array: Array, depth: u32) -> bool {
        self.knows(|fact| {
            let Fact::Below(of, bound) = fact else { return false };
            of == local
                && match (bound, array) {
                    (Bound::Count(of), Array::Fat(pointer)) if of == pointer => true,
                    (Bound::Number(number), _) => number <= 0 || self.has_more_than(array, number - 1),
                    (Bound::Variable(other), _) => {
                        let is_held = match array {
                            Array::Fat(pointer) => self.knows(|fact| fact == Fact::Holds(pointer, bound)),
                            Array::Thin(_) => false,
                        };
                        is_held || (depth > 0 && self.is_below(other, array, depth - 1))
                    }
                    _ => false,
                }
        })
    }
}

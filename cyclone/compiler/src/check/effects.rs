//! Which regions are live, and what is known of effects and qualifiers.
//!
//! A [`Capability`] is a chain of facts, the latest first: regions that are live (those of the prototype's effect, the blocks around, regions
//! declared or opened) and constraints (of the prototype, of opened packages). Whoever opens a block keeps the capability from before and puts it
//! back; that costs nothing, the chain is shared.
//!
//! An effect is included in another one (`a <= b`: whoever may access all of `b` may access `a`) if that follows from:
//! the heap is in everything; a constraint says so; `b` has a block's region or a declared one, and `a` was live when that one began, for such regions end in the
//! reverse order of their beginning. A region that was opened by its key says nothing about others.
//!
//! What has inference variables is decided at the end of the function ([`Pending`]), when they are known.

use super::Checker;
use super::words::Handler;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::types::{Constraint, Function, Ty, TyKind, TyVar};
use std::rc::Rc;

/// The regions and effects that may be accessed at a place, and what is known about them.
#[derive(Debug, Default, Clone)]
pub struct Capability(Option<Rc<Node>>);

#[derive(Debug)]
struct Node {
    fact: Fact,
    before: Capability,
}

#[derive(Debug, Clone)]
enum Fact {
    /// Live; what was live before outlives it if it is `Nested`.
    Live(Ty, Order),
    Known(Constraint),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Nested,
    Unordered,
}

impl Drop for Capability {
    /// A long chain is taken apart step by step: recursion would need stack for each fact.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(node) = next {
            match Rc::try_unwrap(node) {
                Ok(mut node) => next = node.before.0.take(),
                Err(_) => break,
            }
        }
    }
}

impl Capability {
    fn and(self, fact: Fact) -> Capability {
        Capability(Some(Rc::new(Node { fact, before: self })))
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.0.as_deref(), |node| node.before.0.as_deref())
    }
}

/// What is decided at the end of a function, when types are known.
#[derive(Debug)]
pub enum Pending {
    /// The regions of an effect must be live.
    Live(Ty, Reason, Capability, Span),
    /// A constraint must hold.
    Holds(Constraint, Capability, Span),
    /// A type takes the place of a variable whose values generic code finds in memory.
    Word(TyVar, Ty, Handler, Span),
    /// A type's size is asked for.
    Sized(Ty, Span),
}

/// Why regions must be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A pointer is followed.
    Access,
    /// A function is called that needs them.
    Call,
}

impl Checker<'_> {
    /// What a function's body may access: the effect of its type, and then its own block's region.
    /// A function inside another one may access what can be accessed `around` it, too.
    pub(super) fn capability_of(
        &mut self,
        function: &Function,
        region: TyVar,
        around: Option<&Capability>,
    ) -> Capability {
        let mut capability = around.cloned().unwrap_or_default();
        let current = self.current_region;
        let current = self.make(TyKind::Var(current));
        for part in self.types.effect_parts(function.effect).into_iter().chain([current]) {
            capability = capability.and(Fact::Live(part, Order::Unordered));
        }
        for constraint in &function.constraints {
            capability = capability.and(Fact::Known(constraint.clone()));
        }
        let region = self.make(TyKind::Var(region));
        capability.and(Fact::Live(region, Order::Nested))
    }

    fn learn(&mut self, fact: Fact) {
        if let Some(body) = &mut self.body {
            body.capability = std::mem::take(&mut body.capability).and(fact);
        }
    }

    /// The region of a block or declaration begins: it ends before everything that is live now.
    pub fn enter_region(&mut self, region: TyVar) {
        let region = self.make(TyKind::Var(region));
        self.learn(Fact::Live(region, Order::Nested));
    }

    /// A dynamic region is opened: it is live, and nothing is known of when it ends.
    pub fn open_region(&mut self, region: Ty) {
        self.learn(Fact::Live(region, Order::Unordered));
    }

    /// Forgets the last region entered, and what was learnt since.
    pub fn leave_region(&mut self) {
        let Some(body) = &mut self.body else { return };
        while let Some(node) = body.capability.0.clone() {
            body.capability = node.before.clone();
            if matches!(node.fact, Fact::Live(..)) {
                return;
            }
        }
    }

    /// A constraint is known from here on: that of an opened package.
    pub fn assume(&mut self, constraint: &Constraint) {
        self.learn(Fact::Known(constraint.clone()));
    }

    /// What may be accessed here.
    pub fn capability(&self) -> Capability {
        self.body.as_ref().map(|body| body.capability.clone()).unwrap_or_default()
    }

    /// A pointer into these regions is followed.
    pub fn access(&mut self, region: Ty, span: Span) {
        self.require_live(region, Reason::Access, span);
    }

    /// A function with this effect is called.
    pub fn require_effect(&mut self, effect: Ty, span: Span) {
        self.require_live(effect, Reason::Call, span);
    }

    fn require_live(&mut self, effect: Ty, reason: Reason, span: Span) {
        if self.body.is_none() || matches!(self.types.get(effect), TyKind::Heap) {
            return;
        }
        let capability = self.capability();
        if self.first_dead(effect, &capability).is_some()
            && let Some(body) = &mut self.body
        {
            body.pending.push(Pending::Live(effect, reason, capability, span));
        }
    }

    /// Constraints of a function that is called here.
    pub fn require_constraints(&mut self, constraints: &[Constraint], span: Span) {
        let capability = self.capability();
        for constraint in constraints {
            if !self.holds(constraint, &capability)
                && let Some(body) = &mut self.body
            {
                body.pending.push(Pending::Holds(constraint.clone(), capability.clone(), span));
            }
        }
    }

    /// Whether each region of `part` is among those of `whole`.
    pub fn effect_included(&mut self, part: Ty, whole: Ty) -> bool {
        if self.is_wrong(part) || self.is_wrong(whole) {
            return true;
        }
        let whole = self.types.effect_parts(whole);
        self.types.effect_parts(part).iter().all(|part| whole.contains(part))
    }

    /// Whether what is in the regions of `part` lives at least as long as all of `whole` does, by all that is known here.
    pub fn outlives(&mut self, part: Ty, whole: Ty) -> bool {
        let capability = self.capability();
        self.included(part, whole, &capability)
    }

    /// Whether all of `whole` being live means that all of `part` is.
    fn included(&mut self, part: Ty, whole: Ty, capability: &Capability) -> bool {
        if self.is_wrong(part) || self.is_wrong(whole) {
            return true;
        }
        let parts = self.types.effect_parts(part);
        let mut reach = self.types.effect_parts(whole);
        if parts.iter().all(|part| self.is_heap(*part) || reach.contains(part)) {
            return true;
        }
        self.close(&mut reach, capability);
        parts.into_iter().all(|part| self.is_heap(part) || reach.contains(&part))
    }

    fn is_wrong(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Error)
    }

    fn is_heap(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Heap)
    }

    /// The first part of an effect that is not live.
    fn first_dead(&mut self, effect: Ty, capability: &Capability) -> Option<Ty> {
        let whole = self.types.head(effect);
        let is_live = |node: &Node| matches!(node.fact, Fact::Live(region, _) if self.types.head(region) == whole);
        if self.is_wrong(whole) || capability.nodes().any(is_live) {
            return None;
        }
        let parts = self.types.effect_parts(effect);
        let mut reach = Vec::with_capacity(16);
        for node in capability.nodes() {
            if let Fact::Live(region, _) = node.fact {
                self.types.add_effect_parts(region, &mut reach);
            }
        }
        let dead = |checker: &Self, reach: &[Ty]| {
            parts
                .iter()
                .copied()
                .find(|part| !checker.is_heap(*part) && !checker.is_wrong(*part) && !reach.contains(part))
        };
        dead(self, &reach)?;
        self.close(&mut reach, capability);
        dead(self, &reach)
    }

    /// Adds to a set of regions all that is included in it.
    fn close(&mut self, reach: &mut Vec<Ty>, capability: &Capability) {
        loop {
            let before = reach.len();
            let mut add = Vec::new();
            for node in capability.nodes() {
                match &node.fact {
                    Fact::Live(region, Order::Nested) if reach.contains(&self.types.head(*region)) => {
                        for older in node.before.nodes() {
                            if let Fact::Live(region, _) = older.fact {
                                add.push(region);
                            }
                        }
                    }
                    Fact::Known(Constraint::Subset(part, whole)) => {
                        let whole = self.types.effect_parts(*whole);
                        if whole.into_iter().all(|region| self.is_heap(region) || reach.contains(&region)) {
                            add.push(*part);
                        }
                    }
                    _ => {}
                }
            }
            for effect in add {
                for part in self.types.effect_parts(effect) {
                    if !reach.contains(&part) {
                        reach.push(part);
                    }
                }
            }
            if reach.len() == before {
                return;
            }
        }
    }

    fn holds(&mut self, constraint: &Constraint, capability: &Capability) -> bool {
        match *constraint {
            Constraint::Subset(part, whole) => self.included(part, whole, capability),
            Constraint::Disjoint(a, b) => self.disjoint(a, b, capability),
            Constraint::Single(effect) => self.single(effect, capability),
            Constraint::AqualBound(bound, aqual) => {
                let bound = self.types.alias_bound(bound);
                matches!(self.types.get(aqual), TyKind::Evar(_)) || bound.admits(self.types.alias_bound(aqual))
            }
        }
    }

    /// Exactly one region: the heap, that of a block or declaration, or one that a constraint says to be one.
    fn single(&mut self, effect: Ty, capability: &Capability) -> bool {
        let parts = self.types.effect_parts(effect);
        let [part] = parts[..] else { return false };
        self.is_heap(part)
            || self.is_wrong(part)
            || capability.nodes().any(|node| match node.fact {
                Fact::Live(region, Order::Nested) => self.types.head(region) == part,
                Fact::Known(Constraint::Single(of)) => self.types.head(of) == part,
                _ => false,
            })
    }

    /// No region in common: a constraint says so, or they are different regions each known to be one, of which at least one began here.
    fn disjoint(&mut self, a: Ty, b: Ty, capability: &Capability) -> bool {
        let (left, right) = (self.types.effect_parts(a), self.types.effect_parts(b));
        let began_here = |checker: &Self, part: Ty| {
            capability.nodes().any(
                |node| matches!(node.fact, Fact::Live(region, Order::Nested) if checker.types.head(region) == part),
            )
        };
        let said = |checker: &mut Self, x: Ty, y: Ty| {
            capability.nodes().any(|node| {
                let Fact::Known(Constraint::Disjoint(p, q)) = node.fact else { return false };
                let (p, q) = (checker.types.effect_parts(p), checker.types.effect_parts(q));
                (p.contains(&x) && q.contains(&y)) || (p.contains(&y) && q.contains(&x))
            })
        };
        left.iter()
            .all(|&x| right.iter().all(|&y| x != y && (began_here(self, x) || began_here(self, y) || said(self, x, y))))
    }

    /// The function ends: decides what was put off.
    pub(super) fn decide_pending(&mut self) {
        let pending = self.body.as_mut().map(|body| std::mem::take(&mut body.pending)).unwrap_or_default();
        for pending in pending {
            self.decide(pending);
        }
    }

    pub(super) fn decide(&mut self, pending: Pending) {
        match pending {
            Pending::Live(effect, reason, capability, span) => {
                if let Some(dead) = self.first_dead(effect, &capability) {
                    self.report_dead(dead, reason, span);
                }
            }
            Pending::Holds(constraint, capability, span) => {
                if !self.holds(&constraint, &capability) {
                    let shown = self.show_constraint(&constraint);
                    self.error(Code::Constraint, span, format!("the call needs `{shown}`, which is not known here"));
                }
            }
            Pending::Word(param, ty, handler, span) => self.check_word(param, ty, &handler, span),
            Pending::Sized(ty, span) => {
                self.require_written_size(ty, span);
            }
        }
    }

    fn report_dead(&mut self, dead: Ty, reason: Reason, span: Span) {
        let shown = self.show(dead);
        let message = match reason {
            Reason::Access => format!("this accesses the region `{shown}`, which is not known to be live here"),
            Reason::Call => format!("the function accesses the region `{shown}`, which is not known to be live here"),
        };
        let error = Diagnostic::error(Code::DeadRegion, span, message);
        let bound = match *self.types.get(dead) {
            TyKind::RegionsOf(of) => of,
            _ => dead,
        };
        let error = self.with_extents(error, bound);
        self.diagnostics.push(error);
    }

    fn show_constraint(&self, constraint: &Constraint) -> String {
        match *constraint {
            Constraint::Subset(a, b) => format!("{} <= {}", self.show(a), self.show(b)),
            Constraint::Disjoint(a, b) => format!("{} | {}", self.show(a), self.show(b)),
            Constraint::Single(a) => format!("single({})", self.show(a)),
            Constraint::AqualBound(a, b) => format!("{} >= {}", self.show(a), self.show(b)),
        }
    }
}

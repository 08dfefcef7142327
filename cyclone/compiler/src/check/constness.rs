//! How far `const` reaches into an object.
//!
//! What is reached through a `const` pointer is `const`, with all its members; that is why such a pointer may be taken for one to an
//! object whose members point into other regions (see [`super::coerce`]). A member whose type is made of type parameters only is
//! left out of that: it has to agree exactly. So types stay what they are where the address of such a member loses `const`, as in the
//! original's dictionary; but what is `const` is written to, and may lie where nothing can be written: a loophole.

use super::Checker;
use crate::ast::Quals;
use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Expr, ExprKind};
use crate::types::{AggregateId, Kind, Pointer, Ty, TyKind, TyVar, children};

impl Checker<'_> {
    /// The pointer's parts without `const`, and a report, where `value` is the address of a member that may lose it and `to` asks
    /// for that.
    pub(super) fn without_lost_const(&mut self, value: &Expr, from: &Pointer, to: &Pointer) -> Pointer {
        let mut from = from.clone();
        if from.quals.is_const
            && !to.quals.is_const
            && let ExprKind::Address(place) = &value.kind
            && !self.const_reaches(place)
        {
            let message = "the member is `const` where it comes from, and not behind this pointer";
            self.loophole(Diagnostic::error(Code::NotAssignable, value.span, message));
            from.quals.is_const = false;
        }
        from
    }

    /// Whether `const` has to be kept for a place that is `const`.
    fn const_reaches(&self, place: &Expr) -> bool {
        let ExprKind::Member(base, index) = &place.kind else { return true };
        match self.types.get(base.ty) {
            TyKind::Tuple(members) if members[*index].quals.is_const => true,
            TyKind::Tuple(_) => self.const_reaches(base),
            TyKind::Aggregate(id, _) => self.field_quals(*id, *index).is_const || !self.agrees_exactly(*id, *index),
            _ => true,
        }
    }

    fn field_quals(&self, id: AggregateId, index: usize) -> Quals {
        let body = self.declarations.aggregate(id).body.as_ref();
        body.and_then(|body| body.fields.get(index)).map_or(Quals::default(), |field| field.quals)
    }

    /// Whether a member's declared type has type parameters, and none of them is about regions.
    pub(super) fn agrees_exactly(&self, id: AggregateId, index: usize) -> bool {
        let aggregate = self.declarations.aggregate(id);
        let Some(field) = aggregate.body.as_ref().and_then(|body| body.fields.get(index)) else { return false };
        let mut found = Vec::new();
        self.parameters_in(field.ty, &aggregate.params, &mut found);
        !found.is_empty() && found.iter().all(|&kind| matches!(kind, Kind::Any | Kind::Memory | Kind::Boxed))
    }

    fn parameters_in(&self, ty: Ty, params: &[TyVar], found: &mut Vec<Kind>) {
        match self.types.get(ty) {
            TyKind::Var(var) if params.contains(var) => found.push(self.types.var(*var).kind),
            _ if self.types.is_fixed(ty) => {}
            kind => children(kind).for_each(|child| self.parameters_in(child, params, found)),
        }
    }
}

//! What stores: assignments, steps, swaps.

use super::Analysis;
use super::expressions::{Use, is_local_path};
use super::shape::Leaf;
use super::value::{Level, Place, Value};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Expr, ExprKind};
use crate::types::{Ty, TyKind};

impl Analysis<'_, '_> {
    pub(super) fn assignment(&mut self, place: &mut Expr, value: &mut Expr, ty: Ty, used: Use, span: Span) -> Value {
        let owned = self.shapes.is_owned(ty);
        if used == Use::Copy && owned {
            self.error(
                Code::Consumed,
                span,
                "an owned pointer cannot be stored in two places: the assignment's value is used again",
            );
            self.state = None;
            return Value::Unknown(Level::All);
        }
        let stored = self.value(value, Use::Copy);
        let deeply = if owned && is_local_path(place) { Use::Copy } else { Use::Look };
        match self.place(place, deeply) {
            Some(target) => {
                if self.options.warn_lost
                    && owned
                    && let Some(old) = self.at(&target)
                    && self.shapes.holds_live(place.ty, &old)
                {
                    self.lost(place.span, "the assignment may overwrite the only pointer to an object");
                }
                self.assign(&target, &stored, value.span);
            }
            None => self.release(&stored, value.span),
        }
        stored
    }

    /// A warning about an owned object that nothing leads to any more.
    pub(super) fn lost(&mut self, span: Span, message: &str) {
        self.report(Diagnostic::warning(Code::Lost, span, message));
    }

    /// `x += e`.
    pub(super) fn update(&mut self, place: &mut Expr, value: &mut Expr) -> Value {
        self.number(value);
        if let Some(target) = self.place(place, Use::Look) {
            if let Some(old) = self.at(&target)
                && self.level(&old) == Level::None
                && !old.is_pointer_with_value()
            {
                self.not_initialised(place.span, "the value may not have been initialised", old.consumed_at());
            }
            self.assign(&target, &Value::Unknown(Level::All), place.span);
        }
        Value::Unknown(Level::All)
    }

    /// `x++` and its like.
    pub(super) fn step(&mut self, place: &mut Expr) -> Value {
        let target = self.place(place, Use::Look);
        if let Some(target) = target {
            if let Some(old) = self.at(&target)
                && self.level(&old) == Level::None
                && !old.is_pointer_with_value()
            {
                self.not_initialised(place.span, "the value may not have been initialised", old.consumed_at());
            }
            self.assign(&target, &Value::Unknown(Level::All), place.span);
        }
        Value::Unknown(Level::All)
    }

    /// `a :=: b`.
    pub(super) fn swap(&mut self, left: &mut Expr, right: &mut Expr) -> Value {
        let deeply = |expr: &Expr| if is_local_path(expr) { Use::Copy } else { Use::Look };
        let (left_use, right_use) = (deeply(left), deeply(right));
        let left_place = self.place(left, left_use);
        let right_place = self.place(right, right_use);
        let left_value = self.swapped(left, &left_place);
        let right_value = self.swapped(right, &right_place);
        for (place, value, other) in [(&*left, &right_value, &*right), (&*right, &left_value, &*left)] {
            if self.is_zero_terminated(place) && !matches!(value.bare(), Value::Zero) {
                let message = "what is swapped into a zero-terminated array must be known to be 0";
                self.error(Code::ZeroTerminated, other.span, message);
            }
        }
        match &left_place {
            Some(place) => self.assign(place, &right_value, right.span),
            None => self.release(&right_value, right.span),
        }
        match &right_place {
            Some(place) => self.assign(place, &left_value, left.span),
            None => self.release(&left_value, left.span),
        }
        Value::Unknown(Level::All)
    }

    pub(super) fn swapped(&mut self, expr: &Expr, place: &Option<Place>) -> Value {
        let known = place.as_ref().and_then(|place| self.at(place));
        known.unwrap_or_else(|| self.shapes.of(expr.ty, Leaf::Anything))
    }

    /// An element of a zero-terminated array, reached through a pointer.
    pub(super) fn is_zero_terminated(&self, expr: &Expr) -> bool {
        let (ExprKind::Deref(pointer, _) | ExprKind::Index(pointer, ..)) = &expr.kind else { return false };
        match self.shapes.types.get(pointer.ty) {
            TyKind::Pointer(pointer) => matches!(self.shapes.types.get(pointer.zeroterm), TyKind::True),
            _ => false,
        }
    }
}

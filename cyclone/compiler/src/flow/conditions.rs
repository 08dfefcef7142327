//! Conditions: what is known where one holds, and where it does not.

use super::Analysis;
use super::expressions::Use;
use super::state::State;
use super::value::{Level, Value};
use crate::ast::BinOp;
use crate::tree::{Expr, ExprKind, UnaryOp};

/// What is known if the condition holds, and if not. `None`: that never happens.
pub(super) type Split = (Option<State>, Option<State>);

impl Analysis<'_, '_> {
    /// Evaluates a condition. The present state is used up.
    pub(super) fn condition(&mut self, expr: &mut Expr) -> Split {
        if self.state.is_none() {
            return (None, None);
        }
        match &mut expr.kind {
            ExprKind::Unary(UnaryOp::Not, inner) => {
                let (yes, no) = self.condition(inner);
                (no, yes)
            }
            ExprKind::Binary(BinOp::LogAnd, left, right) => {
                let (left_yes, left_no) = self.condition(left);
                self.state = left_yes;
                let (yes, no) = self.condition(right);
                (yes, self.either(left_no, no))
            }
            ExprKind::Binary(BinOp::LogOr, left, right) => {
                let (left_yes, left_no) = self.condition(left);
                self.state = left_no;
                let (yes, no) = self.condition(right);
                (self.either(left_yes, yes), no)
            }
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), left, right) => {
                let left_value = self.number(left);
                let right_value = self.number(right);
                let split = match (left_value.bare(), right_value.bare()) {
                    (_, Value::Zero) => self.split(left, &left_value),
                    (Value::Zero, _) => self.split(right, &right_value),
                    _ => {
                        let state = self.state.take();
                        (state.clone(), state)
                    }
                };
                match op {
                    BinOp::Ne => split,
                    _ => (split.1, split.0),
                }
            }
            ExprKind::Conditional(test, then, other) => {
                let (yes, no) = self.condition(test);
                self.state = yes;
                let (then_yes, then_no) = self.condition(then);
                self.state = no;
                let (other_yes, other_no) = self.condition(other);
                (self.either(then_yes, other_yes), self.either(then_no, other_no))
            }
            ExprKind::Comma(first, last) => {
                self.value(first, Use::Look);
                self.condition(last)
            }
            _ => {
                let value = self.number(expr);
                self.split(expr, &value)
            }
        }
    }

    /// The states in which the value of an expression is not zero, and in which it is.
    fn split(&mut self, expr: &Expr, value: &Value) -> Split {
        let Some(state) = self.state.take() else { return (None, None) };
        match value.bare() {
            Value::Zero => (None, Some(state)),
            Value::NonZero | Value::Address(_) | Value::Owned(_) => (Some(state), None),
            Value::Unknown(Level::All) => {
                self.state = Some(state.clone());
                let place = self.peek(expr);
                self.state = None;
                let Some(place) = place else { return (Some(state.clone()), Some(state)) };
                let with = |known: Value| {
                    let mut state = state.clone();
                    state.change(&place, &mut |old| match old.bare() {
                        Value::Unknown(Level::All) => old.rename(known.clone()),
                        _ => old.clone(),
                    });
                    Some(state)
                };
                (with(Value::NonZero), with(Value::Zero))
            }
            _ => (Some(state.clone()), Some(state)),
        }
    }

    fn either(&mut self, a: Option<State>, b: Option<State>) -> Option<State> {
        self.state = a;
        self.merge(b);
        self.state.take()
    }
}

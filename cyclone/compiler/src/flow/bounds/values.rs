//! What an expression's value is known to be: bounds by quantities, as whole numbers.

use super::facts::Quantity;
use super::{Prover, changed_by};
use crate::ast::{BinOp, IntSize};
use crate::tree::{Coercion, Expr, ExprKind, LocalId, UnaryOp};
use crate::types::{Signedness, Ty, TyKind, Types};

/// An integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Integer {
    pub bits: u32,
    pub sign: Signedness,
}

impl Integer {
    pub fn of(types: &Types, ty: Ty) -> Option<Integer> {
        let TyKind::Int(sign, size) = types.get(ty) else { return None };
        let bits = match size {
            IntSize::Char => 8,
            IntSize::Short => 16,
            IntSize::Int => 32,
            IntSize::Long | IntSize::LongLong => 64,
        };
        Some(Integer { bits, sign: *sign })
    }

    /// No value is less. The machine decides whether a plain `char` is signed.
    pub fn least(self) -> i128 {
        if self.sign == Signedness::Unsigned { 0 } else { -(1 << (self.bits - 1)) }
    }

    /// No value is greater.
    pub fn most(self) -> i128 {
        if self.sign == Signedness::Signed { (1 << (self.bits - 1)) - 1 } else { (1 << self.bits) - 1 }
    }

    /// All numbers of this range are values of the type.
    pub fn holds(self, least: i128, most: i128) -> bool {
        match self.sign {
            Signedness::Plain => least >= 0 && most < 1 << (self.bits - 1),
            _ => least >= self.least() && most <= self.most(),
        }
    }
}

/// A quantity and a number that is added to it.
pub(super) type Sum = (Quantity, i128);

/// What is known of a number: it is at most each of `upper`, and at least each of `lower`.
#[derive(Clone, Default, Debug)]
pub(super) struct Value {
    pub upper: Vec<Sum>,
    pub lower: Vec<Sum>,
}

/// Expressions that are nested deeper are not looked into.
const DEPTH_LIMIT: u32 = 8;
/// Products are cut off here: no type has such numbers, and sums of some of them do not overflow.
const PRODUCT_LIMIT: i128 = 1 << 100;
/// More bounds of one value are not kept.
const BOUNDS_LIMIT: usize = 5;

impl Value {
    pub fn exactly(sum: Sum) -> Value {
        Value { upper: vec![sum], lower: vec![sum] }
    }

    pub fn number(number: i128) -> Value {
        Value::exactly((Quantity::Zero, number))
    }

    fn between(least: i128, most: i128) -> Value {
        Value { upper: vec![(Quantity::Zero, most)], lower: vec![(Quantity::Zero, least)] }
    }

    pub fn of_type(types: &Types, ty: Ty) -> Value {
        match (Integer::of(types, ty), types.get(ty)) {
            (Some(integer), _) => Value::between(integer.least(), integer.most()),
            (None, TyKind::Bool) => Value::between(0, 1),
            _ => Value::default(),
        }
    }

    /// The sums that it is equal to.
    pub fn exact(&self) -> impl Iterator<Item = Sum> + '_ {
        self.upper.iter().copied().filter(|sum| self.lower.contains(sum))
    }

    /// The same with a number added.
    pub fn after(&self, by: i128) -> Value {
        let moved = |sums: &[Sum]| moved(sums, Some(by)).collect();
        Value { upper: moved(&self.upper), lower: moved(&self.lower) }
    }

    fn limited(mut self) -> Value {
        self.upper.truncate(BOUNDS_LIMIT);
        self.lower.truncate(BOUNDS_LIMIT);
        self
    }
}

fn moved(sums: &[Sum], by: Option<i128>) -> impl Iterator<Item = Sum> + '_ {
    sums.iter().filter_map(move |&(quantity, number)| Some((quantity, number + by?)))
}

impl Prover<'_> {
    /// The number that it is at most.
    pub(super) fn most(&self, value: &Value) -> Option<i128> {
        let numbers =
            value.upper.iter().filter_map(|&(quantity, add)| Some(self.distance(quantity, Quantity::Zero)? + add));
        numbers.min()
    }

    /// The number that it is at least.
    pub(super) fn least(&self, value: &Value) -> Option<i128> {
        let numbers =
            value.lower.iter().filter_map(|&(quantity, add)| Some(add - self.distance(Quantity::Zero, quantity)?));
        numbers.max()
    }

    /// The value of an expression of a number's type that has been evaluated; nothing is known of one that changes variables.
    pub(super) fn value(&self, expr: &Expr) -> Value {
        match changed_by(expr).is_empty() && self.facts.is_some() {
            true => self.value_within(expr, DEPTH_LIMIT),
            false => Value::of_type(self.types, expr.ty),
        }
    }

    pub(super) fn value_of(&self, local: LocalId) -> Value {
        let ty = self.locals[local.0 as usize].ty;
        match self.is_tracked[local.0 as usize] && Integer::of(self.types, ty).is_some() {
            true => Value::exactly((Quantity::Variable(local), 0)),
            false => Value::of_type(self.types, ty),
        }
    }

    fn value_within(&self, expr: &Expr, depth: u32) -> Value {
        let unknown = || Value::of_type(self.types, expr.ty);
        if depth == 0 {
            return unknown();
        }
        match &expr.kind {
            ExprKind::Int(number) => match Integer::of(self.types, expr.ty) {
                Some(own) if own.holds(number.0, number.0) => Value::number(number.0),
                _ => unknown(),
            },
            ExprKind::Local(local) if expr.ty == self.locals[local.0 as usize].ty => self.value_of(*local),
            ExprKind::Numelts(pointer) => match self.fat_local(pointer) {
                Some(local) => self.converted(Value::exactly((Quantity::Count(local), 0)), expr.ty),
                None => unknown(),
            },
            ExprKind::Coerce(Coercion::Number, inner) => self.converted(self.value_within(inner, depth - 1), expr.ty),
            ExprKind::Binary(BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge | BinOp::Eq | BinOp::Ne, ..)
            | ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, ..)
            | ExprKind::Unary(UnaryOp::Not, _) => Value::between(0, 1),
            ExprKind::Binary(op, left, right) if Integer::of(self.types, expr.ty).is_some() => {
                let (left, right) = (self.value_within(left, depth - 1), self.value_within(right, depth - 1));
                self.computed(*op, &left, &right, expr.ty)
            }
            ExprKind::Conditional(_, then, other) => {
                let (then, other) = (self.value_within(then, depth - 1), self.value_within(other, depth - 1));
                match (self.least(&then), self.least(&other), self.most(&then), self.most(&other)) {
                    (Some(a), Some(b), Some(c), Some(d)) => Value::between(a.min(b), c.max(d)),
                    _ => unknown(),
                }
            }
            _ => unknown(),
        }
    }

    /// The value in another integer type. What does not fit is cut off: that makes it no greater if it was not negative.
    pub(super) fn converted(&self, value: Value, to: Ty) -> Value {
        let mut cut = Value::of_type(self.types, to);
        if Integer::of(self.types, to).is_none() {
            return cut;
        }
        if self.fits(&value, to) {
            return value;
        }
        if self.least(&value).is_some_and(|least| least >= 0) {
            cut.upper.extend(value.upper);
        }
        cut.limited()
    }

    /// The value of an operation of this type; nothing but the type's range is known where it may wrap around.
    pub(super) fn computed(&self, op: BinOp, left: &Value, right: &Value, ty: Ty) -> Value {
        let exact = match op {
            BinOp::Add => self.sum(left, right),
            BinOp::Sub => self.difference(left, right),
            BinOp::Mul => self.product(left, right),
            BinOp::Div => self.quotient(left, right),
            BinOp::Rem => self.remainder(left, right),
            BinOp::And => self.masked(left, right),
            BinOp::Shr => self.shifted_right(left, right),
            BinOp::Shl => self.shifted_left(left, right),
            _ => None,
        };
        match exact {
            Some(value) if self.fits(&value, ty) => value.limited(),
            _ => Value::of_type(self.types, ty),
        }
    }

    fn fits(&self, value: &Value, ty: Ty) -> bool {
        let integer = Integer::of(self.types, ty);
        match (integer, self.least(value), self.most(value)) {
            (Some(integer), Some(least), Some(most)) => integer.holds(least, most),
            _ => false,
        }
    }

    fn sum(&self, left: &Value, right: &Value) -> Option<Value> {
        Some(Value {
            upper: moved(&left.upper, self.most(right)).chain(moved(&right.upper, self.most(left))).collect(),
            lower: moved(&left.lower, self.least(right)).chain(moved(&right.lower, self.least(left))).collect(),
        })
    }

    fn difference(&self, left: &Value, right: &Value) -> Option<Value> {
        let mut value = Value {
            upper: moved(&left.upper, self.least(right).map(|least| -least)).collect(),
            lower: moved(&left.lower, self.most(right).map(|most| -most)).collect(),
        };
        // Two quantities whose difference is known.
        for &(a, add) in &left.upper {
            for &(b, sub) in &right.lower {
                value.upper.extend(self.distance(a, b).map(|most| (Quantity::Zero, most + add - sub)));
            }
        }
        for &(a, add) in &left.lower {
            for &(b, sub) in &right.upper {
                value.lower.extend(self.distance(b, a).map(|most| (Quantity::Zero, add - sub - most)));
            }
        }
        Some(value)
    }

    fn product(&self, left: &Value, right: &Value) -> Option<Value> {
        let (a, b) = (self.least(left)?, self.least(right)?);
        let (c, d) = (self.most(left)?, self.most(right)?);
        // Where nothing leads, facts contradict each other, and `c` may be less than `a`.
        let times = |x: i128, y: i128| x.saturating_mul(y).clamp(-PRODUCT_LIMIT, PRODUCT_LIMIT);
        (a >= 0 && b >= 0).then(|| Value::between(times(a, b), times(c, d)))
    }

    fn quotient(&self, left: &Value, right: &Value) -> Option<Value> {
        let (least, divisor) = (self.least(left)?, self.least(right)?);
        if least < 0 || divisor < 1 {
            return None;
        }
        let mut value = Value::between(0, self.most(left)? / divisor);
        value.upper.extend(&left.upper);
        Some(value)
    }

    fn remainder(&self, left: &Value, right: &Value) -> Option<Value> {
        if self.least(right)? < 1 {
            return None;
        }
        let mut value = Value { upper: moved(&right.upper, Some(-1)).collect(), lower: Vec::new() };
        if self.least(left)? >= 0 {
            value.upper.extend(&left.upper);
            value.lower.push((Quantity::Zero, 0));
        } else {
            value.lower.push((Quantity::Zero, 1 - self.most(right)?));
        }
        Some(value)
    }

    /// With a number that is not negative, any number gives one of its bits.
    fn masked(&self, left: &Value, right: &Value) -> Option<Value> {
        let is_positive = |value: &Value| self.least(value).is_some_and(|least| least >= 0);
        let masks = [left, right].into_iter().filter(|value| is_positive(value));
        let upper: Vec<Sum> = masks.flat_map(|value| value.upper.iter().copied()).collect();
        (!upper.is_empty()).then(|| Value { upper, lower: vec![(Quantity::Zero, 0)] })
    }

    fn shifted_right(&self, left: &Value, right: &Value) -> Option<Value> {
        let by = self.shift_width(right)?;
        if self.least(left)? < 0 {
            return None;
        }
        let mut value = Value::between(0, self.most(left)? >> by);
        value.upper.extend(&left.upper);
        Some(value)
    }

    fn shifted_left(&self, left: &Value, right: &Value) -> Option<Value> {
        let by = self.shift_width(right)?;
        self.product(left, &Value::number(1 << by))
    }

    /// A number of bits that every type has.
    fn shift_width(&self, value: &Value) -> Option<u32> {
        let (least, most) = (self.least(value)?, self.most(value)?);
        (least == most && (0..31).contains(&least)).then_some(least as u32)
    }
}

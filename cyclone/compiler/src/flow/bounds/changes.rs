//! What assignments, steps, allocations and comparisons tell.

use super::facts::Quantity;
use super::values::{Integer, Value};
use super::{Prover, changed_by, changed_or_read};
use crate::ast::BinOp;
use crate::tree::{Coercion, Expr, ExprKind, Init, LocalId, Wide};
use crate::types::{Signedness, TyKind};

/// A fat pointer is followed over steps of so many elements.
const STEP_LIMIT: i128 = 256;
/// So many bytes times any number of 32 bits are far from all of the address space.
const SMALL_BYTES: u64 = 1 << 16;

/// `local + add`, which is at most `most`.
struct Counted {
    local: LocalId,
    add: i128,
    most: i128,
}

impl Prover<'_> {
    /// Without conversions that keep the elements: a structure may become a shorter one, of which there are more, and without its
    /// terminator an array has one less.
    pub(super) fn below_same<'e>(&self, expr: &'e Expr) -> &'e Expr {
        let target = |expr: &Expr| match self.types.get(expr.ty) {
            TyKind::Pointer(pointer) => Some((self.types.head(pointer.target), self.types.head(pointer.zeroterm))),
            _ => None,
        };
        match &expr.kind {
            ExprKind::Coerce(Coercion::Same | Coercion::NotNull(_), inner) if target(expr) == target(inner) => {
                self.below_same(inner)
            }
            _ => expr,
        }
    }

    /// The variable, if the expression is a fat pointer in one that is followed.
    pub(super) fn fat_local(&self, pointer: &Expr) -> Option<LocalId> {
        let TyKind::Pointer(ty) = self.types.get(pointer.ty) else { return None };
        let ExprKind::Local(local) = self.below_same(pointer).kind else { return None };
        (matches!(self.types.get(ty.bound), TyKind::Fat) && self.is_tracked[local.0 as usize]).then_some(local)
    }

    /// The elements that the type of a thin pointer promises.
    pub(super) fn thin_count(&self, pointer: &Expr) -> Option<i128> {
        let TyKind::Pointer(ty) = self.types.get(pointer.ty) else { return None };
        let TyKind::Thin(count) = self.types.get(ty.bound) else { return None };
        match self.types.get(*count) {
            TyKind::Nat(count) => Some(i128::from(*count)),
            _ => None,
        }
    }

    pub(super) fn is_zeroterm(&self, pointer: &Expr) -> bool {
        let TyKind::Pointer(ty) = self.types.get(pointer.ty) else { return false };
        matches!(self.types.get(ty.zeroterm), TyKind::True)
    }

    /// A variable has got the value, or its old one and the value under an operator.
    pub(super) fn assigned(&mut self, local: LocalId, op: Option<BinOp>, value: &Expr) {
        if !self.is_tracked[local.0 as usize] {
            return;
        }
        let ty = self.locals[local.0 as usize].ty;
        match (Integer::of(self.types, ty), op) {
            (Some(_), None) => {
                let value = self.converted(self.value(value), ty);
                self.store(local, &value);
            }
            (Some(own), Some(op)) => {
                let new = match Integer::of(self.types, value.ty) {
                    Some(common) if is_computed_in(op, own, common) => {
                        let old = self.converted(self.value_of(local), value.ty);
                        self.converted(self.computed(op, &old, &self.value(value), value.ty), ty)
                    }
                    _ => Value::of_type(self.types, ty),
                };
                self.store(local, &new);
            }
            (None, None) => self.pointed(local, value),
            (None, Some(BinOp::Add)) => self.moved(local, self.constant(value)),
            (None, Some(_)) => self.forget(local),
        }
    }

    fn store(&mut self, local: LocalId, value: &Value) {
        let own = Quantity::Variable(local);
        if let Some((_, by)) = value.exact().find(|(quantity, _)| *quantity == own) {
            return self.shift(own, by);
        }
        let (least, most) = (self.least(value), self.most(value));
        self.forget(local);
        for (quantity, by) in value.exact() {
            self.copy_index(quantity, own, by);
        }
        let others = |sums: &[(Quantity, i128)]| -> Vec<_> {
            sums.iter().copied().filter(|(quantity, _)| *quantity != own).collect()
        };
        for (quantity, number) in others(&value.upper) {
            self.learn(own, quantity, number);
        }
        for (quantity, number) in others(&value.lower) {
            self.learn(quantity, own, -number);
        }
        if let (Some(least), Some(most)) = (least, most) {
            self.learn(own, Quantity::Zero, most);
            self.learn(Quantity::Zero, own, -least);
        }
    }

    fn constant(&self, expr: &Expr) -> Option<i128> {
        let value = self.value(expr);
        let (least, most) = (self.least(&value)?, self.most(&value)?);
        (least == most).then_some(least)
    }

    /// `x++` and `x--`.
    pub(super) fn stepped(&mut self, local: LocalId, up: bool) {
        let ty = self.locals[local.0 as usize].ty;
        if !self.is_tracked[local.0 as usize] {
            return;
        }
        if Integer::of(self.types, ty).is_some() {
            let op = if up { BinOp::Add } else { BinOp::Sub };
            let value = self.computed(op, &self.value_of(local), &Value::number(1), ty);
            return self.store(local, &value);
        }
        self.moved(local, up.then_some(1));
    }

    /// A fat pointer has moved over so many of its elements.
    fn moved(&mut self, local: LocalId, by: Option<i128>) {
        match by {
            Some(by) if self.has_room(local, by) => self.shift(Quantity::Count(local), -by),
            _ => self.forget(local),
        }
    }

    /// The fat pointer has at least so many elements left.
    pub(super) fn has_at_least(&self, pointer: LocalId, count: i128) -> bool {
        self.distance(Quantity::Zero, Quantity::Count(pointer)).is_some_and(|most| most <= -count)
    }

    fn has_room(&self, pointer: LocalId, by: i128) -> bool {
        (0..=STEP_LIMIT).contains(&by) && self.has_at_least(pointer, by)
    }

    /// A pointer variable has got this value.
    fn pointed(&mut self, local: LocalId, value: &Expr) {
        let value = self.below_same(value);
        match &value.kind {
            ExprKind::Binary(BinOp::Add, pointer, number) => {
                let by = self.constant(number).filter(|_| changed_by(pointer).is_empty());
                return match self.fat_local(pointer) {
                    Some(other) if other == local => self.moved(local, by),
                    other => self.points_behind(local, other, by),
                };
            }
            ExprKind::Local(other) if *other == local => return,
            _ => self.forget(local),
        }
        if let Some(count) = self.least_count(value) {
            self.learn(Quantity::Zero, Quantity::Count(local), -count);
        }
        if let ExprKind::Coerce(Coercion::ThinToFat, _) = &value.kind {
            self.learn_start(local);
        }
        match &self.below_fat(value).kind {
            ExprKind::Alloc { count: Some(count), .. } => {
                self.allocated(local, count);
                self.learn_start(local);
            }
            ExprKind::New(_, init) => {
                if let Init::Comprehension(comprehension) = &**init {
                    self.allocated(local, &comprehension.len);
                    self.learn_start(local);
                }
            }
            _ => {
                if let Some(other) = self.fat_local(value) {
                    self.copy_pointer(other, local);
                }
            }
        }
    }

    /// What becomes a fat pointer, without that.
    fn below_fat<'e>(&self, value: &'e Expr) -> &'e Expr {
        match &value.kind {
            ExprKind::Coerce(Coercion::ThinToFat, inner) => self.below_same(inner),
            _ => value,
        }
    }

    /// The number of elements that a thin pointer has which becomes a fat one.
    pub(super) fn least_count(&self, value: &Expr) -> Option<i128> {
        let ExprKind::Coerce(Coercion::ThinToFat, _) = &value.kind else { return None };
        let inner = self.below_fat(value);
        let TyKind::Pointer(ty) = self.types.get(inner.ty) else { return None };
        let is_never_null = matches!(self.types.get(ty.nullable), TyKind::False);
        self.thin_count(inner).filter(|_| is_never_null && self.is_zeroterm(value) == self.is_zeroterm(inner))
    }

    /// A fat pointer leads so many elements behind another.
    fn points_behind(&mut self, local: LocalId, other: Option<LocalId>, by: Option<i128>) {
        self.forget(local);
        if let (Some(other), Some(by)) = (other, by)
            && self.has_room(other, by)
        {
            self.learn(Quantity::Count(local), Quantity::Count(other), -by);
            self.learn(Quantity::Count(other), Quantity::Count(local), by);
        }
    }

    /// A fat pointer has got a new object of so many elements. With a negative number, which converts to one that no
    /// memory has room for, the allocation would have thrown.
    fn allocated(&mut self, pointer: LocalId, count: &Expr) {
        let Some(Counted { local, add, most }) = self.counted(count) else {
            let value = self.value(count);
            return self.holds(pointer, &value.lower);
        };
        let own = Quantity::Variable(local);
        self.learn(Quantity::Zero, own, add);
        self.learn(own, Quantity::Zero, most - add);
        self.holds(pointer, &[(own, add)]);
    }

    fn holds(&mut self, pointer: LocalId, counts: &[(Quantity, i128)]) {
        for &(quantity, add) in counts {
            self.learn(quantity, Quantity::Count(pointer), -add);
        }
    }

    /// A number of elements that has been allocated. It is not negative, and has not wrapped around to something negative.
    fn counted(&self, count: &Expr) -> Option<Counted> {
        let own = Integer::of(self.types, count.ty)?;
        match &count.kind {
            ExprKind::Local(local) if self.is_tracked[local.0 as usize] && own.bits >= 32 => {
                Some(Counted { local: *local, add: 0, most: own.most() })
            }
            ExprKind::Coerce(Coercion::Number, inner) => {
                let counted = self.counted(inner)?;
                // An unsigned sum may have wrapped around.
                let is_whole = counted.add == 0 || Integer::of(self.types, inner.ty)?.sign == Signedness::Signed;
                (own.bits == 64 && is_whole).then_some(counted)
            }
            ExprKind::Binary(BinOp::Add, left, right) => {
                let Counted { local, add: 0, most } = self.counted(left)? else { return None };
                let add = self.constant(right)?;
                let of = Integer::of(self.types, self.locals[local.0 as usize].ty)?;
                let is_exact = own.sign == Signedness::Signed || (own.bits == 64 && of.bits == 32);
                let most = own.most().min(most + add);
                (is_exact && (0..=i128::from(i32::MAX)).contains(&add)).then_some(Counted { local, add, most })
            }
            _ => None,
        }
    }

    /// The number is below that of the elements left.
    pub(super) fn is_left(&self, pointer: LocalId, index: &Value) -> bool {
        let mut bounds = index.upper.iter();
        bounds.any(|&(quantity, add)| self.distance(quantity, Quantity::Count(pointer)).is_some_and(|most| most < -add))
    }

    fn has_small_elements(&self, pointer: LocalId) -> bool {
        let TyKind::Pointer(ty) = self.types.get(self.locals[pointer.0 as usize].ty) else { return false };
        self.types.layout(ty.target).is_some_and(|layout| layout.size <= SMALL_BYTES)
    }

    /// An index has been checked against the number of elements.
    pub(super) fn within(&mut self, index: &Value, count: i128) {
        self.ordered(&Value::number(0), index, 0);
        self.ordered(index, &Value::number(count), 1);
    }

    /// `small < great`, or `<=`; both have been converted to one type.
    pub(super) fn compared(&mut self, small: &Expr, great: &Expr, is_strict: bool) {
        if !changed_by(small).is_empty() || !changed_by(great).is_empty() {
            return;
        }
        let (mut less, more) = (self.value(small), self.value(great));
        if let Some(inner) = self.positive_since_below(small, &more) {
            inner.upper.iter().for_each(|&(quantity, add)| self.learn(Quantity::Zero, quantity, add));
            less = inner;
        }
        self.ordered(&less, &more, i128::from(is_strict));
    }

    fn ordered(&mut self, less: &Value, more: &Value, gap: i128) {
        for &(small, add) in &less.lower {
            for &(great, most) in &more.upper {
                self.learn(small, great, most - add - gap);
            }
        }
    }

    /// What was converted to an unsigned type for a comparison: as such a negative one would be greater than this.
    fn positive_since_below(&self, small: &Expr, more: &Value) -> Option<Value> {
        let ExprKind::Coerce(Coercion::Number, inner) = &small.kind else { return None };
        let (from, to) = (Integer::of(self.types, inner.ty)?, Integer::of(self.types, small.ty)?);
        let is_negative_great =
            from.sign == Signedness::Signed && to.sign == Signedness::Unsigned && to.bits >= from.bits;
        (is_negative_great && self.most(more)? < 1 << (to.bits - 1)).then(|| self.value(inner))
    }

    /// `left == right`
    pub(super) fn equal(&mut self, left: &Expr, right: &Expr) {
        self.compared(left, right, false);
        self.compared(right, left, false);
    }

    /// `left != right`
    pub(super) fn different(&mut self, left: &Expr, right: &Expr) {
        match (&left.kind, &right.kind) {
            (_, ExprKind::Int(Wide(0)) | ExprKind::Null) => return self.not_zero(left),
            (ExprKind::Int(Wide(0)) | ExprKind::Null, _) => return self.not_zero(right),
            _ => {}
        }
        if !changed_by(left).is_empty() || !changed_by(right).is_empty() {
            return;
        }
        let (left, right) = (self.value(left), self.value(right));
        for (a, add) in left.exact() {
            for (b, more) in right.exact() {
                let gap = more - add;
                if self.distance(a, b).is_some_and(|most| most <= gap) {
                    self.learn(a, b, gap - 1);
                }
                if self.distance(b, a).is_some_and(|most| most <= -gap) {
                    self.learn(b, a, -gap - 1);
                }
            }
        }
    }

    /// An expression that has been evaluated is zero.
    pub(super) fn zero(&mut self, expr: &Expr) {
        let value = self.value(expr);
        self.ordered(&value, &Value::number(0), 0);
        self.ordered(&Value::number(0), &value, 0);
    }

    /// An expression that has been evaluated is not zero. If it is an element of a zero-terminated array, another follows: the last is
    /// zero.
    pub(super) fn not_zero(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Coerce(Coercion::Number | Coercion::Same, inner) => self.not_zero(inner),
            ExprKind::Assign(None, place, value) => {
                if let ExprKind::Local(local) = place.kind
                    && !changed_or_read(value, local)
                {
                    self.not_zero(value);
                }
            }
            ExprKind::Local(_) => {
                let value = self.value(expr);
                let one = Value::number(1);
                if self.least(&value) == Some(0) {
                    self.ordered(&one, &value, 0);
                }
            }
            ExprKind::Deref(pointer, _) if self.is_zeroterm(pointer) => {
                let (pointer, seen) = match &pointer.kind {
                    ExprKind::Step { place, up: true, postfix: true } => (&**place, 1),
                    _ => (&**pointer, 0),
                };
                if let Some(pointer) = self.fat_local(pointer) {
                    self.learn(Quantity::Zero, Quantity::Count(pointer), seen - 2);
                }
            }
            ExprKind::Index(pointer, index, _) if self.is_zeroterm(pointer) && changed_by(index).is_empty() => {
                if let Some(pointer) = self.fat_local(pointer) {
                    let value = self.value(index);
                    self.has_next(pointer, &value);
                }
            }
            _ => {}
        }
    }

    /// The fat pointer has an element with this number and another behind it.
    fn has_next(&mut self, pointer: LocalId, index: &Value) {
        index.exact().for_each(|(quantity, add)| self.learn_element(pointer, quantity, add + 1));
        self.reaches(pointer, index, 2);
    }

    /// The fat pointer, which leads to the first of its elements, has one with this number, unless the way there is once around
    /// the address space.
    pub(super) fn is_among(&mut self, pointer: LocalId, index: &Value) {
        let around = i128::from(u32::MAX);
        let is_near = self.most(index).is_some_and(|most| most <= around)
            && self.least(index).is_some_and(|least| least >= -around);
        if is_near && self.is_at_start(pointer) && self.has_small_elements(pointer) {
            self.ordered(&Value::number(0), index, 0);
            self.ordered(index, &Value::exactly((Quantity::Count(pointer), 0)), 1);
        }
    }

    /// The fat pointer has so many elements from this number on. They are among those that it has left if that one is not negative
    /// and the pointer does not lie before its first one, and if the way there is not once around the address space.
    pub(super) fn reaches(&mut self, pointer: LocalId, index: &Value, count: i128) {
        let most = self.most(index);
        let is_small = most.is_some_and(|most| most <= i128::from(u32::MAX));
        if (most == Some(0) || self.has_at_least(pointer, 1))
            && self.least(index).is_some_and(|least| least >= 0)
            && ((is_small && self.has_small_elements(pointer)) || self.is_left(pointer, index))
        {
            for &(quantity, add) in &index.lower {
                self.learn(quantity, Quantity::Count(pointer), -add - count);
            }
        }
    }
}

/// Whether `x op= y` is computed in the type of `y`, by C's rules.
fn is_computed_in(op: BinOp, own: Integer, common: Integer) -> bool {
    let is_same = own == common && own.bits >= 32;
    match op {
        BinOp::Shl | BinOp::Shr => is_same,
        _ => is_same || (common.bits >= 32 && own.bits < common.bits),
    }
}

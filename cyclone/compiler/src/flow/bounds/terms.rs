//! Numbers as facts speak of them, and what assignments, steps and comparisons of them tell.

use super::Prover;
use super::changed_or_read;
use super::facts::{Bound, Fact, Facts};
use crate::ast::{BinOp, IntSize};
use crate::tree::{Coercion, Expr, ExprKind, Init, LocalId};
use crate::types::{Signedness, Ty, TyKind, Types};

/// A number in a comparison or an index.
#[derive(Clone, Copy, Debug)]
pub(super) enum Term {
    Number(i128),
    Variable(LocalId),
    /// The number of elements of a fat pointer, or less.
    Count(LocalId),
    Other,
}

impl Term {
    /// As an index of an element that is there.
    pub(super) fn as_bound(self) -> Option<Bound> {
        match self {
            Term::Number(number) => Some(Bound::Number(number)),
            Term::Variable(local) => Some(Bound::Variable(local)),
            Term::Count(_) | Term::Other => None,
        }
    }
}

/// Something with elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Array {
    Thin(i128),
    Fat(LocalId),
}

/// An integer type of at least 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Integer {
    bits: u32,
    is_signed: bool,
}

impl Integer {
    pub(super) fn holds(self, number: i128) -> bool {
        match self.is_signed {
            true => (-(1i128 << (self.bits - 1))..1i128 << (self.bits - 1)).contains(&number),
            false => (0..1i128 << self.bits).contains(&number),
        }
    }

    pub(super) fn holds_all_of(self, other: Integer) -> bool {
        match (self.is_signed, other.is_signed) {
            (true, false) => self.bits > other.bits,
            (false, true) => false,
            _ => self.bits >= other.bits,
        }
    }
}

pub(super) fn integer(types: &Types, ty: Ty) -> Option<Integer> {
    let TyKind::Int(sign, size) = types.get(ty) else { return None };
    let bits = match size {
        IntSize::Int => 32,
        IntSize::Long | IntSize::LongLong => 64,
        IntSize::Char | IntSize::Short => return None,
    };
    Some(Integer { bits, is_signed: *sign != Signedness::Unsigned })
}

impl Prover<'_> {
    /// Without conversions that keep the elements: a structure may become a shorter one, of which there are more.
    fn below_same<'e>(&self, expr: &'e Expr) -> &'e Expr {
        let target = |expr: &Expr| match self.types.get(expr.ty) {
            TyKind::Pointer(pointer) => Some(self.types.head(pointer.target)),
            _ => None,
        };
        match &expr.kind {
            ExprKind::Coerce(Coercion::Same | Coercion::NotNull(_), inner) if target(expr) == target(inner) => {
                self.below_same(inner)
            }
            _ => expr,
        }
    }

    /// What a pointer leads to, where its elements can be counted.
    pub(super) fn array(&self, pointer: &Expr) -> Option<Array> {
        let TyKind::Pointer(ty) = self.types.get(pointer.ty) else { return None };
        // The last element of a zero-terminated array has rules of its own.
        if matches!(self.types.get(ty.zeroterm), TyKind::True) {
            return None;
        }
        match self.types.get(ty.bound) {
            TyKind::Fat => match self.below_same(pointer).kind {
                ExprKind::Local(local) if self.is_tracked[local.0 as usize] => Some(Array::Fat(local)),
                _ => None,
            },
            TyKind::Thin(len) => match self.types.get(*len) {
                TyKind::Nat(len) => Some(Array::Thin(i128::from(*len))),
                _ => None,
            },
            _ => None,
        }
    }

    /// A number as facts speak of it; conversions that keep the value do not matter.
    pub(super) fn term(&self, expr: &Expr) -> Term {
        match &expr.kind {
            ExprKind::Int(number) => match integer(self.types, expr.ty) {
                Some(own) if !own.holds(*number) => Term::Other,
                None if !(0..128).contains(number) => Term::Other,
                _ => Term::Number(*number),
            },
            ExprKind::Local(local) if integer(self.types, expr.ty).is_some() => Term::Variable(*local),
            ExprKind::Numelts(pointer) => match self.array(pointer) {
                Some(Array::Fat(local)) => Term::Count(local),
                _ => Term::Other,
            },
            ExprKind::Coerce(Coercion::Number, inner) => {
                let (Some(from), Some(to)) = (integer(self.types, inner.ty), integer(self.types, expr.ty)) else {
                    return Term::Other;
                };
                match self.term(inner) {
                    Term::Number(number) if from.holds(number) && to.holds(number) => Term::Number(number),
                    Term::Variable(local) if to.holds_all_of(from) || self.fits_since_positive(local, from, to) => {
                        Term::Variable(local)
                    }
                    // Cut off, the count is at most what it was.
                    Term::Count(local) if !from.is_signed || to.is_signed => Term::Count(local),
                    _ => Term::Other,
                }
            }
            _ => Term::Other,
        }
    }

    /// A signed variable that is not negative keeps its value in an unsigned type of its width.
    pub(super) fn fits_since_positive(&self, local: LocalId, from: Integer, to: Integer) -> bool {
        from.is_signed && !to.is_signed && to.bits >= from.bits && self.knows(|fact| fact == Fact::NotNegative(local))
    }

    pub(super) fn is_unsigned(&self, local: LocalId) -> bool {
        integer(self.types, self.locals[local.0 as usize].ty).is_some_and(|integer| !integer.is_signed)
    }

    /// A variable has got this value.
    pub(super) fn assigned(&mut self, local: LocalId, value: &Expr) {
        if changed_or_read(value, local) {
            return;
        }
        let ty = self.locals[local.0 as usize].ty;
        if let Some(own) = integer(self.types, ty) {
            match self.term(value) {
                Term::Number(number) if number >= 0 && own.holds(number) => {
                    self.learn(Fact::NotNegative(local));
                    self.learn(Fact::Below(local, Bound::Number(number + 1)));
                }
                Term::Variable(other) => self.copied(other, local),
                Term::Count(pointer) => self.learn(Fact::Holds(pointer, Bound::Variable(local))),
                _ => {}
            }
            // `n - c` is below `n` if it does not wrap around.
            if let ExprKind::Binary(BinOp::Sub, left, right) = &value.kind
                && let (Term::Variable(other), Term::Number(number)) = (self.term(left), self.term(right))
                && (1..=i128::from(i32::MAX)).contains(&number)
                && own.is_signed
                && integer(self.types, value.ty) == Some(own)
                && self.knows(|fact| fact == Fact::NotNegative(other))
            {
                self.learn(Fact::Below(local, Bound::Variable(other)));
            }
            return;
        }
        let mut value = self.below_same(value);
        if let ExprKind::Coerce(Coercion::ThinToFat, inner) = &value.kind {
            value = self.below_same(inner);
            if let Some(Array::Thin(len)) = self.array(value) {
                self.learn(Fact::Holds(local, Bound::Number(len)));
            }
        }
        match &value.kind {
            ExprKind::Alloc { count: Some(count), .. } => self.allocated(local, count),
            ExprKind::New(_, init) => {
                if let Init::Comprehension(comprehension) = &**init {
                    self.allocated(local, &comprehension.len);
                }
            }
            ExprKind::Local(other) => {
                let other = *other;
                for fact in self.facts.clone().unwrap_or_default() {
                    match fact {
                        Fact::Holds(of, bound) if of == other => self.learn(Fact::Holds(local, bound)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// What is known of `from` is known of its copy.
    pub(super) fn copied(&mut self, from: LocalId, to: LocalId) {
        for fact in self.facts.clone().unwrap_or_default() {
            match fact {
                Fact::NotNegative(of) if of == from => self.learn(Fact::NotNegative(to)),
                Fact::Below(of, bound) if of == from => self.learn(Fact::Below(to, bound)),
                _ => {}
            }
        }
        if self.is_unsigned(from) {
            self.learn(Fact::NotNegative(to));
        }
    }

    /// A fat pointer has got a new object of so many elements. With a negative number, which converts to one that no
    /// memory has room for, the allocation would have thrown.
    pub(super) fn allocated(&mut self, pointer: LocalId, count: &Expr) {
        let mut count = count;
        while let ExprKind::Coerce(Coercion::Number, inner) = &count.kind {
            let widens = matches!(
                (integer(self.types, inner.ty), integer(self.types, count.ty)),
                (Some(from), Some(to)) if to.bits == 64 && from.bits >= 32
            );
            if !widens {
                break;
            }
            count = inner;
        }
        match self.term(count) {
            Term::Number(number) if number > 0 => self.learn(Fact::Holds(pointer, Bound::Number(number))),
            Term::Variable(local) => {
                self.learn(Fact::NotNegative(local));
                self.learn(Fact::Holds(pointer, Bound::Variable(local)));
            }
            _ => {}
        }
    }

    /// `x++` and `x--`.
    pub(super) fn stepped(&mut self, local: LocalId, up: bool) {
        let own = integer(self.types, self.locals[local.0 as usize].ty);
        let is_not_negative = self.knows(|fact| fact == Fact::NotNegative(local));
        let Some(own) = own else { return self.forget(local) };
        if up {
            // Below a value of its own type, it is not the greatest one.
            let has_room = self.knows(|fact| match fact {
                Fact::Below(of, Bound::Number(number)) => of == local && own.holds(number),
                Fact::Below(of, Bound::Variable(other)) => {
                    let other = integer(self.types, self.locals[other.0 as usize].ty);
                    of == local && other.is_some_and(|other| own.holds_all_of(other))
                }
                _ => false,
            });
            self.forget(local);
            if is_not_negative && has_room {
                self.learn(Fact::NotNegative(local));
            }
        } else {
            let below: Facts = match &self.facts {
                Some(facts) if is_not_negative && own.is_signed => facts
                    .iter()
                    .copied()
                    .filter(|fact| matches!(fact, Fact::Below(of, bound) if *of == local && *bound != Bound::Variable(local)))
                    .collect(),
                _ => Facts::new(),
            };
            self.forget(local);
            below.into_iter().for_each(|fact| self.learn(fact));
        }
    }

    /// `small < great`, or `<=`; both have been converted to one type.
    pub(super) fn compared(&mut self, small: &Expr, great: &Expr, is_strict: bool) {
        let Some(common) = integer(self.types, small.ty) else { return };
        let (less, more) = (self.term(small), self.term(great));
        if let (Term::Number(number), Term::Variable(local)) = (less, more)
            && common.is_signed
            && (number >= 0 || (number == -1 && is_strict))
        {
            self.learn(Fact::NotNegative(local));
        }
        let bound = match (more, is_strict) {
            (Term::Number(number), true) => Bound::Number(number),
            (Term::Number(number), false) => Bound::Number(number + 1),
            (Term::Variable(other), true) => Bound::Variable(other),
            (Term::Count(pointer), true) => Bound::Count(pointer),
            _ => return,
        };
        match less {
            Term::Variable(local) => self.learn(Fact::Below(local, bound)),
            // As an unsigned number a negative one would be greater than any count and any number of this size.
            Term::Other => {
                let ExprKind::Coerce(Coercion::Number, inner) = &small.kind else { return };
                let (Term::Variable(local), Some(from)) = (self.term(inner), integer(self.types, inner.ty)) else {
                    return;
                };
                let is_small = match bound {
                    Bound::Number(number) => number < 1 << (common.bits - 1),
                    Bound::Count(_) => common.bits == 64,
                    Bound::Variable(_) => false,
                };
                if from.is_signed && !common.is_signed && common.bits >= from.bits && is_small {
                    self.learn(Fact::NotNegative(local));
                    self.learn(Fact::Below(local, bound));
                }
            }
            _ => {}
        }
    }
}

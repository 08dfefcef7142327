//! Numbers: which types are arithmetic, and what C makes of two of them.
//!
//! The rules are C's for a machine whose `int` has 32 bits and whose `long` and pointers have 64.

use super::Checker;
use crate::ast::{FloatSize, IntSize};
use crate::tree::{Coercion, Expr, ExprKind};
use crate::types::unify::{Mismatch, unify};
use crate::types::{Alias, Kind, Pointer, Quals, Signedness, Ty, TyKind};

impl Checker<'_> {
    /// `int`.
    pub fn int(&mut self) -> Ty {
        self.make(TyKind::Int(Signedness::Signed, IntSize::Int))
    }

    /// `long`.
    pub fn long(&mut self) -> Ty {
        self.make(TyKind::Int(Signedness::Signed, IntSize::Long))
    }

    /// The type of sizes and counts: `unsigned long`.
    pub fn size_type(&mut self) -> Ty {
        self.make(TyKind::Int(Signedness::Unsigned, IntSize::Long))
    }

    /// `char`.
    pub fn char_type(&mut self) -> Ty {
        self.make(TyKind::Int(Signedness::Plain, IntSize::Char))
    }

    /// True or false at the level of types.
    pub fn truth(&mut self, value: bool) -> Ty {
        self.make(if value { TyKind::True } else { TyKind::False })
    }

    /// The bound of a thin pointer to `count` elements.
    pub fn thin(&mut self, count: u64) -> Ty {
        let count = self.make(TyKind::Nat(count));
        self.make(TyKind::Thin(count))
    }

    /// An aliasable pointer to one `target` that is never null: what `&` gives.
    pub fn pointer_to(&mut self, target: Ty, quals: Quals, region: Ty) -> Pointer {
        let aqual = self.make(TyKind::Aqual(Alias::Aliasable));
        let bound = self.thin(1);
        let no = self.truth(false);
        Pointer { target, quals, region, aqual, nullable: no, bound, zeroterm: no, autoreleased: no }
    }

    /// A pointer of which nothing is known.
    pub fn unknown_pointer(&mut self) -> Pointer {
        let level = self.level();
        Pointer {
            target: self.types.fresh_bounded(Kind::Any, level, Alias::Restricted),
            quals: Quals::default(),
            region: self.types.fresh_bounded(Kind::Effect, level, Alias::Restricted),
            aqual: self.types.fresh_bounded(Kind::Aqual, level, Alias::Restricted),
            nullable: self.fresh(Kind::Bool),
            bound: self.fresh(Kind::Bound),
            zeroterm: self.fresh(Kind::Bool),
            autoreleased: self.fresh(Kind::Bool),
        }
    }

    /// Unifies, or leaves everything as it was.
    pub fn try_unify(&mut self, left: Ty, right: Ty) -> Result<(), Mismatch> {
        let before = self.types.snapshot();
        let outcome = unify(&mut self.types, left, right);
        if outcome.is_err() {
            self.types.rollback(before);
        }
        outcome
    }

    /// Whether it is known to be true at the level of types.
    pub fn is_true(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::True)
    }

    /// Whether it is known to be false at the level of types.
    pub fn is_false(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::False)
    }

    /// A type of whole numbers.
    pub fn is_integral(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Int(..) | TyKind::Bool | TyKind::Enum(_) | TyKind::TagHandle(_))
    }

    /// A type of numbers.
    pub fn is_arithmetic(&self, ty: Ty) -> bool {
        self.is_integral(ty) || matches!(self.types.get(ty), TyKind::Float(_) | TyKind::Complex(_))
    }

    /// What has an unknown type becomes an `int`, where a number is asked for.
    pub fn settle_number(&mut self, operand: &Expr) {
        if let TyKind::Evar(evar) = *self.types.get(operand.ty)
            && matches!(self.types.evar_kind(evar), Kind::Any | Kind::Memory | Kind::Boxed)
        {
            let int = self.int();
            // An unknown type takes any type of its kind.
            let _ = self.try_unify(operand.ty, int);
        }
    }

    /// The type an operand of arithmetic has: small integers are `int`.
    pub fn promoted(&mut self, ty: Ty) -> Ty {
        match self.types.get(ty) {
            TyKind::Bool | TyKind::Enum(_) | TyKind::Int(_, IntSize::Char | IntSize::Short) => self.int(),
            TyKind::TagHandle(_) => self.size_type(),
            _ => self.types.head(ty),
        }
    }

    /// The common type of two operands, as C's usual arithmetic conversions say.
    pub fn common_type(&mut self, left: Ty, right: Ty) -> Ty {
        let (left, right) = (self.promoted(left), self.promoted(right));
        match (self.types.get(left).clone(), self.types.get(right).clone()) {
            (TyKind::Complex(a), TyKind::Complex(b) | TyKind::Float(b)) | (TyKind::Float(b), TyKind::Complex(a)) => {
                self.make(TyKind::Complex(if float_rank(a) >= float_rank(b) { a } else { b }))
            }
            (TyKind::Complex(_), _) => left,
            (_, TyKind::Complex(_)) => right,
            (TyKind::Float(a), TyKind::Float(b)) => {
                if float_rank(a) >= float_rank(b) {
                    left
                } else {
                    right
                }
            }
            (TyKind::Float(_), _) => left,
            (_, TyKind::Float(_)) => right,
            (TyKind::Int(a_sign, a), TyKind::Int(b_sign, b)) => {
                let (a_rank, b_rank) = (int_rank(a), int_rank(b));
                let (wide, narrow_sign, narrow) =
                    if a_rank >= b_rank { ((a_sign, a), b_sign, b) } else { ((b_sign, b), a_sign, a) };
                let unsigned = wide.0 == Signedness::Unsigned
                    || narrow_sign == Signedness::Unsigned && int_bits(narrow) == int_bits(wide.1);
                let sign = if unsigned { Signedness::Unsigned } else { Signedness::Signed };
                self.make(TyKind::Int(sign, wide.1))
            }
            _ => self.int(),
        }
    }

    /// Converts a number to an arithmetic type.
    pub fn number_to(&mut self, operand: Expr, to: Ty) -> Expr {
        if self.types.head(operand.ty) == self.types.head(to) {
            return operand;
        }
        if let (ExprKind::Int(value), TyKind::Int(sign, size)) = (&operand.kind, self.types.get(to))
            && fits(value.0, *sign, *size)
        {
            return Expr { ty: to, ..operand };
        }
        let span = operand.span;
        Expr { kind: ExprKind::Coerce(Coercion::Number, Box::new(operand)), ty: to, span }
    }

    /// The operand as arithmetic takes it.
    pub fn promote(&mut self, operand: Expr) -> Expr {
        let to = self.promoted(operand.ty);
        self.number_to(operand, to)
    }
}

/// Bits of an integer type.
pub fn int_bits(size: IntSize) -> u32 {
    match size {
        IntSize::Char => 8,
        IntSize::Short => 16,
        IntSize::Int => 32,
        IntSize::Long | IntSize::LongLong => 64,
    }
}

/// Whether an integer type has this value.
pub fn fits(value: i128, sign: Signedness, size: IntSize) -> bool {
    let bits = int_bits(size);
    match sign {
        Signedness::Unsigned => value >= 0 && value < 1 << bits,
        Signedness::Plain | Signedness::Signed => value >= -(1 << (bits - 1)) && value < 1 << (bits - 1),
    }
}

fn int_rank(size: IntSize) -> u32 {
    match size {
        IntSize::Char => 0,
        IntSize::Short => 1,
        IntSize::Int => 2,
        IntSize::Long => 3,
        IntSize::LongLong => 4,
    }
}

fn float_rank(size: FloatSize) -> u32 {
    match size {
        FloatSize::Float => 0,
        FloatSize::Double => 1,
        FloatSize::LongDouble => 2,
    }
}

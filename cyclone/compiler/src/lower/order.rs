//! Evaluation from left to right.
//!
//! C leaves the order of operands open; Cyclone does not. Where the order can be seen, all operands but the last are
//! computed into temporary variables first.

use super::exits::for_each_operand;
use super::function::Body;
use super::shapes::C;
use crate::ast::BinOp;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind};

/// What evaluating an expression touches, as a set of bits.
type Touches = u8;
const READS_VARIABLE: Touches = 1;
const WRITES_VARIABLE: Touches = 2;
const READS_MEMORY: Touches = 4;
const WRITES_MEMORY: Touches = 8;
/// It may throw.
const CHECKS: Touches = 16;
/// It relies on a check that stands before it.
const RELIES: Touches = 32;
const EVERYTHING: Touches = 63;
const WRITES: Touches = WRITES_VARIABLE | WRITES_MEMORY;

/// Expressions of more nodes are taken to touch everything, so that asking costs little.
const LOOK_AT_MOST: u32 = 40;

/// Whether the order of these evaluations can be seen.
fn interfere(first: Touches, then: Touches) -> bool {
    first & WRITES_VARIABLE != 0 && then & (READS_VARIABLE | WRITES_VARIABLE) != 0
        || first & READS_VARIABLE != 0 && then & WRITES_VARIABLE != 0
        || first & WRITES_MEMORY != 0 && then & (READS_MEMORY | WRITES_MEMORY) != 0
        || first & READS_MEMORY != 0 && then & WRITES_MEMORY != 0
        || first & CHECKS != 0 && then & (CHECKS | RELIES | WRITES) != 0
        || first & WRITES != 0 && then & CHECKS != 0
}

impl<'p> Body<'_, 'p> {
    fn touches(&self, expr: &Expr) -> Touches {
        let mut left = LOOK_AT_MOST;
        self.touches_within(expr, &mut left)
    }

    fn touches_within(&self, expr: &Expr, left: &mut u32) -> Touches {
        if *left == 0 {
            return EVERYTHING;
        }
        *left -= 1;
        let own = match &expr.kind {
            ExprKind::Local(id) => self.touches_of_local(expr, *id),
            ExprKind::Global(_) => match self.lower.program.types.get(expr.ty) {
                crate::types::TyKind::Function(_) | crate::types::TyKind::Array(_) => 0,
                _ => READS_MEMORY,
            },
            ExprKind::Deref(_, checks) | ExprKind::Index(_, _, checks) => READS_MEMORY | of_checks(*checks),
            ExprKind::TaggedMember(_, _, check) => READS_MEMORY | of_check(*check),
            ExprKind::Coerce(coercion, _) => of_coercion(*coercion),
            ExprKind::Numelts(_) | ExprKind::TagOf(_) => READS_MEMORY,
            ExprKind::Assign(_, place, _) | ExprKind::Step { place, .. } => {
                self.writes_to(place) | self.of_arithmetic(place)
            }
            ExprKind::Binary(BinOp::Add | BinOp::Sub, left, right) => {
                self.of_arithmetic(left) | self.of_arithmetic(right)
            }
            ExprKind::Swap(..)
            | ExprKind::Call(_)
            | ExprKind::Throw(_)
            | ExprKind::New(..)
            | ExprKind::Alloc { .. }
            | ExprKind::Asm(_)
            | ExprKind::Statements(_)
            | ExprKind::Aggregate(_)
            | ExprKind::Assert(..)
            | ExprKind::Builtin(..) => return EVERYTHING_BUT_VARIABLES | self.touches_below(expr, left),
            _ => 0,
        };
        own | self.touches_below(expr, left)
    }

    /// Moving a zero-terminated pointer looks for the zero, and throws where it would be passed.
    fn of_arithmetic(&self, pointer: &Expr) -> Touches {
        match self.pointer_type(pointer.ty) {
            Some(info) if self.is_true(info.zeroterm) && !self.is_fat(info) => READS_MEMORY | CHECKS,
            _ => 0,
        }
    }

    fn touches_below(&self, expr: &Expr, left: &mut u32) -> Touches {
        if matches!(expr.kind, ExprKind::New(..) | ExprKind::Statements(_) | ExprKind::Aggregate(_)) {
            return EVERYTHING;
        }
        let mut all = 0;
        for_each_operand(expr, &mut |operand| all |= self.touches_within(operand, left));
        all
    }

    fn touches_of_local(&self, expr: &Expr, id: crate::tree::LocalId) -> Touches {
        match (self.local(id), self.lower.program.types.get(expr.ty)) {
            (_, crate::types::TyKind::Array(_)) => 0,
            (Some(local), _) if !local.is_address_taken && !local.is_static => READS_VARIABLE,
            _ => READS_MEMORY | READS_VARIABLE,
        }
    }

    fn writes_to(&self, place: &Expr) -> Touches {
        match &place.kind {
            ExprKind::Local(id) => match self.local(*id) {
                Some(local) if !local.is_address_taken && !local.is_static => WRITES_VARIABLE,
                _ => WRITES_VARIABLE | WRITES_MEMORY,
            },
            ExprKind::Member(inner, _) => self.writes_to(inner),
            _ => WRITES_MEMORY,
        }
    }

    /// Whether these operands have to be computed one after the other.
    pub fn is_order_seen<'e>(&self, operands: impl IntoIterator<Item = &'e Expr>) -> bool {
        let mut before = 0;
        for operand in operands {
            let now = self.touches(operand);
            if interfere(before, now) {
                return true;
            }
            before |= now;
        }
        false
    }

    /// Whether it makes no difference when it is evaluated.
    pub fn is_constant_value(&self, expr: &Expr) -> bool {
        self.touches(expr) == 0
    }

    /// Whether evaluating it twice, or not at all, is the same as once.
    pub fn is_simple(&self, expr: &Expr) -> bool {
        self.touches(expr) & (WRITES_MEMORY | WRITES_VARIABLE) == 0
    }

    /// Computes operands into temporary variables from left to right; gives what stands for each.
    pub fn in_order(&mut self, operands: &[(&'p Expr, C)]) -> Vec<String> {
        let last = operands.len().saturating_sub(1);
        operands
            .iter()
            .enumerate()
            .map(|(index, &(operand, c))| {
                if index == last || self.touches(operand) == 0 {
                    self.captured(|body| body.value_as(operand, c))
                } else {
                    self.temporary(c, |body| body.value_as(operand, c))
                }
            })
            .collect()
    }
}

const EVERYTHING_BUT_VARIABLES: Touches = READS_MEMORY | WRITES_MEMORY | CHECKS;

fn of_check(check: Check) -> Touches {
    match check {
        Check::Never => 0,
        Check::Needed => CHECKS,
        Check::Proved => RELIES,
        Check::FirstRound => CHECKS | RELIES,
    }
}

fn of_checks(checks: Checks) -> Touches {
    of_check(checks.null) | of_check(checks.bounds)
}

fn of_coercion(coercion: Coercion) -> Touches {
    match coercion {
        Coercion::NotNull(check) => of_check(check),
        Coercion::FatToThin(checks) => of_checks(checks),
        Coercion::ScanToFat => READS_MEMORY,
        _ => 0,
    }
}

//! Constant expressions: integers known at compile time, with C's types and wrapping.

use super::Checker;
use super::literals;
use super::names::Value;
use crate::ast::{self, BinOp, IntSize, UnOp};
use crate::tree::{self, Local, UnaryOp};
use crate::types::{Signedness, Ty, TyKind};

/// An integer with the type that C gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Number {
    value: i128,
    bytes: u32,
    unsigned: bool,
}

impl Number {
    fn new(value: i128, bytes: u32, unsigned: bool) -> Number {
        let bits = bytes * 8;
        let low = value & ((1_i128 << bits) - 1);
        let negative = !unsigned && low >> (bits - 1) != 0;
        Number { value: if negative { low - (1_i128 << bits) } else { low }, bytes, unsigned }
    }

    fn int(value: i128) -> Number {
        Number::new(value, 4, false)
    }

    /// As operand of an operator: at least an `int`.
    fn promoted(self) -> Number {
        if self.bytes < 4 { Number::int(self.value) } else { self }
    }

    /// C's usual arithmetic conversions.
    fn common(self, other: Number) -> (Number, Number) {
        let (a, b) = (self.promoted(), other.promoted());
        let bytes = a.bytes.max(b.bytes);
        let unsigned = (a.unsigned && a.bytes == bytes) || (b.unsigned && b.bytes == bytes);
        (Number::new(a.value, bytes, unsigned), Number::new(b.value, bytes, unsigned))
    }

    fn binary(op: BinOp, left: Number, right: Number) -> Option<Number> {
        if matches!(op, BinOp::Shl | BinOp::Shr) {
            let left = left.promoted();
            let count = u32::try_from(right.value).ok().filter(|&count| count < left.bytes * 8)?;
            let value = if op == BinOp::Shl { left.value << count } else { left.value >> count };
            return Some(Number::new(value, left.bytes, left.unsigned));
        }
        let (a, b) = left.common(right);
        let truth = |value: bool| Some(Number::int(i128::from(value)));
        let value = match op {
            BinOp::Mul => a.value.checked_mul(b.value)?,
            BinOp::Div => a.value.checked_div(b.value)?,
            BinOp::Rem => a.value.checked_rem(b.value)?,
            BinOp::Add => a.value + b.value,
            BinOp::Sub => a.value - b.value,
            BinOp::And => a.value & b.value,
            BinOp::Xor => a.value ^ b.value,
            BinOp::Or => a.value | b.value,
            BinOp::Lt => return truth(a.value < b.value),
            BinOp::Gt => return truth(a.value > b.value),
            BinOp::Le => return truth(a.value <= b.value),
            BinOp::Ge => return truth(a.value >= b.value),
            BinOp::Eq => return truth(a.value == b.value),
            BinOp::Ne => return truth(a.value != b.value),
            BinOp::LogAnd => return truth(a.value != 0 && b.value != 0),
            BinOp::LogOr => return truth(a.value != 0 || b.value != 0),
            BinOp::Shl | BinOp::Shr => return None,
        };
        Some(Number::new(value, a.bytes, a.unsigned))
    }
}

impl Checker<'_> {
    /// The value of a constant integer expression of the typed tree.
    pub fn constant(&self, expr: &tree::Expr) -> Option<i128> {
        self.number_of(expr).map(|number| number.value)
    }

    /// The part of an initial value that only running code can compute: a call, an allocation, an assignment. None if it is as constant
    /// as the values of variables outside of functions must be.
    pub(super) fn computed_part<'i>(init: &'i tree::Init, locals: &[Local]) -> Option<&'i tree::Expr> {
        match init {
            tree::Init::Value(value) => computed_in(value, locals),
            tree::Init::List(list) => list.entries.iter().find_map(|(_, init)| Self::computed_part(init, locals)),
            tree::Init::Comprehension(of) => of.value.as_ref().and_then(|value| computed_in(value, locals)),
            tree::Init::String(_) => None,
        }
    }

    fn number_of(&self, expr: &tree::Expr) -> Option<Number> {
        use tree::ExprKind;
        let value = match &expr.kind {
            ExprKind::Int(value) => value.0,
            ExprKind::Unary(op, operand) => {
                let operand = self.number_of(operand)?;
                match op {
                    UnaryOp::Minus => operand.value.checked_neg()?,
                    UnaryOp::Not => i128::from(operand.value == 0),
                    UnaryOp::Complement => !operand.value,
                }
            }
            ExprKind::Binary(op, left, right) => {
                let left = self.number_of(left)?;
                // The right operand of `&&` and `||` need not be constant if it is not evaluated.
                match op {
                    BinOp::LogAnd if left.value == 0 => 0,
                    BinOp::LogOr if left.value != 0 => 1,
                    _ => Number::binary(*op, left, self.number_of(right)?)?.value,
                }
            }
            ExprKind::Conditional(condition, yes, no) => {
                let branch = if self.number_of(condition)?.value != 0 { yes } else { no };
                self.number_of(branch)?.value
            }
            ExprKind::Coerce(_, operand) => self.number_of(operand)?.value,
            ExprKind::SizeOf(ty) => i128::from(self.types.fixed_layout(*ty)?.size),
            ExprKind::ValueOf(ty) => match self.types.get(*ty) {
                TyKind::Nat(number) => i128::from(*number),
                _ => return None,
            },
            _ => return None,
        };
        self.as_type(value, expr.ty)
    }

    /// A value converted to an integer type; `None` for other types.
    fn as_type(&self, value: i128, ty: Ty) -> Option<Number> {
        match self.types.get(ty) {
            TyKind::Bool => Some(Number::new(i128::from(value != 0), 1, true)),
            TyKind::Int(sign, _) => {
                let bytes = self.types.layout(ty)?.size as u32;
                Some(Number::new(value, bytes, *sign == Signedness::Unsigned))
            }
            TyKind::Enum(_) => Some(Number::int(value)),
            TyKind::TagHandle(_) => Some(Number::new(value, 8, true)),
            _ => None,
        }
    }

    /// The value of a constant integer expression as written; nothing is reported about what is none.
    pub fn constant_ast(&mut self, expr: &ast::Expr) -> Option<i128> {
        self.number_as_written(expr).map(|number| number.value)
    }

    fn number_as_written(&mut self, expr: &ast::Expr) -> Option<Number> {
        use ast::ExprKind;
        Some(match &expr.kind {
            ExprKind::Int(text) => {
                let (value, sign, size) = literals::integer(text.as_str())?;
                let bytes = if size == IntSize::Int { 4 } else { 8 };
                Number::new(value, bytes, sign == Signedness::Unsigned)
            }
            ExprKind::Char(text, wide) => {
                let mut codes = Vec::new();
                literals::characters(text.as_str(), *wide, &mut codes);
                let [code] = codes[..] else { return None };
                Number::int(if *wide { i128::from(code) } else { i128::from(code as u8 as i8) })
            }
            ExprKind::Name(path) => match self.lookup_value(path)? {
                Value::EnumConst(_, value) => Number::int(i128::from(value)),
                Value::Number(value) if i32::try_from(value).is_ok() => Number::int(value),
                _ => return None,
            },
            ExprKind::Unary(op, operand) => {
                let operand = self.number_as_written(operand)?.promoted();
                let value = match op {
                    UnOp::Plus => operand.value,
                    UnOp::Minus => -operand.value,
                    UnOp::Complement => !operand.value,
                    UnOp::Not => return Some(Number::int(i128::from(operand.value == 0))),
                    _ => return None,
                };
                Number::new(value, operand.bytes, operand.unsigned)
            }
            ExprKind::Binary(op, left, right) => {
                let left = self.number_as_written(left)?;
                match op {
                    BinOp::LogAnd if left.value == 0 => Number::int(0),
                    BinOp::LogOr if left.value != 0 => Number::int(1),
                    _ => Number::binary(*op, left, self.number_as_written(right)?)?,
                }
            }
            ExprKind::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                let branch = if self.number_as_written(condition)?.value != 0 { yes } else { no };
                self.number_as_written(branch)?
            }
            ExprKind::Cast(ty, operand) => {
                let value = self.number_as_written(operand)?.value;
                let (ty, _) = self.read_type(ty, super::types::Position::Heap);
                self.as_type(value, ty)?
            }
            ExprKind::SizeOfType(ty) => {
                let (ty, _) = self.read_type(ty, super::types::Position::Heap);
                Number::new(i128::from(self.types.fixed_layout(ty)?.size), 8, true)
            }
            ExprKind::SizeOfExpr(operand) => {
                let ty = self.expr(operand, None).ty;
                Number::new(i128::from(self.types.fixed_layout(ty)?.size), 8, true)
            }
            ExprKind::ValueOf(ty) => {
                let number = self.read_number_type(ty, super::types::Position::Heap);
                match self.types.get(number) {
                    TyKind::Nat(number) => Number::new(i128::from(*number), 8, true),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }
}

fn computed_in<'e>(value: &'e tree::Expr, locals: &[Local]) -> Option<&'e tree::Expr> {
    use tree::ExprKind;
    let computed_in = |part| computed_in(part, locals);
    match &value.kind {
        ExprKind::Call(_)
        | ExprKind::New(..)
        | ExprKind::Alloc { .. }
        | ExprKind::Assign(..)
        | ExprKind::Step { .. }
        | ExprKind::Swap(..)
        | ExprKind::Throw(_)
        | ExprKind::Statements(_)
        | ExprKind::Asm(_) => Some(value),
        ExprKind::Local(id) if !locals[id.0 as usize].is_static => Some(value),
        ExprKind::Unary(_, part)
        | ExprKind::Coerce(_, part)
        | ExprKind::Instantiate(part, _)
        | ExprKind::Address(part)
        | ExprKind::Deref(part, _)
        | ExprKind::Member(part, _) => computed_in(part),
        ExprKind::Binary(_, left, right) | ExprKind::Comma(left, right) | ExprKind::Index(left, right, _) => {
            computed_in(left).or_else(|| computed_in(right))
        }
        ExprKind::Conditional(condition, yes, no) => {
            computed_in(condition).or_else(|| computed_in(yes)).or_else(|| computed_in(no))
        }
        ExprKind::Aggregate(init) => Checker::computed_part(init, locals),
        ExprKind::Construct(_, _, parts) => parts.iter().find_map(computed_in),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_wraps_as_the_types_do() {
        let one = Number::new(1, 4, true);
        assert_eq!(Number::binary(BinOp::Sub, Number::int(0), one).unwrap().value, 0xffff_ffff);
        assert_eq!(Number::binary(BinOp::Lt, Number::int(-1), Number::int(0)).unwrap().value, 1);
        assert_eq!(Number::binary(BinOp::Lt, Number::int(-1), one).unwrap().value, 0);
        assert_eq!(Number::binary(BinOp::Div, one, Number::int(0)), None);
        assert_eq!(Number::binary(BinOp::Shl, one, Number::int(40)), None);
    }
}

//! Initial values that are constants to C: of variables that exist before the program begins.
//!
//! C computes addresses of objects and functions, numbers, and braces of those. Everything else is computed by a function that
//! runs before `main`.

use super::function::Body;
use super::shapes::{C, Shape};
use crate::ast::BinOp;
use crate::tree::{Coercion, Expr, ExprKind, Init};
use crate::types::{Ty, TyKind};
use std::fmt::Write;

/// Bytes as a C string literal.
pub fn string_literal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'?' => text.push_str("\\?"),
            0x20..=0x7e => text.push(byte as char),
            // Three digits, so that a digit that follows does not belong to it.
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

/// Wide characters as C's braces, with the zero.
pub fn wide_braces(text: &[u32]) -> String {
    let mut out = String::from("{");
    for character in text {
        let _ = write!(out, "{character}, ");
    }
    out.push_str("0}");
    out
}

/// Wide characters as an array.
pub fn wide_string_literal(text: &[u32]) -> String {
    format!("((int[]){})", wide_braces(text))
}

impl<'p> Body<'_, 'p> {
    /// Writes a constant for a variable of shape `c`; false, with nothing to be kept in the output, if there is none.
    pub fn constant(&mut self, init: &'p Init, c: C) -> bool {
        match init {
            Init::Value(value) => self.constant_value(value, c),
            Init::String(bytes) => {
                self.push(&string_literal(bytes));
                true
            }
            Init::Comprehension(comprehension) => {
                // All zero, which is what C makes of nothing.
                let is_zero = comprehension.value.as_ref().is_none_or(Expr::is_zero);
                if is_zero {
                    self.push("{0}");
                }
                is_zero
            }
            Init::List(list) => {
                let program = self.lower.program;
                let element = match program.types.get(list.ty) {
                    TyKind::Array(array) => Some(self.lower.shape(array.element)),
                    _ => None,
                };
                let is_tagged = matches!(program.types.get(list.ty), TyKind::Aggregate(id, _)
                    if program.declarations.aggregate(*id).is_tagged);
                self.push("{");
                for (position, (index, entry)) in list.entries.iter().enumerate() {
                    if position > 0 {
                        self.push(", ");
                    }
                    let is_constant = match element {
                        Some(element) => {
                            if position as u64 != *index {
                                let _ = write!(self.out, "[{index}] = ");
                            }
                            self.constant(entry, element)
                        }
                        None => {
                            let (c, name) = self.lower.member(list.ty, *index as usize);
                            if is_tagged {
                                put!(self.out, ".tag = ", *index + 1, ", ");
                            }
                            put!(self.out, ".", name, " = ");
                            self.constant(entry, c)
                        }
                    };
                    if !is_constant {
                        return false;
                    }
                }
                self.push("}");
                true
            }
        }
    }

    fn constant_value(&mut self, value: &'p Expr, c: C) -> bool {
        let is_fat = *self.lower.shapes.get(c) == Shape::Fat;
        if is_fat {
            return self.constant_fat(value);
        }
        match &value.kind {
            ExprKind::Str(bytes) if matches!(self.lower.shapes.get(c), Shape::Array(..)) => {
                self.push(&string_literal(bytes));
                true
            }
            ExprKind::WideStr(text) if matches!(self.lower.shapes.get(c), Shape::Array(..)) => {
                self.push(&wide_braces(text));
                true
            }
            ExprKind::Aggregate(inner) => self.constant(inner, c),
            ExprKind::Construct(id, index, args) => {
                let tag = self.lower.constructor_tag_value(*id, *index);
                put!(self.out, "{", tag);
                for (at, arg) in args.iter().enumerate() {
                    self.push(", ");
                    let (c, _) = self.lower.constructor_member(*id, *index, at);
                    if !self.constant_value(arg, c) {
                        return false;
                    }
                }
                self.push("}");
                true
            }
            _ if self.is_constant(value) => {
                self.value_as(value, c);
                true
            }
            _ => false,
        }
    }

    fn constant_fat(&mut self, value: &'p Expr) -> bool {
        match &value.kind {
            ExprKind::Null => {
                self.push("{0, 0, 0}");
                true
            }
            ExprKind::Coerce(Coercion::ThinToFat | Coercion::ScanToFat, inner) if self.is_constant(inner) => {
                let Some(pointer) = self.pointer_type(inner.ty) else { return false };
                let element = self.lower.type_name(pointer.target);
                let count = match (self.lower.program.types.get(pointer.bound), literal_len(inner)) {
                    (_, Some(len)) => len,
                    (TyKind::Thin(count), None) => match self.lower.program.types.get(*count) {
                        TyKind::Nat(count) => *count,
                        _ => return false,
                    },
                    _ => return false,
                };
                if matches!(value.kind, ExprKind::Coerce(Coercion::ScanToFat, _)) && literal_len(inner).is_none() {
                    return false;
                }
                let count = count.saturating_sub(u64::from(self.gives_up_terminator(inner.ty, value.ty)));
                let start = self.captured(|body| body.value(inner));
                let start = text!("(unsigned char *)", start);
                put!(self.out, "{", start, ", ", start, ", ", start, " + ", count, " * sizeof(", element, ")}");
                true
            }
            ExprKind::Coerce(Coercion::Same | Coercion::NotNull(_), inner)
                if !self.gives_up_terminator(inner.ty, value.ty) =>
            {
                self.constant_fat(inner)
            }
            _ => false,
        }
    }

    /// Whether C takes what [`Body::value`](Body::value) writes for a constant.
    fn is_constant(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Null
            | ExprKind::Str(_)
            | ExprKind::SizeOf(_)
            | ExprKind::OffsetOf(..) => !self.is_fat_type(expr.ty),
            ExprKind::Global(_) => matches!(self.lower.program.types.get(expr.ty), TyKind::Function(_)),
            ExprKind::Handle(ty) => !matches!(self.lower.program.types.get(*ty), TyKind::Var(_)),
            ExprKind::ValueOf(ty) => matches!(self.lower.program.types.get(*ty), TyKind::Nat(_)),
            ExprKind::Unary(_, inner) => self.is_number(inner.ty) && self.is_constant(inner),
            ExprKind::Binary(op, left, right) => {
                !matches!(op, BinOp::LogAnd | BinOp::LogOr)
                    && self.is_number(left.ty)
                    && self.is_number(right.ty)
                    && self.is_constant(left)
                    && self.is_constant(right)
            }
            ExprKind::Conditional(a, b, c) => {
                [a, b, c].iter().all(|part| self.is_number(part.ty) && self.is_constant(part))
            }
            ExprKind::Coerce(coercion, inner) => match coercion {
                Coercion::Decay => self.is_static_place(inner) || self.is_constant(inner),
                Coercion::Same | Coercion::Number | Coercion::IntToTag => self.is_constant(inner),
                Coercion::NotNull(check) => *check != crate::tree::Check::Needed && self.is_constant(inner),
                _ => false,
            },
            ExprKind::Address(place) => self.is_static_place(place),
            ExprKind::Instantiate(function, _) => self.is_constant(function),
            _ => false,
        }
    }

    fn is_fat_type(&self, ty: Ty) -> bool {
        self.pointer_type(ty).is_some_and(|pointer| self.is_fat(pointer))
    }

    fn is_number(&self, ty: Ty) -> bool {
        matches!(
            self.lower.program.types.get(ty),
            TyKind::Int(..) | TyKind::Bool | TyKind::Float(_) | TyKind::Enum(_) | TyKind::TagHandle(_)
        )
    }

    fn is_static_place(&self, place: &Expr) -> bool {
        match &place.kind {
            ExprKind::Global(_) | ExprKind::Str(_) => true,
            ExprKind::Local(id) => self.local(*id).is_some_and(|local| local.is_static),
            ExprKind::Member(base, _) => self.is_static_place(base),
            ExprKind::Coerce(Coercion::Same, inner) => self.is_static_place(inner),
            _ => false,
        }
    }
}

/// The number of characters, with the zero, of a string literal that has become a pointer.
fn literal_len(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Str(bytes) => Some(bytes.len() as u64 + 1),
        ExprKind::Coerce(Coercion::Decay | Coercion::Same, inner) => literal_len(inner),
        _ => None,
    }
}

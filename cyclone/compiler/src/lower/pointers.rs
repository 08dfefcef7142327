//! Conversions, and arithmetic on pointers.

use super::expressions::operator;
use super::function::Body;
use super::shapes::{C, Shape};
use crate::ast::BinOp;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind};
use crate::types::{Pointer, Ty, TyKind};
use std::fmt::Write;

impl<'p> Body<'_, 'p> {
    /// Whether a conversion of a pointer loses the last element: what may be overwritten through the new type is not
    /// the terminator any more.
    pub fn gives_up_terminator(&self, from: Ty, to: Ty) -> bool {
        match (self.pointer_type(from), self.pointer_type(to)) {
            (Some(from), Some(to)) => {
                self.is_fat(to) && self.is_true(from.zeroterm) && !self.is_true(to.zeroterm) && !to.quals.is_const
            }
            _ => false,
        }
    }

    pub fn coerce(&mut self, coercion: Coercion, inner: &'p Expr, to: Ty) {
        let want = self.lower.shape(to);
        let element = self.target_shape(inner.ty);
        if coercion != Coercion::HideZero && self.gives_up_terminator(inner.ty, to) {
            let size = self.lower.shape_size_text(element);
            self.push("_cyc_fat_shrink(");
            self.coerce_as_it_is(coercion, inner, to, want);
            let _ = write!(self.out, ", {size}, 1)");
            return;
        }
        self.coerce_as_it_is(coercion, inner, to, want);
    }

    fn coerce_as_it_is(&mut self, coercion: Coercion, inner: &'p Expr, to: Ty, want: C) {
        match coercion {
            Coercion::Same if *self.lower.shapes.get(want) == Shape::Fat => self.value(inner),
            Coercion::Same => self.raw(inner),
            Coercion::Number => {
                let cast = self.lower.cast(want);
                put!(self.out, "((", cast, ")");
                self.value(inner);
                self.push(")");
            }
            Coercion::Decay => {
                let cast = self.lower.cast(want);
                put!(self.out, "((", cast, ")");
                self.first_element(inner);
                self.push(")");
            }
            Coercion::NotNull(check) => self.not_null(check, inner, want),
            Coercion::ThinToFat => self.thin_to_fat(inner),
            Coercion::ScanToFat => {
                let Some(pointer) = self.pointer_type(inner.ty) else { return };
                let (count, element) = (self.known_count(pointer, inner.span), self.lower.size_text(pointer.target));
                self.push("_cyc_zero_fat(");
                self.value(inner);
                let _ = write!(self.out, ", {element}, {count})");
            }
            Coercion::FatToThin(checks) => self.fat_to_thin(checks, inner, to, want),
            Coercion::HideZero => {
                let size = self.target_shape(inner.ty);
                let size = self.lower.shape_size_text(size);
                self.push("_cyc_fat_shrink(");
                self.value(inner);
                let _ = write!(self.out, ", {size}, 1)");
            }
            Coercion::PointerToInt => {
                let c = self.lower.shape(inner.ty);
                let cast = self.lower.cast(want);
                let _ = write!(self.out, "(({cast})(_cyc_word)");
                self.value(inner);
                if *self.lower.shapes.get(c) == Shape::Fat {
                    self.push(".curr");
                }
                self.push(")");
            }
            Coercion::IntToTag => {
                let cast = self.lower.cast(want);
                put!(self.out, "((", cast, ")");
                self.value(inner);
                self.push(")");
            }
            Coercion::ToVoid => {
                self.push("((void)");
                self.value(inner);
                self.push(")");
            }
        }
    }

    fn not_null(&mut self, check: Check, inner: &'p Expr, want: C) {
        let is_fat = *self.lower.shapes.get(want) == Shape::Fat;
        match (check, is_fat) {
            (Check::Needed, false) => {
                self.push("_cyc_nonnull(");
                self.value_as(inner, want);
                self.push(")");
            }
            (Check::Needed, true) => {
                self.push("({ ");
                let fat = self.temporary(want, |body| body.value_as(inner, want));
                let _ = write!(self.out, "if (!{fat}.curr) _cyc_throw_null(); {fat}; }})");
            }
            _ => self.value_as(inner, want),
        }
    }

    fn thin_to_fat(&mut self, inner: &'p Expr) {
        let Some(pointer) = self.pointer_type(inner.ty) else { return };
        let (count, element) = (self.known_count(pointer, inner.span), self.lower.size_text(pointer.target));
        self.push("_cyc_fat_make(");
        self.value(inner);
        put!(self.out, ", ", count, " * ", element, ")");
    }

    fn fat_to_thin(&mut self, checks: Checks, inner: &'p Expr, to: Ty, want: C) {
        let cast = self.lower.cast(want);
        let Some(target) = self.pointer_type(to) else { return };
        let _ = write!(self.out, "(({cast})");
        if checks.null == Check::Needed {
            self.push("_cyc_nonnull(");
        }
        if checks.bounds == Check::Needed {
            let count = self.known_count(target, inner.span);
            let element = self.lower.size_text(target.target);
            let from = self.pointer_type(inner.ty);
            // The terminator is not for the new pointer, which could overwrite it.
            let keeps_terminator = from.is_some_and(|from| self.is_true(from.zeroterm))
                && !self.is_true(target.zeroterm)
                && !target.quals.is_const;
            let terminator = from.filter(|_| keeps_terminator).map(|from| self.lower.size_text(from.target));
            self.push("_cyc_fat_thin(");
            match terminator {
                // Elements of another size.
                Some(own) if own != element => {
                    self.push("_cyc_fat_shrink(");
                    self.value(inner);
                    let _ = write!(self.out, ", {own}, 1), {element}, {count})");
                }
                terminator => {
                    self.value(inner);
                    let _ = write!(self.out, ", {element}, {count}{})", if terminator.is_some() { " + 1" } else { "" });
                }
            }
        } else {
            self.value(inner);
            self.push(".curr");
        }
        if checks.null == Check::Needed {
            self.push(")");
        }
        self.push(")");
    }

    pub fn is_pointer_operation(&self, left: Ty, right: Ty) -> bool {
        self.pointer_type(left).is_some() || self.pointer_type(right).is_some()
    }

    fn fat_pointer(&self, ty: Ty) -> Option<&'p Pointer> {
        self.pointer_type(ty).filter(|pointer| self.is_fat(pointer))
    }

    /// `p + n`, `n + p`, `p - n`, `p - q`, comparisons. The left operand is written by a function.
    pub fn pointer_operation(&mut self, op: BinOp, left: (Ty, &dyn Fn(&mut Self)), right: &'p Expr, expr: &'p Expr) {
        match (op, self.pointer_type(left.0), self.pointer_type(right.ty)) {
            (BinOp::Add | BinOp::Sub, Some(_), None) => {
                let pointer = left.0;
                self.moved(op, pointer, left.1, &|body: &mut Self| body.value(right), expr);
            }
            (BinOp::Add, None, Some(_)) => {
                self.moved(op, right.ty, &|body: &mut Self| body.value(right), left.1, expr);
            }
            (BinOp::Sub, Some(pointer), Some(_)) => {
                let element = self.lower.size_text(pointer.target);
                let cast = self.lower.type_name(expr.ty);
                put!(self.out, "((", cast, ")");
                if self.is_fat(pointer) {
                    self.push("_cyc_fat_minus(");
                    left.1(self);
                    self.push(", ");
                    self.value(right);
                    let _ = write!(self.out, ", {element}))");
                } else {
                    self.push("(");
                    left.1(self);
                    self.push(" - ");
                    self.value(right);
                    self.push("))");
                }
            }
            _ => {
                self.push("(");
                self.address_number(op, left.0, left.1);
                let _ = write!(self.out, " {} ", operator(op));
                self.address_number(op, right.ty, &|body: &mut Self| body.value(right));
                self.push(")");
            }
        }
    }

    /// A pointer for a comparison.
    fn address_number(&mut self, op: BinOp, ty: Ty, write: &dyn Fn(&mut Self)) {
        let is_equality = matches!(op, BinOp::Eq | BinOp::Ne);
        if self.pointer_type(ty).is_some() {
            self.push(if is_equality { "(void *)" } else { "(_cyc_size)" });
        }
        write(self);
        if self.fat_pointer(ty).is_some() {
            self.push(".curr");
        }
    }

    /// `pointer + number`; the expression's type is the pointer's.
    fn moved(&mut self, op: BinOp, ty: Ty, pointer: &dyn Fn(&mut Self), number: &dyn Fn(&mut Self), expr: &'p Expr) {
        let Some(info) = self.pointer_type(ty) else { return };
        let element = self.lower.size_text(info.target);
        let sign = if op == BinOp::Sub { "-(_cyc_index)" } else { "" };
        if self.is_fat(info) {
            self.push("_cyc_fat_plus(");
            pointer(self);
            let _ = write!(self.out, ", {element}, {sign}");
            number(self);
            self.push(")");
            return;
        }
        let cast = self.lower.type_name(expr.ty);
        if self.is_true(info.zeroterm) {
            let count = self.known_count(info, expr.span);
            let c = self.lower.shape(ty);
            let _ = write!(self.out, "(({cast})({{ ");
            let from = self.temporary(c, pointer);
            self.not_null_for_arithmetic(&from);
            let _ = write!(self.out, "_cyc_zero_at({from}, {element}, {count}, {sign}");
            number(self);
            self.push("); }))");
        } else {
            let _ = write!(self.out, "(({cast})(");
            pointer(self);
            let _ = write!(self.out, " {} ", operator(op));
            number(self);
            self.push("))");
        }
    }

    /// A null zero-terminated pointer cannot be moved: there are no elements to pass. Only following it is `Null_Exception`.
    fn not_null_for_arithmetic(&mut self, pointer: &str) {
        let _ = write!(self.out, "if (!{pointer}) _cyc_throw_bounds(); ");
    }

    /// `p += n`, `p -= n`.
    pub fn add_to_pointer(&mut self, place: &'p Expr, op: BinOp, value: &'p Expr, c: C) {
        let sign = if op == BinOp::Sub { "-(_cyc_index)" } else { "" };
        if self.is_order_seen([value, place]) && !matches!(place.kind, ExprKind::Local(_)) {
            let number = self.lower.shape(value.ty);
            self.push("({ ");
            let amount = self.early(value, number);
            self.change_pointer(place, c, &|body: &mut Self| body.push(&format!("{sign}{amount}")), false);
            return self.push("; })");
        }
        let amount = |body: &mut Self| {
            body.push(sign);
            body.value(value);
        };
        self.change_pointer(place, c, &amount, false);
    }

    pub fn step_pointer(&mut self, place: &'p Expr, up: bool, postfix: bool, c: C) {
        self.change_pointer(place, c, &|body: &mut Self| body.push(if up { "1" } else { "-1" }), postfix);
    }

    fn change_pointer(&mut self, place: &'p Expr, c: C, amount: &dyn Fn(&mut Self), postfix: bool) {
        let Some(pointer) = self.pointer_type(place.ty) else { return };
        let element = self.lower.size_text(pointer.target);
        let is_fat = self.is_fat(pointer);
        if is_fat {
            self.push(if postfix { "_cyc_fat_post_add(" } else { "_cyc_fat_add(" });
            self.address_of(place);
            let _ = write!(self.out, ", {element}, ");
            amount(self);
            return self.push(")");
        }
        let cast = self.lower.cast(c);
        let at = self.lower.shapes.pointer(c);
        let value = self.lower.shape(place.ty);
        let count = self.known_count(pointer, place.span);
        let is_local = matches!(place.kind, ExprKind::Local(_));
        self.push("({ ");
        let target = match is_local {
            true => self.captured(|body| body.place(place)),
            false => {
                let address = self.temporary(at, |body| body.address_of(place));
                format!("(*{address})")
            }
        };
        let old = self.temporary(c, |body| body.push(&target));
        let old_value = self.captured(|body| body.converted(c, value, |body| body.push(&old)));
        if self.is_true(pointer.zeroterm) {
            self.not_null_for_arithmetic(&old);
            let _ = write!(self.out, "{target} = ({cast})_cyc_zero_at({old_value}, {element}, {count}, ");
            amount(self);
            self.push("); ");
        } else {
            let _ = write!(self.out, "{target} = ({cast})({old_value} + ");
            amount(self);
            self.push("); ");
        }
        self.push(if postfix { &old } else { &target });
        self.push("; })");
    }

    pub fn numelts(&mut self, expr: &'p Expr) {
        let program = self.lower.program;
        match program.types.get(expr.ty) {
            TyKind::Pointer(pointer) => {
                let element = self.lower.size_text(pointer.target);
                if self.is_fat(pointer) {
                    self.push("_cyc_fat_count(");
                    self.value(expr);
                    let _ = write!(self.out, ", {element})");
                    return;
                }
                let count = self.known_count(pointer, expr.span);
                if self.is_true(pointer.zeroterm) {
                    self.push("_cyc_zero_count(");
                    self.value(expr);
                    let _ = write!(self.out, ", {element}, {count})");
                } else {
                    self.push("(");
                    self.value(expr);
                    let _ = write!(self.out, " ? {count} : 0)");
                }
            }
            TyKind::Array(array) => {
                let count = array.len.map_or("0".to_owned(), |len| self.number(len, expr.span));
                self.push(&count);
            }
            _ => self.push("1"),
        }
    }
}

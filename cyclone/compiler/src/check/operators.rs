//! Operators: arithmetic, comparison, assignment, `++`, swap.

use super::Checker;
use super::coerce::is_zero;
use crate::ast::{self, BinOp, UnOp};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Expr, ExprKind, UnaryOp};
use crate::types::{Kind, Pointer, Ty, TyKind};

impl Checker<'_> {
    /// A unary operator.
    pub fn unary(&mut self, operator: UnOp, operand: &ast::Expr, expected: Option<Ty>, span: Span) -> Expr {
        match operator {
            UnOp::Address => self.address(operand, expected, span),
            UnOp::Deref => {
                let pointer = self.followed(operand);
                self.deref(pointer, span)
            }
            UnOp::Not => {
                let operand = self.condition(operand);
                let ty = self.int();
                Expr { kind: ExprKind::Unary(UnaryOp::Not, Box::new(operand)), ty, span }
            }
            UnOp::Plus => {
                let operand = self.number(operand, "`+`");
                self.promote(operand)
            }
            UnOp::Minus => {
                let operand = self.number(operand, "`-`");
                let operand = self.promote(operand);
                self.made_unary(UnaryOp::Minus, operand, span)
            }
            UnOp::Complement => {
                let operand = self.whole_number(operand, "`~`");
                let operand = self.promote(operand);
                self.made_unary(UnaryOp::Complement, operand, span)
            }
            UnOp::PreInc => self.step(operand, true, false, span),
            UnOp::PreDec => self.step(operand, false, false, span),
            UnOp::PostInc => self.step(operand, true, true, span),
            UnOp::PostDec => self.step(operand, false, true, span),
        }
    }

    fn made_unary(&mut self, operator: UnaryOp, operand: Expr, span: Span) -> Expr {
        let ty = operand.ty;
        Expr { kind: ExprKind::Unary(operator, Box::new(operand)), ty, span }
    }

    /// A value that must be a number.
    fn number(&mut self, operand: &ast::Expr, whom: &str) -> Expr {
        let value = self.value(operand, None);
        self.as_number(value, whom)
    }

    fn as_number(&mut self, value: Expr, whom: &str) -> Expr {
        self.settle_number(&value);
        if self.is_arithmetic(value.ty) || matches!(self.types.get(value.ty), TyKind::Error) {
            return value;
        }
        let shown = self.show(value.ty);
        self.wrong(Code::NotNumeric, value.span, format!("{whom} takes a number; this is `{shown}`"))
    }

    fn whole_number(&mut self, operand: &ast::Expr, whom: &str) -> Expr {
        let value = self.value(operand, None);
        self.as_whole_number(value, whom)
    }

    fn as_whole_number(&mut self, value: Expr, whom: &str) -> Expr {
        self.settle_number(&value);
        if self.is_integral(value.ty) || matches!(self.types.get(value.ty), TyKind::Error) {
            return value;
        }
        let shown = self.show(value.ty);
        self.wrong(Code::NotNumeric, value.span, format!("{whom} takes a whole number; this is `{shown}`"))
    }

    /// A binary operator.
    pub fn binary(&mut self, operator: BinOp, left: &ast::Expr, right: &ast::Expr, span: Span) -> Expr {
        if matches!(operator, BinOp::LogAnd | BinOp::LogOr) {
            let left = self.condition(left);
            let right = self.condition(right);
            let ty = self.int();
            return Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span };
        }
        let written = left;
        let left = self.value(left, None);
        let right = self.value(right, None);
        if operator == BinOp::Div {
            self.warn_of_divided_pointer(written, &left, &right);
        }
        self.combine(operator, left, right, span)
    }

    /// A binary operator on values.
    fn combine(&mut self, operator: BinOp, left: Expr, right: Expr, span: Span) -> Expr {
        for side in [&left, &right] {
            if matches!(self.types.get(side.ty), TyKind::Error) {
                return Expr::error(&mut self.types, span);
            }
        }
        let pointers = (self.is_pointer(left.ty), self.is_pointer(right.ty));
        match operator {
            BinOp::Add if pointers.0 => {
                let right = self.as_whole_number(right, "`+` on a pointer");
                let right = self.promote(right);
                self.offset_pointer(left, right, span)
            }
            BinOp::Add if pointers.1 => {
                let left = self.as_whole_number(left, "`+` on a pointer");
                let left = self.promote(left);
                self.offset_pointer(right, left, span)
            }
            BinOp::Sub if pointers.0 && pointers.1 => self.difference(left, right, span),
            BinOp::Sub if pointers.0 => self.move_back(left, right, span),
            BinOp::Mul | BinOp::Div | BinOp::Add | BinOp::Sub => {
                let left = self.as_number(left, "the operator");
                let right = self.as_number(right, "the operator");
                self.arithmetic(operator, left, right, span)
            }
            BinOp::Rem | BinOp::And | BinOp::Xor | BinOp::Or => {
                let left = self.as_whole_number(left, "the operator");
                let right = self.as_whole_number(right, "the operator");
                self.arithmetic(operator, left, right, span)
            }
            BinOp::Shl | BinOp::Shr => {
                let left = self.as_whole_number(left, "a shift");
                let right = self.as_whole_number(right, "a shift");
                let (left, right) = (self.promote(left), self.promote(right));
                let ty = left.ty;
                Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span }
            }
            _ => self.compare(operator, left, right, span),
        }
    }

    fn is_pointer(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Pointer(_))
    }

    fn arithmetic(&mut self, operator: BinOp, left: Expr, right: Expr, span: Span) -> Expr {
        let ty = self.common_type(left.ty, right.ty);
        let (left, right) = (self.number_to(left, ty), self.number_to(right, ty));
        Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span }
    }

    /// `pointer - number`, for fat pointers only.
    fn move_back(&mut self, pointer: Expr, number: Expr, span: Span) -> Expr {
        let number = self.as_whole_number(number, "`-` on a pointer");
        let number = self.promote(number);
        let TyKind::Pointer(parts) = self.types.get(pointer.ty).clone() else {
            return Expr::error(&mut self.types, span);
        };
        if let Some(wrong) = self.refuse_arithmetic(&pointer, &parts) {
            return wrong;
        }
        let fat = self.make(TyKind::Fat);
        if self.try_unify(parts.bound, fat).is_err() {
            return self.thin_arithmetic(&pointer, span);
        }
        let ty = pointer.ty;
        Expr { kind: ExprKind::Binary(BinOp::Sub, Box::new(pointer), Box::new(number)), ty, span }
    }

    fn thin_arithmetic(&mut self, pointer: &Expr, span: Span) -> Expr {
        let shown = self.show(pointer.ty);
        let report = Diagnostic::error(
            Code::ThinArithmetic,
            span,
            format!("arithmetic on `{shown}`, whose bounds are not kept"),
        )
        .help("declare it as a fat pointer: `?` in place of `*`");
        self.diagnostics.push(report);
        Expr::error(&mut self.types, span)
    }

    /// `pointer - pointer`: how many elements are between them.
    fn difference(&mut self, left: Expr, right: Expr, span: Span) -> Expr {
        let (TyKind::Pointer(a), TyKind::Pointer(b)) =
            (self.types.get(left.ty).clone(), self.types.get(right.ty).clone())
        else {
            return Expr::error(&mut self.types, span);
        };
        if let Some(wrong) = self.refuse_arithmetic(&left, &a) {
            return wrong;
        }
        if !self.subtype(a.target, b.target) {
            let (left, right) = (self.show(left.ty), self.show(right.ty));
            return self.wrong(Code::WrongType, span, format!("difference of `{left}` and `{right}`"));
        }
        let (left, right) = (self.bare(left), self.bare(right));
        let ty = self.long();
        Expr { kind: ExprKind::Binary(BinOp::Sub, Box::new(left), Box::new(right)), ty, span }
    }

    fn compare(&mut self, operator: BinOp, left: Expr, right: Expr, span: Span) -> Expr {
        let ty = self.int();
        let made = |left, right| Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span };
        if self.is_arithmetic(left.ty) && self.is_arithmetic(right.ty) {
            let common = self.common_type(left.ty, right.ty);
            return made(self.number_to(left, common), self.number_to(right, common));
        }
        let (left_ty, right_ty) = (left.ty, right.ty);
        let help = self.comparison_advice(&left, &right);
        match (self.types.get(left_ty).clone(), self.types.get(right_ty).clone()) {
            (TyKind::Pointer(pointer), _) if is_zero(&right) => {
                return match self.null_like(&pointer, right.span) {
                    Some(null) => made(left, null),
                    None => self.never_null(&left),
                };
            }
            (_, TyKind::Pointer(pointer)) if is_zero(&left) => {
                return match self.null_like(&pointer, left.span) {
                    Some(null) => made(null, right),
                    None => self.never_null(&right),
                };
            }
            (TyKind::Pointer(a), TyKind::Pointer(b)) => {
                if matches!(left.kind, ExprKind::Null) || matches!(right.kind, ExprKind::Null) {
                    // Only one bit of it matters: its type is that of the other side.
                    let (left, right) = match left.kind {
                        ExprKind::Null => (Expr { ty: right_ty, ..left }, right),
                        _ => (left, Expr { ty: left_ty, ..right }),
                    };
                    return made(left, right);
                }
                let comparable = self.subtype(a.target, b.target)
                    || self.subtype(b.target, a.target)
                    || self.constructor_fits(a.target, b.target)
                    || self.constructor_fits(b.target, a.target)
                    || self.is_void(a.target)
                    || self.is_void(b.target);
                if comparable {
                    let (left, right) = (self.bare(left), self.bare(right));
                    return made(left, right);
                }
            }
            (TyKind::RegionHandle(_), TyKind::RegionHandle(_)) => return made(left, right),
            (TyKind::Aggregate(..) | TyKind::Tuple(_), _) | (_, TyKind::Aggregate(..) | TyKind::Tuple(_)) => {}
            _ => {
                let before = self.types.snapshot();
                let left = match self.try_coerce(left, right_ty) {
                    Ok(left) => return made(left, right),
                    Err(refusal) => refusal.0,
                };
                self.types.rollback(before);
                if let Ok(right) = self.try_coerce(right, left_ty) {
                    return made(left, right);
                }
            }
        }
        let (left_shown, right_shown) = (self.show(left_ty), self.show(right_ty));
        let message = format!("`{left_shown}` and `{right_shown}` cannot be compared");
        let report = Diagnostic::error(Code::WrongType, span, message);
        self.wrong_as(Diagnostic { help, ..report })
    }

    fn is_void(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Void)
    }

    fn null_like(&mut self, pointer: &Pointer, span: Span) -> Option<Expr> {
        let yes = self.truth(true);
        self.try_unify(pointer.nullable, yes).ok()?;
        let ty = self.pointer_type(pointer.clone());
        Some(Expr { kind: ExprKind::Null, ty, span })
    }

    fn never_null(&mut self, pointer: &Expr) -> Expr {
        let shown = self.show(pointer.ty);
        self.wrong(Code::WrongType, pointer.span, format!("`{shown}` is never NULL"))
    }

    /// A place that is read before it is written: a member of a union is there to be read.
    fn read_place(&mut self, expr: &ast::Expr) -> Expr {
        let place = self.place(expr);
        self.guard_tagged(place)
    }

    /// `left = right`, `left += right`
    pub fn assign(&mut self, operator: Option<BinOp>, left: &ast::Expr, right: &ast::Expr, span: Span) -> Expr {
        let place = if operator.is_some() { self.read_place(left) } else { self.place(left) };
        let ty = place.ty;
        if let TyKind::Array(_) = self.types.get(ty) {
            self.value(right, None);
            let report = Diagnostic::error(Code::NotAssignable, span, "an array cannot be assigned to as a whole");
            let is_text = matches!(right.kind, ast::ExprKind::Str(..));
            let instead = if is_text { "copy the text: `strcpy(.., ..)`" } else { "assign its elements, one by one" };
            return self.wrong_as(report.help(instead));
        }
        let value = match operator {
            None => {
                let value = self.braces_or_value(right, ty);
                self.check_writable(&place, left.span);
                let value = self.coerce(value, ty, right.span);
                self.check_consumed(&value);
                value
            }
            Some(operator) => {
                let value = self.value(right, None);
                self.check_writable(&place, left.span);
                self.operand_of_assignment(operator, &place, value, span)
            }
        };
        if self.types.kind(ty) == Kind::Any && !matches!(self.types.get(ty), TyKind::Evar(_)) {
            self.error(Code::Incomplete, span, "the size of what is assigned is not known");
        }
        Expr { kind: ExprKind::Assign(operator, Box::new(place), Box::new(value)), ty, span }
    }

    /// The right operand of `+=` and its like, in the type in which is computed.
    fn operand_of_assignment(&mut self, operator: BinOp, place: &Expr, value: Expr, span: Span) -> Expr {
        self.settle_number(place);
        if let TyKind::Pointer(parts) = self.types.get(place.ty).clone() {
            if !matches!(operator, BinOp::Add | BinOp::Sub) {
                return self.wrong(Code::NotNumeric, span, "the operator takes numbers, not pointers");
            }
            if let Some(wrong) = self.refuse_arithmetic(place, &parts) {
                return wrong;
            }
            let fat = self.make(TyKind::Fat);
            if self.try_unify(parts.bound, fat).is_err() {
                return self.thin_arithmetic(place, span);
            }
            let value = self.as_whole_number(value, "arithmetic on a pointer");
            return self.promote(value);
        }
        if matches!(self.types.get(place.ty), TyKind::Error) || self.refuse_change(place, span) {
            return value;
        }
        let whole = matches!(operator, BinOp::Rem | BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr);
        let fine = if whole { self.is_integral(place.ty) } else { self.is_arithmetic(place.ty) };
        if !fine || matches!(self.types.get(place.ty), TyKind::TagHandle(_)) {
            let shown = self.show(place.ty);
            return self.wrong(Code::NotNumeric, span, format!("the operator cannot change a `{shown}`"));
        }
        let value =
            if whole { self.as_whole_number(value, "the operator") } else { self.as_number(value, "the operator") };
        if matches!(self.types.get(value.ty), TyKind::Error) {
            return value;
        }
        let computed = match operator {
            BinOp::Shl | BinOp::Shr => self.promoted(place.ty),
            _ => self.common_type(place.ty, value.ty),
        };
        self.number_to(value, computed)
    }

    fn step(&mut self, operand: &ast::Expr, up: bool, postfix: bool, span: Span) -> Expr {
        let place = self.read_place(operand);
        self.check_writable(&place, operand.span);
        self.settle_number(&place);
        let ty = place.ty;
        match self.types.get(ty).clone() {
            TyKind::Error => return place,
            TyKind::Subset(..) => {
                self.refuse_change(&place, span);
                return Expr::error(&mut self.types, span);
            }
            TyKind::Pointer(parts) => {
                if let Some(wrong) = self.refuse_arithmetic(&place, &parts) {
                    return wrong;
                }
                let fat = self.make(TyKind::Fat);
                let is_moved = up && self.is_true(parts.zeroterm) && self.promises_one(parts.bound);
                if !is_moved && self.try_unify(parts.bound, fat).is_err() {
                    return self.thin_arithmetic(&place, span);
                }
            }
            TyKind::TagHandle(_) => return self.wrong(Code::NotAssignable, span, "a tag does not change"),
            _ if self.is_arithmetic(ty) => {}
            _ => {
                let shown = self.show(ty);
                return self.wrong(Code::NotNumeric, span, format!("`++` and `--` cannot change a `{shown}`"));
            }
        }
        Expr { kind: ExprKind::Step { place: Box::new(place), up, postfix }, ty, span }
    }

    /// Whether a bound promises one element: behind it there is another, if it is not the zero at the end. Behind the first of three, two may be left.
    fn promises_one(&mut self, bound: Ty) -> bool {
        let TyKind::Thin(count) = *self.types.get(bound) else { return false };
        let one = self.make(TyKind::Nat(1));
        self.try_unify(count, one).is_ok()
    }

    /// `left :=: right`
    pub fn swap(&mut self, left: &ast::Expr, right: &ast::Expr, span: Span) -> Expr {
        let a = self.read_place(left);
        let b = self.read_place(right);
        self.check_writable(&a, left.span);
        self.check_writable(&b, right.span);
        if matches!(a.kind, ExprKind::Error) || matches!(b.kind, ExprKind::Error) {
            return Expr::error(&mut self.types, span);
        }
        if let Err(why) = self.try_unify(a.ty, b.ty) {
            let (left, right) = (self.show(a.ty), self.show(b.ty));
            let mut message = format!("`{left}` and `{right}` cannot be swapped");
            if !why.reason.is_empty() {
                message = format!("{message}: {}", why.reason);
            }
            return self.wrong(Code::WrongType, span, message);
        }
        if !self.is_pointer(a.ty) && self.types.kind(a.ty) != Kind::Boxed {
            let shown = self.show(a.ty);
            return self.wrong(Code::WrongType, span, format!("only pointers and words can be swapped, not `{shown}`"));
        }
        let ty = self.make(TyKind::Void);
        Expr { kind: ExprKind::Swap(Box::new(a), Box::new(b)), ty, span }
    }
}

//! Comprehensions: `{for i < n : e}`.

use super::Checker;
use super::coerce::is_zero;
use super::types::Position;
use crate::ast::{self, ExprKind as Ast, Quals};
use crate::diagnostics::Code;
use crate::tree::{Coercion, Comprehension, Expr, ExprKind, Init, InitList};
use crate::types::{Alias, Array, Kind, Ty, TyKind};
use thin_vec::ThinVec;

/// How many elements a comprehension outside of functions may have.
const REPEATED: u64 = 1 << 20;

impl Checker<'_> {
    /// A comprehension that fills an array, whose type comes back with its length.
    pub(super) fn array_comprehension(&mut self, expr: &ast::Expr, array: Array) -> (Init, Ty) {
        if self.body.is_none() {
            return self.repeated(expr, array);
        }
        let comprehension = self.comprehension(expr, Some(array.element), self.is_true(array.zeroterm));
        let Some((comprehension, count)) = comprehension else {
            let ty = self.make(TyKind::Array(array));
            return (Init::Value(Expr::error(&mut self.types, expr.span)), ty);
        };
        let total = count.map(|count| count + u64::from(comprehension.zeroterm));
        match (array.len, total) {
            (None, Some(total)) => {
                let len = Some(self.make(TyKind::Nat(total)));
                let ty = self.make(TyKind::Array(Array { len, ..array }));
                (Init::Comprehension(Box::new(comprehension)), ty)
            }
            (Some(len), Some(total)) => {
                let have = self.make(TyKind::Nat(total));
                if self.try_unify(len, have).is_err() {
                    let want = self.show(len);
                    self.error(Code::WrongType, expr.span, format!("the array has {want} elements, not {total}"));
                }
                let ty = self.make(TyKind::Array(array));
                (Init::Comprehension(Box::new(comprehension)), ty)
            }
            (Some(len), None) if !comprehension.zeroterm && self.counts(&comprehension.len, len) => {
                let ty = self.make(TyKind::Array(array));
                (Init::Comprehension(Box::new(comprehension)), ty)
            }
            (_, None) => {
                self.error(Code::WrongType, expr.span, "the length of an array is a constant");
                let ty = self.make(TyKind::Array(array));
                (Init::Comprehension(Box::new(comprehension)), ty)
            }
        }
    }

    /// A comprehension outside of functions: as many times one constant value, which the index has no part in.
    fn repeated(&mut self, expr: &ast::Expr, array: Array) -> (Init, Ty) {
        let (len, value) = match &expr.kind {
            Ast::For(_, parts) => (&parts.0, Some(&parts.1)),
            Ast::ForType(_, parts) => (&parts.0, None),
            _ => return self.initialiser(expr, array.element),
        };
        let len = self.index_value(len);
        let count = self.constant(&len).and_then(|count| u64::try_from(count).ok());
        let Some(count) = count.filter(|&count| count <= REPEATED) else {
            self.error(
                Code::NotConstant,
                len.span,
                "outside of functions this number is a constant, and not too large",
            );
            let ty = self.make(TyKind::Array(array));
            return (Init::Value(Expr::error(&mut self.types, expr.span)), ty);
        };
        let mut entries = ThinVec::new();
        for at in 0..value.map_or(0, |_| count) {
            let Some(value) = value else { break };
            let messages = self.diagnostics.len();
            let (init, _) = self.initialiser(value, array.element);
            let zero = matches!(&init, Init::Value(value) if is_zero(value) || matches!(value.kind, ExprKind::Null));
            if zero || self.diagnostics.len() > messages {
                break;
            }
            entries.push((at, init));
        }
        let total = count + u64::from(self.is_true(array.zeroterm));
        let have = self.make(TyKind::Nat(total));
        let want = array.len.unwrap_or(have);
        if self.try_unify(want, have).is_err() {
            let want = self.show(want);
            self.error(Code::WrongType, expr.span, format!("the array has {want} elements, not {total}"));
        }
        let ty = self.make(TyKind::Array(Array { len: Some(want), ..array }));
        (Init::List(InitList { ty, existentials: ThinVec::new(), entries, span: expr.span }), ty)
    }

    /// Whether a number is the tag of this number of the level of types.
    fn counts(&mut self, value: &Expr, number: Ty) -> bool {
        let value = match &value.kind {
            ExprKind::Coerce(Coercion::Number, inner) => inner,
            _ => value,
        };
        match self.types.get(value.ty) {
            TyKind::TagHandle(tag) => {
                let tag = *tag;
                self.try_unify(tag, number).is_ok()
            }
            _ => false,
        }
    }

    /// A comprehension as a value: an array of a constant number of elements.
    pub fn comprehension_value(&mut self, expr: &ast::Expr, expected: Option<Ty>) -> Expr {
        let array = match expected.map(|ty| self.types.get(ty).clone()) {
            Some(TyKind::Array(array)) => array,
            _ => {
                let element = self.types.fresh_bounded(Kind::Any, self.level(), Alias::Restricted);
                let zeroterm = self.truth(false);
                Array { element, quals: Quals::default(), len: None, zeroterm }
            }
        };
        let (init, ty) = self.array_comprehension(expr, array);
        Expr { kind: ExprKind::Aggregate(Box::new(init)), ty, span: expr.span }
    }

    /// `{for i < n : e}` with its number of elements, where that is constant.
    pub fn comprehension(
        &mut self,
        expr: &ast::Expr,
        element: Option<Ty>,
        zeroterm: bool,
    ) -> Option<(Comprehension, Option<u64>)> {
        let (name, len, body) = match &expr.kind {
            Ast::For(name, parts) => (name, &parts.0, Ok(&parts.1)),
            Ast::ForType(name, parts) => (name, &parts.0, Err(&parts.1)),
            _ => return None,
        };
        let len = self.index_value(len);
        let count = self.constant(&len).and_then(|count| u64::try_from(count).ok());
        if self.body.is_none() {
            self.error(Code::NotConstant, expr.span, "outside of functions nothing is allocated");
            return None;
        }
        self.open_block(None, expr.span);
        let size = self.size_type();
        let quals = Quals { is_const: true, ..Quals::default() };
        let index = self.new_local(name.name, size, quals, name.span);
        self.bind_local(name.name, index);
        let element = element.unwrap_or_else(|| self.types.fresh_bounded(Kind::Any, self.level(), Alias::Restricted));
        let value = match body {
            Ok(body) => {
                let value = self.braces_or_value(body, element);
                let value = self.coerce(value, element, body.span);
                self.check_consumed(&value);
                Some(value)
            }
            Err(ty) => {
                let (ty, _) = self.read_type(ty, Position::Body);
                if self.try_unify(element, ty).is_err() {
                    let (have, want) = (self.show(ty), self.show(element));
                    self.error(Code::WrongType, expr.span, format!("the elements are `{want}`, not `{have}`"));
                }
                None
            }
        };
        self.close_block();
        Some((Comprehension { index, len, value, element, zeroterm }, count))
    }
}

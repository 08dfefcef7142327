//! Sizes of types: `sizeof`, what must have a size, and sizes that a call leaves out.
//!
//! Of a type variable that is no word only the caller knows the size. It can be had from a variable of type ``Core::sizeof_t<`a>``, whose one
//! value it is; `sizeof` finds that variable. A call may leave out a last argument of such a type.

use super::Checker;
use super::effects::Pending;
use super::names::Value;
use crate::ast::{self, Path};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Expr, ExprKind};
use crate::types::{Function, Kind, Ty, TyKind};

impl Checker<'_> {
    /// `sizeof` of a type.
    pub(super) fn size(&mut self, ty: Ty, expected: Option<Ty>, span: Span) -> Expr {
        if let TyKind::Function(_) | TyKind::Void = self.types.get(ty) {
            let shown = self.show(ty);
            return self.wrong(Code::Incomplete, span, format!("`{shown}` has no size"));
        }
        if let Some(held) = self.held_size(ty, span) {
            return held;
        }
        self.require_written_size(ty, span);
        let tag = expected.is_some_and(|ty| matches!(self.types.get(ty), TyKind::TagHandle(_)));
        let result = if tag {
            let number = self.types.size_number(ty);
            self.make(TyKind::TagHandle(number))
        } else {
            self.size_type()
        };
        Expr { kind: ExprKind::SizeOf(ty), ty: result, span }
    }

    /// A last parameter that can only be the size of a type argument, ``Core::sizeof_t<`a>``, may be left out of a call: the
    /// type, and the parameter's.
    pub(super) fn implied_size(&self, function: &Function) -> Option<(Ty, Ty)> {
        let ty = function.params.last()?.ty;
        let TyKind::TagHandle(number) = self.types.get(ty) else { return None };
        match self.types.get(*number) {
            TyKind::SizeOf(sized) => Some((*sized, ty)),
            _ => None,
        }
    }

    /// The variable that holds the size of a type that only the caller knows: a ``Core::sizeof_t<`a>``.
    pub(super) fn held_size(&mut self, ty: Ty, span: Span) -> Option<Expr> {
        if !self.is_unsized_variable(ty) {
            return None;
        }
        let locals = &self.body.as_ref()?.locals;
        let holder = locals.iter().enumerate().find(|(at, local)| {
            let TyKind::TagHandle(number) = self.types.get(local.ty) else { return false };
            let TyKind::SizeOf(of) = self.types.get(*number) else { return false };
            let path = Path { qualifier: None, name: local.name, span };
            self.types.head(*of) == self.types.head(ty)
                && matches!(self.lookup_value(&path), Some(Value::Local(found)) if found.0 as usize == *at)
        });
        let path = Path { qualifier: None, name: holder?.1.name, span };
        Some(self.value(&ast::Expr { kind: ast::ExprKind::Name(path), span }, None))
    }

    /// A type variable that is no word.
    fn is_unsized_variable(&self, ty: Ty) -> bool {
        let head = self.types.head(ty);
        matches!(self.types.get(head), TyKind::Var(_)) && self.types.kind(head) != Kind::Boxed
    }

    /// Whether an object of this type holds, not by a pointer, what is of a type variable that is no word: neither its size is known here
    /// nor where what follows lies.
    pub(super) fn holds_unsized(&mut self, ty: Ty) -> bool {
        self.holds_unsized_below(ty, 32)
    }

    fn holds_unsized_below(&mut self, ty: Ty, depth: u32) -> bool {
        let head = self.types.head(ty);
        match self.types.get(head).clone() {
            TyKind::Var(_) => self.is_unsized_variable(head),
            TyKind::Array(array) => self.holds_unsized_below(array.element, depth),
            TyKind::Tuple(members) if depth > 0 => {
                members.iter().any(|member| self.holds_unsized_below(member.ty, depth - 1))
            }
            TyKind::Aggregate(id, args) if depth > 0 && !args.is_empty() => {
                let count = self.declarations.aggregate(id).body.as_ref().map_or(0, |body| body.fields.len());
                (0..count).any(|index| {
                    let member = self.member_type(head, index).0;
                    self.holds_unsized_below(member, depth - 1)
                })
            }
            _ => false,
        }
    }

    /// Whether it is known where the member at `index` begins: nothing before it is of unknown size, and its own alignment is known or does
    /// not matter.
    pub(super) fn is_member_placed(&mut self, whole: Ty, index: usize) -> bool {
        let head = self.types.head(whole);
        let TyKind::Aggregate(id, args) = self.types.get(head).clone() else { return true };
        let aggregate = self.declarations.aggregate(id);
        let first = if aggregate.is_union { index } else { 0 };
        let offset_is_zero = index == first && !aggregate.is_tagged;
        args.is_empty()
            || (first..index).all(|before| {
                let member = self.member_type(head, before).0;
                !self.holds_unsized(member)
            }) && (offset_is_zero || {
                let member = self.member_type(head, index).0;
                !self.holds_unsized(member)
            })
    }

    /// As [`Self::require_size`], where the number itself is wanted.
    pub(super) fn require_written_size(&mut self, ty: Ty, span: Span) -> bool {
        if let (TyKind::Evar(_), Some(body)) = (self.types.get(ty), &mut self.body) {
            body.pending.push(Pending::Sized(ty, span));
            return true;
        }
        if !self.holds_unsized(ty) {
            return self.require_size(ty, span);
        }
        let shown = self.show(ty);
        let message = format!("the size of `{shown}` is not known here");
        let mut error = Diagnostic::error(Code::Incomplete, span, message);
        if self.is_unsized_variable(ty) {
            error = error.help(format!("take it as a parameter, `Core::sizeof_t<{shown}>`, or make it `{shown}::B`"));
        }
        self.diagnostics.push(error);
        false
    }

    /// Reports a variable or member whose size is not known; gives back whether it is.
    pub(super) fn require_size(&mut self, ty: Ty, span: Span) -> bool {
        let head = self.types.head(ty);
        let incomplete = match self.types.get(head) {
            TyKind::Void => true,
            TyKind::Function(_) => true,
            TyKind::Aggregate(id, _) => self.declarations.aggregate(*id).body.is_none(),
            TyKind::Datatype(..) => true,
            TyKind::Array(array) => return self.require_size(array.element, span),
            _ => false,
        };
        if incomplete {
            let shown = self.show(head);
            let report = Diagnostic::error(Code::Incomplete, span, format!("the size of `{shown}` is not known here"));
            self.diagnostics.push(Diagnostic { help: self.size_advice(head), ..report });
        }
        !incomplete
    }
}

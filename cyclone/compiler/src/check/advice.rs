//! What to write instead: the help lines of messages about types.
//!
//! They answer what C programmers write first. None is part of a rule: where nothing fits, there is none.

use super::Checker;
use super::coerce::{LOST_CONST, NO_TERMINATOR, TOO_EARLY};
use crate::ast::{self, IntSize};
use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Coercion, Expr, ExprKind};
use crate::types::unify::Mismatch;
use crate::types::{Alias, Pointer, Ty, TyKind};

impl Checker<'_> {
    /// What to do about a value that is refused where type `to` is wanted.
    pub(super) fn advice(&self, value: &Expr, to: Ty, why: &Mismatch) -> Option<String> {
        match why.reason {
            NO_TERMINATOR => self.zeroterm_advice(value),
            LOST_CONST => self.const_advice(value, to),
            TOO_EARLY => self.lifetime_advice(value, why),
            _ => self.other_advice(value, to),
        }
    }

    fn zeroterm_advice(&self, value: &Expr) -> Option<String> {
        let place = match &value.kind {
            ExprKind::Coerce(Coercion::Decay, place) => place,
            _ => value,
        };
        let TyKind::Array(array) = self.types.get(place.ty) else { return None };
        let (element, len) = (self.show(array.element), array.len.map_or(String::new(), |len| self.show(len)));
        let name = match &place.kind {
            ExprKind::Local(id) => self.body.as_ref().map(|body| body.locals[id.0 as usize].name),
            ExprKind::Global(id) => Some(self.declarations.global(*id).name),
            _ => None,
        };
        let name = name.map_or("name", |name| name.as_str());
        Some(format!("declare the array `{element} {name}[{len}] @zeroterm`: its last element then stays 0"))
    }

    fn const_advice(&self, value: &Expr, to: Ty) -> Option<String> {
        let shown = self.show(to);
        let TyKind::Pointer(parts) = self.types.get(to) else { return None };
        match self.types.get(parts.target) {
            TyKind::Int(_, IntSize::Char) if is_literal(value) => {
                Some(format!("a literal cannot be changed: write `const {shown}`, or `strdup(..)` for a copy that can"))
            }
            TyKind::Datatype(id, _) if self.declarations.datatype(*id).name.as_str() == "exn" && is_literal(value) => {
                Some("exceptions are values of `datatype exn`: `throw new Core::Failure(\"..\")`".to_owned())
            }
            TyKind::Int(_, IntSize::Char) => Some(format!("write `const {shown}`, if nothing is changed through it")),
            _ => None,
        }
    }

    fn lifetime_advice(&self, value: &Expr, why: &Mismatch) -> Option<String> {
        let (there, to_heap) = match *self.types.get(why.right) {
            TyKind::Heap => ("into the heap".to_owned(), true),
            TyKind::Var(var) if self.types.var(var).shown() != "_" => ("there".to_owned(), false),
            _ => return None,
        };
        let is_callers_choice =
            matches!(self.types.get(why.left), TyKind::Var(var) if self.types.var(*var).shown() == "_");
        match &value.kind {
            ExprKind::Local(id) if is_callers_choice => {
                let local = &self.body.as_ref()?.locals[id.0 as usize];
                let shown = self.show(local.ty);
                let (region, name) = (self.show(why.right), local.name);
                Some(format!("a parameter may point anywhere; ``{shown}{region} {name}`` asks for a pointer {there}"))
            }
            ExprKind::Address(_) | ExprKind::Coerce(Coercion::Decay, _) if to_heap => {
                Some("what is to live longer is allocated: `new ..` in the heap, `rnew(r) ..` in a region".to_owned())
            }
            ExprKind::New(..) | ExprKind::Alloc { .. } if to_heap => {
                Some("`new` and `malloc` put it into the heap, where it lives for ever".to_owned())
            }
            _ => None,
        }
    }

    fn other_advice(&self, value: &Expr, to: Ty) -> Option<String> {
        let target = |ty| match self.types.get(ty) {
            TyKind::Pointer(Pointer { target, .. }) => Some(*target),
            _ => None,
        };
        match (&value.kind, self.types.get(to)) {
            (ExprKind::Construct(..), TyKind::Pointer(_)) => {
                return Some("a constructor's value is allocated: `new` before it".to_owned());
            }
            (ExprKind::Comma(..), TyKind::Tuple(_)) => return Some("a tuple is written `$(.., ..)`".to_owned()),
            _ => {}
        }
        let (from, to) = (target(value.ty)?, target(to)?);
        match (self.types.get(from), self.types.get(to)) {
            (TyKind::Void, TyKind::Void) => None,
            (TyKind::Void, _) => Some(
                "nothing says what a `void *` leads to: make what gives it generic, ``f(`a *p)``, ``struct S<`a>``, with `` `a *`` in its place"
                    .to_owned(),
            ),
            _ if matches!(value.kind, ExprKind::Alloc { .. }) => {
                Some(format!("say of what: `malloc(sizeof({}))`", self.show(to)))
            }
            _ => None,
        }
    }

    /// What to do about a cast that is refused.
    pub(super) fn cast_advice(&self, value: &Expr, from: Ty, to: Ty, why: &Mismatch) -> Option<String> {
        let (TyKind::Pointer(want), have) = (self.types.get(to), self.types.get(from)) else { return None };
        match have {
            TyKind::Pointer(have)
                if have.quals.is_const
                    && !want.quals.is_const
                    && !matches!(self.types.get(have.target), TyKind::Void) =>
            {
                Some(format!("write `const {}`", self.show(to)))
            }
            TyKind::Pointer(have) => {
                self.other_advice(value, to).or_else(|| self.advice(value, to, why)).or_else(|| {
                    let is_aggregate = |ty| matches!(self.types.get(ty), TyKind::Aggregate(..));
                    let both = is_aggregate(have.target) && is_aggregate(want.target);
                    both.then(|| "what may be one of several types is a `datatype` or a `@tagged union`".to_owned())
                })
            }
            _ if self.is_arithmetic(from) => {
                Some("no number becomes a pointer (but 0, as NULL): keep the pointer itself, or an index".to_owned())
            }
            _ => None,
        }
    }

    /// What to do about a type that cannot take the place of a type variable.
    pub(super) fn argument_advice(&self, ty: Ty) -> Option<String> {
        match self.types.get(ty) {
            TyKind::Pointer(parts) if matches!(self.types.get(parts.bound), TyKind::Fat) => {
                let (target, quals) = (self.show(parts.target), if parts.quals.is_const { "const " } else { "" });
                Some(format!("a thin pointer fits: `{quals}{target} *`"))
            }
            TyKind::Pointer(parts) if matches!(self.types.get(parts.aqual), TyKind::Aqual(Alias::Unique)) => {
                Some("`slist.h` has lists that own what is in them".to_owned())
            }
            TyKind::Aggregate(..) | TyKind::Tuple(_) | TyKind::Float(_) => {
                Some(format!("a pointer to it fits: `{} @`", self.show(ty)))
            }
            _ => None,
        }
    }

    /// What to do about a pattern for a datatype's value where there is a pointer to one.
    pub(super) fn pattern_advice(&self, found: Ty, wanted: Ty) -> Option<String> {
        let TyKind::Pointer(parts) = self.types.get(found) else { return None };
        let both = (self.types.get(parts.target), self.types.get(wanted));
        matches!(both, (TyKind::Datatype(a, _), TyKind::Datatype(b, _)) if a == b)
            .then(|| "`&` before it matches what the pointer leads to".to_owned())
    }

    /// What to do about two types that cannot be compared.
    pub(super) fn comparison_advice(&self, left: &Expr, right: &Expr) -> Option<String> {
        let is_character = |value: &Expr| self.is_integral(value.ty);
        let is_either = is_character(left) && is_literal(right) || is_literal(left) && is_character(right);
        is_either.then(|| "a character is written in single quotes: `'x'`".to_owned())
    }

    /// What to do about a type of unknown size.
    pub(super) fn size_advice(&self, ty: Ty) -> Option<String> {
        match self.types.get(ty) {
            TyKind::Datatype(..) => {
                Some(format!("its constructors have different sizes: use a pointer, `{} @`", self.show(ty)))
            }
            TyKind::Aggregate(id, _) => self
                .similar_aggregate(*id)
                .or_else(|| Some("it is declared without members: include what declares them".to_owned())),
            _ => None,
        }
    }

    /// Warns where the size of a pointer is divided by that of an element: in C that counts an array's elements.
    pub(super) fn warn_of_divided_pointer(&mut self, written: &ast::Expr, left: &Expr, right: &Expr) {
        let (ast::ExprKind::SizeOfExpr(_), ExprKind::SizeOf(pointer), ExprKind::SizeOf(element)) =
            (&written.kind, &left.kind, &right.kind)
        else {
            return;
        };
        if let TyKind::Pointer(parts) = self.types.get(*pointer)
            && parts.target == *element
        {
            let message = format!("this divides the size of a pointer, `{}`", self.show(*pointer));
            let fat = matches!(self.types.get(parts.bound), TyKind::Fat);
            let warning = Diagnostic::warning(Code::OutOfBounds, left.span.to(right.span), message);
            let help = match fat {
                true => "`numelts(..)` counts its elements".to_owned(),
                false => self.many_instead(&parts.clone()),
            };
            self.diagnostics.push(warning.help(help));
        }
    }
}

/// A text as written, or one of two.
fn is_literal(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Str(_) => true,
        ExprKind::Coerce(_, inner) => is_literal(inner),
        ExprKind::Conditional(_, yes, no) => is_literal(yes) || is_literal(no),
        _ => false,
    }
}

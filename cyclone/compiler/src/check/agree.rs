//! Several declarations of one variable or function: whether they agree, and what they say together.

use super::Checker;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Global, GlobalId, Linkage};
use crate::types::unify::{Mismatch, unify};
use crate::types::{FnAttributes, Function, Ty, TyKind};
use std::rc::Rc;

impl Checker<'_> {
    pub(super) fn agree_with_global(&mut self, id: GlobalId, mut later: Global) {
        let earlier = self.declarations.global(id);
        let (first, earlier_ty, earlier_quals) = (earlier.span, earlier.ty, earlier.quals);
        if let (TyKind::Function(a), TyKind::Function(b)) =
            (self.types.get(earlier_ty).clone(), self.types.get(later.ty).clone())
        {
            let (mut a, mut b) = (Function::clone(&a), Function::clone(&b));
            let attributes = merged(&a.attributes, &b.attributes);
            if !a.attributes.keeps(&attributes) {
                let message = format!(
                    "`{}` consumes, frees or initialises what its earlier declaration does not say",
                    later.name
                );
                let error = Diagnostic::error(Code::Redeclared, later.span, message);
                self.diagnostics.push(error.with(first, "first declared here").help("give both the same attributes"));
            }
            (a.attributes, b.attributes) = (attributes.clone(), attributes);
            later.ty = self.make(TyKind::Function(Rc::new(b.clone())));
            self.in_order_of_use(&mut a);
            self.in_order_of_use(&mut b);
            let (a, b) = (self.make(TyKind::Function(Rc::new(a))), self.make(TyKind::Function(Rc::new(b))));
            self.report_disagreement(&later, a, b, first);
        } else {
            self.report_disagreement(&later, earlier_ty, later.ty, first);
            // The declaration that says how long an array is counts.
            if matches!(self.types.get(later.ty), TyKind::Array(array) if array.len.is_none()) {
                later.ty = earlier_ty;
            }
        }
        let is_variable = !matches!(self.types.get(later.ty), TyKind::Function(_));
        if is_variable && later.is_defined && !later.attributes.is_empty() {
            let before = &self.declarations.global(id).attributes;
            if later.attributes.iter().any(|attribute| !before.contains(attribute)) {
                let message = format!("`{}` has other attributes in an earlier declaration", later.name);
                let error = Diagnostic::error(Code::Redeclared, later.span, message);
                self.diagnostics.push(error.with(first, "first declared here"));
            }
        }
        if later.linkage == Linkage::Internal && self.declarations.global(id).linkage == Linkage::External {
            let message = format!("`{}` is `static` here and was not before", later.name);
            let error = Diagnostic::error(Code::Redeclared, later.span, message);
            let error = error.with(first, "first declared here").help("make it `static` there, too");
            // What was only declared is this one; what was defined is there for other files.
            let was_defined = is_variable && self.declarations.global(id).is_defined;
            self.diagnostics.push(if was_defined { error } else { error.into_warning() });
        }
        if earlier_quals != later.quals {
            let message = format!("`{}` is declared with other qualifiers before", later.name);
            let error = Diagnostic::error(Code::Redeclared, later.span, message);
            self.diagnostics.push(error.with(first, "first declared here"));
        }
        let global = &mut self.declarations.globals[id.0 as usize];
        global.ty = later.ty;
        global.is_inline |= later.is_inline;
        if later.is_defined {
            global.is_defined = true;
            global.span = later.span;
        }
        if later.linkage != Linkage::External {
            global.linkage = later.linkage;
        }
        global.asm_name = later.asm_name.or(global.asm_name.take());
        global.attributes.extend(later.attributes);
    }

    /// Two prototypes may bind their type parameters in different orders: that of use is the same if they agree.
    fn in_order_of_use(&self, function: &mut crate::types::Function) {
        let mut order = self.types.type_params_in_order(function);
        order.extend(function.type_params.iter().copied().filter(|var| !order.contains(var)).collect::<Vec<_>>());
        function.type_params = order;
    }

    fn report_disagreement(&mut self, later: &Global, earlier: Ty, now: Ty, first: Span) {
        if let Err(Mismatch { left, right, reason }) = self.agree(earlier, now) {
            let (before, now) = (self.show(left), self.show(right));
            let mut message = format!("`{}` is declared with another type before", later.name);
            if !reason.is_empty() {
                message = format!("{message}: {reason}");
            }
            if before != now {
                message = format!("{message} (`{before}` before, `{now}` here)");
            }
            let error = Diagnostic::error(Code::Redeclared, later.span, message);
            self.diagnostics.push(error.with(first, "first declared here"));
        }
    }

    fn agree(&mut self, earlier: Ty, later: Ty) -> Result<(), Mismatch> {
        let before = self.types.snapshot();
        let result = unify(&mut self.types, earlier, later);
        if result.is_err() {
            self.types.rollback(before);
        }
        result
    }
}

/// What two declarations of a function say together.
fn merged(a: &FnAttributes, b: &FnAttributes) -> FnAttributes {
    let mut out = a.clone();
    out.noreturn |= b.noreturn;
    for (into, from) in [
        (&mut out.consume, &b.consume),
        (&mut out.noconsume, &b.noconsume),
        (&mut out.noliveunique, &b.noliveunique),
        (&mut out.initializes, &b.initializes),
    ] {
        into.extend(from);
        into.sort_unstable();
        into.dedup();
    }
    out.format = out.format.or(b.format);
    for other in &b.other {
        if !out.other.contains(other) {
            out.other.push(*other);
        }
    }
    out
}

//! The checks that are left for run time.
//!
//! `cyc --explain-checks` prints them: for each pointer that is followed, what will be tested, and why it could not be shown that the
//! test always succeeds.

use super::value::{Level, Value};
use super::walk;
use crate::hash::HashMap;
use crate::source::Span;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind, Function};

/// A check that is left.
#[derive(Clone, Debug)]
pub struct Remaining {
    /// Of what.
    pub span: Span,
    /// What is tested, and why.
    pub reason: String,
}

/// Why a pointer may be NULL for all that is known, by the address of the expression.
pub(super) type Reasons = HashMap<usize, &'static str>;

/// Why a pointer with this value may be NULL; `is_tracked`: it is in a place of which something could be known.
pub(super) fn reason(value: &Value, is_tracked: bool) -> &'static str {
    match value.bare() {
        Value::Zero => "it is always NULL here",
        Value::Escaped(_) => "it is in a variable whose address is known elsewhere, where it may be changed",
        Value::Unknown(Level::All) if is_tracked => "no test on every way to here shows that it is not",
        _ => "it comes from memory or a call, and has not been tested",
    }
}

/// Adds the checks of a function.
pub(super) fn collect(function: &Function, reasons: &Reasons, out: &mut Vec<Remaining>) {
    walk::expressions(function, &mut |expr| match &expr.kind {
        ExprKind::Deref(pointer, checks) => access(pointer, None, *checks, expr.span, reasons, out),
        ExprKind::Index(pointer, index, checks) => access(pointer, Some(index), *checks, expr.span, reasons, out),
        ExprKind::Coerce(Coercion::NotNull(Check::Needed), pointer) => null(pointer, reasons, out),
        ExprKind::Coerce(Coercion::FatToThin(checks), pointer) => {
            if checks.bounds == Check::Needed {
                let reason = "bounds: a fat pointer becomes a thin one, which must have its elements; how many the fat one has left is not known";
                out.push(Remaining { span: pointer.span, reason: reason.to_owned() });
            } else if checks.null == Check::Needed {
                null(pointer, reasons, out);
            }
        }
        ExprKind::TaggedMember(_, _, Check::Needed) => {
            let reason = "tag: which member was written last is not known";
            out.push(Remaining { span: expr.span, reason: reason.to_owned() });
        }
        _ => {}
    });
}

fn null(pointer: &Expr, reasons: &Reasons, out: &mut Vec<Remaining>) {
    let reason = reasons.get(&(std::ptr::from_ref(pointer) as usize));
    let reason = reason.copied().unwrap_or("no way leads here, for all that is known");
    out.push(Remaining { span: pointer.span, reason: format!("null: the pointer may be NULL: {reason}") });
}

fn access(
    pointer: &Expr,
    index: Option<&Expr>,
    checks: Checks,
    span: Span,
    reasons: &Reasons,
    out: &mut Vec<Remaining>,
) {
    if checks.null == Check::Needed {
        null(pointer, reasons, out);
    }
    if checks.bounds == Check::FirstRound {
        let reason = "bounds: the first round of the loop tests it; what that and the loop's condition say is enough for the others";
        out.push(Remaining { span, reason: reason.to_owned() });
    }
    if checks.bounds == Check::Needed {
        let reason = match index.map(|index| &index.kind) {
            None => "bounds: whether the pointer has elements left is not known",
            Some(ExprKind::Int(_)) => "bounds: how many elements the pointer has left is not known",
            Some(_) => "bounds: it is not known that the index is below the number of elements",
        };
        out.push(Remaining { span, reason: reason.to_owned() });
    }
}

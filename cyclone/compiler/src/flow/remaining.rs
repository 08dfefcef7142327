//! The checks that are left for run time.
//!
//! `cyc --explain-checks` prints them: what will be tested, why it could not be shown that the test always succeeds, and what a
//! programmer can write so that it can. Each check that C has from `lower` is among them; a `throw`, an `@assert` and a `switch` that
//! has no clause for a value are no checks but what the program says.

use super::value::{Level, Value};
use super::walk;
use crate::ast::BinOp;
use crate::hash::HashMap;
use crate::source::Span;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind, Function, Init, Stmt, StmtKind};
use crate::types::{Ty, TyKind, Types};

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
pub(super) fn collect(function: &Function, types: &Types, reasons: &Reasons, out: &mut Vec<Remaining>) {
    let mut collector = Collector { types, reasons, out };
    walk::expressions(function, &mut |expr| collector.expression(expr));
    function.body.statements.iter().for_each(|inner| walk::statements(inner, &mut |inner| collector.statement(inner)));
}

struct Collector<'a> {
    types: &'a Types,
    reasons: &'a Reasons,
    out: &'a mut Vec<Remaining>,
}

/// What a pointer's type says.
#[derive(Clone, Copy)]
struct Leads {
    is_fat: bool,
    is_zeroterm: bool,
}

impl Collector<'_> {
    fn left(&mut self, span: Span, kind: &str, what: &str, remedy: &str) {
        self.out.push(Remaining { span, reason: format!("{kind}: {what}; {remedy}") });
    }

    fn leads(&self, ty: Ty) -> Option<Leads> {
        let TyKind::Pointer(pointer) = self.types.get(ty) else { return None };
        Some(Leads {
            is_fat: matches!(self.types.get(pointer.bound), TyKind::Fat),
            is_zeroterm: matches!(self.types.get(pointer.zeroterm), TyKind::True),
        })
    }

    fn statement(&mut self, statement: &Stmt) {
        if let StmtKind::Let { pattern, may_fail: true, .. } = &statement.kind {
            self.left(
                pattern.span,
                "match",
                "another value does not match the pattern",
                "a `switch` has a clause for it",
            );
        }
    }

    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Deref(pointer, checks) => self.access(pointer, None, *checks, expr.span),
            ExprKind::Index(pointer, index, checks) => self.access(pointer, Some(index), *checks, expr.span),
            ExprKind::Coerce(Coercion::NotNull(Check::Needed), pointer) => self.null(pointer),
            ExprKind::Coerce(Coercion::FatToThin(checks), pointer) => {
                if checks.null == Check::Needed {
                    let what = "the fat pointer may be NULL, and the thin one may not";
                    self.left(pointer.span, "null", what, "a thin type without `@` takes NULL, too");
                }
                if checks.bounds == Check::Needed {
                    let what = "a fat pointer becomes a thin one, which must have its elements; how many the fat one has left is not known";
                    self.left(pointer.span, "bounds", what, "keep it fat (`T ?`), or thin from the beginning");
                }
            }
            ExprKind::TaggedMember(_, _, Check::Needed) => {
                let what = "which member was written last is not known";
                self.left(expr.span, "tag", what, "a `switch` with a clause for each member tests once");
            }
            ExprKind::Assign(op, place, value) => {
                if !(op.is_none() && value.is_zero()) {
                    self.stored(place);
                }
                if op.is_some() {
                    self.moved(place.ty, expr.span);
                }
            }
            ExprKind::Step { place, .. } => {
                self.stored(place);
                self.moved(place.ty, expr.span);
            }
            // The difference of two pointers moves none.
            ExprKind::Binary(BinOp::Add | BinOp::Sub, left, right)
                if self.leads(left.ty).is_none() || self.leads(right.ty).is_none() =>
            {
                self.moved(left.ty, expr.span);
                self.moved(right.ty, expr.span);
            }
            ExprKind::Alloc { count: Some(_), .. } => self.counted(expr.span),
            ExprKind::New(_, init) => {
                // A structure may end in an array of so many elements.
                let last = match &**init {
                    Init::List(list) => list.entries.last().map(|(_, entry)| entry),
                    other => Some(other),
                };
                if let Some(Init::Comprehension(made)) = last
                    && (matches!(**init, Init::Comprehension(_)) || !is_constant(&made.len))
                {
                    self.counted(expr.span);
                }
            }
            _ => {}
        }
    }

    fn null(&mut self, pointer: &Expr) {
        let reason = self.reasons.get(&(std::ptr::from_ref(pointer) as usize));
        let reason = reason.copied().unwrap_or("no way leads here, for all that is known");
        let what = format!("the pointer may be NULL: {reason}");
        self.left(pointer.span, "null", &what, "a test before it, or a type with `@`, which is never NULL");
    }

    fn counted(&mut self, span: Span) {
        let what = "so many elements may be more than memory can have";
        self.left(span, "size", what, "one comparison for an allocation, which always stays");
    }

    /// A zero-terminated thin pointer is moved: over elements that are not the last.
    fn moved(&mut self, ty: Ty, span: Span) {
        if self.leads(ty).is_some_and(|leads| leads.is_zeroterm && !leads.is_fat) {
            let what = "the pointer must not be moved past the zero that ends its elements, which are looked at";
            self.left(span, "bounds", what, "a fat pointer (`T ?`) is moved without");
        }
    }

    /// What is stored through a zero-terminated pointer must not overwrite the zero that ends its elements.
    fn stored(&mut self, place: &Expr) {
        let (pointer, checks) = match &place.kind {
            ExprKind::Coerce(Coercion::Same, inner) => return self.stored(inner),
            ExprKind::Deref(pointer, checks) | ExprKind::Index(pointer, _, checks) => (pointer, checks),
            _ => return,
        };
        if self.leads(pointer.ty).is_some_and(|leads| leads.is_zeroterm) && !checks.has_next {
            let what = "it is not known that another element follows: the zero that ends them must stay";
            let remedy = "a test that the next index is below `numelts` too, or `@nozeroterm` where no zero is needed";
            self.left(place.span, "terminator", what, remedy);
        }
    }

    fn access(&mut self, pointer: &Expr, index: Option<&Expr>, checks: Checks, span: Span) {
        let leads = self.leads(pointer.ty);
        let is_scanned = index.is_some()
            && checks.bounds == Check::Needed
            && leads.is_some_and(|leads| leads.is_zeroterm && !leads.is_fat);
        if is_scanned {
            let what =
                "a zero may end the elements before this one, and the pointer may be NULL: those before are looked at";
            return self.left(span, "bounds", what, "a fat pointer (`T ?`) knows its end");
        }
        if checks.null == Check::Needed {
            self.null(pointer);
        }
        if checks.bounds == Check::FirstRound {
            let what =
                "the first round of the loop tests it; what that and the loop's condition say is enough for the others";
            return self.left(span, "bounds", what, "the same test before the loop takes its place");
        }
        // A zero-terminated one has at least the zero.
        let is_last = index.is_none() && leads.is_some_and(|leads| leads.is_zeroterm && !leads.is_fat);
        if checks.bounds != Check::Needed || is_last {
            return;
        }
        let is_fat = leads.is_some_and(|leads| leads.is_fat);
        let is_followed = matches!(below_same(pointer).kind, ExprKind::Local(_));
        let (what, remedy) = match index.map(|index| &index.kind) {
            _ if is_fat && !is_followed => (
                "the pointer is not in a variable of the function: nothing is known of its elements",
                "copy it to one before it is used several times",
            ),
            None => ("whether the pointer has elements left is not known", "test `numelts(p) > 0` before"),
            Some(ExprKind::Int(_)) => (
                "how many elements the pointer has left is not known",
                "test `numelts` before, or give it the type `T @{n}`",
            ),
            Some(_) if is_fat => (
                "it is not known that the index is below the number of elements",
                "compare it with `numelts(p)` on every way here; one that may wrap around or be negative needs a test of that, too",
            ),
            Some(_) => (
                "it is not known that the index is below the number of elements",
                "compare it with the length on every way here, or take the remainder (`%`) of an unsigned one",
            ),
        };
        self.left(span, "bounds", what, remedy);
    }
}

fn is_constant(number: &Expr) -> bool {
    match &number.kind {
        ExprKind::Coerce(_, inner) => is_constant(inner),
        kind => matches!(kind, ExprKind::Int(_)),
    }
}

fn below_same(pointer: &Expr) -> &Expr {
    match &pointer.kind {
        ExprKind::Coerce(Coercion::Same | Coercion::NotNull(_), inner) => below_same(inner),
        ExprKind::Step { place, .. } => below_same(place),
        ExprKind::Binary(BinOp::Add, base, _) => below_same(base),
        _ => pointer,
    }
}

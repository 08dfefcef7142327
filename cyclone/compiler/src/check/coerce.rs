//! Conversions: which are allowed where, and what they check at run time.
//!
//! A value goes where another type is wanted if the types are equal, if both are numbers, or if it is a pointer that
//! [`Checker::try_coerce`] can bring there: by forgetting something (not null, more elements, `const`, a region that lives longer), by
//! a change of representation (fat and thin), or by a check at run time. Below a pointer nothing may change its
//! representation, and only what is `const` may be forgotten ([`Checker::subtype`]).

use super::{Checker, Loopholes};
use crate::ast::IntSize;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind, Wide};
use crate::types::unify::Mismatch;
use crate::types::{Alias, Function, Kind, Pointer, Substitution, Ty, TyKind};

/// How deep subtyping looks into members of members.
const DEPTH: u32 = 16;

/// Why a pointer to something that may end before the pointer is refused.
pub(super) const TOO_EARLY: &str = "what it points to may end too early";

/// Why a pointer is refused where a zero-terminated one is wanted.
pub(super) const NO_TERMINATOR: &str = "nothing says that it is zero-terminated";

/// Why a pointer to constants is refused.
pub(super) const LOST_CONST: &str = "`const` would be lost";

/// Why a pointer to too few elements is refused.
const TOO_FEW: &str = "there may not be so many elements";

/// Why a pointer to a zero-terminated sequence is refused where the sequence's last element could be overwritten.
const TERMINATOR: &str = "the zero that ends it could be overwritten";

/// What to do instead.
const KEEP_TERMINATOR: &str = "keep `@zeroterm`, ask for `const` or for fewer elements, or pass a fat pointer (`?`), which then ends before the zero";

/// What must be done to a pointer value to convert it.
struct Steps {
    /// In order.
    coercions: Vec<Coercion>,
    /// The result can overwrite what ends a zero-terminated sequence.
    exposes_terminator: bool,
}

/// A value that could not be converted, and why.
pub type Refusal = Box<(Expr, Mismatch)>;

impl Checker<'_> {
    /// The value as type `to`. Reports at `span` if that cannot be.
    pub fn coerce(&mut self, value: Expr, to: Ty, span: Span) -> Expr {
        let was_pointer = matches!(self.types.get(self.types.head(value.ty)), TyKind::Pointer(_));
        match self.try_coerce(value, to) {
            Ok(value) => {
                if was_pointer && let ExprKind::Coerce(Coercion::PointerToInt, pointer) = &value.kind {
                    let shown = self.show(pointer.ty);
                    let message = format!("a pointer (`{shown}`) becomes a number here without a cast");
                    self.warn(Code::WrongType, span, message);
                }
                value
            }
            Err(refusal) => {
                let (value, why) = *refusal;
                self.refuse(&value, to, why, span);
                Expr { kind: ExprKind::Error, ty: to, span }
            }
        }
    }

    /// Reports that a value cannot have type `to`.
    fn refuse(&mut self, value: &Expr, to: Ty, why: Mismatch, span: Span) {
        if let Some(report) = self.unfit_argument(&why, span) {
            self.diagnostics.push(report);
            return;
        }
        let (have, want) = (self.show(value.ty), self.show(to));
        let mut message = if have == want {
            format!("a value of type `{have}` does not fit here")
        } else {
            format!("expected a value of type `{want}`, found `{have}`")
        };
        if !why.reason.is_empty() {
            message = format!("{message}: {}", why.reason);
        }
        let code = match why.reason {
            TOO_EARLY => Code::Escapes,
            TERMINATOR => Code::ZeroTerminated,
            _ => Code::WrongType,
        };
        let mut report = Diagnostic::error(code, span, message);
        if code == Code::ZeroTerminated {
            self.loophole(report.help(KEEP_TERMINATOR));
            return;
        }
        if code == Code::Escapes {
            report = self.with_extents(report, why.left);
        }
        let (left, right) = (self.show(why.left), self.show(why.right));
        if let Some(help) = self.advice(value, to, &why) {
            report = report.help(help);
        } else if why.reason.is_empty() && (left != have || right != want) {
            report = report.help(format!("`{left}` and `{right}` differ"));
        }
        self.diagnostics.push(report);
    }

    /// The report of a type that cannot take the place of a generic function's parameter, if that is what went wrong.
    fn unfit_argument(&self, why: &Mismatch, span: Span) -> Option<Diagnostic> {
        if why.reason.is_empty() {
            return None;
        }
        let parameter = |ty| match *self.types.get(ty) {
            TyKind::Evar(evar) => self.types.evar_stands_for(evar),
            _ => None,
        };
        let (parameter, other) = match (parameter(why.left), parameter(why.right)) {
            (Some(parameter), _) => (parameter, why.right),
            (None, Some(parameter)) => (parameter, why.left),
            (None, None) => return None,
        };
        let info = self.types.var(parameter);
        let message = format!("`{}` cannot take the place of `{}`: {}", self.show(other), info.shown(), why.reason);
        let report = Diagnostic::error(Code::WrongKind, span, message);
        let help = self.argument_advice(other);
        let report = report.with(info.span, format!("`{}` is a parameter of what is called here", info.shown()));
        Some(Diagnostic { help, ..report })
    }

    /// The value as type `to`, if it can be converted without a cast.
    pub fn try_coerce(&mut self, value: Expr, to: Ty) -> Result<Expr, Refusal> {
        let (from, to) = (self.types.head(value.ty), self.types.head(to));
        if from == to {
            return Ok(value);
        }
        if let (TyKind::Pointer(a), TyKind::Pointer(b)) = (self.types.get(from), self.types.get(to)) {
            let (a, b) = (a.clone(), b.clone());
            return self.coerce_pointer(value, &a, &b, to);
        }
        let target = self.types.get(to).clone();
        let source = self.types.get(from).clone();
        match (source, target) {
            (TyKind::Error, _) | (_, TyKind::Error) => Ok(Expr { ty: to, ..value }),
            (TyKind::Subset(a, _), TyKind::Subset(b, _)) if a == b && self.try_unify(from, to).is_ok() => {
                Ok(Expr { ty: to, ..value })
            }
            (TyKind::Subset(..), _) => {
                let value = self.unconstrained(value);
                self.try_coerce(value, to)
            }
            (_, TyKind::Subset(..)) => self.constrained(value, to),
            (TyKind::Int(_, IntSize::Char | IntSize::Short), TyKind::Evar(evar))
                if self.types.evar_kind(evar) == Kind::Boxed =>
            {
                let int = self.int();
                let value = self.number_to(value, int);
                self.unified(value, to)
            }
            (TyKind::Evar(_), _) | (_, TyKind::Evar(_)) => self.unified(value, to),
            (_, TyKind::TagHandle(number)) => self.tag_from(value, number, to),
            (_, TyKind::Pointer(pointer)) if is_zero(&value) => {
                let yes = self.truth(true);
                match self.try_unify(pointer.nullable, yes) {
                    Ok(()) => Ok(Expr { kind: ExprKind::Null, ty: to, span: value.span }),
                    Err(_) => refused(value, from, to, "NULL is not a value of this type"),
                }
            }
            (_, TyKind::Void) => Ok(wrap(Coercion::ToVoid, value, to)),
            _ if self.is_arithmetic(from) && self.is_arithmetic(to) => Ok(self.number_to(value, to)),
            (TyKind::Pointer(_) | TyKind::Var(_) | TyKind::RegionHandle(_), TyKind::Int(_, size))
                if matches!(size, IntSize::Int | IntSize::Long) && self.types.kind(from) == Kind::Boxed =>
            {
                Ok(wrap(Coercion::PointerToInt, value, to))
            }
            (TyKind::RegionHandle(a), TyKind::RegionHandle(b)) => match self.handle_fits(a, b) {
                true => Ok(wrap(Coercion::Same, value, to)),
                false if self.split_region(a).1.is_some() => {
                    refused(value, from, to, "pointers into this region may not be copied freely")
                }
                false => refused(value, from, to, "the region may end before the other"),
            },
            _ if self.subtype(from, to) => Ok(wrap(Coercion::Same, value, to)),
            _ => self.unified(value, to),
        }
    }

    fn unified(&mut self, value: Expr, to: Ty) -> Result<Expr, Refusal> {
        match self.try_unify(value.ty, to) {
            Ok(()) => Ok(Expr { ty: to, ..value }),
            Err(why) => Err(Box::new((value, why))),
        }
    }

    /// A constant is a tag of its own number; another tag must be of the same one.
    fn tag_from(&mut self, value: Expr, number: Ty, to: Ty) -> Result<Expr, Refusal> {
        let have = match (self.types.get(value.ty).clone(), &value.kind) {
            (TyKind::TagHandle(have), _) => have,
            (_, ExprKind::SizeOf(_)) | (TyKind::Int(..), _) => match self.constant(&value) {
                Some(constant) if constant >= 0 => self.make(TyKind::Nat(constant as u64)),
                _ => return refused(value, to, to, "a tag must be a constant, or another tag"),
            },
            _ => return self.unified(value, to),
        };
        match self.try_unify(have, number) {
            Ok(()) if matches!(self.types.get(value.ty), TyKind::TagHandle(_)) => Ok(Expr { ty: to, ..value }),
            Ok(()) => Ok(wrap(Coercion::IntToTag, value, to)),
            Err(why) => Err(Box::new((value, why))),
        }
    }

    /// Whether what may point into region `from` may be said to point into `to`.
    pub fn region_fits(&mut self, from: Ty, to: Ty) -> bool {
        if self.try_unify(from, to).is_ok() || self.effect_included(from, to) {
            return true;
        }
        // What is missing may be what an unknown part of the wider set stands for.
        let wide = self.types.effect_parts(to);
        let Some(&unknown) = wide.iter().find(|&&part| matches!(self.types.get(part), TyKind::Evar(_))) else {
            return false;
        };
        let mut missing = self.types.effect_parts(from);
        missing.retain(|&part| !wide.contains(&part) && !self.effect_included(part, to));
        let missing = self.types.join(missing);
        self.try_unify(unknown, missing).is_ok()
    }

    fn coerce_pointer(&mut self, value: Expr, from: &Pointer, to: &Pointer, ty: Ty) -> Result<Expr, Refusal> {
        let before = self.types.snapshot();
        let from = &self.without_lost_const(&value, from, to);
        match self.pointer_steps(from, to) {
            Ok(steps) => {
                if steps.exposes_terminator {
                    let (have, want) = (self.show(value.ty), self.show(ty));
                    let message = format!("`{have}` becomes `{want}`: {TERMINATOR}");
                    self.loophole(Diagnostic::error(Code::ZeroTerminated, value.span, message));
                }
                self.warn_of_lost_elements(&value, from, to, ty);
                Ok(self.take_steps(value, from, to, ty, &steps.coercions))
            }
            Err((left, right, reason)) => {
                self.types.rollback(before);
                refused(value, left, right, reason)
            }
        }
    }

    /// Many elements are allocated, and the pointer that is kept leads to the first.
    fn warn_of_lost_elements(&mut self, value: &Expr, from: &Pointer, to: &Pointer, ty: Ty) {
        let is_allocated = matches!(value.kind, ExprKind::Alloc { count: Some(_), .. });
        if is_allocated && self.leads_to_one(to) && !self.leads_to_one(from) {
            let shown = self.show(ty);
            let message =
                format!("a `{shown}` leads to one element: only the first of those allocated here can be used");
            let warning = Diagnostic::warning(Code::OutOfBounds, value.span, message);
            self.diagnostics.push(warning.help(self.many_instead(to)));
        }
    }

    /// What must be done to a pointer value.
    fn pointer_steps(&mut self, from: &Pointer, to: &Pointer) -> Result<Steps, (Ty, Ty, &'static str)> {
        if from.quals.is_const && !to.quals.is_const {
            return Err((from.target, to.target, LOST_CONST));
        }
        let mut steps = Vec::new();
        let adds_null_check = self.try_unify(from.nullable, to.nullable).is_err() && self.is_true(from.nullable);
        let drops_zero = self.try_unify(from.zeroterm, to.zeroterm).is_err();
        if drops_zero && !self.is_true(from.zeroterm) {
            return Err((from.target, to.target, NO_TERMINATOR));
        }
        if self.try_unify(from.autoreleased, to.autoreleased).is_err() && self.is_true(to.autoreleased) {
            return Err((from.target, to.target, "it is not autoreleased"));
        }
        if !self.alias_fits(from.aqual, to.aqual) {
            return Err((from.aqual, to.aqual, "alias qualifiers differ"));
        }
        // What lives longer will do for a pointer that frees nothing. (The original asks for the same regions.)
        let is_aliasable = matches!(self.types.get(to.aqual), TyKind::Aqual(Alias::Aliasable));
        let lives = self.region_fits(from.region, to.region) || is_aliasable && self.outlives(from.region, to.region);
        if !lives {
            return Err((from.region, to.region, TOO_EARLY));
        }
        match (self.types.get(from.bound).clone(), self.types.get(to.bound).clone()) {
            (TyKind::Fat, TyKind::Fat) => {
                if drops_zero && !to.quals.is_const {
                    steps.push(Coercion::HideZero);
                }
            }
            (TyKind::Thin(_), TyKind::Fat) => {
                steps.push(if self.is_true(from.zeroterm) { Coercion::ScanToFat } else { Coercion::ThinToFat });
                if drops_zero && !to.quals.is_const {
                    steps.push(Coercion::HideZero);
                }
            }
            (TyKind::Fat, TyKind::Thin(count)) => {
                let few = matches!(self.types.get(count), TyKind::Nat(0 | 1));
                if !few && matches!(self.types.get(to.target), TyKind::Evar(_)) {
                    // A wildcard: what does not agree is found below.
                    let _ = self.try_unify(to.target, from.target);
                }
                if !few && self.types.kind(to.target) == Kind::Any {
                    return Err((from.bound, to.bound, "elements of unknown size cannot be counted"));
                }
                let null = if self.is_false(to.nullable) { Check::Needed } else { Check::Never };
                steps.push(Coercion::FatToThin(Checks { null, bounds: Check::Needed, ..Checks::NONE }));
            }
            (TyKind::Thin(a), TyKind::Thin(b)) => {
                let enough = match (self.types.get(a), self.types.get(b)) {
                    (TyKind::Nat(a), TyKind::Nat(b)) => a >= b,
                    (_, TyKind::Nat(0)) => true,
                    _ => self.try_unify(a, b).is_ok(),
                };
                if !enough {
                    return Err((from.bound, to.bound, TOO_FEW));
                }
            }
            _ => {
                if self.try_unify(from.bound, to.bound).is_err() {
                    return Err((from.bound, to.bound, "bounds differ"));
                }
            }
        }
        if adds_null_check && !steps.iter().any(|step| matches!(step, Coercion::FatToThin(_))) {
            let fat = matches!(self.types.get(to.bound), TyKind::Fat);
            if !fat {
                steps.push(Coercion::NotNull(Check::Needed));
            }
        }
        self.targets_fit(from, to, true)?;
        let exposes_terminator = drops_zero && self.may_reach_terminator(from, to);
        if exposes_terminator && self.rules.loopholes == Loopholes::Closed {
            return Err((from.zeroterm, to.zeroterm, TERMINATOR));
        }
        Ok(Steps { coercions: steps, exposes_terminator })
    }

    /// Whether what ends a zero-terminated sequence may be written to through the second pointer, which does not know of it: the
    /// last one of the first pointer's elements may be that. Fat pointers are made to end before it.
    fn may_reach_terminator(&self, from: &Pointer, to: &Pointer) -> bool {
        if to.quals.is_const || matches!(self.types.get(to.target), TyKind::Void) {
            return false;
        }
        let (TyKind::Thin(have), TyKind::Thin(want)) = (self.types.get(from.bound), self.types.get(to.bound)) else {
            return false;
        };
        match (self.types.get(*have), self.types.get(*want)) {
            (_, TyKind::Nat(0)) => false,
            (TyKind::Nat(have), TyKind::Nat(want)) => have <= want,
            _ => true,
        }
    }

    /// Whether what is pointed to may be seen as what `to` points to.
    fn targets_fit(&mut self, from: &Pointer, to: &Pointer, characters: bool) -> Result<(), (Ty, Ty, &'static str)> {
        let why = match self.try_unify(from.target, to.target) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        if self.same_bits(from.target, to.target) || self.function_targets(from.target, to.target, DEPTH) {
            return Ok(());
        }
        let to_zeroterm = self.is_true(to.zeroterm);
        if characters
            && !to_zeroterm
            && matches!(self.types.get(to.target), TyKind::Int(_, IntSize::Char))
            && self.is_bits_only(from.target)
        {
            return Ok(());
        }
        let one = matches!(self.types.get(to.bound), TyKind::Thin(count) if matches!(self.types.get(*count), TyKind::Nat(0 | 1) | TyKind::Evar(_)));
        if one && !to_zeroterm && self.prefix_fits(from, to, DEPTH) {
            return Ok(());
        }
        Err((why.left, why.right, why.reason))
    }

    /// Integers of the same width.
    pub(super) fn same_bits(&self, a: Ty, b: Ty) -> bool {
        match (self.types.get(a), self.types.get(b)) {
            (TyKind::Int(_, a), TyKind::Int(_, b)) => super::numbers::int_bits(*a) == super::numbers::int_bits(*b),
            _ => false,
        }
    }

    /// Whether a pointer qualified by `from` may become one qualified by `to`: the pointer itself is consumed by it.
    fn alias_fits(&mut self, from: Ty, to: Ty) -> bool {
        if self.try_unify(from, to).is_ok() {
            return true;
        }
        match self.types.get(to) {
            TyKind::Aqual(Alias::Restricted | Alias::Aliasable) => true,
            TyKind::Aqual(to) => {
                self.types.alias_bound(from) == *to && matches!(self.types.get(from), TyKind::Aqual(_))
            }
            _ => false,
        }
    }

    /// Whether every value of type `from` is one of type `to` without any change. May bind inference variables.
    pub fn subtype(&mut self, from: Ty, to: Ty) -> bool {
        self.subtype_below(from, to, DEPTH)
    }

    pub(super) fn subtype_below(&mut self, from: Ty, to: Ty, depth: u32) -> bool {
        if self.try_unify(from, to).is_ok() {
            return true;
        }
        if depth == 0 {
            return false;
        }
        let before = self.types.snapshot();
        let holds = match (self.types.get(from).clone(), self.types.get(to).clone()) {
            (TyKind::Pointer(a), TyKind::Pointer(b)) => self.pointer_subtype(&a, &b, depth - 1),
            (TyKind::Pointer(a), TyKind::Evar(_)) => self.lent_as_unknown(&a, to),
            (TyKind::Function(a), TyKind::Function(b)) => self.function_subtype(&a, &b, depth - 1),
            (TyKind::Enum(_), TyKind::Enum(_)) => false,
            (TyKind::RegionHandle(a), TyKind::RegionHandle(b)) => self.handle_fits(a, b),
            _ => false,
        };
        if !holds {
            self.types.rollback(before);
        }
        holds
    }

    fn pointer_subtype(&mut self, a: &Pointer, b: &Pointer, depth: u32) -> bool {
        let bounds = match (self.types.get(a.bound).clone(), self.types.get(b.bound).clone()) {
            (TyKind::Thin(a), TyKind::Thin(b)) => match (self.types.get(a), self.types.get(b)) {
                (TyKind::Nat(a), TyKind::Nat(b)) => a >= b,
                _ => self.try_unify(a, b).is_ok(),
            },
            _ => self.try_unify(a.bound, b.bound).is_ok(),
        };
        let fat = matches!(self.types.get(b.bound), TyKind::Fat);
        bounds
            && (!a.quals.is_const || b.quals.is_const)
            && (self.try_unify(a.nullable, b.nullable).is_ok() || self.is_false(a.nullable))
            && (self.try_unify(a.zeroterm, b.zeroterm).is_ok()
                || self.is_true(a.zeroterm) && !fat && !self.may_reach_terminator(a, b))
            && (self.try_unify(a.autoreleased, b.autoreleased).is_ok() || self.is_true(a.autoreleased))
            && (self.lent_below(a, b)
                || (self.try_unify(a.aqual, b.aqual).is_ok()
                    || matches!(self.types.get(b.aqual), TyKind::Aqual(Alias::Restricted)))
                    && self.region_fits(a.region, b.region))
            && (self.try_unify(a.target, b.target).is_ok()
                || self.same_bits(a.target, b.target)
                || self.function_targets(a.target, b.target, depth)
                || self.prefix_fits(a, b, depth))
    }

    fn function_targets(&mut self, a: Ty, b: Ty, depth: u32) -> bool {
        matches!((self.types.get(a), self.types.get(b)), (TyKind::Function(_), TyKind::Function(_)))
            && self.subtype_below(a, b, depth)
    }

    /// Parameters the other way round, effects included, nothing promised that is not kept.
    fn function_subtype(&mut self, a: &Function, b: &Function, depth: u32) -> bool {
        if a.type_params.len() != b.type_params.len()
            || a.params.len() != b.params.len()
            || a.c_varargs != b.c_varargs
            || !a.attributes.keeps(&b.attributes)
            || b.attributes.noreturn && !a.attributes.noreturn
        {
            return false;
        }
        let mut map = Substitution::default();
        for (&ours, &theirs) in a.type_params.iter().zip(&b.type_params) {
            if self.types.var(ours).kind != self.types.var(theirs).kind
                || self.types.is_place(ours) != self.types.is_place(theirs)
            {
                return false;
            }
            map.insert(theirs, self.make(TyKind::Var(ours)));
        }
        for (ours, theirs) in a.params.iter().zip(&b.params) {
            let theirs = self.types.substitute(theirs.ty, &map);
            if !self.subtype_below(theirs, ours.ty, depth) {
                return false;
            }
        }
        match (&a.varargs, &b.varargs) {
            (Some(ours), Some(theirs)) => {
                let theirs_ty = self.types.substitute(theirs.ty, &map);
                if ours.inject != theirs.inject || self.try_unify(ours.ty, theirs_ty).is_err() {
                    return false;
                }
            }
            (None, None) => {}
            _ => return false,
        }
        let result = self.types.substitute(b.result, &map);
        let effect = self.types.substitute(b.effect, &map);
        self.subtype_below(a.result, result, depth) && self.region_fits(a.effect, effect)
    }

    fn take_steps(&mut self, value: Expr, from: &Pointer, to: &Pointer, ty: Ty, steps: &[Coercion]) -> Expr {
        let mut value = value;
        let before = value.ty;
        for (index, &step) in steps.iter().enumerate() {
            // An array ends with its zero; behind the elements that another type promises there may be more.
            let step = match step {
                Coercion::ScanToFat if self.is_whole_array(&value, from) => Coercion::ThinToFat,
                step => step,
            };
            // The number of elements is counted in those of the source.
            let keeps_target = matches!(step, Coercion::ThinToFat | Coercion::ScanToFat);
            let last = index + 1 == steps.len();
            let step_ty = if last && (!keeps_target || self.types.head(from.target) == self.types.head(to.target)) {
                ty
            } else {
                let mut middle = to.clone();
                if keeps_target {
                    middle.target = from.target;
                    middle.zeroterm = from.zeroterm;
                }
                self.make(TyKind::Pointer(middle))
            };
            value = wrap(step, value, step_ty);
        }
        if self.types.head(value.ty) == ty {
            return value;
        }
        if steps.is_empty() && self.try_unify(before, ty).is_ok() {
            return Expr { ty, ..value };
        }
        wrap(Coercion::Same, value, ty)
    }

    /// Whether a pointer of this type leads to an array that ends where the type says.
    fn is_whole_array(&self, value: &Expr, parts: &Pointer) -> bool {
        match &value.kind {
            ExprKind::Coerce(Coercion::Decay, _) => {
                matches!(self.types.get(value.ty), TyKind::Pointer(array) if self.types.get(array.bound) == self.types.get(parts.bound))
            }
            ExprKind::Coerce(Coercion::Same, inner) => self.is_whole_array(inner, parts),
            _ => false,
        }
    }

    /// `(T)e`: what an implicit conversion does, and every conversion between numbers and from pointers to numbers.
    pub fn cast(&mut self, value: Expr, to: Ty, span: Span) -> Expr {
        let value = match self.try_coerce(value, to) {
            Ok(value) => return value,
            Err(refusal) => *refusal,
        };
        let (value, why) = value;
        let from = self.types.head(value.ty);
        if matches!(self.types.get(from), TyKind::Pointer(_)) && self.is_integral(to) {
            return wrap(Coercion::PointerToInt, value, to);
        }
        let (have, want) = (self.show(from), self.show(to));
        let mut message = format!("cannot cast `{have}` to `{want}`");
        if !why.reason.is_empty() {
            message = format!("{message}: {}", why.reason);
        }
        if why.reason == TERMINATOR {
            self.loophole(Diagnostic::error(Code::ZeroTerminated, span, message).help(KEEP_TERMINATOR));
            return Expr::error(&mut self.types, span);
        }
        let mut report = Diagnostic::error(Code::BadCast, span, message);
        report.help = self.cast_advice(&value, from, to, &why);
        self.wrong_as(report)
    }

    /// Whether any bits are a value of the type: it holds no pointers.
    pub fn is_bits_only(&mut self, ty: Ty) -> bool {
        match self.types.get(ty).clone() {
            TyKind::Void | TyKind::Bool | TyKind::Int(..) | TyKind::Float(_) | TyKind::Complex(_) => true,
            TyKind::Enum(_) | TyKind::Error => true,
            TyKind::Subset(_, base) => self.is_bits_only(base),
            TyKind::Array(array) => !self.is_true(array.zeroterm) && self.is_bits_only(array.element),
            TyKind::Tuple(members) => members.iter().all(|member| self.is_bits_only(member.ty)),
            TyKind::Aggregate(id, _) => {
                let aggregate = self.declarations.aggregate(id);
                let Some(body) = &aggregate.body else { return false };
                if !body.existentials.is_empty() || aggregate.is_tagged {
                    return false;
                }
                let count = body.fields.len();
                (0..count).all(|index| {
                    let (ty, _) = self.member_type(ty, index);
                    self.is_bits_only(ty)
                })
            }
            _ => false,
        }
    }
}

fn refused<T>(value: Expr, left: Ty, right: Ty, reason: &'static str) -> Result<T, Refusal> {
    Err(Box::new((value, Mismatch { left, right, reason })))
}

/// A conversion around a value.
pub fn wrap(coercion: Coercion, value: Expr, ty: Ty) -> Expr {
    let span = value.span;
    Expr { kind: ExprKind::Coerce(coercion, Box::new(value)), ty, span }
}

/// The constant 0, also converted.
pub fn is_zero(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Int(Wide(0)) => true,
        ExprKind::Coerce(Coercion::Number, inner) => is_zero(inner),
        _ => false,
    }
}

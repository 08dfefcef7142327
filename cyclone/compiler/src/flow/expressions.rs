//! Expressions: the values they have, the places they name, and what they consume.

use super::calls::path_type;
use super::shape::Leaf;
use super::value::{Level, Place, Root, Step, Value};
use super::walk::has_effect;
use super::{Analysis, remaining};
use crate::ast::{BinOp, IntSize};
use crate::check::Loopholes;
use crate::diagnostics::{Code, Diagnostic};
use crate::ownership::owner_around;
use crate::source::Span;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind, LocalId, StmtKind, UnaryOp, Wide};
use crate::types::{Ty, TyKind};
use std::rc::Rc;

/// What is done with the value of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is looked at: compared, followed, thrown away.
    Look,
    /// It is stored somewhere: what it owns is consumed where it comes from.
    Copy,
    /// It is aliased for a scope.
    Alias,
}

impl Analysis<'_, '_> {
    /// The value of an expression.
    pub(super) fn value(&mut self, expr: &mut Expr, used: Use) -> Value {
        if self.state.is_none() {
            return Value::Unknown(Level::All);
        }
        if used != Use::Look
            && is_local_path(expr)
            && self.shapes.is_owned(expr.ty)
            && let Some(taken) = self.take(expr, used)
        {
            return taken;
        }
        let ty = expr.ty;
        match &mut expr.kind {
            ExprKind::Error => {
                // It has been reported; nothing sensible can be said of what follows.
                self.state = None;
                Value::Unknown(Level::All)
            }
            ExprKind::Int(Wide(0)) | ExprKind::Null => Value::Zero,
            ExprKind::Int(_) | ExprKind::Str(_) | ExprKind::WideStr(_) => Value::NonZero,
            ExprKind::Local(local) => self.variable(*local, ty),
            ExprKind::Global(_) => match self.shapes.types.get(ty) {
                TyKind::Function(_) => Value::NonZero,
                _ => self.shapes.of(ty, Leaf::Anything),
            },
            ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, ..) | ExprKind::Unary(UnaryOp::Not, _) => {
                let (yes, no) = self.condition(expr);
                self.state = yes;
                self.merge(no);
                Value::Unknown(Level::All)
            }
            ExprKind::Unary(_, inner) => {
                self.number(inner);
                Value::Unknown(Level::All)
            }
            ExprKind::Binary(_, left, right) => {
                self.number(left);
                self.number(right);
                Value::Unknown(Level::All)
            }
            ExprKind::Assign(op, place, value) => {
                let (place, value) = (&mut **place, &mut **value);
                match op {
                    None => self.assignment(place, value, ty, used, expr.span),
                    Some(_) => self.update(place, value),
                }
            }
            ExprKind::Step { place, .. } => self.step(place),
            ExprKind::Swap(left, right) => self.swap(left, right),
            ExprKind::Conditional(test, then, other) => {
                let (yes, no) = self.condition(test);
                self.state = yes;
                let then_value = self.value(then, used);
                let after_then = self.state.take();
                self.state = no;
                let other_value = self.value(other, used);
                self.join_with_value(after_then, then_value, other_value)
            }
            ExprKind::Comma(first, last) => {
                self.value(first, Use::Look);
                self.value(last, used)
            }
            ExprKind::Call(call) => self.call(call, ty),
            ExprKind::Deref(pointer, checks) => self.follow(pointer, checks, None).1,
            ExprKind::Index(pointer, index, checks) => self.follow(pointer, checks, Some(index)).1,
            ExprKind::Member(inner, member) => {
                let member = *member as u32;
                let value = self.value(inner, Use::Look);
                self.member(&value, inner.ty, member, ty)
            }
            ExprKind::TaggedMember(inner, member, check) => {
                let member = *member as u32;
                let value = self.value(inner, Use::Look);
                if let Value::Parts(parts) = value.bare() {
                    *check = if parts.last == Some(member) { Check::Proved } else { Check::Needed };
                }
                match self.member(&value, inner.ty, member, ty) {
                    // The check throws if another member was written last.
                    value if self.level(&value) == Level::All || value.consumed_at().is_some() => value,
                    _ => self.shapes.of(ty, Leaf::Anything),
                }
            }
            ExprKind::Address(inner) => self.address(inner),
            ExprKind::TagCheck(inner, member) => {
                let member = *member as u32;
                match self.value(inner, Use::Look).bare() {
                    Value::Parts(parts) if parts.last == Some(member) => Value::NonZero,
                    Value::Parts(parts) if parts.last.is_some() => Value::Zero,
                    _ => Value::Unknown(Level::All),
                }
            }
            ExprKind::Coerce(coercion, inner) => {
                let mut coercion_now = *coercion;
                let value = self.coerced(&mut coercion_now, inner, ty, used);
                *coercion = coercion_now;
                value
            }
            ExprKind::Instantiate(function, _) => self.value(function, used),
            ExprKind::Aggregate(init) => self.initial(init, ty),
            ExprKind::Construct(_, _, args) => {
                let members = args.iter_mut().map(|arg| self.value(arg, Use::Copy)).collect::<Vec<_>>();
                match members.is_empty() {
                    true => Value::NonZero,
                    false => Value::Parts(Rc::new(super::value::Parts { is_union: false, last: None, members })),
                }
            }
            ExprKind::Throw(exception) => {
                let value = self.value(exception, Use::Copy);
                self.release(&value, exception.span);
                self.state = None;
                Value::Unknown(Level::All)
            }
            ExprKind::New(place, init) => {
                let root = self.site(&**init);
                self.allocation(place);
                let target = self.shapes.target(ty).unwrap_or(ty);
                let contents = self.initial(init, target);
                self.allocated(root, contents, ty)
            }
            ExprKind::Alloc { .. } => self.memory(expr),
            ExprKind::TagOf(inner) => {
                self.value(inner, Use::Look);
                Value::NonZero
            }
            ExprKind::Numelts(inner) => {
                self.number(inner);
                Value::Unknown(Level::All)
            }
            ExprKind::Asm(asm) => {
                for (_, input) in &mut asm.inputs {
                    self.number(input);
                }
                for (_, output) in &mut asm.outputs {
                    if let Some(place) = self.place(output, Use::Look) {
                        self.assign(&place, &Value::Unknown(Level::All), output.span);
                    }
                }
                Value::Unknown(Level::All)
            }
            ExprKind::Assert(_, test) => {
                self.state = self.condition(test).0;
                Value::NonZero
            }
            ExprKind::Statements(block) => {
                let outer = self.give_backs.len();
                let mut result = Value::Unknown(Level::All);
                if let Some((last, rest)) = block.statements.split_last_mut() {
                    for statement in rest {
                        self.statement(statement);
                    }
                    match &mut last.kind {
                        StmtKind::Expr(last) => result = self.value(last, used),
                        _ => self.statement(last),
                    }
                }
                self.give_back_to(outer);
                result
            }
            ExprKind::InferredAlias { value, .. } => {
                let lent = self.value(value, Use::Alias);
                if let Some(place) = self.taken.take() {
                    self.lent.push((place, path_type(value)));
                }
                lent
            }
            ExprKind::Builtin(_, operands, _) => {
                for operand in operands {
                    self.value(operand, Use::Look);
                }
                self.shapes.of(ty, Leaf::Anything)
            }
            ExprKind::Float(_)
            | ExprKind::SizeOf(_)
            | ExprKind::OffsetOf(..)
            | ExprKind::ValueOf(_)
            | ExprKind::Handle(_) => Value::Unknown(Level::All),
        }
    }

    fn variable(&mut self, local: LocalId, ty: Ty) -> Value {
        let known = self.state.as_ref().and_then(|state| state.root(local.0)).cloned();
        match known {
            Some(value) if !self.locals[local.0 as usize].is_static => value,
            _ => self.shapes.of(ty, Leaf::Anything),
        }
    }

    /// Copies an owned value out of a place, which is consumed. `None` where the place is not tracked.
    fn take(&mut self, expr: &mut Expr, used: Use) -> Option<Value> {
        let place = self.place(expr, Use::Copy)?;
        let old = self.at(&place)?;
        if used == Use::Alias
            && let Value::Consumed(consumed) = old.bare()
            && self.lent.iter().any(|(lent, _)| *lent == place)
            && self.shapes.target(expr.ty).is_some_and(|target| !self.shapes.is_owned(target))
        {
            // It is lent twice: neither alias can free the object, and nothing in it can be freed by one and aliased by the other.
            return Some(consumed.old.clone());
        }
        if let Some(at) = old.consumed_at() {
            self.report(
                Diagnostic::error(Code::Consumed, expr.span, "an owned pointer is used after it was consumed")
                    .with(at, "consumed here"),
            );
            self.state = None;
            return Some(Value::Unknown(Level::All));
        }
        let left = self.shapes.consumed(expr.ty, &old, expr.span, used == Use::Alias);
        self.learn_consumed(&place, left, used);
        self.taken = Some(place);
        Some(old)
    }

    /// An alias gives back what it consumes also when an exception ends it, so that handlers never see it.
    fn learn_consumed(&mut self, place: &Place, left: Value, used: Use) {
        let Some(state) = &mut self.state else { return };
        state.change(place, &mut |_| left.clone());
        if used != Use::Alias {
            self.changed(place.root);
        }
    }

    /// The value of a number or of a pointer that is compared: it must be there itself, not what it points to.
    pub(super) fn number(&mut self, expr: &mut Expr) -> Value {
        let value = self.value(expr, Use::Look);
        if self.level(&value) == Level::None && !value.is_pointer_with_value() {
            self.not_initialised(expr.span, "the value may not have been initialised", value.consumed_at());
        }
        value
    }

    /// A member of a structure whose value is known.
    fn member(&mut self, value: &Value, of: Ty, member: u32, ty: Ty) -> Value {
        match value.bare() {
            Value::Parts(parts) if parts.is_union && parts.last.is_some_and(|last| last != member) => {
                self.shapes.of(ty, Leaf::Uninitialised)
            }
            Value::Parts(parts) => match parts.members.get(member as usize) {
                Some(value) => value.clone(),
                None => self.shapes.of(ty, Leaf::Anything),
            },
            other if self.level(other) == Level::None && !self.is_plain_union(of) => {
                self.shapes.of(ty, Leaf::Uninitialised)
            }
            _ => self.shapes.of(ty, Leaf::Anything),
        }
    }

    /// The value of a union without tag is any bits.
    fn is_plain_union(&self, ty: Ty) -> bool {
        match self.shapes.types.get(ty) {
            TyKind::Aggregate(id, _) => {
                let aggregate = self.shapes.declarations.aggregate(*id);
                aggregate.is_union && !aggregate.is_tagged
            }
            _ => false,
        }
    }

    /// Follows a pointer: the place it leads to, if that is tracked, and what is there. Decides the null check.
    pub(super) fn follow(
        &mut self,
        pointer: &mut Expr,
        checks: &mut Checks,
        index: Option<&mut Expr>,
    ) -> (Option<Place>, Value) {
        let value = self.value(pointer, Use::Look);
        let value = self.seen_while_lent(pointer, value);
        let to_one = index.is_none() && self.shapes.points_to_one(pointer.ty);
        match index {
            Some(index) if has_effect(index) => self.index_with_effect(pointer, index),
            Some(index) => drop(self.number(index)),
            None => {}
        }
        if is_alias(pointer) {
            // The address of something inside is on its way to a call, which can reach all of it.
            self.release(&value, pointer.span);
        }
        let target = self.shapes.target(pointer.ty).unwrap_or(pointer.ty);
        let found = self.check_null(pointer, &value, &mut checks.null);
        if !found {
            return (None, self.shapes.of(target, Leaf::Anything));
        }
        match value.bare() {
            Value::Address(place) if to_one => {
                let contents = self.at(place);
                let contents = contents.unwrap_or_else(|| self.shapes.of(target, Leaf::Anything));
                return (Some((**place).clone()), contents);
            }
            Value::Owned(contents) if to_one => {
                let place = self.peek(pointer).map(|place| place.step(Step::Star));
                return (place, (**contents).clone());
            }
            _ => {}
        }
        if self.level(&value) == Level::None {
            let message = "a pointer that may not have been initialised is followed";
            self.not_initialised(pointer.span, message, value.consumed_below());
        }
        (None, self.shapes.of(target, Leaf::Anything))
    }

    /// What an owner that is lent to a call lets see in the other arguments: the object is there, whatever the alias was used for.
    fn seen_while_lent(&self, pointer: &Expr, value: Value) -> Value {
        let Value::Consumed(consumed) = value.bare() else { return value };
        let is_lent = self.peek(pointer).is_some_and(|place| self.lent.iter().any(|(lent, _)| *lent == place));
        match is_lent {
            true if consumed.old.is_not_zero() => Value::NonZero,
            true => Value::Unknown(Level::All),
            false => value,
        }
    }

    /// The index of something whose address is known already: what that is inside of may neither go nor be another meanwhile, which a name that
    /// it has meanwhile shows.
    fn index_with_effect(&mut self, pointer: &Expr, index: &mut Expr) {
        /// No variable has this number.
        const MEANWHILE: LocalId = LocalId(u32::MAX);
        let Some(owner) = owner_around(self.shapes.types, self.shapes.declarations, pointer) else {
            self.number(index);
            return;
        };
        let place = self.owner_place(owner);
        let Some((place, value)) = place.and_then(|place| Some((place.clone(), self.at(&place)?))) else {
            self.number(index);
            if !is_just_made(owner) {
                self.index_frees(index.span);
            }
            return;
        };
        let named = |value: &Value| Value::Named(MEANWHILE, Rc::new(value.clone()));
        self.rename_at(&place, &mut |value| named(value));
        self.number(index);
        match self.at(&place) {
            Some(Value::Named(MEANWHILE, now)) => {
                let is_there = now.consumed_at().is_none() && !matches!(value.bare(), Value::Escaped(_));
                self.rename_at(&place, &mut |_| (*now).clone());
                if is_there {
                    return;
                }
            }
            None if self.state.is_none() => return,
            _ => {}
        }
        self.index_frees(index.span);
    }

    fn index_frees(&mut self, index: Span) {
        let message = "what is indexed may be freed by what the index does";
        let error = Diagnostic::error(Code::Consumed, index, message).help("compute the index first");
        self.report(self.options.loopholes.report(error));
        if self.options.loopholes == Loopholes::Closed {
            self.state = None;
        }
    }

    /// The place of an owner that has been followed: the objects of unique pointers on the way are tracked from now on.
    fn owner_place(&mut self, expr: &Expr) -> Option<Place> {
        match &expr.kind {
            ExprKind::Member(inner, member) | ExprKind::TaggedMember(inner, member, _) => {
                let place = self.owner_place(inner)?;
                (!self.is_plain_union(inner.ty)).then(|| place.step(Step::Member(*member as u32)))
            }
            ExprKind::Deref(pointer, _) if self.shapes.points_to_one(pointer.ty) => {
                let place = self.owner_place(pointer)?;
                match self.at(&place)?.bare() {
                    Value::Address(target) => Some((**target).clone()),
                    Value::Owned(_) => Some(place.step(Step::Star)),
                    Value::Consumed(_) => None,
                    _ => {
                        let target =
                            self.shapes.target(pointer.ty).filter(|_| self.shapes.is_unique_pointer(pointer.ty))?;
                        let contents = Rc::new(self.shapes.of(target, Leaf::Anything));
                        self.rename_at(&place, &mut |old| old.rename(Value::Owned(contents.clone())));
                        Some(place.step(Step::Star))
                    }
                }
            }
            ExprKind::Coerce(_, inner) => self.owner_place(inner),
            _ => self.peek(expr),
        }
    }

    /// Changes a place's name, and not what it holds.
    fn rename_at(&mut self, place: &Place, change: &mut dyn FnMut(&Value) -> Value) {
        if let Some(state) = &mut self.state {
            state.change(place, change);
        }
    }

    /// Decides a null check by the pointer's value, and learns from it. False: it is always NULL, nothing follows.
    pub(super) fn check_null(&mut self, pointer: &Expr, value: &Value, check: &mut Check) -> bool {
        if self.state.is_none() {
            return false;
        }
        if *check != Check::Never && !value.is_not_zero() {
            let reason = remaining::reason(value, self.peek(pointer).is_some());
            self.reasons.insert(Self::key(pointer), reason);
        }
        match value.bare() {
            Value::NonZero | Value::Address(_) | Value::Owned(_) => prove(check, true),
            Value::Zero => {
                prove(check, false);
                self.error(Code::AlwaysNull, pointer.span, "this pointer is always NULL here");
                self.state = None;
                return false;
            }
            Value::Unknown(Level::All) => {
                prove(check, false);
                if let Some(place) = self.peek(pointer) {
                    self.learn(&place, &mut |old| match old.bare() {
                        Value::Unknown(Level::All) => old.rename(Value::NonZero),
                        _ => old.clone(),
                    });
                }
            }
            _ => prove(check, false),
        }
        true
    }

    /// The tracked place that an expression names; evaluates what it needs on the way. With [`Use::Copy`] objects of unique
    /// pointers on the way are tracked from now on.
    pub(super) fn place(&mut self, expr: &mut Expr, used: Use) -> Option<Place> {
        self.state.as_ref()?;
        match &mut expr.kind {
            ExprKind::Local(local) => (!self.locals[local.0 as usize].is_static).then(|| Place::of(local.0 as Root)),
            ExprKind::Global(_) => None,
            ExprKind::Member(inner, member) | ExprKind::TaggedMember(inner, member, _) => {
                let member = *member as u32;
                let of = inner.ty;
                let place = self.place(inner, used)?;
                (!self.is_plain_union(of)).then(|| place.step(Step::Member(member)))
            }
            ExprKind::Deref(pointer, checks) => {
                if used != Use::Look
                    && self.shapes.is_unique_pointer(pointer.ty)
                    && is_local_path(pointer)
                    && self.shapes.points_to_one(pointer.ty)
                {
                    return self.expand(pointer, checks);
                }
                self.follow(pointer, checks, None).0
            }
            ExprKind::Index(pointer, index, checks) => self.follow(pointer, checks, Some(index)).0,
            ExprKind::Coerce(_, inner) => self.place(inner, used),
            _ => {
                let value = self.value(expr, Use::Look);
                self.release(&value, expr.span);
                None
            }
        }
    }

    /// The object of a unique pointer, tracked from now on.
    fn expand(&mut self, pointer: &mut Expr, checks: &mut Checks) -> Option<Place> {
        let Some(place) = self.place(pointer, Use::Copy) else {
            return self.follow(pointer, checks, None).0;
        };
        let Some(value) = self.at(&place) else {
            return self.follow(pointer, checks, None).0;
        };
        if self.level(&value) == Level::None && !value.is_pointer_with_value() {
            let message = "a pointer that may not have been initialised is followed";
            self.not_initialised(pointer.span, message, value.consumed_at());
        }
        if !self.check_null(pointer, &value, &mut checks.null) {
            return None;
        }
        match value.bare() {
            Value::Address(target) => Some((**target).clone()),
            Value::Owned(_) => Some(place.step(Step::Star)),
            Value::Consumed(_) => None,
            _ => {
                let target = self.shapes.target(pointer.ty)?;
                let contents = Rc::new(self.shapes.of(target, Leaf::Anything));
                self.learn(&place, &mut |old| old.rename(Value::Owned(contents.clone())));
                Some(place.step(Step::Star))
            }
        }
    }

    /// The tracked place that an expression names now; nothing is evaluated.
    pub(super) fn peek(&self, expr: &Expr) -> Option<Place> {
        match &expr.kind {
            ExprKind::Local(local) => (!self.locals[local.0 as usize].is_static).then(|| Place::of(local.0 as Root)),
            ExprKind::Member(inner, member) | ExprKind::TaggedMember(inner, member, _) => {
                let place = self.peek(inner)?;
                (!self.is_plain_union(inner.ty)).then(|| place.step(Step::Member(*member as u32)))
            }
            ExprKind::Deref(pointer, _) if self.shapes.points_to_one(pointer.ty) => {
                let place = self.peek(pointer)?;
                let state = self.state.as_ref()?;
                match state.at(&place)?.bare() {
                    Value::Address(target) => Some((**target).clone()),
                    Value::Owned(_) => Some(place.step(Step::Star)),
                    _ => None,
                }
            }
            ExprKind::Coerce(
                Coercion::Same
                | Coercion::NotNull(_)
                | Coercion::ThinToFat
                | Coercion::FatToThin(_)
                | Coercion::ScanToFat,
                inner,
            ) => self.peek(inner),
            ExprKind::Assign(None, place, _) => self.peek(place),
            _ => None,
        }
    }

    fn address(&mut self, inner: &mut Expr) -> Value {
        match &inner.kind {
            ExprKind::Aggregate(_) | ExprKind::Construct(..) | ExprKind::Str(_) | ExprKind::WideStr(_) => {
                let value = self.value(inner, Use::Copy);
                self.release(&value, inner.span);
                Value::NonZero
            }
            _ => match self.place(inner, Use::Look) {
                Some(place) if self.at(&place).is_some() => Value::Address(Rc::new(place)),
                _ => Value::NonZero,
            },
        }
    }

    fn coerced(&mut self, coercion: &mut Coercion, inner: &mut Expr, ty: Ty, used: Use) -> Value {
        match coercion {
            Coercion::NotNull(check) => {
                let value = self.value(inner, used);
                if self.level(&value) == Level::None && !value.is_pointer_with_value() {
                    let message = "a pointer that may not have been initialised is used";
                    self.not_initialised(inner.span, message, value.consumed_at());
                }
                if !self.check_null(inner, &value, check) {
                    return Value::NonZero;
                }
                match value.bare() {
                    Value::Unknown(Level::All) | Value::Escaped(Level::All) => value.rename(Value::NonZero),
                    _ => value,
                }
            }
            Coercion::FatToThin(checks) => {
                let value = self.value(inner, used);
                if value.is_not_zero() && checks.null == Check::Needed {
                    checks.null = Check::Proved;
                }
                match value.bare() {
                    Value::Address(_) | Value::Zero => value,
                    Value::NonZero => Value::NonZero,
                    _ => {
                        let level = self.level(&value);
                        match self.shapes.of(ty, Leaf::Anything) {
                            Value::NonZero if level == Level::All => Value::NonZero,
                            _ => value,
                        }
                    }
                }
            }
            Coercion::Decay => {
                let is_function = matches!(self.shapes.types.get(inner.ty), TyKind::Function(_));
                let value = self.value(inner, Use::Look);
                match self.level(&value) {
                    Level::All => Value::NonZero,
                    Level::None if is_function => Value::NonZero,
                    Level::None => Value::Unknown(Level::None),
                }
            }
            Coercion::Number => match self.number(inner) {
                Value::Zero => Value::Zero,
                Value::NonZero if keeps_bits(self.shapes.types.get(inner.ty), self.shapes.types.get(ty)) => {
                    Value::NonZero
                }
                _ => Value::Unknown(Level::All),
            },
            Coercion::ToVoid | Coercion::IntToTag => {
                self.value(inner, Use::Look);
                Value::Unknown(Level::All)
            }
            Coercion::PointerToInt => {
                let value = self.number(inner);
                match value.bare() {
                    Value::Zero => Value::Zero,
                    _ => Value::Unknown(Level::All),
                }
            }
            _ => self.value(inner, used),
        }
    }

    /// Joins the state of another way, where an expression has `value`, with the present one, where it has `other`.
    fn join_with_value(&mut self, state: Option<super::state::State>, value: Value, other: Value) -> Value {
        match (state, self.state.take()) {
            (None, here) => {
                self.state = here;
                other
            }
            (state, None) => {
                self.state = state;
                value
            }
            (Some(state), Some(here)) => {
                let (joined, value) = state.join_with(&value, &here, &other);
                self.state = Some(joined);
                value
            }
        }
    }
}

/// Turns a check off, or on again if an earlier run had turned it off.
fn prove(check: &mut Check, proved: bool) {
    if *check != Check::Never {
        *check = if proved { Check::Proved } else { Check::Needed };
    }
}

/// A variable, or a way from one through members and pointers.
pub(super) fn is_local_path(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Local(_) => true,
        ExprKind::Deref(inner, _) | ExprKind::Member(inner, _) | ExprKind::TaggedMember(inner, ..) => {
            is_local_path(inner)
        }
        _ => false,
    }
}

/// Whether it is what inference has made an alias of an owned pointer.
fn is_alias(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::InferredAlias { .. } => true,
        ExprKind::Coerce(_, inner) => is_alias(inner),
        _ => false,
    }
}

/// A value, or a member of one, that nothing else leads to.
fn is_just_made(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Member(inner, _)
        | ExprKind::TaggedMember(inner, ..)
        | ExprKind::Deref(inner, _)
        | ExprKind::Coerce(_, inner) => is_just_made(inner),
        ExprKind::Call(_) | ExprKind::New(..) | ExprKind::Alloc { .. } => true,
        _ => false,
    }
}

/// A conversion between them does not turn what is not zero into zero.
fn keeps_bits(from: &TyKind, to: &TyKind) -> bool {
    match (from, to) {
        (_, TyKind::Int(_, IntSize::Long | IntSize::LongLong)) => !matches!(from, TyKind::Float(_)),
        (TyKind::Int(_, from), TyKind::Int(_, IntSize::Int)) => !matches!(from, IntSize::Long | IntSize::LongLong),
        _ => false,
    }
}

//! Patterns, aliases and opened regions: what they take from a place, and how it gets it back when their scope ends.

use super::expressions::{Use, is_local_path};
use super::shape::Leaf;
use super::value::{Level, Parts, Place, Root, Step, Value};
use super::{Analysis, GiveBack, GiveBackSort};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Expr, ExprKind, LocalId, Pattern, PatternKind};
use crate::types::{Ty, TyKind};
use std::rc::Rc;

impl Analysis<'_, '_> {
    /// `let p = e;`
    pub(super) fn let_pattern(&mut self, pattern: &mut Pattern, value: &mut Expr) {
        if let PatternKind::Bind(local, None) = pattern.kind {
            return self.bind_whole(local, value, pattern.ty, pattern.span);
        }
        let place = self.scrutinee(value);
        self.bind(pattern, Some(place), None);
    }

    /// `let x = e;`, converted or not: an owned pointer goes back at the end of the scope if `x` still has it.
    fn bind_whole(&mut self, local: LocalId, value: &mut Expr, ty: Ty, span: Span) {
        let from = below_conversions(value).ty;
        if self.shapes.is_owned_pointer(from)
            && self.shapes.is_owned_pointer(ty)
            && let Some(place) = self.place_below_conversions(value)
        {
            let contents = self.matched(&Some(place.clone()), None, from);
            return self.take_for_scope(local, from, Some(place), contents, GiveBackSort::Copy, span);
        }
        let contents = self.value(value, Use::Copy);
        self.declare(local, contents);
    }

    /// Matches a pattern, as if it matched: its variables come to life. What is matched is in a tracked place, or has this value.
    pub(super) fn bind(&mut self, pattern: &mut Pattern, place: Option<Place>, value: Option<Value>) {
        if self.state.is_none() {
            return;
        }
        let (ty, span) = (pattern.ty, pattern.span);
        match &mut pattern.kind {
            PatternKind::Wild | PatternKind::Int(_) | PatternKind::Float(_) => {}
            PatternKind::Value(value) => {
                self.number(value);
            }
            PatternKind::Bind(local, inner) => {
                let local = *local;
                if let Some(inner) = inner {
                    self.bind(inner, place.clone(), value.clone());
                }
                self.bind_copy(local, ty, place, value, span);
            }
            PatternKind::Reference(local, inner) => {
                let local = *local;
                if let Some(inner) = inner {
                    self.bind(inner, place.clone(), value);
                }
                let is_array = matches!(self.shapes.types.get(ty), TyKind::Array(_));
                let pointer = match place {
                    Some(place) if !is_array && self.at(&place).is_some() => Value::Address(Rc::new(place)),
                    _ => Value::NonZero,
                };
                self.declare(local, pointer);
            }
            PatternKind::Null => {
                let value = self.matched(&place, value, ty);
                self.must_have_value(&value, span);
                if value.is_not_zero() {
                    self.state = None;
                } else if let Some(place) = &place {
                    self.learn(place, &mut |old| match old.bare() {
                        Value::Unknown(Level::All) => old.rename(Value::Zero),
                        _ => old.clone(),
                    });
                }
            }
            PatternKind::Deref(inner) => {
                let value = self.matched(&place, value, ty);
                self.bind_below(inner, ty, place, value, span);
            }
            PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) => {
                let value = self.matched(&place, value, ty);
                for (index, part) in parts {
                    let index = *index as u32;
                    let contents = match value.bare() {
                        Value::Parts(parts) => parts.members.get(index as usize).cloned(),
                        _ => None,
                    };
                    let below = place.clone().map(|place| place.step(Step::Member(index)));
                    self.bind(part, below, contents);
                }
            }
            PatternKind::Tagged(member, inner) => {
                let member = *member as u32;
                let value = self.matched(&place, value, ty);
                let contents = match value.bare() {
                    Value::Parts(parts) if parts.last.is_some_and(|last| last != member) => {
                        self.state = None;
                        return;
                    }
                    Value::Parts(parts) => parts.members.get(member as usize).cloned(),
                    _ => None,
                };
                if let Some(place) = &place {
                    self.learn(place, &mut |old| match old.bare() {
                        Value::Parts(parts) => {
                            old.rename(Value::Parts(Rc::new(Parts { last: Some(member), ..(**parts).clone() })))
                        }
                        _ => old.clone(),
                    });
                }
                let below = place.map(|place| place.step(Step::Member(member)));
                self.bind(inner, below, contents);
            }
            PatternKind::Constructor(_, _, parts) => {
                let value = self.matched(&place, value, ty);
                self.release(&value, span);
                for (_, part) in parts {
                    let contents = self.shapes.of(part.ty, Leaf::Anything);
                    self.bind(part, None, Some(contents));
                }
            }
            PatternKind::Tag(local, _) => self.declare(*local, Value::Unknown(Level::All)),
            PatternKind::Alias(local, _) => {
                let local = *local;
                let value = self.matched(&place, value, ty);
                self.take_for_scope(local, ty, place, value, GiveBackSort::Alias, span);
            }
        }
    }

    /// What a pattern looks at.
    fn matched(&mut self, place: &Option<Place>, value: Option<Value>, ty: Ty) -> Value {
        let known = place.as_ref().and_then(|place| self.at(place)).or(value);
        known.unwrap_or_else(|| self.shapes.of(ty, Leaf::Anything))
    }

    fn must_have_value(&mut self, value: &Value, span: Span) {
        if self.level(value) == Level::None && !value.is_pointer_with_value() {
            self.not_initialised(span, "the value that is matched may not have been initialised", value.consumed_at());
        }
    }

    /// `x` and `x as p`.
    fn bind_copy(&mut self, local: LocalId, ty: Ty, place: Option<Place>, value: Option<Value>, span: Span) {
        let value = self.matched(&place, value, ty);
        match place {
            Some(place) if self.shapes.is_owned(ty) => {
                if self.shapes.is_owned_pointer(ty) {
                    self.take_for_scope(local, ty, Some(place), value, GiveBackSort::Copy, span);
                    return;
                }
                if self.reject_consumed(&value, span) {
                    return;
                }
                let left = self.shapes.consumed(ty, &value, span, false);
                self.learn(&place, &mut |_| left.clone());
                self.declare(local, value);
            }
            _ => self.declare(local, value),
        }
    }

    /// Reports a use of what was consumed before.
    fn reject_consumed(&mut self, value: &Value, span: Span) -> bool {
        let Some(at) = value.consumed_at() else { return false };
        self.report(
            Diagnostic::error(Code::Consumed, span, "an owned pointer is used after it was consumed")
                .with(at, "consumed here"),
        );
        self.state = None;
        true
    }

    /// Takes an owned pointer out of a place until the scope of `local` ends.
    fn take_for_scope(
        &mut self,
        local: LocalId,
        ty: Ty,
        place: Option<Place>,
        value: Value,
        sort: GiveBackSort,
        span: Span,
    ) {
        if self.reject_consumed(&value, span) {
            return;
        }
        let own = self.locals[local.0 as usize].ty;
        let bound = match sort {
            GiveBackSort::Copy => Value::Named(local, Rc::new(value.clone())),
            GiveBackSort::Open => Value::Unknown(Level::All),
            GiveBackSort::Alias => match self.level(&value) {
                Level::All if value.is_not_zero() => Value::NonZero,
                Level::All => self.shapes.of(own, Leaf::Anything),
                Level::None => Value::Unknown(Level::None),
            },
        };
        if let Some(place) = place
            && self.shapes.is_owned(ty)
        {
            let is_alias = sort != GiveBackSort::Copy;
            let left = self.shapes.consumed(ty, &value, span, is_alias);
            let left = Value::Named(local, Rc::new(left));
            if let Some(state) = &mut self.state {
                state.change(&place, &mut |_| left.clone());
            }
            if !is_alias {
                self.changed(place.root);
            }
            self.give_backs.push(GiveBack { name: local, place, sort, span });
        }
        self.declare(local, bound);
    }

    /// ``let alias<`r> T x = e;`` and `open(k)`.
    pub(super) fn alias(&mut self, local: LocalId, value: &mut Expr, sort: GiveBackSort, span: Span) {
        let ty = below_conversions(value).ty;
        let place = self.place_below_conversions(value);
        let contents = match &place {
            Some(place) => self.at(place),
            None => Some(self.value(value, Use::Copy)),
        };
        if self.state.is_none() {
            return;
        }
        let contents = contents.unwrap_or_else(|| self.shapes.of(ty, Leaf::Anything));
        self.take_for_scope(local, ty, place, contents, sort, span);
    }

    fn place_below_conversions(&mut self, expr: &mut Expr) -> Option<Place> {
        if is_local_path(expr) {
            return self.place(expr, Use::Copy);
        }
        match &mut expr.kind {
            ExprKind::Coerce(_, inner) => self.place_below_conversions(inner),
            _ => None,
        }
    }

    /// `&p`.
    fn bind_below(&mut self, inner: &mut Pattern, ty: Ty, place: Option<Place>, value: Value, span: Span) {
        let target = inner.ty;
        let to_one = self.shapes.points_to_one(ty);
        match value.bare() {
            Value::Zero => {
                self.state = None;
                return;
            }
            Value::Address(to) if to_one => {
                let to = (**to).clone();
                self.bind(inner, Some(to), None);
                return;
            }
            Value::Owned(contents) if to_one => {
                let contents = (**contents).clone();
                self.bind(inner, place.map(|place| place.step(Step::Star)), Some(contents));
                return;
            }
            _ => {}
        }
        self.must_have_value(&value, span);
        let contents = self.shapes.of(target, Leaf::Anything);
        match place {
            Some(place) if to_one && self.shapes.is_unique_pointer(ty) && self.level(&value) == Level::All => {
                let tracked = Rc::new(contents);
                self.learn(&place, &mut |old| old.rename(Value::Owned(tracked.clone())));
                self.bind(inner, Some(place.step(Step::Star)), None);
            }
            Some(place) => {
                self.learn(&place, &mut |old| match old.bare() {
                    Value::Unknown(Level::All) => old.rename(Value::NonZero),
                    _ => old.clone(),
                });
                self.bind(inner, None, Some(contents));
            }
            None => self.bind(inner, None, Some(contents)),
        }
    }

    /// The scopes of all but the first `count` give-backs end.
    pub(super) fn give_back_to(&mut self, count: usize) {
        self.leave_to(count);
        self.give_backs.truncate(count);
    }

    /// Control leaves these scopes by a jump.
    pub(super) fn leave_to(&mut self, count: usize) {
        for index in (count..self.give_backs.len()).rev() {
            let give_back = self.give_backs[index].clone();
            self.give_back(&give_back);
        }
    }

    fn give_back(&mut self, give_back: &GiveBack) {
        let GiveBack { name, place, sort, span } = give_back;
        let Some(state) = &self.state else { return };
        let variable = state.root(name.0 as Root).cloned();
        let is_owned_variable = self.shapes.is_owned(self.locals[name.0 as usize].ty);
        let kept = match (sort, variable) {
            (GiveBackSort::Open | GiveBackSort::Alias, _) => Some(None),
            (GiveBackSort::Copy, Some(Value::Named(other, value))) if other == *name => {
                value.consumed_at().is_none().then(|| Some((*value).clone()))
            }
            (GiveBackSort::Copy, _) if !is_owned_variable => Some(None),
            _ => None,
        };
        match self.at(place) {
            Some(Value::Named(other, left)) if other == *name => {
                let Some(state) = &mut self.state else { return };
                let value = match kept {
                    Some(Some(variable)) => state.join_values(&left.restored(), &variable),
                    Some(None) => left.restored(),
                    None => (*left).clone(),
                };
                self.learn(place, &mut |_| value.clone());
            }
            _ if *sort == GiveBackSort::Alias => {
                let message = "what is aliased is overwritten while the alias lives";
                self.error(Code::Overwritten, *span, message);
                self.state = None;
            }
            _ => {}
        }
    }
}

fn below_conversions(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Coerce(_, inner) => below_conversions(inner),
        _ => expr,
    }
}

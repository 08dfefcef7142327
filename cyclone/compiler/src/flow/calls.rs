//! Calls, initial values, allocation.

use super::Analysis;
use super::expressions::{Use, is_local_path};
use super::shape::Leaf;
use super::value::{Level, Parts, Place, Root, Value};
use crate::ast::AllocWord;
use crate::tree::{Allocation, Call, Comprehension, Expr, ExprKind, Init};
use crate::types::{Ty, TyKind};
use std::rc::Rc;

impl Analysis<'_, '_> {
    /// A call; `ty` is the type of its result.
    pub(super) fn call(&mut self, call: &mut Call, ty: Ty) -> Value {
        let lent_around = self.lent.len();
        let callee = self.value(&mut call.callee, Use::Look);
        self.release(&callee, call.callee.span);
        let mut values = Vec::with_capacity(call.args.len());
        let mut taken = Vec::with_capacity(call.args.len());
        for arg in &mut call.args {
            self.taken = None;
            values.push(self.value(arg, Use::Copy));
            let place = self.taken.take().filter(|_| is_converted_path(arg));
            taken.push(place);
        }
        if let Some(varargs) = &mut call.varargs {
            for arg in &mut varargs.args {
                let value = self.value(arg, Use::Copy);
                self.release(&value, arg.span);
            }
        }
        let attributes = &call.declared.attributes;
        for (index, ((arg, value), taken)) in call.args.iter().zip(&values).zip(taken).enumerate() {
            if attributes.initializes.contains(&index) {
                self.initialises(arg, value);
                continue;
            }
            if attributes.noliveunique.contains(&index) {
                self.freed(arg, value);
                continue;
            }
            self.release(value, arg.span);
            let Some(place) = taken else { continue };
            // What becomes aliasable for good has no owner any more.
            let stays_owned = self.shapes.is_owned_pointer(path_type(arg)) && self.shapes.is_owned_pointer(arg.ty);
            if !attributes.consume.contains(&index) && stays_owned {
                self.returned(&place, path_type(arg));
            }
        }
        for (place, ty) in self.lent.split_off(lent_around) {
            self.returned(&place, ty);
        }
        if attributes.noreturn {
            self.state = None;
        }
        self.shapes.of(ty, Leaf::Anything)
    }

    /// An argument that the function does not consume is there again after the call, with contents that are not known.
    fn returned(&mut self, place: &Place, ty: Ty) {
        let contents = self.shapes.of(ty, Leaf::Anything);
        self.learn(place, &mut |old| old.rename(contents.clone()));
    }

    /// The function stores a value where the argument points to.
    fn initialises(&mut self, arg: &Expr, value: &Value) {
        if self.level(value) == Level::None && !value.is_pointer_with_value() {
            self.not_initialised(arg.span, "the value may not have been initialised", value.consumed_at());
        }
        let mut pile = Vec::new();
        value.pointed_to(&mut pile);
        if let Some(state) = &mut self.state {
            state.escape(pile);
        }
        if let Value::Address(place) = value.bare()
            && let Some(target) = self.shapes.target(arg.ty)
        {
            let contents = self.shapes.of(target, Leaf::Shared);
            self.learn(place, &mut |_| contents.clone());
        }
    }

    /// The argument of a function that frees its object, but not what that owns.
    fn freed(&mut self, arg: &Expr, value: &Value) {
        let contents = match value.bare() {
            Value::Owned(contents) => Some((**contents).clone()),
            Value::Address(place) => self.at(place),
            _ => None,
        };
        let target = self.shapes.target(arg.ty);
        match (contents, target) {
            (Some(contents), Some(target)) => {
                if self.options.warn_lost && self.shapes.holds_live(target, &contents) {
                    self.lost(arg.span, "the object that is freed may still own others, which are lost");
                }
                let mut pile = Vec::new();
                value.pointed_to(&mut pile);
                if let Some(state) = &mut self.state {
                    state.escape(pile);
                }
            }
            (_, target) => {
                let owns = target.is_some_and(|target| self.shapes.is_owned(target));
                if self.options.warn_lost && owns {
                    self.lost(arg.span, "the object that is freed may still own others, which are lost");
                }
                self.release(value, arg.span);
            }
        }
    }

    /// The value that an initialiser gives to something of type `ty`.
    pub(super) fn initial(&mut self, init: &mut Init, ty: Ty) -> Value {
        match init {
            Init::Value(value) => self.value(value, Use::Copy),
            Init::String(_) => self.shapes.of(ty, Leaf::Anything),
            Init::Comprehension(comprehension) => self.comprehension(comprehension, ty),
            Init::List(list) => {
                if let TyKind::Array(array) = self.shapes.types.get(list.ty) {
                    let element = array.element;
                    for (_, entry) in &mut list.entries {
                        let value = self.initial(entry, element);
                        self.release(&value, list.span);
                    }
                    return Value::NonZero;
                }
                let types = self.shapes.members(list.ty);
                let whole = self.shapes.of(list.ty, Leaf::Zero);
                let mut parts = match &whole {
                    Value::Parts(parts) => (**parts).clone(),
                    _ => Parts { is_union: false, last: None, members: Vec::new() },
                };
                for (index, entry) in &mut list.entries {
                    let member = *index as usize;
                    let member_ty = types.get(member).copied().unwrap_or(list.ty);
                    let value = self.initial(entry, member_ty);
                    if parts.is_union {
                        self.release(&value, list.span);
                        parts.last = Some(member as u32);
                    }
                    match parts.members.get_mut(member) {
                        Some(slot) => *slot = value,
                        None => self.release(&value, list.span),
                    }
                }
                match whole {
                    Value::Parts(_) => Value::Parts(Rc::new(parts)),
                    _ => self.shapes.of(ty, Leaf::Anything),
                }
            }
        }
    }

    /// `{for i < n : e}`: `e` is evaluated any number of times.
    fn comprehension(&mut self, comprehension: &mut Comprehension, ty: Ty) -> Value {
        self.number(&mut comprehension.len);
        let Some(element) = &mut comprehension.value else {
            return self.shapes.of(ty, Leaf::Uninitialised);
        };
        let key = Self::key(element);
        self.head(key);
        if let Some(state) = &mut self.state {
            state.begin(comprehension.index.0, Value::Unknown(Level::All));
        }
        let before = self.state.clone();
        let value = self.value(element, Use::Copy);
        self.release(&value, element.span);
        self.back(key);
        self.state = before;
        Value::NonZero
    }

    /// The handles of an allocation.
    pub(super) fn allocation(&mut self, place: &mut Allocation) {
        if let Some(region) = &mut place.region {
            let value = self.value(region, Use::Look);
            self.release(&value, region.span);
        }
    }

    /// A pointer of type `ty` to a new object with these contents.
    pub(super) fn allocated(&mut self, root: Root, contents: Value, ty: Ty) -> Value {
        if self.shapes.is_unique_pointer(ty) {
            return Value::Owned(Rc::new(contents));
        }
        let Some(state) = &mut self.state else { return Value::NonZero };
        state.begin(root, contents);
        Value::Address(Rc::new(Place::of(root)))
    }

    /// `malloc` and its like.
    pub(super) fn memory(&mut self, expr: &mut Expr) -> Value {
        let root = self.site(&*expr);
        let ty = expr.ty;
        let ExprKind::Alloc { word, place, element, count, .. } = &mut expr.kind else {
            return Value::NonZero;
        };
        self.allocation(place);
        if let Some(count) = count {
            self.number(count);
        }
        let is_fat = match self.shapes.types.get(ty) {
            TyKind::Pointer(pointer) => matches!(self.shapes.types.get(pointer.bound), TyKind::Fat),
            _ => true,
        };
        if is_fat {
            return Value::NonZero;
        }
        let leaf = if *word == AllocWord::Calloc { Leaf::Zero } else { Leaf::Uninitialised };
        let contents = self.shapes.of(*element, leaf);
        self.allocated(root, contents, ty)
    }
}

/// The type of the place that an argument comes from, below conversions.
pub(super) fn path_type(expr: &Expr) -> Ty {
    match &expr.kind {
        ExprKind::Coerce(_, inner) => path_type(inner),
        _ => expr.ty,
    }
}

/// A place, converted or not.
fn is_converted_path(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Coerce(_, inner) => is_converted_path(inner),
        _ => is_local_path(expr),
    }
}

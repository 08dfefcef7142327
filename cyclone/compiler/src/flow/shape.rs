//! The abstract value of a whole type, and what else the analysis asks of types.

use super::value::{Consumed, Level, Parts, Value};
use crate::hash::HashMap;
use crate::ownership;
use crate::source::Span;
use crate::tree::Declarations;
use crate::types::{Substitution, Ty, TyKind, Types};
use std::rc::Rc;

/// What the parts of a value of a type are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Leaf {
    /// Nothing was stored there; numbers may be read all the same.
    Uninitialised,
    /// Anything.
    Anything,
    /// All zero.
    Zero,
    /// Not to be initialised by this function's caller, and others may see it: a parameter with `initializes`.
    Promised,
    /// Anything, and others may see it.
    Shared,
}

impl Leaf {
    fn value(self) -> Value {
        match self {
            Leaf::Uninitialised => Value::Unknown(Level::None),
            Leaf::Anything => Value::Unknown(Level::All),
            Leaf::Zero => Value::Zero,
            Leaf::Promised => Value::Escaped(Level::None),
            Leaf::Shared => Value::Escaped(Level::All),
        }
    }
}

/// Answers about types, each found once.
pub struct Shapes<'a> {
    /// The types.
    pub types: &'a mut Types,
    /// What is declared.
    pub declarations: &'a Declarations,
    shapes: HashMap<(Ty, Leaf, bool), Value>,
    members: HashMap<Ty, Rc<[Ty]>>,
    owned: HashMap<Ty, bool>,
}

/// No type that a program can use is nested deeper.
const DEPTH_LIMIT: u32 = 64;

impl<'a> Shapes<'a> {
    /// Over the types of a translation unit.
    pub fn new(types: &'a mut Types, declarations: &'a Declarations) -> Shapes<'a> {
        Shapes {
            types,
            declarations,
            shapes: HashMap::default(),
            members: HashMap::default(),
            owned: HashMap::default(),
        }
    }

    /// The value of a type with all its parts alike.
    pub fn of(&mut self, ty: Ty, leaf: Leaf) -> Value {
        self.shape(ty, leaf, false, 0)
    }

    /// In a tagged union numbers without a value have none, so that the member that was written can be told from the others.
    fn shape(&mut self, ty: Ty, leaf: Leaf, in_union: bool, depth: u32) -> Value {
        let ty = self.types.head(ty);
        match self.types.get(ty) {
            TyKind::Tuple(_) | TyKind::Aggregate(..) | TyKind::Constructor(..) | TyKind::Array(_) => {}
            TyKind::Pointer(pointer) => {
                let not_null = leaf == Leaf::Anything && matches!(self.types.get(pointer.nullable), TyKind::False);
                return if not_null { Value::NonZero } else { leaf.value() };
            }
            _ if !in_union && is_number(self.types, ty) => return Value::Unknown(Level::All),
            _ => return leaf.value(),
        }
        if let Some(known) = self.shapes.get(&(ty, leaf, in_union)) {
            return known.clone();
        }
        let value = self.composite(ty, leaf, in_union, depth);
        self.shapes.insert((ty, leaf, in_union), value.clone());
        value
    }

    fn composite(&mut self, ty: Ty, leaf: Leaf, in_union: bool, depth: u32) -> Value {
        if let TyKind::Array(array) = self.types.get(ty) {
            let element = array.element;
            // A zero-terminated array of numbers gets its last zero even without initialiser.
            let is_ready = !in_union && self.holds_numbers_only(element, depth);
            return if is_ready { Value::Unknown(Level::All) } else { leaf.value() };
        }
        let is_union = match self.types.get(ty) {
            TyKind::Aggregate(id, _) => {
                let aggregate = self.declarations.aggregate(*id);
                if aggregate.body.is_none() {
                    return leaf.value();
                }
                if aggregate.is_union && !aggregate.is_tagged {
                    return Value::Unknown(Level::All);
                }
                aggregate.is_union
            }
            _ => false,
        };
        if depth > DEPTH_LIMIT {
            return leaf.value();
        }
        let members = self.members(ty);
        if members.is_empty() && matches!(self.types.get(ty), TyKind::Constructor(..)) {
            return leaf.value();
        }
        let members = members.iter().map(|&member| self.shape(member, leaf, is_union, depth + 1)).collect();
        Value::Parts(Rc::new(Parts { is_union, last: None, members }))
    }

    /// The types of the members of a structure, union, tuple or constructor.
    pub fn members(&mut self, ty: Ty) -> Rc<[Ty]> {
        let ty = self.types.head(ty);
        if let Some(known) = self.members.get(&ty) {
            return known.clone();
        }
        let (map, declared): (Substitution, Vec<Ty>) = match self.types.get(ty) {
            TyKind::Tuple(members) => (Substitution::default(), members.iter().map(|member| member.ty).collect()),
            TyKind::Aggregate(id, args) => {
                let aggregate = self.declarations.aggregate(*id);
                let fields = aggregate.body.as_ref().map_or(&[][..], |body| &body.fields);
                (Substitution::of(&aggregate.params, args), fields.iter().map(|field| field.ty).collect())
            }
            TyKind::Constructor(id, index, args) => {
                let datatype = self.declarations.datatype(*id);
                let constructor = datatype.constructors.get(*index as usize);
                let params = constructor.map_or(&[][..], |constructor| &constructor.params);
                (Substitution::of(&datatype.params, args), params.iter().map(|param| param.ty).collect())
            }
            _ => (Substitution::default(), Vec::new()),
        };
        let members: Rc<[Ty]> = declared.into_iter().map(|member| self.types.substitute(member, &map)).collect();
        self.members.insert(ty, members.clone());
        members
    }

    fn holds_numbers_only(&mut self, ty: Ty, depth: u32) -> bool {
        if is_number(self.types, ty) {
            return true;
        }
        if depth > DEPTH_LIMIT {
            return false;
        }
        match self.types.get(ty) {
            TyKind::Array(array) => {
                let element = array.element;
                !matches!(self.types.get(array.zeroterm), TyKind::True) && self.holds_numbers_only(element, depth + 1)
            }
            TyKind::Tuple(_) | TyKind::Aggregate(..) => {
                let members = self.members(ty);
                !members.is_empty() && members.iter().all(|&member| self.holds_numbers_only(member, depth + 1))
            }
            _ => false,
        }
    }

    /// Whether copying a value of this type consumes it.
    pub fn is_owned(&mut self, ty: Ty) -> bool {
        let ty = self.types.head(ty);
        match self.types.get(ty) {
            TyKind::Pointer(_) | TyKind::Var(_) => ownership::is_owned(self.types, self.declarations, ty),
            TyKind::Tuple(_) | TyKind::Aggregate(..) | TyKind::Constructor(..) => {
                if let Some(&known) = self.owned.get(&ty) {
                    return known;
                }
                let owned = ownership::is_owned(self.types, self.declarations, ty);
                self.owned.insert(ty, owned);
                owned
            }
            _ => false,
        }
    }

    /// Whether it is an owned pointer itself, or may be one.
    pub fn is_owned_pointer(&mut self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Pointer(_) | TyKind::Var(_)) && self.is_owned(ty)
    }

    /// Whether it is known to be the only pointer to its object.
    pub fn is_unique_pointer(&self, ty: Ty) -> bool {
        ownership::is_unique_pointer(self.types, ty)
    }

    /// What remains of a value of type `ty` after it has been copied.
    pub fn consumed(&mut self, ty: Ty, value: &Value, span: Span, is_alias: bool) -> Value {
        match value {
            Value::Named(name, inner) => Value::Named(*name, Rc::new(self.consumed(ty, inner, span, is_alias))),
            _ if self.is_owned_pointer(ty) => Value::Consumed(Rc::new(Consumed { span, old: value.clone(), is_alias })),
            Value::Parts(parts) => {
                let types = self.members(ty);
                let mut members = parts.members.clone();
                for (member, &ty) in members.iter_mut().zip(types.iter()) {
                    *member = self.consumed(ty, member, span, is_alias);
                }
                Value::Parts(Rc::new(Parts { members, ..**parts }))
            }
            _ => value.clone(),
        }
    }

    /// Whether something owned in this value would be lost if it were overwritten.
    pub fn holds_live(&mut self, ty: Ty, value: &Value) -> bool {
        match value.bare() {
            Value::Zero | Value::Consumed(_) | Value::Unknown(Level::None) => false,
            Value::Parts(parts) if !self.is_owned_pointer(ty) => {
                let types = self.members(ty);
                parts.members.iter().zip(types.iter()).any(|(member, &ty)| self.holds_live(ty, member))
            }
            _ => self.is_owned_pointer(ty),
        }
    }

    /// The type that a pointer points to.
    pub fn target(&self, ty: Ty) -> Option<Ty> {
        match self.types.get(ty) {
            TyKind::Pointer(pointer) => Some(pointer.target),
            _ => None,
        }
    }

    /// A thin pointer to one element, so that following it leads to just the place it points to.
    pub fn points_to_one(&self, ty: Ty) -> bool {
        let TyKind::Pointer(pointer) = self.types.get(ty) else { return false };
        match self.types.get(pointer.bound) {
            TyKind::Thin(len) => matches!(self.types.get(*len), TyKind::Nat(1) | TyKind::Evar(_)),
            TyKind::Evar(_) => true,
            _ => false,
        }
    }
}

/// Whether it has no pointers: any bits are a value of it.
pub fn is_number(types: &Types, ty: Ty) -> bool {
    matches!(
        types.get(ty),
        TyKind::Void
            | TyKind::Bool
            | TyKind::Int(..)
            | TyKind::Float(_)
            | TyKind::Complex(_)
            | TyKind::Enum(_)
            | TyKind::VaList
            | TyKind::Error
    )
}

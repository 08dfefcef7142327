//! Abstract values: what the analysis knows of the contents of a place.

use crate::source::Span;
use crate::tree::LocalId;
use std::rc::Rc;

/// Whether something has a value, and all that it leads to has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// It may have none.
    None,
    /// All of it has.
    All,
}

/// A variable, or something that is made at one place of the program: an allocation, a temporary.
pub type Root = u32;

/// A step on the way from a root to a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Into a member.
    Member(u32),
    /// To what an owned pointer points to.
    Star,
}

/// A place whose contents are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Where it begins.
    pub root: Root,
    /// From there.
    pub path: Vec<Step>,
}

impl Place {
    /// The whole of a root.
    pub fn of(root: Root) -> Place {
        Place { root, path: Vec::new() }
    }

    /// The place one step further.
    pub fn step(mut self, step: Step) -> Place {
        self.path.push(step);
        self
    }
}

/// What is known of a value. [`Value::Zero`] and [`Value::NonZero`] are for numbers and pointers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// NULL, or 0.
    Zero,
    /// Neither, and everything that can be reached from it has a value.
    NonZero,
    /// Nothing but whether it has a value.
    Unknown(Level),
    /// As `Unknown`, of a place that others may read and write at any time: what is stored there must have a value, and
    /// nothing is learned of it by tests.
    Escaped(Level),
    /// A pointer to just this place.
    Address(Rc<Place>),
    /// A unique pointer that is not null, and what it points to.
    Owned(Rc<Value>),
    /// The members of a structure, tuple or tagged union.
    Parts(Rc<Parts>),
    /// An owned pointer that was copied: it must not be used any more.
    Consumed(Rc<Consumed>),
    /// The value that this variable got when it was bound; any assignment takes the name away.
    Named(LocalId, Rc<Value>),
}

/// The members of an aggregate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    /// Only one member has a value at a time.
    pub is_union: bool,
    /// Of a tagged union the member last written, if that is known.
    pub last: Option<u32>,
    /// Values of the members.
    pub members: Vec<Value>,
}

/// How an owned pointer was consumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consumed {
    /// Where.
    pub span: Span,
    /// What it was before.
    pub old: Value,
    /// By an alias, which gives it back at the end of its scope, also if an exception ends it.
    pub is_alias: bool,
}

/// Places that others come to know.
pub type Pile = Vec<Place>;

impl Value {
    /// The value without names.
    pub fn bare(&self) -> &Value {
        let mut value = self;
        while let Value::Named(_, inner) = value {
            value = inner;
        }
        value
    }

    /// `new` with the names of `self` around it.
    pub fn rename(&self, new: Value) -> Value {
        match self {
            Value::Named(name, inner) => Value::Named(*name, Rc::new(inner.rename(new))),
            _ => new,
        }
    }

    /// Known to be neither NULL nor 0.
    pub fn is_not_zero(&self) -> bool {
        matches!(self.bare(), Value::NonZero | Value::Address(_) | Value::Owned(_))
    }

    /// A pointer that has a value itself, whatever it points to.
    pub fn is_pointer_with_value(&self) -> bool {
        matches!(self.bare(), Value::Address(_) | Value::Owned(_))
    }

    /// Where it, or a member, was consumed.
    pub fn consumed_at(&self) -> Option<Span> {
        match self {
            Value::Consumed(consumed) => Some(consumed.span),
            Value::Named(_, inner) => inner.consumed_at(),
            Value::Parts(parts) => match parts.last {
                Some(last) if parts.is_union => parts.members.get(last as usize)?.consumed_at(),
                _ => parts.members.iter().find_map(Value::consumed_at),
            },
            _ => None,
        }
    }

    /// Where it, or anything owned below it, was consumed.
    pub fn consumed_below(&self) -> Option<Span> {
        match self {
            Value::Owned(inner) => inner.consumed_below(),
            Value::Named(_, inner) => inner.consumed_below(),
            Value::Parts(parts) => parts.members.iter().find_map(Value::consumed_below),
            other => other.consumed_at(),
        }
    }

    /// As it was before it was consumed.
    pub fn restored(&self) -> Value {
        match self {
            Value::Consumed(consumed) => consumed.old.clone(),
            Value::Named(name, inner) => Value::Named(*name, Rc::new(inner.restored())),
            Value::Parts(parts) => {
                let members = parts.members.iter().map(Value::restored).collect();
                Value::Parts(Rc::new(Parts { members, ..**parts }))
            }
            other => other.clone(),
        }
    }

    /// The places it points to are added to `pile`.
    pub fn pointed_to(&self, pile: &mut Pile) {
        match self {
            Value::Consumed(consumed) => consumed.old.pointed_to(pile),
            Value::Named(_, inner) => inner.pointed_to(pile),
            Value::Owned(inner) => inner.pointed_to(pile),
            Value::Parts(parts) => parts.members.iter().for_each(|member| member.pointed_to(pile)),
            Value::Address(place) if !pile.contains(place) => pile.push((**place).clone()),
            _ => {}
        }
    }

    /// All parts replaced by `leaf`; the structure, names and consumption stay.
    pub fn flooded(&self, leaf: &Value) -> Value {
        match self {
            Value::Parts(parts) => {
                let members = parts.members.iter().map(|member| member.flooded(leaf)).collect();
                Value::Parts(Rc::new(Parts { is_union: parts.is_union, last: None, members }))
            }
            Value::Consumed(consumed) => {
                Value::Consumed(Rc::new(Consumed { old: consumed.old.flooded(leaf), ..**consumed }))
            }
            Value::Named(name, inner) => Value::Named(*name, Rc::new(inner.flooded(leaf))),
            _ => leaf.clone(),
        }
    }

    /// The value at the end of a path, and `None` where nothing is known of it. Names and consumption on the way do not matter.
    pub fn at(&self, path: &[Step]) -> Option<&Value> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match (self, first) {
            (Value::Named(_, inner), _) => inner.at(path),
            (Value::Consumed(consumed), _) => consumed.old.at(path),
            (Value::Parts(parts), Step::Member(member)) => parts.members.get(*member as usize)?.at(rest),
            (Value::Owned(inner), Step::Star) => inner.at(rest),
            _ => None,
        }
    }

    /// The value with the part at the end of a path changed; unchanged where there is no such part.
    pub fn with(&self, path: &[Step], change: &mut dyn FnMut(&Value) -> Value) -> Value {
        let Some((first, rest)) = path.split_first() else { return change(self) };
        match (self, first) {
            (Value::Named(name, inner), _) => Value::Named(*name, Rc::new(inner.with(path, change))),
            (Value::Consumed(consumed), _) => {
                Value::Consumed(Rc::new(Consumed { old: consumed.old.with(path, change), ..**consumed }))
            }
            (Value::Parts(parts), Step::Member(member)) => {
                let mut parts = (**parts).clone();
                for (index, part) in parts.members.iter_mut().enumerate() {
                    if index == *member as usize {
                        *part = part.with(rest, change);
                    } else if parts.is_union {
                        // So that it has a value again if this member is not the one that is read.
                        *part = part.flooded(&Value::Unknown(Level::All));
                    }
                }
                if parts.is_union {
                    parts.last = Some(*member);
                }
                Value::Parts(Rc::new(parts))
            }
            (Value::Owned(inner), Step::Star) => Value::Owned(Rc::new(inner.with(rest, change))),
            _ => self.clone(),
        }
    }
}

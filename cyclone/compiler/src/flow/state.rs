//! The state of all places at one point of a function, and the join of two.

use super::value::{Consumed, Level, Parts, Pile, Place, Root, Value};
use std::rc::Rc;

/// What is known of each root; nothing of those that are not alive. Pieces are shared between states, for most of what is known
/// is the same at most points.
#[derive(Clone, Debug, Default)]
pub struct State {
    pieces: Vec<Rc<Piece>>,
}

/// Roots in a piece.
const PIECE: usize = 16;

type Piece = [Option<Value>; PIECE];

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.pieces.len() == other.pieces.len()
            && self.pieces.iter().zip(&other.pieces).all(|(a, b)| Rc::ptr_eq(a, b) || a == b)
    }
}

impl Eq for State {}

/// A value was to be stored where others expect one, and it has none.
pub struct Unfit;

impl State {
    /// A root comes to life, or starts anew.
    pub fn begin(&mut self, root: Root, value: Value) {
        let index = root as usize;
        while self.pieces.len() * PIECE <= index {
            self.pieces.push(Rc::default());
        }
        Rc::make_mut(&mut self.pieces[index / PIECE])[index % PIECE] = Some(value);
    }

    /// What is known of a root.
    pub fn root(&self, root: Root) -> Option<&Value> {
        let index = root as usize;
        self.pieces.get(index / PIECE)?[index % PIECE].as_ref()
    }

    /// What is known of a place.
    pub fn at(&self, place: &Place) -> Option<&Value> {
        self.root(place.root)?.at(&place.path)
    }

    /// Changes what is known of a place, whatever was known.
    pub fn change(&mut self, place: &Place, change: &mut dyn FnMut(&Value) -> Value) {
        let index = place.root as usize;
        let Some(old) = self.root(place.root) else { return };
        let new = old.with(&place.path, change);
        Rc::make_mut(&mut self.pieces[index / PIECE])[index % PIECE] = Some(new);
    }

    /// Stores a value.
    pub fn assign(&mut self, place: &Place, value: &Value) -> Result<(), Unfit> {
        let Some(old) = self.at(place) else { return self.release(value) };
        let mut pile = Pile::new();
        let mut fit = true;
        let stored = self.stored(old, value, &mut pile, &mut fit);
        self.change(place, &mut |_| stored.clone());
        self.escape(pile);
        if fit { Ok(()) } else { Err(Unfit) }
    }

    /// A value goes where nothing is tracked: what it points to is known to others from then on.
    pub fn release(&mut self, value: &Value) -> Result<(), Unfit> {
        let level = self.level(value);
        let mut pile = Pile::new();
        value.pointed_to(&mut pile);
        self.escape(pile);
        if level == Level::All { Ok(()) } else { Err(Unfit) }
    }

    /// What a place that holds `old` holds once `new` is stored there.
    fn stored(&self, old: &Value, new: &Value, pile: &mut Pile, fit: &mut bool) -> Value {
        match (old, new) {
            (Value::Named(_, old), _) => self.stored(old, new, pile, fit),
            (_, Value::Named(name, inner)) => Value::Named(*name, Rc::new(self.stored(old, inner, pile, fit))),
            (Value::Escaped(_), _) => {
                new.pointed_to(pile);
                *fit &= self.level(new) == Level::All;
                Value::Escaped(Level::All)
            }
            (Value::Parts(before), Value::Parts(after)) if before.members.len() == after.members.len() => {
                let members = before.members.iter().zip(&after.members);
                let members = members.map(|(old, new)| self.stored(old, new, pile, fit)).collect();
                Value::Parts(Rc::new(Parts { members, ..**after }))
            }
            (Value::Parts(_), _) => {
                new.pointed_to(pile);
                old.flooded(&Value::Unknown(self.level(new)))
            }
            (_, Value::Escaped(level)) => Value::Unknown(*level),
            _ => new.clone(),
        }
    }

    /// These places, and all they lead to, are known to others from now on.
    pub fn escape(&mut self, mut pile: Pile) {
        let mut done = 0;
        while done < pile.len() {
            let place = pile[done].clone();
            done += 1;
            let Some(old) = self.at(&place).cloned() else { continue };
            old.pointed_to(&mut pile);
            let leaf = Value::Escaped(self.level(&old));
            self.change(&place, &mut |old| old.flooded(&leaf));
        }
    }

    /// Whether a value, and all it leads to, is there.
    pub fn level(&self, value: &Value) -> Level {
        self.level_seen(value, &mut Vec::new())
    }

    fn level_seen(&self, value: &Value, seen: &mut Vec<Rc<Place>>) -> Level {
        match value {
            Value::Zero | Value::NonZero => Level::All,
            Value::Unknown(level) | Value::Escaped(level) => *level,
            Value::Consumed(_) => Level::None,
            Value::Named(_, inner) | Value::Owned(inner) => self.level_seen(inner, seen),
            Value::Address(place) => {
                if seen.contains(place) {
                    return Level::All;
                }
                seen.push(place.clone());
                let level = self.at(place).map_or(Level::All, |value| self.level_seen(value, seen));
                seen.pop();
                level
            }
            Value::Parts(parts) => {
                let has = |member: &Value| self.level_seen(member, seen) == Level::All;
                let all = match (parts.is_union, parts.last) {
                    (true, Some(last)) => parts.members.get(last as usize).is_none_or(has),
                    (true, None) => parts.members.is_empty() || parts.members.iter().any(has),
                    (false, _) => parts.members.iter().all(has),
                };
                if all { Level::All } else { Level::None }
            }
        }
    }

    /// What is known if one or the other is the case. Roots that only one of them has are dead.
    pub fn join(&self, other: &State) -> State {
        let mut pile = Pile::new();
        let joined = Join { left: self, right: other, ignores_aliases: false };
        let pieces = self.pieces.iter().zip(&other.pieces);
        let pieces = pieces.map(|(left, right)| match Rc::ptr_eq(left, right) {
            true => left.clone(),
            false => Rc::new(std::array::from_fn(|index| match (&left[index], &right[index]) {
                (Some(left), Some(right)) => Some(joined.value(left, right, &mut pile)),
                _ => None,
            })),
        });
        let mut state = State { pieces: pieces.collect() };
        state.escape(pile);
        state
    }

    /// Joins only what is known of one root of `other`: the state of a handler after one more change in the body of its `try`.
    pub fn absorb(&mut self, other: &State, root: Root) {
        let (Some(ours), Some(theirs)) = (self.root(root), other.root(root)) else { return };
        if ours == theirs {
            return;
        }
        let mut pile = Pile::new();
        let value = Join { left: self, right: other, ignores_aliases: true }.value(ours, theirs, &mut pile);
        self.begin(root, value);
        self.escape(pile);
    }

    /// The join of two values in this state.
    pub fn join_values(&mut self, left: &Value, right: &Value) -> Value {
        let mut pile = Pile::new();
        let value = Join { left: self, right: self, ignores_aliases: false }.value(left, right, &mut pile);
        self.escape(pile);
        value
    }

    /// The join of two values of two states, in the join of the states.
    pub fn join_with(&self, value: &Value, other: &State, theirs: &Value) -> (State, Value) {
        let mut state = self.join(other);
        let mut pile = Pile::new();
        let value = Join { left: self, right: other, ignores_aliases: false }.value(value, theirs, &mut pile);
        state.escape(pile);
        (state, value)
    }

    /// All roots alive.
    pub fn alive(&self) -> impl Iterator<Item = (Root, &Value)> {
        let values = self.pieces.iter().flat_map(|piece| piece.iter());
        values.enumerate().filter_map(|(root, value)| Some((root as Root, value.as_ref()?)))
    }
}

struct Join<'a> {
    left: &'a State,
    right: &'a State,
    /// What an alias holds is not consumed for a handler: the alias has ended when that runs.
    ignores_aliases: bool,
}

impl Join<'_> {
    fn value(&self, left: &Value, right: &Value, pile: &mut Pile) -> Value {
        if left == right {
            return left.clone();
        }
        if self.ignores_aliases {
            match (is_aliased(left), is_aliased(right)) {
                (true, false) => return right.clone(),
                (false, true) => return left.clone(),
                _ => {}
            }
        }
        match (left, right) {
            (Value::Named(a, x), Value::Named(b, y)) if a == b => {
                return Value::Named(*a, Rc::new(self.value(x, y, pile)));
            }
            (Value::Named(_, inner), other) => return self.value(inner, other, pile),
            (other, Value::Named(_, inner)) => return self.value(other, inner, pile),
            (Value::Consumed(a), Value::Consumed(b)) => {
                return Value::Consumed(Rc::new(Consumed {
                    span: if a.span.start <= b.span.start { a.span } else { b.span },
                    old: self.value(&a.old, &b.old, pile),
                    is_alias: a.is_alias && b.is_alias,
                }));
            }
            (Value::Consumed(consumed), other) => {
                let old = self.value(&consumed.old, other, pile);
                return Value::Consumed(Rc::new(Consumed { old, ..**consumed }));
            }
            (other, Value::Consumed(consumed)) => {
                let old = self.value(other, &consumed.old, pile);
                return Value::Consumed(Rc::new(Consumed { old, ..**consumed }));
            }
            (Value::Owned(a), Value::Owned(b)) => return Value::Owned(Rc::new(self.value(a, b, pile))),
            (Value::Parts(a), Value::Parts(b)) if a.members.len() == b.members.len() => {
                let members = a.members.iter().zip(&b.members);
                let members = members.map(|(a, b)| self.value(a, b, pile)).collect();
                let last = if a.last == b.last { a.last } else { None };
                return Value::Parts(Rc::new(Parts { is_union: a.is_union, last, members }));
            }
            _ => {}
        }
        left.pointed_to(pile);
        right.pointed_to(pile);
        let level = match (self.left.level(left), self.right.level(right)) {
            (Level::All, Level::All) => Level::All,
            _ => Level::None,
        };
        if matches!(left, Value::Escaped(_)) || matches!(right, Value::Escaped(_)) {
            return Value::Escaped(level);
        }
        if level == Level::All && left.is_not_zero() && right.is_not_zero() {
            return Value::NonZero;
        }
        Value::Unknown(level)
    }
}

fn is_aliased(value: &Value) -> bool {
    match value {
        Value::Consumed(consumed) => consumed.is_alias,
        Value::Named(_, inner) | Value::Owned(inner) => is_aliased(inner),
        _ => false,
    }
}

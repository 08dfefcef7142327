//! Whether an object begins like another: then a pointer to the one may lead to the other.
//!
//! The members of structures and tuples are compared one after the other, the first one opened, by types and by where they lie. Types
//! alone do not say that: what fits a word is a word in a tuple and in the place of a type parameter, but not where `int` is written,
//! the end of an opened structure may be padding, and attributes move members.

use super::Checker;
use crate::ast::Quals;
use crate::elements::{Width, width};
use crate::tree::Field;
use crate::types::layout::{Layout, Part, struct_layout};
use crate::types::{AggregateId, Kind, Pointer, Ty, TyKind};

/// A member with its place.
struct Slot {
    ty: Ty,
    quals: Quals,
    /// In bytes, where it is known.
    offset: Option<u64>,
    /// It is a word, whatever its type.
    is_word: bool,
    /// Of a bit-field.
    bits: Option<u32>,
}

impl Checker<'_> {
    /// Whether the members that `to` points to are the first ones of what `from` points to.
    pub(super) fn prefix_fits(&mut self, from: &Pointer, to: &Pointer, depth: u32) -> bool {
        if depth == 0 {
            return false;
        }
        if matches!(self.types.get(to.target), TyKind::Datatype(..)) {
            return self.constructor_fits(from.target, to.target);
        }
        // A structure that leads to itself fits if all else in it does.
        let pair = (self.types.resolve(from.target), self.types.resolve(to.target));
        if self.assumed.contains(&pair) {
            return true;
        }
        self.assumed.push(pair);
        let fits = self.members_fit(from, to, depth);
        self.assumed.pop();
        fits
    }

    fn members_fit(&mut self, from: &Pointer, to: &Pointer, depth: u32) -> bool {
        if let Some(members) = self.members_of_both(from, to) {
            return members.iter().all(|(have, want)| {
                (want.quals.is_const || !have.quals.is_const) && self.types_of_members_fit(have, want, depth)
            });
        }
        let (mut have, mut want) = (Vec::new(), Vec::new());
        self.flatten(Slot::whole(from.target, from.quals), depth, &mut have);
        self.flatten(Slot::whole(to.target, to.quals), depth, &mut want);
        let is_itself = want.len() == 1 && have.len() == 1 && want[0].ty == to.target && !to.quals.is_const;
        if have.len() < want.len() || is_itself {
            return false;
        }
        let same_structure = match (self.types.get(from.target), self.types.get(to.target)) {
            (TyKind::Aggregate(a, _), TyKind::Aggregate(b, _)) => a == b,
            _ => false,
        };
        let last = want.len().saturating_sub(1);
        want.into_iter().zip(have).enumerate().all(|(index, (want, have))| {
            if have.quals.is_const && !want.quals.is_const {
                return false;
            }
            let fits = self.types_of_members_fit(&have, &want, depth);
            fits && (same_structure || self.lies_alike(&have, &want, index == last))
        })
    }

    /// The members of one structure with two sorts of arguments, which lie where they lie; `None` if the first has members itself.
    fn members_of_both(&mut self, from: &Pointer, to: &Pointer) -> Option<Vec<(Slot, Slot)>> {
        let (TyKind::Aggregate(id, _), TyKind::Aggregate(other, _)) =
            (self.types.get(from.target), self.types.get(to.target))
        else {
            return None;
        };
        let id = *id;
        let aggregate = self.declarations.aggregate(id);
        let body = aggregate.body.as_ref()?;
        if id != *other || aggregate.is_union || !body.existentials.is_empty() {
            return None;
        }
        let mut members = Vec::with_capacity(body.fields.len());
        for index in 0..body.fields.len() {
            let have = self.member_of(id, index, from.target, from.quals);
            let want = self.member_of(id, index, to.target, to.quals);
            members.push((have, want));
        }
        let (have, want) = members.first()?;
        let is_whole =
            |slot: &Slot| !matches!(self.types.get(slot.ty), TyKind::Void | TyKind::Tuple(_) | TyKind::Aggregate(..));
        (is_whole(have) && is_whole(want)).then_some(members)
    }

    /// A member by itself, qualified as it is seen through a pointer with these qualifiers.
    fn member_of(&mut self, id: AggregateId, index: usize, whole: Ty, quals: Quals) -> Slot {
        let (ty, own) = self.member_type(whole, index);
        let is_own = quals == Quals::default() || self.agrees_exactly(id, index);
        Slot::whole(ty, if is_own { own } else { both(quals, own) })
    }

    fn types_of_members_fit(&mut self, have: &Slot, want: &Slot, depth: u32) -> bool {
        self.try_unify(have.ty, want.ty).is_ok()
            || self.same_bits(have.ty, want.ty)
            || self.constructor_fits(have.ty, want.ty)
            || want.quals.is_const && self.subtype_below(have.ty, want.ty, depth - 1)
    }

    /// An integer at the beginning of a word is as good as one by itself where nothing follows.
    fn lies_alike(&self, have: &Slot, want: &Slot, is_last: bool) -> bool {
        let same_form = have.is_word == want.is_word || have.is_word && is_last;
        have.offset.is_some()
            && have.offset == want.offset
            && have.bits == want.bits
            && (same_form || width(&self.types, have.ty) == Width::Word)
    }

    /// Whether `have` is a constructor of datatype `want`, whose size nobody knows: only what points to it can tell.
    pub(super) fn constructor_fits(&mut self, have: Ty, want: Ty) -> bool {
        match (self.types.get(have).clone(), self.types.get(want).clone()) {
            (TyKind::Constructor(a, _, left), TyKind::Datatype(b, right)) => {
                a == b && left.iter().zip(&right[..]).all(|(&a, &b)| self.try_unify(a, b).is_ok())
            }
            _ => false,
        }
    }

    /// The members of structures and tuples, one after the other; the first one opened as well. `void` has none.
    fn flatten(&mut self, whole: Slot, depth: u32, out: &mut Vec<Slot>) {
        let Slot { ty, quals, offset: start, .. } = whole;
        let members: Vec<Slot> = match self.types.get(ty).clone() {
            TyKind::Void => return,
            TyKind::Tuple(members) => {
                let slots = members.iter().map(|member| {
                    let is_word = self.types.kind(member.ty) == Kind::Boxed;
                    let quals = both(quals, member.quals);
                    let slot = Slot { ty: member.ty, quals, offset: None, is_word, bits: None };
                    (slot, self.types.component_layout(member.ty))
                });
                placed(slots.collect())
            }
            TyKind::Aggregate(id, _) => match self.plain_fields(id) {
                Some(fields) => self.slots_of(ty, id, &fields, quals),
                None => return out.push(whole),
            },
            _ => return out.push(whole),
        };
        for (index, mut member) in members.into_iter().enumerate() {
            member.offset = start.zip(member.offset).map(|(start, offset)| start + offset);
            match index {
                0 if depth > 0 => self.flatten(member, depth - 1, out),
                _ => out.push(member),
            }
        }
    }

    fn slots_of(&mut self, whole: Ty, id: AggregateId, fields: &[Field], quals: Quals) -> Vec<Slot> {
        let aggregate = self.declarations.aggregate(id);
        let moved = !aggregate.attributes.is_empty() || fields.iter().any(|field| !field.attributes.is_empty());
        let mut slots = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let Slot { ty, quals, .. } = self.member_of(id, index, whole, quals);
            let is_parameter = matches!(self.types.get(field.ty), TyKind::Var(_));
            let is_word = is_parameter && self.types.kind(field.ty) == Kind::Boxed;
            let layout = self.types.layout(if is_word { field.ty } else { ty }).filter(|_| !moved);
            slots.push((Slot { ty, quals, offset: None, is_word, bits: field.width }, layout));
        }
        placed(slots)
    }

    /// The members of a structure that is known and binds no types.
    fn plain_fields(&self, id: AggregateId) -> Option<Vec<Field>> {
        let aggregate = self.declarations.aggregate(id);
        let body = aggregate.body.as_ref()?;
        (!aggregate.is_union && body.existentials.is_empty()).then(|| body.fields.clone())
    }
}

impl Slot {
    fn whole(ty: Ty, quals: Quals) -> Slot {
        Slot { ty, quals, offset: Some(0), is_word: false, bits: None }
    }
}

/// Members with their places: those up to the first whose layout is not known.
fn placed(members: Vec<(Slot, Option<Layout>)>) -> Vec<Slot> {
    let parts = members.iter().map_while(|(slot, layout)| Some(Part { layout: (*layout)?, width: slot.bits }));
    let offsets = struct_layout(&parts.collect::<Vec<_>>()).map_or(Vec::new(), |(_, offsets)| offsets);
    let offsets = offsets.into_iter().map(Some).chain(std::iter::repeat(None));
    members.into_iter().zip(offsets).map(|((slot, _), offset)| Slot { offset, ..slot }).collect()
}

fn both(a: Quals, b: Quals) -> Quals {
    Quals {
        is_const: a.is_const || b.is_const,
        is_volatile: a.is_volatile || b.is_volatile,
        is_restrict: a.is_restrict || b.is_restrict,
    }
}

//! Unification: makes two terms equal by binding inference variables, or says which parts differ.
//!
//! Nothing is undone on failure: who goes on after one takes a [`Types::snapshot`] first. Effects are compared as sets; an
//! inference variable in a set takes what the other set has more. Names of parameters do not matter. Type parameters of
//! functions are compared up to renaming.

use super::rebuild::child;
use super::{Alias, Evar, Function, Kind, Pointer, Substitution, Ty, TyKind, TyVar, Types};

/// Why two terms cannot be made equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The innermost parts that differ: of the first term,
    pub left: Ty,
    /// and of the second.
    pub right: Ty,
    /// What differs, where that is more than the parts themselves: "qualifiers differ".
    pub reason: &'static str,
}

type Outcome = Result<(), Mismatch>;

/// Makes `left` and `right` equal.
#[inline]
pub fn unify(types: &mut Types, left: Ty, right: Ty) -> Outcome {
    if left == right {
        return Ok(());
    }
    let (left, right) = (types.head(left), types.head(right));
    if left == right { Ok(()) } else { unify_heads(types, left, right) }
}

/// Of terms that are not the same, with bound variables at their heads followed.
fn unify_heads(types: &mut Types, left: Ty, right: Ty) -> Outcome {
    let differ = |reason| Err(Mismatch { left, right, reason });
    match (types.get(left), types.get(right)) {
        (TyKind::Error, _) | (_, TyKind::Error) => Ok(()),
        (&TyKind::Evar(evar), _) => assign(types, evar, left, right),
        (_, &TyKind::Evar(evar)) => assign(types, evar, right, left),
        (TyKind::Pointer(a), TyKind::Pointer(b)) => {
            let (a, b) = (a.clone(), b.clone());
            unify_pointers(types, &a, &b, left, right)
        }
        (TyKind::Aggregate(a, args), TyKind::Aggregate(b, _)) if a == b => {
            let count = args.len();
            unify_arguments(types, left, right, count)
        }
        (TyKind::Datatype(a, args), TyKind::Datatype(b, _)) if a == b => {
            let count = args.len();
            unify_arguments(types, left, right, count)
        }
        (TyKind::Constructor(a, i, args), TyKind::Constructor(b, j, _)) if (a, i) == (b, j) => {
            let count = args.len();
            unify_arguments(types, left, right, count)
        }
        (TyKind::Opaque(a, _, args), TyKind::Opaque(b, _, _)) if a == b => {
            let count = args.len();
            unify_arguments(types, left, right, count)
        }
        (&TyKind::Place(region, aqual), _) => unify_place(types, region, aqual, right),
        (_, &TyKind::Place(region, aqual)) => unify_place(types, region, aqual, left),
        (TyKind::Join(_) | TyKind::RegionsOf(_), _) | (_, TyKind::Join(_) | TyKind::RegionsOf(_)) => {
            unify_effects(types, left, right)
        }
        (TyKind::Array(a), TyKind::Array(b)) => {
            let (a, b) = (a.clone(), b.clone());
            if a.quals != b.quals {
                return differ("qualifiers of the elements differ");
            }
            unify(types, a.element, b.element)?;
            unify(types, a.zeroterm, b.zeroterm).or(differ("one is zero-terminated and the other is not"))?;
            match (a.len, b.len) {
                (Some(a), Some(b)) => unify(types, a, b).or(differ("lengths differ")),
                _ => Ok(()),
            }
        }
        (TyKind::Function(a), TyKind::Function(b)) => {
            let (a, b) = (a.clone(), b.clone());
            unify_functions(types, &a, &b, left, right)
        }
        (TyKind::Tuple(a), TyKind::Tuple(b)) => {
            let (a, b) = (a.clone(), b.clone());
            if a.len() != b.len() {
                return differ("the tuples have different numbers of components");
            }
            for (a, b) in a.iter().zip(&b[..]) {
                if a.quals != b.quals {
                    return differ("qualifiers of components differ");
                }
                unify(types, a.ty, b.ty)?;
            }
            Ok(())
        }
        (&TyKind::Subset(a, left), &TyKind::Subset(b, right)) if a == b => unify(types, left, right),
        (&TyKind::RegionHandle(a), &TyKind::RegionHandle(b))
        | (&TyKind::TagHandle(a), &TyKind::TagHandle(b))
        | (&TyKind::AqualHandle(a), &TyKind::AqualHandle(b))
        | (&TyKind::Thin(a), &TyKind::Thin(b)) => unify(types, a, b),
        // The size may have become known since the term was made.
        (&TyKind::SizeOf(of), _) | (_, &TyKind::SizeOf(of)) => {
            let known = types.size_number(of);
            let other = if matches!(types.get(left), TyKind::SizeOf(_)) { right } else { left };
            match (types.get(known), types.get(other)) {
                (&TyKind::SizeOf(of), &TyKind::SizeOf(other)) => unify(types, of, other),
                (TyKind::SizeOf(_), _) => differ("the size is not known"),
                _ => unify(types, known, other),
            }
        }
        (&TyKind::AqualsOf(a), &TyKind::AqualsOf(b)) => unify(types, a, b),
        // An unknown type of which only the qualifier is asked: it becomes nothing by that, but its bound must fit.
        (&TyKind::AqualsOf(of), &TyKind::Aqual(alias)) | (&TyKind::Aqual(alias), &TyKind::AqualsOf(of))
            if matches!(types.get(of), TyKind::Evar(_)) && types.alias_bound(left).admits(alias) =>
        {
            Ok(())
        }
        _ => differ(""),
    }
}

/// A region with a qualifier, and another one or a mere region, which has aliasable pointers.
fn unify_place(types: &mut Types, region: Ty, aqual: Ty, other: Ty) -> Outcome {
    let (other_region, other_aqual) = match *types.get(other) {
        TyKind::Place(region, aqual) => (region, aqual),
        _ => (other, types.aquals_of(other)),
    };
    unify(types, aqual, other_aqual)?;
    unify(types, region, other_region)
}

fn unify_pointers(types: &mut Types, a: &Pointer, b: &Pointer, left: Ty, right: Ty) -> Outcome {
    let differ = |reason| Err(Mismatch { left, right, reason });
    if a.quals != b.quals {
        return differ("qualifiers of what the pointers point to differ");
    }
    unify(types, a.target, b.target)?;
    for (a, b, reason) in [
        (a.aqual, b.aqual, "alias qualifiers differ"),
        (a.region, b.region, "regions differ"),
        (a.bound, b.bound, "bounds differ"),
        (a.nullable, b.nullable, "one may be NULL and the other may not"),
        (a.zeroterm, b.zeroterm, "one is zero-terminated and the other is not"),
        (a.autoreleased, b.autoreleased, "one is autoreleased and the other is not"),
    ] {
        unify(types, a, b).or(differ(reason))?;
    }
    Ok(())
}

/// Arguments of two terms of one name. They are asked for one by one, for unifying one may bind what others have.
fn unify_arguments(types: &mut Types, left: Ty, right: Ty, count: usize) -> Outcome {
    for at in 0..count {
        if let (Some(a), Some(b)) = (argument(types, left, at), argument(types, right, at)) {
            unify(types, a, b)?;
        }
    }
    Ok(())
}

fn argument(types: &Types, of: Ty, at: usize) -> Option<Ty> {
    match types.get(of) {
        TyKind::Aggregate(_, args)
        | TyKind::Datatype(_, args)
        | TyKind::Constructor(_, _, args)
        | TyKind::Opaque(_, _, args) => args.get(at).copied(),
        _ => None,
    }
}

impl Alias {
    /// Whether a value qualified by `other` may stand where this is the bound.
    pub fn admits(self, other: Alias) -> bool {
        self == Alias::Restricted || self == other
    }
}

/// Whether a term of kind `have` may stand where kind `want` is asked for.
pub fn kind_fits(have: Kind, want: Kind) -> bool {
    have == want || matches!((have, want), (Kind::Boxed, Kind::Memory | Kind::Any) | (Kind::Memory, Kind::Any))
}

fn assign(types: &mut Types, evar: Evar, left: Ty, right: Ty) -> Outcome {
    let differ = |reason| Err(Mismatch { left, right, reason });
    let (kind, level, alias) = (types.evar_kind(evar), types.evar_level(evar), types.evar_alias(evar));
    if let TyKind::Evar(other) = *types.get(right) {
        let (kind2, level2, alias2) = (types.evar_kind(other), types.evar_level(other), types.evar_alias(other));
        let kind = match (kind_fits(kind, kind2), kind_fits(kind2, kind)) {
            (true, _) => kind,
            (_, true) => kind2,
            _ => return differ("the kinds differ"),
        };
        let alias = match (alias.admits(alias2), alias2.admits(alias)) {
            (true, _) => alias2,
            (_, true) => alias,
            _ => return differ("the alias qualifiers differ"),
        };
        types.restrict(other, level.min(level2), kind, alias);
        types.bind(evar, right);
        return Ok(());
    }
    if !kind_fits(types.kind(right), kind) {
        return differ(match kind {
            Kind::Boxed => "the type does not fit a register, as kind B asks",
            _ => "the kinds differ",
        });
    }
    // A pointer that is not known to be thin is made so: it would not fit if it became a fat one later.
    if kind == Kind::Boxed
        && let TyKind::Pointer(pointer) = types.get(right)
        && let TyKind::Evar(bound) = *types.get(pointer.bound)
    {
        let count = types.fresh(Kind::Int, types.evar_level(bound));
        let thin = types.make(TyKind::Thin(count));
        types.bind(bound, thin);
    }
    // What may only be a mere region takes the region of a place, if its pointers are aliasable.
    if let (&TyKind::Place(region, aqual), Alias::Aliasable) = (types.get(right), alias) {
        let aliasable = types.make(TyKind::Aqual(Alias::Aliasable));
        unify(types, aqual, aliasable).or(differ("pointers into this region may not be copied freely"))?;
        return unify(types, left, region);
    }
    if let TyKind::Var(var) = *types.get(right)
        && types.is_place(var)
        && alias == Alias::Aliasable
    {
        return differ("pointers into this region may not be copied freely");
    }
    if matches!(kind, Kind::Any | Kind::Memory | Kind::Boxed | Kind::Aqual) {
        let aqual = types.aquals_of(right);
        let unknown = matches!(types.get(aqual), TyKind::Evar(_));
        if !unknown && !alias.admits(types.alias_bound(aqual)) {
            return differ("what must be freely copied may not be a unique or counted pointer");
        }
        if let TyKind::Evar(qualifier) = *types.get(aqual)
            && alias != Alias::Restricted
            && kind != Kind::Aqual
        {
            let constant = types.make(TyKind::Aqual(alias));
            types.bind(qualifier, constant);
        }
    }
    adjust(types, evar, level, left, right)?;
    types.bind(evar, right);
    Ok(())
}

/// Lowers the levels of inference variables in `ty`; fails where `evar` itself or a variable bound further in occurs.
fn adjust(types: &mut Types, evar: Evar, level: u32, left: Ty, ty: Ty) -> Outcome {
    adjust_below(types, evar, level, &mut Vec::new(), left, ty)
}

fn adjust_below(types: &mut Types, evar: Evar, level: u32, bound: &mut Vec<TyVar>, left: Ty, ty: Ty) -> Outcome {
    let head = types.head(ty);
    // Without variables there is nothing in it to change, or to find.
    if types.is_fixed(head) {
        return Ok(());
    }
    match *types.get(head) {
        TyKind::Evar(other) if other == evar => {
            Err(Mismatch { left, right: head, reason: "the type would contain itself" })
        }
        TyKind::Evar(other) => {
            if types.evar_level(other) > level {
                let (kind, alias) = (types.evar_kind(other), types.evar_alias(other));
                types.restrict(other, level, kind, alias);
            }
            Ok(())
        }
        TyKind::Var(var) if types.var(var).level > level && !bound.contains(&var) => Err(Mismatch {
            left,
            right: head,
            reason: "a type variable or region would leave the place where it is bound",
        }),
        _ => {
            let before = bound.len();
            if let TyKind::Function(function) = types.get(head) {
                bound.extend(&function.type_params);
            }
            let mut at = 0;
            while let Some(child) = child(types.get(head), at) {
                adjust_below(types, evar, level, bound, left, child)?;
                at += 1;
            }
            bound.truncate(before);
            Ok(())
        }
    }
}

/// Effects are equal as sets. One inference variable on one side takes what the other side has more.
fn unify_effects(types: &mut Types, left: Ty, right: Ty) -> Outcome {
    let (mut a, mut b) = (types.effect_parts(left), types.effect_parts(right));
    let common: Vec<Ty> = a.iter().copied().filter(|part| b.contains(part)).collect();
    a.retain(|part| !common.contains(part));
    b.retain(|part| !common.contains(part));
    if a.is_empty() && b.is_empty() {
        return Ok(());
    }
    let evar_in =
        |types: &Types, parts: &[Ty]| parts.iter().position(|&part| matches!(types.get(part), TyKind::Evar(_)));
    let (taker, rest, given) = match (evar_in(types, &a), evar_in(types, &b)) {
        (Some(at), _) if a.len() == 1 || b.is_empty() => (a.remove(at), a, b),
        (_, Some(at)) => (b.remove(at), b, a),
        (Some(at), None) => (a.remove(at), a, b),
        (None, None) => return Err(Mismatch { left, right, reason: "the sets of regions differ" }),
    };
    for part in rest {
        if !matches!(types.get(part), TyKind::Evar(_)) {
            return Err(Mismatch { left, right, reason: "the sets of regions differ" });
        }
        let nothing = types.join([]);
        unify(types, part, nothing)?;
    }
    let given = types.join(given);
    unify(types, taker, given)
}

fn unify_functions(types: &mut Types, a: &Function, b: &Function, left: Ty, right: Ty) -> Outcome {
    let differ = |reason| Err(Mismatch { left, right, reason });
    if a.type_params.len() != b.type_params.len() {
        return differ("the functions have different numbers of type parameters");
    }
    if a.params.len() != b.params.len() || a.c_varargs != b.c_varargs || a.varargs.is_some() != b.varargs.is_some() {
        return differ("the functions take different numbers of arguments");
    }
    let mut map = Substitution::default();
    for (&ours, &theirs) in a.type_params.iter().zip(&b.type_params) {
        if types.var(ours).kind != types.var(theirs).kind || types.is_place(ours) != types.is_place(theirs) {
            return differ("the kinds of type parameters differ");
        }
        map.insert(theirs, types.make(TyKind::Var(ours)));
    }
    let result = types.substitute(b.result, &map);
    unify(types, a.result, result)?;
    for (ours, theirs) in a.params.iter().zip(&b.params) {
        let ty = types.substitute(theirs.ty, &map);
        unify(types, ours.ty, ty)?;
    }
    if let (Some(ours), Some(theirs)) = (&a.varargs, &b.varargs) {
        let ty = types.substitute(theirs.ty, &map);
        unify(types, ours.ty, ty)?;
        if ours.inject != theirs.inject {
            return differ("one function injects its variable arguments and the other does not");
        }
    }
    let effect = types.substitute(b.effect, &map);
    unify(types, a.effect, effect).or(differ("the effects of the functions differ"))?;
    let (ours, theirs) = (&a.attributes, &b.attributes);
    if ours.noreturn != theirs.noreturn || !ours.keeps(theirs) || !theirs.keeps(ours) {
        return differ("the attributes of the functions differ");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::IntSize;
    use crate::types::Signedness;
    use std::rc::Rc;

    fn int(types: &mut Types) -> Ty {
        types.make(TyKind::Int(Signedness::Signed, IntSize::Int))
    }

    #[test]
    fn a_variable_takes_the_other_side_and_gives_it_back_on_rollback() {
        let mut types = Types::default();
        let variable = types.fresh(Kind::Memory, 0);
        let int = int(&mut types);
        let snapshot = types.snapshot();
        unify(&mut types, variable, int).unwrap();
        assert_eq!(types.head(variable), int);
        types.rollback(snapshot);
        assert_eq!(types.head(variable), variable);
    }

    #[test]
    fn a_type_never_contains_itself() {
        let mut types = Types::default();
        let variable = types.fresh(Kind::Memory, 0);
        let tuple = types.make(TyKind::Tuple(Rc::new([super::super::Member {
            name: None,
            ty: variable,
            quals: Default::default(),
        }])));
        assert!(unify(&mut types, variable, tuple).is_err());
    }

    #[test]
    fn a_region_does_not_leave_its_block() {
        let mut types = Types::default();
        let outside = types.fresh(Kind::Effect, 1);
        let block = types.new_var(super::super::TyVarInfo {
            name: crate::symbol::Symbol::new("`L"),
            kind: Kind::Effect,
            alias: Alias::Aliasable,
            level: 2,
            span: Default::default(),
        });
        let block = types.make(TyKind::Var(block));
        assert!(unify(&mut types, outside, block).is_err());
        let inside = types.fresh(Kind::Effect, 2);
        unify(&mut types, inside, block).unwrap();
    }

    #[test]
    fn an_effect_variable_takes_what_the_other_set_has_more() {
        let mut types = Types::default();
        let heap = types.make(TyKind::Heap);
        let region = types.fresh(Kind::Effect, 0);
        let rest = types.fresh(Kind::Effect, 0);
        let left = types.join([heap, region]);
        let right = types.join([heap, rest]);
        unify(&mut types, left, right).unwrap();
        assert_eq!(types.head(region), types.head(rest));
    }
}

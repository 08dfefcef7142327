//! Terms from terms: what stands below one, and the same term with other parts.

use super::{Constraint, Firmness, Function, Pointer, Ty, TyKind, TyVar, Types};
use std::rc::Rc;

/// What type variables stand for. Few have more than a handful of them.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    of: Option<Arguments>,
    more: Vec<(TyVar, Ty)>,
}

/// Parameters of a type, and its arguments for them.
#[derive(Clone, Debug)]
struct Arguments {
    params: Rc<[TyVar]>,
    args: Rc<[Ty]>,
}

impl Substitution {
    /// Each parameter with its argument.
    pub fn of(params: &Rc<[TyVar]>, args: &Rc<[Ty]>) -> Substitution {
        let of = || Arguments { params: params.clone(), args: args.clone() };
        Substitution { of: (!params.is_empty()).then(of), more: Vec::new() }
    }

    /// `var` stands for `ty` from here on.
    pub fn insert(&mut self, var: TyVar, ty: Ty) {
        self.more.push((var, ty));
    }

    fn is_empty(&self) -> bool {
        self.more.is_empty() && self.of.is_none()
    }

    /// What `var` stands for: what was said last.
    pub fn get(&self, var: TyVar) -> Option<Ty> {
        let later = self.more.iter().rev().find(|(known, _)| *known == var).map(|(_, ty)| *ty);
        later.or_else(|| {
            let Arguments { params, args } = self.of.as_ref()?;
            args.get(params.iter().rposition(|known| *known == var)?).copied()
        })
    }
}

impl FromIterator<(TyVar, Ty)> for Substitution {
    fn from_iter<I: IntoIterator<Item = (TyVar, Ty)>>(pairs: I) -> Substitution {
        Substitution { of: None, more: pairs.into_iter().collect() }
    }
}

impl Extend<(TyVar, Ty)> for Substitution {
    fn extend<I: IntoIterator<Item = (TyVar, Ty)>>(&mut self, pairs: I) {
        self.more.extend(pairs);
    }
}

impl Types {
    /// `ty` with type variables replaced.
    pub fn substitute(&mut self, ty: Ty, map: &Substitution) -> Ty {
        if map.is_empty() { ty } else { self.rebuild(ty, map) }
    }

    /// `ty` with all bound inference variables replaced by what they are bound to, everywhere.
    pub fn resolve(&mut self, ty: Ty) -> Ty {
        self.rebuild(ty, &Substitution::default())
    }

    #[inline]
    fn rebuild(&mut self, ty: Ty, map: &Substitution) -> Ty {
        let enough = if map.is_empty() { Firmness::Settled } else { Firmness::Fixed };
        if self.firmness[ty.index()] >= enough {
            return ty;
        }
        let ty = self.head(ty);
        if self.firmness[ty.index()] >= enough { ty } else { self.rebuild_open(ty, map) }
    }

    /// A term with the same children is the same term, and is not made again: most are.
    fn rebuild_open(&mut self, ty: Ty, map: &Substitution) -> Ty {
        match &self.terms[ty.0 as usize] {
            TyKind::Var(var) => map.get(*var).unwrap_or(ty),
            TyKind::Pointer(pointer) => {
                let pointer = pointer.clone();
                self.rebuild_pointer(ty, &pointer, map)
            }
            TyKind::RegionsOf(of) => {
                let of = *of;
                let new = self.rebuild(of, map);
                let part = self.make(TyKind::RegionsOf(new));
                self.join([part])
            }
            TyKind::AqualsOf(of) => {
                let of = *of;
                let of = self.rebuild(of, map);
                self.aquals_of(of)
            }
            TyKind::SizeOf(of) => {
                let of = *of;
                let of = self.rebuild(of, map);
                self.size_number(of)
            }
            _ => self.rebuild_children(ty, map),
        }
    }

    fn rebuild_pointer(&mut self, ty: Ty, old: &Pointer, map: &Substitution) -> Ty {
        let mut pointer = Pointer {
            target: self.rebuild(old.target, map),
            quals: old.quals,
            region: self.rebuild(old.region, map),
            aqual: self.rebuild(old.aqual, map),
            nullable: self.rebuild(old.nullable, map),
            bound: self.rebuild(old.bound, map),
            zeroterm: self.rebuild(old.zeroterm, map),
            autoreleased: self.rebuild(old.autoreleased, map),
        };
        // A pointer into a place points into its region and has its qualifier.
        match *self.get(pointer.region) {
            TyKind::Place(region, aqual) => (pointer.region, pointer.aqual) = (region, aqual),
            TyKind::Var(var) if self.is_place(var) => pointer.aqual = self.aquals_of(pointer.region),
            _ => {}
        }
        if pointer == *old { ty } else { self.make(TyKind::Pointer(pointer)) }
    }

    fn rebuild_children(&mut self, ty: Ty, map: &Substitution) -> Ty {
        let mut new: Option<TyKind> = None;
        let mut at = 0;
        while let Some(old) = child(&self.terms[ty.0 as usize], at) {
            let rebuilt = self.rebuild(old, map);
            if rebuilt != old {
                let kind = new.get_or_insert_with(|| self.terms[ty.0 as usize].clone());
                set_child(kind, at, rebuilt);
            }
            at += 1;
        }
        match new {
            None => ty,
            Some(TyKind::Join(parts)) => self.join(parts.iter().copied()),
            Some(kind) => self.make(kind),
        }
    }

    /// `function` with type variables replaced, those that it binds as well.
    pub fn substitute_function(&mut self, function: &Function, map: &Substitution) -> Function {
        let mut function = function.clone();
        let mut at = 0;
        while let Some(old) = function.child(at) {
            let new = self.rebuild(old, map);
            function.set_child(at, new);
            at += 1;
        }
        function
    }

    /// `constraint` with type variables replaced.
    pub fn substitute_constraint(&mut self, constraint: &Constraint, map: &Substitution) -> Constraint {
        let mut part = |ty| self.rebuild(ty, map);
        match *constraint {
            Constraint::Subset(a, b) => Constraint::Subset(part(a), part(b)),
            Constraint::Disjoint(a, b) => Constraint::Disjoint(part(a), part(b)),
            Constraint::AqualBound(a, b) => Constraint::AqualBound(part(a), part(b)),
            Constraint::Single(a) => Constraint::Single(part(a)),
        }
    }
}

/// The terms just below a term.
pub fn children(kind: &TyKind) -> impl Iterator<Item = Ty> {
    (0..).map_while(|at| child(kind, at))
}

/// The term at place `at` just below a term.
pub(super) fn child(kind: &TyKind, at: usize) -> Option<Ty> {
    match kind {
        TyKind::Pointer(p) => match at {
            0 => Some(p.target),
            1 => Some(p.region),
            2 => Some(p.aqual),
            3 => Some(p.nullable),
            4 => Some(p.bound),
            5 => Some(p.zeroterm),
            6 => Some(p.autoreleased),
            _ => None,
        },
        TyKind::Array(array) => match (at, array.len) {
            (0, _) => Some(array.element),
            (1, _) => Some(array.zeroterm),
            (2, len) => len,
            _ => None,
        },
        TyKind::Function(function) => function.child(at),
        TyKind::Tuple(members) => members.get(at).map(|member| member.ty),
        TyKind::Aggregate(_, args)
        | TyKind::Datatype(_, args)
        | TyKind::Constructor(_, _, args)
        | TyKind::Opaque(_, _, args)
        | TyKind::Join(args) => args.get(at).copied(),
        TyKind::RegionsOf(of)
        | TyKind::AqualsOf(of)
        | TyKind::RegionHandle(of)
        | TyKind::TagHandle(of)
        | TyKind::AqualHandle(of)
        | TyKind::SizeOf(of)
        | TyKind::Subset(_, of)
        | TyKind::Thin(of) => (at == 0).then_some(*of),
        TyKind::Place(region, aqual) => [*region, *aqual].get(at).copied(),
        _ => None,
    }
}

/// Replaces what [`child`] gives for the same place. Pointers have a way of their own.
fn set_child(kind: &mut TyKind, at: usize, ty: Ty) {
    match kind {
        TyKind::Array(array) => match at {
            0 => array.element = ty,
            1 => array.zeroterm = ty,
            _ => array.len = Some(ty),
        },
        TyKind::Function(function) => Rc::make_mut(function).set_child(at, ty),
        TyKind::Tuple(members) => Rc::make_mut(members)[at].ty = ty,
        TyKind::Aggregate(_, args)
        | TyKind::Datatype(_, args)
        | TyKind::Constructor(_, _, args)
        | TyKind::Opaque(_, _, args)
        | TyKind::Join(args) => Rc::make_mut(args)[at] = ty,
        TyKind::RegionsOf(of)
        | TyKind::AqualsOf(of)
        | TyKind::RegionHandle(of)
        | TyKind::TagHandle(of)
        | TyKind::AqualHandle(of)
        | TyKind::SizeOf(of)
        | TyKind::Subset(_, of)
        | TyKind::Thin(of) => *of = ty,
        TyKind::Place(region, aqual) => *(if at == 0 { region } else { aqual }) = ty,
        _ => {}
    }
}

impl Function {
    /// Result, effect, parameters, variable arguments, two places for each constraint.
    fn child(&self, at: usize) -> Option<Ty> {
        let Some(at) = at.checked_sub(2) else {
            return Some(if at == 0 { self.result } else { self.effect });
        };
        let Some(at) = at.checked_sub(self.params.len()) else { return Some(self.params[at].ty) };
        let at = match &self.varargs {
            Some(varargs) => match at.checked_sub(1) {
                None => return Some(varargs.ty),
                Some(at) => at,
            },
            None => at,
        };
        Some(match *self.constraints.get(at / 2)? {
            Constraint::Subset(a, b) | Constraint::Disjoint(a, b) | Constraint::AqualBound(a, b) => [a, b][at % 2],
            Constraint::Single(a) => a,
        })
    }

    fn set_child(&mut self, at: usize, ty: Ty) {
        let Some(at) = at.checked_sub(2) else {
            let part = if at == 0 { &mut self.result } else { &mut self.effect };
            *part = ty;
            return;
        };
        let Some(at) = at.checked_sub(self.params.len()) else {
            self.params[at].ty = ty;
            return;
        };
        let at = match &mut self.varargs {
            Some(varargs) => match at.checked_sub(1) {
                None => {
                    varargs.ty = ty;
                    return;
                }
                Some(at) => at,
            },
            None => at,
        };
        match &mut self.constraints[at / 2] {
            Constraint::Subset(a, b) | Constraint::Disjoint(a, b) | Constraint::AqualBound(a, b) => {
                *[a, b][at % 2] = ty;
            }
            Constraint::Single(a) => *a = ty,
        }
    }
}

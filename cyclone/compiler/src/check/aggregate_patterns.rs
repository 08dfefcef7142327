//! Patterns of tuples, structures and tagged unions, and of packages that hide types.

use super::patterns::{Bindings, Way};
use super::{Checker, ast};
use crate::ast::{Designator, FieldPattern};
use crate::diagnostics::Code;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Pattern, PatternKind};
use crate::types::{AggregateId, Constraint, Kind, Quals, Substitution, Ty, TyKind, TyVar, TyVarInfo};
use thin_vec::ThinVec;

impl Checker<'_> {
    pub(super) fn tuple_pattern(
        &mut self,
        fields: &[FieldPattern],
        open: bool,
        ty: Ty,
        way: Way,
        span: Span,
        out: &mut Bindings,
    ) -> PatternKind {
        if matches!(self.types.get(ty), TyKind::Evar(_)) && !open {
            let members = (0..fields.len())
                .map(|_| crate::types::Member { name: None, ty: self.fresh(Kind::Memory), quals: Quals::default() })
                .collect();
            let tuple = self.make(TyKind::Tuple(members));
            self.expect_pattern_type(ty, tuple, span);
        }
        let members = match self.types.get(ty).clone() {
            TyKind::Tuple(members) => members,
            TyKind::Error => return PatternKind::Wild,
            _ => {
                let shown = self.show(ty);
                return self.wrong_pattern(span, format!("the pattern is for a tuple, and not for `{shown}`"));
            }
        };
        let wrong_number = if open { fields.len() > members.len() } else { fields.len() != members.len() };
        if wrong_number {
            self.error(
                Code::BadPattern,
                span,
                format!("the tuple has {} components, the pattern {}", members.len(), fields.len()),
            );
        }
        let mut parts = ThinVec::new();
        for (index, field) in fields.iter().enumerate() {
            let index = match field.designators.as_slice() {
                [] => index,
                [Designator::Index(at)] => match self.constant_ast(at) {
                    Some(at) => usize::try_from(at).unwrap_or(usize::MAX),
                    None => index,
                },
                _ => {
                    self.error(Code::BadPattern, field.pattern.span, "a tuple's components have no names");
                    index
                }
            };
            let Some(member) = members.get(index) else { continue };
            let below = Way { quals: union(way.quals, member.quals), zeroterm: None, ..way };
            parts.push((index, self.sub_pattern(&field.pattern, member.ty, below, out)));
        }
        PatternKind::Tuple(parts)
    }

    pub(super) fn struct_pattern(
        &mut self,
        path: Option<&ast::Path>,
        (types, fields, open): (&[ast::Type], &[FieldPattern], bool),
        ty: Ty,
        way: Way,
        span: Span,
        out: &mut Bindings,
    ) -> PatternKind {
        let id = match (path, self.types.get(ty)) {
            (Some(path), _) => match self.lookup_aggregate(path) {
                Some(id) => id,
                None => {
                    return self.wrong_pattern(path.span, format!("there is no structure `{}` here", path.name));
                }
            },
            (None, TyKind::Aggregate(id, _)) => *id,
            (None, TyKind::Error) => return PatternKind::Wild,
            (None, TyKind::Evar(_)) => {
                return self.wrong_pattern(span, "which structure this is a pattern for is not known".to_owned());
            }
            (None, _) => {
                let shown = self.show(ty);
                return self.wrong_pattern(span, format!("the pattern is for a structure, and not for `{shown}`"));
            }
        };
        self.aggregate_pattern(id, (types, fields, open), ty, way, span, out)
    }

    pub(super) fn aggregate_pattern(
        &mut self,
        id: AggregateId,
        (types, fields, open): (&[ast::Type], &[FieldPattern], bool),
        ty: Ty,
        way: Way,
        span: Span,
        out: &mut Bindings,
    ) -> PatternKind {
        let params = self.declarations.aggregate(id).params.clone();
        let args = match self.types.get(ty) {
            TyKind::Aggregate(other, args) if *other == id => args.clone(),
            _ => {
                let args = self.unknown_arguments(&params);
                let aggregate = self.make(TyKind::Aggregate(id, args.clone()));
                self.expect_pattern_type(ty, aggregate, span);
                args
            }
        };
        let aggregate = self.declarations.aggregate(id);
        let (is_union, is_tagged) = (aggregate.is_union, aggregate.is_tagged);
        let Some(body) = &aggregate.body else {
            let shown = self.show(ty);
            return self.wrong_pattern(span, format!("the members of `{shown}` are not known here"));
        };
        let existentials = body.existentials.clone();
        let constraints = body.constraints.clone();
        let names: Vec<Option<Symbol>> = body.fields.iter().map(|field| field.name).collect();
        let described: Vec<(Ty, Quals)> = body.fields.iter().map(|field| (field.ty, field.quals)).collect();
        if is_union && !is_tagged {
            return self.wrong_pattern(
                span,
                "which member of a union is the last one written is only known if it is `@tagged`".to_owned(),
            );
        }
        let mut map = Substitution::of(&params, &args);
        let opened = self.open_package(&existentials, types, span, &mut map, out);
        for constraint in constraints {
            let constraint = self.substitute_constraint(constraint, &map);
            out.constraints.push(constraint);
        }
        // A whole structure of unknown size cannot be overwritten, so that what was opened stays true of it.
        let is_fixed = existentials.is_empty() || described.iter().any(|&(field, _)| self.has_unknown_size(field));
        let below = Way { may_refer: way.may_refer && !is_tagged && is_fixed, zeroterm: None, ..way };
        let mut parts: ThinVec<(usize, Pattern)> = ThinVec::new();
        let mut next = 0;
        for field in fields {
            let Some(index) = self.designated(field, &names, &mut next) else { continue };
            if parts.iter().any(|(other, _)| *other == index) {
                self.error(Code::BadPattern, field.pattern.span, "the member has two patterns");
                continue;
            }
            let (field_ty, quals) = described[index];
            let field_ty = self.types.substitute(field_ty, &map);
            let below = Way { quals: union(way.quals, quals), ..below };
            parts.push((index, self.sub_pattern(&field.pattern, field_ty, below, out)));
        }
        if is_union {
            let (1, Some((index, part))) = (fields.len(), parts.pop()) else {
                return self.wrong_pattern(span, "the pattern for a tagged union names exactly one member".to_owned());
            };
            return PatternKind::Tagged(index, Box::new(part));
        }
        if !open {
            let missing = names
                .iter()
                .enumerate()
                .find_map(|(index, name)| name.filter(|_| !parts.iter().any(|(other, _)| *other == index)));
            if let Some(missing) = missing {
                self.error(
                    Code::BadPattern,
                    span,
                    format!("the pattern says nothing of member `{missing}`; end it with `...`"),
                );
            }
        }
        PatternKind::Struct(opened, parts)
    }

    /// An array whose length is a number at the level of types.
    pub(super) fn has_unknown_size(&self, ty: Ty) -> bool {
        match self.types.get(ty) {
            TyKind::Array(array) => array.len.is_some_and(|len| !matches!(self.types.get(len), TyKind::Nat(_))),
            _ => false,
        }
    }

    /// The index of the member that a part of a structure's pattern is for.
    pub(super) fn designated(
        &mut self,
        field: &FieldPattern,
        names: &[Option<Symbol>],
        next: &mut usize,
    ) -> Option<usize> {
        let found = match field.designators.as_slice() {
            [] => {
                while names.get(*next).is_some_and(|name| name.is_none()) {
                    *next += 1;
                }
                Some(*next).filter(|&at| at < names.len())
            }
            [Designator::Field(name)] => names.iter().position(|other| *other == Some(name.name)),
            _ => None,
        };
        match found {
            Some(index) => *next = index + 1,
            None => self.error(Code::BadPattern, field.pattern.span, "the structure has no such member"),
        }
        found
    }

    /// Fresh type variables for those that a package hides, named by the user or not.
    pub(super) fn open_package(
        &mut self,
        existentials: &[TyVar],
        types: &[ast::Type],
        span: Span,
        map: &mut Substitution,
        out: &mut Bindings,
    ) -> ThinVec<TyVar> {
        if types.len() > existentials.len() {
            self.error(
                Code::BadPattern,
                span,
                format!("the structure hides {} types, the pattern names {}", existentials.len(), types.len()),
            );
        }
        let level = self.level();
        let mut opened = ThinVec::new();
        for (index, &hidden) in existentials.iter().enumerate() {
            let info = self.types.var(hidden).clone();
            let (name, span) = match types.get(index).map(|ty| (&ty.kind, ty.span)) {
                Some((ast::TypeKind::Var(var), _)) => (var.name, var.span),
                Some((ast::TypeKind::Infer(_), span)) => (info.name, span),
                Some((_, span)) => {
                    self.error(Code::BadPattern, span, "a package is opened with new type variables");
                    (info.name, span)
                }
                None => (info.name, span),
            };
            let var = self.types.new_var(TyVarInfo { name, level, span, ..info });
            self.types.set_place(var, self.types.is_place(hidden));
            if index < types.len() {
                self.bind_tyvar(name, var);
                out.tyvars.push((name, var));
            }
            let ty = self.make(TyKind::Var(var));
            map.insert(hidden, ty);
            opened.push(var);
        }
        opened
    }

    pub(super) fn substitute_constraint(&mut self, constraint: Constraint, map: &Substitution) -> Constraint {
        let mut apply = |ty| self.types.substitute(ty, map);
        match constraint {
            Constraint::Subset(a, b) => Constraint::Subset(apply(a), apply(b)),
            Constraint::Disjoint(a, b) => Constraint::Disjoint(apply(a), apply(b)),
            Constraint::Single(a) => Constraint::Single(apply(a)),
            Constraint::AqualBound(a, b) => Constraint::AqualBound(apply(a), apply(b)),
        }
    }
}

/// The qualifiers of either.
pub(super) fn union(a: Quals, b: Quals) -> Quals {
    Quals {
        is_const: a.is_const || b.is_const,
        is_volatile: a.is_volatile || b.is_volatile,
        is_restrict: a.is_restrict || b.is_restrict,
    }
}

//! Initialisers: braces, designators, strings that fill arrays.
//!
//! Braces around the parts of arrays and structures inside may be left out, as in C. What is not named becomes zero, which must
//! be a value of its type: a pointer that is never null has to be given.

use super::Checker;
use super::coerce::is_zero;
use super::expressions::{is_character, string_codes};
use crate::ast::{self, Designator, ExprKind as Ast, Quals, UnOp};
use crate::diagnostics::Code;
use crate::source::Span;
use crate::tree::{Expr, ExprKind, Init, InitList};
use crate::types::{AggregateId, Alias, Array, Kind, Substitution, Ty, TyKind};
use std::rc::Rc;
use thin_vec::{ThinVec, thin_vec};

/// One part of braces: where it goes, and what.
type Item = (ThinVec<Designator>, ast::Expr);

/// Parts of braces that are still to be placed.
struct Items<'a> {
    parts: Vec<(&'a [Designator], &'a ast::Expr)>,
    at: usize,
}

impl<'a> Items<'a> {
    fn new(list: &'a [Item]) -> Items<'a> {
        Items { parts: list.iter().map(|(designators, expr)| (&designators[..], expr)).collect(), at: 0 }
    }

    fn one(designators: &'a [Designator], expr: &'a ast::Expr) -> Items<'a> {
        Items { parts: vec![(designators, expr)], at: 0 }
    }

    fn first(&self) -> Option<(&'a [Designator], &'a ast::Expr)> {
        self.parts.get(self.at).copied()
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    /// The first part has come to where its designators lead: what it and those after it fill is decided from there.
    fn arrive(&mut self) {
        if let Some((designators, _)) = self.parts.get_mut(self.at) {
            *designators = &[];
        }
    }
}

impl Checker<'_> {
    /// The initial value of an object of type `ty`. The type comes back with its length, if it is an array without one.
    pub fn initialiser(&mut self, expr: &ast::Expr, ty: Ty) -> (Init, Ty) {
        let target = self.types.get(ty).clone();
        match (&expr.kind, target) {
            (Ast::Init(list), TyKind::Array(array)) => self.array_braces(Items::new(list), array, expr.span),
            (Ast::Init(list), TyKind::Aggregate(..) | TyKind::Tuple(_)) => {
                let init = self.list_for(Items::new(list), ty, expr.span);
                (init, ty)
            }
            (Ast::Init(list), TyKind::Subset(..)) => {
                let value = self.braces(list, Some(self.base_of(ty)), expr.span);
                (Init::Value(self.coerce(value, ty, expr.span)), ty)
            }
            (Ast::Init(list), TyKind::Evar(_)) => {
                let value = self.braces(list, None, expr.span);
                let value = self.coerce(value, ty, expr.span);
                (unwrap_aggregate(value), ty)
            }
            (Ast::Init(list), _) => match &list[..] {
                [(designators, only)] if designators.is_empty() => self.initialiser(only, ty),
                _ => {
                    let shown = self.show(ty);
                    let wrong =
                        self.wrong(Code::WrongType, expr.span, format!("braces do not make a value of type `{shown}`"));
                    (Init::Value(wrong), ty)
                }
            },
            (Ast::Str(parts, false), TyKind::Array(array)) if is_character(self.types.get(array.element)) => {
                let bytes = string_codes(parts, false).into_iter().map(|code| code as u8).collect();
                self.string_array(bytes, array, expr.span)
            }
            (Ast::For(..) | Ast::ForType(..), TyKind::Array(array)) => self.array_comprehension(expr, array),
            _ => {
                let value = self.value(expr, Some(ty));
                let value = self.coerce(value, ty, expr.span);
                self.check_consumed(&value);
                (unwrap_aggregate(value), ty)
            }
        }
    }

    /// A value where braces may stand for one of type `ty`: arguments, right sides of assignments.
    pub fn braces_or_value(&mut self, expr: &ast::Expr, ty: Ty) -> Expr {
        match &expr.kind {
            Ast::Init(list) => self.braces(list, Some(ty), expr.span),
            _ => self.value(expr, Some(ty)),
        }
    }

    /// `{..}` as an expression: of the type that is wanted, or an array of what stands in it.
    pub fn braces(&mut self, list: &[Item], expected: Option<Ty>, span: Span) -> Expr {
        match expected.map(|ty| (ty, self.types.get(ty).clone())) {
            Some((ty, TyKind::Aggregate(..) | TyKind::Tuple(_) | TyKind::Array(_))) => {
                self.braces_value(list, ty, span)
            }
            _ => {
                let element = self.types.fresh_bounded(Kind::Any, self.level(), Alias::Restricted);
                let zeroterm = self.truth(false);
                let ty = self.make(TyKind::Array(Array { element, quals: Quals::default(), len: None, zeroterm }));
                self.braces_value(list, ty, span)
            }
        }
    }

    /// `(T){..}` and `S{..}`: an object with this initial value.
    pub fn braces_value(&mut self, list: &[Item], ty: Ty, span: Span) -> Expr {
        let (init, ty) = match self.types.get(ty).clone() {
            TyKind::Array(array) => self.array_braces(Items::new(list), array, span),
            TyKind::Aggregate(..) | TyKind::Tuple(_) => (self.list_for(Items::new(list), ty, span), ty),
            _ => match list {
                [(designators, only)] if designators.is_empty() => self.initialiser(only, ty),
                _ => {
                    let shown = self.show(ty);
                    let wrong = self.wrong(Code::WrongType, span, format!("braces do not make a `{shown}`"));
                    return wrong;
                }
            },
        };
        Expr { kind: ExprKind::Aggregate(Box::new(init)), ty, span }
    }

    fn array_braces(&mut self, mut items: Items<'_>, array: Array, span: Span) -> (Init, Ty) {
        if let ([(designators, only)], true) = (&items.parts[..], is_character(self.types.get(array.element)))
            && designators.is_empty()
            && matches!(only.kind, Ast::Str(_, false))
        {
            let ty = self.make(TyKind::Array(array));
            return self.initialiser(only, ty);
        }
        let (entries, len) = self.array_entries(&mut items, &array, true);
        let full = array.len.is_none_or(|have| matches!(self.types.get(have), TyKind::Nat(have) if *have == len));
        if let (true, Some(last)) = (self.is_true(array.zeroterm), items.parts.last())
            && full
        {
            let zero = match entries.last() {
                Some((_, Init::Value(value))) => is_zero(value) || matches!(value.kind, ExprKind::Null),
                _ => false,
            };
            if !zero {
                self.error(Code::WrongType, last.1.span, "a zero-terminated array ends with zero");
            }
        }
        let len = match array.len {
            Some(len) => len,
            None => self.make(TyKind::Nat(len)),
        };
        if let TyKind::Nat(count) = *self.types.get(len)
            && (entries.len() as u64) < count
        {
            self.check_zeroable(array.element, span, "the elements that are left out");
        }
        let ty = self.make(TyKind::Array(Array { len: Some(len), ..array }));
        (Init::List(InitList { ty, existentials: ThinVec::new(), entries, span }), ty)
    }

    /// Elements from `items`; with `all` what is left over is an error, otherwise it is left for the parts that follow.
    fn array_entries(&mut self, items: &mut Items<'_>, array: &Array, all: bool) -> (ThinVec<(u64, Init)>, u64) {
        let limit = array.len.and_then(|len| match self.types.get(len) {
            TyKind::Nat(count) => Some(*count),
            _ => None,
        });
        let mut entries = ThinVec::new();
        let (mut at, mut len) = (0u64, 0u64);
        loop {
            if !all && limit.is_some_and(|limit| at >= limit) {
                break;
            }
            let Some((designators, expr)) = items.first() else { break };
            let mut inner: &[Designator] = &[];
            match designators.split_first() {
                Some(_) if !all => break,
                Some((Designator::Index(index), rest)) => {
                    let index_value = self.value(index, None);
                    match self.constant(&index_value).and_then(|index| u64::try_from(index).ok()) {
                        Some(index) => at = index,
                        None => self.error(Code::WrongType, index.span, "the index of an element is a constant"),
                    }
                    inner = rest;
                }
                Some((Designator::Field(name), _)) => {
                    self.error(Code::WrongType, name.span, "elements of an array have no names");
                }
                None => {}
            }
            if limit.is_some_and(|limit| at >= limit) {
                self.error(Code::WrongType, expr.span, "the array has fewer elements");
                items.advance();
                continue;
            }
            let init = self.part(items, array.element, inner);
            put(&mut entries, at, init);
            at = at.saturating_add(1);
            len = len.max(at);
        }
        (entries, len)
    }

    /// One part of braces, of type `ty`: its own braces, a value, or as many of the following as it takes.
    fn part(&mut self, items: &mut Items<'_>, ty: Ty, designators: &[Designator]) -> Init {
        let Some((_, expr)) = items.first() else {
            return Init::Value(Expr::error(&mut self.types, Span::default()));
        };
        if !designators.is_empty() {
            items.advance();
            return self.list_for(Items::one(designators, expr), ty, expr.span);
        }
        items.arrive();
        let scalar = matches!(
            expr.kind,
            Ast::Int(_)
                | Ast::Float(_)
                | Ast::Char(..)
                | Ast::Str(..)
                | Ast::Null
                | Ast::Unary(UnOp::Minus | UnOp::Plus | UnOp::Not | UnOp::Complement, _)
                | Ast::Binary(..)
        );
        match self.types.get(ty).clone() {
            TyKind::Array(array) if !matches!(expr.kind, Ast::Init(_) | Ast::For(..) | Ast::ForType(..)) => {
                let string = matches!(expr.kind, Ast::Str(..)) && is_character(self.types.get(array.element));
                if !string {
                    let span = expr.span;
                    let (entries, _) = self.array_entries(items, &array, false);
                    return Init::List(InitList { ty, existentials: ThinVec::new(), entries, span });
                }
            }
            TyKind::Aggregate(id, args) if scalar => {
                let span = expr.span;
                return self.aggregate_with(items, id, &args, ty, &[], false, span);
            }
            _ => {}
        }
        items.advance();
        self.initialiser(expr, ty).0
    }

    /// Braces for a structure, union or tuple.
    fn list_for(&mut self, mut items: Items<'_>, ty: Ty, span: Span) -> Init {
        match self.types.get(ty).clone() {
            TyKind::Aggregate(id, args) => {
                let init = self.aggregate_with(&mut items, id, &args, ty, &[], true, span);
                if let Some((_, extra)) = items.first() {
                    self.error(Code::WrongArguments, extra.span, "there are fewer members");
                }
                init
            }
            TyKind::Tuple(members) => {
                let have = items.parts.len();
                if members.len() != have {
                    let want = members.len();
                    self.error(Code::WrongArguments, span, format!("the tuple has {want} components, not {have}"));
                }
                let mut entries = ThinVec::new();
                for (index, member) in members.iter().enumerate().take(have) {
                    entries.push((index as u64, self.part(&mut items, member.ty, &[])));
                }
                Init::List(InitList { ty, existentials: ThinVec::new(), entries, span })
            }
            TyKind::Array(array) => self.array_braces(items, array, span).0,
            _ => {
                let shown = self.show(ty);
                Init::Value(self.wrong(Code::WrongType, span, format!("`{shown}` has no members")))
            }
        }
    }

    /// Members from `items`; without `all`, as many as there are. `witnesses` are for what the aggregate binds.
    #[allow(clippy::too_many_arguments, reason = "an aggregate, and what is known of it")]
    fn aggregate_with(
        &mut self,
        items: &mut Items<'_>,
        id: AggregateId,
        args: &[Ty],
        ty: Ty,
        witnesses: &[Ty],
        all: bool,
        span: Span,
    ) -> Init {
        let aggregate = self.declarations.aggregate(id);
        let is_union = aggregate.is_union;
        let Some(body) = &aggregate.body else {
            let shown = self.show(ty);
            return Init::Value(self.wrong(Code::Incomplete, span, format!("the members of `{shown}` are not known")));
        };
        let (bound, constraints, count) = (body.existentials.clone(), body.constraints.clone(), body.fields.len());
        let mut map = Substitution::default();
        let mut existentials = ThinVec::with_capacity(bound.len());
        for (index, &var) in bound.iter().enumerate() {
            let unknown = self.unknown_for(var);
            if let Some(&witness) = witnesses.get(index)
                && self.try_unify(unknown, witness).is_err()
            {
                let shown = self.show(witness);
                let name = self.types.var(var).shown();
                self.error(Code::WrongType, span, format!("`{shown}` cannot be `{name}`: the kinds differ"));
            }
            map.insert(var, unknown);
            existentials.push(unknown);
        }
        let mut entries = ThinVec::new();
        let mut at = 0;
        while let Some((designators, expr)) = items.first() {
            let mut inner: &[Designator] = &[];
            let mut path = Vec::new();
            match designators.split_first() {
                Some(_) if !all => break,
                Some((Designator::Field(name), rest)) => {
                    match self.find_member(ty, *name) {
                        Some(steps) => {
                            at = steps[0].0;
                            path = steps[1..].iter().map(|step| step.0).collect();
                        }
                        None => {
                            let shown = self.show(ty);
                            let name = name.name;
                            self.error(Code::UnknownName, expr.span, format!("`{shown}` has no member `{name}`"));
                            items.advance();
                            continue;
                        }
                    }
                    inner = rest;
                }
                Some((Designator::Index(index), _)) => {
                    self.error(Code::WrongType, index.span, "members have names, not numbers");
                }
                None => {
                    while at < count && is_given(&entries, at) {
                        at += 1;
                    }
                }
            }
            if at >= count || is_union && !entries.is_empty() {
                break;
            }
            let (member, _) = self.member_type(ty, at);
            let member = self.types.substitute(member, &map);
            let init = if path.is_empty() {
                self.part(items, member, inner)
            } else {
                self.nested_part(items, member, &path, inner)
            };
            put(&mut entries, at as u64, init);
            at += 1;
        }
        if !is_union {
            for index in 0..count {
                if !is_given(&entries, index) {
                    let (member, _) = self.member_type(ty, index);
                    let name = self.declarations.aggregate(id).body.as_ref().and_then(|body| body.fields[index].name);
                    let what = name.map_or("an unnamed member".to_owned(), |name| format!("member `{name}`"));
                    self.check_zeroable(member, span, &what);
                }
            }
        }
        if !constraints.is_empty() {
            map.extend(self.declarations.aggregate(id).params.iter().copied().zip(args.iter().copied()));
            let constraints: Vec<_> =
                constraints.iter().map(|constraint| self.types.substitute_constraint(constraint, &map)).collect();
            self.require_constraints(&constraints, span);
        }
        self.packed(id, &existentials, span);
        Init::List(InitList { ty, existentials, entries, span })
    }

    /// A member found through unnamed aggregates.
    fn nested_part(&mut self, items: &mut Items<'_>, ty: Ty, path: &[usize], inner: &[Designator]) -> Init {
        if !matches!(self.types.get(ty), TyKind::Aggregate(..)) {
            return self.part(items, ty, inner);
        }
        let span = items.first().map_or(Span::default(), |(_, expr)| expr.span);
        let (member, _) = self.member_type(ty, path[0]);
        let init = match path {
            [_] => self.part(items, member, inner),
            [_, rest @ ..] => self.nested_part(items, member, rest, inner),
            [] => return self.part(items, ty, inner),
        };
        Init::List(InitList { ty, existentials: ThinVec::new(), entries: thin_vec![(path[0] as u64, init)], span })
    }

    /// ``S{<T> ..}`` with what it must be an instance of.
    pub fn struct_value(
        &mut self,
        ast::StructValue { path, types, list }: &ast::StructValue,
        expected: Option<Ty>,
        span: Span,
    ) -> Expr {
        let Some(id) = self.lookup_aggregate(path) else {
            return self.wrong(Code::UnknownName, path.span, format!("there is no structure `{path}`"));
        };
        let body = self.declarations.aggregate(id).body.as_ref();
        let bound = body.map_or(Vec::new(), |body| body.existentials.clone());
        if types.len() > bound.len() {
            self.error(Code::WrongArguments, span, "there are more types than the structure binds");
        }
        let witnesses: Vec<Ty> = types
            .iter()
            .zip(bound)
            .map(|(ty, var)| {
                let kind = self.types.var(var).kind;
                self.read_of_kind(ty, kind)
            })
            .collect();
        let (ty, args) = self.aggregate_for(id, expected);
        let mut items = Items::new(list);
        let init = self.aggregate_with(&mut items, id, &args, ty, &witnesses, true, span);
        if let Some((_, extra)) = items.first() {
            self.error(Code::WrongArguments, extra.span, "there are fewer members");
        }
        Expr { kind: ExprKind::Aggregate(Box::new(init)), ty, span }
    }

    /// `S(a, b)`: a structure from its members in order.
    pub fn struct_of(&mut self, id: AggregateId, arguments: &[ast::Expr], expected: Option<Ty>, span: Span) -> Expr {
        let aggregate = self.declarations.aggregate(id);
        if let Some(takes) = aggregate.body.as_ref().map(|body| body.fields.len())
            && !aggregate.is_union
            && takes > arguments.len()
        {
            let have = arguments.len();
            return self.wrong(Code::WrongArguments, span, format!("the structure has {takes} members, not {have}"));
        }
        let items = Items { parts: arguments.iter().map(|argument| (&[][..], argument)).collect(), at: 0 };
        let (ty, _) = self.aggregate_for(id, expected);
        let init = self.list_for(items, ty, span);
        Expr { kind: ExprKind::Aggregate(Box::new(init)), ty, span }
    }

    /// An aggregate with unknown arguments, or those of the type that is wanted.
    fn aggregate_for(&mut self, id: AggregateId, expected: Option<Ty>) -> (Ty, Rc<[Ty]>) {
        let params = self.declarations.aggregate(id).params.clone();
        let args = self.unknown_arguments(&params);
        let ty = self.make(TyKind::Aggregate(id, args.clone()));
        if let Some(expected) = expected
            && matches!(self.types.get(expected), TyKind::Aggregate(other, _) if *other == id)
        {
            // What does not agree is found when the value is converted.
            let _ = self.try_unify(ty, expected);
        }
        (ty, args)
    }

    fn string_array(&mut self, bytes: ThinVec<u8>, array: Array, span: Span) -> (Init, Ty) {
        let needed = bytes.len() as u64;
        let len = match array.len {
            Some(len) => len,
            None => self.make(TyKind::Nat(needed + 1)),
        };
        if let TyKind::Nat(count) = *self.types.get(len) {
            let room = if self.is_true(array.zeroterm) { needed + 1 } else { needed };
            if room > count {
                self.error(Code::WrongType, span, format!("the string needs {room} characters, and there are {count}"));
            }
        }
        let ty = self.make(TyKind::Array(Array { len: Some(len), ..array }));
        (Init::String(bytes), ty)
    }

    /// Reports if zero is not a value of a type.
    fn check_zeroable(&mut self, ty: Ty, span: Span, what: &str) {
        if !self.is_zeroable(ty) {
            let shown = self.show(ty);
            self.error(Code::WrongType, span, format!("{what} must be given: zero is not a value of type `{shown}`"));
        }
    }

    /// Whether all bytes zero is a value of the type.
    pub fn is_zeroable(&mut self, ty: Ty) -> bool {
        match self.types.get(ty).clone() {
            TyKind::Pointer(pointer) => !self.is_false(pointer.nullable),
            TyKind::Subset(..) => false,
            TyKind::Array(array) => self.is_zeroable(array.element),
            TyKind::Tuple(members) => members.iter().all(|member| self.is_zeroable(member.ty)),
            TyKind::Aggregate(id, _) => {
                let aggregate = self.declarations.aggregate(id);
                let Some(body) = &aggregate.body else { return false };
                if !body.existentials.is_empty() {
                    return false;
                }
                let (count, tagged) = (body.fields.len(), aggregate.is_tagged);
                !tagged
                    && (0..count).all(|index| {
                        let (ty, _) = self.member_type(ty, index);
                        self.is_zeroable(ty)
                    })
            }
            TyKind::Var(_) | TyKind::Datatype(..) | TyKind::Constructor(..) | TyKind::Function(_) => false,
            TyKind::RegionHandle(_) | TyKind::TagHandle(_) | TyKind::AqualHandle(_) => false,
            _ => true,
        }
    }
}

/// A later part for the same place takes precedence; parts of parts are brought together.
fn put(entries: &mut ThinVec<(u64, Init)>, at: u64, init: Init) {
    let place = match entries.last() {
        Some((last, _)) if *last >= at => entries.binary_search_by_key(&at, |(index, _)| *index),
        _ => Err(entries.len()),
    };
    match (place, init) {
        (Err(place), init) => entries.insert(place, (at, init)),
        (Ok(place), init) => match (&mut entries[place].1, init) {
            (Init::List(old), Init::List(new)) => {
                let mut merged = std::mem::take(&mut old.entries);
                for (index, init) in new.entries {
                    put(&mut merged, index, init);
                }
                entries[place].1 = Init::List(InitList { entries: merged, ..new });
            }
            (old, init) => *old = init,
        },
    }
}

/// Whether there is an initial value for the member at `index`.
fn is_given(entries: &[(u64, Init)], index: usize) -> bool {
    entries.binary_search_by_key(&(index as u64), |(known, _)| *known).is_ok()
}

/// A value in braces is its own initialiser.
pub fn unwrap_aggregate(value: Expr) -> Init {
    match value.kind {
        ExprKind::Aggregate(init) => *init,
        _ => Init::Value(value),
    }
}

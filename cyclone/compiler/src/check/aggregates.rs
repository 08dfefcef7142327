//! Structures and unions: their declarations, and the types of their members.

use super::Checker;
use super::attributes::Owner;
use super::types::Position;
use super::variables::AnyKind;
use crate::ast::{self, Quals};
use crate::diagnostics::{Code, Diagnostic};
use crate::hash::HashSet;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Aggregate, AggregateBody, Field};
use crate::types::layout::{Layout, Part, struct_layout, union_layout};
use crate::types::unify::unify;
use crate::types::{AggregateId, Alias, Kind, Substitution, Ty, TyKind, TyVar};
use std::rc::Rc;

impl Checker<'_> {
    /// `struct S<..>` as a type; defines it if it has braces, and declares it if nobody did.
    pub(super) fn aggregate_type(&mut self, aggregate: &ast::Aggregate, position: Position, span: Span) -> Ty {
        let known = match (&aggregate.body, &aggregate.name) {
            (None, Some(path)) => self.lookup_aggregate(path),
            _ => self.reading.aggregates_at.get(&span).copied(),
        };
        let id = match known {
            Some(id) => id,
            None => {
                if let Some(id) = self.overridden(aggregate, span).or_else(|| self.defined_ahead(aggregate)) {
                    id
                } else if let (None, Some(path)) = (&aggregate.body, &aggregate.name)
                    && !(path.qualifier.is_none() && aggregate.args.is_empty())
                {
                    let message = format!("`{path}` must be declared before it is used");
                    self.error(Code::UnknownName, path.span, message);
                    return self.make(TyKind::Error);
                } else {
                    self.declare_aggregate(aggregate, span)
                }
            }
        };
        let declared = self.declarations.aggregate(id);
        let (params, is_union) = (declared.params.clone(), declared.is_union);
        let name = declared.name.unwrap_or_else(|| Symbol::new("struct"));
        if is_union != aggregate.is_union {
            let message = format!("`{name}` is a {}", if is_union { "union" } else { "struct" });
            self.error(Code::WrongType, span, message);
        }
        // C's structure inside of itself has the parameters that it gets.
        let is_inside = self.reading.being_defined.last() == Some(&id);
        let args = if is_inside && self.reading.added.is_some() && aggregate.args.is_empty() {
            params.iter().map(|&param| self.types.make(TyKind::Var(param))).collect()
        } else {
            self.read_arguments(name, &params, &aggregate.args, position, span)
        };
        self.make(TyKind::Aggregate(id, args))
    }

    /// A declaration of a structure or union, with or without its members.
    pub(super) fn declare_aggregate(&mut self, aggregate: &ast::Aggregate, span: Span) -> AggregateId {
        if let Some(id) = self.overridden(aggregate, span) {
            return id;
        }
        let name = aggregate.name.as_ref().map(|path| self.declared_name(path));
        let known = name.and_then(|name| self.declared_aggregate(name));
        let id = match known {
            Some(id) => id,
            None => self.new_aggregate(aggregate, name, span),
        };
        if aggregate.body.is_some() {
            self.reading.aggregates_at.insert(span, id);
        }
        let aside = self.put_aside();
        self.push_scope();
        let mut params = self.bind_parameters(&aggregate.args, Alias::Restricted);
        if known.is_some() {
            self.agree_with_earlier(id, aggregate, &params, span);
        }
        let is_complete = self.declarations.aggregate(id).body.is_some();
        if let (Some(body), true) = (&aggregate.body, is_complete) {
            self.repeated_body(id, body, aggregate, &params, span);
        } else if let Some(body) = &aggregate.body {
            self.declarations.aggregates[id.0 as usize].params = params[..].into();
            self.reading.being_defined.push(id);
            let mut body = self.aggregate_body_in_c(id, body, aggregate, &mut params, known.is_some());
            self.reading.being_defined.pop();
            // What C writes has a size.
            self.settle(&params, if self.in_c_include { AnyKind::BecomesBoxed } else { AnyKind::Stays });
            self.settle(&body.existentials, AnyKind::Stays);
            for field in &mut body.fields {
                field.ty = self.with_known_kinds(field.ty);
            }
            let attributes = self.plain_attributes(&aggregate.attributes, None, Owner::Aggregate);
            if aggregate.is_tagged && !aggregate.is_union {
                self.error(Code::BadAttribute, span, "only a union can be `@tagged`");
            }
            let completed = self.declarations.one_more_complete();
            let declared = &mut self.declarations.aggregates[id.0 as usize];
            declared.body = Some(body);
            declared.completed = completed;
            declared.is_tagged |= aggregate.is_tagged;
            declared.attributes.extend(attributes);
            declared.span = span;
            self.reject_cycle(id, span);
            if let Some(layout) = self.aggregate_layout(id) {
                self.types.set_layout(id, layout);
            }
        } else {
            self.settle(&params, AnyKind::Stays);
            if known.is_none() {
                self.declarations.aggregates[id.0 as usize].params = params.into();
            }
        }
        self.pop_scope();
        self.take_back(aside);
        id
    }

    /// A structure whose last member was abstract when it was declared may turn out to be part of itself.
    fn reject_cycle(&mut self, id: AggregateId, span: Span) {
        let Some(body) = &self.declarations.aggregate(id).body else { return };
        let members: Vec<Ty> = body.fields.iter().map(|field| field.ty).collect();
        let mut leads_back = Vec::new();
        for (at, member) in members.into_iter().enumerate() {
            if self.holds_aggregate(member, id, &mut HashSet::default()) {
                leads_back.push(at);
            }
        }
        if leads_back.is_empty() {
            return;
        }
        let wrong = self.make(TyKind::Error);
        let declared = &mut self.declarations.aggregates[id.0 as usize];
        let name = declared.name.unwrap_or_else(|| Symbol::new("struct"));
        if let Some(body) = &mut declared.body {
            for at in leads_back {
                body.fields[at].ty = wrong;
            }
        }
        self.error(Code::Incomplete, span, format!("`{name}` would be part of itself"));
    }

    fn holds_aggregate(&mut self, ty: Ty, wanted: AggregateId, seen: &mut HashSet<Ty>) -> bool {
        match self.types.get(ty).clone() {
            TyKind::Array(array) => self.holds_aggregate(array.element, wanted, seen),
            TyKind::Tuple(members) => members.iter().any(|member| self.holds_aggregate(member.ty, wanted, seen)),
            TyKind::Aggregate(id, _) if id == wanted => true,
            TyKind::Aggregate(id, args) => {
                let fields = if seen.insert(ty) { self.fields_of(id, &args) } else { Vec::new() };
                fields.iter().any(|field| self.holds_aggregate(field.ty, wanted, seen))
            }
            _ => false,
        }
    }

    fn new_aggregate(&mut self, aggregate: &ast::Aggregate, name: Option<Symbol>, span: Span) -> AggregateId {
        let id = AggregateId(self.declarations.aggregates.len() as u32);
        let full_name = name.map(|name| if self.body.is_some() { name } else { self.names.qualified(name) });
        self.declarations.aggregates.push(Aggregate {
            name: full_name,
            is_union: aggregate.is_union,
            is_tagged: aggregate.is_tagged,
            is_c: self.in_c,
            params: Rc::default(),
            body: None,
            completed: None,
            attributes: Vec::new(),
            span,
        });
        if let Some(name) = name {
            self.bind_aggregate(name, id);
        }
        id
    }

    /// A later declaration must fit the first; kinds it does not write are those of the first.
    fn agree_with_earlier(&mut self, id: AggregateId, aggregate: &ast::Aggregate, params: &[TyVar], span: Span) {
        let earlier = self.declarations.aggregate(id);
        let name = earlier.name.unwrap_or_else(|| Symbol::new("struct"));
        let (first, is_union) = (earlier.span, earlier.is_union);
        let earlier_params = earlier.params.clone();
        let complaint = if is_union != aggregate.is_union {
            Some("once as struct and once as union")
        } else if earlier_params.len() != params.len() {
            Some("with different numbers of type parameters")
        } else {
            None
        };
        if let Some(complaint) = complaint {
            let message = format!("`{name}` is declared {complaint}");
            self.diagnostics
                .push(Diagnostic::error(Code::Redeclared, span, message).with(first, "first declared here"));
            return;
        }
        self.kinds_of_earlier(&earlier_params, params, span);
    }

    /// A second definition must have the same members.
    fn repeated_body(
        &mut self,
        id: AggregateId,
        body: &ast::AggregateBody,
        aggregate: &ast::Aggregate,
        params: &[TyVar],
        span: Span,
    ) {
        let later = self.aggregate_body(body, aggregate);
        self.settle(params, AnyKind::Stays);
        self.settle(&later.existentials, AnyKind::Stays);
        let declared = self.declarations.aggregate(id);
        let (name, first) = (declared.name, declared.span);
        let Some(earlier) = &declared.body else { return };
        let members: Vec<(Field, Field)> = earlier.fields.iter().cloned().zip(later.fields).collect();
        let mut pairs: Vec<(TyVar, TyVar)> = params.iter().copied().zip(declared.params.iter().copied()).collect();
        pairs.extend(later.existentials.iter().copied().zip(earlier.existentials.iter().copied()));
        let mut same = earlier.fields.len() == body.fields.len()
            && earlier.existentials.len() == later.existentials.len()
            && declared.is_tagged == aggregate.is_tagged;
        let map = self.renaming(&pairs);
        for (earlier, later) in members {
            let ty = self.types.substitute(later.ty, &map);
            same &= earlier.name == later.name && earlier.quals == later.quals && earlier.width == later.width;
            same &= unify(&mut self.types, earlier.ty, ty).is_ok();
        }
        if !same {
            let name = name.unwrap_or_else(|| Symbol::new("struct"));
            let error =
                Diagnostic::error(Code::Redeclared, span, format!("`{name}` is declared with other members before"));
            self.diagnostics.push(error.with(first, "first declared here"));
        }
    }

    /// Each variable as the one it is paired with.
    pub(super) fn renaming(&mut self, pairs: &[(TyVar, TyVar)]) -> Substitution {
        pairs.iter().map(|&(from, to)| (from, self.types.make(TyKind::Var(to)))).collect()
    }

    /// Kinds that a later declaration does not write are those of the earlier one.
    pub(super) fn kinds_of_earlier(&mut self, earlier: &[TyVar], params: &[TyVar], span: Span) {
        for (&earlier, &param) in earlier.iter().zip(params) {
            let (kind, alias) = (self.types.var(earlier).kind, self.types.var(earlier).alias);
            if self.reading.open.remove(&param).is_none() && self.types.var(param).kind != kind {
                let name = self.types.var(param).shown();
                self.error(Code::Redeclared, span, format!("`{name}` has another kind in an earlier declaration"));
            } else {
                let info = self.types.var_mut(param);
                (info.kind, info.alias) = (kind, alias);
            }
        }
    }

    pub(super) fn aggregate_body(&mut self, body: &ast::AggregateBody, aggregate: &ast::Aggregate) -> AggregateBody {
        let existentials = self.bind_parameters(&body.existentials, Alias::Aliasable);
        let mut constraints = Vec::new();
        for constraint in &body.constraints {
            constraints.extend(self.read_constraint(constraint, Position::Heap));
        }
        let mut fields = Vec::with_capacity(body.fields.len());
        let mut seen = HashSet::default();
        let tags: Vec<(Option<Symbol>, Ty)> = body
            .fields
            .iter()
            .filter(|field| matches!(field.ty.kind, ast::TypeKind::TagHandle(_)))
            .map(|field| (field.name.map(|name| name.name), self.read(&field.ty, Kind::Boxed, Position::Heap).0))
            .collect();
        for (name, ty) in tags {
            self.note_tag(name, ty);
        }
        for (at, field) in body.fields.iter().enumerate() {
            let span = field.name.map_or(field.ty.span, |name| name.span);
            if let Some(name) = field.name
                && !seen.insert(name.name)
            {
                self.error(Code::Redeclared, name.span, format!("there are two members of the name `{}`", name.name));
            }
            let last = at + 1 == body.fields.len() || aggregate.is_union;
            let want = if last { Kind::Any } else { Kind::Memory };
            let (ty, quals) = self.read(&field.ty, want, Position::Heap);
            let ty = self.with_fn_attributes(ty, &field.attributes);
            // The last member may be abstract, so that the whole is, but no structure is part of itself.
            let may_be_abstract =
                last && matches!(self.types.get(ty), TyKind::Aggregate(id, _) if !self.is_being_read(*id));
            let ty = if may_be_abstract || self.require_size(ty, span) { ty } else { self.make(TyKind::Error) };
            let width = field.width.as_ref().and_then(|width| self.bit_width(width, ty, field.name.is_some()));
            let attributes = self.plain_attributes(&field.attributes, Some(ty), Owner::Member);
            if let Some(requires) = &field.requires {
                self.check_requires(requires, aggregate);
            }
            fields.push(Field { name: field.name.map(|name| name.name), ty, quals, width, attributes, span });
        }
        AggregateBody { existentials, constraints, fields }
    }

    /// `@requires(..)` of a union's member: a condition over numbers of the level of types.
    fn check_requires(&mut self, condition: &ast::Expr, aggregate: &ast::Aggregate) {
        if !aggregate.is_union {
            self.error(Code::WrongType, condition.span, "only members of unions have `@requires`");
            return;
        }
        match &condition.kind {
            ast::ExprKind::Binary(_, left, right) => {
                self.check_requires(left, aggregate);
                self.check_requires(right, aggregate);
            }
            ast::ExprKind::Unary(ast::UnOp::Not, operand) => self.check_requires(operand, aggregate),
            ast::ExprKind::ValueOf(ty) => {
                self.read_number_type(ty, Position::Heap);
            }
            ast::ExprKind::Name(path) if self.reading.tags.iter().any(|(name, _)| *name == path.name) => {}
            _ if self.constant_ast(condition).is_some() => {}
            _ => self.error(Code::WrongType, condition.span, "`@requires` needs a condition over numbers"),
        }
    }

    /// Only a member without a name, which is there to fill a unit up, may have no bits.
    fn bit_width(&mut self, width: &ast::Expr, ty: Ty, is_named: bool) -> Option<u32> {
        let bits = match self.types.get(ty) {
            TyKind::Bool => Some(1),
            TyKind::Int(..) | TyKind::Enum(_) => self.types.layout(ty).map(|layout| layout.size * 8),
            TyKind::Error => return None,
            _ => None,
        };
        let value = self.constant_ast(width);
        match (bits, value.and_then(|value| u32::try_from(value).ok())) {
            (None, _) => self.error(Code::WrongType, width.span, "only an integer can be a bit-field"),
            (Some(bits), Some(value)) if u64::from(value) <= bits && (value > 0 || !is_named) => return Some(value),
            (Some(bits), _) => {
                let least = u8::from(is_named);
                let message = format!("the width of this bit-field must be a constant from {least} to {bits}");
                self.error(Code::NotConstant, width.span, message);
            }
        }
        None
    }

    /// The layout of an aggregate whose members are known; none where attributes change it, or a member has none.
    fn aggregate_layout(&self, id: AggregateId) -> Option<Layout> {
        let aggregate = self.declarations.aggregate(id);
        let body = aggregate.body.as_ref()?;
        let attributed = body.fields.iter().any(|field| !field.attributes.is_empty());
        if attributed || !aggregate.attributes.is_empty() {
            return None;
        }
        let mut parts = Vec::with_capacity(body.fields.len());
        for field in &body.fields {
            let layout = match self.types.get(field.ty) {
                TyKind::Array(array) if array.len.is_none() => {
                    Layout { size: 0, align: self.types.layout(array.element)?.align }
                }
                _ => self.types.layout(field.ty)?,
            };
            parts.push(Part { layout, width: field.width });
        }
        if !aggregate.is_union {
            return Some(struct_layout(&parts)?.0);
        }
        let layout = union_layout(&parts)?;
        if !aggregate.is_tagged {
            return Some(layout);
        }
        let tag = Layout { size: 4, align: 4 };
        Some(struct_layout(&[Part { layout: tag, width: None }, Part { layout, width: None }])?.0)
    }

    /// The members of an aggregate, for these arguments. Existential variables stay as they are.
    pub fn fields_of(&mut self, id: AggregateId, args: &Rc<[Ty]>) -> Vec<Field> {
        let aggregate = self.declarations.aggregate(id);
        let Some(body) = &aggregate.body else { return Vec::new() };
        let map = Substitution::of(&aggregate.params, args);
        let mut fields = body.fields.clone();
        for field in &mut fields {
            field.ty = self.types.substitute(field.ty, &map);
        }
        fields
    }

    /// The type of a member of an aggregate; an index that is none gives `Error`.
    pub fn member_type(&mut self, whole: Ty, index: usize) -> (Ty, Quals) {
        let whole = self.types.resolve(whole);
        let field = match self.types.get(whole) {
            TyKind::Aggregate(id, _) => {
                let body = self.declarations.aggregate(*id).body.as_ref();
                body.and_then(|body| body.fields.get(index)).map(|field| (*id, field.ty, field.quals))
            }
            _ => None,
        };
        let Some((id, ty, quals)) = field else { return (self.make(TyKind::Error), Quals::default()) };
        if self.types.is_fixed(ty) {
            return (ty, quals);
        }
        let is_settled = self.types.is_settled(whole);
        if is_settled && let Some(&known) = self.member_types.get(&(whole, index)) {
            return (known, quals);
        }
        let map = match self.types.get(whole) {
            TyKind::Aggregate(_, args) => Substitution::of(&self.declarations.aggregate(id).params, args),
            _ => Substitution::default(),
        };
        let ty = self.types.substitute(ty, &map);
        if is_settled && self.types.is_settled(ty) {
            self.member_types.insert((whole, index), ty);
        }
        (ty, quals)
    }
}

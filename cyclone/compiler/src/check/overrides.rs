//! `cyclone_override { .. }`: better types for what a block of C declares.
//!
//! An overriding structure takes the place of C's, where C defines it: what comes after sees the new one. It must lie in memory as
//! C's does; if it does not, its members are not known, so that nobody touches them. A structure of C that uses an overridden one without
//! type arguments gets a type parameter for each (so does a function, as always); a variable of C has `void *` there. Overriding functions
//! and variables are declared after the C.

use super::Checker;
use super::names::Value;
use crate::ast::{self, Item, Quals};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{AggregateBody, Field};
use crate::types::{AggregateId, Alias, Kind, Ty, TyKind, TyVar, TyVarInfo};

/// The structures of a block of C that has a `cyclone_override`.
#[derive(Debug, Default)]
pub(super) struct Overridden {
    /// Those that override one which C has not defined yet.
    pending: Vec<Definition>,
    /// C's own.
    of_c: Vec<Definition>,
}

/// A structure with its members.
#[derive(Debug)]
struct Definition {
    name: Symbol,
    aggregate: ast::Aggregate,
    span: Span,
}

/// The type parameters that the structure of C being read gets without writing them.
#[derive(Debug, Default)]
pub(super) struct Added {
    vars: Vec<TyVar>,
    next: usize,
}

impl Checker<'_> {
    /// A block of C with what overrides parts of it.
    pub(super) fn overridden_items(&mut self, items: &[Item], overrides: &[Item]) {
        let definitions = |items: &[Item]| items.iter().filter_map(definition).collect();
        let blocks = match overrides {
            [] => Overridden::default(),
            _ => Overridden { pending: definitions(overrides), of_c: definitions(items) },
        };
        let outside = std::mem::replace(&mut self.overriding, blocks);
        self.items(items);
        for item in overrides {
            self.override_item(item);
        }
        self.overriding = outside;
    }

    fn override_item(&mut self, item: &Item) {
        if let Some(Definition { name, aggregate, span }) = definition(item) {
            // Otherwise it stands where C has defined it.
            if self.take_pending(name).is_some() {
                self.declare_aggregate(&aggregate, span);
            }
            return;
        }
        if let Item::Declaration(declaration) = item {
            let names: Vec<Symbol> = declaration.declarators.iter().map(|declarator| declarator.name.name).collect();
            let of_c: Vec<_> = names.iter().map(|name| self.names.here_mut().values.remove(name)).collect();
            self.item(item);
            for (name, of_c) in names.into_iter().zip(of_c) {
                if let (Some(Value::Global(of_c)), Some(&Value::Global(id))) =
                    (of_c, self.names.here().values.get(&name))
                {
                    self.declarations.globals[id.0 as usize].overrides = Some(of_c);
                }
            }
            return;
        }
        self.item(item);
    }

    fn take_pending(&mut self, name: Symbol) -> Option<Definition> {
        let pending = &mut self.overriding.pending;
        let at = pending.iter().position(|definition| definition.name == name)?;
        Some(pending.remove(at))
    }

    /// The structure that `of_c` means, a structure that C declares or defines here: the one that overrides it, or C's own if that had to
    /// be read before its place.
    pub(super) fn overridden(&mut self, of_c: &ast::Aggregate, span: Span) -> Option<AggregateId> {
        if self.overriding.of_c.is_empty() && self.overriding.pending.is_empty() {
            return None;
        }
        let name = of_c.name.as_ref().filter(|path| path.qualifier.is_none())?.name;
        let Some(pending) = self.take_pending(name) else {
            return self.reading.aggregates_at.get(&span).copied().filter(|_| of_c.body.is_some());
        };
        if of_c.body.is_none() {
            let id = match self.declared_aggregate(name) {
                Some(id) => id,
                None => {
                    let header = ast::Aggregate { body: None, ..pending.aggregate.clone() };
                    self.declare_aggregate(&header, pending.span)
                }
            };
            self.overriding.pending.push(pending);
            return Some(id);
        }
        let id = self.declare_aggregate(&pending.aggregate, pending.span);
        let unnamed = ast::Aggregate { name: None, ..of_c.clone() };
        let c_id = self.declare_aggregate(&unnamed, span);
        self.reading.aggregates_at.insert(span, id);
        self.require_layout_of_c(id, c_id);
        Some(id)
    }

    /// C's structure that what overrides another one names with type arguments before C has defined it.
    pub(super) fn defined_ahead(&mut self, used: &ast::Aggregate) -> Option<AggregateId> {
        let name = used.name.as_ref().filter(|path| path.qualifier.is_none() && !used.args.is_empty())?.name;
        let at = self.overriding.of_c.iter().position(|definition| definition.name == name)?;
        let Definition { aggregate, span, .. } = self.overriding.of_c.remove(at);
        Some(self.declare_aggregate(&aggregate, span))
    }

    /// A structure that lies in memory in another way than C's cannot be touched.
    fn require_layout_of_c(&mut self, id: AggregateId, c_id: AggregateId) {
        let (ours, of_c) = (self.declarations.aggregate(id), self.declarations.aggregate(c_id));
        let name = ours.name.unwrap_or_else(|| Symbol::new("struct"));
        let (span, span_of_c) = (ours.span, of_c.span);
        let (Some(body), Some(body_of_c)) = (&ours.body, &of_c.body) else { return };
        let mut pairs = body.fields.iter().zip(&body_of_c.fields);
        let differs = match pairs.find(|(ours, of_c)| !self.lies_like(ours, of_c)) {
            Some((field, _)) => format!("member `{}` is of another size", field.name.map_or("", |name| name.as_str())),
            None if body.fields.len() != body_of_c.fields.len() => "the number of members differs".to_owned(),
            None => return,
        };
        self.declarations.aggregates[id.0 as usize].body = None;
        self.declarations.aggregates[id.0 as usize].completed = None;
        self.types.forget_layout(id);
        let message = format!("`{name}` does not lie in memory as in C ({differs}); its members cannot be used");
        let warning = Diagnostic::warning(Code::Redeclared, span, message);
        self.diagnostics.push(warning.with(span_of_c, "declared in C here"));
    }

    fn lies_like(&self, ours: &Field, of_c: &Field) -> bool {
        self.types.layout(ours.ty) == self.types.layout(of_c.ty) && ours.width == of_c.width
    }

    /// The members of a structure, which in C gets the parameters that its members need.
    pub(super) fn aggregate_body_in_c(
        &mut self,
        id: AggregateId,
        body: &ast::AggregateBody,
        aggregate: &ast::Aggregate,
        params: &mut Vec<TyVar>,
        was_declared: bool,
    ) -> AggregateBody {
        if !self.in_c_include {
            return self.aggregate_body(body, aggregate);
        }
        let (reported, declared) = (self.diagnostics.len(), self.declarations.aggregates.len());
        self.reading.added = Some(Added::default());
        let read = self.aggregate_body(body, aggregate);
        let added = self.reading.added.take().unwrap_or_default();
        if added.vars.is_empty() {
            return read;
        }
        // What uses the structure already, outside or among its members, does not have the parameters.
        let is_used = was_declared || self.declarations.aggregates.len() > declared;
        params.extend(&added.vars);
        let declared = &mut self.declarations.aggregates[id.0 as usize];
        let (name, first) = (declared.name.unwrap_or_else(|| Symbol::new("struct")), declared.span);
        declared.params = params[..].into();
        // Once more, for members that lead to the structure itself.
        self.diagnostics.truncate(reported);
        self.reading.added = Some(Added { next: 0, ..added });
        let read = self.aggregate_body(body, aggregate);
        self.reading.added = None;
        if is_used {
            let message = format!("`{name}` has type parameters because of its members, and was used without them");
            let error =
                Diagnostic::error(Code::Redeclared, aggregate.name.as_ref().map_or(first, |name| name.span), message);
            self.diagnostics.push(error.with(first, "first declared here").help("override it too"));
        }
        read
    }

    /// A type argument that C does not write: of the structure being read it is a parameter, otherwise something that fits.
    pub(super) fn argument_in_c(&mut self, kind: Kind, alias: Alias, span: Span) -> Option<Ty> {
        if !self.in_c_include || matches!(kind, Kind::Memory | Kind::Bound | Kind::Bool) {
            return None;
        }
        let Some(mut added) = self.reading.added.take() else {
            return matches!(kind, Kind::Any | Kind::Boxed).then(|| self.void_pointer());
        };
        if added.next == added.vars.len() {
            let name = TyVarInfo::unwritten_name(added.next);
            added.vars.push(self.types.new_var(TyVarInfo { name, kind, alias, level: self.level() + 1, span }));
        }
        let var = added.vars[added.next];
        added.next += 1;
        self.reading.added = Some(added);
        Some(self.make(TyKind::Var(var)))
    }

    /// `void *`
    fn void_pointer(&mut self) -> Ty {
        let (void, heap) = (self.make(TyKind::Void), self.make(TyKind::Heap));
        let mut pointer = self.pointer_to(void, Quals::default(), heap);
        pointer.nullable = self.make(TyKind::True);
        self.pointer_type(pointer)
    }
}

fn definition(item: &Item) -> Option<Definition> {
    let Item::Declaration(declaration) = item else { return None };
    let ast::TypeKind::Aggregate(aggregate) = &declaration.base.kind else { return None };
    let name = aggregate.name.as_ref().filter(|path| path.qualifier.is_none())?.name;
    let is_definition = declaration.declarators.is_empty() && aggregate.body.is_some();
    is_definition.then(|| Definition { name, aggregate: (**aggregate).clone(), span: declaration.base.span })
}

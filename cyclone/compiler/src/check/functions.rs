//! Types of functions: parameters, default effects, constraints, attributes.
//!
//! The type variables and regions that occur in a prototype and are bound nowhere around it are its type parameters, also those
//! inside of the function types among its parameters. Its effect, unless written, is all regions in it; the heap is part of every
//! effect.

use super::Checker;
use super::types::{Position, constant_alias};
use super::variables::{AnyKind, Prototype};
use crate::ast::{self, Quals};
use crate::diagnostics::Code;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::types::{
    Alias, Constraint, FnAttributes, Function, Kind, Member, Pointer, Substitution, Ty, TyKind, TyVar, VarArgs,
};

impl Checker<'_> {
    /// The type of a declared function: binds what is not bound.
    pub fn read_prototype(&mut self, function: &ast::Function, attributes: &[ast::Attribute]) -> Function {
        let aside = self.put_aside();
        self.reading.prototype =
            Some(Prototype { is_explicit: !function.type_params.is_empty(), ..Prototype::default() });
        let mut out = self.read_function_type(function, attributes, Position::Parameter);
        if let Some(prototype) = self.reading.prototype.take() {
            self.settle(&prototype.vars, AnyKind::Stays);
            out.type_params.extend(prototype.vars);
        }
        self.take_back(aside);
        if self.is_old() {
            out = self.types.substitute_function(&out, &Substitution::default());
            self.consume_by_default(&mut out);
        }
        out
    }

    /// The type of a function. At [`Position::Parameter`] what is not written becomes a type parameter of the prototype around.
    pub fn read_function_type(
        &mut self,
        function: &ast::Function,
        attributes: &[ast::Attribute],
        position: Position,
    ) -> Function {
        self.push_scope();
        self.reading.in_function += 1;
        self.reading.depth += 1;
        let tags = self.reading.tags.len();
        let type_params = self.bind_parameters(&function.type_params, Alias::Aliasable);
        let params = self.read_params(&function.params, position);
        let result_position = if position == Position::Body { Position::Body } else { Position::Heap };
        let result = match &function.result {
            Some(result) => self.read(result, Kind::Memory, result_position).0,
            None => self.make(TyKind::Error),
        };
        let varargs = function.varargs.as_ref().map(|varargs| {
            let (ty, _) = self.read(&varargs.param.ty, Kind::Memory, position);
            VarArgs { name: varargs.param.name.map(|name| name.name), ty, inject: varargs.inject }
        });
        let mut constraints = Vec::new();
        for constraint in &function.constraints {
            constraints.extend(self.read_constraint(constraint, position));
        }
        let effect = self.effect_of(function, &params, result, varargs.as_ref(), position);
        self.settle(&type_params, AnyKind::BecomesBoxed);
        let mut out = Function {
            type_params,
            result,
            params,
            c_varargs: function.c_varargs,
            varargs,
            effect,
            constraints,
            attributes: FnAttributes::default(),
        };
        self.read_fn_attributes(function.attributes.iter().chain(attributes), &mut out);
        if self.is_old() {
            self.consume_by_default(&mut out);
        }
        self.reading.tags.truncate(tags);
        self.reading.depth -= 1;
        self.reading.in_function -= 1;
        self.pop_scope();
        out
    }

    /// In 0.8 a function consumes the unique and counted pointers that it gets, unless `noconsume` says otherwise.
    fn consume_by_default(&mut self, function: &mut Function) {
        for (at, param) in function.params.iter().enumerate() {
            let aqual = self.types.aquals_of(param.ty);
            let is_owned = self.types.alias_bound(aqual) != Alias::Aliasable;
            let attributes = &mut function.attributes;
            if is_owned && !attributes.noconsume.contains(&at) && !attributes.consume.contains(&at) {
                attributes.consume.push(at);
            }
        }
        function.attributes.consume.sort_unstable();
    }

    /// Tags first: the bounds of parameters before them may name them.
    fn read_params(&mut self, params: &[ast::Param], position: Position) -> Vec<Member> {
        let mut read: Vec<Option<Ty>> = vec![None; params.len()];
        for (at, param) in params.iter().enumerate() {
            let named = self.handle_of_its_name(param, position);
            if named.is_some() || matches!(param.ty.kind, ast::TypeKind::TagHandle(_)) {
                let ty = match named {
                    Some(kind) => self.make(kind),
                    None => self.read(&param.ty, Kind::Boxed, position).0,
                };
                self.note_tag(param.name.map(|name| name.name), ty);
                read[at] = Some(ty);
            }
        }
        let mut out: Vec<Member> = Vec::with_capacity(params.len());
        for (at, param) in params.iter().enumerate() {
            if let Some(name) = param.name
                && out.iter().any(|before| before.name == Some(name.name))
            {
                self.error(
                    Code::Redeclared,
                    name.span,
                    format!("there are two parameters of the name `{}`", name.name),
                );
            }
            let (ty, quals) = match read[at] {
                Some(ty) => (ty, param.ty.quals),
                None => self.read(&param.ty, Kind::Memory, position),
            };
            let (ty, quals) = self.param_type(ty, quals, position, param.ty.span);
            let ty = self.with_fn_attributes(ty, &param.attributes);
            if matches!(self.types.get(ty), TyKind::Void) {
                self.error(Code::Incomplete, param.ty.span, "a parameter cannot be `void`");
            }
            out.push(Member { name: param.name.map(|name| name.name), ty, quals });
        }
        out
    }

    /// A parameter `region_t r` or `tag_t n` names its region or number too: `` `r ``, `` `n ``.
    fn handle_of_its_name(&mut self, param: &ast::Param, position: Position) -> Option<TyKind> {
        let name = param.name?;
        let kind = match &param.ty.kind {
            ast::TypeKind::RegionHandle(None) => Kind::Effect,
            ast::TypeKind::TagHandle(None) => Kind::Int,
            _ => return None,
        };
        let var =
            ast::TypeVar { name: Symbol::new(&format!("`{}", name.name)), kind: None, aqual: None, span: name.span };
        let of = self.read_variable(&var, kind, position);
        Some(if kind == Kind::Effect { TyKind::RegionHandle(of) } else { TyKind::TagHandle(of) })
    }

    /// As a parameter, an array is a pointer to its first element, which is not null (a fat one where the length is not given), and
    /// a function a pointer to itself.
    fn param_type(&mut self, ty: Ty, quals: Quals, position: Position, span: Span) -> (Ty, Quals) {
        let pointer = match self.types.get(ty).clone() {
            TyKind::Array(array) => {
                let region = self.unwritten(Kind::Effect, Alias::Aliasable, position, span);
                let bound = array.len.map_or(TyKind::Fat, TyKind::Thin);
                self.param_pointer(array.element, array.quals, region, bound, array.zeroterm)
            }
            TyKind::Function(_) => {
                let heap = self.make(TyKind::Heap);
                let one = self.make(TyKind::Nat(1));
                let no = self.truth_type(false);
                self.param_pointer(ty, Quals::default(), heap, TyKind::Thin(one), no)
            }
            _ => return (ty, quals),
        };
        (pointer, Quals::default())
    }

    fn param_pointer(&mut self, target: Ty, quals: Quals, region: Ty, bound: TyKind, zeroterm: Ty) -> Ty {
        let kind = TyKind::Pointer(Pointer {
            target,
            quals,
            region,
            aqual: self.make(TyKind::Aqual(Alias::Aliasable)),
            nullable: self.truth_type(bound == TyKind::Fat),
            bound: self.make(bound),
            zeroterm,
            autoreleased: self.truth_type(false),
        });
        self.make(kind)
    }

    fn effect_of(
        &mut self,
        function: &ast::Function,
        params: &[Member],
        result: Ty,
        varargs: Option<&VarArgs>,
        position: Position,
    ) -> Ty {
        let heap = self.make(TyKind::Heap);
        let mut parts = vec![heap];
        match &function.effect {
            Some(effect) => parts.push(self.read_effect(effect, position)),
            None => {
                let types =
                    params.iter().map(|param| param.ty).chain([result]).chain(varargs.map(|varargs| varargs.ty));
                for ty in types {
                    parts.extend(self.types.regions(ty));
                }
            }
        }
        self.types.join(parts)
    }

    /// A constraint; one on an alias qualifier alone becomes the bound of its variable.
    pub(super) fn read_constraint(&mut self, constraint: &ast::Constraint, position: Position) -> Option<Constraint> {
        Some(match constraint {
            ast::Constraint::Outlives(inner, outer) => {
                let inner = self.read_effect(inner, position);
                let outer = self.read_variable(outer, Kind::Effect, position);
                Constraint::Subset(inner, outer)
            }
            ast::Constraint::Disjoint(one, other) => {
                Constraint::Disjoint(self.read_effect(one, position), self.read_effect(other, position))
            }
            ast::Constraint::Named(word, of) if word.name.as_str() == "single" => {
                Constraint::Single(self.read_effect(of, position))
            }
            ast::Constraint::Named(word, _) => {
                let message = format!("`{}` is no constraint; there is `single`", word.name);
                self.error(Code::Syntax, word.span, message);
                return None;
            }
            ast::Constraint::QualBound(bound, of) => {
                let bound_alias = constant_alias(bound);
                let (of, _) = self.read(of, Kind::Aqual, position);
                if let (Some(alias), Some(var)) = (bound_alias, self.variable_of_aqual(of)) {
                    self.types.var_mut(var).alias = alias;
                }
                Constraint::AqualBound(self.read_aqual(bound, position), of)
            }
        })
    }

    /// The variable that a qualifier is about: itself, or the type in ``aquals(`a)``.
    fn variable_of_aqual(&self, aqual: Ty) -> Option<TyVar> {
        match self.types.get(aqual) {
            TyKind::Var(var) => Some(*var),
            TyKind::AqualsOf(of) => match self.types.get(*of) {
                TyKind::Var(var) => Some(*var),
                _ => None,
            },
            _ => None,
        }
    }
}

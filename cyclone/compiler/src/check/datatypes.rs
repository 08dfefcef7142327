//! Enumerations and datatypes: their declarations, constants and constructors.

use super::Checker;
use super::names::Value;
use super::types::Position;
use super::variables::AnyKind;
use crate::ast::{self, Storage};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Constructor, Datatype, Enum};
use crate::types::unify::unify;
use crate::types::{Alias, DatatypeId, EnumId, Kind, Member, Substitution, Ty, TyKind, TyVar};
use std::rc::Rc;

impl Checker<'_> {
    /// `enum E` as a type; defines it if it has braces.
    pub(super) fn enum_type(&mut self, enumeration: &ast::Enum, span: Span) -> Ty {
        let known = match (&enumeration.body, &enumeration.name) {
            (None, Some(path)) => self.lookup_enumeration(path),
            _ => self.reading.enums_at.get(&span).copied(),
        };
        let id = known.unwrap_or_else(|| self.declare_enum(enumeration, span));
        self.make(TyKind::Enum(id))
    }

    /// A declaration of an enumeration.
    pub(super) fn declare_enum(&mut self, enumeration: &ast::Enum, span: Span) -> EnumId {
        let name = enumeration.name.as_ref().map(|path| self.declared_name(path));
        let known = match name {
            Some(name) if self.body.is_none() => self.names.here().enums.get(&name).copied(),
            _ => None,
        };
        let id = known.unwrap_or_else(|| {
            let id = EnumId(self.declarations.enums.len() as u32);
            let full_name = name.map(|name| self.names.qualified(name));
            self.declarations.enums.push(Enum { name: full_name, values: None, is_c: self.in_c });
            if let Some(name) = name {
                self.bind_enum(name, id);
            }
            id
        });
        let Some(body) = &enumeration.body else { return id };
        self.reading.enums_at.insert(span, id);
        let earlier = self.declarations.enumeration(id).values.clone();
        let mut values = Vec::with_capacity(body.len());
        let mut next: i64 = 0;
        for (path, value) in body {
            if let Some(expr) = value {
                match self.constant_ast(expr).and_then(|value| i64::try_from(value).ok()) {
                    Some(value) => next = value,
                    None => self.error(
                        Code::NotConstant,
                        expr.span,
                        "the value of an enumeration constant must be constant",
                    ),
                }
            }
            let name = self.declared_name(path);
            let known = if self.body.is_none() { self.names.here().values.get(&name).copied() } else { None };
            if known.is_some_and(|known| !matches!(known, Value::EnumConst(of, _) if of == id && earlier.is_some())) {
                self.error(Code::Redeclared, path.span, format!("the name `{name}` is declared already"));
            }
            let full_name = self.names.qualified(name);
            if values.iter().any(|(other, _)| *other == full_name) {
                self.error(Code::Redeclared, path.span, format!("there are two constants `{name}`"));
            }
            values.push((full_name, next));
            self.bind_value(name, Value::EnumConst(id, next));
            next = next.wrapping_add(1);
        }
        if earlier.is_some_and(|earlier| earlier != values) {
            self.error(Code::Redeclared, span, "the enumeration is declared with other values before");
        }
        self.declarations.enums[id.0 as usize].values = Some(values);
        id
    }

    /// `datatype T<..>` or `datatype T.C<..>` as a type.
    pub(super) fn datatype_type(&mut self, datatype: &ast::Datatype, position: Position, span: Span) -> Ty {
        let known = match datatype.body {
            None => self.lookup_datatype(&datatype.name),
            Some(_) => self.reading.datatypes_at.get(&span).copied(),
        };
        let id = match known {
            Some(id) => id,
            None => self.declare_datatype(datatype, span),
        };
        let declared = self.declarations.datatype(id);
        let (name, params) = (declared.name, declared.params.clone());
        let args = self.read_arguments(name, &params, &datatype.args, position, span);
        let Some(constructor) = &datatype.constructor else {
            return self.make(TyKind::Datatype(id, args));
        };
        let found = match self.lookup_value(constructor) {
            Some(Value::Constructor(of, index)) if of == id => Some(index),
            _ => None,
        };
        // The constructor may be of a namespace that is not open here: its last part is enough.
        let by_name = || {
            let wanted = constructor.name.as_str();
            let constructors = &self.declarations.datatype(id).constructors;
            constructors.iter().position(|c| c.name.as_str().rsplit("::").next() == Some(wanted)).map(|at| at as u32)
        };
        match found.or_else(by_name) {
            Some(index) => self.make(TyKind::Constructor(id, index, args)),
            None => {
                let message = format!("`{name}` has no constructor `{constructor}`");
                self.error(Code::UnknownName, constructor.span, message);
                self.make(TyKind::Error)
            }
        }
    }

    /// A declaration of a datatype, or more constructors for an extensible one.
    pub(super) fn declare_datatype(&mut self, datatype: &ast::Datatype, span: Span) -> DatatypeId {
        let extended = self.lookup_datatype(&datatype.name).filter(|&id| self.declarations.datatype(id).is_extensible);
        let known = extended.or_else(|| self.names.here().datatypes.get(&datatype.name.name).copied());
        let id = known.unwrap_or_else(|| self.new_datatype(datatype, span));
        let aside = self.put_aside();
        self.push_scope();
        let params = self.bind_parameters(&datatype.args, Alias::Aliasable);
        if known.is_some() {
            let earlier = self.declarations.datatype(id);
            let (first, name, earlier_params) = (earlier.span, earlier.name, earlier.params.clone());
            if earlier_params.len() == params.len() {
                self.kinds_of_earlier(&earlier_params, &params, span);
            } else {
                let message = format!("`{name}` is declared with different numbers of type parameters");
                let error = Diagnostic::error(Code::Redeclared, span, message);
                self.diagnostics.push(error.with(first, "first declared here"));
            }
        }
        let is_extensible = self.declarations.datatype(id).is_extensible;
        let is_new = known.is_none() || (!is_extensible && !self.declarations.datatype(id).is_complete);
        if is_new {
            self.declarations.datatypes[id.0 as usize].params = params[..].into();
        }
        if let Some(body) = &datatype.body {
            self.reading.datatypes_at.insert(span, id);
            let (is_complete, known) = {
                let declared = self.declarations.datatype(id);
                (declared.is_complete, declared.constructors.len())
            };
            for (at, constructor) in body.iter().enumerate() {
                if body[..at].iter().any(|other| other.name.name == constructor.name.name) && !is_extensible {
                    let message = format!("there are two constructors `{}`", constructor.name.name);
                    self.error(Code::Redeclared, constructor.name.span, message);
                    continue;
                }
                self.declare_constructor(id, constructor, &params);
            }
            let constructors = self.declarations.datatype(id).constructors.len();
            if is_complete && (known != constructors || known != body.len()) {
                self.error(Code::Redeclared, span, "the datatype is declared with other constructors before");
            }
            if !is_complete && !is_extensible {
                self.declarations.datatypes[id.0 as usize].completed = self.declarations.one_more_complete();
            }
            self.declarations.datatypes[id.0 as usize].is_complete = !is_extensible;
        }
        self.settle(&params, AnyKind::Stays);
        for &param in &params {
            self.refuse_owning_parameter(param);
        }
        for at in 0..self.declarations.datatype(id).constructors.len() {
            for of in 0..self.declarations.datatype(id).constructors[at].params.len() {
                let ty = self.declarations.datatype(id).constructors[at].params[of].ty;
                let ty = self.with_known_kinds(ty);
                self.declarations.datatypes[id.0 as usize].constructors[at].params[of].ty = ty;
            }
        }
        self.pop_scope();
        self.take_back(aside);
        id
    }

    /// In 0.8 no parameter of a datatype says that pointers may be unique: values of datatypes are copied.
    fn refuse_owning_parameter(&mut self, param: TyVar) {
        let info = self.types.var(param);
        let owning = match info.alias {
            Alias::Unique => true,
            Alias::Restricted => info.kind == Kind::Effect,
            _ => false,
        };
        if owning && self.is_old() {
            let (name, span) = (info.name, info.span);
            let message = format!("the kind of `{name}` lets pointers in a datatype be unique");
            self.error(Code::WrongKind, span, message);
        }
    }

    fn new_datatype(&mut self, datatype: &ast::Datatype, span: Span) -> DatatypeId {
        let id = DatatypeId(self.declarations.datatypes.len() as u32);
        let name = self.declared_name(&datatype.name);
        let full_name = self.names.qualified(name);
        self.declarations.datatypes.push(Datatype {
            name: full_name,
            is_extensible: datatype.is_extensible,
            params: Rc::default(),
            constructors: Vec::new(),
            is_complete: false,
            completed: None,
            span,
        });
        self.names.here_mut().datatypes.insert(name, id);
        id
    }

    fn declare_constructor(&mut self, id: DatatypeId, constructor: &ast::Constructor, params: &[TyVar]) {
        let mut members = Vec::with_capacity(constructor.params.len());
        for param in &constructor.params {
            let member = self.read_member(param, Position::Heap);
            let aqual = self.types.aquals_of(member.ty);
            if self.types.alias_bound(aqual) != Alias::Aliasable {
                let message = "a datatype cannot hold a pointer that may not be copied";
                self.error(Code::WrongType, param.ty.span, message);
            }
            self.require_size(member.ty, param.ty.span);
            members.push(member);
        }
        // A later declaration has parameters of its own; those of the first count.
        let own = self.declarations.datatype(id).params.clone();
        if own[..] != params[..] {
            let pairs: Vec<(TyVar, TyVar)> = params.iter().copied().zip(own.iter().copied()).collect();
            let map = self.renaming(&pairs);
            for member in &mut members {
                member.ty = self.types.substitute(member.ty, &map);
            }
        }
        let name = self.declared_name(&constructor.name);
        let full_name = self.names.qualified(name);
        let is_extern = constructor.storage == Some(Storage::Extern);
        let datatype = &mut self.declarations.datatypes[id.0 as usize];
        if let Some(index) = datatype.constructors.iter().position(|known| known.name == full_name) {
            let known = &mut datatype.constructors[index];
            let (first, earlier) = (known.span, known.params.clone());
            let repeated = datatype.is_extensible && !known.is_extern && !is_extern;
            known.is_extern &= is_extern;
            let mut same = earlier.len() == members.len();
            for (earlier, later) in earlier.iter().zip(&members) {
                same &= earlier.quals == later.quals && unify(&mut self.types, earlier.ty, later.ty).is_ok();
            }
            if repeated || !same {
                let message = format!("the constructor `{full_name}` is declared before");
                let error = Diagnostic::error(Code::Redeclared, constructor.name.span, message);
                self.diagnostics.push(error.with(first, "first declared here"));
            }
            return;
        }
        let index = datatype.constructors.len() as u32;
        datatype.constructors.push(Constructor {
            name: full_name,
            params: members,
            is_extern,
            is_static: constructor.storage == Some(Storage::Static),
            span: constructor.name.span,
        });
        self.names.here_mut().values.insert(name, Value::Constructor(id, index));
    }

    /// What a constructor carries, for these arguments of its datatype.
    pub fn constructor_params(&mut self, id: DatatypeId, index: u32, args: &[Ty]) -> Rc<[Member]> {
        let args = match args {
            [] => self.types.no_arguments(),
            _ => args.iter().map(|&arg| self.types.resolve(arg)).collect(),
        };
        let whole = self.make(TyKind::Constructor(id, index, args));
        if let Some(known) = self.constructor_params.get(&whole) {
            return known.clone();
        }
        let TyKind::Constructor(_, _, args) = self.types.get(whole) else { return Rc::default() };
        let datatype = self.declarations.datatype(id);
        let Some(constructor) = datatype.constructors.get(index as usize) else { return Rc::default() };
        let map = Substitution::of(&datatype.params, args);
        let mut params = constructor.params.clone();
        for param in &mut params {
            param.ty = self.types.substitute(param.ty, &map);
        }
        let params: Rc<[Member]> = params.into();
        if self.types.is_settled(whole) && params.iter().all(|param| self.types.is_settled(param.ty)) {
            self.constructor_params.insert(whole, params.clone());
        }
        params
    }
}

//! `__attribute__`s: what they mean here, which may stand where, and what is passed on to C.

use super::Checker;
use crate::ast::{Attribute, ExprKind};
use crate::diagnostics::Code;
use crate::symbol::Symbol;
use crate::types::{Alias, FnAttributes, Format, Function, Pointer, Ty, TyKind};
use std::rc::Rc;

/// Attributes that say something about a function and nothing else.
const OF_FUNCTIONS: [&str; 17] = [
    "stdcall",
    "cdecl",
    "fastcall",
    "noreturn",
    "const",
    "constructor",
    "destructor",
    "no_instrument_function",
    "no_check_memory_usage",
    "format",
    "initializes",
    "noliveunique",
    "consume",
    "noconsume",
    "pure",
    "always_inline",
    "regparm",
];

/// What has an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Variable,
    Member,
    Aggregate,
}

fn word(attribute: &Attribute) -> &'static str {
    attribute.name.name.as_str().trim_matches('_')
}

impl Checker<'_> {
    /// The attributes of a variable, member (of type `ty`), structure or union, as C writes them.
    pub(super) fn plain_attributes(&mut self, attributes: &[Attribute], ty: Option<Ty>, owner: Owner) -> Vec<Symbol> {
        let mut out = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let word = word(attribute);
            if OF_FUNCTIONS.contains(&word) && ty.is_some_and(|ty| self.leads_to_function(ty)) {
                continue;
            }
            if OF_FUNCTIONS.contains(&word) || (word == "packed" && owner == Owner::Variable) {
                let what = match owner {
                    Owner::Variable => "variable",
                    Owner::Member => "member",
                    Owner::Aggregate => "structure or union",
                };
                let message = format!("the attribute `{word}` means nothing for a {what}");
                self.error(Code::BadAttribute, attribute.name.span, message);
                continue;
            }
            out.push(self.attribute_text(attribute));
        }
        out
    }

    /// The attributes of a function, whose parameters are known already.
    pub(super) fn read_fn_attributes<'a>(
        &mut self,
        attributes: impl Iterator<Item = &'a Attribute>,
        function: &mut Function,
    ) {
        for attribute in attributes {
            self.read_fn_attribute(attribute, function);
        }
        let kept = &function.attributes.noconsume;
        function.attributes.consume.retain(|param| !kept.contains(param));
    }

    /// A variable, member or parameter that is a pointer to a function: attributes of functions are about that function.
    pub(super) fn with_fn_attributes(&mut self, ty: Ty, attributes: &[Attribute]) -> Ty {
        if !attributes.iter().any(|attribute| OF_FUNCTIONS.contains(&word(attribute))) {
            return ty;
        }
        match self.types.get(ty).clone() {
            TyKind::Pointer(pointer) => {
                let target = self.with_fn_attributes(pointer.target, attributes);
                self.make(TyKind::Pointer(Pointer { target, ..pointer }))
            }
            TyKind::Function(mut function) => {
                let about_functions = attributes.iter().filter(|attribute| OF_FUNCTIONS.contains(&word(attribute)));
                self.read_fn_attributes(about_functions, Rc::make_mut(&mut function));
                self.make(TyKind::Function(function))
            }
            _ => ty,
        }
    }

    /// Whether a type is a function or a pointer to one.
    fn leads_to_function(&self, ty: Ty) -> bool {
        match self.types.get(ty) {
            TyKind::Function(_) => true,
            TyKind::Pointer(pointer) => self.leads_to_function(pointer.target),
            _ => false,
        }
    }

    fn read_fn_attribute(&mut self, attribute: &Attribute, function: &mut Function) {
        let word = word(attribute);
        match word {
            "noreturn" => function.attributes.noreturn = true,
            "consume" | "noconsume" | "noliveunique" | "initializes" => {
                let Some(param) = self.param_number(attribute, 0, function.params.len()) else { return };
                self.check_param_attribute(attribute, word, param, function);
                let list = match word {
                    "consume" => &mut function.attributes.consume,
                    "noconsume" => &mut function.attributes.noconsume,
                    "noliveunique" => &mut function.attributes.noliveunique,
                    _ => &mut function.attributes.initializes,
                };
                list.push(param);
            }
            "format" => self.read_format(attribute, function),
            "aligned" | "packed" => {
                let message = format!("the attribute `{word}` means nothing for a function");
                self.error(Code::BadAttribute, attribute.name.span, message);
            }
            _ => function.attributes.other.push(self.attribute_text(attribute)),
        }
    }

    /// `format(printf, 1, 2)`: the number of the format, and of the first argument for it (0: none).
    fn read_format(&mut self, attribute: &Attribute, function: &mut Function) {
        let family = match attribute.arguments.first().map(|family| &family.kind) {
            Some(ExprKind::Name(path)) => match path.name.as_str().trim_matches('_') {
                "printf" => Some(Format::Printf),
                "scanf" => Some(Format::Scanf),
                _ => None,
            },
            _ => None,
        };
        let Some(family) = family else { return };
        let Some(text) = self.param_number(attribute, 1, function.params.len()) else { return };
        let first = attribute.arguments.get(2).and_then(|first| self.constant_ast(first));
        let first = first.and_then(|first| usize::try_from(first).ok()).and_then(|first| first.checked_sub(1));
        function.attributes.format = Some((family, text, first));
    }

    /// What a parameter must be for an attribute about it.
    fn check_param_attribute(&mut self, attribute: &Attribute, word: &str, param: usize, function: &Function) {
        let ty = function.params[param].ty;
        let FnAttributes { consume, noconsume, noliveunique, initializes, .. } = &function.attributes;
        let others: &[&Vec<usize>] = match word {
            "initializes" => &[consume, noconsume, noliveunique],
            // What is consumed by the dialect's default is no contradiction.
            "noconsume" => &[initializes, noliveunique],
            _ => &[initializes, noconsume],
        };
        let complaint = if matches!(self.types.get(ty), TyKind::Error) {
            None
        } else if others.iter().any(|list| list.contains(&param)) {
            Some("does not go with what another attribute says about the parameter")
        } else if word == "initializes" {
            match self.types.get(ty) {
                TyKind::Pointer(pointer) => {
                    let one = match self.types.get(pointer.bound) {
                        TyKind::Thin(number) => matches!(self.types.get(*number), TyKind::Nat(1)),
                        _ => false,
                    };
                    if matches!(self.types.get(pointer.nullable), TyKind::True) {
                        Some("is about pointers that are not null")
                    } else if !one {
                        Some("is about pointers to one element")
                    } else if matches!(self.types.get(pointer.zeroterm), TyKind::True) {
                        Some("is about pointers that are not zero-terminated")
                    } else {
                        None
                    }
                }
                _ => Some("is about pointers"),
            }
        } else {
            let aqual = self.types.aquals_of(ty);
            let bound = self.types.alias_bound(aqual);
            (bound == Alias::Aliasable).then_some("is about unique and counted pointers")
        };
        if let Some(complaint) = complaint {
            self.error(Code::BadAttribute, attribute.name.span, format!("`{word}` {complaint}"));
        }
    }

    /// A parameter's number, from 1 as written, from 0 as given back.
    fn param_number(&mut self, attribute: &Attribute, at: usize, params: usize) -> Option<usize> {
        let number = attribute.arguments.get(at).and_then(|number| self.constant_ast(number));
        let number = number.and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| (1..=params).contains(number));
        if number.is_none() {
            let message = format!("`{}` needs the number of a parameter", attribute.name.name);
            self.error(Code::BadAttribute, attribute.name.span, message);
        }
        number.map(|number| number - 1)
    }

    /// An attribute as C writes it, with its constant arguments.
    fn attribute_text(&mut self, attribute: &Attribute) -> Symbol {
        if attribute.arguments.is_empty() {
            return attribute.name.name;
        }
        let mut arguments = Vec::new();
        for argument in &attribute.arguments {
            arguments.push(match self.constant_ast(argument) {
                Some(value) => value.to_string(),
                None => self.source.slice(argument.span).to_owned(),
            });
        }
        Symbol::new(&format!("{}({})", attribute.name.name, arguments.join(",")))
    }
}

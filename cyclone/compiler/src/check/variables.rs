//! Type variables while types are read: where they are bound, and how their kinds are found.
//!
//! A variable's kind is *open* until its binder has been read, unless `::K` is written: its first use gives it the kind that the place wants, later
//! uses may only narrow it. When the binder ends ([`Checker::settle`]) a kind that still says "of known size" becomes "fits a
//! register", the only sort of type that code can be written for without knowing it.

use super::Checker;
use super::overrides::Added;
use super::types::{Position, constant_alias, kind_letter};
use crate::ast::{self, TypeKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::hash::HashMap;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::types::unify::kind_fits;
use crate::types::{AggregateId, Alias, DatatypeId, EnumId, Kind, Ty, TyKind, TyVar, TyVarInfo};

/// What is known while a type is read.
#[derive(Debug, Default)]
pub struct Reading {
    /// The prototype that binds the variables that nothing else binds.
    pub(super) prototype: Option<Prototype>,
    /// Variables whose kind is not settled, and whether they have been used.
    pub(super) open: HashMap<TyVar, bool>,
    /// Names of tags, with the numbers they stand for, that bounds may use.
    pub(super) tags: Vec<(Symbol, Ty)>,
    /// Function types around, in which nothing is inferred about aliasing.
    pub(super) in_function: u32,
    /// Function types around that bind type variables.
    pub(super) depth: u32,
    /// The type parameters that a structure of C gets.
    pub(super) added: Option<Added>,
    /// Aggregates whose members are being read.
    pub(super) being_defined: Vec<AggregateId>,
    /// What is defined in the specifiers at a place: each declarator of a declaration repeats them.
    pub(super) aggregates_at: HashMap<Span, AggregateId>,
    pub(super) enums_at: HashMap<Span, EnumId>,
    pub(super) datatypes_at: HashMap<Span, DatatypeId>,
}

/// The part of [`Reading`] that belongs to one declaration.
#[derive(Debug)]
#[must_use]
pub(super) struct Aside {
    prototype: Option<Prototype>,
    tags: Vec<(Symbol, Ty)>,
    in_function: u32,
    depth: u32,
    added: Option<Added>,
}

/// A prototype being read.
#[derive(Debug, Default)]
pub(super) struct Prototype {
    pub(super) vars: Vec<TyVar>,
    pub(super) named: HashMap<Symbol, TyVar>,
    /// Its type parameters are written in `<..>`: no other named ones are bound.
    pub(super) is_explicit: bool,
}

/// What becomes of a variable of kind "any type" when its binder ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnyKind {
    Stays,
    BecomesBoxed,
}

impl Checker<'_> {
    /// A kind's letter, and the bound that the old dialect's prefixes (`TB`, `UR`) give.
    pub fn read_kind(&mut self, kind: &ast::Ident) -> (Kind, Option<Alias>) {
        let text = kind.name.as_str();
        let (prefix, letter) = if text.len() == 2 { text.split_at(1) } else { ("", text) };
        let alias = match prefix {
            "T" => Some(Alias::Restricted),
            "U" => Some(Alias::Unique),
            "C" => Some(Alias::Refcnt),
            "" if self.is_old() => Some(Alias::Aliasable),
            _ => None,
        };
        let known = match letter {
            "A" => Some((Kind::Any, alias)),
            "M" => Some((Kind::Memory, alias)),
            "B" => Some((Kind::Boxed, alias)),
            "R" | "E" => Some((Kind::Effect, alias.filter(|_| self.is_old()))),
            "I" if prefix.is_empty() => Some((Kind::Int, None)),
            "Q" if prefix.is_empty() => Some((Kind::Aqual, None)),
            _ => None,
        };
        known.filter(|_| alias.is_some() || prefix.is_empty()).unwrap_or_else(|| {
            let message = format!("`{text}` is no kind; the kinds are A, M, B, E, I and Q");
            self.error(Code::WrongKind, kind.span, message);
            (Kind::Boxed, None)
        })
    }

    /// A type variable where a kind is wanted.
    pub(super) fn read_variable(&mut self, var: &ast::TypeVar, want: Kind, position: Position) -> Ty {
        match var.name.as_str() {
            "`H" => return self.make(TyKind::Heap),
            "`C" => {
                if position == Position::Body
                    && let Some(&declared) = self.body.as_ref().and_then(|body| body.lexical.last())
                {
                    return declared;
                }
                let current = self.current_region;
                return self.make(TyKind::Var(current));
            }
            "`U" => return self.owned_word(Alias::Unique, want),
            "`RC" => return self.owned_word(Alias::Refcnt, want),
            _ => {}
        }
        let in_prototype =
            |checker: &Self| checker.reading.prototype.as_ref().and_then(|open| open.named.get(&var.name).copied());
        let found = self.lookup_tyvar(var.name).or_else(|| in_prototype(self));
        let id = match found {
            Some(id) => id,
            None if position != Position::Body && self.binds_implicitly() => self.implicit_parameter(var),
            None => {
                let message = format!("the type variable `{}` is not bound here", var.name);
                let report = Diagnostic::error(Code::UnknownName, var.span, message);
                let advice = format!(
                    "a structure or typedef binds those of its members after its name: ``struct S<{}>``",
                    var.name
                );
                self.diagnostics.push(report.help(advice));
                return self.make(TyKind::Error);
            }
        };
        self.note_written(id, var);
        self.note_use(id, want, var.span);
        self.make(TyKind::Var(id))
    }

    /// `` `U `` or `` `RC ``: a region with its qualifier, or the qualifier alone.
    fn owned_word(&mut self, alias: Alias, want: Kind) -> Ty {
        let aqual = self.make(TyKind::Aqual(alias));
        if want == Kind::Aqual {
            return aqual;
        }
        let heap = self.make(TyKind::Heap);
        self.make(TyKind::Place(heap, aqual))
    }

    fn binds_implicitly(&self) -> bool {
        self.reading.prototype.as_ref().is_some_and(|prototype| !prototype.is_explicit)
    }

    fn implicit_parameter(&mut self, var: &ast::TypeVar) -> TyVar {
        let level = self.level() + 1;
        let id = self.new_parameter(var.name, Alias::Aliasable, level, var.span);
        if let Some(prototype) = &mut self.reading.prototype {
            prototype.vars.push(id);
            prototype.named.insert(var.name, id);
        }
        id
    }

    /// A type parameter that the prototype being read has without writing it.
    pub(super) fn fresh_parameter(&mut self, kind: Kind, span: Span) -> TyVar {
        let number = self.reading.prototype.as_ref().map_or(0, |prototype| prototype.vars.len());
        let level = self.level() + 1;
        let id = self.new_parameter(TyVarInfo::unwritten_name(number), Alias::Aliasable, level, span);
        self.reading.open.remove(&id);
        self.types.var_mut(id).kind = kind;
        if let Some(prototype) = &mut self.reading.prototype {
            prototype.vars.push(id);
        }
        id
    }

    fn new_parameter(&mut self, name: Symbol, alias: Alias, level: u32, span: Span) -> TyVar {
        let id = self.types.new_var(TyVarInfo { name, kind: Kind::Boxed, alias, level, span });
        self.reading.open.insert(id, false);
        id
    }

    /// Binds parameters written in `<..>`; the names are bound in the present scope. `alias` is their bound unless written.
    pub(super) fn bind_parameters(&mut self, params: &[ast::Type], alias: Alias) -> Vec<TyVar> {
        let mut out: Vec<TyVar> = Vec::with_capacity(params.len());
        for param in params {
            let TypeKind::Var(var) = &param.kind else {
                self.error(Code::Syntax, param.span, "a type variable is expected here");
                continue;
            };
            let level = self.level() + self.reading.depth.max(1);
            let id = self.new_parameter(var.name, alias, level, var.span);
            if out.iter().any(|&other| self.types.var(other).name == var.name) {
                self.error(Code::Redeclared, var.span, format!("the type variable `{}` is bound twice", var.name));
            }
            self.note_written(id, var);
            if self.types.var(id).kind == Kind::Memory && !self.is_open(id) {
                let message =
                    format!("nothing can be written over `{}` of kind M: its size would have to be known", var.name);
                self.error(Code::WrongKind, var.span, message);
            }
            self.bind_tyvar(var.name, id);
            out.push(id);
        }
        out
    }

    /// Takes over what is written after a variable: `::B`, `\T`.
    fn note_written(&mut self, id: TyVar, var: &ast::TypeVar) {
        if let Some(kind) = &var.kind {
            let (kind, alias) = self.read_kind(kind);
            let have = self.types.var(id).kind;
            match self.reading.open.remove(&id) {
                Some(false) => self.types.var_mut(id).kind = kind,
                Some(true) if kind_fits(kind, have) => self.types.var_mut(id).kind = kind,
                None if kind == have => {}
                _ => self.inconsistent(id, have, kind, var.span),
            }
            if let Some(alias) = alias {
                self.types.var_mut(id).alias = alias;
            }
            self.note_place(id);
        }
        if let Some(alias) = var.aqual.as_ref().map(|aqual| constant_alias(aqual).unwrap_or(Alias::Restricted)) {
            self.types.var_mut(id).alias = alias;
        }
    }

    /// A variable is used where a kind is wanted: while its kind is open, that narrows it.
    fn note_use(&mut self, id: TyVar, want: Kind, span: Span) {
        let have = self.types.var(id).kind;
        let Some(used) = self.reading.open.get_mut(&id) else { return };
        let narrower = !*used || kind_fits(want, have);
        *used = true;
        if narrower {
            self.types.var_mut(id).kind = want;
        } else if !kind_fits(have, want) {
            self.inconsistent(id, have, want, span);
        }
    }

    fn inconsistent(&mut self, id: TyVar, have: Kind, want: Kind, span: Span) {
        let name = self.types.var(id).shown();
        let message = format!("`{name}` is used with kind {} and with kind {}", kind_letter(have), kind_letter(want));
        self.error(Code::WrongKind, span, message);
    }

    /// Whether the kind of a variable is not settled yet.
    pub(super) fn is_open(&self, var: TyVar) -> bool {
        self.reading.open.contains_key(&var)
    }

    /// The binder of these variables has been read: their kinds do not change any more.
    pub(super) fn settle(&mut self, vars: &[TyVar], any: AnyKind) {
        for &var in vars {
            if self.reading.open.remove(&var).is_some() {
                let info = self.types.var_mut(var);
                if info.kind == Kind::Memory || (info.kind == Kind::Any && any == AnyKind::BecomesBoxed) {
                    info.kind = Kind::Boxed;
                }
            }
            self.note_place(var);
        }
    }

    /// Begins a declaration inside of another one: what is being read around it has nothing to do with it.
    pub(super) fn put_aside(&mut self) -> Aside {
        let reading = &mut self.reading;
        Aside {
            prototype: reading.prototype.take(),
            tags: std::mem::take(&mut reading.tags),
            in_function: std::mem::take(&mut reading.in_function),
            depth: std::mem::take(&mut reading.depth),
            added: reading.added.take(),
        }
    }

    /// Ends what [`Checker::put_aside`] began.
    pub(super) fn take_back(&mut self, aside: Aside) {
        let reading = &mut self.reading;
        reading.prototype = aside.prototype;
        reading.tags = aside.tags;
        reading.in_function = aside.in_function;
        reading.depth = aside.depth;
        reading.added = aside.added;
    }

    /// Whether the members of an aggregate are being read, so that it is not complete yet.
    pub(super) fn is_being_read(&self, id: AggregateId) -> bool {
        self.reading.being_defined.contains(&id)
    }
}

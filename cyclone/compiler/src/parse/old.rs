//! Forms of early versions of Cyclone, which have another form now: they are read as that, with a warning.
//!
//! | then | now |
//! | --- | --- |
//! | `tunion T { A(int); B }`, `enum T { A(int), B }` | `datatype T { A(int), B }` |
//! | `xtunion T`, `xenum T` | `@extensible datatype T` |
//! | `int a[?]` | `int ?a` |
//!
//! None of the words is a keyword: they mean this only where nobody declared them and a name follows.

use super::declarators::Modifier;
use super::{Parsed, Parser};
use crate::ast::{Path, Pointer, Quals, Sigil, Type, TypeKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::lex::Tok;
use crate::source::Span;
use thin_vec::ThinVec;

/// A word that began a datatype.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OldDatatype {
    Plain,
    Extensible,
}

impl Parser<'_> {
    fn old_form(&mut self, span: Span, then: &str, now: &str) {
        let message = format!("{then} is how early versions of Cyclone had it: write {now}");
        self.diagnostics.push(Diagnostic::warning(Code::OldForm, span, message));
    }

    /// Does `ahead` tokens from here a datatype begin?
    pub(super) fn old_datatype(&self, ahead: usize) -> Option<OldDatatype> {
        if !matches!(self.kind_at(ahead + 1), Tok::Name | Tok::QualifiedName) || self.kind_at(ahead) != Tok::Name {
            return None;
        }
        let word = match self.text_at(ahead) {
            "tunion" => OldDatatype::Plain,
            "xtunion" | "xenum" => OldDatatype::Extensible,
            _ => return None,
        };
        if self.names_type(ahead) { None } else { Some(word) }
    }

    /// `tunion T ..`
    pub(super) fn old_datatype_specifier(&mut self, word: OldDatatype) -> Parsed<TypeKind> {
        let is_extensible = word == OldDatatype::Extensible;
        let now = if is_extensible { "`@extensible datatype`" } else { "`datatype`" };
        let then = format!("`{}`", self.text());
        self.old_form(self.span(), &then, now);
        self.bump();
        let name = self.path()?;
        self.datatype_after_name(is_extensible, name)
    }

    /// After `enum T`: is `T` known to have values, or does a constant with values follow?
    pub(super) fn is_old_enum(&self, name: Option<&Path>) -> bool {
        let Some(name) = name else { return false };
        if !self.is(Tok::LBrace) {
            return self.old_enums.contains(&name.name);
        }
        // What lies in the braces, up to the first thing that is no plain constant.
        let mut ahead = 1;
        while self.kind_at(ahead) == Tok::Name && self.kind_at(ahead + 1) == Tok::Comma {
            ahead += 2;
        }
        self.kind_at(ahead) == Tok::Name && self.kind_at(ahead + 1) == Tok::LParen
    }

    /// After `enum T`, where it has values.
    pub(super) fn old_enum(&mut self, name: Option<Path>) -> Parsed<TypeKind> {
        let Some(name) = name else { return self.unexpected("a name") };
        self.old_enums.insert(name.name);
        self.old_form(name.span, "`enum` with values", "`datatype`");
        self.datatype_after_name(false, name)
    }

    /// After `[`: `?]`, the fat pointers of early versions.
    pub(super) fn fat_array(&mut self, start: Span) -> Option<Modifier> {
        if !(self.is(Tok::Question) && self.kind_at(1) == Tok::RBracket) {
            return None;
        }
        self.bump();
        self.bump();
        let span = self.since(start);
        self.old_form(span, "`[?]`", "`?` before the name");
        let pointer = Pointer {
            target: Type::int(span),
            sigil: Sigil::Question,
            bound: None,
            quals: ThinVec::new(),
            effect: None,
            attributes: ThinVec::new(),
        };
        Some(Modifier::Pointer(Box::new(pointer), Quals::default(), span))
    }
}

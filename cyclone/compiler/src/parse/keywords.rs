//! Keywords of Cyclone that a program uses as names.
//!
//! C programs have variables that are called `new` or `region`, and members that are called `try`. Where only a name can stand a
//! keyword that C does not have is one: after `.` and `->`, as the name of a structure, and as what a declaration declares. From there on it
//! is that name up to the end of its block, and so the keyword is not to be had there.

use super::{Parsed, Parser};
use crate::ast::{Ident, Path};
use crate::lex::Tok;
use crate::symbol::Symbol;

/// Which keywords are names.
#[derive(Default)]
pub(super) struct AsNames {
    /// Those that have stood where a name is declared, anywhere: of members and prototypes' parameters too.
    seen: Vec<Symbol>,
    /// Those that are names here.
    declared: Vec<Symbol>,
}

impl AsNames {
    pub fn is_name(&self, word: Option<Symbol>) -> bool {
        !self.declared.is_empty() && word.is_some_and(|word| self.declared.contains(&word))
    }

    /// A name is declared: says whether it is a keyword that becomes a name by that.
    fn declare(&mut self, name: Symbol) -> bool {
        let is_new = self.seen.contains(&name) && !self.declared.contains(&name);
        if is_new {
            self.declared.push(name);
        }
        is_new
    }

    pub fn declared(&self) -> usize {
        self.declared.len()
    }

    pub fn truncate(&mut self, declared: usize) {
        self.declared.truncate(declared);
    }
}

impl Parser<'_> {
    /// Does a keyword stand here that can be a name? What makes objects cannot: C declares `malloc` as a function, which it is not.
    pub(super) fn is_nameable_keyword(&self) -> bool {
        self.kind().is_cyclone_only() && !matches!(self.kind(), Tok::Malloc | Tok::Calloc | Tok::Null)
    }

    /// In the place of a declared name: does a keyword stand there, and then what can follow a name?
    pub(super) fn keyword_is_declared(&self) -> bool {
        self.is_nameable_keyword()
            && matches!(
                self.kind_at(1),
                Tok::Semi
                    | Tok::Comma
                    | Tok::Assign
                    | Tok::LParen
                    | Tok::RParen
                    | Tok::LBracket
                    | Tok::Colon
                    | Tok::Attribute
            )
    }

    /// A name is declared, which may be a keyword.
    pub(super) fn declare_keyword(&mut self, name: Symbol) {
        if self.keywords.declare(name) {
            self.look();
        }
    }

    /// Takes a keyword as a name.
    pub(super) fn keyword_as_name(&mut self) -> Ident {
        let ident = Ident { name: self.symbol(), span: self.span() };
        self.keywords.seen.push(ident.name);
        self.bump();
        ident
    }

    /// The name of a member.
    pub(super) fn member(&mut self) -> Parsed<Ident> {
        if self.is_nameable_keyword() { Ok(self.keyword_as_name()) } else { self.ident() }
    }

    /// The name of a structure, union or enumeration, if there is one.
    pub(super) fn tag(&mut self) -> Parsed<Option<Path>> {
        if self.is_nameable_keyword() {
            let Ident { name, span } = self.keyword_as_name();
            return Ok(Some(Path { qualifier: None, name, span }));
        }
        if self.is_name() { Ok(Some(self.path()?)) } else { Ok(None) }
    }

    /// The name of an enumeration's constant.
    pub(super) fn enumerator(&mut self) -> Parsed<Path> {
        if !(self.is_nameable_keyword() && matches!(self.kind_at(1), Tok::Comma | Tok::RBrace | Tok::Assign)) {
            return self.path();
        }
        let Ident { name, span } = self.keyword_as_name();
        self.declare_keyword(name);
        Ok(Path { qualifier: None, name, span })
    }
}

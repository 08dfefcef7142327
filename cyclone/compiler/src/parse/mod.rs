//! From tokens to the syntax tree: recursive descent, by hand.
//!
//! C's grammar needs to know which names are types; `Parser::names_type` keeps that: `typedef` adds a name, a variable of the same
//! name in a block hides it until the block ends. Where a name that nobody declared stands in a place that only a type can
//! have (`foo_t x;`), it is read as a type, so that the missing declaration is reported as such, and not as a syntax error.
//!
//! How the files share the work: `items` (what stands outside of functions), `types` (specifiers), `declarators`, `statements`,
//! `patterns`, `expressions`; `keywords` (those that a program uses as names), `old` (what has another form now). Each function
//! begins at its construct's first token and ends after its last. A function that fails has pushed a diagnostic and returns
//! `Failed`; statements and items are where parsing resumes.
//!
//! Limits, so that no input can exhaust the stack: `DEPTH_LIMIT` levels of nesting and `CHAIN_LIMIT` operators in one chain.

mod declarators;
mod expressions;
mod items;
mod keywords;
mod old;
mod patterns;
mod statements;
mod types;

use crate::ast::{Ident, Item, Path};
use crate::diagnostics::{Code, Diagnostic};
use crate::hash::HashSet;
use crate::lex::{Tok, Token};
use crate::source::{Source, Span};
use crate::symbol::Symbol;
use thin_vec::ThinVec;

/// Nested constructs past this are an error.
pub const DEPTH_LIMIT: u32 = 400;

/// Operators in one chain (`a + b + ..`, `a.b.c..`) past this are an error.
pub const CHAIN_LIMIT: u32 = 20_000;

/// Parsing ends after this many errors.
const ERROR_LIMIT: usize = 100;

/// The construct could not be parsed; a diagnostic says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

type Parsed<T> = Result<T, Failed>;

/// Parses a translation unit. The result is what could be parsed; it is whole if no error was added to `diagnostics`.
pub fn parse(source: &Source, tokens: &[Token], diagnostics: &mut Vec<Diagnostic>) -> ThinVec<Item> {
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        current: Tok::End,
        diagnostics,
        errors: 0,
        typedefs: HashSet::default(),
        hidden: Vec::new(),
        keywords: Default::default(),
        old_enums: HashSet::default(),
        in_c: 0,
        depth: 0,
        item_depth: 0,
        split: false,
    };
    parser.look();
    parser.items_to_end()
}

struct Parser<'a> {
    source: &'a Source,
    tokens: &'a [Token],
    at: usize,
    /// What the token there is taken for: see [`Parser::look`].
    current: Tok,
    diagnostics: &'a mut Vec<Diagnostic>,
    errors: usize,
    typedefs: HashSet<Symbol>,
    /// Variables in scope that have a typedef's name; blocks cut it back to its length at their start.
    hidden: Vec<Symbol>,
    keywords: keywords::AsNames,
    /// Enumerations with values, of early versions.
    old_enums: HashSet<Symbol>,
    /// How many blocks of C are open.
    in_c: u32,
    depth: u32,
    /// Nesting of namespaces and the like; items reset `depth`.
    item_depth: u32,
    /// The current token is `>>` (or the like), and its first `>` was taken.
    split: bool,
}

/// How much was declared where a block began.
#[derive(Clone, Copy)]
struct Scope {
    hidden: usize,
    keywords: usize,
}

impl Parser<'_> {
    #[inline]
    fn kind(&self) -> Tok {
        self.current
    }

    /// The token here is another one, or may be taken for something else than before.
    fn look(&mut self) {
        self.current = match (self.split, self.tokens[self.at].kind) {
            (false, _) => self.kind_at(0),
            (true, Tok::ShrAssign) => Tok::Ge,
            (true, Tok::Ge) => Tok::Assign,
            (true, _) => Tok::Gt,
        };
    }

    fn kind_at(&self, ahead: usize) -> Tok {
        let token = &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)];
        if token.kind.is_cyclone_only() && (self.in_c > 0 || self.keywords.is_name(token.symbol)) {
            return Tok::Name;
        }
        token.kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The span from a start to the last token taken.
    fn since(&self, start: Span) -> Span {
        let last = self.tokens[self.at.saturating_sub(1)].span;
        if last.end < start.start { start } else { start.to(last) }
    }

    fn text(&self) -> &str {
        self.source.slice(self.span())
    }

    fn text_at(&self, ahead: usize) -> &str {
        self.source.slice(self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].span)
    }

    fn bump(&mut self) {
        self.split = false;
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        self.look();
    }

    fn is(&self, kind: Tok) -> bool {
        self.kind() == kind
    }

    fn eat(&mut self, kind: Tok) -> bool {
        let found = self.is(kind);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: Tok) -> Parsed<()> {
        if self.eat(kind) { Ok(()) } else { self.unexpected(kind.text()) }
    }

    /// Takes one `>`, splitting `>>` and its like.
    fn expect_right_angle(&mut self) -> Parsed<()> {
        match self.tokens[self.at].kind {
            Tok::Shr | Tok::ShrAssign | Tok::Ge if !self.split => {
                self.split = true;
                self.look();
                Ok(())
            }
            _ => self.expect(Tok::Gt),
        }
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let found = match self.kind() {
            kind @ (Tok::Name | Tok::QualifiedName | Tok::TypeVar | Tok::Number) => {
                format!("{} (`{}`)", kind.text(), self.text())
            }
            kind => kind.text().to_owned(),
        };
        self.fail(self.span(), format!("expected {expected}, found {found}"))
    }

    fn fail<T>(&mut self, span: Span, message: impl Into<String>) -> Parsed<T> {
        self.report(span, message, None);
        Err(Failed)
    }

    /// As [`Self::fail`], with what to write instead.
    fn fail_with<T>(&mut self, span: Span, message: impl Into<String>, help: &str) -> Parsed<T> {
        self.report(span, message, Some(help));
        Err(Failed)
    }

    fn report(&mut self, span: Span, message: impl Into<String>, help: Option<&str>) {
        self.errors += 1;
        if self.errors <= ERROR_LIMIT {
            let error = Diagnostic::error(Code::Syntax, span, message);
            self.diagnostics.push(Diagnostic { help: help.map(str::to_owned), ..error });
        }
    }

    fn gave_up(&self) -> bool {
        self.errors > ERROR_LIMIT
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_LIMIT {
            return self.fail(self.span(), format!("nested more than {DEPTH_LIMIT} levels deep"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn symbol(&self) -> Symbol {
        self.tokens[self.at].symbol.unwrap_or_else(|| Symbol::new(self.text()))
    }

    fn is_name(&self) -> bool {
        matches!(self.kind(), Tok::Name | Tok::QualifiedName)
    }

    /// A name without qualifier.
    fn ident(&mut self) -> Parsed<Ident> {
        if !self.is(Tok::Name) {
            return self.unexpected("a name");
        }
        let ident = Ident { name: self.symbol(), span: self.span() };
        self.bump();
        Ok(ident)
    }

    /// A name with or without qualifier.
    fn path(&mut self) -> Parsed<Path> {
        if !self.is_name() {
            return self.unexpected("a name");
        }
        let (qualifier, name) = match self.tokens[self.at].symbol {
            Some(name) => (None, name),
            None => match self.text().rsplit_once("::") {
                Some((qualifier, name)) => (Some(Symbol::new(qualifier)), Symbol::new(name)),
                None => (None, self.symbol()),
            },
        };
        let path = Path { qualifier, name, span: self.span() };
        self.bump();
        Ok(path)
    }

    /// Is the name `ahead` tokens from here a type's?
    fn names_type(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            Tok::Name => {
                let token = self.tokens[(self.at + ahead).min(self.tokens.len() - 1)];
                let Some(name) = token.symbol else { return false };
                self.typedefs.contains(&name) && !self.hidden.contains(&name)
            }
            Tok::QualifiedName => {
                let last = self.text_at(ahead).rsplit("::").next().unwrap_or_default();
                self.typedefs.contains(&Symbol::new(last))
            }
            _ => false,
        }
    }

    /// A variable, parameter or function of this name is declared.
    fn declare_variable(&mut self, name: Symbol) {
        if self.typedefs.contains(&name) && !self.hidden.contains(&name) {
            self.hidden.push(name);
        }
        self.declare_keyword(name);
    }

    /// What is declared from here on is known up to [`Self::leave_scope`].
    fn enter_scope(&self) -> Scope {
        Scope { hidden: self.hidden.len(), keywords: self.keywords.declared() }
    }

    fn leave_scope(&mut self, scope: Scope) {
        self.hidden.truncate(scope.hidden);
        self.keywords.truncate(scope.keywords);
        self.look();
    }

    /// A comma-separated list up to `end`, which is taken. May be empty; a comma before `end` is accepted.
    fn list<T>(&mut self, end: Tok, mut element: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<ThinVec<T>> {
        let mut elements = ThinVec::new();
        while !self.is(end) {
            elements.push(element(self)?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(end)?;
        Ok(elements)
    }

    /// Skips to after the `}` of the block around, from inside of it.
    fn skip_block(&mut self) {
        let mut depth = 0_usize;
        while !self.is(Tok::End) {
            match self.kind() {
                Tok::LBrace => depth += 1,
                Tok::RBrace if depth == 0 => return self.bump(),
                Tok::RBrace => depth -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to after the next `;`, or after the braces that open before it, or to before a `}` that closes what is around.
    fn recover(&mut self) {
        self.split = false;
        self.look();
        let mut depth = 0_usize;
        loop {
            match self.kind() {
                Tok::End => return,
                Tok::Semi if depth == 0 => return self.bump(),
                Tok::LBrace | Tok::LParen => depth += 1,
                Tok::RParen => depth = depth.saturating_sub(1),
                Tok::RBrace if depth == 0 => return,
                Tok::RBrace => {
                    depth -= 1;
                    if depth == 0 {
                        return self.bump();
                    }
                }
                _ => {}
            }
            self.bump();
        }
    }
}

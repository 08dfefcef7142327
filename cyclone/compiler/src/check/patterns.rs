//! Patterns: typing, exhaustiveness, `switch`, `try`, `let`.

use super::Checker;
use crate::ast;
use crate::diagnostics::Code;
use crate::source::Span;
use crate::tree::{Stmt, StmtKind};

impl Checker<'_> {
    fn no_patterns_yet(&mut self, span: Span) -> StmtKind {
        self.error(Code::Unsupported, span, "patterns cannot be compiled yet");
        StmtKind::Empty
    }

    /// `switch`
    pub fn switch(&mut self, _value: &ast::Expr, _clauses: &[ast::Clause], span: Span) -> StmtKind {
        self.no_patterns_yet(span)
    }

    /// `try .. catch`
    pub fn try_catch(&mut self, _body: &ast::Stmt, _clauses: &[ast::Clause], span: Span) -> StmtKind {
        self.no_patterns_yet(span)
    }

    /// `fallthru(..)`
    pub fn fallthru(&mut self, _arguments: &[ast::Expr], span: Span) -> StmtKind {
        self.no_patterns_yet(span)
    }

    /// `let p = e;` and the statements after it.
    pub fn let_pattern(
        &mut self,
        _pattern: &ast::Pattern,
        _value: &ast::Expr,
        rest: &[ast::Stmt],
        span: Span,
    ) -> Vec<Stmt> {
        self.error(Code::Unsupported, span, "patterns cannot be compiled yet");
        self.statements(rest)
    }
}

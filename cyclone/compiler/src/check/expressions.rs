//! Expressions.

use super::Checker;
use crate::ast;
use crate::diagnostics::Code;
use crate::tree::Expr;
use crate::types::Ty;

impl Checker<'_> {
    /// An expression; arrays and functions stay what they are.
    pub fn expr(&mut self, expr: &ast::Expr, _expected: Option<Ty>) -> Expr {
        self.wrong(Code::Unsupported, expr.span, "this expression cannot be compiled yet")
    }
}

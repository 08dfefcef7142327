//! Statements without patterns.

use super::Checker;
use crate::ast;
use crate::diagnostics::Code;
use crate::tree::{Block, Stmt, StmtKind};

impl Checker<'_> {
    /// A block with its own scope.
    pub fn block(&mut self, block: &ast::Block) -> Block {
        self.push_scope();
        let statements = self.statements(&block.statements);
        self.pop_scope();
        Block { region: None, statements, span: block.span }
    }

    /// Statements of a block, in order.
    pub fn statements(&mut self, statements: &[ast::Stmt]) -> Vec<Stmt> {
        let mut out = Vec::new();
        for statement in statements {
            match &statement.kind {
                ast::StmtKind::Declaration(declaration) => out.extend(self.declaration_in_body(declaration)),
                _ => {
                    self.error(Code::Unsupported, statement.span, "this statement cannot be compiled yet");
                    out.push(Stmt { kind: StmtKind::Empty, span: statement.span });
                }
            }
        }
        out
    }
}

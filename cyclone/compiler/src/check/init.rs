//! Initialisers and allocation.

use super::Checker;
use crate::ast;
use crate::tree::Init;
use crate::types::Ty;

impl Checker<'_> {
    /// An initial value for something of this type; gives back the type, completed.
    pub fn initialiser(&mut self, init: &ast::Expr, ty: Ty) -> (Init, Ty) {
        (Init::Value(self.expr(init, Some(ty))), ty)
    }
}

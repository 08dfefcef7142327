//! Items: variables, functions, aggregates, datatypes, enumerations, typedefs, namespaces, blocks of C.

use super::Checker;
use crate::ast::Item;
use crate::diagnostics::Code;
use crate::source::Span;

impl Checker<'_> {
    /// Checks items in order.
    pub fn items(&mut self, items: &[Item]) {
        for _ in items {
            self.error(Code::Unsupported, Span::default(), "declarations are not checked yet");
        }
    }

    /// What can only be said when all has been seen.
    pub fn finish(&mut self) {}
}

//! Where regions begin and end in the text, for messages about pointers that would live longer.

use super::Checker;
use crate::diagnostics::Diagnostic;
use crate::source::Span;
use crate::types::{Ty, TyKind, TyVar};

/// The part of the text in which a region lives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Where it is declared; nowhere for the variables of a block.
    opened: Option<Span>,
    /// The block that it ends with.
    block: Span,
}

impl Checker<'_> {
    /// Notes that a region begins, which ends with `block`.
    pub(super) fn begins(&mut self, region: TyVar, opened: Option<Span>, block: Span) {
        self.extents.insert(region, Extent { opened, block });
    }

    /// The innermost block around.
    pub(super) fn current_block(&self) -> Span {
        let block = self.body.as_ref().and_then(|body| body.blocks.last());
        block.and_then(|block| self.extents.get(&block.region)).map_or(Span::default(), |extent| extent.block)
    }

    /// Adds to a report where the regions of an effect begin and end.
    pub(super) fn with_extents(&mut self, mut report: Diagnostic, effect: Ty) -> Diagnostic {
        let parts = match self.types.get(effect) {
            TyKind::Var(_) => vec![effect],
            _ => self.types.effect_parts(effect),
        };
        for part in parts {
            let TyKind::Var(var) = *self.types.get(part) else { continue };
            let info = self.types.var(var);
            let name = info.shown();
            let Some(&Extent { opened, block }) = self.extents.get(&var) else {
                report = report.with(
                    info.span,
                    match name {
                        "_" => "where this leads is the caller's choice".to_owned(),
                        name => format!("`{name}` is bound here"),
                    },
                );
                continue;
            };
            let end = Span { start: block.end.saturating_sub(1).max(block.start), end: block.end };
            report = match opened {
                Some(opened) => {
                    report.with(opened, format!("the region `{name}` begins here")).with(end, "it ends here")
                }
                None => report.with(end, "the block's variables end here"),
            };
        }
        report
    }
}

//! What the user may have meant by a name that is not known.

use super::Checker;
use crate::ast::{Ident, Path};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::Expr;
use crate::types::{Ty, TyKind};

impl Checker<'_> {
    /// Reports a name that stands for no value.
    pub(super) fn unknown_value(&mut self, path: &Path, span: Span) -> Expr {
        let mut report = Diagnostic::error(Code::UnknownName, span, format!("`{path}` is not declared"));
        if let Some(full) = self.names.elsewhere(path.name) {
            let namespace = full.as_str().trim_end_matches(path.name.as_str()).trim_end_matches("::");
            report = report.help(format!("`{full}` is: write that, or `using {namespace};` before"));
        } else if let Some(similar) = similar(path.name, self.names.value_names()) {
            report = report.help(format!("`{similar}` is declared"));
        }
        self.diagnostics.push(report);
        Expr::error(&mut self.types, span)
    }

    /// Adds the member of `ty` with a similar name to a report, if there is one, and makes the report.
    pub(super) fn with_similar_member(&mut self, mut report: Diagnostic, ty: Ty, name: Symbol) {
        if let TyKind::Aggregate(id, _) = self.types.get(ty)
            && let Some(body) = &self.declarations.aggregate(*id).body
            && let Some(similar) = similar(name, body.fields.iter().filter_map(|field| field.name))
        {
            report = report.help(format!("there is a member `{similar}`"));
        }
        self.diagnostics.push(report);
    }

    /// Reports a variable of a pattern that would hold what has no known size. In a datatype's place it may be a constructor's name,
    /// written wrongly.
    pub(super) fn unsized_variable(&mut self, name: Ident, ty: Ty) {
        let message = format!("`{}` would have a type of unknown size", name.name);
        let mut report = Diagnostic::error(Code::BadPattern, name.span, message);
        if let TyKind::Datatype(id, _) = self.types.get(ty) {
            let constructors = &self.declarations.datatype(*id).constructors;
            if let Some(similar) = similar(name.name, constructors.iter().map(|constructor| constructor.name)) {
                report = report.help(format!("there is a constructor `{similar}`"));
            }
        }
        self.diagnostics.push(report);
    }
}

/// The name that differs least, if it is by no more than a third of its letters. Equally good ones: the first in the alphabet.
fn similar(name: Symbol, names: impl Iterator<Item = Symbol>) -> Option<Symbol> {
    let most = name.as_str().chars().count().div_ceil(3);
    names
        .map(|other| (strsim::damerau_levenshtein(name.as_str(), other.as_str()), other))
        .filter(|(distance, other)| *distance <= most && other.as_str().chars().count() > *distance)
        .min_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.as_str().cmp(b.1.as_str())))
        .map(|(_, other)| other)
}

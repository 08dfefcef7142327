//! What the compiler's phases say of one file that is being edited.

use super::places;
use crate::diagnostics::{Diagnostic, Severity};
use crate::driver::options::Options;
use crate::driver::unit::{preprocess_text, preprocessor_error};
use crate::driver::{Unit, parse_text};
use crate::flow::walk;
use crate::original::Originals;
use crate::source::{Source, Span};
use crate::tree::{Expr, ExprKind, Function, LocalId, Program};
use crate::types::{TyKind, print};
use crate::{check, flow};
use lsp_types::{
    DiagnosticRelatedInformation, DiagnosticSeverity, Hover, HoverContents, LanguageString, Location, MarkedString,
    NumberOrString, Position,
};
use std::path::Path;

/// A file that went through the phases up to `flow`, as far as its errors let it.
pub struct Analysis {
    /// As it is named in the source.
    file: String,
    source: Source,
    originals: Originals,
    diagnostics: Vec<Diagnostic>,
    program: Option<Program>,
}

/// What stands at a place.
enum Found<'a> {
    Expr(&'a Function, &'a Expr),
    Local(&'a Function, LocalId),
}

impl Analysis {
    /// The text of a file, which need not be what is saved under that name.
    pub fn of(path: &Path, text: &str, options: &Options) -> Analysis {
        let file = path.to_string_lossy().into_owned();
        let mut originals = Originals::default();
        originals.insert(&file, text);
        let preprocessed = match preprocess_text(path, text, options) {
            Ok(preprocessed) => preprocessed,
            Err(message) => {
                let (source, diagnostic) = preprocessor_error(path.as_os_str(), &message);
                return Analysis { file, source, originals, diagnostics: vec![diagnostic], program: None };
            }
        };
        let Unit { source, items, mut diagnostics } = parse_text(&file, preprocessed);
        let mut program = None;
        if !diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            let mut checked = check::check(&source, &items, options.dialect, &mut diagnostics);
            flow::analyse(&mut checked, flow::Options { warn_lost: options.lose_unique }, &mut diagnostics);
            program = Some(checked);
        }
        Analysis { file, source, originals, diagnostics, program }
    }

    /// The messages about the file; one about a file that it includes stands at its beginning.
    pub fn diagnostics(&mut self) -> Vec<lsp_types::Diagnostic> {
        let diagnostics = std::mem::take(&mut self.diagnostics);
        let shown = diagnostics.iter().map(|diagnostic| self.diagnostic(diagnostic)).collect();
        self.diagnostics = diagnostics;
        shown
    }

    fn diagnostic(&mut self, diagnostic: &Diagnostic) -> lsp_types::Diagnostic {
        let quote = self.originals.quote(&self.source, diagnostic.span);
        let mut message = diagnostic.message.clone();
        let range = if quote.file == self.file {
            places::range(quote.line, &quote.text, quote.columns)
        } else {
            message = format!("{}:{}: {message}", quote.file, quote.line);
            places::range(1, "", 0..0)
        };
        if let Some(help) = &diagnostic.help {
            message = format!("{message}\nhelp: {help}");
        }
        let related = diagnostic.related.iter().filter_map(|(span, what)| {
            Some(DiagnosticRelatedInformation { location: self.location(*span)?, message: what.clone() })
        });
        let related: Vec<_> = related.collect();
        lsp_types::Diagnostic {
            range,
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(diagnostic.code.number().to_owned())),
            source: Some("cyc".to_owned()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..lsp_types::Diagnostic::default()
        }
    }

    fn location(&mut self, span: Span) -> Option<Location> {
        let quote = self.originals.quote(&self.source, span);
        let range = places::range(quote.line, &quote.text, quote.columns);
        Some(Location { uri: places::uri_of(Path::new(&quote.file))?, range })
    }

    /// The type of the smallest expression at a place.
    pub fn hover(&mut self, position: Position) -> Option<Hover> {
        let offset = self.offset(position)?;
        let program = self.program.as_ref()?;
        let (name, ty, span) = match at(program, offset)? {
            Found::Local(function, id) => {
                let local = &function.locals[id.0 as usize];
                (Some(local.name), local.ty, local.span)
            }
            Found::Expr(function, expr) => (name_of(program, function, expr), expr.ty, expr.span),
        };
        let shown = print::show(&program.types, &program.declarations, ty);
        let value = name.map_or(shown.clone(), |name| format!("{name}: {shown}"));
        let quote = self.originals.quote(&self.source, span);
        Some(Hover {
            contents: HoverContents::Scalar(MarkedString::LanguageString(LanguageString {
                language: "cyclone".to_owned(),
                value,
            })),
            range: Some(places::range(quote.line, &quote.text, quote.columns)),
        })
    }

    /// Where what a place names is declared.
    pub fn definition(&mut self, position: Position) -> Option<Location> {
        let offset = self.offset(position)?;
        let program = self.program.as_ref()?;
        let declarations = &program.declarations;
        let span = match at(program, offset)? {
            Found::Local(function, id) => function.locals[id.0 as usize].span,
            Found::Expr(function, expr) => match &expr.kind {
                ExprKind::Local(id) => function.locals[id.0 as usize].span,
                ExprKind::Global(id) => declarations.global(*id).span,
                ExprKind::Construct(id, index, _) => declarations.datatype(*id).constructors[*index as usize].span,
                ExprKind::Member(base, index) | ExprKind::TaggedMember(base, index, _) => {
                    let TyKind::Aggregate(id, _) = program.types.get(base.ty) else { return None };
                    declarations.aggregate(*id).body.as_ref()?.fields.get(*index)?.span
                }
                _ => return None,
            },
        };
        self.location(span)
    }

    fn offset(&mut self, position: Position) -> Option<u32> {
        let line = position.line + 1;
        let byte = places::byte_of(self.originals.line(&self.file, line)?, position.character);
        self.originals.offset(&self.source, &self.file, line, byte)
    }
}

/// The smallest thing around a byte of the preprocessed text.
fn at(program: &Program, offset: u32) -> Option<Found<'_>> {
    let holds = |span: Span| span.start <= offset && offset < span.end;
    let mut found: Option<(u32, Found<'_>)> = None;
    for function in program.functions.iter().filter(|function| holds(function.span)) {
        let locals = function.locals.iter().enumerate().filter(|(_, local)| holds(local.span));
        for (id, local) in locals {
            let length = local.span.end - local.span.start;
            found = Some((length, Found::Local(function, LocalId(id as u32))));
        }
        walk::expressions(function, &mut |expr| {
            let length = expr.span.end - expr.span.start;
            let is_plain = !matches!(expr.kind, ExprKind::Coerce(..) | ExprKind::Instantiate(..));
            if holds(expr.span) && is_plain && found.as_ref().is_none_or(|(shortest, _)| length < *shortest) {
                found = Some((length, Found::Expr(function, expr)));
            }
        });
    }
    found.map(|(_, found)| found)
}

/// What an expression names.
fn name_of(program: &Program, function: &Function, expr: &Expr) -> Option<crate::symbol::Symbol> {
    match &expr.kind {
        ExprKind::Local(id) => Some(function.locals[id.0 as usize].name),
        ExprKind::Global(id) => Some(program.declarations.global(*id).name),
        ExprKind::Member(base, index) => match program.types.get(base.ty) {
            TyKind::Aggregate(id, _) => program.declarations.aggregate(*id).body.as_ref()?.fields.get(*index)?.name,
            _ => None,
        },
        _ => None,
    }
}

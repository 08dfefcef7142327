//! What the compiler's phases say of one file that is being edited.

use super::completion::Offer;
use super::declared::{Declared, word_at};
use super::places;
use super::references::canonical;
use super::signature::Signature;
use crate::diagnostics::{Diagnostic, Severity};
use crate::driver::options::Options;
use crate::driver::{Unit, parse_text, preprocessing};
use crate::flow::walk;
use crate::original::Originals;
use crate::source::{Source, Span};
use crate::tree::{Expr, ExprKind, Field, Function, LocalId, Program};
use crate::types::{Ty, TyKind, print};
use crate::{check, flow};
use lsp_types::{
    CompletionItemKind, DiagnosticRelatedInformation, DiagnosticSeverity, Hover, HoverContents, LanguageString,
    Location, MarkedString, NumberOrString, Position,
};
use std::path::{Path, PathBuf};

/// How many lines of a type's declaration are shown.
const SHOWN_LINES: usize = 20;

/// How far a text is analysed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// As far as the compiler would.
    Errors,
    /// For the types of what is right in a text that may have any errors.
    Types,
}

/// A file that went through the phases up to `flow`, as far as its errors let it.
pub struct Analysis {
    /// As it is named in the source.
    file: String,
    pub(super) source: Source,
    pub(super) originals: Originals,
    diagnostics: Vec<Diagnostic>,
    pub(super) program: Option<Program>,
    pub(super) declared: Declared,
}

/// What stands at a place.
enum Found<'a> {
    Expr(&'a Function, &'a Expr),
    Local(&'a Function, LocalId),
}

impl Analysis {
    /// The text of a file, which need not be what is saved under that name.
    pub fn of(path: &Path, text: &str, options: &Options, depth: Depth) -> Analysis {
        let file = path.to_string_lossy().into_owned();
        let mut originals = Originals::default();
        originals.insert(&file, text);
        let preprocessed = match preprocessing::preprocess(path, text, options) {
            Ok(preprocessed) => preprocessed.text,
            Err(error) => {
                let (source, diagnostic) = preprocessing::diagnostic(path.as_os_str(), Some(text), &error);
                let declared = Declared::default();
                return Analysis { file, source, originals, diagnostics: vec![diagnostic], program: None, declared };
            }
        };
        let Unit { source, items, mut diagnostics } = parse_text(&file, preprocessed);
        let declared = Declared::of(&items);
        let mut program = None;
        if depth == Depth::Types || !diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            let mut checked = check::check(&source, &items, options.rules, &mut diagnostics);
            if depth == Depth::Errors {
                let asked = flow::Options { warn_lost: options.lose_unique, loopholes: options.rules.loopholes };
                flow::analyse(&mut checked, asked, &mut diagnostics);
            }
            program = Some(checked);
        }
        Analysis { file, source, originals, diagnostics, program, declared }
    }

    /// The file that was analysed.
    pub fn file(&self) -> PathBuf {
        canonical(&self.file)
    }

    /// What is wrong with it.
    pub fn errors(&self) -> Vec<String> {
        let errors = self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        errors.map(|diagnostic| diagnostic.message.clone()).collect()
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

    /// The declaration of the type that a place names, or the type of the smallest expression there.
    pub fn hover(&mut self, position: Position) -> Option<Hover> {
        let offset = self.offset(position)?;
        let (value, span) = match self.type_at(offset) {
            Some((declared, span)) => {
                let lines = self.source.slice(self.declared.types[declared].whole).lines().take(SHOWN_LINES);
                (lines.collect::<Vec<_>>().join("\n"), span)
            }
            None => self.value_at(offset)?,
        };
        let quote = self.originals.quote(&self.source, span);
        Some(Hover {
            contents: HoverContents::Scalar(MarkedString::LanguageString(LanguageString {
                language: "cyclone".to_owned(),
                value,
            })),
            range: Some(places::range(quote.line, &quote.text, quote.columns)),
        })
    }

    /// An expression's or variable's name and type.
    fn value_at(&self, offset: u32) -> Option<(String, Span)> {
        let program = self.program.as_ref()?;
        let (name, ty, span) = match at(program, offset)? {
            Found::Local(function, id) => {
                let local = &function.locals[id.0 as usize];
                (Some(local.name), local.ty, local.span)
            }
            Found::Expr(function, expr) => (name_of(program, function, expr), expr.ty, expr.span),
        };
        let shown = print::show(&program.types, &program.declarations, ty);
        Some((name.map_or(shown.clone(), |name| format!("{name}: {shown}")), span))
    }

    /// Which type a place names, if it names no value.
    fn type_at(&self, offset: u32) -> Option<(usize, Span)> {
        let (word, span) = word_at(&self.source.text, offset as usize)?;
        let last = word.rsplit("::").next().unwrap_or(word);
        let is_value = self.program.as_ref().and_then(|program| at(program, offset)).is_some_and(|found| match found {
            Found::Local(..) => true,
            Found::Expr(_, expr) => {
                let text = self.source.slice(expr.span);
                text.ends_with(last) && expr.span.end == span.end
            }
        });
        let declared = if is_value { None } else { self.declared.find(word, offset) };
        let declared = declared?;
        let index = self.declared.types.iter().position(|ty| std::ptr::eq(ty, declared))?;
        Some((index, span))
    }

    /// The members of what ends at a place.
    pub fn members(&mut self, position: Position) -> Vec<Offer> {
        let Some(offset) = self.offset(position) else { return Vec::new() };
        let Some(program) = &self.program else { return Vec::new() };
        let mut base: Option<&Expr> = None;
        for function in &program.functions {
            walk::expressions(function, &mut |expr| {
                let shorter = base.is_none_or(|base| expr.span.start >= base.span.start);
                if expr.span.end == offset + 1 && shorter && has_members(program, expr.ty) {
                    base = Some(expr);
                }
            });
        }
        let mut offers = Vec::new();
        if let Some(base) = base {
            members_of(program, base.ty, &mut offers);
        }
        offers
    }

    /// How the function that ends at a place is called.
    pub fn signature(&mut self, end: Position) -> Option<Signature> {
        let offset = self.offset(end)?;
        let program = self.program.as_ref()?;
        let function_type = |ty| match program.types.get(pointed_to(program, ty)) {
            TyKind::Function(function) => Some(&**function),
            _ => None,
        };
        let mut found = None;
        for around in &program.functions {
            walk::expressions(around, &mut |expr| {
                if expr.span.end == offset + 1
                    && let Some(function) = function_type(expr.ty)
                {
                    found = Some((function, name_of(program, around, expr)));
                }
            });
        }
        let (function, name) = found?;
        let show = |ty| print::show(&program.types, &program.declarations, ty);
        let name = name.map_or(String::new(), |name| name.to_string());
        let mut signature = Signature {
            label: format!("{} {name}(", show(function.result)),
            parameters: Vec::new(),
            takes_more: function.c_varargs || function.varargs.is_some(),
        };
        let named = |ty, name: Option<crate::symbol::Symbol>| {
            let shown = show(ty);
            let space = if shown.ends_with(|c: char| c.is_alphanumeric()) { " " } else { "" };
            name.map_or(shown.clone(), |name| format!("{shown}{space}{name}"))
        };
        let mut texts: Vec<String> = function.params.iter().map(|param| named(param.ty, param.name)).collect();
        match &function.varargs {
            Some(varargs) => {
                let inject = if varargs.inject { "inject " } else { "" };
                texts.push(format!("...{inject}{}", named(varargs.ty, varargs.name)));
            }
            None if function.c_varargs => texts.push("...".to_owned()),
            None => {}
        }
        for (index, text) in texts.iter().enumerate() {
            signature.label.push_str(if index == 0 { "" } else { ", " });
            let start = signature.label.len();
            signature.label.push_str(text);
            signature.parameters.push(start..signature.label.len());
        }
        signature.label.push(')');
        Some(signature)
    }

    /// The names that can stand at a place: those of a namespace, or all.
    pub fn names(&mut self, scope: Option<&str>, position: Position) -> Vec<Offer> {
        let offset = self.offset(position);
        let mut offers = Vec::new();
        let mut add = |name: &str, kind, detail: String| {
            let inside = |namespace: &str| name.strip_prefix(namespace)?.strip_prefix("::");
            let reached = match scope {
                Some(scope) => inside(scope)
                    .or_else(|| self.declared.used.iter().find_map(|used| inside(&format!("{used}::{scope}")))),
                None => self.declared.used.iter().find_map(|used| inside(used)).or(Some(name)),
            };
            let Some(reached) = reached else { return };
            match reached.split_once("::") {
                Some((namespace, _)) => {
                    offers.push((namespace.to_owned(), CompletionItemKind::MODULE, String::new()));
                }
                None => offers.push((reached.to_owned(), kind, detail)),
            }
        };
        for ty in &self.declared.types {
            add(&ty.name, CompletionItemKind::STRUCT, String::new());
        }
        let Some(program) = &self.program else { return offers };
        let show = |ty| print::show(&program.types, &program.declarations, ty);
        for global in &program.declarations.globals {
            let kind = match program.types.get(global.ty) {
                TyKind::Function(_) => CompletionItemKind::FUNCTION,
                _ => CompletionItemKind::VARIABLE,
            };
            add(global.name.as_str(), kind, show(global.ty));
        }
        for (name, _) in program.declarations.enums.iter().filter_map(|e| e.values.as_ref()).flatten() {
            add(name.as_str(), CompletionItemKind::ENUM_MEMBER, String::new());
        }
        for constructor in program.declarations.datatypes.iter().flat_map(|datatype| &datatype.constructors) {
            add(constructor.name.as_str(), CompletionItemKind::ENUM_MEMBER, String::new());
        }
        let around = |function: &&Function| {
            offset.is_some_and(|offset| function.span.start <= offset && offset <= function.span.end)
        };
        for function in program.functions.iter().filter(around) {
            let declared = function.locals.iter().filter(|local| Some(local.span.start) < offset);
            for local in declared.filter(|_| scope.is_none()) {
                offers.push((local.name.to_string(), CompletionItemKind::VARIABLE, show(local.ty)));
            }
        }
        offers
    }

    /// Where what a place names is declared.
    pub fn definition(&mut self, position: Position) -> Option<Location> {
        let offset = self.offset(position)?;
        if let Some((declared, _)) = self.type_at(offset) {
            return self.location(self.declared.types[declared].at);
        }
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
        let line = position.line.checked_add(1)?;
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

/// The structure, union or tuple that a value is, or leads to.
fn pointed_to(program: &Program, ty: Ty) -> Ty {
    match program.types.get(ty) {
        TyKind::Pointer(pointer) => pointer.target,
        _ => ty,
    }
}

fn has_members(program: &Program, ty: Ty) -> bool {
    matches!(program.types.get(pointed_to(program, ty)), TyKind::Aggregate(..) | TyKind::Tuple(_))
}

fn members_of(program: &Program, ty: Ty, offers: &mut Vec<Offer>) {
    let show = |ty| print::show(&program.types, &program.declarations, ty);
    match program.types.get(pointed_to(program, ty)) {
        TyKind::Aggregate(id, _) => {
            let fields = program.declarations.aggregate(*id).body.as_ref().map_or(&[][..], |body| &body.fields);
            for Field { name, ty, .. } in fields {
                match name {
                    Some(name) => offers.push((name.to_string(), CompletionItemKind::FIELD, show(*ty))),
                    // Those of an unnamed structure inside are members too.
                    None if has_members(program, *ty) => members_of(program, *ty, offers),
                    None => {}
                }
            }
        }
        TyKind::Tuple(members) => {
            for (index, member) in members.iter().enumerate() {
                offers.push((index.to_string(), CompletionItemKind::FIELD, show(member.ty)));
            }
        }
        _ => {}
    }
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

//! What each occurrence of a name stands for, in one translation unit.
//!
//! The typed tree knows variables, functions, members and constructors; the syntax tree knows what is declared outside of functions. An
//! occurrence that neither knows (a label, the name of a member where several structures have one of that name) has no meaning here.

use super::declared::{Declared, word_at};
use crate::flow::walk;
use crate::hash::HashMap;
use crate::source::{Source, Span};
use crate::tree::{Expr, ExprKind, Function, Linkage, Pattern, PatternKind, Program};
use crate::types::TyKind;

/// What a name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// A variable or function that other units can see, by its full name.
    Linked(String),
    /// Anything else, by where its name is declared in the preprocessed text.
    Declared(u32),
}

/// The meanings of one name in a unit.
pub struct Meanings<'a> {
    source: &'a Source,
    program: &'a Program,
    declared: &'a Declared,
    word: &'a str,
    known: HashMap<u32, Meaning>,
}

impl<'a> Meanings<'a> {
    /// Of a name without its namespaces.
    pub fn of(source: &'a Source, program: &'a Program, declared: &'a Declared, word: &'a str) -> Meanings<'a> {
        let mut meanings = Meanings { source, program, declared, word, known: HashMap::default() };
        meanings.declarations();
        for function in &program.functions {
            meanings.function(function);
        }
        for init in program.declarations.globals.iter().filter_map(|global| global.init.as_ref()) {
            walk::in_init(init, &mut |expr| meanings.expression(None, expr));
        }
        meanings
    }

    /// Where the name stands in the preprocessed text, in order, and what it means there.
    pub fn occurrences(&self) -> Vec<(Span, Option<Meaning>)> {
        let text = &self.source.text;
        let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let bytes = text.as_bytes();
        let found = text.match_indices(self.word).filter(|(start, _)| {
            let before = start.checked_sub(1).and_then(|at| bytes.get(at));
            !is_part(before) && !is_part(bytes.get(start + self.word.len())) && before != Some(&b'`')
        });
        found
            .map(|(start, _)| {
                let span = Span { start: start as u32, end: (start + self.word.len()) as u32 };
                (span, self.known.get(&span.start).cloned().or_else(|| self.type_or_member(span)))
            })
            .collect()
    }

    fn note(&mut self, span: Span, meaning: Meaning) {
        if self.source.slice(span) == self.word {
            self.known.entry(span.start).or_insert(meaning);
        }
    }

    /// A name with its namespaces begins a span: the last part means this.
    fn note_path(&mut self, span: Span, meaning: Meaning) {
        let span = self.without_parentheses(span);
        let Some((path, at)) = word_at(&self.source.text, span.start as usize) else { return };
        let last = path.rsplit("::").next().unwrap_or(path);
        self.note(Span { start: at.end - last.len() as u32, end: at.end }, meaning);
    }

    /// An expression's span has the parentheses around it.
    fn without_parentheses(&self, span: Span) -> Span {
        let text = self.source.slice(span);
        let inner = text.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
        let start = span.start + (text.len() - inner.len()) as u32;
        let inner = inner.trim_end_matches(|c: char| c == ')' || c.is_whitespace());
        Span { start, end: start + inner.len() as u32 }
    }

    /// A name ends a span.
    fn note_end(&mut self, span: Span, meaning: Meaning) {
        let span = self.without_parentheses(span);
        if let Some(start) = span.end.checked_sub(self.word.len() as u32).filter(|start| *start >= span.start) {
            self.note(Span { start, end: span.end }, meaning);
        }
    }

    fn declarations(&mut self) {
        let (program, declared) = (self.program, self.declared);
        for (name, span) in &declared.values {
            let global = program.declarations.globals.iter().find(|global| global.name.as_str() == name);
            if let Some(meaning) = global.map(meaning_of_global) {
                self.note(*span, meaning);
            }
        }
        for span in declared.parameters.iter().chain(declared.enumerators.iter().map(|(_, span)| span)) {
            self.note(*span, Meaning::Declared(span.start));
        }
        for ty in &declared.types {
            self.note(ty.at, Meaning::Declared(ty.at.start));
        }
        let bodies = program.declarations.aggregates.iter().filter_map(|aggregate| aggregate.body.as_ref());
        for field in bodies.flat_map(|body| &body.fields) {
            self.note(field.span, Meaning::Declared(field.span.start));
        }
        for constructor in program.declarations.datatypes.iter().flat_map(|datatype| &datatype.constructors) {
            self.note(constructor.span, Meaning::Declared(constructor.span.start));
        }
    }

    fn function(&mut self, function: &Function) {
        for local in &function.locals {
            self.note(local.span, Meaning::Declared(local.span.start));
        }
        walk::expressions(function, &mut |expr| self.expression(Some(function), expr));
        walk::patterns(function, &mut |pattern| self.pattern(pattern));
    }

    fn expression(&mut self, function: Option<&Function>, expr: &Expr) {
        let declarations = &self.program.declarations;
        match &expr.kind {
            ExprKind::Local(id) => {
                if let Some(local) = function.and_then(|function| function.locals.get(id.0 as usize)) {
                    self.note_path(expr.span, Meaning::Declared(local.span.start));
                }
            }
            ExprKind::Global(id) => self.note_path(expr.span, meaning_of_global(declarations.global(*id))),
            ExprKind::Construct(id, index, _) => {
                let at = declarations.datatype(*id).constructors[*index as usize].span.start;
                self.note_path(expr.span, Meaning::Declared(at));
            }
            ExprKind::Member(base, index)
            | ExprKind::TaggedMember(base, index, _)
            | ExprKind::TagCheck(base, index) => {
                let TyKind::Aggregate(id, _) = self.program.types.get(base.ty) else { return };
                let body = declarations.aggregate(*id).body.as_ref();
                if let Some(field) = body.and_then(|body| body.fields.get(*index)) {
                    self.note_end(expr.span, Meaning::Declared(field.span.start));
                }
            }
            ExprKind::Int(_) => self.enumerator(expr.span),
            _ => {}
        }
    }

    fn pattern(&mut self, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Constructor(id, index, _) => {
                let constructor = &self.program.declarations.datatype(*id).constructors[*index as usize];
                self.note_path(pattern.span, Meaning::Declared(constructor.span.start));
            }
            PatternKind::Int(_) => self.enumerator(pattern.span),
            _ => {}
        }
    }

    /// A number may be written as a constant of an enumeration; several of one name are told apart by their namespaces only.
    fn enumerator(&mut self, span: Span) {
        let span = self.without_parentheses(span);
        let Some((path, at)) = word_at(&self.source.text, span.start as usize).filter(|(_, at)| *at == span) else {
            return;
        };
        let suffix = format!("::{path}");
        let mut named = self.declared.enumerators.iter().filter(|(name, _)| name == path || name.ends_with(&suffix));
        if let (Some((_, declared)), None) = (named.next(), named.next()) {
            self.note_path(at, Meaning::Declared(declared.start));
        }
    }

    fn type_or_member(&self, span: Span) -> Option<Meaning> {
        let before = self.source.text[..span.start as usize].trim_end();
        if before.ends_with('.') && !before.ends_with("...") {
            let bodies = self.program.declarations.aggregates.iter().filter_map(|aggregate| aggregate.body.as_ref());
            let fields = bodies.flat_map(|body| &body.fields);
            let mut named = fields.filter(|field| field.name.is_some_and(|name| name.as_str() == self.word));
            return match (named.next(), named.next()) {
                (Some(field), None) => Some(Meaning::Declared(field.span.start)),
                _ => None,
            };
        }
        let (path, at) = word_at(&self.source.text, span.start as usize)?;
        // A qualifier is a namespace's name.
        if path.rsplit("::").next() != Some(self.word) || self.source.text[span.end as usize..].starts_with("::") {
            return None;
        }
        let before = self.source.text[..at.start as usize].trim_end();
        let has_word = ["struct", "union", "enum", "datatype"].iter().any(|word| before.ends_with(word));
        let found = self.declared.find_kind(path, span.start, has_word)?;
        Some(Meaning::Declared(found.at.start))
    }
}

fn meaning_of_global(global: &crate::tree::Global) -> Meaning {
    match global.linkage {
        Linkage::Internal => Meaning::Declared(global.span.start),
        Linkage::External | Linkage::C => Meaning::Linked(global.name.to_string()),
    }
}

//! Functions inside functions.
//!
//! Each becomes a function of its own. The variables around it come to it by pointers, as hidden first parameters: each call gives the
//! addresses of those that the function uses and `NULL` for the others. So a function that uses variables can only be called, and one
//! that uses none is a value like any other. A pointer that owns its object cannot be reached in this way.
//!
//! Which variables might be used is seen from the words in the function's text, because a function that calls itself has its parameters
//! before its body is read. [`Checker::name`] notes which are.

use super::declare::function_global;
use super::names::Value;
use super::{Body, Checker};
use crate::ast::{self, ExprKind, Quals, UnOp};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{self, Checks, Expr, GlobalId, Linkage, LocalId};
use crate::types::{FnAttributes, Member, Pointer, TyKind};
use std::rc::Rc;

/// A variable of the function around that a function inside may use.
#[derive(Debug)]
pub(super) struct Capture {
    name: Symbol,
    /// The name of the hidden parameter, which also means the variable where the function can be called.
    hidden: Symbol,
    value: Value,
    /// While the body is read, all are: it might call itself.
    is_used: bool,
}

/// What stands around the body of a function inside.
pub(super) struct Around<'a> {
    pub(super) body: &'a Body,
    /// The names of the variables that the hidden parameters stand for, and of those parameters.
    pub(super) captures: &'a [(Symbol, Symbol)],
}

impl Checker<'_> {
    /// A function inside the function being checked.
    pub(super) fn nested_function(&mut self, definition: &ast::FunctionDef) {
        let tail = self.tail.take();
        self.define_nested(definition);
        self.tail = tail;
    }

    fn define_nested(&mut self, definition: &ast::FunctionDef) {
        if !definition.storage.is_empty() {
            self.error(Code::Misplaced, definition.name.span, "a function inside a function has no storage class");
        }
        let captures = self.captures_of(definition);
        let may_use = !captures.is_empty();
        let (defined, reported) = (self.functions.len(), self.diagnostics.len());
        let pending = self.body.as_ref().map_or(0, |body| body.pending.len());
        if !self.define_with(definition, captures) && may_use {
            // Its own variables have those names: it is as if there were none around.
            self.functions.truncate(defined);
            self.diagnostics.truncate(reported);
            if let Some(body) = &mut self.body {
                body.pending.truncate(pending);
            }
            self.define_with(definition, Vec::new());
        }
    }

    /// Gives back whether some of the captures are used.
    fn define_with(&mut self, definition: &ast::FunctionDef, captures: Vec<Capture>) -> bool {
        let Some(mut function) = self.defined_type(definition) else { return true };
        for capture in &captures {
            self.bind_value(capture.hidden, capture.value);
        }
        let mut params: Vec<Member> = captures.iter().filter_map(|capture| self.hidden_parameter(capture)).collect();
        shift(&mut function.attributes, params.len());
        params.append(&mut function.params);
        function.params = params;
        let name = self.declared_name(&definition.name);
        let ty = self.make(TyKind::Function(Rc::new(function)));
        let id = GlobalId(self.declarations.globals.len() as u32);
        let full_name = self.names.qualified(Symbol::new(&format!("{name}__{}", id.0)));
        let global = function_global(full_name, ty, Linkage::Internal, definition);
        self.declarations.globals.push(global);
        self.bind_value(name, Value::Global(id));
        let names: Vec<(Symbol, Symbol)> = captures.iter().map(|capture| (capture.name, capture.hidden)).collect();
        self.nested.insert(id, captures);
        let Some(mut outside) = self.body.take() else { return true };
        let hidden = self.names.hide_variables();
        let around = Around { body: &outside, captures: &names };
        let used_outside = std::mem::take(&mut self.used_captures);
        let pending = self.function_body(definition, id, name, Some(&around));
        outside.pending.extend(pending);
        self.names.show_variables(hidden);
        self.body = Some(outside);
        let is_any_used = self.note_used(id, definition.name.span);
        self.used_captures.extend(used_outside);
        is_any_used
    }

    /// The variables around whose names stand in the function's text.
    fn captures_of(&mut self, definition: &ast::FunctionDef) -> Vec<Capture> {
        let mut words: Vec<Symbol> = self
            .source
            .slice(definition.span)
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(Symbol::new)
            .collect();
        let meaning =
            |checker: &Self, name| checker.lookup_value(&ast::Path { qualifier: None, name, span: definition.span });
        // What a function called here uses is used here, too.
        for at in 0..words.len() {
            if let Some(Value::Global(id)) = meaning(self, words[at])
                && let Some(captures) = self.nested.get(&id)
            {
                words.extend(captures.iter().map(|capture| capture.hidden));
            }
        }
        let mut out: Vec<Capture> = Vec::new();
        for name in words {
            let Some(value @ (Value::Local(id) | Value::Captured(id))) = meaning(self, name) else { continue };
            let Some(local) = self.body.as_ref().and_then(|body| body.locals.get(id.0 as usize)) else { continue };
            let hidden = match value {
                Value::Captured(_) => local.name,
                _ => Symbol::new(&format!("_cyc_{}_{name}", local.span.start)),
            };
            if !out.iter().any(|capture| capture.hidden == hidden) {
                out.push(Capture { name, hidden, value, is_used: true });
            }
        }
        out
    }

    /// A pointer to the variable, or null.
    fn hidden_parameter(&mut self, capture: &Capture) -> Option<Member> {
        let (Value::Local(id) | Value::Captured(id)) = capture.value else { return None };
        let local = self.body.as_ref()?.locals.get(id.0 as usize)?;
        let (ty, quals, region) = (local.ty, local.quals, local.region);
        let ty = match (capture.value, self.types.get(ty)) {
            (Value::Captured(_), TyKind::Pointer(_)) => ty,
            _ => {
                let pointer = self.pointer_to(ty, quals, region);
                let nullable = self.make(TyKind::True);
                self.pointer_type(Pointer { nullable, ..pointer })
            }
        };
        Some(Member { name: Some(capture.hidden), ty, quals: Quals::default() })
    }

    /// A variable of the function around, by its hidden parameter.
    pub(super) fn captured(&mut self, id: LocalId, span: Span) -> Expr {
        let Some(local) = self.body.as_ref().and_then(|body| body.locals.get(id.0 as usize)) else {
            return Expr::error(&mut self.types, span);
        };
        let (ty, hidden) = (local.ty, local.name);
        let TyKind::Pointer(pointer) = self.types.get(ty) else { return Expr::error(&mut self.types, span) };
        let target = pointer.target;
        self.used_captures.insert(hidden);
        let pointer = Expr { kind: tree::ExprKind::Local(id), ty, span };
        Expr { kind: tree::ExprKind::Deref(Box::new(pointer), Checks::NONE), ty: target, span }
    }

    /// After the body: which variables are used, if any. An owned pointer among them is reported. What the function around has by a
    /// hidden parameter itself counts as used there, too.
    fn note_used(&mut self, id: GlobalId, span: Span) -> bool {
        let Some(mut captures) = self.nested.remove(&id) else { return false };
        let mut is_any_used = false;
        let used = std::mem::take(&mut self.used_captures);
        for capture in &mut captures {
            capture.is_used = used.contains(&capture.hidden);
            is_any_used |= capture.is_used;
            if let (Value::Captured(_), true) = (capture.value, capture.is_used) {
                self.used_captures.insert(capture.hidden);
            }
            let (Value::Local(local), true) = (capture.value, capture.is_used) else { continue };
            let ty = self.body.as_ref().and_then(|body| body.locals.get(local.0 as usize)).map(|local| local.ty);
            if ty.is_some_and(|ty| self.is_owned(ty)) {
                let message = format!("a function inside cannot use the unique or counted pointer `{}`", capture.name);
                let error = Diagnostic::error(Code::NotUnique, span, message);
                self.diagnostics.push(error.help("give it to the function as an argument"));
                capture.is_used = false;
            }
        }
        self.nested.insert(id, captures);
        is_any_used
    }

    /// The arguments of a call with those for hidden parameters; `None` if there are none.
    pub(super) fn with_hidden_arguments(
        &mut self,
        callee: &ast::Expr,
        arguments: &[ast::Expr],
    ) -> Option<Vec<ast::Expr>> {
        let callee = match &callee.kind {
            ExprKind::Instantiate(inner, _) => inner,
            _ => callee,
        };
        let ExprKind::Name(path) = &callee.kind else { return None };
        let Some(Value::Global(id)) = self.lookup_value(path) else { return None };
        let span = callee.span;
        let captures = self.nested.get(&id)?;
        let hidden = captures.iter().map(|capture| {
            let kind = if capture.is_used {
                let name = ast::Path { qualifier: None, name: capture.hidden, span };
                ExprKind::Unary(UnOp::Address, Box::new(ast::Expr { kind: ExprKind::Name(name), span }))
            } else {
                ExprKind::Null
            };
            ast::Expr { kind, span }
        });
        Some(hidden.chain(arguments.iter().cloned()).collect())
    }

    /// Reports a function inside that is used as a value though it uses variables.
    pub(super) fn refuse_as_value(&mut self, function: &Expr) -> Option<Expr> {
        let tree::ExprKind::Global(id) = &function.kind else { return None };
        if self.nested.get(id).is_none_or(|captures| captures.is_empty()) {
            return None;
        }
        let message = "this function uses variables of the function around it, so that it can only be called";
        let error = Diagnostic::error(Code::Misplaced, function.span, message);
        self.diagnostics.push(error.help("write it outside, and give it what it needs as arguments"));
        Some(Expr::error(&mut self.types, function.span))
    }
}

/// Attributes number the parameters: there are `by` more before them.
fn shift(attributes: &mut FnAttributes, by: usize) {
    let lists =
        [&mut attributes.consume, &mut attributes.noconsume, &mut attributes.noliveunique, &mut attributes.initializes];
    for number in lists.into_iter().flatten() {
        *number += by;
    }
    if let Some((_, format, first)) = &mut attributes.format {
        *format += by;
        *first = first.map(|first| first + by);
    }
}

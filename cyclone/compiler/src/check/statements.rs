//! Statements without patterns, and the blocks they stand in.
//!
//! Each block is a scope and a region. Statements that hold for the rest of their block (a region, an alias, an opened package) take
//! what follows them into themselves.

use super::{BlockState, Checker};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Block, Expr, ExprKind, LabelId, Stmt, StmtKind, Wide};
use crate::types::{Alias, Kind, Quals, Ty, TyKind, TyVar, TyVarInfo};
use thin_vec::ThinVec;

/// The value that a statement expression ends with.
#[derive(Debug)]
pub(super) struct Tail {
    expected: Option<Ty>,
    ty: Option<Ty>,
}

impl Checker<'_> {
    /// `{ .. }`
    pub fn block(&mut self, block: &ast::Block) -> Block {
        self.named_block(block, None)
    }

    /// The body of a function: its region is the function's own.
    pub(super) fn function_block(&mut self, block: &ast::Block) -> Block {
        let statements = self.statements(&block.statements);
        Block { region: None, statements, span: block.span }
    }

    fn named_block(&mut self, block: &ast::Block, name: Option<Symbol>) -> Block {
        self.block_of(&block.statements, name, block.span)
    }

    /// Statements as a block of their own.
    pub fn block_of(&mut self, statements: &[ast::Stmt], name: Option<Symbol>, span: Span) -> Block {
        let region = self.open_block(name, span);
        let statements = self.statements(statements);
        self.close_block();
        Block { region: Some(region), statements, span }
    }

    /// The block of a statement expression, and the type of the value it ends with.
    pub fn block_with_value(&mut self, block: &ast::Block, expected: Option<Ty>) -> (Block, Option<Ty>) {
        if self.body.is_none() {
            self.error(Code::Misplaced, block.span, "statements stand in functions only");
            return (Block { region: None, statements: ThinVec::new(), span: block.span }, None);
        }
        let region = self.open_block(None, block.span);
        let before = self.tail.replace(Tail { expected, ty: None });
        let statements = self.statements(&block.statements);
        let tail = std::mem::replace(&mut self.tail, before);
        self.close_block();
        let ty = tail.and_then(|tail| tail.ty);
        (Block { region: Some(region), statements, span: block.span }, ty)
    }

    /// Begins a block: a scope and a fresh region, which `name` (without a backquote) names.
    pub fn open_block(&mut self, name: Option<Symbol>, span: Span) -> TyVar {
        self.push_scope();
        let level = self.level() + 1;
        let shown = name.map_or_else(|| "`block".to_owned(), |name| format!("`{name}"));
        let shown = Symbol::new(&shown);
        let info = TyVarInfo { name: shown, kind: Kind::Effect, alias: Alias::Aliasable, level, span };
        let region = self.types.new_var(info);
        self.begins(region, None, span);
        if name.is_some() {
            self.bind_tyvar(shown, region);
        }
        if let Some(body) = &mut self.body {
            let capability = body.capability.clone();
            body.blocks.push(BlockState { region, level: body.level, capability });
            body.level = level;
        }
        self.enter_region(region);
        region
    }

    /// Ends the block begun last, with all that was opened in it.
    pub fn close_block(&mut self) {
        if let Some(body) = &mut self.body
            && let Some(block) = body.blocks.pop()
        {
            body.level = block.level;
            body.capability = block.capability;
        }
        self.pop_scope();
    }

    /// The statements of a block.
    pub fn statements(&mut self, statements: &[ast::Stmt]) -> ThinVec<Stmt> {
        let tail = self.tail.take();
        let mut out = ThinVec::with_capacity(statements.len());
        for (index, statement) in statements.iter().enumerate() {
            let rest = &statements[index + 1..];
            if rest.is_empty() {
                self.tail = tail;
                self.last_statement(statement, &mut out);
                return out;
            }
            if takes_the_rest(statement) {
                self.tail = tail;
                self.with_rest(statement, rest, &mut out);
                return out;
            }
            self.statement_into(statement, &mut out);
        }
        out
    }

    /// A statement that holds for the rest of its block, and the rest.
    fn with_rest(&mut self, statement: &ast::Stmt, rest: &[ast::Stmt], out: &mut ThinVec<Stmt>) {
        let span = statement.span;
        match &statement.kind {
            ast::StmtKind::Let(pattern, value) => out.extend(self.let_pattern(pattern, value, rest, span)),
            ast::StmtKind::Region(region) => out.extend(self.region_statement(region, rest, span)),
            ast::StmtKind::Labelled(name, inner) => {
                let label = self.label(*name, Met::Here);
                let empty = Box::new(Stmt { kind: StmtKind::Empty, span });
                out.push(Stmt { kind: StmtKind::Labelled(label, empty), span });
                self.with_rest(inner, rest, out);
            }
            _ => self.statement_into(statement, out),
        }
    }

    /// The last statement of a block, whose value may be the value of a statement expression.
    fn last_statement(&mut self, statement: &ast::Stmt, out: &mut ThinVec<Stmt>) {
        let span = statement.span;
        match (&statement.kind, self.tail.as_mut().map(|tail| tail.expected)) {
            (ast::StmtKind::Expr(expr), Some(expected)) => {
                let value = self.value(expr, expected);
                self.check_consumed(&value);
                if let Some(tail) = &mut self.tail {
                    tail.ty = Some(value.ty);
                }
                out.push(Stmt { kind: StmtKind::Expr(value), span });
            }
            (ast::StmtKind::Let(pattern, value), _) => out.extend(self.let_pattern(pattern, value, &[], span)),
            (ast::StmtKind::Region(region), _) => out.extend(self.region_statement(region, &[], span)),
            _ => {
                let tail = self.tail.take();
                self.statement_into(statement, out);
                self.tail = tail;
            }
        }
    }

    /// A statement where the grammar has one: what it declares lives in a block of its own.
    pub fn statement(&mut self, statement: &ast::Stmt) -> Stmt {
        let span = statement.span;
        match &statement.kind {
            ast::StmtKind::Declaration(_)
            | ast::StmtKind::Let(..)
            | ast::StmtKind::LetNames(_)
            | ast::StmtKind::Region(_) => {
                let block = self.block_of(std::slice::from_ref(statement), None, span);
                Stmt { kind: StmtKind::Block(block), span }
            }
            _ => {
                let mut out = ThinVec::with_capacity(1);
                self.statement_into(statement, &mut out);
                match (out.pop(), out.is_empty()) {
                    (Some(only), true) => only,
                    (Some(last), false) => {
                        out.push(last);
                        Stmt { kind: StmtKind::Block(Block { region: None, statements: out, span }), span }
                    }
                    (None, _) => Stmt { kind: StmtKind::Empty, span },
                }
            }
        }
    }

    fn boxed(&mut self, statement: &ast::Stmt) -> Box<Stmt> {
        Box::new(self.statement(statement))
    }

    fn statement_into(&mut self, statement: &ast::Stmt, out: &mut ThinVec<Stmt>) {
        let span = statement.span;
        let kind = match &statement.kind {
            ast::StmtKind::Empty => StmtKind::Empty,
            ast::StmtKind::Expr(expr) => {
                self.is_unused = matches!(expr.kind, ast::ExprKind::Call(..));
                StmtKind::Expr(self.value(expr, None))
            }
            ast::StmtKind::Block(block) => StmtKind::Block(self.block(block)),
            ast::StmtKind::Declaration(declaration) => {
                out.extend(self.declaration_in_body(declaration));
                return;
            }
            ast::StmtKind::Function(function) => {
                self.nested_function(function);
                StmtKind::Empty
            }
            ast::StmtKind::Let(pattern, value) => {
                out.extend(self.let_pattern(pattern, value, &[], span));
                return;
            }
            ast::StmtKind::LetNames(names) => {
                for name in names {
                    let level = self.level();
                    let ty = self.types.fresh_bounded(Kind::Memory, level, Alias::Restricted);
                    let local = self.new_local(name.name, ty, Quals::default(), name.span);
                    self.bind_local(name.name, local);
                    out.push(Stmt { kind: StmtKind::Declare(local, None), span: name.span });
                }
                return;
            }
            ast::StmtKind::Region(region) => {
                out.extend(self.region_statement(region, &[], span));
                return;
            }
            ast::StmtKind::If(condition, yes, no) => {
                let condition = self.condition(condition);
                let yes = self.boxed(yes);
                let no = no.as_ref().map(|no| self.boxed(no));
                StmtKind::If(condition, yes, no)
            }
            ast::StmtKind::Switch(value, clauses) => self.switch(value, clauses, span),
            ast::StmtKind::Try(body, clauses) => self.try_catch(body, clauses, span),
            ast::StmtKind::While(condition, body) => {
                let condition = self.condition(condition);
                StmtKind::While(condition, self.loop_body(body))
            }
            ast::StmtKind::DoWhile(body, condition) => {
                let body = self.loop_body(body);
                StmtKind::DoWhile(body, self.condition(condition))
            }
            ast::StmtKind::For(parts) => self.for_loop(parts, span),
            ast::StmtKind::Goto(name) => StmtKind::Goto(self.label(*name, Met::Used)),
            ast::StmtKind::Labelled(name, inner) => {
                let label = self.label(*name, Met::Here);
                let inner = match &inner.kind {
                    ast::StmtKind::Block(block) => {
                        let block = self.named_block(block, Some(name.name));
                        Box::new(Stmt { kind: StmtKind::Block(block), span: inner.span })
                    }
                    // What is declared after a label belongs to the block around.
                    ast::StmtKind::Declaration(_) | ast::StmtKind::LetNames(_) => {
                        let empty = Box::new(Stmt { kind: StmtKind::Empty, span });
                        out.push(Stmt { kind: StmtKind::Labelled(label, empty), span });
                        self.statement_into(inner, out);
                        return;
                    }
                    _ => self.boxed(inner),
                };
                StmtKind::Labelled(label, inner)
            }
            ast::StmtKind::Continue => {
                if self.body.as_ref().is_none_or(|body| body.loops == 0) {
                    self.error(Code::Misplaced, span, "`continue` stands outside of any loop");
                }
                StmtKind::Continue
            }
            ast::StmtKind::Break => {
                if self.body.as_ref().is_none_or(|body| body.breakable == 0) {
                    self.error(Code::Misplaced, span, "`break` stands outside of any loop or switch");
                }
                StmtKind::Break
            }
            ast::StmtKind::Return(value) => self.return_statement(value.as_ref(), span),
            ast::StmtKind::Fallthru(arguments) => self.fallthru(arguments, span),
        };
        out.push(Stmt { kind, span });
    }

    fn loop_body(&mut self, body: &ast::Stmt) -> Box<Stmt> {
        self.count_loop(1);
        let body = self.boxed(body);
        self.count_loop(-1);
        body
    }

    fn count_loop(&mut self, by: i32) {
        if let Some(body) = &mut self.body {
            body.loops = body.loops.saturating_add_signed(by);
            body.breakable = body.breakable.saturating_add_signed(by);
        }
    }

    fn for_loop(&mut self, parts: &ast::For, span: Span) -> StmtKind {
        let declared = match &parts.init {
            Some(ast::Stmt { kind: ast::StmtKind::Expr(init), .. }) => {
                let init = self.value(init, None);
                return self.for_rest(parts, Some(Box::new(init)));
            }
            None => return self.for_rest(parts, None),
            Some(declared) => declared,
        };
        let region = self.open_block(None, span);
        let mut statements = ThinVec::new();
        self.statement_into(declared, &mut statements);
        let kind = self.for_rest(parts, None);
        statements.push(Stmt { kind, span });
        self.close_block();
        StmtKind::Block(Block { region: Some(region), statements, span })
    }

    fn for_rest(&mut self, parts: &ast::For, init: Option<Box<Expr>>) -> StmtKind {
        let condition = parts.condition.as_ref().map(|condition| Box::new(self.condition(condition)));
        let step = parts.step.as_ref().map(|step| Box::new(self.value(step, None)));
        let body = self.loop_body(&parts.body);
        StmtKind::For { init, condition, step, body }
    }

    fn return_statement(&mut self, value: Option<&ast::Expr>, span: Span) -> StmtKind {
        let Some(result) = self.body.as_ref().map(|body| body.result) else { return StmtKind::Return(None) };
        if self.body.as_ref().is_some_and(|body| body.noreturn) {
            self.error(Code::Misplaced, span, "the function is declared not to return");
        }
        let nothing = matches!(self.types.get(result), TyKind::Void);
        match value {
            None if nothing || matches!(self.types.get(result), TyKind::Error) => self.tested_return(None, span),
            None => {
                let shown = self.show(result);
                let message = format!("the function returns a value of type `{shown}`");
                if self.is_arithmetic(result) {
                    // Any number is one; C leaves open which.
                    self.warn(Code::WrongType, span, message);
                    let zero = Expr { kind: ExprKind::Int(Wide(0)), ty: self.int(), span };
                    return StmtKind::Return(Some(self.number_to(zero, result)));
                }
                self.error(Code::WrongType, span, message);
                StmtKind::Return(None)
            }
            Some(value) => {
                let typed = self.braces_or_value(value, result);
                if nothing && !matches!(self.types.get(typed.ty), TyKind::Void | TyKind::Error | TyKind::Evar(_)) {
                    self.error(Code::WrongType, value.span, "the function returns nothing");
                    return StmtKind::Return(None);
                }
                let typed = self.coerce(typed, result, value.span);
                self.check_consumed(&typed);
                self.tested_return(Some(typed), span)
            }
        }
    }

    fn label(&mut self, name: ast::Ident, met: Met) -> LabelId {
        let Some(body) = &mut self.body else { return LabelId(0) };
        let known = body.labels.iter().position(|(known, ..)| *known == name.name);
        let Some(at) = known else {
            body.labels.push((name.name, met == Met::Here, name.span));
            return LabelId(body.labels.len() as u32 - 1);
        };
        let (_, here, first) = body.labels[at];
        if met == Met::Here {
            if here {
                let report =
                    Diagnostic::error(Code::Redeclared, name.span, format!("label `{}` stands here again", name.name))
                        .with(first, "first here");
                self.diagnostics.push(report);
            } else {
                body.labels[at] = (name.name, true, name.span);
            }
        }
        LabelId(at as u32)
    }
}

/// How a label was met.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Met {
    /// In a `goto`.
    Used,
    /// Before a statement.
    Here,
}

/// Whether what the statement makes known is known in the statements after it, which become part of it.
fn takes_the_rest(statement: &ast::Stmt) -> bool {
    match &statement.kind {
        ast::StmtKind::Let(..) | ast::StmtKind::Region(_) => true,
        ast::StmtKind::Labelled(_, inner) => takes_the_rest(inner),
        _ => false,
    }
}

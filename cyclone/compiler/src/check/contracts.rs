//! `@requires`, `@checks`, `@ensures`: what a function asks of its arguments and promises of its result.
//!
//! What it asks is tested where it begins, what it promises where it returns, with the arguments as they came; a test that fails throws
//! `Assert`. From there on `flow` relies on what was tested. A call whose constant arguments break a `@requires` is an error.
//! A condition only computes; `@throws` is read and has no effect.

use super::names::Value;
use super::subsets::beyond_computing;
use super::{Body, Checker};
use crate::ast::{self, ContractKind};
use crate::diagnostics::Code;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Block, Expr, ExprKind, GlobalId, Init, LocalId, Stmt, StmtKind};
use crate::types::{Function, Quals, Ty, TyKind};
use thin_vec::ThinVec;

/// The name of the result in a promise.
const RESULT: &str = "return_value";

/// What the function being checked promises.
#[derive(Debug, Default)]
pub(super) struct Promises {
    conditions: Vec<ast::Expr>,
    /// The arguments as they came.
    arguments: Vec<(Symbol, LocalId)>,
}

/// What a function asks of its callers.
#[derive(Debug)]
pub(super) struct Requirement {
    params: Vec<Option<Symbol>>,
    condition: ast::Expr,
}

impl Checker<'_> {
    /// The contracts of a declared function.
    pub(super) fn declare_contracts(&mut self, id: GlobalId, written: &ast::Function, function: &Function) {
        let region = self.current_region;
        let outside = self.body.replace(Body::new(function.result, region, self.level()));
        self.push_scope();
        for param in &function.params {
            if let Some(name) = param.name {
                let local = self.new_local(name, param.ty, param.quals, Span::default());
                self.bind_local(name, local);
            }
        }
        for contract in &written.contracts {
            self.promise_or_test(contract, function.result);
        }
        self.pop_scope();
        self.body = outside;
        self.note_requirements(id, written);
    }

    /// What calls of a function are compared with.
    pub(super) fn note_requirements(&mut self, id: GlobalId, written: &ast::Function) {
        let params: Vec<_> = written.params.iter().map(|param| param.name.map(|name| name.name)).collect();
        let required = written.contracts.iter().filter(|contract| contract.kind == ContractKind::Requires);
        let requirements: Vec<_> = required
            .map(|contract| Requirement { params: params.clone(), condition: contract.condition.clone() })
            .collect();
        if !requirements.is_empty() {
            self.requirements.insert(id, requirements);
        }
    }

    /// The tests at the beginning of a body whose parameters are the first variables.
    fn tests_of_arguments(&mut self, written: &ast::Function, result: Ty) -> ThinVec<Stmt> {
        let mut tests = ThinVec::new();
        let mut promised = String::new();
        for contract in &written.contracts {
            if let Some(test) = self.promise_or_test(contract, result) {
                tests.push(test);
            } else if contract.kind == ContractKind::Ensures {
                promised.push_str(self.source.slice(contract.condition.span));
                promised.push(' ');
            }
        }
        for word in promised.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
            tests.extend(self.keep_argument(Symbol::new(word)));
        }
        tests
    }

    /// A body with its tests.
    pub(super) fn contracted_block(&mut self, written: &ast::Function, result: Ty, body: &ast::Block) -> Block {
        let mut statements = self.tests_of_arguments(written, result);
        let mut block = self.function_block(body);
        statements.append(&mut block.statements);
        if matches!(self.types.get(result), TyKind::Void) {
            statements.extend(self.tests_of_promises(None));
        }
        Block { statements, ..block }
    }

    /// A test that stands at the beginning; what is promised is noted.
    fn promise_or_test(&mut self, contract: &ast::Contract, result: Ty) -> Option<Stmt> {
        let span = contract.condition.span;
        let reported = self.diagnostics.len();
        self.push_scope();
        if contract.kind == ContractKind::Ensures && !matches!(self.types.get(result), TyKind::Void) {
            let name = Symbol::new(RESULT);
            let value = self.new_local(name, result, Quals::default(), span);
            self.bind_local(name, value);
        }
        let condition = self.condition(&contract.condition);
        self.pop_scope();
        if let Some(part) = beyond_computing(&condition) {
            let message = "a contract only computes: it follows no pointer, calls and changes nothing";
            self.error(Code::WrongType, part.span, message);
        }
        if self.diagnostics.len() > reported {
            return None;
        }
        match contract.kind {
            ContractKind::Requires | ContractKind::Checks => return Some(self.test(condition)),
            ContractKind::Ensures => {
                if let Some(body) = &mut self.body {
                    body.promises.conditions.push(contract.condition.clone());
                }
            }
            ContractKind::Throws => {}
        }
        None
    }

    fn test(&mut self, condition: Expr) -> Stmt {
        let span = condition.span;
        let ty = self.int();
        let test = Expr { kind: ExprKind::Assert(ast::Tested::Run, Box::new(condition)), ty, span };
        Stmt { kind: StmtKind::Expr(test), span }
    }

    /// An argument that a promise names is copied, because the body may change the parameter. One that owns what it points to is not.
    fn keep_argument(&mut self, name: Symbol) -> Option<Stmt> {
        let body = self.body.as_ref()?;
        if name.as_str() == RESULT || body.promises.arguments.iter().any(|(known, _)| *known == name) {
            return None;
        }
        let at = body.locals.iter().position(|local| local.name == name)?;
        let (param, ty, span) = (LocalId(at as u32), body.locals[at].ty, body.locals[at].span);
        let is_owned = self.is_owned(ty);
        let copy = if is_owned { param } else { self.new_local(name, ty, Quals::default(), span) };
        self.body.as_mut()?.promises.arguments.push((name, copy));
        let value = Expr { kind: ExprKind::Local(param), ty, span };
        (!is_owned).then_some(Stmt { kind: StmtKind::Declare(copy, Some(Init::Value(value))), span })
    }

    /// `return`, after tests of what is promised.
    pub(super) fn tested_return(&mut self, value: Option<Expr>, span: Span) -> StmtKind {
        if self.body.as_ref().is_none_or(|body| body.promises.conditions.is_empty()) {
            return StmtKind::Return(value);
        }
        let mut statements = ThinVec::new();
        let mut returned = None;
        if let Some(value) = value {
            let (name, ty) = (Symbol::new(RESULT), value.ty);
            let local = self.new_local(name, ty, Quals::default(), span);
            statements.push(Stmt { kind: StmtKind::Declare(local, Some(Init::Value(value))), span });
            returned = Some((name, local, Expr { kind: ExprKind::Local(local), ty, span }));
        }
        statements.extend(self.tests_of_promises(returned.as_ref().map(|&(name, local, _)| (name, local))));
        statements.push(Stmt { kind: StmtKind::Return(returned.map(|(.., value)| value)), span });
        StmtKind::Block(Block { region: None, statements, span })
    }

    /// The tests where a body ends.
    fn tests_of_promises(&mut self, returned: Option<(Symbol, LocalId)>) -> ThinVec<Stmt> {
        let Some(body) = &self.body else { return ThinVec::new() };
        let (conditions, arguments) = (body.promises.conditions.clone(), body.promises.arguments.clone());
        let hidden = self.names.hide_variables();
        self.push_scope();
        for (name, local) in arguments.into_iter().chain(returned) {
            self.bind_local(name, local);
        }
        let mut tests = ThinVec::new();
        for condition in &conditions {
            let condition = self.condition(condition);
            tests.push(self.test(condition));
        }
        self.pop_scope();
        self.names.show_variables(hidden);
        tests
    }

    /// Reports a call with constants that a function does not take.
    pub(super) fn check_requirements(&mut self, callee: &Expr, arguments: &[Expr], span: Span) {
        let ExprKind::Global(id) = &callee.kind else { return };
        let Some(requirements) = self.requirements.remove(id) else { return };
        let constants: Vec<Option<i128>> = arguments.iter().map(|argument| self.constant(argument)).collect();
        for requirement in &requirements {
            let hidden = self.names.hide_variables();
            self.push_scope();
            for (name, value) in requirement.params.iter().zip(&constants) {
                if let (Some(name), Some(value)) = (name, value) {
                    self.bind_value(*name, Value::Number(*value));
                }
            }
            let is_broken = self.constant_ast(&requirement.condition) == Some(0);
            self.pop_scope();
            self.names.show_variables(hidden);
            if is_broken {
                let text = self.source.slice(requirement.condition.span);
                let message = format!("the function requires `{text}`, which these arguments break");
                self.error(Code::Broken, span, message);
            }
        }
        self.requirements.insert(*id, requirements);
    }
}

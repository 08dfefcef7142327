//! Statements with patterns: `switch`, `try .. catch`, `let`, `fallthru`.

use super::coerce::wrap;
use super::exhaustive::Enumerations;
use super::names::Value;
use super::patterns::Bindings;
use super::{Checker, ast, exhaustive};
use crate::diagnostics::{Code, Diagnostic};
use crate::flow::walk::has_effect;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Clause, Coercion, Expr, ExprKind, Init, LocalId, Pattern, PatternKind, Stmt, StmtKind, Switch};
use crate::types::{Alias, Pointer, Substitution, Ty, TyKind, TyVar};
use thin_vec::{ThinVec, thin_vec};

/// What `fallthru` needs to know of the clause it goes to.
#[derive(Debug, Clone, Default)]
pub struct NextClause {
    /// Its variables, in order.
    pub locals: ThinVec<LocalId>,
    /// The type variables its pattern binds, for which `fallthru`'s arguments may stand.
    pub tyvars: Vec<TyVar>,
    /// Its pattern opens a package about which it knows more than its types.
    pub is_closed: bool,
}

impl Checker<'_> {
    /// `switch`.
    pub fn switch(&mut self, value: &ast::Expr, clauses: &[ast::Clause], span: Span) -> StmtKind {
        let (value, is_below) = self.scrutinee(value);
        self.check_consumed(&value);
        let is_unique = self.is_unique_path(&value);
        let (clauses, is_wrong) = self.clauses(clauses, value.ty, is_unique, is_below);
        if !is_wrong && !matches!(value.kind, ExprKind::Error) {
            let gaps = exhaustive::judge(&self.types, &self.declarations, &clauses, Enumerations::Open);
            if let Some(missing) = &gaps.missing {
                self.not_exhaustive(missing, &clauses, span);
            }
            self.report_redundant(gaps.redundant, &clauses);
        }
        StmtKind::Switch(Switch { value, clauses })
    }

    /// What a `switch` looks at. A datatype that a pointer leads to cannot be copied, as the size of its constructor is not known: the pointer
    /// is matched instead, by patterns below one (true).
    fn scrutinee(&mut self, value: &ast::Expr) -> (Expr, bool) {
        let ast::ExprKind::Unary(ast::UnOp::Deref, operand) = &value.kind else {
            return (self.value(value, None), false);
        };
        let pointer = self.value(operand, None);
        if let TyKind::Pointer(parts) = self.types.get(pointer.ty).clone()
            && matches!(self.types.get(parts.target), TyKind::Datatype(..))
        {
            let bound = self.thin(1);
            let nullable = self.truth(false);
            let wanted = self.pointer_type(Pointer { bound, nullable, ..parts });
            return (self.coerce(pointer, wanted, value.span), true);
        }
        let place = self.deref(pointer, value.span);
        (self.loaded(place, None), false)
    }

    /// In 0.8 an enumeration has no values but those with names: any other throws.
    fn not_exhaustive(&mut self, missing: &str, clauses: &[Clause], span: Span) {
        let names_all = self.is_old() && {
            let gaps = exhaustive::judge(&self.types, &self.declarations, clauses, Enumerations::Named);
            gaps.missing.is_none()
        };
        let message = format!("no case covers `{missing}`");
        if names_all {
            self.warn(Code::NotExhaustive, span, format!("{message}; `Match_Exception` is thrown then"));
        } else {
            let report = Diagnostic::error(Code::NotExhaustive, span, message);
            self.diagnostics.push(report.help("add the case, or `default: ..`"));
        }
    }

    /// `try .. catch`.
    pub fn try_catch(&mut self, body: &ast::Stmt, clauses: &[ast::Clause], span: Span) -> StmtKind {
        let body = self.statement(body);
        let exception = match self.exception_type(span) {
            Some(exception) => exception,
            None => self.make(TyKind::Error),
        };
        let (clauses, is_wrong) = self.clauses(clauses, exception, false, false);
        for clause in &clauses {
            if let Some(guard) = &clause.guard {
                let span = guard.span;
                self.error(Code::BadPattern, span, "a clause of `catch` cannot have a condition");
            }
        }
        if !is_wrong {
            let gaps = exhaustive::judge(&self.types, &self.declarations, &clauses, Enumerations::Open);
            self.report_redundant(gaps.redundant, &clauses);
        }
        StmtKind::Try(Box::new(body), clauses)
    }

    /// `let p = e;` with the statements after it in the block, `rest`, which see what the pattern binds.
    pub fn let_pattern(
        &mut self,
        pattern: &ast::Pattern,
        value: &ast::Expr,
        rest: &[ast::Stmt],
        span: Span,
    ) -> ThinVec<Stmt> {
        let value = self.value(value, None);
        self.check_consumed(&value);
        let mut out = ThinVec::new();
        if let Some(name) = self.new_variable(pattern)
            && !self.may_be_owned(value.ty)
        {
            let local = self.new_local(name, value.ty, ast::Quals::default(), pattern.span);
            self.bind_local(name, local);
            out.push(Stmt { kind: StmtKind::Declare(local, Some(Init::Value(value))), span });
            out.extend(self.statements(rest));
            return out;
        }
        let is_alias = matches!(pattern.kind, ast::PatternKind::Alias(..));
        if is_alias && !self.is_place(&value) && !matches!(value.kind, ExprKind::Error) {
            self.error(Code::BadPattern, value.span, "only what stays in a place can be aliased");
        }
        let is_unique = self.is_unique_path(&value);
        let (pattern, bindings) = self.pattern(pattern, value.ty, is_unique);
        let outside = self.level();
        self.set_level(outside + 1);
        self.bind_pattern(&bindings);
        if let PatternKind::Alias(local, region) = pattern.kind {
            let wanted = self.body.as_ref().map(|body| body.locals[local.0 as usize].ty);
            let value = match (bindings.converted, wanted) {
                (Some(alias), Some(wanted)) => self.coerce(wrap(Coercion::Same, value, alias), wanted, pattern.span),
                _ => value,
            };
            let body = self.statements(rest);
            out.push(Stmt { kind: StmtKind::Alias { region, local, value, body }, span });
        } else {
            let missing = exhaustive::missing_case(&self.types, &self.declarations, &pattern);
            if let Some(missing) = &missing {
                let message = format!("the pattern does not match `{missing}`; `Match_Exception` is thrown then");
                self.warn(Code::NotExhaustive, span, message);
            }
            let kind = StmtKind::Let { pattern: Box::new(pattern), value, may_fail: missing.is_some() };
            out.push(Stmt { kind, span });
            out.extend(self.statements(rest));
        }
        self.set_level(outside);
        out
    }

    /// Whether it may turn out that copying such a value consumes it: then its variable gives it back at the end of its scope.
    fn may_be_owned(&mut self, ty: Ty) -> bool {
        match self.types.get(ty) {
            TyKind::Pointer(pointer) => !matches!(self.types.get(pointer.aqual), TyKind::Aqual(Alias::Aliasable)),
            _ => self.is_owned(ty),
        }
    }

    /// The name that a pattern gives to the whole value, if it does just that.
    fn new_variable(&self, pattern: &ast::Pattern) -> Option<Symbol> {
        let ast::PatternKind::Name(path) = &pattern.kind else { return None };
        match self.lookup_value(path) {
            Some(Value::Constructor(..) | Value::EnumConst(..)) => None,
            _ => path.qualifier.is_none().then_some(path.name),
        }
    }

    /// `fallthru(..)`.
    pub fn fallthru(&mut self, args: &[ast::Expr], span: Span) -> StmtKind {
        let next = self.body.as_ref().and_then(|body| body.fallthru.last().cloned()).flatten();
        let Some(next) = next.filter(|next| !next.is_closed) else {
            self.error(Code::Misplaced, span, "there is no clause that `fallthru` could go to");
            return StmtKind::Empty;
        };
        let map: Substitution = next
            .tyvars
            .iter()
            .map(|&var| {
                let (kind, alias) = (self.types.var(var).kind, self.types.var(var).alias);
                let level = self.level();
                (var, self.types.fresh_bounded(kind, level, alias))
            })
            .collect();
        if args.len() != next.locals.len() {
            let message = format!(
                "the next clause binds {} variables, and `fallthru` has {} values",
                next.locals.len(),
                args.len()
            );
            self.error(Code::WrongArguments, span, message);
        }
        let mut values = ThinVec::new();
        for (arg, local) in args.iter().zip(&next.locals) {
            let ty = self.body.as_ref().map(|body| body.locals[local.0 as usize].ty);
            let Some(ty) = ty else { continue };
            let ty = self.types.substitute(ty, &map);
            let value = self.value(arg, Some(ty));
            let value = self.coerce(value, ty, span);
            self.check_consumed(&value);
            values.push(value);
        }
        StmtKind::Fallthru(values)
    }

    pub(super) fn set_level(&mut self, level: u32) {
        if let Some(body) = &mut self.body {
            body.level = level;
        }
    }

    /// The clauses, and whether a pattern was wrong. `is_below`: what is matched is a pointer, and the patterns are written for what it
    /// leads to.
    fn clauses(&mut self, clauses: &[ast::Clause], ty: Ty, is_unique: bool, is_below: bool) -> (ThinVec<Clause>, bool) {
        let pattern = |kind, span| ast::Pattern { kind, span };
        let patterns: Vec<(Pattern, Bindings)> = clauses
            .iter()
            .map(|clause| match &clause.pattern {
                Some(written) if is_below => {
                    let below = ast::PatternKind::Deref(Box::new(written.clone()));
                    self.pattern(&pattern(below, written.span), ty, is_unique)
                }
                Some(written) => self.pattern(written, ty, is_unique),
                None => self.pattern(&pattern(ast::PatternKind::Wild, clause.span), ty, is_unique),
            })
            .collect();
        let mut targets: Vec<Option<NextClause>> = patterns
            .iter()
            .map(|(_, bindings)| {
                Some(NextClause {
                    locals: bindings.locals.clone(),
                    tyvars: bindings.tyvars.iter().map(|&(_, var)| var).collect(),
                    is_closed: !bindings.constraints.is_empty(),
                })
            })
            .collect();
        if !targets.is_empty() {
            targets.remove(0);
        }
        targets.push(None);
        let is_wrong = patterns.iter().any(|(_, bindings)| bindings.is_wrong);
        let mut checked = ThinVec::new();
        for ((clause, (pattern, bindings)), next) in clauses.iter().zip(patterns).zip(targets) {
            checked.push(self.clause(clause, pattern, bindings, next));
        }
        (checked, is_wrong)
    }

    fn clause(
        &mut self,
        clause: &ast::Clause,
        pattern: Pattern,
        bindings: Bindings,
        next: Option<NextClause>,
    ) -> Clause {
        let outside = self.level();
        self.set_level(outside + 1);
        let region = self.open_block(None, clause.span);
        self.bind_pattern(&bindings);
        if let Some(body) = &mut self.body {
            body.breakable += 1;
            body.fallthru.push(next);
        }
        let guard = clause.guard.as_ref().map(|guard| self.condition(guard));
        if let Some(guard) = &guard
            && has_effect(guard)
        {
            self.error(Code::BadPattern, guard.span, "the condition of a clause may not change anything");
        }
        let statements = if clause.body.is_empty() {
            let kind = self.fallthru(&[], clause.span);
            thin_vec![Stmt { kind, span: clause.span }]
        } else {
            self.statements(&clause.body)
        };
        if let Some(body) = &mut self.body {
            body.breakable -= 1;
            body.fallthru.pop();
        }
        self.close_block();
        self.set_level(outside);
        let span = clause.body.last().map_or(clause.span, |last| clause.span.to(last.span));
        let body = crate::tree::Block { region: Some(region), statements, span };
        Clause { pattern, guard, bindings: bindings.locals, body, span: clause.span }
    }

    fn report_redundant(&mut self, redundant: Option<usize>, clauses: &[Clause]) {
        if let Some(clause) = redundant.and_then(|index| clauses.get(index)) {
            let span = clause.pattern.span;
            self.error(
                Code::Redundant,
                span,
                "no value reaches this clause: those before it cover all that it matches",
            );
        }
    }
}

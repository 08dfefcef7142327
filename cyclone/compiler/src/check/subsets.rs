//! Constrained types: `@subset(T x | condition)` is a `T` for which the condition holds.
//!
//! What is read from a place of such a type is a plain `T` ([`Checker::unconstrained`]). Where the type is wanted, the condition is
//! tested at run time ([`Checker::constrained`]) unless the value has that very type: a test that fails throws `Assert`. Parts of a
//! constrained structure are not written one by one. Nothing else relies on the condition: no check is left out because of it, so that a
//! variable that was never set may be zero whatever its type says.
//!
//! A condition only computes. It sees the names where it was written, without those of blocks.

use super::coerce::{Refusal, wrap};
use super::names::View;
use super::patterns::Way;
use super::types::Position;
use super::{Body, Checker};
use crate::ast;
use crate::diagnostics::Code;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Block, Coercion, Expr, ExprKind, Init, LocalId, Stmt, StmtKind};
use crate::types::{Kind, Quals, SubsetId, Ty, TyKind};

/// A constraint as it was written.
#[derive(Debug)]
pub(super) struct Constrained {
    /// The name of the value.
    name: Symbol,
    condition: ast::Expr,
    /// The names that the condition sees.
    view: View,
}

impl Checker<'_> {
    /// The type `@subset(param | condition)`.
    pub(super) fn read_subset(
        &mut self,
        param: &ast::Param,
        condition: &ast::Expr,
        want: Kind,
        position: Position,
    ) -> Ty {
        let (base, _) = self.read(&param.ty, want, position);
        let Some(name) = param.name else {
            self.error(Code::Syntax, param.ty.span, "the value that the condition is about needs a name");
            return base;
        };
        if matches!(self.types.get(base), TyKind::Array(_) | TyKind::Function(_) | TyKind::Void) {
            let shown = self.show(base);
            let message = format!("only values are constrained: numbers, pointers, structures; not `{shown}`");
            self.error(Code::WrongType, param.ty.span, message);
            return base;
        }
        self.check_constraint(name, base, condition);
        let id = self.constraint_of(name.name, condition);
        self.make(TyKind::Subset(id, base))
    }

    /// The number of a constraint: the same text is the same constraint where it sees the same names.
    fn constraint_of(&mut self, name: Symbol, condition: &ast::Expr) -> SubsetId {
        let text = Symbol::new(&format!("{name} | {}", self.source.slice(condition.span)));
        let view = self.names.view();
        let same = self.subsets.iter().zip(&self.declarations.constraints);
        if let Some(known) = { same }.position(|(known, shown)| *shown == text && known.view == view) {
            return SubsetId(known as u32);
        }
        self.subsets.push(Constrained { name, condition: condition.clone(), view });
        self.declarations.constraints.push(text);
        SubsetId(self.subsets.len() as u32 - 1)
    }

    /// Reports what is wrong with a condition.
    fn check_constraint(&mut self, name: ast::Ident, base: Ty, condition: &ast::Expr) {
        let view = self.names.view();
        let region = self.current_region;
        let void = self.make(TyKind::Void);
        let outside = self.body.replace(Body::new(void, region, 0));
        let value = self.new_local(name.name, base, Quals::default(), name.span);
        let condition = self.condition_about(value, name.name, condition, &view);
        self.body = outside;
        if let Some(part) = beyond_computing(&condition) {
            self.error(
                Code::WrongType,
                part.span,
                "the condition of a constrained type only computes: it follows no pointer, calls and changes nothing",
            );
        }
    }

    /// The condition about a variable.
    fn condition_about(&mut self, value: LocalId, name: Symbol, condition: &ast::Expr, view: &View) -> Expr {
        let hidden = self.names.look_from(view);
        self.push_scope();
        self.bind_local(name, value);
        let condition = self.condition(condition);
        self.pop_scope();
        self.names.look_back(hidden);
        condition
    }

    /// What a constrained type constrains.
    pub(super) fn base_of(&self, ty: Ty) -> Ty {
        match self.types.get(ty) {
            TyKind::Subset(_, base) => self.base_of(*base),
            _ => ty,
        }
    }

    /// For patterns of parts: those of a constrained value can be read only.
    pub(super) fn inside_constraint(&self, ty: Ty, mut way: Way) -> (Ty, Way) {
        let base = self.base_of(ty);
        way.quals.is_const |= matches!(self.types.get(ty), TyKind::Subset(..));
        (base, way)
    }

    /// A value without its constraint; others stay.
    pub(super) fn unconstrained(&self, value: Expr) -> Expr {
        match self.types.get(value.ty) {
            TyKind::Subset(..) => {
                let base = self.base_of(value.ty);
                wrap(Coercion::Same, value, base)
            }
            _ => value,
        }
    }

    /// A value as one of the constrained type `to`: `({ T x = value; assert(condition); x; })`.
    pub(super) fn constrained(&mut self, value: Expr, to: Ty) -> Result<Expr, Refusal> {
        let TyKind::Subset(id, base) = *self.types.get(to) else { return Ok(value) };
        let value = self.try_coerce(value, base)?;
        let span = value.span;
        if self.body.is_none() {
            return Ok(self.wrong(
                Code::NotConstant,
                span,
                "the condition of a constrained type is tested while the program runs; set this variable in a function",
            ));
        }
        self.check_consumed(&value);
        let Constrained { name, ref condition, ref view } = self.subsets[id.0 as usize];
        let (condition, view) = (condition.clone(), view.clone());
        let local = self.new_local(name, base, Quals::default(), span);
        let mut condition = self.condition_about(local, name, &condition, &view);
        // A message about a test that can fail names the place of the value.
        condition.span = span;
        let int = self.int();
        let test = Expr { kind: ExprKind::Assert(ast::Tested::Run, Box::new(condition)), ty: int, span };
        let result = Expr { kind: ExprKind::Local(local), ty: base, span };
        let statements =
            [StmtKind::Declare(local, Some(Init::Value(value))), StmtKind::Expr(test), StmtKind::Expr(result)];
        let statements = statements.into_iter().map(|kind| Stmt { kind, span }).collect();
        let block = Box::new(Block { region: None, statements, span });
        Ok(Expr { kind: ExprKind::Statements(block), ty: to, span })
    }

    /// Reports a change in place of a constrained value; gives back whether it was one.
    pub(super) fn refuse_change(&mut self, place: &Expr, span: Span) -> bool {
        let is_constrained = matches!(self.types.get(place.ty), TyKind::Subset(..));
        if is_constrained {
            let shown = self.show(place.ty);
            self.error(
                Code::NotAssignable,
                span,
                format!("a value of type `{shown}` is not changed in place; assign a new one with `=`"),
            );
        }
        is_constrained
    }
}

/// The part of a condition that does more than compute.
pub(super) fn beyond_computing(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Error
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Null
        | ExprKind::Local(_)
        | ExprKind::Global(_)
        | ExprKind::SizeOf(_)
        | ExprKind::OffsetOf(..)
        | ExprKind::ValueOf(_) => None,
        ExprKind::Unary(_, part)
        | ExprKind::Member(part, _)
        | ExprKind::Numelts(part)
        | ExprKind::Coerce(
            Coercion::Same | Coercion::Number | Coercion::Decay | Coercion::PointerToInt | Coercion::ThinToFat,
            part,
        ) => beyond_computing(part),
        ExprKind::Coerce(Coercion::FatToThin(checks), part) if *checks == crate::tree::Checks::NONE => {
            beyond_computing(part)
        }
        ExprKind::Binary(_, left, right) => beyond_computing(left).or_else(|| beyond_computing(right)),
        ExprKind::Conditional(condition, yes, no) => {
            [condition, yes, no].into_iter().find_map(|part| beyond_computing(part))
        }
        _ => Some(expr),
    }
}

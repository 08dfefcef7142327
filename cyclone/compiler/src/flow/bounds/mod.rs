//! Bounds checks that are not needed: an index that is known to be below the number of elements.
//!
//! What is known at a point is a set of facts about variables whose address is nowhere taken: an index is not negative, it is below a
//! number, another variable or the number of elements of a fat pointer, and a fat pointer has at least so many elements. Tests,
//! assignments, allocations and checks that have succeeded give facts; an assignment takes away all that mention the variable.
//! At the head of a loop those facts hold that hold before it and are left at its end, found by walking over its body
//! until no more are lost. Arithmetic wraps around (`-fwrapv`), so that a step keeps a fact only where it cannot.
//!
//! Functions with labels are left alone.

mod facts;
mod terms;

use super::walk;
use crate::ast::BinOp;
use crate::tree::{
    Block, Check, Checks, Clause, Expr, ExprKind, Function, Init, Local, LocalId, Pattern, PatternKind, RegionKind,
    Stmt, StmtKind, UnaryOp,
};
use crate::types::Types;
use facts::{Fact, Facts, meet};
use terms::{Array, Term};

/// Proves bounds checks of a function.
pub(super) fn prove(function: &mut Function, types: &Types) {
    if !function.labels.is_empty() || !has_bounds_checks(function) {
        return;
    }
    let mut is_tracked: Vec<bool> =
        function.locals.iter().map(|local| !local.is_static && !local.quals.is_volatile).collect();
    walk::expressions(function, &mut |expr| match &expr.kind {
        ExprKind::Address(place) => untrack(place, &mut is_tracked),
        ExprKind::Asm(asm) => {
            asm.outputs.iter().chain(&asm.inputs).for_each(|(_, place)| untrack(place, &mut is_tracked))
        }
        _ => {}
    });
    let mut prover = Prover {
        types,
        locals: &function.locals,
        is_tracked,
        facts: Some(Facts::new()),
        breaks: Vec::new(),
        continues: Vec::new(),
        rehearsals: 0,
    };
    prover.block(&mut function.body);
}

fn has_bounds_checks(function: &Function) -> bool {
    let mut found = false;
    walk::expressions(function, &mut |expr| {
        found |= matches!(
            expr.kind,
            ExprKind::Deref(_, Checks { bounds: Check::Needed, .. })
                | ExprKind::Index(_, _, Checks { bounds: Check::Needed, .. })
        );
    });
    found
}

fn untrack(place: &Expr, is_tracked: &mut [bool]) {
    match &place.kind {
        ExprKind::Local(local) => is_tracked[local.0 as usize] = false,
        ExprKind::Member(inner, _) | ExprKind::TaggedMember(inner, ..) | ExprKind::Coerce(_, inner) => {
            untrack(inner, is_tracked);
        }
        _ => {}
    }
}

/// Loops nested deeper are taken without what their own assignments change.
const REHEARSAL_LIMIT: u32 = 2;
/// Facts are lost at the head of a loop in a few rounds, or all that its assignments change are.
const ROUNDS: u32 = 6;

struct Prover<'a> {
    types: &'a Types,
    locals: &'a [Local],
    is_tracked: Vec<bool>,
    /// `None`: no way leads here.
    facts: Option<Facts>,
    /// What holds at the ends of the loops and switches around.
    breaks: Vec<Option<Facts>>,
    continues: Vec<Option<Facts>>,
    /// How many walks around find out what holds at the head of a loop; while there are any, nothing is proved.
    rehearsals: u32,
}

impl Prover<'_> {
    fn block(&mut self, block: &mut Block) {
        block.statements.iter_mut().for_each(|inner| self.statement(inner));
    }

    fn statement(&mut self, statement: &mut Stmt) {
        match &mut statement.kind {
            StmtKind::Empty => {}
            StmtKind::Declare(local, None) => self.forget(*local),
            StmtKind::Expr(expr) => self.expression(expr),
            StmtKind::Block(block) => self.block(block),
            StmtKind::Declare(local, Some(init)) => {
                self.initial(init);
                self.forget(*local);
                if let Init::Value(value) = init {
                    self.assigned(*local, value);
                }
            }
            StmtKind::Let { pattern, value, .. } => {
                self.expression(value);
                self.bound(pattern);
                if let PatternKind::Bind(local, None) = pattern.kind {
                    self.assigned(local, value);
                }
            }
            StmtKind::Alias { local, value, body, .. } => {
                self.expression(value);
                self.forget(*local);
                body.iter_mut().for_each(|inner| self.statement(inner));
            }
            StmtKind::Region(region) => {
                if let RegionKind::Open(key) = &mut region.kind {
                    self.expression(key);
                }
                region.body.iter_mut().for_each(|inner| self.statement(inner));
            }
            StmtKind::If(test, then, other) => {
                let (yes, no) = self.condition(test);
                self.facts = yes;
                self.statement(then);
                let after = std::mem::replace(&mut self.facts, no);
                if let Some(other) = other {
                    self.statement(other);
                }
                meet(&mut self.facts, after);
            }
            StmtKind::Switch(switch) => {
                self.expression(&mut switch.value);
                self.clauses(&mut switch.clauses);
            }
            StmtKind::Try(body, clauses) => {
                let mut before = self.facts.clone();
                let changed = changed_in(body);
                self.statement(body);
                let after = std::mem::replace(&mut self.facts, before.take());
                self.forget_all(&changed);
                self.clauses(clauses);
                meet(&mut self.facts, after);
            }
            StmtKind::While(..) | StmtKind::DoWhile(..) | StmtKind::For { .. } => self.repeated(statement),
            StmtKind::Continue => {
                let facts = self.facts.take();
                if let Some(target) = self.continues.last_mut() {
                    meet(target, facts);
                }
            }
            StmtKind::Break => {
                let facts = self.facts.take();
                if let Some(target) = self.breaks.last_mut() {
                    meet(target, facts);
                }
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.expression(value);
                }
                self.facts = None;
            }
            StmtKind::Fallthru(values) => {
                values.iter_mut().for_each(|value| self.expression(value));
                self.facts = None;
            }
            // There are no labels.
            StmtKind::Goto(_) | StmtKind::Labelled(..) => self.facts = Some(Facts::new()),
        }
    }

    /// Any clause may come after any other.
    fn clauses(&mut self, clauses: &mut [Clause]) {
        let mut changed = Vec::new();
        for clause in clauses.iter() {
            clause.body.statements.iter().for_each(|inner| changed.extend(changed_in(inner)));
            changed.extend(&clause.bindings);
        }
        self.forget_all(&changed);
        let entry = self.facts.take();
        let mut after = None;
        self.breaks.push(None);
        for clause in clauses {
            self.facts = entry.clone();
            if let Some(guard) = &mut clause.guard {
                self.facts = self.condition(guard).0;
            }
            // A `fallthru` gets here without the guard.
            if self.facts.is_some() {
                self.facts = entry.clone();
            }
            self.block(&mut clause.body);
            meet(&mut after, self.facts.take());
        }
        meet(&mut after, self.breaks.pop().flatten());
        self.facts = after;
    }

    /// A loop: finds what holds at its head, then walks over it.
    fn repeated(&mut self, statement: &mut Stmt) {
        if let StmtKind::For { init: Some(init), .. } = &mut statement.kind {
            self.expression(init);
        }
        let before = self.facts.clone();
        let mut head = before.clone();
        let mut is_settled = false;
        if self.rehearsals < REHEARSAL_LIMIT {
            self.rehearsals += 1;
            for _ in 0..ROUNDS {
                self.facts = head.clone();
                let (back, _) = self.round(statement);
                let mut kept = head.clone();
                meet(&mut kept, back);
                is_settled = kept == head;
                head = kept;
                if is_settled {
                    break;
                }
            }
            self.rehearsals -= 1;
        }
        self.facts = if is_settled { head } else { before };
        if !is_settled {
            let changed = changed_in(statement);
            self.forget_all(&changed);
        }
        self.facts = self.round(statement).1;
    }

    /// Once through a loop: what holds when it comes back to its head, and what holds after it.
    fn round(&mut self, statement: &mut Stmt) -> (Option<Facts>, Option<Facts>) {
        self.breaks.push(None);
        self.continues.push(None);
        let (back, mut after) = match &mut statement.kind {
            StmtKind::While(test, body) => {
                let (yes, no) = self.condition(test);
                self.facts = yes;
                self.statement(body);
                self.end_of_body();
                (self.facts.take(), no)
            }
            StmtKind::DoWhile(body, test) => {
                self.statement(body);
                self.end_of_body();
                self.condition(test)
            }
            StmtKind::For { condition, step, body, .. } => {
                let mut no = None;
                if let Some(condition) = condition {
                    (self.facts, no) = self.condition(condition);
                }
                self.statement(body);
                self.end_of_body();
                if let Some(step) = step {
                    self.expression(step);
                }
                (self.facts.take(), no)
            }
            _ => (self.facts.take(), None),
        };
        self.continues.pop();
        meet(&mut after, self.breaks.pop().flatten());
        (back, after)
    }

    fn end_of_body(&mut self) {
        let continued = self.continues.last_mut().and_then(Option::take);
        meet(&mut self.facts, continued);
    }

    fn initial(&mut self, init: &mut Init) {
        match init {
            Init::Value(value) => self.expression(value),
            Init::List(list) => list.entries.iter_mut().for_each(|(_, entry)| self.initial(entry)),
            Init::Comprehension(comprehension) => {
                self.expression(&mut comprehension.len);
                if let Some(value) = &mut comprehension.value {
                    let changed = changed_by(value);
                    self.forget_all(&changed);
                    self.forget(comprehension.index);
                    self.expression(value);
                    self.forget_all(&changed);
                }
                self.forget(comprehension.index);
            }
            Init::String(_) => {}
        }
    }

    fn expression(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, ..) | ExprKind::Unary(UnaryOp::Not, _) => {
                let (yes, no) = self.condition(expr);
                self.facts = yes;
                meet(&mut self.facts, no);
            }
            ExprKind::Conditional(test, then, other) => {
                let (yes, no) = self.condition(test);
                self.facts = yes;
                self.expression(then);
                let after = std::mem::replace(&mut self.facts, no);
                self.expression(other);
                meet(&mut self.facts, after);
            }
            ExprKind::Assign(op, place, value) => {
                self.expression(value);
                self.expression(place);
                if let ExprKind::Local(local) = place.kind {
                    self.forget(local);
                    if op.is_none() {
                        self.assigned(local, value);
                    }
                }
            }
            ExprKind::Step { place, up, .. } => {
                self.expression(place);
                if let ExprKind::Local(local) = place.kind {
                    self.stepped(local, *up);
                }
            }
            ExprKind::Swap(left, right) => {
                for place in [left, right] {
                    self.expression(place);
                    if let ExprKind::Local(local) = place.kind {
                        self.forget(local);
                    }
                }
            }
            ExprKind::Deref(pointer, checks) => {
                self.expression(pointer);
                self.access(pointer, None, checks);
            }
            ExprKind::Index(pointer, index, checks) => {
                self.expression(pointer);
                self.expression(index);
                self.access(pointer, Some(index), checks);
            }
            ExprKind::Aggregate(init) => self.initial(init),
            ExprKind::New(place, init) => {
                place.region.iter_mut().for_each(|inner| self.expression(inner));
                self.initial(init);
            }
            ExprKind::Statements(block) => self.block(block),
            ExprKind::Throw(inner) => {
                self.expression(inner);
                self.facts = None;
            }
            ExprKind::Assert(_, test) => self.facts = self.condition(test).0,
            ExprKind::Unary(_, inner)
            | ExprKind::Member(inner, _)
            | ExprKind::TaggedMember(inner, ..)
            | ExprKind::Address(inner)
            | ExprKind::TagCheck(inner, _)
            | ExprKind::Coerce(_, inner)
            | ExprKind::Numelts(inner)
            | ExprKind::TagOf(inner)
            | ExprKind::InferredAlias { value: inner, .. } => self.expression(inner),
            ExprKind::Binary(_, left, right) | ExprKind::Comma(left, right) => {
                self.expression(left);
                self.expression(right);
            }
            ExprKind::Call(call) => {
                self.expression(&mut call.callee);
                call.args.iter_mut().for_each(|arg| self.expression(arg));
                if let Some(varargs) = &mut call.varargs {
                    varargs.args.iter_mut().for_each(|arg| self.expression(arg));
                }
            }
            ExprKind::Construct(_, _, args) | ExprKind::Builtin(_, args, _) => {
                args.iter_mut().for_each(|arg| self.expression(arg));
            }
            ExprKind::Alloc { place, count, .. } => {
                place.region.iter_mut().chain(count).for_each(|inner| self.expression(inner));
            }
            ExprKind::Asm(asm) => {
                asm.outputs.iter_mut().chain(&mut asm.inputs).for_each(|(_, inner)| self.expression(inner));
            }
            _ => {}
        }
    }

    /// A pattern's variables have new values.
    fn bound(&mut self, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Bind(local, inner) | PatternKind::Reference(local, inner) => {
                self.forget(*local);
                inner.iter().for_each(|inner| self.bound(inner));
            }
            PatternKind::Alias(local, _) | PatternKind::Tag(local, _) => self.forget(*local),
            PatternKind::Deref(inner) | PatternKind::Tagged(_, inner) => self.bound(inner),
            PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) | PatternKind::Constructor(_, _, parts) => {
                parts.iter().for_each(|(_, part)| self.bound(part));
            }
            _ => {}
        }
    }

    fn access(&mut self, pointer: &Expr, index: Option<&Expr>, checks: &mut Checks) {
        if checks.bounds == Check::Never || self.facts.is_none() {
            return;
        }
        let index = index.map_or(Term::Number(0), |index| self.term(index));
        let Some(array) = self.array(pointer) else { return };
        if self.rehearsals == 0 && self.is_within(index, array) {
            checks.bounds = Check::Proved;
            if checks.null == Check::Needed && matches!(array, Array::Fat(_)) {
                checks.null = Check::Proved;
            }
        }
        // From here on the check has succeeded.
        if let (Array::Fat(pointer), Some(index)) = (array, index.as_bound()) {
            self.learn(Fact::Element(pointer, index));
        }
    }

    /// What is known if a condition holds, and if it does not. The present facts are used up.
    fn condition(&mut self, expr: &mut Expr) -> (Option<Facts>, Option<Facts>) {
        match &mut expr.kind {
            ExprKind::Unary(UnaryOp::Not, inner) => {
                let (yes, no) = self.condition(inner);
                (no, yes)
            }
            ExprKind::Binary(BinOp::LogAnd, left, right) => {
                let (yes, mut no) = self.condition(left);
                self.facts = yes;
                let (both, other) = self.condition(right);
                meet(&mut no, other);
                (both, no)
            }
            ExprKind::Binary(BinOp::LogOr, left, right) => {
                let (mut yes, no) = self.condition(left);
                self.facts = no;
                let (other, neither) = self.condition(right);
                meet(&mut yes, other);
                (yes, neither)
            }
            ExprKind::Binary(op @ (BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge), left, right) => {
                self.expression(left);
                self.expression(right);
                let before = self.facts.take();
                let (small, great, is_strict) = match op {
                    BinOp::Lt => (&**left, &**right, true),
                    BinOp::Gt => (&**right, &**left, true),
                    BinOp::Le => (&**left, &**right, false),
                    _ => (&**right, &**left, false),
                };
                self.facts = before.clone();
                self.compared(small, great, is_strict);
                let yes = std::mem::replace(&mut self.facts, before);
                self.compared(great, small, !is_strict);
                (yes, self.facts.take())
            }
            _ => {
                self.expression(expr);
                let facts = self.facts.take();
                (facts.clone(), facts)
            }
        }
    }
}

fn changed_in(statement: &Stmt) -> Vec<LocalId> {
    let mut changed = Vec::new();
    walk::in_statement(statement, &mut |expr| note_change(expr, &mut changed));
    changed
}

fn changed_by(expr: &Expr) -> Vec<LocalId> {
    let mut changed = Vec::new();
    walk::in_expression(expr, &mut |expr| note_change(expr, &mut changed));
    changed
}

fn note_change(expr: &Expr, changed: &mut Vec<LocalId>) {
    let mut note = |place: &Expr| {
        if let ExprKind::Local(local) = place.kind {
            changed.push(local);
        }
    };
    match &expr.kind {
        ExprKind::Assign(_, place, _) | ExprKind::Step { place, .. } => note(place),
        ExprKind::Swap(left, right) => {
            note(left);
            note(right);
        }
        _ => {}
    }
}

fn changed_or_read(expr: &Expr, local: LocalId) -> bool {
    let mut found = false;
    walk::in_expression(expr, &mut |expr| found |= matches!(expr.kind, ExprKind::Local(other) if other == local));
    found
}

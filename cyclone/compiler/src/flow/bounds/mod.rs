//! Bounds checks that are not needed: an index that is known to be below the number of elements.
//!
//! What is known at a point is a set of facts ([`facts`]) about integers and fat pointers in variables whose address is nowhere
//! taken. Tests, assignments, allocations and checks that have succeeded give facts ([`changes`]); an assignment takes away all that
//! mention the variable. Values of expressions are bounded by variables, by the numbers of elements of fat pointers, and by
//! numbers ([`values`]); arithmetic that may wrap around (`-fwrapv`) gives any value of its type. Loops are in [`loops`]. Of a
//! function whose calls are all known ([`super::callers`]) that holds at its beginning which holds at each call ([`entries`]).
//!
//! Functions with labels are left alone.

mod changes;
mod entries;
mod facts;
mod loops;
mod values;

use super::callers::Callers;
use super::walk;
use crate::ast::BinOp;
use crate::hash::HashSet;
use crate::tree::{
    Block, Check, Checks, Clause, Expr, ExprKind, Function, Init, Local, LocalId, Pattern, PatternKind, RegionKind,
    Stmt, StmtKind, UnaryOp,
};
use crate::types::Types;
use entries::{Calls, Entries};
use facts::Facts;
use loops::Part;
use values::Value;

/// Proves bounds checks of all functions.
pub(super) fn prove(functions: &mut [Function], types: &Types, callers: &Callers) {
    let is_wanted = callers.leading_to(|number| has_bounds_checks(&functions[number]));
    let mut entries = Entries::new(functions, types, callers);
    for number in callers.in_order() {
        if is_wanted[number] && functions[number].labels.is_empty() {
            prove_one(&mut functions[number], types, &mut entries);
        }
    }
}

fn prove_one(function: &mut Function, types: &Types, entries: &mut Entries) {
    let mut prover = Prover {
        types,
        locals: &function.locals,
        is_tracked: tracked(function),
        facts: Some(Facts::default()),
        breaks: Vec::new(),
        continues: Vec::new(),
        rehearsals: 0,
        loops: 0,
        nesting: 0,
        part: Part::Whole,
        calls: Calls { entries, met: HashSet::default() },
    };
    prover.begin(function.global);
    prover.block(&mut function.body);
}

/// The variables of which something can be known: no pointer leads to them.
fn tracked(function: &Function) -> Vec<bool> {
    let mut is_tracked: Vec<bool> =
        function.locals.iter().map(|local| !local.is_static && !local.quals.is_volatile).collect();
    walk::expressions(function, &mut |expr| match &expr.kind {
        ExprKind::Address(place) => untrack(place, &mut is_tracked),
        ExprKind::Asm(asm) => {
            asm.outputs.iter().chain(&asm.inputs).for_each(|(_, place)| untrack(place, &mut is_tracked))
        }
        _ => {}
    });
    is_tracked
}

fn has_bounds_checks(function: &Function) -> bool {
    let mut found = false;
    walk::expressions(function, &mut |expr| {
        found |= expr.bounds_check() == Some(Check::Needed);
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
    /// How many loops have been walked over.
    loops: u32,
    /// How many loops are around.
    nesting: u32,
    part: Part,
    calls: Calls<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Array {
    Fat,
    Thin,
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
                    self.assigned(*local, None, value);
                }
            }
            StmtKind::Let { pattern, value, .. } => {
                self.expression(value);
                self.bound(pattern);
                if let PatternKind::Bind(local, None) = pattern.kind {
                    self.assigned(local, None, value);
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
                self.join(after);
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
                self.join(after);
            }
            StmtKind::While(..) | StmtKind::DoWhile(..) | StmtKind::For { .. } => self.repeated(statement),
            StmtKind::Continue => {
                let target = self.continues.pop().flatten();
                self.join(target);
                self.continues.push(self.facts.take());
            }
            StmtKind::Break => {
                let target = self.breaks.pop().flatten();
                self.join(target);
                self.breaks.push(self.facts.take());
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
            StmtKind::Goto(_) | StmtKind::Labelled(..) => self.facts = Some(Facts::default()),
        }
    }

    /// Any clause may come after any other.
    fn clauses(&mut self, clauses: &mut [Clause]) {
        if self.knows_anything() {
            let mut changed = Vec::new();
            for clause in clauses.iter() {
                clause.body.statements.iter().for_each(|inner| changed.extend(changed_in(inner)));
                changed.extend(&clause.bindings);
            }
            self.forget_all(&changed);
        }
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
            self.join(after);
            after = self.facts.take();
        }
        self.facts = self.breaks.pop().flatten();
        self.join(after);
    }

    /// One more way leads here.
    fn join(&mut self, other: Option<Facts>) {
        let mut facts = self.facts.take();
        self.meet(&mut facts, other);
        self.facts = facts;
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
                    let before = self.facts.clone();
                    self.expression(value);
                    self.forget_all(&changed);
                    // There may be no elements to compute.
                    self.join(before);
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
                self.join(no);
            }
            ExprKind::Conditional(test, then, other) => {
                let (yes, no) = self.condition(test);
                self.facts = yes;
                self.expression(then);
                let after = std::mem::replace(&mut self.facts, no);
                self.expression(other);
                self.join(after);
            }
            ExprKind::Assign(op, place, value) => {
                self.expression(value);
                match place.kind {
                    ExprKind::Local(local) => self.assigned(local, *op, value),
                    _ => self.expression(place),
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
            ExprKind::Deref(pointer, checks) => self.deref(pointer, checks),
            ExprKind::Index(pointer, index, checks) => {
                self.expression(pointer);
                self.index(pointer, index, checks);
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
            | ExprKind::Instantiate(inner, _)
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
                self.called(call);
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

    /// `*p`, where `p` may step: the place is that before or after.
    fn deref(&mut self, pointer: &mut Expr, checks: &mut Checks) {
        if checks.bounds == Check::Never {
            return self.expression(pointer);
        }
        if let ExprKind::Step { place, postfix: true, .. } = &pointer.kind {
            self.access(place, &Value::number(0), checks);
        }
        self.expression(pointer);
        match &pointer.kind {
            ExprKind::Step { postfix: true, .. } => {}
            ExprKind::Step { place, .. } => self.access(place, &Value::number(0), checks),
            ExprKind::Binary(BinOp::Add, base, number)
                if self.fat_local(base).is_some() && changed_by(number).is_empty() =>
            {
                let value = self.value(number);
                self.access(base, &value, checks);
            }
            _ => self.access(pointer, &Value::number(0), checks),
        }
    }

    /// `p[i]`, where `i` may step.
    fn index(&mut self, pointer: &Expr, index: &mut Expr, checks: &mut Checks) {
        if checks.bounds == Check::Never {
            return self.expression(index);
        }
        if let ExprKind::Step { place, postfix: true, .. } = &index.kind {
            let value = self.value(place);
            self.access(pointer, &value, checks);
        }
        self.expression(index);
        let value = match &index.kind {
            ExprKind::Step { postfix: true, .. } => return,
            ExprKind::Step { place, .. } => self.value(place),
            _ => self.value(index),
        };
        if changed_by(index).is_empty() || matches!(index.kind, ExprKind::Step { .. }) {
            self.access(pointer, &value, checks);
        }
    }

    fn access(&mut self, pointer: &Expr, index: &Value, checks: &mut Checks) {
        if checks.bounds == Check::Never || self.facts.is_none() {
            return;
        }
        if let Some(pointer) = self.fat_local(pointer) {
            if self.rehearsals == 0 {
                self.decide(self.has(pointer, index), Array::Fat, checks);
                self.decide_next(self.has(pointer, &index.after(1)), checks);
            }
            // From here on the check has succeeded.
            index.exact().for_each(|(quantity, add)| self.learn_element(pointer, quantity, add));
            self.is_among(pointer, index);
            self.reaches(pointer, index, 1);
        } else if let Some(count) = self.thin_count(pointer) {
            if self.rehearsals == 0 {
                let is_positive = self.least(index).is_some_and(|least| least >= 0);
                let most = self.most(index).filter(|_| is_positive);
                self.decide(most.is_some_and(|most| most < count), Array::Thin, checks);
                self.decide_next(most.is_some_and(|most| most + 1 < count), checks);
            }
            if !self.is_zeroterm(pointer) {
                self.within(index, count);
            }
        }
    }

    /// The fat pointer has an element with this number.
    fn has(&self, pointer: LocalId, index: &Value) -> bool {
        index.exact().any(|(quantity, add)| self.has_element(pointer, quantity, add))
            || (self.least(index).is_some_and(|least| least >= 0) && self.is_left(pointer, index))
    }

    /// A check is not needed, or only in the first round of the loop around.
    fn decide(&mut self, is_proved: bool, array: Array, checks: &mut Checks) {
        let key = std::ptr::from_ref(&checks.bounds) as usize;
        let is_proved_first = match &mut self.part {
            Part::First(proofs) => {
                proofs.insert(key, is_proved);
                return;
            }
            Part::Later(proofs) => proofs.get(&key).copied().unwrap_or(true),
            Part::Whole => true,
        };
        match (is_proved, is_proved_first, array) {
            (true, true, _) => checks.bounds = Check::Proved,
            (true, false, Array::Fat) => checks.bounds = Check::FirstRound,
            _ => {}
        }
    }

    /// An access is not to the last element.
    fn decide_next(&mut self, is_proved: bool, checks: &mut Checks) {
        let key = std::ptr::from_ref(&checks.has_next) as usize;
        checks.has_next = match &mut self.part {
            Part::First(proofs) => {
                proofs.insert(key, is_proved);
                false
            }
            Part::Later(proofs) => is_proved && proofs.get(&key).copied().unwrap_or(true),
            Part::Whole => is_proved,
        };
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
                self.meet(&mut no, other);
                (both, no)
            }
            ExprKind::Binary(BinOp::LogOr, left, right) => {
                let (mut yes, no) = self.condition(left);
                self.facts = no;
                let (other, neither) = self.condition(right);
                self.meet(&mut yes, other);
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
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), left, right) => {
                self.expression(left);
                self.expression(right);
                let before = self.facts.clone();
                self.equal(left, right);
                let equal = std::mem::replace(&mut self.facts, before);
                self.different(left, right);
                let different = self.facts.take();
                if *op == BinOp::Eq { (equal, different) } else { (different, equal) }
            }
            _ => {
                self.expression(expr);
                let before = self.facts.clone();
                self.not_zero(expr);
                let yes = std::mem::replace(&mut self.facts, before);
                self.zero(expr);
                (yes, self.facts.take())
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

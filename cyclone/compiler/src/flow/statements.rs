//! Statements: loops, jumps, clauses, handlers, the ways out of the function.

use super::expressions::Use;
use super::shape::{Leaf, is_number};
use super::value::{Level, Place, Root, Value};
use super::{Analysis, GiveBackSort, NextClause, Target, is_void};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::{Block, Clause, Expr, ExprKind, LocalId, PatternKind, Region, RegionKind, Stmt, StmtKind, Switch};

/// What happens at the end of the last clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Falling {
    /// Control goes on after the statement.
    Out,
    /// It may not be reached: of `catch`, where the exception would be thrown again.
    Nowhere,
}

impl Analysis<'_, '_> {
    /// A block; what its patterns took is given back at its end.
    pub(super) fn block(&mut self, block: &mut Block) {
        let outer = self.give_backs.len();
        self.statements(&mut block.statements);
        self.give_back_to(outer);
    }

    fn statements(&mut self, statements: &mut [Stmt]) {
        let mut declared = Vec::new();
        for statement in statements.iter_mut() {
            self.statement(statement);
            match &statement.kind {
                StmtKind::Declare(local, _) => declared.push(*local),
                // What was taken from a place goes back there.
                StmtKind::Let { pattern, .. } => {
                    if let PatternKind::Bind(local, None) = pattern.kind
                        && !self.give_backs.iter().any(|give_back| give_back.name == local)
                    {
                        declared.push(local);
                    }
                }
                _ => {}
            }
        }
        if self.options.warn_lost {
            for local in declared {
                self.out_of_scope(local);
            }
        }
    }

    fn out_of_scope(&mut self, local: LocalId) {
        let declared = &self.locals[local.0 as usize];
        let (ty, span) = (declared.ty, declared.span);
        let Some(value) = self.at(&Place::of(local.0)) else { return };
        if self.shapes.holds_live(ty, &value) {
            let message =
                format!("`{}` may still own an object at the end of its scope, which is lost", self.name(local));
            self.lost(span, &message);
        }
    }

    pub(super) fn statement(&mut self, statement: &mut Stmt) {
        let span = statement.span;
        match &mut statement.kind {
            StmtKind::Empty => {}
            StmtKind::Expr(expr) => {
                self.value(expr, Use::Look);
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Declare(local, init) => {
                let local = *local;
                let ty = self.locals[local.0 as usize].ty;
                if self.locals[local.0 as usize].is_static {
                    return;
                }
                // Its initialiser may name it already (C11 6.2.1p7), before it has a value.
                let nothing = self.shapes.of(ty, Leaf::Uninitialised);
                self.declare(local, nothing);
                if let Some(init) = init {
                    let value = self.initial(init, ty);
                    self.declare(local, value);
                }
            }
            StmtKind::Let { pattern, value, .. } => self.let_pattern(pattern, value),
            StmtKind::Alias { local, value, body, .. } => {
                let outer = self.give_backs.len();
                self.alias(*local, value, GiveBackSort::Alias, span);
                self.statements(body);
                self.give_back_to(outer);
            }
            StmtKind::Region(region) => self.region(region, span),
            StmtKind::If(test, then, other) => {
                let (yes, no) = self.condition(test);
                self.state = yes;
                self.statement(then);
                let after = std::mem::replace(&mut self.state, no);
                if let Some(other) = other {
                    self.statement(other);
                }
                self.meet(after, span);
            }
            StmtKind::Switch(switch) => self.switch(switch),
            StmtKind::Try(body, clauses) => self.try_catch(body, clauses),
            StmtKind::While(test, body) => {
                let key = Self::key(&**body);
                self.head(key);
                let (yes, no) = self.condition(test);
                self.state = yes;
                let continued = self.loop_body(body);
                let (breaks, continues) = continued;
                self.merge(continues);
                self.back(key);
                self.state = no;
                self.merge(breaks);
            }
            StmtKind::DoWhile(body, test) => {
                let key = Self::key(&**body);
                self.head(key);
                let (breaks, continues) = self.loop_body(body);
                self.merge(continues);
                let (yes, no) = self.condition(test);
                self.state = yes;
                self.back(key);
                self.state = no;
                self.merge(breaks);
            }
            StmtKind::For { init, condition, step, body } => {
                if let Some(init) = init {
                    self.value(init, Use::Look);
                }
                let key = Self::key(&**body);
                self.head(key);
                let no = match condition {
                    Some(condition) => {
                        let (yes, no) = self.condition(condition);
                        self.state = yes;
                        no
                    }
                    None => None,
                };
                let (breaks, continues) = self.loop_body(body);
                self.merge(continues);
                if let Some(step) = step {
                    self.value(step, Use::Look);
                }
                self.back(key);
                self.state = no;
                self.merge(breaks);
            }
            StmtKind::Goto(label) => {
                let binders = self.labels.get(label).map_or(&[][..], |label| &label.binders);
                let is_left = |give_back: &super::GiveBack| !binders.contains(&give_back.name);
                let pending = self.give_backs.iter().position(is_left).unwrap_or(self.give_backs.len());
                self.leave_to(pending);
                let Some(state) = self.state.take() else { return };
                let Some(target) = self.labels.get_mut(label) else { return };
                let joined = match &target.state {
                    Some(known) => known.join(&state),
                    None => state,
                };
                if target.state.as_ref() != Some(&joined) {
                    target.state = Some(joined);
                    self.again |= target.is_met;
                }
            }
            StmtKind::Labelled(label, inner) => {
                let known = match self.labels.get_mut(label) {
                    Some(target) => {
                        target.is_met = true;
                        target.state.clone()
                    }
                    None => None,
                };
                self.merge(known);
                self.statement(inner);
            }
            StmtKind::Continue => {
                let pending = self.continues.last().map_or(0, |target| target.pending);
                self.leave_to(pending);
                let state = self.state.take();
                if let (Some(target), Some(state)) = (self.continues.last_mut(), state) {
                    super::join_into(&mut target.state, &state);
                }
            }
            StmtKind::Break => {
                let pending = self.breaks.last().map_or(0, |target| target.pending);
                self.leave_to(pending);
                let state = self.state.take();
                if let (Some(target), Some(state)) = (self.breaks.last_mut(), state) {
                    super::join_into(&mut target.state, &state);
                }
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    let result = self.value(value, Use::Copy);
                    self.release(&result, value.span);
                }
                self.leave_function(span);
                self.state = None;
            }
            StmtKind::Fallthru(values) => self.fallthru(values),
        }
    }

    /// A variable comes to life with a value.
    pub(super) fn declare(&mut self, local: LocalId, value: Value) {
        let Some(state) = &mut self.state else { return };
        state.begin(local.0, value);
    }

    /// The body of a loop: the states of its `break`s and `continue`s.
    fn loop_body(&mut self, body: &mut Stmt) -> (Option<super::State>, Option<super::State>) {
        let pending = self.give_backs.len();
        self.breaks.push(Target { state: None, pending });
        self.continues.push(Target { state: None, pending });
        self.statement(body);
        let continues = self.continues.pop().and_then(|target| target.state);
        let breaks = self.breaks.pop().and_then(|target| target.state);
        (breaks, continues)
    }

    /// Two ways meet: what is owned on one and consumed on the other is lost on the first.
    fn meet(&mut self, other: Option<super::State>, span: Span) {
        if self.options.warn_lost
            && let (Some(here), Some(there)) = (&self.state, &other)
        {
            let mut lost = Vec::new();
            for (root, value) in here.alive() {
                let (Some(local), Some(theirs)) = (self.locals.get(root as usize), there.root(root)) else { continue };
                let differs = value.consumed_at().is_some() != theirs.consumed_at().is_some();
                if differs {
                    let live = if value.consumed_at().is_some() { theirs } else { value };
                    lost.push((local.name, local.ty, live.clone()));
                }
            }
            for (name, ty, live) in lost {
                if self.shapes.holds_live(ty, &live) {
                    let message = format!(
                        "`{name}` is consumed on one way to here, and may still own an object on the other, where that is lost"
                    );
                    self.lost(span, &message);
                }
            }
        }
        self.merge(other);
    }

    fn region(&mut self, region: &mut Region, span: Span) {
        let outer = self.give_backs.len();
        match &mut region.kind {
            RegionKind::Lexical => self.declare(region.handle, Value::Unknown(Level::All)),
            RegionKind::Open(key) => self.alias(region.handle, key, GiveBackSort::Open, span),
        }
        self.statements(&mut region.body);
        self.give_back_to(outer);
    }

    fn switch(&mut self, switch: &mut Switch) {
        let place = self.scrutinee(&mut switch.value);
        self.clauses(&mut switch.clauses, place, Falling::Out);
    }

    /// Where the value that patterns look at is: a variable itself, or a temporary.
    pub(super) fn scrutinee(&mut self, value: &mut Expr) -> Place {
        if let ExprKind::Local(local) = value.kind
            && !self.locals[local.0 as usize].is_static
        {
            return Place::of(local.0 as Root);
        }
        let root = self.site(&*value);
        let contents = self.value(value, Use::Copy);
        if let Some(state) = &mut self.state {
            state.begin(root, contents);
        }
        Place::of(root)
    }

    fn clauses(&mut self, clauses: &mut [Clause], place: Place, last: Falling) {
        let entry = self.state.take();
        let pending = self.give_backs.len();
        self.breaks.push(Target { state: None, pending });
        let mut fallen: Option<super::State> = None;
        let count = clauses.len();
        for index in 0..count {
            let next_bindings = clauses.get(index + 1).map(|next| next.bindings.clone());
            let into_variables = next_bindings.as_ref().is_some_and(|bindings| !bindings.is_empty());
            let clause = &mut clauses[index];
            self.state = entry.clone();
            self.bind(&mut clause.pattern, Some(place.clone()), None);
            if let Some(guard) = &mut clause.guard {
                let (yes, no) = self.condition(guard);
                // What the clause's pattern took is still there for the next clauses: only the condition's knowledge stays.
                drop(no);
                self.state = yes;
            }
            self.merge(fallen.take());
            let next = next_bindings.map(|bindings| NextClause { state: None, bindings, pending });
            self.next_clauses.push(next);
            self.block(&mut clause.body);
            self.give_back_to(pending);
            let next = self.next_clauses.pop().flatten();
            fallen = next.and_then(|next| next.state);
            let is_last = index + 1 == count;
            if self.state.is_some() && !(is_last && last == Falling::Out) {
                // Without variables to bind, going on in the next clause at least has a meaning.
                let is_error = is_last || last == Falling::Nowhere || into_variables;
                let message = "control may reach the end of this clause, where it would go on in the next";
                let diagnostic = match is_error {
                    true => Diagnostic::error(Code::Fallthrough, clause.span, message),
                    false => Diagnostic::warning(Code::Fallthrough, clause.span, message),
                };
                self.report(diagnostic.help("end it with `break` or `fallthru`"));
                if let Some(after) = self.state.take() {
                    super::join_into(&mut fallen, &after);
                }
            }
        }
        let breaks = self.breaks.pop().and_then(|target| target.state);
        self.merge(breaks);
    }

    fn fallthru(&mut self, values: &mut [Expr]) {
        let mut stored = Vec::new();
        for value in values.iter_mut() {
            stored.push(self.value(value, Use::Copy));
        }
        let Some(Some(next)) = self.next_clauses.last() else {
            self.state = None;
            return;
        };
        let (bindings, pending) = (next.bindings.clone(), next.pending);
        self.leave_to(pending);
        for (local, value) in bindings.into_iter().zip(stored) {
            self.declare(local, value);
        }
        let state = self.state.take();
        if let (Some(Some(next)), Some(state)) = (self.next_clauses.last_mut(), state) {
            super::join_into(&mut next.state, &state);
        }
    }

    /// The handlers see the state of any point of the body.
    fn try_catch(&mut self, body: &mut Stmt, clauses: &mut [Clause]) {
        self.handlers.push(self.state.clone());
        self.statement(body);
        let after = self.state.take();
        let seen = self.handlers.pop().flatten();
        if let (Some(Some(outer)), Some(seen)) = (self.handlers.last_mut(), &seen) {
            *outer = outer.join(seen);
        }
        self.state = seen;
        let root = self.site(&*body);
        if let Some(state) = &mut self.state {
            state.begin(root, Value::NonZero);
        }
        self.clauses(clauses, Place::of(root), Falling::Nowhere);
        self.merge(after);
    }

    /// What holds at every `return`.
    fn leave_function(&mut self, span: Span) {
        if self.state.is_none() {
            return;
        }
        for root in self.promised.clone() {
            let contents = self.at(&Place::of(root));
            if contents.is_some_and(|contents| self.level(&contents) == Level::None) {
                let message =
                    "the function may return without having stored a value where `initializes` says that it does";
                self.error(Code::Uninitialised, span, message);
            }
        }
        for local in self.kept.clone() {
            self.must_have_first_value(local, span);
        }
        if self.options.warn_lost {
            let params: Vec<usize> = self.attributes.consume.clone();
            for param in params {
                if param < self.locals.len() {
                    self.out_of_scope(LocalId(param as u32));
                }
            }
        }
    }

    /// A parameter that the function does not consume.
    fn must_have_first_value(&mut self, local: LocalId, span: Span) {
        let Some(value) = self.at(&Place::of(local.0)) else { return };
        let declared = self.locals[local.0 as usize].span;
        let name = self.name(local);
        let help = format!("declare it `consume`, or give it back before `{name}` goes out of scope");
        let diagnostic = match &value {
            Value::Named(other, inner) if *other == local => match inner.consumed_below() {
                None if self.level(inner) == Level::All => return,
                Some(at) => {
                    let what = if inner.consumed_at().is_some() { "" } else { "something that is owned by " };
                    Diagnostic::error(
                        Code::NotKept,
                        at,
                        format!("the function consumes {what}its parameter `{name}`, which has no `consume` attribute"),
                    )
                }
                None => Diagnostic::error(
                    Code::NotKept,
                    span,
                    format!("what the parameter `{name}` points to may not be initialised any more at the end"),
                ),
            },
            _ => Diagnostic::error(
                Code::NotKept,
                span,
                format!("the parameter `{name}`, which has no `consume` attribute, may have another value at the end"),
            ),
        };
        self.report(diagnostic.with(declared, "declared here").help(help));
    }

    /// The end of the body is reached.
    pub(super) fn falls_off(&mut self, end: Span) {
        if self.state.is_none() {
            return;
        }
        self.leave_function(end);
        if self.attributes.noreturn {
            self.error(Code::MissingReturn, end, "a function declared `noreturn` reaches its end");
        } else if !is_void(self.shapes.types, self.result) {
            let message = "the function may reach its end without returning a value";
            // Whoever uses a number that was not returned gets some number; a pointer must not be invented.
            let diagnostic = match is_number(self.shapes.types, self.result) {
                true => Diagnostic::warning(Code::MissingReturn, end, message),
                false => Diagnostic::error(Code::MissingReturn, end, message),
            };
            self.report(diagnostic);
        }
        self.state = None;
    }
}

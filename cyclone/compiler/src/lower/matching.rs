//! Pattern matching: `switch`, `catch`, `let`.
//!
//! A clause is a test, then the binding of its variables, then its guard, then a jump to its body; the bodies stand behind all
//! tests, so that `fallthru` is a jump, too. Where all clauses look at one number first (an integer, a constructor's or union's
//! tag), that is a `switch` of C whose cases hold the tests of the clauses that are left.

use super::exits::{Frame, key_of_try};
use super::function::{Body, BreakTarget, ClauseTarget};
use super::shapes::{C, Shape};
use crate::source::Span;
use crate::tree::{Clause, Expr, ExprKind, LocalId, Pattern, PatternKind, Stmt, Switch};
use crate::types::{Ty, TyKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a pattern looks at: a C expression that can be evaluated any number of times, and its shape.
#[derive(Clone)]
struct Subject {
    text: String,
    c: C,
}

/// A test and the bindings of a pattern that passed it.
#[derive(Default)]
struct Plan {
    tests: Vec<String>,
    bindings: Vec<(LocalId, Subject, Binding)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding {
    Copy,
    Address,
    Number,
}

/// The number that a clause's pattern looks at first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Int(i64),
    Constructor(u32),
    Member(usize),
}

impl<'p> Body<'_, 'p> {
    /// `let p = e;`
    pub fn let_pattern(&mut self, pattern: &'p Pattern, value: &'p Expr, may_fail: bool) {
        let mut locals = Vec::new();
        bound_locals(pattern, &mut locals);
        for local in locals {
            self.declare_local(local);
            self.push("; ");
        }
        self.push("{ ");
        let subject = self.subject(value, has_reference(pattern));
        let plan = self.plan(pattern, subject);
        if may_fail && !plan.tests.is_empty() {
            let _ = write!(self.out, "if (!({})) _cyc_throw_match(); ", plan.tests.join(" && "));
        }
        self.bind(&plan);
        self.push(" }");
    }

    pub fn switch(&mut self, switch: &'p Switch) {
        let references = switch.clauses.iter().any(|clause| has_reference(&clause.pattern));
        self.push("{ ");
        let subject = self.subject(&switch.value, references);
        self.clauses(&switch.clauses, subject, "_cyc_throw_match();");
        self.push(" }");
    }

    pub fn try_catch(&mut self, body: &'p Stmt, clauses: &'p [Clause]) {
        let number = self.fresh();
        self.push("{ ");
        for local in self.survivors.reached.get(&key_of_try(body)).cloned().unwrap_or_default() {
            self.push("_cyc_reached(");
            self.push_local(local);
            self.push("); ");
        }
        for name in &self.kept_names {
            put!(self.out, "_cyc_reached(", name, "); ");
        }
        let _ = write!(self.out, "struct _cyc_handler _cyc_h{number}; if (_cyc_try(&_cyc_h{number}) == 0) {{");
        self.frames.push(Frame::Handler);
        self.statement(body);
        self.frames.pop();
        self.push(" _cyc_pop_handler(); } else { ");
        let exception = self.lower.shapes.make(Shape::Extensible);
        let c = self.lower.shapes.pointer(exception);
        let name = self.temporary(c, |body| {
            let _ = write!(body.out, "(struct _cyc_extensible *)_cyc_h{number}.exn");
        });
        let rethrow = format!("_cyc_rethrow({name});");
        self.clauses(clauses, Subject { text: name, c }, &rethrow);
        self.push(" } }");
    }

    /// Evaluates what is looked at, once.
    fn subject(&mut self, value: &'p Expr, by_reference: bool) -> Subject {
        if by_reference && is_place(value) {
            let c = self.shape_of(value);
            let pointer = self.lower.shapes.pointer(c);
            let name = self.temporary(pointer, |body| body.address_of(value));
            return Subject { text: format!("(*{name})"), c };
        }
        let c = self.lower.shape(value.ty);
        let name = self.temporary(c, |body| body.value_as(value, c));
        Subject { text: name, c }
    }

    fn clauses(&mut self, clauses: &'p [Clause], subject: Subject, otherwise: &str) {
        let base = self.next_labels(clauses.len());
        let end = base + clauses.len() as u32;
        for clause in clauses {
            let mut locals = Vec::new();
            bound_locals(&clause.pattern, &mut locals);
            for local in locals {
                self.declare_local(local);
                self.push("; ");
            }
        }
        let mut tests = Vec::with_capacity(clauses.len());
        for (index, clause) in clauses.iter().enumerate() {
            tests.push(self.clause_test(clause, &subject, base + index as u32));
        }
        self.dispatch(clauses, &tests, &subject);
        self.push(otherwise);
        for (index, clause) in clauses.iter().enumerate() {
            self.line(clause.span);
            put!(self.out, "_cyc_c", base + index as u32, ": ");
            self.breaks.push(BreakTarget { label: Some(end), depth: self.frames.len() });
            self.next_clause.push(clauses.get(index + 1).map(|next| ClauseTarget {
                label: base + index as u32 + 1,
                bindings: &next.bindings,
                depth: self.frames.len(),
            }));
            self.block(&clause.body);
            self.next_clause.pop();
            self.breaks.pop();
            put!(self.out, " goto _cyc_e", end, ";");
        }
        let _ = write!(self.out, " _cyc_e{end}: ;");
    }

    /// Numbers for the bodies' labels and, after them, the end's.
    fn next_labels(&mut self, clauses: usize) -> u32 {
        let base = self.fresh();
        for _ in 0..clauses {
            self.fresh();
        }
        base
    }

    /// The statement that jumps to a clause's body if it matches.
    fn clause_test(&mut self, clause: &'p Clause, subject: &Subject, label: u32) -> String {
        self.captured(|body| {
            let plan = body.plan(&clause.pattern, subject.clone());
            if !plan.tests.is_empty() {
                put!(body.out, "if (", plan.tests.join(" && "), ") ");
            }
            body.push("{ ");
            body.bind(&plan);
            if let Some(guard) = &clause.guard {
                body.push("if (");
                body.condition(guard);
                body.push(") ");
            }
            put!(body.out, "goto _cyc_c", label, "; }");
        })
    }

    /// All tests in their order, grouped by the number they look at first where there are enough of them.
    fn dispatch(&mut self, clauses: &'p [Clause], tests: &[String], subject: &Subject) {
        let heads: Vec<Option<Head>> = clauses.iter().map(|clause| self.head(&clause.pattern)).collect();
        let mut groups: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (index, head) in heads.iter().enumerate() {
            if let Some(head) = head {
                groups.entry(head.number()).or_default().push(index);
            }
        }
        let total: usize = tests.iter().map(String::len).sum();
        let others = heads.iter().filter(|head| head.is_none()).count();
        // Each case repeats the tests of the clauses without a number.
        let is_worth_it = groups.len() >= 3 && others <= 2 && total < 1 << 16;
        let number = match clauses.iter().find_map(|clause| self.head(&clause.pattern).map(|head| (head, clause))) {
            Some((head, clause)) if is_worth_it => self.head_number(head, &clause.pattern, subject),
            _ => None,
        };
        let Some(number) = number else {
            for test in tests {
                self.push(test);
                self.push(" ");
            }
            return;
        };
        let _ = write!(self.out, "switch ({number}) {{ ");
        for (value, indices) in &groups {
            let _ = write!(self.out, "case {value}: ");
            for (index, test) in tests.iter().enumerate() {
                if heads[index].is_none() || indices.contains(&index) {
                    self.push(test);
                    self.push(" ");
                }
            }
            self.push("break; ");
        }
        self.push("default: ");
        for (index, test) in tests.iter().enumerate() {
            if heads[index].is_none() {
                self.push(test);
                self.push(" ");
            }
        }
        self.push("break; } ");
    }

    fn head(&self, pattern: &Pattern) -> Option<Head> {
        match &pattern.kind {
            PatternKind::Int(value) => Some(Head::Int(*value)),
            PatternKind::Bind(_, Some(inner)) | PatternKind::Reference(_, Some(inner)) => self.head(inner),
            PatternKind::Tagged(index, _) => Some(Head::Member(*index)),
            PatternKind::Deref(inner) => match &inner.kind {
                PatternKind::Constructor(id, index, _)
                    if !self.lower.program.declarations.datatype(*id).is_extensible
                        && self.pointer_type(pattern.ty).is_some_and(|pointer| !self.is_nullable(pointer.nullable)) =>
                {
                    Some(Head::Constructor(*index))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn is_nullable(&self, ty: Ty) -> bool {
        !matches!(self.lower.program.types.get(ty), TyKind::False)
    }

    /// The C expression of the number that the clauses look at first.
    fn head_number(&mut self, head: Head, pattern: &Pattern, subject: &Subject) -> Option<String> {
        match head {
            Head::Int(_) => {
                let want = self.lower.shape(innermost(pattern).ty);
                Some(self.subject_as(subject, want))
            }
            Head::Member(_) => Some(format!("{}.tag", subject.text)),
            Head::Constructor(_) => {
                let want = self.lower.shape(innermost(pattern).ty);
                match self.lower.shapes.get(want) {
                    Shape::Pointer { .. } => Some(format!("{}->tag", self.subject_as(subject, want))),
                    _ => None,
                }
            }
        }
    }

    fn subject_as(&mut self, subject: &Subject, want: C) -> String {
        self.captured(|body| body.converted(subject.c, want, |body| body.push(&subject.text)))
    }

    fn plan(&mut self, pattern: &'p Pattern, subject: Subject) -> Plan {
        let mut plan = Plan::default();
        self.add(pattern, subject, &mut plan);
        plan
    }

    fn add(&mut self, pattern: &'p Pattern, subject: Subject, plan: &mut Plan) {
        let want = self.lower.shape(pattern.ty);
        match &pattern.kind {
            PatternKind::Wild => {}
            PatternKind::Bind(local, inner) => {
                plan.bindings.push((*local, subject.clone(), Binding::Copy));
                if let Some(inner) = inner {
                    self.add(inner, subject, plan);
                }
            }
            PatternKind::Alias(local, _) => plan.bindings.push((*local, subject, Binding::Copy)),
            PatternKind::Tag(local, _) => plan.bindings.push((*local, subject, Binding::Number)),
            PatternKind::Reference(local, inner) => {
                plan.bindings.push((*local, subject.clone(), Binding::Address));
                if let Some(inner) = inner {
                    self.add(inner, subject, plan);
                }
            }
            PatternKind::Int(value) => {
                let literal = self.lower.integer_literal(i128::from(*value), pattern.ty);
                plan.tests.push(format!("{} == {literal}", self.subject_as(&subject, want)));
            }
            PatternKind::Float(value) => plan.tests.push(format!("{} == {value}", self.subject_as(&subject, want))),
            PatternKind::Null => plan.tests.push(format!("!{}", self.pointer_text(&subject, want))),
            PatternKind::Value(value) => {
                let value = self.captured(|body| body.value(value));
                let curr = if *self.lower.shapes.get(want) == Shape::Fat { ".curr" } else { "" };
                plan.tests.push(format!("{}{curr} == {value}{curr}", self.subject_as(&subject, want)));
            }
            PatternKind::Deref(inner) => self.add_deref(pattern, inner, &subject, want, plan),
            PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) => {
                for (index, part) in parts {
                    let (c, name) = self.lower.member(pattern.ty, *index);
                    self.add(part, Subject { text: text!(subject.text, ".", name), c }, plan);
                }
            }
            PatternKind::Tagged(index, inner) => {
                plan.tests.push(text!(subject.text, ".tag == ", *index + 1));
                let (c, name) = self.lower.member(pattern.ty, *index);
                self.add(inner, Subject { text: text!(subject.text, ".", name), c }, plan);
            }
            PatternKind::Constructor(id, constructor, parts) => {
                let tag = self.lower.constructor_tag_value(*id, *constructor);
                plan.tests.push(text!(subject.text, ".tag == ", tag));
                if parts.is_empty() {
                    return;
                }
                let structure = self.lower.shapes.make(Shape::Constructor(*id, *constructor));
                let cast = self.lower.cast(structure);
                for (index, part) in parts {
                    let (c, name) = self.lower.constructor_member(*id, *constructor, *index);
                    self.add(part, Subject { text: text!("((", cast, " *)&", subject.text, ")->", name), c }, plan);
                }
            }
        }
    }

    fn pointer_text(&mut self, subject: &Subject, want: C) -> String {
        let text = self.subject_as(subject, want);
        match self.lower.shapes.get(want) {
            Shape::Fat => format!("{text}.curr"),
            _ => text,
        }
    }

    fn add_deref(&mut self, pattern: &'p Pattern, inner: &'p Pattern, subject: &Subject, want: C, plan: &mut Plan) {
        let Some(pointer) = self.pointer_type(pattern.ty) else { return };
        let text = self.subject_as(subject, want);
        let c = self.lower.shape(pointer.target);
        if self.is_fat(pointer) {
            let at = self.lower.shapes.pointer(c);
            let (cast, size) = (self.lower.cast(at), self.lower.cast(c));
            plan.tests.push(format!("_cyc_fat_count({text}, sizeof({size})) > 0"));
            return self.add(inner, Subject { text: format!("(*({cast}){text}.curr)"), c }, plan);
        }
        if self.is_nullable(pointer.nullable) {
            plan.tests.push(text.clone());
        }
        self.add(inner, Subject { text: text!("(*", text, ")"), c }, plan);
    }

    fn bind(&mut self, plan: &Plan) {
        for (local, subject, binding) in &plan.bindings {
            let Some(ty) = self.local(*local).map(|local| local.ty) else { continue };
            let want = self.lower.shape(ty);
            self.push_local(*local);
            self.push(" = ");
            match binding {
                Binding::Copy | Binding::Number => {
                    let text = self.subject_as(subject, want);
                    self.push(&text);
                }
                Binding::Address => {
                    let have = self.lower.shapes.pointer(subject.c);
                    self.converted(have, want, |body| {
                        put!(body.out, "(&", subject.text, ")");
                    });
                }
            }
            self.push("; ");
        }
    }

    /// `fallthru(e, ..)`
    pub fn fallthru(&mut self, values: &'p [Expr], span: Span) {
        let Some(Some(target)) = self.next_clause.last().copied() else {
            return self.lower.unsupported(span, "`fallthru` here");
        };
        self.push("{ ");
        let mut names = Vec::new();
        for (value, &local) in values.iter().zip(target.bindings) {
            let Some(ty) = self.local(local).map(|local| local.ty) else { continue };
            let c = self.lower.shape(ty);
            names.push((local, self.temporary(c, |body| body.value_as(value, c))));
        }
        for (local, name) in names {
            self.push_local(local);
            let _ = write!(self.out, " = {name}; ");
        }
        self.leave(target.depth);
        let _ = write!(self.out, "goto _cyc_c{}; }}", target.label);
    }
}

impl Head {
    fn number(self) -> i64 {
        match self {
            Head::Int(value) => value,
            Head::Constructor(index) => i64::from(index) + 1,
            Head::Member(index) => index as i64 + 1,
        }
    }
}

/// The pattern without names around it.
fn innermost(pattern: &Pattern) -> &Pattern {
    match &pattern.kind {
        PatternKind::Bind(_, Some(inner)) | PatternKind::Reference(_, Some(inner)) => innermost(inner),
        _ => pattern,
    }
}

fn is_place(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Local(_) | ExprKind::Global(_) | ExprKind::Deref(..) | ExprKind::Index(..) => true,
        ExprKind::Member(base, _) | ExprKind::TaggedMember(base, _, _) => is_place(base),
        ExprKind::Coerce(crate::tree::Coercion::Same, inner) => is_place(inner),
        _ => false,
    }
}

/// Whether the pattern takes an address within what it looks at, not behind a pointer.
fn has_reference(pattern: &Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Reference(..) => true,
        PatternKind::Bind(_, Some(inner)) | PatternKind::Tagged(_, inner) => has_reference(inner),
        PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) => parts.iter().any(|(_, part)| has_reference(part)),
        _ => false,
    }
}

/// The variables a pattern binds, in order.
fn bound_locals(pattern: &Pattern, locals: &mut Vec<LocalId>) {
    match &pattern.kind {
        PatternKind::Bind(local, inner) | PatternKind::Reference(local, inner) => {
            locals.push(*local);
            if let Some(inner) = inner {
                bound_locals(inner, locals);
            }
        }
        PatternKind::Tag(local, _) | PatternKind::Alias(local, _) => locals.push(*local),
        PatternKind::Deref(inner) | PatternKind::Tagged(_, inner) => bound_locals(inner, locals),
        PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) | PatternKind::Constructor(_, _, parts) => {
            parts.iter().for_each(|(_, part)| bound_locals(part, locals));
        }
        PatternKind::Wild | PatternKind::Int(_) | PatternKind::Float(_) | PatternKind::Null | PatternKind::Value(_) => {
        }
    }
}

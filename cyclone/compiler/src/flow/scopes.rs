//! Jumps: what a `goto` may not enter, and a `break` that would fall into the next clause.
//!
//! A `goto` may leave scopes, and may not enter one: the variables of a block from their declaration on, a pattern's or alias's scope,
//! a region, the body of `try`. A `break` of an inner statement that is the last of a clause leads to the clause's end, where C goes
//! on in the next clause; this is rejected, as the end itself is by the analysis.

use crate::diagnostics::{Code, Diagnostic};
use crate::hash::HashMap;
use crate::source::Span;
use crate::tree::{Block, Clause, Function, LabelId, LocalId, Pattern, PatternKind, RegionKind, Stmt, StmtKind};

/// Checks the jumps of a function. For each label: the variables of patterns, aliases and opened regions whose scope it is in.
pub(super) fn check(function: &Function, diagnostics: &mut Vec<Diagnostic>) -> HashMap<LabelId, Vec<LocalId>> {
    let mut walk = Walk {
        scopes: Vec::new(),
        binders: Vec::new(),
        next: 0,
        labels: HashMap::default(),
        gotos: Vec::new(),
        breaks: Vec::new(),
        diagnostics,
    };
    walk.block(&function.body, Exit::Else);
    for (label, scopes, span) in std::mem::take(&mut walk.gotos) {
        if let Some(target) = walk.labels.get(&label)
            && !scopes.starts_with(&target.scopes)
        {
            let message = "`goto` enters the scope of a variable, region or handler";
            walk.diagnostics.push(Diagnostic::error(Code::EntersScope, span, message).with(target.span, "the label"));
        }
    }
    walk.labels.into_iter().map(|(label, target)| (label, target.binders)).collect()
}

/// Where control goes after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// To the end of a clause that is not the last one.
    ClauseEnd,
    /// Somewhere else.
    Else,
}

struct Label {
    scopes: Vec<u32>,
    binders: Vec<LocalId>,
    span: Span,
}

struct Walk<'a> {
    /// The numbers of the scopes around, outermost first.
    scopes: Vec<u32>,
    /// What they bind.
    binders: Vec<LocalId>,
    next: u32,
    labels: HashMap<LabelId, Label>,
    gotos: Vec<(LabelId, Vec<u32>, Span)>,
    breaks: Vec<Exit>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Walk<'_> {
    /// What is bound from here on, until the scopes around end, is in a new scope.
    fn enter(&mut self) {
        self.scopes.push(self.next);
        self.next += 1;
    }

    /// Walks the inside of scopes; those that it enters end with it.
    fn inside(&mut self, walk: impl FnOnce(&mut Self)) {
        let outside = (self.scopes.len(), self.binders.len());
        walk(self);
        self.scopes.truncate(outside.0);
        self.binders.truncate(outside.1);
    }

    fn block(&mut self, block: &Block, exit: Exit) {
        self.statements(&block.statements, exit);
    }

    fn statements(&mut self, statements: &[Stmt], exit: Exit) {
        self.inside(|walk| {
            for (index, statement) in statements.iter().enumerate() {
                let exit = if index + 1 == statements.len() { exit } else { Exit::Else };
                walk.statement(statement, exit);
                match &statement.kind {
                    StmtKind::Declare(..) => walk.enter(),
                    StmtKind::Let { pattern, .. } => {
                        bound(pattern, &mut walk.binders);
                        walk.enter();
                    }
                    _ => {}
                }
            }
        });
    }

    fn scoped(&mut self, binders: &[LocalId], statements: &[Stmt], exit: Exit) {
        self.inside(|walk| {
            walk.enter();
            walk.binders.extend(binders);
            walk.statements(statements, exit);
        });
    }

    fn statement(&mut self, statement: &Stmt, exit: Exit) {
        match &statement.kind {
            StmtKind::Block(block) => self.block(block, exit),
            StmtKind::Alias { local, body, .. } => self.scoped(&[*local], body, exit),
            StmtKind::Region(region) => {
                let binders = match &region.kind {
                    RegionKind::Lexical => &[][..],
                    RegionKind::Open(_) => &[region.handle],
                };
                self.scoped(binders, &region.body, exit);
            }
            StmtKind::If(_, then, other) => {
                self.statement(then, exit);
                if let Some(other) = other {
                    self.statement(other, exit);
                }
            }
            StmtKind::Switch(switch) => self.clauses(&switch.clauses, exit, exit),
            StmtKind::Try(body, clauses) => {
                self.scoped(&[], std::slice::from_ref(body), Exit::Else);
                self.clauses(clauses, exit, Exit::ClauseEnd);
            }
            StmtKind::While(_, body) | StmtKind::DoWhile(body, _) | StmtKind::For { body, .. } => {
                self.breaks.push(exit);
                self.statement(body, Exit::Else);
                self.breaks.pop();
            }
            StmtKind::Goto(label) => {
                self.gotos.push((*label, self.scopes.clone(), statement.span));
            }
            StmtKind::Labelled(label, inner) => {
                let (scopes, binders) = (self.scopes.clone(), self.binders.clone());
                self.labels.insert(*label, Label { scopes, binders, span: statement.span });
                self.statement(inner, exit);
            }
            StmtKind::Break if self.breaks.last() == Some(&Exit::ClauseEnd) => {
                let message =
                    "this `break` leads to the end of a clause of an outer `switch`, which would go on in the next";
                self.diagnostics.push(Diagnostic::error(Code::Fallthrough, statement.span, message));
            }
            _ => {}
        }
    }

    /// `exit` is where a `break` goes, `last` where the end of the last clause does.
    fn clauses(&mut self, clauses: &[Clause], exit: Exit, last: Exit) {
        self.breaks.push(exit);
        for (index, clause) in clauses.iter().enumerate() {
            let end = if index + 1 == clauses.len() { last } else { Exit::ClauseEnd };
            match clause.bindings.is_empty() {
                true => self.block(&clause.body, end),
                false => self.scoped(&clause.bindings, &clause.body.statements, end),
            }
        }
        self.breaks.pop();
    }
}

fn bound(pattern: &Pattern, out: &mut Vec<LocalId>) {
    match &pattern.kind {
        PatternKind::Bind(local, inner) | PatternKind::Reference(local, inner) => {
            out.push(*local);
            if let Some(inner) = inner {
                bound(inner, out);
            }
        }
        PatternKind::Alias(local, _) | PatternKind::Tag(local, _) => out.push(*local),
        PatternKind::Deref(inner) | PatternKind::Tagged(_, inner) => bound(inner, out),
        PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) | PatternKind::Constructor(_, _, parts) => {
            parts.iter().for_each(|(_, part)| bound(part, out));
        }
        _ => {}
    }
}

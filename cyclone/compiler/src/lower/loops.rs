//! Loops. One with checks that only its first round needs has a variable that says whether this is it; C compilers take that
//! round apart.

use super::function::{Body, BreakTarget};
use crate::flow::walk;
use crate::tree::{Check, Expr, Stmt, StmtKind};

/// A loop that is being written.
pub struct Loop {
    /// How many frames there are around it.
    pub depth: usize,
    /// The number of the variable that is true in its first round.
    first: Option<u32>,
}

/// Whether a statement has checks for the first round of a loop only.
pub fn has_first_round(statement: &Stmt) -> bool {
    let mut found = false;
    walk::in_statement(statement, &mut |expr| {
        found |= expr.bounds_check() == Some(Check::FirstRound);
    });
    found
}

impl<'p> Body<'_, 'p> {
    /// The variable that is true in the first round of the loop around, if it has one.
    pub fn first_round(&self) -> Option<String> {
        self.loops.last()?.first.map(first_name)
    }

    /// A loop, with what is before it in a `for`.
    pub fn repeated(&mut self, statement: &'p Stmt) {
        if let StmtKind::For { init: Some(init), .. } = &statement.kind {
            self.effect(init);
            self.push("; ");
        }
        let first = (self.has_first_rounds && has_first_round(statement)).then(|| self.fresh());
        if let Some(first) = first {
            put!(self.out, "{ _Bool ", first_name(first), " = 1; ");
        }
        self.loops.push(Loop { depth: self.frames.len(), first });
        self.breaks.push(BreakTarget { label: None, depth: self.frames.len() });
        match &statement.kind {
            StmtKind::While(condition, body) => self.written(Some(condition), None, body),
            StmtKind::For { condition, step, body, .. } => self.written(condition.as_deref(), step.as_deref(), body),
            StmtKind::DoWhile(body, condition) => self.do_while(body, condition),
            _ => {}
        }
        self.breaks.pop();
        self.loops.pop();
        if first.is_some() {
            self.push(" }");
        }
    }

    fn written(&mut self, condition: Option<&'p Expr>, step: Option<&'p Expr>, body: &'p Stmt) {
        let first = self.first_round();
        self.push("for (; ");
        if let Some(condition) = condition {
            self.condition(condition);
        }
        self.push("; ");
        if let Some(step) = step {
            self.effect(step);
        }
        // The first step belongs to the first round.
        if let Some(first) = &first {
            let comma = if step.is_some() { ", " } else { "" };
            put!(self.out, comma, first, " = 0");
        }
        self.push(if step.is_some() || first.is_some() { ", _cyc_round()) " } else { "_cyc_round()) " });
        self.body(body);
    }

    fn do_while(&mut self, body: &'p Stmt, condition: &'p Expr) {
        self.push("do ");
        self.body(body);
        self.push(" while (_cyc_round(), ");
        match self.first_round() {
            Some(first) => {
                self.push("(");
                self.condition(condition);
                put!(self.out, ") && (", first, " = 0, 1)");
            }
            None => self.condition(condition),
        }
        self.push(");");
    }
}

fn first_name(number: u32) -> String {
    text!("_cyc_first", number)
}

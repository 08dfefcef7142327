//! Loops.
//!
//! At the head of a loop those facts hold that hold before it and are left at its end, found by walking over its body until no
//! more are lost. A loop without another in it is looked at in two parts, its first round and those after it: what the first
//! round has checked or tested often holds in all that follow, as in `while (*p) p++`.

use super::Prover;
use super::changed_in;
use super::entries::is_fat;
use super::facts::Facts;
use super::values::Integer;
use crate::hash::HashMap;
use crate::tree::{Stmt, StmtKind};

/// The part of an innermost loop that is walked over, with what is proved in its first round, by the address of the check.
pub(super) enum Part {
    Whole,
    First(HashMap<usize, bool>),
    Later(HashMap<usize, bool>),
}

/// Loops nested deeper are taken without what their own assignments change.
const REHEARSAL_LIMIT: u32 = 2;
/// So are those inside so many others: the time would grow with the third power of how deep they lie.
const NESTING_LIMIT: u32 = 12;
/// Facts are lost at the head of a loop in a few rounds, or all that its assignments change are.
const ROUNDS: u32 = 6;
/// More variables that change in a loop, or more fat pointers, are not compared.
const RELATED_LIMIT: usize = 3;

impl Prover<'_> {
    pub(super) fn repeated(&mut self, statement: &mut Stmt) {
        if let StmtKind::For { init: Some(init), .. } = &mut statement.kind {
            self.expression(init);
        }
        self.loops += 1;
        self.nesting += 1;
        self.all_rounds(statement);
        self.nesting -= 1;
    }

    /// Variables and fat pointers that change in a loop may change together.
    fn relate_changed(&mut self, statement: &Stmt) {
        if !self.knows_anything() {
            return;
        }
        let mut changed = changed_in(statement);
        changed.sort_unstable_by_key(|local| local.0);
        changed.dedup();
        let followed = changed.into_iter().filter(|local| self.is_tracked[local.0 as usize]);
        let (fat, others): (Vec<_>, Vec<_>) =
            followed.partition(|&local| is_fat(self.types, self.locals[local.0 as usize].ty));
        let numbers =
            others.into_iter().filter(|local| Integer::of(self.types, self.locals[local.0 as usize].ty).is_some());
        let numbers: Vec<_> = numbers.take(RELATED_LIMIT).collect();
        for &pointer in fat.iter().take(RELATED_LIMIT) {
            numbers.iter().for_each(|&number| self.relate(number, pointer));
        }
    }

    fn all_rounds(&mut self, statement: &mut Stmt) {
        self.relate_changed(statement);
        let before = self.facts.clone();
        let loops = self.loops;
        let head = self.settled(statement, before.clone());
        let is_innermost = loops == self.loops;
        if self.rehearsals == 0
            && is_innermost
            && head.is_some()
            && let Some(later) = self.later_rounds(statement, before.clone())
        {
            return self.in_two_parts(statement, before, later);
        }
        self.facts = match head {
            Some(head) => head,
            None => {
                self.facts = before;
                let changed = changed_in(statement);
                self.forget_all(&changed);
                self.facts.take()
            }
        };
        self.facts = self.round(statement).1;
    }

    /// What holds at the head of a loop that is entered with these facts; `None` if that is not found soon.
    fn settled(&mut self, statement: &mut Stmt, before: Option<Facts>) -> Option<Option<Facts>> {
        if self.rehearsals >= REHEARSAL_LIMIT || self.nesting > NESTING_LIMIT {
            return None;
        }
        let mut head = before;
        self.rehearsals += 1;
        let mut is_settled = false;
        for _ in 0..ROUNDS {
            self.facts = head.clone();
            let (back, _) = self.round(statement);
            is_settled = self.keep(&mut head, back.as_ref());
            if is_settled {
                break;
            }
        }
        self.rehearsals -= 1;
        is_settled.then_some(head)
    }

    /// What holds at the head of a loop when it comes back there.
    fn later_rounds(&mut self, statement: &mut Stmt, before: Option<Facts>) -> Option<Option<Facts>> {
        self.rehearsals += 1;
        self.facts = before;
        let (back, _) = self.round(statement);
        self.rehearsals -= 1;
        self.settled(statement, back)
    }

    fn in_two_parts(&mut self, statement: &mut Stmt, before: Option<Facts>, later: Option<Facts>) {
        self.facts = before;
        if later.is_none() {
            self.facts = self.round(statement).1;
            return;
        }
        self.part = Part::First(HashMap::default());
        let after_first = self.round(statement).1;
        self.part = match std::mem::replace(&mut self.part, Part::Whole) {
            Part::First(proofs) => Part::Later(proofs),
            other => other,
        };
        self.facts = later;
        self.facts = self.round(statement).1;
        self.part = Part::Whole;
        self.join(after_first);
    }

    /// Once through a loop: what holds when it comes back to its head, and what holds after it.
    fn round(&mut self, statement: &mut Stmt) -> (Option<Facts>, Option<Facts>) {
        self.breaks.push(None);
        self.continues.push(None);
        let (back, after) = match &mut statement.kind {
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
        self.facts = self.breaks.pop().flatten();
        self.join(after);
        (back, self.facts.take())
    }

    fn end_of_body(&mut self) {
        let continued = self.continues.last_mut().and_then(Option::take);
        self.join(continued);
    }
}

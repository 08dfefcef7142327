//! Makes a function that goes wrong shorter.

use super::syntax::{Element, Expr, Function, Int, Place, Stmt, Type};

/// So many shorter functions are tried at most.
const ATTEMPTS: u32 = 600;

/// The shortest function found, by leaving out one thing after another, of which the same is said.
pub fn shortest(mut function: Function, mut goes_wrong: impl FnMut(&Function) -> bool) -> Function {
    let mut attempts = 0;
    let mut at = 0;
    let mut without_success = 0;
    while attempts < ATTEMPTS {
        let Some(shorter) = shorter(&function, at) else {
            // Once around without success: nothing more can be left out.
            if at == 0 || without_success >= at {
                break;
            }
            at = 0;
            continue;
        };
        attempts += 1;
        if goes_wrong(&shorter) {
            function = shorter;
            without_success = 0;
        } else {
            at += 1;
            without_success += 1;
        }
    }
    function
}

/// The function with its thing of this number left out; `None` if it has not so many.
fn shorter(function: &Function, number: usize) -> Option<Function> {
    let mut shorter = function.clone();
    let mut body = std::mem::take(&mut shorter.body);
    let mut shrinker = Shrinker { function, left: number };
    let is_done = shrinker.statements(&mut body);
    let left = shrinker.left;
    shorter.body = body;
    is_done.then_some(shorter).or_else(|| with_shorter_helper(function, left))
}

/// The function with a thing left out of a helper.
fn with_shorter_helper(function: &Function, mut left: usize) -> Option<Function> {
    for at in 0..function.helpers.len() {
        let mut shorter = function.clone();
        let mut body = std::mem::take(&mut shorter.helpers[at].body);
        let mut shrinker = Shrinker { function: &function.helpers[at], left };
        let is_done = shrinker.statements(&mut body);
        left = shrinker.left;
        shorter.helpers[at].body = body;
        if is_done {
            return Some(shorter);
        }
    }
    None
}

struct Shrinker<'a> {
    function: &'a Function,
    /// How many things stay.
    left: usize,
}

impl Shrinker<'_> {
    /// Whether it is this thing's turn.
    fn is_next(&mut self) -> bool {
        let is_next = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        is_next
    }

    fn statements(&mut self, statements: &mut Vec<Stmt>) -> bool {
        for at in 0..statements.len() {
            if self.is_next() {
                statements.remove(at);
                return true;
            }
            for inner in inner_blocks(&statements[at]) {
                if self.is_next() {
                    statements.splice(at..=at, inner);
                    return true;
                }
            }
        }
        // The outer ones first.
        statements.iter_mut().any(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &mut Stmt) -> bool {
        match statement {
            Stmt::Declare(_, None) | Stmt::Repack(..) | Stmt::Break | Stmt::Continue | Stmt::Throw => false,
            Stmt::Declare(_, Some(value)) | Stmt::Let(_, value) | Stmt::Expr(value) | Stmt::Return(value) => {
                self.expr(value)
            }
            Stmt::Swap(left, right) => self.place(left) || self.place(right),
            Stmt::If(test, then, other) => {
                if other.is_some() && self.is_next() {
                    *other = None;
                    return true;
                }
                self.expr(test) || self.statements(then) || other.as_mut().is_some_and(|other| self.statements(other))
            }
            Stmt::While(test, body) | Stmt::DoWhile(body, test) => self.expr(test) || self.statements(body),
            Stmt::For { first, condition, step, body } => {
                for part in [&mut *condition, &mut *step] {
                    if part.is_some() && self.is_next() {
                        *part = None;
                        return true;
                    }
                    if part.as_mut().is_some_and(|part| self.expr(part)) {
                        return true;
                    }
                }
                first.as_mut().is_some_and(|first| self.statement(first)) || self.statements(body)
            }
            Stmt::Switch(value, clauses) => {
                if self.expr(value) {
                    return true;
                }
                for at in 0..clauses.len() {
                    if clauses[at].value.is_some() && self.is_next() {
                        clauses.remove(at);
                        return true;
                    }
                    if clauses[at].guard.is_some() && self.is_next() {
                        clauses[at].guard = None;
                        return true;
                    }
                    if self.statements(&mut clauses[at].body) {
                        return true;
                    }
                }
                false
            }
            Stmt::Try(body, _, handler) => self.statements(body) || self.statements(handler),
            Stmt::Block(body) | Stmt::Open { body, .. } | Stmt::Inside(_, body) => self.statements(body),
        }
    }

    fn place(&mut self, place: &mut Place) -> bool {
        match place {
            Place::Variable(_) | Place::Member(..) => false,
            Place::Index(pointer, index) => self.expr(pointer) || self.expr(index),
            Place::Deref(pointer) => self.expr(pointer),
        }
    }

    /// Puts a part of the expression in its place, or a number.
    fn expr(&mut self, expr: &mut Expr) -> bool {
        if matches!(expr, Expr::Number(..) | Expr::Null(_) | Expr::Place(Place::Variable(_))) {
            return false;
        }
        let ty = self.function.type_of(expr);
        let is_like = |other: Type| matches!((ty, other), (Type::Int(_), Type::Int(_))) || ty == other;
        for part in parts(expr) {
            if is_like(self.function.type_of(&part)) && self.is_next() {
                *expr = part;
                return true;
            }
        }
        if let Type::Int(_) = ty
            && self.is_next()
        {
            *expr = Expr::Number(0, Int::INT);
            return true;
        }
        match expr {
            Expr::Number(..) | Expr::Null(_) | Expr::Inside(_) => false,
            Expr::Place(place) => self.place(place),
            Expr::Step { place, .. } => self.place(place),
            Expr::Count(inner)
            | Expr::Unary(_, inner)
            | Expr::Cast(_, inner)
            | Expr::Alloc(_, inner)
            | Expr::Note(inner)
            | Expr::Change(inner, _) => self.expr(inner),
            Expr::Binary(_, left, right) | Expr::Comma(left, right) => self.expr(left) || self.expr(right),
            Expr::Conditional(parts) => parts.iter_mut().any(|part| self.expr(part)),
            Expr::Assign(_, place, value) => self.place(place) || self.expr(value),
            Expr::Build { count, value, .. } => self.expr(count) || self.expr(value),
            Expr::Call(_, arguments) => arguments.iter_mut().any(|argument| self.expr(argument)),
            Expr::Statements(statements, last) => self.statements(statements) || self.expr(last),
        }
    }
}

/// What a statement can be replaced by.
fn inner_blocks(statement: &Stmt) -> Vec<Vec<Stmt>> {
    match statement {
        Stmt::If(_, then, other) => [Some(then.clone()), other.clone()].into_iter().flatten().collect(),
        Stmt::While(_, body)
        | Stmt::DoWhile(body, _)
        | Stmt::Block(body)
        | Stmt::Open { body, .. }
        | Stmt::Try(body, ..) => vec![body.clone()],
        Stmt::For { first, body, .. } => {
            vec![first.iter().map(|first| (**first).clone()).chain(body.iter().cloned()).collect()]
        }
        Stmt::Switch(_, clauses) => clauses.iter().map(|clause| clause.body.clone()).collect(),
        _ => Vec::new(),
    }
}

/// Expressions that an expression is made of.
fn parts(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Unary(_, inner) | Expr::Cast(_, inner) | Expr::Note(inner) | Expr::Change(inner, _) => {
            vec![(**inner).clone()]
        }
        Expr::Binary(_, left, right) | Expr::Comma(left, right) => vec![(**left).clone(), (**right).clone()],
        Expr::Conditional(parts) => parts[1..].to_vec(),
        Expr::Assign(_, place, value) => vec![(**value).clone(), Expr::Place((**place).clone())],
        Expr::Step { place, .. } => vec![Expr::Place((**place).clone())],
        Expr::Statements(_, last) => vec![(**last).clone()],
        Expr::Build { pointer, count, .. } if !pointer.is_zeroterm && matches!(pointer.element, Element::Int(_)) => {
            vec![Expr::Alloc(*pointer, count.clone())]
        }
        _ => Vec::new(),
    }
}

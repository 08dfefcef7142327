//! Random loops over the elements of something: most go as loops do, others nearly so.

use super::scope::{Generator, Scope, number, variable};
use super::syntax::{Binary, Expr, Int, Place, Stmt, Storage, Type, VarId};

fn binary(operator: Binary, left: Expr, right: Expr) -> Expr {
    Expr::Binary(operator, Box::new(left), Box::new(right))
}

impl Generator<'_> {
    pub fn looped(&mut self, scope: &mut Scope, depth: u32) -> Stmt {
        let mut inner = Scope { is_in_loop: true, ..scope.clone() };
        if self.one_in(6)
            && let Some(pointer) = self.moving_variable(scope)
        {
            return self.along(&mut inner, pointer, depth);
        }
        let (pointer, old) = self.pair(scope);
        let is_new = !self.one_in(3);
        let index = match is_new {
            true => {
                let ty = self.int_type();
                self.add(Type::Int(ty), Storage::Local)
            }
            false if scope.changing.contains(&old) => old,
            false => self.changing_variable(scope),
        };
        inner.indices.push((pointer, index));
        let down = self.one_in(3);
        let first = self.first(scope, pointer, down);
        // Nobody but the loop changes it, mostly: then it ends.
        if is_new {
            inner.ints.insert(0, index);
            if self.one_in(3) {
                inner.changing.insert(0, index);
            }
        }
        let test = self.still(&inner, pointer, index, down);
        let step = self.step(scope, index, down);
        let test = match self.one_in(6) {
            true => binary(Binary::LogAnd, test, self.condition(&inner, 0)),
            false => test,
        };
        let declared = match is_new {
            true => Stmt::Declare(index, Some(first)),
            false => Stmt::Expr(Expr::Assign(None, Box::new(Place::Variable(index)), Box::new(first))),
        };
        let mut body = Vec::new();
        if self.random.bool() {
            body.push(Stmt::Expr(Expr::Note(Box::new(Expr::Place(self.access(&inner, 0))))));
        }
        body.extend((0..self.random.u32(1..4)).map(|_| self.statement(&mut inner, depth - 1)));
        if !is_new {
            scope.indices.push((pointer, index));
        }
        let has_first = is_new || !self.one_in(3);
        if self.random.u32(..10) < 6 {
            let first = has_first.then(|| Box::new(declared));
            return Stmt::For { first, condition: Some(test), step: Some(step), body };
        }
        let at = if self.one_in(4) { 0 } else { body.len() };
        body.insert(at, Stmt::Expr(step));
        let repeated = match self.random.u32(..4) {
            0 => Stmt::DoWhile(body, test),
            1 => Stmt::For { first: None, condition: Some(test), step: None, body },
            _ => Stmt::While(test, body),
        };
        match has_first {
            true => Stmt::Block(vec![declared, repeated]),
            false => repeated,
        }
    }

    fn first(&mut self, scope: &Scope, pointer: VarId, down: bool) -> Expr {
        let count = Expr::Count(Box::new(variable(pointer)));
        match self.random.u32(..8) {
            0 => variable(self.int_variable(scope)),
            1 => number(i128::from(self.random.i32(-1..3))),
            2 => count,
            _ if down => binary(Binary::Sub, Expr::Cast(Type::Int(Int::INT), Box::new(count)), number(1)),
            _ => number(0),
        }
    }

    /// The condition of a loop.
    fn still(&mut self, scope: &Scope, pointer: VarId, index: VarId, down: bool) -> Expr {
        if down && !self.one_in(6) {
            let zero = number(self.any(&[0, 0, 0, 1, -1]));
            let step =
                Expr::Step { place: Box::new(Place::Variable(index)), up: false, is_postfix: self.random.bool() };
            return match self.random.u32(..6) {
                0 => binary(Binary::Ne, variable(index), zero),
                1 => binary(Binary::Gt, step, zero),
                2 => binary(Binary::Gt, variable(index), zero),
                _ => binary(Binary::Ge, variable(index), zero),
            };
        }
        if self.one_in(8) {
            let end = number(i128::from(self.random.u32(1..7)));
            return binary(self.any(&[Binary::Lt, Binary::Le, Binary::Ne]), variable(index), end);
        }
        if self.one_in(8) {
            let next = Expr::Step { place: Box::new(Place::Variable(index)), up: true, is_postfix: self.random.bool() };
            return binary(Binary::Lt, next, Expr::Count(Box::new(variable(pointer))));
        }
        self.guard(scope, pointer, index)
    }

    fn step(&mut self, scope: &Scope, index: VarId, down: bool) -> Expr {
        let place = Box::new(Place::Variable(index));
        match self.random.u32(..10) {
            0 => {
                let by = number(i128::from(self.random.u32(2..4)));
                let operator = if down { Binary::Sub } else { Binary::Add };
                Expr::Assign(Some(operator), place, Box::new(by))
            }
            1 => Expr::Assign(Some(Binary::Add), place, Box::new(variable(self.int_variable(scope)))),
            2 => {
                let next = binary(if down { Binary::Sub } else { Binary::Add }, variable(index), number(1));
                Expr::Assign(None, place, Box::new(next))
            }
            3 if down => Expr::Assign(Some(Binary::Div), place, Box::new(number(2))),
            _ => Expr::Step { place, up: !down, is_postfix: self.random.bool() },
        }
    }

    /// A loop that moves a pointer over what it points to, as over a string, or that moves an index up to a zero.
    fn along(&mut self, scope: &mut Scope, pointer: VarId, depth: u32) -> Stmt {
        let place = Box::new(Place::Variable(pointer));
        let step = match self.random.u32(..5) {
            0 if self.is_fat(pointer) => Expr::Assign(Some(Binary::Add), place, Box::new(number(2))),
            _ => Expr::Step { place, up: true, is_postfix: self.random.bool() },
        };
        let index = self.changing_variable(scope);
        let is_indexed = self.one_in(3);
        let mut body = Vec::new();
        if is_indexed {
            scope.indices.push((pointer, index));
            body.push(Stmt::Expr(Expr::Note(Box::new(Expr::Place(self.access(scope, 0))))));
        }
        body.extend((0..self.random.u32(1..3)).map(|_| self.statement(scope, depth - 1)));
        let element = Expr::Place(Place::Deref(Box::new(variable(pointer))));
        if is_indexed {
            let test = Expr::Place(Place::Index(Box::new(variable(pointer)), Box::new(variable(index))));
            let place = Box::new(Place::Variable(index));
            let first = Stmt::Expr(Expr::Assign(None, place.clone(), Box::new(number(0))));
            let step = Expr::Step { place, up: true, is_postfix: true };
            return Stmt::For { first: Some(Box::new(first)), condition: Some(test), step: Some(step), body };
        }
        match self.random.u32(..5) {
            0 => Stmt::While(Expr::Place(Place::Deref(Box::new(step))), body),
            1 => {
                let left = Expr::Count(Box::new(variable(pointer)));
                body.push(Stmt::Expr(step));
                Stmt::While(binary(Binary::Gt, left, number(i128::from(self.random.u32(..2)))), body)
            }
            2 => Stmt::For { first: None, condition: Some(element), step: Some(step), body },
            _ => {
                body.push(Stmt::Expr(step));
                Stmt::While(element, body)
            }
        }
    }
}

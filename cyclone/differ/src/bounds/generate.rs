//! Random functions: what the compiler's proofs of bounds and null pointers may go wrong about.
//!
//! A test or a loop that says something of an index is followed, most often, by accesses with that index, and by assignments
//! that make what was said untrue. Inputs that show it are found by running the function ([`super::inputs`]), so that a
//! function need not go wrong often.

use super::scope::{Generator, Scope, number, variable};
use super::syntax::{
    Binary, Bound, Catch, Clause, Element, Expr, Function, INT_FAT, Int, Place, Pointer, Stmt, Storage, Type, VarId,
};
use fastrand::Rng;

/// A function of random statements.
pub fn function(random: &mut Rng) -> Function {
    let helpers = match random.u32(..2) {
        0 => Vec::new(),
        _ => (0..random.u32(1..3)).map(|_| helper(random)).collect(),
    };
    let function = Function { helpers, ..Function::default() };
    let mut generator = Generator { random, function, insides: 0 };
    let scope = generator.outer_scope();
    generator.finish(scope, 3..8, 3)
}

/// A helper of random statements.
fn helper(random: &mut Rng) -> Function {
    let mut generator = Generator { random, function: Function::default(), insides: 0 };
    let scope = generator.helper_scope();
    generator.finish(scope, 2..5, 2)
}

fn binary(operator: Binary, left: Expr, right: Expr) -> Expr {
    Expr::Binary(operator, Box::new(left), Box::new(right))
}

fn place(id: VarId) -> Box<Place> {
    Box::new(Place::Variable(id))
}

impl Generator<'_> {
    fn finish(mut self, mut scope: Scope, statements: std::ops::Range<u32>, depth: u32) -> Function {
        let mut body = Vec::new();
        for _ in 0..self.random.u32(statements) {
            body.push(self.statement(&mut scope, depth));
        }
        body.push(Stmt::Return(self.int(&scope, 2)));
        self.function.body = body;
        self.function
    }

    pub fn statement(&mut self, scope: &mut Scope, depth: u32) -> Stmt {
        match self.random.u32(..if depth == 0 { 26 } else { 54 }) {
            0 => self.int_declaration(scope),
            1 => self.count_declaration(scope),
            2 => self.pointer_declaration(scope),
            3 if depth > 1 => self.other_declaration(scope),
            3..7 => Stmt::Expr(self.effect(scope, 1)),
            7..10 => self.pointer_change(scope),
            10..16 => Stmt::Expr(Expr::Note(Box::new(Expr::Place(self.access(scope, 1))))),
            16..19 => {
                let (place, value) = (self.access(scope, 1), self.int(scope, 1));
                Stmt::Expr(Expr::Assign(None, Box::new(place), Box::new(value)))
            }
            19 | 20 => {
                let (target, place) = (self.changing_variable(scope), self.access(scope, 1));
                Stmt::Expr(Expr::Assign(None, super::generate::place(target), Box::new(Expr::Place(place))))
            }
            21 => Stmt::Expr(self.change(scope, 1)),
            22..24 => self.leaving(scope),
            24 => Stmt::Expr(Expr::Note(Box::new(self.int(scope, 2)))),
            25 => match scope.inside.is_empty() {
                true => Stmt::Expr(Expr::Note(Box::new(Expr::Place(self.access(scope, 1))))),
                false => Stmt::Expr(Expr::Inside(self.any(&scope.inside))),
            },
            26..36 => self.branch(scope, depth),
            36..42 => self.looped(scope, depth),
            42 => self.switch(scope, depth),
            43..46 => self.attempt(scope, depth),
            46 => Stmt::Block(self.body(&mut scope.clone(), depth)),
            47 => self.inside(scope, depth),
            48..51 => self.open(scope, depth),
            _ => match self.call(scope, 1) {
                Some(call) => Stmt::Expr(Expr::Note(Box::new(call))),
                None => self.branch(scope, depth),
            },
        }
    }

    fn body(&mut self, scope: &mut Scope, depth: u32) -> Vec<Stmt> {
        (0..self.random.u32(1..4)).map(|_| self.statement(scope, depth - 1)).collect()
    }

    fn declared_int(&mut self, scope: &mut Scope, ty: Int) -> VarId {
        let id = self.add(Type::Int(ty), Storage::Local);
        scope.ints.insert(0, id);
        scope.changing.insert(0, id);
        id
    }

    fn int_declaration(&mut self, scope: &mut Scope) -> Stmt {
        let value = self.int(scope, 2);
        if self.one_in(5) {
            let Type::Int(ty) = self.function.type_of(&value) else { return Stmt::Expr(value) };
            return Stmt::Let(self.declared_int(scope, ty), value);
        }
        let ty = self.int_type();
        Stmt::Declare(self.declared_int(scope, ty), Some(value))
    }

    /// `int n = numelts(p);`
    fn count_declaration(&mut self, scope: &mut Scope) -> Stmt {
        let pointer = self.pointer_variable(scope);
        let mut value = Expr::Count(Box::new(variable(pointer)));
        if self.one_in(5) {
            value = binary(self.any(&[Binary::Sub, Binary::Add]), value, number(1));
        }
        let ty = self.int_type();
        let id = self.declared_int(scope, ty);
        scope.counts.push((pointer, id));
        Stmt::Declare(id, Some(value))
    }

    fn pointer_declaration(&mut self, scope: &mut Scope) -> Stmt {
        let like = self.pointer_variable(scope);
        let mut ty = Pointer { bound: Bound::Fat, is_nullable: true, ..self.ty(like).pointer() };
        if self.one_in(4) {
            ty = Pointer { bound: Bound::Thin(self.any(&[1, 1, 2, 3])), is_nullable: !self.one_in(4), ..ty };
        }
        let value = self.pointer(scope, ty, 1);
        let id = self.add(Type::Pointer(ty), Storage::Local);
        scope.pointers.insert(0, id);
        // A number that it was allocated with is that of its elements.
        if let Expr::Alloc(_, count) | Expr::Build { count, .. } = &value
            && let Expr::Place(Place::Variable(count)) = **count
        {
            scope.counts.push((id, count));
        }
        Stmt::Declare(id, Some(value))
    }

    /// An array, a structure, or a second way to a variable.
    fn other_declaration(&mut self, scope: &mut Scope) -> Stmt {
        match self.random.u32(..5) {
            0 | 1 => {
                let element = Element::Int(self.any(&[Int::INT, Int::SIGNED_CHAR, Int::LONG]));
                let ty = Type::Array(element, self.random.u64(1..7), self.one_in(3));
                let id = self.add(ty, Storage::Local);
                scope.pointers.insert(0, id);
                Stmt::Declare(id, None)
            }
            2 => {
                let id = self.add(Type::Record(true), Storage::Local);
                scope.records.push(id);
                Stmt::Declare(id, None)
            }
            3 => {
                let target = self.changing_variable(scope);
                self.reference(scope, target)
            }
            _ => {
                let target = self.pointer_variable(scope);
                self.reference(scope, target)
            }
        }
    }

    fn reference(&mut self, scope: &mut Scope, target: VarId) -> Stmt {
        let ty = self.ty(target);
        if !matches!(self.function.variables[target.0].storage, Storage::Local | Storage::Parameter)
            || matches!(ty, Type::Array(..) | Type::Pointer(Pointer { bound: Bound::Tag(_), .. }))
        {
            return self.int_declaration(scope);
        }
        let id = self.add(ty, Storage::Reference(target));
        if let Type::Int(_) = ty {
            scope.ints.push(id);
            scope.changing.push(id);
        } else {
            scope.pointers.push(id);
        }
        Stmt::Declare(id, None)
    }

    /// An assignment, a step or a swap of a pointer.
    fn pointer_change(&mut self, scope: &mut Scope) -> Stmt {
        if !scope.records.is_empty() && self.one_in(5) {
            let record = self.any(&scope.records);
            let field = self.any(&[super::syntax::Field::Fat, super::syntax::Field::Thin]);
            let value = self.pointer(scope, field.ty().pointer(), 0);
            return Stmt::Expr(Expr::Assign(None, Box::new(Place::Member(record, field)), Box::new(value)));
        }
        let id = self.pointer_variable(scope);
        let Type::Pointer(ty) = self.ty(id) else { return Stmt::Expr(self.effect(scope, 1)) };
        if matches!(ty.bound, Bound::Tag(_)) {
            return Stmt::Expr(self.effect(scope, 1));
        }
        if ty.is_thin_text() && ty.can_step() && !self.one_in(3) {
            return Stmt::Expr(Expr::Step { place: place(id), up: true, is_postfix: self.random.bool() });
        }
        if ty.bound == Bound::Fat {
            match self.random.u32(..8) {
                0 | 1 => {
                    let by = number(i128::from(self.random.i32(1..4)));
                    let operator = if self.one_in(5) { Binary::Sub } else { Binary::Add };
                    return Stmt::Expr(Expr::Assign(Some(operator), place(id), Box::new(by)));
                }
                2 | 3 => {
                    let (up, is_postfix) = (!self.one_in(4), self.random.bool());
                    return Stmt::Expr(Expr::Step { place: place(id), up, is_postfix });
                }
                4 => {
                    let by = variable(self.int_variable(scope));
                    return Stmt::Expr(Expr::Assign(Some(Binary::Add), place(id), Box::new(by)));
                }
                5 => {
                    let alike = scope.pointers.iter().copied().filter(|&other| self.ty(other) == self.ty(id));
                    let alike: Vec<VarId> = alike.collect();
                    return Stmt::Swap(Place::Variable(id), Place::Variable(self.any(&alike)));
                }
                _ => {}
            }
        }
        let value = self.pointer(scope, ty, 1);
        if let Expr::Alloc(_, count) | Expr::Build { count, .. } = &value
            && let Expr::Place(Place::Variable(count)) = **count
        {
            scope.counts.push((id, count));
        }
        Stmt::Expr(Expr::Assign(None, place(id), Box::new(value)))
    }

    /// `break`, `continue`, `return` or `throw`, where that is possible, mostly if something does not hold.
    fn leaving(&mut self, scope: &mut Scope) -> Stmt {
        let leave = match self.random.u32(..6) {
            0 | 1 if scope.is_in_loop => Stmt::Break,
            2 | 3 if scope.is_in_loop => Stmt::Continue,
            0..5 if scope.can_return => Stmt::Return(self.int(scope, 1)),
            _ => Stmt::Throw,
        };
        let (pointer, index) = self.pair(scope);
        let guard = self.guard(scope, pointer, index);
        scope.indices.push((pointer, index));
        match self.random.u32(..4) {
            0 => Stmt::If(self.condition(scope, 1), vec![leave], None),
            1 => Stmt::If(guard, Vec::new(), Some(vec![leave])),
            _ => Stmt::If(Expr::Unary(super::syntax::Unary::Not, Box::new(guard)), vec![leave], None),
        }
    }

    fn branch(&mut self, scope: &mut Scope, depth: u32) -> Stmt {
        let mut inner = scope.clone();
        let test = match self.one_in(4) {
            true => self.condition(scope, 2),
            false => {
                let (pointer, index) = self.pair(scope);
                inner.indices.push((pointer, index));
                let guard = self.guard(scope, pointer, index);
                match self.one_in(4) {
                    true => binary(Binary::LogAnd, guard, self.condition(&inner, 1)),
                    false => guard,
                }
            }
        };
        let then = self.body(&mut inner.clone(), depth);
        let other = self.one_in(3).then(|| self.body(&mut inner.clone(), depth));
        // What a branch compared is used after it as well: it may not hold there.
        if self.random.bool() {
            scope.indices.extend(inner.indices.get(scope.indices.len()));
        }
        Stmt::If(test, then, other)
    }

    fn switch(&mut self, scope: &mut Scope, depth: u32) -> Stmt {
        let value = self.int(scope, 1);
        let value = match self.random.bool() {
            true => value,
            false => binary(Binary::And, value, number(3)),
        };
        let value = Expr::Cast(Type::Int(Int::INT), Box::new(value));
        let mut clauses = Vec::new();
        for case in 0..self.random.u32(1..4) {
            let guard = self.one_in(4).then(|| self.condition(scope, 0));
            clauses.push((Some(i128::from(case)), guard));
        }
        clauses.push((None, None));
        let last = clauses.len() - 1;
        let make = |(at, (value, guard))| {
            let body = self.body(&mut scope.clone(), depth);
            Clause { value, guard, body, falls_through: at != last && self.one_in(4) }
        };
        let clauses = clauses.into_iter().enumerate().map(make).collect();
        Stmt::Switch(value, clauses)
    }

    /// A `try`, which what it does last is likely to end; the handler looks at what has been changed.
    fn attempt(&mut self, scope: &mut Scope, depth: u32) -> Stmt {
        let mut inner = scope.clone();
        let mut body = self.body(&mut inner, depth);
        body.push(match self.random.bool() {
            true => Stmt::Throw,
            false => Stmt::Expr(Expr::Note(Box::new(Expr::Place(self.access(&inner, 0))))),
        });
        let catch = self.any(&[Catch::Bounds, Catch::Null, Catch::Any, Catch::Any]);
        let mut handler = Vec::new();
        if !self.one_in(3) {
            handler.push(Stmt::Expr(Expr::Note(Box::new(Expr::Place(self.access(scope, 0))))));
        }
        handler.extend(self.body(&mut scope.clone(), depth));
        Stmt::Try(body, catch, handler)
    }

    /// A package is opened; or gets another number of elements, whatever has been opened.
    fn open(&mut self, scope: &mut Scope, depth: u32) -> Stmt {
        if scope.rows.is_empty() {
            return self.branch(scope, depth);
        }
        let row = self.any(&scope.rows);
        if self.one_in(4) {
            return Stmt::Repack(row, self.any(&scope.rows));
        }
        let tag = self.add(Type::Int(Int::UNSIGNED_LONG), Storage::Tag);
        let ty = Pointer { bound: Bound::Tag(tag), ..INT_FAT };
        let pointer = self.add(Type::Pointer(ty), Storage::Local);
        let mut inner = scope.clone();
        inner.ints.insert(0, tag);
        inner.pointers.insert(0, pointer);
        inner.counts.push((pointer, tag));
        Stmt::Open { row, tag, pointer, body: self.body(&mut inner, depth) }
    }

    /// A function inside the function, which changes its variables.
    fn inside(&mut self, scope: &mut Scope, depth: u32) -> Stmt {
        let number = self.insides;
        self.insides += 1;
        let mut inner = Scope { is_in_loop: false, can_return: false, ..scope.clone() };
        // A bound by a tag of the function around cannot be compiled yet.
        inner.pointers.retain(|&id| !matches!(self.ty(id), Type::Pointer(Pointer { bound: Bound::Tag(_), .. })));
        inner.indices.retain(|(pointer, _)| inner.pointers.contains(pointer));
        let body = self.body(&mut inner, depth.min(2));
        scope.inside.push(number);
        Stmt::Inside(number, body)
    }
}

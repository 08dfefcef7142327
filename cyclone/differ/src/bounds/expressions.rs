//! Random expressions: indices, conditions, places, pointers.

use super::scope::{Generator, Scope, number, variable};
use super::syntax::{Binary, Bound, Expr, Field, Int, Place, Pointer, Storage, Type, Unary, VarId};

const COMPARISONS: [Binary; 6] = [Binary::Lt, Binary::Le, Binary::Gt, Binary::Ge, Binary::Eq, Binary::Ne];

fn binary(operator: Binary, left: Expr, right: Expr) -> Expr {
    Expr::Binary(operator, Box::new(left), Box::new(right))
}

fn cast(int: Int, inner: Expr) -> Expr {
    Expr::Cast(Type::Int(int), Box::new(inner))
}

impl Generator<'_> {
    fn small(&mut self) -> Expr {
        let value = i128::from(self.random.i32(-1..6));
        let int = self.any(&[Int::INT, Int::INT, Int::INT, Int::UNSIGNED, Int::UNSIGNED_LONG, Int::LONG]);
        Expr::Number(value.max(int.least()), int)
    }

    fn atom(&mut self, scope: &Scope) -> Expr {
        match self.random.u32(..10) {
            0 | 1 => self.small(),
            2 => {
                let pointer = self.pointer_variable(scope);
                self.count_of(scope, pointer)
            }
            3 => Expr::Place(self.int_place(scope)),
            _ => variable(self.int_variable(scope)),
        }
    }

    /// An integer.
    pub fn int(&mut self, scope: &Scope, depth: u32) -> Expr {
        if depth == 0 {
            return self.atom(scope);
        }
        let next = depth - 1;
        match self.random.u32(..30) {
            0..8 => self.atom(scope),
            8..12 => {
                let operator = self.any(&[Binary::Add, Binary::Sub]);
                let (left, right) = (self.atom(scope), self.int(scope, next));
                binary(operator, left, right)
            }
            12 | 13 => {
                let operator = self.any(&[Binary::Mul, Binary::And, Binary::Or, Binary::Xor]);
                let (left, right) = (self.int(scope, next), self.int(scope, next));
                binary(operator, left, right)
            }
            14 => {
                let operator = self.any(&[Binary::Div, Binary::Rem]);
                let divisor =
                    Expr::Number(i128::from(self.random.u32(1..6)), self.any(&[Int::INT, Int::UNSIGNED_LONG]));
                binary(operator, self.int(scope, next), divisor)
            }
            15 => {
                let operator = self.any(&[Binary::Shl, Binary::Shr]);
                let by = number(i128::from(self.random.u32(..5)));
                binary(operator, self.int(scope, next), by)
            }
            16 => cast(self.int_type(), self.int(scope, next)),
            17 => {
                let operator = self.any(&[Unary::Negate, Unary::Complement, Unary::Not]);
                Expr::Unary(operator, Box::new(self.int(scope, next)))
            }
            18 => {
                let parts = [self.condition(scope, next), self.int(scope, next), self.int(scope, next)];
                Expr::Conditional(Box::new(parts))
            }
            19 => Expr::Note(Box::new(self.int(scope, next))),
            20..23 => Expr::Place(self.access(scope, next)),
            23 => self.change(scope, next),
            24 => Expr::Comma(Box::new(self.effect(scope, next)), Box::new(self.int(scope, next))),
            25 if !scope.inside.is_empty() => Expr::Inside(self.any(&scope.inside)),
            26 if self.one_in(3) => {
                let mut inner = Scope { is_in_loop: false, can_return: false, ..scope.clone() };
                let statement = self.statement(&mut inner, 0);
                Expr::Statements(vec![statement], Box::new(self.int(&inner, next)))
            }
            27 => {
                let (left, right) = (self.atom(scope), self.atom(scope));
                binary(self.any(&COMPARISONS), left, right)
            }
            28 => self.call(scope, next).unwrap_or_else(|| self.atom(scope)),
            _ => self.effect(scope, next),
        }
    }

    /// A call of a helper, most often with a pointer and an index of it.
    pub fn call(&mut self, scope: &Scope, depth: u32) -> Option<Expr> {
        let count = self.function.helpers.len();
        let number = if count == 0 { return None } else { self.random.usize(..count) };
        let helper = &self.function.helpers[number];
        let types: Vec<Type> = helper.parameters.iter().map(|id| helper.type_of_variable(*id)).collect();
        let (pointer, index) = self.pair(scope);
        let argument = |ty: Type| match ty {
            Type::Pointer(_) if self.ty(pointer) == ty && !self.one_in(4) => variable(pointer),
            Type::Pointer(parts) => self.pointer(scope, parts, 0),
            _ => match self.random.u32(..4) {
                0 => self.int(scope, depth.min(1)),
                1 => self.count_of(scope, pointer),
                _ => variable(index),
            },
        };
        let arguments = types.into_iter().map(argument).collect();
        Some(Expr::Call(number, arguments))
    }

    pub fn change(&mut self, scope: &Scope, depth: u32) -> Expr {
        match scope.records.is_empty() {
            true => Expr::Note(Box::new(self.int(scope, depth))),
            false => Expr::Change(Box::new(self.int(scope, depth)), self.any(&scope.records)),
        }
    }

    /// An assignment or a step of an integer.
    pub fn effect(&mut self, scope: &Scope, depth: u32) -> Expr {
        let place = match self.one_in(6) {
            true => self.access(scope, depth),
            false => self.int_place(scope),
        };
        let place = Box::new(place);
        match self.random.u32(..5) {
            0 | 1 => Expr::Step { place, up: self.random.bool(), is_postfix: self.random.bool() },
            2 => {
                let operator =
                    self.any(&[Binary::Add, Binary::Add, Binary::Sub, Binary::Mul, Binary::And, Binary::Xor]);
                Expr::Assign(Some(operator), place, Box::new(self.int(scope, depth)))
            }
            3 => {
                let operator = self.any(&[Binary::Shr, Binary::Div, Binary::Rem]);
                let by = number(i128::from(self.random.u32(1..4)));
                Expr::Assign(Some(operator), place, Box::new(by))
            }
            _ => Expr::Assign(None, place, Box::new(self.int(scope, depth))),
        }
    }

    /// What a pointer's number of elements is, or was.
    fn count_of(&mut self, scope: &Scope, pointer: VarId) -> Expr {
        let known: Vec<VarId> = scope.counts.iter().filter(|(of, _)| *of == pointer).map(|(_, count)| *count).collect();
        if !known.is_empty() && !self.one_in(3) {
            return variable(self.any(&known));
        }
        let count = match self.ty(pointer).pointer().bound {
            Bound::Thin(count) => number(i128::from(count)),
            Bound::Tag(tag) => variable(tag),
            Bound::Fat => Expr::Count(Box::new(variable(pointer))),
        };
        match self.random.u32(..4) {
            0 => cast(Int::INT, count),
            1 => cast(Int::UNSIGNED, count),
            _ => count,
        }
    }

    /// A pointer and an integer that is likely to be one of its indices.
    pub fn pair(&mut self, scope: &Scope) -> (VarId, VarId) {
        if !scope.indices.is_empty() && !self.one_in(4) {
            let recent = scope.indices.len().min(3);
            return self.any(&scope.indices[scope.indices.len() - recent..]);
        }
        (self.pointer_variable(scope), self.int_variable(scope))
    }

    fn index(&mut self, scope: &Scope, pointer: VarId, index: VarId, depth: u32) -> Expr {
        let one = self.random.u32(1..4).min(self.random.u32(1..4));
        let near = Expr::Number(i128::from(one), self.any(&[Int::INT, Int::INT, Int::UNSIGNED]));
        let plain = variable(index);
        match self.random.u32(..24) {
            0..9 => plain,
            9 | 10 => binary(Binary::Sub, plain, near),
            11 | 12 => binary(Binary::Add, plain, near),
            13 => {
                let operator = self.any(&[Binary::Div, Binary::Rem, Binary::Shr]);
                binary(operator, plain, near)
            }
            14 => binary(Binary::And, plain, number(self.any(&[1, 3, 7]))),
            15 => {
                let count = self.count_of(scope, pointer);
                let left = binary(Binary::Sub, count, near);
                if self.random.bool() { left } else { binary(Binary::Sub, left, plain) }
            }
            16 => {
                let other = variable(self.int_variable(scope));
                binary(self.any(&[Binary::Add, Binary::Sub]), plain, other)
            }
            17 => cast(self.int_type(), plain),
            18 if matches!(self.function.variables[index.0].storage, Storage::Local | Storage::Parameter) => {
                let place = Box::new(Place::Variable(index));
                Expr::Step { place, up: self.random.bool(), is_postfix: self.random.bool() }
            }
            19 => {
                let (test, other) = (self.condition(scope, 0), self.atom(scope));
                Expr::Conditional(Box::new([test, plain, other]))
            }
            20 if depth > 0 => self.int(scope, depth - 1),
            21 => {
                let count = self.count_of(scope, pointer);
                binary(Binary::Rem, plain, count)
            }
            _ => match self.ty(pointer) {
                Type::Array(_, count, _) => number(i128::from(self.random.u64(..count))),
                Type::Pointer(Pointer { bound: Bound::Thin(count), .. }) => {
                    number(i128::from(self.random.u64(..count)))
                }
                _ => number(i128::from(self.random.u32(..4))),
            },
        }
    }

    /// An element.
    pub fn access(&mut self, scope: &Scope, depth: u32) -> Place {
        if !scope.records.is_empty() && self.one_in(10) {
            let record = self.any(&scope.records);
            let (pointer, index) = match self.random.bool() {
                true => (Place::Member(record, Field::Thin), number(0)),
                false => (Place::Member(record, Field::Fat), variable(self.int_variable(scope))),
            };
            return Place::Index(Box::new(Expr::Place(pointer)), Box::new(index));
        }
        let (pointer, index) = self.pair(scope);
        let base = variable(pointer);
        if self.ty(pointer).pointer().is_thin_text() {
            return match self.random.u32(..6) {
                0 => Place::Deref(Box::new(base)),
                1 if self.can_step(pointer) => {
                    let place = Box::new(Place::Variable(pointer));
                    Place::Deref(Box::new(Expr::Step { place, up: true, is_postfix: self.random.bool() }))
                }
                2 => {
                    let index = self.index(scope, pointer, index, depth);
                    Place::Deref(Box::new(binary(Binary::Add, base, index)))
                }
                _ => Place::Index(Box::new(base), Box::new(self.index(scope, pointer, index, depth))),
            };
        }
        if !self.is_fat(pointer) {
            let is_one = matches!(self.ty(pointer), Type::Pointer(Pointer { bound: Bound::Thin(1), .. }));
            return match is_one && !self.one_in(3) {
                true => Place::Deref(Box::new(base)),
                false => Place::Index(Box::new(base), Box::new(self.index(scope, pointer, index, depth))),
            };
        }
        match self.random.u32(..14) {
            0 | 1 => Place::Deref(Box::new(base)),
            2 => {
                let place = Box::new(Place::Variable(pointer));
                let up = !self.one_in(3);
                Place::Deref(Box::new(Expr::Step { place, up, is_postfix: self.random.bool() }))
            }
            3 => {
                let index = self.index(scope, pointer, index, depth);
                Place::Deref(Box::new(binary(Binary::Add, base, index)))
            }
            4 => {
                let index = self.index(scope, pointer, index, depth);
                Place::Index(Box::new(binary(Binary::Sub, base, number(1))), Box::new(index))
            }
            _ => Place::Index(Box::new(base), Box::new(self.index(scope, pointer, index, depth))),
        }
    }

    /// A condition, most often one that says something of an index.
    pub fn condition(&mut self, scope: &Scope, depth: u32) -> Expr {
        if depth > 0 {
            match self.random.u32(..10) {
                0 | 1 => {
                    let operator = self.any(&[Binary::LogAnd, Binary::LogAnd, Binary::LogOr]);
                    let (left, right) = (self.condition(scope, depth - 1), self.condition(scope, depth - 1));
                    return binary(operator, left, right);
                }
                2 => return Expr::Unary(Unary::Not, Box::new(self.condition(scope, depth - 1))),
                _ => {}
            }
        }
        match self.random.u32(..12) {
            0 | 1 => self.null_test(scope),
            2 => {
                let (left, right) = (self.int(scope, depth.min(1)), self.atom(scope));
                binary(self.any(&COMPARISONS), left, right)
            }
            3 => Expr::Place(self.access(scope, 0)),
            4 => variable(self.int_variable(scope)),
            _ => {
                let (pointer, index) = self.pair(scope);
                self.guard(scope, pointer, index)
            }
        }
    }

    fn null_test(&mut self, scope: &Scope) -> Expr {
        let pointer = match scope.records.is_empty() || self.random.bool() {
            true => variable(self.pointer_variable(scope)),
            false => {
                let record = self.any(&scope.records);
                match self.random.u32(..3) {
                    0 if self.ty(record) == Type::Record(false) => variable(record),
                    _ => Expr::Place(Place::Member(record, self.any(&[Field::Fat, Field::Thin]))),
                }
            }
        };
        if let Type::Array(..) = self.function.type_of(&pointer) {
            return variable(self.int_variable(scope));
        }
        let null = Expr::Null(super::syntax::INT_THIN);
        match self.random.u32(..4) {
            0 => pointer,
            1 => Expr::Unary(Unary::Not, Box::new(pointer)),
            2 => binary(Binary::Eq, pointer, null),
            _ => binary(Binary::Ne, pointer, null),
        }
    }

    /// A test which tells something of an index.
    pub fn guard(&mut self, scope: &Scope, pointer: VarId, index: VarId) -> Expr {
        if self.one_in(7) {
            return binary(Binary::LogAnd, self.guard(scope, pointer, index), self.guard(scope, pointer, index));
        }
        let (count, plain) = (self.count_of(scope, pointer), variable(index));
        let near = number(i128::from(self.random.u32(1..3)));
        let test = match self.random.u32(..13) {
            0..4 => binary(Binary::Lt, plain, count),
            4 => binary(Binary::Le, plain, binary(Binary::Sub, count, near)),
            5 => binary(Binary::Lt, binary(Binary::Add, plain, near), count),
            6 => binary(Binary::Gt, count, plain),
            7 => {
                let int = self.any(&[Int::UNSIGNED, Int::UNSIGNED_LONG]);
                let limit = if self.one_in(3) { variable(self.int_variable(scope)) } else { count };
                binary(Binary::Lt, cast(int, plain), limit)
            }
            8 => binary(Binary::Ne, plain, count),
            9 => binary(Binary::Gt, count, near),
            10 => binary(self.any(&[Binary::Ge, Binary::Gt]), plain, number(self.any(&[0, -1, 1]))),
            11 => binary(self.any(&COMPARISONS), plain, count),
            _ => binary(self.any(&[Binary::Lt, Binary::Le]), plain, variable(self.int_variable(scope))),
        };
        match self.one_in(3) {
            true => binary(Binary::LogAnd, binary(Binary::Ge, variable(index), number(0)), test),
            false => test,
        }
    }

    /// A pointer value of the type.
    pub fn pointer(&mut self, scope: &Scope, ty: Pointer, depth: u32) -> Expr {
        let is_like = |other: Pointer| other.element == ty.element && other.is_zeroterm == ty.is_zeroterm;
        let is_of_block = |generator: &Self, id: VarId| {
            matches!(generator.ty(id), Type::Array(..)) && generator.function.variables[id.0].storage == Storage::Local
        };
        // As many elements as the new one's type promises.
        let is_enough = |other: Pointer| match (other.bound, ty.bound) {
            (Bound::Thin(count), Bound::Thin(needed)) => count >= needed,
            (Bound::Tag(_), bound) => bound == Bound::Fat,
            _ => true,
        };
        let like = scope.pointers.iter().copied().filter(|&id| {
            let other = self.ty(id).pointer();
            is_like(other) && is_enough(other) && !is_of_block(self, id)
        });
        let like: Vec<VarId> = like.collect();
        let chosen = (!like.is_empty()).then(|| self.any(&like));
        if ty.bound != Bound::Fat {
            return match chosen {
                Some(id) if self.ty(id) == Type::Pointer(ty) && !self.one_in(3) => variable(id),
                _ if ty.is_nullable && self.one_in(3) => Expr::Null(ty),
                Some(id) => Expr::Cast(Type::Pointer(ty), Box::new(variable(id))),
                None if ty.is_nullable => Expr::Null(ty),
                None => {
                    let fat = Pointer { bound: Bound::Fat, is_nullable: true, ..ty };
                    Expr::Cast(Type::Pointer(ty), Box::new(self.made(scope, fat, 0)))
                }
            };
        }
        match (self.random.u32(..9), chosen) {
            (0, _) => Expr::Null(ty),
            (1..4, Some(id)) => {
                let by = match self.random.u32(..3) {
                    0 => variable(self.int_variable(scope)),
                    _ => number(i128::from(self.random.i32(-1..4))),
                };
                let operator = if self.one_in(5) { Binary::Sub } else { Binary::Add };
                let fat = match self.is_fat(id) {
                    true => variable(id),
                    false => Expr::Cast(Type::Pointer(ty), Box::new(variable(id))),
                };
                binary(operator, fat, by)
            }
            (4..7, Some(id)) if self.ty(id) == Type::Pointer(ty) => variable(id),
            (4..7, Some(id)) => Expr::Cast(Type::Pointer(ty), Box::new(variable(id))),
            _ => self.made(scope, ty, depth),
        }
    }

    /// A new object.
    fn made(&mut self, scope: &Scope, pointer: Pointer, depth: u32) -> Expr {
        let count = match self.random.u32(..4) {
            0 => number(i128::from(self.random.u32(..6))),
            1 => self.int(scope, depth.min(1)),
            2 => {
                let add = number(i128::from(self.random.i32(-1..3)));
                binary(Binary::Add, variable(self.int_variable(scope)), add)
            }
            _ => variable(self.int_variable(scope)),
        };
        let count = Box::new(count);
        if !pointer.is_zeroterm && self.random.bool() {
            return Expr::Alloc(pointer, count);
        }
        let index = self.add(Type::Int(Int::UNSIGNED_LONG), Storage::Local);
        let mut inner = Scope { is_in_loop: false, can_return: false, ..scope.clone() };
        inner.ints.insert(0, index);
        let value = match self.random.u32(..3) {
            0 => variable(index),
            1 => self.int(&inner, depth),
            _ => Expr::Place(self.access(&inner, 0)),
        };
        Expr::Build { pointer, index, count, value: Box::new(value) }
    }
}

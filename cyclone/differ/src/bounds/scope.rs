//! What a random statement can use, and what it had better use: variables that have something to do with each other.

use super::syntax::{
    Bound, Element, Expr, Field, Function, INT_FAT, INT_THIN, Int, Place, Pointer, Storage, Type, VarId, Variable,
};
use fastrand::Rng;

#[derive(Clone, Default)]
pub struct Scope {
    /// Integers, those first that are used most.
    pub ints: Vec<VarId>,
    /// Those of them that may be assigned.
    pub changing: Vec<VarId>,
    /// Pointers and arrays.
    pub pointers: Vec<VarId>,
    pub records: Vec<VarId>,
    pub rows: Vec<VarId>,
    /// An index that has been compared with the number of elements of a pointer, or runs over them.
    pub indices: Vec<(VarId, VarId)>,
    /// A variable that was the number of elements of a pointer.
    pub counts: Vec<(VarId, VarId)>,
    /// Functions inside the function.
    pub inside: Vec<usize>,
    /// There is a loop to break off, and nothing between that could not be left.
    pub is_in_loop: bool,
    /// The function can return from here.
    pub can_return: bool,
}

/// Makes a random function.
pub struct Generator<'r> {
    pub random: &'r mut Rng,
    pub function: Function,
    pub insides: usize,
}

pub fn variable(id: VarId) -> Expr {
    Expr::Place(Place::Variable(id))
}

pub fn number(number: i128) -> Expr {
    Expr::Number(number, Int::INT)
}

impl Generator<'_> {
    /// Once in so many times.
    pub fn one_in(&mut self, times: u32) -> bool {
        self.random.u32(..times) == 0
    }

    pub fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(..of.len())]
    }

    /// The first ones more often.
    fn early<T: Copy>(&mut self, of: &[T]) -> T {
        let most = self.random.usize(1..=of.len());
        of[self.random.usize(..most)]
    }

    pub fn add(&mut self, ty: Type, storage: Storage) -> VarId {
        self.function.variables.push(Variable { ty, storage });
        VarId(self.function.variables.len() - 1)
    }

    pub fn ty(&self, id: VarId) -> Type {
        self.function.type_of_variable(id)
    }

    pub fn int_variable(&mut self, scope: &Scope) -> VarId {
        self.early(&scope.ints)
    }

    pub fn changing_variable(&mut self, scope: &Scope) -> VarId {
        self.early(&scope.changing)
    }

    pub fn pointer_variable(&mut self, scope: &Scope) -> VarId {
        self.early(&scope.pointers)
    }

    /// A variable of a pointer that can be moved on, if there is one.
    pub fn moving_variable(&mut self, scope: &Scope) -> Option<VarId> {
        let moving = scope.pointers.iter().copied().filter(|&id| self.can_step(id));
        let moving: Vec<VarId> = moving.collect();
        (!moving.is_empty()).then(|| self.early(&moving))
    }

    pub fn can_step(&self, id: VarId) -> bool {
        matches!(self.ty(id), Type::Pointer(pointer) if pointer.can_step())
    }

    pub fn is_fat(&self, id: VarId) -> bool {
        matches!(self.ty(id), Type::Pointer(Pointer { bound: Bound::Fat, .. }))
    }

    pub fn int_type(&mut self) -> Int {
        self.any(&[
            Int::INT,
            Int::INT,
            Int::INT,
            Int::INT,
            Int::UNSIGNED,
            Int::UNSIGNED,
            Int::LONG,
            Int::UNSIGNED_LONG,
            Int::UNSIGNED_LONG,
            Int::SHORT,
            Int::UNSIGNED_SHORT,
            Int::SIGNED_CHAR,
            Int::UNSIGNED_CHAR,
        ])
    }

    fn element(&mut self) -> Element {
        match self.random.u32(..10) {
            0 => Element::Three,
            1 => Element::Int(Int::SIGNED_CHAR),
            2 => Element::Int(Int::UNSIGNED_SHORT),
            3 => Element::Int(Int::LONG),
            _ => Element::Int(Int::INT),
        }
    }

    fn fat_type(&mut self) -> Pointer {
        let element = self.element();
        let is_zeroterm = matches!(element, Element::Int(_)) && self.one_in(4);
        Pointer { element, bound: Bound::Fat, is_zeroterm, is_nullable: true }
    }

    /// The parameters and globals that a function has, in the order of their use.
    pub fn outer_scope(&mut self) -> Scope {
        let mut scope = Scope { can_return: true, ..Scope::default() };
        let mut parameters = Vec::new();
        for _ in 0..self.random.u32(1..4) {
            let ty = Type::Int(self.int_type());
            let id = self.add(ty, Storage::Parameter);
            parameters.push(id);
            scope.ints.push(id);
            scope.changing.push(id);
        }
        for _ in 0..self.random.u32(1..3) {
            let ty = Type::Pointer(self.fat_type());
            parameters.push(self.add(ty, Storage::Parameter));
            scope.pointers.extend(parameters.last());
        }
        if self.one_in(3) {
            let count = self.any(&[1, 1, 3]);
            let parts = Pointer { bound: Bound::Thin(count), is_nullable: !self.one_in(4), ..INT_FAT };
            parameters.push(self.add(Type::Pointer(parts), Storage::Parameter));
            scope.pointers.extend(parameters.last());
        }
        if self.one_in(3) {
            let (count, element) = (self.any(&[1, 1, 1, 2, 3]), Element::Int(self.int_type()));
            let (is_nullable, bound) = (!self.one_in(4), Bound::Thin(count));
            let text = Pointer { element, bound, is_zeroterm: true, is_nullable };
            parameters.push(self.add(Type::Pointer(text), Storage::Parameter));
            scope.pointers.extend(parameters.last());
        }
        if self.one_in(6) {
            let tag = self.add(Type::Int(Int::UNSIGNED_LONG), Storage::Tag);
            let parts =
                Pointer { element: self.element(), bound: Bound::Tag(tag), is_nullable: self.one_in(2), ..INT_FAT };
            let pointer = self.add(Type::Pointer(parts), Storage::Parameter);
            parameters.extend([tag, pointer]);
            scope.ints.push(tag);
            scope.pointers.push(pointer);
            scope.counts.push((pointer, tag));
        }
        if self.one_in(3) {
            parameters.push(self.add(Type::Record(false), Storage::Parameter));
            scope.records.extend(parameters.last());
        }
        if self.one_in(5) {
            for _ in 0..2 {
                parameters.push(self.add(Type::Row, Storage::Parameter));
                scope.rows.extend(parameters.last());
            }
        }
        self.random.shuffle(&mut scope.pointers);
        if self.one_in(3) {
            for (name, ty) in
                [("g0", Type::Int(Int::INT)), ("g1", Type::Int(Int::UNSIGNED)), ("g2", Type::Int(Int::LONG))]
            {
                let id = self.add(ty, Storage::Global(name));
                scope.ints.push(id);
                scope.changing.push(id);
            }
            for (name, ty) in [
                ("gp", Type::Pointer(INT_FAT)),
                ("gq", Type::Pointer(INT_THIN)),
                ("ga", Type::Array(Element::Int(Int::INT), 5, false)),
            ] {
                scope.pointers.push(self.add(ty, Storage::Global(name)));
            }
        }
        self.function.parameters = parameters;
        scope
    }

    /// The parameters of a helper.
    pub fn helper_scope(&mut self) -> Scope {
        let mut scope = Scope { can_return: true, ..Scope::default() };
        let mut types = vec![Type::Pointer(if self.one_in(3) { self.fat_type() } else { INT_FAT })];
        for _ in 0..self.random.u32(1..3) {
            types.push(Type::Int(self.int_type()));
        }
        if self.one_in(4) {
            types.push(Type::Pointer(INT_FAT));
        }
        self.random.shuffle(&mut types);
        for ty in types {
            let id = self.add(ty, Storage::Parameter);
            self.function.parameters.push(id);
            match ty {
                Type::Int(_) => {
                    scope.ints.push(id);
                    scope.changing.push(id);
                }
                _ => scope.pointers.push(id),
            }
        }
        scope
    }

    /// A place that holds an integer and is no element.
    pub fn int_place(&mut self, scope: &Scope) -> Place {
        if !scope.records.is_empty() && self.one_in(8) {
            let record = self.any(&scope.records);
            return Place::Member(record, self.any(&[Field::Number, Field::Unsigned]));
        }
        Place::Variable(self.changing_variable(scope))
    }
}

//! Runs a function: what Cyclone says that it does.
//!
//! Operands are evaluated from left to right, assignments from right to left, arithmetic wraps around, and a pointer is checked when
//! it is followed.

use super::inputs::Input;
use super::memory::{Address, Exception, Memory, Stop, array, checked, converted, fattened};
use super::syntax::{
    Binary, Bound, Catch, Clause, Element, Expr, Field, Function, Int, Place, Pointer, Stmt, Storage, Type, Unary,
    VarId,
};

/// Loops go round so often in a call, all together; `fuel` in the program.
pub const FUEL: u32 = 60;

/// How a call ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The result, or the exception with the place that threw it.
    pub end: std::result::Result<i128, (Exception, usize)>,
    /// What has been noted.
    pub hash: u32,
}

/// What a call of the function with this input does; `None` if that cannot be said.
pub fn run(function: &Function, input: &Input) -> Option<Outcome> {
    let mut machine = Machine {
        function,
        memory: Memory::default(),
        values: function.variables.iter().map(|variable| Value::none_of(variable.ty)).collect(),
        records: Vec::new(),
        rows: Vec::new(),
        inside: Vec::new(),
        hash: 1,
        fuel: FUEL,
    };
    machine.begin(input);
    let end = match machine.statements(&function.body) {
        Ok(Flow::Return(value)) => Ok(value),
        // Without a result; the compiler has warned.
        Ok(_) => return None,
        Err(Stop::Thrown(exception, site)) => Err((exception, site)),
        Err(Stop::Unpredictable) => return None,
    };
    Some(Outcome { end, hash: machine.hash })
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Int(i128),
    Pointer(Address),
    Record(Option<usize>),
    Row(usize),
}

impl Value {
    /// Of a variable that has none yet.
    pub(super) fn none_of(ty: Type) -> Value {
        match ty {
            Type::Int(_) => Value::Int(0),
            Type::Pointer(_) | Type::Array(..) => Value::Pointer(Address::NULL),
            Type::Record(_) => Value::Record(None),
            Type::Row => Value::Row(0),
        }
    }

    pub(super) fn int(self) -> i128 {
        match self {
            Value::Int(number) => number,
            _ => panic!("{self:?} is no number"),
        }
    }

    pub(super) fn address(self) -> Address {
        match self {
            Value::Pointer(address) => address,
            _ => panic!("{self:?} is no pointer"),
        }
    }

    fn is_true(self) -> bool {
        match self {
            Value::Int(number) => number != 0,
            Value::Pointer(address) => address.current != 0,
            Value::Record(record) => record.is_some(),
            Value::Row(_) => true,
        }
    }
}

/// Where control goes after a statement.
enum Flow {
    Next,
    Break,
    Continue,
    Return(i128),
}

/// A place that has been found and checked.
enum Found {
    Variable(VarId),
    Member(usize, Field),
    Cell(u64, Element, Terminator, usize),
}

/// Which zeros of a zero-terminated object only a zero may be written over.
enum Terminator {
    /// Any element may be written.
    None,
    /// The one before this address, whatever it is.
    Before(u64),
    /// The element itself, if it is zero.
    Here,
}

pub(super) struct Machine<'a> {
    pub(super) function: &'a Function,
    pub(super) memory: Memory,
    pub(super) values: Vec<Value>,
    /// Values of the fields in the order of [`Field`].
    pub(super) records: Vec<[Value; 4]>,
    /// Numbers of elements, and where those are.
    pub(super) rows: Vec<(i128, Address)>,
    /// Functions inside the function.
    inside: Vec<(usize, &'a [Stmt])>,
    hash: u32,
    fuel: u32,
}

type Result<T> = std::result::Result<T, Stop>;

fn site<T>(of: &T) -> usize {
    std::ptr::from_ref(of) as usize
}

impl<'a> Machine<'a> {
    pub(super) fn note(&mut self, number: i128) {
        self.hash = (self.hash ^ (number as u64 as u32)).wrapping_mul(16_777_619);
    }

    fn tick(&mut self) -> Result<()> {
        if self.fuel == 0 {
            return Err(Stop::Thrown(Exception::Tired, 0));
        }
        self.fuel -= 1;
        Ok(())
    }

    fn statements(&mut self, statements: &'a [Stmt]) -> Result<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'a Stmt) -> Result<Flow> {
        match statement {
            Stmt::Declare(variable, value) => {
                let value = match (self.function.type_of_variable(*variable), value) {
                    (Type::Array(element, count, is_zeroterm), _) => {
                        Value::Pointer(self.memory.object(element, array(count, is_zeroterm)))
                    }
                    (Type::Record(true), _) => {
                        let null = Value::Pointer(Address::NULL);
                        self.records.push([Value::Int(1), Value::Int(2), null, null]);
                        Value::Record(Some(self.records.len() - 1))
                    }
                    (ty, Some(value)) => self.value_as(ty, value)?,
                    (ty, None) => Value::none_of(ty),
                };
                self.values[variable.0] = value;
            }
            Stmt::Let(variable, value) => self.values[variable.0] = self.expr(value)?,
            Stmt::Expr(expr) => drop(self.expr(expr)?),
            Stmt::Swap(left, right) => {
                let (left, right) = (self.find(left)?, self.find(right)?);
                let (one, two) = (self.load(&left)?, self.load(&right)?);
                self.store(&left, two)?;
                self.store(&right, one)?;
            }
            Stmt::If(test, then, other) => {
                return match (self.expr(test)?.is_true(), other) {
                    (true, _) => self.statements(then),
                    (false, Some(other)) => self.statements(other),
                    (false, None) => Ok(Flow::Next),
                };
            }
            Stmt::While(test, body) => {
                while self.expr(test)?.is_true() {
                    self.tick()?;
                    match self.statements(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                }
            }
            Stmt::DoWhile(body, test) => loop {
                self.tick()?;
                match self.statements(body)? {
                    Flow::Next | Flow::Continue => {}
                    Flow::Break => break,
                    Flow::Return(value) => return Ok(Flow::Return(value)),
                }
                if !self.expr(test)?.is_true() {
                    break;
                }
            },
            Stmt::For { first, condition, step, body } => {
                if let Some(first) = first {
                    self.statement(first)?;
                }
                loop {
                    if let Some(condition) = condition
                        && !self.expr(condition)?.is_true()
                    {
                        break;
                    }
                    self.tick()?;
                    match self.statements(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                    if let Some(step) = step {
                        self.expr(step)?;
                    }
                }
            }
            Stmt::Switch(value, clauses) => return self.switch(value, clauses),
            Stmt::Try(body, catch, handler) => {
                return match self.statements(body) {
                    Err(Stop::Thrown(exception, _)) if catches(*catch, exception) => match self.statements(handler)? {
                        // Its end is a break out of the `catch`.
                        Flow::Break => Ok(Flow::Next),
                        other => Ok(other),
                    },
                    other => other,
                };
            }
            Stmt::Block(body) => return self.statements(body),
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Return(value) => {
                let value = self.expr(value)?.int();
                return Ok(Flow::Return(Int::LONG.cut(value)));
            }
            Stmt::Throw => return Err(Stop::Thrown(Exception::Odd, 0)),
            Stmt::Open { row, tag, pointer, body } => {
                let (count, elements) = self.rows[self.row(*row)];
                self.values[tag.0] = Value::Int(count);
                self.values[pointer.0] = Value::Pointer(elements);
                return self.statements(body);
            }
            Stmt::Repack(row, other) => {
                let (row, other) = (self.row(*row), self.row(*other));
                self.rows[row] = self.rows[other];
            }
            Stmt::Inside(number, body) => self.inside.push((*number, body)),
        }
        Ok(Flow::Next)
    }

    fn row(&self, variable: VarId) -> usize {
        match self.values[variable.0] {
            Value::Row(row) => row,
            value => panic!("{value:?} is no package"),
        }
    }

    fn switch(&mut self, value: &'a Expr, clauses: &'a [Clause]) -> Result<Flow> {
        let value = self.expr(value)?.int();
        let mut falls = false;
        for clause in clauses {
            if !falls {
                let is_met = clause.value.is_none_or(|of| of == value);
                if !is_met {
                    continue;
                }
                if let Some(guard) = &clause.guard
                    && !self.expr(guard)?.is_true()
                {
                    continue;
                }
            }
            match self.statements(&clause.body)? {
                Flow::Next if clause.falls_through => falls = true,
                Flow::Next | Flow::Break => return Ok(Flow::Next),
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    /// The value of an expression that initialises or is assigned to something of the type.
    fn value_as(&mut self, ty: Type, expr: &'a Expr) -> Result<Value> {
        let value = self.expr(expr)?;
        Ok(match (ty, value) {
            (Type::Int(int), Value::Int(number)) => Value::Int(int.cut(number)),
            _ => value,
        })
    }

    fn find(&mut self, place: &'a Place) -> Result<Found> {
        Ok(match place {
            Place::Variable(id) => match self.function.variables[id.0].storage {
                Storage::Reference(target) => Found::Variable(target),
                _ => Found::Variable(*id),
            },
            Place::Member(id, field) => match self.values[id.0] {
                Value::Record(Some(record)) => Found::Member(record, *field),
                _ => return Err(Stop::Thrown(Exception::Null, site(place))),
            },
            Place::Index(pointer, index) => {
                let at = self.expr(pointer)?.address();
                // A thin pointer is tested before the index is computed, unless both are needed to look for the end.
                let parts = self.function.type_of(pointer).pointer();
                if parts.bound != Bound::Fat && !parts.is_zeroterm && at.current == 0 {
                    return Err(Stop::Thrown(Exception::Null, site(place)));
                }
                let index = self.expr(index)?.int() as u64;
                self.cell(pointer, at, index, site(place))?
            }
            Place::Deref(pointer) => {
                let at = self.expr(pointer)?.address();
                self.cell(pointer, at, 0, site(place))?
            }
        })
    }

    fn cell(&mut self, pointer: &Expr, at: Address, index: u64, site: usize) -> Result<Found> {
        let parts = self.function.type_of(pointer).pointer();
        let count = self.count(parts);
        let address = checked(&mut self.memory, parts, count, at, index, site)?;
        let terminator = match parts.is_zeroterm {
            true if parts.bound == Bound::Fat => Terminator::Before(at.last),
            true if index + 1 >= count => Terminator::Here,
            _ => Terminator::None,
        };
        Ok(Found::Cell(address, parts.element, terminator, site))
    }

    /// How many elements the type of a thin pointer promises.
    fn count(&self, pointer: Pointer) -> u64 {
        match pointer.bound {
            Bound::Fat => 0,
            Bound::Thin(count) => count,
            Bound::Tag(tag) => self.values[tag.0].int() as u64,
        }
    }

    fn load(&mut self, found: &Found) -> Result<Value> {
        Ok(match found {
            Found::Variable(id) => self.values[id.0],
            Found::Member(record, field) => self.records[*record][*field as usize],
            Found::Cell(address, ..) => Value::Int(*self.memory.cell(*address)?),
        })
    }

    fn store(&mut self, found: &Found, value: Value) -> Result<()> {
        match found {
            Found::Variable(id) => self.values[id.0] = value,
            Found::Member(record, field) => self.records[*record][*field as usize] = value,
            Found::Cell(address, element, terminator, site) => {
                let number = element.int().cut(value.int());
                let cell = self.memory.cell(*address)?;
                let is_terminator = match terminator {
                    Terminator::None => false,
                    Terminator::Before(last) => address + element.size() == *last,
                    Terminator::Here => *cell == 0,
                };
                if is_terminator && number != 0 {
                    return Err(Stop::Thrown(Exception::Bounds, *site));
                }
                *cell = number;
            }
        }
        Ok(())
    }

    fn expr(&mut self, expr: &'a Expr) -> Result<Value> {
        Ok(match expr {
            Expr::Number(number, _) => Value::Int(*number),
            Expr::Null(_) => Value::Pointer(Address::NULL),
            Expr::Place(place) => {
                let found = self.find(place)?;
                self.load(&found)?
            }
            Expr::Count(pointer) => {
                let at = self.expr(pointer)?.address();
                let parts = self.function.type_of(pointer).pointer();
                Value::Int(i128::from(match parts.bound {
                    Bound::Fat => at.count(parts.element.size()),
                    _ if at.current == 0 => 0,
                    _ if parts.is_zeroterm => {
                        let known = self.count(parts);
                        self.memory.terminated(at.current, parts.element.size(), known)?
                    }
                    _ => self.count(parts),
                }))
            }
            Expr::Unary(operator, inner) => {
                let value = self.expr(inner)?;
                match operator {
                    Unary::Not => Value::Int(i128::from(!value.is_true())),
                    Unary::Negate => Value::Int(self.function.type_of(expr).int().cut(-value.int())),
                    Unary::Complement => Value::Int(self.function.type_of(expr).int().cut(!value.int())),
                }
            }
            Expr::Binary(Binary::LogAnd, left, right) => {
                Value::Int(i128::from(self.expr(left)?.is_true() && self.expr(right)?.is_true()))
            }
            Expr::Binary(Binary::LogOr, left, right) => {
                Value::Int(i128::from(self.expr(left)?.is_true() || self.expr(right)?.is_true()))
            }
            Expr::Binary(operator, left, right) => {
                let (one, two) = (self.expr(left)?, self.expr(right)?);
                self.binary(*operator, (self.function.type_of(left), one), (self.function.type_of(right), two))?
            }
            Expr::Conditional(parts) => {
                let chosen = if self.expr(&parts[0])?.is_true() { &parts[1] } else { &parts[2] };
                self.value_as(self.function.type_of(expr), chosen)?
            }
            Expr::Cast(Type::Pointer(to), inner) => {
                let at = self.expr(inner)?.address();
                let from = self.function.type_of(inner).pointer();
                let count = if from.bound == Bound::Fat { self.count(*to) } else { self.count(from) };
                Value::Pointer(converted(&mut self.memory, from, *to, count, at, site(expr))?)
            }
            Expr::Cast(ty, inner) => self.value_as(*ty, inner)?,
            Expr::Assign(operator, place, value) => {
                let ty = self.function.type_of_place(place);
                let mut new = self.expr(value)?;
                let found = self.find(place)?;
                if let Some(operator) = operator {
                    let old = self.load(&found)?;
                    new = self.binary(*operator, (ty, old), (self.function.type_of(value), new))?;
                }
                if let (Type::Int(int), Value::Int(number)) = (ty, new) {
                    new = Value::Int(int.cut(number));
                }
                self.store(&found, new)?;
                new
            }
            Expr::Step { place, up, is_postfix } => {
                let ty = self.function.type_of_place(place);
                let found = self.find(place)?;
                let old = self.load(&found)?;
                if let Type::Pointer(parts) = ty
                    && parts.is_thin_text()
                {
                    let new = self.next_of_text(parts, old.address(), site(expr))?;
                    self.store(&found, new)?;
                    return Ok(if *is_postfix { old } else { new });
                }
                let operator = if *up { Binary::Add } else { Binary::Sub };
                let mut new = self.binary(operator, (ty, old), (Type::Int(Int::INT), Value::Int(1)))?;
                if let (Type::Int(int), Value::Int(number)) = (ty, new) {
                    new = Value::Int(int.cut(number));
                }
                self.store(&found, new)?;
                if *is_postfix { old } else { new }
            }
            Expr::Comma(first, last) => {
                self.expr(first)?;
                self.expr(last)?
            }
            Expr::Alloc(pointer, count) => {
                let count = self.expr(count)?.int() as u64;
                Memory::room(count, pointer.element, site(expr))?;
                let cells = vec![0; count as usize];
                Value::Pointer(self.memory.object(pointer.element, cells))
            }
            Expr::Build { pointer, index, count, value } => {
                let count = self.expr(count)?.int() as u64;
                Memory::room(count, pointer.element, site(expr))?;
                let mut cells = Vec::new();
                for at in 0..count {
                    self.values[index.0] = Value::Int(i128::from(at));
                    let value = self.expr(value)?.int();
                    cells.push(pointer.element.int().cut(value));
                }
                cells.extend(pointer.is_zeroterm.then_some(0));
                Value::Pointer(self.memory.object(pointer.element, cells))
            }
            Expr::Note(inner) => {
                let value = Int::LONG.cut(self.expr(inner)?.int());
                self.note(value);
                Value::Int(value)
            }
            Expr::Change(inner, record) => {
                let number = Int::INT.cut(self.expr(inner)?.int());
                let record = match self.function.type_of_variable(*record) {
                    Type::Record(true) => None,
                    _ => match self.values[record.0] {
                        Value::Record(record) => record,
                        _ => None,
                    },
                };
                self.change(number, record)
            }
            Expr::Call(number, arguments) => self.call(&self.function.helpers[*number], arguments)?,
            Expr::Inside(number) => {
                let body = self.inside.iter().rev().find(|(of, _)| of == number).map(|(_, body)| *body);
                self.statements(body.unwrap_or_default())?;
                Value::Int(0)
            }
            Expr::Statements(statements, last) => match self.statements(statements)? {
                Flow::Next => self.expr(last)?,
                // Only what comes out of the statements by throwing is generated.
                _ => return Err(Stop::Unpredictable),
            },
        })
    }

    fn call(&mut self, helper: &'a Function, arguments: &'a [Expr]) -> Result<Value> {
        let mut values: Vec<Value> = helper.variables.iter().map(|variable| Value::none_of(variable.ty)).collect();
        for (parameter, argument) in helper.parameters.iter().zip(arguments) {
            values[parameter.0] = self.value_as(helper.type_of_variable(*parameter), argument)?;
        }
        let function = std::mem::replace(&mut self.function, helper);
        let values = std::mem::replace(&mut self.values, values);
        let inside = std::mem::take(&mut self.inside);
        let end = self.statements(&helper.body);
        (self.function, self.values, self.inside) = (function, values, inside);
        match end? {
            Flow::Return(value) => Ok(Value::Int(value)),
            // Without a result; the compiler has warned.
            _ => Err(Stop::Unpredictable),
        }
    }

    /// A thin zero-terminated pointer one further; the zero is not passed.
    fn next_of_text(&mut self, parts: Pointer, at: Address, site: usize) -> Result<Value> {
        let size = parts.element.size();
        if at.current == 0 || self.memory.terminated(at.current, size, 1)? < 2 {
            return Err(Stop::Thrown(Exception::Bounds, site));
        }
        Ok(Value::Pointer(at.plus(size, 1)))
    }

    fn binary(&mut self, operator: Binary, left: (Type, Value), right: (Type, Value)) -> Result<Value> {
        use Binary::*;
        if let (Add | Sub, Value::Pointer(at), Value::Int(index)) = (operator, left.1, right.1) {
            let parts = left.0.pointer();
            let count = self.count(parts);
            let at = fattened(&mut self.memory, parts, count, at)?;
            let index = if operator == Add { index } else { -index };
            return Ok(Value::Pointer(at.plus(parts.element.size(), index as u64)));
        }
        let (Value::Int(one), Value::Int(two)) = (left.1, right.1) else {
            // Only with null are pointers compared.
            let is_null = !left.1.is_true();
            return Ok(Value::Int(i128::from(is_null == (operator == Eq))));
        };
        let (one_type, two_type) = (left.0.int(), right.0.int());
        let common = one_type.common(two_type);
        let (a, b) = (common.cut(one), common.cut(two));
        let compared = |holds: bool| Ok(Value::Int(i128::from(holds)));
        let number = match operator {
            Add => a + b,
            Sub => a - b,
            Mul => a.wrapping_mul(b),
            // Undefined in Cyclone too.
            Div | Rem if b == 0 || (b == -1 && a == common.least()) => return Err(Stop::Unpredictable),
            Div => a / b,
            Rem => a % b,
            And => a & b,
            Or => a | b,
            Xor => a ^ b,
            Shl | Shr => {
                let promoted = one_type.promoted();
                let by = two.rem_euclid(i128::from(promoted.bits)) as u32;
                return Ok(Value::Int(promoted.cut(if operator == Shl { one << by } else { one >> by })));
            }
            Lt => return compared(a < b),
            Le => return compared(a <= b),
            Gt => return compared(a > b),
            Ge => return compared(a >= b),
            Eq => return compared(a == b),
            Ne => return compared(a != b),
            LogAnd | LogOr => return compared(false),
        };
        Ok(Value::Int(common.cut(number)))
    }
}

fn catches(catch: Catch, exception: Exception) -> bool {
    match catch {
        Catch::Bounds => exception == Exception::Bounds,
        Catch::Null => exception == Exception::Null,
        Catch::Any => true,
    }
}

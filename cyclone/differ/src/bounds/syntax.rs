//! Functions of the part of Cyclone that proofs of bounds are about. They can be printed ([`super::print`]) and run
//! ([`super::machine`]).

/// An integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Int {
    pub bits: u32,
    pub is_signed: bool,
}

impl Int {
    pub const SIGNED_CHAR: Int = Int { bits: 8, is_signed: true };
    pub const UNSIGNED_CHAR: Int = Int { bits: 8, is_signed: false };
    pub const SHORT: Int = Int { bits: 16, is_signed: true };
    pub const UNSIGNED_SHORT: Int = Int { bits: 16, is_signed: false };
    pub const INT: Int = Int { bits: 32, is_signed: true };
    pub const UNSIGNED: Int = Int { bits: 32, is_signed: false };
    pub const LONG: Int = Int { bits: 64, is_signed: true };
    pub const UNSIGNED_LONG: Int = Int { bits: 64, is_signed: false };

    /// The value of this type that a number becomes.
    pub fn cut(self, number: i128) -> i128 {
        let low = number & ((1 << self.bits) - 1);
        if self.is_signed && low >> (self.bits - 1) != 0 { low - (1 << self.bits) } else { low }
    }

    pub fn least(self) -> i128 {
        if self.is_signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    pub fn most(self) -> i128 {
        self.least() + (1 << self.bits) - 1
    }

    /// C's integer promotion.
    pub fn promoted(self) -> Int {
        if self.bits < 32 { Int::INT } else { self }
    }

    /// The type that two operands are converted to: C's usual arithmetic conversions.
    pub fn common(self, other: Int) -> Int {
        let (one, two) = (self.promoted(), other.promoted());
        match one.bits.cmp(&two.bits) {
            std::cmp::Ordering::Less => two,
            std::cmp::Ordering::Greater => one,
            std::cmp::Ordering::Equal => Int { bits: one.bits, is_signed: one.is_signed && two.is_signed },
        }
    }
}

/// What a pointer points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    Int(Int),
    /// `struct Three`, of 12 bytes. Its first member is read and written.
    Three,
}

impl Element {
    pub fn size(self) -> u64 {
        match self {
            Element::Int(int) => u64::from(int.bits / 8),
            Element::Three => 12,
        }
    }

    /// The type of what is read and written.
    pub fn int(self) -> Int {
        match self {
            Element::Int(int) => int,
            Element::Three => Int::INT,
        }
    }
}

/// How many elements a pointer's type promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    Fat,
    Thin(u64),
    /// As many as the value of this parameter.
    Tag(VarId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pointer {
    pub element: Element,
    pub bound: Bound,
    pub is_zeroterm: bool,
    /// Of a thin pointer; fat ones always may be null.
    pub is_nullable: bool,
}

impl Pointer {
    /// Whether it can be moved on: what is behind it is known, or is found at each step.
    pub fn can_step(self) -> bool {
        self.bound == Bound::Fat || self.is_zeroterm && self.bound == Bound::Thin(1)
    }

    /// Whether a step is tested: a thin pointer does not go past the zero at the end, nor back.
    pub fn is_thin_text(self) -> bool {
        self.is_zeroterm && self.bound != Bound::Fat
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Int(Int),
    Pointer(Pointer),
    /// An array variable; used, it is a thin pointer that is not null. With `true` its last element is the zero at its end.
    Array(Element, u64, bool),
    /// `struct Record *`, or with `true` a variable of type `struct Record`.
    Record(bool),
    /// `struct Row @`, a package: a number and a pointer to so many elements.
    Row,
}

impl Type {
    pub fn int(self) -> Int {
        match self {
            Type::Int(int) => int,
            _ => panic!("{self:?} is no integer"),
        }
    }

    pub fn pointer(self) -> Pointer {
        match self {
            Type::Pointer(pointer) => pointer,
            Type::Array(element, count, is_zeroterm) => {
                Pointer { element, bound: Bound::Thin(count), is_zeroterm, is_nullable: false }
            }
            _ => panic!("{self:?} is no pointer"),
        }
    }
}

/// Members of `struct Record`, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// `int n`
    Number,
    /// `unsigned u`
    Unsigned,
    /// `int ?p`
    Fat,
    /// `int *q`
    Thin,
}

pub const INT_FAT: Pointer =
    Pointer { element: Element::Int(Int::INT), bound: Bound::Fat, is_zeroterm: false, is_nullable: true };
pub const INT_THIN: Pointer = Pointer { bound: Bound::Thin(1), ..INT_FAT };

impl Field {
    pub fn ty(self) -> Type {
        match self {
            Field::Number => Type::Int(Int::INT),
            Field::Unsigned => Type::Int(Int::UNSIGNED),
            Field::Fat => Type::Pointer(INT_FAT),
            Field::Thin => Type::Pointer(INT_THIN),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Field::Number => "n",
            Field::Unsigned => "u",
            Field::Fat => "p",
            Field::Thin => "q",
        }
    }
}

/// A variable of a function, by its place in [`Function::variables`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VarId(pub usize);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    Local,
    Parameter,
    /// A parameter of type `tag_t`, whose value types mention.
    Tag,
    Global(&'static str),
    /// A pointer to another variable; used, it is that variable.
    Reference(VarId),
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub ty: Type,
    pub storage: Storage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    Negate,
    Complement,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    LogAnd,
    LogOr,
}

#[derive(Clone, Debug)]
pub enum Expr {
    Number(i128, Int),
    Null(Pointer),
    Place(Place),
    /// `numelts(p)`
    Count(Box<Expr>),
    Unary(Unary, Box<Expr>),
    /// Of integers; or a fat pointer and an integer; or a pointer compared with null.
    Binary(Binary, Box<Expr>, Box<Expr>),
    Conditional(Box<[Expr; 3]>),
    Cast(Type, Box<Expr>),
    Assign(Option<Binary>, Box<Place>, Box<Expr>),
    Step {
        place: Box<Place>,
        up: bool,
        is_postfix: bool,
    },
    Comma(Box<Expr>, Box<Expr>),
    /// `calloc(count, sizeof(element))`
    Alloc(Pointer, Box<Expr>),
    /// `new {for index < count : value}`
    Build {
        pointer: Pointer,
        index: VarId,
        count: Box<Expr>,
        value: Box<Expr>,
    },
    /// `note(e)`
    Note(Box<Expr>),
    /// `change(e, record)`
    Change(Box<Expr>, VarId),
    /// A call of the function inside the function with this number.
    Inside(usize),
    /// A call of the helper with this number.
    Call(usize, Vec<Expr>),
    /// `({ statements; e; })`
    Statements(Vec<Stmt>, Box<Expr>),
}

#[derive(Clone, Debug)]
pub enum Place {
    Variable(VarId),
    /// `record->field`, or `record.field`
    Member(VarId, Field),
    /// `p[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `*p`
    Deref(Box<Expr>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Catch {
    Bounds,
    Null,
    Any,
}

#[derive(Clone, Debug)]
pub enum Stmt {
    /// With an array the value is left out: its elements are its own numbers.
    Declare(VarId, Option<Expr>),
    /// `let x = e;`
    Let(VarId, Expr),
    Expr(Expr),
    /// `a :=: b;`
    Swap(Place, Place),
    If(Expr, Vec<Stmt>, Option<Vec<Stmt>>),
    While(Expr, Vec<Stmt>),
    DoWhile(Vec<Stmt>, Expr),
    /// The variable is declared here, or its value is assigned, or nothing is done first.
    For {
        first: Option<Box<Stmt>>,
        condition: Option<Expr>,
        step: Option<Expr>,
        body: Vec<Stmt>,
    },
    /// Clauses in order, the last of which is the default; each says whether it falls through to the next.
    Switch(Expr, Vec<Clause>),
    Try(Vec<Stmt>, Catch, Vec<Stmt>),
    Block(Vec<Stmt>),
    Break,
    Continue,
    Return(Expr),
    /// `throw new Odd`
    Throw,
    /// `{ let &Row{<`i> tag, pointer} = row; body }`
    Open {
        row: VarId,
        tag: VarId,
        pointer: VarId,
        body: Vec<Stmt>,
    },
    /// `*row = *other;`
    Repack(VarId, VarId),
    /// A function inside the function: its number and its body.
    Inside(usize, Vec<Stmt>),
}

#[derive(Clone, Debug)]
pub struct Clause {
    /// `None`: the default.
    pub value: Option<i128>,
    /// `case value && guard`
    pub guard: Option<Expr>,
    pub body: Vec<Stmt>,
    pub falls_through: bool,
}

/// `static long f(..)`
#[derive(Clone, Default, Debug)]
pub struct Function {
    pub variables: Vec<Variable>,
    pub parameters: Vec<VarId>,
    pub body: Vec<Stmt>,
    /// Functions that only this one calls, so that the compiler knows all their calls. They have no helpers, and use nothing but their parameters.
    pub helpers: Vec<Function>,
}

impl Function {
    pub fn type_of_variable(&self, variable: VarId) -> Type {
        self.variables[variable.0].ty
    }

    pub fn type_of_place(&self, place: &Place) -> Type {
        match place {
            Place::Variable(variable) => self.type_of_variable(*variable),
            Place::Member(_, field) => field.ty(),
            Place::Index(pointer, _) | Place::Deref(pointer) => {
                Type::Int(self.type_of(pointer).pointer().element.int())
            }
        }
    }

    pub fn type_of(&self, expr: &Expr) -> Type {
        match expr {
            Expr::Number(_, int) => Type::Int(*int),
            Expr::Null(pointer) | Expr::Alloc(pointer, _) | Expr::Build { pointer, .. } => Type::Pointer(*pointer),
            Expr::Place(place) => self.type_of_place(place),
            Expr::Count(_) => Type::Int(Int::UNSIGNED_LONG),
            Expr::Unary(Unary::Not, _) | Expr::Change(..) | Expr::Inside(_) => Type::Int(Int::INT),
            Expr::Unary(_, inner) => Type::Int(self.type_of(inner).int().promoted()),
            Expr::Binary(operator, left, right) => self.type_of_binary(*operator, left, right),
            Expr::Conditional(parts) => match (self.type_of(&parts[1]), self.type_of(&parts[2])) {
                (Type::Int(one), Type::Int(two)) => Type::Int(one.common(two)),
                (one, _) => one,
            },
            Expr::Cast(ty, _) => *ty,
            Expr::Assign(_, place, _) | Expr::Step { place, .. } => self.type_of_place(place),
            Expr::Comma(_, last) | Expr::Statements(_, last) => self.type_of(last),
            Expr::Note(_) | Expr::Call(..) => Type::Int(Int::LONG),
        }
    }

    fn type_of_binary(&self, operator: Binary, left: &Expr, right: &Expr) -> Type {
        match (operator, self.type_of(left)) {
            (Binary::Add | Binary::Sub, Type::Pointer(pointer)) => {
                Type::Pointer(Pointer { bound: Bound::Fat, is_nullable: true, ..pointer })
            }
            (Binary::Add | Binary::Sub, Type::Array(..)) => {
                let pointer = self.type_of(left).pointer();
                Type::Pointer(Pointer { bound: Bound::Fat, is_nullable: true, ..pointer })
            }
            (Binary::Shl | Binary::Shr, Type::Int(left)) => Type::Int(left.promoted()),
            (
                Binary::Add
                | Binary::Sub
                | Binary::Mul
                | Binary::Div
                | Binary::Rem
                | Binary::And
                | Binary::Or
                | Binary::Xor,
                Type::Int(left),
            ) => Type::Int(left.common(self.type_of(right).int())),
            _ => Type::Int(Int::INT),
        }
    }
}

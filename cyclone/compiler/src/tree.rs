//! The typed tree: a program whose names are bound, whose types are known, and in which every conversion is written out.
//!
//! `check` makes it from the syntax tree, `flow` proves and removes checks in it, `lower` writes C from it. Later phases never look
//! names up and never choose conversions.
//!
//! # Invariants
//!
//! - [`Expr::ty`] is the type after instantiation of type variables, with no unbound inference variable once `check` has
//!   ended (what stayed unknown has been defaulted). How a value is represented in C follows from it: where the declared type of
//!   the function, member or variable has a type variable and `ty` has an `int`, `lower` converts between word and `int`.
//! - Arrays and functions are used through [`Coercion::Decay`] everywhere but below `&`, `sizeof` and initialisers.
//! - Operands of arithmetic have been converted to their common type; conditions are numbers or pointers.
//! - Every access through a pointer ([`ExprKind::Deref`], [`ExprKind::Index`], and members through `Deref`) has its own
//!   [`Checks`], which say what must be checked at run time. `flow` turns them off where it can prove them.
//! - A place (lvalue) is a [`ExprKind::Local`], [`ExprKind::Global`], [`ExprKind::Deref`], [`ExprKind::Index`],
//!   [`ExprKind::Member`] of a place, or [`ExprKind::Statements`] never.
//! - Parts that had an error are [`ExprKind::Error`] with type `Error`; a program with errors goes no further than `flow`.

use crate::ast::{AllocWord, BinOp, Tested};
use crate::hash::HashSet;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::types::{
    AggregateId, Constraint, DatatypeId, EnumId, Format, Function as FunctionType, Quals, Ty, TyVar, Types,
};
use std::rc::Rc;
use thin_vec::ThinVec;

/// A translation unit.
#[derive(Debug, Default)]
pub struct Program {
    /// All types.
    pub types: Types,
    /// What is declared.
    pub declarations: Declarations,
    /// The functions that have a body here, in order.
    pub functions: Vec<Function>,
    /// The functions whose body is C (`extern "C include"`).
    pub c_bodies: Vec<CBody>,
    /// The functions of which all calls are known, as `flow` has found: `static` ones that are named in calls only.
    pub called_only: HashSet<GlobalId>,
}

/// A function whose body is C: it is passed on as it was written.
#[derive(Debug)]
pub struct CBody {
    /// Its declaration.
    pub global: GlobalId,
    /// The names of its parameters.
    pub params: Vec<Option<Symbol>>,
    /// With its braces.
    pub text: String,
    /// The globals of its block of C that it names.
    pub uses: Vec<GlobalId>,
}

/// All that is declared outside of functions, and types declared anywhere.
#[derive(Debug, Default)]
pub struct Declarations {
    /// Structures and unions.
    pub aggregates: Vec<Aggregate>,
    /// Datatypes.
    pub datatypes: Vec<Datatype>,
    /// Enumerations.
    pub enums: Vec<Enum>,
    /// How many of them are complete.
    pub complete: u32,
    /// The constraints of constrained types, as text: `x | x > 0`.
    pub constraints: Vec<Symbol>,
    /// Variables and functions, in order of their first declaration.
    pub globals: Vec<Global>,
}

/// A global variable or function: an index into [`Declarations::globals`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GlobalId(pub u32);

/// A variable of a function: an index into [`Function::locals`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct LocalId(pub u32);

/// A label of a function: an index into [`Function::labels`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LabelId(pub u32);

/// How a name can be seen from other translation units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// `static`.
    Internal,
    /// Defined or declared here, seen by all.
    External,
    /// As `External`, and it is C's: its name is not mangled, and its arguments are passed as C does.
    C,
}

/// A global variable or function.
#[derive(Debug)]
pub struct Global {
    /// Its full name, `List::map`.
    pub name: Symbol,
    /// Its type; for functions with its type parameters bound.
    pub ty: Ty,
    /// Its qualifiers.
    pub quals: Quals,
    /// Who sees it.
    pub linkage: Linkage,
    /// `inline` was written.
    pub is_inline: bool,
    /// Defined in this translation unit (a variable without initialiser counts if it is not `extern`).
    pub is_defined: bool,
    /// The value of a variable.
    pub init: Option<Init>,
    /// `asm("name")`: its name for the linker.
    pub asm_name: Option<String>,
    /// Attributes for the C compiler, as written.
    pub attributes: Vec<Symbol>,
    /// C's declaration of it, for which this one is a better type: C sees the other.
    pub overrides: Option<GlobalId>,
    /// It is used by something that is kept; headers declare much that is not.
    pub is_used: bool,
    /// How many aggregates and datatypes were complete where it was first declared.
    pub complete: u32,
    /// Where it is declared.
    pub span: Span,
}

/// A structure or union.
#[derive(Debug)]
pub struct Aggregate {
    /// Its full name; none for an unnamed one.
    pub name: Option<Symbol>,
    /// A union.
    pub is_union: bool,
    /// `@tagged`.
    pub is_tagged: bool,
    /// C's: the layout and tag name are those of a C declaration (`extern "C"`).
    pub is_c: bool,
    /// Parameters.
    pub params: Rc<[TyVar]>,
    /// What it holds; `None` while it is abstract or only declared.
    pub body: Option<AggregateBody>,
    /// How many aggregates and datatypes were complete when it had become so, itself among them.
    pub completed: Option<u32>,
    /// Attributes for the C compiler (`packed`, `aligned(8)`), as written.
    pub attributes: Vec<Symbol>,
    /// Where it is declared.
    pub span: Span,
}

/// The members of an aggregate.
#[derive(Debug)]
pub struct AggregateBody {
    /// Bound in the body (existential types).
    pub existentials: Vec<TyVar>,
    /// What must hold of them.
    pub constraints: Vec<Constraint>,
    /// The members, in order.
    pub fields: Vec<Field>,
}

/// A member.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name; members without one (padding bits) have none. Members of unnamed aggregates inside are found through them.
    pub name: Option<Symbol>,
    /// Its type, over the aggregate's parameters.
    pub ty: Ty,
    /// Its qualifiers.
    pub quals: Quals,
    /// Width in bits of a bit-field.
    pub width: Option<u32>,
    /// Attributes for the C compiler, as written.
    pub attributes: Vec<Symbol>,
    /// Where.
    pub span: Span,
}

/// A datatype.
#[derive(Debug)]
pub struct Datatype {
    /// Its full name.
    pub name: Symbol,
    /// `@extensible`.
    pub is_extensible: bool,
    /// Parameters.
    pub params: Rc<[TyVar]>,
    /// Constructors in order (all known so far, if extensible); empty and `is_complete` false while only declared.
    pub constructors: Vec<Constructor>,
    /// The constructors are known (never true of an extensible one).
    pub is_complete: bool,
    /// How many aggregates and datatypes were complete when it had become so, itself among them.
    pub completed: Option<u32>,
    /// Where it is declared.
    pub span: Span,
}

/// A constructor of a datatype.
#[derive(Clone, Debug)]
pub struct Constructor {
    /// Its full name.
    pub name: Symbol,
    /// What it carries, over the datatype's parameters.
    pub params: Vec<crate::types::Member>,
    /// `extern`: its tag is defined elsewhere (extensible ones).
    pub is_extern: bool,
    /// `static`.
    pub is_static: bool,
    /// Where.
    pub span: Span,
}

/// An enumeration.
#[derive(Debug)]
pub struct Enum {
    /// Its full name, if any.
    pub name: Option<Symbol>,
    /// Full names and values; `None` while only declared.
    pub values: Option<Vec<(Symbol, i64)>>,
    /// C's.
    pub is_c: bool,
}

/// A function with its body.
#[derive(Debug)]
pub struct Function {
    /// Its declaration.
    pub global: GlobalId,
    /// Its type: the same as the declaration's.
    pub ty: FunctionType,
    /// All variables, parameters first in order (the fat pointer of typed variable arguments is the last of those).
    pub locals: Vec<Local>,
    /// How many of them are parameters.
    pub params: usize,
    /// All labels.
    pub labels: Vec<Symbol>,
    /// The region of the function's own block, `` `f ``.
    pub region: TyVar,
    /// The body.
    pub body: Block,
    /// From its name to the closing brace.
    pub span: Span,
}

/// A variable of a function.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: Symbol,
    /// Its type.
    pub ty: Ty,
    /// Its qualifiers.
    pub quals: Quals,
    /// The region of the block it lives in (the heap for `static` ones).
    pub region: Ty,
    /// `static`.
    pub is_static: bool,
    /// Its address is taken somewhere.
    pub is_address_taken: bool,
    /// Where it is declared.
    pub span: Span,
}

/// A block: a scope and a region.
#[derive(Debug)]
pub struct Block {
    /// Its region.
    pub region: Option<TyVar>,
    /// The statements.
    pub statements: ThinVec<Stmt>,
    /// With the braces.
    pub span: Span,
}

/// A statement.
#[derive(Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
}

/// The forms of statements.
#[derive(Debug)]
pub enum StmtKind {
    /// `;`
    Empty,
    /// An expression for its effect.
    Expr(Expr),
    /// A block.
    Block(Block),
    /// A variable comes to life.
    Declare(LocalId, Option<Init>),
    /// `let p = e;`: irrefutable unless the check throws `Match_Exception` (`may_fail`).
    Let {
        /// The pattern.
        pattern: Box<Pattern>,
        /// The value.
        value: Expr,
        /// The pattern does not match all values.
        may_fail: bool,
    },
    /// ``let alias<`r> T x = e;`` and inferred aliases: `e`'s owner is consumed until the end of `body`.
    Alias {
        /// The fresh region.
        region: TyVar,
        /// The alias.
        local: LocalId,
        /// The unique pointer.
        value: Expr,
        /// In which the alias lives.
        body: ThinVec<Stmt>,
    },
    /// A region: from here to the end of the enclosing block.
    Region(Region),
    /// `if`.
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// `switch`.
    Switch(Switch),
    /// `try s catch { .. }`; what no clause matches is thrown again.
    Try(Box<Stmt>, ThinVec<Clause>),
    /// `while`.
    While(Expr, Box<Stmt>),
    /// `do .. while`.
    DoWhile(Box<Stmt>, Expr),
    /// `for`; a declaration before it is in an enclosing block.
    For {
        /// First part.
        init: Option<Box<Expr>>,
        /// Second part.
        condition: Option<Box<Expr>>,
        /// Third part.
        step: Option<Box<Expr>>,
        /// The body.
        body: Box<Stmt>,
    },
    /// `goto`.
    Goto(LabelId),
    /// `L: s`.
    Labelled(LabelId, Box<Stmt>),
    /// `continue`.
    Continue,
    /// `break`.
    Break,
    /// `return`.
    Return(Option<Expr>),
    /// `fallthru(..)`: goes to the next clause with these values for its variables, in the order they stand in its pattern.
    Fallthru(ThinVec<Expr>),
}

/// The declaration of a region.
#[derive(Debug)]
pub struct Region {
    /// Its name in types.
    pub region: TyVar,
    /// The variable that holds its handle.
    pub handle: LocalId,
    /// What sort.
    pub kind: RegionKind,
    /// The statements in which it lives: the rest of the block it was declared in.
    pub body: ThinVec<Stmt>,
}

/// Sorts of regions.
#[derive(Debug)]
pub enum RegionKind {
    /// Freed when the block ends, also by an exception or a jump.
    Lexical,
    /// `open(k)`: a dynamic region, alive while it is open; the key.
    Open(Expr),
}

/// A `switch`.
#[derive(Debug)]
pub struct Switch {
    /// What is looked at.
    pub value: Expr,
    /// The clauses in order; a value that none matches cannot occur (checked: exhaustive).
    pub clauses: ThinVec<Clause>,
}

/// A clause of `switch` or `catch`.
#[derive(Debug)]
pub struct Clause {
    /// The pattern.
    pub pattern: Pattern,
    /// A condition over the pattern's variables.
    pub guard: Option<Expr>,
    /// The variables the pattern binds, in order: what `fallthru` gives values for.
    pub bindings: ThinVec<LocalId>,
    /// The statements.
    pub body: Block,
    /// From `case` to `:`.
    pub span: Span,
}

/// A pattern.
#[derive(Debug)]
pub struct Pattern {
    /// What it is.
    pub kind: PatternKind,
    /// The type of what is matched.
    pub ty: Ty,
    /// Where.
    pub span: Span,
}

/// The forms of patterns.
#[derive(Debug)]
pub enum PatternKind {
    /// Anything.
    Wild,
    /// Binds a copy (which consumes a unique value), if the inner pattern matches.
    Bind(LocalId, Option<Box<Pattern>>),
    /// Binds a pointer to the matched place.
    Reference(LocalId, Option<Box<Pattern>>),
    /// A number, character or enumeration constant.
    Int(i64),
    /// A floating number as written.
    Float(Symbol),
    /// The null pointer.
    Null,
    /// A value computed before the switch, compared with `==`.
    Value(Box<Expr>),
    /// `&p`: a pointer that is not null, to what `p` matches.
    Deref(Box<Pattern>),
    /// Components of a tuple by index.
    Tuple(ThinVec<(usize, Pattern)>),
    /// Members of a structure by index, with the type variables that the package is opened to.
    Struct(ThinVec<TyVar>, ThinVec<(usize, Pattern)>),
    /// A member of a tagged union: it is the one last written, and matches.
    Tagged(usize, Box<Pattern>),
    /// The pointed-to datatype value has this constructor, and its parts match. `ty` is `datatype T` (below a `Deref`).
    Constructor(DatatypeId, u32, ThinVec<(usize, Pattern)>),
    /// ``x<`n>``: binds a tag and its type-level name.
    Tag(LocalId, TyVar),
    /// ``alias<`r> T x``: binds an alias of a unique value for the clause.
    Alias(LocalId, TyVar),
}

/// An initial value.
#[derive(Debug)]
pub enum Init {
    /// An expression of the variable's type.
    Value(Expr),
    /// Braces, by position; what is missing is zero.
    List(InitList),
    /// `{for i < n : e}`.
    Comprehension(Box<Comprehension>),
    /// A string that fills an array.
    String(ThinVec<u8>),
}

/// Braces: sorted by position, each at most once.
#[derive(Debug)]
pub struct InitList {
    /// Type of what is initialised: an array, structure, union (one entry), tuple.
    pub ty: Ty,
    /// Instantiation of existential type variables, for structures that have some.
    pub existentials: ThinVec<Ty>,
    /// Index of element or member, and its value.
    pub entries: ThinVec<(u64, Init)>,
    /// Where.
    pub span: Span,
}

/// `{for i < n : e}`.
#[derive(Debug)]
pub struct Comprehension {
    /// The index variable.
    pub index: LocalId,
    /// How many; evaluated once.
    pub len: Expr,
    /// The value of each element; `None`: left uninitialised (`for i < n : T`).
    pub value: Option<Expr>,
    /// An element's type.
    pub element: Ty,
    /// Whether a zero element follows.
    pub zeroterm: bool,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type; see the module's comment.
    pub ty: Ty,
    /// Where.
    pub span: Span,
}

/// A number, aligned as pointers are: so that it makes no expression larger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(Rust, packed(8))]
pub struct Wide(pub i128);

/// What has to be checked when a pointer is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// Nothing is to be checked, by the types.
    Never,
    /// At run time.
    Needed,
    /// Proved unnecessary by `flow`.
    Proved,
    /// At run time in the first round of the loop around it, proved unnecessary in the others (bounds of fat pointers only).
    FirstRound,
}

/// The checks of one access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checks {
    /// The pointer is not null.
    pub null: Check,
    /// The index is within bounds.
    pub bounds: Check,
    /// Another element follows, as `flow` has found: what is stored here does not overwrite a terminator.
    pub has_next: bool,
}

/// The forms of expressions.
#[derive(Debug)]
pub enum ExprKind {
    /// Wrong, and reported.
    Error,
    /// An integer, character or enumeration constant.
    Int(Wide),
    /// A floating constant as written.
    Float(Symbol),
    /// A string: an array of `char` whose last element is 0, which is not in the bytes.
    Str(ThinVec<u8>),
    /// A wide string, as 32-bit characters.
    WideStr(ThinVec<u32>),
    /// The null pointer (also a fat one).
    Null,
    /// A variable.
    Local(LocalId),
    /// A global variable or function.
    Global(GlobalId),
    /// `-`, `!`, `~`; `!` gives an `int`.
    Unary(UnaryOp, Box<Expr>),
    /// On numbers, on pointers (comparison, difference, `fat + n`), `&&` and `||`.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Stores; the operator is applied to the old value first, in the type of the right operand. For a structure inside a
    /// tagged union the tag is set too.
    Assign(Option<BinOp>, Box<Expr>, Box<Expr>),
    /// `++x` and its like, on numbers and pointers.
    Step {
        /// The place.
        place: Box<Expr>,
        /// Plus or minus one.
        up: bool,
        /// The value is that before the step.
        postfix: bool,
    },
    /// `a :=: b`.
    Swap(Box<Expr>, Box<Expr>),
    /// `a ? b : c`.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// A call.
    Call(Box<Call>),
    /// `*e`, `e[0]`: the place that the pointer leads to.
    Deref(Box<Expr>, Checks),
    /// `e[i]` through a pointer (arrays decay first).
    Index(Box<Expr>, Box<Expr>, Checks),
    /// `e.f` of a structure, union or tuple: index of the member. Members of unnamed aggregates take two steps.
    Member(Box<Expr>, usize),
    /// `e.f` of a tagged union as a value: checked to be the member last written (`Match_Exception`).
    TaggedMember(Box<Expr>, usize, Check),
    /// `&e`; the place is not null and lives in the region of the type.
    Address(Box<Expr>),
    /// `f.g` of a tagged union is the member last written: `tagcheck(e.f)`.
    TagCheck(Box<Expr>, usize),
    /// A conversion, explicit or not.
    Coerce(Coercion, Box<Expr>),
    /// A pointer to a generic function, used with these types in the place of its type parameters.
    Instantiate(Box<Expr>, ThinVec<Ty>),
    /// `(T){..}`, `S{..}`, `$(..)`, a constructor's structure: a value in braces.
    Aggregate(Box<Init>),
    /// A datatype's constructor, as a value of type `datatype T.C` (what `new` allocates and `&` takes the address of).
    Construct(DatatypeId, u32, ThinVec<Expr>),
    /// `sizeof`: a constant where the size is known here, otherwise C's.
    SizeOf(Ty),
    /// `offsetof`.
    OffsetOf(Ty, ThinVec<usize>),
    /// `throw e`.
    Throw(Box<Expr>),
    /// `new e` and its like.
    New(Allocation, Box<Init>),
    /// `malloc(sizeof(T))` and its like: as many `element`s as `count` says, zeroed (`calloc`) or not.
    Alloc {
        /// Which word; for messages.
        word: AllocWord,
        /// Where.
        place: Allocation,
        /// What is allocated.
        element: Ty,
        /// How many (1 if none is given).
        count: Option<Box<Expr>>,
        /// All bytes are zero: `calloc`, and elements that hold pointers.
        zeroed: bool,
    },
    /// `numelts(e)`.
    Numelts(Box<Expr>),
    /// `tagof(e)`: the number of the constructor that a pointer (not null) to a datatype leads to.
    TagOf(Box<Expr>),
    /// `valueof(T)`: a number of the level of types; a constant, or the value of the tag in scope.
    ValueOf(Ty),
    /// `asm`.
    Asm(Box<Asm>),
    /// `assert(e)`: 1, for it does not come back otherwise.
    Assert(Tested, Box<Expr>),
    /// `({ .. e; })`: the last statement's value.
    Statements(Box<Block>),
    /// An alias that inference put around an argument: evaluates `value` (a place), which is consumed during the call.
    InferredAlias {
        /// The fresh region.
        region: TyVar,
        /// The unique pointer's place.
        value: Box<Expr>,
    },
    /// The handle of the current region (`current_handle()`), the heap's handle, a qualifier's handle.
    Handle(Ty),
    /// `__func__` and its like are [`ExprKind::Str`]; this is `__builtin_va_arg` and others that go to C as they are:
    /// the text before, the operands, and the type operand if any.
    Builtin(Symbol, ThinVec<Expr>, Option<Ty>),
}

/// Unary operators on numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `~`
    Complement,
}

/// Where something is allocated.
#[derive(Debug)]
pub struct Allocation {
    /// The handle of the region; `None` is the heap.
    pub region: Option<Box<Expr>>,
    /// The type-level region.
    pub region_ty: Ty,
    /// The alias qualifier of the pointer that comes back: counted objects have a count.
    pub aqual: Ty,
}

/// A call.
#[derive(Debug)]
pub struct Call {
    /// What is called, of function type (or pointer to one that is checked already).
    pub callee: Expr,
    /// The arguments, converted.
    pub args: ThinVec<Expr>,
    /// Typed variable arguments: each of the function's variable argument type, or to be injected.
    pub varargs: Option<CallVarArgs>,
    /// The type of the callee before its type parameters were instantiated, where it is known (globals): what C sees.
    pub declared: Rc<FunctionType>,
    /// What its type parameters became, in order.
    pub instantiation: ThinVec<Ty>,
    /// A format string was checked.
    pub format: Option<Format>,
}

/// The variable arguments of one call.
#[derive(Debug)]
pub struct CallVarArgs {
    /// The element type of the fat pointer that the function gets.
    pub element: Ty,
    /// Values of the element type, or what is injected.
    pub args: ThinVec<Expr>,
    /// For each argument the constructor that wraps it, if the function injects; the element type is a pointer to the datatype.
    pub inject: Option<(DatatypeId, ThinVec<u32>)>,
}

/// `asm`.
#[derive(Debug)]
pub struct Asm {
    /// `volatile`.
    pub is_volatile: bool,
    /// Instructions, strings as written.
    pub template: ThinVec<Symbol>,
    /// Outputs: constraint and place.
    pub outputs: ThinVec<(ThinVec<Symbol>, Expr)>,
    /// Inputs: constraint and value.
    pub inputs: ThinVec<(ThinVec<Symbol>, Expr)>,
    /// Clobbered registers.
    pub clobbers: ThinVec<Symbol>,
}

/// Conversions. The type they give is the node's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coercion {
    /// The representation is the same: regions, qualifiers, `const`, nullable from not null, aggregates by structure.
    Same,
    /// Between numbers, as C does.
    Number,
    /// A place of array type becomes a thin pointer to its first element; a function becomes a pointer to itself.
    Decay,
    /// `*` to `@`: a null check.
    NotNull(Check),
    /// Thin with a known number of elements to fat.
    ThinToFat,
    /// Thin zero-terminated to fat: the length is found by scanning, so that the last element is the zero.
    ScanToFat,
    /// Fat to thin: as many elements as the target type says must be there; `null`: the target may not be null;
    /// a null fat pointer gives null.
    FatToThin(Checks),
    /// Fat zero-terminated to fat that is not: the last element, which must stay 0, is out of bounds now.
    HideZero,
    /// A pointer or handle to a number.
    PointerToInt,
    /// A number known to be zero to a pointer is [`ExprKind::Null`]; this is an integer to a tag.
    IntToTag,
    /// For its effect only: `(void)e`.
    ToVoid,
}

impl Coercion {
    /// Whether a pointer leads to the same object afterwards.
    pub fn gives_same_object(self) -> bool {
        match self {
            Coercion::Same
            | Coercion::NotNull(_)
            | Coercion::ThinToFat
            | Coercion::ScanToFat
            | Coercion::FatToThin(_)
            | Coercion::HideZero => true,
            Coercion::Number | Coercion::Decay | Coercion::PointerToInt | Coercion::IntToTag | Coercion::ToVoid => {
                false
            }
        }
    }
}

impl Checks {
    /// Nothing is to be checked.
    pub const NONE: Checks = Checks { null: Check::Never, bounds: Check::Never, has_next: false };
}

impl Expr {
    /// Whether an access has its bounds checked; `None` for what is no access.
    pub fn bounds_check(&self) -> Option<Check> {
        match self.kind {
            ExprKind::Deref(_, checks) | ExprKind::Index(_, _, checks) => Some(checks.bounds),
            _ => None,
        }
    }

    /// It is zero or NULL, as written.
    pub fn is_zero(&self) -> bool {
        match &self.kind {
            ExprKind::Int(Wide(0)) | ExprKind::Null => true,
            ExprKind::Coerce(_, inner) => inner.is_zero(),
            _ => false,
        }
    }

    /// The function that it names: not a variable that leads to one, and not a pointer that had to be converted.
    pub fn named_function(&self, types: &Types) -> Option<GlobalId> {
        match &self.kind {
            ExprKind::Global(id) if matches!(types.get(self.ty), crate::types::TyKind::Function(_)) => Some(*id),
            ExprKind::Coerce(Coercion::Decay | Coercion::Same, inner) => inner.named_function(types),
            _ => None,
        }
    }

    /// A part that was wrong and has been reported.
    pub fn error(types: &mut Types, span: Span) -> Expr {
        Expr { kind: ExprKind::Error, ty: types.make(crate::types::TyKind::Error), span }
    }
}

impl Declarations {
    /// One more aggregate or datatype is complete; gives what its `completed` is.
    pub fn one_more_complete(&mut self) -> Option<u32> {
        self.complete += 1;
        Some(self.complete)
    }

    /// An aggregate.
    pub fn aggregate(&self, id: AggregateId) -> &Aggregate {
        &self.aggregates[id.0 as usize]
    }

    /// A datatype.
    pub fn datatype(&self, id: DatatypeId) -> &Datatype {
        &self.datatypes[id.0 as usize]
    }

    /// An enumeration.
    pub fn enumeration(&self, id: EnumId) -> &Enum {
        &self.enums[id.0 as usize]
    }

    /// A global.
    pub fn global(&self, id: GlobalId) -> &Global {
        &self.globals[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_small() {
        assert!(size_of::<Expr>() <= 48 && size_of::<Init>() <= 48 && size_of::<Pattern>() <= 40);
        assert!(size_of::<Stmt>() <= 80);
    }
}

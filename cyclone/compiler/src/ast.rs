//! The syntax tree: what was written, nothing more.
//!
//! The parser makes it, later phases only read it. Names are not resolved, defaults (regions, qualifiers, nullability) are not
//! filled in, and what the two dialects spell differently but mean alike has one form. Every node that a message may have to
//! point at has a span. Declarators are already folded: a declaration holds a name and a whole [`Type`].

use crate::source::Span;
use crate::symbol::Symbol;
use std::fmt;
use std::sync::Arc;
use thin_vec::ThinVec;

/// A single name and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name.
    pub name: Symbol,
    /// Where it stands.
    pub span: Span,
}

/// A name with the namespaces written before it: `List::map`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The namespaces as they are written, outermost first: `List`, `A::B`.
    pub qualifier: Option<Symbol>,
    /// The last part.
    pub name: Symbol,
    /// The whole.
    pub span: Span,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.qualifier {
            Some(qualifier) => write!(f, "{qualifier}::{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// A type variable: `` `a::B\U ``. Regions, tags and effects are type variables of their kinds.
#[derive(Clone, Debug)]
pub struct TypeVar {
    /// With the backquote.
    pub name: Symbol,
    /// `::B`, if written.
    pub kind: Option<Ident>,
    /// `\U` or the like, if written.
    pub aqual: Option<Box<Aqual>>,
    /// Where.
    pub span: Span,
}

/// An alias qualifier.
#[derive(Clone, Debug)]
pub enum Aqual {
    /// `ALIASABLE`, `\A`.
    Aliasable,
    /// `UNIQUE`, `\U`.
    Unique,
    /// `REFCNT`, `\RC`.
    Refcnt,
    /// `RESTRICTED`, `\T`.
    Restricted,
    /// `` `q ``.
    Var(Box<TypeVar>),
    /// ``aquals(`a)``.
    Of(Box<Type>),
}

/// Qualifiers of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Quals {
    /// `const`.
    pub is_const: bool,
    /// `volatile`.
    pub is_volatile: bool,
    /// `restrict`.
    pub is_restrict: bool,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// Its own qualifiers.
    pub quals: Quals,
    /// Where.
    pub span: Span,
}

/// Width of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntSize {
    /// `char`.
    Char,
    /// `short`.
    Short,
    /// `int`.
    Int,
    /// `long`.
    Long,
    /// `long long`.
    LongLong,
}

/// Sign of an integer type as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Neither word was written.
    Plain,
    /// `signed`.
    Signed,
    /// `unsigned`.
    Unsigned,
}

/// Width of a floating type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatSize {
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `long double`.
    LongDouble,
}

/// The forms of types. Regions and effects, which the grammar accepts where types are, are among them.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `void`.
    Void,
    /// An integer.
    Int(Sign, IntSize),
    /// A floating number.
    Float(FloatSize),
    /// `_Complex` of a floating number.
    Complex(FloatSize),
    /// A typedef's name with its arguments.
    Named(Path, ThinVec<Type>),
    /// `struct` or `union`, defined here or only named.
    Aggregate(Arc<Aggregate>),
    /// `enum`.
    Enum(Arc<Enum>),
    /// `datatype T<..>`, defined here or only named, or one constructor's type `datatype T.C`.
    Datatype(Arc<Datatype>),
    /// `typeof(e)`.
    TypeOf(Box<Expr>),
    /// `__builtin_va_list`.
    VaList,
    /// A type variable.
    Var(TypeVar),
    /// `_`, or `_::K`: to be inferred.
    Infer(Option<Ident>),
    /// `$(T, U)`.
    Tuple(ThinVec<Param>),
    /// ``region_t<`r>``.
    RegionHandle(Option<Box<Type>>),
    /// `aqual_t<..>`.
    AqualHandle(Aqual),
    /// ``tag_t<`n>``.
    TagHandle(Option<Box<Type>>),
    /// `valueof_t(e)`.
    ValueOf(Box<Expr>),
    /// `@subset(T x | condition)`.
    Subset(Box<Param>, Box<Expr>),
    /// A pointer.
    Pointer(Box<Pointer>),
    /// An array.
    Array(Box<Array>),
    /// A function.
    Function(Box<Function>),
    /// ``{`r, `s}``.
    RegionSet(ThinVec<Type>),
    /// ``regions(`a)``.
    RegionsOf(Box<Type>),
    /// `e1 + e2`, of effects.
    EffectJoin(ThinVec<Type>),
    /// An alias qualifier as a type argument.
    Aqual(Aqual),
}

/// A pointer type.
#[derive(Clone, Debug)]
pub struct Pointer {
    /// What it points to.
    pub target: Type,
    /// `*`, `@` or `?` as written.
    pub sigil: Sigil,
    /// `{n}` or `@numelts(n)`.
    pub bound: Option<Box<Expr>>,
    /// Written qualifiers, in order.
    pub quals: ThinVec<PointerQual>,
    /// Region or effect: `` `r ``, `` `r+`s ``, `_`.
    pub effect: Option<Type>,
    /// `__attribute__`s.
    pub attributes: ThinVec<Attribute>,
}

/// How a pointer was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sigil {
    /// `*`
    Star,
    /// `@`
    At,
    /// `?`
    Question,
}

/// A qualifier written after a pointer's sigil.
#[derive(Clone, Debug)]
pub enum PointerQual {
    /// `@thin`.
    Thin,
    /// `@fat`.
    Fat,
    /// `@zeroterm`.
    ZeroTerm,
    /// `@nozeroterm`.
    NoZeroTerm,
    /// `@notnull`.
    NotNull,
    /// `@nullable`.
    Nullable,
    /// `@autoreleased`.
    Autoreleased,
    /// `@aqual(..)` or its short form.
    Aqual(Aqual),
}

/// An array type.
#[derive(Clone, Debug)]
pub struct Array {
    /// Of what.
    pub element: Type,
    /// How many.
    pub len: Option<Expr>,
    /// `@zeroterm` (true) or `@nozeroterm` (false), if written.
    pub zeroterm: Option<bool>,
}

/// A function type.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// ``f<`a, `r>``.
    pub type_params: ThinVec<Type>,
    /// The result; `None` only while the parser folds a declarator.
    pub result: Option<Type>,
    /// The parameters; `(void)` is none.
    pub params: ThinVec<Param>,
    /// `...` alone, as C has it.
    pub c_varargs: bool,
    /// `... inject T x`.
    pub varargs: Option<Box<VarArgs>>,
    /// After `;`.
    pub effect: Option<Type>,
    /// After `:`.
    pub constraints: ThinVec<Constraint>,
    /// `@requires` and its like.
    pub contracts: ThinVec<Contract>,
    /// `__attribute__`s.
    pub attributes: ThinVec<Attribute>,
}

/// Cyclone's typed variable arguments.
#[derive(Clone, Debug)]
pub struct VarArgs {
    /// `inject` was written: each argument is wrapped in the datatype.
    pub inject: bool,
    /// The parameter.
    pub param: Param,
}

/// One of `@checks`, `@requires`, `@ensures`, `@throws`.
#[derive(Clone, Debug)]
pub struct Contract {
    /// Its word.
    pub kind: ContractKind,
    /// The condition.
    pub condition: Expr,
}

/// The word of a [`Contract`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractKind {
    /// `@checks`.
    Checks,
    /// `@requires`.
    Requires,
    /// `@ensures`.
    Ensures,
    /// `@throws`.
    Throws,
}

/// A constraint on effects or qualifiers.
#[derive(Clone, Debug)]
pub enum Constraint {
    /// ``e <= `r``, and the older ``e > `r``, which says that e outlives `` `r ``.
    Outlives(Type, TypeVar),
    /// `e1 | e2`: they share nothing.
    Disjoint(Type, Type),
    /// ``single(`r)``, with the word as written.
    Named(Ident, Type),
    /// ``RESTRICTED >= `q``.
    QualBound(Aqual, Type),
}

/// A parameter, a member of a tuple, or a part of a `@subset`.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name, if it has one.
    pub name: Option<Ident>,
    /// Its type.
    pub ty: Type,
    /// `__attribute__`s.
    pub attributes: ThinVec<Attribute>,
}

/// `__attribute__((name(argument, ..)))`.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name.
    pub name: Ident,
    /// What is in parentheses.
    pub arguments: ThinVec<Expr>,
}

/// `struct` or `union`.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// A union.
    pub is_union: bool,
    /// `@tagged`.
    pub is_tagged: bool,
    /// Its name.
    pub name: Option<Path>,
    /// Parameters where it is defined, arguments where it is used.
    pub args: ThinVec<Type>,
    /// What is in the braces, if there are any.
    pub body: Option<AggregateBody>,
    /// `__attribute__`s.
    pub attributes: ThinVec<Attribute>,
}

/// The braces of a `struct` or `union`.
#[derive(Clone, Debug)]
pub struct AggregateBody {
    /// ``<`a>`` just after the brace.
    pub existentials: ThinVec<Type>,
    /// After `:`.
    pub constraints: ThinVec<Constraint>,
    /// The members.
    pub fields: ThinVec<Field>,
}

/// A member.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name; none for padding bits and for members that are aggregates without a name.
    pub name: Option<Ident>,
    /// Its type.
    pub ty: Type,
    /// `: 3`.
    pub width: Option<Expr>,
    /// `@requires(..)`, in tagged unions.
    pub requires: Option<Expr>,
    /// `__attribute__`s.
    pub attributes: ThinVec<Attribute>,
}

/// `enum`.
#[derive(Clone, Debug)]
pub struct Enum {
    /// Its name.
    pub name: Option<Path>,
    /// Names and values, if it is defined here.
    pub body: Option<ThinVec<(Path, Option<Expr>)>>,
}

/// `datatype`.
#[derive(Clone, Debug)]
pub struct Datatype {
    /// `@extensible`.
    pub is_extensible: bool,
    /// Its name.
    pub name: Path,
    /// One constructor: `datatype T.C`.
    pub constructor: Option<Path>,
    /// Parameters or arguments.
    pub args: ThinVec<Type>,
    /// The constructors, if it is defined here.
    pub body: Option<ThinVec<Constructor>>,
}

/// A constructor of a datatype.
#[derive(Clone, Debug)]
pub struct Constructor {
    /// `extern` or `static`.
    pub storage: Option<Storage>,
    /// Its name.
    pub name: Path,
    /// What it carries.
    pub params: ThinVec<Param>,
}

/// Storage class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// `auto`.
    Auto,
    /// `register`.
    Register,
    /// `static`.
    Static,
    /// `extern`.
    Extern,
    /// `extern "C"`.
    ExternC,
    /// `typedef`.
    Typedef,
    /// `abstract`.
    Abstract,
}

/// A variable, function, typedef, or a type alone.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Storage classes in the order of writing.
    pub storage: ThinVec<Storage>,
    /// `inline`.
    pub is_inline: bool,
    /// The type before the declarators, with what it defines.
    pub base: Type,
    /// What is declared; may be empty.
    pub declarators: ThinVec<InitDeclarator>,
    /// The whole.
    pub span: Span,
}

/// One declared name.
#[derive(Clone, Debug)]
pub struct InitDeclarator {
    /// The name.
    pub name: Path,
    /// Its whole type.
    pub ty: Type,
    /// Parameters of a typedef: ``typedef .. t<`a>``.
    pub type_params: ThinVec<Type>,
    /// `= e`.
    pub init: Option<Expr>,
    /// `asm("name")`.
    pub asm: Option<Expr>,
    /// `__attribute__`s.
    pub attributes: ThinVec<Attribute>,
}

/// A function with its body.
#[derive(Clone, Debug)]
pub struct FunctionDef {
    /// Storage classes.
    pub storage: ThinVec<Storage>,
    /// `inline`.
    pub is_inline: bool,
    /// The name.
    pub name: Path,
    /// Its type; of kind [`TypeKind::Function`] unless a typedef names it.
    pub ty: Type,
    /// `__attribute__`s.
    pub attributes: ThinVec<Attribute>,
    /// The body.
    pub body: Block,
    /// The whole.
    pub span: Span,
}

/// What stands outside of functions.
#[derive(Clone, Debug)]
pub enum Item {
    /// A declaration.
    Declaration(Box<Declaration>),
    /// A function with body.
    Function(Box<FunctionDef>),
    /// `let p = e;`
    Let(Box<Pattern>, Box<Expr>),
    /// `namespace N { .. }`, or `namespace N;` for all that follows.
    Namespace(Ident, ThinVec<Item>),
    /// `using N { .. }`, or `using N;` for all that follows.
    Using(Path, ThinVec<Item>),
    /// `__noinference__ { .. }`.
    NoInference(ThinVec<Item>),
    /// `extern "C" { .. }` and `extern "C include" { .. }`.
    ExternC(Box<ExternC>),
    /// `__cyclone_port_on__;` and the other three.
    Switch(PortSwitch),
}

/// A switch of a mode of the original compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSwitch {
    /// Porting advice on.
    PortOn,
    /// Porting advice off.
    PortOff,
    /// Tempest on.
    TempestOn,
    /// Tempest off.
    TempestOff,
}

/// A block of C.
#[derive(Clone, Debug)]
pub struct ExternC {
    /// `"C include"`: definitions stay C's; only what is exported is visible.
    pub include: bool,
    /// The C.
    pub items: ThinVec<Item>,
    /// `cyclone_override { .. }`.
    pub overrides: ThinVec<Item>,
    /// `export { .. }`; `None` if it was not written.
    pub exports: Option<Exports>,
    /// `cyclone_hide { .. }`.
    pub hidden: ThinVec<Path>,
}

/// What a block of C exports.
#[derive(Clone, Debug)]
pub enum Exports {
    /// `*`.
    All,
    /// These.
    Names(ThinVec<Path>),
}

/// `{ .. }`.
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements.
    pub statements: ThinVec<Stmt>,
    /// With the braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
}

/// The forms of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `;`
    Empty,
    /// An expression.
    Expr(Expr),
    /// A block.
    Block(Block),
    /// A declaration.
    Declaration(Box<Declaration>),
    /// A function inside a function.
    Function(Box<FunctionDef>),
    /// `let p = e;`
    Let(Box<Pattern>, Expr),
    /// `let x, y;`
    LetNames(ThinVec<Ident>),
    /// ``region<`r> h = open(k);``
    Region(Box<RegionDecl>),
    /// `if`.
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// `switch`.
    Switch(Expr, ThinVec<Clause>),
    /// `try s catch { .. }`.
    Try(Box<Stmt>, ThinVec<Clause>),
    /// `while`.
    While(Expr, Box<Stmt>),
    /// `do .. while`.
    DoWhile(Box<Stmt>, Expr),
    /// `for`.
    For(Box<For>),
    /// `goto`.
    Goto(Ident),
    /// `L: s`.
    Labelled(Ident, Box<Stmt>),
    /// `continue`.
    Continue,
    /// `break`.
    Break,
    /// `return`.
    Return(Option<Expr>),
    /// `fallthru(..)`.
    Fallthru(ThinVec<Expr>),
}

/// The declaration of a region.
#[derive(Clone, Debug)]
pub struct RegionDecl {
    /// `` `r ``, if it was written.
    pub region: Option<TypeVar>,
    /// The handle's name.
    pub handle: Ident,
    /// `open(k)`.
    pub open: Option<Expr>,
    /// The older form, with the statement in which it lives.
    pub body: Option<Stmt>,
}

/// A `for` loop.
#[derive(Clone, Debug)]
pub struct For {
    /// First part, a declaration or an expression statement.
    pub init: Option<Stmt>,
    /// Second part.
    pub condition: Option<Expr>,
    /// Third part.
    pub step: Option<Expr>,
    /// The body.
    pub body: Stmt,
}

/// A clause of `switch` or `catch`.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The pattern; `None` is `default`.
    pub pattern: Option<Pattern>,
    /// After `&&`.
    pub guard: Option<Expr>,
    /// The statements; empty means falling through.
    pub body: ThinVec<Stmt>,
    /// From `case` to `:`.
    pub span: Span,
}

/// A pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What it is.
    pub kind: PatternKind,
    /// Where.
    pub span: Span,
}

/// The forms of patterns.
#[derive(Clone, Debug)]
pub enum PatternKind {
    /// `_`
    Wild,
    /// A name: a variable, or a constructor or constant without arguments.
    Name(Path),
    /// `x as p`
    As(Ident, Box<Pattern>),
    /// `*x`, and `*x as p`: a reference to the matched place.
    Reference(Ident, Option<Box<Pattern>>),
    /// `&p`
    Deref(Box<Pattern>),
    /// A constant expression.
    Const(Box<Expr>),
    /// `$(p, ..)`
    Tuple(ThinVec<FieldPattern>, bool),
    /// `D(p, ..)`; true if it ends in `...`.
    Constructor(Path, ThinVec<Pattern>, bool),
    /// ``S{<`a> .f = p, ..}``; true if it ends in `...`.
    Struct(Option<Path>, ThinVec<Type>, ThinVec<FieldPattern>, bool),
    /// ``alias<`r> T x``
    Alias(Ident, Box<TypeVar>, Box<Type>, Ident),
    /// ``x<`n>`` and `x<_>`: a tag.
    Tag(Ident, Option<Box<TypeVar>>),
}

/// A pattern for a member.
#[derive(Clone, Debug)]
pub struct FieldPattern {
    /// `.f =` or `[n] =`.
    pub designators: ThinVec<Designator>,
    /// The pattern.
    pub pattern: Pattern,
}

/// Which part an initialiser is for.
#[derive(Clone, Debug)]
pub enum Designator {
    /// `[n]`
    Index(Expr),
    /// `.f`
    Field(Ident),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// Binary operators that take and give values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the operators' own")]
pub enum BinOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    LogAnd,
    LogOr,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the operators' own")]
pub enum UnOp {
    Plus,
    Minus,
    Not,
    Complement,
    Deref,
    Address,
    PreInc,
    PreDec,
    PostInc,
    PostDec,
}

/// Where something is allocated.
#[derive(Clone, Debug)]
pub enum Place {
    /// The heap.
    Heap,
    /// In the region of this handle (`rnew`, `rmalloc`).
    Region(Box<Expr>),
    /// With this qualifier (`qnew`); the second is the region, for `qmalloc`.
    Qualified(Box<Expr>, Option<Box<Expr>>),
}

/// The words that allocate bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocWord {
    /// `malloc`, `rmalloc`, `qmalloc`.
    Malloc,
    /// `rmalloc_inline`.
    Inline,
    /// `rvmalloc`: characters that may hold anything.
    Bytes,
    /// `calloc`, `rcalloc`, `qcalloc`.
    Calloc,
}

/// `malloc(n)` and its like.
#[derive(Clone, Debug)]
pub struct Alloc {
    /// The word.
    pub word: AllocWord,
    /// Where.
    pub place: Place,
    /// How many, for `calloc`.
    pub count: Option<Expr>,
    /// How many bytes, or how many for one.
    pub size: Expr,
}

/// ``S{<T> e, .f = e}``.
#[derive(Clone, Debug)]
pub struct StructValue {
    /// The structure.
    pub path: Path,
    /// The types that stand for what it binds.
    pub types: ThinVec<Type>,
    /// The members.
    pub list: InitList,
}

/// An initialiser in braces.
pub type InitList = ThinVec<(ThinVec<Designator>, Expr)>;

/// The forms of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A name.
    Name(Path),
    /// An integer as written.
    Int(Symbol),
    /// A floating number as written.
    Float(Symbol),
    /// A character as written, with its quotes; true if wide.
    Char(Symbol, bool),
    /// Adjacent strings as written, with their quotes; true if wide.
    Str(ThinVec<Symbol>, bool),
    /// `NULL`.
    Null,
    /// A unary operator.
    Unary(UnOp, Box<Expr>),
    /// A binary operator.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `a = b`, `a += b`.
    Assign(Option<BinOp>, Box<Expr>, Box<Expr>),
    /// `a :=: b`.
    Swap(Box<Expr>, Box<Expr>),
    /// `a ? b : c`.
    Conditional(Box<[Expr; 3]>),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// `f(a, b)`.
    Call(Box<Expr>, ThinVec<Expr>),
    /// `a[i]`.
    Index(Box<Expr>, Box<Expr>),
    /// `a.f`.
    Member(Box<Expr>, Ident),
    /// `a->f`.
    Arrow(Box<Expr>, Ident),
    /// `(T)e`.
    Cast(Box<Type>, Box<Expr>),
    /// `(T){..}`.
    Compound(Box<Type>, InitList),
    /// `sizeof(T)`.
    SizeOfType(Box<Type>),
    /// `sizeof e`.
    SizeOfExpr(Box<Expr>),
    /// `offsetof(T, f.g)`.
    OffsetOf(Box<Type>, ThinVec<Ident>),
    /// `throw e`.
    Throw(Box<Expr>),
    /// `new e`, `rnew(h) e`, `qnew(q) e`.
    New(Box<(Place, Expr)>),
    /// `malloc(n)` and its like.
    Alloc(Box<Alloc>),
    /// `numelts(e)`.
    Numelts(Box<Expr>),
    /// `tagof(e)`.
    TagOf(Box<Expr>),
    /// `tagcheck(e.f)`; the operand is a member access.
    TagCheck(Box<Expr>),
    /// `valueof(T)`.
    ValueOf(Box<Type>),
    /// `asm(..)`.
    Asm(Box<Asm>),
    /// `assert(e)`, `@assert(e)`, `@assert_false(e)`.
    Assert(Tested, Box<Expr>),
    /// `__cyclone_pragma__(x)`.
    Pragma(Ident),
    /// `e<>`: without instantiation.
    NoInstantiation(Box<Expr>),
    /// `e@<T, U>`.
    Instantiate(Box<Expr>, ThinVec<Type>),
    /// ``S{<T> e, .f = e}``.
    Struct(Box<StructValue>),
    /// `$(a, b)`.
    Tuple(ThinVec<Expr>),
    /// `{a, [3] = b}`.
    Init(InitList),
    /// `{for i < n : e}`.
    For(Ident, Box<(Expr, Expr)>),
    /// `{for i < n : T}`: the values come later.
    ForType(Ident, Box<(Expr, Type)>),
    /// `({ .. })`.
    Statements(Block),
}

/// How an assertion is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// `assert`: always at run time.
    Run,
    /// `@assert`: at run time unless proved.
    Proved,
    /// `@assert_false`.
    False,
}

/// `asm`.
#[derive(Clone, Debug)]
pub struct Asm {
    /// `volatile`.
    pub is_volatile: bool,
    /// The instructions, strings as written.
    pub template: ThinVec<Symbol>,
    /// Outputs.
    pub outputs: ThinVec<(ThinVec<Symbol>, Expr)>,
    /// Inputs.
    pub inputs: ThinVec<(ThinVec<Symbol>, Expr)>,
    /// Clobbered registers.
    pub clobbers: ThinVec<Symbol>,
}

impl Type {
    /// A type without qualifiers.
    pub fn new(kind: TypeKind, span: Span) -> Type {
        Type { kind, quals: Quals::default(), span }
    }

    /// `int`.
    pub fn int(span: Span) -> Type {
        Type::new(TypeKind::Int(Sign::Plain, IntSize::Int), span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_small() {
        assert!(size_of::<Expr>() <= 32, "an expression is passed on by every level of the parser");
        assert!(size_of::<Stmt>() <= 56 && size_of::<Pattern>() <= 56 && size_of::<Type>() <= 56);
    }
}

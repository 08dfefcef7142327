//! Types as the checker knows them: all defaults filled in, unknown parts as inference variables.
//!
//! Everything that can stand in a type is a [`Ty`]: types proper, effects (sets of regions), alias qualifiers, booleans and
//! bounds of pointers; [`Kind`] tells them apart. A [`Ty`] is a number; equal terms have equal numbers ([`Types::make`] keeps each
//! term once), so that a finished type is compared by its number.
//!
//! # Inference variables
//!
//! [`Types::fresh`] makes one; [`unify`] binds it, once. Bindings are undone by [`Types::rollback`], which alias inference needs
//! (it tries a typing and takes it back). **Whoever looks at a term calls [`Types::get`]**, which follows bindings at the head.
//! A variable has a *level*: the number of binders of type variables around the place it was made at. It is never bound to a term
//! with a [`TyVar`] of a higher level, so that no type variable escapes from where it is bound (existential packages, regions
//! of blocks, function bodies).
//!
//! # Defaults (1.0)
//!
//! The phase that reads types as written (`check::types`) fills in: pointers are thin, nullable, of one element, aliasable; a
//! `char` target makes them zero-terminated; regions by position (parameters fresh, results, members and globals the heap,
//! bodies inferred).

pub mod layout;
pub mod print;
pub mod rebuild;
pub mod settle;
pub mod unify;

pub use rebuild::{Substitution, children};

use crate::ast::{FloatSize, IntSize};
use crate::hash::{HashMap, HashSet};
use crate::source::Span;
use crate::symbol::Symbol;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;

/// A type, effect, qualifier, boolean, bound or number at the level of types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Ty(u32);

/// Number of an inference variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Evar(u32);

/// A type variable: bound by a function, an aggregate, a datatype, a block (its region), or a pattern that opens a package.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct TyVar(pub u32);

/// A `struct` or `union`: an index into [`crate::tree::Declarations::aggregates`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AggregateId(pub u32);

/// A datatype: an index into [`crate::tree::Declarations::datatypes`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DatatypeId(pub u32);

/// An `enum`: an index into [`crate::tree::Declarations::enums`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EnumId(pub u32);

/// The constraint of a `@subset` type: an index into [`crate::tree::Declarations::constraints`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SubsetId(pub u32);

/// What sort of thing a [`Ty`] is. Types proper are ordered: [`Kind::Boxed`] is a [`Kind::Memory`] is a [`Kind::Any`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `A`: any type, also one whose size is not known (abstract).
    Any,
    /// `M`: a type of known size.
    Memory,
    /// `B`: a type that fits a general register: thin pointers, `int`, `long`, enumerations, handles.
    Boxed,
    /// `E` (`R` in the old dialect): a set of regions.
    Effect,
    /// `I`: a number.
    Int,
    /// `Q`: an alias qualifier.
    Aqual,
    /// True or false: nullable, zero-terminated.
    Bool,
    /// A pointer's bound: fat, or a number of elements.
    Bound,
}

/// A constant alias qualifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Alias {
    /// May be copied; is not freed by itself.
    Aliasable,
    /// The only pointer to its object.
    Unique,
    /// One of several counted pointers.
    Refcnt,
    /// Any of the above: may be neither copied nor freed.
    Restricted,
}

/// `const`, `volatile`, `restrict`.
pub use crate::ast::Quals;

/// A pointer type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// What it points to.
    pub target: Ty,
    /// Qualifiers of what it points to.
    pub quals: Quals,
    /// Of kind [`Kind::Effect`]: the regions it may point into.
    pub region: Ty,
    /// Of kind [`Kind::Aqual`].
    pub aqual: Ty,
    /// Of kind [`Kind::Bool`].
    pub nullable: Ty,
    /// Of kind [`Kind::Bound`].
    pub bound: Ty,
    /// Of kind [`Kind::Bool`].
    pub zeroterm: Ty,
    /// Of kind [`Kind::Bool`]: an autoreleased counted pointer.
    pub autoreleased: Ty,
}

impl Hash for Pointer {
    /// Two parts at a time: pointers are looked for more often than all other terms.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair = |one: Ty, two: Ty| u64::from(one.0) << 32 | u64::from(two.0);
        let Quals { is_const, is_volatile, is_restrict } = self.quals;
        let quals = u64::from(is_const) | u64::from(is_volatile) << 1 | u64::from(is_restrict) << 2;
        state.write_u64(pair(self.target, self.region));
        state.write_u64(pair(self.aqual, self.nullable));
        state.write_u64(pair(self.bound, self.zeroterm));
        state.write_u64(u64::from(self.autoreleased.0) << 3 | quals);
    }
}

/// An array type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Array {
    /// Of what.
    pub element: Ty,
    /// Qualifiers of the elements.
    pub quals: Quals,
    /// Of kind [`Kind::Int`]; `None` where the length is not known (`extern int a[]`, a parameter before it decays).
    pub len: Option<Ty>,
    /// Of kind [`Kind::Bool`].
    pub zeroterm: Ty,
}

/// A parameter of a function, or a component of a tuple.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// For messages only: names do not make types differ (see [`unify`]).
    pub name: Option<Symbol>,
    /// Its type.
    pub ty: Ty,
    /// Its qualifiers.
    pub quals: Quals,
}

/// A function's type, with all that is bound in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Function {
    /// Bound here; replaced by fresh inference variables when the function is used.
    pub type_params: Vec<TyVar>,
    /// The result.
    pub result: Ty,
    /// The parameters, arrays and functions already pointers.
    pub params: Vec<Member>,
    /// `...` as C has it.
    pub c_varargs: bool,
    /// `... inject T`.
    pub varargs: Option<VarArgs>,
    /// The regions that must be live for a call.
    pub effect: Ty,
    /// What must hold of the type parameters.
    pub constraints: Vec<Constraint>,
    /// What `__attribute__`s say.
    pub attributes: FnAttributes,
}

/// Cyclone's typed variable arguments: they arrive as a fat pointer to their common type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VarArgs {
    /// Its name in the body.
    pub name: Option<Symbol>,
    /// The type of one argument.
    pub ty: Ty,
    /// Each argument is wrapped in the constructor of the datatype that takes it.
    pub inject: bool,
}

/// A constraint among effects or qualifiers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Constraint {
    /// The first set is part of the second (`e <= f`).
    Subset(Ty, Ty),
    /// They share nothing.
    Disjoint(Ty, Ty),
    /// The effect is exactly one region.
    Single(Ty),
    /// The first qualifier is a bound of the second: ``RESTRICTED >= `q``.
    AqualBound(Ty, Ty),
}

/// What is known of a function by its attributes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FnAttributes {
    /// It does not come back.
    pub noreturn: bool,
    /// Parameters (from 0) whose unique argument is consumed: `consume(n)`.
    pub consume: Vec<usize>,
    /// Parameters (from 0) that are not consumed though the dialect's default says so: `noconsume(n)`.
    pub noconsume: Vec<usize>,
    /// Parameters (from 0): `noliveunique(n)`, the argument has no live unique pointers in it.
    pub noliveunique: Vec<usize>,
    /// Parameters (from 0) that must be initialised by the function: `initializes(n)`.
    pub initializes: Vec<usize>,
    /// `format(printf, format, first)`, as parameter numbers from 0 (first: `None` for none).
    pub format: Option<(Format, usize, Option<usize>)>,
    /// The rest, passed on to the C compiler: names with constant arguments as they are written.
    pub other: Vec<Symbol>,
}

impl FnAttributes {
    /// How an attribute begins that [`FnAttributes::inline_header`] is about.
    pub const INLINE: &str = "cyc_inline(\"";

    /// Whether a caller that goes by `other` treats arguments rightly: both consume and free the same, and what `other` promises to
    /// initialise is initialised.
    pub fn keeps(&self, other: &FnAttributes) -> bool {
        let within = |some: &[usize], all: &[usize]| some.iter().all(|number| all.contains(number));
        let same = |a: &[usize], b: &[usize]| within(a, b) && within(b, a);
        same(&self.consume, &other.consume)
            && same(&self.noliveunique, &other.noliveunique)
            && within(&other.initializes, &self.initializes)
    }

    /// The header of C that defines a function of the library inline: `__attribute__((cyc_inline("..")))`, as seen from the
    /// run time's directory.
    pub fn inline_header(&self) -> Option<&'static str> {
        self.other.iter().find_map(|word| word.as_str().strip_prefix(Self::INLINE)?.strip_suffix("\")"))
    }
}

/// Which family of format strings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// `printf`.
    Printf,
    /// `scanf`.
    Scanf,
}

/// The forms of terms. They are told apart all the time: which one it is stands in a byte of its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum TyKind {
    /// Not known yet.
    Evar(Evar),
    /// Something was wrong with it and has been reported; it agrees with everything.
    Error,
    /// A type variable, of any kind.
    Var(TyVar),

    /// `void`.
    Void,
    /// `_Bool`.
    Bool,
    /// An integer; the sign of `char` is [`Signedness::Plain`] where none is written, everything else is signed or unsigned.
    Int(Signedness, IntSize),
    /// A floating number.
    Float(FloatSize),
    /// A complex number.
    Complex(FloatSize),
    /// `__builtin_va_list`.
    VaList,
    /// An enumeration.
    Enum(EnumId),
    /// A pointer.
    Pointer(Pointer),
    /// An array.
    Array(Array),
    /// A function.
    Function(Rc<Function>),
    /// `$(..)`.
    Tuple(Rc<[Member]>),
    /// `struct` or `union` with its arguments.
    Aggregate(AggregateId, Rc<[Ty]>),
    /// A datatype with its arguments.
    Datatype(DatatypeId, Rc<[Ty]>),
    /// One constructor's type, `datatype T.C`: index of the constructor.
    Constructor(DatatypeId, u32, Rc<[Ty]>),
    /// A typedef that does not say what it stands for, with its arguments.
    Opaque(Symbol, Kind, Rc<[Ty]>),
    /// `@subset(T x | condition)`: the constraint and `T`. Only `check` sees it: see [`Types::forget_constraints`].
    Subset(SubsetId, Ty),
    /// ``region_t<`r>``.
    RegionHandle(Ty),
    /// ``tag_t<`n>``.
    TagHandle(Ty),
    /// ``aqual_t<`q>``.
    AqualHandle(Ty),

    /// `` `H ``.
    Heap,
    /// A region together with the alias qualifier of the pointers into it: an argument where a parameter of kind `TR` is wanted, and what
    /// `` `U `` and `` `RC `` are (the heap, with a qualifier). Where the parameter is a pointer's region, the pointer has both. No pointer
    /// has it as its region.
    Place(Ty, Ty),
    /// A set of regions: flat, sorted, without repetition, never of one element; empty is `{}`.
    Join(Rc<[Ty]>),
    /// ``regions(`a)``; of a known type it is replaced by the type's regions.
    RegionsOf(Ty),

    /// An alias qualifier.
    Aqual(Alias),
    /// ``aquals(`a)``; of a known type it is replaced by that type's qualifier.
    AqualsOf(Ty),

    /// True.
    True,
    /// False.
    False,

    /// Bound of a fat pointer.
    Fat,
    /// Bound of a thin pointer; of kind [`Kind::Int`].
    Thin(Ty),
    /// A number.
    Nat(u64),
    /// The size in bytes of a type that is not known yet; of a known type it is replaced by the number.
    SizeOf(Ty),
}

/// Sign of an integer type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signedness {
    /// `char`.
    Plain,
    /// Signed.
    Signed,
    /// Unsigned.
    Unsigned,
}

/// What is known of a type variable.
#[derive(Clone, Debug)]
pub struct TyVarInfo {
    /// With its backquote.
    pub name: Symbol,
    /// Its kind.
    pub kind: Kind,
    /// For types proper: the bound of ``aquals(`a)``; `Aliasable` unless written.
    pub alias: Alias,
    /// Depth of its binder; see the module's comment.
    pub level: u32,
    /// Where it is bound.
    pub span: Span,
}

impl TyVarInfo {
    /// The name of a parameter that nobody wrote.
    pub fn unwritten_name(number: usize) -> Symbol {
        Symbol::new(&format!("`_{number}"))
    }

    /// Its name for messages: nothing that only the compiler knows.
    pub fn shown(&self) -> &'static str {
        let name = self.name.as_str();
        let is_unwritten = name.strip_prefix("`_").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        if is_unwritten { "_" } else { name }
    }
}

#[derive(Clone, Debug)]
struct EvarInfo {
    kind: Kind,
    level: u32,
    binding: Option<Ty>,
    /// Bound of aliasability for types proper: an inference variable for an aliasable type variable takes no unique pointer.
    alias: Alias,
    /// The parameter that it takes the place of, for messages.
    stands_for: Option<TyVar>,
}

/// How far bindings have come; see [`Types::snapshot`].
#[derive(Clone, Copy, Debug)]
pub struct Snapshot(usize);

#[derive(Clone, Debug)]
enum Undo {
    Bound(Evar),
    Changed(Evar, u32, Kind, Alias),
}

/// What can still change in a term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Firmness {
    /// It has inference variables, or depends on what a type will turn out to be.
    Open,
    /// It has type variables: only a substitution changes it.
    Settled,
    /// Nothing.
    Fixed,
}

/// Places for terms that are one word.
const WORDS: usize = 8;

/// The place of a term that is one of the most frequent words.
fn word(kind: &TyKind) -> Option<usize> {
    Some(match kind {
        TyKind::Heap => 0,
        TyKind::True => 1,
        TyKind::False => 2,
        TyKind::Fat => 3,
        TyKind::Aqual(Alias::Aliasable) => 4,
        TyKind::Int(Signedness::Signed, IntSize::Int) => 5,
        TyKind::Void => 6,
        TyKind::Error => 7,
        _ => return None,
    })
}

/// All terms of a translation unit, and the bindings of inference variables.
#[derive(Debug, Default)]
pub struct Types {
    terms: Vec<TyKind>,
    firmness: Vec<Firmness>,
    /// Terms that are one word, found without hashing; see [`word`].
    words: [Option<Ty>; WORDS],
    /// The hash and number of each term.
    numbers: HashTable<(u64, Ty)>,
    evars: Vec<EvarInfo>,
    vars: Vec<TyVarInfo>,
    undo: Vec<Undo>,
    /// Variables of 0.8's kinds `TR` and `UR`: a pointer into such a region has the qualifier that goes with it.
    places: HashSet<TyVar>,
    layouts: HashMap<AggregateId, layout::Layout>,
    /// See [`Types::forget_constraints`].
    is_unconstrained: bool,
    no_arguments: Rc<[Ty]>,
}

impl Ty {
    /// Terms are numbered from 0 in the order in which they are made.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Types {
    /// With room for the terms that a text of so many bytes needs, mostly.
    pub fn for_text(bytes: usize) -> Types {
        let mut types = Types::default();
        types.terms.reserve(bytes / 16);
        types.firmness.reserve(bytes / 16);
        types.evars.reserve(bytes / 16);
        types.numbers.reserve(bytes / 32, |&(hash, _)| hash);
        types
    }

    /// The arguments of what has no parameters.
    pub fn no_arguments(&self) -> Rc<[Ty]> {
        self.no_arguments.clone()
    }

    /// The number of a term. Joins of effects are made by [`Types::join`].
    pub fn make(&mut self, kind: TyKind) -> Ty {
        let Some(word) = word(&kind) else { return self.find_or_add(kind) };
        if let Some(known) = self.words[word] {
            return known;
        }
        let ty = self.find_or_add(kind);
        self.words[word] = Some(ty);
        ty
    }

    fn find_or_add(&mut self, kind: TyKind) -> Ty {
        let hash = FxBuildHasher.hash_one(&kind);
        let terms = &self.terms;
        let same = |&(other, ty): &(u64, Ty)| other == hash && terms[ty.0 as usize] == kind;
        if let Some(&(_, known)) = self.numbers.find(hash, same) {
            return known;
        }
        let firmness = self.firmness_of(&kind);
        let ty = self.add(kind, firmness);
        self.numbers.insert_unique(hash, (hash, ty), |&(hash, _)| hash);
        ty
    }

    fn add(&mut self, kind: TyKind, firmness: Firmness) -> Ty {
        let ty = Ty(self.terms.len() as u32);
        self.terms.push(kind);
        self.firmness.push(firmness);
        ty
    }

    fn firmness_of(&self, kind: &TyKind) -> Firmness {
        match kind {
            TyKind::Evar(_) | TyKind::SizeOf(_) | TyKind::Subset(..) => Firmness::Open,
            TyKind::Var(_) => Firmness::Settled,
            TyKind::RegionsOf(of) if matches!(self.terms[of.index()], TyKind::Var(_)) => Firmness::Settled,
            // Whether a region says how pointers may be aliased may become known later.
            TyKind::AqualsOf(of) => match self.terms[of.index()] {
                TyKind::Var(var) if self.var(var).kind != Kind::Effect => Firmness::Settled,
                _ => Firmness::Open,
            },
            TyKind::RegionsOf(_) => Firmness::Open,
            kind => children(kind).map(|child| self.firmness[child.index()]).min().unwrap_or(Firmness::Fixed),
        }
    }

    /// Whether a term is what it is for ever: it has no variables of any sort.
    pub fn is_fixed(&self, ty: Ty) -> bool {
        self.firmness[ty.index()] == Firmness::Fixed
    }

    /// Whether a term has no inference variables, bound or not: only a substitution can change it.
    pub fn is_settled(&self, ty: Ty) -> bool {
        self.firmness[ty.index()] >= Firmness::Settled
    }

    /// The term, with a bound inference variable at its head followed.
    #[inline(always)]
    pub fn get(&self, ty: Ty) -> &TyKind {
        match &self.terms[ty.index()] {
            TyKind::Evar(_) | TyKind::Subset(..) => &self.terms[self.followed(ty).index()],
            kind => kind,
        }
    }

    /// `ty` without bound inference variables at its head.
    #[inline(always)]
    pub fn head(&self, ty: Ty) -> Ty {
        match self.terms[ty.index()] {
            TyKind::Evar(_) | TyKind::Subset(..) => self.followed(ty),
            _ => ty,
        }
    }

    fn followed(&self, mut ty: Ty) -> Ty {
        loop {
            ty = match self.terms[ty.0 as usize] {
                TyKind::Evar(evar) => match self.evars[evar.0 as usize].binding {
                    Some(next) => next,
                    None => return ty,
                },
                TyKind::Subset(_, base) if self.is_unconstrained => base,
                _ => return ty,
            }
        }
    }

    /// From now on a constrained type is what it constrains: its conditions have become expressions.
    pub fn forget_constraints(&mut self) {
        self.is_unconstrained = true;
    }

    /// A new inference variable.
    pub fn fresh(&mut self, kind: Kind, level: u32) -> Ty {
        self.fresh_bounded(kind, level, Alias::Aliasable)
    }

    /// A new inference variable for types whose alias qualifier is bounded by `alias`.
    pub fn fresh_bounded(&mut self, kind: Kind, level: u32, alias: Alias) -> Ty {
        self.add_variable(EvarInfo { kind, level, binding: None, alias, stands_for: None })
    }

    /// A new inference variable for a type parameter; a place is two of them.
    pub fn fresh_for(&mut self, param: TyVar, level: u32) -> Ty {
        let TyVarInfo { kind, alias, .. } = self.vars[param.0 as usize];
        if self.is_place(param) {
            let region = self.fresh_bounded(Kind::Effect, level, Alias::Restricted);
            let aqual = self.fresh_bounded(Kind::Aqual, level, alias);
            return self.make(TyKind::Place(region, aqual));
        }
        self.add_variable(EvarInfo { kind, level, binding: None, alias, stands_for: Some(param) })
    }

    /// Nobody else makes a term of a new variable, so that none has to be found.
    fn add_variable(&mut self, info: EvarInfo) -> Ty {
        let evar = Evar(self.evars.len() as u32);
        self.evars.push(info);
        self.add(TyKind::Evar(evar), Firmness::Open)
    }

    /// The parameter that an inference variable was made for.
    pub fn evar_stands_for(&self, evar: Evar) -> Option<TyVar> {
        self.evars[evar.0 as usize].stands_for
    }

    /// A new type variable.
    pub fn new_var(&mut self, info: TyVarInfo) -> TyVar {
        self.vars.push(info);
        TyVar(self.vars.len() as u32 - 1)
    }

    /// What is known of a type variable.
    pub fn var(&self, var: TyVar) -> &TyVarInfo {
        &self.vars[var.0 as usize]
    }

    /// For the phase that infers kinds of type variables from their uses.
    pub fn var_mut(&mut self, var: TyVar) -> &mut TyVarInfo {
        &mut self.vars[var.0 as usize]
    }

    /// Whether a variable stands for a region together with the alias qualifier of the pointers into it.
    pub fn is_place(&self, var: TyVar) -> bool {
        self.places.contains(&var)
    }

    /// Says what [`Types::is_place`] answers.
    pub fn set_place(&mut self, var: TyVar, is_place: bool) {
        if is_place {
            self.places.insert(var);
        } else {
            self.places.remove(&var);
        }
    }

    /// The level of an unbound inference variable.
    pub fn evar_level(&self, evar: Evar) -> u32 {
        self.evars[evar.0 as usize].level
    }

    /// The kind of an unbound inference variable.
    pub fn evar_kind(&self, evar: Evar) -> Kind {
        self.evars[evar.0 as usize].kind
    }

    /// The bound of the alias qualifier of what an unbound inference variable may become.
    pub fn evar_alias(&self, evar: Evar) -> Alias {
        self.evars[evar.0 as usize].alias
    }

    /// Binds an unbound inference variable. [`unify`] checks levels, kinds and cycles before it calls this.
    pub fn bind(&mut self, evar: Evar, ty: Ty) {
        debug_assert!(self.evars[evar.0 as usize].binding.is_none(), "bound twice");
        self.evars[evar.0 as usize].binding = Some(ty);
        self.undo.push(Undo::Bound(evar));
    }

    /// Restricts an unbound inference variable: what it becomes is bound at `level` at most, is of `kind` and within `alias`.
    pub fn restrict(&mut self, evar: Evar, level: u32, kind: Kind, alias: Alias) {
        let info = &mut self.evars[evar.0 as usize];
        if (info.level, info.kind, info.alias) != (level, kind, alias) {
            self.undo.push(Undo::Changed(evar, info.level, info.kind, info.alias));
            (info.level, info.kind, info.alias) = (level, kind, alias);
        }
    }

    /// Remembers all bindings.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.undo.len())
    }

    /// Takes back all bindings made since.
    pub fn rollback(&mut self, snapshot: Snapshot) {
        while self.undo.len() > snapshot.0 {
            match self.undo.pop() {
                Some(Undo::Bound(evar)) => self.evars[evar.0 as usize].binding = None,
                Some(Undo::Changed(evar, level, kind, alias)) => {
                    let info = &mut self.evars[evar.0 as usize];
                    (info.level, info.kind, info.alias) = (level, kind, alias);
                }
                None => unreachable!("the loop's condition says that there is one"),
            }
        }
    }

    /// The union of effects: flat, sorted, each once; a single one stays itself.
    pub fn join(&mut self, effects: impl IntoIterator<Item = Ty>) -> Ty {
        let mut set = Vec::new();
        let mut work: Vec<Ty> = effects.into_iter().collect();
        while let Some(effect) = work.pop() {
            let effect = self.head(effect);
            match self.get(effect) {
                TyKind::Join(parts) => work.extend(parts.iter().copied()),
                TyKind::RegionsOf(of) => {
                    let of = self.head(*of);
                    if matches!(self.get(of), TyKind::Evar(_) | TyKind::Var(_)) {
                        set.push(self.make(TyKind::RegionsOf(of)));
                    } else {
                        work.extend(self.regions(of));
                    }
                }
                TyKind::Place(region, _) => work.push(*region),
                TyKind::Opaque(name, kind, args) => {
                    let (name, kind, args) = (*name, *kind, args.clone());
                    let args = args.iter().map(|&arg| self.resolve(arg)).collect();
                    set.push(self.make(TyKind::Opaque(name, kind, args)));
                }
                _ => set.push(effect),
            }
        }
        set.sort_unstable();
        set.dedup();
        if set.len() == 1 { set[0] } else { self.make(TyKind::Join(set.into())) }
    }

    /// The parts of an effect: regions, variables of kind effect, and ``regions(`a)`` of unknown types.
    pub fn effect_parts(&mut self, effect: Ty) -> Vec<Ty> {
        let mut parts = Vec::new();
        self.add_effect_parts(effect, &mut parts);
        parts
    }

    /// Adds the parts of an effect to `parts`.
    pub fn add_effect_parts(&mut self, effect: Ty, parts: &mut Vec<Ty>) {
        let head = self.head(effect);
        match &self.terms[head.0 as usize] {
            TyKind::Heap | TyKind::Var(_) | TyKind::Evar(_) => return parts.push(head),
            TyKind::Join(flat) if self.is_settled(head) => return parts.extend_from_slice(flat),
            _ => {}
        }
        let flat = self.join([head]);
        match self.get(flat) {
            TyKind::Join(flat) => parts.extend_from_slice(flat),
            _ => parts.push(flat),
        }
    }

    /// The regions that occur in a type: what ``regions(`a)`` becomes when `` `a `` becomes `ty`.
    pub fn regions(&mut self, ty: Ty) -> Vec<Ty> {
        let ty = self.head(ty);
        let mut out = Vec::new();
        match self.get(ty).clone() {
            TyKind::Evar(_) | TyKind::Var(_) => match self.kind(ty) {
                Kind::Effect => out.push(ty),
                Kind::Any | Kind::Memory | Kind::Boxed => out.push(self.make(TyKind::RegionsOf(ty))),
                Kind::Int | Kind::Aqual | Kind::Bool | Kind::Bound => {}
            },
            TyKind::Heap | TyKind::RegionsOf(_) | TyKind::Opaque(_, Kind::Effect, _) => out.push(ty),
            TyKind::Place(region, _) => out.extend(self.regions(region)),
            TyKind::Join(parts) => out.extend_from_slice(&parts),
            TyKind::Pointer(pointer) => {
                out.push(pointer.region);
                out.extend(self.regions(pointer.target));
            }
            TyKind::Array(array) => out.extend(self.regions(array.element)),
            TyKind::Function(function) => {
                let bound = function.type_params.clone();
                let parts = self.effect_parts(function.effect);
                out.extend(parts.into_iter().filter(|&part| !self.mentions_any(part, &bound)));
            }
            TyKind::Tuple(members) => {
                for member in members.iter() {
                    out.extend(self.regions(member.ty));
                }
            }
            TyKind::Aggregate(_, args)
            | TyKind::Datatype(_, args)
            | TyKind::Constructor(_, _, args)
            | TyKind::Opaque(_, _, args) => {
                for &arg in args.iter() {
                    out.extend(self.regions(arg));
                }
            }
            TyKind::Subset(_, base) => out.extend(self.regions(base)),
            TyKind::RegionHandle(region) => out.push(region),
            _ => {}
        }
        out
    }

    /// Whether one of these type variables occurs in a term.
    pub fn mentions_any(&self, ty: Ty, vars: &[TyVar]) -> bool {
        match self.get(ty) {
            TyKind::Var(var) => vars.contains(var),
            kind => children(kind).any(|child| self.mentions_any(child, vars)),
        }
    }

    /// The type parameters that occur in a function's type, in the order in which they do.
    pub fn type_params_in_order(&self, function: &Function) -> Vec<TyVar> {
        let mut order = Vec::with_capacity(function.type_params.len());
        let used = function.params.iter().map(|param| param.ty).chain([function.result]);
        for ty in used.chain(function.varargs.as_ref().map(|varargs| varargs.ty)) {
            self.add_variables(ty, &function.type_params, &mut order);
        }
        order
    }

    fn add_variables(&self, ty: Ty, among: &[TyVar], out: &mut Vec<TyVar>) {
        match self.get(ty) {
            TyKind::Var(var) if among.contains(var) && !out.contains(var) => out.push(*var),
            kind => children(kind).for_each(|child| self.add_variables(child, among, out)),
        }
    }

    /// The kind of a term. Aggregates and datatypes are [`Kind::Memory`]; abstract ones are the checker's business.
    pub fn kind(&self, ty: Ty) -> Kind {
        match self.get(ty) {
            TyKind::Evar(evar) => self.evar_kind(*evar),
            TyKind::Var(var) => self.var(*var).kind,
            TyKind::Opaque(_, kind, _) => *kind,
            TyKind::Subset(_, base) => self.kind(*base),
            TyKind::Int(_, IntSize::Int | IntSize::Long | IntSize::LongLong)
            | TyKind::Bool
            | TyKind::Enum(_)
            | TyKind::RegionHandle(_)
            | TyKind::TagHandle(_)
            | TyKind::AqualHandle(_) => Kind::Boxed,
            TyKind::Pointer(pointer) => match self.get(pointer.bound) {
                TyKind::Fat => Kind::Memory,
                _ => Kind::Boxed,
            },
            TyKind::Heap | TyKind::Place(..) | TyKind::Join(_) | TyKind::RegionsOf(_) => Kind::Effect,
            TyKind::Aqual(_) | TyKind::AqualsOf(_) => Kind::Aqual,
            TyKind::True | TyKind::False => Kind::Bool,
            TyKind::Fat | TyKind::Thin(_) => Kind::Bound,
            TyKind::Nat(_) | TyKind::SizeOf(_) => Kind::Int,
            TyKind::Error => Kind::Boxed,
            _ => Kind::Memory,
        }
    }

    /// The alias qualifier of a value of this type: a pointer's own, ``aquals(`a)`` of a variable, aliasable for the rest.
    /// Aggregates are aliasable as such; whether members are unique is asked member by member.
    pub fn aquals_of(&mut self, ty: Ty) -> Ty {
        let ty = self.head(ty);
        match self.get(ty) {
            TyKind::Pointer(pointer) => pointer.aqual,
            TyKind::Subset(_, base) => {
                let base = *base;
                self.aquals_of(base)
            }
            TyKind::Place(_, aqual) => *aqual,
            TyKind::Var(var) if self.var(*var).kind == Kind::Effect && !self.is_place(*var) => {
                self.make(TyKind::Aqual(Alias::Aliasable))
            }
            TyKind::Evar(evar) if self.evar_kind(*evar) == Kind::Effect => self.make(TyKind::Aqual(Alias::Aliasable)),
            TyKind::Var(var) if self.var(*var).kind != Kind::Aqual => self.make(TyKind::AqualsOf(ty)),
            TyKind::Evar(evar) if self.evar_kind(*evar) != Kind::Aqual => self.make(TyKind::AqualsOf(ty)),
            TyKind::Var(_) | TyKind::Evar(_) | TyKind::Aqual(_) | TyKind::AqualsOf(_) => ty,
            _ => self.make(TyKind::Aqual(Alias::Aliasable)),
        }
    }

    /// The bound of an alias qualifier: what is certain of it.
    pub fn alias_bound(&self, aqual: Ty) -> Alias {
        match self.get(aqual) {
            TyKind::Aqual(alias) => *alias,
            TyKind::AqualsOf(of) => match self.get(*of) {
                TyKind::Var(var) => self.var(*var).alias,
                TyKind::Evar(evar) => self.evar_alias(*evar),
                TyKind::Pointer(pointer) => self.alias_bound(pointer.aqual),
                _ => Alias::Aliasable,
            },
            TyKind::Var(var) => self.var(*var).alias,
            TyKind::Evar(evar) => self.evar_alias(*evar),
            _ => Alias::Aliasable,
        }
    }
}

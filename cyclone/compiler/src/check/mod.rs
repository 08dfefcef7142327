//! From the syntax tree to the typed tree: names, types, conversions, effects.
//!
//! One pass over the items of a translation unit, in order, as in C: a name is known from its declaration on. Each part of the
//! language has a file, all are methods of [`Checker`]:
//!
//! | file | what it answers |
//! | --- | --- |
//! | [`names`] | what does this name mean here (namespaces, `using`, blocks, type variables) |
//! | [`types`] | which type is this, with its defaults ([`types::Position`]) |
//! | [`variables`] | type variables: where they are bound, and their kinds |
//! | [`functions`] | types of functions, with their default effects |
//! | [`declare`] | items: variables, functions, typedefs, blocks of C |
//! | [`attributes`] | `__attribute__`s |
//! | `overrides` | `cyclone_override`: better types for what C declares |
//! | [`agree`] | several declarations of one name |
//! | [`bodies`] | bodies of functions, and declarations in them |
//! | `contracts` | `@requires` and its like |
//! | `nested` | functions inside functions |
//! | [`aggregates`] | structures and unions |
//! | [`datatypes`] | enumerations and datatypes |
//! | [`constant`] | constant expressions, sizes and layouts |
//! | [`expressions`] | expressions |
//! | [`operators`] | arithmetic, comparison, assignment, swap |
//! | [`access`] | places: members, elements, what pointers lead to, addresses |
//! | [`literals`], [`numbers`] | literals; arithmetic types and their conversions |
//! | [`calls`], [`varargs`], [`formats`] | calls: instantiation, inferred aliases; variable arguments; format strings |
//! | `sizes` | sizes of types, and those that a call leaves out |
//! | [`coerce`] | may a value of this type stand where that type is wanted, and by which conversion |
//! | `prefixes` | may a pointer to this lead to that: members and where they lie |
//! | `loans` | addresses inside of owned objects |
//! | `advice`, `suggest` | what to write instead of what is wrong; names that were meant |
//! | [`init`], [`comprehensions`], [`allocate`] | initialisers; `new`, `malloc` |
//! | [`statements`] | statements but those with patterns |
//! | [`patterns`] | patterns |
//! | `aggregate_patterns` | patterns of structures and tuples |
//! | [`switch`] | `switch`, `try`, `let`, `fallthru` |
//! | [`exhaustive`] | what clauses do not cover, and which no value reaches |
//! | [`words`] | which types may take the place of a type variable in memory |
//! | `rules` | by which rules: the dialect, and what becomes of the original's loopholes |
//! | `subsets` | constrained types |
//! | [`effects`] | which regions are live here; constraints |
//! | [`regions`] | declarations of regions |
//! | [`owning`] | copies of unique and counted pointers |
//!
//! # Errors
//!
//! A part that is wrong is reported once, where it stands, and gets the type `Error`, which agrees with everything. Nothing
//! panics on any input. Messages name types as the user writes them ([`Checker::show`]).
//!
//! # Inference
//!
//! Inside a function types are found by unification in the order of writing: the first use decides. At the end of a function
//! [`declare`] defaults what stayed unknown: regions become the heap, qualifiers aliasable, bounds thin of one element, nullable true,
//! zero-terminated false, types `void *`'s word is never guessed: an unknown type is an `int`.

pub mod access;
mod advice;
mod aggregate_patterns;
pub mod aggregates;
pub mod agree;
pub mod allocate;
pub mod attributes;
pub mod bodies;
pub mod calls;
pub mod coerce;
pub mod comprehensions;
pub mod constant;
mod constness;
mod contracts;
pub mod datatypes;
pub mod declare;
pub mod effects;
pub mod exhaustive;
pub mod expressions;
mod extents;
pub mod formats;
pub mod functions;
pub mod init;
pub mod literals;
mod loans;
pub mod names;
mod nested;
pub mod numbers;
pub mod operators;
mod overrides;
pub mod owning;
pub mod patterns;
mod places;
mod prefixes;
pub mod regions;
mod rules;
mod sizes;
pub mod statements;
mod subsets;
mod suggest;
pub mod switch;
pub mod types;
pub mod varargs;
pub mod variables;
pub mod words;

use crate::ast::{self, Quals};
use crate::diagnostics::{Code, Diagnostic};
use crate::hash::{HashMap, HashSet};
use crate::source::{Source, Span};
use crate::symbol::Symbol;
use crate::tree::{CBody, Declarations, Expr, Function, GlobalId, Local, LocalId, Program};
use crate::types::{Kind, Member, Ty, TyKind, TyVar, Types, print};
use std::rc::Rc;

pub use rules::{Dialect, Loopholes, Rules};

/// Checks a parsed translation unit. Errors are in `diagnostics`; the tree is meaningful to `lower` only if there are none.
pub fn check(source: &Source, items: &[ast::Item], rules: Rules, diagnostics: &mut Vec<Diagnostic>) -> Program {
    let mut checker = Checker {
        source,
        rules,
        diagnostics,
        types: Types::for_text(source.text.len()),
        declarations: Declarations::default(),
        functions: Vec::new(),
        names: names::Names::default(),
        member_types: HashMap::default(),
        constructor_params: HashMap::default(),
        reading: variables::Reading::default(),
        in_c: false,
        of_present_dialect: false,
        in_c_include: false,
        overriding: overrides::Overridden::default(),
        c_bodies: Vec::new(),
        current_region: TyVar(0),
        body: None,
        extents: HashMap::default(),
        assumed: Vec::new(),
        lent: None,
        loan: None,
        is_unused: false,
        names_callback: false,
        tail: None,
        words: Vec::new(),
        requirements: HashMap::default(),
        nested: HashMap::default(),
        used_captures: HashSet::default(),
        subsets: Vec::new(),
    };
    checker.predeclare();
    checker.items(items);
    checker.finish();
    checker.types.forget_constraints();
    Program {
        types: checker.types,
        declarations: checker.declarations,
        functions: checker.functions,
        c_bodies: checker.c_bodies,
        called_only: HashSet::default(),
    }
}

/// The state of checking one translation unit.
pub struct Checker<'a> {
    /// The text, for messages.
    pub source: &'a Source,
    /// By which rules it is read.
    pub rules: Rules,
    /// Where messages go.
    pub diagnostics: &'a mut Vec<Diagnostic>,
    /// All types.
    pub types: Types,
    /// All declarations so far.
    pub declarations: Declarations,
    /// The bodies done so far.
    pub functions: Vec<Function>,
    /// Types that take the place of type variables outside of functions.
    words: Vec<effects::Pending>,
    /// What functions ask of their callers.
    requirements: HashMap<GlobalId, Vec<contracts::Requirement>>,
    /// The functions inside functions, and what they may use of those.
    nested: HashMap<GlobalId, Vec<nested::Capture>>,
    /// The hidden parameters that were used in the bodies being checked.
    used_captures: HashSet<Symbol>,
    /// The constraints of constrained types so far.
    subsets: Vec<subsets::Constrained>,
    /// What names mean.
    pub names: names::Names,
    /// Types of members, by the whole and the index, where both are known for good.
    member_types: HashMap<(Ty, usize), Ty>,
    /// The same of constructors.
    constructor_params: HashMap<Ty, Rc<[Member]>>,
    /// What is known while a type is read.
    reading: variables::Reading,
    /// Inside of a block of C.
    in_c: bool,
    /// Inside of `__noinference__`: the library's headers, which are written for 1.0 whatever the dialect of the program.
    of_present_dialect: bool,
    /// The block is one whose functions have bodies in C.
    in_c_include: bool,
    /// The structures of the block of C that is overridden in part.
    overriding: overrides::Overridden,
    /// Those bodies so far.
    c_bodies: Vec<CBody>,
    /// `` `C ``: in a prototype, the region that is current where the function is called.
    pub current_region: TyVar,
    /// The function being checked.
    pub body: Option<Body>,
    /// Where the regions of blocks begin and end.
    extents: HashMap<TyVar, extents::Extent>,
    /// What is being compared: see [`coerce`].
    assumed: Vec<(Ty, Ty)>,
    /// The region of the alias that is being made: owned pointers that can only be looked at belong to it too.
    lent: Option<TyVar>,
    /// The loan that the argument being checked can make of the owners around addresses; `None` where there is no such argument.
    loan: Option<loans::Loan>,
    /// What is being checked is a call whose result nobody looks at: it may belong to what the call is lent.
    pub is_unused: bool,
    /// What is being checked is the name of a call's argument.
    names_callback: bool,
    /// The value that the block being checked ends with, in a statement expression.
    tail: Option<statements::Tail>,
}

/// The state of checking a function's body.
#[derive(Debug)]
pub struct Body {
    /// Its variables so far.
    pub locals: Vec<Local>,
    /// Its labels so far, and whether each has been met.
    pub labels: Vec<(Symbol, bool, Span)>,
    /// What it returns.
    pub result: Ty,
    /// It never returns.
    pub noreturn: bool,
    /// Depth of binders of type variables: 1 in a function, one more in each block with a region and each opened package.
    pub level: u32,
    /// The blocks around the place being checked, outermost first.
    pub blocks: Vec<BlockState>,
    /// Loops and switches around.
    pub breakable: u32,
    /// Loops around.
    pub loops: u32,
    /// The regions that are live, the constraints known: see [`effects`].
    pub capability: effects::Capability,
    /// Expressions whose types are not to be known before the end (instantiations to be checked, numbers of elements, ...).
    pub pending: Vec<effects::Pending>,
    /// Where `fallthru` goes, for each clause around; `None` in a last one.
    pub fallthru: Vec<Option<switch::NextClause>>,
    /// The regions declared around, innermost last: what `` `C `` is for a function called here.
    pub lexical: Vec<Ty>,
    /// What its `@ensures` say.
    promises: contracts::Promises,
    /// How many calls were typed a second time: see [`calls`].
    pub retries: u32,
}

impl Body {
    /// The body of a function with this result, in whose own region nothing is known yet; `outside` is the level around it.
    fn new(result: Ty, region: TyVar, outside: u32) -> Body {
        Body {
            locals: Vec::new(),
            labels: Vec::new(),
            result,
            noreturn: false,
            level: outside + 1,
            blocks: vec![BlockState { region, level: outside, capability: effects::Capability::default() }],
            breakable: 0,
            loops: 0,
            capability: effects::Capability::default(),
            pending: Vec::new(),
            fallthru: Vec::new(),
            lexical: Vec::new(),
            promises: contracts::Promises::default(),
            retries: 0,
        }
    }
}

/// A block around the place being checked.
#[derive(Debug, Clone)]
pub struct BlockState {
    /// Its region.
    pub region: TyVar,
    /// [`Body::level`] before it.
    pub level: u32,
    /// [`Body::capability`] before it.
    pub capability: effects::Capability,
}

impl Checker<'_> {
    /// Reports an error.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    /// Reports a warning.
    pub fn warn(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(code, span, message));
    }

    /// Reports an error and gives the expression that stands for the wrong part.
    pub fn wrong(&mut self, code: Code, span: Span, message: impl Into<String>) -> Expr {
        self.error(code, span, message);
        Expr::error(&mut self.types, span)
    }

    /// The same with a report that says more.
    pub(super) fn wrong_as(&mut self, report: Diagnostic) -> Expr {
        let span = report.span;
        self.diagnostics.push(report);
        Expr::error(&mut self.types, span)
    }

    /// A type for a message.
    pub fn show(&self, ty: Ty) -> String {
        print::show(&self.types, &self.declarations, ty)
    }

    /// A new inference variable at the present level.
    pub fn fresh(&mut self, kind: Kind) -> Ty {
        let level = self.level();
        self.types.fresh(kind, level)
    }

    /// Depth of binders here; 0 outside of functions.
    pub fn level(&self) -> u32 {
        self.body.as_ref().map_or(0, |body| body.level)
    }

    /// A term.
    pub fn make(&mut self, kind: TyKind) -> Ty {
        self.types.make(kind)
    }

    /// A new variable of the function being checked, not yet visible by name (see [`names`]).
    ///
    /// # Panics
    /// Outside of a function's body.
    pub fn new_local(&mut self, name: Symbol, ty: Ty, quals: Quals, span: Span) -> LocalId {
        let heap = self.types.make(TyKind::Heap);
        let body = self.body.as_mut().expect("variables are made in bodies only");
        let region = match body.blocks.last() {
            Some(block) => self.types.make(TyKind::Var(block.region)),
            None => heap,
        };
        body.locals.push(Local { name, ty, quals, region, is_static: false, is_address_taken: false, span });
        LocalId(body.locals.len() as u32 - 1)
    }
}

//! Which generic functions see how large the values of their type variables are.
//!
//! Generic code handles a value of type `` `a `` as a word of 8 bytes, and an `int` is put into a word where it is passed or stored. But
//! where `` `a `` is what a pointer leads to, or an element of an array, code takes steps from one value to the next and stores
//! whole ones: in an array of `int` they have 4 bytes. A type variable of a function through which it may take such steps is
//! called *sized*. Where all values are words, one piece of code does for all types; for sized variables that are `int`s there are
//! copies of the function (`lower::copies`).
//!
//! # Invariants
//!
//! - Who defines a function and who calls it find the same variables sized: what counts is what can be seen where the function is first
//!   declared, which is in a header if it is shared. A structure that is complete only later could hold anything, and so could
//!   one that is never completed.
//! - What no sized variable leads to has the same form in all copies.
//! - One case is no step: a thin pointer to one `` `a `` that generic code gives out. It leads to a word, whose first four bytes are the
//!   `int` (on the little-endian machines that this compiler is for). Components of tuples are words for everybody.

use crate::ast::IntSize;
use crate::hash::HashSet;
use crate::tree::{Declarations, Global};
use crate::types::{AggregateId, DatatypeId, Function, Kind, Ty, TyKind, TyVar, Types};

/// So many sized variables a function with copies may have: there is a copy for each choice of `int`s among them.
pub const MOST_SIZED: usize = 4;

/// How large the values of a type are that takes the place of a type variable of kind B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// One byte: `_Bool`.
    Byte,
    /// Four bytes.
    Int,
    /// A word; also a type variable, whose values the code at hand handles as words.
    Word,
}

/// The width of a type of kind B.
pub fn width(types: &Types, ty: Ty) -> Width {
    match types.get(ty) {
        TyKind::Bool => Width::Byte,
        TyKind::Int(_, IntSize::Int) | TyKind::Enum(_) => Width::Int,
        TyKind::Subset(_, base) => width(types, *base),
        _ => Width::Word,
    }
}

/// Which way values go between generic code and its user.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Way {
    /// The user gets them.
    Out,
    /// The user gives them.
    In,
    /// They can be changed by both.
    Both,
}

impl Way {
    fn flipped(self) -> Way {
        match self {
            Way::Out => Way::In,
            Way::In => Way::Out,
            Way::Both => Way::Both,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Owner {
    Aggregate(AggregateId),
    Datatype(DatatypeId),
}

/// What code for all values of a variable does with memory in which they lie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Steps {
    /// It takes no steps.
    No,
    /// It takes steps as large as the values are.
    Sized,
    /// The values lie in an array in a structure, as words.
    Words,
}

/// Looks for steps through one variable.
struct Search<'p> {
    types: &'p Types,
    declarations: &'p Declarations,
    var: TyVar,
    /// How many aggregates and datatypes are complete where the code is declared.
    complete: u32,
    /// Members of which are looked at, or were: nothing new is found in them.
    seen: HashSet<(Owner, usize, Way)>,
}

/// What a function does with memory in which values of one of its type parameters lie. `complete`: see [`Global::complete`].
pub fn of_function(
    types: &Types,
    declarations: &Declarations,
    function: &Function,
    complete: u32,
    var: TyVar,
) -> Steps {
    Search { types, declarations, var, complete, seen: HashSet::default() }.function(function, Way::Out)
}

/// The same of code that handles aggregates with this member, a parameter or bound variable of which is `var`.
pub fn of_member(types: &Types, declarations: &Declarations, member: Ty, var: TyVar) -> Steps {
    Search { types, declarations, var, complete: u32::MAX, seen: HashSet::default() }.of(member, Way::Both)
}

/// The sized variables of a function that can have copies, in the order in which they occur; none if it has no copies.
pub fn sized(types: &Types, declarations: &Declarations, global: &Global, function: &Function) -> Vec<TyVar> {
    if !may_have_copies(global, function) {
        return Vec::new();
    }
    let mut sized = types.type_params_in_order(function);
    let mut all = Steps::Sized;
    sized.retain(|&var| {
        if types.var(var).kind != Kind::Boxed {
            return false;
        }
        let steps = of_function(types, declarations, function, global.complete, var);
        all = all.max(steps);
        steps != Steps::No
    });
    if all == Steps::Words || sized.len() > MOST_SIZED {
        sized.clear();
    }
    sized
}

/// Not what is written in C, or has one name for the linker.
fn may_have_copies(global: &Global, function: &Function) -> bool {
    use crate::tree::Linkage;
    let of_c = global.linkage == Linkage::C || function.c_varargs || global.asm_name.is_some();
    !of_c && function.attributes.inline_header().is_none()
}

impl Search<'_> {
    fn function(&mut self, function: &Function, way: Way) -> Steps {
        let varargs = function.varargs.as_ref().map_or(Steps::No, |varargs| self.of(varargs.ty, Way::Both));
        let params = function.params.iter().map(|param| (param.ty, way.flipped()));
        let parts = params.chain([(function.result, way)]);
        parts.fold(varargs, |most, (ty, way)| most.max(self.of(ty, way)))
    }

    fn is_var(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Var(other) if *other == self.var)
    }

    fn of(&mut self, ty: Ty, way: Way) -> Steps {
        if !self.types.mentions_any(ty, &[self.var]) {
            return Steps::No;
        }
        match self.types.get(ty).clone() {
            TyKind::Pointer(pointer) => {
                if self.is_var(pointer.target) {
                    let one = match self.types.get(pointer.bound) {
                        TyKind::Thin(len) => matches!(self.types.get(*len), TyKind::Nat(1)),
                        _ => false,
                    };
                    return if one && way == Way::Out { Steps::No } else { Steps::Sized };
                }
                let is_code = matches!(self.types.get(pointer.target), TyKind::Function(_));
                let below = if is_code || pointer.quals.is_const { way } else { Way::Both };
                self.of(pointer.target, below)
            }
            TyKind::Array(array) if self.is_var(array.element) => Steps::Words,
            TyKind::Array(array) => self.of(array.element, way),
            TyKind::Function(function) => self.function(&function, way),
            TyKind::Tuple(members) => members.iter().fold(Steps::No, |most, member| most.max(self.of(member.ty, way))),
            TyKind::Aggregate(id, args) => self.arguments(Owner::Aggregate(id), &args, way),
            TyKind::Datatype(id, args) | TyKind::Constructor(id, _, args) => {
                self.arguments(Owner::Datatype(id), &args, way)
            }
            TyKind::Opaque(..) => Steps::Sized,
            TyKind::Subset(_, base) => self.of(base, way),
            _ => Steps::No,
        }
    }

    fn arguments(&mut self, owner: Owner, args: &[Ty], way: Way) -> Steps {
        args.iter().enumerate().fold(Steps::No, |most, (index, &arg)| {
            most.max(if self.is_var(arg) { self.member(owner, index, way) } else { self.of(arg, Way::Both) })
        })
    }

    /// What is done through the members of a type, of which the variable is an argument.
    fn member(&mut self, owner: Owner, index: usize, way: Way) -> Steps {
        if !self.seen.insert((owner, index, way)) {
            return Steps::No;
        }
        let declarations = self.declarations;
        let (complete, param, members): (_, _, Vec<Ty>) = match owner {
            Owner::Aggregate(id) => {
                let aggregate = declarations.aggregate(id);
                let fields = aggregate.body.iter().flat_map(|body| &body.fields).map(|field| field.ty);
                (aggregate.completed, aggregate.params.get(index), fields.collect())
            }
            Owner::Datatype(id) => {
                let datatype = declarations.datatype(id);
                let parts = datatype.constructors.iter().flat_map(|constructor| &constructor.params);
                (datatype.completed, datatype.params.get(index), parts.map(|part| part.ty).collect())
            }
        };
        // What cannot be seen yet could be anything.
        if complete.is_none_or(|complete| complete > self.complete) {
            return Steps::Sized;
        }
        let Some(&param) = param else { return Steps::No };
        let outside = std::mem::replace(&mut self.var, param);
        let steps = members.into_iter().fold(Steps::No, |most, member| most.max(self.of(member, way)));
        self.var = outside;
        steps
    }
}

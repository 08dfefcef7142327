//! Which types may take the place of a type variable of kind B.
//!
//! Code that handles a value of type `` `a `` handles a word of 8 bytes. An `int` is put into a word where it is passed or stored, so that is no
//! matter. But where `` `a `` is what a pointer points to, or an element of an array, generic code takes steps of a word and stores whole words: an
//! array of `int` would be read two at a time, and what lies behind an `int` overwritten. So a type of another size cannot take the
//! place of such a variable ([`Checker::steps_through`]).
//!
//! One case does no harm: a thin pointer to one `` `a `` that generic code gives out. It leads to a word, whose first four bytes are the `int`
//! (on the little-endian machines that this compiler is for). Components of tuples are words for everybody.

use super::Checker;
use super::effects::Pending;
use crate::ast::IntSize;
use crate::diagnostics::{Code, Diagnostic};
use crate::hash::HashMap;
use crate::source::Span;
use crate::types::{AggregateId, DatatypeId, Function, Kind, Ty, TyKind, TyVar};

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

/// What is known of parameters of types, and of functions.
#[derive(Default)]
pub struct Words {
    members: HashMap<(Owner, usize, Way), bool>,
    functions: HashMap<TyVar, bool>,
    /// Uses outside of functions.
    later: Vec<Pending>,
}

impl Checker<'_> {
    /// A function is used with these types in the place of its parameters: decided at the end, when they are known.
    pub(super) fn instantiated(&mut self, function: &Function, instantiation: &[Ty], span: Span) {
        for (&param, &ty) in function.type_params.iter().zip(instantiation) {
            if self.types.var(param).kind != Kind::Boxed {
                continue;
            }
            let steps = match self.words.functions.get(&param) {
                Some(&known) => known,
                None => {
                    let steps = self.function_steps_through(function, param, Way::Out);
                    self.words.functions.insert(param, steps);
                    steps
                }
            };
            if steps {
                self.decide_later(Pending::Word(param, ty, span));
            }
        }
    }

    /// A package of this aggregate is made with these types in the place of the variables that its body binds.
    pub(super) fn packed(&mut self, id: AggregateId, instantiation: &[Ty], span: Span) {
        let Some(body) = &self.declarations.aggregate(id).body else { return };
        let (bound, fields) = (body.existentials.clone(), body.fields.iter().map(|field| field.ty).collect::<Vec<_>>());
        for (&param, &ty) in bound.iter().zip(instantiation) {
            let is_word = self.types.var(param).kind == Kind::Boxed;
            if is_word && fields.iter().any(|&field| self.steps_through(field, param, Way::Both)) {
                self.decide_later(Pending::Word(param, ty, span));
            }
        }
    }

    fn decide_later(&mut self, pending: Pending) {
        match &mut self.body {
            Some(body) => body.pending.push(pending),
            None => self.words.later.push(pending),
        }
    }

    /// The translation unit ends: decides what was put off outside of functions.
    pub(super) fn decide_words(&mut self) {
        for pending in std::mem::take(&mut self.words.later) {
            self.decide(pending);
        }
    }

    /// Reports a type that is not as large as a word where generic code takes steps of a word.
    pub(super) fn check_word(&mut self, param: TyVar, ty: Ty, span: Span) {
        let narrow = matches!(self.types.get(ty), TyKind::Int(_, IntSize::Int) | TyKind::Enum(_) | TyKind::Bool);
        if narrow {
            let (shown, info) = (self.show(ty), self.types.var(param).clone());
            let message = format!("`{shown}` cannot be `{}` here: memory is used in words of 8 bytes", info.name);
            let diagnostic = Diagnostic::error(Code::NotAWord, span, message)
                .with(info.span, "this is what pointers lead to, or an element of an array")
                .help("use a type of 8 bytes, such as `long`, or a pointer");
            self.diagnostics.push(diagnostic);
        }
    }

    fn function_steps_through(&mut self, function: &Function, var: TyVar, way: Way) -> bool {
        self.steps_through(function.result, var, way)
            || function.params.iter().any(|param| self.steps_through(param.ty, var, way.flipped()))
            || function.varargs.as_ref().is_some_and(|varargs| self.steps_through(varargs.ty, var, Way::Both))
    }

    fn is_var(&self, ty: Ty, var: TyVar) -> bool {
        matches!(self.types.get(ty), TyKind::Var(other) if *other == var)
    }

    /// Whether code for all `var` uses memory of type `ty` in which the variable's values lie side by side, or are stored by pointers.
    fn steps_through(&mut self, ty: Ty, var: TyVar, way: Way) -> bool {
        if !self.types.mentions_any(ty, &[var]) {
            return false;
        }
        match self.types.get(ty).clone() {
            TyKind::Pointer(pointer) => {
                if self.is_var(pointer.target, var) {
                    let one = match self.types.get(pointer.bound) {
                        TyKind::Thin(len) => matches!(self.types.get(*len), TyKind::Nat(1)),
                        _ => false,
                    };
                    return !(one && way == Way::Out);
                }
                let is_code = matches!(self.types.get(pointer.target), TyKind::Function(_));
                let below = if is_code || pointer.quals.is_const { way } else { Way::Both };
                self.steps_through(pointer.target, var, below)
            }
            TyKind::Array(array) => self.is_var(array.element, var) || self.steps_through(array.element, var, way),
            TyKind::Function(function) => self.function_steps_through(&function, var, way),
            TyKind::Tuple(members) => members.iter().any(|member| self.steps_through(member.ty, var, way)),
            TyKind::Aggregate(id, args) => self.arguments_step(Owner::Aggregate(id), &args, var, way),
            TyKind::Datatype(id, args) | TyKind::Constructor(id, _, args) => {
                self.arguments_step(Owner::Datatype(id), &args, var, way)
            }
            _ => false,
        }
    }

    fn arguments_step(&mut self, owner: Owner, args: &[Ty], var: TyVar, way: Way) -> bool {
        args.iter().enumerate().any(|(index, &arg)| {
            if self.is_var(arg, var) {
                self.member_steps(owner, index, way)
            } else {
                self.steps_through(arg, var, Way::Both)
            }
        })
    }

    /// Whether a type steps through its parameter. While that is being found out, it does not: a type that leads to itself adds nothing.
    fn member_steps(&mut self, owner: Owner, index: usize, way: Way) -> bool {
        if let Some(&known) = self.words.members.get(&(owner, index, way)) {
            return known;
        }
        self.words.members.insert((owner, index, way), false);
        let (param, members): (Option<TyVar>, Vec<Ty>) = match owner {
            Owner::Aggregate(id) => {
                let aggregate = self.declarations.aggregate(id);
                let fields = aggregate.body.iter().flat_map(|body| &body.fields).map(|field| field.ty);
                (aggregate.params.get(index).copied(), fields.collect())
            }
            Owner::Datatype(id) => {
                let datatype = self.declarations.datatype(id);
                let parts = datatype.constructors.iter().flat_map(|constructor| &constructor.params);
                (datatype.params.get(index).copied(), parts.map(|part| part.ty).collect())
            }
        };
        let Some(param) = param else { return false };
        let steps = members.into_iter().any(|member| self.steps_through(member, param, way));
        self.words.members.insert((owner, index, way), steps);
        steps
    }
}

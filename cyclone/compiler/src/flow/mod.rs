//! Flow analysis: what holds at each point of a function, whatever way leads there.
//!
//! The typed tree is run over with abstract values ([`value::Value`]) instead of real ones: a [`state::State`] says for each variable,
//! and each object that only one known pointer leads to, whether it has a value, whether a pointer is NULL, and whether an owned
//! pointer has been consumed. Where ways meet, states are joined. It is the analysis of the original: path-insensitive, one function at a time.
//!
//! | file | what |
//! | --- | --- |
//! | [`value`] | abstract values |
//! | [`state`] | states: storing, escaping, joining |
//! | [`shape`] | the abstract value of a type; ownership of types |
//! | `scopes` | before all else: jumps into scopes, `break`s that fall into the next clause |
//! | `statements` | statements, loops, jumps, `try` |
//! | `expressions` | expressions: values and places, consumption |
//! | `assignments` | what stores: assignments, steps, swaps |
//! | `conditions` | conditions: what is known if one holds, and if it does not |
//! | `calls` | calls, initial values, allocation |
//! | `bindings` | patterns, aliases: what they take and give back at the end of their scope |
//! | `callers` | functions of which all calls are known |
//! | `bounds` | after all else: indices that are within bounds |
//! | [`remaining`] | the checks that are left, with the reason, for `--explain-checks` |
//!
//! # Loops
//!
//! A function is run over as a whole until no state at the head of a loop or at a label changes any more; only the last run's
//! messages count. A run also decides the null checks ([`crate::tree::Check`]) anew, so that the last one's decisions stay.
//!
//! # Escape
//!
//! A place is tracked as long as each pointer to it is ([`value::Value::Address`]). When such a pointer is stored where nothing is
//! tracked, passed to a function, or meets another value at a join, the place has *escaped*: others may write to it, so that nothing
//! is learned from tests, and nothing without a value may be stored there.
//!
//! # Ownership
//!
//! Copying an owned pointer out of a unique path consumes the path ([`value::Value::Consumed`]); using it afterwards is an error, and
//! it is consumed after a join if it is on one way. A call that does not consume an argument gives it back. A pattern's
//! variables, aliases and opened regions give it back at the end of their scope, if neither they nor the place have changed since,
//! which names show ([`value::Value::Named`]). Parameters that are not consumed must have their first value at every return.

mod assignments;
mod bindings;
mod bounds;
mod callers;
mod calls;
mod conditions;
mod expressions;
pub mod remaining;
mod scopes;
mod shape;
mod state;
mod statements;
mod value;
pub(crate) mod walk;

use crate::check::Loopholes;
use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::hash::HashMap;
use crate::source::Span;
use crate::tree::{Function, LabelId, Local, LocalId, Program};
use crate::types::{FnAttributes, Ty, TyKind};
use callers::Callers;
use remaining::{Reasons, Remaining};
use shape::{Leaf, Shapes};
use state::State;
use std::rc::Rc;
use thin_vec::ThinVec;
use value::{Level, Place, Root, Value};

/// What the user asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Owned pointers that are lost are reported (`-Wlose-unique`).
    pub warn_lost: bool,
    /// What becomes of what only the original accepts.
    pub loopholes: Loopholes,
}

/// Analyses all functions: reports errors, and marks the checks that are not needed.
pub fn analyse(program: &mut Program, options: Options, diagnostics: &mut Vec<Diagnostic>) -> Vec<Remaining> {
    let callers = Callers::of(program);
    program.called_only = callers.called_only().map(|(id, _)| id).collect();
    let mut shapes = Shapes::new(&mut program.types, &program.declarations);
    let reasons: Vec<_> = program
        .functions
        .iter_mut()
        .map(|function| Analysis::function(&mut shapes, function, options, diagnostics))
        .collect();
    bounds::prove(&mut program.functions, shapes.types, &callers);
    let mut remaining = Vec::new();
    for (function, reasons) in program.functions.iter().zip(&reasons) {
        remaining::collect(function, &program.types, reasons, &mut remaining);
    }
    // What is always NULL often is so only because of another mistake.
    let is_always_null = |diagnostic: &Diagnostic| diagnostic.code == Code::AlwaysNull;
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error && !is_always_null(diagnostic)) {
        diagnostics.retain(|diagnostic| !is_always_null(diagnostic));
    }
    remaining
}

/// No function that people write needs as many runs.
const RUN_LIMIT: u32 = 200;

/// Where a `break` or `continue` goes.
#[derive(Default)]
struct Target {
    /// What is known there, from all that go there so far.
    state: Option<State>,
    /// How many give-backs were pending outside of it.
    pending: usize,
}

/// Where a `fallthru` goes.
struct NextClause {
    state: Option<State>,
    bindings: ThinVec<LocalId>,
    pending: usize,
}

/// A place that was consumed for a scope and is given back at its end.
#[derive(Clone)]
struct GiveBack {
    /// Whose name the place's value has.
    name: LocalId,
    place: Place,
    sort: GiveBackSort,
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GiveBackSort {
    /// To a pattern's variable, which may have been consumed.
    Copy,
    /// To an alias: the place may not change while it lives.
    Alias,
    /// To `open`.
    Open,
}

/// What the analysis of one function knows besides the state.
struct Analysis<'s, 'a> {
    shapes: &'s mut Shapes<'a>,
    locals: &'s [Local],
    options: Options,
    attributes: FnAttributes,
    result: Ty,
    /// Parameters that must have their first value at the end.
    kept: Vec<LocalId>,
    /// What parameters with `initializes` point to.
    promised: Vec<Root>,
    diagnostics: Vec<Diagnostic>,
    /// `None`: no way leads here.
    state: Option<State>,
    /// States at the heads of loops, by the address of the statement.
    heads: HashMap<usize, State>,
    labels: HashMap<LabelId, LabelState>,
    /// Roots of allocations and temporaries, by the address of the node.
    sites: HashMap<usize, Root>,
    /// A state that was already used in this run has changed.
    again: bool,
    breaks: Vec<Target>,
    continues: Vec<Target>,
    next_clauses: Vec<Option<NextClause>>,
    give_backs: Vec<GiveBack>,
    /// States that handlers around may see.
    handlers: Vec<Option<State>>,
    /// The place consumed last, for calls that give it back.
    taken: Option<Place>,
    /// The owners that the call being looked at, and those whose arguments it is in, have lent so far, with their types.
    lent: Vec<(Place, Ty)>,
    /// Why checks are left.
    reasons: Reasons,
}

#[derive(Default)]
struct LabelState {
    state: Option<State>,
    is_met: bool,
    /// Whose scopes it is in: see [`GiveBack::name`].
    binders: Vec<LocalId>,
}

impl<'s, 'a> Analysis<'s, 'a> {
    fn function(
        shapes: &'s mut Shapes<'a>,
        function: &'s mut Function,
        options: Options,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Reasons {
        let labels = scopes::check(function, diagnostics);
        let labels = labels
            .into_iter()
            .map(|(label, binders)| (label, LabelState { binders, ..LabelState::default() }))
            .collect();
        let mut analysis = Analysis {
            shapes,
            locals: &function.locals,
            options,
            attributes: function.ty.attributes.clone(),
            result: function.ty.result,
            kept: Vec::new(),
            promised: Vec::new(),
            diagnostics: Vec::new(),
            state: None,
            heads: HashMap::default(),
            labels,
            sites: HashMap::default(),
            again: true,
            breaks: Vec::new(),
            continues: Vec::new(),
            next_clauses: Vec::new(),
            give_backs: Vec::new(),
            handlers: Vec::new(),
            taken: None,
            lent: Vec::new(),
            reasons: Reasons::default(),
        };
        let entry = analysis.entry(function.params);
        let end = function.body.statements.last().map_or(function.body.span, |last| last.span);
        for _ in 0..RUN_LIMIT {
            analysis.again = false;
            analysis.diagnostics.clear();
            analysis.labels.values_mut().for_each(|label| label.is_met = false);
            analysis.state = Some(entry.clone());
            analysis.block(&mut function.body);
            analysis.falls_off(end);
            if !analysis.again {
                break;
            }
        }
        diagnostics.append(&mut analysis.diagnostics);
        if analysis.again {
            // Nothing is known of a function whose states go on changing.
            let message = "the function's loops and jumps are too many to be analysed; divide it";
            diagnostics.push(Diagnostic::error(Code::Unsupported, function.span, message));
        }
        analysis.reasons
    }

    /// The state at the beginning: parameters have values.
    fn entry(&mut self, params: usize) -> State {
        let mut state = State::default();
        let attributes = self.attributes.clone();
        for index in 0..params {
            let local = LocalId(index as u32);
            let ty = self.locals[index].ty;
            let value = self.shapes.of(ty, Leaf::Anything);
            let consumed = attributes.consume.contains(&index) || attributes.noliveunique.contains(&index);
            if self.shapes.is_owned_pointer(ty) && !consumed {
                self.kept.push(local);
            }
            let target = self.shapes.target(ty);
            let value = match target {
                Some(target) if attributes.initializes.contains(&index) => {
                    let root = (self.locals.len() + self.sites.len()) as Root;
                    self.sites.insert(usize::MAX - index, root);
                    self.promised.push(root);
                    let contents = self.shapes.of(target, Leaf::Promised);
                    state.begin(root, contents);
                    Value::Address(Rc::new(Place::of(root)))
                }
                Some(target) if attributes.noliveunique.contains(&index) => {
                    let contents = self.shapes.of(target, Leaf::Anything);
                    let span = self.locals[index].span;
                    Value::Owned(Rc::new(self.shapes.consumed(target, &contents, span, false)))
                }
                _ => value,
            };
            state.begin(index as Root, Value::Named(local, Rc::new(value)));
        }
        state
    }

    /// Reports once what is found on several ways.
    fn report(&mut self, diagnostic: Diagnostic) {
        let is_known = |other: &Diagnostic| other.span == diagnostic.span && other.message == diagnostic.message;
        if !self.diagnostics.iter().any(is_known) {
            self.diagnostics.push(diagnostic);
        }
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    fn name(&self, local: LocalId) -> &'static str {
        self.locals[local.0 as usize].name.as_str()
    }

    /// The root of what is made at a node of the tree.
    fn site<T>(&mut self, node: &T) -> Root {
        let next = (self.locals.len() + self.sites.len()) as Root;
        *self.sites.entry(std::ptr::from_ref(node) as usize).or_insert(next)
    }

    /// What a place is known to hold.
    fn at(&self, place: &Place) -> Option<Value> {
        self.state.as_ref()?.at(place).cloned()
    }

    fn level(&self, value: &Value) -> Level {
        self.state.as_ref().map_or(Level::All, |state| state.level(value))
    }

    /// Stores a value in a place; `span` is for the message if it has none and others see the place.
    fn assign(&mut self, place: &Place, value: &Value, span: Span) {
        let Some(state) = &mut self.state else { return };
        if state.assign(place, value).is_err() {
            let consumed = value.consumed_below();
            self.not_initialised(span, "the value stored where others see it may not have been initialised", consumed);
        }
        self.changed(place.root);
    }

    /// Changes what is known, without storing anything.
    fn learn(&mut self, place: &Place, change: &mut dyn FnMut(&Value) -> Value) {
        if let Some(state) = &mut self.state {
            state.change(place, change);
        }
        self.changed(place.root);
    }

    /// An exception may be thrown from now on with this root changed.
    fn changed(&mut self, root: Root) {
        if let (Some(Some(handler)), Some(state)) = (self.handlers.last_mut(), &self.state) {
            handler.absorb(state, root);
        }
    }

    /// A value is used: it must be there, and what it points to is known to others from now on.
    fn release(&mut self, value: &Value, span: Span) {
        let Some(state) = &mut self.state else { return };
        let fit = state.release(value).is_ok();
        if self.handlers.last().is_some_and(|handler| handler.is_some())
            && matches!(value.bare(), Value::Address(_) | Value::Parts(_))
        {
            self.changed_all();
        }
        if !fit {
            self.not_initialised(span, "the value may not be fully initialised", value.consumed_below());
        }
    }

    fn changed_all(&mut self) {
        if let (Some(handler), Some(state)) = (self.handlers.last_mut(), &self.state) {
            join_into(handler, state);
        }
    }

    fn not_initialised(&mut self, span: Span, message: &str, consumed: Option<Span>) {
        let diagnostic = match consumed {
            Some(at) => Diagnostic::error(Code::Consumed, span, "an owned pointer is used after it was consumed")
                .with(at, "consumed here"),
            None => Diagnostic::error(Code::Uninitialised, span, message),
        };
        self.report(diagnostic);
    }

    /// The state at the head of a loop: what leads there and what came around before.
    fn head(&mut self, key: usize) {
        let Some(state) = self.state.take() else {
            self.state = self.heads.get(&key).cloned();
            return;
        };
        let joined = match self.heads.get(&key) {
            Some(known) => self.joined(known.clone(), &state),
            None => state,
        };
        self.heads.insert(key, joined.clone());
        self.state = Some(joined);
    }

    /// The end of a loop's body: what is known here holds at the head, too.
    fn back(&mut self, key: usize) {
        let Some(state) = self.state.take() else { return };
        match self.heads.get(&key) {
            Some(known) => {
                let joined = known.join(&state);
                if joined != *known {
                    self.heads.insert(key, joined);
                    self.again = true;
                }
            }
            None => {
                self.heads.insert(key, state);
                self.again = true;
            }
        }
    }

    fn joined(&mut self, a: State, b: &State) -> State {
        if a == *b { a } else { a.join(b) }
    }

    /// Adds one more way that leads to where `self.state` is.
    fn merge(&mut self, other: Option<State>) {
        let Some(other) = other else { return };
        join_into(&mut self.state, &other);
    }

    fn key<T>(node: &T) -> usize {
        std::ptr::from_ref(node) as usize
    }
}

/// Joins a state into one that may not have been reached yet.
fn join_into(into: &mut Option<State>, state: &State) {
    match into {
        Some(known) if known == state => {}
        Some(known) => *known = known.join(state),
        None => *into = Some(state.clone()),
    }
}

/// The qualifier-free test of a type: no value comes back from a function of it.
fn is_void(types: &crate::types::Types, ty: Ty) -> bool {
    matches!(types.get(ty), TyKind::Void)
}

//! Which types may take the place of a type variable of kind B.
//!
//! Code that handles a value of type `` `a `` handles a word of 8 bytes; `crate::elements` says where it matters that an `int` has four.
//! A function that is called by its name has copies for those; through a pointer, or for packages, there is one piece
//! of code for all types, and a type of another size cannot take the place of such a variable.

use super::Checker;
use super::effects::Pending;
use crate::diagnostics::{Code, Diagnostic};
use crate::elements::{self, Steps, Width};
use crate::source::Span;
use crate::tree::GlobalId;
use crate::types::{AggregateId, Function, Kind, Ty, TyKind, TyVar};
use std::rc::Rc;

/// The code that handles values whose type takes the place of a type variable.
#[derive(Clone, Debug)]
pub enum Handler {
    /// A function of this type: this one, or, through a pointer, any.
    Function(Rc<Function>, Option<GlobalId>),
    /// Code that opens packages.
    Opener(AggregateId),
}

impl Checker<'_> {
    /// A function is used with these types in the place of its parameters: decided at the end, when they are known.
    pub(super) fn instantiated(&mut self, function: &Rc<Function>, types: &[Ty], named: Option<GlobalId>, span: Span) {
        for (&param, &ty) in function.type_params.iter().zip(types) {
            self.takes_the_place(param, ty, Handler::Function(function.clone(), named), span);
        }
    }

    /// A package of this aggregate is made with these types in the place of the variables that its body binds.
    pub(super) fn packed(&mut self, id: AggregateId, types: &[Ty], span: Span) {
        let Some(body) = &self.declarations.aggregate(id).body else { return };
        for (param, &ty) in body.existentials.clone().into_iter().zip(types) {
            self.takes_the_place(param, ty, Handler::Opener(id), span);
        }
    }

    fn takes_the_place(&mut self, param: TyVar, ty: Ty, handler: Handler, span: Span) {
        let is_unknown = matches!(self.types.get(ty), TyKind::Evar(_));
        if self.types.var(param).kind != Kind::Boxed || !is_unknown && self.width(ty) == Width::Word {
            return;
        }
        let pending = Pending::Word(param, ty, handler, span);
        match &mut self.body {
            Some(body) => body.pending.push(pending),
            None => self.words.push(pending),
        }
    }

    fn width(&self, ty: Ty) -> Width {
        elements::width(&self.types, ty)
    }

    /// The translation unit ends: decides what was put off outside of functions.
    pub(super) fn decide_words(&mut self) {
        for pending in std::mem::take(&mut self.words) {
            self.decide(pending);
        }
    }

    /// Reports a type that is not as large as a word where generic code takes steps of a word.
    pub(super) fn check_word(&mut self, param: TyVar, ty: Ty, handler: &Handler, span: Span) {
        let width = self.width(ty);
        if width == Width::Word || width == Width::Int && self.has_copies(handler) || !self.takes_steps(handler, param)
        {
            return;
        }
        let (shown, info) = (self.show(ty), self.types.var(param).clone());
        let message = format!("`{shown}` cannot be `{}` here: memory is used in words of 8 bytes", info.shown());
        let diagnostic = Diagnostic::error(Code::NotAWord, span, message)
            .with(info.span, "this is what pointers lead to, or an element of an array")
            .help("use a type of 8 bytes, such as `long`, or a pointer");
        self.diagnostics.push(diagnostic);
    }

    fn takes_steps(&self, handler: &Handler, param: TyVar) -> bool {
        let (types, declarations) = (&self.types, &self.declarations);
        match handler {
            Handler::Function(function, named) => {
                let complete = named.map_or(u32::MAX, |id| declarations.global(id).complete);
                elements::of_function(types, declarations, function, complete, param) != Steps::No
            }
            Handler::Opener(id) => {
                let fields = declarations.aggregate(*id).body.iter().flat_map(|body| &body.fields);
                fields.into_iter().any(|field| elements::of_member(types, declarations, field.ty, param) != Steps::No)
            }
        }
    }

    fn has_copies(&self, handler: &Handler) -> bool {
        let Handler::Function(_, Some(id)) = handler else { return false };
        let global = self.declarations.global(*id);
        let TyKind::Function(function) = self.types.get(global.ty) else { return false };
        !elements::sized(&self.types, &self.declarations, global, function).is_empty()
    }
}

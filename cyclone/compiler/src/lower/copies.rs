//! Copies of generic functions, for elements of four bytes.
//!
//! [`crate::elements`] says through which of its type variables a function takes steps. For each choice of those that are `int`s there is a
//! copy, the same tree written with other shapes: while a copy is written ([`Lower::within`]), the shape of such a variable
//! is `int` instead of a word, and all conversions follow from that. Members of structures have type variables of their own, so they stay
//! words.
//!
//! All copies of a function that can be called from elsewhere are written, those of others when they are used. What a copy cannot do (see
//! [`Lower::refuse`]) makes it and the copies that call it fall away; if something else needs it, that is an error.

use super::Lower;
use super::shapes::{C, Shapes};
use crate::diagnostics::{Code, Diagnostic};
use crate::elements::{self, Steps, Width};
use crate::hash::{HashMap, HashSet};
use crate::source::Span;
use crate::tree::{Function, GlobalId, Linkage};
use crate::types::{Function as FunctionType, Ty, TyKind, TyVar};
use std::rc::Rc;

/// A function or variable, and which of its sized type variables are `int`s: a bit for each, none in the original.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Copy {
    pub global: GlobalId,
    ints: u8,
}

impl Copy {
    /// What is written for words.
    pub fn original(global: GlobalId) -> Copy {
        Copy { global, ints: 0 }
    }

    pub fn is_original(self) -> bool {
        self.ints == 0
    }
}

/// The type variables that are `int`s here.
type Ints = Rc<[TyVar]>;

/// What is known of copies.
#[derive(Default)]
pub struct Copies {
    here: Ints,
    /// Numbers of shapes by types, for other choices of `int`s than those here.
    elsewhere: HashMap<Ints, Vec<Option<C>>>,
    /// Where sized variables stand among the type parameters in order.
    sized: HashMap<GlobalId, Rc<[usize]>>,
    ints: HashMap<Copy, Ints>,
    /// What is being written, and what each copy uses.
    user: Option<Copy>,
    uses: Vec<(Copy, Copy, Span)>,
    refused: HashMap<Copy, (Span, String)>,
}

impl<'p> Lower<'p> {
    /// Whether values of this type have four bytes here where they lie in memory.
    pub fn is_int_wide(&self, ty: Ty) -> bool {
        let types = &self.program.types;
        match types.get(ty) {
            TyKind::Var(var) => self.is_int_here(*var),
            _ => elements::width(types, ty) == Width::Int,
        }
    }

    /// Whether a type variable stands for an `int` in the copy being written.
    pub fn is_int_here(&self, var: TyVar) -> bool {
        self.copies.here.contains(&var)
    }

    /// Whether a type variable that stands for an `int` here occurs in a type.
    pub fn mentions_ints(&self, ty: Ty) -> bool {
        !self.copies.here.is_empty() && self.program.types.mentions_any(ty, &self.copies.here)
    }

    /// The copies of a function that others may ask for.
    pub fn copies_for_others(&mut self, global: GlobalId) -> Vec<Copy> {
        let count = self.sized(global).len();
        (1..1_u8 << count).map(|ints| Copy { global, ints }).collect()
    }

    /// The copy of a function that is used with these types in the place of the type parameters of `declared`, which is its type in
    /// one of its declarations.
    pub fn copy_of(&mut self, global: GlobalId, declared: &FunctionType, types: &[Ty], span: Span) -> Copy {
        self.refuse_outer_variables(global, span);
        let mut copy = Copy::original(global);
        if !types.iter().any(|&ty| self.is_int_wide(ty)) {
            return copy;
        }
        let sized = self.sized(global);
        let params = self.program.types.type_params_in_order(declared);
        for (bit, &at) in sized.iter().enumerate() {
            let param = params.get(at).and_then(|var| declared.type_params.iter().position(|param| param == var));
            if param.and_then(|at| types.get(at)).is_some_and(|&ty| self.is_int_wide(ty)) {
                copy.ints |= 1 << bit;
            }
        }
        copy
    }

    /// A function inside of the one that is being copied handles words.
    fn refuse_outer_variables(&mut self, global: GlobalId, span: Span) {
        if self.copies.here.is_empty() {
            return;
        }
        let program = self.program;
        let ty = program.declarations.global(global).ty;
        let TyKind::Function(function) = program.types.get(ty) else { return };
        let outer = self.copies.here.iter().copied().filter(|var| !function.type_params.contains(var));
        if program.types.mentions_any(ty, &outer.collect::<Vec<_>>()) {
            self.refuse(span, "in a function that has a function inside which handles them");
        }
    }

    fn sized(&mut self, global: GlobalId) -> Rc<[usize]> {
        if let Some(known) = self.copies.sized.get(&global) {
            return known.clone();
        }
        let program = self.program;
        let of = program.declarations.global(global);
        let sized: Rc<[usize]> = match program.types.get(of.ty) {
            TyKind::Function(function) if !function.type_params.is_empty() => {
                let params = program.types.type_params_in_order(function);
                let sized = elements::sized(&program.types, &program.declarations, of, function);
                sized.iter().filter_map(|var| params.iter().position(|param| param == var)).collect()
            }
            _ => Rc::default(),
        };
        self.copies.sized.insert(global, sized.clone());
        sized
    }

    /// The type variables that are `int`s in a copy: those of the last declaration and those of the body.
    fn ints(&mut self, copy: Copy) -> Ints {
        if copy.is_original() {
            return Ints::default();
        }
        if let Some(known) = self.copies.ints.get(&copy) {
            return known.clone();
        }
        let program = self.program;
        let sized = self.sized(copy.global);
        let mut ints = Vec::new();
        let mut add = |function: &FunctionType| {
            let params = program.types.type_params_in_order(function);
            let chosen = sized.iter().enumerate().filter(|(bit, _)| copy.ints & 1 << bit != 0);
            ints.extend(chosen.filter_map(|(_, &at)| params.get(at)));
        };
        if let TyKind::Function(function) = program.types.get(program.declarations.global(copy.global).ty) {
            add(function);
        }
        if let Some(function) = program.functions.iter().find(|function| function.global == copy.global) {
            add(&function.ty);
        }
        ints.sort_unstable();
        ints.dedup();
        let ints: Ints = ints.into();
        self.copies.ints.insert(copy, ints.clone());
        ints
    }

    /// Shapes are those of a copy while `f` runs.
    pub fn within<R>(&mut self, copy: Copy, f: impl FnOnce(&mut Self) -> R) -> R {
        let ints = self.ints(copy);
        if ints == self.copies.here {
            return f(self);
        }
        let outside = self.go_to(ints);
        let result = f(self);
        self.go_to(outside);
        result
    }

    fn go_to(&mut self, ints: Ints) -> Ints {
        let known = self.copies.elsewhere.remove(&ints).unwrap_or_default();
        let known = Shapes::exchange(&mut self.shapes, known);
        let outside = std::mem::replace(&mut self.copies.here, ints);
        self.copies.elsewhere.insert(outside.clone(), known);
        outside
    }

    /// The C name of a copy.
    pub fn copy_name(&mut self, copy: Copy) -> Rc<str> {
        let name = self.global_name(copy.global);
        if copy.is_original() {
            return name;
        }
        let count = self.sized(copy.global).len();
        let letters: String = (0..count).map(|bit| if copy.ints & 1 << bit != 0 { 'i' } else { 'w' }).collect();
        text!("_cyc_copy_", letters, "_", name).into()
    }

    /// Notes that what is being written uses a copy.
    pub fn note_use(&mut self, copy: Copy) {
        if let Some(user) = self.copies.user
            && !copy.is_original()
        {
            let span = self.program.declarations.global(user.global).span;
            self.copies.uses.push((user, copy, span));
        }
    }

    /// The definition of a function or copy.
    pub fn define_copy(&mut self, copy: Copy, function: &'p Function) -> String {
        self.copies.user = Some(copy);
        let text = self.within(copy, |lower| lower.define(function, copy));
        self.copies.user = None;
        text
    }

    /// What cannot be done with values of four bytes: in a copy it makes the copy fall away.
    pub fn refuse(&mut self, span: Span, why: &str) {
        let message = format!("`int` cannot be used {why}");
        match self.copies.user {
            Some(copy) if !copy.is_original() => {
                self.copies.refused.entry(copy).or_insert((span, message));
            }
            _ => {
                let is_known = |known: &Diagnostic| known.span == span && known.message == message;
                if !self.diagnostics.iter().any(is_known) {
                    self.diagnostics.push(Diagnostic::error(Code::NotAWord, span, message));
                }
            }
        }
    }

    /// Code that handles all types of values as words gets these, of one of its type variables.
    pub fn refuse_steps(&mut self, ty: Ty, steps: impl FnOnce(&Self) -> Steps, span: Span, why: &str) {
        let is_int_here = matches!(self.program.types.get(ty), TyKind::Var(var) if self.is_int_here(*var));
        if is_int_here && steps(self) != Steps::No {
            self.refuse(span, why);
        }
    }

    /// The copies that fall away. That something else needs one is reported.
    pub fn fallen_copies(&mut self) -> HashSet<Copy> {
        let mut fallen: HashSet<Copy> = self.copies.refused.keys().copied().collect();
        loop {
            let more: Vec<(Copy, Copy)> = self
                .copies
                .uses
                .iter()
                .filter(|(user, used, _)| fallen.contains(used) && !user.is_original() && !fallen.contains(user))
                .map(|&(user, used, _)| (user, used))
                .collect();
            for (user, used) in &more {
                if let Some(why) = self.copies.refused.get(used).cloned() {
                    self.copies.refused.entry(*user).or_insert(why);
                }
                fallen.insert(*user);
            }
            if more.is_empty() {
                break;
            }
        }
        let mut reported: Vec<(Span, Copy)> = Vec::new();
        for &(user, used, span) in &self.copies.uses {
            if user.is_original() && fallen.contains(&used) && !reported.iter().any(|(_, copy)| *copy == used) {
                reported.push((span, used));
            }
        }
        for (user, used) in reported {
            if let Some((span, message)) = self.copies.refused.get(&used).cloned() {
                let error = Diagnostic::error(Code::NotAWord, span, message);
                self.diagnostics.push(error.with(user, "it is called with `int`s from here"));
            }
        }
        fallen
    }

    /// Whether a global is a function that others may call.
    pub fn is_shared_function(&self, global: GlobalId) -> bool {
        let of = self.program.declarations.global(global);
        of.linkage == Linkage::External && of.is_defined && matches!(self.program.types.get(of.ty), TyKind::Function(_))
    }
}

//! Functions of which all calls are known: `static` ones that are named nowhere but in calls, in this file.
//!
//! What holds at all calls of such a function holds where it begins ([`super::bounds`]), so functions are looked at after those
//! that call them; and C may see them in a form that pointers to functions could not have.

use super::walk;
use crate::hash::{HashMap, HashSet};
use crate::tree::{Expr, ExprKind, Function, GlobalId, Linkage, Program};

/// The calls of a program.
pub struct Callers {
    /// The functions whose calls are all known, with their numbers in the program.
    called_only: HashMap<GlobalId, usize>,
    /// Of each function, those of them that it calls, once for each call.
    calls: Vec<Vec<usize>>,
}

impl Callers {
    /// Finds all calls.
    pub fn of(program: &Program) -> Callers {
        let mut named = Named { program, calls: Vec::new(), escaped: HashSet::default() };
        let mut calls = Vec::with_capacity(program.functions.len());
        for function in &program.functions {
            named.look(|visit| walk::expressions(function, visit));
            calls.push(std::mem::take(&mut named.calls));
        }
        for init in program.declarations.globals.iter().filter_map(|global| global.init.as_ref()) {
            named.look(|visit| walk::in_init(init, visit));
        }
        let escaped = named.escaped;
        // Text in C may name anything.
        let is_called_only =
            |function: &Function| is_private(program, function.global) && !escaped.contains(&function.global);
        let functions = program.functions.iter().enumerate().filter(|_| program.c_bodies.is_empty());
        let called_only: HashMap<_, _> = functions
            .filter(|(_, function)| is_called_only(function))
            .map(|(number, function)| (function.global, number))
            .collect();
        let calls = calls.into_iter().map(|ids| ids.iter().filter_map(|id| called_only.get(id)).copied().collect());
        let calls = calls.collect();
        Callers { called_only, calls }
    }

    /// The functions whose calls are all known.
    pub fn called_only(&self) -> impl Iterator<Item = (GlobalId, usize)> + '_ {
        self.called_only.iter().map(|(&id, &number)| (id, number))
    }

    /// How many calls there are of each function of the program, if all are known.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.calls.len()];
        self.calls.iter().flatten().for_each(|&callee| counts[callee] += 1);
        counts
    }

    /// All functions, each after those that call it, but for those that call each other in a circle.
    pub fn in_order(&self) -> Vec<usize> {
        let mut waits_for = self.counts();
        let mut order: Vec<usize> = Vec::with_capacity(self.calls.len());
        let mut is_placed = vec![false; self.calls.len()];
        let mut ready: Vec<usize> = (0..self.calls.len()).rev().filter(|&function| waits_for[function] == 0).collect();
        let mut next_in_circle = 0;
        while order.len() < self.calls.len() {
            let function = match ready.pop() {
                Some(function) => function,
                None => {
                    next_in_circle += is_placed[next_in_circle..].iter().take_while(|&&placed| placed).count();
                    next_in_circle
                }
            };
            if std::mem::replace(&mut is_placed[function], true) {
                continue;
            }
            order.push(function);
            for &callee in &self.calls[function] {
                waits_for[callee] -= 1;
                if waits_for[callee] == 0 && !is_placed[callee] {
                    ready.push(callee);
                }
            }
        }
        order
    }

    /// Of the functions for which `is_wanted`, and those that call them, and those that call these: whether each is one.
    pub fn leading_to(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut leads: Vec<bool> = (0..self.calls.len()).map(is_wanted).collect();
        // Callees come later, so that one pass from the end does for all but circles, of which nothing is known anyway.
        for function in self.in_order().into_iter().rev() {
            leads[function] |= self.calls[function].iter().any(|&callee| leads[callee]);
        }
        leads
    }
}

fn is_private(program: &Program, id: GlobalId) -> bool {
    let global = program.declarations.global(id);
    global.linkage == Linkage::Internal
        && global.overrides.is_none()
        && global.asm_name.is_none()
        && global.attributes.is_empty()
}

/// What is named.
struct Named<'p> {
    program: &'p Program,
    calls: Vec<GlobalId>,
    /// What is named elsewhere than in a call.
    escaped: HashSet<GlobalId>,
}

impl Named<'_> {
    fn look<'t>(&mut self, walk: impl FnOnce(&mut dyn FnMut(&'t Expr))) {
        let mut callee: *const Expr = std::ptr::null();
        walk(&mut |expr| match &expr.kind {
            ExprKind::Call(call) => {
                if let Some(id) = call.callee.named_function(&self.program.types) {
                    self.calls.push(id);
                    callee = name_in(&call.callee);
                }
            }
            // The called function's name comes next after the call.
            ExprKind::Global(id) if !std::ptr::eq(expr, callee) => {
                self.escaped.insert(*id);
            }
            _ => {}
        });
    }
}

fn name_in(callee: &Expr) -> &Expr {
    match &callee.kind {
        ExprKind::Coerce(_, inner) => name_in(inner),
        _ => callee,
    }
}

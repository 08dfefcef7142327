//! Calls.

use super::function::Body;
use super::shapes::{C, Shape};
use crate::tree::{Call, CallVarArgs, Coercion, Expr, ExprKind, GlobalId};
use crate::types::{Function, TyKind};
use std::fmt::Write;

/// The function that is named by an expression, if it is not computed.
fn named(callee: &Expr) -> Option<GlobalId> {
    match &callee.kind {
        ExprKind::Global(id) => Some(*id),
        ExprKind::Coerce(Coercion::Decay | Coercion::Same, inner) => named(inner),
        _ => None,
    }
}

impl<'p> Body<'_, 'p> {
    /// The function type that C sees.
    fn called(&self, call: &'p Call) -> &'p Function {
        let types = &self.lower.program.types;
        let ty = match named(&call.callee) {
            Some(id) => self.lower.program.declarations.global(id).ty,
            None => call.callee.ty,
        };
        match types.get(ty) {
            TyKind::Function(function) => function,
            TyKind::Pointer(pointer) => match types.get(pointer.target) {
                TyKind::Function(function) => function,
                _ => &call.declared,
            },
            _ => &call.declared,
        }
    }

    pub fn result_shape(&mut self, call: &Call) -> C {
        let types = &self.lower.program.types;
        let ty = match named(&call.callee) {
            Some(id) => self.lower.program.declarations.global(id).ty,
            None => call.callee.ty,
        };
        let result = match types.get(ty) {
            TyKind::Function(function) => function.result,
            TyKind::Pointer(pointer) => match types.get(pointer.target) {
                TyKind::Function(function) => function.result,
                _ => call.declared.result,
            },
            _ => call.declared.result,
        };
        self.lower.shape(result)
    }

    pub fn call(&mut self, call: &'p Call) {
        let function = self.called(call);
        let mut operands: Vec<(&'p Expr, C)> = Vec::with_capacity(call.args.len());
        for (index, arg) in call.args.iter().enumerate() {
            let ty = function.params.get(index).map_or(arg.ty, |param| param.ty);
            operands.push((arg, self.lower.shape(ty)));
        }
        let fixed = operands.len();
        if let Some(varargs) = &call.varargs {
            for index in 0..varargs.args.len() {
                operands.push(self.variable_operand(function, varargs, index));
            }
        }
        let is_named = named(&call.callee).is_some();
        let callee = (!is_named).then_some(&call.callee);
        let is_seen = self.is_order_seen(callee.into_iter().chain(operands.iter().map(|(operand, _)| *operand)));
        if is_seen {
            self.push("({ ");
            let callee = match callee {
                Some(callee) => {
                    let c = self.callee_shape(callee);
                    self.temporary(c, |body| body.value_as(callee, c))
                }
                None => self.captured(|body| body.callee(call)),
            };
            let texts = self.in_order(&operands);
            self.push(&callee);
            self.arguments(call, function, fixed, &mut |body, index| body.push(&texts[index]));
            self.push("; })");
        } else {
            self.callee(call);
            self.arguments(call, function, fixed, &mut |body, index| {
                body.value_as(operands[index].0, operands[index].1)
            });
        }
    }

    fn callee_shape(&mut self, callee: &Expr) -> C {
        let c = self.lower.shape(callee.ty);
        match self.lower.shapes.get(c) {
            Shape::Function { .. } => self.lower.shapes.pointer(c),
            _ => c,
        }
    }

    fn callee(&mut self, call: &'p Call) {
        match named(&call.callee) {
            Some(id) => {
                let name = self.lower.use_global(id);
                self.push(&name);
            }
            None => {
                let c = self.callee_shape(&call.callee);
                match self.lower.program.types.get(call.callee.ty) {
                    TyKind::Function(_) => {
                        let have = self.shape_of(&call.callee);
                        let have = match self.lower.shapes.get(have) {
                            Shape::Function { .. } => self.lower.shapes.pointer(have),
                            _ => have,
                        };
                        self.converted(have, c, |body| body.place(&call.callee));
                    }
                    _ => self.value_as(&call.callee, c),
                }
            }
        }
    }

    fn arguments(
        &mut self,
        call: &'p Call,
        function: &'p Function,
        fixed: usize,
        write: &mut dyn FnMut(&mut Self, usize),
    ) {
        self.push("(");
        for index in 0..fixed {
            if index > 0 {
                self.push(", ");
            }
            write(self, index);
        }
        if function.varargs.is_some() {
            if fixed > 0 {
                self.push(", ");
            }
            match &call.varargs {
                Some(varargs) if !varargs.args.is_empty() => self.variable_arguments(function, varargs, fixed, write),
                _ => self.push("_cyc_fat_null"),
            }
        }
        self.push(")");
    }

    /// The type of an element of the array of variable arguments, as C sees it.
    fn element_shape(&mut self, function: &Function, varargs: &CallVarArgs) -> C {
        let ty = function.varargs.as_ref().map_or(varargs.element, |declared| declared.ty);
        self.lower.shape(ty)
    }

    fn variable_operand(&mut self, function: &Function, varargs: &'p CallVarArgs, index: usize) -> (&'p Expr, C) {
        let arg = &varargs.args[index];
        let c = match &varargs.inject {
            Some((id, constructors)) => self.lower.constructor_member(*id, constructors[index], 0).0,
            None => self.element_shape(function, varargs),
        };
        (arg, c)
    }

    fn variable_arguments(
        &mut self,
        function: &'p Function,
        varargs: &'p CallVarArgs,
        fixed: usize,
        write: &mut dyn FnMut(&mut Self, usize),
    ) {
        let element = self.element_shape(function, varargs);
        let cast = self.lower.cast(element);
        let count = varargs.args.len();
        let array = self.lower.shapes.make(Shape::Array(element, None));
        let array = self.lower.cast(array);
        let _ = write!(self.out, "_cyc_fat_make(({array}){{");
        for index in 0..count {
            if index > 0 {
                self.push(", ");
            }
            match &varargs.inject {
                Some((id, constructors)) => {
                    let structure = self.lower.shapes.make(Shape::Constructor(*id, constructors[index]));
                    let structure = self.lower.cast(structure);
                    let tag = self.lower.constructor_tag_value(*id, constructors[index]);
                    let _ = write!(self.out, "({cast})&({structure}){{{tag}, ");
                    write(self, fixed + index);
                    self.push("}");
                }
                None => write(self, fixed + index),
            }
        }
        let _ = write!(self.out, "}}, {count} * sizeof({cast}))");
    }
}

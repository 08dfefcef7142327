//! Calls.

use super::Lower;
use super::copies::Copy;
use super::function::Body;
use super::shapes::{C, Shape};
use crate::elements;
use crate::source::Span;
use crate::tree::{Call, CallVarArgs, Expr, GlobalId};
use crate::types::{Function, Ty, TyKind};
use std::fmt::Write;

impl<'p> Body<'_, 'p> {
    /// The function that an expression names, if it is not computed.
    fn named(&self, function: &Expr) -> Option<GlobalId> {
        function.named_function(&self.lower.program.types)
    }

    /// The function type that C sees.
    fn called<'c>(&self, call: &'c Call) -> &'c Function
    where
        'p: 'c,
    {
        let types = &self.lower.program.types;
        let ty = match self.named(&call.callee) {
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

    /// The copy of a function that a call of one by its name calls.
    fn copy(&mut self, call: &Call) -> Option<Copy> {
        let id = self.named(&call.callee)?;
        Some(self.lower.copy_of(id, &call.declared, &call.instantiation, call.callee.span))
    }

    /// The shape of a parameter as the called function has it.
    fn param_shape(&mut self, call: &Call, ty: Ty) -> C {
        match self.copy(call) {
            Some(copy) => self.lower.within(copy, |lower| lower.shape(ty)),
            None => {
                let c = self.lower.shape(ty);
                self.lower.carried(c)
            }
        }
    }

    pub fn result_shape(&mut self, call: &Call) -> C {
        let function = self.called(call);
        let Some(copy) = self.copy(call) else { return self.lower.carried_result(function) };
        self.lower.within(copy, |lower| lower.named_result(function, copy.global))
    }

    /// Writes a pointer to a generic function that is used with these types.
    pub fn instantiated(&mut self, function: &'p Expr, instantiation: &[Ty], ty: Ty) {
        let want = self.lower.shape(ty);
        let program = self.lower.program;
        let declared = match program.types.get(function.ty) {
            TyKind::Pointer(pointer) => program.types.get(pointer.target),
            other => other,
        };
        let TyKind::Function(declared) = declared else { return self.value_as(function, want) };
        let Some(id) = self.named(function) else {
            self.refuse_instantiation(declared, instantiation, function.span);
            return self.value_as(function, want);
        };
        let copy = self.lower.copy_of(id, declared, instantiation, function.span);
        if copy.is_original() {
            return self.value_as(function, want);
        }
        let name = self.lower.use_copy(copy);
        let cast = self.lower.cast(want);
        put!(self.out, "((", cast, ")", name, ")");
    }

    /// What a pointer leads to is one piece of code for all types.
    fn refuse_instantiation(&mut self, function: &Function, instantiation: &[Ty], span: Span) {
        let program = self.lower.program;
        for (&param, &ty) in function.type_params.iter().zip(instantiation) {
            let steps =
                |_: &Lower| elements::of_function(&program.types, &program.declarations, function, u32::MAX, param);
            self.lower.refuse_steps(ty, steps, span, "by a generic function that a pointer leads to");
        }
    }

    pub fn call(&mut self, call: &'p Call) {
        let function = self.called(call);
        if self.named(&call.callee).is_none() {
            self.refuse_instantiation(&call.declared, &call.instantiation, call.callee.span);
        }
        let mut operands: Vec<(&'p Expr, C)> = Vec::with_capacity(call.args.len());
        for (index, arg) in call.args.iter().enumerate() {
            let c = match function.params.get(index) {
                Some(param) => self.param_shape(call, param.ty),
                None => self.lower.shape(arg.ty),
            };
            operands.push((arg, c));
        }
        let fixed = operands.len();
        if let Some(varargs) = &call.varargs {
            for index in 0..varargs.args.len() {
                operands.push(self.variable_operand(call, function, varargs, index));
            }
        }
        let is_named = self.named(&call.callee).is_some();
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
        match self.copy(call) {
            Some(copy) => {
                let name = match copy.is_original() {
                    true => self.lower.use_global(copy.global),
                    false => self.lower.use_copy(copy),
                };
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
                Some(varargs) if !varargs.args.is_empty() => {
                    self.variable_arguments(call, function, varargs, fixed, write)
                }
                _ => self.push("_cyc_fat_null"),
            }
        }
        self.push(")");
    }

    /// The type of an element of the array of variable arguments, as C sees it.
    fn element_shape(&mut self, call: &Call, function: &Function, varargs: &CallVarArgs) -> C {
        match &function.varargs {
            Some(declared) => match self.copy(call) {
                Some(copy) => self.lower.within(copy, |lower| lower.shape(declared.ty)),
                None => self.lower.shape(declared.ty),
            },
            None => self.lower.shape(varargs.element),
        }
    }

    fn variable_operand(
        &mut self,
        call: &Call,
        function: &Function,
        varargs: &'p CallVarArgs,
        index: usize,
    ) -> (&'p Expr, C) {
        let arg = &varargs.args[index];
        let c = match &varargs.inject {
            Some((id, constructors)) => self.lower.constructor_member(*id, constructors[index], 0).0,
            None => self.element_shape(call, function, varargs),
        };
        (arg, c)
    }

    fn variable_arguments(
        &mut self,
        call: &'p Call,
        function: &'p Function,
        varargs: &'p CallVarArgs,
        fixed: usize,
        write: &mut dyn FnMut(&mut Self, usize),
    ) {
        let element = self.element_shape(call, function, varargs);
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

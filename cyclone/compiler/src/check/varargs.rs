//! Variable arguments: C's, Cyclone's of one type, and those that are injected into a datatype.

use super::Checker;
use crate::ast;
use crate::diagnostics::Code;
use crate::source::Span;
use crate::tree::{CallVarArgs, Expr};
use crate::types::{DatatypeId, Function, Kind, Pointer, Ty, TyKind};
use thin_vec::ThinVec;

/// What to do where arguments that must have one type have several.
const ONE_TYPE: &str = "all of these arguments have one type, which the first decides: cast it to what fits all, such as \
    `(const char ?)\"a\"`, or make each a value of a datatype";

impl Checker<'_> {
    /// What stands after the parameters that have names. C's are appended to `values`.
    pub(super) fn variable_arguments(
        &mut self,
        function: &Function,
        extra: &[ast::Expr],
        wanted: Option<Vec<Ty>>,
        values: &mut ThinVec<Expr>,
        span: Span,
    ) -> Option<CallVarArgs> {
        if !function.c_varargs && function.varargs.is_none() {
            return None;
        }
        if let Some(wanted) = &wanted
            && wanted.len() != extra.len()
            && values.len() == function.params.len()
        {
            let (want, have) = (wanted.len(), extra.len());
            let values = if want == 1 { "value" } else { "values" };
            let there = if have == 1 { "is" } else { "are" };
            let message = format!("the format string asks for {want} {values}, and there {there} {have}");
            self.error(Code::WrongFormat, span, message);
        }
        let mut typed = ThinVec::with_capacity(extra.len());
        for (index, argument) in extra.iter().enumerate() {
            let value = match wanted.as_ref().and_then(|wanted| wanted.get(index)) {
                Some(&ty) => {
                    let messages = self.diagnostics.len();
                    let value = self.formatted(argument, ty);
                    self.advise(
                        messages,
                        "the format string asks for it: `%d` for an `int`, `%s` for a text, `%g` for a `double`",
                    );
                    value
                }
                None => self.value(argument, function.varargs.as_ref().filter(|v| !v.inject).map(|v| v.ty)),
            };
            self.check_consumed(&value);
            typed.push(value);
        }
        let Some(varargs) = &function.varargs else {
            for value in typed {
                let value = self.c_argument(value);
                values.push(value);
            }
            return None;
        };
        if varargs.inject {
            return self.inject_all(varargs.ty, typed, span);
        }
        let args = typed
            .into_iter()
            .map(|value| {
                let (value_span, messages) = (value.span, self.diagnostics.len());
                let value = self.coerce(value, varargs.ty, value_span);
                self.advise(messages, ONE_TYPE);
                value
            })
            .collect();
        Some(CallVarArgs { element: varargs.ty, args, inject: None })
    }

    /// Adds advice to reports, from this number on, that have none.
    fn advise(&mut self, messages: usize, advice: &str) {
        for report in &mut self.diagnostics[messages..] {
            report.help.get_or_insert_with(|| advice.to_owned());
        }
    }

    /// What C passes through `...`: small numbers widened, pointers thin.
    fn c_argument(&mut self, value: Expr) -> Expr {
        match self.types.get(value.ty).clone() {
            TyKind::Float(ast::FloatSize::Float) => {
                let double = self.make(TyKind::Float(ast::FloatSize::Double));
                self.number_to(value, double)
            }
            TyKind::Pointer(parts) if matches!(self.types.get(parts.bound), TyKind::Fat) => {
                let bound = self.thin(1);
                let ty = self.pointer_type(Pointer { bound, ..parts });
                let span = value.span;
                self.coerce(value, ty, span)
            }
            _ if self.is_integral(value.ty) => self.promote(value),
            _ => value,
        }
    }

    /// Wraps each value in the constructor of the datatype that takes it.
    fn inject_all(&mut self, element: Ty, values: ThinVec<Expr>, span: Span) -> Option<CallVarArgs> {
        let datatype = match self.types.get(element) {
            TyKind::Pointer(pointer) => match self.types.get(pointer.target) {
                TyKind::Datatype(id, args) => Some((*id, args.clone())),
                _ => None,
            },
            _ => None,
        };
        let Some((id, args)) = datatype else {
            let shown = self.show(element);
            self.error(Code::WrongType, span, format!("arguments cannot be injected into `{shown}`"));
            return None;
        };
        let mut constructors = ThinVec::with_capacity(values.len());
        let mut injected = ThinVec::with_capacity(values.len());
        let mut regions: Vec<Vec<Ty>> = vec![Vec::new(); args.len()];
        for value in values {
            // Values may point into different regions, also of a loan for this call: each gets arguments of its own, which are joined below.
            let own: Vec<Ty> = args
                .iter()
                .map(|&arg| match self.types.kind(arg) {
                    Kind::Effect => self.region_of_argument(),
                    _ => arg,
                })
                .collect();
            let value_span = value.span;
            let Some((index, value)) = self.inject(id, &own, value) else { continue };
            for (at, &arg) in own.iter().enumerate() {
                if self.types.kind(arg) == Kind::Effect && !matches!(self.types.get(arg), TyKind::Evar(_)) {
                    regions[at].push(arg);
                }
            }
            constructors.push(index);
            injected.push(Expr { span: value_span, ..value });
        }
        for (&arg, regions) in args.iter().zip(regions) {
            if regions.is_empty() {
                continue;
            }
            let joined = self.types.join(regions);
            if !self.region_fits(joined, arg) {
                let (have, want) = (self.show(joined), self.show(arg));
                self.error(
                    Code::WrongType,
                    span,
                    format!("the arguments point into `{have}`, and `{want}` is asked for"),
                );
            }
        }
        Some(CallVarArgs { element, args: injected, inject: Some((id, constructors)) })
    }

    /// The constructor that takes a value, and the value as it takes it.
    fn inject(&mut self, id: DatatypeId, args: &[Ty], value: Expr) -> Option<(u32, Expr)> {
        if matches!(self.types.get(value.ty), TyKind::Error) {
            return None;
        }
        let count = self.declarations.datatype(id).constructors.len() as u32;
        let mut takers = Vec::new();
        for index in 0..count {
            if let [param] = self.constructor_params(id, index, args)[..].as_ref() {
                takers.push((index, param.ty));
            }
        }
        let mut value = self.c_promoted(value);
        for &(index, ty) in &takers {
            if self.try_unify(value.ty, ty).is_ok() {
                return Some((index, value));
            }
        }
        // A pointer could become a number, too: that comes last.
        let number = self.is_arithmetic(value.ty);
        let (alike, others): (Vec<_>, Vec<_>) = takers.iter().partition(|(_, ty)| self.is_arithmetic(*ty) == number);
        for &(index, ty) in alike.into_iter().chain(others.into_iter().filter(|_| !number)) {
            value = match self.try_coerce(value, ty) {
                Ok(value) => return Some((index, value)),
                Err(refusal) => refusal.0,
            };
        }
        let shown = self.show(value.ty);
        let name = self.declarations.datatype(id).name;
        self.error(
            Code::WrongType,
            value.span,
            format!("no constructor of `datatype {name}` takes a value of type `{shown}`"),
        );
        None
    }

    fn c_promoted(&mut self, value: Expr) -> Expr {
        match self.types.get(value.ty) {
            TyKind::Float(ast::FloatSize::Float) => self.c_argument(value),
            _ if self.is_integral(value.ty) => self.promote(value),
            _ => value,
        }
    }
}

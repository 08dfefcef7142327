//! Calls: instantiation, arguments, inferred aliases.
//!
//! # Inferred aliases
//!
//! A unique pointer in a variable may be given to a function that takes an aliasable pointer into a region of its own choice: for the
//! time of the call the pointer is lent under a fresh region. That is tried first; if the region would get out through the result,
//! the call is typed once more without it, and the pointer is consumed. Each call is typed twice at most, and
//! [`RETRIES`] bounds what nested calls make of that. A result that nobody looks at may belong to the region.
//!
//! An address inside of what a unique pointer owns is lent in the same way (`loans`).

use super::Checker;
use super::coerce::wrap;
use super::names::Value;
use crate::ast;
use crate::diagnostics::{Code, Severity};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Call, Check, Checks, Coercion, Expr, ExprKind, GlobalId};
use crate::types::{Alias, Function, Pointer, Substitution, Ty, TyKind, TyVar};
use std::rc::Rc;
use thin_vec::ThinVec;

/// How many calls of a function are typed a second time.
const RETRIES: u32 = 200;

/// How deep the types of numbers are looked for in what is expected of a call.
const HINT_DEPTH: u32 = 4;

/// Whether unique pointers are lent to calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lending {
    Tried,
    Off,
}

/// What a call's arguments have become.
struct Arguments {
    values: ThinVec<Expr>,
    lent: Vec<TyVar>,
}

impl Checker<'_> {
    /// `callee(arguments)`: a call, or a value of a constructor or structure.
    pub fn call(&mut self, callee: &ast::Expr, arguments: &[ast::Expr], expected: Option<Ty>, span: Span) -> Expr {
        let is_unused = std::mem::take(&mut self.is_unused);
        if let ast::ExprKind::Name(path) = &callee.kind {
            match self.lookup_value(path) {
                Some(Value::Constructor(id, index)) => {
                    // A structure of the same name is meant where only it takes so many.
                    let takes = self.declarations.datatype(id).constructors[index as usize].params.len();
                    if takes == 0 && arguments.is_empty() {
                        let name = path.name;
                        return self.wrong(
                            Code::WrongArguments,
                            span,
                            format!("constructor `{name}` takes no arguments: write it alone"),
                        );
                    }
                    return match self.lookup_aggregate(path) {
                        Some(id) if takes != arguments.len() => self.struct_of(id, arguments, expected, span),
                        _ => self.construct(id, index, arguments, expected, span),
                    };
                }
                Some(_) => {}
                None if path.name.as_str().starts_with("__builtin_") => {
                    return self.builtin(path.name, arguments, span);
                }
                None => {
                    if let Some(id) = self.lookup_aggregate(path) {
                        return self.struct_of(id, arguments, expected, span);
                    }
                }
            }
        }
        let with_hidden = self.with_hidden_arguments(callee, arguments);
        let arguments = with_hidden.as_deref().unwrap_or(arguments);
        let lending = match &self.body {
            Some(body) if body.retries < RETRIES => Lending::Tried,
            _ => Lending::Off,
        };
        let types = self.types.snapshot();
        let messages = self.diagnostics.len();
        let first = self.call_lending(callee, arguments, expected, span, (lending, is_unused));
        let lent = first.as_ref().is_none_or(|(call, lends)| *lends || has_wrong_argument(call));
        match first {
            Some((call, _)) if !self.has_errors_since(messages) || !lent || lending == Lending::Off => call,
            _ => {
                if let Some(body) = &mut self.body {
                    body.retries += 1;
                }
                self.types.rollback(types);
                let was_wrong = self.has_errors_since(messages);
                let tried = self.diagnostics.split_off(messages);
                let second = self.call_lending(callee, arguments, expected, span, (Lending::Off, is_unused));
                let escaped = tried.iter().any(|report| report.code == Code::Escapes);
                if was_wrong && !escaped && self.has_errors_since(messages) {
                    // Something else is wrong than that it is lent.
                    self.diagnostics.truncate(messages);
                    self.diagnostics.extend(tried);
                }
                second.map_or_else(|| Expr::error(&mut self.types, span), |(call, _)| call)
            }
        }
    }

    /// Whether there is an error among the messages from this number on.
    fn has_errors_since(&self, messages: usize) -> bool {
        self.diagnostics[messages..].iter().any(|message| message.severity == Severity::Error)
    }

    /// Unknown types in a result become the types of numbers that stand in their place in what is expected: a conversion of the whole
    /// changes none of those, and arguments are converted to them.
    fn expect_numbers(&mut self, result: Ty, expected: Ty, depth: u32) {
        if depth == 0 {
            return;
        }
        let pairs: Vec<(Ty, Ty)> = match (self.types.get(result), self.types.get(expected)) {
            (TyKind::Evar(_), _) if self.is_arithmetic(expected) => return drop(self.try_unify(result, expected)),
            (TyKind::Pointer(a), TyKind::Pointer(b)) => vec![(a.target, b.target)],
            (TyKind::Aggregate(a, left), TyKind::Aggregate(b, right)) if a == b => {
                left.iter().copied().zip(right.iter().copied()).collect()
            }
            (TyKind::Datatype(a, left), TyKind::Datatype(b, right)) if a == b => {
                left.iter().copied().zip(right.iter().copied()).collect()
            }
            (TyKind::Tuple(left), TyKind::Tuple(right)) => {
                left.iter().zip(right.iter()).map(|(a, b)| (a.ty, b.ty)).collect()
            }
            _ => return,
        };
        for (result, expected) in pairs {
            self.expect_numbers(result, expected, depth - 1);
        }
    }

    /// The call, and whether it lends anything. `None`: what was lent would get out.
    fn call_lending(
        &mut self,
        callee: &ast::Expr,
        arguments: &[ast::Expr],
        expected: Option<Ty>,
        span: Span,
        (lending, is_unused): (Lending, bool),
    ) -> Option<(Expr, bool)> {
        let (callee, given) = self.callee(callee);
        let declared = match self.types.get(callee.ty) {
            TyKind::Function(function) => function.clone(),
            TyKind::Pointer(pointer) => match self.types.get(pointer.target) {
                TyKind::Function(function) => function.clone(),
                _ => return Some((self.not_callable(&callee, arguments), false)),
            },
            _ => return Some((self.not_callable(&callee, arguments), false)),
        };
        let callee = self.checked_callee(callee);
        let level = self.level();
        let named = callee.named_function(&self.types);
        let (function, instantiation) = self.instantiate(&declared, given, level + 1, named, span);
        if let Some(expected) = expected
            && !matches!(self.types.get(expected), TyKind::Evar(_))
        {
            // A hint only: what does not agree is found when the result is converted.
            if self.try_unify(function.result, expected).is_err() {
                self.expect_numbers(function.result, expected, HINT_DEPTH);
            }
        }
        let mut args = self.arguments(&function, arguments, lending, span);
        self.check_requirements(&callee, &args.values, span);
        let format = function.attributes.format;
        let wanted = self.format_types(&function, &args.values, span);
        let mut values = args.values;
        let extra = arguments.get(function.params.len()..).unwrap_or(&[]);
        let (varargs, lent) = self.with_loan(lending == Lending::Tried, |checker| {
            checker.variable_arguments(&function, extra, wanted, &mut values, span)
        });
        args.lent.extend(lent);
        for &region in &args.lent {
            self.enter_region(region);
        }
        self.require_effect(function.effect, span);
        self.require_constraints(&function.constraints, span);
        for _ in &args.lent {
            self.leave_region();
        }
        let mut ty = function.result;
        if !declared.type_params.is_empty() {
            let outside = self.types.fresh_bounded(self.types.kind(ty), level, Alias::Restricted);
            let is_used = !is_unused && !matches!(self.types.get(ty), TyKind::Void);
            if is_used && self.try_unify(outside, ty).is_err() {
                if args.lent.is_empty() {
                    self.error(Code::WrongType, span, "the result belongs to a place that ends here");
                    ty = self.make(TyKind::Error);
                } else {
                    return None;
                }
            }
        }
        let format = format.map(|(family, ..)| family);
        let call = Call { callee, args: values, varargs, declared, instantiation, format };
        Some((Expr { kind: ExprKind::Call(Box::new(call)), ty, span }, !args.lent.is_empty()))
    }

    /// What is called, with the type arguments written after it.
    fn callee<'e>(&mut self, callee: &'e ast::Expr) -> (Expr, &'e [ast::Type]) {
        let (name, given) = match &callee.kind {
            ast::ExprKind::Instantiate(inner, types) => (&**inner, &types[..]),
            _ => (callee, &[][..]),
        };
        let place = self.expr(name, None);
        if matches!(self.types.get(place.ty), TyKind::Function(_)) {
            return (place, given);
        }
        let place = self.guard_unions(place);
        (place, given)
    }

    fn not_callable(&mut self, callee: &Expr, arguments: &[ast::Expr]) -> Expr {
        for argument in arguments {
            self.value(argument, None);
        }
        if matches!(self.types.get(callee.ty), TyKind::Error) {
            return Expr::error(&mut self.types, callee.span);
        }
        let shown = self.show(callee.ty);
        self.wrong(Code::WrongType, callee.span, format!("only functions can be called; this is `{shown}`"))
    }

    /// A pointer to a function is not null and leads to one.
    fn checked_callee(&mut self, callee: Expr) -> Expr {
        let TyKind::Pointer(parts) = self.types.get(callee.ty).clone() else { return callee };
        let nullable = self.truth(false);
        let bound = self.thin(1);
        let fat = matches!(self.types.get(parts.bound), TyKind::Fat);
        if !fat && self.is_false(parts.nullable) {
            return callee;
        }
        let coercion = if fat {
            Coercion::FatToThin(Checks { null: Check::Needed, bounds: Check::Needed, ..Checks::NONE })
        } else {
            Coercion::NotNull(Check::Needed)
        };
        let ty = self.pointer_type(Pointer { nullable, bound, ..parts });
        wrap(coercion, callee, ty)
    }

    /// A function's type with type arguments for its parameters: those given first, then unknown ones at `level`. The region that is
    /// current for it is the one that is current here.
    pub fn instantiate(
        &mut self,
        function: &Rc<Function>,
        given: &[ast::Type],
        level: u32,
        named: Option<GlobalId>,
        span: Span,
    ) -> (Rc<Function>, ThinVec<Ty>) {
        let current = self.body.as_ref().and_then(|body| body.lexical.last().copied());
        if given.len() > function.type_params.len() {
            self.error(Code::WrongArguments, span, "there are more type arguments than type parameters");
        }
        if function.type_params.is_empty() && current.is_none() {
            return (function.clone(), ThinVec::new());
        }
        let mut map = Substitution::default();
        let mut instantiation = ThinVec::with_capacity(function.type_params.len());
        for (index, &param) in function.type_params.iter().enumerate() {
            let unknown = self.types.fresh_for(param, level);
            if let Some(given) = given.get(index) {
                let kind = self.types.var(param).kind;
                let given_ty = self.read_of_kind(given, kind);
                if let Err(why) = self.try_unify(unknown, given_ty) {
                    let name = self.types.var(param).shown();
                    let shown = self.show(given_ty);
                    let reason = if why.reason.is_empty() { "the kinds differ" } else { why.reason };
                    self.error(Code::WrongType, given.span, format!("`{shown}` cannot be `{name}`: {reason}"));
                }
            }
            map.insert(param, unknown);
            instantiation.push(unknown);
        }
        if let Some(current) = current {
            map.insert(self.current_region, current);
        }
        self.instantiated(function, &instantiation, named, span);
        let mut whole = self.types.substitute_function(function, &map);
        whole.type_params = Vec::new();
        (Rc::new(whole), instantiation)
    }

    /// An inference variable for a type parameter.
    pub fn unknown_for(&mut self, param: TyVar) -> Ty {
        let level = self.level();
        self.types.fresh_for(param, level)
    }

    /// Inference variables for all parameters of a type.
    pub fn unknown_arguments(&mut self, params: &[TyVar]) -> Rc<[Ty]> {
        match params {
            [] => self.types.no_arguments(),
            _ => params.iter().map(|&param| self.unknown_for(param)).collect(),
        }
    }

    /// A pointer to a function with type parameters gets arguments for them, unless such a pointer is wanted.
    pub fn instantiate_for(&mut self, value: Expr, expected: Option<Ty>) -> Expr {
        let Some(count) = self.type_params_of(value.ty) else { return value };
        if count == 0 || expected.and_then(|ty| self.type_params_of(ty)) == Some(count) {
            return value;
        }
        self.instantiate_pointer(value, &[])
    }

    fn type_params_of(&self, pointer: Ty) -> Option<usize> {
        match self.types.get(pointer) {
            TyKind::Pointer(pointer) => match self.types.get(pointer.target) {
                TyKind::Function(function) => Some(function.type_params.len()),
                _ => None,
            },
            _ => None,
        }
    }

    /// `e@<T, ..>`: parameters for which there is no argument stay.
    pub fn instantiate_value(&mut self, pointer: Expr, arguments: &[ast::Type]) -> Expr {
        self.instantiate_pointer(pointer, arguments)
    }

    fn instantiate_pointer(&mut self, pointer: Expr, given: &[ast::Type]) -> Expr {
        let TyKind::Pointer(parts) = self.types.get(pointer.ty).clone() else {
            return self.not_callable(&pointer, &[]);
        };
        let TyKind::Function(function) = self.types.get(parts.target).clone() else {
            return self.not_callable(&pointer, &[]);
        };
        let level = self.level() + u32::from(self.names_callback);
        let count = if given.is_empty() { function.type_params.len() } else { given.len() };
        let (now, later) = function.type_params.split_at(count.min(function.type_params.len()));
        let later = later.to_vec();
        let whole = Function { type_params: now.to_vec(), ..(*function).clone() };
        let named = pointer.named_function(&self.types).filter(|_| later.is_empty());
        let (function, instantiation) = self.instantiate(&Rc::new(whole), given, level, named, pointer.span);
        let mut function = Function::clone(&function);
        if later.is_empty() {
            self.require_constraints(&function.constraints, pointer.span);
            function.constraints = Vec::new();
        }
        function.type_params = later;
        let target = self.make(TyKind::Function(Rc::new(function)));
        let ty = self.pointer_type(Pointer { target, ..parts });
        let span = pointer.span;
        Expr { kind: ExprKind::Instantiate(Box::new(pointer), instantiation), ty, span }
    }

    /// The arguments for the parameters that have names.
    fn arguments(&mut self, function: &Function, arguments: &[ast::Expr], lending: Lending, span: Span) -> Arguments {
        let takes_more = function.c_varargs || function.varargs.is_some();
        let (have, want) = (arguments.len(), function.params.len());
        let implied = if have + 1 == want && !takes_more { self.implied_size(function) } else { None };
        if implied.is_none() && have < want || have > want && !takes_more {
            let some = if takes_more { "at least " } else { "" };
            let s = if want == 1 { "" } else { "s" };
            self.error(Code::WrongArguments, span, format!("the function takes {some}{want} argument{s}, not {have}"));
            if !takes_more {
                for argument in arguments.iter().skip(want) {
                    self.value(argument, None);
                }
            }
        }
        let mut result = Arguments { values: ThinVec::with_capacity(have), lent: Vec::new() };
        for (argument, param) in arguments.iter().zip(&function.params) {
            let lendable = lending == Lending::Tried && self.lends_for(param.ty);
            if !lendable {
                // A function by its name is instantiated with the call: it may be given what is lent.
                self.names_callback = matches!(argument.kind, ast::ExprKind::Name(_));
                let (value, _) = self.with_loan(false, |checker| checker.argument(argument, param.ty));
                self.names_callback = false;
                result.values.push(value);
                continue;
            }
            let (value, lent) = self.with_loan(true, |checker| checker.braces_or_value(argument, param.ty));
            result.lent.extend(lent);
            let value = match self.lend(value, param.ty) {
                Ok((value, region)) => {
                    result.lent.push(region);
                    self.lent_as(region, |checker| checker.coerce(value, param.ty, argument.span))
                }
                Err(value) => self.coerce(value, param.ty, argument.span),
            };
            self.check_consumed(&value);
            result.values.push(value);
        }
        if let Some((sized, ty)) = implied {
            let size = self.size(sized, Some(ty), span);
            let size = self.coerce(size, ty, span);
            result.values.push(size);
        }
        result
    }

    /// One argument, converted to the parameter's type.
    pub fn argument(&mut self, argument: &ast::Expr, ty: Ty) -> Expr {
        let value = self.braces_or_value(argument, ty);
        let value = self.coerce(value, ty, argument.span);
        self.check_consumed(&value);
        value
    }

    /// Whether a parameter takes an aliasable pointer into a region that is not known yet.
    fn lends_for(&self, param: Ty) -> bool {
        match self.types.get(param) {
            TyKind::Pointer(pointer) => {
                matches!(self.types.get(pointer.aqual), TyKind::Aqual(Alias::Aliasable))
                    && matches!(self.types.get(pointer.region), TyKind::Evar(_))
            }
            _ => false,
        }
    }

    /// An owned pointer in a place becomes an alias under a fresh region, one level deeper.
    fn lend(&mut self, value: Expr, param: Ty) -> Result<(Expr, TyVar), Expr> {
        let (TyKind::Pointer(have), TyKind::Pointer(want)) =
            (self.types.get(value.ty).clone(), self.types.get(param).clone())
        else {
            return Err(value);
        };
        let owned = !matches!(self.types.get(have.aqual), TyKind::Evar(_))
            && self.types.alias_bound(have.aqual) != Alias::Aliasable;
        if !owned || !self.is_place(&value) || !self.is_unique_path(&value) {
            return Err(value);
        }
        let region = self.new_loan_region(value.span);
        let region_ty = self.make(TyKind::Var(region));
        if self.try_unify(want.region, region_ty).is_err() {
            return Err(value);
        }
        let ty = self.pointer_type(Pointer { region: region_ty, aqual: want.aqual, ..have });
        let span = value.span;
        let kind = ExprKind::InferredAlias { region, value: Box::new(value) };
        Ok((Expr { kind, ty, span }, region))
    }

    /// Functions of the C compiler, which take and give numbers.
    fn builtin(&mut self, name: Symbol, arguments: &[ast::Expr], span: Span) -> Expr {
        let values = arguments.iter().map(|argument| self.value(argument, None)).collect::<ThinVec<_>>();
        let numbers = values.iter().all(|value| self.is_arithmetic(value.ty));
        let known = matches!(
            name.as_str(),
            "__builtin_expect" | "__builtin_clz" | "__builtin_ctz" | "__builtin_popcount" | "__builtin_abs"
        );
        if !known || !numbers {
            return self.wrong(Code::Unsupported, span, format!("`{name}` cannot be used"));
        }
        let ty = if name.as_str() == "__builtin_expect" { self.long() } else { self.int() };
        Expr { kind: ExprKind::Builtin(name, values, None), ty, span }
    }
}

/// Whether an argument of a call was wrong and has been reported.
fn has_wrong_argument(call: &Expr) -> bool {
    match &call.kind {
        ExprKind::Call(call) => call.args.iter().any(|arg| {
            let mut arg = arg;
            while let ExprKind::Coerce(_, inner) = &arg.kind {
                arg = inner;
            }
            matches!(arg.kind, ExprKind::Error)
        }),
        _ => false,
    }
}

//! Bodies of functions: parameters, declarations inside, and what is decided at the end.

use super::declare::Context;
use super::effects::Pending;
use super::names::Value;
use super::nested::Around;
use super::types::Position;
use super::{Body, Checker};
use crate::ast::{self, IntSize, Quals, Storage};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Function, GlobalId, Stmt, StmtKind};
use crate::types::{Alias, Kind, Pointer, Signedness, Ty, TyKind, TyVar, TyVarInfo};
use thin_vec::ThinVec;

impl Checker<'_> {
    /// Checks a body. What cannot be decided before the end of a function `around` it is given back.
    pub(super) fn function_body(
        &mut self,
        definition: &ast::FunctionDef,
        global: GlobalId,
        name: Symbol,
        around: Option<&Around<'_>>,
    ) -> Vec<Pending> {
        let TyKind::Function(function) = self.types.get(self.declarations.global(global).ty) else { return Vec::new() };
        let function = (**function).clone();
        let mark = self.types.mark();
        let outside = around.map_or(0, |around| around.body.level);
        let region = self.types.new_var(TyVarInfo {
            name: Symbol::new(&format!("`{name}")),
            kind: Kind::Effect,
            alias: Alias::Aliasable,
            level: outside + 1,
            span: definition.name.span,
        });
        self.begins(region, None, definition.body.span);
        self.push_scope();
        for &var in &function.type_params {
            let name = self.types.var(var).name;
            self.bind_tyvar(name, var);
        }
        let region_name = self.types.var(region).name;
        self.bind_tyvar(region_name, region);
        self.body = Some(Body {
            noreturn: function.attributes.noreturn,
            capability: self.capability_of(&function, region, around.map(|around| &around.body.capability)),
            lexical: around.map_or(Vec::new(), |around| around.body.lexical.clone()),
            ..Body::new(function.result, region, outside)
        });
        let params = self.bind_params(definition, &function, region, around.map_or(&[], |around| around.captures));
        let body = match &definition.ty.kind {
            ast::TypeKind::Function(written) if !written.contracts.is_empty() => {
                self.contracted_block(written, function.result, &definition.body)
            }
            _ => self.function_block(&definition.body),
        };
        if around.is_none() {
            self.types.settle_since(mark);
            self.decide_pending();
        }
        self.check_labels();
        self.pop_scope();
        let Some(state) = self.body.take() else { return Vec::new() };
        self.functions.push(Function {
            global,
            ty: function,
            locals: state.locals,
            params,
            labels: state.labels.into_iter().map(|(name, _, _)| name).collect(),
            region,
            body,
            span: definition.span,
        });
        state.pending
    }

    /// The parameters become variables; the last is the fat pointer of typed variable arguments. Gives back how many there are.
    fn bind_params(
        &mut self,
        definition: &ast::FunctionDef,
        function: &crate::types::Function,
        region: TyVar,
        captures: &[(Symbol, Symbol)],
    ) -> usize {
        let written = match &definition.ty.kind {
            ast::TypeKind::Function(function) => &function.params[..],
            _ => &[],
        };
        for (at, param) in function.params.iter().enumerate() {
            let span = at
                .checked_sub(captures.len())
                .and_then(|at| written.get(at))
                .map_or(definition.name.span, |param| param.name.map_or(param.ty.span, |name| name.span));
            let local = self.new_local(param.name.unwrap_or_else(|| Symbol::new("")), param.ty, param.quals, span);
            self.require_size(param.ty, span);
            if let Some(&(variable, hidden)) = captures.get(at) {
                self.bind_value(variable, Value::Captured(local));
                self.bind_value(hidden, Value::Captured(local));
            } else if let Some(name) = param.name {
                self.bind_local(name, local);
            }
        }
        let Some(varargs) = &function.varargs else { return function.params.len() };
        let kind = TyKind::Pointer(Pointer {
            target: varargs.ty,
            quals: Quals::default(),
            region: self.make(TyKind::Var(region)),
            aqual: self.make(TyKind::Aqual(Alias::Aliasable)),
            nullable: self.truth_type(true),
            bound: self.make(TyKind::Fat),
            zeroterm: self.truth_type(false),
            autoreleased: self.truth_type(false),
        });
        let ty = self.make(kind);
        let name = varargs.name.unwrap_or_else(|| Symbol::new(""));
        let local = self.new_local(name, ty, Quals::default(), definition.name.span);
        if varargs.name.is_some() {
            self.bind_local(name, local);
        }
        function.params.len() + 1
    }

    /// `main` takes nothing, or a number and a fat pointer to strings, and gives an `int` or nothing.
    pub(super) fn check_main(&mut self, function: &crate::types::Function, span: Span) {
        let is_int = |ty| matches!(self.types.get(ty), TyKind::Int(Signedness::Signed, IntSize::Int) | TyKind::Error);
        let complaint = if !is_int(function.result) && !matches!(self.types.get(function.result), TyKind::Void) {
            Some("`main` gives an `int` or nothing")
        } else if function.varargs.is_some() || function.c_varargs {
            Some("`main` has no variable arguments")
        } else if function.params.len() > 2 {
            Some("`main` takes two arguments at most")
        } else if function.params.first().is_some_and(|count| !is_int(count.ty)) {
            Some("the first argument of `main` is an `int`")
        } else if function.params.get(1).is_some_and(|list| !self.is_list_of_strings(list.ty)) {
            Some("the second argument of `main` is a `char ??`: a fat pointer to strings")
        } else {
            None
        };
        if let Some(complaint) = complaint {
            let report = Diagnostic::error(Code::WrongType, span, complaint);
            self.diagnostics.push(report.help("write `int main(void)` or `int main(int argc, char ??argv)`"));
        }
    }

    /// Whether it is how the run-time library passes arguments: both pointers are fat and own nothing, and no pointer ends the list.
    fn is_list_of_strings(&self, ty: Ty) -> bool {
        let TyKind::Pointer(list) = self.types.get(ty) else { return matches!(self.types.get(ty), TyKind::Error) };
        let TyKind::Pointer(string) = self.types.get(list.target) else { return false };
        let is_plain = |pointer: &Pointer| {
            let alias = self.types.alias_bound(pointer.aqual);
            matches!(self.types.get(pointer.bound), TyKind::Fat) && alias == Alias::Aliasable
        };
        is_plain(list)
            && !self.is_true(list.zeroterm)
            && is_plain(string)
            && matches!(self.types.get(string.target), TyKind::Int(_, IntSize::Char))
    }

    fn check_labels(&mut self) {
        let labels = self.body.as_ref().map(|body| body.labels.clone()).unwrap_or_default();
        for (name, met, span) in labels {
            if !met {
                self.error(Code::UnknownName, span, format!("there is no label `{name}` in this function"));
            }
        }
    }

    /// A declaration in a body: its variables come to life, its types and prototypes are declared.
    pub fn declaration_in_body(&mut self, declaration: &ast::Declaration) -> ThinVec<Stmt> {
        if declaration.declarators.is_empty() {
            self.type_declaration(&declaration.base);
        }
        let context = Context { storage: &declaration.storage, is_inline: declaration.is_inline };
        let mut out = ThinVec::with_capacity(declaration.declarators.len());
        for declarator in &declaration.declarators {
            let is_function = matches!(declarator.ty.kind, ast::TypeKind::Function(_));
            if context.has(Storage::Typedef) {
                self.declare_typedef(declarator);
            } else if is_function || context.has(Storage::Extern) || context.has(Storage::ExternC) {
                self.declare_global(&context, declarator);
            } else {
                out.push(self.declare_local(&context, declarator));
            }
        }
        out
    }

    /// A structure that ends in a value of a type argument has a size only if that argument is written.
    fn require_arguments(&mut self, ty: Ty, span: Span) {
        if matches!(self.types.get(ty), TyKind::Aggregate(..)) && self.ends_in_unknown(ty, 16) {
            let shown = self.show(ty);
            let message = format!("the size of `{shown}` depends on type arguments that must be written here");
            let report = Diagnostic::error(Code::WrongArguments, span, message);
            self.diagnostics.push(report.help("write a type in the place of each `_`"));
        }
    }

    fn ends_in_unknown(&mut self, ty: Ty, depth: u32) -> bool {
        match self.types.get(ty).clone() {
            TyKind::Evar(evar) => self.types.evar_kind(evar) == Kind::Any,
            TyKind::Aggregate(id, _) if depth > 0 => {
                let aggregate = self.declarations.aggregate(id);
                let (is_union, body) = (aggregate.is_union, &aggregate.body);
                let count = body.as_ref().map_or(0, |body| body.fields.len());
                let first = if is_union { 0 } else { count.saturating_sub(1) };
                (first..count).any(|at| {
                    let (member, _) = self.member_type(ty, at);
                    self.ends_in_unknown(member, depth - 1)
                })
            }
            _ => false,
        }
    }

    fn declare_local(&mut self, context: &Context<'_>, declarator: &ast::InitDeclarator) -> Stmt {
        let span = declarator.name.span;
        let (ty, quals) = self.read_type(&declarator.ty, Position::Body);
        let ty = self.with_fn_attributes(ty, &declarator.attributes);
        self.require_arguments(ty, declarator.ty.span);
        let name = self.declared_name(&declarator.name);
        if context.has(Storage::Abstract) {
            self.error(Code::Misplaced, span, "a variable of a function cannot be `abstract`");
        }
        let local = self.new_local(name, ty, quals, span);
        self.bind_local(name, local);
        if context.has(Storage::Static) {
            let heap = self.make(TyKind::Heap);
            if let Some(body) = &mut self.body {
                let local = &mut body.locals[local.0 as usize];
                (local.is_static, local.region) = (true, heap);
            }
        }
        let mut complete = ty;
        let init = declarator.init.as_ref().map(|init| {
            let (init, ty) = self.initialiser(init, ty);
            complete = ty;
            if context.has(Storage::Static) {
                self.require_constant(&init);
            }
            init
        });
        let has_size = self.require_size(complete, span);
        if has_size && init.is_none() && context.has(Storage::Static) {
            self.require_zeroable(complete, span);
        }
        if let Some(body) = &mut self.body {
            body.locals[local.0 as usize].ty = complete;
        }
        Stmt { kind: StmtKind::Declare(local, init), span }
    }
}

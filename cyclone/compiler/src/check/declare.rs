//! Items: variables, functions, typedefs, namespaces, blocks of C.

use super::Checker;
use super::attributes::Owner;
use super::names::{Typedef, Value};
use super::types::Position;
use super::variables::AnyKind;
use crate::ast::{self, Item, Quals, Storage};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{CBody, Constructor, Datatype, Global, GlobalId, Init, Linkage};
use crate::types::unify::unify;
use crate::types::{Alias, DatatypeId, Function, Kind, Ty, TyKind, TyVarInfo};
use std::rc::Rc;

/// The exceptions that the language itself throws.
const EXCEPTIONS: [&str; 5] = ["Null_Exception", "Array_bounds", "Match_Exception", "Bad_alloc", "Assert"];

/// The datatype of exceptions: the first of all.
pub const EXN: DatatypeId = DatatypeId(0);

/// What stands around a declared name.
pub(super) struct Context<'a> {
    pub(super) storage: &'a [Storage],
    pub(super) is_inline: bool,
}

impl Context<'_> {
    pub(super) fn has(&self, storage: Storage) -> bool {
        self.storage.contains(&storage)
    }
}

impl Checker<'_> {
    /// What is declared before anything is read: `datatype exn` with the built-in exceptions, `` `C ``.
    pub(super) fn predeclare(&mut self) {
        let name = Symbol::new("exn");
        let constructors = EXCEPTIONS.iter().map(|exception| Constructor {
            name: Symbol::new(exception),
            params: Vec::new(),
            is_extern: true,
            is_static: false,
            span: Span::default(),
        });
        self.declarations.datatypes.push(Datatype {
            name,
            is_extensible: true,
            params: Rc::default(),
            constructors: constructors.collect(),
            is_complete: false,
            completed: None,
            span: Span::default(),
        });
        let root = self.names.here_mut();
        root.datatypes.insert(name, EXN);
        for (index, exception) in EXCEPTIONS.iter().enumerate() {
            root.values.insert(Symbol::new(exception), Value::Constructor(EXN, index as u32));
        }
        self.current_region = self.types.new_var(TyVarInfo {
            name: Symbol::new("`C"),
            kind: Kind::Effect,
            alias: Alias::Aliasable,
            level: 0,
            span: Span::default(),
        });
    }

    /// Checks items in order.
    pub fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    pub(super) fn item(&mut self, item: &Item) {
        match item {
            Item::Declaration(declaration) => self.declaration(declaration),
            Item::Function(function) => self.define_function(function),
            Item::Let(pattern, _) => {
                let error = Diagnostic::error(Code::Misplaced, pattern.span, "`let` stands in functions only");
                self.diagnostics.push(error.help("write the type of the variable instead of `let`"));
            }
            Item::Namespace(name, items) => {
                let outside = self.names.enter(name.name);
                self.items(items);
                self.names.leave(outside);
            }
            Item::Using(path, items) => match self.names.enter_using(path) {
                Some(outside) => {
                    self.items(items);
                    self.names.leave(outside);
                }
                None => {
                    let message = format!("there is no namespace of the name `{path}`");
                    self.error(Code::UnknownName, path.span, message);
                    self.items(items);
                }
            },
            Item::NoInference(items) => {
                let before = std::mem::replace(&mut self.of_present_dialect, true);
                self.items(items);
                self.of_present_dialect = before;
            }
            Item::ExternC(block) => self.extern_c(block),
            Item::Switch(_) => {}
        }
    }

    /// `extern "C" { .. }`: declarations of C. With `include`, only what is exported can be seen from outside.
    fn extern_c(&mut self, block: &ast::ExternC) {
        let was_in_c = std::mem::replace(&mut self.in_c, true);
        if block.include {
            let was_included = std::mem::replace(&mut self.in_c_include, true);
            let (outside, hidden) = self.names.enter_hidden();
            self.overridden_items(&block.items, &block.overrides);
            self.names.leave(outside);
            self.in_c_include = was_included;
            let listed = |names: &[ast::Path], name: Symbol| names.iter().any(|path| path.name == name);
            self.names.export(hidden, |name| {
                let exported = match &block.exports {
                    Some(ast::Exports::All) => true,
                    Some(ast::Exports::Names(names)) => listed(names, name),
                    None => false,
                };
                exported && !listed(&block.hidden, name)
            });
        } else {
            self.items(&block.items);
        }
        self.in_c = was_in_c;
    }

    fn declaration(&mut self, declaration: &ast::Declaration) {
        if declaration.declarators.is_empty() {
            self.type_declaration(&declaration.base);
        }
        let context = Context { storage: &declaration.storage, is_inline: declaration.is_inline };
        for declarator in &declaration.declarators {
            if context.has(Storage::Typedef) {
                self.declare_typedef(declarator);
            } else {
                self.declare_global(&context, declarator);
            }
        }
    }

    /// A declaration that declares only a type.
    pub(super) fn type_declaration(&mut self, base: &ast::Type) {
        match &base.kind {
            ast::TypeKind::Aggregate(aggregate) => {
                self.declare_aggregate(aggregate, base.span);
            }
            ast::TypeKind::Enum(enumeration) => {
                self.declare_enum(enumeration, base.span);
            }
            ast::TypeKind::Datatype(datatype) if datatype.constructor.is_none() => {
                self.declare_datatype(datatype, base.span);
            }
            _ => self.warn(Code::Syntax, base.span, "this declares nothing"),
        }
    }

    pub(super) fn declare_typedef(&mut self, declarator: &ast::InitDeclarator) {
        let name = self.declared_name(&declarator.name);
        self.push_scope();
        let params = self.bind_parameters(&declarator.type_params, Alias::Restricted);
        let (ty, quals) = match &declarator.ty.kind {
            ast::TypeKind::Infer(kind) => {
                let (kind, alias) = kind.map_or((Kind::Any, None), |kind| self.read_kind(&kind));
                let args = params.iter().map(|&param| self.types.make(TyKind::Var(param))).collect();
                let opaque = self.make(TyKind::Opaque(self.names.qualified(name), kind, args));
                (self.opaque_place(opaque, alias), Quals::default())
            }
            _ => {
                let (ty, quals) = self.read_type(&declarator.ty, Position::Heap);
                (self.with_fn_attributes(ty, &declarator.attributes), quals)
            }
        };
        self.settle(&params, AnyKind::Stays);
        let ty = self.with_known_kinds(ty);
        self.pop_scope();
        let typedef =
            Typedef { name: self.names.qualified(name), params: params.into(), ty, quals, span: declarator.name.span };
        let path = ast::Path { qualifier: None, name, span: declarator.name.span };
        if self.body.is_none()
            && let Some(&earlier) = self.names.here().typedefs.get(&path.name)
        {
            let earlier = self.names.typedef(earlier).clone();
            if !self.same_typedef(&earlier, &typedef) {
                let message = format!("`{name}` is declared as another type before");
                let error = Diagnostic::error(Code::Redeclared, typedef.span, message);
                self.diagnostics.push(error.with(earlier.span, "first declared here"));
            }
            return;
        }
        self.bind_typedef(name, typedef);
    }

    fn same_typedef(&mut self, earlier: &Typedef, later: &Typedef) -> bool {
        if earlier.params.len() != later.params.len() || earlier.quals != later.quals {
            return false;
        }
        let pairs = later.params.iter().zip(&earlier.params[..]);
        let map = pairs.map(|(&from, &to)| (from, self.types.make(TyKind::Var(to)))).collect();
        let ty = self.types.substitute(later.ty, &map);
        unify(&mut self.types, earlier.ty, ty).is_ok()
    }

    fn linkage(&self, context: &Context<'_>) -> Linkage {
        if self.in_c_include {
            // Also what is `static`: bodies in C use its name as it is written.
            Linkage::C
        } else if context.has(Storage::Static) {
            Linkage::Internal
        } else if self.in_c || context.has(Storage::ExternC) {
            Linkage::C
        } else {
            Linkage::External
        }
    }

    /// A global variable, or a function without its body.
    pub(super) fn declare_global(&mut self, context: &Context<'_>, declarator: &ast::InitDeclarator) -> GlobalId {
        let span = declarator.name.span;
        let (ty, quals) = match &declarator.ty.kind {
            ast::TypeKind::Function(function) => {
                let function = self.read_prototype(function, &declarator.attributes);
                (self.make(TyKind::Function(Rc::new(function))), Quals::default())
            }
            _ => {
                let (ty, quals) = self.read_type(&declarator.ty, Position::Heap);
                (self.with_fn_attributes(ty, &declarator.attributes), quals)
            }
        };
        let is_function = matches!(self.types.get(ty), TyKind::Function(_));
        let is_declaration = self.in_c && !self.in_c_include;
        let is_extern = context.has(Storage::Extern) || context.has(Storage::ExternC) || is_declaration;
        let is_defined = !is_function && (!is_extern || declarator.init.is_some());
        let attributes = if is_function {
            Vec::new()
        } else {
            self.plain_attributes(&declarator.attributes, Some(ty), Owner::Variable)
        };
        let asm_name = declarator.asm.as_ref().and_then(|asm| self.asm_name(asm));
        let name = self.declared_name(&declarator.name);
        let global = Global {
            name: self.names.qualified(name),
            ty,
            quals,
            linkage: self.linkage(context),
            is_inline: context.is_inline,
            is_defined,
            init: None,
            asm_name,
            attributes,
            overrides: None,
            is_used: false,
            complete: self.declarations.complete,
            span,
        };
        let id = self.add_global(name, global);
        if let ast::TypeKind::Function(written) = &declarator.ty.kind
            && !written.contracts.is_empty()
            && let TyKind::Function(function) = self.types.get(ty).clone()
        {
            self.declare_contracts(id, written, &function);
        }
        if let Some(init) = &declarator.init {
            if is_function {
                self.error(Code::WrongType, init.span, "a function has no initial value");
                return id;
            }
            let mark = self.types.mark();
            let (init, ty) = self.initialiser(init, ty);
            if self.body.is_none() {
                self.types.settle_since(mark);
            }
            self.require_constant(&init);
            let global = &mut self.declarations.globals[id.0 as usize];
            if global.init.is_some() {
                self.error(Code::Redeclared, span, format!("`{name}` has an initial value already"));
            } else {
                global.init = Some(init);
                global.ty = ty;
            }
        }
        if declarator.init.is_some() && context.has(Storage::Extern) {
            self.error(Code::Redeclared, span, "an `extern` declaration has no initial value");
        }
        if is_defined {
            let global = self.declarations.global(id);
            let (ty, has_init) = (global.ty, global.init.is_some());
            if self.require_size(ty, span) && !has_init {
                self.require_zeroable(ty, span);
            }
        }
        id
    }

    /// Variables that live as long as the program begin as zeros.
    pub(super) fn require_zeroable(&mut self, ty: Ty, span: Span) {
        if !self.is_zeroable(ty) {
            let shown = self.show(ty);
            self.error(Code::Uninitialised, span, format!("a variable of type `{shown}` needs an initial value"));
        }
    }

    /// Variables that live as long as the program have values before it begins.
    pub(super) fn require_constant(&mut self, init: &Init) {
        let locals = self.body.as_ref().map_or(&[][..], |body| &body.locals);
        if let Some(computed) = Checker::computed_part(init, locals) {
            let message =
                "this value is computed, and the value of a variable that lives as long as the program is constant";
            self.error(Code::NotConstant, computed.span, message);
        }
    }

    fn asm_name(&mut self, asm: &ast::Expr) -> Option<String> {
        let ast::ExprKind::Asm(asm) = &asm.kind else { return None };
        let mut codes = Vec::new();
        super::literals::characters(asm.template.first()?.as_str(), false, &mut codes);
        codes.into_iter().map(char::from_u32).collect()
    }

    /// Adds a global, or agrees it with an earlier declaration of the same name.
    fn add_global(&mut self, name: Symbol, global: Global) -> GlobalId {
        let earlier = self.names.here().values.get(&name).copied();
        let Some(earlier) = earlier else {
            let id = GlobalId(self.declarations.globals.len() as u32);
            self.declarations.globals.push(global);
            self.bind_value(name, Value::Global(id));
            return id;
        };
        let Value::Global(id) = earlier else {
            self.error(Code::Redeclared, global.span, format!("the name `{name}` is declared already"));
            let id = GlobalId(self.declarations.globals.len() as u32);
            self.declarations.globals.push(global);
            return id;
        };
        if self.body.is_some() {
            self.bind_value(name, Value::Global(id));
        }
        self.agree_with_global(id, global);
        id
    }

    /// A function with its body.
    pub fn define_function(&mut self, definition: &ast::FunctionDef) {
        let span = definition.name.span;
        let Some(function) = self.defined_type(definition) else { return };
        let context = Context { storage: &definition.storage, is_inline: definition.is_inline };
        let name = self.declared_name(&definition.name);
        let full_name = self.names.qualified(name);
        if let Some(Value::Global(id)) = self.names.here().values.get(&name).copied()
            && self.declarations.global(id).is_defined
        {
            let first = self.declarations.global(id).span;
            let error = Diagnostic::error(Code::Redeclared, span, format!("`{full_name}` has a body already"));
            self.diagnostics.push(error.with(first, "here"));
        }
        if full_name.as_str() == "main" {
            self.check_main(&function, span);
        }
        let ty = self.make(TyKind::Function(Rc::new(function)));
        let mut global = function_global(full_name, ty, self.linkage(&context), definition);
        global.complete = self.declarations.complete;
        let global = self.add_global(name, global);
        if self.in_c_include {
            let text = self.source.slice(definition.body.span).to_owned();
            let params = match &definition.ty.kind {
                ast::TypeKind::Function(function) => &function.params[..],
                _ => &[],
            };
            let params = params.iter().map(|param| param.name.map(|name| name.name)).collect();
            let uses = self.globals_named_in(&text);
            self.c_bodies.push(CBody { global, params, text, uses });
            return;
        }
        if let ast::TypeKind::Function(written) = &definition.ty.kind {
            self.note_requirements(global, written);
        }
        self.function_body(definition, global, name, None);
    }

    /// The type of a function with a body.
    pub(super) fn defined_type(&mut self, definition: &ast::FunctionDef) -> Option<Function> {
        if let ast::TypeKind::Function(function) = &definition.ty.kind {
            return Some(self.read_prototype(function, &definition.attributes));
        }
        let (ty, _) = self.read_type(&definition.ty, Position::Heap);
        if let TyKind::Function(function) = self.types.get(ty) {
            return Some((**function).clone());
        }
        self.error(Code::WrongType, definition.name.span, "a body stands after something that is no function");
        None
    }

    /// The globals of the block of C around that a text of C names.
    fn globals_named_in(&self, text: &str) -> Vec<GlobalId> {
        let here = &self.names.here().values;
        let mut named: Vec<GlobalId> = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter_map(|word| match here.get(&Symbol::new(word)) {
                Some(Value::Global(id)) => Some(*id),
                _ => None,
            })
            .collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// What can only be said when all has been seen.
    pub fn finish(&mut self) {
        self.decide_words();
    }
}

/// A function that is defined here, and where all that is ever complete can be seen.
pub(super) fn function_global(name: Symbol, ty: Ty, linkage: Linkage, definition: &ast::FunctionDef) -> Global {
    Global {
        name,
        ty,
        quals: Quals::default(),
        linkage,
        is_inline: definition.is_inline,
        is_defined: true,
        init: None,
        asm_name: None,
        attributes: Vec::new(),
        overrides: None,
        is_used: false,
        complete: u32::MAX,
        span: definition.name.span,
    }
}

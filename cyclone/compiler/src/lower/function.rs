//! Bodies of functions: statements, and what all that writes in a body shares.
//!
//! Variables are declared in C where they are declared in the source, under names that are unique in the function: C's scopes
//! never matter. `switch` becomes tests and jumps ([`super::matching`]), so `break` in it is a jump, too.

use super::copies::Copy;
use super::exits::{Frame, Survivors, label_depths, survivors};
use super::layouts::attributes;
use super::loops::{Loop, has_first_round};
use super::names::local_name;
use super::shapes::{C, Shape};
use super::{Lower, names};
use crate::hash::{HashMap, HashSet};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Block, Expr, Function, GlobalId, Init, LabelId, Local, LocalId, Region, RegionKind, Stmt, StmtKind};
use crate::types::{Ty, TyKind, TyVar, Types, children};
use std::fmt::Write;
use std::rc::Rc;

/// Arrays of so many elements and fewer could be kept in registers by C compilers; larger ones are memory, and stay as they are.
const ZEROED_ELEMENTS: u64 = 16;

/// The state of writing one body (or the initial value of a global, which has no variables).
pub struct Body<'l, 'p> {
    pub lower: &'l mut Lower<'p>,
    pub locals: &'p [Local],
    labels: &'p [Symbol],
    /// The function whose variables these are.
    global: Option<GlobalId>,
    /// It is an initial value, which is computed before `main` if C cannot: no function is around it.
    is_outside: bool,
    pub out: String,
    local_names: Vec<Rc<str>>,
    next: u32,
    /// What is on the run-time stack here, outermost first.
    pub frames: Vec<Frame>,
    pub breaks: Vec<BreakTarget>,
    /// The loops around.
    pub loops: Vec<Loop>,
    /// Variables without a name in the source that live as long as the function: their declarations, and their names.
    kept: String,
    pub kept_names: Vec<String>,
    /// A loop has checks for its first round only.
    pub has_first_rounds: bool,
    label_depths: HashMap<LabelId, usize>,
    pub survivors: Survivors,
    result: C,
    /// For `fallthru`: the next clause.
    pub next_clause: Vec<Option<ClauseTarget<'p>>>,
}

/// Where `break` goes.
#[derive(Clone, Copy)]
pub struct BreakTarget {
    /// The number of the label after a `switch`; loops have C's own `break`.
    pub label: Option<u32>,
    /// How many frames there are around it.
    pub depth: usize,
}

/// Where `fallthru` goes.
#[derive(Clone, Copy)]
pub struct ClauseTarget<'p> {
    pub label: u32,
    pub bindings: &'p [LocalId],
    pub depth: usize,
}

impl<'l, 'p> Body<'l, 'p> {
    /// For an initial value outside of functions: a global's, or that of a `static` variable of a function with these variables.
    pub fn outside(lower: &'l mut Lower<'p>, of: Option<(GlobalId, &'p [Local])>) -> Body<'l, 'p> {
        let result = lower.shapes.make(Shape::Void);
        let mut out = std::mem::take(&mut lower.scratch);
        out.clear();
        out.reserve(1024);
        Body {
            lower,
            locals: of.map_or(&[], |(_, locals)| locals),
            labels: &[],
            global: of.map(|(global, _)| global),
            is_outside: true,
            out,
            local_names: Vec::new(),
            next: 0,
            frames: Vec::new(),
            breaks: Vec::new(),
            loops: Vec::new(),
            kept: String::new(),
            kept_names: Vec::new(),
            has_first_rounds: false,
            label_depths: HashMap::default(),
            survivors: Survivors::default(),
            result,
            next_clause: Vec::new(),
        }
    }

    fn new(lower: &'l mut Lower<'p>, function: &'p Function) -> Body<'l, 'p> {
        let result = match lower.named_function_shape(&function.ty, function.global) {
            Shape::Function { result, .. } => result,
            _ => lower.shapes.make(Shape::Void),
        };
        let local_names = unique_names(lower, &function.locals);
        Body {
            locals: &function.locals,
            labels: &function.labels,
            global: Some(function.global),
            is_outside: false,
            local_names,
            label_depths: label_depths(&function.body),
            has_first_rounds: function.body.statements.iter().any(has_first_round),
            survivors: survivors(function),
            result,
            ..Body::outside(lower, None)
        }
    }

    /// A number that no other name in this body has.
    pub fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// What `write` writes, as a string of its own.
    pub fn captured(&mut self, write: impl FnOnce(&mut Self)) -> String {
        let before = std::mem::replace(&mut self.out, String::with_capacity(64));
        write(self);
        std::mem::replace(&mut self.out, before)
    }

    pub fn local(&self, id: LocalId) -> Option<&'p Local> {
        self.locals.get(id.0 as usize)
    }

    /// The name of a variable; one of a function's `static` variables is at file level.
    pub fn local_name(&mut self, id: LocalId) -> Rc<str> {
        if let (Some(local), Some(global)) = (self.local(id), self.global)
            && local.is_static
        {
            let next = self.lower.static_locals.len();
            let function = self.lower.global_name(global);
            let name = || Rc::from(text!(function, "_", names::local_name(local.name.as_str()), "_", next));
            return self.lower.static_locals.entry((global, id)).or_insert_with(name).clone();
        }
        match self.local_names.get(id.0 as usize) {
            Some(name) => name.clone(),
            None => text!("_cyc_l", id.0).into(),
        }
    }

    pub fn push_local(&mut self, id: LocalId) {
        match (self.local(id), self.local_names.get(id.0 as usize)) {
            (Some(local), Some(name)) if !local.is_static => self.out.push_str(name),
            _ => {
                let name = self.local_name(id);
                self.out.push_str(&name);
            }
        }
    }

    pub fn is_volatile(&self, id: LocalId) -> bool {
        self.survivors.assigned.contains(&id)
    }

    /// The variable that holds a number, region handle or qualifier of the level of types.
    pub fn holder(&self, var: TyVar) -> Option<LocalId> {
        let types = &self.lower.program.types;
        let names_it = |ty: Ty| match types.get(ty) {
            TyKind::TagHandle(inner) | TyKind::RegionHandle(inner) | TyKind::AqualHandle(inner) => {
                matches!(types.get(*inner), TyKind::Var(found) if *found == var)
            }
            _ => false,
        };
        let at = self.locals.iter().position(|local| names_it(local.ty))?;
        Some(LocalId(at as u32))
    }

    /// The variable that holds the size of a type that is not known here.
    pub fn size_holder(&mut self, ty: Ty) -> Option<LocalId> {
        let types = &self.lower.program.types;
        let at = self.locals.iter().position(|local| match types.get(local.ty) {
            TyKind::TagHandle(number) => match types.get(*number) {
                TyKind::SizeOf(of) => same(types, *of, ty),
                _ => false,
            },
            _ => false,
        })?;
        Some(LocalId(at as u32))
    }

    /// Writes a declaration of a variable without its value and semicolon.
    pub fn declare_local(&mut self, id: LocalId) {
        let Some(local) = self.local(id) else { return };
        if self.open_end(local.ty).is_some() {
            self.lower.unsupported(local.span, "a variable that ends in an array of unknown length");
        }
        let c = self.lower.shape(local.ty);
        let name = self.local_name(id);
        let is_volatile = self.is_declared_volatile(id);
        // A pointer's own qualifier stands after the star.
        let (before, after) = match (is_volatile, self.is_pointer(c)) {
            (true, true) => ("", "volatile "),
            (true, false) => ("volatile ", ""),
            (false, _) => ("", ""),
        };
        let around = self.lower.around(c);
        put!(self.out, before, around.before, after, name, around.after);
    }

    fn is_declared_volatile(&self, id: LocalId) -> bool {
        self.is_volatile(id) || self.local(id).is_some_and(|local| local.quals.is_volatile)
    }

    fn is_pointer(&self, c: C) -> bool {
        matches!(self.lower.shapes.get(c), Shape::Pointer { .. } | Shape::Word)
    }

    pub fn line(&mut self, span: Span) {
        self.lower.lines.mark(&mut self.out, span);
    }

    /// A block, with its braces.
    pub fn block(&mut self, block: &'p Block) {
        self.push("{");
        self.statements(&block.statements);
        self.push(" }");
    }

    pub fn statements(&mut self, statements: &'p [Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    /// A statement as the body of another: in braces.
    pub fn body(&mut self, statement: &'p Stmt) {
        match &statement.kind {
            StmtKind::Block(block) => self.block(block),
            _ => {
                self.push("{");
                self.statement(statement);
                self.push(" }");
            }
        }
    }

    pub fn statement(&mut self, statement: &'p Stmt) {
        if !matches!(statement.kind, StmtKind::Block(_) | StmtKind::Empty) {
            self.line(statement.span);
        }
        match &statement.kind {
            StmtKind::Empty => {}
            StmtKind::Expr(expr) => {
                self.effect(expr);
                self.push(";");
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Declare(local, init) => self.declaration(*local, init.as_ref()),
            StmtKind::Let { pattern, value, may_fail } => self.let_pattern(pattern, value, *may_fail),
            StmtKind::Alias { local, value, body, .. } => {
                self.declare_local(*local);
                self.push(" = ");
                self.value_for_local(value, *local);
                self.push(";");
                self.statements(body);
            }
            StmtKind::Region(region) => self.region(region),
            StmtKind::If(condition, then, otherwise) => {
                self.push("if (");
                self.condition(condition);
                self.push(") ");
                self.body(then);
                if let Some(otherwise) = otherwise {
                    self.push(" else ");
                    self.body(otherwise);
                }
            }
            StmtKind::Switch(switch) => self.switch(switch),
            StmtKind::Try(body, clauses) => self.try_catch(body, clauses),
            StmtKind::While(..) | StmtKind::DoWhile(..) | StmtKind::For { .. } => self.repeated(statement),
            StmtKind::Goto(label) => {
                let depth = self.label_depths.get(label).copied().unwrap_or(0);
                self.leave(depth);
                put!(self.out, "_cyc_round(); goto ", self.label_name(*label), ";");
            }
            StmtKind::Labelled(label, statement) => {
                let _ = write!(self.out, "{}:;", self.label_name(*label));
                self.statement(statement);
            }
            StmtKind::Continue => {
                let depth = self.loops.last().map_or(0, |around| around.depth);
                self.leave(depth);
                self.push("continue;");
            }
            StmtKind::Break => self.break_statement(),
            StmtKind::Return(value) => self.return_statement(value.as_ref()),
            StmtKind::Fallthru(values) => self.fallthru(values, statement.span),
        }
    }

    fn label_name(&self, label: LabelId) -> String {
        let name = self.labels.get(label.0 as usize).map_or("", |name| name.as_str());
        format!("{}_L{}", local_name(name), label.0)
    }

    fn break_statement(&mut self) {
        let Some(&target) = self.breaks.last() else { return };
        self.leave(target.depth);
        match target.label {
            None => self.push("break;"),
            Some(label) => {
                let _ = write!(self.out, "goto _cyc_e{label};");
            }
        }
    }

    fn return_statement(&mut self, value: Option<&'p Expr>) {
        let result = self.result;
        let is_void = *self.lower.shapes.get(result) == Shape::Void;
        match value {
            None => {
                self.leave(0);
                self.push("return;");
            }
            Some(value) if is_void => {
                self.effect(value);
                self.push("; ");
                self.leave(0);
                self.push("return;");
            }
            Some(value) if self.frames.is_empty() => {
                self.push("return ");
                self.value_as(value, result);
                self.push(";");
            }
            Some(value) => {
                let number = self.fresh();
                let declaration = self.lower.declarator(result, &text!("_cyc_t", number));
                let _ = write!(self.out, "{{ {declaration} = ");
                self.value_as(value, result);
                self.push("; ");
                self.leave(0);
                let _ = write!(self.out, "return _cyc_t{number}; }}");
            }
        }
    }

    fn declaration(&mut self, id: LocalId, init: Option<&'p Init>) {
        let Some(local) = self.local(id) else { return };
        if local.is_static {
            return self.static_local(id, local, init);
        }
        let c = self.lower.shape(local.ty);
        self.declare_local(id);
        match init {
            None => {
                // What C calls indeterminate may be two values at once to a C compiler, one checked and one used.
                let zero = match self.lower.shapes.get(c) {
                    Shape::Array(_, len) if len.is_none_or(|len| len > ZEROED_ELEMENTS) => "",
                    Shape::Array(..)
                    | Shape::Fat
                    | Shape::Aggregate(_)
                    | Shape::Instance(..)
                    | Shape::Tuple(_)
                    | Shape::Constructor(..) => " = {0}",
                    Shape::VaList => "",
                    _ => " = 0",
                };
                self.push(zero);
                self.push(";");
                self.terminate(id, local.ty);
            }
            Some(Init::Value(value)) if !matches!(self.lower.shapes.get(c), Shape::Array(..)) => {
                self.push(" = ");
                self.value_as(value, c);
                self.push(";");
            }
            Some(init) if self.is_brace_constant(init) => {
                self.push(" = ");
                self.braces(init, c);
                self.push(";");
            }
            Some(init) => {
                self.push(";");
                let name = self.local_name(id);
                self.initialise(&name, c, init);
            }
        }
    }

    /// A zero-terminated array without an initial value ends in a zero all the same.
    fn terminate(&mut self, id: LocalId, ty: Ty) {
        let program = self.lower.program;
        let TyKind::Array(array) = program.types.get(ty) else { return };
        let Some(TyKind::Nat(len)) = array.len.map(|len| program.types.get(len)) else { return };
        if *len > 0 && matches!(program.types.get(array.zeroterm), TyKind::True) {
            let name = self.local_name(id);
            let _ = write!(self.out, " {name}[{}] = 0;", len - 1);
        }
    }

    fn static_local(&mut self, id: LocalId, local: &'p Local, init: Option<&'p Init>) {
        let name = self.local_name(id);
        let global = self.global.unwrap_or(GlobalId(0));
        if self.lower.mentions_ints(local.ty) {
            self.lower.refuse(local.span, "in a variable that all copies of a function share");
        }
        if self.lower.defined_statics.insert((global, id)) {
            let of = self.global.map(|global| (global, self.locals));
            self.lower.variable(&name, "static ", local.ty, init, of);
        }
        self.push(";");
    }

    fn region(&mut self, region: &'p Region) {
        match &region.kind {
            RegionKind::Lexical => {
                let name = format!("_cyc_r{}", self.fresh());
                let _ = write!(self.out, "struct _cyc_region {name}; _cyc_region_push(&{name}); ");
                self.declare_local(region.handle);
                let _ = write!(self.out, " = &{name};");
                self.frames.push(Frame::Region(name.clone()));
                self.statements(&region.body);
                self.frames.pop();
                let _ = write!(self.out, " _cyc_region_pop(&{name});");
            }
            RegionKind::Open(key) => {
                self.declare_local(region.handle);
                self.push(" = _cyc_region_of(");
                self.value(key);
                self.push(");");
                self.statements(&region.body);
            }
        }
    }

    /// A new variable that lives as long as the function; outside of functions, as the program.
    pub fn place_to_keep(&mut self, c: C) -> String {
        if self.is_outside {
            self.lower.kept_places += 1;
            let name = text!("_cyc_k", self.lower.kept_places);
            let declaration = self.lower.declarator(c, &name);
            put!(self.lower.data, "static ", declaration, ";\n");
            return name;
        }
        let name = text!("_cyc_t", self.fresh());
        let declaration = self.lower.declarator(c, &name);
        put!(self.kept, " ", declaration, ";");
        self.kept_names.push(name.clone());
        name
    }

    /// Declares a new temporary variable and writes its value; gives its name.
    pub fn temporary(&mut self, c: C, write: impl FnOnce(&mut Self)) -> String {
        let name = text!("_cyc_t", self.fresh());
        let around = self.lower.around(c);
        put!(self.out, around.before, name, around.after, " = ");
        write(self);
        self.push("; ");
        name
    }

    pub fn value_for_local(&mut self, value: &'p Expr, local: LocalId) {
        let Some(ty) = self.local(local).map(|local| local.ty) else { return };
        let c = self.lower.shape(ty);
        self.value_as(value, c);
    }
}

/// Whether two terms are equal once what was inferred is put in.
fn same(types: &Types, a: Ty, b: Ty) -> bool {
    let (a, b) = (types.head(a), types.head(b));
    if a == b {
        return true;
    }
    let (left, right) = (types.get(a), types.get(b));
    let is_same_head = match (left, right) {
        (TyKind::Aggregate(x, _), TyKind::Aggregate(y, _)) => x == y,
        _ => std::mem::discriminant(left) == std::mem::discriminant(right) && children(left).next().is_some(),
    };
    is_same_head
        && children(left).count() == children(right).count()
        && children(left).zip(children(right)).all(|(a, b)| same(types, a, b))
}

/// Names of variables: as written where that is possible, numbered where a name occurs again.
fn unique_names(lower: &mut Lower<'_>, locals: &[Local]) -> Vec<Rc<str>> {
    let mut taken: HashSet<Rc<str>> = HashSet::default();
    locals
        .iter()
        .enumerate()
        .map(|(index, local)| {
            let base: Rc<str> = lower.local_name(local.name).into();
            let is_free = !lower.is_c_name(local.name) && taken.insert(base.clone());
            if is_free {
                return base;
            }
            let numbered: Rc<str> = text!(base, "__", index).into();
            taken.insert(numbered.clone());
            numbered
        })
        .collect()
}

impl<'p> Lower<'p> {
    /// The definition of a function.
    pub fn define(&mut self, function: &'p Function, copy: Copy) -> String {
        self.lines.forget();
        let id = function.global;
        let program = self.program;
        let global = program.declarations.global(id);
        let head = self.linkage_words(global);
        let name = self.copy_name(copy);
        let mut body = Body::new(self, function);
        body.line(function.span);
        let (mut params, mut copies) = (Vec::new(), String::new());
        for index in 0..function.params {
            let id = LocalId(index as u32);
            let declared = body.captured(|body| body.declare_local(id));
            if !body.is_declared_volatile(id) {
                params.push(declared);
                continue;
            }
            // gcc 12 takes a parameter that is `volatile` itself for a constant where all calls give the same, in some places: the
            // variable is another one.
            let name = text!("_cyc_p", index);
            let c = body.lower.shape(function.locals[index].ty);
            params.push(body.lower.declarator(c, &name));
            put!(copies, " ", declared, " = ", name, ";");
        }
        if function.ty.c_varargs {
            params.push("...".to_owned());
        }
        let list = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let declarator = body.lower.declarator(body.result, &text!(name, "(", list, ")"));
        body.push(&head);
        body.push(&declarator);
        body.push(" ");
        let begin = body.out.len() + "{".len();
        body.block(&function.body);
        let kept = std::mem::take(&mut body.kept);
        body.out.insert_str(begin, &copies);
        body.out.insert_str(begin, &kept);
        body.push("\n");
        body.out
    }

    /// Attributes of a function for the C compiler.
    pub fn function_attributes(&self, function: &crate::types::FnAttributes) -> String {
        let of_c: Vec<_> = function
            .other
            .iter()
            .copied()
            .filter(|word| !word.as_str().starts_with(crate::types::FnAttributes::INLINE))
            .collect();
        let mut text = attributes(&of_c);
        if function.noreturn {
            text.push_str(" __attribute__((noreturn))");
        }
        text
    }
}

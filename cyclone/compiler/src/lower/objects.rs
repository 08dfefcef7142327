//! Values in braces, constructors, and allocation.

use super::Lower;
use super::function::Body;
use super::shapes::{C, Shape};
use crate::elements::{self, Steps};
use crate::source::Span;
use crate::tree::{Allocation, Comprehension, Expr, ExprKind, Field, Init, InitList};
use crate::types::{Alias, DatatypeId, Ty, TyKind};
use std::fmt::Write;

impl<'p> Body<'_, 'p> {
    /// Whether C's braces can say it: no loops, and no order of evaluation that could be seen.
    pub fn is_brace_constant(&self, init: &Init) -> bool {
        let mut leaves = Vec::new();
        collect_leaves(init, &mut leaves) && !self.is_order_seen(leaves)
    }

    /// An initial value in C's braces, or a value.
    pub fn braces(&mut self, init: &'p Init, c: C) {
        match init {
            Init::Value(value) => match (&value.kind, self.lower.shapes.get(c)) {
                (ExprKind::Str(bytes), Shape::Array(..)) => self.push(&super::constants::string_literal(bytes)),
                (ExprKind::WideStr(text), Shape::Array(..)) => self.push(&super::constants::wide_braces(text)),
                (ExprKind::Aggregate(inner), _) => self.braces(inner, c),
                _ => self.value_as(value, c),
            },
            Init::String(bytes) => self.push(&super::constants::string_literal(bytes)),
            Init::List(list) => self.list(list),
            Init::Comprehension(comprehension) => {
                self.lower.unsupported(comprehension.len.span, "a comprehension in this place");
            }
        }
    }

    fn list(&mut self, list: &'p InitList) {
        self.refuse_package(list);
        let is_array = matches!(self.lower.program.types.get(list.ty), TyKind::Array(_));
        self.push("{");
        for (position, (index, init)) in list.entries.iter().enumerate() {
            if position > 0 {
                self.push(", ");
            }
            if is_array {
                if position as u64 != *index {
                    let _ = write!(self.out, "[{index}] = ");
                }
                let element = self.element(list.ty);
                self.braces(init, element);
                continue;
            }
            let (c, name) = self.lower.member(list.ty, *index as usize);
            match name.strip_prefix("val.") {
                Some(name) if self.is_tagged(list.ty) => {
                    put!(self.out, *index + 1, ", {.", name, " = ");
                    self.braces(init, c);
                    self.push("}");
                }
                _ => {
                    put!(self.out, ".", name, " = ");
                    self.braces(init, c);
                }
            }
        }
        self.push("}");
    }

    fn is_tagged(&self, ty: Ty) -> bool {
        let program = self.lower.program;
        matches!(program.types.get(ty), TyKind::Aggregate(id, _) if program.declarations.aggregate(*id).is_tagged)
    }

    fn element(&mut self, ty: Ty) -> C {
        match self.lower.program.types.get(ty) {
            TyKind::Array(array) => self.lower.shape(array.element),
            _ => self.lower.shape(ty),
        }
    }

    /// How many entries a complete list for this type has.
    fn full_count(&self, ty: Ty) -> Option<u64> {
        let program = self.lower.program;
        match program.types.get(ty) {
            TyKind::Array(array) => match array.len.map(|len| program.types.get(len)) {
                Some(TyKind::Nat(len)) => Some(*len),
                _ => None,
            },
            TyKind::Tuple(members) => Some(members.len() as u64),
            TyKind::Aggregate(id, _) => {
                let aggregate = program.declarations.aggregate(*id);
                let fields = aggregate.body.as_ref()?.fields.len() as u64;
                Some(if aggregate.is_union { 1 } else { fields })
            }
            _ => None,
        }
    }

    /// Statements that give the C lvalue `target` its initial value.
    pub fn initialise(&mut self, target: &str, c: C, init: &'p Init) {
        match init {
            Init::Value(value) => match &value.kind {
                ExprKind::Aggregate(inner) => self.initialise(target, c, inner),
                _ if matches!(self.lower.shapes.get(c), Shape::Array(..)) => {
                    let _ = write!(self.out, " __builtin_memcpy({target}, &");
                    self.place(value);
                    let _ = write!(self.out, ", sizeof({target}));");
                }
                _ => {
                    put!(self.out, " ", target, " = ");
                    self.value_as(value, c);
                    self.push(";");
                }
            },
            Init::String(bytes) => {
                let name = self.lower.string(bytes);
                let len = match self.lower.shapes.get(c) {
                    Shape::Array(_, Some(len)) => *len,
                    _ => bytes.len() as u64 + 1,
                };
                let copied = len.min(bytes.len() as u64 + 1);
                if copied < len {
                    let _ = write!(self.out, " __builtin_memset({target}, 0, {len});");
                }
                put!(self.out, " __builtin_memcpy(", target, ", ", name, ", ", copied, ");");
            }
            Init::List(list) => self.initialise_list(target, list),
            Init::Comprehension(comprehension) => {
                let len = self.word_temporary("_cyc_size", |body| body.value(&comprehension.len));
                self.fill(target, comprehension, &len);
            }
        }
    }

    /// Code that opens packages handles the values of all types in them as words.
    fn refuse_package(&mut self, list: &InitList) {
        let program = self.lower.program;
        let TyKind::Aggregate(id, _) = program.types.get(list.ty) else { return };
        let Some(body) = &program.declarations.aggregate(*id).body else { return };
        for (&bound, &ty) in body.existentials.iter().zip(&list.existentials) {
            let steps = |_: &Lower| {
                let of = |field: &Field| elements::of_member(&program.types, &program.declarations, field.ty, bound);
                body.fields.iter().map(of).max().unwrap_or(Steps::No)
            };
            self.lower.refuse_steps(ty, steps, list.span, "in a package that is opened for all types");
        }
    }

    fn initialise_list(&mut self, target: &str, list: &'p InitList) {
        self.refuse_package(list);
        if self.full_count(list.ty) != Some(list.entries.len() as u64) {
            put!(self.out, " __builtin_memset(&", target, ", 0, sizeof(", target, "));");
        }
        let is_array = matches!(self.lower.program.types.get(list.ty), TyKind::Array(_));
        let is_tagged = self.is_tagged(list.ty);
        for (index, init) in &list.entries {
            if is_array {
                let element = self.element(list.ty);
                self.initialise(&text!(target, "[", *index, "]"), element, init);
            } else {
                let (c, name) = self.lower.member(list.ty, *index as usize);
                if is_tagged {
                    put!(self.out, " ", target, ".tag = ", *index + 1, ";");
                }
                self.initialise(&text!(target, ".", name), c, init);
            }
        }
    }

    fn word_temporary(&mut self, ty: &str, write: impl FnOnce(&mut Self)) -> String {
        let name = format!("_cyc_t{}", self.fresh());
        let _ = write!(self.out, " {ty} {name} = ");
        write(self);
        self.push(";");
        name
    }

    /// Gives `len` elements from `target` on their values, and the terminator.
    fn fill(&mut self, target: &str, comprehension: &'p Comprehension, len: &str) {
        let element = self.lower.shape(comprehension.element);
        if let Some(value) = &comprehension.value {
            let counter = format!("_cyc_t{}", self.fresh());
            let _ = write!(self.out, " for (_cyc_size {counter} = 0; {counter} < {len}; {counter}++) {{");
            if self.local(comprehension.index).is_some() {
                self.push(" ");
                self.declare_local(comprehension.index);
                let _ = write!(self.out, " = {counter};");
            }
            match &value.kind {
                ExprKind::Aggregate(init) => self.initialise(&format!("{target}[{counter}]"), element, init),
                _ => {
                    let _ = write!(self.out, " {target}[{counter}] = ");
                    self.value_as(value, element);
                    self.push(";");
                }
            }
            self.push(" }");
        }
        if comprehension.zeroterm {
            let _ = write!(self.out, " {target}[{len}] = 0;");
        }
    }

    /// A value in braces where a value is wanted.
    pub fn aggregate(&mut self, init: &'p Init, ty: Ty) {
        let c = self.lower.shape(ty);
        let cast = self.lower.cast(c);
        if let Init::Value(value) = init {
            return self.value_as(value, c);
        }
        if self.is_brace_constant(init) {
            let _ = write!(self.out, "(({cast})");
            match init {
                Init::List(_) => self.braces(init, c),
                _ => {
                    self.push("{");
                    self.braces(init, c);
                    self.push("}");
                }
            }
            return self.push(")");
        }
        if matches!(self.lower.shapes.get(c), Shape::Array(..)) {
            let span = match init {
                Init::List(list) => list.span,
                Init::Comprehension(comprehension) => comprehension.len.span,
                _ => Span::default(),
            };
            return self.lower.unsupported(span, "an array that is computed in the middle of an expression");
        }
        let name = text!("_cyc_t", self.fresh());
        let declaration = self.lower.declarator(c, &name);
        put!(self.out, "({ ", declaration, ";");
        self.initialise(&name, c, init);
        put!(self.out, " ", name, "; })");
    }

    /// The structure of a datatype's constructor.
    pub fn construct(&mut self, id: DatatypeId, index: u32, args: &'p [Expr]) {
        let c = self.lower.shapes.make(Shape::Constructor(id, index));
        let cast = self.lower.cast(c);
        let tag = self.lower.constructor_tag_value(id, index);
        let operands: Vec<(&'p Expr, C)> =
            args.iter().enumerate().map(|(at, arg)| (arg, self.lower.constructor_member(id, index, at).0)).collect();
        let is_seen = self.is_order_seen(args);
        let texts = match is_seen {
            true => {
                self.push("({ ");
                self.in_order(&operands)
            }
            false => Vec::new(),
        };
        put!(self.out, "((", cast, "){", tag);
        for (at, (arg, c)) in operands.iter().enumerate() {
            self.push(", ");
            match texts.get(at) {
                Some(text) => self.push(text),
                None => self.value_as(arg, *c),
            }
        }
        self.push("})");
        if is_seen {
            self.push("; })");
        }
    }

    /// `new e`
    pub fn new_object(&mut self, allocation: &'p Allocation, init: &'p Init, expr: &'p Expr) {
        self.push("({ ");
        let handle = self.region_handle(allocation);
        if let Init::Comprehension(comprehension) = init {
            self.new_elements(allocation, handle.as_deref(), comprehension, expr);
            return self.push("; })");
        }
        let (ty, c) = self.object_type(init, expr);
        let size = self.lower.cast(c);
        let pointer = self.lower.shapes.pointer(c);
        let is_atomic = ty.is_some_and(|ty| self.lower.is_pointer_free(ty));
        let mut bytes = format!("sizeof({size})");
        let is_array = matches!(self.lower.shapes.get(c), Shape::Array(..));
        let open_end = ty.and_then(|ty| self.open_end(ty));
        if let Some((last, element)) = open_end {
            bytes = self.open_ended_bytes(bytes, last_entry(init, last), element, expr.span);
        }
        let value = match init {
            _ if is_array || open_end.is_some() => None,
            Init::Value(value) => Some(self.temporary(c, |body| body.value_as(value, c))),
            _ if self.is_brace_constant(init) => Some(self.temporary(c, |body| body.braces(init, c))),
            _ => None,
        };
        let cast = self.lower.cast(pointer);
        let name = self.temporary(pointer, |body| {
            let _ = write!(body.out, "({cast})");
            body.allocation(allocation, handle.as_deref(), &bytes, false, is_atomic, expr.span);
        });
        match value {
            Some(value) => {
                put!(self.out, "*", name, " = ", value, ";");
            }
            None => self.initialise(&format!("(*{name})"), c, init),
        }
        self.push(" ");
        self.as_pointer(pointer, &name, &bytes, expr.ty);
        self.push("; })");
    }

    /// Of a structure whose last member is an array of a length that its type does not say: the member's index, and an element's shape.
    pub fn open_end(&mut self, ty: Ty) -> Option<(usize, C)> {
        let program = self.lower.program;
        let TyKind::Aggregate(id, _) = program.types.get(ty) else { return None };
        let aggregate = program.declarations.aggregate(*id);
        let last = aggregate.body.as_ref()?.fields.len().checked_sub(1)?;
        if aggregate.is_union {
            return None;
        }
        let (c, _) = self.lower.member(ty, last);
        match self.lower.shapes.get(c) {
            Shape::Array(element, None) => Some((last, *element)),
            _ => None,
        }
    }

    /// The size of such a structure with the elements that its initial value has.
    fn open_ended_bytes(&mut self, fixed: String, entry: Option<&'p Init>, element: C, span: Span) -> String {
        let size = self.lower.cast(element);
        let count = match entry {
            Some(Init::List(list)) if self.full_count(list.ty) == Some(list.entries.len() as u64) => {
                list.entries.len().to_string()
            }
            Some(Init::Comprehension(comprehension)) if is_plain(&comprehension.len) && !comprehension.zeroterm => {
                self.word_temporary("_cyc_size", |body| body.value(&comprehension.len))
            }
            _ => {
                self.lower.unsupported(span, "a structure that ends in an array whose length is not plain to see");
                return fixed;
            }
        };
        self.word_temporary("_cyc_size", |body| {
            let _ = write!(body.out, "_cyc_bytes({count}, sizeof({size})) + {fixed}");
        })
    }

    /// The type (if the tree has it) and shape of what `new` allocates.
    fn object_type(&mut self, init: &Init, expr: &Expr) -> (Option<Ty>, C) {
        let target = self.pointer_type(expr.ty).map(|pointer| pointer.target);
        match init {
            Init::List(list) => (Some(list.ty), self.lower.shape(list.ty)),
            Init::Value(value) if matches!(self.lower.program.types.get(value.ty), TyKind::Array(_)) => {
                (Some(value.ty), self.lower.shape(value.ty))
            }
            Init::Value(Expr { kind: ExprKind::Aggregate(inner), .. }) if matches!(**inner, Init::List(_)) => {
                self.object_type(inner, expr)
            }
            Init::String(bytes) => {
                let element = match target.map(|target| (target, self.lower.program.types.get(target))) {
                    Some((target, TyKind::Array(_))) => return (Some(target), self.lower.shape(target)),
                    Some((target, _)) => self.lower.shape(target),
                    None => self.target_shape(expr.ty),
                };
                let known = match self.pointer_type(expr.ty).map(|pointer| self.lower.program.types.get(pointer.bound))
                {
                    Some(TyKind::Thin(number)) => match self.lower.program.types.get(*number) {
                        TyKind::Nat(count) => *count,
                        _ => 0,
                    },
                    _ => 0,
                };
                let len = known.max(bytes.len() as u64 + 1);
                (target, self.lower.shapes.make(Shape::Array(element, Some(len))))
            }
            _ => match target {
                Some(target) => (Some(target), self.lower.shape(target)),
                None => (None, self.target_shape(expr.ty)),
            },
        }
    }

    /// `new {for i < n : e}`
    fn new_elements(
        &mut self,
        allocation: &'p Allocation,
        handle: Option<&str>,
        comprehension: &'p Comprehension,
        expr: &'p Expr,
    ) {
        let element = self.lower.shape(comprehension.element);
        let size = self.lower.cast(element);
        let pointer = self.lower.shapes.pointer(element);
        let cast = self.lower.cast(pointer);
        let is_atomic = self.lower.is_pointer_free(comprehension.element);
        let len = self.word_temporary("_cyc_size", |body| body.value(&comprehension.len));
        // Added last: to the greatest number of elements, a negative one of the source, one more would be none.
        let terminator = if comprehension.zeroterm { format!(" + sizeof({size})") } else { String::new() };
        let bytes = self.word_temporary("_cyc_size", |body| {
            let _ = write!(body.out, "_cyc_bytes({len}, sizeof({size})){terminator}");
        });
        self.push(" ");
        let name = self.temporary(pointer, |body| {
            let _ = write!(body.out, "({cast})");
            body.allocation(allocation, handle, &bytes, false, is_atomic, expr.span);
        });
        self.fill(&name, comprehension, &len);
        self.push(" ");
        self.as_pointer(pointer, &name, &bytes, expr.ty);
    }

    /// The allocated object as a pointer of the wanted type.
    fn as_pointer(&mut self, have: C, name: &str, bytes: &str, ty: Ty) {
        let want = self.lower.shape(ty);
        match self.lower.shapes.get(want) {
            Shape::Fat => {
                let _ = write!(self.out, "_cyc_fat_make({name}, {bytes})");
            }
            _ => self.converted(have, want, |body| body.push(name)),
        }
    }

    /// `malloc(n * sizeof(T))` and its like.
    pub fn allocate(
        &mut self,
        allocation: &'p Allocation,
        element: Ty,
        count: Option<&'p Expr>,
        zeroed: bool,
        expr: &'p Expr,
    ) {
        let size = self.lower.type_name(element);
        let is_atomic = self.lower.is_pointer_free(element);
        if self.open_end(element).is_some() {
            self.lower.unsupported(expr.span, "room for a structure that ends in an array of unknown length");
        }
        self.push("({ ");
        let handle = self.region_handle(allocation);
        let bytes = match count {
            None => match self.size_holder(element) {
                Some(local) => self.captured(|body| body.push_local(local)),
                None => format!("sizeof({size})"),
            },
            Some(count) => self.word_temporary("_cyc_size", |body| {
                body.push("_cyc_bytes(");
                body.value(count);
                let _ = write!(body.out, ", sizeof({size}))");
            }),
        };
        self.push(" ");
        let word = self.lower.shapes.make(Shape::Word);
        let name = self.temporary(word, |body| {
            body.allocation(allocation, handle.as_deref(), &bytes, zeroed, is_atomic, expr.span);
        });
        self.as_pointer(word, &name, &bytes, expr.ty);
        self.push("; })");
    }

    fn region_handle(&mut self, allocation: &'p Allocation) -> Option<String> {
        let region = allocation.region.as_deref()?;
        if matches!(self.lower.program.types.get(allocation.region_ty), TyKind::Heap) && self.is_simple(region) {
            return None;
        }
        let region_shape = self.lower.shapes.make(Shape::Region);
        let c = self.lower.shapes.pointer(region_shape);
        Some(self.temporary(c, |body| body.value_as(region, c)))
    }

    fn allocation(
        &mut self,
        allocation: &Allocation,
        handle: Option<&str>,
        bytes: &str,
        zeroed: bool,
        is_atomic: bool,
        span: Span,
    ) {
        let program = self.lower.program;
        let qualifier = match program.types.get(allocation.aqual) {
            TyKind::Aqual(Alias::Unique) => Some("_cyc_unique".to_owned()),
            TyKind::Aqual(Alias::Refcnt) => Some("_cyc_refcnt".to_owned()),
            TyKind::AqualsOf(of) if matches!(program.types.get(*of), TyKind::Var(var) if program.types.is_place(*var)) => {
                handle.map(|handle| format!("_cyc_qualifier_of({handle})"))
            }
            TyKind::Var(var) => match self.holder(*var) {
                Some(local) => Some(self.captured(|body| body.push_local(local))),
                None => {
                    return self
                        .lower
                        .unsupported(span, "an allocation with a qualifier of which no handle is in scope");
                }
            },
            _ => None,
        };
        let is_plain = qualifier.as_deref().is_none_or(|qualifier| qualifier == "_cyc_unique");
        let zero = if zeroed { "calloc" } else { "malloc" };
        let _ = match (handle, qualifier) {
            (None, _) if is_plain => {
                write!(self.out, "_cyc_{zero}{}({bytes})", if is_atomic { "_atomic" } else { "" })
            }
            (None, Some(qualifier)) if qualifier == "_cyc_refcnt" && is_atomic && !zeroed => {
                write!(self.out, "_cyc_rc_malloc_atomic({bytes})")
            }
            (handle, None) => write!(self.out, "_cyc_r{zero}({}, {bytes})", handle.unwrap_or("0")),
            (handle, Some(qualifier)) => {
                write!(self.out, "_cyc_rq{zero}({}, {qualifier}, {bytes})", handle.unwrap_or("0"))
            }
        };
    }
}

/// The expressions in an initial value, from left to right; false if there is a loop among them.
/// The initial value of the last member, if it is written.
fn last_entry(init: &Init, last: usize) -> Option<&Init> {
    match init {
        Init::List(list) => list.entries.iter().find(|(index, _)| *index == last as u64).map(|(_, init)| init),
        Init::Value(Expr { kind: ExprKind::Aggregate(inner), .. }) => last_entry(inner, last),
        _ => None,
    }
}

/// An expression that can be evaluated twice: lengths of such arrays are constants or tags, and tags do not change.
fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Local(_) | ExprKind::Int(_) | ExprKind::ValueOf(_) => true,
        ExprKind::Coerce(_, inner) => is_plain(inner),
        _ => false,
    }
}

fn collect_leaves<'e>(init: &'e Init, leaves: &mut Vec<&'e Expr>) -> bool {
    match init {
        Init::Value(Expr { kind: ExprKind::Aggregate(inner), .. }) => collect_leaves(inner, leaves),
        Init::Value(value) => {
            leaves.push(value);
            true
        }
        Init::List(list) => list.entries.iter().all(|(_, entry)| collect_leaves(entry, leaves)),
        Init::Comprehension(_) => false,
        Init::String(_) => true,
    }
}

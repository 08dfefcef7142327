//! What stands at file level: variables, prototypes, functions, C's `main`.
//!
//! What has external linkage and is defined here is always written; the rest when something written uses it.

use super::copies::Copy;
use super::function::Body;
use super::layouts::attributes;
use super::shapes::Shape;
use super::{Lower, names};
use crate::hash::{HashMap, HashSet};
use crate::symbol::Symbol;
use crate::tree::{CBody, Function, Global, GlobalId, Init, Linkage, Local};
use crate::types::{Function as FunctionType, Ty, TyKind};
use std::fmt::Write;
use std::rc::Rc;

impl<'p> Lower<'p> {
    /// Writes everything; gives the bodies of functions in the order of the source.
    pub fn globals(&mut self) -> Vec<String> {
        let program = self.program;
        let functions: HashMap<GlobalId, usize> =
            program.functions.iter().enumerate().map(|(index, function)| (function.global, index)).collect();
        for (index, global) in program.declarations.globals.iter().enumerate() {
            if global.is_defined && global.linkage != Linkage::Internal {
                self.use_global(GlobalId(index as u32));
            }
        }
        self.exceptions();
        for function in &program.functions {
            if self.is_shared_function(function.global) {
                for copy in self.copies_for_others(function.global) {
                    self.use_copy(copy);
                }
            }
        }
        let mut bodies: Vec<Option<String>> = program.functions.iter().map(|_| None).collect();
        let mut copies: Vec<(Copy, String)> = Vec::new();
        let mut c_bodies = String::new();
        while let Some(copy) = self.wanted.pop() {
            let id = copy.global;
            if let Some(&index) = functions.get(&id) {
                let text = self.define_copy(copy, &program.functions[index]);
                match copy.is_original() {
                    true => bodies[index] = Some(text),
                    false => copies.push((copy, text)),
                }
            } else if let Some(body) = program.c_bodies.iter().find(|body| body.global == id) {
                self.c_body(body, &mut c_bodies);
            } else {
                self.define_variable(id);
            }
        }
        let fallen = self.fallen_copies();
        copies.retain(|(copy, _)| !fallen.contains(copy));
        copies.sort_unstable_by_key(|(copy, _)| *copy);
        let copies = copies.into_iter().map(|(_, text)| text);
        std::iter::once(c_bodies).chain(bodies.into_iter().flatten()).chain(copies).chain([self.c_main()]).collect()
    }

    /// A function whose body is C.
    fn c_body(&mut self, body: &CBody, out: &mut String) {
        let program = self.program;
        let global = program.declarations.global(body.global);
        let TyKind::Function(function) = program.types.get(global.ty) else { return };
        let params: Vec<String> = function
            .params
            .iter()
            .enumerate()
            .map(|(index, param)| {
                let c = self.shape(param.ty);
                let name = body.params.get(index).copied().flatten();
                self.declarator(c, name.map_or("", |name| name.as_str()))
            })
            .collect();
        let list = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let name = self.global_name(body.global);
        let result = self.shape(function.result);
        let declarator = self.declarator(result, &text!(name, "(", list, ")"));
        let words = self.linkage_words(global);
        let _ = writeln!(out, "{words}{declarator} {}", body.text);
        for &id in &body.uses {
            self.use_global(id);
        }
        self.use_named_in(&body.text);
    }

    /// C text names globals of Cyclone by the names they have in C: those are declared, too.
    fn use_named_in(&mut self, text: &str) {
        let words: HashSet<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter_map(|word| word.strip_prefix("Cyc_"))
            .collect();
        if words.is_empty() {
            return;
        }
        for (index, global) in self.program.declarations.globals.iter().enumerate() {
            let name = global.name.as_str();
            let is_named = match name.bytes().any(|byte| byte == b':') {
                true => words.contains(names::mangled(global.name).as_str()),
                false => words.contains(name),
            };
            if is_named {
                self.use_global(GlobalId(index as u32));
            }
        }
    }

    /// The tags of exceptions that are defined here: others may refer to them though nothing here does.
    fn exceptions(&mut self) {
        let program = self.program;
        for (id, datatype) in program.declarations.datatypes.iter().enumerate() {
            if !datatype.is_extensible {
                continue;
            }
            for (index, constructor) in datatype.constructors.iter().enumerate() {
                if !constructor.is_extern && !constructor.is_static {
                    self.constructor_tag_value(crate::types::DatatypeId(id as u32), index as u32);
                }
            }
        }
    }

    /// The C name of a global that is used; sees to it that it is declared and, if it is ours, defined.
    pub fn use_global(&mut self, id: GlobalId) -> Rc<str> {
        if let Some(of_c) = self.program.declarations.global(id).overrides {
            return self.use_global(of_c);
        }
        self.use_copy(Copy::original(id))
    }

    /// The same of a copy of a function.
    pub fn use_copy(&mut self, copy: Copy) -> Rc<str> {
        let name = self.copy_name(copy);
        self.note_use(copy);
        if self.declared.insert(copy) {
            self.within(copy, |lower| lower.declare(copy.global, &name));
            if self.program.declarations.global(copy.global).is_defined {
                self.wanted.push(copy);
            }
        }
        name
    }

    /// `static `, `static inline ` or nothing.
    pub fn linkage_words(&self, global: &Global) -> String {
        match (global.linkage, global.is_inline) {
            (Linkage::Internal, true) => "static inline ".to_owned(),
            (Linkage::Internal, false) => "static ".to_owned(),
            _ => String::new(),
        }
    }

    fn declare(&mut self, id: GlobalId, name: &str) {
        let program = self.program;
        let global = program.declarations.global(id);
        let mut after = match &global.asm_name {
            Some(asm) => format!(" __asm__({asm:?})"),
            None => String::new(),
        };
        after.push_str(&attributes(&global.attributes));
        match program.types.get(global.ty) {
            TyKind::Function(function) => {
                if let Some(header) = function.attributes.inline_header().filter(|header| !self.replaces(header)) {
                    self.inline_headers.insert(header.to_owned());
                    return;
                }
                // C compilers know the types of C's own functions; one that is defined here has ours.
                let shape = match global.linkage {
                    Linkage::C if !global.is_defined => self.c_function_shape(function),
                    _ => self.named_function_shape(function, id),
                };
                let c = self.shapes.make(shape);
                let declarator = self.declarator(c, name);
                let linkage = if global.linkage == Linkage::Internal { "static " } else { "" };
                after.push_str(&self.function_attributes(&function.attributes));
                put!(self.prototypes, linkage, declarator, after, ";\n");
            }
            _ => {
                let c = self.shape(global.ty);
                let declarator = self.declarator(c, name);
                let word = if global.linkage == Linkage::Internal { "static " } else { "extern " };
                // A `static` array must be complete where it is first declared; it is so in its definition.
                let is_incomplete = matches!(self.shapes.get(c), Shape::Array(_, None));
                if !(global.linkage == Linkage::Internal && is_incomplete) {
                    let quals = if global.quals.is_volatile { "volatile " } else { "" };
                    put!(self.prototypes, word, quals, declarator, after, ";\n");
                }
            }
        }
    }

    /// Whether the program defines a function of an inline header itself: then all of them are functions of the library.
    fn replaces(&self, header: &str) -> bool {
        let program = self.program;
        program.functions.iter().any(|function| function.ty.attributes.inline_header() == Some(header))
    }

    fn define_variable(&mut self, id: GlobalId) {
        let program = self.program;
        let global = program.declarations.global(id);
        if matches!(program.types.get(global.ty), TyKind::Function(_)) {
            return;
        }
        let name = self.global_name(id);
        let words = if global.linkage == Linkage::Internal { "static " } else { "" };
        self.variable(&name, words, global.ty, global.init.as_ref(), None);
    }

    /// Defines a variable at file level, which may be a `static` one of a function with these variables. What C cannot compute is computed
    /// before `main`.
    pub fn variable(
        &mut self,
        name: &str,
        words: &str,
        ty: Ty,
        init: Option<&'p Init>,
        of: Option<(GlobalId, &'p [Local])>,
    ) {
        let c = self.shape(ty);
        let declarator = self.declarator(c, name);
        let Some(init) = init else {
            put!(self.data, words, declarator, ";\n");
            return;
        };
        let mut body = Body::outside(self, of);
        let is_constant = body.constant(init, c);
        let text = body.out;
        if is_constant {
            put!(self.data, words, declarator, " = ", text, ";\n");
            self.scratch = text;
            return;
        }
        self.scratch = text;
        let mut body = Body::outside(self, of);
        body.initialise(name, c, init);
        let text = body.out;
        put!(self.data, words, declarator, ";\n");
        put!(self.start, " {", text, " }\n");
        self.scratch = text;
    }

    /// Whether a name is one of C's functions or variables here, so that no variable may hide it.
    pub fn is_c_name(&self, name: Symbol) -> bool {
        self.c_names.contains(name.as_str())
    }

    /// C's `main`, if the program's is here.
    fn c_main(&mut self) -> String {
        let program = self.program;
        let is_main = |function: &&Function| {
            let global = program.declarations.global(function.global);
            global.linkage == Linkage::External && global.name.as_str() == "main"
        };
        let Some(main) = program.functions.iter().find(is_main) else { return String::new() };
        let name = self.global_name(main.global);
        let arguments = self.main_arguments(&main.ty);
        let call = format!("{name}({})", arguments.join(", "));
        let is_void = matches!(program.types.get(main.ty.result), TyKind::Void);
        let body = if is_void { format!("{call}; return 0;") } else { format!("return {call};") };
        format!("int main(int argc, char **argv) {{ _cyc_start(); {body} }}\n")
    }

    fn main_arguments(&mut self, main: &FunctionType) -> Vec<String> {
        main.params
            .iter()
            .enumerate()
            .map(|(index, param)| {
                let c = self.shape(param.ty);
                match (index, self.shapes.get(c)) {
                    (0, _) => "argc".to_owned(),
                    (1, Shape::Fat) => "_cyc_arguments(argc, argv)".to_owned(),
                    (1, _) => format!("({})argv", self.cast(c)),
                    (_, Shape::Fat) => "_cyc_fat_null".to_owned(),
                    _ => "0".to_owned(),
                }
            })
            .collect()
    }
}

/// The last parts of the names of C's functions and variables.
pub fn c_names(globals: &[Global]) -> crate::hash::HashSet<&'static str> {
    globals.iter().filter(|global| global.linkage == Linkage::C).map(|global| names::last_part(global.name)).collect()
}

//! From the typed tree to C.
//!
//! The text includes `cyc_runtime.h`, which says how the parts of the language that C lacks are represented, and headers of the
//! library whose functions are inline ([`globals`]).
//! Types of C come from types of Cyclone by erasure ([`shapes`]). An expression is written in one pass, without a tree of C in
//! between: [`Body::raw`](function::Body) writes it as it lies in memory or comes out of a call, and says beforehand which shape
//! that has, so that the caller can write the cast that it needs around it.
//!
//! | file | what it writes |
//! | --- | --- |
//! | [`shapes`] | C types |
//! | [`names`] | names that C accepts and that do not clash |
//! | [`layouts`] | structures: aggregates, tuples, constructors |
//! | [`globals`] | variables, prototypes, the C `main` |
//! | [`copies`] | which copies of generic functions there are |
//! | [`constants`] | initial values that are constants to C |
//! | [`function`] | bodies: statements |
//! | [`exits`] | what jumps leave: regions, handlers; variables that must survive a jump |
//! | [`matching`] | `switch`, `try`, `let` |
//! | [`expressions`] | values |
//! | [`places`] | accesses, assignment, checks |
//! | [`pointers`] | conversions and arithmetic of pointers |
//! | [`calls`] | calls |
//! | [`objects`] | values in braces, `new`, `malloc` |
//! | [`order`] | evaluation from left to right |
//! | [`lines`] | `#line` |
//! | `text` | how text is put together |
//!
//! Everything is emitted on demand: functions and variables with external linkage, and what they use.

#[macro_use]
mod text;

mod calls;
mod constants;
mod copies;
mod exits;
mod expressions;
mod function;
mod globals;
mod layouts;
mod lines;
mod loops;
mod matching;
mod names;
mod objects;
mod order;
mod places;
mod pointers;
mod shapes;

use crate::diagnostics::{Code, Diagnostic};
use crate::hash::{HashMap, HashSet};
use crate::source::{Source, Span};
use crate::symbol::Symbol;
use crate::tree::{GlobalId, LocalId, Program};
use crate::types::{AggregateId, DatatypeId};
use copies::Copy;
use shapes::{C, Shapes};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::rc::Rc;

/// What the C text says about places in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineInfo {
    /// `#line`, so that debuggers and failed checks name Cyclone's lines.
    Source,
    /// Nothing: for reading the C.
    None,
}

/// Writes a program without errors as C.
///
/// # Errors
/// Constructs that cannot be compiled yet.
pub fn lower(program: &Program, source: &Source, lines: LineInfo) -> Result<String, Vec<Diagnostic>> {
    let mut lower = Lower {
        program,
        shapes: Shapes::default(),
        lines: lines::Lines::new(source, lines),
        diagnostics: Vec::new(),
        aggregate_tags: HashMap::default(),
        taken_tags: HashSet::default(),
        tuples: HashMap::default(),
        constructor_tags: HashMap::default(),
        layouts: layouts::Layouts::default(),
        strings: HashMap::default(),
        strings_text: String::new(),
        tags: HashSet::default(),
        copies: copies::Copies::default(),
        declared: HashSet::default(),
        wanted: Vec::new(),
        global_names: Vec::new(),
        local_names: HashMap::default(),
        union_members: HashMap::default(),
        static_locals: HashMap::default(),
        defined_statics: HashSet::default(),
        kept_places: 0,
        inline_headers: BTreeSet::new(),
        prototypes: String::new(),
        data: String::new(),
        start: String::new(),
        scratch: String::new(),
        c_names: globals::c_names(&program.declarations.globals),
    };
    let bodies = lower.globals();
    if !lower.diagnostics.is_empty() {
        return Err(lower.diagnostics);
    }
    Ok(lower.assemble(&bodies))
}

/// The state of writing one translation unit.
struct Lower<'p> {
    program: &'p Program,
    shapes: Shapes,
    lines: lines::Lines<'p>,
    diagnostics: Vec<Diagnostic>,
    aggregate_tags: HashMap<AggregateId, Rc<str>>,
    taken_tags: HashSet<String>,
    tuples: HashMap<C, usize>,
    constructor_tags: HashMap<(DatatypeId, u32), Rc<str>>,
    layouts: layouts::Layouts,
    strings: HashMap<Vec<u8>, usize>,
    strings_text: String,
    tags: HashSet<Symbol>,
    copies: copies::Copies,
    declared: HashSet<Copy>,
    /// What is used and whose definition has not been written yet.
    wanted: Vec<Copy>,
    /// The C names of globals, where they have been asked for.
    global_names: Vec<Option<Rc<str>>>,
    /// Memory for the text of one variable's value.
    scratch: String,
    /// Names of variables and members in C, by those in the source.
    local_names: HashMap<Symbol, &'static str>,
    /// Names of members of tagged unions with what leads to them.
    union_members: HashMap<Symbol, &'static str>,
    /// Names at file level of `static` variables of functions.
    static_locals: HashMap<(GlobalId, LocalId), Rc<str>>,
    defined_statics: HashSet<(GlobalId, LocalId)>,
    /// How many objects without a name there are at file level.
    kept_places: usize,
    /// Headers of C that define functions of the library inline.
    inline_headers: BTreeSet<String>,
    prototypes: String,
    data: String,
    /// Statements that compute initial values before `main`.
    start: String,
    c_names: HashSet<&'static str>,
}

impl Lower<'_> {
    fn unsupported(&mut self, span: Span, what: &str) {
        let message = format!("{what} cannot be compiled yet");
        self.diagnostics.push(Diagnostic::error(Code::Unsupported, span, message));
    }

    fn assemble(mut self, bodies: &[String]) -> String {
        let (forward, structures) = self.structures();
        let parts = [&forward, &structures, &self.strings_text, &self.prototypes, &self.data];
        let text = parts.into_iter().chain(bodies);
        let mut out = String::with_capacity(text.map(String::len).sum::<usize>() + self.start.len() + 4096);
        out.push_str("#include <cyc_runtime.h>\n");
        for header in &self.inline_headers {
            let _ = writeln!(out, "#include <{header}>");
        }
        if !self.program.c_bodies.is_empty() {
            // Bodies in C use the names that the original compiler's C had.
            out.push_str("#include <cyc_original.h>\n");
        }
        out.push_str("struct _cyc_datatype { int tag; };\nstruct _cyc_extensible { const char *tag; };\n");
        for part in parts.into_iter().chain(bodies) {
            out.push_str(part);
        }
        if !self.start.is_empty() {
            let _ =
                write!(out, "\nstatic void __attribute__((constructor)) _cyc_initialise(void) {{\n{}}}\n", self.start);
        }
        out
    }

    /// The name of the constant array with these bytes and a zero after them.
    fn string(&mut self, bytes: &[u8]) -> String {
        let next = self.strings.len();
        let number = match self.strings.get(bytes) {
            Some(&number) => number,
            None => {
                self.strings.insert(bytes.to_vec(), next);
                let literal = constants::string_literal(bytes);
                put!(self.strings_text, "static const char _cyc_s", next, "[", bytes.len() + 1, "] = ", literal, ";\n");
                next
            }
        };
        text!("_cyc_s", number)
    }
}

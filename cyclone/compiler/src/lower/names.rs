//! Names that C accepts and that do not clash with each other.
//!
//! A global `N::x` is `Cyc_N_x`; what is declared `extern "C"` keeps its last part. Local variables and members keep their
//! names where C and the C library's macros let them.

use super::Lower;
use crate::symbol::Symbol;
use crate::tree::{Aggregate, Global, GlobalId, Linkage};
use crate::types::{AggregateId, DatatypeId};
use std::rc::Rc;

/// Words that mean something to C compilers, in the dialects that we let them read, or that the run-time header defines.
const RESERVED: &[&str] = &[
    "_Alignas",
    "_Alignof",
    "_Atomic",
    "_Bool",
    "_Complex",
    "_Generic",
    "_Imaginary",
    "_Noreturn",
    "_Static_assert",
    "_Thread_local",
    "asm",
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "main",
    "pthread_create",
    "pthread_detach",
    "pthread_exit",
    "pthread_join",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "typeof",
    "union",
    "unix",
    "unsigned",
    "void",
    "volatile",
    "while",
];

/// A name for a member or variable.
pub fn local_name(name: &str) -> String {
    if name.starts_with("_cyc") || name.starts_with("Cyc_") || RESERVED.binary_search(&name).is_ok() {
        return format!("{name}_");
    }
    name.to_owned()
}

/// `N::M::x` as one word.
pub fn mangled(name: Symbol) -> String {
    let name = name.as_str();
    if name.bytes().any(|byte| byte == b':') { name.replace("::", "_") } else { name.to_owned() }
}

/// The last part of a path.
pub fn last_part(name: Symbol) -> &'static str {
    let text = name.as_str();
    text.rsplit(':').next().unwrap_or(text)
}

impl Lower<'_> {
    /// A name for a member or variable.
    pub fn local_name(&mut self, name: Symbol) -> &'static str {
        self.local_names.entry(name).or_insert_with(|| match local_name(name.as_str()) {
            same if same == name.as_str() => name.as_str(),
            other => Symbol::new(&other).as_str(),
        })
    }

    /// The C name of a global.
    pub fn global_name(&mut self, id: GlobalId) -> Rc<str> {
        if let Some(Some(known)) = self.global_names.get(id.0 as usize) {
            return known.clone();
        }
        let global: &Global = self.program.declarations.global(id);
        let name: Rc<str> = match global.linkage {
            Linkage::C => Rc::from(last_part(global.name)),
            Linkage::Internal | Linkage::External => text!("Cyc_", mangled(global.name)).into(),
        };
        let at = id.0 as usize;
        if at >= self.global_names.len() {
            self.global_names.resize(self.program.declarations.globals.len().max(at + 1), None);
        }
        self.global_names[at] = Some(name.clone());
        name
    }

    /// `struct Cyc_N_S`, `union ..`: different for different aggregates, also for those that share a name in two functions.
    pub fn aggregate_tag(&mut self, id: AggregateId) -> Rc<str> {
        if let Some(known) = self.aggregate_tags.get(&id) {
            return known.clone();
        }
        let aggregate: &Aggregate = self.program.declarations.aggregate(id);
        let word = if aggregate.is_union && !aggregate.is_tagged { "union" } else { "struct" };
        let base = match aggregate.name {
            Some(name) if aggregate.is_c => last_part(name).to_owned(),
            Some(name) => format!("Cyc_{}", mangled(name)),
            None => format!("_cyc_unnamed_{}", id.0),
        };
        let tag = if self.taken_tags.insert(base.clone()) { base } else { format!("{base}__{}", id.0) };
        let text: Rc<str> = text!(word, " ", tag).into();
        self.aggregate_tags.insert(id, text.clone());
        self.layouts.mention_aggregate(id);
        text
    }

    /// The structure of a constructor.
    pub fn constructor_tag(&mut self, id: DatatypeId, index: u32) -> Rc<str> {
        if let Some(known) = self.constructor_tags.get(&(id, index)) {
            return known.clone();
        }
        let datatype = self.program.declarations.datatype(id);
        let constructor = &datatype.constructors[index as usize];
        let base = format!("Cyc_{}_{}_constructor", mangled(datatype.name), mangled(constructor.name));
        let tag = if self.taken_tags.insert(base.clone()) { base } else { format!("{base}__{}_{index}", id.0) };
        let text: Rc<str> = text!("struct ", tag).into();
        self.constructor_tags.insert((id, index), text.clone());
        self.layouts.mention_constructor(id, index);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_in_order_so_that_they_are_found() {
        assert!(RESERVED.is_sorted());
        assert_eq!(local_name("while"), "while_");
        assert_eq!(local_name("unix"), "unix_");
        assert_eq!(local_name("count"), "count");
    }
}

//! Types as people write them, for messages.
//!
//! Defaults are left out: a thin pointer into the heap, or a region that the caller chooses, of one element is `int *`. What is not known, or
//! has no name, is `_`.

use super::{Alias, Function, Pointer, Quals, Signedness, Ty, TyKind, TyVar, Types};
use crate::ast::{FloatSize, IntSize};
use crate::tree::Declarations;
use std::fmt::Write;

/// The text of a type.
pub fn show(types: &Types, declarations: &Declarations, ty: Ty) -> String {
    Printer { types, declarations, unwritten: Unwritten::Hidden }.show(ty)
}

/// The text of a type, in which parameters that nobody wrote have the compiler's names for them.
pub fn show_all(types: &Types, declarations: &Declarations, ty: Ty) -> String {
    Printer { types, declarations, unwritten: Unwritten::Shown }.show(ty)
}

/// What becomes of names of parameters that nobody wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwritten {
    Hidden,
    Shown,
}

struct Printer<'a> {
    types: &'a Types,
    declarations: &'a Declarations,
    unwritten: Unwritten,
}

impl Printer<'_> {
    fn show(&self, ty: Ty) -> String {
        match self.types.get(ty) {
            TyKind::Evar(_) => "_".to_owned(),
            // What is wrong has been reported.
            TyKind::Error => "_".to_owned(),
            TyKind::Var(var) => self.variable(*var).to_owned(),
            TyKind::Void => "void".to_owned(),
            TyKind::Bool => "_Bool".to_owned(),
            TyKind::Int(sign, size) => integer(*sign, *size),
            TyKind::Float(size) => float(*size).to_owned(),
            TyKind::Complex(size) => format!("_Complex {}", float(*size)),
            TyKind::VaList => "__builtin_va_list".to_owned(),
            TyKind::Enum(id) => {
                let name = self.declarations.enums[id.0 as usize].name;
                name.map_or("enum".to_owned(), |name| format!("enum {name}"))
            }
            TyKind::Pointer(pointer) => self.pointer(pointer),
            TyKind::Array(array) => {
                let len = array.len.map_or(String::new(), |len| self.show(len));
                let zeroterm = match self.types.get(array.zeroterm) {
                    TyKind::True => " @zeroterm",
                    _ => "",
                };
                format!("{}{}[{len}]{zeroterm}", quals(array.quals), self.show(array.element))
            }
            TyKind::Function(function) => self.function(function),
            TyKind::Tuple(members) => {
                let parts: Vec<String> =
                    members.iter().map(|member| quals(member.quals) + &self.show(member.ty)).collect();
                format!("$({})", parts.join(", "))
            }
            TyKind::Aggregate(id, args) => {
                let aggregate = &self.declarations.aggregates[id.0 as usize];
                let word = if aggregate.is_union { "union" } else { "struct" };
                let name = aggregate.name.map_or("<unnamed>", |name| name.as_str());
                format!("{word} {name}{}", self.arguments(args))
            }
            TyKind::Datatype(id, args) => {
                let name = self.declarations.datatypes[id.0 as usize].name;
                format!("datatype {name}{}", self.arguments(args))
            }
            TyKind::Constructor(id, index, args) => {
                let datatype = &self.declarations.datatypes[id.0 as usize];
                let constructor = datatype.constructors[*index as usize].name;
                format!("datatype {}.{constructor}{}", datatype.name, self.arguments(args))
            }
            TyKind::Opaque(name, _, args) => format!("{name}{}", self.arguments(args)),
            TyKind::Subset(id, base) => {
                format!("@subset({} {})", self.show(*base), self.declarations.constraints[id.0 as usize])
            }
            TyKind::RegionHandle(of) => format!("region_t<{}>", self.show(*of)),
            TyKind::TagHandle(of) => format!("tag_t<{}>", self.show(*of)),
            TyKind::AqualHandle(of) => format!("aqual_t<{}>", self.show(*of)),
            TyKind::Heap => "`H".to_owned(),
            TyKind::Place(region, aqual) => match (self.types.get(*region), self.types.get(*aqual)) {
                (TyKind::Heap, TyKind::Aqual(Alias::Unique)) => "`U".to_owned(),
                (TyKind::Heap, TyKind::Aqual(Alias::Refcnt)) => "`RC".to_owned(),
                (_, TyKind::Aqual(Alias::Aliasable)) => self.show(*region),
                _ => format!("{} with {}", self.show(*region), self.show(*aqual)),
            },
            TyKind::Join(parts) if parts.is_empty() => "{}".to_owned(),
            TyKind::Join(parts) => {
                let parts: Vec<String> = parts.iter().map(|&part| self.show(part)).collect();
                parts.join("+")
            }
            TyKind::RegionsOf(of) => format!("regions({})", self.show(*of)),
            TyKind::Aqual(alias) => alias_word(*alias).to_owned(),
            TyKind::AqualsOf(of) => format!("aquals({})", self.show(*of)),
            TyKind::True => "true".to_owned(),
            TyKind::False => "false".to_owned(),
            TyKind::Fat => "@fat".to_owned(),
            TyKind::Thin(len) => format!("@numelts({})", self.show(*len)),
            TyKind::Nat(number) => number.to_string(),
            TyKind::SizeOf(of) => format!("sizeof({})", self.show(*of)),
        }
    }

    fn variable(&self, var: TyVar) -> &'static str {
        let info = self.types.var(var);
        if self.unwritten == Unwritten::Shown { info.name.as_str() } else { info.shown() }
    }

    fn arguments(&self, args: &[Ty]) -> String {
        let shown: Vec<String> = args
            .iter()
            .filter(|&&arg| !matches!(self.types.get(arg), TyKind::Heap | TyKind::Aqual(Alias::Aliasable)))
            .map(|&arg| self.show(arg))
            .collect();
        if shown.is_empty() { String::new() } else { format!("<{}>", shown.join(",")) }
    }

    fn pointer(&self, pointer: &Pointer) -> String {
        let not_null = matches!(self.types.get(pointer.nullable), TyKind::False);
        let (sigil, bound) = match self.types.get(pointer.bound) {
            TyKind::Fat => ("?", String::new()),
            TyKind::Thin(len) => match self.types.get(*len) {
                TyKind::Nat(1) | TyKind::Evar(_) => (if not_null { "@" } else { "*" }, String::new()),
                _ => (if not_null { "@" } else { "*" }, format!("{{{}}}", self.show(*len))),
            },
            _ => (if not_null { "@" } else { "*" }, String::new()),
        };
        let target = self.types.get(pointer.target);
        let mut text = match target {
            TyKind::Function(function) => self.function_with(function, &format!("({sigil})")),
            _ => format!("{}{} {sigil}{bound}", quals(pointer.quals), self.show(pointer.target)),
        };
        let character = matches!(target, TyKind::Int(Signedness::Plain, IntSize::Char));
        match (self.types.get(pointer.zeroterm), character) {
            (TyKind::True, false) => text.push_str("@zeroterm"),
            (TyKind::False, true) => text.push_str("@nozeroterm"),
            _ => {}
        }
        match self.types.get(pointer.aqual) {
            TyKind::Aqual(Alias::Aliasable) | TyKind::Evar(_) => {}
            TyKind::Aqual(Alias::Unique) => text.push_str("\\U"),
            TyKind::Aqual(Alias::Refcnt) => text.push_str("\\RC"),
            TyKind::Aqual(Alias::Restricted) => text.push_str("\\T"),
            // Its region says it.
            TyKind::AqualsOf(of) if *of == pointer.region => {}
            _ => {
                let _ = write!(text, "@aqual({})", self.show(pointer.aqual));
            }
        }
        match self.types.get(pointer.region) {
            TyKind::Heap | TyKind::Evar(_) => {}
            TyKind::Var(var) if self.variable(*var) == "_" => {}
            _ => text.push_str(&self.show(pointer.region)),
        }
        text
    }

    fn function(&self, function: &Function) -> String {
        self.function_with(function, "")
    }

    fn function_with(&self, function: &Function, middle: &str) -> String {
        let mut params: Vec<String> =
            function.params.iter().map(|param| quals(param.quals) + &self.show(param.ty)).collect();
        if function.c_varargs {
            params.push("...".to_owned());
        }
        if let Some(varargs) = &function.varargs {
            let word = if varargs.inject { "inject " } else { "" };
            params.push(format!("...{word}{}", self.show(varargs.ty)));
        }
        format!("{} {middle}({})", self.show(function.result), params.join(", "))
    }
}

fn quals(quals: Quals) -> String {
    let mut text = String::new();
    for (set, word) in [(quals.is_const, "const "), (quals.is_volatile, "volatile "), (quals.is_restrict, "restrict ")]
    {
        if set {
            text.push_str(word);
        }
    }
    text
}

fn integer(sign: Signedness, size: IntSize) -> String {
    let size_word = match size {
        IntSize::Char => "char",
        IntSize::Short => "short",
        IntSize::Int => "int",
        IntSize::Long => "long",
        IntSize::LongLong => "long long",
    };
    match (sign, size) {
        (Signedness::Unsigned, _) => format!("unsigned {size_word}"),
        (Signedness::Signed, IntSize::Char) => "signed char".to_owned(),
        _ => size_word.to_owned(),
    }
}

fn float(size: FloatSize) -> &'static str {
    match size {
        FloatSize::Float => "float",
        FloatSize::Double => "double",
        FloatSize::LongDouble => "long double",
    }
}

/// The word of an alias qualifier.
pub fn alias_word(alias: Alias) -> &'static str {
    match alias {
        Alias::Aliasable => "ALIASABLE",
        Alias::Unique => "UNIQUE",
        Alias::Refcnt => "REFCNT",
        Alias::Restricted => "RESTRICTED",
    }
}

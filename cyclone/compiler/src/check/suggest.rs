//! What the user may have meant by a name that is not known.

use super::Checker;
use crate::ast::{Ident, Path};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::Expr;
use crate::types::{AggregateId, Ty, TyKind};

impl Checker<'_> {
    /// Reports a name that stands for no value.
    pub(super) fn unknown_value(&mut self, path: &Path, span: Span) -> Expr {
        let mut report = Diagnostic::error(Code::UnknownName, span, format!("`{path}` is not declared"));
        if let Some(full) = self.names.elsewhere(path.name) {
            let namespace = full.as_str().trim_end_matches(path.name.as_str()).trim_end_matches("::");
            report = report.help(format!("`{full}` is: write that, or `using {namespace};` before"));
        } else if let Some(instead) = instead_of(path.name.as_str()) {
            report = report.help(instead);
        } else if let Some(similar) = similar(path.name, self.names.value_names()) {
            report = report.help(format!("`{similar}` is declared"));
        }
        self.diagnostics.push(report);
        Expr::error(&mut self.types, span)
    }

    /// Reports a name that stands for no type.
    pub(super) fn unknown_type(&mut self, path: &Path) {
        let report = Diagnostic::error(Code::UnknownName, path.span, format!("there is no type of the name `{path}`"));
        let help = match self.lookup_aggregate(path) {
            Some(id) => {
                let word = if self.declarations.aggregate(id).is_union { "union" } else { "struct" };
                Some(format!("write `{word} {path}`"))
            }
            None => instead_of(path.name.as_str()),
        };
        self.diagnostics.push(Diagnostic { help, ..report });
    }

    /// The structure or union with a name similar to one that has no members.
    pub(super) fn similar_aggregate(&self, id: AggregateId) -> Option<String> {
        let aggregate = self.declarations.aggregate(id);
        let complete = self.declarations.aggregates.iter().filter(|other| other.body.is_some());
        let similar = similar(aggregate.name?, complete.filter_map(|other| other.name))?;
        Some(format!("`{similar}` is declared with members"))
    }

    /// Adds the member of `ty` with a similar name to a report, if there is one, and makes the report.
    pub(super) fn with_similar_member(&mut self, mut report: Diagnostic, ty: Ty, name: Symbol) {
        if let TyKind::Aggregate(id, _) = self.types.get(ty)
            && let Some(body) = &self.declarations.aggregate(*id).body
            && let Some(similar) = similar(name, body.fields.iter().filter_map(|field| field.name))
        {
            report = report.help(format!("there is a member `{similar}`"));
        }
        self.diagnostics.push(report);
    }

    /// Reports a variable of a pattern that would hold what has no known size. In a datatype's place it may be a constructor's name,
    /// written wrongly.
    pub(super) fn unsized_variable(&mut self, name: Ident, ty: Ty) {
        let message = format!("`{}` would have a type of unknown size", name.name);
        let mut report = Diagnostic::error(Code::BadPattern, name.span, message);
        if let TyKind::Datatype(id, _) = self.types.get(ty) {
            let constructors = &self.declarations.datatype(*id).constructors;
            if let Some(similar) = similar(name.name, constructors.iter().map(|constructor| constructor.name)) {
                report = report.help(format!("there is a constructor `{similar}`"));
            }
        }
        self.diagnostics.push(report);
    }
}

/// The headers that declare what C programs use, and what of it.
const HEADERS: &[(&str, &[&str])] = &[
    (
        "stdio.h",
        &[
            "printf", "fprintf", "sprintf", "snprintf", "scanf", "sscanf", "fscanf", "puts", "fputs", "fgets",
            "putchar", "getchar", "fopen", "fclose", "fread", "fwrite", "perror", "stdin", "stdout", "stderr", "EOF",
            "FILE",
        ],
    ),
    (
        "stdlib.h",
        &[
            "free", "abs", "exit", "abort", "atoi", "atol", "atof", "strtol", "strtod", "qsort", "rand", "srand",
            "getenv", "system",
        ],
    ),
    (
        "string.h",
        &[
            "strlen",
            "strcpy",
            "strncpy",
            "strcat",
            "strcmp",
            "strncmp",
            "strchr",
            "strrchr",
            "strstr",
            "strdup",
            "strtok",
            "memcpy",
            "memmove",
            "memset",
            "memcmp",
            "strerror",
            "realloc",
            "strconcat",
        ],
    ),
    ("ctype.h", &["isalpha", "isdigit", "isalnum", "isspace", "isupper", "islower", "ispunct", "toupper", "tolower"]),
    ("math.h", &["sqrt", "pow", "sin", "cos", "tan", "exp", "log", "log10", "floor", "ceil", "fabs", "fmod"]),
    ("time.h", &["time", "clock", "localtime", "gmtime", "strftime", "difftime", "time_t"]),
    ("unistd.h", &["read", "write", "close", "sleep", "usleep", "getpid", "fork", "unlink"]),
    ("errno.h", &["errno"]),
    ("assert.h", &["assert"]),
    ("limits.h", &["INT_MAX", "INT_MIN", "CHAR_BIT", "LONG_MAX"]),
    (
        "stdint.h",
        &[
            "int8_t",
            "int16_t",
            "int32_t",
            "int64_t",
            "uint8_t",
            "uint16_t",
            "uint32_t",
            "uint64_t",
            "intptr_t",
            "uintptr_t",
        ],
    ),
    ("core.h", &["string_t", "bool", "true", "false"]),
    ("stddef.h", &["size_t", "ptrdiff_t"]),
];

/// What stands for what Cyclone does not have.
const INSTEAD: &[(&str, &str)] = &[
    ("setjmp", "Cyclone has exceptions: `try .. catch`, `throw`"),
    ("longjmp", "Cyclone has exceptions: `try .. catch`, `throw`"),
    ("alloca", "`region r;` and `rnew(r)` give memory back at the end of a block"),
    ("gets", "`fgets` knows how much fits"),
    ("cons", "a list's cell is made by `new List{element, list}`"),
    ("nil", "`NULL`"),
    ("nullptr", "`NULL`"),
    ("delete", "what `new` puts into the heap is not freed by hand; a unique pointer (`unew`) is, by `Core::ufree`"),
    ("va_list", "`...T name` as the last parameter is a fat pointer to all further arguments"),
    ("va_start", "`...T name` as the last parameter is a fat pointer to all further arguments"),
];

/// What to do about a name that C has.
pub(super) fn instead_of(name: &str) -> Option<String> {
    if let Some((_, instead)) = INSTEAD.iter().find(|(known, _)| *known == name) {
        return Some((*instead).to_owned());
    }
    let (header, _) = HEADERS.iter().find(|(_, names)| names.contains(&name))?;
    Some(format!("`#include <{header}>` declares it"))
}

/// The name that differs least, if it is by one letter or by no more than a third of them. Equally good ones: the first in the alphabet.
fn similar(name: Symbol, names: impl Iterator<Item = Symbol>) -> Option<Symbol> {
    let most = (name.as_str().chars().count() / 3).max(1);
    names
        .map(|other| (strsim::damerau_levenshtein(name.as_str(), other.as_str()), other))
        .filter(|(distance, other)| *distance <= most && other.as_str().chars().count() > *distance)
        .min_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.as_str().cmp(b.1.as_str())))
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::{HEADERS, INSTEAD, instead_of};
    use std::path::Path;

    /// A word of a header, or of what it includes.
    fn is_declared(header: &str, name: &str, depth: u32) -> bool {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lib").join(header);
        let Ok(text) = std::fs::read_to_string(&path) else { panic!("{header} is not there") };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let included = |line: &str| {
            let (_, rest) = line.strip_prefix("#include")?.split_once('<')?;
            Some(rest.split_once('>')?.0.to_owned())
        };
        text.split(|c| !is_word(c)).any(|word| word == name)
            || depth > 0 && text.lines().filter_map(included).any(|inner| is_declared(&inner, name, depth - 1))
    }

    #[test]
    fn each_header_has_the_names_that_it_is_suggested_for() {
        for (header, names) in HEADERS {
            for name in *names {
                assert!(is_declared(header, name, 2), "{name} is not in {header}");
            }
        }
    }

    #[test]
    fn no_name_has_two_suggestions() {
        let names = HEADERS.iter().flat_map(|(_, names)| names.iter()).chain(INSTEAD.iter().map(|(name, _)| name));
        let mut all: Vec<&&str> = names.collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(instead_of("sqrt").as_deref(), Some("`#include <math.h>` declares it"));
    }
}

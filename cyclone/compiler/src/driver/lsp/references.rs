//! All places where a name stands for the same thing, and whether it can have another name.
//!
//! A thing is known in all units by its full name, if the linker knows it, or by where it is declared. A unit says what the occurrences of a word
//! mean in the preprocessed text ([`super::meanings`]); each is looked for in the written line. Words of a project's files that are in no
//! unit's list are in macros or not compiled: what they mean is not known, so that nothing of that name is renamed.

use super::analysis::Analysis;
use super::meanings::{Meaning, Meanings};
use super::places;
use crate::lex::Tok;
use crate::source::Span;
use lsp_types::{Location, Position, TextEdit};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A thing that has a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Thing {
    /// By its full name.
    Linked(String),
    /// By the place of its declaration: file, line and byte.
    Declared(PathBuf, u32, usize),
}

/// An occurrence of a word in a file.
#[derive(Clone, Debug)]
pub struct Occurrence {
    pub file: PathBuf,
    /// Counted from 1.
    pub line: u32,
    /// The line as it is written.
    pub text: String,
    /// The word, in bytes of the line.
    pub columns: Range<usize>,
    /// If it is known.
    pub thing: Option<Thing>,
}

impl Occurrence {
    fn place(&self) -> (PathBuf, u32, usize) {
        (self.file.clone(), self.line, self.columns.start)
    }

    fn range(&self) -> lsp_types::Range {
        places::range(self.line, &self.text, self.columns.clone())
    }

    pub fn location(&self) -> Option<Location> {
        Some(Location { uri: places::uri_of(&self.file)?, range: self.range() })
    }

    pub fn edit(&self, new_name: &str) -> TextEdit {
        TextEdit { range: self.range(), new_text: new_name.to_owned() }
    }

    fn is_at(&self, file: &Path, line: u32, byte: usize) -> bool {
        self.file == file && self.line == line && self.columns.start <= byte && byte <= self.columns.end
    }
}

/// One name for one file.
pub fn canonical(file: &str) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| PathBuf::from(file))
}

/// The word around a column of a line.
pub fn word_in(line: &str, byte: usize) -> Option<Range<usize>> {
    let is_part = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
    let bytes = line.as_bytes();
    let before = bytes.get(..byte)?.iter().rev().take_while(|c| is_part(c)).count();
    let after = bytes[byte..].iter().take_while(|c| is_part(c)).count();
    let range = byte - before..byte + after;
    let begins = bytes.get(range.start).is_some_and(|c| !c.is_ascii_digit());
    let is_variable = range.start.checked_sub(1).is_some_and(|at| bytes[at] == b'`');
    (begins && !range.is_empty() && !is_variable).then_some(range)
}

impl Analysis {
    /// The files of the unit; not those that the preprocessor itself stands for.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        let files = self.source.files.iter().filter(|file| !file.starts_with('<'));
        files.map(|file| canonical(file)).collect()
    }

    /// Where a word is written, and what it means there.
    pub fn occurrences(&mut self, word: &str) -> Vec<Occurrence> {
        let Some(program) = &self.program else { return Vec::new() };
        let found = Meanings::of(&self.source, program, &self.declared, word).occurrences();
        let mut out: Vec<Occurrence> = Vec::new();
        for (span, meaning) in found {
            let quote = self.originals.quote(&self.source, span);
            if quote.text.get(quote.columns.clone()) != Some(word) {
                continue;
            }
            let thing = meaning.map(|meaning| self.thing(meaning));
            let file = canonical(&quote.file);
            out.push(Occurrence { file, line: quote.line, text: quote.text, columns: quote.columns, thing });
        }
        // A macro's argument has several copies: one that is known is as good as any.
        out.sort_by(|a, b| a.place().cmp(&b.place()).then(a.thing.is_none().cmp(&b.thing.is_none())));
        out.dedup_by(|a, b| a.place() == b.place() && (a.thing.is_none() || a.thing == b.thing));
        out
    }

    fn thing(&mut self, meaning: Meaning) -> Thing {
        match meaning {
            Meaning::Linked(name) => Thing::Linked(name),
            Meaning::Declared(start) => {
                let quote = self.originals.quote(&self.source, Span { start, end: start + 1 });
                Thing::Declared(canonical(&quote.file), quote.line, quote.columns.start)
            }
        }
    }

    /// Whether a unit can see a thing.
    pub fn sees(&self, thing: &Thing) -> bool {
        match thing {
            Thing::Linked(_) => true,
            Thing::Declared(file, ..) => self.files().contains(file),
        }
    }

    /// The lines of the function in which alone a thing is known.
    pub fn lines_of_local(&mut self, thing: &Thing) -> Option<Range<u32>> {
        let program = self.program.as_ref()?;
        let locals = program.functions.iter().flat_map(|function| {
            function.locals.iter().map(|local| (local.span.start, function.span)).collect::<Vec<_>>()
        });
        let locals: Vec<_> = locals.collect();
        let (_, whole) = locals.into_iter().find(|(start, _)| self.thing(Meaning::Declared(*start)) == *thing)?;
        let (first, last) = (self.source.place(whole.start).line, self.source.place(whole.end).line);
        Some(first..last + 1)
    }

    /// Why a thing cannot get this name in this unit.
    pub fn collision(&mut self, thing: &Thing, new_name: &str) -> Option<String> {
        let lines = self.lines_of_local(thing);
        let member = self.members_beside(thing);
        if let Some(members) = member {
            return members.iter().any(|name| name == new_name).then(|| format!("there is a member `{new_name}`"));
        }
        let used = self.occurrences(new_name);
        let within = |occurrence: &&Occurrence| lines.as_ref().is_none_or(|lines| lines.contains(&occurrence.line));
        let first = used.iter().find(within)?;
        Some(format!("`{new_name}` stands in line {} of {}", first.line, first.file.display()))
    }

    /// The names of the members beside one, if the thing is a member.
    fn members_beside(&mut self, thing: &Thing) -> Option<Vec<String>> {
        let program = self.program.as_ref()?;
        let bodies = program.declarations.aggregates.iter().filter_map(|aggregate| aggregate.body.as_ref());
        let fields: Vec<(Vec<u32>, Vec<String>, bool)> = bodies
            .map(|body| {
                let names = body.fields.iter().filter_map(|field| field.name).map(|name| name.to_string());
                let has_unnamed = body.fields.iter().any(|field| field.name.is_none());
                (body.fields.iter().map(|field| field.span.start).collect(), names.collect(), has_unnamed)
            })
            .collect();
        let mut beside = None;
        for (starts, names, _) in &fields {
            if starts.iter().any(|start| self.thing(Meaning::Declared(*start)) == *thing) {
                beside = Some(names.clone());
            }
        }
        // It may be a member of one that has no name, and so one of what is around.
        let mut beside = beside?;
        beside.extend(fields.into_iter().filter(|(_, _, has_unnamed)| *has_unnamed).flat_map(|(_, names, _)| names));
        Some(beside)
    }
}

/// What is at a place, among the occurrences of the word there.
pub fn thing_at(found: &[Occurrence], file: &Path, line: u32, byte: usize) -> Option<Thing> {
    found.iter().find(|occurrence| occurrence.is_at(file, line, byte))?.thing.clone()
}

/// The line of a text that a position is in, and the byte there.
pub fn line_and_byte(text: &str, position: Position) -> Option<(&str, usize)> {
    let line = text.lines().nth(position.line as usize)?;
    Some((line, places::byte_of(line, position.character)))
}

/// Whether a word can be the name of something.
///
/// # Errors
/// Why not.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if !is_name || name == "_" {
        return Err(format!("`{name}` is not a name"));
    }
    if Tok::words().any(|word| word == name) {
        return Err(format!("`{name}` is a keyword"));
    }
    Ok(())
}

/// Whether a text defines a macro of this name.
pub fn defines(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let defined = line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"));
        let rest = defined.and_then(|rest| rest.trim_start().strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Where a word stands in a text, outside of comments and literals: lines, counted from 1, and bytes in them.
pub fn written(text: &str, word: &str) -> Vec<(u32, usize)> {
    let bytes = text.as_bytes();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut out = Vec::new();
    let (mut at, mut line, mut line_start, mut depth) = (0, 1, 0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut length = 1;
        if rest[0] == b'\n' {
            (line, line_start) = (line + 1, at + 1);
        } else if rest.starts_with(b"/*") {
            (depth, length) = (depth + 1, 2);
        } else if depth > 0 {
            if rest.starts_with(b"*/") {
                (depth, length) = (depth - 1, 2);
            }
        } else if rest.starts_with(b"//") {
            length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        } else if matches!(rest[0], b'"' | b'\'') {
            let quote = rest[0];
            while length < rest.len() && rest[length] != quote && rest[length] != b'\n' {
                length += if rest[length] == b'\\' { 2 } else { 1 };
            }
            let closes = rest.get(length) == Some(&quote);
            length = (length + usize::from(closes)).min(rest.len());
        } else if is_part(rest[0]) || rest[0] == b'`' {
            length = 1 + rest[1..].iter().take_while(|&&byte| is_part(byte)).count();
            if &rest[..length] == word.as_bytes() {
                out.push((line, at - line_start));
            }
        }
        at += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_outside_of_comments_and_literals() {
        let text = "x /* x /* x */ x */ x\n// x\n\"x\\\" x\" 'x' x1 `x\n  x";
        assert_eq!(written(text, "x"), [(1, 0), (1, 20), (4, 2)]);
        assert_eq!(written("'a", "a"), []);
        assert_eq!(written("\"\\", "a"), []);
    }

    #[test]
    fn keywords_and_numbers_are_no_names() {
        assert!(check_name("counter_2").is_ok());
        for wrong in ["", "2x", "a b", "while", "datatype", "_", "a::b", "ä"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn macros_are_found_by_their_names() {
        assert!(defines("#define  x(a) a\n", "x"));
        assert!(!defines("#define xy 1\n", "x"));
    }
}

//! What the compiler tells the user, in three forms.
//!
//! Every phase pushes [`Diagnostic`]s into a vector; nothing is printed before the driver prints it. A diagnostic has a code
//! that `cyc explain` knows, one primary span, and further spans with reasons of their own ("consumed here"). Forms: with
//! source (the default; the lines are shown as they were written: [`crate::original`]), `--plain` (`file:line: error: message`, which scripts and the corpus use) and `--json` (one object per
//! line, for editors).

use crate::original::{Originals, Quote};
use crate::source::{Source, Span};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt::Write;

macro_rules! codes {
    ($($name:ident $number:literal $explanation:literal;)*) => {
        /// What kind of thing went wrong; `cyc explain` prints the text that belongs to it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Code { $(#[doc = $explanation] $name,)* }

        impl Code {
            /// As it is shown: `E0002`.
            pub fn number(self) -> &'static str {
                match self { $(Code::$name => $number,)* }
            }

            /// The explanation of a code that a user typed, with any case.
            pub fn explain(number: &str) -> Option<&'static str> {
                let number = number.to_ascii_uppercase();
                $(if number == $number { return Some($explanation); })*
                None
            }
        }
    };
}

codes! {
    Preprocessor "E0001" "A directive or a macro is wrong, or a header is not there. Headers are looked for beside the file (`\"name\"`), in the directories of `-I`, and among Cyclone's own; those of the machine are not Cyclone.";
    Lexical "E0002" "The text cannot be cut into tokens: a literal or comment does not end, or a character begins nothing.";
    Syntax "E0003" "The tokens do not follow Cyclone's grammar. The message says what was expected at the place that is marked.";
    Unsupported "E0004" "The construct is part of Cyclone, but this compiler cannot compile it yet. It never compiles such a thing wrongly: it stops.";
    OldForm "E0005" "The program is written as in an early version of Cyclone. The message says how the same is written now.";
    UnknownName "E0100" "The name is not declared where it is used, or not in a namespace that is open there.";
    Redeclared "E0101" "The name is declared a second time in a way that does not agree with the first.";
    WrongType "E0200" "An expression has a type that cannot be used, or converted, here.";
    NotNumeric "E0201" "An operator needs a number (or another kind of operand) and got something else.";
    WrongArguments "E0202" "A function is called with too many or too few arguments.";
    NotAssignable "E0203" "Something that is not an object, or is const, is assigned to.";
    ThinArithmetic "E0204" "Arithmetic on a thin pointer: nothing knows its bounds. Use a fat pointer (`T ?`) or an index that is checked against `@numelts`.";
    BadCast "E0205" "A cast would make a pointer out of something that is none, or change what a pointer points to.";
    Incomplete "E0206" "The type's members are not known here, so that its size is not.";
    WrongKind "E0207" "A type, region, alias qualifier or number stands where another kind of thing is needed. The kinds are A (any type), M (a type whose size is known), B (a type that fits a register), E (regions), I (a number) and Q (an alias qualifier).";
    NotConstant "E0208" "A number that the compiler must know is not a constant expression.";
    BadAttribute "E0209" "An attribute has arguments that make no sense, or stands where it has no meaning.";
    OutOfBounds "E0210" "An element is named that a pointer or array does not have.";
    WrongFormat "E0211" "A format string of printf or scanf cannot be read, or asks for other values than there are.";
    NotUnique "E0212" "A unique or counted pointer is copied out of, or lent from, a place that other pointers may lead to: swap something into its place with `:=:` instead. Or an address inside of the object that it owns would outlive it: alias the owner for as long as the address is used.";
    NotAWord "E0213" "A type that is not 8 bytes large takes the place of a type variable whose values lie in memory that generic code steps through, and that code is there only once, for words of 8 bytes: it is called through a pointer, opens packages, is written in C, or the memory is an array in a structure. Use `long` or a pointer, or call a generic function by its name.";
    MissingReturn "E0300" "A function with a result can reach its end without `return`.";
    Uninitialised "E0301" "A pointer may be used before it has a value.";
    NotExhaustive "E0302" "A switch has a value that no case covers. Add the case, or `default`.";
    Misplaced "E0303" "A statement stands where it has no meaning, such as `break` outside of a loop.";
    BadPattern "E0310" "A pattern does not fit what it is to match, or binds what cannot be bound there: a reference needs a pointer pattern around it, an alias needs a place that stays.";
    Redundant "E0312" "A clause can never be chosen, because those before it cover all values that it matches. Often a constructor's name is misspelled there, and so became a variable.";
    Consumed "E0320" "An owned pointer is used after it was consumed: copied, freed, or passed to a function that consumes it, on at least one of the ways that lead here.";
    NotKept "E0321" "A function may consume an owned parameter only if it is declared with `__attribute__((consume(n)))`; otherwise the parameter must have its first value again at every return.";
    Overwritten "E0322" "While an alias of an owned pointer lives, the place that the pointer came from may not be changed: it gets the pointer back when the alias ends.";
    Lost "E0323" "The last pointer to an object may be lost without the object having been freed (`-Wlose-unique`).";
    ZeroTerminated "E0324" "The last element of a zero-terminated array is what ends it. Only 0 may be swapped into such an array, because the element might be the last one. A pointer into it may forget that a zero ends it only if it cannot lead to the zero, or cannot write: a fat pointer then ends before the zero, one to fewer elements does not have it, one to `const` does not change it. Elements are numbers, or pointers that may be NULL: of anything else a part could be changed.";
    Fallthrough "E0325" "The end of a clause of `switch` or `catch` can be reached. There is no silent falling into the next clause: end it with `break`, or go on with `fallthru` and values for the next clause's variables.";
    EntersScope "E0326" "A `goto` may leave blocks, but not enter the scope of a variable, alias, region or exception handler.";
    AlwaysNull "E0327" "A pointer is followed, or used where NULL may not be, that is NULL on all ways that lead there.";
    Broken "E0328" "A call gives a function arguments that its `@requires` excludes. Where the compiler cannot see it, the function tests them and throws `Assert`.";
    DeadRegion "E0400" "A pointer is followed, or a function called, that needs a region which is not known to be live here: the function's effect does not have it, and no block or `open` around brings it to life.";
    Constraint "E0401" "A function is called whose prototype asks for something about regions or alias qualifiers (after `:`) that is not known here.";
    Escapes "E0402" "A pointer would go where it can be used after what it points to has ended: to a variable outside of the region's block, to the caller, into something that lives longer. Put the object into a region that lives as long (`rnew(r)` with a region of the caller, `new` for the heap), or move what uses it into the block.";
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// No output is made.
    Error,
    /// The program is compiled.
    Warning,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// One sentence, without a full stop.
    pub message: String,
    /// Further places, each with what happened there.
    pub related: Vec<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error with one place.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { code, severity: Severity::Error, span, message: message.into(), related: Vec::new(), help: None }
    }

    /// A warning with one place.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// The same as a warning.
    pub fn into_warning(self) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..self }
    }

    /// Adds a place and what happened there.
    pub fn with(mut self, span: Span, what: impl Into<String>) -> Diagnostic {
        self.related.push((span, what.into()));
        self
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// The form of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// With source lines.
    Source {
        /// With terminal colours.
        colour: bool,
    },
    /// `file:line: error: message`.
    Plain,
    /// One JSON object per line.
    Json,
}

/// The text of one diagnostic, with a newline at its end. `originals` may be shared by all diagnostics of a unit.
pub fn render(diagnostic: &Diagnostic, source: &Source, originals: &mut Originals, form: Form) -> String {
    match form {
        Form::Plain => plain(diagnostic, source),
        Form::Json => json(diagnostic, source, originals),
        Form::Source { colour } => with_source(diagnostic, source, originals, colour),
    }
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn plain(diagnostic: &Diagnostic, source: &Source) -> String {
    let place = source.place(diagnostic.span.start);
    let mut text =
        format!("{}:{}: {}: {}", place.file, place.line, severity_word(diagnostic.severity), diagnostic.message);
    for (span, what) in &diagnostic.related {
        let place = source.place(span.start);
        let _ = write!(text, "; {what} ({}:{})", place.file, place.line);
    }
    text.push('\n');
    text
}

fn json(diagnostic: &Diagnostic, source: &Source, originals: &mut Originals) -> String {
    let mut at = |span: Span| {
        let quote = originals.quote(source, span);
        let mut end = quote.columns.end + 1;
        let end_place = source.place(span.end.max(span.start));
        if end_place.line != quote.line {
            end = end_place.column as usize;
        }
        format!(
            "\"file\":{},\"line\":{},\"column\":{},\"end_line\":{},\"end_column\":{end}",
            quoted(&quote.file),
            quote.line,
            quote.columns.start + 1,
            end_place.line
        )
    };
    let primary = at(diagnostic.span);
    let related: Vec<String> = diagnostic
        .related
        .iter()
        .map(|(span, what)| format!("{{{},\"message\":{}}}", at(*span), quoted(what)))
        .collect();
    format!(
        "{{\"severity\":\"{}\",\"code\":\"{}\",{},\"message\":{},\"related\":[{}],\"help\":{}}}\n",
        severity_word(diagnostic.severity),
        diagnostic.code.number(),
        primary,
        quoted(&diagnostic.message),
        related.join(","),
        diagnostic.help.as_deref().map_or("null".to_owned(), quoted)
    )
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if (control as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// A mark in a quoted line.
struct Mark<'a> {
    quote: Quote,
    what: &'a str,
    kind: AnnotationKind,
}

/// Places of one file are shown together, in the order of its lines.
fn with_source(diagnostic: &Diagnostic, source: &Source, originals: &mut Originals, colour: bool) -> String {
    let primary = std::iter::once((diagnostic.span, "", AnnotationKind::Primary));
    let related = diagnostic.related.iter().map(|(span, what)| (*span, what.as_str(), AnnotationKind::Context));
    let mut groups: Vec<Vec<Mark<'_>>> = Vec::new();
    for (span, what, kind) in primary.chain(related) {
        let mark = Mark { quote: originals.quote(source, span), what, kind };
        match groups.iter_mut().find(|group| group[0].quote.file == mark.quote.file) {
            Some(group) => group.push(mark),
            None => groups.push(vec![mark]),
        }
    }
    let texts: Vec<Text> = groups.iter().map(|group| Text::of(group, originals)).collect();
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let snippets = groups.iter().zip(&texts).map(|(group, text)| {
        let annotations = group.iter().map(|mark| {
            let start = text.offset(mark.quote.line);
            let annotation = mark.kind.span(start + mark.quote.columns.start..start + mark.quote.columns.end);
            if mark.what.is_empty() { annotation } else { annotation.label(mark.what) }
        });
        Snippet::source(text.lines.as_str())
            .line_start(text.first as usize)
            .path(group[0].quote.file.as_str())
            .annotations(annotations)
    });
    let mut report = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.number()).elements(snippets);
    if let Some(help) = &diagnostic.help {
        report = report.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    format!("{}\n", renderer.render(&[report]))
}

/// The lines of a file from the first to the last that a message marks.
struct Text {
    lines: String,
    first: u32,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl Text {
    fn of(marks: &[Mark<'_>], originals: &mut Originals) -> Text {
        let numbers = || marks.iter().map(|mark| mark.quote.line);
        let (first, last) = (numbers().min().unwrap_or(1), numbers().max().unwrap_or(1));
        let mut text = Text { lines: String::new(), first, starts: Vec::new() };
        for number in first..=last {
            text.starts.push(text.lines.len());
            let marked = marks.iter().find(|mark| mark.quote.line == number).map(|mark| mark.quote.text.as_str());
            let line = marked.or_else(|| originals.line(&marks[0].quote.file, number)).unwrap_or_default();
            text.lines.push_str(line);
            text.lines.push('\n');
        }
        text
    }

    fn offset(&self, line: u32) -> usize {
        self.starts[(line - self.first) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Source, Diagnostic) {
        let source = Source::new("a.cyc", "int x;\nchar y = \"\\\";\n".to_owned());
        let diagnostic = Diagnostic::error(Code::Redeclared, Span { start: 12, end: 13 }, "the name \"y\" is used")
            .with(Span { start: 4, end: 5 }, "first declared here")
            .help("choose another");
        (source, diagnostic)
    }

    #[test]
    fn plain_form_has_file_line_and_message_on_one_line() {
        let (source, diagnostic) = sample();
        let text = render(&diagnostic, &source, &mut Originals::default(), Form::Plain);
        assert_eq!(text, "a.cyc:2: error: the name \"y\" is used; first declared here (a.cyc:1)\n");
    }

    #[test]
    fn source_form_shows_both_lines_and_the_code() {
        let (source, diagnostic) = sample();
        let text = render(&diagnostic, &source, &mut Originals::default(), Form::Source { colour: false });
        for expected in ["E0101", "int x;", "char y", "first declared here", "choose another"] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
    }

    #[test]
    fn json_form_escapes_quotes() {
        let (source, diagnostic) = sample();
        let text = render(&diagnostic, &source, &mut Originals::default(), Form::Json);
        assert!(text.contains(r#""message":"the name \"y\" is used""#), "{text}");
        assert!(text.contains(r#""line":2,"column":6"#), "{text}");
    }
}

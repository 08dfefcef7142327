//! A text through the parser and the checker, and what they say about it.

use ebb_cyclone::check::{Dialect, check};
use ebb_cyclone::diagnostics::{Diagnostic, Severity};
use ebb_cyclone::driver::parse_text;
use ebb_cyclone::source::Source;
use ebb_cyclone::tree::Program;

/// Messages about a text. Lines are counted from after the declarations that stood before it.
pub struct Messages {
    source: Source,
    pub diagnostics: Vec<Diagnostic>,
    lines_before: u32,
}

/// The text, which must be well-formed, after the declarations that a test file's texts share.
#[track_caller]
pub fn checked(declarations: &str, text: &str) -> (Program, Messages) {
    let mut unit = parse_text("test.cyc", format!("{declarations}{text}"));
    assert!(unit.diagnostics.is_empty(), "syntax: {:?} in\n{text}", unit.diagnostics);
    let program = check(&unit.source, &unit.items, Dialect::One.into(), &mut unit.diagnostics);
    let lines_before = declarations.lines().count() as u32;
    (program, Messages { source: unit.source, diagnostics: unit.diagnostics, lines_before })
}

impl Messages {
    /// `line: code: message` of each message of this severity.
    pub fn of(&self, severity: Severity) -> Vec<String> {
        let of_severity = self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity);
        of_severity
            .map(|diagnostic| {
                let line = self.source.place(diagnostic.span.start).line - self.lines_before;
                format!("{line}: {}: {}", diagnostic.code.number(), diagnostic.message)
            })
            .collect()
    }

    #[track_caller]
    pub fn expect_no_error(&self, text: &str) {
        let found = self.of(Severity::Error);
        assert!(found.is_empty(), "{found:#?} in\n{text}");
    }

    /// Exactly one error, which begins with `line: code` and has this in its message.
    #[track_caller]
    pub fn expect_error(&self, place: &str, part: &str, text: &str) {
        let found = self.of(Severity::Error);
        let fits = found.len() == 1 && found[0].starts_with(place) && found[0].contains(part);
        assert!(fits, "expected {place}: .. {part}, found {found:#?} in\n{text}");
    }
}

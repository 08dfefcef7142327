//! The text that is written: tokens in their lines, and markers where the lines do not follow each other.

use super::token::{is_name_part, is_name_start};

/// More lines without text than this are passed over by a marker.
const MOST_NEWLINES: u32 = 8;

/// The text so far.
#[derive(Default)]
pub struct Output {
    pub text: String,
    /// The line that the last line of the text stands for.
    line: u32,
    name: String,
    is_system: bool,
    /// What comes next was not beside what is written in any file.
    is_boundary: bool,
}

impl Output {
    /// Says which line of which file comes next.
    pub fn marker(&mut self, line: u32, name: &str, flag: &str, is_system: bool) {
        self.end_line();
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        let system = if is_system { " 3" } else { "" };
        self.text.push_str(&format!("# {line} \"{quoted}\"{flag}{system}\n"));
        if self.name != name {
            name.clone_into(&mut self.name);
        }
        (self.line, self.is_system, self.is_boundary) = (line, is_system, false);
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// What follows stands in this line.
    pub fn begin_line(&mut self, line: u32) {
        match line.checked_sub(self.line) {
            Some(newlines) if newlines <= MOST_NEWLINES => {
                for _ in 0..newlines {
                    self.text.push('\n');
                }
                self.line = line;
            }
            _ => {
                let name = std::mem::take(&mut self.name);
                self.marker(line, &name, "", self.is_system);
                self.name = name;
            }
        }
        self.is_boundary = false;
    }

    /// The rest of the line stands in this one: there were newlines in a comment, or among arguments.
    pub fn go_on_in(&mut self, line: u32) {
        if line > self.line {
            let is_boundary = self.is_boundary;
            self.begin_line(line);
            self.is_boundary = is_boundary;
        }
    }

    pub fn newline(&mut self) {
        self.text.push('\n');
        self.line = self.line.saturating_add(1);
        self.is_boundary = false;
    }

    /// Ends the line that is being written, if there is text in it.
    pub fn end_piece(&mut self) {
        if !self.text.ends_with('\n') {
            self.newline();
        }
    }

    /// A line of its own, such as a `#pragma`.
    pub fn whole_line(&mut self, line: u32, text: &str) {
        self.begin_line(line);
        self.text.push_str(text);
        self.newline();
    }

    /// What comes next and what is written may not become one.
    pub fn boundary(&mut self) {
        self.is_boundary = true;
    }

    /// Text as a file has it.
    pub fn copy(&mut self, text: &str) {
        self.piece(text, false);
    }

    /// One token.
    pub fn piece(&mut self, text: &str, is_spaced: bool) {
        if text.is_empty() {
            return;
        }
        if is_spaced && !self.text.ends_with([' ', '\n']) || self.is_boundary && meet(&self.text, text) {
            self.text.push(' ');
        }
        self.is_boundary = false;
        self.text.push_str(text);
    }
}

/// Whether the end of one text and the beginning of another would be read as something else without a blank between them.
fn meet(before: &str, after: &str) -> bool {
    let (Some(last), Some(&first)) = (before.as_bytes().last(), after.as_bytes().first()) else { return false };
    let is_number = || {
        let start = before.bytes().rposition(|byte| !is_name_part(byte) && byte != b'.').map_or(0, |at| at + 1);
        before.as_bytes().get(start).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    match (*last, first) {
        (last, first) if is_name_part(last) => {
            is_name_part(first)
                || matches!(first, b'"' | b'\'') && !is_number()
                || matches!(first, b'.' | b'+' | b'-' | b'\'') && is_number()
        }
        (b'.', first) => {
            first == b'.'
                || first.is_ascii_digit()
                || is_number() && (is_name_start(first) || matches!(first, b'+' | b'-'))
        }
        (b'+', first) => matches!(first, b'+' | b'='),
        (b'-', first) => matches!(first, b'-' | b'=' | b'>'),
        (b'/', first) => matches!(first, b'/' | b'*' | b'='),
        (b'<', first) => matches!(first, b'<' | b'=' | b':' | b'%' | b'>'),
        (b'>', first) => matches!(first, b'>' | b'='),
        (b'&', first) => matches!(first, b'&' | b'='),
        (b'|', first) => matches!(first, b'|' | b'='),
        (b'*' | b'=' | b'!' | b'^', first) => first == b'=',
        (b'%', first) => matches!(first, b'=' | b':' | b'>'),
        (b':', first) => matches!(first, b':' | b'>' | b'='),
        (b'#', first) => first == b'#',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_become_one_is_kept_apart() {
        for (before, after) in
            [("x", "y"), ("1", ".5"), ("x", "\"s\""), ("+", "+"), ("-", ">"), ("1e", "+"), ("::", ":"), (":", "=")]
        {
            assert!(meet(before, after), "{before} {after}");
        }
        for (before, after) in [("x", "("), ("`", "a"), ("\\", "U"), ("@", "fat"), (")", "x"), ("x", "+"), ("+", "-")] {
            assert!(!meet(before, after), "{before} {after}");
        }
    }

    #[test]
    fn lines_far_away_are_marked() {
        let mut output = Output::default();
        output.marker(1, "a\"b", "", false);
        output.begin_line(3);
        output.copy("x");
        output.newline();
        output.begin_line(30);
        output.copy("y");
        assert_eq!(output.text, "# 1 \"a\\\"b\"\n\n\nx\n# 30 \"a\\\"b\"\ny");
    }
}

//! Where a piece of preprocessed text stands in the file that the user wrote.
//!
//! The preprocessor keeps lines, but not what is in them: macros are expanded, comments go, spaces shrink. A message has to show the
//! line as it was written. The two forms of a line are aligned token by token (a longest common subsequence); a token that
//! is in the written line too stands where it stands there, and one that a macro made stands for what lies between its neighbours.

use crate::hash::HashMap;
use crate::source::{Source, Span, text_of};
use std::ops::Range;

/// Lines with more tokens than this, multiplied, are not aligned: they were not written by a person.
const MOST_PAIRS: usize = 1 << 20;

/// The files that messages quote, read when they are needed.
#[derive(Debug, Default)]
pub struct Originals {
    files: HashMap<String, Option<Written>>,
}

/// A file as it was written.
#[derive(Debug)]
struct Written {
    text: String,
    /// Where its lines begin.
    starts: Vec<usize>,
}

impl Written {
    fn new(text: String) -> Written {
        let mut end = 0;
        let mut starts = Vec::new();
        for line in text.split_inclusive('\n') {
            starts.push(end);
            end += line.len();
        }
        Written { text, starts }
    }

    /// A line without its end, counted from 0.
    fn line(&self, number: usize) -> Option<&str> {
        self.text[*self.starts.get(number)?..].lines().next()
    }
}

/// A piece of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Quote {
    /// The file, as the preprocessor named it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// The line without its end.
    pub text: String,
    /// The piece, in bytes of the line.
    pub columns: Range<usize>,
}

impl Originals {
    /// The piece that a span begins with, up to the end of its first line.
    pub fn quote(&mut self, source: &Source, span: Span) -> Quote {
        let from = source.line_start(span.start as usize);
        let to = source.line_end(span.start as usize);
        let place = source.place(span.start);
        let expanded = &source.text[from..to];
        let start = span.start as usize - from;
        let end = (span.end as usize).min(to).max(span.start as usize) - from;
        let (text, columns) = match self.line(place.file, place.line) {
            Some(written) => (written.to_owned(), align(expanded, written, start..end)),
            None => (expanded.to_owned(), start..end),
        };
        Quote { file: place.file.to_owned(), line: place.line, text, columns }
    }

    /// The byte of the preprocessed text that a byte of a written line has become, if anything has.
    pub fn offset(&mut self, source: &Source, file: &str, line: u32, column: usize) -> Option<u32> {
        let from = source.offset_of_line(file, line)?;
        let expanded = &source.text[from..source.line_end(from)];
        let written = self.line(file, line)?;
        let columns = align(written, expanded, column..column + 1);
        Some((from + columns.start.min(expanded.len())) as u32)
    }

    /// The text of a file that may not be what is saved.
    pub fn insert(&mut self, file: &str, text: &str) {
        self.files.insert(file.to_owned(), Some(Written::new(text.to_owned())));
    }

    /// Line `line` of a file, if it can be read.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        if !self.files.contains_key(file) {
            let written = std::fs::read(file).ok().map(|bytes| Written::new(text_of(bytes)));
            self.files.insert(file.to_owned(), written);
        }
        self.files.get(file)?.as_ref()?.line((line as usize).checked_sub(1)?)
    }
}

/// The place in `written` of what is at `columns` in `expanded`.
fn align(expanded: &str, written: &str, columns: Range<usize>) -> Range<usize> {
    if expanded == written {
        return columns;
    }
    let (have, want) = (tokens(expanded), tokens(written));
    if have.len() * want.len() > MOST_PAIRS {
        return 0..written.len();
    }
    let partners = partners(expanded, &have, written, &want);
    // Of the first token that is in the piece, or after it, and of the last one.
    let first = have.iter().position(|token| token.end > columns.start).unwrap_or(have.len());
    let last = have.iter().rposition(|token| token.start < columns.end.max(columns.start + 1)).unwrap_or(0).max(first);
    let start = match partners.get(first) {
        Some(Some(partner)) => want[*partner].start + columns.start.saturating_sub(have[first].start),
        // After the partner of what stands before it.
        _ => {
            let before = partners[..first.min(partners.len())].iter().rev().flatten().next();
            let next = before.map_or(0, |partner| partner + 1);
            want.get(next).map_or(written.len(), |token| token.start)
        }
    };
    let end = match partners.get(last) {
        Some(Some(partner)) => want[*partner].end,
        _ => {
            let after = partners.get(last + 1..).and_then(|rest| rest.iter().flatten().next());
            let next = after.copied().unwrap_or(want.len());
            next.checked_sub(1).map_or(written.len(), |token| want[token].end)
        }
    };
    if columns.is_empty() { start..start } else { start..end.max(start) }
}

/// For each token of `have` the one in `want` that it is.
fn partners(a: &str, have: &[Range<usize>], b: &str, want: &[Range<usize>]) -> Vec<Option<usize>> {
    let same = |i: usize, j: usize| a[have[i].clone()] == b[want[j].clone()];
    let width = want.len() + 1;
    let mut longest = vec![0u32; (have.len() + 1) * width];
    for i in (0..have.len()).rev() {
        for j in (0..want.len()).rev() {
            longest[i * width + j] = if same(i, j) {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let mut out = vec![None; have.len()];
    let (mut i, mut j) = (0, 0);
    while i < have.len() && j < want.len() {
        if same(i, j) {
            out[i] = Some(j);
            i += 1;
            j += 1;
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// Words, numbers, literals and single characters; no spaces, no comments.
fn tokens(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest[0] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with(b"//") => break,
            b'/' if rest.starts_with(b"/*") => {
                at = line[at + 2..].find("*/").map_or(bytes.len(), |end| at + 2 + end + 2);
                continue;
            }
            quote @ (b'"' | b'\'') => literal(rest, quote),
            byte if is_word(byte) => rest.iter().take_while(|&&byte| is_word(byte)).count(),
            _ => 1,
        };
        out.push(at..at + length);
        at += length;
    }
    out
}

/// How long the literal is that begins with a quote.
fn literal(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    let end = (at + 1).min(bytes.len());
    // Not inside of a character that takes several bytes.
    (end..bytes.len()).find(|&end| bytes[end] & 0xc0 != 0x80).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of `written` corresponds to the first `piece` in `expanded`.
    fn found<'a>(expanded: &str, piece: &str, written: &'a str) -> &'a str {
        let start = expanded.find(piece).unwrap();
        &written[align(expanded, written, start..start + piece.len())]
    }

    #[test]
    fn what_was_written_is_found_beside_macros_comments_and_spaces() {
        let written = "  if (c)   p = unew 2; /* two */ q = MAX(1, x);  // done";
        let expanded = "  if (c) p = qnew (Core::unique_qual) 2; q = ((1) > (x) ? (1) : (x));";
        assert_eq!(found(expanded, "p", written), "p");
        assert_eq!(found(expanded, "2", written), "2");
        assert_eq!(found(expanded, "qnew (Core::unique_qual)", written), "unew");
        assert_eq!(found(expanded, "qnew (Core::unique_qual) 2", written), "unew 2");
        assert_eq!(found(expanded, "q =", written), "q =");
        assert_eq!(found(expanded, "((1) > (x) ? (1) : (x))", written), "MAX(1, x)");
    }

    #[test]
    fn literals_and_other_alphabets_are_tokens() {
        assert_eq!(found("f(\"a // b\", x);", "x", "f( \"a // b\",  x );"), "x");
        assert_eq!(found("h = \"\u{e9}\\\"\" ; k", "k", "h = \"\u{e9}\\\"\";   k"), "k");
        assert_eq!(tokens("'\\'").last(), Some(&(0..3)), "a literal without an end goes to the end of the line");
        assert_eq!(tokens("\"\\\u{e9}").last(), Some(&(0..4)));
    }

    #[test]
    fn any_piece_of_any_line_lies_in_the_written_line() {
        let lines = ["", "x", "f(x, y) + \"s\"", "/* c */ a", "\u{e9} `a", "F(1) 'c"];
        for expanded in lines {
            for written in lines {
                for start in 0..=expanded.len() {
                    for end in start..=expanded.len() {
                        let columns = align(expanded, written, start..end);
                        assert!(
                            columns.start <= columns.end && columns.end <= written.len(),
                            "{expanded:?} {written:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_quoted_as_the_preprocessor_left_it() {
        let source = Source::new("no such file", "int x;\nint y;\n".to_owned());
        let quote = Originals::default().quote(&source, Span { start: 11, end: 12 });
        assert_eq!((quote.line, quote.text.as_str(), quote.columns), (2, "int y;", 4..5));
    }
}

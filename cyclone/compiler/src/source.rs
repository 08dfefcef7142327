//! Source text, and where each byte of it came from.
//!
//! The compiler reads what the preprocessor makes as one buffer. A [`Span`] is a range of bytes in that buffer; the line
//! markers in it (`# 12 "file.cyc"`) say which line of which file the text after them stands for, and are collected by the
//! lexer into [`Source::markers`], in order. Everything else in the compiler keeps spans only, and asks for a [`Place`]
//! when something is to be shown to a person.

use std::sync::OnceLock;

/// A range of bytes in the preprocessed text. Files past 4 GiB are refused by the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// From `offset` on the text is line `line` of `file`, until the next marker.
#[derive(Clone, Copy, Debug)]
pub struct Marker {
    /// The first byte after the line that holds the marker.
    pub offset: u32,
    /// An index into [`Source::files`].
    pub file: u32,
    /// Counted from 1.
    pub line: u32,
}

/// One preprocessed translation unit.
#[derive(Debug)]
pub struct Source {
    /// The preprocessed text.
    pub text: String,
    /// The names of all files it was made from; the first is the one that was given to the compiler.
    pub files: Vec<String>,
    /// Ordered by offset; the first has offset 0.
    pub markers: Vec<Marker>,
    /// Where lines end, from when somebody first asks for a place.
    newlines: OnceLock<Vec<u32>>,
}

/// Where a byte came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file's name as the preprocessor gave it.
    pub file: &'a str,
    /// Counted from 1.
    pub line: u32,
    /// In bytes, counted from 1; inside a macro's expansion it is the column in the expanded line.
    pub column: u32,
}

/// Text that is not UTF-8 (old sources often are Latin-1, in comments) has its strange bytes replaced.
pub fn text_of(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

impl Source {
    /// A text without a name's markers yet: all of it comes from `file`, line 1 and on.
    pub fn new(file: &str, text: String) -> Source {
        let markers = vec![Marker { offset: 0, file: 0, line: 1 }];
        Source { text, files: vec![file.to_owned()], markers, newlines: OnceLock::new() }
    }

    /// Notes a line marker that the lexer met.
    pub fn add_marker(&mut self, offset: u32, file: &str, line: u32) {
        let file = match self.files.iter().position(|known| known == file) {
            Some(index) => index,
            None => {
                self.files.push(file.to_owned());
                self.files.len() - 1
            }
        };
        self.markers.push(Marker { offset, file: file as u32, line });
    }

    /// The place of byte `offset`.
    pub fn place(&self, offset: u32) -> Place<'_> {
        let offset = (offset as usize).min(self.text.len());
        let next = self.markers.partition_point(|marker| marker.offset as usize <= offset);
        let marker = self.markers[next.saturating_sub(1)];
        let newlines = self.newlines.get_or_init(|| self.text.match_indices('\n').map(|(at, _)| at as u32).collect());
        let before = |offset: usize| newlines.partition_point(|&newline| (newline as usize) < offset);
        let from = (marker.offset as usize).min(offset);
        let line_start = before(offset).checked_sub(1).map_or(0, |last| newlines[last] as usize + 1);
        Place {
            file: &self.files[marker.file as usize],
            // A marker may say that it is the last line there can be.
            line: marker.line.saturating_add((before(offset) - before(from)) as u32),
            column: (offset - line_start) as u32 + 1,
        }
    }

    /// The offset of the first byte of a line of a file; the first one that stands for it, if there are several.
    pub fn offset_of_line(&self, file: &str, line: u32) -> Option<usize> {
        self.markers.iter().enumerate().find_map(|(at, marker)| {
            if self.files[marker.file as usize] != file || marker.line > line {
                return None;
            }
            let end = self.markers.get(at + 1).map_or(self.text.len(), |next| next.offset as usize);
            let text = &self.text[(marker.offset as usize).min(end)..end];
            let before = (line - marker.line) as usize;
            let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
            let is_there = text.split_inclusive('\n').nth(before).is_some_and(|line| !line.starts_with('#'));
            is_there.then_some(marker.offset as usize + start)
        })
    }

    /// The offset of the first byte of the line that holds `offset`.
    pub fn line_start(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1)
    }

    /// The offset of the end (without the newline) of the line that holds `offset`.
    pub fn line_end(&self, offset: usize) -> usize {
        let rest = &self.text.as_bytes()[offset..];
        offset + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_after_a_marker_counts_from_the_marker() {
        let mut source = Source::new("a.cyc", "x\n# 7 \"b.h\"\nyy\n z\n".to_owned());
        let after = source.text.find("yy").unwrap() as u32;
        source.add_marker(after, "b.h", 7);
        assert_eq!(source.place(0), Place { file: "a.cyc", line: 1, column: 1 });
        assert_eq!(source.place(after + 1), Place { file: "b.h", line: 7, column: 2 });
        assert_eq!(source.place(after + 4), Place { file: "b.h", line: 8, column: 2 });
    }

    #[test]
    fn lines_after_the_last_possible_one_have_its_number() {
        let mut source = Source::new("a.cyc", "x\ny\n".to_owned());
        source.add_marker(0, "a.cyc", u32::MAX);
        assert_eq!(source.place(2), Place { file: "a.cyc", line: u32::MAX, column: 1 });
    }
}

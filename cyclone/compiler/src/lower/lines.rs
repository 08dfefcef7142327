//! Where a byte of the source is, quickly: each statement asks.

use super::LineInfo;
use crate::source::{Source, Span};
use std::fmt::Write;

/// The lines of the source, and where the output is.
pub struct Lines<'p> {
    source: &'p Source,
    info: LineInfo,
    newlines: Vec<u32>,
    /// File and line that a C compiler takes the present output line for.
    at: (u32, u32),
}

impl<'p> Lines<'p> {
    pub fn new(source: &'p Source, info: LineInfo) -> Lines<'p> {
        let newlines = match info {
            LineInfo::Source => {
                source.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32).collect()
            }
            LineInfo::None => Vec::new(),
        };
        Lines { source, info, newlines, at: (u32::MAX, 0) }
    }

    /// Begins a new line of output for what stands at `span`.
    pub fn mark(&mut self, out: &mut String, span: Span) {
        if self.info == LineInfo::None {
            out.push('\n');
            return;
        }
        let offset = span.start;
        let next = self.source.markers.partition_point(|marker| marker.offset <= offset);
        let marker = self.source.markers[next.saturating_sub(1)];
        let newlines_before = |offset: u32| self.newlines.partition_point(|&newline| newline < offset) as u32;
        let line = marker.line + newlines_before(offset) - newlines_before(marker.offset.min(offset));
        if (marker.file, line) == self.at {
            out.push(' ');
            return;
        }
        if (marker.file, line) == (self.at.0, self.at.1 + 1) {
            out.push('\n');
        } else if marker.file == self.at.0 {
            put!(*out, "\n#line ", line, "\n");
        } else {
            let name = &self.source.files[marker.file as usize];
            let _ = write!(out, "\n#line {line} \"{}\"\n", name.replace('\\', "\\\\").replace('"', "\\\""));
        }
        self.at = (marker.file, line);
    }

    /// Forgets where the output is: text from elsewhere follows.
    pub fn forget(&mut self) {
        self.at = (u32::MAX, 0);
    }
}

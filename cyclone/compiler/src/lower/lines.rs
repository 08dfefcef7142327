//! Where a byte of the source is, quickly: each statement asks.

use super::LineInfo;
use crate::source::{Source, Span};
use std::fmt::Write;

/// The lines of the source, and where the output is.
pub struct Lines<'p> {
    source: &'p Source,
    info: LineInfo,
    newlines: Vec<u32>,
    /// How many of them are before each marker.
    before_markers: Vec<u32>,
    /// How many of them are before the place that was asked for last: the next one is mostly near it.
    near: usize,
    /// File and line that a C compiler takes the present output line for.
    at: (u32, u32),
}

impl<'p> Lines<'p> {
    pub fn new(source: &'p Source, info: LineInfo) -> Lines<'p> {
        let newlines = match info {
            LineInfo::Source => source.text.match_indices('\n').map(|(at, _)| at as u32).collect(),
            LineInfo::None => Vec::new(),
        };
        let mut lines = Lines { source, info, newlines, before_markers: Vec::new(), near: 0, at: (u32::MAX, 0) };
        for marker in &source.markers {
            let before = lines.newlines_before(marker.offset);
            lines.before_markers.push(before);
        }
        lines
    }

    fn newlines_before(&mut self, offset: u32) -> u32 {
        const NEAR: usize = 16;
        let near = &self.newlines[self.near..];
        let is_after = self.near == 0 || self.newlines[self.near - 1] < offset;
        self.near = match near.iter().take(NEAR).position(|&newline| newline >= offset) {
            Some(ahead) if is_after => self.near + ahead,
            _ => self.newlines.partition_point(|&newline| newline < offset),
        };
        self.near as u32
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
        let before_marker = self.before_markers[next.saturating_sub(1)];
        let line = marker.line + self.newlines_before(offset) - before_marker;
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

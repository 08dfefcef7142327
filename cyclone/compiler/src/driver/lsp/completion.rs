//! What may be written at a place: members after `.` and `->`, else names.
//!
//! The text is in the middle of a change, and so does not parse where the name is missing. Members are found by analysing the text
//! without the operator, or with nothing but what stands before the operator as the statement: what then ends at that place is
//! what has the members.

use super::analysis::{Analysis, Depth};
use super::places;
use crate::driver::options::Options;
use crate::lex::Tok;
use lsp_types::{CompletionItem, CompletionItemKind, Position};
use std::collections::BTreeMap;
use std::path::Path;

/// More names than this are not sent: the editor asks again when there are more letters.
const MOST_NAMES: usize = 1_000;

/// A thing that has a name, and its type as text.
pub type Offer = (String, CompletionItemKind, String);

/// What may stand at a position of a text.
pub fn complete(path: &Path, text: &str, position: Position, options: &Options) -> Vec<CompletionItem> {
    let Some(line_start) = line_start(text, position.line) else { return Vec::new() };
    let line = text[line_start..].lines().next().unwrap_or_default();
    let cursor = places::byte_of(line, position.character);
    let before = &line[..cursor];
    let word = before.bytes().rev().take_while(|&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
    let (front, prefix) = before.split_at(cursor - word);
    let operator = ["->", "."].into_iter().find(|operator| front.trim_end().ends_with(operator));
    let offers = match operator {
        Some(operator) => {
            let base = front.trim_end().trim_end_matches(operator).trim_end();
            let (from, to) = (line_start + base.len(), line_start + cursor);
            let at = places::position(position.line + 1, line, base.len().saturating_sub(1));
            let alone = alone(&text[..from]);
            let whole = &text[..from];
            // Without the name a statement may have lost its end, too.
            [(whole, ""), (whole, ";"), (&*alone, ";")].into_iter().find_map(|(before, end)| {
                let without = [before, end, &text[to..]].concat();
                let members = Analysis::of(path, &without, options, Depth::Types).members(at);
                (!members.is_empty()).then_some(members)
            })
        }
        None => {
            let scope = front.strip_suffix("::").map(|front| {
                let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
                let length = front.bytes().rev().take_while(belongs).count();
                &front[front.len() - length..]
            });
            let mut names = Analysis::of(path, text, options, Depth::Types).names(scope, position);
            if scope.is_none() {
                names.extend(Tok::words().map(|word| (word.to_owned(), CompletionItemKind::KEYWORD, String::new())));
            }
            Some(names)
        }
    };
    let mut sorted = BTreeMap::new();
    for (name, kind, detail) in offers.unwrap_or_default() {
        if name.starts_with(prefix) && sorted.len() < MOST_NAMES {
            sorted.entry(name).or_insert((kind, detail));
        }
    }
    let item = |(label, (kind, detail)): (String, (CompletionItemKind, String))| CompletionItem {
        label,
        kind: Some(kind),
        detail: (!detail.is_empty()).then_some(detail),
        ..CompletionItem::default()
    };
    sorted.into_iter().map(item).collect()
}

/// The text with blanks in the place of what comes before the last operand in its statement.
pub fn alone(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut start = bytes.len();
    let mut depth = 0;
    while start > 0 {
        let byte = bytes[start - 1];
        let belongs =
            byte.is_ascii_alphanumeric() || b"_.:".contains(&byte) || byte == b'>' && text[..start].ends_with("->");
        match byte {
            b')' | b']' => depth += 1,
            b'(' | b'[' if depth > 0 => depth -= 1,
            b'-' if text[start..].starts_with('>') => {}
            _ if belongs || depth > 0 => {}
            _ => break,
        }
        start -= 1;
    }
    let statement = text[..start].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let blank =
        text[statement..start].chars().map(|c| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) });
    [&text[..statement], &*blank.collect::<String>(), &text[start..]].concat()
}

/// Where a line begins that is counted from 0.
fn line_start(text: &str, line: u32) -> Option<usize> {
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some(start)
    });
    lines.nth(line as usize).or_else(|| (line as usize == text.lines().count()).then_some(text.len()))
}

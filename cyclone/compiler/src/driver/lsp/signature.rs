//! Which parameter of which function is being written.
//!
//! The call's arguments are in the middle of a change. The function is what ends before the parenthesis: it is looked for in the text as it is, and, where
//! that does not parse, in the text with nothing but the function in the place of the call.

use super::analysis::{Analysis, Depth};
use super::completion::alone;
use super::places;
use crate::driver::options::Options;
use crate::lex::Tok;
use lsp_types::{ParameterInformation, ParameterLabel, Position, SignatureHelp, SignatureInformation};
use std::path::Path;

/// How a function is called.
pub struct Signature {
    /// With the names of parameters, as far as they have one.
    pub label: String,
    /// Where each parameter stands in it, in bytes.
    pub parameters: Vec<std::ops::Range<usize>>,
    /// The last one stands for all that follow.
    pub takes_more: bool,
}

/// The function that is being called around a position of a text.
pub fn signature(path: &Path, text: &str, position: Position, options: &Options) -> Option<SignatureHelp> {
    let line_start = text.split_inclusive('\n').take(position.line as usize).map(str::len).sum::<usize>();
    let line = text.get(line_start..)?.lines().next().unwrap_or_default();
    let cursor = line_start + places::byte_of(line, position.character);
    let (open, argument) = open_call(&text[..cursor])?;
    let callee = text[..open].trim_end();
    let word_start = callee.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    if Tok::words().any(|word| word == &callee[word_start..])
        || !callee.ends_with(|c: char| c.is_ascii_alphanumeric() || "_)]".contains(c))
    {
        return None;
    }
    let rest = &text[cursor..];
    let only = alone(callee);
    let texts = [text.to_owned(), [callee, ";", rest].concat(), [&only, ";", rest].concat()];
    let end = place_of(callee);
    let signature = texts.iter().find_map(|text| Analysis::of(path, text, options, Depth::Types).signature(end))?;
    let last = signature.parameters.len().checked_sub(1);
    let active = if signature.takes_more { last.map(|last| argument.min(last)) } else { Some(argument) };
    let units = |byte: usize| signature.label[..byte].encode_utf16().count() as u32;
    let parameters = signature.parameters.iter().map(|range| ParameterInformation {
        label: ParameterLabel::LabelOffsets([units(range.start), units(range.end)]),
        documentation: None,
    });
    let information = SignatureInformation {
        parameters: Some(parameters.collect()),
        label: signature.label.clone(),
        documentation: None,
        active_parameter: None,
    };
    Some(SignatureHelp {
        signatures: vec![information],
        active_signature: Some(0),
        active_parameter: active.map(|active| active as u32),
    })
}

/// The place of the last byte.
fn place_of(text: &str) -> Position {
    let start = text.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.matches('\n').count() as u32;
    places::position(line + 1, &text[start..], text.len().saturating_sub(start + 1))
}

/// The parenthesis that is open at the end of a text, and how many commas follow it.
fn open_call(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut open: Vec<(u8, usize, usize)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut length = 1;
        match rest[0] {
            b'/' if rest.starts_with(b"//") => {
                length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            }
            b'/' if rest.starts_with(b"/*") => {
                length = text.get(at + 2..)?.find("*/").map_or(rest.len(), |end| end + 4);
            }
            quote @ (b'"' | b'\'') => {
                while length < rest.len() && rest[length] != quote && rest[length] != b'\n' {
                    length += if rest[length] == b'\\' { 2 } else { 1 };
                }
                length += 1;
            }
            bracket @ (b'(' | b'[' | b'{') => open.push((bracket, at, 0)),
            b')' | b']' | b'}' => {
                open.pop();
            }
            b',' => {
                if let Some((_, _, commas)) = open.last_mut() {
                    *commas += 1;
                }
            }
            _ => {}
        }
        at += length;
    }
    let around = open.iter().rev().find(|(bracket, ..)| *bracket != b'[')?;
    (around.0 == b'(').then_some((around.1, around.2))
}

#[cfg(test)]
mod tests {
    use super::open_call;

    #[test]
    fn the_call_around_the_end_is_found() {
        assert_eq!(open_call("f(a, g(b, c), d"), Some((1, 2)));
        assert_eq!(open_call("f(a, g(b"), Some((6, 0)));
        assert_eq!(open_call("f(\"(,\", '(', x[1, "), Some((1, 2)));
        assert_eq!(open_call("f(a) + { /* ( */"), None);
        assert_eq!(open_call("f(\"ä"), Some((1, 0)));
    }
}

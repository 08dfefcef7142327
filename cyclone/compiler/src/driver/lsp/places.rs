//! The protocol's places: files as URIs, columns in UTF-16.

use lsp_types::{Position, Range, Uri};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The file that a URI names, if it is one of this machine.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let encoded = uri.as_str().strip_prefix("file://")?;
    // Between the slashes may stand a host.
    let encoded = &encoded[encoded.find('/')?..];
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// The URI of a file; a relative name is taken from the current directory.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let path = std::path::absolute(path).ok()?;
    let mut text = String::from("file://");
    for &byte in path.to_str()?.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    Uri::from_str(&text).ok()
}

/// The place of a byte in a line, which is counted from 1.
pub fn position(line: u32, text: &str, byte: usize) -> Position {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    Position { line: line.saturating_sub(1), character: before.encode_utf16().count() as u32 }
}

/// The byte of a line that a column means.
pub fn byte_of(text: &str, character: u32) -> usize {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        if units >= character as usize {
            return at;
        }
        units += c.len_utf16();
    }
    text.len()
}

/// Both on one line.
pub fn range(line: u32, text: &str, bytes: std::ops::Range<usize>) -> Range {
    Range { start: position(line, text, bytes.start), end: position(line, text, bytes.end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_accents_comes_back() {
        let path = Path::new("/tmp/zwölf files/a+b.cyc");
        let uri = uri_of(path).expect("it is a name");
        assert_eq!(uri.as_str(), "file:///tmp/zw%C3%B6lf%20files/a%2Bb.cyc");
        assert_eq!(path_of(&uri).as_deref(), Some(path));
    }

    #[test]
    fn columns_count_units_of_utf_16() {
        let line = "ä𝄞x";
        assert_eq!(position(1, line, 6).character, 3);
        assert_eq!(byte_of(line, 3), 6);
        assert_eq!(byte_of(line, 9), 7);
    }
}

//! Preprocessing tokens, and how they are cut out of a file.

use super::include::File;
use super::macros::{NameId, Names};

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A name or keyword.
    Name,
    /// C's preprocessing number.
    Number,
    /// A string or character, with its prefix.
    Literal,
    /// Anything else: a sign of up to three characters.
    Sign,
}

/// A token; its text is among the names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub text: NameId,
    pub kind: Kind,
    /// A blank, comment or newline stands before it.
    pub is_spaced: bool,
    /// The name of a macro that is not expanded any more.
    pub is_final: bool,
    /// Where it meets what is before it, the two may not become one.
    pub is_boundary: bool,
    /// Of the file it was read from.
    pub line: u32,
}

pub fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

pub fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}

/// The signs of several characters.
const SIGNS: [&str; 27] = [
    "%:%:", "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "*=", "/=", "%=",
    "+=", "-=", "&=", "^=", "|=", "##", "<:", ":>", "%:",
];

/// The kind and length of the token that a text, which is not empty, begins with.
pub fn first(text: &str) -> (Kind, usize) {
    let bytes = text.as_bytes();
    let byte = bytes[0];
    if is_name_start(byte) {
        let length = bytes.iter().position(|&byte| !is_name_part(byte)).unwrap_or(bytes.len());
        let is_prefix = matches!(&text[..length], "L" | "u" | "U" | "u8");
        return match bytes.get(length) {
            Some(&quote @ (b'"' | b'\'')) if is_prefix => (Kind::Literal, length + literal(&bytes[length..], quote)),
            _ => (Kind::Name, length),
        };
    }
    if byte.is_ascii_digit() || byte == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit) {
        return (Kind::Number, number(bytes));
    }
    if matches!(byte, b'"' | b'\'') {
        return (Kind::Literal, literal(bytes, byte));
    }
    let sign = SIGNS.iter().find(|sign| text.starts_with(**sign));
    (Kind::Sign, sign.map_or(1, |sign| sign.len()))
}

fn number(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        let is_exponent = matches!(byte, b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P');
        if !is_exponent && byte != b'.' && !is_name_part(byte) {
            break;
        }
        at += 1;
    }
    at
}

/// How long a literal is that begins with a quote; one that does not end has the rest of the line.
fn literal(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    loop {
        match bytes.get(at) {
            None | Some(b'\n') => return at,
            Some(b'\\') if bytes.get(at + 1).is_some_and(|&next| next != b'\n') => {
                at += 2;
                // Not inside of a character that takes several bytes.
                while bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    at += 1;
                }
            }
            Some(&byte) if byte == quote => return at + 1,
            Some(_) => at += 1,
        }
    }
}

/// The tokens of a text without newlines or comments, for what macros paste and what options define.
pub fn all(text: &str, names: &mut Names) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut is_spaced = false;
    while let Some(&byte) = text.as_bytes().get(at) {
        if byte.is_ascii_whitespace() {
            (at, is_spaced) = (at + 1, true);
            continue;
        }
        let (kind, length) = first(&text[at..]);
        let text = names.id(&text[at..at + length]);
        out.push(Token { text, kind, is_spaced, is_final: false, is_boundary: false, line: 0 });
        (at, is_spaced) = (at + length, false);
    }
    out
}

impl File {
    /// The byte some bytes from here.
    pub fn peek(&self, ahead: usize) -> Option<u8> {
        self.text().as_bytes().get(self.at + ahead).copied()
    }

    /// Skips blanks and comments, also those of several lines; true if there were any.
    ///
    /// # Errors
    /// If a comment does not end.
    pub fn skip_blanks(&mut self) -> Result<bool, &'static str> {
        let begin = self.at;
        loop {
            match self.peek(0) {
                Some(b' ' | b'\t' | 0xb | 0xc | b'\r') => self.at += 1,
                Some(b'/') if self.peek(1) == Some(b'/') => self.at = self.line_end(),
                Some(b'/') if self.peek(1) == Some(b'*') => self.skip_comment()?,
                _ => return Ok(self.at > begin),
            }
        }
    }

    /// At a comment that may have several lines.
    pub fn skip_comment(&mut self) -> Result<(), &'static str> {
        let rest = &self.text()[self.at + 2..];
        let length = rest.find("*/").ok_or("a comment does not end")?;
        let end = self.at + 2 + length + 2;
        while let Some(newline) = self.text()[self.at..end].find('\n') {
            self.at += newline;
            self.newline();
        }
        self.at = end;
        Ok(())
    }

    /// The newline at the end of the line.
    pub fn line_end(&self) -> usize {
        let rest = &self.text().as_bytes()[self.at..];
        self.at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
    }

    /// Skips the rest of a line with the newline; comments may have several.
    pub fn skip_line(&mut self) -> Result<(), &'static str> {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' => {
                    self.newline();
                    return Ok(());
                }
                b'/' if self.peek(1) == Some(b'/') => self.at = self.line_end(),
                b'/' if self.peek(1) == Some(b'*') => self.skip_comment()?,
                b'"' | b'\'' => self.at += first(&self.text()[self.at..]).1,
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    /// The token here; there is one.
    pub fn token(&mut self, names: &mut Names, is_spaced: bool) -> Token {
        self.count_joins();
        let (kind, length) = first(&self.text()[self.at..]);
        let text = names.id(&self.text()[self.at..self.at + length]);
        self.at += length;
        Token { text, kind, is_spaced, is_final: false, is_boundary: false, line: self.presumed_line() }
    }

    /// The tokens of the rest of a line; the newline is left.
    ///
    /// # Errors
    /// If a comment does not end.
    pub fn rest_of_line(&mut self, names: &mut Names) -> Result<Vec<Token>, &'static str> {
        let mut out = Vec::new();
        loop {
            let is_spaced = self.skip_blanks()?;
            match self.peek(0) {
                None | Some(b'\n') => return Ok(out),
                Some(_) => out.push(self.token(names, is_spaced)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_token_has_its_length() {
        for (text, kind, length) in [
            ("`a", Kind::Sign, 1),
            ("\\U p", Kind::Sign, 1),
            ("a$1_ b", Kind::Name, 4),
            ("1.5e+3f+2", Kind::Number, 7),
            (".5", Kind::Number, 2),
            ("...x", Kind::Sign, 3),
            ("\"a\\\"b\"c", Kind::Literal, 6),
            ("L'x'", Kind::Literal, 4),
            ("'open\n", Kind::Literal, 5),
            ("\"\\\u{e9}", Kind::Literal, 4),
            ("\u{e4}x-", Kind::Name, 3),
        ] {
            assert_eq!(first(text), (kind, length), "{text}");
        }
    }
}

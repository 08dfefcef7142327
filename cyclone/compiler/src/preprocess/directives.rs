//! Directives: lines that begin with `#`.

use super::condition::Condition;
use super::include::Header;
use super::macros::Macro;
use super::token::{Kind, Token};
use super::{Preprocessor, Result};
use std::rc::Rc;

/// An `#if` that has no `#endif` yet.
pub struct Conditional {
    /// Its line.
    pub line: u32,
    /// Nothing of it is read: what is around is skipped.
    is_skipped: bool,
    /// One of its groups has been chosen.
    is_decided: bool,
    /// `#else` was there.
    is_last: bool,
}

impl Preprocessor<'_> {
    /// A directive, after its `#`, with the end of its line.
    pub(super) fn directive(&mut self) -> Result<()> {
        let Some(file) = self.files.last_mut() else { return Ok(()) };
        file.count_joins();
        file.skip_blanks().map_err(|message| file.failure(message))?;
        let number_of_files = self.files.len();
        let Some(file) = self.files.last_mut() else { return Ok(()) };
        match file.peek(0) {
            None | Some(b'\n') => {}
            Some(byte) if super::token::is_name_start(byte) => {
                let shared = file.shared_text();
                let (_, length) = super::token::first(&shared.text[file.at..]);
                let word = &shared.text[file.at..file.at + length];
                file.at += length;
                self.named_directive(word)?;
            }
            _ if self.is_skipping => {}
            Some(b'0'..=b'9') => self.line_directive(true)?,
            _ => return self.fail("after `#` stands the name of a directive"),
        }
        // An included file is before the rest of the line, which is the includer's.
        let index = number_of_files - 1;
        if let Some(file) = self.files.get_mut(index) {
            let message = file.skip_line();
            message.map_err(|message| file.failure(message))?;
        }
        Ok(())
    }

    fn rest_of_line(&mut self) -> Result<Vec<Token>> {
        let Some(file) = self.files.last_mut() else { return Ok(Vec::new()) };
        file.rest_of_line(&mut self.names).map_err(|message| file.failure(message))
    }

    fn named_directive(&mut self, word: &str) -> Result<()> {
        match word {
            "if" | "ifdef" | "ifndef" => return self.begin_conditional(word),
            "elif" | "elifdef" | "elifndef" => return self.else_if(word),
            "else" => return self.otherwise(),
            "endif" => return self.end_conditional(),
            _ if self.is_skipping => return Ok(()),
            _ => {}
        }
        match word {
            "define" => {
                let tokens = self.rest_of_line()?;
                self.define(&tokens)
            }
            "undef" => {
                let tokens = self.rest_of_line()?;
                let name = self.macro_name(&tokens)?;
                self.names.define(name, None);
                Ok(())
            }
            "include" | "import" | "include_next" => {
                if self.is_collecting {
                    return self.fail(format!("`#{word}` among the arguments of a macro"));
                }
                let header = self.header()?;
                self.include(&header, word == "include_next", word == "import")
            }
            "line" => self.line_directive(false),
            "error" => {
                let rest = self.rest_as_written();
                self.fail(format!("#error {rest}"))
            }
            "pragma" => self.pragma(),
            "ident" | "sccs" => {
                let rest = self.rest_as_written();
                self.write_line(&format!("#{word} {rest}"));
                Ok(())
            }
            // `assert` and `unassert` are GNU's, for what `#if #machine(..)` asks: nothing does.
            "warning" | "assert" | "unassert" => Ok(()),
            _ => self.fail(format!("there is no directive `#{word}`")),
        }
    }

    /// What stands in the rest of the line, without comments.
    fn rest_as_written(&mut self) -> String {
        let Some(file) = self.files.last_mut() else { return String::new() };
        let text = file.text()[file.at..file.line_end()].trim();
        let end = text.find("/*").unwrap_or(text.len());
        text[..end].trim_end().to_owned()
    }

    fn write_line(&mut self, text: &str) {
        let line = self.files.last().map_or(1, |file| file.presumed_line());
        if !self.is_silent && !self.is_collecting {
            self.output.whole_line(line, text);
        }
    }

    fn begin_conditional(&mut self, word: &str) -> Result<()> {
        let line = self.files.last().map_or(1, |file| file.presumed_line());
        let is_skipped = self.is_skipping;
        let holds = !is_skipped && self.holds(word)?;
        self.conditionals.push(Conditional { line, is_skipped, is_decided: holds, is_last: false });
        self.is_skipping = !holds;
        Ok(())
    }

    /// Whether what follows is to be read.
    fn holds(&mut self, word: &str) -> Result<bool> {
        let tokens = self.rest_of_line()?;
        if word.ends_with("def") {
            let name = self.macro_name(&tokens)?;
            return Ok(self.names.is_defined(name) != word.ends_with("ndef"));
        }
        self.condition(tokens)
    }

    /// The conditional of this file that is open.
    fn open_conditional(&mut self, word: &str) -> Result<usize> {
        let begins = self.files.last().map_or(0, |file| file.conditionals);
        match self.conditionals.len() {
            count if count > begins => Ok(count - 1),
            _ => self.fail(format!("`#{word}` without `#if`")),
        }
    }

    fn else_if(&mut self, word: &str) -> Result<()> {
        let index = self.open_conditional(word)?;
        let open = &self.conditionals[index];
        if open.is_last {
            return self.fail(format!("`#{word}` after `#else`"));
        }
        let holds = !open.is_skipped && !open.is_decided && self.holds(word)?;
        self.conditionals[index].is_decided |= holds;
        self.is_skipping = !holds;
        Ok(())
    }

    fn otherwise(&mut self) -> Result<()> {
        let index = self.open_conditional("else")?;
        let open = &mut self.conditionals[index];
        if open.is_last {
            return self.fail("`#else` after `#else`");
        }
        self.is_skipping = open.is_skipped || open.is_decided;
        open.is_last = true;
        Ok(())
    }

    fn end_conditional(&mut self) -> Result<()> {
        let index = self.open_conditional("endif")?;
        self.is_skipping = self.conditionals[index].is_skipped;
        self.conditionals.truncate(index);
        Ok(())
    }

    /// `"name"`, `<name>`, or what macros make of the line.
    fn header(&mut self) -> Result<Header> {
        let Some(file) = self.files.last_mut() else { return self.fail("no file") };
        file.skip_blanks().map_err(|message| file.failure(message))?;
        let rest = &file.text()[file.at..file.line_end()];
        let between = |open: char, close: char| {
            let inner = rest.strip_prefix(open)?;
            Some(inner[..inner.find(close)?].to_owned())
        };
        let header = match (between('"', '"'), between('<', '>')) {
            (Some(name), _) => Some(Header::Quoted(name)),
            (None, Some(name)) => Some(Header::Angled(name)),
            (None, None) => None,
        };
        let header = match header {
            Some(header) => header,
            None => {
                let tokens = self.rest_of_line()?;
                let tokens = self.expanded(&tokens)?;
                match self.header_of(&tokens) {
                    Some((header, _)) => header,
                    None => return self.fail("after `#include` stands \"name\" or <name>"),
                }
            }
        };
        match &header {
            Header::Quoted(name) | Header::Angled(name) if name.is_empty() => {
                self.fail("the name of the file is empty")
            }
            _ => Ok(header),
        }
    }

    /// The header that tokens name, and how many they are.
    pub(super) fn header_of(&self, tokens: &[Token]) -> Option<(Header, usize)> {
        let first = tokens.first()?;
        let text = self.names.text(first.text);
        if first.kind == Kind::Literal {
            let name = text.strip_prefix('"')?.strip_suffix('"')?;
            return Some((Header::Quoted(name.to_owned()), 1));
        }
        // `<` may have become a part of a longer sign.
        let mut name = text.strip_prefix('<')?.to_owned();
        for (index, token) in tokens.iter().enumerate().skip(1) {
            let text = self.names.text(token.text);
            if token.is_spaced {
                name.push(' ');
            }
            match text.find('>') {
                Some(end) if token.kind == Kind::Sign => {
                    name.push_str(&text[..end]);
                    return Some((Header::Angled(name), index + 1));
                }
                _ => name.push_str(text),
            }
        }
        None
    }

    /// `#line 3 "file"`, or a line marker, which is the same without the word.
    fn line_directive(&mut self, is_marker: bool) -> Result<()> {
        let tokens = self.rest_of_line()?;
        let tokens = if is_marker { tokens } else { self.expanded(&tokens)? };
        let number = tokens.first().and_then(|token| self.names.text(token.text).parse::<u32>().ok());
        let Some(number) = number else { return self.fail("after `#line` stands a number, and perhaps a file's name") };
        let name = match tokens.get(1) {
            None => None,
            Some(token) => {
                let inner = self.names.text(token.text).strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                match inner {
                    Some(inner) => Some(unescaped(inner)),
                    None => return self.fail("the name of a file is written in quotes"),
                }
            }
        };
        let Some(file) = self.files.last_mut() else { return Ok(()) };
        if let Some(name) = name {
            file.name = name.into();
        }
        file.number_next_line(number);
        if !self.is_silent && !self.is_collecting {
            self.output.marker(number, &file.name, "", file.is_system);
        }
        Ok(())
    }

    fn pragma(&mut self) -> Result<()> {
        let before = self.files.last().map(|file| file.place());
        let tokens = self.rest_of_line()?;
        let words: Vec<&str> = tokens.iter().map(|token| self.names.text(token.text)).collect();
        let name = match words[..] {
            ["push_macro" | "pop_macro", "(", name, ")"] => Some(name.trim_matches('"').to_owned()),
            _ => None,
        };
        let word = words.first().copied().unwrap_or_default().to_owned();
        match (word.as_str(), name) {
            ("once", _) => self.read_once(),
            ("push_macro", Some(name)) => {
                let id = self.names.id(&name);
                let definition = self.names.definition(id);
                self.pushed.entry(name).or_default().push(definition);
            }
            ("pop_macro", Some(name)) => {
                let definition: Option<Option<Rc<Macro>>> = self.pushed.get_mut(&name).and_then(Vec::pop);
                if let Some(definition) = definition {
                    let id = self.names.id(&name);
                    self.names.define(id, definition);
                }
            }
            _ => {}
        }
        if let (Some(before), Some(file), true) = (before, self.files.last_mut(), word != "once") {
            file.return_to(before);
            let rest = self.rest_as_written();
            self.write_line(&format!("#pragma {rest}"));
        }
        Ok(())
    }

    /// Whether the condition of `#if` holds.
    fn condition(&mut self, tokens: Vec<Token>) -> Result<bool> {
        let tokens = self.without_questions(tokens)?;
        self.defined = Some(super::expand::Defined::No);
        let expanded = self.expanded(&tokens);
        self.defined = None;
        Condition::new(self, expanded?).value()
    }
}

/// The text of a string without the backslashes that stand for what follows them.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

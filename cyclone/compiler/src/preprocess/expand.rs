//! Lines of text, and the macros in them.

use super::macros::{Arguments, Builtin, Macro, NameId, Parts};
use super::token::{Kind, Token, first, is_name_start};
use super::{MOST_DEPTH, MOST_TOKENS, Preprocessor, Result};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tokens that are read before the rest.
pub struct Context {
    tokens: Rc<[Token]>,
    at: usize,
    /// Whether the first has a blank before it: as the macro's name has.
    is_spaced: Option<bool>,
    /// The macro that they are of, which is disabled meanwhile.
    name: Option<NameId>,
    /// What is read does not go on behind them.
    is_apart: bool,
}

/// Whether the next name of an `#if` is the operand of `defined`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Defined {
    No,
    Next,
}

impl Preprocessor<'_> {
    /// A line that is no directive, with the lines that arguments of macros in it take.
    pub(super) fn text_line(&mut self) -> Result<()> {
        let Some(file) = self.files.last_mut() else { return Ok(()) };
        file.count_joins();
        if !self.is_silent {
            self.output.begin_line(file.presumed_line());
        }
        let mut shared = file.shared_text();
        let mut copied = file.at;
        let mut is_joined = false;
        loop {
            let Some(file) = self.files.last_mut() else { return Ok(()) };
            let (text, at) = (shared.text.as_str(), file.at);
            let Some(&byte) = text.as_bytes().get(at) else { return Ok(()) };
            // A line that was joined to this one begins at the next blank: what touches a token stays beside it.
            is_joined |= file.count_joins();
            if is_joined && (is_blank(byte) || at > 0 && is_blank(text.as_bytes()[at - 1])) {
                is_joined = false;
                self.output.copy(&text[copied..at]);
                copied = at;
                self.output.go_on_in(file.presumed_line());
            }
            match byte {
                b'\n' => {
                    file.newline();
                    self.output.copy(&text[copied..at]);
                    self.output.newline();
                    return Ok(());
                }
                b'/' if matches!(text.as_bytes().get(at + 1), Some(b'/' | b'*')) => {
                    self.output.copy(&text[copied..at]);
                    self.output.copy(" ");
                    file.skip_blanks().map_err(|message| file.failure(message))?;
                    copied = file.at;
                    self.output.go_on_in(file.presumed_line());
                }
                _ if is_name_start(byte) => {
                    let (kind, length) = first(&text[at..]);
                    file.at += length;
                    let name = &text[at..at + length];
                    let defined = if kind == Kind::Name { self.names.defined(name) } else { None };
                    if let Some(name) = defined {
                        let line = file.presumed_line();
                        self.output.copy(&text[copied..at]);
                        copied = at;
                        let spaced =
                            Token { text: name, kind, is_spaced: false, is_final: false, is_boundary: true, line };
                        if self.invoke(spaced)? {
                            let Some(file) = self.files.last() else { return Ok(()) };
                            shared = file.shared_text();
                            copied = file.at;
                            self.output.go_on_in(file.presumed_line());
                        }
                    }
                }
                b'"' | b'\'' | b'0'..=b'9' | b'.' => file.at += first(&text[at..]).1,
                _ => file.at += 1,
            }
        }
    }

    /// Writes what becomes of a name in a line; false if it stays as it is.
    fn invoke(&mut self, name: Token) -> Result<bool> {
        self.invoked_at = name.line;
        if !self.enter(name)? {
            return Ok(false);
        }
        self.output.boundary();
        while let Some(token) = self.next()? {
            if token.is_boundary {
                self.output.boundary();
            }
            self.output.piece(self.names.text(token.text), token.is_spaced);
        }
        self.output.boundary();
        Ok(true)
    }

    /// The next token of the contexts, expanded; none at their end, or at that of a context apart.
    fn next(&mut self) -> Result<Option<Token>> {
        let mut is_boundary = false;
        loop {
            let Some(context) = self.contexts.last_mut() else { return Ok(None) };
            let Some(&token) = context.tokens.get(context.at) else {
                if context.is_apart {
                    return Ok(None);
                }
                self.leave();
                is_boundary = true;
                continue;
            };
            let is_spaced = context.is_spaced.take().unwrap_or(token.is_spaced);
            context.at += 1;
            let mut token = Token { is_spaced, is_boundary: token.is_boundary || is_boundary, ..token };
            self.tokens += 1;
            if self.tokens > MOST_TOKENS {
                return self.fail(format!("macros expand to more than {MOST_TOKENS} tokens"));
            }
            if token.kind != Kind::Name || token.is_final || self.is_operand_of_defined(&token) {
                return Ok(Some(token));
            }
            if self.names.is_disabled(token.text) {
                token.is_final = true;
                return Ok(Some(token));
            }
            if self.names.is_defined(token.text) && self.enter(token)? {
                is_boundary = true;
                continue;
            }
            return Ok(Some(token));
        }
    }

    /// In `#if`: `defined` and its operand are not expanded.
    fn is_operand_of_defined(&mut self, token: &Token) -> bool {
        match self.defined {
            None => false,
            Some(Defined::No) if self.names.text(token.text) == "defined" => {
                self.defined = Some(Defined::Next);
                true
            }
            Some(Defined::No) => false,
            Some(Defined::Next) => {
                self.defined = Some(Defined::No);
                true
            }
        }
    }

    fn push(&mut self, context: Context) {
        if let Some(name) = context.name {
            self.names.disable(name, true);
        }
        self.contexts.push(context);
    }

    fn leave(&mut self) {
        if let Some(Context { name: Some(name), .. }) = self.contexts.pop() {
            self.names.disable(name, false);
        }
    }

    /// All of a list of tokens, expanded.
    pub(super) fn expanded(&mut self, tokens: &[Token]) -> Result<Vec<Token>> {
        if !tokens.iter().any(|token| token.kind == Kind::Name && !token.is_final && self.names.is_defined(token.text))
            && self.defined.is_none()
        {
            return Ok(tokens.to_vec());
        }
        if self.depth >= MOST_DEPTH {
            return self.fail(format!("arguments of macros are nested more than {MOST_DEPTH} levels deep"));
        }
        self.depth += 1;
        self.push(Context { tokens: tokens.into(), at: 0, is_spaced: None, name: None, is_apart: true });
        let mut out = Vec::new();
        while let Some(token) = self.next()? {
            out.push(token);
        }
        self.leave();
        self.depth -= 1;
        Ok(out)
    }

    /// Opens the context of a macro; false if its name stays, as no arguments follow.
    fn enter(&mut self, token: Token) -> Result<bool> {
        let Some(definition) = self.names.definition(token.text) else { return Ok(false) };
        let (tokens, name) = match &*definition {
            Macro::Object(tokens) => (tokens.clone(), Some(token.text)),
            Macro::Parts(parts) => {
                let args = match parts.params {
                    None => Arguments::default(),
                    Some(_) if !self.opens()? => return Ok(false),
                    Some(count) => self.arguments(token.text, count, parts)?,
                };
                (self.substitute(parts, &args, token.line)?.into(), Some(token.text))
            }
            Macro::Builtin(Builtin::Pragma) => return self.pragma_operator(),
            Macro::Builtin(Builtin::Has) => return Ok(false),
            Macro::Builtin(builtin) => {
                let text = self.builtin(*builtin, token.line);
                (self.made(&text).into(), None)
            }
        };
        self.push(Context { tokens, at: 0, is_spaced: Some(token.is_spaced), name, is_apart: false });
        Ok(true)
    }

    /// Takes the parenthesis that opens arguments, if it is next.
    fn opens(&mut self) -> Result<bool> {
        while let Some(context) = self.contexts.last() {
            match context.tokens.get(context.at).copied() {
                Some(token) => {
                    let opens = self.is_sign(&token, "(");
                    if let (true, Some(context)) = (opens, self.contexts.last_mut()) {
                        context.at += 1;
                    }
                    return Ok(opens);
                }
                None if context.is_apart => return Ok(false),
                None => self.leave(),
            }
        }
        let Some(file) = self.files.last_mut() else { return Ok(false) };
        let before = file.place();
        loop {
            file.skip_blanks().map_err(|message| file.failure(message))?;
            match file.peek(0) {
                Some(b'\n') => file.newline(),
                Some(b'(') => {
                    file.at += 1;
                    return Ok(true);
                }
                _ => break,
            }
        }
        file.return_to(before);
        Ok(false)
    }

    /// The next token of an argument.
    fn read(&mut self) -> Result<Option<Token>> {
        let token = loop {
            let Some(context) = self.contexts.last_mut() else { break self.read_file()? };
            if let Some(&token) = context.tokens.get(context.at) {
                let is_spaced = context.is_spaced.take().unwrap_or(token.is_spaced);
                context.at += 1;
                break Some(Token { is_spaced, ..token });
            }
            if context.is_apart {
                return Ok(None);
            }
            self.leave();
        };
        self.tokens += 1;
        if self.tokens > MOST_TOKENS {
            return self.fail(format!("macros have more than {MOST_TOKENS} tokens"));
        }
        Ok(token.map(|token| {
            let is_final = token.is_final || token.kind == Kind::Name && self.names.is_disabled(token.text);
            Token { is_final, ..token }
        }))
    }

    /// The next token of the file; directives may stand between.
    fn read_file(&mut self) -> Result<Option<Token>> {
        let mut is_spaced = false;
        loop {
            let Some(file) = self.files.last_mut() else { return Ok(None) };
            is_spaced |= file.skip_blanks().map_err(|message| file.failure(message))?;
            match file.peek(0) {
                None => return Ok(None),
                Some(b'\n') => {
                    file.newline();
                    is_spaced = true;
                    let was_collecting = std::mem::replace(&mut self.is_collecting, true);
                    let goes_on = self.begin_line()?;
                    self.is_collecting = was_collecting;
                    if !goes_on {
                        return Ok(None);
                    }
                }
                Some(_) => return Ok(Some(file.token(&mut self.names, is_spaced))),
            }
        }
    }

    /// The arguments of a macro, after the parenthesis.
    fn arguments(&mut self, name: NameId, count: usize, parts: &Parts) -> Result<Arguments> {
        let begins = self.files.last().map(|file| file.failure(""));
        let mut args: Vec<Vec<Token>> = vec![Vec::new()];
        let mut depth = 0_usize;
        loop {
            let Some(token) = self.read()? else {
                let message = format!("the arguments of the macro `{}` do not end", self.names.text(name));
                return Err(begins.map_or_else(
                    || self.failure(message.clone()),
                    |at| super::Failure { message: message.clone(), ..at },
                ));
            };
            let is_rest = parts.is_variadic && args.len() == count;
            if token.kind == Kind::Sign {
                match self.names.text(token.text) {
                    "(" => depth += 1,
                    ")" if depth == 0 => break,
                    ")" => depth -= 1,
                    "," if depth == 0 && !is_rest => {
                        args.push(Vec::new());
                        continue;
                    }
                    _ => {}
                }
            }
            if let Some(last) = args.last_mut() {
                last.push(token);
            }
        }
        let given = args.len();
        let lacks_rest = parts.is_variadic && (given < count || given == 1 && args[0].is_empty());
        if count == 0 && given == 1 && args[0].is_empty() {
            args.clear();
        } else if parts.is_variadic && given + 1 == count {
            args.push(Vec::new());
        } else if given != count {
            let name = self.names.text(name);
            let (takes, gets) = (plural(count), given);
            return self.fail(format!("the macro `{name}` takes {takes}, not {gets}"));
        }
        Ok(Arguments { args, lacks_rest })
    }

    /// `_Pragma("text")`
    fn pragma_operator(&mut self) -> Result<bool> {
        if !self.opens()? {
            return Ok(false);
        }
        let (text, end) = (self.read()?, self.read()?);
        let (Some(text), true) = (text, end.is_some_and(|end| self.is_sign(&end, ")"))) else {
            return self.fail("`_Pragma` takes one string");
        };
        let written = self.names.text(text.text);
        let Some(inner) =
            written.trim_start_matches(['L', 'u', 'U', '8']).strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        else {
            return self.fail("`_Pragma` takes one string");
        };
        let inner = inner.replace("\\\"", "\"").replace("\\\\", "\\");
        if !self.is_silent && self.depth == 0 {
            let line = self.files.last().map_or(1, |file| file.presumed_line());
            self.output.end_piece();
            self.output.whole_line(line, &format!("#pragma {inner}"));
            self.output.begin_line(line);
        }
        Ok(true)
    }

    fn builtin(&mut self, builtin: Builtin, line: u32) -> String {
        let quoted = |name: &str| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
        match builtin {
            Builtin::File => quoted(self.files.last().map_or("", |file| &file.name)),
            Builtin::BaseFile => quoted(&self.base_name),
            Builtin::Line if self.depth > 0 || self.contexts.is_empty() => line.to_string(),
            Builtin::Line => self.invoked_at.to_string(),
            Builtin::IncludeLevel => self.files.len().saturating_sub(1).to_string(),
            Builtin::Counter => {
                self.counter += 1;
                (self.counter - 1).to_string()
            }
            Builtin::Date => quoted(&date_and_time().0),
            Builtin::Time => quoted(&date_and_time().1),
            Builtin::Timestamp => {
                let (date, time) = date_and_time();
                quoted(&format!("{date} {time}"))
            }
            Builtin::Pragma | Builtin::Has => String::new(),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0xb | 0xc)
}

fn plural(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    }
}

/// As C has them: `Jan  1 1970` and `00:00:00`, of the world's time.
fn date_and_time() -> (String, String) {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let named = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seconds = named.unwrap_or(now).min(253_402_300_799);
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let date = format!("{} {:2} {year}", MONTHS[month], days + 1);
    (date, format!("{:02}:{:02}:{:02}", rest / 3_600, rest / 60 % 60, rest % 60))
}

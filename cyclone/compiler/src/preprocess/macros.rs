//! Names, what they are defined as, and what a macro with arguments becomes.

use super::token::{Kind, Token, all, first};
use super::{Preprocessor, Result};
use crate::hash::HashMap;
use std::rc::Rc;

/// The number of a token's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameId(u32);

/// The texts of tokens, each once.
pub struct Names {
    ids: HashMap<Rc<str>, u32>,
    entries: Vec<Entry>,
}

struct Entry {
    text: Rc<str>,
    definition: Option<Rc<Macro>>,
    /// Its context is open.
    is_disabled: bool,
}

/// What a name is defined as.
#[derive(Debug)]
pub enum Macro {
    /// The tokens as they are.
    Object(Rc<[Token]>),
    /// With arguments, or with `##`.
    Parts(Parts),
    /// What only the preprocessor knows.
    Builtin(Builtin),
}

/// A definition that is not copied as it stands.
#[derive(Debug)]
pub struct Parts {
    /// How many parameters; none if it is not written with parentheses.
    pub params: Option<usize>,
    /// The last parameter stands for any number of arguments.
    pub is_variadic: bool,
    items: Vec<Item>,
}

/// What a macro is called with.
#[derive(Default)]
pub struct Arguments {
    pub args: Vec<Vec<Token>>,
    /// Nothing is given for the last parameter, not even an empty argument.
    pub lacks_rest: bool,
}

/// A token of a definition.
#[derive(Debug)]
struct Item {
    token: Token,
    /// It is this parameter.
    param: Option<usize>,
    /// `#` is before it.
    is_text: bool,
    /// `##` is behind it.
    pastes: bool,
}

/// A macro that only the preprocessor knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builtin {
    File,
    Line,
    BaseFile,
    IncludeLevel,
    Counter,
    Date,
    Time,
    Timestamp,
    Pragma,
    /// `__has_include` and its like: of `#if`.
    Has,
}

const BUILTINS: [(&str, Builtin); 13] = [
    ("__FILE__", Builtin::File),
    ("__LINE__", Builtin::Line),
    ("__BASE_FILE__", Builtin::BaseFile),
    ("__INCLUDE_LEVEL__", Builtin::IncludeLevel),
    ("__COUNTER__", Builtin::Counter),
    ("__DATE__", Builtin::Date),
    ("__TIME__", Builtin::Time),
    ("__TIMESTAMP__", Builtin::Timestamp),
    ("_Pragma", Builtin::Pragma),
    ("__has_include", Builtin::Has),
    ("__has_include_next", Builtin::Has),
    ("__has_attribute", Builtin::Has),
    ("__has_builtin", Builtin::Has),
];

impl Names {
    pub fn new() -> Names {
        let mut names = Names { ids: HashMap::default(), entries: Vec::new() };
        for (name, builtin) in BUILTINS {
            let id = names.id(name);
            names.define(id, Some(Rc::new(Macro::Builtin(builtin))));
        }
        names
    }

    pub fn id(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return NameId(id);
        }
        let id = self.entries.len() as u32;
        let text: Rc<str> = text.into();
        self.ids.insert(text.clone(), id);
        self.entries.push(Entry { text, definition: None, is_disabled: false });
        NameId(id)
    }

    pub fn text(&self, id: NameId) -> &str {
        &self.entries[id.0 as usize].text
    }

    /// The name of a macro, if this is one.
    #[inline]
    pub fn defined(&self, text: &str) -> Option<NameId> {
        let id = *self.ids.get(text)?;
        self.entries[id as usize].definition.is_some().then_some(NameId(id))
    }

    pub fn definition(&self, id: NameId) -> Option<Rc<Macro>> {
        self.entries[id.0 as usize].definition.clone()
    }

    pub fn is_defined(&self, id: NameId) -> bool {
        self.entries[id.0 as usize].definition.is_some()
    }

    pub fn define(&mut self, id: NameId, definition: Option<Rc<Macro>>) {
        self.entries[id.0 as usize].definition = definition;
    }

    pub fn is_disabled(&self, id: NameId) -> bool {
        self.entries[id.0 as usize].is_disabled
    }

    pub fn disable(&mut self, id: NameId, is_disabled: bool) {
        self.entries[id.0 as usize].is_disabled = is_disabled;
    }
}

impl Preprocessor<'_> {
    pub(super) fn is_sign(&self, token: &Token, text: &str) -> bool {
        token.kind == Kind::Sign && self.names.text(token.text) == text
    }

    /// The name that a directive is about.
    pub(super) fn macro_name(&self, tokens: &[Token]) -> Result<NameId> {
        match tokens.first() {
            Some(token) if token.kind == Kind::Name && self.names.text(token.text) != "defined" => Ok(token.text),
            Some(token) => self.fail(format!("`{}` cannot be the name of a macro", self.names.text(token.text))),
            None => self.fail("the name of a macro is missing"),
        }
    }

    /// `#define`, from the name on.
    pub(super) fn define(&mut self, tokens: &[Token]) -> Result<()> {
        let name = self.macro_name(tokens)?;
        let rest = &tokens[1..];
        let has_params = rest.first().is_some_and(|token| !token.is_spaced && self.is_sign(token, "("));
        let definition = match has_params {
            true => self.with_params(&rest[1..])?,
            false if rest.iter().any(|token| self.is_paste(token)) => {
                Macro::Parts(Parts { params: None, is_variadic: false, items: self.items(rest, &[])? })
            }
            false => Macro::Object(self.body(rest).into()),
        };
        self.names.define(name, Some(Rc::new(definition)));
        Ok(())
    }

    fn body(&self, tokens: &[Token]) -> Vec<Token> {
        let mut body = tokens.to_vec();
        if let Some(first) = body.first_mut() {
            first.is_spaced = false;
        }
        body
    }

    fn is_paste(&self, token: &Token) -> bool {
        self.is_sign(token, "##") || self.is_sign(token, "%:%:")
    }

    /// After the parenthesis.
    fn with_params(&mut self, tokens: &[Token]) -> Result<Macro> {
        let mut params: Vec<NameId> = Vec::new();
        let mut is_variadic = false;
        let mut at = 0;
        let unfit = "the parameters of a macro are names, with commas between them, in parentheses";
        loop {
            let Some(token) = tokens.get(at) else { return self.fail(unfit) };
            at += 1;
            if self.is_sign(token, ")") && params.is_empty() {
                break;
            }
            if self.is_sign(token, "...") {
                is_variadic = true;
                params.push(self.names.id("__VA_ARGS__"));
            } else if token.kind == Kind::Name && !params.contains(&token.text) {
                params.push(token.text);
                if tokens.get(at).is_some_and(|next| self.is_sign(next, "...")) {
                    (is_variadic, at) = (true, at + 1);
                }
            } else {
                return self.fail(unfit);
            }
            match tokens.get(at) {
                Some(token) if self.is_sign(token, ")") => {
                    at += 1;
                    break;
                }
                Some(token) if self.is_sign(token, ",") && !is_variadic => at += 1,
                _ => return self.fail(unfit),
            }
        }
        let items = self.items(&tokens[at..], &params)?;
        Ok(Macro::Parts(Parts { params: Some(params.len()), is_variadic, items }))
    }

    fn items(&self, tokens: &[Token], params: &[NameId]) -> Result<Vec<Item>> {
        let body = self.body(tokens);
        let mut items: Vec<Item> = Vec::with_capacity(body.len());
        let mut tokens = body.into_iter().peekable();
        while let Some(mut token) = tokens.next() {
            if self.is_paste(&token) {
                match items.last_mut() {
                    Some(before) if tokens.peek().is_some() => before.pastes = true,
                    _ => return self.fail("`##` stands between two tokens"),
                }
                continue;
            }
            let is_text = !params.is_empty() && (self.is_sign(&token, "#") || self.is_sign(&token, "%:"));
            if is_text {
                let is_spaced = token.is_spaced;
                match tokens.next() {
                    Some(next) if params.contains(&next.text) => token = Token { is_spaced, ..next },
                    _ => return self.fail("`#` stands before a parameter of the macro"),
                }
            }
            let param = params.iter().position(|param| token.kind == Kind::Name && *param == token.text);
            items.push(Item { token, param, is_text, pastes: false });
        }
        Ok(items)
    }

    /// The tokens of a definition with arguments in the places of parameters.
    pub(super) fn substitute(&mut self, parts: &Parts, given: &Arguments, line: u32) -> Result<Vec<Token>> {
        let args = &given.args;
        let mut out: Vec<Token> = Vec::new();
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; args.len()];
        // What is on the left of `##`: nothing, or whether there is a token.
        let mut left: Option<bool> = None;
        let mut after_argument = false;
        for item in &parts.items {
            let operand: Vec<Token> = match item.param {
                None => vec![Token { is_boundary: after_argument, line, ..item.token }],
                Some(param) if item.is_text => vec![self.stringify(&args[param], item.token, line)],
                Some(param) if item.pastes || left.is_some() => args[param].clone(),
                Some(param) => {
                    if expanded[param].is_none() {
                        expanded[param] = Some(self.expanded(&args[param])?);
                    }
                    expanded[param].clone().unwrap_or_default()
                }
            };
            let mut operand = operand.into_iter();
            let mut is_there = !operand.as_slice().is_empty();
            let is_rest =
                parts.is_variadic && item.param.is_some() && item.param == parts.params.map(|count| count - 1);
            match (left, out.last().copied()) {
                (Some(true), Some(last)) if is_rest && self.is_sign(&last, ",") => {
                    // GNU's: a comma is left out where no arguments follow, and is not pasted to others.
                    if given.lacks_rest {
                        out.pop();
                    }
                    out.extend(operand.next().map(|first| Token {
                        is_spaced: item.token.is_spaced,
                        is_boundary: true,
                        ..first
                    }));
                }
                (Some(true), Some(last)) => match operand.next() {
                    Some(first) => {
                        let pasted = self.paste(last, first)?;
                        if let Some(place) = out.last_mut() {
                            *place = pasted;
                        }
                    }
                    None => is_there = true,
                },
                _ => {
                    let is_boundary = item.param.is_some();
                    let begin = |first: Token| Token {
                        is_spaced: item.token.is_spaced,
                        is_boundary: is_boundary || first.is_boundary,
                        ..first
                    };
                    out.extend(operand.next().map(begin));
                }
            }
            out.extend(operand);
            left = item.pastes.then_some(is_there);
            after_argument = item.param.is_some();
        }
        Ok(out)
    }

    /// `#` before a parameter: the argument as it was written.
    fn stringify(&mut self, argument: &[Token], at: Token, line: u32) -> Token {
        let mut text = String::from("\"");
        for (index, token) in argument.iter().enumerate() {
            if index > 0 && token.is_spaced {
                text.push(' ');
            }
            let written = self.names.text(token.text);
            if token.kind == Kind::Literal {
                for c in written.chars() {
                    if matches!(c, '"' | '\\') {
                        text.push('\\');
                    }
                    text.push(c);
                }
            } else {
                text.push_str(written);
            }
        }
        // A backslash before the end would take the quote's meaning.
        let slashes = text.bytes().rev().take_while(|&byte| byte == b'\\').count();
        if slashes % 2 == 1 {
            text.pop();
        }
        text.push('"');
        let text = self.names.id(&text);
        Token { text, kind: Kind::Literal, is_final: false, is_boundary: false, line, ..at }
    }

    /// One token of two.
    fn paste(&mut self, left: Token, right: Token) -> Result<Token> {
        let whole = [self.names.text(left.text), self.names.text(right.text)].concat();
        let (kind, length) = first(&whole);
        if length != whole.len() || whole.starts_with("//") || whole.starts_with("/*") {
            let (left, right) = (self.names.text(left.text), self.names.text(right.text));
            return self.fail(format!("`{left}` and `{right}` are not one token when they are put together"));
        }
        Ok(Token { text: self.names.id(&whole), kind, is_final: false, ..left })
    }

    /// The tokens of a text that the preprocessor makes.
    pub(super) fn made(&mut self, text: &str) -> Vec<Token> {
        all(text, &mut self.names)
    }
}

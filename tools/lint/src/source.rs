//! What the compiler's MIR does not hold and the source does: where a function's name stands, whether the name was its author's choice, and
//! the marks that a programmer set.
//!
//! A mark is an attribute that the compiler drops: `#[cfg_attr(false, ebb_lint::leaf)]` before an item, or with `#!` inside of a module or
//! file. It holds for everything inside of the item.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use crate::mir::Span;

/// What a programmer says about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It suspends by itself, not by calling something that does.
    Leaf,
    /// It has no context and gets one: it starts tasks.
    Root,
    /// It keeps functions that suspend, to call them through pointers.
    Table,
    /// It takes `&mut Cx` as a proof that nothing is borrowed, and does not suspend.
    NeverSuspends,
    /// Its name ends in `_async` for another reason.
    Unrelated,
}

impl Mark {
    /// The mark of this name.
    pub fn parse(name: &str) -> Option<Mark> {
        Some(match name {
            "leaf" => Mark::Leaf,
            "root" => Mark::Root,
            "table" => Mark::Table,
            "never_suspends" => Mark::NeverSuspends,
            "unrelated" => Mark::Unrelated,
            _ => return None,
        })
    }

    /// The names of all marks.
    pub const NAMES: &str = "leaf, root, table, never_suspends, unrelated";
}

/// A function as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name; in a macro's definition this may be `$name`.
    pub name: Range<usize>,
    /// From `fn` to the end of its body.
    pub item: Range<usize>,
    /// Whether a trait chose the name: it stands in an `impl Trait for Type`.
    pub implements_trait: bool,
}

/// A function without a body, in a trait or an `extern` block. The compiler's code has nothing of it, so it is read as it is
/// written: aliases are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// Where it ends.
    pub end: usize,
    /// `&mut X` for each parameter that is one, `&mut self`, and `_` for all others.
    pub params: Vec<String>,
    /// Whether the first parameter is `self`.
    pub has_self: bool,
    /// Whether it returns a future.
    pub is_future: bool,
}

/// One source file. Ranges are offsets of bytes.
#[derive(Debug, Default)]
pub struct Source {
    /// Its text.
    pub text: String,
    line_starts: Vec<usize>,
    functions: Vec<Function>,
    marks: Vec<(Mark, Range<usize>)>,
    declarations: Vec<Declaration>,
    for_tests: Vec<Range<usize>>,
    /// Marks that do not exist.
    pub unknown_marks: Vec<(String, Range<usize>)>,
}

impl Source {
    /// Takes a file apart. Text that is no Rust has no functions and no marks.
    pub fn new(text: String) -> Source {
        let text = text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned);
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut source = Source { line_starts, ..Source::default() };
        // A first line for the shell is none for Rust.
        let rust = match text.split_once('\n') {
            Some((first, rest)) if first.starts_with("#!") && !first.starts_with("#![") => {
                format!("{}\n{rest}", " ".repeat(first.len()))
            }
            _ => text.clone(),
        };
        if let Ok(tokens) = rust.parse::<TokenStream>() {
            source.level(tokens, 0..text.len(), false);
        }
        source.text = text;
        source
    }

    /// The bytes of a place.
    pub fn range(&self, span: &Span) -> Option<Range<usize>> {
        let start = self.offset(span.start)?;
        let end = self.offset(span.end)?;
        (start <= end).then_some(start..end)
    }

    /// Line and column, both from 1, of an offset.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        (line, self.text.get(start..offset).unwrap_or("").chars().count() + 1)
    }

    /// A line's text, counted from 1, without its end.
    pub fn line(&self, number: usize) -> &str {
        let start = self.line_starts.get(number.wrapping_sub(1)).copied().unwrap_or(self.text.len());
        let end = self.line_starts.get(number).map_or(self.text.len(), |next| next - 1);
        self.text.get(start..end).unwrap_or("").trim_end_matches('\r')
    }

    /// The innermost function around an offset.
    pub fn function_at(&self, offset: usize) -> Option<&Function> {
        self.functions
            .iter()
            .filter(|function| function.item.contains(&offset))
            .min_by_key(|function| function.item.len())
    }

    /// Whether an item around the offset has the mark.
    pub fn is_marked(&self, mark: Mark, offset: usize) -> bool {
        self.marks.iter().any(|(set, item)| *set == mark && item.contains(&offset))
    }

    /// The functions without bodies, other than those for tests.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        let is_for_tests =
            |declaration: &&Declaration| self.for_tests.iter().any(|item| item.contains(&declaration.end));
        self.declarations.iter().filter(move |declaration| !is_for_tests(declaration))
    }

    fn offset(&self, (line, column): (usize, usize)) -> Option<usize> {
        let start = *self.line_starts.get(line.checked_sub(1)?)?;
        let rest = self.text.get(start..)?;
        let mut characters = rest.char_indices().map(|(at, _)| start + at).chain([self.text.len()]);
        characters.nth(column.checked_sub(1)?)
    }

    /// Reads the tokens between two brackets, which stand at `around`.
    fn level(&mut self, tokens: TokenStream, around: Range<usize>, implements_trait: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        // Which groups are bodies of an `impl` or a function, and whether a trait chooses the names in them.
        let mut bodies = BTreeMap::new();
        let mut marks: Vec<Mark> = Vec::new();
        let mut first_attribute = None;
        let mut is_for_tests = false;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if let Some((attribute, is_inner, length)) = attribute(&tokens[at..]) {
                let set = self.read_marks(attribute);
                if is_inner {
                    self.marks.extend(set.into_iter().map(|mark| (mark, around.clone())));
                } else {
                    first_attribute.get_or_insert(range(token).start);
                    marks.extend(set);
                    is_for_tests |= depends_on_test(attribute);
                }
                at += length;
                continue;
            }
            if let Some(start) = first_attribute.take() {
                let item = start..item_end(&tokens[at..]).unwrap_or(around.end);
                self.marks.extend(marks.drain(..).map(|mark| (mark, item.clone())));
                self.for_tests.extend(std::mem::take(&mut is_for_tests).then_some(item));
            }
            match token {
                TokenTree::Ident(word) if word == "fn" => {
                    if let Some(name) = function_name(&tokens[at + 1..]) {
                        let body = at + body_index(&tokens[at..]);
                        let end = tokens.get(body).map_or(around.end, |token| range(token).end);
                        let item = range(token).start..end;
                        if is_punct(tokens.get(body), ';') {
                            let before = at.checked_sub(1).and_then(|index| tokens.get(index));
                            self.declarations.extend(declaration(before, &tokens[at + 1..body], item.end - 1));
                        }
                        self.functions.push(Function { name, item, implements_trait });
                        bodies.insert(body, false);
                    }
                }
                TokenTree::Ident(word)
                    if word == "impl" && begins_item(at.checked_sub(1).and_then(|i| tokens.get(i))) =>
                {
                    let body = at + body_index(&tokens[at..]);
                    bodies.insert(body, names_a_trait(&tokens[at..body]));
                }
                TokenTree::Group(group) => {
                    let chosen = bodies.get(&at).copied().unwrap_or(implements_trait);
                    self.level(group.stream(), range(token), chosen);
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The marks of `[cfg_attr(false, ebb_lint::leaf, ebb_lint::root)]`.
    fn read_marks(&mut self, attribute: &Group) -> Vec<Mark> {
        let mut tokens = attribute.stream().into_iter();
        let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(arguments))) = (tokens.next(), tokens.next()) else {
            return Vec::new();
        };
        if name != "cfg_attr" {
            return Vec::new();
        }
        let arguments: Vec<TokenTree> = arguments.stream().into_iter().collect();
        let mut marks = Vec::new();
        for window in arguments.windows(4) {
            if let [TokenTree::Ident(tool), TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Ident(word)] = window
                && tool == "ebb_lint"
            {
                match Mark::parse(&word.to_string()) {
                    Some(mark) => marks.push(mark),
                    None => self.unknown_marks.push((word.to_string(), word.span().byte_range())),
                }
            }
        }
        marks
    }
}

fn range(token: &TokenTree) -> Range<usize> {
    token.span().byte_range()
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

/// An attribute at the start of the tokens, whether it is an inner one, and how many tokens it has.
fn attribute(tokens: &[TokenTree]) -> Option<(&Group, bool, usize)> {
    let is_inner = is_punct(tokens.get(1), '!');
    let index = if is_inner { 2 } else { 1 };
    match tokens.get(index) {
        Some(TokenTree::Group(group)) if is_punct(tokens.first(), '#') && group.delimiter() == Delimiter::Bracket => {
            Some((group, is_inner, index + 1))
        }
        _ => None,
    }
}

/// The name after `fn`; none if this is the type of a pointer.
fn function_name(tokens: &[TokenTree]) -> Option<Range<usize>> {
    match tokens {
        [TokenTree::Ident(name), ..] => Some(name.span().byte_range()),
        [dollar, TokenTree::Ident(name), ..] if is_punct(Some(dollar), '$') => {
            Some(range(dollar).start..Ident::span(name).byte_range().end)
        }
        _ => None,
    }
}

/// What stands between `fn` and `;`; none if a macro is to fill in the name.
fn declaration(before: Option<&TokenTree>, tokens: &[TokenTree], end: usize) -> Option<Declaration> {
    let is_word = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident == word);
    let Some(TokenTree::Ident(name)) = tokens.first() else { return None };
    let (index, parameters) = parameters(tokens)?;
    let tokens_of: Vec<TokenTree> = parameters.stream().into_iter().collect();
    let mut parts = tokens_of.split(|token| is_punct(Some(token), ',')).filter(|part| !part.is_empty()).peekable();
    let has_self = parts.peek().is_some_and(|first| first.iter().any(|token| is_word(token, "self")));
    Some(Declaration {
        name: name.to_string().trim_start_matches("r#").to_owned(),
        end,
        params: parts.map(mutable_reference).collect(),
        has_self,
        is_future: before.is_some_and(|token| is_word(token, "async"))
            || tokens[index..].iter().any(|token| is_word(token, "Future")),
    })
}

/// A function's parameters, behind its name and generic parameters, and where they stand.
fn parameters(tokens: &[TokenTree]) -> Option<(usize, &Group)> {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) if depth == 0 && group.delimiter() == Delimiter::Parenthesis => {
                return Some((index, group));
            }
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' => {
                let is_arrow = index.checked_sub(1).is_some_and(|before| is_punct(tokens.get(before), '-'));
                depth = depth.saturating_sub(usize::from(!is_arrow));
            }
            _ => {}
        }
    }
    None
}

/// `&mut X` for a parameter with a type like `&'a mut a::X<'_>`, wherever that stands outside of parentheses, else `_`.
fn mutable_reference(parameter: &[TokenTree]) -> String {
    let Some(reference) = parameter.iter().position(|token| is_punct(Some(token), '&')) else { return "_".to_owned() };
    let mut rest = &parameter[reference + 1..];
    if is_punct(rest.first(), '\'') {
        rest = rest.get(2..).unwrap_or(&[]);
    }
    let path = match rest {
        [TokenTree::Ident(word), path @ ..] if word == "mut" => path,
        _ => return "_".to_owned(),
    };
    let mut name = None;
    for token in path {
        match token {
            TokenTree::Ident(word) => name = Some(word.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            _ => break,
        }
    }
    name.map_or("_".to_owned(), |name| format!("&mut {name}"))
}

/// Whether an attribute is `cfg(test)`, or some other condition on tests.
fn depends_on_test(attribute: &Group) -> bool {
    let mut tokens = attribute.stream().into_iter();
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(condition))) = (tokens.next(), tokens.next()) else {
        return false;
    };
    name == "cfg"
        && condition.stream().into_iter().any(|token| matches!(token, TokenTree::Ident(word) if word == "test"))
}

/// The first `{...}` or `;`, or the number of tokens.
fn body_index(tokens: &[TokenTree]) -> usize {
    let is_body = |token: &TokenTree| {
        matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace) || is_punct(Some(token), ';')
    };
    tokens.iter().position(is_body).unwrap_or(tokens.len())
}

/// Where the item ends that the tokens begin with.
fn item_end(tokens: &[TokenTree]) -> Option<usize> {
    let words = tokens.iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let mut words = words.skip_while(|word| word == "pub");
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    let is_function = matches!(second.as_str(), "fn" | "unsafe" | "async" | "extern");
    let has_value = matches!(first.as_str(), "static" | "let" | "type" | "use") || (first == "const" && !is_function);
    let end = match has_value {
        true => tokens.iter().position(|token| is_punct(Some(token), ';'))?,
        false => body_index(tokens),
    };
    tokens.get(end).map(|token| range(token).end)
}

/// Whether an `impl` after this token begins an item, rather than a type.
fn begins_item(before: Option<&TokenTree>) -> bool {
    match before {
        None => true,
        Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::Parenthesis,
        Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), ';' | '*'),
        Some(TokenTree::Ident(word)) => word == "unsafe" || word == "default",
        Some(TokenTree::Literal(_)) => false,
    }
}

/// Whether the head of an `impl` has a `for` that is not `for<'a>`.
fn names_a_trait(head: &[TokenTree]) -> bool {
    head.iter().enumerate().any(|(index, token)| {
        matches!(token, TokenTree::Ident(word) if word == "for") && !is_punct(head.get(index + 1), '<')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
#![cfg_attr(false, ebb_lint::table)]
struct S;
impl<T: for<'a> Fn(&'a u8)> S {
    /// Words.
    #[cfg_attr(false, ebb_lint::leaf, ebb_lint::nonsense)]
    #[inline]
    pub(crate) fn first(é: fn(u8) -> [u8; { 3 }]) -> impl Fn() { fn nested() {} || () }
    fn second();
}
impl std::fmt::Debug for S { fn fmt(&self) { fn inside() {} } }
macro_rules! m { ($n:ident) => { fn $n() {} } }
#[cfg_attr(false, ebb_lint::root)]
static A: [S; 1] = [S { a: { 3 } }];
";

    fn at(text: &str) -> usize {
        TEXT.find(text).unwrap()
    }

    fn name_at(source: &Source, text: &str) -> Option<String> {
        source.function_at(at(text)).map(|function| source.text[function.name.clone()].to_owned())
    }

    #[test]
    fn the_innermost_function_is_found() {
        let source = Source::new(TEXT.to_owned());
        assert_eq!(name_at(&source, "-> impl").as_deref(), Some("first"));
        assert_eq!(name_at(&source, "() {} ||").as_deref(), Some("nested"));
        assert_eq!(name_at(&source, "() {} } }\n#").as_deref(), Some("$n"));
        assert_eq!(name_at(&source, "struct"), None);
    }

    #[test]
    fn names_that_a_trait_chose_are_known() {
        let source = Source::new(TEXT.to_owned());
        let chosen = |text| source.function_at(at(text)).unwrap().implements_trait;
        assert!(chosen("(&self)"));
        assert!(!chosen("() {} } }\nmacro"));
        assert!(!chosen("();\n"));
    }

    #[test]
    fn marks_hold_inside_of_their_item() {
        let source = Source::new(TEXT.to_owned());
        assert!(source.is_marked(Mark::Leaf, at("nested")));
        assert!(!source.is_marked(Mark::Leaf, at("second")));
        assert!(source.is_marked(Mark::Root, at("];\n")));
        assert!(!source.is_marked(Mark::Root, at("macro")));
        assert!(source.is_marked(Mark::Table, at("second")));
        let unknown = source.unknown_marks.first().map(|(word, range)| (word.as_str(), &TEXT[range.clone()]));
        assert_eq!(unknown, Some(("nonsense", "nonsense")));
    }

    #[test]
    fn functions_without_bodies_are_read_as_they_are_written() {
        let text = "trait T {\n    fn a<F: Fn(&mut Cx) -> u8>(&mut self, f: F, cx: &'a mut x::Cx<'_>);\n    async fn r#b(&self);\n    \
                    fn c() -> impl Future<Output = ()>;\n    fn d(job: fn(&mut Cx)) { }\n    fn e(job: fn(&mut Cx), n: &Cx);\n}\n\
                    #[cfg(test)] trait U { fn g(&self); }\nmacro_rules! m { ($n:ident) => { fn $n(cx: &mut Cx); } }";
        let source = Source::new(text.to_owned());
        let found: Vec<_> = source
            .declarations()
            .map(|d| {
                (d.name.as_str(), d.params.iter().map(String::as_str).collect::<Vec<_>>(), d.has_self, d.is_future)
            })
            .collect();
        let expected = [
            ("a", vec!["&mut self", "_", "&mut Cx"], true, false),
            ("b", vec!["_"], true, true),
            ("c", vec![], false, true),
            ("e", vec!["_", "_"], false, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn positions_count_characters() {
        let source = Source::new(TEXT.to_owned());
        let after = at(": fn(u8)");
        assert_eq!(source.position(after), (7, 26));
        let span = Span { file: String::new(), start: (7, 26), end: (7, 28) };
        assert_eq!(source.range(&span), Some(after..after + 2));
        assert_eq!(source.line(2), "struct S;");
        assert_eq!(source.line(99), "");
        let outside = Span { file: String::new(), start: (99, 1), end: (99, 2) };
        assert_eq!(source.range(&outside), None);
    }

    #[test]
    fn text_that_is_no_rust_has_nothing() {
        let source = Source::new("fn a( { \u{0} ]".to_owned());
        assert!(source.function_at(1).is_none());
        let script = Source::new("#!/usr/bin/env run\nfn a() {}".to_owned());
        assert!(script.function_at(20).is_some());
    }
}

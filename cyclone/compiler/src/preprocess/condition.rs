//! The value of what stands after `#if`.

use super::macros::NameId;
use super::token::{Kind, Token};
use super::{MOST_DEPTH, Preprocessor, Result};

/// A number of 64 bits, and whether it has no sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    bits: u64,
    is_unsigned: bool,
}

impl Number {
    fn signed(value: i64) -> Number {
        Number { bits: value as u64, is_unsigned: false }
    }

    fn of(truth: bool) -> Number {
        Number::signed(i64::from(truth))
    }

    fn is_true(self) -> bool {
        self.bits != 0
    }
}

/// Tokens that are evaluated.
pub struct Condition<'p, 's> {
    preprocessor: &'p Preprocessor<'s>,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// Operators of two operands, by how strongly they bind.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'p, 's> Condition<'p, 's> {
    pub fn new(preprocessor: &'p Preprocessor<'s>, tokens: Vec<Token>) -> Condition<'p, 's> {
        Condition { preprocessor, tokens, at: 0, depth: 0 }
    }

    pub fn value(mut self) -> Result<bool> {
        if self.tokens.is_empty() {
            return self.preprocessor.fail("`#if` without a condition");
        }
        let mut value = self.conditional(true)?;
        while self.eat(",") {
            value = self.conditional(true)?;
        }
        match self.tokens.get(self.at) {
            None => Ok(value.is_true()),
            Some(token) => {
                let text = self.preprocessor.names.text(token.text);
                self.preprocessor.fail(format!("an operator is missing in the condition before `{text}`"))
            }
        }
    }

    fn next_is(&self, sign: &str) -> bool {
        self.tokens.get(self.at).is_some_and(|token| self.preprocessor.is_sign(token, sign))
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.next_is(sign);
        self.at += usize::from(found);
        found
    }

    /// What is not evaluated may divide by zero.
    fn conditional(&mut self, is_evaluated: bool) -> Result<Number> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return self.preprocessor.fail("the condition is nested too deeply");
        }
        let test = self.binary(0, is_evaluated)?;
        let value = if self.eat("?") {
            let yes = self.conditional(is_evaluated && test.is_true())?;
            if !self.eat(":") {
                return self.preprocessor.fail("`?` without `:` in the condition");
            }
            let no = self.conditional(is_evaluated && !test.is_true())?;
            let is_unsigned = yes.is_unsigned || no.is_unsigned;
            Number { is_unsigned, ..if test.is_true() { yes } else { no } }
        } else {
            test
        };
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, level: usize, is_evaluated: bool) -> Result<Number> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary(is_evaluated) };
        let mut left = self.binary(level + 1, is_evaluated)?;
        while let Some(operator) = operators.iter().find(|operator| self.next_is(operator)) {
            self.at += 1;
            let decides = match *operator {
                "||" => left.is_true(),
                "&&" => !left.is_true(),
                _ => false,
            };
            let right = self.binary(level + 1, is_evaluated && !decides)?;
            left = match (*operator, apply(operator, left, right)) {
                (_, Some(value)) => value,
                (_, None) if is_evaluated => return self.preprocessor.fail("division by zero in the condition"),
                (_, None) => Number::signed(0),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, is_evaluated: bool) -> Result<Number> {
        let mut signs = Vec::new();
        while let Some(sign) = ["-", "+", "!", "~"].into_iter().find(|sign| self.next_is(sign)) {
            self.at += 1;
            signs.push(sign);
        }
        let mut value = self.primary(is_evaluated)?;
        for sign in signs.into_iter().rev() {
            value = match sign {
                "-" => Number { bits: value.bits.wrapping_neg(), ..value },
                "~" => Number { bits: !value.bits, ..value },
                "!" => Number::of(!value.is_true()),
                _ => value,
            };
        }
        Ok(value)
    }

    fn primary(&mut self, is_evaluated: bool) -> Result<Number> {
        if self.eat("(") {
            let mut value = self.conditional(is_evaluated)?;
            while self.eat(",") {
                value = self.conditional(is_evaluated)?;
            }
            return if self.eat(")") { Ok(value) } else { self.preprocessor.fail("`)` is missing in the condition") };
        }
        let Some(&token) = self.tokens.get(self.at) else {
            return self.preprocessor.fail("the condition ends before an operand");
        };
        self.at += 1;
        let text = self.preprocessor.names.text(token.text);
        let value = match token.kind {
            Kind::Number => integer(text),
            Kind::Literal => character(text),
            Kind::Name if text == "defined" => return self.defined(),
            Kind::Name => Some(Number::signed(0)),
            Kind::Sign => None,
        };
        match value {
            Some(value) => Ok(value),
            None => self.preprocessor.fail(format!("`{text}` is no number, name or operator of a condition")),
        }
    }

    fn defined(&mut self) -> Result<Number> {
        let has_parenthesis = self.eat("(");
        let name: Option<NameId> =
            self.tokens.get(self.at).filter(|token| token.kind == Kind::Name).map(|token| token.text);
        self.at += 1;
        match name {
            Some(name) if !has_parenthesis || self.eat(")") => Ok(Number::of(self.preprocessor.names.is_defined(name))),
            _ => self.preprocessor.fail("`defined` takes a name"),
        }
    }
}

fn apply(operator: &str, a: Number, b: Number) -> Option<Number> {
    let is_unsigned = a.is_unsigned || b.is_unsigned;
    let number = |bits| Some(Number { bits, is_unsigned });
    let less = |a: u64, b: u64| if is_unsigned { a < b } else { (a as i64) < b as i64 };
    match operator {
        "||" => Some(Number::of(a.is_true() || b.is_true())),
        "&&" => Some(Number::of(a.is_true() && b.is_true())),
        "|" => number(a.bits | b.bits),
        "^" => number(a.bits ^ b.bits),
        "&" => number(a.bits & b.bits),
        "==" => Some(Number::of(a.bits == b.bits)),
        "!=" => Some(Number::of(a.bits != b.bits)),
        "<" => Some(Number::of(less(a.bits, b.bits))),
        ">" => Some(Number::of(less(b.bits, a.bits))),
        "<=" => Some(Number::of(!less(b.bits, a.bits))),
        ">=" => Some(Number::of(!less(a.bits, b.bits))),
        "<<" | ">>" => {
            let is_negative = !b.is_unsigned && (b.bits as i64) < 0;
            let count = if is_negative { b.bits.wrapping_neg() } else { b.bits };
            let is_left = (operator == "<<") != is_negative;
            Some(Number { bits: shifted(a, is_left, count), is_unsigned: a.is_unsigned })
        }
        "+" => number(a.bits.wrapping_add(b.bits)),
        "-" => number(a.bits.wrapping_sub(b.bits)),
        "*" => number(a.bits.wrapping_mul(b.bits)),
        _ if b.bits == 0 => None,
        "/" if is_unsigned => number(a.bits / b.bits),
        "/" => number((a.bits as i64).wrapping_div(b.bits as i64) as u64),
        _ if is_unsigned => number(a.bits % b.bits),
        _ => number((a.bits as i64).wrapping_rem(b.bits as i64) as u64),
    }
}

fn shifted(value: Number, is_left: bool, count: u64) -> u64 {
    let count = u32::try_from(count).ok().filter(|count| *count < 64);
    let is_negative = !value.is_unsigned && (value.bits as i64) < 0;
    match (is_left, count) {
        (true, Some(count)) => value.bits << count,
        (false, Some(count)) if is_negative => ((value.bits as i64) >> count) as u64,
        (false, Some(count)) => value.bits >> count,
        (false, None) if is_negative => u64::MAX,
        _ => 0,
    }
}

fn integer(text: &str) -> Option<Number> {
    let digits_end = |text: &str, radix: u32| text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    let lower = text.to_ascii_lowercase();
    let (radix, rest) =
        match lower.strip_prefix("0x").map(|rest| (16, rest)).or(lower.strip_prefix("0b").map(|rest| (2, rest))) {
            Some(found) => found,
            None if lower.starts_with('0') => (8, &*lower),
            None => (10, &*lower),
        };
    let (digits, suffix) = rest.split_at(digits_end(rest, radix));
    let is_unsigned = suffix.contains('u');
    if !matches!(suffix, "" | "u" | "l" | "ul" | "lu" | "ll" | "ull" | "llu") || digits.is_empty() {
        return None;
    }
    // What is too large keeps its lower bits.
    let wide = digits.chars().filter_map(|c| c.to_digit(radix));
    let bits = wide.fold(0_u64, |value, digit| value.wrapping_mul(u64::from(radix)).wrapping_add(u64::from(digit)));
    Some(Number { bits, is_unsigned: is_unsigned || bits > i64::MAX as u64 })
}

/// The value of a character constant.
fn character(text: &str) -> Option<Number> {
    let prefix = text.find('\'').filter(|_| !text.starts_with('"'))?;
    let inner = text[prefix + 1..].strip_suffix('\'')?;
    let is_wide = prefix > 0;
    let mut value = 0_u32;
    let mut count = 0;
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        let unit = match c {
            '\\' => match chars.next()? {
                'n' => 10,
                't' => 9,
                'r' => 13,
                'a' => 7,
                'b' => 8,
                'v' => 11,
                'f' => 12,
                'e' => 27,
                'x' => {
                    let mut code = 0_u32;
                    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)) {
                        code = code.wrapping_mul(16).wrapping_add(digit);
                        chars.next();
                    }
                    code
                }
                digit @ '0'..='7' => {
                    let mut code = digit.to_digit(8)?;
                    for _ in 0..2 {
                        let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                        code = code * 8 + digit;
                        chars.next();
                    }
                    code
                }
                other => other as u32,
            },
            c => c as u32,
        };
        value = if is_wide { unit } else { value << 8 | unit & 0xff };
        count += 1;
    }
    let value = value as i32;
    // One character is a `char`, which has a sign.
    let value = if count == 1 && !is_wide { i32::from(value as i8) } else { value };
    (count > 0).then(|| Number::signed(i64::from(value)))
}

impl Preprocessor<'_> {
    /// The tokens with 0 or 1 in the place of `__has_include(..)` and its like.
    pub(super) fn without_questions(&mut self, tokens: Vec<Token>) -> Result<Vec<Token>> {
        let is_question = |token: &Token, preprocessor: &Self| {
            token.kind == Kind::Name && preprocessor.names.text(token.text).starts_with("__has_")
        };
        if !tokens.iter().any(|token| is_question(token, self)) {
            return Ok(tokens);
        }
        let mut out = Vec::with_capacity(tokens.len());
        let mut at = 0;
        while let Some(&token) = tokens.get(at) {
            at += 1;
            let opens = tokens.get(at).is_some_and(|next| self.is_sign(next, "("));
            if !is_question(&token, self) || !opens {
                out.push(token);
                continue;
            }
            let question = self.names.text(token.text).to_owned();
            let inner = &tokens[at + 1..];
            let mut is_there = false;
            let length = if question.starts_with("__has_include") {
                let found = match self.header_of(inner) {
                    Some(found) => Some(found),
                    None => {
                        let end = inner.iter().position(|token| self.is_sign(token, ")")).unwrap_or(inner.len());
                        let expanded = self.expanded(&inner[..end])?;
                        self.header_of(&expanded).map(|(header, _)| (header, end))
                    }
                };
                let Some((header, length)) = found else {
                    return self.fail(format!("`{question}` takes \"name\" or <name>"));
                };
                is_there = self.has_header(&header, question == "__has_include_next");
                length
            } else {
                inner.iter().position(|token| self.is_sign(token, ")")).unwrap_or(inner.len())
            };
            at += 1 + length;
            match tokens.get(at) {
                Some(end) if self.is_sign(end, ")") => at += 1,
                _ => return self.fail(format!("`)` is missing after `{question}(`")),
            }
            let text = self.names.id(if is_there { "1" } else { "0" });
            out.push(Token { text, kind: Kind::Number, ..token });
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_their_values() {
        for (text, value) in [("0x1F", 31), ("010", 8), ("0b11", 3), ("42ull", 42), ("0", 0)] {
            assert_eq!(integer(text).map(|number| number.bits), Some(value), "{text}");
        }
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("08"), None);
        for (text, value) in [("'a'", 97), ("'\\n'", 10), ("'\\377'", -1), ("L'\\x41'", 65), ("'ab'", 24930)] {
            assert_eq!(character(text), Some(Number::signed(value)), "{text}");
        }
        assert_eq!(character("''"), None);
        assert_eq!(character("\"x\""), None);
    }
}

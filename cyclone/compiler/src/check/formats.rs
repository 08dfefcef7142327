//! Format strings of `printf` and `scanf`: which types their conversions ask for.

use super::Checker;
use crate::ast::{self, FloatSize, IntSize, Quals};
use crate::diagnostics::Code;
use crate::source::Span;
use crate::tree::{Coercion, Expr, ExprKind};
use crate::types::{Format, Function, Pointer, Signedness, Ty, TyKind};

/// One conversion of a format string.
#[derive(Debug, PartialEq, Eq)]
struct Conversion {
    /// `*` in place of the width or the precision.
    numbers: usize,
    /// The value is not stored (`scanf`'s `*`).
    suppressed: bool,
    /// `h`, `ll` and the like.
    length: String,
    /// The letter.
    letter: char,
}

impl Checker<'_> {
    /// The types that a call's format string asks for, if it has one that can be read.
    pub fn format_types(&mut self, function: &Function, values: &[Expr], span: Span) -> Option<Vec<Ty>> {
        let (family, at, first) = function.attributes.format?;
        first?;
        let mut value = values.get(at)?;
        while let ExprKind::Coerce(_, inner) = &value.kind {
            value = inner;
        }
        let ExprKind::Str(bytes) = &value.kind else { return None };
        let text = String::from_utf8_lossy(bytes).into_owned();
        let place = if value.span == Span::default() { span } else { value.span };
        let conversions = match conversions(&text, family) {
            Ok(conversions) => conversions,
            Err(message) => {
                self.error(Code::WrongFormat, place, message);
                return None;
            }
        };
        let mut wanted = Vec::new();
        for conversion in conversions {
            for _ in 0..conversion.numbers {
                wanted.push(self.int());
            }
            let ty = match family {
                Format::Printf => self.printed(&conversion, function.c_varargs),
                Format::Scanf if conversion.suppressed => continue,
                Format::Scanf => self.scanned(&conversion, function.c_varargs),
            };
            match ty {
                Some(ty) => wanted.push(ty),
                None => {
                    let Conversion { length, letter, .. } = conversion;
                    self.error(Code::WrongFormat, place, format!("`%{length}{letter}` is not a conversion"));
                    return None;
                }
            }
        }
        Some(wanted)
    }

    fn number_type(&mut self, sign: Signedness, length: &str) -> Option<Ty> {
        let size = match length {
            "" => IntSize::Int,
            "hh" => IntSize::Char,
            "h" => IntSize::Short,
            "l" | "z" | "t" | "j" => IntSize::Long,
            "ll" | "q" => IntSize::LongLong,
            _ => return None,
        };
        Some(self.make(TyKind::Int(sign, size)))
    }

    fn printed(&mut self, conversion: &Conversion, to_c: bool) -> Option<Ty> {
        let length = conversion.length.as_str();
        match conversion.letter {
            'd' | 'i' => self.number_type(Signedness::Signed, length),
            'u' | 'o' | 'x' | 'X' => self.number_type(Signedness::Unsigned, length),
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' => match length {
                "" | "l" => Some(self.make(TyKind::Float(FloatSize::Double))),
                "L" => Some(self.make(TyKind::Float(FloatSize::LongDouble))),
                _ => None,
            },
            'c' if length.is_empty() => Some(self.int()),
            's' if length.is_empty() => Some(self.text_pointer(true, to_c, true)),
            'p' if length.is_empty() => Some(self.size_type()),
            'n' => {
                let number = self.number_type(Signedness::Signed, length)?;
                Some(self.target_pointer(number))
            }
            _ => None,
        }
    }

    fn scanned(&mut self, conversion: &Conversion, to_c: bool) -> Option<Ty> {
        let length = conversion.length.as_str();
        let target = match conversion.letter {
            'd' | 'i' | 'n' => self.number_type(Signedness::Signed, length)?,
            'u' | 'o' | 'x' | 'X' => self.number_type(Signedness::Unsigned, length)?,
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' => {
                let size = match length {
                    "" => FloatSize::Float,
                    "l" => FloatSize::Double,
                    "L" => FloatSize::LongDouble,
                    _ => return None,
                };
                self.make(TyKind::Float(size))
            }
            'c' | 's' | '[' if length.is_empty() => {
                let zeroterm = conversion.letter != 'c';
                return Some(self.text_pointer(false, to_c, zeroterm));
            }
            _ => return None,
        };
        Some(self.target_pointer(target))
    }

    /// A pointer to characters: fat for Cyclone's functions, zero-terminated for C's.
    fn text_pointer(&mut self, is_const: bool, to_c: bool, zeroterm: bool) -> Ty {
        let target = self.char_type();
        let region = self.region_of_argument();
        let quals = Quals { is_const, ..Quals::default() };
        let plain = self.pointer_to(target, quals, region);
        let nullable = self.truth(!to_c);
        let zeroterm = self.truth(to_c && zeroterm);
        let bound = if to_c { plain.bound } else { self.make(TyKind::Fat) };
        self.pointer_type(Pointer { nullable, zeroterm, bound, ..plain })
    }

    fn target_pointer(&mut self, target: Ty) -> Ty {
        let region = self.region_of_argument();
        let pointer = self.pointer_to(target, Quals::default(), region);
        self.pointer_type(pointer)
    }

    /// An argument for a conversion. Pointers may be printed as numbers.
    pub fn formatted(&mut self, argument: &ast::Expr, wanted: Ty) -> Expr {
        let value = self.value(argument, Some(wanted));
        if self.is_integral(wanted) && matches!(self.types.get(value.ty), TyKind::Pointer(_)) {
            let value = self.bare(value);
            let span = value.span;
            return Expr { kind: ExprKind::Coerce(Coercion::PointerToInt, Box::new(value)), ty: wanted, span };
        }
        if self.is_integral(wanted) && self.is_integral(value.ty) {
            // Sizes are the callee's business: it takes every integer as a long one.
            return value;
        }
        self.coerce(value, wanted, argument.span)
    }
}

/// All conversions of a format string.
fn conversions(text: &str, family: Format) -> Result<Vec<Conversion>, String> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            continue;
        }
        let mut conversion = Conversion { numbers: 0, suppressed: false, length: String::new(), letter: ' ' };
        let mut digits = 0;
        while let Some(&c) = rest.peek() {
            match c {
                '*' if family == Format::Scanf => conversion.suppressed = true,
                '*' => conversion.numbers += 1,
                '+' | '-' | ' ' | '#' | '0'..='9' | '.' | '\'' => digits += 1,
                'h' | 'l' | 'L' | 'q' | 'j' | 'z' | 't' => conversion.length.push(c),
                _ => break,
            }
            rest.next();
        }
        conversion.letter = rest.next().ok_or("the format string ends within a conversion")?;
        match conversion.letter {
            '%' if digits == 0 && conversion.numbers == 0 && conversion.length.is_empty() => continue,
            '[' if family == Format::Scanf => {
                if rest.peek() == Some(&'^') {
                    rest.next();
                }
                rest.next();
                if !rest.by_ref().any(|c| c == ']') {
                    return Err("`%[` has no `]`".to_owned());
                }
            }
            _ => {}
        }
        found.push(conversion);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_found_with_their_lengths() {
        let found = conversions("%d%% %-5.*ls %llx", Format::Printf).unwrap();
        let short: Vec<(usize, &str, char)> =
            found.iter().map(|one| (one.numbers, one.length.as_str(), one.letter)).collect();
        assert_eq!(short, [(0, "", 'd'), (1, "l", 's'), (0, "ll", 'x')]);
    }

    #[test]
    fn a_set_of_scanf_may_hold_a_bracket_at_its_start() {
        let found = conversions("%[]a]%*d", Format::Scanf).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[1].suppressed);
        assert!(conversions("%[abc", Format::Scanf).is_err());
        assert!(conversions("%5", Format::Printf).is_err());
    }
}

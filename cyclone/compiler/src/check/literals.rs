//! Literals: from their text to their value.

use super::numbers::fits;
use crate::ast::{FloatSize, IntSize};
use crate::types::Signedness;

/// Value and type of an integer as written; `None` if it is too large for any type, or not a number.
pub fn integer(text: &str) -> Option<(i128, Signedness, IntSize)> {
    if let [digit @ b'0'..=b'9'] = text.as_bytes() {
        return Some((i128::from(digit - b'0'), Signedness::Signed, IntSize::Int));
    }
    let digits_end = text.trim_end_matches(['u', 'U', 'l', 'L']).len();
    let (digits, suffix) = text.split_at(digits_end);
    if !is_suffix(suffix) {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(hex) = lower.strip_prefix("0x") {
        (16, hex)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (2, binary)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    let value = i128::from_str_radix(digits, radix).ok()?;
    let unsigned = suffix.contains(['u', 'U']);
    let longs = suffix.chars().filter(|c| matches!(c, 'l' | 'L')).count();
    let sizes = match longs {
        0 => &[IntSize::Int, IntSize::Long][..],
        1 => &[IntSize::Long][..],
        _ => &[IntSize::LongLong][..],
    };
    for &size in sizes {
        if !unsigned && fits(value, Signedness::Signed, size) {
            return Some((value, Signedness::Signed, size));
        }
        if (unsigned || radix != 10) && fits(value, Signedness::Unsigned, size) {
            return Some((value, Signedness::Unsigned, size));
        }
    }
    let widest = *sizes.last()?;
    fits(value, Signedness::Unsigned, widest).then_some((value, Signedness::Unsigned, widest))
}

/// What may follow an integer: at most one `u`, and one `l` or two of the same case, in either order.
fn is_suffix(suffix: &str) -> bool {
    let without_u = suffix.strip_prefix(['u', 'U']).or_else(|| suffix.strip_suffix(['u', 'U'])).unwrap_or(suffix);
    matches!(without_u, "" | "l" | "L" | "ll" | "LL")
}

/// The type of a floating literal; `None` if it is not a number.
pub fn float_size(text: &str) -> Option<FloatSize> {
    let lower = text.to_ascii_lowercase();
    let (radix, rest) = match lower.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, lower.as_str()),
    };
    let (size, rest) = match rest.as_bytes().last()? {
        b'f' if radix == 10 || rest.contains('p') => (FloatSize::Float, &rest[..rest.len() - 1]),
        b'l' => (FloatSize::LongDouble, &rest[..rest.len() - 1]),
        _ => (FloatSize::Double, rest),
    };
    let (mantissa, exponent) = match rest.split_once(if radix == 16 { 'p' } else { 'e' }) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (rest, None),
    };
    let are_digits = |text: &str, radix| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    let is_number = are_digits(&mantissa.replacen('.', "", 1), radix)
        && exponent.map_or(radix == 10, |exponent| are_digits(exponent, 10));
    is_number.then_some(size)
}

/// Appends what is between the quotes, with what is escaped decoded: each character's code (bytes, unless `wide`).
pub fn characters(text: &str, wide: bool, out: &mut Vec<u32>) {
    let open = text.find(['"', '\'']).map_or(0, |at| at + 1);
    let inner = text.get(open..text.len().saturating_sub(1)).unwrap_or("");
    out.reserve(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(c, wide, out);
            continue;
        }
        let Some(escaped) = rest.next() else { break };
        let code = match escaped {
            'n' => 10,
            't' => 9,
            'r' => 13,
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'v' => 11,
            'e' => 27,
            'x' => digits(&mut rest, 16, usize::MAX, 0),
            '0'..='7' => digits(&mut rest, 8, 2, escaped as u32 - '0' as u32),
            // A backslash before the end of a line joins it with the next.
            '\n' => continue,
            other => {
                push(other, wide, out);
                continue;
            }
        };
        out.push(if wide { code } else { code & 0xff });
    }
}

fn push(c: char, wide: bool, out: &mut Vec<u32>) {
    if wide || c.is_ascii() {
        out.push(c as u32);
    } else {
        out.extend(c.encode_utf8(&mut [0; 4]).bytes().map(u32::from));
    }
}

/// At most `most` more digits of a number that begins with `value`.
fn digits(rest: &mut std::str::Chars<'_>, radix: u32, most: usize, mut value: u32) -> u32 {
    for _ in 0..most {
        let mut ahead = rest.clone();
        match ahead.next().and_then(|c| c.to_digit(radix)) {
            Some(digit) => {
                value = value.wrapping_mul(radix).wrapping_add(digit);
                *rest = ahead;
            }
            None => break,
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_the_first_type_that_holds_them() {
        assert_eq!(integer("42"), Some((42, Signedness::Signed, IntSize::Int)));
        assert_eq!(integer("0xffffffff"), Some((0xffff_ffff, Signedness::Unsigned, IntSize::Int)));
        assert_eq!(integer("4294967295"), Some((4_294_967_295, Signedness::Signed, IntSize::Long)));
        assert_eq!(integer("017u"), Some((15, Signedness::Unsigned, IntSize::Int)));
        assert_eq!(integer("1ll"), Some((1, Signedness::Signed, IntSize::LongLong)));
        assert_eq!(integer("99999999999999999999999"), None);
        for wrong in ["1new", "089", "0x", "1lul", "1lL", "1uu", "0b2"] {
            assert_eq!(integer(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn floating_literals_have_digits_and_the_type_of_their_suffix() {
        assert_eq!(float_size("1.5"), Some(FloatSize::Double));
        assert_eq!(float_size(".5e-3F"), Some(FloatSize::Float));
        assert_eq!(float_size("1.L"), Some(FloatSize::LongDouble));
        assert_eq!(float_size("0x1.8p3f"), Some(FloatSize::Float));
        for wrong in ["1e", "1e+", "1.2.3", "0x1.8", "1.5x", "1ef", "1.5ff"] {
            assert_eq!(float_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn escapes_become_their_codes() {
        let decode = |text, wide| {
            let mut out = Vec::new();
            characters(text, wide, &mut out);
            out
        };
        assert_eq!(decode(r#""a\n\x41\0072""#, false), [97, 10, 0x41, 7, b'2' as u32]);
        assert_eq!(decode("\"é\"", false), [0xc3, 0xa9]);
        assert_eq!(decode("L'é'", true), [0xe9]);
        assert_eq!(decode(r"'\''", false), [39]);
    }
}

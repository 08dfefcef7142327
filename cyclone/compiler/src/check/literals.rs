//! Literals: from their text to their value.

use super::numbers::fits;
use crate::ast::{FloatSize, IntSize};
use crate::types::Signedness;

/// Value and type of an integer as written; `None` if it is too large for any type.
pub fn integer(text: &str) -> Option<(i128, Signedness, IntSize)> {
    let digits_end = text.trim_end_matches(['u', 'U', 'l', 'L']).len();
    let (digits, suffix) = text.split_at(digits_end);
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

/// The type of a floating literal.
pub fn float_size(text: &str) -> FloatSize {
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    match text.as_bytes().last() {
        Some(b'f' | b'F') if !hexadecimal || text.contains(['p', 'P']) => FloatSize::Float,
        Some(b'l' | b'L') => FloatSize::LongDouble,
        _ => FloatSize::Double,
    }
}

/// Appends what is between the quotes, with what is escaped decoded: each character's code (bytes, unless `wide`).
pub fn characters(text: &str, wide: bool, out: &mut Vec<u32>) {
    let open = text.find(['"', '\'']).map_or(0, |at| at + 1);
    let inner = text.get(open..text.len().saturating_sub(1)).unwrap_or("");
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
    if wide {
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

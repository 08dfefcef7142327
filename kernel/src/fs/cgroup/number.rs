//! Numbers as programs write them into these files.

use crate::error::{Errno, Result};

/// A number in decimal, hexadecimal (`0x`) or octal (`0`) digits, with a sign or without.
///
/// # Errors
/// EINVAL: it is none. ERANGE: it is too large.
pub fn parse(text: &[u8]) -> Result<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (digits, base) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (rest, 16),
        [b'0', rest @ ..] if !rest.is_empty() => (rest, 8),
        _ => (digits, 10),
    };
    if digits.is_empty() {
        return Err(Errno::EINVAL);
    }
    let mut number: Option<u64> = Some(0);
    for &digit in digits {
        let digit = char::from(digit).to_digit(base).ok_or(Errno::EINVAL)?;
        number = number.and_then(|number| number.checked_mul(base.into())?.checked_add(digit.into()));
    }
    let number = i64::try_from(number.ok_or(Errno::ERANGE)?).map_err(|_| Errno::ERANGE)?;
    Ok(if negative { -number } else { number })
}

/// A number that fits into 32 bits.
///
/// # Errors
/// As for [`parse`].
pub fn parse_int(text: &[u8]) -> Result<i32> {
    i32::try_from(parse(text)?).map_err(|_| Errno::ERANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_bases_and_two_errors() {
        assert_eq!(parse(b"42"), Ok(42));
        assert_eq!(parse(b"-1"), Ok(-1));
        assert_eq!(parse(b"0x10"), Ok(16));
        assert_eq!(parse(b"010"), Ok(8));
        assert_eq!(parse(b"0"), Ok(0));
        for text in [&b""[..], b"-", b"0x", b"1 2", b"a", b"08", b"--1"] {
            assert_eq!(parse(text), Err(Errno::EINVAL));
        }
        assert_eq!(parse(b"99999999999999999999"), Err(Errno::ERANGE));
        assert_eq!(parse_int(b"4294967296"), Err(Errno::ERANGE));
    }
}

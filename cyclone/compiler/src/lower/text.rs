//! Putting text together.
//!
//! What is written here are names and numbers between words: `write!` and `format!` would ask a formatter for each of them,
//! which costs several times what copying the text does.

use crate::symbol::Symbol;
use std::rc::Rc;

/// What can stand in [`put!`] and [`text!`].
pub trait Put {
    /// Appends it.
    fn put(&self, out: &mut String);
}

impl Put for str {
    fn put(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl Put for String {
    fn put(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl Put for Rc<str> {
    fn put(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl Put for Symbol {
    fn put(&self, out: &mut String) {
        out.push_str(self.as_str());
    }
}

impl<T: Put + ?Sized> Put for &T {
    fn put(&self, out: &mut String) {
        (**self).put(out);
    }
}

impl Put for u64 {
    fn put(&self, out: &mut String) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = *self;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        for &digit in &digits[at..] {
            out.push(digit as char);
        }
    }
}

impl Put for u32 {
    fn put(&self, out: &mut String) {
        u64::from(*self).put(out);
    }
}

impl Put for usize {
    fn put(&self, out: &mut String) {
        (*self as u64).put(out);
    }
}

/// Appends texts and numbers to a string: `put!(out, "f", 3, "()")`.
macro_rules! put {
    ($out:expr, $($part:expr),+ $(,)?) => {{
        $($crate::lower::text::Put::put(&$part, &mut $out);)+
    }};
}

/// A string of texts and numbers.
macro_rules! text {
    ($($part:expr),+ $(,)?) => {{
        let mut text = String::with_capacity(48);
        put!(text, $($part),+);
        text
    }};
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_and_numbers_stand_one_after_the_other() {
        let name = String::from("f");
        assert_eq!(text!(&name, 0u32, "(", u64::MAX, ")"), "f0(18446744073709551615)");
    }
}

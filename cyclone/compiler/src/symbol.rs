//! Interned names.
//!
//! A [`Symbol`] is a number that stands for a string; two symbols of one thread are equal exactly if their strings are. The
//! strings live as long as the process: a compiler run is short, and each name is kept once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

/// An interned string. Meaningful only on the thread that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(u32);

#[derive(Default)]
struct Interner {
    numbers: HashMap<&'static str, u32>,
    strings: Vec<&'static str>,
}

thread_local! {
    static INTERNER: RefCell<Interner> = RefCell::default();
}

impl Symbol {
    /// The symbol for `text`.
    pub fn new(text: &str) -> Symbol {
        INTERNER.with_borrow_mut(|interner| {
            if let Some(&number) = interner.numbers.get(text) {
                return Symbol(number);
            }
            let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
            let number = interner.strings.len() as u32;
            interner.strings.push(kept);
            interner.numbers.insert(kept, number);
            Symbol(number)
        })
    }

    /// The string it stands for.
    pub fn as_str(self) -> &'static str {
        INTERNER.with_borrow(|interner| interner.strings[self.0 as usize])
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

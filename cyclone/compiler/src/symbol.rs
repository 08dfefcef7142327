//! Interned names.
//!
//! A [`Symbol`] is a number that stands for a string; two symbols are equal exactly if their strings are. The
//! strings live as long as the process: a compiler run is short, and each name is kept once.

use hashbrown::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// An interned string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(u32);

#[derive(Default)]
struct Interner {
    numbers: HashMap<&'static str, u32>,
    strings: Vec<&'static str>,
}

static INTERNER: LazyLock<Mutex<Interner>> = LazyLock::new(Mutex::default);

/// Nothing is half done in it when a thread that holds it panics: the last step of an insertion makes it visible.
fn interner() -> MutexGuard<'static, Interner> {
    INTERNER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Symbol {
    /// The symbol for `text`.
    pub fn new(text: &str) -> Symbol {
        let mut interner = interner();
        if let Some(&number) = interner.numbers.get(text) {
            return Symbol(number);
        }
        let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
        let number = interner.strings.len() as u32;
        interner.strings.push(kept);
        interner.numbers.insert(kept, number);
        Symbol(number)
    }

    /// The string it stands for.
    pub fn as_str(self) -> &'static str {
        interner().strings[self.0 as usize]
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

//! Interned names.
//!
//! A [`Symbol`] is a number that stands for a string; two symbols are equal exactly if their strings are. The
//! strings live as long as the process: a compiler run is short, and each name is kept once.

use crate::hash::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// An interned string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(NonZeroU32);

#[derive(Default)]
struct Interner {
    numbers: HashMap<&'static str, Symbol>,
    strings: Vec<&'static str>,
}

static INTERNER: LazyLock<Mutex<Interner>> = LazyLock::new(Mutex::default);

/// Nothing is half done in it when a thread that holds it panics: the last step of an insertion makes it visible.
fn interner() -> MutexGuard<'static, Interner> {
    INTERNER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Interner {
    fn symbol(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.numbers.get(text) {
            return symbol;
        }
        let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
        self.strings.push(kept);
        let symbol = Symbol(NonZeroU32::MIN.saturating_add(self.strings.len() as u32 - 1));
        self.numbers.insert(kept, symbol);
        symbol
    }
}

/// All symbols, held by one thread that asks for many.
pub struct Symbols(MutexGuard<'static, Interner>);

impl Symbols {
    /// Waits for others that hold them. Nobody else can make or read a symbol until this is dropped.
    pub fn hold() -> Symbols {
        Symbols(interner())
    }

    /// The symbol for `text`.
    pub fn symbol(&mut self, text: &str) -> Symbol {
        self.0.symbol(text)
    }
}

impl Symbol {
    /// The symbol for `text`.
    pub fn new(text: &str) -> Symbol {
        interner().symbol(text)
    }

    /// Symbols are numbered from 0 in the order in which they are made.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The string it stands for.
    pub fn as_str(self) -> &'static str {
        interner().strings[self.index()]
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

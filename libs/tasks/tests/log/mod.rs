//! What happened in a test, in order.

use std::cell::RefCell;

/// What was said, in order.
#[derive(Default)]
pub struct Log(RefCell<Vec<String>>);

impl Log {
    /// Adds a word.
    pub fn say(&self, what: impl Into<String>) {
        self.0.borrow_mut().push(what.into());
    }

    /// All words, with blanks between.
    pub fn text(&self) -> String {
        self.0.borrow().join(" ")
    }
}
